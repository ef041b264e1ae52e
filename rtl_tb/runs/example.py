"""The smallest operands that fail: one dot product,
with the DUT's bits next to golden's and the steps between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from rich.console import Console

from golden.budget import Budget
from golden.explain.terminal import print_trace, trace_text
from golden.explain.trace import describe_code, describe_flags
from golden.identify.minimising import costs, minimise, of_one_kind
from golden.identify.sample import picked
from golden.model.instruction import Instruction
from golden.number.classes import is_nan, is_zero
from golden.program.signature import Operands
from golden.vectors.tiles import element
from rtl_tb.dut.policy import ComparePolicy
from rtl_tb.engines.job import Job
from rtl_tb.runs.sequences import smallest_sequence
from rtl_tb.runs.unit import DutRun
from rtl_tb.runs.verdict import Verdict


@dataclass(frozen=True)
class Example:
    """One failing dot product: raw codes, the expected and the actual results by name, d and status flags
    (None: X or Z), and where it stood.

    `alone`: whether it fails when it is the only vector. If not, the failure needs other vectors around it.
    Of a unit that keeps its accumulator, `operands` hold what it held as c, and `sequence` all that it is
    given, as it takes it, (n, ...); `alone` then says that this sequence fails alone.
    """

    instruction: Instruction
    operands: Operands
    results: dict[str, int]
    came: dict[str, int] | None
    vector: int
    alone: bool
    sequence: Operands | None = None
    reset: bool = True
    """Whether the sequence is given after a reset; where there is none, its first dot product clears."""
    place: tuple[int, int] | None = None
    """Row and column of the dot product, where the DUT takes tiles."""

    def is_of(self, run: DutRun) -> bool:
        """Whether a DUT gives the same results for it."""
        if not self.alone:
            return True
        given = self.sequence or {name: np.asarray(codes)[None] for name, codes in self.operands.items()}
        results, verdict = run.judged(given)
        came = None if verdict.unknown[-1] else {name: int(codes[-1]) for name, codes in results.items()}
        return came == self.came

    @property
    def expected(self) -> int:
        """The expected code of d."""
        return self.results["d"]

    @property
    def actual(self) -> int | None:
        """The code of d that came; None: X or Z."""
        return None if self.came is None else self.came["d"]

    def as_dict(self) -> dict[str, Any]:
        """Plain values: codes as hex, the trace as text."""
        fmt = self.instruction.formats["d"]
        digits = (fmt.bits + 3) // 4
        return {
            "vector": self.vector,
            "place": self.place,
            "alone": self.alone,
            "operands": _plain(self.operands),
            "sequence": None
            if self.sequence is None
            else [
                _plain({name: codes[i] for name, codes in self.sequence.items()})
                for i in range(len(self.sequence["a"]))
            ],
            "expected": f"0x{self.expected:0{digits}x}",
            "expected_value": describe_code(fmt, self.expected) + self._flags_text(self.results),
            "actual": "0x" + "x" * digits if self.actual is None else f"0x{self.actual:0{digits}x}",
            "actual_value": "X or Z"
            if self.came is None or self.actual is None
            else describe_code(fmt, self.actual) + self._flags_text(self.came),
            "trace": self._given() + trace_text(self.instruction.trace(**self.operands)),
        }

    def show(self, console: Console) -> None:
        """Prints the steps, as wide as the console."""
        console.print(self._given(), end="", highlight=False, markup=False, soft_wrap=True)
        print_trace(self.instruction.trace(**self.operands), console)

    def _flags_text(self, results: dict[str, int]) -> str:
        if "flags" not in results:
            return ""
        return f", flags {describe_flags(self.instruction.status, results['flags'])}"

    def _given(self) -> str:
        """The dot products that the unit is given, one a line, where there are several, or where products are
        given that do not count."""
        if self.sequence is None or (len(self.sequence["a"]) < 2 and self._same_as_given()):
            return ""
        rows = []
        for i in range(len(self.sequence["a"])):
            words = [f"{i + 1:>3}"]
            for name, codes in self.sequence.items():
                digits = (self.instruction.code_format(name).bits + 3) // 4
                words.append(
                    f"{name} {' '.join(f'{int(code):0{digits}x}' for code in np.atleast_1d(codes[i]))}"
                )
            rows.append("  ".join(words))
        return "\n".join(
            [
                f"given in order{', after a reset' * self.reset}:",
                *rows,
                "",
                "what counts of the last, with what the unit holds as c:",
                "",
            ]
        )

    def _same_as_given(self) -> bool:
        given = self.sequence or {}
        return all(np.array_equal(given[name][-1], self.operands[name]) for name in "ab" if name in given)


def _plain(operands: Operands) -> dict[str, list[int]]:
    return {name: [int(code) for code in np.atleast_1d(codes)] for name, codes in operands.items()}


def run_of(engine: str, job: Job, place: tuple[int, int] | None) -> DutRun:
    """The DUT, for many calls: the chosen engine pays for a simulator start on every
    run; `fast` does not."""
    chosen = "fast" if job.simulator == "verilator" else "selfcheck" if engine == "fast" else engine
    return DutRun(replace(job, program=job.program if chosen == engine else None), chosen, place)


def smallest(
    verdict: Verdict,
    engine: str,
    job: Job,
    progress: Callable[[int, int], None] | None = None,
    budget: Budget | None = None,
) -> Example:
    """Minimises a failing vector as long as it still fails when it is run alone, and the budget is not over;
    one that does not fail alone stays as it is."""
    vectors, policy = verdict.vectors, job.dut.compare
    if vectors.instruction.state:
        return _smallest_sequence(verdict, run_of(engine, job, None), policy, progress, budget)
    # 1. The vector to begin with, and the dot product in it if it is a tile, as the check saw them.
    vector, place = first_failing(verdict, policy)
    if place is None:
        vector = _simplest(verdict, vector)
    ins, index = vectors.instruction, (vector,) if place is None else (vector, *place)
    operands = (
        {name: codes[vector] for name, codes in vectors.operands.items()}
        if place is None
        else element(vectors.operands, vector, *place)
    )
    run = run_of(engine, job, place)
    came = {
        name: int(codes.reshape(vectors.d.shape)[index]) for name, codes in verdict.outcome.results.items()
    }
    expected = {name: int(codes[index]) for name, codes in vectors.results.items()}
    as_it_came = Example(
        ins,
        operands,
        _accepted(ins, policy, expected),
        None if verdict.unknown[vector] else came,
        vector,
        alone=False,
        place=place,
    )
    # 2. Only what fails alone is made smaller: else the unit remembers something of the vectors before.
    if not run.alone(operands)[1]:
        return as_it_came
    alike = of_one_kind(ins, operands, run.failed)
    least = minimise(ins, operands, alike, progress=progress, budget=budget)
    if not run.alone(least)[1]:  # the batches of candidates failed because of each other: the unit remembers
        return as_it_came
    return example_of(run, least, vector, policy)


def _simplest(verdict: Verdict, first: int) -> int:
    """Of the first failing vectors the one with the least to read: what is made smaller from there seldom
    ends far from the smallest. It fails as the first one does: with X or not, and `of_one_kind`."""
    ins, operands = verdict.vectors.instruction, verdict.vectors.operands
    # Failing vectors of which the simplest is made smaller: a fault that one in ten of them shows most
    # simply is nearly surely among these.
    starts = 256
    rows = np.union1d(np.flatnonzero(verdict.failed)[:starts], [first])
    same = verdict.unknown[rows] == verdict.unknown[first]
    tried = picked(operands, rows)
    alike = of_one_kind(ins, picked(operands, first), lambda _: same)(tried)
    return int(rows[alike][costs(ins, picked(tried, alike)).argmin()])


def example_of(run: DutRun, operands: Operands, vector: int, policy: ComparePolicy) -> Example:
    """One dot product that fails alone, with what the DUT answers."""
    ins = run.job.vectors.instruction
    wanted = {name: int(code) for name, code in ins.answers(ins.check_named(operands)).items()}
    results, came = _accepted(ins, policy, wanted), run.alone(operands)[0]
    return Example(ins, operands, results, came, vector, alone=True, place=run.place)


def _smallest_sequence(
    verdict: Verdict,
    run: DutRun,
    policy: ComparePolicy,
    progress: Callable[[int, int], None] | None,
    budget: Budget | None,
) -> Example:
    """As `smallest`, of a unit that keeps its accumulator. Before the first vector that fails all are
    right, so it held what it should."""
    ins, at = verdict.vectors.instruction, int(np.argmax(verdict.wrong | verdict.unknown))
    found = smallest_sequence(
        run, ins, verdict.vectors.operands, verdict.vectors.resolved(), at, progress, budget
    )
    return example_of_sequence(run, verdict, found, at, policy)


def example_of_sequence(
    run: DutRun, verdict: Verdict, found: Operands | None, at: int, policy: ComparePolicy
) -> Example:
    """A sequence that fails at its end when it is run alone, or, where none was found, vector `at` of a
    verdict as it came."""
    ins = verdict.vectors.instruction
    if found is not None:
        verdict = run.judged(found)[1]
    last = at if found is None else -1
    vectors = verdict.vectors
    operands, wanted, came = (
        {name: codes[last] for name, codes in of.items()}
        for of in (vectors.resolved(), vectors.results, verdict.outcome.results)
    )
    results = _accepted(ins, policy, {name: int(code) for name, code in wanted.items()})
    reset = run.job.dut.reset is not None
    actual = None if verdict.unknown[last] else {name: int(code) for name, code in came.items()}
    return Example(ins.stateless, operands, results, actual, at, found is not None, found, reset)


def _accepted(ins: Instruction, policy: ComparePolicy, results: dict[str, int]) -> dict[str, int]:
    """The results that the policy asks for: d is the canonical NaN in place of the instruction's own."""
    fmt, expected = ins.formats["d"], results["d"]
    canonical = (
        policy.nan == "canonical"
        and fmt.nan is not None
        and bool(is_nan(fmt, np.array([expected], fmt.dtype))[0])
    )
    return results | {"d": fmt.nan if canonical and fmt.nan is not None else expected}


def first_failing(verdict: Verdict, policy: ComparePolicy) -> tuple[int, tuple[int, int] | None]:
    """The first failing vector, a wrong one rather than one with X, and its first wrong element where it
    is a tile. Where most that fail have a right result that is no zero it is one of these."""
    failing = verdict.wrong if verdict.wrong.any() else verdict.unknown
    zero = is_zero(verdict.vectors.instruction.formats["d"], verdict.vectors.d)
    others = failing & ~zero.reshape(len(failing), -1).all(axis=1)
    vector = int(np.argmax(others if 2 * others.sum() > failing.sum() else failing))
    if verdict.vectors.level == "dot":
        return vector, None
    return vector, divmod(verdict.wrong_element(vector, policy), verdict.vectors.d.shape[2])
