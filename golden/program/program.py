"""What a program is: the list of operations, each a list of primitive steps, that both models execute.

An instruction is a program of operations; an operation is one algorithm applied to a subset of k, with a seed
(its c), an output format and a register for its result; an algorithm is a list of primitive steps on
registers of exact numbers. golden/program/compiling.py resolves every parameter, so neither model ever looks
at YAML again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from golden.number.formats import Format
from golden.number.frozen import hashed_once, replace
from golden.program.steps import FinalStep, Multiply, Round, Step

S = TypeVar("S", bound=Step)
OWN_STEPS = "steps"
"""What stands for the algorithm's name where an operation's steps are written out."""


@hashed_once
@dataclass(frozen=True)
class Operation:
    """One algorithm applied to the elements `k_index` of the operands.

    `operand_format`: the format that a and b are converted to (exactly) before anything else, or None.
    `seed`: the register of the program that enters as c ("c", "zero" or an earlier result), or "none".
    """

    algorithm: str
    steps: tuple[Step, ...]
    k_index: tuple[int, ...]
    seed: str
    addends: tuple[str, ...]
    operand_format: Format | None
    seed_format: Format
    out_format: Format
    to: str
    parameters: tuple[tuple[str, Any], ...] = ()

    def with_steps(self, steps: Iterable[Step]) -> Operation:
        """The operation with these steps. Where they are others, its algorithm and parameters no longer
        describe it.

        Nothing computes by the two; what is shown of an operation is.
        """
        new = tuple(steps)
        return self if new == self.steps else replace(self, steps=new, algorithm=OWN_STEPS, parameters=())

    @property
    def formats(self) -> tuple[Format | None, Format, Format]:
        """Of a and b where they are converted, of the seed, and of the result."""
        return self.operand_format, self.seed_format, self.out_format

    @property
    def final(self) -> FinalStep:
        """The step that makes the result; the loader takes no other at the end."""
        step = self.steps[-1]
        assert isinstance(step, FinalStep)
        return step

    @property
    def result_fraction_bits(self) -> int:
        """Fraction bits of the result: fewer than its format has for E8M13 and the like."""
        kept = self.final.result_fraction_bits if isinstance(self.final, Round) else None
        return self.out_format.fraction_bits if kept is None else kept

    def steps_of(self, kind: type[S]) -> list[S]:
        """The steps of one kind, in order."""
        return [step for step in self.steps if isinstance(step, kind)]

    @cached_property
    def arithmetic(self) -> Operation:
        """All that decides results: the operation without the names that it is shown under."""
        return replace(self, algorithm=OWN_STEPS, parameters=())


@dataclass(frozen=True)
class Program:
    """The operations in order. The result of the last one is d."""

    operations: tuple[Operation, ...]

    def steps_of(self, kind: type[S]) -> list[S]:
        """The steps of one kind of all operations, in order."""
        return [step for operation in self.operations for step in operation.steps_of(kind)]

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Names of the algorithms used, in order of first use."""
        return tuple(dict.fromkeys(operation.algorithm for operation in self.operations))

    @property
    def bit_operation(self) -> str | None:
        """What two bits are combined with before they are counted ("and", "xor"); None where numbers are
        multiplied."""
        kinds = (step.operation for step in self.steps_of(Multiply))
        return next((kind for kind in kinds if kind != "product"), None)


ONE = Format("none", True, 8, signed=False, has_zero=False)
"""Stands for the format of b in a unit without b: its one code, 0, is the number 1."""
NOTHING = Format("none", False, 8, signed=False, integer_bits=0)
"""Stands for the format of c in a unit without c: its one code is 0."""
ABSENT = {"b": ONE, "c": NOTHING}
"""The operands that a unit may lack, with what stands for their formats."""
NO_SEED = "none"
"""The seed of an operation that has no c."""


@dataclass(frozen=True)
class OperandFormats:
    """The operand formats of an instruction and the number of products of one dot product (compressed K if
    sparse).

    `scales`: the formats of scale_a and scale_b, where there are scales. b is `ONE` and c `NOTHING` in units
    without them; no step reads either. `flags`: whether there are status flags. `scale_block`: how many of
    the products share a scale; None where nobody knows.
    """

    a: Format
    b: Format
    c: Format
    d: Format
    k: int
    local_formats: dict[str, Format] = field(default_factory=dict)
    scales: dict[str, Format] = field(default_factory=dict)
    flags: bool = False
    scale_block: int | None = None
