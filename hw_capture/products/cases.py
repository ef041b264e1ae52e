"""The matrix products that are recorded: calls of PyTorch and Triton x types x shapes, with operands that
anybody can draw again.

Operands are raw codes: every sign and significand alike likely, exponents spread evenly over ±`spread` about
that of 1.0 (all codes for integers). So sums cancel, and partial sums differ with every order of addition.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.kernels.drawing import drawn
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
MORE = {
    ("mm", "f64"): ((256, 192, 1024), (192, 128, 4096)),
    ("conv", "f16"): ((64, 64, 576), (128, 256, 1152)),
    ("conv", "bf16"): ((64, 64, 576), (128, 256, 1152)),
    ("conv", "f32"): ((64, 64, 576), (128, 256, 1152)),
}
"""Shapes of further calls: f64 that is dealt out; filters x places x (channel, 3 x 3 of the filter)."""
HELD_OUT = {
    ("sparse_mm", "f16"): (
        *((160, 64, 6016), (448, 128, 3200), (64, 128, 5120), (128, 64, 7040), (96, 96, 9088)),
        *((48, 32, 16384), (64, 64, 16384), (256, 128, 16384)),
    ),
    ("mm", "f32"): (
        *((1, 64, 777), (1, 64, 1000), (1, 33, 2048), (1, 64, 3000), (1, 16, 20000), (1, 8, 65536)),
        *((33, 1, 1000), (64, 1, 2048), (64, 1, 5000), (8, 1, 20000)),
    ),
    ("mm", "f64"): ((448, 128, 3200), (192, 320, 1664)),
}
"""Shapes of products that check rules which calls showed: a sparse A whose K is cut into unlike parts, f32
with one row or one column, f64 that is dealt out to blocks. `bf16` has the shapes of `f16`."""
TRITON_SHAPES = ((128, 128, 256), (64, 64, 1024), (48, 32, 2048))
"""Shapes of Triton's products in the types that `cases` lacks: wgmma, and 48 rows, which mma.sync takes."""
IN_PARTS = ("tf32x3", "bf16x3", "bf16x6")
"""Values of `input_precision` with which Triton cuts f32 operands into parts."""
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
        """Raw codes: a (m, k), b (k, n), and in f32 scale_a (m), scale_b (n) where the call takes scales of
        rows and columns, scale_a (m, k / 128) and scale_b (k / 128, n or n / 128) where it takes those of
        blocks. Of a sparse A, two of each four neighbours along k are zero."""
        made = {
            "a": self._draw("a", get_format(self.a), (self.m, self.k)),
            "b": self._draw("b", get_format(self.b), (self.k, self.n)),
        }
        if self.options.get("rows"):
            made["scale_a"] = self._draw("x", get_format("f32"), (self.m,))
            made["scale_b"] = self._draw("y", get_format("f32"), (self.n,))
        if blocks := self.options.get("blocks"):
            deep, across = self.k // 128, self.n // int(blocks.partition("x")[0])
            made["scale_a"] = self._draw("x", get_format("f32"), (self.m, deep))
            made["scale_b"] = self._draw("y", get_format("f32"), (deep, across))
        if self.call == "sparse_mm":
            order = self._rng("z").random((self.m, self.k // 4, 4)).argsort(axis=-1)
            made["a"] = np.where(order.reshape(self.m, self.k) < 2, made["a"], made["a"].dtype.type(0))
        return made

    def _rng(self, operand: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(self.name.encode()), ord(operand)])

    def _draw(self, operand: str, fmt: Format, shape: tuple[int, ...]) -> Bits:
        return drawn(self._rng(operand), fmt, shape, self.spread)


def cases(seed: int = 1, shapes: Sequence[tuple[int, int, int]] = SHAPES, spread: int = 6) -> Iterator[Case]:
    """All cases of these shapes, in a stable order."""
    for m, n, k in shapes:
        size: dict[str, Any] = {"m": m, "n": n, "k": k, "seed": seed, "spread": spread}
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
            for out, fast in (("f32", True), ("f16", True), ("f16", False)):
                yield Case("scaled_mm", "e4m3", "e4m3", out, options={"fast": fast}, **size)
            if k % 512 == 0 and n % 128 == 0:
                for blocks in ("1x128", "128x128"):
                    options = {"fast": False, "blocks": blocks}
                    yield Case("scaled_mm", "e4m3", "e4m3", "bf16", options=options, **size)
            yield Case("scaled_mm", "e4m3", "e4m3", "bf16", options={"fast": True, "rows": True}, **size)
            for name in FLOATS:
                yield Case("sparse_mm", name, name, name, **size)
        if min(m, n) >= 16 and k % 64 == 0:
            for name in ("f16", "bf16", "f32"):
                yield Case("triton_dot", name, name, "f32", **size)
            yield Case("triton_dot", "f16", "f16", "f32", options={"warps": 1}, **size)
            for most in (0, 32, 128):
                yield Case("triton_dot", "e4m3", "e4m3", "f32", options={"imprecise": most}, **size)
            yield Case("triton_dot", "e4m3", "e4m3", "f32", options={"warps": 1}, **size)
        # K of a convolution by 3 x 3 filters: whole stretches of 64 channels. N is a square of places.
        filter_k = 9 * 64
        if k % filter_k == 0 and min(m, n) > 1 and math.isqrt(n) ** 2 == n:
            for name in (*FLOATS, "f32"):
                yield Case("conv", name, name, name, **size)
    for (call, fmt), found in MORE.items() if shapes is SHAPES else ():
        for m, n, k in found:
            yield Case(call, fmt, fmt, fmt, m, n, k, seed=seed, spread=spread)


def triton_types(
    seed: int = 1, shapes: Sequence[tuple[int, int, int]] = TRITON_SHAPES, spread: int = 6
) -> Iterator[Case]:
    """What `tl.dot` takes in addition to the types of `cases`, in a stable order; shapes that its tiles
    divide."""
    for m, n, k in shapes:
        if m % 16 or n % 16 or k % 128:
            continue
        size: dict[str, Any] = {"m": m, "n": n, "k": k, "seed": seed}
        alone: dict[str, Any] = {"warps": 1}
        promoted = (0, 32, 128) if m % 64 == 0 else (0,)
        for a, b in (("e5m2", "e5m2"), *FP8[1:]):
            for options in (*({"imprecise": most} for most in promoted), alone):
                yield Case("triton_dot", a, b, "f32", options=options, spread=spread, **size)
        for few in ({}, alone):
            yield Case("triton_dot", "s8", "s8", "s32", options=few, spread=spread, **size)
            narrow = min(spread, 3)  # the sums of f16 in f16 stay finite
            yield Case("triton_dot", "f16", "f16", "f16", options=few, spread=narrow, **size)
            yield Case("triton_dot", "f64", "f64", "f64", options=few, spread=spread, **size)
            for precision in ("ieee", *IN_PARTS):
                options = {"precision": precision} | few
                yield Case("triton_dot", "f32", "f32", "f32", options=options, spread=spread, **size)


def held_out(seed: int = 28, spread: int = 2) -> Iterator[Case]:
    """The products of HELD_OUT, in a stable order; a vector's B lies both ways."""
    for (call, fmt), shapes in HELD_OUT.items():
        for m, n, k in shapes:
            size: dict[str, Any] = {"m": m, "n": n, "k": k, "seed": seed, "spread": spread}
            if call == "sparse_mm":
                yield from (Case(call, name, name, name, **size) for name in FLOATS)
            elif fmt == "f64":
                yield Case(call, fmt, fmt, fmt, **size)
            else:
                for b_rows in (False, True) if m == 1 else (False,):
                    yield Case(call, fmt, fmt, fmt, b_rows=b_rows, options={"tf32": False}, **size)
