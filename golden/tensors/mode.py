"""`with emulate(plan): model(x)`: every matrix product of a model by a plan.

A TorchDispatchMode sees what PyTorch executes below autograd, wherever it was called from: mm, addmm, bmm,
baddbmm, mv, dot and convolution go through golden.tensors.matmul, and so do the products of a backward pass.
linear, matmul, einsum, attention and recurrent layers reach it as these. What multiplies matrices in one
piece is an error, never the machine's own answer.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from golden.errors import DTypeError, OperandError
from golden.kernels.plan import Plan
from golden.kernels.plan_files import any_plan
from golden.tensors.convolution import Geometry, convolution, input_gradient, weight_gradient
from golden.tensors.matmul import rounded_product

Tensor = Any
NATIVE = "native"
"""As `backward`: gradients by PyTorch's own products."""
IN_ONE_PIECE = (
    "_addmm_activation",
    "_attention",
    "_grouped_mm",
    "_int_mm",
    "_rnn",
    "_scaled_mm",
    "_sparse_mm",
    "_trilinear",
    "_weight_int",
    "addbmm",
    "attn",
    "cudnn_convolution",
    "flex_attention",
    "linear_backward",
    "matmul_backward",
    "mkldnn_convolution",
    "mkldnn_linear",
    "scaled_dot_product",
    "sparse_addmm",
    "sparse_semi_structured",
    "sspaddmm",
    "transformer_encoder_layer",
)
"""Parts of the names of operations that multiply matrices and are not split here."""


class emulate:
    """Sends the matrix products of everything inside its `with` through a plan.

    Args:
        plan: a Plan, or what `golden.kernels.plan_files.any_plan` takes: the .yaml file of a plan or of a
            unit, or "hopper:cublas_f16.f16.f32".
        backward: the plan of gradients, those of `loss.backward()` inside the `with` (outside it is an
            error). Default: the same plan. "native": PyTorch's own products, wherever it stands.

    Operands of other formats than the plan's are rounded to them as its `convert` says, and, if it has scales
    of tensors or rows, divided by them before. Results are rounded once: to the tensors' dtype, or to the
    plan's `out`. The bias of addmm is the plan's C. Products of integers stay PyTorch's, which are exact.

    Attributes:
        counts: how often each operation went through a plan.

    Raises:
        OperandError: the plan has an activation; inside, where an operation multiplies matrices in one piece,
            or has dtypes that the plan does not take.
    """

    def __init__(self, plan: Plan | str | Path, backward: Plan | str | Path | None = None) -> None:
        self.plan = _plan(plan)
        self.backward = None if backward == NATIVE else self.plan if backward is None else _plan(backward)
        self.counts: Counter[str] = Counter()
        self._open: ExitStack | None = None

    def __enter__(self) -> emulate:
        if self._open is not None:
            raise OperandError("this emulate(...) is entered already, expected a new one")
        with ExitStack() as stack:
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
            stack.enter_context(_no_onednn())
            stack.enter_context(torch.backends.cudnn.flags(enabled=False))
            stack.enter_context(_no_fast_path())
            stack.enter_context(saved_tensors_hooks(_recurrent_products, self._asked_for))
            stack.enter_context(_Router(self))
            self._open = stack.pop_all()
        return self

    def __exit__(self, *reason: Any) -> None:
        stack, self._open = self._open, None
        if stack is not None:
            stack.__exit__(*reason)

    def _asked_for(self, tensor: Tensor) -> Tensor:
        """A tensor that a backward pass takes up again."""
        if self._open is None and self.backward is not None:
            raise OperandError(
                "backward() of what emulate(...) computed stands outside of its `with`, expected inside; "
                "backward='native' takes PyTorch's own products"
            )
        return tensor

    def plan_now(self) -> Plan | None:
        """The plan of the products that run now: that of gradients in a backward pass; None: PyTorch's."""
        in_backward = torch._C._current_graph_task_id() != -1
        return self.backward if in_backward else self.plan


def _plan(given: Plan | str | Path) -> Plan:
    found = given if isinstance(given, Plan) else any_plan(str(given))
    if found.options.activation != "none":
        raise OperandError(
            f"the plan's activation '{found.options.activation}' would follow every product of a model, "
            "expected a plan without one"
        )
    return found


def _recurrent_products(tensor: Tensor) -> Tensor:
    return tensor.detach()


@contextmanager
def _no_onednn() -> Iterator[None]:
    """Recurrent layers as the products that they consist of."""
    flags = torch.backends.mkldnn.flags(enabled=False)
    with warnings.catch_warnings():  # about a GPU that is not used
        warnings.simplefilter("ignore")
        flags.__enter__()
    try:
        yield
    finally:
        flags.__exit__(None, None, None)


@contextmanager
def _no_fast_path() -> Iterator[None]:
    """Layers of attention as the products that they consist of."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


class _Router(TorchDispatchMode):
    """Each operation of PyTorch: through the plan, in smaller ones, refused, or as it is."""

    def __init__(self, owner: emulate) -> None:
        super().__init__()
        self.owner = owner

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """One operation."""
        kwargs = kwargs or {}
        name = str(getattr(func, "overloadpacket", func)).rpartition(".")[2]
        handler = _HANDLERS.get(name.removesuffix("_"))
        plan = self.owner.plan_now()
        if plan is None or (handler is not None and not _floats(args)):
            return func(*args, **kwargs)
        if handler is not None:
            return self._emulated(handler, plan, name, args, kwargs)
        if isinstance(func, torch._ops.OpOverload):
            with self:
                found = func.decompose(*args, **kwargs)
            if found is not NotImplemented:
                return found
        if any(part in name for part in IN_ONE_PIECE):
            raise OperandError(f"{func} multiplies matrices in one piece, which no plan can go through")
        return func(*args, **kwargs)

    def _emulated(self, handler: Any, plan: Plan, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        self.owner.counts[name] += 1
        out = kwargs.pop("out", None)
        out = args[0] if name.endswith("_") else out
        try:
            found = handler(partial(rounded_product, plan=plan), *args, **kwargs)
        except DTypeError as error:  # a TypeError, which PyTorch takes for an operator that does not exist
            raise OperandError(str(error)) from None
        if out is None:
            return found
        if out.shape != found.shape:
            out.resize_(found.shape)
        return out.copy_(found)


def _floats(args: Any) -> bool:
    """Whether an operation is one of numbers that are no integers."""
    return any(isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex()) for x in args)


# Operations -------------------------------------------------------------------------------------------------


def _product(of: Any, a: Tensor, b: Tensor, out_dtype: Any = None) -> Tensor:
    return of(a, b, dtype=out_dtype or torch.promote_types(a.dtype, b.dtype))


def _with_c(
    of: Any, c: Tensor, a: Tensor, b: Tensor, out_dtype: Any = None, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """beta * c + alpha * (a @ b), as the plan's C, beta and alpha."""
    plan = of.keywords["plan"]
    if alpha != 1 or beta != 1:
        plan = plan.but(alpha=plan.options.alpha * alpha, beta=plan.options.beta * beta)
    shape = (*a.shape[:-1], b.shape[-1])
    return of(a, b, plan=plan, C=c.expand(shape), dtype=out_dtype or c.dtype)


def _vector(of: Any, a: Tensor, x: Tensor) -> Tensor:
    return _product(of, a, x[:, None])[:, 0]


def _vector_with_c(of: Any, c: Tensor, a: Tensor, x: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return _with_c(of, c.expand(a.shape[0])[:, None], a, x[:, None], beta=beta, alpha=alpha)[:, 0]


def _dot(of: Any, x: Tensor, y: Tensor) -> Tensor:
    return _product(of, x[None], y[:, None])[0, 0]


def _convolution(of: Any, x: Tensor, weight: Tensor, bias: Tensor | None, *how: Any) -> Tensor:
    batched = x if x.ndim == weight.ndim else x[None]
    found = convolution(batched, weight, Geometry.of(weight.ndim - 2, *how[:6]), partial(_product, of))
    if bias is not None:  # libraries add it after the sum is rounded, or before: here after
        found = found + bias.reshape(-1, *[1] * (weight.ndim - 2))
    return found if x.ndim == weight.ndim else found[0]


def _convolution_backward(
    of: Any, grad: Tensor, x: Tensor, weight: Tensor, bias_sizes: Any, *how: Any
) -> tuple[Tensor | None, ...]:
    geometry, wanted = Geometry.of(weight.ndim - 2, *how[:6]), how[6]
    product = partial(_product, of)
    of_x = input_gradient(grad, x.shape, weight, geometry, product) if wanted[0] else None
    of_w = weight_gradient(grad, x, weight.shape, geometry, product) if wanted[1] else None
    of_b = grad.sum((0, *range(2, grad.ndim))) if wanted[2] else None
    return of_x, of_w, of_b


_HANDLERS: dict[str, Callable[..., Any]] = {
    "mm": _product,
    "bmm": _product,
    "addmm": _with_c,
    "baddbmm": _with_c,
    "mv": _vector,
    "addmv": _vector_with_c,
    "dot": _dot,
    "vdot": _dot,
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
}
"""The operations that are products, by their names in aten."""
