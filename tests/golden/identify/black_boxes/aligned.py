"""Plain Python units with one aligned sum, written from the papers' words in exact fractions: black boxes for
the tests of golden.dissect, which never reads this file."""

from fractions import Fraction
from math import floor

import numpy as np

NAN, PLUS, MINUS = "nan", "inf", "-inf"


def read(code, exponent_bits, fraction_bits):
    """A code of an IEEE format as (value, exponent); specials as words."""
    sign = -1 if code >> (exponent_bits + fraction_bits) & 1 else 1
    e = code >> fraction_bits & ((1 << exponent_bits) - 1)
    f = code & ((1 << fraction_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    if e == (1 << exponent_bits) - 1:
        return (NAN if f else PLUS if sign > 0 else MINUS), 0
    if e == 0:
        return sign * Fraction(f) * Fraction(2) ** (1 - bias - fraction_bits), 1 - bias
    return sign * (Fraction(f) / 2**fraction_bits + 1) * Fraction(2) ** (e - bias), e - bias


def cut(value, place):
    """Toward zero at 2**place."""
    steps = abs(value) / Fraction(2) ** place
    return floor(steps) * Fraction(2) ** place * (1 if value >= 0 else -1)


def write_f32(value, nearest):
    """The f32 code of a fraction: ties to even, or toward zero; beyond the range infinity; no -0."""
    if value == 0:
        return 0
    sign, size = (0x80000000 if value < 0 else 0), abs(value)
    e = -126
    while size >= Fraction(2) ** (e + 1):
        e += 1
    units = size / Fraction(2) ** (e - 23)
    whole = floor(units)
    rest = units - whole
    if nearest and (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1)):
        whole += 1
    if whole == 0:
        return 0
    code = whole if e == -126 else ((e + 126) << 23) + whole
    return sign | min(code, 0x7F800000)


def special(terms):
    """NaN or an infinity where a term is one, else None."""
    if NAN in terms or (PLUS in terms and MINUS in terms):
        return 0x7FC00001
    return 0x7F800000 if PLUS in terms else 0xFF800000 if MINUS in terms else None


def product(x, y):
    """Of two numbers or words."""
    if NAN in (x, y):
        return NAN
    if isinstance(x, str) or isinstance(y, str):
        if x == 0 or y == 0:
            return NAN
        minus = (x == MINUS or (not isinstance(x, str) and x < 0)) != (
            y == MINUS or (not isinstance(y, str) and y < 0)
        )
        return MINUS if minus else PLUS
    return x * y


def one(a, b, c, bits, nearest, late):
    """One dot product of f16 and c in f32: all terms cut to `bits` below the largest exponent."""
    pairs = [(read(int(x), 5, 10), read(int(y), 5, 10)) for x, y in zip(a, b, strict=True)]
    terms = [(product(x[0], y[0]), x[1] + y[1]) for x, y in pairs]
    addend = read(int(c), 8, 23)
    found = special([value for value, _ in [*terms, addend]])
    if found is not None:
        return found

    def total(numbers):
        live = [exponent for value, exponent in numbers if value]
        if not live:
            return Fraction(0), None
        return sum(cut(value, max(live) - bits) for value, _ in numbers), max(live)

    if not late:
        return write_f32(total([*terms, addend])[0], nearest)
    dot = write_f32(total(terms)[0], True)
    return write_f32(read(dot, 8, 23)[0] + addend[0], True) if dot & 0x7FFFFFFF < 0x7F800000 else dot


def seventeen(a, b, c):
    """17 fraction bits, results to nearest."""
    return np.array([one(*row, 17, True, False) for row in zip(a, b, c, strict=True)], np.uint32)


def twenty_eight(a, b, c):
    """28 fraction bits, results toward zero."""
    return np.array([one(*row, 28, False, False) for row in zip(a, b, c, strict=True)], np.uint32)
