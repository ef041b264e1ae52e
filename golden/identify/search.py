"""A counterexample-guided search: query, fit, find a counterexample, shrink it, and fit again.

A `Pass` is one way to a candidate that explains more. A `Search` holds passes in the order of their effort.
`run` returns to the cheapest pass after every improvement, as the shrinker of hypothesis does: cheap passes
polish what an expensive pass found. `once`, which a diagnosis uses, runs each pass once. Each pass states the
invariant that holds after it, and is measured: calls, improvements, seconds and queries.

    search = Search(PASSES, questions=lambda: box.queries)
    best = search.run(start, cost=lambda fit: fit.wrong, deadline=deadline)
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Hashable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

S = TypeVar("S")
"""A candidate with its known properties; a pass returns another one and leaves the given one unchanged."""
_EVERY_EFFORT = 1 << 30
"""Above the effort of every pass."""


@dataclass(frozen=True)
class Pass(Generic[S]):
    """One way to a better candidate.

    Attributes:
        name: its name in statistics.
        run: given a candidate and a deadline (on time.monotonic), a better one, or None if it finds none.
        invariant: what holds for a candidate from which it returned None in time, in one sentence.
        effort: passes of more effort run if none of less helps.
    """

    name: str
    run: Callable[[S, float], S | None]
    invariant: str
    effort: int = 0


@dataclass
class Statistics:
    """The value of a pass: calls, and how many of them improved the candidate; CPU or wall seconds, as
    time.monotonic counts; and queries."""

    calls: int = 0
    improved: int = 0
    seconds: float = 0.0
    questions: int = 0


class Search(Generic[S]):
    """Passes, run the cheapest first until none helps.

    Args:
        passes: in the order in which they are tried.
        questions: the number of queries so far; for the statistics.
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
            key, spent: by the key of a candidate, the effort that was spent on it in vain; it is not spent
                again.
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
            if spent is not None:  # no pass of this effort helps this candidate on this bank
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
        begun, queried = time.monotonic(), self.questions()
        better: S | None = None
        try:
            better = one.run(start, deadline)
        finally:  # also if the budget ended the pass
            counted.calls += 1
            counted.improved += better is not None
            counted.seconds += time.monotonic() - begun
            counted.questions += self.questions() - queried
        return better


_LOCK = threading.Lock()
_running: list[tuple[int, int, int]] = []
"""The thresholds at the beginning of each search that is still running."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Looks for cycles seldom inside the block. A search makes and drops hundreds of thousands of candidates
    without circular references, and keeps many objects that each collection would traverse. The thresholds
    belong to the process: they are restored when the last of several searches ends."""
    with _LOCK:
        before = _running[0] if _running else gc.get_threshold()
        _running.append(before)
        if before[0]:  # 0: collection is switched off
            # New objects after which cycles are looked for.
            objects = 100_000
            gc.set_threshold(max(before[0], objects), *before[1:])
    try:
        yield
    finally:
        with _LOCK:
            _running.pop()
            if not _running:
                gc.set_threshold(*before)
