"""What a unit's text may lack: a statement, an else, an item of a case, a continuous assignment, a register.

A text that is not there has no place of its own and says nothing. So where a block, a branch or an item could
have one, statements are tried that the text suggests: the assignment beside it with its names changed as its
target's is (`b_q <= b_d` after `a_q <= a_d`), a signal with the target's width, and what the target is given
elsewhere.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rtl_tb.dut.slang import DECLARATIONS
from rtl_tb.locate.forms import CONTROL, bare
from rtl_tb.locate.scopes import Names, Scopes, name_parts

STATEMENT, ELSE, ITEM, ASSIGN, GUARD = "statement", "else", "item", "assign", "guard"
"""What is added. Of an item the text up to the first colon is its label, of a guard its condition."""
OPENED, CLOSED = "begin if ({}) begin ", " end end "
"""What stands before and behind a statement that has a guard."""
_GUARDS = 6
"""Conditions that are tried before one statement."""
_CLOCKED = ("AlwaysFF", "Always")
_COMBINATIONAL = ("AlwaysComb", "AlwaysLatch", "Always")
_VALUES = 8
"""Texts that are tried for one target at one place."""
_BESIDE = 3
"""Targets of its type whose assignments are taken as its pattern: those with the most similar names."""
_SIMILAR = 0.5
"""How similar at least."""
_TARGETS = 24
"""Targets that are tried at one place."""
_SELECTOR_BITS, _ITEMS = 5, 8
"""Values of an expression of so many bits are looked at, and at most so many that have no item."""
_DECLARING = ("ModuleDeclaration", "GenerateBlock", "GenerateRegion")
"""Where a declaration can stand before an `always`; an `if` without begin holds one item alone."""
_RESET = re.compile(r"\d+|\d*'[sS]?[bodhBODH]?[\da-fA-FxX_]+|\{.*\{\s*\d*'?[bdh]?0\s*\}\s*\}")
"""What a register is given in reset."""
_NAMED = re.compile(r"\bbegin\s*:")
"""A block that has a name has it once."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_RANGE = re.compile(r"\[\s*(\d+)\s*:\s*(\d+)\s*\]")
_GUARDED = ("SequentialBlockStatement", "ExpressionStatement")
"""Statements that may have a guard."""


@dataclass(frozen=True)
class Addition:
    """A text that may be missing.

    Attributes:
        at: where it would stand, as slang says it.
        form: one of the four above.
        text: the statement, for an `else` without that word.
        when: of an item whether it would run, as an expression; "" of a `default`.
        rest: of an item where the statement of the `default` begins that runs today; None: there is none.
        end: of a guard where its statement ends.
    """

    at: Any
    form: str
    text: str
    when: str = ""
    rest: Any = None
    end: Any = None


@dataclass(frozen=True)
class Stage:
    """A register that may be missing.

    Attributes:
        value: the expression that it would take, and in whose place it would stand.
        name: its name.
        beside: its declaration and its assignment, each with where it would stand.
    """

    value: Any
    name: str
    beside: tuple[tuple[Any, str], ...]


@dataclass(frozen=True)
class _Assigned:
    """An assignment of a procedure: its target's symbol, its statement's text and that of its value."""

    symbol: Any
    sign: str
    statement: str
    value: str
    local: bool = False
    """Whether it reads or sets what is declared in a block, which has no meaning elsewhere."""


class Missing:
    """Looks for what may be missing in the procedures of a module.

    Args:
        text: the text of a node, None where it is in no source.
        alike: the signals that may stand for one, the likeliest first.
        driven: where the signals are declared that something drives.
        scopes: what stands in them.
    """

    def __init__(
        self,
        text: Callable[[Any], str | None],
        alike: Callable[[Any], list[str]],
        driven: set[Any],
        scopes: Scopes,
    ) -> None:
        self.ast = importlib.import_module("pyslang.ast")
        self.text, self.alike, self.driven, self.scopes = text, alike, driven, scopes
        self.idle: dict[tuple[Any, str], list[Any]] = {}
        """The signals of a scope that nothing drives, by how they may have been."""
        self.waited: dict[Any, list[str]] = {}
        """What procedures of a scope, and of those around it, have for conditions; inputs of one bit."""
        self.signs: dict[Any, str] = {}
        """How each signal that nothing drives may have been driven: <=, = or assign."""

    def in_procedure(self, procedure: Any) -> Iterator[Addition]:
        """Statements, branches and items that may be missing in an `always` of any kind."""
        body, clocked = procedure.body, False
        if body.kind.name == "Timed":
            clocked = any(each.edge.name != "None_" for each in _events(body.timing))
            body = body.stmt
        if procedure.procedureKind.name not in (_CLOCKED if clocked else _COMBINATIONAL):
            return
        every = list(self._assignments(body))
        sign = "<=" if clocked else "="
        if (procedure.parentScope, sign) not in self.idle:
            self.idle[procedure.parentScope, sign] = [
                each for each in self.scopes.of(procedure.parentScope) if self._idle(each, sign)
            ]
        idle = self.idle[procedure.parentScope, sign]
        for statement in _statements(body, self.ast):
            match statement:
                case self.ast.BlockStatement():
                    yield from self._in_block(statement, every, idle, clocked)
                case self.ast.ConditionalStatement():
                    yield from self._else(statement, every)
                case self.ast.CaseStatement():
                    yield from self._items(statement, every, procedure.parentScope)
        yield from self._guards(body, procedure.parentScope, clocked)

    def in_module(self, body: Any) -> Iterator[Addition]:
        """Continuous assignments of signals that nothing drives."""
        end = getattr(body.definition.syntax, "endmodule", None)
        if end is None:
            return
        signs = {each.symbol.name: each.sign for each in self._assignments(body)}
        every = []
        for each in body:
            if each.kind.name == "ContinuousAssign" and each.assignment.left.kind.name == "NamedValue":
                symbol, value = each.assignment.left.symbol, self._line(bare(each.assignment.right))
                if value is not None:
                    every.append(_Assigned(symbol, "=", f"{symbol.name} = {value};", value))
        signs |= {each.symbol.name: ASSIGN for each in every}
        declared: dict[Any, list[str]] = {}
        for each in body:
            if each.name in signs:
                declared.setdefault(_declaration(each), []).append(each.name)
        for symbol in (each for each in body if self._idle(each)):
            beside = declared.get(_declaration(symbol), signs)
            near = Names(beside).alike(symbol.name, 1)
            self.signs[symbol.location.buffer, symbol.location.offset] = signs[near[0]] if near else ASSIGN
        for symbol in (each for each in body if self._idle(each, ASSIGN)):
            for text in self._values(symbol, every, clocked=False):
                yield Addition(end.location, ASSIGN, f"assign {text}")

    def registers(self, body: Any) -> dict[Any, str]:
        """What each register of a module takes, where that is one text: by where it is declared."""
        found: dict[Any, set[str]] = {}
        for statement in _statements(body, self.ast):
            for each in self._assignments(statement, nested=False):
                place = each.symbol.location.buffer, each.symbol.location.offset
                if not _RESET.fullmatch(each.value):
                    here = each.sign == "<=" and self._whole_from_beside(statement.expr)
                    found.setdefault(place, set()).add(each.value if here else "")
        return {place: min(texts) for place, texts in found.items() if len(texts) == 1 and min(texts)}

    def _whole_from_beside(self, assignment: Any) -> bool:
        """Whether it sets a whole signal to what is declared beside it, not in a generate below."""
        if assignment.left.kind.name != "NamedValue":
            return False
        names, read = self.scopes.names(assignment.left.symbol.parentScope), set[str]()

        def note(node: Any) -> None:
            if isinstance(node, self.ast.NamedValueExpression):
                read.add(node.symbol.name)

        assignment.right.visit(note)
        return read <= names

    def stages(self, procedure: Any) -> Iterator[Stage]:
        """Registers that may be missing: a signal that another register takes would come a clock later."""
        if procedure.syntax.parent.kind.name not in _DECLARING:
            return
        names = set(self.scopes.names(procedure.parentScope))
        for block in _statements(procedure.body, self.ast):
            looped = block.kind.name == "Block" and block.syntax is not None and _in_loop(block.syntax)
            inner = [] if block.kind.name != "Block" or looped else getattr(block.body, "list", [])
            for each in inner:
                said = next(self._assignments(each, nested=False), None)
                if said is None or said.sign != "<=":
                    continue
                start, end = procedure.syntax.sourceRange.start, each.syntax.sourceRange.end
                for name, value in self._single(each.expr.right):
                    held = f"{name}_before"
                    while held in names:
                        held += "_"
                    names.add(held)
                    declared = f"logic [$bits({name})-1:0] {held}; "
                    yield Stage(value, held, ((start, declared), (end, f" {held} <= {name};")))

    def _single(self, value: Any) -> Iterator[tuple[str, Any]]:
        """The signals that an expression reads once, with where."""
        found: dict[str, list[Any]] = {}

        def note(node: Any) -> Any:
            if isinstance(node, self.ast.NamedValueExpression):
                found.setdefault(node.symbol.name, []).append(node)
            selected = ("ElementSelect", "RangeSelect", "MemberAccess")
            return self.ast.VisitAction.Skip if node.kind.name in selected else None

        value.visit(note)
        for name, reads in found.items():
            symbol = reads[0].symbol
            signal = symbol.kind.name in ("Variable", "Net") and symbol.type.isIntegral
            if signal and len(reads) == 1 and self.text(reads[0]) == name:
                yield name, reads[0]

    # Where --------------------------------------------------------------------------------------------------

    def _in_block(
        self, block: Any, every: list[_Assigned], idle: list[Any], clocked: bool
    ) -> Iterator[Addition]:
        """At the start of a block what it does not assign in any case, at its end what it does not at all."""
        if block.syntax is None or not hasattr(block.syntax, "begin"):
            return
        inner = list(getattr(block.body, "list", [block.body]))
        direct = {each.symbol.name for one in inner for each in self._assignments(one, nested=False)}
        inside = {each.symbol.name for each in self._assignments(block.body)}
        if clocked and not direct and any(one.kind.name != "Empty" for one in inner):
            return
        signals = (each.symbol for each in every if not each.symbol.parentScope.isProceduralContext)
        targets = [*idle, *dict.fromkeys(signals)]
        end = block.syntax.end.location
        first = (each for each in block.syntax.items if each.kind.name not in DECLARATIONS)
        start = next((each.sourceRange.start for each in first), end)
        for target in [one for one in targets if one.name not in inside][:_TARGETS]:
            for text in self._values(target, every, clocked):
                yield Addition(end, STATEMENT, text)
        if not clocked:
            for target in [one for one in targets if one.name not in direct][:_TARGETS]:
                for text in self._values(target, every, clocked):
                    yield Addition(start, STATEMENT, text)

    def _else(self, statement: Any, every: list[_Assigned]) -> Iterator[Addition]:
        branch = statement.ifTrue
        whose = branch.kind.name == "Conditional"  # its own else it would be
        if statement.ifFalse is not None or whose or branch.syntax is None:
            return
        for each in self._targets(branch):
            for text in self._values(each.symbol, every, each.sign == "<=", each.value):
                yield Addition(branch.syntax.sourceRange.end, ELSE, text)

    def _guards(self, body: Any, scope: Any, clocked: bool) -> Iterator[Addition]:
        """Signals of one bit that are conditions elsewhere, or inputs, and that an assignment or a block may
        wait for: those of registers, and of the items of a case."""
        tried = self._waited(scope)
        if clocked:
            places = _statements(body, self.ast)
        else:
            cases = (each for each in _statements(body, self.ast) if each.kind.name == "Case")
            places = [item.stmt for each in cases for item in each.items]
        for statement in places:
            if statement.syntax is None or statement.syntax.kind.name not in _GUARDED:
                continue
            span = statement.syntax.sourceRange
            for text in Names(tried).alike(self._plain(statement) or "", _GUARDS):
                yield Addition(span.start, GUARD, text, end=span.end)

    def _waited(self, scope: Any) -> list[str]:
        """What an assignment in a procedure of a scope may wait for."""
        if scope not in self.waited:
            conditions: dict[str, None] = {}
            above = scope
            while above is not None:
                conditions |= dict.fromkeys(
                    each.name for each in self.scopes.of(above) if self._is_input(each)
                )
                for one in self.scopes.of(above):
                    if one.kind.name == "ProceduralBlock":
                        conditions |= dict.fromkeys(self._conditions(one.body))
                above = getattr(above, "parentScope", None)
            self.waited[scope] = [text for text in conditions if not CONTROL.search(text)]
        return self.waited[scope]

    def _conditions(self, body: Any) -> Iterator[str]:
        """The names that are conditions in a procedure, or terms of one."""
        for statement in _statements(body, self.ast):
            if isinstance(statement, self.ast.ConditionalStatement) and len(statement.conditions) == 1:
                said = self._plain(statement.conditions[0].expr) or ""
                terms = (term.strip(" ()") for term in re.split(r"&&|\|\|", said))
                if not self._is_local(statement.conditions[0].expr):
                    yield from (term for term in terms if _WORD.fullmatch(term))

    def _is_input(self, symbol: Any) -> bool:
        port = symbol.kind.name == "Port" and symbol.direction.name == "In"
        return bool(port and symbol.type.isIntegral and symbol.type.bitWidth == 1)

    def _items(self, statement: Any, every: list[_Assigned], scope: Any) -> Iterator[Addition]:
        syntax, default = statement.syntax, statement.defaultCase
        chosen = self._plain(statement.expr)
        if statement.condition.name != "Normal" or not statement.items or chosen is None:
            return
        rest = None if default is None else default.syntax.sourceRange.start
        first = next((each for each in syntax.items if each.kind.name == "DefaultCaseItem"), None)
        at = syntax.endcase.location if first is None else first.sourceRange.start
        said = [self._line(each.stmt) for each in statement.items]
        texts = dict.fromkeys(each for each in said if each is not None and not _NAMED.search(each))
        for each in self._targets(statement):
            texts |= dict.fromkeys(self._values(each.symbol, every, each.sign == "<="))
        labels = [*self._unlisted(statement, scope), *(["default"] if default is None else [])]
        for label in labels:
            when = "" if label == "default" else f"({chosen}) == {label}"
            for text in islice(texts, 3 * _VALUES):
                yield Addition(at, ITEM, f"{label}: {text}", when, rest)

    def _unlisted(self, statement: Any, scope: Any) -> list[str]:
        """The values of a case's expression that no item has, or nothing where they are too many."""
        chosen = statement.expr
        while chosen.kind.name == "Conversion":
            chosen = chosen.operand
        kind = chosen.type.canonicalType
        context = self.ast.EvalContext(self.ast.ASTContext(scope, self.ast.LookupLocation.max))
        values = [each.eval(context).value for one in statement.items for each in one.expressions]
        numbers = {None if each is None or each.hasUnknown else int(each) for each in values}
        if kind.kind.name == "EnumType":
            return [each.name for each in kind if int(each.value.value) not in numbers][:_ITEMS]
        if not kind.isIntegral or kind.bitWidth > _SELECTOR_BITS or None in numbers:
            return []
        free = [value for value in range(1 << kind.bitWidth) if value not in numbers]
        return [f"{kind.bitWidth}'d{value}" for value in free][:_ITEMS]

    # What ---------------------------------------------------------------------------------------------------

    def _values(
        self, target: Any, every: Iterable[_Assigned], clocked: bool, but: str | None = None
    ) -> list[str]:
        """The assignments that are tried for a target, the likeliest first."""
        own = [each for each in every if each.symbol == target and not each.local]
        others = {
            each.symbol.name: each
            for each in every
            if each.symbol != target and not each.local and str(each.symbol.type) == str(target.type)
        }
        sign = own[0].sign if own else "<=" if clocked else "="
        near = Names(others).alike(target.name, _BESIDE, _SIMILAR)
        near += [name for name in self._mirrored(others, target) if name not in near]
        found = [text for name in near for text in self._renamed(others[name], target)]
        if target.type.isIntegral:
            known = [*self.alike(target), *(each.value for each in own if each.value != but)]
            known += [] if target.type.isEnum else ["'0"]
            found += [f"{target.name} {sign} {value};" for value in dict.fromkeys(known)]
        return list(dict.fromkeys(found))[:_VALUES]

    def _mirrored(self, others: dict[str, _Assigned], target: Any) -> list[str]:
        """Those whose assignment reads another signal that has a partner, too, however unlike the names are:
        `clr_q = clr_sr[3]` beside `push_q` where there is a `push_sr`."""
        found = []
        for name, other in others.items():
            alone = re.sub(rf"\b{re.escape(name)}\b", target.name, other.statement)
            if any(text != alone for text in self._renamed(other, target)):
                found.append(name)
        return found[:_BESIDE]

    def _renamed(self, other: _Assigned, target: Any) -> Iterator[str]:
        """The assignment of a signal for one with another name: what differs in the two is exchanged in all
        names that are there then."""
        one, two = name_parts(other.symbol.name, target.name)
        names = self.scopes.names(target.parentScope)

        def exchanged(name: str) -> Iterator[str]:
            for part in re.finditer(re.escape(one), name) if one else ():
                yield name[: part.start()] + two + name[part.end() :]

        def counted(name: str) -> Iterator[str]:
            for part in re.finditer(r"\d+", name):
                yield f"{name[: part.start()]}{int(part[0]) + int(two) - int(one)}{name[part.end() :]}"

        ways = [exchanged] if not (one.isdigit() and two.isdigit()) else [counted, exchanged]
        for way in ways:

            def word(match: re.Match[str], way: Callable[[str], Iterator[str]] = way) -> str:
                if match[0] == other.symbol.name:
                    return str(target.name)
                return next((new for new in way(match[0]) if new in names), match[0])

            renamed = _WORD.sub(word, other.statement)
            if way is counted:
                yield _advanced(renamed, int(two) - int(one))
            yield renamed

    def _assignments(self, statement: Any, nested: bool = True) -> Iterator[_Assigned]:
        """Those of a statement, or where not `nested` those that it always makes itself."""
        for each in _statements(statement, self.ast) if nested else (statement,):
            if each.kind.name != "ExpressionStatement" or each.expr.kind.name != "Assignment":
                continue
            if each.expr.isCompound:
                continue
            target, said = each.expr.left, self._line(each)
            while hasattr(target, "value") and target.kind.name != "NamedValue":
                target = target.value
            value = self.text(each.expr.right)
            if target.kind.name == "NamedValue" and said is not None and value is not None:
                sign = "<=" if each.expr.isNonBlocking else "="
                local = self._is_local(each.expr)
                yield _Assigned(target.symbol, sign, said, " ".join(value.split()), local)

    def _is_local(self, expression: Any) -> bool:
        found: list[bool] = []

        def note(node: Any) -> None:
            if isinstance(node, self.ast.NamedValueExpression):
                scope = node.symbol.parentScope
                found.append(scope is not None and scope.isProceduralContext)

        expression.visit(note)
        return any(found)

    def _targets(self, statement: Any) -> list[_Assigned]:
        """One assignment of each target of a statement."""
        every = (
            each for each in self._assignments(statement) if not each.symbol.parentScope.isProceduralContext
        )
        return list({each.symbol.name: each for each in every}.values())[:4]

    def _line(self, statement: Any) -> str | None:
        """A statement or an expression in one line, None where it cannot be."""
        return None if statement.syntax is None else self._plain(statement.syntax)

    def _plain(self, part: Any) -> str | None:
        text = self.text(part)
        return None if text is None or "//" in text or len(text) > 400 else " ".join(text.split())

    def _idle(self, symbol: Any, sign: str = "") -> bool:
        """Whether nothing drives a signal, and what drives the likest one declared beside it is a `sign`."""
        place = symbol.location.buffer, symbol.location.offset
        signal = symbol.kind.name in ("Variable", "Net") and symbol.type.isIntegral
        return bool(signal and place not in self.driven and (not sign or self.signs.get(place) == sign))


def _events(timing: Any) -> Iterator[Any]:
    if timing.kind.name == "EventList":
        for each in timing.events:
            yield from _events(each)
    elif timing.kind.name == "SignalEvent":
        yield timing


def _statements(statement: Any, ast: Any) -> list[Any]:
    """A statement and all in it."""
    found: list[Any] = []

    def note(node: Any) -> Any:
        if isinstance(node, ast.Expression):
            return ast.VisitAction.Skip
        if isinstance(node, ast.Statement):
            found.append(node)
        return None

    statement.visit(note)
    return found


def _declaration(symbol: Any) -> int | None:
    """Where the declaration of a signal begins, which it may share with others."""
    return None if symbol.syntax is None else int(symbol.syntax.parent.sourceRange.start.offset)


def _advanced(text: str, by: int) -> str:
    """A text with its ranges so many times their bits further: `x[23:16]` two after `x[7:0]`."""

    def moved(match: re.Match[str]) -> str:
        high, low = int(match[1]), int(match[2])
        bits = (abs(high - low) + 1) * by
        return match[0] if min(high, low) + bits < 0 else f"[{high + bits}:{low + bits}]"

    return _RANGE.sub(moved, text)


def _in_loop(syntax: Any) -> bool:
    while syntax is not None and not syntax.kind.name.endswith("LoopStatement"):
        syntax = syntax.parent
    return syntax is not None
