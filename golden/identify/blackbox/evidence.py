"""What shows each rule of a candidate: the questions that a unit with another value would have answered
otherwise, and the values that no question ruled out.

A rule is worth what would have refuted it. So every neighbour of the candidate, which differs from it in one
key, is held against all questions that were kept: where it answers one otherwise than the box did, that
question shows the rule; where it answers all as the box did, the rule is not decided.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.identify.blackbox.box import Bank, BudgetEnded
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.moves import Move, settings
from golden.identify.blackbox.sum_order import KIND
from golden.identify.minimising import costs, minimise
from golden.identify.probe.probes import Unreachable, exact_code
from golden.instruction import Instruction
from golden.kernels.sum_tree import C, Node, predicted, terms_of
from golden.number.formats import to_float
from golden.program.signature import Bits, Operands

_LOOKED_AT = 200
"""Refuting questions among which the simplest is looked for."""
_SHRINK_ROUNDS = 12
_SHOWN = 2
"""Values of a key that are shown as ruled out: those that the fewest questions did."""


@dataclass(frozen=True)
class Witness:
    """A value that a key does not have. `questions`: how many refute it; `operands`: the simplest of them,
    `box` the answer to it, `other` what a unit with this value would have answered."""

    value: str
    questions: int
    operands: Operands
    box: int
    other: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        operands = {name: codes.tolist() for name, codes in self.operands.items()}
        named = {"value": self.value, "questions": self.questions, "operands": operands}
        return {**named, "box": self.box, "other": self.other}


@dataclass(frozen=True)
class Property:
    """One key of the candidate.

    Attributes:
        key: step, registers and key, as the report names it.
        value: what the candidate has; empty of a step that could be put in.
        ruled_out: how many other values were refuted.
        witnesses: of those, the ones that the fewest questions refute.
        undecided: values with which every question kept had the same answer.
        alike: the units that have them, by value; several where one value stands in different places.
        same: values that are proved to give the same unit, for all operands: nothing tells them apart.
        said: of what no key says, how it was asked; `asked`: by how many questions.
    """

    key: str
    value: str
    ruled_out: int
    witnesses: tuple[Witness, ...]
    undecided: tuple[str, ...]
    alike: tuple[tuple[str, Instruction], ...] = ()
    said: str = ""
    asked: int = 0
    same: tuple[str, ...] = ()

    def without(self, equal: Collection[Instruction]) -> Property:
        """The property once some units are proved to be the candidate."""
        left = tuple((value, unit) for value, unit in self.alike if unit not in equal)
        values = {value for value, _ in left}
        undecided = tuple(value for value in self.undecided if value in values)
        same = tuple(value for value in self.undecided if value not in values)
        return replace(self, alike=left, undecided=undecided, same=same)

    @property
    def confidence(self) -> int:
        """Questions that rule out the value that is hardest to tell; 0 where one was not."""
        if self.said:
            return self.asked
        return 0 if self.undecided or not self.witnesses else min(one.questions for one in self.witnesses)

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "key": self.key,
            "value": self.value,
            "ruled_out": self.ruled_out,
            "confidence": self.confidence,
            "witnesses": [one.as_dict() for one in self.witnesses],
            "undecided": list(self.undecided),
            "same": list(self.same),
            "said": self.said,
        }


@dataclass
class Evidence:
    """The properties of a candidate; `tried` of `neighbours` were held against the questions in the time.

    `asked`: simpler forms of the questions shown, which the box was asked as well, with its answers.
    """

    properties: tuple[Property, ...] = ()
    tried: int = 0
    neighbours: int = 0
    asked: tuple[Operands, Bits] | None = None


@dataclass
class _Weighed:
    witnesses: list[tuple[Witness, Candidate]] = field(default_factory=list)
    undecided: dict[str, None] = field(default_factory=dict)
    alike: list[tuple[str, Instruction]] = field(default_factory=list)


def weigh(
    candidate: Candidate,
    bank: Bank,
    neighbours: Iterable[Move],
    deadline: float,
    ask: Callable[[Operands], tuple[Operands, Bits]] | None = None,
    end: float = 0,
) -> Evidence:
    """Holds the neighbours of a candidate that explains a bank against its questions.

    Args:
        deadline: on time.monotonic; neighbours after it are left.
        ask: the box, which is asked about simpler forms of the questions shown, and tells them as it was
            asked (its c can be another); None: it cannot be.
        end: on time.monotonic; no question is made simpler after it.
    """
    found, tried, of = _weighed(candidate, bank, neighbours, deadline)
    shown = {key: sorted(one.witnesses, key=lambda w: w[0].questions)[:_SHOWN] for key, one in found.items()}
    asked = None if ask is None else _simplified(candidate, bank, shown, end, ask)
    now = settings(candidate.operations)
    properties = tuple(
        Property(
            key,
            now.get(key, ""),
            len(one.witnesses),
            tuple(witness for witness, _ in shown[key]),
            tuple(one.undecided),
            tuple(one.alike),
        )
        for key, one in found.items()
    )
    return Evidence(properties, tried, of, asked)


def _weighed(
    candidate: Candidate, bank: Bank, neighbours: Iterable[Move], deadline: float
) -> tuple[dict[str, _Weighed], int, int]:
    """By key: what is refuted and what is not; how many neighbours were tried, of how many."""
    listed = list(neighbours)
    found: dict[str, _Weighed] = {}
    for tried, move in enumerate(listed):
        if time.monotonic() > deadline:
            return found, tried, len(listed)
        new = move.apply(candidate)
        if new is None or new.key == candidate.key:
            continue
        weighed = found.setdefault(move.key, _Weighed())
        answers = bank.answered(new.program)
        wrong = np.flatnonzero(answers != bank.answers)
        if len(wrong):
            weighed.witnesses.append((_witness(move.value, bank, wrong, answers), new))
        else:
            weighed.undecided[move.value] = None
            weighed.alike.append((move.value, new.instruction))
    return found, len(listed), len(listed)


def _witness(value: str, bank: Bank, wrong: np.ndarray[Any, Any], answers: np.ndarray[Any, Any]) -> Witness:
    """The simplest of the questions that refute a value."""
    some = wrong[:_LOOKED_AT]
    operands = {name: codes[some] for name, codes in bank.operands.items()}
    place = int(np.argmin(costs(bank.takes, operands)))
    least = {name: codes[place] for name, codes in operands.items()}
    return Witness(value, len(wrong), least, int(bank.answers[some[place]]), int(answers[some[place]]))


def _simplified(
    candidate: Candidate,
    bank: Bank,
    shown: dict[str, list[tuple[Witness, Candidate]]],
    deadline: float,
    ask: Callable[[Operands], tuple[Operands, Bits]],
) -> tuple[Operands, Bits] | None:
    """Puts simpler questions in the place of the first ones shown, where the box answers those as the
    candidate does; what was asked, with the answers."""
    least: dict[str, Operands] = {}
    for key, found in shown.items():
        if found and time.monotonic() < deadline:
            other = found[0][1]

            def differ(batch: Operands, other: Candidate = other) -> Any:
                return other.dot(**batch) != candidate.dot(**batch)

            least[key] = minimise(bank.takes, found[0][0].operands, differ, rounds=_SHRINK_ROUNDS)
    if not least:
        return None
    batch = {name: np.stack([one[name] for one in least.values()]) for name in bank.operands}
    try:
        told, answers = ask(batch)
    except BudgetEnded:
        return None
    right = (answers == candidate.dot(**told)) & (told["c"] == batch["c"])
    for place, (key, operands) in enumerate(least.items()):
        witness, other = shown[key][0]
        if right[place]:
            says = int(other.dot(**{name: codes[None] for name, codes in operands.items()})[0])
            simple = replace(witness, operands=operands, box=int(answers[place]), other=says)
            shown[key][0] = simple, other
    return told, answers


Ask = Callable[[Operands], tuple[Operands, Bits]]


class Taken(str):
    """A change in words, "key = value", with the candidates before and after it; None of a dissection that
    was continued from a file, which keeps the words alone."""

    before: Candidate | None
    after: Candidate | None

    def __new__(cls, text: str, before: Candidate | None = None, after: Candidate | None = None) -> Taken:
        """The words are the string itself: they are compared and kept as such."""
        found = super().__new__(cls, text)
        found.before, found.after = before, after
        return found


@dataclass(frozen=True)
class Forced:
    """What forced one change.

    Attributes:
        rule: the change, as `Found.rules` has it; `place`: which of the changes it is.
        old: the value that was wrong; empty of a step that was not there.
        questions: of those kept, how many the candidate before has wrong and the one behind right.
        operands: the simplest of them, `box` the answer to it, `before` that of the candidate before.
    """

    rule: str
    place: int
    old: str
    questions: int
    operands: Operands
    box: int
    before: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        operands = {name: codes.tolist() for name, codes in self.operands.items()}
        named = {"rule": self.rule, "instead_of": self.old, "questions": self.questions}
        return {**named, "operands": operands, "box": self.box, "before": self.before}


def forced(told: Sequence[str], bank: Bank) -> list[Forced]:
    """The counterexamples of those changes that have any among the questions kept, in their order."""
    found = []
    for place, one in enumerate(told):
        if isinstance(one, Taken) and one.before is not None and one.after is not None:
            before = bank.answered(one.before.program).copy()
            hits = np.flatnonzero((before != bank.answers) & ~bank.wrong(one.after.program))
            if len(hits):
                some = hits[:_LOOKED_AT]
                least = some[int(np.argmin(costs(bank.takes, bank.part(some).operands)))]
                old = settings(one.before.operations).get(one.partition(" = ")[0], "")
                operands = {name: codes[least] for name, codes in bank.operands.items()}
                answers = int(bank.answers[least]), int(before[least])
                found.append(Forced(str(one), place, old, len(hits), operands, *answers))
    return found


def shrunk(
    found: Sequence[Forced], told: Sequence[str], bank: Bank, deadline: float, ask: Ask
) -> tuple[list[Forced], tuple[Operands, Bits] | None]:
    """The same with simpler questions, where the box answers those as the candidate behind the change does;
    and what was asked for that, with the answers.

    Args:
        deadline: on time.monotonic; no question is made simpler after it.
    """
    taken = [one for one in (told[each.place] for each in found) if isinstance(one, Taken)]
    pairs = [(one.before, one.after) for one in taken]
    least: list[Operands] = []
    for one, (before, after) in zip(found, pairs, strict=True):
        if before is None or after is None or time.monotonic() > deadline:
            break

        def differ(batch: Operands, before: Candidate = before, after: Candidate = after) -> Any:
            return before.dot(**batch) != after.dot(**batch)

        least.append(minimise(bank.takes, one.operands, differ, rounds=_SHRINK_ROUNDS))
    if not least:
        return list(found), None
    batch = {name: np.stack([one[name] for one in least]) for name in bank.operands}
    try:
        asked, answers = ask(batch)
    except BudgetEnded:
        return list(found), None
    simple = list(found)
    for place, ((before, after), operands) in enumerate(zip(pairs, least, strict=False)):
        assert before is not None and after is not None
        says = {name: codes[place] for name, codes in asked.items()}
        if int(after.dot(**says)) == answers[place] and np.array_equal(says["c"], operands["c"]):
            now = int(answers[place]), int(before.dot(**says))
            simple[place] = replace(found[place], operands=operands, box=now[0], before=now[1])
    return simple, (asked, answers)


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
