"""Markdown that is made of facts: a table, and text whose signs mean nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; bars in cells are escaped, line breaks become spaces."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return str(value).replace("\\|", "|").replace("|", "\\|").replace("\n", " ")


def escaped(text: str) -> str:
    """Text in which no sign is Markdown's."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")
