"""Arrays of integers of any size: machine integers if they fit, Python's if not."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from golden.number.rounding import ABOVE, BELOW, ROUNDINGS, TIE

Array = Any
"""A NumPy array; significands are Python integers (dtype object) of any size."""
_LONGEST = 20_000
"""The largest shift: more than the distance of any two exponents."""
_SHORT = 60
"""Bits of magnitude up to which machine integers are used."""
_length_of_long: Any = np.frompyfunc(int.bit_length, 1, 1)


def bit_length(value: Array) -> Array:
    """Bits of magnitudes."""
    if value.dtype == object:
        return _length_of_long(value).astype(np.int64)
    length = np.frexp(value.astype(np.float64))[1].astype(np.int64)  # may round up to the next power of two
    return length - ((value != 0) & (value >> np.maximum(length - 1, 0) == 0))


def is_short(value: Array, more: int = 0) -> bool:
    """Whether machine integers hold the values with `more` bits more."""
    if value.dtype == object or not value.size:
        return False
    return int(np.abs(value).max()).bit_length() + more <= _SHORT


def shl(value: Array, count: Array) -> Array:
    """value << count, of any size."""
    if is_short(value, min(int(np.max(count, initial=0)), _LONGEST)):
        return value << count
    return value.astype(object) << np.minimum(count, _LONGEST).astype(object)


def shr(value: Array, count: Array) -> Array:
    """value >> count, of any size."""
    if value.dtype == object:
        return value >> np.minimum(count, _LONGEST).astype(object)
    return value >> np.minimum(count, _SHORT + 2)


def modulo(value: Array, bits: int) -> Array:
    """The content of an unsigned word of `bits` bits."""
    return widened(value, bits) % (1 << bits)


def widened(value: Array, bits: int) -> Array:
    """The values in an array that also holds every integer of `bits` bits."""
    return value if bits < _SHORT else value.astype(object)


def low_bits(value: Array, count: Array) -> Array:
    """The low `count` bits of each."""
    if value.dtype == object:
        return value & (shl(np.ones_like(value), count) - 1)
    return np.where(count > _SHORT, value, value & ((1 << np.minimum(count, _SHORT)) - 1))


def shifted(sign: Array, magnitude: Array, cut: Array, mode: str) -> Array:
    """Magnitudes shifted right by `cut` places (left if negative) and rounded; golden/number/rounding.py for
    arrays."""
    right = np.maximum(cut, 0)
    kept = shr(shl(magnitude, np.maximum(-cut, 0)), right)
    rest = low_bits(magnitude, right)
    below = np.maximum(right - 1, 0)
    half = (shr(magnitude, below) & 1 == 1) & (cut > 0)
    part = np.where(half, np.where(low_bits(magnitude, below) != 0, ABOVE, TIE), BELOW)
    up = np.zeros(kept.shape, bool)
    for negative, where, odd in product((0, 1), (BELOW, TIE, ABOVE), (0, 1)):
        if ROUNDINGS[mode].up(negative, where, odd):
            up |= (sign == negative) & (part == where) & (kept & 1 == odd)
    return kept + (up & (rest != 0)).astype(np.int64)


def in_register(total: Array, bits: Array, overflow: str = "wrap") -> Array:
    """Signed sums in a two's complement register of `bits` bits."""
    half = shl(np.ones(total.shape, object), np.asarray(bits)) >> 1
    if overflow == "saturate":
        return np.where(bits > 0, np.minimum(np.maximum(total, -half), half - 1), 0)
    return np.where(bits > 0, (total + half) % np.maximum(half * 2, 1) - half, 0)
