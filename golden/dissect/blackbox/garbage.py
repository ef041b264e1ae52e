"""When a search has its garbage collected."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS = 100_000
"""Objects more than before at which cycles are looked for."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Cycles are looked for seldom meanwhile. A search makes and drops candidates, which refer to nothing in
    a circle, by the hundred thousand, and keeps many objects that each look goes through."""
    before = gc.get_threshold()
    if before[0]:  # else nobody wants any
        gc.set_threshold(max(before[0], _OBJECTS), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
