"""The order of the sum of a unit: which terms meet before which, found with masks (golden.kernels.sum_tree).

This module has the masks of a unit with a, b, c and perhaps scales, and counts the terms that each pair lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from golden import stimuli
from golden.identify.blackbox.box import Bank, Box, dense_view
from golden.identify.probe.probes import Probe, Shot, Unreachable, exact_code, factors, split_scale
from golden.identify.sample import joined, picked
from golden.kernels.sum_tree import C, Node, Pair, exact_tree_of, predicted, tree_of
from golden.number.formats import Kind
from golden.program.signature import Operands, Signature
from golden.unit import Unit

KIND = "masks"
_SCALES = ("scale_a", "scale_b")


class _Unreadable(Exception):
    """An answer that is no count of y."""


@dataclass(frozen=True)
class _Codes:
    """A number as a product, with scales of its block if it needs them, and as c."""

    a: int
    b: int
    c: int
    scales: tuple[int, int] | None = None


@dataclass(frozen=True)
class _Marks:
    """Codes of M, -M, y and -y; M is 2^top and y 2^small. `turned`: the terms that the unit negates, which
    are given the opposite sign. `slots`: the k of each product that is a term."""

    large: _Codes
    minus: _Codes
    little: _Codes
    less: _Codes
    top: int
    small: int
    slots: Sequence[int]
    turned: frozenset[int] = frozenset()
    counted: int = 0
    """Bits of an answer, in units of y, that count; 0: all. See `_binades_between`."""

    def of(self, place: int) -> tuple[_Codes, _Codes, _Codes]:
        """Codes of M, -M and y of one term."""
        if place in self.turned:
            return self.minus, self.large, self.less
        return self.large, self.minus, self.little

    @property
    def terms(self) -> int:
        """The number of terms, including c."""
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
    takes: Signature, tiny: bool, slots: Sequence[int] | None = None, highest: int = 60, shift: int = 0
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
    # Binades between M and y.
    widest = 120
    low = max(
        sum(map(lowest, near)) + max(shift, 0), lowest(c), d.min_exponent - d.fraction_bits, top - widest
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

    # y everywhere, then M and -M in the pair of each row.
    for place in (C, *range(len(marks.slots))):
        put(slice(None), place, marks.of(place)[2])
    for row, pair in enumerate(pairs):
        for place, which in zip(pair, (0, 1), strict=False):
            put(row, place, marks.of(place)[which])
    return rest


def _lost(box: Box, bank: Bank, marks: _Marks, pairs: Sequence[Pair]) -> Sequence[int] | None:
    """How many terms had been added when the two of each pair met: these two, and every y that is gone. 0 if
    the result is no count; None if the unit could not be given the wanted c."""
    takes, n = box.takes, marks.terms
    operands = _questions(takes, marks, pairs)
    wanted = operands["c"]
    operands, answers = box.ask(operands)
    if (operands["c"] != wanted).any():
        return None
    kept = slice(None, None, max(len(pairs) // 300, 1))  # masks are much alike
    bank.add(KIND, picked(operands, kept), answers[kept])
    codes, places_of = np.unique(answers, return_inverse=True)
    sizes = np.zeros(len(codes), np.int64)
    for place, code in enumerate(codes.tolist()):
        number = takes.formats["d"].decode(code)
        if number.kind < Kind.INFINITY:
            left = number.value / Fraction(2) ** marks.small
            left = left % 2**marks.counted if marks.counted else left
            if left.denominator == 1 and 0 <= left <= n - 2:
                sizes[place] = n - int(left)
    found: list[int] = sizes[places_of].tolist()
    return found


def _binades_between(takes: Signature, terms: int) -> int:
    """Binades between M and y for which all y together are less than the last place below M. An addition that
    does not round to nearest moves -M or M by whole places for a y, and loses the y. Then the lowest bits of
    an answer count the y that were added after M and -M had met."""
    return takes.formats["d"].fraction_bits + 1 + terms.bit_length()


def find_order(box: Box, bank: Bank, slots: Sequence[int] | None = None) -> Node | None:
    """The tree of the sum; None if the formats cannot show it, or the answers fit no tree.

    A unit that rounds up or keeps sticky bits leaves more than y: then there is no tree either, and the
    candidates for the order are tried one after the other.

    Args:
        slots: for a unit with several scale blocks, the first k of each: then the blocks are the terms, M and
            y come from their scales, and their slots represent them in the tree. By default every product is
            a term.
    """
    takes = box.takes
    if not all(takes.formats[name].is_float for name in "abcd"):
        return None
    best = _best(box, bank, slots)
    if best is None and slots is None:
        best = _of_moving_sums(box, bank)
    # A unit may have a factor between products and c; then M is another number for c.
    if best is None and (shift := factor_of_products(box)):
        best = _best(box, bank, slots, shift)
    if best is None:
        return None
    return best[1].relabelled(dict(enumerate(slots or ())))


def _best(
    box: Box, bank: Bank, slots: Sequence[int] | None, shift: int = 0
) -> tuple[int, Node, _Marks] | None:
    """The tree that loses most y: there the masks distinguish the nodes best."""
    best: tuple[int, Node, _Marks] | None = None
    for tiny in (False, True):
        marks = finite_marks(box, tiny, slots, shift)
        marks = None if marks is None else replace(marks, turned=_turned(box, bank, marks))
        if marks is None or not _counts_all(box, bank, marks):
            continue
        tree = _tree(box, bank, marks)
        met = 0 if tree is None else int(predicted(tree).sum())
        if tree is not None and (best is None or met > best[0]):
            best = met, tree, marks
    return best


def _of_moving_sums(box: Box, bank: Bank) -> tuple[int, Node, _Marks] | None:
    """The tree of rounded additions that move M or -M by a place when y is added to it: rounding toward zero,
    up or to odd. Where y is below both M and -M, no order of the two leaves a count of y alone."""
    marks, terms = finite_marks(box), box.takes.k + 1
    deep = 0 if marks is None else marks.top - _binades_between(box.takes, terms)
    if marks is None or deep < marks.small:
        return None
    try:
        little, less = (_codes(box.takes, sign, deep, False) for sign in (1, -1))
    except Unreachable:
        return None
    near = replace(marks, little=little, less=less, small=deep, counted=terms.bit_length())
    near = replace(near, turned=_turned(box, bank, near))
    tree = _tree(box, bank, near) if _counts_all(box, bank, near) else None
    return None if tree is None or not tree.binary else (0, tree, near)


def factor_of_products(box: Box) -> int:
    """The exponent of the power of two by which a unit scales products relative to c, but for last places; 0
    if there is none."""
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
    shift = round(math.log2(factor))
    near = Fraction(1, 16)
    return shift if abs(factor / Fraction(2) ** shift - 1) < near else 0


def finite_marks(
    box: Box, tiny: bool = False, slots: Sequence[int] | None = None, shift: int = 0
) -> _Marks | None:
    """The marks with the largest M that gives a finite answer, alone in a product or in c: products may
    overflow where neither their factors nor the result do."""
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
    operands = joined(parts)
    _, answers = box.ask(operands)
    special = [box.takes.formats["d"].decode(code).kind >= Kind.INFINITY for code in answers.tolist()]
    return [any(part) for part in np.split(np.array(special), len(tried))]


def tree_of_unit(unit: Unit, slots: Sequence[int] | None = None) -> Node | None:
    """The tree of a unit that can be queried without limits, found as that of a black box (`find_order`)."""
    box = Box(dense_view(unit), 1 << 30, math.inf)
    return find_order(box, Bank(box.takes), slots)


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
                f"X = 2^{marks.top} in {first}, -X in {second}, 2^{marks.small} elsewhere", picked(whole, row)
            )
            for row, (first, second) in enumerate(said)
        ]
        if any(probe.value(shot) != all_left for shot in shots):
            break
    if not shots:
        raise Unreachable("no two numbers are so far apart that one is lost next to the other")
    probe.shots = shots
    return shots


def _turned(box: Box, bank: Bank, marks: _Marks) -> frozenset[int]:
    """The terms that the unit negates: M in one term alone gives a negative result."""
    places = [*range(len(marks.slots)), C]
    operands, answers = box.ask(_questions(box.takes, marks, [(place,) for place in places]))
    fmt = box.takes.formats["d"]
    numbers = [fmt.decode(code) for code in answers.tolist()]
    found = frozenset(
        place
        for place, one in zip(places, numbers, strict=True)
        if one.kind < Kind.INFINITY and one.value < 0
    )
    if found:
        bank.add(KIND, operands, answers)
    return found


def _tree(box: Box, bank: Bank, marks: _Marks) -> Node | None:
    """The tree from all pairs, or for many terms from the pairs that FPRev uses and some random ones; None if
    a result is no count, or no tree has these sizes."""
    n = marks.terms
    terms = [*range(n - 1), C]
    sizes = np.zeros((n, n), np.int64)

    def ask(pairs: Sequence[Pair]) -> list[int]:
        """Sizes that masks show, for either place of M: a unit that rounds toward zero loses y next to M, but
        not next to -M."""
        new = {pair for one in pairs for pair in (one, one[::-1]) if not sizes[pair]}
        if new:
            both = sorted(new, key=lambda pair: (pair[0] % n, pair[1] % n))  # c last
            lost = _lost(box, bank, marks, both) or [0] * len(both)
            for (i, j), size in zip(both, lost, strict=True):
                sizes[i, j] = sizes[j, i] = max(size, sizes[i, j])
        found = [int(sizes[pair]) for pair in pairs]
        if not all(found):
            raise _Unreadable
        return found

    # Of more than 9000 pairs of terms only some are tried; each is asked twice, for two M.
    most = min(9000, box.can_answer() // 2)
    try:
        # Few pairs: every mask is asked, and the tree has to predict all of them.
        if n * (n - 1) <= most:
            ask([(i, j) for i in terms for j in terms if i != j])
            trees: Iterator[Node | None] = (make(terms, ask) for make in (tree_of, exact_tree_of))
        else:
            trees = iter([tree_of(terms, ask)])
            # 1000 pairs check a tree, and at most one query in 16 of the budget.
            checked = min(1000, box.can_answer() // 16)
            drawn = np.random.default_rng(n).integers(n, size=(checked, 2))
            ask([(terms[i], terms[j]) for i, j in drawn.tolist() if i != j])
    except _Unreadable:
        return None
    # A tree is accepted only if it predicts every mask that was asked.
    measured = sizes > 0
    return next((one for one in trees if one is not None and (predicted(one) == sizes)[measured].all()), None)


def _counts_all(box: Box, bank: Bank, marks: _Marks) -> bool:
    """Whether y counts if no term is large: a unit that flushes it loses it everywhere."""
    operands = _questions(box.takes, marks, [()])
    operands, answers = box.ask(operands)
    bank.add(KIND, operands, answers)
    number = box.takes.formats["d"].decode(int(answers[0]))
    return number.kind < Kind.INFINITY and number.value == marks.terms * Fraction(2) ** marks.small
