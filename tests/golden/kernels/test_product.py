"""golden.gemm against kernels written out one element at a time, against NumPy's integers, and against itself
in pieces."""

from __future__ import annotations

import itertools
import tracemalloc
import warnings
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import written_kernels as written
from hypothesis import given, settings
from hypothesis import strategies as st
from long_run import long_after

import golden
from golden.kernels import chain
from golden.kernels.conversion import convert_codes
from golden.number.formats import get_format

Bits = np.ndarray[Any, np.dtype[Any]]
HOPPER_F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
WGMMA_FP8 = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"
EVERY_FORM = [
    ("hopper", HOPPER_F16),
    ("hopper", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"),
    ("hopper", WGMMA_FP8),
    ("hopper", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"),
    ("hopper", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"),
    ("hopper", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
    ("hopper", "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc"),
    ("ampere", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
    ("ampere", "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32"),
    ("volta", "HMMA.884.F32.F32"),
    ("cdna1", "v_mfma_f32_16x16x16f16"),
    ("cdna1", "v_mfma_f32_16x16x8bf16"),
    ("cdna2", "v_mfma_f32_16x16x16f16"),
    ("cdna2", "v_mfma_f32_16x16x4f32"),
    ("cdna3", "v_mfma_f32_16x16x16_f16"),
    ("cdna3", "v_mfma_f32_16x16x32_fp8_bf8"),
]
SPARSE_OR_SCALED = [
    ("hopper", "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"),
    ("hopper", "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32"),
    ("hopper", "wgmma.mma_async.sp.sync.aligned.m64n64k64.f32.e4m3.e5m2"),
    (
        "rtx_blackwell",
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    ),
    (
        "rtx_blackwell",
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0",
    ),
]


def any_codes(fmt: str, shape: tuple[int, ...], seed: int, finite: bool = False) -> Bits:
    """Random codes: of small numbers, or any word."""
    form, rng = get_format(fmt), np.random.default_rng(seed)
    if finite and form.is_float:
        return golden.from_float(form, rng.standard_normal(shape) * 2.0 ** rng.integers(-5, 6, shape))
    words = np.frombuffer(rng.bytes(form.storage // 8 * int(np.prod(shape))), form.dtype).reshape(shape)
    return words & form.dtype.type((1 << form.bits) - 1)


def step_by_step(ins: Any, a: Bits, b: Bits, **more: Bits) -> Bits:
    """One step of ins.dot after the other over whole matrices whose K is a multiple of k."""
    d = np.zeros((a.shape[0], b.shape[1]), ins.formats["c"].dtype)
    for step in range(b.shape[0] // ins.k):
        part = {}
        for name, array in {"a": a, "b": b, **more}.items():
            of_a = name in ("a", "metadata", "scale_a")
            width = array.shape[1 if of_a else 0] // (b.shape[0] // ins.k)
            where = slice(step * width, (step + 1) * width)
            part[name] = array[:, None, where] if of_a else array[where].T[None]
        d = ins.dot(c=d, **part)
    return d


@pytest.mark.parametrize(("architecture", "name"), EVERY_FORM)
@pytest.mark.parametrize("finite", [True, False])
def test_a_chain_is_one_step_after_the_other(architecture: str, name: str, finite: bool) -> None:
    ins = golden.instruction(architecture, name)
    m, n, steps = 21, 37, 19
    k = steps * ins.k - min(3, ins.k - 1)
    a = any_codes(ins.formats["a"].name, (m, k), 1, finite)
    b = any_codes(ins.formats["b"].name, (k, n), 2, finite)
    whole_a, whole_b = np.zeros((m, steps * ins.k), a.dtype), np.zeros((steps * ins.k, n), b.dtype)
    whole_a[:, :k], whole_b[:k] = a, b
    assert np.array_equal(golden.gemm(a, b, golden.plan(ins)), step_by_step(ins, whole_a, whole_b))


@pytest.mark.parametrize(("architecture", "name"), SPARSE_OR_SCALED)
def test_sparse_and_scaled_instructions(architecture: str, name: str) -> None:
    ins = golden.instruction(architecture, name)
    m, n, steps = 19, 35, 7
    k = steps * ins.k
    a = any_codes(ins.formats["a"].name, (m, k // 2 if ins.sparse else k), 3, True)
    b = any_codes(ins.formats["b"].name, (k, n), 4, True)
    more, rng = {}, np.random.default_rng(5)
    if ins.pattern is not None:
        more["metadata"] = rng.choice(ins.pattern.legal(True), (m, k // ins.pattern.chunk)).astype(np.uint8)
    if ins.scale_block is not None:
        scales = [
            golden.from_float(ins.formats[f"scale_{x}"], 2.0 ** rng.integers(-3, 4, (40, 40))) for x in "ab"
        ]
        more["scale_a"], more["scale_b"] = (
            scales[0][:m, : k // ins.scale_block],
            scales[1][: k // ins.scale_block, :n],
        )
    wanted = step_by_step(ins, a, b, **more)
    plan = golden.plan(ins)
    assert np.array_equal(golden.gemm(a, b, plan, **more), wanted)
    if ins.scale_block is not None:  # a K that steps do not divide: zeros follow, their scales are at rest
        short = k - ins.scale_block
        a, b = a.copy(), b.copy()
        a[:, short:], b[short:] = 0, 0
        wanted = step_by_step(ins, a, b, **more)
        of = {"scale_a": more["scale_a"][:, :-1], "scale_b": more["scale_b"][:-1]}
        assert np.array_equal(golden.gemm(a[:, :short], b[:short], plan, **of), wanted)


def test_long_chains_keep_the_fast_form() -> None:
    """Else the test above compared one step with one step."""
    most = {name: chain.longest(golden.instruction(arch, name)) for arch, name in EVERY_FORM}
    assert most[HOPPER_F16] == 16 and most[WGMMA_FP8] == 16
    assert most["mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"] == 64
    assert most["v_mfma_f32_16x16x8bf16"] == 1


OPERANDS = {
    "f16": (any_codes("f16", (5, 211), 6, True), any_codes("f16", (211, 3), 7, True)),
    "e4m3": (any_codes("e4m3", (4, 300), 8, True), any_codes("e4m3", (300, 3), 9, True)),
}


@pytest.mark.parametrize("every", [32, 64, 128, 4096])
@pytest.mark.parametrize("out", ["f32", "bf16", "f16", "f64"])
def test_promotion(every: int, out: str) -> None:
    a, b = OPERANDS["e4m3"]
    ins = golden.instruction("hopper", WGMMA_FP8)
    wanted = written.each_element(
        a,
        b,
        lambda row, column, i, j: written.code(written.promoted(ins, row, column, every), out),
        get_format(out).dtype,
    )
    plan = golden.plan("hopper", WGMMA_FP8, promote=every, split_k=1, out=out)
    assert np.array_equal(golden.gemm(a, b, plan), wanted)


SPLITS: list[tuple[dict[str, Any], list[range]]] = [
    ({"split_k": 3}, [range(0, 80), range(80, 160), range(160, 211)]),
    ({"split_k": 3, "tile_k": 64}, [range(0, 128), range(128, 211)]),
    ({"part": 64}, [range(0, 64), range(64, 128), range(128, 192), range(192, 211)]),
    ({"part": 32}, [range(i, min(i + 32, 211)) for i in range(0, 211, 32)]),
    ({"split_k": 100}, [range(i, min(i + 16, 211)) for i in range(0, 211, 16)]),
    ({}, [range(211)]),
    ({"part": 256}, [range(211)]),
]


@pytest.mark.parametrize(("options", "of"), SPLITS)
@pytest.mark.parametrize("reduce", ["ascending", "descending", "tree"])
@pytest.mark.parametrize("fmt", [None, "f16", "bf16"])
def test_split_k(options: dict[str, Any], of: list[range], reduce: str, fmt: str | None) -> None:
    a, b = OPERANDS["f16"]
    ins = golden.instruction("hopper", HOPPER_F16)

    def element(row: list[int], column: list[int], i: int, j: int) -> int:
        sums = [written.chain(ins, [row[k] for k in part], [column[k] for k in part]) for part in of]
        total = written.added([written.value(s, "f32") for s in sums], reduce, fmt or "f32")
        return written.code(total, "f32")

    plan = golden.plan(ins, reduce=reduce, reduce_format=fmt, **options)
    assert np.array_equal(golden.gemm(a, b, plan), written.each_element(a, b, element, np.uint32))


@pytest.mark.parametrize("how", [{}, {"promote": 256}, {"slices": 16}, {"split_k": 2}, {"c": "seed"}])
def test_the_only_part_is_rounded_as_every_part_is(how: dict[str, Any]) -> None:
    """One step holds all of K: promoted, sliced or not, its sum is the same, and is rounded to
    `reduce_format`."""
    a, b = (operand[tuple(slice(0, 16) for _ in operand.shape)] for operand in OPERANDS["f16"])
    c = {"C": np.zeros((a.shape[0], b.shape[1]), np.uint32)} if "c" in how else {}
    exact = golden.gemm(a, b, golden.plan("hopper", HOPPER_F16)).view(np.float32)
    found = golden.gemm(a, b, golden.plan("hopper", HOPPER_F16, reduce_format="bf16", **how), **c)
    assert np.array_equal(found.view(np.float32), exact.astype(ml_dtypes.bfloat16).astype(np.float32))
    assert not np.array_equal(found.view(np.float32), exact)


@pytest.mark.parametrize("order", [[3, 0, [1, 2]], [[[2, 0], 1], 3], [[0, 3], [2, 1]]])
@pytest.mark.parametrize(
    ("options", "of"),
    [
        ({"part": 64}, SPLITS[2][1]),
        ({"slices": 4, "tile_k": 64}, [[k for k in range(211) if k // 16 % 4 == warp] for warp in range(4)]),
    ],
)
def test_sums_are_added_as_a_list_says(options: dict[str, Any], of: list[Any], order: list[Any]) -> None:
    a, b = OPERANDS["f16"]
    ins = golden.instruction("hopper", HOPPER_F16)

    def element(row: list[int], column: list[int], i: int, j: int) -> int:
        sums = [written.chain(ins, [row[k] for k in part], [column[k] for k in part]) for part in of]
        return written.code(written.added([written.value(s, "f32") for s in sums], order, "f32"), "f32")

    found = golden.gemm(a, b, golden.plan(ins, reduce=order, **options))
    assert np.array_equal(found, written.each_element(a, b, element, np.uint32))
    assert not np.array_equal(found, golden.gemm(a, b, golden.plan(ins, **options)))


def test_slices_order_and_promotion_together() -> None:
    """Two warps take the halves of each tile of 64; its elements stand in another order; every 32 elements of
    a warp are promoted; two parts."""
    a, b = OPERANDS["f16"]
    ins = golden.instruction("hopper", HOPPER_F16)
    order = [32 * (p % 2) + p // 2 for p in range(64)]
    plan = golden.plan(ins, tile_k=64, slices=2, order=order, promote=32, split_k=2, reduce="ascending")

    def element(row: list[int], column: list[int], i: int, j: int) -> int:
        row, column = row + [0] * (256 - 211), column + [0] * (256 - 211)
        parts = []
        for first in (0, 128):
            warps = []
            for warp in (0, 1):
                ks = [
                    first + tile + order[place]
                    for tile in (0, 64)
                    for place in range(32 * warp, 32 * warp + 32)
                ]
                warps.append(written.promoted(ins, [row[k] for k in ks], [column[k] for k in ks], 32))
            parts.append(written.added(warps, "ascending", "f32"))
        return written.code(written.added(parts, "ascending", "f32"), "f32")

    assert np.array_equal(golden.gemm(a, b, plan), written.each_element(a, b, element, np.uint32))


F = Fraction


def f32(x: Any) -> Fraction:
    return written.rounded(Fraction(x), "f32")


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("out", ["f32", "bf16", "f16"])
def test_scales_alpha_c_and_bias(fused: bool, out: str) -> None:
    a, b = OPERANDS["f16"]
    ins = golden.instruction("hopper", HOPPER_F16)
    c, bias = any_codes(out, (5, 3), 10, True), any_codes(out, (3,), 11, True)
    rows, columns = (
        np.random.default_rng(i).standard_normal(n).astype(np.float32) for i, n in ((12, 5), (13, 3))
    )
    plan = golden.plan(
        ins, scales="row", alpha=0.7, beta=-1.3, bias="columns", out=out, fma=["c"] if fused else []
    )

    def element(row: list[int], column: list[int], i: int, j: int) -> int:
        x = written.value(written.chain(ins, row, column), "f32")
        x = f32(f32(x * F(float(columns[j]))) * F(float(rows[i])))
        late = f32(f32(-1.3) * written.value(int(c[i, j]), out))
        x = f32(f32(0.7) * x + late) if fused else f32(f32(f32(0.7) * x) + late)
        return written.code(f32(x + written.value(int(bias[j]), out)), out)

    found = golden.gemm(a, b, plan, c, scale_a=rows, scale_b=columns, bias=bias)
    assert np.array_equal(found, written.each_element(a, b, element, get_format(out).dtype))


@pytest.mark.parametrize("out", ["f32", "f16", "s32"])
def test_relu_is_the_last_thing_before_the_rounding(out: str) -> None:
    """Below zero and -0: +0, also of what only `out` cannot hold; infinities and NaNs stay."""
    a, b = OPERANDS["f16"] if out != "s32" else (any_codes("s8", (5, 64), 6), any_codes("s8", (64, 3), 7))
    name = HOPPER_F16 if out != "s32" else "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
    plan = golden.plan("hopper", name, out=out, bias="columns")
    bias = any_codes(out, (3,), 11, True)
    before = golden.gemm(a, b, plan, bias=bias)
    found = golden.gemm(a, b, plan.but(activation="relu"), bias=bias)
    sign = before.dtype.type(1 << 8 * before.itemsize - 1)
    assert (
        np.array_equal(found, np.where(before & sign, 0, before)) and 0 < np.count_nonzero(found) < found.size
    )
    if out == "s32":
        return
    plan = golden.plan("hopper", HOPPER_F16, out=out, activation="relu")
    a = golden.from_float("f16", np.float64([[-1e-7], [-0.0], [np.inf], [-np.inf], [np.nan]]))
    found = golden.to_float(out, golden.gemm(a, golden.from_float("f16", np.float64([[1e-7]])), plan))[:, 0]
    assert not np.signbit(found[:2]).any() and found[:4].tolist() == [0, 0, np.inf, 0] and np.isnan(found[4])


@pytest.mark.parametrize("order", ["product", "a_first"])
@pytest.mark.parametrize("fused", [False, True])
def test_scales_of_blocks(fused: bool, order: str) -> None:
    a, b = OPERANDS["e4m3"]
    ins = golden.instruction("hopper", WGMMA_FP8)
    rng = np.random.default_rng(14)
    of_a, of_b = (rng.standard_normal(s).astype(np.float32) for s in ((4, 3), (3, 2)))
    plan = golden.plan(
        ins,
        promote=64,
        scales="block",
        scale_b_block=[128, 2],
        scale_order=order,
        fma="promotion" if fused else None,
    )

    def element(row: list[int], column: list[int], i: int, j: int) -> int:
        total = F(0)
        for k in range(0, 300, 64):
            part = written.value(written.chain(ins, row[k : k + 64], column[k : k + 64]), "f32")
            x, scale = F(float(of_a[i, k // 128])), F(float(of_b[k // 128, j // 2]))
            part, scale = (f32(part * x), scale) if order == "a_first" else (part, f32(x * scale))
            total = f32(total + part * scale) if fused else f32(total + f32(part * scale))
        return written.code(total, "f32")

    found = golden.gemm(a, b, plan, scale_a=of_a, scale_b=of_b)
    assert np.array_equal(found, written.each_element(a, b, element, np.uint32))
    other = plan.but(scale_order="product" if order == "a_first" else "a_first")
    assert not np.array_equal(found, golden.gemm(a, b, other, scale_a=of_a, scale_b=of_b))
    as_codes = golden.gemm(a, b, plan, scale_a=of_a.view(np.uint32), scale_b=of_b.view(np.uint32))
    assert np.array_equal(found, as_codes)


def test_c_as_the_first_seed() -> None:
    a, b = OPERANDS["f16"]
    ins = golden.instruction("hopper", HOPPER_F16)
    c = any_codes("f32", (5, 3), 15, True)
    wanted = written.each_element(
        a, b, lambda row, column, i, j: written.chain(ins, row, column, int(c[i, j])), np.uint32
    )
    assert np.array_equal(golden.gemm(a, b, golden.plan(ins, c="seed"), c), wanted)
    assert not np.array_equal(golden.gemm(a, b, golden.plan(ins), c), wanted)


@pytest.mark.parametrize("saturated", [False, True])
def test_integers_are_those_of_numpy(saturated: bool) -> None:
    word = "satfinite." if saturated else ""
    ins = golden.instruction("ampere", f"mma.sync.aligned.m16n8k32.row.col.{word}s32.s8.u8.s32")
    rng = np.random.default_rng(16)
    a, b = rng.integers(-128, 128, (33, 501), np.int8), rng.integers(0, 256, (501, 70), np.uint8)
    c = rng.integers(-(2**31), 2**31, (33, 70), np.int32)
    wide = a.astype(np.int64) @ b.astype(np.int64)
    for options in ({}, {"split_k": 3}, {"tile_k": 64, "slices": 2, "reduce": "tree"}):
        found = golden.gemm(a, b, golden.plan(ins, **options), c)
        assert found.dtype == np.int32
        assert np.array_equal(found, (wide + c).astype(np.int32))
    halves = golden.gemm(a, b, golden.plan(ins, out="f32", alpha=0.5))
    assert np.array_equal(halves, np.float32(0.5) * wide.astype(np.int32).astype(np.float32))


@pytest.mark.parametrize("mode", long_after(2, ["nearest_even", "nearest_away", "toward_zero"]))
@pytest.mark.parametrize(
    ("source", "target"), [("f32", "tf32"), ("f32", "bf16"), ("f16", "bf16"), ("bf16", "f16")]
)
def test_operands_are_converted(mode: str, source: str, target: str) -> None:
    codes = any_codes(source, (160,), 17)
    top = (1 << written.WIDTHS[source][0]) - 1 << written.WIDTHS[source][1]
    codes = codes[codes & top != top]
    found = convert_codes(codes, get_format(source), get_format(target), mode)
    for one, other in zip(codes.tolist(), found.tolist(), strict=True):
        wanted = written.code(written.value(one, source), target, mode)
        low = (1 << sum(written.WIDTHS[target])) - 1 << (13 if target == "tf32" else 0)
        assert other & low == wanted & low, hex(one)
        assert bool(golden.to_float(target, np.array(other, found.dtype)) < 0) == (
            written.value(one, source) < 0 and wanted & low > 0
        )


@pytest.mark.parametrize(
    ("target", "dtype"), [("e4m3", ml_dtypes.float8_e4m3fn), ("e5m2", ml_dtypes.float8_e5m2)]
)
def test_f32_is_rounded_once_to_eight_bits_and_saturates_where_there_is_no_infinity(
    target: str, dtype: type
) -> None:
    rng = np.random.default_rng(8)
    values = (rng.standard_normal(40_000) * 2.0 ** rng.integers(-20, 20, 40_000)).astype(np.float32)
    near = rng.integers(0, 256, 40_000).astype(np.uint8).view(dtype).astype(np.float32)
    values = np.concatenate(
        [values, near[:-1] / 2 + near[1:] / 2, np.float32([np.inf, -np.inf, np.nan, 1e30, 464.0, 465.0])]
    )
    wanted = values if target == "e5m2" else np.clip(values, -448, 448)
    found = convert_codes(values.view(np.uint32), get_format("f32"), get_format(target), "nearest_even")
    missing = np.isnan(values)
    assert np.isnan(found[missing].view(dtype).astype(np.float32)).all()
    assert np.array_equal(found[~missing], wanted[~missing].astype(dtype).view(np.uint8))


def test_rounding_away_cuts_nans() -> None:
    """As cvt.rna.tf32.f32 on an H100: the low 13 bits go, and some NaNs become infinities. Other roundings
    keep a NaN one."""
    f32, tf32 = get_format("f32"), get_format("tf32")
    words = np.array(
        [0x7F800001, 0x7F801FFF, 0x7F802000, 0xFFBFFFFF, 0xFFFFFFFF, 0x7F800000, 0x7F7FFFFF], np.uint32
    )
    away = convert_codes(words, f32, tf32, "nearest_away")
    cut = [0x7F800000, 0x7F800000, 0x7F802000, 0xFFBFE000, 0xFFFFE000, 0x7F800000, 0x7F800000]
    assert away.tolist() == cut
    for rounding in ("nearest_even", "toward_zero"):
        found = golden.to_float(tf32, convert_codes(words[:5], f32, tf32, rounding))
        assert np.isnan(found).all()


def test_conversion_is_part_of_the_product() -> None:
    name = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
    rng = np.random.default_rng(18)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((9, 50), (50, 17)))
    plain = golden.plan("hopper", name)
    for mode in ("nearest_even", "nearest_away", "toward_zero", "none"):
        plan = golden.plan("hopper", name, a="f32", b="f32", convert=mode)
        rounding = "toward_zero" if mode == "none" else mode
        of = [
            np.array(
                [written.code(F(float(x)), "tf32", rounding) | (x < 0) << 31 for x in m.ravel()], np.uint32
            )
            for m in (a, b)
        ]
        wanted = golden.gemm(of[0].reshape(a.shape), of[1].reshape(b.shape), plain)
        assert np.array_equal(golden.gemm(a, b, plan).view(np.uint32), wanted)


def test_nan_and_infinity() -> None:
    """An instruction's own word where nothing follows it; that of FADD or of the conversion where it does."""
    plan, more = golden.plan("hopper", HOPPER_F16), golden.plan("hopper", HOPPER_F16, promote=16)
    a = golden.from_float("f16", np.ones((4, 32)))
    a[0, 3], a[1, 20], a[2, 0], a[2, 31] = 0x7E01, 0x7C00, 0x7C00, 0xFC00
    b = golden.from_float("f16", np.ones((32, 1)))
    assert golden.gemm(a, b, plan)[:, 0].tolist() == [0x7FFFFFFF, 0x7F800000, 0x7FFFFFFF, 0x42000000]
    assert golden.gemm(a, b, more)[:, 0].tolist() == [0x7FFFFFFF, 0x7F800000, 0x7FFFFFFF, 0x42000000]
    for out in ("f16", "bf16"):
        found = golden.gemm(a, b, plan.but(out=out))[:, 0].tolist()
        assert found[0] == found[2] == 0x7FFF
        assert found[1] == golden.get_format(out).infinity
    large = golden.from_float("f16", np.full((1, 32), 60000.0))
    assert golden.gemm(large, large.T, plan.but(out="f16")).tolist() == [[0x7C00]]


def test_subnormal_sums_are_kept() -> None:
    least = golden.from_float("bf16", np.array([[2.0**-70] * 16]))
    plan = golden.plan("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", promote=16, alpha=0.5)
    assert golden.gemm(least, least.T, plan).tolist() == [[1 << 12]]  # 16 · 2^-140 / 2 = 2^-137


SIZES = [
    (1, 1, 1),
    (1, 2048, 40),
    (300, 1, 33),
    (2, 3, 0),
    (0, 5, 16),
    (5, 0, 16),
    (64, 64, 64),
    (515, 3, 17),
    (3, 530, 5),
]


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_any_size(m: int, n: int, k: int) -> None:
    ins = golden.instruction("hopper", HOPPER_F16)
    a, b = any_codes("f16", (m, k), 20), any_codes("f16", (k, n), 21)
    whole = -(-k // 16) * 16
    wide_a, wide_b = np.zeros((m, whole), np.uint16), np.zeros((whole, n), np.uint16)
    wide_a[:, :k], wide_b[:k] = a, b
    found = golden.gemm(a, b, golden.plan(ins))
    assert found.shape == (m, n) and np.array_equal(found, step_by_step(ins, wide_a, wide_b))


@settings(max_examples=12)
@given(st.data())
def test_a_product_is_its_pieces(data: st.DataObject) -> None:
    """Rows, columns and entries of a batch do not know of each other, whatever the strides."""
    m, n, k = (data.draw(st.integers(1, most)) for most in (150, 150, 200))
    batch = data.draw(st.sampled_from([(), (3,), (2, 1)]))
    seed = data.draw(st.integers(0, 2**32))
    options = data.draw(
        st.sampled_from([{}, {"promote": 32}, {"split_k": 3}, {"slices": 2, "tile_k": 32, "reduce": "tree"}])
    )
    out = data.draw(st.sampled_from(["f32", "bf16"]))
    plan = golden.plan("ampere", HOPPER_F16, out=out, **options)
    a = any_codes("f16", (k, *batch, m), seed)
    a = np.moveaxis(a, 0, -1)[..., ::-1, :]  # columns far apart, rows backwards
    b = any_codes("f16", (2 * k, n), seed + 1)[::2]
    found = golden.gemm(a, b, plan)
    assert found.shape == (*batch, m, n)
    where = tuple(data.draw(st.integers(0, size - 1)) for size in batch)
    i, j = data.draw(st.integers(0, m - 1)), data.draw(st.integers(0, n - 1))
    alone = golden.gemm(a[where][i : i + 1], b[:, j : j + 1], plan)
    assert found[(*where, i, j)] == alone[0, 0]


def test_batches_broadcast_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = golden.plan("hopper", HOPPER_F16, out="f16")
    a, b = any_codes("f16", (2, 1, 70, 40), 22), any_codes("f16", (3, 40, 600), 23)
    found = golden.gemm(a, b, plan)
    assert found.shape == (2, 3, 70, 600)
    for i in range(2):
        for j in range(3):
            assert np.array_equal(found[i, j], golden.gemm(a[i, 0], b[j], plan))
    for threads in ("1", "3", "40"):
        monkeypatch.setenv("MMAGOLD_THREADS", threads)
        assert np.array_equal(golden.gemm(a, b, plan), found)
    many = any_codes("f16", (5000, 1, 16), 24)
    assert np.array_equal(
        golden.gemm(many, b[0, :16, :2], plan)[1234], golden.gemm(many[1234], b[0, :16, :2], plan)
    )


def test_numbers_in_numbers_out() -> None:
    rng = np.random.default_rng(25)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((7, 20), (20, 5)))
    plan = golden.plan("hopper", HOPPER_F16, out="bf16")
    found = golden.gemm(a, b, plan)
    assert found.dtype == ml_dtypes.bfloat16
    assert np.array_equal(found.view(np.uint16), golden.gemm(a.view(np.uint16), b.view(np.uint16), plan))
    fp8 = golden.plan("hopper", WGMMA_FP8)
    x = a.astype(ml_dtypes.float8_e4m3fn)
    assert golden.gemm(x, x.T, fp8).dtype == np.float32


F16 = np.zeros((4, 32), np.uint16)
WRONG_OPERANDS: list[tuple[dict[str, Any], type[Exception], str]] = [
    (
        {"A": F16.astype(np.float32)},
        golden.DTypeError,
        r"'A' has dtype float32, .*float16.*golden.from_float\('f16', A\)",
    ),
    ({"A": F16.view(ml_dtypes.bfloat16)}, golden.DTypeError, r"A\.view\(np\.uint16\)"),
    ({"A": F16.view(np.float16)}, golden.DTypeError, "one of A and B holds numbers and the other raw codes"),
    ({"A": F16.astype(np.int64)}, golden.DTypeError, "dtype int64, expected uint16"),
    (
        {"A": F16[:, :31]},
        golden.ShapeError,
        r"'A' has shape \(4, 31\), expected \(..., M, K\), with the K that B has, 32",
    ),
    ({"A": F16[0]}, golden.ShapeError, r"'A' has shape \(32,\)"),
    (
        {"C": np.zeros((4, 5), np.uint32)},
        golden.ShapeError,
        r"'C' has shape \(4, 5\), expected \(..., 4, 4\)",
    ),
    ({"C": np.zeros((4, 4), np.uint16)}, golden.DTypeError, "'C' has dtype uint16, expected uint32"),
    (
        {"A": np.zeros((2, 4, 32), np.uint16), "B": np.zeros((3, 32, 4), np.uint16)},
        golden.ShapeError,
        "do not broadcast",
    ),
    ({"scale_a": 1.0}, golden.ShapeError, "'scale_a' was given, but the plan takes none"),
    ({"metadata": F16}, golden.ShapeError, "'metadata' was given"),
    ({"A": np.ma.masked_array(F16)}, golden.OperandError, "masked"),
    ({"plan": None}, golden.DTypeError, "plan: got NoneType, expected a plan"),
    ({"plan": F16}, golden.DTypeError, "plan: got ndarray, expected a plan"),
]


@pytest.mark.parametrize(("given_", "kind", "message"), WRONG_OPERANDS)
def test_wrong_operands_are_one_line(given_: dict[str, Any], kind: type[Exception], message: str) -> None:
    plan = golden.plan("hopper", HOPPER_F16)
    with pytest.raises(kind, match=message) as raised:
        golden.gemm(**({"A": F16, "B": F16.T, "plan": plan} | given_))
    assert "\n" not in str(raised.value)


def test_k_that_the_kernel_does_not_take() -> None:
    plan = golden.plan("hopper", HOPPER_F16, part=64, edge="refused")
    golden.gemm(np.zeros((1, 128), np.uint16), np.zeros((128, 1), np.uint16), plan)
    with pytest.raises(golden.ShapeError, match="K is 96, which the plan's tiles and parts do not divide"):
        golden.gemm(np.zeros((1, 96), np.uint16), np.zeros((96, 1), np.uint16), plan)


def test_k_that_has_other_sums_than_the_list() -> None:
    plan = golden.plan("hopper", HOPPER_F16, part=64, reduce=[0, [2, 1]])
    with pytest.raises(golden.ShapeError, match="K is 128, cut into 2 sums; 'reduce' has numbers for 3"):
        golden.gemm(np.zeros((1, 128), np.uint16), np.zeros((128, 1), np.uint16), plan)


def test_parts_of_their_own_lengths() -> None:
    """Each part is a product by itself; the last one may end inside a step. The tree is (0 + 1) + (2 + 3)."""
    lengths, rng = [48, 16, 64, 27], np.random.default_rng(5)
    ends = np.cumsum([0, *lengths])
    a, b = (
        golden.from_float("f16", rng.standard_normal(size) * 2.0 ** rng.integers(-6, 7, size))
        for size in ((9, ends[-1]), (ends[-1], 7))
    )
    chain = golden.plan("hopper", HOPPER_F16)
    sums = [
        golden.gemm(a[:, low:high], b[low:high], chain).view(np.float32)
        for low, high in itertools.pairwise(ends)
    ]
    plan = chain.but(parts=lengths, reduce="tree")
    found = golden.gemm(a, b, plan)
    assert np.array_equal(found, ((sums[0] + sums[1]) + (sums[2] + sums[3])).view(np.uint32))
    assert not np.array_equal(found, golden.gemm(a, b, chain.but(split_k=4, reduce="tree")))
    even = golden.gemm(a, b, chain.but(parts=[64, 64, 27]))
    assert np.array_equal(even, golden.gemm(a, b, chain.but(part=64)))
    with pytest.raises(golden.ShapeError, match="K is 128, expected 155, the sum of the plan's parts"):
        golden.gemm(a[:, :128], b[:128], plan)


def test_progress_reports_all_and_can_stop() -> None:
    plan = golden.plan("hopper", HOPPER_F16, split_k=2)
    a = np.zeros((700, 64), np.uint16)
    reported: list[tuple[int, int]] = []
    golden.gemm(a, a.T, plan, progress=lambda done, total: reported.append((done, total)))
    assert reported[-1] == (700 * 700 * 4, 700 * 700 * 4) and len(reported) > 4

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        golden.gemm(a, a.T, plan, progress=stop)


def test_memory_stays_below_that_of_the_operands() -> None:
    plan = golden.plan("hopper", HOPPER_F16, promote=64, split_k=4, reduce="tree", out="f16")
    a, b = any_codes("f16", (1024, 8192), 26), any_codes("f16", (8192, 128), 27)
    golden.gemm(a[:64, :64], b[:64, :64], plan)
    tracemalloc.start()
    d = golden.gemm(a, b, plan)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - d.nbytes < (a.nbytes + b.nbytes) / 4


def test_nothing_warns() -> None:
    plan = golden.plan("hopper", HOPPER_F16, promote=16, alpha=3.0, out="f16", scales="tensor")
    a = any_codes("f16", (40, 64), 28)
    with warnings.catch_warnings(action="error"):
        golden.gemm(a, a.T, plan, scale_a=np.float32(1e38), scale_b=np.float32(1e38))


def test_an_operand_that_is_missing_is_no_crash() -> None:
    sparse = golden.instruction(
        "hopper", "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
    )
    operands = {
        "a": np.zeros((16, 16), np.uint16),
        "b": np.zeros((32, 8), np.uint16),
        "c": np.zeros((16, 8), np.uint32),
    }
    with pytest.raises(golden.MmagoldError, match="the core was given no metadata"):
        sparse.engine.tiles(operands, 16, 8)


@pytest.mark.parametrize(("part", "k"), [(12, 29), (20, 40), (None, 21), (32, 64), (36, 100)])
def test_the_first_tile_has_what_the_others_leave(part: int | None, k: int) -> None:
    """Against chains written out here: of each part the rest that fills no tile first, in steps of 8."""
    ins = golden.instruction("hopper", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
    rng = np.random.default_rng(k)
    a, b = (rng.standard_normal(shape).astype(np.float32).view(np.uint32) for shape in ((3, k), (k, 2)))
    wanted = None
    for start in range(0, k, part or k):
        stop = min(start + (part or k), k)
        rest = (stop - start) % 16 or 16
        tiles = [(start, start + rest), *((i, i + 16) for i in range(start + rest, stop, 16))]
        total = np.zeros((3, 2), np.uint32)
        for low, high in tiles:
            for step in range(low, high, 8):
                end = min(step + 8, high)
                x, y = np.zeros((3, 8), np.uint32), np.zeros((8, 2), np.uint32)
                x[:, : end - step], y[: end - step] = a[:, step:end], b[step:end]
                total = ins.dot(x[:, None], y.T[None], total)
        number = total.view(np.float32)
        wanted = number if wanted is None else wanted + number
    plan = golden.plan(ins, part=part, tile_k=16, edge="first")
    assert np.array_equal(golden.gemm(a, b, plan), wanted.view(np.uint32))
