"""Nets and variables that several things drive at once."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest
from changed_unit import DUT, OWN, PASSING

from golden.vectors.vectorset import default_set
from rtl_tb.check.outside_influences import signals_with_several_drivers
from rtl_tb.check.source_text import SourceText
from rtl_tb.dut.description import load_dut
from rtl_tb.dut.drivers import several_drivers
from rtl_tb.dut.ports import Design
from rtl_tb.engines.job import Job
from rtl_tb.errors import SimulatorMissing

LEAF = "module leaf(output o); assign o = 1; endmodule\n"
CASES = {
    "assignments": ("wire [7:0] n; assign n = a; assign n[0] = 0;", {"n"}),
    "of other bits": ("wire [7:0] n; assign n[7:1] = a[7:1]; assign n[0] = 0;", set()),
    "of a strength": ("wire n; assign (weak0, weak1) n = a[0]; assign n = a[1];", {"n"}),
    "a declaration": ("wire n = a[0]; assign n = a[1];", {"n"}),
    "instances": ("wire n; leaf x (n), y (n);", {"n"}),
    "gates, in a generate": ("wire [1:0] n; for (genvar i = 0; i < 2; i++) and (n[0], a[i], a[2]);", {"n"}),
    "one at a time": (
        "wire n; assign n = a[0] ? a[1] : 1'bz; assign n = a[0] ? 'z : a[2]; leaf x (n);",
        set(),
    ),
    "gates that can be silent": ("wire n; bufif1 (n, a[0], a[1]); bufif0 (n, a[0], a[1]);", set()),
    "a wired and": ("wand n; assign n = a[0]; assign n = a[1];", set()),
    "a variable": ("logic n; always @* begin n = a[0]; if (a[1]) n = a[2]; end", set()),
    "processes": ("reg n; always @* if (a[0]) n = a[1]; always @* if (!a[0]) n = a[2];", {"n"}),
    "of other bits of a variable": ("reg [1:0] n; always @* n[0] = a[0]; always @* n[1] = a[1];", set()),
    "an initial": ("reg n = 0; initial n = 1; always @(posedge a[0]) n <= a[1];", set()),
    "loops": (
        "integer n; reg [3:0] m, o; always @* for (n = 0; n < 4; n = n + 1) m[n] = a[n];"
        "always @* for (n = 0; n < 4; n = n + 1) o[n] = a[n];",
        set(),
    ),
}


@pytest.mark.parametrize(("text", "names"), CASES.values(), ids=CASES)
def test_which_nets_have_several(tmp_path: Path, text: str, names: set[str]) -> None:
    (tmp_path / "top.sv").write_text(
        f"{LEAF}module top(input [7:0] a);\n{text} endmodule\n", encoding="utf-8"
    )
    found = several_drivers(Design((tmp_path / "top.sv",), "top"))
    assert {(place, name) for place, name, _ in found} == {("top.sv:3", name) for name in names}
    assert {kind for *_, kind in found} <= {"variable" if "reg n" in text else "net"}


def test_sources_of_any_encoding(tmp_path: Path) -> None:
    """A comment in Latin-1, also in a file that is included."""
    (tmp_path / "leaf.svh").write_bytes(f"// \xb5\n{LEAF}".encode("latin-1"))
    text = '`include "leaf.svh"\n// \xe9\nmodule top(input [7:0] a);wire n; leaf x (n), y (n); endmodule\n'
    (tmp_path / "top.sv").write_bytes(text.encode("latin-1"))
    found = several_drivers(Design((tmp_path / "top.sv",), "top"))
    assert found == {("top.sv:3", "n", "net")}


def test_the_report_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of nets Icarus, which has X where they differ, needs no such sentence."""
    net = PASSING.replace("endmodule", "wire n; assign n = x_i[0];\nassign n = w_i[0]; endmodule")
    sets = "reg v; always @* if (x_i[0]) v = 1;\nalways @(posedge clock) begin v <= 0; end endmodule"
    variable = PASSING.replace("endmodule", sets)
    (tmp_path / "mac4.sv").write_text(net, encoding="utf-8")
    (tmp_path / "mac4.yaml").write_bytes((OWN / "mac4.yaml").read_bytes())
    (tmp_path / "dut.yaml").write_text(DUT, encoding="utf-8")
    dut = load_dut(tmp_path / "dut.yaml")
    job = Job(dut, tmp_path / "build", default_set(dut.instruction, 1, 1, dut.level))
    icarus = replace(job, simulator="icarus")
    (said,) = signals_with_several_drivers(job, SourceText(net))
    assert said.startswith("several drive the same net, of which Verilator takes one: ")
    assert said.endswith(": n")
    assert (
        signals_with_several_drivers(job, SourceText(PASSING))
        == signals_with_several_drivers(icarus, SourceText(net))
        == []
    )
    (said,) = signals_with_several_drivers(icarus, SourceText(variable))
    assert said.startswith("several processes set the same variable")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert "is not known" in signals_with_several_drivers(job, SourceText(net))[0]
    with pytest.raises(SimulatorMissing, match="pip install"):
        several_drivers(Design((tmp_path / "mac4.sv",), "mac4"))
