"""The program that holds every choice of some list, and what a search needs of a text before it starts.

A text is read and its likeliest choices are compiled in a thread of their own (`Ahead`) while hypotheses are
tried: neither needs to know what fails, and together they take as long as the rest of the search.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from golden.errors import MmagoldError
from rtl_tb.dut.description import Dut
from rtl_tb.engines import builds, fast
from rtl_tb.engines.job import Job
from rtl_tb.errors import ElaborationError, RtlError
from rtl_tb.locate.budget import CHOICES, PAIRS, Budget
from rtl_tb.locate.changes import Change, Changes, Group, find_changes
from rtl_tb.locate.selector import with_selector
from rtl_tb.simulators import simulators

AT_MOST = 8000
"""Choices of one build, which takes Verilator and the compiler more than a minute: of a text with more the
likeliest of each place are tried."""
_A_SECOND, _AT_LEAST = 130, 1000
"""Choices of the first build for each second that the search has, and in any case: a thousand take 1.5 to
2 seconds to compile on two busy processors, and that is to be a quarter of the time."""
_FINDING = 0.3
"""The part of the time in which all that may be changed is looked for: in most texts it takes a second."""
_REFUSED = 12
"""Places that Verilator may refuse in a build of all choices before it is given up."""
_PLACE = re.compile(r"/(\d+)_[^/\s:]*:(\d+):")
_SAID = re.compile(r"'([A-Za-z_]\w*)'")
"""The name in a message of Verilator."""
_NAME = re.compile(r"(?<![\w$'])[A-Za-z_]\w*")

Built = tuple[list[Change], Path]
"""Choices, number n at n - 1, and the program that holds them."""


class Ahead:
    """The changes of a unit's text, and the build of their first group; `end` removes it."""

    def __init__(self, job: Job, budget: Budget) -> None:
        self.job = replace(job, program=None, waves=None, simulator="verilator")
        self.budget = budget.aside()
        job.build.mkdir(parents=True, exist_ok=True)
        self.folder = tempfile.TemporaryDirectory(prefix="ahead_", dir=job.build.absolute())
        self.pool = ThreadPoolExecutor(1)
        self.found: Future[Changes] = self.pool.submit(self._find)
        self.build: Future[Built | None] = self.pool.submit(self._make)

    def changes(self) -> Changes:
        """All that may be changed.

        Raises:
            SimulatorMissing: pyslang is not installed. ElaborationError: it cannot read the design.
        """
        return self.found.result()

    def built(self) -> Built | None:
        """The first group; None where the time ended before, or there is none.

        Raises:
            ElaborationError: Verilator refuses it. SimulatorMissing: there is none.
        """
        try:
            return self.build.result()
        except RtlError:
            if self.budget.over():
                return None
            raise

    def end(self) -> None:
        """Ends what is under way; what was built is gone."""
        self.budget.end()
        self.pool.shutdown(cancel_futures=True)
        builds.forget(Path(self.folder.name))
        with suppress(OSError):
            self.folder.cleanup()

    def _find(self) -> Changes:
        changes = find_changes(self.job.dut, self.budget.rest(_FINDING))
        changes.room = int(min(max(self.budget.seconds * _A_SECOND, _AT_LEAST), AT_MOST))
        return changes

    def _make(self) -> Built | None:
        try:
            changes = self.found.result()
        except MmagoldError:  # who asks for the changes is told
            return None
        listed = changes.of_choices((Group.TOKENS,)) if changes.texts else []
        folder = Path(self.folder.name)
        return build(self.job.dut, changes, listed, self.job, folder, self.budget) if listed else None


def build(
    dut: Dut,
    changes: Changes,
    listed: list[Change],
    job: Job,
    folder: Path,
    budget: Budget,
    made: Sequence[Change] = (),
) -> Built | None:
    """The program of all choices, without those that Verilator refuses; `made`: changes that stand in it in
    any case.

    Raises:
        ElaborationError: Verilator refuses it for another reason. RtlError: the time is over.
    """
    places, part = set(changes.in_subroutines), PAIRS if made else CHOICES
    for attempt in range(_REFUSED):
        chosen = with_selector(dut, changes, listed, folder / f"choices{attempt}", made)
        try:
            job = replace(job, dut=chosen, build=folder / "build")
            with budget.builds(part):
                return listed, fast.build(job, simulators.verilator(), fast.FOR_TRIALS)
        except ElaborationError as error:
            refused = _PLACE.search(str(error))
            kept = listed
            if refused is not None:
                file, line = dut.sources[int(refused[1])].resolve(), int(refused[2])
                there = [one for one in listed if (file, line) in changes.lines(one)]
                said = _SAID.search(str(error), refused.end())
                bring = [one for one in there if said is not None and said[1] in new_names(one)]
                kept = [one for one in listed if one not in (bring or there)]
            if len(kept) == len(listed):  # an error that names no place
                kept = [one for one in listed if not one.form and not one.beside]
            if len(kept) == len(listed):  # a constant that calls a function of the design
                kept = [one for one in listed if one.place not in places]
            if len(kept) == len(listed) or budget.over(part):
                raise
            listed = kept
        except RtlError:
            budget.look(part)  # says that the time was up, not which program was stopped
            raise
    return None


def new_names(change: Change) -> set[str]:
    """The names that a change brings and that do not stand in its place now."""
    return {*_NAME.findall(change.after)} - {*_NAME.findall(change.before)}
