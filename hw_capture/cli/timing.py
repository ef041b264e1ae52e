"""The commands `mmagold bench-gpu` and `mmagold timing show`, `compare` and `plot`."""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from golden.cli.arguments import Json, print_json
from golden.cli.progress import progress_bar
from hw_capture.cli.arguments import Gpu, GpuArch, OnlyText
from hw_capture.cli.timing_run import Run, bench_board

if TYPE_CHECKING:
    from golden.catalog.timing import Difference, Figure, Key
    from hw_capture.cli.timing_groups import Measured
    from hw_capture.timing.compare import Pair

timing_app = typer.Typer(
    no_args_is_help=True, help="Shows and compares cycle counts: published tables and our measurements."
)
OURS = "hopper_h200"
_Tolerance = Annotated[
    float,
    Option("--tolerance", min=0, help="Largest difference, in percent, of figures that count as equal."),
]


def _simulators() -> list[str]:
    from golden.catalog.simulators import simulators

    return list(simulators())


def _tables() -> list[str]:
    from golden.catalog.timing import names

    return names()


def add_commands(app: typer.Typer) -> None:
    """Hangs the commands into `mmagold`."""
    app.command("bench-gpu")(bench_gpu)
    app.command("bench-board")(bench_board)
    app.add_typer(timing_app, name="timing")


class Group(StrEnum):
    """What `bench-gpu` measures."""

    MATRIX = "matrix"
    WMMA = "wmma"
    SCALAR = "scalar"
    MEMORY = "memory"
    SUN = "sun"
    ABDELKHALIK = "abdelkhalik"


def bench_gpu(
    out: Annotated[
        Path | None, Option("--out", help="YAML file to write, such as spec/timing/hopper_h200.yaml.")
    ] = None,
    csv: Annotated[Path | None, Option("--csv", help="CSV file to write, with every point.")] = None,
    group: Annotated[Group, Option("--group", help="What to measure.")] = Group.MATRIX,
    arch: GpuArch = "hopper",
    only: OnlyText = "",
    runs: Annotated[
        int,
        Option("--runs", min=1, max=200, help="Number of runs of each point. The result is their median."),
    ] = 5,
    gpu: Gpu = 0,
    compile_only: Annotated[
        bool,
        Option("--compile-only", help="Only compile the loops and check their machine code. Needs no GPU."),
    ] = False,
) -> None:
    """Measures latency and throughput on the GPU in this machine.

    The groups matrix, wmma, scalar and memory are our measurements. The groups sun and abdelkhalik repeat the
    experiments of two papers.

    Exit status: 0 done, 2 an error, or something was not measured, such as a loop without its instruction.
    """
    from hw_capture.cli.app import check_writable

    target = nvcc_target(arch)
    chosen = wanted(group, arch, only)
    check_writable(out, csv)
    if not compile_only and out is None and csv is None:
        raise typer.BadParameter("missing, expected a file in --out or --csv", param_hint="--out")
    with progress_bar() as progress:
        if compile_only:
            chosen.compile_only(target, progress)
        else:
            chosen.record(Run(arch, gpu, runs, out, csv), progress)


def wanted(group: Group, arch: str, only: str) -> Measured[Any]:
    """The measurements of a group; raises OperandError where none has `only` in its name."""
    from hw_capture.cli.timing_groups import Experiments, Matrix, Memory, Scalar
    from hw_capture.timing.subjects import matrix_subjects, sun_subjects, wmma_subjects

    match group:
        case Group.MATRIX:
            return Matrix(matrix_subjects(arch), arch, only)
        case Group.WMMA:
            return Matrix(wmma_subjects(arch), arch, only)
        case Group.SCALAR:
            return Scalar(only)
        case Group.MEMORY:
            return Memory(only)
        case Group.SUN:
            return Matrix(sun_subjects(arch), arch, only)
        case Group.ABDELKHALIK:
            return Experiments(only)


def nvcc_target(arch: str) -> str:
    """What is compiled for an architecture; raises typer.BadParameter where nvcc compiles nothing for it."""
    from hw_capture.kernels import build

    if not build.nvcc_compiles(arch):
        raise typer.BadParameter(
            f"'{arch}', expected an architecture that nvcc compiles for", param_hint="--arch"
        )
    return build.first_target(arch)


@timing_app.command()
def show(
    name: Annotated[
        str,
        Argument(
            metavar="NAME", help="A file of spec/timing without suffix, or a path.", autocompletion=_tables
        ),
    ],
    only: OnlyText = "",
    as_json: Json = False,
    as_csv: Annotated[bool, Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Prints the figures of one file of timings."""

    if as_json and as_csv:
        raise typer.BadParameter("--json and --csv were both given, expected at most one")

    from golden.catalog.timing import load
    from golden.errors import no_match
    from golden.explain.terminal import PlainConsole, table
    from golden.files import escape

    every = load(name)
    figures = [figure for figure in every if only in figure.instruction]
    if not figures:
        raise no_match(f"instruction of {name}", only, (figure.instruction for figure in every))
    rows_ = [{**vars(f.key), "low": f.low, "high": f.high, "unit": f.unit, "table": f.table} for f in figures]
    if as_json:
        print_json(rows_)
        return
    if as_csv:
        typer.echo(escape.csv_text(list(rows_[0]), [list(row.values()) for row in rows_]), nl=False)
        return
    rows = table("table", "instruction", "variant", "quantity", "warps>", "ILP>", "value>", "unit")
    for f in figures:
        value = f.text or _number(f)
        places = ("" if n is None else str(n) for n in (f.warps, f.ilp))
        rows.add_row(
            f.table, f.instruction, _place(f.key), f.quantity.replace("_", " "), *places, value, f.unit
        )
    PlainConsole().print(rows)
    typer.echo(f"{figures[0].device}. {figures[0].source}")


@timing_app.command()
def compare(
    ours: Annotated[str, Option("--ours", help="File of our measurements.", autocompletion=_tables)] = OURS,
    theirs: Annotated[
        list[str] | None,
        Option(
            "--with",
            help="File of published figures (default: all of the same architecture). Can be repeated.",
            autocompletion=_tables,
        ),
    ] = None,
    tolerance: _Tolerance = 3.0,
    as_json: Json = False,
) -> None:
    """Compares our measurements with published ones.

    If we repeated a paper's experiment, the table also has our figure by the paper's method ("as printed").
    """
    from golden.catalog import timing as tables

    mine, whole = _ours(ours)
    others = theirs or [
        name
        for name in tables.names()
        if not tables.measured(name) and _same_architecture(name, mine[0].architecture)
    ]
    published = [(_with_experiments(ours, name, mine), tables.load(name)) for name in others]
    found = _pairs(published)
    known = {tables.load(name)[0].source: tables.differences(name) for name in others}
    reasons = [
        "" if pair.within(tolerance / 100) else pair.reason(known[pair.theirs.source]) for pair in found
    ]
    if as_json:
        rows = [
            {
                **vars(p.theirs.key),
                "ours": p.ours.value,
                "theirs": p.theirs.value,
                "as_printed": None if p.printed is None else p.printed.value,
                "range": None if p.theirs.value else [p.theirs.low, p.theirs.high],
                "device": p.theirs.device,
                "reason": reason,
            }
            for p, reason in zip(found, reasons, strict=True)
        ]
        print_json(rows)
        return
    _print_pairs(found, reasons, tolerance)
    if whole:
        _print_without(published, known)
    _print_count(found, tolerance)


def _ours(name: str) -> tuple[list[Figure], bool]:
    """The figures of our file, and where it is a board's name those of all files of the board, and whether
    it is one."""
    from golden.catalog import timing as tables

    known = tables.names()
    files = [file for part in tables.PARTS if (file := tables.of_board(name, part)) in known]
    return [figure for file in files or [name] for figure in tables.load(file)], bool(files[1:])


def _with_experiments(board: str, theirs: str, mine: list[Figure]) -> list[Figure]:
    """Our figures, and those by the experiments of a published file's authors where the board has them."""
    from golden.catalog import timing as tables

    parts = (part for part in tables.EXPERIMENTS if theirs.startswith(f"{part}_"))
    files = [file for part in parts if (file := tables.of_board(board, part)) in tables.names()]
    return [*mine, *(figure for file in files for figure in tables.load(file))]


def _pairs(published: list[tuple[list[Figure], list[Figure]]]) -> list[Pair]:
    """The figures in common with each published file; raises OperandError where there are none at all."""
    from golden.errors import OperandError
    from hw_capture.timing.compare import pairs

    found: list[Pair] = []
    for mine, theirs in published:
        with suppress(OperandError):
            found += pairs(mine, theirs)
    return found or pairs(*published[0])


def _same_architecture(name: str, architecture: str) -> bool:
    from golden.catalog import timing as tables

    return tables.load(name)[0].architecture == architecture


def _print_pairs(found: list[Pair], reasons: list[str], tolerance: float) -> None:

    from golden.explain.terminal import PlainConsole, table

    repeated = any(pair.printed is not None for pair in found)
    columns = ["instruction", "", "quantity", "warps, ILP", "ours>", "theirs>", "ratio>"]
    columns += ["as printed>", "ratio>"] * repeated + ["why", "their device"]
    rows, notes = table(*columns), list(dict.fromkeys(reason for reason in reasons if reason))
    for pair, reason in zip(found, reasons, strict=True):
        key, alone = pair.theirs.key, pair.ours is pair.printed
        place = "" if key.warps is None else f"{key.warps}, {key.ilp}"
        values = ["" if alone else f"{pair.ours.value:g}", _number(pair.theirs)]
        values.append("" if alone else _ratio(pair.ratio, tolerance))
        if repeated:
            values.append("" if pair.printed is None else f"{pair.printed.value:g}")
            values.append("" if pair.printed_ratio is None else _ratio(pair.printed_ratio, tolerance))
        more = [*values, _letter(notes, reason), pair.theirs.device]
        rows.add_row(key.instruction, key.variant, key.quantity.replace("_", " "), place, *more)
    PlainConsole().print(rows)
    for note in notes:
        typer.echo(f"{_letter(notes, note)}: {note}")


def _ratio(ratio: float, tolerance: float) -> str:
    return f"[{'green' if abs(ratio - 1) <= tolerance / 100 else 'red'}]{ratio:.3f}[/]"


def _print_without(
    published: list[tuple[list[Figure], list[Figure]]], known: dict[str, list[Difference]]
) -> None:
    """Prints what only they have, by the reason."""
    from hw_capture.timing.compare import reason, without

    names: dict[str, list[str]] = {}
    missing = ((mine[0], *one) for mine, theirs in published for one in without(mine, theirs))
    for first, figure, said in missing:
        why = said or reason(known[figure.source], figure.key, first) or "not measured"
        place = f" ({figure.warps}, {figure.ilp})" if figure.warps is not None else ""
        names.setdefault(why, []).append(f"{figure.instruction}{place}")
    for why, instructions in names.items():
        typer.echo(f"no figure of ours: {', '.join(dict.fromkeys(instructions))}: {why}")


def _print_count(found: list[Pair], tolerance: float) -> None:
    own = [pair for pair in found if pair.ours is not pair.printed]
    same = sum(pair.within(tolerance / 100) for pair in own)
    device = found[0].ours.device
    if own:
        typer.echo(f"{same} of {len(own)} figures within {tolerance:g} % ({device})")
    ratios = [pair.printed_ratio for pair in found if pair.printed_ratio is not None]
    if ratios:
        same = sum(abs(ratio - 1) <= tolerance / 100 for ratio in ratios)
        typer.echo(f"{same} of {len(ratios)} within {tolerance:g} % by the experiment as printed ({device})")


def _number(figure: Figure) -> str:
    """The number, or the range."""
    return f"{figure.low:g}" if figure.low == figure.high else f"{figure.low:g} to {figure.high:g}"


def _place(key: Key) -> str:
    """The variant, and the size of the data where it has one."""
    return ", ".join([key.variant] * bool(key.variant) + ([f"{key.size} B"] if key.size is not None else []))


def _letter(notes: list[str], reason: str) -> str:
    """What stands in the table for a reason, which stands below it."""
    return chr(ord("a") + notes.index(reason)) if reason else ""


@timing_app.command()
def rerun(
    first: Annotated[
        str,
        Argument(
            help="A file of spec/timing without suffix, or a path.", autocompletion=_tables, metavar="FIRST"
        ),
    ],
    second: Annotated[str, Argument(help="Another recording of the same figures.", metavar="SECOND")],
    tolerance: _Tolerance = 1.0,
    as_json: Json = False,
) -> None:
    """Compares two recordings of the same figures, and shows how many are equal."""
    from golden.catalog.timing import load
    from golden.explain.terminal import PlainConsole, table
    from hw_capture.timing.compare import compare as compared

    found = compared(load(first), load(second), tolerance / 100)
    if as_json:
        rows_ = [
            {
                "kind": g.kind,
                "figures": g.figures,
                "within": g.within,
                "worst": g.worst,
                **vars(g.first.key),
                "first": g.first.value,
                "second": g.second.value,
            }
            for g in found
        ]
        print_json(rows_)
        return
    rows = table("kind", "figures>", "within>", "worst>", "first>", "second>", "of")
    for g in found:
        key = g.first.key
        place = "" if key.warps is None else f"{key.warps} warps, ILP {key.ilp}"
        name = ", ".join(part for part in (key.instruction, _place(key), place) if part)
        numbers = (
            f"{g.figures}",
            f"{g.within}",
            f"{g.worst:.4f}",
            f"{g.first.value:g}",
            f"{g.second.value:g}",
        )
        rows.add_row(g.kind, *numbers, name)
    PlainConsole().print(rows)
    figures, within = (sum(getattr(g, name) for g in found) for name in ("figures", "within"))
    typer.echo(f"{within} of {figures} figures within {tolerance:g} %")


@timing_app.command()
def plot(
    out: Annotated[Path, Option("--out", help="Folder to write the pictures to.")],
    ours: Annotated[str, Option("--ours", help="File of timings.", autocompletion=_tables)] = OURS,
    only: Annotated[
        str | None,
        Option("--only", metavar="NAME", help="Only this instruction (default: the five in the paper)."),
    ] = None,
    form: Annotated[str, Option("--format", help="Format of the pictures: svg or png.")] = "svg",
) -> None:
    """Draws throughput and latency over warps and ILP, like Figures 6, 7, 10, 11 and 15 of Sun et al."""
    from golden.studies import timing_plots as plots

    if form not in ("svg", "png"):
        raise typer.BadParameter(f"'{form}', expected svg or png", param_hint="--format")
    for path in plots.draw(ours, out, [only] if only else None, form):
        typer.echo(str(path))


@timing_app.command()
def export(
    simulator: Annotated[
        str, Argument(metavar="SIMULATOR", help="accel-sim or gpgpu-sim.", autocompletion=_simulators)
    ],
    sources: Annotated[
        list[str] | None,
        Option(
            "--from",
            help="File of spec/timing without suffix, or a path (default: our H200). Can be repeated, for "
            "files of one device.",
            autocompletion=_tables,
        ),
    ] = None,
    out: Annotated[Path | None, Option("--out", help="File to write (default: stdout).")] = None,
) -> None:
    """Writes latencies and initiation intervals of opcode classes as options of a cycle-level simulator.

    It leaves out what was not measured, and says so in a comment.
    """
    from golden.catalog.simulators import fragment, get_simulator
    from golden.catalog.timing import load, names
    from golden.errors import UnknownNameError
    from golden.files.output import write_text

    get_simulator(simulator)
    chosen = sources or [name for name in names() if name == OURS or name.startswith(f"{OURS}_")]
    figures = [figure for name in chosen for figure in load(name)]
    devices = list(dict.fromkeys(figure.device for figure in figures))
    if len(devices) > 1:
        raise typer.BadParameter(
            f"{' and '.join(devices)}, expected the figures of one device", param_hint="--from"
        )
    made = fragment(simulator, figures)
    if not made.written:
        raise UnknownNameError(
            f"no option of {simulator} has a figure in {', '.join(chosen)}: {made.missing[0]}"
        )
    if out is None:
        typer.echo(made.text, nl=False)
    else:
        write_text(out, made.text)
    for line in made.missing:
        typer.echo(f"left out: {line}", err=True)
