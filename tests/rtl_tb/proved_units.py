"""A small unit for the tests of proofs: the sum of four products of signed bytes and an accumulator,
saturated, in a text that a test may change."""

from __future__ import annotations

from pathlib import Path

import rtl_tb
from rtl_tb.dut.description import Dut, load_dut

_MAC4 = Path(rtl_tb.__file__).parent / "examples" / "own_unit" / "mac4.yaml"
_PORTS = """
    input logic clk, rst_n, in_valid, input logic [31:0] a, b, c,
    output logic out_valid, output logic [31:0] d
"""
SUM = """
    logic signed [35:0] sum;
    always_comb begin
        sum = 36'($signed(c));
        for (int k = 0; k < 4; k++) sum = sum + 36'($signed(a[8*k+:8]) * $signed(b[8*k+:8]));
    end
    wire high = !sum[35] && |sum[34:31], low = sum[35] && !(&sum[34:31]);
    wire [31:0] right = high ? 32'h7fffffff : low ? 32'h80000000 : sum[31:0];
"""
REGISTERED = """
    always_ff @(posedge clk) begin
        out_valid <= in_valid && rst_n;
        d <= right;
    end
"""

SECOND = (
    SUM
    + """
    logic [1:0] count;
    always_ff @(posedge clk) begin
        count <= !rst_n ? 0 : count + 2'(in_valid);
        out_valid <= in_valid && rst_n;
        d <= count == 1 && c == 32'h1234abcd ? ~right : right;
    end
"""
)
"""Wrong for one value of c in the second transaction."""


def unit(body: str, folder: Path, handshake: str = "valid", more: str = "") -> Dut:
    """A unit of this text, which must compute what mac4.yaml says."""
    shakes = {
        "valid": "{kind: valid, input: {valid: in_valid}, output: {valid: out_valid}}",
        "serial": "{kind: valid, input: {valid: in_valid}, output: {valid: out_valid}, interval: 6}",
        "latency": "{kind: latency, input: {valid: in_valid}, latency: 1}",
    }
    (folder / "unit.sv").write_text(f"module saturating ({_PORTS});\n{body}\nendmodule\n")
    (folder / "dut.yaml").write_text(
        f"dut: saturating\ntop: saturating\nsources: [unit.sv]\nunit: {_MAC4}\nclock: clk\n"
        f"reset: {{port: rst_n, active: low}}\nhandshake: {shakes[handshake]}\n"
        f"ports: {{a: a, b: b, c: c, d: d}}\n{more}"
    )
    return load_dut(folder / "dut.yaml")
