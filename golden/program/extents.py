"""How far the bits of a program's registers can reach: bounds from formats and steps alone, never too small.

The reference computes in integers of any length; the C core keeps 128 bits of a number and MOST_SPAN bits of
a sum. What lies past these bounds the core would lose without a word, so golden/program/checks.py refuses it
by what is found here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from golden.number.formats import Format
from golden.number.frozen import hashed_once, replace
from golden.program.keys import Candidate
from golden.program.program import Operation
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    Fma,
    HiddenBit,
    Multiply,
    Normalize,
    Round,
    Scale,
    SpecialValues,
    Step,
    Sum,
    grouping,
)

KEPT_BITS = 100
"""Bits that the core keeps of an exact sum (MG_KEPT_BITS); a longer one has what was dropped ORed into the
lowest."""
MOST_BITS = 126
"""Bits of an aligned or scaled number: the core's 128, less a sticky bit and a carry."""
MOST_SPAN = 96 * 64 - 2
"""Bits of the core's longest accumulator (MG_LIMBS), less the sign and one to spare."""


@hashed_once
@dataclass(frozen=True)
class Extent:
    """Bounds of one register's terms.

    Attributes:
        count: how many terms it holds.
        low, high: bits of a term lie from 2**low to below 2**high.
        bottom, top: least and greatest exponent that alignment can see, of zeros too.
        above: bits that a significand can have above the point of its own exponent.
        width: the longest significand.
        integer: every term is an integer, of which the core holds each bit.
        exact: the core holds what the reference holds; otherwise a sum that it may have had to shorten.
    """

    count: int
    low: int
    high: int
    bottom: int
    top: int
    above: int
    width: int
    integer: bool = False
    exact: bool = True


def of_format(fmt: Format, count: int) -> Extent:
    """Terms in a number format."""
    if not fmt.is_float:
        return Extent(count, 0, fmt.integer_bits, 0, 0, fmt.integer_bits, fmt.integer_bits, integer=True)
    low, width = fmt.min_exponent - fmt.fraction_bits, fmt.fraction_bits + 1
    return Extent(count, low, fmt.max_exponent + 1, fmt.min_exponent, fmt.max_exponent, 1, width)


def operands_of(operation: Operation, formats: dict[str, Format]) -> dict[str, Extent]:
    """What an operation's registers hold before its first step."""
    count = len(operation.k_index)
    registers = {name: of_format(operation.operand_format or formats[name], count) for name in "ab"}
    registers["c"] = of_format(operation.seed_format, 1)
    if operation.addends:
        registers["addends"] = of_format(operation.out_format, len(operation.addends))
    if "scale_a" in formats and "scale_b" in formats:
        registers["scales"] = product(*(of_format(formats[name], count) for name in ("scale_a", "scale_b")))
    return registers


def follow(step: Step, registers: dict[str, Extent]) -> dict[str, Extent]:
    """The registers that a step writes."""
    match step:
        case Multiply():
            return {step.to: _multiplied(step, registers)}
        case Scale():
            scaled = {name: product(registers[name], registers["scales"]) for name in step.of}
            return {name: replace(extent, integer=False) for name, extent in scaled.items()}
        case Align():
            return _aligned(step, registers)
        case Sum():
            return {step.to: _summed(step, [registers[name] for name in step.of])}
        case Additions():
            return {step.to: _added(step, [registers[name] for name in step.of])}
        case Normalize():
            return {name: _normalized(step, name, registers[name]) for name in step.of}
        case Fma():
            return {step.to: of_format(step.format, len(group_sizes(step, registers["a"].count)))}
        case Round():
            return {step.to: of_format(step.format, registers[step.of[0]].count)}
        case HiddenBit():
            return {name: _with_hidden_bit(registers[name]) for name in step.of}
        case Flush() | SpecialValues():
            return {}  # within what the registers hold already
        case _:
            assert_never(step)


def _with_hidden_bit(own: Extent) -> Extent:
    """A bit at the exponent, which alignment may have moved far from what the number was."""
    return replace(
        own, low=min(own.low, own.bottom), high=max(own.high, own.top + 1), above=max(own.above, 1)
    )


def groups_of(step: Step, count: int) -> list[slice]:
    """Which of `count` terms each group of a step holds; without grouping, one group of all."""
    group = grouping(step)
    if group is None:
        return [slice(0, count)]
    kind, size = group
    if kind == "interleaved":
        return [slice(i, count, size) for i in range(size)]
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def group_sizes(step: Step, count: int) -> list[int]:
    """How many of `count` terms each group of a step holds."""
    return [len(range(*group.indices(count))) for group in groups_of(step, count)]


def joined(terms: Iterable[Extent]) -> Extent:
    """Bounds that hold for all terms of several registers."""
    first, *rest = terms
    count, low, high, bottom, top = first.count, first.low, first.high, first.bottom, first.top
    above, width, integer, exact = first.above, first.width, first.integer, first.exact
    for one in rest:
        count += one.count
        low, high = min(low, one.low), max(high, one.high)
        bottom, top = min(bottom, one.bottom), max(top, one.top)
        above, width = max(above, one.above), max(width, one.width)
        integer, exact = integer and one.integer, exact and one.exact
    return Extent(count, low, high, bottom, top, above, width, integer, exact)


def product(x: Extent, y: Extent) -> Extent:
    """Exact products, not normalised. Zero times infinity as a zero keeps one factor's exponent, so that
    counts too."""
    return Extent(
        x.count,
        x.low + y.low,
        x.high + y.high,
        min(x.bottom + y.bottom, x.bottom, y.bottom),
        max(x.top + y.top, x.top, y.top),
        x.above + y.above,
        x.width + y.width,
        x.integer and y.integer,
        x.exact and y.exact,
    )


def longest_sum(step: Sum | Additions | Fma, terms: list[Extent]) -> Extent:
    """The exact sum of a step's longest group: of all its terms, or (IEEE adders) of two of them."""
    whole = joined(terms)
    size = max(group_sizes(step, whole.count))
    growth = (min(size, 2 if not isinstance(step, Sum) else size) - 1).bit_length()
    high, above = whole.high + growth, whole.above + growth
    integer = whole.integer and high - whole.low <= KEPT_BITS
    exact = whole.exact and high - whole.low <= KEPT_BITS
    width = min(high - whole.low, KEPT_BITS)
    return replace(whole, high=high, above=above, width=width, integer=integer, exact=exact)


def _multiplied(step: Multiply, registers: dict[str, Extent]) -> Extent:
    a, b = registers["a"], registers["b"]
    if step.format is not None:
        return of_format(step.format, a.count)
    if step.operation != "product":
        return replace(joined([a, b]), count=a.count)
    found = product(a, b)
    return (
        replace(found, bottom=min(found.low, found.bottom), top=found.high, above=1)
        if step.normalize
        else found
    )


def _aligned(step: Align, registers: dict[str, Extent]) -> dict[str, Extent]:
    """Terms move to the largest exponent: down, but for shifters that stop short and registers left out of
    the maximum."""
    if step.exponent is not None or step.maximum:
        return _aligned_to(step, registers)
    whole = joined(registers[name] for name in step.of)
    least = whole.bottom if step.floor is None else max(whole.bottom, step.floor)
    most = whole.top if step.floor is None else max(whole.top, step.floor)
    left_out, found = dict(step.left_out), {}
    for name, bits in step.fraction_bits:
        own = registers[name]
        low, high, above = own.low, own.high, own.above
        if name in left_out:
            low -= max(own.top - least, 0)
        if step.zeros == "sticky":
            low = min(low, own.bottom - 1)
        if step.shift_limit is not None:
            high = max(high, most - step.shift_limit + above)
        if (
            step.rounding != "toward_zero" or step.cut != "dropped"
        ):  # a carry, or one unit for a term that lies far below
            high, above = max(high + 1, most - bits + 1), above + 1
        found[name] = replace(
            own,
            low=low,
            high=high,
            bottom=min(own.bottom, least),
            top=max(own.top, most),
            above=above,
            width=bits + above + int(step.cut == "sticky_added"),
            exact=True,
        )
    return found


def _aligned_to(step: Align, registers: dict[str, Extent]) -> dict[str, Extent]:
    """Terms move to an exponent that is given, or the largest of candidates: some can lie above it."""
    if step.exponent is not None:
        least = most = step.exponent
    else:
        reach = [_candidate_reach(one, registers) for one in step.maximum]
        sure = [low for low, always, _ in reach if always]
        least = max(sure) if sure else min(low for low, _, _ in reach)
        most = max(high for _, _, high in reach)
    found = {}
    for name, bits in step.fraction_bits:
        own = registers[name]
        above = own.high - least
        for one in step.maximum:
            if name in one.of:  # its own place bounds how far a number lies above the maximum
                above = min(above, (1 if one.leading else own.above) - one.plus)
        above = max(above, 1) + 1
        found[name] = replace(
            own,
            low=least - bits,
            high=max(own.high + 1, most - bits + 1),
            bottom=min(own.bottom, least),
            top=max(own.top, most),
            above=above,
            width=bits + above + int(step.cut == "sticky_added"),
            exact=True,
            integer=False,
        )
    return found


def _candidate_reach(one: Candidate, registers: dict[str, Extent]) -> tuple[int, bool, int]:
    """The least and the greatest value of a candidate, and whether it is there for every operand."""
    own = [registers[name] for name in one.of]
    low = min(x.low if one.leading else x.bottom for x in own)
    high = max(x.high if one.leading else x.top for x in own)
    if one.least is None:
        return low + one.plus, False, high + one.plus
    return one.least + one.plus, True, max(high, one.least) + one.plus


def _added(step: Additions, terms: list[Extent]) -> Extent:
    sizes = group_sizes(step, sum(term.count for term in terms))
    rounded = of_format(step.format, len(sizes))
    if min(sizes) > 1:
        return rounded
    return replace(joined([rounded, *terms]), count=len(sizes))  # a group of one term is handed on as it is


def _summed(step: Sum, terms: list[Extent]) -> Extent:
    total = longest_sum(step, terms)
    sizes = group_sizes(step, total.count)
    total = replace(total, count=len(sizes))
    if step.exponent is not None:
        total = replace(
            total, bottom=step.exponent, top=step.exponent, above=max(total.high - step.exponent, 0)
        )
    if step.width is not None:
        total = replace(
            total, above=min(total.above, step.width), high=min(total.high, total.top + step.width)
        )
    return total


def _normalized(step: Normalize, name: str, own: Extent) -> Extent:
    bits, least = dict(step.fraction_bits)[name], step.min_exponent
    high, top = own.high + 1, max(own.top, own.high)
    if least is not None:
        high, top = max(high, least - bits + 1), max(top, least)
    return replace(
        own, high=high, bottom=min(own.bottom, own.low), top=top, above=2, width=bits + 2, exact=True
    )
