"""Workers of a Dask cluster, and of one that is embedded in this machine.

Every worker needs the same mmagold, and a GPU, or simulators and files at the same paths, as the work asks.
Dask starts a task anew whose worker died, and gives up after `distributed.scheduler.allowed-failures` deaths.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Any

from golden.errors import ToolMissing, WorkerError, pip_install

_ADDRESS = re.compile(r"(?:[a-z]+://)?[^/\s:]+:\d+", re.ASCII)


@contextlib.contextmanager
def cluster(jobs: int, scheduler: str, gpus: int | None = None) -> Iterator[Executor]:
    """The workers of the scheduler at an address (host:port), or of a local cluster of `jobs` processes.

    Args:
        gpus: each task takes one of the workers' resource GPU (`dask worker --resources GPU=1`); a local
            cluster has this many workers, each of which sees a GPU of its own.

    Raises:
        ToolMissing: Dask is not installed. WorkerError: the address is none, nobody answers there.
    """
    from golden.workers.pool import LOCAL_CLUSTER

    try:
        import distributed
    except ImportError:
        raise ToolMissing(f"--scheduler needs Dask; install it with: {pip_install('dask')}") from None
    if scheduler != LOCAL_CLUSTER and not _ADDRESS.fullmatch(scheduler):
        raise WorkerError(f"scheduler is '{scheduler}', expected an address such as host:8786, or local")
    with contextlib.ExitStack() as stack:
        place: Any = scheduler
        if scheduler == LOCAL_CLUSTER:
            place = stack.enter_context(_local(distributed, jobs, gpus))
        try:
            # Seconds in which a scheduler must answer.
            patience = 20.0
            client = stack.enter_context(distributed.Client(place, timeout=patience))
        except (OSError, TimeoutError) as error:
            raise WorkerError(f"no Dask scheduler answers at {scheduler}: {error}") from None
        # Not pure: a shard that is run again is run, and not looked up by its name.
        needs = {} if gpus is None else {"resources": {"GPU": 1}}
        yield stack.enter_context(client.get_executor(pure=False, **needs))


def _local(distributed: Any, jobs: int, gpus: int | None) -> Any:
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
