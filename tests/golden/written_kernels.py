"""Kernels written out one element at a time, for what golden.gemm computes in blocks.

Nothing of golden.gemm is used: the instruction is asked one step after the other, f32 sums, products and
roundings are exact rationals rounded here, and which k belongs to which sum is a list made as the text of a
kernel would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[Any]
WIDTHS = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 10), "f32": (8, 23), "f64": (11, 52)}


def value(code: int, fmt: str) -> Fraction:
    """The number of a finite code."""
    exponent_bits, fraction_bits = WIDTHS[fmt]
    low = 13 if fmt == "tf32" else 0
    code >>= low
    sign, rest = code >> (exponent_bits + fraction_bits), code & ((1 << (exponent_bits + fraction_bits)) - 1)
    exponent, fraction = rest >> fraction_bits, rest & ((1 << fraction_bits) - 1)
    assert exponent != (1 << exponent_bits) - 1
    bias = (1 << (exponent_bits - 1)) - 1
    significand = fraction | (exponent > 0) << fraction_bits
    return (-1) ** sign * significand * Fraction(2) ** (max(exponent, 1) - bias - fraction_bits)


def code(x: Fraction, fmt: str, mode: str = "nearest_even") -> int:
    """The code of a number, rounded; zero is +0. Overflow is infinity."""
    exponent_bits, fraction_bits = WIDTHS[fmt]
    bias = (1 << (exponent_bits - 1)) - 1
    sign, magnitude = int(x < 0), abs(x)
    leading = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    leading -= magnitude < Fraction(2) ** leading
    exponent = max(leading, 1 - bias)
    units = magnitude / Fraction(2) ** (exponent - fraction_bits)
    whole, rest = units.numerator // units.denominator, units - units.numerator // units.denominator
    up = {
        "nearest_even": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
        "nearest_away": rest >= Fraction(1, 2),
        "toward_zero": False,
    }[mode]
    whole += up
    fields = whole + ((exponent + bias - 1) << fraction_bits)
    fields = min(fields, ((1 << exponent_bits) - 1) << fraction_bits)
    return (sign << (exponent_bits + fraction_bits) | fields) << (13 if fmt == "tf32" else 0)


def rounded(x: Fraction, fmt: str) -> Fraction:
    return value(code(x, fmt), fmt)


def chain(ins: Any, a: Sequence[int], b: Sequence[int], c: int = 0) -> int:
    """The code after one step after the other over rows of codes; zeros follow the last element."""
    k = ins.k
    for start in range(0, len(a), k):
        row = [*a[start : start + k], *[0] * (k - len(a[start : start + k]))]
        column = [*b[start : start + k], *[0] * (k - len(b[start : start + k]))]
        dtypes = [ins.formats[name].dtype for name in "abc"]
        c = int(ins.dot(np.array(row, dtypes[0]), np.array(column, dtypes[1]), np.array(c, dtypes[2])))
    return c


def each_element(
    a: Bits, b: Bits, element: Callable[[list[int], list[int], int, int], int], dtype: Any
) -> Bits:
    """D of a function of (row of A, column of B, i, j)."""
    return np.array(
        [
            [element(row.tolist(), b[:, j].tolist(), i, j) for j in range(b.shape[1])]
            for i, row in enumerate(a)
        ],
        dtype,
    ).reshape(len(a), b.shape[1])


def added(terms: Sequence[Fraction], order: str | list[Any], fmt: str) -> Fraction:
    """The sum of terms that are rounded first, each sum rounded."""
    terms = [rounded(term, fmt) for term in terms]
    if not isinstance(order, str):  # lists of places, and of such
        terms = [terms[one] if isinstance(one, int) else added(terms, one, fmt) for one in order]
    if order == "descending":
        terms = terms[::-1]
    if order == "tree":
        while len(terms) > 1:
            pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
            terms = [rounded(sum(pair, Fraction(0)), fmt) for pair in pairs]
        return terms[0]
    total = terms[0]
    for term in terms[1:]:
        total = rounded(total + term, fmt)
    return total


def promoted(ins: Any, a: Sequence[int], b: Sequence[int], every: int, fmt: str = "f32") -> Fraction:
    """Chains over `every` elements from zero, each added to an accumulator."""
    total = Fraction(0)
    for start in range(0, len(a), every):
        part = chain(ins, a[start : start + every], b[start : start + every])
        total = rounded(total + value(part, ins.formats["d"].name), fmt)
    return total
