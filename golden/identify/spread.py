"""A few of many, from everywhere."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def spread(some: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """So many of some numbers (n,) at most, evenly, the first and the last among them; all where they are no
    more."""
    if len(some) <= count:
        return some
    places = np.linspace(0, len(some) - 1, max(count, 0)).astype(np.int64)
    return np.asarray(some[np.unique(places)])
