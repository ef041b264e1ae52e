"""Synthesis: cells and paths of modules whose gates can be counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from golden.circuit.synthesis import SynthesisError, synthesized
from golden.cli.app import app

pytest.importorskip("pyosys")

PARITY = """\
module top(input logic clk, input logic [7:0] a, output logic d, q);
    assign d = ^a;
    always_ff @(posedge clk) q <= d;
endmodule
"""


def test_a_parity_of_eight_bits_is_seven_gates_three_deep() -> None:
    found = synthesized({"top.sv": PARITY}, "top")
    assert (found.cells, found.registers) == (7, 1)
    assert set(found.by_type) <= {"$_XOR_", "$_XNOR_", "$_DFF_P_"}
    assert 3 <= found.longest <= 4  # the path to the register counts it


def test_what_yosys_refuses_is_one_line() -> None:
    with pytest.raises(SynthesisError, match=r"Yosys refuses top: .*nothing"):
        synthesized({"top.sv": "module top(output d); assign d = nothing; endmodule\n"}, "top")


def test_the_command_says_cells_and_path(tmp_path: Path) -> None:
    unit = Path(__file__).parents[3] / "rtl_tb" / "examples" / "own_unit" / "mac4.yaml"
    assert CliRunner().invoke(app, ["export", "c", str(unit), "--synth"]).exit_code == 2
    words = ["export", "sv", str(unit), "--out", str(tmp_path), "--prefix", "u", "--synth"]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0 and "cells, longest path" in found.output
