"""The commands `mmagold rtl check`, `prove`, `init`, `qualify`, `regress`, `ucis`, `uvm`; `mmagold doctor`.

The entry point `add_commands` hangs them into the command; heavy imports happen inside.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from golden.cli.arguments import Json, Seed, print_json
from golden.cli.export import FORMATS
from golden.cli.progress import Timings, progress_bar
from golden.errors import counted
from golden.identify.blackbox.plugins import OPENERS
from golden.workers import MOST_WORKERS

if TYPE_CHECKING:
    from golden.cover.coverage import Coverage
    from golden.unit import Unit
    from rtl_tb.check.options import Options
    from rtl_tb.check.record import Check
    from rtl_tb.engines.settings import Settings

_BUDGET = 28.0
"""Seconds of a check: with two for the start and the end of Python a failing one is over in 30."""
_DutFile = Annotated[
    Path, Argument(metavar="DUT.YAML", help="The dut.yaml of your unit.", show_default=False)
]
_Build = Annotated[
    Path, Option("--build", help="Folder for compiled simulations, which later runs use again.")
]


def _engines() -> list[str]:
    from rtl_tb.engines import ENGINES

    return list(ENGINES)


def _settings() -> Settings:
    from rtl_tb.engines.settings import settings

    return settings()


def _simulators() -> list[str]:
    from rtl_tb.engines.job import SIMULATORS

    return list(SIMULATORS)


def _policies() -> list[str]:
    from rtl_tb.check.synthesis import POLICIES

    return list(POLICIES)


def check(
    ctx: typer.Context,
    file: Annotated[
        Path,
        Argument(
            metavar="DUT.YAML",
            help="The dut.yaml of your unit, or the folder of an earlier failure (capsule) to repeat.",
            show_default=False,
        ),
    ],
    engine: Annotated[
        str,
        Option(
            "--engine",
            help="How to simulate: fast, selfcheck or cocotb.",
            autocompletion=_engines,
            default_factory=lambda: _settings().engine,
            show_default="fast, or [tool.mmagold] of pyproject.toml",
        ),
    ],
    sim: Annotated[
        str,
        Option(
            "--sim",
            help="Simulator: verilator or icarus. Of VHDL: ghdl. With --engine selfcheck also vcs, questa or "
            "xcelium.",
            autocompletion=_simulators,
            default_factory=lambda: _settings().simulator,
            show_default="verilator, or [tool.mmagold] of pyproject.toml",
        ),
    ],
    count: Annotated[
        int | None,
        Option(
            "--count",
            min=1,
            help="Number of vectors (default: fast 200000, selfcheck 20000, cocotb 5000; VHDL 5000).",
        ),
    ] = None,
    seed: Annotated[
        int, Option("--seed", min=0, help="Seed of the vectors, the idle cycles and the backpressure.")
    ] = 1,
    first: Annotated[
        int, Option("--first", min=0, help="Index of the first vector in the sequence that the seed gives.")
    ] = 0,
    kinds: Annotated[
        str | None,
        Option(
            "--kinds",
            help="Kinds of operands and their shares, such as tie=2,narrow=1 (default: all kinds, see "
            "vectors --list-kinds).",
        ),
    ] = None,
    vectors: Annotated[
        Path | None,
        Option(
            "--vectors",
            help="Run the vectors in this file, not random ones. mmagold vectors writes such files.",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        Option(
            "--columns",
            help="Columns of a --vectors file without a manifest (a,b,c,d), or its .npz keys (a=x).",
        ),
    ] = None,
    until_covered: Annotated[
        bool,
        Option(
            "--until-covered",
            help="Stop when the vectors have hit every reachable bin of the functional coverage.",
        ),
    ] = False,
    idle: Annotated[
        float | None,
        Option(
            "--idle",
            min=0,
            max=0.99,
            help="Share of the vectors that have idle cycles before them (default: 0 in the first run of "
            "fast, 0.2 in all others).",
        ),
    ] = None,
    backpressure: Annotated[
        float | None,
        Option(
            "--backpressure",
            min=0,
            max=0.99,
            help="Share of the results that wait before they are taken (default: as for --idle).",
        ),
    ] = None,
    resets: Annotated[
        int | None,
        Option(
            "--resets",
            min=0,
            max=2**31 - 1,
            help="Number of resets during a run (default: 0 in the first run of fast, one for 25 vectors in "
            "all others).",
        ),
    ] = None,
    timeout: Annotated[
        int,
        Option(
            "--timeout",
            min=1,
            max=2**31 - 1,
            help="Clock cycles without a result after which the unit fails as stopped.",
        ),
    ] = 10_000,
    wall_timeout: Annotated[
        float,
        Option(
            "--wall-timeout", help="Seconds without the end of a clock cycle after which a run is stopped."
        ),
    ] = 120.0,
    waves: Annotated[
        Path | None,
        Option("--waves", help="Write a waveform to this file (.fst or .vcd); not with --engine fast."),
    ] = None,
    failures: Annotated[
        Path, Option("--failures", help="Folder for capsules: each has the files to repeat a failing check.")
    ] = Path("failures"),
    budget: Annotated[
        float,
        Option(
            "--budget",
            min=0,
            help="Seconds for a failing check; its explanation gets at least half of them (0: only an "
            "example). Of a passing check: seconds for gate-level simulation.",
        ),
    ] = _BUDGET,
    repair: Annotated[
        float | None,
        Option(
            "--repair",
            min=0,
            help="Seconds to search the RTL for the faulty line (default: the rest of --budget, or half of "
            "it if one fault explains all wrong results; 0: no search).",
        ),
    ] = None,
    dissect: Annotated[
        float,
        Option(
            "--dissect",
            min=0,
            help="Seconds to find out what the unit computes, as mmagold dissect does, if no single fault "
            "explains the results (0: do not).",
        ),
    ] = 0.0,
    four_states: Annotated[
        bool,
        Option(
            "--four-states/--no-four-states",
            help="If the unit passes in Verilator, also run it in Icarus Verilog, which simulates X and Z.",
        ),
    ] = True,
    synthesis: Annotated[
        str,
        Option(
            "--synthesis",
            help="Whether to simulate the netlist of a unit that passes. try: if that cannot run, the unit "
            "passes with a note. require: if that cannot run, there is no verdict (status 2). off: do not.",
            autocompletion=_policies,
        ),
    ] = "try",
    holes: Annotated[
        str,
        Option(
            "--holes",
            help="What to do if the unit passes, but no vector hit some reachable bins of the functional "
            "coverage. warn: name them in the report. fail: give no verdict (exit status 2).",
            autocompletion=lambda: ["warn", "fail"],
        ),
    ] = "warn",
    build: _Build = Path("build"),
    coverage: Annotated[
        Path | None,
        Option(
            "--coverage",
            help="Add the functional coverage to this .json file, and write a page next to it (.html).",
        ),
    ] = None,
    report: Annotated[
        list[Path] | None,
        Option(
            "--report",
            help="Also write the report to this file: .md, .html, .json or .xml (JUnit). Can be repeated.",
        ),
    ] = None,
    timings: Timings = False,
    as_json: Json = False,
) -> None:
    """Compares your RTL with the instruction that it implements, bit for bit.

    It simulates the unit, and explains a failure: the smallest wrong operands, the likely fault, the line.

    Exit status: 0 all results are equal, 1 a result differs or the handshake failed, 2 no verdict.
    """
    from golden.cli.vectors import parse_kinds
    from golden.explain.terminal import PlainConsole
    from rtl_tb.check.check import check as run_check
    from rtl_tb.check.options import HOLES, Options
    from rtl_tb.check.report import ReportPrinter, untried
    from rtl_tb.errors import RtlError

    _check_suffixes(report or [], coverage)
    if synthesis not in _policies():
        raise typer.BadParameter(
            f"'{synthesis}', expected one of {', '.join(_policies())}", param_hint="--synthesis"
        )
    if holes not in HOLES:
        raise typer.BadParameter(f"'{holes}', expected one of {', '.join(HOLES)}", param_hint="--holes")
    requested = Options(
        engine=engine,
        simulator=sim,
        count=count,
        seed=seed,
        first=first,
        weights=parse_kinds(kinds),
        idle=idle,
        backpressure=backpressure,
        resets=resets,
        timeout_cycles=timeout,
        wall_timeout=wall_timeout,
        vectors=vectors,
        columns=columns,
        until_covered=until_covered,
        budget=budget,
        repair=repair,
        dissect=dissect,
        four_states=four_states,
        synthesis=synthesis,
        holes=holes,
        failures=failures,
        waves=waves,
        build=build,
    )
    file, options = _of_capsule(ctx, file, requested) if file.is_dir() else (file, requested)
    if _typed(ctx, "engine") and options.engine != "cocotb":
        _refuse_for_vhdl(file, options.engine)
    printer = ReportPrinter(PlainConsole())
    with progress_bar(not as_json) as progress:

        def on_part(found: Check, stage: str) -> None:
            if not as_json:
                with progress.hidden():
                    printer.print_up_to(found.as_dict(), stage, found.example)

        result = run_check(file, options, progress, on_part)
    data = result.as_dict()
    _write_reports(data, report or [])
    if coverage is not None and result.coverage is not None:
        _merge_coverage(result.coverage, coverage)
    if as_json:
        print_json(progress.with_timings(data, timings))
    else:
        progress.print_timings(timings)
    if not result.passed:
        raise typer.Exit(1)
    if holes == "fail" and untried(data):
        raise RtlError(f"{result.dut.name} passes, but no vector hit some reachable bins (--holes fail)")


def prove(
    file: _DutFile,
    seconds: Annotated[
        float,
        Option("--seconds", min=1, help="Seconds for the search of the proof, and as many for its check."),
    ] = 300.0,
    jobs: Annotated[int, Option("--jobs", min=1, max=MOST_WORKERS, help="Number of processes.")] = 1,
    failures: Annotated[
        Path, Option("--failures", help="Folder for the capsule of a counterexample: the files to repeat it.")
    ] = Path("failures"),
    build: _Build = Path("build"),
    as_json: Json = False,
) -> None:
    """Proves that your RTL equals the instruction for all operands, or shows operands for which it is wrong.

    Exit status: 0 proved, 1 refuted, 2 not decided, or an error.
    """
    from golden.explain.terminal import PlainConsole
    from golden.proof.report import print_outcome
    from rtl_tb.check.options import Options
    from rtl_tb.check.report import ReportPrinter
    from rtl_tb.dut.description import load_dut
    from rtl_tb.prove.proof import prove as run_proof

    console = PlainConsole()
    printer = ReportPrinter(console)
    with progress_bar(not as_json) as progress:

        def on_part(found: Check, stage: str) -> None:
            if not as_json and not found.passed:
                with progress.hidden():
                    printer.print_up_to(found.as_dict(), stage, found.example)

        def on_stage(text: str) -> None:
            progress(text, 0, 0)

        options = Options(failures=failures, build=build, budget=30.0)
        found = run_proof(load_dut(file), seconds, options, on_stage, on_part, jobs)
    if as_json:
        print_json(found.as_dict())
    else:
        print_outcome(found.outcome, found.subject, found.claim, console)
    if found.outcome.status:
        raise typer.Exit(found.outcome.status)


_FIELDS = {"sim": "simulator", "kinds": "weights", "timeout": "timeout_cycles"}
"""Options of `Options` that have another name at the command line."""
_DRAWING = ("count", "seed", "first", "weights", "vectors", "until_covered")


def _of_capsule(ctx: typer.Context, folder: Path, requested: Options) -> tuple[Path, Options]:
    """What a capsule repeats: the options that it keeps, replaced by the ones given here."""
    from rtl_tb.check.capsule import open_capsule

    file, kept = open_capsule(folder)
    names = {name: _FIELDS.get(name, name) for name in ctx.params}
    given = {
        field: getattr(requested, field)
        for name, field in names.items()
        if hasattr(requested, field) and _typed(ctx, name)
    }
    changes: dict[str, Any] = {"build": requested.build} | given
    if not given.keys().isdisjoint(_DRAWING):  # other vectors than the failing ones
        changes = {"drawn": None, "vectors": None} | changes
    if changes.get("vectors") is not None:
        changes["first"] = 0
    return file, replace(kept, **changes)


def _typed(ctx: typer.Context, name: str) -> bool:
    """Whether an option was given at the command line."""
    return getattr(ctx.get_parameter_source(name), "name", "") == "COMMANDLINE"


def _refuse_for_vhdl(file: Path, engine: str) -> None:
    """Refuses an engine that was named and does not run VHDL; the default is replaced."""
    from rtl_tb.dut.description import load_dut
    from rtl_tb.errors import RtlError

    if (dut := load_dut(file)).vhdl is not None:
        raise RtlError(
            f"engine is '{engine}', but {dut.name} is VHDL, which only GHDL runs, under the engine cocotb; "
            "leave out --engine"
        )


def _check_suffixes(reports: list[Path], coverage: Path | None) -> None:
    """Refuses what could not be written, before anything runs."""
    from rtl_tb.check.report import WRITERS

    for path in reports:
        if path.suffix[1:] not in WRITERS:
            raise typer.BadParameter(
                f"'{path}' does not end in one of .{', .'.join(WRITERS)}", param_hint="--report"
            )
    if coverage is not None and coverage.suffix != ".json":
        raise typer.BadParameter(f"'{coverage}' does not end in .json", param_hint="--coverage")


def _write_reports(data: dict[str, Any], paths: list[Path]) -> None:
    from golden.files.output import write_text
    from rtl_tb.check.report import WRITERS

    for path in paths:
        write_text(path, WRITERS[path.suffix[1:]](data))


def _merge_coverage(new: Coverage, path: Path) -> None:
    """Adds a run to saved coverage and writes the page of all of it."""
    from golden.cover import coverage
    from golden.cover.page import write_page
    from golden.files.lock import only_writer

    # What two checks add at once must both be in it.
    with only_writer(path, path.with_name(f".{path.name}.lock"), wait=True):
        before = coverage.load(path, [new.instruction]) if path.exists() else []
        together = coverage.merged([*before, new])
        coverage.save(together, path)
        write_page(together, path.with_suffix(".html"))


def init(
    sources: Annotated[
        list[Path] | None,
        Argument(metavar="FILE.SV", help="Source files of the unit.", show_default=False),
    ] = None,
    filelist: Annotated[
        list[Path] | None,
        Option("-f", "--filelist", help="A file list (.f), as simulators read it. Can be repeated."),
    ] = None,
    include: Annotated[
        list[Path] | None, Option("-I", "--include", help="An include folder. Can be repeated.")
    ] = None,
    define: Annotated[
        list[str] | None, Option("-D", "--define", help="A macro: NAME or NAME=VALUE. Can be repeated.")
    ] = None,
    parameter: Annotated[
        list[str] | None,
        Option("-G", "--parameter", help="A parameter of the top module: NAME=VALUE. Can be repeated."),
    ] = None,
    type_: Annotated[
        list[str] | None,
        Option(
            "--type",
            help="A type parameter of the top module: NAME=TYPE, such as T=my_pkg::elem_t. Can be repeated.",
        ),
    ] = None,
    library: Annotated[
        list[str] | None,
        Option("--library", help="A file of a VHDL library other than work: NAME=FILE.VHD. Can be repeated."),
    ] = None,
    top: Annotated[str | None, Option("--top", help="The top module (default: the only one).")] = None,
    instruction: Annotated[
        str | None,
        Option(
            "--instruction",
            help="What the unit computes: hopper:HMMA.16816.F32, or my_unit.yaml (default: a guess).",
        ),
    ] = None,
    out: Annotated[Path | None, Option("--out", help="File to write (default: stdout).")] = None,
) -> None:
    """Reads your RTL and writes a draft of its dut.yaml. Lines to check are marked GUESS."""
    from golden.files.output import write_text
    from rtl_tb.dut.draft_text import GUESS
    from rtl_tb.dut.given import Given
    from rtl_tb.dut.init import draft

    if not sources and not filelist:
        raise typer.BadParameter(
            "missing, expected source files, or a file list with -f", param_hint="FILE.SV"
        )
    parameters, types = _parameters(parameter), _named_values(type_)
    libraries: dict[str, list[Path]] = {}
    for word in library or ():
        name, equals, file = word.partition("=")
        if not (name and equals and Path(file).is_file()):
            raise typer.BadParameter(
                f"'{word}', expected NAME=FILE.VHD, a file that exists", param_hint="--library"
            )
        libraries.setdefault(name, []).append(Path(file))
    given = Given(filelist or (), include or (), _named_values(define), parameters, types, libraries)
    text = draft(sources or [], top, instruction, out.parent if out is not None else None, given)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_text(out, text)
        marked = "check the lines marked GUESS" if GUESS in text else "it has no guesses"
        typer.echo(f"{out}: written; {marked}", err=True)


def _named_values(words: list[str] | None) -> dict[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in words or [])}


def _parameters(words: list[str] | None) -> dict[str, int | str]:
    from rtl_tb.dut.given import parameter_value

    return {name: parameter_value(text) for name, text in _named_values(words).items()}


def qualify(
    names: Annotated[
        list[str] | None,
        Argument(metavar="MUTANT", help="Only these mutants (default: all).", show_default=False),
    ] = None,
    count: Annotated[int, Option("--count", min=1, help="Number of vectors for each mutant.")] = 20_000,
    seed: Seed = 1,
    jobs: Annotated[
        int,
        Option(
            "--jobs", min=1, max=MOST_WORKERS, help="Number of builds, or of proofs, that run in parallel."
        ),
    ] = 2,
    prove: Annotated[
        float,
        Option(
            "--prove",
            min=0,
            help="Seconds to prove that mutants which pass are equivalent to the unit (0: do not).",
        ),
    ] = 0.0,
    report: Annotated[
        list[Path] | None,
        Option("--report", help="Also write the report to this file: .md, .html or .json. Can be repeated."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Plants faults in correct units, which makes mutants, and counts how many the vectors find.

    Exit status: 0 every mutant is found or proved equivalent, 1 one passes, or its fault is not named.
    """
    from golden.explain.terminal import PlainConsole
    from golden.files.output import write_text
    from rtl_tb.qualify import qualification

    for path in report or []:
        if path.suffix[1:] not in qualification.WRITERS:
            raise typer.BadParameter(
                f"'{path}' does not end in one of .{', .'.join(qualification.WRITERS)}", param_hint="--report"
            )
    with progress_bar(not as_json) as progress:
        result = qualification.qualify(names or None, count, seed, jobs, progress, prove=prove)
    for path in report or []:
        write_text(path, qualification.WRITERS[path.suffix[1:]](result))
    if as_json:
        print_json(result.as_dict())
    else:
        qualification.print_matrix(result, PlainConsole())
    if not result.passed:
        raise typer.Exit(1)


def regress(
    file: Annotated[
        Path,
        Argument(
            metavar="REGRESS.YAML",
            help="File of the checks: units, engines, kinds of operands, seeds.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, Option("--out", help="Folder of results, builds and reports.")] = Path("regress"),
    jobs: Annotated[
        int | None,
        Option("--jobs", min=1, max=MOST_WORKERS, help="Number of processes (default: one for each core)."),
    ] = None,
    scheduler: Annotated[
        str | None,
        Option(
            "--scheduler",
            help="Run on the workers of the Dask scheduler at this address, or on a 'local' one.",
        ),
    ] = None,
    again: Annotated[bool, Option("--again", help="Also repeat checks that have a result.")] = False,
    as_json: Json = False,
) -> None:
    """Runs many checks in parallel. A second run repeats only checks without a result.

    Exit status: 0 all passed, 1 one failed, 2 none failed but one gave no verdict.
    """
    from golden.explain.terminal import PlainConsole
    from rtl_tb.regress import report
    from rtl_tb.regress.runner import regress as run_regression
    from rtl_tb.regress.summary import HISTORY, add_to_history, coverages, read_history, summary

    read_history(out / HISTORY)  # refused now, and not after a night
    workers = jobs or len(os.sched_getaffinity(0))
    with progress_bar(not as_json) as progress:
        result = run_regression(file, out, workers, scheduler, again, progress)
        covered = coverages(result)
    data = summary(result, covered)
    report.write_reports(out, data, covered, add_to_history(out, data))
    if as_json:
        print_json(data)
    else:
        report.print_text(data, out, PlainConsole())
    if result.status:
        raise typer.Exit(result.status)


def ucis(
    coverage: Annotated[
        Path,
        Argument(
            metavar="COVERAGE.JSON", help="A .json file that rtl check --coverage wrote.", show_default=False
        ),
    ],
    out: Annotated[Path, Option("--out", help="UCIS file to write (XML).", show_default=False)],
) -> None:
    """Converts functional coverage to UCIS, a format that coverage tools read."""
    from rtl_tb.flows.ucis import export

    count = export(coverage, out)
    typer.echo(f"{out}: coverage of {counted(count, 'instruction')}", err=True)


def uvm(
    file: _DutFile,
    out: Annotated[Path, Option("--out", help="Folder to write.", show_default=False)],
    count: Annotated[int, Option("--count", min=1, help="Number of vectors.")] = 2000,
    seed: Seed = 1,
    prefix: Annotated[
        str | None, Option("--prefix", help="Prefix of all names (default: the unit's name).")
    ] = None,
) -> None:
    """Writes a UVM environment for your unit: sequences, agent, predictor, scoreboard, covergroups."""
    from rtl_tb.dut.description import load_dut
    from rtl_tb.flows.uvm import write

    written = write(load_dut(file), out, count, seed, prefix)
    typer.echo(f"{out}: {len(written)} files; README.md says how to run them", err=True)


def doctor(as_json: Json = False) -> None:
    """Finds the simulators, says how to install missing ones, and checks a small unit on each.

    Exit status: 0 done, 2 a required simulator is missing or fails.
    """
    from golden.explain.terminal import PlainConsole
    from rtl_tb.doctor import doctor as examine
    from rtl_tb.doctor import print_table

    with progress_bar(not as_json) as progress:
        rows = examine(progress)
    if as_json:
        print_json([row.as_dict() for row in rows])
    else:
        print_table(rows, PlainConsole())
    if any(row.required and not row.ok for row in rows):
        raise typer.Exit(2)


def add_commands(app: typer.Typer) -> None:
    """Hangs the commands of rtl_tb into `mmagold`, and dut.yaml into `mmagold dissect`; the entry point that
    pyproject.toml names."""
    rtl = typer.Typer(no_args_is_help=True, help="Checks RTL against an instruction, bit for bit.")
    app.add_typer(rtl, name="rtl")
    rtl.command()(check)
    rtl.command()(prove)
    rtl.command()(init)
    rtl.command()(qualify)
    rtl.command()(regress)
    rtl.command()(ucis)
    rtl.command()(uvm)
    app.command()(doctor)
    OPENERS.append(_black_box)
    FORMATS["uvm"] = lambda requested: uvm(
        Path(requested.name), requested.folder("uvm"), prefix=requested.prefix
    )


def _black_box(text: str) -> Unit | None:
    """The DUT of a dut.yaml, which a black box can be; None of any other text."""
    if not text.endswith((".yaml", ".yml")) or not Path(text).is_file():
        return None
    from golden import yamlfile

    if "dut" not in yamlfile.read(text):
        return None
    from rtl_tb.runs.unit import open_unit

    return open_unit(text)
