"""Classes of numbers, for arrays of codes: which are zeros, subnormal, infinite, NaN or negative.

`Format.decode` says the same of one code (tests/golden/number/test_classes.py compares them).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden.number.formats import Format

Bits = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


def is_zero(fmt: Format, codes: Bits) -> Mask:
    """Where codes are 0, of either sign."""
    if not fmt.is_float:
        return np.asarray(_masked(fmt, codes, (1 << fmt.bits) - 1) == 0)
    if not fmt.has_zero:
        return np.zeros(np.shape(codes), np.bool_)
    zero = np.asarray(_magnitude(fmt, codes) == 0)
    return zero & ~is_negative(fmt, codes) if fmt.specials == "negative_zero_nan" else zero


def is_subnormal(fmt: Format, codes: Bits) -> Mask:
    """Where codes are subnormal: not zero, with the least exponent. In formats without subnormal numbers none
    is."""
    if not fmt.is_float or not fmt.has_subnormals:
        return np.zeros(np.shape(codes), np.bool_)
    fields = _magnitude(fmt, codes)
    return np.asarray((fields != 0) & (fields < _at(fmt, 1 << fmt.fraction_bits)))


def is_infinite(fmt: Format, codes: Bits) -> Mask:
    """Where codes are infinities."""
    if not fmt.is_float or fmt.specials != "ieee":
        return np.zeros(np.shape(codes), np.bool_)
    return np.asarray(_magnitude(fmt, codes) == _infinity(fmt))


def is_nan(fmt: Format, codes: Bits) -> Mask:
    """Where codes are NaNs (see `specials` in spec/formats/formats.yaml)."""
    if fmt.is_float and fmt.specials == "ieee":
        return np.asarray(_magnitude(fmt, codes) > _infinity(fmt))
    if fmt.is_float and fmt.specials == "all_ones_nan":
        return np.asarray(_magnitude(fmt, codes) == _at(fmt, _ones(fmt)))
    if fmt.is_float and fmt.specials == "negative_zero_nan":
        return np.asarray(_magnitude(fmt, codes) == 0) & is_negative(fmt, codes)
    return np.zeros(np.shape(codes), np.bool_)


def is_negative(fmt: Format, codes: Bits) -> Mask:
    """Where the sign is set; zeros and NaNs have one, too."""
    if not fmt.signed:
        return np.zeros(np.shape(codes), np.bool_)
    return np.asarray(_masked(fmt, codes, 1 << (fmt.sign_shift if fmt.is_float else fmt.bits - 1)) != 0)


def _masked(fmt: Format, codes: Bits, mask: int) -> Bits:
    found: Bits = np.asarray(codes).astype(fmt.dtype, copy=False) & fmt.dtype.type(mask)
    return found


def _ones(fmt: Format) -> int:
    """Exponent and fraction fields of ones."""
    return (1 << (fmt.exponent_bits + fmt.fraction_bits)) - 1


def _at(fmt: Format, fields: int) -> Any:
    """Exponent and fraction fields at their places in a code."""
    return fmt.dtype.type(fields << fmt.ignored_low)


def _magnitude(fmt: Format, codes: Bits) -> Bits:
    """The exponent and fraction fields of codes, without sign and ignored bits."""
    return _masked(fmt, codes, _ones(fmt) << fmt.ignored_low)


def _infinity(fmt: Format) -> Any:
    return _at(fmt, ((1 << fmt.exponent_bits) - 1) << fmt.fraction_bits)
