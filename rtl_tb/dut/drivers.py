"""Which nets several things drive at once, read with pyslang.

Of a net without a strength the language gives X where its drivers differ. Verilator takes one of them without
a word, and synthesis one or none.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from itertools import combinations
from pathlib import Path
from typing import Any

from rtl_tb.dut.ports import Design
from rtl_tb.dut.slang import GET_PYSLANG, elaborated
from rtl_tb.errors import SimulatorMissing

_SHARED = ("Wire", "Tri", "UWire")
"""Nets on which drivers that differ give X; wand and wor join theirs."""
_SILENT = re.compile(
    r"'[sS]?[bodhBODH]?[0-9a-fA-FxX_]*[zZ]|\b(?:buf|not)if[01]\b|\br?(?:[npc]mos|tran(?:if[01])?)\b"
)
"""What makes a driver that may be silent: a literal with Z, a gate for that."""


def several_drivers(design: Design) -> set[tuple[str, str]]:
    """("file:line", name) of each net of which a bit has two drivers, neither of which can be silent. A
    variable has one: slang refuses others.

    Raises:
        SimulatorMissing: pyslang is not installed. ElaborationError: it refuses the design.
    """
    if importlib.util.find_spec("pyslang") is None:
        raise SimulatorMissing(f"slang finds nets with several drivers; install it: {GET_PYSLANG}")
    compilation, _ = elaborated(design)
    ast = importlib.import_module("pyslang.ast")
    analysis = importlib.import_module("pyslang.analysis").AnalysisManager()
    analysis.analyze(compilation)
    sources = compilation.sourceManager
    outputs_rest = any(_SILENT.search(str(tree.root)) for tree in compilation.getSyntaxTrees())
    found: set[tuple[str, str]] = set()

    def drives(driver: Any) -> bool:
        by = driver.containingSymbol
        if by.kind.name == "Instance":
            return not outputs_rest
        gate = by.kind.name == "PrimitiveInstance"  # its name stands before all of its kind
        syntax = by.syntax.parent if gate else by.syntax
        return syntax is None or _SILENT.search(str(syntax)) is None

    def look(node: Any) -> Any:
        if isinstance(node, (ast.Expression, ast.Statement)):
            return ast.VisitAction.Skip
        if isinstance(node, ast.NetSymbol) and node.netType.netKind.name in _SHARED:
            pairs = combinations(filter(drives, analysis.getDrivers(node)), 2)
            if any(
                one.bounds[0] <= other.bounds[1] and other.bounds[0] <= one.bounds[1] for one, other in pairs
            ):
                file = Path(sources.getFileName(node.location)).name
                found.add((f"{file}:{sources.getLineNumber(node.location)}", str(node.name)))
        return None

    compilation.getRoot().visit(look)
    return found
