"""No unit is PROVED that is wrong, however rarely, and whatever in its text makes it so.

docs/proving.md has what longer runs found: 48-bit triggers at K = 16, and mutants.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from proved_units import REGISTERED, SUM, unit
from wrong_units import WRONG, planted, value

from golden.circuit.words import Words
from golden.proof.sweep import PROVED, REFUTED, Sweep
from golden.proof.verdict import verdict_of
from rtl_tb.dut.description import Dut
from rtl_tb.errors import ElaborationError
from rtl_tb.prove.netlist import Unreadable, transaction
from rtl_tb.prove.problem import problem_of

pytest.importorskip("bitwuzla")
pytest.importorskip("pyosys")

FDA = Path(__file__).parent / "other_fda.yaml"
RARE = "c == 32'h1234abcd"


def verdict(dut: Dut) -> str:
    """What the search finds of a unit; "refused" where it is not read."""
    try:
        return verdict_of(Sweep(problem_of(dut)[0], time.monotonic() + 120))[0]
    except (Unreadable, ElaborationError):
        return "refused"


# A trigger of 48 bits ---------------------------------------------------------------------------------------

QUICK = ("an alignment", "the sign of a zero")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name not in QUICK)) for name in WRONG]
)
def test_a_unit_that_is_wrong_at_one_pattern_is_not_proved(name: str, tmp_path: Path) -> None:
    dut, operands = planted(FDA, WRONG[name], tmp_path)
    words = Words()
    result = transaction(dut, words, words.variable("word", dut.layout.operand_width)).result
    right = int(dut.instruction.dot(**{name: codes[None] for name, codes in operands.items()})[0])
    assert value(result, dut, operands) != right
    assert verdict(dut) != PROVED


@pytest.mark.long
def test_a_carry_of_16_products_that_is_wrong_at_one_pattern_is_refuted(tmp_path: Path) -> None:
    text = FDA.read_text().replace("K: 4, F: 23, FLOOR: -131", "K: 16, F: 25, FLOOR: -133")
    file = tmp_path / "wide.yaml"
    file.write_text(
        text.replace("volta:mma.sync.aligned.m8n8k4.row.col", "hopper:mma.sync.aligned.m16n8k16.row.col")
    )
    (tmp_path / "other_fda.sv").write_text(FDA.with_suffix(".sv").read_text())
    dut, _ = planted(file, WRONG["a carry"], tmp_path / "wrong")
    assert verdict(dut) == REFUTED


# The text ---------------------------------------------------------------------------------------------------


def taken(what: str) -> str:
    """The register of the result takes this."""
    return REGISTERED.replace("<= right", f"<= {what}")


def chosen(statement: str) -> str:
    """A combinational statement that sets p, which is the result."""
    return f"logic [31:0] p; always_comb {statement}" + taken("p")


def inside(text: str) -> str:
    """A module around the result."""
    ports = "(input logic [31:0] c, x, output logic [31:0] y)"
    return f"wire [31:0] p; box u (.c(c), .x(right), .y(p));{taken('p')}endmodule\n{text.format(ports=ports)}"


WRONG_BOX = f"module box {{ports}}; assign y = {RARE} ? 0 : x;"
TEXTS = {
    # State.
    "a register that nothing sets": "logic [47:0] k; always_ff @(posedge clk) k <= k;"
    + taken("right ^ 32'(k == 48'h123456789abc)"),
    "a signal that nothing drives": "logic [47:0] k;" + taken("right ^ 32'(k == 48'h123456789abc)"),
    "an initial value of a register": "logic k = 0; always_ff @(posedge clk) k <= k;"
    + taken("right ^ 32'(k)"),
    "an operand of the transaction before": "logic [31:0] k; always_ff @(posedge clk) if (in_valid) k <= c;"
    + taken("right ^ 32'(k == 32'h1234abcd)"),
    "a first cycle after a reset": """logic k; always_ff @(posedge clk) k <= rst_n;"""
    + taken("k ? right : 0"),
    "a first cycle after an asynchronous reset": """
        logic k; always_ff @(posedge clk or negedge rst_n) if (!rst_n) k <= 0; else k <= 1;"""
    + taken("k ? right : 0"),
    "a reset by valid": """
        always_ff @(posedge clk or posedge in_valid) if (in_valid) d <= 0; else d <= right;
        always_ff @(posedge clk) out_valid <= in_valid && rst_n;""",
    "a memory that was not written": """
        logic [31:0] m [0:3]; always_ff @(posedge clk) if (in_valid) m[c[1:0]] <= right;
        always_ff @(posedge clk) begin out_valid <= in_valid && rst_n; d <= m[c[1:0]]; end""",
    "a variable of a function that stays": f"""
        function automatic [31:0] f(input [31:0] x); static logic [31:0] k; if (!({RARE})) k = x; return k;
        endfunction"""
    + taken("f(right)"),
    # What the language leaves open.
    "x": taken(f"{RARE} ? 'x : right"),
    "z": taken(f"{RARE} ? 'z : right"),
    "a case that is said to be full": chosen(f"(* full_case *) case ({RARE}) 1'b0: p = right; endcase"),
    "a unique case without a match": chosen(f"unique case ({RARE}) 1'b0: p = right; endcase"),
    "a unique case of two matches": chosen(
        f"unique case (1'b1) ({RARE}): p = right; c != 0: p = right; c == 0: p = right; endcase"
    ),
    "a latch": chosen(f"if (!({RARE})) p = right;"),
    "a tristate driver": f"wire [31:0] p; bufif1 g [31:0] (p, right, !({RARE}));" + taken("p"),
    "a comparison with x": chosen("p = a[0] === 1'bx ? ~right : a[1] === 1'bx ? right : ~right;"),
    "casex": chosen("casex (c) 32'h1234abcx: p = 0; default: p = right; endcase"),
    "a casez of z": chosen(f"casez ({RARE} ? 2'bz0 : 2'b10) 2'b10: p = right; default: p = 0; endcase"),
    "a wildcard": taken("c ==? 32'h1234xxxx ? 0 : right"),
    "a set": taken("c inside {[32'h12340000:32'h12340001]} ? 0 : right"),
    "a part that is written beyond": chosen(
        "begin p = right; p[c[4:0]+:8] = c[4:0] > 24 ? 8'hff : right[c[4:0]+:8]; end"
    ),
    "an index of an array": "logic [31:0] m [0:2]; always_comb for (int i = 0; i < 3; i++) m[i] = right;"
    + taken("m[c[1:0]]"),
    "a function without a result": f"function automatic [31:0] f(input [31:0] x); if (!({RARE})) f = x; "
    "endfunction" + taken("f(right)"),
    # Clocks, sets and drivers.
    "a condition of an edge": "always_ff @(posedge clk) out_valid <= in_valid && rst_n;"
    f"always_ff @(posedge clk iff !({RARE})) d <= right;",
    "a gated clock": "always_ff @(posedge clk) out_valid <= in_valid && rst_n;"
    f"wire g = clk & !({RARE}); always_ff @(posedge g) d <= right;",
    "the other edge": f"logic k; always_ff @(negedge clk) k <= {RARE};" + taken("k ? 0 : right"),
    "a clock that is read": taken(f"clk && {RARE} ? 0 : right"),
    "a set and a reset": f"""wire s = in_valid && {RARE};
        always_ff @(posedge clk or negedge rst_n or posedge s) if (!rst_n) d <= 0; else if (s) d <= 0;
        else d <= right; always_ff @(posedge clk) out_valid <= in_valid && rst_n;""",
    "an initial value that changes": "logic k; initial k = 0;"
    f"always @(posedge clk) if (in_valid && {RARE}) k <= 1;" + taken("k ? 0 : right"),
    "a latch of one bit": "logic [31:0] p; always @* begin p[31:1] = right[31:1];"
    f"if (!({RARE})) p[0] = right[0]; end" + taken("p"),
    "wired or": f"wor [31:0] p; assign p = right; assign p = {RARE} ? 1 : 0;" + taken("p"),
    "wired and": f"wand [31:0] p; assign p = right; assign p = {RARE} ? 1 : '1;" + taken("p"),
    "a stronger driver": "wire [31:0] p; assign p = right;"
    f"assign (supply0, supply1) p = {RARE} ? 32'd0 : right;" + taken("p"),
    "a net with a pullup": f"wire [31:0] p; pullup u [31:0] (p); assign p = {RARE} ? 'z : right;"
    + taken("p"),
    "an inout port": "wire [31:0] p; box u (.x(right), .c(c), .p(p));" + taken("p") + "endmodule\n"
    f"module box(input [31:0] x, c, inout [31:0] p); assign p = {RARE} ? 'z : x;",
    "a net that is set from above": f"wire [31:0] p; box u (.c(c), .x(right), .y(p)); assign u.k = {RARE};"
    + taken("p")
    + "endmodule\nmodule box(input [31:0] c, x, output [31:0] y); wire k; assign y = k === 1 ? 0 : x;",
    "a forced variable": f"logic [31:0] p; assign p = right; always @(posedge clk) if ({RARE}) force p = 0;"
    + taken("p"),
    # What a tool may believe or leave out.
    "an assumption": f"always_comb assume (!({RARE}));" + taken(f"{RARE} ? 0 : right"),
    "an assumed property": f"assume property (@(posedge clk) !({RARE}));" + taken(f"{RARE} ? 0 : right"),
    "a branch for Yosys": f"`ifdef YOSYS\nwire k = 0;\n`else\nwire k = {RARE};\n`endif\n"
    + taken("right ^ 32'(k)"),
    "a branch for synthesis": f"`ifdef SYNTHESIS\nwire k = 0;\n`else\nwire k = {RARE};\n`endif\n"
    + taken("right ^ 32'(k)"),
    "a branch for slang": f"`ifdef __slang__\nwire k = 0;\n`else\nwire k = {RARE};\n`endif\n"
    + taken("right ^ 32'(k)"),
    "text that synthesis leaves out": "wire [31:0] p = right\n// synthesis translate_off\n"
    f"^ 32'({RARE})\n// synthesis translate_on\n;" + taken("p"),
    "a black box": inside("(* blackbox *) module box {ports};"),
    "a white box": inside(f"(* whitebox *) {WRONG_BOX}"),
    "a module that is kept": inside(f"(* keep_hierarchy *) {WRONG_BOX}"),
    "an empty module": inside("module box {ports};"),
    "a parameter of an instance": inside(
        "module box #(parameter N = 0) {ports}; assign y = x ^ 32'(N != 0 && c == 7);"
    ).replace("box u (", "defparam u.N = 1; box u ("),
    # Widths and signs.
    "a sum without a sign": "wire [31:0] p = 32'($signed(c) + $signed(a[7:0]) * b[7:0]) - c;"
    + taken("right ^ 32'(p != 32'($signed(a[7:0]) * $signed(b[7:0])))"),
    "a shift without a sign": "wire signed [31:0] s = c; wire [31:0] p = (s >>> 31) + 32'd0;"
    + taken("right ^ (p ^ {32{c[31]}})"),
    "a comparison of mixed signs": "wire k = $signed(c) < 32'd0;" + taken("right ^ 32'(k != c[31])"),
    "a concatenation has no sign": "wire signed [7:0] s = $signed({a[3:0]});"
    + taken("right ^ 32'(s != {4'd0, a[3:0]})"),
    "a mixed expression has no sign": "wire [31:0] p = ($signed(c) >>> 4) | 32'd0;"
    + taken("right ^ (p ^ {{4{c[31]}}, c[31:4]})"),
    "a port with a sign": "wire [31:0] p; wire signed [7:0] s = c[7:0]; box u (.x(right), .y(p), .k(s));"
    + taken("p")
    + "endmodule\nmodule box(input [31:0] x, k, output [31:0] y); assign y = k[31] ? 0 : x;",
    "a parameter that is rounded": "localparam int N = 2.5; localparam real R = 0.1 + 0.2;"
    + taken("right ^ 32'(N != 2) ^ 32'(R == 0.3)"),
    "a power that overflows": "localparam signed [3:0] P = 4'sd2 ** 3;" + taken("right ^ 32'(P < 0)"),
    "a quotient of a negative number": "localparam signed [31:0] P = -7 / 2;" + taken("right ^ 32'(P == -3)"),
    "a shift by a wide amount": f"wire [31:0] p = right >> (33'({RARE}) << 32);" + taken("p"),
    "a product that is cut": "wire [31:0] p = {24'd0, 8'(a[7:0] * b[7:0])};"
    + taken("right ^ 32'(p != 32'(a[7:0]) * 32'(b[7:0]))"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_is_wrong_is_not_proved(name: str, tmp_path: Path) -> None:
    assert verdict(unit(SUM + TEXTS[name], tmp_path)) != PROVED


def test_the_same_without_the_fault_is_proved(tmp_path: Path) -> None:
    body = inside("module box {ports}; assign y = x;")
    assert verdict(unit(SUM + body, tmp_path)) == PROVED
