"""Block floats against their meaning as the document's tables have it, in rationals; every code."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import golden
from golden.errors import OperandError, ShapeError
from golden.number.block_floats import to_bf16, to_f16
from golden.number.formats import get_format


def meaning(code: int, exponent: int, bits: int, bias: int) -> Fraction:
    """(-1)^s * magnitude / 2^(bits - 2) * 2^(exponent - bias): BFP8 has Mag / 2^6, BFP4 Mag / 2^2."""
    magnitude = code & (1 << (bits - 1)) - 1
    return (
        Fraction(magnitude, 1 << (bits - 2)) * Fraction(2) ** (exponent - bias) * (-1) ** (code >> (bits - 1))
    )


@pytest.mark.parametrize("bits", [8, 4, 2])
def test_every_code_has_the_value_of_the_table(bits: int) -> None:
    codes = np.tile(np.arange(1 << bits), max(16 >> bits, 1) * 16)[: max(1 << bits, 16)]
    codes = np.resize(codes, -(-len(codes) // 16) * 16)
    for exponent in (0, 1, 5, 7, 126, 127, 200, 255):
        found = to_bf16(codes, np.full(len(codes) // 16, exponent), bits)
        for code, word in zip(codes.tolist(), found.tolist(), strict=True):
            magnitude, sign = code & (1 << (bits - 1)) - 1, code >> (bits - 1)
            if not magnitude:
                assert word == (0xFF80 if sign else 0)
                continue
            lost = bits - 1 - magnitude.bit_length()  # zeros in front of the leading one
            assert word >> 7 & 0xFF == (exponent - lost) % 256
            if 0 < exponent - lost < 255:
                assert get_format("bf16").decode(word).value == meaning(code, exponent, bits, 127)


def test_f16_of_every_code_and_exponent() -> None:
    codes = np.arange(256)
    for exponent in range(7, 31):
        found = to_f16(codes, np.full(16, exponent))
        for code, word in zip(codes.tolist(), found.tolist(), strict=True):
            if code & 0x7F:
                assert get_format("f16").decode(word).value == meaning(code, exponent, 8, 15)
            else:
                assert word == (0xFC00 if code else 0)


def test_words_of_the_routine_worked_out_by_hand() -> None:
    """0x81: a sign, magnitude 1: six zeros in front; 0x40: the leading one in its place."""
    codes = np.array([0x40, 0x81, 0x7F, 0x80, *[0] * 12])
    assert to_bf16(codes, [130]).tolist()[:5] == [0x4100, 0xBE00, 0x417E, 0xFF80, 0]
    assert to_bf16(np.resize([0b0101, 0b1001], 16), [127], 4).tolist()[:2] == [0x3FA0, 0xBE80]
    assert to_bf16(np.resize([1], 16), [3])[0] == 0xFD << 7, "an exponent of -3 wraps"


def test_a_product_of_blocks_is_that_of_their_numbers() -> None:
    """MVMUL of BFP4 in phase 0: magnitudes of 3 bits are exact there, and so is their sum here."""
    rng = np.random.default_rng(0)
    ins = golden.instruction("tensix_blackhole", "mvmul.f32.bf16.bf16.lofi")
    a, b = rng.integers(1, 8, (2, 50, 16))
    d = ins.dot(
        to_bf16(a, np.full((50, 1), 127), 4), to_bf16(b, np.full((50, 1), 128), 4), np.zeros(50, np.uint32)
    )
    assert d.view(np.float32).tolist() == ((a * b).sum(axis=1) / 16 * 2).tolist()


@pytest.mark.parametrize(
    ("codes", "exponents", "bits", "error", "message"),
    [
        (np.zeros(16, int), np.zeros(1, int), 5, OperandError, "argument 'bits' is 5, expected 8, 4 or 2"),
        (np.zeros(15, int), np.zeros(1, int), 8, ShapeError, "n a multiple of 16"),
        (np.zeros(32, int), np.zeros(1, int), 8, ShapeError, "expected one for 16 codes"),
        (
            np.full(16, 16),
            np.zeros(1, int),
            4,
            OperandError,
            "'codes' holds other numbers than integers from 0 to 15",
        ),
        (np.zeros(16, int), np.full(1, 256), 8, OperandError, "'exponents' holds other numbers"),
        (np.zeros(16), np.zeros(1, int), 8, OperandError, "'codes' holds other numbers"),
    ],
)
def test_other_arrays_are_refused(
    codes: np.ndarray, exponents: np.ndarray, bits: int, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        to_bf16(codes, exponents, bits)


def test_an_exponent_that_the_document_leaves_open_is_refused() -> None:
    with pytest.raises(OperandError, match=r"element \[0\] has the exponent -6, expected 0 to 31"):
        to_f16(np.resize([1], 16), [0])
