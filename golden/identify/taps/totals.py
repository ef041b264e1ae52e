"""Faults of the adders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from golden.identify.datapath.arrays import Array, held, low_bits, modulo, shl
from golden.identify.datapath.signals import (
    Tap,
    TotalSignals,
)
from golden.identify.taps.steps import (
    in_each,
    kinds_of,
)
from golden.instruction import Instruction
from golden.number.formats import Format, Kind
from golden.program.steps import (
    Additions,
    Align,
    Fma,
    Round,
    Step,
    Sum,
    format_of,
)

_SHORTER = 16
"""Places that a register for exact sums may be too short."""
_CARRIES = 4
"""Places above the largest exponent at which the leading one of a sum may be."""


def faults(ins: Instruction) -> Iterator[Tap]:
    if not ins.formats["d"].is_float:
        yield from _integer_totals(ins)
        return
    if kinds_of(ins, Sum):
        yield from _negations(ins)
        yield from _skewed(ins)
        yield from _kept_negative(ins)
        yield from _short_register(ins)
        yield from _blind(ins)
    yield from in_each(kinds_of(ins, Sum, Additions, Fma), _zero_signs)
    yield from in_each(kinds_of(ins, Additions, Fma), partial(_carries, ins))


def _blind(ins: Instruction) -> Iterator[Tap]:
    """The leading one of an aligned sum is looked for in the bits that its terms have, and not in those of
    its carries: it is shifted out."""
    if not kinds_of(ins, Align):
        return
    for places in range(_CARRIES + 1):
        yield Tap(
            f"sum-top-plus-{places}",
            f"the leading one of a sum is not seen from 2^{places} times the largest exponent up",
            "total",
            lambda s, n=places: _lose_top(s, n),
            of=(Sum,),
        )


def _lose_top(s: TotalSignals, places: int) -> None:
    """Where no lower bit is one nothing is shifted."""
    magnitude = np.abs(s.total)
    kept: Array = low_bits(magnitude, np.maximum(s.exponent + places - s.lsb, 0))
    kept = np.where((kept == 0) & ~s.sticky, magnitude, kept)
    s.total = np.where(s.total < 0, -kept, kept)


def _carries(ins: Instruction, kind: type[Step]) -> Iterator[Tap]:
    """IEEE additions whose register ends at the leading bit of the larger term."""
    precision = max(fmt.fraction_bits for s in ins.program.steps_of(kind) if (fmt := format_of(s)))
    words = {0: "", 1: " (with one guard bit and a sticky bit)", 2: " (with two guard bits and a sticky bit)"}
    for guards, word in words.items():
        yield Tap(
            f"sum-carry-lost{f'-guards-{guards}' * bool(guards)}",
            f"loses the carry of the sum: its register is one bit short{word}",
            "total",
            lambda s, n=guards: _lose_carry(s, precision + n if n else None),
        )


def _lose_carry(s: TotalSignals, places: int | None) -> None:
    """What is left shows the bits that the rounding behind a carry does not: in a register of so many
    `places` below the leading one the others are one sticky bit."""
    magnitude = low_bits(np.abs(s.total), np.maximum(s.exponent + 1 - s.lsb, 0))
    if places is not None:
        cut = np.maximum(s.exponent - places - s.lsb, 0)
        below = low_bits(magnitude, cut)
        sticky = shl((below != 0).astype(object), np.maximum(cut - 1, 0))
        magnitude = magnitude - below + np.where(cut > 0, sticky, 0)
    s.zero_sign = np.where(s.total == 0, s.zero_sign, s.total < 0)
    s.total = np.where(s.total < 0, -magnitude, magnitude)


def _zero_signs(kind: type[Step]) -> Iterator[Tap]:
    for sign, word in ((0, "positive"), (1, "negative")):
        yield Tap(
            f"zero-sum-{word}",
            f"gives an exact zero as {'-' if sign else '+'}0, whatever it adds",
            "total",
            lambda s, n=sign: _sign_zero(s, np.full_like(s.zero_sign, bool(n))),
        )
    for word, place in (("first", 0), ("last", -1)):
        yield Tap(
            f"zero-sum-sign-of-{word}",
            f"gives an exact zero the sign of the {word} number that it adds",
            "total",
            lambda s, n=place: _sign_zero(s, s.terms.sign[:, [n]].copy()),
        )
    yield Tap(
        "zero-sum-negative-if-any",
        "gives an exact zero as -0 where any number that it adds is negative",
        "total",
        lambda s: _sign_zero(s, s.terms.sign.any(axis=1, keepdims=True)),
    )

    for slug, what, here in (
        ("zeros", "zeros alone", lambda s: ~s.terms.finite.any(axis=1, keepdims=True)),
        ("cancelled", "numbers that cancel", lambda s: s.terms.finite.any(axis=1, keepdims=True)),
    ):
        for rule, (text, its) in _OF_ZEROS.items():
            yield Tap(
                f"{slug}-sum-{rule}",
                f"gives the sum of {what} {text}",
                "total",
                lambda s, h=here, r=its: _sign_zero(s, np.where(h(s), r(s), s.zero_sign), h(s)),
                weight=1.05,
            )


_OF_ZEROS: dict[str, tuple[str, Callable[[TotalSignals], Array]]] = {
    "positive": ("as +0", lambda s: np.zeros_like(s.zero_sign, np.bool_)),
    "negative": ("as -0", lambda s: np.ones_like(s.zero_sign, np.bool_)),
    "sign-of-first": ("with the sign of the first", lambda s: s.terms.sign[:, [0]]),
    "sign-of-last": ("with the sign of the last", lambda s: s.terms.sign[:, [-1]]),
    "negative-if-any": ("as -0 where any of them is negative", lambda s: s.terms.sign.any(1, keepdims=True)),
    "negative-if-all": ("as -0 where all of them are negative", lambda s: s.terms.sign.all(1, keepdims=True)),
    "negative-if-odd": (
        "as -0 where an odd number of them is negative",
        lambda s: (s.terms.sign.sum(1, keepdims=True) & 1).astype(np.bool_),
    ),
}
"""What else the sign of a sum may be that is zero."""


def _sign_zero(s: TotalSignals, sign: Array, signed: Array = True) -> None:
    """Also where the unit's rounding makes each zero positive: in RTL that is one place. What has a sticky
    bit is no exact zero."""
    s.zero_sign, s.signed_zero = np.where(s.sticky, s.zero_sign, sign), signed


def _negations(ins: Instruction) -> Iterator[Tap]:
    yield Tap(
        "sum-ones-complement",
        "a negative sum is inverted to a magnitude, without the one of a negation",
        "total",
        _invert_register,
        weight=1.0,
        of=(Sum,),
    )
    if kinds_of(ins, Align):
        yield Tap(
            "sum-ones-complement-aligned",
            "a negative sum is inverted to a magnitude, without the one, in the aligned terms' last place",
            "total",
            _invert,
            of=(Sum,),
        )
    if any(step.cut == "sticky_or" for step in ins.program.steps_of(Align)):
        yield Tap(
            "sticky-negated",
            "the sticky bit lies below the signed sum, not below its magnitude: where the sum is negative it "
            "makes the magnitude smaller",
            "total",
            _sticky_below_sum,
            weight=1.0,
            of=(Sum,),
        )
        yield Tap(
            "sticky-against-sum",
            "the sticky bit makes the magnitude of every sum smaller, not larger",
            "total",
            _sticky_against_sum,
            of=(Sum,),
        )


def _kept_negative(ins: Instruction) -> Iterator[Tap]:
    """Negative sums whose two's complement word is taken for the magnitude."""
    bits = [n for step in ins.program.steps_of(Align) for _, n in step.fraction_bits]
    for word in range(max(bits) + 2, max(bits) + 10) if bits else ():
        yield Tap(
            f"negative-sum-kept-{word}",
            f"a negative sum is not negated: the word of {word} bits is taken for its magnitude",
            "total",
            lambda s, n=word: setattr(s, "total", np.where(s.total < 0, -modulo(s.total, n), s.total)),
            of=(Sum,),
        )


def _short_register(ins: Instruction) -> Iterator[Tap]:
    """A fixed-point register for exact sums that ends too low: it wraps."""
    if kinds_of(ins, Align):
        return
    a, b, c = (ins.formats[name] for name in "abc")
    if not (a.is_float and b.is_float and c.is_float):
        return
    with_c = any("c" in step.of for step in ins.program.steps_of(Sum))
    top = max(a.max_exponent + b.max_exponent + 1, c.max_exponent if with_c else 0) + ins.k.bit_length() + 2
    for place in range(top, top - _SHORTER, -1):
        yield Tap(
            f"sum-wraps-at-{place}",
            f"the register of the sum ends with a sign bit at 2^{place}, and wraps",
            "total",
            lambda s, n=place: setattr(s, "total", held(s.total, np.maximum(n + 1 - s.lsb, 0))),
            of=(Sum,),
        )


def _invert_register(s: TotalSignals) -> None:
    """In the last place of a register that holds every sum exactly."""
    if s.register_lsb is None:
        return
    unit = np.left_shift(1, np.maximum(s.lsb - s.register_lsb, 0).astype(object))
    total = s.total * unit
    s.lsb = np.minimum(s.lsb, s.register_lsb)
    s.total = np.where(s.total < 0, total + 1, total)


def _invert(s: TotalSignals) -> None:
    s.total = np.where(s.total < 0, s.total + 1, s.total)


def _sticky_below_sum(s: TotalSignals) -> None:
    _add_below(s, s.sticky & (s.total < 0))


def _sticky_against_sum(s: TotalSignals) -> None:
    _add_below(s, s.sticky & (s.total != 0))


def _add_below(s: TotalSignals, there: Any) -> None:
    """Brings the magnitude of these sums down by one in the place below the last."""
    s.total = np.where(there, s.total * 2 + np.where(s.total < 0, 1, -1), s.total)
    s.lsb, s.sticky = s.lsb - there.astype(np.int64), s.sticky & ~there


def _skewed(ins: Instruction) -> Iterator[Tap]:
    """The largest exponent of another vector: a register too many or too few beside the sum."""
    if not kinds_of(ins, Align):
        return
    for late, word in ((1, "before"), (-1, "behind")):
        yield Tap(
            f"exponent-of-vector-{word}",
            f"the sum gets the largest exponent of the vector {word}",
            "total",
            lambda s, n=late: _take_exponent(s, n),
            of=(Sum,),
            in_order=True,
        )
    yield Tap(
        "exponent-always-0",
        "the sum gets the exponent 0, not the largest one of its terms",
        "total",
        lambda s: _move_to(s, 0),
        of=(Sum,),
    )


_FAR = 1 << 12
"""An exponent below all others: that of a vector of zeros."""


def _take_exponent(s: TotalSignals, late: int) -> None:
    there = s.terms.kind != Kind.ZERO
    own = np.where(there, s.terms.exponent, -_FAR).max(axis=1, keepdims=True)
    by = np.roll(own, late, axis=0) - s.exponent
    s.exponent, s.lsb = s.exponent + by, s.lsb + by


def _move_to(s: TotalSignals, exponent: int) -> None:
    by = exponent - s.exponent
    s.exponent, s.lsb = s.exponent + by, s.lsb + by


def _integer_totals(ins: Instruction) -> Iterator[Tap]:
    """The sum of the products alone in too few bits, before c is added; and a clamp that always works."""
    limits = {"": (True, True), "negative-": (True, False), "positive-": (False, True)}
    for slug, (low, high) in limits.items():
        yield Tap(
            f"{slug}always-saturated",
            f"every {slug.replace('-', ' ')}sum becomes the largest or the least number",
            "total",
            lambda s, x=low, y=high: _saturate(s, ins.formats["d"].largest, x, y),
        )
    if any(step.overflow == "saturate" for step in ins.program.steps_of(Round)):
        yield from _clamps(ins.formats["d"])
    if not any("c" in step.of and len(step.of) > 1 for step in ins.program.steps_of(Sum)):
        return
    widest = ins.formats["a"].integer_bits + ins.formats["b"].integer_bits + max(ins.k - 1, 1).bit_length()
    for bits in range(widest + 1, max(widest - 6, 2), -1):
        yield Tap(
            f"products-sum-width-{bits}",
            f"the sum of the products has {bits} bits and wraps, before c is added",
            "total",
            lambda s, n=bits: _hold_products(s, n, signed=True),
        )
        yield Tap(
            f"products-sum-unsigned-{bits}",
            f"the sum of the products, {bits} bits, loses its sign: zeros stand above it before c is added",
            "total",
            lambda s, n=bits: _hold_products(s, n, signed=False),
        )


_UNSEEN_OVERFLOWS = 4
"""Bits above those of the result in which an overflow may go unseen."""


def _clamps(fmt: Format) -> Iterator[Tap]:
    """Clamps whose comparison is off by one, that look at too few bits above, or that give something else."""
    ends = {"upper": (fmt.largest, 1), "lower": (_least(fmt), -1)}
    for name, (end, beyond) in ends.items():
        what = "above the largest" if beyond > 0 else "below the least"
        yield Tap(
            f"clamp-{name}-one-late",
            f"a sum that is one {what} number is not clamped: it wraps",
            "total",
            lambda s, n=end + beyond, f=fmt: _replace(s, s.total == n, _wrapped(s.total, f)),
            weight=1.0,
        )
        yield Tap(
            f"clamp-{name}-one-early",
            f"a sum that is one {'below the largest' if beyond > 0 else 'above the least'} number is clamped",
            "total",
            lambda s, n=end - beyond, e=end: _replace(s, s.total == n, e),
            weight=1.0,
        )
        for slug, word, value in (
            ("other-end", "the other end of the range", ends["lower" if beyond > 0 else "upper"][0]),
            ("zero", "0", 0),
            ("wraps", "its low bits", None),
        ):
            yield Tap(
                f"clamp-{name}-{slug}",
                f"a sum {what} number becomes {word}",
                "total",
                lambda s, e=end, b=beyond, v=value, f=fmt: _replace(
                    s, (s.total - e) * b > 0, _wrapped(s.total, f) if v is None else v
                ),
            )
    for more in range(1, _UNSEEN_OVERFLOWS + 1):
        place = fmt.integer_bits - fmt.signed + more
        yield Tap(
            f"clamp-from-2-to-{place}",
            f"an overflow is seen from 2^{place} up alone: what is less wraps",
            "total",
            lambda s, n=1 << place, f=fmt: _replace(
                s, (s.total < n) & (s.total >= -n * f.signed), _wrapped(s.total, f)
            ),
        )


def _least(fmt: Format) -> int:
    return -(1 << fmt.integer_bits - 1) if fmt.signed else 0


def _wrapped(total: Array, fmt: Format) -> Array:
    """Sums as the bits of a result hold them."""
    if fmt.signed:
        return held(total, np.asarray(fmt.integer_bits))
    return modulo(total, fmt.integer_bits)


def _replace(s: TotalSignals, there: Array, by: Array) -> None:
    s.total = np.where(there, by, s.total)


def _saturate(s: TotalSignals, largest: int, low: bool, high: bool) -> None:
    limited = np.where((s.total < 0) & low, -largest - 1, s.total)
    s.total = np.where((s.total >= 0) & high, largest, limited)


def _hold_products(s: TotalSignals, bits: int, signed: bool) -> None:
    mine = (s.owner != "c") & s.terms.finite
    value = np.where(s.terms.sign, -s.terms.significand, s.terms.significand)
    products = np.where(mine, value, 0).sum(axis=1, keepdims=True)
    s.total = s.total - products + (held(products, bits) if signed else modulo(products, bits))
