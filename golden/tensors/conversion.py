"""Codes of one format as codes of another, on tensors of any device: golden.kernels.conversion a second time,
in PyTorch's operations. A NaN stays one; no instruction with this kernel shows its word."""

from __future__ import annotations

from typing import Any

import torch

from golden.kernels.conversion import count_of, cut, table
from golden.kernels.options import Options
from golden.number.formats import Format, get_format
from golden.tensors.dtypes import dtype_of, integer_dtype

Tensor = Any


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
