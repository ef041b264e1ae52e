"""Small spaces of operands are tried completely: every pair of codes that can meet in a product."""

from __future__ import annotations

import itertools
import json

import pytest

from golden import yamlfile
from golden.catalog.unit_files import build_instruction
from golden.model.instruction import Instruction
from golden.vectors.complete import completed, holds, space_of
from golden.vectors.vectorset import VectorSet, default_set

EXACT = [
    {"multiply": {"to": "products"}},
    {"sum": {"of": ["products", "c"], "to": "total"}},
    {"round": {"of": "total", "rounding": "toward_zero", "overflow": "wrap", "zero": "positive"}},
]


def unit_of(document: dict[str, object]) -> Instruction:
    return build_instruction(yamlfile.parse(json.dumps(document)))


def dots(k: int, **more: object) -> Instruction:
    formats = {"a": "u4", "b": "s4", "c": "s16", "d": "s16"}
    return unit_of({"unit": "dots", "shape": {"k": k}, "formats": formats, "steps": EXACT} | more)


def pairs(vectors: VectorSet, lane: int) -> set[tuple[int, int]]:
    a, b = (vectors.operands[name][:, lane].tolist() for name in "ab")
    return set(zip(a, b, strict=True))


@pytest.mark.parametrize("k", [1, 3])
def test_every_pair_meets_in_every_lane(k: int) -> None:
    ins = dots(k)
    drawn = default_set(ins, 600)
    space = space_of(ins, len(drawn))
    assert space is not None and not space.whole and space.size == 256
    whole = completed(drawn, space)
    assert len(whole) == len(drawn) and holds(whole, space)
    for lane in range(k):
        assert pairs(whole, lane) == set(itertools.product(range(16), range(16)))
    assert (whole.d == ins.dot(**whole.operands)).all()
    kept = int((whole.d == drawn.d).argmin()) or len(drawn)
    assert kept >= 300  # the others were drawn


def test_a_mode_belongs_to_the_space_where_all_fits() -> None:
    steps = [{"multiply": {"to": "products", "negate": "$n"}}, *EXACT[1:]]
    ins = dots(1, steps=steps, modes={"n": ["none", "product", None, "both"]})
    space = space_of(ins, 2000)
    assert space is not None and space.modes == (0, 1, 3) and space.size == 768
    whole = completed(default_set(ins, 2000), space)
    a, b, mode = (whole.operands[name].reshape(-1).tolist() for name in ("a", "b", "mode"))
    assert set(zip(a, b, mode, strict=True)) == set(itertools.product(range(16), range(16), (0, 1, 3)))
    without = space_of(ins, 600)
    assert without is not None and without.modes == ()


def test_an_accumulator_goes_on_through_the_members() -> None:
    ins = unit_of(
        {
            "unit": "kept",
            "accumulator": "state",
            "shape": {"k": 1},
            "formats": {"a": "u4", "b": "s4", "d": "s16"},
            "steps": EXACT,
        }
    )
    drawn = default_set(ins, 600)
    space = space_of(ins, 600)
    assert space is not None and not space.whole
    whole = completed(drawn, space)
    assert pairs(whole, 0) == set(itertools.product(range(16), range(16)))
    total = 0
    for a, b, clear, d in zip(
        *(whole.operands[n].reshape(-1).tolist() for n in ("a", "b", "clear")), whole.d, strict=True
    ):
        total = (0 if clear else total) + a * (b - 16 * (b > 7))
        assert int(d) == total & 0xFFFF


@pytest.mark.parametrize(
    ("formats", "whole"),
    [
        ({"a": "u4", "c": "s4", "d": "s8"}, True),
        ({"a": "u8", "d": "s8"}, True),
        ({"a": "s8", "c": "s16", "d": "s16"}, None),
    ],
)
def test_an_adder_and_a_converter_have_spaces_of_their_own(
    formats: dict[str, str], whole: bool | None
) -> None:
    operands = [name for name in "ac" if name in formats]
    steps = [{"sum": {"of": operands, "to": "total"}}, EXACT[2]]
    ins = unit_of({"unit": "one", "shape": {"k": 1}, "formats": formats, "steps": steps})
    space = space_of(ins, 600)
    assert (None if space is None else space.whole) == whole
