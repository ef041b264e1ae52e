"""Tries the changes of a unit's text on vectors that fail, and confirms those that make them right.

    found = find_repairs(verdict, job, seconds=60)
    print(found[0].sentence())

A change counts only where the designer's own text with it, built and run as any unit, gives every vector of
the check right: how it was found proves nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import MmagoldError
from rtl_tb import engines
from rtl_tb.check.repair.changes import Change, Changes, find_changes, write
from rtl_tb.check.repair.selector import VARIABLE, with_selector
from rtl_tb.check.verdict import Verdict, judge
from rtl_tb.dut.description import Dut
from rtl_tb.engines import builds, fast
from rtl_tb.engines.job import Job, Traffic
from rtl_tb.errors import ElaborationError
from rtl_tb.simulators import simulators

Progress = Callable[[int, int], None]
Flags = npt.NDArray[np.bool_]
_FIRST, _FAILING, _PASSING = 12, 160, 96
"""Vectors on which every change is tried: few that fail and, where it mends one of them, more, and such that
a change must not break."""
_SEQUENCE = 512
"""The first so many instead, of a unit that keeps its accumulator."""
_BUILDERS = (("selfcheck", "icarus"), ("fast", "verilator"))
"""What builds a unit for each constant: Icarus Verilog is quick, but cannot read every unit."""
_ONE_BUILD = 20.0
"""Seconds; a constant may make a design of any size."""
_ONE_RUN = 5.0
"""Seconds; a change that makes the unit hang is none."""
_CONFIRMED = 4
"""Changes that are built and run on all vectors: those that mend every vector tried, the likeliest first."""
_REFUSED = 12
"""Places that Verilator may refuse in a build of all choices before it is given up."""
_PLACE = re.compile(r"/(\d+)_[^/\s]*:(\d+):")


@dataclass(frozen=True)
class Repair:
    """A change, and what it does to the vectors of a check.

    Attributes:
        file, line: where it stands, lines from 1; `text` is that line.
        before, after: what stands there, and what it has to be.
        mended: wrong vectors that it makes right, of `wrong`.
        broken: right vectors that it makes wrong.
        vectors: those that were run.
    """

    file: Path
    line: int
    text: str
    before: str
    after: str
    mended: int
    wrong: int
    broken: int
    vectors: int

    @property
    def whole(self) -> bool:
        """Whether every vector is right with it."""
        return self.mended == self.wrong and not self.broken

    def as_dict(self) -> dict[str, Any]:
        """As reports hold it."""
        return asdict(self) | {"file": str(self.file), "whole": self.whole, "sentence": self.sentence()}

    def sentence(self) -> str:
        """One line for the reader."""
        near = os.path.relpath(self.file)
        place = self.file.name if near.startswith("..") else near
        after, before, text = (" ".join(each.split()) for each in (self.after, self.before, self.text))
        where = f"{place}:{self.line}: with `{after}` for `{before}` in `{text}`"
        if self.whole:
            return f"{where} all {self.vectors:,} vectors are right"
        return f"{where} {self.mended:,} of the {self.wrong:,} wrong vectors are right, and no other is wrong"


@dataclass(frozen=True)
class _Score:
    """What a change did to the vectors that it was tried on."""

    change: Change
    mended: int
    broken: int


def find_repairs(
    verdict: Verdict, job: Job, seconds: float = 60.0, progress: Progress | None = None
) -> list[Repair]:
    """Looks for one small change of the DUT's text that makes its results right.

    Returns:
        Confirmed changes, the likeliest first: those with which every vector of the check is right or, where
        there is none, the one that mends most without breaking any. Nothing: no such change was found, or
        the text cannot be changed.

    Raises:
        SimulatorMissing: pyslang or Verilator is not installed.
    """
    return _Search(verdict, job, time.monotonic() + seconds, progress).found()


class _Search:
    def __init__(self, verdict: Verdict, job: Job, deadline: float, progress: Progress | None) -> None:
        self.verdict, self.deadline, self.progress = verdict, deadline, progress
        self.asked = job
        self.job = replace(
            job, program=None, waves=None, simulator="verilator", traffic=Traffic(seed=job.traffic.seed)
        )
        self.dut = job.dut

    def found(self) -> list[Repair]:
        """See find_repairs."""
        changes = find_changes(self.dut)
        self.picked = self._picked()
        if not changes.texts or not self.verdict.wrong[self.picked].any():
            return []
        self.job.build.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="repair_", dir=self.job.build.absolute()) as name:
            probe = replace(self.job, vectors=self.verdict.vectors[self.picked], timeout_cycles=500)
            try:
                return self._either(changes, probe, Path(name))
            finally:
                builds.forget(Path(name))

    def _either(self, changes: Changes, probe: Job, folder: Path) -> list[Repair]:
        """What a choice mends or, where none mends everything, a constant."""
        found: list[Repair] = []
        refused: ElaborationError | None = None
        try:
            found = self._confirmed(changes, self._scores(changes, probe, folder), folder / "choice")
        except ElaborationError as error:
            refused = error
        if any(repair.whole for repair in found):
            return found
        found = (
            self._confirmed(changes, self._constants(changes, probe, folder), folder / "constant") or found
        )
        if refused is not None and not found:
            raise refused
        return found

    def _picked(self) -> npt.NDArray[np.int64]:
        """The vectors that changes are tried on, every kind of failure among them."""
        count = len(self.verdict.vectors)
        if self.verdict.vectors.instruction.state:
            return np.arange(min(count, _SEQUENCE))
        rng = np.random.default_rng(1)
        wrong = np.flatnonzero(self.verdict.wrong)
        right = np.flatnonzero(~self.verdict.failed)
        some = [
            rng.choice(those, min(most, len(those)), replace=False)
            for those, most in ((wrong, _FAILING), (right, _PASSING))
        ]
        return np.sort(np.concatenate(some))

    def _scores(self, changes: Changes, probe: Job, folder: Path) -> list[_Score]:
        """Every choice, tried on the vectors of `probe`; those first that mend most."""
        listed = changes.of_choices()
        built = self._built(changes, listed, probe, folder)
        if built is None:
            return []
        listed, program = built
        whole = self._trial(probe, program, folder / "all")
        as_it_is = whole(0)
        if as_it_is is None or not as_it_is.any():
            return []
        few = self._trial(self._few(probe, as_it_is), program, folder / "few")

        def one(number: int) -> _Score | None:
            if time.monotonic() > self.deadline:
                return None
            number += 1
            first = few(number)
            wrong = None if first is None or first.all() else whole(number)
            if wrong is None:
                return None
            mended, broken = as_it_is & ~wrong, wrong & ~as_it_is
            return _Score(listed[number - 1], int(mended.sum()), int(broken.sum()))

        return self._tried(one, len(listed))

    def _tried(
        self, one: Callable[[int], _Score | None], count: int, enough: int | None = None
    ) -> list[_Score]:
        """The changes that mend something and break nothing, those first that mend most; at most `enough`."""
        scores: list[_Score] = []
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            trials = [pool.submit(one, number) for number in range(count)]
            for done, trial in enumerate(trials):
                if self.progress:
                    self.progress(done, count)
                score = trial.result()
                if score is not None and score.mended and not score.broken:
                    scores.append(score)
                if len(scores) == enough:
                    break
            pool.shutdown(wait=False, cancel_futures=True)
        return sorted(scores, key=lambda score: (-score.mended, _distance(score.change)))

    def _constants(self, changes: Changes, probe: Job, folder: Path) -> list[_Score]:
        """Constants that make a few wrong vectors right, each built by itself."""
        few = self._few(probe, self.verdict.wrong[self.picked])
        as_it_is = None
        for engine, simulator in _BUILDERS:
            few = replace(few, simulator=simulator, translate=False)
            if (as_it_is := self._elaborated(engine, few, self.dut, folder / "constant0")) is not None:
                break
        if as_it_is is None or not as_it_is.any():
            return []
        listed = changes.of_constants()

        def one(number: int) -> _Score | None:
            if time.monotonic() > self.deadline:
                return None
            change, place = listed[number], folder / f"constant{number + 1}"
            wrong = self._elaborated(
                engine, few, with_change(self.dut, changes, change, place / "rtl"), place
            )
            shutil.rmtree(place, ignore_errors=True)
            return None if wrong is None or wrong.any() else _Score(change, int(as_it_is.sum()), 0)

        return self._tried(one, len(listed), 1)

    def _elaborated(self, engine: str, job: Job, dut: Dut, folder: Path) -> Flags | None:
        """Which vectors of a job are wrong; None where the text is refused, or does not answer."""
        try:
            with simulators.longest_build(_ONE_BUILD):
                outcome = engines.run(engine, replace(job, dut=dut, build=folder / "build"))
        except MmagoldError:
            return None
        finally:
            builds.forget(folder)
        return judge(job.vectors, outcome, dut.compare).failed

    def _built(
        self, changes: Changes, listed: list[Change], probe: Job, folder: Path
    ) -> tuple[list[Change], Path] | None:
        """The program of all choices, without those that Verilator refuses."""
        places = set(changes.in_subroutines)
        for attempt in range(_REFUSED):
            dut = with_selector(self.dut, changes, listed, folder / f"choices{attempt}")
            try:
                job = replace(probe, dut=dut, build=folder / "build")
                return listed, fast.build(job, simulators.verilator(), fast.FOR_TRIALS)
            except ElaborationError as error:
                refused = _PLACE.search(str(error))
                kept = listed
                if refused is not None:
                    file, line = self.dut.sources[int(refused[1])].resolve(), int(refused[2])
                    kept = [one for one in listed if (one.place.file, changes.line(one)) != (file, line)]
                if len(kept) == len(listed):  # a constant that calls a function of the design
                    kept = [one for one in listed if one.place not in places]
                if len(kept) == len(listed) or time.monotonic() > self.deadline:
                    raise
                listed = kept
        return None

    def _few(self, probe: Job, wrong: Flags) -> Job:
        """Some of the vectors that are wrong, and of a unit that keeps its accumulator all."""
        if probe.vectors.instruction.state:
            return probe
        places = np.flatnonzero(wrong)
        return replace(probe, vectors=probe.vectors[places[:: max(len(places) // _FIRST, 1)]])

    def _trial(self, job: Job, program: Path, folder: Path) -> Callable[[int], Flags | None]:
        """Runs change number n; which vectors are wrong then, None where not all results came."""
        folder.mkdir()
        trial = fast.Trial(job, program, folder, simulators.verilator().env)
        fmt, expected = self.dut.instruction.formats["d"], job.vectors.results

        def run(number: int) -> Flags | None:
            came = trial({VARIABLE: str(number)}, _ONE_RUN)
            return None if came is None else ~self.dut.compare.right(fmt, expected, came)

        return run

    def _confirmed(self, changes: Changes, scores: Sequence[_Score], folder: Path) -> list[Repair]:
        """The likeliest changes, each as a text of its own on every vector of the check."""
        if not scores:
            return []
        most = [score for score in scores if score.mended == scores[0].mended][:_CONFIRMED]
        found: list[Repair] = []
        for number, score in enumerate(most):
            try:
                repair = self._confirm(changes, score.change, folder / f"{number}")
            except MmagoldError:
                continue
            if repair is not None and repair.mended and not repair.broken:
                found.append(repair)
        whole = [repair for repair in found if repair.whole]
        return whole or sorted(found, key=lambda repair: -repair.mended)[:1]

    def _confirm(self, changes: Changes, change: Change, folder: Path) -> Repair | None:
        """A change as the designer would write it, run as the check ran the unit; None where it breaks the
        handshake."""
        dut = with_change(self.dut, changes, change, folder)
        job = replace(self.asked, dut=dut, build=folder / "build", program=None, waves=None)
        outcome = engines.run(self.verdict.outcome.engine, job)
        if outcome.failures:
            return None
        failed = judge(self.verdict.vectors, outcome, self.dut.compare).failed
        text = changes.texts[change.place.file]
        line = change.line(text)
        return Repair(
            change.place.file,
            line,
            text.split("\n")[line - 1].strip(),
            change.before,
            change.after,
            int((self.verdict.failed & ~failed).sum()),
            int(self.verdict.failed.sum()),
            int((failed & ~self.verdict.failed).sum()),
            len(self.verdict.vectors),
        )


def with_change(dut: Dut, changes: Changes, change: Change, folder: Path) -> Dut:
    """The DUT with one change, its file written anew in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    file = change.place.file
    target = folder / file.name
    write(target, change.applied(changes.texts[file]))
    sources = tuple(target if path.resolve() == file else path for path in dut.sources)
    return replace(dut, sources=sources, include=(*dut.include, file.parent))


def _distance(change: Change) -> int:
    """How far a text is from what stands there: of two changes the smaller is the likelier."""
    return abs(len(change.after) - len(change.before)) + len(change.after)
