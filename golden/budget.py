"""The time that a search may take: one object for all of its parts, and looked at in every loop that may be
long.

budget = Budget(30)
diagnosis = diagnose(ins, operands, actual, budget=budget.rest(0.5))  # ends when half of it is over
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

ALL = 1.0
"""The part of a budget that is all of it."""


class Budget:
    """Seconds of the clock on the wall, from now on.

    Args:
        seconds: infinity: it never ends by itself.
        within: the budget of which it is a part: that one's end is the end of this one, too.
        clock: the source of its seconds; time.thread_time counts those of this thread's processor alone.
    """

    def __init__(
        self, seconds: float, within: Budget | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.start, self.seconds, self.within, self.clock = clock(), seconds, within, clock
        self.ended = False

    def begin(self) -> None:
        """Called before what it bounds begins; a budget that has to wait for something waits here."""

    def end(self) -> None:
        """Its time is over now."""
        self.ended = True

    @property
    def spent(self) -> float:
        """Seconds since its start."""
        return self.clock() - self.start

    def left(self, part: float = ALL) -> float:
        """Seconds until this part of the time is over, 0 or more."""
        above = float("inf") if self.within is None else self.within.left()
        own = 0.0 if self.ended else max(self.start + part * self.seconds - self.clock(), 0.0)
        return min(own, above)

    def over(self, part: float = ALL) -> bool:
        """Whether this part of the time is over."""
        return not self.left(part)

    def rest(self, part: float = ALL) -> Self:
        """What is left until this part of the time is over, as a budget of its own."""
        return type(self)(self.left(part), self)
