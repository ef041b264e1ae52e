"""The arithmetic after the instruction: f32 (f64) sums and products on the host, each rounded to nearest
even.

NumPy's f32 addition and multiplication follow IEEE 754, with subnormal numbers. A NaN stays a NaN
through all of it; which word it is in the end says `nan_word`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden.catalog.architectures import get_architecture
from golden.kernels.conversion import numbers, rounded
from golden.kernels.plan import Plan
from golden.kernels.plan_files import fma
from golden.number.formats import get_format

Numbers = npt.NDArray[Any]


def to_format(values: Numbers, fmt: str) -> Numbers:
    """Numbers rounded to the nearest of a format; integers as they are. The sum of two f16 or bf16 numbers in
    f32 loses nothing that this second rounding would need (2p + 2 bits suffice)."""
    return values if values.dtype.kind == "i" else rounded(values, get_format(fmt))


def promoted(total: Numbers, part: Numbers, factor: Numbers | None, fused_too: bool) -> Numbers:
    """The accumulator after one more sum, times its scale if it has one."""
    if factor is None:
        return np.asarray(total + part)
    if fused_too:
        return fused(part, factor, np.broadcast_to(total, part.shape))
    return np.asarray(total + part * factor)


def times(factor: float, values: Numbers) -> Numbers:
    """A number of the values' type times values; one of 1 changes nothing."""
    return values if factor == 1 else np.asarray(values.dtype.type(factor) * values)


def activated(total: Numbers, activation: str) -> Numbers:
    """What becomes of the sum before it is rounded."""
    if activation == "relu":
        return np.where(total <= 0, total.dtype.type(0), total)
    if activation == "masked":
        return np.where(total == -np.inf, total.dtype.type(np.nan), total)
    return total


def fused(x: Numbers, y: Numbers, z: Numbers) -> Numbers:
    """x * y + z, rounded once."""
    fmt = "f64" if z.dtype == np.float64 else "f32"
    unit = fma(fmt, fmt)
    code = unit.formats["d"].dtype
    a, b, c = (np.ascontiguousarray(np.broadcast_to(v, z.shape)).view(code) for v in (x, y, z))
    d = unit.dot(a[..., None], b[..., None], c)
    return numbers(d, unit.formats["d"], unit.formats["d"])


def nan_word(plan: Plan) -> int | None:
    """The word of a NaN that arithmetic after the instruction hands on, as spec/vendors says it; None: the
    format's quiet NaN."""
    unit = plan.instruction
    if unit.is_custom:
        return None
    return get_architecture(unit.architecture).maker.nan.get(plan.formats["d"].name)
