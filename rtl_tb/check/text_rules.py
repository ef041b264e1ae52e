"""Rules about a unit's text that say where it may mean something else than its designer: each looks at one
node of slang's tree, and a failing check applies the one that fits its failure.

`unreset`: registers that a reset leaves as they are, although it sets the others of their process. A valid
that keeps its value through a reset gives a result that nobody asked for. Data need no reset, so a process
that leaves many of its registers alone is meant so.

`initialised`: `logic [7:0] ea = a[22:15];` runs once, when simulation starts, so its signal depends on no
operand. A net that is declared so follows its value; a variable does not, whatever hardware was intended.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from golden.errors import bits_text, listed
from rtl_tb.dut.description import Dut
from rtl_tb.dut.slang import elaborated
from rtl_tb.engines.builds import design_of
from rtl_tb.errors import RtlError
from rtl_tb.runs.verdict import Verdict

Rule = Callable[[Any], Iterator[tuple[Any, str]]]
"""The places and texts in which a node breaks a rule."""


def unreset_registers(dut: Dut) -> list[str]:
    """A sentence about registers that lack a reset next to others that have it; nothing if there are none, or
    many."""
    # Registers that a sentence names; more are a data path without a reset.
    most = 3
    found = [f"'{name}' at {place}" for place, name in _broken(dut, _unreset)]
    if not 0 < len(found) <= most:
        return []
    return [f"the reset does not set {', '.join(found)}, as it sets other registers there"]


def declaration_initialisers(verdict: Verdict, dut: Dut) -> list[str]:
    """A sentence about variables that take the value of another signal once, and about bits of the result
    that never change; nothing if there are none."""
    # Declarations that a sentence names.
    shown = 6
    if not (found := _broken(dut, _initialised)):
        return []
    said = listed([f"{place}: `{text}`" for place, text in found], shown, "; ")
    return [
        f"declared with a value that is computed once, when simulation starts, and not again: {said}; "
        f"write a net (`wire`) or an assignment of its own, in a block `automatic`{_constant_bits(verdict)}"
    ]


def _broken(dut: Dut, rule: Rule) -> list[tuple[str, str]]:
    """("file:line", text) where a unit breaks a rule; nothing if slang cannot read it."""
    if dut.vhdl is not None or dut.netlist is not None or importlib.util.find_spec("pyslang") is None:
        return []
    try:
        compilation, _ = elaborated(design_of(dut))
    except RtlError:
        return []
    manager = compilation.sourceManager
    found: dict[tuple[str, str], None] = {}

    def look(node: Any) -> None:
        for at, text in rule(node):
            file = Path(manager.getFileName(at)).name
            found.setdefault((f"{file}:{manager.getLineNumber(at)}", text))

    compilation.getRoot().visit(look)
    return list(found)


def _unreset(node: Any) -> Iterator[tuple[Any, str]]:
    if type(node).__name__ != "ProceduralBlockSymbol":
        return
    first = next((each for each in _below(node.body) if each.kind.name == "Conditional"), None)
    if first is None or first.ifFalse is None:
        return
    reset, other = dict(_assigned(first.ifTrue)), dict(_assigned(first.ifFalse))
    # A branch that gives constants alone is the reset's.
    if reset and not any(_names_in(value) for value in reset.values()):
        yield from ((first.sourceRange.start, name) for name in other if name not in reset)


def _initialised(node: Any) -> Iterator[tuple[Any, str]]:
    if type(node).__name__ != "VariableSymbol" or node.lifetime.name != "Static":
        return
    read = [] if node.initializer is None else _names_in(node.initializer)
    if any(each.symbol.kind.name in ("Variable", "Net") for each in read):
        text = node.name if node.syntax is None else node.syntax.parent
        yield node.location, " ".join(str(text).split())


def _below(node: Any) -> list[Any]:
    """A statement or expression and all below it, in their order."""
    every: list[Any] = []
    node.visit(every.append)
    return every


def _names_in(value: Any) -> list[Any]:
    return [each for each in _below(value) if type(each).__name__ == "NamedValueExpression"]


def _assigned(statement: Any) -> Iterator[tuple[str, Any]]:
    """What is assigned there to be taken at the clock's edge, by name, and what it gets."""
    for node in _below(statement):
        if type(node).__name__ == "AssignmentExpression" and node.isNonBlocking:
            names = [each.symbol.name for each in _below(node.left) if hasattr(each, "symbol")]
            yield from ((name, node.right) for name in names[:1])


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
