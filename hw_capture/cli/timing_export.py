"""The command `mmagold timing export`: cycle counts as simulators read them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def _simulators() -> list[str]:
    from golden.catalog.simulators import simulators

    return list(simulators())


def _tables() -> list[str]:
    from golden.catalog.timing import names

    return names()


def export(
    simulator: Annotated[str, typer.Argument(help="accel-sim or gpgpu-sim.", autocompletion=_simulators)],
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            help="Files of spec/timing of one device, or paths (default: ours).",
            autocompletion=_tables,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="File (default: standard output).")] = None,
) -> None:
    """Writes latencies and initiation intervals by opcode class as a cycle-level simulator takes them.

    What was not measured is left out, with a comment; the simulator's own file then keeps its figure.
    """
    from golden.catalog.simulators import fragment, get_simulator
    from golden.catalog.timing import load, names
    from golden.errors import UnknownNameError
    from golden.files.output import write_text
    from hw_capture.cli.timing import OURS

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
