"""Units of a few steps, and their one answer, which both models have to give."""

from __future__ import annotations

import struct

import numpy as np

from golden import yamlfile
from golden.catalog import unit_files
from golden.model.instruction import Instruction

HEAD = "unit: u\nshape: {{k: {k}}}\nformats: {{a: {a}, b: {b}, c: {c}, d: {d}}}\nsteps:\n"


def unit(
    *steps: str, k: int = 4, a: str = "f16", b: str = "f16", c: str = "f32", d: str = "f32"
) -> Instruction:
    text = HEAD.format(k=k, a=a, b=b, c=c, d=d) + "".join(f"- {step}\n" for step in steps)
    return unit_files.build_instruction(yamlfile.parse(text))


def both(ins: Instruction, a: list[int], b: list[int], c: int, **more: int) -> int:
    """The answer, which both models have to give."""
    operands = {
        "a": np.array(a, ins.formats["a"].dtype),
        "b": np.array(b, ins.formats["b"].dtype),
        "c": np.array(c, ins.formats["c"].dtype),
    }
    reference, core = ins.reference_dot(**operands), int(ins.dot(**operands))
    assert reference == core, f"reference {reference:#x}, core {core:#x}"
    return core


def bits(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])
