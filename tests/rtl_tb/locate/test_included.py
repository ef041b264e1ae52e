"""A change in a module that a source includes."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtl_tb.check.check import check
from rtl_tb.check.options import Options

pytest.importorskip("pyslang")
UNIT = """unit: plus
shape: {k: 1}
formats: {a: u8, c: u8, d: u8}
steps:
  - sum: {of: [a, c], to: total}
  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}
"""
DUT = """top: plus
sources: [plus.sv]
unit: unit.yaml
handshake: {kind: combinational}
ports: {a: a, c: b, d: d}
"""
OUTER = """`include "inner.svh"
module plus (input [7:0] a, b, output [7:0] d);
  inner u_inner (.a, .b, .d);
endmodule
"""
INNER = """module inner (input [7:0] a, b, output [7:0] d);
  assign d = a + b - (a == 8'd77);
endmodule
"""


def test_the_line_of_a_module_that_a_source_includes(tmp_path: Path) -> None:
    for name, text in (
        ("unit.yaml", UNIT),
        ("dut.yaml", DUT),
        ("plus.sv", OUTER),
        ("inner.svh", INNER),
    ):
        (tmp_path / name).write_text(text)
    options = Options(count=2000, failures=None, repair=60, build=tmp_path / "b")
    found = check(tmp_path / "dut.yaml", options)
    (edit,) = found.repairs[0].edits
    assert (edit.file.name, edit.line) == ("inner.svh", 2) and found.repairs[0].whole
