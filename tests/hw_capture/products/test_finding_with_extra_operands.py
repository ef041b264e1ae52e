"""find_plan of products with metadata and scales: an H100's, and products of plans that it does not know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import golden
from golden.cli.app import app
from golden.kernels.layers import digest
from hw_capture.products import explain, record
from hw_capture.products.cases import Case

RECORDED = record.load(Path(__file__).resolve().parents[3] / "vectors" / "kernels")
FP8 = {"a": "e4m3", "b": "e4m3", "d": "bf16"}
MXF8 = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0"


def recorded(call: str, k: int, **options: Any) -> tuple[Any, dict[str, Any]]:
    """A recording, and its operands as golden.gemm takes them."""
    for one in RECORDED:
        if (one.case.call, one.case.k) == (call, k) and options.items() <= one.case.options.items():
            return one, explain.given(one.case, one.case.operands())
    raise AssertionError(call)


@pytest.mark.parametrize(
    ("call", "k", "options", "name"),
    [
        pytest.param("sparse_mm", 208, {}, "cusparselt_f16.f16", marks=pytest.mark.long),
        ("scaled_mm", 208, {"rows": True}, "cublas_fp8_rows.e4m3.e4m3.bf16"),
        pytest.param(
            "scaled_mm", 4096, {"blocks": "1x128"}, "cublas_fp8_blocks.1x128", marks=pytest.mark.long
        ),
    ],
)
def test_the_plan_of_a_recorded_product(call: str, k: int, options: dict[str, Any], name: str) -> None:
    one, given = recorded(call, k, **options)
    formats = {"a": one.case.a, "b": one.case.b, "d": one.case.d}
    a, b, more = given.pop("a"), given.pop("b"), given
    found = golden.find_plan(a, b, one.d, "hopper", formats, **more)
    assert found is not None and name in [plan.name for plan in (found, *found.others)]
    if call == "scaled_mm":
        wrong = one.d.copy()
        wrong[-1, -1] ^= 1
        assert golden.find_plan(a, b, wrong, "hopper", formats, **more) is None


def product(plan: Any, m: int, n: int, k: int, scales: dict[str, Any]) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng([m, n, k])
    a, b = (
        golden.from_float("e4m3", rng.standard_normal(shape) * 2.0 ** rng.integers(-4, 5, shape))
        for shape in ((m, k), (k, n))
    )
    return a, b, golden.gemm(a, b, plan, **scales)


def test_a_plan_that_has_no_name() -> None:
    """Scales of rows with a promotion that no kernel was seen to have, in parts."""
    plan = golden.plan("hopper", "cublas_fp8_rows.e4m3.e4m3.bf16", promote=64)
    rng = np.random.default_rng(3)
    scales = {name: rng.uniform(0.5, 2, 40).astype(np.float32) for name in ("scale_a", "scale_b")}
    a, b, d = product(plan, 40, 40, 416, scales)
    found = golden.find_plan(a, b, d, "hopper", FP8, **scales)
    assert found is not None and found.name == ""
    other = {"scale_a": scales["scale_b"][:33], "scale_b": scales["scale_a"][:39]}
    a, b, d = product(plan, 33, 39, 416, other)
    assert np.array_equal(golden.gemm(a, b, found, **other), d)  # on data that the search did not see


def test_block_scales_of_the_instruction(tmp_path: Path) -> None:
    """Their codes; by the command, too, which writes the plan."""
    plan = golden.plan("rtx_blackwell", MXF8, part=96)
    rng = np.random.default_rng(4)
    scales = {"scale_a": rng.integers(120, 135, (24, 8)), "scale_b": rng.integers(120, 135, (8, 40))}
    scales = {name: codes.astype(np.uint8) for name, codes in scales.items()}
    a, b, d = product(plan, 24, 40, 256, scales)
    for name, array in {"a": a, "b": b, "d": d, **scales}.items():
        np.save(tmp_path / f"{name}.npy", array)
    words = ["gemm", "plan", "--arch", "rtx_blackwell", "--formats", "a=e4m3,b=e4m3,d=f32"]
    for name in ("a", "b", "d", *scales):
        words += [f"--{name.replace('_', '-')}", str(tmp_path / f"{name}.npy")]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "plan.yaml")])
    assert done.exit_code == 0, done.output
    assert np.array_equal(golden.gemm(a, b, golden.load_plan(tmp_path / "plan.yaml"), **scales), d)


def test_operands_that_no_plan_takes_are_one_line() -> None:
    a, b, d = (np.zeros(shape, np.uint8) for shape in ((4, 64), (64, 8), (4, 8)))
    formats = {"a": "e4m3", "b": "e4m3", "d": "bf16"}
    with pytest.raises(golden.OperandError, match="no plan of hopper takes A, B and scale_a"):
        golden.find_plan(a, b, d.astype(np.uint16), "hopper", formats, scale_a=np.ones(4, np.float32))
    with pytest.raises(golden.OperandError, match="metadata: a kernel is called"):
        golden.find_plan(lambda x, y: x, shape=(4, 8, 64), arch="hopper", formats=formats, metadata=a)


@pytest.mark.parametrize(
    ("m", "n", "options", "answer"),
    [
        (320, 48, {"part": 144}, "408e1f38c2e13c3f"),  # cutlass_80_tensorop_d884gemm_32x32_16x5, splitKreduce
        pytest.param(  # sm90_xmma_gemm_..._split_k_kernel
            *(48, 320, {"slices": 6, "tile_k": 192}, "fe20bdf491413a50"), marks=pytest.mark.long
        ),
    ],
)
def test_f64_products_of_an_h200_that_no_list_of_parts_had(
    m: int, n: int, options: dict[str, Any], answer: str
) -> None:
    """PyTorch 2.11, CUDA 13.0, 2026-11-29: digests of D."""
    operands = Case("mm", "f64", "f64", "f64", m, n, 1120, seed=54).operands()
    a, b = operands["a"], operands["b"]
    d = golden.gemm(a, b, golden.plan("hopper", "cublas_f64", **options))
    assert digest(d) == answer
    found = golden.find_plan(a, b, d, "hopper", {"a": "f64", "b": "f64", "d": "f64"})
    assert found is not None and all(found.given[key] == value for key, value in options.items())
