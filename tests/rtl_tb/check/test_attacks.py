"""Wrong units made to pass, and how each is found: by long waits, resets, clocks, and what lies in the run's
own files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from changed_unit import DUT, OWN, PASSING
from engine_dut import small_vectors, write_small
from long_run import long_after

from rtl_tb import engines
from rtl_tb.check import report
from rtl_tb.check.check import check
from rtl_tb.check.four_states import compare_four_states
from rtl_tb.check.options import Options
from rtl_tb.check.record import Check
from rtl_tb.engines.job import Job, Outcome
from rtl_tb.errors import ElaborationError, RtlError
from rtl_tb.runs.verdict import judge

TOP = """
module mac4 (
    input logic clock, reset, vld_i, rdy_i, input logic [31:0] x_i, w_i, acc_i,
    output logic vld_o, rdy_o, output wire [31:0] acc_o);
    wire vld;
    wire [31:0] acc;
    // extra
    core core (.clock(clock), .reset(reset), .vld_i(vld_i), .rdy_o(rdy_o), .x_i(x_i), .w_i(w_i),
               .acc_i(acc_i), .vld_o(vld), .rdy_i(rdy_i), .acc_o(acc));
    assign vld_o = vld;
    assign acc_o = acc;
endmodule
"""
FAST, ICARUS, COCOTB = ("fast", "verilator"), ("selfcheck", "icarus"), ("cocotb", "icarus")
VERILATOR = ("selfcheck", "verilator")


def attacked(folder: Path, engine: tuple[str, str], *patches: tuple[str, str], count: int = 600) -> Check:
    """The check of a right unit within a top module of which some text is replaced."""
    text = TOP
    for find, instead in patches:
        assert text.count(find) == 1, find
        text = text.replace(find, instead)
    (folder / "mac4.sv").write_text(PASSING.replace("module mac4", "module core") + text, encoding="utf-8")
    (folder / "mac4.yaml").write_bytes((OWN / "mac4.yaml").read_bytes())
    (folder / "dut.yaml").write_text(DUT, encoding="utf-8")
    options = Options(*engine, count=count, explain=False, failures=None, build=folder / "build")
    return check(folder / "dut.yaml", options)


COUNTER = "logic [7:0] n = 0; always_ff @(posedge clock) n <= {} ? 8'd0 : n + (n != 8'hff);"
LONG_STALL = (
    ("// extra", COUNTER.format("!vld_o || rdy_i")),
    ("acc_o = acc", "acc_o = acc ^ {31'd0, n > 8'd200}"),
)
LONG_IDLE = (("// extra", COUNTER.format("vld_i")), (".acc_i(acc_i)", ".acc_i(acc_i ^ {31'd0, n > 8'd200})"))
LAST_WAITS = (
    ("// extra", COUNTER.format("vld_i || !vld_o || rdy_i")),
    ("acc_o = acc", "acc_o = acc ^ {31'd0, n > 8'd8}"),
)
TAKEN_IN_RESET = (
    ("// extra", "logic [31:0] taken; always_ff @(posedge clock) if (reset) taken <= acc_i;"),
    ("acc_o = acc", "acc_o = acc ^ taken"),
)
FOLLOWS = (("vld_o = vld", "vld_o = vld && rdy_i"),)
GLITCH = ((".clock(clock)", ".clock(clock && (vld_i || vld || reset))"),)


@pytest.mark.parametrize(
    ("engine", "patches"),
    [
        pytest.param(ICARUS, LONG_STALL, id="icarus-stall"),
        pytest.param(ICARUS, LONG_IDLE, id="icarus-idle"),
        pytest.param(ICARUS, LAST_WAITS, id="icarus-last-waits"),
        pytest.param(ICARUS, TAKEN_IN_RESET, id="icarus-reset"),
        pytest.param(ICARUS, FOLLOWS, id="icarus-follows"),
        pytest.param(ICARUS, GLITCH, id="icarus-glitch"),
        pytest.param(FAST, LONG_STALL, id="fast-stall", marks=pytest.mark.long),
        pytest.param(FAST, LONG_IDLE, id="fast-idle", marks=pytest.mark.long),
        pytest.param(FAST, LAST_WAITS, id="fast-last-waits", marks=pytest.mark.long),
        pytest.param(FAST, GLITCH, id="fast-glitch"),
        pytest.param(COCOTB, LONG_STALL, id="cocotb-stall"),
        pytest.param(COCOTB, LONG_IDLE, id="cocotb-idle", marks=pytest.mark.long),
        pytest.param(COCOTB, LAST_WAITS, id="cocotb-last-waits", marks=pytest.mark.long),
        pytest.param(COCOTB, TAKEN_IN_RESET, id="cocotb-reset", marks=pytest.mark.long),
        pytest.param(COCOTB, FOLLOWS, id="cocotb-follows", marks=pytest.mark.long),
    ],
)
def test_a_wrong_unit_never_passes(tmp_path, engine, patches):
    """A result that changes in a long stall; a unit that sleeps; one that keeps what it saw in its reset; a
    valid that follows ready; a clock that an input gates without a latch."""
    assert not attacked(tmp_path, engine, *patches).passed


@pytest.mark.parametrize(
    "engine", long_after(1, [(ICARUS,), (FAST,), (COCOTB,)], ids=["icarus", "fast", "cocotb"])
)
def test_latches_that_are_open_while_the_clock_is_high(tmp_path, engine):
    """Inputs change with the rising edge, while the latch is open: the unit is right."""
    latch = "logic [31:0] held; always_latch if (clock) held = acc_i;"
    result = attacked(tmp_path, engine, ("// extra", latch), (".acc_i(acc_i)", ".acc_i(held)"))
    assert result.passed


@pytest.mark.long
def test_a_valid_that_follows_ready_in_a_unit_with_delays(tmp_path):
    """No look at the path itself is possible there; that no result ever waits tells it."""
    result = attacked(tmp_path, FAST, *FOLLOWS, ("// extra", "initial #1;"))
    assert {failure.kind for failure in result.verdict.outcome.failures} == {"valid_follows_ready"}


TWO_DRIVERS = (("acc_o = acc", "acc_o = acc, acc_o = 32'd0"),)
HIGH_IMPEDANCE = (("acc_o = acc", "acc_o = |acc ? acc : 32'bz"),)
BEYOND = (
    ("// extra", "wire [4:0] one = {5{acc == 32'hdeadbeef}}; wire [2:0] at = {1'b1, acc[0], 1'b1};"),
    ("acc_o = acc", "acc_o = acc ^ {31'd0, one[at]}"),
)
BY_ZERO = (("acc_o = acc", "acc_o = acc ^ acc / (acc ^ acc)"),)


@pytest.mark.parametrize(
    "patches",
    [
        pytest.param(TWO_DRIVERS, id="drivers"),
        pytest.param(HIGH_IMPEDANCE, id="z", marks=pytest.mark.long),
        pytest.param(BEYOND, id="beyond", marks=pytest.mark.long),
        pytest.param(BY_ZERO, id="by-zero", marks=pytest.mark.long),
    ],
)
def test_what_verilator_has_no_state_for_never_passes(tmp_path, patches):
    """It takes the bits that are expected, whatever unset signals start from; Icarus shows X or Z."""
    result = attacked(tmp_path, FAST, *patches)
    assert not result.passed
    assert result.four_states.unknown == result.verdict.unknown.sum() > 0
    assert "X or Z" in result.as_dict()["four_states"]["sentence"]


def test_without_icarus_nobody_looked_and_the_check_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("MMAGOLD_IVERILOG", "nowhere")
    result = attacked(tmp_path, FAST)
    assert result.passed
    assert "not tried in four states: MMAGOLD_IVERILOG" in result.as_dict()["four_states"]["sentence"]


SHOWS_TO_ICARUS = "acc_o =\n`ifdef __ICARUS__\nacc\n`else\n~acc\n`endif\n"
SHOWS_TO_VERILATOR = SHOWS_TO_ICARUS.replace("__ICARUS__", "VERILATOR")
HIDES_FROM_SYNTHESIS = "acc_o = acc\n// synopsys translate_off\n- 32'd1\n// synopsys translate_on\n+ 32'd1"
HIDES_FROM_YOSYS = "acc_o =\n`ifdef YOSYS\n~acc\n`else\nacc\n`endif\n"


@pytest.mark.parametrize(
    ("engine", "text", "by"),
    [
        pytest.param(ICARUS, SHOWS_TO_ICARUS, "synthesis", id="icarus"),
        pytest.param(FAST, SHOWS_TO_VERILATOR, "synthesis", id="verilator", marks=pytest.mark.long),
        pytest.param(ICARUS, HIDES_FROM_SYNTHESIS, "synthesis", id="pragma", marks=pytest.mark.long),
        pytest.param(ICARUS, HIDES_FROM_YOSYS, "Yosys", id="yosys", marks=pytest.mark.long),
    ],
)
def test_a_unit_that_is_right_for_one_tool_alone_never_passes(tmp_path, engine, text, by):
    result = attacked(tmp_path, engine, ("acc_o = acc", text))
    assert not result.passed
    wrong = result.synthesis[-1]
    assert (wrong.by, wrong.failed) == (by, 600)
    assert "mac4.sv:" in wrong.sentence
    assert wrong.sentence in report.markdown(result.as_dict())


def test_a_cell_that_only_synthesis_has_is_told(tmp_path):
    """The unit passes, and the report says what was not checked."""
    cell = "`ifdef SYNTHESIS\nvendor_cell cell_of_theirs (clock);\n`endif\n"
    result = attacked(tmp_path, ICARUS, ("// extra", cell))
    assert result.passed
    assert "that was not checked: Yosys" in result.notes[0]
    assert "vendor_cell" in result.notes[0]
    data = result.as_dict()
    assert result.notes[0] in report.html(data).replace("&#39;", "'")
    assert "differ; not checked as synthesis reads it" in report.headline(data)
    skipped = ElementTree.fromstring(report.junit(data)).findall(".//testcase/skipped")
    assert [each.get("message") for each in skipped] == result.not_synthesised
    asked = replace(result.options, synthesis="off")
    assert check(tmp_path / "dut.yaml", asked).synthesis == ()
    with pytest.raises(ElaborationError, match="mac4 passes, but synthesis reads another text"):
        check(tmp_path / "dut.yaml", replace(asked, synthesis="require"))


@pytest.mark.long
def test_what_only_a_simulator_needs_is_no_failure(tmp_path):
    watched = "// synopsys translate_off\ninitial $display();\n// synopsys translate_on\n"
    result = attacked(tmp_path, ICARUS, ("// extra", watched))
    assert result.passed
    assert "as it reads it 600 vectors are right" in result.synthesis[0].sentence


READS_VECTORS = """
    reg [8*200-1:0] folder; reg [127:0] vectors [0:16383]; reg [31:0] n; reg found;
    initial begin
        n = 0;
        found = $value$plusargs("mmagold_files=%s", folder);
        $readmemh({folder, "/vectors_0.hex"}, vectors);
    end
    always @(posedge clock) if (vld_o && rdy_i) n <= n + 1;
"""


def test_the_files_of_a_run_hold_no_result(tmp_path):
    """A unit that answers with what it reads there is wrong."""
    result = attacked(
        tmp_path, ICARUS, ("// extra", READS_VECTORS), ("acc_o = acc", "acc_o = vectors[n][31:0]")
    )
    assert result.verdict.wrong.sum() > 500


PASTED = "`define NAME(a, b) a``b\n"
FORCE = "force `NAME(mmagold,_tb).expected = `NAME(mmagold,_tb).out_data;"


@pytest.mark.parametrize(
    ("engine", "patches"),
    [
        (
            ICARUS,
            (("// extra", f"`ifdef __ICARUS__\nalways @(vld) {FORCE}\n`endif"), ("\nmod", f"{PASTED}mod")),
        ),
        pytest.param(
            VERILATOR,
            (
                (
                    "\nmod",
                    f"{PASTED}module evil; always @* {FORCE} endmodule\nbind mmagold_tb evil evil();\nmod",
                ),
            ),
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_unit_that_reaches_into_the_testbench_is_refused(tmp_path, engine, patches):
    """However its name is put together; a comment or a string may say it."""
    said = ("assign vld_o = vld;", 'assign vld_o = vld; // mmagold_tb\ninitial $write("mmagold_dut");')
    with pytest.raises(RtlError, match="names mmagold_tb, a module of the checker"):
        attacked(tmp_path, engine, *patches)
    assert attacked(tmp_path, engine, said).passed


@pytest.mark.long
def test_an_accumulator_that_is_too_narrow_never_passes(tmp_path):
    """It overflows after 16,384 of the largest dot products: no sequence of the usual vectors is so long."""
    unit = OWN.parents[1] / "mutants" / "units" / "systolic_mac"
    for file in unit.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    rtl = (unit / "systolic_row.sv").read_text(encoding="utf-8")
    adds = "(clr_q ? '0 : acc_o) + AccWidth'(psum[K])"
    assert rtl.count(adds) == 1
    options = Options(count=300, explain=False, failures=None, build=tmp_path / "build")
    for text, passes in ((rtl, True), (rtl.replace(adds, f"AccWidth'(signed'(31'({adds})))"), False)):
        (tmp_path / "systolic_row.sv").write_text(text, encoding="utf-8")
        assert check(tmp_path / "dut.yaml", options).passed == passes


DECLARED = "logic [31:0] y; always_comb begin y = acc; {} end"
FULL = "unique case (acc[3:0]) 4'h7: y = acc; 4'h8: y = acc + 32'd0; endcase"
PARALLEL = (
    "case (1'b1) // synthesis parallel_case\nacc[31]: y = acc; 1'b1: y = acc ^ {31'd0, acc[31]}; endcase"
)

MIDDLE = PARALLEL.replace("1'b1:", "acc[31]: y = acc | 32'd1; 1'b1:").replace(" ^ {31'd0, acc[31]}", "")
"""Whether the first or the last of those that match is taken, the result is right."""
IN_SYNTHESIS = "case (acc[3:0])\n`ifdef SYNTHESIS\n// synopsys full_case\n`endif\n4'h7: y = acc; endcase"


@pytest.mark.long
@pytest.mark.parametrize(
    "code",
    [FULL, PARALLEL, MIDDLE, IN_SYNTHESIS],
    ids=["full", "parallel", "middle", "in-synthesis"],
)
def test_a_unit_that_needs_what_synthesis_may_choose_never_passes(tmp_path, code):
    """Simulators go on where no item matches, and take the first of several."""
    result = attacked(
        tmp_path, ICARUS, ("// extra", DECLARED.format(code)), ("acc_o = acc", "acc_o = y"), count=200
    )
    assert not result.passed
    assert result.unset is not None and result.unset.wrong["as simulated"] == 0
    assert result.unset.by == ("synthesis" if "SYNTHESIS" in code else "")
    assert "mac4.sv" in result.unset.suspects[0]


@pytest.mark.parametrize(
    ("declared", "noted"),
    [
        ("logic [31:0] y = 32'd0;", True),
        pytest.param("reg [31:0] y; initial y = 32'd0;", True, marks=pytest.mark.long),
        pytest.param(
            "reg [31:0] y = 32'd1; always @(posedge clock) y <= 32'd0;", False, marks=pytest.mark.long
        ),
    ],
    ids=["declared", "initial", "driven"],
)
def test_a_unit_that_needs_an_initial_value_passes_with_a_note(tmp_path, declared, noted):
    """Synthesis for FPGAs keeps it, so that it may be what is meant."""
    result = attacked(tmp_path, FAST, ("// extra", declared), ("acc_o = acc", "acc_o = acc ^ y"))
    assert result.passed
    assert len(result.notes) == noted
    assert all("initial values of signals" in each and "mac4.sv:" in each for each in result.notes)


COPIED_CLOCK = (
    (
        "// extra",
        "logic c2; always @(clock) c2 <= clock; logic [31:0] q; always @(posedge clock) q <= acc_i;",
    ),
    (".clock(clock)", ".clock(c2)"),
    (".acc_i(acc_i)", ".acc_i(q)"),
)
"""A clock that a register makes is late by what the simulator takes for no time: Verilator's order of events
gives right results, that of Icarus none."""


@pytest.mark.parametrize(
    "engine", [pytest.param(FAST, marks=pytest.mark.long), ICARUS], ids=["fast", "icarus"]
)
def test_a_clock_that_races_with_its_data_is_no_silent_pass(tmp_path, engine):
    result = attacked(tmp_path, engine, *COPIED_CLOCK)
    assert not result.passed or "; Icarus answers differently" in report.headline(result.as_dict())


def test_where_icarus_answers_otherwise_the_report_says_so(tmp_path, monkeypatch):
    """Which of two simulators is right is not for the check to say: no failure, but no silence either."""
    dut = write_small(tmp_path)
    vectors = small_vectors(dut, 20)
    came = {"received": np.ones(20, bool), "unknown": np.zeros(20, bool)}
    right = Outcome("fast", "verilator", "", vectors.d, **came)
    job, verdict = Job(dut, tmp_path, vectors), judge(vectors, right, dut.compare)
    monkeypatch.setattr(engines, "build", lambda *_: tmp_path)
    for actual, other in ((vectors.d, False), (vectors.d ^ 1, True)):
        monkeypatch.setattr(engines, "run", lambda *_, actual=actual: replace(right, actual=actual))
        asked, _, still = compare_four_states(job, verdict)
        assert still is verdict
        assert asked.other == other == ("answers differently from Verilator" in asked.sentence)
