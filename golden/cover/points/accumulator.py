"""What a unit that keeps its accumulator can hold as c: nothing but what it made itself, and the zero after
`clear`.

It is found by asking again and again what d can be, first of c = +0 alone, then of c that is +0 or such a d,
until nothing new comes. Sums grow on and on, floats until a dot product is too small to change them; what
takes more than 2**32 dot products in a row, seconds of a real unit, counts as out of reach.

And its coverpoints: how dot products follow one another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce

import numpy as np

from golden.cover.points.classes import accumulator_bins, coarse_bins, coarse_of
from golden.cover.points.point import Array, Coverpoint, Sample
from golden.cover.points.results import can_wrap, final_total, result_points
from golden.cover.ranges import AccumulatorRange, spans_of
from golden.model.instruction import Instruction
from golden.model.registers import decode
from golden.number.rounding import ROUNDINGS
from golden.program.bounds import Bounds, either, exponent_of, kept_bits, of_format, of_zero, result_of
from golden.program.state import before, places
from golden.program.steps import Align, Multiply, Sum

_PART = "sequence"
_LENGTHS = ((1, "1"), (2, "2"), (8, "3..8"), (1 << 62, "9 or more"))
"""How many dot products a sum has so far: up to, and what the bin is called."""
_IN_A_ROW = ("no clear, no clear", "no clear, clear", "clear, no clear", "clear, clear")
_WITH_LOAD = ("no load, no load", "no load, load", "load, no load", "load, load")


def accumulator_range(units: Sequence[Instruction]) -> AccumulatorRange:
    """What a dot product finds in a unit; `units`: the unit in each of its modes, with c as an operand, since
    the dot product before may have had any of them."""
    fmt = units[0].formats["c"]
    zero = of_zero(fmt)
    zero = replace(zero, high=zero.low, lsb=zero.low)  # it holds no exponent but the least
    first = AccumulatorRange(zero, frozenset(("+0" if fmt.is_float else "zero",)))
    ends, held = _ends(units, first), first
    # More than there are classes and places of a format: what still grows is taken to be anything.
    turns = 64
    for _ in range(turns):
        classes = [
            {label for label, reach in point.bins.items() if reach}
            for unit in units
            for point in result_points(unit, held)
        ]
        spans = [span for unit in units if not (span := _range_of_results(unit, held, ends)).zero]
        spans += [] if held.span.zero else [held.span]
        found = AccumulatorRange(
            reduce(either, spans, *[first.span] * (not spans)), held.classes.union(*classes)
        )
        if found == held:
            return held
        held = found
    return replace(held, span=of_format(fmt, 1))


def _ends(units: Sequence[Instruction], first: AccumulatorRange) -> tuple[Fraction, Fraction]:
    """The least and the greatest number that dot products in a row add up to."""
    fmt = of_format(units[0].formats["d"], 1)
    totals = [final_total(unit, first)[1] for unit in units]
    low, high = min(total.least for total in totals), max(total.greatest for total in totals)
    if any(step.negate in ("c", "both") for unit in units for step in unit.program.steps_of(Multiply)):
        low, high = min(low, -high), max(high, -low)
    # Dot products in a row that can be.
    row = 1 << 32
    if not units[0].formats["d"].is_float:
        low, high = row * low, row * high
        steps = [step for unit in units for operation in unit.program.operations for step in operation.steps]
        turns = any(map(can_wrap, steps)) and (low < fmt.least or high > fmt.greatest)
        from_nan = units[0].formats["a"].is_float  # a NaN is some number there
        return (
            (fmt.least, fmt.greatest) if turns or from_nan else (max(low, fmt.least), min(high, fmt.greatest))
        )
    most = min(2 * row * max(high, -low), *(_stalls(unit, max(high, -low)) for unit in units), fmt.greatest)
    return max(-most, fmt.least) if low < 0 else Fraction(0), most if high > 0 else Fraction(0)


def _stalls(unit: Instruction, most: Fraction) -> Fraction:
    """The power of two that no sum passes, since a dot product of at most `most` is less than half of its
    last place and is rounded away; the format's largest, where small addends can have an effect all the
    same."""
    (operation, *more), fmt = unit.program.operations, unit.formats["d"]
    final, rounding = operation.final, ROUNDINGS[operation.final.rounding]
    aligns = operation.steps_of(Align)
    plain = all(
        (step.rounding, step.cut, step.shift_limit, step.exponent, step.maximum, step.left_out)
        == ("toward_zero", "dropped", None, None, (), ())
        for step in aligns
    ) and not any(step.complement != "none" or step.width is not None for step in operation.steps_of(Sum))
    if more or not plain or not (rounding.nearest or final.rounding == "toward_zero") or not most:
        return of_format(fmt, 1).greatest
    exponent = min(exponent_of(8 * most), fmt.max_exponent) + kept_bits(final, fmt) + 1
    return min(Fraction(2) ** exponent, of_format(fmt, 1).greatest)


def _range_of_results(unit: Instruction, held: AccumulatorRange, ends: tuple[Fraction, Fraction]) -> Bounds:
    """What the unit answers, if c is what was held: numbers between the ends."""
    fmt = unit.formats["d"]
    least, greatest = ends
    size = max(greatest, -least)
    if fmt.is_float:
        operation = unit.program.operations[-1]
        span = result_of(operation, spans_of(unit, operation, held)[0][1])
        high = max(span.low, min(exponent_of(size), fmt.max_exponent))
        return replace(span, greatest=greatest, least=least, high=high)
    return replace(of_format(fmt, 1), greatest=greatest, least=least, significands=ends)


# How dot products follow one another ------------------------------------------------------------------------


def sequence_points(ins: Instruction, held: AccumulatorRange | None, load: bool) -> list[Coverpoint]:
    """Any order can be given; what `clear`, or `load`, finds is what the unit can hold."""
    fmt = ins.formats["c"]
    loads = [
        Coverpoint(_PART, "load of two dot products in a row", dict.fromkeys(_WITH_LOAD, True)),
        Coverpoint(_PART, "class of what load replaces", coarse_bins(fmt, accumulator_bins(fmt, held))),
    ]
    return [
        Coverpoint(_PART, "clear", {"unset": True, "set": True}),
        Coverpoint(_PART, "dot products since clear", {label: True for _, label in _LENGTHS}),
        Coverpoint(_PART, "clear of two dot products in a row", dict.fromkeys(_IN_A_ROW, True)),
        Coverpoint(_PART, "class of what clear forgets", coarse_bins(fmt, accumulator_bins(fmt, held))),
        *(loads if load else []),
    ]


def sequence_samples(ins: Instruction, clear: Array, d: Array, load: Array | None = None) -> Iterator[Sample]:
    """The bins that dot products (time,) fall into. The first follows none: it stands for the one after a
    reset, where the unit holds zero."""
    yield "clear", clear
    ends = np.array([most for most, _ in _LENGTHS])
    yield "dot products since clear", np.searchsorted(ends, places(clear) + 1)
    yield "clear of two dot products in a row", 2 * clear[:-1].astype(np.int64) + clear[1:]
    fmt = ins.formats["c"]
    forgotten = before(d, np.zeros_like(clear))[1:, None]
    classes = coarse_of(fmt, decode(fmt, forgotten))[:, 0]
    yield "class of what clear forgets", np.where(clear[1:] != 0, classes, -1)
    if load is not None:
        yield "load of two dot products in a row", 2 * load[:-1].astype(np.int64) + load[1:]
        yield "class of what load replaces", np.where(load[1:] != 0, classes, -1)
