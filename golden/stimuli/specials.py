"""Kinds of zeros, infinities, NaNs and format corners, at every place in turn or among ordinary numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from golden.number.formats import Format, Kind
from golden.stimuli.codes import Bits, Ints, corner_codes, is_minus, nan_codes, negate, one, special_codes
from golden.stimuli.draw import Draw
from golden.stimuli.ordinary import narrow

Flags = npt.NDArray[np.bool_]


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


_INVALID, _INFINITE, _NAN = range(3)
"""Why a product is no number: infinity times zero, an infinite factor, a factor that is a NaN. The last two
hold for c and scales as well."""
_NOWHERE, _IN_PRODUCT, _IN_C, _IN_SCALE = range(4)
"""Where a second cause is."""


def special_pairs(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Infinity times zero, infinite products of opposite sign, an infinite product against c, at every k
    in turn; in most of the rows any two causes of a NaN or an infinity, in products, c and scales; or the
    same cause in two neighbours. Integers have none of these: their products are at both ends."""
    if not (draw.a.is_float or draw.b.is_float):
        return _products_at_ends(draw)
    a, b, c = narrow(draw)
    size, row = (draw.count,), np.arange(draw.count)
    index = row + draw.pick(0, (1 << 32) - 1, (1,))
    place, case = index % draw.k, index // draw.k % 3
    other = (place + draw.pick(1, max(draw.k - 1, 1), size)) % draw.k
    several = draw.k > 1
    # c most often, since there it is the sign that counts: the word of a NaN, an infinity.
    available = [_IN_PRODUCT] * several + [_IN_C] * 2 * ("c" not in draw.unit.absent)
    available += [_IN_SCALE] * bool(draw.scales)
    # Each pair of causes, with every sign, is to be met by 20 of 200,000 vectors; each cause alone at every
    # k as well.
    share = 0.6 if available else 0.0
    two = draw.chance(share, size)
    minus, coins = draw.chance(0.5, size), draw.chance(0.5, size)
    first = np.where(two, draw.pick(_INVALID, _NAN, size), np.where(case == 0, _INVALID, _INFINITE))
    second = np.where(two, draw.pick(_INVALID, _NAN, size), _INFINITE)
    minus_second = np.where(two, coins, ~minus)
    usual = np.array([_NOWHERE, _IN_PRODUCT if several else _NOWHERE, _IN_C])[case]
    where = np.where(two, draw.choice(available or [_NOWHERE], size), usual)
    # The same cause twice, nothing else: flags that are added or compared instead of ORed cancel. In trees
    # they meet first in neighbours: of 16 products each such pair is to be met by 20 of 200,000 vectors.
    same = draw.chance(0.35 * min(draw.k / 16, 1) if several else 0.0, size)
    first = np.where(same, draw.choice([_INVALID, _INFINITE, _INFINITE, _NAN], size), first)
    other = np.where(same, np.minimum(place ^ 1, draw.k - 1) - (place == draw.k - 1) * (draw.k % 2), other)
    second, minus_second = np.where(same, first, second), np.where(same, minus, minus_second)
    where = np.where(same, _IN_PRODUCT, where)
    # A NaN as a scale meets c as often as a product.
    c_first = (where == _IN_SCALE) & draw.chance(0.5, size) & ("c" not in draw.unit.absent)
    x, y = _product_of(draw, first, minus)
    a[row, place], b[row, place] = np.where(c_first, a[row, place], x), np.where(c_first, b[row, place], y)
    x, y = _product_of(draw, second, minus_second)
    in_product = where == _IN_PRODUCT
    a[row, other] = np.where(in_product, x, a[row, other])
    b[row, other] = np.where(in_product, y, b[row, other])
    c = np.where(where == _IN_C, special_code(draw, draw.c, second == _NAN, minus_second), c)
    c = np.where(c_first, special_code(draw, draw.c, first == _NAN, minus), c)
    has_it = draw.pick(1, 3, size)  # one of the scales, or both
    for bit, (name, codes) in enumerate(draw.scales.items()):
        rows = np.flatnonzero((where == _IN_SCALE) & (has_it >> bit & 1 == 1))
        block = draw.pick(0, codes.shape[1] - 1, rows.shape)
        nan = np.ones(rows.shape, np.bool_)
        codes[rows, block] = special_code(draw, draw.unit.formats[name], nan, minus_second[rows])
    return a, b, c


def _products_at_ends(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Integers: some products, neighbours mostly, are the largest that there is, or the least; the others
    bring the total back, are zero, or ordinary. A part of the sum is then beyond a register in which the
    total has room."""
    a, b, c = narrow(draw)
    corners = [(x, y, _value(draw.a, x) * _value(draw.b, y)) for x in _ends(draw.a) for y in _ends(draw.b)]
    least, largest = min(corners, key=lambda each: each[2]), max(corners, key=lambda each: each[2])
    # Runs of equal products: aligned groups of one, two, four ... of them.
    length = 1 << draw.pick(0, max(draw.k - 1, 1).bit_length() - 1, (draw.count, 1))
    group = np.arange(draw.k) // length
    chosen = np.take_along_axis(draw.pick(0, 3, draw.shape), group, axis=1)
    for style, (x, y, _) in enumerate((largest, least, (0, 0, 0))):
        a, b = np.where(chosen == style, x, a), np.where(chosen == style, y, b)
    return a, b, c


def _ends(fmt: Format) -> tuple[int, int]:
    """The codes of the least and the largest integer."""
    return (1 << (fmt.integer_bits - 1) if fmt.signed else 0), fmt.largest


def _value(fmt: Format, code: int) -> int:
    return code - (1 << fmt.integer_bits) if fmt.signed and code >> (fmt.integer_bits - 1) else code


def _product_of(draw: Draw, cause: Ints, minus: Flags) -> tuple[Bits, Bits]:
    """Factors of a product for each cause, of which either may bring the infinity or the NaN. The other is a
    zero where they are invalid, else one or an edge of its format; of a NaN it may be a special code, too."""
    size, nan, invalid = cause.shape, cause == _NAN, cause == _INVALID
    in_b = draw.chance(0.5, size)
    formats = draw.a, draw.b
    for rows, has in (
        (~nan, [fmt.infinity is not None for fmt in formats]),
        (nan, [fmt.nan is not None for fmt in formats]),
    ):
        in_b = np.where(rows & (has[0] != has[1]), has[1], in_b)
    pair = []
    for fmt, brings in ((draw.a, ~in_b), (draw.b, in_b)):
        special = special_code(draw, fmt, nan, minus)
        of_infinity, of_nan = (
            draw.choice([_NAN + 1] * 2 + [_NAN + 2] * 2 + [_INFINITE], size),
            draw.pick(_INVALID, _NAN + 1, size),
        )
        other = np.where(invalid, _INVALID, np.where(nan, of_nan, of_infinity))
        partner = np.choose(
            other,
            [
                draw.zeros(fmt, size),
                special_code(draw, fmt, np.zeros(size, np.bool_), np.zeros(size, np.bool_)),
                special_code(draw, fmt, np.ones(size, np.bool_), minus),
                np.full(size, one(fmt), fmt.dtype),
                _edges(draw, fmt, size),
            ],
        )
        pair.append(np.where(brings, special, partner))
    return pair[0], pair[1]


def _edges(draw: Draw, fmt: Format, size: tuple[int, ...]) -> Bits:
    """Positive numbers at the edges of a format, such as the least subnormal one."""
    numbers = [(code, fmt.decode(code)) for code in corner_codes(fmt).tolist()]
    positive = [code for code, number in numbers if number.kind == Kind.FINITE and not number.sign]
    return draw.choice(np.array(positive, fmt.dtype), size)


def special_code(draw: Draw, fmt: Format, nan: Flags, minus: Flags) -> Bits:
    """Any NaN of the format, else an infinity of either sign; where it has none, its largest number."""
    code = fmt.largest if fmt.infinity is None else fmt.infinity
    infinite = np.full(nan.shape, code, fmt.dtype)
    infinite = np.where(minus, negate(fmt, infinite), infinite)
    nans = nan_codes(fmt)
    if not len(nans):
        return infinite
    picked = nans[draw.pick(0, len(nans) - 1, nan.shape)]
    return np.where(nan, picked, infinite)


def zeros(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Signed zeros in every place, at most one ordinary product: the sign of a zero result."""
    a, b = draw.zeros(draw.a, draw.shape), draw.zeros(draw.b, draw.shape)
    other_a, other_b, near_one = narrow(draw)
    size, of_any_size = (draw.count,), draw.numbers(draw.c, draw.of_any_size(draw.c))
    other_c = np.where(draw.coins(size) == 1, near_one, of_any_size)
    place = np.arange(draw.k) == draw.pick(0, draw.k - 1, (draw.count, 1))
    a = np.where(place & draw.chance(0.2, (draw.count, 1)), other_a, a)
    b = np.where(draw.chance(0.3, draw.shape), other_b, b)
    return a, b, np.where(draw.chance(0.2, size), other_c, draw.zeros(draw.c, size))


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
