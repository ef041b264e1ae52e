"""What a found unit is beside one that is known: the keys in which its steps differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from golden.catalog.relatives import relatives
from golden.identify.blackbox.candidates import with_word
from golden.identify.blackbox.moves import settings
from golden.instruction import Instruction
from golden.program.program import Operation
from golden.program.words import is_integer, step_text

MOST = 6
"""Differences with which a unit is still near another one."""
Alternatives = Mapping[str, Sequence[str]]


def differences(found: Instruction, known: Instruction, alternatives: Alternatives) -> list[str] | None:
    """The keys in which a found unit differs from a known one, a sentence each; None where the two do not add
    in the same operations.

    Args:
        alternatives: values of keys that no question told from those of the found unit: those are no
            differences.
    """
    changes = _changes(found, known, alternatives)
    return None if changes is None else _in_words(changes, found)


@dataclass(frozen=True)
class _Changes:
    """Keys that have other values, steps that were put in, and steps that were left out, a sentence each."""

    keys: list[str]
    new: list[str]
    gone: list[str]

    def __len__(self) -> int:
        return len(self.keys) + len(self.new) + len(self.gone)


def _changes(found: Instruction, known: Instruction, alternatives: Alternatives) -> _Changes | None:
    one, other = found.program.operations, known.program.operations
    if [_frame(o) for o in one] != [_frame(o) for o in other]:
        return None
    now, before = settings(worded(one)), settings(worded(other))
    said = [
        f"{key}: {now[key]} instead of {before[key]}"
        for key in now
        if key in before and now[key] != before[key] and before[key] not in alternatives.get(key, ())
    ]
    steps, old = _steps(now), _steps(before)
    new = [f"{step}: put in" for step in steps if step not in old and not alternatives.get(step)]
    gone = [f"{step}: left out" for step in old if step not in steps and not alternatives.get(step)]
    return _Changes(said, new, gone)


def _in_words(changes: _Changes, found: Instruction) -> list[str]:
    """A sentence for each change; where steps are put in and others left out, which is mostly one change that
    reads as two, the steps of the unit in order instead."""
    if changes.new and changes.gone and len({operation.steps for operation in found.program.operations}) == 1:
        return [*changes.keys, f"its steps, in order: {_in_order(found)}"]
    return [*changes.keys, *changes.new, *changes.gone]


def _in_order(found: Instruction) -> str:
    """The steps of a unit of one kind of operation, in words."""
    integer = is_integer(found.program, found.own_formats)
    words = (step_text(step, integer).rstrip(".") for step in found.program.operations[0].steps)
    return "; ".join(f"({index}) {word}" for index, word in enumerate(words, 1))


def nearest(found: Instruction, alternatives: Alternatives) -> tuple[str, tuple[str, ...]] | None:
    """The instruction of the catalog with the same operands that differs least, and in what; None where none
    is near."""
    best: tuple[str, _Changes] | None = None
    for one in relatives(found):
        changes = _changes(found, one.stretched, alternatives) if one.links == 1 else None
        if changes is not None and len(changes) <= MOST and (best is None or len(changes) < len(best[1])):
            best = f"{one.instruction.architecture}:{one.instruction.name}", changes
    return None if best is None else (best[0], tuple(_in_words(best[1], found)))


def worded(operations: Sequence[Operation]) -> list[Operation]:
    """Operations with the word of every NaN that they do not name: saying it is no difference."""
    return [o.with_steps([with_word(step, o.out_format) for step in o.steps]) for o in operations]


def _frame(one: Operation) -> tuple[object, ...]:
    return one.k_index, one.seed, one.addends, one.out_format


def _steps(named: Mapping[str, str]) -> list[str]:
    return list(dict.fromkeys(key.rpartition(": ")[0] for key in named))
