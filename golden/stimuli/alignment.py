"""Kinds whose addends lie as far apart as the alignment reaches: the last kept bit and the first cut one."""

from __future__ import annotations

import numpy as np

from golden.stimuli.codes import Bits, Ints, highest_exponent, lowest_exponent
from golden.stimuli.draw import Draw


def c_dominant(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """c above all products, by nothing up to past the alignment width: products cut against c."""
    width = min(6, draw.high - draw.low)
    top = draw.pick(
        min(draw.low + width, draw.high), max(min(draw.high, 16), draw.low + width), (draw.count, 1)
    )
    a, b = draw.products(draw.pick(top - width, top, draw.shape))
    return (
        a,
        b,
        draw.numbers(draw.c, top[:, 0] + draw.pick(0, int(draw.window_bits.max()) + 6, (draw.count,))),
    )


def alignment_edge(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """One large addend, the others shifted just to the last kept bit and beyond: the alignment width F,
    cut bits."""
    size = (draw.count,)
    distance = draw.choice(draw.window_bits, (draw.count, 1)) + draw.pick(-6, 3, draw.shape)
    c_is_top = draw.chance(0.5, size)
    reach = int(draw.window_bits.max()) + 4
    top = draw.pick(min(draw.low + reach, draw.high), draw.high, size)
    top = np.where(
        c_is_top, np.clip(draw.pick(draw.low, draw.high + reach, size), None, highest_exponent(draw.c)), top
    )
    target = top[:, None] - distance
    place = draw.pick(0, draw.k - 1, size)
    target = np.where((np.arange(draw.k) == place[:, None]) & ~c_is_top[:, None], top[:, None], target)
    a, b = draw.products(target, normal=False)
    dropped = draw.chance(0.7, draw.shape) & (np.arange(draw.k) != place[:, None])
    a = np.where(dropped, np.zeros((), draw.a.dtype), a)
    c = draw.numbers(draw.c, np.where(c_is_top, top, top - distance[:, 0]))
    return a, b, c


def alignment_one_term(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """One term exactly F-1, F, F+1 or F+2 binades below one other, nothing else: the last kept and the
    first cut bit."""
    size = (draw.count,)
    distance = draw.choice(draw.window_bits, (draw.count,)) + draw.pick(-1, 2, size)
    c_low, c_high = lowest_exponent(draw.c), highest_exponent(draw.c)
    against_c, small = (
        np.clip(draw.pick(draw.low, draw.high, size), c_low - distance, c_high - distance),
        draw.chance(0.5, size),
    )
    above_c = np.maximum(draw.pick(draw.low, draw.high, size), np.minimum(c_low + distance, draw.high))
    above_product = draw.pick(np.minimum(draw.tiniest + distance, draw.high), draw.high, size)
    with_c = draw.chance(0.6, size) if draw.k > 1 else np.ones(draw.count, bool)
    main = np.where(with_c, np.where(small, against_c, above_c), above_product)
    place = draw.pick(0, draw.k - 1, size)
    other = (place + draw.pick(1, max(draw.k - 1, 1), size)) % draw.k
    columns = np.arange(draw.k)
    second = (columns == other[:, None]) & ~with_c[:, None]
    a, b = _sharp(draw, np.where(second, (main - distance)[:, None], main[:, None]))
    a = np.where(second | (columns == place[:, None]), a, np.zeros((), draw.a.dtype))
    c = draw.numbers(draw.c, np.where(small, main + distance, main - distance))
    return draw.mirrored(a, b, np.where(with_c, c, draw.zeros(draw.c, size)))


def _sharp(draw: Draw, target: Ints) -> tuple[Bits, Bits]:
    """Products at the target exponents, in half of the rows powers of two:
    a single bit that is kept or cut."""
    rough, exact = draw.products(target, normal=False), draw.products(target, normal=False, exact=True)
    single = draw.chance(0.5, (draw.count, 1))
    return np.where(single, exact[0], rough[0]), np.where(single, exact[1], rough[1])
