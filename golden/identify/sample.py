"""A part of many operands: some of them, or several batches as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.program.signature import Operands


def picked(operands: Operands, index: Any) -> Operands:
    """The dot products at an index of operands (n, ...): whatever selects rows of an array."""
    return {name: codes[index] for name, codes in operands.items()}


def joined(parts: Sequence[Operands]) -> Operands:
    """Batches of dot products (n, ...), one after the other."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def listed(operands: Operands | None) -> dict[str, Any] | None:
    """Operands as plain values."""
    return None if operands is None else {name: codes.tolist() for name, codes in operands.items()}


def evenly(some: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """At most `count` of these numbers (n,), at even distances, with the first and the last."""
    if len(some) <= count:
        return some
    places = np.linspace(0, len(some) - 1, max(count, 0)).astype(np.int64)
    return np.asarray(some[np.unique(places)])
