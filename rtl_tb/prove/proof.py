"""Proves that a unit is its instruction, for all operands; refutes it; or says what is left open.

    found = prove("dut.yaml", seconds=120)
    found.verdict, found.operands, found.open

PROVED only if the proof was checked again without what made it (rtl_tb/prove/checker.py), and if the same
search refutes the unit with a planted fault. REFUTED only if the simulator shows with these operands what the
netlist shows, and golden's model what the specification's circuit does.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from golden.circuit.words import evaluate
from golden.program.signature import Operands
from golden.vectors.files import write
from golden.vectors.vectorset import VectorSet, default_set, join
from rtl_tb.check.check import check_dut
from rtl_tb.check.explain import Listen
from rtl_tb.check.options import Options
from rtl_tb.check.record import Check
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.errors import RtlError
from rtl_tb.prove import checker
from rtl_tb.prove.problem import Problem, planted, problem_of
from rtl_tb.prove.sweep import OPEN, PROVED, REFUTED, Refuted, Sweep, Tell

FAULTS = 2
"""Faults that are planted, one after the other."""
_AROUND = 2_000
"""Vectors that are run with a counterexample: what else is wrong tells a diagnosis what the fault is."""
_AT_LEAST = 20.0
"""Seconds for checking a proof and for each planted fault, however few are left."""


@dataclass(frozen=True)
class Proof:
    """What came of a proof.

    Attributes:
        verdict: PROVED, REFUTED or OPEN.
        claim: what it is a verdict on, with all that is assumed.
        matched, points: registers of the specification that were found in the unit, of all.
        open: what keeps it open: registers that the unit seems to have and that were not proved, or why a
            proof or a counterexample does not count.
        lemmas: of the proof, how many were checked by what.
        faults: those that were planted and refuted.
        operands: of a unit that is refuted, one dot product that it gets wrong; `check`: it and some vectors
            in the simulator, explained.
        seconds: by part.
    """

    dut: Dut
    verdict: str
    claim: tuple[str, ...]
    matched: int
    points: int
    open: tuple[str, ...] = ()
    lemmas: dict[str, int] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    operands: Operands | None = None
    check: Check | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for machines."""
        operands = self.operands or {}
        return {
            "dut": self.dut.name,
            "instruction": self.dut.instruction_name,
            "verdict": self.verdict,
            "claim": list(self.claim),
            "points": self.points,
            "matched": self.matched,
            "open": list(self.open),
            "lemmas": self.lemmas,
            "planted": list(self.faults),
            "operands": {
                name: [int(code) for code in np.atleast_1d(codes)] for name, codes in operands.items()
            },
            "check": None if self.check is None else self.check.as_dict(),
            "seconds": {name: round(spent, 2) for name, spent in self.seconds.items()},
        }


def prove(
    file: str | Path,
    seconds: float = 300.0,
    options: Options | None = None,
    tell: Tell = lambda _text: None,
    listen: Listen | None = None,
) -> Proof:
    """Proves or refutes the unit that `file` describes.

    Args:
        seconds: for the search; a proof has as long again to be checked.
        options: of the check that explains a counterexample.

    Raises:
        SpecError: the description is wrong. Unreadable: the unit is none of which this can be said.
        CircuitError: its specification has no circuit. SimulatorMissing: a tool is not installed.
        RtlError: the circuit of the specification and golden's model differ.
    """
    return prove_dut(load_dut(file), seconds, options, tell, listen)


def prove_dut(
    dut: Dut,
    seconds: float = 300.0,
    options: Options | None = None,
    tell: Tell = lambda _text: None,
    listen: Listen | None = None,
) -> Proof:
    """Proves or refutes a unit whose description is read already.

    Raises:
        As prove does.
    """
    start = time.monotonic()
    tell("reading the unit")
    problem = problem_of(dut)
    spent = {"reading": time.monotonic() - start}
    sweep = Sweep(problem, start + seconds, tell)
    verdict, operands = _searched(sweep)
    spent["search"] = time.monotonic() - start - spent["reading"]
    found = Proof(
        dut,
        verdict,
        claim_of(dut, problem),
        len(sweep.matched),
        len(problem.points),
        _left(sweep),
        seconds=spent,
    )
    if operands is not None:
        return _replayed(found, problem, operands, options or Options(), tell, listen)
    return _held(found, sweep, seconds, tell) if verdict == PROVED else found


def claim_of(dut: Dut, problem: Problem) -> tuple[str, ...]:
    """What is said, and what is assumed."""
    read = problem.transaction
    reset = "no reset port"
    if dut.reset is not None:
        reset = f"{dut.reset.port} active for {dut.reset.cycles} cycles"
    said = [
        f"{dut.name} is {dut.instruction_name} for all operands of one transaction after reset ({reset}; "
        f"taken {read.waited} cycles later)",
        f"result {read.latency} cycles after the operands, without a stall; registers hold anything before",
    ]
    if dut.constants:
        said.append("tied: " + ", ".join(f"{name} = {value}" for name, value in dut.constants.items()))
    if problem.assumed:
        said.append("assumed: " + "; ".join(name for name, _ in problem.assumed))
    if dut.compare.nan != "exact" or dut.compare.zero != "strict":
        said.append(f"compared with nan: {dut.compare.nan}, zero: {dut.compare.zero}")
    if read.undefined:
        said.append("x in the unit is anything")
    said.append("of the netlist that Yosys reads; traffic, stalls and resets in flight are left to rtl check")
    return tuple(said)


def _searched(sweep: Sweep) -> tuple[str, Mapping[str, int] | None]:
    try:
        return sweep.run(), None
    except Refuted as found:
        return REFUTED, found.operands


def _left(sweep: Sweep) -> tuple[str, ...]:
    """What is left of an open proof: what seems to be there and was not proved, or the first register that
    nothing in the unit is."""
    missing = [name for name in sweep.points if name not in sweep.matched]
    return tuple(sweep.open) or tuple(missing[:1])


# A proof ----------------------------------------------------------------------------------------------------


def _held(found: Proof, sweep: Sweep, seconds: float, tell: Tell) -> Proof:
    """The proof checked, and the faults refuted; OPEN where that fails."""
    spent = dict(found.seconds)
    start = time.monotonic()
    tell("checking the proof")
    try:
        checked = checker.check(sweep.certificate, max(seconds, _AT_LEAST))
    except checker.NotAProof as error:
        return replace(found, verdict=OPEN, open=(f"the proof was not accepted: {error}",))
    spent["check"] = time.monotonic() - start
    faults: list[str] = []
    problem = sweep.problem
    for seed in range(1, FAULTS + 1):
        fault = planted(problem, seed)
        if fault is None:
            return replace(found, verdict=OPEN, open=("no fault could be planted to try the proof on",))
        tell(f"planted: {fault[1]}")
        other = Sweep(fault[0], time.monotonic() + max(seconds / 2, _AT_LEAST), before=sweep)
        if _searched(other)[0] != REFUTED:
            return replace(found, verdict=OPEN, open=(f"a planted fault was not refuted: {fault[1]}",))
        faults.append(fault[1])
    spent["planted faults"] = time.monotonic() - start - spent["check"]
    return replace(found, open=(), lemmas=checked.by, faults=tuple(faults), seconds=spent)


# A counterexample -------------------------------------------------------------------------------------------


def _replayed(
    found: Proof,
    problem: Problem,
    model: Mapping[str, int],
    options: Options,
    tell: Tell,
    listen: Listen | None,
) -> Proof:
    """Operands that refute the netlist, run in the simulator and explained; OPEN where it shows nothing.

    Raises:
        RtlError: golden's model answers otherwise than the circuit of the specification.
    """
    dut, unit = found.dut, found.dut.instruction
    tell("replaying the counterexample")
    fields = dut.layout.operand_fields
    word = sum(model[field.name] << field.lsb for field in fields)
    size = (dut.layout.operand_width + 7) // 8
    operands = dut.layout.unpack_operands(np.frombuffer(word.to_bytes(size, "little"), np.uint8)[None])
    answers = unit.answers(operands)
    said = _result(problem, model)
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
    write(file, join([one, default_set(unit, _AROUND, 1, dut.level)]))
    check = check_dut(dut, replace(options, vectors=file, count=None, first=0), None, listen)
    single = {name: codes[0] for name, codes in operands.items()}
    if check.verdict.failed[0]:
        return replace(found, open=(), operands=single, check=check)
    why = "operands that are wrong in the netlist are right in the simulator: two readings of one text"
    verdict = OPEN if check.verdict.passed else found.verdict  # other vectors may be wrong there
    return replace(found, verdict=verdict, open=(why,), operands=single, check=check)


def _result(problem: Problem, model: Mapping[str, int]) -> int:
    values = evaluate([problem.spec], {name: [number] for name, number in model.items()})
    return int(values[problem.spec][0])
