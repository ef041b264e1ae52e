"""What simulators heed and synthesis does not: the text of a unit with hardware in its place.

- Delays of assignments and gates are left out. (A clock that delays make stays as it is.)
- A list of signals without an edge, `always @(a)`, names all that is read behind it.
- A signal that a process with an edge sets with `=` and others read is a register: they see what it was
  before the edge. A simulator runs processes of one edge in any order, and shows them the one or the other.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from rtl_tb.check.readings import Reading
from rtl_tb.dut.description import Dut
from rtl_tb.dut.ports import Design
from rtl_tb.dut.runs import NAME
from rtl_tb.dut.slang import GET_PYSLANG, elaborated
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.engines.builds import kept_text
from rtl_tb.errors import SimulatorMissing

_DELAY = re.compile(r"#\s*[\w.]|(?:[=;)]|\b(?:assign|begin|else))\s*#\s*\(")
_LIST = re.compile(r"\balways\s*@\s*(?:\(\s*)*(?!posedge|negedge|edge)[A-Za-z_\\]")
_CLOCKED = re.compile(
    r"\balways(?:_ff)?\s*@[^;]*?\b(?:pos|neg)edge\b(.*?)(?=\b(?:always\w*|initial|assign|end(?:module|generate))\b)",
    re.DOTALL,
)
_FOR = re.compile(r"\bfor\s*\([^)]*\)")
_SETS = re.compile(r"[\w\]}]\s*[-+*/%&|^]?=(?!=)")
"""What a text with any of it may have; slang tells whether it has."""
_DELAYS = ("DelayControl", "Delay3")
_NO_HARDWARE = ("InitialBlock", "FinalBlock", "ForeverStatement")
"""In which delays make time go on."""
_MOST_BITS = 1 << 16
"""Of a signal that is copied at each edge."""


@dataclass
class _Process:
    """A process with an edge.

    Attributes:
        place: of the process, in the text.
        start, end: of its statement.
        sets, later: places of the declarations of what it sets with =, and with <=.
    """

    place: int
    start: int
    end: int
    sets: dict[int, Any] = field(default_factory=dict)
    later: set[int] = field(default_factory=set)


def as_hardware(dut: Dut, build: Path, text: Reading) -> tuple[Reading, str]:
    """A text of a DUT as synthesis takes it, and what was changed, or "".

    Raises:
        SimulatorMissing: pyslang is not installed. ElaborationError: it refuses the text.
    """
    if not _may_differ(text.text):
        return text, ""
    if importlib.util.find_spec("pyslang") is None:
        raise SimulatorMissing(f"slang finds delays and processes that race; install it: {GET_PYSLANG}")
    file = kept_text(build, "hardware", text.text)
    compilation, _ = elaborated(Design((file, kept_text(build, NAME, wrapper_of(dut))), NAME))
    look = _Look(compilation, file)
    edits = look.edits()
    whats = [what for what, found in look.found.items() if found]
    return (Reading(_edited(file.read_bytes(), edits)), "; ".join(whats)) if edits else (text, "")


def _may_differ(text: str) -> bool:
    clocked = (_FOR.sub(" ", found[1]) for found in _CLOCKED.finditer(text))
    return bool(_DELAY.search(text) or _LIST.search(text) or any(map(_SETS.search, clocked)))


def _edited(text: bytes, edits: dict[tuple[int, int], str]) -> str:
    """The text with each stretch replaced; lines keep their numbers."""
    pieces, last = list[bytes](), 0
    for (start, end), instead in sorted(edits.items()):
        if start < last:  # within what is gone
            continue
        pieces += [text[last:start], instead.encode(), b"\n" * text[start:end].count(b"\n")]
        last = end
    return b"".join([*pieces, text[last:]]).decode()


class _Look:
    """Reads one text."""

    def __init__(self, compilation: Any, file: Path) -> None:
        self.ast = importlib.import_module("pyslang.ast")
        analysis = importlib.import_module("pyslang.analysis")
        self.analysis, self.initial = analysis.AnalysisManager(), analysis.DriverFlags.Initializer
        self.analysis.analyze(compilation)
        self.compilation, self.file, self.sources = compilation, file.resolve(), compilation.sourceManager
        self.found: dict[str, dict[tuple[int, int], str]] = {
            "delays left out": {},
            "lists of signals that are not all that is read": {},
            "registers where = and processes of one edge race": {},
        }
        self.uses: dict[int, set[tuple[int, int]]] = {}
        """Where each signal is named, by the place of its declaration."""
        self.processes: dict[int, _Process] = {}
        self.subroutines: list[tuple[int, int]] = []
        self.ports: set[int] = set()

    def edits(self) -> dict[tuple[int, int], str]:
        """What to replace by what."""
        delays, lists, races = self.found.values()
        for tree in self.compilation.getSyntaxTrees():
            tree.root.visit(lambda node: self._delay(node, delays))
        self.compilation.getRoot().visit(lambda node: self._symbol(node, lists))
        for process in self.processes.values():
            racing = [signal for at, signal in process.sets.items() if self._races(at, signal, process)]
            if racing:
                races.update(self._registers(racing, process))
        return dict(chain(races.items(), delays.items(), lists.items()))

    def _own(self, place: Any) -> bool:
        return bool(self.sources.getFullPath(place.buffer) == self.file)

    def _delay(self, node: Any, delays: dict[tuple[int, int], str]) -> None:
        if getattr(node, "kind", None) is None or node.kind.name not in _DELAYS:
            return
        span, above, below = node.sourceRange, node.parent, node
        while above is not None and above.kind.name not in _NO_HARDWARE:
            waits = above.kind.name.startswith("Always") and below.kind.name == "TimingControlStatement"
            if waits and below.timingControl.kind.name in _DELAYS:
                return  # always #5 clk = !clk;
            above, below = above.parent, above
        if above is None and self._own(span.start):
            delays[span.start.offset, span.end.offset] = " "

    def _symbol(self, node: Any, lists: dict[tuple[int, int], str]) -> Any:
        ast = self.ast
        if isinstance(node, ast.NamedValueExpression) and self._own(node.sourceRange.start):
            span = node.sourceRange
            self.uses.setdefault(node.symbol.location.offset, set()).add((span.start.offset, span.end.offset))
        elif isinstance(node, ast.SubroutineSymbol) and node.syntax is not None:
            self.subroutines.append(
                (node.syntax.sourceRange.start.offset, node.syntax.sourceRange.end.offset)
            )
        elif isinstance(node, ast.PortSymbol) and node.internalSymbol is not None:
            self.ports.add(node.internalSymbol.location.offset)
        elif isinstance(node, ast.ProceduralBlockSymbol) and self._own(node.location):
            body = node.body
            if node.procedureKind.name in ("Always", "AlwaysFF") and isinstance(body, ast.TimedStatement):
                self._process(node.location.offset, body, lists)
        return None

    def _process(self, place: int, body: Any, lists: dict[tuple[int, int], str]) -> None:
        events = list(_events(body.timing))
        if any(each.edge.name != "None_" for each in events):
            span = body.stmt.sourceRange
            process = _Process(place, span.start.offset, span.end.offset)
            process = self.processes.setdefault(place, process)
            body.stmt.visit(lambda node: self._set(node, process))
        elif events:
            span, listed = body.syntax.timingControl.sourceRange, set[int]()
            for each in events:
                each.expr.visit(lambda node: self._note(node, listed))
            inside, read = body.stmt.sourceRange, set[int]()
            process = _Process(place, inside.start.offset, inside.end.offset)
            body.stmt.visit(lambda node: self._set(node, process))
            body.stmt.visit(lambda node: self._note(node, read))
            own = {at for at in read if process.start <= at < process.end}
            if not read - own - process.sets.keys() - process.later <= listed:
                lists[span.start.offset, span.end.offset] = "@*"

    def _note(self, node: Any, found: set[int]) -> None:
        """Notes a signal that is named."""
        if isinstance(node, self.ast.NamedValueExpression) and node.symbol.kind.name in ("Net", "Variable"):
            found.add(node.symbol.location.offset)

    def _set(self, node: Any, process: _Process) -> None:
        if isinstance(node, self.ast.AssignmentExpression):
            place, later = node.left, node.isNonBlocking
        elif isinstance(node, self.ast.UnaryExpression) and node.op.name.endswith(("increment", "decrement")):
            place, later = node.operand, False
        else:
            return
        for symbol in _roots(place):
            at = symbol.location.offset
            if later:
                process.later.add(at)
            elif symbol.kind.name == "Variable" and not process.start <= at < process.end:
                process.sets[at] = symbol

    def _races(self, at: int, signal: Any, process: _Process) -> bool:
        """Whether others read what a process sets, which alone drives it."""
        uses = self.uses.get(at, set())
        in_calls = any(start <= use < end for use, _ in uses for start, end in self.subroutines)
        outside = at in self.ports or any(not process.start <= use < process.end for use, _ in uses)
        small = signal.type.bitstreamWidth in range(1, _MOST_BITS + 1)
        drivers = {
            driver.containingSymbol
            for driver in self.analysis.getDrivers(signal)
            if driver.source.name != "Initial" and not driver.flags & self.initial
        }
        # of a generate loop each turn has a process of its own at the same place
        alone = len(drivers) == 1 and drivers.pop().location.offset == process.place
        return bool(outside and small and alone and not in_calls and at not in process.later)

    def _registers(self, signals: list[Any], process: _Process) -> dict[tuple[int, int], str]:
        """Variables of the process in the place of signals, which take them in the end."""
        given: dict[tuple[int, int], str] = {}
        declared, copied, taken = "", "", ""
        for signal in signals:
            at, named = signal.location.offset, f"\\{signal.name} "
            name = f"mmagold_next_{at}"
            declared += f"var type({named}) {name}; "
            copied += f"{name} = {named}; "
            taken += f"{named}<= {name}; "
            inside = [use for use in self.uses[at] if process.start <= use[0] < process.end]
            given |= dict.fromkeys(inside, name)
        given[process.start, process.start] = f" begin {declared}{copied}"
        given[process.end, process.end] = f" {taken}end "
        return given


def _events(timing: Any) -> Iterator[Any]:
    """The signals that a process waits for."""
    if timing.kind.name == "SignalEvent":
        yield timing
    elif timing.kind.name == "EventList":
        for each in timing.events:
            yield from _events(each)


def _roots(place: Any) -> Iterator[Any]:
    """The signals of which an assignment sets bits."""
    for part in getattr(place, "operands", None) or ():
        yield from _roots(part)
    while hasattr(place, "value") and place.kind.name.endswith(("Select", "Access")):
        place = place.value
    if place.kind.name == "NamedValue":
        yield place.symbol
