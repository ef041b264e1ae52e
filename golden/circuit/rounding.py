"""Rounding in a circuit: to a number of places, and to the codes of a format with its status flags.

Whatever is cut is seen as two bits: the highest of it (`half`) and whether anything lies below that (`rest`).
From them, the sign and the last bit kept, every direction of golden/number/rounding.py says whether the
magnitude becomes one unit longer.
"""

from __future__ import annotations

from dataclasses import dataclass

from golden.circuit.numbers import Builder, Number, refuse
from golden.circuit.words import Word
from golden.number.formats import Format, Kind
from golden.number.rounding import ABOVE, BELOW, ROUNDINGS, TIE


@dataclass(frozen=True)
class Rule:
    """How a number is rounded to a format: the keys of the steps that do it."""

    format: Format
    rounding: str
    overflow: str
    kept: int
    flush: str = "none"
    tiny: str = "subnormal_result"
    nan: int | None = None
    zero: str = "signed"
    subnormal_carry: str = "kept"
    unseen: int = 0
    """Bits right below the round bit that the rounding does not see; -1: it sees none of the lower bits."""
    random: tuple[int, int] | None = None
    """Stochastic rounding: how many of the bits that are cut are looked at, and what is added to them."""

    @property
    def looked_at(self) -> int:
        """Bits right below the round bit that have to be there one by one."""
        return self.random[0] if self.random else max(self.unseen, 0)


def increment(build: Builder, rounding: str, sign: Word, odd: Word, half: Word, rest: Word) -> Word:
    """Whether a magnitude of which something is cut becomes one unit longer.

    The table of the direction has a row for each of below, tie and above; each row is a constant, or the sign
    or the last bit kept decides.
    """
    words, up = build.words, ROUNDINGS[rounding].up

    def row(part: int) -> Word:
        plus, minus = (int(up(0, part, bit)) for bit in (0, 1)), (int(up(1, part, bit)) for bit in (0, 1))
        even, uneven = zip(plus, minus, strict=True)
        of_sign = [
            words.choose(sign, *(words.constant(bit, 1) for bit in reversed(pair))) for pair in (even, uneven)
        ]
        return words.choose(odd, of_sign[1], of_sign[0])

    below, tie, above = row(BELOW), row(TIE), row(ABOVE)
    if below is tie is above:  # a directed rounding
        return words.both(words.either(half, rest), above)
    if below.constant == 0 and above.constant == 1:  # to nearest
        return words.both(half, words.either(rest, tie))
    exact_half = words.both(half, words.invert(rest))
    return build.any_of(
        words.both(condition, part)
        for condition, part in (
            (words.both(words.invert(half), rest), below),
            (exact_half, tie),
            (words.both(half, rest), above),
        )
    )


def below_mask(build: Builder, word: Word, amount: Word) -> Word:
    """The bits of a word that a right shift by `amount` cuts."""
    words = build.words
    ones = words.constant(-1, word.width)
    return words.both(word, words.invert(words.shift_left(ones, amount)))


def shifted(build: Builder, sign: Word, word: Word, amount: Word, rounding: str) -> Word:
    """round((-1)**sign * word / 2**amount) as a magnitude of one bit more; see rounding.shift_right."""
    words = build.words
    if rounding == "toward_zero":
        return words.extend(words.shift_right(word, amount), word.width + 1)
    longer = build.pad(word, 1)  # one place below: the round bit
    moved = words.shift_right(longer, amount)
    half = words.bit(moved, 0)
    kept = words.extract(moved, 1)
    cut = below_mask(build, longer, amount)
    # What lies below the round bit: cut from `longer`, whose lowest bit is an appended zero.
    rest = words.nonzero(cut)
    up = increment(build, rounding, sign, words.bit(kept, 0), half, rest)
    wide = words.extend(kept, word.width + 1)
    return words.add(wide, words.extend(up, word.width + 1))


def jammed(build: Builder, word: Word, amount: Word) -> Word:
    """word / 2**amount, one bit longer: the lowest bit says whether anything was cut."""
    words = build.words
    return words.concat(words.shift_right(word, amount), words.nonzero(below_mask(build, word, amount)))


def to_code(build: Builder, number: Number, rule: Rule) -> Word:
    """The code of a number, infinities and NaNs included. Its sticky bit has to be part of it already."""
    fmt, words = rule.format, build.words
    rounded = to_float(build, number, rule) if fmt.is_float else to_integer(build, number, rule)
    special = words.either(number.nan, number.infinity)
    build.mark("result", rounded)
    if not fmt.is_float:
        build.raise_flag("invalid", special)
    return words.choose(special, build.special_code(fmt, number, rule.nan), rounded)


# Floats -----------------------------------------------------------------------------------------------------


def to_float(build: Builder, number: Number, rule: Rule) -> Word:
    """The code of a finite number in a float format; see rounding.round_to_code."""
    fmt, words, kept = rule.format, build.words, rule.kept
    special = words.either(number.nan, number.infinity)
    if build.flags_wanted and not (fmt.signed and fmt.has_zero):
        raise refuse(f"flags of a result in {fmt.name}, which has no sign or no zero", "round", "flags")
    nonzero = words.nonzero(number.magnitude)
    sign = number.sign if rule.zero != "signed" and number.zero_sign is not None else build.sign_of(number)

    magnitude, top, least_top = _raised(build, number, rule)
    build.mark("magnitude", magnitude)
    build.mark("top", top)
    # Left-justified, but for numbers below the least normal one: the highest bit weighs 2**exponent.
    leading = words.sub(top, build.leading_zeros(magnitude))
    exponent = leading
    if least_top - magnitude.width + 1 < fmt.min_exponent:
        exponent = build.larger(leading, build.exponent(fmt.min_exponent))
    build.mark("result_exponent", exponent)
    seen = max(rule.unseen, 0)
    magnitude = build.pad(magnitude, kept + rule.looked_at + 3 - magnitude.width)
    normalized = words.shift_left(magnitude, words.sub(top, exponent))
    build.mark("normalized", normalized)
    width = normalized.width
    lead = words.bit(normalized, width - 1)
    fraction = build.cut(normalized, width - 1 - kept, kept)
    odd = lead if kept == 0 else words.bit(normalized, width - 1 - kept)
    half = words.bit(normalized, width - 2 - kept)
    lower = build.cut(normalized, 0, width - 2 - kept - seen)
    rest = build.no if lower is None or rule.unseen < 0 else words.nonzero(lower)
    up = increment(build, rule.rounding, sign, odd, half, rest)
    if rule.random:
        bits, random = rule.random
        highest = words.extract(normalized, width - 1 - kept - bits, bits)
        # highest + random reaches 2^bits: a comparison with a constant, and no addition
        up = words.less(words.constant((1 << bits) - 1 - random, bits), highest)

    full = build.yes if fraction is None else words.equal(fraction, words.constant(-1, kept))
    carried = words.both(up, full)

    # One addition rounds the fraction and carries into the exponent: a subnormal number can become normal.
    field = build.plus(exponent, fmt.bias)
    field = words.choose(lead, field, build.exponent(0))
    packed = build.join(field, fraction)
    if not fmt.has_subnormals:  # what rounds up to the least normal number has code 0 either way
        up = words.both(up, lead)
    result = words.add(packed, words.extend(up, packed.width))
    build.mark("rounded", result)

    small = words.invert(lead)
    tiny = _tiny(build, rule, normalized, small, carried, sign)
    flushed = build.no
    if rule.flush != "none":
        # subnormal_result asks after the rounding; the other two ask the number, and what rounds into the
        # subnormal range is flushed with all three.
        flushed = words.either(tiny, words.both(small, words.invert(carried)))
    if rule.subnormal_carry == "lost":
        flushed = words.either(flushed, words.both(small, carried))
    if not fmt.has_subnormals:
        flushed = words.either(flushed, small)
    result = words.choose(flushed, words.constant(0, result.width), result)

    # Past the largest number.
    largest = (fmt.largest >> fmt.ignored_low) >> (fmt.fraction_bits - kept)
    over = words.less(words.constant(largest, result.width), result)
    build.mark("overflow", over)
    body = words.extract(result, 0, fmt.exponent_bits + kept)
    places = fmt.fraction_bits - kept + fmt.ignored_low
    code = words.extend(build.pad(body, places), fmt.bits)
    code = words.choose(over, _past_largest(build, rule, sign), code)

    is_zero = words.invert(words.nonzero(result))
    if fmt.has_zero:
        drops = {
            "positive": build.yes,
            "signed_underflow": words.invert(nonzero),
            "signed": build.no,
        }[rule.zero]
        if rule.flush == "positive":
            drops = words.either(drops, nonzero)
        if fmt.specials == "negative_zero_nan":  # the code of -0 is the NaN
            drops = build.yes
        sign = words.both(sign, words.invert(words.both(is_zero, drops)))
    code = build.with_sign(fmt, sign, code)
    if rule.overflow == "nan":
        word = fmt.largest if rule.nan is None else rule.nan
        if fmt.is_float and fmt.decode(word).kind == Kind.ZERO:
            raise refuse(f"{word:#x} is a zero", "round", "nan")
        code = words.choose(over, words.constant(word, fmt.bits), code)
    if build.flags_wanted:  # what the rounding does not see is not missed; see golden/number/status.py
        counts = words.nonzero(_seen(build, normalized, rule)) if rule.unseen else nonzero
        changed = build.any_of([half, rest, over, words.both(is_zero, counts)])
        inexact = build.all_of([changed, nonzero, words.invert(special)])
        build.raise_flag("inexact", inexact)
        build.raise_flag("overflow", words.both(inexact, over))
        build.raise_flag("underflow", build.all_of([inexact, tiny, words.invert(over)]))
    return code


def _raised(build: Builder, number: Number, rule: Rule) -> tuple[Word, Word, int]:
    """The magnitude with places above it for numbers that lie below the format's least normal one.

    Returns:
        The magnitude, the exponent of its highest bit, and the least value of that.
    """
    words, magnitude, fmt = build.words, number.magnitude, rule.format
    above = number.offset + number.width - 1
    least = number.reach[0] + above
    room = fmt.min_exponent - least
    top = build.plus(number.base, above)
    if room <= 0:
        return magnitude, top, least
    # Places above a number into which it is moved by wires; farther down a shifter moves it.
    most_room = 16
    if room <= most_room:
        return (
            words.extend(magnitude, magnitude.width + room),
            build.plus(number.base, above + room),
            least + room,
        )
    # Far below: a shifter moves it up to the least normal exponent, and keeps what falls off in its last bit.
    lowest = build.exponent(fmt.min_exponent)
    deep = words.less_signed(top, lowest)
    amount = words.choose(deep, words.sub(lowest, top), build.exponent(0))
    magnitude = build.pad(magnitude, rule.kept + rule.looked_at + 3 - magnitude.width)
    return jammed(build, magnitude, amount), build.larger(top, lowest), fmt.min_exponent


def _tiny(build: Builder, rule: Rule, normalized: Word, small: Word, carried: Word, sign: Word) -> Word:
    """Whether a number is tiny, as the key `tiny` says."""
    words, kept, width = build.words, rule.kept, normalized.width
    if rule.tiny == "before_rounding":
        return small
    if rule.tiny == "subnormal_result":
        return words.both(small, words.invert(carried))
    # Rounded as if exponents had no lower bound: only a number of half the least normal one or more can reach
    # it, and then one bit more is kept than in the subnormal range.
    kept_bits = words.extract(normalized, width - 2 - kept, kept + 1)
    half = words.bit(normalized, width - 3 - kept) if rule.unseen == 0 else build.no
    lower = build.cut(normalized, 0, width - 3 - kept - max(rule.unseen - 1, 0))
    rest = build.no if lower is None or rule.unseen < 0 else words.nonzero(lower)
    up = increment(build, rule.rounding, sign, words.bit(kept_bits, 0), half, rest)
    reaches = words.both(words.equal(kept_bits, words.constant(-1, kept_bits.width)), up)
    return words.both(small, words.invert(reaches))


def _past_largest(build: Builder, rule: Rule, sign: Word) -> Word:
    """What stands for a number past the largest one, without its sign."""
    fmt, words, mode = rule.format, build.words, ROUNDINGS[rule.rounding]
    cut = fmt.fraction_bits - rule.kept + fmt.ignored_low
    largest = words.constant(fmt.largest >> cut << cut, fmt.bits)
    if fmt.infinity is None or rule.overflow == "largest":
        return largest
    infinity = words.constant(fmt.infinity, fmt.bits)
    if rule.overflow != "ieee":
        return infinity
    of_sign = [largest if mode.keeps_largest(one) else infinity for one in (0, 1)]
    return words.choose(sign, of_sign[1], of_sign[0])


def _seen(build: Builder, normalized: Word, rule: Rule) -> Word:
    """The bits that the rounding sees."""
    words, width, seen = build.words, normalized.width, max(rule.unseen, 0)
    lower = None if rule.unseen < 0 else build.cut(normalized, 0, width - 2 - rule.kept - seen)
    return build.join(words.extract(normalized, width - 2 - rule.kept), lower)


# Integers ---------------------------------------------------------------------------------------------------


def to_integer(build: Builder, number: Number, rule: Rule) -> Word:
    """The code of a finite number in an integer format; see rounding._round_to_integer."""
    fmt, words = rule.format, build.words
    if rule.unseen:
        raise refuse("the result is an integer", "round", "sticky")
    value, exact = _integer(build, number, rule.rounding)
    build.mark("whole", value)
    low = -(1 << (fmt.integer_bits - 1)) if fmt.signed else 0
    width = max(value.width, fmt.integer_bits + 1) + 1
    wide = words.extend_signed(value, width)
    below = words.less_signed(wide, words.constant(low, width))
    over = words.less_signed(words.constant(fmt.largest, width), wide)
    outside = words.either(below, over)
    code = words.extend(wide, fmt.integer_bits)
    if rule.overflow == "saturate":
        limit = words.choose(
            below, words.constant(low, fmt.integer_bits), words.constant(fmt.largest, fmt.integer_bits)
        )
        code = words.choose(outside, limit, code)
    build.mark("rounded", code)
    finite = words.invert(words.either(number.nan, number.infinity))
    build.raise_flag("overflow", words.both(finite, outside))
    build.raise_flag("inexact", words.both(finite, words.either(outside, words.invert(exact))))
    return words.extend(code, fmt.bits)


def _integer(build: Builder, number: Number, rounding: str) -> tuple[Word, Word]:
    """The number rounded to an integer, in two's complement, and whether it was one."""
    words = build.words
    place = number.base.constant
    if place is not None:
        place = _as_signed(place, build.exponent_bits) + number.offset
        if place >= 0:
            return build.signed(number, number.width + place + 1, number.offset - place), build.yes
    # To the left as far as the largest number needs, then to the right by what is less.
    room = max(number.reach[1] + number.offset, 0)
    wide = build.pad(number.magnitude, room)
    amount = words.sub(build.exponent(room - number.offset), number.base)
    kept = shifted(build, number.sign, wide, amount, rounding)
    exact = words.invert(words.nonzero(below_mask(build, wide, amount)))
    long = words.extend(kept, kept.width + 1)
    return words.choose(number.sign, words.neg(long), long), exact


def _as_signed(value: int, width: int) -> int:
    return value - (value >> (width - 1) << width)
