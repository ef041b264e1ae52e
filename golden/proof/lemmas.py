"""What a proof is made of: lemmas, each an equality of two words for all operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from golden.circuit.words import Word, Words

SOLVER, LINEAR = "solver", "linear"


@dataclass(frozen=True)
class Lemma:
    """`left` and `right` are equal for all operands.

    Attributes:
        method: SOLVER: no values of the words in `free` make them differ where the facts hold. LINEAR: they
            are the same sum, whatever the words in `free` hold.
        facts: places of earlier lemmas that are assumed.
        seconds: that it took.
        name: what it says, where it has a name.
    """

    left: Word
    right: Word
    method: str
    free: tuple[Word, ...] = ()
    facts: tuple[int, ...] = ()
    seconds: float = 0.0
    name: str = ""


class OutOfTime(Exception):
    """The seconds that were given are over."""


@dataclass(frozen=True)
class Certificate:
    """A proof, as it can be checked: the unit's result is the specification's.

    Every word of the unit is made again of what its arguments became; where `steps` has it, the lemma at that
    place says what it becomes then. What the result becomes is `spec`, or `last` is the lemma of both.

    Attributes:
        assumed: bits that are taken to be 1, on the operands alone.
    """

    words: Words
    unit: Word
    spec: Word
    assumed: tuple[Word, ...]
    lemmas: tuple[Lemma, ...]
    steps: Mapping[Word, int]
    last: int | None
