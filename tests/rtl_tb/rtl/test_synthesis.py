"""The reference units are synthesizable: Yosys elaborates every top module and finds no latch, no loop,
nothing undriven.

One process for all tops and the planted faults. Parameters are small, because the modules' structure does
not depend on the number of products.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import rtl_tb
from rtl_tb.dut.description import load_dut

RTL = Path(rtl_tb.__file__).parent / "rtl"
MODULES = sorted(RTL.glob("*.sv"))
TOPS: dict[str, dict[str, int]] = {
    "fda": {"K": 4},
    "fda_chain": {"K": 8, "STEP": 4},
    "scaled_fda": {"K": 32},
    "gdfs": {},
    "fdrda": {"K": 4, "P": 2},
    "gfdrda": {"K": 8, "P": 4},
    "gps": {"K": 4, "G": 2},
    "integer_dot": {"K": 4, "SATURATE": 1},
    "fma_chain": {"K": 2},
}
CHECKS = "proc; opt_clean; select -count t:$dlatch t:$_DLATCH_* t:$adlatch; check"
"""`proc` turns processes into cells, a latch among them; `check` finds loops, several drivers, and wires
without any. Neither stops the process: Python reads what was said of each module."""
NO_LATCH, CLEAN = "\n0 objects.", "Found and reported 0 problems."

LATCH, LOOP, UNDRIVEN = r"^[1-9]\d* objects|Latch inferred", "logic loop", "is used but has no driver"
PLANTED = {
    "right": ("always_comb q = enable & d;", ""),
    "latch_star": ("always @* if (enable) q = d;", LATCH),
    "latch_latch": ("always_latch if (enable) q = d;", LATCH),
    "loop": ("assign q = enable ? d ^ q : d;", LOOP),
    "undriven": ("logic nobody; assign q = enable & nobody;", UNDRIVEN),
    "latch_comb": ("always_comb if (enable) q = d;", LATCH),
}
"""Bodies of small modules, by name, and what has to be said of each; "" of the one that is right. The last
one ends the process, as a latch in `always_comb` is an error in any unit."""
TIMEOUT = 600
"""Seconds for everything."""


def yosys(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a script on files of `folder`, in a process of its own: an error ends it."""
    run = "import sys; from pyosys import libyosys; libyosys.run_pass(sys.argv[1])"
    return subprocess.run(
        [sys.executable, "-c", run, script], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT
    )


def read(name: str, paths: Iterable[Path]) -> list[str]:
    """Yosys commands that read a design and save it under a name."""
    return [f"design -reset; read_verilog -sv {' '.join(path.name for path in paths)}; design -save {name}"]


def elaborated(design: str, top: str, parameters: dict[str, int]) -> list[str]:
    """Yosys commands that check one top module of a design, below a line `@ top`."""
    changed = "".join(f" -chparam {name} {value}" for name, value in parameters.items())
    return [f"design -load {design}; log @ {top}; hierarchy -check -top {top}{changed}; {CHECKS}"]


def faults(said: str) -> list[str]:
    """The lines that speak against a module; one of its own where `check` did not get to its end."""
    wrong = re.findall(rf"^.*(?:Warning|{LATCH}|{LOOP}|{UNDRIVEN}).*$", said, re.MULTILINE)
    missing = [text for text in (NO_LATCH, CLEAN) if text not in said]
    return wrong + [f"not said: {text}" for text in missing]


def test_every_top_module_is_here() -> None:
    assert {load_dut(path).top for path in (RTL / "duts").glob("*.yaml")} == set(TOPS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_one_module_a_file(path: Path) -> None:
    assert re.findall(r"^\s*module\s+(\w+)", path.read_text(), re.MULTILINE) == [path.stem]


def test_units_synthesise_and_planted_faults_are_found(tmp_path: Path) -> None:
    """No word against any unit; against each planted module the word that it deserves."""
    for path in MODULES:
        shutil.copy(path, tmp_path)
    for name, (body, _) in PLANTED.items():
        (tmp_path / f"{name}.sv").write_text(
            f"module {name} (input logic enable, input logic d, output logic q);\n{body}\nendmodule\n"
        )
    *planted, last = PLANTED
    script = [*read("planted", [tmp_path / f"{name}.sv" for name in PLANTED])]
    for name in planted:
        script += elaborated("planted", name, {})
    script += ["log @ units", *read("units", MODULES)]
    for top, parameters in TOPS.items():
        script += elaborated("units", top, parameters)
    result = yosys("; ".join([*script, *elaborated("planted", last, {})]), tmp_path)
    _, *parts = re.split(r"^@ (\w+)$", result.stdout + result.stderr, flags=re.MULTILINE)
    said = dict(zip(parts[::2], parts[1::2], strict=True))
    assert [*said] == [*planted, "units", *TOPS, last], parts[-1][-2000:]
    assert "Warning" not in said["units"]
    assert {top: found for top in TOPS if (found := faults(said[top]))} == {}
    for name, (_, message) in PLANTED.items():
        found = faults(said[name])
        assert re.search(message, found[0]) if message else not found, (name, said[name])
    assert result.returncode != 0
