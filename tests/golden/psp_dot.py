"""The dot product of the PSP's vector unit: as a unit of the language, and in exact rationals from its
description alone.

Four products of f32 and no addend. Subnormal operands and zeros are +0. Each product is kept to 25 fraction
bits at the exponent e_a + e_b, rounded to odd; the products are aligned to the largest and cut; the sum loses
two bits and is rounded to nearest, ties to even. Below 2^-126 it is a zero of its sign; a sum of which the
cut leaves nothing is +0. A NaN is 0x7f800001.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

PSP = """unit: psp_dot
shape: {k: 4}
formats: {a: f32, b: f32, d: f32}
steps:
  - flush: {of: [a, b], sign: positive}
  - multiply: {to: products}
  - special_values: {of: products, nan: 0x7F800001}
  - align: {of: products, group: {contiguous: 1}, fraction_bits: 25, rounding: to_odd}
  - align: {of: products, fraction_bits: 25, rounding: toward_zero}
  - sum: {of: products, to: total}
  - align: {of: total, fraction_bits: 23, rounding: toward_zero}
  - round: {of: total, rounding: nearest_even, overflow: infinity, flush: signed, tiny: unbounded,
            zero: signed_underflow}
"""
NAN, INFINITY = 0x7F800001, 0x7F800000
_KEPT, _LOST = 25, 2


def _fields(code: int) -> tuple[int, int, int]:
    return code >> 31, code >> 23 & 0xFF, code & 0x7FFFFF


def psp_dot(a: Sequence[int], b: Sequence[int]) -> int:
    """The result for f32 codes a and b (4)."""
    infinities, terms = set(), []
    for (sx, ex, fx), (sy, ey, fy) in zip(map(_fields, a), map(_fields, b), strict=True):
        if (ex == 255 and fx) or (ey == 255 and fy):
            return NAN
        if 255 in (ex, ey):
            if 0 in (ex, ey):  # infinity times zero
                return NAN
            infinities.add(sx ^ sy)
        elif ex and ey:
            e = ex + ey - 254
            exact = Fraction((fx | 1 << 23) * (fy | 1 << 23), 1 << (46 - _KEPT))
            kept = int(exact)  # units of 2^(e - 25)
            terms.append((e, kept if exact == kept else kept | 1, sx ^ sy))
    if infinities:
        return NAN if len(infinities) == 2 else INFINITY | infinities.pop() << 31
    if not terms:
        return 0
    top = max(e for e, _, _ in terms)
    total = sum((-1) ** sign * (kept >> (top - e)) for e, kept, sign in terms)
    sign, rest = int(total < 0), abs(total) >> _LOST  # units of 2^(top - 23)
    if not rest:
        return 0
    more = max(rest.bit_length() - 24, 0)  # bits below the last place of f32
    whole, low = rest >> more, rest & ((1 << more) - 1)
    half = 1 << more >> 1
    whole += low > half or (more > 0 and low == half and whole & 1)
    size = Fraction(whole << more) * Fraction(2) ** (top - 23)
    if size < Fraction(2) ** -126:
        return sign << 31
    if size >= Fraction(2) ** 128:
        return INFINITY | sign << 31
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    fraction = size / Fraction(2) ** exponent * (1 << 23) - (1 << 23)
    assert fraction.denominator == 1, "24 bits of a number that is not subnormal are an f32"
    return sign << 31 | (exponent + 127) << 23 | int(fraction)
