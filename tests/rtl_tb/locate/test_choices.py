"""Which one-line changes of a text have their inverse among the candidates, and the build that is made before
the search starts."""

from __future__ import annotations

import re
from pathlib import Path

import integer_dot
import pytest
from repaired_dot import judged, planted

from rtl_tb.locate import search
from rtl_tb.locate.budget import Budget
from rtl_tb.locate.changes import Change, Changes, Group, find_changes
from rtl_tb.locate.choices import Ahead

TEXT = """module dot4 (input logic clk, rst_n, in_valid, out_ready, input logic [31:0] a, b, c,
    output logic in_ready, out_valid, output logic [31:0] d);
    logic signed [7:0] x0, w0; logic signed [7:0] x1;
    wire [7:0] w1 = b[15:8];
    wire [15:0] word = c[31] ? 16'h7e00 : 16'd1;
    logic [15:0] p; logic big;
    logic [15:0] q0, q1, q2, q3, q4, q5, q6, q7, x_w_of_no_name_alike;
    assign in_ready = 1'b1; assign out_valid = in_valid;
    assign x0 = a[7:0]; assign x1 = a[15:8]; assign w0 = b[7:0];
    assign big = p > word;
    assign p = x0 * w0 + x1 * $signed(w1);
    assign d = c + 32'(p) + 32'(big);
endmodule
"""
BLANKS = re.compile(r"[\s()]")


def texts(changes: Changes, listed: list[Change]) -> set[str]:
    """The whole texts with each, but for blanks and parentheses."""
    return {BLANKS.sub("", text) for one in listed for text in changes.applied([one]).values()}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("big = p > word", "big = p == word"),
        ("big = p > word", "big = p != word"),
        ("16'h7e00", "16'hfe00"),
        ("x1 = a[15:8]", "x1 = a[15:7]"),
        ("x1 = a[15:8]", "x1 = a[14:8]"),
        ("x1 = a[15:8]", "x1 = a[15:9]"),
        ("x1 = a[15:8]", "x1 = a[16:9]"),
        ("big = p > word", "big = p > x_w_of_no_name_alike"),
    ],
)
def test_a_choice_undoes_a_change_of_one_token(tmp_path: Path, right: str, wrong: str) -> None:
    changes = find_changes(integer_dot.planted(tmp_path, 4, TEXT, (right, wrong)))
    assert BLANKS.sub("", TEXT) in texts(changes, changes.of_choices())


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("logic signed [7:0] x1", "logic [7:0] x1"),
        ("wire [7:0] w1", "wire signed [7:0] w1"),
        ("logic [15:0] p", "logic [15:1] p"),
        ("logic [15:0] p", "logic [14:0] p"),
    ],
)
def test_a_constant_undoes_a_change_of_a_declaration(tmp_path: Path, right: str, wrong: str) -> None:
    changes = find_changes(integer_dot.planted(tmp_path, 4, TEXT, (right, wrong)))
    assert BLANKS.sub("", TEXT) in texts(changes, changes.of_constants())


def test_a_lost_sign_is_among_the_first_constants(tmp_path: Path) -> None:
    wrong = ("logic signed [7:0] x1", "logic [7:0] x1")
    changes = find_changes(integer_dot.planted(tmp_path, 4, TEXT, wrong))
    assert BLANKS.sub("", TEXT) in texts(changes, changes.of_constants()[:4])


def test_a_part_of_a_vector_is_handed_on_like_its_neighbours(tmp_path: Path) -> None:
    missing = (" assign x1 = a[15:8];", "")
    changes = find_changes(integer_dot.planted(tmp_path, 4, TEXT, missing))
    assert "assign x1 = a[15:8];" in {one.after.strip() for one in changes.of_choices() if one.form}


def test_no_range_leaves_its_vector(tmp_path: Path) -> None:
    changes = find_changes(integer_dot.planted(tmp_path, 4, TEXT))
    bounds = [
        tuple(map(int, found))
        for one in changes.of_choices()
        for found in re.findall(r"\b[abc]\[(\d+):(\d+)\]", one.after)
    ]
    assert bounds
    assert all(31 >= high >= low >= 0 for high, low in bounds)


def test_the_first_build_has_the_likeliest_and_the_rest_has_its_own(tmp_path: Path) -> None:
    changes = find_changes(integer_dot.planted(tmp_path, 4, TEXT))
    whole = changes.of_choices((Group.TOKENS,))
    assert not changes.of_choices((Group.REST,))
    changes.room = len({(one.place, one.pattern) for one in whole})
    first, rest = (changes.of_choices((group,)) for group in (Group.TOKENS, Group.REST))
    assert {*first, *rest} == {*whole} and len(first) + len(rest) == len(whole)
    assert {one.place for one in first} == {one.place for one in whole}, "one of each place"


def test_a_search_takes_what_was_built_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict, job = judged(planted(tmp_path, ("sum + c", "sum - c")), tmp_path)
    ahead = Ahead(job, Budget(300))
    try:
        assert ahead.built() is not None
        own = []
        monkeypatch.setattr(search, "build", lambda *_, **__: own.append(1))
        found = search.find_repairs(verdict, job, 300, ahead=ahead)
    finally:
        ahead.end()
    assert found and found[0].whole and found[0].by_one
    assert not Path(ahead.folder.name).exists()
