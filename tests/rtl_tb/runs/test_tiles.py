"""Which elements of a tile are wrong, in words."""

from __future__ import annotations

import numpy as np
import pytest

import golden
from golden.vectors.vectorset import default_set
from rtl_tb.dut.policy import ComparePolicy
from rtl_tb.engines.job import Outcome
from rtl_tb.runs import tiles
from rtl_tb.runs.dots import of_tiles
from rtl_tb.runs.verdict import judge

VOLTA = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
EVERY = range(8)
CASES = {
    "d[2][5] is wrong: 1 of 192 elements": [(0, 2, 5)],
    "row 2 are wrong: 8 of 192 elements": [(1, 2, column) for column in EVERY],
    "column 5 are wrong: 8 of 192 elements": [(2, row, 5) for row in EVERY],
    "rows 1, 7 are wrong: 16 of 192": [(0, row, column) for row in (1, 7) for column in EVERY],
    "d[0][1], d[3][3] are wrong: 2 of 192": [(0, 0, 1), (2, 3, 3)],
    "5, in rows 0, 1, 2, 3, 4 and columns 0, 1, 2, 3, 4, are wrong: 5 of 192": [(0, i, i) for i in range(5)],
    "each is wrong in some tile: 64 of 192": [(1, row, column) for row in EVERY for column in EVERY],
}


def judged(wrong, unknown=()):
    vectors = default_set(golden.instruction("volta", VOLTA), 3, level="tile")
    actual = vectors.d.copy()
    for place in wrong:
        actual[place] ^= 1
    count = len(vectors)
    outcome = Outcome(
        "fast", "verilator", "", actual.reshape(count, -1), np.ones(count, bool), np.zeros(count, bool)
    )
    outcome.unknown[list(unknown)] = True
    return judge(vectors, outcome, ComparePolicy())


@pytest.mark.parametrize("words", CASES)
def test_rows_and_columns_are_named(words):
    said = tiles.sentence(judged(CASES[words]), ComparePolicy())
    assert said is not None
    assert words in said
    assert ("alone" in said) == ("each" not in said)


def test_tiles_with_x_and_single_dot_products_have_no_places():
    verdict = judged([(0, 1, 1), (1, 2, 2)], unknown=[1])
    assert np.argwhere(tiles.wrong_elements(verdict, ComparePolicy())).tolist() == [[0, 1, 1]]
    assert tiles.sentence(judged([]), ComparePolicy()) is None


@pytest.mark.parametrize("words", tiles.ORDERS)
def test_elements_in_another_order_are_named(words):
    """Of tiles of 16 x 8; of square ones, where columns one after another are the same as both exchanged."""
    square = words == "rows and columns exchanged"
    ins = golden.instruction(*(("volta", VOLTA) if square else ("hopper", "HMMA.16816.F32")))
    vectors = default_set(ins, 3, level="tile")
    known = {"received": np.ones(3, bool), "unknown": np.zeros(3, bool)}
    actual = tiles.ORDERS[words](vectors.d).reshape(3, -1)
    verdict = judge(vectors, Outcome("fast", "verilator", "", actual, **known), ComparePolicy())
    assert f"every tile is right with {words}:" in tiles.sentence(verdict, ComparePolicy())


def test_the_dot_products_of_tiles_are_all_of_them():
    vectors = judged([]).vectors
    operands, d = of_tiles(vectors)
    assert len(d) == vectors.d.size
    again = np.asarray(vectors.instruction.dot(**operands))
    assert (again == d).all()
