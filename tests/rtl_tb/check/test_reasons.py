"""A failed check says each fault by itself, and what the description of the unit has wrong."""

from pathlib import Path

import pytest
from changed_unit import changed

from golden.vectors.vectorset import default_set
from rtl_tb.dut.description import load_dut
from rtl_tb.engines.job import Job
from rtl_tb.errors import RtlError

MUTANTS = Path(__file__).parents[3] / "rtl_tb" / "mutants"

SUM = "36'(x * w);"


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
    assert stuck.alone and not stuck.operands["a"].any() and stuck.actual == stuck.expected | 4
    report = result.as_dict()
    assert [fault["slug"] for fault in report["faults"]] == [one.fault.slug for one in result.faults]


def test_the_polarity_of_the_reset(tmp_path):
    result = changed(tmp_path, ("if (reset) vld_o", "if (!reset) vld_o"), explain=True, timeout_cycles=200)
    assert any("the reset is active low, not high" in hint for hint in result.hints)
    assert not result.passed


def test_widths_that_the_lint_warns_of(tmp_path):
    result = changed(tmp_path, ("logic signed [35:0] sum;", "logic signed [30:0] sum;"), explain=True)
    assert any("lint warns of widths" in hint and "mac4.sv:" in hint for hint in result.hints)


def test_a_latency_that_nobody_measured_is_refused():
    dut = load_dut(MUTANTS / "units" / "status_flags" / "dut.yaml")
    with pytest.raises(RtlError, match="latency of status_flags is to be measured"):
        Job(dut, Path("build"), default_set(dut.instruction, 10, 1))
