"""What the registers of a program can hold: the ranges from which coverage derives the bins that can be
reached at all.

A span says, for every register before a step, which exponents its finite non-zero terms can have, how large a
significand can be, the exponent of the lowest bit that can be set, and the largest value. The rules follow
from the formats and the steps alone; nothing is learnt from vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

from golden.cover.observed import groups_of, largest_significand
from golden.errors import CoverageError
from golden.instruction import Instruction
from golden.number.formats import Format
from golden.program.program import NO_SEED, Operation
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
)


@dataclass(frozen=True)
class Span:
    """Range of one register's terms.

    Attributes:
        count: the number of terms.
        low, high: least and greatest alignment exponent of a finite non-zero term.
        lsb: exponent of the lowest bit that can be set.
        significand: the largest significand, in units of 2**exponent.
        greatest, least: the largest and the most negative value.
        cancels: whether a term can be a sum that came out as zero and still takes part in alignment.
        depth: how far below a term's own exponent its bits can reach.
        subnormal: whether a term's significand can be below 1.
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


def of_format(fmt: Format, count: int, flushed: bool = False) -> Span:
    """The span of operands of a format."""
    if not fmt.is_float:
        lowest = Fraction(-(1 << (fmt.integer_bits - 1)) if fmt.signed else 0)
        return Span(count, 0, 0, 0, max(Fraction(fmt.largest), -lowest), Fraction(fmt.largest), lowest, 0)
    top = Fraction(largest_significand(fmt), 1 << fmt.fraction_bits)
    greatest = top * Fraction(2) ** fmt.max_exponent
    usual = top if fmt.max_exponent == fmt.min_exponent else 2 - Fraction(1, 1 << fmt.fraction_bits)
    tiny = fmt.has_zero and fmt.fraction_bits > 0 and not flushed
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
    )


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
    )


def joined(spans: list[Span], size: int | None = None) -> Span:
    """The span of an exact sum of `size` (default: all) of the terms of several registers; seeds that are
    zero do not count."""
    spans = [span for span in spans if span.greatest or span.least] or spans
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
        any(span.least < 0 for span in spans)
        and any(span.greatest > 0 for span in spans)
        and (size or count) > 1,
        True,
    )


def spans_of(ins: Instruction, operation: Operation) -> list[tuple[Step, dict[str, Span]]]:
    """Every step of an operation with the spans of all registers just before it."""
    count = len(operation.k_index)
    registers = {
        "a": _operand(ins.formats["a"], operation.operand_format, count),
        "b": _operand(ins.formats["b"], operation.operand_format, count),
        "c": _seed(ins, operation.seed, operation.seed_format),
    }
    if operation.addends:
        addends = [_seed(ins, name, operation.out_format) for name in operation.addends]
        registers["addends"] = replace(max(addends, key=lambda span: span.greatest), count=len(addends))
    if "scale_a" in ins.formats:
        registers["scales"] = multiplied(
            *(of_format(ins.formats[name], count) for name in ("scale_a", "scale_b"))
        )
    steps = []
    for step in operation.steps:
        steps.append((step, dict(registers)))
        _apply(step, registers)
    return steps


def _seed(ins: Instruction, name: str, fmt: Format) -> Span:
    """What enters as c: an operand, a zero, or an earlier operation's result, no finer or larger than its
    exact total."""
    span = of_format(fmt, 1)
    if name in ("zero", NO_SEED):
        return replace(span, greatest=Fraction(0), least=Fraction(0))
    if name == "c" or not fmt.is_float:
        return span
    earlier = next(operation for operation in ins.program.operations if operation.to == name)
    step, registers = spans_of(ins, earlier)[-1]
    total = rounded_total(step, registers)
    lsb = max(span.lsb, total.lsb)
    low = max(span.low, total.lsb)
    return replace(
        span,
        low=low,
        lsb=lsb,
        high=min(span.high, _exponent_of(max(total.greatest, -total.least), span.high)),
        greatest=min(span.greatest, total.greatest),
        least=max(span.least, total.least),
        subnormal=lsb < fmt.min_exponent,
    )


def _exponent_of(value: Fraction, highest: int) -> int:
    exponent = highest
    while exponent > -highest and Fraction(2) ** exponent > value:
        exponent -= 1
    return exponent


def rounded_total(step: Step, registers: dict[str, Span]) -> Span:
    """The exact value that a rounding step rounds (of a chain of fused multiply-adds: one of them)."""
    if isinstance(step, Round):
        return registers[step.of[0]]
    if isinstance(step, Multiply):
        return multiplied(registers["a"], registers["b"])
    if isinstance(step, Fma):
        return joined([one_product(registers), registers["c"]])
    return joined([registers[name] for name in step.of])


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
        depth=target.fraction_bits,
        subnormal=span.lsb < target.min_exponent,
    )


def _apply(step: Step, registers: dict[str, Span]) -> None:
    match step:
        case Flush():
            for name in step.of:
                span = registers[name]
                registers[name] = replace(span, subnormal=False, lsb=_normal_lsb(span))
        case Multiply():
            registers[step.to] = _products(step, registers)
            if step.negate in ("c", "both"):
                registers["c"] = _negated(registers["c"])
        case Scale():
            for name in step.of:
                scales = replace(registers["scales"], count=registers[name].count)
                registers[name] = multiplied(scales, registers[name])
        case Align():
            registers.update(aligned(step, registers))
        case Sum():
            registers[step.to] = _summed(step, [registers[name] for name in step.of])
        case Additions():
            spans = [registers[name] for name in step.of]
            registers[step.to] = _bounded(_joined_groups(step, spans), step.format, step.flush != "none")
        case Normalize():
            bits = dict(step.fraction_bits)
            registers.update({name: _normalized(registers[name], bits[name], step) for name in step.of})
        case Fma():
            groups = groups_of(registers["a"].count, step.group)
            registers[step.to] = of_format(step.format, len(groups), step.flush != "none")
        case Round():
            registers[step.to] = of_format(step.format, registers[step.of[0]].count)
        case SpecialValues():
            pass  # the registers hold what they held
        case HiddenBit():
            raise CoverageError(f"step '{step.op}' has no spans: functional coverage does not observe it")
        case _:
            assert_never(step)


def _normal_lsb(span: Span) -> int:
    return span.low - span.depth


def _products(step: Multiply, registers: dict[str, Span]) -> Span:
    if step.operation != "product":
        return Span(registers["a"].count, 0, 0, 0, Fraction(1), Fraction(1), Fraction(0), 0)
    span = multiplied(registers["a"], registers["b"])
    if step.negate in ("product", "both"):
        span = _negated(span)
    if step.overflow_exponent is not None:
        limit = Fraction(2) ** step.overflow_exponent
        span = replace(span, greatest=min(span.greatest, limit), least=max(span.least, -limit))
    if step.normalize:
        carry = int(span.significand >= 2)
        span = replace(span, low=span.lsb, high=span.high + carry, significand=Fraction(2), subnormal=False)
    if step.format is None:
        return span
    return _bounded(span, step.format, step.flush != "none")


def _negated(span: Span) -> Span:
    return replace(span, greatest=-span.least, least=-span.greatest)


def _bounded(span: Span, fmt: Format, flushed: bool) -> Span:
    """A sum or product after rounding to a format."""
    held = of_format(fmt, span.count, flushed)
    depth = min(held.depth, span.depth + max(int(span.significand).bit_length() - 1, 0))
    return replace(
        held,
        low=max(held.low, span.lsb),
        lsb=max(held.lsb, span.lsb),
        greatest=min(held.greatest, span.greatest),
        least=max(held.least, span.least),
        depth=depth,
    )


def aligned(step: Align, registers: dict[str, Span]) -> dict[str, Span]:
    """The registers of an alignment after it; the lowest bit follows from the least exponent that can be
    the maximum."""
    floor = step.floor
    result = {}
    for name, fraction in step.fraction_bits:
        span = registers[name]
        low = span.low if floor is None else max(span.low, floor)
        reach = max(registers[other].high for other in step.of)
        fraction += int(step.cut == "sticky_added")
        result[name] = replace(
            span,
            low=low,
            high=max(reach, low),
            lsb=max(span.lsb, low - fraction),
            depth=min(fraction, max(reach, low) - span.lsb),
        )
    return result


def _joined_groups(step: Sum | Additions, spans: list[Span]) -> Span:
    """One span for the exact sums of each group."""
    groups = groups_of(sum(span.count for span in spans), step.group)
    return replace(joined(spans, max(len(group) for group in groups)), count=len(groups))


def _summed(step: Sum, spans: list[Span]) -> Span:
    span = _joined_groups(step, spans)
    if step.exponent is None:
        alike = len(spans) and all(span.depth == spans[0].depth for span in spans)
        return replace(span, depth=spans[0].depth) if alike else span
    largest = max(span.greatest, -span.least) / Fraction(2) ** step.exponent
    depth = step.exponent - span.lsb
    return replace(span, low=step.exponent, high=step.exponent, depth=depth, significand=largest)


def _normalized(span: Span, fraction: int, step: Normalize) -> Span:
    low = span.lsb if step.min_exponent is None else max(span.lsb, step.min_exponent)
    growth = max(int(span.significand).bit_length() - 1, 0)
    return replace(
        span,
        low=low,
        high=span.high + growth,
        significand=Fraction(2),
        lsb=max(span.lsb, low - fraction),
        depth=fraction,
    )
