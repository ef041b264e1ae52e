"""Workers of a Dask cluster, and of one that is embedded in this machine.

Every worker needs the same mmagold and simulators, and the units' files at the same paths. Dask starts a task
anew whose worker died, and gives up after `distributed.scheduler.allowed-failures` deaths.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Any

from rtl_tb.errors import RtlError

PATIENCE = 20.0
"""Seconds in which a scheduler must answer."""
_ADDRESS = re.compile(r"(?:[a-z]+://)?[^/\s:]+:\d+", re.ASCII)


@contextlib.contextmanager
def cluster(jobs: int, scheduler: str) -> Iterator[Executor]:
    """The workers of the scheduler at an address (host:port), or of a local cluster of `jobs` processes.

    Raises:
        RtlError: Dask is not installed, the address is none, nobody answers there.
    """
    from rtl_tb.regress.pool import LOCAL_CLUSTER

    try:
        import distributed
    except ImportError:
        raise RtlError('--scheduler needs Dask; install it with: pip install "mmagold[dask]"') from None
    if scheduler != LOCAL_CLUSTER and not _ADDRESS.fullmatch(scheduler):
        raise RtlError(f"scheduler is '{scheduler}', expected an address such as host:8786, or local")
    with contextlib.ExitStack() as stack:
        place: Any = scheduler
        if scheduler == LOCAL_CLUSTER:
            place = stack.enter_context(
                distributed.LocalCluster(jobs, threads_per_worker=1, dashboard_address=None)
            )
        try:
            client = stack.enter_context(distributed.Client(place, timeout=PATIENCE))
        except (OSError, TimeoutError) as error:
            raise RtlError(f"no Dask scheduler answers at {scheduler}: {error}") from None
        # Not pure: a shard that is run again is run, and not looked up by its name.
        yield stack.enter_context(client.get_executor(pure=False))
