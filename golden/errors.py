"""The exceptions that mmagold raises for bad input.

Every message names the argument, what came, what was expected and, where names are looked up, the nearest
valid ones. Each class also derives from the built-in exception that a caller would expect, so `except
ValueError` keeps working.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MmagoldError(Exception):
    """Base class of every error that mmagold raises on purpose."""


class OldWordWarning(UserWarning):
    """A YAML file uses a word of an earlier version; the message names file, line and new word."""


class UnknownNameError(MmagoldError, KeyError):
    """An architecture, instruction, format or algorithm of that name does not exist."""

    def __str__(self) -> str:
        # KeyError shows repr(message); a one-line sentence reads better.
        return str(self.args[0]) if self.args else ""


class ShapeError(MmagoldError, ValueError):
    """An operand has the wrong number of rows, columns, lanes or registers."""


class DTypeError(MmagoldError, TypeError):
    """An operand is not an unsigned-integer array of its format's storage width."""


class OperandError(MmagoldError, ValueError):
    """An operand holds values that its format or the instruction cannot take."""


class MetadataError(OperandError):
    """Sparse metadata holds a nibble that selects no legal pair of elements."""


class SpecError(MmagoldError, ValueError):
    """A YAML spec is wrong; the message gives file, line, key and what was expected."""


class FileFormatError(MmagoldError, ValueError):
    """An operand or vector file cannot be read as what it claims to be."""


class CoreError(MmagoldError, RuntimeError):
    """The C arithmetic core is missing or refused a program."""


def nearest(name: str, known: Iterable[str], count: int = 3) -> str:
    """Returns "; nearest: x, y" for the known names closest to `name`, or "" when none is near."""
    matches = difflib.get_close_matches(str(name), list(dict.fromkeys(known)), n=count, cutoff=0.5)
    return f"; nearest: {', '.join(matches)}" if matches else ""
