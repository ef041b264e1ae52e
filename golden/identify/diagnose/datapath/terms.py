"""One step on arrays of exact numbers: products, sums, infinities, zeros."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from golden.identify.diagnose.datapath.arrays import Array, bit_length, is_short, low_bits, shl, shr
from golden.identify.diagnose.datapath.signals import Numbers
from golden.number.formats import Kind
from golden.program.steps import Part, Replace

HUGE = 1 << 40
"""An exponent above all others; its negative lies below them."""


def groups(count: int, group: tuple[str, int] | None) -> list[list[int]]:
    """Columns of each group; without grouping one group of all."""
    columns = list(range(count))
    if group is None:
        return [columns]
    kind, size = group
    if kind == "interleaved":
        return [columns[i::size] for i in range(size)]
    return [columns[i : i + size] for i in range(0, count, size)]


# Products ---------------------------------------------------------------------------------------------------


def product(a: Numbers, b: Numbers) -> tuple[Numbers, Array]:
    """Exact products, and which are infinity times zero."""
    zero, infinite = Kind.ZERO, Kind.INFINITY
    kind = np.where((a.kind == zero) | (b.kind == zero), int(zero), int(Kind.FINITE))
    kind = np.where((a.kind == infinite) | (b.kind == infinite), int(infinite), kind)
    kind = np.where((a.kind == Kind.NAN) | (b.kind == Kind.NAN), int(Kind.NAN), kind)
    invalid = ((a.kind == zero) & (b.kind == infinite)) | ((a.kind == infinite) & (b.kind == zero))
    # the array multiplier: exact, in machine integers where the product fits
    x, y = a.significand, b.significand
    fits = is_short(x, int(np.max(bit_length(y), initial=0)))
    significand = x * y if fits else x.astype(object) * y.astype(object)
    # an invalid product that counts as a zero has the exponent of its zero
    exponent, lsb = (
        np.where(invalid, np.where(a.kind == zero, x, y), x + y)
        for x, y in ((a.exponent, b.exponent), (a.lsb, b.lsb))
    )
    return Numbers(kind, a.sign ^ b.sign, significand, exponent, lsb, a.sticky | b.sticky), invalid


def combined_bits(a: Numbers, b: Numbers, operation: str) -> Numbers:
    """The counted bits, if bits are combined instead of numbers multiplied."""
    x, y = a.significand, b.significand
    bits = x & y if operation == "and" else x ^ y
    zeros, none = np.zeros_like(bits), np.zeros(bits.shape, np.bool_)
    return Numbers(np.where(bits != 0, int(Kind.FINITE), int(Kind.ZERO)), none, bits, zeros, zeros, none)


def with_hidden_bit(numbers: Numbers, zeros: str) -> Numbers:
    """Numbers with all significands read as 1.f; zeros' too, if they are `set`."""
    hit = numbers.finite | ((numbers.kind == Kind.ZERO) & (zeros == "set"))
    hidden = shl(np.ones_like(numbers.significand), np.maximum(numbers.exponent - numbers.lsb, 0))
    significand = np.where(hit, numbers.significand | hidden, numbers.significand)
    return replace(numbers, kind=np.where(hit, int(Kind.FINITE), numbers.kind), significand=significand)


def in_part(numbers: Numbers, step: Part) -> Numbers:
    """Numbers of which some places alone are read: what is below is cut, what is above masked."""
    last = numbers.exponent - (step.first + step.bits - 1)
    below = last - numbers.lsb
    moved = shl(shr(numbers.significand, np.maximum(below, 0)), np.minimum(np.maximum(-below, 0), step.bits))
    part = low_bits(moved, np.full_like(below, step.bits))
    there = numbers.finite | (numbers.kind == Kind.ZERO)
    return replace(
        numbers,
        significand=np.where(there, part, numbers.significand),
        exponent=np.where(there, numbers.exponent - step.first, numbers.exponent),
        lsb=np.where(there, last, numbers.lsb),
    )


def replaced(numbers: Numbers, step: Replace) -> Numbers:
    """Numbers of which those that are `value` units of the step became `by`."""
    unit = numbers.exponent - step.places
    finer = unit - numbers.lsb  # places that the number has below the unit
    wanted = shl(np.full_like(numbers.significand, abs(step.value)), np.maximum(finer, 0))
    given = shl(numbers.significand, np.maximum(-finer, 0))
    equal = numbers.finite & ~numbers.sticky & (numbers.sign == (step.value < 0)) & (given == wanted)
    return replace(
        numbers,
        significand=np.where(equal, abs(step.by), numbers.significand),
        sign=np.where(equal, step.by < 0, numbers.sign),
        lsb=np.where(equal, unit, numbers.lsb),
    )


# Sums -------------------------------------------------------------------------------------------------------


def special_sum(terms: Numbers) -> tuple[Array, Array, Array]:
    """(n, 1): sums with a NaN or an infinity among their terms, the kinds of these, and the infinities'
    signs."""
    infinite = terms.kind == Kind.INFINITY
    plus, minus = (infinite & ~terms.sign).any(axis=1), (infinite & terms.sign).any(axis=1)
    nan = (terms.kind == Kind.NAN).any(axis=1) | (plus & minus)
    kind = np.where(nan, int(Kind.NAN), int(Kind.INFINITY))
    return (nan | plus | minus)[:, None], kind[:, None], minus[:, None]


def total_of(terms: Numbers) -> tuple[Array, Array, Array]:
    """(n, 1): the exact signed sum of the finite terms, the exponent of its last place, the largest exponent
    of a term (of zeros, where there is nothing else)."""
    finite = terms.finite
    some = finite.any(axis=1, keepdims=True)
    # one fixed-point register for all: its last place is the lowest of any term, so nothing is lost
    lsb = np.where(some, np.where(finite, terms.lsb, HUGE).min(axis=1, keepdims=True), 0)
    exponent = np.where(finite, terms.exponent, -HUGE).max(axis=1, keepdims=True)
    exponent = np.where(some, exponent, terms.exponent.max(axis=1, keepdims=True))
    # signed magnitudes at that place; the sum is exact
    value = np.where(finite, shl(terms.significand, np.maximum(terms.lsb - lsb, 0)), 0)
    value = value if is_short(value, terms.kind.shape[1].bit_length()) else value.astype(object)
    return np.where(terms.sign, -value, value).sum(axis=1, keepdims=True), lsb, exponent


def zero_sign_of(terms: Numbers, rounding: str) -> Array:
    """(n, 1): the sign of a sum that is zero (IEEE 754 6.3)."""
    one_sign = (terms.sign == terms.sign[:, :1]).all(axis=1, keepdims=True)
    plain = one_sign & (terms.significand == 0).all(axis=1, keepdims=True)
    return np.where(plain, terms.sign[:, :1], rounding == "down")


def facts_of(terms: Numbers, exponent: Array) -> dict[str, Array]:
    """What a rounding may know about its sum. Zeros have signs and exponents, too, for an adder that does not
    test for zeros."""
    least = terms.exponent.min(axis=1, keepdims=True)
    plus, minus = (~terms.sign).any(axis=1, keepdims=True), terms.sign.any(axis=1, keepdims=True)
    return {"maximum": exponent, "distance": np.maximum(exponent - least, 0), "subtraction": plus & minus}


def facts_of_one(numbers: Numbers) -> dict[str, Array]:
    """The same for a number that is no sum. A product has the sum of its factors' exponents, and its leading
    one may lie above (a carry) or below (a subnormal factor)."""
    none = np.zeros(numbers.lsb.shape, np.bool_)
    distance = np.zeros(numbers.lsb.shape, np.int64)
    return {"maximum": numbers.exponent, "distance": distance, "subtraction": none, "signed_zero": none}


def register_lsb(finite: Array, lsb: Array) -> int | None:
    """The last place of a register that holds every sum of these exactly: the least that occurs."""
    return int(lsb[finite].min()) if finite.any() else None


# Numbers ----------------------------------------------------------------------------------------------------


def picked_sign(infinite: Array, sign: Array, rule: str) -> Array:
    """(n,): the sign of an infinite answer: of the first infinity, of the last, plus or minus."""
    if rule in ("positive", "negative"):
        both = (infinite & sign).any(axis=1) & (infinite & ~sign).any(axis=1)
        only = (infinite & sign).any(axis=1)
        return np.where(both, rule == "negative", only)
    columns = np.arange(infinite.shape[1])
    last = rule == "last"
    place = np.where(infinite, columns, -1 if last else len(columns))
    picked = place.max(axis=1) if last else place.min(axis=1)
    return np.take_along_axis(sign, np.clip(picked, 0, len(columns) - 1)[:, None], axis=1)[:, 0]


def with_sticky(numbers: Numbers) -> Numbers:
    """Numbers for a rounding: the sticky bit is one more bit below the last one."""
    if not numbers.sticky.any():
        return numbers
    significand = np.where(numbers.sticky, shl(numbers.significand, 1) | 1, numbers.significand)
    lsb = np.where(numbers.sticky, numbers.lsb - 1, numbers.lsb)
    return replace(numbers, significand=significand, lsb=lsb, sticky=np.zeros_like(numbers.sticky))


def leading_of(numbers: Numbers) -> Array:
    """The exponents of leading ones."""
    return bit_length(numbers.significand) - 1 + numbers.lsb


def without_zero_exponents(numbers: Numbers) -> Numbers:
    """The numbers with every zero turned into one that takes part in no maximum exponent."""
    zero = numbers.finite & (numbers.significand == 0) & ~numbers.sticky.any(axis=1, keepdims=True)
    return replace(numbers, kind=np.where(zero, int(Kind.ZERO), numbers.kind)) if zero.any() else numbers


def zeros_like(numbers: Numbers) -> Numbers:
    """Positive zeros in the same shape."""
    zero, none = np.zeros_like(numbers.lsb), np.zeros_like(numbers.sign)
    return Numbers(zero, none, zero, zero, zero, none)


def joined(parts: Sequence[tuple[str, Numbers]]) -> tuple[Numbers, Array]:
    """The terms of several registers in one array, and the register of each."""
    owner = [name for name, numbers in parts for _ in range(numbers.kind.shape[1])]
    return Numbers.join([numbers for _, numbers in parts]), np.array(owner)
