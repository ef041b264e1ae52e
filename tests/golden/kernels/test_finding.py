"""find_plan on products of plans that it does not know: seeds, spreads and shapes of their own, and
arithmetic that no plan has."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from long_run import long_after

import golden
from golden.kernels.candidates import same_sums
from golden.kernels.finding import search

HMMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
QGMMA = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"
TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"

HIDDEN: list[tuple[str, str, str, int, dict[str, Any]]] = [
    ("hopper", HMMA, "f16", 200, {}),
    ("ampere", HMMA, "f16", 200, {"split_k": 3, "tile_k": 32, "reduce": "descending"}),
    ("hopper", "cublas_tf32", "f32", 336, {"part": 68}),
    (
        *("hopper", "cublas_f64", "f64", 640),
        {"slices": 9, "tile_k": 288, "reduce": [0, 5, 8, [1, 6], [2, 7], 3, 4]},
    ),
    ("hopper", HMMA, "f16", 256, {"tile_k": 64, "slices": 2}),
    ("hopper", QGMMA, "e4m3", 320, {"promote": 64}),
    ("hopper", "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", "f64", 416, {"slices": 5, "tile_k": 160}),
    ("hopper", TF32, "f32", 192, {"a": "f32", "b": "f32", "convert": "toward_zero", "part": 64}),
]


def operands(fmt: str, m: int, n: int, k: int, spread: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    made = [
        golden.from_float(fmt, rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, spread + 1, shape))
        for shape in ((m, k), (k, n))
    ]
    return made[0], made[1]


@pytest.mark.parametrize(
    ("architecture", "name", "fmt", "k", "options"),
    long_after(2, HIDDEN),
)
def test_the_plan_behind_a_product(
    architecture: str, name: str, fmt: str, k: int, options: dict[str, Any]
) -> None:
    a, b = operands(fmt, 45, 37, k, spread=2, seed=k + len(options))
    plan = golden.plan(architecture, name, **options)
    d = golden.gemm(a, b, plan)
    out = plan.formats["d"].name
    found = golden.find_plan(a, b, d, architecture, {"a": fmt, "b": fmt, "d": out})
    assert found is not None and np.array_equal(golden.gemm(a, b, found), d)
    assert same_sums(plan, k) in [same_sums(one, k) for one in (found, *found.others)]
    other = operands(fmt, 33, 20, k, spread=5, seed=99)  # what was found holds on data that it did not see
    for one in (found, *found.others)[:1]:
        assert np.array_equal(golden.gemm(*other, one), golden.gemm(*other, plan))


@pytest.mark.long
def test_a_named_plan_is_found_by_its_name() -> None:
    a, b = operands("e4m3", 70, 60, 384, spread=3, seed=1)
    d = golden.gemm(a, b, golden.plan("hopper", QGMMA, promote=128, out="bf16"))
    numbers = [x.view(ml_dtypes.float8_e4m3fn) for x in (a, b)]
    found = golden.find_plan(*numbers, d.view(ml_dtypes.bfloat16), "hopper")
    assert found is not None and found.name == "cublas_fp8_precise.e4m3.e4m3.bf16"


def test_no_plan_is_no_plan() -> None:
    """The right sum in f64, rounded; and a product with one wrong bit far from any sample."""
    a, b = operands("f16", 50, 40, 96, spread=4, seed=2)
    exact = golden.to_float("f16", a) @ golden.to_float("f16", b)
    known = {"a": "f16", "b": "f16", "d": "f32"}
    assert golden.find_plan(a, b, golden.from_float("f32", exact), "hopper", known) is None
    d = golden.gemm(a, b, golden.plan("hopper", HMMA))
    for place in ((49, 39), (0, 0), (20, 21)):
        wrong = d.copy()
        wrong[place] ^= 1
        result = search(a, b, wrong, "hopper", known)
        assert result.plan is None and result.near[0][0] >= result.sampled - 1


def test_what_data_cannot_decide_is_reported() -> None:
    """Small integers: every sum is exact in every order, and all orders are named."""
    rng = np.random.default_rng(3)
    a, b = (golden.from_float("f16", rng.integers(-3, 4, shape)) for shape in ((9, 64), (64, 9)))
    d = golden.gemm(a, b, golden.plan("hopper", HMMA))
    result = search(a, b, d, "hopper", {"a": "f16", "b": "f16", "d": "f32"})
    assert result.plan is not None and len(result.plan.others) + result.unchecked > 20


def test_integers_have_no_order() -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((20, 100), (100, 30)))
    found = golden.find_plan(a, b, a.astype(np.int32) @ b.astype(np.int32), "hopper")
    assert found is not None and found.name == "cublas_s8"


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"formats": None}, golden.DTypeError, "'A' has dtype uint16, which says no format"),
    ({"formats": {"a": "f16", "b": "f16", "d": "f32", "e": "f32"}}, golden.OperandError, "unknown key 'e'"),
    ({"formats": {"a": "f16", "b": "f16", "d": "f17"}}, golden.UnknownNameError, "unknown format 'f17'"),
    ({"formats": {"a": "bf16", "b": "s8", "d": "f32"}}, golden.DTypeError, "argument 'B' has dtype uint16"),
    ({"formats": {"a": 3, "b": "f16", "d": "f32"}}, golden.OperandError, "expected a dict such as"),
    ({"D": np.zeros((3, 4), np.uint32)}, golden.ShapeError, r"D has shape \(3, 4\)"),
    ({"arch": "hoper"}, golden.UnknownNameError, "hoper"),
    (
        {"formats": {"a": "f16", "b": "bf16", "d": "f32"}},
        golden.OperandError,
        "no instruction of hopper takes f16",
    ),
    ({"A": np.zeros((4, 0), np.uint16), "B": np.zeros((0, 4), np.uint16)}, golden.ShapeError, "says nothing"),
]


@pytest.mark.parametrize(("more", "kind", "message"), WRONG)
def test_wrong_arguments_are_one_line(more: dict[str, Any], kind: type[Exception], message: str) -> None:
    given = {
        "A": np.zeros((4, 16), np.uint16),
        "B": np.zeros((16, 4), np.uint16),
        "D": np.zeros((4, 4), np.uint32),
    }
    known = {"arch": "hopper", "formats": {"a": "f16", "b": "f16", "d": "f32"}}
    with pytest.raises(kind, match=message) as raised:
        golden.find_plan(**(given | known | more))
    assert "\n" not in str(raised.value)


WITH_MORE: list[tuple[str, dict[str, Any], dict[str, float], tuple[str, ...]]] = [
    ("bf16", {"bias": "columns", "tile_k": 64, "split_k": 6}, {}, ("bias",)),
    ("f16", {"bias": "rows", "alpha": 0.7}, {"alpha": 0.7}, ("bias",)),
    ("f32", {"alpha": 0.7, "beta": -1.5, "fma": ["c"]}, {"alpha": 0.7, "beta": -1.5}, ("C",)),
    ("f32", {"c": "seed"}, {}, ("C",)),
    ("f32", {"bias": "columns", "part": 256, "activation": "relu"}, {}, ("C", "bias")),
]


@pytest.mark.parametrize(("out", "options", "factors", "more"), WITH_MORE)
def test_a_product_with_more_addends(
    out: str, options: dict[str, Any], factors: dict[str, float], more: tuple[str, ...]
) -> None:
    fmt = "f16" if out == "f16" else "bf16"
    instruction = HMMA if fmt == "f16" else HMMA.replace("f16.f16", "bf16.bf16")
    a, b = operands(fmt, 40, 56, 512, spread=3, seed=len(options))
    rng = np.random.default_rng(8)
    length = 40 if options.get("bias") == "rows" else 56
    given = {
        name: golden.from_float(out, rng.standard_normal((40, 56) if name == "C" else length))
        for name in more
    }
    plan = golden.plan("hopper", instruction, out=out, **options)
    d = golden.gemm(a, b, plan, **given)
    found = golden.find_plan(a, b, d, "hopper", {"a": fmt, "b": fmt, "d": out}, **given, **factors)
    assert found is not None and np.array_equal(golden.gemm(a, b, found, **given), d)
    assert same_sums(plan, 512) in [same_sums(one, 512) for one in (found, *found.others)]


def test_addends_that_were_not_given_are_not_found() -> None:
    a, b = operands("f16", 24, 40, 256, spread=2, seed=3)
    bias = golden.from_float("f32", np.arange(40.0) + 1)
    d = golden.gemm(a, b, golden.plan("hopper", HMMA, bias="columns"), bias=bias)
    formats = {"a": "f16", "b": "f16", "d": "f32"}
    assert golden.find_plan(a, b, d, "hopper", formats) is None
    assert golden.find_plan(a, b, d, "hopper", formats, bias=bias[::-1].copy()) is None
    with pytest.raises(golden.ShapeError, match=r"'bias' has shape \(24, 40\), expected \(M,\) or \(N,\)"):
        golden.find_plan(a, b, d, "hopper", formats, bias=d)
    with pytest.raises(golden.OperandError, match="a kernel is called with A and B alone"):
        golden.find_plan(lambda a, b: d, arch="hopper", formats=formats, shape=(24, 40, 256), alpha=2.0)


def test_every_product_of_a_batch_has_to_have_the_plan() -> None:
    a, b = (
        np.stack(x) for x in zip(*(operands("f16", 24, 16, 512, 3, seed) for seed in range(3)), strict=True)
    )
    one, other = (golden.plan("hopper", HMMA, split_k=parts) for parts in (2, 4))
    formats = {"a": "f16", "b": "f16", "d": "f32"}
    d = golden.gemm(a, b, one)
    found = golden.find_plan(a, b, d, "hopper", formats)
    assert found is not None and found.evidence.source.startswith("equal in every bit of 3 products")
    d[2] = golden.gemm(a[2], b[2], other)
    assert golden.find_plan(a, b, d, "hopper", formats) is None
    with pytest.raises(golden.ShapeError, match="D is a batch of"):
        golden.find_plan(a[:2], b, d, "hopper", formats)


def test_scales_and_a_bias_together() -> None:
    rng = np.random.default_rng(6)
    a, b = operands("e4m3", 20, 36, 256, spread=2, seed=9)
    scales = {"scale_a": np.float32(rng.random(20) + 0.5), "scale_b": np.float32(rng.random(36) + 0.5)}
    bias = golden.from_float("bf16", rng.standard_normal(36) * 20)
    plan = golden.plan("hopper", "cublas_fp8_rows.e4m3.e4m3.bf16", bias="columns")
    d = golden.gemm(a, b, plan, bias=bias, **scales)
    formats = {"a": "e4m3", "b": "e4m3", "d": "bf16"}
    found = golden.find_plan(a, b, d, "hopper", formats, bias=bias, **scales)
    assert found is not None and np.array_equal(golden.gemm(a, b, found, bias=bias, **scales), d)
    assert golden.find_plan(a, b, d, "hopper", formats, bias=bias[::-1].copy(), **scales) is None
