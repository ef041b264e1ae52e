"""Arguments and options that several commands have, and how typer reads them: `read_light` keeps Pydantic out
where a word stays as it is.

From 0.29 on typer imports Pydantic for the first value that is neither True nor False. That takes as long as
a third of `mmagold show`, and changes neither a text nor a default.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer
import typer.core
from typer import Argument, Option

from golden.cli import completion

_NAME = "architecture:instruction (hopper:HMMA.16816.F32), or the .yaml file of a unit."

Name = Annotated[
    str,
    Argument(metavar="NAME", help=_NAME, autocompletion=completion.instruction, show_default=False),
]
OptionalName = Annotated[
    str | None, Argument(metavar="NAME", help=_NAME, autocompletion=completion.instruction)
]
Arch = Annotated[
    str | None,
    Option(
        "--arch",
        help="Architecture of NAME, if NAME is an instruction alone.",
        autocompletion=completion.architecture,
        show_default=False,
    ),
]
Json = Annotated[bool, Option("--json", help="Print JSON.")]
Seed = Annotated[int, Option("--seed", min=0, help="Seed of the random operands.")]


@dataclass(frozen=True)
class _Value:
    """In the place of typer's reader of one parameter, which `make` makes."""

    make: Callable[[Any], Any]
    declared: Any

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value of the parameter. Words are texts: a value that already has another type is a default."""
        if value is None and param.nargs == 1 and not param.multiple:
            return None
        if type(value) is self.declared.annotation and self.declared.parameter_info.parser is None:
            return value
        return self.make(self.declared).coerce(value, param=param, ctx=ctx)


def read_light() -> None:
    """Has typer read values so. A version that makes its readers elsewhere reads as always."""
    name = "build_runtime_param"
    make = getattr(typer.core, name, None)
    if make is not None:
        setattr(typer.core, name, partial(_Value, make))


def print_json(value: Any) -> None:
    """Prints a value for machines, as `--json` asks."""
    typer.echo(json.dumps(value, indent=2))
