"""A few of many, from everywhere."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def evenly(some: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """At most `count` of these numbers (n,), at even distances, with the first and the last."""
    if len(some) <= count:
        return some
    places = np.linspace(0, len(some) - 1, max(count, 0)).astype(np.int64)
    return np.asarray(some[np.unique(places)])
