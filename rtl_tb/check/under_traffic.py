"""Which part of the traffic a failure takes: a unit whose results are right at full throughput loses
something, or keeps it too long, while it waits or is reset."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from golden.errors import MmagoldError
from golden.vectors.vectorset import VectorSet
from rtl_tb import engines
from rtl_tb.check.verdict import Verdict, judge
from rtl_tb.engines.job import Job, Traffic

_PARTS = {
    "resets": ("resets", "what a reset has to set, and what it has to drop"),
    "backpressure": ("backpressure", "what has to stand still until a result is taken"),
    "idle": ("idle cycles", "what must not move, or be taken, in a cycle without a vector"),
}
"""The parts of a traffic, what they are called, and where to look when one makes results wrong."""


def needs(verdict: Verdict, engine: str, job: Job) -> str | None:
    """A sentence where all vectors are right without traffic: what of it makes some wrong. None where they
    are not, or where there was none.

    Each is a run of its own, of the same vectors; the first ends with the first vector that failed.
    """
    traffic = job.traffic.on(job.dut)
    there = {name: getattr(traffic, name) for name in _PARTS if getattr(traffic, name)}
    none = replace(traffic, **dict.fromkeys(there, 0))
    if verdict.passed or not there:
        return None
    end = int(np.argmax(verdict.failed)) + 1 if verdict.failed.any() else len(job.vectors)
    try:
        if not all(_passes(engine, job, job.vectors[:count], none) for count in (end, len(job.vectors))):
            return None
        alone = [
            name
            for name, much in there.items()
            if not _passes(engine, job, job.vectors, replace(none, **{name: much}))
        ]
    except MmagoldError:
        return None
    without = " and ".join(_PARTS[name][0] for name in alone or there)
    said = f"all {len(job.vectors):,} vectors are right without {without}"
    if not alone:
        return f"{said}, of which no one alone makes any wrong"
    look = "; and at ".join(_PARTS[name][1] for name in alone)
    return f"{said}{', each of which makes some wrong' if len(alone) > 1 else ''}: look at {look}"


def _passes(engine: str, job: Job, vectors: VectorSet, traffic: Traffic) -> bool:
    again = replace(job, vectors=vectors, traffic=traffic, waves=None)
    return judge(vectors, engines.run(engine, again), job.dut.compare).passed
