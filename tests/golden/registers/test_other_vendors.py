"""Layouts of RDNA and of Intel against the descriptions that their spec names, element by element; copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import golden
from golden.errors import OperandError, SpecError
from golden.registers.layouts import Layout, parse_family
from golden.yamlfile import parse


def filled(layout: Layout) -> tuple[Any, Any]:
    """A matrix of numbers that tell places apart as far as the element's width goes, and its registers."""
    size = layout.blocks * layout.rows * layout.cols
    codes = np.arange(size) * 7919 % (1 << min(layout.element_bits, 32))
    matrix = codes.astype(layout.matrix_dtype).reshape(layout.matrix_shape)
    return matrix, layout.pack(matrix)


def element(registers: Any, lane: int, place: int, bits: int) -> int:
    """The element at a place of a lane's registers, counted from the lowest bits of the first."""
    per = 32 // bits
    return int(registers[lane, place // per]) >> place % per * bits & ((1 << bits) - 1)


RDNA3 = ["f32_16x16x16_bf16", "f16_16x16x16_f16", "i32_16x16x16_iu8", "i32_16x16x16_iu4"]


@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize("name", RDNA3)
def test_rdna3(name: str, lanes: int) -> None:
    """Every lane holds row (column) L mod 16 whole; C and D alternate rows between groups of 16 lanes."""
    found = golden.instruction("rdna3", f"v_wmma_{name}_w{lanes}").fragments
    assert found is not None and found.a is not None and found.b is not None and found.d is not None
    (a, ra), (b, rb), (d, rd) = filled(found.a), filled(found.b), filled(found.d)
    for lane in range(lanes):
        for k in range(16):
            assert element(ra, lane, k, found.a.container_bits) == a[lane % 16, k]
            assert element(rb, lane, k, found.b.container_bits) == b[k, lane % 16]
        for register in range(256 // lanes):
            row = (2 if lanes == 32 else 4) * register + lane // 16
            assert rd[lane, register] == d[row, lane % 16]  # 16-bit results lie in the low half
    assert found.a.copies == lanes // 16


def test_rdna3_high_half_and_copies_that_differ() -> None:
    found = golden.instruction("rdna3", "v_wmma_f16_16x16x16_f16_w32").fragments
    assert found is not None and found.a is not None and found.d is not None
    matrix, low = filled(found.d)
    high = found.d.select(half=1)
    assert np.array_equal(high.pack(matrix), low << 16)
    assert np.array_equal(high.unpack(low << 16 | 0x1234), matrix)
    with pytest.raises(OperandError, match="half = 2, expected half < 2"):
        found.d.select(half=2)
    a, registers = filled(found.a)
    assert np.array_equal(found.a.unpack(registers), a)
    registers[17, 3] ^= 1
    with pytest.raises(OperandError, match="2 copies of an element that differ"):
        found.a.unpack(registers)


# Columns of A by name and wave: k of place p in lane group g.
RDNA4 = [
    ("f32_16x16x16_f16", 32, 16, lambda g, p: 8 * g + p),
    ("i32_16x16x16_iu8", 32, 16, lambda g, p: 8 * g + p),
    ("i32_16x16x16_iu4", 32, 16, lambda g, p: 8 * g + p),
    ("i32_16x16x32_iu4", 32, 32, lambda g, p: 16 * g + p),
    ("f32_16x16x16_f16", 64, 16, lambda g, p: 4 * g + p),
    ("i32_16x16x16_iu8", 64, 16, lambda g, p: 4 * g + p),
    ("i32_16x16x16_iu4", 64, 16, lambda g, p: 8 * g + p if g < 2 else None),
    ("i32_16x16x32_iu4", 64, 32, lambda g, p: 8 * [0, 2, 1, 3][g] + p),
]


@pytest.mark.parametrize(("name", "lanes", "k", "column"), RDNA4)
def test_rdna4_operands(name: str, lanes: int, k: int, column: Any) -> None:
    """No copies: lane group L div 16 holds its part of k."""
    found = golden.instruction("rdna4", f"v_wmma_{name}_w{lanes}").fragments
    assert found is not None and found.a is not None and found.b is not None
    (a, ra), (b, rb) = filled(found.a), filled(found.b)
    bits = found.a.container_bits
    held = k * 16 // lanes if column(lanes // 16 - 1, 0) is not None else 8
    assert found.a.registers == held * bits // 32
    for lane in range(lanes):
        for place in range(held):
            at = column(lane // 16, place)
            if at is None:
                assert ra[lane].max() == rb[lane].max() == 0
                continue
            assert element(ra, lane, place, bits) == a[lane % 16, at]
            assert element(rb, lane, place, bits) == b[at, lane % 16]


@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize("name", ["f32_16x16x16_f16", "bf16_16x16x16_bf16"])
def test_rdna4_results(name: str, lanes: int) -> None:
    """16-bit results lie in pairs of rows."""
    found = golden.instruction("rdna4", f"v_wmma_{name}_w{lanes}").fragments
    assert found is not None and found.d is not None
    d, registers = filled(found.d)
    for row in range(16):
        for col in range(16):
            group, inner = (row // 8, row % 8) if lanes == 32 else (row // 8 + 2 * (row % 8 // 4), row % 4)
            assert element(registers, 16 * group + col, inner, found.d.container_bits) == d[row, col]


def test_tiles_and_vectors() -> None:
    """B of a tile in pairs and fours of k (VNNI); a dot product in every lane of a vector."""
    for name, width in (("tdpbf16ps", 2), ("tdpbusd", 4)):
        found = golden.instruction("sapphire_rapids", name).fragments
        assert found is not None and found.a is not None and found.b is not None
        (a, ra), (b, rb) = filled(found.a), filled(found.b)
        for row in range(16):
            for k in range(16 * width):
                assert element(ra, row, k, 32 // width) == a[row, k]
                assert element(rb, k // width, row * width + k % width, 32 // width) == b[k, row]
    pair = golden.instruction("sapphire_rapids", "vdpbf16ps").fragments
    assert pair is not None and pair.b is not None
    b, registers = filled(pair.b)
    assert [element(registers, lane, 1, 16) for lane in range(16)] == b[:, 1, 0].tolist()


def test_copies_and_lanes_are_checked() -> None:
    text = """
layout: toy
title: toy
source: toy
evidence: {kind: derived}
lanes: [4, 8]
operands:
  a:
    - {when: "1", shape: ["4", "1"], registers: "1", row: "L % 4", col: "0", copies: "lanes // 4"}
"""
    toy = parse_family(parse(text))
    assert toy.lanes == (4, 8)
    for lanes in (4, 8):
        layout = toy.build("a", container_bits=32, lanes=lanes)
        assert layout is not None and (layout.lanes, layout.copies) == (lanes, lanes // 4)
        layout.coordinates()
    wrong = parse_family(parse(text.replace('copies: "lanes // 4"', 'copies: "2"')))
    layout = wrong.build("a", container_bits=32, lanes=4)
    assert layout is not None
    with pytest.raises(SpecError, match="every element exactly 2 times"):
        layout.coordinates()
    with pytest.raises(SpecError, match="'lanes' is empty"):
        parse_family(parse(text.replace("[4, 8]", "[]")))
