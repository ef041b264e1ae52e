"""A unit of few operand bits is proved with all of them: in the netlist, and again in the simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden.proof import verdict
from golden.proof.sweep import OPEN, PROVED, REFUTED
from rtl_tb.check.options import Options
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.prove import netlist
from rtl_tb.prove.proof import Proof, prove
from rtl_tb.qualify.qualification import Equivalence, compare

pytest.importorskip("bitwuzla")
pytest.importorskip("pyosys")

UNIT = """
unit: product
title: A product of signed bytes
shape: {k: 1}
formats: {a: s8, b: s8, d: s32}
steps:
  - multiply: {to: products}
  - sum: {of: [products], to: total}
  - round: {of: total, rounding: toward_zero, overflow: saturate, zero: positive}
"""
# Digits of radix 4, which no word of the specification is.
BOOTH = """
    logic [8:0] e; logic signed [16:0] p; logic signed [9:0] x; logic k;
    always_comb begin
        e = {b, 1'b0}; p = 0; x = 10'($signed(a));
        for (int i = 0; i < 4; i++) begin
            case (e[2*i+:3])
                3'b001, 3'b010: p = p + (17'(x) << 2 * i);
                3'b011: p = p + (17'(x) << 2 * i + 1);
                3'b100: p = p - (17'(x) << 2 * i + 1);
                3'b101, 3'b110: p = p - (17'(x) << 2 * i);
                default: ;
            endcase
        end
    end
    always_ff @(posedge clk) begin out_valid <= in_valid && rst_n; d <= RESULT; end
"""
RIGHT = "32'(p)"


@pytest.fixture(autouse=True)
def _no_lemmas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "verdict_of", lambda _sweep: (OPEN, None))


def unit(text: str, folder: Path) -> Dut:
    ports = "input logic clk, rst_n, in_valid, input logic [7:0] a, b, output logic out_valid"
    module = f"module booth ({ports}, output logic [31:0] d);\n{text}\nendmodule\n"
    (folder / "booth.sv").write_text(module)
    (folder / "product.yaml").write_text(UNIT)
    (folder / "dut.yaml").write_text(
        "dut: booth\ntop: booth\nsources: [booth.sv]\nunit: product.yaml\nclock: clk\n"
        "reset: {port: rst_n, active: low}\n"
        "handshake: {kind: valid, input: {valid: in_valid}, output: {valid: out_valid}}\n"
        "ports: {a: a, b: b, d: d}\n"
    )
    return load_dut(folder / "dut.yaml")


def proof(result: str, folder: Path, before: str = "") -> Proof:
    options = Options(failures=folder / "failures", build=folder / "build", budget=5.0)
    return prove(unit(before + BOOTH.replace("RESULT", result), folder), 60, options)


def test_it_is_proved_and_says_how(tmp_path: Path) -> None:
    found = proof(RIGHT, tmp_path)
    assert found.verdict == PROVED and found.outcome.exhausted == 1 << 16
    assert "Verilator" in found.outcome.simulated
    assert len(found.outcome.faults) == len(found.outcome.changes) == verdict.FAULTS


def test_one_wrong_pair_is_refuted_and_replayed(tmp_path: Path) -> None:
    found = proof("a == 8'd77 && b == 8'd200 ? 5 : 32'(p)", tmp_path)
    assert found.verdict == REFUTED and found.operands is not None
    assert {name: int(codes[0]) for name, codes in found.operands.items()} == {"a": 77, "b": 200}


def of_mutant(result: str, folder: Path) -> Equivalence:
    for name in ("one", "other"):
        (folder / name).mkdir()
    one = unit(BOOTH.replace("RESULT", RIGHT), folder / "one")
    return compare(one, unit(BOOTH.replace("RESULT", result), folder / "other"), 60, folder / "build")


@pytest.mark.long
def test_a_mutant_is_proved_to_be_equivalent_by_the_same_engines(tmp_path: Path) -> None:
    found = of_mutant("32'($signed(p))", tmp_path)
    assert found.verdict == PROVED and found.how.startswith("all 65,536 operands computed")


def test_a_mutant_is_refuted_by_the_same_engines(tmp_path: Path) -> None:
    found = of_mutant("a == 77 && b == 200 ? 5 : 32'(p)", tmp_path)
    assert found.verdict == REFUTED and found.operands is not None
    assert {name: int(codes[0, 0]) for name, codes in found.operands.items()} == {"a": 77, "b": 200}


def test_an_x_that_shows_at_one_pair_is_not_proved(tmp_path: Path) -> None:
    found = proof("a == 8'd77 && b == 8'd200 ? 'x : 32'(p)", tmp_path)
    assert found.verdict != PROVED


def test_a_text_that_the_simulator_alone_gets_wrong_once_is_not_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(netlist, "other_readings", lambda _dut: [])  # which sees the branch
    branch = "`ifdef VERILATOR\nwire wrong = a == 77 && b == 200;\n`else\nwire wrong = 0;\n`endif\n"
    found = proof("wrong ? 5 : 32'(p)", tmp_path, branch)
    assert found.verdict == OPEN and "1 of the first 65,536 are wrong in Verilator" in found.open[0]
