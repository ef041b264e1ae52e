"""Results that depend on what nothing drives: the same vectors once more, from other bits.

Verilator knows no X, and VHDL's 'U' is hidden by a conversion to 0, by an `if` or by an integer. A signal
that nothing sets, or that is read before it is set, holds some bit, and a unit can be right by luck. A check
therefore runs under every start of rtl_tb/engines/job.py; answers that change with it are a failure,
whatever they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from golden.errors import listed
from golden.vectors.vectorset import VectorSet
from rtl_tb import engines
from rtl_tb.check.options import LEAST_RESETS
from rtl_tb.dut.description import Dut
from rtl_tb.engines.builds import warnings_of
from rtl_tb.engines.job import INITIAL_VALUES, Job
from rtl_tb.runs.verdict import Verdict, silent, verdict_of

MOST = 2_000
"""Vectors of a run that repeats a failure, or a run under traffic, and of any run of GHDL, which is slow:
registers that matter are read soon after the start or never set at all. Other runs of Verilator repeat all
vectors that passed: a part of a unit may be reached late for the first time, and they cost less than the
build."""
SHOWN = 4
"""Suspects that a sentence names."""
SUSPECTS = ("UNDRIVEN", "LATCH", "PINMISSING", "CASEINCOMPLETE", "IMPLICIT")
"""Warnings of Verilator about signals without a driver, and about latches."""


@dataclass(frozen=True)
class UndrivenSignals:
    """Findings about undriven signals.

    Attributes:
        wrong: failing vectors of `tried`, by start.
        suspects: warnings of Verilator's lint about signals without a driver and latches; in VHDL the
            signals that stay 'U'; or the places.
        of_text: whether the text leaves these bits open (rtl_tb/check/gate_level.py).
        by: who reads that text, if the simulator reads another.
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
            of = f"the text of {self.by}" if self.by else "the text"
            return (
                f"the result depends on bits that {of} leaves open: {counts} of {self.tried:,} vectors "
                f"fail; open: {listed(self.suspects, SHOWN, '; ')}"
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


def compare_initial_values(
    engine: str, job: Job, verdict: Verdict, whole: Job
) -> tuple[UndrivenSignals | None, Job, Verdict]:
    """Runs the vectors under every start: for a unit that fails the failing ones; for one that passed the
    first ones, under its last traffic, and then all.

    Args:
        job: the last run of the check; the verdict belongs to it if the unit fails.
        whole: the run of all vectors; the verdict belongs to it if the unit passed.

    Returns:
        What depends on the start, or None; and the job and the verdict that show it: the given ones or, if
        they passed, those of the first start under which the unit fails.

    Raises:
        As the engine does.
    """
    unset = verdict.outcome.unset if job.simulator == "ghdl" else ()
    if not (unset or job.simulator == "verilator") or silent(verdict):
        return None, job, verdict
    found: tuple[UndrivenSignals | None, Job, Verdict] | None = None
    alone = True
    if not verdict.passed or job is not whole or job.simulator != "verilator":
        # Vectors that show a failure in GHDL, which has three starts and builds the unit for each.
        few = 200
        most = few if job.simulator == "ghdl" and not verdict.passed else MOST
        some = replace(job.of_some(_excerpt(verdict, most)), unset=unset)
        runs = _runs(engine, some, {})
        found, alone = _found(some, runs), all(run.passed for run in runs.values())
    if found is None and alone and job.simulator == "verilator":  # what failed may need what was before it
        last = whole if verdict.passed else job
        found = _found(last, _runs(engine, last, {last.start: verdict}))
    if found is None and verdict.passed and engine == "fast":  # others take longer to start than to run
        found = _of_other_bits(engine, job)
    if found is None:
        return None, job, verdict
    return found if verdict.passed else (found[0], job, verdict)


def _runs(engine: str, job: Job, known: Mapping[str, Verdict]) -> dict[str, Verdict]:
    """The verdicts on a job under every start; verdicts that are `known` are not run again."""
    return {
        start: known.get(start) or verdict_of(engine, replace(job, start=start)) for start in INITIAL_VALUES
    }


def _of_other_bits(engine: str, job: Job) -> tuple[UndrivenSignals | None, Job, Verdict] | None:
    """The first of the short runs from other random bits that fails: what depends on the start, if zeros or
    ones give other answers, and the run; None if all pass."""
    traffic = replace(job.traffic, resets=min(job.traffic.resets, LEAST_RESETS))
    # Vectors of a short run, and how many such runs with random bits of their own: a field of two bits that
    # nothing sets has one wrong value of four, which 1 of 100 units then hides from all runs, and one of
    # three bits from 1 of 10. All of them take 0.2 s of processor time.
    few, seeds = 200, 16
    job = replace(job.of_some(job.vectors[:few]), traffic=traffic)
    for more in range(1, seeds + 1):
        mine = replace(job, start="random", traffic=replace(traffic, seed=traffic.seed + more))
        verdict = verdict_of(engine, mine)
        if not verdict.passed:
            return _found(mine, _runs(engine, mine, {"random": verdict})) or (None, mine, verdict)
    return None


def _found(job: Job, runs: Mapping[str, Verdict]) -> tuple[UndrivenSignals, Job, Verdict] | None:
    """The differences between the runs of a job under every start; None if all answer alike, or all pass."""
    failing = next((start for start, run in runs.items() if not run.passed), None)
    if failing is None or all(_same_answers(run, runs[failing], job.dut) for run in runs.values()):
        return None
    wrong = {start: int(run.failed.sum()) for start, run in runs.items()}
    vhdl = job.dut.vhdl is not None
    suspects = (
        tuple(path.removeprefix("u_dut.") for path in job.unset) if vhdl else warnings_of(job.dut, SUSPECTS)
    )
    found_by = "'U' to the end" if vhdl else "Verilator's lint"
    unset = UndrivenSignals(wrong, len(job.vectors), suspects, found_by=found_by)
    return unset, replace(job, start=failing), runs[failing]


def _excerpt(verdict: Verdict, most: int) -> VectorSet:
    failing = np.flatnonzero(verdict.failed)[:most]
    vectors = verdict.vectors
    return vectors[vectors.with_history(failing)] if len(failing) else vectors[:most]


def _same_answers(one: Verdict, other: Verdict, dut: Dut) -> bool:
    """Whether two runs have the same answers, as far as the DUT's policy distinguishes them."""
    mine, theirs = one.outcome, other.outcome
    if {each.kind for each in mine.failures} != {each.kind for each in theirs.failures}:
        return False
    exact = [(mine.received, theirs.received), (mine.flags, theirs.flags)]
    if not all(np.array_equal(a, b) for a, b in exact if a is not None and b is not None):
        return False
    return bool(dut.compare.interchangeable(dut.instruction.formats["d"], mine.actual, theirs.actual).all())


def compare_with_source(
    engine: str, job: Job, verdict: Verdict
) -> tuple[UndrivenSignals | None, Job, Verdict]:
    """Runs the first vectors of a check that passed as a translation (rtl_tb/dut/translated.py) on the
    source: a translator leaves out delays and assertions, and may err. Returns as compare_initial_values: the
    given job and verdict, or those of the source if it fails.

    Raises:
        As the engine does: a translation without Verilator for its source proves nothing.
    """
    vectors = job.vectors[:MOST]
    mine = replace(job.of_some(vectors), simulator="verilator", program=None, waves=None)
    mine = engines.built(engine, mine)
    found = verdict_of(engine, mine)
    unset, mine, found = compare_initial_values(engine, mine, found, mine)
    return (unset, job, verdict) if found.passed else (unset, mine, found)
