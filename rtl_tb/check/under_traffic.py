"""The part of the traffic that causes a failure: a unit whose results are right at full throughput loses
something, or keeps it too long, while it waits or is reset. It may have a fault of the arithmetic, too: each
of the two is examined separately."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from golden.errors import MmagoldError
from rtl_tb.engines.job import Job
from rtl_tb.runs.verdict import Verdict, judge, verdict_of

_PARTS = {
    "resets": ("resets", "what a reset has to set, and what it has to drop"),
    "backpressure": ("backpressure", "what has to stand still until a result is taken"),
    "idle": ("idle cycles", "what must not move, or be taken, in a cycle without a vector"),
}
"""The parts of a traffic, their names, and where to look if one makes results wrong."""


@dataclass(frozen=True)
class TrafficFault:
    """A unit without the traffic under which it fails.

    Attributes:
        sentence: the part of the traffic that makes results wrong, and where to look.
        without: the same in two words, "without backpressure".
        verdict, job: of the run without traffic. If it fails, the unit also has a fault of its arithmetic,
            which these show by itself.
    """

    sentence: str
    without: str
    verdict: Verdict
    job: Job

    def held_to(self, verdict: Verdict) -> Verdict | None:
        """A verdict whose right results are the unit's own without traffic: wrong ones are then due to the
        traffic alone. None if it does not answer all."""
        if self.verdict.missing.any() or self.verdict.unknown.any():
            return None
        vectors, came = verdict.vectors, self.verdict.outcome
        flags = None if came.flags is None else came.flags.reshape(vectors.d.shape)
        own = replace(vectors, d=came.actual.reshape(vectors.d.shape), flags=flags)
        return judge(own, verdict.outcome, self.job.dut.compare)


def isolate_traffic(verdict: Verdict, engine: str, job: Job) -> TrafficFault | None:
    """The same vectors without traffic, if some or all wrong ones become right, or the handshake is then
    kept. None if nothing improves, or there was no traffic. Each part of the traffic gets a run of its
    own."""
    # 1. The run without traffic. It counts only if it has fewer wrong results, or keeps the handshake.
    traffic = job.traffic.on(job.dut)
    there = [name for name in _PARTS if getattr(traffic, name)]
    if verdict.passed or not there:
        return None
    none = replace(job, traffic=replace(traffic, **dict.fromkeys(there, 0)), waves=None)
    failing = np.flatnonzero(verdict.failed)
    # Failing vectors up to which a unit is run without traffic first: if all of these also fail then, the
    # traffic is not the cause.
    most_failing = 500
    end = int(failing[:most_failing][-1]) + 1 if len(failing) else len(job.vectors)
    broken = bool(verdict.outcome.failures)
    try:
        calm = verdict_of(engine, replace(none, vectors=job.vectors[:end]))
        if len(failing) and not broken and not (verdict.failed[:end] & ~calm.failed).any():
            return None
        calm = calm if end == len(job.vectors) else verdict_of(engine, none)
    except MmagoldError:
        return None
    wrong = _only_with_traffic(verdict, calm)
    if calm.outcome.failures or not (wrong or broken):
        return None
    # 2. Each part of the traffic alone. If none of them shows the whole effect, all of them together do.
    parts = {
        name: _Part(engine, replace(none, traffic=replace(none.traffic, **{name: getattr(traffic, name)})))
        for name in there
    }
    for part in parts.values():
        part.ask(calm, wrong, broken)
    named = [name for name, part in parts.items() if part.does or part.unknown]
    named = named if any(part.does for part in parts.values()) else there
    without = f"without {' and '.join(_PARTS[name][0] for name in named)}"
    said = "the handshake is kept"
    if wrong:
        lost = int((verdict.failed & ~calm.failed).sum())
        every = (
            f"{lost:,} of the {len(failing):,} failing" if calm.failed.any() else f"all {len(job.vectors):,}"
        )
        said = f"{every} vectors are right"
    return TrafficFault(f"{said} {without}{_blamed(parts, wrong, broken)}", without, calm, none)


def _only_with_traffic(verdict: Verdict, calm: Verdict) -> bool:
    """Whether a run has wrong vectors that are right without traffic, and not by chance."""
    lost = int((verdict.failed & ~calm.failed).sum())
    if not calm.failed.any():
        return lost > 0
    gained = int((calm.failed & ~verdict.failed).sum())
    either = int((calm.failed & verdict.failed).sum())
    # Traffic is the cause if at most one in 20 of the vectors that are wrong only with it is wrong only
    # without it; if there are more, the answers change at random. Vectors that are wrong only with traffic
    # are also more than one in 20 of all wrong ones, or several.
    by_chance = 20
    # Vectors that are wrong only with traffic, and none only without it: chance does that once in 256 times.
    several = 8
    return gained * by_chance < lost and (lost * by_chance > either or lost >= several)


@dataclass
class _Part:
    """The effect of one part of the traffic.

    Attributes:
        job: with this part alone.
        does: whether it has the effect of all of the traffic: it makes some wrong, or breaks the handshake.
        unknown: why that is not known.
    """

    engine: str
    job: Job
    does: bool = False
    unknown: str = ""

    def ask(self, calm: Verdict, wrong: bool, broken: bool) -> None:
        """Runs it. `wrong`, `broken`: the effect of all of the traffic on results and on the handshake."""
        try:
            verdict = verdict_of(self.engine, self.job)
        except MmagoldError as error:
            self.unknown = str(error)
            return
        breaks = broken and bool(verdict.outcome.failures)
        self.does = breaks or (wrong and _only_with_traffic(verdict, calm))


def _blamed(parts: Mapping[str, _Part], wrong: bool, broken: bool) -> str:
    """The parts of the traffic that have the whole effect by themselves, and where to look."""
    does = [name for name, part in parts.items() if part.does]
    unknown = [
        f"; what {_PARTS[name][0]} alone would do is not known: {part.unknown}"
        for name, part in parts.items()
        if part.unknown
    ]
    if not does and not unknown:
        return ", and none of them alone shows it"
    each = " or ".join(["makes some wrong"] * wrong + ["breaks the handshake"] * broken)
    several = f", each of which {each}" if len(does) > 1 else ""
    # a reset has cycles without a vector: where these do it by themselves, it is not to blame for them
    at_fault = [name for name in does if name != "resets" or "idle" not in does]
    look = "; and at ".join(_PARTS[name][1] for name in at_fault)
    look += " (a reset has such cycles, too)" * (len(at_fault) < len(does))
    return f"{several}{f': look at {look}' if does else ''}{''.join(unknown)}"
