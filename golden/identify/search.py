"""A counterexample-guided search: ask, fit, find a counterexample, shrink it, and fit again.

A `Pass` is one way to a candidate that explains more. A `Search` holds passes in the order of their effort.
`run` goes back to the cheapest one after every improvement, as the shrinker of hypothesis does: what an
expensive pass found is polished by cheap ones. `once`, which a diagnosis uses, takes each pass once. Each
pass states the invariant that holds after it, and is counted: calls, improvements, seconds and questions
say what it buys.

    search = Search(PASSES, questions=lambda: box.asked)
    best = search.run(start, cost=lambda fit: fit.wrong, deadline=deadline)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

S = TypeVar("S")
"""A candidate with what is known of it; a pass returns another one and leaves the given one as it is."""
_EVERY_EFFORT = 1 << 30


@dataclass(frozen=True)
class Pass(Generic[S]):
    """One way to a better candidate.

    Attributes:
        name: as statistics have it.
        run: given a candidate and a deadline (on time.monotonic), a better one, or None where it finds none.
        invariant: what holds of a candidate for which it returned None in time, in one sentence.
        effort: a pass of more effort is tried where none of less helps.
    """

    name: str
    run: Callable[[S, float], S | None]
    invariant: str
    effort: int = 0


@dataclass
class Statistics:
    """What a pass was worth: calls, and how many of them improved the candidate; CPU or wall seconds, as
    time.monotonic counts; questions that it asked."""

    calls: int = 0
    improved: int = 0
    seconds: float = 0.0
    questions: int = 0


class Search(Generic[S]):
    """Passes, tried the cheapest first until none helps.

    Args:
        passes: in the order in which they are tried.
        questions: how many questions were asked so far; for the statistics.
    """

    def __init__(self, passes: Sequence[Pass[S]], questions: Callable[[], int] = lambda: 0) -> None:
        self.passes, self.questions = passes, questions
        self.statistics: dict[str, Statistics] = {one.name: Statistics() for one in passes}

    def run(
        self,
        start: S,
        cost: Callable[[S], float],
        deadline: float,
        *,
        effort: int = _EVERY_EFFORT,
        key: Callable[[S], Hashable] | None = None,
        spent: MutableMapping[Hashable, int] | None = None,
    ) -> S:
        """The candidate that passes up to an effort lead to: of no cost, or one that none of them improves.

        Args:
            cost: 0 ends the search; it falls with every step.
            deadline: on time.monotonic.
            key, spent: what was tried from a candidate in vain, by its key: that is not tried again.
        """
        best = start
        while cost(best) and time.monotonic() < deadline:
            better = self._improved(best, deadline, effort, key and key(best), spent)
            if better is None:
                break
            best = better
        return best

    def _improved(
        self,
        best: S,
        deadline: float,
        effort: int,
        key: Hashable,
        spent: MutableMapping[Hashable, int] | None,
    ) -> S | None:
        """What the first pass that helps makes of a candidate."""
        tried = -1 if spent is None else spent.get(key, -1)
        for level in sorted({one.effort for one in self.passes if tried < one.effort <= effort}):
            for one in self.passes:
                better = self.apply(one, best, deadline) if one.effort == level else None
                if better is not None or time.monotonic() > deadline:
                    return better
            if spent is not None:  # all passes of this effort were in vain
                spent[key] = level
        return None

    def once(self, start: S, cost: Callable[[S], float], deadline: float) -> S:
        """Every pass in turn, each from the best candidate so far, until one of no cost is found."""
        best = start
        for one in self.passes:
            if not cost(best) or time.monotonic() > deadline:
                break
            best = self.apply(one, best, deadline) or best
        return best

    def apply(self, one: Pass[S], start: S, deadline: float) -> S | None:
        """What one pass makes of a candidate, counted."""
        counted = self.statistics.setdefault(one.name, Statistics())
        begun, asked = time.monotonic(), self.questions()
        better: S | None = None
        try:
            better = one.run(start, deadline)
        finally:  # also of a pass that ended with the budget
            counted.calls += 1
            counted.improved += better is not None
            counted.seconds += time.monotonic() - begun
            counted.questions += self.questions() - asked
        return better
