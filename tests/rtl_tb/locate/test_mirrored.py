"""Operands that mirror one that is there: how names are exchanged, and where they are tried."""

from __future__ import annotations

from pathlib import Path

from repaired_dot import planted

from rtl_tb.locate.changes import find_changes
from rtl_tb.locate.mirrored import mirrored

NAMES = {"a_top", "b_top", "a_zero", "b_zero", "a_fr", "x", "y"}


def test_all_names_of_an_operand_are_exchanged() -> None:
    alike = {"a_top": ["b_top"], "b_zero": ["a_zero"], "x": ["y"]}
    assert set(mirrored("a_top & b_zero", alike, NAMES)) == {"b_top & a_zero"}
    assert list(mirrored("&x[6:0]", alike, NAMES)) == ["&y[6:0]"]
    assert list(mirrored("a_top & a_fr", alike, NAMES)) == ["b_top & a_fr"], "there is no b_fr"
    assert list(mirrored("x.zero + 8'hx", {"x": ["y"]}, NAMES)) == ["y.zero + 8'hx"], "no members, no digits"


def test_names_that_differ_by_more_mirror_nothing() -> None:
    assert not list(mirrored("ready", {"ready": ["valid"]}, {"ready", "valid"}))


def test_an_expression_may_lack_one(tmp_path: Path) -> None:
    """b beside an a that is added."""
    dut = planted(tmp_path, ("sum = 32'(product[0])", "sum = 32'(a) + 32'(product[0])"))
    tried = {change.after for change in find_changes(dut).of_choices()}
    assert any(text.endswith(" + (32'(b))") for text in tried)
