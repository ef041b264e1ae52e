"""Workers: processes of this machine, or of a Dask cluster. Both are executors of concurrent.futures.

A process of this machine that dies takes its own task with it, no other's, and the task is run again: TRIES
times, since a task that kills each of its workers would do so for ever.

Every worker of a Dask cluster needs the same mmagold and what the work uses: a GPU, or simulators and files
at the same paths. If a worker dies, Dask starts its task again, and gives up after
`distributed.scheduler.allowed-failures` deaths.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

from golden.errors import ToolMissing, WorkerError, pip_install
from golden.processes import begin_worker

T = TypeVar("T")
LOCAL_CLUSTER = "local"
"""`--scheduler local`: a Dask cluster in this machine, for as long as the work runs."""
_ADDRESS = re.compile(r"(?:[a-z]+://)?[^/\s:]+:\d+", re.ASCII)


@contextlib.contextmanager
def workers(jobs: int, scheduler: str | None = None, gpus: int | None = None) -> Iterator[Executor]:
    """The workers of shards; none outlives the block, whatever ends it.

    Args:
        jobs: processes of this machine, or of the local cluster.
        scheduler: address of a Dask scheduler, or LOCAL_CLUSTER; None: no Dask.
        gpus: with a scheduler, each task takes one of the workers' resource GPU (`dask worker --resources
            GPU=1`); a local cluster has this many workers, each of which sees a GPU of its own.

    Raises:
        ToolMissing: Dask is not installed. WorkerError: the address is none, nobody answers there.
    """
    if scheduler is not None:
        with _cluster(jobs, scheduler, gpus) as executor:
            yield executor
        return
    slots = Slots(jobs)
    try:
        yield slots
    finally:
        slots.kill()
        slots.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _cluster(jobs: int, scheduler: str, gpus: int | None = None) -> Iterator[Executor]:
    """The workers of a Dask scheduler, as `workers` returns them."""
    try:
        import distributed
    except ImportError:
        raise ToolMissing(f"--scheduler needs Dask; install it with: {pip_install('dask')}") from None
    if scheduler != LOCAL_CLUSTER and not _ADDRESS.fullmatch(scheduler):
        raise WorkerError(f"scheduler is '{scheduler}', expected an address such as host:8786, or local")
    with contextlib.ExitStack() as stack:
        place: Any = scheduler
        if scheduler == LOCAL_CLUSTER:
            place = stack.enter_context(_local_cluster(distributed, jobs, gpus))
        try:
            # Seconds in which a scheduler must answer.
            patience = 20.0
            client = stack.enter_context(distributed.Client(place, timeout=patience))
        except (OSError, TimeoutError) as error:
            raise WorkerError(f"no Dask scheduler answers at {scheduler}: {error}") from None
        # Not pure: a shard that is run again is run, and not looked up by its name.
        needs = {} if gpus is None else {"resources": {"GPU": 1}}
        yield stack.enter_context(client.get_executor(pure=False, **needs))


def _local_cluster(distributed: Any, jobs: int, gpus: int | None) -> Any:
    """A cluster in this machine: processes, or one for each GPU."""
    if gpus is None:
        return distributed.LocalCluster(jobs, threads_per_worker=1, dashboard_address=None)
    workers = {
        index: {
            "cls": distributed.Nanny,
            "options": {
                "nthreads": 1,
                "resources": {"GPU": 1},
                "env": {"CUDA_VISIBLE_DEVICES": str(index)},
            },
        }
        for index in range(gpus)
    }
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard_address": None, "dashboard": False}}
    return distributed.SpecCluster(scheduler=scheduler, workers=workers)


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
        tries = 3
        for _ in range(tries):
            try:
                return self._started().submit(fn, *args, **kwargs).result()
            except BrokenProcessPool:
                self._forget()
        raise WorkerError(
            f"the worker was killed each of the {tries} times that it ran this; is there enough memory?"
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
