"""The latency of a unit that is mostly wrong is measured all the same where no other comes near."""

from __future__ import annotations

from pathlib import Path

import integer_dot
import numpy as np
import pytest

from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.runs.latency import _stands_out

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


def described(folder: Path, result: str, text: str = TEXT, more: str = "") -> Path:
    file = integer_dot.planted(folder, 4, text.replace("RESULT", result)).file
    lines = file.read_text().split("reset:")[0]
    shake = f"handshake: {{kind: latency, {more}latency: measure}}\nports: {{a: a, b: b, c: c, d: d}}\n"
    file.write_text(lines + shake)
    return file


@pytest.mark.parametrize("result", ["x + 1", "~x", "x ^ 32'h5a5a5a5a"])
def test_a_wrong_unit_has_a_latency(tmp_path: Path, result: str) -> None:
    """With none of its results right; the check goes on, and says what it took."""
    asked = Options(count=200, explain=False, failures=None, build=tmp_path / "build")
    found = check(described(tmp_path, result), asked)
    assert not found.passed and found.dut.handshake.latency == 3
    assert any("mostly wrong: with 3 cycles none of the results are right" in hint for hint in found.hints)


@pytest.mark.parametrize(
    "stages",
    [
        "begin d1 <= 32'd7; d2 <= d1; d <= d2; end",
        "begin if (!en) d1 <= x; if (en) begin d2 <= d1; d <= d2; end end",
    ],
    ids=["says nothing", "one enable inverted"],
)
def test_a_unit_that_no_latency_explains_fails(stages: str, tmp_path: Path) -> None:
    text = TEXT.replace("input logic clk", "input logic clk, en").replace(
        "begin d1 <= RESULT; d2 <= d1; d <= d2; end", stages
    )
    file = described(tmp_path, "x", text, "enable: en, ")
    found = check(file, Options(count=200, explain=False, failures=None, build=tmp_path / "build"))
    assert not found.passed
    assert any("no latency from 0 to 4095 cycles makes a quarter" in hint for hint in found.hints)


def test_a_long_latency_is_found(tmp_path: Path) -> None:
    text = TEXT.replace("d1, d2;", "q [700];").replace(
        "begin d1 <= RESULT; d2 <= d1; d <= d2; end",
        "begin for (int i = 699; i > 0; i--) q[i] <= q[i - 1]; q[0] <= x; d <= q[699]; end",
    )
    options = Options(count=200, failures=None, build=tmp_path / "build", synthesis="off", four_states=False)
    found = check(described(tmp_path, "x", text), options)
    assert found.passed and found.dut.handshake.latency == 701


def test_a_lag_explains_what_is_above_chance() -> None:
    """Of a rounder most results are zero: each lag makes 60 % right, and the latency nearly all."""
    scores = np.full(256, 0.6)
    scores[4] = 0.997
    assert _stands_out(scores, 1) == (4, True)
    scores[4] = 0.65
    assert not _stands_out(scores, 1)[1]
