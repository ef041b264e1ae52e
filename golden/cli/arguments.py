"""Arguments and options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

from golden.cli import completion

_NAME = "architecture:instruction, or the .yaml file of a unit."

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help=_NAME, autocompletion=completion.instruction, show_default=False),
]
OptionalName = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help=_NAME, autocompletion=completion.instruction)
]
Arch = Annotated[
    str | None,
    typer.Option(
        "--arch", help="Architecture of NAME.", autocompletion=completion.architecture, show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the operands.")]
