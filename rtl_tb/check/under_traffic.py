"""Which part of the traffic a failure takes: a unit whose results are right at full throughput loses
something, or keeps it too long, while it waits or is reset. A fault of the arithmetic may stand beside that:
each is looked at by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from golden.errors import MmagoldError
from rtl_tb import engines
from rtl_tb.check.verdict import Verdict, judge
from rtl_tb.engines.job import Job

_PARTS = {
    "resets": ("resets", "what a reset has to set, and what it has to drop"),
    "backpressure": ("backpressure", "what has to stand still until a result is taken"),
    "idle": ("idle cycles", "what must not move, or be taken, in a cycle without a vector"),
}
"""The parts of a traffic, what they are called, and where to look when one makes results wrong."""


_SOME = 500
"""Failing vectors up to which a unit is run without traffic first: where all of these fail so, too, it is not
the traffic that makes them wrong."""
_BY_CHANCE = 20
"""What is wrong without traffic alone is a twentieth, at most, of what is wrong with it alone: else the unit
answers now so and now otherwise, whatever the traffic."""


@dataclass(frozen=True)
class Calm:
    """A unit without the traffic with which it fails.

    Attributes:
        sentence: what of the traffic makes results wrong, and where to look.
        without: the same in two words, "without backpressure".
        verdict, job: of the run without traffic. Where it fails, the unit has a fault of its arithmetic, too,
            which these show by itself.
    """

    sentence: str
    without: str
    verdict: Verdict
    job: Job

    def held_to(self, verdict: Verdict) -> Verdict | None:
        """A verdict by which right is what the unit answers without traffic: what is wrong then is the fault
        of the traffic by itself. None where it does not answer all."""
        if self.verdict.missing.any() or self.verdict.unknown.any():
            return None
        vectors, came = verdict.vectors, self.verdict.outcome
        flags = None if came.flags is None else came.flags.reshape(vectors.d.shape)
        own = replace(vectors, d=came.actual.reshape(vectors.d.shape), flags=flags)
        return judge(own, verdict.outcome, self.job.dut.compare)


def apart(verdict: Verdict, engine: str, job: Job) -> Calm | None:
    """The same vectors without traffic, where what is wrong with it is right so, all or some, or where the
    handshake is kept then. None where nothing is better so, or where there was no traffic.

    What each part of the traffic does is a run of its own.
    """
    traffic = job.traffic.on(job.dut)
    there = {name: getattr(traffic, name) for name in _PARTS if getattr(traffic, name)}
    if verdict.passed or not there:
        return None
    none = replace(job, traffic=replace(traffic, **dict.fromkeys(there, 0)), waves=None)
    failing = np.flatnonzero(verdict.failed)
    end = int(failing[:_SOME][-1]) + 1 if len(failing) else len(job.vectors)
    try:
        calm = _judged(engine, replace(none, vectors=job.vectors[:end]))
        broken = bool(verdict.outcome.failures)
        if len(failing) and not broken and not (verdict.failed[:end] & ~calm.failed).any():
            return None
        calm = calm if end == len(job.vectors) else _judged(engine, none)
        lost = int((verdict.failed & ~calm.failed).sum())
        gained = int((calm.failed & ~verdict.failed).sum())
        by_traffic = not calm.failed.any() or gained * _BY_CHANCE < lost
        if calm.outcome.failures or not (by_traffic or broken):
            return None
        alone = [
            name
            for name, much in there.items()
            if _makes_wrong(
                _judged(engine, replace(none, traffic=replace(none.traffic, **{name: much}))), calm
            )
        ]
    except MmagoldError:
        return None
    without = f"without {' and '.join(_PARTS[name][0] for name in alone or there)}"
    said = "the handshake is kept"
    if by_traffic:
        every = (
            f"{lost:,} of the {len(failing):,} failing" if calm.failed.any() else f"all {len(job.vectors):,}"
        )
        said = f"{every} vectors are right"
    return Calm(_sentence(f"{said} {without}", alone), without, calm, none)


def _sentence(said: str, alone: Sequence[str]) -> str:
    if not alone:
        return f"{said}, of which no one alone makes any wrong"
    look = "; and at ".join(_PARTS[name][1] for name in alone)
    return f"{said}{', each of which makes some wrong' if len(alone) > 1 else ''}: look at {look}"


def _judged(engine: str, job: Job) -> Verdict:
    return judge(job.vectors, engines.run(engine, job), job.dut.compare)


def _makes_wrong(verdict: Verdict, calm: Verdict) -> bool:
    """Whether a run shows something that the one without traffic does not."""
    return bool(verdict.outcome.failures or (verdict.failed & ~calm.failed).any())
