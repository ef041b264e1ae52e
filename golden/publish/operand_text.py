"""The operands of one dot product in a table's cell: what is not zero, as short as it goes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden.explain.numbers import hex_text
from golden.explain.specification import index_text
from golden.instruction import Instruction
from golden.number.formats import Format
from golden.vectors.operand_files import format_of

Bits = npt.NDArray[Any]
_MANY = 6


def short(ins: Instruction, operands: dict[str, Bits]) -> str:
    """All operands that are not at rest, as "a = 0x3c00; c = 0x80000000"; zeros that follow are left out."""
    parts = [
        f"{name} = {_codes(ins, name, codes)}"
        for name, codes in operands.items()
        if not _at_rest(ins, name, codes)
    ]
    return "; ".join(parts) or "all zero"


def _at_rest(ins: Instruction, name: str, codes: Bits) -> bool:
    """Zero; of scales one, of metadata the lowest columns."""
    return bool(np.all(codes == ins.at_rest(name)))


def _codes(ins: Instruction, name: str, codes: Bits) -> str:
    fmt, values = format_of(ins, name), [int(code) for code in np.ravel(codes)]
    if len(values) > 1 and len(set(values)) == 1:
        return f"{hex_text(fmt, values[0])} ({len(values)} times)"
    words = [hex_text(fmt, code) for code in trimmed(values)] or [hex_text(fmt, 0)]
    if len(words) > _MANY and len(set(words)) > 1:
        return sparse_text(values, fmt)
    return ", ".join(words)


def sparse_text(values: list[int], fmt: Format) -> str:
    """Codes by position where most are zero: "0x3c00 at 0-1, 4-5; 0xbc00 at 17"; the first few, then how
    many more."""
    places: dict[int, list[int]] = {}
    for index, code in enumerate(values):
        if code:
            places.setdefault(code, []).append(index)
    shown = [f"{hex_text(fmt, code)} at {index_text(tuple(found))}" for code, found in places.items()]
    return ", ".join(shown[:_MANY]) + (f" and {len(shown) - _MANY} more" if len(shown) > _MANY else "")


def trimmed(values: list[int]) -> list[int]:
    """The codes without the zeros at the end."""
    last = max((index for index, code in enumerate(values) if code), default=-1)
    return values[: last + 1]
