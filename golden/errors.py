"""The exceptions that mmagold raises for bad input.

Every message names the argument, what came, what was expected and, where names are looked up, the nearest
valid ones. Each class also derives from the built-in exception that a caller would expect, so `except
ValueError` keeps working.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice


class MmagoldError(Exception):
    """Base class of every error that mmagold raises on purpose."""


def one_line(error: BaseException) -> str:
    """What somebody else's code raised, in one line: its class and what it says, if it can say anything."""
    try:
        said = str(error)
    except Exception:
        said = "(it cannot be printed)"
    return " ".join(f"{type(error).__name__}: {said}".split()).removesuffix(":")


class OldWordWarning(UserWarning):
    """A YAML file uses a word of an earlier version; the message names file, line and new word."""


class UnknownNameError(MmagoldError, KeyError):
    """An architecture, instruction, format or algorithm of that name does not exist."""

    def __str__(self) -> str:
        # KeyError shows repr(message); a one-line sentence reads better.
        return str(self.args[0]) if self.args else ""


class UnknownArithmeticError(UnknownNameError):
    """The architecture has an instruction of that name, but what it computes is not public."""


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


class ToolMissing(MmagoldError, RuntimeError):
    """A program or a Python package that a command needs is not installed; the message says what to do."""


class WorkerError(MmagoldError, RuntimeError):
    """A worker that died, or a scheduler that does not answer."""


class DocsError(MmagoldError, RuntimeError):
    """A page, a link, a claim, a finding or the site as a whole is wrong."""


class DocsToolMissing(DocsError, ToolMissing):
    """Sphinx, MyST, furo, Typst or Matplotlib is not installed."""


def missing(package: str) -> DocsToolMissing:
    """The error for an optional package of the docs that is not installed."""
    return DocsToolMissing(
        f"the Python package '{package}' is not installed, expected what the docs need: {pip_install('docs')}"
    )


def pip_install(extra: str) -> str:
    """The command that installs what an extra of this package asks for; it names the packages, so that it
    works where mmagold itself came from a checkout or a wheel."""
    from importlib import metadata  # takes longer than all else here

    try:
        declared = metadata.requires("mmagold") or []
    except metadata.PackageNotFoundError:
        declared = []
    found = [
        f'"{one.partition(";")[0].strip()}"' for one in declared if re.search(f"extra == .{extra}\\b", one)
    ]
    return f"pip install {' '.join(found)}" if found else f'pip install "mmagold[{extra}]"'


def nearest(name: str, known: Iterable[str], count: int = 3, cutoff: float = 0.5) -> str:
    """Returns "; nearest: x, y" for the known names closest to `name`, or "" when none is near.

    Args:
        cutoff: least share of characters in common, as difflib counts them.
    """
    # Characters of a name for which others like it are looked for: no name of ours is longer, a file may
    # hold a text of many millions in its place.
    longest_name = 1000
    if len(str(name)) > longest_name:
        return ""
    matches = difflib.get_close_matches(str(name), list(dict.fromkeys(known)), n=count, cutoff=cutoff)
    return f"; nearest: {', '.join(matches)}" if matches else ""


def no_match(
    what: str, text: str, names: Iterable[str], chosen: Callable[[str], bool] = lambda _: True
) -> UnknownNameError:
    """The error for a filter that chooses none of `names`; it names the ones that hold most of it.

    Args:
        chosen: whether a name is one that can be chosen; called only for the nearest, since it may take long.
    """

    def shared(name: str) -> float:
        blocks = difflib.SequenceMatcher(None, text, name, autojunk=False).get_matching_blocks()
        return sum(block.size for block in blocks if block.size > 1) / max(len(text), 1)

    ranked = sorted(
        ((shared(name), name) for name in dict.fromkeys(names)),
        key=lambda pair: (-pair[0], len(pair[1]), pair[1]),
    )
    found = list(islice((pair for pair in ranked if chosen(pair[1])), 3))
    near = [name for share, name in found if share >= 0.6]
    hint = (
        f"; nearest: {', '.join(near)}"
        if near
        else f"; there are such as {found[0][1]}"
        if found
        else "; there are none"
    )
    return UnknownNameError(f"no {what} matches '{text}'{hint}")


def counted(number: int, what: str) -> str:
    """A number with its noun: "1 instruction", "1,410 instructions"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def listed(texts: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first texts of a list, and how many more there are: "a, b and 3 more"."""
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return separator.join(texts[:most]) + more


def runs(numbers: Iterable[int]) -> list[range]:
    """Runs of consecutive numbers, in their order: 0, 1, 2, 7 gives range(0, 3) and range(7, 8)."""
    found: list[range] = []
    for number in numbers:
        if found and number == found[-1].stop:
            found[-1] = range(found[-1].start, number + 1)
        else:
            found.append(range(number, number + 1))
    return found


def bits_text(bits: Sequence[int]) -> str:
    """ "bit 3", "bits 0 and 1", "bits 0 to 5", "bits 0 to 2 and 7"."""
    words = [w for run in runs(bits) for w in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    start = "bit" if len(bits) == 1 else "bits"
    return f"{start} {' and '.join(filter(None, (', '.join(words[:-1]), words[-1])))}"
