"""Results that depend on what nothing drives: the same vectors once more, from other bits.

Verilator knows no X, and VHDL's 'U' is hidden by a conversion to 0, by an `if` or by an integer. A signal
that nothing sets, or that is read before it is set, holds some bit, and a unit can be right by luck. A check
therefore runs under every start of rtl_tb/engines/job.py; answers that change with it are a failure,
whatever they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from golden.vectors.vectorset import VectorSet
from rtl_tb import engines
from rtl_tb.check.verdict import Verdict, judge, silent
from rtl_tb.dut.description import Dut
from rtl_tb.engines.builds import warnings_of
from rtl_tb.engines.job import STARTS, Job

MOST = 2_000
"""Vectors of each such run: registers that matter are read soon after the start or never set at all."""
SHOWN = 4
SUSPECTS = ("UNDRIVEN", "LATCH", "PINMISSING", "CASEINCOMPLETE", "IMPLICIT")
"""Warnings of Verilator about signals without a driver, and about latches."""


@dataclass(frozen=True)
class Unset:
    """What a check found out about signals that nothing drives.

    Attributes:
        wrong: failing vectors of `tried`, by start.
        suspects: what Verilator's lint says of signals without a driver and of latches; in VHDL the signals
            that stay 'U'; or the places.
        of_text: whether it is bits that the text leaves open (rtl_tb/check/fills.py).
        by: who reads that text, where the simulator reads another.
        found_by: what names the suspects.
    """

    wrong: dict[str, int]
    tried: int
    suspects: tuple[str, ...]
    of_text: bool = False
    by: str = ""
    found_by: str = "Verilator's lint"

    @property
    def sentence(self) -> str:
        """One sentence for the reader."""
        counts = ", ".join(f"{start} {wrong:,}" for start, wrong in self.wrong.items())
        if self.of_text:
            more = f" and {len(self.suspects) - SHOWN} more" if len(self.suspects) > SHOWN else ""
            of = f"the text of {self.by}" if self.by else "the text"
            return (
                f"the result depends on bits that {of} leaves open: {counts} of {self.tried:,} vectors "
                f"fail; open: {'; '.join(self.suspects[:SHOWN])}{more}"
            )
        named = "; ".join(self.suspects[:SHOWN]) or (
            "none is without a driver, so look for one that is read before it is set"
        )
        return (
            f"the result depends on a signal that nothing drives: {counts} of {self.tried:,} vectors fail "
            f"where such signals start so; {self.found_by}: {named}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "wrong": self.wrong,
            "tried": self.tried,
            "suspects": list(self.suspects),
            "sentence": self.sentence,
        }


def compare_starts(engine: str, job: Job, verdict: Verdict) -> tuple[Unset | None, Job, Verdict]:
    """Runs some of the vectors under every start: those that failed, or the first.

    Returns:
        What depends on the start, or None; and the job and the verdict that show it: those given, or, where
        they passed, those of the first start under which the unit fails.

    Raises:
        As the engine does.
    """
    unset = verdict.outcome.unset if job.simulator == "ghdl" else ()
    if not (unset or job.simulator == "verilator") or silent(verdict):
        return None, job, verdict
    some = replace(job, vectors=_some(verdict), unset=unset)
    jobs = {start: replace(some, start=start) for start in STARTS}
    runs = {start: _judged(engine, each) for start, each in jobs.items()}
    failing = next((start for start, run in runs.items() if not run.passed), None)
    if failing is None or all(_alike(run, runs[failing], job.dut) for run in runs.values()):
        return None, job, verdict
    wrong = {start: int(run.failed.sum()) for start, run in runs.items()}
    vhdl = job.dut.vhdl is not None
    suspects = (
        tuple(path.removeprefix("u_dut.") for path in unset) if vhdl else warnings_of(job.dut, SUSPECTS)
    )
    found = Unset(
        wrong, len(some.vectors), suspects, found_by="'U' to the end" if vhdl else "Verilator's lint"
    )
    return (found, jobs[failing], runs[failing]) if verdict.passed else (found, job, verdict)


def _some(verdict: Verdict) -> VectorSet:
    failing = np.flatnonzero(verdict.failed)[:MOST]
    vectors = verdict.vectors
    return vectors[vectors.with_history(failing)] if len(failing) else vectors[:MOST]


def _judged(engine: str, job: Job) -> Verdict:
    return judge(job.vectors, engines.run(engine, job), job.dut.compare)


def _alike(one: Verdict, other: Verdict, dut: Dut) -> bool:
    """Whether two runs answered the same, as far as the DUT's policy tells answers apart."""
    mine, theirs = one.outcome, other.outcome
    if {each.kind for each in mine.failures} != {each.kind for each in theirs.failures}:
        return False
    exact = [(mine.received, theirs.received), (mine.flags, theirs.flags)]
    if not all(np.array_equal(a, b) for a, b in exact if a is not None and b is not None):
        return False
    return bool(dut.compare.interchangeable(dut.instruction.formats["d"], mine.actual, theirs.actual).all())
