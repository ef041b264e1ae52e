"""Units in the styles of several designers: each is the unit of its own YAML file.

They are none of the reference units: neither their text nor their structure is that of rtl_tb/rtl.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import rtl_tb
from rtl_tb.check.check import Options, check

UNITS = Path(rtl_tb.__file__).parent / "mutants" / "units"
NAMES = sorted(path.parent.name for path in UNITS.glob("*/dut.yaml"))


def test_there_are_units() -> None:
    assert len(NAMES) >= 8


@pytest.mark.parametrize("name", NAMES)
def test_unit_is_what_its_file_says(name: str, tmp_path: Path) -> None:
    """As `mmagold rtl check` runs it: full throughput first, then idle cycles, backpressure and resets."""
    options = Options(count=2000, seed=5, explain=False, failures=None, build=tmp_path)
    assert check(UNITS / name / "dut.yaml", options).passed
