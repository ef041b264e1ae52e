"""Kinds whose results lie between two numbers, or next to one:
rounding mode, sticky bits, double rounding."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from golden.number.formats import Format
from golden.program.steps import Align
from golden.stimuli.codes import (
    Bits,
    Ints,
    encode,
    highest_exponent,
    is_minus,
    lowest_exponent,
    negate,
    one,
    tiniest_exponent,
)
from golden.stimuli.draw import Draw


def tie(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Totals exactly between two results, or off by one tiny addend: rounding mode, sticky bits, double
    rounding. Some addends are two bits in a row or carry, below all that an alignment keeps: a shift that
    ends too early keeps the carry alone."""
    size, drop = (draw.count,), draw.kept_bits + 1
    least, most = draw.tiniest + drop, draw.high + drop
    low, high = max(lowest_exponent(draw.c), least), min(highest_exponent(draw.c), most)
    exponent = draw.pick(min(low, high), high, size)
    wanted = np.where(
        draw.chance(0.7, size), np.clip(exponent, max(low, -6), max(low, min(high, 18))), exponent
    )
    target = np.full(draw.shape, draw.tiniest - 2)
    target[:, 0] = wanted - drop
    a, b = draw.products(target, normal=False, exact=True)
    neighbour = draw.pick(1, max(draw.k - 1, 1), size) if draw.k > 1 else np.zeros(size, np.int64)
    keep = np.arange(draw.k) == 0
    tiny = (np.arange(draw.k) == neighbour[:, None]) & draw.chance(0.4, size)[:, None]
    a = np.where(keep | tiny, a, np.zeros((), draw.a.dtype))
    below = draw.pick(draw.low + 1, wanted - int(draw.window_bits.max()) - 1, size)
    two = tiny.any(axis=1) & draw.chance(0.6, size)
    _put_two_bits(draw, a, b, below, np.where(two, neighbour, -1))
    a = np.where(draw.chance(0.4, draw.shape), negate(draw.a, a), a)
    c = encode(draw.c, draw.coins(size), wanted, draw.fraction(size) & _fraction_mask(draw))
    return (*draw.shuffle(a, b), c)  # type: ignore[return-value]


def _fraction_mask(draw: Draw) -> np.uint64:
    """The bits of a fraction that D has, highest first."""
    return np.uint64((1 << 64) - (1 << (64 - min(draw.kept_bits, 63)))) if draw.kept_bits else np.uint64(0)


def half_ulp(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """c plus or minus half a unit of its last place, alone or with one bit more or less at every weight
    below it."""
    size, drop = (draw.count,), draw.kept_bits + 1
    depth = max(int(draw.window_bits.max()) - draw.kept_bits, 1) + 2
    low, high = (edge + drop for edge in (draw.tiniest, draw.high))
    low, high = max(lowest_exponent(draw.c), min(low + depth, high)), min(highest_exponent(draw.c), high)
    exponent = draw.pick(min(low, high), high, size)
    target = np.repeat(exponent[:, None] - drop, draw.k, axis=1)
    if draw.k > 1:
        target[:, 1] -= draw.pick(1, depth, size)
    a, b = draw.products(target, normal=False, exact=True)
    live = np.arange(draw.k) < np.where(draw.chance(0.3, size), 1, 2)[:, None]
    a = np.where(
        live, np.where(draw.chance(0.5, draw.shape), negate(draw.a, a), a), np.zeros((), draw.a.dtype)
    )
    c = encode(draw.c, draw.coins(size), exponent, draw.fraction(size) & _fraction_mask(draw))
    return (*draw.shuffle(a, b), c)  # type: ignore[return-value]


def round_up(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Just below a power of two, the least normal among them: c with all ones and half a place, or 1 minus
    a half place."""
    size, drop = (draw.count,), draw.kept_bits + 1
    lowest, highest = lowest_exponent(draw.d), min(highest_exponent(draw.d), highest_exponent(draw.c))
    at_least = draw.chance(0.4, size)
    last = np.where(
        at_least, lowest, draw.pick(max(draw.tiniest + drop, lowest), min(draw.high + drop, highest), size)
    )
    pair = draw.chance(0.3 if draw.k > 1 else 0.0, size)
    top = np.maximum(draw.pick(draw.low, draw.high, size), np.minimum(draw.tiniest + drop + 1, draw.high))
    target = np.repeat(np.where(pair, top, last - drop)[:, None], draw.k, axis=1)
    target[:, 1:] = np.where(pair[:, None], (top - drop - 1)[:, None], target[:, 1:])
    alone = ~pair & draw.chance(0.25, size)  # without c: what is lost below D's last place
    exact, rough = draw.products(target, normal=False, exact=True), draw.products(target, normal=False)
    inexact = (alone & draw.chance(0.5, size))[:, None]
    a, b = (np.where(inexact, loose, sharp) for loose, sharp in zip(rough, exact, strict=True))
    place = np.arange(draw.k)
    a = np.where((place == 0) | (pair[:, None] & (place == 1)), a, np.zeros((), draw.a.dtype))
    minus = draw.coins(size)
    signs = np.where(place == 0, minus[:, None], 1 - minus[:, None])
    if draw.a.signed:
        a = np.where(signs == 1, negate(draw.a, a), a)
    else:
        b = np.where(signs == 1, negate(draw.b, b), b)
    ones = np.uint64((1 << 64) - 1) << np.uint64(64 - max(draw.kept_bits, 1))
    c = encode(draw.c, minus, np.where(at_least, lowest - 1, last), np.full(size, ones))
    c = np.where(pair | alone, draw.zeros(draw.c, size), c)
    # Moved by even distances: the two products of a pair stay neighbours, as an adder tree has them.
    order = (
        place + np.where(pair, 2 * draw.pick(0, draw.k // 2, size), draw.pick(0, draw.k, size))[:, None]
    ) % draw.k
    return (*draw.in_order(order, a, b), c)  # type: ignore[return-value]


def below_power(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """c a power of two, less half a unit (or 3 or 5 halves) of the binade below, and one bit more or less
    at any weight."""
    size = (draw.count,)
    half, least = draw.kept_bits + 2, int(draw.window_bits.max()) + 2
    low, high = draw.tiniest + least, draw.high + half - 3
    low, high = max(lowest_exponent(draw.c), min(low, high)), min(highest_exponent(draw.c), high)
    exponent = draw.pick(min(low, high), high, size)
    minus = draw.coins(size)
    weight = draw.pick(min(half + 1, least), least, size)
    exponents = [exponent - half, exponent - half + draw.pick(1, 2, size), exponent - weight]
    signs = [1 - minus, 1 - minus, draw.coins(size)]
    a, b = _few_powers(
        draw, exponents, signs, [np.ones(size, bool), draw.chance(0.6, size), draw.chance(0.8, size)]
    )
    if draw.k == 1:
        # No other product adds bits to the half unit: this one has them, from half of the half to twice it;
        # or the half unit and one bit of a, at any weight that a has.
        more, single = draw.chance(0.7, size), draw.chance(0.4, size) & draw.a.is_float
        target = exponent - half - np.where(single, 0, draw.pick(0, 1, size))
        x, y = draw.products(target[:, None], normal=False)
        of_a, of_b = draw.split(target, draw.a, draw.b)
        digits = draw.pick(2, draw.a.fraction_bits + 1, size)
        bit = np.uint64(1) << (np.uint64(65) - digits.astype(np.uint64))
        x = np.where(single[:, None], encode(draw.a, 1 - minus, of_a, bit)[:, None], x)
        y = np.where(single[:, None], draw.powers(draw.b, of_b)[:, None], y)
        a, b = np.where(more[:, None], x, a), np.where(more[:, None], y, b)
    return a, b, draw.powers(draw.c, exponent, minus)


def product_tie(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """One product with a bit or two more than D keeps (or all that the factors have): its rounding, ties
    first. c is zero, or where nothing cuts it, it decides the tie from any distance below."""
    size = (draw.count,)
    digits = draw.kept_bits + 1 + draw.pick(1, 2, size)
    of_b = np.minimum(draw.pick(1, draw.kept_bits + 1, size), draw.b.fraction_bits + 1)
    of_a = np.clip(digits - of_b, 1, draw.a.fraction_bits + 1)
    place = np.arange(draw.k) == draw.pick(0, draw.k - 1, (draw.count, 1))
    low, high = max(lowest_exponent(draw.d), draw.low), min(highest_exponent(draw.d) - 1, draw.high)
    lead = draw.pick(min(low, high), high, size)
    first, second = draw.split(lead, draw.a, draw.b)
    x, y = _of_digits(draw, draw.a, first, of_a), _of_digits(draw, draw.b, second, of_b)
    c = draw.zeros(draw.c, size)
    if "c" not in draw.unit.absent and draw.c.is_float and not draw.steps_of(Align):
        # Half of the products are no tie, since they carry or do not: these get other factors once.
        tie = _odd_part(draw.a, x) * _odd_part(draw.b, y) >> draw.kept_bits + 1 == 1
        x = np.where(tie, x, _of_digits(draw, draw.a, first, of_a))
        y = np.where(tie, y, _of_digits(draw, draw.b, second, of_b))
        c = _below_product(draw, x, y, lead)
    a = np.where(place, x[:, None], np.zeros((), draw.a.dtype))
    b = np.where(place, y[:, None], draw.b.dtype.type(one(draw.b)))
    return a, b, c


def _below_product(draw: Draw, x: Bits, y: Bits, lead: Ints) -> Bits:
    """c at any distance below the last digits of a product x * y of exponent `lead`, or zero.

    The product ends two places below D's last at most, and a shifter of c some two widths of D further down.
    """
    size = lead.shape
    below = draw.kept_bits + 1 + draw.pick(0, 2 * draw.kept_bits + 6, size)
    at = np.where(draw.chance(0.9, size), lead - below, draw.pick(tiniest_exponent(draw.c), lead, size))
    seen = draw.chance(0.8, size) & (at >= tiniest_exponent(draw.c)) & (at <= highest_exponent(draw.c))
    # A tie goes to the even digit. Mostly c has the sign that turns it: the product's own where the last
    # digit kept, which is the last but one, is even.
    last = _odd_part(draw.a, x) * _odd_part(draw.b, y) >> 1
    turns = is_minus(draw.a, x) ^ is_minus(draw.b, y) ^ last
    sign = (np.where(draw.chance(0.8, size), turns, draw.coins(size)) & 1).astype(np.uint8)
    c = encode(draw.c, sign, np.where(seen, at, lowest_exponent(draw.c)), draw.fraction(size))
    return np.where(seen, c, draw.zeros(draw.c, size))


def _odd_part(fmt: Format, codes: Bits) -> Ints:
    """The significands of normal numbers as odd integers."""
    hidden = 1 << fmt.fraction_bits
    significand = codes.astype(np.int64) & hidden - 1 | hidden
    return significand // (significand & -significand)


def _of_digits(draw: Draw, fmt: Format, exponent: Ints, length: Ints) -> Bits:
    """Numbers of `length` digits, the last of them set, counted from the leading one, of random signs; of
    1-bit formats any."""
    size = exponent.shape
    if fmt.bits == 1:
        return draw.numbers(fmt, exponent)
    words = draw.fraction(size)
    kept = np.minimum(np.uint64(65) - length.astype(np.uint64), np.uint64(63))
    last = np.where(length > 1, np.uint64(1) << kept, np.uint64(0))
    return encode(fmt, words & np.uint64(1), exponent, words & -last | last)


def floor_edge(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Products below the exponent floor: one at D's last place or half of it, one around the last bit kept
    below the floor."""
    size, last = (draw.count,), lowest_exponent(draw.d) - draw.kept_bits
    edge = draw.choice(_edges(draw), (draw.count,))
    if draw.scales and draw.k > 1:
        half, below = last + draw.pick(-1, 1, size), edge - draw.pick(-1, 3, size)
        if not any(step.floor is not None for step in draw.steps_of(Align)):
            # Nothing is cut below a floor: half of the least number meets a bit as far below as a block has.
            share = 0.6
            far = draw.chance(share, size)
            half = np.where(far, last - 1, half)
            below = np.where(far, half - draw.pick(1, draw.high - draw.tiniest, size), below)
        return far_apart(draw, half, below)
    minus = draw.coins(size)
    at = np.maximum(last + draw.choice([-3, -2, -1, -1, -1, 0, 0, 1, 2, 3], (draw.count,)), draw.tiniest)
    small = [edge + draw.pick(-1, 1, size), edge + draw.pick(-1, 1, size)]
    other = np.where(draw.chance(0.7, size), 1 - minus, minus)
    near = draw.chance(0.3, size)  # three bits in a row: remainders below and above half
    small = [np.where(near, at - step, low) for step, low in zip((1, 2), small, strict=True)]
    other = np.where(near, minus, other)
    always, often = np.ones(size, bool), draw.chance(0.3, size)
    a, b = _few_powers(draw, [at, *small], [minus, other, other], [always, always, often])
    return a, b, draw.zeros(draw.c, size)


def _edges(draw: Draw) -> list[int]:
    """The weights of the last bits that alignments with a floor keep there; without any, of half of half of
    D's last place."""
    floors = [(step.floor, step.fraction_bits) for step in draw.steps_of(Align) if step.floor is not None]
    edges = [floor - bits for floor, widths in floors for _, bits in widths]
    return edges or [lowest_exponent(draw.d) - draw.kept_bits - 2]


def between_links(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Few products at random places, c zero: a power of two, its last place, half of that, and bits around
    the last one kept next to it. half_ulp does this with c, here with the result of an earlier link."""
    size, kept = (draw.count,), draw.kept_bits
    window = draw.choice(draw.window_bits, (draw.count,))
    low, high = draw.tiniest + int(draw.window_bits.max()), min(draw.high, highest_exponent(draw.d))
    top = draw.pick(min(low, high), high, size)
    tails = [top - window - draw.pick(-3, 3, size) for _ in range(2)]
    exponents = [top, top - kept - 1, tails[0], top - kept, tails[1]]
    signs = [draw.coins(size) for _ in exponents]
    present = [draw.chance(share, size) for share in (1.0, 0.9, 0.9, 0.7, 0.3)]
    return (*_few_powers(draw, exponents, signs, present), draw.zeros(draw.c, size))


def beside_tie(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Totals halfway between two results, or halfway to the least one, and one bit at any weight below that,
    two in a row, or 1.5 * 1.5: how much of it is kept, and how it is rounded, shows in the rounding alone.
    What leads, the half of a place and the bits are a term each, one of them c or none; what leads and the
    half may be one term, too."""
    if draw.scales and draw.coins((1,))[0]:
        return _between_blocks(draw)
    size, kept = (draw.count,), draw.kept_bits
    last, highest = lowest_exponent(draw.d) - kept, min(highest_exponent(draw.d), draw.high)
    in_c = draw.pick(0, 3, size) if draw.k > 1 else 2 * draw.coins(size)
    reach = tiniest_exponent(draw.c)
    # What a product is made for is no less than the least product.
    tiny = max(draw.tiniest, last - 1)
    lowest = np.maximum(last - 1, np.choose(in_c, [tiny, reach, max(reach + 1, tiny), tiny]))
    least = draw.chance(0.4, size) & (lowest == last - 1)  # of results that are subnormal
    window, most = draw.choice(draw.window_bits, (draw.count,)), highest - kept - 1
    deep = np.minimum(
        np.maximum(lowest, draw.tiniest + window - kept), most
    )  # there are bits below the window
    half = np.where(least, lowest, draw.pick(np.where(draw.chance(0.5, size), deep, lowest), most, size))
    # Where no alignment ends, a bit counts at any distance: of the largest totals down to the least product.
    farthest = draw.chance(0.3 if draw.sums_exactly else 0.0, size) & ~least
    half = np.where(farthest, most - draw.pick(0, 3, size), half)
    top = half + np.where(least, draw.pick(1, kept + 1, size), kept + 1)
    near = top - window
    near = np.where(least & draw.chance(0.5, size), draw.choice(_edges(draw), (draw.count,)), near)
    reach = np.minimum(np.where(in_c == 2, reach, draw.tiniest), half - 1)
    # Ties with two more bits: one is never between half of a place and all of it.
    share = 0.4
    two = draw.chance(share, size)
    # Two bits that are cut are more than half of the last place kept; of a carry the first may be kept.
    off = np.where(draw.chance(0.5, size), draw.pick(-3, 3, size), np.where(two, draw.pick(-1, 0, size), 0))
    near, anywhere = np.clip(near + off, reach, half - 1), draw.pick(reach, half - 1, size)
    near = np.where(farthest, np.minimum(reach + draw.pick(0, 9, size), half - 1), near)
    by_window = 0.2 if draw.sums_exactly else 0.7
    exponents = np.stack(
        [top, half, np.where(farthest | draw.chance(by_window, size), near, anywhere)], axis=1
    )
    leads = draw.chance(0.7, size) | (in_c == 0)
    digits = np.where(in_c == 0, draw.c.fraction_bits, draw.a.fraction_bits + draw.b.fraction_bits)
    joined = leads & (in_c != 1) & (digits > kept) & draw.chance(0.7, size)
    live = np.stack([leads, ~joined, np.ones(size, bool)], axis=1) & (np.arange(3) != in_c[:, None])
    a, b = _with_tie(draw, exponents, live, joined)
    length = np.where(joined, top - half + 1, draw.pick(1, kept + 1, size))
    at = exponents[np.arange(draw.count), np.minimum(in_c, 2)]
    c = _of_digits(draw, draw.c, at, np.where(in_c == 0, length, 1 + (two & (in_c == 2))))
    place = live[:, :2].sum(axis=1)
    _put_two_bits(draw, a, b, exponents[:, 2], np.where(two & live[:, 2] & (place < draw.k), place, -1))
    near = draw.chance(0.5, size)  # the terms of a sum that is rounded before others are added, c the last
    return (*draw.shuffle(a, b, near=near), np.where(in_c == 3, draw.zeros(draw.c, size), c))  # type: ignore[return-value]


def _between_blocks(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """c, half of its last place in one block, and a bit of either sign at any distance below that in another:
    elements of one scale are not so far apart."""
    size, reach = (draw.count,), int(draw.window_bits.max())
    formats = [draw.unit.formats[name] for name in draw.scales]
    low = draw.tiniest + sum(map(lowest_exponent, formats))
    high = draw.high + sum(map(highest_exponent, formats))
    distance = draw.pick(1, max(min(reach - draw.kept_bits, high - low), 1), size)
    half = draw.pick(min(low + reach - draw.kept_bits, high), high, size)
    a, b, c = far_apart(draw, half, half - distance)
    top = np.minimum(half + draw.kept_bits + 1, highest_exponent(draw.c))
    return a, b, draw.numbers(draw.c, top) if "c" not in draw.unit.absent else c


def split_tie(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """c and half of its last place, of which one product lacks the last bits and another has them: half where
    they are added before they are cut, less than half where each is cut as it meets c."""
    if draw.k == 1 or not (draw.a.is_float and draw.b.is_float):
        return beside_tie(draw)
    size, drop = (draw.count,), draw.kept_bits + 1
    squared = draw.chance(0.7, size)  # (1 - x) (1 + x) lacks the square of x
    most = np.where(squared, min(draw.a.fraction_bits + 1, draw.b.fraction_bits), draw.a.fraction_bits + 1)
    bits = np.maximum(most - draw.pick(0, 3, size), 1)
    depth = np.where(squared, 2, 1) * bits
    high = min(highest_exponent(draw.c), draw.high + drop)
    low = np.minimum(np.maximum(lowest_exponent(draw.c), draw.tiniest + drop + depth), high)
    leading = draw.pick(low, high, size)
    target = np.repeat((leading - drop - depth)[:, None], draw.k, axis=1)
    a, b = draw.products(target, normal=False, exact=True)
    a[:, 2:] = 0
    of_a, of_b = draw.split(leading - drop - 1, draw.a, draw.b)
    ones = -(np.uint64(1) << (np.uint64(65) - bits.astype(np.uint64)))
    a[:, 0] = encode(draw.a, None, of_a, np.where(bits > 1, ones, np.uint64(0)))
    last = np.uint64(1) << (np.uint64(64) - bits.astype(np.uint64))
    b[:, 0] = encode(draw.b, None, of_b, np.where(squared, last, np.uint64(0)))
    sign = np.repeat(draw.coins(size)[:, None], draw.k, axis=1)
    a, b = _signed(draw, a, b, sign)
    c = encode(draw.c, draw.coins(size), leading, draw.fraction(size) & _fraction_mask(draw))
    return (*draw.shuffle(a, b), c)  # type: ignore[return-value]


def _with_tie(draw: Draw, exponents: Ints, live: Bits, joined: Bits) -> tuple[Bits, Bits]:
    """Products that are powers of two at the exponents of what leads, the half of a place and the bit (count,
    3), as far as there are products; `joined`: the first two are one product."""
    order = np.argsort(~live, axis=1, kind="stable")[:, : draw.k]
    a, b = draw.few_powers(
        np.take_along_axis(exponents, order, axis=1), np.take_along_axis(live, order, axis=1)
    )
    rows = np.flatnonzero(joined & live[:, 0])
    if len(rows):
        leading = exponents[rows, 0]
        a[rows, 0], b[rows, 0] = _of_digits_together(draw, leading, leading - exponents[rows, 1] + 1)
    signs = draw.coins(draw.shape)
    # What leads is even if it is a power of two: only more of its sign than half of a place shows.
    signs = np.where(draw.chance(0.5, (draw.count, 1)), signs[:, :1], signs)
    return _signed(draw, a, b, signs)


def _of_digits_together(draw: Draw, exponent: Ints, digits: Ints) -> tuple[Bits, Bits]:
    """a and b whose products have this many digits, or one more, as far as the formats have them."""
    size = exponent.shape
    of_a = np.clip(digits - draw.pick(0, draw.b.fraction_bits, size), 1, draw.a.fraction_bits + 1)
    of_b = np.clip(digits - of_a + draw.coins(size), 1, draw.b.fraction_bits + 1)
    first, second = draw.split(exponent, draw.a, draw.b)
    b = _of_digits(draw, draw.b, second, np.where(of_a == digits, 1, of_b))
    return _of_digits(draw, draw.a, first, of_a), b


def _put_two_bits(draw: Draw, a: Bits, b: Bits, exponent: Ints, place: Ints) -> None:
    """Products of two bits in a row that lead at these exponents, of random signs, at a place each; -1:
    nowhere. Of some the exponent is one less: there 1.5 * 1.5 leads, because the significands carry, as only
    normal numbers do."""
    rows = np.flatnonzero(place >= 0)
    place, exponent = place[rows], exponent[rows]
    carry = np.where(exponent > draw.low, draw.coins(exponent.shape), 0)
    of_a, of_b = draw.split(exponent - carry, draw.a, draw.b, normal=carry == 1)
    a[rows, place] = _of_digits(draw, draw.a, of_a, np.full(of_a.shape, 2))
    b[rows, place] = _of_digits(draw, draw.b, of_b, 1 + carry)


def _few_powers(
    draw: Draw, exponents: list[Ints], signs: list[Bits], present: list[Bits]
) -> tuple[Bits, Bits]:
    """Products that are powers of two at the given exponents (each (count,)), in random order; all others
    are zero."""
    target, sign, live = (np.stack(columns[: draw.k], axis=1) for columns in (exponents, signs, present))
    a, b = draw.few_powers(target, live)
    signs_of_all = np.zeros(draw.shape, np.uint8)
    signs_of_all[:, : sign.shape[1]] = sign
    a, b = _signed(draw, a, b, signs_of_all)
    return draw.shuffle(a, b)  # type: ignore[return-value]


def _signed(draw: Draw, a: Bits, b: Bits, sign: Bits) -> tuple[Bits, Bits]:
    """Products of the given signs from positive factors; with unsigned a the sign goes to b, where that
    has one."""
    if draw.a.signed:
        return np.where(sign == 1, negate(draw.a, a), a), b
    return a, np.where(sign == 1, negate(draw.b, b), b)


# Scales -----------------------------------------------------------------------------------------------------


def far_apart(draw: Draw, large: Ints, small: Ints) -> tuple[Bits, Bits, Bits]:
    """Dot products of a few equal products that are 2**large together, and one or two of 2**small, mostly of
    the other sign; all others, and c, are zero.

    Args:
        large: exponents (count,).
        small: exponents (count,), less than those.
    """
    size, blocks = (draw.count,), next(iter(draw.scales.values())).shape[1]
    per_block = draw.k // blocks
    first, second = (draw.pick(0, blocks - 1, size) for _ in range(2))
    more = draw.pick(0, max(per_block // 2, 1).bit_length() - 1, size)  # 2**more products are the large one
    each, apart = large - more, first != second
    place = (np.arange(draw.k) + draw.pick(0, per_block - 1, (draw.count, 1))) % per_block
    block, ahead = np.arange(draw.k) // per_block, np.where(apart, 0, 1 << more)[:, None]
    is_large = (block == first[:, None]) & (place < (1 << more)[:, None])
    is_small = (block == second[:, None]) & ~is_large & (place < ahead + draw.pick(1, 2, (draw.count, 1)))
    of_first = _between(draw, each, np.where(apart, each, small))
    of_second = np.where(apart, _between(draw, small, small), of_first)
    scale = np.where(np.arange(blocks) == second[:, None], of_second[:, None], of_first[:, None])
    reached = np.repeat(draw.set_scales(scale), per_block, axis=1)
    target = np.where(is_small, small[:, None], each[:, None]) - reached
    exponents = draw.split(target, draw.a, draw.b, normal=False)
    a, b = draw.powers(draw.a, exponents[0]), draw.powers(draw.b, exponents[1])
    minus = draw.coins((draw.count, 1)) ^ (draw.chance(0.8, (draw.count, 1)) & is_small)
    flip, fmt = draw.signed_factor(a, b)
    flip[...] = np.where(minus == 1, negate(fmt, flip), flip)
    return np.where(is_large | is_small, a, draw.a.dtype.type(0)), b, draw.zeros(draw.c, size)


def _between(draw: Draw, large: Ints, small: Ints) -> npt.NDArray[np.int64]:
    """Exponents of a scale with which elements reach both; where there is none, the large one."""
    least, most = large - draw.high, small - draw.tiniest
    return draw.pick(least, np.maximum(least, most), large.shape)
