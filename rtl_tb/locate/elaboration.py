"""What an elaborated design does with its text: which expressions it reads while it runs, of which type, and
which text no instance has.

The syntax says what a text is; whether an expression is a number that has to stand before the unit runs (a
width, a bound of a loop, a parameter) or one that it computes with, only elaboration says. A module that
stands in a design several times is looked at once for each of its parameters.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rtl_tb.locate.kinds import Types
from rtl_tb.locate.sources import Place, Sources

_MODULAR = (
    *("Add", "Subtract", "Multiply", "BinaryAnd", "BinaryOr", "BinaryXor", "BinaryXnor"),
    *("Plus", "Minus", "BitwiseNot"),
)
"""Operators of which the low bits depend on the low bits of the operands alone."""
_SIGNALS = ("Variable", "Net", "FormalArgument", "Parameter", "EnumValue", "Port")


@dataclass
class Elaboration:
    """What was found.

    Attributes:
        types: for the kinds of change, see rtl_tb/locate/kinds.py.
        read: expressions that are evaluated while the unit runs, with the bits and the sign of the value; (0,
            False) if that is no number, such as a value of an enumeration.
        roots: the ones of them that are a whole value or condition.
        mixed: the ones that have other bits in another instance: one text cannot hold them as a choice.
        copies: how often a simulator may write each of them out: once for each iteration of a loop that
            generates. What instances share is written once, see rtl_tb/locate/selector.py, and so is the
            body of a procedure's loop, see rtl_tb/locate/choices.py.
        several: modules of which the design has several instances.
        modular: the ones of which the low bits depend on the low bits of their operands alone.
        assigned: the ones whose value a signal gets, so that bits above it are lost.
        calling: the ones that call a function of the design.
        bounds: of a select by its place the lowest and the highest index.
        used, idle: modules, functions, branches and values that some instance has, and the ones that an
            instance leaves out.
        fixed: functions that are called before the unit runs, for a parameter or a width: what they read has
            to be constant.
        statements: assignments of procedures.
        not_read: what could not be read, as "file:line", or the reason.
    """

    types: Types = field(default_factory=Types)
    read: dict[Place, tuple[int, bool]] = field(default_factory=dict)
    roots: dict[Place, None] = field(default_factory=dict)
    mixed: set[Place] = field(default_factory=set)
    copies: dict[Place, int] = field(default_factory=dict)
    several: set[str] = field(default_factory=set)
    modular: set[Place] = field(default_factory=set)
    assigned: set[Place] = field(default_factory=set)
    calling: set[Place] = field(default_factory=set)
    bounds: dict[Place, tuple[int, int]] = field(default_factory=dict)
    used: set[Place] = field(default_factory=set)
    idle: set[Place] = field(default_factory=set)
    fixed: list[Place] = field(default_factory=list)
    statements: dict[Place, None] = field(default_factory=dict)
    not_read: dict[str, None] = field(default_factory=dict)


def elaboration_of(compilation: Any, top: Any, sources: Sources, look: Callable[[], None]) -> Elaboration:
    """Reads a design below its top; `look` is called at each node and may raise."""
    walk = _Walk(sources, look)
    for package in compilation.getPackages():
        package.visit(walk.declared)
    compilation.getRoot().visit(walk.declared)
    for part in (top, *compilation.getPackages()):
        part.visit(walk.visit)
    walk.note_copies()
    walk.note_fixed([tree.root for tree in compilation.getSyntaxTrees()])
    return walk.found


class _Walk:
    def __init__(self, sources: Sources, look: Callable[[], None]) -> None:
        self.ast = importlib.import_module("pyslang.ast")
        self.sources, self.look, self.found = sources, look, Elaboration()
        self.bodies: dict[Any, dict[Any, int]] = {}
        """Modules that were read, each with its parameters, and how often each module holds it."""
        self.body: Any = None
        self.written: dict[tuple[Place, Any], int] = {}
        """How often a module holds an expression: once for each iteration of a loop that generates."""
        self.root: Place | None = None
        self.scope = self.scopes = 0
        """The number of the instance, or of the iteration of a loop."""
        self.typed: dict[tuple[int, Place], tuple[int, bool]] = {}

    # Declarations

    def declared(self, node: Any) -> Any:
        """Records the kind of value of a name."""
        self.look()
        ast = self.ast
        if isinstance(node, (ast.Expression, ast.Statement)) and not hasattr(node, "body"):
            return ast.VisitAction.Skip
        if isinstance(node, ast.FieldSymbol):
            return None
        if isinstance(node, ast.ValueSymbol) and node.location.buffer:
            kind = node.type
            key = _like(kind)
            place = (self.sources.file(node.location), self._offset(node))
            known = self.found.types.declared.setdefault(place, key)
            if known != key:  # as wide as a parameter says
                self.found.types.declared[place] = f"{node.name} of several widths"
            if isinstance(node, ast.ParameterSymbol) and kind.isIntegral:
                number = node.value.value  # None: of an interface that is not given one
                if number is not None and not number.hasUnknown:
                    self.found.types.numbers[node.name] = int(number)
            whole = kind.canonicalType
            if whole.isStruct and not getattr(whole, "isUnpackedStruct", False):
                self._members(whole)
        return None

    def _offset(self, node: Any) -> int:
        return int(node.location.offset)

    def _members(self, struct: Any) -> None:
        fields = [each for each in struct if each.kind.name == "Field"]
        for one in fields:
            same = [
                each.name for each in fields if _like(each.type) == _like(one.type) and each.name != one.name
            ]
            self.found.types.members.setdefault(one.name, same)

    # What is read

    def visit(self, node: Any) -> Any:
        """One node; whether the walk continues below it. A text with an unforeseen meaning is skipped, and
        the rest is read."""
        self.look()
        try:
            return self._visit(node)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            span = getattr(node, "sourceRange", None)
            start = node.location if span is None else span.start
            manager = self.sources.manager
            self.found.not_read[f"{manager.getFileName(start)}:{manager.getLineNumber(start)}"] = None
            return self.ast.VisitAction.Skip

    def _below(self, node: Any) -> None:
        if node is not None:
            node.visit(self.visit)

    def _use(self, syntax: Any, used: bool = True) -> None:
        if syntax is not None and (place := self.sources.place(syntax)) is not None:
            (self.found.used if used else self.found.idle).add(place)

    def _visit(self, node: Any) -> Any:
        ast = self.ast
        match node:
            case ast.ParameterSymbol():
                self._use(getattr(node.syntax, "initializer", None), not node.isOverridden)
            case ast.PortSymbol() | ast.VariableSymbol() | ast.GenvarSymbol():
                pass  # widths, and what is set once
            case ast.GenerateBlockSymbol() if node.isUninstantiated:
                self._use(node.syntax, used=False)
            case ast.GenerateBlockSymbol():
                self._use(node.syntax)
                self._within(node)
            case ast.InstanceBodySymbol():
                outer, key = self.body, self._key(node)
                again, holders = key in self.bodies, self.bodies.setdefault(key, {})
                holders[outer] = holders.get(outer, 0) + 1
                if not again:
                    self._use(node.definition.syntax)
                    self.body = key
                    self._within(node)
                    self.body = outer
            case ast.SubroutineSymbol():
                pass  # read where it is called
            case ast.VariableDeclStatement():
                if str(node.symbol.lifetime).endswith("Automatic"):
                    self._below(node.symbol.initializer)
            case ast.TimedStatement():
                self._below(node.stmt)
            case ast.ExpressionStatement():
                if (place := self.sources.place(node.syntax)) is not None:
                    self.found.statements[place] = None
                return ast.VisitAction.Advance
            case ast.ForLoopStatement():
                self._below(node.body)
            case ast.CaseStatement():
                self._below(node.expr)
                exact = node.condition.name == "Normal"  # bits that do not count have to be constant
                for item in node.items:
                    for label in item.expressions if exact else ():
                        self._note(_bare(label))
                    self._below(item.stmt)
                self._below(node.defaultCase)
            case ast.Expression():
                return self._expression(node)
            case _:
                return ast.VisitAction.Advance
        return ast.VisitAction.Skip

    def _within(self, node: Any) -> None:
        """An instance or an iteration of a loop: a width that a parameter sets may hold only there."""
        outer, self.scopes = self.scope, self.scopes + 1
        self.scope = self.scopes
        for each in node:
            self._below(each)
        self.scope = outer

    def _key(self, body: Any) -> Any:
        """The same for instances that are equal."""
        return (
            body.definition.name,
            tuple((each.name, self._value(each), each.isOverridden) for each in body.parameters),
        )

    def note_copies(self) -> None:
        """Counts how often a simulator may write an expression out, and the instances of each module."""
        counts: dict[Any, int] = {None: 1}

        def instances(key: Any) -> int:
            if key not in counts:
                counts[key] = 1  # no module holds itself
                counts[key] = sum(instances(outer) * times for outer, times in self.bodies[key].items())
            return counts[key]

        for (place, _), times in self.written.items():
            self.found.copies[place] = self.found.copies.get(place, 0) + times
        self.found.several = {key[0] for key in self.bodies if instances(key) > 1}

    def _called(self, function: Any) -> None:
        """A function, when the unit first calls it."""
        syntax = function.syntax
        place = None if syntax is None else self.sources.place(syntax)
        if place is not None and place not in self.found.used:
            self.found.used.add(place)
            outer, self.root = self.root, None
            self._below(function.body)
            self.root = outer

    def note_fixed(self, trees: Sequence[Any]) -> None:
        """Records which functions are called before the unit runs: by what it does not read, or by one of
        them. What it would read in them is none of its expressions."""
        functions: dict[str, list[Place]] = {}
        calls: list[tuple[Place, str]] = []

        def visit(node: Any) -> None:
            kind = type(node).__name__
            if kind not in ("FunctionDeclarationSyntax", "InvocationExpressionSyntax"):
                return
            if (place := self.sources.place(node)) is None:
                return
            name = node.prototype.name if kind == "FunctionDeclarationSyntax" else node.left
            called = (self.sources.text(name) or "").split("::")[-1].strip()
            if kind == "FunctionDeclarationSyntax":
                functions.setdefault(called, []).append(place)
            elif not called.startswith("$"):
                calls.append((place, called))

        for tree in trees:
            tree.visit(visit)
        read, found = self.found.calling, self.found
        idle = [place for each in functions.values() for place in each if place not in found.used]
        left = [name for place, name in calls if place not in read and not _inside(place, idle)]
        while left:
            for place in functions.pop(left.pop(), ()):
                found.fixed.append(place)
                found.used.add(place)
                left += [name for each, name in calls if each.lies_in(place)]
        for listed in (found.read, found.roots, found.statements):
            for place in [each for each in listed if _inside(each, found.fixed)]:
                del listed[place]

    def _value(self, parameter: Any) -> str:
        """The value of a parameter, or its type: its kind and number of bits."""
        if not isinstance(parameter, self.ast.TypeParameterSymbol):
            return str(parameter.value)
        kind = parameter.targetType.type
        return f"{kind} {kind.canonicalType} {kind.bitstreamWidth}"

    def _expression(self, node: Any) -> Any:
        ast = self.ast
        match node:
            case ast.AssignmentExpression():
                value = node.right
                while isinstance(value, ast.ConversionExpression):
                    value = value.operand
                targets = [node.left]
                while targets:
                    target = targets.pop()
                    if isinstance(target, ast.ConcatenationExpression):
                        targets += target.operands
                    elif isinstance(target, (ast.RangeSelectExpression, ast.ElementSelectExpression)):
                        self._bounds(target)
                        targets.append(target.value)
                    elif isinstance(target, ast.HierarchicalValueExpression):
                        self._member(target)
                if not isinstance(value, ast.EmptyArgumentExpression):  # no output of an instance
                    self._below(node.right)
                    if (place := self.sources.place(value)) is not None:
                        self.found.assigned.add(place)
                return ast.VisitAction.Skip
            case ast.HierarchicalValueExpression() if isinstance(node.symbol, ast.ModportPortSymbol):
                self._member(node)
            case ast.HierarchicalValueExpression() | ast.DataTypeExpression():
                return ast.VisitAction.Skip
            case ast.CallExpression() if node.isSystemCall and node.subroutineName not in (
                "$signed",
                "$unsigned",
            ):
                self._note(node)
                return ast.VisitAction.Skip
        self._note(node)
        match node:
            case ast.RangeSelectExpression():
                self._bounds(node)
                if not str(node.selectionKind).endswith("Simple"):
                    self._below(node.left)
            case ast.ElementSelectExpression():
                self._bounds(node)
                self._below(node.selector)
            case ast.MemberAccessExpression() | ast.ValueExpressionBase():
                pass
            case ast.InsideExpression():  # the values of a set are constants
                self._below(node.left)
            case ast.ReplicationExpression():
                self._below(node.concat)
            case ast.BinaryExpression() if _bare(node.left).kind.name == "LValueReference":
                self._below(node.right)
            case _:
                return ast.VisitAction.Advance
        return ast.VisitAction.Skip

    def _member(self, node: Any) -> None:
        """Records the kind of value of a member of an interface, where it stands."""
        if (place := self.sources.place(node)) is not None:
            self.found.types.declared[place.file, place.start] = _like(node.type)

    def _bounds(self, node: Any) -> None:
        kind, place = node.value.type, self.sources.place(node)
        if place is not None and kind.hasFixedRange:
            ends = sorted((kind.fixedRange.left, kind.fixedRange.right))
            self.found.bounds[place] = ends[0], ends[1]

    def _note(self, node: Any) -> None:
        """Records the expression at a place: the first one read at a place is the widest."""
        bare = _bare(node)
        compound = bare.kind.name == "BinaryOp" and _bare(bare.left).kind.name == "LValueReference"
        place = self.sources.place(node)
        if place is not None and node.kind.name == "Call" and not node.isSystemCall:
            self.found.calling.add(place)
            self._called(node.subroutine)
        if place is None or compound or not node.type.isIntegral:
            return
        text = self.sources.texts[place.file]
        named = text[max(place.start - 80, 0) : place.start].rstrip().endswith(".")
        if named or text.startswith(".*", place.start):  # ports: `.name`, and all of them
            return
        if self.root is None or not place.lies_in(self.root):
            self.root = place
            self.found.roots[place] = None
        if bare.kind.name == "ConditionalOp" or getattr(getattr(bare, "op", None), "name", "") in _MODULAR:
            self.found.modular.add(place)
        self.written[place, self.body] = self.written.get((place, self.body), 0) + 1
        kind = (node.type.bitWidth, bare.type.isSigned) if _is_number(node.type) else (0, False)
        own = self.typed.setdefault((self.scope, place), kind)
        if own != self.found.read.setdefault(place, own):
            self.found.mixed.add(place)
        if own[0]:
            self.found.types.expressions.setdefault(place, own)


def _inside(place: Place, others: Sequence[Place]) -> bool:
    return any(place.lies_in(each) for each in others)


def _bare(node: Any) -> Any:
    """An expression without implicit conversions."""
    while node.kind.name == "Conversion" and node.isImplicit:
        node = node.operand
    return node


def _is_number(kind: Any) -> bool:
    """Whether a type allows arithmetic: bits, but no enumeration and no structure."""
    return bool(kind.isIntegral and not kind.isEnum and not kind.isStruct and not kind.isPackedUnion)


def _like(kind: Any) -> str:
    """The same for types whose values may replace each other."""
    return f"{kind.bitWidth} {kind.isSigned}" if _is_number(kind) else str(kind)
