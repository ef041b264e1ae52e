"""The dissection: query the box, fit a candidate, query again until no answer contradicts the candidate.

First the box itself is checked (does the same query always have the same answer?). Masks then show the order
of the sum, and operands of every kind the rest. The skeletons of that order are fitted to all answers. The
best candidate is checked on operands drawn for it; each counterexample is shrunk, joins the bank, and the
candidate is fitted again. The final candidate has been compared with every recorded answer.

A question, or query, is one dot product that the box is given; its answer is the code of d. The bank holds
the questions and answers to which candidates are fitted.
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
from golden.files import output
from golden.identify.blackbox import discriminate, early_overflow, fitting, memory, starting_points, structure
from golden.identify.blackbox.box import (
    Bank,
    Box,
    BudgetEnded,
    as_taken,
    dense_view,
    keeping,
    mode_view,
    selected,
)
from golden.identify.blackbox.candidates import Candidate, meant
from golden.identify.blackbox.candidates import candidate as made_candidate
from golden.identify.blackbox.early_overflow import ONE, end_of_products, lowered, of_numbers, overflows_early
from golden.identify.blackbox.evidence import (
    SHRINK_ROUNDS,
    Evidence,
    Forced,
    Property,
    forced,
    meetings,
    shrunk,
    weigh,
)
from golden.identify.blackbox.ignored_bits import find_ignored_bits
from golden.identify.blackbox.missing_operands import as_own, with_all
from golden.identify.blackbox.moves import Move
from golden.identify.blackbox.naming import nearest, with_names
from golden.identify.blackbox.neighbourhood import nan_words
from golden.identify.blackbox.one_term import one_sided, with_register_limits
from golden.identify.blackbox.policy import QUESTIONS, STARTS, TIMES
from golden.identify.blackbox.product_groups import find_product_groups
from golden.identify.blackbox.questions import KIND as CODES
from golden.identify.blackbox.questions import KINDS as FEW_TERMS
from golden.identify.blackbox.questions import SIGNS, Coverage, simple, zero_c
from golden.identify.blackbox.recordings import Recording, dissect_recording
from golden.identify.blackbox.repeatability import Changed, Repeated, changed_answer, check_repeatability
from golden.identify.blackbox.report import IN_TURNS, Example, Found, of_modes, shortened
from golden.identify.blackbox.sum_order import KIND as MASKS
from golden.identify.blackbox.sum_order import find_order
from golden.identify.blackbox.templates import grouped, skeletons, uncommon
from golden.identify.blackbox.unexplained import (
    Law,
    broken,
    by_magnitude,
    unexplained,
    without_invented_words,
)
from golden.identify.minimising import costs, minimise
from golden.identify.sample import evenly, joined, picked
from golden.identify.search import seldom_collected
from golden.kernels.sum_tree import Node
from golden.model.instruction import Instruction
from golden.number.formats import Format, to_float
from golden.program.program import ABSENT
from golden.program.signature import Bits, Operands
from golden.unit import Function, FunctionUnit, Unit, name_of, signature_of
from golden.vectors.vectorset import with_kept_loads

Progress = Callable[[str, int, int], None]
Numbers = npt.NDArray[np.int64]
_ORDINARY = (
    MASKS,
    *("narrow", "wide", "cancelling", "alignment_edge", "equal_exponents", "c_dominant", "half_ulp"),
    *("alignment_one_term", "tie", "deep_cancellation", discriminate.TIES),
)
"""Kinds that distinguish orders, widths and roundings, away from the ends of the formats."""
_SHOWN = "shown in the report"
_SOLVED = "found by a solver"
_NO_WORDS = "the schema of units has no words for the candidate"
_RESUME = "argument 'resume' (option --continue)"


@seldom_collected()
def dissect(
    box: Unit | Function | Recording,
    formats: Mapping[str, str | Format] | None = None,
    k: int | None = None,
    *,
    seconds: float = 60,
    asks: int = 400_000,
    seed: int = 0,
    progress: Progress | None = None,
    resume: str | Path | None = None,
    near: Instruction | None = None,
    solver: float = 0.0,
    **more: Any,
) -> Found:
    """Finds the specification of a black box.

    Args:
        box: a unit or a recording (`formats` and `k` are their own), or a function f(a, b, c[, scale_a,
            scale_b, metadata]) -> d on arrays of raw codes, a and b (n, k), c and d (n,).
        formats: of a function: names or formats by operand, {"a": "f16", "b": "f16", "c": "f32", "d": "f32"};
            with scales scale_a and scale_b, too.
        k: of a function: products of one dot product.
        seconds: no query is sent after this time.
        asks: the query budget in dot products, at least 500; a small budget decides little.
        seed: of the random operands; equal seeds send a box the same queries, as long as its answers are
            the same and no time limit interferes.
        progress: called with (what is done, done, all).
        resume: a file of questions, answers and the candidate. If it exists, its dissection is continued with
            a new budget of `seconds` and `asks`; it is written at the end.
        near: what the box is meant to be: the first start, with no more credit than any other.
        solver: seconds for a solver, of `seconds`, with values of keys that no question separates: it proves
            that they give the same unit, or finds operands for a query. 0: none; nor if it is not installed
            (`mmagold[prove]`).
        more: of a function: scale_block and pattern, as Signature has them.

    Raises:
        OperandError: the box cannot be queried this way, does not answer, or contradicts an answer in
            `resume`; `near` takes other operands. FileFormatError: `resume` is of another box or version, or
            cannot be written.
    """
    if isinstance(box, Recording):
        if near is not None:
            raise OperandError(f"{box.name} is a recording: argument 'near' (option --near) is for units")
        if formats is not None or k is not None or more or resume is not None:
            if resume is not None:
                raise OperandError(
                    f"{box.name} is a recording, which is not continued: {_RESUME} is for units"
                )
            raise OperandError(
                f"{box.name} is a recording, which has formats and k of its own: leave them out"
            )
        if not seconds > 0:
            raise OperandError(f"argument 'seconds' is {seconds}, expected more than 0")
        return dissect_recording(box, seconds, seed, progress)
    unit = _as_unit(box, formats, k, more)
    if asks < QUESTIONS.smallest:
        raise OperandError(f"argument 'asks' is {asks}, expected {QUESTIONS.smallest} or more")
    if not seconds > 0:
        raise OperandError(f"argument 'seconds' is {seconds}, expected more than 0")
    if signature_of(unit).modes is not None:
        if resume is not None:
            raise OperandError(f"{name_of(unit)} has modes: {_RESUME} is for a unit of one mode")
        return _mode_by_mode(unit, seconds, asks, seed, progress, near, solver)
    if near is not None and near.mode_units:
        raise OperandError(f"argument 'near' has modes, {name_of(unit)} has none: name a unit without")
    unit = with_all(unit)
    start = None if near is None else _meant(unit, near)
    if resume is not None:
        output.check(resume)
    begun = time.monotonic()
    unread = find_ignored_bits(unit, asks, seconds, lambda *numbers: np.random.default_rng([seed, *numbers]))
    seconds -= time.monotonic() - begun
    search = _Search(unread.unit, seconds, asks - unread.queries, seed, progress, near=start, solver=solver)
    if resume is not None and Path(resume).exists():
        search.remember(resume)
    try:
        found = search.run()
    finally:  # also of one that was interrupted
        if resume is not None:
            search.keep(resume)
    undecided = (*found.undecided, *unread.open)
    return replace(found, not_read=unread.said, undecided=undecided, asked=found.asked + unread.queries)


def _as_unit(
    box: Any, formats: Mapping[str, str | Format] | None, k: int | None, more: dict[str, Any]
) -> Unit:
    if hasattr(box, "dot") and hasattr(box, "formats"):
        if formats is not None or k is not None or more:
            raise OperandError("arguments 'formats' and 'k' are for a function; a unit has its own")
        unit: Unit = box
    elif not callable(box):
        raise OperandError(f"argument 'box' is {type(box).__name__}, expected a unit or a function")
    elif formats is None or k is None:
        raise OperandError("arguments 'formats' and 'k' are missing, expected both with a function")
    else:
        missing = [name for name in "ad" if name not in formats]
        if missing:
            raise OperandError(
                f"argument 'formats' lacks {', '.join(missing)}, expected a, d, and b and c where the "
                "function takes them"
            )
        unit = FunctionUnit(box, {**ABSENT, **formats}, k, getattr(box, "__name__", "function"), **more)
    # What no search knows yet is refused before the first query.
    takes = signature_of(unit)
    if takes.state and takes.pattern is not None:
        raise OperandError(f"{takes.name} keeps its accumulator and is sparse, expected one or the other")
    return unit


def _meant(unit: Unit, near: Instruction) -> Candidate:
    return meant(signature_of(dense_view(unit)), near)


def _mode_by_mode(
    unit: Unit,
    seconds: float,
    asks: int,
    seed: int,
    progress: Progress | None,
    near: Instruction | None,
    solver: float,
) -> Found:
    """Dissects a unit mode by mode. Each search begins with the result of the mode before, and with what the
    mode is meant to be. At the end the queries switch modes, which no search of one mode does."""
    modes, started = signature_of(unit).modes, time.monotonic()
    assert modes is not None
    codes = [code for code, _ in modes.codes()]
    if asks < QUESTIONS.smallest * len(codes):
        raise OperandError(
            f"argument 'asks' is {asks}, expected {QUESTIONS.smallest} or more for each of {len(codes)} modes"
        )
    views = {code: with_all(mode_view(unit, code)) for code in codes}
    own = (
        {} if near is None else {code: _meant(views[code], near.mode_units.get(code, near)) for code in codes}
    )
    found: dict[int, Found] = {}
    before: Candidate | None = None
    # A part of the budget is kept for switching between modes.
    share = min(asks // QUESTIONS.in_turns, 2 * len(stimuli.KINDS) * QUESTIONS.last)
    for turn, code in enumerate(codes):
        # The time left is shared by the modes left; a mode begins with the result of the one before.
        left = (started + seconds - time.monotonic()) / (len(codes) - turn + 1 / QUESTIONS.in_turns)
        each = (asks - share) // len(codes)
        search = _Search(views[code], left, each, seed, progress, before, own.get(code), solver)
        found[code] = search.run()
        before = before if search.state.fit is None else search.state.fit.candidate
    whole = of_modes(name_of(unit), modes, found)
    return whole if whole.instruction is None else _in_turns(unit, whole, share, started + seconds, seed)


def _in_turns(unit: Unit, found: Found, asks: int, deadline: float, seed: int) -> Found:
    """Queries that switch the mode from one dot product to the next, compared with the results of each
    mode."""
    assert found.instruction is not None
    box, own = Box(unit, asks, deadline), found.instruction
    count = asks // len(stimuli.KINDS)
    try:
        parts = [
            stimuli.generate(box.own, kind, count, np.random.default_rng([seed, place]))
            for place, kind in enumerate(stimuli.KINDS)
        ]
        operands = joined(parts)
        answers = box.answer(operands)
    except BudgetEnded:
        said = "the time ended before the modes were tried in turns: no query followed one in another mode"
        return replace(found, undecided=(*found.undecided, said))
    wrong = int((own.stateless.dot(**box.own.resolve(operands, answers)) != answers).sum())
    return replace(
        found,
        differing={**found.differing, IN_TURNS: (wrong, len(answers))},
        asked=found.asked + len(answers),
        fresh=found.fresh + len(answers),
    )


class _Inconsistent(Exception):
    """A repeated question had another answer, so no conclusion from the answers holds."""


@dataclass
class _State:
    """What is known so far."""

    tree: Node | None = None
    fit: fitting.Fit | None = None
    differing: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Results of the checks of the present candidate, without those of the bank."""
    undecided: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Rivals:
    """Candidates in `left`, with the key that each changes, that answer the first `bank_size` questions of
    the bank as the candidate with key `of` does."""

    of: object
    left: list[tuple[str, Candidate]]
    bank_size: int


class _Search:
    """One dissection."""

    def __init__(
        self,
        unit: Unit,
        seconds: float,
        asks: int,
        seed: int,
        progress: Progress | None,
        before: Candidate | None = None,
        near: Candidate | None = None,
        solver: float = 0.0,
    ) -> None:
        self.started = time.monotonic()
        self.solver = solver
        self.deadline = self.started + seconds
        self.reserve = max(TIMES.least, min(seconds / 10, TIMES.neighbours))
        self.codes = Coverage(signature_of(unit))
        self.box = Box(unit, asks, self.deadline, codes=self.codes)
        self.dense = replace(self.box, unit=dense_view(unit))
        self.own, self.takes = self.box.own, self.dense.takes
        self.bank, self.checked = Bank(self.takes), Bank(self.takes)
        self.seed, self.progress, self.state = seed, progress, _State()
        self.starts, self.near = [one for one in (near, before) if one is not None], near
        self.ranked: list[fitting.Fit] = []
        self.turn, self.before, self.remembered = 0, 0, False
        self.repeated = Repeated(0, 0)
        self.changed: Changed | None = None
        # Of the bank: which questions were repeated; how many came first.
        self.confirmed, self.firsts = np.zeros(0, np.bool_), 0
        self.kept_back, self.given = asks // QUESTIONS.kept_back, asks
        self.weighed: tuple[object, Evidence] | None = None
        self.forced: list[Forced] = []
        self.laws: tuple[Law, ...] = ()
        self.rival_rounds: dict[object, int] = {}
        self.clean: dict[object, int] = {}
        self.recalled: object = None
        self.pace = 1.0  # seconds for a question of the last round
        self.orders: list[fitting.Fit] = []
        self.tried: set[str] = set()
        self.rivals: _Rivals | None = None
        self.other_orders: dict[str, list[Candidate]] = {}
        self.plainer: list[fitting.Fit] = []
        self.groups: tuple[tuple[int, ...], ...] = ()
        self.end: int | None = None  # exponent from which products overflow, if most questions show it

    # Resume -------------------------------------------------------------------------------------------------

    def remember(self, path: str | Path) -> None:
        """Continues the dissection of a file.

        Raises:
            FileFormatError: it is of another box or version. OperandError: the box has other answers now.
        """
        kept = memory.load(path, name_of(self.box.unit), self.own, self.takes)
        # Some of the old questions again: answers of another box would mislead every fit.
        some = np.random.default_rng([self.seed, kept.turn]).permutation(len(kept.bank))[: QUESTIONS.resumed]
        if len(some):
            part = kept.bank.part(some)
            try:
                given, answers = self.dense.ask(part.operands)
                again = answers != part.answers
                wrong = int((again & (given["c"] == part.operands["c"])).sum())
            except BudgetEnded:
                raise OperandError(f"{path}: the limits leave no time to repeat its questions") from None
            if wrong:
                said = f"{wrong} of {len(some)} of its questions, repeated, had another answer"
                raise OperandError(f"{path}: {said}: the box is not deterministic, or not the one recorded")
        self.bank, self.state.tree, self.groups, self.turn = kept.bank, kept.tree, kept.groups, kept.turn
        self.codes.add(kept.bank.operands)
        self.remembered, self.before, self.end = len(kept.bank) > 0, kept.queries, kept.end
        # Earlier checks of the candidate count only if it still explains all questions.
        candidate = kept.candidate()
        if candidate is not None:
            wrong = fitting.wrong_of(self.bank, candidate)
            self.state.fit = fitting.Fit(candidate, wrong, list(kept.changes))
            self.state.differing = {} if wrong else kept.differing

    def keep(self, path: str | Path) -> None:
        """Writes the state of the search to a file; nothing for a box that is not deterministic."""
        if self.changed is not None or not len(self.bank):
            return
        fit = self.state.fit
        text = None if fit is None else self._text(fit.candidate, "continued")[0]
        shown = self.state.tree, self.groups
        known = memory.Memory(self.bank, *shown, text, queries=self._queries, turn=self.turn, end=self.end)
        if fit is not None and text is not None:
            known.order, known.changes = fit.candidate.order, fit.changes
            known.differing = self.state.differing
        memory.save(path, name_of(self.box.unit), self.own, known)

    # The whole ----------------------------------------------------------------------------------------------

    def run(self) -> Found:
        """The whole search, or as much of it as the limits allow."""
        state = self.state
        try:
            # 1. Every later stage assumes that an answer depends on the operands alone; if not, stop here.
            self._check_repeatability()
            if not self.remembered:
                # 2. The order of the sum, then the first questions: the bank holds answers of every kind.
                self._report_progress("finding the order of the sum", 0, 1)
                state.tree = self._order()
                self.groups = find_product_groups(self.dense, self.bank, state.tree)
                self._first_questions()
                self._begin_with(self.starts)
            # 3. A candidate with the fewest wrong answers in the bank; not yet checked on other questions.
            self._first_candidate()
            self._ask_laws()
            # 4. After a check that returns True, the last candidate was queried in at least one full round.
            checked = self._check()
            # 5. The evidence may refute the candidate; then it is fitted and checked again.
            while self._shown_wrong() or self.kept_back:
                self.kept_back = 0
                checked = self._check() or checked
            # 6. The box still answers as at the start, so the bank describes one box.
            self._ask_early_again()
        except BudgetEnded:
            checked = False
        except _Inconsistent:
            checked = True
        if self.changed is None:
            checked = self._fit_to_the_last() and checked
        if not checked:
            late = self.dense.left < self.reserve or self.dense.asks < self.given
            what = "time" if late else "number of questions"
            state.undecided.append(f"the {what} that was given ended before the search did")
        return self._found()

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
        most = self.given if each * self.given < share else so_far + int(share / each)
        self.box.asks = self.dense.asks = min(self.given, most)
        self.kept_back = min(self.kept_back, self.dense.asks // QUESTIONS.kept_back)

    def _stop_if_changed(self, changed: Changed | None, again: str = "") -> None:
        """Ends the search if a question had another answer."""
        if changed is not None:
            self.changed = changed
            said = changed.text(self.box.takes.formats)
            self.state.undecided.append(f"{said}; {again}" if again else said)
            raise _Inconsistent

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

    def _order(self) -> Node | None:
        """The order of the sum that masks show; in a small budget masks take a limited part."""
        most = self._left // QUESTIONS.masks if self._few else self._left
        try:
            return find_order(replace(self.dense, asks=self.dense.queries + most), self.bank)
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
        if not self.own.state:
            self._ask_zero_c()
        self._ask_lower()

    def _ask_lower(self) -> None:
        """If most ordinary questions have infinite answers, repeats them and those with few terms with
        smaller products. Single products come first, until none of them is below the least infinite one."""
        most = min(QUESTIONS.lowered, (self.dense.asks - len(self.bank)) // QUESTIONS.lowered_share)
        if most < 1 or not overflows_early(self.bank.of_kinds(frozenset(_ORDINARY))):
            return
        before, end = None, end_of_products(self.bank)
        while end is not None and end != before:
            self._ask_again_lower(ONE, end, most)
            before, end = end, end_of_products(self.bank)
        if end is None:
            return
        self.end = end
        ties = stimuli.generate(self.takes, discriminate.TIES, most, self._rng(1, QUESTIONS.lowered))
        self.bank.add(discriminate.TIES, *self.dense.ask(ties))
        for kind in (*_ORDINARY, *FEW_TERMS):
            self._ask_again_lower(frozenset((kind,)), end, most)

    def _ask_again_lower(self, kinds: frozenset[str], end: int, most: int) -> None:
        """Repeats the first questions of a kind, at most `most`, with all products below 2^end."""
        (kind,), part = kinds, self.bank.of_kinds(kinds)
        first = picked(part.operands, slice(most))
        operands = lowered(self.takes, first, end, self._rng(1, len(self.bank)))
        self.bank.add(kind, *self.dense.ask(operands))

    def _ask_zero_c(self) -> None:
        """Checks whether the sign of a zero c changes any number. Without a change these questions add
        nothing to the earlier ones."""
        each = min(QUESTIONS.zero_c, self.dense.asks // QUESTIONS.zero_c_share)
        fmt, operands = self.takes.formats["d"], zero_c(self.takes, each, self._rng(1, QUESTIONS.zero_c))
        if operands is None or not each:
            return
        operands, answers = self.dense.ask(operands)
        plus, minus = np.asarray(to_float(fmt, answers), np.float64).reshape(2, -1)
        if (np.isfinite(plus) & np.isfinite(minus) & (plus != minus)).any():
            self.bank.add(SIGNS, operands, answers)

    def _begin_with(self, starts: Sequence[Candidate]) -> None:
        """Starts with the nearest of the intended unit and the candidate of another mode, after single
        changes."""
        made = [made_candidate(self.takes, one.operations, one.order) for one in starts]
        fits = [fitting.Fit(one, fitting.wrong_of(self.bank, one)) for one in made if one is not None]
        if fits:
            first = min(fits, key=lambda one: one.wrong)
            self.state.fit = fitting.fit(self.bank, first, time.monotonic() + self.dense.left / TIMES.sharers)

    def _first_candidate(self) -> None:
        kept = self.state.fit
        ordinary = self.bank.of_kinds(frozenset(_ORDINARY)) if self.takes.formats["d"].is_float else self.bank
        ordinary = ordinary if self.end is None else of_numbers(ordinary)
        if kept is not None and not kept.wrong:
            if self.near is not None:  # the intended unit has to compete with other orders, as any start
                self._rank(ordinary, self._made())
            return
        self._report_progress("fitting orders of the sum", 0, 1)
        # 1. Groups that questions showed, and one's complement: fewer orders, so they are tried before all
        # others.
        of_groups = grouped(self.takes, self.groups) if self.groups and self.state.tree is not None else []
        of_groups = starting_points.counted(self.bank, of_groups)  # masks show nothing: consider all orders
        subtracted = self._made_in_complement(of_groups)
        for some in (subtracted, of_groups):
            if some:
                kept = self._begun(ordinary, some, kept)
                if kept is not None and not kept.wrong:
                    return
        made = self._made()
        self._begun(ordinary, made, kept)
        # 2. All orders of the tree. `orders` keeps the ranking, for later rivals and restarts.
        starts = fitting.various(self.orders, STARTS.fits)
        # 3. The keys found so far in other orders; then starts from the questions with few terms, which no
        # wrong order affects.
        now = self._reordered(made)
        if now is not None and now.wrong:  # the order is wrong, or something apart from the order
            nearest = self._nearer(ordinary, made)
            self._refit([now, *nearest[: STARTS.halved_fits]], fitting.Effort.SINGLE, quick=True)
        elif now is not None:
            self._simpler(now, starts)
        now = self.state.fit
        if now is not None and now.wrong:
            self._also(self._twins(now))
        now = self.state.fit
        # 4. Structures that few units have, only while the candidate is far off: they are many.
        if now is not None and now.wrong > len(self.bank) // STARTS.near:
            self._also(self._uncommon(ordinary))
        # 5. More effort on the best starts. After this stage `fit` is the candidate with the fewest wrong
        # answers.
        for effort in (fitting.Effort.FEW, fitting.Effort.ANY):
            if self.state.fit is not None and self.state.fit.wrong:
                self._refit(self.ranked[: STARTS.fits // 2], effort)

    def _ask_laws(self) -> None:
        """If no start explains all answers, tests whether the order of the sum depends on the magnitudes."""
        fit = self.state.fit
        if fit is not None and fit.wrong and not self.own.state:
            law = by_magnitude(self.dense, self.state.tree)
            self.laws = () if law is None else (law,)

    def _rank(self, ordinary: Bank, made: list[Candidate]) -> None:
        """Ranks skeletons by their wrong answers: the starts, and later the rivals of the result."""
        self.ranked = self.orders = fitting.rank(ordinary, self.bank, made, self.deadline)

    def _made(self) -> list[Candidate]:
        """The skeletons of the order that masks showed."""
        found = with_register_limits(
            self.bank, starting_points.counted(self.bank, skeletons(self.takes, self.state.tree))
        )
        end = self.end
        return found if end is None else [structure.overflowing(one, end) or one for one in found]

    def _made_in_complement(self, of_groups: list[Candidate]) -> list[Candidate]:
        """Skeletons that subtract in one's complement, if the sign of a zero c shows that, or if sums that
        need no rounding are wrong to one side. The nearest order without one's complement is seldom the
        nearest with it."""
        if SIGNS in self.bank.kinds:
            return [new for one in (*of_groups, *self._made()) for new in structure.in_complement(one)]
        if one_sided(self.bank):
            return list(filter(None, map(structure.in_complement_without_c, self._made())))
        return []

    def _begun(self, ordinary: Bank, made: list[Candidate], kept: fitting.Fit | None) -> fitting.Fit | None:
        """The result of the nearest skeletons, or of a candidate that was kept."""
        self._rank(ordinary, made)
        for turn in range(QUESTIONS.between if self.end is not None and self.own.pattern is None else 0):
            if not self._ask_between_orders(ordinary, turn):
                break
            ordinary = of_numbers(self.bank.of_kinds(frozenset(_ORDINARY)))
            self._rank(ordinary, made)
        first = fitting.of_both_kinds(self.ranked, STARTS.first)
        self._refit([kept, *first] if kept is not None else first, fitting.Effort.SINGLE, quick=True)
        now = self.state.fit
        if now is not None and now.wrong:
            self._ask_wrong_again(now.candidate)
        if now is not None and 0 < now.wrong <= STARTS.handful:
            self._query_near(now)
        return self.state.fit

    def _ask_between_orders(self, ordinary: Bank, turn: int) -> bool:
        """Queries that separate the orders ranked first; whether any operands were found for that."""
        those = early_overflow.alike_so_far(self.orders, len(ordinary))
        if len(those) < 2 or self.end is None:
            return False
        found = early_overflow.between(those, self.end, partial(self._rng, 2000 + turn))
        if found is not None and len(found["a"]) <= self.dense.asks // QUESTIONS.lowered_share:
            self.bank.add(discriminate.TIES, *self.dense.ask(found))
            return True
        return False

    def _query_near(self, near: fitting.Fit) -> None:
        """One round aimed at a candidate that is wrong on a handful of questions. They show too little of
        what it lacks, and any other attempt costs more than queries aimed at it."""
        share = min(QUESTIONS.growth[0], self._share_left() // 3)
        if share >= self._least and self.dense.left > self.reserve:
            self._round(share)
            self.state.differing = {}
            self._refit([near], fitting.Effort.SINGLE, quick=True)

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
            self._refit([*starts, now], fitting.Effort.SINGLE, quick=True)
            every = {one.candidate.operations: one for one in (*before, *self.ranked)}
            self.ranked = sorted(every.values(), key=lambda one: one.wrong)

    def _twins(self, now: fitting.Fit) -> list[fitting.Fit]:
        """The best one, and the order that was ranked first, in more operations."""
        first = [now, *self.orders[:1]]
        return [
            fitting.Fit(two, one.wrong, one.changes)
            for one in first
            for two in structure.twins(one.candidate)
        ]

    def _uncommon(self, ordinary: Bank) -> list[fitting.Fit]:
        """Rare structures after a few changes each, used when no other start is near. They join the
        orders."""
        before, until = self.orders, time.monotonic() + self.dense.left / TIMES.sharers
        first = starting_points.rounded_first(self.bank)
        forms = [*uncommon(self.takes), *(uncommon(self.takes, first) if first is not None else ())]
        made = with_register_limits(self.bank, starting_points.counted(self.bank, forms))
        ranked = fitting.rank(ordinary, self.bank, made, until)
        self.orders = sorted([*before, *ranked], key=lambda one: one.wrong)
        near = replace(fitting.hints(self.bank), wide=False)
        return fitting.halved(ordinary, fitting.various(ranked, STARTS.halved), near, until)[
            : STARTS.halved_fits
        ]

    def _simpler(self, found: fitting.Fit, starts: list[fitting.Fit]) -> None:
        """Takes a start with at most half the steps that ranked equally, if it explains all answers, too. A
        program with few steps has fewer keys that no question decides."""
        before, nearest = self.ranked, min((one.wrong for one in starts), default=0)
        near = [one for one in starts if one.wrong <= nearest + nearest // 4]
        few = [one for one in near if 2 * one.steps <= found.steps][: STARTS.first]
        if few:
            self._refit(few, fitting.Effort.SINGLE, quick=True)
            now = self.state.fit
            if now is None or now.wrong:
                self.state.fit, self.ranked = found, before

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

    def _refit(self, starts: list[fitting.Fit], effort: fitting.Effort, quick: bool = False) -> None:
        """Fits candidates until one explains the bank; without one keeps the nearest, and ranks the others
        behind it. `quick`: each start gets a short time, and the best continue; one that is near continues at
        once."""
        best: fitting.Fit | None = None
        fits: list[fitting.Fit] = []
        end = time.monotonic() + TIMES.fits * self.dense.left
        for turn, start in enumerate(starts):
            if time.monotonic() > end:
                break
            self._report_progress(f"fitting: {start.candidate.order}", turn, len(starts))
            # The bank may have grown since the start was counted.
            now = fitting.Fit(start.candidate, fitting.wrong_of(self.bank, start.candidate), start.changes)
            if effort > fitting.Effort.SINGLE and best is not None and self._is_hopeless(now, best):
                fits.append(now)
                continue
            # The time left is shared: no start takes it all, and the best ones continue later.
            here = time.monotonic()
            until = here + (end - here) / (
                min(len(starts) - turn, TIMES.sharers) if not quick else TIMES.quick
            )
            done = fitting.fit(self.bank, now, until, effort)
            if quick and 0 < done.wrong < len(self.bank) // STARTS.near:  # costs nothing if no change helped
                until = time.monotonic() + (end - time.monotonic()) / TIMES.sharers
                done = fitting.fit(self.bank, done, until, effort)
            fits.append(done)
            if best is None or done.wrong < best.wrong:
                best = done
            if best.wrong == 0:
                break
        # Afterwards the candidate has the fewest wrong answers of all these starts.
        self.state.fit = best or self.state.fit
        if len(fits) > 1:
            self.ranked = sorted(fits, key=lambda one: one.wrong)

    def _is_hopeless(self, one: fitting.Fit, best: fitting.Fit) -> bool:
        """Whether a start is far off while another one is near."""
        return one.wrong > len(self.bank) // STARTS.hopeless and best.wrong < len(self.bank) // STARTS.near

    # Checking -----------------------------------------------------------------------------------------------

    def _check(self) -> bool:
        """Checks the candidate on operands of every kind until the limits end. After a counterexample it is
        fitted again, with more effort each time that did not help. Returns whether the last candidate was
        checked."""
        efforts = list(fitting.Effort)
        explained = (
            self.state.fit
        )  # the last candidate without known errors: partial explanations may mislead
        while self.state.fit is not None:
            fit, candidate = self.state.fit, self.state.fit.candidate
            left = self._share_left()  # a round that finds a counterexample leaves budget for the next ones
            share = min(
                QUESTIONS.growth[min(self.turn, len(QUESTIONS.growth) - 1)],
                max(left // 3, min(left, QUESTIONS.last)),
            )
            if share < self._least or self.dense.left < self.reserve:
                if self.state.differing:
                    self._ask_the_rest()
                return bool(self.state.differing)
            # The candidate is wrong on the bank: change it. After this branch its checks count from zero.
            if fit.wrong:
                self._ask_wrong_again(candidate)
                far = fit.wrong > len(self.bank) // STARTS.far and efforts[:1] == [fitting.Effort.ANEW]
                others = self._others(fit) if far or not efforts else []
                if others:
                    self._refit([*others, fit], fitting.Effort.ANY)
                    self.state.differing = {}
                    continue
                if not efforts:
                    if not self._one_more_round(fit, share):
                        return True
                    efforts = list(fitting.Effort) if self.state.fit.wrong > fit.wrong else efforts
                    continue
                effort = efforts.pop(0)
                few = effort is fitting.Effort.FEW and fit.wrong <= STARTS.handful
                if few or effort is fitting.Effort.ANEW:  # few wrong answers show little: collect more first
                    self._round(share)
                    fit = replace(fit, wrong=fitting.wrong_of(self.bank, candidate))
                if effort is fitting.Effort.ANEW:
                    efforts = list(fitting.Effort) if self._anew(fit) else efforts
                    continue
                kept = STARTS.fits // 2 if effort < fitting.Effort.INSTEAD else 2
                others = self._others(explained or fit) if effort is fitting.Effort.FEW else []
                self._refit([*others, fit, *self.ranked[1:kept]], effort)
                self.state.differing = {}
                continue
            # The candidate explains the whole bank: search a counterexample in new questions, then in
            # recorded ones.
            efforts, explained = list(fitting.Effort), fit
            self.tried.clear()
            wrong = self._round(share) or self._recall(candidate)
            # After some clean rounds, use questions that the remaining rivals answer differently.
            turns = self.rival_rounds.get(candidate.key, 0)
            self.clean[candidate.key] = 0 if wrong else self.clean.get(candidate.key, 0) + 1
            ready = self.clean[candidate.key] >= (QUESTIONS.clean if share > QUESTIONS.last else 1)
            if ready and turns < len(QUESTIONS.separating):
                self.rival_rounds[candidate.key] = turns + 1
                wrong = self._separate_rivals(fit, QUESTIONS.separating[turns], far=turns > 0)
                if self._take_other(fit, wrong):
                    continue
            if wrong:  # the checks were of a candidate that has to change; the bank is counted again
                self.state.fit = replace(fit, wrong=fitting.wrong_of(self.bank, candidate))
                self.state.differing = {}
        return False

    def _one_more_round(self, fit: fitting.Fit, share: int) -> bool:
        """One more round after all efforts failed; whether the search goes on. A handful of wrong answers
        shows little, and one more counterexample can show what the candidate lacks."""
        self._round(share)
        self.state.fit = replace(fit, wrong=fitting.wrong_of(self.bank, fit.candidate))
        return fit.wrong <= STARTS.handful

    def _recall(self, candidate: Candidate) -> bool:
        """Compares a candidate with the questions of all earlier rounds, which cost no query. Some
        counterexamples of each kind join the bank; whether there are any."""
        known = candidate.key, len(self.checked)
        if self.recalled == known:
            return False
        self.recalled = known
        wrong = self.checked.some_wrong(candidate.program, QUESTIONS.taken)
        self.bank.take(wrong)
        return len(wrong) > 0

    def _anew(self, fit: fitting.Fit) -> bool:
        """Whether another start, fitted from the beginning, explains more."""
        self.state.fit, self.state.differing = fit, {}
        self._also(starting_points.anew(fit.candidate, self.orders, self.bank, STARTS.anew))
        return self.state.fit.wrong < fit.wrong

    def _ask_the_rest(self) -> None:
        """Spends the queries of one moment after the time for fits has ended. A candidate that they refute
        can no longer be corrected, and is not reported as explained."""
        each = int(min(TIMES.moment, self.dense.left / 4) / self.pace) // (self._aims * len(stimuli.KINDS))
        share = min(self._share_left(), each)
        if share >= self._least:
            self._round(share)

    def _fit_to_the_last(self) -> bool:
        """Fits once more if the queries have ended, but not the time, and the last ones refute a candidate
        that is near. The changed candidate is not checked any more, so it is not reported as explained.
        Returns whether nothing changed."""
        first = self.state.fit
        if first is None or self._share_left() >= self._least:
            return True
        self.state.fit = replace(first, wrong=fitting.wrong_of(self.bank, first.candidate))
        for effort in fitting.Effort:
            fit = self.state.fit
            if not 0 < fit.wrong <= len(self.bank) // STARTS.far or self.dense.left < self.reserve:
                break
            self._refit([fit, *self.ranked[1 : STARTS.fits // 2]], effort)
            now = self.state.fit
            if now.candidate.key != fit.candidate.key:
                self._recall(now.candidate)
                wrong = fitting.wrong_of(self.bank, now.candidate)
                self.state.fit, self.state.differing = replace(now, wrong=wrong), {}
        return self.state.fit.candidate.key == first.candidate.key

    def _others(self, fit: fitting.Fit) -> list[fitting.Fit]:
        """A few other orders of the sum that were not fitted to these counterexamples. If no key explains the
        counterexamples, they may show the order."""
        until = time.monotonic() + min(TIMES.orders, self.dense.left / 8)
        starts = discriminate.other_starts(fit.candidate, self.orders, self.bank, until)
        found = [one for one in starts if one.candidate.order not in self.tried][: STARTS.others]
        self.tried.update(one.candidate.order for one in found)
        return found

    def _separate_rivals(self, fit: fitting.Fit, each: int, far: bool) -> bool:
        """Queries that the candidate and its rivals, which agree on the whole bank, answer differently;
        whether the candidate was wrong on any. `far`: as in `_rivals`."""
        self._report_progress("separating rivals", self.turn, 0)
        candidate, rivals = fit.candidate, self._rivals(fit, far)
        rng, end = partial(self._rng, 1000 + self.turn), time.monotonic() + self._separation_seconds
        drawn = [
            discriminate.questions(candidate, rivals, each, rng, end),
            discriminate.below_the_last_bit(candidate, each // 2, partial(rng, 0)),
        ]
        parts = [one for one in drawn if one is not None]
        if not parts:
            return False
        whole = joined(parts)
        some = evenly(np.arange(len(whole["a"])), self._left)
        whole, answers = self._final_queries(picked(whole, some))
        self.bank.add("between rivals", whole, answers)
        return bool((candidate.dot(**whole) != answers).any())

    def _take_other(self, fit: fitting.Fit, wrong: bool) -> bool:
        """Takes a program with other keys that explains all answers, too, if the candidate was wrong on the
        queries between the two, or is longer. It is then checked as any other."""
        banks = self.bank, self.checked
        left = [one for one in self.plainer if all(b.explained(one.candidate.program) for b in banks)]
        if not left or not (
            wrong or discriminate.words(left[0].candidate) < discriminate.words(fit.candidate)
        ):
            return False
        self.state.fit, self.state.differing = fitting.Fit(left[0].candidate, 0, left[0].changes), {}
        return True

    def _rivals(self, fit: fitting.Fit, far: bool) -> list[tuple[str, Candidate]]:
        """Programs that answer the whole bank as a candidate does, with the key that each changes. `far`:
        also programs more than one key away. They cost more to find, so the neighbours are separated
        first."""
        candidate = fit.candidate
        known = self.rivals
        if known is not None and known.of == candidate.key:  # the bank may have grown since
            new = self.bank.part(np.arange(known.bank_size, len(self.bank)))
            left = [(key, one) for key, one in known.left if not new.wrong(one.program).any()]
        else:
            end = time.monotonic() + self._separation_seconds
            changes = discriminate.neighbours(candidate, self._words(), causes=True)
            left, self.plainer = discriminate.alike(candidate, self.bank, changes, end), []
        if far:
            others = [(discriminate.ORDER, one) for one in self._other_orders(candidate)]
            self.plainer = discriminate.plainer(fit, self.bank, time.monotonic() + self._separation_seconds)
            left = [*others, *((discriminate.OTHER_WORDS, one.candidate) for one in self.plainer), *left]
        left = discriminate.apart(candidate, left)
        self.rivals = _Rivals(candidate.key, left, len(self.bank))
        return left

    def _other_orders(self, candidate: Candidate) -> list[Candidate]:
        """Programs with other orders that explain the whole bank, too. They are searched once for all
        candidates of one order: what did not explain the smaller bank does not explain the larger one."""
        if candidate.order not in self.other_orders:
            until = time.monotonic() + min(TIMES.rival_orders, self.dense.left / 8)
            found = discriminate.other_orders(candidate, self.orders, self.bank, until)
            self.other_orders[candidate.order] = list(found)
        return [one for one in self.other_orders[candidate.order] if self.bank.explained(one.program)]

    @property
    def _separation_seconds(self) -> float:
        return min(TIMES.separating, self.dense.left / 4)

    def _neighbours(self, candidate: Candidate) -> list[Move]:
        return discriminate.neighbours(candidate, self._words())

    def _words(self) -> tuple[int, ...]:
        """The NaNs that the box has answered."""
        d = self.takes.formats["d"]
        return nan_words(d, self.bank.answers.tolist()) if d.is_float else ()

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
        unit = as_taken(candidate.instruction, self.own)
        begun = time.monotonic()
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
        self.pace = max(time.monotonic() - begun, TIMES.shortest_round) / len(answers)
        wrong_kinds: list[tuple[str, Operands, Any]] = []
        for index, (kind, _) in enumerate(drawn):
            hits = np.flatnonzero(wrong[index * share : (index + 1) * share])
            before = self.state.differing.get(kind, (0, 0))
            self.state.differing[kind] = before[0] + len(hits), before[1] + share
            if len(hits):
                taken = index * share + hits[: QUESTIONS.taken]
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
                yield kind, self._every_second_lower(operands, rng)
        if parts := self._parts_of_codes:
            codes = self.codes.questions(parts * share, self._rng(2 + turn, len(stimuli.KINDS)))
            for part in range(parts):
                yield CODES, {name: one[part * share :][:share] for name, one in codes.items()}

    def _every_second_lower(self, operands: Operands, rng: np.random.Generator) -> Operands:
        """Operands of which every second dot product has smaller products, if most products overflow."""
        if self.end is None or self.own.pattern is not None or self.own.state:
            return operands
        lower = lowered(self.own, operands, self.end, rng)
        for name, codes in operands.items():
            lower[name][::2] = codes[::2]
        return lower

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
        return [as_taken(one.instruction, self.own) for one in found]

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
            least = minimise(self.takes, first, fails, rounds=SHRINK_ROUNDS)
            batch = picked(least, None)
            self.bank.add("shrunk", *self.dense.ask(batch))
            most = QUESTIONS.shrunk_kept
            for part, answers in queried[-3:]:
                self.bank.add("shrunk", picked(part, slice(most)), answers[:most])

    # The result ---------------------------------------------------------------------------------------------

    def _found(self) -> Found:
        state, fit = self.state, self._without_invented_words()
        name = name_of(self.box.unit)
        common: dict[str, Any] = {}
        if state.tree is not None:
            common = {"order": state.tree.brackets(), "meetings": meetings(state.tree, self.bank)}
        if fit is None:
            undecided = tuple(state.undecided) or ("no order of the sum could be tried",)
            seconds = time.monotonic() - self.started
            more: dict[str, Any] = {"asked": self._queries, "changed": self.changed, "seconds": seconds}
            return Found(name, None, None, {}, undecided, **more, **common)
        self._recall(fit.candidate)
        # Evidence is worth its queries only for a candidate that no recorded answer contradicts.
        clean = not any(count for count, _ in self._all_counts(fit.candidate).values())
        evidence = self._weigh(fit) if clean else Evidence()
        differing = self._all_counts(fit.candidate)
        wrong = any(count for count, _ in differing.values())
        evidence = Evidence() if wrong else evidence  # a query for the evidence refuted the candidate
        alternatives = {one.key: one.undecided for one in evidence.properties if one.undecided}
        # The unit with the operands of the box, as text, and the instructions of the catalogue that it may
        # be.
        unit = as_own(as_taken(fit.candidate.instruction, self.own), self.own)
        text, unwritten = self._text(fit.candidate, f"dissected: {name}")
        known = () if wrong else self._known(unit)
        near = None if known or not evidence.properties else nearest(unit.stateless, alternatives)
        if text is not None and (known or near is not None):
            own = as_own(keeping(fit.candidate.instruction, self.own), self.own)
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
            asked=self._queries,
            seconds=time.monotonic() - self.started,
            **common,
        )

    def _without_invented_words(self) -> fitting.Fit | None:
        """The candidate that is reported; if it was changed, it is compared with all recorded answers."""
        fit = self.state.fit
        new = None if fit is None else without_invented_words(fit, self.bank)
        if new is not None and new is not fit:
            wrong = self.checked.wrong(new.candidate.program)
            self.state.fit, self.state.differing = new, self.checked.counts(wrong)
        return new

    def _with_repeated(self, properties: tuple[Property, ...]) -> tuple[Property, ...]:
        """The properties, preceded by what every key relies on: that answers repeat."""
        if not properties or not self.repeated.count:
            return properties
        found = self.repeated
        first = Property("an answer", "that of its operands", 0, (), (), said=found.said, queries=found.count)
        return first, *properties

    @property
    def _left(self) -> int:
        """Dot products left in the budget."""
        return self.dense.asks - self.dense.queries

    @property
    def _queries(self) -> int:
        """Dot products that the box answered, including those before a resume."""
        return self.before + self.box.queries

    def _text(self, candidate: Candidate, title: str) -> tuple[str | None, str]:
        """The candidate as YAML, if the text reads back as a unit with the same answers; if not, the
        reason."""
        own = as_own(keeping(candidate.instruction, self.own), self.own)
        text = unit_text(own, "dissected", title, editor=False)
        if text is None:
            return None, _NO_WORDS
        try:
            again = build_instruction(yamlfile.parse(text))
        except SpecError as error:
            return None, f"{_NO_WORDS}: {error}"
        expected = candidate.dot(**self.bank.operands)
        given = {name: codes for name, codes in self.bank.operands.items() if name not in self.own.unread}
        if np.array_equal(again.stateless.dot(**given), expected):
            return text, ""
        return None, f"{_NO_WORDS}: its text is read as a unit with other answers"

    def _all_counts(self, candidate: Candidate) -> dict[str, tuple[int, int]]:
        """By kind, the checks of this candidate together with its comparison with the bank."""
        counts = dict(self.state.differing)
        for kind, (wrong, total) in self.bank.counts(self.bank.wrong(candidate.program)).items():
            before = counts.get(kind, (0, 0))
            counts[kind] = before[0] + wrong, before[1] + total
        return counts

    def _example(self, candidate: Candidate) -> Example | None:
        """The simplest question of the bank that the candidate gets wrong."""
        wrong = np.flatnonzero(self.bank.wrong(candidate.program))
        if not len(wrong):
            return None
        part = self.bank.part(wrong)
        place = int(np.argmin(costs(self.takes, part.operands)))
        operands = picked(part.operands, place)
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
        rivals = sorted(self._rivals(fit, far=False), key=lambda rival: discriminate.is_extra(rival[0]))
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

    def _final_queries(self, operands: Operands) -> tuple[Operands, Bits]:
        """A few more queries as they were sent, with the answers, within the limits."""
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
        common = {key: values for key, values in alternatives.items() if not discriminate.is_extra(key)}
        for key, values in common.items():
            shown = ", ".join(shortened(values))
            yield f"{key}: {shown} would have answered every recorded question alike"
        extras = [key for key in alternatives if key not in common]
        if extras:
            yield f"nor is any of these excluded, with some value: {'; '.join(extras)}"


def _untried(evidence: Evidence) -> Iterator[str]:
    if evidence.tried < evidence.neighbours:
        yield (
            f"of {evidence.neighbours:,} changes of one key, {evidence.neighbours - evidence.tried:,} were "
            "not compared with the questions, because the time ended: whether they are excluded is not known"
        )
