"""Tries changes of a unit's text on vectors that fail, and confirms the ones that repair them.

    found = find_repairs(verdict, job, seconds=60)
    print(found[0].sentence())

One loop over passes, each of which tries candidates of one sort and keeps one invariant; the loop ends with
the first pass that finds a change with which every vector is right:

    probe       no candidate yet: ranks the places (rtl_tb/locate/spectrum.py)
    single      every choice of the first build, which holds the choices at the likeliest places
    constant    changes that cost a build each, until the next build of choices is ready; finally all others
    missing     the choices of the next build, texts that may be missing among them; again until every choice
                was tried
    pair        a second change with each that repairs a part and breaks nothing

A change counts only if the designer's own text with it, built and run as any unit, gives every vector of
the check right: how it was found proves nothing.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from golden.errors import MmagoldError
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.engines import builds, fast
from rtl_tb.engines.job import Job, Traffic
from rtl_tb.errors import RtlError, SimulatorMissing
from rtl_tb.locate.budget import Budget
from rtl_tb.locate.candidates import Candidates
from rtl_tb.locate.changes import Changes, Choice, find_changes
from rtl_tb.locate.choices import Built, build
from rtl_tb.locate.clusters import Samples
from rtl_tb.locate.confirmation import Confirmation
from rtl_tb.locate.kinds import PROBE, Change
from rtl_tb.locate.policy import DEFAULT, SearchPolicy
from rtl_tb.locate.result import Repair
from rtl_tb.locate.score import Flags, Score, order, scored, shows_a_fault
from rtl_tb.locate.selector import numbers
from rtl_tb.locate.several_faults import remaining_faults_of
from rtl_tb.locate.sources import Place, Within
from rtl_tb.locate.spectrum import Spectrum, ranked, ranked_constants, suspicious_lines
from rtl_tb.locate.texts import Texts
from rtl_tb.locate.vhdl import Origin
from rtl_tb.runs.verdict import Verdict, right_results
from rtl_tb.simulators import simulators

Progress = Callable[[int, int], None]
Pass = Callable[[], "list[Score]"]


_PART, _LEAST_PART = 1.0, 8
"""Seconds of the runs of one process, and how many it has at least: starting it costs as much as ten."""
_MORE = 0.4
"""Seconds of a run on many more vectors: a build of the designer's text takes two."""
_TURN = 0.1
"""Seconds after which one that waits for the search looks at the clock."""


class Unfinished(RtlError):
    """Not every kind of change was tried, and no tried one makes the results right."""


class Unconfirmed(RtlError):
    """A change makes every vector right that it was tried on; the time was up before all vectors ran."""


def find_repairs(
    verdict: Verdict,
    job: Job,
    seconds: float | Budget = 60.0,
    progress: Progress | None = None,
    hypotheses: bool = True,
    begun: Search | None = None,
) -> list[Repair]:
    """Looks for one small change of the DUT's text that makes its results right, or for two.

    Args:
        seconds: after which it ends with what it has, or the budget; a run that is under way may take a few
            seconds longer.
        progress: called with how many changes of a pass were tried, and how many there are.
        hypotheses: whether hypotheses are tried on what a change leaves wrong.
        begun: the search, if it began before; None: it begins now.

    Returns:
        Confirmed changes, the likeliest first: changes with which every vector of the check is right or,
        without any, the one that repairs most vectors and breaks none. Empty: no such change was found, or
        the text cannot be changed.

    Raises:
        SimulatorMissing: pyslang or Verilator is not installed. Unfinished: only some changes were tried.
        RtlError: the time was over before anything could be tried, or no vector is wrong in the trials.
    """
    budget = seconds if isinstance(seconds, Budget) else Budget(seconds)
    search = begun or Search(verdict, job, budget)
    try:
        return search.found(budget, progress, hypotheses)
    finally:
        if begun is None:
            search.end()


@dataclass
class Statistics:
    """The work of a pass: its candidates, and how many were tried."""

    candidates: int = 0
    tried: int = 0


@dataclass(frozen=True)
class Trials:
    """A build of choices, ready to be run on some vectors.

    Attributes:
        listed: its choices; number n is at n - 1.
        failed: which of the vectors are wrong without a change, or are not answered.
        first: a few of the vectors that are wrong, and `wrong` how many of these are without a change.
    """

    job: Job
    listed: list[Choice]
    program: Path
    folder: Path
    failed: Flags
    first: Job
    wrong: int


class Search:
    """A search for a change of a text. It runs in threads of its own, while hypotheses are tried: one reads
    the text and makes the builds, the other one runs them. `found` waits for what they find; `end` removes
    what was built.

    Args:
        verdict, job: the wrong results, and the run that showed them.
        at_once: whether it begins now; otherwise `start` or `found` begins it.
        origin: of a text that was made of VHDL, the line of that for the number of a line.
        fresh: makes a run of other vectors under traffic, for the changes that make every vector right.
    """

    def __init__(
        self,
        verdict: Verdict,
        job: Job,
        budget: Budget,
        at_once: bool = True,
        origin: Callable[[int], Origin | None] | None = None,
        policy: SearchPolicy = DEFAULT,
        fresh: Callable[[], Job] | None = None,
    ) -> None:
        self.verdict, self.original, self.policy, self.origin = verdict, job, policy, origin
        self.fresh = fresh
        self.budget = self.own_time = budget.aside()
        self.dut, self.hypotheses = job.dut, True
        self.progress: Progress | None = None
        self.samples = Samples(verdict, job, self.policy)
        self.spectrum: Spectrum | None = None
        self.hinted: dict[tuple[Path, int], float] = {}
        """See suspicious_lines."""
        self.statistics: dict[str, Statistics] = {}
        self.not_built: list[str] = []
        """Reasons why builds of choices failed."""
        self.build_seconds = 0.0
        """What the last build of choices took; `built_size`: the characters of its choices."""
        self.built_size = 0
        self.turn = Budget(0.0)
        """The time for constants on one processor."""
        self.once_more = False
        """Whether a change was confirmed, and one further build looks for equally consistent ones."""
        self.folders = count()
        """Numbers of folders."""
        self.scores: list[Score] = []
        """Changes that repair some vectors and are not refuted."""
        self.vector_seconds = float("inf")
        """What a vector takes in a build of choices of which none is chosen."""
        plain = replace(job, program=None, waves=None, simulator="verilator")
        cycles = verdict.outcome.cycles // max(len(verdict.vectors), 1)
        self.plain = replace(plain, vectors=verdict.vectors, timeout_cycles=max(500, 4 * cycles))
        calm = Traffic(seed=job.traffic.seed)
        self.probe = replace(self.plain.at(self.samples.picked), traffic=calm)
        job.build.mkdir(parents=True, exist_ok=True)
        self.place = tempfile.TemporaryDirectory(prefix="repair_", dir=job.build.absolute())
        self.folder = Path(self.place.name)
        self.side, self.front = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self.read, self.first = Future[Changes](), Future[Trials | None]()
        self.whole = Future[list[Repair]]()
        self.started = False
        if at_once:
            self.start()

    def start(self) -> None:
        """Begins, unless it has begun."""
        if not self.started:
            self.started = True
            self.read = self.side.submit(self._read)
            self.first = self.side.submit(self._begin)
            self.whole = self.front.submit(self._passes)

    def end(self) -> None:
        """Ends what is under way, and removes what was built."""
        self.own_time.end()
        self.front.shutdown(cancel_futures=True)
        self.side.shutdown(cancel_futures=True)
        builds.forget(self.folder)
        with suppress(OSError):
            self.place.cleanup()

    def found(self, budget: Budget, progress: Progress | None, hypotheses: bool) -> list[Repair]:
        """See find_repairs."""
        self.start()
        if not self.read.result().texts:
            return []
        self.progress = progress
        if budget.over():
            self.own_time.end()
        try:
            if whole := self.whole.result():
                return whole
        except RtlError:  # the time was up in the midst of it
            if not self.scores:
                raise
        self.budget, self.hypotheses = budget, hypotheses
        return self._partly()

    def suspects(self) -> list[str]:
        """The likeliest places, if no change was confirmed: each with what makes failing vectors right there,
        and with their share; a sentence for each line of the text."""
        found: dict[tuple[Path, int], str] = {}
        for _, share, change in [] if self.spectrum is None else self.spectrum.suspects():
            edit = self.confirmation.edit(change)
            right = "all" if share == 1 else f"{share:.0%}"
            said = f"{edit.phrase()} {right} of the wrong vectors on which it was tried are right"
            found.setdefault((edit.file, edit.line), said)
        return list(found.values())[: self.policy.shown]

    @property
    def repaired(self) -> bool:
        """Whether one change makes every vector of the check right, as far as is known by now."""
        done = self.whole.done() and self.whole.exception() is None
        return done and any(one.by_one for one in self.whole.result())

    def wait(self, until: Budget) -> None:
        """Waits for the changes that make every vector right, at most until a budget ends."""
        while not self.whole.done() and not until.over():
            wait((self.whole,), _TURN)

    def _read(self) -> Changes:
        return find_changes(self.dut, self.budget, self.policy)

    def _begin(self) -> Trials | None:
        """Ranks the places, and builds the choices at the likeliest ones."""
        try:
            self._know(self.read.result())
        except MmagoldError:  # `found` raises it
            return None
        # 1. The ranking only decides the order of trials; without it every choice has the same rank.
        listed = self.candidates.probes()
        if (probes := self._trials(lambda: self._built(listed, "probes"), "probe")) is not None:
            self._order_places(probes)
        # 2. The first build holds the likeliest choices; each later one has twice as many.
        return self._trials(lambda: self._next("first"), "first")

    def _know(self, changes: Changes) -> None:
        """Takes the changes of the text, as soon as it was read."""
        few = len(self.samples.picked)
        self.changes, self.candidates = changes, Candidates(changes, self.policy)
        self.confirmation = Confirmation(
            self.verdict, self.original, changes, self.folder, few, self.origin, self.fresh
        )

    def _passes(self) -> list[Repair]:
        """The loop. After each pass every candidate that it tried is refuted, or listed in `scores`."""
        if not self.read.result().texts:
            return []
        shown = self.verdict.failed[self.samples.picked]
        none_wrong = RtlError(f"none of the {len(shown):,} vectors on which they are tried is wrong")
        if not shown.any():
            raise none_wrong
        first = self.first.result()  # from here on what `_know` sets is there
        self.budget.look()
        if first is not None:  # under other traffic the unit may be right without any change
            self.probe = replace(self.probe, traffic=first.job.traffic)
        constants = _Constants([self._hinted_constants, self._every_constant])
        if first is None and constants.untried():
            # No build failed on its vectors, and few vectors see no rare reset. Then every change would pass.
            constants.few = self._texts(self.samples.few(self.probe, shown), "constants_few")
            unchanged = constants.few.wrong((), self.policy.searching, "unchanged")
            if unchanged is not None and not unchanged.any():
                raise none_wrong
        for name, tries in self._every_pass(first, constants):
            self.current = self.statistics.setdefault(name, Statistics())
            # A pass reports candidates; only the whole check, with the designer's own text, accepts one.
            self.scores = sorted([*self.scores, *tries()], key=order)
            if not (found := self._whole()):
                continue
            # A wrong value can be repaired where it is made and where it is used, and an added text often
            # repairs what a wrong one near it does: one further build looks for that.
            if not self.once_more and not self.budget.over(self.policy.rivals):
                self.once_more = True
                self._look_around(
                    one for each in found for one in self.confirmation.confirmed[each.edits].changes
                )
            else:
                return found
        return self._whole()

    def _look_around(self, changes: Iterable[Change]) -> None:
        """Ranks the places higher that make what a repaired place reads, or read what it makes."""
        # Below the places at which something repaired every failing vector, above all that only matter.
        rank = 0.5
        if self.spectrum is not None:
            near = {place for one in changes for place in self.changes.neighbours(one.place)}
            self.spectrum.note_repairs(dict.fromkeys(near, (rank, None)))

    def _hinted_constants(self) -> list[Change]:
        """The constants in lines of which the lint warns, and in declarations of what it names there."""
        with suppress(RtlError), self.budget.builds(self.policy.searching):
            self.hinted = suspicious_lines(self.dut, self.changes)
        return self._constants_on(self.hinted)

    def _constants_on(self, lines: Iterable[tuple[Path, int]]) -> list[Change]:
        places, texts = list[Place](), self.changes.texts
        for file, line in lines:
            before, text = texts[file].split("\n")[: line - 1], texts[file].split("\n")[line - 1]
            start = sum(len(each) + 1 for each in before)
            places.append(Place(file, start + len(text) - len(text.lstrip()), start + len(text.rstrip())))
        listed = self.changes.constants_at(Within(places)) if places else []
        return ranked_constants(self.changes, listed, self.spectrum, self.hinted)

    def _every_constant(self) -> list[Change]:
        return ranked_constants(self.changes, self.changes.constants, self.spectrum, self.hinted)

    def _every_pass(self, first: Trials | None, constants: _Constants) -> Iterator[tuple[str, Pass]]:
        """The passes, by name. While the choices of one build are tried the next one is made."""
        if first is not None:
            # One processor finishes a confirmation sooner if no build runs at the same time. A build tries
            # a hundred times as many changes in a second as constants do, so these leave it to the build.
            ahead = len(os.sched_getaffinity(0)) > 1
            there = self._ahead("next0") if ahead else None
            trials = first
            for number in count():
                yield "missing" if number else "single", partial(self._singles, trials)
                # During a build on the same processor a constant would take twice its time, so that they
                # take turns: as long as the last build, and after the first turn only if the next build is
                # done in time. Of a text that was not read as a whole only the hinted ones are cheaply found.
                done = there.done if there else (lambda: self.turn.over())
                left = self.budget.left(self.policy.searching)
                in_time = (ahead or not number or left > 3 * self.build_seconds) and not self.once_more
                if in_time and (number or self.candidates.whole_text or constants.untried(further=False)):
                    yield "constant", partial(self._try_constants, constants, done)
                there = there or self._ahead(f"next{number}")
                if (following := there.result()) is None:
                    break
                trials, there = following, self._ahead(f"next{number + 1}") if ahead else None
        yield "constants left", lambda: self._try_constants(constants)
        if first is not None:
            yield "pair", lambda: self._pairs(first)

    def _ahead(self, name: str) -> Future[Trials | None]:
        """Begins the next build of choices in the other thread."""
        return self.side.submit(self._trials, partial(self._next, name), name)

    # Builds -------------------------------------------------------------------------------------------------

    def _built(self, listed: list[Choice], name: str, part: float = 1.0) -> Built | None:
        """A build of some choices; None where there are none."""
        if not listed:
            return None
        self.built_size = sum(one.size for one in listed)
        folder = self.folder / name
        return build(
            self.dut,
            self.changes,
            listed,
            self.original,
            folder,
            self.budget,
            self.policy,
            part=part,
            wrapper=self.wrapper,
        )

    @cached_property
    def wrapper(self) -> str:
        """The text around the DUT, which no choice changes."""
        return wrapper_of(self.dut)

    def _next(self, name: str) -> Built | None:
        """A build of the next choices, texts that may be missing among them; None if there are none."""
        part = self.policy.searching
        return self._built(self.candidates.next(self.budget.left(part)), name, part)

    def _trials(self, made: Callable[[], Built | None], name: str) -> Trials | None:
        """A build with the results of its vectors without a change; None if there is none, or no vector is
        wrong."""
        started = time.monotonic()
        try:
            if (built := made()) is None:
                return None
            self.build_seconds = time.monotonic() - started
            self.candidates.note_build(self.built_size, self.build_seconds)
        except SimulatorMissing:
            raise
        except RtlError as error:
            self.not_built.append(str(error))
            return None
        listed, program = built
        busy = self.original.traffic  # a fault may show in pauses and waits alone, or behind a reset
        # Without any traffic, with pauses and waits, with resets: the first under which half of what fails
        # does, since the first vector alone may fail for what lies before it; or that under which most does.
        wanted = self.verdict.failed[self.samples.picked]
        enough, most = wanted.sum() / 2, 0
        found: tuple[Job, Path, Flags] | None = None
        for number, traffic in enumerate((self.probe.traffic, replace(busy, resets=0), busy)):
            job = replace(self.probe, traffic=traffic)
            folder = self.folder / f"{name}_{number}"
            came = self._run(job, program, folder, [()])[0]
            failed = wanted if came is None else self._wrong(job, came)
            if failed.sum() > most:
                found, most = (job, folder, failed), failed.sum()
            if most >= enough:
                break
        if found is None:
            return None
        job, folder, failed = found
        first = self.samples.few(job, failed)
        came = self._run(first, program, folder / "few", [()])[0]
        wrong = len(first.vectors) if came is None else int(self._wrong(first, came).sum())
        return Trials(job, listed, program, folder, failed, first, wrong)

    def _run(self, job: Job, program: Path, folder: Path, many: Sequence[tuple[int, ...]]) -> list[Any]:
        """The results by name of each run, with the choices of some numbers, and which were answered; None if
        the program failed."""
        folder.mkdir(exist_ok=True)
        trial = fast.Trial(job, program, folder, simulators.verilator().env)
        longest = max(self.budget.left(), 1.0)
        start = time.monotonic()
        slow = self.policy.slower * self.vector_seconds * len(job.vectors)
        seconds = min(self.policy.one_run, max(self.policy.least_run, slow))
        found = trial.many([numbers(*chosen) for chosen in many], seconds, longest)
        if not any(many) and found[0] is not None:  # a short run is mostly the start of the program
            answered = max(int(found[0][fast.ANSWERED].sum()), 1)
            self.vector_seconds = min(self.vector_seconds, (time.monotonic() - start) / answered)
        return found

    def _wrong(self, job: Job, came: Mapping[str, Any]) -> Flags:
        same = right_results(job.vectors, job.vectors.results, came, self.dut.compare)
        return np.asarray(~(came[fast.ANSWERED] & same), np.bool_)

    # Passes -------------------------------------------------------------------------------------------------

    def _order_places(self, trials: Trials) -> None:
        """Pass `probe`: which vectors depend on which place. Invariant: no candidate is dropped, some are
        only tried later."""
        job = self.samples.both(trials.job, trials.failed)
        folder = trials.folder / "probe"
        base = self._run(job, trials.program, folder, [()])[0]
        few = {number: one for number, one in enumerate(trials.listed, 1) if one.change.kind == PROBE}
        if base is None:
            spectrum = Spectrum(self.samples.failing_of_both[:, None])
        else:
            expected = job.vectors.results | {fast.ANSWERED: np.ones(len(job.vectors), np.bool_)}
            differ = _differing(base, expected)
            spectrum = Spectrum(differ & self._wrong(job, base)[:, None])
        ends = 1.0 - self.budget.left() / self.budget.seconds + self.policy.probing
        for some in _parts(list(few), self.policy.at_once):
            if self.budget.over(ends):
                break
            for number, came in zip(
                some, self._run(job, trials.program, folder, [(at,) for at in some]), strict=True
            ):
                changed = None if came is None or base is None else _differing(came, base)
                if changed is not None and came[fast.ANSWERED].sum() < base[fast.ANSWERED].sum():
                    changed[~came[fast.ANSWERED]] = (
                        True  # it stops earlier, so what comes later depends on it
                    )
                wrong = None if came is None else self._wrong(job, came)
                spectrum.note(few[number].site, changed, wrong, few[number].change)
        self.spectrum = self.candidates.spectrum = spectrum

    def _singles(self, trials: Trials) -> list[Score]:
        """Pass `single` and `missing`: each choice on the few vectors and, if it repairs all of these, on
        all. Invariant: a choice that is not listed leaves one of the few wrong."""
        order = self._ranked(trials)
        return self._try(trials, [(number,) for number in order], trials.first, self.policy.searching)

    def _ranked(self, trials: Trials) -> list[int]:
        """The numbers of the choices of a build, the likeliest places first."""
        at = {id(one): number for number, one in enumerate(trials.listed, 1)}
        usable = [one for one in trials.listed if one.change.kind != PROBE]
        return [at[id(one)] for one in ranked(usable, self.spectrum)]

    def _try(self, trials: Trials, many: Sequence[tuple[int, ...]], first: Job, part: float) -> list[Score]:
        """Runs choices of a build, several in one program. After one that repairs all, the others are tried,
        too, while there is time: they may be equally consistent."""
        self.current.candidates += len(many)
        least, scores = 0.0, list[Score]()
        repairing, operands = dict[Place, tuple[float, Change | None]](), dict[Place, float]()
        most = trials.wrong if first is trials.first else len(first.vectors)

        def some(chosen: Sequence[tuple[int, ...]], number: int) -> list[Score]:
            less_likely = self._evidence(trials, chosen[0]) < least
            if self.budget.over(min(part, self.policy.rivals) if less_likely else part):
                return []
            self.current.tried += len(chosen)
            folder = trials.folder / f"few{number}_{len(chosen[0])}"
            came = self._run(first, trials.program, folder, chosen)
            wrong = {
                one: int(self._wrong(first, each).sum())
                for one, each in zip(chosen, came, strict=True)
                if each is not None
            }
            for one, still in wrong.items():
                choice, share = trials.listed[one[-1] - 1], max(most - still, 0) / max(most, 1)
                if share > operands.get(choice.change.place, 0.0):
                    operands[choice.change.place] = share
                if choice.root is not None and share > repairing.get(choice.root, (0.0, None))[0]:
                    repairing[choice.root] = share, choice.change
            likely = [one for one, count in wrong.items() if not count]
            partly = sorted((count, one) for one, count in wrong.items() if 0 < count < most)
            likely += [one for _, one in partly[: self.policy.counted]]
            every = (
                self._run(trials.job, trials.program, folder.with_suffix(".all"), likely) if likely else []
            )
            found = {
                one: self._score(trials, one, results)
                for one, results in zip(likely, every, strict=True)
                if results is not None
            }
            self._on_more(trials, found, folder)
            return list(found.values())

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            # The clock is looked at between parts.
            size = int(_PART / (self.vector_seconds * len(first.vectors)))
            parts = list(_parts(many, max(min(size, self.policy.at_once), _LEAST_PART)))
            futures = [pool.submit(some, one, number) for number, one in enumerate(parts)]
            done = 0
            for each, future in zip(parts, futures, strict=True):
                done += len(each)
                found = [score for score in future.result() if score.right > score.broken]
                scores += found
                if self.progress:
                    self.progress(done, len(many))
                least = max([least, *(one.evidence for one in found if one.clean)])
        if self.spectrum is not None:  # the next builds look further where changes repair something
            self.spectrum.note_repairs(repairing, operands)
        return scores

    def _on_more(self, trials: Trials, scores: dict[tuple[int, ...], Score], folder: Path) -> None:
        """Changes the scores of choices that repair all vectors of the trials, and not all of many more: a
        fault that few vectors show has many such rivals."""
        clean = [one for one, score in scores.items() if score.clean]
        for number, places in enumerate(self.samples.more):
            if not clean:
                break
            room = max(int(_MORE / self.vector_seconds), len(self.samples.picked) + 1)
            job = replace(self.plain.at(places[:room]), traffic=trials.job.traffic)
            every = self._run(job, trials.program, folder.with_suffix(f".more{number}"), clean)
            for one, results in zip(clean, every, strict=True):
                if results is not None:
                    changes, wrong = scores[one].changes, self._wrong(job, results)
                    evidence = scores[one].evidence
                    scores[one] = scored(changes, self.verdict.failed[places[:room]], wrong, evidence)
            clean = [one for one in clean if scores[one].clean]

    def _evidence(self, trials: Trials, chosen: tuple[int, ...]) -> float:
        """The suspiciousness of the places of some choices, in steps of a hundredth."""
        some = [trials.listed[number - 1] for number in chosen]
        return min(round(self.spectrum.score(one.root), 2) for one in some) if self.spectrum else 0.0

    def _score(self, trials: Trials, chosen: tuple[int, ...], results: Mapping[str, Any]) -> Score:
        changes = tuple(trials.listed[number - 1].change for number in chosen)
        evidence = self._evidence(trials, chosen)
        return scored(changes, trials.failed, self._wrong(trials.job, results), evidence)

    def _try_constants(
        self, constants: _Constants, build_ended: Callable[[], bool] | None = None
    ) -> list[Score]:
        """Pass `constant`: each built by itself, until one repairs everything, or the turn of the next build
        of choices has come, which `build_ended` says. Invariant: as for choices; it continues where it ended
        before."""
        part, failed = self.policy.searching, self.verdict.failed[self.samples.picked]
        if not (left := constants.untried()):
            return []
        if constants.few is None:
            few = self.samples.few(self.probe, failed)
            constants.few = self._texts(few, f"constants_few{next(self.folders)}", self.build_seconds)
        few_texts = constants.few
        # One that takes longer than a build of choices, which tries hundreds, comes after all of these.
        if build_ended is not None and few_texts.seconds > self.build_seconds:
            return []

        def stop() -> bool:
            return build_ended is not None and build_ended()

        def one(change: Change) -> Score | None:
            if self.budget.over(part) or stop() or constants.clean:
                return None
            constants.tried.add(change)
            self.current.tried += 1
            number = next(self.folders)
            wrong = few_texts.wrong((change,), part, f"{number}")
            if wrong is None or wrong.all():
                return None
            with constants.lock:
                constants.whole = constants.whole or self._texts(self.probe, f"constants{next(self.folders)}")
            wrong = constants.whole.wrong((change,), part, f"{number}")
            if wrong is None:
                return None
            score = scored((change,), failed, wrong, 0.5)
            constants.clean = constants.clean or score.clean
            return score

        self.current.candidates += len(left)
        self.turn = Budget(self.build_seconds)
        processors = len(os.sched_getaffinity(0)) - (build_ended is not None)
        with ThreadPoolExecutor(max(processors, 1)) as pool:
            scores = [score for score in pool.map(one, left) if score is not None]
        constants.clean = False
        return [score for score in scores if score.right > score.broken]

    def _texts(self, job: Job, name: str, longest: float = float("inf")) -> Texts:
        return Texts(self.changes, job, self.budget, self.folder / name, self.policy, longest)

    def _pairs(self, trials: Trials) -> list[Score]:
        """Pass `pair`: every choice of the first build together with each of its changes that repairs a part.
        Invariant: a listed pair repairs more than its first change alone."""
        numbers = {one.change: number for number, one in enumerate(trials.listed, 1)}
        partly = [one for one in self.scores if shows_a_fault(one.right, one.wrong, one.broken, self.policy)]
        firsts = [one for one in partly if one.changes[0] in numbers and len(one.changes) == 1]
        found: list[Score] = []
        for score in firsts[: self.policy.firsts]:
            at = numbers[score.changes[0]]
            results = self._run(trials.job, trials.program, trials.folder / f"first{at}", [(at,)])[0]
            if results is None or not (left := self._wrong(trials.job, results)).any():
                continue
            many = [
                (at, number)
                for number in self._ranked(trials)
                if not trials.listed[number - 1].change.meets(score.changes[0])
            ]
            first = self.samples.few(trials.job, left)
            more = self._try(trials, many, first, self.policy.pairs)
            found += [one for one in more if one.right > score.right]
            if any(one.clean for one in found):
                break
        return found

    # What was found -----------------------------------------------------------------------------------------

    def _whole(self) -> list[Repair]:
        """The changes that repair every vector of the check, among the ones that repaired all of a trial: one
        a line, the likeliest first."""
        clean = [one for one in self.scores if one.clean and one.changes not in self.confirmation.refuted]
        found: dict[tuple[tuple[Path, int], ...], Repair] = {}
        tried = 0
        for score in clean:
            where = tuple((one.file, one.line) for one in map(self.confirmation.edit, score.changes))
            if where in found or len(found) >= self.policy.shown or tried >= 4 * self.policy.confirmed:
                continue
            tried += 1
            repair = self.confirmation.of(score, self.budget)
            if repair is not None and repair.sure:
                found[where] = repair
        return [
            self.confirmation.by_fault(replace(repair, rivals=len(found) - 1), self.budget)
            for repair in found.values()
        ]

    def _partly(self) -> list[Repair]:
        """If no change repairs all, the change that repairs most and breaks none, and hypotheses about the
        rest.

        Raises:
            Unfinished: there is none, and not everything was tried.
        """
        found: list[Repair] = []
        good = [one for one in self.scores if shows_a_fault(one.right, one.wrong, one.broken, self.policy)]
        for score in good[: self.policy.confirmed]:
            repair = self.confirmation.of(score, self.budget)
            if repair is None or self.confirmation.is_constant(repair):
                continue
            if shows_a_fault(repair.repaired, repair.wrong, repair.broken, self.policy):
                found.append(repair)
        found.sort(key=lambda one: -one.repaired)
        if not found:
            self._say_what_was_not_tried()
            return []
        best = replace(found[0], untried=self._untried())
        if self.hypotheses:
            single = [each for each in self.confirmation.confirmed.values() if len(each.changes) == 1]
            for one in sorted(single, key=lambda each: -each.repair.repaired)[:2]:
                with suppress(MmagoldError):  # what was found stays found
                    if rest := remaining_faults_of(one.verdict, one.job, self.original, self.budget.look):
                        return [self.confirmation.by_fault(replace(one.repair, rest=rest), self.budget)]
        return [self.confirmation.by_fault(best, self.budget)]

    def _untried(self) -> str:
        """The choices that were not tried, and the reason."""
        out = [
            f"{one.candidates - one.tried:,} of {one.candidates:,} changes of the pass '{name}'"
            for name, one in self.statistics.items()
            if one.tried < one.candidates and name != "constant"
        ]
        said = [" and ".join(out)] if out else []
        said += [" and ".join(dict.fromkeys(self.not_built))] if self.not_built else []
        left = list(self.changes.not_read)
        more = f" and {len(left) - 3} more" if len(left) > 3 else ""
        said += [f"what was not looked at ({', '.join(left[:3])}{more})"] if left else []
        return " and ".join(said)

    def _say_what_was_not_tried(self) -> None:
        tried = sum(one.tried for one in self.statistics.values())
        if not tried and self.not_built:
            raise RtlError(self.not_built[0])
        if said := self.confirmation.not_run(self.policy.shown):
            raise Unconfirmed(said)
        if untried := self._untried():
            raise Unfinished(untried)


@dataclass
class _Constants:
    """Constants that are tried one by one, and the progress so far. Each of `parts` looks for some and ranks
    them when it is due: that takes seconds in a large text."""

    parts: list[Callable[[], list[Change]]]
    few: Texts | None = None
    """The unit with the first vectors, with one text after the other, and `whole` with all of a trial."""
    whole: Texts | None = None
    lock: Lock = field(default_factory=Lock)
    listed: dict[Change, None] = field(default_factory=dict)
    """The likeliest ones of each part first."""
    tried: set[Change] = field(default_factory=set)
    clean: bool = False

    def untried(self, further: bool = True) -> list[Change]:
        """Those of the parts that were looked for, or of the next one if they were all tried; `further`: or
        of the ones after it."""
        while self.parts and (further or not self.listed) and self.tried.issuperset(self.listed):
            self.listed |= dict.fromkeys(self.parts.pop(0)())
            if not further:
                break
        return [one for one in self.listed if one not in self.tried]


def _parts(many: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    yield from (many[at : at + size] for at in range(0, len(many), size))


def _differing(one: Mapping[str, Any], two: Mapping[str, Any]) -> Flags:
    """Which bits of the results differ, (count, bits), in all of their values."""
    parts = [
        np.asarray(codes, np.uint64) ^ np.asarray(two[name], np.uint64)
        for name, codes in one.items()
        if codes is not None and two.get(name) is not None
    ]
    rows = np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
    return np.unpackbits(np.ascontiguousarray(rows).view(np.uint8), axis=1).astype(np.bool_)
