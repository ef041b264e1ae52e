"""A unit that passed is run twice more with other bits in the variables that hold nothing at each call.

A variable of an automatic function, and what a function or a task returns, is X until something sets it.
Verilator has 0 there at every call, whatever the start; no start of rtl_tb/check/starts.py shows it. So the
text is compiled with bits written into such variables, and once more with their complement.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rtl_tb import engines
from rtl_tb.check.readings import Reading, on_text
from rtl_tb.check.starts import Unset
from rtl_tb.check.verdict import Verdict, judge
from rtl_tb.dut.description import Dut
from rtl_tb.dut.ports import Design
from rtl_tb.dut.slang import elaborated
from rtl_tb.dut.wrapper import NAME, wrapper_of
from rtl_tb.engines.builds import kept_text
from rtl_tb.engines.job import Job
from rtl_tb.errors import ElaborationError

_PATTERNS = {"a pattern": 0, "its complement": -1}
"""What is written into them: bits, and -1: these bits exchanged."""
_DECLARATIONS = (
    *("DataDeclaration", "PortDeclaration", "ParameterDeclarationStatement", "LocalVariableDeclaration"),
    *("TypedefDeclaration", "ForwardTypedefDeclaration", "PackageImportDeclaration"),
)
"""What stands before the statements of a function."""
_ROUTINES = ("FunctionDeclaration", "TaskDeclaration")


@dataclass(frozen=True)
class Hole:
    """A variable that holds nothing at a call.

    Attributes:
        place: "file:line: name".
        at: byte of the text at which it can be given a value.
        given: the text that does it, with the bits of each of `_PATTERNS`.
    """

    place: str
    at: int
    given: tuple[str, ...]


def ask_fills(job: Job, verdict: Verdict, plain: Reading | None) -> tuple[Unset | None, Job, Verdict]:
    """Runs a passed check on the text of the simulator with other bits in its holes.

    Returns:
        As compare_starts: what the result depends on, or None; and the job and the verdict that show it, or
        those that were given.

    Raises:
        SimulatorMissing, ElaborationError: nobody looked, for want of slang or Verilator, or since one of
            them refuses the text.
    """
    if plain is None or not any(word in plain.text for word in ("function", "task", "automatic")):
        return None, job, verdict
    file = kept_text(job.build, "as_run", plain.text)
    holes, text = find_holes(job.dut, file), file.read_text(encoding="utf-8")
    wrong = {"zeros": 0}
    for number, pattern in enumerate(_PATTERNS if holes else ()):
        mine = on_text(job, filled(text, holes, number), "filled")
        mine = replace(mine, program=engines.build("fast", mine))
        found = judge(mine.vectors, engines.run("fast", mine), mine.dut.compare)
        wrong[pattern] = int(found.failed.sum())
        if not found.passed:
            names = tuple(hole.place for hole in holes)
            return Unset(wrong, len(mine.vectors), names, at_calls=True), mine, found
    return None, job, verdict


def find_holes(dut: Dut, file: Path) -> list[Hole]:
    """The variables in a text of a DUT that may be read before they are set in a call.

    Raises:
        SimulatorMissing: there is no slang. ElaborationError: it refuses the text, or a variable has a type
            whose bits cannot be given.
    """
    wrapper = kept_text(file.parent, NAME, wrapper_of(dut))
    compilation, _ = elaborated(Design((file, wrapper), NAME))
    ast = importlib.import_module("pyslang.ast")
    sources, whole, found = compilation.sourceManager, file.resolve(), dict[int, Hole]()

    def look(node: Any) -> Any:
        if isinstance(node, (ast.Expression, ast.Statement)):
            return ast.VisitAction.Skip
        for symbol in _unset_in(node):
            if symbol.type.isFourState and sources.getFullPath(symbol.location.buffer) == whole:
                hole, key = _hole(symbol, node, sources), symbol.location.offset
                found[key] = max(hole, found.get(key, hole), key=lambda each: len(each.given[0]))
        return None

    compilation.getRoot().visit(look)
    return list(found.values())


def filled(text: str, holes: Iterable[Hole], number: int) -> str:
    """A text with one of `_PATTERNS` in its holes."""
    data, last = text.encode(), 0
    pieces = [b"/* verilator lint_off ENUMVALUE */ "]
    for hole in sorted(holes, key=lambda each: each.at):
        pieces += [data[last : hole.at], hole.given[number].encode()]
        last = hole.at
    return b"".join([*pieces, data[last:]]).decode()


# Which variables --------------------------------------------------------------------------------------------


def _unset_in(node: Any) -> Iterator[Any]:
    """Variables of a block, or of a function or task, that a call may read before anything sets them."""
    kind = node.kind.name
    if kind == "StatementBlock":
        yield from (each for each in node if _starts_empty(each) and each.lifetime.name == "Automatic")
    elif kind == "Subroutine" and node.syntax is not None and node.syntax.kind.name in _ROUTINES:
        automatic = [each for each in node if _starts_empty(each) and each.lifetime.name == "Automatic"]
        results = [each for each in node.arguments if each.direction.name == "Out"]
        results += [] if node.returnValVar is None else [node.returnValVar]
        read = _read_before_set(node, results)
        yield from (each for each in (*automatic, *results) if each.location.offset in read)


def _starts_empty(symbol: Any) -> bool:
    return symbol.kind.name == "Variable" and symbol.initializer is None and symbol.syntax is not None


def _read_before_set(routine: Any, results: Iterable[Any]) -> set[int]:
    """Places of the variables that some path reads, or for `results` returns with, before they are set as a
    whole. More than there are, never fewer: what is set bit by bit counts as not set."""
    analysis, ast = importlib.import_module("pyslang.analysis"), importlib.import_module("pyslang.ast")
    held = {"flow": analysis.FlowAnalysis(routine)}  # emptied below: its callbacks would keep it for ever
    found: set[int] = set()

    def read(expression: Any) -> None:
        state = held["flow"].currentState  # None where no path leads
        if state is not None and expression.symbol.location.offset not in state:
            found.add(expression.symbol.location.offset)

    def named(node: Any) -> None:
        if isinstance(node, ast.NamedValueExpression):
            read(node)

    def assign(expression: Any) -> None:
        expression.right.visit(
            lambda node: read(node) if isinstance(node, ast.NamedValueExpression) else None
        )
        flow, whole = held["flow"], expression.left.kind.name == "NamedValue"
        argument = expression.right.kind.name == "EmptyArgument"  # of a call: when it is set is not known
        if whole and not argument and not expression.isCompound and flow.currentState is not None:
            flow.currentState = flow.currentState | {expression.left.symbol.location.offset}

    flow = held["flow"]
    flow.createTopState = frozenset
    flow.onStateCopy = lambda state: state
    flow.onBranchMerge = lambda one, two: two if one is None else one if two is None else one & two
    flow.onVariableRef, flow.onAssignment = read, assign
    flow.run(routine.body)
    text, state = str(routine.syntax), flow.currentState
    for symbol in results:
        early = "return" in text and symbol.kind.name == "FormalArgument"  # past the last state
        if early or (state is not None and symbol.location.offset not in state):
            found.add(symbol.location.offset)
    held.clear()
    return found


# What is written into them ----------------------------------------------------------------------------------


def _hole(symbol: Any, node: Any, sources: Any) -> Hole:
    location = symbol.location
    place = f"{Path(sources.getFileName(location)).name}:{sources.getLineNumber(location)}: {symbol.name}"
    values = [_value(symbol.type, place, exchanged) for exchanged in _PATTERNS.values()]
    if symbol.kind.name == "Variable" and symbol.syntax is not None:
        return Hole(place, symbol.syntax.sourceRange.end.offset, tuple(f" = {value}" for value in values))
    first = next((item for item in node.syntax.items if item.kind.name not in _DECLARATIONS), None)
    at = (node.syntax.end.location if first is None else first.sourceRange.start).offset
    return Hole(place, at, tuple(f" {symbol.name} = {value}; " for value in values))


def _value(kind: Any, place: str, exchanged: int) -> str:
    """Bits for a type, which `place` decides, all exchanged where `exchanged` is -1."""
    if kind.isIntegral:
        width = kind.bitWidth if kind.isFourState else 0  # the language sets others to 0
        bits = int.from_bytes(hashlib.shake_128(place.encode()).digest((width + 7) // 8))
        return f"{width}'h{(bits ^ exchanged) & (1 << width) - 1:x}" if width else "'0"
    if kind.isUnpackedArray and kind.isFixedSize:
        return f"'{{default: {_value(kind.arrayElementType, place, exchanged)}}}"
    if kind.isUnpackedStruct:
        fields = [f"{each.name}: {_value(each.type, each.name + place, exchanged)}" for each in _fields(kind)]
        return f"'{{{', '.join(fields)}}}"
    raise ElaborationError(f"{place} holds nothing at a call, and its type cannot be given bits")


def _fields(kind: Any) -> list[Any]:
    return [each for each in kind.canonicalType if each.kind.name == "Field"]
