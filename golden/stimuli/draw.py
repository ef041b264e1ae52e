"""The random draws of one call: what the kinds build their operands from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.number.formats import Format
from golden.program.program import Program, S
from golden.program.signature import SCALES, Signature
from golden.program.steps import Align, Flush, Part, Sum
from golden.stimuli.codes import (
    Bits,
    Ints,
    encode,
    highest_exponent,
    is_minus,
    is_nan,
    lowest_exponent,
    magnitudes,
    negate,
    one,
    sign_bit,
    tiniest_exponent,
    word_of,
)

Maker = Callable[["Draw"], tuple[Bits, Bits, Bits]]
"""What draws a, b and c, and sets the scales, of a draw."""
_U8, _U32, _U64 = (np.dtype(name) for name in ("u1", "<u4", "<u8"))


class Draw:
    """Draws the operands of one call: products over the stored elements first, sparse b and metadata at
    the end."""

    def __init__(
        self, unit: Signature, count: int, rng: np.random.Generator, parts: Mapping[str, Part] | None = None
    ) -> None:
        self.unit, self.count, self.rng, self.k = unit, count, rng, unit.stored_k
        self.program: Program | None = getattr(unit, "program", None)  # of a black box nobody knows it
        self.parts = dict(parts or {})
        """What the unit reads of a and b: they are drawn as numbers of that part, and `finish` puts them
        into their place."""
        self.a, self.b, self.c, self.d = (
            part_format(unit.formats[name], self.parts[name]) if name in self.parts else unit.formats[name]
            for name in "abcd"
        )
        self.shape = (count, self.k)
        self.low = lowest_exponent(self.a) + lowest_exponent(self.b)
        self.tiniest = tiniest_exponent(self.a) + tiniest_exponent(self.b)
        self.high = highest_exponent(self.a) + highest_exponent(self.b)
        self.scales: dict[str, Bits] = {}
        if unit.scale_block is not None:
            for name in SCALES:
                self.scales[name] = np.full(
                    (count, unit.k // unit.scale_block), one(unit.formats[name]), unit.formats[name].dtype
                )

    def mixed(self, makers: Sequence[tuple[float, Maker]], rest: Maker) -> tuple[Bits, Bits, Bits]:
        """Operands of which each maker draws a share, in random rows, and `rest` what they leave."""
        ends = np.cumsum([share for share, _ in makers]) * 2.0**32
        turn = np.searchsorted(ends, self._words((self.count,), _U32), side="right")
        found = tuple(np.zeros(shape, fmt.dtype) for shape, fmt in self._whole())
        for number, make in enumerate([*(make for _, make in makers), rest]):
            rows = np.flatnonzero(turn == number)
            if not len(rows):
                continue
            part = Draw(self.unit, len(rows), self.rng, self.parts)
            for whole, codes in zip(found, make(part), strict=True):
                whole[rows] = codes
            for name, codes in part.scales.items():
                self.scales[name][rows] = codes
        return found[0], found[1], found[2]

    def _whole(self) -> list[tuple[tuple[int, ...], Format]]:
        """The shapes and formats of a, b and c."""
        return [(self.shape, self.a), (self.shape, self.b), ((self.count,), self.c)]

    def least(self, *operands: str) -> int:
        """The least exponent of an operand that the unit does not read as zero, or of a product of some:
        below the normal numbers, unless a step flushes these."""
        return sum(
            (lowest_exponent if name in self._flushed else tiniest_exponent)(getattr(self, name))
            for name in operands
        )

    @cached_property
    def _flushed(self) -> set[str]:
        """The operands whose subnormal numbers a step makes zeros."""
        return {name for step in self.steps_of(Flush) for name in step.of}

    @property
    def kept_bits(self) -> int:
        """Fraction bits of the result: fewer than D's format has for E8M13 and the like."""
        if self.program is None:
            return self.d.fraction_bits
        return self.program.operations[-1].result_fraction_bits

    def steps_of(self, kind: type[S]) -> list[S]:
        """The steps of one kind of the unit's program, none where that is not known."""
        return [] if self.program is None else self.program.steps_of(kind)

    @property
    def window_bits(self) -> Ints:
        """The fraction bits that the program's alignments keep: where addends begin to lose bits."""
        steps = self.steps_of(Align)
        widths = {bits for step in steps for _, bits in step.fraction_bits} or {self.kept_bits + 1}
        return np.array(sorted(widths), dtype=np.int64)

    @property
    def sums_exactly(self) -> bool:
        """Whether several products of floats are summed as they are, or as fixed-point numbers whose point
        does not move, so that the rounding sees bits of all."""
        floats = self.a.is_float and self.b.is_float and self.d.is_float
        moves = any(step.exponent is None for step in self.steps_of(Align))
        return floats and self.k > 1 and bool(self.steps_of(Sum)) and not moves

    def _words(self, shape: tuple[int, ...], kind: np.dtype[Any]) -> Bits:
        """Random words of a little-endian dtype, cut from the generator's own: the same on every machine."""
        count = math.prod(shape)
        size, own = -(-count * kind.itemsize // 8), self.rng.bit_generator
        # A generator of 64 bits gives the words of `integers` without its checks, which take longer than few
        # words do.
        raw = isinstance(own, np.random.PCG64)
        whole = own.random_raw(size) if raw else self.rng.integers(0, 1 << 64, size, np.uint64)
        return whole.astype(_U64, copy=False).view(kind)[:count].reshape(shape)

    def in_turn(self, count: int, among: npt.NDArray[np.bool_] | None = None) -> Ints:
        """Numbers below a count (n,), one after the other from a random one on, in all rows or among some:
        each is met as often as any other, where random ones would leave out some of hundreds."""
        row = np.arange(self.count) if among is None else np.cumsum(among)
        return np.asarray((self.pick(0, count - 1, (1,)) + row) % max(count, 1))

    def pick(self, low: Any, high: Any, shape: tuple[int, ...]) -> Ints:
        """Random integers from low to high, both included, low where high is less; the bounds may be arrays.
        They are parts of 32-bit words: of few, each is as likely as the others to some 2^-32."""
        if isinstance(low, int) and isinstance(high, int):
            span = np.uint64(max(high - low, 0) + 1)
        else:
            span = (np.maximum(np.subtract(high, low), 0) + 1).astype(np.uint64)
        found = np.multiply(self._words(shape, _U32), span, dtype=np.uint64)
        found >>= np.uint64(32)
        numbers: Ints = found.view(np.int64)
        numbers += low
        return numbers

    def coins(self, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
        """Random bits: 0 or 1."""
        count = math.prod(shape)
        return np.unpackbits(self._words((-(-count // 8),), _U8), count=count).reshape(shape)

    def chance(self, probability: Any, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        """True with the given probability, which may be an array."""
        if not isinstance(probability, float):
            return np.asarray(self._words(shape, _U32) < probability * 2.0**32)
        if probability in (0.0, 1.0):
            return np.full(shape, probability == 1.0)
        if probability == 0.5:
            return self.coins(shape).view(np.bool_)
        return np.asarray(self._words(shape, _U32) < np.uint32(probability * 2.0**32))

    def choice(self, values: Any, shape: tuple[int, ...]) -> Bits:
        """Elements of a list, each as likely as the others."""
        if len(values) == 1:
            return np.full(shape, values[0])
        return np.asarray(values)[self.pick(0, len(values) - 1, shape)]

    def fraction(self, shape: tuple[int, ...]) -> Bits:
        """Random fraction bits, one uint64 an element."""
        return self._words(shape, _U64).astype(np.uint64, copy=False)

    def numbers(self, fmt: Format, exponent: Ints) -> Bits:
        """Numbers at the given exponents with random signs and fractions; 1-bit formats are just random."""
        if fmt.bits == 1:
            return self.raw(fmt, exponent.shape)
        words = self._words(exponent.shape, word_of(fmt).newbyteorder("<"))
        return encode(fmt, words & 1, exponent, words)  # no fraction has the last bit

    def of_any_size(self, fmt: Format) -> Ints:
        """Exponents (count,) over all of a format's range: anything, or one bit apart from the fields of all
        zeros and all ones, which decoders and overflow compare with."""
        low, high, size = tiniest_exponent(fmt), highest_exponent(fmt), (self.count,)
        anything = self.pick(low, high, size)
        if not fmt.is_float or not fmt.exponent_bits:
            return anything
        bits = 1 << np.arange(fmt.exponent_bits)
        fields = np.concatenate([bits, (1 << fmt.exponent_bits) - 1 - bits])
        fields = fields[(fields >= low + fmt.bias) & (fields <= high + fmt.bias)]
        return np.where(self.coins(size) == 1, anything, self.choice(fields - fmt.bias, size))

    def powers(self, fmt: Format, exponent: Ints, sign: Bits | None = None) -> Bits:
        """Powers of two, down into the subnormals."""
        return encode(fmt, sign, exponent, None)

    def raw(self, fmt: Format, shape: tuple[int, ...]) -> Bits:
        """Uniform random codes."""
        codes = self._words(shape, fmt.dtype.newbyteorder("<")).astype(fmt.dtype)
        return np.asarray(codes & fmt.dtype.type((1 << fmt.bits) - 1))

    def split(self, target: Ints, x: Format, y: Format, normal: Any = True) -> tuple[Ints, Ints]:
        """Splits product exponents between two formats at random; out of reach goes as near as it can.
        `normal`: whether among normal numbers alone, of all or of each."""
        ends = ((tiniest_exponent(fmt), lowest_exponent(fmt)) for fmt in (x, y))
        least_x, least_y = (
            end[normal] if isinstance(normal, bool) else np.where(normal, end[1], end[0]) for end in ends
        )
        most_x, most_y = highest_exponent(x), highest_exponent(y)
        reach = np.minimum(np.maximum(target, least_x + least_y), most_x + most_y)
        low, high = np.maximum(least_x, reach - most_y), np.minimum(most_x, reach - least_y)
        first = self.pick(low, high, target.shape)
        return first, reach - first

    def products(self, target: Ints, normal: bool = True, exact: bool = False) -> tuple[Bits, Bits]:
        """a and b whose products have the target exponents (before the carry of the significands).

        Block-scaled instructions reach what the elements cannot with their scales. `exact`: powers of two.
        """
        if self.scales and target.size:
            middle = target.max(axis=1)
            needed = middle - np.clip(middle, self.low, self.high)
            target = target - self.set_scales(needed)[:, None]
        exponent_a, exponent_b = self.split(target, self.a, self.b, normal)
        make = self.powers if exact else self.numbers
        return make(self.a, exponent_a), make(self.b, exponent_b)

    def few_powers(self, target: Ints, live: Bits) -> tuple[Bits, Bits]:
        """a and b of which the first products (count, n) are powers of two at the target exponents, or zero
        where not `live`. All others are zeros multiplied by powers of two of any size: a unit shows that
        takes the exponent of a zero for that of a product."""
        terms = target.shape[1]
        some_a, some_b = self.products(target, normal=False, exact=True)
        a = np.zeros(self.shape, self.a.dtype)
        a[:, :terms] = np.where(live, some_a, np.zeros((), self.a.dtype))
        rest = self.pick(lowest_exponent(self.b), highest_exponent(self.b), (self.count, self.k - terms))
        return a, np.concatenate([some_b, self.powers(self.b, rest)], axis=1)

    def set_scales(self, exponent: Ints) -> Ints:
        """Sets every scale product of a row (count,), or of each of its blocks (count, blocks), to
        2**exponent, as near as the formats reach; returns the exponents reached."""
        x, y = self.unit.formats["scale_a"], self.unit.formats["scale_b"]
        low, high = lowest_exponent(x) + lowest_exponent(y), highest_exponent(x) + highest_exponent(y)
        reached = np.clip(exponent, low, high)
        first, second = self.split(reached, x, y)
        for name, fmt, part in (("scale_a", x, first), ("scale_b", y, second)):
            self.scales[name][...] = self.powers(fmt, part if part.ndim == 2 else part[:, None])
        return reached

    def random_scales(self) -> None:
        """Draws scales within a few binades of one, with random fractions."""
        # How far (in binades) ordinary random scales lie from one.
        scale_reach = 20
        for name, codes in self.scales.items():
            codes[...] = self.numbers(
                self.unit.formats[name], self.pick(-scale_reach, scale_reach, codes.shape)
            )

    def zeros(self, fmt: Format, shape: tuple[int, ...]) -> Bits:
        """Zeros of random sign (formats without -0: plain zeros)."""
        plain = np.zeros(shape, fmt.dtype)
        return (
            np.where(self.chance(0.5, shape), negate(fmt, plain), plain)
            if fmt.is_float and fmt.has_zero
            else plain
        )

    def mirrored(self, a: Bits, b: Bits, c: Bits) -> tuple[Bits, Bits, Bits]:
        """Turns all signs in half of the rows, where the formats have them: kinds that build their largest
        terms with one sign show a cut down, a two's complement that is full, and -inf no less than what is
        above zero."""
        if not self.c.signed or not (self.a.signed or self.b.signed):
            return a, b, c
        turned = self.chance(0.5, (self.count,))
        factor, fmt = self.signed_factor(a, b)
        factor[...] = np.where(turned[:, None], negate(fmt, factor), factor)
        return a, b, np.where(turned, negate(self.c, c), c)

    def all_below_zero(
        self, rows: npt.NDArray[np.bool_], a: Bits, b: Bits, c: Bits
    ) -> tuple[Bits, Bits, Bits]:
        """Turns signs in some rows (count,) until all products and c are negative, zeros, too: only then a
        sum is -0, or less than nothing. Of signed floats; zeros without a sign stay as they are."""
        parts = (self.a, a), (self.b, b), (self.c, c)
        minus_a, minus_b, minus_c = (is_minus(fmt, codes) for fmt, codes in parts)
        a = np.where(rows[:, None] & (minus_a == minus_b), negate(self.a, a), a)
        return a, b, np.where(rows & ~minus_c, negate(self.c, c), c)

    def signed_factor(self, a: Bits, b: Bits) -> tuple[Bits, Format]:
        """The factor whose sign is turned to turn a product's, and its format: a, where that has signs."""
        return (a, self.a) if self.a.signed else (b, self.b)

    def order(self) -> Ints:
        """A random order of the k of every row: words that carry their place in their last bits, sorted."""
        places = np.uint32((1 << (self.k - 1).bit_length()) - 1)
        words = self._words(self.shape, _U32) & ~places | np.arange(self.k, dtype=np.uint32)
        words.sort(axis=1)
        return (words & places).astype(np.int64)

    def shuffle(self, *arrays: Bits, near: npt.NDArray[np.bool_] | None = None) -> tuple[Bits, ...]:
        """Permutes the k of every row, all arrays alike, so that structure meets every slice of a chain. In
        the rows `near` (count,) the first four stay together, as terms of one slice."""
        order = self.order()
        if near is not None:
            moved = np.arange(self.k) + 4 * self.pick(0, max(self.k // 4 - 1, 0), (self.count, 1))
            order = np.where(near[:, None], moved % self.k, order)
        return self.in_order(order, *arrays)

    def in_order(self, order: Ints, *arrays: Bits) -> tuple[Bits, ...]:
        """The elements of every row in an order of its own (count, k)."""
        places = order + self.k * np.arange(self.count)[:, None]
        return tuple(array.take(places) for array in arrays)

    def with_zeros_in_b(self, a: Bits, b: Bits) -> tuple[Bits, Bits]:
        """Factors of which, in some rows, b is the zero of a product that was zero by a, and a anything: each
        product keeps its sign. A unit shows that knows a zero by one factor alone."""
        of_a, of_b = self.a, self.b
        if not all(fmt.is_float and fmt.has_zero for fmt in (of_a, of_b)) or "b" in self.unit.absent:
            return a, b
        share = 0.3
        rows = np.flatnonzero(self.chance(share, (self.count,)))
        x, y = a[rows], b[rows]
        size = magnitudes(of_b, y)
        there = (magnitudes(of_a, x) == 0) & (size > 0) & (size <= of_b.largest)
        exponents = self.pick(lowest_exponent(of_a), highest_exponent(of_a), x.shape)
        a, b = a.copy(), b.copy()
        a[rows] = np.where(there, self.powers(of_a, exponents, is_minus(of_a, x)), x)
        b[rows] = np.where(there, y & sign_bit(of_b) if of_b.has_negative_zero else of_b.dtype.type(0), y)
        return a, b

    def with_ignored_bits(self, fmt: Format, codes: Bits) -> Bits:
        """Codes whose bits that the format ignores are random in half of the rows, whatever the code: a unit
        that looks at one of them before it drops them takes an infinity for a NaN, or a zero for a number."""
        if not fmt.ignored:
            return codes
        rows = self.chance(0.5, (self.count,)).reshape(-1, *[1] * (codes.ndim - 1))
        return np.where(rows, codes ^ (self.raw(fmt, codes.shape) & fmt.dtype.type(fmt.ignored)), codes)

    def with_any_payload(self, fmt: Format, codes: Bits) -> Bits:
        """Codes whose signalling NaNs, and a few quiet ones, get another fraction: mostly one bit alone, else
        anything. A unit shows that overlooks one bit when it compares a fraction with zero, or loses one of a
        payload."""
        if fmt.infinity is None or fmt.fraction_bits < 2:
            return codes
        at = np.flatnonzero(is_nan(fmt, codes))
        if not len(at):
            return codes
        quiet = codes.flat[at] & fmt.dtype.type(1 << fmt.fraction_bits - 1 + fmt.ignored_low) != 0
        # Each bit of an f32 NaN in c is met by 20 of 200,000 vectors, and quiet NaNs stay half of all.
        share_of_quiet, one_bit_share = 0.15, 0.8
        at = at[~quiet | self.chance(share_of_quiet, at.shape)]
        one_bit = np.uint64(1) << self.pick(0, fmt.fraction_bits - 1, at.shape).astype(np.uint64)
        anything = self.fraction(at.shape) >> np.uint64(64 - fmt.fraction_bits) | one_bit
        fraction = np.where(self.chance(one_bit_share, at.shape), one_bit, anything)
        payload = fraction << np.uint64(fmt.ignored_low)
        found = codes.copy()
        sign = found.flat[at] & sign_bit(fmt)
        found.flat[at] = sign | fmt.dtype.type(fmt.infinity) | payload.astype(fmt.dtype)
        return found

    def _in_place(self, fmt: Format, part: Part, codes: Bits) -> Bits:
        """The codes of `fmt` whose part has the significand of these codes of `part_format`; the bits above
        the part are random, those below stay."""
        if not part.first:
            return codes
        word, shift = fmt.dtype.type, fmt.fraction_bits + fmt.ignored_low
        field = word((1 << shift) - 1)
        hidden = word(1 << shift - part.first)
        above = field & ~(hidden | hidden - word(1))
        normal = codes >> word(shift) & word((1 << fmt.exponent_bits) - 1) != 0
        low = (codes & field) >> word(part.first)
        placed = low | np.where(normal, hidden, word(0)) | self.raw(fmt, codes.shape) & above
        return np.asarray(codes & ~field | placed)

    def finish(self, a: Bits, b: Bits, c: Bits) -> dict[str, Bits]:
        """Adds scales and metadata and spreads the multiplied b over the columns
        that the metadata selects."""
        operands = dict(zip("abc", (*self.with_zeros_in_b(a, b), c), strict=True))
        for name in operands:
            fmt = getattr(self, name)
            operands[name] = self.with_ignored_bits(fmt, self.with_any_payload(fmt, operands[name]))
        for name, part in self.parts.items():
            operands[name] = self._in_place(self.unit.formats[name], part, operands[name])
        pattern = self.unit.pattern
        if pattern is not None:
            legal = np.array(pattern.legal(self.unit.ordered_metadata), np.uint8)
            operands["metadata"] = legal[
                self.pick(0, len(legal) - 1, (self.count, self.unit.k // pattern.chunk))
            ]
            full = self.raw(self.b, (self.count, self.unit.k))
            np.put_along_axis(full, pattern.columns(operands["metadata"]), operands["b"], axis=1)
            operands["b"] = full
        scales = {
            name: self.with_ignored_bits(self.unit.formats[name], codes)
            for name, codes in self.scales.items()
        }
        return operands | scales


def part_format(fmt: Format, part: Part) -> Format:
    """The numbers that a part of a significand can be whose highest bit is 1, as a format: its bits below are
    the fraction."""
    own = min(part.bits, fmt.fraction_bits + 1 - part.first) - 1  # a part may reach below the last bit
    return replace(
        fmt,
        name=f"{fmt.name}, {own + 1} bits from place {part.first}",
        fraction_bits=own,
        bias=fmt.bias + part.first,
        ignored_low=fmt.ignored_low + fmt.fraction_bits - own,
    )


def readings_of(unit: Signature) -> Iterator[dict[str, Part]]:
    """What a unit may be aimed at: its operands as they are, and the parts of a and b that each operation
    reads. Of floats without special values: of others a part does not say what the number is."""
    yield {}
    program: Program | None = getattr(unit, "program", None)
    seen: list[dict[str, Part]] = [{}]
    for operation in program.operations if program is not None else ():
        parts = {name: step for step in operation.steps_of(Part) for name in step.of}
        formats = {name: unit.formats[name] for name in parts}
        fits = all(
            fmt.is_float and fmt.specials == "none" and parts[name].first in range(fmt.fraction_bits + 1)
            for name, fmt in formats.items()
        )
        if fits and parts not in seen:
            seen.append(parts)
            yield parts
