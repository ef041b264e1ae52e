"""Workers: processes of this machine, or of a Dask cluster. Both are executors of concurrent.futures.

A process of this machine that dies takes its own task with it, no other's, and the task is run again: TRIES
times, since a task that kills each of its workers would do so for ever.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

from golden.errors import WorkerError
from golden.processes import begin_worker

T = TypeVar("T")
TRIES = 3
LOCAL_CLUSTER = "local"
"""`--scheduler local`: a Dask cluster in this machine, for as long as the work runs."""


@contextlib.contextmanager
def workers(jobs: int, scheduler: str | None = None, gpus: int | None = None) -> Iterator[Executor]:
    """The workers of shards; none outlives the block, whatever ends it.

    Args:
        jobs: processes of this machine, or of the local cluster.
        scheduler: address of a Dask scheduler, or LOCAL_CLUSTER; None: no Dask.
        gpus: with a scheduler, each task takes one of the resource GPU; a local cluster has this many
        workers,
            each with a GPU of its own.

    Raises:
        WorkerError: Dask is not installed, or nobody answers at the address.
    """
    if scheduler is not None:
        from golden.workers.cluster import cluster

        with cluster(jobs, scheduler, gpus) as executor:
            yield executor
        return
    slots = Slots(jobs)
    try:
        yield slots
    finally:
        slots.kill()
        slots.shutdown(cancel_futures=True)


class Slots(Executor):
    """Processes of this machine, each in a pool of its own: the death of one breaks that pool alone."""

    def __init__(self, jobs: int) -> None:
        self._threads = ThreadPoolExecutor(jobs, thread_name_prefix="slot")
        self._slots = [_Slot() for _ in range(jobs)]
        self._idle: queue.SimpleQueue[_Slot] = queue.SimpleQueue()
        for slot in self._slots:
            self._idle.put(slot)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Runs a function of a module in the next idle process."""
        return self._threads.submit(self._run, fn, *args, **kwargs)

    def _run(self, fn: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        slot = self._idle.get()
        try:
            return slot.run(fn, *args, **kwargs)
        finally:
            self._idle.put(slot)

    def kill(self) -> None:
        """Ends every process with what it runs, and starts no other."""
        for slot in self._slots:
            slot.kill()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Waits for what was begun."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        for slot in self._slots:
            slot.close()


class _Slot:
    """One process, started when it is first needed and again where it died."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._number: int | None = None
        self._ended = False

    def run(self, fn: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Runs a task, again where the process dies.

        Raises:
            WorkerError: the process died each time.
        """
        for _ in range(TRIES):
            try:
                return self._started().submit(fn, *args, **kwargs).result()
            except BrokenProcessPool:
                self._forget()
        raise WorkerError(
            f"the worker was killed each of the {TRIES} times that it ran this; is there enough memory?"
        )

    def _started(self) -> ProcessPoolExecutor:
        if self._ended:
            raise WorkerError("the work was stopped")
        if self._pool is None:
            # A new interpreter: a fork of this one would inherit locks that its threads hold.
            self._pool = ProcessPoolExecutor(1, get_context("spawn"), initializer=begin_worker)
            self._number = self._pool.submit(os.getpid).result()
        return self._pool

    def _forget(self) -> None:
        self._pool, self._number = None, None

    def kill(self) -> None:
        self._ended = True
        if self._number is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._number, signal.SIGKILL)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
