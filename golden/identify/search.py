"""A counterexample-guided search: query, fit, find a counterexample, shrink it, and fit again.

A `Pass` is one way to a candidate that explains more. A `Search` holds passes, the cheapest first. `run`
returns to the first pass after every improvement, as the shrinker of hypothesis does: cheap passes
polish what an expensive pass found. `once`, which a diagnosis uses, runs each pass once. Each pass states the
invariant that holds after it, and is measured: calls, improvements, seconds and queries.

    search = Search(PASSES, questions=lambda: box.queries)
    best = search.run(start, cost=lambda fit: fit.wrong, deadline=deadline, key=lambda fit: fit, spent=set())
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Hashable, Iterator, MutableSet, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

S = TypeVar("S")
"""A candidate with its known properties; a pass returns another one and leaves the given one unchanged."""


@dataclass(frozen=True)
class Pass(Generic[S]):
    """One way to a better candidate.

    Attributes:
        name: its name in statistics.
        run: given a candidate and a deadline (on time.monotonic), a better one, or None if it finds none.
        invariant: what holds for a candidate from which it returned None in time, in one sentence.
    """

    name: str
    run: Callable[[S, float], S | None]
    invariant: str


@dataclass
class Statistics:
    """The value of a pass: calls, and how many of them improved the candidate; wall seconds, as
    time.monotonic counts them; and queries."""

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
        key: Callable[[S], Hashable],
        spent: MutableSet[Hashable],
    ) -> S:
        """The candidate that passes lead to: of no cost, or one that none of them improves.

        Args:
            cost: 0 ends the search; it falls with every step.
            deadline: on time.monotonic.
            key, spent: the keys of candidates that no pass improved; they are not tried again.
        """
        best = start
        while cost(best) and time.monotonic() < deadline and key(best) not in spent:
            tried = (self.apply(one, best, deadline) for one in self.passes)
            better = next((one for one in tried if one is not None or time.monotonic() > deadline), None)
            if better is None:
                if time.monotonic() <= deadline:
                    spent.add(key(best))
                break
            best = better
        return best

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
