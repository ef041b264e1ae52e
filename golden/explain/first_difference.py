"""Where the first wrong bit appears: the first step at which two units disagree on the same operands.

    difference = first_difference(ins, suspected, operands)
    print(difference.sentence())

Both run on the C core, which shows their registers (golden/model/registers.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.explain.trace import describe, significand_text
from golden.model.instruction import Instruction
from golden.model.registers import Block, Numbers, Registers, SeenStep
from golden.number.formats import Number


@dataclass(frozen=True)
class Difference:
    """The first difference: step `step` (from 1) of operation `operation` (from 0),
    element `index` of `register`.

    `expected` and `actual` are the two numbers in words; None where only one of the units has the step.
    """

    operation: int
    step: int
    op: str
    register: str
    index: int
    expected: str
    actual: str

    def sentence(self) -> str:
        """One sentence for the reader."""
        where = f"step {self.step} ({self.op})" + (
            f" of operation {self.operation}" if self.operation else ""
        )
        return f"{where}: {self.register}[{self.index}] is {self.actual}, expected {self.expected}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**vars(self), "sentence": self.sentence()}


def first_difference(
    expected: Instruction, actual: Instruction, operands: Mapping[str, npt.ArrayLike]
) -> Difference | None:
    """Compares two units step by step on one dot product, operands as `dot` takes them.

    Returns:
        None where no register differs, or where the two units do not run the same steps up
        to the first difference.
    """
    ours, theirs = _observed(expected, operands), _observed(actual, operands)
    for x, y in zip(ours.steps(), theirs.steps(), strict=False):
        if (x.operation, x.step.op) != (y.operation, y.step.op):
            return None
        if _ran(x) != _ran(y):  # special values ended one of the two
            return _in_results(ours, theirs, x.operation, x.index)
        found = _in_registers(x, y)
        if found is not None:
            register, index, pair = found
            return Difference(x.operation, x.index + 1, x.step.op, register, index, *map(_text, pair))
        if x.index + 1 == len(expected.program.operations[x.operation].steps):
            difference = _in_results(ours, theirs, x.operation, x.index + 1)
            if difference is not None:
                return difference
    return None


def _observed(unit: Instruction, operands: Mapping[str, npt.ArrayLike]) -> Block:
    one, own = unit.in_mode_of({name: np.asarray(codes) for name, codes in operands.items()})
    (block,) = Registers(one.engine_of_one).blocks({name: codes[None] for name, codes in own.items()})
    return block


def _ran(seen: SeenStep) -> bool:
    """Whether the operation had not ended before the step."""
    rounded = [] if seen.roundings is None else [seen.roundings.exact]
    made: list[Numbers] = [*seen.written.values(), *rounded]
    return not made or bool(made[0].ran.any())


def _in_registers(ours: SeenStep, theirs: SeenStep) -> tuple[str, int, tuple[Number, Number]] | None:
    for register, numbers in ours.written.items():
        others = theirs.written.get(register)
        for index in range(min(numbers.count, others.count) if others is not None else 0):
            assert others is not None
            x, y = numbers.number(0, index), others.number(0, index)
            if x is not None and y is not None and not _same(x, y):
                return register, index, (x, y)
    return None


def _in_results(ours: Block, theirs: Block, operation: int, step: int) -> Difference | None:
    """The results of an operation, that the step (from 1) makes."""
    codes = [int(block.result(operation).payload[0, 0]) for block in (ours, theirs)]
    made = ours.registers.engine.program.operations[operation].steps[step - 1]
    if codes[0] == codes[1]:
        return None
    return Difference(operation, step, made.op, made.to or "d", 0, *(f"{code:#x}" for code in codes))


def _same(x: Number, y: Number) -> bool:
    if (x.kind, x.sign, x.payload) != (y.kind, y.sign, y.payload):
        return False
    return x.kind.name != "FINITE" or x.value == y.value


def _text(number: Number) -> str:
    digits = significand_text(number)
    return (
        f"{digits[0]}0b{digits[1:]} * 2^{number.exponent}"
        if number.kind.name == "FINITE" and number.value
        else describe(number)
    )
