"""Operands that show the order of a sum: raw codes of every sign and significand, exponents spread evenly, so
that sums cancel and partial sums differ with every order of addition."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden.number.formats import Format

Bits = npt.NDArray[Any]


def drawn(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...], spread: int) -> Bits:
    """Codes of a format, exponents within ±`spread` of that of 1.0; of an integer format all codes."""
    if not fmt.is_float:
        return rng.integers(0, 1 << fmt.bits, shape, np.uint64).astype(fmt.dtype)
    low, high = max(1, fmt.bias - spread), min(2 * fmt.bias, fmt.bias + spread)
    exponent = rng.integers(low, high, shape, np.uint64, endpoint=True)
    sign = rng.integers(0, 2, shape, np.uint64)
    significand = rng.integers(0, 1 << fmt.fraction_bits, shape, np.uint64)
    codes = (sign << np.uint64(fmt.bits - 1)) | (exponent << np.uint64(fmt.fraction_bits)) | significand
    return np.asarray(codes.astype(fmt.dtype))
