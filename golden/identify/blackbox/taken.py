"""The changes that made a candidate, each with the counterexample that forced it: a question that the
candidate before answered otherwise than the box, and the one behind the change as the box did."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from golden.identify.blackbox.box import Bank, BudgetEnded
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.moves import settings
from golden.identify.minimising import costs, minimise
from golden.program.signature import Bits, Operands

_SHRINK_ROUNDS, _LOOKED_AT = 8, 200
Ask = Callable[[Operands], tuple[Operands, Bits]]


class Taken(str):
    """A change in words, "key = value", with the candidates before and after it; None of a dissection that
    was continued from a file, which keeps the words alone."""

    before: Candidate | None
    after: Candidate | None

    def __new__(cls, text: str, before: Candidate | None = None, after: Candidate | None = None) -> Taken:
        """The words are the string itself: they are compared and kept as such."""
        found = super().__new__(cls, text)
        found.before, found.after = before, after
        return found


@dataclass(frozen=True)
class Forced:
    """What forced one change.

    Attributes:
        rule: the change, as `Found.rules` has it; `place`: which of the changes it is.
        old: the value that was wrong; empty of a step that was not there.
        questions: of those kept, how many the candidate before has wrong and the one behind right.
        operands: the simplest of them, `box` the answer to it, `before` that of the candidate before.
    """

    rule: str
    place: int
    old: str
    questions: int
    operands: Operands
    box: int
    before: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        operands = {name: codes.tolist() for name, codes in self.operands.items()}
        named = {"rule": self.rule, "instead_of": self.old, "questions": self.questions}
        return {**named, "operands": operands, "box": self.box, "before": self.before}


def forced(told: Sequence[str], bank: Bank) -> list[Forced]:
    """The counterexamples of those changes that have any among the questions kept, in their order."""
    found = []
    for place, one in enumerate(told):
        if isinstance(one, Taken) and one.before is not None and one.after is not None:
            before = bank.answered(one.before.program).copy()
            hits = np.flatnonzero((before != bank.answers) & ~bank.wrong(one.after.program))
            if len(hits):
                some = hits[:_LOOKED_AT]
                least = some[int(np.argmin(costs(bank.takes, bank.part(some).operands)))]
                old = settings(one.before.operations).get(one.partition(" = ")[0], "")
                operands = {name: codes[least] for name, codes in bank.operands.items()}
                answers = int(bank.answers[least]), int(before[least])
                found.append(Forced(str(one), place, old, len(hits), operands, *answers))
    return found


def shrunk(
    found: Sequence[Forced], told: Sequence[str], bank: Bank, deadline: float, ask: Ask
) -> tuple[list[Forced], tuple[Operands, Bits] | None]:
    """The same with simpler questions, where the box answers those as the candidate behind the change does;
    and what was asked for that, with the answers.

    Args:
        deadline: on time.monotonic; no question is made simpler after it.
    """
    taken = [one for one in (told[each.place] for each in found) if isinstance(one, Taken)]
    pairs = [(one.before, one.after) for one in taken]
    least: list[Operands] = []
    for one, (before, after) in zip(found, pairs, strict=True):
        if before is None or after is None or time.monotonic() > deadline:
            break

        def differ(batch: Operands, before: Candidate = before, after: Candidate = after) -> Any:
            return before.dot(**batch) != after.dot(**batch)

        least.append(minimise(bank.takes, one.operands, differ, rounds=_SHRINK_ROUNDS))
    if not least:
        return list(found), None
    batch = {name: np.stack([one[name] for one in least]) for name in bank.operands}
    try:
        asked, answers = ask(batch)
    except BudgetEnded:
        return list(found), None
    simple = list(found)
    for place, ((before, after), operands) in enumerate(zip(pairs, least, strict=False)):
        assert before is not None and after is not None
        says = {name: codes[place] for name, codes in asked.items()}
        if int(after.dot(**says)) == answers[place] and np.array_equal(says["c"], operands["c"]):
            now = int(answers[place]), int(before.dot(**says))
            simple[place] = replace(found[place], operands=operands, box=now[0], before=now[1])
    return simple, (asked, answers)
