"""Fitting: the candidate that answers a bank of questions as the box did, by changes that explain more.

Each pass tries every neighbour of the best candidate on the questions that it gets wrong and on some that it
gets right, takes the best change, and with it all others that still help. Where none helps, passes of more
effort are tried: structure, replaced changes, restarts, and pairs of changes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.evidence import Change
from golden.identify.blackbox.hints import hints
from golden.identify.blackbox.mutations import (
    Hints,
    Mutation,
    in_one_operation,
    mutations,
    pairs_of_keys,
    rare,
    resets,
)
from golden.identify.blackbox.policy import POLICY
from golden.identify.blackbox.questions import KINDS
from golden.identify.search import Pass, Search
from golden.number.frozen import replace

_SPECIAL = frozenset(("special_values", "special_each", "special_pairs", "corner_pairs"))
_CAUSES = ": nans"
_Scored = tuple[int, int, int, Mutation, Candidate]
"""Wrong on the sample, rank and place of a move; the move, and what it makes."""


@dataclass
class Fit:
    """A candidate and how many questions of the bank it gets wrong."""

    candidate: Candidate
    wrong: int
    changes: list[str] = field(default_factory=list)
    """The changes that were taken, in order (`Change`, but for those of a file)."""

    @property
    def steps(self) -> int:
        """How many steps its program has, in all operations."""
        return sum(len(operation.steps) for operation in self.candidate.operations)


def wrong_of(bank: Bank, one: Candidate) -> int:
    """How many questions a candidate gets wrong."""
    return int(bank.wrong(one.program).sum())


@dataclass(frozen=True)
class Sample:
    """Some of the questions that a candidate gets wrong, some of those that it gets right, and all others."""

    bank: Bank
    missed: Bank
    right: Bank
    others: tuple[npt.NDArray[np.int64], ...]

    def wrong(self, one: Candidate, below: int | None = None) -> int:
        """How many a candidate gets wrong; where those that were missed show that it is not below a number,
        the others are not asked: most changes explain none of what is wrong."""
        count = wrong_of(self.missed, one)
        return count if below is not None and count >= below else count + wrong_of(self.right, one)

    def of_all(self, one: Candidate, below: int) -> int:
        """How many of the whole bank a candidate gets wrong, or at least `below`, part by part."""
        count = 0
        for part in (self.missed, self.right, *self._rest):
            count += wrong_of(part, one)
            if count >= below:
                break
        return count

    @cached_property
    def glance(self) -> Bank:
        """A few of those that were missed: most changes explain none of them."""
        return self.missed.part(np.arange(min(len(self.missed), POLICY.glance)))

    @cached_property
    def _rest(self) -> list[Bank]:
        return [self.bank.part(index) for index in self.others]

    def alike(self, one: Candidate, other: Candidate) -> bool:
        """Whether two candidates answer all of the sample the same."""
        return all(part.alike(one.program, other.program) for part in (self.missed, self.right))


def sample_of(
    bank: Bank, one: Candidate, seed: int, most: int = POLICY.sample, first: Set[str] = frozenset()
) -> Sample:
    """A sample for a candidate, `most` questions of each; those of the kinds `first` before others."""
    rng = np.random.default_rng(seed)
    wrong, early = bank.wrong(one.program), bank.is_of(first)
    mixed = [
        np.concatenate([rng.permutation(np.flatnonzero(mask & some)) for some in (early, ~early)])
        for mask in (wrong, ~wrong)
    ]
    missed, right = (bank.part(index[:most]) for index in mixed)
    others = [index[most:] for index in mixed]
    parts = [others[0], *np.split(others[1], range(POLICY.part, len(others[1]), POLICY.part))]
    return Sample(bank, missed, right, tuple(part for part in parts if len(part)))


class Effort(IntEnum):
    """How hard a fit tries: changes of keys and of common steps; those after what questions with few terms
    show, where much is wrong; any single change; the same from the beginning, with other starts; also one in
    the place of another; from what is left when one or two keys are given up again; also two at a time."""

    SINGLE = 0
    FEW = 1
    ANY = 2
    ANEW = 3
    INSTEAD = 4
    AGAIN = 5
    PAIRS = 6


def fit(bank: Bank, start: Fit, deadline: float, effort: Effort = Effort.SINGLE) -> Fit:
    """Changes a candidate until it explains the whole bank, or nothing helps any more."""
    if effort is Effort.FEW and start.wrong > len(bank) // POLICY.far_from_few_terms:
        start = _on_few_terms(bank, start, deadline)
    return Fitting(bank).to(start, deadline, effort)


def fit_near(bank: Bank, start: Fit, deadline: float) -> Fit:
    """The same by single changes of keys alone, as long as each explains half of what is wrong: a program
    that can explain all that another one does is few changes away, and what creeps nearer seldom gets there.
    """
    seen, best = hints(bank), start
    while best.wrong and time.monotonic() < deadline and best.candidate.operations not in bank.spent:
        sample = sample_of(bank, best.candidate, 1)
        better = one_change(sample, best, mutations(best.candidate, seen), deadline)
        if better is None:
            break
        before, best = best.wrong, _more_causes(bank, better, seen, deadline)
        if 2 * best.wrong > before:
            break
    return best


def explaining(bank: Bank, start: Fit, deadline: float) -> Iterator[tuple[str, Fit]]:
    """All single changes of keys that explain the whole bank, by the key; the start itself where it does."""
    if not start.wrong:
        yield "", start
        return
    sample = sample_of(bank, start.candidate, 1)
    for move in mutations(start.candidate, hints(bank)):
        if time.monotonic() > deadline:
            break
        new = move.apply(start.candidate)
        if new is not None and not wrong_of(sample.glance, new) and not sample.of_all(new, 1):
            yield move.key, Fit(new, 0, [*start.changes, Change(move.text, start.candidate, new)])


def _on_few_terms(bank: Bank, start: Fit, deadline: float) -> Fit:
    """A candidate that is far off, fitted to the questions with few terms alone: what they show depends on no
    order of the sum, and is not covered up by a wrong one."""
    few = bank.of_kinds(KINDS)
    own = Fit(start.candidate, wrong_of(few, start.candidate), start.changes)
    found = Fitting(few).to(own, deadline, Effort.ANY)
    wrong = wrong_of(bank, found.candidate)
    return Fit(found.candidate, wrong, found.changes) if wrong < start.wrong else start


def _more_causes(bank: Bank, best: Fit, hints: Hints, deadline: float) -> Fit:
    """After a change of the causes of NaNs, more of them: a table is found entry by entry, and nothing else
    has to be tried in between."""
    if not best.changes[-1].partition(" = ")[0].endswith(_CAUSES):
        return best
    for turn in range(POLICY.causes):
        sample = sample_of(bank, best.candidate, turn, first=_SPECIAL | KINDS)
        tried = (m for m in mutations(best.candidate, hints) if m.key.endswith(_CAUSES))
        better = one_change(sample, best, tried, deadline) if best.wrong else None
        if better is None:
            break
        best = better
    return best


def _scored(
    sample: Sample, start: Candidate, than: Candidate, tried: Iterable[Mutation], deadline: float
) -> list[_Scored]:
    """The mutations that help on a sample: those that explain something of a small part of it, where there
    are any; else of all of it."""
    base, glance = sample.wrong(than), wrong_of(sample.glance, than)
    scored: list[_Scored] = []
    later: list[tuple[int, Mutation, Candidate]] = []
    for index, move in enumerate(tried):
        if time.monotonic() > deadline:
            break
        new = move.apply(start)
        if new is None:
            continue
        if wrong_of(sample.glance, new) >= glance:
            later.append((index, move, new))
        elif (wrong := sample.wrong(new, base)) < base:
            scored.append((wrong, move.rank, index, move, new))
    for index, move, new in () if scored else later:
        if time.monotonic() > deadline:
            break
        if (wrong := sample.wrong(new, base)) < base:
            scored.append((wrong, move.rank, index, move, new))
    return scored


def one_change(
    sample: Sample, best: Fit, tried: Iterable[Mutation], deadline: float, than: Fit | None = None
) -> Fit | None:
    """The best single change, with all others that still help; None where none helps.

    `than`: what it has to be better than, where that is not what is changed.
    """
    # Every mutation on the sample: what does not help there is not held against the whole bank.
    scored = _scored(sample, best.candidate, (than or best).candidate, tried, deadline)
    scored.sort(key=lambda one: one[:3])
    alike = sum(one[0] == scored[0][0] for one in scored)
    found: Fit | None = None
    # The best of them on the whole bank: what is found explains more of it than the candidate did.
    for _, _, _, move, new in scored[: max(POLICY.confirmed, min(alike, POLICY.confirmed_alike))]:
        if time.monotonic() > deadline:
            break
        least = (best if found is None else found).wrong
        if (wrong := sample.of_all(new, least)) < least:
            found = Fit(new, wrong, [*best.changes, Change(move.text, best.candidate, new)])
            if not wrong:
                break
    if found is None:
        return None
    # All others that still help with it: none of them would help alone any more.
    return _beside(sample, found, [move for _, _, _, move, _ in scored], deadline)


def _beside(sample: Sample, found: Fit, more: Sequence[Mutation], deadline: float) -> Fit:
    """What was found with those of more changes that still help, the best first: one that explains a part of
    what another one explains whole would stand in its way. Of each key a few: any number of its values can be
    about as good."""
    taken = {found.changes[-1].partition(" = ")[0]}
    seen: Counter[str] = Counter()
    few: list[Mutation] = []
    for move in more:
        seen[move.key] += 1
        few += [move] if seen[move.key] <= POLICY.helping_of_key and move.key not in taken else []
    more = few[: POLICY.helping]
    while found.wrong and time.monotonic() < deadline:
        made = [(move, move.apply(found.candidate)) for move in more if move.key not in taken]
        counted = [(sample.of_all(both, found.wrong), move, both) for move, both in made if both is not None]
        helping = [one for one in counted if one[0] < found.wrong]
        if not helping:
            break
        wrong, move, both = min(helping, key=lambda one: one[0])
        found = Fit(both, wrong, [*found.changes, Change(move.text, found.candidate, both)])
        taken.add(move.key)
        more = [move for _, move, _ in helping]
    return found


class Fitting:
    """The passes of one fit to a bank of questions."""

    def __init__(self, bank: Bank) -> None:
        self.bank, self.hints = bank, hints(bank)
        self._sample: tuple[Candidate, Sample] | None = None
        self.search: Search[Fit] = Search(
            [
                Pass("change a key", self._keys, "no single change of a key explains more", Effort.SINGLE),
                Pass("change two keys at once", self._joint, "nor do two keys of a step", Effort.SINGLE),
                Pass("change the steps", self._steps, "nor does any step more, less or other", Effort.ANY),
                Pass("change one operation", self._alone, "nor does a change of one operation", Effort.ANY),
                Pass(
                    "replace a change", self._instead, "nor another key for one that is set", Effort.INSTEAD
                ),
                Pass("restart without keys", self._again, "nor a fit without one or two keys", Effort.AGAIN),
                Pass(
                    "change two things", self._pairs, "nor two changes of which neither helps", Effort.PAIRS
                ),
            ]
        )
        self.search.statistics = bank.statistics

    def to(self, start: Fit, deadline: float, effort: Effort) -> Fit:
        """What passes up to an effort lead to. What did not help is not tried on the same bank again:
        candidates come back, from other starts and with more effort."""
        return self.search.run(
            start,
            lambda fit: fit.wrong,
            deadline,
            effort=effort,
            key=lambda fit: fit.candidate.operations,
            spent=self.bank.spent,
        )

    def _of(self, best: Fit) -> Sample:
        if self._sample is None or self._sample[0] is not best.candidate:
            self._sample = best.candidate, sample_of(self.bank, best.candidate, 1)
        return self._sample[1]

    def _one_change(self, best: Fit, tried: Iterable[Mutation], deadline: float) -> Fit | None:
        better = one_change(self._of(best), best, tried, deadline)
        return None if better is None else _more_causes(self.bank, better, self.hints, deadline)

    def _keys(self, best: Fit, deadline: float) -> Fit | None:
        return self._one_change(best, mutations(best.candidate, self.hints), deadline)

    def _joint(self, best: Fit, deadline: float) -> Fit | None:
        return self._one_change(best, pairs_of_keys(best.candidate), deadline)

    def _steps(self, best: Fit, deadline: float) -> Fit | None:
        return self._one_change(best, rare(best.candidate), deadline)

    def _alone(self, best: Fit, deadline: float) -> Fit | None:
        return self._one_change(best, in_one_operation(best.candidate, self.hints), deadline)

    def _instead(self, best: Fit, deadline: float) -> Fit | None:
        """Another change in the place of one that was taken before: the first that helps."""
        for reset in resets(best.candidate):
            start = reset.apply(best.candidate)
            if start is None or time.monotonic() > deadline:
                continue
            changes = [*best.changes, Change(reset.text, best.candidate, start)]
            tried = chain(mutations(start, self.hints), pairs_of_keys(start))
            better = one_change(self._of(best), Fit(start, best.wrong, changes), tried, deadline, best)
            if better is not None:
                return better
        return None

    def _again(self, best: Fit, deadline: float) -> Fit | None:
        """What is found from the candidate without one or two of its keys: the first that is better. Changes
        that explained a part together can stand in the way of those that explain all."""
        back = list(resets(best.candidate))
        rng = np.random.default_rng(len(back))
        pairs = [
            tuple(rng.choice(len(back), 2, replace=False))
            for _ in range(POLICY.restarts if len(back) > 1 else 0)
        ]
        for given_up in (*((index,) for index in range(len(back))), *pairs):
            start: Candidate | None = best.candidate
            for index in given_up:
                start = None if start is None else back[index].apply(start)
            if start is None or time.monotonic() > deadline:
                continue
            resets_made = (Change(back[index].text, best.candidate, start) for index in given_up)
            changes = [*best.changes, *resets_made]
            found = self.to(Fit(start, wrong_of(self.bank, start), changes), deadline, Effort.SINGLE)
            if found.wrong < best.wrong:
                return found
        return None

    def _pairs(self, best: Fit, deadline: float) -> Fit | None:
        """Two changes together, where one alone does not help: the first among those that harm least."""
        firsts: list[tuple[int, int, Mutation, Candidate]] = []
        near = replace(self.hints, wide=False)
        for index, move in enumerate(mutations(best.candidate, Hints(self.hints.words))):
            if time.monotonic() > deadline:
                return None
            new = move.apply(best.candidate)
            if new is not None and not self._of(best).alike(new, best.candidate):
                firsts.append((self._of(best).wrong(new), index, move, new))
        firsts.sort(key=lambda one: one[:2])
        for _, _, move, new in firsts[: POLICY.pairs_first]:
            changes = [*best.changes, Change(move.text, best.candidate, new)]
            better = one_change(self._of(best), Fit(new, best.wrong, changes), mutations(new, near), deadline)
            if better is not None and better.wrong < best.wrong:
                return better
        return None
