"""Runs the tools that are programs of their own (nvcc, nvdisasm, nvidia-smi), so that none outlives what it works for."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hw_capture.errors import HwError

_GUARDED = """
exec 3<&0 </dev/null
"$@" 3<&- &
tool=$!
(read -r nothing <&3; kill -KILL -$$) >/dev/null 2>&1 &
exec 3<&-
wait "$tool"
"""
"""A shell that leads a process group, runs the tool in it, and ends the group when its standard input does: a pipe that only
this process holds, so that the kernel closes it even where this process is killed. nvcc's compilers are in the group too."""
_CANNOT_BE_RUN = (126, 127)
"""Status of a shell whose command is no program, or is missing."""

_running: set[subprocess.Popen[bytes]] = set()
_lock = threading.Lock()


@dataclass(frozen=True)
class Done:
    """A tool that ended by itself: its exit status (more than 128: killed by a signal) and what it printed, as text."""

    status: int
    output: str
    errors: str


def run(command: Sequence[str], seconds: float, error: type[HwError], extra: Mapping[str, str] | None = None) -> Done:
    """Runs a tool in a process group of its own; nothing of the group is left when this returns or raises.

    Args:
        seconds: after so long it is stopped.
        extra: environment variables beside this process's own.

    Raises:
        HwError: of the type `error`: it cannot be run, or the time is over.
    """
    name = os.path.basename(command[0])
    with _process(command, extra) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise error(f"{name} gave no answer within {seconds:.0f} s and was stopped") from None
    done = Done(process.returncode, _text(output), _text(errors))
    if done.status in _CANNOT_BE_RUN:
        raise error(f"{command[0]} cannot be run: {done.errors.strip().rpartition(': ')[2] or 'no reason told'}")
    return done


def stop_all() -> None:
    """Ends every tool that runs in another thread: for who is interrupted and would have to wait for these threads."""
    with _lock:
        for process in _running:
            _end(process)


@contextlib.contextmanager
def _process(command: Sequence[str], extra: Mapping[str, str] | None) -> Iterator[subprocess.Popen[bytes]]:
    """The tool, started; its group is ended with the block, whatever ends that."""
    watched, held = os.pipe()
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _GUARDED, "sh", *command],
            stdin=watched,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(extra or {})},
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


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _text(printed: bytes) -> str:
    """Tools print in whatever encoding their locale has, and quote sources in another."""
    return printed.decode("utf-8", "backslashreplace")
