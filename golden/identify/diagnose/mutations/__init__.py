"""Every fault that a unit may have, declared once, by the step in which it is.

A module holds the faults of one kind of step: `program(ins)` the ones that the schema of units can express,
and `signals(ins)` the others, changes of a signal of the data path. `ports` and `accumulator` hold the faults
around the arithmetic. None knows a particular unit; numbers lie in the ranges that the widths of the program
suggest. docs/diagnosis.md lists the names.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import lru_cache
from types import ModuleType

from golden.identify.diagnose import datapath
from golden.identify.diagnose.mutations import alignment, operands, products, rounding, specials, sums, wiring
from golden.identify.diagnose.mutations.accumulator import controls, kept
from golden.identify.diagnose.mutations.modes import mode_ports, mode_skews
from golden.identify.diagnose.mutations.mutation import CONTEXT, Mutation, run
from golden.identify.diagnose.mutations.ports import ports, skews
from golden.identify.diagnose.mutations.words import in_words_of
from golden.model.instruction import Instruction

__all__ = ["CONTEXT", "Mutation", "changed", "names", "of_ports", "of_program", "of_signals", "run"]

_STEPS = (alignment, sums, rounding, products, specials, operands)
_STEPS_WITH_SIGNALS = (operands, wiring, products, specials, alignment, sums, rounding)


def of_program(ins: Instruction, nan: int | None = None) -> Iterator[Mutation]:
    """Every change of the program that the schema of units can express.

    Args:
        nan: the NaN word that the unit answers, if it is not the expected one.
    """
    for step in _STEPS:
        yield from (in_words_of(ins, one) for one in step.program(ins))
    if nan is not None:
        yield rounding.nan_word(nan)


def changed(ins: Instruction, seed: int) -> Iterator[tuple[str, Instruction]]:
    """The instruction with one change of its program, as often as there are changes, in an order that a seed
    draws: what is changed, in words, and the instruction. Of a unit with modes one mode is changed.

    An instruction may be equal to the one that it is made of.
    """
    rng = random.Random(f"{ins.name} {seed}")
    units: list[tuple[int | None, Instruction]] = [*ins.mode_units.items()] or [(None, ins)]
    found = [(code, unit, one) for code, unit in units for one in of_program(unit) if one.program is not None]
    for code, unit, one in rng.sample(found, len(found)):
        assert one.program is not None
        new = one.program(unit)
        if new is None or new.own_formats != unit.own_formats or new.k != unit.k:
            continue
        if code is None:
            yield one.text, new
        else:
            yield f"mode {code}: {one.text}", replace(ins, mode_units={**ins.mode_units, code: new})


def of_ports(ins: Instruction, there: Collection[str] = CONTEXT, ordered: bool = True) -> Iterator[Mutation]:
    """Every fault around the arithmetic.

    Args:
        there: names of the available context of the operands (`CONTEXT`).
        ordered: whether operands and results of the vector before or after are among them.
    """
    found = [*ports(ins), *controls(ins, there), *([*skews(ins), *kept(ins, there)] if ordered else [])]
    yield from (in_words_of(ins, one) for one in found)


def of_signals(ins: Instruction) -> Iterator[Mutation]:
    """Every changed signal of the data path; none if the data path cannot run the steps."""
    if datapath.runs(ins):
        for step in _STEPS_WITH_SIGNALS:
            yield from (in_words_of(ins, one) for one in step.signals(ins))


def has_signal(ins: Instruction, slug: str) -> bool:
    """Whether an instruction can have a changed signal."""
    # A search asks this of hundreds of programs. A signal is one of the same step in all of them, so the step
    # that had it last is asked first; the others have to be listed only if it has it no more.
    steps = sorted(_STEPS_WITH_SIGNALS, key=lambda step: step is not _STEP_OF_SIGNAL.get(slug))
    for step in steps:
        if slug in _signal_slugs(ins, step):
            _STEP_OF_SIGNAL[slug] = step
            return True
    return False


_STEP_OF_SIGNAL: dict[str, ModuleType] = {}
"""The module in which each changed signal was found last."""


@lru_cache(maxsize=2048)
def _signal_slugs(ins: Instruction, step: ModuleType) -> frozenset[str]:
    return frozenset(one.slug for one in step.signals(ins)) if datapath.runs(ins) else frozenset()


def names(ins: Instruction) -> set[str]:
    """The slugs of all single faults of an instruction, except the ones that its results suggest (`nan-word`,
    `result-constant`, `known-...`)."""
    if ins.modes is not None:
        units = (unit.stateless for unit in ins.mode_units.values())
        return {one.slug for one in (*mode_ports(ins), *mode_skews(ins))}.union(*map(names, units))
    return {one.slug for one in (*of_program(ins), *of_ports(ins), *of_signals(ins))}
