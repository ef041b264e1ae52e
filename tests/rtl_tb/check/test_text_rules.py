"""Registers that a reset leaves as they are, next to others that it sets."""

from __future__ import annotations

from pathlib import Path

import pytest
from plus_unit import plus_unit

from rtl_tb.check.text_rules import unreset_registers
from rtl_tb.dut.description import load_dut

pytest.importorskip("pyslang")
KEYS = """clock: clk
reset: {port: rst, active: high}
handshake: {kind: valid, input: {valid: given}, output: {valid: done}}
"""
RTL = """module plus (input clk, rst, given, input [7:0] a, b, output logic done, output logic [7:0] d);
  logic early;
  logic [7:0] sum, again, more;
  always_ff @(posedge clk) begin
    if (rst) begin
      RESET
    end else begin
      early <= given;
      sum <= a + b;
      more <= a;
      again[3:0] <= b[3:0];
      done <= early;
      d <= sum;
    end
  end
endmodule
"""


@pytest.mark.parametrize(
    ("reset", "named"),
    [
        ("done <= 0; sum <= 0; d <= '0; again <= 0; more <= 0;", ["early"]),
        ("early <= 0; done <= 0; sum <= 0; d <= '0; more <= 0;", ["again"]),
        ("early <= 0; done <= 0; sum <= 0; d <= '0; again <= 0; more <= 0;", []),
        ("early <= 0; done <= 0;", []),  # a data path without reset
        ("done <= early; sum <= 0; d <= '0; again <= 0; more <= 0;", []),  # no reset: it moves data
    ],
)
def test_a_register_without_the_reset_of_its_process(reset: str, named: list[str], tmp_path: Path) -> None:
    file = plus_unit(tmp_path, "plus.sv", RTL.replace("RESET", reset), KEYS)
    found = " ".join(unreset_registers(load_dut(file)))
    assert [name for name in ("early", "sum", "again", "more", "done", "d") if f"'{name}'" in found] == named
    assert not named or "plus.sv:5" in found
