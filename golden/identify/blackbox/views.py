"""A sparse unit as the dense unit of the products that its metadata select."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from golden.instruction import Instruction
from golden.program.modes import mode_text
from golden.program.signature import Bits, Operands, Signature
from golden.unit import FunctionUnit, Unit, signature_of


def dense_view(unit: Unit) -> Unit:
    """The unit itself or, of a sparse one, the dense unit of K / 2 products that it is while the metadata
    select the first elements: the order of the sum and every rule of it are the same."""
    takes = signature_of(unit)
    if takes.pattern is None:
        return unit
    rest = takes.at_rest("metadata")
    metadata = np.full(takes.operand_shapes(matrices=False)["metadata"], rest, np.uint8)
    columns = takes.pattern.columns(metadata)

    def answer(a: Bits, b: Bits, c: Bits, **scales: Bits) -> Bits:
        spread = np.zeros((*b.shape[:-1], takes.k), b.dtype)
        spread[..., columns] = b
        return unit.dot(
            a, spread, c, metadata=np.broadcast_to(metadata, (*a.shape[:-1], *metadata.shape)), **scales
        )

    block = takes.scale_block
    return FunctionUnit(
        answer,
        takes.own_formats,
        takes.stored_k,
        takes.name,
        scale_block=None if block is None else block * takes.stored_k // takes.k,
    )


def mode_view(unit: Unit, code: int) -> FunctionUnit:
    """The unit in one mode."""
    takes = signature_of(unit)
    assert takes.modes is not None

    def answer(**operands: Bits) -> Bits:
        mode = np.full(len(operands["a"]), code, takes.code_format("mode").dtype)
        return unit.dot(**operands, mode=mode)

    said = mode_text(dict(takes.modes.codes())[code])
    return FunctionUnit.like(takes.of_mode(code), answer, f"{takes.name} ({said})")


def selected(takes: Signature, operands: Operands) -> Operands:
    """The operands (n, ...) of the dense unit: of b those that the metadata select."""
    if takes.pattern is None:
        return operands
    b = np.take_along_axis(operands["b"], takes.pattern.columns(operands["metadata"]), axis=-1)
    return {name: codes for name, codes in operands.items() if name != "metadata"} | {"b": b}


def keeping(found: Instruction, takes: Signature) -> Instruction:
    """What was found of single dot products as a unit that keeps its accumulator as the box does."""
    return replace(found, state=takes.state, load=takes.load, alone=takes.alone)


def as_taken(found: Instruction, takes: Signature) -> Instruction:
    """What was found of a dense view as the unit with the operands that the box takes."""
    if takes.pattern is None:
        return keeping(found, takes)
    return Instruction(
        found.name,
        takes.m,
        takes.n,
        takes.k,
        found.formats,
        pattern=takes.pattern,
        ordered_metadata=takes.ordered_metadata,
        scale_block=takes.scale_block,
        architecture=found.architecture,
        program=found.program,
        evidence=found.evidence,
        family=found.family,
        source=found.source,
    )
