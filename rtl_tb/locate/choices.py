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
from rtl_tb.locate.budget import Budget
from rtl_tb.locate.changes import Changes, Choice, find_changes
from rtl_tb.locate.kinds import Change
from rtl_tb.locate.policy import DEFAULT, SearchPolicy
from rtl_tb.locate.selector import with_selector
from rtl_tb.simulators import simulators

_PLACE = re.compile(r"/(\d+)_[^/\s:]*:(\d+):")
_SAID = re.compile(r"'([A-Za-z_]\w*)'")
"""The name in a message of Verilator."""
_NAME = re.compile(r"(?<![\w$'])[A-Za-z_]\w*")

Built = tuple[list[Choice], Path]
"""Choices, number n at n - 1, and the program that holds them."""


class Ahead:
    """The changes of a unit's text, and the build of those that come first; `end` removes it."""

    def __init__(self, job: Job, budget: Budget, policy: SearchPolicy = DEFAULT) -> None:
        self.job = replace(job, program=None, waves=None, simulator="verilator")
        self.budget, self.policy = budget.aside(), policy
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
        """The first choices; None where the time ended before, or there are none.

        Raises:
            ElaborationError: Verilator refuses them. SimulatorMissing: there is none.
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
        return find_changes(self.job.dut, self.budget.rest(self.policy.reading), self.policy)

    def _make(self) -> Built | None:
        try:
            changes = self.found.result()
        except MmagoldError:  # who asks for the changes is told
            return None
        room = room_of(self.policy, self.budget)
        listed = [*changes.probes, *in_turn(changes.choices)][:room]
        folder = Path(self.folder.name)
        return (
            build(self.job.dut, changes, listed, self.job, folder, self.budget, self.policy)
            if listed
            else None
        )


def room_of(policy: SearchPolicy, budget: Budget) -> int:
    """How many choices one build has."""
    return int(min(max(budget.seconds * policy.choices_a_second, policy.least_choices), policy.most_choices))


def in_turn(listed: Sequence[Choice]) -> list[Choice]:
    """The first choice of each place, then the second ones: the time may end before all are tried, and a
    place has its likeliest first."""
    turns: dict[object, int] = {}
    ranked = []
    for at, one in enumerate(listed):
        key = one.change.place, one.change.kind
        turns[key] = turn = turns.get(key, -1) + 1
        ranked.append((turn, at))
    return [listed[at] for _, at in sorted(ranked)]


def build(
    dut: Dut,
    changes: Changes,
    listed: list[Choice],
    job: Job,
    folder: Path,
    budget: Budget,
    policy: SearchPolicy,
    made: Sequence[Change] = (),
    part: float = 1.0,
) -> Built | None:
    """The program of all choices, without those that Verilator refuses.

    Args:
        made: changes that stand in it in any case.
        part: of the budget, after which the build ends.

    Raises:
        ElaborationError: Verilator refuses it for another reason. RtlError: the time is over.
    """
    for attempt in range(policy.refused):
        chosen = with_selector(dut, changes, listed, folder / f"choices{attempt}", made)
        try:
            job = replace(job, dut=chosen, build=folder / "build")
            with budget.builds(part):
                return listed, fast.build(job, simulators.verilator(), fast.FOR_TRIALS)
        except ElaborationError as error:
            kept = _accepted(dut, changes, listed, str(error))
            if len(kept) in (0, len(listed)) or budget.over(part) or attempt == policy.refused - 1:
                raise
            listed = kept
        except RtlError:
            budget.look(part)  # says that the time was up, not which program was stopped
            raise
    return None


def _accepted(dut: Dut, changes: Changes, listed: list[Choice], error: str) -> list[Choice]:
    """The choices without those that a message of Verilator speaks of: on its lines those that bring the
    names that it quotes, or all there; where it names no line, what is added, then what a constant calls."""
    lost: set[int] = set()
    for refused in _PLACE.finditer(error):
        file, line = dut.sources[int(refused[1])].resolve(), int(refused[2])
        there = [at for at, one in enumerate(listed) if (file, line) in _lines(changes, one)]
        said = _SAID.search(error, refused.end())
        bring = [at for at in there if said is not None and said[1] in new_names(listed[at].change)]
        lost.update(bring or there)
        break
    if not lost:
        lost = {at for at, one in enumerate(listed) if one.change.form}
    if not lost:
        lost = {at for at, one in enumerate(listed) if one.site in changes.in_subroutines}
    return [one for at, one in enumerate(listed) if at not in lost]


def _lines(changes: Changes, choice: Choice) -> set[tuple[Path, int]]:
    """The lines on which a choice and its site begin."""
    return {(place.file, changes.sources.line(place)) for place in (choice.site, choice.change.place)}


def new_names(change: Change) -> set[str]:
    """The names that a change brings and that do not stand in its place now."""
    return {*_NAME.findall(change.after)} - {*_NAME.findall(change.before)}
