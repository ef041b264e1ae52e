"""Expressions whose value a text leaves open: elements and bits beyond what there is, divisions by zero,
literals and names of enumerations with X.

The language has X there. Verilator takes zeros or some other bits, and a chip whatever its gates make of it.
An index of loop variables and constants alone is the same in every vector, so that four states show it.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

_NAME = re.compile(r"(?<![\w$'`.])[A-Za-z_]\w*")
_FIXED = re.compile(
    r"\b(?:parameter|localparam|genvar)\b[^;()]*"
    r"|\bfor\s*\(\s*\w+\s+\w+|\bforeach\s*\([^)]*\)"
)
_COUNTED = re.compile(r"\bfor\s*\(\s*\w+\s*=")
_ENDS_EARLY = re.compile(r"\b(?:break|disable)\b")
_PASSES = re.compile(r"\b(?:break|continue|disable|return)\b")
"""What goes by the rest of a turn of a loop."""
_INDEX = re.compile(r"[\w\])]\s*\[(?=((?:[^\]:]|[-+]:)+))")
_DIVISOR = re.compile(r"(?<![/*])[/%](?![/*])\s*([A-Za-z_]\w*|\()")
_UNKNOWN = re.compile(r"'[sS]?(?:[xX]|[bodhBODH]\s*[0-9a-fA-FzZ?_]*[xX])")
_NO_CODE = re.compile(r"^[ \t]*`(?:line|timescale)\b.*$", re.MULTILINE)
_VALUES = ("$signed", "$unsigned", "$countones", "$onehot", "$onehot0")
"""Functions of the language whose arguments are computed."""
_STEPS = 3
"""Variables one after the other that are computed of those of loops."""
_COMPARED = ("CaseEquality", "CaseInequality", "WildcardEquality", "WildcardInequality")
"""Operators that know X."""
_BY_ONE = ("increment", "decrement")
_LITERALS = ("IntegerLiteral", "UnbasedUnsizedIntegerLiteral")
_LONGEST = 128
"""The most elements of a part that is looked at one by one."""
Given = Callable[[Callable[[Any, str], str]], tuple[str, str]]
"""What stands before and behind an expression, of a function that gives bits for a type and a place."""


def may_have_any(text: str) -> bool:
    """Whether a text may have such an expression; slang tells whether it has."""
    text = _NO_CODE.sub("", text)
    counted = [] if _ENDS_EARLY.search(text) else _COUNTED.findall(text)
    fixed = {name for found in [*_FIXED.findall(text), *counted] for name in _NAME.findall(found)}
    named = [name for found in _INDEX.findall(text) for name in _NAME.findall(found)]
    varies = any(name not in fixed for name in [*named, *_DIVISOR.findall(text)])
    return varies or _UNKNOWN.search(text) is not None


class Look:
    """Finds them in a compilation.

    Args:
        written: the text of a node.
        own: whether a place is in the text that is looked at.
        add: called with each such expression, what is open in it, and what it takes to give it bits.
    """

    def __init__(
        self,
        written: Callable[[Any], str],
        own: Callable[[Any], bool],
        add: Callable[[Any, str, Given], None],
    ) -> None:
        self.ast = importlib.import_module("pyslang.ast")
        self.written, self.own, self.add = written, own, add
        self.loops: set[int] = set()
        """Places of variables that loops count, and of those that are computed of them alone."""
        self.given: dict[int, list[Any]] = {}
        """What a variable is set to, by its place; None where operands decide whether it is."""

    def below(self, root: Any) -> None:
        """Looks at all in a compilation."""
        root.visit(self._note)
        for _ in range(_STEPS):
            self.loops |= {
                at
                for at, (value, *more) in self.given.items()
                if value is not None and not more and not self._varies(value)
            }
        root.visit(self._visit)

    def _note(self, node: Any) -> None:
        if isinstance(node, self.ast.ForLoopStatement):
            early = _ENDS_EARLY.search(str(node.syntax))  # what it counts then says where it ended
            named = [each.left for each in node.initializers if hasattr(each, "left") and not early]
            symbols = [*node.loopVars, *(each.symbol for each in named if hasattr(each, "symbol"))]
            self.loops |= {each.location.offset for each in symbols}
        elif isinstance(node, self.ast.ForeachLoopStatement):
            self.loops |= {each.loopVar.location.offset for each in node.loopDims if each.loopVar is not None}
        elif isinstance(node, self.ast.AssignmentExpression) and node.left.kind.name == "NamedValue":
            value = None if _has_condition(node) else node.right
            self.given.setdefault(node.left.symbol.location.offset, []).append(value)
        elif isinstance(node, self.ast.UnaryExpression) and node.op.name.endswith(_BY_ONE):
            counted = getattr(node.operand, "symbol", None)
            if counted is not None:
                self.given.setdefault(counted.location.offset, []).append(None)

    def _visit(self, node: Any) -> Any:
        ast = self.ast
        match node:
            case ast.ParameterSymbol() | ast.PortSymbol() | ast.GenvarSymbol():
                return ast.VisitAction.Skip
            case ast.TimedStatement():
                node.stmt.visit(self._visit)
                return ast.VisitAction.Skip
            case ast.AssignmentExpression():
                node.right.visit(self._visit)
                return ast.VisitAction.Skip
            case ast.UnaryExpression() if node.op.name.endswith(_BY_ONE):
                return ast.VisitAction.Skip
            case ast.CallExpression() if node.isSystemCall and node.subroutineName not in _VALUES:
                return ast.VisitAction.Skip
            case ast.ElementSelectExpression() | ast.RangeSelectExpression() | ast.MemberAccessExpression():
                self._select(node)
                return ast.VisitAction.Skip
            case ast.BinaryExpression() if node.op.name in _COMPARED:
                return self._but_literals(node.left, node.right)
            case ast.InsideExpression():
                return self._but_literals(node.left, *node.rangeList)
            case ast.CaseStatement():
                items = [each for item in node.items for each in item.expressions]
                below = [*(item.stmt for item in node.items), node.defaultCase]
                return self._but_literals(node.expr, *items, *filter(None, below))
            case ast.BinaryExpression() if node.op.name in ("Divide", "Mod"):
                self._division(node)
            case ast.Expression() if node.kind.name in _LITERALS:
                self._literal(node, node.value)
            case ast.NamedValueExpression() if node.symbol.kind.name == "EnumValue":
                self._literal(node, node.symbol.value.value)
        return ast.VisitAction.Advance

    def _but_literals(self, *nodes: Any) -> Any:
        """Looks at what is compared with what may be X or any bit."""
        for node in nodes:
            value = node
            while value.kind.name == "Conversion":
                value = value.operand
            named = value.kind.name == "NamedValue" and value.symbol.kind.name == "EnumValue"
            if not named and value.kind.name not in _LITERALS:
                node.visit(self._visit)
        return self.ast.VisitAction.Skip

    def _literal(self, node: Any, value: Any) -> None:
        """X of a literal, or of a name of an enumeration; Z alone is that of a net which others drive."""
        if not (hasattr(value, "countXs") and value.countXs() and self.own(node.sourceRange.start)):
            return
        texts = [str(value[at]) for at in reversed(range(value.bitWidth))]
        known = "".join(bit if bit in "01" else "0" for bit in texts)
        unknown = "".join(str(int(bit not in "01")) for bit in texts)

        def given(bits: Callable[[Any, str], str]) -> tuple[str, str]:
            width = f"{value.bitWidth}'{'s' * node.type.isSigned}b"
            return f"(1 ? ({bits(node.type, '')} & {width}{unknown} | {width}{known}) : (", "))"

        self.add(node, "literal", given)

    def _division(self, node: Any) -> None:
        if node.right.constant is None and node.type.isIntegral and self.own(node.sourceRange.start):
            zero = f"({self.written(node.right)}) == 0"
            self.add(node, "division", lambda bits: (f"(({zero}) ? {bits(node.type, zero)} : (", "))"))

    def _select(self, node: Any) -> None:
        """A select, with those in it."""
        guards, part, at = list[str](), None, node
        while at.kind.name in ("ElementSelect", "RangeSelect", "MemberAccess"):
            if at.kind.name == "ElementSelect":
                guards.append(self._beyond(at.selector, at.value.type, 0))
                at.selector.visit(self._visit)
            elif at.kind.name == "RangeSelect" and at.selectionKind.name != "Simple":
                part = at if at is node else part
                at.left.visit(self._visit)
            at = at.value
        at.visit(self._visit)
        kind = node.type
        if not (kind.isIntegral and kind.isFourState and self.own(node.sourceRange.start)):
            return
        if guard := " || ".join(filter(None, guards)):
            self.add(node, "select", lambda bits: (f"(({guard}) ? {bits(kind, guard)} : (", "))"))
        if part is not None:
            self._part(part)

    def _part(self, node: Any) -> None:
        """A part that begins anywhere: each of its elements may be beyond what there is."""
        count, whole = int(node.right.constant.value), node.value.type
        beyond = self._beyond(node.left, whole, count - 1, down=node.selectionKind.name == "IndexedDown")
        if not beyond or not whole.isIntegral or whole.fixedRange.left < whole.fixedRange.right:
            return
        if count > _LONGEST:
            return
        first, value = f"({self.written(node.left)})", self.written(node.value)
        if node.selectionKind.name == "IndexedDown":
            first = f"({first} - {count - 1})"
        width, (right, left) = node.type.bitWidth // count, (whole.fixedRange.right, whole.fixedRange.left)

        def given(bits: Callable[[Any, str], str]) -> tuple[str, str]:
            pattern = bits(node.type, beyond)
            each = [
                f"{first} + {at} < {right} || {first} + {at} > {left}"
                f" ? {width}'(({pattern}) >> {at * width}) : {value}[{first} + {at}]"
                for at in reversed(range(count))
            ]
            return f"(({beyond}) ? {{{', '.join(each)}}} : (", "))"

        self.add(node, "part", given)

    def _beyond(self, index: Any, kind: Any, more: int, down: bool = False) -> str:
        """A condition that holds where an index, or one of `more` above (or below) it, is out of the bounds
        of a type; "" where none can be."""
        if index.constant is not None or not kind.isFixedSize or not self._varies(index):
            return ""
        if not index.type.isIntegral:
            return ""
        span, width = kind.fixedRange, index.type.bitWidth
        least = min(span.left, span.right) + (more if down else 0)
        largest = max(span.left, span.right) - (0 if down else more)
        signed, text = index.type.isSigned, f"({self.written(index)})"
        tests = [f"{text} < {least}"] if signed or least > 0 else []
        if largest < (1 << width - signed) - 1:
            tests.append(f"{text} > {largest}")
        return " || ".join(tests)

    def _varies(self, index: Any) -> bool:
        found: list[int] = []

        def note(node: Any) -> None:
            if isinstance(node, self.ast.NamedValueExpression) and node.symbol.kind.name != "Parameter":
                found.append(node.symbol.location.offset)
            elif node.kind.name in ("Call", "LValueReference", "EmptyArgument"):
                found.append(-1)  # whatever it gives

        index.visit(note)
        return any(at not in self.loops for at in found)


def _has_condition(node: Any) -> bool:
    """Whether operands may decide that an assignment is made."""
    above = node.syntax
    while above is not None:
        kind = above.kind.name
        if kind in ("ConditionalStatement", "CaseStatement", "DoWhileStatement", "LoopStatement"):
            return True
        if kind.endswith("LoopStatement") and _PASSES.search(str(above)):
            return True
        above = above.parent
    return False
