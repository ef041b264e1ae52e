"""Threads of the core: they help several callers at once, and a forked process has its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from long_run import long_after

WORKLOAD = Path(__file__).with_name("threads_workload.py")


@pytest.mark.parametrize("threads", long_after(1, ["7", "2"]))
def test_callers_at_once_and_forks_get_the_results_of_one_thread(threads: str) -> None:
    environment = os.environ | {"MMAGOLD_THREADS": threads, "PYTHONPATH": str(WORKLOAD.parents[2])}
    command = [sys.executable, str(WORKLOAD), "20", "10"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
