"""Numbers in a circuit: what golden/number/formats.py calls a Number, as words.

    value = (-1)**sign * magnitude * 2**(base + offset)

A base is a word and an offset a Python integer, so that two numbers of one base lie in one frame and can be
added without a shifter. The rules follow golden/model/reference.py, line by line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from golden.circuit.words import CircuitError, Word, Words
from golden.number.formats import Format, Kind


@dataclass(frozen=True)
class Number:
    """One number. Where `nan` or `infinity` is set, whatever else it holds means nothing.

    Attributes:
        zero: a zero, which takes no part in alignment. A number that has lost its bits is no zero.
        sign: of a number with bits.
        magnitude, base, offset: see above; `base` is a two's complement word.
        exponent: what alignment compares.
        reach: least and greatest value of `base` in a finite number.
        zero_sign: of a number without bits, where it is not `sign`.
        twos: (-1)**sign * magnitude in two's complement, where that is the form it was made in.
        sticky: whether bits below `last` were cut and their OR is carried along.
        last: base and offset of the last place, below which the sticky bit lies; None: the magnitude's.
        payload: fraction of a NaN, the highest bit first.
        code: a format and the decoded word, as long as the number is unchanged.
    """

    nan: Word
    infinity: Word
    zero: Word
    sign: Word
    magnitude: Word
    base: Word
    offset: int
    exponent: Word
    reach: tuple[int, int]
    zero_sign: Word | None = None
    twos: Word | None = None
    sticky: Word | None = None
    last: tuple[Word, int] | None = None
    payload: Word | None = None
    code: tuple[Format, Word] | None = None

    @property
    def width(self) -> int:
        """Bits of the magnitude."""
        return self.magnitude.width

    @property
    def last_place(self) -> tuple[Word, int]:
        """Base and offset of the last place."""
        return self.last or (self.base, self.offset)


class Builder:
    """Makes numbers and keeps what a circuit says about them.

    Attributes:
        words: the table.
        exponent_bits: of every exponent: any one of the program and any difference of two fits.
        named: the words that have a name.
        points: named words in the order in which they were made, with the step that made them.
        codes: points that are codes, results of a step that later ones or the ports take.
        facts: named conditions that hold for all operands.
        raised: status flags and when they are raised.
        ended: whether the operation has its result already.
        flags_wanted: whether the unit has status flags.
        reads_zeros: whether a step of the operation looks at the exponents of zeros.
    """

    def __init__(self, words: Words, exponent_bits: int) -> None:
        self.words, self.exponent_bits = words, exponent_bits
        self.points: dict[str, Word] = {}
        self.codes: set[Word] = set()
        self.named: set[Word] = set()
        self._intervals: dict[int, tuple[int, int]] = {}
        self.places: dict[str, tuple[int, int]] = {}
        self.facts: list[tuple[str, Word]] = []
        self.step: tuple[int, int] = (0, 0)
        self.prefix = ""
        self.raised: list[tuple[str, Word]] = []
        self.ended: Word = words.constant(0, 1)
        self.flags_wanted = False
        self.reads_zeros = False

    # What is said of words ----------------------------------------------------------------------------------

    def mark(self, name: str, word: Word) -> Word:
        """Names a word; the first name of a word and the first word of a name stay."""
        name = self.prefix + name
        if word.constant is None and word.op != "var" and not (name in self.points or word in self.named):
            self.points[name] = word
            self.named.add(word)
            self.places[name] = self.step
        return word

    def code(self, name: str, word: Word) -> Word:
        """Names a code."""
        self.codes.add(word)
        return self.mark(name, word)

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """Points made inside belong to one value."""
        before, self.prefix = self.prefix, f"{self.prefix}{name}."
        yield
        self.prefix = before

    def fact(self, name: str, condition: Word) -> None:
        """Says that a condition holds for all operands."""
        if condition.constant != 1:
            self.facts.append((self.prefix + name, condition))

    def raise_flag(self, name: str, condition: Word) -> None:
        """Raises a status flag, unless the operation has ended before."""
        if self.flags_wanted:
            self.raised.append((name, self.words.both(condition, self.words.invert(self.ended))))

    # Exponents ----------------------------------------------------------------------------------------------

    def exponent(self, value: int) -> Word:
        """An exponent that is known."""
        return self.words.constant(value, self.exponent_bits)

    def plus(self, exponent: Word, more: int) -> Word:
        """exponent + more."""
        return self.words.add(exponent, self.exponent(more))

    def larger(self, x: Word, y: Word) -> Word:
        """The larger of two exponents."""
        return x if x is y else self.words.choose(self.words.less_signed(x, y), y, x)

    def largest(self, exponents: Sequence[Word]) -> Word:
        """The largest exponent, by a balanced tree."""
        left = list(exponents)
        while len(left) > 1:
            left = [
                self.larger(*left[i : i + 2]) if i + 1 < len(left) else left[i]
                for i in range(0, len(left), 2)
            ]
        return left[0]

    def say_range(self, name: str, exponent: Word) -> None:
        """Says between which values an exponent lies, of infinities and NaNs too."""
        words, (low, high) = self.words, self.interval(exponent)
        most = 1 << (self.exponent_bits - 1)
        if exponent.constant is None and -most <= low and high < most:
            above = words.invert(words.less_signed(exponent, self.exponent(low)))
            below = words.invert(words.less_signed(self.exponent(high), exponent))
            self.fact(f"range_{name}", words.both(above, below))

    def interval(self, word: Word) -> tuple[int, int]:
        """The least and the greatest number of a two's complement word, as far as its structure says it."""
        found = self._intervals.get(word.number)
        if found is None:
            found = self._intervals[word.number] = self._interval(word)
        return found

    def _interval(self, word: Word) -> tuple[int, int]:
        half = 1 << (word.width - 1)
        if word.constant is not None:
            value = word.constant - (word.constant >> (word.width - 1) << word.width)
            return value, value
        if word.op == "concat" and word.args[0].constant == 0:
            return 0, (1 << word.args[1].width) - 1
        if word.op == "add":
            pairs = [self.interval(arg) for arg in word.args]
            low, high = (sum(ends) for ends in zip(*pairs, strict=True))
            if -half <= low and high < half:
                return low, high
        if word.op == "ite":
            condition, *chosen = word.args
            ends = [self.interval(arg) for arg in chosen]
            if condition.op == "slt" and condition.args == (chosen[1], chosen[0]):  # the larger of the two
                return max(low for low, _ in ends), max(high for _, high in ends)
            return min(low for low, _ in ends), max(high for _, high in ends)
        return -half, half - 1

    # Bits ---------------------------------------------------------------------------------------------------

    @property
    def no(self) -> Word:
        """The constant 0 of one bit."""
        return self.words.constant(0, 1)

    @property
    def yes(self) -> Word:
        """The constant 1 of one bit."""
        return self.words.constant(1, 1)

    def any_of(self, conditions: Iterable[Word]) -> Word:
        """Whether one of the conditions holds."""
        return self.words.any_of([self.no, *conditions])

    def all_of(self, conditions: Iterable[Word]) -> Word:
        """Whether all of the conditions hold."""
        return self.words.all_of([self.yes, *conditions])

    def join(self, *pieces: Word | None) -> Word:
        """The pieces side by side, the highest first; None is a piece of no bits."""
        return self.words.concat(*[piece for piece in pieces if piece is not None])

    def cut(self, word: Word, low: int, width: int) -> Word | None:
        """Bits of a word; None: no bits."""
        return self.words.extract(word, low, width) if width > 0 else None

    def pad(self, word: Word, zeros: int) -> Word:
        """The word with zeros below it."""
        return self.words.concat(word, self.words.constant(0, zeros)) if zeros > 0 else word

    def signed(self, number: Number, width: int, offset: int) -> Word:
        """The number in two's complement, bit 0 at `base + offset`, which is not above its own lowest bit."""
        below, words = number.offset - offset, self.words
        if number.twos is not None:
            return words.extend_signed(self.pad(number.twos, below), width)
        wide = words.extend(self.pad(number.magnitude, below), width)
        return words.choose(number.sign, words.neg(wide), wide)

    def sign_of(self, number: Number) -> Word:
        """The sign, of a zero too."""
        if number.zero_sign is None:
            return number.sign
        return self.words.choose(self.words.nonzero(number.magnitude), number.sign, number.zero_sign)

    def finite(self, number: Number) -> Word:
        """Whether the number is neither an infinity nor a NaN, and takes part in alignment."""
        words = self.words
        return words.invert(words.any_of([number.zero, number.nan, number.infinity]))

    def chosen(self, condition: Word, then: Number, other: Number) -> Number:
        """One of two numbers in one frame."""
        assert then.base is other.base or then.code or other.code or then.offset == other.offset
        words, offset = self.words, min(then.offset, other.offset)
        sides = [self.pad(one.magnitude, one.offset - offset) for one in (then, other)]
        width = max(side.width for side in sides)

        def pick(x: Word, y: Word) -> Word:
            return words.choose(condition, x, y)

        payload = None
        if then.payload is not None or other.payload is not None:
            payload = pick(*self._payloads(then.payload, other.payload))
        return Number(
            pick(then.nan, other.nan),
            pick(then.infinity, other.infinity),
            pick(then.zero, other.zero),
            pick(self.sign_of(then), self.sign_of(other)),
            pick(*(words.extend(side, width) for side in sides)),
            pick(then.base, other.base),
            offset,
            pick(then.exponent, other.exponent),
            (min(then.reach[0], other.reach[0]), max(then.reach[1], other.reach[1])),
            payload=payload,
            code=other.code if then.nan.constant == 1 else None,
        )

    def _payloads(self, *payloads: Word | None) -> list[Word]:
        width = max(one.width for one in payloads if one is not None)
        return [
            self.words.constant(0, width) if one is None else self.pad(one, width - one.width)
            for one in payloads
        ]

    def with_sticky(self, number: Number) -> Number:
        """The number as a step sees it that cuts or rounds: its sticky bit is one more bit, below the last
        place."""
        if number.sticky is None:
            return number
        words, (last, offset) = self.words, number.last_place
        if last is number.base:
            place = number.offset - (offset - 1)  # how far the sticky bit lies below the lowest bit
            magnitude = self.pad(number.magnitude, max(place, 0))
            bit = words.extend(self.pad(number.sticky, max(-place, 0)), magnitude.width)
            below = max(place, 0)
        else:
            # The last place moves against the frame: the bit is shifted to where it lies, one place of room
            # being below the frame. Below that it counts as the lowest bit: so does all else that was cut.
            magnitude, below = self.pad(number.magnitude, 1), 1
            amount = self.plus(words.sub(last, number.base), offset - number.offset)
            beneath = words.less_signed(amount, self.exponent(0))
            amount = words.choose(beneath, self.exponent(0), amount)
            bit = words.shift_left(words.extend(number.sticky, magnitude.width), amount)
        return replace(
            number,
            magnitude=words.either(magnitude, bit),
            offset=number.offset - below,
            sign=self.sign_of(number),
            zero_sign=None,
            twos=None,
            sticky=None,
            last=None,
            code=None,
        )

    # Codes --------------------------------------------------------------------------------------------------

    def decode(self, fmt: Format, code: Word) -> Number:
        """What a code means."""
        if not fmt.bits:  # stands for an operand that the unit does not have: the one code of ONE or NOTHING
            known, point = fmt.decode(0), self.exponent(0)
            zero = self.words.constant(int(known.kind == Kind.ZERO), 1)
            magnitude = self.words.constant(known.significand, 1)
            return Number(self.no, self.no, zero, self.no, magnitude, point, 0, point, (0, 0))
        return self._decoded_float(fmt, code) if fmt.is_float else self._decoded_integer(fmt, code)

    def _decoded_float(self, fmt: Format, code: Word) -> Number:
        words, bits = self.words, fmt.fraction_bits
        sign = words.bit(code, fmt.sign_shift) if fmt.signed else self.no
        field = self.cut(code, fmt.ignored_low + bits, fmt.exponent_bits)
        fraction = self.cut(code, fmt.ignored_low, bits)
        assert field is not None, "a float has an exponent field"
        fields = self.join(field, fraction)
        empty = self.no if fraction is None else words.nonzero(fraction)
        ones = words.equal(field, words.constant(-1, field.width))
        nan = infinity = self.no
        if fmt.specials == "ieee":
            nan, infinity = words.both(ones, empty), words.both(ones, words.invert(empty))
        elif fmt.specials == "all_ones_nan":
            nan = words.equal(fields, words.constant(-1, fields.width))
        elif fmt.specials == "negative_zero_nan":
            nan = words.both(sign, words.invert(words.nonzero(fields)))
        exponent = self.plus(words.extend(field, self.exponent_bits), -fmt.bias)
        hidden = self.yes
        if fmt.has_subnormals:
            hidden = words.nonzero(field)
            exponent = words.choose(hidden, exponent, self.exponent(fmt.min_exponent))
        elif fmt.has_zero:  # code 0 alone has no hidden bit
            hidden = words.nonzero(fields)
        magnitude = self.join(hidden, fraction)
        zero = words.invert(words.nonzero(magnitude)) if fmt.has_zero else self.no
        reach = fmt.min_exponent, max(fmt.max_exponent, fmt.min_exponent)
        return Number(
            nan, infinity, zero, sign, magnitude, exponent, -bits, exponent, reach,
            payload=fraction, code=(fmt, code),
        )  # fmt: skip

    def _decoded_integer(self, fmt: Format, code: Word) -> Number:
        words, value = self.words, self.words.extract(code, 0, fmt.integer_bits)
        sign = words.bit(value, value.width - 1) if fmt.signed else self.no
        magnitude = words.choose(sign, words.neg(value), value)
        twos = value if fmt.signed else words.extend(value, value.width + 1)
        zero, point = words.invert(words.nonzero(value)), self.exponent(0)
        return Number(
            self.no, self.no, zero, sign, magnitude, point, 0, point, (0, 0), twos=twos, code=(fmt, code)
        )

    def signalling(self, fmt: Format, number: Number) -> Word:
        """Whether a decoded operand is a signalling NaN."""
        if fmt.is_float and fmt.specials == "ieee" and number.payload is not None:
            quiet = self.words.bit(number.payload, number.payload.width - 1)
            return self.words.both(number.nan, self.words.invert(quiet))
        return self.no

    def special_code(self, fmt: Format, number: Number, nan: int | None) -> Word:
        """The code of an infinity or a NaN; see reference._special_code."""
        words = self.words
        of_nan = words.constant(fmt.largest if nan is None else nan, fmt.bits)
        if not fmt.is_float:
            ends = (words.constant(code, fmt.bits) for code in (fmt.least, fmt.largest))
            of_infinity = words.choose(number.sign, *ends)
        elif fmt.infinity is not None:
            of_infinity = self.with_sign(fmt, number.sign, words.constant(fmt.infinity, fmt.bits))
        elif nan is not None:
            of_infinity = of_nan
        else:
            of_infinity = self.with_sign(fmt, number.sign, words.constant(fmt.largest, fmt.bits))
        return words.choose(number.nan, of_nan, of_infinity)

    def with_sign(self, fmt: Format, sign: Word, code: Word) -> Word:
        """A code whose sign bit, 0 so far, is `sign`."""
        if fmt.sign_shift < 0:
            return code
        above = fmt.bits - 1 - fmt.sign_shift
        return self.join(self.cut(code, fmt.sign_shift + 1, above), sign, self.cut(code, 0, fmt.sign_shift))

    def nan_code(self, fmt: Format, number: Number, quieted: bool) -> Word:
        """The code of a NaN that is handed on with its payload."""
        words, bits = self.words, fmt.fraction_bits
        assert number.payload is not None, "checks.py: only formats with a payload hand one on"
        payload = self.pad(number.payload, bits - number.payload.width)
        payload = words.extract(payload, payload.width - bits, bits)
        if quieted:
            payload = words.either(payload, words.constant(1 << (bits - 1), bits))
        code = self.join(words.constant(-1, fmt.exponent_bits), self.pad(payload, fmt.ignored_low))
        return self.with_sign(fmt, self.sign_of(number), words.extend(code, fmt.bits))

    # Products -----------------------------------------------------------------------------------------------

    def moved(self, number: Number, places: int) -> Number:
        """The number times 2**places."""
        low, high = number.reach
        last = number.last and (self.plus(number.last[0], places), number.last[1])
        return replace(
            number, base=self.plus(number.base, places), exponent=self.plus(number.exponent, places),
            reach=(low + places, high + places), last=last, code=None,
        )  # fmt: skip

    def product(self, x: Number, y: Number, zero_times_infinity: str = "nan") -> Number:
        """The exact product, not normalised."""
        words = self.words
        # A product without bits has the signs that its factors have without bits; one with bits has factors
        # that have some.
        sign, zero_sign = words.differ(x.sign, y.sign), None
        if x.zero_sign is not None or y.zero_sign is not None:
            zero_sign = words.differ(self.sign_of(x), self.sign_of(y))
        invalid = words.either(words.both(x.infinity, y.zero), words.both(y.infinity, x.zero))
        self.raise_flag("invalid", invalid)
        nan = words.either(x.nan, y.nan)
        infinity = words.either(x.infinity, y.infinity)
        if zero_times_infinity == "nan":
            nan = words.either(nan, invalid)
        elif zero_times_infinity == "zero":
            infinity = words.both(infinity, words.invert(invalid))
        infinity = words.both(infinity, words.invert(nan))
        width = x.width + y.width
        twos = None
        if x.twos is not None and y.twos is not None:
            # Both were made in two's complement: one signed multiplier, and its magnitude follows.
            full = x.twos.width + y.twos.width
            twos = words.mul(words.extend_signed(x.twos, full), words.extend_signed(y.twos, full))
            magnitude = words.extend(words.choose(words.bit(twos, full - 1), words.neg(twos), twos), width)
        else:
            magnitude = words.mul(words.extend(x.magnitude, width), words.extend(y.magnitude, width))
        base, exponent = words.add(x.base, y.base), words.add(x.exponent, y.exponent)
        last = None
        sticky = None
        if x.sticky is not None or y.sticky is not None:
            (low_x, offset_x), (low_y, offset_y) = x.last_place, y.last_place
            last = words.add(low_x, low_y), offset_x + offset_y
            sticky = self.any_of(one.sticky for one in (x, y) if one.sticky is not None)
        zero = words.either(x.zero, y.zero)
        if zero_times_infinity == "infinity":
            zero = words.both(zero, words.invert(invalid))
        if zero_sign is not None:  # of an infinite product, a factor may have no bits
            sign = words.choose(infinity, zero_sign, sign)
        if zero_times_infinity == "zero":
            # Zero times infinity is the zero that it was, with its exponent.
            exponent = words.choose(
                words.both(invalid, x.zero), x.exponent, words.choose(invalid, y.exponent, exponent)
            )
            magnitude = words.choose(invalid, words.constant(0, width), magnitude)
            twos = None
        if sticky is not None:
            sticky = words.both(sticky, words.invert(zero))
        reach = x.reach[0] + y.reach[0], x.reach[1] + y.reach[1]
        return Number(
            nan, infinity, zero, sign, magnitude, base, x.offset + y.offset, exponent, reach,
            zero_sign=zero_sign, twos=twos, sticky=sticky, last=last,
        )  # fmt: skip

    def negated(self, number: Number) -> Number:
        """The number with the other sign."""
        words = self.words
        twos = number.twos
        if twos is not None:
            twos = words.neg(words.extend_signed(twos, twos.width + 1))
        zero_sign = None if number.zero_sign is None else words.invert(number.zero_sign)
        return replace(number, sign=words.invert(number.sign), zero_sign=zero_sign, twos=twos, code=None)

    # Leading bits -------------------------------------------------------------------------------------------

    def leading_zeros(self, word: Word) -> Word:
        """Zeros above the leading one, in exponent bits; of a word without a one the largest count
        or fewer.

        Halves: where the upper 2**n bits are zero, 2**n zeros are counted and the word moves up by 2**n.
        """
        words, left, counts = self.words, word, []
        for power in reversed(range((word.width - 1).bit_length())):
            size = 1 << power
            empty = words.invert(words.nonzero(words.extract(left, word.width - size, size)))
            moved = self.pad(words.extract(left, 0, word.width - size), size)
            self.mark(f"empty_{size}", empty)
            left = self.mark(f"left_{size}", words.choose(empty, moved, left))
            counts.append(empty)
        return words.extend(words.concat(*counts), self.exponent_bits) if counts else self.exponent(0)

    def leading_place(self, number: Number) -> Word:
        """Exponent of the leading one."""
        top = self.plus(number.base, number.offset + number.width - 1)
        return self.words.sub(top, self.leading_zeros(number.magnitude))


def refuse(what: str, step: str, key: str) -> CircuitError:
    """A step that has no circuit."""
    return CircuitError(f"step '{step}' has no circuit with key '{key}': {what}")
