"""What the registers of a program can hold: the ranges from which coverage derives the bins that can be
reached at all.

A span says, for every register before a step, which exponents its finite non-zero terms can have, how large a
significand can be, the exponent of the lowest bit that can be set, and the largest value. The rules follow
from the formats and the steps alone; nothing is learnt from vectors. They may allow too much, never too
little; where they do, what was seen wins (golden/cover/coverage.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, assert_never

from golden.instruction import Instruction
from golden.number.formats import Format, Kind
from golden.program.extents import group_sizes
from golden.program.keys import Candidate
from golden.program.program import NO_SEED, Operation
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    Fma,
    HiddenBit,
    IeeeStep,
    Multiply,
    Normalize,
    Round,
    RoundingStep,
    Scale,
    SpecialValues,
    Step,
    Sum,
)

_FAR = 4096
"""A power of two beyond every format."""


@dataclass(frozen=True)
class Span:
    """Range of one register's terms.

    Attributes:
        count: the number of terms.
        low, high: least and greatest alignment exponent of a finite non-zero term.
        lsb: exponent of the lowest bit that can be set.
        significand: the largest significand, in units of 2**exponent.
        greatest, least: the largest and the most negative value.
        depth: how far below a term's own exponent its bits can reach.
        cancels: whether a term can be a sum that came out as zero and still takes part in alignment.
        subnormal: whether a term's significand can be below 1.
        scattered: whether that can be at any exponent, not at the least one alone.
        vanishes: whether a term can have lost all its bits and still take part in alignment.
        sticky: whether a term can carry the OR of what was cut along.
        zeros: the least exponent of a term that is zero.
        shared: the alignment and its groups in which terms have one exponent; None where each has its own.
    """

    count: int
    low: int
    high: int
    lsb: int
    significand: Fraction
    greatest: Fraction
    least: Fraction
    depth: int
    cancels: bool = False
    subnormal: bool = False
    scattered: bool = False
    vanishes: bool = False
    sticky: bool = False
    zeros: int = 0
    shared: Any = None

    @property
    def above(self) -> int:
        """Bits of a significand above that of 1."""
        return max(int(self.significand).bit_length() - 1, 0)

    @property
    def zero(self) -> bool:
        """Whether every term is always zero."""
        return self.greatest == self.least == 0


@dataclass(frozen=True)
class Held:
    """What a unit that keeps its accumulator can hold as c: numbers of `span`, codes of `classes`;
    golden/cover/points/held.py finds them."""

    span: Span
    classes: frozenset[str]


def of_format(fmt: Format, count: int, flushed: bool = False) -> Span:
    """The span of operands of a format."""
    if not fmt.is_float:
        lowest = Fraction(least_integer(fmt))
        return Span(count, 0, 0, 0, max(Fraction(fmt.largest), -lowest), Fraction(fmt.largest), lowest, 0)
    top = Fraction(largest_significand(fmt), 1 << fmt.fraction_bits)
    greatest = top * Fraction(2) ** fmt.max_exponent
    usual = top if fmt.max_exponent == fmt.min_exponent else 2 - Fraction(1, 1 << fmt.fraction_bits)
    tiny = fmt.has_subnormals and fmt.fraction_bits > 0 and not flushed
    lsb = fmt.min_exponent - fmt.fraction_bits
    least = -greatest if fmt.signed else Fraction(0)
    return Span(
        count,
        fmt.min_exponent,
        fmt.max_exponent,
        lsb,
        usual,
        greatest,
        least,
        fmt.fraction_bits,
        subnormal=tiny,
        zeros=fmt.min_exponent,
    )


def least_integer(fmt: Format) -> int:
    """The least number of an integer format."""
    return -(1 << (fmt.integer_bits - 1)) if fmt.signed else 0


def multiplied(x: Span, y: Span) -> Span:
    """The span of products, exact and not normalised."""
    values = [p * q for p in (x.greatest, x.least) for q in (y.greatest, y.least)]
    return Span(
        x.count,
        x.low + y.low,
        x.high + y.high,
        x.lsb + y.lsb,
        x.significand * y.significand,
        max(values),
        min(values),
        x.depth + y.depth,
        x.cancels or y.cancels,
        x.subnormal or y.subnormal,
        x.subnormal or y.subnormal,
        x.vanishes or y.vanishes,
        x.sticky or y.sticky,
        min(x.zeros + y.low, y.zeros + x.low, x.zeros, y.zeros),  # a factor's own, where infinity gives way
    )


def joined(spans: list[Span], size: int | None = None) -> Span:
    """The span of an exact sum of `size` (default: all) of the terms of several registers; seeds that are
    zero do not count."""
    spans = [span for span in spans if not span.zero] or spans
    count = sum(span.count for span in spans)
    share = Fraction(size or count, count)
    return Span(
        1,
        min(span.low for span in spans),
        max(span.high for span in spans),
        min(span.lsb for span in spans),
        sum((span.count * share * span.significand for span in spans), Fraction(0)),
        sum((span.count * share * span.greatest for span in spans), Fraction(0)),
        sum((span.count * share * span.least for span in spans), Fraction(0)),
        max(span.high for span in spans) - min(span.lsb for span in spans),
        (any(s.least < 0 for s in spans) and any(s.greatest > 0 for s in spans) and (size or count) > 1)
        or any(span.cancels or span.vanishes for span in spans),
        True,
        True,
        any(span.cancels or span.vanishes for span in spans),
        any(span.sticky for span in spans),
        min(span.zeros for span in spans),
    )


def either(x: Span, y: Span) -> Span:
    """The span of terms that are of one kind or of the other."""
    return Span(
        x.count,
        min(x.low, y.low),
        max(x.high, y.high),
        min(x.lsb, y.lsb),
        max(x.significand, y.significand),
        max(x.greatest, y.greatest),
        min(x.least, y.least),
        max(x.depth, y.depth),
        x.cancels or y.cancels,
        x.subnormal or y.subnormal,
        x.scattered or y.scattered,
        x.vanishes or y.vanishes,
        x.sticky or y.sticky,
        min(x.zeros, y.zeros),
    )


def spans_of(
    ins: Instruction, operation: Operation, held: Held | None = None
) -> list[tuple[Step, dict[str, Span]]]:
    """Every step of an operation with the spans of all registers just before it.

    Args:
        held: what c can be, of a unit that keeps its accumulator; None: any code.
    """
    count = len(operation.k_index)
    registers = {
        "a": _operand(ins.formats["a"], operation.operand_format, count),
        "b": _operand(ins.formats["b"], operation.operand_format, count),
        "c": _seed(ins, operation.seed, operation.seed_format, held),
    }
    if operation.addends:
        addends = [_seed(ins, name, operation.out_format, held) for name in operation.addends]
        found = addends[0]
        for span in addends[1:]:
            found = either(found, span)
        registers["addends"] = replace(found, count=len(addends))
    if "scale_a" in ins.formats:
        registers["scales"] = multiplied(
            *(of_format(ins.formats[name], count) for name in ("scale_a", "scale_b"))
        )
    steps = []
    for index, step in enumerate(operation.steps):
        steps.append((step, dict(registers)))
        registers |= _written(step, index, registers)
    return steps


def words_are_numbers(fmt: Format, step: RoundingStep | SpecialValues) -> bool:
    """Whether what stands for a NaN or an infinity in a format is an ordinary number there."""
    words = special_words(fmt, step)
    return not fmt.is_float or any(fmt.decode(word).kind <= Kind.FINITE for word in words)


def special_words(fmt: Format, step: RoundingStep | SpecialValues) -> list[int]:
    """The codes that a step answers for NaN."""
    named = [word for _, word in step.nans if word is not None] if isinstance(step, SpecialValues) else []
    return [fmt.largest if step.nan is None else step.nan, *named]


def of_zero(fmt: Format) -> Span:
    """The span of what is always zero."""
    return replace(of_format(fmt, 1), greatest=Fraction(0), least=Fraction(0))


def _seed(ins: Instruction, name: str, fmt: Format, held: Held | None) -> Span:
    """What enters as c: an operand, what the unit holds, a zero, or an earlier operation's result."""
    if name in ("zero", NO_SEED):
        return of_zero(fmt)
    if name == "c" and held is not None and fmt == ins.formats["c"]:
        return held.span
    if name == "c" or not fmt.is_float:
        return of_format(fmt, 1)
    earlier = next(operation for operation in ins.program.operations if operation.to == name)
    return result_span(ins, earlier, fmt, held)


def result_span(ins: Instruction, operation: Operation, fmt: Format, held: Held | None = None) -> Span:
    """The result of an operation as a term of this float format: no finer or larger than its exact total."""
    span = of_format(fmt, 1)
    answering = (*operation.steps_of(SpecialValues), operation.final)
    if fmt != operation.out_format or any(words_are_numbers(fmt, step) for step in answering):
        return span
    _, registers = spans_of(ins, operation, held)[-1]
    step = operation.final
    total = rounded_total(step, registers)
    lsb = max(span.lsb, total.lsb)
    low = max(span.low, total.lsb)
    room = _carried(total, fmt, step)
    return replace(
        span,
        low=low,
        lsb=lsb,
        high=min(span.high, exponent_of(max(room.greatest, -room.least), span.high)),
        greatest=min(span.greatest, room.greatest),
        least=max(span.least, room.least),
        subnormal=lsb < fmt.min_exponent,
    )


def exponent_of(value: Fraction, highest: int) -> int:
    """The exponent of a number's leading bit, `highest` at most."""
    exponent = highest
    while exponent > -highest and Fraction(2) ** exponent > value:
        exponent -= 1
    return exponent


def _carried(span: Span, fmt: Format, step: RoundingStep, times: int = 1) -> Span:
    """The span with room for roundings to a format away from zero."""
    if step.rounding == "toward_zero":
        return span
    bits = kept_bits(step, fmt)
    more, unit = 1 + Fraction(times, 1 << bits), Fraction(2) ** (fmt.min_exponent - bits)
    up, down = step.rounding != "down", step.rounding != "up"
    return replace(
        span,
        greatest=span.greatest * more + unit if up else span.greatest,
        least=span.least * more - unit if down else span.least,
    )


def kept_bits(step: RoundingStep, fmt: Format) -> int:
    """Fraction bits of a step's result."""
    kept = step.result_fraction_bits if isinstance(step, Round) else None
    return fmt.fraction_bits if kept is None else kept


def rounded_total(step: RoundingStep, registers: dict[str, Span]) -> Span:
    """The exact value that a rounding step rounds (of a chain of additions: one of them)."""
    match step:
        case Round():
            return registers[step.of[0]]
        case Multiply():
            return _exact_products(step, registers)
        case Fma():
            return joined(addends(step, registers))
        case Additions():
            total = joined(addends(step, registers))
            if words_are_numbers(step.format, step):
                return total
            whole = joined(terms_of(step, registers))
            return replace(total, significand=whole.significand, greatest=whole.greatest, least=whole.least)
        case _:
            assert_never(step)


def terms_of(step: Sum | Additions | Fma, registers: dict[str, Span]) -> list[Span]:
    """What a step adds up: its registers that have terms, or (fma) one product and what it starts with."""
    if isinstance(step, Fma):
        return [one_product(registers), *([registers["c"]] if step.start == "c" else [])]
    return [registers[name] for name in step.of if registers[name].count]


def addends(step: Sum | Additions | Fma, registers: dict[str, Span]) -> list[Span]:
    """What the additions of a step add: its terms, and the sums before where each sum is rounded."""
    spans = terms_of(step, registers)
    if isinstance(step, Sum):
        return spans
    if isinstance(step, Fma):
        links = max(group_sizes(step, registers["a"].count)) - 1
        total = joined([replace(spans[0], count=max(registers["a"].count, 1)), *spans[1:]])
    else:
        links = max(group_sizes(step, sum(span.count for span in spans))) - 2
        total = joined(spans)
    if links < 1:  # no sum is added to
        return spans
    before = replace(_in_format(total, step.format, step, links), count=1)
    if isinstance(step, Fma) and step.start == "c":
        return [spans[0], either(spans[1], before)]
    return [*spans, before]


def one_product(registers: dict[str, Span]) -> Span:
    """A single product of a and b."""
    return replace(multiplied(registers["a"], registers["b"]), count=1)


def _operand(fmt: Format, target: Format | None, count: int) -> Span:
    """An operand, as it is or as a wider format holds it: there its subnormals may be normal."""
    span = of_format(fmt, count)
    if target is None:
        return span
    return replace(
        span,
        low=max(span.lsb, target.min_exponent),
        high=span.high + span.above,
        depth=target.fraction_bits,
        subnormal=span.lsb < target.min_exponent,
        zeros=target.min_exponent,
    )


def _written(step: Step, index: int, registers: dict[str, Span]) -> dict[str, Span]:
    """The registers that a step writes."""
    match step:
        case Flush():
            return {name: _flushed(registers[name]) for name in step.of}
        case HiddenBit():
            return {name: _with_hidden_bit(registers[name]) for name in step.of}
        case Multiply():
            turned = {"c": _negated(registers["c"])} if step.negate in ("c", "both") else {}
            return {step.to: _products(step, registers), **turned}
        case Scale():
            scales = registers["scales"]
            counts = {name: replace(scales, count=registers[name].count) for name in step.of}
            return {name: multiplied(counts[name], registers[name]) for name in step.of}
        case Align():
            return aligned(step, index, registers)
        case Sum():
            return {step.to: _summed(step, registers)}
        case Additions():
            return {step.to: _added(step, registers)}
        case Normalize():
            bits = dict(step.fraction_bits)
            return {name: _normalized(registers[name], bits[name], step) for name in step.of}
        case Fma():
            groups = len(group_sizes(step, registers["a"].count))
            return {step.to: of_format(step.format, groups, step.flush != "none")}
        case Round():
            return {step.to: of_format(step.format, registers[step.of[0]].count)}
        case SpecialValues():
            return {}  # the registers hold what they held
        case _:
            assert_never(step)


def _flushed(span: Span) -> Span:
    lsb = span.low - span.depth
    return replace(span, lsb=lsb, subnormal=False, scattered=False, cancels=False, vanishes=False)


def _with_hidden_bit(span: Span) -> Span:
    """Significands from 1 up; zeros that get the bit are the power of two of their exponent."""
    most = max(span.significand, 2 - Fraction(1, 1 << max(span.depth, 0)))
    if most >= 2:
        most = Fraction(1 << int(most).bit_length())
    top = most * Fraction(2) ** span.high
    return replace(
        span,
        significand=most,
        greatest=max(span.greatest, top),
        least=min(span.least, -top) if span.least < 0 else span.least,
        low=min(span.low, span.zeros),
        high=max(span.high, span.zeros),
        subnormal=False,
        scattered=False,
        cancels=False,
        vanishes=False,
    )


def _exact_products(step: Multiply, registers: dict[str, Span]) -> Span:
    """Products before they are rounded to a format."""
    a, b = registers["a"], registers["b"]
    if step.operation != "product":
        most = max(a.greatest, b.greatest)
        most = Fraction((1 << int(most).bit_length()) - 1)
        return Span(a.count, 0, 0, 0, most, most, Fraction(0), 0)
    span = multiplied(a, b)
    if step.negate in ("product", "both"):
        span = _negated(span)
    if step.overflow_exponent is not None:
        limit = Fraction(2) ** step.overflow_exponent
        span = replace(span, greatest=min(span.greatest, limit), least=max(span.least, -limit))
    if step.normalize:
        span = replace(
            span,
            low=span.lsb,
            high=span.high + span.above,
            significand=Fraction(2),
            depth=span.depth + span.above,
            subnormal=False,
            scattered=False,
        )
    return span


def _negated(span: Span) -> Span:
    return replace(span, greatest=-span.least, least=-span.greatest)


def _products(step: Multiply, registers: dict[str, Span]) -> Span:
    span = _exact_products(step, registers)
    return span if step.format is None else _in_format(span, step.format, step)


_BELOW = 80
"""More bits than any step keeps: how far below the last place of aligned terms a total can have bits, where a
sticky bit goes below that of a format, or one's complement subtracts one."""


def _deeper(span: Span) -> Span:
    return replace(span, lsb=span.lsb - _BELOW, depth=span.depth + _BELOW)


def _in_format(span: Span, fmt: Format, step: IeeeStep, times: int = 1) -> Span:
    """Sums or products after rounding to a format, so many times."""
    held = of_format(fmt, span.count, step.flush != "none")
    if words_are_numbers(fmt, step):
        return held
    if span.sticky:
        span = _deeper(span)
    room = _carried(span, fmt, step, times)
    lsb = max(held.lsb, span.lsb)
    depth = min(held.depth, span.depth + span.above)
    if held.subnormal:
        depth = max(depth, fmt.min_exponent - lsb)
    to_largest = fmt.infinity is None or step.rounding not in ("nearest_even", "nearest_away")
    if to_largest and (room.greatest > held.greatest or room.least < held.least):
        depth = held.depth
    return replace(
        held,
        low=max(held.low, span.lsb),
        lsb=lsb,
        greatest=min(held.greatest, room.greatest),
        least=max(held.least, room.least),
        depth=depth,
    )


def maximum_of(step: Align, registers: dict[str, Span]) -> tuple[int, int]:
    """The least and the greatest exponent that an alignment can be to."""
    if step.exponent is not None:
        return step.exponent, step.exponent
    if step.maximum:
        return _candidates(step.maximum, registers)
    lows, highs = ([getattr(registers[name], end) for name in step.of] for end in ("low", "high"))
    if step.zeros == "maximum":
        lows += [registers[name].zeros for name in step.of]
    floor = [] if step.floor is None else [step.floor]
    return max([min(lows), *floor]), max([*highs, *floor])


def _candidates(candidates: tuple[Candidate, ...], registers: dict[str, Span]) -> tuple[int, int]:
    """The range of the largest candidate; those with a least value are always there."""
    lows, sure, highs = [], [], []
    for one in candidates:
        spans = [registers[name] for name in one.of]
        low = min(span.lsb if one.leading else span.low for span in spans)
        high = max(span.high + one.leading * span.above for span in spans)
        if one.least is not None:
            low, high = max(low, one.least), max(high, one.least)
            sure.append(low + one.plus)
        lows.append(low + one.plus)
        highs.append(high + one.plus)
    return max(sure) if sure else min(lows), max(highs)


def aligned(step: Align, index: int, registers: dict[str, Span]) -> dict[str, Span]:
    """The registers of an alignment after it; the lowest bit follows from the least exponent that can be
    the maximum."""
    least, reach = maximum_of(step, registers)
    left_out, result = dict(step.left_out), {}
    given = step.exponent is not None or bool(step.maximum)  # terms can lie above the exponent
    for name, fraction in step.fraction_bits:
        span = registers[name]
        low = least if given or left_out else max(span.low, least)
        finest = min(span.lsb, low - span.depth) if name in left_out else span.lsb
        bits = fraction + int(step.cut != "dropped")
        deep = step.zeros == "sticky" or span.sticky  # a sticky bit in the last place of all
        moved = _with_room(span, fraction, reach, step)
        if given:
            most = moved.significand * Fraction(2) ** max(span.high - low, 0)
            most = min(most, _most_above(step, name, span) + Fraction(1, 1 << fraction))
            moved = replace(moved, significand=max(most, Fraction(1)))
        result[name] = replace(
            moved,
            low=low,
            high=max(reach, low),
            lsb=low - bits if deep else max(finest, low - bits),
            depth=bits if deep else min(bits, max(reach, low) - finest),
            subnormal=True,
            scattered=True,
            vanishes=True,
            sticky=step.cut == "sticky_or",
            shared=(index, step.group),
        )
    return result


def _most_above(step: Align, name: str, span: Span) -> Fraction:
    """The largest significand of a register's term at the exponent of its alignment, where candidates say how
    far above it the term can lie; its own candidates are part of the maximum."""
    own = [one for one in step.maximum if name in one.of]
    above = [(Fraction(2) if one.leading else span.significand) * Fraction(2) ** -one.plus for one in own]
    return min(above, default=Fraction(1 << _FAR))


def lies_above(step: Align, name: str) -> bool:
    """Whether a register's term can lie above the exponent of its alignment: not where the exponent that it
    carries is a candidate."""
    return not any(name in one.of and not one.leading and one.plus >= 0 for one in step.maximum)


def holds_alone(step: Align, name: str, registers: dict[str, Span]) -> bool:
    """Whether the exponent of an alignment with candidates can be that of a register's terms and of no other:
    by a candidate of its own, by a constant, or by one of a register whose terms lie elsewhere."""
    for one in step.maximum:
        if name in one.of and one.plus == 0:
            return True
        if one.least is not None and one.least + one.plus >= registers[name].low:
            return True
        for other in one.of:
            meets = not lies_above(step, other)  # the maximum is never below that register's own exponents
            if other != name and (not meets or (one.leading and one.plus > -registers[other].above)):
                return True
    return False


def _with_room(span: Span, fraction: int, reach: int, step: Align) -> Span:
    """Room for what rounding, a sticky bit or a shifter that stops short adds to a term.

    Only a term that loses bits is rounded; it lies so far below the maximum that few bits are left above.
    """
    unit, top = Fraction(2) ** -fraction, Fraction(2) ** reach
    sticky = unit / 2 if step.cut != "dropped" else Fraction(0)
    up, down = (sticky + unit * (step.rounding not in ("toward_zero", other)) for other in ("down", "up"))
    if span.zero and step.zeros == "sticky":
        span = replace(span, greatest=unit * top, least=-unit * top)
    greatest, least, significand = span.greatest, span.least, span.significand
    if step.shift_limit is not None:
        most = significand * Fraction(2) ** (reach - step.shift_limit)
        greatest = max(greatest, most) if greatest > 0 else greatest
        least = min(least, -most) if least < 0 else least
    shifted = significand * Fraction(1, 2) ** max(fraction - span.depth + 1, 0)
    if up and greatest > 0:
        greatest = max(greatest, min(greatest + up * top, (shifted + up) * top))
    if down and least < 0:
        least = min(least, max(least - down * top, -(shifted + down) * top))
    if up or down:
        significand = max(significand, shifted + max(up, down))
    return replace(span, significand=significand, greatest=greatest, least=least)


def _joined_groups(step: Sum | Additions, registers: dict[str, Span]) -> Span:
    """One span for the exact sums of each group."""
    spans = [registers[name] for name in step.of]
    sizes = group_sizes(step, sum(span.count for span in spans))
    return replace(joined(spans, max(sizes)), count=len(sizes))


def _summed(step: Sum, registers: dict[str, Span]) -> Span:
    spans = [registers[name] for name in step.of]
    span = _joined_groups(step, registers)
    if one_exponent(step, spans):
        depth = max(term.depth for term in spans)
        span = replace(span, depth=depth if step.exponent is None else span.depth)
    if step.complement != "none":
        span = replace(_deeper(span), cancels=True)
    if step.width is not None:
        span = _wrapped(span, step.width)
    if step.cancelled == "zero":
        span = replace(span, cancels=False, vanishes=False)
    if step.exponent is None:
        return span
    largest = max(span.greatest, -span.least) / Fraction(2) ** step.exponent
    depth = step.exponent - span.lsb
    return replace(span, low=step.exponent, high=step.exponent, depth=depth, significand=largest)


def _added(step: Additions, registers: dict[str, Span]) -> Span:
    """Sums that are rounded; a group of one term hands it on as it is."""
    spans = [registers[name] for name in step.of]
    sizes = group_sizes(step, sum(span.count for span in spans))
    span = _joined_groups(step, registers)
    rounded = _in_format(span, step.format, step, max(sizes))
    return either(rounded, replace(joined(spans, 1), count=len(sizes))) if min(sizes) == 1 else rounded


def one_exponent(step: Sum, spans: list[Span]) -> bool:
    """Whether the terms that a sum adds have one exponent: the last alignment was of all of them, or there is
    but one."""
    if max(group_sizes(step, sum(span.count for span in spans))) == 1:
        return True
    first = spans[0].shared
    if first is None:
        return len({span.low for span in spans} | {span.high for span in spans}) == 1
    return all(span.shared == first for span in spans) and first[1] in (None, step.group)


def _wrapped(span: Span, width: int) -> Span:
    """A sum that keeps so many integer bits: it can come out with either sign, or as nothing."""
    most = min(span.significand, Fraction(1 << width >> 1))
    if most == span.significand:
        return span
    top = most * Fraction(2) ** span.high
    return replace(span, significand=most, greatest=top, least=-top, cancels=True)


def _normalized(span: Span, fraction: int, step: Normalize) -> Span:
    """The leading one moves before the point; rounding can carry it one place farther."""
    low = span.lsb if step.min_exponent is None else max(span.lsb, step.min_exponent)
    high = max(span.high + span.above, low)
    unit = Fraction(2) ** (high - fraction)
    lost = span.depth + span.above > fraction or span.lsb < low - fraction or span.sticky
    carries = lost and step.rounding not in ("toward_zero", "to_odd")
    up, down = (lost and step.rounding not in ("toward_zero", other) for other in ("down", "up"))
    return replace(
        span,
        low=low,
        high=high,
        significand=Fraction(2) - (0 if carries else Fraction(1, 1 << fraction)),
        lsb=max(span.lsb, low - fraction),
        greatest=span.greatest + unit if up and span.greatest > 0 else span.greatest,
        least=span.least - unit if down and span.least < 0 else span.least,
        depth=fraction,
        subnormal=span.lsb < low,
        scattered=False,
        vanishes=span.lsb < low or span.vanishes,
        sticky=False,  # it was the last bit of what was normalised
        shared=None,
    )


def largest_significand(fmt: Format) -> int:
    """Significand of the largest finite number of a float format, in units of its last place."""
    fraction = (fmt.largest >> fmt.ignored_low) & ((1 << fmt.fraction_bits) - 1)
    return fraction | 1 << fmt.fraction_bits
