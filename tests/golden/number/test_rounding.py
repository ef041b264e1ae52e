"""Rounding to codes against rational arithmetic (exact.py), NumPy, ml_dtypes and gfloat, in every mode."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import exact
import gfloat
import gfloat.formats as known
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_run import long_after

from golden.errors import OperandError
from golden.number.formats import Kind, Number, get_format
from golden.number.rounding import MODES, convert, encode_fraction, round_to_code, shift_right

IEEE = ("f16", "bf16", "f32", "e5m2", "f64")
GFLOAT_MODES = {
    "toward_zero": gfloat.RoundMode.TowardZero,
    "nearest_even": gfloat.RoundMode.TiesToEven,
    "nearest_away": gfloat.RoundMode.TiesToAway,
    "down": gfloat.RoundMode.TowardNegative,
    "up": gfloat.RoundMode.TowardPositive,
}


@pytest.mark.parametrize("mode", MODES)
def test_shift_right_is_a_rational_rounding(mode: str) -> None:
    for sign, magnitude, shift in product((0, 1), range(70), range(-3, 9)):
        value = (-1) ** sign * Fraction(magnitude) / Fraction(2) ** shift
        assert (-1) ** sign * shift_right(sign, magnitude, shift, mode) == exact.to_integer(value, mode), (
            sign,
            magnitude,
            shift,
        )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", long_after(2, IEEE))
def test_round_to_code_is_the_oracles(name: str, mode: str) -> None:
    fmt = get_format(name)
    lowest, highest = fmt.min_exponent - fmt.fraction_bits - 4, fmt.max_exponent + 3

    @settings(max_examples=25)
    @given(
        st.integers(0, 1),
        st.integers(1, 1 << 70),
        st.integers(lowest, highest),
        st.sampled_from(("infinity", "ieee")),
    )
    def check(sign: int, magnitude: int, top: int, overflow: str) -> None:
        lsb = top - magnitude.bit_length() + 1
        wanted = exact.encode(name, (-1) ** sign * magnitude * Fraction(2) ** lsb, mode, None, overflow)
        assert round_to_code(fmt, sign, magnitude, lsb, mode, overflow) == wanted

    check()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", IEEE)
def test_round_to_code_about_every_power_of_two(name: str, mode: str) -> None:
    """Midpoints, quarter points and their neighbours at every exponent, subnormals and overflow included."""
    fmt = get_format(name)
    step = 1 if fmt.storage < 64 else 37
    for top in range(fmt.min_exponent - fmt.fraction_bits - 3, fmt.max_exponent + 2, step):
        for low, sign in product((-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5), (0, 1)):
            magnitude, lsb = (1 << (fmt.fraction_bits + 3)) + low, top - fmt.fraction_bits - 3
            wanted = exact.encode(name, (-1) ** sign * magnitude * Fraction(2) ** lsb, mode, None, "ieee")
            assert round_to_code(fmt, sign, magnitude, lsb, mode, "ieee") == wanted, (top, low, sign)


@pytest.mark.parametrize(
    ("name", "native"),
    [("f16", np.float16), ("f32", np.float32), ("bf16", ml_dtypes.bfloat16), ("e5m2", ml_dtypes.float8_e5m2)],
)
def test_nearest_even_is_numpys_cast(name: str, native: type) -> None:
    fmt, rng = get_format(name), np.random.default_rng(4)
    span = fmt.fraction_bits + 8
    exponents = rng.integers(fmt.min_exponent - span, fmt.max_exponent + 3, 5000)
    # 24-bit values: exact in f32, so that a cast through it rounds once.
    values = np.ldexp(rng.integers(1 << 20, 1 << 24, 5000).astype(np.float64), exponents - 23)
    values = values[np.abs(values) >= 2.0**-126] if fmt.storage == 16 and name == "bf16" else values
    source = values if name in ("f16", "f32") else values.astype(np.float32)
    with np.errstate(over="ignore"):
        theirs = source.astype(native).view(fmt.dtype)
    for value, wanted in zip(source.tolist(), theirs.tolist(), strict=True):
        assert encode_like_ieee(name, value) == wanted, value


def encode_like_ieee(name: str, value: float) -> int:
    if value == float("inf"):
        return exact.infinity(name, False)
    numerator, denominator = value.as_integer_ratio()
    return round_to_code(
        get_format(name),
        int(numerator < 0),
        abs(numerator),
        1 - denominator.bit_length(),
        "nearest_even",
        "ieee",
    )


@pytest.mark.parametrize("mode", GFLOAT_MODES)
@pytest.mark.parametrize(
    ("name", "info"),
    [
        ("f16", known.format_info_binary16),
        ("e4m3", known.format_info_ocp_e4m3),
        ("e3m2", known.format_info_ocp_e3m2),
        ("e2m3", known.format_info_ocp_e2m3),
        ("e2m1", known.format_info_ocp_e2m1),
        ("bf16", known.format_info_bfloat16),
    ],
)
def test_in_range_values_are_gfloats(name: str, info: gfloat.FormatInfo, mode: str) -> None:
    fmt, rng = get_format(name), np.random.default_rng(6)
    limit = float(fmt.decode(fmt.largest).value)
    exponents = rng.integers(max(fmt.min_exponent - fmt.fraction_bits - 3, -1000), fmt.max_exponent + 1, 800)
    values = np.ldexp(rng.integers(-(1 << 12), 1 << 12, 800) / 4096.0, exponents)
    for value in np.clip(values, -limit, limit).tolist():
        numerator, denominator = value.as_integer_ratio()
        code = round_to_code(fmt, int(value < 0), abs(numerator), 1 - denominator.bit_length(), mode)
        assert float(fmt.decode(code).value) == gfloat.round_float(info, value, GFLOAT_MODES[mode], True), (
            value
        )


@pytest.mark.parametrize(
    ("overflow", "mode", "sign", "wanted"),
    [
        ("infinity", "toward_zero", 0, 0x7C00),
        ("infinity", "down", 0, 0x7C00),
        ("infinity", "toward_zero", 1, 0xFC00),
        ("largest", "nearest_even", 0, 0x7BFF),
        ("largest", "up", 1, 0xFBFF),
        ("ieee", "toward_zero", 0, 0x7BFF),
        ("ieee", "nearest_even", 1, 0xFC00),
        ("ieee", "nearest_away", 0, 0x7C00),
        ("ieee", "down", 0, 0x7BFF),
        ("ieee", "down", 1, 0xFC00),
        ("ieee", "up", 0, 0x7C00),
        ("ieee", "up", 1, 0xFBFF),
    ],
)
def test_overflow(overflow: str, mode: str, sign: int, wanted: int) -> None:
    assert round_to_code(get_format("f16"), sign, 1, 20, mode, overflow) == wanted


def test_overflow_starts_where_rounding_says() -> None:
    f16 = get_format("f16")
    assert round_to_code(f16, 0, 65519, 0, "nearest_even") == 0x7BFF
    assert round_to_code(f16, 0, 65520, 0, "nearest_even") == 0x7C00
    assert round_to_code(f16, 0, 65535, 0, "toward_zero") == 0x7BFF
    assert round_to_code(f16, 0, 65536, 0, "toward_zero") == 0x7C00


@pytest.mark.parametrize("kept", [0, 10, 13, 22])
def test_fewer_fraction_bits_leave_low_zeros(kept: int) -> None:
    f32, rng = get_format("f32"), np.random.default_rng(8)
    for magnitude, lsb in zip(
        rng.integers(1, 1 << 40, 300).tolist(), rng.integers(-170, 80, 300).tolist(), strict=True
    ):
        code = round_to_code(f32, 0, magnitude, lsb, "toward_zero", fraction_bits=kept)
        assert code == exact.encode("f32", magnitude * Fraction(2) ** lsb, "toward_zero", kept)
        if code >> 23:
            assert code & ((1 << (23 - kept)) - 1) == 0


def test_flush_takes_what_stays_subnormal_after_rounding() -> None:
    f32 = get_format("f32")
    assert round_to_code(f32, 1, 1, -127, "nearest_even", flush=True) == 0x80000000
    assert round_to_code(f32, 0, (1 << 30) - 1, -156, "nearest_even", flush=True) == 0x00800000
    assert round_to_code(f32, 0, 1, -126, "nearest_even", flush=True) == 0x00800000


@pytest.mark.parametrize("name", ["s8", "u8", "s32", "s4"])
@given(value=st.integers(-(1 << 40), 1 << 40))
def test_integers_wrap_or_saturate(name: str, value: int) -> None:
    fmt = get_format(name)
    low, high = (-(1 << (fmt.bits - 1)) if fmt.signed else 0), fmt.largest
    arguments = int(value < 0), abs(value), 0, "toward_zero"
    assert round_to_code(fmt, *arguments, "wrap") == value % (1 << fmt.bits)
    assert round_to_code(fmt, *arguments, "saturate") == min(max(value, low), high) % (1 << fmt.bits)


@pytest.mark.parametrize(
    ("source", "target"),
    [("e4m3", "f16"), ("e5m2", "f16"), ("e2m1", "e4m3"), ("bf16", "f32"), ("f16", "f32")],
)
def test_convert_keeps_every_value_and_normalises(source: str, target: str) -> None:
    narrow, wide = get_format(source), get_format(target)
    for code in range(0, 1 << narrow.bits, 1 if narrow.bits <= 8 else 13):
        number = narrow.decode(code)
        converted = convert(number, wide)
        assert (converted.kind, converted.sign) == (number.kind, number.sign)
        if number.kind == Kind.FINITE:
            assert converted.value == number.value
            assert converted.significand >> wide.fraction_bits == 1 or converted.exponent == wide.min_exponent


def test_convert_refuses_what_is_not_exact() -> None:
    with pytest.raises(OperandError, match="not exact in e4m3"):
        convert(get_format("f16").decode(0x3C01), get_format("e4m3"))
    with pytest.raises(OperandError, match="not exact in f16"):
        convert(Number(Kind.FINITE, 0, 1, 20, 0), get_format("f16"))


@given(st.fractions(min_value=-70000, max_value=70000, max_denominator=10**12))
def test_encode_fraction_is_the_oracles(value: Fraction) -> None:
    for name, mode in (("f16", "nearest_even"), ("bf16", "up"), ("f32", "down")):
        wanted = exact.encode(name, value, mode, None, "infinity")
        assert encode_fraction(get_format(name), value, mode) == wanted


def test_encode_fraction_of_special_values() -> None:
    f16 = get_format("f16")
    assert [encode_fraction(f16, v) for v in (float("inf"), float("-inf"), float("nan"), -0.0, 0)] == [
        0x7C00,
        0xFC00,
        0x7E00,
        0x8000,
        0,
    ]
    for name, value in (("e4m3", float("inf")), ("e2m1", float("nan"))):
        with pytest.raises(OperandError, match=f"{name} has no code"):
            encode_fraction(get_format(name), value)
