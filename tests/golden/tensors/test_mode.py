"""emulate: every product of a model goes through the plan, forward and backward, or is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import golden
from golden.errors import OperandError

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'mmagold[torch]'")

from torch.nn import functional  # noqa: E402

from golden.tensors.dtypes import codes  # noqa: E402
from mmagold.torch import emulate  # noqa: E402

F32 = golden.get_format("f32")
F16 = golden.get_format("f16")
HOPPER = golden.plan("hopper", "HMMA.16816.F32")
F64 = golden.plan("hopper", "cublas_f64")
FLAWED = """unit: flawed
shape: {k: 4}
formats: {a: f16, b: f16, c: f32, d: f32}
steps:
  - multiply: {to: products}
  - align: {of: [products, c], fraction_bits: 8, rounding: toward_zero}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: toward_zero, overflow: infinity, zero: positive}
"""


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def bits(x: torch.Tensor, name: str = "f32") -> np.ndarray:
    return codes(x, golden.get_format(name), "x")


class Everything(torch.nn.Module):
    """Layers that reach the units in all ways."""

    def __init__(self) -> None:
        super().__init__()
        self.filters = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.back = torch.nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1)
        self.encoder = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.memory = torch.nn.LSTM(16, 8)
        self.last = torch.nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.back(functional.relu(self.filters(x))).flatten(2)[:, :, :16]
        y, _ = self.memory(self.encoder(y))
        return torch.einsum("bij,kj->bik", self.last(y), torch.ones(2, 3, dtype=y.dtype))


def gradients(model: torch.nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    model.zero_grad()
    x = x.clone().requires_grad_()
    y = model(x)
    y.square().sum().backward()
    return [y.detach(), x.grad, *(p.grad.clone() for p in model.parameters())]


def test_a_whole_model_in_f64_answers_as_pytorch_up_to_the_order_of_sums() -> None:
    model, x = Everything().double().eval(), torch.randn(2, 3, 8, 8, dtype=torch.float64)
    plain = gradients(model, x)
    with emulate(F64) as seen:
        ours = gradients(model, x)
    for one, other in zip(plain, ours, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
    assert set(seen.counts) == {"mm", "bmm", "addmm", "convolution", "convolution_backward"}


@pytest.mark.parametrize("no_gradients", [torch.no_grad, torch.inference_mode])
def test_a_model_without_gradients_goes_through_the_plan_as_with_them(no_gradients: type) -> None:
    model, x = Everything().eval(), torch.randn(2, 3, 8, 8)
    with emulate(HOPPER):
        wanted = model(x).detach()
    with no_gradients(), emulate(HOPPER) as seen:
        found = model(x)
    assert torch.equal(found, wanted)
    assert sum(seen.counts.values()) == 13
    assert not torch.equal(model(x), found)


def test_linear_is_the_plan_with_the_bias_as_c_and_so_are_its_gradients() -> None:
    x, g = torch.randn(6, 50, requires_grad=True), torch.randn(6, 9)
    layer = torch.nn.Linear(50, 9)
    with emulate(HOPPER):
        y = layer(x)
        y.backward(g)
    own = HOPPER.but(a="f32", b="f32")
    w = bits(layer.weight)
    spread = np.broadcast_to(bits(layer.bias), (6, 9))
    assert np.array_equal(bits(y), golden.gemm(bits(x), w.T, own, spread))
    assert np.array_equal(bits(x.grad), golden.gemm(bits(g), w, own))
    assert np.array_equal(bits(layer.weight.grad), golden.gemm(bits(g).T, bits(x), own))


def test_attention_is_two_products_by_the_plan() -> None:
    q, k, v = torch.randn(3, 2, 4, 5, 16, dtype=torch.float16).unbind(0)
    with emulate(HOPPER) as seen:
        found = functional.scaled_dot_product_attention(q, k, v, scale=1.0)
    scores = torch.from_numpy(golden.gemm(bits(q, "f16"), bits(k.mT, "f16"), HOPPER).view(np.float32))
    weights = torch.softmax(scores, -1)  # in f32, as PyTorch's plain form of attention does it
    wanted = golden.gemm(bits(weights), bits(v.float()), HOPPER.but(a="f32", b="f32"))
    assert torch.equal(found, torch.from_numpy(wanted.view(np.float32)).half())
    assert seen.counts == {"bmm": 2}


def test_every_spelling_of_a_product_is_the_same() -> None:
    a, b, c = torch.randn(4, 20), torch.randn(20, 5), torch.randn(4, 5)
    own = HOPPER.but(a="f32", b="f32")
    plain, with_c = (
        golden.gemm(bits(a), bits(b), own),
        golden.gemm(bits(a), bits(b), own.but(alpha=2.0, beta=0.5), bits(c)),
    )
    with emulate(HOPPER):
        out = torch.zeros(4, 5)
        torch.mm(a, b, out=out)
        same = [out, a @ b, torch.matmul(a, b), torch.bmm(a[None], b[None])[0], a.unsqueeze(0).matmul(b)[0]]
        same += [torch.einsum("ij,jk->ik", a, b), torch.stack([torch.mv(a, x) for x in b.unbind(1)], 1)]
        same += [torch.tensordot(a, b, 1), functional.linear(a, b.t())]
        same += [torch.tensor([[torch.dot(x, y) for y in b.unbind(1)] for x in a])]
        more = [torch.addmm(c, a, b, beta=0.5, alpha=2), c.clone().addmm_(a, b, beta=0.5, alpha=2)]
        more += [torch.baddbmm(c[None], a[None], b[None], beta=0.5, alpha=2)[0]]
        more += [torch.stack([torch.addmv(c[:, i], a, b[:, i], beta=0.5, alpha=2) for i in range(5)], 1)]
    assert all(np.array_equal(bits(one), plain) for one in same)
    assert all(np.array_equal(bits(one), with_c) for one in more)


def test_a_unit_and_a_plan_come_from_files(tmp_path: Path) -> None:
    unit, plan = tmp_path / "unit.yaml", tmp_path / "plan.yaml"
    unit.write_text(FLAWED)
    plan.write_text("plan: mine\ninstruction: unit.yaml\nsplit_k: 2\nout: bf16\n")
    a, b = torch.randn(4, 32), torch.randn(32, 5)
    with emulate(str(unit)):
        one = a @ b
    with emulate(plan):
        two = a @ b
    own = golden.plan(golden.load_instruction(unit), a="f32", b="f32")
    assert np.array_equal(bits(one), golden.gemm(bits(a), bits(b), own))
    d = golden.gemm(bits(a), bits(b), own.but(split_k=2, out="bf16"))
    assert np.array_equal(bits(two), d.astype(np.uint32) << 16)


def test_scales_of_tensors_fill_the_format() -> None:
    plan = golden.plan("hopper", "cublas_fp8_rows.e4m3.e4m3.bf16")
    a, b = torch.randn(4, 64) * 1000, torch.randn(64, 5) / 1000
    with emulate(plan):
        found = a @ b
    scales = a.abs().amax(1) / 448, b.abs().amax(0) / 448
    x, y = (a / scales[0][:, None]).to(torch.float8_e4m3fn), (b / scales[1]).to(torch.float8_e4m3fn)
    wanted = golden.gemm(
        bits(x, "e4m3"), bits(y, "e4m3"), plan, scale_a=bits(scales[0]), scale_b=bits(scales[1])
    )
    assert np.array_equal(bits(found), wanted.astype(np.uint32) << 16)
    assert torch.isfinite(found).all()


def test_gradients_have_a_plan_of_their_own_or_are_pytorchs() -> None:
    a, b = torch.randn(4, 32, requires_grad=True), torch.randn(32, 5)
    with emulate(HOPPER, backward="ampere:HMMA.16816.F32"):
        (a @ b).sum().backward()
    ampere = golden.plan("ampere", "HMMA.16816.F32", a="f32", b="f32")
    assert np.array_equal(bits(a.grad), golden.gemm(bits(torch.ones(4, 5)), bits(b.t()), ampere))
    a.grad = None
    with emulate(HOPPER, backward="native") as seen:
        y = a @ b
    y.sum().backward()
    assert torch.equal(a.grad, torch.ones(4, 5) @ b.t()) and seen.counts == {"mm": 1}


def test_an_activation_after_every_product_is_refused() -> None:
    with pytest.raises(OperandError, match="activation 'relu' would follow every product"):
        emulate(HOPPER.but(activation="relu"))
    with pytest.raises(OperandError, match="activation 'relu' would follow every product"):
        emulate(HOPPER, backward=HOPPER.but(activation="relu"))


def test_backward_outside_and_entering_twice_are_refused() -> None:
    a = torch.randn(4, 4, requires_grad=True)
    mode = emulate(HOPPER)
    with mode:
        y = a @ a
        with pytest.raises(OperandError, match="is entered already"), mode:
            pass
    with pytest.raises(OperandError, match=r"backward\(\) of what emulate"):
        y.sum().backward()
    assert torch.equal(a @ a, torch.mm(a.detach(), a.detach()))  # nothing stays behind


def test_settings_are_as_before_after_an_error() -> None:
    before = torch.backends.mha.get_fastpath_enabled(), torch.backends.mkldnn.enabled
    with pytest.raises(ZeroDivisionError), emulate(HOPPER):
        raise ZeroDivisionError
    assert (torch.backends.mha.get_fastpath_enabled(), torch.backends.mkldnn.enabled) == before


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.nn.Bilinear(4, 4, 2)(x, x),
        lambda x: torch.addbmm(x, x[None], x[None]),
        lambda x: torch.ops.aten._addmm_activation(x[0], x, x),
        lambda x: torch.sparse.addmm(x, x.to_sparse(), x),
        lambda x: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*[x[None, None]] * 3),
    ],
)
def test_products_in_one_piece_are_refused(call: object) -> None:
    with pytest.raises(OperandError, match="in one piece"), emulate(HOPPER):
        call(torch.randn(4, 4))


def test_numbers_that_a_unit_does_not_take_are_refused_and_integers_left() -> None:
    with emulate(HOPPER):
        assert torch.equal(
            torch.ones(3, 3, dtype=torch.int64) @ torch.ones(3, 3, dtype=torch.int64),
            3 * torch.ones(3, 3, dtype=torch.int64),
        )
        with pytest.raises(OperandError, match="f64 codes cannot be converted to f16"):
            torch.randn(3, 3).double() @ torch.randn(3, 3).double()
        with pytest.raises(OperandError, match="complex64"):
            torch.randn(3, 3).to(torch.complex64) @ torch.randn(3, 3).to(torch.complex64)
