"""Texts of which simulators and synthesis make different things: a proof of the netlist says nothing of them.

Synthesis ignores delays and lists of events, and takes each register's value before the clock edge. A
simulator does what the text says, and may do it in any order. A unit is refused where the two may differ:

- a delay, but for registers that take their value less than half a cycle after the edge (`q <= #1 d`);
- combinational logic that does not wait for all that it reads: a list that lacks a signal or some bits of
  it, `@*` or an `assign` around a function that reads a signal by itself;
- a combinational process, or any function, that reads bits of a variable before it sets them: a simulator
  reads what they held before;
- a variable that a clocked process sets with `=`, or logic behind it, that another clocked process reads: a
  race;
- an expression that sets a variable in a part that may not be computed (`a && f(b)`), or that it reads or
  sets in another part, too; a function without `automatic` that calls itself;
- a path delay of a specify block;
- a clock that a process sets with `<=`: registers behind it take what registers of the original clock have
just taken;
- a branch for a tool or for synthesis that changes the netlist (see netlist.py).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rtl_tb.dut.description import Dut
from rtl_tb.dut.ports import Design
from rtl_tb.dut.slang import elaborated
from rtl_tb.prove.flow import SIGNALS, Flow, part_of, within
from rtl_tb.prove.side_effects import SideEffects

_UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0, "ps": 1e-3, "fs": 1e-6}


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
        self.clocks: set[Any] = set()
        self.late: list[tuple[Any, set[Any]]] = []
        self.behind: dict[Any, set[Any]] = {}
        self.effects = SideEffects(self.ast)

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
            elif isinstance(symbol, ast.TimingPathSymbol):
                yield f"{self._place(symbol)}: a delay of a path, which synthesis ignores"
            elif isinstance(symbol, ast.PrimitiveInstanceSymbol) and symbol.delay is not None:
                yield f"{self._place(symbol)}: a delay of a gate, which synthesis ignores"
            elif isinstance(symbol, ast.InstanceSymbol):
                for each in symbol.portConnections:
                    if each.expression is not None:
                        yield from self._assigned(symbol, each.expression)
                        self._connected(each)
        yield from self._races()

    def _races(self) -> Iterator[str]:
        """What clocked processes read that others set at the same edge."""
        for at, (process, written, _) in enumerate(self.clocked):
            after = self._follow(written)
            for other, (_, _, reads) in enumerate(self.clocked):
                if at != other and (both := after & reads):
                    name = min(str(each.name) for each in both)
                    yield (
                        f"{self._place(process)}: a race: {name} is set with '=' at a clock edge, and "
                        "another process reads it at this edge"
                    )
        for process, late in self.late:
            if self._follow(late) & self.clocks:
                name = min(str(each.name) for each in late)
                yield f"{self._place(process)}: {name} is set with '<=' and is a clock: it comes late"

    def _follow(self, signals: set[Any]) -> set[Any]:
        """Signals and all that combinational logic makes of them."""
        found: set[Any] = set()
        left = [*signals]
        while left:
            if (signal := left.pop()) not in found:
                found.add(signal)
                left += self.behind.get(signal, ())
        return found

    def _feeds(self, signals: Iterable[Any], behind: Iterable[Any]) -> None:
        for each in signals:
            self.behind.setdefault(each, set()).update(behind)

    def _connected(self, connection: Any) -> None:
        """A signal within an instance and what stands at its port."""
        inside = getattr(connection.port, "internalSymbol", None)
        if inside is None:
            return
        outside, _ = self._names(connection.expression)
        if connection.port.direction.name != "Out":
            self._feeds(outside, [inside])
        if connection.port.direction.name != "In":
            self._feeds([inside], outside)

    def _place(self, node: Any) -> str:
        where = node.location if hasattr(node, "location") else node.sourceRange.start
        return f"{Path(self.sources.getFileName(where)).name}:{self.sources.getLineNumber(where)}"

    # What is read -------------------------------------------------------------------------------------------

    def _names(self, node: Any, inside: bool = False) -> tuple[set[Any], set[Any]]:
        """The signals that something reads or sets, and the ones that only functions name; `inside`:
        also what functions of it hold by themselves."""
        direct: set[Any] = set()
        calls: set[Any] = set()
        ast = self.ast

        def look(each: Any) -> None:
            if isinstance(each, ast.ValueExpressionBase) and each.symbol.kind.name in SIGNALS:
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
                hidden |= {each for each in direct if not within(each, function)}
                direct = more
        return direct, hidden - direct

    def _assigned(self, symbol: Any, expression: Any) -> Iterator[str]:
        direct, hidden = self._names(expression)
        if isinstance(expression, self.ast.AssignmentExpression):
            self._feeds(direct | hidden, self._names(expression.left)[0])
        elif isinstance(symbol, self.ast.NetSymbol):
            self._feeds(direct | hidden, [symbol])
        if hidden:
            name = min(str(each.name) for each in hidden)
            yield (
                f"{self._place(symbol)}: a function reads {name}, which is no argument: a simulator does not "
                "wait for it"
            )
        yield from self._stale(symbol, Flow(self.ast, symbol, expression))
        yield from self._ordered(symbol, expression, alone=False)

    def _ordered(self, where: Any, node: Any, alone: bool = True) -> Iterator[str]:
        """What expressions set that leave open when, or whether."""
        for at, each in enumerate(self.effects.expressions(node)):
            for symbol in self.effects.unsure(each, alone or at > 0):
                yield (
                    f"{self._place(where)}: an expression sets {symbol.name}, and whether or when is left "
                    "open or depends on the rest of it"
                )
            for function in self.effects.sharing(each):
                yield (
                    f"{self._place(where)}: function {function.name} calls itself and is not automatic: its "
                    "calls share their variables"
                )

    # Processes ----------------------------------------------------------------------------------------------

    def _process(self, process: Any) -> Iterator[str]:
        ast, kind, body = self.ast, process.procedureKind.name, process.body
        if kind in ("Initial", "Final"):
            return
        events = None
        if kind != "AlwaysComb" and isinstance(body, ast.TimedStatement):
            events, body = body.timing, body.stmt
        edges = [each for each in _events(events) if each.edge.name not in ("None_", "None")]
        yield from self._delays(process, body, bool(edges))
        yield from self._ordered(process, body)
        _, hidden = self._names(body)
        flow = Flow(ast, process, body)
        yield from self._stale(process, flow, clocked=bool(edges))
        if edges:
            for each in edges:
                self.clocks |= self._names(each.expr)[0]
            written = {each for each in flow.blocking if not within(each, process)}
            self.clocked.append((process, written, {*flow.read}))
            return
        self._feeds(flow.read, flow.written)
        if flow.late:
            self.late.append((process, flow.late))
        if events is None:
            return
        if events.kind.name == "ImplicitEvent":
            missing = hidden - {*flow.written}
        else:
            waited = self._waited(process, events)
            reads = {each: mask & ~flow.written.get(each, 0) for each, mask in flow.read.items()}
            reads |= dict.fromkeys(hidden - {*reads, *flow.written}, -1)
            missing = {each for each, mask in reads.items() if mask & ~waited.get(each, 0)}
        missing = {each for each in missing if not each.parentScope.isProceduralContext}
        if missing:
            name = min(str(each.name) for each in missing)
            yield f"{self._place(process)}: a process reads {name} and does not wait for it"

    def _stale(self, where: Any, flow: Flow, clocked: bool = False) -> Iterator[str]:
        """What is read before it is set. An automatic variable is x then; what a clocked process keeps is a
        register, but in a function."""
        early = {
            each
            for each, mask in flow.early.items()
            if mask & flow.written.get(each, 0)
            and flow.stays(each)
            and (not clocked or any(within(each, one) for one in flow.functions))
        }
        if early:
            name = min(str(each.name) for each in early)
            yield (
                f"{self._place(where)}: a process reads {name} before it sets it: a simulator reads what "
                "it held before"
            )

    def _waited(self, process: Any, events: Any) -> dict[Any, int]:
        """Masks of the bits of signals that are in a list of events."""
        context = self.ast.EvalContext(process)

        def constant(node: Any) -> int | None:
            found = node.eval(context).value
            return None if found is None else int(found)

        found: dict[Any, int] = {}
        for each in _events(events):
            part = part_of(self.ast, each.expr, constant) if each.iffCondition is None else None
            if part is not None and part[2]:
                found[part[0]] = found.get(part[0], 0) | part[1]
        return found

    def _delays(self, process: Any, body: Any, clocked: bool) -> Iterator[str]:
        ast, found = self.ast, []

        def look(node: Any) -> None:
            if isinstance(node, ast.AssignmentExpression) and node.timingControl is not None:
                found.append((node.timingControl, clocked and node.isNonBlocking))
            elif isinstance(node, ast.TimedStatement):
                found.append((node.timing, False))

        body.visit(look)
        # Nanoseconds; the engines' clock has 10.
        half_a_cycle = 5.0
        for timing, register in found:
            if not (register and self._nanoseconds(timing, process) < half_a_cycle):
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
