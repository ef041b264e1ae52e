"""Arguments and options that several commands have."""

from __future__ import annotations

from typing import Annotated

from typer import Option


def architecture(word: str) -> str:
    """The architecture that an option names: its own name (hopper), a card's (h100) or a target's (sm_90).

    Raises:
        UnknownNameError: it means none; the message names near ones.
    """
    from golden.catalog.resolver import resolver

    return resolver().called(word)


GpuArch = Annotated[str, Option("--arch", callback=architecture, help="Architecture of the GPU.")]
Gpu = Annotated[int, Option("--gpu", min=0, help="Index of the GPU.")]
OnlyRegex = Annotated[
    str | None,
    Option("--only", metavar="REGEX", help="Only instructions whose name matches this regular expression."),
]
OnlyText = Annotated[
    str, Option("--only", metavar="TEXT", help="Only instructions whose name contains this text.")
]
