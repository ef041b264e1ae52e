"""Functions of CUDA's library in f32 as nvcc compiles them without -use_fast_math: a few fused multiply-adds
around one instruction of the special-function unit, or a polynomial. The constants come from the PTX."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.functions.functions import mufu
from golden.kernels.sums import fused

Numbers = npt.NDArray[Any]
LOG2_E, LN_2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)
LEAST_NORMAL = np.float32(2.0**-126)


def _words(*codes: int) -> Numbers:
    return np.array(codes, np.uint32).view(np.float32)


@cache
def unit(name: str) -> Callable[[Numbers], Numbers]:
    """A function of Hopper's special-function unit on numbers of f32."""
    function = mufu("hopper", name)
    return lambda x: function(np.ascontiguousarray(x, np.float32).view(np.uint32)).view(np.float32)


_EXP_SCALE = _words(0x3BBB989D)[0]
"""log2(e) / 252: x times it, plus 1/2, lies in 0 ... 1 where exp(x) is a normal number."""
_EXP_STEPS = np.float32(252)
_EXP_SHIFT = np.float32(2**23 + 2**22 + 1)
"""Added to a number below 2^22, its last bits are the integer; 2^23 + 2^22 + 127 taken away gives it back
less 126, the bias that the scale's 1/2 stands for."""
_EXP_BACK = np.float32(2**23 + 2**22 + 127)
_LOG2_E_REST = _words(0x32A57060)[0]
"""log2(e) less what `LOG2_E` holds."""


def exp(x: Numbers) -> Numbers:
    """expf: 2^n times the unit's 2^f, n the integer near x log2(e), cut to what f32 holds."""
    x = np.asarray(x, np.float32)
    half = np.full_like(x, 0.5)
    with np.errstate(all="ignore"):
        place = np.clip(fused(x, np.full_like(x, _EXP_SCALE), half), np.float32(0), np.float32(1))
        place = np.where(np.isnan(x), np.float32(0), place)  # saturated, a NaN is zero
        # Rounded toward minus infinity: 252 * place and the sum are exact in f64, whose floor is the integer.
        whole = np.floor(place.astype(np.float64) * _EXP_STEPS)
        shifted = (whole + np.float64(_EXP_SHIFT)).astype(np.float32)
        power = shifted - _EXP_BACK
        rest = fused(x, np.full_like(x, LOG2_E), -power)
        rest = fused(x, np.full_like(x, _LOG2_E_REST), rest)
        scale = (shifted.view(np.uint32) << np.uint32(23)).view(np.float32)
        return np.asarray(unit("ex2.approx.ftz.f32")(rest) * scale)


_LOGARITHMS = {
    2: (0x3F3504F3, _words(
        0x3DC6B27F, 0xBE2C7F30, 0x3E2FCF2A, 0xBE374E43, 0x3E520BF4, 0xBE763C8B, 0x3E93BF99, 0xBEB8AA49,
        0x3EF6384A, 0xBF38AA3B,
    )),
    np.e: (0x3F2AAAAB, _words(
        0xBE055027, 0x3E1039F6, 0xBDF8CDCC, 0x3E0F2955, 0xBE2AD8B9, 0x3E4CED0B, 0xBE7FFF22, 0x3EAAAA78,
        0xBF000000,
    )),
}  # fmt: skip
"""By the base: the code of the least number that the polynomial takes, and its coefficients, the highest
power's first."""


def log(x: Numbers, base: float = np.e) -> Numbers:
    """logf, or log2f with base 2: a polynomial in fused multiply-adds."""
    least, coefficients = _LOGARITHMS[base]
    with np.errstate(all="ignore"):
        number = np.where(x < LEAST_NORMAL, x * np.float32(1 << 23), x)
        bits = number.view(np.int32)
        # number = 2^power times a number of at least `least`, which lies between 2/3 and 3/2.
        exponent = ((bits.astype(np.int64) - least) & ~0x7FFFFF).astype(np.int32)
        offset = np.where(x < LEAST_NORMAL, np.float32(-23), np.float32(0))
        power = fused(exponent.astype(np.float32), np.full_like(offset, 2.0**-23), offset)
        rest = (bits - exponent).view(np.float32) - np.float32(1)
        total = np.full_like(rest, coefficients[0])
        for coefficient in coefficients[1:]:
            total = fused(total, rest, np.full_like(rest, coefficient))
        if base == 2:
            found = power + fused(rest, np.full_like(rest, LOG2_E), rest * (rest * total))
        else:
            found = fused(power, np.full_like(rest, LN_2), fused(rest * total, rest, rest))
        infinity = np.float32(np.inf)
        found = np.where(bits.view(np.uint32) >= 0x7F800000, number * infinity + infinity, found)
        return np.where(number == 0, -infinity, found)


_ERF_NEAR = _words(0x3F8060FE)[0]
"""Below it a polynomial of x^2, times x; from it on 1 - 2^(polynomial of |x|, times |x|)."""
_ERF = {
    True: _words(0x38B1E96A, 0xBA574D20, 0x3BAAD5EA, 0xBCDC1BE7, 0x3DE718AF, 0xBEC093AC, 0x3E0375D3),
    False: _words(0x38EB4C3A, 0xBAAE005B, 0x3C09919F, 0xBD24D99A, 0x3E235519, 0x3F69B4F9, 0x3F210A14),
}
"""Coefficients near zero and elsewhere, the highest power's first."""


def erf(x: Numbers) -> Numbers:
    """erff."""
    x = np.asarray(x, np.float32)
    with np.errstate(all="ignore"):
        near = ~(np.abs(x) >= _ERF_NEAR)
        argument = np.where(near, x * x, np.abs(x))
        total = np.where(near, _ERF[True][0], _ERF[False][0])
        for close, far in zip(_ERF[True][1:], _ERF[False][1:], strict=True):
            total = fused(total, argument, np.where(near, close, far))
        factor = np.where(near, x, -np.abs(x))
        found = fused(total, factor, factor)
        power = unit("ex2.approx.ftz.f32")(found)
        return np.where(near, found, np.copysign(np.float32(1) - power, x))


_TANH_NEAR, _TANH_ONE = _words(0x3F19999A, 0x41102CB4)
"""Below the first (0.6) a polynomial; from the second on the result is one."""
_TANH = _words(0x3C80F082, 0xBD563CAE, 0x3E085941, 0xBEAAA9ED, 0)
_TANH_SCALE = _words(0x4038AA3B)[0]
"""2 log2(e)."""


def tanh(x: Numbers) -> Numbers:
    """tanhf: 1 - 2 / (2^(2 log2(e) |x|) + 1) with the unit's reciprocal, or a polynomial."""
    x = np.asarray(x, np.float32)
    with np.errstate(all="ignore"):
        size, square = np.abs(x), x * x
        power = unit("ex2.approx.ftz.f32")(size * _TANH_SCALE)
        reciprocal = unit("rcp.approx.ftz.f32")(power + np.float32(1))
        far = fused(reciprocal, np.full_like(x, -2), np.ones_like(x))
        far = np.copysign(np.where(size >= _TANH_ONE, np.float32(1), far), x)
        total = np.full_like(x, _TANH[0])
        for coefficient in _TANH[1:]:
            total = fused(total, square, np.full_like(x, coefficient))
        return np.where(size >= _TANH_NEAR, far, fused(total, x, x))
