"""emulated_matmul against golden.gemm, bit for bit, and its gradients against the products that they are."""

from __future__ import annotations

import numpy as np
import pytest

import golden
from golden.errors import DTypeError, OperandError, ShapeError

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'mmagold[torch]'")

from golden.tensors.dtypes import TORCH_NAMES, codes, dtype_of, format_of, tensor_of  # noqa: E402
from mmagold.torch import emulated_matmul  # noqa: E402

PLANS = [
    golden.plan("hopper", "cublas_f16.f16.f32"),
    golden.plan("hopper", "cublas_f16.bf16.bf16", split_k=2),
    golden.plan("hopper", "cublas_fp8_precise.e4m3.e4m3.bf16"),
    golden.plan("hopper", "cublas_fp8_fast.e5m2.e4m3.bf16"),
    golden.plan("hopper", "cublas_tf32", part=64),
    golden.plan("hopper", "cublas_f64"),
    golden.plan("hopper", "cublas_s8"),
    golden.plan("cdna3", "v_mfma_f32_16x16x32_fp8_bf8"),
    golden.plan("cdna2", "v_mfma_f32_16x16x4f32"),
]
HOPPER = golden.plan("hopper", "cublas_f16.f16.f32")


def some(fmt: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    form = golden.get_format(fmt)
    if not form.is_float:
        return rng.integers(0, 1 << form.bits, shape, np.uint64).astype(form.dtype)
    return golden.from_float(form, rng.standard_normal(shape) * 2.0 ** rng.integers(-4, 5, shape))


def tensor(fmt: str, bits: np.ndarray) -> torch.Tensor:
    return tensor_of(bits, golden.get_format(fmt))


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_it_is_golden_gemm_on_the_tensors_codes(plan: golden.Plan) -> None:
    formats = plan.formats
    a, b = some(formats["a"].name, (2, 9, 150), 1), some(formats["b"].name, (150, 11), 2)
    found = emulated_matmul(tensor(formats["a"].name, a), tensor(formats["b"].name, b), plan)
    assert found.dtype is dtype_of(formats["d"].name) and found.shape == (2, 9, 11)
    assert np.array_equal(codes(found, formats["d"], "D"), golden.gemm(a, b, plan))


@pytest.mark.parametrize("fmt", TORCH_NAMES)
def test_tensors_and_codes_share_memory(fmt: str) -> None:
    bits = some(fmt, (4, 6), 3)
    made = tensor(fmt, bits)
    form = golden.get_format(fmt)
    assert format_of(made, "A").storage == form.storage
    assert np.shares_memory(codes(made, form, "A"), bits)
    assert np.array_equal(codes(made.t()[1:], form, "A"), bits.T[1:])
    if form.is_float:
        assert np.array_equal(made.to(torch.float64).numpy(), golden.to_float(form, bits))


def test_c_bias_and_scales() -> None:
    a, b = some("f16", (5, 40), 4), some("f16", (40, 7), 5)
    c, bias = some("f32", (5, 7), 6), some("f32", (7,), 7)
    plan = HOPPER.but(bias="columns", scales="row", beta=0.5)
    scales = some("f32", (5,), 8), some("f32", (7,), 9)
    wanted = golden.gemm(a, b, plan, c, bias=bias, scale_a=scales[0], scale_b=scales[1])
    more = {"bias": tensor("f32", bias), "scale_a": tensor("f32", scales[0]), "scale_b": scales[1]}
    found = emulated_matmul(tensor("f16", a), tensor("f16", b), plan, tensor("f32", c), **more)
    assert np.array_equal(codes(found, plan.formats["d"], "D"), wanted)


def test_gradients_are_products_by_the_plan_of_gradients() -> None:
    a, b = (some("f16", shape, seed) for shape, seed in (((3, 5, 40), 10), ((40, 7), 11)))
    c = some("f32", (7,), 12)
    g = golden.from_float("f32", np.random.default_rng(13).integers(-9, 10, (3, 5, 7)) / 8)
    own = golden.plan("hopper", "cublas_f16.bf16.f32")
    x, y = (tensor("f16", bits).requires_grad_() for bits in (a, b))
    z = tensor("f32", c).requires_grad_()
    d = emulated_matmul(x, y, HOPPER.but(beta=2.0), z.expand(5, 7), backward=own)
    d.backward(tensor("f32", g))
    rounded = own.but(a="f32", b="f16", out="f16")
    of_a = golden.gemm(g, b.T, rounded)
    assert np.array_equal(codes(x.grad, golden.get_format("f16"), "A"), of_a)
    each = golden.gemm(a.swapaxes(1, 2), g, own.but(a="f16", b="f32", out="f16"))
    of_b = tensor("f16", each).sum(0)
    assert torch.equal(y.grad, of_b)
    assert torch.equal(z.grad, 2 * tensor("f32", g).sum((0, 1)))


def test_what_is_wrong_is_said() -> None:
    a, b = torch.zeros(2, 3).half(), torch.zeros(3, 4).half()
    with pytest.raises(OperandError, match="was given no plan for gradients"):
        emulated_matmul(a.requires_grad_(), b, HOPPER).sum().backward()
    with pytest.raises(OperandError, match=r"gradients of products with .* activation have no rule"):
        emulated_matmul(a, b, HOPPER.but(activation="relu"), backward=HOPPER).sum().backward()
    a = a.detach()
    with pytest.raises(DTypeError, match=r"'B' has dtype torch.float32, expected torch.float16 \(f16\)"):
        emulated_matmul(a, b.float(), HOPPER)
    with pytest.raises(DTypeError, match=r"dtype torch\.complex64, expected one of float64"):
        emulated_matmul(a.to(torch.complex64), b, HOPPER)
    with pytest.raises(ShapeError, match="'A' has shape"):
        emulated_matmul(a, b.T, HOPPER)
    with pytest.raises(OperandError, match="unknown argument 'scale'"):
        emulated_matmul(a, b, HOPPER, scale=1.0)
    with pytest.raises(OperandError, match="on cpu and meta, expected one device"):
        emulated_matmul(a, b.to("meta"), HOPPER)
    with pytest.raises(OperandError, match="on meta, expected tensors of the CPU"):
        emulated_matmul(a.to("meta"), b.to("meta"), HOPPER)
