"""In which order Triton's `tl.sum` adds a block whose elements lie in a blocked layout.

A layout says how many neighbours a thread holds along each axis, how many threads of a warp and how many
warps lie along it; if the block is larger, the pattern begins again, and if it is smaller, threads hold
copies. A thread adds its own elements of a sum in ascending order, then the threads of a warp in halves, then
the warps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.kernels.reductions import in_halves, in_turn

Numbers = npt.NDArray[Any]
_WORDS = re.compile(r"(sizePerThread|threadsPerWarp|warpsPerCTA) = \[([\d, ]+)\]")


@dataclass(frozen=True)
class Blocked:
    """A blocked layout; each tuple has a number for each axis."""

    size: tuple[int, ...]
    threads: tuple[int, ...]
    warps: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> Blocked:
        """From the compiler's `#ttg.blocked<{sizePerThread = [1, 4], ...}>`."""
        found = {name: tuple(map(int, words.split(","))) for name, words in _WORDS.findall(text)}
        return cls(found["sizePerThread"], found["threadsPerWarp"], found["warpsPerCTA"])

    def without(self, axis: int) -> Blocked:
        """Along the other axes."""
        return Blocked(*(one[:axis] + one[axis + 1 :] for one in (self.size, self.threads, self.warps)))


def sums(values: Numbers, axis: int, layout: Blocked) -> Numbers:
    """Sums along an axis of 2^n elements; the axis is gone."""
    length = values.shape[axis]
    size = min(layout.size[axis], length)
    threads = min(layout.threads[axis], length // size)
    warps = min(layout.warps[axis], length // (size * threads))
    # What a thread holds, in its order, by warp and lane along the axis.
    held = np.moveaxis(values, axis, -1).reshape(*values.shape[:axis], *values.shape[axis + 1 :], -1)
    held = held.reshape(*held.shape[:-1], -1, warps, threads, size)
    own = np.moveaxis(held, -4, -2)
    own = in_turn(own.reshape(*own.shape[:-2], -1), -1)
    return in_halves(in_halves(own, -1), -1)
