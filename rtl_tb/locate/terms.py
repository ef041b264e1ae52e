"""One term more or less: a condition that is missing, a bit beside another, a sign, a register's enable.

    if (e > top)                             // if ((e > top) && used)?
    {sign, fraction}                         // {sign && |difference, fraction}?
    count <= count_next;                     // count <= move ? count_next : count?

The terms are the bits that can be read at the place: signals and members of one bit, the highest bits of
vectors, whether a vector has any one, those with the most similar names first; and bits that are read on
the same line, or declared beside the signals of the expression, as what belongs together often is.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from rtl_tb.locate.forms import COMPARISONS, CONTROL, bare, operation
from rtl_tb.locate.mirrored import SHORT
from rtl_tb.locate.scopes import Scopes, name_parts

TERM = "\0"
"""Where a text has its term."""
Family = tuple[Any, str, list[str]]
"""An expression, the text that may have to stand in its place, and the terms that this may have."""

_MOST, _BESIDE, _SOME, _ZEROS = 8, 5, 3, 4
"""Signals of one bit that are tried at one place, by their names and by where they are read and declared, and
vectors: the highest bit, and whether any is one."""
_LONGEST = 400
"""Characters of an expression with which names are compared."""
_DEEP = 1
"""Structures within a structure of which the bits are read."""
_PAIRS = 2
"""Pairs of bits that are tried as one term: those of two operands."""
_LOGIC = {"LogicalAnd": "&&", "LogicalOr": "||", "BinaryAnd": "&", "BinaryOr": "|"}
_ZERO = re.compile(r"\d+'[bodhBODH]0+")
_SIGNALS = ("Variable", "Net", "FormalArgument")
_PLAIN = ("NamedValue", "ElementSelect", "MemberAccess")


class Terms:
    """Says what may be added to an expression, and which bit may stand for another.

    Args:
        text: the text of a node, None where it is in no source.
        around: the line on which a node begins.
        scopes: what stands in them.
    """

    def __init__(
        self, text: Callable[[Any], str | None], around: Callable[[Any], str], scopes: Scopes
    ) -> None:
        self.ast = importlib.import_module("pyslang.ast")
        self.text, self.around, self.scopes = text, around, scopes
        self.inner: set[tuple[int, int]] = set()
        """Parts of a chain of one operator, whose whole has been seen."""

    def of(self, node: Any, root: bool) -> Iterator[Family]:
        """What is tried of one expression; see Forms.of."""
        if self.text(node) is None or not node.type.isIntegral or node.type.isEnum:
            return
        kind = node.kind.name
        if kind == "BinaryOp":
            yield from self._of_operator(node)
        if kind == "Concatenation":
            for part in node.operands:
                if part.type.bitWidth == 1 and part.constant is None:
                    yield from self._bit(part, node)
        if kind == "ConditionalOp":
            for value in (bare(node.left), bare(node.right)):
                yield from self._zero(value, node)
            when = bare(node.conditions[0].expr)
            if when.kind.name != "BinaryOp" and when.type.bitWidth == 1 and self.text(when) is not None:
                yield from self._bit(when, node)
        if root and node.type.bitWidth == 1 and kind != "BinaryOp":
            yield from self._bit(bare(node), node)

    def enabled(self, assignment: Any) -> Iterator[Family]:
        """A register that keeps its value, or a value that is added to what is there."""
        target, value = self.text(assignment.left), self.text(assignment.right)
        if target is None or value is None or not assignment.isNonBlocking or CONTROL.search(value):
            return
        if not assignment.left.type.isIntegral or "'{" in value:
            return
        bits = self._bits(assignment, zero=False)
        yield assignment.right, f"({TERM} ? ({value}) : {target})", bits
        yield assignment.right, f"({TERM} ? {target} : ({value}))", bits

    def gathered(self, assignment: Any) -> Iterator[Family]:
        """What is assigned beside what was there, and a zero that is, with a sign; a register of one bit that
        collects."""
        yield from self._zero(bare(assignment.right), assignment)
        target, value = self.text(assignment.left), self.text(assignment.right)
        plain = assignment.left.kind.name == "NamedValue" and assignment.left.type.isIntegral
        kind = assignment.left.type
        number = plain and not (kind.isStruct or kind.isEnum) and "'{" not in (value or "'{")
        if target is None or value is None or not number or target in value or CONTROL.search(value):
            return
        if assignment.isNonBlocking and kind.bitWidth > 1:
            return
        for sign in ("|", "&", "+")[: 2 if assignment.isNonBlocking else 3]:
            yield assignment.right, f"({target} {sign} ({value}))", []

    # Where --------------------------------------------------------------------------------------------------

    def _of_operator(self, node: Any) -> Iterator[Family]:
        name = operation(node)
        place = (node.sourceRange.start.offset, node.sourceRange.end.offset)
        sides = (bare(node.left), bare(node.right))
        for side in sides:
            if side.kind.name == "BinaryOp" and operation(side) == name:
                self.inner.add((side.sourceRange.start.offset, side.sourceRange.end.offset))
        if name == "Add" and place not in self.inner:
            # a term without a sign would take the sign from all that it is computed with
            term = f"$signed({{1'b0, {TERM}}})" if node.type.isSigned else TERM
            yield node, f"({self.text(node)}) + {term}", self._bits(node, zero=False)
        if node.type.bitWidth != 1:
            return
        if place not in self.inner:
            yield from self._added(node, node)
        if name in COMPARISONS:
            yield node, TERM, self._bits(node, zero=False)
        if name in _LOGIC:
            for side in sides:
                if side.type.bitWidth == 1 and side.kind.name != "BinaryOp":
                    yield from self._added(side, side)
                    yield from self._another(side, node)

    def _added(self, node: Any, around: Any) -> Iterator[Family]:
        """A condition with one term more."""
        text, bits = self.text(node), self._bits(around, but=self.text(node))
        both = _joined([bit for bit in bits if bit not in (text or "")])
        yield node, f"(({text}) && {TERM})", [*bits, *both]
        yield node, f"(({text}) && !{TERM})", [*bits, *both]
        yield node, f"(({text}) || {TERM})", [*bits, *both]
        zeros = [bit for bit in bits if bit.startswith("(|")]
        yield node, f"(({text}) || !{TERM})", zeros

    def _bit(self, node: Any, around: Any) -> Iterator[Family]:
        """A bit of a word, or the condition of something: none, another one, or with one more."""
        yield node, "1'b0", []
        yield node, "1'b1", []
        yield from self._another(node, around)
        yield from self._added(node, around)

    def _another(self, node: Any, around: Any) -> Iterator[Family]:
        """Another bit, also of another type."""
        if node.kind.name in _PLAIN and self.text(node) is not None:
            yield node, TERM, self._bits(around, zero=False, but=self.text(node))

    def _zero(self, node: Any, around: Any) -> Iterator[Family]:
        """A zero that has a sign."""
        zero = node.kind.name == "IntegerLiteral" and _ZERO.fullmatch(self.text(node) or "") is not None
        if zero and node.type.bitWidth > 1:
            yield node, f"{{{TERM}, {node.type.bitWidth - 1}'b0}}", self._bits(around, zero=False)

    # What ---------------------------------------------------------------------------------------------------

    def _bits(self, node: Any, zero: bool = True, but: str | None = None) -> list[str]:
        """The bits that can be read where a node stands, the likeliest first.

        Args:
            zero: also whether a vector has any one.
            but: one that is there already.
        """
        scope, text = self._scope(node), self.text(node) or ""
        places, signs, vectors = dict[str, int](), dict[str, None](), dict[str, None]()
        index = self._index(node)
        start, own = node.sourceRange.start, self._declared(node)
        while scope is not None:
            for one in self.scopes.near(scope, own):
                if one.kind.name not in _SIGNALS or CONTROL.search(one.name):
                    continue
                if one.location.buffer == start.buffer and one.location.offset < start.offset:
                    places |= dict.fromkeys(_bits_of(one, index), one.location.offset)
                    if one.type.isIntegral and one.type.bitWidth > 1 and not one.type.isStruct:
                        vectors[f"(|{one.name})"] = None
                        if one.type.hasFixedRange and one.type.fixedRange.right == 0:
                            signs[f"{one.name}[{one.type.fixedRange.left}]"] = None
            scope = getattr(scope, "parentScope", None)  # a module or a function has none that is told
        groups = ((places, _MOST), (signs, _SOME), (vectors, _ZEROS if zero else 0))
        word = text[:_LONGEST]
        alike = [difflib.get_close_matches(word, group, most, 0.0) if most else [] for group, most in groups]
        line = self.around(node)
        here = [bit for bit in places if bit in line and re.search(_whole(bit), line)]
        near = sorted(places, key=lambda bit: min((abs(places[bit] - at) for at in own), default=0))
        beside = [bit for bit in dict.fromkeys([*here, *near]) if bit not in (*alike[0], text, but)]
        beside = beside[: _BESIDE if own else 0]
        every = (bit for bits in (alike[0], beside, *alike[1:]) for bit in bits)
        return [bit for bit in every if bit not in (text, but)]

    def _declared(self, node: Any) -> list[int]:
        """Where the signals of the same file are declared that an expression reads."""
        found: list[int] = []
        file = node.sourceRange.start.buffer

        def note(part: Any) -> None:
            if isinstance(part, self.ast.NamedValueExpression) and part.symbol.location.buffer == file:
                found.append(part.symbol.location.offset)

        node.visit(note)
        return found

    def _scope(self, node: Any) -> Any:
        """The innermost scope whose names an expression reads."""
        found: list[tuple[int, Any]] = []

        def note(part: Any) -> None:
            if isinstance(part, self.ast.NamedValueExpression):
                scope, depth = part.symbol.parentScope, 0
                above = scope
                while above is not None and depth < 64:
                    above, depth = getattr(above, "parentScope", None), depth + 1
                found.append((depth, scope))

        node.visit(note)
        return max(found, key=lambda each: each[0])[1] if found else None

    def _index(self, node: Any) -> tuple[str, int] | None:
        """The name that chooses elements in an expression, and how many there are."""
        found: list[tuple[str, int]] = []

        def note(part: Any) -> None:
            if part.kind.name == "ElementSelect" and part.selector.kind.name in ("NamedValue", "Conversion"):
                name, kind = self.text(part.selector), part.value.type
                if name is not None and name.isidentifier() and kind.hasFixedRange:
                    found.append((name, abs(kind.fixedRange.left - kind.fixedRange.right) + 1))

        node.visit(note)
        return found[0] if found else None


def _joined(bits: list[str]) -> list[str]:
    """Two bits whose names differ as those of two operands do, as one: either, and both."""
    pairs = []
    for number, two in enumerate(bits):
        for one in bits[:number]:
            parts = name_parts(one, two)
            if all(0 < len(part) <= SHORT for part in parts) and not one.startswith("("):
                pairs.append((one, two))
    return [f"({one} {sign} {two})" for one, two in pairs[:_PAIRS] for sign in ("||", "&&")]


def is_joined(term: str) -> bool:
    """Whether a term is two bits."""
    return " || " in term or " && " in term


def _whole(name: str) -> str:
    """The pattern of a name that is no part of another one."""
    return rf"(?<![\w.]){re.escape(name)}(?![\w.])"


def _bits_of(symbol: Any, index: tuple[str, int] | None) -> Iterator[str]:
    """The bits of a signal that mean something by themselves: itself, its members, the one of an index."""
    kind, name = symbol.type, symbol.name
    if index is not None and kind.hasFixedRange:
        each = abs(kind.fixedRange.left - kind.fixedRange.right) + 1
        one = kind.arrayElementType.bitWidth == 1 if kind.isArray else kind.isIntegral
        if each == index[1] and one and each > 1:
            yield f"{name}[{index[0]}]"
    if not kind.isIntegral:
        return
    if kind.bitWidth == 1:
        yield name
    elif kind.isStruct:
        yield from _members(name, kind, _DEEP)


def _members(name: str, kind: Any, deep: int) -> Iterator[str]:
    """The members of one bit of a structure, and of those in it."""
    for each in kind.canonicalType:
        if each.kind.name == "Field" and each.type.isIntegral and each.type.bitWidth == 1:
            yield f"{name}.{each.name}"
        elif each.kind.name == "Field" and each.type.isStruct and deep:
            yield from _members(f"{name}.{each.name}", each.type, deep - 1)
