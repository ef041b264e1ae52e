"""A unit as a graph of words: what its result is of its operands, read from the netlist that Yosys makes.

    graph = Graph()
    result = Netlist(read(dut, folder), graph, "unit").result(AT)

Two units that are read into one graph share every word that both compute alike, since a node of the same
operation on the same nodes is made once. What nothing drives, and what a register holds before anything is
clocked in, are variables of their own, so that nothing is proved by a value that silicon need not have.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rtl_tb.dut.description import Dut
from rtl_tb.dut.runs import NAME
from rtl_tb.dut.translated import elaborated_by
from rtl_tb.errors import RtlError
from rtl_tb.simulators import translators

AT = 96
"""The cycle whose result is looked at: beyond the latency of every unit, so that what the registers held at
first is gone."""
RESET = 4
"""Cycles of reset before the first vector: what waits where is a constant after them."""
MOST = 400_000
"""Nodes of a graph at most; the largest reference units have 30,000."""
_DEEP = 1_000_000
"""Calls within calls that Python allows: a cell is read by those that it reads."""


class Unsupported(RtlError):
    """The netlist has a cell that is not read."""


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """A word of `width` bits: `kind` is var, const, or an operation on `args`. `value`: the number of a
    constant, the name of a variable, the lowest bit of a part."""

    kind: str
    width: int
    args: tuple[Node, ...]
    value: Any
    number: int


def _signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) & 1 else value


def compute(kind: str, width: int, low: Any, values: Sequence[int], widths: Sequence[int]) -> int:
    """What an operation gives of numbers."""
    mask, first = (1 << width) - 1, values[0]
    match kind:
        case "add":
            return (first + values[1]) & mask
        case "sub":
            return (first - values[1]) & mask
        case "mul":
            return (first * values[1]) & mask
        case "not":
            return ~first & mask
        case "and":
            return first & values[1]
        case "or":
            return first | values[1]
        case "xor":
            return first ^ values[1]
        case "shl":
            return (first << values[1]) & mask if values[1] < width else 0
        case "lshr":
            return int(first >> values[1])
        case "ashr":
            return _signed(first, width) >> min(values[1], width) & mask
        case "eq":
            return int(first == values[1])
        case "ult":
            return int(first < values[1])
        case "slt":
            return int(_signed(first, widths[0]) < _signed(values[1], widths[1]))
        case "ite":
            return values[1] if first else values[2]
        case "cat":
            return first << widths[1] | values[1]
        case "part":
            return first >> int(low) & mask
        case "sext":
            return _signed(first, widths[0]) & mask
    raise Unsupported(f"operation {kind}")


_COMMUTE = ("add", "mul", "and", "or", "xor", "eq")


class Graph:
    """Makes nodes, each once, and folds what is plain."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._made: dict[tuple[Any, ...], Node] = {}

    def _node(self, kind: str, width: int, args: tuple[Node, ...], value: Any = None) -> Node:
        key = (kind, width, tuple(arg.number for arg in args), value)
        node = self._made.get(key)
        if node is None:
            if len(self.nodes) == MOST:
                raise Unsupported(f"more than {MOST:,} nodes")
            node = self._made[key] = Node(kind, width, args, value, len(self.nodes))
            self.nodes.append(node)
        return node

    def const(self, value: int, width: int) -> Node:
        """A constant."""
        return self._node("const", width, (), value & (1 << width) - 1)

    def var(self, name: str, width: int) -> Node:
        """A variable."""
        return self._node("var", width, (), name)

    def make(self, kind: str, width: int, *args: Node) -> Node:
        """An operation on nodes, folded."""
        if all(arg.kind == "const" for arg in args):
            values, widths = [arg.value for arg in args], [arg.width for arg in args]
            return self.const(compute(kind, width, None, values, widths), width)
        if kind in _COMMUTE and args[0].number > args[1].number:
            args = (args[1], args[0])
        return self._folded(kind, width, args) or self._node(kind, width, args)

    def _folded(self, kind: str, width: int, args: tuple[Node, ...]) -> Node | None:
        """What an operation is without being made; None where it has to be."""
        ones = (1 << width) - 1
        if kind in ("add", "or", "xor", "and", "mul"):
            for one, other in (args, args[::-1]):
                if one.kind == "const" and one.value == 0:
                    return one if kind in ("and", "mul") else other
                if one.kind == "const" and one.value == ones and kind in ("and", "or"):
                    return other if kind == "and" else one
        if kind in ("and", "or") and args[0] is args[1]:
            return args[0]
        if kind in ("sub", "shl", "lshr", "ashr") and args[1].kind == "const" and args[1].value == 0:
            return args[0]
        if kind in ("sub", "xor") and args[0] is args[1]:
            return self.const(0, width)
        if kind == "not" and args[0].kind == "not":
            return args[0].args[0]
        if kind == "eq":
            return self._equal(*args)
        if kind in ("ult", "slt") and args[0] is args[1]:
            return self.const(0, 1)
        if kind == "ite":
            return self._chosen(width, *args)
        if kind == "cat":
            return self._joined(*args)
        if kind == "sext" and args[0].kind == "sext":
            return self.make("sext", width, args[0].args[0])
        return None

    def _equal(self, one: Node, other: Node) -> Node | None:
        if one is other:
            return self.const(1, 1)
        if one.width == 1:
            for this, that in ((one, other), (other, one)):
                if this.kind == "const":
                    return that if this.value else self.make("not", 1, that)
        return None

    def _chosen(self, width: int, condition: Node, one: Node, other: Node) -> Node | None:
        if condition.kind == "const":
            return one if condition.value else other
        if one is other:
            return one
        if condition.kind == "not":
            return self.make("ite", width, condition.args[0], other, one)
        if width == 1 and one.kind == other.kind == "const":
            return condition if one.value else self.make("not", 1, condition)
        return None

    def _joined(self, high: Node, low: Node) -> Node | None:
        if high.width == 1 and high.kind != "const" and self.part(low, low.width - 1, 1) is high:
            return self.make("sext", low.width + 1, low)  # as Yosys writes an extension, bit by bit
        if high.kind == "part" and low.kind == "part":
            whole = high.args[0]
            if whole is low.args[0] and high.value == low.value + low.width:
                return self.part(whole, low.value, high.width + low.width)
        if high.kind == "part" and low.kind == "cat" and low.args[0].kind == "part":
            next_ = low.args[0]
            if next_.args[0] is high.args[0] and high.value == next_.value + next_.width:
                return self.cat(self.part(high.args[0], next_.value, high.width + next_.width), low.args[1])
        return None

    def part(self, node: Node, low: int, width: int) -> Node:
        """Bits `low` and up."""
        if low == 0 and width == node.width:
            return node
        if node.kind == "const":
            return self.const(node.value >> low, width)
        if node.kind == "part":
            return self.part(node.args[0], low + node.value, width)
        if node.kind == "cat":
            high, rest = node.args
            if low >= rest.width:
                return self.part(high, low - rest.width, width)
            if low + width <= rest.width:
                return self.part(rest, low, width)
            upper = self.part(high, 0, low + width - rest.width)
            return self.cat(upper, self.part(rest, low, rest.width - low))
        if node.kind == "sext" and low + width <= node.args[0].width:
            return self.part(node.args[0], low, width)
        if node.kind == "sext" and width == 1:
            return self.part(node.args[0], node.args[0].width - 1, 1)
        return self._node("part", width, (node,), low)

    def cat(self, high: Node, low: Node) -> Node:
        """Two words, one above the other."""
        return self.make("cat", high.width + low.width, high, low)

    def sized(self, node: Node, width: int, signed: bool) -> Node:
        """A word cut, or extended with zeros or its sign."""
        if width <= node.width:
            return self.part(node, 0, width)
        if signed:
            return self.make("sext", width, node)
        return self.cat(self.const(0, width - node.width), node)

    def invert(self, node: Node) -> Node:
        """All bits exchanged."""
        return self.make("not", node.width, node)

    def any_bit(self, node: Node) -> Node:
        """Whether a word is not 0."""
        return node if node.width == 1 else self.invert(self.make("eq", 1, node, self.const(0, node.width)))

    def again(self, node: Node, args: Sequence[Node]) -> Node:
        """The same operation on other nodes."""
        if node.kind == "part":
            return self.part(args[0], node.value, node.width)
        return self.make(node.kind, node.width, *args) if args else node


def in_order(roots: Iterable[Node], stop: AbstractSet[int] = frozenset()) -> list[Node]:
    """All nodes below some, each after those that it reads; nothing below those of `stop`."""
    seen: set[int] = set()
    found: list[Node] = []
    stack = [(root, False) for root in roots]
    while stack:
        node, done = stack.pop()
        if done:
            found.append(node)
        elif node.number not in seen:
            seen.add(node.number)
            stack.append((node, True))
            if node.number not in stop:
                stack += [(arg, False) for arg in node.args if arg.number not in seen]
    return found


# From Yosys -------------------------------------------------------------------------------------------------

_FILE = "netlist.json"
_COMMANDS = ("flatten", "memory", "opt_clean", f"write_json {_FILE}")


def read(dut: Dut, wrapper: str) -> dict[str, Any]:
    """The netlist of a unit within its wrapper, as Yosys writes it.

    Raises:
        SimulatorMissing: Yosys is not installed. ElaborationError: it refuses the design.
    """
    with tempfile.TemporaryDirectory(prefix="mmagold_netlist_") as name:
        elaborated_by(translators.yosys(), dut, wrapper, _COMMANDS, Path(name))
        found: dict[str, Any] = json.loads((Path(name) / _FILE).read_text(encoding="utf-8"))
    return dict(found["modules"][NAME])


@dataclass
class Netlist:
    """A netlist as nodes of a graph. After a reset vectors come in every cycle, and results are always taken.

    Attributes:
        module: as Yosys writes it.
        graph: where its nodes are made.
        name: of what belongs to this netlist alone.
        elements: (lowest bit, bits) of what the operand word holds, each a variable of its own.
    """

    module: Mapping[str, Any]
    graph: Graph
    name: str
    elements: Sequence[tuple[int, int]]
    _drivers: dict[int, tuple[str, str, int]] = field(default_factory=dict)
    _cells: dict[tuple[str, int], Node | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Notes what drives each bit."""
        for name, cell in self.module["cells"].items():
            for port, bits in cell["connections"].items():
                if cell["port_directions"][port] == "output":
                    self._drivers.update({bit: ("cell", name, at) for at, bit in enumerate(bits)})
        for name, port in self.module["ports"].items():
            if port["direction"] == "input":
                self._drivers.update({bit: ("port", name, at) for at, bit in enumerate(port["bits"])})

    def result(self, at: int = AT) -> Node:
        """The result word in a cycle."""
        sys.setrecursionlimit(_DEEP)
        return self._bits(self.module["ports"]["out_data"]["bits"], at)

    def _bits(self, bits: Sequence[Any], at: int) -> Node:
        """The node of some bits, lowest first, made of parts as long as can be."""
        found: Node | None = None
        place = 0
        while place < len(bits):
            end = place + 1
            if isinstance(bits[place], str):
                while end < len(bits) and bits[end] == bits[place]:
                    end += 1
                piece = self._constant(bits[place], end - place)
            else:
                driver = self._drivers.get(bits[place])
                if driver is None:
                    piece = self.graph.var(f"{self.name}.open{bits[place]}", 1)
                else:
                    kind, name, index = driver
                    while end < len(bits) and self._drivers.get(bits[end]) == (
                        kind,
                        name,
                        index + end - place,
                    ):
                        end += 1
                    whole = self._port(name, at) if kind == "port" else self._cell(name, at)
                    piece = self.graph.part(whole, index, end - place)
            found = piece if found is None else self.graph.cat(piece, found)
            place = end
        assert found is not None
        return found

    def _constant(self, bit: str, width: int) -> Node:
        if bit in "01":
            return self.graph.const(-int(bit), width)
        return self.graph.var(f"{self.name}.x{len(self.graph.nodes)}", width)

    def _port(self, name: str, at: int) -> Node:
        if name in ("in_valid", "out_ready", "rst_n"):
            return self.graph.const(name == "out_ready" or at >= RESET, 1)
        if name != "in_data":
            raise Unsupported(f"a result that depends on {name}")
        found = None
        for low, width in sorted(self.elements):
            piece = self.graph.var(f"{low}@{at}", width)
            found = piece if found is None else self.graph.cat(piece, found)
        assert found is not None
        return found

    def _cell(self, name: str, at: int) -> Node:
        key = (name, at)
        if key in self._cells:
            node = self._cells[key]
            if node is None:
                raise Unsupported(f"a loop through {name}")
            return node
        self._cells[key] = None
        cell = self.module["cells"][name]
        numbers = {
            key: int(text, 2)
            for key, text in cell["parameters"].items()
            if isinstance(text, str) and text and set(text) <= {"0", "1"}
        }
        reader = _Cell(self, cell, numbers, at, name)
        self._cells[key] = found = reader.node()
        return found


@dataclass
class _Cell:
    """One cell in one cycle."""

    net: Netlist
    cell: Mapping[str, Any]
    numbers: Mapping[str, int]
    at: int
    name: str

    def node(self) -> Node:
        kind = self.cell["type"]
        if "dff" in kind:
            return self._register(kind)
        width = self.numbers.get("Y_WIDTH", self.numbers.get("WIDTH", 0))
        for table, look in _TABLES:
            if kind in table:
                return look(self, table[kind], width)
        raise Unsupported(f"a cell {kind}")

    def _input(self, port: str, before: int = 0) -> Node:
        return self.net._bits(self.cell["connections"][port], self.at - before)

    def _operands(self, width: int) -> tuple[Node, Node]:
        """A and B with the requested width, extended by their signs if both have one."""
        signed = bool(self.numbers["A_SIGNED"] and self.numbers["B_SIGNED"])
        graph = self.net.graph
        return graph.sized(self._input("A"), width, signed), graph.sized(self._input("B"), width, signed)

    def _binary(self, kind: str, width: int) -> Node:
        graph = self.net.graph
        made = graph.make(kind.removesuffix("n") if kind == "xorn" else kind, width, *self._operands(width))
        return graph.invert(made) if kind == "xorn" else made

    def _unary(self, kind: str, width: int) -> Node:
        graph = self.net.graph
        operand = graph.sized(self._input("A"), width, bool(self.numbers["A_SIGNED"]))
        if kind == "neg":
            return graph.make("sub", width, graph.const(0, width), operand)
        return graph.invert(operand) if kind == "not" else operand

    def _comparison(self, kind: str, width: int) -> Node:
        graph = self.net.graph
        widest = max(len(self.cell["connections"][port]) for port in "AB")
        one, other = self._operands(widest)
        less = "slt" if self.numbers["A_SIGNED"] and self.numbers["B_SIGNED"] else "ult"
        found = {
            "eq": lambda: graph.make("eq", 1, one, other),
            "ne": lambda: graph.invert(graph.make("eq", 1, one, other)),
            "lt": lambda: graph.make(less, 1, one, other),
            "gt": lambda: graph.make(less, 1, other, one),
            "le": lambda: graph.invert(graph.make(less, 1, other, one)),
            "ge": lambda: graph.invert(graph.make(less, 1, one, other)),
        }[kind]()
        return graph.sized(found, width, False)

    def _truth(self, kind: str, width: int) -> Node:
        graph = self.net.graph
        one = graph.any_bit(self._input("A"))
        if kind in ("and", "or"):
            one = graph.make(kind, 1, one, graph.any_bit(self._input("B")))
        return graph.sized(graph.invert(one) if kind == "not" else one, width, False)

    def _reduction(self, kind: str, width: int) -> Node:
        graph, operand = self.net.graph, self._input("A")
        if kind == "and":
            found = graph.make("eq", 1, operand, graph.const(-1, operand.width))
        elif kind == "or":
            found = graph.any_bit(operand)
        else:
            found = graph.part(operand, 0, 1)
            for bit in range(1, operand.width):
                found = graph.make("xor", 1, found, graph.part(operand, bit, 1))
            found = graph.invert(found) if kind == "xnor" else found
        return graph.sized(found, width, False)

    def _multiplexer(self, kind: str, width: int) -> Node:
        """What a constant selects is read alone: a register that takes a word forgets the one before."""
        graph, select = self.net.graph, self._input("S")
        if kind == "bmux":
            found = self._input("A")
            items = [graph.part(found, at * width, width) for at in range(found.width // width)]
            for bit in range(select.width):
                chosen = graph.part(select, bit, 1)
                pairs = zip(items[1::2], items[::2], strict=True)
                items = [graph.make("ite", width, chosen, one, other) for one, other in pairs]
            return items[0]
        choices = [graph.part(select, at, 1) for at in range(select.width)]
        always = [at for at, each in enumerate(choices) if each.kind == "const" and each.value]
        first = always[-1] if always else -1
        found = self._input("A") if first < 0 else self._choice(first, width)
        for at in range(first + 1, select.width):
            if choices[at].kind != "const":
                found = graph.make("ite", width, choices[at], self._choice(at, width), found)
        return found

    def _choice(self, at: int, width: int) -> Node:
        bits = self.cell["connections"]["B"][at * width : (at + 1) * width]
        return self.net._bits(bits, self.at)

    def _shift(self, kind: str, width: int) -> Node:
        graph, amount = self.net.graph, self._input("B")
        if self.numbers["B_SIGNED"]:
            raise Unsupported("a shift by a signed number")
        signed = bool(self.numbers["A_SIGNED"])
        if kind == "shl":
            return _shifted(graph, "shl", graph.sized(self._input("A"), width, signed), amount)
        operand = self._input("A")
        operand = graph.sized(operand, max(operand.width, width), signed)
        found = _shifted(graph, "ashr" if kind == "ashr" and signed else "lshr", operand, amount)
        found = graph.part(found, 0, width)
        if self.cell["type"] != "$shiftx" or amount.kind == "const":
            return found
        # Bits beyond the word are open: a variable that the same select of the same word has again.
        room = max(amount.width, (operand.width - width).bit_length())
        last = graph.const(operand.width - width, room)
        inside = graph.invert(graph.make("ult", 1, last, graph.sized(amount, room, False)))
        beyond = graph.var(f"beyond{operand.number}.{amount.number}.{width}", width)
        return graph.make("ite", width, inside, found, beyond)

    def _register(self, kind: str) -> Node:
        graph, width = self.net.graph, self.numbers["WIDTH"]
        if kind not in ("$dff", "$dffe", "$sdff", "$sdffe", "$sdffce"):
            raise Unsupported(f"a register {kind}")
        if self.at == 0:
            return graph.var(f"{self.net.name}.start.{self.name}", width)
        enable = self._active("EN")
        reset = self._active("SRST")
        if enable.kind == "const" and not enable.value:
            found = self.net._cell(self.name, self.at - 1)
        else:
            found = self._input("D", 1)
            if enable.kind != "const":
                found = graph.make("ite", width, enable, found, self.net._cell(self.name, self.at - 1))
        if reset.kind == "const" and not reset.value:
            return found
        value = self.cell["parameters"]["SRST_VALUE"]
        if set(value) - {"0", "1"}:
            raise Unsupported("a reset to x")
        if kind == "$sdffce":
            reset = graph.make("and", 1, reset, enable)
        return graph.make("ite", width, reset, graph.const(int(value, 2), width), found)

    def _active(self, port: str) -> Node:
        """Whether a control was active in the cycle before; without one it is enabled, and not reset."""
        graph = self.net.graph
        if port not in self.cell["connections"]:
            return graph.const(int(port == "EN"), 1)
        found = self._input(port, 1)
        return found if self.numbers[f"{port}_POLARITY"] else graph.invert(found)


def _shifted(graph: Graph, kind: str, operand: Node, amount: Node) -> Node:
    """A shift by a word of any width."""
    if amount.kind == "const":
        by, width = min(amount.value, operand.width), operand.width
        if by == width:
            return (
                graph.const(0, width)
                if kind != "ashr"
                else graph.make("sext", width, graph.part(operand, width - 1, 1))
            )
        if kind == "shl":
            return graph.cat(graph.part(operand, 0, width - by), graph.const(0, by)) if by else operand
        return graph.sized(graph.part(operand, by, width - by), width, kind == "ashr")
    width = max(operand.width, amount.width)
    made = graph.make(
        kind, width, graph.sized(operand, width, kind == "ashr"), graph.sized(amount, width, False)
    )
    return graph.part(made, 0, operand.width)


_TABLES: tuple[tuple[dict[str, str], Callable[[_Cell, str, int], Node]], ...] = (
    (
        {"$add": "add", "$sub": "sub", "$mul": "mul", "$and": "and", "$or": "or", "$xor": "xor"}
        | {"$xnor": "xorn"},
        _Cell._binary,
    ),
    ({"$not": "not", "$neg": "neg", "$pos": "pos", "$buf": "pos"}, _Cell._unary),
    (
        {f"${kind}": kind for kind in ("eq", "ne", "lt", "le", "gt", "ge")} | {"$eqx": "eq", "$nex": "ne"},
        _Cell._comparison,
    ),
    ({"$logic_and": "and", "$logic_or": "or", "$logic_not": "not"}, _Cell._truth),
    (
        {"$reduce_and": "and", "$reduce_or": "or", "$reduce_bool": "or", "$reduce_xor": "xor"}
        | {"$reduce_xnor": "xnor"},
        _Cell._reduction,
    ),
    ({"$mux": "mux", "$pmux": "pmux", "$bmux": "bmux"}, _Cell._multiplexer),
    (
        {"$shl": "shl", "$sshl": "shl", "$shr": "lshr", "$sshr": "ashr", "$shift": "lshr", "$shiftx": "lshr"},
        _Cell._shift,
    ),
)
"""By type of a cell its operation, and how it is read."""
