"""Whole matrix products on a device: chains by whatever computes them there, all other sums by PyTorch.

PyTorch's sums, products and conversions of f32 and f64 are those of IEEE 754, rounded to nearest even, with
subnormal numbers, on CPUs and GPUs alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from golden.errors import OperandError
from golden.kernels import sums
from golden.kernels.assembly import Assembly
from golden.kernels.conversion import count_of, cut, table
from golden.kernels.operands import check_operands
from golden.kernels.options import Options
from golden.kernels.order import Runs, parts, places, which_part
from golden.kernels.plan import Plan
from golden.number.formats import Format, get_format
from golden.tensors.dtypes import check_dtype, dtype_of, integer_dtype


def raw(tensor: Tensor) -> Tensor:
    """The codes of a tensor, as integers of their width (sign is of no meaning)."""
    return tensor.detach().resolve_neg().view(integer_dtype(tensor.element_size()))


def convert_codes(codes: Tensor, source: Format, target: Format, rounding: str) -> Tensor:
    """Codes of `target` for codes of `source`, as golden.kernels.conversion.convert_codes."""
    if source == target or rounding == "none":
        return codes
    if source.name == "f32" and target.storage < 16:  # rounded to odd first: all that the table asks for
        odd = (codes >> 16) | ((codes & 0xFFFF) != 0).to(codes.dtype)
        return convert_codes(odd, get_format("bf16"), target, rounding)
    if source.storage <= 16:
        words = table(source, target, rounding)
        size = words.dtype.itemsize
        known = torch.from_numpy(words.view(f"i{size}" if size > 1 else "u1")).to(codes.device)
        return known[codes.to(torch.int32) & ((1 << source.storage) - 1)]
    if target.name in ("tf32", "bf16"):
        return _cut_f32(codes, target, rounding)
    return raw(codes.view(dtype_of(source.name)).to(dtype_of(target.name)))


def _cut_f32(codes: Tensor, target: Format, rounding: str) -> Tensor:
    """f32 without its last fraction bits, to nearest even, to nearest with ties away from zero, or toward
    zero."""
    dropped = 23 - target.fraction_bits
    magnitude = codes & 0x7FFFFFFF
    half = 1 << (dropped - 1)
    if rounding == "nearest_even":
        more = half - 1 + ((magnitude >> dropped) & 1)
    else:
        more = torch.full_like(magnitude, half if rounding == "nearest_away" else 0)
    finite = magnitude < 0x7F800000
    kept = (torch.where(finite, magnitude + torch.where(finite, more, 0), magnitude) >> dropped) << dropped
    nan = (magnitude >> dropped) << dropped if rounding == "nearest_away" else 0x7FC00000
    kept = torch.where(magnitude > 0x7F800000, nan, kept) | (codes & -(1 << 31))
    return kept if target.storage == 32 else (kept >> (32 - target.storage)).to(integer_dtype(2))


def parts_of(codes: Tensor, target: Format, options: Options) -> list[Tensor]:
    """Codes of `target` for each part of f32 codes, as golden.kernels.conversion.parts_of."""
    f32 = get_format("f32")

    def convert(number: Tensor) -> Tensor:
        return convert_codes(raw(number), f32, target, options.convert)

    def rounded(number: Tensor) -> Tensor:
        code = convert(number)
        return code.view(torch.float32) if target.name == "tf32" else numbers(code, target, f32)

    *found, last = cut(codes.view(torch.float32), count_of(options), rounded)
    return [*map(convert, found), raw(last) if target.name == "tf32" else convert(last)]


def numbers(codes: Tensor, fmt: Format, into: Format) -> Tensor:
    """The numbers of raw codes in the dtype of `into` (f32, f64 or s32), which holds each of them exactly."""
    return codes.view(dtype_of(fmt.name)).to(dtype_of(into.name))


def fused(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """x * y + z of f32, rounded once: the product is exact in f64, and the sum is rounded to odd there before
    it is rounded to f32."""
    product, addend = x.double() * y.double(), z.double()
    total = product + addend
    back = total - product
    lost = (product - (total - back)) + (addend - back)  # Knuth's TwoSum: what total lacks
    code = total.view(torch.int64)
    inexact = torch.isfinite(total) & (lost != 0) & ((code & 1) == 0)
    outward = (lost > 0) == (total > 0)
    odd = torch.where(inexact, torch.where(outward, code + 1, code - 1), code)
    return odd.view(torch.float64).to(torch.float32)


def encode(values: Tensor, fmt: Format, nan: int | None) -> Tensor:
    """Codes of numbers, rounded to nearest even; every NaN becomes the word `nan`, or the format's own."""
    found = raw(values.to(dtype_of(fmt.name)))
    if not values.is_floating_point():
        return found
    word = int(fmt.nan or 0) if nan is None else nan
    word -= (word >> (fmt.storage - 1)) << fmt.storage  # as PyTorch's signed integers have it
    return torch.where(torch.isnan(values), torch.full_like(found, word), found)


Tensor = Any
SCALES = ("scale_a", "scale_b")


class Chain(Protocol):
    """What runs an instruction over K."""

    def __call__(
        self, a: Tensor, b: Tensor, seed: Tensor | None, steps: int, extra: Mapping[str, Tensor]
    ) -> Tensor:
        """Codes (batch, M, N) of d after `steps` steps over codes a (batch, M, K; K/2 of a sparse unit) and b
        (batch, K, N), from seed or zero; what is at rest follows where K ends early. `extra` has what the
        unit takes: metadata (batch, M, chunks), scale_a (batch, M, blocks), scale_b (batch, blocks, N)."""


def product(
    a: Tensor, b: Tensor, plan: Plan, chain: Chain, C: Tensor | None, more: Mapping[str, Tensor]
) -> Tensor:
    """D of checked operands (golden.tensors.matmul.product).

    Raises:
        OperandError: the plan has something that this does not compute.
    """
    _check(plan, more)
    _check_shapes(plan, {"A": a, "B": b, "C": C, **more})
    given = {"a": raw(a), "b": raw(b), **({} if C is None else {"c": raw(C)}), **more}
    own = {name: _matrix_axes(plan, name) for name in given}  # what lies before these is the batch
    batch = torch.broadcast_shapes(*(x.shape[: x.ndim - own[name]] for name, x in given.items()))
    flat = {
        name: x.expand(*batch, *x.shape[x.ndim - own[name] :]).reshape(-1, *x.shape[x.ndim - own[name] :])
        for name, x in given.items()
    }
    codes = _Product(plan, chain, flat).codes()
    return codes.view(dtype_of(plan.formats["d"].name)).reshape(*batch, a.shape[-2], b.shape[-1])


def _matrix_axes(plan: Plan, name: str) -> int:
    """Dimensions of an operand that are not the batch's."""
    if name == "bias":
        return 1
    return {"tensor": 0, "row": 1}.get(plan.options.scales, 2) if name in SCALES else 2


def _check(plan: Plan, more: Mapping[str, Tensor]) -> None:
    """Raises OperandError where a plan is for the CPU alone."""
    options = plan.options
    wide = plan.computes.name == "f64"
    narrow = [options.out or "f64", options.reduce_format or "f64"]
    why = [
        ("fused multiply-adds of f64 after the instruction", wide and bool(options.fma)),
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
            fmt = formats.get(name) or _format_of_extra(plan, name)
            check_dtype(tensor, fmt, name)
            _check_codes(plan, fmt, tensor, name)
            least = plan.instruction.at_rest(name) if name == "metadata" else 0
            shadows[name] = np.broadcast_to(np.asarray(least, fmt.dtype), tuple(tensor.shape))
    check_operands(plan, shadows.pop("A"), shadows.pop("B"), shadows)


def _format_of_extra(plan: Plan, name: str) -> Format:
    """Of metadata and scales."""
    if name == "metadata" or plan.instruction.scale_block is not None:
        return plan.instruction.code_format(name)
    return plan.computes


def _check_codes(plan: Plan, fmt: Format, tensor: Tensor, name: str) -> None:
    """Raises OperandError for a code beyond a format of less than 8 bits, MetadataError for a nibble that the
    instruction does not take. Only a tensor that has one comes to the CPU."""
    pattern, ordered = plan.instruction.pattern, plan.instruction.ordered_metadata
    if name == "metadata" and pattern is not None:
        legal = torch.tensor(pattern.legal(ordered), dtype=tensor.dtype, device=tensor.device)
        if not bool(torch.isin(tensor, legal).all()):
            pattern.check(tensor.cpu().numpy(), ordered)
    elif fmt.bits < 8 and bool((tensor >> fmt.bits).any()):
        fmt.check(tensor.cpu().numpy(), name)


class _Product(Assembly):
    """One product of batches (batch, rows, columns)."""

    def __init__(self, plan: Plan, chain: Chain, given: Mapping[str, Tensor]) -> None:
        self.plan, self.chain, self.c, self.more = plan, chain, given.get("c"), given
        self.k, formats, own = given["b"].shape[1], plan.formats, plan.instruction.formats
        self.a, self.b = (
            self._entering(given[name], formats[name], own[name], axis) for name, axis in (("a", 2), ("b", 1))
        )

    def _entering(self, codes: Tensor, source: Format, target: Format, axis: int) -> Tensor:
        """Codes as the instruction takes them; of operands in parts, all first parts along K, then all second
        ones."""
        options = self.plan.options
        return (
            torch.cat(parts_of(codes, target, options), axis)
            if options.products
            else convert_codes(codes, source, target, options.convert)
        )

    def codes(self) -> Tensor:
        """Codes of D."""
        plan, options = self.plan, self.plan.options
        found = parts(plan, self.k)
        seed = self.c if options.c == "seed" else None
        if (len(found) == 1 and len(found[0]) == 1 and options.promote is None) or not found:
            codes = self.chained(found[0][0] if found else [], seed)
            if plan.is_plain(self.c is not None):
                return codes
            total = self.of_one_chain(codes)
        else:
            total = self.total(found)
        return encode(self._finished(total), plan.formats["d"], sums.nan_word(plan))

    def chained(self, runs: Runs, seed: Tensor | None) -> Tensor:
        """Codes of d after these steps, from a seed or from zero."""
        d = seed
        for run in runs:
            a, b = self._stretch(run)
            d = self.chain(a, b, d, len(run), self._metadata_and_scales(run))
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
            stored = unit.stored_k
            return self.a[:, :, run.start * stored : run.stop * stored], self.b[
                :, run.start * k : run.stop * k
            ]
        beyond = torch.from_numpy(found >= self.k).to(self.a.device)
        a, b = self._at("a", found, run), self._at("b", found, run)
        a.masked_fill_(beyond, unit.at_rest("a"))
        b.masked_fill_(beyond[:, None], unit.at_rest("b"))
        return a, b

    def _at(self, name: str, found: NDArray[np.int64], run: range) -> Tensor:
        """The elements of a or b at these places of K, of these steps; any beyond K."""
        part = which_part(self.plan, name, run.start, len(run))
        index = found.clip(max=max(self.k - 1, 0)) + (0 if part is None else part * self.k)
        codes, axis = (self.a, 2) if name == "a" else (self.b, 1)
        return codes.index_select(axis, torch.from_numpy(index).to(codes.device))

    def _metadata_and_scales(self, run: range) -> dict[str, Tensor]:
        """Metadata and block scales of these steps."""
        unit, found = self.plan.instruction, {}
        if unit.pattern is not None:
            step = unit.k // unit.pattern.chunk
            found["metadata"] = self.more["metadata"][:, :, run.start * step : run.stop * step]
        if unit.scale_block is not None:
            step = unit.k // unit.scale_block
            found["scale_a"] = self.more["scale_a"][:, :, run.start * step : run.stop * step]
            found["scale_b"] = self.more["scale_b"][:, run.start * step : run.stop * step]
        return found

    def rounded(self, values: Tensor, fmt: str) -> Tensor:
        """As Assembly."""
        if not values.is_floating_point() or get_format(fmt).storage >= 8 * values.element_size():
            return values
        return values.to(dtype_of(fmt)).to(values.dtype)

    def promoted(self, total: Tensor | None, part: Tensor, step: int) -> Tensor:
        """As Assembly."""
        options = self.plan.options
        total = torch.zeros_like(part) if total is None else total
        if options.scales != "block":
            return total + part
        part, factor = self._scaled(part, step)
        return fused(part, factor, total) if "promotion" in options.fma else total + part * factor

    def _scaled(self, part: Tensor, step: int) -> tuple[Tensor, Tensor]:
        """The sum and its factor, from the scales of the blocks that a step lies in, for each element."""
        k = step * self.plan.instruction.k
        (rows, k_a), (k_b, columns) = self.plan.options.scale_a_block, self.plan.options.scale_b_block
        a = self.more["scale_a"][:, :, k // k_a].repeat_interleave(rows, 1)[:, : self.a.shape[1]]
        b = self.more["scale_b"][:, k // k_b].repeat_interleave(columns, 1)[:, : self.b.shape[2]]
        of_a, of_b = a[:, :, None], b[:, None]
        return (part * of_a, of_b) if self.plan.options.scale_order == "a_first" else (part, of_a * of_b)

    def without_nans(self, codes: Tensor) -> Tensor:
        """As Assembly."""
        return codes.masked_fill(torch.isnan(self.numbers(codes)), 0)

    def numbers(self, codes: Tensor) -> Tensor:
        """As Assembly."""
        return numbers(codes, self.plan.instruction.formats["d"], self.plan.accumulates)

    def _finished(self, total: Tensor) -> Tensor:
        """Scales, alpha, C, bias and activation, as golden.kernels.block has them."""
        plan, options = self.plan, self.plan.options
        total = total.to(dtype_of(plan.computes.name))
        if options.scales == "tensor":
            total = total * (self.more["scale_a"] * self.more["scale_b"])[:, None, None]
        if options.scales == "row":
            total = total * self.more["scale_b"][..., None, :] * self.more["scale_a"][..., :, None]
        c = None
        if self.c is not None and options.c == "after" and options.beta != 0:
            c = numbers(self.c, plan.formats["c"], plan.computes)
            c = c if options.beta == 1 else c * options.beta
        if c is not None and "c" in options.fma:
            total = fused(total, torch.full_like(total, options.alpha), c)
        else:
            total = total if options.alpha == 1 else total * options.alpha
            total = total if c is None else total + c
        if options.bias != "none":
            bias = numbers(raw(self.more["bias"]), plan.formats["d"], plan.computes)
            total = total + (bias[..., :, None] if options.bias == "rows" else bias[..., None, :])
        if options.activation == "masked":
            return total.masked_fill(total == -torch.inf, torch.nan)
        return total.masked_fill(total <= 0, 0) if options.activation == "relu" else total
