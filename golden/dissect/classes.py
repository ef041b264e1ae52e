"""Plain classes of dot products: what a person would ask first of those on which a unit is wrong. Shared by
the diagnosis of a DUT and the dissection of a black box."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from golden.number.formats import Format, to_float
from golden.program.signature import Bits, Operands

Mask = npt.NDArray[np.bool_]
Formats = Mapping[str, Format]


def classes(formats: Formats, operands: Operands, expected: Bits) -> Iterator[tuple[str, Mask]]:
    """Classes of dot products (n, ...), each with its mask (n,); `expected`: codes of d."""
    present = products_present(formats, operands)
    terms = present.sum(axis=1)
    no_c = zeros(formats["c"], operands["c"]) if "c" in operands else np.ones(len(terms), np.bool_)
    yield "one product alone, c = 0", (terms == 1) & no_c
    yield "one product and c", (terms == 1) & ~no_c
    yield "no product, c alone", (terms == 0) & ~no_c
    yield "several products, c = 0", (terms > 1) & no_c
    yield "several products and c", (terms > 1) & ~no_c
    d = formats["d"]
    yield "results of zero", zeros(d, expected)
    if not d.is_float:
        yield "negative results", (expected >> d.dtype.type(d.bits - 1)).astype(np.bool_)
        return
    floats = {name: formats[name] for name in operands if name in formats and formats[name].is_float}
    is_special = np.any([special(fmt, operands[name]) for name, fmt in floats.items()], axis=0)
    tiny = np.any([subnormal(fmt, operands[name]) for name, fmt in floats.items()], axis=0)
    yield "NaN or infinite operands", is_special
    yield "finite operands", ~is_special
    yield "subnormal operands", tiny & ~is_special
    yield "finite operands, none subnormal", ~tiny & ~is_special
    yield "subnormal results", subnormal(d, expected)
    yield "overflowing results", special(d, expected) & ~is_special


def products_present(formats: Formats, operands: Operands) -> Mask:
    """(n, stored k): which products have no zero among their factors."""
    found = np.ones(operands["a"].shape, np.bool_)
    for name in "ab":
        if name in operands and operands[name].shape == found.shape:
            found &= ~zero_codes(formats[name], operands[name])
    return found


def zero_codes(fmt: Format, codes: Bits) -> Mask:
    """Which codes are a zero of either sign, of any shape."""
    mask = fmt.dtype.type(((1 << fmt.bits) - 1) ^ (1 << fmt.sign_shift if fmt.is_float and fmt.signed else 0))
    return np.asarray((codes & mask) == 0) if fmt.has_zero else np.zeros(codes.shape, np.bool_)


def zeros(fmt: Format, codes: Bits) -> Mask:
    """Where any code is a zero, (n,)."""
    return _any(zero_codes(fmt, codes))


def special(fmt: Format, codes: Bits) -> Mask:
    """Where any code is a NaN or an infinity, (n,)."""
    return _any(~np.isfinite(to_float(fmt, codes)))


def subnormal(fmt: Format, codes: Bits) -> Mask:
    """Where any code is subnormal, (n,)."""
    if fmt.exponent_bits == 0 or not fmt.has_subnormals:
        return np.zeros(len(codes), np.bool_)
    values = np.abs(to_float(fmt, codes))
    return _any((values != 0) & (values < np.ldexp(1.0, fmt.min_exponent)))


def _any(mask: Mask) -> Mask:
    return np.asarray(mask.any(axis=tuple(range(1, mask.ndim))))
