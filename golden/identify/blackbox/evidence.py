"""What shows each rule of a candidate: the questions that a unit with another value would have answered
otherwise, and the values that no question ruled out.

A rule is worth what would have refuted it. So every neighbour of the candidate, which differs from it in one
key, is held against all questions that were kept: where it answers one otherwise than the box did, that
question shows the rule; where it answers all as the box did, the rule is not decided.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from golden.identify.blackbox.box import Bank, BudgetEnded
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.moves import Move, settings
from golden.identify.minimising import costs, minimise
from golden.instruction import Instruction
from golden.program.signature import Bits, Operands

_LOOKED_AT = 200
"""Refuting questions among which the simplest is looked for."""
_SHRINK_ROUNDS = 12
_SHOWN = 2
"""Values of a key that are shown as ruled out: those that the fewest questions did."""


@dataclass(frozen=True)
class Witness:
    """A value that a key does not have. `questions`: how many refute it; `operands`: the simplest of them,
    `box` the answer to it, `other` what a unit with this value would have answered."""

    value: str
    questions: int
    operands: Operands
    box: int
    other: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        operands = {name: codes.tolist() for name, codes in self.operands.items()}
        named = {"value": self.value, "questions": self.questions, "operands": operands}
        return {**named, "box": self.box, "other": self.other}


@dataclass(frozen=True)
class Property:
    """One key of the candidate.

    Attributes:
        key: step, registers and key, as the report names it.
        value: what the candidate has; empty of a step that could be put in.
        ruled_out: how many other values were refuted.
        witnesses: of those, the ones that the fewest questions refute.
        undecided: values with which every question kept had the same answer.
        alike: the units that have them, by value; several where one value stands in different places.
        said: of what no key says, how it was asked; `asked`: by how many questions.
    """

    key: str
    value: str
    ruled_out: int
    witnesses: tuple[Witness, ...]
    undecided: tuple[str, ...]
    alike: tuple[tuple[str, Instruction], ...] = ()
    said: str = ""
    asked: int = 0

    @property
    def confidence(self) -> int:
        """Questions that rule out the value that is hardest to tell; 0 where one was not."""
        if self.said:
            return self.asked
        return 0 if self.undecided or not self.witnesses else min(one.questions for one in self.witnesses)

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "key": self.key,
            "value": self.value,
            "ruled_out": self.ruled_out,
            "confidence": self.confidence,
            "witnesses": [one.as_dict() for one in self.witnesses],
            "undecided": list(self.undecided),
            "said": self.said,
        }


@dataclass
class Evidence:
    """The properties of a candidate; `tried` of `neighbours` were held against the questions in the time.

    `asked`: simpler forms of the questions shown, which the box was asked as well, with its answers.
    """

    properties: tuple[Property, ...] = ()
    tried: int = 0
    neighbours: int = 0
    asked: tuple[Operands, Bits] | None = None


@dataclass
class _Weighed:
    witnesses: list[tuple[Witness, Candidate]] = field(default_factory=list)
    undecided: dict[str, None] = field(default_factory=dict)
    alike: list[tuple[str, Instruction]] = field(default_factory=list)


def weigh(
    candidate: Candidate,
    bank: Bank,
    neighbours: Iterable[Move],
    deadline: float,
    ask: Callable[[Operands], tuple[Operands, Bits]] | None = None,
    end: float = 0,
) -> Evidence:
    """Holds the neighbours of a candidate that explains a bank against its questions.

    Args:
        deadline: on time.monotonic; neighbours after it are left.
        ask: the box, which is asked about simpler forms of the questions shown, and tells them as it was
            asked (its c can be another); None: it cannot be.
        end: on time.monotonic; no question is made simpler after it.
    """
    found, tried, of = _weighed(candidate, bank, neighbours, deadline)
    shown = {key: sorted(one.witnesses, key=lambda w: w[0].questions)[:_SHOWN] for key, one in found.items()}
    asked = None if ask is None else _simplified(candidate, bank, shown, end, ask)
    now = settings(candidate.operations)
    properties = tuple(
        Property(
            key,
            now.get(key, ""),
            len(one.witnesses),
            tuple(witness for witness, _ in shown[key]),
            tuple(one.undecided),
            tuple(one.alike),
        )
        for key, one in found.items()
    )
    return Evidence(properties, tried, of, asked)


def _weighed(
    candidate: Candidate, bank: Bank, neighbours: Iterable[Move], deadline: float
) -> tuple[dict[str, _Weighed], int, int]:
    """By key: what is refuted and what is not; how many neighbours were tried, of how many."""
    listed = list(neighbours)
    found: dict[str, _Weighed] = {}
    for tried, move in enumerate(listed):
        if time.monotonic() > deadline:
            return found, tried, len(listed)
        new = move.apply(candidate)
        if new is None or new.key == candidate.key:
            continue
        weighed = found.setdefault(move.key, _Weighed())
        answers = bank.answered(new.program)
        wrong = np.flatnonzero(answers != bank.answers)
        if len(wrong):
            weighed.witnesses.append((_witness(move.value, bank, wrong, answers), new))
        else:
            weighed.undecided[move.value] = None
            weighed.alike.append((move.value, new.instruction))
    return found, len(listed), len(listed)


def _witness(value: str, bank: Bank, wrong: np.ndarray[Any, Any], answers: np.ndarray[Any, Any]) -> Witness:
    """The simplest of the questions that refute a value."""
    some = wrong[:_LOOKED_AT]
    operands = {name: codes[some] for name, codes in bank.operands.items()}
    place = int(np.argmin(costs(bank.takes, operands)))
    least = {name: codes[place] for name, codes in operands.items()}
    return Witness(value, len(wrong), least, int(bank.answers[some[place]]), int(answers[some[place]]))


def _simplified(
    candidate: Candidate,
    bank: Bank,
    shown: dict[str, list[tuple[Witness, Candidate]]],
    deadline: float,
    ask: Callable[[Operands], tuple[Operands, Bits]],
) -> tuple[Operands, Bits] | None:
    """Puts simpler questions in the place of the first ones shown, where the box answers those as the
    candidate does; what was asked, with the answers."""
    least: dict[str, Operands] = {}
    for key, found in shown.items():
        if found and time.monotonic() < deadline:
            other = found[0][1]

            def differ(batch: Operands, other: Candidate = other) -> Any:
                return other.dot(**batch) != candidate.dot(**batch)

            least[key] = minimise(bank.takes, found[0][0].operands, differ, rounds=_SHRINK_ROUNDS)
    if not least:
        return None
    batch = {name: np.stack([one[name] for one in least.values()]) for name in bank.operands}
    try:
        told, answers = ask(batch)
    except BudgetEnded:
        return None
    right = (answers == candidate.dot(**told)) & (told["c"] == batch["c"])
    for place, (key, operands) in enumerate(least.items()):
        witness, other = shown[key][0]
        if right[place]:
            says = int(other.dot(**{name: codes[None] for name, codes in operands.items()})[0])
            simple = replace(witness, operands=operands, box=int(answers[place]), other=says)
            shown[key][0] = simple, other
    return told, answers
