"""Groups of products that a unit adds to each other before it cuts the bits that are small next to other
terms.

Masks show no order if all terms are aligned to the largest of them: whatever is added, y is lost next to M.
The groups show just below the last bit that is kept next to M: two y that are each lost alone, but not
together, were added before they were cut. M is in one product, -M in c. y has the sign of c: a sum in one's
complement changes the terms of the other sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from golden.identify.blackbox.box import Bank, Box
from golden.identify.blackbox.sum_order import KIND, factor_of_products, finite_marks
from golden.identify.probe.probes import Unreachable, exact_code, factors
from golden.identify.sample import picked
from golden.kernels.sum_tree import C, Node
from golden.number.formats import to_float
from golden.program.signature import Bits, Operands, Signature
from golden.program.steps import MAX_FRACTION_BITS

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Probe:
    """Questions with M, 2^`top` in size, in one product of `large` after another, the c that cancels it, and
    y of one sign, `against` that of M or with it.

    `codes`: the codes of y in a and b, for each exponent from the lowest up. `rest`: the codes of the answers
    to M and c alone, by the place of M: a sum in one's complement leaves a last place.
    """

    box: Box
    large: tuple[int, ...]
    codes_of_m: tuple[int, int]
    c: int
    codes: Bits
    top: int
    sign: int
    against: bool
    rest: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def takes(self) -> Signature:
        """The signature of the unit."""
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
        """For each question, whether anything is left of y next to M; None if the unit could not be given the
        wanted c."""
        wanted = self.questions(rows, exponents)
        sent, answers = self.box.ask(wanted)
        if (sent["c"] != wanted["c"]).any():
            return None
        numbers = self.numbers(answers)
        some = np.isfinite(numbers) & (numbers != self._rest_of(rows))
        return some, sent, answers

    def numbers(self, answers: Bits) -> Floats:
        """The numbers of answers, as doubles."""
        return np.asarray(to_float(self.takes.formats["d"], answers), np.float64)

    def _rest_of(self, rows: Numbers) -> Floats:
        """What M and c leave without y, for each question."""
        if not len(self.rest):
            return np.zeros(len(rows))
        return self.numbers(self.rest)[np.searchsorted(self.large, rows[:, 0])]

    def remainder(self, rows: Numbers, answers: Bits) -> Floats:
        """How large the rest of y is in each answer."""
        return np.abs(self.numbers(answers) - self._rest_of(rows))


@dataclass(frozen=True)
class Cut:
    """Where products that are small next to another one are cut: fraction bits below the large one, and the
    rounding, as far as powers of two show it."""

    bits: int
    rounding: str


@dataclass(frozen=True)
class Groups:
    """Products that are added before they are cut, each group of two or more; how a product is cut next to
    another one of its group, and next to one of another group."""

    members: tuple[tuple[int, ...], ...] = ()
    cuts: tuple[Cut, Cut] | None = None


def find_product_groups(box: Box, bank: Bank, tree: Node | None) -> Groups:
    """The groups of products that are added before they are cut. None if no question shows any, if there is
    only one group, or if masks showed more of the tree than one node with all products. The questions that
    show them join the bank."""
    probes: list[_Probe] = []
    if tree is None or _is_flat(tree, box.takes.k):
        # y with the sign of M only if the other shows nothing: some sums in one's complement keep no other y.
        probes = [one for against in (True, False) for one in _probes(box, against)]
    for probe in probes:
        # 1. By bisection: the exponent just below which y alone is lost, for each product.
        last = _last_kept_bit(probe)
        if last is None or not (last > 0).any():
            continue
        # 2. Two y just below it: something is left only if they were added before the cut.
        pairs = [(m, i, j) for m in range(len(probe.large)) for i, j in _pairs(probe, m)]
        rows = np.array([(probe.large[m], i, j) for m, i, j in pairs])
        at = np.array([min(last[m, i], last[m, j]) - 1 for m, i, j in pairs])
        rows, at = rows[at >= 0], at[at >= 0]
        shown = probe.left(rows, at) if len(rows) else None
        groups = () if shown is None else _groups(box.takes.k, rows[shown[0], 1:].tolist())
        if groups and shown is not None:
            # Fits need some of the questions about pairs.
            most = 64
            remainder = slice(None, None, max(len(rows) // most, 1))
            bank.add(KIND, picked(shown[1], remainder), shown[2][remainder])
            m = probe.large[0]
            own, other = sorted(groups, key=lambda one: m not in one)[:2]
            rows = np.array([(m, next(i for i in one if i != m)) for one in (own, other)])
            return Groups(groups, _cuts(probes, rows) if probe.against else None)
    return Groups()


def _cuts(probes: Sequence[_Probe], rows: Numbers) -> tuple[Cut, Cut] | None:
    """How y is cut in two places. The least y that is not lost becomes the last place that is kept. A smaller
    one is that place itself, or is a tie that was rounded up; with a rounding to one side none is lost."""
    # 1. By sign of y, the binades from M down to the least y, and to what is left of it.
    found: dict[int, tuple[Numbers, Numbers]] = {}
    for probe in (one for one in probes if one.against):
        last = _bisected(probe, rows)
        shown = None if last is None else probe.left(rows, last.clip(0, len(probe.codes) - 1))
        if last is None or shown is None or not shown[0].all():
            return None
        numbers = probe.remainder(rows, shown[2])
        found[probe.sign] = len(probe.codes) - last, probe.top + 1 - np.frexp(numbers)[1]
    if len(found) < 2:
        return None
    # 2. Below the last place: nothing is kept (0), ties (1), or everything (2).
    cuts: list[Cut] = []
    for place in range(len(rows)):
        bits = max(int(left[place]) for _, left in found.values())
        plus, minus = (min(int(found[sign][0][place]) - bits, 2) for sign in (1, -1))
        cuts.append(Cut(min(max(bits, 0), MAX_FRACTION_BITS), _ROUNDINGS.get((plus, minus), "toward_zero")))
    return cuts[0], cuts[1]


_ROUNDINGS = {
    **{(1, 1): "nearest_away", (1, 0): "nearest_up", (0, 1): "nearest_down"},
    **{(2, 0): "up", (0, 2): "down", (2, 2): "away"},
}
"""Roundings by what is kept of positive and of negative numbers below the last place, as in `_cuts`."""


def _is_flat(tree: Node, k: int) -> bool:
    """Whether all products are children of one node."""
    own = sum(isinstance(one, int) and one != C for one in tree.children)
    return own == k or any(isinstance(one, Node) and _is_flat(one, k) for one in tree.children)


def _probes(box: Box, against: bool) -> Iterator[_Probe]:
    """M and the y below it, of both signs; nothing if the formats have none, or c does not cancel M.
    `against`: y has the other sign than M."""
    takes = box.takes
    # The pairs of more products are too many.
    most = 64
    if not all(takes.formats[name].is_float for name in "abcd") or not 4 <= takes.k <= most:
        return
    k = takes.k
    # Beyond this only two places of M are tried, because the pairs are many.
    many = 32
    large = dict.fromkeys((0, k - 1) if k > many else (0, 1, k // 2, k - 1))
    # One query in 12 of the budget is used here, at most.
    part = 12
    few = _questions_in_all(k, len(large)) * part < box.asks - box.queries
    shift = factor_of_products(box) if few else 0
    marks = finite_marks(box, shift=shift) if few else None
    if marks is None:
        return
    for sign in (1, -1):
        codes = list[tuple[int, int]]()
        # Binades below M in which y is searched.
        deepest = 72
        for exponent in range(marks.top - 1, max(marks.small, marks.top - deepest) - 1, -1):
            try:
                value = sign * Fraction(2) ** (exponent - shift)
                codes.append(factors(value, takes.formats["a"], takes.formats["b"]))
            except Unreachable:
                break
        if len(codes) < 4:
            return
        with_m = marks.minus if (sign > 0) == against else marks.large
        m = with_m.a, with_m.b
        found = _Probe(box, tuple(large), m, 0, np.array(codes[::-1]), marks.top, sign, against)
        yield from _with_cancelling_c(found)


def _questions_in_all(k: int, large: int) -> int:
    """An estimate of the queries for both signs of y, and one sign of M."""
    return 2 * large * (k * k // 2 + 8 * k)


def _with_cancelling_c(one: _Probe) -> Iterator[_Probe]:
    """The probe with the c that cancels M; for a unit that changes signs, the other c. What is left of both
    is far below M."""
    rows, binades = np.array([(m,) for m in one.large]), 6
    for sign in (1, -1):
        c = exact_code(one.takes.formats["c"], sign * Fraction(2) ** one.top)
        shown = replace(one, c=c).left(rows, np.zeros(len(rows), np.int64))
        if shown is not None and (np.abs(one.numbers(shown[2])) < 2.0 ** (one.top - binades)).all():
            yield replace(one, c=c, rest=shown[2])
            return


def _last_kept_bit(one: _Probe) -> Numbers | None:
    """By M and product, the place of the least y that is not lost alone, (M, k); 0 if there is none, or none
    is lost."""
    k = one.takes.k
    pairs = [(m, i) for m in range(len(one.large)) for i in range(k) if i != one.large[m]]
    remainder = _bisected(one, np.array([(one.large[m], i) for m, i in pairs]))
    if remainder is None:
        return None
    found = np.zeros((len(one.large), k), np.int64)
    found[tuple(np.array(pairs).T)] = np.where(remainder < len(one.codes), remainder, 0)
    return found


def _bisected(one: _Probe, rows: Numbers) -> Numbers | None:
    """The place of the least y that is not lost, for each of these places of M and y; one place above the
    largest if all are lost."""
    lost, remainder = np.full(len(rows), -1), np.full(len(rows), len(one.codes))
    while (remainder - lost > 1).any():
        middle = np.clip((lost + remainder) // 2, 0, len(one.codes) - 1)
        shown = one.left(rows, middle)
        if shown is None:
            return None
        remainder, lost = np.where(shown[0], middle, remainder), np.where(shown[0], lost, middle)
    return remainder


def _pairs(one: _Probe, m: int) -> Iterator[tuple[int, int]]:
    others = [i for i in range(one.takes.k) if i != one.large[m]]
    yield from ((i, j) for place, i in enumerate(others) for j in others[place + 1 :])


def _groups(k: int, met: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """The products that were added together, directly or through others; empty if one product is alone, or
    all are in one group."""
    of = list(range(k))
    for i, j in met:
        old, new = of[j], of[i]
        of = [new if one == old else one for one in of]
    found = [tuple(i for i in range(k) if of[i] == name) for name in dict.fromkeys(of)]
    return tuple(found) if len(found) > 1 and min(map(len, found)) > 1 else ()
