"""The cocotb library on a unit in VHDL, in GHDL: the example's Makefile as a user runs it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "rtl_tb" / "examples" / "vhdl_unit"
UNKNOWN = "1000 results of mac4: 0 wrong, 1000 with X or Z"
pytestmark = pytest.mark.skipif(
    shutil.which("ghdl") is None, reason="GHDL is not installed: apt install ghdl"
)


def run(folder, *generics):
    """`make` with these generics, its build in `folder`."""
    return subprocess.run(
        [
            "make",
            "-C",
            EXAMPLE,
            f"PYTHON={sys.executable}",
            f"SIM_BUILD={folder}",
            f"GENERICS={' '.join(generics)}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_sound_unit_passes(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "TESTS=3 PASS=3 FAIL=0 SKIP=0" in done.stdout


@pytest.mark.parametrize(
    ("generic", "said"),
    [
        ("DROPPED=2", "wrong, 0 with X or Z"),
        ("LAST_BIT=0", UNKNOWN),
        *(pytest.param(f"LAST_BIT={value}", UNKNOWN, marks=pytest.mark.long) for value in (1, 4, 5, 8)),
    ],
)
def test_a_wrong_unit_and_bits_that_are_no_level_fail(generic, said, tmp_path):
    done = run(tmp_path, generic)
    assert done.returncode != 0 and said in done.stdout, done.stdout + done.stderr
