"""Registers that a reset leaves as they are, next to others that it sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtl_tb.check.unreset_registers import unreset_registers
from rtl_tb.dut.description import load_dut

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
clock: clk
reset: {port: rst, active: high}
handshake: {kind: valid, input: {valid: given}, output: {valid: done}}
ports: {a: a, c: b, d: d}
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
    for name, text in (("unit.yaml", UNIT), ("dut.yaml", DUT), ("plus.sv", RTL.replace("RESET", reset))):
        (tmp_path / name).write_text(text)
    found = " ".join(unreset_registers(load_dut(tmp_path / "dut.yaml")))
    assert [name for name in ("early", "sum", "again", "more", "done", "d") if f"'{name}'" in found] == named
    assert not named or "plus.sv:5" in found
