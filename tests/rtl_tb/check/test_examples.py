"""The classic cocotb Makefiles of rtl_tb/examples, and the file lists of the reference units."""

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml
from long_run import long_after

import rtl_tb

PACKAGE = Path(rtl_tb.__file__).parent
UNITS = {path.name for path in (PACKAGE / "rtl").glob("*.sv")}


@pytest.mark.long
@pytest.mark.parametrize("simulator", ["icarus", pytest.param("verilator", marks=pytest.mark.long)])
@pytest.mark.parametrize(("example", "tests"), long_after(1, [("own_unit", 3), ("reference_unit", 2)]))
def test_examples_run_with_make(example: str, tests: int, simulator: str, tmp_path: Path) -> None:
    # A copy of what the Makefile refers to, so that no build is left in the tree.
    shutil.copytree(
        PACKAGE / "examples", tmp_path / "rtl_tb" / "examples", ignore=shutil.ignore_patterns("build")
    )
    (tmp_path / "rtl_tb" / "rtl").symlink_to(PACKAGE / "rtl")
    (tmp_path / "spec").symlink_to(PACKAGE.parent / "spec")
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS", "COCOTB"))
    }
    environment["PYTHONPATH"] = str(PACKAGE.parent)
    command = [
        "make",
        "-C",
        str(tmp_path / "rtl_tb" / "examples" / example),
        f"SIM={simulator}",
        f"PYTHON={sys.executable}",
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    results = tmp_path / "rtl_tb" / "examples" / example / "build" / simulator / "results.xml"
    assert len(list(ET.parse(results).iter("testcase"))) == tests
    assert "sorry" not in done.stderr and "%Warning" not in done.stdout + done.stderr


def test_file_list_holds_every_unit_once() -> None:
    lines = (PACKAGE / "rtl" / "mmagold_rtl.f").read_text().splitlines()
    listed = [line for line in lines if line and not line.startswith("//")]
    assert listed == sorted(UNITS), "write it again: (cd rtl_tb/rtl && ls *.sv), below the comment"


def test_core_file_holds_every_unit_once() -> None:
    text = (PACKAGE / "mmagold_rtl.core").read_text()
    assert text.startswith("CAPI=2:\n")
    core = yaml.safe_load(text)
    assert core["CAPI=2"] is None and core["name"].count(":") == 3
    (files,) = (fileset["files"] for fileset in core["filesets"].values())
    assert files == [f"rtl/{name}" for name in sorted(UNITS)]
    for target in core["targets"].values():
        assert set(target["filesets"]) <= set(core["filesets"])
