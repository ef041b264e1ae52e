"""Conversion between codes and exact numbers: decoding, special values, and the rounding to a code.

The same as golden/number/formats.py and golden/number/rounding.py, for arrays.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from golden.identify.diagnose.datapath.arrays import Array, low_bits, modulo, shifted, shl, shr, widened
from golden.identify.diagnose.datapath.signals import Numbers, RoundingSignals
from golden.number.formats import Format, Kind
from golden.number.rounding import ROUNDINGS


def decoded(fmt: Format, codes: Array) -> Numbers:
    """Exact numbers of codes (n, terms); Format.decode for arrays."""
    words = codes.astype(np.int64) if fmt.storage < 64 else codes.astype(object)
    none = np.zeros(codes.shape, np.bool_)
    if not fmt.is_float:
        value = words & ((1 << fmt.integer_bits) - 1)
        if fmt.signed and fmt.integer_bits:
            value = np.where(value >> (fmt.integer_bits - 1), value - (1 << fmt.integer_bits), value)
        kind = np.where(value != 0, int(Kind.FINITE), int(Kind.ZERO))
        zeros = np.zeros(codes.shape, np.int64)
        return Numbers(kind, (value < 0).astype(np.bool_), np.abs(value), zeros, zeros, none)
    ones = (1 << fmt.exponent_bits) - 1
    sign = (words >> fmt.sign_shift & 1).astype(np.bool_) if fmt.signed else none
    fraction = words >> fmt.ignored_low & ((1 << fmt.fraction_bits) - 1)
    biased = words >> (fmt.ignored_low + fmt.fraction_bits) & ones
    subnormal = (biased == 0).astype(np.bool_) & (fmt.has_subnormals | ((fraction == 0) & fmt.has_zero))
    exponent = np.where(subnormal, fmt.min_exponent, biased - fmt.bias).astype(np.int64)
    significand = np.where(subnormal, fraction, fraction | 1 << fmt.fraction_bits)
    kind = np.where(significand == 0, int(Kind.ZERO), int(Kind.FINITE))
    top = (biased == ones).astype(np.bool_)
    if fmt.specials == "ieee":
        kind = np.where(top, np.where(fraction != 0, int(Kind.NAN), int(Kind.INFINITY)), kind)
    elif fmt.specials == "all_ones_nan":
        kind = np.where(top & (fraction == (1 << fmt.fraction_bits) - 1), int(Kind.NAN), kind)
    elif fmt.specials == "negative_zero_nan":
        kind = np.where(sign & (significand == 0), int(Kind.NAN), kind)
    # a NaN or an infinity keeps the number that its code would be: a fault may take it for one
    significand = np.where(kind == Kind.ZERO, 0, significand).astype(np.int64)
    return Numbers(kind, sign, significand, exponent, exponent - fmt.fraction_bits, none)


def encoded(
    fmt: Format, numbers: Numbers, nan: int | None, mode: str = "toward_zero", overflow: str = "ieee"
) -> Array:
    """The codes of numbers, most of which a format holds exactly."""
    shape = numbers.lsb.shape
    signals = RoundingSignals(
        fmt,
        numbers.sign,
        np.where(numbers.finite, numbers.significand, 0),
        numbers.lsb,
        mode,
        overflow,
        fmt.fraction_bits,
        np.full(shape, fmt.min_exponent),
        np.full(shape, 1 << 40),
    )
    special = special_code(fmt, numbers.kind, numbers.sign, nan)
    return np.where(numbers.kind >= Kind.INFINITY, special, rounded_codes(signals))


def special_code(fmt: Format, kind: Array, sign: Array, nan: int | None) -> Array:
    """Codes of infinities and NaNs, as golden/model/reference.py gives them."""
    minus = np.asarray(sign).astype(object if fmt.storage > 32 else np.int64)
    word = fmt.largest if nan is None else nan
    if not fmt.is_float:
        ends = np.array([fmt.largest, fmt.least], minus.dtype)  # codes of 64 bits are no int64
        nearest = ends[np.asarray(sign).astype(np.intp)]
        return np.where(np.asarray(kind) == Kind.NAN, word, nearest)
    signed = minus << fmt.sign_shift if fmt.signed else minus * 0
    infinite = fmt.infinity | signed if fmt.infinity is not None else word | (signed if nan is None else 0)
    return np.where(np.asarray(kind) == Kind.NAN, word, infinite)


def rounded_codes(signals: RoundingSignals) -> Array:
    """Codes of a rounding; golden/number/rounding.py for arrays."""
    fmt = signals.fmt
    if not fmt.is_float:
        return _integer_codes(signals)
    # exponent field and fraction as one integer, so that a carry of the fraction raises the exponent
    exact, wide = signals.significand, object if fmt.storage > 32 else np.int64
    digits = _digits(signals, wide)
    sign = signals.sign.astype(wide) << fmt.sign_shift if fmt.signed else np.zeros_like(digits)
    zero_code = np.zeros_like(digits) if fmt.specials == "negative_zero_nan" else sign
    lost = _is_lost(signals, digits)  # of the exponent as it is, also where its field has no room for it
    # overflow is decided on the rounded digits: what rounds up past the largest number overflows
    over, digits = _overflow(signals, digits)
    digits = np.where(lost, 0, digits)
    beyond = signals.nan if signals.overflow == "nan" else sign | _overflow_codes(signals)
    code = np.where(over, beyond, sign | digits << fmt.ignored_low)
    code = np.where(digits == 0, zero_code, code)
    # signs of zeros: an exact zero and a number that was flushed have rules of their own
    nothing = exact == 0 if signals.exact_zero is None else signals.exact_zero
    dropped = ~nothing & (signals.flush == "positive")
    dropped |= signals.zero == "positive"
    dropped |= nothing & (signals.zero == "signed_underflow")
    dropped &= ~(nothing & signals.signed_zero)
    return np.where((digits == 0) & dropped, 0, code)


def _overflow(signals: RoundingSignals, digits: Array) -> tuple[Array, Array]:
    """The results that overflow, and the digits of all: a result that does not keeps its lower bits."""
    fmt = signals.fmt
    end = 1 << fmt.exponent_bits + fmt.fraction_bits
    match signals.overflows:
        case "late":
            return digits >= end, digits
        case "at_infinity":
            over = digits >> fmt.fraction_bits == (1 << fmt.exponent_bits) - 1
            return over, np.where(over, digits, digits % end)
        case "wide":
            return digits % (2 * end) > fmt.largest >> fmt.ignored_low, digits % (2 * end)
        case "never":
            return np.zeros(digits.shape, np.bool_), digits % end
        case _:
            return digits > fmt.largest >> fmt.ignored_low, digits


def _digits(signals: RoundingSignals, wide: type) -> Array:
    """Exponent field and fraction of the rounded magnitudes; too large values run over."""
    fmt, kept, exact = signals.fmt, signals.kept, signals.significand
    exponent = signals.exponent
    cut = exponent - kept - signals.lsb  # round bit and sticky bits lie below this place
    magnitude = _as_seen(exact, cut, signals) if signals.seen is not None or not signals.round_bit else exact
    significand = shifted(signals.sign, magnitude, cut, signals.mode)
    # the hidden bit adds one to the exponent field
    # No step exceeds the exponent field by more of its ranges.
    ranges = 16
    above = np.minimum(exponent - fmt.min_exponent, ranges << fmt.exponent_bits)
    if signals.carry != "kept":
        carried = significand >> (kept + 1) != 0
        left = 0 if signals.carry == "lost_with_hidden_bit" else 1 << kept
        significand = np.where(carried, left, significand)
        if signals.carry == "ored":
            above = np.where(carried, ((above + 1) | 1) - 1, above)
    # a faulty normalisation assumes a leading one where there is none
    above = above + np.where(signals.assumed & (significand >> kept == 0), 1 + signals.field_plus, 0)
    if not fmt.has_subnormals:  # no subnormal numbers either: the least exponent has field 0
        normal = significand >> kept != 0
        significand = np.where(normal, significand - (1 << kept), 0)
    digits = above.astype(wide) << fmt.fraction_bits
    return np.where(exact == 0, 0, digits + (significand << (fmt.fraction_bits - kept))).astype(wide)


def _is_lost(signals: RoundingSignals, digits: Array) -> Array:
    """Nonzero results that become zero: flushed ones, and ones that lose their carry."""
    fmt, normal = signals.fmt, 1 << signals.fmt.fraction_bits
    lost = np.zeros(digits.shape, np.bool_)
    if signals.subnormal_carry == "lost":
        lost |= (signals.leading < fmt.min_exponent) & (digits >= normal)
    if signals.flush == "none" or not fmt.has_subnormals:
        return lost
    lost |= digits < normal
    if signals.tiny == "subnormal_result":
        return lost
    tiny = signals.leading < fmt.min_exponent
    if signals.tiny == "unbounded":
        place = signals.leading - signals.kept - signals.lsb
        rounded = shifted(signals.sign, signals.significand, place, signals.mode)
        tiny &= signals.leading + (rounded >> (signals.kept + 1)) < fmt.min_exponent
    return lost | tiny


def cut_any(signals: RoundingSignals) -> Array:
    """Which numbers a rounding changes."""
    cut = signals.exponent - signals.kept - signals.lsb
    over = signals.leading > signals.fmt.max_exponent
    seen = np.maximum(cut if signals.half_is_inexact else cut - 1, 0)
    lost = low_bits(_as_seen(signals.significand, cut, signals), seen) != 0
    return lost | (over & (signals.significand != 0))


def _as_seen(exact: Array, cut: Array, signals: RoundingSignals) -> Array:
    """The numbers without the cut bits that the rounding ignores."""
    deep = cut >= 2  # there are bits below the round bit
    below = np.maximum(cut - 1, 0)  # bits below the round bit
    seen = below if signals.seen is None else np.minimum(np.maximum(signals.seen, 0), below)
    exact = exact - low_bits(exact, np.where(deep, below - seen, 0))
    if not signals.round_bit and not ROUNDINGS[signals.mode].nearest:
        exact = exact - np.where(cut >= 1, low_bits(exact, below + 1) - low_bits(exact, below), 0)
    return exact


def _overflow_codes(signals: RoundingSignals) -> Array:
    fmt, mode = signals.fmt, signals.overflow_mode or signals.mode
    to_largest = np.full(signals.sign.shape, signals.overflow == "largest" or fmt.infinity is None)
    if signals.overflow == "ieee":
        positive, negative = (ROUNDINGS[mode].keeps_largest(sign) for sign in (0, 1))
        to_largest = to_largest | np.where(signals.sign, negative, positive)
    low = fmt.fraction_bits - signals.kept + fmt.ignored_low
    return np.where(to_largest, fmt.largest >> low << low, fmt.infinity or 0)


def _integer_codes(signals: RoundingSignals) -> Array:
    fmt = signals.fmt
    value = shifted(signals.sign, signals.significand, -signals.lsb, signals.mode)
    value = np.where(signals.sign, -value, value)
    if signals.overflow == "saturate":
        low = -(1 << (fmt.integer_bits - 1)) if fmt.signed else 0
        value = np.minimum(np.maximum(widened(value, fmt.integer_bits), low), fmt.largest)
    return modulo(value, fmt.integer_bits)


def converted(fmt: Format, numbers: Numbers) -> Numbers:
    """Exact numbers in another format, with its exponents."""
    found = decoded(fmt, as_codes(fmt, encoded(fmt, numbers, None)))
    return replace(found, kind=numbers.kind, sign=numbers.sign)


def with_gap(signals: RoundingSignals, gap: int | None) -> Array:
    """The significands for a rounding that ignores the `gap` bits right below the round bit; None: all bits
    below it."""
    cut = signals.exponent - signals.kept - signals.lsb
    below = np.maximum(cut - 1, 0)  # bits below the round bit
    seen = np.zeros_like(below) if gap is None else np.maximum(below - gap, 0)
    unseen = low_bits(signals.significand, below) - low_bits(signals.significand, seen)
    return np.where(cut >= 2, signals.significand - unseen, signals.significand)


def with_random(signals: RoundingSignals, bits: int, random: int) -> tuple[Array, Array]:
    """The numbers after stochastic rounding, as significands and the places of their last bits: cut at the
    last place of the result, or a unit of it longer if the highest `bits` that are cut and the random number
    together reach that unit."""
    place = signals.exponent - signals.kept if signals.fmt.is_float else np.zeros_like(signals.lsb)
    cut = np.maximum(place - signals.lsb, 0)
    low = low_bits(signals.significand, cut)
    highest = shr(shl(low, np.maximum(bits - cut, 0)), np.maximum(cut - bits, 0))
    return shr(signals.significand, cut) + (highest + random >> bits), signals.lsb + cut


def as_codes(fmt: Format, words: Array) -> Array:
    """Words in the dtype of a format's codes; a fault may have made one that is too long."""
    return modulo(words, fmt.storage).astype(fmt.dtype)
