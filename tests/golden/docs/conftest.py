"""The site, built once for all tests of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site, one for all processes of the tests; MMAGOLD_SITE names one that was built before."""
    if ready := os.environ.get("MMAGOLD_SITE"):
        return Path(ready)
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "site"
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            _build(folder)
    return folder


def _build(folder: Path) -> None:
    start = time.perf_counter()
    command = [sys.executable, "-m", "golden.cli", "docs", "build", "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    print(f"the site was built in {time.perf_counter() - start:.0f} s")
