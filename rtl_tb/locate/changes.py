"""The small changes of a unit's text that are tried: one operator, constant, signal, condition, statement or
register at a time.

The places are expressions of the elaborated design, read with pyslang, so that comments, macros, and branches
that a parameter leaves out are none. Two kinds: a *choice* is made while the unit runs (an expression of an
assignment, a condition, an input of an instance), so that one build holds all of them
(rtl_tb/locate/selector.py), as it does what may be missing (rtl_tb/locate/missing.py); a
*constant* has to stand before (parameters, widths, bounds of loops), and costs a build of its own.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from golden.budget import Budget
from rtl_tb.dut.description import Dut
from rtl_tb.dut.ports import Design
from rtl_tb.dut.slang import GET_PYSLANG, elaborated
from rtl_tb.engines.builds import HDL
from rtl_tb.errors import SimulatorMissing
from rtl_tb.locate.exchanged import (
    as_another,
    exchanged_arms,
    exchanged_inputs,
    exchanged_priorities,
    exchanged_values,
    set_alone,
)
from rtl_tb.locate.forms import CONTROL, REDUCTIONS, Form, Forms, bare, written
from rtl_tb.locate.mirrored import OPERATORS, mirrored
from rtl_tb.locate.missing import CLOSED, ELSE, GUARD, OPENED, Addition, Missing, Stage
from rtl_tb.locate.scopes import Names, Scopes
from rtl_tb.locate.shapes import Shapes
from rtl_tb.locate.terms import TERM, Family, Terms, is_joined

_OTHERS = {
    "+": ("-", "*"),
    "-": ("+", "*"),
    "*": ("+", "-"),
    "/": ("*", "%"),
    "%": ("/", "*"),
    "&": ("|", "^"),
    "|": ("&", "^"),
    "^": ("|", "&"),
    "&&": ("||",),
    "||": ("&&",),
    "<": ("<=", ">", ">=", "==", "!="),
    "<=": ("<", ">=", ">", "==", "!="),
    ">": (">=", "<", "<=", "==", "!="),
    ">=": (">", "<=", "<", "==", "!="),
    "==": ("!=", ">=", "<=", ">", "<"),
    "!=": ("==", ">", "<", ">=", "<="),
    "<<": (">>", ">>>"),
    ">>": ("<<", ">>>"),
    ">>>": (">>", "<<<"),
    "<<<": (">>>", ">>"),
}
"""What an operator may have to be."""
_OF_WORDS = {"&": ("+", "&&"), "|": ("+", "||"), "^": ("+", "-"), "&&": ("&",), "||": ("|",)}
"""The same where an operand has several bits."""
_LOGICAL = ("&&", "||")
_ALONE = {"+": 2, "-": 2, "&": 2, "|": 2, "^": 2, "<<": 1, ">>": 1, ">>>": 1}
"""Operators of which the first operand may be all, or either of two."""
_NUMBERS = {"IntegerLiteral", "UnbasedUnsizedIntegerLiteral"}
_FAR, _COUNTS = (2, -2, 3, -3), 8
"""What is added to a number of a choice that is no less than this: a limit, or a count of bits."""
_WORD = 64
"""Bits of a written number of which each may be wrong: a word of a NaN, an infinity, a mask."""
_LONGEST = 2000
"""Characters of a text that is tried."""
_SHORT = 80
"""Characters of an expression that is tried in the place of the register that takes it."""
_LIKELY = 2
"""Numbers of a place that are tried before further ones of any place."""
_NAMES, _MORE_NAMES = 6, 16
"""Signals that may stand for another one: those with the most similar names. More come behind all else that
may stand at a place, where a name stands alone."""
_PARAMETERS = 2
"""The same of parameters."""
_ARRAYS, _ELEMENTS = 2, 8
"""Arrays, and elements of each, that may stand for a signal."""
_CALLS = 2
_PLAIN = re.compile(r"[\w.$']+(?:\[[^\[\]]*\])*|\W+")
"""A name, a number, an element of a vector, or an operator."""
_BINDING = ("!", "~", "+", "-", "*", "&", "|", "^", "<<", ">>", "<", ">", "==")
_BITS_MORE = (1, 2, 3, 4, 8, -1, -2, -4)
"""What is added to the value of a parameter."""
_REFERS = re.compile(r"=[^,;]*[A-Za-z_]\w*")
"""A value of a declaration that is no number."""
_VARIABLE = re.compile(r"^(?:logic|reg|bit)\b\s*")
_SIGN = re.compile(r"\bsigned\s*")
_LITERAL = re.compile(r"(?:(\d+)\s*)?'(s?)([bdohBDOH])([0-9a-fA-F_]+)$")


@dataclass(frozen=True)
class Place:
    """A stretch of a source: characters `start` to `end`."""

    file: Path
    start: int
    end: int

    def lies_in(self, other: Place) -> bool:
        """Whether it is a part of another place."""
        return self.file == other.file and other.start <= self.start and self.end <= other.end


@dataclass(frozen=True)
class Change:
    """One place, its text and what stands there instead.

    Attributes:
        form: of a text that is added, with nothing before it, one of rtl_tb/locate/missing.py.
        when: see Addition there.
        rest: the same, where it stands.
        beside: texts that are added elsewhere with it: declarations, statements of registers.
        too: another place, and what stands there then.
        pattern, term: of one of several texts that differ in a bit that they read: the text with TERM in its
            place, and the bit.
    """

    place: Place
    before: str
    after: str
    form: str = ""
    when: str = ""
    rest: Place | None = None
    beside: tuple[tuple[Place, str], ...] = ()
    too: tuple[tuple[Place, str], ...] = ()
    pattern: str = ""
    term: str = ""

    @property
    def pieces(self) -> list[tuple[Place, str]]:
        """All that is written, place by place."""
        word = f" {self.after} " if self.form else self.after
        if self.form in (ELSE, GUARD):
            word = OPENED.format(self.after) if self.form == GUARD else f" else {self.after}"
        return [(self.place, word), *self.beside, *self.too]

    @property
    def plain(self) -> bool:
        """Whether it is all in its text, wherever that is written: nothing elsewhere, nothing around it."""
        return not self.beside and not self.too and self.form not in (ELSE, GUARD)

    @property
    def asked(self) -> Place:
        """Where a text that holds every choice asks for it: an item in the `default` that runs without it."""
        return self.rest or self.place

    @property
    def choices(self) -> dict[Place, str]:
        """Where a text that holds every choice asks for it, and what stands there then."""
        return {self.asked: self.after, **dict(self.too)}

    def meets(self, other: Change) -> bool:
        """Whether one of two changes is within the other."""
        here, there = ([one.place, *(place for place, _ in one.too)] for one in (self, other))
        return any(one.lies_in(two) or two.lies_in(one) for one in here for two in there)


class Group(Enum):
    """Choices that have a build of their own, in the order in which they are tried: the likeliest and fewest
    first, as the time may end before the others are compiled."""

    TOKENS = auto()
    """Another operator, signal or number, and what is added or taken away."""
    FORMS = auto()
    """Another form of an expression, and exchanges."""
    REST = auto()
    """More of the first, of a text that has more than is compiled in the time: the less likely of each
    place."""
    TERMS = auto()
    """A bit more in an expression."""
    JOINED = auto()
    """Two bits more, of two operands."""


@dataclass
class Changes:
    """All that can be tried in a design, each place with what may stand there."""

    choices: dict[Place, dict[str, None]] = field(default_factory=dict)
    forms: dict[Place, dict[str, None]] = field(default_factory=dict)
    """Choices that are another form of an expression."""
    constants: dict[Place, dict[str, None]] = field(default_factory=dict)
    once: set[Place] = field(default_factory=set)
    """Types of variables that are declared with a value of a signal, or without a sign that others have: they
    are tried first."""
    parameters: dict[Place, None] = field(default_factory=dict)
    """Values of parameters and local parameters that nothing overrides; the constants in them."""
    families: dict[Place, dict[str, tuple[str, str]]] = field(default_factory=dict)
    """Choices that differ in a bit that they read; of each its pattern and the bit."""
    added: dict[Change, None] = field(default_factory=dict)
    """Choices that are added to the text."""
    in_subroutines: set[Place] = field(default_factory=set)
    """Choices in functions, which a constant may need."""
    types: dict[Place, tuple[int, bool]] = field(default_factory=dict)
    """The bits of numbers, as the expression around them takes them, and whether they have a sign."""
    mixed: set[Place] = field(default_factory=set)
    """Numbers that have other bits in another instance: one text cannot hold them beside their choices."""
    texts: dict[Path, str] = field(default_factory=dict)
    """The sources."""
    not_read: dict[str, None] = field(default_factory=dict)
    """What of them could not be looked at, as "file:line", or why."""
    room: int = sys.maxsize
    """How many choices the first group has."""
    _ends: dict[Path, list[int]] = field(default_factory=dict)
    """Where the lines of each source end."""

    def line(self, change: Change) -> int:
        """The number of the line of a change, from 1."""
        return self._line(change.place)

    def lines(self, change: Change) -> set[tuple[Path, int]]:
        """The file and line of each piece, and of where it is asked for."""
        places = [change.asked, *(place for place, _ in change.pieces)]
        return {(place.file, self._line(place)) for place in places}

    def _line(self, place: Place) -> int:
        if place.file not in self._ends:
            self._ends[place.file] = [end.start() for end in re.finditer("\n", self.texts[place.file])]
        return bisect_left(self._ends[place.file], place.start) + 1

    def applied(self, chosen: Iterable[Change]) -> dict[Path, str]:
        """The texts of the files in which changes stand, with them."""
        found: dict[Path, str] = {}
        pieces = [piece for one in chosen for piece in one.pieces]
        for place, after in sorted(pieces, key=lambda piece: piece[0].start, reverse=True):
            text = found.get(place.file, self.texts[place.file])
            before, behind = text[: place.start], text[place.end :]
            if place.start < place.end and _binds(before, after, behind):
                after = f"({after})"
            found[place.file] = before + after + behind
        return found

    def of_choices(self, groups: Iterable[Group] = tuple(Group)) -> list[Change]:
        """Every choice of some groups; what stands in two is of the first. None where a place is `mixed`."""
        every = [change for group in groups for change in self._of_group(group)]
        return [change for change in every if self.mixed.isdisjoint(change.choices)]

    def _of_group(self, group: Group) -> Iterator[Change]:
        if group is Group.FORMS:
            yield from self._listed(self._forms_alone())
            yield from (one for one in self.added if one.too)
            return
        if group in (Group.TOKENS, Group.REST):
            tokens = [*self._listed(self.choices), *(one for one in self.added if not one.too)]
            first = set(in_turn(tokens)[: self.room])
            yield from (one for at, one in enumerate(tokens) if (at in first) == (group is Group.TOKENS))
            return
        for place, others in self.families.items():
            before, earlier = self.texts[place.file][place.start : place.end], (self.choices, self.forms)
            for after, (pattern, term) in others.items():
                its = Group.JOINED if is_joined(term) else Group.TERMS
                if its is group and not any(after in known.get(place, ()) for known in earlier):
                    yield Change(place, before, after, pattern=pattern, term=term)

    def _forms_alone(self) -> dict[Place, list[str]]:
        known = self.choices
        return {
            at: [one for one in others if one not in known.get(at, ())] for at, others in self.forms.items()
        }

    def of_constants(self, hinted: Container[tuple[Path, int]] = ()) -> list[Change]:
        """Every constant: those on lines of `hinted` first, then the likeliest of each place, those of
        parameters first."""
        listed = self._listed(self.constants)
        named = {place for place in self.constants if any(place.lies_in(whole) for whole in self.parameters)}
        lines = {
            place: place in self.once or (place.file, self._line(place)) in hinted for place in self.constants
        }
        rank = {
            (place, after): number
            for place, others in self.constants.items()
            for number, after in enumerate(others)
        }

        def order(one: Change) -> tuple[bool, bool, bool, int]:
            here, number = lines[one.place], rank[one.place, one.after]
            return not here, not here and number >= _LIKELY, one.place not in named, number

        return sorted(listed, key=order)

    def _listed(self, found: Mapping[Place, Iterable[str]]) -> list[Change]:
        return [
            Change(place, self.texts[place.file][place.start : place.end], after)
            for place, others in found.items()
            for after in others
        ]


def read(path: Path) -> str:
    """The text of a source, every byte and every end of a line as it is; `write` writes it."""
    return path.read_bytes().decode("utf-8", "surrogateescape")


def write(path: Path, text: str) -> None:
    """Writes what `read` has read."""
    path.write_bytes(text.encode("utf-8", "surrogateescape"))


def design_of(dut: Dut) -> Design:
    """What slang reads of a DUT."""
    sources = [path for path in dut.sources if path.suffix in HDL and path.suffix != ".vlt"]
    return Design(sources, dut.top, dut.include, dut.defines, dut.parameters, dut.libraries, dut.types)


class _Ended(Exception):
    """The time to look for changes is over."""


def find_changes(dut: Dut, budget: Budget | None = None) -> Changes:
    """The changes of a DUT's sources; those of `not_read` that could not be looked at, or not in the time of
    the budget, are left out.

    Raises:
        SimulatorMissing: pyslang is not installed. ElaborationError: it cannot read the design.
    """
    if importlib.util.find_spec("pyslang") is None:
        raise SimulatorMissing(f"pyslang reads the sources that are changed; install it: {GET_PYSLANG}")
    design = design_of(dut)
    compilation, top = elaborated(design)
    texts = {path.resolve(): read(path) for path in design.sources}
    finder = _Finder(compilation.sourceManager, _driven(compilation), Changes(texts=texts), budget)
    try:
        for package in compilation.getPackages():
            package.visit(partial(finder.known, everywhere=True))
        compilation.getRoot().visit(finder.known)
        finder.below(top)
        for package in compilation.getPackages():
            finder.below(package)
        for tree in compilation.getSyntaxTrees():
            tree.root.visit(finder.constant)
    except _Ended:
        finder.found.not_read["the rest of the text, for want of time"] = None
    return finder.settled()


def _driven(compilation: Any) -> set[Any]:
    """Where the signals are declared that something drives; slang looks at one instance of a module."""
    ast, found = importlib.import_module("pyslang.ast"), set[Any]()
    analysis = importlib.import_module("pyslang.analysis").AnalysisManager()
    analysis.analyze(compilation)

    def note(node: Any) -> Any:
        if isinstance(node, (ast.Expression, ast.Statement)):
            return ast.VisitAction.Skip
        given = isinstance(node, ast.ValueSymbol) and node.initializer is not None
        if given or (isinstance(node, ast.ValueSymbol) and analysis.getDrivers(node)):
            found.add((node.location.buffer, node.location.offset))
        return None

    compilation.getRoot().visit(note)
    return found


class _Finder:
    """Walks an elaborated design. A module that stands in it several times is read once for all of the same
    parameters, and a place is noted once."""

    def __init__(self, manager: Any, driven: set[Any], found: Changes, budget: Budget | None = None) -> None:
        self.budget = Budget(float("inf")) if budget is None else budget
        self.ast, self.syntax = (importlib.import_module(f"pyslang.{name}") for name in ("ast", "syntax"))
        self.manager, self.found = manager, found
        self.files: dict[Any, Path] = {}
        """The file of each buffer of slang's."""
        self.wide: dict[Path, list[int]] = {}
        """Where bytes stand in a text that begin no character."""
        self.scopes_read = Scopes()
        self.by_type: dict[Any, dict[str, Names]] = {}
        """The signals of each scope, by what they are like."""
        self.alikes: dict[tuple[Any, str, int], list[str]] = {}
        """Of a signal of a scope those that may stand for it."""
        self.arrays: dict[tuple[Any, str], dict[str, Any]] = {}
        """The arrays of a scope by what their elements are like: the range of each."""
        self.in_subroutine = False
        self.several = False
        """Whether it is in a function that is called several times, each of which is compiled with it."""
        self.missing = Missing(self._text, self._alike, driven, self.scopes_read)
        self.forms = Forms(self._text, self._alike, literals)
        self.terms = Terms(self._text, self._around, self.scopes_read)
        self.shapes = Shapes(self._text, self._mirrors)
        self.bodies: set[Any] = set()
        """Modules that were read, each with its parameters."""
        self.root: Place | None = None
        """The value or condition whose parts are looked at."""
        self.before: dict[Any, str] = {}
        """What registers take, by where they are declared."""
        self.steps: list[Place] = []
        """What loops do after each turn: changed, they would never end."""
        self.chosen: set[Place] = set()
        """Operators and literals of choices."""
        self.read: set[Place] = set()
        """Modules, branches and values of parameters that some instance has."""
        self.left_out: set[Place] = set()
        """Those that some instance leaves out."""
        self.parameters: dict[tuple[str, str], tuple[str, str]] = {}
        """Of each the type and the value, by the module that knows it ("": each does) and its name."""
        self.scope = 0
        """The number of the instance, or of the turn of a loop, that is read, of `scopes`."""
        self.scopes = 0
        self.typed: dict[tuple[int, Place], tuple[int, bool]] = {}
        """What stands at a place in one of them."""
        self.exchanged: dict[tuple[int, Place], tuple[int, bool]] = {}
        """The same of parts that are exchanged, until all is read: the text around may take them wider."""

    def settled(self) -> Changes:
        """All that was found."""
        for (scope, place), kind in self.exchanged.items():
            self._note_kind(scope, place, kind)
        return self.found

    def _within(self, node: Any) -> None:
        """Looks at an instance or a block of a loop: what is as wide as a parameter says may be so there
        alone."""
        outer, self.scopes = self.scope, self.scopes + 1
        self.scope = self.scopes
        for each in node:
            self.below(each)
        self.scope = outer

    def known(self, node: Any, everywhere: bool = False) -> Any:
        """Notes a parameter, which may stand for another one in its module, or `everywhere`."""
        self._look()
        if isinstance(node, (self.ast.Expression, self.ast.Statement)):
            return self.ast.VisitAction.Skip
        if isinstance(node, self.ast.ParameterSymbol) and node.syntax is not None and node.type.isIntegral:
            module = "" if everywhere else _module_of(node)
            self.parameters.setdefault((module, node.name), (str(node.type), str(node.value)))
        return None

    def below(self, node: Any) -> None:
        """Looks at a symbol, a statement or an expression, and at all in it."""
        if node is not None:
            node.visit(self.visit)

    def visit(self, node: Any) -> Any:
        """One node; tells the walk whether to go on below it. What of the text has a meaning that nobody
        foresaw is left out, and the rest is looked at."""
        self._look()
        try:
            return self._visit(node)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            span = getattr(node, "sourceRange", None)
            start = node.location if span is None else span.start
            where = f"{self.manager.getFileName(start)}:{self.manager.getLineNumber(start)}"
            self.found.not_read[where] = None
            return self.ast.VisitAction.Skip

    def _look(self) -> None:
        if self.budget.over():
            raise _Ended

    def _visit(self, node: Any) -> Any:
        ast = self.ast
        match node:
            case ast.ParameterSymbol():
                self._note_use(getattr(node.syntax, "initializer", None), not node.isOverridden)
                if node.initializer is not None and not node.isOverridden:
                    self._note_parameter(node.initializer)
            case ast.PortSymbol() | ast.VariableSymbol() | ast.GenvarSymbol():
                pass  # widths, and what is set once
            case ast.GenerateBlockSymbol() if node.isUninstantiated:
                self._note_use(node.syntax, used=False)
            case ast.GenerateBlockSymbol():
                self._note_use(node.syntax)
                self._within(node)
            case ast.InstanceSymbol():
                self._exchange(exchanged_inputs(node, self._text))
                return ast.VisitAction.Advance
            case ast.InstanceBodySymbol() if self._again(node):
                pass
            case ast.InstanceBodySymbol():
                self._note_use(node.definition.syntax)
                self._note_all(as_another(_given(node), self._text, self.scopes_read))
                self._add(self.missing.in_module(node))
                self.before |= self.missing.registers(node)
                self._within(node)
            case ast.ProceduralBlockSymbol():
                self._add(self.missing.in_procedure(node))
                self._add_stages(self.missing.stages(node))
                return ast.VisitAction.Advance
            case ast.BlockStatement():
                self._exchange(exchanged_values(node, self._text))
                for one, two in pairwise(getattr(node.body, "list", [])):
                    if getattr(one, "ifFalse", None) is None:
                        self._exchange_all(exchanged_priorities(one, two, self._text))
                return ast.VisitAction.Advance
            case ast.SubroutineSymbol():
                self.in_subroutine = True
                self.several = self._several(node.name)
                self.below(node.body)
                self.in_subroutine = self.several = False
            case ast.VariableDeclStatement():
                if str(node.symbol.lifetime).endswith("Automatic"):
                    self.below(node.symbol.initializer)
            case ast.TimedStatement():
                self.below(node.stmt)
            case ast.ForLoopStatement():
                self.below(node.body)
            case ast.CaseStatement():
                self._exchange(exchanged_arms(node, self._text))
                self.below(node.expr)
                for item in node.items:
                    for label in item.expressions:
                        if bare(label).kind.name == "IntegerLiteral":
                            self._literal(bare(label))
                    self.below(item.stmt)
                self.below(node.defaultCase)
            case ast.ConditionalStatement():
                for condition in node.conditions:
                    self._condition(condition.expr)
                if node.ifFalse is not None:
                    self._exchange_all(exchanged_priorities(node, node.ifFalse, self._text))
                self._note_flag(node)
                return ast.VisitAction.Advance
            case ast.Expression():
                return self._expression(node)
            case _:
                return ast.VisitAction.Advance
        return ast.VisitAction.Skip

    def _again(self, body: Any) -> bool:
        """Whether an instance is as one that was read."""
        given = tuple((each.name, self._said_of(each), each.isOverridden) for each in body.parameters)
        key = body.definition.name, given
        again = key in self.bodies
        self.bodies.add(key)
        return again

    def _said_of(self, parameter: Any) -> str:
        """The value of a parameter, or its type: what it is and how many bits it has, since a name may be
        declared in each instance anew."""
        if not isinstance(parameter, self.ast.TypeParameterSymbol):
            return str(parameter.value)
        kind = parameter.targetType.type
        return f"{kind} {kind.canonicalType} {kind.bitstreamWidth}"

    def _expression(self, node: Any) -> Any:
        """An expression whose value is read while the unit runs."""
        ast = self.ast
        self._forms(node)
        match node:
            case ast.AssignmentExpression():
                value = node.right
                while isinstance(value, ast.ConversionExpression):
                    value = value.operand
                if isinstance(value, ast.EmptyArgumentExpression):  # an output of an instance
                    return ast.VisitAction.Skip
                if not node.isCompound:
                    self._assigned(node.right)
                    if not self._calls(node):
                        self._note_families(self.terms.enabled(node))
                        self._note_families(self.terms.gathered(node))
                    self._target(node.left)
                    if node.isNonBlocking:  # a register may be set at any bit while the unit runs
                        self._bit_set(node.left)
                self.below(node.right)
            case ast.RangeSelectExpression():
                self._selected(node)
                if not str(node.selectionKind).endswith("Simple"):
                    self.below(node.left)
            case ast.ElementSelectExpression():
                self._selected(node)
                if isinstance(node.selector, ast.IntegerLiteral):
                    self._literal(node.selector, of=node.value.type)
                self.below(None if isinstance(node.selector, ast.IntegerLiteral) else node.selector)
            case ast.MemberAccessExpression():
                self._selected(node)
            case ast.ReplicationExpression():
                self.below(node.concat)
            case ast.CallExpression() if node.isSystemCall and node.subroutineName not in (
                "$signed",
                "$unsigned",
            ):
                pass
            case ast.NamedValueExpression():
                self._named(node)
            case ast.IntegerLiteral():
                self._literal(node)
            case ast.BinaryExpression():
                self._binary(node)
                if node.left.kind.name == "LValueReference":
                    self.below(node.right)
                    return ast.VisitAction.Skip
                return ast.VisitAction.Advance
            case ast.UnaryExpression():
                self._unary(node)
                return ast.VisitAction.Advance
            case ast.ConditionalExpression():
                for condition in node.conditions:
                    self._condition(condition.expr)
                return ast.VisitAction.Advance
            case ast.HierarchicalValueExpression() | ast.DataTypeExpression():
                pass
            case _:
                return ast.VisitAction.Advance
        return ast.VisitAction.Skip

    # What may stand instead --------------------------------------------------------------------------------

    def _forms(self, node: Any) -> None:
        """Other forms of an expression; those of a whole value come with the first look at any part of it."""
        compound = node.kind.name == "BinaryOp" and node.left.kind.name == "LValueReference"
        place = self._place(node.sourceRange)
        if place is None or compound or node.kind.name == "Assignment":
            return
        self._note_type(place, node)
        root = self.root is None or not place.lies_in(self.root)
        if root:
            self.root = place
        if node.kind.name == "Call" or not self._calls(node):
            self._note_all(self.forms.of(node, root))
            self._note_all(self.shapes.of(node))
            self._note_families(self.terms.of(node, root))

    def _calls(self, node: Any) -> bool:
        """Whether an expression calls a function of the design: each further text of it is compiled with all
        choices of the function once more."""
        found: list[Any] = []

        def note(part: Any) -> None:
            if isinstance(part, self.ast.CallExpression) and not part.isSystemCall:
                found.append(part)

        node.visit(note)
        return bool(found)

    def _note_all(self, forms: Iterable[Form]) -> None:
        for node, after in forms:
            self._note(node, after, form=True)

    def _several(self, name: str) -> bool:
        """Whether a text calls a function more than once; its declaration may look like a call."""
        word = re.compile(rf"\b{re.escape(name)}\s*\(")
        return sum(len(word.findall(text)) for text in self.found.texts.values()) > _CALLS

    def _note_families(self, families: Iterable[Family]) -> None:
        for node, pattern, terms in () if self.several else families:
            if TERM not in pattern:
                self._note(node, pattern, form=True)
            for term in terms:
                self._note(node, pattern.replace(TERM, term), (pattern, term))

    def _exchange(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Two expressions, each in the other's place."""
        for pair in pairs:
            self._exchange_all([pair])

    def _exchange_all(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Several pairs of expressions at once, each in the other's place."""
        written: list[tuple[Place, str]] = []
        for pair in pairs:
            one, two = (self._place(each.sourceRange) for each in pair)
            left, right = (self._text(each) for each in pair)
            if one is None or two is None or left is None or right is None or one.file != two.file:
                return
            if one.end > two.start or any("\n" in text or "//" in text for text in (left, right)):
                return
            written += [(one, right), (two, left)] if left != right else []
            for place, node in ((one, pair[0]), (two, pair[1])):
                if _is_number(node.type):
                    self.exchanged.setdefault((self.scope, place), _type_of(node))
        if written:
            (place, after), *too = written
            before = self.found.texts[place.file][place.start : place.end]
            self.found.added[Change(place, before, after, too=tuple(too))] = None

    def _note_flag(self, statement: Any) -> None:
        """A bit that is set and never cleared, as one that is what sets it."""
        if (flag := set_alone(statement, self._text)) is None:
            return
        condition, value, after = flag
        one, two = (self._place(each.sourceRange) for each in (condition, value))
        if one is None or two is None or one.end > two.start or one.file != two.file:
            return
        if "\n" in after or "//" in after or CONTROL.search(after):
            return
        for place, node in ((one, condition), (two, value)):
            self.exchanged.setdefault((self.scope, place), _type_of(node))
        before = self.found.texts[one.file][one.start : one.end]
        self.found.added[Change(one, before, "1'b1", too=((two, after),))] = None

    def _binary(self, node: Any) -> None:
        operator = getattr(written(node), "operatorToken", None)
        if operator is None or (place := self._place(operator.range)) is None:
            return
        self.chosen.add(place)
        words = any(_is_number(side.type) and side.type.bitWidth > 1 for side in (node.left, node.right))
        more = _OF_WORDS.get(operator.valueText, ()) if words else ()
        for other in (*_OTHERS.get(operator.valueText, ()), *more):
            self._note(node, self._with_operator(node, operator, other))
        if operator.valueText in _LOGICAL:
            for side in (node.left, node.right):
                self._note(node, self._text(side))
        sides = (node.left, node.right)
        for side, other in list(zip(sides, sides[::-1], strict=True))[: _ALONE.get(operator.valueText, 0)]:
            from_above = operator.valueText == "-" and side is node.right  # 7 - k for k
            if from_above or bare(other).kind.name not in _NUMBERS:  # else a 0 is tried
                self._note(node, self._text(side), form=True)
        if operator.valueText in OPERATORS:
            self._may_lack(node, operator.valueText)

    def _may_lack(self, node: Any, sign: str) -> None:
        """One operand more, which mirrors one that is there; or one as the mirror of another."""
        whole = self._text(node)
        for side in (node.left, node.right):
            for other in self._mirrors(node, self._text(side) or ""):
                if whole is not None and other not in whole:
                    self._note(node, f"{whole} {sign} ({other})")
        for side, after in self.shapes.sides(node):
            self._note(side, after)

    def _mirrors(self, node: Any, operand: str) -> Iterator[str]:
        """A text with its names exchanged as those are that an expression reads."""
        alike, scopes = dict[str, list[str]](), dict[Any, None]()

        def note(part: Any) -> None:
            if isinstance(part, self.ast.NamedValueExpression) and part.symbol.parentScope is not None:
                alike[part.symbol.name] = self._alike(part.symbol)
                scopes[part.symbol.parentScope] = None

        node.visit(note)
        named = [self.scopes_read.names(scope) for scope in scopes]
        names = named[0] if len(named) == 1 else frozenset[str]().union(*named)
        yield from mirrored(operand, alike, names)

    def _unary(self, node: Any) -> None:
        operand, operator = self._text(node.operand), str(node.op).rsplit(".", 1)[-1]
        if operand is None:
            return
        if operator in REDUCTIONS:
            sign = REDUCTIONS[operator]
            for other in REDUCTIONS.values():
                if other != sign and (len(other) == len(sign) or other[-1] == sign[-1]):
                    self._note(node, f"{other}({operand})")
            self._other_ranges(node, sign)
        elif operator == "LogicalNot":
            self._note(node, f"|({operand})")
        elif operator in ("BitwiseNot", "Minus"):
            self._note(node, f"({operand})")

    def _other_ranges(self, node: Any, sign: str) -> None:
        """Reductions of one bit more or less."""
        inner = node.operand
        if not isinstance(inner, self.ast.RangeSelectExpression) or not str(inner.selectionKind).endswith(
            "Simple"
        ):
            return
        value, left, right = (self._text(part) for part in (inner.value, inner.left, inner.right))
        for after in _other_bounds(inner, left, right):
            self._note(node, f"{sign}{value}[{after}]")

    def _named(self, node: Any) -> None:
        name = node.symbol.name
        if CONTROL.search(name) or self._text(node) != name:  # escaped, or of a package
            return
        for other in [*self._alike(node.symbol), *self._elements(node.symbol), *_values_beside(node)]:
            self._note(node, other)
        if node.symbol.kind.name == "Parameter" and (place := self._place(node.sourceRange)) is not None:
            self.chosen.add(place)
            for other in self._other_parameters(name, _module_of(node.symbol)):
                self._note(node, other)
        if before := self._before(node.symbol):
            self._note(node, before)
        if _is_number(node.symbol.type) and node.symbol.kind.name not in ("Parameter", "EnumValue"):
            self._note(node, f"{'!' if node.symbol.type.bitWidth == 1 else '~'}{name}")
        for other in self._alike(node.symbol, _MORE_NAMES):
            self._note(node, other)

    def _selected(self, node: Any) -> None:
        """Another signal, or the next bits of the same one."""
        text, base = self._text(node), node.value
        if text is None or not node.type.isIntegral:
            return
        if isinstance(base, self.ast.NamedValueExpression) and text.startswith(base.symbol.name):
            before = self._before(base.symbol)
            for other in [*self._alike(base.symbol), *([before] if before.isidentifier() else [])]:
                self._note(node, other + text[len(base.symbol.name) :])
        if isinstance(node, self.ast.MemberAccessExpression) and text.endswith(f".{node.member.name}"):
            for name in _members_beside(node):
                self._note(node, text.removesuffix(node.member.name) + name)
        if _is_number(node.type):
            self._note(node, f"{'!' if node.type.bitWidth == 1 else '~'}{text}")
        if isinstance(node, self.ast.RangeSelectExpression):
            value, left, right = (self._text(part) for part in (node.value, node.left, node.right))
            if str(node.selectionKind).endswith("Simple"):
                for after in _other_bounds(node, left, right):
                    self._note(node, f"{value}[{after}]")
            else:
                sign = "-" if node.selectionKind.name == "IndexedUp" else "+"
                self._note(node, f"{value}[{left} {sign}: {right}]")

    def _literal(self, node: Any, of: Any = None) -> None:
        """Numbers near one; of an index those that a vector or an array `of` some type has: what lies beside
        it may read as a zero in one simulator and as X in another."""
        place = self._place(node.sourceRange)
        if place is None:
            return
        self.chosen.add(place)
        bounds = (of.fixedRange.left, of.fixedRange.right) if of is not None and of.hasFixedRange else None
        for other, value in _near(self.found.texts[place.file][place.start : place.end], _FAR):
            if bounds is None or min(bounds) <= value <= max(bounds):
                self._note(node, other)

    def _condition(self, node: Any) -> None:
        text = self._text(node)
        if text is not None and not CONTROL.search(text):
            for other in (f"!({text})", "1'b1", "1'b0"):
                self._note(node, other)

    def _target(self, node: Any) -> None:
        """Another signal that is assigned: no choice, since it cannot be made while the unit runs."""
        selected = (self.ast.RangeSelectExpression, self.ast.ElementSelectExpression)
        while isinstance(node, selected):
            node = node.value
        if isinstance(node, self.ast.NamedValueExpression) and self._text(node) == node.symbol.name:
            self._note_constant(node.sourceRange, self._alike(node.symbol))

    def _bit_set(self, node: Any) -> None:
        """Another bit or element of a register that is assigned."""
        if isinstance(node, self.ast.ElementSelectExpression) and isinstance(
            node.selector, self.ast.IntegerLiteral
        ):
            self._literal(node.selector, of=node.value.type)

    def _assigned(self, node: Any) -> None:
        """Another value for a signal: its complement, one more or less, twice or half."""
        text = self._text(node)
        pattern = isinstance(node, self.ast.AssignmentPatternExpressionBase)
        if text is None or pattern or not _is_number(node.type) or CONTROL.search(text):
            return
        for _, after in self.shapes.whole(node):
            self._note(node, after)
        others: tuple[str, ...]
        if node.type.bitWidth == 1:
            others = (f"!({text})", "1'b0", "1'b1")
        else:
            others = (
                f"~({text})",
                f"({text}) + 1",
                f"({text}) - 1",
                f"({text}) << 1",
                f"({text}) >> 1",
                f"-({text})",
            )
        for other in others:
            self._note(node, other)

    def _before(self, symbol: Any) -> str:
        """What a register takes, or "": it may be one too many."""
        before = self.before.get((symbol.location.buffer, symbol.location.offset), "")
        return before if len(before) <= _SHORT else ""

    def _alike(self, symbol: Any, most: int = _NAMES) -> list[str]:
        """The signals beside one that have its width and sign, those with the most similar names first."""
        scope, kind = symbol.parentScope, symbol.type
        if (
            scope is None
            or not kind.isIntegral
            or symbol.kind.name not in ("Variable", "Net", "FormalArgument")
        ):
            return []
        if (scope, symbol.name, most) not in self.alikes:
            if scope not in self.by_type:
                groups: dict[str, list[str]] = {}
                for one in self.scopes_read.of(scope):
                    data = one.kind.name in ("Variable", "Net", "FormalArgument") and one.type.isIntegral
                    if data and not CONTROL.search(one.name):
                        groups.setdefault(_like(one.type), []).append(one.name)
                self.by_type[scope] = {like: Names(names) for like, names in groups.items()}
            same = self.by_type[scope].get(_like(kind))
            self.alikes[scope, symbol.name, most] = [] if same is None else same.alike(symbol.name, most)
        return self.alikes[scope, symbol.name, most]

    def _other_parameters(self, name: str, module: str) -> list[str]:
        """The parameters of its type with other values, those with the most similar names first."""
        own = self.parameters.get((module, name), self.parameters.get(("", name)))
        if own is None:
            return []
        kind, value = own
        others = {
            other: None
            for (where, other), its in self.parameters.items()
            if its[0] == kind and its[1] != value and where in ("", module)
        }
        return Names(others).alike(name, _PARAMETERS)

    def _elements(self, symbol: Any) -> Iterator[str]:
        """The elements of the arrays beside a signal that have its type, of those with the likest names."""
        scope, kind = symbol.parentScope, symbol.type
        if scope is None or not _is_number(kind):
            return
        if (scope, _like(kind)) not in self.arrays:
            arrays = self.arrays[scope, _like(kind)] = {}
            for one in self.scopes_read.of(scope):
                listed = one.kind.name in ("Variable", "Net") and one.type.isUnpackedArray
                if listed and one.type.hasFixedRange and _like(one.type.arrayElementType) == _like(kind):
                    arrays[one.name] = one.type.fixedRange
        arrays = self.arrays[scope, _like(kind)]
        for name in Names(arrays).alike(symbol.name, _ARRAYS):
            first, last = sorted((arrays[name].left, arrays[name].right))
            yield from (f"{name}[{number}]" for number in range(first, last + 1)[:_ELEMENTS])

    # Places ------------------------------------------------------------------------------------------------

    def _place(self, span: Any) -> Place | None:
        """Where a stretch stands; None for text of a macro, and for files that are no sources."""
        return self._between(span.start, span.end)

    def _between(self, start: Any, end: Any) -> Place | None:
        manager = self.manager
        if manager.isMacroLoc(start) or manager.isMacroLoc(end):
            return None
        if start.buffer not in self.files:
            self.files[start.buffer] = Path(str(manager.getFullPath(start.buffer))).resolve()
        file = self.files[start.buffer]
        if file not in self.found.texts:
            return None
        return Place(file, *self._characters(file, start.offset, end.offset))

    def _characters(self, file: Path, start: int, end: int) -> tuple[int, int]:
        """Offsets in the text for those in its UTF-8."""
        text = self.found.texts[file]
        if text.isascii():
            return start, end
        if file not in self.wide:
            code = text.encode("utf-8", "surrogateescape")
            self.wide[file] = [at for at, byte in enumerate(code) if byte & 0xC0 == 0x80]
        first, last = (at - bisect_left(self.wide[file], at) for at in (start, end))
        return first, last

    def _text(self, node: Any) -> str | None:
        place = self._place(node.sourceRange)
        return None if place is None else self.found.texts[place.file][place.start : place.end]

    def _around(self, node: Any) -> str:
        """The line on which a node begins."""
        if (place := self._place(node.sourceRange)) is None:
            return ""
        text = self.found.texts[place.file]
        return text[text.rfind("\n", 0, place.start) + 1 :].partition("\n")[0]

    def _with_operator(self, node: Any, operator: Any, other: str) -> str | None:
        place, token = self._place(node.sourceRange), self._place(operator.range)
        if place is None or token is None:
            return None
        text = self.found.texts[place.file]
        return f"{text[place.start : token.start]}{other}{text[token.end : place.end]}"

    def _note_type(self, place: Place, node: Any) -> None:
        """What stands at a place as a whole: the first look at one is at the widest expression there."""
        if _is_number(node.type):
            self._note_kind(self.scope, place, _type_of(node))

    def _note_kind(self, scope: int, place: Place, kind: tuple[int, bool]) -> None:
        """The same of one instance: what stands there in another one may have other bits."""
        own = self.typed.setdefault((scope, place), kind)
        if own != self.found.types.setdefault(place, own):
            self.found.mixed.add(place)

    def _note(
        self, node: Any, after: str | None, family: tuple[str, str] | None = None, form: bool = False
    ) -> None:
        self._look()
        place = self._place(node.sourceRange)
        if after is None or place is None or not node.type.isIntegral:
            return
        text = self.found.texts[place.file]
        short = text[max(place.start - 80, 0) : place.start].rstrip().endswith(".")  # a port: `.name`
        if short or text[place.start : place.end] == after or len(after) > _LONGEST:
            return
        self._note_type(place, node)
        if "\n" in after:  # in one line, so that the lines below keep their numbers
            if "//" in after:
                return
            after = " ".join(after.split())
            family = None if family is None else (" ".join(family[0].split()), family[1])
        if family is None:
            (self.found.forms if form else self.found.choices).setdefault(place, {})[after] = None
        else:
            self.found.families.setdefault(place, {})[after] = family
        if self.in_subroutine:
            self.found.in_subroutines.add(place)

    def _add(self, additions: Iterable[Addition]) -> None:
        for each in additions:
            place = self._between(each.at, each.at)
            rest = None if each.rest is None else self._between(each.rest, each.rest)
            if place is not None and (rest is None) == (each.rest is None):
                end = None if each.end is None else self._between(each.end, each.end)
                beside = () if end is None else ((end, CLOSED),)
                self.found.added[Change(place, "", each.text, each.form, each.when, rest, beside)] = None

    def _add_stages(self, stages: Iterable[Stage]) -> None:
        for each in stages:
            place = self._place(each.value.sourceRange)
            beside = [(self._between(at, at), text) for at, text in each.beside]
            there = tuple((at, text) for at, text in beside if at is not None)
            if place is not None and len(there) == len(beside):
                text = self.found.texts[place.file][place.start : place.end]
                self.found.added[Change(place, text, each.name, beside=there)] = None

    # Constants ---------------------------------------------------------------------------------------------

    def _note_parameter(self, value: Any) -> None:
        """A value, and what is some bits more or less: a width without its bits for carries."""
        if (place := self._place(value.sourceRange)) is None:
            return
        self.found.parameters[place] = None
        text = self._text(value)
        if text is not None and value.type.isIntegral and not _is_short(value.type):
            for by in _BITS_MORE:
                self.found.constants.setdefault(place, {})[f"({text}) {'+' if by > 0 else '-'} {abs(by)}"] = (
                    None
                )

    def constant(self, node: Any) -> Any:
        """An operator, a literal or a parameter of the text that is no choice."""
        self._look()
        syntax = self.syntax
        operator = getattr(node, "operatorToken", None)
        if self._is_idle(node):
            return self.ast.VisitAction.Skip
        if isinstance(node, syntax.LoopGenerateSyntax):
            self._note_step(node.iterationExpr)
        elif isinstance(node, syntax.ForLoopStatementSyntax):
            for step in node.steps:
                self._note_step(step)
        elif isinstance(node, syntax.DataDeclarationSyntax | syntax.NetDeclarationSyntax):
            self._note_sign(node.type)
            if isinstance(node, syntax.DataDeclarationSyntax):
                self._note_once(node)
        elif isinstance(node, syntax.BinaryExpressionSyntax) and operator is not None:
            self._note_constant(operator.range, _OTHERS.get(operator.valueText, ()))
        elif isinstance(node, syntax.LiteralExpressionSyntax | syntax.IntegerVectorExpressionSyntax):
            place = self._place(node.sourceRange)
            if place is not None:
                text = self.found.texts[place.file][place.start : place.end]
                self._note_constant(node.sourceRange, literals(text))
        elif isinstance(node, syntax.ScopedNameSyntax):  # of a package that is named with it
            return self.ast.VisitAction.Skip
        elif isinstance(node, syntax.IdentifierNameSyntax):
            place = self._place(node.sourceRange)
            if place is not None:
                others = self._other_parameters(node.identifier.valueText, _module_around(node))
                self._note_constant(node.sourceRange, others)
        return self.ast.VisitAction.Advance

    def _note_sign(self, kind: Any) -> None:
        """A vector that is declared without its sign, or with one; tried early where others of as many bits
        have one in the text."""
        place = self._place(kind.sourceRange)
        if place is None or not isinstance(
            kind, (self.syntax.ImplicitTypeSyntax, self.syntax.IntegerTypeSyntax)
        ):
            return
        text, bits = self.found.texts[place.file], "".join(map(str, kind.dimensions)).strip()
        if not bits:
            return
        declared = text[place.start : place.end]
        if kind.signing.rawText:
            self._note_constant(kind.sourceRange, [_SIGN.sub("", declared)])
            return
        self._note_constant(kind.sourceRange, [declared.replace(bits, f"signed {bits}", 1)])
        if f"signed {bits}" in text:
            self.found.once.add(place)

    def _note_once(self, node: Any) -> None:
        """A variable gets the value of its declaration once; a net, or one that a block makes, always."""
        place = self._place(node.type.sourceRange)
        declared = "".join(map(str, node.declarators))
        if place is None or len(node.modifiers) or not _REFERS.search(declared):
            return
        text = self.found.texts[place.file][place.start : place.end]
        if node.parent.kind.name in ("ModuleDeclaration", "GenerateBlock"):
            self._note_constant(node.type.sourceRange, [f"wire {_VARIABLE.sub('', text)}"])
        else:
            self._note_constant(node.type.sourceRange, [f"automatic {text}"])
        self.found.once.add(place)

    def _note_use(self, syntax: Any, used: bool = True) -> None:
        """A stretch of text that an instance has, or leaves out."""
        if syntax is not None and (place := self._place(syntax.sourceRange)) is not None:
            (self.read if used else self.left_out).add(place)

    def _is_idle(self, node: Any) -> bool:
        """Whether no instance has a module, a branch or a value of a parameter."""
        place = self._place(node.sourceRange) if hasattr(node, "sourceRange") else None
        if place is None or place in self.read:
            return False
        return place in self.left_out or node.kind.name == "ModuleDeclaration"

    def _note_step(self, node: Any) -> None:
        place = self._place(node.sourceRange) if hasattr(node, "sourceRange") else None
        if place is not None:
            self.steps.append(place)

    def _note_constant(self, span: Any, others: Iterable[str]) -> None:
        place = self._place(span)
        if place is None or place in self.chosen or any(place.lies_in(step) for step in self.steps):
            return
        for other in others:
            self.found.constants.setdefault(place, {})[other] = None


def _binds(before: str, after: str, behind: str) -> bool:
    """Whether an operator beside a text would take a part of it alone."""
    plain = _PLAIN.fullmatch(after) is not None
    beside = before.rstrip().endswith(_BINDING) or behind.lstrip().startswith((*_BINDING, "?", "=="))
    return beside and not plain


_BOUNDS = ((1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
"""What is added to both bounds of a range: its neighbours, and those with one bit more or less."""


def _other_bounds(node: Any, left: str | None, right: str | None) -> Iterator[str]:
    """Other bounds of a range: those that its vector has, since a bit that is not there reads as anything."""
    whole, high, low = node.value.type, node.left.constant, node.right.constant
    if left is None or right is None or not whole.hasFixedRange or high is None or low is None:
        return
    ends = sorted((whole.fixedRange.left, whole.fixedRange.right))
    first, last = int(str(high.value)), int(str(low.value))
    for up, down in _BOUNDS:
        bounds = first + up, last + down
        ordered = (bounds[0] >= bounds[1]) == (whole.fixedRange.left >= whole.fixedRange.right)
        if ordered and all(ends[0] <= bound <= ends[1] for bound in bounds):
            yield ":".join(map(_moved, (left, right), (up, down)))


def _moved(text: str, by: int) -> str:
    """A bound that is so much more."""
    if not by:
        return text
    return str(int(text) + by) if text.isdigit() else f"({text}){by:+d}"


def in_turn(listed: Sequence[Change]) -> list[int]:
    """Where the first change of each place and pattern stands, then where the second ones do: the time may
    end before all are tried, and a place has its likeliest first."""
    turns: dict[tuple[Place, str], int] = {}
    ranked = []
    for at, change in enumerate(listed):
        turns[change.place, change.pattern] = turn = turns.get((change.place, change.pattern), -1) + 1
        ranked.append((turn, at))
    return [at for _, at in sorted(ranked)]


def _module_of(symbol: Any) -> str:
    """The module in which a parameter is declared; "" of a package."""
    module = symbol.declaringDefinition
    return "" if module is None else str(module.name)


def _module_around(syntax: Any) -> str:
    """The module in which a text stands; "" outside of all."""
    while syntax is not None and syntax.kind.name != "ModuleDeclaration":
        syntax = syntax.parent
    return "" if syntax is None else str(syntax.header.name.valueText)


def _given(body: Any) -> list[tuple[Any, Any]]:
    """The signals of a module that have one value for good, each with it."""
    found = []
    for each in body:
        if each.kind.name == "ContinuousAssign" and each.assignment.left.kind.name == "NamedValue":
            found.append((each.assignment.left.symbol, each.assignment.right))
        elif each.kind.name == "Net" and each.initializer is not None:
            found.append((each, each.initializer))
    return found


def _values_beside(node: Any) -> list[str]:
    """The other values of an enumeration whose value an expression is."""
    if node.symbol.kind.name != "EnumValue":
        return []
    return [each.name for each in node.type.canonicalType if each.name != node.symbol.name][:_NAMES]


def _members_beside(node: Any) -> list[str]:
    """The members of a structure that may stand for one: those of its type, the likeliest first."""
    own, kind = node.member, node.value.type.canonicalType
    same = [each.name for each in kind if each.kind.name == "Field" and _like(each.type) == _like(own.type)]
    return Names(same).alike(own.name, _NAMES)


def _type_of(node: Any) -> tuple[int, bool]:
    """The bits of a number as the expression around takes it, and whether it has a sign by itself."""
    return node.type.bitWidth, bare(node).type.isSigned


def _is_short(kind: Any) -> bool:
    """Whether a type has no room for numbers that count something."""
    return bool(kind.isEnum or kind.isStruct or kind.bitWidth < 3)


def _is_number(kind: Any) -> bool:
    """Whether arithmetic may be done with values of a type: bits, but no enumeration and no structure."""
    return kind.isIntegral and not kind.isEnum and not kind.isStruct and not kind.isPackedUnion


def _like(kind: Any) -> str:
    """The same of types whose values may stand for each other."""
    return f"{kind.bitWidth} {kind.isSigned}" if _is_number(kind) else str(kind)


def literals(text: str) -> Iterator[str]:
    """Numbers near a literal, written as it is: one more, one less, twice, half, and 0."""
    yield from (other for other, _ in _near(text))


def _near(text: str, far: Iterable[int] = ()) -> Iterator[tuple[str, int]]:
    """Those numbers with their values, and further ones that lie so far from one that counts."""
    if text.isdigit():
        sized, value, width = "", int(text), 31
    elif (parts := _LITERAL.match(text)) is not None:
        base = {"b": 2, "d": 10, "o": 8, "h": 16}[parts[3].lower()]
        width, value = int(parts[1] or 32), int(parts[4].replace("_", ""), base)
        sized = f"{parts[1] or ''}'{parts[2]}h"
    else:
        return
    seen = {value}
    for other in (
        value + 1,
        value - 1,
        2 * value,
        value // 2,
        0,
        *((value ^ 1 << bit) for bit in range(min(width, 4))),
        *(value + by for by in far if value >= _COUNTS),
        *((value ^ 1 << bit) for bit in range(4, width) if sized and width <= _WORD),
    ):
        if 0 <= other < 1 << width and other not in seen:
            seen.add(other)
            yield (f"{sized}{other:x}" if sized else str(other)), other
