"""Registers that a reset leaves as they are, although it sets the others of their process.

A valid that keeps its value through a reset gives a result that nobody asked for. Data need no reset, so a
process that leaves many of its registers alone is meant so.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rtl_tb.dut.description import Dut
from rtl_tb.dut.slang import elaborated
from rtl_tb.engines.builds import design_of
from rtl_tb.errors import RtlError

_MOST = 3
"""Registers that a sentence names; more are a data path without a reset."""


def unreset_registers(dut: Dut) -> list[str]:
    """A sentence about registers that lack a reset next to others that have it; nothing if there are none, or
    many, or slang cannot decide."""
    if dut.vhdl is not None or dut.netlist is not None or importlib.util.find_spec("pyslang") is None:
        return []
    try:
        compilation, _ = elaborated(design_of(dut))
    except RtlError:
        return []
    manager = compilation.sourceManager
    found: dict[str, None] = {}

    def look(node: Any) -> None:
        if type(node).__name__ != "ProceduralBlockSymbol":
            return
        first = next((each for each in _below(node.body) if each.kind.name == "Conditional"), None)
        if first is None or first.ifFalse is None:
            return
        reset, other = dict(_assigned(first.ifTrue)), dict(_assigned(first.ifFalse))
        # A branch that gives constants alone is the reset's.
        if reset and not any(map(_reads, reset.values())):
            file = Path(manager.getFileName(first.sourceRange.start)).name
            place = f"{file}:{manager.getLineNumber(first.sourceRange.start)}"
            found.update({f"'{name}' at {place}": None for name in other if name not in reset})

    compilation.getRoot().visit(look)
    if not 0 < len(found) <= _MOST:
        return []
    return [f"the reset does not set {', '.join(found)}, as it sets other registers there"]


def _below(node: Any) -> list[Any]:
    """A statement or expression and all below it, in their order."""
    every: list[Any] = []
    node.visit(every.append)
    return every


def _assigned(statement: Any) -> Iterator[tuple[str, Any]]:
    """What is assigned there to be taken at the clock's edge, by name, and what it gets."""
    for node in _below(statement):
        if type(node).__name__ == "AssignmentExpression" and node.isNonBlocking:
            names = [each.symbol.name for each in _below(node.left) if hasattr(each, "symbol")]
            yield from ((name, node.right) for name in names[:1])


def _reads(value: Any) -> bool:
    return any(type(each).__name__ == "NamedValueExpression" for each in _below(value))
