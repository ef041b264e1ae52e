"""What a text may lack, and that it is found where it was taken away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import integer_dot
import pytest
from long_run import long_after

from golden.vectors.vectorset import default_set
from rtl_tb import engines
from rtl_tb.dut.description import Dut
from rtl_tb.engines.job import Job
from rtl_tb.locate import search
from rtl_tb.locate.changes import Change, Changes, Place, find_changes
from rtl_tb.locate.missing import ASSIGN, ELSE, GUARD, ITEM, STATEMENT
from rtl_tb.locate.search import find_repairs, with_changes
from rtl_tb.locate.selector import with_selector
from rtl_tb.runs.verdict import judge

UNIT = """module dot4 (
    input  logic        clk, rst_n, in_valid, out_ready,
    input  logic [31:0] a, b,
    input  logic [31:0] c,
    output logic        in_ready, out_valid,
    output logic [31:0] d
);
    assign in_ready = !out_valid || out_ready;
    logic valid1;
    logic [31:0] a1, b1;
    logic [31:0] c1;
    logic signed [31:0] product [4];
    logic [31:0] p0, p1, s0, s1, sum, extra, e;
    always_comb
        for (int k = 0; k < 4; k++) product[k] = 32'(signed'(a1[8*k +: 8])) * 32'(signed'(b1[8*k +: 8]));
    assign p0 = product[0] + product[1];
    assign p1 = product[2] + product[3];
    assign s0 = p0 & ~32'd0;
    assign s1 = p1 & ~32'd0;
    always_comb begin
        case (c1[1:0])
            2'd0: extra = c1;
            2'd1: extra = c1;
            2'd2: extra = c1;
            2'd3: extra = c1;
            default: extra = 32'd0;
        endcase
        if (c1[4]) e = extra;
        else e = extra;
        sum = s0 + s1;
    end
    always_ff @(posedge clk)
        if (!rst_n) begin
            valid1 <= 1'b0;
            out_valid <= 1'b0;
        end else if (in_ready) begin
            valid1 <= in_valid;
            out_valid <= valid1;
            a1 <= a;
            b1 <= b;
            c1 <= c;
            d <= sum + e;
        end
endmodule
"""
REGISTER = ("            b1 <= b;", "            ;")
ASSIGNMENT = ("    assign s1 = p1 & ~32'd0;", "")
ITEM_2 = ("            2'd2: extra = c1;", "")
OTHERWISE = ("        else e = extra;", "")
STAGE = (("    logic [31:0] c1;", "    wire [31:0] c1 = c;"), ("            c1 <= c;", "            ;"))
MIRRORED = (
    "    assign s1 = p1 & ~32'd0;",
    "    assign s1 = p1 & ~32'd0; logic [31:0] clear_v, go_v, clear_sr, go_sr; "
    "assign clear_v = clear_sr ^ 32'd1;",
)
"""Names that are unlike, but for what the assignment reads."""
COMPUTED = ("        sum = s0 + s1;", "        ;")


def planted(folder: Path, *changes: tuple[str, str]) -> Dut:
    return integer_dot.planted(folder, 4, UNIT, *changes)


def said(found: Changes, form: str) -> set[str]:
    return {change.after for change in found.added if change.form == form}


@pytest.mark.parametrize(
    ("taken", "form", "text"),
    [
        (REGISTER, STATEMENT, "b1 <= b;"),
        (ASSIGNMENT, ASSIGN, "assign s1 = p1 & ~32'd0;"),
        (MIRRORED, ASSIGN, "assign go_v = go_sr ^ 32'd1;"),
        (ITEM_2, ITEM, "2'd2: extra = c1;"),
        (OTHERWISE, ELSE, "e = extra;"),
    ],
    ids=["statement", "assign", "mirrored", "item", "else"],
)
def test_what_is_taken_away_may_be_missing(
    tmp_path: Path, taken: tuple[str, str], form: str, text: str
) -> None:
    """Names are changed as those of what stands beside it."""
    assert text in said(find_changes(planted(tmp_path, taken)), form)


def test_a_register_is_tried_where_another_takes_a_signal(tmp_path: Path) -> None:
    found = find_changes(planted(tmp_path, *STAGE))
    (stage,) = (change for change in found.added if (change.before, change.after) == ("e", "e_before"))
    text = found.applied([stage])[(tmp_path / "dot4.sv").resolve()]
    assert "logic [$bits(e)-1:0] e_before; always_ff" in text
    assert "d <= sum + e_before; e_before <= e;" in text
    ones = [
        change for change in find_changes(planted(tmp_path)).of_choices() if change.before == "b1[8*k +: 8]"
    ]
    assert "b[8*k +: 8]" in {change.after for change in ones}, "and a register may be one too many"


HIDDEN = (
    ("            2'd2: extra = c1;\n            2'd3: extra = c1;\n", ""),
    ("            default: extra = 32'd0;", "            default: extra = c;"),
)
"""What runs where no item matches has a fault: items that may be missing do not stand before it."""
SPLIT = (
    ("            2'd1: extra = c1;", "            2'd1: if (c1[0]) extra = c1;"),
    (HIDDEN[0][0], ""),
    ("            default: extra = 32'd0;", "            default: extra = c1;"),
)
"""An item that is an if without else."""
GENERATED = (
    ("    always_ff @(posedge clk)\n", "    if (1) always_ff @(posedge clk) begin\n"),
    ("d <= sum + e;\n        end\n", "d <= sum + e;\n        end end else wire unused;\n"),
)
"""There a declaration would be the item of the generate."""
BELOW = (
    (
        "    logic [31:0] c1;\n",
        "    logic [31:0] c1;\n    logic [3:0] held [2];\n    logic [3:0] any;\n"
        "    for (genvar g = 0; g < 2; g++) begin : each\n        logic [3:0] own;\n"
        "        always_ff @(posedge clk) begin\n            own <= c[3:0];\n"
        "            held[g] <= own;\n        end\n    end\n"
        "    assign any = held[0] | held[1];\n",
    ),
    ("            2'd1: extra = c1;", "            2'd1: begin : named extra = c1; end"),
)
"""What a register takes in a generate has no name above it; and a block that has a name, has it once."""


NAMED = {"below": BELOW, "generate": GENERATED, "item": SPLIT}


@pytest.mark.parametrize("name", long_after(0, NAMED))
def test_number_0_is_as_right_as_the_unit(tmp_path: Path, name: str) -> None:
    dut = planted(tmp_path, *NAMED[name])
    found = find_changes(dut)
    chosen = with_selector(dut, found, found.of_choices(), tmp_path / "all")
    job = Job(chosen, tmp_path / "build", default_set(dut.instruction, 500, 1, dut.level))
    assert judge(job.vectors, engines.run("fast", job), dut.compare).passed


@pytest.mark.long
def test_number_0_is_the_unit_itself(tmp_path: Path) -> None:
    """In the unit and without each of these, all that may be missing can stand in one build."""
    dut = planted(tmp_path)
    job = Job(dut, tmp_path / "build", default_set(dut.instruction, 2000, 1, dut.level))
    for name, taken in {"whole": (), "less": (REGISTER, ASSIGNMENT, ITEM_2, OTHERWISE)}.items():
        dut = planted(tmp_path, *taken)
        found = find_changes(dut)
        chosen = with_selector(dut, found, found.of_choices(), tmp_path / name)
        right, same = (
            judge(job.vectors, engines.run("fast", replace(job, dut=each)), dut.compare).passed
            for each in (dut, chosen)
        )
        assert right == same == (name == "whole")


@pytest.mark.parametrize(
    ("taken", "texts"),
    [
        pytest.param((REGISTER,), {"b1 <= b;"}, marks=pytest.mark.long),
        pytest.param((ASSIGNMENT,), {"assign s1 = p1 & ~32'd0;"}, marks=pytest.mark.long),
        pytest.param((ITEM_2,), {"2'd2: extra = c1;"}, marks=pytest.mark.long),
        pytest.param((OTHERWISE,), {"else e = extra;"}, marks=pytest.mark.long),
        pytest.param(
            STAGE,
            {"logic [$bits(e)-1:0] e_before;  ...  e_before <= e; ... e_before"},
            marks=pytest.mark.long,
        ),
        pytest.param(HIDDEN, {"c1"}, marks=pytest.mark.long),
        pytest.param((REGISTER, ITEM_2), {"b1 <= b;"}, marks=pytest.mark.long),
    ],
    ids=["statement", "assign", "item", "else", "register", "default", "two"],
)
def test_what_was_taken_away_is_found(
    tmp_path: Path, taken: tuple[tuple[str, str], ...], texts: set[str]
) -> None:
    dut = planted(tmp_path, *taken)
    job = Job(dut, tmp_path / "build", default_set(dut.instruction, 2000, 1, dut.level))
    verdict = judge(job.vectors, engines.run("fast", job), dut.compare)
    assert verdict.wrong.any()
    found = find_repairs(verdict, job, 120)
    assert found and all(repair.whole for repair in found)
    assert all(len(repair.edits) == (2 if ITEM_2 in taken and REGISTER in taken else 1) for repair in found)
    assert any(texts <= {edit.after for edit in repair.edits} for repair in found)
    assert any(" added " in repair.sentence() for repair in found) or taken in (STAGE, HIDDEN)


def test_what_drives_an_idle_signal_is_likelier_than_a_name_in_its_place() -> None:
    """All mend all: then comes what needs no other name, however short that is."""
    here, there = Place(Path("x.sv"), 5, 5), Place(Path("x.sv"), 20, 22)
    driven = Change(here, "", "assign s1 = p1 & ~32'd0;", ASSIGN)
    named, one = Change(there, "s1", "p1"), Change(there, "s1", "~s1")
    scores = [search._Score((each,), 9, 0, 9) for each in (one, named, driven)]
    assert [score.changes[0] for score in sorted(scores, key=search._order)] == [driven, one, named]


def test_a_selector_asks_for_each_text_that_may_be_added(tmp_path: Path) -> None:
    dut = planted(tmp_path, REGISTER, ASSIGNMENT, ITEM_2, OTHERWISE)
    found = find_changes(dut)
    with_selector(dut, found, found.of_choices(), tmp_path / "all")
    text = (tmp_path / "all" / "0_dot4.sv").read_text()
    assert text.count("\n") == UNIT.count("\n"), "lines keep their numbers"
    asked = "&& ((c1[1:0]) == 2'd2)) begin extra = c1; end else"
    text = " ".join(text.split())
    for words in (") b1 <= b;", "else if (", "assign s1 = (", asked, "end else extra = "):
        assert words in text
    assert with_changes(dut, found, list(found.added)[:1], tmp_path / "one").sources != dut.sources


def test_a_statement_may_wait_for_a_condition_that_others_have(tmp_path: Path) -> None:
    """Written where it stands, and asked for there by a build of all choices."""
    dut = integer_dot.planted(tmp_path, 4, UNIT)
    found = find_changes(dut)
    guards = [one for one in found.added if one.form == GUARD]
    here = [one for one in guards if UNIT[one.place.start :].startswith("a1 <= a;")]
    assert {"in_ready", "in_valid"} <= {one.after for one in here}
    (guard,) = (one for one in here if one.after == "in_valid")
    (text,) = found.applied([guard]).values()
    assert "begin if (in_valid) begin a1 <= a; end end" in " ".join(text.split())
    with_selector(dut, found, [guard], tmp_path / "choices")
    asked = (tmp_path / "choices" / "0_dot4.sv").read_text()
    assert "begin if ((!mmagold_change::is[1] || (in_valid))) begin a1 <= a; end end" in " ".join(
        asked.split()
    )
