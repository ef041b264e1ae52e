"""What campaigns share: tasks on processes until a time is over, and a report that is whole at any moment.

A campaign is a script here that draws by a seed, runs long, and writes a report for docs/reports. It says
what it ran: date, version, seed, counts. A run that is cut short has written what it had found.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import golden
from golden.files import output

T = TypeVar("T")


def results(
    function: Callable[..., T],
    tasks: Iterable[tuple[Any, ...]],
    jobs: int = 1,
    *,
    seconds: float = math.inf,
    wanted: Callable[[int], bool] = lambda running: True,
) -> Iterator[tuple[int, T]]:
    """Yields (number of the task, result) as results come.

    A task is taken from `tasks` when a process is free, so that they may be drawn without end.

    Args:
        function: at the head of a module, called with a task's arguments in another process. tasks: tuples of
            arguments.
        jobs: tasks at a time. seconds: after which no further task begins; what runs is awaited.
        wanted: whether a further task should start, from the number that run.
    """
    until, source = time.monotonic() + seconds, enumerate(tasks)
    running: dict[Future[T], int] = {}
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        while True:
            while len(running) < jobs and time.monotonic() < until and wanted(len(running)):
                task = next(source, None)
                if task is None:
                    break
                running[pool.submit(function, *task[1])] = task[0]
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(done), done.result()


def made() -> str:
    """The beginning of a report's first line: date and version."""
    return f"{datetime.now(UTC):%Y-%m-%d}, mmagold {golden.__version__}"


def write(file: Path | None, report: Any) -> None:
    """Writes a report whole or not at all: text as it is, anything else as JSON; None: nothing."""
    if file is not None:
        text = report if isinstance(report, str) else json.dumps(report, indent=1)
        output.write_text(file, text.rstrip("\n") + "\n")
