"""Fragments of whole instructions: every shape packs and unpacks,
and the rules stated the other way round agree."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.errors import DTypeError, OperandError, ShapeError, SpecError
from golden.registers.fragments import Fragments, container, for_instruction, matrix_layout, movmatrix_trans
from golden.registers.layouts import Array, Layout
from golden.traits import Traits

BITS = {
    "f64": 64,
    "f32": 32,
    "tf32": 32,
    "s32": 32,
    "f16": 16,
    "bf16": 16,
    "e5m2": 8,
    "e4m3": 8,
    "e4m3fnuz": 8,
    "s8": 8,
    "u8": 8,
    "e3m2": 6,
    "e2m3": 6,
    "e2m1": 4,
    "s4": 4,
    "u4": 4,
    "b1": 1,
    "ue8m0": 8,
    "ue4m3": 8,
}


@dataclass(frozen=True)
class Format:
    name: str
    bits: int


@dataclass(frozen=True)
class Toy:
    """An instruction as far as fragments look at it."""

    name: str
    layout: str | None
    m: int
    n: int
    k: int
    formats: dict[str, Format]
    sparse: bool = False
    blocks: int = 1
    scale_block: int | None = None
    traits: Traits = field(default_factory=Traits)


def toy(
    layout: str | None,
    m: int,
    n: int,
    k: int,
    a: str,
    c: str,
    b: str = "",
    *,
    blocks: int = 1,
    sparse: bool = False,
    scale: tuple[str, int] | None = None,
    kind: str = "",
    order: dict[str, str] | None = None,
) -> Toy:
    names = {"a": a, "b": b or a, "c": c, "d": c}
    if scale:
        names |= {"scale_a": scale[0], "scale_b": scale[0]}
    formats = {operand: Format(name, BITS[name]) for operand, name in names.items()}
    return Toy(
        f"{layout} m{m}n{n}k{k} {a} {c}",
        layout,
        m,
        n,
        k,
        formats,
        sparse,
        blocks,
        scale[1] if scale else None,
        Traits(lanes={"wgmma": 128, "mfma": 64}.get(str(layout), 32), kind=kind, order=order or {}),
    )


def fragments(ins: Toy) -> Fragments:
    found = for_instruction(ins)
    assert found is not None
    return found


def known(layout: Layout | None) -> Layout:
    assert layout is not None
    return layout


# (instruction, registers of a, b, c)
DENSE = [
    (toy("mma", 8, 8, 4, "f64", "f64"), 1, 1, 2),
    (toy("mma", 16, 8, 4, "f64", "f64"), 2, 1, 4),
    (toy("mma", 16, 8, 8, "f64", "f64"), 4, 2, 4),
    (toy("mma", 16, 8, 16, "f64", "f64"), 8, 4, 4),
    (toy("mma", 16, 8, 4, "tf32", "f32"), 2, 1, 4),
    (toy("mma", 16, 8, 8, "tf32", "f32"), 4, 2, 4),
    (toy("mma", 16, 8, 8, "f16", "f16"), 2, 1, 2),
    (toy("mma", 16, 8, 8, "bf16", "f32"), 2, 1, 4),
    (toy("mma", 16, 8, 16, "f16", "f16"), 4, 2, 2),
    (toy("mma", 16, 8, 16, "f16", "f32"), 4, 2, 4),
    (toy("mma", 8, 8, 16, "s8", "s32", "u8"), 1, 1, 2),
    (toy("mma", 16, 8, 16, "u8", "s32"), 2, 1, 4),
    (toy("mma", 16, 8, 16, "e4m3", "f16", "e5m2"), 2, 1, 2),
    (toy("mma", 16, 8, 32, "e4m3", "f32", "e5m2"), 4, 2, 4),
    (toy("mma", 16, 8, 32, "s8", "s32"), 4, 2, 4),
    (toy("mma", 8, 8, 32, "s4", "s32"), 1, 1, 2),
    (toy("mma", 16, 8, 32, "u4", "s32", "s4"), 2, 1, 4),
    (toy("mma", 16, 8, 64, "s4", "s32"), 4, 2, 4),
    (toy("mma", 8, 8, 128, "b1", "s32"), 1, 1, 2),
    (toy("mma", 16, 8, 128, "b1", "s32"), 2, 1, 4),
    (toy("mma", 16, 8, 256, "b1", "s32"), 4, 2, 4),
    (toy("mma", 16, 8, 32, "e3m2", "f32", "e2m1", kind="f8f6f4"), 4, 2, 4),
    (toy("mma", 16, 8, 32, "e2m1", "f16", "e2m3", kind="f8f6f4"), 4, 2, 2),
    (toy("mma", 16, 8, 32, "e2m1", "f32", "e4m3", kind="mxf8f6f4", scale=("ue8m0", 32)), 4, 2, 4),
    (toy("mma", 16, 8, 64, "e2m1", "f32", kind="mxf4", scale=("ue8m0", 32)), 4, 2, 4),
    (toy("mma", 16, 8, 64, "e2m1", "f32", kind="mxf4nvf4", scale=("ue4m3", 16)), 4, 2, 4),
    (toy("wmma", 16, 16, 16, "f16", "f32"), 4, 4, 8),
    (toy("wmma", 16, 16, 16, "f16", "f16"), 4, 4, 4),
    (toy("wmma", 16, 16, 16, "bf16", "f32"), 4, 4, 8),
    (toy("wmma", 32, 8, 16, "f16", "f32"), 8, 2, 8),
    (toy("wmma", 8, 32, 16, "f16", "f32"), 2, 8, 8),
    (toy("wmma", 16, 16, 16, "s8", "s32"), 2, 2, 8),
    (toy("wmma", 32, 8, 16, "u8", "s32"), 4, 1, 8),
    (toy("wmma", 8, 32, 16, "s8", "s32"), 1, 4, 8),
    (toy("wmma", 8, 8, 32, "s4", "s32"), 1, 1, 2),
    (toy("wmma", 8, 8, 128, "b1", "s32"), 1, 1, 2),
    (toy("wmma", 16, 16, 8, "tf32", "f32"), 4, 4, 8),
    (toy("wmma", 8, 8, 4, "f64", "f64"), 1, 1, 2),
    *[
        (
            toy("mma_m8n8k4_f16", 8, 8, 4, "f16", c, blocks=4, order={"a": a, "b": b}),
            2,
            2,
            {"f16": 4, "f32": 8}[c],
        )
        for c in ("f16", "f32")
        for a in ("row", "col")
        for b in ("row", "col")
    ],
]
SPARSE = [
    (toy("mma_sparse", 16, 8, 8, "tf32", "f32", sparse=True), 2, 2, 4),
    (toy("mma_sparse", 16, 8, 16, "tf32", "f32", sparse=True), 4, 4, 4),
    (toy("mma_sparse", 16, 8, 16, "f16", "f16", sparse=True), 2, 2, 2),
    (toy("mma_sparse", 16, 8, 32, "bf16", "f32", sparse=True), 4, 4, 4),
    (toy("mma_sparse", 16, 8, 32, "s8", "s32", sparse=True), 2, 2, 4),
    (toy("mma_sparse", 16, 8, 64, "u8", "s32", sparse=True), 4, 4, 4),
    (toy("mma_sparse", 16, 8, 64, "e4m3", "f32", sparse=True), 4, 4, 4),
    (toy("mma_sparse", 16, 8, 64, "s4", "s32", sparse=True), 2, 2, 4),
    (toy("mma_sparse", 16, 8, 128, "u4", "s32", sparse=True), 4, 4, 4),
    (toy("mma_sparse", 16, 8, 64, "e2m1", "f32", "e3m2", sparse=True, kind="f8f6f4"), 4, 4, 4),
    (
        toy(
            "mma_sparse", 16, 8, 64, "e2m1", "f32", "e3m2", sparse=True, kind="mxf8f6f4", scale=("ue8m0", 64)
        ),
        4,
        4,
        4,
    ),
    (toy("mma_sparse", 16, 8, 128, "e2m1", "f32", sparse=True, kind="mxf4", scale=("ue8m0", 64)), 4, 4, 4),
    (
        toy("mma_sparse", 16, 8, 128, "e2m1", "f32", sparse=True, kind="mxf4nvf4", scale=("ue4m3", 32)),
        4,
        4,
        4,
    ),
]
WGMMA = [
    (toy("wgmma", 64, n, k, a, c), 4, None, n // 4 if c == "f16" else n // 2)
    for n in (8, 24, 40, 128, 256)
    for a, k, c in (
        ("f16", 16, "f16"),
        ("bf16", 16, "f32"),
        ("tf32", 8, "f32"),
        ("e4m3", 32, "f16"),
        ("s8", 32, "s32"),
        ("b1", 256, "s32"),
    )
]
WGMMA += [
    (toy("wgmma", 64, 16, k, a, "f32", sparse=True), 4, None, 8)
    for a, k in (("f16", 32), ("tf32", 16), ("e5m2", 64))
]
MFMA = [
    (toy("mfma", 32, 32, 1, "f32", "f32", blocks=2), 1, 1, 32),
    (toy("mfma", 16, 16, 1, "f32", "f32", blocks=4), 1, 1, 16),
    (toy("mfma", 4, 4, 1, "f32", "f32", blocks=16), 1, 1, 4),
    (toy("mfma", 32, 32, 2, "f32", "f32"), 1, 1, 16),
    (toy("mfma", 16, 16, 4, "f32", "f32"), 1, 1, 4),
    (toy("mfma", 32, 32, 4, "f16", "f32", blocks=2), 2, 2, 32),
    (toy("mfma", 16, 16, 4, "f16", "f32", blocks=4), 2, 2, 16),
    (toy("mfma", 4, 4, 4, "bf16", "f32", blocks=16), 2, 2, 4),
    (toy("mfma", 32, 32, 2, "bf16", "f32", blocks=2), 1, 1, 32),
    (toy("mfma", 32, 32, 4, "bf16", "f32"), 1, 1, 16),
    (toy("mfma", 32, 32, 8, "f16", "f32"), 2, 2, 16),
    (toy("mfma", 16, 16, 16, "bf16", "f32"), 2, 2, 4),
    (toy("mfma", 16, 16, 8, "bf16", "f32"), 1, 1, 4),
    (toy("mfma", 32, 32, 8, "s8", "s32"), 1, 1, 16),
    (toy("mfma", 16, 16, 16, "s8", "s32"), 1, 1, 4),
    (toy("mfma", 4, 4, 4, "s8", "s32", blocks=16), 1, 1, 4),
    (toy("mfma", 32, 32, 16, "e4m3fnuz", "f32"), 2, 2, 16),
    (toy("mfma", 16, 16, 32, "s8", "s32"), 2, 2, 4),
    (toy("mfma", 16, 16, 8, "tf32", "f32"), 2, 2, 4),
    (toy("mfma", 32, 32, 4, "tf32", "f32"), 2, 2, 16),
    (toy("mfma", 16, 16, 4, "f64", "f64"), 1, 1, 4),
    (toy("mfma", 4, 4, 4, "f64", "f64", blocks=4), 1, 1, 1),
    (toy("mfma", 16, 16, 32, "f16", "f32", sparse=True), 2, 4, 4),
    (toy("mfma", 32, 32, 16, "bf16", "f32", sparse=True), 2, 4, 16),
    (toy("mfma", 16, 16, 64, "e4m3fnuz", "f32", sparse=True), 2, 4, 4),
    (toy("mfma", 32, 32, 32, "s8", "s32", sparse=True), 2, 4, 16),
]
EVERY = [*DENSE, *SPARSE, *WGMMA, *MFMA]
SHAPES = pytest.mark.parametrize("case", EVERY, ids=lambda case: case[0].name)


def layouts_of(ins: Toy) -> list[Layout]:
    found = fragments(ins)
    listed = (found.a, found.b, found.c, found.d, found.metadata, found.scale_a, found.scale_b)
    return [layout for layout in listed if layout is not None]


def random_matrix(layout: Layout, seed: int, batch: tuple[int, ...] = ()) -> Array:
    rng = np.random.default_rng(seed)
    high = (1 << layout.element_bits) - 1
    return rng.integers(0, high, (*batch, *layout.matrix_shape), layout.matrix_dtype, endpoint=True)


@SHAPES
def test_register_counts_and_shapes(case: tuple[Toy, int, int | None, int]) -> None:
    ins, *counts, accumulator = case
    found = fragments(ins)
    expected = [*counts, accumulator, accumulator]
    layouts = (found.a, found.b, found.c, found.d)
    assert [layout and layout.registers for layout in layouts] == expected
    stored = ins.k // 2 if ins.sparse else ins.k
    blocks = () if ins.blocks == 1 else (ins.blocks,)
    for layout, shape in zip(
        layouts, ((ins.m, stored), (ins.k, ins.n), (ins.m, ins.n), (ins.m, ins.n)), strict=True
    ):
        assert layout is None or layout.matrix_shape == (*blocks, *shape)
    assert {layout.lanes for layout in layouts_of(ins)} == {
        {"wgmma": 128, "mfma": 64}.get(str(ins.layout), 32)
    }
    assert (found.metadata is not None) == ins.sparse
    assert (found.scale_a is not None) == (found.scale_b is not None) == (ins.scale_block is not None)


@SHAPES
def test_pack_and_unpack_are_inverse(case: tuple[Toy, int, int | None, int]) -> None:
    for seed, layout in enumerate(layouts_of(case[0])):
        matrix = random_matrix(layout, seed, (2,))
        registers = layout.pack(matrix)
        assert registers.shape == (2, layout.lanes, layout.registers)
        assert registers.dtype == (np.uint64 if layout.element_bits == 64 else np.uint32)
        np.testing.assert_array_equal(layout.unpack(registers), matrix)


@SHAPES
def test_every_element_appears_once(case: tuple[Toy, int, int | None, int]) -> None:
    for layout in layouts_of(case[0]):
        places = layout.coordinates()
        active = places["active"]
        seen = np.zeros((layout.blocks, layout.rows, layout.cols), int)
        np.add.at(seen, (places["block"][active], places["row"][active], places["col"][active]), 1)
        assert (seen == 1).all()
        if layout.operand in "abcd":
            assert active.all()


@settings(max_examples=25, deadline=None)
@given(case=st.sampled_from(EVERY), batch=st.lists(st.integers(0, 3), max_size=3), seed=st.integers(0, 2**32))
def test_any_batch(case: tuple[Toy, int, int | None, int], batch: list[int], seed: int) -> None:
    """Packing a batch is packing each of its matrices; unpacking ignores bits that hold no element."""
    for layout in layouts_of(case[0]):
        matrix = random_matrix(layout, seed, tuple(batch))
        registers = layout.pack(matrix)
        assert registers.shape == (*batch, layout.lanes, layout.registers)
        for index in np.ndindex(*batch):
            np.testing.assert_array_equal(registers[index], layout.pack(matrix[index]))
        unused = ~layout.pack(
            np.full(layout.matrix_shape, (1 << layout.element_bits) - 1, layout.matrix_dtype)
        )
        assert not (registers & unused).any()
        np.testing.assert_array_equal(layout.unpack(registers | unused), matrix)


# Containers.


@pytest.mark.parametrize(
    "name, kind, expected",
    [
        ("e2m1", "f8f6f4", (8, 4, 2)),
        ("e2m1", "mxf8f6f4", (8, 4, 2)),
        ("e2m1", "mxf4", (4, 4, 0)),
        ("e2m1", "mxf4nvf4", (4, 4, 0)),
        ("e3m2", "f8f6f4", (8, 6, 0)),
        ("e2m3", "mxf8f6f4", (8, 6, 0)),
        ("e4m3", "f8f6f4", (8, 8, 0)),
        ("s4", "", (4, 4, 0)),
        ("b1", "", (1, 1, 0)),
        ("f64", "", (64, 64, 0)),
    ],
)
def test_container(name: str, kind: str, expected: tuple[int, int, int]) -> None:
    assert container(name, BITS[name], kind) == expected


def test_tf32_fills_its_register_whatever_its_width_is_called() -> None:
    assert container("tf32", 19, "") == container("tf32", 32, "") == (32, 32, 0)


def test_4_and_6_bit_elements_in_bytes() -> None:
    found = fragments(toy("mma", 16, 8, 32, "e2m1", "f32", "e3m2", kind="f8f6f4"))
    a = np.full((16, 32), 0xF, np.uint8)
    assert (known(found.a).pack(a) == 0x3C3C3C3C).all()
    assert (known(found.b).pack(np.full((32, 8), 0x3F, np.uint8)) == 0x3F3F3F3F).all()
    with pytest.raises(OperandError, match="4 bits"):
        known(found.a).pack(a + 1)


def test_mxf4_low_nibble_is_even_k() -> None:
    a = np.zeros((16, 64), np.uint8)
    a[0, 0], a[0, 1] = 3, 12
    registers = known(fragments(toy("mma", 16, 8, 64, "e2m1", "f32", kind="mxf4")).a).pack(a)
    assert registers[0, 0] == 0xC3 and np.count_nonzero(registers) == 1


# Sparse metadata, from chunk to bits: {a: {k: ...}} as section 9.7.14.6 describes it.


def metadata_place(bits: int, chunks: int, row: int, chunk: int, f: int) -> tuple[int, int]:
    """Lane and lowest bit of the code of `chunk` in `row` (0..15) for selector f."""
    quad = 4 * (row % 8)
    if bits >= 16 and chunks == 8:
        return quad + 2 * f + chunk // 4, 16 * (row // 8) + 4 * (chunk % 4)
    if bits >= 16 and chunks == 4:
        return quad + f, 16 * (row // 8) + 4 * chunk
    if chunks == 8:
        return quad + 2 * f + row // 8, 4 * chunk
    assert (chunks, f) == (16, 0)
    return quad + 2 * (chunk // 8) + row // 8, 4 * (chunk % 8)


@pytest.mark.parametrize("case", [*SPARSE, *WGMMA[-3:]], ids=lambda case: case[0].name)
def test_metadata(case: tuple[Toy, int, int | None, int]) -> None:
    ins = case[0]
    layout, a = known(fragments(ins).metadata), known(fragments(ins).a)
    chunk = {32: 2, 16: 4, 8: 4, 4: 8}[a.container_bits]
    chunks = ins.k // chunk
    assert layout.matrix_shape == (ins.m, chunks) and layout.registers == 1
    legal = {(True, 8): 2, (True, 4): 4, (False, 8): 2, (False, 16): 1}[(a.container_bits >= 16, chunks)]
    for f in range(legal):
        expected = np.zeros((layout.lanes, 1), np.uint32)
        codes = random_matrix(layout, f)
        for row, column in np.ndindex(*codes.shape):
            lane, bit = metadata_place(a.container_bits, chunks, row % 16, column, f)
            expected[lane + 32 * (row // 16), 0] |= np.uint32(int(codes[row, column]) << bit)
        np.testing.assert_array_equal(layout.select(selector=f).pack(codes), expected)
        np.testing.assert_array_equal(layout.select(selector=f).unpack(expected), codes)
    for f in (legal, -1):
        with pytest.raises(OperandError, match="selector"):
            layout.select(selector=f)


def test_metadata_nibbles_are_four_bits() -> None:
    layout = known(fragments(SPARSE[0][0]).metadata)
    with pytest.raises(OperandError, match="4 bits"):
        layout.pack(np.full((16, 4), 16, np.uint8))
    with pytest.raises(OperandError, match="no selector 'byte_id'"):
        layout.select(byte_id=0)


# Scale factors.


@pytest.mark.parametrize(
    "scales, scale, byte_ids",
    [(1, ("ue8m0", 32), (0, 1, 2, 3)), (2, ("ue8m0", 32), (0, 2)), (4, ("ue4m3", 16), (0,))],
)
def test_scale_factors(scales: int, scale: tuple[str, int], byte_ids: tuple[int, ...]) -> None:
    kind, k = ("mxf8f6f4", 32) if scales == 1 else ("mxf4nvf4", 64)
    found = fragments(toy("mma", 16, 8, k, "e2m1", "f32", kind=kind, scale=scale))
    scale_a, scale_b = known(found.scale_a), known(found.scale_b)
    a, b = random_matrix(scale_a, 1), random_matrix(scale_b, 2)
    assert (a.shape, b.shape) == ((16, scales), (scales, 8))
    for byte in byte_ids:
        for thread in range(4):
            registers = scale_b.select(byte_id=byte, thread_id=thread).pack(b)
            wanted = np.zeros((32, 1), np.uint32)
            for j, col in np.ndindex(scales, 8):
                wanted[4 * col + thread, 0] |= np.uint32(int(b[j, col]) << 8 * (byte + j))
            np.testing.assert_array_equal(registers, wanted)
        for thread in range(2):
            registers = scale_a.select(byte_id=byte, thread_id=thread).pack(a)
            wanted = np.zeros((32, 1), np.uint32)
            for row, j in np.ndindex(16, scales):
                wanted[4 * (row % 8) + 2 * thread + row // 8, 0] |= np.uint32(
                    int(a[row, j]) << 8 * (byte + j)
                )
            np.testing.assert_array_equal(registers, wanted)
    for wrong in (
        {"byte_id": 4},
        {"byte_id": -1},
        {"thread_id": 4},
        *[{"byte_id": i} for i in {1, 2, 3} - {*byte_ids}],
    ):
        for layout in (scale_a, scale_b):
            with pytest.raises(OperandError):
                layout.select(**wrong)
    with pytest.raises(OperandError, match="thread_id = 2"):
        scale_a.select(thread_id=2)


# wgmma and wmma.


@pytest.mark.parametrize("case", WGMMA, ids=lambda case: case[0].name)
def test_wgmma_places(case: tuple[Toy, int, int | None, int]) -> None:
    """PTX 9.7.15.5: a warp has 16 rows; D repeats the 16x8 accumulator across N, A is the mma fragment of
    its warp."""
    found = fragments(case[0])
    d, a = known(found.d), known(found.a)
    places, width = d.coordinates(), d.elements_per_register
    for thread in range(128):
        for i in range(d.registers * width):
            at = (thread, i // width, i % width)
            assert places["row"][at] == thread // 32 * 16 + thread % 32 // 4 + (8 if i % 4 >= 2 else 0)
            assert places["col"][at] == i // 4 * 8 + thread % 4 * 2 + i % 2
    codes = random_matrix(a, 0)
    kind = {32: "tf32", 16: "f16", 8: "e4m3", 1: "b1"}[a.container_bits]
    warp = known(fragments(toy("mma", 16, 8, a.cols, kind, "f32")).a)
    for w in range(4):
        np.testing.assert_array_equal(
            a.pack(codes)[32 * w : 32 * w + 32], warp.pack(codes[16 * w : 16 * w + 16])
        )


def mma(k: int, a: str, c: str) -> Fragments:
    return fragments(toy("mma", 16, 8, k, a, c))


@pytest.mark.parametrize(
    "k, a, c",
    [(16, "f16", "f32"), (16, "f16", "f16"), (16, "bf16", "f32"), (16, "s8", "s32"), (8, "tf32", "f32")],
)
def test_wmma_m16n16_is_two_mma(k: int, a: str, c: str) -> None:
    found, half = fragments(toy("wmma", 16, 16, k, a, c)), mma(k, a, c)
    matrix = [random_matrix(known(layout), seed) for seed, layout in enumerate((found.a, found.b, found.c))]
    np.testing.assert_array_equal(known(found.a).pack(matrix[0]), known(half.a).pack(matrix[0]))
    for layout, part, values in ((found.b, half.b, matrix[1]), (found.c, half.c, matrix[2])):
        parts = [known(part).pack(values[:, :8]), known(part).pack(values[:, 8:])]
        np.testing.assert_array_equal(known(layout).pack(values), np.concatenate(parts, axis=-1))


@pytest.mark.parametrize("k, a, c", [(4, "f64", "f64"), (32, "s4", "s32"), (128, "b1", "s32")])
def test_wmma_m8n8_is_mma(k: int, a: str, c: str) -> None:
    found, same = fragments(toy("wmma", 8, 8, k, a, c)), fragments(toy("mma", 8, 8, k, a, c))
    for layout, other in ((found.a, same.a), (found.b, same.b), (found.d, same.d)):
        matrix = random_matrix(known(layout), k)
        np.testing.assert_array_equal(known(layout).pack(matrix), known(other).pack(matrix))


@pytest.mark.parametrize("kind, c_kind", [("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("s8", "s32")])
def test_wmma_m32n8_is_two_mma_and_m8n32_its_transpose(kind: str, c_kind: str) -> None:
    tall, wide = (
        fragments(toy("wmma", 32, 8, 16, kind, c_kind)),
        fragments(toy("wmma", 8, 32, 16, kind, c_kind)),
    )
    half = mma(16, kind, c_kind)
    a, b, c = (random_matrix(known(layout), seed) for seed, layout in enumerate((tall.a, tall.b, tall.c)))
    for layout, part, mirror, values in ((tall.a, half.a, wide.b, a), (tall.c, half.c, wide.c, c)):
        parts = [known(part).pack(values[:16]), known(part).pack(values[16:])]
        np.testing.assert_array_equal(known(layout).pack(values), np.concatenate(parts, axis=-1))
        np.testing.assert_array_equal(known(mirror).pack(values.T), np.concatenate(parts, axis=-1))
    np.testing.assert_array_equal(known(tall.b).pack(b), known(half.b).pack(b))
    np.testing.assert_array_equal(known(wide.a).pack(b.T), known(half.b).pack(b))


# AMD: from matrix element to lane and VGPR, as the calculator prints it.


def mfma_input(size: int, blocks: int, k_lane: int, line: int, k: int, block: int) -> tuple[int, int]:
    """Lane and position in the lane of A[line][k] or B[k][line]."""
    if size * blocks == 64:  # every lane has all of K
        return line + size * block, k
    if blocks > 1:  # f64 4x4x4: four blocks of four lanes, k in steps of 16 lanes
        return 4 * block + 16 * k + line, 0
    return line + size * (k // k_lane), k % k_lane


def mfma_output(size: int, bits: int, block: int, i: int, j: int) -> tuple[int, int]:
    """Lane and register of D[i][j] in `block`."""
    if bits == 64:
        return (j + 16 * (i % 4), i // 4) if size == 16 else (16 * (i % 4) + 4 * block + j, 0)
    if size == 32:
        return j + 32 * (i // 4 % 2), 16 * block + 4 * (i // 8) + i % 4
    return (j + 16 * (i // 4), 4 * block + i % 4) if size == 16 else (4 * block + j, i)


@pytest.mark.parametrize("case", MFMA, ids=lambda case: case[0].name)
def test_mfma_places(case: tuple[Toy, int, int | None, int]) -> None:
    ins = case[0]
    found = fragments(ins)
    for layout, transposed in ((known(found.a), False), (known(found.b), True)):
        matrix = random_matrix(layout, 0).reshape(ins.blocks, layout.rows, layout.cols)
        lines = matrix.transpose(0, 2, 1) if transposed else matrix
        width, k_lane = layout.elements_per_register, layout.registers * layout.elements_per_register
        registers = layout.pack(matrix.reshape(layout.matrix_shape))
        for block, line, k in np.ndindex(*lines.shape):
            lane, position = mfma_input(ins.m, ins.blocks, k_lane, line, k, block)
            shift = position % width * layout.container_bits
            got = int(registers[lane, position // width]) >> shift & (1 << layout.element_bits) - 1
            assert got == lines[block, line, k]
    d = known(found.d)
    matrix = random_matrix(d, 1).reshape(ins.blocks, ins.m, ins.n)
    registers = d.pack(matrix.reshape(d.matrix_shape))
    for block, i, j in np.ndindex(*matrix.shape):
        assert registers[mfma_output(ins.m, d.element_bits, block, i, j)] == matrix[block, i, j]


@pytest.mark.parametrize("case", [case for case in MFMA if case[0].sparse], ids=lambda case: case[0].name)
def test_smfmac_index(case: tuple[Toy, int, int | None, int]) -> None:
    ins = case[0]
    layout = known(fragments(ins).metadata)
    half = ins.formats["a"].bits == 16
    for selector in range(4 if half else 2):
        codes = random_matrix(layout, selector)
        registers = layout.select(selector=selector).pack(codes)
        for row, chunk in np.ndindex(*codes.shape):
            k = 4 * chunk
            lane, bit = (
                (row + ins.m * (k // 8), 4 * (k // 4 % 2))
                if half
                else (row + ins.m * (k // 16), 4 * (k // 4 % 4))
            )
            bit += (8 if half else 16) * selector
            assert int(registers[lane, 0]) >> bit & 15 == codes[row, chunk]


# What has no fragment.


def test_no_register_layout() -> None:
    assert for_instruction(toy(None, 128, 64, 16, "f16", "f32")) is None
    assert fragments(toy("wgmma", 64, 8, 16, "f16", "f32")).b is None
    assert fragments(toy("wmma", 16, 16, 32, "f16", "f32")).a is None
    with pytest.raises(SpecError, match="unknown layout 'hmma'"):
        for_instruction(toy("hmma", 16, 8, 16, "f16", "f32"))


def test_a_layout_of_other_lanes_is_refused() -> None:
    ins = toy("mma", 16, 8, 16, "f16", "f32")
    with pytest.raises(SpecError, match="layout 'mma' is one of 32 lanes, the instruction has 64"):
        for_instruction(replace(ins, traits=Traits(lanes=64)))


# ldmatrix, stmatrix, movmatrix.


def test_ldmatrix_x4_is_the_a_fragment() -> None:
    tile = random_matrix(known(mma(16, "f16", "f32").a), 0)
    quarters = np.stack([tile[:8, :8], tile[8:, :8], tile[:8, 8:], tile[8:, 8:]])
    np.testing.assert_array_equal(matrix_layout(4).pack(quarters), known(mma(16, "f16", "f32").a).pack(tile))


def test_ldmatrix_x2_is_the_b_fragment() -> None:
    """From B stored n by k without .trans, from B stored k by n with .trans."""
    b = random_matrix(known(mma(16, "f16", "f32").b), 0)
    expected = known(mma(16, "f16", "f32").b).pack(b)
    np.testing.assert_array_equal(matrix_layout(2).pack(np.stack([b.T[:, :8], b.T[:, 8:]])), expected)
    np.testing.assert_array_equal(matrix_layout(2, trans=True).pack(np.stack([b[:8], b[8:]])), expected)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_and_stmatrix(count: int) -> None:
    for trans in (False, True):
        layout = matrix_layout(count, trans=trans)
        matrices = random_matrix(layout, count, (3,))
        registers = layout.pack(matrices)
        for lane, j in np.ndindex(32, count):
            one = matrices[0] if count == 1 else matrices[0, j]
            one = one.T if trans else one
            g, t = lane >> 2, lane & 3
            assert registers[0, lane, j] == int(one[g, 2 * t]) | int(one[g, 2 * t + 1]) << 16
        np.testing.assert_array_equal(layout.unpack(registers), matrices)
        lanes = layout.address_lanes()
        assert lanes is not None and lanes.tolist() == [
            [8 * j + row for row in range(8)] for j in range(count)
        ]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_m16n8_trans_b8(count: int) -> None:
    layout = matrix_layout(count, "m16n8", trans=True)
    registers = np.random.default_rng(0).integers(0, 2**32, (32, count), np.uint32)
    stored = layout.unpack(registers).reshape(count, 8, 16)
    for lane, j, v in np.ndindex(32, count, 4):
        g, t = lane >> 2, lane & 3
        assert stored[j, 2 * t + (v & 1), g + 8 * (v >> 1)] == int(registers[lane, j]) >> 8 * v & 255
    assert layout.address_lanes() is None


@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_m8n16(count: int) -> None:
    """The 128 bytes of a matrix lie in the lanes as in memory, four a lane."""
    layout = matrix_layout(count, "m8n16")
    matrices = np.random.default_rng(1).integers(0, 256, (count, 8, 16), np.uint8)
    registers = layout.pack(matrices[0] if count == 1 else matrices)
    assert registers.T.copy().view("<u1").reshape(count, 8, 16).tolist() == matrices.tolist()
    lanes = layout.address_lanes()
    assert lanes is not None and lanes[-1].tolist() == list(range(8 * count - 8, 8 * count))


@pytest.mark.parametrize("count", [1, 2])
def test_ldmatrix_m16n16_trans_b8(count: int) -> None:
    """Lane L supplies source row L and receives four rows of column L >> 2, then of the column 8 further on.

    CUTLASS permutes the bytes of a pair of registers after the load and names the rows in another order. Its
    published map from lane and byte to bit is the truth of the second half.
    """
    layout = matrix_layout(count, "m16n16", trans=True)
    matrices = np.random.default_rng(2).integers(0, 256, (count, 16, 16), np.uint8)
    registers = layout.pack(matrices[0] if count == 1 else matrices)
    bytes_of = np.ascontiguousarray(registers).view("<u1").reshape(32, count, 2, 4)
    for lane, j, r, e in np.ndindex(32, count, 2, 4):
        assert bytes_of[lane, j, r, e] == matrices[j, 4 * (lane & 3) + e, (lane >> 2) + 8 * r]
    lanes = layout.address_lanes()
    assert lanes is not None and lanes.tolist() == [list(range(16 * j, 16 * j + 16)) for j in range(count)]

    # CUTLASS: lane l supplies its row (l & 1) + 8 (l >> 1 & 1) + 2 (l >> 2 & 3) of matrix l >> 4.
    named = np.array([(row & 1) + 8 * (row >> 1 & 1) + 2 * (row >> 2) for row in range(16)])
    theirs = np.empty_like(matrices)
    theirs[:, named] = matrices
    # It then makes (0.x, 0.y, 1.x, 1.y), (0.z, 0.w, 1.z, 1.w) of registers 0 and 1. The bits of a value have
    # the strides 128, 64 and 1024, a lane's strides 256 and 8: rows of 16 bytes.
    permuted = bytes_of.reshape(32, count, 8)[..., [0, 1, 4, 5, 2, 3, 6, 7]].reshape(32, count, 2, 2, 2)
    for lane, j, high, column, row in np.ndindex(32, count, 2, 2, 2):
        bit = 256 * (lane & 3) + 8 * (lane >> 2) + 128 * row + 64 * column + 1024 * high
        assert permuted[lane, j, high, column, row] == theirs[j].ravel()[bit // 8]


def test_movmatrix() -> None:
    one = random_matrix(matrix_layout(1), 0, (5,))
    moved = movmatrix_trans(matrix_layout(1).pack(one))
    np.testing.assert_array_equal(moved, matrix_layout(1).pack(one.transpose(0, 2, 1)))
    with pytest.raises(ShapeError):
        movmatrix_trans(np.zeros((32, 2), np.uint32))
    with pytest.raises(DTypeError):
        movmatrix_trans(np.zeros((32, 1), np.int64))


@pytest.mark.parametrize(
    "arguments",
    [
        (3,),
        (0,),
        (1, "m16n8", False),
        (1, "m16n16", False),
        (4, "m16n16", True),
        (1, "m8n16", True),
        (1, "m32n8", True),
    ],
)
def test_matrix_layout_refuses(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(OperandError, match="expected 1, 2 or 4"):
        matrix_layout(*arguments)
