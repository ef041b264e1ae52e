"""The command `mmagold profile`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from golden.cli.arguments import Json, Seed, print_json
from hw_capture.cli.arguments import Gpu, architecture

if TYPE_CHECKING:
    from golden.identify.probe.numeric_profile import Profile

_TITLES = {
    "multiplication": "multiplication",
    "inner_product": "inner product",
    "accumulation": "accumulation",
    "accumulation_f32_c": "..., C stays f32",
}


def add_commands(app: typer.Typer) -> None:
    """Hangs the command into `mmagold`."""
    app.command()(profile)


def profile(
    arch: Annotated[
        str,
        Option("--arch", callback=architecture, help="Architecture or card. The paper's A100 is ampere."),
    ] = "ampere",
    samples: Annotated[
        int, Option("--samples", min=1, help="Number of samples of each operation.")
    ] = 100_000,
    chains: Annotated[
        int, Option("--chains", min=1, help="Number of chains of matrix products, whose errors are averaged.")
    ] = 1000,
    length: Annotated[int, Option("--length", min=1, help="Number of products in a chain.")] = 20,
    seed: Seed = 1,
    hardware: Annotated[
        bool,
        Option(
            "--hardware", help="Also run on the GPU in this machine, and compare every bit with the model."
        ),
    ] = False,
    gpu: Gpu = 0,
    as_json: Json = False,
) -> None:
    """Computes the numeric errors of a matrix unit, and prints the published errors of an A100 next to them.

    Exit status: 0 done, 1 the GPU differs from the model, 2 an error.
    """
    from golden.identify.probe import numeric_profile as numeric

    if hardware:
        from hw_capture.gpu import device
        from hw_capture.record import unit

        with device.open(gpu) as opened:
            found = numeric.profile(arch, samples, chains, length, seed, unit.units_of(opened, arch))
    else:
        found = numeric.profile(arch, samples, chains, length, seed)
    if as_json:
        print_json(dataclasses.asdict(found))
    else:
        _print(found)
    raise typer.Exit(1 if found.mismatches else 0)


def _print(found: Profile) -> None:
    _print_errors(found)
    _print_chain(found)
    if found.mismatches is not None:
        typer.echo(
            f"\n{found.results - found.mismatches} of {found.results} results of the GPU are the model's, "
            "bit for bit"
        )


def _print_errors(found: Profile) -> None:

    from golden.explain.terminal import PlainConsole, table
    from golden.identify.probe.numeric_profile import CASES, INITS, OPERATIONS, published

    paper = {(f.case, f.against, f.operation, f.init): f"{f.value:.2e}" for f in published()}
    rows = table("types", "CPU", "operation", "in type>", "paper>", "in f32>", "paper>")
    for case in CASES:
        for against, errors in (("f32", found.errors), ("f16", found.errors_f16)):
            for operation in OPERATIONS if case.name in errors else ():
                cells = []
                for init in INITS:
                    cells += [
                        f"{errors[case.name][operation][init]:.2e}",
                        paper.get((case.name, against, operation, init), ""),
                    ]
                rows.add_row(f"{case.ab}, {case.cd}", against, _TITLES[operation], *cells)
    PlainConsole().print(rows)
    typer.echo(
        f"Mean absolute errors on {found.architecture}, {found.samples} samples of N(0, 1), seed "
        f"{found.seed}, drawn in the operand type or in f32. Paper: A100, arXiv 2206.02874, Tables XII to XV."
    )


def _print_chain(found: Profile) -> None:

    from golden.explain.terminal import PlainConsole, table
    from golden.identify.probe.numeric_profile import CASES, INITS

    lines = [
        (f"{case.ab}, {case.cd}", init, found.chain[case.name][init]) for case in CASES for init in INITS
    ]
    length = len(lines[0][2])
    shown = [n for n in (1, 2, 5, 10, 20) if n <= length] or [length]
    rows = table("types", "drawn", *(f"N = {n}>" for n in shown))
    for types, init, errors in lines:
        values = [errors[n - 1] for n in shown]
        rows.add_row(
            types,
            "in type" if init == "low" else "in f32",
            *("overflow" if v is None else f"{v:.2e}" for v in values),
        )
    typer.echo("")
    PlainConsole().print(rows)
    typer.echo(f"Mean l2 errors relative to the result after N products, {found.chains} chains")
