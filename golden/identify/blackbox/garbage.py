"""The garbage collection of a search."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()
_running: list[tuple[int, int, int]] = []
"""The thresholds at the beginning of each search that is still running."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Looks for cycles seldom inside the block. A search makes and drops hundreds of thousands of candidates
    without circular references, and keeps many objects that each collection would traverse. The thresholds
    belong to the process: they are restored when the last of several searches ends."""
    with _LOCK:
        before = _running[0] if _running else gc.get_threshold()
        _running.append(before)
        if before[0]:  # 0: collection is switched off
            # New objects after which cycles are looked for.
            objects = 100_000
            gc.set_threshold(max(before[0], objects), *before[1:])
    try:
        yield
    finally:
        with _LOCK:
            _running.pop()
            if not _running:
                gc.set_threshold(*before)
