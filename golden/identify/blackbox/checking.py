"""From the first candidate to one that no question refutes.

The skeletons of the order that masks showed are fitted to the first questions, the nearest first. The best
one is checked in rounds of new questions, then with questions that its rivals answer differently; then the
evidence for each key is weighed. A counterexample sends it back to be fitted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from golden.identify.blackbox import discriminate, fitting, starting_points
from golden.identify.blackbox.asking import ORDINARY, Asking
from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.candidates import candidate as made_candidate
from golden.identify.blackbox.evidence import Evidence, Forced, forced, shrunk, weigh
from golden.identify.blackbox.moves import Move
from golden.identify.blackbox.neighbourhood import in_one_operation, nan_words
from golden.identify.blackbox.one_term import subtracted_products, twins, with_register_limits
from golden.identify.blackbox.parts import Pass
from golden.identify.blackbox.policy import QUESTIONS, STARTS, TIMES
from golden.identify.blackbox.product_groups import Groups
from golden.identify.blackbox.templates import grouped, of_both_signs, skeletons
from golden.identify.sample import evenly, picked

_SOLVED = "found by a solver"
_SHOWN = "shown in the report"


@dataclass(frozen=True)
class _Rivals:
    """Candidates in `left`, with the key that each changes, that answer the first `bank_size` questions of
    the bank as the candidate with key `of` does."""

    of: object
    left: list[tuple[str, Candidate]]
    bank_size: int


@dataclass(eq=False)
class Checking(Asking):
    """A search that makes a candidate, checks it, and fits it again after counterexamples."""

    mode_before: Candidate | None = None
    near: Candidate | None = None
    solver: float = 0.0

    orders: list[fitting.Fit] = field(init=False, default_factory=list)
    groups: Groups = field(init=False, default_factory=Groups)
    passes: list[tuple[Pass, ...]] = field(init=False, default_factory=list)
    weighed: tuple[object, Evidence] | None = field(init=False, default=None)
    forced: list[Forced] = field(init=False, default_factory=list)
    clean: dict[object, int] = field(init=False, default_factory=dict)
    tried: set[str] = field(init=False, default_factory=set)
    rivals: _Rivals | None = field(init=False, default=None)

    # The first candidate ------------------------------------------------------------------------------------

    def _start_near(self) -> None:
        """Starts with the nearest of the intended unit and the candidate of another mode, after single
        changes."""
        starts = [one for one in (self.near, self.mode_before) if one is not None]
        made = [made_candidate(self.takes, one.operations, one.order) for one in starts]
        fits = [fitting.Fit(one, fitting.wrong_of(self.bank, one)) for one in made if one is not None]
        if fits:
            first = min(fits, key=lambda one: one.wrong)
            self.state.fit = fitting.fit(self.bank, first, time.monotonic() + self.dense.left / TIMES.sharers)

    def _first_candidate(self) -> None:
        kept = self.state.fit
        ordinary = self.bank.of_kinds(frozenset(ORDINARY)) if self.takes.formats["d"].is_float else self.bank
        if kept is not None and not kept.wrong:
            if self.near is not None:  # the intended unit has to compete with other orders, as any start
                self._rank(ordinary, self._skeletons())
            return
        self._report_progress("fitting orders of the sum", 0, 1)
        # 1. Groups that questions showed: fewer orders, so they are tried before all others.
        of_groups = starting_points.counted(self.bank, grouped(self.takes, self.groups), self.passes)
        if of_groups:
            kept = self._fitted_start(ordinary, of_groups, kept, quick=False)
            if kept is not None and not kept.wrong:
                return
        # 2. All orders of the tree. `orders` keeps the ranking for restarts.
        made = self._skeletons()
        self._fitted_start(ordinary, made, kept)
        # 3. The keys found so far in other orders; then starts from the questions with few terms, which no
        # wrong order affects.
        now = self._reordered(made)
        if now is not None and now.wrong:  # the order is wrong, or something apart from the order
            nearest = self._nearer(ordinary, made)
            self._refit([now, *nearest[: STARTS.halved_fits]], quick=True)
        now = self.state.fit
        if now is not None and now.wrong:
            self._also([fitting.Fit(two, now.wrong, now.changes) for two in twins(now.candidate)])
        # 4. More time for the best starts. After this stage `fit` is the candidate with the fewest wrong
        # answers.
        if self.state.fit is not None and self.state.fit.wrong:
            self._refit(self.ranked[: STARTS.fits // 2])

    def _rank(self, ordinary: Bank, made: list[Candidate]) -> None:
        """Ranks skeletons by their wrong answers: the starts, now and later."""
        self.ranked = self.orders = fitting.rank(ordinary, self.bank, made, self.deadline)

    def _skeletons(self) -> list[Candidate]:
        """The skeletons of the order that masks showed."""
        signed = of_both_signs(self.takes, subtracted_products(self.bank))
        shapes = [*signed, *skeletons(self.takes, self.state.tree)]
        if (register := fitting.register_before_c(self.bank)) is not None:
            shapes += skeletons(self.takes, self.state.tree, register)
        return with_register_limits(self.bank, starting_points.counted(self.bank, shapes, self.passes))

    def _fitted_start(
        self, ordinary: Bank, made: list[Candidate], kept: fitting.Fit | None, quick: bool = True
    ) -> fitting.Fit | None:
        """The result of the nearest skeletons, or of a candidate that was kept."""
        self._rank(ordinary, made)
        first = fitting.of_both_kinds(self.ranked, STARTS.first)
        self._refit([kept, *first] if kept is not None else first, quick)
        now = self.state.fit
        if now is not None and now.wrong:
            self._ask_wrong_again(now.candidate)
        if now is not None and 0 < now.wrong <= STARTS.handful:
            self._query_near(now)
        return self.state.fit

    def _query_near(self, near: fitting.Fit) -> None:
        """One round aimed at a candidate that is wrong on a handful of questions. They show too little of
        what it lacks, and any other attempt costs more than queries aimed at it."""
        share = min(QUESTIONS.growth[0], self._share_left() // 3)
        if share >= self._least and self.dense.left > self.reserve:
            self._round(share)
            self.state.differing = {}
            self._refit([near], quick=True)

    def _reordered(self, made: list[Candidate]) -> fitting.Fit | None:
        """The result of the first starts, or another order with the same ends if that explains more."""
        now = self.state.fit
        if now is not None and now.wrong:
            until = time.monotonic() + min(TIMES.orders, self.dense.left / 8)
            self._also(starting_points.reordered(self.bank, now, made, until)[: STARTS.first])
        return self.state.fit

    def _also(self, starts: list[fitting.Fit]) -> None:
        """Fits more starts, each for a short time, and ranks them with the earlier ones."""
        now, before = self.state.fit, self.ranked
        if starts and now is not None:
            self._refit([*starts, now], quick=True)
            every = {one.candidate.operations: one for one in (*before, *self.ranked)}
            self.ranked = sorted(every.values(), key=lambda one: one.wrong)

    def _nearer(self, ordinary: Bank, made: list[Candidate]) -> list[fitting.Fit]:
        """More starts than widths alone give, ranked after a few changes: skeletons with the ends that one
        product and c show, and those already ranked."""
        until, now = time.monotonic() + self.dense.left / TIMES.sharers, self.state.fit
        if now is not None and not fitting.wrong_of(ordinary, now.candidate):
            ordinary = self.bank  # the error lies elsewhere: ordinary questions no longer separate orders
        more = starting_points.starts(self.bank, ordinary, made, until)
        ranked = fitting.rank_again(ordinary, more, fitting.various(self.orders, STARTS.halved))
        hints = replace(fitting.hints(self.bank), wide=False)
        return fitting.halved(ordinary, fitting.various(ranked, STARTS.halved), hints, until)

    def _refit(self, starts: list[fitting.Fit], quick: bool = False) -> None:
        """Fits candidates until one explains the bank; without one keeps the nearest, and ranks the others
        behind it. `quick`: each start gets a short time, and the best continue; one that is near continues at
        once."""
        best: fitting.Fit | None = None
        fits: list[fitting.Fit] = []
        # Fits leave the reserve: without a round of new questions a candidate is worth nothing.
        end = time.monotonic() + TIMES.fits * (self.dense.left - self.reserve)
        for turn, start in enumerate(starts):
            # The first start is counted even if no time is left: some candidate is better than none.
            if time.monotonic() > end and (fits or self.state.fit is not None):
                break
            self._report_progress(f"fitting: {start.candidate.order}", turn, len(starts))
            # The bank may have grown since the start was counted.
            now = fitting.Fit(start.candidate, fitting.wrong_of(self.bank, start.candidate), start.changes)
            # The time left is shared: no start takes it all, and the best ones continue later.
            here = time.monotonic()
            until = here + (end - here) / (
                min(len(starts) - turn, TIMES.sharers) if not quick else TIMES.quick
            )
            done = fitting.fit(self.bank, now, until)
            if quick and 0 < done.wrong < len(self.bank) // STARTS.near:  # costs nothing if no change helped
                until = time.monotonic() + (end - time.monotonic()) / TIMES.sharers
                done = fitting.fit(self.bank, done, until)
            fits.append(done)
            if best is None or done.wrong < best.wrong:
                best = done
            if best.wrong == 0:
                break
        # Afterwards the candidate has the fewest wrong answers of all these starts.
        self.state.fit = best or self.state.fit
        if len(fits) > 1:
            self.ranked = sorted(fits, key=lambda one: one.wrong)

    # Its checks ---------------------------------------------------------------------------------------------

    def _check(self) -> bool:
        """Checks the candidate on operands of every kind until the limits end. After a counterexample it is
        fitted again, from more orders each time that did not help. Returns whether the last candidate was
        checked."""
        tries = 0  # fits of this candidate that left wrong answers
        explained = self.state.fit  # without known errors: partial explanations may mislead
        while self.state.fit is not None:
            fit, candidate = self.state.fit, self.state.fit.candidate
            left = self._share_left()  # a round that finds a counterexample leaves budget for the next ones
            share = min(
                QUESTIONS.growth[min(self.turn, len(QUESTIONS.growth) - 1)],
                max(left // 3, min(left, QUESTIONS.last)),
            )
            if share < self._least or self.dense.left < self.reserve:
                return bool(self.state.differing)
            # The candidate is wrong on the bank: change it. After this branch its checks count from zero.
            if fit.wrong:
                self._ask_wrong_again(candidate)
                # The keys of this order, then those of other orders, as long as there are new ones.
                tries += 1
                if tries == 2 and fit.wrong <= STARTS.handful:  # few wrong answers show little: collect more
                    self._round(share)
                    fit = replace(fit, wrong=fitting.wrong_of(self.bank, candidate))
                others = [] if tries == 1 else self._others((explained or fit) if tries == 2 else fit)
                if tries > 2 and not others:
                    return True
                ranked = self.ranked[1 : STARTS.fits // 2] if tries <= 2 else []
                self._refit([*others, fit, *ranked])
                self.state.differing = {}
                continue
            # The candidate explains the whole bank: search a counterexample in new questions, then in
            # recorded ones.
            tries, explained = 0, fit
            self.tried.clear()
            wrong = self._round(share) or self._recall(candidate)
            # After some clean rounds, use questions that the remaining rivals answer differently.
            turns = self.rival_rounds.get(candidate.key, 0)
            self.clean[candidate.key] = 0 if wrong else self.clean.get(candidate.key, 0) + 1
            ready = self.clean[candidate.key] >= (QUESTIONS.clean if share > QUESTIONS.last else 1)
            if ready and turns < len(QUESTIONS.separating):
                self.rival_rounds[candidate.key] = turns + 1
                wrong = self._separate_rivals(fit, QUESTIONS.separating[turns])
            if wrong:  # the checks were of a candidate that has to change; the bank is counted again
                self.state.fit = replace(fit, wrong=fitting.wrong_of(self.bank, candidate))
                self.state.differing = {}
        return False

    def _others(self, fit: fitting.Fit) -> list[fitting.Fit]:
        """A few other orders of the sum that were not fitted to these counterexamples. If no key explains the
        counterexamples, they may show the order."""
        until = time.monotonic() + min(TIMES.orders, self.dense.left / 8)
        starts = discriminate.other_starts(fit.candidate, self.orders, self.bank, until)
        found = [one for one in starts if one.candidate.order not in self.tried][: STARTS.others]
        self.tried.update(one.candidate.order for one in found)
        return found

    def _separate_rivals(self, fit: fitting.Fit, each: int) -> bool:
        """Queries that the candidate and its rivals, which agree on the whole bank, answer differently;
        whether the candidate was wrong on any."""
        self._report_progress("separating rivals", self.turn, 0)
        candidate, rivals = fit.candidate, self._rivals(fit)
        rng, end = partial(self._rng, 1000 + self.turn), time.monotonic() + self._separation_seconds
        whole = discriminate.questions(candidate, rivals, each, rng, end)
        if whole is None:
            return False
        some = evenly(np.arange(len(whole["a"])), self._left)
        whole, answers = self._final_queries(picked(whole, some))
        self.bank.add("between rivals", whole, answers)
        return bool((candidate.dot(**whole) != answers).any())

    def _rivals(self, fit: fitting.Fit) -> list[tuple[str, Candidate]]:
        """Neighbours that answer the whole bank as a candidate does, with the key that each changes."""
        candidate, known = fit.candidate, self.rivals
        if known is not None and known.of == candidate.key:  # the bank may have grown since
            new = self.bank.part(np.arange(known.bank_size, len(self.bank)))
            left = [(key, one) for key, one in known.left if not new.wrong(one.program).any()]
        else:
            end = time.monotonic() + self._separation_seconds
            changes = discriminate.neighbours(candidate, self._words(), causes=True)
            left = discriminate.equivalent_neighbours(candidate, self.bank, changes, end)
            # What differs in one operation alone shows on few questions.
            alone = in_one_operation(candidate)
            left += discriminate.equivalent_neighbours(candidate, self.bank, alone, end)
            left = discriminate.distinguishable_rivals(candidate, left)
        self.rivals = _Rivals(candidate.key, left, len(self.bank))
        return left

    @property
    def _separation_seconds(self) -> float:
        return min(TIMES.separating, self.dense.left / 4)

    def _neighbours(self, candidate: Candidate) -> list[Move]:
        return discriminate.neighbours(candidate, self._words())

    def _words(self) -> tuple[int, ...]:
        """The NaNs that the box has answered."""
        d = self.takes.formats["d"]
        return nan_words(d, self.bank.answers.tolist()) if d.is_float else ()

    def _evidence(self, candidate: Candidate) -> Evidence:
        """What refutes the neighbours of a candidate that explains the bank, and what remains undecided."""
        left = max(self.dense.left, 0)
        limit = time.monotonic() + min(TIMES.neighbours, left / 2)
        end, ask = limit + min(TIMES.simplifying, left / 4), self._final_queries
        return weigh(candidate, self.bank, self._neighbours(candidate), limit, ask, end)

    def _weigh(self, fit: fitting.Fit) -> Evidence:
        """The evidence, once for a candidate and a bank. Its queries join the bank as any others: a wrong
        answer is a counterexample."""
        candidate = fit.candidate
        if self.weighed is None or self.weighed[0] != (candidate.key, len(self.bank)):
            # First the recorded questions, which cost nothing; then queries for what they leave open.
            self._rule_out(fit)
            evidence = self._evidence(candidate)
            evidence = self._solved(candidate, evidence)
            until = time.monotonic() + min(TIMES.forced, max(self.dense.left, 0) / 8)
            first = forced(fit.changes, self.bank)
            self.forced, queried = shrunk(first, fit.changes, self.bank, until, self._final_queries)
            for one in filter(None, (evidence.queried, queried)):
                self.bank.add(_SHOWN, *one)
            self.weighed = (candidate.key, len(self.bank)), evidence
        return self.weighed[1]

    def _solved(self, candidate: Candidate, evidence: Evidence) -> Evidence:
        """The evidence after a solver compared the values of keys that no question separates: values that it
        proves to be the same are not undecided, and its operands for the others are sent to the box. Keys
        that every unit has come first. It has its seconds once for a dissection."""
        start, left = time.monotonic(), min(self.solver, max(self.dense.left, 0) / 2)
        if left <= 0:
            return evidence
        keys = sorted(evidence.properties, key=lambda one: discriminate.is_extra(one.key))
        units = (unit for one in keys for _, unit in one.alike)
        found, equal = discriminate.by_solver(candidate, units, left)
        self.solver -= time.monotonic() - start
        if found is not None:
            some = evenly(np.arange(len(found["a"])), self._left)
            queried = self._final_queries(picked(found, some))
            self.bank.add(_SOLVED, *queried)
            evidence = self._evidence(candidate)
        return replace(evidence, properties=tuple(one.without(equal) for one in evidence.properties))

    def _rule_out(self, fit: fitting.Fit) -> None:
        """Adds questions of the rounds to the bank that refute rivals which the bank leaves open. Keys that
        every unit has come first, because the time may end."""
        rivals = sorted(self._rivals(fit), key=lambda rival: discriminate.is_extra(rival[0]))
        until = time.monotonic() + min(TIMES.ruling_out, max(self.dense.left, 0) / 4)
        for _, one in rivals:
            if time.monotonic() > until:
                break
            if self.bank.explained(one.program) and not self.checked.explained(one.program):
                self.bank.take(self.checked.some_wrong(one.program, 1))

    def _shown_wrong(self) -> bool:
        """Whether a query for the evidence refutes a candidate that explained all answers before."""
        fit = self.state.fit
        if fit is None or fit.wrong or not self.state.differing or self.dense.left < self.reserve:
            return False
        if not self._recall(fit.candidate):
            self._weigh(fit)
        wrong = fitting.wrong_of(self.bank, fit.candidate)
        if wrong:
            self.state.fit, self.state.differing = replace(fit, wrong=wrong), {}
        return bool(wrong)
