"""Whether two units that differ in a line answer alike, whatever the operands: a proof, or operands that show
the difference.

    found = compare(unit, mutant, seconds=60, build=Path("build"))
    found.verdict, found.operands

Both netlists become words of one table (rtl_tb/prove), in which all that the change does not touch is the
same word; the engine of proofs (golden/proof) settles the rest. It is a statement about one transaction after
a reset, of the netlists that Yosys reads: not about stalls, traffic or later resets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from golden.circuit.words import CircuitError
from golden.program.signature import Operands
from golden.proof.problem import operands_of
from golden.proof.sweep import OPEN, PROVED
from golden.proof.verdict import Outcome, decide
from golden.vectors.vectorset import VectorSet
from rtl_tb import engines
from rtl_tb.dut.description import Dut
from rtl_tb.engines.job import Job
from rtl_tb.prove.netlist import Unreadable
from rtl_tb.prove.problem import problem_of_pair
from rtl_tb.prove.proof import simulation_of
from rtl_tb.runs.verdict import judge

SAME = "the same netlist"
"""How units answer alike that have the same graph."""
COPIES = 4
"""How often a counterexample is given to the simulator."""


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
        problem = problem_of_pair(unit, mutant)
    except (CircuitError, Unreadable) as error:
        return Equivalence(OPEN, f"not read: {error}")
    if problem.unit is problem.spec:
        return Equivalence(PROVED, SAME)
    outcome = decide(problem, seconds, simulation_of(mutant, build, unit))
    if outcome.values is not None:
        given = {name: outcome.values.get(name, 0) for name in problem.vectors}
        return Equivalence(outcome.verdict, "operands found", operands_of(unit.instruction, given))
    return Equivalence(outcome.verdict, _said(outcome))


def replayed(found: Equivalence, dut: Dut, build: Path) -> Equivalence:
    """A refutation run in the simulator, several times: OPEN where the mutant is right there.

    Raises:
        As rtl_tb.engines.run does.
    """
    if found.operands is None:
        return found
    unit = dut.instruction
    operands = {name: np.repeat(codes, COPIES, axis=0) for name, codes in found.operands.items()}
    vectors = VectorSet.of(unit, dut.level, operands, unit.answers(operands), np.zeros(COPIES, np.uint8), 1)
    if judge(vectors, engines.run("fast", Job(dut, build, vectors)), dut.compare).failed.all():
        return found
    return replace(found, verdict=OPEN, how="differs by what the netlist leaves open, not in the simulator")


def _said(outcome: Outcome) -> str:
    if outcome.verdict != PROVED:
        return f"left: {', '.join(outcome.open[:3]) or 'the result'}"
    if outcome.exhausted:
        return f"all {outcome.exhausted:,} operands computed, and again by {outcome.simulated}"
    by = ", ".join(f"{count} by {name}" for name, count in outcome.lemmas.items())
    return f"{sum(outcome.lemmas.values())} lemmas, checked again: {by}"
