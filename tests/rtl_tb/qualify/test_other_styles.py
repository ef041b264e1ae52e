"""Units in the styles of several designers: each is the unit of its own YAML file.

They are none of the reference units: neither their text nor their structure is that of rtl_tb/rtl.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import rtl_tb
from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.qualify.mutants import load_mutants
from rtl_tb.qualify.qualification import qualify

UNITS = Path(rtl_tb.__file__).parent / "mutants" / "units"
NAMES = sorted(path.parent.name for path in UNITS.glob("*/dut.yaml"))


def test_there_are_units() -> None:
    assert len(NAMES) >= 8


@pytest.mark.parametrize("name", NAMES)
def test_unit_has_mutants(name: str) -> None:
    """Most change the arithmetic. `mmagold rtl qualify` runs them; here only their patches are applied,
    with the patches of all others (test_qualify)."""
    mutants = [mutant for mutant in load_mutants() if mutant.unit_name == name]
    assert len(mutants) >= 6 and sum(mutant.group == "arithmetic" for mutant in mutants) >= 4


@pytest.mark.parametrize(
    "name", [NAMES[0], *(pytest.param(name, marks=pytest.mark.long) for name in NAMES[1:])]
)
def test_unit_is_what_its_file_says(name: str, tmp_path: Path) -> None:
    """As `mmagold rtl check` runs it: full throughput first, then idle cycles, backpressure and resets."""
    options = Options(count=2000, seed=5, explain=False, failures=None, build=tmp_path)
    assert check(UNITS / name / "dut.yaml", options).passed


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_faults_are_named(name: str, tmp_path: Path) -> None:
    """The diagnosis names each fault whose name other_styles.yaml has, from the results alone."""
    wanted = [m.name for m in load_mutants() if m.unit_name == name and m.diagnosis is not None]
    result = qualify(wanted, count=20_000, build=tmp_path)
    assert wanted and result.unnamed == [] and result.survivors == []
