"""Coverpoints of d: which classes of codes the last step of the program can answer."""

from __future__ import annotations

from collections.abc import Iterator

from golden.cover.observed import decode
from golden.cover.points.classes import class_bins, classify
from golden.cover.points.point import Array, Coverpoint, Sample
from golden.cover.points.sum_round import addends, kept_bits, largest_result, overflows
from golden.cover.ranges import Span, rounded_total, spans_of
from golden.instruction import Instruction
from golden.number.formats import Format
from golden.program.program import Operation
from golden.program.steps import Align, FinalStep, Flush, Fma, Normalize, Round, Scale


def result_points(ins: Instruction) -> list[Coverpoint]:
    """From the span of the last exact total: how small and how large it can be decides which classes d can
    have."""
    fmt, (step, total) = ins.formats["d"], _final_total(ins)
    bins = class_bins(fmt)
    if not fmt.is_float:
        return [Coverpoint("result", "class of d", bins)]
    kept = kept_bits(step, fmt)
    unit = fmt.min_exponent - kept
    tiny = total.lsb < fmt.min_exponent and step.flush == "none"
    operands = [ins.formats[name] for name in "abc"]
    infinite = any(f.infinity is not None for f in operands) or overflows(total, fmt, kept, step)
    reach = {
        "-0": bins["-0"] and _negative_zero_result(ins),
        "least subnormal": tiny and total.lsb <= unit and kept > 0,
        "subnormal": tiny and kept > 1,
        "least normal": total.lsb <= fmt.min_exponent,
        "largest": total.greatest >= largest_result(fmt, kept),
        "infinity": bins["infinity"] and infinite,
        "negative infinity": bins["infinity"] and infinite,
        "quiet NaN": bins["quiet NaN"],
        "signalling NaN": False,
    }
    return [Coverpoint("result", "class of d", bins | reach)]


def result_samples(ins: Instruction, d: Array) -> Iterator[Sample]:
    """The bins that the results of vectors fall into."""
    fmt = ins.formats["d"]
    codes = d[:, None]
    dropped = fmt.fraction_bits - ins.program.operations[-1].result_fraction_bits if fmt.is_float else 0
    yield "class of d", classify(fmt, decode(fmt, codes), codes, dropped)


def _final_total(ins: Instruction) -> tuple[FinalStep, Span]:
    """The last step and the span of the exact value that it rounds."""
    operation = ins.program.operations[-1]
    _, registers = spans_of(ins, operation)[-1]
    return operation.final, rounded_total(operation.final, registers)


def _negative_zero_result(ins: Instruction) -> bool:
    """The last step can answer -0: from addends that can all be -0, from any zero in mode "down", or from
    a tiny negative sum."""
    operation = ins.program.operations[-1]
    step, (_, registers) = operation.final, spans_of(ins, operation)[-1]
    if isinstance(step, Round):
        return step.zero == "signed"
    if step.rounding == "down" or _tiny_sum(step, ins.formats["d"], registers):
        return True
    if isinstance(step, Fma):
        cleared = step.start == "zero" or (step.start == "c" and "c" in _positive_zeros(operation))
    else:
        cleared = not _positive_zeros(operation).isdisjoint(step.of)
    earlier = [o.final for o in ins.program.operations if o.to in (*operation.addends, operation.seed)]
    return not cleared and all(not isinstance(last, Round) or last.zero == "signed" for last in earlier)


def _positive_zeros(operation: Operation) -> set[str]:
    """Registers whose zeros are all +0 in the last step: a positive flush is the last that happens to
    them."""
    found: set[str] = set()
    for step in operation.steps[:-1]:
        if isinstance(step, Flush) and step.sign == "positive":
            found.update(step.of)
        elif isinstance(step, Align | Normalize | Scale):
            found.difference_update(step.of)
        found.discard(step.to)
    return found


def _tiny_sum(step: FinalStep, fmt: Format, registers: dict[str, Span]) -> bool:
    """Whether the last sum can be a negative number that becomes -0, by its rounding or by its flush.

    Normal addends leave a subnormal sum where two of them are small enough to cancel so far.
    """
    total = rounded_total(step, registers)
    if step.flush == "none":
        return total.least < 0 and total.lsb < fmt.min_exponent - fmt.fraction_bits - (
            step.rounding == "nearest_away"
        )
    if step.flush == "positive" or total.lsb >= fmt.min_exponent:
        return False
    spans = addends(step, registers)
    small = sum(span.count for span in spans if span.low <= fmt.min_exponent + fmt.fraction_bits)
    return small > 1 or any(span.subnormal or span.low < fmt.min_exponent for span in spans)
