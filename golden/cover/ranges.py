"""What coverage knows of a unit's registers: the bounds of its steps (golden/program/bounds.py), and what c
can be where the unit keeps its accumulator."""

from __future__ import annotations

from dataclasses import dataclass

from golden.model.instruction import Instruction
from golden.program.bounds import Bounds, Walk, operands_of, seeds_of, walk
from golden.program.program import Operation


@dataclass(frozen=True)
class AccumulatorRange:
    """What a unit that keeps its accumulator can hold as c: numbers of `span`, codes of `classes`;
    golden/cover/points/accumulator.py finds them."""

    span: Bounds
    classes: frozenset[str]


def spans_of(ins: Instruction, operation: Operation, held: AccumulatorRange | None = None) -> Walk:
    """Every step of an operation with the bounds of all registers just before it.

    Args:
        held: what c can be, of a unit that keeps its accumulator; None: any code.
    """
    seeds = seeds_of(ins.program.operations, ins.formats, None if held is None else held.span)
    return walk(operation, operands_of(operation, ins.formats, seeds))
