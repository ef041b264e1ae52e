"""Units of one's own whose sums are in units beyond the range of doubles: at all levels the fast form gives
what the numbers are worth."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from instruction_sets import instruction_sets
from random_units import load

from golden.model.instruction import Instruction

ONE, INFINITY = 0x3F800000, 0x7F800000
WIDE = {
    "kind": "float",
    "storage": 32,
    "exponent_bits": 11,
    "fraction_bits": 20,
    "specials": "ieee",
    "bias": 0,
}
"""c up to 2^2046."""


def unit(c: str, align: dict[str, Any], rounding: str, zero: str) -> Instruction:
    terms = ["products", "c"]
    final = {"of": "total", "rounding": rounding, "overflow": "infinity", "zero": zero}
    steps: list[dict[str, Any]] = [
        {"multiply": {"to": "products"}},
        {"special_values": {"of": terms, "nan": 0x7FC00000}},
        {"align": {"of": terms, "fraction_bits": 24, "rounding": "toward_zero", **align}},
        {"sum": {"of": terms, "to": "total"}},
        {"round": final},
    ]
    formats = {"a": "f16", "b": "f16", "c": c, "d": "f32"}
    more = {"define_formats": {"x": WIDE}} if c == "x" else {}
    return load(
        json.dumps(
            {"unit": "far", "shape": {"m": 4, "n": 8, "k": 16}, **more, "formats": formats, "steps": steps}
        )
    )


def answers(ins: Instruction, c: int, level: str, monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """D where all of A and B are 1 and all of C is c, in tiles and in lanes."""
    assert ins.engine.fast, "else nothing of this is asked"
    monkeypatch.setenv("MMAGOLD_SIMD", level)
    a, b = np.full((4, 16), 0x3C00, np.uint16), np.full((16, 8), 0x3C00, np.uint16)
    tile = ins(a, b, np.full((4, 8), c, np.uint32))
    lanes = ins.dot(
        np.full((20, 16), 0x3C00, np.uint16), np.full((20, 16), 0x3C00, np.uint16), np.full(20, c, np.uint32)
    )
    return {*map(int, tile.ravel()), *map(int, lanes)}


@pytest.mark.parametrize("level", instruction_sets())
@pytest.mark.parametrize("zero", ["positive", "signed_underflow"])
@pytest.mark.parametrize("rounding", ["toward_zero", "nearest_even"])
@pytest.mark.parametrize("floor", [900, 1047, 1048, 1100, 2000, 100_000])
def test_what_a_floor_cuts_whole_is_zero(
    floor: int, rounding: str, zero: str, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ins = unit("f32", {"floor": floor}, rounding, zero)
    assert answers(ins, ONE, level, monkeypatch) == {0}


@pytest.mark.parametrize("level", instruction_sets())
@pytest.mark.parametrize("rounding", ["toward_zero", "nearest_even"])
@pytest.mark.parametrize("exponent", [128, 920, 930, 1047, 1048, 1100, 1500, 2046])
def test_a_far_c_is_infinite(
    exponent: int, rounding: str, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ins = unit("x", {}, rounding, "positive")
    for sign in (0, 1):
        assert answers(ins, sign << 31 | exponent << 20, level, monkeypatch) == {sign << 31 | INFINITY}
