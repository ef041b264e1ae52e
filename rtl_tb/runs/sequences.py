"""The smallest sequence that fails, of a unit that keeps its accumulator: it answers by what it holds.

First the failing dot product stands behind one that makes its c, and its operands become simpler. Where that
does not fail, the fault is in the state: the shortest run of vectors up to it that fails becomes simpler.
Of a unit without a reset every sequence begins with `clear`: else it would fail by what the unit happens to
hold at first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count as counted

import numpy as np
import numpy.typing as npt

from golden.budget import Budget
from golden.identify.minimising import minimise, of_one_kind
from golden.model.instruction import Instruction
from golden.program.signature import Operands
from golden.program.state import starts
from golden.stimuli import one
from golden.stimuli.sequences import operands_for_results
from rtl_tb.runs.unit import DutRun

Progress = Callable[[int, int], None]
Flags = npt.NDArray[np.bool_]


def smallest_sequence(
    run: DutRun,
    ins: Instruction,
    operands: Operands,
    resolved: Operands,
    vector: int,
    progress: Progress | None,
    budget: Budget | None = None,
) -> Operands | None:
    """The operands (n, ...), with `clear`, of the simplest sequence found that fails when it is run alone,
    at its last dot product and nowhere else; None where none fails.

    Args:
        operands, resolved: of all vectors, as the unit takes them, and with what it held as c.
        vector: the index of the first that failed.
    """
    failing = {name: codes[vector] for name, codes in resolved.items()}
    found = behind_its_c(
        run, ins, _batch(failing), lambda batch: np.ones(len(batch["a"]), np.bool_), progress, budget
    )
    if found is not None:
        return found
    shortest = _shortest(run, operands, vector)
    return None if shortest is None else _simpler(run, ins, shortest, progress, budget)


def behind_its_c(
    run: DutRun,
    ins: Instruction,
    candidates: Operands,
    counts: Callable[[Operands], Flags],
    progress: Progress | None = None,
    budget: Budget | None = None,
) -> Operands | None:
    """The simplest sequence of a dot product behind one that makes its c, of the dot products that fail and
    count; None where none of the candidates, (n, ...) with c, does."""
    made = _Sequence(run, ins)

    def fails(batch: Operands) -> Flags:
        return np.asarray(made.fails(batch) & counts(batch))

    failing = np.flatnonzero(fails(candidates))
    if not len(failing):
        return None
    first = {name: codes[failing[0]] for name, codes in candidates.items()}
    alike = of_one_kind(ins.stateless, first, fails)
    least = minimise(ins.stateless, first, alike, progress=progress, budget=budget)
    return next((found for found in made.sequences(least) if fails_at_end(run, found)), None)


def fails_at_end(run: DutRun, sequence: Operands) -> bool:
    """Whether the last result of a sequence is wrong, X or Z, and all before it are right."""
    failed = run.judged(sequence)[1].failed
    return bool(failed[-1]) and not failed[:-1].any()


def _batch(operands: Operands) -> Operands:
    return {name: np.asarray(codes)[None] for name, codes in operands.items()}


class _Sequence:
    """Dot products, each behind one that makes its c."""

    def __init__(self, run: DutRun, ins: Instruction) -> None:
        self.run, self.ins = run, ins

    def fails(self, batch: Operands) -> Flags:
        """Which of a batch of dot products with c (n, ...) fail; not the ones whose c cannot be made
        exactly."""
        made, exact = self._with_predecessor(batch)
        failed = self.run.judged(made)[1].failed.reshape(len(exact), -1)
        return np.asarray(exact & failed[:, -1] & ~failed[:, :-1].any(axis=1))

    def sequences(self, operands: Operands) -> Iterator[Operands]:
        """The dot product alone, where its c is zero, and behind one that makes its c."""
        made, _ = self._with_predecessor(_batch(operands))
        if not int(operands["c"]) and "clear" not in self.ins.alone:
            yield {name: codes[-1:] for name, codes in made.items()} | {"clear": np.ones(1, np.uint8)}
        yield made

    def _with_predecessor(self, batch: Operands) -> tuple[Operands, Flags]:
        """Each dot product behind what makes its c, in order, and of which c is made exactly."""
        c, ins = batch["c"], self.ins
        nothing = {name: np.zeros_like(codes) for name, codes in batch.items() if name in "ab"}
        first = operands_for_results(ins, batch, c, np.arange(len(c)), np.random.default_rng(1))
        rest = {name: codes for name, codes in first.items() if name not in nothing}
        last = {name: batch[name] for name in first}
        if ins.load:  # cleared, loaded with c, used
            rows = [nothing | rest, nothing | rest, last]
            exact = ins.stateless.dot(**rows[1], c=c) == c
            clear = np.array([1, 0, 0])
        else:
            exact = ins.stateless.dot(**first, c=np.zeros_like(c)) == c
            rows = [first, last] if not ins.alone else [nothing | rest, first, last]
            clear = np.array([1, 0, 0])[: len(rows)]
        made = {name: np.stack([row[name] for row in rows], axis=1) for name in first}
        marks = np.tile(clear, (len(c), 1))
        if not ins.load and not ins.alone:
            marks[:, 1] = c == 0
        made["clear"] = marks.astype(np.uint8)
        if ins.load:
            zeros = np.zeros_like(c)
            made |= {"c": np.stack([zeros, c, zeros], axis=1), "load": np.tile([0, 1, 0], (len(c), 1))}
            made["load"] = made["load"].astype(np.uint8)
        return {name: codes.reshape(-1, *codes.shape[2:]) for name, codes in made.items()}, np.asarray(exact)


def _shortest(run: DutRun, operands: Operands, vector: int) -> Operands | None:
    """The shortest stretch of the vectors before a failing one, up to it, that fails alone, cut behind its
    first wrong result."""
    # Vectors before the failing one that are tried with it.
    longest = 2048
    for before in (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, longest):
        start = max(vector - before, 0)
        if run.job.dut.reset is None:
            start = int(starts(operands["clear"], np.array([start]))[0])
        part = {name: codes[start : vector + 1] for name, codes in operands.items()}
        failed = run.judged(part)[1].failed
        if failed.any():
            return {name: codes[: int(np.argmax(failed)) + 1] for name, codes in part.items()}
        if not start:
            break
    return None


def _simpler(
    run: DutRun, ins: Instruction, sequence: Operands, progress: Progress | None, budget: Budget | None
) -> Operands:
    """Leaves out dot products and products, and writes ones for numbers, as long as the sequence fails.

    Each try is a run of its own: a unit that forgets to clear, say, would carry one try into the next.
    """
    left = counted(1)
    reset = run.job.dut.reset is not None
    best, untried = sequence, _simplifications(ins, sequence, reset)
    # Runs of the DUT that may be spent on making a sequence simpler.
    runs = 80
    while (tried := next(left)) <= runs:
        candidate = next(untried, None)
        if candidate is None or (budget is not None and budget.over()):
            break
        if fails_at_end(run, candidate):
            best, untried = candidate, _simplifications(ins, candidate, reset)
        if progress is not None:
            progress(tried, runs)
    return best


def _simplifications(ins: Instruction, sequence: Operands, reset: bool) -> Iterator[Operands]:
    """`reset`: whether the unit has one, and holds +0 at first."""
    length = len(sequence["a"])
    for i in range(length - 1):
        shorter = {name: np.delete(codes, i, axis=0) for name, codes in sequence.items()}
        if not reset:
            shorter["clear"][0] = 1
        yield shorter
    for name, simple in (
        ("c", 0),
        ("a", 0),
        ("b", 0),
        ("a", one(ins.formats["a"])),
        ("b", one(ins.formats["b"])),
    ):
        for place in np.argwhere(np.isin(sequence.get(name, 0), (0, simple), invert=True)).tolist():
            changed = sequence[name].copy()
            changed[tuple(place)] = simple
            yield sequence | {name: changed}
