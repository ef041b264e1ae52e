"""Coverpoints of the datapath's last stages: sums, and what is rounded to a format."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from golden.cover.observed import REMAINDERS, Rounded, Summed, bit_length, groups_of, largest_significand
from golden.cover.points.point import Coverpoint, Sample
from golden.cover.ranges import Span, one_product, rounded_total
from golden.number.formats import Format, Kind
from golden.program.steps import Additions, FinalStep, Fma, Multiply, Round, RoundingStep, Sum

_MOST_GROWTH = 16
_DEPTHS = ((1, 1), (2, 4), (5, 8), (9, 16), (17, 1 << 40))


def sum_points(name: str, step: Sum | Additions | Fma, registers: dict[str, Span]) -> list[Coverpoint]:
    """Signs by what the addends can be; growth up to the carry of the largest sum, cancellation down to
    the last kept bit."""
    spans = [span for span in addends(step, registers) if span.greatest != 0 or span.least != 0]
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
    if (
        all(s.depth == 0 and s.low == s.high for s in spans)
        or (isinstance(step, Sum) and step.exponent is not None)
        or not spans
    ):
        return points
    growth = _growth(step, registers)
    depth = max(span.high for span in spans) - min(span.lsb for span in spans)
    if all(span.depth for span in spans) and not isinstance(step, Fma):
        depth = min(depth, max(span.depth for span in spans)) if isinstance(step, Sum) else depth
    if _pairs_only(step, total):
        depth = min(depth, max(span.depth for span in spans) + 1)
    bins = {f"up by {i}": i <= growth for i in range(_MOST_GROWTH, 0, -1)} | {"same": True}
    bins |= {_depth_label(low, high): low <= depth for low, high in _DEPTHS}
    bins |= {"nothing left": plus and minus and total > 1}
    points.append(Coverpoint("sum", f"{name}: leading bit against the largest exponent", bins))
    return points


def _pairs_only(step: Sum | Additions | Fma, total: int) -> bool:
    """Whether no more than two of the addends ever meet: what they leave is not below the last bits of the
    larger one."""
    return not isinstance(step, Fma) and max(len(group) for group in groups_of(total, step.group)) <= 2


def _depth_label(low: int, high: int) -> str:
    return (
        f"down by {low}"
        if low == high
        else f"down by {low}..{high}"
        if high < 1 << 40
        else f"down by {low} or more"
    )


def _growth(step: Sum | Additions | Fma, registers: dict[str, Span]) -> int:
    """Integer bits that a sum of the largest significands at one exponent carries into; rounded sums have
    two terms."""
    significands = sorted(
        (s.significand for s in addends(step, registers) for _ in range(s.count)), reverse=True
    )
    exact = isinstance(step, Sum)
    size = max(len(group) for group in groups_of(len(significands), step.group)) if exact else 2
    return max(int(sum(significands[:size], Fraction(0))).bit_length() - 1, 0)


def addends(step: Sum | FinalStep, registers: dict[str, Span]) -> list[Span]:
    """What a step adds up: its registers that have terms, or (fma) one product and c."""
    if not isinstance(step, Fma):
        return [registers[name] for name in step.of if registers[name].count]
    return [one_product(registers), registers["c"]]


def sum_samples(name: str, seen: Summed) -> Iterator[Sample]:
    """The bins that sums fall into."""
    terms, total = seen.terms, seen.total
    plus = (terms.nonzero & (terms.sign == 0)).any(axis=1)
    minus = (terms.nonzero & (terms.sign == 1)).any(axis=1)
    finite = (terms.kind <= Kind.FINITE).all(axis=1)
    yield f"{name}: signs of the addends", np.where(finite, plus + 2 * minus, -1)
    moved = bit_length(total.significand)[:, 0] - 1 + total.lsb[:, 0] - total.exponent[:, 0]
    edges = np.array([high for _, high in _DEPTHS])
    same = _MOST_GROWTH
    index = np.where(moved >= 0, same - np.minimum(moved, same), same + 1 + np.searchsorted(edges, -moved))
    live = finite & terms.nonzero.any(axis=1)
    gone = live & ~total.nonzero[:, 0]
    yield (
        f"{name}: leading bit against the largest exponent",
        np.where(live, np.where(gone, same + 1 + len(_DEPTHS), index), -1),
    )


def round_points(name: str, step: RoundingStep, registers: dict[str, Span]) -> list[Coverpoint]:
    """Integers: the range and what lies outside. Floats: classes of the result by remainder, and what the
    increment does."""
    fmt = step.format
    assert fmt is not None
    total = rounded_total(step, registers)
    if not fmt.is_float:
        above, below = (
            total.greatest > fmt.largest,
            total.least < (-(1 << (fmt.integer_bits - 1)) if fmt.signed else 0),
        )
        bins = {"in range": True, "largest": True, "least": True, "above": above, "below": below}
        return [Coverpoint("rounding", f"{name}: range", bins)]
    kept = kept_bits(step, fmt)
    outcomes = _outcomes(step, fmt, kept, total, _carry(step, registers))
    cut, tiny = total.depth + _carry(step, registers) - kept, fmt.min_exponent - kept - total.lsb
    return [
        Coverpoint("rounding", f"{name}: result and remainder", outcomes),
        Coverpoint("rounding", f"{name}: increment", _increments(step, cut, tiny)),
    ]


def _carry(step: RoundingStep, registers: dict[str, Span]) -> int:
    if isinstance(step, Round):
        return max(int(registers[step.of[0]].significand).bit_length() - 1, 0)
    if isinstance(step, Multiply):
        return int(registers["a"].significand * registers["b"].significand >= 2)
    return _growth(step, registers)


def _outcomes(step: RoundingStep, fmt: Format, kept: int, total: Span, carry: int) -> dict[str, bool]:
    """A remainder below or above half needs two cut bits, a tie one.

    Normal results cut what the total keeps below its leading bit beyond the format's bits; results at or
    below the least normal exponent cut what lies below the format's last place.
    """
    cut = total.depth + carry - kept
    tiny = fmt.min_exponent - kept - total.lsb
    needs = (0, 2, 1, 2)
    away = step.rounding in ("down", "up", "toward_zero") or step.flush != "none"
    to_zero = (True, step.rounding != "up" or total.least < 0, step.rounding != "nearest_away" or away, away)
    bins = {}
    for remainder, need, rounds in zip(REMAINDERS, needs, to_zero, strict=True):
        bins[f"zero, {remainder}"] = tiny >= need and rounds if need else True
    for remainder, need in zip(REMAINDERS, needs, strict=True):
        bins[f"subnormal, {remainder}"] = (
            total.lsb < fmt.min_exponent and (not need or tiny >= need) and step.flush == "none" and kept > 0
        )
    for remainder, need in zip(REMAINDERS, needs, strict=True):
        bins[f"normal, {remainder}"] = not need or cut >= need
    return bins | {"overflow": overflows(total, fmt, kept, step)}


def _increments(step: RoundingStep, cut: int, tiny: int) -> dict[str, bool]:
    """Rounding adds one in the nearest modes from one cut bit on, in the directed ones for one sign; never
    toward zero.

    A carry needs a total with one bit more than the result; `cut` and `tiny` are the bits that a normal and a
    tiny result cut at most.
    """
    rounds = step.rounding != "toward_zero"
    possible = rounds and cut >= 1
    even = step.rounding == "nearest_even"
    return {
        "none": True,
        "up": rounds and max(cut, tiny) >= 1,
        "up with a carry into the exponent": possible,
        "subnormal up to the least normal": rounds and tiny >= 1 and cut >= 0,
        "tie kept at even": even and cut >= 1,
        "tie up to even": even and cut >= 1,
    }


def kept_bits(step: RoundingStep, fmt: Format) -> int:
    """Fraction bits of a step's result."""
    kept = step.result_fraction_bits if isinstance(step, Round) else None
    return fmt.fraction_bits if kept is None else kept


def largest_result(fmt: Format, kept: int) -> Fraction:
    """The format's largest number with `kept` fraction bits."""
    dropped = fmt.fraction_bits - kept
    return Fraction(largest_significand(fmt) >> dropped << dropped) * Fraction(2) ** (
        fmt.max_exponent - fmt.fraction_bits
    )


def overflows(total: Span, fmt: Format, kept: int, step: RoundingStep) -> bool:
    """Whether the largest total rounds past the format's largest number."""
    top, unit = largest_result(fmt, kept), Fraction(2) ** (fmt.max_exponent - kept)
    mode = step.rounding
    if mode in ("nearest_even", "nearest_away"):
        return total.greatest >= top + unit / 2 or total.least <= -top - unit / 2
    if total.greatest >= top + unit or total.least <= -top - unit:
        return True
    return (mode == "up" and total.greatest > top) or (mode == "down" and total.least < -top)


def round_samples(name: str, seen: Rounded) -> Iterator[Sample]:
    """The bins that rounded numbers fall into."""
    fmt, before, result = seen.format, seen.before, seen.result
    finite = before.kind <= Kind.FINITE
    if not fmt.is_float:
        value = np.where(before.sign == 1, -before.significand, before.significand)
        low = -(1 << (fmt.integer_bits - 1)) if fmt.signed else 0
        index = np.select(
            [value > fmt.largest, value < low, value == fmt.largest, value == low], [3, 4, 1, 2], 0
        )
        yield f"{name}: range", index
        return
    leading = bit_length(before.significand) - 1 + before.lsb
    hidden = np.int64(1) << fmt.fraction_bits
    small = finite & before.nonzero & (leading < fmt.min_exponent)
    normal = (result.kind == Kind.FINITE) & (result.significand.astype(np.int64) >= hidden)
    outcome = np.where(result.kind == Kind.ZERO, 0, np.where(normal, 2, 1)) * 4 + seen.remainder
    yield f"{name}: result and remainder", np.where(finite & seen.overflow, 12, np.where(finite, outcome, -1))
    up = np.where(seen.increment & seen.carry, 2, np.where(seen.increment, 1, 0))
    up = np.where(small & normal, 3, up)
    yield f"{name}: increment", np.where(finite & before.nonzero, up, -1)
    if seen.step.rounding == "nearest_even":
        tie = (seen.remainder == 2) & finite & ~small
        yield f"{name}: increment", np.where(tie, np.where(seen.increment, 5, 4), -1)
