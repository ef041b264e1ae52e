"""The signals of a data path that faults change: one class for each place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np

from golden.identify.diagnose.datapath.arrays import Array, bit_length
from golden.number.formats import Format, Kind
from golden.program.steps import Step

PLACES = ("operands", "scales", "products", "specials", "shifts", "total", "normalize", "rounding", "code")


class Faulty(Protocol):
    """A fault in the data path: rules that change the signals of places, in some kinds of steps."""

    @property
    def signals(self) -> tuple[tuple[str, Callable[..., None]], ...]:
        """(place, rule): a rule changes the signals of its place, whose class has the place's name."""
        ...

    @property
    def of(self) -> tuple[type[Step], ...]:
        """The kinds of steps with the fault; none: all."""
        ...


# Signals ----------------------------------------------------------------------------------------------------


@dataclass
class Numbers:
    """(n, terms) numbers (-1)**sign * significand * 2**lsb; `exponent` is the one that alignment compares."""

    kind: Array
    sign: Array
    significand: Array
    exponent: Array
    lsb: Array
    sticky: Array

    def __getitem__(self, columns: Any) -> Numbers:
        return Numbers(*(getattr(self, one.name)[:, columns] for one in fields(self)))

    @staticmethod
    def join(parts: Sequence[Numbers]) -> Numbers:
        """The terms of several in one array."""
        return Numbers(*(np.hstack([getattr(p, one.name) for p in parts]) for one in fields(Numbers)))

    @property
    def finite(self) -> Array:
        """The terms that take part in sums."""
        return self.kind == Kind.FINITE


@dataclass
class OperandSignals:
    """a, b and c as they were read."""

    numbers: dict[str, Numbers]
    formats: dict[str, Format]

    def subnormal(self, name: str) -> Array:
        """(n, terms): subnormal numbers, not zeros."""
        numbers, fmt = self.numbers[name], self.formats[name]
        if not fmt.is_float or not fmt.has_subnormals:
            return np.zeros(numbers.kind.shape, np.bool_)
        return numbers.finite & (numbers.significand < (1 << fmt.fraction_bits)).astype(np.bool_)

    def move(self, name: str, by: Array) -> None:
        """Adds to the exponents of an operand."""
        numbers = self.numbers[name]
        self.numbers[name] = replace(numbers, exponent=numbers.exponent + by, lsb=numbers.lsb + by)


@dataclass
class ScaleSignals:
    """Block scales as they were read, (n, blocks), and for each product the block whose scales it takes."""

    a: Numbers
    b: Numbers
    format_a: Format
    format_b: Format
    blocks: list[int]


@dataclass
class ProductSignals:
    """The products, before anything is rounded; `a` and `b` as the multiplier read them."""

    products: Numbers
    invalid: Array
    """(n, k): infinity times zero."""
    a: Numbers
    b: Numbers
    answer: Kind
    """The answer for an invalid product."""
    coded: dict[str, Array]
    """Kinds of a and b as their codes say: a test for zero of its own sees them, whatever the multiplier
    reads."""


@dataclass
class SpecialSignals:
    """Kinds and signs of the terms (n, terms) that are looked at for NaNs and infinities. `owner` (terms,):
    their registers. A tap answers in `kind` and `sign`, or sets `opposite`: how infinities of both signs end
    for those (n,) vectors where `excused` is; or `unseen`: terms that go on as the numbers that their codes
    would be without special values; or `skew`: the answer is that of the vector this many places before.

    signed_by_sum: (n,), whose answer is an infinity with the sign of the result that is made without one: of
    the unseen terms as `unseen_as`.

    wraps: an IEEE addition of a number with the exponent of infinities, which only unseen terms have, is
    zero.
    """

    kind: Array
    sign: Array
    owner: Array
    excused: Array = None
    opposite: str = "first"
    unseen: Array = None
    unseen_as: Kind = Kind.FINITE
    wraps: bool = False
    skew: int = 0
    signed_by_sum: Array = None


@dataclass
class ShiftSignals:
    """Terms and how far each moves right: `shift` = `maximum` - exponent, (n, terms).

    fraction_bits: kept below the largest exponent, by term; None in an IEEE step, which keeps all.
    jammed: terms of which nothing but a sticky bit is left. logical: bits of the word in which negative terms
    are shifted with zeros from the left, or 0; `logical_of`: which.
    complemented: negative terms are inverted, without the one.
    unseen: terms whose cut bits no sticky bit sees.
    lost_below: bits more than this many places below the maximum are lost, by term; None: none are. or_below:
    they leave a sticky bit, which is no part of the sum: it stands below its magnitude.
    """

    terms: Numbers
    owner: Array
    maximum: Array
    shift: Array
    fraction_bits: Array
    precision: int
    jammed: Array
    logical: int = 0
    logical_of: Array = True
    complemented: bool = False
    unseen: Array = False
    lost_below: Array = None
    or_below: bool = False


@dataclass
class TotalSignals:
    """A sum (n, 1): total * 2**lsb, signed; `sticky` below its magnitude, `register_lsb` of the register.

    zero_sign: of a sum that is zero. terms: what was added. owner: of each term its register.
    """

    total: Array
    lsb: Array
    exponent: Array
    sticky: Array
    zero_sign: Array
    terms: Numbers
    owner: Array
    register_lsb: int | None
    is_integer: bool
    signed_zero: Array = False
    """Where the sign of a sum that is zero stays although the unit's rounding makes each zero positive."""


@dataclass
class NormalizeSignals:
    """Numbers before normalisation."""

    numbers: Numbers


@dataclass
class RoundingSignals:
    """What a rounding to `fmt` sees of (n, terms) numbers, and what it does. Masks and counts are (n, terms)
    arrays or one for all.

    leading: exponent of the leading one. least: the least exponent, below which results are subnormal.
    highest: the largest. seen: of the bits below the round bit, how many the rounding sees; None: all.
    round_bit: whether it counts among the bits cut in directed roundings. half_is_inexact: whether the round
    bit counts among those that make a result inexact. carry: of a significand that rounds up to a power of
    two: kept, lost, lost_with_hidden_bit, or ored into the exponent field. assumed: where a result without a
    leading one gets the exponent field of one that has it; field_plus: what is added to that. overflow_mode:
    the mode whose overflow it is.
    overflows: what is an overflow: what is "above" the largest number; "late", what no exponent field holds,
    and what falls on the codes of infinities and NaNs stays there; "at_infinity", what falls on these codes
    alone, or "never" anything, and the exponent wraps around; "wide", what is above in a field of one bit
    more, and the exponent wraps around in that.
    maximum, distance, subtraction: the largest exponent of the terms that were added, how far apart they lie,
    and whether their signs differ. signed_zero: see TotalSignals. exact_zero: which numbers are zero,
    where the rounding sees nothing of some that are not; None: those whose significand is 0. nan: the
    word of a NaN.
    """

    fmt: Format
    sign: Array
    significand: Array
    lsb: Array
    mode: str
    overflow: str
    kept: int
    least: Array
    highest: Array
    flush: str = "none"
    tiny: str = "subnormal_result"
    zero: str = "signed"
    subnormal_carry: str = "kept"
    overflow_mode: str = ""
    overflows: str = "above"
    seen: Array = None
    round_bit: bool = True
    half_is_inexact: bool = True
    carry: str = "kept"
    assumed: Array = False
    field_plus: Array = 0
    maximum: Array = None
    distance: Array = None
    subtraction: Array = None
    signed_zero: Array = False
    exact_zero: Array = None
    nan: int = 0

    @property
    def leading(self) -> Array:
        """Exponent of the leading one; meaningless for zeros."""
        return bit_length(self.significand) - 1 + self.lsb

    @property
    def exponent(self) -> Array:
        """The exponent of the result, before it is rounded up."""
        return np.minimum(np.maximum(self.leading, self.least), self.highest)


@dataclass
class CodeSignals:
    """The code of a rounding, with its inputs."""

    code: Array
    rounding: RoundingSignals
