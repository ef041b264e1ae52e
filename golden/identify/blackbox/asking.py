"""What a box is asked: the first questions, the rounds that check a candidate, and questions repeated.

A question, or query, is one dot product that the box is given; its answer is the code of d. The bank holds
the questions and answers to which candidates are fitted; `checked` those of the rounds, to which they are
only compared.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import processes, stimuli
from golden.errors import OperandError
from golden.identify.blackbox import discriminate, fitting
from golden.identify.blackbox.box import Bank, Box, BudgetEnded, dense_view, selected, with_box_operands
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.policy import QUESTIONS, TIMES
from golden.identify.blackbox.questions import KIND as CODES
from golden.identify.blackbox.questions import Coverage, simple
from golden.identify.blackbox.repeatability import Changed, Repeated, changed_answer, check_repeatability
from golden.identify.blackbox.sum_order import KIND as MASKS
from golden.identify.blackbox.sum_order import find_order
from golden.identify.minimising import minimise
from golden.identify.sample import evenly, joined, picked
from golden.kernels.sum_tree import Node
from golden.model.instruction import Instruction
from golden.program.signature import Bits, Operands
from golden.unit import Unit, name_of, signature_of
from golden.vectors.vectorset import with_kept_loads

ORDINARY = (
    MASKS,
    *("narrow", "wide", "cancelling", "alignment_edge", "equal_exponents", "c_dominant", "half_ulp"),
    *("alignment_one_term", "tie", "deep_cancellation", discriminate.TIES),
)
"""Kinds that distinguish orders, widths and roundings, away from the ends of the formats."""


Progress = Callable[[str, int, int], None]


Numbers = npt.NDArray[np.int64]


class Inconsistent(Exception):
    """A repeated question had another answer, so no conclusion from the answers holds."""


@dataclass
class State:
    """What is known so far."""

    tree: Node | None = None
    fit: fitting.Fit | None = None
    differing: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Results of the checks of the present candidate, without those of the bank."""
    undecided: list[str] = field(default_factory=list)


@dataclass(eq=False)
class Asking:
    """A box with its budget, and everything that it was asked."""

    unit: Unit
    seconds: float
    asks: int
    seed: int
    progress: Progress | None

    started: float = field(init=False)
    waited: float = field(init=False)
    state: State = field(init=False, default_factory=State)
    ranked: list[fitting.Fit] = field(init=False, default_factory=list)
    turn: int = field(init=False, default=0)
    before: int = field(init=False, default=0)
    """Dot products that the box answered before a resume."""
    repeated: Repeated = field(init=False, default_factory=lambda: Repeated(0, 0))
    changed: Changed | None = field(init=False, default=None)
    confirmed: npt.NDArray[np.bool_] = field(init=False, default_factory=lambda: np.zeros(0, np.bool_))
    """Which questions of the bank were repeated."""
    firsts: int = field(init=False, default=0)
    """How many of the bank came first."""
    rival_rounds: dict[object, int] = field(init=False, default_factory=dict)
    recalled: object = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.started, self.waited = time.monotonic(), processes.waited()
        self.deadline = self.started + self.seconds
        self.reserve = max(TIMES.least, min(self.seconds / 10, TIMES.neighbours))
        self.codes = Coverage(signature_of(self.unit))
        self.box = Box(self.unit, self.asks, self.deadline, codes=self.codes)
        self.dense = replace(self.box, unit=dense_view(self.unit))
        self.own, self.takes = self.box.own, self.dense.takes
        self.bank, self.checked = Bank(self.takes), Bank(self.takes)
        self.kept_back = self.asks // QUESTIONS.kept_back

    def _report_progress(self, what: str, done: int, of: int) -> None:
        if self.progress is not None:
            self.progress(what, done, of)

    def _rng(self, *numbers: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *numbers])

    def _check_repeatability(self) -> None:
        """Stops unless the box repeats its answers, whatever was queried before and in the same batch."""
        try:
            self.repeated = found = check_repeatability(self.box, partial(self._rng, 0))
        except BudgetEnded:
            if not self.box.meter.each:  # no time was left for two answers: the speed of the box is unknown
                raise
            raise self._too_slow() from None
        if found.changed is not None:
            repeated = f"{found.differ:,} of {found.queries + found.tiles:,} dot products, repeated"
            self._stop_if_changed(found.changed, f"{repeated}, had another answer")
        self._plan()
        if self.dense.asks < QUESTIONS.smallest:
            raise self._too_slow()

    def _too_slow(self) -> OperandError:
        each = self.box.meter.each
        seconds = math.ceil(QUESTIONS.smallest * each / TIMES.answers) + 1
        said = f"takes {each:.3g} s for a dot product, and at least {QUESTIONS.smallest} queries are needed"
        return OperandError(f"{name_of(self.box.unit)} {said}: give it {seconds} s or more (--seconds)")

    def _plan(self) -> None:
        """Limits the budget to what the box can answer in its part of the time left. A search that knows its
        budget asks some questions of each kind instead of all of the first kind."""
        each, so_far = self.box.meter.each, self.box.queries
        share = TIMES.answers * max(self.dense.left, 0)
        most = self.asks if each * self.asks < share else so_far + int(share / each)
        self.box.asks = self.dense.asks = min(self.asks, most)
        self.kept_back = min(self.kept_back, self.dense.asks // QUESTIONS.kept_back)

    def _stop_if_changed(self, changed: Changed | None, again: str = "") -> None:
        """Ends the search if a question had another answer."""
        if changed is not None:
            self.changed = changed
            said = changed.text(self.box.takes.formats)
            self.state.undecided.append(f"{said}; {again}" if again else said)
            raise Inconsistent

    def _ask_wrong_again(self, candidate: Candidate) -> None:
        """Repeats the questions that a candidate gets wrong before it is changed for them, and some of the
        first ones: no program explains a box that answers at random, or that changed during the search."""
        known = len(self.confirmed)
        self.confirmed = np.pad(self.confirmed, (0, len(self.bank) - known))
        self.firsts = self.firsts or len(self.bank)
        left = np.flatnonzero(self.bank.wrong(candidate.program) & ~self.confirmed)
        if self.own.pattern is not None:  # the same operands with other metadata are another question
            left = left[left < self.firsts]
        again = np.union1d(evenly(left, QUESTIONS.wrong_again), self._first_ones(QUESTIONS.early_again))
        self.confirmed[again] = True
        self._ask_kept(again)

    def _ask_early_again(self) -> None:
        """Repeats some of the first questions at the end: the box may have changed."""
        again = self._first_ones(min(QUESTIONS.last_again, self._left))
        with suppress(BudgetEnded):
            self._ask_kept(again)
            self.repeated = self.repeated.and_later(len(again))

    def _first_ones(self, count: int) -> Numbers:
        return evenly(np.arange(self.firsts or len(self.bank)), count)

    def _ask_kept(self, again: Numbers) -> None:
        """Repeats questions of the bank; if an answer differs, also early ones."""
        if len(again) > self._left:
            raise BudgetEnded
        kept, early = self.bank.part(again), self.bank.part(self._first_ones(QUESTIONS.early))
        then = early.operands, early.answers
        self._stop_if_changed(changed_answer(self.dense, kept.operands, kept.answers, then))

    def _order(self, box: Box) -> Node | None:
        """The order of the sum that masks show; in a small budget masks take a limited part."""
        most = self._left // QUESTIONS.masks if self._few else self._left
        try:
            return find_order(replace(box, asks=box.queries + most), self.bank)
        except BudgetEnded:
            self.state.undecided.append("too few questions were left to see the order of the sum with masks")
            return None

    def _first_questions(self) -> None:
        questions = self.dense.asks // self.dense.each
        first, each = (
            min(QUESTIONS.first, questions // QUESTIONS.first_share),
            max(1, min(QUESTIONS.simple, questions // QUESTIONS.simple_share)),
        )
        drawn = [
            (kind, stimuli.generate(self.takes, kind, first, self._rng(1, index)))
            for index, kind in enumerate(stimuli.KINDS)
        ]
        drawn += simple(self.takes, each, self._rng(1, len(stimuli.KINDS)))
        kinds = [kind for kind, operands in drawn for _ in operands["c"]]
        together = joined([part for _, part in drawn])
        self.bank.add_each(
            kinds, *self.dense.ask(together)
        )  # at once: one call may be one run of a simulator

    def _recall(self, candidate: Candidate) -> bool:
        """Compares a candidate with the questions of all earlier rounds, which cost no query. Some
        counterexamples of each kind join the bank; whether there are any."""
        known = candidate.key, len(self.checked)
        if self.recalled == known:
            return False
        self.recalled = known
        wrong = self.checked.some_wrong(candidate.program, QUESTIONS.counterexamples)
        self.bank.take(wrong)
        return len(wrong) > 0

    def _share_left(self) -> int:
        """Questions of each kind that the budget still allows."""
        self._plan()
        left = self._left - self.kept_back
        return max(left, 0) // (self._aims * len(stimuli.KINDS) + self._parts_of_codes)

    @property
    def _parts_of_codes(self) -> int:
        """Parts of a round made of codes not used yet: a few at first. After the candidate was separated from
        its rivals, they equal the parts of one aim."""
        fit = self.state.fit
        if self._few or self.turn < QUESTIONS.codes_from or fit is None or not self.codes.unused():
            return 0
        separated = self.rival_rounds.get(fit.candidate.key, 0) >= len(QUESTIONS.separating)
        return len(stimuli.KINDS) if separated else QUESTIONS.codes

    @property
    def _few(self) -> bool:
        return self.dense.asks < QUESTIONS.few

    @property
    def _aims(self) -> int:
        return 1 if self._few else QUESTIONS.aims

    @property
    def _least(self) -> int:
        return 1 if self._few else QUESTIONS.least

    def _round(self, share: int) -> bool:
        """One round of checking; whether the candidate was wrong on any question."""
        assert self.state.fit is not None
        candidate = self.state.fit.candidate
        unit = with_box_operands(candidate.instruction, self.own)
        drawn = list(self._drawn(unit, share, self.turn))
        self.turn += 1
        self._report_progress("checking", self.turn, 0)
        operands = joined([part for _, part in drawn])
        operands = with_kept_loads(unit, operands)
        # 1. One batch for all kinds and aims, compared with the candidate.
        answers = self.box.answer(operands)  # at once: one call may be one run of a simulator
        operands = self.own.resolve(operands, answers)
        wrong = np.asarray(unit.stateless.dot(**operands) != answers)
        if self.own.pattern is not None:  # the bank has no metadata, which are part of the question
            again = evenly(np.flatnonzero(wrong), min(QUESTIONS.wrong_again, self._left))
            some = picked(operands, again)
            self._stop_if_changed(changed_answer(self.box, some, answers[again]))
        if len(self.checked) * self.takes.k < QUESTIONS.checked:
            kinds = [kind for kind, _ in drawn for _ in range(share)]
            self.checked.add_each(kinds, selected(self.own, operands), answers)
        # 2. Counts by kind; a few counterexamples of each join the bank.
        wrong_kinds: list[tuple[str, Operands, Any]] = []
        for index, (kind, _) in enumerate(drawn):
            hits = np.flatnonzero(wrong[index * share : (index + 1) * share])
            before = self.state.differing.get(kind, (0, 0))
            self.state.differing[kind] = before[0] + len(hits), before[1] + share
            if len(hits):
                taken = index * share + hits[: QUESTIONS.counterexamples]
                few = picked(operands, taken)
                wrong_kinds.append((kind, few, answers[taken]))
        for kind, part, codes in wrong_kinds:
            self._keep(kind, part, codes)
        # Small counterexamples have few terms, so fewer changes explain them.
        if wrong_kinds and self.own.pattern is None:
            self._shrink(candidate, wrong_kinds)
        return bool(wrong_kinds)

    def _drawn(self, unit: Instruction, share: int, turn: int) -> Iterator[tuple[str, Operands]]:
        """Operands of every kind: drawn from the formats alone, aimed at the candidate's steps, and at those
        of another unit. Two similar units differ where the widths of the other one end."""
        others = self._others_aimed_at(turn)
        for index, kind in enumerate(stimuli.KINDS):
            targets = enumerate((self.own, unit, others[index % len(others)]))
            aims = (
                list(targets)
                if self._aims == QUESTIONS.aims
                else [list(targets)[(turn + index) % QUESTIONS.aims]]
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
        """In turns, the candidate with wider alignments (a different width for each kind), and the best
        candidate of another shape."""
        assert self.state.fit is not None
        candidate = self.state.fit.candidate
        if turn % 2 and len(self.ranked) > 1:
            found = [self.ranked[1 + turn // 2 % (len(self.ranked) - 1)].candidate]
        else:
            first = turn // 2 % len(QUESTIONS.wider)
            more = (*QUESTIONS.wider[first:], *QUESTIONS.wider[:first])
            found = [fitting.widened(candidate, bits) or candidate for bits in more]
        return [with_box_operands(one.instruction, self.own) for one in found]

    def _keep(self, kind: str, operands: Operands, answers: Any) -> None:
        """Adds counterexamples to the bank; those of a sparse box as the selected products."""
        self.bank.add(kind, selected(self.own, operands), answers)

    def _shrink(self, candidate: Candidate, wrong: list[tuple[str, Operands, Any]]) -> None:
        """Adds the simplest forms of a few counterexamples to the bank, with all queries on the way."""
        for _, operands, _ in wrong[: QUESTIONS.shrunk]:
            queried: list[tuple[Operands, Any]] = []

            def fails(batch: Operands, queried: list[tuple[Operands, Any]] = queried) -> Any:
                count = len(batch["a"])
                some = evenly(np.arange(count), QUESTIONS.shrinking)
                given = picked(batch, some)
                put, answers = self.dense.ask(given)
                queried.append((put, answers))
                differ = np.zeros(count, bool)
                differ[some] = (candidate.dot(**put) != answers) & (put["c"] == given["c"])
                return differ

            first = picked(operands, 0)
            least = minimise(self.takes, first, fails, rounds=12)
            batch = picked(least, None)
            self.bank.add("shrunk", *self.dense.ask(batch))
            most = QUESTIONS.shrunk_kept
            for part, answers in queried[-3:]:
                self.bank.add("shrunk", picked(part, slice(most)), answers[:most])

    @property
    def _left(self) -> int:
        """Dot products left in the budget."""
        return self.dense.asks - self.dense.queries

    @property
    def _queries(self) -> int:
        """Dot products that the box answered, including those before a resume."""
        return self.before + self.box.queries

    def _final_queries(self, operands: Operands) -> tuple[Operands, Bits]:
        """A few more queries as they were sent, with the answers, within the limits."""
        if len(operands["a"]) > self._left:
            raise BudgetEnded
        return self.dense.ask(operands)
