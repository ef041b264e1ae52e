"""The kinds of change are closed under inversion: what the mutator draws, the search has the inverse of."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import integer_dot
import pytest

from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.engines import builds
from rtl_tb.locate.candidates import taken
from rtl_tb.locate.changes import Changes, find_changes
from rtl_tb.locate.kinds import numbers
from rtl_tb.locate.selector import with_selector
from rtl_tb.locate.sources import Place
from rtl_tb.qualify.mutator import KINDS, Change, draw
from rtl_tb.qualify.mutator import find_changes as mutations

TEXT = """module dot4 (input logic clk, rst_n, in_valid, out_ready, input logic [31:0] a, b, c,
    output logic in_ready, out_valid, output logic [31:0] d);
    localparam int N = 2;
    logic signed [7:0] x0, x1, w0, w1;
    wire [15:0] word;
    logic signed [15:0] p, q, off;
    logic [17:0] sum; logic big, odd, neg; logic [3:0] mask, used;
    logic [1:0] state, next;
    assign in_ready = 1'b1; assign out_valid = in_valid;
    assign x0 = a[7:0];
    assign x1 = a[15:8];
    assign w0 = b[7:0];
    assign w1 = b[15:8];
    assign word = c[31] ? 16'h7e00 : 16'd1;
    assign big = p > 17;
    assign odd = (x0[0] | x1[0]) && !neg;
    assign neg = p[15] ^ q[15];
    assign mask = ~c[7:4] & {3'd0, big};
    assign used = neg ? mask & {4{big}} : -mask;
    assign p = x0 * w0 + off;
    assign off = q >>> 3;
    assign q = x1 * w1;
    assign sum = $signed(p) + $signed(q) + 16'(word);
    always_comb state = c[1:0] >> 1;
    always_comb begin
        next = state;
        if (big && odd) next = 2'd1;
        else if (neg) next = state + N;
    end
    assign d = c + {sum[15:0], 2'b00} + {28'd0, used};
endmodule
"""
BLANKS = re.compile(r"[\s()]|(?<=')[sS](?=[bdohBDOH])|(?<='h)0+(?=\w)|(?<='b)0+(?=\d)")
REFUSED = ("cast", "statement")
"""Kinds of which a part alone has an inverse, see below."""


def plain(text: str) -> str:
    """A text but for blanks, parentheses and zeros in front."""
    return BLANKS.sub("", text.replace("&&", "&").replace("||", "|"))


def inverses(folder: Path, change: Change) -> tuple[set[str], Changes]:
    """The texts that the search makes of a text with a change."""
    dut = integer_dot.planted(folder, 4, change.applied(TEXT))
    found = find_changes(dut)
    line = change.line + 1
    file = folder / "dot4.sv"

    def there(place: Place) -> bool:
        last = found.sources.line(Place(place.file, place.end, place.end))
        return found.sources.line(place) <= line + 1 and last >= line - 1

    every = [one.change for one in (*found.choices, *found.missing(there))] + found.constants
    near = [one for one in every if abs(found.line(one) - line) <= 1]
    return {plain(found.applied([one])[file]) for one in near}, found


SEED = 7
OPERAND = re.compile(r"\W*[A-Za-z_]\w*(\[\w+\])?\W*")
"""What is taken away and comes back: a name or a bit. Of an operand that is an expression of its own no other
text need have a copy."""


def simple(change: Change) -> bool:
    """Whether what a change takes away is an operand that the search knows."""
    if change.kind == "term":
        return OPERAND.fullmatch(change.before.replace(change.after, "", 1)) is not None
    if change.kind == "condition" and change.after.startswith("1'b"):
        return OPERAND.fullmatch(change.before) is not None
    return True


DRAWN = [one for kind in KINDS if kind not in REFUSED for one in [kind] * 3]


@pytest.mark.parametrize("number", range(len(DRAWN)), ids=[f"{kind}-{at}" for at, kind in enumerate(DRAWN)])
def test_what_is_drawn_has_its_inverse(tmp_path: Path, number: int) -> None:
    rng = random.Random(SEED + number)
    every = [one for one in mutations("dot4.sv", TEXT) if one.kind == DRAWN[number] and simple(one)]
    for _ in range(20):  # what slang refuses is drawn anew
        change = draw(every, rng)
        try:
            texts, _ = inverses(tmp_path, change)
        except Exception as error:
            assert "slang refused" in str(error), error
            continue
        if change.kind == "condition" and not change.after.startswith("1'b"):  # twice negated
            again = replace(change, after=f"!({change.after})").applied(TEXT)
            assert plain(again) in texts, change
        else:  # operands may have changed their order
            assert sorted(plain(TEXT)) in [sorted(one) for one in texts], change
        return
    pytest.fail("nothing that was drawn is a text")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("mask & {4{big}}", "{4{big}}"),
        ("(x0[0] | x1[0]) && !neg", "(x0[0] | x1[0])"),
        ("p[15] ^ q[15]", "p[15]"),
        ("x0 * w0 + off", "x0 * w0"),
        ("if (neg) next = state + N;", "if (1'b0) next = state + N;"),
    ],
)
def test_what_is_missing_is_among_what_is_searched(tmp_path: Path, right: str, wrong: str) -> None:
    """A term, a condition that was replaced by a constant."""
    assert TEXT.count(right) == 1
    dut = integer_dot.planted(tmp_path, 4, TEXT.replace(right, wrong))
    found = find_changes(dut)
    texts = {
        plain(text)
        for one in found.missing(lambda _place: True)
        for text in found.applied([one.change]).values()
    }
    assert plain(TEXT) in texts or any(sorted(plain(TEXT)) == sorted(each) for each in texts), (
        "the same text, or with its operands and statements in another order"
    )


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("4'd9", {"4'd10", "4'd8", "4'd11", "4'd13", "4'd1"}),
        ("5'd16", {"5'd17", "5'd15", "5'd26"}),
        ("2'b01", {"2'b10", "2'b0", "2'b11"}),
        ("8'hff", {"8'h0", "8'hfe", "8'h7f"}),
        ("5", {"6", "4", "7", "13"}),
        ("1'bx", set()),
    ],
)
def test_numbers_keep_their_width(text: str, near: set[str]) -> None:
    assert near <= set(numbers(text)) and text not in set(numbers(text))


def test_every_number_has_each_of_its_neighbours_as_one(tmp_path: Path) -> None:
    for text in ("4'd9", "8'hff", "12", "3'b101"):
        for other in numbers(text):
            assert plain(text) in {plain(one) for one in numbers(other)}


def test_text_that_no_instance_has_is_not_tried(tmp_path: Path) -> None:
    """A branch that is left out, a module that nobody uses, and what a loop does after each turn."""
    more = (
        "    if (N > 9) begin : never\n        wire [4:0] lost = 5'd11;\n    end\n"
        "    for (genvar i = 0; i < 2; i = i + 1) begin : each\n        wire one = a[i];\n    end\n"
        "endmodule\n"
        "module unused (input wire x, output wire y); assign y = x & 1'b1; endmodule\n"
    )
    text = TEXT.replace("endmodule\n", more)
    found = find_changes(integer_dot.planted(tmp_path, 4, text))
    every = [*(one.change for one in found.choices), *found.constants]
    said = {text[one.place.start - 4 : one.place.end + 4] for one in every}
    assert not any("5'd11" in one or "i + 1" in one or "x &" in one for one in said)
    assert any("i < 2" in one for one in said), "bounds of a generate loop are constants"


def test_no_range_leaves_its_vector(tmp_path: Path) -> None:
    found = find_changes(integer_dot.planted(tmp_path, 4, TEXT))
    every = [one.change for one in found.choices]
    assert not any("b[32" in "".join(found.applied([one]).values()) for one in every)
    assert not any("c[32]" in "".join(found.applied([one]).values()) for one in every)


REGISTER = """    always_ff @(posedge clk)
        if (!rst_n) state <= 2'd0;
        else if (in_valid) state <= next;
"""


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (REGISTER.replace("if (in_valid) ", ""), "else begin if (in_valid) state <= next; end"),
        ("    assign p = w0 * x0;\n", "assign p = $signed(w0) * $signed(x0);"),
        ("    assign big = w0 < x0;\n", "assign big = $signed(w0) < $signed(x0);"),
        ("    assign p = {w0[6:0], 9'b0};\n", "assign p = {w0[7:0], 8'b0};"),
        ("    assign big = state == 2'd1;\n", "assign big = (state == 2'd1 || state == 2'd2);"),
        ("    assign big = state inside {2'd1};\n", "assign big = state inside {2'd1, 2'd2};"),
        ("    always_comb case (state) 2'd1: big = 1'b1; default: big = 1'b0; endcase\n", "2'd1, 2'd2: big"),
        ("    assign big = |x0[6:1];\n", "assign big = |x0;"),
        ("    assign big = x0[0];\n", "assign big = (|x0);"),
        ("    assign big = w0[7:1] >= x0[7:1];\n", "assign big = w0 >= x0;"),
        ("    assign big = |{x0[7:4], x0[2:0]};\n", "assign big = |x0[7:0];"),
        ("    assign w1 = big ? x0 | 8'h40 : w0;\n", "assign w1 = big ? x0 | 8'h40 : w0 | (8'h40);"),
    ],
)
def test_a_lost_enable_or_pair_of_signs_is_searched(tmp_path: Path, wrong: str, expected: str) -> None:
    text = f"""module dot4 (input logic clk, rst_n, in_valid, out_ready, input logic [31:0] a, b, c,
    output logic in_ready, out_valid, output logic [31:0] d);
    logic [7:0] w0, w1, x0; logic [15:0] p; logic big; logic [1:0] state, next;
{wrong}endmodule
"""
    dut = integer_dot.planted(tmp_path, 4, text)
    found = find_changes(dut)
    every = [*found.choices, *found.missing(lambda _place: True)]
    texts = {" ".join(made.split()) for one in every for made in found.applied([one.change]).values()}
    assert any(expected in each for each in texts)


def test_members_of_interfaces_are_operands(tmp_path: Path) -> None:
    """One that lacks its sign, and one that may be a missing term though it is only driven here."""
    text = """interface stream; logic valid, ready; logic [7:0] data;
    modport sink (input valid, data, output ready); endinterface
module part (stream.sink a, stream.sink b, output logic [15:0] p, output logic taken);
    assign p = $signed(a.data) * b.data;
    assign a.ready = b.valid;
    assign taken = a.valid;
endmodule
module dot4 (input logic clk, rst_n, in_valid, out_ready, input logic [31:0] a, b, c,
    output logic in_ready, out_valid, output logic [31:0] d);
    stream one(), two();
    part u(.a(one), .b(two), .p(d[15:0]), .taken(out_valid));
endmodule
"""
    found = find_changes(integer_dot.planted(tmp_path, 4, text))
    assert not found.not_read
    every = [*found.choices, *found.missing(lambda _: True)]
    texts = {made for one in every for made in found.applied([one.change]).values()}
    for line in (
        "p = $signed(a.data) * $signed(b.data);",
        "taken = a.valid & b.valid;",
        "a.valid & a.ready;",
    ):
        assert any(line in each for each in texts), line


MACROS = """`define NEXT(to, from) \\
    always_ff @(posedge clk) to <= (from) + 8'd1
module dot4 (input logic clk, rst_n, in_valid, out_ready, input logic [31:0] a, b, c,
    output logic in_ready, out_valid, output logic [31:0] d);
    function automatic int wide(int bits); return bits + 1; endfunction
    function automatic logic [7:0] half(logic [7:0] x); return x >> 1; endfunction
    logic [wide(6):0] w0, w1;
    assign w1 = half(a[7:0]);
    `NEXT(w0, w1 & b[7:0]);
    assign d = w0;
endmodule
"""


def test_macros_are_changed_where_they_are_written(tmp_path: Path) -> None:
    """In an argument and in the body of the definition, each as its text; a function that only a width calls
    is fixed before the unit runs, and no choice."""
    dut = integer_dot.planted(tmp_path, 4, MACROS)
    found = find_changes(dut)
    made = {(found.line(one.change), one.change.before, one.change.after) for one in found.choices}
    assert (9, "&", "|") in made  # an argument
    assert (2, "+", "-") in made and (2, "8'd1", "8'd2") in made  # the body
    assert (6, "1", "2") in made and not any(line == 5 for line, *_ in made)
    assert any(found.line(one) == 5 for one in found.constants)
    listed = [*found.probes, *found.choices]
    chosen = with_selector(dut, found, listed, tmp_path / "choices")
    assert builds.reads(chosen, tmp_path, wrapper_of(dut)), "number 0 is the unit itself"


def test_text_with_an_error_where_no_constant_leads_is_searched(tmp_path: Path) -> None:
    """Simulators forgive a replication by zero in the branch that is not taken, and a cell that only
    synthesis takes; the rest is searched."""
    dead = "assign off = (N == 2) ? (q >>> 3) : {({(N - 2){1'b0}}), q[15:8]};"
    dead += " if (N == 9) begin : cells VENDOR_CELL u(.x(a)); end"
    found = find_changes(integer_dot.planted(tmp_path, 4, TEXT.replace("assign off = q >>> 3;", dead)))
    assert any(one.change.before == "17" for one in found.choices)
    assert not any("N - 2" in one.change.before for one in found.choices)


def test_a_part_of_a_concatenation_changes_what_is_around_it(tmp_path: Path) -> None:
    """A concatenation has the bits of its parts: cut to the present ones, it would lose its first one."""
    text = MACROS.replace("assign d = w0;", "assign d = {31'd0, &{c[0], {a[7:4], a[3:1]}}};")
    found = find_changes(integer_dot.planted(tmp_path, 4, text))
    (wider,) = (one for one in found.choices if (one.change.before, one.change.after) == ("3:1", "3:0"))
    assert wider.text == "&{c[0], {a[7:4], a[3:0]}}" and wider.bits == 1
    names = (
        "wire [7:0] mag_x = a[7:0]; wire [6:0] mag = b[6:0];\n    assign d = {16'd0, &{c[0], mag_x}, mag};"
    )
    found = find_changes(integer_dot.planted(tmp_path, 4, MACROS.replace("assign d = w0;", names)))
    (name,) = (one for one in found.choices if (one.change.before, one.change.after) == ("mag_x", "mag"))
    assert name.text == "&{c[0], mag}" and name.bits == 1, "a name of other bits is such a part"


def test_verilator_reads_each_choice_of_a_number(tmp_path: Path) -> None:
    """A number with a base before a question mark, and other numbers of copies: one that is negative or huge
    stops Verilator without a line. The variable of a loop that generates is no operand behind it."""
    lines = """localparam int WIDE = 4, FAR = 32'h7fc00000;
    logic [31:0] w;
    for (genvar i = 0; i < 32; i++) begin : each
        assign w[i] = a[i];
    end
    assign d = (w[0] & b[0])? {{(WIDE - 1){1'b0}}, w[28:0]} : {{WIDE{w[31]}}, w[27:0]};"""
    text = MACROS.replace("assign d = w0;", lines)
    dut, first = integer_dot.planted(tmp_path, 4, text), text[: text.index(lines)].count("\n") + 1
    found = find_changes(dut)
    every = [
        one for one in (*found.choices, *found.missing(lambda _: True)) if found.line(one.change) >= first
    ]
    made = {(one.change.before, one.change.after) for one in every}
    assert ("(w[0] & b[0])", "1'b1 ") in made and ("WIDE", "(WIDE + 1)") in made
    assert not {after for before, after in made if before == "WIDE"} & {"FAR", "(-WIDE)", "(~WIDE)"}
    chosen = with_selector(dut, found, every, tmp_path / "choices")
    assert builds.reads(chosen, tmp_path, wrapper_of(dut))


def test_no_change_reads_the_variable_of_another_loop(tmp_path: Path) -> None:
    """Verilator would refuse each of them, and with it every build that has one."""
    loops = """logic [31:0] p, q;
    always_comb begin
        p = '0;
        q = '0;
        for (int i = 0; i < 32; i++) begin
            p[i] = a[i];
        end
        for (int j = 0; j < 32; j++) begin
            q[j] = b[j] & p[j];
        end
    end
    assign d = q;"""
    dut = integer_dot.planted(tmp_path, 4, MACROS.replace("assign d = w0;", loops))
    found = find_changes(dut)
    missing = [one for one in found.missing(lambda _: True) if re.search(r"\b[ij]\b", one.change.after)]
    assert any("[j]" in one.change.after for one in missing)
    chosen = with_selector(dut, found, missing, tmp_path / "choices")
    assert builds.reads(chosen, tmp_path, wrapper_of(dut))


@pytest.mark.parametrize(("loop", "copies"), [("always_comb ", 1), ("genvar k; ", 32)])
def test_loops_that_generate_make_choices_larger(loop: str, copies: int, tmp_path: Path) -> None:
    body = "assign d[k] =" if copies > 1 else "d[k] ="
    declared = "" if copies > 1 else "int "
    loops = f"{loop}for ({declared}k = 0; k < 32; k++) {body} a[k] ^ w0[0];"
    found = find_changes(integer_dot.planted(tmp_path, 4, MACROS.replace("assign d = w0;", loops)))
    sizes = {one.copies for one in found.choices if one.change.before == "^"}
    assert sizes == {copies} and {one.copies for one in found.choices if one.change.before == "&"} == {1}
    few = taken(found.choices, len(found.choices))
    assert 0 < len(few) <= len(found.choices) and few == found.choices[: len(few)]


def test_an_adder_that_is_a_bit_too_short_gets_it_back_everywhere(tmp_path: Path) -> None:
    """One range alone would leave the other too short."""
    text = TEXT.replace("    assign d = c", "    logic [31:0] t;\n    assign d = t + c").replace(
        "        next = state;", "        t[30:0] = a[30:0] + 31'(signed'(b));\n        next = state;"
    )
    found = find_changes(integer_dot.planted(tmp_path, 4, text))
    assert "t[31:0] = a[31:0] + 32'(signed'(b));" in {one.text for one in found.choices}


def test_a_range_may_reach_down_to_bit_0(tmp_path: Path) -> None:
    """Alone, as in a sticky bit, or in both operands of a comparison."""
    text = TEXT.replace("    assign d = c", "    logic [31:0] t;\n    assign d = t + c").replace(
        "        next = state;", "        t = a[31:23] > b[31:23] ? |a[21:2] : 0;\n        next = state;"
    )
    text = text.replace("assign neg = ", "assign neg = a[30:23] > b[30:23] ? 0 : ")
    found = {one.text for one in find_changes(integer_dot.planted(tmp_path, 4, text)).choices}
    assert {"|a[21:0]", "t = a[31:0] > b[31:0] ? |a[21:2] : 0;", "a[30:0] > b[30:0]"} <= found


@pytest.mark.parametrize("behind", ["", " else z <= 8'd1;"])
def test_a_reset_that_holds_a_statement_back_may_be_left_out(behind: str, tmp_path: Path) -> None:
    """Not one that chooses: it resets."""
    clocked = f"logic [7:0] z;\n    always_ff @(posedge clk) if (!rst_n) z <= a[7:0];{behind}\n    assign d"
    found = find_changes(integer_dot.planted(tmp_path, 4, TEXT.replace("assign d", clocked)))
    of_reset = [one.change.after for one in found.choices if one.change.before == "!rst_n"]
    assert ("1'b1" in of_reset) == (not behind)


def test_escaped_names_end_with_their_blank(tmp_path: Path) -> None:
    """Verilator reads every choice around them, and none has another name without its blank."""
    text = TEXT.replace(
        "    assign mask", "    wire \\6:3 = x0[0] ^ x1[0];\n    wire \\a+b = \\6:3 ;\n    assign mask"
    )
    text = text.replace("assign neg = p[15] ^ q[15];", "assign neg = \\6:3 ^ (q[15] & \\a+b );")
    dut = integer_dot.planted(tmp_path, 4, text)
    found = find_changes(dut)
    here = [
        one
        for one in found.choices
        if "\\6:3" in found.sources.texts[one.site.file][one.site.start : one.site.end]
    ]
    every = [*here, *found.missing(lambda place: any(place == one.site for one in here))]
    assert len(here) > 8
    assert builds.reads(with_selector(dut, found, every, tmp_path / "choices"), tmp_path, wrapper_of(dut))


def test_no_name_closes_a_loop_without_a_register(tmp_path: Path) -> None:
    """What `late` is made of may not take it; the register that keeps it stands there."""
    nets = "wire [15:0] old = word;\n    wire [15:0] late = ~old;\n    reg [15:0] kept;\n"
    clocked = "    always_ff @(posedge clk) kept <= late;\n    assign mask"
    text = TEXT.replace("    assign mask", f"    {nets}{clocked}")
    found = find_changes(integer_dot.planted(tmp_path, 4, text))
    line = next(at for at, one in enumerate(text.split("\n"), 1) if "old = word" in one)
    names = {one.change.after for one in found.choices if found.line(one.change) == line}
    assert "kept" in names and not names & {"late", "old"}


def test_the_operands_of_a_difference_are_exchanged(tmp_path: Path) -> None:
    """Indices keep theirs."""
    text = TEXT.replace("assign off = q >>> 3;", "assign off = p[N-1] ? q - 16'(word) : q;")
    found = find_changes(integer_dot.planted(tmp_path, 4, text))
    made = {one.change.after for one in found.choices if one.change.kind == "operator"}
    assert "(16'(word)) - q" in made and not any("1 - N" in one for one in made)


def test_names_that_belong_together_may_be_missing(tmp_path: Path) -> None:
    """What else of the two operands is compared, a name with other bits, a value of a case; no genvar."""
    declared = """    wire [3:0] exp_a, exp_b; wire [6:0] man_a, man_b, x; wire [7:0] x_whole;
    wire more, sign_a, zero_a, sign_b, zero_b; genvar g; wire both = zero_a & zero_b;
    for (g = 0; g < 2; g = g + 1) begin : each wire [1:0] own = x[g]; end
    assign more = exp_a == exp_b && x == N; logic hit;
    always_comb case (x[2:0]) 3'd1, 3'd2: hit = 1; default: hit = 0; endcase
    assign mask"""
    found = find_changes(integer_dot.planted(tmp_path, 4, TEXT.replace("    assign mask", declared)))
    missing = {one.change.term for one in found.missing(lambda _: True)}
    assert {"(man_a > man_b)", "(man_a == man_b)", "(sign_a ^ sign_b)"} <= missing
    replaced = {(one.change.before, one.change.after) for one in found.choices}
    assert {("x", "x_whole"), ("", "3'd3")} <= replaced
    assert not [both for both in replaced if "g" in both and "N" in both]
