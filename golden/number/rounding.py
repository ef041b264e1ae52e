"""Rounding of exact values to a format's codes, in Python integers.

Everything here works on a sign, an integer magnitude and the exponent of its least significant bit, so no
step can lose a bit unnoticed. Sources: IEEE 754-2019 section 4.3 (modes);
MMA-Sim section IV-C step 5 (result rounding).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from golden.errors import OperandError
from golden.number.formats import Format, Kind, Number

BELOW, TIE, ABOVE = 1, 2, 3
"""What is cut, against half of the last place that is kept."""


@dataclass(frozen=True)
class Rounding:
    """One direction of rounding.

    Attributes:
        name: its word in YAML, and with the prefix MG_ROUNDING_ in the core.
        short: as papers abbreviate it.
        words, note: how text and pictures say it.
        up: whether a magnitude of which something is cut becomes one unit longer, by its sign (1: negative),
            by what is cut (BELOW, TIE, ABOVE) and by the last bit that is kept.
    """

    name: str
    short: str
    words: str
    note: str
    up: Callable[[int, int, int], bool]

    @property
    def nearest(self) -> bool:
        """Whether only a tie is decided by a direction."""
        ends = itertools.product((0, 1), (0, 1))
        return all(self.up(sign, ABOVE, odd) and not self.up(sign, BELOW, odd) for sign, odd in ends)

    def lengthens(self, sign: int) -> bool:
        """Whether a number of this sign can become longer."""
        return any(self.up(sign, cut, odd) for cut in (BELOW, TIE, ABOVE) for odd in (0, 1))

    def carries(self, sign: int) -> bool:
        """Whether a number of this sign that ends in a one can become longer, so that a carry runs up."""
        return any(self.up(sign, cut, 1) for cut in (BELOW, TIE, ABOVE))

    def keeps_largest(self, sign: int) -> bool:
        """Whether a number past the largest one of a format, whose last bit is 1, is the largest instead of
        an infinity (IEEE 754 7.4)."""
        return not self.up(sign, ABOVE, 1)


_TABLE = (
    Rounding("toward_zero", "RZ", "toward zero (cut)", "toward zero (cut)", lambda sign, cut, odd: False),
    Rounding(
        "nearest_even",
        "RNE",
        "to nearest, ties to even",
        "to nearest even",
        lambda sign, cut, odd: cut == ABOVE or (cut == TIE and odd == 1),
    ),
    Rounding(
        "nearest_away",
        "RNA",
        "to nearest, ties away from zero",
        "to nearest, ties away",
        lambda sign, cut, odd: cut >= TIE,
    ),
    Rounding("down", "RD", "down (toward minus infinity)", "down", lambda sign, cut, odd: sign == 1),
    Rounding("up", "RU", "up (toward plus infinity)", "up", lambda sign, cut, odd: sign == 0),
    Rounding(
        "to_odd",
        "RTO",
        "to odd (the last bit is set where anything is cut)",
        "to odd",
        lambda sign, cut, odd: odd == 0,
    ),
    Rounding(
        "nearest_up",
        "RNU",
        "to nearest, ties toward plus infinity (add half, cut the two's complement)",
        "to nearest, ties up",
        lambda sign, cut, odd: cut == ABOVE or (cut == TIE and sign == 0),
    ),
    Rounding(
        "nearest_down",
        "RND",
        "to nearest, ties toward minus infinity",
        "to nearest, ties down",
        lambda sign, cut, odd: cut == ABOVE or (cut == TIE and sign == 1),
    ),
    Rounding(
        "nearest_zero",
        "RNZ",
        "to nearest, ties toward zero",
        "to nearest, ties to zero",
        lambda sign, cut, odd: cut == ABOVE,
    ),
    Rounding(
        "nearest_odd",
        "RNO",
        "to nearest, ties to odd",
        "to nearest odd",
        lambda sign, cut, odd: cut == ABOVE or (cut == TIE and odd == 0),
    ),
    Rounding("away", "RA", "away from zero", "away from zero", lambda sign, cut, odd: True),
)
ROUNDINGS = {one.name: one for one in _TABLE}
"""All directions by name, in the order of the core's enum. IEEE 754-2019 4.3 has the first five; Tables I and
II of MMA-Sim have all but to_odd. In the row of RNU (nearest_up) Table II prints 1 + u for 1 + 1.5u, which
is a misprint: that tie goes up, to 1 + 2u."""
MODES = tuple(ROUNDINGS)
FLOAT_OVERFLOWS = ("infinity", "largest", "ieee", "nan")
INTEGER_OVERFLOWS = ("wrap", "saturate")
OVERFLOWS = (*FLOAT_OVERFLOWS, *INTEGER_OVERFLOWS)


def shift_right(sign: int, magnitude: int, shift: int, mode: str) -> int:
    """Returns round((-1)**sign * magnitude / 2**shift) as a magnitude; a negative shift moves left, exactly.

    `mode` is one of MODES; "to_odd" sets the last bit kept where anything was cut (von Neumann's jamming).
    """
    if shift <= 0:
        return magnitude << -shift
    kept, cut = magnitude >> shift, magnitude & ((1 << shift) - 1)
    if not cut:
        return kept
    half = 1 << (shift - 1)
    part = BELOW if cut < half else TIE if cut == half else ABOVE
    return kept + ROUNDINGS[mode].up(sign, part, kept & 1)


def round_to_code(
    fmt: Format,
    sign: int,
    magnitude: int,
    lsb_exponent: int,
    mode: str,
    overflow: str = "infinity",
    fraction_bits: int | None = None,
    flush: bool = False,
    tiny: str = "subnormal_result",
    nan: int | None = None,
) -> int:
    """Rounds (-1)**sign * magnitude * 2**lsb_exponent to a code of `fmt`.

    Args:
        fraction_bits: significand fraction bits to keep, at most the format's (E8M13 results keep 13 of f32's
            23).
        fmt: a format without a sign drops the sign. A format without a zero gives its least number (code 0)
            for whatever is below it. A format without subnormal numbers gives its zero there.
        overflow: "infinity": a number past the largest finite one, after rounding, becomes infinity whatever
            the mode; "largest": it becomes the largest finite number, which both give in formats without
            infinities; "ieee": by the mode (IEEE 754 7.4); "nan": the word `nan` whatever the sign; "wrap"
            and "saturate" for integers.
        flush: a result that is tiny becomes zero of the same sign.
        tiny: which results are tiny: a result in the subnormal range, before its exponent is rounded up
            ("subnormal_result"); a number that, rounded as if exponents had no lower bound, lies below the
            least normal one ("unbounded"; IEEE 754 7.5, tininess after rounding), or does so itself
            ("before_rounding").
    """
    if not fmt.is_float:
        return _round_to_integer(fmt, sign, magnitude, lsb_exponent, mode, overflow)
    sign_code = sign << fmt.sign_shift if fmt.signed else 0
    zero_code = 0 if fmt.specials == "negative_zero_nan" else sign_code  # there the code of -0 is the NaN
    if magnitude == 0:
        return zero_code
    kept = fmt.fraction_bits if fraction_bits is None else fraction_bits
    leading = magnitude.bit_length() - 1 + lsb_exponent
    if flush and tiny != "subnormal_result" and leading < fmt.min_exponent:
        rounded = shift_right(sign, magnitude, leading - kept - lsb_exponent, mode)
        if tiny == "before_rounding" or leading + (rounded >> (kept + 1)) < fmt.min_exponent:
            return zero_code
    exponent = max(leading, fmt.min_exponent)
    significand = shift_right(sign, magnitude, exponent - kept - lsb_exponent, mode)
    if significand >> (kept + 1):
        significand, exponent = significand >> 1, exponent + 1
    if significand >> kept == 0:
        if flush or significand == 0 or not fmt.has_subnormals:
            return zero_code
        return sign_code | significand << (fmt.fraction_bits - kept + fmt.ignored_low)
    fraction = (significand - (1 << kept)) << (fmt.fraction_bits - kept)
    fields = ((exponent + fmt.bias) << fmt.fraction_bits | fraction) << fmt.ignored_low
    if fields == 0 and fmt.lone_zero:
        return zero_code
    if exponent > fmt.max_exponent or fields > fmt.largest:
        if overflow == "nan" and nan is not None:
            return nan
        return sign_code | _overflow_code(fmt, sign, mode, overflow, fmt.fraction_bits - kept)
    return sign_code | fields


def _overflow_code(fmt: Format, sign: int, mode: str, overflow: str, cut_bits: int) -> int:
    to_largest = overflow == "largest" or fmt.infinity is None
    if overflow == "ieee":
        to_largest = to_largest or ROUNDINGS[mode].keeps_largest(sign)
    if not to_largest and fmt.infinity is not None:
        return fmt.infinity
    return fmt.largest >> (cut_bits + fmt.ignored_low) << (cut_bits + fmt.ignored_low)


def _round_to_integer(
    fmt: Format, sign: int, magnitude: int, lsb_exponent: int, mode: str, overflow: str
) -> int:
    value = shift_right(sign, magnitude, -lsb_exponent, mode)
    value = -value if sign else value
    low = -(1 << (fmt.integer_bits - 1)) if fmt.signed else 0
    if overflow == "saturate":
        value = min(max(value, low), fmt.largest)
    return value & ((1 << fmt.integer_bits) - 1)


def convert(number: Number, fmt: Format) -> Number:
    """Returns `number` as `fmt` holds it (normalised to its exponent range); the conversion must be exact.

    An e4m3 subnormal, say, is a normal f16 number, with another exponent: alignment sees the difference.

    Raises:
        OperandError: the value does not fit the format exactly.
    """
    if number.kind != Kind.FINITE:
        return replace(number, significand=0, exponent=fmt.min_exponent, fraction_bits=fmt.fraction_bits)
    code = round_to_code(fmt, number.sign, number.significand, number.lsb_exponent, "toward_zero")
    converted = fmt.decode(code)
    if converted.kind != Kind.FINITE or converted.value != number.value:
        raise OperandError(f"{float(number.value)} is not exact in {fmt.name}")
    return converted


def encode_fraction(fmt: Format, value: Any, mode: str = "nearest_even") -> int:
    """Returns the code of `fmt` nearest to a number (int, float or Fraction);
    NaN and infinities map to theirs.

    Raises:
        OperandError: the format has no code for an infinity or a NaN.
    """
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        code = fmt.nan if value != value else fmt.infinity
        if code is None:
            raise OperandError(f"{fmt.name} has no code for {value}")
        return code | (int(value < 0) << fmt.sign_shift if value == value else 0)
    negative_zero = isinstance(value, float) and value == 0 and str(value)[0] == "-"
    exact = Fraction(value)
    # Dividing by 2**scale leaves far more bits than any format keeps;
    # the remainder only matters as "not zero".
    scale = min(exact.numerator.bit_length() - exact.denominator.bit_length() - 2, 0) - 128
    magnitude, rest = divmod(abs(exact.numerator) << -scale, exact.denominator)
    return round_to_code(
        fmt, int(exact < 0 or negative_zero), magnitude << 1 | (rest != 0), scale - 1, mode, "saturate"
    )
