"""Shared by all tests: the hypothesis profile (reproducible, no deadline), the environment of the commands
that they start, and the folders of what they import: the independent oracle, what runs long, campaigns."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
import typer.testing
from hypothesis import HealthCheck, settings

# What the commands print is compared as plain text, unbroken: on CI servers that ask for colours, too, and
# under pytest-xdist, which says in COLUMNS how wide its terminal is.
for _name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
    os.environ.pop(_name, None)
# NumPy's OpenBLAS starts a thread for each core: 0.1 s of CPU in each of the thousand commands started here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Each would compile the package anew where the environment keeps bytecode from being written.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A catalog of thousands of objects lives as long as the run: looking through it after each 700 new ones costs
# one second in twenty.
gc.set_threshold(20_000, 10, 10)

# Each command that a test invokes would read the signatures of all anew: 0.15 s for each of a thousand.
typer.main.get_command = typer.testing._get_command = cache(typer.main.get_command)

sys.path.insert(0, str(Path(__file__).parent / "golden"))
sys.path.append(str(Path(__file__).parents[1] / "campaigns"))

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "explore", deadline=None, max_examples=5000, suppress_health_check=list(HealthCheck)
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Every second process of pytest-xdist collects from the end on, so that each reads the other half of the
    rewritten tests from the bytecode that another one has just kept: compiling all of them takes 14 s."""
    report = yield
    backwards = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 2
    if backwards and isinstance(collector, pytest.Directory):
        report.result.reverse()
    return report


def pytest_collection_finish() -> None:
    """What has been collected stays to the end: the collector of garbage need not look at it again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """pyslang looks at its end for objects that nobody has freed."""
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is marked
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves most cases of some tests to `make test-all`."""
    from repeated import leave_to_the_long_run

    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: item.path.parts)  # all processes have the same order
    leave_to_the_long_run(items)


@pytest.fixture(scope="session")
def _drawn_once() -> Any:
    from drawn_once import DrawnOnce

    return DrawnOnce()


@pytest.fixture(scope="module", autouse=True)
def _blocks_drawn_once(request: pytest.FixtureRequest, _drawn_once: Any) -> Iterator[None]:
    """See drawn_once.py; the tests of what draws and computes vectors have them drawn each time."""
    from golden.vectors import vectorset

    if {"stimuli", "vectors", "model"} & set(request.path.parts):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectorset, "_block", _drawn_once)
        yield
