"""The datapath of one operation, drawn from its steps."""

from __future__ import annotations

from golden.docs.pictures import svg
from golden.instruction import Instruction

WIDTH = 760


def datapath(ins: Instruction, index: int = 0, name: str = "datapath") -> str:
    """Returns the block diagram of one operation of the program as SVG; name: prefix of its ids."""
    parts, y = [], 20.0
    for step in ins.program.operations[index].steps:
        parts += [svg.rect(20, y, 400, 30), svg.text(30, y + 20, step.op)]
        y += 50
    return svg.document(WIDTH, y, parts, name, f"Datapath of {ins.name}")
