"""Sums of many terms in the order of a kernel: in turn, and in halves.

Threads of a GPU add what they hold one after the other; then the threads add among themselves, each of the
first half and its like of the second, again and again. These two steps, along axes of an array that says who
holds what, are the order of Triton's sums, of PyTorch's, and of the products that use no matrix unit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]
State = tuple[Numbers, ...]
"""Arrays of one shape; each place has a running result of several numbers, such as a mean and a count."""
Combine = Callable[[State, State], State]


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
