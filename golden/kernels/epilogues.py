"""What a kernel adds to the sum: C and a bias as a search is given them, and the plans that take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from golden.errors import OperandError, ShapeError
from golden.kernels.plan import Plan
from golden.number.arrays import plain
from golden.number.formats import Format, native_dtype

Bits = npt.NDArray[Any]
KEYS = ("alpha", "beta", "c", "c_format", "bias", "activation", "fma")
"""The options of plans that say what becomes of a sum."""


@dataclass(frozen=True)
class Addends:
    """Raw codes of C (m, n) and of the bias (m,) or (n,), None where there is none; alpha and beta.
    `c_format`: that of C, None if it is that of D."""

    c: Bits | None = None
    bias: Bits | None = None
    alpha: float = 1.0
    beta: float = 1.0
    c_format: str | None = None

    def of_product(self, at: tuple[int, ...]) -> Addends:
        """The addends of one product of a batch."""
        return self if self.c is None else replace(self, c=self.c[at])

    def operands(self) -> dict[str, Bits]:
        """As golden.gemm takes them."""
        return {name: value for name, value in (("C", self.c), ("bias", self.bias)) if value is not None}

    def of_elements(self, plan: Plan, rows: Bits, columns: Bits) -> dict[str, Bits]:
        """C and bias of single elements (elements, 1, 1), as a block takes them."""
        found = {}
        if self.c is not None:
            found["c"] = self.c[rows, columns][:, None, None]
        if self.bias is not None and plan.options.bias != "none":
            places = rows if plan.options.bias == "rows" else columns
            found["bias"] = self.bias[places][:, None, None]
        return found

    def epilogues(self, d: Bits, fmt: Format) -> tuple[dict[str, Any], ...]:
        """The options of all plans that take just these: a bias of rows or of columns, C after the sum or
        before it, alpha and C in one rounding or in two; relu where D has no negative number but zeros."""
        factors = {"alpha": self.alpha} if self.alpha != 1 else {}
        found: list[dict[str, Any]] = [factors]
        if self.c is not None:
            after = factors | {"beta": self.beta, "c_format": self.c_format}
            found = [after] if self.alpha == 1 else [after, after | {"fma": ("c",)}]
            found += [factors | {"c": "seed", "c_format": self.c_format}] if self.beta == 1 else []
        if self.bias is not None:
            sizes = {"columns": d.shape[-1], "rows": d.shape[-2]}
            found = [
                one | {"bias": which}
                for one in found
                for which, size in sizes.items()
                if size == len(self.bias)
            ]
        if _is_clipped(d, fmt):
            found = [one | more for more in ({}, {"activation": "relu"}) for one in found]
        return tuple(found)


def _is_clipped(d: Bits, fmt: Format) -> bool:
    negative = (d >> fmt.dtype.type(fmt.storage - 1)).any()
    return bool(fmt.is_float and not negative and (d == 0).any())


def checked(
    c: npt.ArrayLike | None,
    bias: npt.ArrayLike | None,
    d: Bits,
    formats: Mapping[str, Format],
    alpha: float,
    beta: float,
) -> Addends:
    """C and bias of products D (..., m, n); `formats`: of d, and of c if it is another one.

    Raises:
        ShapeError, DTypeError, OperandError: they do not go with D.
    """
    out = formats["d"]
    own = formats.get("c", out)
    codes_c = None if c is None else codes_of(c, own, "C")
    codes_bias = None if bias is None else codes_of(bias, out, "bias")
    if codes_c is not None and codes_c.shape != d.shape:
        raise ShapeError(f"argument 'C' has shape {codes_c.shape}, expected {d.shape}, that of D")
    if codes_bias is not None and (codes_bias.ndim != 1 or len(codes_bias) not in d.shape[-2:]):
        raise ShapeError(
            f"argument 'bias' has shape {codes_bias.shape}, expected (M,) or (N,) of D {d.shape}"
        )
    if codes_c is None and beta != 1:
        raise OperandError(f"argument 'beta' is {beta}, but there is no C, expected C (--c) with its factor")
    return Addends(codes_c, codes_bias, float(alpha), float(beta), own.name if own != out else None)


def codes_of(value: npt.ArrayLike, fmt: Format, name: str) -> Bits:
    """Raw codes of an argument that holds them, or numbers of the format."""
    array: Bits = plain(value, name)
    if array.dtype == native_dtype(fmt):
        array = array.view(fmt.dtype)
    fmt.check(array, name)
    return array


NOTHING = Addends()
"""Of a product of A and B alone."""
