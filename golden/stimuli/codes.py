"""Formats by exponent: their ranges, codes built from sign, exponent and fraction,
and the codes at their edges.

Integers join in as numbers with exponents from 0 to their width.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.number.formats import Format, Kind

Bits = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


def lowest_exponent(fmt: Format) -> int:
    """Exponent of the smallest normal number; integers: 0."""
    return fmt.min_exponent if fmt.is_float else 0


def highest_exponent(fmt: Format) -> int:
    """Exponent of the largest finite number; integers: of the largest value."""
    return fmt.max_exponent if fmt.is_float else max(fmt.integer_bits - int(fmt.signed) - 1, 0)


def tiniest_exponent(fmt: Format) -> int:
    """Exponent of the smallest positive number, subnormal where the format has them."""
    subnormal = fmt.is_float and fmt.has_subnormals
    return fmt.min_exponent - fmt.fraction_bits if subnormal else lowest_exponent(fmt)


@cache
def word_of(fmt: Format) -> np.dtype[Any]:
    """In which words `encode` builds the codes of a format, and takes fractions: the narrowest that hold
    those of floats, those past the largest included; of integers uint64."""
    past = (1 << fmt.exponent_bits) + 3 << fmt.fraction_bits
    fitting = [bits for bits in (16, 32) if fmt.is_float and fmt.bits <= bits and past <= 1 << bits]
    return np.dtype(f"u{min([*fitting, 64]) // 8}")


def encode(fmt: Format, sign: Bits | None, exponent: Ints, fraction: Bits | None) -> Bits:
    """Builds codes from a sign (0 or 1), an unbiased exponent
    and random fraction bits (uint64, or the words of the format; top bits used first).

    Exponents below the normal range give subnormals (or zero), above it the largest finite number. Signs of
    unsigned formats are ignored. Without signs all are positive, without fractions powers of two.
    """
    if not fmt.is_float:
        return _encode_integer(fmt, sign, exponent, fraction)
    word = word_of(fmt).type
    width, lowest, bits = 8 * word().itemsize, int(fmt.has_subnormals), word(fmt.fraction_bits)
    hidden = word(1) << bits
    # Arrays are written again: searches make millions.
    biased = np.add(exponent, fmt.bias, dtype=f"i{width // 8}", casting="same_kind")
    if not fmt.has_subnormals:
        np.maximum(biased, 0, out=biased)
    if fraction is None:
        codes = np.full(biased.shape, hidden)
    else:
        cut = fraction >> fraction.dtype.type(8 * fraction.itemsize - 1 - fmt.fraction_bits)
        codes = cut.astype(word, copy=False)
        codes >>= word(1)
        codes |= hidden
    if biased.min(initial=lowest) < lowest:
        codes >>= _within(lowest - biased, 0, width - 1)
    codes += _within(biased, lowest, (1 << fmt.exponent_bits) + 1) << bits
    codes -= hidden
    np.minimum(codes, word(fmt.largest >> fmt.ignored_low), out=codes)
    if fmt.ignored_low:
        codes <<= word(fmt.ignored_low)
    if fmt.signed and sign is not None:
        signs = sign.astype(word) * word(sign_bit(fmt))
        codes |= np.where(codes == 0, word(0), signs) if fmt.specials == "negative_zero_nan" else signs
    return np.asarray(codes.astype(fmt.dtype))


def _within(numbers: Ints, low: int, high: int) -> Bits:
    """Numbers clamped to a range without negative ones, written over what is given."""
    np.maximum(numbers, low, out=numbers)
    np.minimum(numbers, high, out=numbers)
    return numbers.view(f"u{numbers.itemsize}")


def _encode_integer(fmt: Format, sign: Bits | None, exponent: Ints, fraction: Bits | None) -> Bits:
    width = np.clip(exponent, 0, highest_exponent(fmt))
    codes = np.uint64(1) << width.astype(np.uint64)
    magnitude = codes if fraction is None else codes | _top_bits(fraction, width)
    magnitude = np.where(exponent < 0, np.uint64(0), magnitude)
    signed = fmt.signed and sign is not None
    # Words of 64 bits wrap as the two's complement does, so that integers of 64 bits need no wider ones.
    value = np.where(np.asarray(sign, bool), np.uint64(0) - magnitude, magnitude) if signed else magnitude
    return np.asarray((value & np.uint64((1 << fmt.integer_bits) - 1)).astype(fmt.dtype))


def _top_bits(fraction: Bits, width: Ints) -> Bits:
    """The top `width` (0..63) bits of each uint64."""
    shifted = fraction >> (np.uint64(63) - width.astype(np.uint64))
    return np.asarray(shifted >> np.uint64(1))


def sign_bit(fmt: Format) -> Bits:
    """The bit of a float's code that is its sign, as one word of the format; 0 for formats without one."""
    return np.array(1 << fmt.sign_shift if fmt.sign_shift >= 0 else 0, fmt.dtype)


def is_minus(fmt: Format, codes: Bits) -> npt.NDArray[np.bool_]:
    """Where the sign of floats is set: nowhere in a format without one."""
    return np.asarray(codes & sign_bit(fmt) != 0)


def magnitudes(fmt: Format, codes: Bits) -> Bits:
    """The codes of floats without their signs."""
    return np.asarray(codes & ~sign_bit(fmt))


def negate(fmt: Format, codes: Bits) -> Bits:
    """Negates codes; formats without a sign, and zeros whose negative is a NaN, stay as they are."""
    if not fmt.signed:
        return codes
    if not fmt.is_float:
        mask = np.uint64((1 << fmt.integer_bits) - 1)
        return np.asarray((np.uint64(0) - codes.astype(np.uint64) & mask).astype(fmt.dtype))
    flipped = codes ^ sign_bit(fmt)
    return np.where(codes == 0, codes, flipped) if fmt.specials == "negative_zero_nan" else flipped


@cache
def one(fmt: Format) -> int:
    """The code of 1, or of the number nearest to it."""
    return int(encode(fmt, None, np.zeros(1, np.int64), None)[0])


def corner_codes(fmt: Format) -> Bits:
    """The codes at a format's edges: zeros, least and largest subnormal and normal, one, largest,
    infinities, NaNs."""
    if fmt.bits == 0:  # an operand that the unit does not have
        return np.zeros(1, fmt.dtype)
    if not fmt.is_float:
        codes = {0, 1, fmt.largest, (1 << fmt.integer_bits) - 1, 1 << (fmt.integer_bits - 1)}
        return np.array(sorted(codes), dtype=fmt.dtype)
    unit = 1 << fmt.ignored_low
    least_normal = unit << fmt.fraction_bits
    codes = {
        0,
        unit,
        least_normal - unit,
        least_normal,
        least_normal + unit,
        one(fmt),
        fmt.largest - unit,
        fmt.largest,
    }
    codes = {code for code in codes if 0 <= code < least_normal << fmt.exponent_bits}
    codes |= {code for code in (fmt.infinity, fmt.nan) if code is not None}
    if fmt.infinity is not None and fmt.fraction_bits > 1:
        codes.add(fmt.infinity + unit)  # a signalling NaN: the quiet bit is clear
    codes |= {code | int(sign_bit(fmt)) for code in codes}
    return np.array(sorted(codes), dtype=fmt.dtype)


@cache
def special_codes(fmt: Format) -> Bits:
    """Infinities and NaNs (quiet, signalling) of both signs; where a format has none, its largest numbers."""
    corners = corner_codes(fmt)
    found = [code for code in corners.tolist() if fmt.decode(code).kind >= Kind.INFINITY]
    edges = np.array([fmt.largest], fmt.dtype)
    codes = np.array(found, fmt.dtype) if found else np.unique(np.concatenate([edges, negate(fmt, edges)]))
    codes.flags.writeable = False  # it is kept, and handed to everyone
    return codes


@cache
def nan_codes(fmt: Format) -> Bits:
    """The NaNs among the special codes; none in formats without NaNs."""
    found = [code for code in special_codes(fmt).tolist() if fmt.decode(code).kind == Kind.NAN]
    codes = np.array(found, fmt.dtype)
    codes.flags.writeable = False  # it is kept, and handed to everyone
    return codes


def is_special(fmt: Format, codes: Bits) -> npt.NDArray[np.bool_]:
    """Where codes are infinities or NaNs of any fraction; where a format has none, its largest numbers."""
    if fmt.infinity is None:
        return np.isin(codes, special_codes(fmt))
    return np.asarray(magnitudes(fmt, codes) >= fmt.dtype.type(fmt.infinity))


def is_nan(fmt: Format, codes: Bits) -> npt.NDArray[np.bool_]:
    """Where codes are NaNs of any fraction."""
    if fmt.infinity is None:
        return np.isin(codes, nan_codes(fmt))
    read = magnitudes(fmt, codes) & ~fmt.dtype.type(fmt.ignored)
    return np.asarray(read > fmt.dtype.type(fmt.infinity))
