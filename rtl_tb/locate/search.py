"""Tries the changes of a unit's text on vectors that fail, and confirms those that make them right.

    found = find_repairs(verdict, job, seconds=60)
    print(found[0].sentence())

A change counts only where the designer's own text with it, built and run as any unit, gives every vector of
the check right: how it was found proves nothing.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import MmagoldError, SpecError
from golden.identify.diagnosis import Hypothesis
from golden.program.state import starts
from rtl_tb import engines
from rtl_tb.dut.description import Dut
from rtl_tb.dut.drivers import several_drivers
from rtl_tb.engines import builds, fast
from rtl_tb.engines.job import Job, Traffic
from rtl_tb.errors import ElaborationError, MachineError, RtlError, SimulatorMissing
from rtl_tb.locate.budget import CHOICES, CONSTANTS, PAIRS, PARTLY, TOWARD, UNITED, Budget
from rtl_tb.locate.changes import Change, Changes, Group, design_of, in_turn
from rtl_tb.locate.choices import AT_MOST, Ahead, build, new_names
from rtl_tb.locate.clusters import sequences, spread
from rtl_tb.locate.faults import example_of_fault
from rtl_tb.locate.goals import goals_of
from rtl_tb.locate.hints import suspicious_lines
from rtl_tb.locate.missing import ASSIGN, ELSE, GUARD
from rtl_tb.locate.rest import rest_of
from rtl_tb.locate.result import Alone, Edit, Repair
from rtl_tb.locate.selector import numbers
from rtl_tb.locate.texts import Texts, with_changes
from rtl_tb.runs.verdict import Verdict, judge
from rtl_tb.simulators import simulators

Progress = Callable[[int, int], None]
Flags = npt.NDArray[np.bool_]


_FIRST, _FAILING, _PASSING = 14, 160, 96
"""Vectors on which every change is tried: few that fail and, where it mends them, more, and such that it must
not break."""
_PARTLY, _RIGHT, _HARMED = 480, 24, 6
"""Changes of a group that mend some of the few, of which it is counted how many they mend, where they break
no more than a quarter of so many right vectors: in some of these two faults may make up for each other."""
_UNITED, _EARLY, _NEARLY = 32, 8, 0.75
"""Pairs of changes that are tried together because they mend different vectors; how many before all changes
were tried, and the share of the wrong vectors that such a pair has to mend."""
_MORE = 1500
"""Failing vectors among which those are looked for that a first change leaves wrong."""
_EVERY, _SEEN = 100_000, 8
"""All of them, at most so many, where the first change leaves fewer than this of those wrong."""
_SEQUENCE, _FEW_SEQUENCE = 512, 96
"""So many instead of a unit that keeps its accumulator, each with those before it in its sequence."""
_ONE_RUN = 5.0
"""Seconds; a change that makes the unit hang is none."""
_LEAST_RUN = 1.0
"""Seconds that a run has in any case: what was built in time may still say something."""
_CONFIRMED = 4
"""Changes that are built and run on all vectors: those that mend every vector tried, the likeliest first."""
_PART, _MAKE_UP = 10, 20
"""What mends less than a tenth of the wrong vectors may do so by chance. Two faults make up for each other in
some vectors, and the repair of one breaks these: so many it has to mend for each."""
_LIKELY = 24
"""Changes that mend a part, of which each is tried with the first ones before all others are."""
_SITES = 6
"""Lines at which a fault may be, of which all other choices are compiled at once."""
_RESTS = 2
"""Changes that mend a part, of which it is asked whether a hypothesis explains what they leave."""
_FIRSTS = 4
"""Changes that mend a part of the vectors and of which each is tried with every other."""
_TURNS = (
    *((kind, 0) for kind in ("choices", "likely", "constants", "forms")),
    *((kind, number) for number in range(1, _FIRSTS) for kind in ("choices", "likely")),
    *(("forms", 1), ("constants", 1)),
)
"""What is tried beside the how manieth of them: all beside the one that mends most comes first."""
_MOST = 0.5
"""What mends this share of the wrong vectors and breaks none has a second change looked for at once."""
_ALL_BUT = 0.9
"""A number that mends this share has every choice tried beside it before all other numbers are."""
_ASIDE = 0.1
"""The part of the time that is given to two faults while the next build is compiled."""
_MORE_FOR_ONE = 0.25
"""The part of the time that one change has after two were found that mend all."""
_AT_ONCE = 32
"""Changes that one program tries."""
_BESIDE_ONE = 4 * _AT_ONCE
"""Changes that are tried at the place of one that mends everything, to say the likeliest."""
_FINDING = 0.3
"""The part of the time in which the lint of the text ends."""
_GROUPS = {
    Group.TOKENS: "operators, signals and numbers",
    Group.FORMS: "other forms of expressions",
    Group.REST: "further operators, signals and numbers",
    Group.TERMS: "terms of one bit more",
    Group.JOINED: "terms of two bits more",
}
"""What the changes of a group are called where they could not be tried."""
_SHOWN = 3
"""Places that are named of those that were not looked at."""


def _never() -> bool:
    return False


@dataclass(frozen=True)
class _Score:
    """What changes did to the vectors that they were tried on."""

    changes: tuple[Change, ...]
    mended: int
    broken: int
    wrong: int
    """Wrong vectors without a change."""
    mends: Flags = field(default_factory=lambda: np.zeros(0, np.bool_), compare=False, repr=False)
    """Which of the vectors they mend."""

    @property
    def left(self) -> int:
        """Vectors that are wrong with them."""
        return self.wrong - self.mended + self.broken

    @property
    def clean(self) -> bool:
        """Whether every vector is right with them."""
        return not self.left


def find_repairs(
    verdict: Verdict,
    job: Job,
    seconds: float | Budget = 60.0,
    progress: Progress | None = None,
    beside: bool = True,
    partial: Sequence[Hypothesis] = (),
    ahead: Ahead | None = None,
) -> list[Repair]:
    """Looks for one small change of the DUT's text that makes its results right, or for two.

    Args:
        seconds: after which it ends with what it has, or the budget; a run that is under way may take
            _ONE_RUN longer.
        beside: whether hypotheses are asked about what a change leaves wrong.
        partial: hypotheses that may each be one fault of several: a change beside one is looked for, too.
        ahead: what was made of the text before; None: it is made now.

    Returns:
        Confirmed changes, the likeliest first: those with which every vector of the check is right or, where
        there is none, what mends most without breaking any. Nothing: no such change was found, or the text
        cannot be changed.

    Raises:
        SimulatorMissing: pyslang or Verilator is not installed. Unfinished: some changes alone were tried.
            RtlError: the time was over before anything could be tried, or no vector is wrong as changes are
                tried.
    """
    budget = seconds if isinstance(seconds, Budget) else Budget(seconds)
    return _Search(verdict, job, budget, progress, beside, partial, ahead).found()


class Unfinished(RtlError):
    """Not every kind of change was tried, and none of those that were mends anything."""


class _Search:
    left_out: Sequence[str] = ()
    """What of the text was not looked at."""

    def __init__(
        self,
        verdict: Verdict,
        job: Job,
        budget: Budget,
        progress: Progress | None,
        beside: bool = True,
        partial: Sequence[Hypothesis] = (),
        ahead: Ahead | None = None,
    ) -> None:
        self.verdict, self.budget, self.progress = verdict, budget, progress
        self.asked = job
        self.given = ahead
        self.job = replace(
            job, program=None, waves=None, simulator="verilator", traffic=Traffic(seed=job.traffic.seed)
        )
        self.dut = job.dut
        self.beside = beside
        """Whether hypotheses are asked about what a change leaves."""
        self.partial = partial if beside else ()
        self.united: dict[tuple[Change, ...], list[_Score]] = {}
        """Pairs that were tried because they mend different vectors, and what they do."""
        self.hinted: set[tuple[Path, int]] = set()
        """Lines that the lint warns of."""
        self.passes: dict[tuple[str, Path], _Pass | None] = {}
        """What is tried with each build, by what it is for; None: nothing can be."""
        self.seconded: dict[Change, _Pass] = {}
        """First changes beside which every choice of their build is tried, and what came of it."""
        self.made: dict[tuple[Change, tuple[Group, ...]], _Pass | None] = {}
        """The same of first changes with which choices of some groups are built."""
        self.not_built: set[tuple[Change, tuple[Group, ...]]] = set()
        """Those of them of which the build is refused."""
        self.beside_it: set[tuple[Change, ...]] = set()
        """Changes beside which a hypothesis was asked for the rest."""
        self.beside_first: dict[Change, _Trials] = {}
        """The builds beside first changes, with the vectors that tell something of a second one."""
        self.looked_at: set[Change | None] = set()
        """First changes beside which the sites of another one were looked at; None: of one alone."""
        self.refuted: set[tuple[Change, ...]] = set()
        """What mends every vector that it was tried on, and not all of the check; or is no text."""
        self.unanswered: dict[tuple[Change, ...], list[Edit]] = {}
        """What mends every vector that it was tried on, and could not be run on all of the check."""
        self.not_compiled: dict[Group, RtlError] = {}
        """Groups of which no choice could be tried, and why."""
        self.unseen = False
        """Whether no vector is wrong as changes are tried."""
        self.ran: dict[tuple[Edit, ...], _Ran] = {}
        """What was built as the designer would write it, and answered."""

    def found(self) -> list[Repair]:
        """See find_repairs."""
        self.ahead = self.given or Ahead(self.asked, self.budget)
        try:
            return self._found()
        finally:
            if self.given is None:
                self.ahead.end()

    def _found(self) -> list[Repair]:
        changes = self.ahead.changes()
        self.left_out = list(changes.not_read)
        self.picked = self._picked()
        if not changes.texts:
            return []
        self.budget.look()
        if not self.verdict.wrong[self.picked].any():
            raise RtlError(f"none of the {len(self.picked):,} vectors on which they are tried is wrong")
        self.job.build.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="repair_", dir=self.job.build.absolute()) as name:
            probe = replace(self.job, vectors=self.verdict.vectors[self.picked], timeout_cycles=500)
            try:
                return self._either(changes, probe, Path(name))
            finally:
                builds.forget(Path(name))

    def _either(self, changes: Changes, probe: Job, folder: Path) -> list[Repair]:
        """What a choice or a constant mends or, where none mends everything, two of them.

        Each group of choices has a build of its own. While it is compiled, constants are tried, and for a
        while what two faults may be; while the choices of one are tried, the next is compiled. One change is
        the likelier: where the choices of a build can be tried, nothing else is.
        """
        with suppress(RtlError), self.budget.builds(_FINDING):
            self.hinted = suspicious_lines(self.dut, changes)
        texts = Texts(changes, probe, self.budget, folder / "texts")
        constants = _Constants(changes.of_constants(self.hinted))
        goals = [replace(probe, vectors=goal) for goal in goals_of(self.verdict, self.dut, self.partial)]
        aside = self.budget.aside()
        with ThreadPoolExecutor(1) as side:
            built = {
                group: side.submit(self._choices, changes, probe, folder / group.name, aside, (), (group,))
                for group in Group
            }
            try:
                singles: list[_Score] = []
                every: list[_Trials] = []
                two: list[Repair] = []  # kept until no one change does as much
                end = CONSTANTS
                for group, build in built.items():
                    if every and not two:
                        place = folder / f"at_{group.name}"
                        two = self._two(changes, singles, every, goals, texts, place, build.done)
                        end = self._part_of_one(two)
                    self._try_constants(texts, constants, build.done, end)
                    if two and not self._is_there(build, end):
                        break
                    if found := self._whole(changes, constants.scores, folder / f"before_{group.name}"):
                        return found
                    more = self._result(group, build)
                    scores = [] if more is None else self._scores(more)
                    if more is not None and group is Group.TOKENS:
                        scores = [*scores, *self._at_sites(changes, more, None, texts, folder / "sites")]
                    if found := self._whole(changes, scores, folder / f"of_{group.name}"):
                        return found
                    singles += scores
                    every += [] if more is None else [more]
                trials = self._result(Group.TOKENS, built[Group.TOKENS])
            finally:
                aside.end()
                for build in built.values():
                    build.cancel()
        late = not two
        if every and late:
            two = self._two(changes, singles, every, goals, texts, folder / "two")
        singles += self._partial(every)
        two = two or self._beside_constant(changes, texts, constants, folder / "numbers")
        end = self._part_of_one(two) if late else end
        if two and two[0].by_one:
            return two
        self._try_constants(texts, constants, None, end)
        if found := self._whole(changes, constants.scores, folder / "later") or two:
            return found
        if found := self._constants_toward(changes, goals, folder):
            return found
        singles = sorted([*singles, *constants.scores], key=_order)
        with ThreadPoolExecutor(1) as side:  # what mends most is listed even where the time of pairs ends
            single = side.submit(self._confirmed, changes, singles, folder / "part")
            pairs = self._united(singles, every, texts)
            if not any(map(self._is_clean, pairs)):
                pairs = sorted([*pairs, *self._pairs(changes, singles, trials, texts, folder)], key=_order)
            found = self._whole(changes, pairs, folder / "pair")
            found = found or [*self._confirmed(changes, pairs, folder / "pairs"), *single.result()]
        if self.unseen and not every and not found:
            raise RtlError("no vector is wrong without resets, as they are tried")
        if not found:
            self._say_what_was_not_tried(len(constants.done), bool(every))
        found.sort(key=lambda repair: -repair.mended)
        found = [replace(repair, untried=self._untried()) for repair in found]
        if found and not found[0].whole and self.beside:
            found = self._with_rest(found)
        return [self._by_fault(changes, repair, folder / "alone") for repair in found[:1]] + (
            [repair for repair in found[1:] if repair.whole]
        )

    def _part_of_one(self, two: Sequence[Repair]) -> float:
        """When the search for one change ends, and with it that for constants. Where two mend all already, it
        has a quarter of the time more: the likeliest ones come first."""
        return min(CONSTANTS, self.budget.further(_MORE_FOR_ONE)) if two else CONSTANTS

    def _is_there(self, build: Future[_Trials | None], part: float) -> bool:
        """Whether a build has ended before a part of the time is over."""
        return build in wait([build], self.budget.left(part)).done

    def _result(self, group: Group, built: Future[_Trials | None]) -> _Trials | None:
        """The build of a group of choices; where it was refused, broken off or took too long, that is
        noted."""
        try:
            return built.result()
        except SimulatorMissing:
            raise
        except RtlError as error:
            self.not_compiled[group] = error
            return None

    def _untried(self) -> str:
        """The choices that were not tried, and why; where the time ended, that is said of the likeliest
        alone."""
        lost = (MachineError, ElaborationError)
        errors = {
            group: error
            for group, error in self.not_compiled.items()
            if group is Group.TOKENS or isinstance(error, lost)
        }
        names = " and ".join(_GROUPS[group] for group in errors)
        said = [f"{names}: {' and '.join(dict.fromkeys(map(str, errors.values())))}"] if errors else []
        more = f" and {len(self.left_out) - _SHOWN} more" if len(self.left_out) > _SHOWN else ""
        said += (
            [f"what was not looked at ({', '.join(self.left_out[:_SHOWN])}{more})"] if self.left_out else []
        )
        return " and ".join(said)

    def _say_what_was_not_tried(self, constants: int, choices: bool) -> None:
        """Raises an error where nothing was found, and not every change was tried.

        Args:
            constants: how many of these were.
            choices: whether those of some group were.
        """
        refused = self.not_compiled.get(Group.TOKENS)
        if refused is not None and not choices:
            raise Unfinished(f"{constants:,} numbers and widths: {refused}") if constants else refused
        if self.unanswered:
            said = [" and ".join(edit.phrase() for edit in edits) for edits in self.unanswered.values()]
            more = f"; and {len(said) - _SHOWN} more" if len(said) > _SHOWN else ""
            tried = f"the {len(self.picked):,} vectors that they were tried on"
            raise Unfinished(
                f"all but {len(said)} that make {tried} right and could not be run on the whole check "
                f"in the time: {'; '.join(said[:_SHOWN])}{more}"
            )
        if untried := self._untried():
            raise Unfinished(f"all but {untried}")

    def _until(self, done: Callable[[], bool], share: float) -> Callable[[], bool]:
        """Says that something is done, or that a share of all time is spent meanwhile."""
        least = self.budget.left() - share * self.budget.seconds
        return lambda: done() or self.budget.left() < least

    def _two(
        self,
        changes: Changes,
        singles: Sequence[_Score],
        every: Sequence[_Trials],
        goals: Sequence[Job],
        texts: Texts,
        folder: Path,
        done: Callable[[], bool] | None = None,
    ) -> list[Repair]:
        """Two faults that are quickly found with the builds of choices: a change beside a hypothesis, two
        changes that mend different vectors, one beside another that mends most. Each time it
        goes on from where it ended before.

        Args:
            done: where it is, this ends soon; None: it has all the time that two faults may have.
        """
        folder.mkdir()
        stop, half = (_never if done is None else self._until(done, part) for part in (_ASIDE, _ASIDE / 2))
        found = self._toward(changes, every, goals, folder, stop)
        if not found and not stop():
            some = [*singles, *self._partial(every, half)]
            pairs = self._united(sorted(some, key=_order), every, texts, _NEARLY)
            found = self._whole(changes, pairs, folder / "united")
            found = found or self._whole(changes, self._early(some, every, texts, stop), folder / "early")
            for number, (first, wide) in enumerate([] if found or stop() else [*self.beside_first.items()]):
                there = self._at_sites(changes, wide, first, texts, folder / f"sites{number}")
                found = found or self._whole(changes, there, folder / f"at_sites{number}")
            found = [self._by_fault(changes, one, folder / "alone") for one in found[:1]]
        return found

    def _beside_constant(
        self, changes: Changes, texts: Texts, constants: _Constants, folder: Path
    ) -> list[Repair]:
        """Two faults of which a number mends nearly all, and a choice what it leaves: where the other fault
        shows seldom, all that the number was tried on. Other numbers of its place come first: one may mend
        all."""

        def firsts() -> list[_Score]:
            return [one for one in constants.scores if _mends_nearly_all(one)]

        folder.mkdir()
        if not firsts():
            self._try_constants(texts, constants, enough=_mends_nearly_all)
        places = {one.changes[0].place for one in firsts()}
        if places:
            self._try_constants(texts, constants, only=lambda change: change.place in places)
        if (found := self._whole(changes, constants.scores, folder / "one")) or not places:
            return found
        scores = self._second_choices(changes, None, firsts()[0].changes[0], texts, folder / "beside")
        found = self._whole(changes, scores, folder / "whole")
        return [self._by_fault(changes, one, folder / "alone") for one in found[:1]]

    def _toward(
        self,
        changes: Changes,
        every: Sequence[_Trials],
        goals: Sequence[Job],
        folder: Path,
        stop: Callable[[], bool] = _never,
    ) -> list[Repair]:
        """A choice with which the unit is what a hypothesis says of a part of its results, and that
        hypothesis beside it."""
        for trials in every:
            for number, goal in enumerate(goals):
                if stop():
                    return []
                work = self._pass(f"goal{number}", trials, partial(self._held_to, trials, goal))
                scores = self._go_on(work, TOWARD, stop)
                place = folder / f"{trials.folder.name}_{number}"
                if found := self._beside_hypothesis(changes, scores, place):
                    return found
        return []

    def _held_to(self, trials: _Trials, goal: Job) -> _Pass | None:
        """Every choice of a build on the vectors of a goal."""
        folder = trials.folder / f"goal{len(self.passes)}"
        whole = self._trial(goal, trials.program, folder)
        as_it_is = whole()
        if as_it_is is None or not as_it_is.any():
            return None
        there = replace(
            trials, probe=goal, whole=whole, as_it_is=as_it_is, folder=folder, sites=[], partly=[]
        )
        return self._singly(there)

    def _constants_toward(self, changes: Changes, goals: Sequence[Job], folder: Path) -> list[Repair]:
        """The same of constants."""
        for number, goal in enumerate(goals):
            place = folder / f"constants{number}"
            texts, constants = (
                Texts(changes, goal, self.budget, place),
                _Constants(changes.of_constants(self.hinted)),
            )
            self._try_constants(texts, constants, part=TOWARD)
            if found := self._beside_hypothesis(changes, constants.scores, place / "found"):
                return found
        return []

    def _beside_hypothesis(self, changes: Changes, scores: Sequence[_Score], folder: Path) -> list[Repair]:
        """The first change beside which a hypothesis explains every vector."""
        clean = [score for score in scores if score.clean]
        for number, score in enumerate(clean[:_RESTS]):
            if score.changes in self.beside_it:
                continue
            self.beside_it.add(score.changes)
            with suppress(MmagoldError):
                if self._confirm(changes, score.changes, folder / f"{number}") is None:
                    continue
                ran = self.ran[tuple(_edit(changes, change) for change in score.changes)]
                if rest := rest_of(ran.verdict, ran.job, self.asked, self.budget.look):
                    repair = replace(ran.repair, rest=rest)
                    return [self._by_fault(changes, repair, folder / "alone")]
        return []

    def _with_rest(self, found: list[Repair]) -> list[Repair]:
        """Before all others one change with which every vector is as a hypothesis says; as they are where
        there is none."""
        single = [ran for ran in self.ran.values() if len(ran.changes) == 1 and _lists(ran.repair)]
        for ran in sorted(single, key=lambda ran: -ran.repair.mended)[:_RESTS]:
            with suppress(MmagoldError):  # what was found stays found
                if rest := rest_of(ran.verdict, ran.job, self.asked, self.budget.look):
                    return [replace(ran.repair, rest=rest), *found]
        return found

    def _by_fault(self, changes: Changes, repair: Repair, folder: Path) -> Repair:
        """A repair with what each of its changes does by itself; as it is where the time ends before."""
        found: list[Alone] = []
        for number, change in enumerate(self.ran[repair.edits].changes):
            edit = _edit(changes, change)
            try:
                self._confirm(changes, (change,), folder / f"{number}")
                ran = self.ran[edit,]
            except (MmagoldError, KeyError):
                return repair
            only, example = self.verdict.wrong & ~ran.failed, None
            with suppress(MmagoldError), self.budget.builds():
                example = example_of_fault(self.verdict, self.asked, ran.job, only, self.budget.look)
            broken = int((ran.failed & ~self.verdict.failed).sum())
            found.append(Alone(edit, int((self.verdict.failed & ~ran.failed).sum()), broken, example))
        return replace(repair, faults=tuple(sorted(found, key=lambda one: -one.mended)))

    def _picked(self) -> npt.NDArray[np.int64]:
        """The vectors that changes are tried on, every kind of failure among them."""
        right = np.flatnonzero(~self.verdict.failed)
        return self._some((self._wrong_by_itself(), _FAILING), (right, _PASSING))

    def _wrong_by_itself(self) -> npt.NDArray[np.int64]:
        """The wrong vectors; of a unit that keeps its accumulator those that are wrong also by what it held
        before: one wrong result makes those behind it wrong."""
        vectors, wrong = self.verdict.vectors, self.verdict.wrong
        if not vectors.instruction.state:
            return np.flatnonzero(wrong)
        ins, actual = vectors.instruction, self.verdict.outcome.actual.reshape(vectors.d.shape)
        answers = ins.stateless.dot(**ins.resolve(vectors.operands, actual, vectors.held))
        own = wrong & ~self.dut.compare.equal(ins.formats["d"], answers, actual)
        return np.flatnonzero(own if own.any() else wrong)

    def _some(
        self, *those: tuple[npt.NDArray[np.int64], int], room: int = _SEQUENCE
    ) -> npt.NDArray[np.int64]:
        """At most so many of each of several groups of vectors, in order; of a unit that keeps its
        accumulator with those before them, `room` altogether."""
        rng, vectors = np.random.default_rng(1), self.verdict.vectors
        if vectors.instruction.state:
            rooms = [room * most // sum(each for _, each in those) for _, most in those]
            parts = [
                sequences(vectors, places, most, room, rng)
                for (places, most), room in zip(those, rooms, strict=True)
            ]
            return np.unique(np.concatenate(parts))
        some = []
        for each, most in those:  # half as often as they come, half of every sort
            often = rng.choice(each, min(most // 2, len(each)), replace=False)
            seldom = spread(vectors, np.setdiff1d(each, often), most - len(often), rng)
            some += [often, seldom]
        return np.sort(np.concatenate(some))

    def _beside(self, probe: Job, wrong: Callable[[Job], Flags | None]) -> Job:
        """The vectors on which a second change is tried: those that are still wrong with the first one, of
        more than it was found on, so that a fault that shows seldom is among them; and others.

        Args:
            wrong: which vectors of a job are wrong with the first change.
        """
        state = probe.vectors.instruction.state
        failing = self._wrong_by_itself()
        more, still = np.zeros(0, np.int64), None
        for most in (_MORE, _EVERY):
            whole = len(failing) <= most and not state
            some = failing if whole else self._some((failing, most), room=most)
            left = (
                wrong(replace(probe, vectors=self.verdict.vectors[some])) if len(some) > len(more) else None
            )
            if left is not None:
                more, still = some, left
            if left is None or left.sum() >= _SEEN:
                break
        if still is None or not still.any():
            return probe
        right = np.flatnonzero(~self.verdict.failed)
        if state:  # in a sequence the first one alone is wrong by itself
            still = _firsts(self.verdict.vectors.operands["clear"][more], still)
        mended = (more[~still], _FAILING // 2)
        picked = self._some((more[still], _FAILING // 2), mended, (right, _PASSING))
        return replace(probe, vectors=self.verdict.vectors[picked])

    def _choices(
        self,
        changes: Changes,
        probe: Job,
        folder: Path,
        budget: Budget,
        made: Sequence[Change] = (),
        groups: Sequence[Group] = (Group.TOKENS, Group.FORMS),
        lines: Container[tuple[Path, int]] | None = None,
    ) -> _Trials | None:
        """The build of all choices of some groups, on some lines or on all, ready to be tried on the vectors
        of `probe`; None where there is none, no vector is wrong in it, or what is `made` is more than the
        text that is written for it."""
        if not all(one.plain for one in made):
            return None
        folder.mkdir()
        every = changes.of_choices(groups)
        if lines is not None:
            every = [one for one in every if (one.place.file, changes.line(one)) in lines]
        listed = [one for one in every if not any(one.meets(other) for other in made)]
        if len(listed) > AT_MOST:  # the likeliest of each place
            self.budget.look()
            listed = [listed[at] for at in sorted(in_turn(listed)[:AT_MOST])]
        if not listed:
            return None
        first = not made and lines is None and tuple(groups) == (Group.TOKENS,)
        built = self.ahead.built() if first else None
        built = built or build(self.dut, changes, listed, probe, folder, budget, made)
        if built is None:
            return None
        listed, program = built
        whole = self._trial(probe, program, folder / "all")
        as_it_is = whole()
        busy = self.asked.traffic  # it may show in pauses and waits alone, or behind a reset
        for name, traffic in (("paused", replace(busy, resets=0)), ("reset", busy)):
            if as_it_is is not None and not as_it_is.any():
                probe = replace(probe, traffic=traffic)
                whole = self._trial(probe, program, folder / name)
                as_it_is = whole()
        if as_it_is is None or not as_it_is.any():
            self.unseen = as_it_is is not None
            return None
        return _Trials(probe, listed, program, whole, as_it_is, folder, tuple(made))

    def _scores(self, trials: _Trials) -> list[_Score]:
        """Every choice that mends all of a few vectors and more than it breaks; those first that mend
        most."""
        return self._go_on(self._pass("single", trials, lambda: self._singly(trials)), CHOICES)

    def _singly(self, trials: _Trials) -> _Pass:
        """Every choice of a build by itself."""
        job = self._few(trials.probe, trials.as_it_is)
        few = self._trial(job, trials.program, trials.folder / "few")
        most = min(len(job.vectors), int(trials.as_it_is.sum()))
        order = in_turn(trials.listed)
        many, listed = [(at + 1,) for at in order], [trials.listed[at] for at in order]
        return _Pass(many, lambda some: trials.scores(few, most, some), listed=listed)

    def _partial(self, every: Sequence[_Trials], stop: Callable[[], bool] = _never) -> list[_Score]:
        """What is known of the changes of some builds that mend a part."""
        return [score for trials in every for score in self._partly(trials, stop)]

    def _partly(self, trials: _Trials, stop: Callable[[], bool] = _never) -> list[_Score]:
        """The likeliest of those choices that mend some of the few vectors alone: each may be one of two."""
        work = self._pass("partly", trials, lambda: self._counted(trials))
        return self._go_on(work, PARTLY, stop)

    def _counted(self, trials: _Trials) -> _Pass:
        """How much each mends of those that mend some of the few vectors."""
        likely = [chosen for _, chosen in sorted(trials.partly)[:_PARTLY]]
        right = self._right(trials)

        def some(chosen: Sequence[tuple[int, ...]]) -> list[_Score]:
            came = zip(chosen, _each(right, chosen), strict=True)
            return trials.counted([one for one, bad in came if bad is not None and bad.sum() <= _HARMED])

        return _Pass(likely, some, at_once=_AT_ONCE // 4)

    def _pass(self, name: str, trials: _Trials, made: Callable[[], _Pass | None]) -> _Pass | None:
        """What is tried with a build for some reason, the same each time."""
        key = name, trials.folder
        if key not in self.passes:
            self.passes[key] = made()
        return self.passes[key]

    def _go_on(self, work: _Pass | None, part: float, stop: Callable[[], bool] = _never) -> list[_Score]:
        """Tries what is left of a pass until a part of the time is over, or `stop` says so; all that it has
        found, also where some of it could not be run: that is not tried again.

        Raises:
            MmagoldError: what could not be run would have been all.
        """
        if work is None or any(map(work.enough, work.scores)):
            return [] if work is None else work.scores
        left = [number for number in range(len(work.many)) if number not in work.done]

        def some(places: range) -> list[_Score]:
            over = self.budget.over(part) or stop()
            return [] if over else self._run(work, [left[place] for place in places])

        self._tried(some, len(left), work.enough, work.at_once)
        for near in _near(work):  # the likeliest of what does the same there, not the one that came first
            if not self.budget.over(part):
                self._run(work, near)
        if work.failed and not work.scores:
            raise work.failed[0]
        work.scores.sort(key=_order)
        return work.scores

    def _run(self, work: _Pass, numbers: Sequence[int]) -> list[_Score]:
        """What some changes of a pass do, which is noted."""
        work.done.update(numbers)
        try:
            scores = work.run([work.many[number] for number in numbers])
        except MmagoldError as error:
            work.failed.append(error)
            return []
        work.scores += [score for score in scores if score.mended > score.broken]
        return scores

    def _right(self, trials: _Trials) -> Callable[..., Flags | None]:
        """Runs some of the vectors that are right without a change, of every sort."""
        vectors, right = trials.probe.vectors, np.flatnonzero(~trials.as_it_is)
        if vectors.instruction.state:  # of a sequence that fails the first ones are right
            right = right[:0]
        some = np.sort(spread(vectors, right, _RIGHT, np.random.default_rng(1)))
        job = replace(trials.probe, vectors=vectors[some])
        folder = trials.folder / "right"
        return self._trial(job, trials.program, folder) if len(some) else lambda *_: np.zeros(0, np.bool_)

    def _united(
        self, singles: Sequence[_Score], every: Sequence[_Trials], texts: Texts, share: float = 0
    ) -> list[_Score]:
        """Two changes that each mend other vectors, together: those first that mend most of them, until two
        mend all.

        Args:
            share: of the wrong vectors that the two have to mend if each mends what it mends alone; with one
                only pairs that are new are returned.
        """
        found: list[_Score] = []
        pairs = [pair for pair in _complements(singles, share) if pair not in self.united]
        as_it_is: Flags | None = None
        for both in pairs[:_EARLY] if share else pairs:
            if self.budget.over(UNITED) or any(map(self._is_clean, found)):
                break
            self.united[both] = []
            trials = next((each for each in every if all(one in each.listed for one in both)), None)
            if trials is not None:
                self.united[both] += trials.counted([tuple(trials.listed.index(one) + 1 for one in both)])
            else:
                as_it_is = texts.wrong((), UNITED, "apart") if as_it_is is None else as_it_is
                wrong = texts.wrong(both, UNITED, f"united{len(self.united)}")
                if wrong is not None and as_it_is is not None:
                    self.united[both] += [_scored(both, as_it_is, wrong)]
            found += self.united[both]
        if not share:
            found = [score for scores in self.united.values() for score in scores]
        return sorted(found, key=_order)

    def _pairs(
        self,
        changes: Changes,
        singles: Sequence[_Score],
        trials: _Trials | None,
        texts: Texts,
        folder: Path,
    ) -> list[_Score]:
        """Two changes, each of which mends a part: those that mend most alone, each with every other on what
        it leaves. Two faults that hide each other wherever they show are not found so."""
        firsts = [single.changes[0] for single in _of_vectors(_of_places(singles))[:_FIRSTS]]
        likely = [single.changes[0] for single in _of_places(singles)[:_LIKELY]]
        found: list[_Score] = []
        half = self.budget.half
        for kind, number in _TURNS:
            if self.budget.over(PAIRS) or number >= len(firsts):
                continue
            first, place = firsts[number], folder / f"second{kind}_{number}"
            if kind == "choices":
                found += self._second_choices(changes, trials, first, texts, place)
            elif kind == "forms":
                found += self._second_forms(changes, trials, first, texts, place)
            else:
                listed = likely if kind == "likely" else changes.of_constants(self.hinted)
                part = half(PAIRS) if kind == "constants" and not number else PAIRS
                found += self._second_texts(changes, listed, first, texts, place, part)
            if any(map(self._is_clean, found)):
                break
        return sorted(found, key=_order)

    def _early(
        self,
        singles: Sequence[_Score],
        every: Sequence[_Trials],
        texts: Texts,
        stop: Callable[[], bool] = _never,
    ) -> list[_Score]:
        """Beside one change that mends most by itself a second one of its build; of one alone."""
        likely = [one for one in singles if one.mended >= _MOST * one.wrong > 0 and not one.broken]
        firsts = list(self.seconded) or [one.changes[0] for one in sorted(likely, key=_order)]
        for first in firsts:
            trials = next((each for each in every if first in each.listed), None)
            if trials is not None:
                return self._second_choices(
                    Changes(), trials, first, texts, trials.folder / "early", stop=stop
                )
        return []

    def _at_sites(
        self, changes: Changes, trials: _Trials, first: Change | None, texts: Texts, folder: Path
    ) -> list[_Score]:
        """Every other choice on the few lines on which some choice mends every wrong vector, whatever it
        breaks: a condition that has to be true there says where a term is missing. So few are soon compiled.

        Args:
            first: another change that stands there in any case.
        """
        sites = sorted(trials.sites, key=lambda score: score.broken)
        if first in self.looked_at or not sites or any(map(self._is_clean, sites)):
            return []
        self.looked_at.add(first)
        places = [(one.place.file, changes.line(one)) for one in (score.changes[-1] for score in sites)]
        lines, made = set([*dict.fromkeys(places)][:_SITES]), () if first is None else (first,)
        groups = [group for group in Group if group is not Group.TOKENS]
        try:
            built = folder.with_suffix(".made")
            there = self._choices(changes, texts.job, built, self.budget, made, groups, lines)
            if there is None:
                return []
            work = self._singly(there) if first is None else self._beside_first(there, first, (), folder)
            return self._go_on(work, PAIRS)
        except MmagoldError:  # also where a port no longer fits the description
            return []

    def _second_forms(
        self, changes: Changes, trials: _Trials | None, first: Change, texts: Texts, folder: Path
    ) -> list[_Score]:
        """Every form beside a first change of which the build of choices has no forms."""
        if trials is None or first not in trials.listed:
            return []
        return self._second_choices(changes, None, first, texts, folder, (Group.FORMS,))

    def _second_choices(
        self,
        changes: Changes,
        trials: _Trials | None,
        first: Change,
        texts: Texts,
        folder: Path,
        groups: Sequence[Group] = (Group.TOKENS, Group.FORMS),
        stop: Callable[[], bool] = _never,
    ) -> list[_Score]:
        """Every choice beside a first change; where that is none of them, choices of some groups are built
        with it."""
        if trials is not None and first in trials.listed:
            if first not in self.seconded:
                at = (trials.listed.index(first) + 1,)
                self.seconded[first] = self._beside_first(trials, first, at, folder) or _Pass(
                    [], lambda _: []
                )
            return self._go_on(self.seconded[first], PAIRS, stop)
        work = self._made_with(changes, first, texts, folder, tuple(groups))
        if (first, tuple(groups)) in self.not_built and len(
            groups
        ) > 1:  # each may be right without the others
            for group in groups:
                place = folder.with_name(f"{folder.name}_{group.name}")
                work = work or self._made_with(changes, first, texts, place, (group,))
        return self._go_on(work, PAIRS, stop)

    def _made_with(
        self, changes: Changes, first: Change, texts: Texts, folder: Path, groups: tuple[Group, ...]
    ) -> _Pass | None:
        """Every choice of some groups in a build with a first change; None where there is none. A text that
        is refused is built once, what the machine or the time ended is built anew when it is asked for
        again."""
        key = first, groups
        if key not in self.made:
            try:
                built = self._choices(
                    changes, texts.job, folder.with_suffix(".made"), self.budget, (first,), groups
                )
                self.made[key] = None if built is None else self._beside_first(built, first, (), folder)
            except (ElaborationError, SpecError):  # also where a port no longer fits the description
                self.made[key] = None
                self.not_built.add(key)
            except MmagoldError:
                return None
        return self.made[key]

    def _beside_first(
        self, trials: _Trials, first: Change, at: tuple[int, ...], folder: Path
    ) -> _Pass | None:
        """Every choice of a build beside a first change, whose number is `at` where it is one of them."""
        wide = self._widened(trials, at, folder.with_suffix(".wide"))
        if wide is None or (left := wide.whole(*at)) is None or not left.any():
            return None
        wide = self.beside_first[first] = replace(wide, sites=[])
        job = self._few(wide.probe, left)
        few, most = self._trial(job, wide.program, folder), min(len(job.vectors), int(left.sum()))
        many = [(*at, number) for number, one in enumerate(wide.listed, 1) if not one.meets(first)]

        def some(chosen: Sequence[tuple[int, ...]]) -> list[_Score]:
            return [score for score in wide.scores(few, most, chosen) if score.left < int(left.sum())]

        listed = [wide.listed[number - 1] for *_, number in many]
        return _Pass(many, some, enough=self._is_clean, listed=listed)

    def _widened(self, trials: _Trials, at: tuple[int, ...], folder: Path) -> _Trials | None:
        """The same build on the vectors that tell something of a second change."""
        folder.mkdir()

        def wrong(job: Job) -> Flags | None:
            return self._trial(job, trials.program, folder / f"more{len(job.vectors)}")(*at)

        probe = self._beside(trials.probe, wrong)
        if probe is trials.probe:
            return trials
        whole = self._trial(probe, trials.program, folder / "all")
        as_it_is = whole()
        return None if as_it_is is None else replace(trials, probe=probe, whole=whole, as_it_is=as_it_is)

    def _second_texts(
        self,
        changes: Changes,
        listed: Sequence[Change],
        first: Change,
        texts: Texts,
        folder: Path,
        part: float = PAIRS,
    ) -> list[_Score]:
        """Each of some changes beside a first one, as texts."""
        constants = _Constants([one for one in listed if not one.meets(first)], (first,))

        def wrong(job: Job) -> Flags | None:
            return Texts(changes, job, self.budget, folder / f"more{len(job.vectors)}").wrong(
                (first,), PAIRS, "first"
            )

        folder.mkdir()
        beside = Texts(changes, self._beside(texts.job, wrong), self.budget, folder / "texts")
        self._try_constants(beside, constants, part=part)
        return constants.scores

    def _tried(
        self,
        some: Callable[[range], list[_Score]],
        count: int,
        enough: Callable[[_Score], bool] = lambda _score: False,
        at_once: int = 1,
        beside: int = 0,
    ) -> list[_Score]:
        """What mends more than it breaks, those first that mend most; the search ends with one that is
        `enough` and breaks nothing.

        Args:
            some: tries changes, `at_once` of them.
            beside: processors that have other work.
        """
        scores: list[_Score] = []
        with ThreadPoolExecutor(max(len(os.sched_getaffinity(0)) - beside, 1)) as pool:
            parts = [range(start, min(start + at_once, count)) for start in range(0, count, at_once)]
            for part, trial in [(part, pool.submit(some, part)) for part in parts]:
                found = [score for score in trial.result() if score.mended > score.broken]
                if self.progress:
                    self.progress(part.stop, count)
                scores += found
                if any(enough(score) and not score.broken for score in found):
                    break
            pool.shutdown(wait=False, cancel_futures=True)
        return sorted(scores, key=_order)

    def _try_constants(
        self,
        texts: Texts,
        constants: _Constants,
        built: Callable[[], bool] | None = None,
        part: float = CONSTANTS,
        enough: Callable[[_Score], bool] = lambda score: score.clean,
        only: Callable[[Change], bool] = lambda _change: True,
    ) -> None:
        """Tries constants, each built by itself, from where this ended before: until one mends everything,
        or is `enough`.

        Args:
            built: while the next build is compiled, whether it is there; then this ends. A processor is left
                to it: a build waits for nothing but this.
            only: which are tried.
        """
        stop = _never if built is None else built
        if not constants.started:
            constants.as_it_is = texts.wrong((), part, "as_it_is")
            base = texts.wrong(constants.first, part, "first") if constants.first else constants.as_it_is
            if constants.as_it_is is None or base is None or not base.any():
                constants.listed = []
                return
            few = self._few(texts.job, base)
            constants.few = Texts(texts.changes, few, self.budget, texts.folder / "few")
        if constants.few is None:
            return
        few_texts, as_it_is = constants.few, constants.as_it_is

        def one(number: int) -> _Score | None:
            if self.budget.over(part) or stop():
                return None
            constants.done.add(number)
            chosen = (*constants.first, constants.listed[number])
            first = few_texts.wrong(chosen, part, f"{number}")
            wrong = None if first is None or first.all() else texts.wrong(chosen, part, f"{number}")
            if wrong is None or as_it_is is None:
                return None
            return _scored(chosen, as_it_is, wrong)

        left = [
            number
            for number, change in enumerate(constants.listed)
            if number not in constants.done and only(change)
        ]

        def some(places: range) -> list[_Score]:
            scores = (one(left[place]) for place in places)
            return [score for score in scores if score is not None]

        beside = 0 if built is None else 1
        constants.scores += self._tried(some, len(left), enough, beside=beside)
        constants.scores.sort(key=_order)

    def _few(self, probe: Job, wrong: Flags) -> Job:
        """Some of the vectors that are wrong, of every sort, and of a unit that keeps its accumulator with
        those before them."""
        if probe.vectors.instruction.state:
            first, rng = _firsts(probe.vectors.operands["clear"], wrong), np.random.default_rng(1)
            few = sequences(probe.vectors, np.flatnonzero(first), _FIRST, _FEW_SEQUENCE, rng)
            return replace(probe, vectors=probe.vectors[few]) if len(few) else probe
        some = spread(probe.vectors, np.flatnonzero(wrong), _FIRST, np.random.default_rng(1))
        return replace(probe, vectors=probe.vectors[np.sort(some)])

    def _trial(self, job: Job, program: Path, folder: Path) -> Callable[..., Flags | None]:
        """Runs the changes of some numbers; which vectors are wrong then, None where not all results came."""
        folder.mkdir()
        trial = fast.Trial(job, program, folder, simulators.verilator().env)
        return _Run(trial, self.dut, self.budget)

    def _whole(self, changes: Changes, scores: Sequence[_Score], folder: Path) -> list[Repair]:
        """Of changes that mend all vectors that they were tried on those that mend every one of the check.
        What could not be run is asked again, behind the others."""
        clean = [score for score in scores if score.clean and score.changes not in self.refuted]
        clean.sort(key=lambda score: score.changes in self.unanswered)
        found = [repair for repair in self._confirmed(changes, clean, folder) if repair.whole]
        if not found:  # it ends no search then
            tried = {score.changes for score in clean[:_CONFIRMED]}
            self.refuted |= tried - self.unanswered.keys()
        return found

    def _is_clean(self, score: _Score) -> bool:
        """Whether changes may mend everything, so that no others need to be tried."""
        return score.clean and score.changes not in self.refuted | self.unanswered.keys()

    def _confirmed(self, changes: Changes, scores: Sequence[_Score], folder: Path) -> list[Repair]:
        """The likeliest changes, each as a text of its own on every vector of the check; which of them could
        not be run is noted."""
        clean = [score for score in scores if score.broken * _MAKE_UP <= score.mended]
        most = [score for score in clean if score.left == clean[0].left][:_CONFIRMED]
        found, written = list[Repair](), set[tuple[str, ...]]()
        for number, score in enumerate(most):
            self.unanswered.pop(score.changes, None)
            text = tuple("".join(one.split()) for one in changes.applied(score.changes).values())
            if text in written:  # but for blanks the same is listed already
                continue
            try:
                repair = self._confirm(changes, score.changes, folder / f"{number}")
            except ElaborationError:  # a choice that is no text: the designer could not write it
                continue
            except MmagoldError:
                if score.clean:
                    self.unanswered[score.changes] = [_edit(changes, one) for one in score.changes]
                continue
            if repair is not None and _lists(repair):
                found.append(repair)
                written.add(text)
        whole = [repair for repair in found if repair.whole]
        return whole or sorted(found, key=lambda repair: -repair.mended)[:1]

    def _confirm(self, changes: Changes, chosen: Sequence[Change], folder: Path) -> Repair | None:
        """Changes as the designer would write them, run as the check ran the unit; None where they break the
        handshake, or give a net a second driver, of which Verilator takes one.

        Raises:
            RtlError: the time is over, among others.
        """
        edits = tuple(_edit(changes, change) for change in chosen)
        if edits in self.ran and self.ran[edits].changes == tuple(chosen):  # one line may have two places
            return self.ran[edits].repair
        dut = with_changes(self.dut, changes, chosen, folder)
        if _shared_nets(dut) - _shared_nets(self.dut):
            return None
        job = replace(self.asked, dut=dut, build=folder / "build", program=None, waves=None)
        with self.budget.builds():
            job = replace(job, wall_timeout=min(job.wall_timeout, self.budget.left()))
            outcome = engines.run(self.verdict.outcome.engine, job, lambda _done, _all: self.budget.look())
        if outcome.failures:
            return None
        verdict = judge(self.verdict.vectors, outcome, self.dut.compare)
        repair = Repair(
            edits,
            int((self.verdict.failed & ~verdict.failed).sum()),
            int(self.verdict.failed.sum()),
            int((verdict.failed & ~self.verdict.failed).sum()),
            len(self.verdict.vectors),
        )
        self.ran[edits] = _Ran(tuple(chosen), job, verdict, repair)
        return repair


@dataclass(frozen=True)
class _Run:
    """Runs the build of all choices on some vectors: which are wrong then, None where not all answered."""

    trial: fast.Trial
    dut: Dut
    budget: Budget

    def __call__(self, *chosen: int) -> Flags | None:
        """With the changes of some numbers."""
        return self.each([chosen])[0]

    def each(self, many: Sequence[tuple[int, ...]]) -> list[Flags | None]:
        """The same of several, one after the other."""
        longest = max(self.budget.left(), _LEAST_RUN)
        came = self.trial.many([numbers(*chosen) for chosen in many], _ONE_RUN, longest)
        return [self._wrong(one) for one in came]

    def _wrong(self, came: Mapping[str, Any] | None) -> Flags | None:
        fmt, expected = self.dut.instruction.formats["d"], self.trial.job.vectors.results
        return None if came is None else ~self.dut.compare.right(fmt, expected, came)


def _each(run: Callable[..., Flags | None], many: Sequence[tuple[int, ...]]) -> list[Flags | None]:
    return run.each(many) if isinstance(run, _Run) and many else [run(*one) for one in many]


@dataclass(frozen=True)
class _Ran:
    """Changes, the unit with them, and what it answers to the vectors of the check."""

    changes: tuple[Change, ...]
    job: Job
    verdict: Verdict
    repair: Repair

    @property
    def failed(self) -> Flags:
        """Which vectors fail."""
        return self.verdict.failed


@dataclass(frozen=True)
class _Trials:
    """The build of all choices.

    Attributes:
        probe: the vectors on which a change counts; `as_it_is` are those that are wrong without one.
        listed: the changes; number n stands at n - 1.
        whole: runs `probe` with the changes of some numbers.
        made: changes that stand in it in any case.
        sites: changes that mend every wrong vector, whatever they break: where the fault may be.
        partly: the numbers of changes that mend some of a few vectors, with how many of these they leave.
    """

    probe: Job
    listed: list[Change]
    program: Path
    whole: Callable[..., Flags | None]
    as_it_is: Flags
    folder: Path
    made: tuple[Change, ...] = ()
    sites: list[_Score] = field(default_factory=list)
    partly: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)

    def scores(
        self, few: Callable[..., Flags | None], most: int, many: Sequence[tuple[int, ...]]
    ) -> list[_Score]:
        """What changes do that mend all of a few vectors, of which `most` are wrong: of several runs, each by
        the numbers of its own. Those that mend some are noted: a run of all vectors takes ten times as
        long."""
        likely = []
        for chosen, wrong in zip(many, _each(few, many), strict=True):
            if wrong is not None and not wrong.any():
                likely.append(chosen)
            elif wrong is not None and wrong.sum() < most:
                self.partly.append((int(wrong.sum()), chosen))
        found = self.counted(likely)
        self.sites.extend(score for score in found if score.mended == score.wrong)
        return found

    def counted(self, many: Sequence[tuple[int, ...]]) -> list[_Score]:
        """What changes do to all vectors."""
        found = []
        for chosen, wrong in zip(many, _each(self.whole, many), strict=True):
            changes = (*self.made, *(self.listed[number - 1] for number in chosen))
            found += [] if wrong is None else [_scored(changes, self.as_it_is, wrong)]
        return found


@dataclass
class _Pass:
    """Changes that are tried one after the other, in several goes.

    Attributes:
        many: the numbers of each.
        run: what some of them do.
        at_once: how many one program tries.
        enough: whether the others need not be tried.
        listed: the last change of each.
        done: those that were tried; `scores`: of those that mend more than they break; `failed`: why some
            could not be run.
    """

    many: Sequence[tuple[int, ...]]
    run: Callable[[Sequence[tuple[int, ...]]], list[_Score]]
    at_once: int = _AT_ONCE
    enough: Callable[[_Score], bool] = lambda _score: False
    listed: Sequence[Change] = ()
    done: set[int] = field(default_factory=set)
    scores: list[_Score] = field(default_factory=list)
    failed: list[MmagoldError] = field(default_factory=list)


@dataclass
class _Constants:
    """Constants that are tried one by one, and what came of it.

    Attributes:
        first: a change that each is tried with.
        few: some vectors that are wrong with `first`; None: nothing can be tried.
        as_it_is: the vectors that are wrong without any change.
        done: the numbers of those tried.
    """

    listed: list[Change]
    first: tuple[Change, ...] = ()
    few: Texts | None = None
    as_it_is: Flags | None = None
    done: set[int] = field(default_factory=set)
    scores: list[_Score] = field(default_factory=list)

    @property
    def started(self) -> bool:
        """Whether it is known what is wrong."""
        return self.as_it_is is not None


def _edit(changes: Changes, change: Change) -> Edit:
    file, line = change.place.file, changes.line(change)
    text = changes.texts[file].split("\n")[line - 1].strip()
    if change.form == GUARD:
        return Edit(file, line, text, "", f"if ({change.after})")
    after = f"else {change.after}" if change.form == ELSE else change.after
    if change.too:  # an exchange
        before = " and ".join(
            [change.before, *(changes.texts[at.file][at.start : at.end] for at, _ in change.too)]
        )
        return Edit(file, line, text, before, " and ".join([after, *(text for _, text in change.too)]))
    return Edit(file, line, text, change.before, " ... ".join([*(text for _, text in change.beside), after]))


def _lists(repair: Repair) -> bool:
    """Whether what it mends is a fault of its own, and no chance."""
    return repair.mended * _PART >= repair.wrong and repair.broken * _MAKE_UP <= repair.mended


def _mends_nearly_all(score: _Score) -> bool:
    """Whether a change mends so much that what it leaves is another fault, or all."""
    return score.mended >= _ALL_BUT * score.wrong > 0 and not score.broken


def _shared_nets(dut: Dut) -> set[str]:
    return {name for _, name, _ in several_drivers(design_of(dut))}


def _order(score: _Score) -> tuple[int, int, bool, int, int]:
    """Those first that mend most; of two what drives a signal that nothing drives, then what brings fewer
    other names (there are many, and one that happens to do is soon found), then the one nearer to what stands
    there is the likelier."""
    distances = (abs(len(one.after) - len(one.before)) + len(one.after) for one in score.changes)
    drives = any(one.form == ASSIGN for one in score.changes)
    return (
        score.left,
        len(score.changes),
        not drives,
        sum(len(new_names(one)) for one in score.changes),
        sum(distances),
    )


def _near(work: _Pass) -> list[list[int]]:
    """Those changes of a pass, not tried so far, that stand where one mends everything: within it, or around
    it."""
    clean = [score.changes[-1] for score in work.scores if score.clean]
    left = (number for number in range(len(work.listed)) if number not in work.done)
    near = [number for number in left if any(work.listed[number].meets(one) for one in clean)]
    return [near[start : start + _AT_ONCE] for start in range(0, min(len(near), _BESIDE_ONE), _AT_ONCE)]


def _scored(chosen: tuple[Change, ...], as_it_is: Flags, wrong: Flags) -> _Score:
    """What changes do, of the vectors that are wrong without them and those with them."""
    mended, broken = as_it_is & ~wrong, wrong & ~as_it_is
    return _Score(chosen, int(mended.sum()), int(broken.sum()), int(as_it_is.sum()), mended)


def _complements(singles: Sequence[_Score], share: float = 0) -> list[tuple[Change, ...]]:
    """Pairs of changes that mend more together than any alone, and more than a share of what is wrong, if
    each mends what it mends alone: those that mend most first, and of those the likelier."""
    some = [one for one in singles if one.mended and one.broken * _MAKE_UP <= one.mended]
    found: list[tuple[int, int, tuple[Change, ...]]] = []
    for second, two in enumerate(some):
        for first, one in enumerate(some[:second]):
            both = int((one.mends | two.mends).sum()) if len(one.mends) == len(two.mends) else 0
            if both > max(some[0].mended, share * one.wrong) and not one.changes[0].meets(two.changes[0]):
                found.append((-both, first + second, (one.changes[0], two.changes[0])))
    return [pair for *_, pair in sorted(found, key=lambda each: each[:2])[:_UNITED]]


def _firsts(clear: npt.NDArray[np.uint8], wrong: Flags) -> Flags:
    """Of each sequence the first vector that is wrong."""
    places = np.flatnonzero(wrong)
    _, first = np.unique(starts(clear, places), return_index=True)
    found = np.zeros_like(wrong)
    found[places[first]] = True
    return found


def _of_vectors(scores: Sequence[_Score]) -> list[_Score]:
    """The first of those that mend the same vectors, and behind them the others."""
    new = _first_of(scores, lambda score: score.mends.tobytes())
    return [*new, *(score for score in scores if not any(score is one for one in new))]


def _of_places(scores: Sequence[_Score]) -> list[_Score]:
    """The first of each place."""
    return _first_of(scores, lambda score: score.changes[0].place)


def _first_of(scores: Sequence[_Score], key: Callable[[_Score], Hashable]) -> list[_Score]:
    """The first of those that have one key, in their order."""
    found: dict[Hashable, _Score] = {}
    for score in scores:
        found.setdefault(key(score), score)
    return list(found.values())
