"""Coverpoints of the datapath's last stages: sums, and what is rounded to a format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from golden.cover.points.point import Array, Coverpoint, Sample
from golden.model.registers import Numbers, Roundings, SeenStep
from golden.number.formats import Format, Kind
from golden.number.rounding import ABOVE, BELOW, ROUNDINGS, TIE
from golden.program.bounds import (
    Bounds,
    addends,
    group_sizes,
    groups_of,
    kept_bits,
    largest_significand,
    least_integer,
    one_exponent,
    rounded_total,
)
from golden.program.steps import Additions, Fma, Multiply, Round, RoundingStep, Sum

_SIGNS = ("positive", "negative")
REMAINDERS = ("exact", "below half", "tie", "above half")
_MOST_GROWTH = 16  # bits by which a sum grows that have a bin each
_WIDEST_CUT = 55
"""Bits below the last place of a result that are counted separately; lower bits are shifted out as a
whole."""
_DEPTHS = ((1, 1), (2, 4), (5, 8), (9, 16), (17, 1 << 40))


def sum_points(name: str, step: Sum | Additions | Fma, registers: dict[str, Bounds]) -> list[Coverpoint]:
    """Signs by what the addends can be; growth up to the carry of the largest sum, cancellation down to
    the last kept bit."""
    spans = [span for span in addends(step, registers) if not span.zero]
    total = sum(span.count for span in spans)
    plus, minus = any(s.greatest > 0 for s in spans), any(s.least < 0 for s in spans)
    points = [
        Coverpoint(
            "sum",
            f"{name}: signs of the addends",
            {
                "no addend": True,
                "all positive": plus,
                "all negative": minus,
                "both": plus and minus and total > 1,
            },
        )
    ]
    # Where all addends lie at one place, the leading bit has nothing to move against.
    if all(s.depth == 0 and s.low == s.high for s in spans) or _fixed(step) or not spans:
        return points
    growth = _growth(step, registers)
    # How far the leading bit can fall: from the highest addend to the last bit of any.
    depth = max(span.high for span in spans) - min(span.lsb for span in spans)
    if isinstance(step, Sum) and one_exponent(step, spans):
        depth = min(depth, max(span.depth for span in spans))
    if not any(span.cancels or span.vanishes for span in spans):
        if _pairs_only(step, total):
            depth = min(depth, _deepest_pair(spans))
        elif (
            isinstance(step, Additions) and step.format.is_float
        ):  # two at a time, of them sums in its format
            carry = max(1, *(span.above for span in spans))
            depth = min(depth, max(_deepest_pair(spans), step.format.fraction_bits + carry))
    # Nothing is left only where addends of both signs meet, or the register wraps.
    gone = (plus and minus and total > 1) or _width(step) is not None or _complements(step)
    bins = {f"up by {i}": i <= growth for i in range(_MOST_GROWTH, 0, -1)} | {"same": True}
    bins |= {_depth_label(low, high): low <= depth for low, high in _DEPTHS} | {"nothing left": gone}
    points.append(Coverpoint("sum", f"{name}: leading bit against the largest exponent", bins))
    return points


def _fixed(step: Sum | Additions | Fma) -> bool:
    """Whether the sum shows an exponent that is not its terms'."""
    return isinstance(step, Sum) and step.exponent is not None


def _complements(step: Sum | Additions | Fma) -> bool:
    return isinstance(step, Sum) and step.complement != "none"


def _width(step: Sum | Additions | Fma) -> int | None:
    return step.width if isinstance(step, Sum) else None


def _pairs_only(step: Sum | Additions | Fma, total: int) -> bool:
    """Whether no more than two of the addends ever meet: what they leave is not below the last bits of the
    larger one."""
    return not isinstance(step, Fma) and max(group_sizes(step, total)) <= 2


def _deepest_pair(spans: list[Bounds]) -> int:
    """How far below the larger exponent of two terms the leading bit of their sum can lie: two numbers that
    nearly cancel leave bits of either; one below 1 is met by one of a smaller exponent."""
    carry, least = max(1, *(span.above for span in spans)), min(span.lsb for span in spans)
    bounds = [max(span.depth for span in spans) + carry]
    for span in spans:
        if span.scattered:
            bounds.append(sum(sorted((other.depth for other in spans), reverse=True)[:2]) + carry)
        elif span.subnormal:
            bounds.append(span.low - least)
    return max(bounds)


def _depth_label(low: int, high: int) -> str:
    return (
        f"down by {low}"
        if low == high
        else f"down by {low}..{high}"
        if high < 1 << 40
        else f"down by {low} or more"
    )


def _growth(step: Sum | Additions | Fma, registers: dict[str, Bounds]) -> int:
    """Integer bits that a sum of the largest significands at one exponent carries into; rounded sums have
    two terms."""
    significands = sorted(
        (s.significand for s in addends(step, registers) for _ in range(s.count)), reverse=True
    )
    size = max(group_sizes(step, len(significands))) if isinstance(step, Sum) else 2
    total = sum(significands[:size], Fraction(0))
    if (width := _width(step)) is not None:
        total = min(total, Fraction(1 << width >> 1))
    return max(int(total).bit_length() - 1, 0)


def sum_samples(name: str, seen: SeenStep) -> Iterator[Sample]:
    """The bins that sums fall into."""
    if isinstance(seen.step, Sum):
        terms, totals = seen.terms, seen.written[seen.step.to]
        for i, group in enumerate(groups_of(seen.step, terms.count)):
            yield from _sum_samples(name, terms[group], totals[i : i + 1])
    elif seen.roundings is not None and seen.roundings.left is not None and seen.roundings.right is not None:
        for pair, exact in seen.roundings.additions():
            yield from _sum_samples(name, pair, exact)


def _sum_samples(name: str, terms: Numbers, total: Numbers) -> Iterator[Sample]:
    plus = (terms.nonzero & (terms.sign == 0)).any(axis=1)
    minus = (terms.nonzero & (terms.sign == 1)).any(axis=1)
    finite = (terms.kind <= Kind.FINITE).all(axis=1) & total.ran[:, 0]
    yield f"{name}: signs of the addends", np.where(finite, plus + 2 * minus, -1)
    moved = (total.length - 1 + total.lsb - total.exponent)[:, 0]
    edges = np.array([high for _, high in _DEPTHS])
    same = _MOST_GROWTH
    index = np.where(moved >= 0, same - np.minimum(moved, same), same + 1 + np.searchsorted(edges, -moved))
    live = finite & (plus | minus)
    gone = live & ~total.nonzero[:, 0]
    yield (
        f"{name}: leading bit against the largest exponent",
        np.where(live, np.where(gone, same + 1 + len(_DEPTHS), index), -1),
    )


def round_points(
    name: str,
    step: RoundingStep,
    fmt: Format,
    registers: dict[str, Bounds],
    terms: Sequence[Bounds] = (),
) -> list[Coverpoint]:
    """Integers: the range and what lies outside. Floats: classes of the result by remainder, and what the
    increment does.

    Args:
        terms: of which what is rounded is the exact sum, where that is known.
    """
    total = rounded_total(step, registers)
    if not fmt.is_float:
        low = least_integer(fmt)
        bins = {
            "in range": True,
            "largest": total.greatest >= fmt.largest,
            "least": total.least <= low,
            "above": total.greatest > fmt.largest + 1,
            "below": total.least < low - 1,
            "one above": total.greatest > fmt.largest,
            "one below": total.least < low,
        }
        deepest = -total.lsb
        fractions = {
            f"{sign}, {part}": bool(number in _signs(total) and deepest >= need)
            for number, sign in enumerate(_SIGNS)
            for part, need in zip(REMAINDERS, (0, 2, 1, 2), strict=True)
        }
        below = [Coverpoint("rounding", f"{name}: sign and remainder", fractions)] if deepest > 0 else []
        return [Coverpoint("rounding", f"{name}: range", bins), *below]
    kept, sticky = kept_bits(step, fmt), any(registers[name].sticky is not None for name in step.of)
    outcomes = _outcomes(step, fmt, kept, total, _carry(step, registers))
    cut, tiny = total.depth + _carry(step, registers) - kept, fmt.min_exponent - kept - total.lsb
    return [
        Coverpoint("rounding", f"{name}: result and remainder", outcomes),
        Coverpoint("rounding", f"{name}: increment", _increments(step, fmt, kept, _signs(total), cut, tiny)),
        *([] if sticky else _lone_bit_points(name, step, fmt, total, terms)),
    ]


def _lone_bit_points(
    name: str, step: RoundingStep, fmt: Format, total: Bounds, terms: Sequence[Bounds]
) -> list[Coverpoint]:
    """A single bit among the bits that a normal result cuts, with half of the last place and without: a
    sticky OR without that bit misses it. Every bit that a total has below its exponent can be the single one;
    with half of the last place, in a sum of two terms, only bits near it."""
    deepest = total.depth - kept_bits(step, fmt)
    near = _last_place_with_half(kept_bits(step, fmt), terms)
    if not 2 <= deepest <= _WIDEST_CUT:
        return []
    places = range(2, _WIDEST_CUT + 1)  # all of them: operations that share the point cut different numbers
    bins = {
        f"{half}2^-{place}": place <= (min(deepest, near) if half else deepest)
        for place in places
        for half in ("", "half + ")
    }
    return [Coverpoint("rounding", f"{name}: one bit cut", bins)]


def _last_place_with_half(kept: int, terms: Sequence[Bounds]) -> int:
    """The last place at which one bit can be alone with half of the last place.

    Of two terms that are no longer than the result, what is cut is the end of the smaller one: half and the
    bit are both in it, or, where it is subtracted, the ones between them are. A carry puts the last bit of
    the larger one at half, and then the smaller one begins no later.
    """
    lengths = [term.depth + max(int(term.significand).bit_length(), 1) for term in terms]
    two = sum(term.count for term in terms) == 2 and all(term.sticky is None for term in terms)
    return max(lengths) + 1 if two and max(lengths) <= kept + 1 else _WIDEST_CUT


def _carry(step: RoundingStep, registers: dict[str, Bounds]) -> int:
    if isinstance(step, Round | Multiply):
        return rounded_total(step, registers).above
    return _growth(step, registers)


def _outcomes(step: RoundingStep, fmt: Format, kept: int, total: Bounds, carry: int) -> dict[str, bool]:
    """A remainder below or above half needs two cut bits, a tie one.

    Normal results cut what the total keeps below its leading bit beyond the format's bits; results at or
    below the least normal exponent cut what lies below the format's last place.
    """
    cut = total.depth + carry - kept
    tiny = fmt.min_exponent - kept - total.lsb
    needs = (0, 2, 1, 2)
    lost = step.flush != "none"
    if isinstance(step, Round):
        lost |= bool(step.sticky_gap) or step.subnormal_carry == "lost" or step.sticky == "left_out"
    signs = _signs(total)
    bins = {}
    for part, (remainder, need) in enumerate(zip(REMAINDERS, needs, strict=True)):
        to_zero = lost or any(False in ways_of(step, sign, part, 0) for sign in signs)
        bins[f"zero, {remainder}"] = tiny >= need and to_zero if need else True
    for remainder, need in zip(REMAINDERS, needs, strict=True):
        bins[f"subnormal, {remainder}"] = (
            total.lsb < fmt.min_exponent and (not need or tiny >= need) and step.flush == "none" and kept > 0
        )
    for part, (remainder, need) in enumerate(zip(REMAINDERS, needs, strict=True)):
        # A carry makes the largest subnormal number the least normal one.
        carry = (
            cut >= 0
            and tiny >= need
            and any(True in ways_of(step, sign, part, int(kept > 0)) for sign in signs)
        )
        bins[f"normal, {remainder}"] = not need or cut >= need or carry
    return bins | {"overflow": overflows(total, fmt, kept, step)}


def ways_of(step: RoundingStep, sign: int, part: int, odd: int) -> set[bool]:
    """Whether a magnitude becomes a unit longer with this part of a last place below it; both where bits
    decide that the part leaves open."""
    if not isinstance(step, Round) or step.random_bits is None:
        return {bool(ROUNDINGS[step.rounding].up(sign, part, odd))}
    half, random = 1 << step.random_bits >> 1, step.random
    ranges = {BELOW: (0, half - 1), TIE: (half, half), ABOVE: (half, 2 * half - 1)}
    least, most = ranges.get(part, (0, 0))
    return {least + random >= 2 * half, most + random >= 2 * half}


def _signs(total: Bounds) -> list[int]:
    """The signs that a total can have."""
    return [0] * (total.greatest > 0) + [1] * (total.least < 0)


def _increments(
    step: RoundingStep, fmt: Format, kept: int, signs: list[int], cut: int, tiny: int
) -> dict[str, bool]:
    """Which increments the rounding knows, by what can be cut.

    A carry needs a total with one bit more than the result; `cut` and `tiny` are the bits that a normal and a
    tiny result cut at most.
    """
    even = step.rounding == "nearest_even"

    def can(bits: int, *last: int) -> bool:
        parts = (BELOW, TIE, ABOVE) if bits > 1 else (TIE,) * (bits == 1)
        return any(True in ways_of(step, sign, part, odd) for sign in signs for part in parts for odd in last)

    return {
        "none": True,
        "up": can(max(cut, tiny), 0, 1),
        "up with a carry into the exponent": can(cut, 1),
        "subnormal up to the least normal": (can(tiny, int(kept > 0)) and cut >= 0 and not fmt.lone_zero)
        or (tiny >= 1 and not fmt.has_zero),
        "tie kept at even": even and cut >= 1,
        "tie up to even": even and cut >= 1,
    }


def largest_result(fmt: Format, kept: int) -> Fraction:
    """The format's largest number with `kept` fraction bits."""
    dropped = fmt.fraction_bits - kept
    return Fraction(largest_significand(fmt) >> dropped << dropped) * Fraction(2) ** (
        fmt.max_exponent - fmt.fraction_bits
    )


def overflows(total: Bounds, fmt: Format, kept: int, step: RoundingStep) -> bool:
    """Whether the largest total rounds past the format's largest number."""
    top, unit = largest_result(fmt, kept), Fraction(2) ** (fmt.max_exponent - kept)
    odd = int(top / unit) & 1
    for sign, most in enumerate((total.greatest - top, -total.least - top)):
        reach = {BELOW: most > 0, TIE: most >= unit / 2, ABOVE: most > unit / 2}
        if most >= unit or any(can and True in ways_of(step, sign, part, odd) for part, can in reach.items()):
            return True
    return False


def round_samples(name: str, step: RoundingStep, fmt: Format, seen: Roundings) -> Iterator[Sample]:
    """The bins that rounded numbers fall into."""
    exact, result = seen.exact, seen.rounded
    finite = exact.kind <= Kind.FINITE
    if not fmt.is_float:
        yield f"{name}: range", np.where(finite, _range_index(fmt, seen.unbounded), -1)
        part = exact.sign.astype(np.int64) * len(REMAINDERS) + _remainder(exact, np.maximum(-exact.lsb, 0))
        yield f"{name}: sign and remainder", np.where(exact.nonzero, part, -1)
        return
    kept = kept_bits(step, fmt)
    leading = exact.length - 1 + exact.lsb
    cut = np.maximum(leading, fmt.min_exponent) - kept - exact.lsb
    remainder = _remainder(exact, cut)
    truncated = exact.shifted_right(np.maximum(cut, 0))
    plain = (leading >= fmt.min_exponent) & (leading <= exact.exponent)  # normal, and no carry has moved it
    yield f"{name}: one bit cut", _lone_bit(exact, cut, plain)
    increment = (remainder > 0) & (seen.unbounded.significand_low != truncated)
    small = exact.nonzero & (leading < fmt.min_exponent)
    hidden = np.uint64(1 << fmt.fraction_bits)
    normal = result.finite & (result.significand_low >= hidden)
    outcome = np.where(result.kind == Kind.ZERO, 0, np.where(normal, 2, 1)) * 4 + remainder
    over = exact.nonzero & _past_largest(fmt, kept, seen.unbounded)
    yield f"{name}: result and remainder", np.where(over, 12, np.where(finite, outcome, -1))
    carry = seen.unbounded.significand_low >> np.uint64(kept + 1) > 0
    up = np.where(increment & carry, 2, np.where(increment, 1, 0))
    up = np.where(small & normal, 3, up)
    yield f"{name}: increment", np.where(exact.nonzero, up, -1)
    if step.rounding == "nearest_even":
        tie = (remainder == 2) & exact.nonzero & ~small
        yield f"{name}: increment", np.where(tie, np.where(increment, 5, 4), -1)


def _lone_bit(exact: Numbers, cut: Array, plain: Array) -> Array:
    """Index into the bins of one bit cut; -1 where none or several of the bits below half of the last place
    are set."""
    lowest = exact.trailing_zeros
    between = np.clip(cut - 2 - lowest, 0, 63).astype(np.uint64)
    others = exact.shifted_right(lowest + 1) & ((np.uint64(1) << between) - np.uint64(1))
    lone = exact.nonzero & plain & (lowest < cut - 1) & (cut - lowest <= _WIDEST_CUT) & (others == 0)
    return np.where(lone, 2 * (cut - lowest - 2) + exact.bit(cut - 1), -1)


def _remainder(exact: Numbers, cut: Array) -> Array:
    """Index into REMAINDERS of the low `cut` bits of each number."""
    half = exact.bit(cut - 1)
    rest = np.where(half, np.where(exact.trailing_zeros == cut - 1, 2, 3), 1)
    return np.where(exact.nonzero & (exact.trailing_zeros < cut), rest, 0)


def _past_largest(fmt: Format, kept: int, unbounded: Numbers) -> Array:
    """Whether the rounded significand lies past the format's largest number."""
    carry = unbounded.significand_low >> np.uint64(kept + 1)
    significand = unbounded.significand_low >> carry << np.uint64(fmt.fraction_bits - kept)
    exponent = unbounded.exponent.astype(np.int64) + carry.astype(np.int64)
    at_top = (exponent == fmt.max_exponent) & (significand > np.uint64(largest_significand(fmt)))
    return np.asarray((exponent > fmt.max_exponent) | at_top)


def _range_index(fmt: Format, rounded: Numbers) -> Array:
    """In range, largest, least, above, below, one above, one below: whole numbers against the range of an
    integer format."""
    size = rounded.length + rounded.lsb
    # two bits more than the format's keep every number apart from those within a unit of the range
    most = max(62, fmt.integer_bits + 2)
    word = np.int64 if most < 63 else object
    fits = rounded.ran & (size <= most)
    significand = rounded.significand_low.astype(word)
    if word is object:
        significand = significand | rounded.significand_high.astype(object) << 64
    magnitude = np.where(fits, significand << np.where(fits, rounded.lsb, 0).astype(word), 0)
    magnitude = np.where(rounded.ran & ~fits, np.array(1, word) << most, magnitude)
    value = np.where(rounded.sign == 1, -magnitude, magnitude)
    low = least_integer(fmt)
    top = fmt.largest
    edges = [value == top + 1, value == low - 1, value > top, value < low, value == top, value == low]
    return np.select(edges, [5, 6, 3, 4, 1, 2], 0)
