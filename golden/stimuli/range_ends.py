"""Kinds at the ends of the exponent range: subnormal operands, products and results, overflow and the
widest sum."""

from __future__ import annotations

import numpy as np

from golden.number.formats import Format, to_float
from golden.stimuli.cancellation import negative_sum
from golden.stimuli.codes import (
    Bits,
    Ints,
    encode,
    highest_exponent,
    lowest_exponent,
    magnitudes,
    negate,
    sign_bit,
    tiniest_exponent,
)
from golden.stimuli.draw import Draw


def subnormal(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Subnormal a, b or c against ordinary partners:
    flushing, and products whose significand starts with zeros."""
    a = draw.numbers(draw.a, draw.pick(tiniest_exponent(draw.a), lowest_exponent(draw.a), draw.shape))
    b_high = np.where(draw.chance(0.3, draw.shape), lowest_exponent(draw.b), highest_exponent(draw.b))
    b = draw.numbers(draw.b, draw.pick(tiniest_exponent(draw.b), b_high, draw.shape))
    if draw.a.dtype == draw.b.dtype and draw.a == draw.b:
        swap = draw.chance(0.5, draw.shape)
        a, b = np.where(swap, b, a), np.where(swap, a, b)
    tiny_c = draw.numbers(
        draw.c, draw.pick(tiniest_exponent(draw.c), lowest_exponent(draw.c) + 1, (draw.count,))
    )
    return a, b, np.where(draw.chance(0.3, (draw.count,)), draw.zeros(draw.c, (draw.count,)), tiny_c)


def tiny_zero_c(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Tiny products with a zero (or least subnormal) c: the floor of the alignment exponent,
    signs of zero results; in some rows all terms are negative."""
    near_d = lowest_exponent(draw.d) + draw.pick(-16, 2, (draw.count, 1))
    near_least = draw.tiniest + draw.pick(0, 12, (draw.count, 1))
    target = np.where(draw.chance(0.5, (draw.count, 1)), near_d, near_least) + draw.pick(-3, 0, draw.shape)
    a, b = draw.products(target, normal=False)
    a = np.where(draw.chance(0.3, draw.shape), draw.zeros(draw.a, draw.shape), a)
    least = draw.powers(draw.c, np.full(draw.count, tiniest_exponent(draw.c)), draw.coins((draw.count,)))
    c = np.where(draw.chance(0.7, (draw.count,)), draw.zeros(draw.c, (draw.count,)), least)
    if not all(fmt.is_float and fmt.signed for fmt in (draw.a, draw.b, draw.c)):
        return a, b, c
    a, b, c = draw.all_below_zero(draw.chance(0.15, (draw.count,)), a, b, c)
    return (a, b, c) if draw.scales else _below_one_that_cancels(draw, a, b, c)


def _below_one_that_cancels(draw: Draw, a: Bits, b: Bits, c: Bits) -> tuple[Bits, Bits, Bits]:
    """In a tenth of the rows of tiny products one that is larger, all but the last place of which cancels
    with c: where what is left is flushed, -0 meets what the others, all negative, were flushed to."""
    rows = draw.chance(0.1, (draw.count,))
    larger = draw.products(lowest_exponent(draw.d) + draw.pick(0, 3, (draw.count, 1)))
    a[rows, :1], b[rows, :1] = (codes[rows] for codes in larger)
    a, b, c = draw.all_below_zero(rows, a, b, c)
    against = negative_sum(draw, a, b, first_only=True)  # of a product, whose last bits are zero
    less = against - (magnitudes(draw.c, against) > 0)
    a, b = draw.shuffle(a, b)
    return a, b, np.where(rows, less.astype(draw.c.dtype), c)


def near_overflow(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Totals around D's largest number: c at the top, products from half its last place to its own size."""
    top = highest_exponent(draw.d)
    distance = np.where(
        draw.chance(0.5, (draw.count, 1)),
        draw.pick(draw.kept_bits - 1, draw.kept_bits + 3, (draw.count, 1)),
        draw.pick(0, draw.k.bit_length() + 1, (draw.count, 1)),
    )
    a, b = draw.products(top - distance - draw.pick(0, 2, draw.shape))
    same_sign = draw.chance(0.6, (draw.count, 1))
    for array, fmt in ((a, draw.a), (b, draw.b)):
        if fmt.signed and fmt.is_float:
            array[...] = np.where(same_sign, magnitudes(fmt, array), array)
    size = (draw.count,)
    fraction = np.uint64(0xFFFFFFFFFFFFFFFF) << draw.pick(0, 44, size).astype(np.uint64)
    c = encode(draw.c, draw.chance(0.2, size).astype(np.int64), top - draw.chance(0.3, size), fraction)
    floats = all(fmt.is_float and fmt.signed for fmt in (draw.a, draw.c)) and draw.b.is_float
    if floats and draw.high > top and not draw.scales and "c" not in draw.unit.absent:
        _put_beyond_the_range(draw, a, b, c)
    return draw.mirrored(a, b, c)


def _put_beyond_the_range(draw: Draw, a: Bits, b: Bits, c: Bits) -> None:
    """In some rows one product in the binade above D's largest number, which c brings back: of these one in
    two is no overflow, though its product is."""
    share = 0.1
    rows, top = np.flatnonzero(draw.chance(share, (draw.count,))), highest_exponent(draw.d)
    exponents = draw.split(np.full(rows.shape, top + 1), draw.a, draw.b)
    column, minus = draw.pick(0, draw.k - 1, rows.shape), draw.coins(rows.shape)
    a[rows] = 0
    for codes, fmt, exponent in zip((a, b), (draw.a, draw.b), exponents, strict=True):
        codes[rows, column] = magnitudes(fmt, draw.numbers(fmt, exponent))
    a[rows, column] |= sign_bit(draw.a) * minus.astype(draw.a.dtype)
    c[rows] = encode(draw.c, 1 - minus, np.full(rows.shape, top), draw.fraction(rows.shape))


def subnormal_product(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Products below D's normal range or of two subnormals, c of their size:
    products that a unit may flush."""
    row = (draw.count, 1)
    below_d = lowest_exponent(draw.d) - draw.pick(1, draw.d.fraction_bits + 2, row)
    least = draw.tiniest + draw.pick(0, draw.a.fraction_bits + draw.b.fraction_bits, row)
    middle = np.where(draw.chance(0.5, row), below_d, least)
    a, b = draw.products(middle + draw.pick(-1, 1, draw.shape), normal=False)
    near = np.maximum(middle[:, 0], draw.tiniest) + draw.pick(-2, 4, (draw.count,))
    c = draw.numbers(draw.c, np.clip(near, tiniest_exponent(draw.c), highest_exponent(draw.c)))
    return (
        _some_zeroed(draw, a),
        b,
        np.where(draw.chance(0.3, (draw.count,)), draw.zeros(draw.c, (draw.count,)), c),
    )


def subnormal_result(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Totals in D's subnormal range, from tiny addends or where larger products cancel: denormalising and
    its rounding."""
    size = (draw.count,)
    exponent = draw.pick(tiniest_exponent(draw.d), lowest_exponent(draw.d), size)
    pairs = draw.chance(0.4, size) | (exponent < draw.tiniest)
    target = np.where(
        pairs[:, None], draw.pick(draw.low, min(draw.low + 8, draw.high), draw.shape), exponent[:, None]
    )
    a, b = draw.products(target + draw.pick(-3, 0, draw.shape), normal=False)
    a = np.where(pairs[:, None], a, _some_zeroed(draw, a))
    half = draw.k // 2
    a[pairs, 2 * half :] = 0
    a[pairs, half : 2 * half], b[pairs, half : 2 * half] = a[pairs, :half], b[pairs, :half]
    if draw.a.signed:
        a[pairs, half : 2 * half] = negate(draw.a, a[pairs, :half])
    else:
        b[pairs, half : 2 * half] = negate(draw.b, b[pairs, :half])
    a[pairs & draw.chance(0.7, size)] = (
        0  # c alone: where products are aligned with it, they would push it out
    )
    c = draw.numbers(draw.c, np.maximum(exponent, tiniest_exponent(draw.c)))
    zero = draw.chance(0.2, size) & ~pairs
    a, b = draw.shuffle(a, b)
    c = np.where(zero, draw.zeros(draw.c, size), c)
    return _at_least_normal(draw, a, b, c) if draw.unit.status else (a, b, c)


def _at_least_normal(draw: Draw, a: Bits, b: Bits, c: Bits) -> tuple[Bits, Bits, Bits]:
    """In half of the rows one product right at D's least normal number, where the rules for tiny numbers
    differ: only status flags show it, and no other kind comes so close by chance."""
    if not (draw.a.is_float and draw.b.is_float and draw.d.is_float and draw.b.fraction_bits) or draw.scales:
        return a, b, c
    rows = np.flatnonzero(draw.chance(0.5, (draw.count,)))
    _put_nearly(draw, a, b, rows, np.full(len(rows), lowest_exponent(draw.d)))
    c[rows] = draw.zeros(draw.c, rows.shape)
    return a, b, c


def _put_nearly(draw: Draw, a: Bits, b: Bits, rows: Ints, exponent: Ints) -> None:
    """Puts into each of these rows one product that is 2^exponent except for its last bits, and zeros around
    it."""
    exponent_a, exponent_b = draw.split(exponent - 1, draw.a, draw.b)
    x = draw.numbers(draw.a, exponent_a)
    mantissa = np.maximum(np.abs(np.frexp(to_float(draw.a, x))[0]), 0.5)  # its reciprocal is 1 to 2
    fraction = (np.minimum(1 / mantissa - 1, 1 - 2.0**-53) * 2.0**64).astype(np.uint64)
    y = encode(draw.b, draw.coins(x.shape), exponent_b, fraction)
    step = draw.pick(-1, 1, x.shape) << draw.b.ignored_low
    column = draw.pick(0, draw.k - 1, x.shape)
    a[rows], a[rows, column] = 0, x
    moved = (y.astype(np.int64) + step).astype(np.uint64).astype(draw.b.dtype)
    # A step beyond the last code of a format that leaves bits of its word unused is none.
    b[rows, column] = np.where(moved > np.uint64((1 << draw.b.bits) - 1), y.astype(draw.b.dtype), moved)


def _some_zeroed(draw: Draw, a: Bits) -> Bits:
    """Keeps one to all of the elements of every row, zeroes the others."""
    density = draw.choice([1 / draw.k, 2 / draw.k, 0.5, 1.0], (draw.count, 1))
    first = np.arange(draw.k) == draw.pick(0, draw.k - 1, (draw.count, 1))
    return np.where(first | draw.chance(density, draw.shape), a, np.zeros((), a.dtype))


def widest_sum(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """The largest significands of one sign at one exponent, scales and c included: every integer bit of
    the sum."""
    row, size, ones = (draw.count, 1), (draw.count,), np.uint64((1 << 64) - 1)
    minus = draw.coins(row)
    total = np.zeros(row, np.int64)

    def largest(fmt: Format, sign: Bits, shape: tuple[int, ...], low: int, high: int) -> Bits:
        exponent = np.where(draw.chance(0.3, row), high, draw.pick(low, high, row))
        total[...] += exponent
        return encode(
            fmt, np.broadcast_to(sign, shape), np.broadcast_to(exponent, shape), np.full(shape, ones)
        )

    a = largest(draw.a, minus, draw.shape, lowest_exponent(draw.a), highest_exponent(draw.a))
    b = largest(draw.b, 0 * minus, draw.shape, lowest_exponent(draw.b), highest_exponent(draw.b))
    for name, codes in draw.scales.items():
        codes[...] = largest(draw.unit.formats[name], 0 * minus, codes.shape, -2, 2)
    c = encode(draw.c, minus[:, 0], total[:, 0] + draw.pick(0, 2, size), np.full(size, ones))
    c = np.where(draw.chance(0.2, size), draw.zeros(draw.c, size), c)
    if not draw.a.is_float and draw.a.signed and draw.b.signed:
        least = draw.chance(0.3, row)  # of two's complement its square is the largest product
        a, b = (np.where(least, _least(fmt), codes) for fmt, codes in ((draw.a, a), (draw.b, b)))
    return a, b, c


def _least(fmt: Format) -> Bits:
    return np.asarray(fmt.dtype.type(1 << (fmt.bits - 1)))


def beside_least(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Totals next to the least normal number of D, or of a step that rounds, by about its last place or much
    less: what is tiny before it is rounded may not be so after. That number is c or one product, and another
    product takes the little from it or adds it; or one product is nearly that number."""
    size, formats = (draw.count,), rounded_to(draw)
    which = draw.pick(0, len(formats) - 1, size)
    least = np.array([lowest_exponent(fmt) for fmt in formats])[which]
    below = least - np.array([fmt.fraction_bits for fmt in formats])[which] - draw.pick(0, 4, size)
    in_c = draw.chance(0.4, size) | (draw.k == 1)
    place, in_first = np.arange(draw.k), in_c[:, None]
    target = np.where((place == 0) & ~in_first, least[:, None], below[:, None])
    (sharp_a, sharp_b), (a, b) = (draw.products(target, normal=False, exact=exact) for exact in (True, False))
    whole = (place == 0) & ~in_first
    a, b = np.where(whole, sharp_a, a), np.where(whole, sharp_b, b)
    a = np.where((place == 0) | ((place == 1) & ~in_first), a, np.zeros((), draw.a.dtype))
    if draw.a.signed:
        a = np.where(draw.chance(0.5, draw.shape), negate(draw.a, a), a)
    c = np.where(in_c, draw.powers(draw.c, least, draw.coins(size)), draw.zeros(draw.c, size))
    if all(fmt.is_float for fmt in (draw.a, draw.b)) and draw.b.fraction_bits and not draw.scales:
        rows = np.flatnonzero(~in_c & draw.chance(0.5, size))
        _put_nearly(draw, a, b, rows, least[rows])
    return (*draw.shuffle(a, b), c)  # type: ignore[return-value]


def rounded_to(draw: Draw) -> list[Format]:
    """D, and the formats that steps round to."""
    operations = () if draw.program is None else draw.program.operations
    steps = [step for one in operations for step in one.steps]
    formats = [getattr(step, "format", None) for step in steps]
    return list(dict.fromkeys([draw.d, *(fmt for fmt in formats if fmt is not None and fmt.is_float)]))
