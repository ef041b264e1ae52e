"""An accumulator that the unit keeps: c is the result before, or zero where the operand `clear` says so, or
the operand c where `load` does.

    accumulator: state
    load: with_products

`clear` and `load` set what the unit holds before the products are added; where they come `alone`, it takes no
products then. `clear` comes first where both are set.

The arithmetic knows nothing of it: with c given, each dot product is one of `ins.stateless`. Dot products
follow one another along the last leading axis of the operands, in the order of time; the axes before it are
units of their own. After a reset, and before the first dot product, the unit holds +0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.number.formats import Format

Bits = npt.NDArray[Any]
CLEAR = Format("clear", False, 8, signed=False, integer_bits=1)
"""The codes of the operand `clear`: 1 where c is +0 instead of the result before."""
LOAD = Format("load", False, 8, signed=False, integer_bits=1)
"""The codes of the operand `load`: 1 where c is the operand c instead of the result before."""
CONTROLS = ("clear", "load")
"""The operands that say what c is."""
PRODUCTS = ("with_products", "alone")
"""Whether the products that come with one of them count."""


def before(d: Bits, clear: Bits, held: int = 0) -> Bits:
    """The c of each dot product: the result before it in `d` (..., time), `held` for the first, and 0 where
    `clear` (broadcast against d) is set."""
    c = np.full_like(d, held)
    if d.ndim:
        c[..., 1:] = d[..., :-1]
    return np.where(np.asarray(clear) != 0, d.dtype.type(0), c)


def held_or_given(operands: Mapping[str, Bits], held: Bits) -> Bits:
    """The c of each dot product of a unit that held `held` (...): that, zero or the operand c."""
    c = held
    if "load" in operands:
        c = np.where(operands["load"] != 0, operands["c"], c)
    return np.where(operands["clear"] != 0, held.dtype.type(0), c)


def without_products(operands: Mapping[str, Bits], alone: Sequence[str]) -> dict[str, Bits]:
    """The factors a and b, zero if an operand that comes `alone` is set."""
    factors = {name: operands[name] for name in "ab" if name in operands}
    if not alone:
        return factors
    marks = {name: operands[name] != 0 for name in CONTROLS if name in operands}
    left_out = marks["clear"] & ("clear" in alone)
    if "load" in alone:
        left_out = left_out | (marks["load"] & ~marks["clear"])
    return {
        name: np.where(left_out[..., None], codes.dtype.type(0), codes) for name, codes in factors.items()
    }


def places(clear: Bits) -> npt.NDArray[np.int64]:
    """How many dot products lie between each and the start of its sequence, for `clear` (..., time): 0 where
    clear is set, or at the first."""
    index = np.broadcast_to(np.arange(clear.shape[-1]), clear.shape)
    starts = np.where(clear != 0, index, 0)
    return np.asarray(index - np.maximum.accumulate(starts, axis=-1), np.int64)


def starts(clear: Bits, wanted: Bits) -> npt.NDArray[np.int64]:
    """For indices `wanted` into a sequence `clear` (time,): where the sequences that they lie in start."""
    chosen = np.asarray(wanted, np.int64)
    return np.asarray(chosen - places(clear)[chosen], np.int64)
