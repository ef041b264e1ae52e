"""A unit that passed is run twice more with other bits where its text leaves them open.

A variable of an automatic function, and what a function or a task returns, is X until something sets it.
Verilator has 0 there at every call, whatever the start; no start of rtl_tb/check/starts.py shows it. What a
`case` declared full sets is anyone's choice in synthesis where no item matches (`unique`, `priority`, pragma
or attribute full_case; an `if` as well), and so it is where several match of which one alone was declared to
(`unique`, `unique0`, parallel_case): simulators take the first, synthesis may OR them. So the text is
compiled with bits written into all these, and once more with their complement; and so with bits for values
that the language has as X (rtl_tb/check/open_values.py).

Initial values of signals are another matter: synthesis for FPGAs keeps them, that for ASICs does not. A unit
that is wrong with other ones passes with a note.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import importlib
import importlib.util
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rtl_tb import engines
from rtl_tb.check import open_values
from rtl_tb.check.readings import Reading, on_text, undeclared
from rtl_tb.check.starts import SHOWN, Unset
from rtl_tb.dut.description import Dut
from rtl_tb.dut.ports import Design
from rtl_tb.dut.runs import NAME
from rtl_tb.dut.slang import DECLARATIONS, GET_PYSLANG, elaborated
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.engines.builds import kept_text
from rtl_tb.engines.job import Job
from rtl_tb.errors import ElaborationError, SimulatorMissing
from rtl_tb.runs.verdict import Verdict, judge

_AS_SIMULATED = "as simulated"
_PATTERNS = {"a pattern": 0, "its complement": -1}
"""What is written into them: bits, and -1: these bits exchanged."""
_WORDS = re.compile(
    r"\b(?:function|task|automatic|unique0?|priority|full_case|parallel_case|initial)\b"
    r"|\b(?:logic|reg|bit|byte|int|integer|shortint|longint)\b[^;()]*="
)
"""What a text without open bits does not have."""
_SIGNALS = ("ModuleDeclaration", "GenerateBlock", "InterfaceDeclaration")
"""Where signals are declared."""
_ROUTINES = ("FunctionDeclaration", "TaskDeclaration")
_FULL, _PARALLEL = ("Unique", "Priority"), ("Unique", "Unique0")
_OUTSIDE = 1 << 60
"""Texts before an expression are the last at their place, and those behind it the first."""
_PRAGMAS = re.compile(r"/\*verilator (full_case|parallel_case)\*/")
_LOOPS = ("LoopStatement", "DoWhileStatement", "ForeverStatement")


@dataclass(frozen=True)
class Hole:
    """A place of the text at which bits are open.

    Attributes:
        place: "file:line: what".
        at: byte of the text at which they can be given.
        given: the text that does it, with the bits of each of `_PATTERNS`.
        bits: how many.
        order: of several at one byte the least goes first: those that end an inner statement before those
            that end one around it (below 0), and then those that begin, the outer ones first.
    """

    place: str
    at: int
    given: tuple[str, ...]
    bits: int
    order: int = 0


Holes = Mapping[tuple[int, str], Hole]


@dataclass
class Open:
    """All that a text leaves open, and where signals get their initial values."""

    holes: dict[tuple[int, str], Hole] = field(default_factory=dict)
    """By what stands at which byte."""
    values: dict[tuple[int, str], Hole] = field(default_factory=dict)
    """Expressions, see rtl_tb/check/open_values.py."""
    initials: dict[tuple[int, str], Hole] = field(default_factory=dict)


def ask_fills(job: Job, verdict: Verdict, plain: Reading | None) -> tuple[Unset | None, Job, Verdict, str]:
    """Runs a passed check on a text of the unit with other bits in its holes, and with other initial values.

    Returns:
        As compare_starts: what the result depends on, or None; and the job and the verdict that show it, or
        those that were given. At last a note where it depends on initial values, or "".

    Raises:
        SimulatorMissing, ElaborationError: nobody looked, for want of slang or Verilator, or since one of
            them refuses the text.
    """
    if plain is None or not (_WORDS.search(plain.text) or open_values.may_have_any(plain.text)):
        return None, job, verdict, ""
    file = kept_text(job.build, "as_run", plain.text)
    found, text = find_open(job.dut, file), file.read_text(encoding="utf-8")
    for holes in (found.holes, found.values):
        wrong = {_AS_SIMULATED: 0}
        for pattern, mine, again in _runs(job, text, holes):
            wrong[pattern] = int(again.failed.sum())
            if not again.passed:
                return Unset(wrong, len(mine.vectors), _named(holes), of_text=True), mine, again, ""
    for _, _, again in _runs(job, text, found.initials):
        if not again.passed:
            return None, job, verdict, _of_initials(again, found)
    return None, job, verdict, ""


def _runs(job: Job, text: str, holes: Holes) -> Iterator[tuple[str, Job, Verdict]]:
    """A run on the text with each of `_PATTERNS` in these holes, if there are any."""
    for number, pattern in enumerate(_PATTERNS if holes else ()):
        mine = on_text(job, filled(text, holes, number), "filled")
        mine = replace(mine, program=engines.build("fast", mine))
        yield pattern, mine, judge(mine.vectors, engines.run("fast", mine), mine.dut.compare)


def _of_initials(verdict: Verdict, found: Open) -> str:
    places = _named(found.initials)
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    failed = int(verdict.failed.sum())
    return (
        "the result depends on initial values of signals, which synthesis for an ASIC drops: with others "
        f"{failed:,} of {len(verdict.vectors):,} vectors fail; given: {'; '.join(places[:SHOWN])}{more}"
    )


def _named(holes: Holes) -> tuple[str, ...]:
    return tuple(dict.fromkeys(hole.place for hole in holes.values()))


def find_open(dut: Dut, file: Path) -> Open:
    """What a text of a DUT leaves open.

    Raises:
        SimulatorMissing: there is no slang. ElaborationError: it refuses the text, or a variable has a type
            whose bits cannot be given.
    """
    if importlib.util.find_spec("pyslang") is None:
        raise SimulatorMissing(f"slang finds what a text leaves open; install it: {GET_PYSLANG}")
    wrapper = kept_text(file.parent, NAME, wrapper_of(dut))
    # Nodes of an earlier text that wait in a circle to be collected stand for memory that was given back:
    # where a new object of slang comes to lie there, nanobind ends the process ("unexpected collision").
    gc.collect()
    compilation, _ = elaborated(Design((file, wrapper), NAME))
    ast = importlib.import_module("pyslang.ast")
    sources, whole, found = compilation.sourceManager, file.resolve(), Open()
    text, scopes = file.read_bytes(), list[Any]()

    def own(place: Any) -> bool:
        return bool(sources.getFullPath(place.buffer) == whole)

    def statement(node: Any) -> Any:
        if isinstance(node, ast.Expression):
            return ast.VisitAction.Skip
        if isinstance(node, (ast.CaseStatement, ast.ConditionalStatement)) and own(node.sourceRange.start):
            _add_choice(found, _choice(node, text, sources), scopes[-1], compilation.getAttributes(node))
        return None

    def look(node: Any) -> Any:
        if not isinstance(node, ast.Symbol):
            return ast.VisitAction.Skip
        for symbol in _unset_in(node):
            if symbol.type.isFourState and not _grows(symbol.type) and own(symbol.location):
                _add(found.holes, (symbol.location.offset, "variable"), _hole(symbol, node, sources))
        for hole in _initials_of(node, text, sources) if own(node.location) else ():
            _add(found.initials, (hole.at, hole.place), hole)
        if isinstance(node, (ast.ProceduralBlockSymbol, ast.SubroutineSymbol)):
            scopes.append(node if isinstance(node, ast.SubroutineSymbol) else node.parentScope)
            node.body.visit(statement)
        return None

    compilation.getRoot().visit(look)
    _add_values(found.values, compilation, text, sources, own)
    return found


def _add_values(
    found: dict[tuple[int, str], Hole], compilation: Any, text: bytes, sources: Any, own: Any
) -> None:
    """Notes expressions whose value the text leaves open, but for those that several widths have."""
    seen: dict[tuple[int, int, str], tuple[str, str]] = {}
    different: set[tuple[int, int, str]] = set()

    def written(node: Any) -> str:
        return text[node.sourceRange.start.offset : node.sourceRange.end.offset].decode()

    def add(node: Any, what: str, given: open_values.Given) -> None:
        span, bits = node.sourceRange, node.type.bitWidth
        start, end, line = span.start.offset, span.end.offset, sources.getLineNumber(span.start)
        place = f"{Path(sources.getFileName(span.start)).name}:{line}: {' '.join(written(node).split())}"
        pattern, complement = (
            given(functools.partial(_of_place, place, exchanged)) for exchanged in _PATTERNS.values()
        )
        if seen.setdefault((start, end, what), pattern) != pattern:  # of an instance with other widths
            different.add((start, end, what))
        before, behind = zip(pattern, complement, strict=True)
        found[start, f"{what} to {end}"] = Hole(place, start, before, bits, _OUTSIDE - end)
        found[end, f"{what} from {start}"] = Hole(place, end, behind, bits, -_OUTSIDE - start)

    open_values.Look(written, own, add).below(compilation.getRoot())
    for start, end, what in different:
        del found[start, f"{what} to {end}"], found[end, f"{what} from {start}"]


def _of_place(place: str, exchanged: int, kind: Any, why: str) -> str:
    """Bits of a type for an expression."""
    return _value(kind, place + why, exchanged, whole=True)


def filled(text: str, holes: Holes, number: int) -> str:
    """A text with one of `_PATTERNS` in some of its holes."""
    data, pieces, last = text.encode(), list[bytes](), 0
    for hole in sorted(holes.values(), key=lambda each: (each.at, each.order)):
        pieces += [data[last : hole.at], hole.given[number].encode()]
        last = hole.at
    pieces.append(data[last:])
    return "/* verilator lint_off ENUMVALUE */ " + undeclared(b"".join(pieces).decode())


def _add(holes: dict[tuple[int, str], Hole], key: tuple[int, str], hole: Hole) -> None:
    """Notes a hole. Of a module with several widths that with the most bits serves all."""
    holes[key] = max(hole, holes.get(key, hole), key=lambda each: each.bits)


# Which variables --------------------------------------------------------------------------------------------


def _unset_in(node: Any) -> Iterator[Any]:
    """Variables of a block, or of a function or task, that a call may read before anything sets them."""
    kind = node.kind.name
    if kind == "StatementBlock":
        lasts = _lasts(node)
        own = [each for each in node if _starts_empty(each) and not _declared_static(each)]
        yield from (each for each in own if not lasts or each.lifetime.name == "Automatic")
    elif kind == "Subroutine" and node.syntax is not None and node.syntax.kind.name in _ROUTINES:
        own = [each for each in node if _starts_empty(each) and not _declared_static(each)]
        results = [each for each in node.arguments if each.direction.name == "Out"]
        results += [] if node.returnValVar is None else [node.returnValVar]
        read = _read_before_set(node, results)
        yield from (each for each in (*own, *results) if each.location.offset in read)


def _starts_empty(symbol: Any) -> bool:
    return symbol.kind.name == "Variable" and symbol.initializer is None and symbol.syntax is not None


def _lasts(block: Any) -> bool:
    """Whether a variable of a block may serve longer than this turn or call: in a process, or in a loop."""
    above = block.syntax
    while above is not None and above.kind.name not in _ROUTINES:
        if above.kind.name.endswith("LoopStatement"):
            return True
        above = above.parent
    return above is None


def _declared_static(symbol: Any) -> bool:
    """Whether a variable is said to last from call to call; of one that does by default synthesis keeps
    nothing."""
    return _declared(symbol, "static")


def _declared(symbol: Any, word: str) -> bool:
    modifiers = getattr(symbol.syntax.parent, "modifiers", ())
    return any(each.valueText == word for each in modifiers)


def _read_before_set(routine: Any, results: Iterable[Any]) -> set[int]:
    """Places of the variables that some path reads, or for `results` returns with, before they are set as a
    whole. More than there are, never fewer: what is set bit by bit counts as not set."""
    analysis, ast = importlib.import_module("pyslang.analysis"), importlib.import_module("pyslang.ast")
    held = {"flow": analysis.FlowAnalysis(routine)}  # emptied below: its callbacks would keep it for ever
    found: set[int] = set()
    cut: list[
        tuple[int, int]
    ] = []  # loops with a `continue`, whose end slang takes to be reached all the same

    def loop(node: Any) -> None:
        if node.kind.name.endswith("Loop") and "continue" in str(node.syntax):
            cut.append((node.sourceRange.start.offset, node.sourceRange.end.offset))

    def read(expression: Any) -> None:
        state = held["flow"].currentState  # None where no path leads
        if state is not None and expression.symbol.location.offset not in state:
            found.add(expression.symbol.location.offset)

    def named(node: Any) -> None:
        if isinstance(node, ast.NamedValueExpression):
            read(node)

    def assign(expression: Any) -> None:
        expression.right.visit(named)
        flow, whole = held["flow"], expression.left.kind.name == "NamedValue"
        at = expression.sourceRange.start.offset
        whole = whole and not any(start <= at < end for start, end in cut)
        argument = expression.right.kind.name == "EmptyArgument"  # of a call: when it is set is not known
        if whole and not argument and not expression.isCompound and flow.currentState is not None:
            flow.currentState = flow.currentState | {expression.left.symbol.location.offset}

    routine.body.visit(lambda node: loop(node) if isinstance(node, ast.Statement) else None)
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


# Which choices ---------------------------------------------------------------------------------------------


def _choice(node: Any, text: bytes, sources: Any) -> _Choice:
    where = node.sourceRange.start
    return _Choice(node, text, f"{Path(sources.getFileName(where)).name}:{sources.getLineNumber(where)}")


def _add_choice(found: Open, choice: _Choice, scope: Any, attributes: Iterable[Any]) -> None:
    """Notes a `case` or `if` that is declared full and is not, and one that is declared parallel and of
    which several branches may match."""
    node = choice.node
    if node.kind.name != "Case":
        conditions, last = _chain(node)
        if node.check.name in _FULL and last.ifFalse is None:
            _add_else(found, choice, last)
        if node.check.name in _PARALLEL and len(conditions) > 1:
            _add_overlap(found, choice, [choice.condition(each) for each in conditions], "if")
        return
    context, chosen = _constants(scope), node.expr
    values = [_plain(each.eval(context).value) for item in node.items for each in item.expressions]
    known = node.condition.name == "Normal" and None not in values
    while chosen.kind.name == "Conversion":  # to the width of the items
        chosen = chosen.operand
    said = {each.name for each in attributes if _plain(each.value) != 0} | choice.pragmas
    every = known and len(set(values)) == 1 << chosen.type.bitWidth
    full = node.check.name in _FULL or "full_case" in said
    if full and node.defaultCase is None and not every:
        at = node.syntax.endcase.location.offset
        _add_rest(found, choice, at, "default: {}", f"{choice.place}: case")
    parallel = node.check.name in _PARALLEL or "parallel_case" in said
    apart = known and len(set(values)) == len(values)
    if parallel and not apart and len(node.items) > 1:
        _add_overlap(found, choice, [choice.match(item, context) for item in node.items], "case")


@dataclass(frozen=True)
class _Choice:
    """A `case` or an `if` with its text and its place."""

    node: Any
    text: bytes
    place: str

    @property
    def start(self) -> int:
        """Its first byte, with attributes."""
        return int(self.node.syntax.sourceRange.start.offset)

    def written(self, part: Any) -> str:
        """An expression as it stands in the text."""
        span = part.sourceRange
        return self.text[span.start.offset : span.end.offset].decode()

    def condition(self, conditions: Any) -> str:
        """Whether a branch of an `if` is taken, but for those before it."""
        return " && ".join(f"({self.written(each.expr)})" for each in conditions)

    @property
    def pragmas(self) -> set[str]:
        """What is said of a `case` behind its expression; of the comments in a text these alone are left."""
        items = self.node.syntax.items[0].sourceRange.start.offset
        return set(_PRAGMAS.findall(self.text[self.node.expr.sourceRange.end.offset : items].decode()))

    def match(self, item: Any, context: Any) -> str:
        """Whether an item of a `case` matches."""
        return " || ".join(self._matches(each, context) for each in item.expressions)

    def _matches(self, each: Any, context: Any) -> str:
        chosen, kind, condition = self.node.expr, self.node.expr.type, self.node.condition.name
        mine, its = self.written(chosen), self.written(each)
        if condition == "Inside":
            return f"({mine}) inside {{{its}}}"
        if kind.isIntegral and "Conversion" in (chosen.kind.name, each.kind.name):
            # each is as wide, and as signed, as the widest of the case
            none = f"{kind.bitWidth}'{'s' * kind.isSigned}d0"
            mine, its = f"({mine}) | {none}", f"({its}) | {none}"
        value = each.eval(context).value
        if condition == "Normal" or _plain(value) is not None or not hasattr(value, "hasUnknown"):
            return f"({mine}) == ({its})"
        # Z is any bit, and X in `casex`; in `casez` X is none that a chip has.
        bits = [str(value[at]) for at in reversed(range(value.bitWidth))]
        if condition == "WildcardJustZ" and "x" in bits:
            return "1'b0"
        return f"({mine}) ==? {value.bitWidth}'b{''.join('?' if bit in 'xz' else bit for bit in bits)}"


def _chain(node: Any) -> tuple[list[Any], Any]:
    """The conditions of each branch of an `if` with its `else if`, and the last `if` of them."""
    conditions, last = [node.conditions], node
    while last.ifFalse is not None and last.ifFalse.kind.name == "Conditional":
        last = last.ifFalse
        conditions.append(last.conditions)
    return conditions, last


def _add_else(found: Open, choice: _Choice, last: Any) -> None:
    """Notes what an `if` may give where no condition holds. Whose that else is has to be plain, so the last
    branch gets a block of its own."""
    branch, place = last.ifTrue.syntax.sourceRange, f"{choice.place}: if"
    begin = Hole(
        f"{place}, where nothing matches", branch.start.offset, (" begin ",) * 2, 0, choice.start + 1
    )
    _add(found.holes, (choice.start, "begin"), begin)
    _add_rest(found, choice, branch.end.offset, " end else {}", place)


def _add_rest(found: Open, choice: _Choice, at: int, form: str, place: str) -> None:
    """Notes what a choice may give where nothing matches."""
    texts, bits = _assigned(choice)
    given = tuple(f" {form.format(each)} " for each in texts)
    hole = Hole(f"{place}, where nothing matches", at, given, bits, -choice.start - 1)
    _add(found.holes, (choice.start, "rest"), hole)


def _add_overlap(found: Open, choice: _Choice, branches: list[str], what: str) -> None:
    """Notes what a choice may give where several branches match."""
    texts, bits = _assigned(choice)
    if not bits and len(set(texts)) == 1:
        return
    count = ", ".join(f"(({each}) ? 1'b1 : 1'b0)" for each in branches)
    given = tuple(f" if ($countones({{{count}}}) > 1) {each} else " for each in texts)
    place = f"{choice.place}: {what}, of which several {'items' if what == 'case' else 'conditions'} match"
    _add(found.holes, (choice.start, "overlap"), Hole(place, choice.start, given, bits, choice.start + 1))


def _assigned(choice: _Choice, whole: bool = False) -> tuple[list[str], int]:
    """A block that gives other bits to all that a choice assigns and returns, with each of `_PATTERNS`, and
    how many. Where it leaves a loop or a block, the first goes on and the second leaves it."""
    targets, returned = _targets(choice.node, choice.text, whole), _returned(choice.node)
    jumps = _jumps(choice)
    texts = []
    for bits in _PATTERNS.values():
        given = (
            f"{name} {sign} {_value(kind, choice.place + name, bits, whole=True)};"
            for name, sign, kind in targets
        )
        last = [f"return {_value(kind, choice.place, bits, whole=True)};" for kind in returned]
        texts.append(f"begin {' '.join([*given, *(last or (jumps[-1:] if bits else []))])} end")
    return texts, sum(kind.bitstreamWidth for kind in (*(kind for _, _, kind in targets), *returned))


def _returned(node: Any) -> list[Any]:
    """The type of what a choice in a function returns, if it does."""
    ast = importlib.import_module("pyslang.ast")
    found: list[Any] = []

    def visit(each: Any) -> None:
        if isinstance(each, ast.ReturnStatement) and each.expr is not None and _has_bits(each.expr.type):
            found.append(each.expr.type)

    node.visit(visit)
    return found[:1]


def _jumps(choice: _Choice) -> list[str]:
    """The statements of a choice that leave what stands around it, as they are written: `break`, `continue`,
    `disable`, and `return` of nothing."""
    found: list[str] = []

    def visit(each: Any) -> None:
        kind = each.kind.name
        if kind in ("Break", "Continue"):
            above = each.syntax.parent
            while above != choice.node.syntax and not above.kind.name.endswith(_LOOPS):
                above = above.parent
            leaves = above == choice.node.syntax  # and no loop within the choice
        else:
            leaves = kind == "Disable" or (kind == "Return" and each.expr is None)
        if leaves:
            found.append(choice.written(each))

    ast = importlib.import_module("pyslang.ast")
    choice.node.visit(lambda each: visit(each) if isinstance(each, ast.Statement) else None)
    return found


def _constants(scope: Any) -> Any:
    """In which slang computes the constants of a scope."""
    ast = importlib.import_module("pyslang.ast")
    return ast.EvalContext(ast.ASTContext(scope, ast.LookupLocation.max))


def _plain(value: Any) -> int | None:
    """A number; None of what is no constant, or has open bits."""
    number = getattr(value, "value", value)  # an attribute's is a constant
    if isinstance(number, int):
        return number
    return int(number) if hasattr(number, "hasUnknown") and not number.hasUnknown else None


def _targets(node: Any, text: bytes, whole: bool = False) -> list[tuple[str, str, Any]]:
    """What a statement assigns, itself or by calls, as it is written, with = or <= and its type; the whole of
    which its own variables choose a part, or `whole` in any case. Nothing of variables of its own, or of what
    is no hardware."""
    ast = importlib.import_module("pyslang.ast")
    found: dict[str, tuple[str, str, Any]] = {}
    insides, called = [node.sourceRange], list[Any]()

    def own(place: Any) -> bool:
        named: list[int] = []
        place.visit(
            lambda part: (
                named.append(part.symbol.location.offset)
                if isinstance(part, ast.NamedValueExpression)
                else None
            )
        )
        return any(span.start.offset <= at < span.end.offset for span in insides for at in named)

    def add(place: Any, sign: str) -> None:
        parts = getattr(place, "streams", None) or (getattr(place, "operands", None) if own(place) else None)
        for part in parts or ():
            add(getattr(part, "operand", part), sign)
        if parts:
            return
        while (whole or own(place)) and hasattr(place, "value"):
            place = place.value
        kind, span = place.type, place.sourceRange
        if _has_bits(kind) and not own(place):
            written = text[span.start.offset : span.end.offset].decode()
            found[written] = (written, sign, kind)

    def visit(each: Any) -> None:
        if isinstance(each, ast.AssignmentExpression):
            add(each.left, "<=" if each.isNonBlocking else "=")
        elif isinstance(each, ast.UnaryExpression) and each.op.name.endswith(("increment", "decrement")):
            add(each.operand, "=")
        elif isinstance(each, ast.CallExpression) and not each.isSystemCall:
            routine = each.subroutine
            if routine.syntax is not None and routine.location not in called:
                called.append(routine.location)
                insides.append(routine.syntax.sourceRange)
                routine.body.visit(visit)

    node.visit(visit)
    return list(found.values())


# Which initial values ---------------------------------------------------------------------------------------


def _initials_of(node: Any, text: bytes, sources: Any) -> Iterator[Hole]:
    """The initial value in the declaration of a signal, or those that an `initial` gives."""
    ast = importlib.import_module("pyslang.ast")
    line = sources.getLineNumber(node.location)
    place = f"{Path(sources.getFileName(node.location)).name}:{line}"
    if node.kind.name == "Variable":
        given = node.initializer
        signal = node.syntax is not None and node.syntax.parent.parent.kind.name in _SIGNALS
        if given is None or not signal or _declared(node, "const") or not _has_bits(node.type):
            return
        place = f"{place}: {node.name}"
        span, bits = given.sourceRange, node.type.bitstreamWidth
        values = [_value(node.type, place, exchanged, whole=True) for exchanged in _PATTERNS.values()]
        yield Hole(place, span.start.offset, tuple(f" {value} /* " for value in values), bits)
        yield Hole(place, span.end.offset, (" */ ",) * 2, bits)
    elif isinstance(node, ast.ProceduralBlockSymbol) and node.procedureKind.name == "Initial":
        texts, bits = _assigned(_Choice(node.body, text, place), whole=True)
        given_too = tuple(f" initial {each} " for each in texts)
        yield Hole(f"{place}: initial", node.syntax.sourceRange.end.offset, given_too, bits)


def _has_bits(kind: Any) -> bool:
    """Whether values of a type are hardware."""
    return bool(kind.isIntegral or kind.isUnpackedStruct or (kind.isUnpackedArray and not _grows(kind)))


# What is written into them ----------------------------------------------------------------------------------


def _hole(symbol: Any, node: Any, sources: Any) -> Hole:
    location = symbol.location
    place = f"{Path(sources.getFileName(location)).name}:{sources.getLineNumber(location)}: {symbol.name}"
    values = [_value(symbol.type, place, exchanged) for exchanged in _PATTERNS.values()]
    bits = symbol.type.bitstreamWidth
    if symbol.kind.name == "Variable" and symbol.syntax is not None and symbol.lifetime.name == "Automatic":
        return Hole(
            place, symbol.syntax.sourceRange.end.offset, tuple(f" = {value}" for value in values), bits
        )
    first = next((item for item in node.syntax.items if item.kind.name not in DECLARATIONS), None)
    at = (node.syntax.end.location if first is None else first.sourceRange.start).offset
    return Hole(place, at, tuple(f" \\{symbol.name} = {value}; " for value in values), bits)


def _value(kind: Any, place: str, exchanged: int, whole: bool = False) -> str:
    """Bits for a type, which `place` decides, all exchanged where `exchanged` is -1. Two states are 0 unless
    `whole`, since the language starts them so."""
    if kind.isIntegral:
        width = kind.bitWidth if whole or kind.isFourState else 0
        bits = int.from_bytes(hashlib.shake_128(place.encode()).digest((width + 7) // 8))
        sign = "s" * kind.isSigned
        return f"{width}'{sign}h{(bits ^ exchanged) & (1 << width) - 1:x}" if width else "'0"
    if kind.isUnpackedArray and not _grows(kind):
        return f"'{{default: {_value(kind.arrayElementType, place, exchanged, whole)}}}"
    if kind.isUnpackedStruct:
        values = [
            (each.name, _value(each.type, each.name + place, exchanged, whole)) for each in _fields(kind)
        ]
        return f"'{{{', '.join(f'{name}: {value}' for name, value in values)}}}"
    raise ElaborationError(f"{place} holds nothing at a call, and its type cannot be given bits")


def _grows(kind: Any) -> bool:
    """Whether it is a queue or the like, which begins empty."""
    return kind.isUnpackedArray and not kind.isFixedSize


def _fields(kind: Any) -> list[Any]:
    return [each for each in kind.canonicalType if each.kind.name == "Field"]
