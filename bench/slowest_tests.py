"""How much processor time each test takes, with the compilers and commands that it starts.

    python bench/slowest_tests.py [--most 40] [ARGUMENT OF PYTEST ...]

One process after the other, so that a test pays for what it is the first to need: a unit that several tests
share, the instructions of an architecture. Below the slowest tests: the sum by folder.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Generator

import pytest


def processor_time() -> float:
    """Seconds of this process and of all that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


class Clock:
    """A plugin of pytest: the processor time of each test, with its fixtures."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Times one test."""
        before = processor_time()
        done = yield
        self.seconds[item.nodeid] = processor_time() - before
        return done


def main() -> int:
    """Runs the tests and prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--most", type=int, default=40, help="how many tests to list")
    options, rest = parser.parse_known_args()
    clock = Clock()
    status = pytest.main(["-q", *rest], plugins=[clock])
    folders: dict[str, float] = {}
    for name, seconds in clock.seconds.items():
        folder = name.partition("::")[0].rpartition("/")[0]
        folders[folder] = folders.get(folder, 0.0) + seconds
    for title, found, most in (("test", clock.seconds, options.most), ("folder", folders, None)):
        print(f"\n{'s':>7}  {title}")
        for name, seconds in sorted(found.items(), key=lambda one: -one[1])[:most]:
            print(f"{seconds:7.1f}  {name}")
    print(f"{sum(folders.values()):7.1f}  all")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
