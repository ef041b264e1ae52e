"""Whether a unit takes operands less often than its description says, or for longer: its results are wrong
only where operands come close together, or change before the result is there.

A long interval between operands is asked first; where all is right then, shorter ones say which is the
least that the unit needs. Then operands that stay. Icarus Verilog runs these few vectors: it builds a unit
at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from golden.errors import MmagoldError
from rtl_tb import engines
from rtl_tb.check.verdict import Verdict, judge
from rtl_tb.dut.description import Dut, Handshake
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
    """With another `handshake` the results of `tried` vectors are right."""

    dut: Dut
    handshake: Handshake
    tried: int

    @property
    def sentence(self) -> str:
        """One sentence for the reader."""
        file, now = self.dut.file.name, self.dut.handshake.interval
        if self.handshake.hold:
            return (
                f"{self.tried:,} vectors are right where the operands stay until the result is there, and "
                f"wrong where they do not; if the unit is meant so, write hold: operands under input in {file}"
            )
        interval = self.handshake.interval
        return (
            f"results are wrong only where operands come close together: {self.tried:,} vectors are right "
            f"where they come every {interval} cycles, and not every {interval - 1}; if the unit "
            f"needs so long, write interval: {interval} in {file}"
            + (f" in place of {now}" if now > 1 else "")
        )


def spacing(verdict: Verdict, engine: str, job: Job) -> Spacing | None:
    """The interval that a failing unit needs, or that it needs its operands for longer; None where neither
    makes it right."""
    shake = job.dut.handshake
    if shake.kind == "combinational" or shake.hold or shake.channels or verdict.failed.mean() < _LEAST:
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

    def right(handshake: Handshake) -> bool:
        mine = replace(quiet, dut=replace(job.dut, handshake=handshake))
        return judge(vectors, engines.run(engine, mine), job.dut.compare).passed

    try:
        if right(shake):
            return None
        low, high = shake.interval, max(_WIDE, 2 * (shake.latency or 0))
        if shake.kind != "valid_ready" and low < high and right(replace(shake, interval=high)):
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if right(replace(shake, interval=middle)) else (middle, high)
            return Spacing(job.dut, replace(shake, interval=high), len(vectors))
        held = replace(shake, hold="operands")
        return Spacing(job.dut, held, len(vectors)) if right(held) else None
    except MmagoldError:
        return None
