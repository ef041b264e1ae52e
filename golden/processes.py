"""Starts programs of others (simulators, compilers, nvidia-smi) so that none outlives what it works for."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import parent_process
from pathlib import Path
from typing import IO

_GUARDED = """
exec 3<&0 </dev/null
"$@" 3<&- &
tool=$!
(read -r nothing <&3; kill -KILL -$$) >/dev/null 2>&1 &
exec 3<&-
wait "$tool"
"""
"""A shell that leads a process group, runs the tool in it, and ends the group when its standard input
does: a pipe that only this process holds, so that the kernel closes it even where this process is killed.
nvcc's compilers are in the group too."""
CANNOT_BE_RUN = (126, 127)
"""Status of a shell whose command is no program, or is missing."""

_running: set[subprocess.Popen[bytes]] = set()
_lock = threading.Lock()


@contextlib.contextmanager
def started(
    command: Sequence[str],
    output: int | IO[bytes],
    errors: int | IO[bytes],
    env: Mapping[str, str],
    folder: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """The program, started in a process group of its own; nothing of the group is left after the block,
    whatever ends that.

    The status of the process is the program's own; more than 128: killed by a signal; CANNOT_BE_RUN: there is
    no such program.

    Args:
        output, errors: where they go, as for subprocess.Popen.
        env: the whole environment.
        folder: working directory, None: this process's own.
    """
    watched, held = os.pipe()
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _GUARDED, "sh", *command],
            stdin=watched,
            stdout=output,
            stderr=errors,
            env=env,
            cwd=folder,
            start_new_session=True,
        )
    except BaseException:
        os.close(held)
        raise
    finally:
        os.close(watched)
    try:
        with process:
            with _lock:
                _running.add(process)
            try:
                yield process
            finally:
                with _lock:
                    _running.discard(process)
                _end(process)
    finally:
        os.close(held)


_SCHEDULED = Path("/proc/thread-self/schedstat")
"""Of this thread, in nanoseconds: how long it had a processor, how long it was ready and had none."""


def waited() -> float:
    """Seconds that this thread was ready and had no processor; 0 where the system does not say."""
    try:
        return int(_SCHEDULED.read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether the process ends within this many seconds; returns as soon as it has.

    `Popen.wait` with a timeout looks only now and then, up to 50 ms later: as long as a simulation of a few
    hundred vectors takes, of which a search starts thousands.
    """
    if process.poll() is not None:
        return True
    try:
        watched = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # Linux alone has it
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    else:
        try:
            poll = select.poll()
            poll.register(watched, select.POLLIN)
            poll.poll(1000 * seconds)
        finally:
            os.close(watched)
    return process.poll() is not None


def stop_all() -> None:
    """Ends every program that runs in another thread: for who is interrupted and would have to wait for
    these threads."""
    with _lock:
        for process in _running:
            _kill(process, signal.SIGKILL)


def begin_worker() -> None:
    """To be called first in a process of a pool: the parent handles Ctrl-C, there is one worker for each of
    the processors, and none waits for ever for work from a parent that was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("MMAGOLD_THREADS", "1")
    threading.Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends what is left of the group; what still works may remove its temporary files first."""
    polite_seconds = 2.0
    if process.poll() is None:
        _kill(process, signal.SIGTERM)
        ends_within(process, polite_seconds)
    _kill(process, signal.SIGKILL)


def _kill(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
