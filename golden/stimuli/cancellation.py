"""Kinds whose addends cancel: what is left below them, and groups that cancel next to others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from golden.number.formats import Format, from_float, to_float
from golden.stimuli.codes import (
    Bits,
    highest_exponent,
    lowest_exponent,
    magnitudes,
    negate,
    sign_bit,
    tiniest_exponent,
)
from golden.stimuli.draw import Draw


def cancelling(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Products that cancel in pairs or against c, so that only small addends are left to see the bits that
    were cut."""
    width = min(12, draw.high - draw.low)
    top = draw.pick(min(draw.low + width, 0), max(min(draw.high, 16), draw.low + width), (draw.count, 1))
    a, b = draw.products(draw.pick(top - width, top, draw.shape))
    flip, keep = ((a, draw.a), b) if draw.a.signed else ((b, draw.b), a)
    half = draw.k // 2
    for array in (flip[0], keep):
        array[:, half : 2 * half] = array[:, :half]
    flip[0][:, half : 2 * half] = negate(flip[1], flip[0][:, half : 2 * half])
    c = draw.numbers(draw.c, top[:, 0] - draw.pick(0, int(draw.window_bits.max()) + 4, (draw.count,)))
    against_c = draw.chance(0.4, (draw.count,)) if flip[1].signed and half else np.ones(draw.count, bool)
    # Against c: product 0 loses its partner (with unsigned operands nothing else cancels, so c takes the
    # whole sum).
    if half and flip[1].signed:
        a[against_c, half] = 0 if draw.a.has_zero else a[against_c, half]
    c = np.where(against_c, negative_sum(draw, a, b, flip[1].signed), c)
    return (*draw.shuffle(a, b), c)  # type: ignore[return-value]


def cancel_last_bit(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Everything cancels but the last bits of one significand: normalisation by every distance up to the
    whole register, sign of the rest."""
    size, half = (draw.count,), draw.k // 2
    top = draw.pick(draw.low, draw.high, (draw.count, 1))
    a, b = draw.products(np.maximum(top - draw.pick(0, 3, draw.shape), draw.low))
    two_bits = draw.chance(0.4, size)
    if "b" in draw.unit.absent or not _leave_last_bit(draw, a, b, two_bits):
        two_bits[:] = False
    a[:, half : 2 * half], b[:, half : 2 * half] = a[:, :half], b[:, :half]
    against_c = draw.chance(0.4, size)
    if draw.a.signed:
        a[:, half : 2 * half] = negate(draw.a, a[:, :half])
    else:
        b[:, half : 2 * half] = negate(draw.b, b[:, :half])
    single = not half or not (draw.a.signed or draw.b.signed)
    if single:
        against_c[:] = True
    else:
        if draw.k % 2:
            a[:, -1] = 0
        b[~against_c, half] = _near_code(draw, draw.b, b[:, half])[~against_c]
        a[against_c, half] = 0
    c = negative_sum(draw, a, b, not single)
    c = np.where(draw.chance(0.8, size) & ~two_bits, _near_code(draw, draw.c, c), c)
    return (*draw.shuffle(a, b), np.where(against_c, c, draw.zeros(draw.c, size)))  # type: ignore[return-value]


def deep_cancellation(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """The largest addends cancel exactly and one far smaller addend is left, or none:
    long normalisation shifts."""
    size, row = (draw.count,), (draw.count, 1)
    limit = min(draw.high, highest_exponent(draw.c), highest_exponent(draw.d))
    top = draw.pick(max(limit - 8, draw.low) if draw.high < 64 else min(draw.low, 0), limit, row)
    target = np.broadcast_to(top, draw.shape).copy()
    anywhere, near = (
        draw.pick(draw.tiniest, draw.high, draw.shape),
        top - draw.pick(8, draw.kept_bits + 2, draw.shape),
    )
    # All products but the pair are anywhere, or just so far below that a cut may reach them.
    target[:, 1 if draw.k < 3 else 2 :] = np.where(draw.chance(0.5, row), anywhere, near)[
        :, 1 if draw.k < 3 else 2 :
    ]
    a, b = draw.products(target, normal=False, exact=True)
    flip, fmt = draw.signed_factor(a, b)
    # What is left is negative in half of the rows: a cut may depend on the sign (down, spared).
    flip[:, 2:] = np.where(draw.chance(0.5, row), negate(fmt, flip[:, 2:]), flip[:, 2:])
    against_c = draw.chance(0.5, row) if draw.k > 1 else np.ones(row, bool)
    # The second product cancels the first, exactly.
    if draw.k > 1:
        a[:, 1], b[:, 1] = negate(draw.a, a[:, 0]), b[:, 0]
        if not draw.a.signed:
            b[:, 1] = negate(draw.b, b[:, 0])
    places = np.arange(draw.k)
    left = np.where(draw.chance(0.5, row), min(2, draw.k), draw.pick(1 if draw.k < 3 else 2, draw.k, row))
    # The pair, or one product against c, and one product that is left: nothing else hides it.
    used = (places == 0) | (~against_c & (places == 1)) | (places == left)
    a = np.where(used, a, np.zeros((), draw.a.dtype))
    c = np.where(against_c[:, 0], negative_sum(draw, a, b, True), draw.zeros(draw.c, size))
    order = draw.order()
    # In half of the rows x, what is left, -x: an adder tree meets the small one before x cancels.
    if draw.k >= 4:
        near_first = np.r_[0, 2, 1, 3 : draw.k]
        order = np.where(
            draw.chance(0.5, row), near_first[(places + 4 * draw.pick(0, draw.k // 4, row)) % draw.k], order
        )
    a, b = draw.in_order(order, a, b)
    return draw.mirrored(a, b, c)


def cancelled_groups(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Groups that cancel exactly but keep their exponent or scale, with small groups and a small c."""
    size, quads = (draw.count,), draw.k // 4
    high = min(draw.high, highest_exponent(draw.d))
    a, b = draw.products(np.maximum(draw.pick(high - 8, high, draw.shape), draw.low))
    first, second = (
        np.arange(quads * 4).reshape(quads, 4)[:, :2].ravel(),
        np.arange(quads * 4).reshape(quads, 4)[:, 2:].ravel(),
    )
    # In each group of four the second pair cancels the first: the sum of a group is zero.
    a[:, second], b[:, second] = a[:, first], b[:, first]
    if draw.a.signed:
        a[:, second] = negate(draw.a, a[:, first])
    else:
        b[:, second] = negate(draw.b, b[:, first])
    a[:, quads * 4 :] = 0
    blocks = max(draw.scales["scale_a"].shape[1] if draw.scales else draw.unit.k // 16, 1)
    live = draw.chance(0.3, (draw.count, blocks)) & draw.chance(0.7, (draw.count, 1))
    # Live blocks have small scales, cancelled ones large: a unit may keep the scale of a group that cancels.
    for name, codes in draw.scales.items():
        fmt = draw.unit.formats[name]
        top = min(highest_exponent(fmt), 60)
        exponent = np.where(
            live,
            draw.pick(max(lowest_exponent(fmt), -24), 0, codes.shape),
            draw.pick(top - 2, top, codes.shape),
        )
        codes[...] = draw.numbers(fmt, exponent)
    spread = np.repeat(live, -(-draw.k // blocks), axis=1)[:, : draw.k]
    # In a live block one product is missing, so that something is left.
    odd = np.arange(draw.k) % 4 == 0
    a = np.where(spread & odd, np.zeros((), draw.a.dtype), a)
    scale_top = sum(min(highest_exponent(draw.unit.formats[name]), 60) for name in draw.scales)
    # c lies within the reach of a cut at the exponent of a cancelled group.
    reach = int(draw.window_bits.max()) + 4
    top = high + scale_top if draw.scales else high
    c = draw.numbers(
        draw.c, np.clip(top - draw.pick(0, reach, size), tiniest_exponent(draw.c), highest_exponent(draw.c))
    )
    return a, b, c


def negative_sum(draw: Draw, a: Bits, b: Bits, first_only: bool) -> Bits:
    """c = -(a[0] * b[0]) or -(the whole sum), rounded to c's format and clamped to its range."""
    if draw.scales or draw.a.name == "b1":
        return draw.numbers(draw.c, np.full(draw.count, 4))
    last = 1 if first_only else draw.k
    with np.errstate(over="ignore"):  # f64 products may overflow; the clip below brings them back
        total = -(to_float(draw.a, a[:, :last]) * to_float(draw.b, b[:, :last])).sum(axis=1)
    if not draw.c.is_float:
        total = np.clip(total, -float(draw.c.largest), float(draw.c.largest))
    limit = float(to_float(draw.c, np.array([draw.c.largest], draw.c.dtype))[0])
    return from_float(draw.c, np.clip(total, -limit if draw.c.signed else 0.0, limit))


def _leave_last_bit(draw: Draw, a: Bits, b: Bits, rows: npt.NDArray[np.bool_]) -> bool:
    """Makes the first product (1 + 2^-i) * (1 + 2^-j) in some rows. C cannot hold its last bit, which is left
    where c cancels the rest. Returns False if c holds every product."""
    first, second = draw.a, draw.b
    longest = first.fraction_bits + second.fraction_bits
    shortest = max(draw.c.fraction_bits + 1, 2)
    if not (first.is_float and second.is_float and draw.c.is_float) or longest < shortest:
        return False
    places = draw.pick(shortest, longest, (draw.count,))
    low, high = places - second.fraction_bits, np.minimum(places - 1, first.fraction_bits)
    i = draw.pick(np.maximum(low, 1), high, places.shape)
    for fmt, codes, place in ((first, a, i), (second, b, places - i)):
        fraction = fmt.dtype.type((1 << fmt.fraction_bits) - 1 << fmt.ignored_low)
        bit = (np.int64(1) << fmt.fraction_bits - place << fmt.ignored_low).astype(fmt.dtype)
        codes[:, 0] = np.where(rows, codes[:, 0] & ~fraction | bit, codes[:, 0])
    return True


def _near_code(draw: Draw, fmt: Format, codes: Bits) -> Bits:
    """Finite codes, changed in their last bit (a quarter of them) or by a number of as many bits as the
    fraction has, each length as often as another: what a difference leaves begins at any place."""
    if not fmt.is_float or fmt.fraction_bits < 2:
        return _next_code(fmt, codes)
    length = draw.pick(1, fmt.fraction_bits, codes.shape)
    by = np.int64(1) << length | draw.pick(0, (1 << fmt.fraction_bits) - 1, codes.shape) & (1 << length) - 1
    magnitude = magnitudes(fmt, codes).astype(np.int64)
    step = by << fmt.ignored_low
    # Up or down through the binades, but neither through zero nor beyond the largest number.
    up = (draw.chance(0.5, codes.shape) | (magnitude <= step)) & (magnitude <= fmt.largest - step)
    moved = np.where(up, magnitude + step, np.where(magnitude > step, magnitude - step, magnitude))
    near = (codes & sign_bit(fmt)) | moved.astype(fmt.dtype)
    return np.asarray(np.where(draw.chance(0.25, codes.shape), _next_code(fmt, codes), near))


def _next_code(fmt: Format, codes: Bits) -> Bits:
    """Flips the last bit of finite codes; largest numbers, whose neighbour may be a NaN,
    step down instead."""
    unit = fmt.dtype.type(1 << fmt.ignored_low)
    return np.asarray(np.where(magnitudes(fmt, codes) == fmt.largest, codes - unit, codes ^ unit))
