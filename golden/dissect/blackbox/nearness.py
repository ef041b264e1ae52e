"""What a found unit is beside one that is known: the keys in which its steps differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from golden.catalog.relatives import relatives
from golden.dissect.blackbox.candidates import with_word
from golden.dissect.blackbox.moves import settings
from golden.instruction import Instruction
from golden.program.program import Operation

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
    said += [f"{step}: put in" for step in steps if step not in old and not alternatives.get(step)]
    return said + [f"{step}: left out" for step in old if step not in steps and not alternatives.get(step)]


def nearest(found: Instruction, alternatives: Alternatives) -> tuple[str, tuple[str, ...]] | None:
    """The instruction of the catalog with the same operands that differs least, and in what; None where none
    is near."""
    best: tuple[str, tuple[str, ...]] | None = None
    for one in relatives(found):
        said = differences(found, one.stretched, alternatives) if one.links == 1 else None
        if said is not None and len(said) <= MOST and (best is None or len(said) < len(best[1])):
            best = f"{one.instruction.architecture}:{one.instruction.name}", tuple(said)
    return best


def worded(operations: Sequence[Operation]) -> list[Operation]:
    """Operations with the word of every NaN that they do not name: saying it is no difference."""
    return [o.with_steps([with_word(step, o.out_format) for step in o.steps]) for o in operations]


def _frame(one: Operation) -> tuple[object, ...]:
    return one.k_index, one.seed, one.addends, one.out_format


def _steps(named: Mapping[str, str]) -> list[str]:
    return list(dict.fromkeys(key.rpartition(": ")[0] for key in named))
