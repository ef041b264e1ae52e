"""Why a box answers the same question in two ways: by chance, by what it was asked before, by the place in
the batch, by the batch.

Each cause is told from the others by an experiment of its own on one question: asked alone in a row, after
others, in a batch of itself, in its first batch once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from golden.explain.numbers import hex_text
from golden.identify.blackbox.box import Box, BudgetEnded
from golden.identify.blackbox.report import operands_text
from golden.identify.sample import evenly
from golden.number.formats import Format
from golden.program.signature import Bits, Operands

_IN_A_ROW, _LONGEST_PERIOD = 64, 32
"""Times that a question is asked alone; the longest period that repeats often enough in those to be one."""
_BEFORE, _TURNS = 8, 2
"""Questions that it is asked after, and how often each."""
_COPIES = 512
"""Places of a batch of nothing else, at most."""
_SHARE_OF_DRIFT = 20
"""Where one in so many early questions has another answer or more, it is no accident."""
CHANCE = "the box is not deterministic"
STATE = "what the box answers depends on what it was asked before"
COUNT = "what the box answers depends on how many questions it answered before"
DRIFT = "the box answers otherwise than in the beginning"
PLACE = "what the box answers depends on the place in the batch"
SIZE = "what the box answers depends on how many are asked at once"
BESIDE = "what the box answers depends on what else is in the batch"
TILE = "what the box answers depends on the place in the tile"
RECORDED = "the same operands were recorded with two results"


@dataclass(frozen=True)
class Asked:
    """A question with two answers: `operands` of one dot product. `batch`, `place`: where it was asked when
    it was answered first."""

    operands: Operands
    first: int
    again: int
    batch: Operands | None = None
    place: int = 0


@dataclass(frozen=True)
class Changed:
    """The same question, another answer. `cause` is one of the above, `said` what showed it, in words."""

    cause: str
    said: str
    operands: Operands
    first: int
    again: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        operands = {name: codes.tolist() for name, codes in self.operands.items()}
        answers = {"first": self.first, "again": self.again}
        return {"cause": self.cause, "said": self.said, "operands": operands, **answers}

    def text(self, formats: Mapping[str, Format]) -> str:
        """In a sentence, with the question and both answers."""
        first, again = (hex_text(formats["d"], code) for code in (self.first, self.again))
        question = operands_text(self.operands, formats)
        return f"{self.cause}: {self.said}; {question}: once {first}, once {again}"


def cause_of(box: Box, found: Sequence[Asked], early: tuple[Operands, Bits] | None = None) -> Changed:
    """Why some questions had another answer.

    Args:
        found: those questions; the first is asked more.
        early: questions (n, ...) from the beginning with the answers of then.
    """
    one = found[0]
    try:
        cause, said, answers = _Experiments(box, one, early).run()
    except BudgetEnded:
        cause, answers = CHANCE, (one.first, one.again)
        said = "the limits ended before it could be asked why"
    return Changed(cause, said, one.operands, *answers)


Cause = tuple[str, str, tuple[int, int]]


class _Experiments:
    """What is asked about one question, each experiment where those before found no cause."""

    def __init__(self, box: Box, one: Asked, early: tuple[Operands, Bits] | None) -> None:
        self.box, self.one, self.early = box, one, early
        self.told = one.first, one.again

    def run(self) -> Cause:
        alone = self._in_a_row()
        if len(set(alone)) > 1:
            return self._periodic(alone) or self._after_others() or self._at_random(alone)
        found = self._after_others() or self._in_copies(alone[0]) or self._in_its_batch(alone[0])
        return found or self._drifted(alone[0])

    def _ask(self, operands: Operands) -> list[int]:
        answers: list[int] = self.box.ask(operands)[1].tolist()
        return answers

    def _alone(self) -> int:
        return self._ask(_copies(self.one.operands, 1))[0]

    def _in_a_row(self) -> list[int]:
        return [self._alone() for _ in range(_IN_A_ROW)]

    def _periodic(self, alone: list[int]) -> Cause | None:
        """Answers that come again after a few questions, whatever those are."""
        for period in range(2, _LONGEST_PERIOD + 1):
            if alone[period:] == alone[:-period]:
                other = next(code for code in alone if code != alone[0])
                said = f"asked {_IN_A_ROW} times alone, its answers repeat after {period}"
                return COUNT, said, (alone[0], other)
        return None

    def _after_others(self) -> Cause | None:
        """Asked after each of some other questions, twice: the same answer after the same one."""
        if self.one.batch is None:
            return None
        count = len(self.one.batch["a"])
        others = evenly(np.arange(count), _BEFORE).tolist()
        told: dict[int, set[int]] = {}
        for _ in range(_TURNS):
            self._alone()  # the second turn stands at another place of whatever counts answers
            for other in others:
                self._ask({name: codes[[other]] for name, codes in self.one.batch.items()})
                told.setdefault(other, set()).add(self._alone())
        answers = list(dict.fromkeys(min(codes) for codes in told.values()))
        if any(len(codes) > 1 for codes in told.values()) or len(answers) < 2:
            return None
        said = f"asked alone after {len(others)} others, twice after each, its answer is that one's"
        return STATE, said, (answers[0], answers[1])

    def _at_random(self, alone: list[int]) -> Cause:
        often = Counter(alone).most_common()
        counts = " and ".join(f"{count} times" for _, count in often[:2])
        said = f"asked {_IN_A_ROW} times alone, it had {len(often)} answers, the first two {counts}"
        return CHANCE, said, (often[0][0], often[1][0])

    def _in_copies(self, alone: int) -> Cause | None:
        """A batch of nothing else, twice, with another number of questions before it."""
        size = len(self.one.batch["a"]) if self.one.batch is not None else _COPIES
        size = max(1, min(_COPIES, size, self.box.can_answer() // 2 - 1))
        first = self._ask(_copies(self.one.operands, size))
        self._alone()
        if first != self._ask(_copies(self.one.operands, size)):
            return None
        others = [place for place, code in enumerate(first) if code != alone]
        if not others:
            return None
        other = first[others[0]]
        if len(others) == size:
            return SIZE, f"in a batch of {size} of itself it has another answer than alone", (alone, other)
        places = ", ".join(map(str, others[:4])) + (", ..." if len(others) > 4 else "")
        said = f"in a batch of {size} of itself it has another answer than alone at {len(others)} ({places})"
        return PLACE, said, (alone, other)

    def _in_its_batch(self, alone: int) -> Cause | None:
        """The batch in which it was answered first, twice more."""
        if self.one.batch is None:
            return None
        told = {self._ask(self.one.batch)[self.one.place] for _ in range(_TURNS)}
        if told != {alone} and len(told) == 1:
            size = len(self.one.batch["a"])
            said = f"in a batch of {size} it has the same other answer each time"
            return BESIDE, said, (alone, next(iter(told)))
        return None

    def _drifted(self, alone: int) -> Cause:
        """Early questions again: where more of them than this one have other answers, for good, the box is
        another one than in the beginning."""
        if self.early is not None:
            operands, answers = self.early
            told, now = self.box.ask(operands)
            other = int(((now != answers) & (told["c"] == operands["c"])).sum())
            if other * _SHARE_OF_DRIFT > len(answers):
                said = f"of {len(answers)} questions of then {other} have another answer now"
                return DRIFT, said, (self.told[0], alone)
        said = f"asked {_IN_A_ROW} times alone, it always had the same answer"
        return CHANCE, f"another answer is rare: {said}", self.told


def _copies(operands: Operands, count: int) -> Operands:
    return {name: np.repeat(codes[None], count, axis=0) for name, codes in operands.items()}
