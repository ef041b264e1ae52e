"""The operations of MUFU on f32 codes: what surrounds the quadratics. Exponents, signs, special values and
the cut to 24 bits are here; the tables are in spec/functions.

Every operation takes the codes as int64 in 0 .. 2^32 - 1 and gives codes likewise. Operands below 2^-126
count as zeros of their sign, except in tanh, and so do results; results are cut towards zero, never rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as AnyMapping

import numpy as np

from golden.functions.tables import FRACTION, LOWEST, Integers, Table

SIGN, INFINITY, ONE, NAN = 1 << 31, 255 << FRACTION, 127 << FRACTION, 0x7FFFFFFF
"""Codes of f32: the sign bit, infinity, 1.0, and the only NaN that the unit gives."""
BIAS = ONE >> FRACTION
"""Of an f32 exponent."""
PART = (1 << FRACTION) - 1
"""Mask of a fraction."""
LEADING = 1 << FRACTION

TABLES = ("rcp", "rsqrt", "sqrt", "ex2", "lg2", "sin", "tanh")
"""What every unit has a table of; rsqrt and sqrt have a block each for even and for odd exponents."""
LOG_INVERTED = -38
"""2^-38 is the least weight of a bit where a negative logarithm is inverted: its magnitude is the
complement."""


def reciprocal(tables: AnyMapping[str, Table], code: Integers) -> Integers:
    """MUFU.RCP: 1/x. The exponent is exact, and the table gives 1/m of m in [1, 2)."""
    sign, exponent, fraction = _parts(code)
    result = _code(tables["rcp"].interpolate(_zeros(code), fraction), BIAS - exponent)
    result = np.where(exponent == 0, INFINITY, np.where(exponent == 255, 0, result))
    return np.where(_nan(code), NAN, result | sign)


def reciprocal_root(tables: AnyMapping[str, Table], code: Integers) -> Integers:
    """MUFU.RSQ: x^(-1/2), one block for even exponents and one for odd ones; exact for a power of 4."""
    sign, exponent, fraction = _parts(code)
    half, odd = (exponent - BIAS) >> 1, (exponent - BIAS) & 1
    result = _code(tables["rsqrt"].interpolate(odd, fraction), -half)
    result = np.where((fraction == 0) & (odd == 0), BIAS - half << FRACTION, result)
    result = np.where(exponent == 255, 0, result)
    result = np.where(_nan(code) | (sign != 0), NAN, result)
    return np.where(exponent == 0, INFINITY | sign, result)


def root(tables: AnyMapping[str, Table], code: Integers) -> Integers:
    """MUFU.SQRT: x^(1/2), with blocks as x^(-1/2) has them."""
    sign, exponent, fraction = _parts(code)
    half, odd = (exponent - BIAS) >> 1, (exponent - BIAS) & 1
    result = _code(tables["sqrt"].interpolate(odd, fraction), half)
    result = np.where(exponent == 255, INFINITY, result)
    result = np.where(_nan(code) | (sign != 0), NAN, result)
    return np.where(exponent == 0, sign, result)


def power_of_two(tables: AnyMapping[str, Table], code: Integers) -> Integers:
    """MUFU.EX2: 2^x. |x| is cut to 23 bits after the point; a negative one that is no integer is
    complemented, not negated. The integer part is the exponent, and the table gives 2^f of the rest."""
    sign, exponent, _ = _parts(code)
    negative = sign != 0
    whole = _fixed_point(code, FRACTION)
    whole = np.where(negative, np.where(whole & PART, ~whole, -whole), whole)
    power = whole >> FRACTION  # rounds down
    result = _code(tables["ex2"].interpolate(_zeros(code), whole & PART), np.clip(power, -BIAS, BIAS))
    # 2^128 and more is infinity, less than 2^-126 zero; from 2^8 on `whole` no longer holds |x|
    huge = exponent >= BIAS + 8
    result = np.where((huge | (power > BIAS)) & ~negative, INFINITY, np.where(huge & negative, 0, result))
    return np.where(_nan(code), NAN, result)


def logarithm(tables: AnyMapping[str, Table], code: Integers) -> Integers:
    """MUFU.LG2: log2 x, the exponent and a table of log2 m, added as one number and then cut; exact for 1."""
    sign, exponent, fraction = _parts(code)
    part = tables["lg2"].interpolate(_zeros(code), fraction)
    total = (exponent - BIAS << -LOWEST) + np.where(code == ONE, 0, part)
    # Of a negative sum every bit down to 2^LOG_INVERTED is inverted, one unit there less than the magnitude.
    magnitude = np.where(total < 0, -total - (1 << LOG_INVERTED - LOWEST), total)
    # 2^-36 is the least weight of a bit of a logarithm before it is normalised.
    log_cut = -36
    dropped = log_cut - LOWEST
    result = _code(magnitude >> dropped << dropped, _zeros(code)) | np.where(total < 0, SIGN, 0)
    result = np.where(exponent == 255, INFINITY, result)
    result = np.where(_nan(code) | (sign != 0), NAN, result)
    return np.where(exponent == 0, INFINITY | SIGN, result)


def sine(tables: AnyMapping[str, Table], code: Integers) -> Integers:
    """MUFU.SIN: the sine of x revolutions, an odd function."""
    quadrant, place = _angle(code)
    return _sine_of_quadrant(tables, code, quadrant, place, code >> 31)


def cosine(tables: AnyMapping[str, Table], code: Integers) -> Integers:
    """MUFU.COS: the cosine of x revolutions, the sine a quadrant further."""
    quadrant, place = _angle(code)
    return _sine_of_quadrant(tables, code, quadrant + 1, place, _zeros(code))


def hyperbolic_tangent(tables: AnyMapping[str, Table], code: Integers) -> Integers:
    """MUFU.TANH: x below the first exponent of the table, also where x is below 2^-126, 1 above the last."""
    sign, exponent, fraction = _parts(code)
    table = tables["tanh"]
    first, last = table.blocks[0].exponent + BIAS, table.blocks[-1].exponent + BIAS
    result = _code(table.interpolate(np.clip(exponent, first, last) - first, fraction), _zeros(code))
    result = np.where(exponent < first, code & ~SIGN, np.where(exponent > last, ONE, result))
    return np.where(_nan(code), NAN, result | sign)


OPERATIONS: dict[str, Callable[[AnyMapping[str, Table], Integers], Integers]] = {
    "MUFU.RCP": reciprocal,
    "MUFU.RSQ": reciprocal_root,
    "MUFU.SQRT": root,
    "MUFU.EX2": power_of_two,
    "MUFU.LG2": logarithm,
    "MUFU.SIN": sine,
    "MUFU.COS": cosine,
    "MUFU.TANH": hyperbolic_tangent,
}
"""Operations of f32 by their names in SASS."""


def _parts(code: Integers) -> tuple[Integers, Integers, Integers]:
    """The sign bit in its place, the biased exponent and the fraction of f32 codes."""
    return code & SIGN, code >> FRACTION & 255, code & PART


def _nan(code: Integers) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return code & ~SIGN > INFINITY


def _zeros(code: Integers) -> Integers:
    return np.zeros_like(code)


def _code(value: Integers, exponent: Integers) -> Integers:
    """The f32 code of value 2^LOWEST 2^exponent, cut towards zero; 0 below 2^-126.

    `value` lies in 0 .. 2^52, so that a double holds it: 29 bits of its significand are cut.
    """
    double = value.astype(np.float64).view(np.int64)
    result = (double >> 52 - FRACTION) + (exponent + LOWEST + BIAS - 1023 << FRACTION)
    return np.where((value == 0) | (result < LEADING), 0, result)


def _fixed_point(code: Integers, bits: int) -> Integers:
    """|x| with `bits` bits after the point, cut; right where |x| < 2^30, and so far alone callers use it."""
    _, exponent, fraction = _parts(code)
    significand = np.where(exponent == 0, 0, fraction | LEADING)
    shift = exponent - BIAS - FRACTION + bits
    return significand << np.clip(shift, 0, 32) >> np.clip(-shift, 0, 63)


def _angle(code: Integers) -> tuple[Integers, Integers]:
    """Quadrant and place in it of an angle in revolutions; no angle of 2^TURN or more has a part of a
    turn."""
    _, exponent, _ = _parts(code)
    # Bits of an angle that sine and cosine use, in revolutions: two for the quadrant, 23 for the place in
    # it.
    turn_bits = 25
    turn = np.where(exponent < BIAS + turn_bits, _fixed_point(code, turn_bits), 0) & (1 << turn_bits) - 1
    return turn >> FRACTION, turn & PART


def _sine_of_quadrant(
    tables: AnyMapping[str, Table], code: Integers, quadrant: Integers, place: Integers, sign: Integers
) -> Integers:
    """The sine in a quadrant: mirrored in an odd one by the complement of the place, negative in the last
    two."""
    place = np.where(quadrant & 1, ~place & PART, place)
    result = _code(tables["sin"].interpolate(_zeros(code), place), _zeros(code))
    result |= (quadrant >> 1 & 1 ^ sign) << 31
    return np.where(code >> FRACTION & 255 == 255, NAN, result)
