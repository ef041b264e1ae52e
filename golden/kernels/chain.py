"""Chains of an instruction over K, many steps a call of the C core.

Each step takes the result before as its c. Several steps make one longer program, with which the core decodes
operands once and keeps the sums in registers; the bits equal one step after the other.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy.typing as npt

from golden.model.engine import Engine
from golden.model.instruction import Instruction
from golden.program.program import NO_SEED, Operation, Program
from golden.program.signature import Signature
from golden.program.steps import Fma

Bits = npt.NDArray[Any]


@lru_cache(maxsize=256)
def longest(instruction: Instruction) -> int:
    """Steps that one call may take: a power of two; 1 where longer programs would lose the fast form."""
    own = instruction.formats
    if own["c"] != own["d"] or instruction.scale_block is not None or not _engine(instruction, 1).fast:
        return 1
    if _is_chain(instruction):
        # Elements of K in one operation of the fast form (golden.model.kernels).
        most_chained = 256
        most = most_chained // instruction.stored_k
    else:
        # Operations of a program in the core's fast form (MG_TILE_OPERATIONS).
        most_operations = 16
        most = most_operations // len(instruction.program.operations)
    steps = 1 << max(most, 1).bit_length() - 1
    while steps > 1 and not _engine(instruction, steps).fast:
        steps //= 2
    return steps


def run(instruction: Instruction, steps: int, operands: dict[str, Bits], m: int, n: int) -> Bits:
    """D (..., m, n) of `steps` (a power of two) steps over checked operands: a (..., m, steps * k), b
    (..., steps * k, n), c (..., m, n) and, where the unit has them, metadata and scales."""
    return _engine(instruction, steps).tiles(operands, m, n)


def _is_chain(instruction: Instruction) -> bool:
    operations = instruction.program.operations
    return len(operations) == 1 and isinstance(operations[0].steps[0], Fma)


@lru_cache(maxsize=256)
def _engine(instruction: Instruction, steps: int) -> Engine:
    signature = Signature(
        instruction.name,
        1,
        1,
        instruction.k * steps,
        instruction.formats,
        instruction.pattern,
        instruction.ordered_metadata,
        instruction.scale_block,
    )
    return Engine(_longer(instruction, steps), signature)


def _longer(instruction: Instruction, steps: int) -> Program:
    """The program of `steps` steps over `steps` times k."""
    program, stored = instruction.program, instruction.stored_k
    if steps == 1:
        return program
    if _is_chain(instruction):  # the core runs one chain of fused multiply-adds as one operation
        (only,) = program.operations
        index = tuple(k + step * stored for step in range(steps) for k in only.k_index)
        return Program((replace(only, k_index=index),))
    return Program(
        tuple(
            _moved(one, step, stored, program.operations[-1].to)
            for step in range(steps)
            for one in program.operations
        )
    )


def _moved(operation: Operation, step: int, stored: int, result: str) -> Operation:
    """An operation as that of a later step: its k there, and c the result of the step before."""

    def register(name: str) -> str:
        if name in ("zero", NO_SEED):
            return name
        if name == "c":
            return "c" if step == 0 else f"{result}.{step - 1}"
        return f"{name}.{step}"

    return replace(
        operation,
        k_index=tuple(k + step * stored for k in operation.k_index),
        seed=register(operation.seed),
        addends=tuple(map(register, operation.addends)),
        to=register(operation.to),
    )
