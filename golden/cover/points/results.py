"""Coverpoints of d: which classes of codes the last step of the program can answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import numpy as np

from golden.cover.points.classes import accumulator_bins, class_bins, classify
from golden.cover.points.point import Array, Coverpoint, Sample
from golden.cover.points.sum_round import largest_result, overflows, ways_of
from golden.cover.ranges import AccumulatorRange, spans_of
from golden.model.instruction import Instruction
from golden.model.registers import decode
from golden.number.formats import Format
from golden.number.rounding import BELOW, ROUNDINGS, TIE
from golden.program.bounds import Bounds, kept_bits, least_integer, rounded_total, special_words, terms_of
from golden.program.program import Operation
from golden.program.steps import (
    Additions,
    Align,
    FinalStep,
    Flush,
    Fma,
    HiddenBit,
    Multiply,
    Normalize,
    Part,
    Replace,
    Round,
    Scale,
    SpecialValues,
    Step,
    Sum,
    format_of,
)


def result_points(ins: Instruction, held: AccumulatorRange | None = None) -> list[Coverpoint]:
    """From the span of the last exact total: how small and how large it can be decides which classes d can
    have."""
    fmt, (step, total) = ins.formats["d"], final_total(ins, held)
    bins = class_bins(fmt)
    if not fmt.is_float:
        return [Coverpoint("result", "class of d", _integer_classes(ins, bins, total))]
    kept = kept_bits(step, fmt)
    unit = fmt.min_exponent - kept
    tiny = total.lsb < fmt.min_exponent and step.flush == "none"
    plus, minus = _infinities(ins, held, total)
    # What the last rounding makes infinite is no NaN; the adders of a chain can meet their own infinities.
    infinite = makes_infinity(ins, held) if isinstance(step, Round) else plus or minus
    no_number = infinite or takes(ins, held, "NaN") or _overflow_is_nan(step, total, fmt, kept)
    most = max(total.greatest, -total.least)
    # A lone product of narrow factors never has all digits of the largest number; a clamp gives it.
    every_digit = total.depth + total.above >= kept
    rounding = ROUNDINGS[step.rounding]
    clamps = fmt.infinity is None or rounding.keeps_largest(0) or rounding.keeps_largest(1)
    clamps = clamps or (isinstance(step, Round) and step.overflow == "largest")
    reach = {
        "-0": bins["-0"] and _negative_zero_result(ins, held),
        "least subnormal": bins["least subnormal"] and tiny and total.lsb <= unit and kept > 0,
        "subnormal": bins["subnormal"] and tiny and kept > 1,
        "least normal": bins["least normal"] and total.lsb <= fmt.min_exponent,
        "largest": (overflows(total, fmt, kept, step) and (clamps or every_digit))
        or (every_digit and most >= largest_result(fmt, kept)),
        "infinity": bins["infinity"] and plus,
        "negative infinity": bins["negative infinity"] and minus,
        "quiet NaN": bins["quiet NaN"] and no_number,
        "signalling NaN": False,
    }
    found = bins | reach
    if no_number:
        for label in _special_classes(ins, fmt):
            found[label] = True
    return [Coverpoint("result", "class of d", found)]


def _overflow_is_nan(step: Step, total: Bounds, fmt: Format, kept: int) -> bool:
    return isinstance(step, Round) and step.overflow == "nan" and overflows(total, fmt, kept, step)


def _integer_classes(ins: Instruction, bins: dict[str, bool], total: Bounds) -> dict[str, bool]:
    """The classes that numbers in the range of the last total have; all, where a total beyond the format's
    range is wrapped, or where NaNs and infinities become numbers."""
    fmt = ins.formats["d"]
    low, wraps = least_integer(fmt), can_wrap(ins.program.operations[-1].final)
    outside = total.greatest > fmt.largest or total.least < low
    operands = [ins.formats[name] for name in "abc"]
    special = any(one.is_float and (one.nan is not None or one.infinity is not None) for one in operands)
    if special or (outside and wraps):
        return bins
    reach = {
        "positive": total.greatest > 1,
        "negative": total.least < -1,
        "minus one": total.least < 0,
        "largest": total.greatest >= fmt.largest,
        "least": total.least <= low,
    }
    return {label: has and reach.get(label, True) for label, has in bins.items()}


def can_wrap(step: Step) -> bool:
    """Whether integers that a step cannot hold lose their upper bits."""
    if isinstance(step, Sum):
        return step.width is not None
    return isinstance(step, Additions | Round) and step.overflow in ("wrap", "ieee")


def takes(ins: Instruction, held: AccumulatorRange | None, what: str) -> bool:
    """Whether an operand can be an infinity, or a NaN."""
    labels = {"infinity": ("infinity", "negative infinity"), "NaN": ("quiet NaN",)}[what]
    formats = [ins.formats[name] for name in ("a", "b", "scale_a", "scale_b") if name in ins.formats]
    bins = [*(class_bins(fmt) for fmt in formats), accumulator_bins(ins.formats["c"], held)]
    return any(of_one.get(label, False) for of_one in bins for label in labels)


def _infinities(ins: Instruction, held: AccumulatorRange | None, total: Bounds) -> tuple[bool, bool]:
    """Whether d can be a positive and a negative infinity: an overflow that was held as c keeps its sign, all
    others can have either."""
    nothing = (
        None
        if held is None
        else AccumulatorRange(held.span, held.classes - {"infinity", "negative infinity"})
    )
    if makes_infinity(ins, nothing):
        return True, True
    step = ins.program.operations[-1].final
    over = overflows(total, ins.formats["d"], kept_bits(step, ins.formats["d"]), step)
    rule = "ieee" if isinstance(step, Fma) else step.overflow
    signs = [
        over
        and rule not in ("largest", "nan")
        and (rule == "infinity" or not ROUNDINGS[step.rounding].keeps_largest(sign))
        for sign in (0, 1)
    ]
    if held is not None:
        turned = any(one.negate in ("c", "both") for one in ins.program.steps_of(Multiply))
        kept = [label in held.classes for label in ("infinity", "negative infinity")]
        signs = [sign or was or (turned and any(kept)) for sign, was in zip(signs, kept, strict=True)]
    return signs[0], signs[1]


def makes_infinity(ins: Instruction, held: AccumulatorRange | None) -> bool:
    """Whether an infinity can come from an operand, from a step that makes one, or from a format on the
    way."""
    if takes(ins, held, "infinity"):
        return True
    steps = [step for operation in ins.program.operations for step in operation.steps]
    ways = [fmt for step in steps[:-1] if (fmt := format_of(step)) is not None]
    ways += [operation.out_format for operation in ins.program.operations[:-1]]
    products = ins.program.steps_of(Multiply)
    return any(step.overflow_exponent is not None for step in products) or any(
        fmt.infinity is not None for fmt in ways
    )


def _special_classes(ins: Instruction, fmt: Format) -> set[str]:
    """The classes of the words that stand for a NaN, and of the largest numbers that stand for infinities."""
    labels = list(class_bins(fmt))
    last = ins.program.operations[-1]
    answering = (*last.steps_of(SpecialValues), last.final)
    words = [word for step in answering for word in special_words(fmt, step)]
    if fmt.infinity is None:
        words.append(fmt.largest)
    codes = np.array(words, np.uint64)[:, None]
    dropped = fmt.fraction_bits - last.result_fraction_bits
    return {labels[i] for i in classify(fmt, decode(fmt, codes), codes, dropped).ravel()}


def result_samples(ins: Instruction, d: Array) -> Iterator[Sample]:
    """The bins that the results of vectors fall into."""
    fmt = ins.formats["d"]
    codes = d[:, None]
    dropped = fmt.fraction_bits - ins.program.operations[-1].result_fraction_bits if fmt.is_float else 0
    yield "class of d", classify(fmt, decode(fmt, codes), codes, dropped)


def final_total(ins: Instruction, held: AccumulatorRange | None) -> tuple[FinalStep, Bounds]:
    """The last step and the span of the exact value that it rounds."""
    operation = ins.program.operations[-1]
    _, registers = spans_of(ins, operation, held)[-1]
    return operation.final, rounded_total(operation.final, registers)


def _negative_zero_result(ins: Instruction, held: AccumulatorRange | None) -> bool:
    """The last step can answer -0: from addends that can all be -0, from any zero in mode "down", or from
    a tiny negative sum."""
    operation = ins.program.operations[-1]
    step, (_, registers) = operation.final, spans_of(ins, operation, held)[-1]
    if isinstance(step, Round) and step.zero != "signed_underflow":
        return step.zero == "signed"
    if _tiny_sum(step, ins.formats["d"], registers):
        return True
    if isinstance(step, Round) or step.rounding == "down":
        return step.rounding == "down" and not isinstance(step, Round)
    read = set(step.of) if not isinstance(step, Fma) else {"c"} if step.start == "c" else set()
    positive, sources = (
        _positive_zeros(ins, operation, held),
        {"c": (operation.seed,), "addends": operation.addends},
    )
    for name in read - _vanishing(operation):
        earlier = (o.final for o in ins.program.operations if o.to in sources.get(name, ()))
        if name in positive or any(isinstance(last, Round) and last.zero == "positive" for last in earlier):
            return False
    return not (isinstance(step, Fma) and step.start == "zero")


def _vanishing(operation: Operation) -> set[str]:
    """Registers whose negative numbers can lose all their bits and keep the sign."""
    return {name for step in operation.steps[:-1] if isinstance(step, Align | Normalize) for name in step.of}


def _positive_zeros(ins: Instruction, operation: Operation, held: AccumulatorRange | None) -> set[str]:
    """Registers whose zeros are all +0 in the last step: a positive flush is the last that happens to them, a
    multiply-add that starts from +0 and rounds no number to zero, or it is c of a unit that never holds
    -0."""
    kept = held is not None and "-0" not in held.classes and operation.seed == "c"
    turned = any(step.negate in ("c", "both") for step in operation.steps_of(Multiply))
    found: set[str] = {"c"} if kept and not turned else set()
    for step, registers in spans_of(ins, operation, held)[:-1]:
        match step:
            case Fma() if step.start == "zero" and step.rounding != "down" and _keeps_tiny(step, registers):
                found.add(step.to)
            case Flush():
                found.update(step.of if step.sign == "positive" else ())
            case Align() | Normalize() | Scale():
                found.difference_update(step.of)
            case Round() if step.zero == "positive":
                found.add(step.to)
            case Multiply() | Sum() | Additions() | Fma() | Round():
                found.discard(step.to)
            case HiddenBit() | Part() | SpecialValues():
                pass
            case Replace():
                found.difference_update(step.of if step.by <= 0 else ())
            case _:
                assert_never(step)
    return found


def _keeps_tiny(step: Fma, registers: dict[str, Bounds]) -> bool:
    """Whether a multiply-add has a code for the last bit of each product."""
    last = step.format.min_exponent - step.format.fraction_bits
    return step.flush == "none" and rounded_total(step, registers).lsb >= last


def _tiny_sum(step: FinalStep, fmt: Format, registers: dict[str, Bounds]) -> bool:
    """Whether the last sum can be a negative number that becomes -0, by its rounding or by its flush.

    Normal addends leave a subnormal sum where two of them are small enough to cancel so far.
    """
    total = rounded_total(step, registers)
    if step.flush == "none":
        lost = isinstance(step, Round) and step.subnormal_carry == "lost"
        if total.least >= 0 or (ways_of(step, 1, BELOW, 0) == {True} and not lost):
            return False
        unit = fmt.min_exponent - kept_bits(step, fmt)
        return total.lsb < (unit if lost or False in ways_of(step, 1, TIE, 0) else unit - 1)
    if step.flush == "positive" or total.lsb >= fmt.min_exponent:
        return False
    if isinstance(step, Round):
        return total.least < 0
    spans = terms_of(step, registers)
    small = sum(span.count for span in spans if span.low <= fmt.min_exponent + fmt.fraction_bits)
    return small > 1 or any(span.subnormal or span.low < fmt.min_exponent for span in spans)
