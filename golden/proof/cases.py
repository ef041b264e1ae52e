"""Equality by cases: how far each shifter moves what it moves.

Two windows in which a term is aligned, and two ways to normalise a sum, are one long question to a solver,
and a short one for each distance of the exponents. The cases are intervals of the amounts by which the
specification's side shifts; one that has no answer is halved, and one of a single amount is split by the next
shifter. Each case is a lemma, `not case or left == right`; that left == right follows from these alone, and
is the last one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from golden.circuit.words import Word, order
from golden.proof.prover import CODES, Fact, Prover
from golden.proof.solver import NEVER, UNKNOWN, Answer

_WHOLE = 5.0
"""Seconds of computing for the question as it is."""
_LAST = 40.0
"""For a case that cannot be split."""
SHIFTS = frozenset({"shl", "lshr", "ashr"})


@dataclass(frozen=True)
class Interval:
    """The values of a word with some upper bits: the bits from `low` on are `prefix` or, without a prefix,
    not all 0."""

    low: int
    prefix: int | None

    def halves(self) -> list[Interval]:
        """Intervals that are all of it; none: it is one value, or has no prefix."""
        if self.prefix is None or self.low == 0:
            return []
        return [Interval(self.low - 1, 2 * self.prefix + bit) for bit in (0, 1)]


def by_cases(
    prover: Prover, left: Word, right: Word, seconds: float, way: str = CODES
) -> tuple[int | None, Answer]:
    """The place of the lemma that two words are equal; or None, and the answer of a case that is not decided.

    Args:
        right: made of the specification's words, of which the shifters are taken.
        seconds: at most, of all cases.
        way: what is free, see Prover.
    """
    return _Cases(prover, left, right, time.process_time() + seconds, way).decide()


class _Cases:
    """The cases of one equality. A case is a path: an interval of the first amount, where that is one value
    perhaps one of the next, and so on.

    Invariant: the cases of `found`, which are lemmas, and those that are still open do not overlap,
    and together they are every case.
    """

    def __init__(self, prover: Prover, left: Word, right: Word, end: float, way: str) -> None:
        self.prover, self.left, self.right, self.end = prover, left, right, end
        free = prover.freed(way, left, right, [])
        assert free is not None, "freed gives a set for CODES and DEEPER"
        self.free, self.facts = free, prover.facts_of(way, free)
        self.same = prover.words.equal(left, right)
        self.shifters = list(_shifters(right, free))
        self.found: list[Fact] = []

    def decide(self) -> tuple[int | None, Answer]:
        """As by_cases."""
        place, answer = self.prover.question(self.left, self.right, self.free, self.facts, _WHOLE, "")
        if place is not None or answer.result != UNKNOWN:
            return place, answer
        open_ = self._next(())
        if not open_:
            return None, answer
        while open_:
            batch = [open_.pop() for _ in range(min(self.prover.jobs, len(open_)))]
            for case, answer in zip(batch, self._asked(batch), strict=True):
                if answer.result == UNKNOWN and (parts := self._next(case)):
                    open_ += parts
                elif answer.result != NEVER:
                    return None, answer
        free = {self.left, self.right, *(amount for amount, _ in self.shifters)}
        return self.prover.question(self.left, self.right, frozenset(free), self.found, _LAST, "cases")

    def _next(self, case: tuple[Interval, ...]) -> list[tuple[Interval, ...]]:
        """The cases that are all of a case, the next one last; none: it cannot be split."""
        if case and (halves := case[-1].halves()):
            return [(*case[:-1], half) for half in halves]
        if len(case) == len(self.shifters):
            return []
        amount, widest = self.shifters[len(case)]
        bits = min(widest.bit_length(), amount.width)  # amounts that have more shift everything out
        parts = [Interval(low, 1) for low in reversed(range(bits))]
        parts += [Interval(bits, None)] if bits < amount.width else []
        return [(*case, one) for one in (*parts, Interval(0, 0))]

    def _seconds(self, case: tuple[Interval, ...]) -> float:
        # For a case of several amounts: it can be halved.
        interval = 6.0
        if case[-1].halves():
            return interval
        # For a case of one amount: it can be split by the next shifter.
        one = 8.0
        return one if len(case) < len(self.shifters) else _LAST

    def _asked(self, cases: list[tuple[Interval, ...]]) -> list[Answer]:
        """Asks whether the words differ in some cases, and keeps of which they do not."""
        words, left = self.prover.words, self.end - time.process_time()
        if left <= 0:
            return [Answer(UNKNOWN)] * len(cases)
        one = words.constant(1, 1)
        bits = [words.either(words.invert(self._condition(case)), self.same) for case in cases]
        questions = [
            (bit, one, self.free, self.facts, min(self._seconds(case), left), "case")
            for bit, case in zip(bits, cases, strict=True)
        ]
        self.prover.ahead(questions)
        answers = []
        for bit, question in zip(bits, questions, strict=True):
            place, answer = self.prover.question(*question)
            if place is not None:
                self.found.append(Fact(place, bit, frozenset()))
            answers.append(answer)
        return answers

    def _condition(self, case: tuple[Interval, ...]) -> Word:
        words, found = self.prover.words, []
        for (amount, _), one in zip(self.shifters, case, strict=False):
            upper = words.extract(amount, one.low)
            if one.prefix is None:
                found.append(words.nonzero(upper))
            else:
                found.append(words.equal(upper, words.constant(one.prefix, upper.width)))
        return words.all_of(found)


def _shifters(word: Word, free: frozenset[Word]) -> Iterator[tuple[Word, int]]:
    """The amounts by which something is shifted in a word, the nearest to the operands first, each with the
    bits of the widest word that it shifts."""
    found: dict[Word, int] = {}
    for each in order([word], free):
        if each.op in SHIFTS and each not in free:
            amount = _bare(each.args[1])
            if amount.constant is None and amount not in free:
                found[amount] = max(found.get(amount, 0), each.args[0].width)
    yield from found.items()


def _bare(word: Word) -> Word:
    """A word without the zeros above it."""
    while word.op == "concat" and word.args[0].constant == 0:
        word = word.args[1]
    return word
