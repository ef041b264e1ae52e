"""Other forms of an expression that is there: its sign, its width, its bounds, one name in all its places.

    total + W'($unsigned(term))              // W'($signed(term))?
    {8'b0, kept + up}                        // {8'b0, kept} + up, with the carry?
    x[30:23] >= y[30:23]                     // x[30:0] >= y[30:0]?
    (count > most) ? most : count            // (count > limit) ? limit : count?

Each is what a designer can have meant who wrote the other: sums that lose a carry, numbers that are extended
the wrong way, bits that are left out, a name that stands for another wherever it is read.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Form = tuple[Any, str]
"""An expression and the text that may have to stand in its place."""
_SIGN = re.compile(r"\s*\$(un)?signed\s*\((.*)\)\s*", re.DOTALL)
CONTROL = re.compile(r"clk|clock|rst|reset|\bck\b", re.IGNORECASE)
"""Names of clocks and resets, which are no data."""
_ZERO = re.compile(r"\d*'[sS]?[bodhBODH]0+|'0")
_ZEROS = re.compile(r"\{[^{}]*\{\s*\d+'[bodhBODH]0+\s*\}\s*\}")
COMPARISONS = ("LessThan", "LessThanEqual", "GreaterThan", "GreaterThanEqual")
_EQUAL = ("Equality", "Inequality")
_WITH_ORDER = {"==": ">=", "!=": "<"}
"""What an equality may have to be: beyond the number it is as at it."""
_SHIFTS = ("LogicalShiftLeft", "LogicalShiftRight", "ArithmeticShiftLeft", "ArithmeticShiftRight")
_TWINS = 4
"""Names that are tried for one that is read twice."""
REDUCTIONS = {
    "BitwiseAnd": "&",
    "BitwiseOr": "|",
    "BitwiseXor": "^",
    "BitwiseNand": "~&",
    "BitwiseNor": "~|",
    "BitwiseXnor": "~^",
}
"""How the operators are written that make a bit of a vector."""


def operation(node: Any) -> str:
    """The name of an expression's operator, "" where it has none."""
    return str(getattr(node, "op", "")).rsplit(".", 1)[-1]


def bare(node: Any) -> Any:
    """An expression without the conversions around it that no text says."""
    while node.kind.name == "Conversion" and node.isImplicit:
        node = node.operand
    return node


def written(node: Any) -> Any:
    """The syntax of an expression without the parentheses around it."""
    syntax = node.syntax
    while syntax is not None and syntax.kind.name == "ParenthesizedExpression":
        syntax = syntax.expression
    return syntax


def operand_of_sign(call: Any) -> Any:
    """What $signed or $unsigned is told, None of another call."""
    return call.arguments[0] if call.subroutineName in ("$signed", "$unsigned") else None


def _sign_of(node: Any) -> str | None:
    """How the operator of an expression is written."""
    token = getattr(written(node), "operatorToken", None)
    return None if token is None else str(token.valueText)


class Forms:
    """Says which other forms an expression may have.

    Args:
        text: the text of a node, None where it is in no source.
        alike: the signals that may stand for one, the likeliest first.
        literals: the numbers that may stand for one.
    """

    def __init__(
        self,
        text: Callable[[Any], str | None],
        alike: Callable[[Any], list[str]],
        literals: Callable[[str], Iterable[str]],
    ) -> None:
        self.ast = importlib.import_module("pyslang.ast")
        self.text, self.alike, self.literals = text, alike, literals

    def of(self, node: Any, root: bool) -> Iterator[Form]:
        """Each form that is tried.

        Args:
            root: whether it is a whole value or condition, and no part of one.
        """
        if self.text(node) is None:
            return
        if root:
            yield from self._in_all_places(node)
            yield from self._limited(node)
        match node.kind.name:
            case "Conversion":
                yield from self._extended(node)
                yield from self._uncut(node)
            case "Call":
                yield from self._exchanged_arguments(node)
            case "Concatenation":
                yield from self._concatenated(node)
            case "UnaryOp":
                yield from self._negated(node)
                yield from self._reduced(node)
            case "BinaryOp":
                yield from self._with_bounds(node)
                yield from self._compared(node)
                yield from self._multiplied(node)
                yield from self._exchanged_sides(node)
                yield from self._shifted(node)
                yield from self._carried(node)
                yield from self._as_a_whole(node)
            case "RangeSelect":
                yield from self._clamped(node)
                yield from self._uncut_slice(node)
            case "ElementSelect":
                yield from self._neighbours(node)

    # Signs --------------------------------------------------------------------------------------------------

    def _extended(self, node: Any) -> Iterator[Form]:
        """What is made wider by zeros, by its sign, and what was cut before by its whole."""
        inner, whole, part = node.operand, self.text(node), self.text(node.operand)
        numbers = inner.type.isIntegral and node.type.isIntegral and inner.constant is None
        if not numbers or whole is None or part is None or not 1 < inner.type.bitWidth < node.type.bitWidth:
            return
        width = node.type.bitWidth
        explicit = not node.isImplicit and whole.count(part) == 1 and whole != part

        def made(text: str, signed: bool) -> str:
            if explicit:
                return whole.replace(part, text)
            plain = f"{width}'({text})"
            return f"$signed({plain})" if node.type.isSigned and not signed else plain

        said = _SIGN.fullmatch(part)
        plain = part if said is None else said[2]
        if inner.type.isSigned:
            yield node, made(f"$unsigned({plain})", signed=False)
        else:
            yield node, made(f"$signed({plain})", signed=True)
        cut = bare(inner)
        if cut.kind.name == "RangeSelect" and cut.value.type.bitWidth <= width:
            yield node, made(self.text(cut.value) or part, signed=False)

    def _uncut(self, node: Any) -> Iterator[Form]:
        """What is cut before it is made as wide as this, without the cut."""
        inner, cut = node.operand, False
        while True:
            if inner.kind.name == "Conversion":
                cut = cut or (not inner.isImplicit and inner.type.bitWidth < node.type.bitWidth)
                inner = inner.operand
            elif inner.kind.name == "Call" and inner.isSystemCall and operand_of_sign(inner) is not None:
                inner = operand_of_sign(inner)
            else:
                break
        text, width = self.text(inner), getattr(node.syntax, "left", None)
        if node.isImplicit or not cut or text is None or width is None or not inner.type.isIntegral:
            return
        plain = f"{self.text(width)}'({text})"
        yield node, f"$signed({plain})" if node.type.isSigned and not inner.type.isSigned else plain

    def _compared(self, node: Any) -> Iterator[Form]:
        """A comparison of numbers with a sign, or without."""
        left, right = self.text(node.left), self.text(node.right)
        if operation(node) not in COMPARISONS or left is None or right is None:
            return
        signed = node.left.type.isSigned and node.right.type.isSigned
        word, token = "$unsigned" if signed else "$signed", _sign_of(node)
        if token is not None:
            yield node, f"({word}({left}) {token} {word}({right}))"

    def _multiplied(self, node: Any) -> Iterator[Form]:
        """A factor that counts with its sign, or without."""
        if operation(node) != "Multiply":
            return
        for side in (bare(node.left), bare(node.right)):
            text = self.text(side)
            if text is None or side.constant is not None:
                continue
            if side.kind.name == "Call" and (said := _SIGN.fullmatch(text)) is not None:
                padded = re.fullmatch(r"\s*\{\s*1'[bdh]0\s*,(.*)\}\s*", said[2], re.DOTALL)
                if padded is not None:
                    yield side, f"$signed({padded[1].strip()})"
            elif side.type.isSigned:
                yield side, f"$signed({{1'b0, {text}}})"
            else:
                yield side, f"$signed({text})"

    def _exchanged_sides(self, node: Any) -> Iterator[Form]:
        """A difference the other way round."""
        left, right = self.text(node.left), self.text(node.right)
        constant = node.left.constant is not None or node.right.constant is not None
        if operation(node) == "Subtract" and not constant and None not in (left, right):
            yield node, f"({right}) - ({left})"

    def _shifted(self, node: Any) -> Iterator[Form]:
        """A shift by one place more, or less, or by all bits of what is cut; a number may be another one in
        any case."""
        left, right, token = self.text(node.left), self.text(node.right), _sign_of(node)
        number = bare(node.right).kind.name == "IntegerLiteral"
        if operation(node) not in _SHIFTS or number or token is None or left is None or right is None:
            return
        for by in ("+ 1", "- 1"):
            yield node, f"({left}) {token} (({right}) {by})"
        if (bounds := self._bounds(bare(node.right))) is not None and bounds[2] == "0":
            yield node, f"({left}) {token} {bounds[0]}"

    def _carried(self, node: Any) -> Iterator[Form]:
        """A bit that is added, always or never."""
        for side in (bare(node.left), bare(node.right)) if operation(node) == "Add" else ():
            if side.type.bitWidth == 1 and side.kind.name != "IntegerLiteral" and self.text(side) is not None:
                yield side, "1'b1"
                yield side, "1'b0"

    def _negated(self, node: Any) -> Iterator[Form]:
        """An inversion for a negation, and the other way round."""
        inner = self.text(node.operand)
        other = {"BitwiseNot": "-", "Minus": "~"}.get(operation(node))
        if inner is not None and other is not None and node.type.bitWidth > 1:
            yield node, f"{other}({inner})"

    # Bits ---------------------------------------------------------------------------------------------------

    def _concatenated(self, node: Any) -> Iterator[Form]:
        """A sum within braces loses its carry; a slice behind zeros may be too short, a number behind zeros
        may have a sign; bits of one width may be exchanged."""
        parts = [self.text(each) for each in node.operands]
        if len(parts) < 2 or any(part is None for part in parts):
            return
        texts = [part for part in parts if part is not None]
        last = bare(node.operands[-1])
        if last.kind.name == "BinaryOp" and operation(last) in ("Add", "Subtract"):
            left, right = self.text(last.left), self.text(last.right)
            sign = "+" if operation(last) == "Add" else "-"
            yield node, f"({{{', '.join([*texts[:-1], left or ''])}}} {sign} ({right}))"
        whole = self._longer(texts, node.operands)
        if whole is not None:
            yield node, whole
        if last.type.bitWidth > 1 and all(
            _ZERO.fullmatch(one) or _ZEROS.fullmatch(one) for one in texts[:-1]
        ):
            yield node, f"{node.type.bitWidth}'($signed({texts[-1]}))"
        for at, (one, two) in enumerate(zip(node.operands[:-1], node.operands[1:], strict=True)):
            if one.type.bitWidth == two.type.bitWidth and texts[at] != texts[at + 1]:
                swapped = [*texts[:at], texts[at + 1], texts[at], *texts[at + 2 :]]
                yield node, f"{{{', '.join(swapped)}}}"

    def _longer(self, texts: list[str], parts: list[Any]) -> str | None:
        """Zeros and a slice as the longer slice of that width."""
        bounds = self._bounds(parts[-1])
        if len(texts) != 2 or _ZERO.fullmatch(texts[0]) is None or bounds is None:
            return None
        base, high, low, top = bounds
        width = parts[0].type.bitWidth
        return (
            f"{base}[({high}) + {width}:{low}]" if int(top) >= parts[-1].type.bitWidth + width - 1 else None
        )

    def _bounds(self, node: Any) -> tuple[str, str, str, str] | None:
        """The text of a vector, of the bounds of its slice, and its highest bit; None of anything else."""
        if node.kind.name != "RangeSelect" or not node.value.type.isIntegral:
            return None
        kind, whole = node.selectionKind.name, node.value.type.fixedRange
        base, left, right = (self.text(part) for part in (node.value, node.left, node.right))
        if base is None or left is None or right is None or whole.right != 0 or whole.left <= 0:
            return None
        high = left if kind != "IndexedUp" else f"({left}) + ({right}) - 1"
        low = right if kind == "Simple" else left if kind == "IndexedUp" else f"({left}) - ({right}) + 1"
        return base, high, low, str(whole.left)

    def _reduced(self, node: Any) -> Iterator[Form]:
        """All bits below, or above, as well."""
        sign, bounds = REDUCTIONS.get(operation(node)), self._bounds(bare(node.operand))
        if sign is not None and bounds is not None:
            base, high, low, top = bounds
            yield node, f"{sign}{base}[{high}:0]"
            yield node, f"{sign}{base}[{top}:{low}]"
            if sign == "&":  # a number that is too large where it is no less than this one
                yield node, f"(&{base}[{high}:{low}] || {base}[{top}:{low}] > {base}[{high}:{low}])"

    def _with_bounds(self, node: Any) -> Iterator[Form]:
        """Two slices of equal bounds, compared: one bound of both."""
        if operation(node) not in (*COMPARISONS, *_EQUAL):
            return
        one, two = self._bounds(bare(node.left)), self._bounds(bare(node.right))
        token = _sign_of(node)
        if one is None or two is None or one[1:] != two[1:] or token is None:
            return
        _, high, low, top = one
        for up, down in ((high, "0"), (top, low), (high, f"({low}) + 1"), (high, f"({low}) - 1")):
            yield node, f"{one[0]}[{up}:{down}] {token} {two[0]}[{up}:{down}]"

    def _as_a_whole(self, node: Any) -> Iterator[Form]:
        """A slice that is held against a number, with the bits above it: they have to be zero, or ones, or
        count; and with those below it."""
        bounds, sign = self._bounds(bare(node.left)), _sign_of(node)
        right = self.text(node.right)
        members = self._members(bare(node.left)) if operation(node) in _EQUAL else None
        if members is not None and sign is not None and right is not None:
            yield node, f"{members} {sign} {right}"
        if operation(node) not in (*COMPARISONS, *_EQUAL) or node.right.constant is None:
            return
        if bounds is None or sign is None or right is None:
            return
        base, _, low, top = bounds
        slice_, number = bare(node.left), bare(node.right)
        above = slice_.value.type.bitWidth - slice_.type.bitWidth
        sized = right[:1].isdigit() and "'" in right and number.type.bitWidth == slice_.type.bitWidth
        for other in dict.fromkeys((sign, _WITH_ORDER.get(sign, sign))):
            yield node, f"{base}[{top}:{low}] {other} {right}"
        if sign in _WITH_ORDER and above > 0 and sized:
            yield node, f"{base}[{top}:{low}] {sign} {{{{{above}{{1'b1}}}}, {right}}}"

    def _members(self, node: Any) -> str | None:
        """A member of a structure with the one before it."""
        base = self.text(node.value) if node.kind.name == "MemberAccess" else None
        if base is None or not node.value.type.isIntegral:
            return None
        names = [each.name for each in node.value.type.canonicalType if each.kind.name == "Field"]
        at = names.index(node.member.name)
        return f"{{{base}.{names[at - 1]}, {base}.{names[at]}}}" if at else None

    def _uncut_slice(self, node: Any) -> Iterator[Form]:
        """The lowest bits of a number, and all of it."""
        bounds = self._bounds(node)
        if bounds is not None and bounds[2] == "0" and node.value.type.bitWidth > node.type.bitWidth:
            yield node, bounds[0]

    def _clamped(self, node: Any) -> Iterator[Form]:
        """The lowest bits of a number, all ones where it has higher ones."""
        bounds = self._bounds(node)
        if bounds is not None and bounds[2] == "0" and int(bounds[3]) >= node.type.bitWidth > 1:
            base, high, _, top = bounds
            ones = f"{{{node.type.bitWidth}{{1'b1}}}}"
            yield node, f"((|{base}[{top}:({high}) + 1]) ? {ones} : {self.text(node)})"

    def _limited(self, node: Any) -> Iterator[Form]:
        """A number that is no larger than another one: a shift beyond an exponent, a count beyond a width."""
        inner, text = bare(node), self.text(node)
        if inner.kind.name == "NamedValue" and text is not None and inner.type.bitWidth > 1:
            if inner.type.isEnum or inner.type.isStruct or inner.symbol.name != text:
                return
            for other in self.alike(inner.symbol):
                yield node, f"(({text} > {other}) ? {other} : {text})"

    def _neighbours(self, node: Any) -> Iterator[Form]:
        """One bit, and those beside or below it."""
        base, at, kind = self.text(node.value), self.text(node.selector), node.value.type
        if base is None or at is None or not kind.isIntegral or node.type.bitWidth != 1:
            return
        if node.selector.constant is None or kind.fixedRange.right != 0:
            return
        number = int(node.selector.constant.value)
        if number > 0:
            yield node, f"(|{base}[{at}:({at}) - 1])"
            yield node, f"(|{base}[{at}:0])"
        if number < kind.fixedRange.left:
            yield node, f"(|{base}[({at}) + 1:{at}])"

    # Names --------------------------------------------------------------------------------------------------

    def _in_all_places(self, node: Any) -> Iterator[Form]:
        """Another name, or number, wherever an expression reads one."""
        whole, start = self.text(node), node.sourceRange.start.offset
        places: dict[str, dict[int, Any]] = {}

        def note(part: Any) -> Any:
            indexed = part.kind.name == "RangeSelect" and part.selectionKind.name != "Simple"
            if indexed or part.kind.name == "Replication":  # no width and no count may become 0
                (part.value if indexed else part.concat).visit(note)
                return self.ast.VisitAction.Skip
            if part.kind.name in ("NamedValue", "IntegerLiteral") and (said := self.text(part)) is not None:
                at = part.sourceRange.start.offset - start
                if whole is not None and whole[at : at + len(said)] == said:
                    places.setdefault(said, {})[at] = part
            return None

        node.visit(note)
        for said, found in places.items():
            if whole is None or len(found) < 2 or not whole.isascii():
                continue
            for other in self._others(said, next(iter(found.values()))):
                text = whole
                for at in sorted(found, reverse=True):
                    text = text[:at] + other + text[at + len(said) :]
                yield node, text

    def _others(self, said: str, part: Any) -> Iterator[str]:
        if part.kind.name == "IntegerLiteral":
            yield from self.literals(said)
        elif part.symbol.name == said and part.type.isIntegral:
            yield from self.alike(part.symbol)[:_TWINS]
            if part.type.bitWidth == 1:
                yield f"(!{said})"

    def _exchanged_arguments(self, node: Any) -> Iterator[Form]:
        """Two arguments of a function, each in the other's place."""
        if node.isSystemCall:
            return
        whole, texts = self.text(node), [self.text(each) for each in node.arguments]
        for at, (one, two) in enumerate(zip(node.arguments[:-1], node.arguments[1:], strict=True)):
            left, right = texts[at], texts[at + 1]
            if whole is None or left is None or right is None or left == right:
                continue
            first = one.sourceRange.start.offset - node.sourceRange.start.offset
            second = two.sourceRange.start.offset - node.sourceRange.start.offset
            if str(one.type) == str(two.type) and whole.isascii() and 0 < first < second:
                between = whole[first + len(left) : second]
                yield node, whole[:first] + right + between + left + whole[second + len(right) :]
