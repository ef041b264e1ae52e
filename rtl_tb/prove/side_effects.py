"""Expressions that set variables: a language leaves open in which order, and synthesis computes parts that a
simulator leaves out.

    found = SideEffects(ast)
    found.unsure(expression), found.sharing(expression)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rtl_tb.prove.flow import SIGNALS, within

Part = tuple[set[Any], set[Any]]
"""What a part of an expression reads, and what it sets."""


class SideEffects:
    """Of the text of one unit.

    Args:
        ast: pyslang's module.
    """

    def __init__(self, ast: Any) -> None:
        self.ast = ast
        self._of: dict[Any, Part] = {}
        self._seen: set[Any] = set()

    def expressions(self, node: Any) -> Iterator[Any]:
        """The outermost expressions of statements, and of the functions that these call, each once."""
        found: list[Any] = []
        calls: list[Any] = []
        ast = self.ast

        def look(each: Any) -> Any:
            if isinstance(each, ast.CallExpression) and not each.isSystemCall:
                calls.append(each.subroutine)
            return None

        def outer(each: Any) -> Any:
            if isinstance(each, ast.VariableDeclStatement) and each.symbol.initializer is not None:
                found.append(each.symbol.initializer)
            if not isinstance(each, ast.Expression):
                return None
            found.append(each)
            return ast.VisitAction.Skip

        node.visit(outer)
        for each in found:
            each.visit(look)
        yield from found
        for function in calls:
            if function not in self._seen:
                self._seen.add(function)
                yield from self.expressions(function.body)

    def unsure(self, node: Any, alone: bool = True) -> set[Any]:
        """Variables that an expression sets in a part that may not be computed, or reads or sets in another
        part, too.

        Args:
            alone: whether it is a statement; what a net is made of must not set anything.
        """
        ast = self.ast
        parts: list[Part] = []
        found: set[Any] = set()

        def add(reads: set[Any], sets: set[Any], perhaps: bool) -> None:
            parts.append((reads, sets))
            if perhaps or not alone:
                found.update(sets)

        def take(node: Any, perhaps: bool) -> None:
            def look(each: Any) -> Any:
                if isinstance(each, ast.AssignmentExpression):
                    add(set(), self._targets(each.left), perhaps)
                    take(each.right, perhaps)
                elif isinstance(each, ast.UnaryExpression) and "crement" in each.op.name:
                    add(set(), self._targets(each.operand), perhaps)
                elif isinstance(each, ast.ConditionalExpression):
                    for one in each.conditions:
                        take(one.expr, perhaps)
                    take(each.left, True)
                    take(each.right, True)
                elif isinstance(each, ast.BinaryExpression) and each.op.name.startswith("Logical"):
                    take(each.left, perhaps)
                    take(each.right, True)
                elif isinstance(each, ast.CallExpression) and not each.isSystemCall:
                    add(*self._effects(each.subroutine), perhaps)
                    for one in each.arguments:
                        take(one, perhaps)
                elif isinstance(each, ast.ValueExpressionBase):
                    add({each.symbol}, set(), perhaps)
                else:
                    return None
                return ast.VisitAction.Skip

            node.visit(look)

        if isinstance(node, ast.AssignmentExpression):
            take(node.right, False)
            if any(sets for _, sets in parts):
                parts.append((self._targets(node.left), set()))
        elif isinstance(node, ast.CallExpression) and not node.isSystemCall:
            for each in node.arguments:
                take(each.right if isinstance(each, ast.AssignmentExpression) else each, False)
        elif not (isinstance(node, ast.UnaryExpression) and "crement" in node.op.name):
            take(node, False)
        for at, (_, sets) in enumerate(parts):
            for other, (reads, more) in enumerate(parts):
                if at != other:
                    found |= sets & (reads | more)
        return found

    def sharing(self, node: Any) -> set[Any]:
        """Functions of an expression that call themselves and have variables that all calls share."""
        found: set[Any] = set()

        def look(each: Any) -> None:
            if isinstance(each, self.ast.CallExpression) and not each.isSystemCall:
                function = each.subroutine
                if function.defaultLifetime == self.ast.VariableLifetime.Static and function in self._called(
                    function
                ):
                    found.add(function)

        node.visit(look)
        return found

    def _called(self, function: Any) -> set[Any]:
        """The functions that one calls, at once or through others."""
        found: set[Any] = set()
        left = [function]

        def look(each: Any) -> None:
            called = isinstance(each, self.ast.CallExpression) and not each.isSystemCall
            if called and each.subroutine not in found:
                found.add(each.subroutine)
                left.append(each.subroutine)

        while left:
            left.pop().body.visit(look)
        return found

    def _effects(self, function: Any) -> Part:
        """What a function reads and sets that is declared outside of it."""
        if function not in self._of:
            self._of[function] = (set(), set())  # while it is followed: it may call itself
            ast = self.ast
            reads: set[Any] = set()
            sets: set[Any] = set()

            def look(each: Any) -> None:
                if isinstance(each, ast.AssignmentExpression):
                    sets.update(self._targets(each.left))
                elif isinstance(each, ast.UnaryExpression) and "crement" in each.op.name:
                    sets.update(self._targets(each.operand))
                elif isinstance(each, ast.ValueExpressionBase):
                    if each.symbol.kind.name in SIGNALS:
                        reads.add(each.symbol)
                elif isinstance(each, ast.CallExpression) and not each.isSystemCall:
                    more = self._effects(each.subroutine)
                    reads.update(more[0])
                    sets.update(more[1])

            function.body.visit(look)
            outside = [{one for one in some if not within(one, function)} for some in (reads, sets)]
            self._of[function] = (outside[0], outside[1])
        return self._of[function]

    def _targets(self, node: Any) -> set[Any]:
        """The variables that an assignment to `node` sets."""
        found: set[Any] = set()
        while hasattr(node, "value") and not isinstance(node, self.ast.ValueExpressionBase):
            node = node.value
        node.visit(
            lambda each: found.add(each.symbol) if isinstance(each, self.ast.ValueExpressionBase) else None
        )
        return found
