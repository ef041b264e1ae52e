"""Which nets and variables several things drive at once, read with pyslang.

Of a net without a strength the language gives X where its drivers differ. Verilator takes one of them without
a word. A variable holds what was written last, in every simulator; synthesis has no such thing.
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
_PROCESSES = ("Always", "AlwaysComb", "AlwaysFF", "AlwaysLatch")


NET, VARIABLE = "net", "variable"


def several_drivers(design: Design) -> set[tuple[str, str, str]]:
    """("file:line", name, NET or VARIABLE) of each of which a bit has two drivers: of a net such that neither
    can be silent, of a variable processes, but for those that only count loops there.

    Raises:
        SimulatorMissing: pyslang is not installed. ElaborationError: it refuses the design.
    """
    if importlib.util.find_spec("pyslang") is None:
        raise SimulatorMissing(f"slang finds nets with several drivers; install it: {GET_PYSLANG}")
    compilation, _ = elaborated(design, in_dead_text=True)
    ast = importlib.import_module("pyslang.ast")
    analysis = importlib.import_module("pyslang.analysis").AnalysisManager()
    analysis.analyze(compilation)
    sources = compilation.sourceManager
    outputs_rest = any(_SILENT.search(str(tree.root)) for tree in compilation.getSyntaxTrees())
    counted = _counted(compilation, ast)
    found: set[tuple[str, str, str]] = set()

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
        drivers: list[Any] = []
        kind = NET if isinstance(node, ast.NetSymbol) else VARIABLE
        if kind == NET and node.netType.netKind.name in _SHARED:
            drivers = [each for each in analysis.getDrivers(node) if drives(each)]
        elif isinstance(node, ast.VariableSymbol) and node.location.offset not in counted:
            drivers = [each for each in analysis.getDrivers(node) if each.source.name in _PROCESSES]
        if any(_meet(one, other, kind) for one, other in combinations(drivers, 2)):
            file = Path(sources.getFileName(node.location)).name
            found.add((f"{file}:{sources.getLineNumber(node.location)}", str(node.name), kind))
        return None

    compilation.getRoot().visit(look)
    return found


def _meet(one: Any, other: Any, kind: str) -> bool:
    """Whether two drivers have a bit in common; what one process sets in several places is no two."""
    apart = kind == NET or one.containingSymbol.location != other.containingSymbol.location
    return bool(apart and one.bounds[0] <= other.bounds[1] and other.bounds[0] <= one.bounds[1])


def _counted(compilation: Any, ast: Any) -> set[int]:
    """Places of the variables with which loops begin."""
    found: set[int] = set()

    def note(node: Any) -> None:
        if isinstance(node, ast.ForLoopStatement):
            begun = (each.left for each in node.initializers if hasattr(each, "left"))
            found.update(each.symbol.location.offset for each in begun if hasattr(each, "symbol"))

    compilation.getRoot().visit(note)
    return found
