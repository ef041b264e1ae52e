"""Two instructions or units against each other, for all operands: equal, or operands that distinguish them.

    found = prove(x, y, seconds=60)
    found.outcome.verdict, found.operands
    counterexample(x, y, seconds=5)

Both become circuits of the same operand words; the second is held against the registers of the first as the
netlist of a designer's unit is. What refutes is computed by the four models, two a unit, before it is shown.
"""

from __future__ import annotations

import contextlib
import importlib.util
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from golden.circuit.specification import circuit_of, input_widths
from golden.circuit.words import CircuitError, Values, Word, Words
from golden.errors import MmagoldError, OperandError
from golden.model.instruction import Instruction
from golden.program.signature import Operands
from golden.proof.problem import (
    VECTORS,
    Problem,
    allowed,
    batch_of,
    columns,
    operands_of,
    result_of,
    without_shown,
)
from golden.proof.sweep import OnStage, Sweep
from golden.proof.verdict import Fault, Outcome, Simulation, decide, verdict_of
from golden.unit import answers_of, check_comparable, name_of, pad


@dataclass(frozen=True)
class Equality:
    """What came of a proof that two units are equal.

    Attributes:
        outcome: the verdict, and what it rests on or what is left.
        claim: what it is a verdict on, with all that is assumed.
        operands: where they are not equal, one dot product (k, ...) of the unit of the smaller K for which
            their results differ.
    """

    x: Instruction
    y: Instruction
    outcome: Outcome
    claim: tuple[str, ...]
    operands: Operands | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for machines."""
        operands = self.operands or {}
        return {
            "claim": list(self.claim),
            **self.outcome.as_dict(),
            "operands": {name: np.atleast_1d(codes).tolist() for name, codes in operands.items()},
        }


def provable() -> bool:
    """Whether the solvers are installed: the one that proves, and the one that checks it."""
    return all(importlib.util.find_spec(name) is not None for name in ("bitwuzla", "z3"))


def check_provable(x: Instruction, y: Instruction) -> None:
    """Two units can be proved equal: they take the same operands, but for K, and give results of one format.

    Raises:
        OperandError: they do not.
    """
    if (x.state, x.load, x.alone) != (y.state, y.load, y.alone):
        raise OperandError(
            f"cannot prove: {x.name} and {y.name} have different rules for an accumulator, expected one rule"
        )
    x, y = x.stateless, y.stateless
    check_comparable(x, y)
    if x.formats["d"] != y.formats["d"]:
        names = [one.formats["d"].name for one in (x, y)]
        raise OperandError(
            f"cannot prove: d is {names[0]} in {x.name} but {names[1]} in {y.name}, expected one format"
        )


def prove(
    x: Instruction,
    y: Instruction,
    seconds: float = 120.0,
    on_stage: OnStage = lambda _text: None,
    jobs: int = 1,
    changed: Iterable[tuple[str, Instruction]] | None = None,
) -> Equality:
    """Proves that two units are equal, bit for bit, or finds operands on which they are not.

    Of units that keep their accumulators the arithmetic is meant, with c as an operand. Of two that differ in
    K the longer one gets zeros (scales of one, legal metadata), as in a comparison.

    Args:
        seconds: for the search; a proof has as long again to be checked.
        jobs: processes that ask of cases, and check lemmas, at a time.
        changed: x with changes, and what they are: y must not be proved equal to a change that it differs
        from.

    Raises:
        OperandError: as check_provable does. CircuitError: one has no circuit; names the step and the key.
        ToolMissing: bitwuzla is not installed. MmagoldError: circuit and models of a unit differ.
    """
    check_provable(x, y)
    kept = bool(x.state)
    x, y = x.stateless, y.stateless
    problem = problem_of(x, y)
    faults = None if changed is None else _faults(y, changed)
    simulation = Simulation("the core, both units", partial(_wrong, x, y))
    outcome = decide(problem, seconds, simulation, on_stage, jobs, faults)
    claim = claim_of(x, y, [name for name, _ in problem.assumed])
    if kept:
        claim = (*claim, "of the arithmetic: c stands for the accumulator, which both keep by the same rules")
    if outcome.values is None:
        return Equality(x, y, outcome, claim)
    operands = _replayed(x, y, problem, outcome.values)
    return Equality(x, y, outcome, claim, operands)


def _faults(y: Instruction, changed: Iterable[tuple[str, Instruction]]) -> Iterator[Fault]:
    """y against changed specifications, as far as these have a circuit and vectors show a difference."""
    for what, x in changed:
        with contextlib.suppress(CircuitError):
            if (found := without_shown(problem_of(x, y))) is not None:
                yield Fault(what, *found, partial(_replayed, x, y, found[0]))


def _wrong(x: Instruction, y: Instruction, columns: Mapping[str, Values]) -> int:
    """How many results of the core differ for numbers (count,) of each operand of the unit of smaller K."""
    batch = batch_of(_short(x, y), columns)
    one, other = (answers_of(unit, pad(batch, unit)) for unit in (x, y))
    apart = one["d"] != other["d"]
    for name in _flags(x, y):
        bits = (each["flags"] >> of.status.index(name) & 1 for each, of in ((one, x), (other, y)))
        apart = apart | np.not_equal(*bits)
    return int(np.count_nonzero(apart))


def counterexample(x: Instruction, y: Instruction, seconds: float = 5.0) -> Operands | None:
    """Operands (k, ...) on which two units differ; None where none were found in time, where the two are
    equal, or where the solver is not installed or one of the units has no circuit: it is nothing to rely on.

    Raises:
        OperandError: as check_provable does.
    """
    check_provable(x, y)
    x, y = x.stateless, y.stateless
    if not provable():
        return None
    try:
        problem = problem_of(x, y)
    except CircuitError:
        return None
    _, values = verdict_of(Sweep(problem, time.monotonic() + seconds))
    return None if values is None else _replayed(x, y, problem, values)


def problem_of(x: Instruction, y: Instruction) -> Problem:
    """The circuit of x as the specification, the circuit of y as the unit, on operands of the smaller K.

    Raises:
        CircuitError: one has no circuit; names the step and the key.
    """
    words, short = Words(), _short(x, y)
    operands = {name: words.variable(name, width) for name, width in input_widths(short).items()}
    spec, unit = (circuit_of(one, words, _padded(one, words, operands)) for one in (x, y))
    assumed = list(dict.fromkeys((*spec.assumed, *unit.assumed)))
    pairs = [(spec.outputs["d"], unit.outputs["d"])]
    for name in _flags(x, y):
        sides = ((spec, x), (unit, y))
        one, other = (words.bit(side.outputs["flags"], of.status.index(name)) for side, of in sides)
        pairs.append((one, other))
    return Problem(
        words,
        spec.points,
        spec.facts,
        words.concat(*(one for one, _ in pairs)),
        words.concat(*(other for _, other in pairs)),
        assumed,
        allowed(words, assumed, columns(short, VECTORS)),
        {name: short.code_format(name).bits for name in operands},
        spec.codes,
    )


def _short(x: Instruction, y: Instruction) -> Instruction:
    return min((x, y), key=lambda one: one.k)


def _flags(x: Instruction, y: Instruction) -> list[str]:
    """The status flags that both have."""
    return [name for name in x.status if name in y.status]


def _padded(unit: Instruction, words: Words, operands: Mapping[str, Word]) -> dict[str, Word]:
    """The operand words of a unit: above the elements that there are, what does nothing."""
    made = {}
    for name, width in input_widths(unit).items():
        given, bits = operands[name], unit.code_format(name).bits
        rest = [words.constant(unit.at_rest(name), bits)] * ((width - given.width) // bits)
        made[name] = words.concat(*rest, given)
    return made


def claim_of(x: Instruction, y: Instruction, assumed: Sequence[str] = ()) -> tuple[str, ...]:
    """What is said, and what is assumed."""
    said = [f"{name_of(y)} gives the bits of {name_of(x)}, NaN words included, for all operands"]
    if x.k != y.k:
        short, long = sorted((x, y), key=lambda one: one.k)
        said.append(f"K = {short.k}: {name_of(long)} (K = {long.k}) has zeros in the other products")
    if assumed:
        said.append("assumed: " + "; ".join(assumed))
    missing = [name for name in dict.fromkeys((*x.status, *y.status)) if name not in _flags(x, y)]
    if missing:
        said.append(f"left out, as one of them lacks it: flags {', '.join(missing)}")
    return tuple(said)


def _replayed(x: Instruction, y: Instruction, problem: Problem, values: Mapping[str, int]) -> Operands:
    """Operands on which the circuits differ, computed by both models of both units.

    Raises:
        MmagoldError: a model and its circuit give different results.
    """
    batch = operands_of(_short(x, y), {name: values.get(name, 0) for name in problem.vectors})
    flags = _flags(x, y)
    for unit, word in ((x, problem.spec), (y, problem.unit)):
        given = pad(batch, unit)
        core = {name: int(codes[0]) for name, codes in answers_of(unit, given).items()}
        trace = unit.trace(**{name: codes[0] for name, codes in given.items()})
        said = result_of(word, values)
        for model, d, raised in (
            ("core", core["d"], core.get("flags", 0)),
            ("reference", trace.code, trace.flags or 0),
        ):
            came = d
            for name in flags:
                came = came << 1 | raised >> unit.status.index(name) & 1
            if came != said:
                raise MmagoldError(
                    f"the circuit of {name_of(unit)} gives 0x{said:x}, its {model} 0x{came:x}: a fault of "
                    f"mmagold; operands {dict(values)}"
                )
    return {name: codes[0] for name, codes in batch.items()}
