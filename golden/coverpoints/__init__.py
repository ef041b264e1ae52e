"""The coverpoints of an instruction: their bins, which of them can be reached at all, and how vectors fall into them.

    for point in coverpoints(ins):
        print(point.part, point.name, point.labels)

A coverpoint is a named list of bins. Whether a bin can be reached follows from the formats and the program (see
golden/spans.py); each `..._points` function of the modules states its rules. Coverpoints of a datapath are named after its
steps; equal operations of a chain share them, except for `largest exponent of operation i`.

`point` says what a coverpoint is, `classes` sorts the codes of a format. `operands`, `multiply_align`, `sum_round` and
`results` hold the coverpoints of those parts of a unit, each with the bins beside the counting.
"""

from __future__ import annotations

from collections.abc import Iterator

from golden.coverpoints.multiply_align import align_points, align_samples, multiply_points, multiply_samples, slice_points
from golden.coverpoints.operands import operand_points, operand_samples
from golden.coverpoints.point import Array, Coverpoint, Sample, stage_name, united
from golden.coverpoints.results import result_points, result_samples
from golden.coverpoints.sum_round import round_points, round_samples, sum_points, sum_samples
from golden.instruction import Instruction
from golden.observe import Aligned, Multiplied, Seen, Summed, observe
from golden.program import Operation
from golden.spans import spans_of

__all__ = ["Coverpoint", "coverpoints", "samples"]


def coverpoints(ins: Instruction) -> list[Coverpoint]:
    """All coverpoints of an instruction (vectors are dot products)."""
    points = operand_points(ins) + result_points(ins)
    for index, operation in enumerate(ins.program.operations):
        if len(ins.program.operations) > 1:
            points += slice_points(ins, index, operation)
        points = united(points, _stage_points(ins, operation))
    return points


def samples(ins: Instruction, operands: dict[str, Array], d: Array) -> Iterator[Sample]:
    """Yields, for every coverpoint that the vectors meet, the bins that they fall into."""
    yield from operand_samples(ins, operands)
    yield from result_samples(ins, d)
    for seen in observe(ins, operands):
        yield from _seen_samples(ins, seen)


def _stage_points(ins: Instruction, operation: Operation) -> list[Coverpoint]:
    points: list[Coverpoint] = []
    for step, registers in spans_of(ins, operation):
        name = stage_name(operation, step)
        if step.op in ("multiply", "fma"):
            points += multiply_points(ins, name, step, registers)
        if step.op == "align":
            points += align_points(ins, name, operation, step, registers)
        if step.op in ("sum", "fma"):
            points += sum_points(name, step, registers)
        if step.op == "round" or step.format is not None:
            points += round_points(name, step, registers)
    return points


def _seen_samples(ins: Instruction, seen: Seen) -> Iterator[Sample]:
    name = stage_name(ins.program.operations[seen.operation], seen.step)
    if isinstance(seen, Multiplied):
        yield from multiply_samples(ins, name, seen)
    elif isinstance(seen, Aligned):
        yield from align_samples(ins, name, seen)
    elif isinstance(seen, Summed):
        yield from sum_samples(name, seen)
    else:
        yield from round_samples(name, seen)
