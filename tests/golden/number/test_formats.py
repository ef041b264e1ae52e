"""Every code of every format of 16 bits or less against gfloat and ml_dtypes, conversions, and the checks
of operands."""

from __future__ import annotations

import itertools
from fractions import Fraction

import gfloat
import gfloat.formats as known
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from native import ML_DTYPES

from golden import Format, from_float, get_format, to_float
from golden.errors import DTypeError, OperandError, UnknownNameError
from golden.number import formats
from golden.number.formats import Kind

GFLOAT = {
    "f16": known.format_info_binary16,
    "bf16": known.format_info_bfloat16,
    "e5m2": known.format_info_ocp_e5m2,
    "e4m3": known.format_info_ocp_e4m3,
    "e3m2": known.format_info_ocp_e3m2,
    "e2m3": known.format_info_ocp_e2m3,
    "e2m1": known.format_info_ocp_e2m1,
    "ue8m0": known.format_info_ocp_e8m0,
}
SMALL = (*tuple(GFLOAT), "e5m2fnuz", "e4m3fnuz")
FINITE = {"f32_finite": "f32", "tf32_finite": "tf32", "bf16_finite": "bf16", "f16_finite": "f16"}
"""Formats of Tenstorrent whose largest exponent has numbers, and the IEEE formats of the same fields."""
MAGNITUDES = {"sm32": 31, "sm11": 10}
"""Integers as a sign and a magnitude of this many bits."""
SIGNED = tuple(name for name in SMALL if name != "ue8m0")


def all_codes(fmt: Format) -> np.ndarray:
    return np.arange(1 << fmt.bits, dtype=fmt.dtype)


def same(x: np.ndarray, y: np.ndarray) -> bool:
    """Equal values, signs of zeros included; NaN equals NaN."""
    return bool(np.all((np.isnan(x) & np.isnan(y)) | ((x == y) & (np.signbit(x) == np.signbit(y)))))


def test_every_format_is_covered() -> None:
    covered = {*SMALL, "ue4m3", "tf32", "f32", "f64", "s32", "s16", "s8", "u8", "s4", "u4", "b1"}
    covered |= {*FINITE, *MAGNITUDES}
    assert set(formats.formats()) == covered


@pytest.mark.parametrize("name", FINITE)
def test_the_largest_exponent_has_numbers(name: str) -> None:
    """Each code is the number of the IEEE format, and beyond it the fraction times 2 to the next exponent."""
    fmt, ieee = get_format(name), get_format(FINITE[name])
    rng = np.random.default_rng(7)
    for code in map(int, rng.integers(0, 1 << fmt.bits, 500)):
        number, other = fmt.decode(code), ieee.decode(code)
        if other.kind in (Kind.ZERO, Kind.FINITE):
            assert (number.kind, number.sign) == (other.kind, other.sign)
            assert number.kind == Kind.ZERO or number.value == other.value
        else:
            fraction = code >> fmt.ignored_low & (1 << fmt.fraction_bits) - 1
            value = (1 + Fraction(fraction, 1 << fmt.fraction_bits)) * Fraction(2) ** (fmt.bias + 1)
            assert number.kind == Kind.FINITE and abs(number.value) == value


@pytest.mark.parametrize("name", MAGNITUDES)
def test_sign_and_magnitude_are_integers(name: str) -> None:
    fmt, bits = get_format(name), MAGNITUDES[name]
    for code in (0, 1, 2, 5, (1 << bits) - 1, 1 << bits - 1):
        for sign in (0, 1):
            number = fmt.decode(sign << bits | code)
            assert number.sign == sign
            assert number.kind == Kind.ZERO if not code else abs(number.value) == code


@pytest.mark.parametrize("name", GFLOAT)
def test_decode_is_gfloats(name: str) -> None:
    fmt = get_format(name)
    classes = {
        gfloat.FloatClass.ZERO: Kind.ZERO,
        gfloat.FloatClass.INFINITE: Kind.INFINITY,
        gfloat.FloatClass.NAN: Kind.NAN,
    }
    for code in range(0, 1 << fmt.bits, 1 if fmt.bits <= 8 else 13):
        number, theirs = fmt.decode(code), gfloat.decode_float(GFLOAT[name], code)
        assert number.kind == classes.get(theirs.fclass, Kind.FINITE), hex(code)
        assert number.kind == Kind.NAN or number.sign == theirs.signbit, hex(code)
        if number.kind <= Kind.FINITE:
            assert number.value == Fraction(theirs.fval), hex(code)
            subnormal = theirs.fclass == gfloat.FloatClass.SUBNORMAL
            assert (
                number.kind == Kind.ZERO or (number.significand < 1 << number.fraction_bits) == subnormal
            ), hex(code)


@pytest.mark.parametrize("name", ML_DTYPES)
def test_decode_is_ml_dtypes(name: str) -> None:
    fmt = get_format(name)
    raw = all_codes(fmt)[:: 1 if fmt.bits <= 8 else 13]
    theirs = raw.view(ML_DTYPES[name]).astype(np.float64)
    kinds = np.array([fmt.decode(int(code)).kind for code in raw])
    assert np.array_equal(kinds == Kind.NAN, np.isnan(theirs))
    assert np.array_equal(kinds == Kind.INFINITY, np.isinf(theirs))
    for code, value in zip(raw.tolist(), theirs.tolist(), strict=True):
        number = fmt.decode(code)
        assert number.kind > Kind.FINITE or float(number.value) == value


@pytest.mark.parametrize("name", SMALL)
def test_to_float_is_decode(name: str) -> None:
    fmt = get_format(name)
    codes = all_codes(fmt)[:: 1 if fmt.bits <= 8 else 13]
    for code, value in zip(codes.tolist(), to_float(fmt, codes).tolist(), strict=True):
        number = fmt.decode(code)
        if number.kind == Kind.NAN:
            assert value != value
        elif number.kind == Kind.INFINITY:
            assert value == (-1) ** number.sign * float("inf")
        else:
            assert Fraction(value) == number.value and np.signbit(value) == number.sign


@pytest.mark.parametrize("name", SMALL)
def test_round_trip_of_every_code(name: str) -> None:
    fmt = get_format(name)
    raw = all_codes(fmt)
    values = to_float(fmt, raw)
    back = from_float(fmt, values[~np.isnan(values)])
    assert np.array_equal(back, raw[~np.isnan(values)])
    assert fmt.nan is None or np.isnan(to_float(fmt, from_float(fmt, np.full(2, np.nan)))).all()


@pytest.mark.parametrize("name", SMALL)
def test_limits_are_the_largest_and_smallest_finite_codes(name: str) -> None:
    fmt = get_format(name)
    decoded = [fmt.decode(code) for code in range(1 << fmt.bits)]
    finite = [number for number in decoded if number.kind == Kind.FINITE]
    assert fmt.decode(fmt.largest).value == max(n.value for n in finite)
    assert fmt.max_exponent == max(n.exponent for n in finite)
    assert fmt.min_exponent == min(n.exponent for n in finite)
    assert fmt.infinity is None or fmt.decode(fmt.infinity).kind == Kind.INFINITY
    assert fmt.nan is None or fmt.decode(fmt.nan).kind == Kind.NAN


@pytest.mark.parametrize(
    ("name", "largest", "least"),
    [
        ("f16", 65504, Fraction(1, 2**24)),
        ("e4m3", 448, Fraction(1, 2**9)),
        ("e5m2", 57344, Fraction(1, 2**16)),
        ("e4m3fnuz", 240, Fraction(1, 2**10)),
        ("e5m2fnuz", 57344, Fraction(1, 2**17)),
        ("e3m2", 28, Fraction(1, 16)),
        ("e2m3", Fraction(15, 2), Fraction(1, 8)),
        ("e2m1", 6, Fraction(1, 2)),
        ("ue8m0", 2**127, Fraction(1, 2**127)),
        ("ue4m3", 448, Fraction(1, 2**9)),
    ],
)
def test_published_limits(name: str, largest: int, least: Fraction) -> None:
    fmt = get_format(name)
    finite = [fmt.decode(code).value for code in range(1 << fmt.bits) if fmt.decode(code).kind == Kind.FINITE]
    assert (max(finite), min(v for v in finite if v > 0)) == (largest, least)


def test_ue4m3_ignores_bit_7() -> None:
    scale, e4m3 = get_format("ue4m3"), get_format("e4m3")
    for code in range(256):
        number, plain = scale.decode(code), e4m3.decode(code & 0x7F)
        assert (number.kind, number.sign, number.significand, number.exponent) == (
            plain.kind,
            0,
            plain.significand,
            plain.exponent,
        )
    values = to_float(scale, np.arange(256, dtype=np.uint8))
    assert (
        same(values[:128], values[128:])
        and np.isnan(values[[0x7F, 0xFF]]).all()
        and not np.isnan(np.delete(values, [0x7F, 0xFF])).any()
    )


def test_tf32_ignores_its_low_13_bits() -> None:
    fmt = get_format("tf32")
    rng = np.random.default_rng(2)
    raw = rng.integers(0, 1 << 32, 20000, dtype=np.uint64).astype(np.uint32)
    clean = raw & np.uint32(0xFFFFE000)
    assert same(to_float(fmt, raw), to_float(fmt, clean))
    assert same(to_float(fmt, clean), clean.view(np.float32).astype(np.float64))
    for code in raw[:2000].tolist():
        number, cut = fmt.decode(code), fmt.decode(code & 0xFFFFE000)
        assert (number.kind, number.sign, number.significand, number.exponent) == (
            cut.kind,
            cut.sign,
            cut.significand,
            cut.exponent,
        )
    assert fmt.decode(0x7F800001).kind == Kind.INFINITY and fmt.decode(0x7F802000).kind == Kind.NAN


@pytest.mark.parametrize(
    ("name", "native", "width"), [("f32", np.float32, np.uint32), ("f64", np.float64, np.uint64)]
)
def test_wide_formats_are_numpys(name: str, native: type, width: type) -> None:
    fmt = get_format(name)
    rng = np.random.default_rng(3)
    raw = rng.integers(0, 1 << fmt.bits, 20000, dtype=np.uint64).astype(width)
    theirs = raw.view(native).astype(np.float64)
    assert same(to_float(fmt, raw), theirs)
    for code, value in zip(raw[:3000].tolist(), theirs[:3000].tolist(), strict=True):
        if np.isfinite(value):
            assert fmt.decode(code).value == Fraction(value)


@pytest.mark.parametrize("name", SIGNED)
def test_negation_flips_the_sign_bit_alone(name: str) -> None:
    fmt = get_format(name)
    for code in range(1 << fmt.sign_shift):
        number, other = fmt.decode(code), fmt.decode(code | 1 << fmt.sign_shift)
        if Kind.NAN not in (number.kind, other.kind):
            assert (number.kind, number.significand, number.exponent) == (
                other.kind,
                other.significand,
                other.exponent,
            )
            assert (number.sign, other.sign) == (0, 1)


# from_float -------------------------------------------------------------------------------------------------


def nearest_even_code(fmt: Format, value: float) -> Fraction:
    """The value of the finite code nearest to `value` in range, ties to the even code, by search."""
    exact = Fraction(value)
    finite = [code for code in range(fmt.largest + 1) if fmt.decode(code).kind <= Kind.FINITE]
    best = min(finite, key=lambda code: (abs(fmt.decode(code).value - abs(exact)), code & 1))
    return (-1) ** (exact < 0) * fmt.decode(best).value


@pytest.mark.parametrize("name", ["e5m2", "e4m3fnuz", "e2m1"])
def test_from_float_rounds_to_nearest_even_between_all_neighbours(name: str) -> None:
    """Each midpoint of two neighbours, and the doubles next to it:
    a second rounding would break these."""
    fmt = get_format(name)
    finite = sorted({fmt.decode(code).value for code in range(fmt.largest + 1)})
    middles = np.array([float((x + y) / 2) for x, y in itertools.pairwise(finite)])
    tests = np.concatenate([middles, np.nextafter(middles, np.inf), np.nextafter(middles, 0)])
    for value, code in zip(tests.tolist(), from_float(fmt, tests).tolist(), strict=True):
        assert fmt.decode(code).value == nearest_even_code(fmt, value), value


@pytest.mark.parametrize("name", ["bf16", "f16", "tf32"])
def test_from_float_rounds_once(name: str) -> None:
    """Just above a midpoint by less than an f32 can show:
    double rounding would fall to the even neighbour."""
    fmt = get_format(name)
    unit = 2.0**-fmt.fraction_bits
    for multiple in range(8):
        middle = 1 + (multiple + 0.5) * unit
        above, below = from_float(fmt, [middle + 2.0**-50, middle - 2.0**-50])
        assert to_float(fmt, above) == 1 + (multiple + 1) * unit
        assert to_float(fmt, below) == 1 + multiple * unit


@given(st.floats(width=64))
def test_from_float_of_any_double_is_gfloats(value: float) -> None:
    for name, info in (("f16", GFLOAT["f16"]), ("bf16", GFLOAT["bf16"]), ("e5m2", GFLOAT["e5m2"])):
        code = from_float(name, [value])[0]
        theirs = gfloat.round_float(info, value, gfloat.RoundMode.TiesToEven)
        assert same(to_float(name, [code]), np.array([theirs])), (name, value)


def test_from_float_refuses_what_a_format_cannot_hold() -> None:
    for name, value in (
        ("s8", 128),
        ("s8", -129),
        ("u8", -1),
        ("s4", 8),
        ("u4", 16),
        ("b1", 2),
        ("s32", 2.0**31),
        ("ue4m3", -1.0),
        ("ue8m0", -2.0),
    ):
        with pytest.raises(OperandError, match=name):
            from_float(name, [value])


# Integers and checks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "low", "high"), [("s8", -128, 127), ("u8", 0, 255), ("s4", -8, 7), ("u4", 0, 15), ("b1", 0, 1)]
)
def test_integer_formats(name: str, low: int, high: int) -> None:
    fmt = get_format(name)
    values = np.arange(low, high + 1)
    raw = from_float(fmt, values)
    assert raw.dtype == np.uint8 and np.array_equal(raw, values & ((1 << fmt.bits) - 1))
    assert np.array_equal(to_float(fmt, raw), values)
    for code, value in zip(raw.tolist(), values.tolist(), strict=True):
        number = fmt.decode(code)
        assert (-1) ** number.sign * number.significand == value and (number.kind == Kind.ZERO) == (
            value == 0
        )


@pytest.mark.parametrize("name", ["s4", "u4", "b1", "e3m2", "e2m3", "e2m1"])
def test_check_refuses_bits_above_the_format(name: str) -> None:
    fmt = get_format(name)
    fmt.check(all_codes(fmt), "a")
    wrong = np.zeros((2, 3), np.uint8)
    wrong[1, 2] = 1 << fmt.bits
    with pytest.raises(OperandError, match=rf"'a'\[1, 2\] is {1 << fmt.bits:#x}"):
        fmt.check(wrong, "a")


@pytest.mark.parametrize("name", ["f16", "e4m3", "s8", "f64", "tf32", "ue4m3"])
def test_check_takes_every_code_and_refuses_other_dtypes(name: str) -> None:
    fmt = get_format(name)
    fmt.check(np.array([0, (1 << fmt.storage) - 1], fmt.dtype), "b")
    for dtype in (
        np.int8,
        np.int64,
        np.float16,
        np.float64,
        np.uint32 if fmt.storage != 32 else np.uint16,
        np.bool_,
    ):
        with pytest.raises(DTypeError, match=f"'b' has dtype {np.dtype(dtype)}, expected {fmt.dtype}"):
            fmt.check(np.zeros(3, dtype), "b")


def test_check_of_an_empty_array_passes() -> None:
    get_format("s4").check(np.empty((0, 4), np.uint8), "a")


def test_unknown_formats_name_near_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown format 'e4m4'; nearest: .*e4m3"):
        get_format("e4m4")


def test_value_of_a_nan_is_refused() -> None:
    with pytest.raises(OperandError, match="no rational value"):
        _ = get_format("f16").decode(0x7E00).value


@pytest.mark.parametrize("ignored", [0, 1, 4])
@pytest.mark.parametrize(
    ("specials", "fraction_bits"), [("ieee", 2), ("all_ones_nan", 2), ("all_ones_nan", 0)]
)
def test_the_default_nan_is_one_with_bits_that_are_not_read(
    specials: str, fraction_bits: int, ignored: int
) -> None:
    """The bits that a format ignores move the word up, too: unmoved, it was a number."""
    fmt = Format("odd", True, 16, 5, fraction_bits, 15, specials, ignored_low=ignored)
    assert fmt.nan is not None and fmt.decode(fmt.nan).kind == Kind.NAN


def test_numbers_that_no_double_has_are_rounded_to_the_nearest() -> None:
    """Of formats of one's own: a wider exponent, and a longer fraction."""
    wide, long = Format("e12m51", True, 64, 12, 51, 2047, "ieee"), Format("e10m53", True, 64, 10, 53, 511)
    largest = (2047 + 1024 << 51) - 1
    raw = np.array([largest, largest + 1, 1 << 63 | largest + 1, 1, (2047 - 1075 << 51) + 1], np.uint64)
    assert to_float(wide, raw).tolist() == [2.0**1023 * (2 - 2.0**-51), np.inf, -np.inf, 0, 5e-324]
    ones = np.array([511 << 53, (511 << 53) + 1, (511 << 53) + 3], np.uint64)
    assert to_float(long, ones).tolist() == [1, 1, 1 + 2.0**-51]
