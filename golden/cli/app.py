"""The command `mmagold`: list, show, run, explain, compare, export and check what the specs say.

Heavy imports (NumPy, Rich, the model) happen inside the commands,
so that help and shell completion answer at once.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

import typer
from typer import Argument, Option
from typer.core import TyperGroup

from golden import boundary
from golden.cli import completion, plugins
from golden.cli.arguments import Arch, Json, Name, Seed, print_json, read_light
from golden.cli.dissect import dissect
from golden.cli.docs import add_commands as add_docs
from golden.cli.export import export
from golden.cli.gemm import add_commands as add_gemm
from golden.cli.layout import layout
from golden.cli.mufu import mufu
from golden.cli.progress import Bar, Timings, progress_bar
from golden.cli.study import study
from golden.cli.vectors import vectors
from golden.errors import OldWordWarning, OperandError
from golden.workers import MOST_WORKERS

if TYPE_CHECKING:
    from golden.identify.comparing import Comparison
    from golden.model.instruction import Instruction


_UsageError: Any = typer.BadParameter.__base__
"""Of a wrong option, argument or command. Some versions of typer bring a click of their own: import click
would miss it."""


class _Carried(Exception):
    """Carries an exception past typer, which gives some of them (EOFError, EPIPE, Ctrl-C, SystemExit) a
    status of its own."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


@contextmanager
def _carrying() -> Iterator[None]:
    try:
        yield
    except (_UsageError, typer.Exit, _Carried):  # what commands say through typer
        raise
    except typer.Abort:  # Ctrl-C at a question
        raise _Carried(KeyboardInterrupt()) from None
    except BaseException as error:
        raise _Carried(error) from error


def _one_line(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> str:
    return (
        f"mmagold: {message}\n"
        if issubclass(category, OldWordWarning)
        else _format(message, category, *place)
    )


_format = warnings.formatwarning
warnings.formatwarning = _one_line


class _Group(TyperGroup):
    """A command or group of commands inside golden.boundary: only `raise typer.Exit(1)` of a command
    ends with status 1."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Runs the command line and ends the program."""
        boundary.end(lambda: self.status(*args, **extra))

    def status(self, *args: Any, **extra: Any) -> int:
        """Runs the command line; what ends it without a status is raised."""
        try:
            result = super().main(*args, **{**extra, "standalone_mode": False})
        except _UsageError as error:
            return _misused(error)
        except _Carried as carried:
            meant = carried.error
        else:
            return result if type(result) is int else 0
        raise meant  # out here it keeps the exception that it came from

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Reads the options that stand before the command."""
        with _carrying():
            return super().make_context(*args, **extra)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Finds a command; where there is none of the name, says which plug-ins are not there."""
        try:
            return super().resolve_command(ctx, args)
        except _UsageError as error:
            if ctx.parent is None and _absent:
                error.message += f" {_absent}"
            raise

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands, in the order of DOORS."""
        order = [name for names in DOORS.values() for name in names]
        names = super().list_commands(ctx)
        if ctx.parent is not None:
            return names
        return sorted(names, key=lambda name: order.index(name) if name in order else len(order))

    def invoke(self, ctx: Any) -> Any:
        """Runs the chosen command."""
        with _carrying():
            super().invoke(ctx)  # what it returns is no status

    def _main_shell_completion(self, *args: Any, **extra: Any) -> None:
        """Answers a shell that asks for completions; typer ends the program when it did."""
        try:
            with completion.rejoined():
                super()._main_shell_completion(*args, **extra)
        except SystemExit as answered:
            raise boundary.Ended(boundary.ERROR if answered.code else 0) from None


def _misused(error: Any) -> int:
    """Reports a wrong command line in one line; without any argument typer shows the help instead."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
    else:
        command = error.ctx.command_path if error.ctx else "mmagold"
        message = _out_of_range(error) or " ".join(error.format_message().split()).rstrip(".")
        typer.echo(f"mmagold: {message}; see {command} -h", err=True)
    return boundary.ERROR


_LIMITS = {"ge": "at least", "le": "at most", "gt": "more than", "lt": "less than"}
_TYPES = {"int": "an integer", "float": "a number", "bool": "true or false"}


def _out_of_range(error: Any) -> str:
    """What a value of an option is, and what was expected; "" for other errors.

    Recent versions of typer leave the check of a value to Pydantic, whose message does not name the value.
    """
    param, details = getattr(error, "param", None), getattr(error.__cause__, "errors", None)
    if param is None or details is None:
        return ""
    found = details()[0]
    limits = [f"{_LIMITS[key]} {value}" for key, value in found.get("ctx", {}).items() if key in _LIMITS]
    kind = _TYPES.get(str(found["type"]).partition("_")[0])
    if kind is None and not limits:
        return ""
    name = param.opts[0] if param.opts[0].startswith("-") else param.human_readable_name
    return f"{name} is '{found['input']}', expected {limits[0] if limits else kind}"


read_light()
_own = typer.Typer(
    cls=_Group,
    name="mmagold",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A bit-accurate golden model of matrix units, and a checker of RTL.\n\n"
    "NAME is [b]architecture:instruction[/b] (hopper:HMMA.16816.F32), an instruction with --arch, or the "
    "YAML file of your own unit (my_unit.yaml). A code is the bits of a number: 0x3c00 is 1 in f16.\n\n"
    "Exit status of every command: 0 done, or equal; 1 not equal; 2 an error, or no verdict.",
)
spec_app = typer.Typer(cls=_Group, no_args_is_help=True, help="Checks YAML specs.")
_own.add_typer(spec_app, name="spec")
gemm_app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    help="Computes whole matrix products with the bits of a kernel, or finds the order of a kernel's "
    "additions.",
)
_own.add_typer(gemm_app, name="gemm")
docs_app = typer.Typer(
    cls=_Group, no_args_is_help=True, help="Builds the documentation: a site, or one document."
)
_own.add_typer(docs_app, name="docs")


DOORS = {
    "I have RTL": ("rtl", "doctor"),
    "I need vectors and a testbench": ("vectors", "export"),
    "I want the specification as a document": (
        "list",
        "show",
        "layout",
        "formats",
        "algorithms",
        "spec",
        "docs",
    ),
    "I want to know why my numbers differ": (
        "run",
        "explain",
        "compare",
        "gemm",
        "mufu",
        "invariance",
        "dissect",
        "study",
    ),
}
"""What a user comes for, and the commands for it, in the order of the help."""
MORE = "I measure hardware"
"""The door of all other commands."""


def _name_of(info: Any) -> str:
    """The word of a command or group on the command line."""
    return str(info.name or typer.main.get_command_name(info.callback.__name__))


# Arguments and options that several commands have ---------------------------------------------------------


def _version(wanted: bool) -> None:
    if wanted:
        from golden import __version__

        typer.echo(f"mmagold {__version__}")
        raise typer.Exit()


@_own.callback()
def _main(
    version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Holds the options of the command itself."""


# Commands ---------------------------------------------------------------------------------------------------


@_own.command("list")
def list_command(
    text: Annotated[
        list[str] | None,
        Argument(
            metavar="WORD",
            help="Part of a name (PTX, SASS or AMD), a type (nvfp4, fp8) or a card (h100). Several words "
            "must all match.",
            show_default=False,
        ),
    ] = None,
    arch: Annotated[
        str | None,
        Option(
            "--arch",
            help="Only instructions of this architecture or card (hopper, h100).",
            autocompletion=completion.architecture,
        ),
    ] = None,
    type_: Annotated[
        str | None,
        Option(
            "--type",
            help="Only instructions with an operand of this type (f16, e4m3, fp8, nvfp4, ...).",
            autocompletion=completion.number_format,
        ),
    ] = None,
    shape: Annotated[
        str | None, Option("--shape", help="Only instructions of this shape (m16n8k16 or 16x8x16).")
    ] = None,
    evidence: Annotated[
        str | None,
        Option("--evidence", help="Only instructions with this evidence: captured, published or derived."),
    ] = None,
    every: Annotated[
        bool, Option("--all", help="Print one row for each N, instead of one row for a range of N.")
    ] = False,
    unknown: Annotated[
        bool,
        Option(
            "--unknown",
            help="List the instructions whose arithmetic is not public. Of the filters, only WORD and --arch "
            "can be combined with it.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Lists the instructions that match every filter, or without filters the architectures."""
    from golden.catalog.resolver import resolver
    from golden.cli import lists

    words = " ".join(text or ())
    if unknown:
        if any((type_, shape, evidence, every)):
            raise OperandError("option --unknown can be combined only with WORD, --arch and --json")
        untold = lists.select_unknown(words, arch)
        if as_json:
            print_json(untold)
        elif untold:
            lists.print_unknown(untold)
        else:
            lists.print_none()
        return
    if not any((words, arch, type_, shape, evidence, every, as_json)):
        lists.print_overview()
        return
    found = lists.select(words, arch, type_, shape, evidence)
    if as_json:
        print_json([lists.row_dict(ins) for ins in found])
    elif found:
        lists.print_instructions(found, every)
        lists.print_remarks(words)
    else:
        lists.print_none(resolver().search_hint(words, arch))


@_own.command()
def show(name: Name, arch: Arch = None, as_json: Json = False) -> None:
    """Shows one instruction: formats, steps, the width of every register, evidence."""
    from golden.catalog.lookup import resolve
    from golden.cli import render
    from golden.explain import specification

    ins = resolve(name, arch)
    if as_json:
        print_json(specification.specification(ins))
    else:
        render.print_specification(ins)


@_own.command()
def explain(
    name: Name,
    a: Annotated[
        str,
        Option(
            "--a",
            help="Elements of a, as numbers (1.5,-0,inf,2**-24,1/3) or codes (0x3c00); the rest are zeros.",
        ),
    ] = "",
    b: Annotated[str | None, Option("--b", help="Elements of b, as in --a (default: zeros).")] = None,
    c: Annotated[
        str | None,
        Option(
            "--c",
            help="c, one number or code (default: 0). Of a unit that keeps its accumulator: what the "
            "accumulator holds.",
        ),
    ] = None,
    scale_a: Annotated[str | None, Option("--scale-a", help="Block scales of a (default: ones).")] = None,
    scale_b: Annotated[str | None, Option("--scale-b", help="Block scales of b (default: ones).")] = None,
    metadata: Annotated[
        str | None, Option("--metadata", help="Metadata of a sparse a, in groups of 4 bits: 0x4,0xe.")
    ] = None,
    mode: Annotated[str | None, Option("--mode", help="Mode of a unit with modes, such as 0x3.")] = None,
    arch: Arch = None,
    as_json: Json = False,
) -> None:
    """Explains one dot product step by step: products, shifts, lost bits, sum, rounding.

    The last lines give the exact value and the error in ULP.
    """
    from golden.catalog.lookup import resolve
    from golden.explain.terminal import print_trace
    from golden.vectors import operand_files

    ins = resolve(name, arch).stateless
    given = {"a": a, "b": b, "c": c, "scale_a": scale_a, "scale_b": scale_b, "metadata": metadata}
    given["mode"] = mode
    trace = ins.trace(**operand_files.from_text(ins, given))
    if as_json:
        print_json(trace.as_dict())
    else:
        print_trace(trace)


@_own.command()
def run(
    name: Name,
    a: Annotated[Path | None, Option("--a", help="File of a: .npy, or codes as hex text.")] = None,
    b: Annotated[Path | None, Option("--b", help="File of b.")] = None,
    c: Annotated[Path | None, Option("--c", help="File of c (default: zeros).")] = None,
    scale_a: Annotated[Path | None, Option("--scale-a", help="File of the block scales of a.")] = None,
    scale_b: Annotated[Path | None, Option("--scale-b", help="File of the block scales of b.")] = None,
    metadata: Annotated[Path | None, Option("--metadata", help="File of the metadata of a sparse a.")] = None,
    mode: Annotated[
        Path | None,
        Option("--mode", help="File of the modes of a unit with modes, one for each dot product."),
    ] = None,
    clear: Annotated[
        Path | None,
        Option(
            "--clear",
            help="Of a unit that keeps its accumulator: file of bits; 1 starts the sum at zero.",
        ),
    ] = None,
    load: Annotated[
        Path | None,
        Option(
            "--load",
            help="Of a unit that keeps its accumulator: file of bits; 1 starts the sum at the c of --c.",
        ),
    ] = None,
    archive: Annotated[
        Path | None, Option("--in", help="One .npz file of all operands, with the keys a, b, c, ...")
    ] = None,
    out: Annotated[
        Path | None,
        Option(
            "--out", help="File of the result: .npy, .npz (keys d, flags) or .hex (default: hex on stdout)."
        ),
    ] = None,
    dot: Annotated[
        bool,
        Option(
            "--dot",
            help="The files hold single dot products of the shapes a, b (..., k) and c (...), not matrices.",
        ),
    ] = False,
    values: Annotated[
        bool, Option("--values", help="The files hold numbers, not codes. They are rounded to the formats.")
    ] = False,
    modifiers: Annotated[
        str | None,
        Option("--modifiers", help='Modifiers of an AMD instruction, such as "neg_lo:[1,0,0] clamp".'),
    ] = None,
    arch: Arch = None,
) -> None:
    """Computes the results of operands from files: codes in, codes out."""
    from golden.catalog.lookup import resolve
    from golden.catalog.source_modifiers import modified
    from golden.vectors import operand_files

    ins = resolve(name, arch)
    unit = None if modifiers is None else modified(ins, modifiers)
    ins = ins if unit is None else unit.instruction
    if out is not None:
        operand_files.check_output(out)
    given = operand_files.read_npz(archive, ins, dot, values) if archive is not None else {}
    files = {"a": a, "b": b, "c": c, "metadata": metadata, "scale_a": scale_a, "scale_b": scale_b}
    files |= {"mode": mode, "clear": clear, "load": load}
    given |= {
        key: operand_files.read_operand(path, ins, key, dot, values)
        for key, path in files.items()
        if path is not None
    }
    given = given if unit is None else unit.read(given, matrices=not dot)
    results = operand_files.compute(ins, given, dot)
    result, whole = results["d"], len(results) == 1
    title = f"{ins.architecture} {ins.name}"
    if out is None:
        typer.echo(operand_files.hex_text(result, ins.formats["d"], title), nl=False)
    else:
        whole = operand_files.write_result(out, results, ins.formats["d"], title)
    if not whole:
        typer.echo("only d is written; --out RESULTS.npz also has the status flags (key flags)", err=True)
    if out is not None:
        typer.echo(f"{out}: {' x '.join(map(str, result.shape))} {ins.formats['d'].name} codes", err=True)


@_own.command()
def compare(
    first: Annotated[
        str,
        Argument(
            metavar="NAME", help="The first instruction or unit.", autocompletion=completion.instruction
        ),
    ],
    second: Annotated[
        str,
        Argument(
            metavar="NAME2", help="The second instruction or unit.", autocompletion=completion.instruction
        ),
    ],
    budget: Annotated[int, Option("--budget", min=1, help="Number of dot products to try.")] = 100_000,
    seed: Seed = 0,
    traces: Annotated[
        bool, Option("--trace", help="Also explain both results of the example step by step.")
    ] = False,
    prove: Annotated[
        bool,
        Option(
            "--prove",
            help="If no difference is found, try to prove that there is none.",
        ),
    ] = False,
    seconds: Annotated[
        float | None,
        Option(
            "--seconds",
            min=1,
            help="With --prove: seconds for the search of the proof, and as many for its check "
            "(default: 120).",
        ),
    ] = None,
    timings: Timings = False,
    jobs: Annotated[
        int | None,
        Option(
            "--jobs",
            min=1,
            max=MOST_WORKERS,
            help="With --prove: number of processes (default: 1).",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Searches for operands on which two instructions or units differ, and shows the shortest example.

    Exit status: 0 done, whether they differ or not. With --prove: 0 proved equal, 1 different, 2 not decided.
    """
    from golden.catalog.lookup import resolve
    from golden.cli import compared

    for name, given in (("seconds", seconds), ("jobs", jobs)):
        if given is not None and not prove:
            raise typer.BadParameter("can be used only with --prove", param_hint=f"--{name}")
    proof = (seconds or 120.0, jobs or 1) if prove else None
    with progress_bar() as progress:
        result = _search(resolve(first), resolve(second), seed, budget, proof, progress)
    if as_json:
        print_json(progress.with_timings(result.as_dict(), timings))
    else:
        compared.print_comparison(result, traces)
        progress.print_timings(timings)
    if result.proof is not None and (status := result.proof.outcome.status):
        raise typer.Exit(status)


def _search(
    x: Instruction, y: Instruction, seed: int, budget: int, proof: tuple[float, int] | None, progress: Bar
) -> Comparison[Instruction]:
    """The search, and a proof if there are seconds and processes for one."""
    from golden.identify import comparing

    def report(text: str) -> None:
        progress(text, 0, 0)

    bar = partial(progress, "searching")
    if proof is None:
        return comparing.compare(x, y, seed, budget, bar, report)
    seconds, jobs = proof
    return comparing.compare_and_prove(x, y, seconds, seed, budget, bar, report, jobs)


@_own.command()
def algorithms(as_json: Json = False) -> None:
    """Lists the algorithms of which instructions are made."""
    from golden.cli import lists

    if as_json:
        print_json(lists.algorithm_dicts())
    else:
        lists.print_algorithms()


@_own.command("formats")
def formats_command(as_json: Json = False) -> None:
    """Lists the number formats."""
    from golden.cli import lists

    if as_json:
        print_json(lists.format_dicts())
    else:
        lists.print_formats()


@spec_app.command("check")
def spec_check(
    file: Annotated[
        Path,
        Argument(
            metavar="FILE",
            help="The YAML file of your unit, or a file of the spec folder.",
            show_default=False,
        ),
    ],
    as_json: Json = False,
) -> None:
    """Checks a YAML spec. An error gives the file, the line, the key and what was expected.

    Exit status: 0 valid, 2 invalid.
    """
    from golden.cli import lists

    report = lists.check_spec(file)
    if as_json:
        print_json(report)
    else:
        typer.echo(f"{file}: ok: {report['summary']}")


_own.command("vectors")(vectors)
_own.command("export")(export)
_own.command("study")(study)
_own.command("dissect")(dissect)
_own.command("layout")(layout)
_own.command("mufu")(mufu)
add_docs(docs_app)
add_gemm(gemm_app)


_ALONE = ("list", "show", "layout", "formats", "algorithms", "spec", "run", "explain", "mufu", "--version")
"""Commands to which no other package adds anything; importing the packages takes as long as such a command.
Other commands may ask for kinds of black boxes, chips or forms of export that plug-ins bring."""
_absent = ""
"""Sentences about plug-ins that are not there."""


@cache
def whole() -> typer.Typer:
    """The command together with the commands of other packages, ordered by doors."""
    global _absent
    _absent = plugins.add_commands(_own)
    info: Any
    for info in (*_own.registered_commands, *_own.registered_groups):
        info.rich_help_panel = next((door for door, names in DOORS.items() if _name_of(info) in names), MORE)
    _own.info.epilog = _absent.replace("[", r"\[")
    return _own


def __getattr__(name: str) -> Any:
    """`app`, the whole command, for who imports it."""
    if name == "app":
        return whole()
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def _named(words: list[str]) -> typer.Typer:
    """The app with the one command that the first word names, or with all: typer takes a quarter of a start
    to read the parameters of every command. A shell that completes has handed over the words."""
    first = completion.command() if "_MMAGOLD_COMPLETE" in os.environ else "".join(words[1:2])
    everything = _own if first in _ALONE else whole()
    commands = [one for one in everything.registered_commands if first == _name_of(one)]
    groups = [one for one in everything.registered_groups if first == _name_of(one)]
    if not commands and not groups and first != "--version":
        return everything
    chosen = copy(everything)
    chosen.registered_commands, chosen.registered_groups = commands, groups
    return chosen


def main() -> NoReturn:
    """Entry point of the console command (see mmagold/__init__.py); ends the program."""
    boundary.end(lambda: cast(_Group, typer.main.get_command(_named(sys.argv))).status(prog_name="mmagold"))


if __name__ == "__main__":
    main()
