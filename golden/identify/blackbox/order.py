"""The order of the sum: which terms meet before which, found with masks (paper, III-C; FPRev, arXiv
2411.00442).

A large M in one term, -M in another and a small y in all others: what has met M before -M came is lost, what
comes later is left. The number of y that are lost, and 2, is the number of terms below the node of the sum
where the two meet; those numbers for all pairs are the tree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.identify.blackbox.box import Bank, Box
from golden.identify.blackbox.views import dense_view
from golden.identify.probe.probes import Probe, Shot, Unreachable, exact_code, factors, split_scale
from golden.number.formats import Kind
from golden.program.signature import Operands, Signature
from golden.unit import Unit

Counts = npt.NDArray[np.int64]
C = -1
"""Stands for c among the terms; products are their k."""
_HIGHEST = 60
"""Exponent of M, where the formats reach farther."""
_WIDEST = 120
"""Binades between M and y."""
_MOST_PAIRS = 9000
"""Of more terms than have so many pairs, not all pairs are asked."""
_CHECKED_PAIRS, _OF_CHECKED = 1000, 16
"""Pairs that are asked to check a tree; of so many questions that may be asked, one at most is of those."""
_MOST_KEPT = 300
"""Of the questions for the order, so many stay to be fitted to: they are much alike."""
KIND = "masks"
_WITHOUT_LIMITS = 1 << 30
_SCALES = ("scale_a", "scale_b")


@dataclass(frozen=True)
class Node:
    """A node of the sum: its children are terms (k, or C) and nodes.

    `exact`: nothing was lost in it, though terms of very different size met.
    """

    children: tuple[int | Node, ...]
    exact: bool = False

    @property
    def terms(self) -> tuple[int, ...]:
        """All terms below, ascending; c first."""
        return tuple(sorted(t for one in self.children for t in terms_of(one)))

    def text(self) -> str:
        """The tree as nested brackets: "(c + 0 + 1)", a node that loses nothing in square ones."""
        inner = " + ".join(
            "c" if one == C else str(one) if isinstance(one, int) else one.text() for one in self.children
        )
        return f"[{inner}]" if self.exact else f"({inner})"


def terms_of(one: int | Node) -> tuple[int, ...]:
    """The terms of a child of a node."""
    return (one,) if isinstance(one, int) else one.terms


@dataclass(frozen=True)
class _Codes:
    """A number as a product, with the scales of its block where it needs them, and as c."""

    a: int
    b: int
    c: int
    scales: tuple[int, int] | None = None


@dataclass(frozen=True)
class _Marks:
    """Codes of M, -M, y and -y; M is 2^top and y 2^small. `turned`: the terms whose sign the unit turns,
    which are given the other one. `slots`: the k of each product that is a term."""

    large: _Codes
    minus: _Codes
    little: _Codes
    less: _Codes
    top: int
    small: int
    slots: Sequence[int]
    turned: frozenset[int] = frozenset()

    def of(self, place: int) -> tuple[_Codes, _Codes, _Codes]:
        """Codes of M, -M and y of one term."""
        if place in self.turned:
            return self.minus, self.large, self.less
        return self.large, self.minus, self.little

    @property
    def terms(self) -> int:
        """How many terms there are, c among them."""
        return len(self.slots) + 1


def _codes(takes: Signature, sign: int, exponent: int, scaled: bool, shift: int = 0) -> _Codes:
    """The codes of +-2^exponent; `scaled`: by the scales of the product's block, as far as they reach.
    `shift`: the unit makes products 2^shift times as large."""
    value = sign * Fraction(2) ** exponent
    c = exact_code(takes.formats["c"], value)
    least = sum(stimuli.tiniest_exponent(takes.formats[name]) for name in _SCALES) if scaled else 0
    by_scales = max(exponent, least) if scaled else 0
    a, b = factors(value / Fraction(2) ** (by_scales + shift), takes.formats["a"], takes.formats["b"])
    return _Codes(a, b, c, split_scale(takes, by_scales) if scaled else None)


def _marks(
    takes: Signature,
    tiny: bool,
    slots: Sequence[int] | None = None,
    highest: int = _HIGHEST,
    shift: int = 0,
) -> _Marks | None:
    """M and y as far apart as the formats have them; `tiny`: y may need subnormal numbers. `slots`: where
    every scale block is one term. `shift`: as of `_codes`."""
    lowest = stimuli.tiniest_exponent if tiny else stimuli.lowest_exponent
    a, b, c, d = (takes.formats[name] for name in "abcd")
    wide = [takes.formats[name] for name in _SCALES] if slots is not None else [a, b]
    near = wide if slots is None else [*wide, *((a, b) if tiny else ())]
    top = min(
        sum(map(stimuli.highest_exponent, wide)) + min(shift, 0), c.max_exponent, d.max_exponent, highest
    )
    low = max(
        sum(map(lowest, near)) + max(shift, 0), lowest(c), d.min_exponent - d.fraction_bits, top - _WIDEST
    )
    if top - low < 8:
        return None
    try:
        large, minus = (_codes(takes, sign, top, slots is not None, shift) for sign in (1, -1))
        little, less = (_codes(takes, sign, low, slots is not None, shift) for sign in (1, -1))
        return _Marks(large, minus, little, less, top, low, range(takes.k) if slots is None else slots)
    except Unreachable:
        return None


def _questions(takes: Signature, marks: _Marks, pairs: Sequence[tuple[int, ...]]) -> Operands:
    """M in the first place of each pair, -M in the second, y elsewhere."""
    rest = {
        name: np.full((len(pairs), *shape), takes.at_rest(name), takes.code_format(name).dtype)
        for name, shape in takes.operand_shapes(matrices=False).items()
    }

    def put(rows: int | slice, place: int, codes: _Codes) -> None:
        if place == C:
            rest["c"][rows] = codes.c
            return
        slot = marks.slots[place]
        rest["a"][rows, slot], rest["b"][rows, slot] = codes.a, codes.b
        for name, code in zip(_SCALES, codes.scales or (), strict=False):
            assert takes.scale_block is not None
            rest[name][rows, slot // takes.scale_block] = code

    for place in (C, *range(len(marks.slots))):
        put(slice(None), place, marks.of(place)[2])
    for row, pair in enumerate(pairs):
        for place, which in zip(pair, (0, 1), strict=False):
            put(row, place, marks.of(place)[which])
    return rest


def _sizes(box: Box, bank: Bank, marks: _Marks) -> Counts | None:
    """The number of terms below the node where each two meet, (n, n), c last; None where results are no
    counts, whichever of the two M is in: a unit that rounds to zero loses y beside M, not beside -M."""
    n = marks.terms
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    lost = _lost(box, bank, marks, pairs)
    if lost is None:
        return None
    sizes = np.zeros((n, n), np.int64)
    sizes[tuple(np.array(pairs).T)] = lost
    sizes = np.maximum(sizes, sizes.T)
    return sizes if (sizes + np.eye(n, dtype=np.int64) > 0).all() else None


def _lost(box: Box, bank: Bank, marks: _Marks, pairs: Sequence[tuple[int, int]]) -> Counts | None:
    """The number of terms below the node where the terms of each pair meet, (pairs,), the last one is c; 0
    where the result is no count, None where the unit was not asked what was wanted."""
    takes, n = box.takes, marks.terms
    places = [(C if i == n - 1 else i, C if j == n - 1 else j) for i, j in pairs]
    operands = _questions(takes, marks, places)
    wanted = operands["c"]
    operands, answers = box.ask(operands)
    if (operands["c"] != wanted).any():
        return None
    kept = slice(None, None, max(len(pairs) // _MOST_KEPT, 1))
    bank.add(KIND, {name: codes[kept] for name, codes in operands.items()}, answers[kept])
    codes, places_of = np.unique(answers, return_inverse=True)
    sizes = np.zeros(len(codes), np.int64)
    for place, code in enumerate(codes.tolist()):
        number = takes.formats["d"].decode(code)
        if number.kind < Kind.INFINITY:
            left = number.value / Fraction(2) ** marks.small
            if left.denominator == 1 and 0 <= left <= n - 2:
                sizes[place] = n - int(left)
    return np.asarray(sizes[places_of])


def find_order(box: Box, bank: Bank, slots: Sequence[int] | None = None) -> Node | None:
    """The tree of the sum; None where the formats cannot show it, or the answers are of no tree.

    A unit that rounds up or keeps sticky bits leaves more than y: then there is no tree either, and the
    candidates for the order are tried one after the other.

    Args:
        slots: of a unit with several scale blocks, the first k of each: the blocks are then the terms, M and
            y come from their scales, and their slots stand for them in the tree. By default every product is
            a term.
    """
    takes = box.takes
    if not all(takes.formats[name].is_float for name in "abcd"):
        return None
    best = _best(box, bank, slots)
    if best is None and (shift := factor_of_products(box)):
        best = _best(box, bank, slots, shift)
    if best is None:
        return None
    if best[2].terms * (best[2].terms - 1) > _MOST_KEPT:
        _ask_each_node(box, bank, best[2], best[1])
    return relabelled(best[1], dict(enumerate(slots or ())))


def _best(
    box: Box, bank: Bank, slots: Sequence[int] | None, shift: int = 0
) -> tuple[int, Node, _Marks] | None:
    """The tree that loses most y, as the masks tell the nodes apart best there."""
    best: tuple[int, Node, _Marks] | None = None
    for tiny in (False, True):
        marks = finite_marks(box, tiny, slots, shift)
        marks = None if marks is None else replace(marks, turned=_turned(box, bank, marks))
        if marks is None or not _counts_all(box, bank, marks):
            continue
        most = min(_MOST_PAIRS, box.can_answer() // 2)  # twice, for two M
        many = marks.terms * (marks.terms - 1) > most
        found = (_by_pivots if many else _by_all)(box, bank, marks)
        if found is not None and (best is None or found[0] > best[0]):
            best = *found, marks
    return best


def factor_of_products(box: Box) -> int:
    """The exponent of the power of two that a unit makes products larger by than c; 0 where there is none."""
    try:
        one = _codes(box.takes, 1, 0, False)
    except Unreachable:
        return 0
    marks = _Marks(one, one, one, one, 0, 0, range(box.takes.k))
    operands = _questions(box.takes, marks, [(), ()])
    for name in "ab":
        operands[name][:, 1:] = box.takes.at_rest(name)
        operands[name][1] = box.takes.at_rest(name)
    operands["c"][0] = box.takes.at_rest("c")
    operands, answers = box.ask(operands)
    product, c = (box.takes.formats["d"].decode(code) for code in answers.tolist())
    if max(product.kind, c.kind) >= Kind.INFINITY or not product.value or not c.value:
        return 0
    factor = abs(Fraction(product.value) / Fraction(c.value))
    shift = factor.numerator.bit_length() - factor.denominator.bit_length()
    return shift if factor == Fraction(2) ** shift else 0


def _ask_each_node(box: Box, bank: Bank, marks: _Marks, tree: Node) -> None:
    """Keeps a mask of each node: among a part of those that were asked, some nodes have none."""
    pairs: list[tuple[int, int]] = []
    left: list[int | Node] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, Node):
            first, second, *_ = (terms_of(one)[0] for one in node.children)
            pairs.append((first, second))
            left += node.children
    operands, answers = box.ask(_questions(box.takes, marks, pairs))
    bank.add(KIND, operands, answers)


def finite_marks(
    box: Box, tiny: bool = False, slots: Sequence[int] | None = None, shift: int = 0
) -> _Marks | None:
    """The marks with the largest M that the unit answers, alone in a product or in c, as a finite number:
    products may overflow where neither their factors nor the result do."""
    marks = _marks(box.takes, tiny, slots, shift=shift)
    if marks is None or not _infinite(box, [marks])[0]:
        return marks
    lower = [_marks(box.takes, tiny, slots, top, shift) for top in range(marks.top - 1, marks.small, -1)]
    found = [one for one in lower if one is not None]
    infinite = _infinite(box, found) if found else []
    return next((one for one, is_so in zip(found, infinite, strict=True) if not is_so), marks)


def _infinite(box: Box, tried: Sequence[_Marks]) -> list[bool]:
    """Whether M alone in the first product, in the last one or in c is infinite or no number."""
    parts = [
        _questions(box.takes, marks, [(place,) for place in (0, len(marks.slots) - 1, C)]) for marks in tried
    ]
    operands = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    _, answers = box.ask(operands)
    special = [box.takes.formats["d"].decode(code).kind >= Kind.INFINITY for code in answers.tolist()]
    return [any(part) for part in np.split(np.array(special), len(tried))]


def tree_of(unit: Unit, slots: Sequence[int] | None = None) -> Node | None:
    """The tree of a unit that can be asked without limits, found as that of a black box (`find_order`)."""
    box = Box(dense_view(unit), _WITHOUT_LIMITS, math.inf)
    return find_order(box, Bank(box.takes), slots)


def relabelled(node: Node, names: Mapping[int, int]) -> Node:
    """A tree with other numbers for its products."""
    children = (
        relabelled(one, names) if isinstance(one, Node) else names.get(one, one) for one in node.children
    )
    return replace(node, children=tuple(children))


def masks(probe: Probe, pairs: Sequence[tuple[int, int]]) -> list[Shot]:
    """The questions for a few pairs of terms (k of a slot, or C) fired at a unit, to be shown.

    Raises:
        Unreachable: the formats have no M and y.
    """
    slots = probe.slots if probe.scaled_apart else None
    places = [tuple(one if one == C else probe.slots.index(one) for one in pair) for pair in pairs]
    said = [["c" if one == C else f"k = {one}" for one in pair] for pair in pairs]
    shots: list[Shot] = []
    for marks in filter(None, (_marks(probe.takes, tiny, slots) for tiny in (False, True))):
        whole = _questions(probe.takes, marks, places)
        all_left = (marks.terms - 2) * Fraction(2) ** marks.small
        shots = [
            probe.run(
                f"X = 2^{marks.top} in {first}, -X in {second}, 2^{marks.small} elsewhere",
                {name: codes[row] for name, codes in whole.items()},
            )
            for row, (first, second) in enumerate(said)
        ]
        if any(probe.value(shot) != all_left for shot in shots):
            break
    if not shots:
        raise Unreachable("no two numbers are so far apart that one is lost beside the other")
    probe.shots = shots
    return shots


def _turned(box: Box, bank: Bank, marks: _Marks) -> frozenset[int]:
    """The terms whose sign the unit turns: M in one term alone is a negative result."""
    places = [*range(len(marks.slots)), C]
    operands, answers = box.ask(_questions(box.takes, marks, [(place,) for place in places]))
    fmt = box.takes.formats["d"]
    told = [fmt.decode(code) for code in answers.tolist()]
    found = frozenset(
        place for place, one in zip(places, told, strict=True) if one.kind < Kind.INFINITY and one.value < 0
    )
    if found:
        bank.add(KIND, operands, answers)
    return found


def _by_all(box: Box, bank: Bank, marks: _Marks) -> tuple[int, Node] | None:
    """The tree from all pairs, and the sum of all sizes."""
    sizes = _sizes(box, bank, marks)
    if sizes is None:
        return None
    tree = next((tree for make in (build, build_exact) if _fits(tree := make(sizes), sizes)), None)
    return None if tree is None else (int(sizes.sum()), tree)


def _by_pivots(box: Box, bank: Bank, marks: _Marks) -> tuple[int, Node] | None:
    """The same of many terms, from fewer pairs: one term against all others divides those by the node where
    they meet it, and so on among each part (FPRev's way). Pairs drawn at random must then fit, too."""
    n = marks.terms
    rng = np.random.default_rng(n)
    asked: dict[tuple[int, int], int] = {}

    def ask(pairs: list[tuple[int, int]]) -> bool:
        both = [*pairs, *((j, i) for i, j in pairs)]
        lost = _lost(box, bank, marks, both)
        if lost is not None:
            largest = np.maximum(*np.split(lost, 2)).tolist()
            asked.update(zip(pairs, largest, strict=True))
        return lost is not None and all(asked[pair] for pair in pairs)

    def forest(members: list[int], size: int) -> list[int | Node] | None:
        """The children of a node of this size that hold the members."""
        found: list[int | Node] = []
        while members:
            pivot = members[int(rng.integers(len(members)))]
            others = [one for one in members if one != pivot]
            if others and not ask([(pivot, one) for one in others]):
                return None
            below = {one: asked[pivot, one] for one in others}
            tree: int | Node = C if pivot == n - 1 else pivot
            for level in sorted({at for at in below.values() if at < size}):
                beside = forest([one for one in others if below[one] == level], level)
                if beside is None:
                    return None
                tree = Node(tuple(sorted([tree, *beside], key=_first)))
            found.append(tree)
            members = [one for one in others if below[one] >= size]
        return found

    whole = forest(list(range(n)), n + 1)
    if whole is None or len(whole) != 1 or not isinstance(whole[0], Node):
        return None
    checked = min(_CHECKED_PAIRS, box.can_answer() // _OF_CHECKED)
    drawn = rng.integers(n, size=(checked, 2)).tolist()
    if not ask([(i, j) for i, j in drawn if i != j]):
        return None
    sizes = predicted(whole[0], n)
    right = all(sizes[i, j] == lost for (i, j), lost in asked.items())
    return (int(sizes.sum()), whole[0]) if right else None


def _counts_all(box: Box, bank: Bank, marks: _Marks) -> bool:
    """Whether y counts where nothing is large: a unit that flushes it loses it everywhere."""
    operands = _questions(box.takes, marks, [()])
    operands, answers = box.ask(operands)
    bank.add(KIND, operands, answers)
    number = box.takes.formats["d"].decode(int(answers[0]))
    return number.kind < Kind.INFINITY and number.value == marks.terms * Fraction(2) ** marks.small


def _fits(tree: Node | None, sizes: Counts) -> bool:
    """Whether a tree has these sizes, all of them."""
    return tree is not None and bool((predicted(tree, len(sizes)) == sizes).all())


def predicted(tree: Node, n: int) -> Counts:
    """The sizes that masks would find in a tree of n terms: what `build` starts from."""
    sizes = np.zeros((n, n), np.int64)

    def lost(one: int | Node) -> int:
        return len(terms_of(one)) - 1

    def enter(node: Node) -> None:
        for i, x in enumerate(node.children):
            for y in node.children[i + 1 :]:
                size = 2 + lost(x) + lost(y) if node.exact else len(node.terms)
                for s in terms_of(x):
                    for t in terms_of(y):
                        sizes[s, t] = sizes[t, s] = size  # c is -1, the last
            if isinstance(x, Node):
                enter(x)

    enter(tree)
    return sizes


def build(sizes: Counts) -> Node | None:
    """The tree whose nodes have these sizes: sizes[i, j] terms are below the lowest node above i and j; the
    last index is c. None where there is none."""

    def node(members: tuple[int, ...]) -> int | Node | None:
        if len(members) == 1:
            return C if members[0] == len(sizes) - 1 else members[0]
        inner = [sizes[i, j] for i in members for j in members if j != i]
        if len(members) > 2 and set(inner) == {2}:
            return Node(tuple(_named(members, len(sizes))), exact=True)
        children: list[tuple[int, ...]] = []
        left = list(members)
        while left:
            first = left[0]
            same = tuple(j for j in left if j == first or sizes[first, j] < len(members))
            children.append(same)
            left = [j for j in left if j not in same]
        return None if len(children) == 1 else _node([node(child) for child in children])

    whole = node(tuple(range(len(sizes))))
    return whole if isinstance(whole, Node) else None


def build_exact(sizes: Counts) -> Node | None:
    """The same of nodes that add exactly and round their result: M and -M that meet in one lose what they met
    before, and nothing else."""

    def node(members: tuple[int, ...]) -> int | Node | None:
        if len(members) == 1:
            return C if members[0] == len(sizes) - 1 else members[0]
        top = max(members, key=lambda i: sum(sizes[i, j] for j in members))
        inside = {i: 1 if i == top else int(sizes[top, i]) - 1 for i in members}
        children: list[tuple[int, ...]] = [(i,) for i in members if inside[i] == 1]
        left = [i for i in members if inside[i] > 1]
        while left:
            first = left[0]
            same = tuple(j for j in left if j == first or sizes[first, j] < inside[first] + inside[j])
            children.append(same)
            left = [j for j in left if j not in same]
        return None if len(children) == 1 else _node([node(child) for child in children], exact=True)

    whole = node(tuple(range(len(sizes))))
    return whole if isinstance(whole, Node) else None


def _node(children: list[Any], exact: bool = False) -> Node | None:
    return None if any(one is None for one in children) else Node(tuple(sorted(children, key=_first)), exact)


def _named(members: tuple[int, ...], n: int) -> list[int]:
    return sorted(C if m == n - 1 else m for m in members)


def _first(one: int | Node) -> tuple[int, int]:
    """Terms before nodes, by their first term."""
    return (0, one) if isinstance(one, int) else (1, min(one.terms))
