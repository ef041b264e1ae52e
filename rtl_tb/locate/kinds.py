"""The kinds of one-line change of a SystemVerilog text: the operators of mutation testing.

    for change in changes_of(tree.root, sources):
        change.kind, change.place, change.after

One set serves both directions: rtl_tb/qualify/mutator.py draws faults from it, and the search for a fault
(rtl_tb/locate/search.py) tries it on a text that is wrong. So it is closed under inversion: what one kind
removes another one, or the same, restores. A kind is a function that yields texts for one node of the
syntax; it knows the names that are declared around the node (rtl_tb/locate/scopes.py) and, if the design
was elaborated, the bits of expressions (`Types`). Kinds that need these (`_Walk`) add what is missing, a
term, a condition or a value: the inverse of a dropped one. Dropped statements alone are not restored: none of
177 mutants that others planted lacks one, and added ones were what repaired a sample in a wrong line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

from rtl_tb.locate.flow import Flow, Wires
from rtl_tb.locate.scopes import CONTROL, Scope
from rtl_tb.locate.sources import Place, Sources, ended

PROBE = "probe"
"""The kind of the complement of a value, which no fault is: it shows what depends on the value."""
TERM = "\0"
"""The place of the distinguishing term in the pattern of a change."""
LABEL = "label"
"""The form of an added text that is a further value of an item of a case."""
_ROWS = (
    ("<", "<=", ">", ">=", "==", "!="),
    ("+", "-", "*"),
    ("&", "|", "^"),
    ("+", "|", "^"),
    ("&&", "||"),
    ("&", "&&"),
    ("|", "||"),
    ("<<", ">>", ">>>", "<<<"),
    ("/", "%"),
    ("+=", "-="),
    ("&=", "|=", "^="),
)
"""Operators of two operands; any of a row may replace another."""
_BITWISE = ("&", "|", "^")
_EXTENDING = ("BinaryExpressionSyntax", "ConditionalExpressionSyntax", "ParenthesizedExpressionSyntax")
"""Expressions in which an operand may be widened, by its sign or by zeros."""
_REDUCTIONS = ("&", "|", "^", "~&", "~|", "~^")
_INVERSIONS = ("!", "~", "-")
_DROPPED = ("+", "-", "|", "&", "^", "||", "&&")
"""Operators of which one operand may be missing."""
_LITERAL = re.compile(r"(\d*)\s*'([sS]?)([bdohBDOH])\s*([0-9a-fA-F_]+)")
_BASED = re.compile(r"'[sS]?[bdohBDOH]\s*[0-9a-fA-F_xXzZ?]+\Z")
"""A number with a base at the end of a text: a question mark behind it is one of its digits."""
_RADIX = {"b": 2, "o": 8, "d": 10, "h": 16}
_DIGITS = "0123456789abcdef"
_WORD = 64
"""Longest literal, in bits, of which each bit may be wrong: a word of a NaN, an infinity, a mask."""
_SIGN_COUNTS = ("*", "/", "%", "<", "<=", ">", ">=")
"""Operators whose result depends on whether both operands have a sign, at any width."""
_SIGNED = re.compile(r"\$signed\s*\(((?:[^()]|\([^()]*\))*)\)")
_ZEROS = re.compile(r"(\d+)'([bdoh])0+")
_ZERO = re.compile(r"(?:\d*'[bdoh])?0+")
_COPIES = re.compile(r"\{\s*(\d+)\s*(\{.*\})\s*\}", re.DOTALL)
_BOUNDS = re.compile(r"([A-Za-z_][\w$]*)\s*\[([^\[\]:]+):([^\[\]:]+)\]")
"""Parts of a concatenation: zeros, a replication, a range of a vector."""
_PART_OF = re.compile(r"([A-Za-z_][\w$]*)\s*\[([^\[\]]+)\]")
_NAMES = re.compile(r"[A-Za-z_][\w$]*")
_RANGE = re.compile(r"\[\s*(\d+)\s*:\s*(\d+)\s*\]")
_PARTS = 6
"""Parts of a concatenation that may have other bits."""
_EXPRESSIONS = 6
"""Conditions of the module that may be a missing term, numbers that may be one, and half of the bits that may
be a missing carry."""
_MOST_COPIES = 1024
"""Copies in a replication with another parameter as their number: more than any product or sum has bits."""
_LABELLED = re.compile(r"begin\s*:")
_SHORT = 60
"""Longest operand that is inverted, in characters."""
_LONGEST = 400
"""Longest text that a change may insert, in characters."""


@dataclass(frozen=True)
class Change:
    """One place, its text and what stands there instead.

    Attributes:
        kind: one of KINDS, or what is missing: a term, a condition, a value.
        form: LABEL, or "" of others.
        wide: whether the text around it may become wider or narrower, or gain or lose a sign.
        pattern, term: of one of several texts that differ in one operand: the text with TERM in its place,
            and the operand. Of a LABEL the term is the one before it.
        wires: the signals that the text reads, and drives without a register.
        decided: where it shows that the text is missing, if that is not at the place.
    """

    kind: str
    place: Place
    before: str
    after: str
    form: str = ""
    wide: bool = False
    pattern: str = ""
    term: str = ""
    wires: Wires | None = None
    decided: Place | None = None

    @property
    def adds(self) -> bool:
        """Whether it adds a missing text."""
        return self.kind.startswith("missing")

    @property
    def written(self) -> str:
        """The text at the place with the change."""
        return f", {self.after}" if self.form else self.after

    def meets(self, other: Change) -> bool:
        """Whether one of two changes is within the other."""
        return self.place.lies_in(other.place) or other.place.lies_in(self.place)


@dataclass
class Types:
    """What elaboration knows and the syntax does not; nothing where there is none.

    Attributes:
        expressions: bits and sign of what stands at a place, as the expression around it takes it.
        declared: what kind of value a name has, by where it is declared; equal ones may stand for each other.
        members: the members of its structure that may stand for one, by name.
        numbers: the values of parameters, by name.
        flow: which signals are made from which ones without a register.
    """

    expressions: dict[Place, tuple[int, bool]] = field(default_factory=dict)
    declared: dict[tuple[Path, int], str] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    flow: Flow | None = None

    def bits(self, place: Place | None) -> int:
        """The bits of a number; 0: not known."""
        return 0 if place is None else self.expressions.get(place, (0, False))[0]


@dataclass(frozen=True)
class SyntaxSite:
    """A node of the syntax, as kinds of change look at it.

    Attributes:
        above: the nodes around it, the nearest last.
        names: at most this many names stand for another one.
    """

    node: Any
    above: tuple[Any, ...]
    scope: Scope
    sources: Sources
    types: Types
    names: int

    def text(self, node: Any = None) -> str:
        """The text of this node, or of another one; with the blank that ends an escaped name."""
        within = None if node is None else self.sources.place(self.node)
        return ended(self.sources.text(self.node if node is None else node, within) or "")

    @property
    def bits(self) -> int:
        """The bits of an expression in its context; 0: not known."""
        node = self.node
        while type(node).__name__ == "ParenthesizedExpressionSyntax":
            node = node.expression
        return self.types.bits(self.sources.place(node))

    @property
    def is_target(self) -> bool:
        """Whether it is assigned."""
        path = (*self.above, self.node)
        for each, below in pairwise(path):
            if _is_assignment(each):
                return bool(each.left == below)
        return False

    @cached_property
    def procedure(self) -> Any:
        """The always block around it; None: there is none."""
        return next((each for each in reversed(self.above) if each.kind.name.startswith("Always")), None)

    def wires(self, text: str, *driven: str) -> Wires | None:
        """The signals that a text in this place reads, and the ones that get another value by it; None: it
        drives none without a register."""
        procedure = self.procedure
        clocked = procedure is not None and self.scope.is_clocked(procedure)
        if clocked or self.types.flow is None or self.scope.module is None:
            return None
        read = set(_NAMES.findall(text))
        if procedure is None and self.is_target:  # another signal gets the value
            read, targets = set(_NAMES.findall(self.text(self.above[-1]))), read
        else:
            targets = self._makes.union(driven)
        if procedure is not None and (here := self.sources.place(self.node)) is not None:
            own = self.scope.module.first_assigned(procedure)  # these have their new values there
            read -= {name for name in targets if own.get(name, here.end) <= here.start}
        wires = Wires(self.scope.module.name, frozenset(targets), frozenset(read))
        return wires if targets and read else None

    def closes_loop(self, wires: Wires | None) -> bool:
        """Whether a net would depend on itself: a build that holds one such text settles more slowly for all
        others, or never."""
        return wires is not None and self.types.flow is not None and self.types.flow.closes(wires)

    @cached_property
    def _makes(self) -> set[str]:
        """The signals that depend on its value without a register; for an input of an instance `u.p`."""
        if (procedure := self.procedure) is not None:
            return {*self.scope.assigned_in(procedure)}
        found = set[str]()
        for each, below in pairwise((*self.above, self.node)):
            if _is_assignment(each):
                found = set(_NAMES.findall(self.sources.expanded(each.left)))
            elif type(each).__name__ == "DeclaratorSyntax":
                found = {each.name.valueText}
            elif type(each).__name__ == "HierarchicalInstanceSyntax" and hasattr(below, "name"):
                found = {f"{each.decl.name.valueText}.{below.name.valueText}"}
        return found

    @property
    def in_count(self) -> bool:
        """Whether it is the number of copies of a replication, or a part of it."""
        return any(
            type(each).__name__ == "MultipleConcatenationExpressionSyntax" and each.expression == below
            for each, below in pairwise((*self.above, self.node))
        )

    def resizes(self, other: str) -> bool:
        """Whether another name for it has other bits or another sign."""
        token = getattr(self.node, "identifier", None)
        return token is not None and self.scope.key(other) != self.scope.key(token.valueText)

    def allowed(self, kind: str, after: str) -> bool:
        """Whether a change may stand here. As a number of copies Verilator stops at a negative or huge one
        with an internal error, which names no line."""
        if kind == "constant" or not self.in_count:
            return True
        return kind == "name" and 0 < self.types.numbers.get(after, 0) <= _MOST_COPIES

    @property
    def in_type(self) -> bool:
        """Whether it is part of the bits of a declaration, which are a place of their own."""
        return any(each.kind.name == "VariableDimension" for each in self.above)

    @property
    def is_value(self) -> bool:
        """Whether it is an operand that may be replaced as a whole."""
        parent = self.above[-1].kind.name if self.above else ""
        part = parent in ("ScopedName", "FunctionPrototype", "GenvarDeclaration") or (
            parent == "InvocationExpression" and self.above[-1].left == self.node
        )
        event = any(each.kind.name.startswith(("SignalEvent", "EventControl")) for each in self.above)
        return not part and not event and not self.in_type and not self.is_target


Draft = tuple[Any, str]
"""A node, or a pair of locations, and the text that may stand there."""
Kind = Callable[[SyntaxSite], Iterator[Draft]]
KINDS: dict[str, list[tuple[tuple[str, ...], Kind]]] = {}
"""By name of a kind the types of syntax, or their kinds, that it looks at, and what it yields there."""
WIDE = ("range", "sign", "cast", "width")
"""Kinds that change the width of an expression, or whether it has a sign."""
_OPERANDS = ("term", "negation", "condition", "cast")
"""Kinds that insert an expression, which an adjacent operator must not take apart."""


def _kind(name: str, *nodes: str) -> Callable[[Kind], Kind]:
    def note(function: Kind) -> Kind:
        KINDS.setdefault(name, []).append((nodes, function))
        return function

    return note


# Names and numbers ------------------------------------------------------------------------------------------


@_kind("name", "IdentifierNameSyntax", "IdentifierSelectNameSyntax")
def _names(at: SyntaxSite) -> Iterator[Draft]:
    """Another name of the same declared type, or of another width and with a part of its name; for a target
    another target, too."""
    token = at.node.identifier
    name, parent = token.valueText, at.above[-1] if at.above else None
    if at.in_type or not (at.is_value or at.is_target) or CONTROL.search(name):
        if parent is not None and parent.kind.name == "ScopedName" and _is_member(at.node, parent):
            yield from ((token.range, other) for other in at.types.members.get(name, ()))
        return
    others = at.scope.alike(name, at.names)
    if at.is_target:  # nothing else drives what may stand there
        free = {*at.scope.assigned_in(at.procedure), *at.scope.undriven(at.procedure is not None)}
        joined = set(_NAMES.findall(at.text(parent))) if parent is not None and _joins(parent) else set()
        others = [other for other in others if other in free and other not in joined]
    elif type(at.node).__name__ == "IdentifierNameSyntax":
        others = [*others[:2], *at.scope.resized(name), *others[2:]]
    yield from ((token.range, other) for other in others)


@_kind("constant", "IntegerLiteralExpression", "IntegerVectorExpressionSyntax")
def _numbers(at: SyntaxSite) -> Iterator[Draft]:
    """The neighbours of a number, and the numbers that differ from it in one bit."""
    counts = at.above and type(at.above[-1]).__name__ == "MultipleConcatenationExpressionSyntax"
    for other in numbers(at.text()):
        if not counts or other.strip("0"):  # no replication is empty
            yield at.node, other


@_kind("constant", "IdentifierNameSyntax", "IdentifierSelectNameSyntax")
def _zero(at: SyntaxSite) -> Iterator[Draft]:
    """Zero for an operand."""
    if at.is_value and at.bits and not _is_index(at) and not CONTROL.search(at.text()):
        yield at.node, f"{at.bits}'d0"


@_kind("constant", "UnbasedUnsizedLiteralExpression")
def _bit_fills(at: SyntaxSite) -> Iterator[Draft]:
    yield from ((at.node, other) for other in ("'0", "'1") if other != at.text())


@_kind("constant", "IdentifierNameSyntax")
def _parameters(at: SyntaxSite) -> Iterator[Draft]:
    """A parameter, one more or less."""
    name = at.node.identifier.valueText
    if at.scope.is_number(name) and at.is_value:
        yield from ((at.node, f"({name} {sign} 1)") for sign in "+-")


def numbers(text: str) -> Iterator[str]:
    """Numbers near a literal, in its notation: one more, one less, with one other bit, its double and half
    (a stride, the width of a wider operand), and last, of a short one with a width, with two other bits. The
    relation is symmetric."""
    if text.replace("_", "").isdigit():
        value = int(text.replace("_", ""))
        others = (value ^ (1 << bit) for bit in range(value.bit_length() + 1))
        near = [value + 1, value - 1, *(one for one in others if value ^ one <= 2 * one + 1), *_scaled(value)]
        yield from dict.fromkeys(str(one) for one in near if one >= 0)
        return
    if (parts := _LITERAL.fullmatch(text)) is None:
        return
    size, sign, letter, digits = parts.groups()
    radix, width = _RADIX[letter.lower()], int(size or 32)
    digits = digits.replace("_", "").lower()
    if any(each not in _DIGITS[:radix] for each in digits):
        return
    value = int(digits, radix)
    flips = range(width if size and width <= _WORD else 4)
    near = [value + 1, value - 1, *(value ^ (1 << bit) for bit in flips)]
    near += [one for one in _scaled(value) if one < 1 << width]
    # Two bits of a shift amount, a digit or a state; of a longer number there are too many pairs.
    longest = 6  # bits, which have 15 pairs
    pairs = combinations(range(width), 2) if width <= longest else ()
    near += [value ^ 1 << one ^ 1 << other for one, other in pairs]
    codes = dict.fromkeys(one % (1 << width) for one in near)
    yield from (f"{size}'{sign}{letter}{_written(one, radix)}" for one in codes if one != value)


def _scaled(value: int) -> list[int]:
    return [2 * value, *([value // 2] if value % 2 == 0 else [])]


def _written(value: int, radix: int) -> str:
    digits = ""
    while value or not digits:
        value, digit = divmod(value, radix)
        digits = _DIGITS[digit] + digits
    return digits


# Operators --------------------------------------------------------------------------------------------------


@_kind("operator", "BinaryExpressionSyntax")
def _operators(at: SyntaxSite) -> Iterator[Draft]:
    token = at.node.operatorToken
    if _is_assignment(at.node) and token.rawText in ("=", "<="):
        return
    others = (other for row in _ROWS if token.rawText in row for other in row)
    yield from ((token.range, other) for other in dict.fromkeys(others) if other != token.rawText)


@_kind("operator", "PrefixUnaryExpressionSyntax")
def _reductions(at: SyntaxSite) -> Iterator[Draft]:
    token = at.node.operatorToken
    if token.rawText in _REDUCTIONS:
        yield from ((token.range, other) for other in _REDUCTIONS if other != token.rawText)


@_kind("negation", "PrefixUnaryExpressionSyntax")
def _negation_lost(at: SyntaxSite) -> Iterator[Draft]:
    if at.node.operatorToken.rawText in _INVERSIONS:
        yield at.node, _grouped(at.text(at.node.operand))


@_kind("negation", *("IdentifierNameSyntax", "IdentifierSelectNameSyntax", "ScopedNameSyntax"))
@_kind("negation", "ParenthesizedExpressionSyntax")
def _negated(at: SyntaxSite) -> Iterator[Draft]:
    """An operand inverted; one of several bits negated as well."""
    text, parent = at.text(), at.above[-1] if at.above else None
    inverted = parent is not None and parent.kind.name.startswith("Unary")
    whole = parent is not None and "Conditional" in type(parent).__name__  # see _conditions
    if not at.is_value or inverted or whole or CONTROL.search(text) or _is_index(at) or len(text) > _SHORT:
        return
    bits = at.bits
    known = at.scope.is_bit(text) if not bits else bits == 1
    yield at.node, f"(!{text})" if known else f"(~{text})"
    if not known:
        yield at.node, f"(-{text})"


@_kind("condition", "ConditionalStatementSyntax", "ConditionalExpressionSyntax")
def _conditions(at: SyntaxSite) -> Iterator[Draft]:
    """A condition that is negated, always true or always false; of a reset or a clock that holds a statement
    back: always true."""
    text = at.text(at.node.predicate)
    alone = at.node.kind.name == "ConditionalStatement" and at.node.elseClause is None
    if CONTROL.search(text):
        yield from ((at.node.predicate, "1'b1") for _ in range(alone))
    else:
        yield from ((at.node.predicate, other) for other in (f"!({text})", "1'b1", "1'b0") if other != text)


@_kind("term", "BinaryExpressionSyntax")
def _dropped(at: SyntaxSite) -> Iterator[Draft]:
    """One of two operands alone."""
    operator = at.node.operatorToken.rawText
    if operator in _DROPPED and not _is_assignment(at.node):
        kept = (at.node.left, at.node.right) if operator != "-" else (at.node.left,)
        yield from ((at.node, text) for each in kept if (text := at.text(each)))


@_kind("operator", "BinaryExpressionSyntax")
def _exchanged(at: SyntaxSite) -> Iterator[Draft]:
    """The operands of a difference, exchanged."""
    if at.node.operatorToken.rawText == "-":
        left, right = (_grouped(at.text(each).strip()) for each in (at.node.left, at.node.right))
        if not left.isdigit() and not right.isdigit():  # numbers belong to indices
            yield at.node, f"{right} - {left}"


# Bits -------------------------------------------------------------------------------------------------------


@_kind("range", "RangeSelectSyntax", "BitSelectSyntax")
def _ranges(at: SyntaxSite) -> Iterator[Draft]:
    """Bounds that are one more or less, each and both; a range down to bit 0, as a sticky bit needs it."""
    if at.in_type:
        return
    if type(at.node).__name__ == "BitSelectSyntax":
        yield from ((at.node, other) for other in _stepped(at.text()))
        return
    left, right = at.text(at.node.left), at.text(at.node.right)
    sign = at.node.range.rawText
    for up, down in zip(_stepped(left), _stepped(right), strict=False):
        yield at.node, f"{up}{sign}{right}"
        yield at.node, f"{left}{sign}{down}"
        if sign == ":":
            yield at.node, f"{up}{sign}{down}"
    if sign == ":" and left.strip().isdigit() and right.strip().isdigit() and int(right) > 1:
        yield at.node, f"{left}:0"


@_kind("range", "ExpressionStatementSyntax", "BinaryExpressionSyntax")
def _ranges_together(at: SyntaxSite) -> Iterator[Draft]:
    """A range that stands several times in an assignment, or in both operands: one bit more or less in each
    place, and in the casts to its width, as in an adder that is a bit too short; or down to bit 0, as numbers
    are compared."""
    text = at.text()
    operands = [getattr(at.node, name, None) for name in ("left", "right")]
    if all(operands) and (_is_assignment(at.node) or not set.intersection(*_ranges_of(at, operands))):
        return
    for (high, low), often in Counter(_RANGE.findall(text)).items():
        bits = int(high) - int(low) + 1
        if often > 1 and int(low) > 1:
            yield at.node, re.sub(rf"\[\s*{high}\s*:\s*{low}\s*\]", f"[{high}:0]", text)
        for by in (1, -1) if often > 1 else ():
            if bits + by > 0:
                wider = re.sub(rf"\[\s*{high}\s*:\s*{low}\s*\]", f"[{int(high) + by}:{low}]", text)
                yield at.node, re.sub(rf"\b{bits}(?=\s*'\()", f"{bits + by}", wider)


def _ranges_of(at: SyntaxSite, nodes: Iterable[Any]) -> list[set[tuple[str, str]]]:
    return [set(_RANGE.findall(at.text(node))) for node in nodes]


@_kind("concatenation", "ConcatenationExpressionSyntax")
def _shifted(at: SyntaxSite) -> Iterator[Draft]:
    """Two parts of which one has a bit more and the other a bit less, or is left out: a shift by one."""
    parts = [at.text(each).strip() for each in at.node.expressions if hasattr(each, "sourceRange")]
    for first, second in combinations(range(min(len(parts), _PARTS)), 2):
        for one, two in ((1, -1), (-1, 1)):
            for left, right in product(_resized(parts[first], one), _resized(parts[second], two)):
                changed = [*parts[:first], left, *parts[first + 1 : second], right, *parts[second + 1 :]]
                yield at.node, f"{{{', '.join(filter(None, changed))}}}"


def _resized(part: str, by: int) -> Iterator[str]:
    """A part of a concatenation with `by` bits more: zeros, a replication, a range; "" of no bits."""
    if zeros := _ZEROS.fullmatch(part):
        bits = int(zeros[1]) + by
        yield f"{bits}'{zeros[2]}0" if bits else ""
    elif (copies := _COPIES.fullmatch(part)) and int(copies[1]) + by > 0:
        yield f"{{{int(copies[1]) + by}{copies[2]}}}"
    elif bounds := _BOUNDS.fullmatch(part):
        name, high, low = (each.strip() for each in bounds.groups())
        up, down = (dict(zip((1, -1), _stepped(each), strict=False)) for each in (high, low))
        if by in up:
            yield f"{name}[{up[by]}:{low}]"
        if -by in down:
            yield f"{name}[{high}:{down[-by]}]"


@_kind("width", "RangeDimensionSpecifierSyntax")
def _widths(at: SyntaxSite) -> Iterator[Draft]:
    """A declaration with one bit more or less."""
    select = at.node.selector
    if type(select).__name__ == "RangeSelectSyntax":
        yield from ((select.left, other) for other in _stepped(at.text(select.left)))


def _stepped(text: str) -> Iterator[str]:
    """An index that is one more, and one less; a number is written as such."""
    for by in (1, -1):
        if text.strip().isdigit():
            if int(text) + by >= 0:
                yield str(int(text) + by)
        elif "?" not in text:
            yield f"{text} {'+' if by > 0 else '-'} 1"


@_kind("sign", "InvocationExpressionSyntax")
def _sign_lost(at: SyntaxSite) -> Iterator[Draft]:
    called = at.text(at.node.left)
    if called in ("$signed", "$unsigned"):
        yield at.node.left, "$unsigned" if called == "$signed" else "$signed"
        yield at.node.left, ""


@_kind("sign", "IdentifierNameSyntax", "IdentifierSelectNameSyntax", "ConcatenationExpressionSyntax")
@_kind("sign", "ScopedNameSyntax")
def _sign_missing(at: SyntaxSite) -> Iterator[Draft]:
    """An operand taken with its sign."""
    parent = at.above[-1] if at.above else None
    operator = getattr(getattr(parent, "operatorToken", None), "rawText", "")
    if parent is None or type(parent).__name__ not in _EXTENDING or operator in (*_BITWISE, "&&", "||"):
        return
    # x[3] in a product may be an element of a packed array; elsewhere it is taken for a bit.
    bit = at.scope.is_bit(at.text()) and operator not in _SIGN_COUNTS
    if at.is_value and not _is_index(at) and not bit:
        yield at.node, f"$signed({at.text()})"


@_kind("sign", "BinaryExpressionSyntax")
def _both_signs(at: SyntaxSite) -> Iterator[Draft]:
    """Both operands of a product or a comparison with their signs, or without: one alone has no effect."""
    operator = at.node.operatorToken.rawText
    if operator not in _SIGN_COUNTS or _is_assignment(at.node):
        return
    left, right = at.text(at.node.left).strip(), at.text(at.node.right).strip()
    both = [_SIGNED.fullmatch(each) for each in (left, right)]
    if both[0] and both[1]:
        yield at.node, f"({both[0][1]}) {operator} ({both[1][1]})"
    elif not any(both):
        yield at.node, f"$signed({left}) {operator} $signed({right})"


@_kind("sign", "ImplicitTypeSyntax", "IntegerTypeSyntax")
def _declared_sign(at: SyntaxSite) -> Iterator[Draft]:
    """A declaration with a sign, or without."""
    declared, bits = at.text(), "".join(map(at.text, at.node.dimensions)).strip()
    if at.node.signing.rawText:
        yield at.node, re.sub(r"\bsigned\b ?", "", declared)
    elif bits:
        yield at.node, declared.replace(bits, f"signed {bits}", 1)


@_kind("cast", "CastExpressionSyntax")
def _casts(at: SyntaxSite) -> Iterator[Draft]:
    """A cast that is missing, or one bit more or less."""
    yield at.node, at.text(at.node.right)
    if not at.node.left.kind.name.endswith("Type"):
        size = at.text(at.node.left)
        yield from ((at.node.left, f"({size} {sign} 1)") for sign in "+-")


@_kind("statement", "ExpressionStatementSyntax", "ContinuousAssignSyntax")
def _statement_lost(at: SyntaxSite) -> Iterator[Draft]:
    yield at.node, "" if type(at.node).__name__ == "ContinuousAssignSyntax" else ";"


# What is missing --------------------------------------------------------------------------------------------


def _missing_terms(at: SyntaxSite, place: Place, bits: int, root: bool) -> Iterator[tuple[str, str]]:
    """One more operand, as a pattern and the operand: a bit that can be read there, or a word."""
    text = at.text()

    def pattern(sign: str) -> str:
        joined = f"{_grouped(text)} {sign} {TERM}"
        return joined if root else f"({joined})"

    if bits == 1:
        literal = text in ("1'b0", "1'b1")
        zeros = [f"({name} == 0)" for name in at.scope.vectors_in(text)]
        near = [*zeros, *at.scope.comparisons(text), *at.scope.mirrored(text, at.names)]
        near += [*at.scope.conditions_near(place, _EXPRESSIONS), *at.scope.bits_near(place, at.names)]
        near += at.scope.every_bit_near(place) if literal else []
        for term in dict.fromkeys(near):
            if literal:
                yield from ((TERM, term), (TERM, f"!{term}"))
            elif term != text:
                yield from ((pattern(sign), each) for sign in "&|" for each in (term, f"!{term}"))
                yield pattern("^"), term
        node, joins = at.node, {"==": "||", "!=": "&&"}
        while type(node).__name__ == "ParenthesizedExpressionSyntax":
            node = node.expression
        if (sign := getattr(getattr(node, "operatorToken", None), "rawText", "")) in joins:
            compared = f"{_grouped(at.text(node.left))} {sign} {TERM}"
            yield from ((f"({text} {joins[sign]} {compared})", each) for each in _values_like(at, node.right))
        return
    yield from ((pattern(sign), term) for sign, term in at.scope.joined_elsewhere(text))
    words = at.scope.words(text, bits, at.names)
    if _ZERO.fullmatch(text):
        yield from ((TERM, term) for term in words)
    for term in words:
        yield from ((pattern(sign), term) for sign in "+-|&^")
    if root or _compares(at.above[-1]):
        if root:
            bits_near = at.scope.bits_near(place, 2 * _EXPRESSIONS)
            for term in (*bits_near, *at.scope.vectors_near(place)[:_EXPRESSIONS]):
                yield from ((pattern(sign), term) for sign in "+-")
        steps = ("+", "-", "<<", ">>") if root else ("+", "-")
        yield from ((f"({_grouped(text)} {sign} 1)", "") for sign in steps)


def _missing_bits(at: SyntaxSite) -> Iterator[str]:
    """An expression with bits that it may have lost: a vector for a range of it, the OR of a vector for one
    of its bits, both vectors for equal ranges that are compared, one range for two that leave a gap."""
    node, text = at.node, at.text().strip()
    match type(node).__name__:
        case "IdentifierSelectNameSyntax" if at.is_value and len(node.selectors) == 1 and not _is_index(at):
            name = node.identifier.valueText
            if name in at.scope.vectors_in(text):
                yield f"(|{name})" if at.scope.is_bit(text) else name
        case "BinaryExpressionSyntax" if _compares(node):
            names, ranges = zip(*(_part_of(at.text(each)) for each in (node.left, node.right)), strict=True)
            if ranges[0] and ranges[0] == ranges[1]:
                yield f"{names[0]} {node.operatorToken.rawText} {names[1]}"
        case "ConcatenationExpressionSyntax":
            parts = [at.text(each).strip() for each in node.expressions if hasattr(each, "sourceRange")]
            for first, both in enumerate(pairwise(parts)):
                names, ranges = zip(*map(_part_of, both), strict=True)
                if names[0] == names[1] and all(ranges):
                    hull = f"{names[0]}[{ranges[0].split(':')[0]}:{ranges[1].split(':')[-1]}]"
                    whole = [*parts[:first], hull, *parts[first + 2 :]]
                    yield f"{{{', '.join(whole)}}}" if whole[1:] else hull


def _part_of(text: str) -> tuple[str, str]:
    """The name and the bounds of a bit or a range of a vector; no bounds of other texts."""
    found = _PART_OF.fullmatch(text.strip())
    return (text, "") if found is None else (found[1], "".join(found[2].split()))


def _compares(node: Any) -> bool:
    sign = getattr(getattr(node, "operatorToken", None), "rawText", "")
    return sign in _ROWS[0] and not _is_assignment(node)


def _values_like(at: SyntaxSite, node: Any) -> list[str]:
    """The values near a number, or named like a name."""
    text = at.text(node).strip()
    return [*numbers(text), *at.scope.alike(text, at.names)]


def _missing_labels(at: SyntaxSite) -> Iterator[tuple[Place, str, str, Place | None]]:
    """Values that may be missing in an item of a case or in a set: each a place, the value before it, the
    value, and the case: a vector for a missing value reaches another item of it."""
    selects: Place | None = None
    if at.node.kind.name == "CaseStatement" and at.node.caseKeyword.rawText == "case":
        lists = [item.expressions for item in at.node.items if hasattr(item, "expressions")]
        selects = at.sources.place(at.node)
    elif type(at.node).__name__ == "RangeListSyntax":
        lists = [at.node.valueRanges]
    else:
        return
    every = [[one for one in each if hasattr(one, "sourceRange")] for each in lists]
    there = {at.text(one) for values in every for one in values}
    for values in every:
        last = values[-1].sourceRange.end
        place, before = at.sources.between(last, last), at.text(values[-1])
        if place is None or values[-1].kind.name.startswith("ValueRange"):
            continue
        near = dict.fromkeys(each for one in values for each in _values_like(at, one))
        yield from ((place, before, each, selects) for each in near if each not in there)


def _missing_conditions(at: SyntaxSite, scope: Scope) -> Iterator[str]:
    """A branch of a register that has lost its condition, such as an enable."""
    node, text, branch = at.node, at.text(), at.above[-1].kind.name if at.above else ""
    place, procedure = at.sources.place(node), at.procedure
    inside = branch in ("ElseClause", "ConditionalStatement", "TimingControlStatement")
    if not inside or place is None or procedure is None or not scope.is_clocked(procedure):
        return
    if node.kind.name in ("ExpressionStatement", "SequentialBlockStatement") and not _LABELLED.match(text):
        for bit in scope.bits_near(place, at.names):
            yield from (f"begin if ({condition}) {text} end" for condition in (bit, f"!{bit}"))


# All of a text ----------------------------------------------------------------------------------------------


def changes_of(
    root: Any,
    sources: Sources,
    types: Types | None = None,
    names: int = 24,
    visits: Callable[[Any], bool] = lambda _node: True,
    wanted: Callable[[Place], bool] | None = None,
    scope: Scope | None = None,
    missing: bool = False,
) -> list[Change]:
    """Every change of a syntax tree that one of KINDS makes, none twice.

    Args:
        names: how many names may stand for another one.
        visits: whether a node and all in it is looked at; it may raise, where the time is over.
        wanted: whether a place has one of those at which changes are looked for; None: everywhere.
        scope: that of the tree, if it was walked through before.
        missing: the changes that add a missing text instead: there are twenty for each other change.
    """
    types = types or Types()
    scope = scope or Scope.of_packages(root, sources, types.declared)
    return list(_Walk(sources, types, names, visits, wanted, missing).all(root, scope))


_IMPORTING = ("ModuleHeaderSyntax", "PackageImportDeclarationSyntax", "PackageImportItemSyntax")
"""Syntax that is visited wherever changes are wanted: it decides which names there are."""


class _Walk:
    def __init__(
        self,
        sources: Sources,
        types: Types,
        names: int,
        visits: Callable[[Any], bool],
        wanted: Callable[[Place], bool] | None,
        missing: bool,
    ) -> None:
        self.sources, self.types, self.names, self.visits = sources, types, names, visits
        self.wanted, self.missing = wanted, missing
        self.found: dict[Change, None] = {}
        self.kinds: dict[str, list[tuple[str, Kind]]] = {}
        for name, functions in KINDS.items():
            for nodes, function in functions:
                for node in nodes:
                    self.kinds.setdefault(node, []).append((name, function))

    def all(self, root: Any, scope: Scope) -> Iterable[Change]:
        """The changes of a tree."""
        self._visit(root, (), scope)
        return self.found

    def _visit(self, node: Any, above: tuple[Any, ...], scope: Scope) -> None:
        kind = node.kind.name
        if kind.endswith("Directive") or not self.visits(node):
            return
        # A compilation unit may begin in one file and end in another.
        its_place = self.sources.place(node) if above and (self.wanted or self.missing) else None
        here = self.wanted is None or its_place is None or self.wanted(its_place)
        if not here and type(node).__name__ not in _IMPORTING:
            return
        scope = scope.within(node)
        at = SyntaxSite(node, above, scope, self.sources, self.types, self.names)
        kinds = here and not self.missing
        made = (*self.kinds.get(type(node).__name__, ()), *self.kinds.get(kind, ())) if kinds else ()
        if kinds and self.types.expressions:  # the design was elaborated
            self._note_few(at)
        for name, function in made:
            for where, after in function(at):
                wires = at.wires(after) if name == "name" else None
                if at.closes_loop(wires) or not at.allowed(name, after):
                    continue
                place = (
                    self.sources.place(where)
                    if hasattr(where, "sourceRange")
                    else self.sources.between(where.start, where.end)
                )
                if place is not None:
                    wide = name in WIDE or (name == "name" and at.resizes(after))
                    self._note(name, place, after, wide=wide, wires=wires)
        if here and self.missing and its_place is not None:
            self._note_missing(at, its_place)
        for child in node:
            if hasattr(child, "sourceRange") and not _is_step(child, node):
                self._visit(child, (*above, node), scope)

    def _note(self, kind: str, place: Place, after: str, **more: Any) -> None:
        text = self.sources.texts[place.file]
        before = text[place.start : place.end]
        if after != before and len(after) <= max(_LONGEST, 2 * len(before)):
            if kind in _OPERANDS and _binds(text, place):
                after = _grouped(after)
            if text.startswith("?", place.end) and _BASED.search(after):  # 1'b1? would be one number
                after += " "
            self.found[Change(kind, place, before, after, **more)] = None

    def _note_few(self, at: SyntaxSite) -> None:
        """Bits and values that may be missing: there are few, other than of terms."""
        for text in _missing_bits(at):
            if (place := self.sources.place(at.node)) is not None:
                self._note("range", place, text, wide=True)
        for where, before, text, selects in _missing_labels(at):
            if selects is None:
                self._note("missing value", where, f", {text}")
            else:
                self._note("missing value", where, text, form=LABEL, term=before, decided=selects)

    def _note_missing(self, at: SyntaxSite, place: Place) -> None:
        node, bits = at.node, at.bits
        expression = type(node).__name__.endswith(
            ("ExpressionSyntax", "IdentifierNameSyntax", "SelectNameSyntax", "ScopedNameSyntax")
        )
        if bits and expression and at.is_value and not _is_index(at) and not _is_assignment(node):
            parent = type(at.above[-1]).__name__ if at.above else ""
            operand = not (parent == "ParenthesizedExpressionSyntax" or parent.startswith("PrefixUnary"))
            root = parent != "BinaryExpressionSyntax" or _is_assignment(at.above[-1])
            for pattern, term in _missing_terms(at, place, bits, root) if operand else ():
                if at.closes_loop(wires := at.wires(term)):
                    continue
                more = {"pattern": pattern, "term": term} if term else {}
                text = pattern.replace(TERM, term)
                self._note("missing term", place, text, wide=bits > 1, wires=wires, **more)
        for text in _missing_conditions(at, at.scope):
            self._note("missing condition", place, text)


def _is_assignment(node: Any) -> bool:
    return type(node).__name__ == "BinaryExpressionSyntax" and node.kind.name.endswith("AssignmentExpression")


def _joins(node: Any) -> bool:
    """Whether it joins targets: Verilator fails where one is there twice."""
    return bool(node.kind.name == "ConcatenationExpression")


def _is_member(node: Any, name: Any) -> bool:
    """Whether a name follows the dot of another one."""
    return bool(name.right == node and name.separator.rawText == ".")


def _is_step(node: Any, loop: Any) -> bool:
    """Whether it is the step of a loop: with a change the loop might never end."""
    kind = type(loop).__name__
    if kind not in ("ForLoopStatementSyntax", "LoopGenerateSyntax"):
        return False
    steps = [loop.iterationExpr] if kind == "LoopGenerateSyntax" else list(loop.steps)
    return any(one == node for one in steps)


def _is_index(at: SyntaxSite) -> bool:
    """Whether it is a whole index, bound or size."""
    parent = type(at.above[-1]).__name__ if at.above else ""
    return parent in (
        "BitSelectSyntax",
        "RangeSelectSyntax",
        "CastExpressionSyntax",
        "MultipleConcatenationExpressionSyntax",
    )


def _grouped(text: str) -> str:
    """A text in parentheses, if it needs them as an operand."""
    depth, inside = 0, text.startswith("(")
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        inside = inside and (depth > 0 or at == len(text) - 1)
    return text if inside or re.fullmatch(r"[\w.$']+(?:\[[^\[\]]*\])*", text) else f"({text})"


def _binds(text: str, place: Place) -> bool:
    """Whether an operator is adjacent to a place, so that it might take a part of an inserted text."""
    before, behind = text[: place.start].rstrip()[-1:], text[place.end :].lstrip()[:1]
    return (before in "!~+-*&|^<>=?:" and before != "") or (behind in "+-*&|^<>=?" and behind != "")
