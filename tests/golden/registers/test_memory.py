"""Tiles in shared memory and of block scales against CuTe's canonical layouts, written down as shapes and
strides, and against what the kernels of hw_capture give wgmma."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import golden
from golden.cli import app
from golden.errors import OperandError
from golden.registers.memory import SWIZZLES, SharedTile, scale_address, scale_at, swizzled
from golden.registers.tensor_memory import TensorMemory
from hw_capture.kernels import buffers


def cute(swizzle: int, by_column: bool, elements: int, leading: int, stride: int) -> list[tuple[int, int]]:
    """Shapes and strides of (rows, columns) in elements, the first mode fastest, T = 16 bytes of elements:
    the comment of cute/arch/mma_sm90_desc.hpp, of atoms as many as are asked for."""
    t, wide = elements, max(swizzle // 16, 1)
    if by_column:
        first = [(t, 1), (wide, t), (8, leading if swizzle else stride)]
        return [*first, (0, 0), (8, wide * t), (8, stride if swizzle else leading)]
    return [(8, wide * t), (8, stride), (0, 0), (t, 1), (2, t if swizzle else leading)]


def offset(modes: list[tuple[int, int]], row: int, col: int) -> int:
    split = modes.index((0, 0))
    total = 0
    for value, part in ((row, modes[:split]), (col, modes[split + 1 :])):
        for size, step in part:
            value, digit = divmod(value, size)
            total += digit * step
        assert value == 0
    return total


@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize(("bits", "by_column"), [(16, False), (8, False), (32, False), (16, True)])
def test_every_element_lies_where_cutes_layouts_have_it(swizzle: int, bits: int, by_column: bool) -> None:
    """And Swizzle<B, 4, 3> of the byte address: bits 4 to 4 + B - 1 XOR the bits three higher."""
    k = 256 // bits
    tile = SharedTile(64, k, bits, swizzle, by_column)
    leading, stride = (8 * one // bits for one in tile.offsets)
    modes = cute(swizzle, by_column, 128 // bits, leading, stride)
    seen = set()
    for row, col in itertools.product(range(64), range(k)):
        linear = offset(modes, row, col) * bits // 8
        b = {0: 0, 32: 1, 64: 2, 128: 3}[swizzle]
        wanted = linear ^ ((linear >> 7) & ((1 << b) - 1)) << 4
        assert tile.address(row, col) == wanted, (row, col)
        assert tile.at(wanted) == (row, col)
        seen.add(wanted)
    assert len(seen) == 64 * k  # no two at one place


def test_by_hand() -> None:
    """Row 4 of 32 bytes begins at byte 128: bit 7 is set, so bit 4 turns."""
    tile = SharedTile(64, 16, 16, 32)
    assert tile.element(4, 0) == 72 and tile.address(4, 0) == 144 and tile.at(145) == (4, 0)
    assert all(swizzled(swizzled(a, s), s) == a for s in SWIZZLES for a in range(0, 4096, 16))
    assert scale_address(33, 2) == 22 and scale_at(22) == (33, 2)
    assert sorted(scale_address(i, j) for i in range(128) for j in range(4)) == list(range(512))


@pytest.mark.parametrize("operand", ["a", "b"])
@pytest.mark.parametrize(
    "types", ["m64n32k16.f32.f16.f16", "m64n32k32.f32.e4m3.e4m3", "m64n32k8.f32.tf32.tf32"]
)
def test_what_the_kernels_of_hopper_were_given(operand: str, types: str) -> None:
    """The recorded wgmma read operands of this layout, without a swizzle, from shared memory."""
    ins = golden.instruction("hopper", f"wgmma.mma_async.sync.aligned.{types}")
    fmt, shape = ins.formats[operand], ins.operand_shapes(True)[operand]
    rng = np.random.default_rng(2)
    matrix = rng.integers(0, 1 << fmt.bits, shape).astype(fmt.dtype)
    words = buffers.for_kernel(ins, "shared")[operand].pack(matrix[None])[0]
    given = np.ascontiguousarray(words).view(fmt.dtype)
    rows = matrix if operand == "a" else matrix.T
    tile = SharedTile(*rows.shape, fmt.storage)
    for row, col in itertools.product(*map(range, rows.shape)):
        assert given[tile.element(row, col)] == rows[row, col]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"swizzle": 48}, "swizzle is 48, expected 0, 32, 64, 128"),
        ({"bits": 4}, "elements have 4 bits"),
        ({"by_column": True, "bits": 8}, "elements of 8 bits lie by K"),
        ({"cols": 64, "swizzle": 64}, "a row of K has 128 bytes"),
    ],
)
def test_what_no_descriptor_says(wrong: dict[str, int], said: str) -> None:
    with pytest.raises(OperandError, match=said):
        SharedTile(**{"rows": 64, "cols": 16, "bits": 16} | wrong)
    with pytest.raises(OperandError, match="row 64, column 0"):
        SharedTile(64, 16, 16).address(64, 0)


SCALED = (
    "blackwell:tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X."
    "m128n8k32.f32.e4m3.e4m3.ue8m0"
)


def run(*words: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app.app, ["layout", *map(str, words)])
    return done.exit_code, done.stdout, done.stderr


def test_the_command_goes_both_ways() -> None:
    """All elements of an operand, by --json."""
    ins = golden.instruction("hopper", "HMMA.16816.F32")
    code, said, _ = run("hopper:HMMA.16816.F32", "--operand", "a", "--row", 3, "--column", 5)
    assert code == 0 and said == "a[3][5] is in lane 14, register 0, bits 31:16\n"
    matrix = np.zeros((16, 16), np.uint16)
    matrix[3, 5] = 0xFFFF
    assert ins.fragments.a.pack(matrix)[14, 0] == 0xFFFF0000
    code, said, _ = run("hopper:HMMA.16816.F32", "--lane", 14, "--register", 0, "--json")
    assert [(one["row"], one["column"]) for one in json.loads(said)] == [(3, 4), (3, 5)]
    wgmma = "hopper:wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
    code, said, _ = run(wgmma, "--row", 4, "--column", 0, "--swizzle", 32)
    assert code == 0 and said == "a[4][0] is at byte 144, element 72\n"
    code, said, _ = run(wgmma, "--operand", "b", "--address", 144, "--swizzle", 32, "--json")
    assert json.loads(said) == [{"row": 0, "column": 4, "address": 144, "element": 72}]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["hopper:HMMA.16816.F32", "--operand", "e"],
            "operand is 'e', expected a, b, c, d, scale_a, scale_b",
        ),
        (["hopper:HMMA.16816.F32", "--row", "1"], "expected --row and --column together"),
        (["hopper:HMMA.16816.F32", "--row", "16", "--column", "0"], "has no element at row 16, column 0"),
        (["hopper:HMMA.16816.F32", "--lane", "32", "--register", "0"], "lane 32, register 0"),
        (["hopper:HMMA.16816.F32", "--swizzle", "32"], "a is in registers, not in shared memory"),
        (
            ["b200:tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.f16.f16"],
            "--swizzle 0, 32, 64 or 128 shows",
        ),
        (["hopper:HMMA.16816.F32", "--operand", "scale_a", "--tensor"], "scale_a is no operand of it"),
        (["hopper:HMMA.16816.F32", "--tensor"], "a is in registers, not in tensor memory"),
        ([SCALED, "--operand", "d"], "--tensor shows tensor memory"),
        ([SCALED, "--operand", "b", "--tensor"], "b is in shared, not in tensor memory"),
        ([SCALED, "--operand", "d", "--tensor", "--row", "128", "--column", "0"], "no element at row 128"),
        ([SCALED, "--operand", "d", "--tensor", "--lane", "0", "--register", "8"], "at lane 0, column 8"),
        ([SCALED, "--operand", "d", "--tensor", "--swizzle", "0"], "--tensor cannot be combined with"),
        ([SCALED, "--operand", "scale_a", "--swizzle", "32"], "tiles of 128 x 4 without a swizzle"),
        (["hopper:SM90_64x8x16_F32F16F16_SS", "--address", "99999"], "no element of a lies at byte 99999"),
    ],
)
def test_bad_requests_are_one_line(words: list[str], said: str) -> None:
    code, _, error = run(*words)
    assert code == 2 and said in error and len(error.splitlines()) == 1


def lanes_of_d(ctas: int, m: int, row: int, column: int, n: int) -> tuple[int, int, int]:
    """(CTA, lane, column) by the figures of PTX ISA's data path layouts, half by half."""
    if (ctas, m) == (1, 64):  # layout F: 16 rows a warp, in its first 16 lanes
        return 0, 32 * (row // 16) + row % 16, column
    if (ctas, m) == (2, 128):  # layout B: 64 rows a CTA, the right half of D below them
        return row // 64, row % 64 + (64 if column >= n // 2 else 0), column % (n // 2)
    return row // 128, row % 128, column  # layouts A and D


@pytest.mark.parametrize(("ctas", "m"), [(1, 64), (1, 128), (2, 128), (2, 256)])
def test_d_in_tensor_memory(ctas: int, m: int) -> None:
    n = 16
    spot = TensorMemory(ctas, m, n, 32, 8).place("d")
    found = {
        (int(spot.rows[tuple(at)]), int(spot.cols[tuple(at)])): tuple(map(int, at[:3]))
        for at in np.argwhere(spot.filled)
    }
    assert found == {
        (row, column): lanes_of_d(ctas, m, row, column, n) for row in range(m) for column in range(n)
    }


@pytest.mark.parametrize(("block", "k"), [(32, 32), (32, 64), (16, 64)])
def test_scales_in_tensor_memory_are_the_tile_of_shared_memory_in_each_warp(block: int, k: int) -> None:
    """tcgen05.cp copies lines of 16 bytes of the tile to lanes, for each of four warps."""
    tile = np.arange(512) % 251
    for operand in ("scale_a", "scale_b"):
        spot = TensorMemory(1, 128, 128, k, 8, block).place(operand)
        for _, lane, column, byte in np.argwhere(spot.filled):
            outer, inner = int(spot.rows[0, lane, column, byte]), int(spot.cols[0, lane, column, byte])
            assert inner < k // block
            assert tile[16 * (lane % 32) + 4 * column + byte] == tile[scale_address(outer, inner)]
        assert len(np.argwhere(spot.filled)) == 4 * 128 * (k // block)  # each scale in four warps


# CUTLASS, cute/atom/mma_traits_sm100_frag.hpp, `tmem_e_frg`: (extent, stride) of the row, then of the column
# of a sparse A before compression, each fastest first; 128 lanes, then steps of a column's bits.
METADATA = {
    32: ([(8, 1), (2, 1024), (8, 16)], [(8, 128), (2, 8)]),
    16: ([(8, 1), (2, 2048), (8, 16)], [(16, 128), (2, 8)]),
    8: ([(128, 1)], [(64, 128)]),
    4: ([(128, 1)], [(128, 128)]),
}


def strided(index: int, modes: list[tuple[int, int]]) -> int:
    at = 0
    for extent, stride in modes:
        at, index = at + index % extent * stride, index // extent
    return at


@pytest.mark.parametrize("ctas", [1, 2])
@pytest.mark.parametrize("bits", METADATA)
def test_metadata_in_tensor_memory_lies_where_cutlass_puts_it(bits: int, ctas: int) -> None:
    rows, columns = METADATA[bits]
    k = 512 // bits  # columns of A before compression: 64 bytes
    chunk = {32: 2, 16: 4, 8: 4, 4: 8}[bits]  # columns that a nibble covers: 1:2, 2:4, 4:8 in pairs
    spot = TensorMemory(ctas, 128 * ctas, 16, k, bits).place("metadata")
    found = {
        (int(spot.rows[tuple(at)]), int(spot.cols[tuple(at)])): tuple(map(int, at))
        for at in np.argwhere(spot.filled)
    }
    expected = {}
    for row in range(128 * ctas):
        for first in range(0, k, chunk):
            lane = (strided(row % 128, rows) + strided(first, columns)) % 128
            bit = (strided(row % 128, rows) + strided(first, columns)) // 128 * 4 // chunk
            expected[row, first // chunk] = (row // 128, lane, bit // 32, bit % 32 // 4)
    assert found == expected


def test_metadata_of_fewer_rows_is_refused() -> None:
    with pytest.raises(OperandError, match="m is 64 in 1 CTAs, expected 128"):
        TensorMemory(1, 64, 16, 32, 16).place("metadata")


def test_the_command_knows_tensor_memory_and_scales() -> None:
    code, said, _ = run(SCALED, "--operand", "d", "--tensor", "--row", 3, "--column", 5)
    assert code == 0 and said == "d[3][5] is in CTA 0, lane 3, column 5 of tensor memory, bits 31:0\n"
    code, said, _ = run(SCALED, "--operand", "scale_a", "--tensor", "--row", 33, "--column", 0, "--json")
    assert [(one["lane"], one["register"], one["first_bit"]) for one in json.loads(said)] == [
        (lane, 1, 0) for lane in (1, 33, 65, 97)
    ]
    code, said, _ = run(SCALED, "--operand", "a", "--tensor", "--lane", 2, "--register", 1, "--json")
    assert [(one["row"], one["column"]) for one in json.loads(said)] == [(2, k) for k in range(4, 8)]
    code, said, _ = run(SCALED, "--operand", "scale_a", "--swizzle", 0, "--row", 33, "--column", 2)
    assert code == 0 and said == "scale_a[33][2] is at byte 22, element 22\n"
    code, said, _ = run(SCALED, "--operand", "scale_b", "--address", 22, "--json")
    assert json.loads(said) == [{"row": 33, "column": 2, "address": 22, "element": 22}]
    code, said, _ = run(SCALED, "--operand", "d", "--tensor")
    assert code == 0 and said.splitlines()[3].split() == ["1", *(f"1.{column}" for column in range(8))]
