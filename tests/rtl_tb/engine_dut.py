"""A small unit that breaks the handshake on demand, for the tests of the engines.

d = c + sum of four s8 products, three stages. A vector with c = FAULT + n switches fault n on when the unit
takes it, so that one build serves every test.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from golden.vectors.vectorset import VectorSet, default_set
from rtl_tb.dut.description import Dut, load_dut

FAULT = 0xDEAD0F00
DEAF, EXTRA, UNSTABLE, DROPPED, STALE, UNKNOWN, WRONG, X_READY, FINISH = range(1, 10)

UNIT = "unit: small\nshape: {k: 4}\nformats: {a: s8, b: s8, c: s32, d: s32}\nprogram: [integer_dot_add: {}]\n"
DUT = """dut: small
top: small_dot
sources: [small.sv]
unit: small_unit.yaml
clock: clk
reset: {port: rst_n, active: low}
handshake: {kind: valid_ready, input: {valid: in_valid, ready: in_ready}, output: {valid: out_valid, ready: out_ready}}
ports: {a: a, b: b, c: c, d: d}
"""  # noqa: E501
RTL = """
module small_dot (input clk, input rst_n, input in_valid, output in_ready, input [31:0] a, input [31:0] b, input [31:0] c,
              output out_valid, input out_ready, output [31:0] d);
    reg v1, v2, v3, once;
    reg [31:0] d1, d2, d3, churn;
    reg [3:0] fault;
    wire advance = !v3 || out_ready;
    wire marked = c[31:8] == 24'hdead0f;
    wire accept = in_valid && in_ready;
    wire extra = fault == 2 && !once && !accept;
    integer i;
    reg [31:0] total;
    always @* begin
        total = c;
        for (i = 0; i < 4; i = i + 1) total = total + {{24{a[8*i+7]}}, a[8*i+:8]} * {{24{b[8*i+7]}}, b[8*i+:8]};
        if (marked && c[3:0] == 6) total[6:5] = 2'bx0;
        if (marked && c[3:0] == 7) total = total + 1;
    end
    assign in_ready = fault == 1 ? 1'b0 : fault == 8 ? 1'bx : advance;
    assign out_valid = v3;
    assign d = fault == 3 ? d3 + churn : d3;
    initial {v1, v2, v3, once, fault} = 0;
    always @(posedge clk) begin
        churn <= v3 && !out_ready ? churn + 1 : 0;
        if (!rst_n && fault != 5) {v1, v2, v3} <= 0;
        else if (advance) begin
            {v1, v2, v3} <= {accept || extra, v1, v2};
            {d1, d2, d3} <= {total, d1, d2};
            if (extra) once <= 1;
        end else if (fault == 4) begin
            v3 <= 0;
            fault <= 0;
        end
        if (rst_n && accept && marked) begin
            fault <= c[3:0];
            if (c[3:0] == 9) $finish;
        end
    end
endmodule
"""  # noqa: E501


def write_small(folder: Path) -> Dut:
    """Writes the unit with its description into a folder and loads it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("small_unit.yaml", UNIT), ("small.sv", RTL), ("small.yaml", DUT)):
        (folder / name).write_text(text)
    return load_dut(folder / "small.yaml")


def small_vectors(dut: Dut, count: int, fault: int = 0, at: int = 0) -> VectorSet:
    """Vectors of the unit; vector `at` switches `fault` on."""
    drawn = default_set(dut.instruction, count, seed=3)
    c = drawn.operands["c"].copy()
    c[c >> 8 == FAULT >> 8] = 0
    if fault:
        c[at] = FAULT + fault
    operands = drawn.operands | {"c": c}
    d = dut.instruction.dot(**operands)
    return VectorSet(drawn.instruction, drawn.level, operands, np.asarray(d), drawn.kinds, drawn.seed)
