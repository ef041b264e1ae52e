"""Codes that stimuli build, held against what the formats say of them."""

from __future__ import annotations

import numpy as np
import pytest

from golden.number.formats import Format, get_format
from golden.stimuli.codes import encode, is_minus, magnitudes, negate, tiniest_exponent

LONE_ZERO = Format(
    "lone", True, 16, exponent_bits=5, fraction_bits=10, bias=15, specials="ieee", subnormals=False
)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [64, 63, 33])
def test_integers_of_up_to_64_bits_have_every_exponent_and_sign(bits: int, signed: bool) -> None:
    fmt = Format("wide", False, 64, signed=signed, integer_bits=bits)
    top = bits - 1 - int(signed)
    exponents = np.arange(top + 1)
    signs = exponents % 2 == 1
    codes = encode(fmt, signs, exponents, np.zeros(top + 1, np.uint64))
    for exponent, code in zip(exponents.tolist(), codes.tolist(), strict=True):
        number = fmt.decode(code)
        assert (number.significand, number.sign) == (1 << exponent, exponent % 2 * signed)
        opposite = fmt.decode(int(negate(fmt, np.array([code], np.uint64))[0]))
        assert opposite.value == (-number.value if signed else number.value)


def test_a_format_without_subnormal_numbers_gets_normal_ones_at_its_least_exponent() -> None:
    assert tiniest_exponent(LONE_ZERO) == LONE_ZERO.min_exponent == -15
    fraction = np.full(3, 1 << 63, np.uint64)
    exponents = np.array([-15, -14, 0])
    codes = encode(LONE_ZERO, None, exponents, fraction)
    assert [LONE_ZERO.decode(int(code)).exponent for code in codes] == [-15, -14, 0]


def test_ignored_bits_are_those_that_no_number_depends_on() -> None:
    for name in ("tf32", "ue4m3", "f16", "s8", "e5m2"):
        fmt = get_format(name)
        for code in range(0, 1 << fmt.bits, max((1 << fmt.bits) // 97, 1)):
            for place in range(fmt.bits):
                if fmt.ignored >> place & 1:
                    assert fmt.decode(code) == fmt.decode(code ^ 1 << place)
    assert get_format("tf32").ignored == 0x1FFF and get_format("ue4m3").ignored == 0x80
    assert get_format("f16").ignored == get_format("s8").ignored == 0


@pytest.mark.parametrize("name", ["f16", "tf32", "e4m3", "e2m1", "ue4m3", "ue8m0", "e4m3fnuz", "s8"])
def test_the_sign_and_the_rest_of_a_code_make_the_code(name: str) -> None:
    fmt = get_format(name)
    codes = np.arange(0, 1 << fmt.bits, max((1 << fmt.bits) // 997, 1), dtype=np.uint64).astype(fmt.dtype)
    signs, rest = is_minus(fmt, codes), magnitudes(fmt, codes)
    for code, minus, magnitude in zip(codes.tolist(), signs.tolist(), rest.tolist(), strict=True):
        its_nan = fmt.specials == "negative_zero_nan" and code == fmt.nan
        assert minus == (fmt.is_float and fmt.signed and (fmt.decode(code).sign == 1 or its_nan))
        assert magnitude + (minus << max(fmt.sign_shift, 0)) == code
