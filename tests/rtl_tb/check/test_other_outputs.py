"""Outputs that are no results: what dut.yaml says of them is held, and what it leaves open is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden.errors import OperandError, SpecError
from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.check.record import Check
from rtl_tb.check.report import headline
from rtl_tb.dut.description import load_dut
from rtl_tb.dut.wrapper import write_wrapper

MUL = (
    "unit: mul\nmodes: {sign: [u4, s4]}\nshape: {k: 1}\nformats: {a: u4, b: $sign, d: s16}\nsteps:\n"
    "  - multiply: {to: products}\n  - sum: {of: products, to: total}\n"
    "  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}\n"
)
RTL = """module top (input [3:0] a, b, input m, output [19:0] y, output err, output ok_n);
    wire signed [15:0] d = $signed({1'b0, a}) * $signed({m & b[3], b});
    assign y = {UPPER, OTHER};
    assign err = ERR, ok_n = !err;
endmodule
"""
BOTH = "a == 4'd15 && b == 4'd0"


def checked(
    folder: Path, more: str = "", d: str = "", upper: str = "{4{d[15]}}", other: str = "d", err: str = "1'b0"
) -> Check:
    text = RTL.replace("UPPER", upper).replace("OTHER", other).replace("ERR", err)
    (folder / "top.v").write_text(text)
    (folder / "unit.yaml").write_text(MUL)
    (folder / "dut.yaml").write_text(
        "top: top\nsources: [top.v]\nunit: unit.yaml\nhandshake: {kind: combinational}\n"
        f"ports: {{a: a, b: b, mode: m, d: {{port: y, partial: true{d}}}}}\n{more}"
    )
    options = Options("selfcheck", "icarus", count=1200, failures=None, build=folder / "b", synthesis="off")
    return check(folder / "dut.yaml", options)


def test_bits_that_nothing_speaks_of_are_named(tmp_path: Path) -> None:
    found = checked(tmp_path, upper="4'b1010")
    assert found.passed and headline(found.as_dict()).endswith("; not compared: y[19:16]")


@pytest.mark.parametrize(
    ("rule", "upper", "right"),
    [
        ("sign", "{4{d[15]}}", True),
        ("sign", "4'b0000", False),
        ("sign", "{3'd0, d[15]}", False),
        ("sign", "4'bxxxx", False),
        ("zero", "4'b0000", True),
        ("zero", "{4{d[15]}}", False),
        ("zero", "{3'd0, a == 4'd9 && b == 4'd11 && m}", False),
    ],
)
def test_unused_bits_have_what_the_description_says(
    rule: str, upper: str, right: bool, tmp_path: Path
) -> None:
    found = checked(tmp_path, d=f", unused: {rule}", upper=upper)
    assert found.passed == right
    assert "not compared" not in headline(found.as_dict())
    if not right:
        assert found.verdict.failed.sum() == 0 and "of other outputs" in headline(found.as_dict())
        assert any("y[1" in failure.text for failure in found.verdict.outcome.failures)
    if (rule, upper) == ("sign", "4'b0000"):
        (failure,) = found.verdict.outcome.failures
        assert "y[16] to y[19] are always 0" in failure.text and "the sign of the result" in failure.text


def test_the_line_of_another_output_that_is_wrong_is_named(tmp_path: Path) -> None:
    checked(tmp_path, more=PORTS, err="a == 4'd15 && b == 4'd8")
    found = check(
        tmp_path / "dut.yaml", Options(count=1200, failures=None, repair=None, build=tmp_path / "b")
    )
    assert not found.verdict.failed.any() and "of other outputs" in headline(found.as_dict())
    (edit,) = found.repairs[0].edits
    assert (edit.file.name, edit.line) == ("top.v", 4) and found.repairs[0].further


PORTS = "exclude: [{where: {a: 15, b: zero}, answer: {port: err}}]\n"


@pytest.mark.parametrize(
    ("more", "err", "other", "right"),
    [
        (PORTS, BOTH, f"({BOTH}) ? 16'd7 : d", True),
        (PORTS, "1'b0", "d", False),
        (PORTS, "a == 4'd15", "d", False),
        (PORTS, f"({BOTH}) && m", "d", False),
        (PORTS, BOTH, "a == 4'd15 ? 16'd7 : d", False),
        (PORTS.replace("err", "ok_n, active: low"), BOTH, f"({BOTH}) ? 16'd7 : d", True),
        (PORTS.replace("err", "ok_n"), BOTH, "d", False),
    ],
)
def test_a_port_says_which_operands_do_not_count(
    more: str, err: str, other: str, right: bool, tmp_path: Path
) -> None:
    found = checked(tmp_path, more, ", unused: sign", err=err, other=other, upper="{4{y[15]}}")
    assert found.passed == right
    name = "ok_n" if "ok_n" in more else "err"
    assert f"; 0xf a with zero b sets {name}, with any d (" in headline(found.as_dict())


@pytest.mark.parametrize("answer", ["{port: err}", "anything"])
def test_a_check_in_which_no_result_is_compared_is_refused(answer: str, tmp_path: Path) -> None:
    where = f"exclude: [{{where: {{mode: {{sign: [u4, s4]}}}}, answer: {answer}}}]\n"
    with pytest.raises(OperandError, match="leaves none of the 1,200 vectors"):
        checked(tmp_path, where, other="16'd7", err="1'b1", upper="4'd0")


def test_conditions_hold_together_and_under_a_mode(tmp_path: Path) -> None:
    where = "exclude: [{where: {a: 15, b: negative, mode: {sign: s4}}}]\n"
    wrong = "(a == 4'd15 && b[3] && m) ? 16'd1 : d"
    assert checked(tmp_path, where, other=wrong, upper="4'd0").passed
    for fault in (
        wrong.replace(" && m", ""),
        wrong.replace("b[3] && ", ""),
        wrong.replace("a == 4'd15 && ", ""),
    ):
        assert not checked(tmp_path, where, other=fault, upper="4'd0").passed, fault


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("exclude: [{where: {a: 15}, answer: {port: er}}]", "top has no port 'er'; nearest: err"),
        ("exclude: [{where: {a: 15}, answer: {port: y}}]", "expected 1 bit"),
        ("exclude: [{where: {a: 16}}]", "code 0x10 of a is excluded, expected 4 bits"),
        ("exclude: [{where: {mode: {sign: s8}}}]", "'s8' is no value of sign, expected one of u4, s4"),
        ("exclude: [{where: {mode: {sgn: s4}}}]", "unknown key 'sgn', expected one of sign; nearest: sign"),
        ("exclude: [{where: {}}]", "key 'where' has no condition"),
        ("exclude: [{a: zero}]", "key 'where' is missing"),
    ],
)
def test_mistakes(more: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=said.replace("[", r"\[")):
        checked(tmp_path, more + "\n")


def test_unused_is_for_results(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="key 'unused' is for operands and results with 'partial: true'"):
        checked(tmp_path, d=", unused: zero").dut.ports["d"]
        text = (tmp_path / "dut.yaml").read_text().replace("a: a", "a: {port: a, unused: zero}")
        (tmp_path / "dut.yaml").write_text(text)
        write_wrapper(load_dut(tmp_path / "dut.yaml"), tmp_path)
