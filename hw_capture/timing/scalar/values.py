"""Operands of scalar chains, and what the numbers of a chain have come to at its end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden.number.formats import from_float, get_format, to_float
from hw_capture.timing.scalar.chains import INVERSES

BITS = "bits"
"""Operands that are any bits."""
KINDS = ("NaN", "infinite", "zero", "subnormal")
"""What a number can be that is not normal."""


def operands(kind: str, seed: int = 1) -> npt.NDArray[np.uint64]:
    """Random operands, INVERSES bytes of them, and the same number again.

    Floats lie between 1 and 2, where no quotient, root or reciprocal calls a subroutine; the second half
    holds the reciprocals of the first.
    """
    rng = np.random.default_rng(seed)
    words = INVERSES // 8
    if kind == BITS:
        return rng.integers(0, 1 << 64, 2 * words, np.uint64)
    form = get_format(kind)
    numbers = rng.uniform(1, 2, words * 64 // form.storage)
    return np.concatenate([from_float(form, numbers), from_float(form, 1 / numbers)]).view(np.uint64)


def worst(words: npt.NDArray[np.uint64], kind: str, width: int) -> str:
    """What most of the numbers are that are not normal; "" where all are.

    Args:
        words: one register a word, in its low `width` bits, which hold one or more numbers of format `kind`.
    """
    form = get_format(kind)
    if width < form.storage:
        return ""
    codes = words.astype("<u8").view(f"<u{form.storage // 8}").reshape(len(words), -1)
    found = to_float(form, codes[:, : width // form.storage].reshape(-1)).astype(np.float64)
    tiny = 2.0**form.min_exponent
    masks: tuple[npt.NDArray[Any], ...] = (
        np.isnan(found),
        np.isinf(found),
        found == 0,
        (found != 0) & (np.abs(found) < tiny),
    )
    counts = [int(mask.sum()) for mask in masks]
    return KINDS[counts.index(max(counts))] if any(counts) else ""
