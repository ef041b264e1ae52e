"""What a program is: the list of operations, each a list of primitive steps, that both models execute.

An instruction is a program of operations; an operation is one algorithm applied to a subset of k, with a seed
(its c), an output format and a register for its result; an algorithm is a list of primitive steps on
registers of exact numbers. golden/program/compiling.py resolves every parameter, so neither model ever looks
at YAML again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from golden.number.formats import Format

REGISTERS = ("a", "b", "c", "products", "groups", "dot", "total", "partial", "addends", "scales", "d")
MAX_K = 4096
MAX_FRACTION_BITS = 72
OWN_STEPS = "steps"
"""What stands for the algorithm's name where an operation's steps are written out."""


@dataclass(frozen=True)
class Step:
    """One primitive step with every parameter filled in. Fields that a step does not use keep their
    defaults."""

    op: str
    of: tuple[str, ...] = ()
    to: str = ""
    group: tuple[str, int] | None = None
    fraction_bits: tuple[tuple[str, int], ...] = ()
    rounding: str = "toward_zero"
    sticky: bool = False
    floor: int | None = None
    window: tuple[tuple[str, int], ...] = ()
    normalize: bool = False
    overflow_exponent: int | None = None
    operation: str = "product"
    format: Format | None = None
    flush: str = "none"
    exponent: int | None = None
    order: str = "exact"
    start: str = "c"
    nan: int | None = None
    nan_order: tuple[str, ...] = ()
    zero: str = "positive"
    overflow: str = "infinity"
    result_fraction_bits: int | None = None
    min_exponent: int | None = None
    # What a faulty datapath may do besides (docs/diagnosis.md); the defaults are the sound behaviour.
    zeros: str = "ignored"
    sticky_gap: int = 0
    shift_limit: int | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    width: int | None = None
    cancelled: str = "keeps_exponent"
    zero_times_infinity: str = "nan"
    opposite_infinities: str = "nan"
    subnormal_carry: str = "kept"


FAULTS = (
    "zeros",
    "sticky_gap",
    "shift_limit",
    "left_out",
    "width",
    "cancelled",
    "zero_times_infinity",
    "opposite_infinities",
    "subnormal_carry",
)
"""Fields of a step that only faulty datapaths set."""


@dataclass(frozen=True)
class Operation:
    """One algorithm applied to the elements `k_index` of the operands.

    `operand_format`: the format that a and b are converted to (exactly) before anything else, or None.
    `seed`: the register of the program that enters as c ("c", "zero" or an earlier result).
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
    def arithmetic(self) -> Operation:
        """All that decides results: the operation without the names that it is shown under."""
        return replace(self, algorithm=OWN_STEPS, parameters=())


@dataclass(frozen=True)
class Program:
    """The operations in order. The result of the last one is d."""

    operations: tuple[Operation, ...]

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Names of the algorithms used, in order of first use."""
        return tuple(dict.fromkeys(operation.algorithm for operation in self.operations))

    @property
    def bit_operation(self) -> str | None:
        """What two bits are combined with before they are counted ("and", "xor"); None where numbers are
        multiplied."""
        steps = (step for operation in self.operations for step in operation.steps if step.op == "multiply")
        return next((step.operation for step in steps if step.operation != "product"), None)


@dataclass(frozen=True)
class Operands:
    """The operand formats of an instruction and the number of products of one dot product (compressed K if
    sparse).

    `scales`: the formats of scale_a and scale_b, where there are scales.
    """

    a: Format
    b: Format
    c: Format
    d: Format
    k: int
    local_formats: dict[str, Format] = field(default_factory=dict)
    scales: dict[str, Format] = field(default_factory=dict)
