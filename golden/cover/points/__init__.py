"""The coverpoints of an instruction: their bins, which of them can be reached at all, and how vectors fall
into them.

    for point in coverpoints(ins):
        print(point.part, point.name, point.labels)

A coverpoint is a named list of bins. Whether a bin can be reached follows from the formats and the program
(see golden/cover/ranges.py); each `..._points` function of the modules states its rules. Coverpoints of a
datapath are named after its steps; equal operations of a chain share them, except for `largest exponent of
operation i`.

`point` says what a coverpoint is, `classes` sorts the codes of a format. `operands`, `multiply_align`,
`sum_round` and `results` hold the coverpoints of those parts of a unit, each with the bins beside the
counting.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from golden.cover.observed import (
    Aligned,
    Answered,
    Multiplied,
    Numbers,
    Rounded,
    Seen,
    Summed,
    decode,
    observe,
    unobserved,
)
from golden.cover.points.multiply_align import (
    align_points,
    align_samples,
    multiply_points,
    multiply_samples,
    slice_points,
)
from golden.cover.points.operands import operand_points, operand_samples
from golden.cover.points.point import Array, Coverpoint, Sample, stage_name, united
from golden.cover.points.results import result_points, result_samples
from golden.cover.points.sum_round import round_points, round_samples, sum_points, sum_samples
from golden.cover.ranges import spans_of
from golden.errors import CoverageError
from golden.instruction import Instruction
from golden.number.formats import Kind
from golden.program.modes import mode_text
from golden.program.program import Operation
from golden.program.steps import Additions, Align, Fma, Multiply, Round, Sum

__all__ = ["Coverpoint", "coverpoints", "samples"]


def coverpoints(ins: Instruction) -> list[Coverpoint]:
    """All coverpoints of an instruction (vectors are dot products).

    Raises:
        CoverageError: the instruction does what golden/cover/observed.py does not observe.
    """
    if ins.modes is not None:
        return _of_modes(ins)
    if (missing := unobserved(ins)) is not None:
        raise CoverageError(
            f"{ins.name}: functional coverage has no figure for this unit: {missing} is not observed"
        )
    points = operand_points(ins) + result_points(ins)
    for index, operation in enumerate(ins.program.operations):
        if len(ins.program.operations) > 1:
            points += slice_points(ins, index, operation)
        points = united(points, _stage_points(ins, operation))
    return [point for point in points if not _about_nothing(ins, point)]


def _about_nothing(ins: Instruction, point: Coverpoint) -> bool:
    """Whether a coverpoint looks at an operand that the unit does not have."""
    told = {"b": ("class of b", "class of a, class of b", "signs of a and b"), "c": ("class of c",)}
    return any(point.name.startswith(told[name]) for name in ins.absent)


def _of_modes(ins: Instruction) -> list[Coverpoint]:
    """Whether every mode came, and each mode's own coverpoints."""
    assert ins.modes is not None
    labels = {mode_text(values): True for _, values in ins.modes.codes()}
    points = [Coverpoint("operands", "mode", labels)]
    for (_, values), unit in zip(ins.modes.codes(), ins.mode_units.values(), strict=True):
        points += [replace(p, name=f"{mode_text(values)}: {p.name}") for p in coverpoints(unit)]
    return points


def _samples_of_modes(ins: Instruction, operands: dict[str, Array], d: Array) -> Iterator[Sample]:
    assert ins.modes is not None
    texts = {id(ins.mode_units[code]): mode_text(values) for code, values in ins.modes.codes()}
    yield "mode", np.searchsorted(np.array(list(ins.mode_units)), operands["mode"])
    for unit, own, index in ins.by_mode(operands):
        for name, bins in samples(unit, own, d[index]):
            yield f"{texts[id(unit)]}: {name}", bins


def samples(ins: Instruction, operands: dict[str, Array], d: Array) -> Iterator[Sample]:
    """Yields, for every coverpoint that the vectors meet, the bins that they fall into.

    Raises:
        CoverageError: what was observed gives other results than the instruction, so that its bins mean
            nothing.
    """
    if ins.modes is not None:
        yield from _samples_of_modes(ins, operands, d)
        return
    operands = ins.complete(operands)
    yield from operand_samples(ins, operands)
    yield from result_samples(ins, d)
    for seen in observe(ins, operands):
        if isinstance(seen, Answered):
            _hold(ins, operands, seen.d)
        yield from _seen_samples(ins, seen)


def _hold(ins: Instruction, operands: dict[str, Array], observed: Numbers) -> None:
    """Holds what was observed against the instruction."""
    codes = ins.dot(**{name: codes for name, codes in operands.items() if name not in ins.absent})
    wanted = decode(ins.formats["d"], codes[:, None])
    nan, finite = wanted.kind == Kind.NAN, wanted.kind == Kind.FINITE
    same = (observed.kind == wanted.kind) & ((observed.sign == wanted.sign) | nan)
    for name in ("significand", "lsb"):
        same &= np.asarray(getattr(observed, name) == getattr(wanted, name), bool) | ~finite
    if not same.all():
        row = int(np.flatnonzero(~same[:, 0])[0])
        shown = ", ".join(
            f"{name} {' '.join(map(hex, np.atleast_1d(array[row]).tolist()))}"
            for name, array in operands.items()
        )
        what = f"what is observed is not its result {int(codes[row]):#x}"
        raise CoverageError(
            f"{ins.name}: functional coverage has no figure for this unit: {what} for {shown}"
        )


def _stage_points(ins: Instruction, operation: Operation) -> list[Coverpoint]:
    points: list[Coverpoint] = []
    for step, registers in spans_of(ins, operation):
        name = stage_name(operation, step)
        if isinstance(step, Multiply | Fma):
            points += multiply_points(ins, name, step, registers)
        if isinstance(step, Align):
            points += align_points(ins, name, operation, step, registers)
        if isinstance(step, Sum | Additions | Fma):
            points += sum_points(name, step, registers)
        if isinstance(step, Round | Additions | Fma) or (isinstance(step, Multiply) and step.format):
            points += round_points(name, step, registers)
    return points


def _seen_samples(ins: Instruction, seen: Seen) -> Iterator[Sample]:
    if isinstance(seen, Answered):
        return
    name = stage_name(ins.program.operations[seen.operation], seen.step)
    if isinstance(seen, Multiplied):
        yield from multiply_samples(ins, name, seen)
    elif isinstance(seen, Aligned):
        yield from align_samples(ins, name, seen)
    elif isinstance(seen, Summed):
        yield from sum_samples(name, seen)
    elif isinstance(seen, Rounded):
        yield from round_samples(name, seen)
