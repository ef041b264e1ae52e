"""Other shapes of an expression: parts that belong together otherwise, priorities exchanged, and the small
idioms of arithmetic that a bit or a slice may have lost.

    c ? '0 : acc + x                         // (c ? '0 : acc) + x?
    {1'b1, y[9:0]}                           // {|y[14:10], y[9:0]}?
    up = s[26];                              // s[26] & (s[27] | (|s[25:0]))?
    wide[63:32]                              // {wide[63:33], |wide[32:0]}?
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rtl_tb.locate.forms import Form, bare, operation, written

_PRECEDENCE = (
    ("Multiply",),
    ("Add", "Subtract"),
    ("LogicalShiftLeft", "LogicalShiftRight", "ArithmeticShiftLeft", "ArithmeticShiftRight"),
    ("BinaryAnd",),
    ("BinaryXor",),
    ("BinaryOr",),
    ("LogicalAnd",),
    ("LogicalOr",),
)
"""Operators of two operands that parentheses may have grouped otherwise."""
_GROUPED = frozenset(name for level in _PRECEDENCE for name in level)
_JOINED = {"Add": "+", "BinaryOr": "|", "BinaryAnd": "&", "LogicalOr": "||", "LogicalAnd": "&&"}
"""Operators whose operands a unit treats alike."""
_MOST = 12
"""Operands of a chain that are compared with each other."""


class Shapes:
    """Says which other shapes an expression may have.

    Args:
        text: the text of a node, None where it is in no source.
        mirrors: an operand's text with the names of its signals exchanged, each way to do it.
    """

    def __init__(
        self, text: Callable[[Any], str | None], mirrors: Callable[[Any, str], Iterable[str]]
    ) -> None:
        self.text, self.mirrors = text, mirrors

    def of(self, node: Any) -> Iterator[Form]:
        """Each shape that is tried of an expression, a part of one or a whole."""
        match node.kind.name:
            case "BinaryOp":
                yield from self._regrouped(node)
                yield from self._jammed_shift(node)
            case "ConditionalOp":
                yield from self._around_a_choice(node)
                yield from self._priorities(node)
            case "Concatenation":
                yield from self._hidden_bits(node)
            case "ElementSelect":
                yield from self._to_nearest_even(node)
            case "RangeSelect":
                yield from self._jammed(node)

    def whole(self, node: Any) -> Iterator[Form]:
        """Of a value with no operator an operand more, which mirrors it."""
        text, inner = self.text(node), bare(node)
        if text is None or operation(inner) in _JOINED or inner.kind.name == "ConditionalOp":
            return
        signs = ("|", "&") if node.type.bitWidth == 1 else ("+", "|")
        for other in self.mirrors(inner, text):
            for sign in signs:
                yield node, f"(({text}) {sign} ({other}))"

    def sides(self, node: Any) -> Iterator[Form]:
        """Operands of a chain of one operator, each as the mirror of another one: one of two may have been
        changed."""
        name = operation(node)
        if name not in _JOINED:
            return
        operands = list(self._chain(node, name))
        said = [self.text(each) for each in operands]
        plain = {"".join((text or "").split()) for text in said}
        if len(operands) > _MOST or None in said:
            return
        for at, one in enumerate(operands):
            for other in self.mirrors(one, said[at] or ""):
                if "".join(other.split()) in plain:
                    continue
                for place, two in enumerate(operands):
                    if place != at and two.type.bitWidth == one.type.bitWidth:
                        yield two, f"({other})"

    def _chain(self, node: Any, name: str) -> Iterator[Any]:
        for side in (node.left, node.right):
            inner = bare(side)
            if inner.kind.name == "BinaryOp" and operation(inner) == name:
                yield from self._chain(inner, name)
            else:
                yield inner

    # Groups -------------------------------------------------------------------------------------------------

    def _sides(self, node: Any) -> tuple[str, str, str] | None:
        """The texts of both operands and of the operator between them."""
        left, right = self.text(node.left), self.text(node.right)
        token = getattr(written(node), "operatorToken", None)
        if left is None or right is None or token is None or operation(node) not in _GROUPED:
            return None
        return left, token.valueText, right

    def _regrouped(self, node: Any) -> Iterator[Form]:
        """(a + b) << c as a + (b << c), and the other way round; a choice that an operand takes part in."""
        sides = self._sides(node)
        if sides is None:
            return
        left, right = bare(node.left), bare(node.right)
        if left.kind.name == "BinaryOp" and operation(left) != operation(node):
            inner = self._sides(left)
            if inner is not None:
                yield node, f"({inner[0]}) {inner[1]} (({inner[2]}) {sides[1]} ({sides[2]}))"
        if right.kind.name == "BinaryOp" and operation(right) != operation(node):
            inner = self._sides(right)
            if inner is not None:
                yield node, f"(({sides[0]}) {sides[1]} ({inner[0]})) {inner[1]} ({inner[2]})"
        choice = self._choice(left)
        if choice is not None:
            when, first, second = choice
            yield node, f"(({when}) ? ({first}) : (({second}) {sides[1]} ({sides[2]})))"
            yield node, f"(({when}) ? (({first}) {sides[1]} ({sides[2]})) : ({second}))"

    def _choice(self, node: Any) -> tuple[str, str, str] | None:
        if node.kind.name != "ConditionalOp" or len(node.conditions) != 1:
            return None
        when, first, second = (self.text(each) for each in (node.conditions[0].expr, node.left, node.right))
        return None if when is None or first is None or second is None else (when, first, second)

    def _around_a_choice(self, node: Any) -> Iterator[Form]:
        """What stands behind the last value of a choice, behind all of it."""
        choice, inner = self._choice(node), bare(node.right)
        if choice is None or inner.kind.name != "BinaryOp" or (sides := self._sides(inner)) is None:
            return
        yield node, f"((({choice[0]}) ? ({choice[1]}) : ({sides[0]})) {sides[1]} ({sides[2]}))"

    def _priorities(self, node: Any) -> Iterator[Form]:
        """Two conditions of a chain in the other order, and two values in each other's place."""
        one, two = self._choice(node), self._choice(bare(node.right))
        if one is None or two is None or node.left.type.bitWidth != bare(node.right).left.type.bitWidth:
            return
        yield node, f"(({two[0]}) ? ({two[1]}) : ({one[0]}) ? ({one[1]}) : ({two[2]}))"
        yield node, f"(({one[0]}) ? ({two[1]}) : ({two[0]}) ? ({one[1]}) : ({two[2]}))"
        yield node, f"(({one[0]}) ? ({one[1]}) : ({two[0]}) ? ({two[2]}) : ({two[1]}))"

    # Bits ---------------------------------------------------------------------------------------------------

    def _hidden_bits(self, node: Any) -> Iterator[Form]:
        """A bit before a fraction: whether any bit of the exponent, which lies above it, is one."""
        for bit, part in zip(node.operands[:-1], node.operands[1:], strict=True):
            slice_ = bare(part)
            if bit.type.bitWidth != 1 or slice_.kind.name != "RangeSelect" or self.text(bit) is None:
                continue
            kind, base, high = slice_.value.type, self.text(slice_.value), self._highest(slice_)
            if base is None or high is None or not kind.isIntegral or kind.fixedRange.right != 0:
                continue
            top = int(kind.fixedRange.left)
            for last in (top - 1, top):
                if last > high:
                    yield bit, f"(|{base}[{last}:{high + 1}])"

    def _highest(self, node: Any) -> int | None:
        """The highest bit of a slice whose bounds do not move."""
        constant = node.left.constant
        if constant is None or node.selectionKind.name not in ("Simple", "IndexedDown"):
            return None
        return int(constant.value)

    def _to_nearest_even(self, node: Any) -> Iterator[Form]:
        """A bit that rounds up: only above half, or to an even number."""
        base, at, kind = self.text(node.value), self.text(node.selector), node.value.type
        if base is None or at is None or not kind.isIntegral or node.type.bitWidth != 1:
            return
        if node.selector.constant is None or not kind.hasFixedRange or kind.fixedRange.right != 0:
            return
        if 0 < int(node.selector.constant.value) < kind.fixedRange.left:
            yield node, f"({base}[{at}] & ({base}[({at}) + 1] | (|{base}[({at}) - 1:0])))"

    def _jammed(self, node: Any) -> Iterator[Form]:
        """A slice whose last bit says whether anything below it is one."""
        kind = node.value.type
        if node.selectionKind.name != "Simple" or not kind.isIntegral or node.type.bitWidth < 2:
            return
        base, high, low = (self.text(part) for part in (node.value, node.left, node.right))
        constant = node.right.constant
        if None in (base, high, low) or constant is None or not kind.hasFixedRange:
            return
        if kind.fixedRange.right == 0 and int(constant.value) > 0:
            yield node, f"{{{base}[{high}:({low}) + 1], |{base}[{low}:0]}}"

    def _jammed_shift(self, node: Any) -> Iterator[Form]:
        """A shift to the right that keeps in its last bit whether it lost any one."""
        left, right = self.text(node.left), self.text(node.right)
        if operation(node) != "LogicalShiftRight" or left is None or right is None:
            return
        shifted = f"(({left}) >> ({right}))"
        lost = f"(({shifted} << ({right})) != ({left}))"
        lost = f"$signed({{1'b0, {lost}}})" if node.type.isSigned else lost
        yield node, f"({shifted} | {lost})"
