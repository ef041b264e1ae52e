"""In which order a unit or a kernel adds: a tree whose leaves are terms, found from what masks show (FPRev,
arXiv 2411.00442; MMA-Sim, section III-C).

A large M in one term, -M in another, and the same small y in all others: what has met M before -M came is
lost, what comes later is left. How many were lost for each pair of terms is all that `tree_of` asks;
golden.kernels.masks asks kernels, golden.identify.blackbox.sum_order units.

A node adds its children at once; nothing is known of the order inside. K may be thousands, and a chain is as
deep as it has steps, so that only what shows small trees recurses along one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
import numpy.typing as npt

from golden.errors import runs

C = -1
"""The term that is no product: c, where an order has one. As an index of an array it is the last."""
Pair = tuple[int, int]
Sizes = Callable[[Sequence[Pair]], Sequence[int]]
"""For each pair of terms, how many terms had met when the two met: the pair, and the terms lost in
between."""
_ALL_PAIRS = 32
"""Terms of a set whose pairs are all tried at once: with more, the trials cost more than the saved calls
of a kernel or a simulator."""


@dataclass(frozen=True)
class Node:
    """A sum of terms (places of K, or C) and of other sums.

    `exact`: nothing was lost in it, though terms of very different size met.
    """

    children: tuple[int | Node, ...]
    exact: bool = False

    def __repr__(self) -> str:
        return f"<Node of {self.size} terms>"

    def __str__(self) -> str:
        return text(self)

    @cached_property
    def terms(self) -> tuple[int, ...]:
        """All terms below, ascending; c first."""
        return tuple(
            sorted(child for node in self.nodes() for child in node.children if isinstance(child, int))
        )

    def nodes(self) -> Iterator[Node]:
        """The node and all that are below it, from the top."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += [one for one in reversed(node.children) if isinstance(one, Node)]

    @cached_property
    def first(self) -> int:
        """The least term below. Of a node that is made from the bottom up it is one look at its children."""
        return min(one if isinstance(one, int) else one.first for one in self.children)

    @property
    def binary(self) -> bool:
        """Whether it and every node below add two terms."""
        return all(len(node.children) == 2 for node in self.nodes())

    def brackets(self) -> str:
        """The tree as nested brackets: "(c + 0 + 1)", a node that loses nothing in square ones."""
        inner = " + ".join(
            "c" if one == C else str(one) if isinstance(one, int) else one.brackets() for one in self.children
        )
        return f"[{inner}]" if self.exact else f"({inner})"

    def relabelled(self, names: Mapping[int, int]) -> Node:
        """A tree with other numbers for its products."""
        children = (
            one.relabelled(names) if isinstance(one, Node) else names.get(one, one) for one in self.children
        )
        return Node(tuple(children), self.exact)

    @cached_property
    def spine(self) -> tuple[tuple[int | Node, ...], ...]:
        """What is added in turn: the children of the lowest node on the way to the largest child, then the
        children that each node above adds to it."""
        groups: list[tuple[int | Node, ...]] = []
        node = self
        while True:
            inner = [one for one in node.children if isinstance(one, Node)]
            if not inner:
                groups.append(node.children)
                return tuple(groups[::-1])
            most = max(one.size for one in inner)
            inner = [one for one in inner if one.size == most]
            largest = inner[0] if len(inner) == 1 else min(inner, key=lambda one: one.first)
            groups.append(tuple(one for one in node.children if one is not largest))
            node = largest

    @cached_property
    def size(self) -> int:
        """How many places are below."""
        todo: list[tuple[Node, bool]] = [(self, False)]
        known: dict[int, int] = {}
        while todo:
            node, ready = todo.pop()
            inner = [one for one in node.children if isinstance(one, Node)]
            if ready:
                known[id(node)] = len(node.children) - len(inner) + sum(known[id(one)] for one in inner)
            elif "size" in node.__dict__:
                known[id(node)] = node.size
            else:
                todo.append((node, True))
                todo += [(one, False) for one in inner]
        return known[id(self)]


@dataclass(frozen=True)
class Chain:
    """Steps, each of which adds products to the sum before: places of K in the order of the steps."""

    steps: tuple[tuple[int, ...], ...]

    @property
    def places(self) -> tuple[int, ...]:
        """The places of K in the order of the steps, ascending in each."""
        return tuple(place for step in self.steps for place in step)


@dataclass(frozen=True)
class Sums:
    """Sums, added in turn or, where the tree is `balanced`, neighbours in pairs."""

    parts: tuple[Chain | Sums, ...]
    balanced: bool

    @property
    def places(self) -> tuple[int, ...]:
        """All places of K."""
        return tuple(place for part in self.parts for place in part.places)


Form = Chain | Sums


def form(tree: Node) -> Form:
    """The tree as chains of products, and sums of these."""
    products: list[tuple[int, ...]] = []
    parts: list[Form] = []
    for group in tree.spine:
        own = tuple(sorted(one for one in group if isinstance(one, int)))
        if not parts and len(own) == len(group):
            products.append(own)
            continue
        if not parts and products:
            parts.append(Chain(tuple(products)))
        added = [Chain((own,))] if own else []
        for part in [*added, *(form(one) for one in group if isinstance(one, Node))]:
            if len(parts) > 1 and isinstance(part, Sums) and _shape(_sums(parts)) == _shape(part):
                parts = [_sums(parts)]  # two sums of sums, which begin alike
            parts.append(part)
    return _sums(parts) if parts else Chain(tuple(products))


def _sums(parts: list[Form]) -> Sums:
    """Parts that were added in turn; two of like trees are one."""
    flat: list[Form] = []
    for part in parts:
        if isinstance(part, Sums) and (part.balanced or len(part.parts) == 2):
            flat += part.parts
    alike = len(parts) == 2 and len(flat) >= 4 and _shape(parts[0]) == _shape(parts[1])
    return Sums(tuple(flat), True) if alike else Sums(tuple(parts), False)


def text(tree: Node) -> str:
    """The tree in words, a line for each kind of part."""
    lines = [f"the sum of {tree.size} products:", *_lines(form(tree), 1)]
    most_lines = 24
    if len(lines) > most_lines:
        lines = [*lines[: most_lines - 1], f"  ... ({len(lines) - most_lines + 1} lines more)"]
    return "\n".join(lines)


def _lines(one: Form, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if isinstance(one, Chain):
        yield f"{indent}k {ranges(one.places)}: {_steps(one)}"
        return
    how = _pairs(one) if one.balanced else "one after the other"
    yield f"{indent}{len(one.parts)} sums, added {how}:"
    for _, same in groupby(_shown(one), key=_shape):
        first, *others = list(same)
        yield from _lines(first, depth + 1)
        if others:
            many = "one more such, k" if len(others) == 1 else f"{len(others)} more such, the last k"
            yield f"{indent}  {many} {ranges(others[-1].places)}"


def _pairs(one: Sums) -> str:
    """Which sums of a balanced tree make a pair."""
    firsts = [min(part.places) for part in one.parts]
    ranks = [sorted(firsts).index(first) for first in firsts]
    bits = len(ranks).bit_length() - 1
    if ranks == list(range(len(ranks))):
        return "in pairs of neighbours, then these"
    if ranks == [int(f"{place:0{bits}b}"[::-1], 2) for place in range(len(ranks))]:
        return "in halves: each of the first half and its like of the second, then these"
    return f"in pairs, in the order of their first k {ranges(firsts)}"


def _shown(one: Sums) -> list[Form]:
    """The parts in the order of a report: in a balanced tree by their place, else as they are added."""
    return sorted(one.parts, key=lambda part: min(part.places)) if one.balanced else list(one.parts)


def _steps(chain: Chain) -> str:
    """How many products each step adds."""
    if len(chain.steps) > 1 and len(chain.steps) + 1 == len(chain.places):  # the first one adds to nothing
        return f"{len(chain.places)} products, one after the other"
    found = [(width, len(list(same))) for width, same in groupby(map(len, chain.steps))]
    words = [f"{count} {'step' if count == 1 else 'steps'} of {width}" for width, count in found[:4]]
    more = ", ..." if len(found) > 4 else ""
    first = chain.steps[0]
    if len(chain.steps) > 1 and ranges(first) != ranges(range(first[0], first[0] + len(first))):
        more += f", the first k {ranges(first)}"
    return ", then ".join(words) + more


def _shape(one: Form) -> object:
    """What chains that differ in their places alone have in common."""
    if isinstance(one, Chain):
        start = one.steps[0][0]
        return tuple(tuple(place - start for place in step) for step in one.steps)
    return one.balanced, tuple(map(_shape, one.parts))


def ranges(places: Sequence[int]) -> str:
    """Places in their order: "0-31", "0-7, 32-39, ... 224-231"."""
    words = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs(places)]
    return ", ".join(words if len(words) <= 5 else [*words[:3], "...", words[-1]])


# Found from sizes -------------------------------------------------------------------------------------------


def tree_of(terms: Sequence[int], sizes: Sizes) -> Node | None:
    """The tree of some terms; None where sizes are of none. Sets of one level are tried together.

    Its result has the measured sizes; more pairs are worth a check (`meeting_sizes`).
    """
    if len(terms) == 1:
        return Node((terms[0],))
    root = _Set(list(terms), len(terms) + 1)
    level = [root]
    while level:
        # Each set is divided by where its pivot meets the others: what they meet below one node stands there.
        pairs = [pair for one in level for pair in one.pairs()]
        measured = dict(zip(pairs, sizes(pairs), strict=True))
        level = [below for one in level for below in one.divide(measured)]
    children = root.trees()
    return children[0] if len(children) == 1 and isinstance(children[0], Node) else None


class _Set:
    """Terms below a node of some size, whose tree is not known yet."""

    def __init__(self, members: list[int], size: int) -> None:
        self.members, self.size = members, size
        self.pivot = members[len(members) // 2]
        self.levels: list[tuple[int, _Set]] = []
        self.dropped: _Set | None = None

    def pairs(self) -> list[Pair]:
        """The pairs that have to be tried."""
        if len(self.members) <= _ALL_PAIRS:
            return [(i, j) for at, i in enumerate(self.members) for j in self.members[at + 1 :]]
        return [(self.pivot, one) for one in self.members if one != self.pivot]

    def divide(self, sizes: Mapping[Pair, int]) -> list[_Set]:
        """Divides the members by where they meet the pivot; the sets that have to be tried next."""
        below: dict[int, list[int]] = {}
        for one in self.members:
            if one != self.pivot:
                pair = (self.pivot, one)
                below.setdefault(sizes[pair if pair in sizes else pair[::-1]], []).append(one)
        small = len(self.members) <= _ALL_PAIRS
        apart = [one for size, found in below.items() if size >= self.size for one in found]
        self.dropped = _Set(apart, self.size) if apart else None
        self.levels = [(size, _Set(found, size)) for size, found in sorted(below.items()) if size < self.size]
        made = [one for _, one in self.levels] + ([self.dropped] if self.dropped else [])
        if small:  # their pairs have been tried
            for below_it in made:
                below_it.divide(sizes)
            return []
        return [each for each in made if len(each.members) > 1]

    def trees(self) -> list[int | Node]:
        """The children of a node of this size that hold the members. Where more than two terms met and only
        the two of a pair are gone, the node is exact."""
        tree: int | Node = self.pivot
        for size, other in self.levels:
            children = (tree, *other.trees())
            tree = Node(tuple(sorted(children, key=first_term)), size == len(_PAIR) < len(children))
        return [tree, *(self.dropped.trees() if self.dropped else [])]


_PAIR = ("M", "-M")


def exact_tree_of(terms: Sequence[int], sizes: Sizes) -> Node | None:
    """The same of nodes that add exactly and round their result: M and -M that meet in one lose what they met
    before, and nothing else. All pairs are tried."""
    pairs = [(i, j) for i in terms for j in terms if i != j]
    lost = dict(zip(pairs, sizes(pairs), strict=True))

    def node(members: tuple[int, ...]) -> int | Node | None:
        if len(members) == 1:
            return members[0]
        top = max(members, key=lambda i: sum(lost[i, j] for j in members if j != i))
        inside = {i: 1 if i == top else lost[top, i] - 1 for i in members}
        children: list[tuple[int, ...]] = [(i,) for i in members if inside[i] == 1]
        left = [i for i in members if inside[i] > 1]
        while left:
            first = left[0]
            same = tuple(j for j in left if j == first or lost[first, j] < inside[first] + inside[j])
            children.append(same)
            left = [j for j in left if j not in same]
        made = [one for one in map(node, children) if one is not None] if len(children) > 1 else []
        return Node(tuple(sorted(made, key=first_term)), True) if len(made) == len(children) else None

    whole = node(tuple(terms))
    return whole if isinstance(whole, Node) else None


def meeting_sizes(tree: Node, pairs: Sequence[Pair]) -> list[int]:
    """For each pair of terms of a tree, how many terms had met when the two met: the terms below their node;
    at a node that loses nothing, the two and what each had lost before."""
    above: dict[int, Node] = {}
    leaf: dict[int, Node] = {}
    for node in tree.nodes():
        for child in node.children:
            if isinstance(child, Node):
                above[id(child)] = node
            else:
                leaf[child] = node
    sizes = []
    for pair in pairs:
        ways = []
        for term in pair:
            way: list[tuple[int, Node]] = [(1, leaf[term])]
            while id(way[-1][1]) in above:
                way.append((way[-1][1].size, above[id(way[-1][1])]))
            ways.append({id(node): (below, node) for below, node in way})
        meeting = next(place for place in ways[0] if place in ways[1])
        node = ways[0][meeting][1]
        sizes.append(sum(way[meeting][0] for way in ways) if node.exact else node.size)
    return sizes


def predicted(tree: Node) -> npt.NDArray[np.int64]:
    """The same of all pairs of 0 to n - 2 and C, (n, n), C last: what masks find in a tree of n."""
    sizes = np.zeros((tree.size, tree.size), np.int64)
    for node in tree.nodes():
        below = list(map(list, map(terms_of, node.children)))
        for place, some in enumerate(below):
            for others in below[place + 1 :]:
                size = len(some) + len(others) if node.exact else node.size
                sizes[np.ix_(some, others)] = sizes[np.ix_(others, some)] = size
    return sizes


def terms_of(one: int | Node) -> tuple[int, ...]:
    """The terms of a child of a node."""
    return (one,) if isinstance(one, int) else one.terms


def first_term(one: int | Node) -> tuple[bool, int]:
    """The order of children: terms before nodes, by their first term."""
    return (True, one.first) if isinstance(one, Node) else (False, one)
