"""Scaled groups of FP4 at the ends of all ranges, against rationals: scales that make results subnormal
or infinite, groups that cancel, c at every border.

Random operands seldom reach a result below the least normal number, or a sum of which nothing is left.
"""

from __future__ import annotations

import json
from typing import Any

import exact
import numpy as np
import numpy.typing as npt
import pytest
from instruction_sets import instruction_sets
from random_units import load

import golden
from golden.model.instruction import Instruction

MMA = "mma.sync.aligned.m16n8k64.row.col.kind::"
UNITS = {
    "mxf4": (MMA + "mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0", exact.gdfs("ue8m0", 32)),
    "nvf4": (MMA + "mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", exact.gdfs("ue4m3", 16)),
}
SCALES = {
    "ue8m0": (0, 1, 2, 50, 51, 64, 100, 126, 127, 128, 130, 190, 253, 254, 255),
    "ue4m3": (0, 1, 2, 7, 8, 9, 0x30, 0x38, 0x39, 0x40, 0x77, 0x7E, 0x7F),
}
MAGNITUDES = (
    0,
    0,
    1,
    2,
    0x7FFFFF,
    0x800000,
    0x800001,
    0xC00000,
    0x1000000,
    0x3F800000,
    0x40490FDB,
    0x7F7FFFFF,
)
CORNERS = (*MAGNITUDES, 0x34000000, 0x2E000001, 0x16000003, 0x7F800000, 0x7F800001, 0x7FC00005)


def elements(shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Rows of codes of E2M1 in turn: random, the largest, pairs that cancel, zeros, one alone."""
    codes = rng.integers(0, 16, shape).astype(np.uint8)
    codes[..., 1::5, :] = 7 | codes[..., 1::5, :] & 8
    codes[..., 2::5, 1::2] = codes[..., 2::5, ::2] ^ 8
    codes[..., 3::5, :] &= 8
    codes[..., 4::5, :] &= np.where(rng.random(codes[..., 4::5, :].shape) < 1 / 32, 15, 8).astype(np.uint8)
    return codes


def operands(ins: Instruction, batch: int, rng: np.random.Generator) -> dict[str, Any]:
    """Matrices; every second one takes its scales from a few of the values above."""
    shapes = ins.operand_shapes(matrices=True)
    given: dict[str, Any] = {"a": elements((batch, *shapes["a"]), rng)}
    given["b"] = elements((batch, *reversed(shapes["b"])), rng).swapaxes(-1, -2)
    for name in ("scale_a", "scale_b"):
        codes = np.array(SCALES[ins.formats[name].name], np.uint8)
        given[name] = rng.choice(codes, (batch, *shapes[name]))
        for i in range(0, batch, 2):
            few = rng.choice(codes[:-1], 2)  # no NaN
            given[name][i] = rng.choice(few, shapes[name])
    c = rng.choice(np.array(CORNERS, np.uint32), (batch, *shapes["c"]))
    given["c"] = c ^ (rng.integers(0, 2, c.shape, np.uint32) << 31)
    given["c"][::2] &= 0x80FFFFFF  # small ones
    return given


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("name", UNITS)
def test_the_ends_of_scaled_groups(name: str, simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    ins, truth = golden.instruction("rtx_blackwell", UNITS[name][0]), UNITS[name][1]
    given = operands(ins, 4, np.random.default_rng(1))
    got = ins(**given)
    seen = set()
    for at in np.ndindex(got.shape):
        i, row, column = at
        wanted = truth(
            given["a"][i, row].tolist(),
            given["b"][i, :, column].tolist(),
            int(given["c"][at]),
            given["scale_a"][i, row].tolist(),
            given["scale_b"][i, :, column].tolist(),
        )
        assert int(got[at]) == wanted, f"{at}: {int(got[at]):#x}, not {wanted:#x}"
        seen.add(
            "zero" if wanted == 0 else min(wanted >> 23 & 255, 254) // 254 * 2 + (wanted >> 23 & 255 == 0)
        )
    assert len(seen) >= 3  # zeros, subnormal and normal numbers


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("rounding", ["toward_zero", "nearest_even"])
@pytest.mark.parametrize("d", ["f32", "f16", "bf16"])
def test_other_results_of_scaled_groups(
    d: str, rounding: str, simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Formats, roundings and signs of zero that no shipped unit has, as matrices and as dot products."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    rng = np.random.default_rng(2)
    for scale, kept, zero, floor in (
        ("ue8m0", 35, "positive", {}),
        ("ue4m3", 30, "signed_underflow", {"floor": -139}),
    ):
        steps = [
            {"multiply": {"to": "products"}},
            {"special_values": {"of": ["products", "c", "scales"], "nan": 0x7FC0}},
            {"sum": {"of": ["products"], "to": "groups", "group": {"contiguous": 16}, "exponent": 0}},
            {"scale": {"of": "groups"}},
            {"align": {"of": ["groups", "c"], "fraction_bits": kept, "rounding": "toward_zero", **floor}},
            {"sum": {"of": ["groups", "c"], "to": "total"}},
            {"round": {"of": "total", "rounding": rounding, "overflow": "infinity", "zero": zero}},
        ]
        formats = {"a": "e2m1", "b": "e2m1", "c": "f32", "d": d, "scale_a": scale, "scale_b": scale}
        text = {"unit": "groups", "shape": {"m": 16, "n": 8, "k": 64}, "formats": formats, "scale_block": 16}
        ins = load(json.dumps(text | {"steps": steps}))
        assert ins.engine_of_one.fast
        given = operands(ins, 40, rng)
        order = ("a", "b", "c", "metadata", "scale_a", "scale_b")
        wanted = ins.engine.matrices(*(given.get(key) for key in order), general=True)
        assert np.array_equal(ins(**given), wanted), (scale, kept)
        rows = {key: given[key][:, 0] for key in ("a", "scale_a")}
        columns = {key: given[key][:, :, 0] for key in ("b", "scale_b")}
        assert np.array_equal(ins.dot(**rows, **columns, c=given["c"][:, 0, 0]), wanted[:, 0, 0])


@pytest.mark.parametrize("simd", instruction_sets())
def test_an_addition_may_follow_scaled_groups(simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop for one sum of groups is not for programs that add its result to c later."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    formats = {"a": "e2m1", "b": "e2m1", "c": "f32", "d": "f32", "scale_a": "ue4m3", "scale_b": "ue4m3"}
    groups = {"gdfs": {"fraction_bits": 35, "nan": 0x7FFFFFFF}, "seed": "zero", "to": "groups"}
    later = {"ieee_add": {}, "k": "none", "seed": "c", "addends": ["groups"]}
    text = {"unit": "later", "shape": {"m": 16, "n": 8, "k": 64}, "formats": formats, "scale_block": 16}
    ins = load(json.dumps(text | {"program": [groups, later]}))
    assert ins.engine_of_one.fast
    given = operands(ins, 20, np.random.default_rng(3))
    order = ("a", "b", "c", "metadata", "scale_a", "scale_b")
    assert np.array_equal(ins(**given), ins.engine.matrices(*map(given.get, order), general=True))


ORDER = ("a", "b", "c", "metadata", "scale_a", "scale_b")


def of_groups(group: int, k: int, n: int, scale_b: str, **ends: int) -> Instruction:
    """A unit of scaled groups of this size, each with a scale; `ends`: further keys of the rounding."""
    formats = {"a": "e2m1", "b": "e2m1", "c": "f32", "d": "f32", "scale_a": "ue4m3", "scale_b": scale_b}
    both = {"of": ["groups", "c"]}
    last = {"of": "total", "rounding": "toward_zero", "overflow": "infinity", "zero": "positive"}
    steps = [
        {"multiply": {"to": "products"}},
        {"special_values": {"of": ["products", "c", "scales"], "nan": 0x7FFFFFFF}},
        {"sum": {"of": ["products"], "to": "groups", "group": {"contiguous": group}, "exponent": 0}},
        {"scale": {"of": "groups"}},
        {"align": both | {"fraction_bits": 35, "rounding": "toward_zero"}},
        {"sum": both | {"to": "total"}},
        {"round": last | ends},
    ]
    shape = {"m": 16, "n": n, "k": k}
    text = {"unit": "groups", "shape": shape, "formats": formats, "scale_block": group, "steps": steps}
    return load(json.dumps(text))


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("group", [1, 2, 4, 12, 20, 32])
@pytest.mark.parametrize("n", [8, 16])
def test_groups_of_other_sizes(n: int, group: int, simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes share words where groups come in fours, and what marks the elements of a group that are not zero
    lies as close as they do; two rows of 8 columns share the longest vectors."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    ins = of_groups(group, 4 * group, n, "ue8m0")
    assert ins.engine_of_one.fast
    given = operands(ins, 20, np.random.default_rng(group))
    wanted = ins.engine.matrices(*map(given.get, ORDER), general=True)
    assert np.array_equal(ins(**given), wanted)
    apart = np.zeros((*given["a"].shape, 2), np.uint8)[..., 0]  # columns that are not side by side
    apart[...] = given["a"]
    assert np.array_equal(ins(**given | {"a": apart}), wanted)


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("group", [16, 32])
@pytest.mark.parametrize("bits", [0, 1])
def test_results_of_few_bits_keep_their_nans(
    bits: int, group: int, simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut to no bit of its fraction, a NaN would be an infinity."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    ins = of_groups(group, 64, 8, "ue4m3", fraction_bits=bits)
    given = operands(ins, 20, np.random.default_rng(group))
    wanted = ins.engine.matrices(*map(given.get, ORDER), general=True)
    assert (wanted == 0x7FFFFFFF).any()
    assert np.array_equal(ins(**given), wanted)
