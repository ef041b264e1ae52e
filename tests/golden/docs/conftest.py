"""The site, built once for all tests of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site; MMAGOLD_SITE names one that was built before."""
    if ready := os.environ.get("MMAGOLD_SITE"):
        return Path(ready)
    folder = tmp_path_factory.mktemp("docs") / "site"
    start = time.perf_counter()
    command = [sys.executable, "-m", "golden.cli", "docs", "build", "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    print(f"the site was built in {time.perf_counter() - start:.0f} s")
    return folder
