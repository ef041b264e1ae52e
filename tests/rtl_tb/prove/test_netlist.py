"""Reading: a unit's netlist means what its text means; what is no function of a transaction is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from proved_units import REGISTERED, SECOND, SUM, unit

from golden.circuit.words import Words, evaluate, order
from golden.vectors.vectorset import default_set
from rtl_tb.dut.description import Dut
from rtl_tb.prove.netlist import Transaction, Unreadable, transaction

pytest.importorskip("pyosys")

COUNT = 400


def read(dut: Dut) -> Transaction:
    words = Words()
    return transaction(dut, words, words.variable("word", dut.layout.operand_width))


def answers(dut: Dut) -> list[bool]:
    """Of some vectors, whether the words that were read give golden's results."""
    vectors = default_set(dut.instruction, COUNT, 1, dut.level)
    packed = dut.layout.pack_operands(vectors.operands)
    numbers = [int.from_bytes(row.tobytes(), "little") for row in packed]
    result = read(dut).result
    names = {str(word.value) for word in order([result]) if word.op == "var"} - {"word"}
    rng = np.random.default_rng(1)
    free = {name: [int(bit) for bit in rng.integers(0, 2, COUNT)] for name in names}
    found = evaluate([result], {"word": numbers} | free)[result]
    return [int(one) == int(other) for one, other in zip(found, vectors.d, strict=True)]


WRITTEN = {
    "registered": SUM + REGISTERED,
    "asynchronous reset": SUM
    + """
    always_ff @(posedge clk or negedge rst_n)
        if (!rst_n) begin out_valid <= 0; d <= 0; end
        else begin out_valid <= in_valid; if (in_valid) d <= right; end
    """,
    "a case of constants and a memory": SUM
    + """
    logic [31:0] held [0:1];
    logic valid1;
    always_ff @(posedge clk) begin
        valid1 <= in_valid && rst_n;
        out_valid <= valid1 && rst_n;
        case ({high, low})
            2'b10: held[1] <= 32'h7fffffff;
            2'b01: held[1] <= 32'h80000000;
            default: held[1] <= sum[31:0];
        endcase
        d <= held[1];
    end
    """,
    "a shift by a signed amount": SUM.replace("sum[31:0];", "32'(sum >>> ($signed(3'd1) - 3'sd1));")
    + REGISTERED,
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_read_computes_what_the_text_does(name: str, tmp_path: Path) -> None:
    assert all(answers(unit(WRITTEN[name], tmp_path)))


def test_x_is_anything(tmp_path: Path) -> None:
    """Not zero, nor whatever value makes the result right."""
    dut = unit(SUM.replace(": sum[31:0];", ": c == 5 ? 'x : sum[31:0];") + REGISTERED, tmp_path)
    found = read(dut)
    assert found.undefined and len([word for word in order([found.result]) if word.op == "var"]) > 1


BEYOND = {
    "a bit at a constant of the unit": """
        function automatic logic at(input logic [3:0] of, input logic [2:0] place);
            return of[place];
        endfunction
        wire last = at(c[3:0], 3'd5);""",
    "a bit at an operand": "wire [3:0] beyond = c[3:0]; wire last = beyond[c[6:4]];",
    "a piece that is wider": "wire [1:0] beyond = c[1:0]; wire last = |beyond[c[4] +: 3];",
    "a piece at a signed place": """
        wire [3:0] beyond = c[3:0]; wire signed [3:0] place = c[7:4]; wire last = |beyond[place +: 2];""",
}


@pytest.mark.parametrize("name", BEYOND)
def test_bits_beyond_a_vector_are_anything(name: str, tmp_path: Path) -> None:
    body = SUM + BEYOND[name] + REGISTERED.replace("<= right", "<= right ^ 32'(last)")
    assert read(unit(body, tmp_path)).undefined


def test_a_pipeline_heeds_no_other_transaction(tmp_path: Path) -> None:
    assert read(unit(SUM + REGISTERED, tmp_path)).steady


SERIAL = (
    SUM
    + """
    logic [2:0] phase;
    logic [31:0] held;
    always_ff @(posedge clk) begin
        phase <= !rst_n || phase == 4 ? 0 : phase + 3'(phase != 0 || in_valid);
        if (phase == 0) held <= right;
        out_valid <= rst_n && phase == 4;
        d <= held;
    end
"""
)
"""Takes five cycles for a product."""


def test_a_unit_that_returns_to_where_it_was_heeds_no_other_transaction(tmp_path: Path) -> None:
    """One that does not keeps a bit that the first result sets."""
    again = "logic again; always_ff @(posedge clk) again <= rst_n && (again || out_valid);"
    other = SERIAL.replace("held;\n    end", "held ^ 32'(again && held == 7);\n    end") + again
    for text, steady in ((SERIAL, True), (other, False)):
        assert read(unit(text, tmp_path, "serial")).steady == steady


TOGETHER = """
    logic [1:0] first, second;
    logic [63:0] held;
    wire apart = first != second;
    always_ff @(posedge clk) begin
        first <= rst_n ? {first[0], in_valid} : 0;
        second <= rst_n ? {second[0], in_valid && !apart} : 0;
        held <= {held[31:0], apart ? 32'd0 : right};
        out_valid <= rst_n && first[1] && second[1];
        d <= held[63:32];
    end
"""
"""Two pipelines that would lose a word if one of them were ahead, which no traffic brings about."""
BOTH_SEEN = """
    logic one, other;
    always_ff @(posedge clk) begin
        one <= rst_n && (one || in_valid);
        other <= rst_n && (other || in_valid);
        out_valid <= rst_n && in_valid;
        d <= right ^ 32'(one && other && c == 7);
    end
"""
"""Every bit that a reset sets changes in one cycle."""
IDLE = """
    logic [6:0] idle;
    always_ff @(posedge clk) begin
        idle <= !rst_n || in_valid ? 0 : idle + 7'(idle != 100);
        out_valid <= rst_n && (in_valid || idle == 99);
        d <= right;
    end
"""
"""A result that nobody sent operands for."""


@pytest.mark.parametrize(("text", "steady"), [(TOGETHER, True), (BOTH_SEEN, False), (IDLE, False)])
def test_other_transactions_start_in_states_that_traffic_reaches(
    text: str, steady: bool, tmp_path: Path
) -> None:
    found = read(unit(SUM + text, tmp_path))
    assert found.steady == steady


def test_a_unit_that_counts_transactions_is_read_as_what_it_is_after_a_reset(tmp_path: Path) -> None:
    found = read(unit(SECOND, tmp_path))
    assert not found.steady and not found.held


def test_of_a_selector_with_two_active_lines_the_result_is_x(tmp_path: Path) -> None:
    chosen = """
    logic [31:0] picked;
    always_comb (* parallel_case, full_case *) case (1'b1)
        c[0]: picked = right;
        c[1]: picked = right + 1;
    endcase
    """
    assert read(unit(SUM + chosen + REGISTERED.replace("<= right", "<= picked"), tmp_path)).undefined


REFUSED = {
    "a latch": (SUM + "always_latch if (in_valid) d = right; assign out_valid = in_valid;", "latch"),
    "a loop": (
        SUM + "wire [31:0] round = right ^ (round & c); assign d = round; assign out_valid = in_valid;",
        "combinational loop",
    ),
    "a driver that lets go": (
        SUM + "assign d = in_valid ? right : 'z; assign d = c[0] ? c : 'z; assign out_valid = in_valid;",
        "two drivers|tristate|cell",
    ),
    "a latency that operands set": (
        SUM + "always_ff @(posedge clk) begin out_valid <= rst_n && in_valid && c[0]; d <= right; end",
        "no fixed latency",
    ),
    "no result": (SUM + "always_ff @(posedge clk) begin out_valid <= 0; d <= right; end", "no result in"),
    "a valid that stays": (
        SUM + "assign d = right; assign out_valid = 1;",
        "its valid is not 0 1 cycle after",
    ),
    "a second result of some operands, late": (
        SUM
        + """logic [8:0] again;
        always_ff @(posedge clk) begin
            again <= rst_n ? {again[7:0], in_valid && c == 7} : 0;
            out_valid <= (in_valid || again[8]) && rst_n;
            if (in_valid) d <= right;
        end""",
        "its valid is not 0 9 cycles after",
    ),
    "operands of another cycle": (
        SUM
        + """logic [31:0] last;
        always_ff @(posedge clk) begin out_valid <= in_valid && rst_n; last <= c; d <= right ^ last; end""",
        "operands of another cycle",
    ),
    "a register that no reset sets": (
        SUM
        + """logic [31:0] kept;
        always_ff @(posedge clk) begin
            out_valid <= in_valid && rst_n; if (in_valid) kept <= kept + 1; d <= right ^ kept; end""",
        "which no reset sets",
    ),
    "a division": (
        SUM + "always_ff @(posedge clk) begin out_valid <= in_valid && rst_n; d <= right / c; end",
        r"a cell \$div",
    ),
    "the other edge": (
        SUM + "always_ff @(negedge clk) begin out_valid <= in_valid && rst_n; d <= right; end",
        "rising one",
    ),
    "a gated clock": (
        SUM
        + "wire gated = clk & in_valid; always_ff @(posedge gated) d <= right; assign out_valid = in_valid;",
        "rising one",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_function_of_a_transaction_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    body, why = REFUSED[name]
    with pytest.raises(Unreadable, match=why) as caught:
        read(unit(body, tmp_path))
    assert "\n" not in str(caught.value)


def test_a_unit_in_vhdl_is_refused(tmp_path: Path) -> None:
    import dataclasses

    from rtl_tb.dut.vhdl import Vhdl

    dut = dataclasses.replace(unit(SUM + REGISTERED, tmp_path), vhdl=Vhdl())
    with pytest.raises(Unreadable, match="VHDL"):
        read(dut)
