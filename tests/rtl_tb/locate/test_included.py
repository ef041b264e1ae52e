"""A change in a module that a source includes."""

from __future__ import annotations

from pathlib import Path

import pytest
from plus_unit import plus_unit

from rtl_tb.check.check import check
from rtl_tb.check.options import Options

pytest.importorskip("pyslang")
OUTER = """`include "inner.svh"
module plus (input [7:0] a, b, output [7:0] d);
  inner u_inner (.a, .b, .d);
endmodule
"""
INNER = """module inner (input [7:0] a, b, output [7:0] d);
  assign d = a + b - (a > 8'd77);
endmodule
"""


def test_the_line_of_a_module_that_a_source_includes(tmp_path: Path) -> None:
    (tmp_path / "inner.svh").write_text(INNER)
    file = plus_unit(tmp_path, "plus.sv", OUTER)
    options = Options(count=2000, failures=None, repair=20, build=tmp_path / "b")
    found = check(file, options)
    (edit,) = found.repairs[0].edits
    assert (edit.file.name, edit.line) == ("inner.svh", 2) and found.repairs[0].whole
