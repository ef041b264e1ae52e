"""Codes of one format as codes of another: what kernels do with operands before, and with sums after, the
instruction. `parts_of` cuts f32 operands into parts of fewer bits, for kernels that need more bits than the
instruction's formats have (the plan's `products`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from golden.kernels.options import Options
from golden.number.formats import Format, Kind, from_float, get_format, to_float
from golden.number.rounding import round_to_code

Bits = npt.NDArray[Any]
_WIDE = ("tf32", "bf16")
"""Formats that f32 is cut to: they have its exponents."""


def can_convert(source: Format, target: Format, rounding: str) -> bool:
    """Whether `convert_codes` knows the way."""
    if source == target:
        return True
    if rounding == "none":
        return (source.name, target.name) == ("f32", "tf32")
    if not source.is_float or not target.is_float or not target.signed or not source.signed:
        return False
    return source.storage <= 16 or (
        source.name == "f32" and (target.name in _WIDE or rounding == "nearest_even")
    )


def convert_codes(codes: Bits, source: Format, target: Format, rounding: str) -> Bits:
    """Codes of `target` for codes of `source`; `rounding` is a mode of golden.number.rounding or "none". What
    overflows becomes infinity, or the largest number where there is none, as in PTX's cvt.rn.satfinite, the
    only conversion to e4m3. A NaN stays one, but for `nearest_away`: PTX's cvt.rna.tf32.f32 cuts its low
    bits, so that some become infinities (an H100, all 2^24 words)."""
    if source == target or rounding == "none":
        return codes
    if source.name == "f32" and target.storage < 16:  # rounded to odd first: all that the table asks for
        odd = (codes >> np.uint32(16)) | ((codes & np.uint32(0xFFFF)) != 0)
        return np.asarray(table(get_format("bf16"), target, rounding)[odd])
    if source.storage <= 16:
        return table(source, target, rounding)[codes]
    if rounding == "nearest_even":
        return from_float(target, to_float(source, codes))
    return _cut_f32(codes, target, rounding)


def _cut_f32(codes: Bits, target: Format, rounding: str) -> Bits:
    """f32 without its last fraction bits: toward zero, or to the nearest with ties away from zero."""
    dropped = 23 - target.fraction_bits
    magnitude = codes & np.uint32(0x7FFFFFFF)
    half = np.uint32(1 << (dropped - 1) if rounding == "nearest_away" else 0)
    kept = (np.where(magnitude < 0x7F800000, magnitude + half, magnitude) >> np.uint32(dropped)) << np.uint32(
        dropped
    )
    nan = (
        (magnitude >> np.uint32(dropped)) << np.uint32(dropped)
        if rounding == "nearest_away"
        else np.uint32(0x7FC00000)
    )
    kept = np.where(magnitude > 0x7F800000, nan, kept) | (codes & np.uint32(0x80000000))
    return np.asarray((kept >> np.uint32(32 - target.storage)).astype(target.dtype))


@lru_cache(maxsize=64)
def table(source: Format, target: Format, rounding: str) -> Bits:
    """The code of `target` for each code of a format of at most 16 bits."""
    return np.array(
        [_one(source, target, rounding, code) for code in range(1 << source.storage)], target.dtype
    )


def _one(source: Format, target: Format, rounding: str, code: int) -> int:
    number = source.decode(code)
    if number.kind == Kind.NAN:
        return target.nan if target.nan is not None else target.largest
    if number.kind == Kind.INFINITY:
        top = target.infinity if target.infinity is not None else target.largest
        return top | number.sign << target.sign_shift
    return round_to_code(target, number.sign, number.significand, number.lsb_exponent, rounding)


_NATIVE = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "s32": np.int32}


def numbers(codes: Bits, fmt: Format, into: Format) -> Bits:
    """The numbers of raw codes as NumPy has `into` (f32, f64 or s32), which holds each of them exactly."""
    native = _NATIVE[into.name]
    if fmt == into:
        return codes.view(native)
    if fmt.name in ("f16", "f32", "s32"):
        return np.asarray(codes.view(_NATIVE[fmt.name]).astype(native))
    if fmt.name == "bf16" and into.name == "f32":
        return (codes.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return np.asarray(to_float(fmt, codes).astype(native))


def rounded(values: Bits, fmt: Format) -> Bits:
    """Numbers rounded to the nearest of a format, ties to even, in their own NumPy type."""
    if fmt.dtype.itemsize >= values.dtype.itemsize:
        return values
    if fmt.name in _NATIVE:
        with np.errstate(all="ignore"):
            return np.asarray(values.astype(_NATIVE[fmt.name]).astype(values.dtype))
    return numbers(encode(values, fmt), fmt, get_format("f64" if values.dtype == np.float64 else "f32"))


def encode(values: Bits, fmt: Format, nan: int | None = None) -> Bits:
    """Codes of numbers, rounded to nearest even; every NaN becomes the word `nan`, or the format's own."""
    if not fmt.is_float:
        return values.astype(np.int32).view(np.uint32)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if fmt.name in _NATIVE:
            codes = np.asarray(values.astype(_NATIVE[fmt.name])).view(fmt.dtype)
        elif values.dtype == np.float64:
            codes = from_float(fmt, values)
        else:
            codes = _nearest_bf16(values.astype(np.float32))
    missing = np.isnan(values)
    if missing.any():
        codes = np.where(missing, fmt.dtype.type(fmt.nan if nan is None else nan), codes)
    return codes


def _nearest_bf16(values: npt.NDArray[np.float32]) -> Bits:
    bits = values.view(np.uint32)
    return ((bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))) >> np.uint32(16)).astype(
        np.uint16
    )


T = TypeVar("T")


def cut(number: T, count: int, rounded: Callable[[T], T]) -> list[T]:
    """The number rounded, then what it lacks, rounded in its turn, and what is left, not rounded: f32 arrays
    of any library. An infinity lacks a NaN."""
    found: list[Any] = []
    rest: Any = number
    for _ in range(count - 1):
        found.append(rounded(rest))
        rest = rest - found[-1]
    return [*found, rest]


def count_of(options: Options) -> int:
    """Into how many parts `products` cuts an operand."""
    return 1 + max(max(pair) for pair in options.products or ((0, 0),))


def parts_of(codes: Bits, target: Format, options: Options) -> list[Bits]:
    """Codes of `target` for each part of f32 codes, the largest part first. The last of tf32 is as it is:
    the unit drops its low bits."""
    f32 = get_format("f32")

    def convert(number: Bits) -> Bits:
        return convert_codes(number.view(np.uint32), f32, target, options.convert)

    def rounded(number: Bits) -> Bits:
        return numbers(convert(number), target, f32)

    with np.errstate(all="ignore"):
        *found, last = cut(codes.view(np.float32), count_of(options), rounded)
    return [*map(convert, found), last.view(np.uint32) if target.name == "tf32" else convert(last)]
