"""Kinds of zeros, infinities, NaNs and format corners, at every place in turn or among ordinary numbers."""

from __future__ import annotations

import numpy as np

from golden.number.formats import Format, Kind
from golden.stimuli.codes import Bits, corner_codes, is_minus, negate, one, special_codes
from golden.stimuli.draw import Draw
from golden.stimuli.ordinary import narrow


def special_values(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """A few infinities, NaNs (quiet, signalling), zeros, least and largest numbers among ordinary ones."""
    a, b, c = narrow(draw)
    density = draw.choice([0.5 / draw.k, 1 / draw.k, 2 / draw.k, 0.5], (draw.count, 1))
    picked = []
    for codes, fmt in ((a, draw.a), (b, draw.b), (c[:, None], draw.c)):
        corners = corner_codes(fmt)
        wanted = draw.chance(density if codes.shape[1] > 1 else 0.5, codes.shape)
        picked.append(np.where(wanted, corners[draw.pick(0, len(corners) - 1, codes.shape)], codes))
    for name, codes in draw.scales.items():
        corners = corner_codes(draw.unit.formats[name])
        codes[...] = np.where(
            draw.chance(0.1, codes.shape), corners[draw.pick(0, len(corners) - 1, codes.shape)], codes
        )
    return picked[0], picked[1], picked[2][:, 0]


def special_each(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """One infinity or NaN, in every element of a, b, c and the scales in turn and of every code;
    the rest ordinary."""
    a, b, c = narrow(draw)
    places = [(draw.a, a), (draw.b, b), (draw.c, c[:, None])]
    places += [(draw.unit.formats[name], codes) for name, codes in draw.scales.items()]
    total = sum(codes.shape[1] for _, codes in places)
    index = np.arange(draw.count) + draw.pick(0, (1 << 32) - 1, (1,))
    place, turn = index % total, index // total
    for fmt, codes in places:
        rows = np.flatnonzero((place >= 0) & (place < codes.shape[1]))
        specials = special_codes(fmt)
        codes[rows, place[rows]] = specials[turn[rows] % len(specials)]
        place = place - codes.shape[1]
    return a, b, c


def special_pairs(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Infinity times zero, infinite products of opposite sign, an infinite product against c, at every k
    in turn; for units with status flags also together with NaNs."""
    a, b, c = narrow(draw)
    index = np.arange(draw.count) + draw.pick(0, (1 << 32) - 1, (1,))
    place, case, row = index % draw.k, index // draw.k % 3, np.arange(draw.count)
    huge = {
        name: fmt.largest if fmt.infinity is None else fmt.infinity for name, fmt in draw.unit.formats.items()
    }
    flip = draw.chance(0.5, (draw.count,))

    def signed(fmt: Format, code: int, sign: Bits) -> Bits:
        codes = np.full(draw.count, code, fmt.dtype)
        return np.where(sign, negate(fmt, codes), codes)

    # Then b brings the infinity of a product.
    only_b = draw.a.infinity is None and draw.b.infinity is not None
    ones = np.where(
        only_b | draw.chance(0.2, (draw.count,)), draw.b.dtype.type(huge["b"]), draw.b.dtype.type(one(draw.b))
    )
    a[row, place] = signed(draw.a, huge["a"], flip)
    b[row, place] = np.where(case == 0, draw.zeros(draw.b, (draw.count,)), ones)
    swapped = (case == 0) & draw.chance(0.5, (draw.count,))
    a[row, place] = np.where(swapped, draw.zeros(draw.a, (draw.count,)), a[row, place])
    b[row, place] = np.where(swapped, signed(draw.b, huge["b"], flip), b[row, place])
    second, other = (
        (case == 1) & (draw.k > 1),
        (place + draw.pick(1, max(draw.k - 1, 1), (draw.count,))) % draw.k,
    )
    a[row, other] = np.where(second, signed(draw.a, huge["a"], ~flip), a[row, other])
    b[row, other] = np.where(second, ones, b[row, other])
    c = np.where(case == 2, signed(draw.c, huge["c"], ~flip), c)
    return _beside_nans(draw, a, b, c, place, case) if draw.unit.status else (a, b, c)


def _beside_nans(draw: Draw, a: Bits, b: Bits, c: Bits, place: Bits, case: Bits) -> tuple[Bits, Bits, Bits]:
    """In some rows NaNs, quiet or signalling, together with what is invalid (at `place`) and with each
    other: d is a NaN anyway, and the status flag alone says what the unit looked at."""
    size, row = (draw.count,), np.arange(draw.count)
    column = (place + draw.pick(1, max(draw.k - 1, 1), size)) % draw.k
    free = case != 1 if draw.k > 1 else case == 1  # else the column holds an infinity that is needed
    wanted = [rows & draw.chance(0.5, size) for rows in (free, free, case != 2)]
    for codes, fmt, rows in zip((a, b, c[:, None]), (draw.a, draw.b, draw.c), wanted, strict=True):
        nans = [code for code in special_codes(fmt).tolist() if fmt.decode(code).kind == Kind.NAN]
        if nans:
            at = row[rows], column[rows] % codes.shape[1]
            codes[at] = np.array(nans, fmt.dtype)[draw.pick(0, len(nans) - 1, size)][rows]
    if draw.b.nan is not None:  # infinity times NaN is no infinity that could meet one of the other sign
        partner = (case == 2) & draw.chance(0.2, size)
        b[row[partner], place[partner]] = draw.b.nan
    return a, b, c


def zeros(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Signed zeros in every place, at most one ordinary product: the sign of a zero result."""
    a, b = draw.zeros(draw.a, draw.shape), draw.zeros(draw.b, draw.shape)
    other_a, other_b, other_c = narrow(draw)
    place = np.arange(draw.k) == draw.pick(0, draw.k - 1, (draw.count, 1))
    a = np.where(place & draw.chance(0.2, (draw.count, 1)), other_a, a)
    b = np.where(draw.chance(0.3, draw.shape), other_b, b)
    return a, b, np.where(draw.chance(0.2, (draw.count,)), other_c, draw.zeros(draw.c, (draw.count,)))


def zero_partners(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """A zero of either sign against every finite edge of the formats, at every k in turn, all else zeros
    of one sign."""
    row, size = np.arange(draw.count), (draw.count,)
    sign = draw.chance(0.5, size)
    rest = np.where(sign, negate(draw.a, np.zeros(1, draw.a.dtype)), np.zeros(1, draw.a.dtype))
    a = np.repeat(rest[:, None].astype(draw.a.dtype), draw.k, axis=1)
    b = np.full(draw.shape, one(draw.b), draw.b.dtype)
    index = row + draw.pick(0, (1 << 32) - 1, (1,))
    place, turn = index % draw.k, index // draw.k

    def edges(fmt: Format) -> Bits:
        finite = [code for code in corner_codes(fmt).tolist() if fmt.decode(code).kind < Kind.INFINITY]
        return np.asarray(np.array(finite, fmt.dtype)[turn // 2 % len(finite)])

    zero_in_a = turn % 2 == 0
    a[row, place] = np.where(zero_in_a, draw.zeros(draw.a, size), edges(draw.a))
    b[row, place] = np.where(zero_in_a, edges(draw.b), draw.zeros(draw.b, size))
    return a, b, np.where(draw.chance(0.7, size), draw.zeros(draw.c, size), edges(draw.c))


def counts(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """None, all but one or two, or all products non-zero, zeros of one sign or of both, c at any corner of
    its format."""
    row = (draw.count, 1)
    a, b, _ = narrow(draw)
    if draw.a.bits == 1:
        a, b = np.ones(draw.shape, draw.a.dtype), np.ones(draw.shape, draw.b.dtype)
    missing = draw.choice([0, 1, 2, draw.k], row)
    order = draw.order()
    sign, shared = draw.coins(draw.shape), draw.chance(0.7, row)
    sign = np.where(shared, sign[:, :1], sign)
    b_sign = is_minus(draw.b, b)
    zeros = np.zeros(draw.shape, draw.a.dtype)
    # A zero of b's sign gives +0, one of the other sign -0; where a has no -0, b's sign is set instead.
    if draw.a.is_float:
        b = np.where((order < missing) & (b_sign != sign), negate(draw.b, b), b)
    a = np.where(order < missing, zeros, a)
    corners = corner_codes(draw.c)
    c = np.where(
        draw.chance(0.7, (draw.count,)),
        corners[draw.pick(0, len(corners) - 1, (draw.count,))],
        draw.zeros(draw.c, (draw.count,)),
    )
    return a, b, c


def corner_pairs(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Every corner of a's format against every corner of b's, in turn, at one k; the rest ordinary."""
    a, b, c = narrow(draw)
    first, second = corner_codes(draw.a), corner_codes(draw.b)
    row = np.arange(draw.count)
    index = row + draw.pick(0, (1 << 32) - 1, (1,))
    place = draw.pick(0, draw.k - 1, (draw.count,))
    a[row, place], b[row, place] = first[index % len(first)], second[index // len(first) % len(second)]
    return a, b, c
