"""Where the first wrong bit appears: the first step at which two units disagree on the same operands.

difference = first_difference(ins.trace(**operands), suspected.trace(**operands))
print(difference.sentence())
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from golden.explain.trace import Trace, describe, significand_text
from golden.model.reference import Event
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


def first_difference(expected: Trace, actual: Trace) -> Difference | None:
    """Compares two traces of the same operands step by step.

    Returns:
        None where no register differs, or where the two units do not run the same steps up
        to the first difference.
    """
    steps: dict[int, int] = {}
    for ours, theirs in zip_longest(expected.events, actual.events):
        if (
            ours is None
            or theirs is None
            or (ours.operation, ours.step.op) != (theirs.operation, theirs.step.op)
        ):
            return None
        steps[ours.operation] = steps.get(ours.operation, 0) + 1
        found = _in_registers(ours, theirs)
        if found is not None:
            register, index, pair = found
            return Difference(
                ours.operation, steps[ours.operation], ours.step.op, register, index, *map(_text, pair)
            )
        if ours.code is not None and theirs.code is not None and ours.code != theirs.code:
            codes = (f"{code:#x}" for code in (ours.code, theirs.code))
            return Difference(ours.operation, steps[ours.operation], ours.step.op, ours.step.to, 0, *codes)
    return None


def _in_registers(ours: Event, theirs: Event) -> tuple[str, int, tuple[Number, Number]] | None:
    for register, numbers in ours.written.items():
        others = theirs.written.get(register, ())
        for index, pair in enumerate(zip(numbers, others, strict=False)):
            if not _same(*pair):
                return register, index, pair
    return None


def _same(x: Number, y: Number) -> bool:
    if (x.kind, x.sign, x.payload) != (y.kind, y.sign, y.payload):
        return False
    return x.kind.name != "FINITE" or x.value == y.value


def _text(number: Number) -> str:
    digits = significand_text(number)
    return (
        f"{digits} * 2^{number.exponent}"
        if number.kind.name == "FINITE" and number.value
        else describe(number)
    )
