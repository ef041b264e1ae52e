"""A unit that passed as a translation (rtl_tb/dut/translated.py) is run as it was written, too.

A translator leaves out delays and assertions, and may err. So the source has to answer the same vectors in
Verilator under every start; where it does not, that run is the verdict.
"""

from __future__ import annotations

from dataclasses import replace

from rtl_tb import engines
from rtl_tb.check.starts import MOST, Unset, compare_starts
from rtl_tb.engines.job import Job
from rtl_tb.runs.verdict import Verdict, judge


def ask_source(engine: str, job: Job, verdict: Verdict) -> tuple[Unset | None, Job, Verdict]:
    """Runs the first vectors of a passed check on the source; returns as compare_starts: the job and the
    verdict that were given, or those of the source where it fails.

    Raises:
        As the engine does: a translation without Verilator for its source proves nothing.
    """
    vectors = job.vectors[:MOST]
    mine = replace(job.of_some(vectors), simulator="verilator", program=None, waves=None)
    mine = replace(mine, program=engines.build(engine, mine))
    found = judge(vectors, engines.run(engine, mine), job.dut.compare)
    unset, mine, found = compare_starts(engine, mine, found, mine)
    return (unset, job, verdict) if found.passed else (unset, mine, found)
