"""Faults in forming a result: normalisation, rounding, overflow, subnormal numbers and the exponent field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from golden.identify.diagnose.datapath.arrays import Array, bit_length, low_bits
from golden.identify.diagnose.datapath.signals import CodeSignals, NormalizeSignals, RoundingSignals
from golden.identify.diagnose.mutations.mutation import (
    Mutation,
    change,
    fields,
    in_each,
    kinds_of,
    rewrite,
    sets,
    signal,
)
from golden.identify.diagnose.mutations.words import MODE_NAMES, STEP_NAMES
from golden.identify.diagnose.policy import RANGES
from golden.model.instruction import Instruction
from golden.number.rounding import FLOAT_OVERFLOWS, INTEGER_OVERFLOWS, MODES, ROUNDINGS
from golden.program.program import Operation
from golden.program.steps import (
    Additions,
    Fma,
    Multiply,
    Normalize,
    Round,
    SpecialValues,
    Step,
    format_of,
)

_ROUNDING_STEPS = (Round, Fma, Additions, Multiply)
_rounding = partial(signal, "rounding")
_code = partial(signal, "code")

# The program ------------------------------------------------------------------------------------------------


def _rounds(step: Step) -> bool:
    """Whether a step rounds to a number format: the last one does, and every IEEE operation."""
    return isinstance(step, _ROUNDING_STEPS) and format_of(step) is not None


def program(ins: Instruction) -> Iterator[Mutation]:
    """Changes of how results are rounded, and of what becomes of large, small and zero ones."""
    steps = (step for operation in ins.program.operations for step in operation.steps[::-1])
    usual = next((step.rounding for step in steps if isinstance(step, _ROUNDING_STEPS) and _rounds(step)), "")
    for mode in MODES:
        slug, text = mode.replace("_", "-"), f"{MODE_NAMES[mode]} instead of {MODE_NAMES.get(usual, usual)}"
        yield change(f"round-{slug}", text, fields(*_ROUNDING_STEPS, when=_rounds, rounding=mode))
        apply = fields(Round, when=_overflow_is_known, rounding=mode, overflow=_kept_overflow)
        yield change(f"increment-{slug}", f"{text}, except for results that overflow", apply, 1.05)
    yield from _overflows(ins)
    if ins.formats["d"].is_float:
        yield from _results(ins)


_IEEE_OVERFLOWS = {
    name: "largest" if rounding.keeps_largest(0) else "infinity"
    for name, rounding in ROUNDINGS.items()
    if rounding.keeps_largest(0) == rounding.keeps_largest(1)
}
"""The overflow result of a mode, if it is the same for both signs (IEEE 754-2019, 7.4)."""


def _overflow_is_known(step: Round) -> bool:
    return step.overflow != "ieee" or step.rounding in _IEEE_OVERFLOWS


def _kept_overflow(step: Round) -> str:
    """The overflow rule that keeps the overflow result, whatever the mode is."""
    return _IEEE_OVERFLOWS[step.rounding] if step.overflow == "ieee" else step.overflow


_OVERFLOW_TEXTS = {
    "largest": "the largest finite number",
    "ieee": "what IEEE 754 says for the mode",
    "nan": "NaN",
}
_ZERO_TEXTS = {
    "signed": "zeros keep the sign that IEEE 754 gives them",
    "signed_underflow": "a negative total that underflows gives -0",
    "positive": "every zero is +0",
}
_FLUSHED = {"signed": "zero of their sign", "positive": "+0"}
_TINY_TEXTS = {
    "subnormal_result": "a result that is subnormal once it is rounded",
    "unbounded": "a result that would be below the least normal number with any exponent (tininess after "
    "rounding)",
    "before_rounding": "a result that is below the least normal number before it is rounded (tininess before "
    "rounding)",
}


def flushed(rule: str) -> str:
    """What subnormal numbers become."""
    return _FLUSHED[rule]


def _overflows(ins: Instruction) -> Iterator[Mutation]:
    fmt = ins.formats["d"]
    for overflow in FLOAT_OVERFLOWS if fmt.is_float else INTEGER_OVERFLOWS:
        if overflow != "nan" or fmt.nan is not None:
            name = _OVERFLOW_TEXTS.get(overflow, overflow)
            text = f"overflow gives {name}" if fmt.is_float else f"overflow: {name}"
            yield change(f"overflow-{overflow}", text, fields(Round, overflow=overflow))


def _results(ins: Instruction) -> Iterator[Mutation]:
    for zero, text in _ZERO_TEXTS.items():
        yield change(f"zero-{zero.replace('_', '-')}", text, fields(Round, zero=zero))
    for flush, rule in (
        ("signed", "flushed-signed"),
        ("positive", "flushed-positive"),
        ("none", "not-flushed"),
    ):
        text = (
            "subnormal results are kept" if flush == "none" else f"subnormal results become {flushed(flush)}"
        )
        yield change(f"result-{rule}", text, fields(*_ROUNDING_STEPS, when=_rounds, flush=flush))
    for tiny, text in _TINY_TEXTS.items():
        apply = fields(*_ROUNDING_STEPS, when=lambda s: _rounds(s) and s.flush != "none", tiny=tiny)
        yield change(f"tiny-{tiny.replace('_', '-')}", f"what is flushed is {text}", apply, 0.95)
    for gap in range(1, 5):
        unseen = "the bit" if gap == 1 else f"the {gap} bits"
        text = f"the final rounding does not see {unseen} right below the round bit"
        yield change(f"round-sticky-gap-{gap}", text, fields(Round, sticky_gap=gap))
    text = "the final rounding sees the round bit alone, no sticky bit"
    yield change("round-no-sticky", text, fields(Round, sticky_gap=64), 1.05)
    text = "a subnormal result that rounds up to the least normal number becomes zero"
    yield change("subnormal-carry-lost", text, fields(Round, subnormal_carry="lost"))
    whole = ins.formats["d"].fraction_bits
    for bits in sorted({whole, whole - 1, whole - 2, 13, 10, 7}):  # 13, 10, 7: of FP8 units, f16 and bf16
        if 0 < bits <= whole:
            apply = fields(Round, when=lambda s: s.to == "d", result_fraction_bits=bits)
            yield change(f"result-bits-{bits}", f"{bits} fraction bits in the result", apply, 1.1)


def nan_word(nan: int) -> Mutation:
    """Another word of the NaNs that the unit makes."""

    def rule(step: Step, operation: Operation) -> Step:
        if not isinstance(step, (*_ROUNDING_STEPS, SpecialValues)) or step.nan is None:
            return step
        if not isinstance(step, SpecialValues) and not _rounds(step):
            return step
        fmt = format_of(step) or operation.out_format
        return replace(step, nan=nan) if fmt == operation.out_format else step

    return change("nan-word", f"the NaN word is {nan:#x}", rewrite(rule))


# Signals: normalisation and rounding ------------------------------------------------------------------------

_ALL_BITS = 1 << 20
"""A number of bits below the round bit that exceeds every word."""


def signals(ins: Instruction) -> Iterator[Mutation]:
    """Changed signals of normalised sums, and of every step that rounds to a float format."""
    yield from _normalizing(ins)
    kinds = rounding_kinds(ins)
    formats = [format_of(step) for kind in kinds for step in ins.program.steps_of(kind)]
    bits = max((fmt.fraction_bits + 1 for fmt in formats if fmt is not None), default=0)

    def of_one(kind: type[Step]) -> Iterator[Mutation]:
        yield from _seen(bits)
        yield from _subnormal_results(bits)
        yield from _overflowing(ins, kind)
        yield from _ties(ins, kind)
        yield from _carries()
        yield from _after_additions(kind, bits)
        yield from _narrow_shifts(bits)

    yield from in_each(kinds, of_one, STEP_NAMES)
    yield from in_each(kinds, _exponent_fields, STEP_NAMES)


def rounding_kinds(ins: Instruction) -> list[type[Step]]:
    """The kinds of steps that round to a float format."""
    found = []
    for kind in kinds_of(ins, Multiply, Additions, Fma, Round):
        formats = [format_of(step) for step in ins.program.steps_of(kind)]
        if any(fmt is not None and fmt.is_float for fmt in formats):
            found.append(kind)
    return found


def _normalizing(ins: Instruction) -> Iterator[Mutation]:
    """The search for the leading one of a sum covers too few places."""
    a, b = ins.formats["a"], ins.formats["b"]
    if not kinds_of(ins, Normalize) or not (a.is_float and b.is_float):
        return
    for top in range(a.max_exponent + b.max_exponent, a.max_exponent + b.max_exponent + RANGES.extra):
        text = f"normalisation does not see the bits of a sum from 2^{top} up"
        yield signal("normalize", f"normalize-top-{top}", text, partial(_blind_above, top=top))


def _blind_above(s: NormalizeSignals, top: int) -> None:
    kept = low_bits(s.numbers.significand, np.maximum(top - s.numbers.lsb, 0))
    s.numbers = replace(s.numbers, significand=kept)


def _seen(bits: int) -> Iterator[Mutation]:
    """The cut bits that the rounding reads."""
    for places in range(2 * bits + 8):
        text = (
            f"sees {places} bits below the round bit, not all"
            if places
            else "sees the round bit alone, no sticky bit"
        )
        yield _rounding(f"rounding-sees-{places}", text, sets(seen=places), 1.05 + places / 1000)
    text = "rounds by the bits below the round bit alone: exactly a half is nothing to it"
    yield _rounding("round-bit-unseen", text, sets(round_bit=False))


def _ties(ins: Instruction, kind: type[Step]) -> Iterator[Mutation]:
    """The cut bits are exactly a half, and the last kept bit is ignored, or used with the wrong sense (away
    from zero is a mode of its own, of all steps at once)."""
    if not any(getattr(step, "rounding", "") == "nearest_even" for step in ins.program.steps_of(kind)):
        return
    rules = {"toward-zero": "toward zero", "to-odd": "to the odd neighbour"}
    rules |= {"away": "away from zero"} if len(rounding_kinds(ins)) > 1 else {}
    for rule, text in rules.items():
        said = f"rounds {text} what is cut at exactly a half"
        yield _rounding(f"ties-{rule}", said, partial(_break_ties, rule=rule), 1.0)


def _break_ties(s: RoundingSignals, rule: str) -> None:
    """Moves exact halves by half of their last place: down, or up if the rule says so."""
    cut = s.exponent - s.kept - s.lsb
    below = np.maximum(cut - 1, 0)
    tie = (cut >= 1) & (low_bits(s.significand, below) == 0)
    tie &= low_bits(s.significand, np.maximum(cut, 0)) != 0
    even = low_bits(s.significand, below + 2) == low_bits(s.significand, below + 1)
    up = even if rule == "to-odd" else np.full(even.shape, rule == "away")
    s.significand = np.where(tie, 2 * s.significand + np.where(up, 1, -1), s.significand)
    s.lsb = s.lsb - tie.astype(np.int64)


def _carries() -> Iterator[Mutation]:
    """A significand of ones that rounds up, in an adder that has no bit for its carry."""
    for slug, rule, text in (
        ("", "lost", "the fraction becomes 0 and the exponent stays"),
        ("-with-hidden-bit", "lost_with_hidden_bit", "it becomes 0, and adds no hidden bit to the exponent"),
        ("-ored", "ored", "it is ORed into the exponent field, not added: an odd one stays as it is"),
    ):
        said = f"loses the carry of a significand that rounds up to a power of two: {text}"
        yield _rounding(f"rounding-carry-lost{slug}", said, sets(carry=rule))


def _subnormal_results(bits: int) -> Iterator[Mutation]:
    for places in range(bits + 6):
        text = f"sees {places} bits below the round bit, not all, where the result is subnormal"
        rule = sets(seen=lambda s, n=places: np.where(s.leading < s.least, n, _ALL_BITS))
        yield _rounding(f"subnormal-sees-{places}", text, rule, 1.08 + places / 1000)
    for places in range(1, 2 * bits):
        text = f"shifts a subnormal result right by {places} places at most"
        rule = partial(_limit_subnormal, places=places)
        yield _rounding(f"subnormal-shift-limit-{places}", text, rule, 1.08 + places / 1000)
    text = "shifts a subnormal result right by one place too few"
    yield _rounding("subnormal-shift-one-less", text, partial(_shift_less, lost=False), 1.08)
    text = f"{text}, where a leading one gets lost"
    yield _rounding("subnormal-shift-one-less-lost", text, partial(_shift_less, lost=True), 1.08)
    text = "takes the least exponent one too high"
    yield _rounding("least-exponent-plus-1", text, sets(least=lambda s: s.least + 1))
    yield _rounding("subnormal-truncated", "does not round subnormal results but cuts them", _truncate)


def _limit_subnormal(s: RoundingSignals, places: int) -> None:
    below = s.least - s.leading
    s.lsb = s.lsb + np.where((s.significand != 0) & (below > places), below - places, 0).astype(np.int64)


def _shift_less(s: RoundingSignals, lost: bool) -> None:
    """Lost: a leading one that reaches the place of the hidden bit, which is not written."""
    subnormal = (s.significand != 0) & (s.leading < s.least)
    s.lsb = s.lsb + subnormal
    hidden = subnormal & (s.leading == s.least) & lost
    top = np.maximum(bit_length(s.significand) - 1, 0)
    s.significand = np.where(hidden, low_bits(s.significand, top), s.significand)


def _truncate(s: RoundingSignals) -> None:
    cut = np.maximum(s.least - s.kept - s.lsb, 0)
    s.significand = s.significand - np.where(s.leading < s.least, low_bits(s.significand, cut), 0)


def _overflowing(ins: Instruction, kind: type[Step]) -> Iterator[Mutation]:
    """The condition of an overflow, in modes in which the sign matters."""
    formats = [format_of(step) or ins.formats["d"] for step in ins.program.steps_of(kind)]
    if any(fmt.is_float and fmt.infinity is not None for fmt in formats):
        for slug, rule, text in (
            (
                "one-late",
                "late",
                "sees an overflow one exponent too late: the fraction stays with the exponent of infinity",
            ),
            (
                "wraps-at-infinity",
                "at_infinity",
                "detects only overflows at the exponent of infinity: the exponent wraps around",
            ),
            ("wraps-never", "never", "sees no overflow: the exponent wraps around"),
        ):
            yield _rounding(f"overflow-{slug}", text, sets(overflows=rule))
    # What an overflow gives depends on the rounding; another one than the step's may decide it.
    modes = {getattr(step, "rounding", "") for step in ins.program.steps_of(kind)}
    for mode in ("up", "down", "toward_zero", "nearest_even"):
        if mode not in modes:
            text = f"answers an overflow as if it rounded {mode.replace('_', ' ')}"
            yield _rounding(f"overflow-as-{mode.replace('_', '-')}", text, sets(overflow_mode=mode))


def _after_additions(kind: type[Step], bits: int) -> Iterator[Mutation]:
    """Normalisation after an addition with a part missing."""
    for places in range(4):
        text = f"sees {places} bits below the round bit, not all, where the sum carried"
        rule = sets(seen=lambda s, n=places: np.where(s.leading > s.maximum, n, _ALL_BITS))
        yield _rounding(f"carry-sees-{places}", text, rule)
    for places in range(1, bits + RANGES.extra):
        for apart in (False, True) if kind is not Round else (False,):
            of, suffix = (" of numbers of different exponents", "-apart") if apart else ("", "")
            text = f"shifts a difference{of} left by {places} places at most"
            rule = partial(_limit_left, places=places, distance=int(apart))
            weight = 1.1 + apart / 20 + places / 1000
            yield _rounding(f"left-shift-limit-{places}{suffix}", text, rule, weight)


def _limit_left(s: RoundingSignals, places: int, distance: int) -> None:
    """The exponent field matches the place where the leading one should be."""
    there = (s.distance >= distance) & (s.maximum - places >= s.least)
    s.assumed = there & (s.leading < s.maximum - places)
    s.least = np.where(there, np.maximum(s.least, s.maximum - places), s.least)


def _narrow_shifts(bits: int) -> Iterator[Mutation]:
    """The amount of the last left shift has a bit too few, or is limited; the exponent may still use the
    right amount."""
    widths = range(2, max(bits, 2).bit_length() + 2)
    for width in widths:
        for top in range(RANGES.headroom):
            above = f", counted from 2^{top} times the largest exponent" if top else ""
            for right in (False, True):
                text = f"normalises by the low {width} bits of the shift amount{above}"
                text += ", of which the exponent takes all" if right else ""
                start = f"-from-plus-{top}" if top else ""
                slug = f"normalize-modulo-{1 << width}{start}{'-exponent-right' * right}"
                wrap = lambda by, n=1 << width: by % n  # noqa: E731
                rule = partial(_shift_left, rule=wrap, top=top, exponent_right=right)
                yield _rounding(slug, text, rule, 1.12 + top / 100 + right / 100)
    for places in range(1, bits + RANGES.extra):
        for right in (False, True):
            text = f"normalises by {places} places at most" + (
                "; the exponent takes the whole amount" * right
            )
            limit = lambda by, n=places: np.minimum(by, n)  # noqa: E731
            rule = partial(_shift_left, rule=limit, top=0, exponent_right=right)
            slug = f"normalize-limit-{places}{'-exponent-right' * right}"
            yield _rounding(slug, text, rule, 1.13 + right / 100 + places / 1000)
    for width in widths[:-1]:
        text = f"shifts a subnormal result right by the low {width} bits of the amount"
        rule = partial(_wrap_subnormal_shift, places=1 << width)
        yield _rounding(f"subnormal-shift-modulo-{1 << width}", text, rule)


def _shift_left(s: RoundingSignals, rule: Callable[[Array], Array], top: int, exponent_right: bool) -> None:
    """Shifts by the changed amount: the hidden bit is read above the leading one."""
    first = s.maximum + top
    needed = first - np.maximum(s.leading, s.least)
    read = first - rule(np.maximum(needed, 0))
    short = (s.significand != 0) & (needed > 0) & (read > np.maximum(s.leading, s.least))
    s.assumed = short
    s.field_plus = np.where(short & exponent_right, np.maximum(s.leading, s.least) - read, 0)
    s.least = np.where(short, read, s.least)


def _wrap_subnormal_shift(s: RoundingSignals, places: int) -> None:
    below = s.least - s.leading
    deep = (s.significand != 0) & (below > 0)
    s.lsb = s.lsb + np.where(deep, below - below % places, 0).astype(np.int64)


# Signals: the code of the result ----------------------------------------------------------------------------


def _exponent_fields(kind: type[Step]) -> Iterator[Mutation]:
    """The exponent fields of subnormal results and of zeros, and signs."""
    text = "gives subnormal results the exponent field 1 instead of 0"
    yield _code("subnormal-exponent-one", text, partial(_exponent_one, there=None))
    text = "takes a result just below the least normal number as normal: its exponent wraps around"
    yield _code("top-subnormal-overflows", text, _overflow_top_subnormal)
    for by, sign, word in ((-1, "minus", "small"), (1, "plus", "large")):
        text = f"gives normal results an exponent field that is one too {word}"
        yield _code(f"result-exponent-{sign}-1", text, partial(_move_exponent, by=by))
    for rule, text in (("positive", "the sign +"), ("negated", "the other sign")):
        said = f"gives every result {text}, earlier steps' too"
        yield _code(f"rounded-sign-{rule}", said, partial(_take_sign, negated=rule == "negated"))
    if kind is Multiply:
        return
    text = "gives subnormal differences the exponent field 1 instead of 0"
    rule_of = lambda s: _exponent_one(s, s.rounding.subtraction)  # noqa: E731
    yield _code("subnormal-difference-exponent-one", text, rule_of)
    for extra in range(RANGES.extra):
        text = (
            "does not clear the exponent field of a difference without a leading one: neither of subnormal "
            f"results nor of zeros ({extra} bits below the last place)"
        )
        yield _code(f"difference-exponent-kept-{extra}", text, partial(_keep_exponent, extra=extra))


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
    """For the close path of an adder, in which exponents differ by at most one."""
    _exponent_one(s, s.rounding.subtraction & (s.rounding.distance <= 1))
    fmt, rounding = s.rounding.fmt, s.rounding
    zero = (rounding.significand == 0) & rounding.subtraction
    field = np.maximum(rounding.maximum - (fmt.fraction_bits + 1 + extra) + fmt.bias, 1)
    kept = field.astype(object) << (fmt.fraction_bits + fmt.ignored_low)
    s.code = np.where(zero, kept, s.code)
