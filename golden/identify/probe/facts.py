"""Measurements of one unit and the values in its spec, shared by all properties of the comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from golden.catalog.relatives import arithmetic
from golden.identify.blackbox.box import dense_view
from golden.identify.blackbox.sum_order import tree_of_unit
from golden.identify.probe import probes
from golden.identify.probe.probes import Probe, Shot
from golden.identify.sample import picked
from golden.kernels.sum_tree import Node
from golden.model.instruction import Instruction
from golden.program.program import Operation, S
from golden.program.signature import Bits
from golden.program.steps import FinalStep
from golden.unit import FunctionUnit, Unit


@dataclass(frozen=True)
class Finding:
    """A property of one unit: the text of its cell, the dot products that show it, and how to read them.
    declared: the spec has a value although no dot product shows it."""

    text: str
    shots: tuple[Shot, ...] = ()
    reading: str = ""
    declared: bool = False


def literally(ins: Instruction) -> FunctionUnit:
    """An instruction as the reference model computes it, which reads like its source."""

    def answer(**operands: Bits) -> Bits:
        rows = range(len(operands["a"]))
        found = [ins.reference_dot(**picked(operands, i)) for i in rows]
        return np.array(found, ins.formats["d"].dtype)

    return FunctionUnit.like(ins, answer)


@dataclass
class Facts:
    """Measurements of one unit that several properties use; each is made when it is first needed.

    chip: the unit that answers, if it is not the model: the instruction on a chip.
    """

    ins: Instruction
    chip: Unit | None = None
    probe: Probe = field(init=False)
    _done: dict[tuple[Any, ...], tuple[Any, tuple[Shot, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.probe = Probe(dense_view(self.chip or literally(self.ins)))

    @property
    def operation(self) -> Operation:
        """The first operation of the unit's program, for what the spec says."""
        return self.ins.program.operations[0]

    @property
    def algorithm(self) -> str:
        """The algorithm of the first operation."""
        return self.operation.algorithm

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters of the first operation as the YAML gives them."""
        return dict(self.operation.parameters)

    def steps(self, kind: type[S]) -> list[S]:
        """The steps of one kind of the first operation."""
        return self.operation.steps_of(kind)

    def steps_anywhere(self, kind: type[S]) -> list[S]:
        """The steps of one kind of all operations."""
        return [step for operation in self.ins.program.operations for step in operation.steps_of(kind)]

    @property
    def last(self) -> FinalStep:
        """The step that makes the result."""
        return self.ins.program.operations[-1].final

    @property
    def kept(self) -> tuple[int | None, tuple[Shot, ...]]:
        """F with its shots."""
        return self.measured(probes.kept_bits)

    @property
    def bits(self) -> tuple[int, tuple[Shot, ...]]:
        """Fraction bits of results."""
        return self.measured(probes.result_bits)

    @property
    def slices(self) -> tuple[list[tuple[int, ...]], tuple[Shot, ...]]:
        """Which slots are one step."""
        return self.measured(probes.slices, self.bits[0])

    @property
    def rounding(self) -> tuple[str, tuple[Shot, ...]]:
        """The rounding of results."""
        return self.measured(probes.rounding, self.bits[0])

    @cached_property
    def tree(self) -> Node | None:
        """The tree of the sum, found as that of a black box; of several scale blocks, that of their sums."""
        return tree_of_unit(self.chip or self.ins, self.probe.slots if self.probe.scaled_apart else None)

    def measured(self, find: Callable[..., Any], *arguments: Any) -> tuple[Any, tuple[Shot, ...]]:
        """Returns what a probe finds with the shots that it fires; a probe with the same arguments runs
        once."""
        key = (find, *arguments)
        if key not in self._done:
            self.probe.shots = []
            value = find(self.probe, *arguments)
            self._done[key] = value, tuple(self.probe.shots)
        return self._done[key]


_facts: dict[tuple[object, ...], Facts] = {}


def facts(ins: Instruction) -> Facts:
    """Returns the measurements of an instruction; instructions with the same program and formats share
    them."""
    parameters = str([operation.parameters for operation in ins.program.operations])
    key = (arithmetic(ins), parameters, tuple(ins.formats.items()), ins.scale_block)
    if key not in _facts:
        _facts[key] = Facts(ins)
    return _facts[key]


def gives_floats(known: Facts) -> bool:
    """Whether results are floating-point numbers: integers have none of these properties."""
    return known.ins.formats["d"].is_float
