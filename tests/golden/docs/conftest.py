"""The site, built once for all tests of it, and a browser to open its pages."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import NAMES, Browser, find
from filelock import FileLock


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The site takes minutes to build: its tests are long."""
    for item in items:
        if "site" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site, one for all processes of the tests; MMAGOLD_SITE names one that was
    built before."""
    if ready := os.environ.get("MMAGOLD_SITE"):
        return Path(ready)
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "site"
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            _build(folder)
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window, one for the tests of a file; they are skipped where there is none."""
    program = find()
    if program is None:
        pytest.skip(f"no browser that starts: none of {', '.join(NAMES)}")
    started = Browser(program)
    yield started
    started.close()


def _build(folder: Path) -> None:
    start = time.perf_counter()
    command = [sys.executable, "-m", "golden.cli.app", "docs", "build", "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    print(f"the site was built in {time.perf_counter() - start:.0f} s")
