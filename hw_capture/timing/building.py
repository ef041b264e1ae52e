"""Compiles many kernels, several at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from hw_capture.gpu import processes

Item = TypeVar("Item")
Made = TypeVar("Made")
Progress = Callable[[str, int, int], None]


def in_parallel(
    work: Callable[[Item], Made], items: Sequence[Item], progress: Progress | None = None
) -> Generator[Made, None, None]:
    """Yields what `work` makes of each item, in order; an interrupt stops the compilers, too."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = [pool.submit(work, item) for item in items]
        try:
            for done, job in enumerate(jobs):
                if progress:
                    progress("compiling", done, len(jobs))
                yield job.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            processes.stop_all()
            raise
