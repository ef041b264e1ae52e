"""A text of which simulators and synthesis make different things is not proved."""

from __future__ import annotations

from pathlib import Path

import pytest
from proved_units import REGISTERED, SUM, unit

from rtl_tb.prove.netlist import Unreadable
from rtl_tb.prove.problem import problem_of
from rtl_tb.prove.readings import two_readings

pytest.importorskip("pyslang")

RARE = "c == 32'h1234abcd"
VALID = "always_ff @(posedge clk) out_valid <= in_valid && rst_n;"
PART = "logic [31:0] p; logic k;"


def taken(what: str) -> str:
    """The register of the result takes this."""
    return REGISTERED.replace("<= right", f"<= {what}")


def function(kind: str) -> str:
    """A function that reads an operand that it is not given."""
    return f"function automatic f(input x); return {RARE}; endfunction {kind}" + taken(
        f"right ^ 32'(q != ({RARE}))"
    )


# What the search proved, and simulators show to be wrong at one value of c.
TWO = {
    "a static variable of a function": (
        "function [31:0] f(input [31:0] x); static logic [31:0] y = x; f = y ^ x; y = x; endfunction"
        " logic [31:0] p; always_comb p = f(right);" + taken("right ^ p"),
        "reads y before it sets it",
    ),
    "a list without an operand": (
        f"logic k; always @(a or b) k = {RARE};" + taken(f"right ^ 32'(k != ({RARE}))"),
        "reads c and does not wait",
    ),
    "a list with a part": (
        "logic k; always @(c[7:0]) k = c[31];" + taken("right ^ 32'(k != c[31])"),
        "reads c and does not wait",
    ),
    "a list with a condition": (
        "logic k; always @(c iff a[0]) k = c[31];" + taken("right ^ 32'(k != c[31])"),
        "reads c and does not wait",
    ),
    "a function in a process": (function("logic q; always @* q = f(a[0]);"), "reads c and does not wait"),
    "a function in a net": (function("wire q = f(a[0]);"), "a function reads c"),
    "a function in an assignment": (function("wire q; assign q = f(a[0]);"), "a function reads c"),
    "a delay of a register": (
        f"{VALID} always @(posedge clk) if ({RARE}) d <= #25 right; else d <= right;",
        "a delay or event within",
    ),
    "a delay of a process": (PART + "always @* #1 p = right;" + taken("p"), "a delay or event within"),
    "a delay of an assignment": ("wire [31:0] p; assign #25 p = right;" + taken("p"), "a delay of an assig"),
    "a delay of a net": ("wire [31:0] #25 p = right;" + taken("p"), "a delay of net p"),
    "a delay of a gate": (
        "wire p; buf #25 g (p, right[0]);" + taken("{right[31:1], p}"),
        "a delay of a gate",
    ),
    "a race": (
        f"{VALID} logic k; always @(posedge clk) k = in_valid && {RARE};"
        "always @(posedge clk) d <= k ? ~right : right;",
        "a race: k",
    ),
    "a variable that is read first": (
        PART
        + f"always_comb begin p = (k != ({RARE})) && {RARE} ? ~right : right; k = {RARE}; end"
        + taken("p"),
        "reads k before it sets it",
    ),
    "one that one branch sets": (
        PART + "always @* begin if (a[0]) k = 1; p = k ? right : right; k = 0; end" + taken("p"),
        "reads k before it sets it",
    ),
    "one that one item sets": (
        PART + "always @* begin case (a[1:0]) 1: k = 1; endcase p = k ? right : 0; k = 0; end" + taken("p"),
        "reads k before it sets it",
    ),
    "one that a function reads first": (
        PART + "function automatic g(input x); return k; endfunction "
        "always_comb begin p = g(0) ? right : 0; k = c[0]; end" + taken("p"),
        "reads k before it sets it",
    ),
    "a part that is read first": (
        "logic [31:0] p, q; always_comb begin p[15:0] = right[15:0]; q = p; p[31:16] = right[31:16]; end"
        + taken("q"),
        "reads p before it sets it",
    ),
    "an element that a loop leaves out": (
        "logic [31:0] p, q; always_comb begin for (int i = 0; i < 31; i++) p[i] = right[i]; q = p;"
        "p[31] = right[31]; end" + taken("q"),
        "reads p before it sets it",
    ),
    "a block that is left": (
        f"logic [31:0] p, q; always_comb begin begin : some if ({RARE}) disable some; p = right; end"
        " q = p; p = right; end" + taken("q"),
        "reads p before it sets it",
    ),
    "a loop that is left": (
        "logic [31:0] p, q; always_comb begin for (int i = 0; i < 32; i++) begin"
        f" if ({RARE} && i == 7) break; p[i] = right[i]; end q = p; p = right; end" + taken("q"),
        "reads p before it sets it",
    ),
    "a static variable of a process": (
        PART + f"always_comb begin static logic k; p = (k != ({RARE})) && {RARE} ? ~right : right;"
        f"k = {RARE}; end" + taken("p"),
        "reads k before it sets it",
    ),
    "a function that keeps its result": (
        f"function [31:0] f(input [31:0] x); if (!({RARE})) f = x; endfunction"
        " logic [31:0] p; always_comb p = f(right);" + taken("p"),
        "reads f before it sets it",
    ),
    "a function that keeps an output": (
        f"function void f(input [31:0] x, output [31:0] y); if (!({RARE})) y = x; endfunction"
        " logic [31:0] p; always_comb f(right, p);" + taken("p"),
        "reads y before it sets it",
    ),
    "a case of one value twice": (
        PART
        + "always @* begin case (a[0]) 1'b0: k = 1; 1'b0: k = 0; endcase p = k ? right : 0; k = 0; end"
        + taken("p"),
        "reads k before it sets it",
    ),
    "a list without a part": (
        PART
        + "assign p[31] = c[31]; always @(right) begin p[30:0] = right[30:0]; k = p[31]; end"
        + taken("{k ^ c[31] ^ right[31], right[30:0]}"),
        "reads p and does not wait",
    ),
    "a race through logic": (
        f"{VALID} logic k; always @(posedge clk) k = in_valid && {RARE}; wire q = k;"
        "always @(posedge clk) d <= q ? ~right : right;",
        "a race",
    ),
    "a clock that comes late": (
        f"{VALID} logic late, k; always @(clk) late <= clk; always @(posedge clk) k <= in_valid && {RARE};"
        "always @(posedge late) d <= k ? ~right : right;",
        "late is set with '<=' and is a clock",
    ),
    "an operand that is not computed": (
        PART + "function automatic logic f(input x); k = 1; return x; endfunction "
        "always_comb begin k = 0; p = 0; if (a[0] && f(0)) p = 1; p = k ? right : 0; end" + taken("p"),
        "an expression sets k",
    ),
    "a branch that is not taken": (
        PART + "function automatic logic f(input x); k = 1; return x; endfunction "
        "always_comb begin k = 0; p = a[0] ? 32'(f(1)) : 0; p = k ? right : 0; end" + taken("p"),
        "an expression sets k",
    ),
    "an order that is left open": (
        "logic [31:0] p; logic [3:0] k; always_comb begin k = a[3:0];"
        "p = {k, k++} == {a[3:0], a[3:0]} ? right : 0; end" + taken("p"),
        "an expression sets k",
    ),
    "a static function that calls itself": (
        "function int f(input int n); begin if (n > 0) f = f(n - 1) + n; else f = 0; end endfunction"
        + taken("right ^ 32'(f(3) != 6)"),
        "f calls itself and is not automatic",
    ),
    "a delay of a path": (
        "wire [31:0] p; path u(.x(right), .y(p));" + taken("p") + "endmodule\nmodule path"
        "(input [31:0] x, output [31:0] y); assign y = x; specify (x *> y) = 25; endspecify",
        "a delay of a path",
    ),
}


@pytest.mark.parametrize("name", TWO)
def test_a_text_of_two_readings_is_refused(name: str, tmp_path: Path) -> None:
    text, why = TWO[name]
    dut = unit(SUM + text, tmp_path)
    found = two_readings(dut)
    assert found is not None and why in found and found.startswith("unit.sv:"), found


def test_a_delay_counts_in_the_time_scale_of_its_module(tmp_path: Path) -> None:
    dut = unit(f"{SUM} late u (.clk, .x(right), .d); {VALID}", tmp_path)
    file, text = tmp_path / "unit.sv", (tmp_path / "unit.sv").read_text()
    late = "module late (input logic clk, [31:0] x, output logic [31:0] d); always @(posedge clk) d <= #1 x;"
    for scale, refused in (("1ns/1ps", False), ("1ns/1ns", False), ("10ns/1ns", True), ("1us/1ns", True)):
        file.write_text(f"{text}`timescale {scale}\n{late} endmodule\n")
        found = two_readings(dut)
        assert (found is not None) == refused, scale
        assert found is None or "a delay or event within" in found


ONE = {
    "a usual delay": f"{VALID} parameter TP = 1; always @(posedge clk) d <= #TP right;",
    "a complete list": PART
    + "always @(right or c, a) begin k = a[0]; p = k ? right : right; end"
    + taken("p"),
    "a list of parts": PART
    + "always @(right[31:0] or c[31:16], c[15:0], a[0]) begin k = a[0]; p = k ? right : right ^ c ^ c; end"
    + taken("p"),
    "parts in loops": "logic [3:0][7:0] p; logic [31:0] q; always_comb begin foreach (p[i])"
    " p[i] = right[8*i+:8]; q = p; for (int i = 3; i >= 0; i--) for (int j = 0; j < 8; j++)"
    " if (i == 3) q[8*i+j] = p[i][j];"
    "else q[8*i+j] = right[8*i+j]; end" + taken("q"),
    "fields": "struct packed {logic [15:0] high, low;} s; logic [31:0] q; always_comb begin"
    " s.low = right[15:0]; s.high = right[31:16]; q = s; end" + taken("q"),
    "a static constant of a function": PART
    + "function [31:0] f(input [31:0] x); static logic y = 0; f = x ^ 32'(y); endfunction "
    "always @* p = f(right);" + taken("p"),
    "functions that set": PART
    + "function automatic logic f(input logic [31:0] x, output logic [31:0] y); y = x; return x[0];"
    " endfunction function automatic void g(input x); k = x; endfunction int i;"
    "always_comb begin g(a[0]); i = 0; i++; k = f(right, p); if (k && i == 1) p = right; end" + taken("p"),
    "a star": PART + "always @(*) p = right;" + taken("p"),
    "a local variable": f"{VALID} always @(posedge clk) begin : f logic [31:0] t; t = right; d <= t; end",
    "a register that a net reads": f"{VALID} logic [31:0] t; always @(posedge clk) t = right; assign d = t;",
    "a loop of an integer": PART
    + "integer i; always @* begin p = 0; for (i = 0; i < 32; i = i + 1) p[i] = right[i]; end"
    + taken("p"),
    "a chain": "logic [31:0] q; always_comb begin q[0] = right[0];"
    "for (int i = 1; i < 32; i++) q[i] = q[i-1] ^ right[i]; end" + taken("right ^ q ^ q"),
    "a full case": PART
    + "always_comb begin case (a[0]) 1'b0: k = 1; 1'b1: k = 1; endcase p = k ? right : 0; end"
    + taken("p"),
    "a default before": PART
    + "always_comb begin k = 0; if (c[0]) k = 1; p = k ? right : right; end"
    + taken("p"),
    "a function of its arguments": "function [31:0] f; input [31:0] x; reg [31:0] y; begin y = x; f = y; end "
    "endfunction wire [31:0] p = f(right);" + taken("p"),
    "a loop and a variable of a function": PART
    + "function automatic [31:0] f(input [31:0] x); logic [31:0] y = x; y = y ^ 0; f = 0;"
    "for (int i = 0; i < 32; i = i + 1) f[i] = y[i]; endfunction always_comb p = f(right);" + taken("p"),
    "a function that calls itself": PART
    + "function automatic [31:0] f(input [31:0] x, input int n); if (n == 0) f = x; else f = f(x, n - 1);"
    "endfunction always_comb p = f(right, 3);" + taken("p"),
    "a branch for assertions": "`ifndef SYNTHESIS\nalways @(posedge clk) assert (d == d);\n`endif\n"
    + taken("right"),
}


@pytest.mark.parametrize("name", ONE)
def test_usual_texts_have_one_reading(name: str, tmp_path: Path) -> None:
    dut = unit(SUM + ONE[name], tmp_path)
    assert two_readings(dut) is None
    problem_of(dut)


BRANCH = f"`%s\nwire k = {RARE};\n`else\nwire k = 0;\n`endif\n"
BRANCHES = {
    "synthesis": BRANCH % "ifdef SYNTHESIS",
    "icarus": BRANCH % "ifndef __ICARUS__",
    "cocotb": BRANCH % "ifdef COCOTB_SIM",
    "verilator": BRANCH % "ifdef VERILATOR_TIMING",
    "synthesis without the pragma": f"wire k = {RARE}\n// synthesis translate_off\n& 1'b0\n"
    "// synthesis translate_on\n;\n",
}


@pytest.mark.parametrize("name", BRANCHES)
def test_a_branch_that_changes_the_netlist_is_refused(name: str, tmp_path: Path) -> None:
    """It is in a header next to the unit, of any suffix."""
    (tmp_path / "defs.inc").write_text(BRANCHES[name])
    text = '`include "defs.inc"\n' + taken("right ^ 32'(k)")
    with pytest.raises(Unreadable, match=rf"defs\.inc:\d+: as {name.split()[0]} reads it"):
        problem_of(unit(SUM + text, tmp_path))


def test_a_branch_that_the_description_chooses_has_one_reading(tmp_path: Path) -> None:
    text = BRANCHES["synthesis"] + taken("right ^ 32'(k)")
    problem_of(unit(SUM + text, tmp_path, more="defines: {SYNTHESIS: '1'}\n"))
