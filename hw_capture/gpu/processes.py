"""Runs the tools that are programs of their own (nvcc, nvdisasm, nvidia-smi), with a time limit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from golden.processes import CANNOT_BE_RUN, started, stop_all
from hw_capture.errors import HwError

__all__ = ["Done", "run", "stop_all"]


@dataclass(frozen=True)
class Done:
    """A tool that ended by itself: its exit status (more than 128: killed by a signal) and what it
    printed, as text."""

    status: int
    output: str
    errors: str


def run(
    command: Sequence[str], seconds: float, error: type[HwError], extra: Mapping[str, str] | None = None
) -> Done:
    """Runs a tool in a process group of its own; nothing of the group is left when this returns or raises.

    Args:
        seconds: after so long it is stopped.
        extra: environment variables in addition to this process's own.

    Raises:
        HwError: of the type `error`: it cannot be run, or the time is over.
    """
    name = os.path.basename(command[0])
    with started(command, subprocess.PIPE, subprocess.PIPE, {**os.environ, **(extra or {})}) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise error(f"{name} gave no answer within {seconds:.0f} s and was stopped") from None
    done = Done(process.returncode, _text(output), _text(errors))
    if done.status in CANNOT_BE_RUN:
        raise error(
            f"{command[0]} cannot be run: {done.errors.strip().rpartition(': ')[2] or 'no reason given'}"
        )
    return done


def _text(printed: bytes) -> str:
    """Tools print in whatever encoding their locale has, and quote sources in another."""
    return printed.decode("utf-8", "backslashreplace")
