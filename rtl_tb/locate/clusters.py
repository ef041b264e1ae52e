"""Vectors that fail for one reason are alike: some of every sort, so that a fault that shows seldom is among
those that changes are tried on.

The sorts are the class of the right result (NaN, infinity, zero, subnormal, normal) and the kind of stimulus.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from golden.number.formats import to_float
from golden.program import state
from golden.vectors.vectorset import VectorSet

Places = npt.NDArray[np.int64]


def spread(vectors: VectorSet, places: Places, most: int, rng: np.random.Generator) -> Places:
    """At most so many of some vectors: one of each class of results in turn, of each class one of each kind
    of stimulus in turn."""
    order = rng.permutation(places)
    for labels in (vectors.kinds, result_classes(vectors)):
        order = order[np.argsort(_turns(labels[order]), kind="stable")]
    return order[:most]


def sequences(
    vectors: VectorSet, places: Places, failing: int, most: int, rng: np.random.Generator
) -> Places:
    """Of a unit that keeps its accumulator some vectors of every sort, `failing` at most, each with the
    sequence that leads to it and the vector behind it; `most` vectors altogether, more only where a single
    one needs them.

    A sort is also how far a vector is from the start of its sequence, in powers of two: an accumulator that
    is too narrow shows late in long ones alone.
    """
    clear = vectors.operands["clear"]
    depths = state.places(clear)
    order = spread(vectors, places, len(places), rng)
    order = order[np.argsort(_turns(np.frexp(depths[order] + 1)[1]), kind="stable")][:failing]
    found, left = np.zeros(len(vectors), np.bool_), most
    for place in order.tolist():
        behind = place + 1 < len(vectors) and not clear[place + 1]
        those = slice(place - int(depths[place]), place + 1 + behind)
        new = int((~found[those]).sum())
        if new <= left:
            found[those], left = True, left - new
    if not found.any() and len(order):  # all are far from the start: the nearest, however long that takes
        nearest = int(order[np.argmin(depths[order])])
        found[nearest - int(depths[nearest]) : nearest + 1] = True
    return np.flatnonzero(found)


def result_classes(vectors: VectorSet) -> npt.NDArray[np.int64]:
    """The class of every right result, of a tile that of its first element, (count,)."""
    fmt, codes = vectors.instruction.formats["d"], vectors.d.reshape(len(vectors), -1)[:, 0]
    values = to_float(fmt, codes)
    size = np.abs(values)
    least = 2.0 ** (1 - fmt.bias) if fmt.is_float else 1.0
    tests = (np.isnan(values), np.isinf(values), size == 0, size < least, values < 0)
    return np.asarray(np.select(tests, range(len(tests)), len(tests)), np.int64)


def _turns(labels: npt.NDArray[np.integer]) -> Places:
    """How many before each have its label."""
    order = np.argsort(labels, kind="stable")
    _, first, counts = np.unique(labels[order], return_index=True, return_counts=True)
    turns = np.empty(len(labels), np.int64)
    turns[order] = np.arange(len(labels)) - np.repeat(first, counts)
    return turns
