"""Operand classes for dot products, named by structure: what the vectors, the comparison and the tests feed to units.

    operands = stimuli.generate(ins, "cancelling", 1000, np.random.default_rng(7))
    d = ins.dot(**operands)

Uniform random bits hardly ever meet the cases where two units differ, so each kind aims at one place of the datapath.
`KINDS` lists them; `describe(kind)` says in one line what a kind aims at. Every kind works for every instruction: where
a format cannot express a structure (b1 has no exponents, f16 products cannot reach f32's subnormals), it comes as near
as the format allows. The operands depend on nothing but the instruction, the kind, the count and the generator's state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from golden.errors import OperandError, UnknownNameError, nearest
from golden.formats import Format, Kind, from_float, to_float

if TYPE_CHECKING:
    from golden.instruction import Instruction

Bits = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
_SCALE_REACH = 20
"""How far (in binades) ordinary random scales lie from one."""


def generate(ins: Instruction, kind: str, count: int, rng: np.random.Generator) -> dict[str, Bits]:
    """Generates `count` dot products of one kind, as keyword arguments of `ins.dot`.

    Returns:
        Raw codes: a (count, stored_k), b (count, k), c (count,); sparse: legal metadata (count, k/chunk); block scaled:
        scale_a and scale_b (count, k/scale_block). Elements of b that the metadata does not select are random bits.

    Raises:
        UnknownNameError: no such kind.
        OperandError: count is negative.
    """
    if kind not in _GENERATORS:
        raise UnknownNameError(f"unknown stimulus kind '{kind}', expected one of {', '.join(KINDS)}{nearest(kind, KINDS)}")
    if count < 0:
        raise OperandError(f"count is {count}, expected 0 or more")
    draw = _Draw(ins, count, rng)
    return draw.finish(*_GENERATORS[kind](draw))


def describe(kind: str) -> str:
    """Returns one line on what the kind aims at."""
    if kind not in _GENERATORS:
        raise UnknownNameError(f"unknown stimulus kind '{kind}'{nearest(kind, KINDS)}")
    return (_GENERATORS[kind].__doc__ or "").split("\n", 1)[0]


# Formats by exponent: integers join in as numbers with exponents 0..width ------------------------------------------------


def lowest_exponent(fmt: Format) -> int:
    """Exponent of the smallest normal number; integers: 0."""
    return fmt.min_exponent if fmt.is_float else 0


def highest_exponent(fmt: Format) -> int:
    """Exponent of the largest finite number; integers: of the largest value."""
    return fmt.max_exponent if fmt.is_float else max(fmt.integer_bits - int(fmt.signed) - 1, 0)


def tiniest_exponent(fmt: Format) -> int:
    """Exponent of the smallest positive number, subnormal where the format has them."""
    return fmt.min_exponent - fmt.fraction_bits if fmt.is_float and fmt.has_zero else lowest_exponent(fmt)


def encode(fmt: Format, sign: Bits, exponent: Ints, fraction: Bits) -> Bits:
    """Builds codes from a sign (0 or 1), an unbiased exponent and random fraction bits (uint64, top bits used first).

    Exponents below the normal range give subnormals (or zero), above it the largest finite number. Signs of unsigned
    formats are ignored.
    """
    if not fmt.is_float:
        return _encode_integer(fmt, sign, exponent, fraction)
    lowest = 1 if fmt.has_zero else 0
    biased = exponent + fmt.bias if fmt.has_zero else np.maximum(exponent + fmt.bias, 0)
    significand = (np.uint64(1) << np.uint64(fmt.fraction_bits)) | _top_bits(fraction, np.full(exponent.shape, fmt.fraction_bits))
    denormal = np.clip(lowest - biased, 0, 63).astype(np.uint64)
    significand = significand >> denormal
    ceiling = (1 << fmt.exponent_bits) + 1
    fields = np.clip(biased, lowest, ceiling).astype(np.uint64) << np.uint64(fmt.fraction_bits)
    fields = fields + significand - (np.uint64(1) << np.uint64(fmt.fraction_bits))
    codes = np.minimum(fields, np.uint64(fmt.largest >> fmt.ignored_low)) << np.uint64(fmt.ignored_low)
    if fmt.signed:
        signs = sign.astype(np.uint64) << np.uint64(fmt.sign_shift)
        codes = codes | (np.where(codes == 0, 0, signs).astype(np.uint64) if fmt.specials == "negative_zero_nan" else signs)
    return np.asarray(codes.astype(fmt.dtype))


def _encode_integer(fmt: Format, sign: Bits, exponent: Ints, fraction: Bits) -> Bits:
    width = np.clip(exponent, 0, highest_exponent(fmt))
    magnitude = ((np.uint64(1) << width.astype(np.uint64)) | _top_bits(fraction, width)).astype(np.int64)
    magnitude = np.where(exponent < 0, 0, magnitude)
    value = np.where(sign.astype(bool), -magnitude, magnitude) if fmt.signed else magnitude
    return np.asarray((value & ((1 << fmt.integer_bits) - 1)).astype(fmt.dtype))


def _top_bits(fraction: Bits, width: Ints) -> Bits:
    """The top `width` (0..63) bits of each uint64."""
    shifted = fraction >> (np.uint64(63) - width.astype(np.uint64))
    return np.asarray(shifted >> np.uint64(1))


def negate(fmt: Format, codes: Bits) -> Bits:
    """Negates codes; formats without a sign, and zeros whose negative is a NaN, stay as they are."""
    if not fmt.signed:
        return codes
    if not fmt.is_float:
        return np.asarray((-codes.astype(np.int64) & ((1 << fmt.integer_bits) - 1)).astype(fmt.dtype))
    flipped = codes ^ fmt.dtype.type(1 << fmt.sign_shift)
    return np.where(codes == 0, codes, flipped) if fmt.specials == "negative_zero_nan" else flipped


def one(fmt: Format) -> int:
    """The code of 1, or of the number nearest to it."""
    zero = np.zeros(1, np.uint64)
    return int(encode(fmt, zero, np.zeros(1, np.int64), zero)[0])


def corner_codes(fmt: Format) -> Bits:
    """The codes at a format's edges: zeros, least and largest subnormal and normal, one, largest, infinities, NaNs."""
    if not fmt.is_float:
        codes = {0, 1, fmt.largest, (1 << fmt.integer_bits) - 1, 1 << (fmt.integer_bits - 1)}
        return np.array(sorted(codes), dtype=fmt.dtype)
    unit = 1 << fmt.ignored_low
    least_normal = unit << fmt.fraction_bits
    codes = {0, unit, least_normal - unit, least_normal, least_normal + unit, one(fmt), fmt.largest - unit, fmt.largest}
    codes |= {code for code in (fmt.infinity, fmt.nan) if code is not None}
    if fmt.infinity is not None and fmt.fraction_bits > 1:
        codes.add(fmt.infinity + unit)  # a signalling NaN: the quiet bit is clear
    if fmt.signed:
        codes |= {code | 1 << fmt.sign_shift for code in codes}
    return np.array(sorted(codes), dtype=fmt.dtype)


# Drawing -----------------------------------------------------------------------------------------------------------------


class _Draw:
    """Draws the operands of one call: products over the stored elements first, sparse b and metadata at the end."""

    def __init__(self, ins: Instruction, count: int, rng: np.random.Generator) -> None:
        self.ins, self.count, self.rng, self.k = ins, count, rng, ins.stored_k
        self.a, self.b, self.c, self.d = (ins.formats[name] for name in "abcd")
        self.shape = (count, self.k)
        self.low = lowest_exponent(self.a) + lowest_exponent(self.b)
        self.tiniest = tiniest_exponent(self.a) + tiniest_exponent(self.b)
        self.high = highest_exponent(self.a) + highest_exponent(self.b)
        self.scales: dict[str, Bits] = {}
        if ins.scale_block is not None:
            for name in ("scale_a", "scale_b"):
                self.scales[name] = np.full((count, ins.k // ins.scale_block), one(ins.formats[name]), ins.formats[name].dtype)

    @property
    def kept_bits(self) -> int:
        """Fraction bits of the result: fewer than D's format has for E8M13 and the like."""
        kept = self.ins.program.operations[-1].steps[-1].result_fraction_bits
        return self.d.fraction_bits if kept is None else kept

    @property
    def window_bits(self) -> Ints:
        """The fraction bits that the program's alignments keep: where addends begin to lose bits."""
        steps = [step for operation in self.ins.program.operations for step in operation.steps if step.op == "align"]
        widths = {bits for step in steps for _, bits in step.fraction_bits} or {self.kept_bits + 1}
        return np.array(sorted(widths), dtype=np.int64)

    def pick(self, low: Any, high: Any, shape: tuple[int, ...]) -> Ints:
        """Random integers from low to high, both included; the bounds may be arrays."""
        return np.asarray(self.rng.integers(low, np.maximum(np.asarray(high), low) + 1, size=shape, dtype=np.int64))

    def chance(self, probability: float, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        """True with the given probability."""
        return np.asarray(self.rng.random(shape) < probability)

    def fraction(self, shape: tuple[int, ...]) -> Bits:
        """Random fraction bits, one uint64 an element."""
        return self.rng.integers(0, 1 << 64, size=shape, dtype=np.uint64)

    def numbers(self, fmt: Format, exponent: Ints) -> Bits:
        """Numbers at the given exponents with random signs and fractions; 1-bit formats are just random."""
        if fmt.bits == 1:
            return self.raw(fmt, exponent.shape)
        return encode(fmt, self.pick(0, 1, exponent.shape), exponent, self.fraction(exponent.shape))

    def powers(self, fmt: Format, exponent: Ints, sign: Bits | None = None) -> Bits:
        """Powers of two, down into the subnormals."""
        zeros = np.zeros(exponent.shape, np.uint64)
        return encode(fmt, zeros if sign is None else sign, exponent, zeros)

    def raw(self, fmt: Format, shape: tuple[int, ...]) -> Bits:
        """Uniform random codes."""
        return self.rng.integers(0, 1 << fmt.bits, size=shape, dtype=np.uint64).astype(fmt.dtype)

    def split(self, target: Ints, x: Format, y: Format, normal: bool = True) -> tuple[Ints, Ints]:
        """Splits product exponents between two formats at random; out of reach goes as near as it can."""
        least = lowest_exponent if normal else tiniest_exponent
        reach = np.clip(target, least(x) + least(y), highest_exponent(x) + highest_exponent(y))
        low, high = np.maximum(least(x), reach - highest_exponent(y)), np.minimum(highest_exponent(x), reach - least(y))
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

    def set_scales(self, exponent: Ints) -> Ints:
        """Sets every scale product of a row to 2**exponent, as near as the formats reach; returns the exponents reached."""
        x, y = self.ins.formats["scale_a"], self.ins.formats["scale_b"]
        low, high = lowest_exponent(x) + lowest_exponent(y), highest_exponent(x) + highest_exponent(y)
        reached = np.clip(exponent, low, high)
        first, second = self.split(reached, x, y)
        for name, fmt, part in (("scale_a", x, first), ("scale_b", y, second)):
            self.scales[name][...] = self.powers(fmt, part)[:, None]
        return reached

    def random_scales(self) -> None:
        """Draws scales within a few binades of one, with random fractions."""
        for name, codes in self.scales.items():
            codes[...] = self.numbers(self.ins.formats[name], self.pick(-_SCALE_REACH, _SCALE_REACH, codes.shape))

    def zeros(self, fmt: Format, shape: tuple[int, ...]) -> Bits:
        """Zeros of random sign (formats without -0: plain zeros)."""
        plain = np.zeros(shape, fmt.dtype)
        return np.where(self.chance(0.5, shape), negate(fmt, plain), plain) if fmt.is_float and fmt.has_zero else plain

    def shuffle(self, *arrays: Bits) -> tuple[Bits, ...]:
        """Permutes the k of every row, all arrays alike, so that structure meets every slice of a chain."""
        order = self.rng.permuted(np.broadcast_to(np.arange(self.k), self.shape), axis=1)
        return tuple(np.take_along_axis(array, order, axis=1) for array in arrays)

    def finish(self, a: Bits, b: Bits, c: Bits) -> dict[str, Bits]:
        """Adds scales and metadata and spreads the multiplied b over the columns that the metadata selects."""
        operands = {"a": a, "b": b, "c": c}
        pattern = self.ins.pattern
        if pattern is not None:
            legal = np.array(pattern.legal(self.ins.ordered_metadata), np.uint8)
            operands["metadata"] = legal[self.pick(0, len(legal) - 1, (self.count, self.ins.k // pattern.chunk))]
            full = self.raw(self.b, (self.count, self.ins.k))
            np.put_along_axis(full, pattern.columns(operands["metadata"]), b, axis=1)
            operands["b"] = full
        return operands | self.scales


def _random_bits(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """Uniform random codes everywhere, infinities and NaNs included."""
    for name, codes in draw.scales.items():
        codes[...] = draw.raw(draw.ins.formats[name], codes.shape)
    return draw.raw(draw.a, draw.shape), draw.raw(draw.b, draw.shape), draw.raw(draw.c, (draw.count,))


def _narrow(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """Exponents within two binades of one: every addend overlaps every other, carries and roundings of everyday data."""
    low, high = ([int(np.clip(e, lowest_exponent(fmt), highest_exponent(fmt))) for fmt in (draw.a, draw.b)] for e in (-2, 2))
    a = draw.numbers(draw.a, draw.pick(low[0], high[0], draw.shape))
    b = draw.numbers(draw.b, draw.pick(low[1], high[1], draw.shape))
    return a, b, draw.numbers(draw.c, draw.pick(-4, 4 + draw.k.bit_length(), (draw.count,)))


def _wide(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """Exponents over each format's whole finite range: large shifts, addends lost entirely."""
    draw.random_scales()
    a, b = (draw.numbers(fmt, draw.pick(tiniest_exponent(fmt), highest_exponent(fmt), draw.shape)) for fmt in (draw.a, draw.b))
    low, high = max(draw.tiniest - 8, tiniest_exponent(draw.c)), min(draw.high + 8, highest_exponent(draw.c))
    return a, b, draw.numbers(draw.c, draw.pick(min(low, high), high, (draw.count,)))


def _cancelling(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """Products that cancel in pairs or against c, so that only small addends are left to see the bits that were cut."""
    width = min(12, draw.high - draw.low)
    top = draw.pick(min(draw.low + width, 0), max(min(draw.high, 16), draw.low + width), (draw.count, 1))
    a, b = draw.products(draw.pick(top - width, top, draw.shape))
    flip, keep = ((a, draw.a), b) if draw.a.signed else ((b, draw.b), a)
    half = draw.k // 2
    for array in (flip[0], keep):
        array[:, half : 2 * half] = array[:, :half]
    flip[0][:, half : 2 * half] = negate(flip[1], flip[0][:, half : 2 * half])
    c = draw.numbers(draw.c, top[:, 0] - draw.pick(0, int(draw.window_bits.max()) + 4, (draw.count,)))
    against_c = draw.chance(0.4, (draw.count,)) if flip[1].signed and half else np.ones(draw.count, bool)
    # Against c: product 0 loses its partner (with unsigned operands nothing else cancels, so c takes the whole sum).
    if half and flip[1].signed:
        a[against_c, half] = 0 if draw.a.has_zero else a[against_c, half]
    c = np.where(against_c, _negative_sum(draw, a, b, flip[1].signed), c)
    return (*draw.shuffle(a, b), c)  # type: ignore[return-value]


def _negative_sum(draw: _Draw, a: Bits, b: Bits, first_only: bool) -> Bits:
    """c = -(a[0] * b[0]) or -(the whole sum), rounded to c's format and, for integers, clamped to its range."""
    if draw.scales or draw.a.name == "b1":
        return draw.numbers(draw.c, np.full(draw.count, 4))
    last = 1 if first_only else draw.k
    with np.errstate(over="ignore"):  # f64 products may overflow; the clip below brings them back
        total = -(to_float(draw.a, a[:, :last]) * to_float(draw.b, b[:, :last])).sum(axis=1)
    if not draw.c.is_float:
        total = np.clip(total, -float(draw.c.largest), float(draw.c.largest))
    limit = float(to_float(draw.c, np.array([draw.c.largest], draw.c.dtype))[0])
    return from_float(draw.c, np.clip(total, -limit, limit))


def _subnormal(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """Subnormal a, b or c against ordinary partners: flushing, and products whose significand starts with zeros."""
    a = draw.numbers(draw.a, draw.pick(tiniest_exponent(draw.a), lowest_exponent(draw.a), draw.shape))
    b_high = np.where(draw.chance(0.3, draw.shape), lowest_exponent(draw.b), highest_exponent(draw.b))
    b = draw.numbers(draw.b, draw.pick(tiniest_exponent(draw.b), b_high, draw.shape))
    if draw.a.dtype == draw.b.dtype and draw.a == draw.b:
        swap = draw.chance(0.5, draw.shape)
        a, b = np.where(swap, b, a), np.where(swap, a, b)
    tiny_c = draw.numbers(draw.c, draw.pick(tiniest_exponent(draw.c), lowest_exponent(draw.c) + 1, (draw.count,)))
    return a, b, np.where(draw.chance(0.3, (draw.count,)), draw.zeros(draw.c, (draw.count,)), tiny_c)


def _tiny_zero_c(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """Tiny products with a zero (or least subnormal) c: the floor of the alignment exponent, signs of zero results."""
    near_d = lowest_exponent(draw.d) + draw.pick(-16, 2, (draw.count, 1))
    near_least = draw.tiniest + draw.pick(0, 12, (draw.count, 1))
    target = np.where(draw.chance(0.5, (draw.count, 1)), near_d, near_least) + draw.pick(-3, 0, draw.shape)
    a, b = draw.products(target, normal=False)
    a = np.where(draw.chance(0.3, draw.shape), draw.zeros(draw.a, draw.shape), a)
    least = draw.powers(draw.c, np.full(draw.count, tiniest_exponent(draw.c)), draw.pick(0, 1, (draw.count,)))
    return a, b, np.where(draw.chance(0.7, (draw.count,)), draw.zeros(draw.c, (draw.count,)), least)


def _near_overflow(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """Totals around D's largest number: c at the top, products from half its last place to its own size."""
    top = highest_exponent(draw.d)
    distance = np.where(
        draw.chance(0.5, (draw.count, 1)),
        draw.pick(draw.kept_bits - 1, draw.kept_bits + 3, (draw.count, 1)),
        draw.pick(0, draw.k.bit_length() + 1, (draw.count, 1)),
    )
    a, b = draw.products(top - distance - draw.pick(0, 2, draw.shape))
    same_sign = draw.chance(0.6, (draw.count, 1))
    for array, fmt in ((a, draw.a), (b, draw.b)):
        if fmt.signed and fmt.is_float:
            array[...] = np.where(same_sign, array & fmt.dtype.type((1 << fmt.sign_shift) - 1), array)
    size = (draw.count,)
    fraction = np.uint64(0xFFFFFFFFFFFFFFFF) << draw.pick(0, 44, size).astype(np.uint64)
    c = encode(draw.c, draw.chance(0.2, size).astype(np.int64), top - draw.chance(0.3, size), fraction)
    return a, b, c


def _tie(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """Totals exactly between two results, or one tiny addend beside it: rounding mode, sticky bits, double rounding."""
    size, drop = (draw.count,), draw.kept_bits + 1
    least, most = draw.tiniest + drop, draw.high + drop
    low, high = max(lowest_exponent(draw.c), least), min(highest_exponent(draw.c), most)
    exponent = draw.pick(min(low, high), high, size)
    wanted = np.where(draw.chance(0.7, size), np.clip(exponent, max(low, -6), max(low, min(high, 18))), exponent)
    target = np.full(draw.shape, draw.tiniest - 2)
    target[:, 0] = wanted - drop
    a, b = draw.products(target, normal=False, exact=True)
    beside = draw.pick(1, max(draw.k - 1, 1), size) if draw.k > 1 else np.zeros(size, np.int64)
    keep = np.arange(draw.k) == 0
    tiny = (np.arange(draw.k) == beside[:, None]) & draw.chance(0.4, size)[:, None]
    a = np.where(keep | tiny, a, np.zeros((), draw.a.dtype))
    a = np.where(draw.chance(0.4, draw.shape), negate(draw.a, a), a)
    low_zeros = np.uint64((1 << 64) - (1 << (64 - min(draw.kept_bits, 63)))) if draw.kept_bits else np.uint64(0)
    c = encode(draw.c, draw.pick(0, 1, size), wanted, draw.fraction(size) & low_zeros)
    return (*draw.shuffle(a, b), c)  # type: ignore[return-value]


def _special_values(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """A few infinities, NaNs (quiet, signalling), zeros, least and largest numbers among ordinary ones."""
    a, b, c = _narrow(draw)
    density = draw.rng.choice([0.5 / draw.k, 1 / draw.k, 2 / draw.k, 0.5], size=(draw.count, 1))
    picked = []
    for codes, fmt in ((a, draw.a), (b, draw.b), (c[:, None], draw.c)):
        corners = corner_codes(fmt)
        wanted = draw.rng.random(codes.shape) < (density if codes.shape[1] > 1 else 0.5)
        picked.append(np.where(wanted, corners[draw.pick(0, len(corners) - 1, codes.shape)], codes))
    for name, codes in draw.scales.items():
        corners = corner_codes(draw.ins.formats[name])
        codes[...] = np.where(draw.chance(0.1, codes.shape), corners[draw.pick(0, len(corners) - 1, codes.shape)], codes)
    return picked[0], picked[1], picked[2][:, 0]


def _zeros(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """Signed zeros in every place, at most one ordinary product: the sign of a zero result."""
    a, b = draw.zeros(draw.a, draw.shape), draw.zeros(draw.b, draw.shape)
    other_a, other_b, other_c = _narrow(draw)
    place = np.arange(draw.k) == draw.pick(0, draw.k - 1, (draw.count, 1))
    a = np.where(place & draw.chance(0.2, (draw.count, 1)), other_a, a)
    b = np.where(draw.chance(0.3, draw.shape), other_b, b)
    return a, b, np.where(draw.chance(0.2, (draw.count,)), other_c, draw.zeros(draw.c, (draw.count,)))


def _equal_exponents(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """All products at one exponent, many with all-ones significands and one sign: the sum register's integer bits."""
    row = (draw.count, 1)
    exponent_a = draw.pick(lowest_exponent(draw.a), highest_exponent(draw.a), row)
    exponent_b = draw.pick(lowest_exponent(draw.b), highest_exponent(draw.b), row)
    full, same = draw.chance(0.5, row), draw.chance(0.5, row)
    operands = []
    for fmt, exponent in ((draw.a, exponent_a), (draw.b, exponent_b)):
        fraction = np.where(full, np.uint64(0xFFFFFFFFFFFFFFFF), draw.fraction(draw.shape))
        sign = np.where(same, 0, draw.pick(0, 1, draw.shape))
        operands.append(encode(fmt, sign, np.broadcast_to(exponent, draw.shape), fraction))
    c = draw.numbers(draw.c, (exponent_a + exponent_b)[:, 0] + draw.pick(-1, 1, (draw.count,)))
    return operands[0], operands[1], np.where(draw.chance(0.3, (draw.count,)), draw.zeros(draw.c, (draw.count,)), c)


def _alignment_edge(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """One large addend, the others shifted just to the last kept bit and beyond: the alignment width F, cut bits."""
    size = (draw.count,)
    distance = draw.rng.choice(draw.window_bits, size=(draw.count, 1)) + draw.pick(-6, 3, draw.shape)
    c_is_top = draw.chance(0.5, size)
    reach = int(draw.window_bits.max()) + 4
    top = draw.pick(min(draw.low + reach, draw.high), draw.high, size)
    top = np.where(c_is_top, np.clip(draw.pick(draw.low, draw.high + reach, size), None, highest_exponent(draw.c)), top)
    target = top[:, None] - distance
    place = draw.pick(0, draw.k - 1, size)
    target = np.where((np.arange(draw.k) == place[:, None]) & ~c_is_top[:, None], top[:, None], target)
    a, b = draw.products(target, normal=False)
    dropped = draw.chance(0.7, draw.shape) & (np.arange(draw.k) != place[:, None])
    a = np.where(dropped, np.zeros((), draw.a.dtype), a)
    c = draw.numbers(draw.c, np.where(c_is_top, top, top - distance[:, 0]))
    return a, b, c


def _c_dominant(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """c above all products, by nothing up to past the alignment width: products cut against c."""
    width = min(6, draw.high - draw.low)
    top = draw.pick(min(draw.low + width, draw.high), max(min(draw.high, 16), draw.low + width), (draw.count, 1))
    a, b = draw.products(draw.pick(top - width, top, draw.shape))
    return a, b, draw.numbers(draw.c, top[:, 0] + draw.pick(0, int(draw.window_bits.max()) + 6, (draw.count,)))


def _one_hot(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """A single non-zero product at a random k, often with a zero c: wiring of k, products and conversions alone."""
    a = np.zeros(draw.shape, draw.a.dtype)
    place = draw.pick(0, draw.k - 1, (draw.count, 1))
    exponent = draw.pick(lowest_exponent(draw.a), highest_exponent(draw.a), (draw.count, 1))
    value = encode(draw.a, draw.pick(0, 1, (draw.count, 1)), exponent, draw.fraction((draw.count, 1)))
    np.put_along_axis(a, place, value, axis=1)
    b = draw.numbers(draw.b, draw.pick(lowest_exponent(draw.b), highest_exponent(draw.b), draw.shape))
    if draw.b.bits == 1:
        b = np.ones(draw.shape, draw.b.dtype)
    c = draw.numbers(draw.c, draw.pick(draw.low, min(draw.high, highest_exponent(draw.c)), (draw.count,)))
    return a, b, np.where(draw.chance(0.6, (draw.count,)), draw.zeros(draw.c, (draw.count,)), c)


def _sharp(draw: _Draw, target: Ints) -> tuple[Bits, Bits]:
    """Products at the target exponents, in half of the rows powers of two: a single bit that is kept or cut."""
    rough, exact = draw.products(target, normal=False), draw.products(target, normal=False, exact=True)
    single = draw.chance(0.5, (draw.count, 1))
    return np.where(single, exact[0], rough[0]), np.where(single, exact[1], rough[1])


def _alignment_one_term(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """One term exactly F-1, F, F+1 or F+2 binades below one other, nothing else: the last kept and the first cut bit."""
    size = (draw.count,)
    distance = draw.rng.choice(draw.window_bits, size=draw.count) + draw.pick(-1, 2, size)
    c_low, c_high = lowest_exponent(draw.c), highest_exponent(draw.c)
    against_c, small = np.clip(draw.pick(draw.low, draw.high, size), c_low - distance, c_high - distance), draw.chance(0.5, size)
    above_c = np.maximum(draw.pick(draw.low, draw.high, size), np.minimum(c_low + distance, draw.high))
    above_product = draw.pick(np.minimum(draw.tiniest + distance, draw.high), draw.high, size)
    with_c = draw.chance(0.6, size) if draw.k > 1 else np.ones(draw.count, bool)
    main = np.where(with_c, np.where(small, against_c, above_c), above_product)
    place = draw.pick(0, draw.k - 1, size)
    other = (place + draw.pick(1, max(draw.k - 1, 1), size)) % draw.k
    columns = np.arange(draw.k)
    second = (columns == other[:, None]) & ~with_c[:, None]
    a, b = _sharp(draw, np.where(second, (main - distance)[:, None], main[:, None]))
    a = np.where(second | (columns == place[:, None]), a, np.zeros((), draw.a.dtype))
    c = draw.numbers(draw.c, np.where(small, main + distance, main - distance))
    return a, b, np.where(with_c, c, draw.zeros(draw.c, size))


def _half_ulp(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """c plus or minus half a unit of its last place, alone or with one bit more or less at every weight below it."""
    size, drop = (draw.count,), draw.kept_bits + 1
    depth = max(int(draw.window_bits.max()) - draw.kept_bits, 1) + 2
    low, high = (edge + drop for edge in (draw.tiniest, draw.high))
    low, high = max(lowest_exponent(draw.c), min(low + depth, high)), min(highest_exponent(draw.c), high)
    exponent = draw.pick(min(low, high), high, size)
    target = np.repeat(exponent[:, None] - drop, draw.k, axis=1)
    if draw.k > 1:
        target[:, 1] -= draw.pick(1, depth, size)
    a, b = draw.products(target, normal=False, exact=True)
    live = np.arange(draw.k) < np.where(draw.chance(0.3, size), 1, 2)[:, None]
    a = np.where(live, np.where(draw.chance(0.5, draw.shape), negate(draw.a, a), a), np.zeros((), draw.a.dtype))
    kept = np.uint64((1 << 64) - (1 << (64 - min(draw.kept_bits, 63)))) if draw.kept_bits else np.uint64(0)
    c = encode(draw.c, draw.pick(0, 1, size), exponent, draw.fraction(size) & kept)
    return (*draw.shuffle(a, b), c)  # type: ignore[return-value]


def _next_code(fmt: Format, codes: Bits) -> Bits:
    """Flips the last bit of finite codes; largest numbers, whose neighbour may be a NaN, step down instead."""
    unit = fmt.dtype.type(1 << fmt.ignored_low)
    magnitude = codes & fmt.dtype.type((1 << fmt.sign_shift) - 1) if fmt.sign_shift > 0 else codes
    return np.asarray(np.where(magnitude == fmt.largest, codes - unit, codes ^ unit))


def _cancel_last_bit(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """Everything cancels but the last bit of one significand: normalisation over the whole register, sign of the rest."""
    size, half = (draw.count,), draw.k // 2
    top = draw.pick(draw.low, draw.high, (draw.count, 1))
    a, b = draw.products(np.maximum(top - draw.pick(0, 3, draw.shape), draw.low))
    a[:, half : 2 * half], b[:, half : 2 * half] = a[:, :half], b[:, :half]
    against_c = draw.chance(0.4, size)
    if draw.a.signed:
        a[:, half : 2 * half] = negate(draw.a, a[:, :half])
    else:
        b[:, half : 2 * half] = negate(draw.b, b[:, :half])
    single = not half or not (draw.a.signed or draw.b.signed)
    if single:
        against_c[:] = True
    else:
        if draw.k % 2:
            a[:, -1] = 0
        b[~against_c, half] = _next_code(draw.b, b[~against_c, half])
        a[against_c, half] = 0
    c = _negative_sum(draw, a, b, not single)
    c = np.where(draw.chance(0.8, size), _next_code(draw.c, c), c)
    return (*draw.shuffle(a, b), np.where(against_c, c, draw.zeros(draw.c, size)))  # type: ignore[return-value]


def _few(draw: _Draw, a: Bits) -> Bits:
    """Keeps one to all of the elements of every row, zeroes the others."""
    density = draw.rng.choice([1 / draw.k, 2 / draw.k, 0.5, 1.0], size=(draw.count, 1))
    first = np.arange(draw.k) == draw.pick(0, draw.k - 1, (draw.count, 1))
    return np.where(first | (draw.rng.random(draw.shape) < density), a, np.zeros((), a.dtype))


def _subnormal_product(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """Products below D's normal range or of two subnormals, c of their size: products that a unit may flush."""
    row = (draw.count, 1)
    below_d = lowest_exponent(draw.d) - draw.pick(1, draw.d.fraction_bits + 2, row)
    least = draw.tiniest + draw.pick(0, draw.a.fraction_bits + draw.b.fraction_bits, row)
    middle = np.where(draw.chance(0.5, row), below_d, least)
    a, b = draw.products(middle + draw.pick(-1, 1, draw.shape), normal=False)
    near = np.maximum(middle[:, 0], draw.tiniest) + draw.pick(-2, 4, (draw.count,))
    c = draw.numbers(draw.c, np.clip(near, tiniest_exponent(draw.c), highest_exponent(draw.c)))
    return _few(draw, a), b, np.where(draw.chance(0.3, (draw.count,)), draw.zeros(draw.c, (draw.count,)), c)


def _subnormal_result(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """Totals in D's subnormal range, from tiny addends or where larger products cancel: denormalising and its rounding."""
    size = (draw.count,)
    exponent = draw.pick(tiniest_exponent(draw.d), lowest_exponent(draw.d), size)
    pairs = draw.chance(0.4, size) | (exponent < draw.tiniest)
    target = np.where(pairs[:, None], draw.pick(draw.low, min(draw.low + 8, draw.high), draw.shape), exponent[:, None])
    a, b = draw.products(target + draw.pick(-3, 0, draw.shape), normal=False)
    a = np.where(pairs[:, None], a, _few(draw, a))
    half = draw.k // 2
    a[pairs, 2 * half :] = 0
    a[pairs, half : 2 * half], b[pairs, half : 2 * half] = a[pairs, :half], b[pairs, :half]
    if draw.a.signed:
        a[pairs, half : 2 * half] = negate(draw.a, a[pairs, :half])
    else:
        b[pairs, half : 2 * half] = negate(draw.b, b[pairs, :half])
    a[pairs & draw.chance(0.7, size)] = 0  # c alone: where products are aligned with it, they would push it out
    c = draw.numbers(draw.c, np.maximum(exponent, tiniest_exponent(draw.c)))
    zero = draw.chance(0.2, size) & ~pairs
    return (*draw.shuffle(a, b), np.where(zero, draw.zeros(draw.c, size), c))  # type: ignore[return-value]


def special_codes(fmt: Format) -> Bits:
    """Infinities and NaNs (quiet, signalling) of both signs; where a format has none, its largest numbers."""
    corners = corner_codes(fmt)
    found = [code for code in corners.tolist() if fmt.decode(code).kind >= Kind.INFINITY]
    edges = np.array([fmt.largest], fmt.dtype)
    return np.array(found, fmt.dtype) if found else np.unique(np.concatenate([edges, negate(fmt, edges)]))


def _special_each(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """One infinity or NaN, in every element of a, b, c and the scales in turn and of every code; the rest ordinary."""
    a, b, c = _narrow(draw)
    places = [(draw.a, a), (draw.b, b), (draw.c, c[:, None])]
    places += [(draw.ins.formats[name], codes) for name, codes in draw.scales.items()]
    total = sum(codes.shape[1] for _, codes in places)
    index = np.arange(draw.count) + draw.rng.integers(0, 1 << 32)
    place, turn = index % total, index // total
    for fmt, codes in places:
        rows = np.flatnonzero((place >= 0) & (place < codes.shape[1]))
        specials = special_codes(fmt)
        codes[rows, place[rows]] = specials[turn[rows] % len(specials)]
        place = place - codes.shape[1]
    return a, b, c


def _special_pairs(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """Infinity times zero, infinite products of opposite sign, an infinite product against c, at every k in turn."""
    a, b, c = _narrow(draw)
    index = np.arange(draw.count) + draw.rng.integers(0, 1 << 32)
    place, case, row = index % draw.k, index // draw.k % 3, np.arange(draw.count)
    huge = {name: fmt.largest if fmt.infinity is None else fmt.infinity for name, fmt in draw.ins.formats.items()}
    flip = draw.chance(0.5, (draw.count,))

    def signed(fmt: Format, code: int, sign: Bits) -> Bits:
        codes = np.full(draw.count, code, fmt.dtype)
        return np.where(sign, negate(fmt, codes), codes)

    only_b = draw.a.infinity is None and draw.b.infinity is not None  # then b brings the infinity of a product
    ones = np.where(only_b | draw.chance(0.2, (draw.count,)), draw.b.dtype.type(huge["b"]), draw.b.dtype.type(one(draw.b)))
    a[row, place] = signed(draw.a, huge["a"], flip)
    b[row, place] = np.where(case == 0, draw.zeros(draw.b, (draw.count,)), ones)
    swapped = (case == 0) & draw.chance(0.5, (draw.count,))
    a[row, place] = np.where(swapped, draw.zeros(draw.a, (draw.count,)), a[row, place])
    b[row, place] = np.where(swapped, signed(draw.b, huge["b"], flip), b[row, place])
    second, other = (case == 1) & (draw.k > 1), (place + draw.pick(1, max(draw.k - 1, 1), (draw.count,))) % draw.k
    a[row, other] = np.where(second, signed(draw.a, huge["a"], ~flip), a[row, other])
    b[row, other] = np.where(second, ones, b[row, other])
    return a, b, np.where(case == 2, signed(draw.c, huge["c"], ~flip), c)


def _zero_partners(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """A zero of either sign against every finite edge of the formats, at every k in turn, all else zeros of one sign."""
    row, size = np.arange(draw.count), (draw.count,)
    sign = draw.chance(0.5, size)
    rest = np.where(sign, negate(draw.a, np.zeros(1, draw.a.dtype)), np.zeros(1, draw.a.dtype))
    a = np.repeat(rest[:, None].astype(draw.a.dtype), draw.k, axis=1)
    b = np.full(draw.shape, one(draw.b), draw.b.dtype)
    index = row + draw.rng.integers(0, 1 << 32)
    place, turn = index % draw.k, index // draw.k

    def edges(fmt: Format) -> Bits:
        finite = [code for code in corner_codes(fmt).tolist() if fmt.decode(code).kind < Kind.INFINITY]
        return np.asarray(np.array(finite, fmt.dtype)[turn // 2 % len(finite)])

    zero_in_a = turn % 2 == 0
    a[row, place] = np.where(zero_in_a, draw.zeros(draw.a, size), edges(draw.a))
    b[row, place] = np.where(zero_in_a, edges(draw.b), draw.zeros(draw.b, size))
    return a, b, np.where(draw.chance(0.7, size), draw.zeros(draw.c, size), edges(draw.c))


def _counts(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """None, all but one or two, or all products non-zero, zeros of one sign or of both, c at any corner of its format."""
    row = (draw.count, 1)
    a, b, _ = _narrow(draw)
    if draw.a.bits == 1:
        a, b = np.ones(draw.shape, draw.a.dtype), np.ones(draw.shape, draw.b.dtype)
    missing = draw.rng.choice([0, 1, 2, draw.k], size=row)
    order = draw.rng.permuted(np.broadcast_to(np.arange(draw.k), draw.shape), axis=1)
    sign, shared = draw.pick(0, 1, draw.shape), draw.chance(0.7, row)
    sign = np.where(shared, sign[:, :1], sign)
    b_sign = (b >> draw.b.dtype.type(draw.b.sign_shift)) & 1 if draw.b.signed and draw.b.is_float else np.zeros(draw.shape)
    zeros = np.zeros(draw.shape, draw.a.dtype)
    # A zero of b's sign gives +0, one of the other sign -0; where a has no -0, b's sign is set instead.
    if draw.a.is_float:
        b = np.where((order < missing) & (b_sign != sign), negate(draw.b, b), b)
    a = np.where(order < missing, zeros, a)
    corners = corner_codes(draw.c)
    c = np.where(
        draw.chance(0.7, (draw.count,)), corners[draw.pick(0, len(corners) - 1, (draw.count,))], draw.zeros(draw.c, (draw.count,))
    )
    return a, b, c


def _deep_cancellation(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """The largest addends cancel exactly and one far smaller addend is left, or none: long normalisation shifts."""
    size, row = (draw.count,), (draw.count, 1)
    limit = min(draw.high, highest_exponent(draw.c), highest_exponent(draw.d))
    top = draw.pick(max(limit - 8, draw.low) if draw.high < 64 else min(draw.low, 0), limit, row)
    target = np.broadcast_to(top, draw.shape).copy()
    anywhere, near = draw.pick(draw.tiniest, draw.high, draw.shape), top - draw.pick(8, draw.kept_bits + 2, draw.shape)
    target[:, 1 if draw.k < 3 else 2 :] = np.where(draw.chance(0.5, row), anywhere, near)[:, 1 if draw.k < 3 else 2 :]
    a, b = draw.products(target, normal=False, exact=True)
    against_c = draw.chance(0.5, row) if draw.k > 1 else np.ones(row, bool)
    if draw.k > 1:
        a[:, 1], b[:, 1] = negate(draw.a, a[:, 0]), b[:, 0]
        if not draw.a.signed:
            b[:, 1] = negate(draw.b, b[:, 0])
    places = np.arange(draw.k)
    left = np.where(draw.chance(0.5, row), min(2, draw.k), draw.pick(1 if draw.k < 3 else 2, draw.k, row))
    used = (places == 0) | (~against_c & (places == 1)) | (places == left)
    a = np.where(used, a, np.zeros((), draw.a.dtype))
    c = np.where(against_c[:, 0], _negative_sum(draw, a, b, True), draw.zeros(draw.c, size))
    order = draw.rng.permuted(np.broadcast_to(places, draw.shape), axis=1)
    if draw.k >= 4:  # in half of the rows x, what is left, -x: an adder tree meets the small one before x cancels
        near_first = np.r_[0, 2, 1, 3 : draw.k]
        order = np.where(draw.chance(0.5, row), near_first[(places + 4 * draw.pick(0, draw.k // 4, row)) % draw.k], order)
    return np.take_along_axis(a, order, axis=1), np.take_along_axis(b, order, axis=1), c


def _widest_sum(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """The largest significands of one sign at one exponent, scales and c included: every integer bit of the sum."""
    row, size, ones = (draw.count, 1), (draw.count,), np.uint64((1 << 64) - 1)
    minus = draw.pick(0, 1, row)
    total = np.zeros(row, np.int64)

    def largest(fmt: Format, sign: Ints, shape: tuple[int, ...], low: int, high: int) -> Bits:
        exponent = np.where(draw.chance(0.3, row), high, draw.pick(low, high, row))
        total[...] += exponent
        return encode(fmt, np.broadcast_to(sign, shape), np.broadcast_to(exponent, shape), np.full(shape, ones))

    a = largest(draw.a, minus, draw.shape, lowest_exponent(draw.a), highest_exponent(draw.a))
    b = largest(draw.b, 0 * minus, draw.shape, lowest_exponent(draw.b), highest_exponent(draw.b))
    for name, codes in draw.scales.items():
        codes[...] = largest(draw.ins.formats[name], 0 * minus, codes.shape, -2, 2)
    c = encode(draw.c, minus[:, 0], total[:, 0] + draw.pick(0, 2, size), np.full(size, ones))
    return a, b, np.where(draw.chance(0.2, size), draw.zeros(draw.c, size), c)


def _round_up(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """Just below a power of two, the least normal among them: c with all ones and half a place, or 1 minus a half place."""
    size, drop = (draw.count,), draw.kept_bits + 1
    lowest, highest = lowest_exponent(draw.d), min(highest_exponent(draw.d), highest_exponent(draw.c))
    at_least = draw.chance(0.4, size)
    last = np.where(at_least, lowest, draw.pick(max(draw.tiniest + drop, lowest), min(draw.high + drop, highest), size))
    pair = draw.chance(0.3 if draw.k > 1 else 0.0, size)
    top = np.maximum(draw.pick(draw.low, draw.high, size), np.minimum(draw.tiniest + drop + 1, draw.high))
    target = np.repeat(np.where(pair, top, last - drop)[:, None], draw.k, axis=1)
    target[:, 1:] = np.where(pair[:, None], (top - drop - 1)[:, None], target[:, 1:])
    alone = ~pair & draw.chance(0.25, size)  # without c: what is lost below D's last place
    exact, rough = draw.products(target, normal=False, exact=True), draw.products(target, normal=False)
    inexact = (alone & draw.chance(0.5, size))[:, None]
    a, b = (np.where(inexact, loose, sharp) for loose, sharp in zip(rough, exact, strict=True))
    place = np.arange(draw.k)
    a = np.where((place == 0) | (pair[:, None] & (place == 1)), a, np.zeros((), draw.a.dtype))
    minus = draw.pick(0, 1, size)
    signs = np.where(place == 0, minus[:, None], 1 - minus[:, None])
    if draw.a.signed:
        a = np.where(signs == 1, negate(draw.a, a), a)
    else:
        b = np.where(signs == 1, negate(draw.b, b), b)
    ones = np.uint64((1 << 64) - 1) << np.uint64(64 - max(draw.kept_bits, 1))
    c = encode(draw.c, minus, np.where(at_least, lowest - 1, last), np.full(size, ones))
    c = np.where(pair | alone, draw.zeros(draw.c, size), c)
    # Moved by even distances: the two products of a pair stay neighbours, as an adder tree has them.
    order = (place + np.where(pair, 2 * draw.pick(0, draw.k // 2, size), draw.pick(0, draw.k, size))[:, None]) % draw.k
    return np.take_along_axis(a, order, axis=1), np.take_along_axis(b, order, axis=1), c


def _signed(draw: _Draw, a: Bits, b: Bits, sign: Bits) -> tuple[Bits, Bits]:
    """Products of the given signs from positive factors; with unsigned a the sign goes to b, where that has one."""
    if draw.a.signed:
        return np.where(sign == 1, negate(draw.a, a), a), b
    return a, np.where(sign == 1, negate(draw.b, b), b)


def _few_powers(draw: _Draw, exponents: list[Ints], signs: list[Ints], present: list[Bits]) -> tuple[Bits, Bits]:
    """Products that are powers of two at the given exponents (each (count,)), in random order; all others are zero."""
    terms = min(len(exponents), draw.k)
    target = np.repeat(exponents[0][:, None], draw.k, axis=1)
    sign, live = np.zeros(draw.shape, np.int64), np.zeros(draw.shape, bool)
    for column in range(terms):
        target[:, column], sign[:, column], live[:, column] = exponents[column], signs[column], present[column]
    a, b = draw.products(target, normal=False, exact=True)
    a, b = _signed(draw, np.where(live, a, np.zeros((), draw.a.dtype)), b, sign)
    return draw.shuffle(a, b)  # type: ignore[return-value]


def _floor_edge(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """Products below the exponent floor: one at D's last place or half of it, one around the last bit kept below the floor."""
    size, steps = (draw.count,), [step for operation in draw.ins.program.operations for step in operation.steps]
    edges = [step.floor - bits for step in steps if step.floor is not None for _, bits in step.fraction_bits]
    last = lowest_exponent(draw.d) - draw.kept_bits
    edge = draw.rng.choice(edges or [last - 2], size=draw.count)
    minus = draw.pick(0, 1, size)
    reach = draw.tiniest + sum(lowest_exponent(draw.ins.formats[name]) for name in draw.scales)
    at = np.maximum(last + draw.rng.choice([-3, -2, -1, -1, -1, 0, 0, 1, 2, 3], size=draw.count), reach)
    small = [edge + draw.pick(-1, 1, size), edge + draw.pick(-1, 1, size)]
    other = np.where(draw.chance(0.7, size), 1 - minus, minus)
    near = draw.chance(0.3, size)  # three bits in a row: remainders below and above half
    small = [np.where(near, at - step, low) for step, low in zip((1, 2), small, strict=True)]
    other = np.where(near, minus, other)
    always, often = np.ones(size, bool), draw.chance(0.3, size)
    a, b = _few_powers(draw, [at, *small], [minus, other, other], [always, always, often])
    return a, b, draw.zeros(draw.c, size)


def _below_power(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """c a power of two, less half a unit (or 3 or 5 halves) of the binade below, and one bit more or less at any weight."""
    size = (draw.count,)
    half, least = draw.kept_bits + 2, int(draw.window_bits.max()) + 2
    low, high = draw.tiniest + least, draw.high + half - 3
    low, high = max(lowest_exponent(draw.c), min(low, high)), min(highest_exponent(draw.c), high)
    exponent = draw.pick(min(low, high), high, size)
    minus = draw.pick(0, 1, size)
    weight = draw.pick(min(half + 1, least), least, size)
    exponents = [exponent - half, exponent - half + draw.pick(1, 2, size), exponent - weight]
    signs = [1 - minus, 1 - minus, draw.pick(0, 1, size)]
    a, b = _few_powers(draw, exponents, signs, [np.ones(size, bool), draw.chance(0.6, size), draw.chance(0.8, size)])
    return a, b, draw.powers(draw.c, exponent, minus)


def _cancelled_groups(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """Groups that cancel exactly but keep their exponent or scale, beside small groups and a small c."""
    size, quads = (draw.count,), draw.k // 4
    high = min(draw.high, highest_exponent(draw.d))
    a, b = draw.products(np.maximum(draw.pick(high - 8, high, draw.shape), draw.low))
    first, second = np.arange(quads * 4).reshape(quads, 4)[:, :2].ravel(), np.arange(quads * 4).reshape(quads, 4)[:, 2:].ravel()
    a[:, second], b[:, second] = a[:, first], b[:, first]
    if draw.a.signed:
        a[:, second] = negate(draw.a, a[:, first])
    else:
        b[:, second] = negate(draw.b, b[:, first])
    a[:, quads * 4 :] = 0
    blocks = max(draw.scales["scale_a"].shape[1] if draw.scales else draw.ins.k // 16, 1)
    live = draw.chance(0.3, (draw.count, blocks)) & draw.chance(0.7, (draw.count, 1))
    for name, codes in draw.scales.items():
        fmt = draw.ins.formats[name]
        top = min(highest_exponent(fmt), 60)
        exponent = np.where(live, draw.pick(max(lowest_exponent(fmt), -24), 0, codes.shape), draw.pick(top - 2, top, codes.shape))
        codes[...] = draw.numbers(fmt, exponent)
    spread = np.repeat(live, -(-draw.k // blocks), axis=1)[:, : draw.k]
    odd = np.arange(draw.k) % 4 == 0
    a = np.where(spread & odd, np.zeros((), draw.a.dtype), a)
    scale_top = sum(min(highest_exponent(draw.ins.formats[name]), 60) for name in draw.scales)
    reach = int(draw.window_bits.max()) + 4
    top = high + scale_top if draw.scales else high
    c = draw.numbers(draw.c, np.clip(top - draw.pick(0, reach, size), tiniest_exponent(draw.c), highest_exponent(draw.c)))
    return a, b, c


def _product_tie(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """One product with a bit or two more than D keeps (or all that the factors have), c zero: its rounding, ties first."""
    size = (draw.count,)
    digits = draw.kept_bits + 1 + draw.pick(1, 2, size)
    of_b = np.minimum(draw.pick(1, draw.kept_bits + 1, size), draw.b.fraction_bits + 1)
    of_a = np.clip(digits - of_b, 1, draw.a.fraction_bits + 1)
    place = np.arange(draw.k) == draw.pick(0, draw.k - 1, (draw.count, 1))
    low, high = max(lowest_exponent(draw.d), draw.low), min(highest_exponent(draw.d) - 1, draw.high)
    first, second = draw.split(draw.pick(min(low, high), high, size), draw.a, draw.b)
    codes = []
    for fmt, exponent, length in ((draw.a, first, of_a), (draw.b, second, of_b)):
        # `length` digits, the last of them set, counted from the leading one.
        kept = np.uint64(64) - (length - 1).astype(np.uint64)
        cut = np.where(length > 1, draw.fraction(size) >> np.minimum(kept, np.uint64(63)) | np.uint64(1), np.uint64(0))
        fraction = np.where(length > 1, cut << np.minimum(kept, np.uint64(63)), np.uint64(0))
        codes.append(draw.numbers(fmt, exponent) if fmt.bits == 1 else encode(fmt, draw.pick(0, 1, size), exponent, fraction))
    a = np.where(place, codes[0][:, None], np.zeros((), draw.a.dtype))
    b = np.where(place, codes[1][:, None], draw.b.dtype.type(one(draw.b)))
    return a, b, draw.zeros(draw.c, size)


def _corner_pairs(draw: _Draw) -> tuple[Bits, Bits, Bits]:
    """Every corner of a's format against every corner of b's, in turn, at one k; the rest ordinary."""
    a, b, c = _narrow(draw)
    first, second = corner_codes(draw.a), corner_codes(draw.b)
    row = np.arange(draw.count)
    index = row + draw.rng.integers(0, 1 << 32)
    place = draw.pick(0, draw.k - 1, (draw.count,))
    a[row, place], b[row, place] = first[index % len(first)], second[index // len(first) % len(second)]
    return a, b, c


_GENERATORS: dict[str, Callable[[_Draw], tuple[Bits, Bits, Bits]]] = {
    "random_bits": _random_bits,
    "narrow": _narrow,
    "wide": _wide,
    "cancelling": _cancelling,
    "subnormal": _subnormal,
    "tiny_zero_c": _tiny_zero_c,
    "near_overflow": _near_overflow,
    "tie": _tie,
    "special_values": _special_values,
    "zeros": _zeros,
    "equal_exponents": _equal_exponents,
    "alignment_edge": _alignment_edge,
    "c_dominant": _c_dominant,
    "one_hot": _one_hot,
    "alignment_one_term": _alignment_one_term,
    "half_ulp": _half_ulp,
    "cancel_last_bit": _cancel_last_bit,
    "subnormal_product": _subnormal_product,
    "subnormal_result": _subnormal_result,
    "special_each": _special_each,
    "special_pairs": _special_pairs,
    "zero_partners": _zero_partners,
    "counts": _counts,
    "deep_cancellation": _deep_cancellation,
    "widest_sum": _widest_sum,
    "round_up": _round_up,
    "floor_edge": _floor_edge,
    "below_power": _below_power,
    "cancelled_groups": _cancelled_groups,
    "product_tie": _product_tie,
    "corner_pairs": _corner_pairs,
}
KINDS: tuple[str, ...] = tuple(_GENERATORS)
SEARCH_KINDS = KINDS[: KINDS.index("one_hot") + 1]
"""The kinds that golden/compare.py spreads its budget over: fixed, so that a seed always finds the same example."""
