"""Which products are added to each other before what is small beside other terms is cut.

Masks show no order where all terms are aligned to the largest of them: whatever is added, y is lost beside M.
Just below the last bit that is kept beside M it shows: two y that are each lost alone, and are not lost
together, were added before they were cut. M stands in one product, -M in c.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from golden.identify.blackbox.box import Bank, Box
from golden.identify.blackbox.sum_order import KIND, finite_marks
from golden.identify.probe.probes import Unreachable, exact_code, factors
from golden.kernels.sum_tree import C, Node
from golden.number.formats import Kind
from golden.program.signature import Bits, Operands, Signature

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
_MOST_PRODUCTS, _MANY = 64, 32
"""Of more products none are asked; of more than so many, beside two M alone, as the pairs are many."""
_DEEPEST = 72
"""Binades below M where y is looked for."""
_MOST_KEPT = 64
"""Of the questions for pairs, so many stay to be fitted to."""
_PART = 12
"""Of all questions, one in so many at most is one of these."""


@dataclass(frozen=True)
class _Beside:
    """M in one product after the other, of `large`, and the c that takes it away; y of one sign.

    `codes`: the codes of y in a and b, of each exponent from the lowest on.
    """

    box: Box
    large: tuple[int, ...]
    codes_of_m: tuple[int, int]
    c: int
    codes: Bits

    @property
    def takes(self) -> Signature:
        """What the unit takes."""
        return self.box.takes

    def questions(self, rows: Numbers, exponents: Numbers) -> Operands:
        """Dot products with M in the first column of `rows`, y in the others; the lowest exponent is 0."""
        takes, n = self.takes, len(rows)
        found = {
            name: np.full((n, *shape), takes.at_rest(name), takes.code_format(name).dtype)
            for name, shape in takes.operand_shapes(matrices=False).items()
        }
        at = np.arange(n)
        for place, name in enumerate("ab"):
            for column in rows.T[1:]:
                found[name][at, column] = self.codes[exponents, place]
            found[name][at, rows[:, 0]] = self.codes_of_m[place]
        found["c"][:] = self.c
        return found

    def left(self, rows: Numbers, exponents: Numbers) -> tuple[Flags, Operands, Bits] | None:
        """Of which something is left beside M; None where the unit was not asked what was wanted."""
        wanted = self.questions(rows, exponents)
        asked, answers = self.box.ask(wanted)
        if (asked["c"] != wanted["c"]).any():
            return None
        codes, places = np.unique(answers, return_inverse=True)
        numbers = [self.takes.formats["d"].decode(code) for code in codes.tolist()]
        some = np.array([one.kind == Kind.FINITE and bool(one.value) for one in numbers])
        return some[places], asked, answers


def partners(box: Box, bank: Bank, tree: Node | None) -> tuple[tuple[int, ...], ...]:
    """The groups of products that are added before they are cut, each of two or more; empty where no question
    shows any, one group is all there is, or masks showed more of the tree than that all products stand in one
    node. The questions that show them join the bank."""
    for beside in _beside(box) if tree is None or _is_flat(tree, box.takes.k) else ():
        last = _last_kept(beside)
        if last is None or not (last > 0).any():
            continue
        pairs = [(m, i, j) for m in range(len(beside.large)) for i, j in _pairs(beside, m)]
        rows = np.array([(beside.large[m], i, j) for m, i, j in pairs])
        at = np.array([min(last[m, i], last[m, j]) - 1 for m, i, j in pairs])
        rows, at = rows[at >= 0], at[at >= 0]
        told = beside.left(rows, at) if len(rows) else None
        groups = () if told is None else _groups(box.takes.k, rows[told[0], 1:].tolist())
        if groups and told is not None:
            kept = slice(None, None, max(len(rows) // _MOST_KEPT, 1))
            bank.add(KIND, {name: codes[kept] for name, codes in told[1].items()}, told[2][kept])
            return groups
    return ()


def _is_flat(tree: Node, k: int) -> bool:
    """Whether all products stand in one node beside each other."""
    own = sum(isinstance(one, int) and one != C for one in tree.children)
    return own == k or any(isinstance(one, Node) and _is_flat(one, k) for one in tree.children)


def _beside(box: Box) -> Iterator[_Beside]:
    """M and the y below it, of both signs; nothing where the formats have none, or c does not take M away."""
    takes = box.takes
    if not all(takes.formats[name].is_float for name in "abcd") or not 4 <= takes.k <= _MOST_PRODUCTS:
        return
    k = takes.k
    large = dict.fromkeys((0, k - 1) if k > _MANY else (0, 1, k // 2, k - 1))
    marks = finite_marks(box) if _questions_in_all(k, len(large)) * _PART < box.asks - box.asked else None
    if marks is None:
        return
    for sign in (1, -1):
        codes = list[tuple[int, int]]()
        for exponent in range(marks.top - 1, max(marks.small, marks.top - _DEEPEST) - 1, -1):
            try:
                value = sign * Fraction(2) ** exponent
                codes.append(factors(value, takes.formats["a"], takes.formats["b"]))
            except Unreachable:
                break
        if len(codes) < 4:
            return
        m = marks.large.a, marks.large.b
        found = _Beside(box, tuple(large), m, 0, np.array(codes[::-1]))
        yield from _taken_away(found, marks.top)


def _questions_in_all(k: int, large: int) -> int:
    """About how many are asked for both signs."""
    return 2 * large * (k * k // 2 + 8 * k)


def _taken_away(one: _Beside, top: int) -> Iterator[_Beside]:
    """The same with the c that leaves zero of M: of a unit that turns signs, the other one."""
    rows = np.array([(m,) for m in one.large])
    for sign in (-1, 1):
        c = exact_code(one.takes.formats["c"], sign * Fraction(2) ** top)
        told = replace(one, c=c).left(rows, np.zeros(len(rows), np.int64))
        if told is not None and not told[0].any() and _are_zeros(one, told[2]):
            yield replace(one, c=c)
            return


def _are_zeros(one: _Beside, answers: Bits) -> bool:
    return all(one.takes.formats["d"].decode(code).kind == Kind.ZERO for code in answers.tolist())


def _last_kept(one: _Beside) -> Numbers | None:
    """By M and product, the place of the least y that is not lost alone, (M, k); 0 where there is none, or
    none is lost."""
    k, count = one.takes.k, len(one.codes)
    pairs = [(m, i) for m in range(len(one.large)) for i in range(k) if i != one.large[m]]
    rows = np.array([(one.large[m], i) for m, i in pairs])
    lost, kept = np.full(len(rows), -1), np.full(len(rows), count)
    while (kept - lost > 1).any():
        middle = np.clip((lost + kept) // 2, 0, count - 1)
        told = one.left(rows, middle)
        if told is None:
            return None
        kept, lost = np.where(told[0], middle, kept), np.where(told[0], lost, middle)
    found = np.zeros((len(one.large), k), np.int64)
    found[tuple(np.array(pairs).T)] = np.where(kept < count, kept, 0)
    return found


def _pairs(one: _Beside, m: int) -> Iterator[tuple[int, int]]:
    others = [i for i in range(one.takes.k) if i != one.large[m]]
    yield from ((i, j) for place, i in enumerate(others) for j in others[place + 1 :])


def _groups(k: int, met: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """The products that met, directly or by others; empty where not each has another one, or all are one."""
    of = list(range(k))
    for i, j in met:
        old, new = of[j], of[i]
        of = [new if one == old else one for one in of]
    found = [tuple(i for i in range(k) if of[i] == name) for name in dict.fromkeys(of)]
    return tuple(found) if len(found) > 1 and min(map(len, found)) > 1 else ()
