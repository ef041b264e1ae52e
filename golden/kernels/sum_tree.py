"""In which order a kernel adds the products of one element: a tree whose leaves are places of K.

A node adds its children at once; nothing is known of the order inside. `golden.kernels.masks` finds such
trees by questions. K may be thousands, and a chain is as deep as it has steps, so that nothing here recurses
along one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

_MOST_LINES = 24


@dataclass(frozen=True, eq=False)
class Node:
    """A sum of places of K and of other sums."""

    children: tuple[int | Node, ...]

    def __repr__(self) -> str:
        return f"<Node of {self.size} products>"

    def __str__(self) -> str:
        return text(self)

    @cached_property
    def places(self) -> tuple[int, ...]:
        """All places of K below, ascending."""
        found: list[int] = []
        waiting: list[int | Node] = [self]
        while waiting:
            one = waiting.pop()
            if isinstance(one, int):
                found.append(one)
            else:
                waiting += one.children
        return tuple(sorted(found))

    @cached_property
    def spine(self) -> tuple[tuple[int | Node, ...], ...]:
        """What is added in turn: the children of the lowest node on the way to the largest child, then those
        that each node above adds to it."""
        groups: list[tuple[int | Node, ...]] = []
        node = self
        while True:
            inner = [one for one in node.children if isinstance(one, Node)]
            if not inner:
                groups.append(node.children)
                return tuple(groups[::-1])
            most = max(one.size for one in inner)
            inner = [one for one in inner if one.size == most]
            largest = inner[0] if len(inner) == 1 else min(inner, key=lambda one: one.places[0])
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
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], f"  ... ({len(lines) - _MOST_LINES + 1} lines more)"]
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
    """The parts as they are told: of a balanced tree by their place, else as they are added."""
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
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    words = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    return ", ".join(words if len(words) <= 5 else [*words[:3], "...", words[-1]])
