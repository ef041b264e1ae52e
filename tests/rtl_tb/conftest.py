"""Lets the tests of this folder import what they share (engine_dut.py, interrupts.py, reference_units.py),
and compiles what several of them check once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from shared_builds import SharedBuilds

from rtl_tb.check.options import Options
from rtl_tb.simulators import simulators

_OF_BUILDS = {"test_builds", "test_fast", "test_headers", "test_contents"}
"""The tests of the builds themselves, and of the compiler's level that users get."""
_OF_GATES = {
    *("test_gate_level", "test_attacks", "test_initial_values", "test_foreign_text", "test_other_outputs"),
    *("test_source_text", "test_drivers", "test_structure", "test_init", "test_vhdl", "test_synthesis"),
}
"""The tests whose checks also simulate the netlist, which costs more than a short run of the unit itself."""


_version = cache(simulators._verilator_version)
"""Verilator is asked once in a process, not for each file of tests."""


@pytest.fixture(scope="session")
def _shared_builds(tmp_path_factory: pytest.TempPathFactory) -> SharedBuilds:
    root = tmp_path_factory.getbasetemp()
    common = root.parent if root.name.startswith("popen-") else root  # of all processes of pytest-xdist
    return SharedBuilds(common / "shared_builds", root)


@pytest.fixture(scope="module", autouse=True)
def _compiled_once(request: pytest.FixtureRequest, _shared_builds: SharedBuilds) -> Iterator[None]:
    """The same unit is compiled once in a run, and quickly: most tests simulate a few hundred vectors."""
    if request.module.__name__.rpartition(".")[2] in _OF_BUILDS:
        yield
        return
    simulators._verilator.cache_clear()  # it keeps the environment in which it was found
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OBJCACHE", f"{Path(__file__).with_name('object_cache.sh')} {_shared_builds.objects}")
        for owner, name, stand_in in _shared_builds.patches():
            patch.setattr(owner, name, stand_in)
        if request.module.__name__.rpartition(".")[2] not in _OF_GATES:
            usual = Options.__init__.__defaults__
            patch.setattr(Options.__init__, "__defaults__", tuple("off" if x == "try" else x for x in usual))
        if not request.module.__name__.endswith("test_simulators"):  # whose programs change
            patch.setattr(simulators, "_verilator_version", _version)
        yield
    simulators._verilator.cache_clear()
