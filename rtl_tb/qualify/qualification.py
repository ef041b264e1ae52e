"""Qualification: runs the default vector set on every mutant and says which stimulus kinds find it, and after
how many vectors.

    result = qualify()
    result.survivors, result.as_dict()
    print_matrix(result, Console())

A set of vectors is worth what it finds. Each mutant of rtl_tb/mutants/ is a reference unit with one planted
fault; a vector kills it when the unit's answer is wrong or never comes, and a protocol failure kills it too.
The result also has what the same number of uniformly random vectors finds. Then the diagnosis must name the
planted fault. Where seconds are given for it, a mutant that survives is proved to be equivalent to its unit,
or refuted by operands (rtl_tb/qualify/qualification.py): else nobody knows which of the two it is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from golden.circuit.words import CircuitError
from golden.errors import MmagoldError
from golden.identify.diagnosis import diagnose
from golden.program.signature import Operands
from golden.proof.problem import operands_of
from golden.proof.sweep import OPEN, PROVED, REFUTED
from golden.proof.verdict import Outcome, decide
from golden.vectors.vectorset import VectorSet, default_set
from golden.workers.pool import workers
from rtl_tb.check.reasons import flag_reasons
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.engines.job import Job
from rtl_tb.errors import RtlError
from rtl_tb.prove.netlist import Unreadable
from rtl_tb.prove.problem import problem_of_pair
from rtl_tb.prove.proof import simulation_of
from rtl_tb.qualify.kill_matrix import WRITERS, print_matrix
from rtl_tb.qualify.mutants import Mutant, load_mutants
from rtl_tb.runs.dots import as_dots
from rtl_tb.runs.latency import measure
from rtl_tb.runs.verdict import Verdict, verdict_of

SAME = "the same netlist"
"""How units answer alike that have the same graph."""


@dataclass(frozen=True)
class Equivalence:
    """What came of a comparison.

    Attributes:
        verdict: PROVED (they are equivalent), REFUTED or OPEN.
        how: what settled it, or why nothing did.
        operands: one dot product (1, ...) for which the netlists give different results.
    """

    verdict: str
    how: str
    operands: Operands | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for machines."""
        operands = self.operands or {}
        codes = {name: np.atleast_1d(one[0]).tolist() for name, one in operands.items()}
        return {"verdict": self.verdict, "how": self.how, "operands": codes}


def compare(unit: Dut, mutant: Dut, seconds: float, build: Path) -> Equivalence:
    """Compares a unit with a mutant of its text.

    Args:
        seconds: for the search; a proof has as long again to be checked.
        build: where the mutant is built if all operands are simulated.

    Raises:
        SimulatorMissing: there is no Yosys. ToolMissing: bitwuzla is not installed. ElaborationError: Yosys
            refuses one of them.
    """
    try:
        problem, steady = problem_of_pair(unit, mutant)
    except (CircuitError, Unreadable) as error:
        return Equivalence(OPEN, f"not read: {error}")
    if problem.unit is problem.spec:
        return _alone(SAME) if not steady else Equivalence(PROVED, SAME)
    outcome = decide(problem, seconds, simulation_of(mutant, build, unit))
    if outcome.values is not None:
        given = {name: outcome.values.get(name, 0) for name in problem.vectors}
        return Equivalence(outcome.verdict, "operands found", operands_of(unit.instruction, given))
    said = _sentence(outcome)
    return _alone(said) if outcome.verdict == PROVED and not steady else Equivalence(outcome.verdict, said)


def _alone(how: str) -> Equivalence:
    """What is equal in one transaction, of units whose results may depend on others."""
    return Equivalence(OPEN, f"equal in the first transaction after a reset, others may differ: {how}")


def replayed(found: Equivalence, dut: Dut, build: Path) -> Equivalence:
    """A refutation run in the simulator, several times: OPEN where the mutant is right there.

    Raises:
        As rtl_tb.engines.run does.
    """
    if found.operands is None:
        return found
    unit = dut.instruction
    # How often a counterexample is given to the simulator.
    copies = 4
    operands = {name: np.repeat(codes, copies, axis=0) for name, codes in found.operands.items()}
    vectors = VectorSet.of(unit, dut.level, operands, unit.answers(operands), np.zeros(copies, np.uint8), 1)
    if verdict_of("fast", Job(dut, build, vectors)).failed.all():
        return found
    return replace(found, verdict=OPEN, how="differs by what the netlist leaves open, not in the simulator")


def _sentence(outcome: Outcome) -> str:
    if outcome.verdict != PROVED:
        return f"left: {', '.join(outcome.open[:3]) or 'the result'}"
    if outcome.exhausted:
        return f"all {outcome.exhausted:,} operands computed, and again by {outcome.simulated}"
    by = ", ".join(f"{count} by {name}" for name, count in outcome.lemmas.items())
    return f"{sum(outcome.lemmas.values())} lemmas, checked again: {by}"


__all__ = ["WRITERS", "Qualification", "Row", "Score", "print_matrix", "qualify"]
Progress = Callable[[str, int, int], None]
"""Called with (the mutant that was finished, finished, all)."""


@dataclass(frozen=True)
class Score:
    """What one set of vectors found: how many vectors failed, the first (from 1; None: none), and protocol
    failures by kind."""

    vectors: int
    kills: int
    first: int | None
    protocol: tuple[str, ...] = ()

    @property
    def killed(self) -> bool:
        """Whether anything was found."""
        return bool(self.kills or self.protocol)


@dataclass
class Row:
    """One mutant's fate.

    Attributes:
        default, random: scores of the default set and of the same number of random bit vectors.
        kinds: by stimulus kind of the default set, the share of its vectors that failed.
        diagnosed: the slugs that explain every result or, where none does, of what is nearest, if that is
            called what the unit is; None if no diagnosis was requested.
        named: whether the planted fault is among them.
        proof: of a survivor, whether it is equivalent to its unit; None if no proof was requested.
    """

    mutant: Mutant
    default: Score
    random: Score
    kinds: dict[str, float]
    diagnosed: tuple[str, ...] | None = None
    sentence: str = ""
    proof: Equivalence | None = None

    @property
    def equivalent(self) -> bool:
        """Whether it is proved that the mutant answers as its unit does: it is no fault."""
        return self.proof is not None and self.proof.verdict == PROVED

    @property
    def named(self) -> bool:
        """Whether the diagnosis names the planted fault."""
        return self.diagnosed is not None and self.mutant.diagnosis in self.diagnosed


@dataclass
class Qualification:
    """All mutants' fates, for `count` vectors of `seed`."""

    count: int
    seed: int
    rows: list[Row] = field(default_factory=list)

    @property
    def survivors(self) -> list[str]:
        """Mutants that the default set did not find."""
        return [row.mutant.name for row in self.rows if not row.default.killed]

    @property
    def unnamed(self) -> list[str]:
        """Mutants whose `diagnosis` is not among the explanations."""
        rows = [row for row in self.rows if row.mutant.diagnosis and not row.equivalent]
        return [row.mutant.name for row in rows if not row.named]

    @property
    def passed(self) -> bool:
        """Every mutant dies or is proved equivalent, and every fault that should be named is."""
        return all(row.default.killed or row.equivalent for row in self.rows) and not self.unnamed

    def summary(self) -> str:
        """One sentence."""
        killed = len(self.rows) - len(self.survivors)
        random = sum(row.random.killed for row in self.rows)
        wanted = sum(row.mutant.diagnosis is not None for row in self.rows)
        named = wanted - len(self.unnamed)
        return (
            f"{killed} of {len(self.rows)} mutants die in the default set of {self.count:,} vectors, "
            f"{random} in the same number of random ones; the diagnosis names {named} of {wanted} faults"
            f"{self._proved()}"
        )

    def _proved(self) -> str:
        """What became of the survivors; nothing where no proof was requested."""
        verdicts = [row.proof.verdict for row in self.rows if row.proof is not None]
        if not verdicts:
            return ""
        proved, refuted, open_ = (verdicts.count(one) for one in (PROVED, REFUTED, OPEN))
        return f"; of the survivors {proved} are PROVED equivalent, {refuted} REFUTED, {open_} OPEN"

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        return {
            "count": self.count,
            "seed": self.seed,
            "survivors": self.survivors,
            "unnamed": self.unnamed,
            "mutants": [_row_dict(row) for row in self.rows],
        }


def _row_dict(row: Row) -> dict[str, Any]:
    scores = {
        name: {"vectors": s.vectors, "kills": s.kills, "first": s.first, "protocol": list(s.protocol)}
        for name, s in (("default", row.default), ("random", row.random))
    }
    return {
        "mutant": row.mutant.name,
        "unit": row.mutant.unit_name,
        "group": row.mutant.group,
        "fault": row.mutant.fault,
        **scores,
        "kinds": row.kinds,
        "diagnosis": row.mutant.diagnosis,
        "diagnosed": None if row.diagnosed is None else list(row.diagnosed),
        "named": row.named,
        "sentence": row.sentence,
        "proof": None if row.proof is None else row.proof.as_dict(),
    }


# Running ----------------------------------------------------------------------------------------------------


def qualify(
    names: Iterable[str] | None = None,
    count: int = 20_000,
    seed: int = 1,
    jobs: int = 2,
    progress: Progress | None = None,
    build: Path | None = None,
    diagnosis: bool = True,
    prove: float = 0.0,
) -> Qualification:
    """Runs mutants and returns their fates.

    Args:
        names: mutants to run; None: all of rtl_tb/mutants/.
        count: vectors of the default set, and of the random one.
        jobs: mutants that are built and run at the same time, and processes that prove survivors.
        build: folder for the mutants and what is built of them, used again by the next run; None: a temporary
            one.
        diagnosis: whether the planted faults are diagnosed.
        prove: seconds for the proof of each survivor, and as long again for its check; 0: none.

    Raises:
        UnknownNameError: no mutant of that name.
        SpecError: a file of mutants is wrong.
        RtlError: a mutant cannot be planted, built or run; the message names it.
    """
    mutants = load_mutants(names)
    result = Qualification(count, seed)
    with tempfile.TemporaryDirectory(prefix="mmagold-qualify-") as temporary:
        folder = build or Path(temporary)
        with ThreadPoolExecutor(max(jobs, 1)) as pool:
            futures = {
                pool.submit(_one, mutant, folder / mutant.name, count, seed, diagnosis): mutant
                for mutant in mutants
            }
            rows = {}
            try:
                for done, future in enumerate(as_completed(futures), 1):
                    row = future.result()
                    rows[row.mutant.name] = row
                    if progress is not None:
                        progress(row.mutant.name, done, len(mutants))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        if prove:
            _prove_survivors(rows, folder, prove, jobs)
    result.rows = [rows[mutant.name] for mutant in mutants]
    return result


def _prove_survivors(rows: dict[str, Row], folder: Path, seconds: float, jobs: int) -> None:
    """Adds to survivors whether they answer as their units do. Each has a process, because a solver's seconds
    count per process, and threads would share them."""
    left = [row for row in rows.values() if not row.default.killed]
    with workers(max(jobs, 1)) as executor:
        found = [executor.submit(_proof, row.mutant, folder / row.mutant.name, seconds) for row in left]
        for row, proof in zip(left, found, strict=True):
            try:
                row.proof = proof.result()
            except MmagoldError as error:
                raise RtlError(f"mutant '{row.mutant.name}': {error}") from error


def _one(mutant: Mutant, folder: Path, count: int, seed: int, diagnosis: bool) -> Row:
    """Builds one mutant and runs both sets through it."""
    try:
        dut = _planted(mutant, folder)
        default = default_set(dut.instruction, count, seed, dut.level)
        random = default_set(dut.instruction, count, seed, dut.level, {"random_bits": 1.0})
        verdict, score = _run(dut, mutant, folder / "build", default)
        _, random_score = _run(dut, mutant, folder / "build", random)
    except MmagoldError as error:
        raise RtlError(f"mutant '{mutant.name}': {error}") from error
    kinds = {row.kind: row.failed / row.tried for row in verdict.by_named_kind()}
    fate = Row(mutant, score, random_score, kinds)
    if diagnosis and mutant.group == "arithmetic" and verdict.wrong.any():
        named = explanations(verdict, dut)
        fate.diagnosed, fate.sentence = named.slugs, named.sentence
    return fate


def _planted(mutant: Mutant, folder: Path) -> Dut:
    """The unit with its fault, and its latency."""
    dut = mutant.plant(folder / "rtl")
    return measure(dut, "fast", "verilator", folder / "build") if dut.handshake.measured else dut


def _proof(mutant: Mutant, folder: Path, seconds: float) -> Equivalence:
    """Whether a survivor answers as its unit does; nothing of one whose fault is in the protocol."""
    if mutant.group != "arithmetic":
        return Equivalence(OPEN, "its fault shows in traffic; a proof is of one transaction after a reset")
    dut = _planted(mutant, folder)
    build = folder / "build"
    return replayed(compare(load_dut(mutant.unit), dut, seconds, build), dut, build)


def _run(dut: Dut, mutant: Mutant, build: Path, vectors: VectorSet) -> tuple[Verdict, Score]:
    verdict = verdict_of("fast", Job(dut, build, vectors, traffic=mutant.traffic))
    outcome = verdict.outcome
    failed = np.flatnonzero(verdict.failed)
    found = [failure.vector for failure in outcome.failures if failure.vector is not None] + failed[
        :1
    ].tolist()
    protocol = tuple(dict.fromkeys(failure.kind for failure in outcome.failures))
    return verdict, Score(len(vectors), len(failed), min(found) + 1 if found else None, protocol)


@dataclass(frozen=True)
class Explanations:
    """Of a unit's results.

    Attributes:
        hypotheses: slugs of what explains every wrong result or, where nothing does, of what is nearest, if
            the unit is called that; parts joined with "+". Of several modes also all faults together.
        flags: slugs of what explains the status flags, which are judged by themselves.
        sentence: what the report says.
        explains: whether `hypotheses` explain every wrong result.
    """

    hypotheses: tuple[str, ...]
    flags: tuple[str, ...]
    sentence: str
    explains: bool = False

    @property
    def slugs(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.hypotheses, *self.flags)

    @property
    def faults(self) -> list[set[str]]:
        """The faults of each explanation; faults of the flags belong to each."""
        flagged = set(self.flags)
        return [flagged, *({*slug.split("+")} | flagged for slug in self.hypotheses)]


def explanations(verdict: Verdict, dut: Dut, budget_seconds: float = 20) -> Explanations:
    """Asks what a unit computes that gave these results."""
    flags = flag_reasons(verdict)
    flagged = tuple(slug for fault in flags for slug in (fault.slug, *fault.others) if slug)
    sentences = [fault.sentence() for fault in flags]
    slugs: tuple[str, ...] = ()
    explains = False
    # Dot products that the diagnosis gets at most.
    most = 20_000
    if verdict.wrong_d.any():
        operands, actual = as_dots(verdict, with_context=True)
        operands = {name: codes[:most] for name, codes in operands.items()}
        ins, given = dut.instruction.stateless, actual[:most]
        found = diagnose(ins, operands, given, policy=dut.compare, budget_seconds=budget_seconds)
        nearest = tuple(each for each in found.hypotheses[:1] if each.accepted(found.failing))
        slugs = tuple(each.slug for each in found.explaining or nearest)
        if found.further:  # of several modes, each with faults of its own
            slugs += ("+".join(fault.slug for _, fault in found.every_fault),)
        explains = found.explains
        sentences = [found.sentence(), *sentences]
    return Explanations(slugs, flagged, "; ".join(sentences), explains)
