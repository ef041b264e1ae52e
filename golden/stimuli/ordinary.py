"""Kinds without a special place: uniform bits, numbers near one, over the whole range, at one exponent, at
one k."""

from __future__ import annotations

import numpy as np

from golden.stimuli.codes import Bits, encode, highest_exponent, lowest_exponent, tiniest_exponent
from golden.stimuli.draw import Draw


def random_bits(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Uniform random codes everywhere, infinities and NaNs included."""
    for name, codes in draw.scales.items():
        codes[...] = draw.raw(draw.unit.formats[name], codes.shape)
    return draw.raw(draw.a, draw.shape), draw.raw(draw.b, draw.shape), draw.raw(draw.c, (draw.count,))


def narrow(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Exponents within two binades of one: every addend overlaps every other, carries and roundings of
    everyday data."""
    low, high = (
        [int(np.clip(e, lowest_exponent(fmt), highest_exponent(fmt))) for fmt in (draw.a, draw.b)]
        for e in (-2, 2)
    )
    a = draw.numbers(draw.a, draw.pick(low[0], high[0], draw.shape))
    b = draw.numbers(draw.b, draw.pick(low[1], high[1], draw.shape))
    return a, b, draw.numbers(draw.c, draw.pick(-4, 4 + draw.k.bit_length(), (draw.count,)))


def wide(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Exponents over each format's whole finite range: large shifts, addends lost entirely."""
    draw.random_scales()
    a, b = (
        draw.numbers(fmt, draw.pick(tiniest_exponent(fmt), highest_exponent(fmt), draw.shape))
        for fmt in (draw.a, draw.b)
    )
    low, high = max(draw.tiniest - 8, tiniest_exponent(draw.c)), min(draw.high + 8, highest_exponent(draw.c))
    size = (draw.count,)
    near, anywhere = draw.pick(min(low, high), high, size), draw.of_any_size(draw.c)
    return a, b, draw.numbers(draw.c, np.where(draw.coins(size) == 1, near, anywhere))


def equal_exponents(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """All products at one exponent, many with all-ones significands and one sign: the sum register's
    integer bits."""
    row = (draw.count, 1)
    exponent_a = draw.pick(lowest_exponent(draw.a), highest_exponent(draw.a), row)
    exponent_b = draw.pick(lowest_exponent(draw.b), highest_exponent(draw.b), row)
    full, same = draw.chance(0.5, row), draw.chance(0.5, row)
    operands = []
    for fmt, exponent in ((draw.a, exponent_a), (draw.b, exponent_b)):
        fraction = np.where(full, np.uint64(0xFFFFFFFFFFFFFFFF), draw.fraction(draw.shape))
        sign = np.where(same, 0, draw.coins(draw.shape))
        operands.append(encode(fmt, sign, np.broadcast_to(exponent, draw.shape), fraction))
    c = draw.numbers(draw.c, (exponent_a + exponent_b)[:, 0] + draw.pick(-1, 1, (draw.count,)))
    c = np.where(draw.chance(0.3, (draw.count,)), draw.zeros(draw.c, (draw.count,)), c)
    return draw.mirrored(operands[0], operands[1], c)


def one_hot(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """A single non-zero product at a random k, often with a zero c:
    wiring of k, products and conversions alone."""
    a = np.zeros(draw.shape, draw.a.dtype)
    place = draw.pick(0, draw.k - 1, (draw.count, 1))
    exponent = draw.pick(lowest_exponent(draw.a), highest_exponent(draw.a), (draw.count, 1))
    value = encode(draw.a, draw.coins((draw.count, 1)), exponent, draw.fraction((draw.count, 1)))
    np.put_along_axis(a, place, value, axis=1)
    b = draw.numbers(draw.b, draw.pick(lowest_exponent(draw.b), highest_exponent(draw.b), draw.shape))
    if draw.b.bits == 1:
        b = np.ones(draw.shape, draw.b.dtype)
    c = draw.numbers(draw.c, draw.pick(draw.low, min(draw.high, highest_exponent(draw.c)), (draw.count,)))
    return a, b, np.where(draw.chance(0.6, (draw.count,)), draw.zeros(draw.c, (draw.count,)), c)
