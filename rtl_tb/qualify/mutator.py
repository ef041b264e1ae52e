"""One-line mutants that nobody chose: every small change of a SystemVerilog text, of which a seed draws some.

    changes = find_changes("fda.sv", text)
    mutant = planted(unit, dut, draw(changes, random.Random(1)), "mutant_1")

The text is read with pyslang's parser alone: no parameter, no top and no other file is needed, and comments
and strings are no places. A *place* is an operator, a number, a name, a bound, a condition, a cast, a term or
a statement, within one line. Every place has the same chance, and at a place every text that may stand there.
Lines of handshakes and of ports are left alone: what they do is another question than the arithmetic.
"""

from __future__ import annotations

import importlib
import importlib.util
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rtl_tb.dut.description import Dut
from rtl_tb.dut.slang import GET_PYSLANG
from rtl_tb.engines.job import Traffic
from rtl_tb.errors import SimulatorMissing
from rtl_tb.qualify.mutants import Mutant, Patch

_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_OPERATORS: dict[str, tuple[tuple[str, ...], ...]] = {
    "compare": (_COMPARISONS,),
    "add": (("+", "-"),),
    "logic": (("&&", "||"), ("&", "|", "^")),
    "shift": (("<<", ">>", ">>>"),),
}
"""By kind of change: operators any of which may stand for another of its row."""
_SWAPS: dict[str, tuple[str, tuple[str, ...]]] = {
    operator: (kind, tuple(other for other in row if other != operator))
    for kind, rows in _OPERATORS.items()
    for row in rows
    for operator in row
}
_DROPPED = ("+", "-", "|", "&", "^", "||", "&&")
"""Operators of which one operand may be missing."""
_LOGICAL, _BITWISE = ("&&", "||"), ("&", "|", "^")
_INVERTED = ("!", "~", "-")
KINDS = (
    *("compare", "add", "logic", "shift", "invert", "constant", "range", "condition", "signal", "term"),
    *("cast", "width", "missing"),
)
"""Kinds of change: another operator (four kinds); a negation that is dropped or added; a number, or a name of
one, that is one more or less, or a bit of a literal; a bound of a select; a condition that is negated or
holds always or never, and arms that are exchanged; another signal of the same declared bits; an operand that
is missing; a sign or a size of a cast; the bits of a local signal; a statement that is missing."""
HANDSHAKE = re.compile(r"valid|ready|\brst|reset|clk|clock|enable|\bce\b|_v\b|stall|advance", re.IGNORECASE)
_DECLARED = re.compile(r"\b(?:logic|wire|reg|bit)\b\s*((?:signed\s*)?(?:\[[^\]]*\]\s*)*)([A-Za-z_]\w*)")
_NUMBER = re.compile(r"(?:parameter|localparam)\b[^;,()=]*?([A-Za-z_]\w*)\s*=|genvar\s+(\w+(?:\s*,\s*\w+)*)")
_DIRECTIONS = ("input", "output", "inout")
_BASES = {"b": 2, "o": 8, "d": 10, "h": 16}


@dataclass(frozen=True)
class Change:
    """One place of a source: `before`, from `column` of the line `line` on (both from 0), becomes `after`."""

    kind: str
    file: str
    line: int
    column: int
    before: str
    after: str

    @property
    def place(self) -> tuple[str, int, int, str]:
        """What is changed."""
        return self.file, self.line, self.column, self.before

    def applied(self, text: str) -> str:
        """The text with the change."""
        lines = text.split("\n")
        line = lines[self.line]
        lines[self.line] = line[: self.column] + self.after + line[self.column + len(self.before) :]
        return "\n".join(lines)


def find_changes(name: str, text: str) -> list[Change]:
    """Every change of the text of a source that is called `name`, none twice, in the order of the places.

    Raises:
        SimulatorMissing: pyslang is not installed.
    """
    if importlib.util.find_spec("pyslang") is None:
        raise SimulatorMissing(f"pyslang reads the sources that are changed; install it: {GET_PYSLANG}")
    return _Finder(name, text).found()


def changes_of(dut: Dut, kinds: Sequence[str] = KINDS) -> list[Change]:
    """Every change, of some kinds, of a unit's sources."""
    every = (find_changes(path.name, path.read_text(encoding="utf-8")) for path in dut.sources)
    return [change for found in every for change in found if change.kind in kinds]


def draw(changes: Sequence[Change], rng: random.Random) -> Change:
    """A change at one of all places, each of which has the same chance."""
    places = dict.fromkeys(change.place for change in changes)
    place = rng.choice(list(places))
    return rng.choice([change for change in changes if change.place == place])


def planted(unit: Path, dut: Dut, change: Change, name: str) -> Mutant:
    """The mutant with a change; the text that is replaced is unique because whole lines around it belong
    to it."""
    text = next(one for one in dut.sources if one.name == change.file).read_text(encoding="utf-8")
    old, new = text.split("\n"), change.applied(text).split("\n")
    first, last = change.line, change.line + 1
    while text.count("\n".join(old[first:last])) > 1:
        first = max(first - 1, 0)
        last = min(last + 1, len(old))
    patch = Patch(change.file, "\n".join(old[first:last]), "\n".join(new[first:last]))
    fault = f"{old[change.line].strip()}  ->  {new[change.line].strip()}"
    where = f"{change.file}:{change.line + 1}"
    return Mutant(name, unit, fault, "arithmetic", (patch,), {}, None, Traffic(), where)


def together(mutants: Sequence[Mutant]) -> Mutant:
    """One mutant with the changes of several of one unit."""
    first = mutants[0]
    patches = tuple(patch for mutant in mutants for patch in mutant.patches)
    fault, where = (
        "  AND  ".join(getattr(mutant, name) for mutant in mutants) for name in ("fault", "where")
    )
    return replace(first, fault=fault, where=where, patches=patches)


# The places of a text ---------------------------------------------------------------------------------------


class _Finder:
    """Walks the syntax of one text. Offsets of slang count bytes."""

    def __init__(self, name: str, text: str) -> None:
        syntax = importlib.import_module("pyslang.syntax")
        self.name, self.bytes = name, text.encode("utf-8")
        self.tree = syntax.SyntaxTree.fromText(text, name)
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.bytes.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
        self.alike = _alike(code)
        names = (name for pair in _NUMBER.findall(code) for each in pair for name in each.split(","))
        self.numbers = {name.strip() for name in names if name.strip()}
        self.changes: dict[Change, None] = {}

    def found(self) -> list[Change]:
        """All of them."""
        self._visit(self.tree.root, ())
        whole = sorted(self.changes, key=lambda one: (one.line, one.column, -len(one.before)))
        kept: dict[tuple[int, int, str, str], Change] = {}
        for change in whole:  # a bound of a select that is a number is a number, too
            kept.setdefault((change.line, change.column, change.before, change.after), change)
        return list(kept.values())

    def _visit(self, node: Any, above: tuple[Any, ...]) -> None:
        kind = node.kind.name
        if kind.endswith(("Directive", "Port", "ModuleHeader")) and kind != "ModuleHeader":
            return
        for name in (kind, type(node).__name__):
            look = getattr(self, f"_in_{name}", None)
            if look is not None:
                look(node, above)
        for child in node:
            if hasattr(child, "sourceRange"):
                self._visit(child, (*above, node))

    # Texts

    def _text(self, node: Any) -> str:
        span = node.sourceRange
        return self.bytes[span.start.offset : span.end.offset].decode()

    def _note(self, kind: str, start: int, end: int, *afters: str) -> None:
        """Notes what may stand for the bytes `start` to `end`, if they are of one line."""
        line = self._line(start)
        code = self.lines[line].split("//")[0]
        if self._line(max(start, end - 1)) != line or HANDSHAKE.search(code):
            return
        column = len(self.bytes[self.starts[line] : start].decode())
        before = self.bytes[start:end].decode()
        for after in afters:
            if after != before:
                self.changes[Change(kind, self.name, line, column, before, after)] = None

    def _line(self, offset: int) -> int:
        low, high = 0, len(self.starts) - 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.starts[middle] <= offset else (low, middle)
        return low

    def _note_node(self, kind: str, node: Any, *afters: str) -> None:
        self._note(kind, node.sourceRange.start.offset, node.sourceRange.end.offset, *afters)

    # Operators and their operands

    def _in_BinaryExpressionSyntax(self, node: Any, above: tuple[Any, ...]) -> None:
        token, (left, right) = node.operatorToken, (node.left, node.right)
        at, operator = token.location.offset, token.rawText
        if node.kind.name.endswith("AssignmentExpression"):
            return
        if operator in _SWAPS:
            kind, others = _SWAPS[operator]
            self._note(kind, at, at + len(operator), *others)
        if operator in _DROPPED:
            self._note("term", left.sourceRange.end.offset, right.sourceRange.end.offset, "")
            if operator != "-":
                self._note("term", left.sourceRange.start.offset, right.sourceRange.start.offset, "")
        for operand in (left, right):
            if operator in _LOGICAL:
                self._negate(operand, "!")
            elif operator in _BITWISE:
                self._negate(operand, "~")

    def _negate(self, node: Any, sign: str) -> None:
        if node.kind.name.startswith("Unary"):
            return  # which may be dropped
        text = self._text(node)
        plain = type(node).__name__ != "BinaryExpressionSyntax" and "?" not in text
        self._note_node("invert", node, f"{sign}{text}" if plain else f"{sign}({text})")

    def _in_PrefixUnaryExpressionSyntax(self, node: Any, above: tuple[Any, ...]) -> None:
        token = node.operatorToken
        if token.rawText in _INVERTED:
            self._note("invert", token.location.offset, token.location.offset + len(token.rawText), "")

    # Conditions

    def _in_ConditionalExpressionSyntax(self, node: Any, above: tuple[Any, ...]) -> None:
        self._condition(node.predicate)
        left, right = node.left, node.right
        start, end = left.sourceRange.start.offset, right.sourceRange.end.offset
        between = self.bytes[left.sourceRange.end.offset : right.sourceRange.start.offset].decode()
        self._note("condition", start, end, f"{self._text(right)}{between}{self._text(left)}")

    def _in_ConditionalStatementSyntax(self, node: Any, above: tuple[Any, ...]) -> None:
        self._condition(node.predicate)

    def _condition(self, node: Any) -> None:
        text = self._text(node)
        self._note_node("condition", node, f"!({text})", "1'b1", "1'b0")

    # Numbers and names

    def _in_IntegerLiteralExpression(self, node: Any, above: tuple[Any, ...]) -> None:
        value = int(self._text(node).replace("_", ""))
        self._note_node("constant", node, str(value + 1), *([str(value - 1)] if value else []))

    def _in_IntegerVectorExpressionSyntax(self, node: Any, above: tuple[Any, ...]) -> None:
        text = self._text(node)
        found = re.fullmatch(r"(\d*)\s*('[sS]?([bodhBODH]))\s*([0-9a-fA-F_]+)", text)
        if found is None:
            return
        size, base, letter, digits = found.groups()
        value, radix = int(digits.replace("_", ""), _BASES[letter.lower()]), _BASES[letter.lower()]
        width = int(size) if size else 32
        others = [value + 1, value - 1, *(value ^ (1 << bit) for bit in range(width))]
        texts = [f"{size}{base}{_digits(each & (1 << width) - 1, radix)}" for each in others]
        self._note_node("constant", node, *dict.fromkeys(texts))

    def _in_UnbasedUnsizedLiteralExpression(self, node: Any, above: tuple[Any, ...]) -> None:
        self._note_node("constant", node, {"'0": "'1", "'1": "'0"}.get(self._text(node), self._text(node)))

    def _in_IdentifierName(self, node: Any, above: tuple[Any, ...]) -> None:
        self._name(node, node.identifier, above)

    def _in_IdentifierSelectName(self, node: Any, above: tuple[Any, ...]) -> None:
        if node.identifier.rawText not in self.numbers:  # no sum has bits that can be selected
            self._name(node, node.identifier, above)

    def _name(self, node: Any, token: Any, above: tuple[Any, ...]) -> None:
        name, start = token.rawText, token.location.offset
        if name in self.numbers:
            if not _in_a_type(above):
                self._note("constant", start, start + len(name), f"({name} + 1)", f"({name} - 1)")
            return
        if _is_target(node, above) or _in_a_type(above):
            return
        self._note("signal", start, start + len(name), *self.alike.get(name, ()))

    # Bits

    def _in_RangeSelectSyntax(self, node: Any, above: tuple[Any, ...]) -> None:
        if not any(each.kind.name == "VariableDimension" for each in above):
            for bound in (node.left, node.right):
                self._step("range", bound)

    def _in_BitSelectSyntax(self, node: Any, above: tuple[Any, ...]) -> None:
        if not any(each.kind.name == "VariableDimension" for each in above):
            self._step("range", node.expr)

    def _in_VariableDimensionSyntax(self, node: Any, above: tuple[Any, ...]) -> None:
        select: Any = getattr(node.specifier, "selector", None)
        if type(select).__name__ == "RangeSelectSyntax":
            self._step("width", select.left)

    def _in_CastExpressionSyntax(self, node: Any, above: tuple[Any, ...]) -> None:
        self._note("cast", node.sourceRange.start.offset, node.apostrophe.location.offset + 1, "")
        text = self._text(node.left)
        if not node.left.kind.name.endswith("Type"):
            self._note_node("cast", node.left, f"({text} + 1)", f"({text} - 1)")

    def _in_InvocationExpressionSyntax(self, node: Any, above: tuple[Any, ...]) -> None:
        called = self._text(node.left)
        if called in ("$signed", "$unsigned"):
            other = "$unsigned" if called == "$signed" else "$signed"
            self._note_node("cast", node.left, "", other)

    def _in_ImplicitTypeSyntax(self, node: Any, above: tuple[Any, ...]) -> None:
        self._signing(node.signing)

    def _in_IntegerTypeSyntax(self, node: Any, above: tuple[Any, ...]) -> None:
        self._signing(node.signing)

    def _signing(self, token: Any) -> None:
        if token.rawText:
            self._note("cast", token.location.offset, token.location.offset + len(token.rawText), "")

    def _step(self, kind: str, node: Any) -> None:
        """A bound that is one more or one less; a number becomes the next."""
        text = self._text(node)
        if text.isdigit():
            others = [str(int(text) + 1), *([str(int(text) - 1)] if int(text) else [])]
        else:
            others = [f"{text} + 1", f"{text} - 1"] if "?" not in text else []
        self._note_node(kind, node, *others)

    # Statements

    def _in_ExpressionStatementSyntax(self, node: Any, above: tuple[Any, ...]) -> None:
        self._note_node("missing", node, ";")

    def _in_ContinuousAssignSyntax(self, node: Any, above: tuple[Any, ...]) -> None:
        self._note_node("missing", node, "")


def _digits(value: int, radix: int) -> str:
    digits = ""
    while value or not digits:
        value, digit = divmod(value, radix)
        digits = "0123456789abcdef"[digit] + digits
    return digits


def _alike(code: str) -> dict[str, list[str]]:
    """By signal of a source the others that are declared with the same bits."""
    declared: dict[str, str] = {}
    for declaration in re.finditer(rf"{_DECLARED.pattern}((?:\s*,\s*\w+)*)", code):
        bits = re.sub(r"\s", "", declaration[1])
        for name in (declaration[2], *declaration[3].split(",")):
            if name.strip() and name.strip() not in _DIRECTIONS and not HANDSHAKE.search(name):
                declared[name.strip()] = bits
    return {
        name: [other for other, its in declared.items() if its == bits and other != name]
        for name, bits in declared.items()
    }


def _is_target(node: Any, above: Iterable[Any]) -> bool:
    """Whether a name is what a statement assigns."""
    start = node.sourceRange.start.offset
    for each in above:
        if type(each).__name__ == "BinaryExpressionSyntax" and "Assignment" in each.kind.name:
            span = each.left.sourceRange
            if span.start.offset <= start < span.end.offset:
                return True
    return False


def _in_a_type(above: Sequence[Any]) -> bool:
    """Whether it stands in the bits of a declaration, which are a place of their own."""
    return any(each.kind.name == "VariableDimension" for each in above)
