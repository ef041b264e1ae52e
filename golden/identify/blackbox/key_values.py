"""The values that one key of a step is tried with.

Words and flags have all their values. Only integers, formats and words of NaNs need values to
try, which depend on the unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, permutations, product
from typing import Any

from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.moves import Hints
from golden.number.formats import Format, get_format
from golden.number.frozen import replace
from golden.program import keys
from golden.program.keys import Candidate as MaximumOf
from golden.program.keys import (
    Candidates,
    Causes,
    Choice,
    Flag,
    FormatName,
    Grouping,
    Integer,
    Key,
    Modes,
    Names,
    Roundings,
    Rules,
    Widths,
    Word,
)
from golden.program.reading import WITH_PAYLOAD
from golden.program.steps import Align, Multiply, Step, format_of

NEAR = (-3, -2, -1, 1, 2, 3)
"""Distances of the values that are near the present one."""
_WINDOWS = (0, *range(4, 50, 3))
"""Values of `window` that are tried."""
_FLOORS = range(-200, 64)
"""Floors of an alignment that leaves a register out. All are tried: a left-out register alone stays unshifted
there, so that each floor has results of its own."""
_SPREAD = 6
"""Step between the values of a wide search: values between are near one of them, and help where it helps."""


def meaningless_beside(step: Step, name: str, value: Any) -> dict[str, Any]:
    """The default values of the keys that have no meaning next to this value of another key."""
    if isinstance(step, Align) and name in ("maximum", "exponent") and value not in (None, ()):
        rest = {"maximum": (), "exponent": None, "floor": None, "shift_limit": None, "left_out": ()}
        return {key: none for key, none in rest.items() if key != name} | {"zeros": "ignored"}
    if isinstance(step, Align) and name == "floor" and value is not None:
        return {"maximum": (), "exponent": None}
    if name == "format" and hasattr(step, "nan"):  # the word of a NaN is one of the format
        return {"nan": None}
    return {}


def values_of(one: Candidate, step: Step, name: str, key: Key, hints: Hints) -> Iterable[Any]:
    """Values to try for one key of a step."""
    now = getattr(step, name)
    match key:
        # Words and flags: all of them.
        case Choice(words=words):
            return words
        case Flag():
            return (True, False)
        # Integers: near the present one and at the ends of the formats; where a register is left out every
        # floor, because each has results of its own.
        case Integer():
            whole = name == "floor" and isinstance(step, Align) and bool(step.left_out) and hints.wide
            # The default, if there is one: mostly none.
            none = [getattr(type(step), name)] if hasattr(type(step), name) else []
            return [*none, *_integers(one, name, now, key, hints), *(_FLOORS if whole else ())]
        # Tables by register: one value for all, or another for one.
        case Widths(for_all=True):
            return _widths(now, hints)
        case Roundings():
            return _roundings(step.of, now)
        case Widths():
            return window_values(one, step, now, name)
        case Rules(vocabulary=vocabulary):
            return [(), *(((register, word),) for register in step.of for word in vocabulary.words)]
        # The format of d is known; another one only for intermediate results.
        case FormatName():
            fixed = getattr(step, "to", "") == "d"
            return (
                () if fixed else [*result_formats_tried(one), *([None] if isinstance(step, Multiply) else [])]
            )
        # Words of NaNs: those that the box answered, as far as the format holds them.
        case Word():
            return (None, *(word for word in hints.words if word < 1 << _word_bits(one, step)))
        case Grouping():
            return groupings(one)
        # Orders of registers and tables of causes: one entry more, less or elsewhere.
        case Names(allowed=allowed):
            return [()] + [
                order for size in range(1, len(allowed) + 1) for order in permutations(allowed, size)
            ]
        case Causes(causes=causes):
            return _causes(now, causes if hints.wide else (), hints.words)
        case Candidates(most=most):
            return _maxima(step.of, now, most if hints.wide else 0)
        case _:
            return ()


def _roundings(of: tuple[str, ...], now: Modes) -> Iterator[Modes]:
    """Every rounding for all registers, and for each of several alone."""
    yield from keys.ROUNDING.words
    for only in of if len(of) > 1 else ():
        for mode in keys.ROUNDING.words:
            yield keys.one_or_each(
                tuple((name, mode if name == only else was) for name, was in keys.modes_of(now, of))
            )


def _causes(
    now: tuple[tuple[str, int | None], ...], causes: Sequence[str], words: Sequence[int]
) -> Iterator[tuple[tuple[str, int | None], ...]]:
    """One cause less, with another word, at another priority, or one more at any priority: one between two
    others has an effect that neither end has."""

    def given(cause: str) -> Iterator[tuple[str, int | None]]:
        yield from ((cause, word) for word in (*([None] if cause in WITH_PAYLOAD else []), *words))

    for place, (cause, _) in enumerate(now):
        rest = (*now[:place], *now[place + 1 :])
        yield rest
        yield from ((*now[:place], one, *now[place + 1 :]) for one in given(cause))
        yield from ((*rest[:to], now[place], *rest[to:]) for to in range(place))
    for cause in causes:
        if cause not in dict(now):
            for one in given(cause):
                yield from ((*now[:to], one, *now[to:]) for to in range(len(now), -1, -1))


def _maxima(of: tuple[str, ...], now: tuple[MaximumOf, ...], most: int) -> Iterator[tuple[MaximumOf, ...]]:
    """One candidate of the largest exponent removed, added, replaced or split."""
    yield ()
    for place, one in enumerate(now):
        yield (*now[:place], *now[place + 1 :])
        near = (replace(one, plus=one.plus + step) for step in NEAR)
        other = replace(one, leading=not one.leading)
        lowest = (replace(one, least=least) for least in (None, *range(-160, 20, 4)))
        ends = () if one.least is None else (replace(one, least=one.least + step) for step in NEAR)
        yield from ((*now[:place], new, *now[place + 1 :]) for new in (*near, other, *lowest, *ends))
        for least in (None, -126, -14) if len(one.of) > 1 else ():
            split = (replace(one, of=(name,), least=least if name == "c" else one.least) for name in one.of)
            yield (*now[:place], *split, *now[place + 1 :])
    some = [names for size in range(1, len(of) + 1) for names in combinations(of, size)]
    if len(now) < most:
        for names, leading, plus in product(some, (False, True), range(-4, 4)):
            yield (*now, MaximumOf(names, leading, plus, None))
    if not now and most and len(of) < 3:  # two that mean nothing without each other
        yield from combinations(
            (MaximumOf(*one, None) for one in product(some, (False, True), range(-2, 1))), 2
        )


def _word_bits(one: Candidate, step: Step) -> int:
    return (format_of(step) or one.formats["d"]).bits


def result_formats_tried(one: Candidate) -> list[Format]:
    """Formats that an earlier result may have."""
    known = [one.formats["d"], one.formats["c"], *map(get_format, ("f32", "f16", "bf16", "f64"))]
    return [fmt for fmt in dict.fromkeys(known) if fmt.is_float == one.formats["d"].is_float and fmt.is_float]


def _integers(one: Candidate, name: str, now: int | None, key: Integer, hints: Hints) -> list[int]:
    d = one.formats["d"]
    least = d.min_exponent if d.is_float else 0
    near = [] if now is None else [now + step for step in NEAR]
    places = 12  # at which a part can begin or end: those of formats of 16 bits and TF32
    floors = [*range(least - 40, least + 4), *_FLOORS[:: _SPREAD if now is None else 400]]
    wide: dict[str, Iterable[int]] = {
        "floor": floors,
        "underflow_exponent": [*floors, *range(least, 64, _SPREAD)],
        # A part begins at the hidden bit or below it, and has at most the bits of a significand.
        "first": range(places),
        "bits": range(1, places + 1),
        "min_exponent": [*range(least - 4, least + 4), -126, -14, *range(-150, 64, _SPREAD)],
        "overflow_exponent": [d.max_exponent + 1, 128, 16, 1024, *range(-42, 150, _SPREAD)],
        "exponent": [0, *range(-42, 43, _SPREAD)],
        "width": range(2, 48),
        "shift_limit": range(0, 73),
        "sticky_gap": range(0, 5),
        "result_fraction_bits": range(max(d.fraction_bits - 24, 0), d.fraction_bits),
    }
    tried = [*near, *(wide.get(name, ()) if hints.wide else ())]
    return [value for value in dict.fromkeys(tried) if key.low <= value <= key.high]


def _widths(now: tuple[tuple[str, int], ...], hints: Hints) -> Iterator[tuple[tuple[str, int], ...]]:
    """All registers with one width, and each register with another."""
    most = 60  # fraction bits
    span = range(most + 1) if hints.wide else ()
    values = sorted({*span, *(bits + step for _, bits in now for step in (*NEAR, 0))})
    values = [value for value in values if 0 <= value <= most]
    for value in values:
        yield tuple((register, value) for register, _ in now)
    for index in range(len(now) if len(now) > 1 else 0):
        around = {now[index][1] + step for step in NEAR}
        for value in (value for value in values if value in around or value % 3 == 0):
            yield tuple((r, value if i == index else bits) for i, (r, bits) in enumerate(now))


def window_values(
    one: Candidate, step: Step, now: tuple[tuple[str, int], ...], name: str
) -> Iterator[tuple[tuple[str, int], ...]]:
    """No window (or spared numbers), or one of another register."""
    yield ()
    least = {fmt.min_exponent for fmt in one.formats.values() if fmt.is_float} if name == "spared" else set()
    values = _WINDOWS if name == "window" else (*sorted(least), *range(-140, 10, _SPREAD))
    for register in step.of:
        near = [dict(now)[register] + one for one in NEAR] if register in dict(now) else []
        for value in (value for value in (*near, *values) if name != "window" or value >= 0):
            yield ((register, value),)


def groupings(one: Candidate) -> Iterator[tuple[str, int] | None]:
    k = one.takes.stored_k
    yield None
    # Of more products only groups of equal size are tried.
    most = 16
    for size in range(2, k):
        if k <= most or k % size == 0:
            yield "contiguous", size
            yield "interleaved", size
