"""What a process reads and sets, statement by statement and bit by bit.

    flow = Flow(ast, process, body)
    flow.early, flow.written

Loops of constant bounds are unrolled, and functions are followed. Where a loop or an index is not constant,
less counts as set than may be.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

SIGNALS = ("Variable", "Net", "Field", "FormalArgument")
"""Kinds of symbols that hold a value."""
_SIZES = ("$bits", "$size", "$high", "$low", "$left", "$right", "$dimensions", "$unpacked_dimensions")
"""Functions that ask for a type and read nothing."""
_MOST = 20_000
"""Statements that are followed: then loops are no longer unrolled. A sum of 1,024 products has some 5,000."""
_LOOP, _PASS, _FUNCTION, _BLOCK = ("loop",), ("pass of a loop",), ("function",), "block"

Known = Mapping[Any, int] | None
"""Masks of the bits that are set for sure, by signal; None where no path comes to."""


class Flow:
    """A process.

    Attributes:
        read, written: masks of the bits that may be read and set, by signal.
        blocking: signals that are set with '='; `late`: with '<='.
        early: masks of the bits that are read where not every path has set them, by signal.
        functions: that are called.

    Args:
        ast: pyslang's module. body: a statement, of a process that behind its list of events, or an
            expression, of an assignment or at a port.
    """

    def __init__(self, ast: Any, process: Any, body: Any) -> None:
        self.ast = ast
        self.read: dict[Any, int] = {}
        self.written: dict[Any, int] = {}
        self.early: dict[Any, int] = {}
        self.blocking: set[Any] = set()
        self.late: set[Any] = set()
        self.functions: set[Any] = set()
        self._entered: list[Any] = []
        self._alone: set[Any] = set()
        self._ways: list[tuple[tuple[Any, ...], list[Known]]] = []
        self._constants: set[Any] = set()
        self._context = ast.EvalContext(process)
        self._context.pushEmptyFrame()
        self._count = 0
        if isinstance(body, ast.Expression):
            self._expression(body, {})
        else:
            self._statement(body, {})

    def stays(self, symbol: Any) -> bool:
        """Whether a variable keeps what it holds; an automatic one is x at first. pyslang calls the result of
        each function automatic."""
        for function in self.functions:
            if function.returnValVar is not None and function.returnValVar == symbol:
                return bool(function.defaultLifetime == self.ast.VariableLifetime.Static)
        return bool(getattr(symbol, "lifetime", None) != self.ast.VariableLifetime.Automatic)

    # Statements ---------------------------------------------------------------------------------------------

    def _statement(self, node: Any, known: Known) -> Known:
        """What is set for sure behind a statement, if `known` is before it."""
        self._count += 1
        match type(node).__name__:
            case "BlockStatement":
                name = () if node.blockSymbol is None else (node.blockSymbol,)
                return self._until((_BLOCK, *name), lambda: self._statement(node.body, known))
            case "StatementList":
                for each in node.list:
                    known = self._statement(each, known)
            case "ExpressionStatement":
                return self._expression(node.expr, known)
            case "VariableDeclStatement":
                return self._declared(node.symbol, known)
            case "ConditionalStatement":
                for each in node.conditions:
                    known = self._expression(each.expr, known)
                holds = self._constant(node.conditions[0].expr) if len(node.conditions) == 1 else None
                then = known if holds == 0 else self._statement(node.ifTrue, known)
                other = known if holds or node.ifFalse is None else self._statement(node.ifFalse, known)
                return _both(then, other) if holds is None else then if holds else other
            case "CaseStatement":
                for each in (node.expr, *(one for item in node.items for one in item.expressions)):
                    known = self._expression(each, known)
                ways = [self._statement(item.stmt, known) for item in node.items]
                if node.defaultCase is not None:
                    ways.append(self._statement(node.defaultCase, known))
                elif not self._full(node):
                    ways.append(known)
                return _both(*ways)
            case "ForLoopStatement" | "ForeachLoopStatement" | "RepeatLoopStatement":
                return self._until(_LOOP, lambda: self._loop(node, known))
            case "WhileLoopStatement" | "DoWhileLoopStatement" | "ForeverLoopStatement":
                if hasattr(node, "cond"):
                    known = self._expression(node.cond, known)
                return self._until(_LOOP, lambda: self._once(node.body, known))
            case "BreakStatement":
                return self._leave(_LOOP, known)
            case "ContinueStatement":
                return self._leave(_PASS, known)
            case "DisableStatement":
                return self._leave((_BLOCK, node.target.getSymbolReference()), known)
            case "ReturnStatement":
                if node.expr is not None:
                    known = self._expression(node.expr, known)
                    known = self._set(self._entered[-1].returnValVar, _ALL, known)
                return self._leave(_FUNCTION, known)
            case "TimedStatement":
                return self._statement(node.stmt, known)
            case "EmptyStatement" | "ImmediateAssertionStatement" | "ConcurrentAssertionStatement":
                pass
            case _:
                for each in self._expressions(node):
                    self._expression(each, known)
        return known

    def _until(self, scope: tuple[Any, ...], inside: Callable[[], Known]) -> Known:
        """What is set behind a scope that paths leave early."""
        ways: list[Known] = []
        self._ways.append((scope, ways))
        ways.append(inside())
        self._ways.pop()
        return _both(*ways)

    def _leave(self, scope: tuple[Any, ...], known: Known) -> Known:
        """A path that goes to the end of a scope; of one that is not around it, to the end of each."""
        places = [ways for each, ways in self._ways if each == scope][-1:] or [ways for _, ways in self._ways]
        for ways in places:
            ways.append(known)
        return None

    def _expressions(self, node: Any) -> list[Any]:
        """The outermost expressions within a statement."""
        found: list[Any] = []

        def look(each: Any) -> Any:
            if not isinstance(each, self.ast.Expression):
                return None
            found.append(each)
            return self.ast.VisitAction.Skip

        node.visit(look)
        return found

    def _declared(self, variable: Any, known: Known) -> Known:
        """The same of a declaration, which sets an automatic variable that it initialises: a static one is
        initialised once, before any operands, and then keeps what it holds."""
        if variable.initializer is None or variable.lifetime.name != "Automatic":
            return known
        return self._set(variable, _ALL, self._expression(variable.initializer, known))

    def _full(self, node: Any) -> bool:
        """Whether a case without a default has an item for each value. What one that says so leaves out is x,
        in a proof as in the netlist."""
        if node.check.name not in ("None_", "None"):
            return True
        values = {self._constant(one) for item in node.items for one in item.expressions}
        return len(values - {None}) >= 1 << min(int(node.expr.type.bitWidth), 16)

    # Loops --------------------------------------------------------------------------------------------------

    def _loop(self, node: Any, known: Known) -> Known:
        """A loop, pass by pass as long as its bounds are constant."""
        before = set(self._constants)
        if isinstance(node, self.ast.ForLoopStatement):
            known = self._counted(node, known)
        elif isinstance(node, self.ast.RepeatLoopStatement):
            known = self._expression(node.count, known)
            count = self._constant(node.count)
            known = self._passes(node.body, () if count is None else [{}] * count, count is not None, known)
        else:
            dims = [each for each in node.loopDims if each.loopVar is not None]
            for each in dims:
                known = self._set(each.loopVar, _ALL, known)
            fixed = None not in [each.range for each in dims]
            spans = [range(each.range.lower, each.range.upper + 1) for each in dims] if fixed else []
            places = (
                {each.loopVar: self._number(number) for each, number in zip(dims, numbers, strict=True)}
                for numbers in itertools.product(*spans)
            )
            known = self._passes(node.body, places, fixed, known)
        for each in self._constants - before:
            self._forget(each)
        return known

    def _counted(self, node: Any, known: Known) -> Known:
        """A for loop."""
        for each in node.loopVars:
            known = self._set(each, _ALL, self._expression(each.initializer, known))
            self._fix(each, each.initializer.eval(self._context))
        for each in node.initializers:
            known = self._expression(each, known)
            if isinstance(each, self.ast.AssignmentExpression) and hasattr(each.left, "symbol"):
                self._fix(each.left.symbol, each.right.eval(self._context))
        while known is not None:
            goes_on = None
            if node.stopExpr is not None:
                known = self._expression(node.stopExpr, known)
                goes_on = self._constant(node.stopExpr)
            if goes_on == 0:
                return known
            if goes_on is None or self._count > _MOST:
                known = self._once(node.body, known)
                for each in node.steps:
                    self._expression(each, known)
                return known
            known = self._pass(node.body, known)
            for each in node.steps:
                fixed = {*self._constants}
                after = each.eval(self._context)
                self._constants.clear()  # what it sets is known
                known = self._expression(each, known)
                self._constants |= fixed
                if after.value is None:
                    for variable in fixed:
                        self._forget(variable)
        return known

    def _passes(self, body: Any, places: Iterable[Mapping[Any, Any]], fixed: bool, known: Known) -> Known:
        """The passes of a loop with the constants of each, where they are fixed."""
        for constants in places if fixed else ():
            if known is None:
                return known
            if self._count > _MOST:
                return self._once(body, known)
            for variable, value in constants.items():
                self._fix(variable, value)
            known = self._pass(body, known)
        return known if fixed else self._once(body, known)

    def _pass(self, body: Any, known: Known) -> Known:
        return self._until(_PASS, lambda: self._statement(body, known))

    def _once(self, body: Any, known: Known) -> Known:
        """A loop of which it is not known how often it goes: it may not go at all."""
        for each in [*self._constants]:  # nor which pass it is
            self._forget(each)
        self._pass(body, known)
        return known

    def _fix(self, variable: Any, value: Any) -> None:
        """A variable has a constant value for now."""
        if value.value is not None:
            self._context.createLocal(variable, value)
            self._constants.add(variable)
        else:
            self._forget(variable)

    def _forget(self, variable: Any) -> None:
        if variable in self._constants:
            self._context.deleteLocal(variable)
            self._constants.discard(variable)

    @staticmethod
    def _number(number: int) -> Any:
        """A value of the type of a foreach loop's variables."""
        pyslang = importlib.import_module("pyslang")
        return pyslang.ConstantValue(pyslang.SVInt(32, number, True))

    def _constant(self, node: Any) -> int | None:
        """The number that an expression is here; None: it depends on signals."""
        found = node.eval(self._context).value
        try:
            return None if found is None else int(found)
        except (TypeError, ValueError, RuntimeError):  # a bit of it is x, or it is no integer
            return None

    # Expressions --------------------------------------------------------------------------------------------

    def _expression(self, node: Any, known: Known) -> Known:
        """What is set for sure behind an expression."""
        ast, skip = self.ast, self.ast.VisitAction.Skip

        def look(each: Any) -> Any:
            nonlocal known
            if isinstance(each, ast.AssignmentExpression):
                known = self._expression(each.right, known)
                known = self._target(each.left, known, each.isCompound, each.isNonBlocking)
                return skip
            if isinstance(each, ast.UnaryExpression) and "crement" in each.op.name:
                known = self._target(each.operand, known, True, False)
                return skip
            if isinstance(each, ast.ConditionalExpression):
                for one in each.conditions:
                    known = self._expression(one.expr, known)
                known = _both(self._expression(each.left, known), self._expression(each.right, known))
                return skip
            if isinstance(each, ast.BinaryExpression) and each.op.name.startswith("Logical"):
                known = self._expression(each.left, known)
                self._expression(each.right, known)  # perhaps
                return skip
            if isinstance(each, ast.CallExpression):
                if not each.isSystemCall:
                    known = self._call(each, known)
                    return skip
                return skip if each.subroutineName in _SIZES else None
            if (part := self._part(each)) is not None:
                symbol, mask, _ = part
                for index in self._indices(each):
                    known = self._expression(index, known)
                self._use(symbol, mask, known)
                return skip
            return None

        node.visit(look)
        return known

    def _call(self, node: Any, known: Known) -> Known:
        """The same of a call: arguments, statements, and what it hands back."""
        function, ast = node.subroutine, self.ast
        back: list[Any] = []
        for one in node.arguments:
            if isinstance(one, ast.AssignmentExpression):  # of an output
                back.append(one.left)
                known = self._expression(one.left, known) if self._reads_back(function) else known
            else:
                known = self._expression(one, known)
        if function not in self._entered and function not in self._alone:  # one may call itself
            held, self.read, self.written = (self.read, self.written), {}, {}
            outputs = [function.returnValVar] if function.returnValVar is not None else []
            for formal in function.arguments:
                if formal.direction.name == "Out":
                    outputs.append(formal)
                else:
                    known = self._set(formal, _ALL, known)
            self._entered.append(function)
            self.functions.add(function)
            known = self._until(_FUNCTION, lambda: self._statement(function.body, known))
            self._entered.pop()
            for each in outputs:
                self._use(each, _whole(each), known)
            if all(within(each, function) for each in (*self.read, *self.written)):
                self._alone.add(function)
            self.read, self.written = (
                _all(one, more) for one, more in zip(held, (self.read, self.written), strict=True)
            )
        for each in back:
            known = self._target(each, known, False, False)
        return known

    @staticmethod
    def _reads_back(function: Any) -> bool:
        return any(each.direction.name in ("InOut", "Ref") for each in function.arguments)

    def _use(self, symbol: Any, mask: int, known: Known) -> None:
        if known is not None and symbol.kind.name in SIGNALS:
            self.read[symbol] = self.read.get(symbol, 0) | mask
            if early := mask & ~known.get(symbol, 0):
                self.early[symbol] = self.early.get(symbol, 0) | early

    def _set(self, symbol: Any, mask: int, known: Known) -> Known:
        mask &= _whole(symbol)
        self.written[symbol] = self.written.get(symbol, 0) | mask
        self._forget(symbol)
        return known if known is None else {**known, symbol: known.get(symbol, 0) | mask}

    def _target(self, node: Any, known: Known, also_read: bool, late: bool) -> Known:
        """What is set for sure behind an assignment to `node`; its indices are read."""
        ast = self.ast
        if isinstance(node, ast.ConcatenationExpression):
            for each in node.operands:
                known = self._target(each, known, also_read, late)
            return known
        part = self._part(node)
        if part is None:  # a pattern, a stream: some of it may be set
            for each in self._values(node):
                self._target(each, known, also_read, late)
            return known
        symbol, mask, sure = part
        for index in self._indices(node):
            known = self._expression(index, known)
        if also_read:
            self._use(symbol, mask, known)
        (self.late if late else self.blocking).add(symbol)
        after = self._set(symbol, mask, known)
        return known if late or not sure else after

    def _values(self, node: Any) -> list[Any]:
        found: list[Any] = []
        node.visit(
            lambda each: found.append(each) if isinstance(each, self.ast.ValueExpressionBase) else None
        )
        return found

    # Parts --------------------------------------------------------------------------------------------------

    def _part(self, node: Any) -> tuple[Any, int, bool] | None:
        return part_of(self.ast, node, self._constant)

    def _indices(self, node: Any) -> Iterable[Any]:
        """The expressions that say which part of a signal it is."""
        while not isinstance(node, self.ast.ValueExpressionBase):
            for key in ("selector", "left", "right"):
                if hasattr(node, key):
                    yield getattr(node, key)
            node = node.value


_ALL = -1
"""The mask of all bits of a signal, however many."""


def part_of(ast: Any, node: Any, constant: Callable[[Any], int | None]) -> tuple[Any, int, bool] | None:
    """The signal that an expression names, a mask of the bits of it that it may be, and whether it is just
    these; None: it is no part of a signal."""
    if isinstance(node, ast.ValueExpressionBase):
        return node.symbol, _whole(node.symbol), True
    if not isinstance(
        node, ast.ElementSelectExpression | ast.RangeSelectExpression | ast.MemberAccessExpression
    ):
        return None
    if (found := part_of(ast, node.value, constant)) is None:
        return None
    symbol, mask, sure = found
    low = _low(ast, node, constant)
    width = int(node.type.selectableWidth)
    if not sure or low is None or low < 0 or low + width > int(node.value.type.selectableWidth):
        return symbol, mask, False  # some bits of the whole
    base = (mask & -mask).bit_length() - 1
    return symbol, ((1 << width) - 1) << base + low, True


def _low(ast: Any, node: Any, constant: Callable[[Any], int | None]) -> int | None:
    """The lowest bit of a part within what it is a part of; None: it is not constant."""
    if isinstance(node, ast.MemberAccessExpression):
        return int(node.member.bitOffset)
    whole = node.value.type
    if not whole.hasFixedRange:
        return None
    if isinstance(node, ast.ElementSelectExpression):
        first = constant(node.selector)
        last, each = first, int(node.type.selectableWidth)
    else:
        first, other = constant(node.left), constant(node.right)
        if first is None or other is None:
            return None
        kind = node.selectionKind.name
        last = (
            first + other - 1
            if kind == "IndexedUp"
            else first - other + 1
            if kind == "IndexedDown"
            else other
        )
        each = int(node.type.selectableWidth) // (abs(last - first) + 1)
    if first is None or last is None:
        return None
    bounds = whole.fixedRange
    down = bounds.left >= bounds.right
    low, high = min(first, last), max(first, last)
    return int(low - bounds.lower if down else bounds.upper - high) * each


def _whole(symbol: Any) -> int:
    return (1 << int(symbol.type.selectableWidth)) - 1


def within(symbol: Any, scope: Any) -> bool:
    """Whether a symbol is declared in the text of a process or function."""
    where, text = symbol.location, scope.syntax.sourceRange
    return bool(where.buffer == text.start.buffer and text.start.offset <= where.offset <= text.end.offset)


def _all(one: Mapping[Any, int], other: Mapping[Any, int]) -> dict[Any, int]:
    """Bits of either."""
    return {each: one.get(each, 0) | other.get(each, 0) for each in (*one, *other)}


def _both(*ways: Known) -> Known:
    """What is set on each of some paths."""
    real = [each for each in ways if each is not None]
    if not real:
        return None
    first, *rest = real
    found = {}
    for symbol, mask in first.items():
        for each in rest:
            mask &= each.get(symbol, 0)
        if mask:
            found[symbol] = mask
    return found
