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
    yield from _by_terms(formats, operands)
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


def _by_terms(formats: Formats, operands: Operands) -> Iterator[tuple[str, Mask]]:
    """Which terms of the sum are there, in the words of the unit: it may have no b, no c, and one product."""
    terms = products_present(formats, operands).sum(axis=1)
    (one, several), k = term_words(operands), operands["a"].shape[1]
    if "c" not in operands:
        if k > 1:
            yield f"{one} alone", terms == 1
            yield several, terms > 1
        return
    no_c = zeros(formats["c"], operands["c"])
    yield f"{one} alone, c = 0", (terms == 1) & no_c
    yield f"{one} and c", (terms == 1) & ~no_c
    yield f"no {one.removeprefix('one ')}, c alone", (terms == 0) & ~no_c
    if k > 1:
        yield f"{several}, c = 0", (terms > 1) & no_c
        yield f"{several} and c", (terms > 1) & ~no_c


def term_words(operands: Operands) -> tuple[str, str]:
    """One term beside c and several of them, in words: products, or elements of a where there is no b."""
    if "b" in operands:
        return "one product", "several products"
    return ("a", "a") if operands["a"].shape[1] == 1 else ("one element of a", "several elements of a")


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
