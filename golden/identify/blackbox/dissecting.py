"""The dissection: questions, a candidate, and questions again until none is answered otherwise.

First the box itself (does it answer the same question twice the same?), then masks for the order of the sum,
then operands of every kind. The skeletons of that order are fitted to all answers; the one that explains them
is asked about operands drawn for it, each counterexample is shrunk and joins the bank, and it is fitted
again. What stands at the end was held against every answer.
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
from golden.identify.blackbox import between_orders, discriminate, few_terms, fitting, memory, structure
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
from golden.identify.blackbox.evidence import Evidence, Forced, Property, forced, meetings, shrunk, weigh
from golden.identify.blackbox.garbage import seldom_collected
from golden.identify.blackbox.held import held, one_sided
from golden.identify.blackbox.lower import ONE, end_of_products, lowered, of_numbers, overflows_early
from golden.identify.blackbox.moves import Move, nan_words
from golden.identify.blackbox.naming import nearest, with_names
from golden.identify.blackbox.partners import partners
from golden.identify.blackbox.questions import KIND as CODES
from golden.identify.blackbox.questions import KINDS as FEW_TERMS
from golden.identify.blackbox.questions import SIGNS, Coverage, simple, zero_c
from golden.identify.blackbox.recordings import Recording, dissect_recording
from golden.identify.blackbox.repeatability import Changed, Repeated, asked_again, otherwise_now
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
from golden.identify.blackbox.unread import not_read
from golden.identify.minimising import costs, minimise
from golden.identify.sample import evenly
from golden.instruction import Instruction
from golden.kernels.sum_tree import Node
from golden.number.formats import Format, to_float
from golden.program.signature import Bits, Operands
from golden.unit import Function, FunctionUnit, Unit, name_of, signature_of
from golden.vectors.vectorset import with_kept_loads

Progress = Callable[[str, int, int], None]
Numbers = npt.NDArray[np.int64]
_FIRST, _OF_FIRST = 96, 83
"""Questions of each kind before the first candidate; of so many that may be asked, one at most is one of
those."""
_WRONG_AGAIN, _EARLY_AGAIN, _EARLY, _LAST_AGAIN = 48, 16, 256, 64
"""Of the questions that a candidate is wrong on, so many are asked again before anything is made of them,
each once, and so many of the first ones with them; where one has another answer, so many of the first ones
show whether all do. In the end so many are asked once more."""
_BETWEEN = 3
"""Times that orders which are ranked alike are told apart before one is fitted."""
_SIMPLE, _OF_SIMPLE = 20, 800
"""The same of each number of terms and kind; of so many questions that may be asked, one at most is one of
those."""
_ZERO_C, _OF_ZERO_C = 24, 333
"""The same of each kind with c = +0, and as many with -0."""
_MOST_LOWERED, _OF_LOWERED = 320, 24
"""Questions of each kind that are asked once more lower down; of so many that are left, one at most."""
_GROWTH = (64, 256, 1024, 2048)
"""Questions of each kind in the rounds of checking; the last for all further rounds."""
_FAR = 50
"""A candidate that is wrong on more than one in so many adds in another order, rather than with two keys
otherwise: orders come before more effort."""
_LAST = 48
"""Questions of each kind that are asked at once, where there are no more for a third of them."""
_TAKEN = 24
"""Counterexamples of one kind that join the bank in one round."""
_MOST_CHECKED, _RULING_OUT_SECONDS = 1 << 22, 2.5
"""Products in questions of the rounds of checking from which on no more are kept beside the bank: no fit
looks at them, but no candidate stays that is wrong on one, and what they rule out is not called undecided.
The time for that."""
_SHRUNK, _SHRUNK_ASKS = 3, 192
"""Counterexamples that are made simpler in one round, and questions at once for that."""
_MOST_FITS, _FIRST_FITS = 6, 2
"""Starts that are fitted, and how many of them before what few terms show is asked for."""
_HALVED, _HALVED_FITS = 16, 4
"""Starts that take a few changes each before some are fitted, where the first ones explain too little."""
_ALTERNATIVE_SECONDS, _SIMPLER_SECONDS = 5.0, 3.0
"""Time to hold the neighbours of what was found against the questions, and to make those simpler that show
it: all in what is left."""
_TELLING = 3
"""Rounds of checking that find nothing wrong before a candidate is told from its rivals: they cost less. One
where few questions are left."""
_TELLING_SECONDS, _ORDERS_SECONDS = 4.0, 2.0
"""Time for that, and for other orders of the sum."""
_FORCED_SECONDS = 0.5
"""Time to make the counterexamples simpler that forced the changes."""
_RIVAL_ORDERS_SECONDS = 1.0
"""The same for those that are rivals."""
_ANEW = 8
"""Starts that are fitted from the beginning, where no single change of the best candidate helps."""
_OTHERS = 3
"""Other orders that are fitted where no change of a key explains a counterexample."""
_TELLING_DRAWN = (1000, 1000)
"""Operands of each kind that are drawn for that, the first time and the second. Most rivals answer nothing
otherwise: those cost what they are run on."""
_ASKED_AGAIN = 512
"""Questions of a dissection that is continued that the box is asked again."""
_LEAST, _LEAST_SECONDS = 4, 1.0
"""Questions of each kind, and time, that make a round worth its while."""
_FEW_ASKS = 8_000
"""Of fewer questions in all, one of each kind is worth a round, and it is aimed at one unit in turns."""
_SHARE_OF_MASKS = 4
"""Of fewer questions in all, one of so many at most is a mask."""
_SHARE_OF_ANSWERS = 0.6
"""Of the time that is left: so much a slow box may take to answer, the rest is for fits."""
_MOMENT, _SHORTEST = 1.0, 1e-3
"""Seconds for questions that are asked where no time for fits is left, and the least that a round takes."""
_ORDINARY = (
    MASKS,
    *("narrow", "wide", "cancelling", "alignment_edge", "equal_exponents", "c_dominant", "half_ulp"),
    *("alignment_one_term", "tie", "deep_cancellation", discriminate.TIES),
)
"""Kinds that tell orders, widths and roundings, away from the ends of the formats."""
_CODES_FROM, _PARTS_OF_CODES = 2, 4
"""From this round on, so many parts are made of codes that were not asked."""
_SHARE_OF_FITS = 0.6
"""Of the time that is left: the rest is for checking."""
_SHOWN = "shown in the report"
_SOLVED = "found by a solver"
_AIMS = 3
"""Draws of each kind in a round of checking."""
_WIDER = (8, 2, 16, 4)
"""Bits more of alignments that operands are aimed at, in turns: what a unit keeps below the last bit of a
candidate shows where operands have bits there, and none of those that are aimed at the candidate have."""
_KEPT_BACK = 6
"""One of so many questions is kept for after the first report: what it shows is asked, too."""
_SHARERS = 3
"""One start takes a third of the time that is left at most, while others wait; the best go on later."""
_HOPELESS, _NEAR = 8, 100
"""A start that is wrong on more than one of so many is not worth more than single changes where another one
is wrong on fewer than one of so many."""
_HANDFUL = 8
"""Questions that say little of what a candidate lacks that is wrong on them."""
_QUICK = 6
"""The same share where all starts are to be compared soon."""
_NO_WORDS = "the schema of units has no words for the candidate"
_RESUME = "argument 'resume' (option --continue)"
_SMALLEST = 500
"""Questions that every dissection may ask: some to see that answers repeat, some of each kind to make a
candidate from, and some of each kind to check it."""
_SHARE_IN_TURNS = 16
"""One of so many questions is kept for the modes in turns."""


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
        seconds: no question is asked after this time.
        asks: dot products that the box may be asked, at least 500; few of them decide little.
        seed: of the random operands; equal seeds ask a box the same questions, as long as its answers are
            the same and no time ends.
        progress: called with (what is done, done, all).
        resume: a file that keeps questions, answers and the candidate: where it exists the dissection in it
            goes on, with `seconds` and `asks` anew; in the end it is written.
        near: what the box is meant to be: the first start, believed no more than any other.
        solver: seconds for a solver, of `seconds`, with values of keys that no question told apart: it proves
            that they give the same unit, or finds operands to ask. 0: none; nor where it is not installed
            (`mmagold[prove]`).
        more: of a function: scale_block and pattern, as Signature has them.

    Raises:
        OperandError: the box cannot be asked this way, does not answer, or answers otherwise than `resume`
            has it; `near` takes other operands. FileFormatError: `resume` is of another box or version, or
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
    if asks < _SMALLEST:
        raise OperandError(f"argument 'asks' is {asks}, expected {_SMALLEST} or more")
    if not seconds > 0:
        raise OperandError(f"argument 'seconds' is {seconds}, expected more than 0")
    if signature_of(unit).modes is not None:
        if resume is not None:
            raise OperandError(f"{name_of(unit)} has modes: {_RESUME} is for a unit of one mode")
        return _mode_by_mode(unit, seconds, asks, seed, progress, near, solver)
    if near is not None and near.mode_units:
        raise OperandError(f"argument 'near' has modes, {name_of(unit)} has none: name a unit without")
    start = None if near is None else _meant(unit, near)
    if resume is not None:
        output.check(resume)
    begun = time.monotonic()
    unread = not_read(unit, asks, seconds, lambda *numbers: np.random.default_rng([seed, *numbers]))
    seconds -= time.monotonic() - begun
    search = _Search(unread.unit, seconds, asks - unread.asked, seed, progress, near=start, solver=solver)
    if resume is not None and Path(resume).exists():
        search.remember(resume)
    try:
        found = search.run()
    finally:  # also of one that was interrupted
        if resume is not None:
            search.keep(resume)
    undecided = (*found.undecided, *unread.open)
    return replace(found, not_read=unread.said, undecided=undecided, asked=found.asked + unread.asked)


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
        missing = [name for name in "abcd" if name not in formats]
        if missing:
            raise OperandError(f"argument 'formats' lacks {', '.join(missing)}, expected a, b, c and d")
        unit = FunctionUnit(box, formats, k, getattr(box, "__name__", "function"), **more)
    takes = signature_of(unit)
    if takes.state and takes.pattern is not None:
        raise OperandError(f"{takes.name} keeps its accumulator and is sparse, expected one or the other")
    if takes.absent:
        raise OperandError(
            f"{takes.name} has no {' and no '.join(takes.absent)}, expected a unit with a, b and c"
        )
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
    """What a unit is in each mode: each search begins with what was found of the mode before, and what the
    mode is meant to be. In the end the modes are asked in turns, which no search of one mode does."""
    modes, started = signature_of(unit).modes, time.monotonic()
    assert modes is not None
    codes = [code for code, _ in modes.codes()]
    if asks < _SMALLEST * len(codes):
        raise OperandError(
            f"argument 'asks' is {asks}, expected {_SMALLEST} or more for each of {len(codes)} modes"
        )
    views = {code: mode_view(unit, code) for code in codes}
    own = (
        {} if near is None else {code: _meant(views[code], near.mode_units.get(code, near)) for code in codes}
    )
    found: dict[int, Found] = {}
    before: Candidate | None = None
    share = min(asks // _SHARE_IN_TURNS, 2 * len(stimuli.KINDS) * _LAST)
    for turn, code in enumerate(codes):
        left = (started + seconds - time.monotonic()) / (len(codes) - turn + 1 / _SHARE_IN_TURNS)
        each = (asks - share) // len(codes)
        search = _Search(views[code], left, each, seed, progress, before, own.get(code), solver)
        found[code] = search.run()
        before = before if search.state.fit is None else search.state.fit.candidate
    whole = of_modes(name_of(unit), modes, found)
    return whole if whole.instruction is None else _in_turns(unit, whole, share, started + seconds, seed)


def _in_turns(unit: Unit, found: Found, asks: int, deadline: float, seed: int) -> Found:
    """The unit asked in another mode from one dot product to the next, beside what was found of each."""
    assert found.instruction is not None
    box, own = Box(unit, asks, deadline), found.instruction
    count = asks // len(stimuli.KINDS)
    try:
        parts = [
            stimuli.generate(box.own, kind, count, np.random.default_rng([seed, place]))
            for place, kind in enumerate(stimuli.KINDS)
        ]
        operands = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        answers = box.answer(operands)
    except BudgetEnded:
        said = "the time ended before the modes were asked in turns: no mode was asked beside another"
        return replace(found, undecided=(*found.undecided, said))
    wrong = int((own.stateless.dot(**box.own.resolve(operands, answers)) != answers).sum())
    return replace(
        found,
        differing={**found.differing, IN_TURNS: (wrong, len(answers))},
        asked=found.asked + len(answers),
        fresh=found.fresh + len(answers),
    )


class _Otherwise(Exception):
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
        self.reserve = max(_LEAST_SECONDS, min(seconds / 10, _ALTERNATIVE_SECONDS))
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
        self.confirmed, self.firsts = np.zeros(0, np.bool_), 0  # of the bank: what was asked again; and first
        self.kept_back, self.given = asks // _KEPT_BACK, asks
        self.weighed: tuple[object, Evidence] | None = None
        self.forced: list[Forced] = []
        self.laws: tuple[Law, ...] = ()
        self.told: dict[object, int] = {}
        self.clean: dict[object, int] = {}
        self.recalled: object = None
        self.pace = 1.0  # seconds for a question of the last round
        self.orders: list[fitting.Fit] = []
        self.tried: set[str] = set()
        self.rivals: _Rivals | None = None
        self.other_orders: dict[str, list[Candidate]] = {}
        self.plainer: list[fitting.Fit] = []
        self.groups: tuple[tuple[int, ...], ...] = ()
        self.end: int | None = None  # exponent from which on products overflow, where most do

    # Continued ----------------------------------------------------------------------------------------------

    def remember(self, path: str | Path) -> None:
        """Goes on with the dissection in a file.

        Raises:
            FileFormatError: it is of another box or version. OperandError: the box answers otherwise now.
        """
        kept = memory.load(path, name_of(self.box.unit), self.own, self.takes)
        some = np.random.default_rng([self.seed, kept.turn]).permutation(len(kept.bank))[:_ASKED_AGAIN]
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
        self.bank, self.state.tree, self.groups, self.turn = kept.bank, kept.tree, kept.groups, kept.turn
        self.codes.add(kept.bank.operands)
        self.remembered, self.before, self.end = len(kept.bank) > 0, kept.asked, kept.end
        candidate = kept.candidate()
        if candidate is not None:
            wrong = fitting.wrong_of(self.bank, candidate)
            self.state.fit = fitting.Fit(candidate, wrong, list(kept.told))
            self.state.differing = {} if wrong else kept.differing

    def keep(self, path: str | Path) -> None:
        """Writes what is known to a file; nothing of a box that is not deterministic."""
        if self.changed is not None or not len(self.bank):
            return
        fit = self.state.fit
        text = None if fit is None else self._text(fit.candidate, "continued")[0]
        shown = self.state.tree, self.groups
        known = memory.Memory(self.bank, *shown, text, asked=self._asked, turn=self.turn, end=self.end)
        if fit is not None and text is not None:
            known.order, known.told = fit.candidate.order, fit.told
            known.differing = self.state.differing
        memory.save(path, name_of(self.box.unit), self.own, known)

    # The whole ----------------------------------------------------------------------------------------------

    def run(self) -> Found:
        """All of it, or as much as the limits allow."""
        state = self.state
        try:
            self._ask_twice()
            if not self.remembered:
                self._tell("finding the order of the sum", 0, 1)
                state.tree = self._order()
                self.groups = partners(self.dense, self.bank, state.tree)
                self._first_questions()
                self._begin_with(self.starts)
            self._first_candidate()
            self._ask_laws()
            checked = self._check()
            while self._shown_wrong() or self.kept_back:
                self.kept_back = 0
                checked = self._check() or checked
            self._ask_early_again()
        except BudgetEnded:
            checked = False
        except _Otherwise:
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
        if self.dense.asks < _SMALLEST:
            raise self._too_slow()

    def _too_slow(self) -> OperandError:
        each = self.box.meter.each
        seconds = math.ceil(_SMALLEST * each / _SHARE_OF_ANSWERS) + 1
        said = f"takes {each:.3g} s for a dot product, and {_SMALLEST} have to be asked"
        return OperandError(f"{name_of(self.box.unit)} {said}: give it {seconds} s or more (--seconds)")

    def _plan(self) -> None:
        """Asks no more than the box answers in its share of the time that is left: a search that knows how
        few they are asks of everything some, instead of all of the first things."""
        each, so_far = self.box.meter.each, self.box.asked
        share = _SHARE_OF_ANSWERS * max(self.dense.left, 0)
        most = self.given if each * self.given < share else so_far + int(share / each)
        self.box.asks = self.dense.asks = min(self.given, most)
        self.kept_back = min(self.kept_back, self.dense.asks // _KEPT_BACK)

    def _is_otherwise(self, changed: Changed | None, again: str = "") -> None:
        """Ends the search where a question had another answer."""
        if changed is not None:
            self.changed = changed
            said = changed.text(self.box.takes.formats)
            self.state.undecided.append(f"{said}; {again}" if again else said)
            raise _Otherwise

    def _ask_wrong_again(self, candidate: Candidate) -> None:
        """Asks again what a candidate is wrong on, before it is changed for that, and some of the first
        questions: no program explains a box that answers otherwise by chance, or since a while."""
        known = len(self.confirmed)
        self.confirmed = np.pad(self.confirmed, (0, len(self.bank) - known))
        self.firsts = self.firsts or len(self.bank)
        left = np.flatnonzero(self.bank.wrong(candidate.program) & ~self.confirmed)
        if self.own.pattern is not None:  # what was asked with other metadata is another question
            left = left[left < self.firsts]
        again = np.union1d(evenly(left, _WRONG_AGAIN), self._first_ones(_EARLY_AGAIN))
        self.confirmed[again] = True
        self._ask_kept(again)

    def _ask_early_again(self) -> None:
        """In the end, some of the first questions once more: the box may have changed."""
        again = self._first_ones(min(_LAST_AGAIN, self._left))
        with suppress(BudgetEnded):
            self._ask_kept(again)
            self.repeated = self.repeated.and_later(len(again))

    def _first_ones(self, count: int) -> Numbers:
        return evenly(np.arange(self.firsts or len(self.bank)), count)

    def _ask_kept(self, again: Numbers) -> None:
        """Asks questions of the bank once more; early ones, too, where one has another answer."""
        if len(again) > self._left:
            raise BudgetEnded
        kept, early = self.bank.part(again), self.bank.part(self._first_ones(_EARLY))
        then = early.operands, early.answers
        self._is_otherwise(otherwise_now(self.dense, kept.operands, kept.answers, then))

    def _order(self) -> Node | None:
        """The order of the sum, as masks show it; of few questions they take a part at most."""
        most = self._left // _SHARE_OF_MASKS if self._few else self._left
        try:
            return find_order(replace(self.dense, asks=self.dense.asked + most), self.bank)
        except BudgetEnded:
            self.state.undecided.append("too few questions were left to see the order of the sum with masks")
            return None

    def _first_questions(self) -> None:
        questions = self.dense.asks // self.dense.each
        first, each = min(_FIRST, questions // _OF_FIRST), max(1, min(_SIMPLE, questions // _OF_SIMPLE))
        drawn = [
            (kind, stimuli.generate(self.takes, kind, first, self._rng(1, index)))
            for index, kind in enumerate(stimuli.KINDS)
        ]
        drawn += simple(self.takes, each, self._rng(1, len(stimuli.KINDS)))
        kinds = [kind for kind, operands in drawn for _ in operands["c"]]
        together = {name: np.concatenate([part[name] for _, part in drawn]) for name in drawn[0][1]}
        self.bank.add_each(
            kinds, *self.dense.ask(together)
        )  # at once: one call may be one run of a simulator
        if not self.own.state:
            self._ask_zero_c()
        self._ask_lower()

    def _ask_lower(self) -> None:
        """Where most ordinary questions are answered by infinities, the same and those with few terms once
        more, lower down: products alone first, until none of them is below the least that is infinite."""
        most = min(_MOST_LOWERED, (self.dense.asks - len(self.bank)) // _OF_LOWERED)
        if most < 1 or not overflows_early(self.bank.of_kinds(frozenset(_ORDINARY))):
            return
        before, end = None, end_of_products(self.bank)
        while end is not None and end != before:
            self._ask_again_lower(ONE, end, most)
            before, end = end, end_of_products(self.bank)
        if end is None:
            return
        self.end = end
        ties = stimuli.generate(self.takes, discriminate.TIES, most, self._rng(1, _MOST_LOWERED))
        self.bank.add(discriminate.TIES, *self.dense.ask(ties))
        for kind in (*_ORDINARY, *FEW_TERMS):
            self._ask_again_lower(frozenset((kind,)), end, most)

    def _ask_again_lower(self, kinds: frozenset[str], end: int, most: int) -> None:
        """What was asked first of a kind once more, with all products below 2^end; `most` of it."""
        (kind,), part = kinds, self.bank.of_kinds(kinds)
        first = {name: codes[:most] for name, codes in part.operands.items()}
        operands = lowered(self.takes, first, end, self._rng(1, len(self.bank)))
        self.bank.add(kind, *self.dense.ask(operands))

    def _ask_zero_c(self) -> None:
        """Asks whether the sign of a c that is zero changes any number; what it does not change says nothing
        more than the questions before."""
        each = min(_ZERO_C, self.dense.asks // _OF_ZERO_C)
        fmt, operands = self.takes.formats["d"], zero_c(self.takes, each, self._rng(1, _ZERO_C))
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
            self.state.fit = fitting.fit(self.bank, first, time.monotonic() + self.dense.left / _SHARERS)

    def _first_candidate(self) -> None:
        kept = self.state.fit
        ordinary = self.bank.of_kinds(frozenset(_ORDINARY)) if self.takes.formats["d"].is_float else self.bank
        ordinary = ordinary if self.end is None else of_numbers(ordinary)
        if kept is not None and not kept.wrong:
            if self.near is not None:  # what it is meant to be has to hold against other orders, as any start
                self._rank(ordinary, self._made())
            return
        self._tell("fitting orders of the sum", 0, 1)
        of_groups = grouped(self.takes, self.groups) if self.groups and self.state.tree is not None else []
        of_groups = few_terms.counted(self.bank, of_groups)  # where masks show nothing, among all orders
        subtracted = self._made_in_complement(of_groups)
        for some in (subtracted, of_groups):
            if some:
                kept = self._begun(ordinary, some, kept)
                if kept is not None and not kept.wrong:
                    return
        made = self._made()
        self._begun(ordinary, made, kept)
        starts = fitting.various(self.orders, _MOST_FITS)
        now = self._reordered(made)
        if now is not None and now.wrong:  # the order, or what happens beside it
            nearest = self._nearer(ordinary, made)
            self._refit([now, *nearest[:_HALVED_FITS]], fitting.Effort.SINGLE, quick=True)
        elif now is not None:
            self._simpler(now, starts)
        now = self.state.fit
        if now is not None and now.wrong:
            self._also(self._twins(now))
        now = self.state.fit
        if now is not None and now.wrong > len(self.bank) // _NEAR:
            self._also(self._uncommon(ordinary))
        for effort in (fitting.Effort.FEW, fitting.Effort.ANY):
            if self.state.fit is not None and self.state.fit.wrong:
                self._refit(self.ranked[: _MOST_FITS // 2], effort)

    def _ask_laws(self) -> None:
        """Where no start explains all, asks whether the order of the sum depends on the magnitudes."""
        fit = self.state.fit
        if fit is not None and fit.wrong and not self.own.state:
            law = by_magnitude(self.dense, self.state.tree)
            self.laws = () if law is None else (law,)

    def _rank(self, ordinary: Bank, made: list[Candidate]) -> None:
        """Puts skeletons in the order of how near they are: the starts, and the rivals of what is found."""
        self.ranked = self.orders = fitting.rank(ordinary, self.bank, made, self.deadline)

    def _made(self) -> list[Candidate]:
        """The skeletons of the order that masks showed."""
        found = held(self.bank, few_terms.counted(self.bank, skeletons(self.takes, self.state.tree)))
        end = self.end
        return found if end is None else [structure.overflowing(one, end) or one for one in found]

    def _made_in_complement(self, of_groups: list[Candidate]) -> list[Candidate]:
        """Those that subtract in one's complement, where the sign of a zero c shows that, or sums that are
        exact otherwise: the order that is nearest without it is seldom the one that is nearest with it."""
        if SIGNS in self.bank.kinds:
            return [new for one in (*of_groups, *self._made()) for new in structure.in_complement(one)]
        if one_sided(self.bank):
            return list(filter(None, map(structure.in_complement_without_c, self._made())))
        return []

    def _begun(self, ordinary: Bank, made: list[Candidate], kept: fitting.Fit | None) -> fitting.Fit | None:
        """What the nearest of some skeletons come to, or a candidate that was kept."""
        self._rank(ordinary, made)
        for turn in range(_BETWEEN if self.end is not None and self.own.pattern is None else 0):
            if not self._ask_between_orders(ordinary, turn):
                break
            ordinary = of_numbers(self.bank.of_kinds(frozenset(_ORDINARY)))
            self._rank(ordinary, made)
        first = fitting.of_both_kinds(self.ranked, _FIRST_FITS)
        self._refit([kept, *first] if kept is not None else first, fitting.Effort.SINGLE, quick=True)
        now = self.state.fit
        if now is not None and now.wrong:
            self._ask_wrong_again(now.candidate)
        if now is not None and 0 < now.wrong <= _HANDFUL:
            self._ask_beside(now)
        return self.state.fit

    def _ask_between_orders(self, ordinary: Bank, turn: int) -> bool:
        """Asks what tells the orders apart that are ranked first; whether anything was found that does."""
        those = between_orders.alike(self.orders, len(ordinary))
        if len(those) < 2 or self.end is None:
            return False
        found = between_orders.questions(those, self.end, partial(self._rng, 2000 + turn))
        if found is not None and len(found["a"]) <= self.dense.asks // _OF_LOWERED:
            self.bank.add(discriminate.TIES, *self.dense.ask(found))
            return True
        return False

    def _ask_beside(self, near: fitting.Fit) -> None:
        """Asks more about a candidate that is wrong on a handful: those say little of what it lacks, and
        whatever else is tried costs more than questions aimed at it."""
        share = min(_GROWTH[0], self._share_left() // 3)
        if share >= self._least and self.dense.left > self.reserve:
            self._round(share)
            self.state.differing = {}
            self._refit([near], fitting.Effort.SINGLE, quick=True)

    def _reordered(self, made: list[Candidate]) -> fitting.Fit | None:
        """What the first starts came to, or another order with the same ends, where that explains more."""
        now = self.state.fit
        if now is not None and now.wrong:
            until = time.monotonic() + min(_ORDERS_SECONDS, self.dense.left / 8)
            self._also(few_terms.reordered(self.bank, now, made, until)[:_FIRST_FITS])
        return self.state.fit

    def _also(self, starts: list[fitting.Fit]) -> None:
        """More starts, each for a short time, beside those that were ranked."""
        now, before = self.state.fit, self.ranked
        if starts and now is not None:
            self._refit([*starts, now], fitting.Effort.SINGLE, quick=True)
            every = {one.candidate.operations: one for one in (*before, *self.ranked)}
            self.ranked = sorted(every.values(), key=lambda one: one.wrong)

    def _twins(self, now: fitting.Fit) -> list[fitting.Fit]:
        """The best one, and the order that was ranked first, in more operations."""
        first = [now, *self.orders[:1]]
        return [
            fitting.Fit(two, one.wrong, one.told) for one in first for two in structure.twins(one.candidate)
        ]

    def _uncommon(self, ordinary: Bank) -> list[fitting.Fit]:
        """Starts that few units have, a few changes on: where no other is near. They join the orders."""
        before, until = self.orders, time.monotonic() + self.dense.left / _SHARERS
        first = few_terms.rounded_first(self.bank)
        forms = [*uncommon(self.takes), *(uncommon(self.takes, first) if first is not None else ())]
        made = held(self.bank, few_terms.counted(self.bank, forms))
        ranked = fitting.rank(ordinary, self.bank, made, until)
        self.orders = sorted([*before, *ranked], key=lambda one: one.wrong)
        near = replace(fitting.hints(self.bank), wide=False)
        return fitting.halved(ordinary, fitting.various(ranked, _HALVED), near, until)[:_HALVED_FITS]

    def _simpler(self, found: fitting.Fit, starts: list[fitting.Fit]) -> None:
        """Takes a start with half the steps or fewer, which was as near, where that explains all, too: what a
        unit does is said in few steps, and fewer of them have keys that no question decides."""
        before, nearest = self.ranked, min((one.wrong for one in starts), default=0)
        near = [one for one in starts if one.wrong <= nearest + nearest // 4]
        few = [one for one in near if 2 * one.steps <= found.steps][:_FIRST_FITS]
        if few:
            self._refit(few, fitting.Effort.SINGLE, quick=True)
            now = self.state.fit
            if now is None or now.wrong:
                self.state.fit, self.ranked = found, before

    def _nearer(self, ordinary: Bank, made: list[Candidate]) -> list[fitting.Fit]:
        """More starts than widths alone show, by how near a few changes bring them: skeletons with the ends
        that one product and c show, and those that were ranked."""
        until, now = time.monotonic() + self.dense.left / _SHARERS, self.state.fit
        if now is not None and not fitting.wrong_of(ordinary, now.candidate):
            ordinary = self.bank  # what is wrong lies elsewhere: ordinary questions tell no order any more
        more = few_terms.starts(self.bank, ordinary, made, until)
        ranked = fitting.rank_again(ordinary, more, fitting.various(self.orders, _HALVED))
        hints = replace(fitting.hints(self.bank), wide=False)
        return fitting.halved(ordinary, fitting.various(ranked, _HALVED), hints, until)

    def _refit(self, starts: list[fitting.Fit], effort: fitting.Effort, quick: bool = False) -> None:
        """Fits candidates until one explains the bank; else keeps the nearest, and the others behind it.
        `quick`: each for a short time, after which the best go on; one that is near goes on at once."""
        best: fitting.Fit | None = None
        fits: list[fitting.Fit] = []
        end = time.monotonic() + _SHARE_OF_FITS * self.dense.left
        for turn, start in enumerate(starts):
            if time.monotonic() > end:
                break
            self._tell(f"fitting: {start.candidate.order}", turn, len(starts))
            now = fitting.Fit(start.candidate, fitting.wrong_of(self.bank, start.candidate), start.told)
            if effort > fitting.Effort.SINGLE and best is not None and self._is_hopeless(now, best):
                fits.append(now)
                continue
            here = time.monotonic()
            until = here + (end - here) / (min(len(starts) - turn, _SHARERS) if not quick else _QUICK)
            done = fitting.fit(self.bank, now, until, effort)
            if quick and 0 < done.wrong < len(self.bank) // _NEAR:  # where nothing helped, this is free
                until = time.monotonic() + (end - time.monotonic()) / _SHARERS
                done = fitting.fit(self.bank, done, until, effort)
            fits.append(done)
            if best is None or done.wrong < best.wrong:
                best = done
            if best.wrong == 0:
                break
        self.state.fit = best or self.state.fit
        if len(fits) > 1:
            self.ranked = sorted(fits, key=lambda one: one.wrong)

    def _is_hopeless(self, one: fitting.Fit, beside: fitting.Fit) -> bool:
        """Whether a start is far off and another one is near."""
        return one.wrong > len(self.bank) // _HOPELESS and beside.wrong < len(self.bank) // _NEAR

    # Checking -----------------------------------------------------------------------------------------------

    def _check(self) -> bool:
        """Asks about operands of every kind until the limits end; fits again after every counterexample, the
        harder the more often that did not help. Returns whether the last candidate was asked about at all."""
        efforts = list(fitting.Effort)
        explained = self.state.fit  # all but what was asked last: changes that explain more may mislead
        while self.state.fit is not None:
            fit, candidate = self.state.fit, self.state.fit.candidate
            left = self._share_left()  # a round that finds a difference leaves enough for those behind it
            share = min(_GROWTH[min(self.turn, len(_GROWTH) - 1)], max(left // 3, min(left, _LAST)))
            if share < self._least or self.dense.left < self.reserve:
                if self.state.differing:
                    self._ask_the_rest()
                return bool(self.state.differing)
            if fit.wrong:
                self._ask_wrong_again(candidate)
                far = fit.wrong > len(self.bank) // _FAR and efforts[:1] == [fitting.Effort.ANEW]
                others = self._others(fit) if far or not efforts else []
                if others:
                    self._refit([*others, fit], fitting.Effort.ANY)
                    self.state.differing = {}
                    continue
                if not efforts:
                    if not self._asks_on(fit, share):
                        return True
                    efforts = list(fitting.Effort) if self.state.fit.wrong > fit.wrong else efforts
                    continue
                effort = efforts.pop(0)
                few = effort is fitting.Effort.FEW and fit.wrong <= _HANDFUL
                if few or effort is fitting.Effort.ANEW:  # those left say little: more of them first
                    self._round(share)
                    fit = replace(fit, wrong=fitting.wrong_of(self.bank, candidate))
                if effort is fitting.Effort.ANEW:
                    efforts = list(fitting.Effort) if self._anew(fit) else efforts
                    continue
                beside = _MOST_FITS // 2 if effort < fitting.Effort.INSTEAD else 2
                others = self._others(explained or fit) if effort is fitting.Effort.FEW else []
                self._refit([*others, fit, *self.ranked[1:beside]], effort)
                self.state.differing = {}
                continue
            efforts, explained = list(fitting.Effort), fit
            self.tried.clear()
            wrong = self._round(share) or self._recall(candidate)
            turns = self.told.get(candidate.key, 0)
            self.clean[candidate.key] = 0 if wrong else self.clean.get(candidate.key, 0) + 1
            ready = self.clean[candidate.key] >= (_TELLING if share > _LAST else 1)
            if ready and turns < len(_TELLING_DRAWN):
                self.told[candidate.key] = turns + 1
                wrong = self._tell_apart(fit, _TELLING_DRAWN[turns], far=turns > 0)
                if self._take_other(fit, wrong):
                    continue
            if wrong:  # the checks were of a candidate that has to change; its bank is asked again
                self.state.fit = replace(fit, wrong=fitting.wrong_of(self.bank, candidate))
                self.state.differing = {}
        return False

    def _asks_on(self, fit: fitting.Fit, share: int) -> bool:
        """One round more where all efforts were in vain; whether the search goes on: the handful that a
        candidate is wrong on says little, and one question more can say what it lacks."""
        self._round(share)
        self.state.fit = replace(fit, wrong=fitting.wrong_of(self.bank, fit.candidate))
        return fit.wrong <= _HANDFUL

    def _recall(self, candidate: Candidate) -> bool:
        """Holds a candidate against the questions of all rounds, most of which others answered right:
        counterexamples that cost no question. Whether there are any; some of each kind join the bank."""
        known = candidate.key, len(self.checked)
        if self.recalled == known:
            return False
        self.recalled = known
        wrong = self.checked.some_wrong(candidate.program, _TAKEN)
        self.bank.take(wrong)
        return len(wrong) > 0

    def _anew(self, fit: fitting.Fit) -> bool:
        """Whether another start than those that were changed so far, from the beginning, explains more."""
        self.state.fit, self.state.differing = fit, {}
        self._also(few_terms.anew(fit.candidate, self.orders, self.bank, _ANEW))
        return self.state.fit.wrong < fit.wrong

    def _ask_the_rest(self) -> None:
        """Where the time for fits is over, not the questions: asks as many more as take a moment. A candidate
        that one of them shows to be wrong cannot be mended any more, and is not called explained."""
        each = int(min(_MOMENT, self.dense.left / 4) / self.pace) // (self._aims * len(stimuli.KINDS))
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
            if not 0 < fit.wrong <= len(self.bank) // _FAR or self.dense.left < self.reserve:
                break
            self._refit([fit, *self.ranked[1 : _MOST_FITS // 2]], effort)
            now = self.state.fit
            if now.candidate.key != fit.candidate.key:
                self._recall(now.candidate)
                wrong = fitting.wrong_of(self.bank, now.candidate)
                self.state.fit, self.state.differing = replace(now, wrong=wrong), {}
        return self.state.fit.candidate.key == first.candidate.key

    def _others(self, fit: fitting.Fit) -> list[fitting.Fit]:
        """A few other orders of the sum that were not fitted to these counterexamples: where no key explains
        them, they may be what shows the order."""
        until = time.monotonic() + min(_ORDERS_SECONDS, self.dense.left / 8)
        starts = discriminate.other_starts(fit.candidate, self.orders, self.bank, until)
        found = [one for one in starts if one.candidate.order not in self.tried][:_OTHERS]
        self.tried.update(one.candidate.order for one in found)
        return found

    def _tell_apart(self, fit: fitting.Fit, each: int, far: bool) -> bool:
        """Asks where rivals that answered the whole bank alike would answer otherwise, on operands drawn for
        that; whether the candidate was wrong anywhere. `far`: as `_rivals` has it."""
        self._tell("telling rivals apart", self.turn, 0)
        candidate, rivals = fit.candidate, self._rivals(fit, far)
        rng, end = partial(self._rng, 1000 + self.turn), time.monotonic() + self._for_telling
        asked = [
            discriminate.questions(candidate, rivals, each, rng, end),
            discriminate.below_the_last_bit(candidate, each // 2, partial(rng, 0)),
        ]
        parts = [one for one in asked if one is not None]
        if not parts:
            return False
        whole = {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}
        some = evenly(np.arange(len(whole["a"])), self._left)
        whole, answers = self._asked_at_the_end({name: codes[some] for name, codes in whole.items()})
        self.bank.add("between rivals", whole, answers)
        return bool((candidate.dot(**whole) != answers).any())

    def _take_other(self, fit: fitting.Fit, wrong: bool) -> bool:
        """Takes a program with other keys that explains all, too, where the candidate is wrong on what was
        asked between the two, or says the same in more words. It is checked as any other then."""
        banks = self.bank, self.checked
        left = [one for one in self.plainer if all(b.explained(one.candidate.program) for b in banks)]
        if not left or not (
            wrong or discriminate.words(left[0].candidate) < discriminate.words(fit.candidate)
        ):
            return False
        self.state.fit, self.state.differing = fitting.Fit(left[0].candidate, 0, left[0].told), {}
        return True

    def _rivals(self, fit: fitting.Fit, far: bool) -> list[tuple[str, Candidate]]:
        """What answers the whole bank as a candidate does, by the key that it changes. `far`: also what is
        more than one key away, which costs more to find, and is worth it once neighbours were told apart."""
        candidate = fit.candidate
        known = self.rivals
        if known is not None and known.of == candidate.key:  # the bank may have grown since
            new = self.bank.part(np.arange(known.asked, len(self.bank)))
            left = [(key, one) for key, one in known.left if not new.wrong(one.program).any()]
        else:
            end = time.monotonic() + self._for_telling
            changes = discriminate.neighbours(candidate, self._words(), causes=True)
            left, self.plainer = discriminate.alike(candidate, self.bank, changes, end), []
        if far:
            others = [(discriminate.ORDER, one) for one in self._other_orders(candidate)]
            self.plainer = discriminate.plainer(fit, self.bank, time.monotonic() + self._for_telling)
            left = [*others, *((discriminate.OTHER_WORDS, one.candidate) for one in self.plainer), *left]
        left = discriminate.apart(candidate, left)
        self.rivals = _Rivals(candidate.key, left, len(self.bank))
        return left

    def _other_orders(self, candidate: Candidate) -> list[Candidate]:
        """Programs with other orders that explain the whole bank, too. They are looked for once for all
        candidates of one order: what did not explain fewer questions does not explain more."""
        if candidate.order not in self.other_orders:
            until = time.monotonic() + min(_RIVAL_ORDERS_SECONDS, self.dense.left / 8)
            found = discriminate.other_orders(candidate, self.orders, self.bank, until)
            self.other_orders[candidate.order] = list(found)
        return [one for one in self.other_orders[candidate.order] if self.bank.explained(one.program)]

    @property
    def _for_telling(self) -> float:
        return min(_TELLING_SECONDS, self.dense.left / 4)

    def _neighbours(self, candidate: Candidate) -> list[Move]:
        return discriminate.neighbours(candidate, self._words())

    def _words(self) -> tuple[int, ...]:
        """The NaNs that the box answered."""
        d = self.takes.formats["d"]
        return nan_words(d, self.bank.answers.tolist()) if d.is_float else ()

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
        if self._few or self.turn < _CODES_FROM or fit is None or not self.codes.unasked():
            return 0
        told = self.told.get(fit.candidate.key, 0) >= len(_TELLING_DRAWN)
        return len(stimuli.KINDS) if told else _PARTS_OF_CODES

    @property
    def _few(self) -> bool:
        return self.dense.asks < _FEW_ASKS

    @property
    def _aims(self) -> int:
        return 1 if self._few else _AIMS

    @property
    def _least(self) -> int:
        return 1 if self._few else _LEAST

    def _round(self, share: int) -> bool:
        """One round of checking; whether the candidate was wrong anywhere."""
        assert self.state.fit is not None
        candidate = self.state.fit.candidate
        unit = as_taken(candidate.instruction, self.own)
        begun = time.monotonic()
        drawn = list(self._drawn(unit, share, self.turn))
        self.turn += 1
        self._tell("checking", self.turn, 0)
        operands = {name: np.concatenate([part[name] for _, part in drawn]) for name in drawn[0][1]}
        operands = with_kept_loads(unit, operands)
        answers = self.box.answer(operands)  # at once: one call may be one run of a simulator
        operands = self.own.resolve(operands, answers)
        wrong = np.asarray(unit.stateless.dot(**operands) != answers)
        if self.own.pattern is not None:  # the bank keeps no metadata, which are part of the question
            again = evenly(np.flatnonzero(wrong), min(_WRONG_AGAIN, self._left))
            some = {name: codes[again] for name, codes in operands.items()}
            self._is_otherwise(otherwise_now(self.box, some, answers[again]))
        if len(self.checked) * self.takes.k < _MOST_CHECKED:
            kinds = [kind for kind, _ in drawn for _ in range(share)]
            self.checked.add_each(kinds, selected(self.own, operands), answers)
        self.pace = max(time.monotonic() - begun, _SHORTEST) / len(answers)
        wrong_kinds: list[tuple[str, Operands, Any]] = []
        for index, (kind, _) in enumerate(drawn):
            hits = np.flatnonzero(wrong[index * share : (index + 1) * share])
            before = self.state.differing.get(kind, (0, 0))
            self.state.differing[kind] = before[0] + len(hits), before[1] + share
            if len(hits):
                taken = index * share + hits[:_TAKEN]
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
            aims = list(targets) if self._aims == _AIMS else [list(targets)[(turn + index) % _AIMS]]
            for aim, target in aims:
                rng = self._rng(2 + turn, index, aim)
                operands = stimuli.generate(target, kind, share, rng)
                yield kind, self._every_second_lower(operands, rng)
        if parts := self._parts_of_codes:
            codes = self.codes.questions(parts * share, self._rng(2 + turn, len(stimuli.KINDS)))
            for part in range(parts):
                yield CODES, {name: one[part * share :][:share] for name, one in codes.items()}

    def _every_second_lower(self, operands: Operands, rng: np.random.Generator) -> Operands:
        """Operands of which every second dot product lies lower, where most products overflow."""
        if self.end is None or self.own.pattern is not None or self.own.state:
            return operands
        lower = lowered(self.own, operands, self.end, rng)
        for name, codes in operands.items():
            lower[name][::2] = codes[::2]
        return lower

    def _others_aimed_at(self, turn: int) -> list[Instruction]:
        """In turns, the candidate with wider alignments, by as many bits as kinds in turns, and the best one
        of another shape."""
        assert self.state.fit is not None
        candidate = self.state.fit.candidate
        if turn % 2 and len(self.ranked) > 1:
            found = [self.ranked[1 + turn // 2 % (len(self.ranked) - 1)].candidate]
        else:
            first = turn // 2 % len(_WIDER)
            more = (*_WIDER[first:], *_WIDER[:first])
            found = [fitting.widened(candidate, bits) or candidate for bits in more]
        return [as_taken(one.instruction, self.own) for one in found]

    def _keep(self, kind: str, operands: Operands, answers: Any) -> None:
        """Counterexamples join the bank; those of a sparse box as the products that were selected."""
        self.bank.add(kind, selected(self.own, operands), answers)

    def _shrink(self, candidate: Candidate, wrong: list[tuple[str, Operands, Any]]) -> None:
        """The simplest forms of a few counterexamples join the bank with all that was asked on the way."""
        for _, operands, _ in wrong[:_SHRUNK]:
            asked: list[tuple[Operands, Any]] = []

            def fails(batch: Operands, asked: list[tuple[Operands, Any]] = asked) -> Any:
                count = len(batch["a"])
                some = evenly(np.arange(count), _SHRUNK_ASKS)
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
            rules=(fit.candidate.order, *fit.told),
            forced=tuple(forced(fit.told, self.bank) if wrong else self.forced),
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
        left = max(self.dense.left, 0)
        limit = time.monotonic() + min(_ALTERNATIVE_SECONDS, left / 2)
        end, ask = limit + min(_SIMPLER_SECONDS, left / 4), self._asked_at_the_end
        return weigh(candidate, self.bank, self._neighbours(candidate), limit, ask, end)

    def _weigh(self, fit: fitting.Fit) -> Evidence:
        """The same once for a candidate and a bank. What was asked for it joins the bank: questions like all
        others, a wrong one is a difference."""
        candidate = fit.candidate
        if self.weighed is None or self.weighed[0] != (candidate.key, len(self.bank)):
            self._rule_out(fit)
            evidence = self._evidence(candidate)
            evidence = self._told_by_solver(candidate, evidence)
            until = time.monotonic() + min(_FORCED_SECONDS, max(self.dense.left, 0) / 8)
            first = forced(fit.told, self.bank)
            self.forced, asked = shrunk(first, fit.told, self.bank, until, self._asked_at_the_end)
            for one in filter(None, (evidence.asked, asked)):
                self.bank.add(_SHOWN, *one)
            self.weighed = (candidate.key, len(self.bank)), evidence
        return self.weighed[1]

    def _told_by_solver(self, candidate: Candidate, evidence: Evidence) -> Evidence:
        """The evidence once a solver looked at the values of keys that no question told apart: those that it
        proves to be the same are not undecided, and between others the box is asked. Keys that every unit has
        come first. It has its seconds once for a dissection."""
        start, left = time.monotonic(), min(self.solver, max(self.dense.left, 0) / 2)
        if left <= 0:
            return evidence
        keys = sorted(evidence.properties, key=lambda one: discriminate.is_extra(one.key))
        units = (unit for one in keys for _, unit in one.alike)
        found, equal = discriminate.by_solver(candidate, units, left)
        self.solver -= time.monotonic() - start
        if found is not None:
            some = evenly(np.arange(len(found["a"])), self._left)
            asked = self._asked_at_the_end({name: codes[some] for name, codes in found.items()})
            self.bank.add(_SOLVED, *asked)
            evidence = self._evidence(candidate)
        return replace(evidence, properties=tuple(one.without(equal) for one in evidence.properties))

    def _rule_out(self, fit: fitting.Fit) -> None:
        """Questions of the rounds that show what the bank leaves open join it; keys that every unit has come
        first, as the time may end."""
        rivals = sorted(self._rivals(fit, far=False), key=lambda rival: discriminate.is_extra(rival[0]))
        until = time.monotonic() + min(_RULING_OUT_SECONDS, max(self.dense.left, 0) / 4)
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
