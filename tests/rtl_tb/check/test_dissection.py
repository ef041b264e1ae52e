"""A DUT as a black box: what it computes instead of the instruction that was meant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from integer_dot import planted

import golden
from golden.identify.blackbox.naming import differences
from golden.identify.blackbox.report import Found
from golden.program.steps import Align
from golden.vectors.vectorset import default_set
from rtl_tb.check.check import check
from rtl_tb.check.dissection import Dissection, dissect
from rtl_tb.check.options import Options
from rtl_tb.check.report import markdown
from rtl_tb.engines.job import Job

UNIT = """module dot2 (
    input  logic        clk, rst_n, in_valid, out_ready,
    input  logic [15:0] a, b,
    input  logic [31:0] c,
    output logic        in_ready, out_valid,
    output logic [31:0] d
);
    assign in_ready = !out_valid || out_ready;
    logic signed [31:0] sum;
    assign sum = signed'(a[7:0]) * signed'(b[7:0]) + signed'(a[15:8]) * signed'(b[15:8]);
    always_ff @(posedge clk)
        if (!rst_n) out_valid <= 1'b0;
        else if (in_ready) begin
            out_valid <= in_valid;
            d <= sum + c;
        end
endmodule
"""


@pytest.mark.long
def test_a_mutant_is_told_by_its_difference_from_the_sound_unit(tmp_path: Path) -> None:
    dut = planted(tmp_path, 2, UNIT, ("sum + c", "sum - c"))
    job = Job(dut, tmp_path / "build", default_set(dut.instruction, 0, 1, dut.level))
    found = dissect(job, "fast", 300, lambda what, done, of: None)
    assert found.found.explains and found.differs == ("multiply of a and b: negate: c instead of none",)
    assert "Compared with the instruction: multiply of a and b: negate: c" in found.sentence


@pytest.mark.long
def test_the_check_dissects_what_no_hypothesis_explains(tmp_path: Path) -> None:
    """The sum with bits of a in it: no step can say that, and nothing else is claimed."""
    planted(tmp_path, 2, UNIT, ("sum + c", "(sum ^ 32'(a[2:0] & a[10:8])) + c"))
    options = Options(count=2000, dissect=8, failures=tmp_path / "failures", build=tmp_path / "build")
    result = check(tmp_path / "dut.yaml", options)
    assert not result.passed and result.dissection is not None and result.capsule is not None
    assert not result.dissection.found.explains
    assert "what stands in its YAML is not the DUT" in markdown(result.as_dict())
    assert (result.capsule / "dissected.md").read_text("utf-8") == result.dissection.found.report


def test_differences_of_units_leave_out_what_no_question_decides() -> None:
    """One key of the alignment, and one that makes no difference in an exact sum."""
    volta = golden.instruction("volta", "HMMA.884.F32.F32")
    operation = volta.program.operations[0]
    (align,) = operation.steps_of(Align)
    bits = tuple((name, 19) for name, _ in align.fraction_bits)
    steps = [replace(align, fraction_bits=bits, floor=-126) if s == align else s for s in operation.steps]
    program = replace(volta.program, operations=(operation.with_steps(steps),))
    other = replace(volta, program=program)
    key = "align of products and c"
    floor = {f"{key}: floor": ["none" if align.floor is None else str(align.floor)]}
    assert differences(other, volta, floor) == [
        f"{key}: fraction_bits: products 19, c 19 instead of products 23, c 23"
    ]
    told = differences(other, volta, {})
    assert told is not None and len(told) == 2
    chain = golden.instruction("hopper", "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64")
    assert differences(chain, volta, {}) is None


def test_reports_tell_the_found_unit_and_no_more() -> None:
    volta = golden.instruction("volta", "HMMA.884.F32.F32")
    right = Found("dut", volta, "unit: x\n", {"ties": (0, 100)}, (), fresh=80)
    assert Dissection(right, ("align: 19",)).sentence.endswith("Compared with the instruction: align: 19")
    other = Dissection(replace(right, order="((0 + 1) + c)"), None).sentence
    assert other.endswith("said in other operations than the instruction; masks show the order ((0 + 1) + c)")
    near = replace(right, differing={"ties": (3, 100)})
    assert "is not the DUT" in Dissection(near, None).sentence
    assert "YAML may not be the DUT" in Dissection(replace(right, fresh=0), None).sentence
    assert Dissection(near, None).as_dict()["explains"] is False
