"""A failed check says each fault by itself, and what the description of the unit has wrong."""

from dataclasses import replace
from pathlib import Path

import changed_unit
import numpy as np
import pytest
from changed_unit import changed

from golden.number.classes import is_nan
from golden.vectors.vectorset import default_set
from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.check.reasons import looser_comparison, swapped_ports
from rtl_tb.dut.description import load_dut
from rtl_tb.engines.job import Job, Outcome
from rtl_tb.errors import RtlError
from rtl_tb.runs.verdict import judge

MUTANTS = Path(__file__).parents[3] / "rtl_tb" / "mutants"
EXAMPLES = MUTANTS.parent / "examples"

SUM = "36'(x * w);"


@pytest.mark.long
def test_two_faults_have_an_example_each(tmp_path):
    """c is not saturated at the top, and the third element is lost."""
    result = changed(
        tmp_path,
        (SUM, "36'(k == 2 ? 0 : x * w);"),
        ("acc_o <= sum[31:0];", "acc_o <= sum[31:0] | 32'd4;"),
        explain=True,
    )
    faults = {shown.fault.slug: shown for shown in result.faults}
    assert set(faults) == {"element-2-dropped", "result-bit-2-high"}
    dropped, stuck = faults["element-2-dropped"].example, faults["result-bit-2-high"].example
    assert dropped.alone and dropped.operands["a"][2] and dropped.operands["b"][2]
    assert dropped.expected & 4, "the other fault does not show"
    assert stuck.alone and not stuck.operands["a"][2] and stuck.actual == stuck.expected | 4
    failed = result.verdict.vectors.d[stuck.vector]
    assert stuck.expected or not failed, "zero only where the vector that failed was"
    report = result.as_dict()
    assert [fault["slug"] for fault in report["faults"]] == [one.fault.slug for one in result.faults]


def test_ports_that_dut_yaml_has_in_each_others_place(tmp_path, monkeypatch):
    wrong = changed_unit.DUT.replace("a: x_i, b: w_i, c: acc_i", "a: acc_i, b: w_i, c: x_i")
    monkeypatch.setattr(changed_unit, "DUT", wrong)
    result = changed(tmp_path, explain=True, count=500)
    assert result.diagnosis.hypotheses[0].slug == "a-and-c-swapped"
    assert any("a is acc_i and c is x_i" in hint for hint in result.hints)
    ports = {name: replace(at, ports=(name,)) for name, at in result.dut.ports.items()}
    assert swapped_ports(replace(result.dut, ports=ports), result.diagnosis) == []


@pytest.mark.parametrize(("nan", "zero"), [(1, 0), (0, 1), (1, 1)])
def test_a_comparison_under_which_nothing_is_wrong(nan, zero):
    """NaNs with other words and zeros of the other sign; one number that is wrong leaves no hint."""
    dut = load_dut(EXAMPLES / "wrong_f" / "dut.yaml")
    vectors = default_set(dut.instruction, 500, 1)
    d, fmt = vectors.d.copy(), dut.instruction.formats["d"]
    d[is_nan(fmt, d)] ^= nan
    d[(d << 1) == 0] ^= zero << 31
    one = np.ones(len(d), bool)
    outcome = Outcome("fast", "none", "0", d, one, ~one)
    (hint,) = looser_comparison(judge(vectors, outcome, dut.compare), dut)
    keys = [key for key, given in (("nan", nan), ("zero", zero)) if given]
    assert hint.endswith(f"write compare: {{{', '.join(f'{key}: any' for key in keys)}}}")
    outcome.actual[np.flatnonzero((d == vectors.d) & (d << 1 != 0))[0]] ^= 1
    assert looser_comparison(judge(vectors, outcome, dut.compare), dut) == []


def test_a_latency_that_nobody_measured_is_refused():
    dut = load_dut(MUTANTS / "units" / "status_flags" / "dut.yaml")
    with pytest.raises(RtlError, match="latency of status_flags is to be measured"):
        Job(dut, Path("build"), default_set(dut.instruction, 10, 1))


TILE = """
module tile2 (
    input logic clk, in_valid, output logic out_valid,
    input logic [63:0] a, b, input logic [127:0] c, output logic [127:0] d);
    always_ff @(posedge clk) begin
        out_valid <= in_valid;
        for (int row = 0; row < 2; row++)
            for (int column = 0; column < 2; column++) begin
                logic signed [31:0] sum;
                sum = c[32*(2*row+column) +: 32];
                for (int k = 0; k < 4; k++)
                    if (k != 2)
                        sum += 32'(signed'(a[8*(4*row+k) +: 8]) * 16'(signed'(b[8*(2*k+column) +: 8])));
                d[32*(2*row+column) +: 32] <= sum | 32'd4;
            end
    end
endmodule
"""
TILE_UNIT = """unit: tile2
shape: {m: 2, n: 2, k: 4}
formats: {a: s8, b: s8, c: s32, d: s32}
steps:
  - multiply: {to: products}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}
"""
TILE_DUT = """dut: tile2
top: tile2
sources: [tile2.sv]
unit: unit.yaml
level: tile
clock: clk
handshake: {kind: valid, input: {valid: in_valid}, output: {valid: out_valid}}
ports: {a: a, b: b, c: c, d: d}
"""


@pytest.mark.long
def test_each_fault_of_a_tile_has_an_example(tmp_path):
    for name, text in (("tile2.sv", TILE), ("unit.yaml", TILE_UNIT), ("dut.yaml", TILE_DUT)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    result = check(tmp_path / "dut.yaml", Options(count=2000, failures=None, build=tmp_path / "build"))
    faults = {shown.fault.slug: shown.example for shown in result.faults}
    assert set(faults) == {"element-2-dropped", "result-bit-2-high"}
    dropped, stuck = faults["element-2-dropped"], faults["result-bit-2-high"]
    assert dropped.place is not None and dropped.alone and dropped.operands["a"][2]
    assert dropped.expected & 4, "the other fault does not show"
    assert not stuck.operands["a"].any() and stuck.actual == stuck.expected | 4
