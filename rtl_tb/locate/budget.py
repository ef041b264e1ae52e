"""The time of a search, shared out to its parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import golden.budget
from golden.budget import ALL
from rtl_tb.errors import RtlError
from rtl_tb.simulators import simulators

MEMORY = 3 << 30
"""Bytes for each program: a changed number may ask for a design of any size."""


class Budget(golden.budget.Budget):
    """Seconds from now on; when they end, programs that run for the search end as well."""

    def aside(self) -> Budget:
        """The same time for work in another thread, which only `end` ends."""
        other = Budget(self.seconds, self)
        other.start = self.start
        return other

    @contextmanager
    def builds(self, part: float = ALL, most: float = float("inf")) -> Iterator[None]:
        """Ends every compilation of this thread in the block when the part is over, or after `most` seconds.

        Raises:
            RtlError: it is over already.
        """
        self.look(part)
        with simulators.longest_build(min(self.left(part), most), MEMORY, lambda: self.look(part)):
            yield

    def look(self, part: float = ALL) -> None:
        """Raises RtlError if the part is over."""
        if self.over(part):
            raise RtlError(f"its time, {self.seconds:.3g} seconds, was up (--repair gives more)")
