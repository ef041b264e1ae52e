"""Texts of which simulators and synthesis make different things: a proof of the netlist says nothing of them.

Synthesis ignores delays and lists of events, and takes each register's value before the clock edge. A
simulator does what the text says, and may do it in any order. A unit is refused where the two may differ:

- a delay, but for registers that take their value less than half a cycle after the edge (`q <= #1 d`);
- combinational logic that does not wait for all that it reads: a list that lacks a signal, `@*` or an
  `assign` around a function that reads a signal by itself;
- a combinational process that reads a variable before it sets it: a simulator reads what it held before;
- a variable that a clocked process sets with `=` and another clocked process reads: a race;
- a branch for a tool or for synthesis that changes the netlist (see netlist.py).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rtl_tb.dut.description import Dut
from rtl_tb.dut.ports import Design
from rtl_tb.dut.slang import elaborated
from rtl_tb.dut.text import read

HALF_A_CYCLE = 5.0
"""Nanoseconds; the engines' clock has 10."""
MACROS = ("SYNTHESIS", "VERILATOR", "__ICARUS__", "YOSYS", "__slang__")
"""Macros that tools define by themselves, or that a flow defines for synthesis."""
_UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0, "ps": 1e-3, "fs": 1e-6}
_OUTSIDE = ("Variable", "Net", "Field")
"""Kinds of symbols that hold a value."""


def macros_of(dut: Dut) -> list[str]:
    """The macros of tools that a unit's text asks for and that dut.yaml does not define."""
    files = [*dut.sources, *(file for folder in dut.include for file in sorted(Path(folder).rglob("*.*v*")))]
    text = "\n".join(read(file) for file in files if file.is_file())
    asked = set(re.findall(r"`(?:ifn?def|elsif)\s+(\w+)", text))
    return [name for name in MACROS if name in asked and name not in dut.defines]


def two_readings(dut: Dut) -> str | None:
    """Why a simulator may compute something else than the netlist, with the place; None: nothing was found.

    Raises:
        SimulatorMissing: pyslang is not installed. ElaborationError: it refuses the design.
    """
    design = Design(dut.sources, dut.top, dut.include, dut.defines, dut.parameters, dut.libraries)
    compilation, top = elaborated(design)
    found = next(_Unit(compilation, top).reasons(), None)
    del top, compilation  # they own all symbols
    return found


class _Unit:
    """An elaborated unit."""

    def __init__(self, compilation: Any, top: Any) -> None:
        self.ast = importlib.import_module("pyslang.ast")
        self.compilation, self.top = compilation, top
        self.sources = compilation.sourceManager
        self.clocked: list[tuple[Any, set[Any], set[Any]]] = []

    def reasons(self) -> Iterator[str]:
        ast, symbols = self.ast, []
        self.top.visit(lambda node: symbols.append(node) if isinstance(node, ast.Symbol) else None)
        for symbol in symbols:
            if isinstance(symbol, ast.ProceduralBlockSymbol):
                yield from self._process(symbol)
            elif isinstance(symbol, ast.ContinuousAssignSymbol):
                if symbol.delay is not None:
                    yield f"{self._place(symbol)}: a delay of an assignment, which synthesis ignores"
                yield from self._assigned(symbol, symbol.assignment)
            elif isinstance(symbol, ast.NetSymbol):
                if symbol.delay is not None:
                    yield f"{self._place(symbol)}: a delay of net {symbol.name}, which synthesis ignores"
                if symbol.initializer is not None:
                    yield from self._assigned(symbol, symbol.initializer)
            elif isinstance(symbol, ast.PrimitiveInstanceSymbol) and symbol.delay is not None:
                yield f"{self._place(symbol)}: a delay of a gate, which synthesis ignores"
            elif isinstance(symbol, ast.InstanceSymbol):
                for each in symbol.portConnections:
                    if each.expression is not None:
                        yield from self._assigned(symbol, each.expression)
        for at, (process, written, _) in enumerate(self.clocked):
            for other, (_, _, reads) in enumerate(self.clocked):
                if at != other and (both := written & reads):
                    name = min(str(each.name) for each in both)
                    yield (
                        f"{self._place(process)}: a race: {name} is set with '=' at a clock edge, and "
                        "another process reads it at this edge"
                    )

    def _place(self, node: Any) -> str:
        where = node.location if hasattr(node, "location") else node.sourceRange.start
        return f"{Path(self.sources.getFileName(where)).name}:{self.sources.getLineNumber(where)}"

    # What is read -------------------------------------------------------------------------------------------

    def _names(self, node: Any, inside: bool = False) -> tuple[set[Any], set[Any]]:
        """The signals that something reads or sets, and those of them that only functions name; `inside`:
        also what functions of it hold by themselves."""
        direct: set[Any] = set()
        calls: set[Any] = set()
        ast = self.ast

        def look(each: Any) -> None:
            if isinstance(each, ast.ValueExpressionBase) and each.symbol.kind.name in _OUTSIDE:
                direct.add(each.symbol)
            elif isinstance(each, ast.CallExpression) and not each.isSystemCall:
                calls.add(each.subroutine)

        node.visit(look)
        hidden: set[Any] = set()
        done: set[Any] = set()
        while calls:
            function = calls.pop()
            if function not in done:
                done.add(function)
                more, direct = direct, set()
                function.body.visit(look)
                hidden |= {each for each in direct if not self._within(each, function)}
                direct = more
        return direct, hidden - direct

    @staticmethod
    def _within(symbol: Any, scope: Any) -> bool:
        """Whether a symbol is declared in the text of a process or function."""
        where, text = symbol.location, scope.syntax.sourceRange
        return bool(
            where.buffer == text.start.buffer and text.start.offset <= where.offset <= text.end.offset
        )

    def _assigned(self, symbol: Any, expression: Any) -> Iterator[str]:
        _, hidden = self._names(expression)
        if hidden:
            name = min(str(each.name) for each in hidden)
            yield (
                f"{self._place(symbol)}: a function reads {name}, which is no argument: a simulator does not "
                "wait for it"
            )

    # Processes ----------------------------------------------------------------------------------------------

    def _process(self, process: Any) -> Iterator[str]:
        ast, kind, body = self.ast, process.procedureKind.name, process.body
        if kind in ("Initial", "Final"):
            return
        events = None
        if kind != "AlwaysComb" and isinstance(body, ast.TimedStatement):
            events, body = body.timing, body.stmt
        edges = [each.edge.name for each in _events(events)]
        clocked = any(edge != "None_" and edge != "None" for edge in edges)
        yield from self._delays(process, body, clocked)
        if clocked:
            flow = _Flow(self, body)
            written = {each for each in flow.blocking if not self._within(each, process)}
            self.clocked.append((process, written, flow.read))
            return
        direct, hidden = self._names(body)
        flow = _Flow(self, body)
        if events is not None:
            implicit = events.kind.name == "ImplicitEvent"
            waited = direct if implicit else self._waited(events)
            missing = (flow.read | hidden) - waited - flow.written
            missing = {each for each in missing if not self._within(each, process)}
            if missing:
                name = min(str(each.name) for each in missing)
                yield f"{self._place(process)}: a process reads {name} and does not wait for it"
        early = {each for each in flow.early & flow.written if not self._within(each, process)}
        if early:
            name = min(str(each.name) for each in early)
            yield (
                f"{self._place(process)}: a process reads {name} before it sets it: a simulator reads what "
                "it held before"
            )

    def _waited(self, events: Any) -> set[Any]:
        """The signals in a list of events, without those of which it has a part."""
        named = (each.expr for each in _events(events) if each.iffCondition is None)
        return {each.symbol for each in named if isinstance(each, self.ast.ValueExpressionBase)}

    def _delays(self, process: Any, body: Any, clocked: bool) -> Iterator[str]:
        ast, found = self.ast, []

        def look(node: Any) -> None:
            if isinstance(node, ast.AssignmentExpression) and node.timingControl is not None:
                found.append((node.timingControl, clocked and node.isNonBlocking))
            elif isinstance(node, ast.TimedStatement):
                found.append((node.timing, False))

        body.visit(look)
        for timing, register in found:
            if not (register and self._nanoseconds(timing, process) < HALF_A_CYCLE):
                yield f"{self._place(process)}: a delay or event within a process, which synthesis ignores"

    def _nanoseconds(self, timing: Any, process: Any) -> float:
        """What a delay takes; infinity where that is not known."""
        if not isinstance(timing, self.ast.DelayControl):
            return float("inf")
        number = timing.expr.eval(self.ast.EvalContext(process))
        scale = re.match(r"(\d+)(\w+)", str(process.parentScope.timeScale or "1ns"))
        try:
            return float(str(number)) * int(scale[1]) * _UNITS[scale[2]] if scale else float("inf")
        except (ValueError, KeyError):
            return float("inf")


def _events(timing: Any) -> list[Any]:
    """The single events of a list."""
    if timing is None:
        return []
    if timing.kind.name == "EventList":
        return [one for each in timing.events for one in _events(each)]
    return [timing] if timing.kind.name == "SignalEvent" else []


class _Flow:
    """Statements in their order.

    Attributes:
        read, written: signals.
        blocking: what is set with '='.
        early: what is read where not every path to it has set it. A variable of which a part is set counts as
            set.
    """

    def __init__(self, unit: _Unit, body: Any) -> None:
        self.unit, self.ast = unit, unit.ast
        self.read: set[Any] = set()
        self.written: set[Any] = set()
        self.blocking: set[Any] = set()
        self.early: set[Any] = set()
        self._entered: set[Any] = set()
        self._statement(body, frozenset())

    def _statement(self, node: Any, known: frozenset[Any]) -> frozenset[Any]:
        """What is set for sure behind a statement, if `known` is before it."""
        ast = self.ast
        match type(node).__name__:
            case "BlockStatement":
                return self._statement(node.body, known)
            case "StatementList":
                for each in node.list:
                    known = self._statement(each, known)
            case "ExpressionStatement":
                return self._expression(node.expr, known)
            case "VariableDeclStatement":
                return self._declared(node.symbol, known)
            case "ConditionalStatement":
                for each in node.conditions:
                    known = self._expression(each.expr, known)
                then = self._statement(node.ifTrue, known)
                return then & self._statement(node.ifFalse, known) if node.ifFalse is not None else known
            case "CaseStatement":
                known = self._expression(node.expr, known)
                for each in (one for item in node.items for one in item.expressions):
                    known = self._expression(each, known)
                ways = [self._statement(item.stmt, known) for item in node.items]
                if node.defaultCase is not None:
                    ways.append(self._statement(node.defaultCase, known))
                elif not self._full(node):
                    ways.append(known)
                return frozenset.intersection(*ways)
            case "ForLoopStatement":
                for variable in node.loopVars:
                    known = self._declared(variable, known)
                for each in (*node.initializers, *([node.stopExpr] if node.stopExpr is not None else [])):
                    known = self._expression(each, known)
                known = self._statement(node.body, known)
                for each in node.steps:
                    known = self._expression(each, known)
            case "TimedStatement":
                return self._statement(node.stmt, known)
            case "EmptyStatement" | "ImmediateAssertionStatement" | "ConcurrentAssertionStatement":
                pass
            case (
                "ForeachLoopStatement" | "RepeatLoopStatement" | "WhileLoopStatement" | "DoWhileLoopStatement"
            ):
                for key in ("cond", "count"):
                    if hasattr(node, key):
                        known = self._expression(getattr(node, key), known)
                return self._statement(node.body, known)
            case "ReturnStatement" if node.expr is not None:
                return self._expression(node.expr, known)
            case _:
                node.visit(lambda each: self._use(each, known) if isinstance(each, ast.Expression) else None)
        return known

    def _declared(self, variable: Any, known: frozenset[Any]) -> frozenset[Any]:
        """The same of a declaration, which sets an automatic variable that it initialises: a static one is
        initialised once, before any operands."""
        if variable.initializer is None:
            return known
        known = self._expression(variable.initializer, known)
        return known | {variable} if variable.lifetime.name == "Automatic" else known

    @staticmethod
    def _full(node: Any) -> bool:
        """Whether a case without a default has an item for each value, or says so."""
        if node.check.name not in ("None_", "None"):
            return True
        items = sum(len(item.expressions) for item in node.items)
        return items >= 1 << min(int(node.expr.type.bitWidth), 16)

    def _expression(self, node: Any, known: frozenset[Any]) -> frozenset[Any]:
        """The same of an expression."""
        ast, done = self.ast, []

        def look(each: Any) -> Any:
            nonlocal known
            if isinstance(each, ast.AssignmentExpression):
                known = self._expression(each.right, known)
                known = self._target(each.left, known, each.isCompound, each.isNonBlocking)
                return ast.VisitAction.Skip
            if isinstance(each, ast.CallExpression) and not each.isSystemCall:
                function = each.subroutine
                for one in each.arguments:
                    known = self._expression(one, known)
                if function not in done and function not in self._entered:  # one may call itself
                    done.append(function)
                    self._entered.add(function)
                    known = self._statement(function.body, known)
                    self._entered.remove(function)
                return ast.VisitAction.Skip
            self._use(each, known)
            return None

        node.visit(look)
        return known

    def _use(self, node: Any, known: frozenset[Any]) -> None:
        if isinstance(node, self.ast.ValueExpressionBase) and node.symbol.kind.name in _OUTSIDE:
            self.read.add(node.symbol)
            if node.symbol not in known:
                self.early.add(node.symbol)

    def _target(self, node: Any, known: frozenset[Any], also_read: bool, late: bool) -> frozenset[Any]:
        """What is set for sure behind an assignment to `node`; its indices are read."""
        ast = self.ast
        if isinstance(node, ast.ValueExpressionBase):
            if also_read:
                self._use(node, known)
            self.written.add(node.symbol)
            if late:
                return known
            self.blocking.add(node.symbol)
            return known | {node.symbol}
        if isinstance(node, ast.ConcatenationExpression):
            for each in node.operands:
                known = self._target(each, known, also_read, late)
            return known
        for key in ("selector", "left", "right"):
            if hasattr(node, key):
                known = self._expression(getattr(node, key), known)
        return self._target(node.value, known, also_read, late) if hasattr(node, "value") else known
