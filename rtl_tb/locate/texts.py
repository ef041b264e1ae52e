"""Runs of a unit's text with changes, each built by itself: for constants, which are fixed before the unit
runs.

Icarus Verilog compiles and runs a unit in a tenth of a second, if it can read it; if not, Verilator builds
it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from golden.errors import MmagoldError
from rtl_tb.dut.description import Dut
from rtl_tb.dut.text import write
from rtl_tb.engines import builds, fast, selfcheck
from rtl_tb.engines.job import Job
from rtl_tb.errors import RtlError
from rtl_tb.locate.budget import MEMORY, Budget
from rtl_tb.locate.changes import Changes
from rtl_tb.locate.kinds import Change
from rtl_tb.locate.policy import SearchPolicy
from rtl_tb.runs.verdict import judge, right_results
from rtl_tb.simulators import simulators

Flags = npt.NDArray[np.bool_]
_AT_LEAST_A_BUILD = 8
"""Constants that have to be tried in the time of one build of choices: a constant is likelier than one of
them, but not than a hundred."""


def with_changes(dut: Dut, changes: Changes, chosen: Sequence[Change], folder: Path) -> Dut:
    """The DUT with some changes, their files written anew, each in a folder of its own: two may have one
    name."""
    written: dict[Path, Path] = {}
    for number, (file, text) in enumerate(changes.applied(chosen).items()):
        written[file] = folder / f"{number}" / file.name
        written[file].parent.mkdir(parents=True, exist_ok=True)
        write(written[file], text)
    own = {path.resolve() for path in dut.sources}
    sources = tuple(written.get(path.resolve(), path) for path in dut.sources)
    folders = dict.fromkeys(file.parent for file in written if file in own)
    # An included file is searched before the one that it replaces.
    first = dict.fromkeys(target.parent for file, target in written.items() if file not in own)
    return replace(dut, sources=sources, include=(*first, *dut.include, *folders))


class Texts:
    """The vectors of a job, run with one text after the other; thread-safe.

    Args:
        folder: for the files of the runs; each run removes its own.
        longest: seconds that a build of choices takes. Icarus Verilog has an eighth of them to compile and as
            long to run, or Verilator has to do.
    """

    def __init__(
        self,
        changes: Changes,
        job: Job,
        budget: Budget,
        folder: Path,
        policy: SearchPolicy,
        longest: float = float("inf"),
    ) -> None:
        self.changes, self.job, self.budget, self.folder = changes, job, budget, folder
        self.policy, self.longest = policy, longest
        folder.mkdir(parents=True)
        begun = time.monotonic()
        self.icarus = self._in_icarus()
        self.seconds = time.monotonic() - begun if self.icarus else policy.one_build
        """What one text takes: in Verilator a build, of which only the bound is known."""

    def _in_icarus(self) -> selfcheck.Trial | None:
        """Icarus Verilog, if it is installed and reads the unit."""
        (self.folder / "icarus").mkdir()
        most = max(self.longest / _AT_LEAST_A_BUILD, 0.5)
        try:
            with self.budget.builds(most=most):
                trial = selfcheck.Trial(self.job, self.folder / "icarus")
        except MmagoldError:
            return None
        outcome = trial(self.job.dut, min(self._one_run, most), MEMORY)
        return None if outcome is None or outcome.unknown.all() else trial

    @property
    def _one_run(self) -> float:
        """Processor seconds for one run: a run that has to wait is ended after four times as long."""
        return min(self.policy.one_run, max(self.budget.left() / 4, 0.5))

    def wrong(self, chosen: Sequence[Change], part: float, name: str) -> Flags | None:
        """The vectors that are wrong with some changes; None if the text is refused, or does not answer.

        Args:
            part: of the budget, after which a build ends. name: of a folder that no other run has.
        """
        place = self.folder / name
        try:
            dut = with_changes(self.job.dut, self.changes, chosen, place / "rtl")
            if self.icarus is None:
                return self._in_verilator(dut, part, place)
            outcome = self.icarus(dut, self._one_run, MEMORY)
            if outcome is None:
                return None
            # no change that breaks the handshake is confirmed, so it repairs no vector
            broken = bool(outcome.failures)
            return judge(self.job.vectors, outcome, dut.compare).failed | broken
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _in_verilator(self, dut: Dut, part: float, place: Path) -> Flags | None:
        job = replace(self.job, dut=dut, build=place / "build")
        try:
            with self.budget.builds(part, self.policy.one_build):
                program = fast.build(job, simulators.verilator(), fast.FOR_TRIALS)
            came = fast.Trial(job, program, place, simulators.verilator().env)({}, self._one_run)
        except (MmagoldError, RtlError):
            return None
        finally:
            builds.forget(place)
        if came is None:
            return None
        return ~(came[fast.ANSWERED] & right_results(job.vectors, job.vectors.results, came, dut.compare))
