"""Operands that do not count: a unit that is wrong on them alone passes, and the verdict says so; one that
is wrong elsewhere fails."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from golden.cover.coverage import Coverage
from golden.errors import OperandError, SpecError
from golden.number.formats import get_format
from golden.vectors.vectorset import default_set
from rtl_tb.check.check import check
from rtl_tb.check.drawing import COVERED, draw
from rtl_tb.check.options import Options
from rtl_tb.check.report import headline
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.dut.exclude import of_class
from rtl_tb.locate.search import find_repairs
from rtl_tb.runs.verdict import right_results

MUL = (
    "unit: mul\nshape: {k: 1}\nformats: {a: e4m3, b: e4m3, d: f32}\nsteps:\n  - multiply: {to: products}\n"
    "  - special_values: {of: products, nan: 0x7FC00000}\n"
    "  - round: {of: products, rounding: nearest_even, overflow: ieee, zero: signed}\n"
)
# Exact: a product of two e4m3 has eight bits. A subnormal operand is taken for one with the hidden bit.
RTL = """module top (input clk, input [7:0] a, b, output reg [31:0] d);
    function [3:0] sig(input [7:0] x); sig = {SUBNORMAL, x[2:0]}; endfunction
    function nan(input [7:0] x); nan = &x[6:0]; endfunction
    function zero(input [7:0] x); zero = x[6:0] == 0; endfunction
    function low(input [7:0] x); low = x[6:3] == 0 && x[2:0] != 0; endfunction
    wire [7:0] p = sig(a) * sig(b);
    wire [7:0] ea = a[6:3] == 0 ? 1 : a[6:3], eb = b[6:3] == 0 ? 1 : b[6:3];
    reg [7:0] q; reg [7:0] e;
    always @* begin
        q = p; e = ea + eb - 14 + 127 + 1;
        repeat (8) if (!q[7] && q != 0) begin q = q << 1; e = e - 1; end
    end
    wire [31:0] exact = nan(a) || nan(b) ? 32'h7fc00000 : zero(a) || zero(b) ? {a[7] ^ b[7], 31'd0}
        : {a[7] ^ b[7], e, q[6:0], 16'd0};
    always @(posedge clk) d <= ANSWER;
endmodule
"""
RIGHT, WRONG = "x[6:3] != 0", "!zero(x)"
NAN = "low(a) || low(b) ? 32'h7fc00000 : exact"


def checked(folder: Path, exclude: str, subnormal: str = WRONG, answer: str = "exact", **options: object):
    (folder / "top.v").write_text(RTL.replace("SUBNORMAL", subnormal).replace("ANSWER", answer))
    described(folder, exclude)
    given = {"count": 3000, "failures": None, "build": folder / "build", "synthesis": "off"} | options
    return check(folder / "dut.yaml", Options("selfcheck", "icarus", **given))  # type: ignore[arg-type]


def described(folder: Path, exclude: str) -> Dut:
    (folder / "unit.yaml").write_text(MUL)
    (folder / "dut.yaml").write_text(
        "top: top\nsources: [top.v]\nunit: unit.yaml\nclock: clk\nhandshake: {kind: latency, latency: 1}\n"
        "ports: {a: a, b: b, d: d}\n" + exclude
    )
    (folder / "top.v").touch()
    return load_dut(folder / "dut.yaml")


def test_an_answer_that_no_vector_tried_is_named(tmp_path: Path) -> None:
    """Another case takes all of its vectors away."""
    both = "exclude: [{where: {a: subnormal}}, {where: {a: 0x01}, answer: nan}]\n"
    dut = described(tmp_path, both)
    assert dut.exclude is not None
    vectors = dut.exclude.replaced(default_set(dut.instruction, 3000))
    said = dut.exclude.sentence(dut.instruction, vectors.operands, vectors.d)
    assert said == "subnormal a did not count; 0x1 a gives NaN, which no vector tried"


def test_a_documented_restriction_passes_and_is_said(tmp_path: Path) -> None:
    assert checked(tmp_path, "", RIGHT).passed, "the unit is sound but for what a test changes"
    failing = checked(tmp_path, "", explain=False)
    assert not failing.passed
    found = checked(tmp_path, "exclude: {a: subnormal, b: subnormal}\n")
    assert found.passed and len(found.vectors) == 3000
    assert "0 of 3,000 vectors differ; subnormal a or b did not count" in headline(found.as_dict())
    a = found.vectors.operands["a"]
    assert not ((a & 0x78 == 0) & (a & 7 != 0)).any(), "none is tried"
    assert len(np.unique(a)) > 0.9 * (256 - 14), "others are"


@pytest.mark.parametrize(
    ("policy", "answer", "said"),
    [
        ("nan: any", "nan(a) || nan(b) ? 32'hffc00001 : exact", "the code of a NaN"),
        ("zero: any", "zero(a) || zero(b) ? 32'h0 : exact", "the sign of zero"),
    ],
)
def test_what_a_policy_ignores_is_said(policy: str, answer: str, said: str, tmp_path: Path) -> None:
    answer = answer.replace("zero(a) || zero(b) ?", "(zero(a) || zero(b)) && !nan(a) && !nan(b) ?")
    found = checked(tmp_path, f"compare: {{{policy}}}\n", RIGHT, answer)
    assert found.passed and headline(found.as_dict()).endswith(f"; not compared: {said}")
    assert "not compared" not in headline(checked(tmp_path, "", RIGHT).as_dict())


def test_one_operand_is_not_the_other(tmp_path: Path) -> None:
    assert not checked(tmp_path, "exclude: {a: subnormal}\n", explain=False).passed
    assert not checked(tmp_path, "exclude: {a: [zero, nan], b: [zero, nan]}\n", explain=False).passed


def test_what_the_unit_answers_is_held_to(tmp_path: Path) -> None:
    exclude = "exclude: {a: subnormal, b: subnormal, answer: nan}\n"
    found = checked(tmp_path, exclude, answer=NAN)
    assert found.passed and "subnormal a or b gives NaN (" in headline(found.as_dict())
    tried = int(found.excluded.split("(")[1].split()[0].replace(",", ""))
    assert tried > 100
    assert not checked(tmp_path, exclude, explain=False).passed
    assert not checked(tmp_path, "", answer=NAN, explain=False).passed


def test_the_diagnosis_leaves_excluded_vectors_out(tmp_path: Path) -> None:
    """Their answer is right and differs from the model's: it is no part of the fault."""
    exclude = "exclude: {a: subnormal, b: subnormal, answer: nan}\n"
    flipped = f"({NAN}) ^ (nan(a) || nan(b) || low(a) || low(b) ? 0 : 32'h80000000)"
    found = checked(tmp_path, exclude, answer=flipped, count=2000, repair=0)
    assert found.diagnosis is not None and found.diagnosis.explains
    assert found.diagnosis.total < 2000, "the others alone are explained"


def test_an_excluded_result_is_right_as_the_unit_then_answers(tmp_path: Path) -> None:
    """The search in the text asks the same: else no change makes every vector of a trial right."""
    found = checked(tmp_path, "exclude: {a: subnormal, b: subnormal, answer: nan}\n", answer=NAN)
    vectors, came, compare = found.vectors, found.verdict.outcome.results, found.dut.compare
    assert right_results(vectors, vectors.results, came, compare).all()
    assert not compare.right(vectors.instruction.formats["d"], vectors.results, came).all()


@pytest.mark.long
def test_the_search_in_the_text_judges_excluded_vectors_as_the_check_does(tmp_path: Path) -> None:
    """Else no change of the text makes every vector of a trial right."""
    exclude = "exclude: {a: subnormal, b: subnormal, answer: nan}\n"
    found = checked(tmp_path, exclude, answer=f"{NAN} ^ 32'h80000000", explain=False)
    assert not found.passed
    (repair,) = find_repairs(found.verdict, found.run, 60)
    assert repair.whole and "32'h80000000" in repair.edits[0].before


def test_results_are_excluded_by_what_is_expected(tmp_path: Path) -> None:
    dut = described(tmp_path, "exclude: {d: zero}\n")
    vectors = default_set(dut.instruction, 4000)
    assert (vectors.d << 1 == 0).any()
    replaced = dut.exclude.replaced(vectors)
    assert len(replaced) == 4000 and not (replaced.d << 1 == 0).any()
    assert (replaced.d == dut.instruction.dot(**replaced.operands)).all()


def test_an_accumulator_keeps_its_sequences(tmp_path: Path) -> None:
    state = MUL.replace("k: 1}", "k: 2}").replace("steps:", "accumulator: state\nsteps:")
    state = state.replace(
        "  - special_values: {of: products", "  - special_values: {of: [products, c]"
    ).replace("  - round: {of: products", "  - sum: {of: [products, c], to: total}\n  - round: {of: total")
    (tmp_path / "unit.yaml").write_text(state)
    (tmp_path / "dut.yaml").write_text(
        "top: top\nsources: [top.v]\nunit: unit.yaml\nclock: clk\n"
        "handshake: {kind: latency, latency: 1, input: {valid: valid}}\n"
        "ports: {a: a, b: b, clear: clear, d: d}\nexclude: {a: [nan, subnormal]}\n"
    )
    (tmp_path / "top.v").touch()
    dut = load_dut(tmp_path / "dut.yaml")
    vectors = default_set(dut.instruction, 2000)
    bad = dut.exclude.of(dut.instruction, vectors.operands, vectors.d)
    own = (vectors.operands["a"] & 0x7F == 0x7F) | (
        (vectors.operands["a"] & 0x78 == 0) & (vectors.operands["a"] & 7 != 0)
    )
    held = False
    for at, mine in enumerate(own.any(axis=1)):
        held = bool(mine) or (held and not vectors.operands["clear"][at])
        assert bad[at] == held, "what follows in the sequence is not known either"
    replaced = dut.exclude.replaced(vectors)
    assert not dut.exclude.of(dut.instruction, replaced.operands, replaced.d).any()
    assert (replaced.operands["clear"] == vectors.operands["clear"]).all()
    assert (replaced.d == dut.instruction.dot(**replaced.operands)).all()


@pytest.mark.parametrize(
    ("exclude", "said"),
    [
        ("{e: subnormal}", "'e' is excluded, expected one of a, b, d"),
        ("{a: subnormals}", "class 'subnormals' of a is excluded, expected one of zero, subnormal"),
        ("{answer: nan}", "names no class of an operand"),
        ("{a: nan, answer: flag}", "'answer' is 'flag', expected one of anything, nan"),
    ],
)
def test_mistakes(exclude: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=said):
        described(tmp_path, f"exclude: {exclude}\n")


def test_vectors_that_are_aimed_at_bins_are_none_of_them(tmp_path: Path) -> None:
    """And what is covered is what runs."""
    dut = described(tmp_path, "exclude: {a: [zero, subnormal], b: nan}\n")
    vectors, coverage = draw(dut, Options(count=COVERED))
    assert len(vectors) == COVERED and coverage is not None
    assert not dut.exclude.of(dut.instruction, vectors.operands, vectors.d).any()
    again = Coverage(dut.instruction)
    again.sample_set(vectors)
    hit = {point: (hits > 0).tolist() for point, hits in coverage.hits.items()}
    assert {point: (hits > 0).tolist() for point, hits in again.hits.items()} == hit


def test_a_check_in_which_no_vector_counts_is_refused(tmp_path: Path) -> None:
    zeros = tmp_path / "zeros.txt"
    zeros.write_text("00 00\n00 80\n")
    dut = described(tmp_path, "exclude: {a: zero}\n")
    with pytest.raises(OperandError, match="'exclude' leaves none of the 2 vectors"):
        draw(dut, Options(vectors=zeros, columns="a,b"))


def test_a_format_without_subnormal_numbers_has_none() -> None:
    fmt = dataclasses.replace(get_format("e4m3"), subnormals=False)
    assert not of_class(fmt, np.arange(256, dtype=np.uint8), "subnormal").any()
    assert of_class(get_format("e4m3"), np.arange(256, dtype=np.uint8), "subnormal").sum() == 14
