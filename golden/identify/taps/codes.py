"""Faults in the exponent field of a result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from golden.identify.datapath.signals import (
    CodeSignals,
    Tap,
)
from golden.identify.taps.steps import (
    in_each,
    rounding_kinds,
)
from golden.instruction import Instruction
from golden.program.steps import (
    Multiply,
    Step,
)


def faults(ins: Instruction) -> Iterator[Tap]:
    """Of every step that rounds to a float format."""
    yield from in_each(rounding_kinds(ins), _exponent_fields)


def _exponent_fields(kind: type[Step]) -> Iterator[Tap]:
    """The exponent fields of subnormal results and of zeros."""
    yield Tap(
        "subnormal-exponent-one",
        "gives subnormal results the exponent field 1 instead of 0",
        "code",
        lambda s: _exponent_one(s, None),
    )
    yield Tap(
        "top-subnormal-overflows",
        "takes a result just below the least normal number as normal: its exponent wraps around",
        "code",
        _overflow_top_subnormal,
    )
    for by, word in ((-1, "small"), (1, "large")):
        yield Tap(
            f"result-exponent-{'minus' if by < 0 else 'plus'}-1",
            f"gives normal results an exponent field that is one too {word}",
            "code",
            lambda s, n=by: _move_exponent(s, n),
        )
    for rule, text in (("positive", "the sign +"), ("negated", "the other sign")):
        yield Tap(
            f"rounded-sign-{rule}",
            f"gives every result {text}, earlier steps' too",
            "code",
            lambda s, r=rule: _take_sign(s, r == "negated"),
        )
    if kind is Multiply:
        return
    yield Tap(
        "subnormal-difference-exponent-one",
        "gives subnormal differences the exponent field 1 instead of 0",
        "code",
        lambda s: _exponent_one(s, s.rounding.subtraction),
    )
    for extra in range(4):
        yield Tap(
            f"difference-exponent-kept-{extra}",
            "does not clear the exponent field of a difference without a leading one: neither of subnormal "
            f"results nor of zeros ({extra} bits below the last place)",
            "code",
            lambda s, n=extra: _keep_exponent(s, n),
        )


def _exponent_one(s: CodeSignals, there: Any) -> None:
    fmt, rounding = s.rounding.fmt, s.rounding
    subnormal = (rounding.significand != 0) & (rounding.leading < fmt.min_exponent)
    subnormal = subnormal if there is None else subnormal & there
    s.code = np.where(subnormal, s.code + (1 << (fmt.fraction_bits + fmt.ignored_low)), s.code)


def _take_sign(s: CodeSignals, negated: bool) -> None:
    sign = 1 << s.rounding.fmt.sign_shift if s.rounding.fmt.signed else 0
    s.code = s.code ^ sign if negated else s.code & ~sign


def _move_exponent(s: CodeSignals, by: int) -> None:
    fmt, rounding = s.rounding.fmt, s.rounding
    normal = (rounding.significand != 0) & (rounding.leading >= fmt.min_exponent)
    s.code = np.where(normal, s.code + by * (1 << (fmt.fraction_bits + fmt.ignored_low)), s.code)


def _overflow_top_subnormal(s: CodeSignals) -> None:
    fmt, rounding = s.rounding.fmt, s.rounding
    top = (rounding.significand != 0) & (rounding.leading == fmt.min_exponent - 1)
    sign = rounding.sign.astype(object) << fmt.sign_shift if fmt.signed else 0
    wrapped = fmt.largest if fmt.infinity is None else fmt.infinity
    s.code = np.where(top, sign | wrapped, s.code)


def _keep_exponent(s: CodeSignals, extra: int) -> None:
    """Of the close path of an adder, where the exponents are at most one apart."""
    _exponent_one(s, s.rounding.subtraction & (s.rounding.distance <= 1))
    fmt, rounding = s.rounding.fmt, s.rounding
    zero = (rounding.significand == 0) & rounding.subtraction
    shift = fmt.fraction_bits + 1 + extra
    field = np.maximum(rounding.maximum - shift + fmt.bias, 1)
    kept = field.astype(object) << (fmt.fraction_bits + fmt.ignored_low)
    s.code = np.where(zero, kept, s.code)
