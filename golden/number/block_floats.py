"""Tenstorrent's block floats (BFP8, BFP4, BFP2) as the numbers that the unpacker makes of them.

    a = to_bf16(codes, exponents)           # 16 codes share an exponent
    golden.instruction("tensix_blackhole", "mvmul.f32.bf16.bf16.lofi").matmul(a, b, c)

The Matrix Unit never sees a block: it multiplies these BF16 codes (of BFP8a, BFP4a, BFP2a: FP16).
Source: tenstorrent/tt-isa-documentation, FloatBitPatterns, conversion routines. No result of a chip was
available.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import OperandError, ShapeError
from golden.number.formats import get_format

Codes = npt.NDArray[Any]


def to_bf16(codes: npt.ArrayLike, exponents: npt.ArrayLike, bits: int = 8) -> Codes:
    """BF16 codes of BFP8, BFP4 or BFP2.

    A magnitude m of b bits is m / 2^(b-1) * 2^(exponent - 127); 0 is +0. As the hardware has it, a sign with
    a magnitude of 0 is 0xff80, and an exponent that becomes negative by the shift to the leading one wraps
    modulo 256.

    Args:
        codes: (..., n), the sign in the highest of `bits` bits; n a multiple of 16.
        exponents: (..., n / 16), one byte each.
        bits: 8, 4 or 2.

    Returns:
        uint16 (..., n).

    Raises:
        ShapeError, OperandError: the arrays do not go together, or hold other codes.
    """
    sign, magnitude, shift, exponent = _parts(codes, exponents, bits)
    found = sign << 15 | (exponent - shift & 0xFF) << 7 | magnitude << shift & 0x7F
    return _coded(np.where(magnitude == 0, sign * 0xFF80, found), "bf16")


def to_f16(codes: npt.ArrayLike, exponents: npt.ArrayLike, bits: int = 8) -> Codes:
    """FP16 codes of BFP8a, BFP4a or BFP2a, as `to_bf16`: bias 15; a sign with a magnitude of 0 is 0xfc00.

    Raises:
        ShapeError, OperandError: as `to_bf16`; an exponent that needs more than five bits, or becomes
            negative, for which the document says nothing.
    """
    sign, magnitude, shift, exponent = _parts(codes, exponents, bits)
    field = exponent - shift
    outside = (magnitude != 0) & ((field < 0) | (field > 31))
    if outside.any():
        at = tuple(int(i) for i in np.argwhere(outside)[0])
        raise OperandError(
            f"element {list(at)} has the exponent {int(field[at])}, expected 0 to 31: what becomes of "
            "another is not documented"
        )
    found = sign << 15 | field << 10 | (magnitude << shift & 0x7F) << 3
    return _coded(np.where(magnitude == 0, sign * 0xFC00, found), "f16")


def _parts(codes: npt.ArrayLike, exponents: npt.ArrayLike, bits: int) -> tuple[Codes, Codes, Codes, Codes]:
    """Of each element: sign, magnitude with the place of a hidden bit as its highest, the shift that brings
    the leading one there, and exponent."""
    # Bits of an element: a sign and a magnitude without a hidden bit.
    widths = (8, 4, 2)
    if bits not in widths:
        raise OperandError(f"argument 'bits' is {bits}, expected 8, 4 or 2")
    given, shared = np.asarray(codes), np.asarray(exponents)
    for name, array, most in (("codes", given, 1 << bits), ("exponents", shared, 256)):
        if array.dtype.kind not in "iu" or (array.size and not 0 <= array.min() <= array.max() < most):
            raise OperandError(f"argument '{name}' holds other numbers than integers from 0 to {most - 1}")
    # Elements that share an exponent.
    group = 16
    if given.ndim < 1 or given.shape[-1] % group:
        raise ShapeError(
            f"argument 'codes' has shape {given.shape}, expected (..., n), n a multiple of {group}"
        )
    if shared.shape != (*given.shape[:-1], given.shape[-1] // group):
        raise ShapeError(
            f"argument 'exponents' has shape {shared.shape}, expected one for {group} codes of shape "
            f"{given.shape}"
        )
    whole = given.astype(np.int64) << (8 - bits)
    # The magnitude has one place more, so that its highest bit is the hidden bit of a number not shifted.
    magnitude = (whole & 0x7F) << 1
    shift = np.zeros_like(magnitude)
    for width in (4, 2, 1):  # the leading zeros of 8 bits, by halves
        low = magnitude << shift < 1 << (8 - width)
        shift += np.where(low, width, 0)
    # Bits of the widest magnitude; narrower ones are its highest bits.
    magnitude_bits = 7
    return whole >> magnitude_bits, magnitude, shift, np.repeat(shared.astype(np.int64), group, axis=-1)


def _coded(codes: Codes, name: str) -> Codes:
    return codes.astype(get_format(name).dtype)
