"""One value of a sum that a unit answers as another one, as a fault of a chip does.

Where a candidate is right but for this, its wrong answers are one number in units of the last place, and so
are the box's: the ratio of the two answers is the same in all of them, whatever the exponent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.moves import Move, put_before
from golden.number.formats import Kind
from golden.program.steps import MAX_FRACTION_BITS, MOST_UNITS, Align, Replace, Round, Sum

_OFTEN = 3
"""Wrong answers with the same ratio that are more than chance."""
_TRIED = 2
"""Pairs of values that are tried, the most common first."""
_AROUND = 4
"""Places around the width of an alignment at which the unit of the values may lie."""


def replaced_values(one: Candidate, missed: Bank) -> Iterator[Move]:
    """One value of a sum replaced by another, as the questions that a candidate gets wrong suggest."""
    for value, by in _pairs(one, missed):
        for step in one.steps_of(Sum):
            last = next((s for s in one.steps_of(Round) if s.of == (step.to,)), None)
            for places in _places(one):
                if last is None:
                    break
                new = Replace(of=(step.to,), places=places, value=value, by=by)
                yield Move(f"replace of {step.to}", f"{value} by {by} at {places}", put_before(last, new), 1)


def _places(one: Candidate) -> list[int]:
    """Where the last place of an aligned sum may lie below its exponent."""
    widths = {bits for step in one.steps_of(Align) for _, bits in step.fraction_bits}
    near = {bits + more for bits in widths for more in range(-_AROUND, _AROUND + 1)}
    return sorted(bits for bits in near if 0 <= bits <= MAX_FRACTION_BITS)


def _pairs(one: Candidate, missed: Bank) -> Iterator[tuple[int, int]]:
    """The odd number of units that a candidate answers, and what the box answers in the same units."""
    d, seen = missed.takes.formats["d"], Counter[tuple[int, Fraction]]()
    for own, given in zip(one.dot(**missed.operands).tolist(), missed.answers.tolist(), strict=True):
        x, y = d.decode(own), d.decode(given)
        if max(x.kind, y.kind) < Kind.INFINITY and x.value:
            odd = x.value.numerator // (x.value.numerator & -x.value.numerator)
            seen[odd, y.value / x.value] += 1
    common = [pair for pair, count in seen.most_common(_TRIED) if count >= _OFTEN]
    for odd, ratio in common:
        # In units in which both are whole numbers.
        value, by = odd * ratio.denominator, odd * ratio.numerator
        if max(abs(value), abs(by)) <= MOST_UNITS:
            yield value, by
