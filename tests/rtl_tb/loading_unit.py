"""A unit that keeps its accumulator and loads c into it, in Verilog, sound and with faults."""

from __future__ import annotations

from pathlib import Path

from golden.catalog.unit_files import load_instruction
from golden.model.instruction import Instruction

UNIT = """unit: mac
shape: {{k: 4}}
formats: {{a: s8, b: s8, d: s32}}
accumulator: state
{keys}
steps:
  - multiply: {{to: products}}
  - sum: {{of: [products, c], to: total}}
  - round: {{of: total, rounding: toward_zero, overflow: saturate, zero: positive}}
"""
KEYS = {"with": "load: with_products", "alone": "load: alone\nclear: alone"}
RTL = """
module mac (
    input logic clk, rst_n, push, PORTS,
    input logic [31:0] x, w, c_in, output logic vld, output logic [31:0] acc);
    logic signed [34:0] sum, prod, held, given;
    logic signed [7:0] x1, w1;
    LOCAL
    always @* begin
        prod = 0;
        for (int k = 0; k < 4; k++) begin
            x1 = x[8*k +: 8];
            w1 = w[8*k +: 8];
            prod = prod + x1 * w1;
        end
        held = $signed(acc);
        given = $signed(c_in);
        sum = BODY;
    end
    always @(posedge clk)
        if (!rst_n) begin
            vld <= 0;
            acc <= 0;
        end else begin
            vld <= push;
            if (push)
                acc <= sum > 35'sh7fffffff ? 32'h7fffffff : sum < -35'sh80000000 ? 32'h80000000 : sum[31:0];
        end
endmodule
"""
BOTH = ("clear, load", "", "clear: clear, load: load")
PORTS = {
    "both": BOTH,
    "load alone": ("load", "wire clear = 1'b0;", "load: load"),
    "accumulate": (
        "accumulate, load",
        "wire clear = !accumulate;",
        "clear: {port: accumulate, active: low}, load: load",
    ),
}
SOUND = {
    "with": "(clear ? 35'sd0 : load ? given : held) + prod",
    "alone": "clear ? 35'sd0 : load ? given : held + prod",
}
LATE = "logic late; logic [31:0] kept; always @(posedge clk) if (!rst_n) late <= 0;\n" + (
    "    else if (push) begin late <= load && !clear; kept <= c_in; end"
)
FAULTS = {
    "with": [
        ("load-ignored", "(clear ? 35'sd0 : held) + prod"),
        ("load-loses-products", "clear ? prod : load ? given : held + prod"),
        ("load-zero", "(clear || load ? 35'sd0 : held) + prod"),
        ("load-adds", "(clear ? 35'sd0 : load ? given + held : held) + prod"),
        ("load-late-by-one", "(clear ? 35'sd0 : late ? $signed(kept) : held) + prod"),
        ("always-load", "(clear ? 35'sd0 : given) + prod"),
        ("clear-and-load-swapped", "(load ? 35'sd0 : clear ? given : held) + prod"),
        ("clear-ignored", "(load ? given : held) + prod"),
    ],
    "alone": [
        ("load-keeps-held", "clear ? 35'sd0 : load ? held : held + prod"),
        ("clear-keeps-held", "clear ? held : load ? given : held + prod"),
        ("load-adds", "clear ? 35'sd0 : load ? given + held : held + prod"),
        ("load-adds-products", "clear ? 35'sd0 : (load ? given : held) + prod"),
        ("load-ignored", "clear ? 35'sd0 : held + prod"),
        ("load-zero", "clear || load ? 35'sd0 : held + prod"),
        ("clear-adds-products", "clear ? prod : load ? given : held + prod"),
        ("clear-ignored", "load ? given : held + prod"),
    ],
}


def unit(folder: Path, form: str) -> Instruction:
    (folder / "unit.yaml").write_text(UNIT.format(keys=KEYS[form]))
    return load_instruction(folder / "unit.yaml")


def described(folder: Path, form: str, body: str, ports: tuple[str, str, str] = BOTH) -> Path:
    unit(folder, form)
    names, local, mapped = ports
    local = local or (LATE if "late" in body else "")
    (folder / "mac.sv").write_text(RTL.replace("PORTS", names).replace("LOCAL", local).replace("BODY", body))
    (folder / "dut.yaml").write_text(
        "unit: unit.yaml\ntop: mac\nsources: [mac.sv]\nclock: clk\nreset: {port: rst_n, active: low}\n"
        "handshake: {kind: valid, input: {valid: push}, output: {valid: vld}}\n"
        f"ports: {{a: x, b: w, c: c_in, d: acc, {mapped}}}\n"
    )
    return folder / "dut.yaml"
