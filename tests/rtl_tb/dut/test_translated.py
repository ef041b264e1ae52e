"""SystemVerilog that Icarus Verilog cannot read, run by it as a translation: no X gets lost, and what a
translation leaves out is found in the source."""

from __future__ import annotations

import numpy as np
import pytest
from long_run import long_after

from golden.vectors.vectorset import VectorSet, default_set
from rtl_tb import engines
from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.dut.description import load_dut
from rtl_tb.engines.job import Job
from rtl_tb.errors import ElaborationError
from rtl_tb.simulators import simulators, translators

UNIT = (
    "unit: modern\nshape: {k: 1}\nformats: {a: s8, b: s8, c: s32, d: s32}\nprogram: [integer_dot_add: {}]\n"
)
DUT = """dut: modern
top: modern
sources: [modern.sv]
unit: unit.yaml
clock: clk
reset: {port: rst, active: high}
handshake: {kind: valid, input: {valid: in_valid}, output: {valid: out_valid}}
ports: {a: a, b: b, c: c, d: d}
"""
RTL = """
package types;
    typedef struct packed { logic [7:0] a; logic [7:0] b; logic [31:0] c; } ops_t;
    localparam ops_t NONE = '{default: '0};   // Icarus Verilog 11: a parameter of this type cannot be created
endpackage
module modern import types::*; (input logic clk, rst, in_valid, input logic signed [7:0] a, b,
        input logic signed [31:0] c, output logic out_valid, output logic signed [31:0] d);
    ops_t ops, part;
    logic [31:0] nobody, never, latched, memory [16], constants [3];
    logic [31:0] total, answer;
    always_comb begin
        ops = NONE;
        if (in_valid) ops = '{a: a, b: b, c: c};
    end
    assign part.a = ops.a;   // part.b stays without a driver
    assign constants = '{1, 2, 3};
    function automatic logic [31:0] halfway(logic [31:0] x);
        if (!x[0]) return x;
    endfunction
    always_latch if (c == 32'h0badcafe) latched = c;
    always_ff @(posedge clk) begin
        if (c == 32'h0badcafe) never <= c;
        if (c[3:0] != 15) memory[c[3:0]] <= total;
    end
    wire [3:0] fault = c[31:8] == 24'hdead0f ? c[3:0] : 4'd0;
    always_comb begin
        total = 32'(signed'(ops.a)) * 32'(signed'(ops.b)) + ops.c;
        answer = total;
        case (fault)
            1: answer = total + nobody;
            2: answer = total ^ (never & 32'd1);
            3: answer[7] = 1'bx;
            4: answer = total + constants[c[7:4] + 3];
            5: answer = latched;
            6: answer = total | 32'(part.b);
            7: answer = memory[4'd15] + total;
            8: answer = halfway(32'd1 | total);
            9: if (never[0]) answer = total + 1;
            10: case (never[1:0]) 2'd1: answer = 0; default: answer = total; endcase
            11: answer[0] = total[c[5:0] + 6'd32];
            12: answer = total / 32'(c[4]);
            default: ;
        endcase
    end
    always_ff @(posedge clk) begin
        out_valid <= in_valid && !rst;
        d <= answer;
    end
endmodule
"""
FAULTS = range(1, 13)


def write(folder, rtl=RTL):
    for name, text in (("unit.yaml", UNIT), ("modern.sv", rtl), ("dut.yaml", DUT)):
        (folder / name).write_text(text)
    return folder / "dut.yaml"


def job_of(folder, simulator="icarus"):
    """Every fourth vector has a fault, each of FAULTS thrice."""
    dut = load_dut(write(folder))
    drawn = default_set(dut.instruction, 4 * 3 * len(FAULTS), seed=2)
    c = np.where(drawn.operands["c"] >> 4 == 0xDEAD0F0, 0, drawn.operands["c"])
    c[::4] = 0xDEAD0F00 + np.tile(list(FAULTS), 3)
    operands = drawn.operands | {"c": c.astype(np.uint32)}
    d = np.asarray(dut.instruction.dot(**operands))
    vectors = VectorSet(drawn.instruction, drawn.level, operands, d, drawn.kinds, drawn.seed)
    return Job(dut, folder / "build", vectors, simulator)


def test_every_x_of_the_source_is_an_x_of_the_translation(tmp_path):
    """Also where the source would take a branch by chance: conditions and selectors that are X (9, 10)."""
    job = job_of(tmp_path)
    outcome = engines.run("selfcheck", job)
    assert outcome.translated.startswith("Yosys ")
    assert np.flatnonzero(outcome.unknown).tolist() == list(range(0, len(job.vectors), 4))
    assert (outcome.actual == job.vectors.d)[~outcome.unknown].all()


def right(rtl, **changes):
    """The unit without its faults, and with changed lines instead."""
    text = rtl.replace("case (fault)", "case (4'd0)")
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new)
    return text


LEFT_OUT = {
    "nothing": None,
    "a delay longer than the clock's period": (
        "assign part.a",
        "assign #12 out_valid = valid; assign part.a",
    ),
    "the text for synthesis alone is right": (
        "d <= answer;",
        "`ifdef SYNTHESIS\nd <= answer;\n`else\nd <= answer + (c == 7);\n`endif",
    ),
    "a fault between pragmas": (
        "d <= answer;",
        "d <= answer\n// synopsys translate_off\n + 1\n// synopsys translate_on\n;",
    ),
}


def options(folder, **more):
    return Options("selfcheck", "icarus", build=folder / "build", failures=None, explain=False, **more)


@pytest.mark.parametrize("what", long_after(1, reversed(LEFT_OUT)))
def test_what_a_translation_leaves_out_is_no_pass(tmp_path, what):
    changed = LEFT_OUT[what]
    text = right(RTL, **({"change": changed} if changed else {}))
    if "delay" in what:
        text = text.replace("out_valid <= in_valid && !rst;", "valid <= in_valid && !rst;")
        text = text.replace("ops_t ops, part;", "ops_t ops, part; logic valid;")
    result = check(write(tmp_path, text), options(tmp_path, count=300))
    assert result.passed == (changed is None)
    if changed is None:
        assert (result.as_dict()["translated"] or "").startswith("Yosys ")


def test_without_yosys_one_line_says_how_to_get_it(tmp_path, monkeypatch):
    job = job_of(tmp_path)
    for name in ("verilator", "icarus"):
        simulators.find(name)  # kept, so that these are found still
    monkeypatch.setattr(translators.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(translators.shutil, "which", lambda *a, **b: None)
    translators._yosys.cache_clear()
    with pytest.raises(
        ElaborationError, match=r"refused the DUT modern: .*; to translate it: .*pip install pyosys"
    ):
        engines.build("selfcheck", job)
    translators._yosys.cache_clear()


def test_a_unit_that_both_refuse_shows_both_first_errors(tmp_path):
    job = job_of(tmp_path)
    (tmp_path / "modern.sv").write_text(RTL.replace("total = 32'", "total = missing + 32'"))
    with pytest.raises(ElaborationError, match=r"(?s)refused.*missing.*"):
        engines.build("selfcheck", job)
