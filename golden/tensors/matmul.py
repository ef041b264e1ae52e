"""Matrix products of PyTorch's tensors by a plan, with gradients that are products by a plan, too."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch

from golden.errors import OperandError
from golden.kernels.options import OUT
from golden.kernels.plan import Plan
from golden.kernels.product import gemm
from golden.tensors import device_product
from golden.tensors.dtypes import check_dtype, codes, dtype_of, format_of, tensor_of

Tensor = Any
"""torch.Tensor, which type checkers see as Any where PyTorch is not installed."""
MORE = ("metadata", "scale_a", "scale_b", "bias")


def emulated_matmul(
    a: Tensor,
    b: Tensor,
    plan: Plan,
    C: Tensor | None = None,
    *,
    backward: Plan | None = None,
    **more: Tensor,
) -> Tensor:
    """D = a @ b as a kernel with the plan computes it, bit for bit as `golden.gemm`.

    Args:
        a, b: (..., M, K) and (..., K, N), any strides, of the dtypes of the plan's formats (f16: float16,
            e4m3: float8_e4m3fn; of e2m1 and others that PyTorch has no dtype of, codes in uint8); leading
            dimensions broadcast. On a GPU a generated kernel computes there; tensors of the CPU are read
            in place.
        plan: from `golden.plan`, `golden.plans`, `golden.load_plan` or `golden.find_plan`.
        C: (..., M, N), as `golden.gemm` takes it.
        backward: the plan of the two products that give the gradients, dD @ b^T and a^T @ dD, whose
            operands are rounded to it (`fitted`). Without one a gradient is an error, not another unit's
            answer.
        more: metadata, scale_a, scale_b, bias: as golden.gemm takes them, tensors or numbers; they have no
            gradient.

    Returns:
        D (..., M, N) of the dtype of the plan's results, on the device of a and b.

    Raises:
        DTypeError, ShapeError, OperandError, MetadataError: of the operands.
    """
    unknown = next((name for name in more if name not in MORE), None)
    if unknown is not None:
        raise OperandError(f"emulated_matmul: unknown argument '{unknown}', expected {', '.join(MORE)}")
    if any(getattr(value, "requires_grad", False) for value in more.values()):
        raise OperandError(f"{', '.join(more)}: expected tensors that need no gradient")
    found: Tensor = _Product.apply(a, b, C, plan, backward, more)
    return found


def product(a: Tensor, b: Tensor, plan: Plan, C: Tensor | None = None, **more: Tensor) -> Tensor:
    """`emulated_matmul` without gradients."""
    given = {"A": a, "B": b, **({"C": C} if C is not None else {}), **more}
    devices = {str(value.device) for value in given.values() if isinstance(value, torch.Tensor)}
    if len(devices) > 1:
        raise OperandError(f"the operands are on {' and '.join(sorted(devices))}, expected one device")
    for name, tensor, key in (("A", a, "a"), ("B", b, "b"), ("C", C, "c")):
        if tensor is not None:
            check_dtype(tensor, plan.formats[key], name)
    if a.device.type == "cuda":
        from golden.tensors.cuda_chain import CudaChain

        return device_product.product(a, b, plan, CudaChain(plan.instruction), C, more)
    if a.device.type != "cpu":
        raise OperandError(f"the operands are on {a.device}, expected tensors of the CPU or of a CUDA device")
    arrays = {name: _array(value, plan, name) for name, value in more.items()}
    d = gemm(
        codes(a, plan.formats["a"], "A"),
        codes(b, plan.formats["b"], "B"),
        plan,
        None if C is None else codes(C, plan.formats["c"], "C"),
        **arrays,
    )
    return tensor_of(d, plan.formats["d"])


def _array(value: Any, plan: Plan, name: str) -> Any:
    """An operand in addition to A, B and C, as golden.gemm takes it."""
    if not isinstance(value, torch.Tensor):
        return value
    if name == "bias":
        return codes(value, plan.formats["d"], name)
    if name == "metadata" or plan.instruction.scale_block is not None:
        return codes(value, plan.instruction.code_format(name), name)
    return codes(value, plan.computes, name)


@lru_cache(maxsize=1024)
def fitted(plan: Plan, a: str, b: str, out: str, c: str | None = None) -> Plan:
    """The plan for operands and results of other formats: A and B are rounded to the instruction's as the
    plan's `convert` says, results to `out` unless the plan has an `out` of its own, C comes in format `c`.

    Raises:
        OperandError: the plan cannot take these formats.
    """
    formats = plan.formats
    given: dict[str, Any] = {
        key: fmt for key, fmt in (("a", a), ("b", b)) if not _same(formats[key].name, fmt)
    }
    if plan.options.out is None and out in OUT and formats["d"].name != out:
        given["out"] = out
    if c is not None and plan.options.c == "after":
        given["c_format"] = c
    return plan.but(**given) if given else plan


def _same(own: str, given: str) -> bool:
    """Whether codes of a dtype are codes of the plan's format as they are: tf32's lie in float32's."""
    return own == given or (own, given) == ("tf32", "f32")


def rounded_product(a: Tensor, b: Tensor, plan: Plan, C: Tensor | None = None, dtype: Any = None) -> Tensor:
    """A product of tensors of any float dtypes by the plan that is `fitted` to them, given back as `dtype`
    (default: that of `a`)."""
    dtype = dtype or a.dtype
    wanted = next((fmt for fmt in OUT if dtype_of(fmt) is dtype), "f32")
    names = format_of(a, "A").name, format_of(b, "B").name
    own = fitted(plan, *names, wanted, None if C is None else format_of(C, "C").name)
    if own.options.scales != "none":
        return _scaled(a, b, plan, C, wanted).to(dtype)
    return product(a, b, own, C).to(dtype)


def _scaled(a: Tensor, b: Tensor, plan: Plan, C: Tensor | None, out: str) -> Tensor:
    """A product by a plan with scales: each tensor (row of A, column of B) is divided, in f32, by its largest
    magnitude over the format's largest number, and rounded, to nearest even; then it is the plan's."""
    if plan.options.scales not in ("tensor", "row"):
        raise OperandError(f"a plan with scales '{plan.options.scales}' has no rule for a model's tensors")
    own = fitted(plan, plan.formats["a"].name, plan.formats["b"].name, out)
    if C is not None:
        own = own.but(c_format=format_of(C, "C").name)
    rows = plan.options.scales == "row"
    quantized, scales = [], []
    for tensor, key, axis in ((a, "a", -1), (b, "b", -2)):
        fmt = plan.formats[key]
        wide = tensor.to(torch.float32)
        most = wide.abs().amax(axis) if rows else wide.abs().amax()
        largest = float(fmt.decode(fmt.largest).value)
        scale = torch.where(most > 0, most / largest, torch.ones_like(most))
        quantized.append((wide / (scale.unsqueeze(axis) if rows else scale)).to(dtype_of(fmt.name)))
        scales.append(scale)
    return product(quantized[0], quantized[1], own, C, scale_a=scales[0], scale_b=scales[1])


class _Product(torch.autograd.Function):
    """emulated_matmul for autograd: gradients of a, b and C."""

    @staticmethod
    def forward(
        ctx: Any, a: Tensor, b: Tensor, C: Tensor | None, plan: Plan, backward: Plan | None, more: Any
    ) -> Tensor:
        """D."""
        ctx.save_for_backward(a, b)
        ctx.plans = plan, backward
        ctx.plain = not more
        ctx.of_c = None if C is None else (C.shape, C.dtype)
        return product(a, b, plan, C, **more)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        """Products by the plan of gradients; that of C is beta times dD."""
        plan, own = ctx.plans
        if own is None:
            raise OperandError("emulated_matmul was given no plan for gradients, expected backward=PLAN")
        after = plan.options.alpha != 1 or plan.options.activation != "none"
        if not ctx.plain or after or plan.instruction.pattern is not None:
            raise OperandError(
                "gradients of products with scales, metadata, bias, alpha or activation have no rule here"
            )
        a, b = ctx.saved_tensors
        of_a = of_b = of_c = None
        if ctx.needs_input_grad[0]:
            of_a = rounded_product(grad, b.transpose(-1, -2), own, dtype=a.dtype).sum_to_size(a.shape)
        if ctx.needs_input_grad[1]:
            of_b = rounded_product(a.transpose(-1, -2), grad, own, dtype=b.dtype).sum_to_size(b.shape)
        if ctx.needs_input_grad[2]:
            shape, dtype = ctx.of_c
            of_c = (grad.to(torch.float32) * plan.options.beta).sum_to_size(shape).to(dtype)
        return of_a, of_b, of_c, None, None, None
