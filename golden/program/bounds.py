"""What the registers of a program can hold: one walk over the steps, one transfer function for each kind.

    for step, registers in walk(operation, operands_of(operation, formats)):
        registers["products"].lsb, registers["products"].greatest

The bounds follow from formats and steps alone. They may allow too much, never too little:
golden/program/checks.py refuses by them what the C core cannot hold, widths.py says how wide a register has
to be, golden/model/doubles.py whether doubles hold its numbers, golden/cover which bins vectors can reach,
and golden/identify which keys make no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from typing import assert_never

from golden.number.formats import Format, Kind
from golden.number.frozen import hashed_once, replace
from golden.number.rounding import ROUNDINGS
from golden.program.keys import Candidate
from golden.program.program import NO_SEED, Operation
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    Fma,
    HiddenBit,
    Multiply,
    Normalize,
    Part,
    Replace,
    Round,
    RoundingStep,
    Scale,
    SpecialValues,
    Step,
    Sum,
    factor_of,
    grouping,
    rounding_of,
)

KEPT_BITS = 100
"""Bits that the core keeps of an exact sum (MG_KEPT_BITS); a longer one has what was dropped ORed into the
lowest."""
MOST_BITS = 128 - 2
"""Bits of an aligned or scaled number: the core's 128, less a sticky bit and a carry."""
MOST_SPAN = 96 * 64 - 2
"""Bits of the core's longest accumulator (MG_LIMBS), less the sign and one to spare."""
_REMEMBERED = 1 << 14
"""Transfers that are kept: a dissection asks the same of programs that differ in one step."""

_NONE = Fraction(0)

Registers = dict[str, "Bounds"]
Seeds = dict[str, tuple[Format, "Bounds"]]
"""The operand c and the results of earlier operations by name: in which format, and what they can be."""


@hashed_once
@dataclass(frozen=True)
class Bounds:
    """Bounds of one register's terms. "Finite": neither an infinity nor a NaN, and not a zero.

    Attributes:
        count: the number of terms.
        low, high: least and greatest exponent that a finite term shows to an alignment.
        zeros: the same for a term that is zero.
        lsb: exponent of the lowest bit that can be set.
        last: least exponent of the last place that a register has, whether a bit can be set there or not.
        fraction_bits: the most places that a term with bits has below its own exponent.
        depth: how many of these places can hold a bit.
        significands: the most negative and the largest one, in units of 2**exponent.
        least, greatest: the most negative and the largest value.
        cancels: whether a term can be a sum that came out as zero and still takes part in alignment.
        subnormal: whether a term's significand can be below 1.
        scattered: whether it can be below 1 at any exponent, not only at the least one.
        vanishes: whether a term can have lost all its bits and still take part in alignment.
        sticky: the least place of a bit that is the OR of what was cut, where a term can carry one along.
        shared: the alignment and its groups in which terms have one exponent; None where each has its own.
        exact: whether the core holds what the reference holds; the core may have shortened a long sum.
    """

    count: int
    low: int
    high: int
    zeros: tuple[int, int]
    lsb: int
    last: int
    fraction_bits: int
    depth: int
    significands: tuple[Fraction, Fraction]
    least: Fraction
    greatest: Fraction
    cancels: bool = False
    subnormal: bool = False
    scattered: bool = False
    vanishes: bool = False
    sticky: int | None = None
    shared: tuple[Align, tuple[str, int] | None] | None = None
    exact: bool = True

    @cached_property
    def significand(self) -> Fraction:
        """The largest magnitude of a significand."""
        return max(-self.significands[0], self.significands[1])

    @property
    def integer_bits(self) -> int:
        """Bits of a significand's magnitude above the point."""
        return int(self.significand).bit_length()

    @property
    def above(self) -> int:
        """Bits of a significand above that of 1."""
        return max(self.integer_bits - 1, 0)

    @cached_property
    def size(self) -> int:
        """All magnitudes are below 2**size."""
        return exponent_of(max(self.greatest, -self.least)) + 1

    @property
    def width(self) -> int:
        """Bits of the longest significand that the core stores."""
        if not self.exact:
            return KEPT_BITS
        return max(exponent_of(self.significand) + 1 + self.fraction_bits, 0)

    @property
    def integer(self) -> bool:
        """Whether every term is an integer of which the core holds each bit."""
        return self.exact and self.lsb >= 0 and self.sticky is None

    @property
    def bottom(self) -> int:
        """The least exponent that alignment can see, of zeros too."""
        return min(self.low, self.zeros[0])

    @property
    def top(self) -> int:
        """The greatest exponent that alignment can see, of zeros too."""
        return max(self.high, self.zeros[1])

    @property
    def zero(self) -> bool:
        """Whether every term is always zero."""
        return self.greatest == self.least == 0


def power(exponent: int) -> Fraction:
    """2**exponent."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def exponent_of(value: Fraction) -> int:
    """The exponent of the leading bit of a positive number; far below all for zero."""
    if not value:
        return -1 << 30
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if power(exponent) <= value else exponent - 1


# Registers before the first step ----------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def of_format(fmt: Format, count: int, flushed: bool = False) -> Bounds:
    """Terms in a number format; `flushed`: none of them is subnormal."""
    if not fmt.is_float:
        ends = Fraction(least_integer(fmt)), Fraction(fmt.largest)
        return Bounds(count, 0, 0, (0, 0), 0, 0, 0, 0, ends, *ends)
    top = Fraction(largest_significand(fmt), 1 << fmt.fraction_bits)
    greatest = top * power(fmt.max_exponent)
    usual = top if fmt.max_exponent == fmt.min_exponent else 2 - power(-fmt.fraction_bits)
    return Bounds(
        count,
        fmt.min_exponent,
        fmt.max_exponent,
        (fmt.min_exponent, fmt.min_exponent),
        fmt.min_exponent - fmt.fraction_bits,
        fmt.min_exponent - fmt.fraction_bits,
        fmt.fraction_bits,
        fmt.fraction_bits,
        (-usual if fmt.signed else _NONE, usual),
        -greatest if fmt.signed else _NONE,
        greatest,
        subnormal=fmt.has_subnormals and fmt.fraction_bits > 0 and not flushed,
    )


def of_zero(fmt: Format) -> Bounds:
    """What is always zero."""
    return replace(of_format(fmt, 1), least=_NONE, greatest=_NONE)


def least_integer(fmt: Format) -> int:
    """The least number of an integer format."""
    return -(1 << (fmt.integer_bits - 1)) if fmt.signed else 0


def largest_significand(fmt: Format) -> int:
    """Significand of the largest finite number of a float format, in units of its last place."""
    fraction = (fmt.largest >> fmt.ignored_low) & ((1 << fmt.fraction_bits) - 1)
    return fraction | 1 << fmt.fraction_bits


def _operand(fmt: Format, target: Format | None, count: int) -> Bounds:
    """An operand, as it is or as a wider format holds it: there its subnormals may be normal."""
    own = of_format(fmt, count)
    if target is None:
        return own
    depth = max(own.depth + own.above, target.min_exponent - own.lsb)
    return replace(
        own,
        low=max(own.lsb, target.min_exponent),
        high=own.high + own.above,
        zeros=(target.min_exponent, target.min_exponent),
        last=target.min_exponent - target.fraction_bits,
        fraction_bits=target.fraction_bits,
        depth=depth,
        significands=own.significands if fmt.is_float else _ones(own, depth),
        subnormal=own.lsb < target.min_exponent,
    )


def _seed(name: str, fmt: Format, seeds: Seeds | None) -> Bounds:
    """What enters as c: an operand, a zero, or an earlier operation's result."""
    if seeds is not None and name in ("zero", NO_SEED):
        return of_zero(fmt)
    written, known = (seeds or {}).get(name, (None, None))
    return known if known is not None and written == fmt else of_format(fmt, 1)


def operands_of(operation: Operation, formats: Mapping[str, Format], seeds: Seeds | None = None) -> Registers:
    """What an operation's registers hold before its first step.

    Args:
        formats: of a, b and, where there are scales, of these.
        seeds: what is known of c and of earlier results; None: no more than their formats.
    """
    count = len(operation.k_index)
    registers = {name: _operand(formats[name], operation.operand_format, count) for name in "ab"}
    registers["c"] = _seed(operation.seed, operation.seed_format, seeds)
    if operation.addends:
        addends = [_seed(name, operation.out_format, seeds) for name in operation.addends]
        registers["addends"] = replace(reduce(either, addends), count=len(addends))
    if "scale_a" in formats and "scale_b" in formats:
        sides = {name: of_format(formats[name], count) for name in ("scale_a", "scale_b")}
        registers |= sides | {"scales": multiplied(*sides.values())}
    return registers


Walk = list[tuple[Step, Registers]]
"""Every step of an operation with the bounds of all registers just before it."""


def walk(operation: Operation, registers: Registers) -> Walk:
    """An operation that begins with these registers."""
    found = []
    for step in operation.steps:
        found.append((step, registers))
        registers = registers | follow(step, registers)
    return found


def seeds_of(
    operations: Sequence[Operation], formats: Mapping[str, Format], c: Bounds | None = None
) -> Seeds:
    """What the operations of a program answer.

    Args:
        c: what the operand c can be; None: any code.
    """
    seeds: Seeds = {} if c is None else {"c": (formats["c"], c)}
    for operation in operations:
        answer = result_of(operation, operands_of(operation, formats, seeds))
        seeds[operation.to] = operation.out_format, answer
    return seeds


def result_of(operation: Operation, registers: Registers) -> Bounds:
    """What an operation that begins with these registers answers, as a term of its format."""
    final, fmt = operation.final, operation.out_format
    words = [word for step in operation.steps_of(SpecialValues) for word in special_words(fmt, step)]
    if words_are_numbers(fmt, [*special_words(fmt, final), *words]):
        return of_format(fmt, 1)
    step, before = walk(operation, registers)[-1]
    own = follow(step, before)["d"]
    return own if final.format == fmt else _in_format(own, fmt, final)


# One step ---------------------------------------------------------------------------------------------------


def follow(step: Step, registers: Registers) -> Registers:
    """The registers that a step writes. The answer is remembered: it is not to be changed."""
    also = (factor_of(step),) if isinstance(step, Scale) else ("c",)
    read = dict.fromkeys((*step.of, *also))
    return _follow(step, tuple((name, registers[name]) for name in read if name in registers))


@lru_cache(maxsize=_REMEMBERED)
def _follow(step: Step, read: tuple[tuple[str, Bounds], ...]) -> Registers:
    registers = dict(read)
    match step:
        case Flush():
            return {name: _flushed(registers[name]) for name in step.of}
        case HiddenBit():
            return {name: _with_hidden_bit(registers[name], step) for name in step.of}
        case Part():
            return {name: _in_part(registers[name], step) for name in step.of}
        case Replace():
            return {name: _with_exception(registers[name], step) for name in step.of}
        case Multiply():
            turned = {"c": _negated(registers["c"])} if step.negate in ("c", "both") else {}
            return {step.to: _products(step, registers), **turned}
        case Scale(power=int(moved)):
            return {name: _moved(registers[name], moved) for name in step.of}
        case Scale():
            scales = registers[factor_of(step)]
            return {
                name: multiplied(registers[name], replace(scales, count=registers[name].count))
                for name in step.of
            }
        case Align():
            return _aligned(step, registers)
        case Sum():
            return {step.to: _summed(step, registers)}
        case Additions():
            return {step.to: _added(step, registers)}
        case Normalize():
            bits = dict(step.fraction_bits)
            return {name: _normalized(registers[name], bits[name], step) for name in step.of}
        case Fma():
            sizes = group_sizes(step, registers["a"].count)
            return {step.to: replace(_chained(step, registers, max(sizes)), count=len(sizes))}
        case Round():
            return {step.to: _in_format(registers[step.of[0]], step.format, step)}
        case SpecialValues():
            return {}  # the registers hold what they held
        case _:
            assert_never(step)


def groups_of(step: Step, count: int) -> list[slice]:
    """Which of `count` terms each group of a step holds; without grouping, one group of all."""
    group = grouping(step)
    if group is None:
        return [slice(0, count)]
    kind, size = group
    if kind == "interleaved":
        return [slice(i, count, size) for i in range(size)]
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def group_sizes(step: Step, count: int) -> list[int]:
    """How many of `count` terms each group of a step holds."""
    return [len(range(*group.indices(count))) for group in groups_of(step, count)]


def _ones(own: Bounds, bits: int) -> tuple[Fraction, Fraction]:
    """Significands of a leading one and this many bits after it, of the possible signs."""
    most = 2 - power(-bits)
    return -most if own.least < 0 else _NONE, most if own.greatest > 0 else _NONE


def seen(own: Bounds) -> Bounds:
    """The terms as a step reads them that cuts or rounds: a sticky bit is one bit, below the last place."""
    if own.sticky is None:
        return own
    bits, (low, high) = own.fraction_bits + 1, own.significands
    half, most = power(-bits), power(own.high - bits)
    return replace(
        own,
        lsb=min(own.lsb, own.sticky),
        last=own.last - 1,
        fraction_bits=bits,
        depth=bits,
        significands=(low - half if low < 0 else low, high + half if high > 0 else high),
        least=own.least - most if own.least < 0 else own.least,
        greatest=own.greatest + most if own.greatest > 0 else own.greatest,
        sticky=None,
    )


# Products ---------------------------------------------------------------------------------------------------


def _moved(own: Bounds, places: int) -> Bounds:
    """The terms times 2**places."""
    (low, high), factor = own.zeros, power(places)
    return replace(
        own,
        low=own.low + places,
        high=own.high + places,
        zeros=(low + places, high + places),
        lsb=own.lsb + places,
        last=own.last + places,
        least=own.least * factor,
        greatest=own.greatest * factor,
        sticky=None if own.sticky is None else own.sticky + places,
        shared=None,
    )


def multiplied(x: Bounds, y: Bounds) -> Bounds:
    """Exact products, not normalised."""
    values = [p * q for p in (x.greatest, x.least) for q in (y.greatest, y.least)]
    significands = [p * q for p in x.significands for q in y.significands]
    zeros = [  # the last four: zero times infinity as a zero keeps the exponent of one factor
        *(x.zeros[0] + y.bottom, y.zeros[0] + x.bottom, x.zeros[1] + y.top, y.zeros[1] + x.top),
        *(*x.zeros, *y.zeros),
    ]
    below_one = x.subnormal or y.subnormal
    return Bounds(
        x.count,
        x.low + y.low,
        x.high + y.high,
        (min(zeros), max(zeros)),
        x.lsb + y.lsb,
        x.last + y.last,
        x.fraction_bits + y.fraction_bits,
        x.depth + y.depth,
        (min(significands), max(significands)),
        min(values),
        max(values),
        x.cancels or y.cancels,
        below_one,
        below_one,
        x.vanishes or y.vanishes,
        None if x.sticky is None and y.sticky is None else x.last + y.last - 1,
        None,
        x.exact and y.exact,
    )


def one_product(registers: Registers) -> Bounds:
    """A single product of a and b."""
    return replace(multiplied(registers["a"], registers["b"]), count=1)


def _negated(own: Bounds) -> Bounds:
    low, high = own.significands
    return replace(own, significands=(-high, -low), least=-own.greatest, greatest=-own.least)


def _exact_products(step: Multiply, registers: Registers) -> Bounds:
    """Products before they are rounded to a format."""
    a, b = registers["a"], registers["b"]
    if step.operation != "product":  # bits of unsigned integers, combined one by one
        most = Fraction((1 << max(a.integer_bits, b.integer_bits)) - 1)
        return Bounds(a.count, 0, 0, (0, 0), 0, 0, 0, 0, (_NONE, most), _NONE, most)
    own = multiplied(a, b)
    if step.negate in ("product", "both"):
        own = _negated(own)
    if step.overflow_exponent is not None:
        limit = power(step.overflow_exponent)
        # A product that stays finite has an exponent below the limit's, or a subnormal factor.
        highs = [(x.high if x.scattered else x.low) + y.high for x, y in ((a, b), (b, a)) if x.subnormal]
        own = replace(
            own,
            high=max(own.low, min(own.high, max([step.overflow_exponent - 1, *highs]))),
            least=max(own.least, -limit),
            greatest=min(own.greatest, limit),
        )
    return _normal(own) if step.normalize else own


def _normal(own: Bounds) -> Bounds:
    """Numbers with their leading one before the point: one of subnormal factors moves down as far as to its
    lowest bit, one in [2, 4) moves up."""
    bits = own.depth + own.above
    high = max(min(own.high + own.above, own.size - 1), own.lsb)
    empty = own.vanishes or own.cancels  # a number without bits keeps its exponent
    return replace(
        own,
        low=min(own.lsb, own.low) if empty else own.lsb,
        high=max(high, own.high) if empty else high,
        fraction_bits=own.fraction_bits + own.above,
        depth=bits,
        significands=_ones(own, bits),
        subnormal=False,
        scattered=False,
    )


def _products(step: Multiply, registers: Registers) -> Bounds:
    own = _exact_products(step, registers)
    return own if step.format is None else _in_format(own, step.format, step)


def _flushed(own: Bounds) -> Bounds:
    """Significands from 1 up: what was below is a zero of the exponent that it had."""
    anywhere = own.scattered or own.vanishes or own.cancels
    zeros = (own.bottom, own.top) if anywhere else own.zeros
    lsb = max(own.lsb, own.low - own.depth)
    return replace(own, lsb=lsb, zeros=zeros, subnormal=False, scattered=False, cancels=False, vanishes=False)


def _with_hidden_bit(own: Bounds, step: HiddenBit) -> Bounds:
    """The bit at the exponent is set; a zero that gets it is the power of two of its exponent."""
    most = power(max(own.integer_bits, 1)) - power(-max(own.depth, 0))
    empty = step.zeros == "set" or (own.vanishes and own.shared is None)
    low, high = (own.bottom, own.top) if empty else (own.low, own.high)
    top = most * power(high)
    return replace(
        own,
        low=low,
        high=high,
        lsb=min(own.lsb, low),
        significands=(-most if own.least < 0 else _NONE, most),
        least=min(own.least, -top) if own.least < 0 else own.least,
        greatest=max(own.greatest, top),
        subnormal=False,
        scattered=False,
        cancels=False,
        vanishes=False,
    )


def _in_part(own: Bounds, step: Part) -> Bounds:
    """Some bits of a significand; all of them can be 0, unless the hidden bit is one of them."""
    low, high, places = own.low - step.first, own.high - step.first, step.bits - 1
    lsb = max(own.lsb, low - places)
    depth = max(min(places, own.depth - step.first), 0)
    most = 2 - power(-depth)
    ends = [
        (sign * most, sign * min(most * power(high), sign * value)) if sign * value > 0 else (_NONE, _NONE)
        for sign, value in ((-1, own.least), (1, own.greatest))
    ]
    whole = step.first == 0 and not own.subnormal and own.above == 0
    return replace(
        own,
        low=low,
        high=high,
        zeros=(own.zeros[0] - step.first, own.zeros[1] - step.first),
        lsb=lsb,
        last=min(low, own.zeros[0] - step.first) - places,
        fraction_bits=places,
        depth=depth,
        significands=(ends[0][0], ends[1][0]),
        least=ends[0][1],
        greatest=ends[1][1],
        subnormal=not whole,
        scattered=not whole,
        vanishes=not whole or own.vanishes,
        sticky=None if own.sticky is None else low - places - 1,
        shared=None,
    )


def _with_exception(own: Bounds, step: Replace) -> Bounds:
    """The terms as they were, and what stands for one of them."""
    one = step.by * power(-step.places)
    ends = [one * power(exponent) for exponent in (own.low, own.high)]
    (low, high), depth = own.significands, max(own.depth, step.places)
    return replace(
        own,
        lsb=min(own.lsb, own.low - step.places),
        last=min(own.last, own.low - step.places),
        fraction_bits=max(own.fraction_bits, step.places),
        depth=depth,
        significands=(min(low, one), max(high, one)),
        least=min(own.least, *ends),
        greatest=max(own.greatest, *ends),
        subnormal=True,
        scattered=True,
        vanishes=own.vanishes or step.by == 0,
        exact=own.exact,
    )


# Alignment --------------------------------------------------------------------------------------------------


def maximum_of(step: Align, registers: Registers) -> tuple[int, int]:
    """The least and the greatest exponent that an alignment can be to."""
    if step.exponent is not None:
        return step.exponent, step.exponent
    if step.maximum:
        return _candidates(step, registers)
    terms = [registers[name] for name in step.of if not registers[name].zero or step.zeros == "maximum"]
    terms = terms or [registers[name] for name in step.of]
    # A zero takes part only where a step says so, or where it is a sum that cancelled.
    part = [step.zeros == "maximum" or term.cancels or term.vanishes for term in terms]
    least = min(term.bottom if zeros else term.low for term, zeros in zip(terms, part, strict=True))
    reach = max(term.top if zeros else term.high for term, zeros in zip(terms, part, strict=True))
    if step.floor is None:
        return least, reach
    alone = bool(step.left_out) or step.zeros == "sticky"  # the floor decides where no other number is there
    return step.floor if alone else max(least, step.floor), max(reach, step.floor)


def _candidates(step: Align, registers: Registers) -> tuple[int, int]:
    """The range of the largest candidate: one with a least value is always there, and a number of a register
    brings every candidate that looks at the register."""
    sure = max((one.least + one.plus for one in step.maximum if one.least is not None), default=None)
    looked_at = {name for one in step.maximum for name in one.of}
    least = min(_brought(registers[name], name, step.maximum) for name in looked_at)
    if sure is not None:  # a number that no candidate looks at, or a zero, is aligned to it
        least = max(least, sure) if looked_at >= {*step.of} and step.zeros == "ignored" else sure
    highs = []
    for one in step.maximum:
        terms = [registers[name] for name in one.of]
        high = max(min(term.high + term.above, term.size - 1) if one.leading else term.high for term in terms)
        highs.append(max(high, high if one.least is None else one.least) + one.plus)
    return least, max(highs)


def _brought(own: Bounds, name: str, candidates: tuple[Candidate, ...]) -> int:
    """What the candidates are at least where the register holds a number; one without bits has no leading
    one."""
    empty = own.cancels or own.vanishes
    looked = [one for one in candidates if name in one.of]
    found = [one for one in looked if not (one.leading and empty)] or looked
    return max((own.lsb if one.leading else own.bottom if empty else own.low) + one.plus for one in found)


def _aligned(step: Align, registers: Registers) -> Registers:
    """Every term moves to the largest exponent, or to one that is given, above which it can lie."""
    least, reach = maximum_of(step, registers)
    given, written = step.exponent is not None or bool(step.maximum), {}
    for name, places in step.fraction_bits:
        own, left_out = seen(registers[name]), name in dict(step.left_out)
        anywhere = given or bool(step.left_out)
        low = least if anywhere else max(own.low, least)
        high = max(reach, low)
        moved = _with_room(own, places, least if given else max(least, own.high), high, name, step)
        # A bit that is kept lies in a place of the alignment, and is one that the term had.
        finest = min(own.lsb, low - own.depth) if left_out else own.lsb
        bits = places + int(step.cut == "sticky_added")
        deep = step.zeros == "sticky"  # the sticky bit of a zero: in the last place of all
        sticky = low - places - 1 if deep else max(finest, low - places - 1)
        zeros = (min(own.bottom, least), max(own.top, reach)) if step.zeros == "maximum" else own.zeros
        empty = own.shared is None and (own.vanishes or own.cancels)  # it can lie where zeros do
        written[name] = replace(
            moved,
            low=low,
            high=high,
            zeros=zeros,
            lsb=low - bits if deep else max(finest, low - bits),
            last=(min(low, least) if empty else low) - bits,
            fraction_bits=bits,
            depth=bits if deep else min(bits, max(high - finest, 0)),
            subnormal=True,
            scattered=True,
            vanishes=True,
            sticky=sticky if step.cut == "sticky_or" and (deep or finest < high - places) else None,
            shared=(step, step.group),
            exact=True,
        )
        stays = step.maximum and not any(name in one.of or one.least is not None for one in step.maximum)
        if stays:  # where no candidate is there, nothing moves
            written[name] = either(written[name], own)
    return written


def _with_room(own: Bounds, places: int, least: int, reach: int, name: str, step: Align) -> Bounds:
    """Room for what rounding, a sticky bit or a shifter that stops short adds to a term.

    least, reach: between which exponents a term of this register is aligned.
    """
    top, unit = power(reach), power(-places)
    above, rounding = _most_above(step, name, own), rounding_of(step, name)
    ends = []
    for sign, significand, value in zip((-1, 1), own.significands, (own.least, own.greatest), strict=True):
        significand, value = sign * significand, sign * value
        if step.shift_limit is not None and value > 0:
            value = max(value, significand * power(reach - step.shift_limit))
        # A term keeps its bits, or has some below the last place: then it lies so far below the exponent that
        # it is small, and is rounded.
        whole = int(min(significand * power(own.high - least), above) * power(places)) * unit
        far = (
            places - own.depth + 1
            if step.shift_limit is not None
            else max(places - own.depth + 1, least - own.high)
        )
        cut = _cut(min(significand * power(-far), above), places, sign, rounding, step.cut == "sticky_added")
        more = unit * (_rounds_away(rounding, sign) + Fraction(step.cut == "sticky_added", 2))
        if value > 0:
            value = max(value, min(value + more * top, cut * top))
        if step.shift_limit is not None:
            whole = significand
        if step.zeros == "sticky":
            whole, value = max(whole, unit / 2), max(value, unit / 2 * top)
        ends.append((sign * max(whole, cut), sign * value))
    (low, least_value), (high, greatest) = ends
    return replace(own, significands=(low, high), least=least_value, greatest=greatest)


def _rounds_away(rounding: str, sign: int) -> bool:
    """Whether a rounding can make a number of this sign longer."""
    return ROUNDINGS[rounding].lengthens(int(sign < 0))


def _cut(most: Fraction, places: int, sign: int, rounding: str, sticky: bool = False) -> Fraction:
    """The largest significand that is left of one up to `most` whose bits below this many places after the
    point are cut; with `sticky` it has one more bit."""
    ceiling = -int(-most * power(places) // 1)
    if not _rounds_away(rounding, sign):
        ceiling -= 1
    elif not ROUNDINGS[rounding].carries(int(sign < 0)):
        ceiling = ceiling - 1 | 1
    return max(ceiling + Fraction(sticky, 2), _NONE) * power(-places) if most > 0 else _NONE


def _most_above(step: Align, name: str, own: Bounds) -> Fraction:
    """The largest significand of a register's term at the exponent of its alignment, where candidates say how
    far above it the term can lie; its own candidates are part of the maximum."""
    candidates = [one for one in step.maximum if name in one.of]
    above = [(Fraction(2) if one.leading else own.significand) * power(-one.plus) for one in candidates]
    # A power of two beyond every format.
    far = 4096
    return min(above, default=power(far))


def _normalized(register: Bounds, places: int, step: Normalize) -> Bounds:
    """The leading one moves before the point, and no farther than the least exponent; rounding can carry it
    one place farther."""
    own = seen(register)
    low = own.lsb if step.min_exponent is None else max(own.lsb, step.min_exponent)
    high = max(min(own.high + own.above, own.size - 1), low)
    unit = power(high - places)
    bits = max(own.depth + own.above, low - own.lsb)
    lost = bits > places
    up, down = (lost and _rounds_away(step.rounding, sign) for sign in (1, -1))
    least, greatest = _ones(own, bits)
    stays = own.cancels or own.vanishes  # a number without bits keeps its exponent
    return replace(
        own,
        low=low,
        high=high,
        zeros=(own.bottom, own.top) if stays else own.zeros,
        significands=(
            -_cut(-least, places, -1, step.rounding),
            _cut(greatest, places, 1, step.rounding),
        )
        if lost
        else (least, greatest),
        lsb=max(own.lsb, low - places),
        last=min(low - places, own.last) if stays else low - places,
        fraction_bits=places,
        depth=min(places, bits),
        least=own.least - unit if down and own.least < 0 else own.least,
        greatest=own.greatest + unit if up and own.greatest > 0 else own.greatest,
        subnormal=own.lsb < low,
        scattered=False,
        vanishes=own.lsb < low - places or own.vanishes,
        shared=None,
        exact=True,
    )


# Sums -------------------------------------------------------------------------------------------------------


def joined(terms: Sequence[Bounds], size: int | None = None) -> Bounds:
    """An exact sum of `size` (default: all) of the terms of several registers; seeds that are zero do not
    count."""
    terms = [term for term in terms if not term.zero] or terms
    count = sum(term.count for term in terms)
    each = [Fraction((size or count) * term.count, count) for term in terms]

    def total(ends: Iterable[Fraction]) -> Fraction:
        return sum((many * end for many, end in zip(each, ends, strict=True)), _NONE)

    high, lsb, last = (
        max(term.high for term in terms),
        min(term.lsb for term in terms),
        min(term.last for term in terms),
    )
    least, greatest = total(term.least for term in terms), total(term.greatest for term in terms)
    empty = any(term.cancels or term.vanishes for term in terms)
    found = Bounds(
        1,
        min(term.low for term in terms),
        high,
        (min(term.zeros[0] for term in terms), max(term.zeros[1] for term in terms)),
        lsb,
        last,
        high - last,
        high - lsb,
        (total(term.significands[0] for term in terms), total(term.significands[1] for term in terms)),
        least,
        greatest,
        (least < 0 < greatest and (size or count) > 1) or empty,
        True,
        True,
        empty,
        None if all(term.sticky is None for term in terms) else last - 1,
    )
    return replace(found, exact=all(term.exact for term in terms) and found.size - lsb <= KEPT_BITS)


def either(x: Bounds, y: Bounds) -> Bounds:
    """Terms that are of one kind or of the other."""
    return Bounds(
        x.count,
        min(x.low, y.low),
        max(x.high, y.high),
        (min(x.zeros[0], y.zeros[0]), max(x.zeros[1], y.zeros[1])),
        min(x.lsb, y.lsb),
        min(x.last, y.last),
        max(x.fraction_bits, y.fraction_bits),
        max(x.depth, y.depth),
        (min(x.significands[0], y.significands[0]), max(x.significands[1], y.significands[1])),
        min(x.least, y.least),
        max(x.greatest, y.greatest),
        x.cancels or y.cancels,
        x.subnormal or y.subnormal,
        x.scattered or y.scattered,
        x.vanishes or y.vanishes,
        min((one.sticky for one in (x, y) if one.sticky is not None), default=None),
        None,
        x.exact and y.exact,
    )


def terms_of(step: Sum | Additions | Fma, registers: Registers) -> list[Bounds]:
    """What a step adds up: its registers that have terms, or (fma) one product and what it starts with."""
    if isinstance(step, Fma):
        return [one_product(registers), *([registers["c"]] if step.start == "c" else [])]
    return [registers[name] for name in step.of if registers[name].count]


def addends(step: Sum | Additions | Fma, registers: Registers) -> list[Bounds]:
    """What the additions of a step add: its terms, and the sums before where each sum is rounded."""
    terms = terms_of(step, registers)
    if isinstance(step, Sum):
        return terms
    if isinstance(step, Fma):
        links = max(group_sizes(step, registers["a"].count)) - 1
        if links < 1:  # no sum is added to
            return terms
        before = _chained(step, registers, links)
        return [terms[0], either(terms[1], before) if step.start == "c" else before]
    links = max(group_sizes(step, sum(term.count for term in terms))) - 2
    if links < 1:
        return terms
    return [*terms, replace(_in_format(joined(terms), step.format, step, links), count=1)]


def _chained(step: Fma, registers: Registers, links: int) -> Bounds:
    """The sum of this many multiply-adds."""
    product, *start = terms_of(step, registers)
    return _in_format(joined([replace(product, count=links), *start]), step.format, step, links)


def longest_sum(step: Sum | Additions | Fma, registers: Registers) -> Bounds:
    """The exact sum of a step's longest group: of all its terms, or (IEEE adders) of two of them."""
    terms = addends(step, registers)
    if isinstance(step, Sum):
        return joined(terms, max(group_sizes(step, sum(term.count for term in terms))))
    return joined(terms, 2 if sum(term.count for term in terms) > 1 else 1)


def one_exponent(step: Sum, terms: Sequence[Bounds]) -> bool:
    """Whether the terms that a sum adds have one exponent: the last alignment was of all of them, or there is
    but one."""
    if max(group_sizes(step, sum(term.count for term in terms))) == 1:
        return True
    first = terms[0].shared
    if first is None:
        return len({term.low for term in terms} | {term.high for term in terms}) == 1
    return all(term.shared == first for term in terms) and first[1] in (None, step.group)


def _joined_groups(step: Sum | Additions, registers: Registers) -> Bounds:
    """The exact sums of each group."""
    terms = [registers[name] for name in step.of]
    sizes = group_sizes(step, sum(term.count for term in terms))
    return replace(joined(terms, max(sizes)), count=len(sizes))


def _summed(step: Sum, registers: Registers) -> Bounds:
    terms = [registers[name] for name in step.of]
    own = _joined_groups(step, registers)
    if one_exponent(step, terms):
        places = {term.fraction_bits for term in terms}
        found = [term.sticky for term in terms if term.sticky is not None]
        own = replace(
            own,
            depth=max(term.depth for term in terms),
            fraction_bits=max(places),
            sticky=min(found) if found and len(places) == 1 else own.sticky,
        )
        # At one exponent a sum is no longer than its integer bits and its places, whatever the exponent is.
        fits = exponent_of(own.significand) + 1 + own.fraction_bits <= KEPT_BITS
        own = replace(own, exact=own.exact or (fits and all(term.exact for term in terms)))
    if step.complement != "none":
        own = _complemented(own, terms)
    if step.exponent is not None:
        own = replace(
            own,
            low=step.exponent,
            high=step.exponent,
            zeros=(step.exponent, step.exponent),
            fraction_bits=step.exponent - own.last,
            depth=step.exponent - own.lsb,
            significands=(own.least * power(-step.exponent), own.greatest * power(-step.exponent)),
        )
    if step.width is not None:
        own = _in_register(own, step.width, step.overflow)
    if step.cancelled == "zero" and own.sticky is None:
        own = replace(own, zeros=(own.bottom, own.top), cancels=False, vanishes=False)
    return own


def _complemented(own: Bounds, terms: Sequence[Bounds]) -> Bounds:
    """One unit of the last place less for each term that is subtracted."""
    aligned = all(term.shared is not None for term in terms)
    coarsest = min(term.fraction_bits for term in terms) if aligned else 0
    unit = sum(term.count for term in terms) * power(-coarsest)
    low, high = own.significands
    return replace(
        own,
        lsb=own.last,
        depth=own.fraction_bits,
        significands=(low - unit, high + unit),
        least=own.least - unit * power(own.high),
        greatest=own.greatest + unit * power(own.high),
        cancels=True,
    )


def _in_register(own: Bounds, width: int, overflow: str) -> Bounds:
    """A sum in a register with this many integer bits: one that wraps can come out with either sign, or as
    nothing."""
    half, (low, high) = Fraction(1 << width >> 1), own.significands
    most = half - power(-max(own.fraction_bits, 0))
    if -half <= low and high <= most:
        return own
    if overflow == "wrap":
        return replace(
            own,
            significands=(-half, most),
            least=-half * power(own.high),
            greatest=half * power(own.high),
            cancels=True,
        )
    return replace(
        own,
        significands=(max(low, -half), min(high, most)),
        least=max(own.least, -half * power(own.high)),
        greatest=min(own.greatest, half * power(own.high)),
    )


def _added(step: Additions, registers: Registers) -> Bounds:
    """Sums that are rounded; a group of one term hands it on as it is."""
    terms = [registers[name] for name in step.of]
    sizes = group_sizes(step, sum(term.count for term in terms))
    rounded = _in_format(_joined_groups(step, registers), step.format, step, max(sizes))
    alone = min(sizes) == 1
    return either(rounded, replace(joined(terms, 1), count=len(sizes))) if alone else rounded


# Rounding to a format ---------------------------------------------------------------------------------------


def words_are_numbers(fmt: Format, words: Iterable[int]) -> bool:
    """Whether what stands for a NaN or an infinity in a format is an ordinary number there."""
    return not fmt.is_float or any(fmt.decode(word).kind <= Kind.FINITE for word in words)


def special_words(fmt: Format, step: RoundingStep | SpecialValues) -> list[int]:
    """The codes that a step answers for NaN."""
    named = [word for _, word in step.nans if word is not None] if isinstance(step, SpecialValues) else []
    return [fmt.largest if step.nan is None else step.nan, *named]


def kept_bits(step: RoundingStep, fmt: Format) -> int:
    """Fraction bits of a step's result."""
    kept = step.result_fraction_bits if isinstance(step, Round) else None
    return fmt.fraction_bits if kept is None else kept


def rounded_total(step: RoundingStep, registers: Registers) -> Bounds:
    """The exact value that a rounding step rounds (of a chain of additions: one of them)."""
    match step:
        case Round():
            return seen(registers[step.of[0]])
        case Multiply():
            return seen(_exact_products(step, registers))
        case Fma():
            return seen(joined(addends(step, registers)))
        case Additions():
            total = seen(joined(addends(step, registers)))
            if words_are_numbers(step.format, special_words(step.format, step)):
                return total
            whole = joined(terms_of(step, registers))
            ends = {"significands": whole.significands, "least": whole.least, "greatest": whole.greatest}
            return replace(total, **ends)
        case _:
            assert_never(step)


def _carried(own: Bounds, fmt: Format, step: RoundingStep, times: int) -> tuple[Fraction, Fraction]:
    """The least and the greatest value with room for this many roundings to a format away from zero."""
    bits, stochastic = kept_bits(step, fmt), isinstance(step, Round) and step.random_bits is not None
    more, unit = 1 + Fraction(times, 1 << bits), power(fmt.min_exponent - bits)
    return (
        own.least * more - unit if stochastic or _rounds_away(step.rounding, -1) else own.least,
        own.greatest * more + unit if stochastic or _rounds_away(step.rounding, 1) else own.greatest,
    )


def _in_format(total: Bounds, fmt: Format, step: RoundingStep, times: int = 1) -> Bounds:
    """Numbers after this many roundings to a format: no finer and hardly larger than what is rounded."""
    held = of_format(fmt, total.count, step.flush != "none")
    if words_are_numbers(fmt, special_words(fmt, step)) or not fmt.has_zero:
        return held
    if times > 1 and total.sticky is not None:  # the bit of a sum with an earlier one lies below both
        total = replace(total, sticky=min(total.sticky, held.last - 1))
    own = seen(total)
    least, greatest = _carried(own, fmt, step, times)
    low, lsb = max(held.low, own.lsb), max(held.lsb, own.lsb)
    depth = min(held.depth, own.depth + own.above)
    if held.subnormal:
        depth = max(depth, fmt.min_exponent - lsb)
    clamps = fmt.infinity is None or any(ROUNDINGS[step.rounding].keeps_largest(sign) for sign in (0, 1))
    clamps = clamps or (isinstance(step, Round) and step.overflow == "largest")
    if clamps and (greatest > held.greatest or least < held.least):
        depth = held.depth  # the largest number has all digits, and an exponent of its own
        low, lsb = min(low, held.high), min(lsb, held.high - held.depth)
    if not fmt.signed:  # the sign is dropped
        least, greatest = _NONE, max(greatest, -least)
    least, greatest = max(held.least, least), min(held.greatest, greatest)
    return replace(
        held,
        low=low,
        high=max(low, min(held.high, exponent_of(max(greatest, -least)))),
        lsb=lsb,
        depth=depth,
        least=least,
        greatest=greatest,
        subnormal=held.subnormal and lsb < fmt.min_exponent,
    )
