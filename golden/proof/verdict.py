"""Settles a problem: PROVED, REFUTED or OPEN, in the seconds that it is given.

    found = settled(problem, seconds=120)
    found.verdict, found.values, found.open

PROVED only if the proof was checked again without what made it (golden/proof/checker.py), and if the same
search refutes the problem with a planted fault in the unit. Whoever asks replays the values of a REFUTED.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any

from golden.proof import checker
from golden.proof.problem import Problem, planted
from golden.proof.sweep import OPEN, PROVED, REFUTED, Refuted, Sweep, Tell
from golden.workers.pool import workers

FAULTS = 2
"""Faults that are planted, one after the other, and have to be refuted."""
SPARE = 2
"""Further ones, in the place of those that are neither refuted nor proved in time."""
_AT_LEAST = 20.0
"""Seconds for checking a proof and for each planted fault, however few are left."""


@dataclass(frozen=True)
class Outcome:
    """What came of a problem.

    Attributes:
        verdict: PROVED, REFUTED or OPEN.
        matched, points: registers of the specification that were found in the unit, of all.
        open: what keeps it open: registers that the unit seems to have and that were not proved, or why a
            proof does not count.
        lemmas: of the proof, how many were checked by what.
        faults: those that were planted and refuted; `unsettled`: planted, and neither refuted nor proved.
        values: where it is refuted, a number for each variable on which the results differ.
        seconds: by part; "of a processor": what of the search this process computed.
    """

    verdict: str
    matched: int
    points: int
    open: tuple[str, ...] = ()
    lemmas: dict[str, int] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()
    values: Mapping[str, int] | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """The exit status of a command that was asked for a proof."""
        return {PROVED: 0, REFUTED: 1}.get(self.verdict, 2)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for machines; without the values, which whoever asked replays."""
        return {
            "verdict": self.verdict,
            "points": self.points,
            "matched": self.matched,
            "open": list(self.open),
            "lemmas": self.lemmas,
            "planted": list(self.faults),
            "unsettled": list(self.unsettled),
            "seconds": {name: round(spent, 2) for name, spent in self.seconds.items()},
        }


def settled(problem: Problem, seconds: float, tell: Tell = lambda _text: None, jobs: int = 1) -> Outcome:
    """Proves or refutes a problem.

    Args:
        seconds: for the search; a proof has as long again to be checked.
        jobs: processes that ask of cases, and check lemmas, at a time.

    Raises:
        ToolMissing: bitwuzla is not installed.
    """
    with contextlib.ExitStack() as stack:
        executor = stack.enter_context(workers(jobs)) if jobs > 1 else None
        return _settled(problem, seconds, tell, executor, jobs)


def _settled(problem: Problem, seconds: float, tell: Tell, executor: Executor | None, jobs: int) -> Outcome:
    start, busy = time.monotonic(), time.process_time()
    sweep = Sweep(problem, start + seconds, tell, None, executor, jobs)
    verdict, values = searched(sweep)
    spent = {"search": time.monotonic() - start, "of a processor": time.process_time() - busy}
    found = Outcome(
        verdict, len(sweep.matched), len(problem.points), _left(sweep), values=values, seconds=spent
    )
    return _held(found, sweep, seconds, tell, executor) if verdict == PROVED else found


def searched(sweep: Sweep) -> tuple[str, Mapping[str, int] | None]:
    """What a search ends with, and the values that refute."""
    try:
        return sweep.run(), None
    except Refuted as found:
        return REFUTED, found.operands


def _left(sweep: Sweep) -> tuple[str, ...]:
    """What is left of an open proof: what seems to be there and was not proved, or the first register that
    nothing in the unit is."""
    missing = [name for name in sweep.points if name not in sweep.matched]
    late = ("the time ended before all was tried",) if sweep.late else ()
    return (tuple(sweep.open) or tuple(missing[:1])) + late


def _held(found: Outcome, sweep: Sweep, seconds: float, tell: Tell, executor: Executor | None) -> Outcome:
    """The proof checked, and the faults refuted; OPEN where that fails."""
    spent = dict(found.seconds)
    start = time.monotonic()
    tell("checking the proof")
    try:
        checked = checker.check(sweep.certificate, max(seconds, _AT_LEAST), executor=executor)
    except checker.NotAProof as error:
        return replace(found, verdict=OPEN, open=(f"the proof was not accepted: {error}",))
    spent["check"] = time.monotonic() - start
    problem = sweep.problem
    refuted: list[str] = []
    unsettled: list[str] = []
    for seed in range(1, FAULTS + SPARE + 1):
        fault = planted(problem, seed)
        if fault is None:
            return replace(found, verdict=OPEN, open=("no fault could be planted to try the proof on",))
        tell(f"planted: {fault[1]}")
        other = Sweep(fault[0], time.monotonic() + max(seconds / 2, _AT_LEAST), before=sweep)
        verdict = searched(other)[0]
        if verdict == PROVED:
            why = f"a unit with a planted fault was proved, a fault of the prover: {fault[1]}"
            return replace(found, verdict=OPEN, open=(why,))
        (refuted if verdict == REFUTED else unsettled).append(fault[1])
        if len(refuted) == FAULTS:
            break
    else:
        why = "planted faults were not refuted in time: " + "; ".join(unsettled)
        return replace(found, verdict=OPEN, open=(why,))
    spent["planted faults"] = time.monotonic() - start - spent["check"]
    return replace(
        found, open=(), lemmas=checked.by, faults=tuple(refuted), unsettled=tuple(unsettled), seconds=spent
    )
