"""The coverpoints of an instruction: their bins, which of them can be reached at all, and how vectors fall
into them.

    for point in sampler(ins).points:
        print(point.part, point.name, point.labels)

A coverpoint is a named list of bins. Whether a bin can be reached follows from the formats and the program
(golden/program/bounds.py); each `..._points` function of the modules states its rules. Coverpoints of a
datapath are named after its steps; equal operations of a chain share them, except for `largest exponent of
operation i`.

`point` says what a coverpoint is, `classes` sorts the codes of a format. `operands`, `multiply_align`,
`sum_round`, `results`, `flags` and `accumulator` hold the coverpoints of these parts of a unit, each with its
bins and its counting; `accumulator` also finds what can be c where the unit keeps it. What is counted are the
numbers that the C core itself read, made and wrote (golden/model/registers.py); a dot product whose special
values end an operation falls into no bin of the steps behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import assert_never

import numpy as np

from golden.cover.points.accumulator import accumulator_range, sequence_points, sequence_samples
from golden.cover.points.flags import flag_points, flag_samples
from golden.cover.points.multiply_align import (
    align_points,
    align_samples,
    multiply_points,
    multiply_samples,
    of_slice,
    slice_points,
)
from golden.cover.points.operands import operand_points, operand_samples
from golden.cover.points.point import Array, Coverpoint, Sample, stage_name, united
from golden.cover.points.results import result_points, result_samples
from golden.cover.points.sum_round import round_points, round_samples, sum_points, sum_samples
from golden.cover.ranges import AccumulatorRange, spans_of
from golden.model.instruction import Instruction
from golden.model.registers import Registers, SeenStep
from golden.program.bounds import Bounds, addends
from golden.program.program import Operation
from golden.program.steps import (
    Additions,
    Align,
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
    Sum,
)

__all__ = ["Coverpoint", "sampler"]


def sampler(ins: Instruction) -> Sampler | ModeSampler | SequenceSampler:
    """The coverpoints of an instruction, and how vectors fall into them."""
    if ins.state:
        return SequenceSampler(ins)
    return Sampler(ins) if ins.modes is None else ModeSampler(ins)


class SequenceSampler:
    """A unit that keeps its accumulator: how its dot products follow one another, and the coverpoints of each
    of them alone."""

    def __init__(self, ins: Instruction) -> None:
        one = self.instruction = ins.stateless
        held = None if ins.load else accumulator_range(list(one.mode_units.values()) or [one])
        self._of_one = Sampler(one, held) if one.modes is None else ModeSampler(one, held)
        self.points = (*sequence_points(one, held, ins.load), *self._of_one.points)

    @property
    def block_rows(self) -> int:
        """As Sampler.block_rows."""
        return self._of_one.block_rows

    def samples(self, operands: dict[str, Array], d: Array) -> Iterator[Sample]:
        """As Sampler.samples."""
        yield from self._of_one.samples(operands, d)

    def sequence_samples(self, operands: dict[str, Array], d: Array) -> Iterator[Sample]:
        """The bins of the dot products (time,) that follow one another, with these operands `clear` and
        `load`."""
        yield from sequence_samples(self.instruction, operands["clear"], d, operands.get("load"))


class ModeSampler:
    """A unit with modes: whether every mode came, and each mode's own coverpoints."""

    def __init__(self, ins: Instruction, held: AccumulatorRange | None = None) -> None:
        assert ins.modes is not None
        self.instruction = ins
        self._texts = ins.modes.texts()
        self._of_mode = {code: Sampler(unit, held) for code, unit in ins.mode_units.items()}
        points = [Coverpoint("operands", "mode", dict.fromkeys(self._texts.values(), True))]
        for code, own in self._of_mode.items():
            points += [replace(point, name=f"{self._texts[code]}: {point.name}") for point in own.points]
        self.points = tuple(points)

    @property
    def block_rows(self) -> int:
        """As Sampler.block_rows."""
        return min(own.block_rows for own in self._of_mode.values())

    def samples(self, operands: dict[str, Array], d: Array) -> Iterator[Sample]:
        """As Sampler.samples."""
        yield "mode", np.searchsorted(np.array(list(self._of_mode)), operands["mode"])
        codes = {id(unit): code for code, unit in self.instruction.mode_units.items()}
        for unit, own, index in self.instruction.by_mode(operands):
            code = codes[id(unit)]
            for name, bins in self._of_mode[code].samples(own, d[index]):
                yield f"{self._texts[code]}: {name}", bins


class Sampler:
    """A unit with one program.

    Attributes:
        points: all coverpoints (vectors are dot products), in order of the datapath.
    """

    def __init__(self, ins: Instruction, held: AccumulatorRange | None = None) -> None:
        """`held`: what c can be, of a unit that keeps its accumulator; None: any code."""
        self.instruction = ins
        self._registers = Registers(ins.engine_of_one)
        self._of_step: dict[tuple[int, int], frozenset[str]] = {}
        points = [_in_own_words(ins, point) for point in operand_points(ins, held)] + result_points(ins, held)
        points += flag_points(ins, held) if ins.status else []
        for number, operation in enumerate(ins.program.operations):
            if len(ins.program.operations) > 1:
                points += slice_points(ins, number, operation, held)
            for index, own in enumerate(_stage_points(ins, operation, held)):
                self._of_step[number, index] = frozenset(point.name for point in own)
                points = united(points, own)
        self.points = tuple(point for point in points if not _about_nothing(ins, point))

    @property
    def block_rows(self) -> int:
        """Vectors whose samples are of all of them: more come in parts."""
        return self._registers.block_rows

    def samples(self, operands: dict[str, Array], d: Array) -> Iterator[Sample]:
        """Yields, for every coverpoint that the vectors meet, the bins that they fall into."""
        ins = self.instruction
        if ins.status:
            yield from flag_samples(ins, ins.answers(operands)["flags"])
        operands = ins.complete(operands)
        yield from ((_own_words(ins, name), bins) for name, bins in operand_samples(ins, operands))
        yield from result_samples(ins, d)
        for block in self._registers.blocks(operands):
            for seen in block.steps():
                names = self._of_step[seen.operation, seen.index] | {of_slice(seen.operation)}
                yield from (sample for sample in _step_samples(ins, seen) if sample[0] in names)


def _in_own_words(ins: Instruction, point: Coverpoint) -> Coverpoint:
    """A coverpoint of the operands with the words of the unit, which may have no products."""
    bins = {_own_words(ins, label): reachable for label, reachable in point.bins.items()}
    return replace(point, name=_own_words(ins, point.name), bins=bins)


def _own_words(ins: Instruction, text: str) -> str:
    """A text about products; of a unit without b it is about the elements of a."""
    if "b" not in ins.absent:
        return text
    one, several = ("a", "a") if ins.stored_k == 1 else ("element of a", "elements of a")
    for word, instead in (("products", several), ("product", one)):
        text = text.replace(word, instead)
    return text


def _about_nothing(ins: Instruction, point: Coverpoint) -> bool:
    """Whether a coverpoint looks at an operand that the unit does not have."""
    affected = {"b": ("class of b", "class of a, class of b", "signs of a and b"), "c": ("class of c",)}
    return any(point.name.startswith(affected[name]) for name in ins.absent)


def _stage_points(
    ins: Instruction, operation: Operation, held: AccumulatorRange | None
) -> Iterator[list[Coverpoint]]:
    """The coverpoints of each step."""
    summed: tuple[str, Sequence[Bounds]] = ("", ())  # by the step before: the register, and its terms
    for step, registers in spans_of(ins, operation, held):
        name = stage_name(operation, step)
        terms = summed[1] if isinstance(step, Round) and step.of == (summed[0],) else ()
        summed = ("", ())
        match step:
            case Multiply():
                rounded = round_points(name, step, step.format, registers) if step.format else []
                yield multiply_points(ins, name, step, registers) + rounded
            case Fma():
                points = multiply_points(ins, name, step, registers) + sum_points(name, step, registers)
                yield points + round_points(name, step, step.format, registers)
            case Align():
                yield align_points(ins, name, operation, step, registers)
            case Sum():
                yield sum_points(name, step, registers)
                if step.complement == "none" and step.width is None:
                    summed = (step.to, addends(step, registers))
            case Additions():
                two = addends(step, registers)
                points = round_points(name, step, step.format, registers, two)
                yield sum_points(name, step, registers) + points
            case Round():
                yield round_points(name, step, step.format, registers, terms)
            case Flush() | HiddenBit() | Normalize() | Part() | Replace() | Scale() | SpecialValues():
                yield []
            case _:
                assert_never(step)


def _step_samples(ins: Instruction, seen: SeenStep) -> Iterator[Sample]:
    step, inside = seen.step, seen.roundings
    name = stage_name(ins.program.operations[seen.operation], step)
    match step:
        case Multiply() | Fma():
            yield from multiply_samples(ins, name, seen)
            if isinstance(step, Fma):
                yield from sum_samples(name, seen)
            if inside is not None and step.format is not None:
                yield from round_samples(name, step, step.format, inside)
        case Align():
            yield from align_samples(ins, name, seen)
        case Sum():
            yield from sum_samples(name, seen)
        case Additions():
            yield from sum_samples(name, seen)
            if inside is not None:
                yield from round_samples(name, step, step.format, inside)
        case Round():
            if inside is not None:
                yield from round_samples(name, step, step.format, inside)
        case Flush() | HiddenBit() | Normalize() | Part() | Replace() | Scale() | SpecialValues():
            pass
        case _:
            assert_never(step)
