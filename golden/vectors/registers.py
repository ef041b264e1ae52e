"""Level "fragment": the operands of whole matrices as the registers of the lanes hold them.

A record is one execution of the instruction: every operand as (lanes, registers), lane by lane, registers of
32 bits (64 where an element has 64). An instruction with several blocks takes that many tiles a record.
Selectors (sparsity selector, byte and thread ids of scales) are 0. The rules of the layouts are in
spec/layouts; see golden/registers/fragments.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import OperandError
from golden.model.instruction import Instruction
from golden.registers.layouts import Layout
from golden.vectors.vectorset import VectorSet
from golden.vectors.word import Field, WordLayout

Bits = npt.NDArray[Any]


def layouts(ins: Instruction) -> dict[str, Layout]:
    """Register layouts of all operands of `ins(...)` and of d, by name.

    Raises:
        OperandError: an operand does not live in registers (B of wgmma, tcgen05, custom units).
    """
    fragments = ins.fragments
    found = {}
    for name in (*ins.operand_shapes(True), "d"):
        layout = None if fragments is None else getattr(fragments, name)
        if layout is None:
            which = (
                "has no register fragments"
                if fragments is None
                else f"does not hold operand {name} in registers"
            )
            raise OperandError(f"level 'fragment': {ins.name} {which}; use level 'tile'")
        found[name] = layout
    return found


def register_word(ins: Instruction) -> WordLayout:
    """The word of a record: the fields of a tile's word, each its registers with lane 0,
    register 0 lowest."""
    fields: list[Field] = []
    lsb = 0
    for name, layout in reversed(layouts(ins).items()):
        start = 0 if name == "d" else lsb
        elements = layout.lanes * layout.registers
        fields.append(
            Field(
                name,
                elements,
                layout.register_bits,
                start,
                (layout.lanes, layout.registers),
                layout.register_dtype,
            )
        )
        lsb = start + fields[-1].width if name != "d" else 0
    return WordLayout("fragment", tuple(reversed(fields)))


def to_registers(vectors: VectorSet) -> dict[str, Bits]:
    """Operands and d of tiles as registers (records, lanes, registers), by name."""
    values = vectors.operands | {"d": vectors.d}
    return {
        name: layout.pack(values[name].reshape(-1, *layout.matrix_shape))
        for name, layout in layouts(vectors.instruction).items()
    }


def from_registers(ins: Instruction, registers: dict[str, Bits]) -> dict[str, Bits]:
    """The inverse of `to_registers`: matrices (tiles, rows, columns) by name."""
    return {
        name: layout.unpack(np.ascontiguousarray(registers[name])).reshape(-1, layout.rows, layout.cols)
        for name, layout in layouts(ins).items()
    }
