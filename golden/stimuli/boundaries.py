"""Kinds that stand on both sides of what the steps of a program decide: which bits are kept and which are
cut, what is clamped, which class an operand has.

The other kinds aim at a structure and meet a decision by chance. These begin at its outcome: they choose a
total, or the low bits of a product, at the boundary, and look for terms that give it. So they need the
boundary alone, which formats and steps say, and no rule for each fault.

A total is an int64 number of units of 2**unit. `_spell` finds its terms: each takes the leading digits that
its format can hold, and the next one takes what is left.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from golden.model.registers import bit_length
from golden.number.formats import Format
from golden.number.rounding import ABOVE, BELOW, ROUNDINGS, TIE, Rounding
from golden.program.bounds import largest_significand
from golden.program.keys import modes_of
from golden.program.signature import SCALES
from golden.program.steps import Align, Scale, Sum
from golden.stimuli.codes import (
    Bits,
    Ints,
    corner_codes,
    encode,
    highest_exponent,
    lowest_exponent,
    negate,
    one,
    special_codes,
    tiniest_exponent,
)
from golden.stimuli.draw import Draw
from golden.stimuli.range_ends import rounded_to
from golden.stimuli.specials import special_code

Rows = npt.NDArray[np.bool_]

_BITS = 61
"""Bits of a total at most: the bits of int64, less the sign, a carry and one that a term may take too
much."""
_DEEPEST = 40
"""Bits of a total below the last place of the result at most, where no alignment bounds them: past the
product of two f32 significands the int64 would not hold a double's total."""


# Fields of bits ---------------------------------------------------------------------------------------------

_HALF_AND_BIT, _BIT, _ONES_BUT_BIT, _BELOW_HALF, _HALF, _ONES, _NOTHING, _ANYTHING = range(8)
_SHAPES = (*[_HALF_AND_BIT] * 4, *[_BIT] * 4, _ONES_BUT_BIT, _BELOW_HALF, _HALF, _ONES, _NOTHING, _ANYTHING)
"""What a field holds, as often as it stands here: shapes with one bit have a member for each bit."""


def _length(numbers: Ints) -> Ints:
    """The bit length of each number from 0 up."""
    return np.asarray(bit_length(numbers.astype(np.uint64)))


def _power(exponent: Ints) -> Ints:
    """2**exponent; 0 where the exponent is negative."""
    return np.where(exponent < 0, np.int64(0), np.int64(1) << np.minimum(np.maximum(exponent, 0), 62))


def _anything(draw: Draw, width: Ints) -> Ints:
    """Random numbers of `width` bits."""
    return (draw.fraction(width.shape) >> np.uint64(2)).astype(np.int64) & (_power(width) - 1)


def field(draw: Draw, width: Ints) -> Ints:
    """What a field of `width` bits can hold that a decision looks at: nothing, all ones, half of its range,
    one bit, each of these with any one bit turned, or anything."""
    half, ones = _power(width - 1), _power(width) - 1
    bit = _power(draw.pick(0, np.maximum(width - 1, 0), width.shape)) & ones
    below_half = half - (bit & (half - 1))
    shapes = [half ^ bit, bit, ones ^ bit, below_half, half, ones, 0 * ones, _anything(draw, width)]
    return np.asarray(np.choose(draw.choice(_SHAPES, width.shape), shapes) & ones)


def _code(fmt: Format, sign: Bits | None, digits: Ints, exponent: Ints) -> Bits:
    """The codes of digits * 2**exponent, cut where the format has fewer bits; zero where the digits are."""
    length = _length(digits)
    fraction = digits.astype(np.uint64) << np.clip(65 - length, 2, 63).astype(np.uint64)  # no leading one
    codes = encode(fmt, sign, length - 1 + exponent, np.where(length > 1, fraction, np.uint64(0)))
    return np.where(digits > 0, codes, np.zeros((), fmt.dtype))


# Totals -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Term:
    """A term in addition to a total: a product, or c in the rows `in_c` (count,)."""

    a: Bits
    b: Bits
    c: Bits
    in_c: Rows


def total_boundary(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Totals at the boundaries that the result decides: between two numbers, with any one bit of what is cut,
    at the ends of the range, at a power of two; of a few terms, some of which cancel."""
    if not (draw.a.is_float and draw.b.is_float and draw.d.is_float):
        return _few_terms(draw)
    has_c = draw.c.is_float and "c" not in draw.unit.absent
    aligned = draw.steps_of(Align) and not draw.sums_exactly
    makers = [(_shares_of_lone_bits(draw)[1], lone_bits)]
    if aligned and (draw.k > 1 or has_c):
        makers.append((_share_of_carries(draw), carries))
    if draw.scales:
        # The sum of a block has some 25 places of its leading bit, which scales bring to an end of the range:
        # each of these is met by 20 of 200,000 vectors.
        makers.append((0.25, _scaled_totals))
    elif has_c:
        # Each place of an f32 significand, and a subnormal c of an f16 multiply-add that is cancelled, in
        # each of five modes, are met by 20 of 200,000 vectors.
        makers += [(0.1, _one_bit_left), (0.08, _cancelled)]
    # A quarter is left for totals of a few terms.
    most = 0.75
    less = min(most / max(sum(share for share, _ in makers), most), 1.0)
    return draw.mixed([(less * share, make) for share, make in makers], _few_terms)


def _few_terms(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Totals at the boundaries of the result, of a few terms; in some rows they lie just past a power of two:
    one field of several that no other total has."""
    total, unit = _totals(draw)
    crosses, rows = _crossings(draw), None
    if crosses is not None:
        share = 0.2
        rows = draw.chance(share, (draw.count,))
        total, unit = np.where(rows, crosses[0], total), np.where(rows, crosses[1], unit)
    return _spell(draw, total, unit, below=rows)


def _cancelled(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """A product that c cancels, or all but its last bit, at every exponent down to that of the least number.
    An exact zero has a sign of its own, and a subnormal c may go another way."""
    size, least = (draw.count,), max(draw.least("c"), draw.least("a", "b"))
    high = min(draw.high, highest_exponent(draw.c))
    near = min(lowest_exponent(draw.c), high)  # half of them are subnormal, or the least normal
    turn = draw.in_turn(1 << 30)
    lead = least + (turn >> 1) % np.maximum(np.where(turn & 1, near, high) - least + 1, 1)
    places = np.clip(lead - least, 0, min(draw.a.fraction_bits, draw.c.fraction_bits)) + 1
    digits, last = _anything(draw, places - 1) | _power(places - 1), lead - places + 1
    sign = draw.coins(size)
    first, second = draw.split(lead, draw.a, draw.b, lead >= draw.low)
    a = np.zeros((*size, draw.k), draw.a.dtype)
    b = draw.powers(draw.b, draw.pick(lowest_exponent(draw.b), highest_exponent(draw.b), a.shape))
    row, place = np.arange(draw.count), draw.pick(0, draw.k - 1, size)
    a[row, place] = _code(draw.a, sign if draw.a.signed else None, digits, first - places + 1)
    b[row, place] = _code(draw.b, None if draw.a.signed else sign, np.ones_like(digits), second)
    return a, b, _code(draw.c, 1 - sign, digits + draw.choice([-1, 0, 0, 0, 1], size), last)


def _one_bit_left(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """A product that c cancels but for one bit, at any place of c's significand. A normalisation that
    overlooks this bit finds nothing."""
    size, of_c = (draw.count,), draw.c.fraction_bits
    of_a = min(draw.a.fraction_bits, of_c)
    of_b = draw.b.fraction_bits if of_a + draw.b.fraction_bits < of_c else 0  # c holds the product
    x, y = (_anything(draw, np.full(size, bits)) | 1 << bits for bits in (of_a, of_b))
    low = max(draw.low, lowest_exponent(draw.c), lowest_exponent(draw.d))
    high = min(draw.high, highest_exponent(draw.c), highest_exponent(draw.d)) - 1
    first, second = draw.split(draw.pick(min(low + of_c, high), high, size), draw.a, draw.b)
    left = _power(draw.pick(0, of_c - 1, size))
    left = np.where(draw.coins(size) == 1, -left, left)
    sign = draw.coins(size)
    a = np.zeros((*size, draw.k), draw.a.dtype)
    b = draw.powers(draw.b, draw.pick(lowest_exponent(draw.b), highest_exponent(draw.b), a.shape))
    row, place = np.arange(draw.count), draw.pick(0, draw.k - 1, size)
    # One is a power of two and the other lies in the binade below, whose last bit is half as large: no two
    # numbers of one binade leave so little.
    share = 0.4
    apart, c_below, last = draw.chance(share, size), draw.coins(size) == 1, draw.coins(size) == 1
    less = np.where(last, 1, np.abs(left))
    x = np.where(apart, np.where(c_below, 1 << of_a, (2 << of_a) - np.maximum(less >> of_c - of_a, 1)), x)
    y = np.where(apart, 1 << of_b, y)
    spare = np.maximum(of_c - (_length(x * y) - 1), 0)
    whole, unit = x * y << spare, first + second - of_a - of_b - spare
    digits = np.where(apart, np.where(c_below, 2 * whole - less, 1 << of_c), whole + left)
    unit = np.where(apart, np.where(c_below, unit - 1, unit + 1), unit)
    a[row, place] = _code(draw.a, sign if draw.a.signed else None, x, first - of_a)
    b[row, place] = _code(draw.b, None if draw.a.signed else sign, y, second - of_b)
    return a, b, _code(draw.c, 1 - sign, digits, unit)


def cut_bits(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Half of the result's last place and one bit, at every distance; one term of which an alignment cuts a
    chosen field, at every shift and place, and what it keeps makes a total at the boundary of the result."""
    share, has_c = _shares_of_lone_bits(draw)[0], "c" not in draw.unit.absent
    floats = draw.a.is_float and draw.b.is_float
    if share == 1.0 or not floats or (draw.k == 1 and not has_c):
        return lone_bits(draw) if share else total_boundary(draw)
    return draw.mixed([(share, lone_bits), ((1 - share) / 2, _lone_cuts)], _cut_fields)


def _cut_fields(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """An alignment cuts a chosen field of one term."""
    size, has_c = (draw.count,), "c" not in draw.unit.absent
    total, unit = _totals(draw)
    # A lone product cannot be both the term that is cut and the one that it meets.
    in_c = draw.chance(0.4, size) & (has_c and draw.c.is_float and draw.k > 1)
    bits = np.where(in_c, draw.c.fraction_bits, draw.a.fraction_bits) + 1
    below = draw.pick(1, bits + 6, size)
    # One bit alone.
    share = 0.3
    lone = draw.chance(share, size)
    below = np.where(lone, 1 + draw.in_turn(_FARTHEST, lone), below)
    # Digits above the cut only where the term has more than are cut; all others lie wholly below it.
    above = draw.pick(0, 3, size) & (_power(np.maximum(bits - below, 0)) - 1)
    digits = (above << below) + np.where(lone, 1, field(draw, np.minimum(below, bits)))
    sign = draw.coins(size)
    kept = digits >> below
    down = any(
        mode == "down" for step in draw.steps_of(Align) for _, mode in modes_of(step.rounding, step.of)
    )
    kept = np.where(sign == 1, -kept - (down & (digits > kept << below)), kept)
    lead, last = _length(digits) - 1, unit - below
    first, second = draw.split(lead + last, draw.a, draw.b)
    product = _code(draw.a, sign, np.where(in_c, 0, digits), first - lead)
    seed = _code(draw.c, sign, np.where(in_c, digits, 0), last) if in_c.any() else draw.zeros(draw.c, size)
    return _spell(draw, total - kept, unit, _Term(product, draw.powers(draw.b, second), seed, in_c))


@dataclass(frozen=True)
class _Way:
    """Which terms hold the digits of a tie, its half, and one bit below: each is c or a product. Capitals
    stand for one term that holds two parts.

    `low` and `high` bound the exponent of the total, `least` that of the bit. The bit lies `reach` below the
    half at most, (even, odd) by the last digit that the result keeps.
    """

    parts: str
    low: int
    high: int
    least: int
    reach: tuple[int, int]


_DIGITS, _HALF_OF_IT, _THE_BIT = range(3)
_TRIES = 64
"""Factors that are tried for a product of given low bits: nearly always one has a partner that is three bits
shorter than these low bits."""


def _ways_to_a_tie(draw: Draw) -> list[_Way]:
    """The ways in which terms add up to half of the result's last place and one bit, which an alignment may
    cut; none for integers, where no alignment keeps half of the last place, and for a lone product, at which
    `product_bits` aims."""
    factors = (draw.a,) if "b" in draw.unit.absent else (draw.a, draw.b)
    floats = all(fmt.is_float and fmt.signed for fmt in (*factors, draw.d))
    aligned, kept = draw.steps_of(Align), draw.kept_bits
    finest = int(draw.window_bits.max())
    if not floats or (aligned and finest <= kept):
        return []
    # Bits that are dropped are the same everywhere below the last one kept.
    farthest = finest - kept + _FARTHEST if _drops(draw) else 1 << 30
    bits_a, bits_b = draw.a.fraction_bits + 1, draw.b.fraction_bits + 1
    has_c = draw.c.is_float and draw.c.signed and "c" not in draw.unit.absent
    scales, blocks = _scales_of(draw)
    lowest, least_product = draw.low + scales[0], draw.least("a", "b") + scales[0]
    highest = draw.high + scales[1]
    least = {"c": draw.least("c") if has_c else 0, "p": least_product}
    top, bottom = highest_exponent(draw.d), lowest_exponent(draw.d)
    of_product = min(top, highest - 1)
    above_c = min(top, highest_exponent(draw.c)) if has_c else top
    found = []

    def add(parts: str, low: int, high: int, near: tuple[int, int] | None = None) -> None:
        low, end = max(low, bottom), least[parts[_THE_BIT]]
        far = min(high - kept - 1 - end, farthest)
        if blocks < parts.count("p") + parts.count("PP"):  # elements of one scale reach all of these products
            far = min(far, draw.high - draw.tiniest - (0 if parts[_DIGITS] == "c" else kept + 2))
        reach = (far, far) if near is None else (min(far, near[0]), min(far, near[1]))
        if aligned and near is not None:  # a bit below zero, behind an odd digit, is a term of its own
            reach = (reach[0], 0)
        if low <= high and reach[0] > 0:
            found.append(_Way(parts, low, high, end, reach))

    if has_c and draw.c.fraction_bits > kept:
        add("CCp", lowest_exponent(draw.c), above_c)
    joined = _joined_lengths(draw)
    if joined[0] <= joined[1]:
        if has_c:
            add("PPc", lowest, of_product)
        if draw.k > 1:
            add("PPp", lowest, of_product)
    if kept and max(bits_a, bits_b) > 1:
        # The half is a product of its own, where the rounding decides by it.
        half = int(_last_rounding(draw).nearest)
        half_low = lowest + half * (kept + 1)
        if has_c and draw.k > half:
            add(
                "cpp",
                max(lowest_exponent(draw.c), half_low),
                min(above_c, highest + kept) if half else above_c,
            )
            add("ppc", half_low, of_product)
        if draw.k > 1 + half:
            add("ppp", half_low, of_product)
    if has_c and kept > 1 and draw.c.fraction_bits >= kept and min(bits_a, bits_b) > 1:
        near = min(bits_b + _TRIES.bit_length() - 4, bits_a + bits_b - 3)
        least["P"] = lowest
        add("cPP", lowest_exponent(draw.c), min(above_c, highest + kept - bits_a - bits_b), (near, near))
    if has_c and kept > 1 and bits_a > 1:
        of_c = draw.c.fraction_bits
        least["C"] = least["c"]
        add("pCC", lowest, min(of_product, highest_exponent(draw.c)), (of_c, of_c + 1))
    return found


def _drops(draw: Draw) -> bool:
    """Whether alignments drop what they cut, without a sticky bit."""
    steps = draw.steps_of(Align)
    return bool(steps) and all(step.cut == "dropped" for step in steps)


def _scales_of(draw: Draw) -> tuple[tuple[int, int], int]:
    """The least and the largest exponent of two scales together, and the number of blocks: without scales
    that of products."""
    formats = [draw.unit.formats[name] for name in draw.scales]
    ends = sum(map(lowest_exponent, formats)), sum(map(highest_exponent, formats))
    return ends, next((codes.shape[1] for codes in draw.scales.values()), draw.k)


def _joined_lengths(draw: Draw) -> tuple[int, int]:
    """How long, from and to, a may be as a factor of a product that is a result's digits and the half."""
    digits = draw.kept_bits + 2
    return max(1, digits - draw.b.fraction_bits), min(draw.a.fraction_bits + 1, digits - 3)


_ROWS, _WANTED = 16_667, 36
"""Of 200,000 default vectors: what a kind of boundary has, and what a bit alone at one place has, of which 20
or more decide."""
_MOST_OF_CUTS, _MOST_OF_TOTALS = 0.8, 0.5
"""The largest shares that bits alone have of `cut_bits` and of `total_boundary`, where these have others."""
_ANY = -1
"""In place of a term: c or any product."""


def _lone_places(draw: Draw, ways: list[_Way]) -> Ints:
    """What the rows of `lone_bits` have in turn (n, 3): the term of the bit (k for c), how far below half
    of the last place it lies, and whether the last digit is odd (where nothing is aligned).

    Each vector shows a missing place of one term. So c and the products have as many places of their own as
    there are vectors for; farther below, products take turns.
    """
    of_c, of_products = (
        max((way.reach[0] for way in ways if way.parts[_THE_BIT] in parts), default=0)
        for parts in ("cC", "pP")
    )
    if not draw.steps_of(Align):
        distances = np.repeat(np.arange(1, max(of_c, of_products) + 1), 2)
        return np.stack([np.full_like(distances, _ANY), distances, np.arange(len(distances)) & 1], axis=1)
    most = int(_ROWS * (_MOST_OF_CUTS + _MOST_OF_TOTALS) / _WANTED)
    own = min(max(most - of_c - of_products, 0) // max(draw.k - 1, 1), of_products)
    own *= not _drops(draw)  # an alignment that drops bits has no sticky bit of any term
    below = np.arange(own + 1, of_products + 1)
    term = np.concatenate([np.full(of_c, draw.k), np.repeat(np.arange(draw.k), own), below % draw.k])
    distances = np.concatenate([np.arange(1, of_c + 1), np.tile(np.arange(1, own + 1), draw.k), below])
    return np.stack([term, distances, 0 * term], axis=1)


def _shares_of_lone_bits(draw: Draw) -> tuple[float, float]:
    """Their shares of `cut_bits` and of `total_boundary`: as many as their places need."""
    ways = _ways_to_a_tie(draw)
    if not ways:
        return 0.0, 0.0
    needed = len(_lone_places(draw, ways)) * _WANTED / _ROWS
    least, most = (0.3, _MOST_OF_CUTS) if draw.steps_of(Align) else (1.0, 1.0)
    share = min(max(needed, least), most)
    return share, min(max(needed - share, 0.0), _MOST_OF_TOTALS)


def lone_bits(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Half of the last place and one bit, or the bit alone, as the rounding decides by it: at each distance
    that terms have. A sticky bit that misses one is wrong there alone."""
    size, kept, ways = (draw.count,), draw.kept_bits, _ways_to_a_tie(draw)
    places = _lone_places(draw, ways)
    term, distance, odd = places[draw.in_turn(len(places))].T
    minus, other_sign = draw.coins(size), np.zeros(size, np.uint8)
    if draw.steps_of(Align):
        minus, other_sign, odd = _deciding(draw, distance)
    fits = np.stack([distance <= np.take(way.reach, odd) for way in ways])
    in_c = np.array([way.parts[_THE_BIT] in "cC" for way in ways])[:, None]
    wanted = np.where(term == _ANY, draw.coins(size) == 1, term == draw.k)
    order = draw.fraction(fits.shape) >> np.uint64(2) | np.uint64(1)
    chosen = np.where(fits, order + ((in_c == wanted).astype(np.uint64) << np.uint64(62)), 0).argmax(axis=0)
    ends = np.array([[way.low, way.high, way.least] for way in ways])[chosen]
    low, high = np.maximum(ends[:, 0], ends[:, 2] + distance + kept + 1), ends[:, 1]
    lead = draw.pick(np.minimum(low, high), high, size)
    # Results below the least normal number have its last place and fewer digits.
    share = 0.15
    least = lowest_exponent(draw.d)
    subnormal = draw.chance(share, size) & (low == least)
    lead, fewer = np.where(subnormal, least, lead), subnormal * draw.pick(1, max(kept - 1, 1), size)
    a = np.zeros(draw.shape, draw.a.dtype)
    b = draw.powers(draw.b, draw.pick(lowest_exponent(draw.b), highest_exponent(draw.b), a.shape))
    c, most = draw.zeros(draw.c, size), min(draw.k, 3)
    targets, terms = np.zeros((*size, most), np.int64), np.zeros((3, *size, most), np.int64)
    for number, way in enumerate(ways):
        own, column = np.flatnonzero(chosen == number), 0
        of_way = _tie_of(draw, way, lead[own], distance[own], odd[own], fewer[own], other_sign[own])
        for part, x, y, exponent, negative in reversed(of_way):  # the bit's product comes first
            sign = minus[own] ^ negative
            if part == "c":
                c[own] = _code(draw.c, sign, x, exponent)
                continue
            targets[own, column] = exponent + _length(x) + _length(y) - 2
            for part_of_term, numbers in zip(terms, (x, y, sign), strict=True):
                part_of_term[own, column] = numbers
            column += 1
    anywhere = (term == _ANY) | (term == draw.k)
    x, y, sign = terms
    at = _places(draw, np.where(anywhere, draw.pick(0, draw.k - 1, size), term), most)
    target = targets - _reached(draw, targets, x > 0, at)
    first, second = draw.split(target, draw.a, draw.b, target >= draw.low)
    row = np.arange(draw.count)[:, None]
    a[row, at] = _code(draw.a, sign.astype(np.uint8), x, first - _length(x) + 1)
    b[row, at] = np.where(x > 0, _code(draw.b, None, y, second - _length(y) + 1), b[row, at])
    if "b" in draw.unit.absent and draw.k == 1 and draw.a == draw.c:  # an adder: either operand leads
        a[:, 0], c = np.where(draw.coins(size) == 1, (a[:, 0], c), (c, a[:, 0]))
    return a, b, c


def _deciding(draw: Draw, distance: Ints) -> tuple[Bits, Bits, Ints]:
    """Signs (n,) of totals, whether the bit has the other sign, and whether the last digit is odd, for which
    the rounding decides by the bit."""
    rounding = _last_rounding(draw)

    def decides(minus: int, other_sign: int, odd: int) -> bool:
        if rounding.nearest:
            return rounding.up(minus, TIE, odd) != rounding.up(minus, BELOW if other_sign else ABOVE, odd)
        return not rounding.up(minus, ABOVE, 1 - odd) if other_sign else rounding.up(minus, BELOW, odd)

    cases = np.array([case for case in itertools.product((0, 1), repeat=3) if decides(*case)])
    if not len(cases):
        cases = np.array([(0, 0, 0), (1, 0, 0)])
    minus, other_sign, odd = cases[draw.pick(0, len(cases) - 1, distance.shape)].T
    longer = cases[cases[:, 1] == 0]
    if len(longer) and any(step.cut == "sticky_or" for step in draw.steps_of(Align)):
        # What is cut makes the total longer, whatever its sign.
        cut = distance >= int(draw.window_bits.max()) - draw.kept_bits
        of_cut = longer[draw.pick(0, len(longer) - 1, distance.shape)].T
        minus, odd = np.where(cut, of_cut[0], minus), np.where(cut, of_cut[2], odd)
        other_sign = np.where(cut, draw.coins(distance.shape), other_sign)
    return minus.astype(np.uint8), other_sign.astype(np.uint8), odd


def _places(draw: Draw, first: Ints, most: int) -> Ints:
    """Places (n, most) of products, of which the first is given (n,); the others in any order, in a block
    each as far as there are so many."""
    blocks = _scales_of(draw)[1]
    each = draw.k // blocks
    keys = draw.fraction((len(first), blocks))
    np.put_along_axis(keys, first[:, None] // each, 0, axis=1)
    block, number = np.argsort(keys, axis=1), np.arange(most)
    inside = first[:, None] % each + number // blocks
    return np.asarray(block[:, number % blocks] * each + inside % each)


def _reached(draw: Draw, targets: Ints, there: Rows, places: Ints) -> Ints:
    """Sets the scales so that elements at these places (n, most) reach the exponents of the products that are
    there; returns the exponents of their scales."""
    if not draw.scales:
        return 0 * targets
    (low, high), blocks = _scales_of(draw)
    block = places // (draw.k // blocks)
    chosen = np.zeros((draw.count, blocks), np.int64)
    for number in range(blocks):
        here = there & (block == number)
        top = np.where(here, targets, -(1 << 20)).max(axis=1)
        end = np.where(here, targets, 1 << 20).min(axis=1)
        least, most = np.clip(top - draw.high, low, high), np.clip(end - draw.low, low, high)
        most = np.where(least > most, np.clip(end - draw.tiniest, low, high), most)
        chosen[:, number] = draw.pick(least, most, (draw.count,))
    first, second = (draw.unit.formats[name] for name in draw.scales)
    for (name, codes), part in zip(draw.scales.items(), draw.split(chosen, first, second), strict=True):
        codes[...] = draw.powers(draw.unit.formats[name], part)
    return np.take_along_axis(chosen, block, axis=1)


def _tie_of(
    draw: Draw, way: _Way, lead: Ints, distance: Ints, odd: Ints, fewer: Ints, minus: Bits
) -> list[tuple[str, Ints, Ints, Ints, Bits | int]]:
    """The terms of totals that lead at these exponents: each c or a product, its digits x and y, the exponent
    of their last bits, and whether it has the other sign. `fewer`: how many digits a subnormal result lacks;
    `minus`: whether the bit has the other sign. A directed rounding decides by the bit alone, without the
    half."""
    size, kept, nearest = lead.shape, draw.kept_bits, _last_rounding(draw).nearest
    half, one_of = lead - kept - 1, np.ones_like(lead)
    bit = half - distance
    last = ("c" if way.parts[_THE_BIT] in "cC" else "p", one_of, one_of, bit, minus)
    if way.parts[:2] == "CC":
        places = kept - fewer
        digits = (_anything(draw, places) | _power(places) | 1) - 1 + odd
        return [("c", 2 * digits + nearest, one_of, half, 0), last]
    if way.parts[:2] == "PP":
        x, y = _joined(draw, odd)
        return [("p", x, y, half, 0), last]
    leading = draw.c if way.parts[_DIGITS] == "c" else draw.a
    # The digits that lead end above the last place; all of c's, if the product has some of them, too.
    length = draw.pick(min(2, kept), min(leading.fraction_bits + 1, kept), size)
    if way.parts[1:] in ("pp", "pc"):
        length, lead = np.minimum(length, np.maximum(kept - fewer, 1)), lead - fewer
    digits = _anything(draw, length - 1) | _power(length - 1) | 1
    first = ("c" if way.parts[_DIGITS] == "c" else "p", digits, one_of, lead - length + 1, 0)
    if way.parts[1:] == "CC":
        # The half and the bit; or what the digits need for them, less than which leaves an odd last digit.
        low = np.where(odd == 1, _power(distance) - 1, _power(distance) + 1)
        return [first, ("c", low, one_of, bit, odd.astype(np.uint8))]
    if way.parts[1:] == "PP":
        x, y = _with_low_bits(draw, distance)
        taken = x * y >> distance + 1
        wide = np.full(size, kept - 1)  # the second digit of c is 0, so that nothing carries past the first
        top = _power(np.full(size, kept)) | _anything(draw, wide)
        top = top ^ ((top ^ taken ^ odd) & 1)
        return [("c", top, one_of, half + 1, 0), ("p", x, y, bit, 0)]
    if not nearest:
        return [first, last]
    middle = np.where(odd == 1, 3, 1)
    of_a = draw.a.fraction_bits > 0
    return [first, ("p", middle if of_a else one_of, one_of if of_a else middle, half, 0), last]


def _last_rounding(draw: Draw) -> Rounding:
    """The rounding of the last step; to nearest even where there is none."""
    last = None if draw.program is None else draw.program.operations[-1].steps[-1]
    return ROUNDINGS.get(str(getattr(last, "rounding", "")), ROUNDINGS["nearest_even"])


def _joined(draw: Draw, odd: Ints) -> tuple[Ints, Ints]:
    """Factors (n,) of products of all digits of a result, the last one as given, and half of its place."""
    digits = draw.kept_bits + 2
    shortest, longest = _joined_lengths(draw)
    length = draw.pick(shortest, longest, odd.shape)
    x = _anything(draw, length - 1) | _power(length - 1) | 1
    low, high = -(-(1 << digits - 1) // x), ((1 << digits) - 1) // x
    y = draw.pick(low, high - 3, odd.shape)
    return x, y + (x * (2 * odd + 1) - y & 3)  # x is its own inverse modulo 4


def _with_low_bits(draw: Draw, distance: Ints) -> tuple[Ints, Ints]:
    """Factors (n,) of products that end in a one, zeros, and a one `distance` places above: of some distances
    beyond the digits of b there are none."""
    bits_a, bits_b, kept = draw.a.fraction_bits + 1, draw.b.fraction_bits + 1, draw.kept_bits
    size = (_TRIES, *distance.shape)
    most = np.clip(kept - 1 + distance - np.minimum(distance, bits_b - 1) - 1, 1, bits_a)
    x = _anything(draw, np.broadcast_to(most, size)) | 1
    wanted = (_power(distance) + 1).astype(np.uint64)
    y = (wanted * _inverse(x)).astype(np.int64) & (_power(distance + 1) - 1)
    found = (y < 1 << bits_b).argmax(axis=0), np.arange(len(distance))
    return x[found], np.minimum(y[found], (1 << bits_b) - 1)


_FARTHEST = 26
"""Places below the last one kept at which one bit is cut alone: just past the significands of f32."""


def _lone_cuts(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Two terms, of which an alignment cuts one, a power of two, at each place. One is a product, the other c
    or a product; they lie anywhere."""
    size, columns = (draw.count,), np.arange(draw.k)
    distance = draw.choice(draw.window_bits, size) + 1 + draw.in_turn(_FARTHEST)
    formats = [draw.unit.formats[name] for name in draw.scales]
    low = draw.tiniest + sum(lowest_exponent(fmt) for fmt in formats)
    high = draw.high + sum(highest_exponent(fmt) for fmt in formats)
    has_c = draw.c.is_float and "c" not in draw.unit.absent
    # c above the product, c below it, or two products, where they can be as far apart.
    together = low + distance <= high
    above, below, products = range(3)
    kinds = ([above, below] * has_c + [products] * 4 * (draw.k > 1 and not formats)) or [above]
    how = draw.choice(kinds, size)
    how = np.where((how == products) & ~together & has_c, above, how)
    # The lower term: where the other one is in its format's range.
    ends = lowest_exponent(draw.c), highest_exponent(draw.c)
    least = np.choose(
        how, [np.maximum(low, ends[0] - distance), tiniest_exponent(draw.c) + 0 * how, low + 0 * how]
    )
    least = np.where(how == below, np.maximum(least, draw.low - distance), least)
    most = np.choose(
        how, [np.minimum(high, ends[1] - distance), np.minimum(high - distance, ends[1]), high - distance]
    )
    small = draw.pick(np.minimum(least, most), most, size)
    large = small + distance
    first, second = np.where(how == below, large, small), large
    for name, part in zip(SCALES, _parts(draw, first, formats), strict=False):
        draw.scales[name][...] = draw.powers(draw.unit.formats[name], part)[:, None]
        first = first - part
    place = draw.pick(0, draw.k - 1, size)
    other = (place + draw.pick(1, max(draw.k - 1, 1), size)) % draw.k
    in_first, in_second = columns == place[:, None], (columns == other[:, None]) & (how == products)[:, None]
    of_a, of_b = draw.split(
        np.where(in_second, second[:, None], first[:, None]), draw.a, draw.b, normal=False
    )
    exact = in_first & (how != below)[:, None]
    a = np.where(exact, draw.powers(draw.a, of_a), draw.numbers(draw.a, of_a))
    b = np.where(exact, draw.powers(draw.b, of_b), draw.numbers(draw.b, of_b))
    factor, fmt = draw.signed_factor(a, b)
    factor[...] = np.where(draw.chance(0.5, a.shape), negate(fmt, factor), factor)
    a = np.where(in_first | in_second, a, np.zeros((), draw.a.dtype))
    c = np.choose(
        how,
        [draw.numbers(draw.c, large), draw.powers(draw.c, small, draw.coins(size)), draw.zeros(draw.c, size)],
    )
    return a, b, c.astype(draw.c.dtype)


def _parts(draw: Draw, exponent: Ints, formats: list[Format]) -> tuple[Ints, ...]:
    """Exponents (n,) of the scales with which elements reach an exponent (n,); none without scales."""
    if not formats:
        return ()
    scale = draw.pick(exponent - draw.high, exponent - draw.tiniest, exponent.shape)
    return draw.split(scale, formats[0], formats[1])


def _totals(draw: Draw) -> tuple[Ints, Ints]:
    """A total at a boundary (count,), and the exponent of its last bit (count,)."""
    if not draw.d.is_float:
        return _integer_totals(draw)
    size, formats = (draw.count,), rounded_to(draw)
    which = draw.pick(0, len(formats) - 1, size)
    least = np.array([lowest_exponent(fmt) for fmt in formats])[which]
    most = np.array([highest_exponent(fmt) for fmt in formats])[which]
    kept = np.array([draw.kept_bits if fmt is draw.d else fmt.fraction_bits for fmt in formats])[which]
    # Bits that are cut: as many as an alignment cuts, or any number.
    window = draw.choice(draw.window_bits, size) - kept + draw.pick(0, 1, size)
    depth = np.where(draw.chance(0.6, size), window, draw.pick(1, _DEEPEST, size))
    depth = np.clip(depth, 1, _BITS - 2 - kept)
    # The leading bit: anywhere in the normal range, at its upper end, at its lower end, among subnormals.
    of_c = draw.c.is_float and "c" not in draw.unit.absent
    least_product = draw.least("a", "b")
    low = max(least_product, tiniest_exponent(draw.c)) if of_c else least_product
    reach = max(draw.high, highest_exponent(draw.c)) if of_c else draw.high
    # A total of products alone ends at their largest; one that c leads has its last bits from products.
    by_c = draw.chance(0.6, size) & of_c
    lowest = np.where(by_c, least_product + kept + depth, low + kept)
    highest = np.minimum(most, draw.high + np.where(by_c, kept, 0))
    usual = draw.pick(np.minimum(np.maximum(least, lowest), highest), highest, size)
    ends = [usual, most, least - draw.pick(0, 1, size), least - draw.pick(1, kept + 1, size)]
    lead = np.clip(np.choose(draw.choice([0] * 10 + [1] * 3 + [2] * 4 + [3] * 3, size), ends), low, reach)
    # Where no product has bits below the result's last place, c is alone: that is enough in some rows.
    alone = (lead - kept < least_product) | (lead - kept - depth > draw.high)
    lead = np.where(alone & draw.chance(0.7, size), usual, lead)
    # Just below the least normal number, all ones: whether the result becomes that number hangs on every bit.
    # With this share some 15 of 200,000 vectors of a lone f32 product round up past each of its 23 digits.
    rises = draw.chance(0.15, size) & (least - 1 >= low)
    lead = np.where(rises, least - 1, lead)
    if draw.sums_exactly:
        # No alignment bounds what is cut: of a large total every place down to the last of a product is.
        far = draw.chance(0.4, size) & ~rises
        lead = np.where(far, highest - draw.pick(0, 3, size), lead)
        deepest = np.clip(lead - kept - least_product, 1, _BITS - 2 - kept)
        depth = np.where(far, draw.pick(1, deepest, size), depth)
    # The last place of the result; or that which it had without a least exponent, by which a unit decides
    # whether a result is tiny before it flushes it or raises underflow.
    last = np.where(rises | draw.chance(0.2, size), lead, np.maximum(lead, least)) - kept
    # The digits of the result below the leading one carry, borrow or do neither.
    width = np.maximum(lead - last, 0)
    ones = _power(width) - 1
    digits = np.choose(
        draw.choice([0, 0, 1, 2, 3], size), [_anything(draw, width), 0 * ones, ones, field(draw, width)]
    )
    digits = np.where(lead >= last, _power(width) + digits, 0)  # below half of the least number: no digit
    total, unit = (digits << depth) + field(draw, depth), last - depth
    # What rounds up carries through a run of ones: of all digits, nearly a power of two, also where a step
    # keeps more than D; of all but one digit, which stops it; or of the digits below any place.
    top = width + depth
    place = draw.pick(np.minimum(depth, top - 1), top - 1, size)
    ends_at = (_power(top) + (_anything(draw, width) << depth) >> place + 1) + 1 << place + 1
    all_ones = _power(top + 1)
    but_one = all_ones - _power(place)
    runs = np.choose(draw.pick(0, 2, size), [all_ones, but_one, np.where(rises, but_one, ends_at)])
    runs = (runs - draw.choice([0, 1, 1, 1, 2, 3], size)) * (lead >= last)
    # Totals with a run of ones, but for the last two bits: a carry runs through them.
    share = 0.25
    total = np.where(rises | draw.chance(share, size), np.maximum(runs, 0), total)
    if not (draw.a.is_float and draw.b.is_float):
        unit = np.maximum(unit, 0)
    return np.where(draw.coins(size) == 1, -total, total), unit


def _crossings(draw: Draw) -> tuple[Ints, Ints] | None:
    """Totals just past a power of two, for a c just below it: their leading bit lies above the largest
    exponent, so that they have a bit more below than an alignment keeps. The last of these, alone or with
    half of the result's last place, are what a normalisation cuts. None where no alignment keeps more than
    d."""
    finest, kept = int(draw.window_bits.max()), draw.kept_bits
    depth, size = finest + 1 - kept, (draw.count,)
    if not draw.d.is_float or not draw.c.is_float or "c" in draw.unit.absent or not 2 <= depth <= _DEEPEST:
        return None
    # The terms other than c lead by the width of an alignment above the last bit: all of them are kept.
    width = draw.choice(draw.window_bits, size)
    low, high = draw.least("a", "b") + finest + 1, draw.high + finest + 1 - width
    exponent = draw.pick(
        np.maximum(low, lowest_exponent(draw.d)), np.minimum(high, highest_exponent(draw.d)), size
    )
    bit = np.choose(draw.pick(0, 2, size), [1, 2, _power(draw.pick(0, depth - 2, size))])
    cut = bit + np.where(draw.coins(size) == 1, 1 << depth - 1, 0)
    between = np.where(draw.coins(size) == 1, _power(draw.pick(depth, np.maximum(width - 1, depth), size)), 0)
    total = (np.int64(1) << depth + kept) + _power(width) + between + cut
    return np.where(draw.coins(size) == 1, -total, total), exponent - 1 - finest


def _integer_totals(draw: Draw) -> tuple[Ints, Ints]:
    """Numbers at the ends of D's range, of a sum's register, at powers of two, or up to three off, with what
    is below their point; and the exponent of their last bit."""
    moved = _places_moved(draw)
    cut = min(max(moved, 0), _BITS // 2)
    size, bits = (draw.count,), min(draw.d.integer_bits, _BITS - cut)
    widths = {step.width for step in draw.steps_of(Sum) if step.width is not None}
    ends = [1 << bits, 1 << bits - 1, *(1 << min(width - 1, _BITS) for width in sorted(widths)), 0]
    edge = np.where(
        draw.chance(0.6, size), draw.choice(np.array(ends, np.int64), size), _power(draw.pick(0, bits, size))
    )
    edge = np.where(draw.coins(size) == 1, -edge, edge)
    total = np.asarray(edge + draw.choice([-3, -2, -1, -1, -1, 0, 0, 0, 1, 1, 2, 3], size))
    if not cut and not draw.a.is_float:
        return total, np.zeros(draw.count, np.int64)
    # What is below the point, next to any number or to one at an end.
    share = 0.3 if draw.a.is_float else 0.5
    anywhere = _anything(draw, draw.pick(1, bits, size))
    total = np.where(draw.chance(share, size), np.where(total < 0, -anywhere, anywhere), total)
    if not draw.a.is_float:
        return (total << cut) + field(draw, np.full(size, cut)), np.zeros(draw.count, np.int64)
    # Floats have as many places there as a factor has in addition to the digits above the point. Mostly they
    # hold a number that a rounding decides on, or its neighbour.
    places = max(draw.a.fraction_bits, draw.b.fraction_bits) + 1 - _length(np.abs(total))
    places = np.clip(places, 1, _BITS - 2 - bits)
    half, share = _power(places - 1), 0.8
    near = np.choose(draw.pick(0, 4, size), [0 * half, half, half, half - 1, half + 1])
    below = np.where(draw.chance(share, size), near & 2 * half - 1, field(draw, places))
    return (total << places) + below, moved - places


def _places_moved(draw: Draw) -> int:
    """How many places of a, or of a sum of products, a scale by a power of two moves below the point of an
    integer."""
    return -sum(
        step.power or 0 for step in draw.steps_of(Scale) if {"a", "products", "total", "dot"} & {*step.of}
    )


# The terms of a total ---------------------------------------------------------------------------------------


def _spell(
    draw: Draw, total: Ints, unit: Ints, placed: _Term | None = None, below: Rows | None = None
) -> tuple[Bits, Bits, Bits]:
    """Operands whose terms add up to total * 2**unit, as near as formats and k allow; all other products are
    zeros.

    Args:
        placed: one more term, which is not part of the total.
        below: in these rows (count,) c comes first and is the number below the total's leading bit.
    """
    size = (draw.count,)
    # A total is made of a few products: 24 bits are three products of FP8, and two more cancel.
    most = 5
    column, end = 0, min(draw.k, most)
    a = np.zeros(draw.shape, draw.a.dtype)
    b = draw.powers(draw.b, draw.pick(lowest_exponent(draw.b), highest_exponent(draw.b), draw.shape))
    c, left = np.zeros(draw.count, draw.c.dtype), total
    has_c = "c" not in draw.unit.absent
    first, second, last, never = range(4)  # when c takes its part
    turn = (
        draw.choice([first, first, second, second, last, last, never], size)
        if has_c
        else np.full(draw.count, never)
    )
    if placed is not None:
        a[:, 0], b[:, 0], c = placed.a, placed.b, placed.c
        column = 1
    if has_c and (draw.scales or column >= end):  # elements of one scale reach few digits: c takes what leads
        turn = np.full(draw.count, first)
    if placed is not None:
        turn = np.where(placed.in_c, never, turn)
    alone = np.ones(draw.count, bool)  # rows where other terms may come between
    if below is not None:
        turn, alone = np.where(below, first, turn), ~below
    if draw.sums_exactly:  # a total whose bits lie far apart needs every term itself
        size_of = np.abs(total).astype(np.int64)
        lowest = np.asarray(size_of & -size_of, np.int64)
        span = _length(size_of) - _length(lowest) + 1
        alone = alone & (span <= (draw.a.fraction_bits + 1) * (end - column - 1))
    c, left = _take_c(draw, c, left, unit, turn == first, below)
    unit_of_products = unit - _scales_for(draw, left, unit)
    if end - column > 1:  # in some rows a term that the others make up for
        noise = np.where((draw.chance(0.5, size) | (turn == second)) & alone, _noise(draw, left), left)
        left = left - _take_product(draw, a, b, noise, unit_of_products, column)
        column += 1
    # c takes what this term leaves, so that a product may set the alignment of a total that it exceeds.
    c, left = _take_c(draw, c, left, unit, turn == second)
    paired = np.zeros(draw.count, bool)
    if end - column > 2:
        paired = draw.chance(0.3, size) & alone
        _put_cancelling(draw, a, b, unit_of_products + _length(np.abs(total)), column, paired)
    for place in range(column, end):
        wanted = np.where(paired & (place < column + 2), 0, left)
        left = left - _take_product(draw, a, b, wanted, unit_of_products, place)
    c, left = _take_c(draw, c, left, unit, turn == last)
    a, b = draw.shuffle(a, b, near=draw.chance(0.7, size))  # of a chain mostly in one of its links
    return a, b, c


def _noise(draw: Draw, left: Ints) -> Ints:
    """A number of either sign, about as large as what is left."""
    noise = _anything(draw, np.clip(_length(np.abs(left)), 2, _BITS - 2))
    return np.where(draw.coins(left.shape) == 1, -noise, noise)


def _scales_for(draw: Draw, left: Ints, unit: Ints) -> Ints:
    """Sets the scales of block-scaled units so that elements reach what is left; returns the exponents."""
    if not draw.scales:
        return np.zeros_like(unit)
    lead = _length(np.abs(left)) - 1 + unit
    return draw.set_scales(lead - draw.pick(draw.high - 2, draw.high, lead.shape))


def _leading(draw: Draw, numbers: Ints, bits: Ints | int) -> tuple[Ints, Ints]:
    """The leading `bits` of each number, in some rows one more than these, so that a negative term follows;
    and by how much they are shifted."""
    shift = np.maximum(_length(numbers) - bits, 0)
    return (numbers >> shift) + ((shift > 0) & draw.chance(0.3, numbers.shape)), shift


def _take_c(
    draw: Draw, c: Bits, left: Ints, unit: Ints, rows: Rows, below: Rows | None = None
) -> tuple[Bits, Ints]:
    """c takes the leading digits of what is left, in these rows, or (`below`) the number below its leading
    bit; returns c and what is left then."""
    fmt = draw.c
    if "c" in draw.unit.absent:
        return c, left
    if not fmt.is_float:
        up, down = np.clip(unit, 0, 30), np.clip(-unit, 0, _BITS)
        value = np.clip(left << up >> down, -(fmt.largest + 1) if fmt.signed else 0, fmt.largest)
        codes = (value & ((1 << fmt.integer_bits) - 1)).astype(fmt.dtype)
        return np.where(rows, codes, c), left - np.where(rows, value << down >> up, 0)
    digits, shift = _leading(draw, np.abs(left), fmt.fraction_bits + 1)
    if below is not None:
        ones = (1 << fmt.fraction_bits + 1) - 1
        place = _length(np.abs(left)) - 2 - fmt.fraction_bits
        digits, shift = (
            np.where(below & (place >= 0), ones, digits),
            np.where(below & (place >= 0), place, shift),
        )
    lead = _length(digits) - 1 + shift + unit
    rows = rows & (lead <= highest_exponent(fmt)) & (lead >= draw.least("c"))
    rows = rows & (fmt.signed | (left >= 0))
    codes = _code(fmt, (left < 0).astype(np.uint8), digits, shift + unit)
    return np.where(rows, codes, c), left - np.where(rows, np.sign(left) * (digits << shift), 0)


def _take_product(draw: Draw, a: Bits, b: Bits, left: Ints, unit: Ints, column: int) -> Ints:
    """Puts the leading digits of what is left into the product of one column; returns what that takes."""
    if not (draw.a.is_float and draw.b.is_float):
        return _take_integers(draw, a, b, left, column)
    # One factor has the digits, the other is a power of two.
    in_a = (draw.coins(left.shape) == 1) | (draw.b.fraction_bits == 0)
    digits, shift = _leading(
        draw, np.abs(left), np.where(in_a, draw.a.fraction_bits, draw.b.fraction_bits) + 1
    )
    lead = _length(digits) - 1 + shift + unit
    signed = draw.a.signed or draw.b.signed
    rows = (digits > 0) & (lead >= draw.least("a", "b")) & (lead <= draw.high) & (signed | (left >= 0))
    # Of an exact sum the rounding sees the last bits, too, which products of subnormal factors alone have;
    # of narrow formats that have scales those are a part of all numbers.
    subnormal = (lead < draw.low) & (draw.sums_exactly or bool(draw.scales))
    first, second = draw.split(lead, draw.a, draw.b, ~subnormal)
    back, single = np.maximum(_length(digits) - 1, 0), np.ones_like(digits)
    x = _code(draw.a, None, np.where(in_a, digits, single), first - np.where(in_a, back, 0))
    y = _code(draw.b, None, np.where(in_a, single, digits), second - np.where(in_a, 0, back))
    # Where more is left than one factor holds, both have digits in some rows, nearly all where no other term
    # follows: x is any number of the bits that y lacks, y is how often it fits. What is left then is below x.
    bits_a, bits_b = draw.a.fraction_bits + 1, draw.b.fraction_bits + 1
    length = _length(np.abs(left))
    width = np.clip(length - bits_b, 1, bits_a)
    digits_x = _anything(draw, width - 1) | _power(width - 1) | 1
    digits_x = np.where(_length(np.abs(left) // digits_x) > bits_b, 2 * digits_x + 1, digits_x)
    digits_y = np.abs(left) // digits_x
    often = 0.9 if draw.k == 1 and "c" in draw.unit.absent else 0.5
    both = draw.chance(often, left.shape) & (length > bits_b + 1) & (_length(digits_x) <= bits_a)
    exponent = first - _length(digits_x) + 1
    x = np.where(both, _code(draw.a, None, digits_x, exponent), x)
    y = np.where(both, _code(draw.b, None, digits_y, unit - exponent), y)
    taken = np.where(both, digits_x * digits_y, digits << shift)
    factor, fmt = draw.signed_factor(x, y)
    factor[...] = np.where(left < 0, negate(fmt, factor), factor)
    a[:, column] = np.where(rows, x, a[:, column])
    b[:, column] = np.where(rows, y, b[:, column])
    return np.where(rows, np.sign(left) * taken, 0)


def _take_integers(draw: Draw, a: Bits, b: Bits, left: Ints, column: int) -> Ints:
    """As _take_product, of integers: b is as large as it can be, or anything; a is how often it fits."""
    fmt_a, fmt_b, lone = draw.a, draw.b, "b" in draw.unit.absent  # a itself is then the product
    if fmt_a.is_float or (fmt_b.is_float and not lone) or fmt_a.bits == 1:
        return np.zeros_like(left)
    most = np.minimum(np.maximum(np.abs(left), 1), 1 if lone else fmt_b.largest)
    factor = np.where(draw.chance(0.5, left.shape), most, draw.pick(1, most, left.shape))
    if fmt_b.signed:
        factor = np.where(draw.coins(left.shape) == 1, -factor, factor)
    fits = np.sign(left) * np.sign(factor) * (np.abs(left) // np.abs(factor))
    fits = np.clip(fits, -(fmt_a.largest + 1) if fmt_a.signed else 0, fmt_a.largest)
    a[:, column] = (fits & ((1 << fmt_a.integer_bits) - 1)).astype(fmt_a.dtype)
    if not lone:
        b[:, column] = (factor & ((1 << fmt_b.integer_bits) - 1)).astype(fmt_b.dtype)
    return np.asarray(fits * factor)


def _put_cancelling(draw: Draw, a: Bits, b: Bits, lead: Ints, column: int, where: Rows) -> None:
    """In these rows puts two products that cancel into two columns, up to an alignment's width above what
    leads: what is left is normalised by every shift."""
    if not (draw.a.is_float and draw.b.is_float) or not (draw.a.signed or draw.b.signed):
        return
    rows = np.flatnonzero(where)
    above = draw.pick(-2, int(draw.window_bits.max()) + 2, rows.shape)
    first, second = draw.split(np.minimum(lead[rows] + above, draw.high), draw.a, draw.b)
    x, y = draw.numbers(draw.a, first), draw.numbers(draw.b, second)
    a[rows, column], b[rows, column] = x, y
    factor, fmt = draw.signed_factor(x, y)
    factor[...] = negate(fmt, factor)
    a[rows, column + 1], b[rows, column + 1] = x, y


# The totals of many products --------------------------------------------------------------------------------


def _scaled_totals(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Elements of one block, or of each, sum to a power of two or next to one, at each place that the sum of
    a block has, and scales bring the total to an end of D's range. c is zero or small."""
    size, blocks = (draw.count,), next(iter(draw.scales.values())).shape[1]
    each = draw.k // blocks
    formats = draw.unit.formats["scale_a"], draw.unit.formats["scale_b"]
    largest = [
        fmt.decode(fmt.largest).value / Fraction(2) ** tiniest_exponent(fmt) for fmt in (draw.a, draw.b)
    ]
    # The leading bit of the sum: of most rows among the upper places, down to the last.
    top = draw.tiniest + int(each * largest[0] * largest[1]).bit_length() - 1
    upper = 24
    turn, places = draw.in_turn(1 << 30), min(upper, top - draw.tiniest) + 1
    lead = top - np.where(draw.chance(0.7, size), turn % places, draw.pick(0, top - draw.tiniest, size))
    # As far above c as a block can be: its scale is beyond D's range, and its sum is small. A shifter of c
    # shows that has few bits of distance.
    share = 0.1
    far = draw.chance(share, size)
    lead = np.where(far, np.minimum(draw.tiniest + draw.pick(0, 7, size), top), lead)
    # A power of two; or a bit more or less, at any distance that products of these factors still have.
    depth = np.minimum(draw.pick(1, draw.kept_bits + 1, size), lead - draw.tiniest)
    offs, targets = np.array([-1, 0, 0, 0, 0, 1]), np.array([0, 0, 1, 1, 2, 3])
    off = offs[turn // (places * len(targets)) % len(offs)] * (depth > 0)
    unit, total = lead - depth, _power(depth) + off
    a, b = _sum_of_block(draw, total, unit, each)
    minus = draw.coins(size) == 1
    factor, fmt = draw.signed_factor(a, b)
    factor[...] = np.where(minus[:, None], negate(fmt, factor), factor)
    # Where the total leads: at the end of the range or past it, at its lower end, anywhere.
    all_blocks = draw.chance(0.3, size) if blocks > 1 else np.zeros(size, np.bool_)
    low, high = (sum(end(fmt) for fmt in formats) for end in (lowest_exponent, highest_exponent))
    least, most = lowest_exponent(draw.d), highest_exponent(draw.d)
    usual = draw.pick(np.maximum(least, lead + low), np.minimum(most, lead + high), size)
    ends = [np.full(size, most), np.full(size, most + 1), least - draw.pick(0, 1, size), usual]
    wanted = np.where(
        far, most - draw.pick(0, 1, size), np.choose(targets[turn // places % len(targets)], ends)
    )
    scale = wanted - lead - np.where(all_blocks, blocks.bit_length() - 1, 0)
    for name, part in zip(SCALES, draw.split(scale, *formats), strict=True):
        draw.scales[name][...] = draw.powers(draw.unit.formats[name], part)[:, None]
    at = np.arange(draw.k) // each
    here = all_blocks[:, None] | (at == draw.pick(0, blocks - 1, size)[:, None])
    below = wanted - draw.pick(0, int(draw.window_bits.max()) + 4, size)
    c = draw.numbers(draw.c, np.clip(below, lowest_exponent(draw.c), highest_exponent(draw.c)))
    c = np.where(draw.chance(0.5, size), draw.zeros(draw.c, size), c)
    tiny = draw.pick(tiniest_exponent(draw.c), lowest_exponent(draw.c), size)
    c = np.where(far, draw.numbers(draw.c, tiny), c)
    return np.where(here, np.tile(a, blocks), np.zeros((), draw.a.dtype)), np.tile(b, blocks), c


def _sum_exponent(draw: Draw) -> int:
    """The exponent under unit scales at which an alignment takes the largest products, or their exact sum."""
    sums = [step for step in draw.steps_of(Sum) if step.exponent is not None and step.to == "groups"]
    return int(sums[0].exponent) if sums and sums[0].exponent is not None else draw.high


def _places_of_carries(draw: Draw) -> Ints:
    """What the rows of `carries` have in turn (n, 3): the fraction bits of an alignment, how far above its
    exponent the total leads, and which bit, from its last one on, is set below half of the result's last
    place (-1: it has none there)."""
    formats = [draw.a, draw.b, *(draw.unit.formats[name] for name in draw.scales)]
    most = Fraction(draw.k) * 2 ** max(draw.high - _sum_exponent(draw), 0)
    for fmt in formats:
        most *= Fraction(largest_significand(fmt), 1 << fmt.fraction_bits)
    highest = int(most + (draw.c.is_float and "c" not in draw.unit.absent)).bit_length() - 1
    found = []
    for width, above in itertools.product(draw.window_bits.tolist(), range(highest + 1)):
        cut = above + width + (not _drops(draw)) - draw.kept_bits
        found += [(width, above, place) for place in range(cut - 1)] or [(width, above, -1)]
    return np.array(found)


def _share_of_carries(draw: Draw) -> float:
    """The share of `total_boundary`: as many as their places need, of which two thirds decide."""
    return min(max(1.5 * len(_places_of_carries(draw)) * _WANTED / _ROWS, 0.1), 0.3)


def carries(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Equal products of one sign, whose sum carries to each place above the exponent of an alignment. What
    the result cuts is half of its last place and one bit, at each place: c, or a few products or a block of
    its own, make up what the sum lacks."""
    size, kept, sticky = (draw.count,), draw.kept_bits, int(not _drops(draw))
    has_c = draw.c.is_float and "c" not in draw.unit.absent
    places = _places_of_carries(draw)
    width, above, place = places[draw.in_turn(len(places))].T
    depth = np.maximum(above + width + sticky - kept, 0)  # bits below the result's last place
    half = _power(depth - 1) if _last_rounding(draw).nearest else 0
    share = 0.2
    wanted = np.where(draw.chance(share, size), field(draw, depth), half + _power(place))
    wanted = wanted & _power(depth) - 1
    # The equal products: in units of 2**-width of the alignment's exponent. Of narrow alignments they are
    # powers of two, as far as needed, so that nothing of them is cut.
    blocks = _scales_of(draw)[1] if draw.scales else 1
    formats = [draw.a, draw.b, *(draw.unit.formats[name] for name in draw.scales)]
    lifted = draw.high - _sum_exponent(draw)
    spare, product, factors = width + lifted, np.ones(size, np.int64), []
    largest, anything = draw.chance(0.5, size), draw.chance(0.25, size)
    for fmt in formats:
        bits, top = fmt.fraction_bits, largest_significand(fmt)
        digits = np.where(anything, _anything(draw, np.full(size, bits)), top - draw.pick(0, 2, size))
        digits = np.clip(np.where(largest, top, digits) | 1 << bits, 1 << bits, top)
        less = np.minimum(bits, np.maximum(bits - spare, 0))
        digits = np.where(less > 0, digits >> less << less, digits)
        factors.append(digits)
        product, spare = product * (digits >> less), spare - (bits - less)
    product = product << np.clip(spare, 0, _BITS // 2) + sticky
    # How many of them: as many as it takes to lead there, and c for the rest.
    goal = _power(above + width + sticky)
    fewest = -(-goal // product)
    by_c = (draw.coins(size) == 1) & has_c
    free = (
        draw.k // blocks
        if blocks > 1
        else min(draw.k - 1, 1 + (int(depth.max()) + 1) // _digits_of_one(draw))
    )
    by_c |= (fewest > draw.k - free) & has_c
    number = np.clip(fewest, 1, np.where(by_c, draw.k, draw.k - free))
    total = number * product
    left = np.where(by_c & (total < goal), goal + wanted - total, (wanted - total) & 2 * _power(depth) - 1)
    # Where: all bits are those of numbers, and the total is in the result's range.
    exponent, scale = _exponents_of_carries(draw, width, above)
    unit = exponent - width - sticky
    a, b = (np.zeros((*size, draw.k), fmt.dtype) for fmt in (draw.a, draw.b))
    b[...] = one(draw.b)
    c = _code(draw.c, None, np.where(by_c, left, 0), unit)
    left, of_scales = np.where(by_c, 0, left), scale
    if blocks > 1:
        of_scales = _scales_of_the_rest(draw, left, unit, scale)
    for column in range(min(free, 5)):
        left = left - _take_product(draw, a, b, left, unit - of_scales, column)
    if has_c:  # what is below all products
        fits = (left != 0) & (_length(np.abs(left)) - 1 + unit >= draw.least("c"))
        c = np.where(fits, _code(draw.c, (left < 0).astype(np.uint8), np.abs(left), unit), c)
    equal = np.arange(draw.k) - np.where(by_c & (number + free > draw.k), 0, free)[:, None]
    equal = (equal >= 0) & (equal < number[:, None])
    first, second = draw.split(exponent - scale + (lifted if draw.scales else 0), draw.a, draw.b)
    for codes, fmt, digits, at in ((a, draw.a, factors[0], first), (b, draw.b, factors[1], second)):
        codes[...] = np.where(equal, _code(fmt, None, digits, at - fmt.fraction_bits)[:, None], codes)
    parts = draw.split(scale, *formats[2:]) if draw.scales else ()
    of_rest = draw.split(of_scales, *formats[2:]) if draw.scales else ()
    in_rest = (np.arange(blocks) == 0) & ~by_c[:, None]
    for codes, fmt, digits, part, rest in zip(
        draw.scales.values(), formats[2:], factors[2:], parts, of_rest, strict=True
    ):
        of_equal = _code(fmt, None, digits, part - fmt.fraction_bits)[:, None]
        codes[...] = np.where(in_rest & (blocks > 1), draw.powers(fmt, rest)[:, None], of_equal)
    minus = draw.coins(size) == 1
    factor, fmt = draw.signed_factor(a, b)
    factor[...] = np.where(minus[:, None], negate(fmt, factor), factor)
    c = np.where(minus, negate(draw.c, c), c)
    if blocks == 1:
        return *_in_any_order(draw, a, b), c
    turned = draw.pick(0, blocks - 1, (*size, 1))
    for name, codes in draw.scales.items():
        draw.scales[name] = np.take_along_axis(codes, (np.arange(blocks) + turned) % blocks, axis=1)
    order = (np.arange(draw.k) + turned * (draw.k // blocks)) % draw.k
    return np.take_along_axis(a, order, axis=1), np.take_along_axis(b, order, axis=1), c


def _digits_of_one(draw: Draw) -> int:
    """Digits that one product takes of a total."""
    return max(draw.a.fraction_bits, draw.b.fraction_bits) + 1


def _exponents_of_carries(draw: Draw, width: Ints, above: Ints) -> tuple[Ints, Ints]:
    """Exponents (n,) of alignments whose bits below are those of products, or of c, and the exponents of the
    scales for them."""
    deepest, low_c = width + int(not _drops(draw)), draw.least("c")
    end = highest_exponent(draw.d) - above
    if not draw.scales:
        low = np.maximum(draw.least("a", "b") + deepest, max(draw.low, lowest_exponent(draw.d)))
        high = np.minimum(end, draw.high)
        exponent = draw.pick(np.minimum(low, high), high, width.shape)
        return exponent, np.zeros_like(exponent)
    (least, most), of_sum = _scales_of(draw)[0], _sum_exponent(draw)
    low = np.maximum(low_c + deepest, lowest_exponent(draw.d)) - of_sum
    low, high = np.maximum(low, least), np.clip(end - of_sum, least, most)
    # A block of its own reaches so far below the others, if any does.
    reaching = np.minimum(np.maximum(low, least + draw.tiniest + deepest - of_sum), high)
    scale = draw.pick(np.minimum(reaching, high), high, width.shape)
    return scale + of_sum, scale


def _scales_of_the_rest(draw: Draw, left: Ints, unit: Ints, scale: Ints) -> Ints:
    """Exponents (n,) of the scales of a block that has what is left, no larger than those of the others."""
    (low, _), lead = _scales_of(draw)[0], _length(np.abs(left)) - 1 + unit
    least = lead - draw.high
    return np.asarray(np.clip(draw.pick(least, unit - draw.tiniest, left.shape), low, np.maximum(scale, low)))


def _sum_of_block(draw: Draw, total: Ints, unit: Ints, each: int) -> tuple[Bits, Bits]:
    """`each` products that sum to total * 2**unit, as near as the formats allow: many equal ones, and the
    rest of a few."""
    # Products that take the rest: of factors of two digits four give eight digits.
    size, few = total.shape, min(each, 4)
    # Equal products: the largest, or nearly, as often as they fit; or powers of two that are the total.
    lead, formats = unit + _length(total) - 1, (draw.a, draw.b)
    x, y = (np.maximum(largest_significand(fmt) - draw.pick(0, 1, size), 1) for fmt in formats)
    place = np.full(size, sum(highest_exponent(fmt) - fmt.fraction_bits for fmt in formats))
    power = lead - draw.pick(0, max(each - few, 1).bit_length() - 1, size)
    powers = draw.chance(0.4, size) & (power >= draw.tiniest) & (power <= draw.high)
    x, y, place = np.where(powers, 1, x), np.where(powers, 1, y), np.where(powers, power, place)
    whole = np.where(
        unit > place, total << np.clip(unit - place, 0, _BITS), total >> np.clip(place - unit, 0, _BITS)
    )
    many = np.clip(whole // (x * y), 0, each - few)
    first = np.where(
        powers,
        draw.split(place, *formats, place >= draw.low)[0],
        highest_exponent(draw.a) - draw.a.fraction_bits,
    )
    common = np.where(many > 0, np.minimum(unit, place), unit)
    taken = many * x * y << np.clip(place - common, 0, _BITS)
    left = (total << np.clip(unit - common, 0, _BITS)) - np.where(many > 0, taken, 0)
    a, b = (np.zeros((*size, each), fmt.dtype) for fmt in formats)
    for column in range(few):
        # No factor is more than its largest number: of what leads as high as that two products have a half.
        beyond = np.maximum(_length(left) + common - draw.high, 0)
        left = left - _take_product(draw, a, b, left >> beyond, common, column)
    equal = (np.arange(each) >= few) & (np.arange(each) < (few + many)[:, None])
    for codes, fmt, digits, exponent in ((a, draw.a, x, first), (b, draw.b, y, place - first)):
        codes[...] = np.where(equal, _code(fmt, None, digits, exponent)[:, None], codes)
    return _in_any_order(draw, a, b)


def _in_any_order(draw: Draw, a: Bits, b: Bits) -> tuple[Bits, Bits]:
    """The products of each row (n, ...) in random order."""
    order = np.argsort(draw.fraction(a.shape), axis=1)
    return np.take_along_axis(a, order, axis=1), np.take_along_axis(b, order, axis=1)


# Products ---------------------------------------------------------------------------------------------------


def product_bits(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """One product whose low bits are a chosen field, alone or below c: every bit that a multiplier, an
    alignment or a rounding cuts of it."""
    bits_a, bits_b = draw.a.fraction_bits + 1, draw.b.fraction_bits + 1
    if not (draw.a.is_float and draw.b.is_float) or min(bits_a, bits_b) < 3:
        a, b, c = total_boundary(draw)
        _put_half_of_a_subnormal(draw, a, b, c)
        return a, b, c
    size = (draw.count,)
    # x * y has the low bits `wanted` if x is odd and y is wanted / x modulo a power of two: the leading one
    # of y lies above them. Of an x of few bits the product's upper bits are much like the lower ones.
    swapped = draw.coins(size) == 1
    free = np.where(swapped, bits_a, bits_b) - 1
    own = np.where(swapped, bits_b, bits_a)
    x = np.where(draw.chance(0.8, size), _anything(draw, own - 1), field(draw, own - 1)) | _power(own - 1) | 1
    width = np.where(draw.chance(0.8, size), free, draw.pick(1, free, size))
    wanted = field(draw, width) | _anything(draw, free) & ~(_power(width) - 1)
    y = (wanted.astype(np.uint64) * _inverse(x)).astype(np.int64) & (_power(free) - 1) | _power(free)
    digits_a, digits_b = np.where(swapped, y, x), np.where(swapped, x, y)
    carries = digits_a.astype(np.float64) * digits_b >= 2.0 ** (bits_a + bits_b - 1)
    least = lowest_exponent(draw.d)
    low, high = max(least, draw.low), min(highest_exponent(draw.d), draw.high)
    usual = draw.pick(min(low, high), high, size)
    ends = [usual, np.full(size, high), least - draw.pick(0, 1, size)]
    ends.append(least - draw.pick(0, draw.kept_bits + 1, size))
    lead = np.clip(np.choose(draw.choice([0] * 6 + [1, 2, 2, 3], size), ends), draw.low, draw.high)
    first, second = draw.split(lead - carries, draw.a, draw.b)
    share = 0.06  # 20 of 200,000 vectors have half of the least number and, in f32, 31 zeros behind it
    small = draw.chance(share, size) & (least - draw.kept_bits - 2 >= draw.low) & (bits_a + bits_b < 63)
    if small.any():
        near = _near_half_of_a_subnormal(draw, int(small.sum()))
        digits_a[small], digits_b[small], first[small], second[small] = near
    a = np.zeros(draw.shape, draw.a.dtype)
    b = draw.powers(draw.b, draw.pick(lowest_exponent(draw.b), highest_exponent(draw.b), draw.shape))
    row, place = np.arange(draw.count), draw.pick(0, draw.k - 1, size)
    a[row, place] = _code(draw.a, draw.coins(size), digits_a, first - bits_a + 1)
    b[row, place] = _code(draw.b, draw.coins(size), digits_b, second - bits_b + 1)
    # c leads so far above that the field is what is cut: by the result's last place, or by an alignment.
    last = first + second - bits_a - bits_b + 2
    keeps = np.where(draw.chance(0.5, size), draw.kept_bits, draw.choice(draw.window_bits, size))
    above, reach = last + width + keeps, highest_exponent(draw.c)
    c = draw.numbers(draw.c, np.clip(above, lowest_exponent(draw.c), reach))
    alone = draw.chance(0.4, size) | (above > reach) | small
    return a, b, np.where(alone, draw.zeros(draw.c, size), c)


def _near_half_of_a_subnormal(draw: Draw, count: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Digits and exponents of two factors whose product lies next to half of a subnormal result's last place:
    the fewer digits the result keeps, the more zeros or ones are between the half and the rest. In a
    quarter of the rows the rest is one bit."""
    tries = 64  # of which the nearest counts: 6 places nearer than one
    size = (count,)
    bits_a, bits_b = draw.a.fraction_bits + 1, draw.b.fraction_bits + 1
    kept = np.where(draw.coins(size) == 1, 0, draw.pick(0, draw.kept_bits, size))
    digits = np.where(kept > 0, _anything(draw, np.maximum(kept - 1, 0)) | _power(np.maximum(kept - 1, 0)), 0)
    cut = bits_a + bits_b - kept
    goal = (digits << cut) + _power(cut - 1)
    x = draw.pick((goal >> bits_b) + 1, (1 << bits_a) - 1, (tries, *size))
    y = np.minimum(goal // x + draw.coins(size), (1 << bits_b) - 1)
    nearest = np.abs(x * y - goal).argmin(axis=0), np.arange(count)
    x, y, least = x[nearest], y[nearest], lowest_exponent(draw.d) - draw.kept_bits
    first, second = draw.split(least + kept - 2, draw.a, draw.b)
    # Exactly half and one bit: an odd x of as many digits as are kept, and y as in `product_bits`. Their last
    # bits stand `below` places under the result's.
    rows = draw.chance(0.25, size) & (draw.kept_bits > 1)
    below = draw.pick(2, bits_b - 1, size)
    odd = _anything(draw, np.minimum(kept, bits_a)) | _power(np.minimum(kept, bits_a) - 1) | 1
    rest = ((_power(below - 1) + 1).astype(np.uint64) * _inverse(odd)).astype(np.int64) & (_power(below) - 1)
    leads = _length(odd) - 1, _length(rest) - 1
    of_a, of_b = draw.split(least - below + leads[0] + leads[1], draw.a, draw.b)
    return (
        np.where(rows, odd, x),
        np.where(rows, rest, y),
        np.where(rows, of_a - leads[0] + bits_a - 1, first),
        np.where(rows, of_b - leads[1] + bits_b - 1, second),
    )


def _put_half_of_a_subnormal(draw: Draw, a: Bits, b: Bits, c: Bits) -> None:
    """Puts into some rows one number that lies half of the last place above a subnormal result, or above
    zero, and one bit more at each of its lower places: what a converter's sticky bit is made of."""
    if not (draw.a.is_float and draw.d.is_float) or draw.scales:
        return
    free, lowest = draw.a.fraction_bits + 1, lowest_exponent(draw.d) - draw.kept_bits - 1
    if lowest < lowest_exponent(draw.a) or free < 3:
        return
    # Of 24 bits each place is met by 20 of 200,000 vectors behind half of the least number.
    share = 0.1
    row = np.flatnonzero(draw.chance(share, (draw.count,)))
    size = row.shape
    kept = np.where(draw.coins(size) == 1, 0, draw.pick(0, min(draw.kept_bits, free - 2), size))
    digits = np.where(kept > 0, _anything(draw, np.maximum(kept - 1, 0)) | _power(np.maximum(kept - 1, 0)), 0)
    rest = free - 1 - kept  # places below the half
    number = ((2 * digits + 1) << rest) + _power(draw.pick(0, rest - 1, size))
    place = draw.pick(0, draw.k - 1, size)
    a[row], c[row] = 0, draw.zeros(draw.c, size)
    a[row, place] = _code(draw.a, draw.coins(size), number, lowest - rest)
    b[row, place] = one(draw.b)


def _inverse(odd: Ints) -> npt.NDArray[np.uint64]:
    """The inverse of odd numbers modulo 2**64."""
    words = odd.astype(np.uint64)
    found = words.copy()  # right in three bits, as x * x = 1 modulo 8
    for _ in range(5):  # each of Newton's steps doubles them: 6, 12, 24, 48, 96
        found = found * (np.uint64(2) - words * found)
    return found


def few_bits(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Significands of few bits, or of ones with few gaps, in few terms: products and sums whose bits lie far
    apart."""
    size, spread = (draw.count,), int(draw.window_bits.max()) + 4
    middle = draw.pick(draw.low, draw.high, (draw.count, 1))
    target = np.maximum(middle - draw.pick(0, spread, draw.shape), draw.tiniest)
    first, second = draw.split(target, draw.a, draw.b)
    live = draw.chance(draw.choice([1 / draw.k, 2 / draw.k, 0.5], (draw.count, 1)), draw.shape)
    a = np.where(live, _of_few_bits(draw, draw.a, first), np.zeros((), draw.a.dtype))
    at = middle[:, 0] + draw.pick(-spread, spread, size)
    share = 0.2
    anywhere = draw.chance(share, size)
    at = np.where(anywhere, draw.of_any_size(draw.c), at)
    # Below all products c is the result where they are zeros. What compares it with zero reads every bit: it
    # is mostly a code with one bit.
    empty = anywhere & (draw.coins(size) == 1)
    a = np.where(empty[:, None], np.zeros((), draw.a.dtype), a)
    c = _of_few_bits(draw, draw.c, np.clip(at, tiniest_exponent(draw.c), highest_exponent(draw.c)))
    single = empty & draw.chance(0.7, size)
    code = np.uint64(1) << draw.in_turn(draw.c.bits, single).astype(np.uint64)
    c = np.where(single, code.astype(draw.c.dtype), c)
    c = np.where(draw.chance(0.3, size) & ~anywhere, draw.zeros(draw.c, size), c)
    b = _of_few_bits(draw, draw.b, second)
    # As large a product as such a factor has. With this share each place of a subnormal f16 number is met by
    # 20 of 200,000 vectors in each of eight products.
    share = 0.25
    _put_lone_subnormal(draw, a, b, c, draw.chance(share, size) & ~anywhere, infinite=False)
    return a, b, c


def _put_lone_subnormal(draw: Draw, a: Bits, b: Bits, c: Bits, rows: Rows, infinite: bool) -> None:
    """Puts into these rows one product of a subnormal number of one bit, which is not zero wherever the bit
    is, and infinity or one of the largest numbers. All other products are zeros, and c mostly."""
    if not all(fmt.is_float and fmt.has_subnormals and fmt.fraction_bits for fmt in (draw.a, draw.b)):
        return
    row = np.flatnonzero(rows)
    column, in_a = draw.pick(0, draw.k - 1, row.shape), draw.coins(row.shape) == 1
    a[row], c[row] = 0, draw.zeros(draw.c, row.shape)
    if infinite:  # against c it is a NaN, as infinity times any other number is
        specials = special_codes(draw.c)
        special = specials[draw.pick(0, len(specials) - 1, row.shape)]
        c[row] = np.where(draw.chance(0.3, row.shape), special, c[row])
    for fmt, codes, tiny in ((draw.a, a, in_a), (draw.b, b, ~in_a)):
        least = draw.pick(tiniest_exponent(fmt), lowest_exponent(fmt) - 1, row.shape)
        most = draw.numbers(fmt, highest_exponent(fmt) - draw.pick(0, 3, row.shape))
        if infinite and fmt.infinity is not None:
            most = np.full(row.shape, fmt.infinity, fmt.dtype)
        codes[row, column] = np.where(tiny, draw.powers(fmt, least, draw.coins(row.shape)), most)


def _of_few_bits(draw: Draw, fmt: Format, exponent: Ints) -> Bits:
    """Numbers of random signs whose fractions are fields of bits, one for all elements of a row."""
    if fmt.bits == 1 or not fmt.is_float or not fmt.fraction_bits:
        return draw.numbers(fmt, exponent)
    rows = (draw.count,) + (1,) * (exponent.ndim - 1)
    fraction = field(draw, np.full(rows, fmt.fraction_bits)).astype(np.uint64)
    words = np.broadcast_to(fraction << np.uint64(64 - fmt.fraction_bits), exponent.shape)
    return encode(fmt, draw.coins(exponent.shape), exponent, words)


# Classes ----------------------------------------------------------------------------------------------------


def class_pairs(draw: Draw) -> tuple[Bits, Bits, Bits]:
    """Every class of operand and scale meets every other in one product or block, c at any size; all other
    products are zeros, ordinary, or the same."""
    size, row = (draw.count,), np.arange(draw.count)
    place = draw.pick(0, draw.k - 1, size)
    single_a, single_b = _of_any_class(draw, draw.a, size), _of_any_class(draw, draw.b, size)
    # Both factors infinite, or both NaNs: an XOR of their flags in place of an OR shows nowhere else. Of 16
    # products each is to meet both pairs in 20 of 200,000 vectors.
    share = 0.12
    both, nan = draw.chance(share, size), draw.chance(0.5, size)
    single_a, single_b = (
        np.where(both, special_code(draw, fmt, nan, draw.coins(size) == 1), single)
        for fmt, single in ((draw.a, single_a), (draw.b, single_b))
    )
    usual_a, usual_b = (
        draw.numbers(fmt, draw.pick(lowest_exponent(fmt), highest_exponent(fmt), draw.shape))
        for fmt in (draw.a, draw.b)
    )
    # Next to products at the top of D's range, a special code that was read as a number is visible.
    highest = highest_exponent(draw.d) if draw.scales else min(draw.high, highest_exponent(draw.d))
    top_a, top_b = draw.products(highest - draw.pick(0, 2, draw.shape))
    rest = draw.choice([0, 0, 0, 1, 1, 2, 3, 3], (draw.count, 1))
    a = np.choose(rest, [np.zeros_like(usual_a), usual_a, single_a[:, None], top_a])
    b = np.choose(rest, [usual_b, usual_b, single_b[:, None], top_b])
    empty = draw.chance(0.25, size)  # no product at all: what scales and c say alone
    a[row, place] = np.where(empty, a[row, place], single_a)
    b[row, place] = np.where(empty, b[row, place], single_b)
    if draw.scales:
        b = np.where((empty & draw.chance(0.5, size))[:, None], np.zeros((), draw.b.dtype), b)
        _set_scale_classes(draw, place, rest[:, 0] < 3)
    # c from where a product covers it to where it covers all products; scales move them by some 30 binades.
    beyond = int(draw.window_bits.max()) + (30 if draw.scales else 0)
    low = max(draw.tiniest - beyond, tiniest_exponent(draw.c))
    high = min(draw.high + beyond, highest_exponent(draw.c))
    any_size = empty | (draw.coins(size) == 1)
    at = np.where(any_size, draw.of_any_size(draw.c), draw.pick(min(low, high), high, size))
    anywhere = draw.numbers(draw.c, at)
    chosen = [anywhere, draw.zeros(draw.c, size), _of_any_class(draw, draw.c, size)]
    c = np.choose(draw.choice([0, 0, 1, 2], size), chosen)
    at_top = min(highest_exponent(draw.c), highest_exponent(draw.d))
    most, special = draw.numbers(draw.c, at_top - draw.pick(0, 2, size)), special_codes(draw.c)
    special = special[draw.pick(0, len(special) - 1, size)]
    large = np.where(draw.chance(0.5, size), most, special)
    c = np.where((rest[:, 0] == 3) & draw.chance(0.8, size), large, c)
    if draw.a.is_float and draw.b.is_float and not draw.scales:
        # Each class of a factor with each of the other and of c: the 216 of an f32 multiply-add are each to
        # be met by 20 of 200,000 vectors.
        share = 0.45
        of_class = draw.chance(share, size) & ~both
        for fmt, codes in ((draw.a, a), (draw.b, b)):
            codes[row, place] = np.where(of_class, _of_class(draw, fmt, size), codes[row, place])
        c = np.where(of_class, _of_class(draw, draw.c, size), c)
    # Infinity times a number is not infinity times zero: as often as each bit of such numbers needs it.
    share = 0.14
    _put_lone_subnormal(draw, a, b, c, draw.chance(share, size), infinite=True)
    return a, b, c


def _set_scale_classes(draw: Draw, place: Ints, rows: Rows) -> None:
    """Scales of any class in these rows, in most of them in one block alone: that of `place` (count,)."""
    one_block = np.flatnonzero(rows & draw.chance(0.6, (draw.count,)))
    # Pairs of a zero, one, the largest number and a NaN: each of the 16, in each block of a product, is to be
    # met by 20 of 200,000 vectors.
    share = 0.3
    pairs = draw.chance(share, one_block.shape)
    for name, codes in draw.scales.items():
        fmt, row = draw.unit.formats[name], (draw.count, 1)
        shared = _of_any_class(draw, fmt, row)
        shared = np.where(draw.chance(0.5, row), fmt.dtype.type(one(fmt)), shared)
        codes[...] = np.where(rows[:, None], shared, codes)
        block = place[one_block] * codes.shape[1] // draw.k
        last = fmt.largest if fmt.nan is None else fmt.nan
        classes = np.array([0, one(fmt), fmt.largest, last], fmt.dtype)
        of_pair = classes[draw.pick(0, len(classes) - 1, one_block.shape)]
        codes[one_block, block] = np.where(pairs, of_pair, _of_any_class(draw, fmt, one_block.shape))


def _of_class(draw: Draw, fmt: Format, size: tuple[int, ...]) -> Bits:
    """Zeros, subnormal and normal numbers, infinities, and quiet and signalling NaNs, as far as a format has
    them: each as often as the others."""
    if not fmt.is_float:
        return _of_any_class(draw, fmt, size)
    least, lowest = tiniest_exponent(fmt), lowest_exponent(fmt)
    small = draw.numbers(fmt, draw.pick(least, max(lowest - 1, least), size))
    usual = draw.numbers(fmt, draw.pick(lowest, highest_exponent(fmt), size))
    no = np.zeros(size, np.bool_)
    infinite, nan = (special_code(draw, fmt, each, draw.coins(size) == 1) for each in (no, ~no))
    classes = [draw.zeros(fmt, size), small, usual, infinite, nan]
    return np.asarray(np.choose(draw.choice([0, 1, 2, 3, 4, 4], size), classes).astype(fmt.dtype))


def _of_any_class(draw: Draw, fmt: Format, shape: tuple[int, ...]) -> Bits:
    """Codes at the edges of a format, any, or one."""
    corners = corner_codes(fmt)
    edges = corners[draw.pick(0, len(corners) - 1, shape)]
    codes = [edges, draw.raw(fmt, shape), np.full(shape, one(fmt), fmt.dtype)]
    return np.asarray(np.choose(draw.choice([0, 0, 1, 2], shape), codes).astype(fmt.dtype))
