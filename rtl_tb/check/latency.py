"""Measures the latency of a DUT whose description says `latency: measure`.

The DUT is driven with a new vector every cycle while its result is read in the same cycle; the latency is the
number of vectors by which the results lag behind the expected ones.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from golden.vectors.vectorset import default_set
from rtl_tb import engines
from rtl_tb.check.polarity import advice, choices, said, turned_over
from rtl_tb.dut.description import Dut
from rtl_tb.engines.job import Job
from rtl_tb.errors import RtlError

LONGEST = 256
_COUNT = 2048


def measure(dut: Dut, engine: str, simulator: str, build: Path) -> Dut:
    """Returns the DUT with the latency at which most results are right.

    A faulty DUT answers some vectors wrongly, so the best lag wins; it must explain a quarter of the results
    and be alone.

    Raises:
        RtlError: no lag up to LONGEST cycles does, or the DUT does not take a vector every cycle.
    """
    if dut.handshake.interval != 1:
        raise RtlError(f"{dut.file}: a latency can be measured only with interval 1; give it in cycles")
    best, right, alone = _best(dut, engine, simulator, build)
    if alone:
        return dut.with_latency(best)
    turned = ""
    for signals in choices(dut):
        found, _, alone = _best(turned_over(dut, signals), engine, simulator, build)
        if alone:
            turned = f"; {said(signals)}: turned over, its latency is {found}; {advice(dut, signals)}"
            break
    raise RtlError(
        f"{dut.file}: no latency from 0 to {LONGEST - 1} cycles explains the results "
        f"(best: {best} cycles, {right:.0%} right){turned or '; give it in cycles'}"
    )


def _best(dut: Dut, engine: str, simulator: str, build: Path) -> tuple[int, float, bool]:
    """The lag with which most results are right, the share of them, and whether it explains a quarter of the
    results and is alone."""
    vectors = default_set(dut.instruction, _COUNT, 1, dut.level)
    outcome = engines.run(engine, Job(dut.with_latency(0), build / "latency", vectors, simulator))
    expected, actual = vectors.d.reshape(_COUNT, -1), outcome.actual.reshape(_COUNT, -1)
    usable = (outcome.received & ~outcome.unknown)[:, None]
    fmt = dut.instruction.formats["d"]
    scores = np.array(
        [
            (dut.compare.equal(fmt, expected[: _COUNT - lag], actual[lag:]) & usable[lag:]).all(axis=1).mean()
            for lag in range(LONGEST)
        ]
    )
    best = int(scores.argmax())
    alone = scores[best] >= 0.25 and np.count_nonzero(scores > scores[best] / 2) == 1
    return best, float(scores[best]), bool(alone)
