"""Numbers as text: exact, as m*2^e or as decimals."""

from __future__ import annotations

from fractions import Fraction

from golden.number.formats import Format, Kind, Number


def code_text(fmt: Format, code: int) -> str:
    """A raw code in hex, as wide as the format, as code."""
    return f"`{hex_text(fmt, code)}`"


def hex_text(fmt: Format, code: int) -> str:
    """A raw code in hex, as wide as the format."""
    return f"0x{code:0{(fmt.bits + 3) // 4}x}"


def power_text(number: Number) -> str:
    """A number as m*2^e with m odd, exact: "7*2^-9"; zeros and specials in words."""
    sign = "-" if number.sign else ""
    if number.kind != Kind.FINITE:
        return {Kind.ZERO: f"{sign}0", Kind.INFINITY: f"{sign}Inf", Kind.NAN: "NaN"}[number.kind]
    low = number.significand & -number.significand
    odd, exponent = number.significand // low, number.lsb_exponent + low.bit_length() - 1
    if exponent == 0:
        return f"{sign}{odd}"
    return f"{sign}2^{exponent}" if odd == 1 else f"{sign}{odd}*2^{exponent}"


def times_power(exponent: int) -> str:
    """How often a number is there that is multiplied by 2**exponent: "twice", "half", "2^4 times"."""
    return {1: "twice", -1: "half"}.get(exponent, f"2^{exponent} times")


def decimal_text(number: Number) -> str:
    """A number as an exact decimal; where that has too many digits, six of them behind ≈."""
    if number.kind != Kind.FINITE:
        return power_text(number)
    value = number.value
    # Up to this many digits after the point a decimal is written out in full.
    decimals = 24
    if abs(value) < 1 << 64 and value.denominator.bit_length() - 1 <= decimals:
        return _exact_decimal(value)
    return f"≈ {float(value):.6g}"


def _exact_decimal(value: Fraction) -> str:
    places = value.denominator.bit_length() - 1  # the denominator is a power of two: this many decimal places
    digits = f"{abs(value.numerator) * 5**places:0{places + 1}d}"
    whole, rest = digits[: len(digits) - places], digits[len(digits) - places :]
    return ("-" if value < 0 else "") + (f"{whole}.{rest}" if places else whole)


def short_text(number: Number) -> str:
    """The decimal if it is short, else m*2^e."""
    decimal = decimal_text(number)
    return decimal if len(decimal) <= 7 and not decimal.startswith("≈") else power_text(number)


def both_text(number: Number) -> str:
    """m*2^e with its decimal."""
    decimal, power = decimal_text(number), power_text(number)
    return power if decimal == power else f"{power} = {decimal}".replace("= ≈", "≈")
