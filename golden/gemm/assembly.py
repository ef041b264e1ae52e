"""How the sums of chains become the sum over K: promotion, then slices, then parts, each in the plan's order.

The rule alone, for any kind of arrays: NumPy's (golden.gemm.block), PyTorch's on a GPU (golden.tensors).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from golden.gemm.order import Runs, intervals
from golden.gemm.plan import Plan

Numbers = Any
"""An array of sums."""


class Assembly(ABC):
    """The sums of one plan; what computes them says the three methods below."""

    plan: Plan

    @abstractmethod
    def chain_sum(self, runs: Runs) -> Numbers:
        """The numbers of d after these steps, from zero."""

    @abstractmethod
    def rounded(self, values: Numbers, fmt: str) -> Numbers:
        """Numbers rounded to the nearest of a format."""

    @abstractmethod
    def promoted(self, total: Numbers | None, part: Numbers, step: int) -> Numbers:
        """The accumulator (None: zero) after one more sum, whose first step is `step`."""

    def part_sum(self, slices: list[Runs]) -> Numbers:
        """The sum of one part of K: that of its slices."""
        order = self.plan.options.reduce
        each = (self._slice(runs) for runs in (slices[::-1] if order == "descending" else slices))
        return self._reduced(each, self.plan.accumulates.name)

    def total(self, parts: list[list[Runs]]) -> Numbers:
        """The sum of all parts, which come in the order of K."""
        each = parts[::-1] if self.plan.options.reduce == "descending" else parts
        return self.reduced(map(self.part_sum, each))

    def reduced(self, each: Iterable[Numbers]) -> Numbers:
        """The sum of the sums of parts, which come in the order in which they are added."""
        return self._reduced(each, self.plan.options.reduce_format or self.plan.accumulates.name)

    def _reduced(self, each: Iterable[Numbers], fmt: str) -> Numbers:
        if self.plan.options.reduce == "tree":
            return _in_pairs(each, lambda values: self.rounded(values, fmt))
        return _in_turn(each, lambda values: self.rounded(values, fmt))

    def _slice(self, runs: Runs) -> Numbers:
        options = self.plan.options
        if options.promote is None:
            return self.chain_sum(runs)
        total = None
        for group in intervals(runs, options.promote // self.plan.instruction.k):
            total = self.promoted(total, self.chain_sum(group), group[0].start)
        return total


def _in_turn(each: Iterable[Numbers], rounded: Callable[[Numbers], Numbers]) -> Numbers:
    """One after the other, each addend and each sum rounded."""
    total = None
    for one in each:
        addend = rounded(one)
        total = addend if total is None else rounded(total + addend)
    return total


def _in_pairs(each: Iterable[Numbers], rounded: Callable[[Numbers], Numbers]) -> Numbers:
    """Neighbours, then neighbours of these; an odd one out waits. Keeps no more sums than the tree has
    levels."""
    waiting: list[tuple[int, Numbers]] = []
    for one in each:
        level, total = 0, rounded(one)
        while waiting and waiting[-1][0] == level:
            total = rounded(waiting.pop()[1] + total)
            level += 1
        waiting.append((level, total))
    total = waiting.pop()[1]
    while waiting:
        total = rounded(waiting.pop()[1] + total)
    return total
