"""A program's steps over whole arrays of dot products, watched from inside: what functional coverage samples.

    for seen in observe(ins, operands): ...

The reference interprets one dot product at a time and explains it; this module runs the same steps on NumPy
arrays, because coverage looks at some 20,000 vectors, and keeps of every alignment, sum and rounding what a
bin needs. Significands are 64-bit integers where they fit and Python integers (object arrays) where they do
not, so nothing is lost. It knows the steps, keys and values of `_OBSERVED` and `_VALUES` and no others:
`unobserved` names what a unit has besides, and coverage refuses it. The tests hold its results against the C
core, and so does every count (golden/cover/coverage.py): what coverage says about a vector is about the
vector's true arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from golden.errors import CoverageError
from golden.number.formats import Format, Kind
from golden.program.keys import declared
from golden.program.program import NO_SEED, Operation
from golden.program.steps import Additions, Fma, Sum, format_of

if TYPE_CHECKING:
    from golden.instruction import Instruction

Array = npt.NDArray[Any]
_WORD = 62
"""Significands of at most this many bits stay 64-bit integers."""
_bit_lengths = np.frompyfunc(int.bit_length, 1, 1)


@dataclass(frozen=True)
class Numbers:
    """Exact numbers, (count, terms): (-1)**sign * significand * 2**lsb. `exponent` is the one that
    alignment compares."""

    kind: Array
    sign: Array
    significand: Array
    lsb: Array
    exponent: Array

    def __getitem__(self, columns: Any) -> Numbers:
        return Numbers(
            *(
                field[:, columns]
                for field in (self.kind, self.sign, self.significand, self.lsb, self.exponent)
            )
        )

    @property
    def count(self) -> int:
        """The number of terms of each dot product."""
        return int(self.kind.shape[1])

    @property
    def finite(self) -> Array:
        """Where the number is finite and takes part in alignment (a sum that cancelled to nothing does)."""
        return np.asarray(self.kind == Kind.FINITE)

    @property
    def nonzero(self) -> Array:
        """Where the number is finite and not zero."""
        return np.asarray(self.finite & np.asarray(self.significand != 0, bool))


@dataclass(frozen=True)
class Multiplied:
    """The products of an operation and the factors they came from."""

    operation: int
    step: Any
    a: Numbers
    b: Numbers
    products: Numbers


@dataclass(frozen=True)
class Aligned:
    """One group of one alignment: the terms before it, the exponent that they met and what was cut.

    `owners` names the register that each term came from, `columns` its place among all terms of the step;
    `lost` says where non-zero bits were cut, `kept` where some were left.
    """

    operation: int
    step: Any
    terms: Numbers
    owners: tuple[str, ...]
    columns: tuple[int, ...]
    maximum: Array
    lost: Array
    kept: Array


@dataclass(frozen=True)
class Summed:
    """One exact sum: its terms and the total; `lost` says where the alignment before it had cut a term."""

    operation: int
    step: Any
    terms: Numbers
    total: Numbers
    lost: Array


@dataclass(frozen=True)
class Rounded:
    """One rounding to a format.

    `remainder` is the index into REMAINDERS of what was cut, `increment` whether the magnitude went up by
    one, `carry` whether that reached the exponent, `overflow` whether the rounded number is past the largest
    finite one.
    """

    operation: int
    step: Any
    format: Format
    before: Numbers
    remainder: Array
    increment: Array
    carry: Array
    overflow: Array
    result: Numbers


@dataclass(frozen=True)
class Answered:
    """The end: d of every dot product, (count, 1)."""

    d: Numbers


Seen = Multiplied | Aligned | Summed | Rounded | Answered
REMAINDERS = ("exact", "below half", "tie", "above half")

_IEEE = ("format", "rounding", "flush", "nan")
_OBSERVED: dict[str, tuple[str, ...]] = {
    "flush": ("of", "sign"),
    "multiply": ("of", "to", *_IEEE, "normalize", "overflow_exponent", "operation", "negate"),
    "scale": ("of",),
    "special_values": ("of", "nan"),
    "align": ("of", "group", "fraction_bits", "rounding", "cut", "floor", "window"),
    "sum": ("of", "to", "group", *_IEEE, "exponent", "order", "overflow"),
    "normalize": ("of", "fraction_bits", "rounding", "min_exponent"),
    "fma": ("of", "to", "group", *_IEEE, "start", "nan_order"),
    "round": ("of", "to", *_IEEE, "overflow", "zero", "result_fraction_bits"),
}
"""The steps that are observed, and the fields of each that may differ from their defaults."""

_VALUES: dict[str, tuple[Any, ...]] = {
    "flush": ("none", "signed", "positive"),
    "operation": ("product", "and", "xor"),
    "negate": ("none", "product", "c", "both"),
    "order": ("tree", "sequential"),
    "sign": ("signed", "positive"),
    "cut": ("dropped", "sticky"),
    "overflow": ("infinity", "largest", "ieee", "wrap", "saturate"),
    "rounding": ("toward_zero", "nearest_even", "nearest_away", "down", "up"),
    "start": ("c", "zero", "product"),
    "zero": ("positive", "signed", "signed_underflow"),
}
"""The words that are observed, of fields that hold one of several."""

_GROUPS = ("contiguous", "interleaved")
_SPECIALS = ("ieee", "all_ones_nan", "negative_zero_nan", "none")


def unobserved(ins: Instruction) -> str | None:
    """What the instruction has that this module does not observe, in a few words; None where it observes
    all."""
    formats = [*ins.formats.values()]
    for operation in ins.program.operations:
        formats += [operation.seed_format, operation.out_format, *filter(None, [operation.operand_format])]
        for step in operation.steps:
            if step.op not in _OBSERVED:
                return f"step '{step.op}'"
            for name, _, default in declared(step):
                value = getattr(step, name)
                known = _VALUES.get(name, (value,)) if name in _OBSERVED[step.op] else (default,)
                if value not in known or (name == "group" and value is not None and value[0] not in _GROUPS):
                    return f"'{name}' of step '{step.op}'"
            if isinstance(step, Fma) and step.nan_order and not _is_nan(step):
                return "a NaN word that is a number, beside 'nan_order',"
            formats += filter(None, [format_of(step)])
    odd = next((fmt for fmt in formats if fmt.is_float and fmt.specials not in _SPECIALS), None)
    return None if odd is None else f"format {odd.name}"


def observe(ins: Instruction, operands: dict[str, Array]) -> Iterator[Seen]:
    """Runs (count,) dot products and yields what each step did, in order, and d at the end.

    Args:
        operands: as `ins.dot` takes them, with one leading dimension.

    Raises:
        CoverageError: the instruction does what is not observed here.
    """
    missing = unobserved(ins)
    if missing is not None:
        raise CoverageError(
            f"{ins.name}: functional coverage has no figure for this unit: {missing} is not observed"
        )
    a, b = decode(ins.formats["a"], operands["a"]), operands["b"]
    if ins.pattern is not None:
        b = np.take_along_axis(b, ins.pattern.columns(operands["metadata"]), axis=1)
    factors = a, decode(ins.formats["b"], b)
    scales = _scale_products(ins, operands)
    results = {"c": decode(ins.formats["c"], operands["c"][:, None])}
    for index, operation in enumerate(ins.program.operations):
        if operation.seed in ("zero", NO_SEED):
            results[operation.seed] = decode(operation.seed_format, np.zeros_like(operands["c"][:, None]))
        run = _Run(index, operation, factors, results, scales)
        yield from run.steps()
        results[operation.to] = run.registers["d"]
    yield Answered(run.registers["d"])


def _nothing(like: Numbers) -> dict[str, Array]:
    return {"sign": np.zeros_like(like.sign), "significand": np.zeros_like(like.significand)}


def _is_nan(step: Any) -> bool:
    """Whether the word that a step has for NaN is one in its format."""
    return step.format is not None and step.nan is not None and step.format.decode(step.nan).kind == Kind.NAN


# Decoding ---------------------------------------------------------------------------------------------------


def decode(fmt: Format, codes: Array) -> Numbers:
    """Decodes raw codes; ignored bits are dropped first, subnormals keep the format's least exponent."""
    raw = codes.astype(np.uint64)
    if not fmt.is_float:
        value = (raw & np.uint64((1 << fmt.integer_bits) - 1)).astype(np.int64)
        if fmt.signed:
            value -= (value >> (fmt.integer_bits - 1)) << fmt.integer_bits
        zeros = np.zeros(value.shape, np.int64)
        return Numbers(
            (value != 0).astype(np.uint8), (value < 0).astype(np.uint8), np.abs(value), zeros, zeros
        )
    sign = (raw >> np.uint64(fmt.sign_shift)) & np.uint64(1) if fmt.signed else np.zeros_like(raw)
    ones = (1 << (fmt.exponent_bits + fmt.fraction_bits)) - 1
    fields = ((raw >> np.uint64(fmt.ignored_low)) & np.uint64(ones)).astype(np.int64)
    biased, fraction = fields >> fmt.fraction_bits, fields & ((1 << fmt.fraction_bits) - 1)
    low = (biased == 0) & fmt.has_zero
    significand = np.where(low, fraction, fraction | 1 << fmt.fraction_bits)
    exponent = np.where(low, fmt.min_exponent, biased - fmt.bias)
    kind = np.where(significand == 0, Kind.ZERO, Kind.FINITE).astype(np.uint8)
    if fmt.specials == "ieee":
        top = biased == (1 << fmt.exponent_bits) - 1
        kind[top] = np.where(fraction[top] != 0, Kind.NAN, Kind.INFINITY)
    elif fmt.specials == "all_ones_nan":
        kind[fields == ones] = Kind.NAN
    elif fmt.specials == "negative_zero_nan":
        kind[(sign == 1) & (fields == 0)] = Kind.NAN
    return Numbers(kind, sign.astype(np.uint8), significand, exponent - fmt.fraction_bits, exponent)


def _scale_products(ins: Instruction, operands: dict[str, Array]) -> Numbers | None:
    if ins.scale_block is None:
        return None
    each = ins.scale_block * ins.stored_k // ins.k
    x, y = (
        decode(ins.formats[name], np.repeat(operands[name], each, axis=1)) for name in ("scale_a", "scale_b")
    )
    return _product(x, y)


def bit_length(significand: Array) -> Array:
    """Bit lengths of non-negative integers of any size."""
    if significand.dtype == object:
        return np.asarray(_bit_lengths(significand), np.int64).reshape(significand.shape)
    # Two halves of at most 32 bits are exact in float64, whose exponent is the bit length.
    high = np.frexp((significand >> 31).astype(np.float64))[1]
    low = np.frexp((significand & 0x7FFFFFFF).astype(np.float64))[1]
    return np.where(high > 0, high + 31, low).astype(np.int64)


def _longest(significand: Array) -> int:
    return int(significand.max()).bit_length() if significand.size else 0


def _shift_left(significand: Array, shift: Array) -> Array:
    """Shifts left by 0 or more bits, exactly."""
    if significand.dtype != object and _longest(significand) + int(shift.max(initial=0)) <= _WORD:
        return np.asarray(significand << shift)
    return np.asarray(significand.astype(object) << shift.astype(object))


def _split_right(significand: Array, shift: Array) -> tuple[Array, Array]:
    """Quotient and rest of a right shift by 0 or more bits."""
    if significand.dtype != object:
        bounded = np.minimum(shift, _WORD + 1)
        kept = significand >> bounded
        return kept, significand - (kept << bounded)
    kept = significand >> shift.astype(object)
    return kept, significand - (kept << shift.astype(object))


def _remainder(rest: Array, shift: Array) -> Array:
    """Index into REMAINDERS of what a right shift cut off."""
    doubled_length = bit_length(rest) + 1
    power = (rest & (rest - (rest > 0))) == 0
    above = (doubled_length > shift + 1) | ((doubled_length == shift + 1) & ~power.astype(bool))
    code = np.where(above, 3, np.where(doubled_length == shift + 1, 2, 1))
    return np.where(np.asarray(rest == 0, bool), 0, code).astype(np.uint8)


def _goes_up(sign: Array, kept: Array, remainder: Array, mode: str) -> Array:
    """Whether rounding adds one to the magnitude."""
    if mode == "nearest_even":
        return np.asarray((remainder == 3) | ((remainder == 2) & np.asarray((kept & 1) == 1, bool)))
    if mode == "nearest_away":
        return np.asarray(remainder >= 2)
    away = (sign == 1) if mode == "down" else (sign == 0) if mode == "up" else np.zeros(sign.shape, bool)
    return np.asarray((remainder > 0) & away)


def _shift_round(sign: Array, significand: Array, shift: Array, mode: str) -> tuple[Array, Array]:
    """Rounds significand / 2**shift (negative: moves left); returns the magnitude and the remainder's
    index."""
    moved = _shift_left(significand, np.maximum(-shift, 0))
    kept, rest = _split_right(moved, np.maximum(shift, 0))
    remainder = _remainder(rest, np.maximum(shift, 0))
    return kept + _goes_up(sign, kept, remainder, mode), remainder


# Steps ------------------------------------------------------------------------------------------------------


def _product(x: Numbers, y: Numbers) -> Numbers:
    nan = (x.kind == Kind.NAN) | (y.kind == Kind.NAN)
    infinite = (x.kind == Kind.INFINITY) | (y.kind == Kind.INFINITY)
    zero = (x.kind == Kind.ZERO) | (y.kind == Kind.ZERO)
    kind = np.where(zero, Kind.ZERO, Kind.FINITE)
    kind = np.where(infinite, Kind.INFINITY, kind)
    kind = np.where(nan | (infinite & zero), Kind.NAN, kind).astype(np.uint8)
    narrow = _longest(x.significand) + _longest(y.significand) <= _WORD
    product = (
        x.significand * y.significand
        if narrow
        else x.significand.astype(object) * y.significand.astype(object)
    )
    return Numbers(kind, x.sign ^ y.sign, product, x.lsb + y.lsb, x.exponent + y.exponent)


def _flushed(numbers: Numbers, rule: str, subnormal: Array) -> Numbers:
    zero = subnormal | (numbers.kind == Kind.ZERO)
    sign = numbers.sign if rule == "signed" else np.where(zero, 0, numbers.sign).astype(np.uint8)
    kind = np.where(zero, Kind.ZERO, numbers.kind).astype(np.uint8)
    return replace(numbers, kind=kind, sign=sign, significand=np.where(zero, 0, numbers.significand))


def _concatenate(parts: list[Numbers]) -> Numbers:
    fields = zip(*((p.kind, p.sign, p.significand, p.lsb, p.exponent) for p in parts), strict=True)
    return Numbers(*(np.concatenate(field, axis=1) for field in fields))


def groups_of(count: int, group: tuple[str, int] | None) -> list[list[int]]:
    """The columns of each group; without grouping, one group of all."""
    columns = list(range(count))
    if group is None:
        return [columns]
    kind, size = group
    if kind == "interleaved":
        return [columns[i::size] for i in range(size)]
    return [columns[i : i + size] for i in range(0, count, size)]


def _propagate(terms: Numbers) -> tuple[Array, Array]:
    """The kind of a sum (FINITE where no term is special) and the sign of an infinite one, each (count,
    1)."""
    infinite = terms.kind == Kind.INFINITY
    plus = (infinite & (terms.sign == 0)).any(axis=1, keepdims=True)
    minus = (infinite & (terms.sign == 1)).any(axis=1, keepdims=True)
    nan = (terms.kind == Kind.NAN).any(axis=1, keepdims=True) | (plus & minus)
    kind = np.where(nan, Kind.NAN, np.where(plus | minus, Kind.INFINITY, Kind.FINITE)).astype(np.uint8)
    return kind, minus.astype(np.uint8)


def exact_sum(terms: Numbers, rounding: str, exponent: int | None = None) -> Numbers:
    """The exact sum of all terms of each row, (count, 1); IEEE 754 6.3 signs of zero."""
    finite = terms.finite
    far = np.int64(1 << 40)
    lsb = np.where(finite, terms.lsb, far).min(axis=1, keepdims=True)
    some = finite.any(axis=1, keepdims=True)
    lsb = np.where(some, lsb, 0)
    shifted = _shift_left(np.where(finite, terms.significand, 0), np.where(finite, terms.lsb - lsb, 0))
    if shifted.dtype != object and _longest(shifted) + terms.count.bit_length() > _WORD:
        shifted = shifted.astype(object)
    total = np.where(terms.sign == 1, -shifted, shifted).sum(axis=1, keepdims=True)
    nothing = np.asarray(total == 0, bool)
    all_zero = np.asarray(terms.significand == 0, bool).all(axis=1, keepdims=True)
    shared = all_zero & (terms.sign == terms.sign[:, :1]).all(axis=1, keepdims=True)
    zero_sign = np.where(shared, terms.sign[:, :1], np.uint8(rounding == "down"))
    sign = np.where(nothing, zero_sign, np.asarray(total < 0, bool)).astype(np.uint8)
    special, special_sign = _propagate(terms)
    kind = np.where(special == Kind.FINITE, np.where(some, Kind.FINITE, Kind.ZERO), special).astype(np.uint8)
    sign = np.where(special == Kind.INFINITY, special_sign, sign).astype(np.uint8)
    top = (
        np.where(finite, terms.exponent, -far).max(axis=1, keepdims=True)
        if exponent is None
        else np.full(lsb.shape, exponent)
    )
    return Numbers(kind, sign, abs(total), lsb, np.where(some, top, 0))


def round_to(fmt: Format, exact: Numbers, step: Any, overflow: str) -> tuple[Numbers, dict[str, Array]]:
    """Rounds to a float format; returns the numbers as `decode` would give them, and the arrays of
    `Rounded` by name."""
    kept = getattr(step, "result_fraction_bits", None)
    kept = fmt.fraction_bits if kept is None else kept
    live = exact.nonzero
    mag = np.where(live, exact.significand, 0)
    exponent = np.maximum(bit_length(mag) - 1 + exact.lsb, fmt.min_exponent)
    shift = np.where(live, exponent - kept - exact.lsb, 0)
    truncated, _ = _shift_round(exact.sign, mag, shift, "toward_zero")
    significand, remainder = _shift_round(exact.sign, mag, shift, step.rounding)
    remainder = np.where(live, remainder, 0).astype(np.uint8)
    increment = live & np.asarray(significand != truncated, bool)
    carry = np.asarray((significand >> (kept + 1)) > 0, bool) & live
    significand = np.where(carry, significand >> 1, significand).astype(np.int64) << (
        fmt.fraction_bits - kept
    )
    exponent = exponent + carry
    subnormal = live & (significand >> fmt.fraction_bits == 0)
    if step.flush != "none":
        significand = np.where(subnormal, 0, significand)
    over = live & _too_large(fmt, significand, exponent)
    kind = np.where(
        exact.kind >= Kind.INFINITY, exact.kind, np.where(live & (significand != 0), Kind.FINITE, Kind.ZERO)
    )
    kind = np.where(
        over & _to_infinity(fmt, exact.sign, step.rounding, overflow), Kind.INFINITY, kind
    ).astype(np.uint8)
    if fmt.infinity is None:
        kind = np.where(kind == Kind.INFINITY, Kind.NAN, kind).astype(np.uint8)
    dropped = fmt.fraction_bits - kept
    significand = np.where(over, largest_significand(fmt) >> dropped << dropped, significand)
    exponent = np.where(over, fmt.max_exponent, exponent)
    positive = (
        (kind == Kind.ZERO)
        & fmt.has_zero
        & ((live & (step.flush == "positive")) | (not fmt.has_negative_zero))
    )
    sign = np.where(positive | (not fmt.signed), 0, exact.sign).astype(np.uint8)
    if not fmt.has_zero:  # code 0 is the least number, and the result of all that lies below it
        least = (kind <= Kind.FINITE) & (significand >> fmt.fraction_bits == 0)
        kind = np.where(least, Kind.FINITE, kind).astype(np.uint8)
        significand = np.where(least, np.int64(1) << fmt.fraction_bits, significand)
        exponent = np.where(least, fmt.min_exponent, exponent)
        sign = np.where(least & (fmt.specials == "negative_zero_nan"), 0, sign).astype(np.uint8)
    result = Numbers(kind, sign, significand, exponent - fmt.fraction_bits, exponent)
    return result, {"remainder": remainder, "increment": increment, "carry": carry, "overflow": over}


def _round_to_integer(
    fmt: Format, exact: Numbers, mode: str, clamp: bool
) -> tuple[Numbers, dict[str, Array]]:
    """Rounds to an integer format, which wraps or clamps; returns what `round_to` does."""
    live = exact.nonzero
    shift = np.where(live, -exact.lsb, 0)
    if clamp:  # far past either end, where the exact integer would be very long
        far = live & (bit_length(exact.significand) - shift > 2 * _WORD)
        shift = np.where(far, 0, shift)
    magnitude, remainder = _shift_round(exact.sign, np.where(live, exact.significand, 0), shift, mode)
    value = np.where(exact.sign == 1, -magnitude, magnitude)
    if clamp:
        low = -(1 << (fmt.integer_bits - 1)) if fmt.signed else 0
        value = np.minimum(np.maximum(value, low), fmt.largest)
        value = np.where(far, np.where(exact.sign == 1, low, fmt.largest), value)
    code = np.asarray(value & ((1 << fmt.integer_bits) - 1)).astype(np.uint64)
    no = np.zeros(code.shape, bool)
    return decode(fmt, code), {"remainder": remainder, "increment": no, "carry": no, "overflow": no}


def _in_format(fmt: Format, exact: Numbers, step: Any, overflow: str) -> tuple[Numbers, dict[str, Array]]:
    """Rounds to any format, NaN and infinity included: an infinity or a NaN word can be an ordinary number
    there."""
    if fmt.is_float:
        result, details = round_to(fmt, exact, step, overflow)
    else:
        result, details = _round_to_integer(fmt, exact, step.rounding, overflow == "saturate")
    special = exact.kind >= Kind.INFINITY
    if special.any():
        result = _override(result, special, _special_numbers(fmt, step.nan, exact))
    return result, details


def _special_numbers(fmt: Format, nan: int | None, special: Numbers) -> Numbers:
    """What stands for an infinity or a NaN in a format (reference: `_special_code`)."""
    minus = special.sign == 1
    top = fmt.sign_shift
    if not fmt.is_float:
        infinity = np.where(minus, fmt.least, fmt.largest)
    elif fmt.infinity is not None:
        infinity = np.where(minus, fmt.infinity | 1 << top, fmt.infinity)
    elif nan is not None:
        infinity = np.full(minus.shape, nan, np.uint64)
    else:
        infinity = np.where(minus & (top >= 0), fmt.largest | 1 << max(top, 0), fmt.largest)
    word = fmt.largest if nan is None else nan
    return decode(fmt, np.where(special.kind == Kind.INFINITY, infinity.astype(np.uint64), np.uint64(word)))


def _too_large(fmt: Format, significand: Array, exponent: Array) -> Array:
    top = largest_significand(fmt)
    return np.asarray((exponent > fmt.max_exponent) | ((exponent == fmt.max_exponent) & (significand > top)))


def largest_significand(fmt: Format) -> int:
    """Significand of the largest finite number of a float format, in units of its last place."""
    fraction = (fmt.largest >> fmt.ignored_low) & ((1 << fmt.fraction_bits) - 1)
    return fraction | 1 << fmt.fraction_bits


def _to_infinity(fmt: Format, sign: Array, mode: str, overflow: str) -> Array:
    if overflow != "ieee":
        return np.full(sign.shape, overflow == "infinity" and fmt.infinity is not None)
    if mode == "toward_zero" or fmt.infinity is None:
        return np.zeros(sign.shape, bool)
    return (
        np.asarray(sign == 1)
        if mode == "down"
        else np.asarray(sign == 0)
        if mode == "up"
        else np.ones(sign.shape, bool)
    )


class _Run:
    """One operation on all rows: its registers, and the steps in order."""

    def __init__(
        self,
        index: int,
        operation: Operation,
        factors: tuple[Numbers, Numbers],
        results: dict[str, Numbers],
        scales: Numbers | None,
    ) -> None:
        self.index, self.operation = index, operation
        columns = list(operation.k_index)
        a, b = (_widened(x[columns], operation.operand_format) for x in factors)
        self.registers = {"a": a, "b": b, "c": results[operation.seed]}
        if operation.addends:
            self.registers["addends"] = _concatenate([results[name] for name in operation.addends])
        if scales is not None:
            self.registers["scales"] = scales[columns]
        self.lost: dict[str, Array] = {}
        self.special: Numbers | None = None
        """NaN and infinities that a special_values step has answered already, and the answers."""
        self.answer = self.registers["c"]

    def steps(self) -> Iterator[Seen]:
        """Runs every step; `registers["d"]` holds the result afterwards."""
        for step in self.operation.steps:
            method: Callable[[Any], Iterator[Seen]] = getattr(self, f"_{step.op}")
            yield from method(step)
        if self.special is not None:
            self.registers["d"] = _override(
                self.registers["d"], self.special.kind >= Kind.INFINITY, self.answer
            )

    def gather(self, step: Any) -> tuple[Numbers, tuple[str, ...]]:
        """The terms that a step reads, side by side, and the register that each came from."""
        owners = tuple(name for name in step.of for _ in range(self.registers[name].count))
        return _concatenate([self.registers[name] for name in step.of]), owners

    def _flush(self, step: Any) -> Iterator[Seen]:
        for name in step.of:
            numbers = self.registers[name]
            is_float = name != "c" or self.operation.seed_format.is_float
            small = bit_length(numbers.significand) <= numbers.exponent - numbers.lsb
            self.registers[name] = _flushed(numbers, step.sign, numbers.finite & small & is_float)
        return iter(())

    def _multiply(self, step: Any) -> Iterator[Seen]:
        a, b = self.registers["a"], self.registers["b"]
        if step.operation == "product":
            products = _product(a, b)
        else:
            bits = a.significand & b.significand if step.operation == "and" else a.significand ^ b.significand
            products = Numbers(
                (bits != 0).astype(np.uint8),
                np.zeros_like(a.sign),
                bits,
                np.zeros_like(a.lsb),
                np.zeros_like(a.lsb),
            )
        if step.negate in ("product", "both"):
            products = replace(products, sign=1 - products.sign)
        if step.overflow_exponent is not None:
            over = products.nonzero & (
                bit_length(products.significand) + products.lsb > step.overflow_exponent
            )
            products = replace(products, kind=np.where(over, Kind.INFINITY, products.kind).astype(np.uint8))
        if step.normalize:
            leading = products.lsb + bit_length(products.significand) - 1
            products = replace(products, exponent=np.where(products.nonzero, leading, products.exponent))
        yield Multiplied(self.index, step, a, b, products)
        if step.format is not None:
            products = yield from self._ieee(products, step)
        self.registers[step.to] = products
        if step.negate in ("c", "both"):
            self.registers["c"] = replace(self.registers["c"], sign=1 - self.registers["c"].sign)

    def _scale(self, step: Any) -> Iterator[Seen]:
        scales = self.registers["scales"]
        for name in step.of:
            terms = self.registers[name]
            stride = max(scales.count // max(terms.count, 1), 1)
            self.registers[name] = _product(terms, scales[[i * stride for i in range(terms.count)]])
        return iter(())

    def _special_values(self, step: Any) -> Iterator[Seen]:
        kind, sign = _propagate(self.gather(step)[0])
        zero = np.zeros(kind.shape, np.int64)
        found = Numbers(kind, sign, zero, zero, zero)
        answer = _special_numbers(self.operation.out_format, step.nan, found)
        if self.special is not None:  # what an earlier step answered stays
            before = self.special.kind >= Kind.INFINITY
            found, answer = _override(found, before, self.special), _override(answer, before, self.answer)
        self.special, self.answer = found, answer
        return iter(())

    def _align(self, step: Any) -> Iterator[Seen]:
        terms, owners = self.gather(step)
        far = np.int64(1 << 40)
        maximum = np.empty(terms.kind.shape, np.int64)
        for columns in groups_of(terms.count, step.group):
            part = np.where(terms.finite[:, columns], terms.exponent[:, columns], -far).max(
                axis=1, keepdims=True
            )
            maximum[:, columns] = part if step.floor is None else np.maximum(part, step.floor)
        fraction = np.array([dict(step.fraction_bits)[name] for name in owners])
        window = np.array([dict(step.window).get(name, 1 << 40) for name in owners])
        shift = np.where(terms.finite, maximum - fraction - terms.lsb, 0)
        outside = terms.finite & (terms.exponent < maximum - window)
        kept, remainder = _shift_round(terms.sign, terms.significand, shift, step.rounding)
        lost = terms.nonzero & ((remainder > 0) | outside)
        kept = np.where(outside, 0, kept)
        if step.cut == "sticky":
            kept, fraction = kept << 1 | (lost & ~outside), fraction + 1
        left = np.asarray(kept != 0, bool)
        for columns in groups_of(terms.count, step.group):
            names = tuple(owners[i] for i in columns)
            yield Aligned(
                self.index,
                step,
                terms[columns],
                names,
                tuple(columns),
                maximum[:, columns],
                lost[:, columns],
                left[:, columns],
            )
        lsb = np.where(terms.finite, maximum - fraction, 0)
        aligned = Numbers(terms.kind, terms.sign, kept, lsb, np.where(terms.finite, maximum, 0))
        for name in step.of:
            columns = [i for i, owner in enumerate(owners) if owner == name]
            self.registers[name], self.lost[name] = aligned[columns], lost[:, columns]

    def _sum(self, step: Any) -> Iterator[Seen]:
        terms, _ = self.gather(step)
        nothing_lost = [
            self.lost.get(name, np.zeros(self.registers[name].kind.shape, bool)) for name in step.of
        ]
        lost = np.concatenate(nothing_lost, axis=1)
        sums = []
        for columns in groups_of(terms.count, step.group):
            if isinstance(step, Sum):
                total = exact_sum(terms[columns], step.rounding, step.exponent)
                yield Summed(self.index, step, terms[columns], total, lost[:, columns])
            else:
                total = yield from self._reduce(terms[columns], step)
            sums.append(total)
        yield from self._write(step, _concatenate(sums), rounded=terms.count > 1)

    def _write(self, step: Any, numbers: Numbers, rounded: bool) -> Iterator[Seen]:
        """Writes the sums of adders that round; a single term was not rounded yet, and d wants its format."""
        if step.to == "d":
            fmt = self.operation.out_format
            if not rounded:
                numbers = yield from self._ieee(numbers, replace(step, flush="none"))
            numbers = _override(
                numbers, numbers.kind >= Kind.INFINITY, _special_numbers(fmt, step.nan, numbers)
            )
        self.registers[step.to] = numbers

    def _reduce(self, terms: Numbers, step: Any) -> Any:
        if terms.count == 1:
            return terms
        if step.order == "tree":
            half = terms.count // 2
            left = yield from self._reduce(terms[: terms.count // 2], step)
            right = yield from self._reduce(terms[half:], step)
            return (yield from self._add(_concatenate([left, right]), step))
        total = terms[[0]]
        for column in range(1, terms.count):
            total = yield from self._add(_concatenate([total, terms[[column]]]), step)
        return total

    def _add(self, pair: Numbers, step: Any) -> Any:
        exact = exact_sum(pair, step.rounding)
        yield Summed(self.index, step, pair, exact, np.zeros(pair.kind.shape, bool))
        return (yield from self._ieee(exact, step))

    def _ieee(self, exact: Numbers, step: Any) -> Any:
        assert step.format is not None
        overflow = "saturate" if isinstance(step, Additions) and step.overflow == "saturate" else "ieee"
        result, details = _in_format(step.format, exact, step, overflow)
        if step.op == "fma":  # a NaN stays one along the chain, whatever its word
            result = replace(
                result, kind=np.where(exact.kind == Kind.NAN, Kind.NAN, result.kind).astype(np.uint8)
            )
        yield Rounded(self.index, step, step.format, exact, result=result, **details)
        return result

    def _normalize(self, step: Any) -> Iterator[Seen]:
        for name in step.of:
            numbers, fraction = self.registers[name], dict(step.fraction_bits)[name]
            exponent = numbers.lsb + bit_length(numbers.significand) - 1
            if step.min_exponent is not None:
                exponent = np.maximum(exponent, step.min_exponent)
            shift = np.where(numbers.nonzero, exponent - fraction - numbers.lsb, 0)
            kept, _ = _shift_round(numbers.sign, numbers.significand, shift, step.rounding)
            self.registers[name] = replace(
                numbers,
                significand=kept,
                lsb=numbers.lsb + shift,
                exponent=np.where(numbers.nonzero, exponent, numbers.exponent),
            )
        return iter(())

    def _fma(self, step: Any) -> Iterator[Seen]:
        a, b, c = self.registers["a"], self.registers["b"], self.registers["c"]
        zero = replace(c, kind=np.zeros_like(c.kind), **_nothing(c))
        sums = []
        for columns in groups_of(a.count, step.group):
            total = {"c": c, "zero": zero, "product": None}[step.start]
            for column in columns:
                product = _product(a[[column]], b[[column]])
                yield Multiplied(self.index, step, a[[column]], b[[column]], product)
                if total is None:
                    total = yield from self._ieee(product, step)
                else:
                    total = yield from self._add(_concatenate([product, total]), step)
            assert total is not None
            sums.append(total)
        yield from self._write(step, _concatenate(sums), rounded=True)

    def _round(self, step: Any) -> Iterator[Seen]:
        fmt = step.format
        assert fmt is not None
        exact = self.registers[step.of[0]]
        if self.special is not None and step.to == "d":
            exact = _override(exact, self.special.kind >= Kind.INFINITY, self.special)
        result, details = _in_format(fmt, exact, step, step.overflow)
        positive = result.kind == Kind.ZERO
        if step.zero == "signed_underflow":
            positive &= ~exact.nonzero
        if step.zero != "signed" and fmt.is_float:
            result = replace(result, sign=np.where(positive, 0, result.sign).astype(np.uint8))
        yield Rounded(self.index, step, fmt, exact, result=result, **details)
        self.registers[step.to] = result


def _override(numbers: Numbers, where: Array, others: Numbers) -> Numbers:
    """The numbers with others in their places; rows of one term stand for all of a row."""
    pairs = (
        (getattr(numbers, name), getattr(others, name))
        for name in ("kind", "sign", "significand", "lsb", "exponent")
    )
    return Numbers(*(np.where(where, new, old).astype(np.result_type(old, new)) for old, new in pairs))


def _widened(numbers: Numbers, fmt: Format | None) -> Numbers:
    """The numbers as a wider format holds them: normalised down to that format's least exponent."""
    if fmt is None:
        return numbers
    exponent = np.maximum(bit_length(numbers.significand) - 1 + numbers.lsb, fmt.min_exponent)
    shift = np.where(numbers.nonzero, numbers.lsb - (exponent - fmt.fraction_bits), 0)
    return replace(
        numbers,
        significand=_shift_left(numbers.significand, shift),
        lsb=np.where(numbers.nonzero, exponent - fmt.fraction_bits, numbers.lsb),
        exponent=np.where(numbers.nonzero, exponent, numbers.exponent),
    )
