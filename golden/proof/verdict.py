"""Decides a problem: PROVED, REFUTED or OPEN, in the seconds that it is given.

    found = decide(problem, seconds=120)
    found.verdict, found.values, found.open

PROVED only if the proof was checked again without what made it (golden/proof/checker.py), and if the same
search refutes the problem with a planted fault in the unit, and that with a changed specification. Whoever
asks replays the values of a REFUTED.

A problem of few operand bits that no lemmas decide is computed for all operands (golden/proof/exhaustion.py).
Then a simulation that shares nothing with it has to give the same results for all of them.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from golden.circuit.words import Values
from golden.proof import checker
from golden.proof.answers import Answers
from golden.proof.exhaustion import Exhaustion
from golden.proof.problem import Problem, planted
from golden.proof.sweep import OPEN, PROVED, REFUTED, OnStage, Refuted, Sweep
from golden.workers.pool import workers

FAULTS = 2
"""Faults planted in the unit, one after the other, and the same number in the specification: all of these
have to be refuted."""
_AT_A_TIME = 1 << 20
"""Operands of one run of a simulation."""
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
class Simulation:
    """What checks a problem whose operands are all computed, without its circuits.

    Attributes:
        name: of what simulates, in words.
        wrong: given numbers (count,) of each operand, how many results differ from the specification's.
    """

    name: str
    wrong: Callable[[Mapping[str, Values]], int]


Search = Callable[[Fault, float], tuple[str, Mapping[str, int] | None]]
"""What a search finds of a fault until a time: the verdict, and the values that refute."""


@dataclass(frozen=True)
class Outcome:
    """What came of a problem.

    Attributes:
        verdict: PROVED, REFUTED or OPEN.
        matched, points: registers of the specification that were found in the unit, of all.
        open: what keeps it open: registers that the unit seems to have and that were not proved, or why a
            proof does not count.
        lemmas: of the proof, how many were checked by what.
        faults: planted in the unit and refuted; `changes`: planted in the specification and refuted;
            `unsettled`: planted in either, and neither refuted nor proved.
        exhausted: where a proof computed all operands, how many they are; `simulated`: by what again.
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
    exhausted: int = 0
    simulated: str = ""
    values: Mapping[str, int] | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """The exit status of a command that proves."""
        return {PROVED: 0, REFUTED: 1}.get(self.verdict, 2)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for machines; without the values, which the caller replays."""
        return {
            "verdict": self.verdict,
            "points": self.points,
            "matched": self.matched,
            "open": list(self.open),
            "lemmas": self.lemmas,
            "planted": list(self.faults),
            "changed": list(self.changes),
            "unsettled": list(self.unsettled),
            "exhausted": self.exhausted,
            "seconds": {name: round(spent, 2) for name, spent in self.seconds.items()},
        }


def decide(
    problem: Problem,
    seconds: float,
    simulation: Simulation,
    on_stage: OnStage = lambda _text: None,
    jobs: int = 1,
    changed: Iterable[Fault] | None = None,
    kept: Path | None = None,
) -> Outcome:
    """Proves or refutes a problem: by lemmas, and then by exhaustion if the operands are few enough.

    The search for lemmas then has as long as it takes to compute all operands.

    Args:
        seconds: for the search; a proof has as long again to be checked.
        simulation: checks an exhaustion.
        jobs: processes that ask of cases, and check lemmas, at a time.
        changed: the unit against changed specifications, of which the first few are tried; None: there is no
            specification that could be changed.
        kept: a file of answers to questions, from which an interrupted search goes on, see
            golden/proof/answers.py; None: there is none.

    Raises:
        ToolMissing: bitwuzla is not installed. As `confirm` of changed ones does.
    """
    with contextlib.ExitStack() as stack:
        executor = stack.enter_context(workers(jobs)) if jobs > 1 else None
        start, busy = time.monotonic(), time.process_time()
        small = Exhaustion(problem)
        cost = small.seconds() if small.few else math.inf
        affordable = cost <= seconds / 2
        until, answers = start + (cost if affordable else seconds), Answers(kept)
        if answers.taken:
            on_stage(f"{answers.taken:,} answers of earlier runs")
        sweep = Sweep(problem, until, on_stage, None, executor, jobs, answers)
        verdict, values = verdict_of(sweep)
        spent = {"search": time.monotonic() - start, "of a processor": time.process_time() - busy}
        left = _left(sweep)
        found = Outcome(verdict, len(sweep.matched), len(problem.points), left, values=values, seconds=spent)
        if verdict == PROVED:
            return _checked(found, sweep, seconds, on_stage, executor, changed)
        if verdict == OPEN and affordable:
            return _exhausted(found, small, seconds, start + seconds, on_stage, changed, simulation)
        if verdict == OPEN and small.few:
            enough = f"--seconds {2 * cost:.0f} would also compute all 2^{small.bits} operands"
            return replace(found, open=(*left, enough))
        return found


def verdict_of(sweep: Sweep) -> tuple[str, Mapping[str, int] | None]:
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


class _ProvedFault(_Doubtful):
    """A planted fault was proved."""


def _checked(
    found: Outcome,
    sweep: Sweep,
    seconds: float,
    on_stage: OnStage,
    executor: Executor | None,
    changed: Iterable[Fault] | None,
) -> Outcome:
    """The proof checked, and the faults refuted; OPEN where that fails."""
    spent = dict(found.seconds)
    start, answers = time.monotonic(), sweep.prover.answers
    on_stage("checking the proof")
    # Seconds of the search for a changed specification, which a known vector refutes after them: those that
    # the search for the proof took, since one that would prove the change takes as long; at least and at
    # most these.
    at_least, at_most = 10.0, 30.0
    try:
        checked = checker.check(sweep.certificate, max(seconds, _AT_LEAST), executor=executor)
        spent["check"] = time.monotonic() - start
        start, each = time.monotonic(), max(seconds / 2, _AT_LEAST)
        by_lemmas = partial(_by_lemmas, answers)
        faults, late = _refuted("unit", _planted(sweep.problem, sweep), each, on_stage, by_lemmas)
        spent["planted faults"] = time.monotonic() - start
        changes: tuple[str, ...] = ()
        if changed is not None:
            start = time.monotonic()
            long = min(max(found.seconds["search"], at_least), at_most, each)
            changes, more = _refuted("specification", changed, long, on_stage, by_lemmas)
            late += more
            spent["changed specifications"] = time.monotonic() - start
    except (checker.NotAProof, _Doubtful) as error:
        why = str(error) if isinstance(error, _Doubtful) else f"the proof was not accepted: {error}"
        wrong = isinstance(error, (checker.FalseLemma, _ProvedFault)) and answers.drop()
        again = ("answers of earlier runs took part and are removed: run it again",) if wrong else ()
        return replace(found, verdict=OPEN, open=(why, *again))
    return replace(
        found, open=(), lemmas=checked.by, faults=faults, changes=changes, unsettled=late, seconds=spent
    )


def _exhausted(
    found: Outcome,
    small: Exhaustion,
    seconds: float,
    until: float,
    on_stage: OnStage,
    changed: Iterable[Fault] | None,
    simulation: Simulation,
) -> Outcome:
    """All operands computed, and simulated again, and the faults refuted in the same way; OPEN where that
    fails."""
    spent = dict(found.seconds)
    start = time.monotonic()
    on_stage(f"computing all 2^{small.bits} operands")
    # Its cost was guessed of two blocks: it has twice the time that was left.
    all_ = small.run(until + seconds)
    spent["exhaustion"] = time.monotonic() - start
    found = replace(found, seconds=spent)
    if all_.values is not None:
        return replace(found, verdict=REFUTED, values=all_.values, open=())
    if all_.left:
        return replace(found, open=(*found.open, all_.left))
    each = max(seconds / 2, _AT_LEAST)
    try:
        start = time.monotonic()
        _simulated(small, simulation, all_.count, start + max(seconds, _AT_LEAST), on_stage)
        spent["check"] = time.monotonic() - start
        start = time.monotonic()
        faults, late = _refuted("unit", _planted(small.problem), each, on_stage, _by_exhaustion)
        spent["planted faults"] = time.monotonic() - start
        changes: tuple[str, ...] = ()
        if changed is not None:
            start = time.monotonic()
            changes, more = _refuted("specification", changed, each, on_stage, _by_exhaustion)
            late += more
            spent["changed specifications"] = time.monotonic() - start
    except _Doubtful as why:
        return replace(found, verdict=OPEN, open=(str(why),))
    return replace(
        found, verdict=PROVED, open=(), exhausted=all_.count, simulated=simulation.name, faults=faults,
        changes=changes, unsettled=late, seconds=spent,
    )  # fmt: skip


def _simulated(
    small: Exhaustion, simulation: Simulation, count: int, until: float, on_stage: OnStage
) -> None:
    """Has all operands simulated.

    Raises:
        _Doubtful: some results are wrong, or the time ended, or other operands were simulated than computed.
    """
    done = 0
    for given in _joined(small):
        if time.monotonic() > until:
            raise _Doubtful(
                f"all {count:,} operands are right in the netlist, but the time ended after {done:,} of them "
                f"in {simulation.name}"
            )
        done += len(next(iter(given.values())))
        on_stage(f"{simulation.name}: {done:,} of {count:,} operands")
        if wrong := simulation.wrong(given):
            raise _Doubtful(
                f"all {count:,} operands are right in the netlist, but {wrong:,} of the first {done:,} are "
                f"wrong in {simulation.name}: `mmagold rtl check` shows what differs"
            )
    if done != count:
        raise _Doubtful(f"{count:,} operands were computed, but {done:,} simulated: a fault of mmagold")


def _joined(small: Exhaustion) -> Iterator[dict[str, Values]]:
    """All operands, in parts that are worth a run of a simulator."""
    held: list[dict[str, Values]] = []
    for given in small.blocks():
        held.append(small.columns(given))
        if sum(len(next(iter(each.values()))) for each in held) >= _AT_A_TIME:
            yield {name: np.concatenate([each[name] for each in held]) for name in held[0]}
            held.clear()
    if held:
        yield {name: np.concatenate([each[name] for each in held]) for name in held[0]}


def _planted(problem: Problem, sweep: Sweep | None = None) -> Iterator[Fault]:
    """Faults in the unit, each with another seed."""
    for seed in itertools.count(1):
        if (fault := planted(problem, seed)) is None:
            return
        yield Fault(fault[1], fault[0], before=sweep)


def _by_lemmas(answers: Answers, fault: Fault, until: float) -> tuple[str, Mapping[str, int] | None]:
    return verdict_of(Sweep(fault.problem, until, before=fault.before, answers=answers))


def _by_exhaustion(fault: Fault, until: float) -> tuple[str, Mapping[str, int] | None]:
    found = Exhaustion(fault.problem).run(until)
    if found.values is not None:
        return REFUTED, found.values
    return (OPEN if found.left else PROVED), None


def _refuted(
    where: str, faults: Iterable[Fault], seconds: float, on_stage: OnStage, search: Search
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The first faults that are refuted, and the faults before them that are not decided.

    Args:
        seconds: for each.

    Raises:
        _Doubtful: one is proved, too few are refuted, or there are none. As `confirm` of a fault does.
    """
    refuted: list[str] = []
    unsettled: list[str] = []
    # Further ones, for faults that are neither refuted nor proved in time.
    extra = 2
    for fault in itertools.islice(faults, FAULTS + extra):
        on_stage(f"planted in the {where}: {fault.what}")
        verdict, values = search(fault, time.monotonic() + seconds)
        if verdict == PROVED:
            raise _ProvedFault(
                f"a fault planted in the {where} was proved, a fault of the prover: {fault.what}"
            )
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
