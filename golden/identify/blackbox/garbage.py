"""When a search has its garbage collected."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS = 100_000
"""Objects more than before at which cycles are looked for."""


_LOCK = threading.Lock()
_running: list[tuple[int, int, int]] = []
"""The thresholds that searches found when they began, of those that have not ended."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Cycles are looked for seldom meanwhile. A search makes and drops candidates, which refer to nothing in
    a circle, by the hundred thousand, and keeps many objects that each look goes through. The thresholds are
    those of the process: they are put back when the last of several searches ends."""
    with _LOCK:
        before = _running[0] if _running else gc.get_threshold()
        _running.append(before)
        if before[0]:  # else nobody wants any
            gc.set_threshold(max(before[0], _OBJECTS), *before[1:])
    try:
        yield
    finally:
        with _LOCK:
            _running.pop()
            if not _running:
                gc.set_threshold(*before)
