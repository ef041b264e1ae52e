"""Measures the latency of a DUT whose description says `latency: measure`.

The DUT is driven with a new vector every `interval` cycles while its outputs are read in every cycle; the
latency is the number of cycles by which the results lag behind the expected ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import counted
from golden.vectors.vectorset import VectorSet, default_set
from rtl_tb import engines
from rtl_tb.dut.description import Dut
from rtl_tb.engines.job import Job
from rtl_tb.errors import RtlError
from rtl_tb.runs.polarity import advice, choices, said, turned_over

LONGEST, _FAR = 256, 4096
"""Lags that are looked at first, and where none of these is the latency: a unit that takes a bit of a long
operand in a cycle, or waits in a queue."""
Bits = npt.NDArray[Any]


def measure(dut: Dut, engine: str, simulator: str, build: Path) -> Dut:
    """The DUT with its latency, as `measured` finds it."""
    return measured(dut, engine, simulator, build)[0]


def measured(dut: Dut, engine: str, simulator: str, build: Path) -> tuple[Dut, str]:
    """Returns the DUT with the latency at which most results are right, and a word of warning, or "".

    A faulty DUT answers some vectors wrongly, so the best lag wins; it must explain a quarter of the results
    and be alone. A unit may keep its result until the next: the first cycle that shows it counts. Of a unit
    that is mostly wrong it is the lag at which its results are most like the expected ones, bit by bit,
    if no other comes near; the warning says so. Where a signal of a unit is active the other way, it is the
    latency that the unit has then, so that the check can show that the unit fails as described. Where no lag
    fits, it is the one at which most results are right: with any latency the unit is wrong.

    Raises:
        RtlError: a clear or load comes in a cycle of its own.
    """
    if any(at.given == "before_operands" for at in dut.ports.values()):
        raise RtlError(
            f"{dut.file}: with a clear or load in a cycle of its own a latency cannot be measured; give "
            "it in cycles"
        )
    best, right, alone, likest = _best(dut, engine, simulator, build)
    if alone:
        return dut.with_latency(best), ""
    for signals in choices(dut):
        found, _, alone, _ = _best(turned_over(dut, signals), engine, simulator, build)
        if alone:
            return dut.with_latency(found), (
                f"the latency, {counted(found, 'cycle')}, was measured with a signal turned over: "
                f"{said(signals)}; {advice(dut, signals)}"
            )
    if likest is not None:
        lag, share = likest
        return dut.with_latency(lag), (
            f"the latency was measured on a unit that is mostly wrong: with {counted(lag, 'cycle')} "
            f"{f'{share:.0%}' if share else 'none'} of the results are right, and at no other latency are "
            "they so like the right ones; if it is another, give it in cycles"
        )
    far, share_far, alone, _ = _best(dut, engine, simulator, build, _FAR)
    if alone:
        return dut.with_latency(far), ""
    best, right = (far, share_far) if share_far > right else (best, right)
    return dut.with_latency(best), (
        f"no latency from 0 to {_FAR - 1} cycles makes a quarter of the results right: the verdict is for "
        f"{counted(best, 'cycle')}, with which {right:.0%} are; look at what stops a register, and at "
        f"interval and hold in {dut.file.name}"
    )


def _best(
    dut: Dut, engine: str, simulator: str, build: Path, longest: int = LONGEST
) -> tuple[int, float, bool, tuple[int, float] | None]:
    """The lag with which most results are right, the share of them, and whether it explains a quarter of the
    results and is alone; and the lag at which the results are most like the right ones, if no other comes
    near, with its share."""
    # Operands that stay until the result let one vector in at a time.
    interval = longest if dut.handshake.hold else dut.handshake.interval
    # Vectors of a measurement where they come in every cycle, and the least where they do not: some operands
    # of a faulty unit are right by chance, never a quarter of this number.
    most_vectors, least_vectors = 2048, 64
    count = max(most_vectors // interval, least_vectors) + longest // interval
    vectors = default_set(dut.instruction, count, 1, dut.level)
    outcome = engines.run(
        engine, Job(dut.probed(interval), build / "latency", _repeated(vectors, interval), simulator)
    )
    fmt, cycles = dut.instruction.formats["d"], len(outcome.actual)
    expected, actual = vectors.d.reshape(count, -1), outcome.actual.reshape(cycles, -1)
    usable = (outcome.received & ~outcome.unknown)[:, None]
    right = []
    for lag in range(longest):
        at = np.arange(lag, cycles, interval)[:count]
        same = dut.compare.equal(fmt, expected[: len(at)], actual[at]) & usable[at]
        right.append(same.all(axis=1).mean())
    scores = np.array(right)
    best, alone = _stands_out(scores, interval)
    likest = None if longest > LONGEST else _likest(expected, actual, usable, fmt.bits, interval)
    return best, float(scores.max()), alone, None if likest is None else (likest, float(scores[likest]))


def _stands_out(scores: npt.NDArray[np.float64], interval: int) -> tuple[int, bool]:
    """The first of the lags whose share of right results is near the largest one, and whether it explains a
    quarter of the results and is alone. A share is what is above chance: of a unit most of whose results are
    zero, each lag makes most results right."""
    chance = scores.min()
    above = scores - chance
    near = np.flatnonzero(above > above.max() / 2)
    if not len(near):
        return 0, False
    together = near[-1] - near[0] == len(near) - 1 and len(near) <= interval
    return int(near[0]), bool(together and above.max() >= 0.25 * (1 - chance))


def _repeated(vectors: VectorSet, times: int) -> VectorSet:
    """Each vector for this many cycles."""
    operands = {name: np.repeat(codes, times, axis=0) for name, codes in vectors.operands.items()}
    results = {name: np.repeat(codes, times, axis=0) for name, codes in vectors.results.items()}
    kinds = np.repeat(vectors.kinds, times)
    return VectorSet.of(
        vectors.instruction, vectors.level, operands, results, kinds, vectors.seed, vectors.held
    )


def _likest(expected: Bits, actual: Bits, usable: Bits, bits: int, interval: int) -> int | None:
    """The lag at which the bits of the results follow the expected ones, upright or inverted; None
    where another comes near. Results of other vectors follow them by chance, everywhere alike."""
    places = np.arange(bits, dtype=np.uint64)
    one, two = (
        (codes.astype(np.uint64)[..., None] >> places & np.uint64(1))
        .reshape(len(codes), -1)
        .astype(np.float64)
        for codes in (expected, actual)
    )
    two[~usable[:, 0]] = 0.5
    one, two = one - one.mean(axis=0), two - two.mean(axis=0)
    found = []
    for lag in range(LONGEST):
        at = np.arange(lag, len(two), interval)[: len(one)]
        found.append(np.abs((one[: len(at)] * two[at]).mean(axis=0)).mean())
    alike = np.array(found)
    best = int(alike.argmax())
    others = np.delete(alike, best) if interval == 1 else alike[alike < alike[best] / 2]
    if not len(others):
        return None
    # By how many standard deviations of all other latencies, at least so large, the best one stands out.
    apart, chance = 8.0, 1e-3
    return best if alike[best] - others.mean() > apart * max(float(others.std()), chance) else None
