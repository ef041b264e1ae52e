"""Proves that a unit is its instruction, for all operands; refutes it; or says what is left open.

    found = prove(load_dut("dut.yaml"), seconds=120)
    found.verdict, found.operands, found.open

PROVED only if the proof was checked again without what made it (golden/proof/checker.py), and if the same
search refutes the unit with a planted fault. REFUTED only if the simulator shows with these operands what the
netlist shows, and golden's model what the specification's circuit does.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from golden.circuit.words import CircuitError, Values
from golden.errors import counted
from golden.identify.diagnose.mutations import changed
from golden.program.signature import Operands
from golden.proof.problem import Problem, batch_of, operands_of, result_of
from golden.proof.sweep import OPEN, PROVED, OnStage
from golden.proof.verdict import Fault, Outcome, Simulation, decide
from golden.vectors.files import write
from golden.vectors.vectorset import VectorSet, default_set, join
from rtl_tb import engines
from rtl_tb.check.check import check_dut
from rtl_tb.check.explain import OnPart
from rtl_tb.check.options import Options
from rtl_tb.check.record import Check
from rtl_tb.dut.description import Dut
from rtl_tb.engines.job import Job
from rtl_tb.errors import RtlError
from rtl_tb.prove.netlist import Transaction
from rtl_tb.prove.problem import changed_problem, problem_of, results_of_models
from rtl_tb.runs.verdict import verdict_of

ANSWERS = "answers.txt"
"""In the build folder of a unit: what a search that was interrupted goes on from."""
_SEED = 1
"""Of the changes of the specification that a proof is tried on."""


@dataclass(frozen=True)
class Proof:
    """What came of a proof.

    Attributes:
        outcome: the verdict, and what it rests on or what is left.
        claim: what it is a verdict on, with all that is assumed.
        steady: whether the netlist shows that no other transaction changes a result.
        operands: of a unit that is refuted, one dot product that it gets wrong; `check`: it and some vectors
            in the simulator, explained.
    """

    dut: Dut
    outcome: Outcome
    claim: tuple[str, ...]
    steady: bool = True
    operands: Operands | None = None
    check: Check | None = None

    @property
    def verdict(self) -> str:
        """PROVED, REFUTED or OPEN."""
        return self.outcome.verdict

    @property
    def subject(self) -> str:
        """What it is a verdict on, in the first line."""
        return f"{self.dut.name} against {self.dut.instruction_name}"

    @property
    def open(self) -> tuple[str, ...]:
        """What keeps it open."""
        return self.outcome.open

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for machines."""
        operands = self.operands or {}
        return {
            "dut": self.dut.name,
            "instruction": self.dut.instruction_name,
            "claim": list(self.claim),
            "steady": self.steady,
            **self.outcome.as_dict(),
            "operands": {
                name: [int(code) for code in np.atleast_1d(codes)] for name, codes in operands.items()
            },
            "check": None if self.check is None else self.check.as_dict(),
        }


def prove(
    dut: Dut,
    seconds: float = 300.0,
    options: Options | None = None,
    on_stage: OnStage = lambda _text: None,
    listen: OnPart | None = None,
    jobs: int = 1,
) -> Proof:
    """Proves or refutes a unit.

    Args:
        seconds: for the search; a proof has as long again to be checked.
        options: of the check that explains a counterexample.
        jobs: processes that ask of cases, and check lemmas, at a time.

    Raises:
        Unreadable: the unit is none of which this can be said. CircuitError: its specification has no
        circuit. SimulatorMissing: a tool is not installed. RtlError: the circuit of the specification and
        golden's model differ.
    """
    start = time.monotonic()
    on_stage("reading the unit")
    problem, read = problem_of(dut)
    reading = {"reading": time.monotonic() - start}
    options = options or Options()
    build = options.build / dut.name
    changes = changed_specifications(dut, problem)
    outcome = decide(problem, seconds, simulation_of(dut, build), on_stage, jobs, changes, build / ANSWERS)
    outcome = replace(outcome, seconds=reading | outcome.seconds)
    found = Proof(dut, outcome, claim_of(dut, problem, read), read.steady)
    if outcome.values is not None:
        return _replayed(found, problem, outcome.values, options, on_stage, listen)
    return _simulated(found, options, on_stage) if found.verdict == PROVED else found


def changed_specifications(dut: Dut, problem: Problem) -> Iterator[Fault]:
    """A unit against specifications with one step changed, as far as these have a circuit and vectors show a
    difference: a proof that accepts one of them does not heed that step."""
    for what, instruction in changed(dut.instruction, _SEED):
        with contextlib.suppress(CircuitError):
            if (found := changed_problem(dut, problem, instruction)) is not None:
                other = replace(dut, instruction=instruction)
                yield Fault(what, *found, partial(_confirm, dut, other, found[0]))


def _confirm(dut: Dut, other: Dut, problem: Problem, values: Mapping[str, int]) -> None:
    """Holds both results against both models.

    Raises:
        RtlError: a model gives another result than the unit that is proved, or than the changed circuit.
    """
    for one, word in ((dut, problem.unit), (other, problem.spec)):
        said = result_of(word, values)
        for model, came in results_of_models(one, values):
            if came != said:
                raise RtlError(
                    f"the netlist or circuit of {one.name} gives 0x{said:x}, its {model} 0x{came:x}: a fault "
                    f"of mmagold; operands {dict(values)}"
                )


def simulation_of(dut: Dut, build: Path, like: Dut | None = None) -> Simulation:
    """What runs all operands of an exhaustion through a unit, and compares its results with the model's, or
    with the results of a unit that it should be `like`."""
    against = "the core" if like is None else like.name
    return Simulation(f"Verilator, against {against}", partial(_wrong, dut, build, like))


def _wrong(dut: Dut, build: Path, like: Dut | None, columns: Mapping[str, Values]) -> int:
    """How many results of the simulated unit are wrong for numbers (count,) of each operand."""
    unit = dut.instruction
    operands = batch_of(unit, columns)
    count = len(next(iter(columns.values())))
    expected, kinds = unit.answers(operands), np.zeros(count, np.uint8)
    vectors = VectorSet.of(unit, dut.level, operands, expected, kinds, _SEED)
    if like is not None:
        right = engines.run("fast", Job(like, build / "like", vectors))
        if right.failures or not right.received.all():
            return count
        vectors = VectorSet.of(unit, dut.level, operands, right.results, kinds, _SEED)
    verdict = verdict_of("fast", Job(dut, build, vectors))
    return int(verdict.failed.sum()) or len(verdict.outcome.failures)


def _simulated(found: Proof, options: Options, on_stage: OnStage) -> Proof:
    """A proof of the netlist that the simulator bears out, with its traffic; OPEN where it does not."""
    on_stage("running vectors of the proved unit")
    # Vectors that a proved unit has to get right in the simulator, which may read another text than Yosys:
    # one that has a branch for each tool is found by a handful. If state may carry over from one transaction
    # to the next, of which nothing is proved, as many as a check runs.
    simulated = 2_000 if found.steady else None
    plain = replace(options, vectors=None, count=simulated, first=0, explain=False, failures=None)
    check = check_dut(found.dut, replace(plain, four_states=False, synthesis="off"), None, None)
    if check.verdict.passed and found.steady:
        return found
    if check.verdict.passed:
        why = (
            f"one transaction after a reset is proved, and {len(check.verdict.failed):,} vectors are right "
            "in the simulator; it was not shown that no other transaction changes a result"
        )
        return replace(found, outcome=replace(found.outcome, verdict=OPEN, open=(why,)))
    failed = int(check.verdict.failed.sum())
    why = (
        f"the netlist of one transaction is proved, but {failed:,} of {len(check.verdict.failed):,} vectors "
        "fail in the simulator: `mmagold rtl check` shows what differs"
    )
    return replace(found, outcome=replace(found.outcome, verdict=OPEN, open=(why,)), check=check)


def claim_of(dut: Dut, problem: Problem, read: Transaction) -> tuple[str, ...]:
    """What is said, and what is assumed."""
    reset = "no reset port"
    if dut.reset is not None:
        reset = f"{dut.reset.port} active for {counted(dut.reset.cycles, 'cycle')}"
    said = [
        f"{dut.name} is {dut.instruction_name} for all operands of one transaction after reset ({reset}; "
        f"taken {counted(read.waited, 'cycle')} later)",
        f"result {counted(read.latency, 'cycle')} after the operands, without a stall; registers hold "
        "anything before",
    ]
    if dut.constants:
        said.append("tied: " + ", ".join(f"{name} = {value}" for name, value in dut.constants.items()))
    if problem.assumed:
        said.append("assumed: " + "; ".join(name for name, _ in problem.assumed))
    if dut.compare.nan != "exact" or dut.compare.zero != "strict":
        said.append(f"compared with nan: {dut.compare.nan}, zero: {dut.compare.zero}")
    if read.undefined:
        said.append("x in the unit is anything")
    if read.steady:
        said.append("also in traffic without a stall: the result depends on no other transaction")
    left = "stalls" if read.steady else "traffic, stalls"
    said.append(f"of the netlist that Yosys reads; {left} and resets in flight are left to rtl check")
    return tuple(said)


# A counterexample -------------------------------------------------------------------------------------------


def _replayed(
    found: Proof,
    problem: Problem,
    model: Mapping[str, int],
    options: Options,
    on_stage: OnStage,
    listen: OnPart | None,
) -> Proof:
    """Operands that refute the netlist, run in the simulator and explained; OPEN where it shows nothing.

    Raises:
        RtlError: golden's model and the circuit of the specification give different results.
    """
    dut, unit = found.dut, found.dut.instruction
    on_stage("replaying the counterexample")
    operands = operands_of(unit, model)
    answers = unit.answers(operands)
    said = result_of(problem.spec, model)
    expected = int.from_bytes(dut.layout.pack_results(answers)[0].tobytes(), "little")
    if dut.compare.nan == "exact" and dut.compare.zero == "strict" and said != expected:
        raise RtlError(
            f"the circuit of {dut.instruction_name} gives 0x{said:x}, golden's model 0x{expected:x}: "
            f"a fault of mmagold; operands {dict(model)}"
        )
    one = VectorSet.of(unit, dut.level, operands, answers, np.zeros(1, np.uint8), 1)
    folder = options.failures or Path("failures")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{dut.name}-counterexample.npz"  # stays: the report says how to run it again
    # Vectors that are run with a counterexample: other wrong results show a diagnosis what the fault is.
    around = 2_000
    write(file, join([one, default_set(unit, around, 1, dut.level)]))
    check = check_dut(dut, replace(options, vectors=file, count=None, first=0), None, listen)
    single = {name: codes[0] for name, codes in operands.items()}
    if check.verdict.failed[0]:
        found = replace(found, outcome=replace(found.outcome, open=()))
        return replace(found, operands=single, check=check)
    why = "operands that are wrong in the netlist are right in the simulator: two readings of one text"
    verdict = OPEN if check.verdict.passed else found.verdict  # other vectors may be wrong there
    outcome = replace(found.outcome, verdict=verdict, open=(why,))
    return replace(found, outcome=outcome, operands=single, check=check)
