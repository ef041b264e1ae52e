"""The evidence for each key of a candidate: questions that exclude other values, and values that none
excludes.

A key is as certain as the questions that would have refuted it. So every neighbour of the candidate, which
differs from it in one key, is compared with all recorded questions: if it answers one differently than the
box did, that question is a witness for the key; if it answers all as the box did, the key is undecided.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from golden.identify.blackbox.box import Bank, BudgetEnded
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.moves import Move
from golden.identify.blackbox.neighbourhood import settings
from golden.identify.minimising import costs, minimise
from golden.identify.sample import listed, picked
from golden.model.instruction import Instruction
from golden.program.signature import Bits, Operands

Ask = Callable[[Operands], tuple[Operands, Bits]]


@dataclass(frozen=True)
class Witness:
    """A value that a key does not have. `questions`: how many refute it; `operands`: the simplest of them,
    with the answer `box` and the answer `other` of a unit with this value."""

    value: str
    questions: int
    operands: Operands
    box: int
    other: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return vars(self) | {"operands": listed(self.operands)}


@dataclass(frozen=True)
class Property:
    """One key of the candidate.

    Attributes:
        key: step, registers and key, as the report names it.
        value: what the candidate has; empty for a step that could be inserted.
        ruled_out: how many other values were refuted.
        witnesses: the refuted values with the fewest refuting questions.
        undecided: values with which every recorded question has the same answer.
        alike: the units that have these values; several if one value can stand in different places.
        same: values that are proved to give the same unit for all operands.
        said, queries: for a property without a key, how it was tested, and with how many questions.
    """

    key: str
    value: str
    ruled_out: int
    witnesses: tuple[Witness, ...]
    undecided: tuple[str, ...]
    alike: tuple[tuple[str, Instruction], ...] = ()
    said: str = ""
    queries: int = 0
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
        """Questions that exclude the value that is hardest to exclude; 0 if one is not excluded."""
        if self.said:
            return self.queries
        return 0 if self.undecided or not self.witnesses else min(one.questions for one in self.witnesses)

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        plain = {"key": self.key, "value": self.value, "ruled_out": self.ruled_out, "said": self.said}
        witnesses = [one.as_dict() for one in self.witnesses]
        lists = {"witnesses": witnesses, "undecided": list(self.undecided), "same": list(self.same)}
        return {**plain, **lists, "confidence": self.confidence}


@dataclass
class Evidence:
    """The properties of a candidate; `tried` of `neighbours` were compared with the questions in time.

    `queried`: simpler forms of the questions shown, which were sent to the box as well, with its answers."""

    properties: tuple[Property, ...] = ()
    tried: int = 0
    neighbours: int = 0
    queried: tuple[Operands, Bits] | None = None


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
    ask: Ask | None = None,
    end: float = 0,
) -> Evidence:
    """Compares the neighbours of a candidate that explains a bank with its questions.

    Args:
        deadline: on time.monotonic; neighbours after it are skipped.
        ask: sends the box simpler forms of the questions shown, and returns them as they were sent (c can
            differ); None: it cannot be queried.
        end: on time.monotonic; no question is simplified after it.
    """
    # 1. Each neighbour is refuted by recorded questions, or undecided: no query is needed for that.
    found, tried, of = _weighed(candidate, bank, neighbours, deadline)
    # Of the excluded values those with the fewest refuting questions are shown.
    most = 2
    shown = {key: sorted(one.witnesses, key=lambda w: w[0].questions)[:most] for key, one in found.items()}
    # 2. The questions shown become simpler; a new one counts only with the box's own answer.
    queried = None if ask is None else _simplified(candidate, bank, shown, end, ask)
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
    return Evidence(properties, tried, of, queried)


def _weighed(
    candidate: Candidate, bank: Bank, neighbours: Iterable[Move], deadline: float
) -> tuple[dict[str, _Weighed], int, int]:
    """By key, what is refuted and what is not; how many neighbours were tried, and how many there are."""
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
    """The simplest question that refutes a value."""
    least = simplest(bank, wrong)
    operands = picked(bank.operands, least)
    return Witness(value, len(wrong), operands, int(bank.answers[least]), int(answers[least]))


def simplest(bank: Bank, rows: np.ndarray[Any, Any]) -> int:
    """The row of the simplest question of the first of some rows."""
    some = rows[:200]
    return int(some[np.argmin(costs(bank.takes, picked(bank.operands, some)))])


def _simplified(
    candidate: Candidate,
    bank: Bank,
    shown: dict[str, list[tuple[Witness, Candidate]]],
    deadline: float,
    ask: Ask,
) -> tuple[Operands, Bits] | None:
    """Replaces the first questions shown by simpler ones, if the box answers these as the candidate does;
    returns all that were sent, with the answers."""
    first = {key: found[0] for key, found in shown.items() if found}
    triples = [(witness.operands, other, candidate) for witness, other in first.values()]
    simple, queried = _simpler(bank, triples, deadline, ask)
    for place, (operands, box, says) in simple.items():
        key = list(first)[place]
        witness, other = first[key]
        shown[key][0] = replace(witness, operands=operands, box=box, other=says), other
    return queried


def _simpler(
    bank: Bank, shown: Sequence[tuple[Operands, Candidate, Candidate]], deadline: float, ask: Ask
) -> tuple[dict[int, tuple[Operands, int, int]], tuple[Operands, Bits] | None]:
    """Simpler operands on which two programs still differ and the box answers as the second: by place, with
    the answers of box and first program; and all questions that were sent for that, with the answers."""
    # 1. By the two programs alone: no query is needed for that.
    least: list[Operands] = []
    passes = 12  # of the minimiser over one question
    for operands, one, other in shown:
        if time.monotonic() > deadline:
            break

        def differ(batch: Operands, one: Candidate = one, other: Candidate = other) -> Any:
            return one.dot(**batch) != other.dot(**batch)

        least.append(minimise(bank.takes, operands, differ, rounds=passes))
    if not least:
        return {}, None
    # 2. One batch to the box: a question counts only with the box's own answer.
    try:
        sent, answers = ask({name: np.stack([one[name] for one in least]) for name in bank.operands})
    except BudgetEnded:
        return {}, None
    found: dict[int, tuple[Operands, int, int]] = {}
    for place, (operands, (_, one, other)) in enumerate(zip(least, shown, strict=False)):
        if int(other.dot(**operands)) == answers[place] and np.array_equal(sent["c"][place], operands["c"]):
            found[place] = operands, int(answers[place]), int(one.dot(**operands))
    return found, (sent, answers)


class NamedChange(str):
    """A change in words, "key = value", with the candidates before and after it; both are None if the
    dissection was read from a file, which records only the words."""

    before: Candidate | None
    after: Candidate | None

    def __new__(
        cls, text: str, before: Candidate | None = None, after: Candidate | None = None
    ) -> NamedChange:
        """The words are the string itself: they are compared and stored as such."""
        found = super().__new__(cls, text)
        found.before, found.after = before, after
        return found


@dataclass(frozen=True)
class Forced:
    """The counterexamples that forced one change.

    Attributes:
        rule: the change, as in `Found.rules`; `place`: its place among the changes.
        old: the value that was wrong; empty for a step that was not there.
        questions: how many recorded questions the candidate before gets wrong and the one after right.
        operands: the simplest of them, with the answer `box` and the answer `before` of the candidate
            before.
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
        named = {"rule": self.rule, "instead_of": self.old, "questions": self.questions}
        return {**named, "operands": listed(self.operands), "box": self.box, "before": self.before}


def forced(changes: Sequence[str], bank: Bank) -> list[Forced]:
    """The counterexamples of each change that has any among the recorded questions, in order."""
    found = []
    for place, one in enumerate(changes):
        if isinstance(one, NamedChange) and one.before is not None and one.after is not None:
            before = bank.answered(one.before.program).copy()
            hits = np.flatnonzero((before != bank.answers) & ~bank.wrong(one.after.program))
            if len(hits):
                least = simplest(bank, hits)
                old = settings(one.before.operations).get(one.partition(" = ")[0], "")
                operands = picked(bank.operands, least)
                answers = int(bank.answers[least]), int(before[least])
                found.append(Forced(str(one), place, old, len(hits), operands, *answers))
    return found


def shrunk(
    found: Sequence[Forced], changes: Sequence[str], bank: Bank, deadline: float, ask: Ask
) -> tuple[list[Forced], tuple[Operands, Bits] | None]:
    """The same with simpler questions, if the box answers these as the candidate after the change does; and
    all questions that were sent for that, with the answers.

    Args:
        deadline: on time.monotonic; no question is simplified after it.
    """
    shown = []
    for each in found:
        change = changes[each.place]
        assert isinstance(change, NamedChange) and change.before is not None and change.after is not None
        shown.append((each.operands, change.before, change.after))
    simpler, queried = _simpler(bank, shown, deadline, ask)
    simple = list(found)
    for place, (operands, box, before) in simpler.items():
        simple[place] = replace(found[place], operands=operands, box=box, before=before)
    return simple, queried
