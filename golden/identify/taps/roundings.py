"""Faults of normalisation and rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from golden.identify.datapath.arrays import Array, bit_length, low_bits
from golden.identify.datapath.signals import (
    NormalizeSignals,
    RoundingSignals,
    Tap,
)
from golden.identify.taps.steps import (
    in_each,
    kinds_of,
    rounding_kinds,
)
from golden.instruction import Instruction
from golden.program.steps import (
    Normalize,
    Round,
    Step,
    format_of,
)


def faults(ins: Instruction) -> Iterator[Tap]:
    """Of normalised sums, and of every step that rounds to a float format."""
    yield from _normalizing(ins)
    kinds = rounding_kinds(ins)
    formats = [format_of(step) for kind in kinds for step in ins.program.steps_of(kind)]
    bits = max((fmt.fraction_bits + 1 for fmt in formats if fmt is not None), default=0)

    def of_one(kind: type[Step]) -> Iterator[Tap]:
        yield from (
            *_seen(bits),
            *_subnormal_results(bits),
            *_modes(ins, kind),
            *_ties(ins, kind),
            *_carries(),
        )
        yield from _after_additions(kind, bits)
        yield from _narrow_shifts(bits)

    yield from in_each(kinds, of_one)


def _normalizing(ins: Instruction) -> Iterator[Tap]:
    """The leading one of a sum is looked for in too few places."""
    a, b = ins.formats["a"], ins.formats["b"]
    if not kinds_of(ins, Normalize) or not (a.is_float and b.is_float):
        return
    largest = a.max_exponent + b.max_exponent
    for extra in range(4):
        top = largest + extra
        yield Tap(
            f"normalize-top-{top}",
            f"normalisation does not see the bits of a sum from 2^{top} up",
            "normalize",
            lambda s, n=top: _blind_above(s, n),
        )


def _blind_above(s: NormalizeSignals, top: int) -> None:
    numbers = s.numbers
    kept = low_bits(numbers.significand, np.maximum(top - numbers.lsb, 0))
    s.numbers = replace(numbers, significand=kept)


def _seen(bits: int) -> Iterator[Tap]:
    """What the rounding sees of the bits that are cut."""
    for places in range(2 * bits + 8):
        text = (
            "sees the round bit alone, no sticky bit"
            if not places
            else f"sees {places} bits below the round bit, not all"
        )
        yield Tap(
            f"rounding-sees-{places}",
            text,
            "rounding",
            lambda s, n=places: setattr(s, "seen", n + np.zeros_like(s.lsb)),
            weight=1.05 + places / 1000,
        )
    yield Tap(
        "round-bit-unseen",
        "rounds by the bits below the round bit alone: exactly a half is nothing to it",
        "rounding",
        lambda s: setattr(s, "round_bit", False),
    )


def _ties(ins: Instruction, kind: type[Step]) -> Iterator[Tap]:
    """Where the cut bits are exactly a half, and the last kept bit is not asked, or asked the wrong way round
    (away from zero is a mode of its own, of all steps at once)."""
    if not any(getattr(step, "rounding", "") == "nearest_even" for step in ins.program.steps_of(kind)):
        return
    rules = {"toward-zero": "toward zero", "to-odd": "to the odd neighbour"}
    rules |= {"away": "away from zero"} if len(rounding_kinds(ins)) > 1 else {}
    for rule, text in rules.items():
        yield Tap(
            f"ties-{rule}",
            f"rounds {text} what is cut at exactly a half",
            "rounding",
            lambda s, r=rule: _break_ties(s, r),
            weight=1.0,
        )


def _break_ties(s: RoundingSignals, rule: str) -> None:
    """Moves exact halves by a half of their last place: down, or up where the rule wants it."""
    cut = s.exponent - s.kept - s.lsb
    below = np.maximum(cut - 1, 0)
    tie = (cut >= 1) & (low_bits(s.significand, below) == 0)
    tie &= low_bits(s.significand, np.maximum(cut, 0)) != 0
    even = low_bits(s.significand, below + 2) == low_bits(s.significand, below + 1)
    up = even if rule == "to-odd" else np.full(even.shape, rule == "away")
    moved = 2 * s.significand + np.where(up, 1, -1)
    s.significand = np.where(tie, moved, s.significand)
    s.lsb = s.lsb - tie.astype(np.int64)


def _carries() -> Iterator[Tap]:
    """A significand of ones that rounds up, in an adder that has no bit for its carry."""
    for slug, rule, text in (
        ("", "lost", "the fraction becomes 0 and the exponent stays"),
        ("-with-hidden-bit", "lost_with_hidden_bit", "it becomes 0, and adds no hidden bit to the exponent"),
        ("-ored", "ored", "it is ORed into the exponent field, not added: an odd one stays as it is"),
    ):
        yield Tap(
            f"rounding-carry-lost{slug}",
            f"loses the carry of a significand that rounds up to a power of two: {text}",
            "rounding",
            lambda s, r=rule: setattr(s, "carry", r),
        )


def _subnormal_results(bits: int) -> Iterator[Tap]:
    for places in range(bits + 6):
        yield Tap(
            f"subnormal-sees-{places}",
            f"sees {places} bits below the round bit, not all, where the result is subnormal",
            "rounding",
            lambda s, n=places: setattr(s, "seen", np.where(s.leading < s.least, n, 1 << 20)),
            weight=1.08 + places / 1000,
        )
    for places in range(1, 2 * bits):
        yield Tap(
            f"subnormal-shift-limit-{places}",
            f"shifts a subnormal result right by {places} places at most",
            "rounding",
            lambda s, n=places: _limit_subnormal(s, n),
            weight=1.08 + places / 1000,
        )
    for lost in (False, True):
        yield Tap(
            f"subnormal-shift-one-less{'-lost' if lost else ''}",
            "shifts a subnormal result right by one place too few"
            + (", where a leading one gets lost" if lost else ""),
            "rounding",
            lambda s, x=lost: _shift_less(s, x),
            weight=1.08,
        )
    yield Tap("least-exponent-plus-1", "takes the least exponent one too high", "rounding", _raise_least)
    yield Tap(
        "subnormal-truncated",
        "does not round subnormal results but cuts them",
        "rounding",
        _truncate,
    )


def _limit_subnormal(s: RoundingSignals, places: int) -> None:
    below = s.least - s.leading
    s.lsb = s.lsb + np.where((s.significand != 0) & (below > places), below - places, 0).astype(np.int64)


def _shift_less(s: RoundingSignals, lost: bool) -> None:
    """Lost: where the leading one comes to the place of the hidden bit, which is not written."""
    subnormal = (s.significand != 0) & (s.leading < s.least)
    s.lsb = s.lsb + subnormal
    hidden = subnormal & (s.leading == s.least) & lost
    top = np.maximum(bit_length(s.significand) - 1, 0)
    s.significand = np.where(hidden, low_bits(s.significand, top), s.significand)


def _raise_least(s: RoundingSignals) -> None:
    s.least = s.least + 1


def _truncate(s: RoundingSignals) -> None:
    cut = np.maximum(s.least - s.kept - s.lsb, 0)
    s.significand = s.significand - np.where(s.leading < s.least, low_bits(s.significand, cut), 0)


def _modes(ins: Instruction, kind: type[Step]) -> Iterator[Tap]:
    """Which results overflow, and what an overflow is, in modes in which the sign matters."""
    formats = [format_of(step) or ins.formats["d"] for step in ins.program.steps_of(kind)]
    if any(fmt.is_float and fmt.infinity is not None for fmt in formats):
        yield Tap(
            "overflow-one-late",
            "sees an overflow one exponent too late, and leaves the fraction beside the exponent of infinity",
            "rounding",
            lambda s: setattr(s, "overflows", "late"),
        )
        for slug, what in (("at_infinity", "those at the exponent of infinity alone"), ("never", "none")):
            yield Tap(
                f"overflow-wraps-{slug.replace('_', '-')}",
                f"sees of overflows {what}: the exponent wraps around",
                "rounding",
                lambda s, at=slug: setattr(s, "overflows", at),
            )
    modes = {getattr(step, "rounding", "") for step in ins.program.steps_of(kind)}
    for mode in ("up", "down", "toward_zero", "nearest_even"):
        if mode not in modes:
            name = mode.replace("_", "-")
            yield Tap(
                f"overflow-as-{name}",
                f"answers an overflow as if it rounded {mode.replace('_', ' ')}",
                "rounding",
                lambda s, m=mode: setattr(s, "overflow_mode", m),
            )


def _after_additions(kind: type[Step], bits: int) -> Iterator[Tap]:
    """Normalisation behind an addition, and what is forgotten there."""
    for places in range(4):
        yield Tap(
            f"carry-sees-{places}",
            f"sees {places} bits below the round bit, not all, where the sum carried",
            "rounding",
            lambda s, n=places: setattr(s, "seen", np.where(s.leading > s.maximum, n, 1 << 20)),
        )
    for places in range(1, bits + 4):
        for apart in (False, True) if kind is not Round else (False,):
            of, suffix = (" of numbers of different exponents", "-apart") if apart else ("", "")
            yield Tap(
                f"left-shift-limit-{places}{suffix}",
                f"shifts a difference{of} left by {places} places at most",
                "rounding",
                lambda s, n=places, d=apart: _limit_left(s, n, int(d)),
                weight=1.1 + apart / 20 + places / 1000,
            )


def _limit_left(s: RoundingSignals, places: int, distance: int) -> None:
    """The exponent field is that of the place where the leading one should be."""
    there = (s.distance >= distance) & (s.maximum - places >= s.least)
    s.assumed = there & (s.leading < s.maximum - places)
    s.least = np.where(there, np.maximum(s.least, s.maximum - places), s.least)


_HEADROOM = 3
"""Places above the largest exponent at which the register of a sum may begin."""


def _narrow_shifts(bits: int) -> Iterator[Tap]:
    """The amount of the last shift to the left has a bit too few, or is limited, and the exponent may take
    the amount as it should be."""
    for width in range(2, max(bits, 2).bit_length() + 2):
        for top in range(_HEADROOM):
            for right in (False, True):
                yield Tap(
                    f"normalize-modulo-{1 << width}{f'-from-plus-{top}' * bool(top)}"
                    f"{'-exponent-right' * right}",
                    f"normalises by the low {width} bits of the shift amount"
                    + (f", counted from 2^{top} times the largest exponent" if top else "")
                    + (", of which the exponent takes all" if right else ""),
                    "rounding",
                    lambda s, n=1 << width, t=top, r=right: _shift_left(s, lambda by: by % n, t, r),
                    weight=1.12 + top / 100 + right / 100,
                )
    for places in range(1, bits + 4):
        for right in (False, True):
            yield Tap(
                f"normalize-limit-{places}{'-exponent-right' * right}",
                f"normalises by {places} places at most"
                + ("; the exponent takes the whole amount" if right else ""),
                "rounding",
                lambda s, n=places, r=right: _shift_left(s, lambda by: np.minimum(by, n), 0, r),
                weight=1.13 + right / 100 + places / 1000,
            )
    for width in range(2, max(bits, 2).bit_length() + 1):
        yield Tap(
            f"subnormal-shift-modulo-{1 << width}",
            f"shifts a subnormal result right by the low {width} bits of the amount",
            "rounding",
            lambda s, n=1 << width: _wrap_subnormal_shift(s, n),
            weight=1.1,
        )


def _shift_left(s: RoundingSignals, rule: Callable[[Array], Array], top: int, exponent_right: bool) -> None:
    """Shifts by what the rule makes of the amount: the hidden bit is read above the leading one."""
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
