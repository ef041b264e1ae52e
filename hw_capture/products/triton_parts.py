"""f32 operands as Triton's precise `tl.dot` multiplies them: in parts of fewer bits, product after product.

Of each tile of K the products of parts are one chain, begun at zero, and its sum is added to the total.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden.gemm.conversion import convert_codes
from golden.number.formats import get_format, to_float

Bits = npt.NDArray[Any]
TILE_K = 64
"""Elements of K that hw_capture/products/triton_dot.py takes at once, of types of more than a byte."""
_HIGH_AND_LOW = ((1, 0), (0, 1), (0, 0))
PRODUCTS = {
    "tf32x3": _HIGH_AND_LOW,
    "bf16x3": _HIGH_AND_LOW,
    "bf16x6": ((1, 1), (2, 0), (0, 2), *_HIGH_AND_LOW),
}
"""By `input_precision`: which part of A times which of B, in their order; part 0 is the largest."""


def in_parts(a: Bits, b: Bits, precision: str) -> dict[str, Bits]:
    """A (m, k * products) and B (k * products, n) whose one chain in each tile is that of the products: f32
    codes for tf32, bf16 codes for bf16."""
    pairs = PRODUCTS[precision]
    count = 1 + max(max(pair) for pair in pairs)
    of_a, of_b = (_parts(codes, precision[:-2], count) for codes in (a, b))
    across = np.stack([of_a[i].reshape(len(a), -1, TILE_K) for i, _ in pairs], axis=2)
    down = np.stack([of_b[j].reshape(-1, TILE_K, b.shape[1]) for _, j in pairs], axis=1)
    return {"a": across.reshape(len(a), -1), "b": down.reshape(-1, b.shape[1])}


def _parts(codes: Bits, name: str, count: int) -> list[Bits]:
    """The rounded number, then what it lacks, rounded in its turn; of tf32 the last part as it is, in f32."""
    fmt, rest = get_format(name), codes.view(np.float32)
    found: list[Bits] = []
    rounding = "nearest_away" if name == "tf32" else "nearest_even"
    for _ in range(count):
        part = convert_codes(rest.view(np.uint32), get_format("f32"), fmt, rounding)
        number = to_float(fmt, part).astype(np.float32)
        as_it_is = rest if len(found) == count - 1 else number
        found.append(as_it_is.view(np.uint32) if name == "tf32" else part)
        rest = rest - number
    return found
