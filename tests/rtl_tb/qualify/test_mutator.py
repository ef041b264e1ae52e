"""The mutator: every change is of one line, the same seed draws the same, every place has the same chance."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from rtl_tb.dut.description import load_dut
from rtl_tb.qualify.mutants import UNITS
from rtl_tb.qualify.mutator import KINDS, Change, changes_of, draw, find_changes, planted

SOURCES = sorted((UNITS.parent).glob("*.sv"))
TEXT = """module tiny (
    input logic [7:0] a,
    input logic [7:0] b,
    output logic [7:0] d
);
    localparam int N = 3;
    logic [7:0] one;  // a + b is no place
    logic signed [8:0] two;
    logic in_ready;
    logic [8:0] wide;
    assign one = a + b;
    assign two = $signed(one) >>> N;
    assign wide = 9'(two);
    always_comb begin
        d = 8'h0f;
        if (a[3:0] < 4'd9 && !b[0])
            d = two > 0 ? one : ~b;
    end
    assign in_ready = a == b;
endmodule
"""


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_every_change_of_a_reference_source_is_of_one_line(source: Path) -> None:
    text = source.read_text(encoding="utf-8")
    old = text.split("\n")
    changes = find_changes(source.name, text)
    assert len(set(changes)) == len(changes)
    for change in changes:
        new = change.applied(text).split("\n")
        assert [at for at, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]] == [
            change.line
        ]
        assert old[change.line][change.column :].startswith(change.before)
        assert not old[change.line].strip().startswith("//")


def lines(kind: str) -> set[str]:
    """The changed lines of one kind of change."""
    found = [change for change in find_changes("small.sv", TEXT) if change.kind == kind]
    return {change.applied(TEXT).split("\n")[change.line].strip() for change in found}


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("operator", "assign one = a - b;"),
        ("operator", "d = two >= 0 ? one : ~b;"),
        ("operator", "if (a[3:0] < 4'd9 || !b[0])"),
        ("operator", "assign two = $signed(one) >> N;"),
        ("negation", "if (a[3:0] < 4'd9 && b[0])"),
        ("constant", "d = 8'h1f;"),  # a bit of it
        ("constant", "d = 8'he;"),  # one less
        ("constant", "assign two = $signed(one) >>> (N + 1);"),
        ("range", "if (a[3:1] < 4'd9 && !b[0])"),
        ("condition", "if (1'b1)"),
        ("condition", "d = (!(two > 0)) ? one : ~b;"),
        ("name", "assign one = a + a;"),
        ("term", "assign one = a;"),
        ("term", "assign one = b;"),
        ("sign", "assign two = $unsigned(one) >>> N;"),
        ("sign", "logic [8:0] two;"),
        ("width", "logic [8:0] one;  // a + b is no place"),
        ("statement", ";"),
    ],
)
def test_a_change_of_each_kind_is_among_those_of_a_small_text(kind: str, line: str) -> None:
    assert line in lines(kind)


def test_ports_comments_and_handshakes_are_no_places() -> None:
    changes = find_changes("small.sv", TEXT)
    assert {change.kind for change in changes} == set(KINDS) - {"concatenation"}
    for change in changes:
        line = TEXT.split("\n")[change.line]
        assert "input" not in line and "output" not in line and "ready" not in line
        assert change.column < len(line.split("//")[0])


def test_the_same_seed_draws_the_same_mutants_and_they_are_planted_as_they_are() -> None:
    unit = UNITS / "integer_s8_saturate.yaml"
    dut = load_dut(unit)
    changes = changes_of(dut)
    first, second = ([draw(changes, rng) for _ in range(50)] for rng in (random.Random(3), random.Random(3)))
    assert first == second and len(set(first)) > 40
    texts = {path.name: path.read_text(encoding="utf-8") for path in dut.sources}
    for change in first:
        patched = planted(unit, dut, change, "drawn").patched(dut)
        assert patched == texts | {change.file: change.applied(texts[change.file])}


def test_every_place_has_the_same_chance_however_much_may_stand_there() -> None:
    changes = [Change("constant", "x.sv", 0, 0, "1", str(value)) for value in range(2, 50)]
    changes.append(Change("add", "x.sv", 1, 0, "+", "-"))
    drawn = Counter(draw(changes, random.Random(seed)).kind for seed in range(1000))
    assert 400 < drawn["add"] < 600  # of a fair coin once in a thousand million times outside
