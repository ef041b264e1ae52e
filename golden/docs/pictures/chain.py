"""The operations of a program and how they hand over."""

from __future__ import annotations

from golden.docs.pictures import svg
from golden.instruction import Instruction


def program(ins: Instruction, name: str = "program") -> str:
    """Returns the operations of the program and their wires as SVG; name: prefix of its ids."""
    parts, y = [], 20.0
    for operation in ins.program.operations[:8]:
        parts += [svg.rect(20, y, 400, 30), svg.text(30, y + 20, f"{operation.algorithm}: {operation.seed} to {operation.to}")]
        y += 50
    return svg.document(760, y, parts, name, f"Program of {ins.name}")
