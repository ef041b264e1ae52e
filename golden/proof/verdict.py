"""Settles a problem: PROVED, REFUTED or OPEN, in the seconds that it is given.

    found = settled(problem, seconds=120)
    found.verdict, found.values, found.open

PROVED only if the proof was checked again without what made it (golden/proof/checker.py), and if the same
search refutes the problem with a planted fault in the unit, and that with a changed specification. Whoever
asks replays the values of a REFUTED.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any

from golden.proof import checker
from golden.proof.problem import Problem, planted
from golden.proof.sweep import OPEN, PROVED, REFUTED, Refuted, Sweep, Tell
from golden.workers.pool import workers

FAULTS = 2
"""Faults that are planted in the unit, one after the other, and as many in the specification: all of these
have to be refuted."""
SPARE = 2
"""Further ones, in the place of those that are neither refuted nor proved in time."""
CHANGED = 30.0
"""Seconds of the search for a changed specification, which a known vector refutes after them."""
_AT_LEAST = 20.0
"""Seconds for checking a proof and for each planted fault, however few are left."""


@dataclass(frozen=True)
class Fault:
    """A problem that a search has to refute.

    Attributes:
        what: is wrong in it, in words.
        confirm: given the values that refute it, has the models compute both results, where there are models.
        shown: values that are known to refute it: they do where the search does not within CHANGED seconds.
        before: a search of another problem in the same table, of which every lemma holds here, too.
    """

    what: str
    problem: Problem
    shown: Mapping[str, int] | None = None
    confirm: Callable[[Mapping[str, int]], object] = lambda _values: None
    before: Sweep | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of a problem.

    Attributes:
        verdict: PROVED, REFUTED or OPEN.
        matched, points: registers of the specification that were found in the unit, of all.
        open: what keeps it open: registers that the unit seems to have and that were not proved, or why a
            proof does not count.
        lemmas: of the proof, how many were checked by what.
        faults: those that were planted in the unit and refuted; `changes`: those of the specification that
            were refuted; `unsettled`: planted in either, and neither refuted nor proved.
        values: where it is refuted, a number for each variable on which the results differ.
        seconds: by part; "of a processor": what of the search this process computed.
    """

    verdict: str
    matched: int
    points: int
    open: tuple[str, ...] = ()
    lemmas: dict[str, int] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
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
            "changed": list(self.changes),
            "unsettled": list(self.unsettled),
            "seconds": {name: round(spent, 2) for name, spent in self.seconds.items()},
        }


def decide(
    problem: Problem,
    seconds: float,
    tell: Tell = lambda _text: None,
    jobs: int = 1,
    changed: Iterable[Fault] | None = None,
) -> Outcome:
    """Proves or refutes a problem.

    Args:
        seconds: for the search; a proof has as long again to be checked.
        jobs: processes that ask of cases, and check lemmas, at a time.
        changed: the unit against changed specifications, of which the first few are tried; None: there is no
            specification that could be changed.

    Raises:
        ToolMissing: bitwuzla is not installed. As `confirm` of those that are changed does.
    """
    with contextlib.ExitStack() as stack:
        executor = stack.enter_context(workers(jobs)) if jobs > 1 else None
        start, busy = time.monotonic(), time.process_time()
        sweep = Sweep(problem, start + seconds, tell, None, executor, jobs)
        verdict, values = searched(sweep)
        spent = {"search": time.monotonic() - start, "of a processor": time.process_time() - busy}
        found = Outcome(
            verdict, len(sweep.matched), len(problem.points), _left(sweep), values=values, seconds=spent
        )
        return found if verdict != PROVED else _checked(found, sweep, seconds, tell, executor, changed)


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


class _Doubtful(Exception):
    """Why a proof does not count."""


def _checked(
    found: Outcome,
    sweep: Sweep,
    seconds: float,
    tell: Tell,
    executor: Executor | None,
    changed: Iterable[Fault] | None,
) -> Outcome:
    """The proof checked, and the faults refuted; OPEN where that fails."""
    spent = dict(found.seconds)
    start = time.monotonic()
    tell("checking the proof")
    try:
        checked = checker.check(sweep.certificate, max(seconds, _AT_LEAST), executor=executor)
        spent["check"] = time.monotonic() - start
        start, each = time.monotonic(), max(seconds / 2, _AT_LEAST)
        faults, late = _refuted("unit", _planted(sweep), each, tell)
        spent["planted faults"] = time.monotonic() - start
        changes: tuple[str, ...] = ()
        if changed is not None:
            start = time.monotonic()
            changes, more = _refuted("specification", changed, min(each, CHANGED), tell)
            late += more
            spent["changed specifications"] = time.monotonic() - start
    except checker.NotAProof as error:
        return replace(found, verdict=OPEN, open=(f"the proof was not accepted: {error}",))
    except _Doubtful as why:
        return replace(found, verdict=OPEN, open=(str(why),))
    return replace(
        found, open=(), lemmas=checked.by, faults=faults, changes=changes, unsettled=late, seconds=spent
    )


def _planted(sweep: Sweep) -> Iterator[Fault]:
    """Faults in the unit, each with another seed."""
    for seed in itertools.count(1):
        if (fault := planted(sweep.problem, seed)) is None:
            return
        yield Fault(fault[1], fault[0], before=sweep)


def _refuted(
    where: str, faults: Iterable[Fault], seconds: float, tell: Tell
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The first faults that are refuted, and those before them that are not settled.

    Args:
        seconds: for each.

    Raises:
        _Doubtful: one is proved, too few are refuted, or there are none. As `confirm` of a fault does.
    """
    refuted: list[str] = []
    unsettled: list[str] = []
    for fault in itertools.islice(faults, FAULTS + SPARE):
        tell(f"planted in the {where}: {fault.what}")
        verdict, values = searched(Sweep(fault.problem, time.monotonic() + seconds, before=fault.before))
        if verdict == PROVED:
            raise _Doubtful(f"a fault planted in the {where} was proved, a fault of the prover: {fault.what}")
        by = "" if values is not None or fault.shown is None else " (by a vector)"
        values = values or fault.shown
        if values is not None:
            fault.confirm(values)
        (unsettled if values is None else refuted).append(fault.what + by)
        if len(refuted) == FAULTS:
            return tuple(refuted), tuple(unsettled)
    if not refuted and not unsettled:
        raise _Doubtful(f"no fault could be planted in the {where} to try the proof on")
    if unsettled:
        raise _Doubtful(f"faults planted in the {where} were not refuted in time: {'; '.join(unsettled)}")
    return tuple(refuted), ()
