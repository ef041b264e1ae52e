"""The commands `mmagold gemm run`, `gemm plan` and `gemm plans`."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from golden.cli.arguments import Json, print_json
from golden.cli.progress import Timings, progress_bar
from golden.errors import counted

if TYPE_CHECKING:
    from golden.kernels.plan import Plan
    from golden.kernels.sampling import SearchResult

_A = Annotated[Path, Option("--a", help="A (M, K), .npy: codes, or NumPy floats.")]
_B = Annotated[Path, Option("--b", help="B (K, N), .npy.")]
_C = Annotated[Path | None, Option("--c", help="C (M, N), .npy, in D's format (default: zeros).")]
_Metadata = Annotated[
    Path | None, Option("--metadata", help="Metadata of a sparse A, groups of 4 bits (M, K/chunk), .npy.")
]
_ScaleA = Annotated[
    Path | None, Option("--scale-a", help="Scales of A, .npy: f32, or codes of block scales.")
]
_ScaleB = Annotated[Path | None, Option("--scale-b", help="Scales of B, .npy.")]
_Bias = Annotated[
    Path | None, Option("--bias", help="Bias (M,) or (N,), .npy, in D's format (default: none).")
]


def run(
    plan: Annotated[
        str,
        Option(
            "--plan",
            help="How to add: architecture:plan (see gemm plans), architecture:instruction, or the .yaml "
            "file of a plan or unit.",
        ),
    ],
    a: _A,
    b: _B,
    c: _C = None,
    metadata: _Metadata = None,
    scale_a: _ScaleA = None,
    scale_b: _ScaleB = None,
    bias: _Bias = None,
    out: Annotated[Path | None, Option("--out", help="Write D to this .npy file.")] = None,
    against: Annotated[
        Path | None,
        Option("--against", help="Compare the result with this D, .npy. Exit status 1 if a bit differs."),
    ] = None,
) -> None:
    """Computes a whole matrix product in the order of a plan, bit for bit.

    Exit status: 0 done, 1 the result differs from --against.
    """
    from golden.files import output
    from golden.files.npyfile import read_array
    from golden.kernels.plan_files import any_plan
    from golden.kernels.product import gemm

    if out is None and against is None:
        raise typer.BadParameter("neither --out nor --against was given, expected one of them")
    if out is not None:
        output.check(out)
    chosen = any_plan(plan)
    files = {"C": c, "metadata": metadata, "scale_a": scale_a, "scale_b": scale_b, "bias": bias}
    given = {name: read_array(path) for name, path in files.items() if path is not None}
    wanted = None if against is None else read_array(against)
    with progress_bar() as progress:
        d = gemm(read_array(a), read_array(b), chosen, progress=partial(progress, "computing"), **given)
    fmt = chosen.formats["d"]
    if out is not None:
        _write(out, d if fmt.name != "bf16" else d.view(fmt.dtype))
        typer.echo(f"{out}: {' x '.join(map(str, d.shape))} {fmt.name}", err=True)
    if wanted is not None:
        _compare(d, wanted, fmt.name, str(against))


def _write(path: Path, array: Any) -> None:
    import numpy as np

    from golden.files.output import write_whole

    write_whole(path, lambda stream: np.save(stream, array))


def _compare(d: Any, wanted: Any, fmt: str, name: str) -> None:
    """Says how many elements differ; ends with status 1 where some do."""
    import numpy as np

    from golden.errors import FileFormatError
    from golden.number.formats import get_format, native_dtype

    code = get_format(fmt).dtype
    if wanted.dtype not in (code, native_dtype(get_format(fmt))) or wanted.shape != d.shape:
        raise FileFormatError(
            f"{name}: {wanted.shape} of {wanted.dtype}, expected {d.shape} of {code} (raw {fmt} bits)"
        )
    different = np.argwhere(d.view(code) != wanted.view(code))
    typer.echo(f"{len(different)} of {d.size} elements differ")
    if len(different):
        first = tuple(different[0].tolist())
        ours, theirs = (int(x.view(code)[first]) for x in (d, wanted))
        typer.echo(f"the first at {list(first)}: the plan gives {ours:#x}, {name} has {theirs:#x}")
        raise typer.Exit(1)


def plan(
    a: Annotated[Path | None, Option("--a", help="A (M, K), .npy: codes, or NumPy floats.")] = None,
    b: Annotated[Path | None, Option("--b", help="B (K, N), .npy.")] = None,
    d: Annotated[Path | None, Option("--d", help="D (M, N), .npy: the result of the kernel.")] = None,
    metadata: _Metadata = None,
    scale_a: _ScaleA = None,
    scale_b: _ScaleB = None,
    c: _C = None,
    bias: _Bias = None,
    alpha: Annotated[
        str, Option("--alpha", help="Factor of the product, a number such as 0.5 or 1/3.")
    ] = "1",
    beta: Annotated[str, Option("--beta", help="Factor of C, a number.")] = "1",
    ask: Annotated[
        str | None,
        Option(
            "--ask",
            help="A kernel to run, instead of the files: python:file.py:function. It takes the codes of A "
            "and B and returns the codes of D.",
        ),
    ] = None,
    shape: Annotated[
        str, Option("--shape", help="With --ask: shape MxNxK of the products that the kernel computes.")
    ] = "",
    arch: Annotated[str, Option("--arch", help="Architecture whose instructions are tried; required.")] = "",
    formats: Annotated[
        str, Option("--formats", help="Formats of files that hold codes, such as a=e4m3,b=e4m3,d=bf16.")
    ] = "",
    out: Annotated[Path | None, Option("--out", help="Write the plan to this .yaml file.")] = None,
    timings: Timings = False,
    as_json: Json = False,
) -> None:
    """Finds the plan, the order of additions, with which a kernel computed D = A @ B.

    Exit status: 0 found, 1 no known plan gives these bits.
    """
    from golden.catalog.resolver import resolver
    from golden.files import output
    from golden.files.function import named_function
    from golden.files.npyfile import read_array
    from golden.kernels import finding
    from golden.kernels.masks import parse_shape
    from golden.kernels.plan_files import plan_text

    if out is not None:
        output.check(out)
    if not arch:
        raise typer.BadParameter("missing, expected an architecture", param_hint="--arch")
    files = {"--a": a, "--b": b, "--d": d}
    if any(path is None for path in files.values()) if ask is None else any(files.values()):
        raise typer.BadParameter("expected all of --a, --b and --d, or --ask alone", param_hint="--d")
    if (ask is None) != (not shape):
        raise typer.BadParameter("--ask and --shape can only be given together", param_hint="--shape")
    known, arch = _formats(formats), resolver().called(arch)
    paths = {"metadata": metadata, "scale_a": scale_a, "scale_b": scale_b, "C": c, "bias": bias}
    given = {name: read_array(path) for name, path in paths.items() if path is not None}
    factors = _factor(alpha, "--alpha"), _factor(beta, "--beta")
    if (given or factors != (1, 1)) and ask is not None:
        raise typer.BadParameter(
            "the kernel takes only A and B, expected no other operands and no --alpha or --beta",
            param_hint="--ask",
        )
    with progress_bar() as progress:
        if ask is None:
            assert a is not None and b is not None and d is not None
            product = read_array(a), read_array(b), read_array(d)
            found = finding.search(*product, arch, known, progress, given, *factors)
        else:
            kernel = named_function(ask.removeprefix("python:"))
            found = finding.ask(kernel, parse_shape(shape), arch, known, progress)
    if as_json:
        print_json(progress.with_timings(_as_dict(found), timings))
    else:
        _print_plans(found)
        progress.print_timings(timings)
    if found.plan is None:
        raise typer.Exit(1)
    if out is not None:
        output.write_text(out, plan_text(found.plan))
        typer.echo(f"{out}: {found.plan!r}", err=True)


def _factor(text: str, option: str) -> float:
    """A finite number, also as a fraction."""
    try:
        return float(Fraction(text))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise typer.BadParameter(
            f"'{text}' is not a number, expected one such as 0.5 or 1/3", param_hint=option
        ) from None


def _formats(text: str) -> dict[str, str]:
    pairs = [word.partition("=") for word in text.split(",") if word]
    wrong = next((word for word, equals, _ in pairs if not equals), None)
    if wrong is not None:
        raise typer.BadParameter(
            f"'{wrong}', expected formats such as a=f16,b=f16,d=f32", param_hint="--formats"
        )
    return {name.strip(): fmt.strip() for name, _, fmt in pairs}


def _print_plans(found: SearchResult) -> None:
    if found.tree is not None:
        typer.echo(str(found.tree))
    if found.plan is None:
        typer.echo(f"none of {found.tried} plans gives these bits; nearest, of {found.sampled} elements:")
        for equal, near in found.near:
            typer.echo(f"  {equal} equal: {_words(near)}")
        return
    typer.echo(_words(found.plan))
    typer.echo(found.plan.evidence.source)
    if found.plan.others:
        typer.echo(f"equally consistent with this data: {counted(len(found.plan.others), 'other plan')}")
        for other in found.plan.others[:8]:
            typer.echo(f"  {_words(other)}")
    if found.unchecked:
        typer.echo(
            f"{found.unchecked} more fit {found.sampled} elements and were not tried on all: give more data"
        )


def _words(one: Plan) -> str:
    words = ", ".join(f"{name}={value}" for name, value in one.given.items())
    return f"{f'{one.name}: ' if one.name else ''}{one.full_instruction}{f' with {words}' if words else ''}"


def _as_dict(found: SearchResult) -> dict[str, Any]:
    return {
        "plan": None if found.plan is None else _plan_dict(found.plan),
        "others": [] if found.plan is None else [_plan_dict(other) for other in found.plan.others],
        "tried": found.tried,
        "unchecked": found.unchecked,
        "tree": None if found.tree is None else str(found.tree),
        "near": [{"equal": equal, "of": found.sampled, **_plan_dict(one)} for equal, one in found.near],
    }


def _plan_dict(one: Plan) -> dict[str, Any]:
    return {
        "name": one.name,
        "title": one.title,
        "instruction": one.full_instruction,
        "options": one.given,
        "seen": list(one.seen),
        "evidence": {"kind": one.evidence.kind, "source": one.evidence.source},
    }


def plans(
    arch: Annotated[
        str | None, Argument(metavar="ARCH", help="Only plans of this architecture.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Lists the plans, which are the orders in which kernels of libraries add, with their evidence."""
    from golden.catalog.architectures import architectures
    from golden.kernels.plan_files import plans as named

    found = [one for name in ([arch] if arch else architectures()) for one in named(name)]
    if as_json:
        print_json([_plan_dict(one) for one in found])
        return

    from golden.explain.terminal import PlainConsole, table

    shown = table("plan", "kernel", "computes", "evidence")
    for one in found:
        name = f"[bold]{one.instruction.architecture}:{one.name}[/]"
        shown.add_row(name, one.title, _words(one).partition(": ")[2], one.evidence.kind)
    PlainConsole().print(shown, highlight=False)


def add_commands(app: typer.Typer) -> None:
    """Hangs the commands into `mmagold gemm`."""
    for command in (run, plan, plans):
        app.command(command.__name__)(command)
