"""A dissection: questions, a candidate, and questions again until none is answered otherwise.

First the box itself (does it answer the same question twice the same?), then masks for the order of the sum,
then operands of every kind. Templates of that order are fitted to all answers. The one that explains them is
asked about operands drawn for it; each counterexample is shrunk and joins the bank, and the candidate is
fitted again. What stands at the end was held against every answer.

Stages are passes of golden.identify.search; their numbers are those of `SearchPolicy`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import stimuli, yamlfile
from golden.catalog.relatives import relatives
from golden.catalog.unit_files import build_instruction
from golden.catalog.unit_text import unit_text
from golden.errors import OperandError, SpecError
from golden.identify.blackbox import discriminate, fitting, memory, ranking
from golden.identify.blackbox.box import (
    Bank,
    Box,
    BudgetEnded,
    as_taken,
    dense_view,
    keeping,
    selected,
)
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.candidates import candidate as made_candidate
from golden.identify.blackbox.evidence import Evidence, Forced, Property, forced, meetings, shrunk, weigh
from golden.identify.blackbox.hints import hints as hints_of
from golden.identify.blackbox.mutations import Mutation, nan_words
from golden.identify.blackbox.naming import nearest, with_names
from golden.identify.blackbox.policy import POLICY
from golden.identify.blackbox.questions import KIND as CODES
from golden.identify.blackbox.questions import SIGNS, Coverage, simple, zero_c
from golden.identify.blackbox.repeatability import Changed, Repeated, asked_again, otherwise_now
from golden.identify.blackbox.report import Example, Found, shortened
from golden.identify.blackbox.sum_order import KIND as MASKS
from golden.identify.blackbox.sum_order import find_order
from golden.identify.blackbox.templates import templates
from golden.identify.blackbox.unexplained import (
    Law,
    broken,
    by_magnitude,
    unexplained,
    without_invented_words,
)
from golden.identify.minimising import costs, minimise
from golden.identify.sample import evenly
from golden.identify.search import Pass, Search
from golden.instruction import Instruction
from golden.kernels.sum_tree import Node
from golden.number.formats import to_float
from golden.program.signature import Bits, Operands
from golden.unit import Unit, name_of, signature_of
from golden.vectors.vectorset import with_kept_loads

Progress = Callable[[str, int, int], None]
Numbers = npt.NDArray[np.int64]
_ORDINARY = (
    MASKS,
    *("narrow", "wide", "cancelling", "alignment_edge", "equal_exponents", "c_dominant", "half_ulp"),
    *("alignment_one_term", "tie", "deep_cancellation", discriminate.TIES),
)
"""Kinds that tell orders, widths and roundings apart, away from the ends of the formats."""
_SHOWN = "shown in the report"
_NO_WORDS = "the schema of units has no words for the candidate"


class _AnswersChanged(Exception):
    """A question had another answer: nothing that is made of answers holds."""


@dataclass
class _State:
    """What is known so far."""

    tree: Node | None = None
    fit: fitting.Fit | None = None
    differing: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of the checks that the present candidate went through, without those of the bank."""
    undecided: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Rivals:
    """What answers the first `asked` questions of the bank as a candidate does, `of` its key, and what it
    changes."""

    of: object
    left: list[tuple[str, Candidate]]
    asked: int


def _wrong(fit: fitting.Fit) -> int:
    return fit.wrong


class Dissection:
    """One dissection of a unit without modes."""

    def __init__(
        self,
        unit: Unit,
        seconds: float,
        asks: int,
        seed: int,
        progress: Progress | None,
        before: Candidate | None = None,
        near: Candidate | None = None,
    ) -> None:
        self.started = time.monotonic()
        self.deadline = self.started + seconds
        self.reserve = max(POLICY.reserve_seconds, min(seconds / 10, POLICY.evidence_seconds))
        self.codes = Coverage(signature_of(unit))
        self.box = Box(unit, asks, self.deadline, codes=self.codes)
        self.dense = replace(self.box, unit=dense_view(unit))
        self.own, self.takes = self.box.own, self.dense.takes
        self.bank, self.checked = Bank(self.takes), Bank(self.takes)
        self.seed, self.progress, self.state = seed, progress, _State()
        self.starts, self.near = [one for one in (near, before) if one is not None], near
        self.ranked: list[fitting.Fit] = []
        self.orders: list[fitting.Fit] = []
        self.turn, self.before, self.remembered = 0, 0, False
        self.repeated = Repeated(0, 0)
        self.changed: Changed | None = None
        self.confirmed, self.firsts = np.zeros(0, np.bool_), 0  # of the bank: what was asked again; and first
        self.kept_back, self.given = asks // POLICY.kept_back, asks
        self.weighed: tuple[object, Evidence] | None = None
        self.forced: list[Forced] = []
        self.laws: tuple[Law, ...] = ()
        self.told_apart: dict[object, int] = {}  # times that a candidate was told from its rivals
        self.clean: dict[object, int] = {}  # rounds in which nothing was wrong
        self.recalled: object = None
        self.pace = 1.0  # seconds for a question of the last round
        self.share = 0  # questions of each kind in the last round
        self.rivals: _Rivals | None = None
        self.other_orders: dict[str, list[Candidate]] = {}
        self.plainer: list[fitting.Fit] = []
        self.begin: Search[fitting.Fit] = self._passes(
            Pass("ask about a near start", self._ask_about, "more than a handful of questions are wrong"),
            Pass("change starts once", self._halved, "no order is near with one change"),
            Pass("fit few terms", partial(self._harder, fitting.Effort.FEW), "few terms say no more"),
            Pass("fit hard", partial(self._harder, fitting.Effort.ANY), "no single change explains more"),
        )
        self.check: Search[fitting.Fit] = self._passes(
            Pass("check", self._checked, "operands of every kind, drawn for it, are explained"),
            Pass("recall", self._recalled, "all questions of earlier rounds are explained"),
            Pass("discriminate", self._discriminate, "no neighbour explains all answers and differs"),
        )

    def _passes(self, *passes: Pass[fitting.Fit]) -> Search[fitting.Fit]:
        search = Search(passes, lambda: self.box.asked)
        search.statistics = self.bank.statistics
        return search

    # Continued ----------------------------------------------------------------------------------------------

    def remember(self, path: str | Path) -> None:
        """Goes on with the dissection in a file.

        Raises:
            FileFormatError: it is of another box or version. OperandError: the box answers otherwise now.
        """
        kept = memory.load(path, name_of(self.box.unit), self.own, self.takes)
        rng = np.random.default_rng([self.seed, kept.turn])
        some = rng.permutation(len(kept.bank))[: POLICY.resumed_again]
        if len(some):
            part = kept.bank.part(some)
            try:
                asked, answers = self.dense.ask(part.operands)
                again = answers != part.answers
                wrong = int((again & (asked["c"] == part.operands["c"])).sum())
            except BudgetEnded:
                raise OperandError(f"{path}: the limits leave no time to ask its questions again") from None
            if wrong:
                said = f"{wrong} of {len(some)} of its questions, asked again, had another answer"
                raise OperandError(f"{path}: {said}: the box is not deterministic, or not the one of then")
        self.bank, self.state.tree, self.turn = kept.bank, kept.tree, kept.turn
        self.codes.add(kept.bank.operands)
        self.remembered, self.before = len(kept.bank) > 0, kept.asked
        candidate = kept.candidate()
        if candidate is not None:
            wrong = fitting.wrong_of(self.bank, candidate)
            self.state.fit = fitting.Fit(candidate, wrong, list(kept.changes))
            self.state.differing = {} if wrong else kept.differing

    def keep(self, path: str | Path) -> None:
        """Writes what is known to a file; nothing of a box that is not deterministic."""
        if self.changed is not None or not len(self.bank):
            return
        fit = self.state.fit
        text = None if fit is None else self._text(fit.candidate, "continued")[0]
        known = memory.Memory(self.bank, self.state.tree, text, asked=self._asked, turn=self.turn)
        if fit is not None and text is not None:
            known.order, known.changes = fit.candidate.order, fit.changes
            known.differing = self.state.differing
        memory.save(path, name_of(self.box.unit), self.own, known)

    # The whole ----------------------------------------------------------------------------------------------

    def run(self) -> Found:
        """All of it, or as much as the limits allow."""
        state = self.state
        try:
            # A sound box first: after this an answer is that of its operands.
            self._ask_twice()
            if not self.remembered:
                self._tell("finding the order of the sum", 0, 1)
                # The tree says which terms meet before which; it stays None where masks show none.
                state.tree = self._order()
                self._first_questions()
                self._begin_with(self.starts)
            # A candidate that explains the bank, or the nearest that all starts led to.
            self._first_candidate()
            self._ask_laws()
            # Counterexamples until none is found: then the candidate explains fresh operands, too.
            checked = self._check()
            # What the report shows was asked as well; a question kept back for that may refute it.
            while self._shown_wrong() or self.kept_back:
                self.kept_back = 0
                checked = self._check() or checked
            # The box still answers as it did in the beginning.
            self._ask_early_again()
        except BudgetEnded:
            checked = False
        except _AnswersChanged:
            checked = True
        if self.changed is None:
            checked = self._fit_to_the_last() and checked
        if not checked:
            late = self.dense.left < self.reserve or self.dense.asks < self.given
            what = "time" if late else "number of questions"
            state.undecided.append(f"the {what} that was given ended before the search did")
        return self._found()

    def _tell(self, what: str, done: int, of: int) -> None:
        if self.progress is not None:
            self.progress(what, done, of)

    def _rng(self, *numbers: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *numbers])

    def _ask_twice(self) -> None:
        """Whether the box answers the same question the same, whatever it was asked before and beside it."""
        try:
            self.repeated = found = asked_again(self.box, partial(self._rng, 0))
        except BudgetEnded:
            if not self.box.meter.each:  # no time was left for two answers: how slow it is, nobody knows
                raise
            raise self._too_slow() from None
        if found.changed is not None:
            asked = f"{found.differ:,} of {found.asked + found.tiles:,} dot products, asked again"
            self._is_otherwise(found.changed, f"{asked}, had another answer")
        self._plan()
        if self.dense.asks < POLICY.least_asks:
            raise self._too_slow()

    def _too_slow(self) -> OperandError:
        each = self.box.meter.each
        seconds = math.ceil(POLICY.least_asks * each / POLICY.answers_share_of_time) + 1
        said = f"takes {each:.3g} s for a dot product, and {POLICY.least_asks} have to be asked"
        return OperandError(f"{name_of(self.box.unit)} {said}: give it {seconds} s or more (--seconds)")

    def _plan(self) -> None:
        """Asks no more than the box answers in its share of the time that is left: a search that knows how
        few they are asks of everything some, instead of all of the first things."""
        each, so_far = self.box.meter.each, self.box.asked
        share = POLICY.answers_share_of_time * max(self.dense.left, 0)
        most = self.given if each * self.given < share else so_far + int(share / each)
        self.box.asks = self.dense.asks = min(self.given, most)
        self.kept_back = min(self.kept_back, self.dense.asks // POLICY.kept_back)

    def _is_otherwise(self, changed: Changed | None, again: str = "") -> None:
        """Ends the search where a question had another answer."""
        if changed is not None:
            self.changed = changed
            said = changed.text(self.box.takes.formats)
            self.state.undecided.append(f"{said}; {again}" if again else said)
            raise _AnswersChanged

    def _ask_wrong_again(self, candidate: Candidate) -> None:
        """Asks again what a candidate is wrong on, before it is changed for that, and some of the first
        questions: no program explains a box that answers otherwise by chance, or since a while."""
        known = len(self.confirmed)
        self.confirmed = np.pad(self.confirmed, (0, len(self.bank) - known))
        self.firsts = self.firsts or len(self.bank)
        left = np.flatnonzero(self.bank.wrong(candidate.program) & ~self.confirmed)
        if self.own.pattern is not None:  # what was asked with other metadata is another question
            left = left[left < self.firsts]
        again = np.union1d(evenly(left, POLICY.wrong_again), self._first_ones(POLICY.early_again))
        self.confirmed[again] = True
        self._ask_kept(again)

    def _ask_early_again(self) -> None:
        """In the end, some of the first questions once more: the box may have changed."""
        again = self._first_ones(min(POLICY.last_again, self._left))
        with suppress(BudgetEnded):
            self._ask_kept(again)
            self.repeated = self.repeated.and_later(len(again))

    def _first_ones(self, count: int) -> Numbers:
        return evenly(np.arange(self.firsts or len(self.bank)), count)

    def _ask_kept(self, again: Numbers) -> None:
        """Asks questions of the bank once more; early ones, too, where one has another answer."""
        if len(again) > self._left:
            raise BudgetEnded
        kept, early = self.bank.part(again), self.bank.part(self._first_ones(POLICY.all_early))
        then = early.operands, early.answers
        self._is_otherwise(otherwise_now(self.dense, kept.operands, kept.answers, then))

    def _order(self) -> Node | None:
        """The order of the sum, as masks show it; of few questions they take a part at most."""
        most = self._left // POLICY.masks_share if self._few else self._left
        try:
            return find_order(replace(self.dense, asks=self.dense.asked + most), self.bank)
        except BudgetEnded:
            self.state.undecided.append("too few questions were left to see the order of the sum with masks")
            return None

    # Starts -------------------------------------------------------------------------------------------------

    def _first_questions(self) -> None:
        questions = self.dense.asks // self.dense.each
        first = min(POLICY.first_of_kind, questions // POLICY.first_of_kind_share)
        each = max(1, min(POLICY.few_terms, questions // POLICY.few_terms_share))
        drawn = [
            (kind, stimuli.generate(self.takes, kind, first, self._rng(1, index)))
            for index, kind in enumerate(stimuli.KINDS)
        ]
        drawn += simple(self.takes, each, self._rng(1, len(stimuli.KINDS)))
        kinds = [kind for kind, operands in drawn for _ in operands["c"]]
        together = {name: np.concatenate([part[name] for _, part in drawn]) for name in drawn[0][1]}
        # At once: one call may be one run of a simulator.
        self.bank.add_each(kinds, *self.dense.ask(together))
        if not self.own.state:
            self._ask_zero_c()

    def _ask_zero_c(self) -> None:
        """Asks whether the sign of a c that is zero changes any number; what it does not change says nothing
        more than the questions before."""
        each = min(POLICY.zero_c, self.dense.asks // POLICY.zero_c_share)
        fmt, operands = self.takes.formats["d"], zero_c(self.takes, each, self._rng(1, POLICY.zero_c))
        if operands is None or not each:
            return
        operands, answers = self.dense.ask(operands)
        plus, minus = np.asarray(to_float(fmt, answers), np.float64).reshape(2, -1)
        if (np.isfinite(plus) & np.isfinite(minus) & (plus != minus)).any():
            self.bank.add(SIGNS, operands, answers)

    def _begin_with(self, starts: Sequence[Candidate]) -> None:
        """The nearest of what the box is meant to be and the candidate of another mode, with what one change
        at a time makes of it."""
        made = [made_candidate(self.takes, one.operations, one.order) for one in starts]
        fits = [fitting.Fit(one, fitting.wrong_of(self.bank, one)) for one in made if one is not None]
        if fits:
            first = min(fits, key=lambda one: one.wrong)
            self.state.fit = fitting.fit(
                self.bank, first, time.monotonic() + self.dense.left / POLICY.sharers
            )

    def _first_candidate(self) -> None:
        """Ranks the templates of the order by ordinary questions, and fits the nearest: then what is between
        them and the unit, with more effort as long as something is wrong."""
        kept = self.state.fit
        ordinary = self.bank.of_kinds(frozenset(_ORDINARY)) if self.takes.formats["d"].is_float else self.bank
        if kept is None or kept.wrong or self.near is not None:
            self._rank(ordinary)
        if kept is not None and not kept.wrong:
            return  # what it is meant to be still has to hold against other orders, as any start
        self._tell("fitting orders of the sum", 0, 1)
        first = ranking.of_both_kinds(self.ranked, POLICY.first_starts)
        now = self._refit([kept, *first] if kept is not None else first, fitting.Effort.SINGLE, quick=True)
        if now is not None:
            if now.wrong:
                self._ask_wrong_again(now.candidate)
            self.state.fit = self.begin.once(now, _wrong, self.deadline)

    def _rank(self, ordinary: Bank) -> None:
        """Puts templates in the order of how near they are: the starts, and the rivals of what is found."""
        made = templates(self.takes, self.state.tree)
        self.ranked = self.orders = ranking.rank(ordinary, self.bank, made, self.deadline)

    def _ask_about(self, near: fitting.Fit, _: float) -> fitting.Fit | None:
        """Asks more about a candidate that is wrong on a handful: those say little of what it lacks, and
        whatever else is tried costs more than questions aimed at it."""
        share = min(POLICY.first_round, self._share_left() // 3)
        if near.wrong > POLICY.handful or share < self._least or self.dense.left <= self.reserve:
            return None
        self._round(share)
        self.state.differing = {}
        return self._refit([near], fitting.Effort.SINGLE, quick=True)

    def _halved(self, now: fitting.Fit, _: float) -> fitting.Fit | None:
        """More starts than widths alone show, by how near a few changes bring them: templates with the ends
        that one product and c show, and those that were ranked."""
        until = time.monotonic() + self.dense.left / POLICY.sharers
        ordinary = self.bank.of_kinds(frozenset(_ORDINARY)) if self.takes.formats["d"].is_float else self.bank
        if not fitting.wrong_of(ordinary, now.candidate):
            ordinary = self.bank  # what is wrong lies elsewhere: ordinary questions show no order any more
        more = ranking.starts(self.bank, ordinary, templates(self.takes, self.state.tree), until)
        ranked = ranking.rank_again(ordinary, more, ranking.various(self.orders, POLICY.halved))
        hints = replace(hints_of(self.bank), wide=False)
        nearest = ranking.halved(ordinary, ranking.various(ranked, POLICY.halved), hints, until)
        return self._refit([now, *nearest[: POLICY.fitted_of_halved]], fitting.Effort.SINGLE, quick=True)

    def _harder(self, effort: fitting.Effort, now: fitting.Fit, _: float) -> fitting.Fit | None:
        return self._refit(self.ranked[: POLICY.starts // 2] or [now], effort)

    def _ask_laws(self) -> None:
        """Where no start explains all, asks whether the order of the sum depends on the magnitudes."""
        fit = self.state.fit
        if fit is not None and fit.wrong and not self.own.state:
            law = by_magnitude(self.dense, self.state.tree)
            self.laws = () if law is None else (law,)

    def _refit(
        self, starts: list[fitting.Fit], effort: fitting.Effort, quick: bool = False
    ) -> fitting.Fit | None:
        """Fits candidates until one explains the bank; else keeps the nearest, and the others behind it.
        `quick`: each for a short time, after which the best go on; one that is near goes on at once."""
        best: fitting.Fit | None = None
        fits: list[fitting.Fit] = []
        end = time.monotonic() + POLICY.fits_share_of_time * self.dense.left
        for turn, start in enumerate(starts):
            if time.monotonic() > end:
                break
            self._tell(f"fitting: {start.candidate.order}", turn, len(starts))
            now = fitting.Fit(start.candidate, fitting.wrong_of(self.bank, start.candidate), start.changes)
            if effort > fitting.Effort.SINGLE and best is not None and self._is_hopeless(now, best):
                fits.append(now)
                continue
            here = time.monotonic()
            until = here + (end - here) / (
                min(len(starts) - turn, POLICY.sharers) if not quick else POLICY.quick_sharers
            )
            done = fitting.fit(self.bank, now, until, effort)
            if quick and 0 < done.wrong < len(self.bank) // POLICY.near:  # where nothing helped, this is free
                until = time.monotonic() + (end - time.monotonic()) / POLICY.sharers
                done = fitting.fit(self.bank, done, until, effort)
            fits.append(done)
            if best is None or done.wrong < best.wrong:
                best = done
            if best.wrong == 0:
                break
        self.state.fit = best or self.state.fit
        if len(fits) > 1:
            self.ranked = sorted(fits, key=_wrong)
        return self.state.fit

    def _is_hopeless(self, one: fitting.Fit, beside: fitting.Fit) -> bool:
        """Whether a start is far off and another one is near."""
        return one.wrong > len(self.bank) // POLICY.hopeless and beside.wrong < len(self.bank) // POLICY.near

    # Checking -----------------------------------------------------------------------------------------------

    def _check(self) -> bool:
        """Finds counterexamples until the limits end, and fits to them, the harder the more often that did
        not help. Returns whether the last candidate was asked about at all."""
        efforts = list(fitting.Effort)
        while self.state.fit is not None:
            fit, share = self.state.fit, self._next_share()
            if share < self._least or self.dense.left < self.reserve:
                if self.state.differing:
                    self._ask_the_rest()
                return bool(self.state.differing)
            if fit.wrong and not efforts:
                if not self._asks_on(fit, share):
                    return True
                efforts = list(fitting.Effort) if self.state.fit.wrong > fit.wrong else efforts
            elif fit.wrong:
                self._fit_to_counterexamples(fit, efforts.pop(0), share)
            else:
                efforts = list(fitting.Effort)
                self._find_counterexample(fit)
        return False

    def _next_share(self) -> int:
        """Questions of each kind of the next round: a round that finds a difference leaves enough for those
        behind it."""
        left = self._share_left()
        size = min(POLICY.first_round << min(2 * self.turn, 8), POLICY.largest_round)
        return min(size, max(left // 3, min(left, POLICY.last_round)))

    def _fit_to_counterexamples(self, fit: fitting.Fit, effort: fitting.Effort, share: int) -> None:
        """Fits the candidate and a few others to the bank, with this effort."""
        self._ask_wrong_again(fit.candidate)
        if effort is fitting.Effort.FEW and fit.wrong <= POLICY.handful:
            self._round(share)  # those that are wrong say little: more of them first
            fit = replace(fit, wrong=fitting.wrong_of(self.bank, fit.candidate))
        beside = POLICY.starts // 2 if effort < fitting.Effort.INSTEAD else 2
        self._refit([fit, *self.ranked[1:beside]], effort)
        self.state.differing = {}

    def _find_counterexample(self, fit: fitting.Fit) -> None:
        """The cheapest ways first; where one finds a question that the candidate is wrong on, or another
        candidate, its checks begin anew."""
        for one in self.check.passes:
            found = self.check.apply(one, fit, self.deadline)
            if found is not None:
                self.state.fit, self.state.differing = found, {}
                break

    def _checked(self, fit: fitting.Fit, _: float) -> fitting.Fit | None:
        self.share = self._next_share()
        wrong = self._round(self.share)
        self.clean[fit.candidate.key] = 0 if wrong else self.clean.get(fit.candidate.key, 0) + 1
        return replace(fit, wrong=fitting.wrong_of(self.bank, fit.candidate)) if wrong else None

    def _recalled(self, fit: fitting.Fit, _: float) -> fitting.Fit | None:
        wrong = self._recall(fit.candidate)
        return replace(fit, wrong=fitting.wrong_of(self.bank, fit.candidate)) if wrong else None

    def _recall(self, candidate: Candidate) -> bool:
        """Holds a candidate against the questions of all rounds, most of which others answered right:
        counterexamples that cost no question. Whether there are any; some of each kind join the bank."""
        known = candidate.key, len(self.checked)
        if self.recalled == known:
            return False
        self.recalled = known
        wrong = self.checked.some_wrong(candidate.program, POLICY.counterexamples)
        self.bank.take(wrong)
        if len(wrong):
            self.clean[candidate.key] = 0
        return len(wrong) > 0

    def _asks_on(self, fit: fitting.Fit, share: int) -> bool:
        """One round more where all efforts were in vain; whether the search goes on: the handful that a
        candidate is wrong on says little, and one question more can say what it lacks."""
        self._round(share)
        self.state.fit = replace(fit, wrong=fitting.wrong_of(self.bank, fit.candidate))
        return fit.wrong <= POLICY.handful

    def _ask_the_rest(self) -> None:
        """Where the time for fits is over, not the questions: asks as many more as take a moment. A candidate
        that one of them shows to be wrong cannot be mended any more, and is not called explained."""
        each = int(min(POLICY.last_seconds, self.dense.left / 4) / self.pace) // (
            self._aims * len(stimuli.KINDS)
        )
        share = min(self._share_left(), each)
        if share >= self._least:
            self._round(share)

    def _fit_to_the_last(self) -> bool:
        """Where the questions are over, not the time, and the last ones show that a candidate that is near is
        wrong: fits once more. What that changes was asked nothing since, and is not called explained. Whether
        nothing was changed."""
        first = self.state.fit
        if first is None or self._share_left() >= self._least:
            return True
        self.state.fit = replace(first, wrong=fitting.wrong_of(self.bank, first.candidate))
        for effort in fitting.Effort:
            fit = self.state.fit
            if not 0 < fit.wrong <= len(self.bank) // POLICY.far or self.dense.left < self.reserve:
                break
            self._refit([fit, *self.ranked[1 : POLICY.starts // 2]], effort)
            now = self.state.fit
            if now.candidate.key != fit.candidate.key:
                self._recall(now.candidate)
                wrong = fitting.wrong_of(self.bank, now.candidate)
                self.state.fit, self.state.differing = replace(now, wrong=wrong), {}
        return self.state.fit.candidate.key == first.candidate.key

    # Discriminating -----------------------------------------------------------------------------------------

    def _discriminate(self, fit: fitting.Fit, _: float) -> fitting.Fit | None:
        """Asks where rivals that answered the whole bank alike would answer otherwise, on operands drawn for
        that: first its neighbours, then other programs. The candidate with what it is wrong on, or another
        one in its place."""
        candidate, turns = fit.candidate, self.told_apart.get(fit.candidate.key, 0)
        ready = self.clean[candidate.key] >= (POLICY.clean_rounds if self.share > POLICY.last_round else 1)
        if not ready or turns >= len(POLICY.drawn_for_rivals):
            return None
        self.told_apart[candidate.key] = turns + 1
        self._tell("telling rivals apart", self.turn, 0)
        each, rivals = POLICY.drawn_for_rivals[turns], self._rivals(fit, far=turns > 0)
        rng = partial(self._rng, 1000 + self.turn)
        asked = [
            discriminate.questions(candidate, rivals, each, rng, self._until(POLICY.rivals_seconds)),
            discriminate.below_the_last_bit(candidate, each // 2, partial(rng, 0)),
        ]
        parts = [one for one in asked if one is not None]
        wrong = False
        if parts:
            whole = {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}
            some = evenly(np.arange(len(whole["a"])), self._left)
            whole, answers = self._asked_at_the_end({name: codes[some] for name, codes in whole.items()})
            self.bank.add("between rivals", whole, answers)
            wrong = bool((candidate.dot(**whole) != answers).any())
        other = self._other(fit, wrong)
        if other is None and wrong:
            return replace(fit, wrong=fitting.wrong_of(self.bank, candidate))
        return other

    def _other(self, fit: fitting.Fit, wrong: bool) -> fitting.Fit | None:
        """A program with other keys that explains all, too, where the candidate is wrong on what was asked
        between the two, or says the same in more words. It is checked as any other then."""
        banks = self.bank, self.checked
        left = [one for one in self.plainer if all(b.explained(one.candidate.program) for b in banks)]
        if not left or not (
            wrong or discriminate.words(left[0].candidate) < discriminate.words(fit.candidate)
        ):
            return None
        return fitting.Fit(left[0].candidate, 0, left[0].changes)

    def _rivals(self, fit: fitting.Fit, far: bool) -> list[tuple[str, Candidate]]:
        """What answers the whole bank as a candidate does, by the key that it changes. `far`: also what is
        more than one key away, which costs more to find, and is worth it once neighbours were told apart."""
        candidate = fit.candidate
        known = self.rivals
        if known is not None and known.of == candidate.key:  # the bank may have grown since
            new = self.bank.part(np.arange(known.asked, len(self.bank)))
            left = [(key, one) for key, one in known.left if not new.wrong(one.program).any()]
        else:
            end = self._until(POLICY.rivals_seconds)
            changes = discriminate.neighbours(candidate, self._words(), causes=True)
            left, self.plainer = discriminate.alike(candidate, self.bank, changes, end), []
        if far:
            others = [(discriminate.ORDER, one) for one in self._other_orders(candidate)]
            self.plainer = discriminate.plainer(fit, self.bank, self._until(POLICY.rivals_seconds))
            left = [*others, *((discriminate.OTHER_WORDS, one.candidate) for one in self.plainer), *left]
        left = discriminate.apart(candidate, left)
        self.rivals = _Rivals(candidate.key, left, len(self.bank))
        return left

    def _other_orders(self, candidate: Candidate) -> list[Candidate]:
        """Programs with other orders that explain the whole bank, too. They are looked for once for all
        candidates of one order: what did not explain fewer questions does not explain more."""
        if candidate.order not in self.other_orders:
            until = self._until(POLICY.orders_seconds)
            found = discriminate.other_orders(candidate, self.orders, self.bank, until)
            self.other_orders[candidate.order] = list(found)
        return [one for one in self.other_orders[candidate.order] if self.bank.explained(one.program)]

    def _until(self, seconds: float) -> float:
        """The end of a stage, on time.monotonic: it takes a quarter of the time that is left at most."""
        return time.monotonic() + min(seconds, max(self.dense.left, 0) / 4)

    def _neighbours(self, candidate: Candidate) -> list[Mutation]:
        return discriminate.neighbours(candidate, self._words())

    def _words(self) -> tuple[int, ...]:
        """The NaNs that the box answered."""
        d = self.takes.formats["d"]
        return nan_words(d, self.bank.answers.tolist()) if d.is_float else ()

    # Rounds -------------------------------------------------------------------------------------------------

    def _share_left(self) -> int:
        """Questions of each kind that may still be asked."""
        self._plan()
        left = self._left - self.kept_back
        return max(left, 0) // (self._aims * len(stimuli.KINDS) + self._parts_of_codes)

    @property
    def _parts_of_codes(self) -> int:
        """Parts of a round that are made of codes not asked yet: a few, and as many as others are of one aim
        once the candidate was told from its rivals."""
        fit = self.state.fit
        if self._few or self.turn < POLICY.codes_from or fit is None or not self.codes.unasked():
            return 0
        told = self.told_apart.get(fit.candidate.key, 0) >= len(POLICY.drawn_for_rivals)
        return len(stimuli.KINDS) if told else POLICY.codes_parts

    @property
    def _few(self) -> bool:
        return self.dense.asks < POLICY.few_asks

    @property
    def _aims(self) -> int:
        return 1 if self._few else POLICY.aims

    @property
    def _least(self) -> int:
        return 1 if self._few else POLICY.least_round

    def _round(self, share: int) -> bool:
        """One round of checking; whether the candidate was wrong anywhere."""
        assert self.state.fit is not None
        candidate = self.state.fit.candidate
        unit = as_taken(candidate.instruction, self.own)
        begun = time.monotonic()
        # Ask: fresh operands, drawn for the candidate, which no earlier question was.
        drawn = list(self._drawn(unit, share, self.turn))
        self.turn += 1
        self._tell("checking", self.turn, 0)
        operands = {name: np.concatenate([part[name] for _, part in drawn]) for name in drawn[0][1]}
        operands = with_kept_loads(unit, operands)
        answers = self.box.answer(operands)  # at once: one call may be one run of a simulator
        operands = self.own.resolve(operands, answers)
        wrong = np.asarray(unit.stateless.dot(**operands) != answers)
        if self.own.pattern is not None:  # the bank keeps no metadata, which are part of the question
            again = evenly(np.flatnonzero(wrong), min(POLICY.wrong_again, self._left))
            some = {name: codes[again] for name, codes in operands.items()}
            self._is_otherwise(otherwise_now(self.box, some, answers[again]))
        if len(self.checked) * self.takes.k < POLICY.checked_products:
            kinds = [kind for kind, _ in drawn for _ in range(share)]
            self.checked.add_each(kinds, selected(self.own, operands), answers)
        self.pace = max(time.monotonic() - begun, 1e-3) / len(answers)
        # Keep: some counterexamples of each kind join the bank, and the simplest forms of a few.
        wrong_kinds: list[tuple[str, Operands, Any]] = []
        for index, (kind, _) in enumerate(drawn):
            hits = np.flatnonzero(wrong[index * share : (index + 1) * share])
            before = self.state.differing.get(kind, (0, 0))
            self.state.differing[kind] = before[0] + len(hits), before[1] + share
            if len(hits):
                taken = index * share + hits[: POLICY.counterexamples]
                few = {name: codes[taken] for name, codes in operands.items()}
                wrong_kinds.append((kind, few, answers[taken]))
        for kind, part, told in wrong_kinds:
            self._keep(kind, part, told)
        if wrong_kinds and self.own.pattern is None:
            self._shrink(candidate, wrong_kinds)
        return bool(wrong_kinds)

    def _drawn(self, unit: Instruction, share: int, turn: int) -> Iterator[tuple[str, Operands]]:
        """Operands of every kind: drawn from the formats alone, aimed at the candidate's steps, and at those
        of another one: what tells two alike lies where the other one's widths end."""
        others = self._others_aimed_at(turn)
        for index, kind in enumerate(stimuli.KINDS):
            targets = enumerate((self.own, unit, others[index % len(others)]))
            aims = (
                list(targets) if self._aims == POLICY.aims else [list(targets)[(turn + index) % POLICY.aims]]
            )
            for aim, target in aims:
                rng = self._rng(2 + turn, index, aim)
                operands = stimuli.generate(target, kind, share, rng)
                yield kind, operands
        if parts := self._parts_of_codes:
            codes = self.codes.questions(parts * share, self._rng(2 + turn, len(stimuli.KINDS)))
            for part in range(parts):
                yield CODES, {name: one[part * share :][:share] for name, one in codes.items()}

    def _others_aimed_at(self, turn: int) -> list[Instruction]:
        """In turns, the candidate with wider alignments, by as many bits as kinds in turns, and the best one
        of another shape."""
        assert self.state.fit is not None
        candidate = self.state.fit.candidate
        if turn % 2 and len(self.ranked) > 1:
            found = [self.ranked[1 + turn // 2 % (len(self.ranked) - 1)].candidate]
        else:
            first = turn // 2 % len(POLICY.wider)
            more = (*POLICY.wider[first:], *POLICY.wider[:first])
            found = [ranking.widened(candidate, bits) or candidate for bits in more]
        return [as_taken(one.instruction, self.own) for one in found]

    def _keep(self, kind: str, operands: Operands, answers: Any) -> None:
        """Counterexamples join the bank; those of a sparse box as the products that were selected."""
        self.bank.add(kind, selected(self.own, operands), answers)

    def _shrink(self, candidate: Candidate, wrong: list[tuple[str, Operands, Any]]) -> None:
        """The simplest forms of a few counterexamples join the bank with all that was asked on the way."""
        for _, operands, _ in wrong[: POLICY.shrunk]:
            asked: list[tuple[Operands, Any]] = []

            def fails(batch: Operands, asked: list[tuple[Operands, Any]] = asked) -> Any:
                count = len(batch["a"])
                some = evenly(np.arange(count), POLICY.shrink_asks)
                given = {name: codes[some] for name, codes in batch.items()}
                put, answers = self.dense.ask(given)
                asked.append((put, answers))
                differ = np.zeros(count, bool)
                differ[some] = (candidate.dot(**put) != answers) & (put["c"] == given["c"])
                return differ

            first = {name: codes[0] for name, codes in operands.items()}
            least = minimise(self.takes, first, fails, rounds=12)
            batch = {name: codes[None] for name, codes in least.items()}
            self.bank.add("shrunk", *self.dense.ask(batch))
            for part, answers in asked[-3:]:
                self.bank.add("shrunk", {name: codes[:64] for name, codes in part.items()}, answers[:64])

    # The outcome --------------------------------------------------------------------------------------------

    def _found(self) -> Found:
        state, fit = self.state, self._without_invented_words()
        name = name_of(self.box.unit)
        common: dict[str, Any] = {}
        if state.tree is not None:
            common = {"order": state.tree.brackets(), "meetings": meetings(state.tree, self.bank)}
        if fit is None:
            undecided = tuple(state.undecided) or ("no order of the sum could be tried",)
            seconds = time.monotonic() - self.started
            more: dict[str, Any] = {"asked": self._asked, "changed": self.changed, "seconds": seconds}
            return Found(name, None, None, {}, undecided, **more, **common)
        self._recall(fit.candidate)
        clean = not any(count for count, _ in self._all_counts(fit.candidate).values())
        evidence = self._weigh(fit) if clean else Evidence()
        differing = self._all_counts(fit.candidate)
        wrong = any(count for count, _ in differing.values())
        evidence = Evidence() if wrong else evidence  # what was asked for it showed a difference
        alternatives = {one.key: one.undecided for one in evidence.properties if one.undecided}
        unit = as_taken(fit.candidate.instruction, self.own)
        text, unwritten = self._text(fit.candidate, f"dissected: {name}")
        known = () if wrong else self._known(unit)
        near = None if known or not evidence.properties else nearest(unit.stateless, alternatives)
        if text is not None and (known or near is not None):
            own = keeping(fit.candidate.instruction, self.own)
            text = with_names(own, text, f"dissected: {name}", known, near)
        return Found(
            name,
            unit,
            text,
            differing,
            (
                *state.undecided,
                *filter(None, [unwritten]),
                *self._open(differing, alternatives),
                *_untried(evidence),
                *self.codes.said(),
            ),
            rules=(fit.candidate.order, *fit.changes),
            forced=tuple(forced(fit.changes, self.bank) if wrong else self.forced),
            unwritten=unwritten,
            changed=self.changed,
            known=known,
            near=near,
            example=self._example(fit.candidate) if wrong else None,
            laws=(*broken(self.bank), *self.laws) if wrong else (),
            alternatives=alternatives,
            fresh=sum(count for _, count in state.differing.values()),
            properties=self._with_repeated(evidence.properties),
            asked=self._asked,
            seconds=time.monotonic() - self.started,
            **common,
        )

    def _without_invented_words(self) -> fitting.Fit | None:
        """The candidate that is told; a changed one is held against all that was asked."""
        fit = self.state.fit
        new = None if fit is None else without_invented_words(fit, self.bank)
        if new is not None and new is not fit:
            wrong = self.checked.wrong(new.candidate.program)
            self.state.fit, self.state.differing = new, self.checked.counts(wrong)
        return new

    def _with_repeated(self, properties: tuple[Property, ...]) -> tuple[Property, ...]:
        """With what every key rests on: an answer is that of its operands."""
        if not properties or not self.repeated.count:
            return properties
        found = self.repeated
        first = Property("an answer", "that of its operands", 0, (), (), said=found.said, asked=found.count)
        return first, *properties

    @property
    def _left(self) -> int:
        """Dot products that the box may still be asked."""
        return self.dense.asks - self.dense.asked

    @property
    def _asked(self) -> int:
        """Dot products that the box answered, before it was continued, too."""
        return self.before + self.box.asked

    def _text(self, candidate: Candidate, title: str) -> tuple[str | None, str]:
        """The candidate as YAML, where that reads back as a unit with the same answers; else why not."""
        own = keeping(candidate.instruction, self.own)
        text = unit_text(own, "dissected", title, editor=False)
        if text is None:
            return None, _NO_WORDS
        try:
            again = build_instruction(yamlfile.parse(text))
        except SpecError as error:
            return None, f"{_NO_WORDS}: {error}"
        expected = candidate.dot(**self.bank.operands)
        if np.array_equal(again.stateless.dot(**self.bank.operands), expected):
            return text, ""
        return None, f"{_NO_WORDS}: its text is read as a unit with other answers"

    def _all_counts(self, candidate: Candidate) -> dict[str, tuple[int, int]]:
        """By kind, the checks of this candidate, and the bank held against it once more."""
        counts = dict(self.state.differing)
        for kind, (wrong, total) in self.bank.counts(self.bank.wrong(candidate.program)).items():
            before = counts.get(kind, (0, 0))
            counts[kind] = before[0] + wrong, before[1] + total
        return counts

    def _example(self, candidate: Candidate) -> Example | None:
        """The simplest question of the bank that the candidate answers otherwise."""
        wrong = np.flatnonzero(self.bank.wrong(candidate.program))
        if not len(wrong):
            return None
        part = self.bank.part(wrong)
        place = int(np.argmin(costs(self.takes, part.operands)))
        operands = {name: codes[place] for name, codes in part.operands.items()}
        return Example(operands, int(part.answers[place]), int(candidate.dot(**operands)))

    def _known(self, unit: Instruction) -> tuple[str, ...]:
        """Instructions of the catalogue that answer the whole bank as the box did."""
        found: list[str] = []
        if unit.pattern is not None:
            return ()
        for one in relatives(unit.stateless, same=True):
            if one.links == 1 and self.bank.explained(one.instruction.program):
                found += [f"{one.instruction.architecture}:{one.instruction.name}"]
        return tuple(found)

    def _evidence(self, candidate: Candidate) -> Evidence:
        """What shows every rule of a candidate that explains the bank, and what no question told apart."""
        left, ask = max(self.dense.left, 0) / 4, self._asked_at_the_end
        limit = time.monotonic() + min(POLICY.evidence_seconds, left)
        end = limit + min(POLICY.simpler_seconds, left)
        return weigh(candidate, self.bank, self._neighbours(candidate), limit, ask, end)

    def _weigh(self, fit: fitting.Fit) -> Evidence:
        """The same once for a candidate and a bank. What was asked for it joins the bank: questions like all
        others, a wrong one is a difference."""
        candidate = fit.candidate
        if self.weighed is None or self.weighed[0] != (candidate.key, len(self.bank)):
            self._rule_out(fit)
            evidence = self._evidence(candidate)
            until = self._until(POLICY.forced_seconds)
            first = forced(fit.changes, self.bank)
            self.forced, asked = shrunk(first, fit.changes, self.bank, until, self._asked_at_the_end)
            for one in filter(None, (evidence.asked, asked)):
                self.bank.add(_SHOWN, *one)
            self.weighed = (candidate.key, len(self.bank)), evidence
        return self.weighed[1]

    def _rule_out(self, fit: fitting.Fit) -> None:
        """Questions of the rounds that show what the bank leaves open join it; keys that every unit has come
        first, as the time may end."""
        rivals = sorted(self._rivals(fit, far=False), key=lambda rival: discriminate.is_extra(rival[0]))
        until = self._until(POLICY.ruling_out_seconds)
        for _, one in rivals:
            if time.monotonic() > until:
                break
            if self.bank.explained(one.program) and not self.checked.explained(one.program):
                self.bank.take(self.checked.some_wrong(one.program, 1))

    def _shown_wrong(self) -> bool:
        """Whether a question that shows the rules of a candidate, which explained all before, has another
        answer."""
        fit = self.state.fit
        if fit is None or fit.wrong or not self.state.differing or self.dense.left < self.reserve:
            return False
        if not self._recall(fit.candidate):
            self._weigh(fit)
        wrong = fitting.wrong_of(self.bank, fit.candidate)
        if wrong:
            self.state.fit, self.state.differing = replace(fit, wrong=wrong), {}
        return bool(wrong)

    def _asked_at_the_end(self, operands: Operands) -> tuple[Operands, Bits]:
        """A few questions more as they were asked, with the answers, within the limits."""
        if len(operands["a"]) > self._left:
            raise BudgetEnded
        return self.dense.ask(operands)

    def _open(
        self, differing: Mapping[str, tuple[int, int]], alternatives: Mapping[str, tuple[str, ...]]
    ) -> Iterator[str]:
        bad = {kind: counts for kind, counts in differing.items() if counts[0]}
        if bad:
            worst = sorted(bad.items(), key=lambda item: -item[1][0])
            named = ", ".join(f"{kind} ({wrong:,} of {count:,})" for kind, (wrong, count) in worst[:6])
            right, fit = [kind for kind in differing if kind not in bad], self.state.fit
            yield f"no candidate explains all answers; the nearest one is wrong on {named}"
            if right:
                yield f"it is right on all operands of the kinds {', '.join(right)}"
            if fit is not None:
                yield from unexplained(fit.candidate, self.bank, self.checked)
        told = {key: values for key, values in alternatives.items() if not discriminate.is_extra(key)}
        for key, values in told.items():
            shown = ", ".join(shortened(values))
            yield f"{key}: {shown} would have answered every question kept in the same way"
        extras = [key for key in alternatives if key not in told]
        if extras:
            yield f"nor would these have shown, with some value: {'; '.join(extras)}"


def _untried(evidence: Evidence) -> Iterator[str]:
    if evidence.tried < evidence.neighbours:
        yield (
            f"of {evidence.neighbours:,} changes of one key, {evidence.neighbours - evidence.tried:,} were "
            "not held against the questions, as the time for it ended: what they decide is not known"
        )
