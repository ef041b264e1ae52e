"""What shows the order of the sum: for each node of its tree, the mask whose answer would be another one
where its terms met elsewhere.

Read off the masks that were kept: M in one term, -M in another, y in all others; how many y are left says how
many terms had met when M and -M did.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.sum_order import KIND
from golden.identify.probe.probes import Unreachable, exact_code
from golden.kernels.sum_tree import C, Node, predicted, terms_of
from golden.number.formats import to_float
from golden.program.signature import Operands

_FAR = 2.0**8
"""M is more than so many times y."""
_MOST_FACTOR = 24
"""Binades between what products and c are worth, at most."""


@dataclass(frozen=True)
class Meeting:
    """A node of the tree, and a mask that shows it.

    Attributes:
        node: its terms, as the tree is written.
        pair: the terms that hold M and -M, k or C.
        questions: masks kept that show this node.
        left: how many y are left in the answer; otherwise_left: how many there were if the two met elsewhere.
        elsewhere: where that is, in words.
        box, otherwise: the codes of both.
    """

    node: str
    pair: tuple[int, int]
    questions: int
    operands: Operands
    left: int
    box: int
    elsewhere: str
    otherwise_left: int
    otherwise: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        operands = {name: codes.tolist() for name, codes in self.operands.items()}
        pair = ["c" if one == C else one for one in self.pair]
        told = {"node": self.node, "pair": pair, "questions": self.questions, "operands": operands}
        other = {"elsewhere": self.elsewhere, "otherwise": self.otherwise}
        return {**told, "left": self.left, "box": self.box, **other}


def meetings(tree: Node, bank: Bank) -> tuple[Meeting, ...]:
    """A mask for each node, outermost first; none for nodes of which no kept mask has the answer, and for a
    tree of two terms, which can meet in one way alone."""
    kept, terms = bank.of_kinds(frozenset((KIND,))), len(tree.terms)
    values = _terms(kept)
    if terms < 3 or not len(kept) or values.shape[1] != terms:
        return ()
    sizes = predicted(tree)
    best: tuple[_Masks, npt.NDArray[np.bool_]] | None = None
    for factor in _factors(np.abs(values)):
        if (masks := _masks(kept, values, factor)) is not None:
            right = masks.left == terms - sizes[masks.pairs[:, 0], masks.pairs[:, 1]]
            if best is None or right.sum() > best[1].sum():
                best = masks, right
    if best is None:
        return ()
    masks, right = best
    found = (_meeting(node, tree, sizes, masks, right) for node in tree.nodes())
    return tuple(one for one in found if one is not None)


@dataclass(frozen=True)
class _Masks:
    """Those among the questions kept: the rows `of` in a bank, the pair of each, and how many y were left, or
    -1 where the answer is no count. `little`: y of each."""

    bank: Bank
    pairs: npt.NDArray[np.int64]
    left: npt.NDArray[np.int64]
    little: npt.NDArray[np.float64]


def _masks(kept: Bank, values: npt.NDArray[np.float64], factor: float) -> _Masks | None:
    """The questions of two terms that are large beside others that are all as small, and cancel: a unit that
    turns the sign of a term is given it with the other one, and c so many times smaller that products are."""
    values = np.concatenate([values[:, :-1], values[:, -1:] * factor], axis=1)
    sizes = np.abs(values)
    little = sizes.min(axis=1)  # d has those of c
    large = sizes == sizes.max(axis=1)[:, None]
    is_mask = (large.sum(axis=1) == 2) & (sizes.max(axis=1) > _FAR * little) & (little > 0)
    is_mask &= (large | (sizes == little[:, None])).all(axis=1)
    turned = (np.where(large, 0, values)[is_mask] < 0).any(axis=0)
    signs = np.where(turned, -np.sign(values), np.sign(values))
    is_mask &= np.where(large, signs, 0).sum(axis=1) == 0
    rows = np.flatnonzero(is_mask)
    if not len(rows):
        return None
    pairs = np.argsort(np.where(large, -signs, 0), axis=1, kind="stable")[rows][:, [0, -1]]
    little = little[rows] / factor
    with np.errstate(all="ignore"):
        found = to_float(kept.takes.formats["d"], kept.answers[rows]) / little  # y is a power of two
    is_count = (found >= 0) & (found <= values.shape[1]) & (found == np.floor(found))
    left = np.where(is_count, found, -1).astype(np.int64)
    return _Masks(kept.part(rows), pairs, left, little)


def _factors(sizes: npt.NDArray[np.float64]) -> list[float]:
    """What c may be multiplied by to be the products' y, one first: the unit may have a factor between the
    two. Where c is M it is far from one."""
    with np.errstate(all="ignore"):
        found = np.unique(np.log2(sizes[:, :-1].min(axis=1) / sizes[:, -1]))
    return [1.0, *(float(2.0**power) for power in found if power and abs(power) <= _MOST_FACTOR)]


def _terms(bank: Bank) -> npt.NDArray[np.float64]:
    """The products and c, (n, k + 1); what is beyond doubles is no mask."""
    takes = bank.takes
    a, b, c = (np.asarray(to_float(takes.formats[name], bank.operands[name]), np.float64) for name in "abc")
    with np.errstate(all="ignore"):
        products = a * b
        for name in ("scale_a", "scale_b"):
            if name in bank.operands:
                scale = np.asarray(to_float(takes.formats[name], bank.operands[name]), np.float64)
                products = products * np.repeat(scale, takes.k // scale.shape[1], axis=1)
    return np.concatenate([products, c[:, None]], axis=1)


def _meeting(
    node: Node, tree: Node, sizes: npt.NDArray[np.int64], masks: _Masks, right: npt.NDArray[np.bool_]
) -> Meeting | None:
    """The mask with the first terms of two children of a node, where c is one with c."""
    terms, below = len(tree.terms), np.full(len(tree.terms), -1)
    for place, child in enumerate(node.children):
        below[list(terms_of(child))] = place  # c is -1, the last
    at = below[masks.pairs]
    rows = np.flatnonzero(right & (at >= 0).all(axis=1) & (at[:, 0] != at[:, 1]))
    if not len(rows):
        return None
    named = np.where(masks.pairs == terms - 1, C, masks.pairs)[rows]
    first = rows[int(np.lexsort((named.max(axis=1), named.min(axis=1)))[0])]
    pair = [C if one == terms - 1 else int(one) for one in masks.pairs[first]]
    size = int(sizes[tuple(masks.pairs[first])])
    # the pair alone, before all others, leaves most; what meets so has to be held against the other end
    other = terms if size == 2 else 2
    elsewhere = "after all others" if size == 2 else "before all others"
    if node.exact:
        elsewhere = "and what is small beside them were lost" if size == 2 else elsewhere
    try:
        value = (terms - other) * Fraction(float(masks.little[first]))
        otherwise = exact_code(masks.bank.takes.formats["d"], value if value else 0.0)
    except Unreachable:
        return None
    return Meeting(
        node.brackets(),
        (pair[0], pair[1]),
        len(rows),
        {name: codes[first] for name, codes in masks.bank.operands.items()},
        terms - size,
        int(masks.bank.answers[first]),
        elsewhere,
        terms - other,
        otherwise,
    )
