"""Register fragments: the matrix with the lane of every element, and the lanes with the elements of every register."""

from __future__ import annotations

from golden.docs.pictures import svg
from golden.instruction import Instruction

OPERANDS = ("a", "b", "c", "d", "metadata", "scale_a", "scale_b")


def operands(ins: Instruction) -> tuple[str, ...]:
    """The operands whose register layout is known; `matrix` and `lanes` draw exactly these."""
    layouts = ins.fragments
    return tuple(name for name in OPERANDS if getattr(layouts, name, None) is not None)


def matrix(ins: Instruction, operand: str, name: str = "matrix", register_view: bool = False) -> str:
    """Returns the matrix of an operand, every element labelled lane:register(:part), as SVG; name: prefix of its ids."""
    parts = [svg.text(20, 30, f"{operand}")]
    return svg.document(760, 60, parts, name, f"Fragment {operand} of {ins.name}")


def lanes(ins: Instruction, operand: str, name: str = "lanes") -> str:
    """Returns lanes as rows and registers as columns with the elements that each holds, as SVG; name: prefix of its ids."""
    parts = [svg.text(20, 30, f"{operand}")]
    return svg.document(760, 60, parts, name, f"Registers of {operand} of {ins.name}")
