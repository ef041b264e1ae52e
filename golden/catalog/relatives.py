"""Catalogued instructions that take the operands of another one: what else a unit may be.

An instruction of a smaller K counts as a chain of itself, as software would run it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from golden.catalog import architectures
from golden.catalog.families import fill, shape_of
from golden.catalog.lookup import instruction
from golden.model.instruction import Instruction
from golden.number.formats import get_format
from golden.program.program import NO_SEED, Operation, Program


@dataclass(frozen=True)
class Relative:
    """Another arithmetic with the operands of an instruction.

    `instruction` is the catalogued one, `stretched` the same over the wanted K, `shared_by` other
    architectures that have it.
    """

    instruction: Instruction
    stretched: Instruction
    shared_by: tuple[str, ...] = ()

    @property
    def links(self) -> int:
        """How many of the instruction make one of `stretched`."""
        return self.stretched.k // self.instruction.k


def relatives(ins: Instruction, same: bool = False) -> list[Relative]:
    """Returns every different arithmetic in the catalogue with the operand formats, sparsity and scale blocks
    of `ins`; its own only with `same`.

    Of the instructions that share one, the one with the same K stands for all, and the one of the same name
    first.
    """
    found: dict[tuple[object, ...], list[Relative]] = {}
    for architecture in architectures.architectures():
        for name in _candidates(architecture, ins):
            other = instruction(architecture, name)
            stretched = _stretched(other, ins)
            if stretched is not None:
                found.setdefault(arithmetic(stretched), []).append(Relative(other, stretched))
    if not same:
        found.pop(arithmetic(ins), None)
    return [_first(same, ins) for same in found.values()]


def _first(same: list[Relative], ins: Instruction) -> Relative:
    best = min(same, key=lambda one: (one.links, one.instruction.name != ins.name))
    others = dict.fromkeys(one.instruction.architecture for one in same)
    return replace(best, shared_by=tuple(name for name in others if name != best.instruction.architecture))


def arithmetic(ins: Instruction) -> tuple[object, ...]:
    """What decides an instruction's results, but for the formats of its operands."""
    return tuple(operation.arithmetic for operation in ins.program.operations)


def _candidates(architecture: str, ins: Instruction) -> list[str]:
    """Names whose formats and sparsity fit, found in the catalogue without building the instructions."""
    wanted = {operand: fmt.name for operand, fmt in ins.formats.items()}
    known = _shapes(architecture, ins.sparse, frozenset(wanted))
    return [name for name, (found, k) in known.items() if found == wanted and k <= ins.k and ins.k % k == 0]


@cache
def _shapes(
    architecture: str, sparse: bool, operands: frozenset[str]
) -> dict[str, tuple[dict[str, str], int]]:
    """The formats and the K of each of an architecture's instructions that has these operands."""
    known = {}
    for name, (entry, variables) in architectures.get_architecture(architecture).names().items():
        family = entry.family
        if family.sparse == sparse and operands == set(family.formats):
            found = {
                operand: get_format(fill(text, variables)).name for operand, text in family.formats.items()
            }
            known[name] = (found, shape_of(variables, entry.section)[2])
    return known


def _stretched(other: Instruction, ins: Instruction) -> Instruction | None:
    """`other` over the K of `ins`: itself, or a chain of it, each from the result before."""
    if other.pattern != ins.pattern or other.scale_block != ins.scale_block or other.formats != ins.formats:
        return None
    other = replace(other, ordered_metadata=ins.ordered_metadata)
    if other.k == ins.k:
        return other
    if other.formats["c"] != other.formats["d"]:
        return None
    operations: list[Operation] = []
    for part in range(ins.k // other.k):
        before = f"part{part - 1}.d" if part else "c"
        for operation in other.program.operations:
            operations.append(_moved(operation, part, other.stored_k, before))
    operations[-1] = replace(operations[-1], to="d")
    return replace(other, k=ins.k, program=Program(tuple(operations)))


def _moved(operation: Operation, part: int, size: int, before: str) -> Operation:
    """One operation of link `part` of the chain: its own k, its own registers, c taken from the link
    before."""

    def named(register: str) -> str:
        if register in ("zero", NO_SEED):
            return register
        return before if register == "c" else f"part{part}.{register}"

    return replace(
        operation,
        k_index=tuple(k + part * size for k in operation.k_index),
        seed=named(operation.seed),
        addends=tuple(named(name) for name in operation.addends),
        to=f"part{part}.{operation.to}",
    )
