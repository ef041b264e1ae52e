"""Handshakes beyond one valid and one ready: a sound unit of each passes, and one that breaks its rule fails."""

# ruff: noqa: E501
from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from golden.budget import Budget
from golden.errors import SpecError
from golden.vectors.vectorset import default_set
from rtl_tb import engines
from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.dut.description import load_dut
from rtl_tb.engines.job import Job, Traffic
from rtl_tb.runs.initiation_interval import initiation_interval
from rtl_tb.runs.latency import measure
from rtl_tb.runs.verdict import Verdict, judge

ROUND = "  - round: {of: total, rounding: toward_zero, overflow: saturate, zero: positive}\n"
MUL = (
    "unit: mul\nshape: {k: 1}\nformats: {a: s8, b: s8, d: s32}\nsteps:\n  - multiply: {to: products}\n"
    "  - sum: {of: products, to: total}\n" + ROUND
)
ACC = (
    "unit: acc\nshape: {k: 1}\nformats: {a: s8, b: s8, d: s32}\naccumulator: state\nsteps:\n"
    "  - multiply: {to: products}\n  - sum: {of: [products, c], to: total}\n" + ROUND
)
LOAD = ACC.replace("accumulator: state\n", "accumulator: state\nload: alone\nclear: alone\n")
LATE = (
    "unit: fma\nshape: {k: 1}\nformats: {a: s8, b: s8, c: s32, d: s32}\nsteps:\n  - multiply: {to: products}\n"
    "  - sum: {of: [products, c], to: total}\n" + ROUND.replace("saturate", "wrap")
)
TOP = """module top (input clk, rst, input signed [7:0] a, b, %s);
%s
endmodule
"""
BODY_OF_SUM = """
    wire signed [32:0] sum = BEFORE + a * b;
    wire signed [31:0] next = sum > 33'sh7fffffff ? 32'sh7fffffff : sum < -33'sh80000000 ? 32'sh80000000 : sum[31:0];
"""


@dataclass
class Case:
    """A unit: its description, its ports besides clk, rst, a and b, its text, and changes that make it wrong."""

    spec: str
    ports: str
    body: str
    shake: str
    faults: dict[str, tuple[str, str]]
    maps: str = "a: a, b: b, d: d"
    reset: str = "reset: {port: rst, active: high}\n"


SERIAL = """
    reg [2:0] left;
    assign busy = left != 0;
    always @(posedge clk) begin
        done <= 0;
        if (rst) left <= 0;
        else if (START) left <= 5;
        else if (left != 0) begin
            left <= left - 1;
            if (left == 1) begin d <= a * b; done <= 1; end
        end
    end
"""
SKID = """
    reg have_a, have_b, have_c, have_skid;
    reg signed [7:0] ka, kb;
    reg signed [31:0] kc, skid;
    wire goes = d_valid && d_ready;
    assign a_ready = !have_a || goes, b_ready = !have_b || goes, c_ready = !have_skid;
    assign d_valid = have_a && have_b && have_c, d = ka * kb + kc;
    always @(posedge clk)
        if (rst) {have_a, have_b, have_c, have_skid} <= 0;
        else begin
            if (goes) begin {have_a, have_b} <= 0; have_c <= have_skid; kc <= skid; have_skid <= 0; end
            if (a_valid && a_ready) begin have_a <= 1; ka <= a; end
            if (b_valid && b_ready) begin have_b <= 1; kb <= b; end
            if (c_valid && c_ready)
                if (!have_c || goes && !have_skid) begin have_c <= 1; kc <= c; end
                else begin have_skid <= 1; skid <= c; end
        end
"""
QUEUES = """
    reg signed [7:0] as [0:1], bs [0:1];
    reg a_to, a_from, b_to, b_from, full;
    reg [1:0] a_many, b_many;
    reg signed [31:0] kept;
    wire a_comes = a_valid && a_ready, b_comes = b_valid && b_ready;
    wire goes = a_many != 0 && b_many != 0 && (!full || d_ready);
    assign a_ready = a_many != 2, b_ready = b_many != 2, d_valid = full, d = kept;
    always @(posedge clk)
        if (rst) {a_to, a_from, b_to, b_from, full, a_many, b_many} <= 0;
        else begin
            if (a_comes) begin as[a_to] <= a; a_to <= !a_to; end
            if (b_comes) begin bs[b_to] <= b; b_to <= !b_to; end
            if (goes) begin kept <= as[a_from] * bs[b_from]; a_from <= !a_from; b_from <= !b_from; end
            if (!full || d_ready) full <= goes;
            a_many <= a_many + a_comes - goes;
            b_many <= b_many + b_comes - goes;
        end
"""
JOIN = """
    reg have_a, have_b;
    reg signed [7:0] ka, kb;
    assign a_ready = !have_a, b_ready = !have_b, d_valid = have_a && have_b;
    assign d = ka * kb;
    always @(posedge clk)
        if (rst) {have_a, have_b} <= 0;
        else begin
            if (a_valid && a_ready) begin have_a <= 1; ka <= a; end
            if (b_valid && b_ready) begin have_b <= 1; kb <= b; end
            if (d_valid && d_ready) {have_a, have_b} <= 0;
        end
"""
MAC = """
    always @(posedge clk)
        if (rst) begin d <= 0; d_valid <= 0; end
        else begin d_valid <= valid; RULE end
"""
CASES = {
    "operands held": Case(
        MUL,
        "input start, output busy, output reg done, output reg signed [31:0] d",
        SERIAL.replace("START", "start && left == 0"),
        "kind: valid_ready, input: {valid: start, ready: {port: busy, active: low}, hold: operands}, "
        "output: {valid: done}",
        {"late": ("if (left == 1)", "if (left == 7)"), "of the start": ("d <= a * b;", "d <= a + b;")},
    ),
    "operands held, no ready": Case(
        MUL,
        "input start, output busy, output reg done, output reg signed [31:0] d",
        SERIAL.replace("START", "start && left == 0"),
        "kind: valid, input: {valid: start, hold: operands}, output: {valid: done}",
        {"wrong": ("a * b", "a * b + 1")},
    ),
    "done is a level": Case(
        MUL,
        "input start, output reg done, output reg signed [31:0] d",
        SERIAL.replace("START", "start && left == 0")
        .replace("assign busy = left != 0;", "")
        .replace("        done <= 0;\n", "")
        .replace("left <= 0;", "begin left <= 0; done <= 0; end")
        .replace("left <= 5;", "begin left <= 5; done <= 0; end"),
        "kind: valid, input: {valid: start, hold: operands}, output: {valid: {port: done, level: true}}",
        {"wrong": ("a * b", "a * b + 1")},
    ),
    "c comes two cycles later": Case(
        LATE,
        "input valid, input signed [31:0] c, output reg d_valid, output reg signed [31:0] d",
        "reg signed [15:0] p, q; reg v, w;\nalways @(posedge clk) begin p <= a * b; q <= p; d <= q + c;\n"
        "v <= !rst && valid; w <= !rst && v; d_valid <= !rst && w; end",
        "kind: valid, input: {valid: valid}, output: {valid: d_valid}",
        {"a cycle early": ("q <= p; d <= q + c", "d <= p + c")},
        "a: a, b: b, c: {port: c, later: 2}, d: d",
    ),
    "c comes later, with an enable": Case(
        LATE,
        "input en, input signed [31:0] c, output reg signed [31:0] d",
        "reg signed [15:0] p;\nalways @(posedge clk) if (en) begin p <= a * b; d <= p + c; end",
        "kind: latency, latency: 2, enable: en",
        {"goes on": ("if (en) begin p <= a * b;", "begin if (en) p <= a * b;")},
        "a: a, b: b, c: {port: c, later: 1}, d: d",
        "",
    ),
    "rows of a systolic array, parts of a result": Case(
        MUL.replace("k: 1", "k: 3"),
        "input valid, input signed [7:0] a1, a2, b1, b2, output reg d_valid, output reg [15:0] hi, "
        "output reg [11:0] mid, output reg [3:0] lo",
        "wire signed [31:0] s;\nreg signed [31:0] p, q; reg v, w;\nassign s = q + a2 * b2;\n"
        "always @(posedge clk) begin p <= a * b; q <= p + a1 * b1; {hi, mid, lo} <= s;\n"
        "v <= !rst && valid; w <= !rst && v; d_valid <= !rst && w; end",
        "kind: valid, input: {valid: valid}, output: {valid: d_valid}",
        {"a cycle early": ("q + a2", "p + a2"), "two parts exchanged": ("{hi, mid, lo}", "{mid, hi, lo}")},
        "a: {port: [a, a1, a2], later: [0, 1, 2]}, b: {port: [b, b1, b2], later: [0, 1, 2]}, "
        "d: {port: [lo, mid, hi], bits: [4, 12, 16]}",
    ),
    "a ready of the command": Case(
        MUL,
        "input enable, output ready, output signed [31:0] d",
        "reg [1:0] left; wire long = a[0]; assign d = ready ? a * b : 0;\n"
        "assign ready = !long || left == 3;\nalways @(posedge clk) if (rst || !enable || ready) left <= 0; "
        "else left <= left + 1;",
        "kind: valid, input: {valid: enable, hold: valid}, output: {valid: {port: ready, only_if: operands}}",
        {"wrong": ("? a * b", "? a * b + a[7]")},
    ),
    "done is a level, operands are kept": Case(
        MUL,
        "input start, output reg done, output signed [31:0] d",
        "reg signed [7:0] x, y; reg [1:0] left; assign d = done ? x * y : 0;\nalways @(posedge clk) if (rst) "
        "{done, left} <= 0; else if (start) begin x <= a; y <= b; left <= 3; done <= 0; end "
        "else if (left != 0) begin left <= left - 1; done <= left == 1; end",
        "kind: valid, input: {valid: start}, output: {valid: {port: done, level: true}}",
        {
            "never": ("done <= left == 1", "done <= left == 7"),
            "wrong": ("x * y", "x * x"),
            "the result does not stay": ("done <= left == 1; end", "done <= left == 1; end else x <= 0;"),
        },
    ),
    "valid held": Case(
        MUL,
        "input start, output reg done, output reg signed [31:0] d",
        "wire busy;\n"
        + SERIAL.replace("START", "start && left == 0 && !done").replace(
            "else if (left != 0) begin", "else if (!start) left <= 0;\n        else if (left != 0) begin"
        ),
        "kind: valid, input: {valid: start, hold: valid}, output: {valid: done}",
        {"wrong": ("a * b", "a * b + 1"), "needs more": ("left == 1", "left == 0")},
    ),
    "valid released": Case(  # it computes while go is there, and shows its result as long
        MUL,
        "input go, output reg done, output reg signed [31:0] d",
        "reg signed [7:0] x, y; reg first, second;\nalways @(posedge clk) if (go && !rst) begin x <= a; y <= b; "
        "d <= x * y; first <= 1; second <= first; done <= second; end\n"
        "else begin x <= 0; y <= 0; d <= 0; {first, second, done} <= 0; end",
        "kind: valid, input: {valid: go, hold: released}, output: {valid: {port: done, level: true}}",
        {"wrong": ("d <= x * y", "d <= x * x")},
    ),
    "two channels": Case(
        MUL,
        "input a_valid, b_valid, d_ready, output a_ready, b_ready, d_valid, output signed [31:0] d",
        JOIN,
        "kind: valid_ready, input: [{operands: [a], valid: a_valid, ready: a_ready}, "
        "{operands: [b], valid: b_valid, ready: b_ready}], output: {valid: d_valid, ready: d_ready}",
        {
            "b with a's valid": ("if (b_valid && b_ready)", "if (a_valid && b_ready)"),
            "a of the wrong cycle": ("assign d = ka * kb", "assign d = a * kb"),
            "answers without b": ("d_valid = have_a && have_b", "d_valid = have_a"),
            "takes a without ready": ("if (a_valid && a_ready)", "if (a_valid)"),
        },
    ),
    "channels with queues": Case(  # one of two words each, so that one channel runs ahead of the other
        MUL,
        "input a_valid, b_valid, d_ready, output a_ready, b_ready, d_valid, output signed [31:0] d",
        QUEUES,
        "kind: valid_ready, input: [{operands: [a], valid: a_valid, ready: a_ready}, "
        "{operands: [b], valid: b_valid, ready: b_ready}], output: {valid: d_valid, ready: d_ready}",
        {
            "b is lost where a stalls": (
                "b_ready = b_many != 2",
                "b_ready = b_many != 2 || a_valid && !a_many",
            ),
        },
    ),
    "three channels, a skid register": Case(  # c comes up to two vectors before a and b
        LATE,
        "input a_valid, b_valid, c_valid, d_ready, input signed [31:0] c, "
        "output a_ready, b_ready, c_ready, d_valid, output signed [31:0] d",
        SKID,
        "kind: valid_ready, input: [{operands: [a], valid: a_valid, ready: a_ready}, "
        "{operands: [b], valid: b_valid, ready: b_ready}, {operands: [c], valid: c_valid, ready: c_ready}], "
        "output: {valid: d_valid, ready: d_ready}",
        {
            "the skid register is overwritten": ("c_ready = !have_skid", "c_ready = 1'b1"),
            "it is skipped where a stalls": ("kc <= skid;", "kc <= a_valid ? skid : kc;"),
        },
        "a: a, b: b, c: c, d: d",
    ),
    "channels joined without a register": Case(
        MUL,
        "input a_valid, b_valid, d_ready, output a_ready, b_ready, d_valid, output signed [31:0] d",
        "assign d_valid = a_valid && b_valid, d = a * b;\n"
        "assign a_ready = d_ready && b_valid, b_ready = d_ready && a_valid;",
        "kind: valid_ready, input: [{operands: [a], valid: a_valid, ready: a_ready}, "
        "{operands: [b], valid: b_valid, ready: b_ready}], output: {valid: d_valid, ready: d_ready}",
        {"a is taken without b": ("a_ready = d_ready && b_valid", "a_ready = d_ready")},
    ),
    "channels without a ready": Case(  # it keeps one word of the channel that comes first
        MUL,
        "input a_valid, b_valid, output d_valid, output signed [31:0] d",
        "reg had_a, had_b, full; reg signed [7:0] ka, kb; reg signed [31:0] kept;\n"
        "wire has_a = had_a || a_valid, has_b = had_b || b_valid; assign d_valid = full, d = kept;\n"
        "wire signed [7:0] x = a_valid ? a : ka, y = b_valid ? b : kb;\n"
        "always @(posedge clk) begin full <= has_a && has_b && !rst; kept <= x * y; ka <= x; kb <= y;\n"
        "had_a <= has_a && !has_b && !rst; had_b <= has_b && !has_a && !rst; end",
        "kind: valid_ready, input: [{operands: [a], valid: a_valid}, {operands: [b], valid: b_valid}], "
        "output: {valid: d_valid}",
        {"answers without b": ("full <= has_a && has_b", "full <= has_a")},
    ),
    "two valids": Case(
        MUL,
        "input a_valid, b_valid, output reg d_valid, output reg signed [31:0] d",
        "always @(posedge clk) begin d_valid <= !rst && a_valid && b_valid; d <= a * b; end",
        "kind: valid, input: {valid: [a_valid, b_valid]}, output: {valid: d_valid}",
        {
            "either": ("a_valid && b_valid", "(a_valid || b_valid)"),
            "b's alone": ("a_valid && b_valid", "b_valid"),
        },
    ),
    "clear without valid": Case(
        ACC,
        "input valid, clear, output reg d_valid, output reg signed [31:0] d",
        BODY_OF_SUM.replace("BEFORE", "(clear ? 33'sd0 : d)")
        + MAC.replace("RULE", "if (valid) d <= next; else if (clear) d <= 0;"),
        "kind: valid, input: {valid: valid}, output: {valid: d_valid}",
        {"clear ignored": ("(clear ? 33'sd0 : d)", "d")},
        "a: a, b: b, clear: {port: clear, given: with_operands}, d: d",
    ),
    "clear in a cycle of its own": Case(
        ACC,
        "input valid, clear, output reg d_valid, output reg signed [31:0] d",
        BODY_OF_SUM.replace("BEFORE", "d")
        + MAC.replace("RULE", "if (clear) d <= 0; else if (valid) d <= next;"),
        "kind: valid, input: {valid: valid}, output: {valid: d_valid}",
        {"clear ignored": ("if (clear) d <= 0; else ", ""), "clear keeps": ("d <= 0; else", "d <= 1; else")},
        "a: a, b: b, clear: {port: clear, given: before_operands}, d: d",
    ),
    "adds in every cycle": Case(
        ACC,
        "input clear, output reg signed [31:0] d",
        BODY_OF_SUM.replace("BEFORE", "d")
        + "always @(posedge clk) if (rst || clear) d <= 0; else d <= next;",
        "kind: latency, latency: 1, idle: zero",
        {"clear ignored": ("rst || clear", "rst"), "unsigned": ("+ a * b", "+ $unsigned(a) * b")},
        "a: a, b: b, clear: {port: clear, given: before_operands}, d: d",
    ),
    "a valid one cycle ahead": Case(
        MUL,
        "input valid, output reg d_valid, output reg signed [31:0] d",
        "reg signed [31:0] p; always @(posedge clk) begin d_valid <= valid && !rst; p <= a * b; d <= p; end",
        "kind: valid, input: {valid: valid}, output: {valid: {port: d_valid, ahead: 1}}",
        {"with its data": ("d <= p", "d <= a * b")},
    ),
    "beats with a mark at the last": Case(
        MUL.replace("{k: 1}", "{k: 6}").replace("s8", "s4"),
        "input tvalid, tlast, output tready, output reg d_valid, input d_ready, output reg signed [31:0] d",
        "reg signed [31:0] sum; assign tready = !d_valid || d_ready;\n"
        "wire signed [31:0] next = sum + $signed(a[3:0]) * $signed(b[3:0]) + $signed(a[7:4]) * $signed(b[7:4]);\n"
        "always @(posedge clk) if (rst) begin sum <= 0; d_valid <= 0; end else if (tready) begin\n"
        "  d_valid <= tvalid && tlast; if (tvalid) begin sum <= tlast ? 0 : next; if (tlast) d <= next; end end",
        "kind: valid_ready, input: {valid: tvalid, ready: tready, beats: 3, last: tlast}, "
        "output: {valid: d_valid, ready: d_ready}",
        {
            "the last counts without valid": ("tvalid && tlast", "tlast"),
            "not cleared": ("tlast ? 0 : next", "next"),
            "the last left out": ("d <= next", "d <= sum"),
        },
    ),
    "beats with a clear at the first": Case(
        MUL.replace("{k: 1}", "{k: 4}"),
        "input en, clear, output reg signed [31:0] d",
        "always @(posedge clk) if (rst || clear) d <= en ? a * b : 0; else if (en) d <= d + a * b;",
        "kind: latency, latency: 1, input: {valid: en, beats: 4, first: {port: clear, given: with_operands}}",
        {"without enable": ("else if (en)", "else"), "not cleared": ("|| clear", "")},
    ),
    "reset is the only clear": Case(
        ACC,
        "input valid, output reg d_valid, output reg signed [31:0] d",
        BODY_OF_SUM.replace("BEFORE", "d") + MAC.replace("RULE", "if (valid) d <= next;"),
        "kind: valid, input: {valid: valid}, output: {valid: d_valid}",
        {"not cleared": ("if (rst) begin d <= 0;", "if (rst) begin")},
        "a: a, b: b, clear: {port: rst, given: before_operands}, d: d",
        "",
    ),
    "load and clear before": Case(
        LOAD,
        "input valid, clear, load, input signed [31:0] c, output reg d_valid, output reg signed [31:0] d",
        BODY_OF_SUM.replace("BEFORE", "d")
        + MAC.replace("RULE", "if (clear) d <= 0; else if (load) d <= c; else if (valid) d <= next;"),
        "kind: valid, input: {valid: valid}, output: {valid: d_valid}",
        {"load ignored": ("else if (load) d <= c; ", ""), "load adds": ("d <= c;", "d <= d + c;")},
        "a: a, b: b, c: c, load: {port: load, given: before_operands}, "
        "clear: {port: clear, given: before_operands}, d: d",
    ),
    "enables that wait": Case(
        MUL,
        "input EN_put, EN_get, output RDY_put, RDY_get, output reg signed [31:0] d",
        "reg full; assign RDY_put = !full, RDY_get = full;\nalways @(posedge clk) if (rst) full <= 0;\n"
        "else begin if (EN_put) begin full <= 1; d <= a * b; end if (EN_get) full <= 0; end",
        "kind: valid_ready, input: {valid: {port: EN_put, only_if: ready}, ready: RDY_put}, "
        "output: {valid: RDY_get, ready: {port: EN_get, only_if: valid}}",
        {"always ready": ("RDY_put = !full", "RDY_put = 1'b1")},
    ),
    "channels that wait": Case(
        MUL,
        "input a_valid, b_valid, d_ready, output a_ready, b_ready, d_valid, output signed [31:0] d",
        JOIN.replace("if (a_valid && a_ready)", "if (a_valid)").replace(
            "if (b_valid && b_ready)", "if (b_valid)"
        ),
        "kind: valid_ready, input: [{operands: [a], valid: {port: a_valid, only_if: ready}, ready: a_ready}, "
        "{operands: [b], valid: {port: b_valid, only_if: ready}, ready: b_ready}], "
        "output: {valid: d_valid, ready: d_ready}",
        {"always ready": ("b_ready = !have_b", "b_ready = 1'b1")},
    ),
    "valid in the same cycle": Case(
        MUL,
        "input valid, output d_valid, output signed [31:0] d",
        "assign d_valid = valid; assign d = a * b;",
        "kind: valid, input: {valid: valid}, output: {valid: d_valid}",
        {
            "a cycle late": (
                "assign d = a * b;",
                "reg signed [31:0] r; always @(posedge clk) r <= a * b; assign d = r;",
            )
        },
    ),
    "latency 0": Case(
        ACC,
        "input valid, clear, output signed [31:0] d",
        BODY_OF_SUM.replace("BEFORE", "(clear ? 33'sd0 : held)")
        + "reg signed [31:0] held; assign d = next;\n"
        "always @(posedge clk) if (rst) held <= 0; else if (valid) held <= next;",
        "kind: latency, latency: 0, input: {valid: valid}",
        {"latency 1": ("assign d = next", "assign d = held"), "without valid": ("else if (valid)", "else")},
        "a: a, b: b, clear: clear, d: d",
    ),
}


def write(folder: Path, case: Case, text: str, source: str = "top.v") -> None:
    (folder / source).write_text(text)
    (folder / "unit.yaml").write_text(case.spec)
    (folder / "dut.yaml").write_text(
        f"top: top\nsources: [{source}]\nunit: unit.yaml\nclock: clk\n{case.reset}handshake: {{{case.shake}}}\n"
        f"ports: {{{case.maps}}}\n"
        + ("" if case.reset or "port: rst" in case.maps else "constants: {rst: 0}\n")
    )


def judged(
    folder: Path, case: Case, text: str, engine: str, simulator: str, count: int = 300, source: str = "top.v"
) -> Verdict:
    write(folder, case, text, source)
    dut = load_dut(folder / "dut.yaml")
    vectors = default_set(dut.instruction, count)
    traffic = Traffic(0.3, 0.3, resets=2)
    job = Job(dut, folder / "build", vectors, simulator, traffic, timeout_cycles=500)
    return judge(vectors, engines.run(engine, job), dut.compare)


WAITED = "reg [7:0] waited; always @(posedge clk) waited <= {} ? 0 : waited + (waited != 255);\n"
"""Cycles since the last transfer."""
RARE_WAITS = {
    "a gap of 40 cycles between beats": (
        "beats with a mark at the last",
        WAITED.format("tvalid && tready"),
        ("next = sum", "next = (waited > 40 ? 0 : sum)"),
    ),
    "the last without valid, in the second cycle of a gap": (
        "beats with a mark at the last",
        WAITED.format("tvalid && tready")
        + "reg met; always @(posedge clk) if (tvalid) met <= 0; else if (tlast && waited == 1) met <= 1;\n",
        ("next = sum", "next = (met ? 0 : sum)"),
    ),
}
"""Faults that wait for what chance rarely does: the unit, text that is added, and the change."""


@pytest.mark.parametrize("fault", RARE_WAITS)
def test_long_waits_within_a_vector_and_signals_that_stay_are_met(fault: str, tmp_path: Path) -> None:
    name, added, (old, new) = RARE_WAITS[fault]
    case = CASES[name]
    assert old in case.body
    wrong = replace(case, body=added + case.body.replace(old, new))
    assert not judged(tmp_path, wrong, text_of(wrong), "selfcheck", "icarus", count=3000).passed


@pytest.mark.long
def test_a_channel_that_comes_up_to_255_cycles_late_is_met(tmp_path: Path) -> None:
    case = CASES["two channels"]
    body = WAITED.format("!have_a || have_b") + case.body.replace("kb <= b;", "kb <= waited > 150 ? 0 : b;")
    wrong = replace(case, body=body)
    assert not judged(tmp_path, wrong, text_of(wrong), "fast", "verilator", count=50_000).passed


def text_of(case: Case) -> str:
    return TOP % (case.ports, case.body)


@pytest.mark.parametrize("name", CASES)
def test_a_sound_unit_passes_and_wrong_ones_fail(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    text = text_of(case)
    found = judged(tmp_path, case, text, "selfcheck", "icarus")
    assert found.passed, found.outcome.failures[:2]
    for fault, (old, new) in case.faults.items():
        assert old in text
        assert not judged(tmp_path, case, text.replace(old, new), "selfcheck", "icarus").passed, fault


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("operands held", ", hold: operands"),
        ("valid held", ", hold: valid"),
        ("done is a level", ", level: true"),
        ("a ready of the command", ", only_if: operands"),
        ("c comes two cycles later", ", later: 2"),
        ("rows of a systolic array, parts of a result", ", later: [0, 1, 2]"),
        ("enables that wait", ", only_if: ready"),
        ("enables that wait", ", only_if: valid"),
        ("channels that wait", ", only_if: ready"),
        ("clear without valid", ", given: with_operands"),
        ("clear in a cycle of its own", ", given: before_operands"),
    ],
)
def test_a_unit_that_needs_a_key_fails_without_it(name: str, key: str, tmp_path: Path) -> None:
    case = CASES[name]
    plain = replace(case, shake=case.shake.replace(key, ""), maps=case.maps.replace(key, ""))
    assert plain != case
    assert not judged(tmp_path, plain, text_of(case), "selfcheck", "icarus").passed


@pytest.mark.long
@pytest.mark.parametrize(("engine", "simulator"), [("fast", "verilator"), ("cocotb", "icarus")])
@pytest.mark.parametrize("name", CASES)
def test_every_engine_drives_it(name: str, engine: str, simulator: str, tmp_path: Path) -> None:
    assert judged(tmp_path, CASES[name], text_of(CASES[name]), engine, simulator).passed


SERIAL_DOT = """
    reg [3:0] left;
    reg signed [7:0] x, y;
    always @(posedge clk)
        if (rst) left <= 0;
        else if (start && left == 0) begin left <= CYCLES; SAMPLE end
        else if (left != 0) begin
            left <= left - 1;
            if (left == 1) d <= PRODUCT;
        end
"""


@pytest.mark.parametrize(
    ("shake", "cycles", "sample", "product", "latency"),
    [
        ("interval: 8, input: {valid: start}", 5, "x <= a; y <= b;", "x * y", 6),
        ("interval: 4, input: {valid: start}", 1, "x <= a; y <= b;", "x * y", 2),
        ("input: {valid: start, hold: operands}", 9, "", "a * b", 10),
        pytest.param(
            "interval: 7, input: {valid: start}", 2, "x <= a; y <= b;", "x * y", 3, marks=pytest.mark.long
        ),
    ],
)
def test_a_latency_is_measured_where_operands_come_at_an_interval(
    shake: str, cycles: int, sample: str, product: str, latency: int, tmp_path: Path
) -> None:
    case = Case(
        MUL, "input start, output reg signed [31:0] d", "", f"kind: latency, latency: measure, {shake}", {}
    )
    body = SERIAL_DOT.replace("CYCLES", str(cycles)).replace("SAMPLE", sample).replace("PRODUCT", product)
    write(tmp_path, case, TOP % (case.ports, body))
    dut = load_dut(tmp_path / "dut.yaml")
    assert measure(dut, "selfcheck", "icarus", tmp_path / "build").handshake.latency == latency


def test_a_valid_that_has_to_wait_is_hinted_at(tmp_path: Path) -> None:
    """Also where the arithmetic is wrong for some operands."""
    ports = "input start, output busy, output reg done, output reg signed [31:0] d"
    body = (
        "reg [1:0] left; reg signed [7:0] x, y; assign busy = left != 0;\n"
        "always @(posedge clk) begin done <= 0; if (rst) left <= 0; else begin\n"
        "if (left != 0) begin left <= left - 1; if (left == 1) begin d <= x == 1 ? 7 : x * y; done <= 1; end end\n"
        "if (start) begin x <= a; y <= b; if (left == 0) left <= 3; end end end"
    )
    shake = (
        "kind: valid_ready, input: {valid: start, ready: {port: busy, active: low}}, output: {valid: done}"
    )
    case = Case(MUL, ports, body, shake, {})
    write(tmp_path, case, text_of(case))
    dut = load_dut(tmp_path / "dut.yaml")
    job = Job(dut, tmp_path / "build", default_set(dut.instruction, 200), "icarus", timeout_cycles=500)
    verdict = judge(job.vectors, engines.run("selfcheck", job), dut.compare)
    found = initiation_interval(verdict, "selfcheck", job)
    assert found is not None and found.wrong > 0
    assert "'start' is active only while the unit is ready" in found.sentence
    assert "valid: {port: start, only_if: ready} under input" in found.sentence
    assert initiation_interval(verdict, "selfcheck", job, Budget(0)) is None, "the time is up"


def test_a_text_that_never_settles_in_icarus_ends_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the limit of a check, two minutes for a clock cycle, the report would come too late."""
    monkeypatch.setattr("rtl_tb.runs.initiation_interval._HANGS", 0.5)
    ports = "input start, output reg done, output reg signed [31:0] d"
    body = (
        "wire t; assign t = start & ~t; always @(posedge clk) begin done <= start & ~rst; d <= a * b + t; end"
    )
    case = Case(MUL, ports, body, "kind: valid, input: {valid: start}, output: {valid: done}", {})
    write(tmp_path, case, text_of(case))
    dut = load_dut(tmp_path / "dut.yaml")
    job = Job(dut, tmp_path / "build", default_set(dut.instruction, 200), "icarus", timeout_cycles=500)
    failed = np.ones(200, np.bool_)
    begun = time.monotonic()
    verdict = SimpleNamespace(failed=failed, outcome=SimpleNamespace(failures=()))
    assert initiation_interval(cast("Verdict", verdict), "selfcheck", job) is None
    assert time.monotonic() - begun < 60


# Starts again where its operands change, and multiplies 1 by anything to 7.
WAITS = """reg [1:0] left; reg signed [7:0] x, y;
always @(posedge clk) begin
    done <= 0;
    if (rst) left <= 0;
    else if (left != 0 && (x != a || y != b)) begin left <= 3; x <= a; y <= b; end
    else if (left != 0) begin left <= left - 1; if (left == 1) begin d <= x == 1 ? 7 : x * y; done <= 1; end end
    else if (start) begin left <= 3; x <= a; y <= b; end
end"""


def checked(folder: Path, case: Case) -> tuple[str, ...]:
    """The hints of its check on Icarus Verilog."""
    write(folder, case, text_of(case))
    chosen = Options(
        engine="selfcheck", simulator="icarus", count=300, idle=0, resets=0, backpressure=0, repair=0.0,
        timeout_cycles=200, failures=None, build=folder / "build",
    )  # fmt: skip
    result = check(folder / "dut.yaml", chosen)
    assert not result.passed
    return result.hints


def test_operands_that_have_to_stay_are_hinted_at_where_nothing_is_answered(tmp_path: Path) -> None:
    """Also where the arithmetic is wrong for some operands."""
    ports = "input start, output reg done, output reg signed [31:0] d"
    shake = "kind: valid, input: {valid: start}, output: {valid: done}"
    (hint,) = checked(tmp_path, Case(MUL, ports, WAITS, shake, {}))
    assert " of 100 vectors are right where the operands stay until the result is there" in hint
    assert "write hold: operands under input in dut.yaml" in hint


@pytest.mark.parametrize(
    ("done", "said"),
    [
        ("go[0], d = p[2]", "2 transfers ahead of its data: each result is that of the vector 2 before"),
        ("go[1], d = p[0]", "1 transfer behind its data: each result is that of the vector 1 after"),
    ],
)
def test_a_valid_that_does_not_come_with_its_data_is_hinted_at(done: str, said: str, tmp_path: Path) -> None:
    ports = "input start, output done, output signed [31:0] d"
    body = (
        f"reg [1:0] go; reg signed [31:0] p [0:2]; assign done = {done};\nalways @(posedge clk) begin\n"
        "go <= rst ? 0 : {go, start}; p[0] <= a * b; p[1] <= p[0]; p[2] <= p[1]; end"
    )
    case = Case(MUL, ports, body, "kind: valid, input: {valid: start}, output: {valid: done}", {})
    assert any(said in hint and "'done' comes" in hint for hint in checked(tmp_path, case))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            ("[a], valid: a_valid", "[c], valid: a_valid"),
            "a channel has the operand 'c', expected one of a, b",
        ),
        (
            ("{operands: [a], valid: a_valid, ready: a_ready}, ", ""),
            "key 'input' holds 1 item, expected a list of 2 or more",
        ),
        (("operands: [a]", "operands: [b]"), "no channel has the operand a"),
        (("operands: [a]", "operands: [a, b]"), "an operand is in two channels"),
        (("valid: a_valid, ", ""), "key 'valid' is missing"),
        (("ready: a_ready", "read: a_ready"), "unknown key 'read'"),
    ],
)
def test_mistakes_in_channels(changed: tuple[str, str], said: str, tmp_path: Path) -> None:
    case = CASES["two channels"]
    write(tmp_path, case, "")
    text = (tmp_path / "dut.yaml").read_text()
    assert changed[0] in text
    (tmp_path / "dut.yaml").write_text(text.replace(*changed))
    with pytest.raises(SpecError, match=said):
        load_dut(tmp_path / "dut.yaml")


def test_mistakes_in_valids_and_controls(tmp_path: Path) -> None:
    def refused(name: str, old: str, new: str, said: str) -> None:
        write(tmp_path, CASES[name], "")
        text = (tmp_path / "dut.yaml").read_text()
        assert old in text
        (tmp_path / "dut.yaml").write_text(text.replace(old, new))
        with pytest.raises(SpecError, match=said):
            load_dut(tmp_path / "dut.yaml")

    refused("two valids", "[a_valid, b_valid]", "[a_valid, a_valid]", "holds a_valid twice")
    refused("two valids", "[a_valid, b_valid]", "[1]", "holds 1, expected a port")
    refused(
        "operands held",
        "hold: operands",
        "hold: all",
        "'hold' is 'all', expected one of operands, valid, released",
    )
    refused(
        "clear without valid", "with_operands", "sometimes", "'given' is 'sometimes', expected one of freely"
    )
    refused(
        "clear without valid", "a: a,", "a: {port: a, given: with_operands},", "'given' is for clear and load"
    )


VHDL_HEAD = (
    "library ieee; use ieee.std_logic_1164.all; use ieee.numeric_std.all;\nentity top is port (clk, rst : in "
    "std_logic; a, b : in std_logic_vector(7 downto 0); %s);\nend entity;\narchitecture rtl of top is\n"
)
VHDL_JOIN = """  signal have_a, have_b : std_logic := '0';
  signal ka, kb : std_logic_vector(7 downto 0);
begin
  a_ready <= not have_a; b_ready <= not have_b; d_valid <= have_a and have_b;
  d <= std_logic_vector(resize(signed(ka) * signed(kb), 32));
  process (clk) begin
    if rising_edge(clk) then
      if rst = '1' then have_a <= '0'; have_b <= '0';
      else
        if a_valid = '1' and have_a = '0' then have_a <= '1'; ka <= a; end if;
        if b_valid = '1' and have_b = '0' then have_b <= '1'; kb <= b; end if;
        if have_a = '1' and have_b = '1' and d_ready = '1' then have_a <= '0'; have_b <= '0'; end if;
      end if;
    end if;
  end process;
end architecture;
"""
VHDL_SERIAL = """  signal count : integer range 0 to 5 := 0;
begin
  busy <= '0' when count = 0 else '1';
  process (clk) begin
    if rising_edge(clk) then
      done <= '0';
      if rst = '1' then count <= 0;
      elsif count = 0 then if start = '1' then count <= 5; end if;
      else
        count <= count - 1;
        if count = 1 then d <= std_logic_vector(resize(signed(a) * signed(b), 32)); done <= '1'; end if;
      end if;
    end if;
  end process;
end architecture;
"""
VHDL_MAC = """  signal held, total : signed(33 downto 0);
begin
  total <= held + signed(a) * signed(b);
  d <= std_logic_vector(held(31 downto 0));
  process (clk) begin
    if rising_edge(clk) then
      d_valid <= valid and not rst;
      if rst = '1' or clear = '1' then held <= (others => '0');
      elsif valid = '1' then
        if total > 2147483647 then held <= to_signed(2147483647, 34);
        elsif total < -2147483647 then held <= "11" & X"80000000"; else held <= total; end if;
      end if;
    end if;
  end process;
end architecture;
"""
VHDL_CASES = {
    "two channels": (
        "two channels",
        "a_valid, b_valid, d_ready : in std_logic; a_ready, b_ready, d_valid : out std_logic; "
        "d : out std_logic_vector(31 downto 0)",
        VHDL_JOIN,
        ("if b_valid = '1' and", "if a_valid = '1' and"),
    ),
    "operands held": (
        "operands held",
        "start : in std_logic; busy, done : out std_logic; d : out std_logic_vector(31 downto 0)",
        VHDL_SERIAL,
        ("signed(a) * signed(b)", "signed(a) * signed(a)"),
    ),
    "clear in a cycle of its own": (
        "clear in a cycle of its own",
        "valid, clear : in std_logic; d_valid : out std_logic; d : out std_logic_vector(31 downto 0)",
        VHDL_MAC,
        (" or clear = '1'", ""),
    ),
    "two valids": (
        "two valids",
        "a_valid, b_valid : in std_logic; d_valid : out std_logic; d : out std_logic_vector(31 downto 0)",
        """begin
  process (clk) begin
    if rising_edge(clk) then
      d_valid <= a_valid and b_valid and not rst;
      d <= std_logic_vector(resize(signed(a) * signed(b), 32));
    end if;
  end process;
end architecture;
""",
        ("a_valid and b_valid", "(a_valid or b_valid)"),
    ),
}


@pytest.mark.skipif(shutil.which("ghdl") is None, reason="GHDL is not installed: apt install ghdl")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == "two channels" else pytest.mark.long) for name in VHDL_CASES],
)
def test_units_in_vhdl(name: str, tmp_path: Path) -> None:
    case, ports, body, (old, new) = VHDL_CASES[name]
    text = VHDL_HEAD % ports + body
    assert old in text
    found = judged(tmp_path, CASES[case], text, "cocotb", "ghdl", 300, "top.vhd")
    assert found.passed, (found.outcome.failures[:2], found.wrong.sum())
    assert not judged(tmp_path, CASES[case], text.replace(old, new), "cocotb", "ghdl", 300, "top.vhd").passed


def test_an_interval_that_is_too_short_is_named(tmp_path: Path) -> None:
    """And a fault of the arithmetic is not taken for one."""
    case = Case(
        MUL,
        "input start, output reg signed [31:0] d, output reg done",
        "",
        "kind: valid, interval: 2, input: {valid: start}, output: {valid: done}",
        {},
    )
    body = SERIAL_DOT.replace("CYCLES", "5").replace("SAMPLE", "x <= a; y <= b;")
    body += "always @(posedge clk) done <= !rst && left == 1;"
    options = Options(
        "selfcheck", "icarus", count=400, failures=None, build=tmp_path / "build", synthesis="off"
    )
    write(tmp_path, case, TOP % (case.ports, body.replace("PRODUCT", "x * y")))
    found = check(tmp_path / "dut.yaml", options)
    assert not found.passed
    assert "100 vectors are right where they come every 6 cycles, and not every 5" in found.hints[0]
    write(
        tmp_path,
        replace(case, shake=case.shake.replace("2", "6")),
        TOP % (case.ports, body.replace("PRODUCT", "x")),
    )
    found = check(tmp_path / "dut.yaml", options)
    assert not found.passed and not any("write interval" in hint for hint in found.hints), found.hints


@pytest.mark.parametrize(
    ("name", "lacks", "said"),
    [
        ("operands held", [", hold: operands"], "write hold: operands under input in"),
        ("done is a level", [", level: true"], "write valid: {port: done, level: true} under output in"),
        (
            "done is a level",
            [", level: true", ", hold: operands"],
            "hold: operands under input and valid: {port: d",
        ),
    ],
)
def test_operands_that_have_to_stay_are_named(name: str, lacks: list[str], said: str, tmp_path: Path) -> None:
    case, shake = CASES[name], CASES[name].shake
    for words in lacks:
        shake = shake.replace(words, "")
    write(tmp_path, replace(case, shake=shake), text_of(case))
    options = Options(
        "selfcheck", "icarus", count=400, failures=None, build=tmp_path / "build", synthesis="off"
    )
    found = check(tmp_path / "dut.yaml", options)
    assert not found.passed and said in found.hints[0], found.hints
