"""The latency of a unit that is mostly wrong is measured all the same where no other comes near."""

from __future__ import annotations

from pathlib import Path

import integer_dot
import pytest

from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.errors import RtlError

# Three stages; RESULT is what it computes of x, the right sum.
TEXT = """module dot4 (input logic clk, input logic [31:0] a, b, c, output logic [31:0] d);
  logic [31:0] x, d1, d2;
  always_comb begin
    x = c;
    for (int k = 0; k < 4; k++) x = x + 32'($signed(a[8*k +: 8]) * $signed(b[8*k +: 8]));
  end
  always_ff @(posedge clk) begin d1 <= RESULT; d2 <= d1; d <= d2; end
endmodule
"""


def described(folder: Path, result: str) -> Path:
    file = integer_dot.planted(folder, 4, TEXT.replace("RESULT", result)).file
    lines = file.read_text().split("reset:")[0]
    shake = "handshake: {kind: latency, latency: measure}\nports: {a: a, b: b, c: c, d: d}\n"
    file.write_text(lines + shake)
    return file


@pytest.mark.parametrize("result", ["x + 1", "~x", "x ^ 32'h5a5a5a5a"])
def test_a_wrong_unit_has_a_latency(tmp_path: Path, result: str) -> None:
    """With none of its results right; the check goes on, and says what it took."""
    asked = Options(count=200, explain=False, failures=None, build=tmp_path / "build")
    found = check(described(tmp_path, result), asked)
    assert not found.passed and found.dut.handshake.latency == 3
    assert any("mostly wrong: with 3 cycles none of the results are right" in hint for hint in found.hints)


def test_a_unit_that_says_nothing_has_none(tmp_path: Path) -> None:
    with pytest.raises(RtlError, match="no latency from 0 to 255 cycles explains the results"):
        check(described(tmp_path, "32'd7"), Options(count=200, failures=None, build=tmp_path / "build"))
