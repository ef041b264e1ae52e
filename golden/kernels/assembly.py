"""How the sums of chains become the sum over K: promotion, then slices, then parts, each in the plan's order.

The rule alone, for any kind of arrays: NumPy's (golden.kernels.block), PyTorch's on a GPU (golden.tensors).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, TypeVar

from golden.kernels.options import Nested, leaves
from golden.kernels.order import Runs, before_the_last_product, intervals
from golden.kernels.plan import Plan

T = TypeVar("T")

Numbers = Any
"""An array of sums."""
Codes = Any
"""The same as codes of the instruction's d."""


class Assembly(ABC):
    """The sums of one plan; what computes them says the methods below."""

    plan: Plan

    @abstractmethod
    def chained(self, runs: Runs, seed: Codes | None) -> Codes:
        """The codes of d after these steps, from a seed or from zero."""

    @abstractmethod
    def numbers(self, codes: Codes) -> Numbers:
        """The numbers of codes of d."""

    @abstractmethod
    def without_nans(self, codes: Codes) -> Codes:
        """Codes of d, zero for each NaN."""

    @abstractmethod
    def rounded(self, values: Numbers, fmt: str) -> Numbers:
        """Numbers rounded to the nearest of a format."""

    @abstractmethod
    def promoted(self, total: Numbers | None, part: Numbers, step: int) -> Numbers:
        """The accumulator (None: zero) after one more sum, whose first step is `step`."""

    def chain_sum(self, runs: Runs) -> Numbers:
        """The numbers of d after these steps, from zero."""
        before, last = before_the_last_product(self.plan, runs)
        return self.numbers(
            self.chained(last, self.without_nans(self.chained(before, None)) if before else None)
        )

    def part_sum(self, slices: list[Runs]) -> Numbers:
        """The sum of one part of K: that of its slices."""
        each = map(self._slice, in_order(self._order(slices), slices))
        return self._reduced(each, self._order(slices), self.plan.accumulates.name)

    def total(self, parts: list[list[Runs]]) -> Numbers:
        """The sum of all parts, which come in the order of K."""
        return self.reduced(map(self.part_sum, in_order(self._order(parts), parts)), len(parts))

    def of_one_chain(self, codes: Codes) -> Numbers:
        """The sum over K that one chain made: that of the only part, rounded as the sums of many are."""
        return self.reduced([self.numbers(codes)], 1)

    def reduced(self, each: Iterable[Numbers], count: int) -> Numbers:
        """The sum of the sums of this many parts, which come in the order of their addition."""
        order = self._order(range(count))
        return self._reduced(each, order, self.plan.options.reduce_format or self.plan.accumulates.name)

    def _order(self, sums: Sized) -> str | Nested:
        """The order of the sums of parts, or of slices; numbers are those of whichever there are many of."""
        order = self.plan.options.reduce
        return order if isinstance(order, str) or len(sums) > 1 else "ascending"

    def _reduced(self, each: Iterable[Numbers], order: str | Nested, fmt: str) -> Numbers:
        def rounded(values: Numbers) -> Numbers:
            return self.rounded(values, fmt)

        if isinstance(order, tuple):
            return _as_it_stands(iter(each), order, rounded)
        return _in_pairs(each, rounded) if order == "tree" else _in_turn(each, rounded)

    def _slice(self, runs: Runs) -> Numbers:
        if not self.plan.promoted_steps:
            return self.chain_sum(runs)
        total = None
        for group in intervals(runs, self.plan.promoted_steps):
            total = self.promoted(total, self.chain_sum(group), group[0].start)
        return total


def in_order(order: str | Nested, sums: list[T]) -> list[T]:
    """What is added, in the order in which it is."""
    if isinstance(order, tuple):
        return [sums[which] for which in leaves(order)]
    return sums[::-1] if order == "descending" else sums


def _as_it_stands(each: Iterator[Numbers], order: Nested, rounded: Callable[[Numbers], Numbers]) -> Numbers:
    """As an order of numbers says; `each` comes in the order of its leaves."""
    return _in_turn(
        (_as_it_stands(each, one, rounded) if isinstance(one, tuple) else next(each) for one in order),
        rounded,
    )


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
