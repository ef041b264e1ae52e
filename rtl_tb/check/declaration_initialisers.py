"""Signals that get their value in their declaration.

`logic [7:0] ea = a[22:15];` runs once, when simulation starts, so its signal depends on no operand. A net
that is declared so follows its value; a variable does not, whatever hardware was intended.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from golden.errors import bits_text, listed
from rtl_tb.dut.description import Dut
from rtl_tb.dut.slang import elaborated
from rtl_tb.engines.builds import design_of
from rtl_tb.errors import RtlError
from rtl_tb.runs.verdict import Verdict


def declaration_initialisers(verdict: Verdict, dut: Dut) -> list[str]:
    """A sentence about variables of a unit's text that take the value of another signal once, and about bits
    of the result that never change; nothing if there are none, or slang cannot decide."""
    if dut.vhdl is not None or dut.netlist is not None or importlib.util.find_spec("pyslang") is None:
        return []
    try:
        found = _declarations(dut)
    except RtlError:
        return []
    if not found:
        return []
    # Declarations that a sentence names.
    shown = 6
    said = listed([f"{place}: `{text}`" for place, text in found], shown, "; ")
    return [
        f"declared with a value that is computed once, when simulation starts, and not again: {said}; "
        f"write a net (`wire`) or an assignment of its own, in a block `automatic`{_constant_bits(verdict)}"
    ]


def _declarations(dut: Dut) -> list[tuple[str, str]]:
    """("file:line", text) of each variable with the lifetime of the unit that starts as a signal's value.

    Raises:
        ElaborationError: slang cannot read the design.
    """
    compilation, _ = elaborated(design_of(dut))
    ast, manager = importlib.import_module("pyslang.ast"), compilation.sourceManager
    found: dict[tuple[str, str], None] = {}

    def reads_signal(value: Any) -> bool:
        read: list[Any] = []

        def note(node: Any) -> None:
            if isinstance(node, ast.NamedValueExpression):
                read.append(node.symbol)

        value.visit(note)
        return any(symbol.kind.name in ("Variable", "Net") for symbol in read)

    def look(node: Any) -> None:
        if not isinstance(node, ast.VariableSymbol) or node.lifetime.name != "Static":
            return
        if node.initializer is None or not reads_signal(node.initializer):
            return
        file = Path(manager.getFileName(node.location)).name
        text = " ".join(str(node.syntax.parent if node.syntax is not None else node.name).split())
        found.setdefault((f"{file}:{manager.getLineNumber(node.location)}", text))

    compilation.getRoot().visit(look)
    return list(found)


def _constant_bits(verdict: Verdict) -> str:
    """Bits of the results that are the same for all operands, though they should not be."""
    known = ~(verdict.missing | verdict.unknown)
    count = len(known)
    came, right = (
        codes.reshape(count, -1)[known] for codes in (verdict.outcome.results["d"], verdict.vectors.d)
    )
    if not came.size:
        return ""
    stuck = [
        bit
        for bit in range(verdict.vectors.instruction.formats["d"].bits)
        if all(
            len(np.unique(codes >> codes.dtype.type(bit) & codes.dtype.type(1))) == n
            for codes, n in ((came, 1), (right, 2))
        )
    ]
    return f"; of the result the same for all operands: {bits_text(stuck)}" if stuck else ""
