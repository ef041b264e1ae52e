"""The matrix products that are recorded: calls of PyTorch and Triton x types x shapes, with operands that
anybody can draw again.

Operands are raw codes: every sign and significand alike likely, exponents spread evenly over ±`spread` about
that of 1.0 (all codes for integers). So sums cancel, and partial sums differ with every order of addition.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.number.formats import Format, get_format

Bits = npt.NDArray[Any]
SHAPES = (
    (128, 128, 256),
    (128, 64, 1024),
    (64, 128, 4096),
    (64, 48, 208),
    (64, 64, 8192),
    (48, 32, 16384),
    (1, 64, 2048),
    (64, 1, 1024),
)
"""M, N, K: whole tiles, long K (where libraries split it), K that no tile divides, vectors."""
FLOATS = ("f16", "bf16")
FP8 = (("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3"))


@dataclass(frozen=True)
class Case:
    """One call.

    Attributes:
        call: a function of hw_capture/products/calls.py.
        a, b, d: formats of the operands and of the result.
        m, n, k: D is m x n, the sums have k products.
        b_rows: whether B lies in memory as (k, n) row by row; else as (n, k), as a weight does.
        options: what else the call is given.
        seed, spread: of the operands.
    """

    call: str
    a: str
    b: str
    d: str
    m: int
    n: int
    k: int
    b_rows: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 1
    spread: int = 6

    @property
    def name(self) -> str:
        """Unique, and a file name."""
        words = [self.call, f"{self.a}.{self.b}.{self.d}", f"{self.m}x{self.n}x{self.k}"]
        words += ["nn" if self.b_rows else "tn", *(f"{key}={self.options[key]}" for key in self.options)]
        return "_".join([*words, f"spread{self.spread}", f"seed{self.seed}"])

    @property
    def formats(self) -> dict[str, str]:
        """Formats of the operands."""
        return {"a": self.a, "b": self.b, "scale_a": "f32", "scale_b": "f32"}

    def operands(self) -> dict[str, Bits]:
        """Raw codes: a (m, k), b (k, n), and scale_a (m), scale_b (n) in f32 where the call takes scales of
        rows and columns. Of a sparse A, two of each four neighbours along k are zero."""
        drawn = {
            "a": self._draw("a", get_format(self.a), (self.m, self.k)),
            "b": self._draw("b", get_format(self.b), (self.k, self.n)),
        }
        if self.options.get("rows"):
            drawn["scale_a"] = self._draw("x", get_format("f32"), (self.m,))
            drawn["scale_b"] = self._draw("y", get_format("f32"), (self.n,))
        if self.call == "sparse_mm":
            order = self._rng("z").random((self.m, self.k // 4, 4)).argsort(axis=-1)
            drawn["a"] = np.where(order.reshape(self.m, self.k) < 2, drawn["a"], drawn["a"].dtype.type(0))
        return drawn

    def _rng(self, operand: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(self.name.encode()), ord(operand)])

    def _draw(self, operand: str, fmt: Format, shape: tuple[int, ...]) -> Bits:
        rng = self._rng(operand)
        if not fmt.is_float:
            return rng.integers(0, 1 << fmt.bits, shape, np.uint64).astype(fmt.dtype)
        low, high = max(1, fmt.bias - self.spread), min(2 * fmt.bias, fmt.bias + self.spread)
        exponent = rng.integers(low, high, shape, np.uint64, endpoint=True)
        sign = rng.integers(0, 2, shape, np.uint64)
        significand = rng.integers(0, 1 << fmt.fraction_bits, shape, np.uint64)
        codes = (sign << np.uint64(fmt.bits - 1)) | (exponent << np.uint64(fmt.fraction_bits)) | significand
        drawn: Bits = codes.astype(fmt.dtype)
        return drawn


def cases(seed: int = 1) -> Iterator[Case]:
    """All cases, in a stable order."""
    for m, n, k in SHAPES:
        size: dict[str, Any] = {"m": m, "n": n, "k": k, "seed": seed}
        for name in FLOATS:
            for b_rows in (False, True):
                yield Case("mm", name, name, name, b_rows=b_rows, **size)
            yield Case("mm", name, name, "f32", **size)
        yield Case("mm", "f16", "f16", "f16", options={"reduced": True}, **size)
        yield Case("mm", "f64", "f64", "f64", **size)
        yield Case("mm", "f32", "f32", "f32", options={"tf32": True}, **size)
        yield Case("mm", "f32", "f32", "f32", options={"tf32": False}, **size)
        yield Case("bmm", "f16", "f16", "f16", **size)
        if min(m, n) > 1:
            yield Case("int_mm", "s8", "s8", "s32", **size)
            for a, b in FP8:
                for fast in (True, False):
                    yield Case("scaled_mm", a, b, "bf16", options={"fast": fast}, **size)
            yield Case("scaled_mm", "e4m3", "e4m3", "f32", options={"fast": False}, **size)
            yield Case("scaled_mm", "e4m3", "e4m3", "bf16", options={"fast": True, "rows": True}, **size)
            yield Case("sparse_mm", "f16", "f16", "f16", **size)
        if min(m, n) >= 16 and k % 64 == 0:
            for name in ("f16", "bf16", "f32"):
                yield Case("triton_dot", name, name, "f32", **size)
            yield Case("triton_dot", "f16", "f16", "f32", options={"warps": 1}, **size)
            for most in (0, 32, 128):
                yield Case("triton_dot", "e4m3", "e4m3", "f32", options={"imprecise": most}, **size)
            yield Case("triton_dot", "e4m3", "e4m3", "f32", options={"warps": 1}, **size)
