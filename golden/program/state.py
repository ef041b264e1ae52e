"""An accumulator that the unit keeps: c is the result before, or zero where the operand `clear` says so.

    accumulator: state

The arithmetic knows nothing of it: with c given, each dot product is one of `ins.stateless`. Dot products
follow one another along the last leading axis of the operands, in the order of time; the axes before it are
units of their own. After a reset, and before the first dot product, the unit holds +0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden.number.formats import Format

Bits = npt.NDArray[Any]
CLEAR = Format("clear", False, 8, signed=False, integer_bits=1)
"""The codes of the operand `clear`: 1 where c is +0 instead of the result before."""


def before(d: Bits, clear: Bits, held: int = 0) -> Bits:
    """The c of each dot product: the result before it in `d` (..., time), `held` for the first, and 0 where
    `clear` (broadcast against d) is set."""
    c = np.full_like(d, held)
    if d.ndim:
        c[..., 1:] = d[..., :-1]
    return np.where(np.asarray(clear) != 0, d.dtype.type(0), c)


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
