"""On a machine with an NVIDIA GPU, PyCUDA and Dask: a campaign on workers of which one is killed counts what
one process counts; elsewhere skipped."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from golden.cli.app import app
from hw_capture.errors import HwError
from hw_capture.gpu import device

pytestmark = pytest.mark.usefixtures("nvcc")
SHARDS, DOTS = 12, 5_000_000_000
HMMA = "HMMA.16816.F32"
FAULT = "--fault", "fraction_bits=24"
"""Planted, so that there are mismatches to lose or to count twice."""


@pytest.fixture
def address() -> Iterator[str]:
    pytest.importorskip("distributed")
    try:
        device.open().close()
    except HwError as error:
        pytest.skip(f"no GPU to run on: {error}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    scheduler = started("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    yield f"tcp://127.0.0.1:{port}"
    ended(scheduler)


@pytest.fixture
def two(address: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Workers with a GPU each where the machine has two, or sharing one; nobody restarts one that dies."""
    options = "--nthreads", "1", "--resources", "GPU=1", "--no-nanny", "--no-dashboard"
    found = [started("worker", address, *options, gpu=number % device.count()) for number in range(2)]
    yield found
    for worker in found:
        ended(worker)


def started(what: str, *options: str, gpu: int = 0) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dask", what, *options]
    return subprocess.Popen(command, env=os.environ | {"CUDA_VISIBLE_DEVICES": str(gpu)})


def ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()


def campaign(out: Path, *options: str) -> dict[str, object]:
    """The only series of a campaign's report, without what the clock says."""
    result = CliRunner().invoke(
        app, ["campaign", HMMA, "--dots", str(SHARDS * DOTS), *FAULT, "--out", str(out), *options]
    )
    assert result.exit_code == 1, result.output  # the planted mismatches
    (outcome,) = json.loads(out.read_text())["campaigns"]
    return {key: value for key, value in outcome.items() if key not in ("seconds", "records")}


def test_a_killed_worker_loses_and_doubles_nothing(tmp_path, address, two):
    """The first worker dies in the middle of its second or a later shard."""
    folder, killed = tmp_path / "report.json.shards", []

    def kill() -> None:
        while len(found := list(folder.glob("*.json"))) < 3:
            time.sleep(0.01)
        os.kill(two[0].pid, signal.SIGKILL)
        killed.append(len(found))

    threading.Thread(target=kill, daemon=True).start()
    shared = campaign(tmp_path / "report.json", "--scheduler", address, "--shard", str(DOTS))
    assert killed and killed[0] < SHARDS and two[0].wait(1) == -signal.SIGKILL
    assert len(list(folder.glob("*.json"))) == SHARDS
    alone = campaign(tmp_path / "alone.json")
    assert shared == alone and alone["mismatches"]
