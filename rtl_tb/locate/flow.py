"""Which signals of an elaborated design are made from which others without a register, through instances.

A build of choices must not close a loop of such signals, neither by one text nor by several together: also
where none of them is chosen, the simulator has to settle the loop in each cycle, or never does.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Node = tuple[int, str]
"""The number of an instance, and a name in it; `u.p` is what the input p of the instance u gets."""
_INSTANCES = 4
"""Instances of one module that are looked at: the others are connected alike."""
_NONE: frozenset[Node] = frozenset()


@dataclass(frozen=True)
class Wires:
    """The signals of a module that a text reads, and the ones that it drives without a register."""

    module: str
    driven: frozenset[str]
    read: frozenset[str]


class Flow:
    """The signals below the top of a design.

    Args:
        look: called for each instance; it may raise.
    """

    def __init__(self, top: Any, look: Callable[[], None] = lambda: None) -> None:
        self.ast, self.look = importlib.import_module("pyslang.ast"), look
        self.makes: dict[Node, set[Node]] = {}
        """What each signal is read for."""
        self.modules: dict[str, list[int]] = {}
        """The instances of each module."""
        self.count = 0
        self._made_from: dict[tuple[str, str], set[str]] = {}
        self._instance(top.body)

    def closes(self, wires: Wires) -> bool:
        """Whether one of the signals read is made from one of the driven ones, or is one."""
        made = [self._all_made_from(wires.module, target) for target in wires.driven]
        return any(name in each for name in wires.read for each in made)

    def _all_made_from(self, module: str, target: str) -> set[str]:
        if (module, target) not in self._made_from:
            found = {target}
            for instance in self.instances(module):
                found.update(name for at, name in self.reached({(instance, target)}, {}) if at == instance)
            self._made_from[module, target] = found
        return self._made_from[module, target]

    def instances(self, module: str) -> list[int]:
        """Some instances of a module."""
        return self.modules.get(module, [])[:_INSTANCES]

    def reached(self, start: set[Node], more: dict[Node, set[Node]]) -> set[Node]:
        """Everything that is made from some signals, also through further wires."""
        found, left = set(start), list(start)
        while left:
            one = left.pop()
            new = (self.makes.get(one, _NONE) | more.get(one, _NONE)) - found
            found |= new
            left += new
        return found

    def _instance(self, body: Any) -> int:
        self.look()
        number = self.count = self.count + 1
        self.modules.setdefault(body.definition.name, []).append(number)
        self._scope(body, number)
        return number

    def _scope(self, scope: Any, here: int) -> None:
        ast = self.ast
        for each in scope:
            match each:
                case ast.GenerateBlockSymbol() if each.isUninstantiated:
                    pass
                case ast.GenerateBlockSymbol() | ast.GenerateBlockArraySymbol() | ast.InstanceArraySymbol():
                    self._scope(each, here)
                case ast.InstanceSymbol() if each.isModule:
                    self._connections(each, here, self._instance(each.body))
                case ast.ContinuousAssignSymbol() if each.assignment.kind.name == "Assignment":
                    self._made(
                        (here, self._names(each.assignment.left)), (here, self._names(each.assignment.right))
                    )
                case ast.NetSymbol() if each.initializer is not None:
                    self._made((here, {each.name}), (here, self._names(each.initializer)))
                case ast.ProceduralBlockSymbol() if not self._is_clocked(each):
                    targets, read = set[str](), self._names(each.body)
                    each.body.visit(lambda node, into=targets: self._targets(node, into))
                    self._made((here, targets), (here, read - targets))

    def _connections(self, instance: Any, here: int, there: int) -> None:
        for one in instance.portConnections:
            port, value = one.port.name, one.expression
            if value is None or not hasattr(one.port, "direction"):  # an interface has none of its own
                continue
            if one.port.direction.name == "Out":
                self._made((here, self._names(getattr(value, "left", value))), (there, {port}))
            else:
                given = f"{instance.name}.{port}"
                self._made((here, {given}), (here, self._names(value)))
                self._made((there, {port}), (here, {given}))

    def _made(self, targets: tuple[int, set[str]], read: tuple[int, set[str]]) -> None:
        for name in read[1]:
            self.makes.setdefault((read[0], name), set()).update(
                (targets[0], target) for target in targets[1]
            )

    def _names(self, node: Any) -> set[str]:
        """The signals in an expression or a statement."""
        found: set[str] = set()

        def note(each: Any) -> None:
            if isinstance(each, self.ast.NamedValueExpression):
                found.add(each.symbol.name)

        node.visit(note)
        return found

    def _targets(self, node: Any, into: set[str]) -> None:
        if isinstance(node, self.ast.AssignmentExpression):
            into.update(self._names(node.left))

    def _is_clocked(self, block: Any) -> bool:
        """Whether an edge starts it, or it runs once."""
        kind, body = block.procedureKind.name, block.body
        if kind != "Always":
            return kind not in ("AlwaysComb", "AlwaysLatch")
        timing = getattr(body, "timing", None)
        events = [timing] if timing is None else getattr(timing, "events", [timing])
        return any(
            getattr(getattr(one, "edge", None), "name", "None_") not in ("None_", "None") for one in events
        )


class Together:
    """Wires that are added to a design and together close no loop."""

    def __init__(self, flow: Flow | None) -> None:
        self.flow, self.more = flow, dict[Node, set[Node]]()

    def fits(self, wires: Wires | None) -> bool:
        """Whether further wires close no loop; these are then added."""
        if wires is None or self.flow is None:
            return True
        instances = self.flow.instances(wires.module)
        for at in instances:
            made = self.flow.reached({(at, name) for name in wires.driven}, self.more)
            if any((at, name) in made for name in wires.read):
                return False
        for at in instances:
            for name in wires.read:
                self.more.setdefault((at, name), set()).update((at, each) for each in wires.driven)
        return True
