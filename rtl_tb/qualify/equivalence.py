"""Whether two units that differ in a line answer alike, whatever the operands: a proof, or operands that show
the difference.

    found = compare(unit, mutant, words, seconds=60)
    found.result, found.word

Both become one graph (rtl_tb/qualify/netlist.py), in which all that the change does not touch is the same
node. Some vectors give every node a signature. From the operands down, each node that the mutant alone has is
held against those of the unit with its signature: a solver (bitwuzla) proves that the two are equal, first of
any values of what they share a step below, then from farther and farther up, at last from the operands. Equal
ones become one node, so that a change without effect ends where its effect does. What differs gives operands;
where these do not reach the result they join the vectors. Operands that reach it are looked for with few
products that are not zero first, then with all.

It is a statement about the netlists that Yosys reads, at full throughput: not about stalls or resets.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import random
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rtl_tb.dut.description import Dut
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.errors import SimulatorMissing
from rtl_tb.qualify.netlist import Graph, Netlist, Node, Unsupported, compute, in_order, read
from rtl_tb.qualify.ranges import Range, Ranges

EQUIVALENT, DIFFERS, UNKNOWN = "equivalent", "differs", "unknown"
SAME = "the same netlist"
"""How units answer alike that have the same graph."""
GET_BITWUZLA = "pip install bitwuzla"
_STEPS: tuple[int | str, ...] = (0, 4, 12, 30, "products", "nothing")
"""How many operations below two nodes what they share is free, one after the other; then products alone are
free, and at last nothing is."""
_SECONDS = (1.0, 1.0, 2.0, 4.0, 5.0, 5.0)
"""For a question to the solver at each of them; the last question, of the results, has what is left."""
_CANDIDATES = 2
"""Nodes of one signature that are tried."""


@dataclass(frozen=True)
class Found:
    """What came of a comparison.

    Attributes:
        result: EQUIVALENT, DIFFERS or UNKNOWN.
        how: what settled it, or why nothing did.
        word: the operand word on which the units differ, as the layout of the unit packs it.
    """

    result: str
    how: str
    word: int | None = None


class _Late(Exception):
    """The time is up."""


def compare(unit: Dut, mutant: Dut, words: Sequence[int], seconds: float, differs: bool = False) -> Found:
    """Compares a unit with a mutant of its text.

    Args:
        words: operand words of some vectors, the more various the better.
        seconds: for all questions to the solver together.
        differs: known to differ, so that nothing is to be proved.

    Raises:
        SimulatorMissing: Yosys or bitwuzla is not installed. ElaborationError: Yosys refuses one.
    """
    if importlib.util.find_spec("bitwuzla") is None:
        raise SimulatorMissing(f"bitwuzla, which proves that units answer alike; install it: {GET_BITWUZLA}")
    graph, wrapper = Graph(), wrapper_of(unit)
    fields = unit.layout.operand_fields
    elements = [(field.lsb + at * field.bits, field.bits) for field in fields for at in range(field.elements)]
    try:
        one, other = (
            Netlist(read(dut, wrapper), graph, name, elements).result()
            for dut, name in ((unit, "unit"), (mutant, "mutant"))
        )
        cycles = {node.value.partition("@")[2] for node in in_order([one]) if node.kind == "var"}
        if len(cycles) != 1 or "" in cycles:
            raise Unsupported("a result of more than one vector")
    except Unsupported as error:
        return Found(UNKNOWN, f"not read: {error}")
    if one is other:
        return Found(EQUIVALENT, SAME)
    pair = _Pair(graph, one, other, _Values(words, one), time.monotonic() + seconds)
    try:
        return _compared(pair, _elements_apart(unit), differs)
    except _Late:
        return Found(UNKNOWN, f"not settled in {seconds:g} s")


def _compared(pair: _Pair, sets: Sequence[set[int]], differs: bool) -> Found:
    half = pair.until - (pair.until - time.monotonic()) / 2
    if not differs:
        try:
            if pair.swept(half) is pair.one:
                return Found(EQUIVALENT, f"{pair.merged} nodes proved equal")
        except _Late:
            pass
        if pair.word is not None:
            return Found(DIFFERS, "met on the way", pair.word)
    for zero in sets:
        fewer = pair.with_zeros(zero)
        if fewer.one is not fewer.other and fewer.differ(max(2.0, (pair.until - time.monotonic()) / 4)):
            return Found(DIFFERS, f"with {len(zero)} elements of a and b that are 0", fewer.word)
    if pair.differ(pair.until - time.monotonic()):
        return Found(DIFFERS, "of all operands", pair.word)
    if pair.same:
        return Found(EQUIVALENT, f"{pair.merged} nodes proved equal, and the results")
    raise _Late


def _elements_apart(unit: Dut) -> list[set[int]]:
    """Sets of elements of a and b that are zero: all but the first, but the last, but two of them."""
    count = max(field.elements for field in unit.layout.operand_fields if field.name in "ab")
    live = [{0}, {count - 1}, {0, 1}, {0, count - 1}, {0, count // 2}]
    found: list[set[int]] = []
    for kept in live:
        zero = {
            field.lsb + at * field.bits
            for field in unit.layout.operand_fields
            if field.name in ("a", "b") and field.elements > 1
            for at in range(field.elements)
            if at * count // field.elements not in kept
        }
        if zero and zero not in found:
            found.append(zero)
    return found


class _Values:
    """Operands of some vectors, by variable."""

    def __init__(self, words: Sequence[int], result: Node) -> None:
        names = [node.value for node in in_order([result]) if node.kind == "var" and "@" in node.value]
        self.words = list(words)
        self.cycle = names[0].partition("@")[2] if names else ""
        self._rng = random.Random(1)
        self._open: dict[str, list[int]] = {}

    def of(self, node: Node, first: int = 0) -> list[int]:
        """What a variable holds in the vectors from `first` on; what is no operand of theirs holds any
        bits."""
        low, _, cycle = node.value.partition("@")
        if cycle and cycle == self.cycle:
            return [word >> int(low) & (1 << node.width) - 1 for word in self.words[first:]]
        known = self._open.setdefault(node.value, [])
        while len(known) < len(self.words):
            known.append(self._rng.getrandbits(node.width))
        return known[first:]

    def word(self, model: Mapping[str, int]) -> int:
        """The operand word of a model; what it does not say is 0."""
        found = 0
        for name, value in model.items():
            low, _, cycle = name.partition("@")
            if cycle == self.cycle:
                found |= value << int(low)
        return found


class _Pair:
    """Two results in one graph, `one` of the unit and `other` of the mutant, and what is known of them.

    Attributes:
        word: operands on which they differ, once found.
        same: whether they were proved to be equal.
        merged: nodes of the mutant that were proved to be one of the unit's.
    """

    def __init__(self, graph: Graph, one: Node, other: Node, values: _Values, until: float) -> None:
        self.graph, self.one, self.other, self.values, self.until = graph, one, other, values, until
        self.word: int | None = None
        self.same, self.merged = one is other, 0
        self.solver = _Solver()
        self.own = in_order([one])
        self.known = {node.number for node in self.own}
        self.columns: dict[int, list[int]] = {}
        self.whole: set[int] = set()

    def with_zeros(self, zero: set[int]) -> _Pair:
        """The same with elements, given by their lowest bits, that are zero."""
        made: dict[int, Node] = {}
        for node in in_order([self.one, self.other]):
            low = node.value.partition("@")[0] if node.kind == "var" and "@" in node.value else ""
            if low and int(low) in zero:
                made[node.number] = self.graph.const(0, node.width)
            else:
                made[node.number] = self.graph.again(node, [made[arg.number] for arg in node.args])
        one, other = made[self.one.number], made[self.other.number]
        keep = ~sum(
            ((1 << node.width) - 1) << int(node.value.partition("@")[0]) for node in self._zeroed(zero)
        )
        values = _Values([word & keep for word in self.values.words], self.one)
        return _Pair(self.graph, one, other, values, self.until)

    def _zeroed(self, zero: set[int]) -> list[Node]:
        variables = {
            node.value: node
            for node in in_order([self.one, self.other])
            if node.kind == "var" and "@" in node.value
        }
        lowest = {int(name.partition("@")[0]): node for name, node in variables.items()}
        return [node for low, node in lowest.items() if low in zero]

    # Signatures

    def _learn(self, model: Mapping[str, int]) -> None:
        """Adds the operands of a model to the vectors."""
        self.values.words.append(self.values.word(model))
        self.whole.clear()

    def _simulate(self, roots: Sequence[Node]) -> None:
        """Adds the columns of all nodes below some."""
        count = len(self.values.words)
        for node in in_order(roots, self.whole):
            if node.number in self.whole:
                continue
            self.whole.add(node.number)
            column = self.columns.setdefault(node.number, [])
            first = len(column)
            if first == count:
                continue
            if node.kind == "var":
                column += self.values.of(node, first)
            elif node.kind == "const":
                column += [node.value] * (count - first)
            else:
                widths = [arg.width for arg in node.args]
                rows = zip(*(self.columns[arg.number][first:] for arg in node.args), strict=True)
                column += [compute(node.kind, node.width, node.value, row, widths) for row in rows]

    def _signed(self) -> dict[tuple[int, tuple[int, ...]], list[Node]]:
        """The unit's nodes by their width and signature."""
        found: dict[tuple[int, tuple[int, ...]], list[Node]] = {}
        for node in self.own:
            found.setdefault((node.width, tuple(self.columns[node.number])), []).append(node)
        return found

    def _shown(self) -> bool:
        """Whether some vector shows a difference of the results, which it then notes."""
        self._simulate([self.one, self.other])
        pairs = zip(self.columns[self.one.number], self.columns[self.other.number], strict=True)
        for word, (here, there) in zip(self.values.words, pairs, strict=True):
            if here != there:
                self.word = word
                return True
        return False

    # Proofs

    def swept(self, until: float) -> Node:
        """The mutant's result with every node that was proved to be one of the unit's in its place; ends when
        a difference was met.

        Raises:
            _Late: the time is up.
        """
        if self._shown():
            return self.other
        signed = self._signed()
        made: dict[int, Node] = {}
        for node in in_order([self.other]):
            new = self.graph.again(node, [made[arg.number] for arg in node.args])
            if new.number not in self.known and new.kind not in ("var", "const", "cat", "part"):
                self._simulate([new])
                alike = signed.get((new.width, tuple(self.columns[new.number])), [])
                for candidate in _likely(alike, new):
                    if time.monotonic() > until:
                        raise _Late
                    verdict, model = self._asked(new, candidate, until)
                    if verdict == EQUIVALENT:
                        new = candidate
                        self.merged += 1
                        break
                    if model is not None:
                        self._learn(model)
                        if self._shown():
                            return self.other
                        signed = self._signed()
                        break
            made[node.number] = new
        self.other = made[self.other.number]
        self.same = self.other is self.one
        return self.other

    def _asked(self, new: Node, old: Node, until: float) -> tuple[str, dict[str, int] | None]:
        """Whether two nodes are equal, and operands that show they are not."""
        last: frozenset[int] | None = None
        common = {each.number: each for each in in_order([old])}
        common = {each.number: each for each in in_order([new]) if each.number in common}
        for step, seconds in zip(_STEPS, _SECONDS, strict=True):
            free = _shared(new, old, common, step)
            if free == last:
                continue
            last = free
            left = min(seconds, until - time.monotonic())
            if left <= 0:
                raise _Late
            verdict, model = self.solver.equal(new, old, free, left)
            if verdict == EQUIVALENT:
                return verdict, None
            if not free:
                return verdict, model
        return UNKNOWN, None

    def differ(self, seconds: float) -> bool:
        """Looks for operands on which the results differ; notes them, or that there are none."""
        until = time.monotonic() + seconds
        if self._shown():
            return True
        with contextlib.suppress(_Late):
            self.swept(until - seconds / 2)
        if self.word is not None or self.same:
            return self.word is not None
        verdict, model = self.solver.equal(
            self.one, self.other, frozenset(), max(until - time.monotonic(), 0.5)
        )
        self.same = verdict == EQUIVALENT
        if model is not None:
            self._learn(model)
            self.word = self.values.words[-1]
        return self.word is not None


def _likely(alike: Sequence[Node], new: Node) -> list[Node]:
    """The candidates that are tried: those of the same operation first."""
    return sorted(alike, key=lambda node: node.kind != new.kind)[:_CANDIDATES]


def _shared(one: Node, other: Node, common: Mapping[int, Node], step: int | str) -> frozenset[int]:
    """The nodes below both that are free, this many operations down, or that are products; a variable
    and a constant are what they are."""
    if step == "nothing":
        return frozenset()
    if step == "products":
        return frozenset(number for number, node in common.items() if node.kind == "mul")
    depth = {one.number: 0, other.number: 0}
    queue, found = deque([one, other]), set[int]()
    assert isinstance(step, int)
    while queue:
        node = queue.popleft()
        if node.number in common and depth[node.number] > step and node.kind not in ("var", "const"):
            found.add(node.number)
            continue
        for arg in node.args:
            if arg.number not in depth:
                depth[arg.number] = depth[node.number] + 1
                queue.append(arg)
    return frozenset(found)


class _Solver:
    """Bitwuzla, which decides whether two nodes are equal."""

    def __init__(self) -> None:
        self.api: Any = importlib.import_module("bitwuzla")
        self.manager = self.api.TermManager()
        self.ranges = Ranges()

    def equal(
        self, one: Node, other: Node, free: frozenset[int], seconds: float
    ) -> tuple[str, dict[str, int] | None]:
        """Whether they are, of any values of the free nodes; what the variables are where they are not."""
        kinds, manager, options = self.api.Kind, self.manager, self.api.Options()
        options.set(self.api.Option.PRODUCE_MODELS, True)
        options.set(self.api.Option.TIME_LIMIT_PER, max(int(seconds * 1000), 1))
        terms: dict[int, Any] = {}
        variables: dict[str, Any] = {}
        bounds: list[Any] = []
        for node in in_order([one, other], free):
            if node.number in free or node.kind == "var":
                name = node.value if node.number not in free else f"node{node.number}"
                terms[node.number] = manager.mk_const(manager.mk_bv_sort(node.width), name)
                variables[name] = terms[node.number]
                bounds += self._bounds(node, terms[node.number]) if node.number in free else []
            else:
                terms[node.number] = self._term(node, [terms[arg.number] for arg in node.args])
        solver = self.api.Bitwuzla(manager, options)
        solver.assert_formula(manager.mk_term(kinds.DISTINCT, [terms[one.number], terms[other.number]]))
        for each in bounds:
            solver.assert_formula(each)
        answer = solver.check_sat()
        if answer == self.api.Result.UNSAT:
            return EQUIVALENT, None
        if answer != self.api.Result.SAT:
            return UNKNOWN, None
        return DIFFERS, {name: int(solver.get_value(term).value(10)) for name, term in variables.items()}

    def _bounds(self, node: Node, term: Any) -> list[Any]:
        """What is known of a node that is free."""
        kinds, manager = self.api.Kind, self.manager
        found, whole = self.ranges.of(node), Range.whole(node.width)
        limits = [(kinds.BV_UGE, found.low, whole.low), (kinds.BV_ULE, found.high, whole.high)]
        limits += [(kinds.BV_SGE, found.least, whole.least), (kinds.BV_SLE, found.most, whole.most)]
        sort, mask = manager.mk_bv_sort(node.width), (1 << node.width) - 1
        return [
            manager.mk_term(kind, [term, manager.mk_bv_value(sort, limit & mask)])
            for kind, limit, open_ in limits
            if limit != open_
        ]

    def _term(self, node: Node, args: list[Any]) -> Any:
        kinds, manager = self.api.Kind, self.manager
        bit = manager.mk_bv_sort(1)
        match node.kind:
            case "const":
                return manager.mk_bv_value(manager.mk_bv_sort(node.width), node.value)
            case "eq":
                return manager.mk_term(kinds.BV_COMP, args)
            case "ult" | "slt":
                less = manager.mk_term(kinds.BV_ULT if node.kind == "ult" else kinds.BV_SLT, args)
                return manager.mk_term(
                    kinds.ITE, [less, manager.mk_bv_value(bit, 1), manager.mk_bv_value(bit, 0)]
                )
            case "ite":
                chosen = manager.mk_term(kinds.EQUAL, [args[0], manager.mk_bv_value(bit, 1)])
                return manager.mk_term(kinds.ITE, [chosen, *args[1:]])
            case "part":
                return manager.mk_term(kinds.BV_EXTRACT, args, [node.value + node.width - 1, node.value])
            case "sext":
                return manager.mk_term(kinds.BV_SIGN_EXTEND, args, [node.width - node.args[0].width])
        name = {"shl": "SHL", "lshr": "SHR", "ashr": "ASHR", "cat": "CONCAT"}.get(
            node.kind, node.kind.upper()
        )
        return manager.mk_term(getattr(kinds, f"BV_{name}"), args)
