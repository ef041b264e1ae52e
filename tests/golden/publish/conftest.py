"""The site and the explorer, each built once for all tests of it, and a browser to open their pages."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import NAMES, Browser, find
from filelock import FileLock

from golden.publish.explorer import build, wasm


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The site takes minutes to build, and a browser opens the explorer: tests of both are long.
    `make test-all` installs the browser that opens them."""
    for item in items:
        if {"site", "explorer"} & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site, one for all processes of the tests; MMAGOLD_SITE names one that was
    built before."""
    if ready := os.environ.get("MMAGOLD_SITE"):
        return Path(ready)
    return _once(tmp_path_factory, "site", _build)


@pytest.fixture(scope="session")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the explorer alone, one for all processes of the tests."""
    if not wasm.available():
        pytest.skip(f"no {wasm.COMPILER}, which compiles the core for the browser")
    return _once(tmp_path_factory, "explorer", build.build)


def _once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder that `make` fills; the first process of the tests makes it, the others wait."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            make(folder)
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
