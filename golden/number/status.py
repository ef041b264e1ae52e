"""Status flags of one rounding, in exact rationals: what a rounding reports in addition to its code.

The rule in words is in docs/spec-schema.md ("flags"); golden/core/mg_flags.h is its twin.
"""

from __future__ import annotations

from fractions import Fraction

from golden.number.formats import Format, Kind, Number
from golden.number.rounding import shift_right

NOTHING: frozenset[str] = frozenset()
INVALID, INEXACT = frozenset(("invalid",)), frozenset(("inexact",))
OVERFLOW, UNDERFLOW = frozenset(("overflow", "inexact")), frozenset(("underflow", "inexact"))


def is_signalling(fmt: Format, number: Number) -> bool:
    """Whether a decoded operand is a signalling NaN: its highest fraction bit is 0. Formats whose NaN is one
    code have none."""
    ieee = fmt.is_float and fmt.specials == "ieee"
    return ieee and number.kind == Kind.NAN and not number.payload >> 63


def of_rounding(
    fmt: Format,
    number: Number,
    code: int,
    mode: str,
    tiny: str = "subnormal_result",
    fraction_bits: int | None = None,
) -> frozenset[str]:
    """The flags of a rounding.

    Args:
        fmt: what it was rounded to.
        number: what the rounder saw, its sticky bit written out as one more bit.
        code: what was delivered, flushed and saturated as the step says.
        mode, fraction_bits: as in `round_to_code`.
        tiny: when a number is tiny, see the key `tiny` of a step.
    """
    if number.kind >= Kind.INFINITY:
        return NOTHING if fmt.is_float else INVALID
    exact, delivered = number.value, fmt.decode(code)
    if delivered.kind < Kind.INFINITY and delivered.value == exact:
        return NOTHING
    if not fmt.is_float:
        return OVERFLOW if delivered.value != _rounded(number, 0, mode) else INEXACT
    return _of_inexact(fmt, number, mode, tiny, fraction_bits)


def _of_inexact(
    fmt: Format, number: Number, mode: str, tiny: str, fraction_bits: int | None
) -> frozenset[str]:
    """The flags of a float that is not exact."""
    kept = fmt.fraction_bits if fraction_bits is None else fraction_bits
    leading = number.lsb_exponent + number.significand.bit_length() - 1
    unbounded = abs(_rounded(number, leading - kept, mode))
    if unbounded > fmt.decode(fmt.largest).value:
        return OVERFLOW
    least = Fraction(2) ** fmt.min_exponent
    size = {
        "before_rounding": abs(number.value),
        "unbounded": unbounded,
        "subnormal_result": abs(_rounded(number, max(leading, fmt.min_exponent) - kept, mode)),
    }[tiny]
    return UNDERFLOW if size < least else INEXACT


def _rounded(number: Number, last: int, mode: str) -> Fraction:
    """The number as a multiple of 2**last, whatever its size."""
    if number.lsb_exponent >= last:
        return number.value
    magnitude = shift_right(number.sign, number.significand, last - number.lsb_exponent, mode)
    return Fraction(-magnitude if number.sign else magnitude) * Fraction(2) ** last
