"""Sums of many terms in the order of a kernel: in turn, and in halves; of a block that lies in a layout of
Triton's, too (`Blocked`).

Threads of a GPU add what they hold one after the other; then the threads add among themselves, each of the
first half and its like of the second, again and again. These two steps, along axes of an array that says who
holds what, are the order of Triton's sums, of PyTorch's, and of the products that use no matrix unit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]
State = tuple[Numbers, ...]
"""Arrays of one shape; each place has a running result of several numbers, such as a mean and a count."""
Combine = Callable[[State, State], State]
WARP = 32
"""Threads of a warp."""
VECTOR_BYTES = 16
"""Bytes that a thread loads at once where its elements are neighbours in memory."""


def in_turn(terms: Numbers, axis: int) -> Numbers:
    """Sums along an axis: the first, then each of the others, in their order. The axis is gone."""
    total: Numbers = terms.take(0, axis)
    for place in range(1, terms.shape[axis]):
        total = total + terms.take(place, axis)
    return total


def in_halves(terms: Numbers, axis: int, left: int = 1) -> Numbers:
    """Sums along an axis of 2^n places, as `combined_in_halves`."""
    return combined_in_halves((terms,), axis, lambda one, other: (one[0] + other[0],), left)[0]


def combined_in_halves(terms: State, axis: int, combine: Combine, left: int = 1) -> State:
    """Along an axis of 2^n places: each of the first half and its like of the second, then these, down to
    `left` places; the axis is gone if that is one. A shuffle that exchanges (xor) gives the same bits, since
    an addition may be turned around."""
    while (half := terms[0].shape[axis] // 2) >= left:
        parts = [np.split(one, [half], axis) for one in terms]
        terms = combine(tuple(first for first, _ in parts), tuple(second for _, second in parts))
        if half == 1:
            break
    return tuple(one.take(0, axis) for one in terms) if left == 1 else terms


def padded(terms: Numbers, size: int, fill: float = 0.0) -> Numbers:
    """Along the last axis: more places, which change no sum (zeros) and no maximum (-infinity)."""
    more = [*[(0, 0)] * (terms.ndim - 1), (0, size - terms.shape[-1])]
    return np.pad(terms, more, constant_values=fill)


_WORDS = re.compile(r"(sizePerThread|threadsPerWarp|warpsPerCTA) = \[([\d, ]+)\]")


@dataclass(frozen=True)
class Blocked:
    """A blocked layout of Triton's, in which `tl.sum` adds; each tuple has a number for each axis.

    A layout says how many neighbours a thread holds along each axis, how many threads of a warp and how many
    warps lie along it; if the block is larger, the pattern begins again, and if it is smaller, threads hold
    copies. A thread adds its own elements of a sum in ascending order, then the threads of a warp in halves,
    then the warps.
    """

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
