"""Status flags of a unit: results in addition to d that report exceptions (IEEE 754-2019 clause 7).

A unit's file lists the flags that it has, the lowest bit of the result `flags` first:

    flags: [invalid, overflow, underflow, inexact]

When each is raised, docs/spec-schema.md says; golden/number/status.py and golden/core/mg_flags.h compute it.
No step divides, so that `divide_by_zero` is a bit that is always 0.
"""

from __future__ import annotations

from collections.abc import Iterable

from golden.number.formats import Format
from golden.program.keys import STATUS


def flags_format(names: tuple[str, ...]) -> Format | None:
    """The codes of the result `flags`: plain unsigned integers, a bit for each flag; None without flags."""
    return Format("flags", False, 8, signed=False, integer_bits=len(names)) if names else None


def flags_code(names: tuple[str, ...], raised: Iterable[str]) -> int:
    """The code of the flags that are raised; flags that the unit does not have are left out."""
    return sum(1 << names.index(name) for name in set(raised) if name in names)


def codes_by_mask(names: tuple[str, ...]) -> list[int]:
    """The code for each value of the C core's mask (a bit for each word of STATUS)."""
    return [
        flags_code(names, (word for bit, word in enumerate(STATUS.words) if mask >> bit & 1))
        for mask in range(1 << len(STATUS.words))
    ]


def flags_text(names: tuple[str, ...], code: int) -> str:
    """A code in words: "overflow, inexact", or "none"."""
    return ", ".join(name for bit, name in enumerate(names) if code >> bit & 1) or "none"
