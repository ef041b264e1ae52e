"""The smallest operands that fail: one dot product, with the DUT's bits beside golden's and the steps between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.cli_render import trace_text
from golden.instruction import Instruction
from golden.minimise import minimise
from golden.trace import describe
from golden.vectors.vectorset import VectorSet
from rtl_tb import dots, engines
from rtl_tb.engines.job import Job, Traffic
from rtl_tb.verdict import Verdict, judge

Bits = npt.NDArray[Any]
Operands = dict[str, Bits]


@dataclass(frozen=True)
class Example:
    """One failing dot product: raw codes, the expected and the actual result (None: X or Z), and where it stood.

    `alone`: whether it fails when it is the only vector. If not, the failure needs the vectors before it.
    """

    instruction: Instruction
    operands: Operands
    expected: int
    actual: int | None
    vector: int
    alone: bool

    def as_dict(self) -> dict[str, Any]:
        """Plain values: codes as hex, the trace as text."""
        fmt = self.instruction.formats["d"]
        digits = (fmt.bits + 3) // 4
        return {
            "vector": self.vector,
            "alone": self.alone,
            "operands": {name: [int(code) for code in np.atleast_1d(codes)] for name, codes in self.operands.items()},
            "expected": f"0x{self.expected:0{digits}x}",
            "expected_value": describe(fmt.decode(self.expected)),
            "actual": "0x" + "x" * digits if self.actual is None else f"0x{self.actual:0{digits}x}",
            "actual_value": "X or Z" if self.actual is None else describe(fmt.decode(self.actual)),
            "trace": trace_text(self.instruction.trace(**self.operands)),
        }


class _Probe:
    """Runs operand sets through the built DUT, alone, at full throughput."""

    def __init__(self, verdict: Verdict, engine: str, job: Job, place: tuple[int, int] | None) -> None:
        # The engine that was asked for pays for a simulator start on every run; `fast` does not.
        self.engine = "fast" if job.simulator == "verilator" else "selfcheck" if engine == "fast" else engine
        self.job, self.place, self.vectors = job, place, verdict.vectors

    def __call__(self, operands: Operands) -> tuple[Bits, Bits, Bits]:
        """(results, failed, unknown) of a batch of dot products, (n,) each."""
        ins, count = self.vectors.instruction, len(operands["c"])
        given = operands if self.place is None else dots.place(self.vectors, operands, *self.place)
        d = ins.dot(**given) if self.place is None else ins(**given)
        vectors = VectorSet(ins, self.vectors.level, given, d, np.zeros(count, np.uint8), self.vectors.seed)
        outcome = engines.run(self.engine, replace(self.job, vectors=vectors, traffic=Traffic(), waves=None))
        verdict = judge(vectors, outcome, self.job.dut.compare)
        actual = outcome.actual.reshape(d.shape)
        at = () if self.place is None else (slice(None), *self.place)
        return (actual[at] if at else actual), verdict.wrong | verdict.unknown, verdict.unknown


def smallest(verdict: Verdict, engine: str, job: Job, progress: Callable[[int, int], None] | None = None) -> Example:
    """Minimises a failing vector as long as it still fails when it is run alone."""
    vector, place = _first(verdict)
    vectors = verdict.vectors
    ins = vectors.instruction
    row, column = place or (0, 0)
    operands = (
        {name: codes[vector] for name, codes in vectors.operands.items()}
        if place is None
        else dots.element(vectors.operands, vector, row, column)
    )
    probe = _Probe(verdict, engine, job, place)
    if not probe({name: codes[None] for name, codes in operands.items()})[1][0]:
        index = (vector,) if place is None else (vector, row, column)
        actual = None if verdict.unknown[vector] else int(verdict.outcome.actual.reshape(vectors.d.shape)[index])
        return Example(ins, operands, int(vectors.d[index]), actual, vector, alone=False)
    least = minimise(ins, operands, lambda batch: probe(batch)[1], progress=progress)
    found, _, unknown = probe({name: codes[None] for name, codes in least.items()})
    return Example(ins, least, int(ins.dot(**least)), None if unknown[0] else int(found[0]), vector, alone=True)


def _first(verdict: Verdict) -> tuple[int, tuple[int, int] | None]:
    """The first failing vector, a wrong one rather than one with X, and its first wrong element where it is a tile."""
    failing = verdict.wrong if verdict.wrong.any() else verdict.unknown
    vector = int(np.argmax(failing))
    if verdict.vectors.level == "dot":
        return vector, None
    actual = verdict.outcome.actual.reshape(verdict.vectors.d.shape)[vector]
    rows, columns = np.nonzero(actual != verdict.vectors.d[vector])
    return vector, (int(rows[0]), int(columns[0])) if len(rows) else (0, 0)
