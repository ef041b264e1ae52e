"""The sequences that fill an integer accumulator: to both ends, staying there, beyond, and back."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import golden
from golden.model.instruction import Instruction
from golden.vectors.vectorset import VectorSet
from rtl_tb.check.accumulate import MOST, long_accumulation, unreached_bits

UNIT = """unit: mac
title: an accumulator
shape: {k: 16}
formats: {a: FORMAT, b: FORMAT, d: SUM}
accumulator: state
steps:
  - multiply: {to: products}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: toward_zero, overflow: OVERFLOW, zero: positive}
"""


def unit(folder: Path, operands: str, overflow: str = "wrap") -> Instruction:
    text = UNIT.replace("FORMAT", operands).replace("SUM", "s32").replace("OVERFLOW", overflow)
    (folder / "mac.yaml").write_text(text, encoding="utf-8")
    return golden.load_instruction(folder / "mac.yaml")


@pytest.mark.parametrize(("operands", "length"), [("s8", 16_400), ("u8", 2_000)])
@pytest.mark.parametrize("overflow", ["wrap", pytest.param("saturate", marks=pytest.mark.long)])
def test_ends_are_reached_exactly(tmp_path: Path, operands: str, length: int, overflow: str) -> None:
    """Each bin of coverage there: the end held without a product and with some, passed, and cleared."""
    ins = unit(tmp_path, operands, overflow)
    found = long_accumulation(ins)
    assert found is not None and length < len(found["a"]) < 1.1 * length
    d = ins.answers(found)["d"].astype(np.uint32).view(np.int32).astype(np.int64)
    held = np.where(found["clear"] == 1, 0, np.concatenate([[0], d[:-1]]))
    a, b = (found[name].astype(np.int64 if operands == "u8" else np.int8).astype(np.int64) for name in "ab")
    products, total = a * b, held + (a * b).sum(axis=1)
    ends = {2**31 - 1: 1, -(2**31): -1} if operands == "s8" else {2**31 - 1: 1}
    for end, way in ends.items():
        at = held == end
        assert (at & (products == 0).all(axis=1)).any(), "stays, with no product"
        assert (total * way > abs(end) + 2**14).any(), "far beyond"
        if operands == "s8":
            assert (at & (total == end + way)).any(), "one beyond"
            assert (at & (products != 0).any(axis=1) & (total == end)).any(), "stays, with two that cancel"
        if overflow == "wrap" and operands == "s8":
            before = np.concatenate([[0], d[:-1]])
            assert (before[found["clear"] == 1] == end).any(), "cleared there"


def test_a_climb_that_would_take_too_long_ends_on_the_way(tmp_path: Path) -> None:
    """And the bits that it did not reach are said."""
    ins = unit(tmp_path, "s4")
    found = long_accumulation(ins, MOST // 8)
    assert found is not None and len(found["a"]) <= MOST // 8 + 600
    d = ins.answers(found)["d"]
    vectors = VectorSet.of(ins, "dot", found, {"d": d}, np.zeros(len(d), np.uint8), 1)
    said = unreached_bits(ins, [vectors])
    assert said is not None and "bits 24 to 30 were never set in a sum of 0 or more" in said
    assert "bits 24 to 30 were never clear in a negative sum" in said


@pytest.mark.parametrize("operands", ["s8", "u8"])
def test_each_carry_and_borrow_runs_through_all_bits(tmp_path: Path, operands: str) -> None:
    ins = unit(tmp_path, operands)
    found = long_accumulation(ins)
    assert found is not None
    d = ins.answers(found)["d"].astype(np.uint32).view(np.int32).astype(np.int64)
    steps = {(int(one), int(other)) for one, other in pairwise(d)}
    for bit in range(1, 31):
        assert ((1 << bit) - 1, 1 << bit) in steps
        if operands == "s8":
            assert (-(1 << bit), -(1 << bit) - 1) in steps and (1 << bit, (1 << bit) - 1) in steps
