"""IEEE 754 addition, multiplication and fused multiply-add on codes, by exact rationals and a search among
all codes.

Nothing here uses golden's decoding or rounding: a code's value comes from NumPy, and a rational is rounded by
finding its two neighbours in the list of codes, which a binary format orders by magnitude.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

ROUNDINGS = ("nearest_even", "nearest_away", "toward_zero", "down", "up")


class Ieee:
    """A binary format: "f16" or "f32"."""

    def __init__(self, name: str) -> None:
        self.codes, self.floats = {"f16": (np.uint16, np.float16), "f32": (np.uint32, np.float32)}[name]
        self.bits = 8 * np.dtype(self.codes).itemsize
        self.infinity = int(self.floats(np.inf).view(self.codes))
        self.nan = self.infinity | 1 << (np.finfo(self.floats).nmant - 1)
        self.top = Fraction(2) ** (int(np.finfo(self.floats).maxexp))

    def sign(self, code: int) -> int:
        return int(code) >> (self.bits - 1)

    def magnitude(self, code: int) -> int:
        return int(code) & ((1 << (self.bits - 1)) - 1)

    def is_nan(self, code: int) -> bool:
        return self.magnitude(code) > self.infinity

    def is_infinite(self, code: int) -> bool:
        return self.magnitude(code) == self.infinity

    def value(self, code: int) -> Fraction:
        value = Fraction(float(np.array(self.magnitude(code), self.codes).view(self.floats)))
        return -value if self.sign(code) else value

    def signed(self, magnitude: int, sign: int) -> int:
        return magnitude | sign << (self.bits - 1)

    def rounded(self, exact: Fraction, mode: str) -> int:
        """The code of a rational that is not zero."""
        sign, size = int(exact < 0), abs(exact)
        low, high = 0, self.infinity - 1  # the largest code whose value is not above
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.value(middle) <= size else (low, middle - 1)
        below, above = self.value(low), self.top if low + 1 == self.infinity else self.value(low + 1)
        if size == below:
            return self.signed(low, sign)
        away = {"toward_zero": False, "up": not sign, "down": bool(sign)}.get(mode)
        if away is None:
            middle_value = (below + above) / 2
            tie = mode == "nearest_away" or low % 2 == 1
            away = size > middle_value or (size == middle_value and tie)
        return self.signed(low + int(away), sign)

    def sum(self, terms: list[tuple[Any, int]], mode: str) -> int:
        """A sum of two terms (value, sign): Fraction, "inf" or "nan"."""
        (x, sx), (y, sy) = terms
        if "nan" in (x, y) or (x == y == "inf" and sx != sy):
            return self.nan
        for value, sign in terms:
            if value == "inf":
                return self.signed(self.infinity, sign)
        total = x + y
        if total:
            return self.rounded(total, mode)
        if x == 0 and sx == sy:
            return self.signed(0, sx)
        return self.signed(0, int(mode == "down"))

    def term(self, code: int) -> tuple[Any, int]:
        kind = "nan" if self.is_nan(code) else "inf" if self.is_infinite(code) else self.value(code)
        return kind, self.sign(code)

    def product(self, x: int, y: int) -> tuple[Any, int]:
        """The exact product as a term."""
        (u, su), (v, sv) = self.term(x), self.term(y)
        sign = su ^ sv
        if "nan" in (u, v) or ("inf" in (u, v) and 0 in (u, v)):
            return "nan", sign
        return ("inf" if "inf" in (u, v) else u * v), sign

    def add(self, x: int, y: int, mode: str) -> int:
        return self.sum([self.term(x), self.term(y)], mode)

    def multiply(self, x: int, y: int, mode: str) -> int:
        value, sign = self.product(x, y)
        if value == "nan":
            return self.nan
        if value == "inf":
            return self.signed(self.infinity, sign)
        return self.rounded(value, mode) if value else self.signed(0, sign)

    def fma(self, x: int, y: int, z: int, mode: str, minus_product: bool, minus_z: bool) -> int:
        (p, sp), (c, sc) = self.product(x, y), self.term(z)
        if minus_product:
            p, sp = p if isinstance(p, str) else -p, 1 - sp
        if minus_z:
            c, sc = c if isinstance(c, str) else -c, 1 - sc
        return self.sum([(p, sp), (c, sc)], mode)
