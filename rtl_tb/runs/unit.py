"""A DUT behind an engine as a unit: probes, comparing and minimising ask it as they ask an instruction.

unit = open_unit("dut.yaml")
print(compare(golden.instruction("hopper", "HMMA.16816.F32"), unit).numeric)
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from golden.program.signature import Bits, Operands
from golden.unit import FunctionUnit
from golden.vectors.vectorset import VectorSet, default_set
from rtl_tb import engines
from rtl_tb.dut.description import load_dut
from rtl_tb.engines.job import Job, Traffic
from rtl_tb.errors import RtlError
from rtl_tb.runs import dots
from rtl_tb.runs.latency import measure
from rtl_tb.runs.verdict import Verdict, verdict_of


class DutRun:
    """Runs dot products through the DUT of a job, alone, at full throughput: one call is one run.

    `place`: the row and column of the dot product in its tile, where the DUT takes tiles; the rest of the
    tile is zero.
    """

    def __init__(self, job: Job, engine: str, place: tuple[int, int] | None = None) -> None:
        self.engine = engine
        self.place = (place or (0, 0)) if job.dut.level == "tile" else None
        job = replace(job, traffic=Traffic(), waves=None)
        self.job = job if job.program else engines.built(engine, job)

    def judged(self, operands: Operands) -> tuple[Operands, Verdict]:
        """The results (n,) by name (d, flags) of a batch of dot products, and the verdict on them."""
        ins = self.job.dut.instruction
        given = operands if self.place is None else dots.place(ins, operands, *self.place)
        verdict = self._run(given)
        actual = {
            name: codes.reshape(verdict.vectors.d.shape) for name, codes in verdict.outcome.results.items()
        }
        if self.place is not None:
            actual = {name: codes[:, self.place[0], self.place[1]] for name, codes in actual.items()}
        return actual, verdict

    def _run(self, given: Operands) -> Verdict:
        """Operands as the DUT takes them, dot products or tiles, through the engine."""
        dut, ins = self.job.dut, self.job.dut.instruction
        expected = ins.answers(given, self.place is not None)
        vectors = VectorSet.of(ins, dut.level, given, expected, np.zeros(len(given["a"]), np.uint8), 0)
        return verdict_of(self.engine, replace(self.job, vectors=vectors))

    def _refuse_unknown(self, verdict: Verdict) -> None:
        unknown = verdict.unknown | verdict.missing
        if unknown.any():
            named = f"{int(unknown.sum())} of {len(unknown)} results"
            raise RtlError(f"{self.job.dut.name}: {named} are X or Z or never came")

    def failed(self, operands: Operands) -> Bits:
        """Which of a batch of dot products fail, (n,): of tiles at `place`, whatever else is wrong."""
        return self._outcome_of(operands)[1]

    def alone(self, operands: Operands) -> tuple[dict[str, int] | None, bool]:
        """The results by name (None: X or Z) of one dot product that is the only vector, and whether it
        fails."""
        results, failed, unknown = self._outcome_of(
            {name: np.asarray(codes)[None] for name, codes in operands.items()}
        )
        codes = None if unknown[0] else {name: int(found[0]) for name, found in results.items()}
        return codes, bool(failed[0])

    def _outcome_of(self, operands: Operands) -> tuple[Operands, Bits, Bits]:
        """Results by name, which fail, and which have X or Z, (n,) each."""
        results, verdict = self.judged(operands)
        wrong, ins = verdict.wrong, self.job.dut.instruction
        if self.place is not None:
            expected = ins.answers(operands)
            wrong = wrong & ~self.job.dut.compare.right(ins.formats["d"], expected, results)
        return results, wrong | verdict.unknown, verdict.unknown

    def unit(self) -> FunctionUnit:
        """The DUT as a unit; asking it raises RtlError where a result is X or Z or never came."""

        def answer(**operands: Bits) -> dict[str, Bits]:
            results, verdict = self.judged(operands)
            self._refuse_unknown(verdict)
            return results

        tile = self.tiles if self.place is not None else None
        return FunctionUnit.like(self.job.dut.instruction, answer, self.job.dut.name, tile)

    def tiles(self, **operands: Bits) -> Bits:
        """D (tiles, m, n) of whole tiles.

        Raises:
            RtlError: a result is X or Z or never came.
        """
        verdict = self._run(operands)
        self._refuse_unknown(verdict)
        return verdict.outcome.results["d"].reshape(verdict.vectors.d.shape)


def open_unit(
    file: str | Path, engine: str = "fast", simulator: str = "verilator", build: Path = Path("build")
) -> FunctionUnit:
    """The DUT that a dut.yaml describes, built, as a unit.

    Raises:
        SpecError: the description is wrong. RtlError and its subclasses: it cannot be built.
    """
    dut = load_dut(file)
    engine, simulator = engines.choice_of(dut, engine, simulator)
    if dut.handshake.measured:
        dut = measure(dut, engine, simulator, build / dut.name)
    nothing = default_set(dut.instruction, 0, 1, dut.level)
    return DutRun(Job(dut, build / dut.name, nothing, simulator), engine).unit()
