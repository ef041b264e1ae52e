"""A small unit in plain text, with faults planted in it: for the tests of what repairs a text."""

from __future__ import annotations

from pathlib import Path

import integer_dot

from golden.vectors.vectorset import default_set
from rtl_tb import engines
from rtl_tb.dut.description import Dut
from rtl_tb.engines.job import Job
from rtl_tb.runs.verdict import Verdict, judge

UNIT = """`define SUM(x, y) ((x) + (y))
module dot4 #(parameter int W = 8, localparam int BITS = 2 * W, UNUSED = 3) (
    input  logic        clk, rst_n, in_valid, out_ready,
    input  logic [31:0] a, b,
    input  logic [31:0] c,
    output logic        in_ready, out_valid,
    output logic [31:0] d
);
    assign in_ready = !out_valid || out_ready; // a comment: a + b
    logic signed [BITS-1:0] product [4];
    logic signed [31:0] sum;
    always_comb
        for (int k = 0; k < 4; k++) product[k] = BITS'(signed'(a[8*k +: 8])) * BITS'(signed'(b[8*k +: 8]));
    always_comb begin
        sum = 32'(product[0]) + 32'(product[1]);
        sum = sum + `SUM(32'(product[2]), 32'(product[3]));
    end
    always_ff @(posedge clk)
        if (!rst_n) out_valid <= 1'b0;
        else if (in_ready) begin
            out_valid <= in_valid;
            d <= sum + c;
        end
    if (W > 8) begin : never
        assign out_valid = a > b;
    end
endmodule
"""


def planted(folder: Path, *changes: tuple[str, str]) -> Dut:
    return integer_dot.planted(folder, 4, UNIT, *changes)


def judged(dut: Dut, folder: Path) -> tuple[Verdict, Job]:
    job = Job(dut, folder / "build", default_set(dut.instruction, 2000, 1, dut.level))
    return judge(job.vectors, engines.run("fast", job), dut.compare), job


def line_of(text: str) -> int:
    return UNIT[: UNIT.index(text)].count("\n") + 1
