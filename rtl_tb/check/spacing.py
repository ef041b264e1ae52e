"""Whether a unit takes operands less often than its description says: its results are wrong only where
operands come close together.

A long interval between operands is asked first; where all is right then, shorter ones say which is the
least that the unit needs. Icarus Verilog runs these few vectors: it builds a unit at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from golden.errors import MmagoldError
from rtl_tb import engines
from rtl_tb.check.verdict import Verdict, judge
from rtl_tb.dut.description import Dut
from rtl_tb.engines.job import Job, Traffic

FEW = 100
"""Vectors of a run: enough for an interval that is too short to spoil many."""
_LEAST = 0.05
"""Share of failing vectors from which it is asked: at full throughput an interval that is too short spoils
more."""
_WIDE = 64
"""Cycles of the longest interval that is tried, beside twice the latency: serial units take a cycle for
each bit."""


@dataclass(frozen=True)
class Spacing:
    """The least interval with which all of some vectors are right."""

    dut: Dut
    interval: int
    tried: int

    @property
    def sentence(self) -> str:
        """One sentence for the reader."""
        now = self.dut.handshake.interval
        return (
            f"results are wrong only where operands come close together: {self.tried:,} vectors are right "
            f"where they come every {self.interval} cycles, and not every {self.interval - 1}; if the unit "
            f"needs so long, write interval: {self.interval} in {self.dut.file.name}"
            + (f" in place of {now}" if now > 1 else "")
        )


def spacing(verdict: Verdict, engine: str, job: Job) -> Spacing | None:
    """The interval that a failing unit needs; None where another one does not make it right."""
    shake = job.dut.handshake
    if shake.kind not in ("valid", "latency") or shake.hold or verdict.failed.mean() < _LEAST:
        return None
    if job.simulator in ("verilator", "icarus"):
        engine, job = "selfcheck", replace(job, simulator="icarus", translate=False)
    vectors = job.vectors[:FEW]
    quiet = replace(
        job,
        vectors=vectors,
        traffic=Traffic(seed=job.traffic.seed),
        timeout_cycles=min(job.timeout_cycles, 1_000),
        program=None,
        waves=None,
    )

    def failed(mine: Job) -> float:
        found = judge(vectors, engines.run(engine, mine), mine.dut.compare)
        broken = bool(found.outcome.failures) and not found.failed.any()
        return 1.0 if broken else float(np.mean(found.failed))

    def with_interval(cycles: int) -> float:
        dut = replace(job.dut, handshake=replace(shake, interval=cycles))
        return failed(replace(quiet, dut=dut))

    try:
        if failed(quiet) < _LEAST:
            return None
        low, high = shake.interval, max(_WIDE, 2 * (shake.latency or 0))
        if low >= high or with_interval(high) > 0:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if with_interval(middle) == 0 else (middle, high)
    except MmagoldError:
        return None
    return Spacing(job.dut, high, len(vectors))
