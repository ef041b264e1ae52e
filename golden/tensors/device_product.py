"""Whole matrix products on a device: chains by whatever computes them there, all other sums by PyTorch.

PyTorch's sums, products and conversions of f32 and f64 are those of IEEE 754, rounded to nearest even, with
subnormal numbers, on CPUs and GPUs alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch

from golden.errors import OperandError
from golden.gemm import sums
from golden.gemm.assembly import Assembly
from golden.gemm.operands import check_operands
from golden.gemm.order import Runs, parts, places
from golden.gemm.plan import Plan
from golden.number.formats import get_format
from golden.tensors.conversion import convert_codes, encode, numbers, raw
from golden.tensors.dtypes import check_dtype, dtype_of

Tensor = Any


class Chain(Protocol):
    """What runs an instruction over K."""

    def __call__(self, a: Tensor, b: Tensor, seed: Tensor | None, steps: int) -> Tensor:
        """Codes (batch, M, N) of d after `steps` steps over codes a (batch, M, K) and b (batch, K, N), from
        seed or zero; what is at rest follows where K ends early."""


def product(
    a: Tensor, b: Tensor, plan: Plan, chain: Chain, C: Tensor | None, more: Mapping[str, Tensor]
) -> Tensor:
    """D of checked operands (golden.tensors.matmul.product).

    Raises:
        OperandError: the plan has something that this does not compute.
    """
    _check(plan, more)
    _check_shapes(plan, {"A": a, "B": b, "C": C, **more})
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2], *([C.shape[:-2]] if C is not None else []))
    m, n = a.shape[-2], b.shape[-1]
    flat_a = raw(a).expand(*batch, *a.shape[-2:]).reshape(-1, *a.shape[-2:])
    flat_b = raw(b).expand(*batch, *b.shape[-2:]).reshape(-1, *b.shape[-2:])
    flat_c = None if C is None else raw(C).expand(*batch, m, n).reshape(-1, m, n)
    codes = _Product(flat_a, flat_b, plan, chain, flat_c, more).codes()
    return codes.view(dtype_of(plan.formats["d"].name)).reshape(*batch, m, n)


def _check(plan: Plan, more: Mapping[str, Tensor]) -> None:
    """Raises OperandError where a plan is for the CPU alone."""
    options = plan.options
    wide = plan.accumulates.name == "f64"
    narrow = [options.out or "f64", options.reduce_format or "f64"]
    why = [
        ("scales of blocks", options.scales == "block"),
        ("fused multiply-adds after the instruction", bool(options.fma)),
        ("f64 sums rounded to 16 bits", wide and any(get_format(fmt).storage < 32 for fmt in narrow)),
        ("scales and bias that are no tensors", any(not isinstance(x, torch.Tensor) for x in more.values())),
    ]
    found = next((text for text, holds in why if holds), None)
    if found is not None:
        raise OperandError(f"plan: {found} run on the CPU alone, expected tensors there: a.cpu(), b.cpu()")


def _check_shapes(plan: Plan, given: Mapping[str, Tensor | None]) -> None:
    """Raises what golden.gemm raises of operands of these shapes, from arrays that take no memory."""
    formats = {
        "A": plan.formats["a"],
        "B": plan.formats["b"],
        "C": plan.formats["c"],
        "bias": plan.formats["d"],
    }
    shadows: dict[str, Any] = dict.fromkeys(("C", "metadata", "scale_a", "scale_b", "bias"))
    for name, tensor in given.items():
        if tensor is not None:
            fmt = formats.get(name, plan.computes)
            check_dtype(tensor, fmt, name)
            shadows[name] = np.broadcast_to(np.zeros((), fmt.dtype), tuple(tensor.shape))
    check_operands(plan, shadows.pop("A"), shadows.pop("B"), shadows)


class _Product(Assembly):
    """One product of batches (batch, rows, columns)."""

    def __init__(
        self, a: Tensor, b: Tensor, plan: Plan, chain: Chain, c: Tensor | None, more: Mapping[str, Tensor]
    ) -> None:
        self.plan, self.chain, self.c, self.more = plan, chain, c, more
        self.k, formats, own = b.shape[1], plan.formats, plan.instruction.formats
        self.a = convert_codes(a, formats["a"], own["a"], plan.options.convert)
        self.b = convert_codes(b, formats["b"], own["b"], plan.options.convert)

    def codes(self) -> Tensor:
        """Codes of D."""
        plan, options = self.plan, self.plan.options
        found = parts(plan, self.k)
        seed = self.c if options.c == "seed" else None
        if (len(found) == 1 and len(found[0]) == 1 and options.promote is None) or not found:
            codes = self.chained(found[0][0] if found else [], seed)
            if plan.is_plain(self.c is not None):
                return codes
            total = self._numbers(codes)
        else:
            total = self.total(found)
        return encode(self._finished(total), plan.formats["d"], sums.nan_word(plan))

    def chained(self, runs: Runs, seed: Tensor | None) -> Tensor:
        """Codes of d after these steps, from a seed or from zero."""
        d = seed
        for run in runs:
            a, b = self._stretch(run)
            d = self.chain(a, b, d, len(run))
        if d is None:
            shape = (self.a.shape[0], self.a.shape[1], self.b.shape[2])
            own = self.plan.instruction.formats["c"]
            d = raw(torch.zeros(shape, dtype=dtype_of(own.name), device=self.a.device))
        return d

    def _stretch(self, run: range) -> tuple[Tensor, Tensor]:
        """The elements of K in these steps, in their order; fewer than the steps take where K ends."""
        k, unit = self.plan.instruction.k, self.plan.instruction
        found = places(self.plan, self.k, run.start, len(run))
        if found is None:
            which = slice(run.start * k, run.stop * k)
            return self.a[:, :, which], self.b[:, which]
        index = torch.from_numpy(found.clip(max=max(self.k - 1, 0))).to(self.a.device)
        beyond = torch.from_numpy(found >= self.k).to(self.a.device)
        a, b = self.a.index_select(2, index), self.b.index_select(1, index)
        a.masked_fill_(beyond, unit.at_rest("a"))
        b.masked_fill_(beyond[:, None], unit.at_rest("b"))
        return a, b

    def chain_sum(self, runs: Runs) -> Tensor:
        """As Assembly."""
        return self._numbers(self.chained(runs, None))

    def rounded(self, values: Tensor, fmt: str) -> Tensor:
        """As Assembly."""
        if not values.is_floating_point() or get_format(fmt).storage >= 8 * values.element_size():
            return values
        return values.to(dtype_of(fmt)).to(values.dtype)

    def promoted(self, total: Tensor | None, part: Tensor, step: int) -> Tensor:
        """As Assembly."""
        return (0.0 if total is None else total) + part

    def _numbers(self, codes: Tensor) -> Tensor:
        return numbers(codes, self.plan.instruction.formats["d"], self.plan.accumulates)

    def _finished(self, total: Tensor) -> Tensor:
        """Scales, alpha, C and bias, as golden.gemm.block has them."""
        plan, options = self.plan, self.plan.options
        total = total.to(dtype_of(plan.computes.name))
        if options.scales == "tensor":
            total = total * (self.more["scale_a"] * self.more["scale_b"])
        if options.scales == "row":
            total = total * self.more["scale_b"][..., None, :] * self.more["scale_a"][..., :, None]
        if options.alpha != 1:
            total = total * options.alpha
        if self.c is not None and options.c == "after" and options.beta != 0:
            c = numbers(self.c, plan.formats["c"], plan.computes)
            total = total + (c if options.beta == 1 else c * options.beta)
        if options.bias != "none":
            bias = numbers(raw(self.more["bias"]), plan.formats["d"], plan.computes)
            total = total + (bias[..., :, None] if options.bias == "rows" else bias[..., None, :])
        return total
