"""Which vectors a check draws, and what its first line says of cases that none of them tried."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from long_run import long_after

import rtl_tb
from golden.cover.coverage import Coverage
from golden.errors import OperandError
from rtl_tb.check.drawing import COVERED, digest_of, draw
from rtl_tb.check.options import Options
from rtl_tb.check.report import untried
from rtl_tb.dut.description import Dut, load_dut

DUTS = Path(rtl_tb.__file__).parent / "rtl" / "duts"


def unit(name: str) -> Dut:
    return load_dut(DUTS / f"{name}.yaml")


def test_aimed_vectors_take_the_place_of_the_last_and_repeat() -> None:
    """A chain of FP8, of which 20,000 drawn vectors leave bins out."""
    dut, options = unit("gfdrda_fp8"), Options(count=COVERED)
    vectors, coverage = draw(dut, options)
    assert coverage is not None and len(vectors) == COVERED
    drawn = Coverage(dut.instruction)
    plain, _ = draw(dut, replace(options, weights={"narrow": 1.0}))
    drawn.sample_set(vectors)
    assert drawn.holes() == coverage.holes()  # what it says to cover, the vectors do
    assert len(plain) == COVERED
    again, _ = draw(dut, replace(options, drawn=digest_of(vectors)))
    assert (again.d == vectors.d).all()
    with pytest.raises(OperandError, match="not the vectors"):
        draw(dut, replace(options, drawn=digest_of(plain)))


def test_results_of_aimed_vectors_are_those_of_the_model() -> None:
    vectors, _ = draw(unit("gfdrda_fp8"), Options(count=COVERED))
    last = vectors[-200:]
    assert (last.d == np.asarray(vectors.instruction.dot(**last.operands))).all()


@pytest.mark.parametrize(
    ("holes", "said"),
    [
        ([], ""),
        (["class of d: -0"], "; 1 case not tried: class of d: -0"),
        (["class of d: -0", "x", "y"], "; 3 cases not tried: class of d: -0 and 2 more"),
    ],
)
def test_the_first_line_names_what_was_not_tried(holes: list[str], said: str) -> None:
    assert untried({"coverage": {"holes": holes, "given": False}}) == said
    assert untried({"coverage": {"holes": holes, "given": True}}) == ""
    assert untried({"coverage": None}) == ""


KINDS = "[subnormal, infinity, nan]"
NUMBERS = f"exclude: {{a: {KINDS}, b: {KINDS}, d: {KINDS}}}\n"
ONE = (
    "unit: mul\nshape: {k: 1}\nformats: {a: e5m2, b: e5m2, d: e5m2}\nsteps:\n  - multiply: {to: products}\n"
    "  - special_values: {of: products}\n"
    "  - round: {of: products, rounding: nearest_even, overflow: ieee, zero: signed}\n"
)


def described(folder: Path, more: str, fmt: str = "e5m2") -> Dut:
    (folder / "unit.yaml").write_text(ONE.replace("e5m2", fmt))
    (folder / "top.sv").write_text("module top (input [7:0] a, b, output [7:0] d); endmodule\n")
    (folder / "dut.yaml").write_text(
        "top: top\nsources: [top.sv]\nunit: unit.yaml\nhandshake: {kind: combinational}\n"
        f"ports: {{a: a, b: b, d: d}}\n{more}"
    )
    return load_dut(folder / "dut.yaml")


@pytest.mark.parametrize("count", long_after(1, [20_000, 140_000]))
def test_no_case_is_missing_that_no_pair_of_codes_reaches(count: int, tmp_path: Path) -> None:
    """Products of significands of three bits never lie above half of a place of a normal result."""
    _, coverage = draw(described(tmp_path, NUMBERS), Options(count=count))
    assert coverage is not None and coverage.holes() == []
    assert any("normal, above half" in label for _, label in coverage.waived)


def test_excluded_classes_are_no_cases_of_a_short_check_either(tmp_path: Path) -> None:
    _, coverage = draw(described(tmp_path, NUMBERS, "f16"), Options(count=3_000))
    assert coverage is not None
    assert not [hole for hole in coverage.holes() if "subnormal" in str(hole) or "NaN" in str(hole)]
