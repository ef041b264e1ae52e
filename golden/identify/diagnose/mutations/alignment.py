"""Faults in the alignment of terms: widths, the rounding of cut bits, sticky bits, the largest exponent, and
the shifters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from golden.identify.diagnose.datapath.signals import ShiftSignals
from golden.identify.diagnose.mutations.mutation import (
    Apply,
    Mutation,
    change,
    fields,
    in_each,
    kinds_of,
    sets,
    signal,
    steps_of,
    without,
)
from golden.identify.diagnose.mutations.words import MODE_NAMES, STEP_NAMES, signed_slug
from golden.identify.diagnose.policy import RANGES
from golden.model.instruction import Instruction
from golden.number.rounding import MODES
from golden.program.keys import Candidate, Modes, modes_of, one_or_each
from golden.program.steps import (
    MAX_FRACTION_BITS,
    Additions,
    Align,
    Fma,
    HiddenBit,
    Multiply,
    Normalize,
    Step,
    Sum,
    format_of,
)

_shift = partial(signal, "shifts")

# The program ------------------------------------------------------------------------------------------------


def program(ins: Instruction) -> Iterator[Mutation]:
    """Changes of the steps `align` and `normalize`, and of what they are given."""
    yield from _widths(ins)
    yield from _roundings(ins)
    if kinds_of(ins, Align):
        yield from _sticky()
        yield from _maximum(ins)
        yield from _candidates(ins)
        yield from _shift_amounts(ins)
    if kinds_of(ins, HiddenBit):
        yield change("hidden-bit-left-out", "subnormal numbers get no hidden bit", without(HiddenBit))


def _widths(ins: Instruction) -> Iterator[Mutation]:
    """Fraction bits after alignment and normalisation, a few more or less."""
    aligned = {name: bits for step in steps_of(ins, Align) for name, bits in step.fraction_bits}
    main = {name: bits for name, bits in aligned.items() if name != "dot" or len(aligned) == 1}
    normal = {name: bits for step in steps_of(ins, Normalize) for name, bits in step.fraction_bits}
    for delta in (-1, 1, -2, 2, -3, 3, -4, 4):
        weight = 1 + abs(delta) / 20
        if main:
            base = next(iter(main.values()))
            yield _width(Align, tuple(main), "", f"F = {base + delta} instead of {base}", delta, weight)
        for name in aligned if len(aligned) > 1 else ():
            bits = aligned[name]
            if name == "dot" or len(set(aligned.values())) == 1:
                text = f"{bits + delta} fraction bits instead of {bits} for {name}"
                yield _width(Align, (name,), f"{name}-", text, delta, weight + 0.2)
        for name, bits in normal.items():
            text = f"{bits + delta} fraction bits instead of {bits} in the normalised {name}"
            yield _width(Normalize, (name,), "sum-", text, delta, weight + 0.1)


def _width(
    kind: type[Step], names: tuple[str, ...], prefix: str, text: str, delta: int, weight: float
) -> Mutation:
    def wider(step: Align | Normalize) -> tuple[tuple[str, int], ...]:
        return tuple(
            (name, min(max(bits + delta, 0), MAX_FRACTION_BITS) if name in names else bits)
            for name, bits in step.fraction_bits
        )

    slug = f"{prefix}fraction-bits-{'plus' if delta > 0 else 'minus'}-{abs(delta)}"
    return change(slug, text, fields(kind, fraction_bits=wider), weight)


def _roundings(ins: Instruction) -> Iterator[Mutation]:
    cuts = steps_of(ins, Align)
    for mode in MODES:
        slug, name = mode.replace("_", "-"), MODE_NAMES[mode]
        if cuts:
            text = f"alignment rounds the cut bits {name} instead of {_mode_names(cuts[0])}"
            yield change(f"align-{slug}", text, fields(Align, rounding=mode), 1.1)
        for number, cut in enumerate(cuts if len(cuts) > 1 else (), 1):
            was = _mode_names(cut)
            text = f"alignment {number} rounds the cut bits {name} instead of {was}"
            apply = fields(Align, when=partial(_same_terms, cut), rounding=mode)
            yield change(f"align-{number}-{slug}", text, apply, 1.2)
        yield from _roundings_of_one(cuts, mode)
        if kinds_of(ins, Normalize):
            text = f"the normalised sum is rounded {name}"
            yield change(f"normalize-{slug}", text, fields(Normalize, rounding=mode), 1.2)


def _roundings_of_one(cuts: Sequence[Align], mode: str) -> Iterator[Mutation]:
    """One register of an alignment of several is rounded in another way."""
    for number, cut in enumerate(cuts, 1):
        for name in cut.of if len(cut.of) > 1 else ():
            which = f"alignment {number}" if len(cuts) > 1 else "alignment"
            text = f"{which} rounds the cut bits of {name} {MODE_NAMES[mode]}"
            slug = f"align-{number}-{name}-{mode.replace('_', '-')}"
            apply = fields(Align, when=partial(_same_terms, cut), rounding=partial(_with_mode, name, mode))
            yield change(slug, text, apply, 1.3)


def _with_mode(only: str, mode: str, step: Align) -> Modes:
    return one_or_each(
        tuple((name, mode if name == only else was) for name, was in modes_of(step.rounding, step.of))
    )


def _mode_names(step: Align) -> str:
    """How an alignment rounds, register by register where they differ."""
    if isinstance(step.rounding, str):
        return MODE_NAMES[step.rounding]
    return " and ".join(f"{MODE_NAMES[mode]} ({name})" for name, mode in step.rounding)


def _same_terms(one: Align, other: Align) -> bool:
    return (one.of, one.group) == (other.of, other.group)


def _sticky() -> Iterator[Mutation]:
    text = "a sticky bit of each term, added or subtracted with it"
    yield change("sticky-added", text, fields(Align, cut="sticky_added"))
    text = "one sticky bit for all terms, ORed, below the sum"
    yield change("sticky-or", text, fields(Align, cut="sticky_or"))
    zeros = lambda s: "ignored" if s.zeros == "sticky" else s.zeros  # noqa: E731
    removed = fields(Align, cut="dropped", sticky_gap=0, zeros=zeros)
    yield change("sticky-removed", "no sticky bit", removed)
    for gap in range(1, 5):
        bits = "bit" if gap == 1 else f"{gap} bits"
        text = f"a sticky bit that does not see the {bits} right below the kept ones"
        yield change(f"sticky-gap-{gap}", text, fields(Align, when=_has_sticky, sticky_gap=gap), 1 + gap / 20)
    apply = fields(Align, when=_has_sticky, zeros="sticky")
    yield change("zeros-in-sticky", "zero operands set the sticky bit", apply)


def _has_sticky(step: Align) -> bool:
    return step.cut != "dropped"


def _maximum(ins: Instruction) -> Iterator[Mutation]:
    """What takes part in the maximum exponent: floors, zeros, c, cancelled groups, normalised products."""
    floors = [step.floor for step in steps_of(ins, Align) if step.floor is not None]
    least = ins.formats["d"].min_exponent if ins.formats["d"].is_float else 0
    was = f" instead of {floors[0]}" if floors else ""
    for floor in range(least, least - RANGES.floors, -1):
        apply = fields(Align, when=lambda s: "c" in s.of or s.floor is not None, floor=floor)
        weight = 1.0 if floor == least else 1.1
        yield change(f"floor-{signed_slug(floor)}", f"exponent floor {floor}{was}", apply, weight)
    yield change("floor-none", "no exponent floor", fields(Align, floor=None))
    yield change("zeros-in-maximum", "zeros enter the maximum exponent", fields(Align, zeros="maximum"))
    for rule in ("dropped", "unshifted"):
        text = f"c is left out of the maximum exponent ({rule} where it lies above)"
        apply = fields(Align, when=lambda s: "c" in s.of and len(s.of) > 1, left_out=(("c", rule),))
        yield change(f"c-left-out-{rule}", text, apply)
    text = "a group that cancels to zero loses its exponent"
    apply = fields(Sum, when=lambda s: s.to != "total", cancelled="zero")
    yield change("cancelled-loses-exponent", text, apply)
    apply = fields(Multiply, when=lambda s: s.operation == "product", normalize=True)
    yield change("product-normalized", "products are normalised before alignment", apply)
    text = "products are not normalised before alignment"
    yield change("product-not-normalized", text, fields(Multiply, normalize=False))


def _candidates(ins: Instruction) -> Iterator[Mutation]:
    """Units that list the candidates of their maximum, that spare c, that add in one's complement."""
    for step in steps_of(ins, Align):
        for i, one in enumerate(step.maximum):
            name = f"{'leading ones' if one.leading else 'exponents'} of {' and '.join(one.of)}"
            for by in (-1, 1):
                moved = replace(one, plus=one.plus + by)
                text = f"the {name} enter the maximum with {moved.plus:+d} (not {one.plus:+d})"
                slug = f"candidate-{i + 1}-{'minus' if by < 0 else 'plus'}-1"
                yield change(slug, text, _with_candidate(step, i, (moved,)), 1.1)
            if len(step.maximum) > 1:
                text = f"the {name} do not enter the maximum"
                yield change(f"candidate-{i + 1}-left-out", text, _with_candidate(step, i, ()), 1.1)
    if any(step.spared for step in steps_of(ins, Align)):
        text = "negative numbers below the last bit kept are rounded like others"
        yield change("none-spared", text, fields(Align, spared=()))
    if any(step.complement != "none" for step in steps_of(ins, Sum)):
        text = "terms are subtracted in two's complement"
        yield change("complement-none", text, fields(Sum, complement="none"))


def _with_candidate(step: Align, index: int, new: tuple[Candidate, ...]) -> Apply:
    """Replaces one candidate of `step` by others."""
    maximum = (*step.maximum[:index], *new, *step.maximum[index + 1 :])
    return fields(Align, when=lambda s: s.maximum == step.maximum, maximum=maximum)


def _shift_amounts(ins: Instruction) -> Iterator[Mutation]:
    """Shifters that stop short, and windows below which c is dropped."""
    aligned = [bits for step in steps_of(ins, Align) for _, bits in step.fraction_bits]
    low, high = min(aligned), max(aligned)
    for limit in sorted({*range(2 * high + 1), 31, 63}):
        text = f"shifts of more than {limit} count as {limit}"
        yield change(f"shift-limit-{limit}", text, fields(Align, shift_limit=limit), 1.1)
    windows = [window for step in steps_of(ins, Align) for _, window in step.window]
    near = {w + d for w in windows for d in (-2, -1, 1, 2)} if windows else set(range(low - 1, low + 4))
    was = f" (not {windows[0]})" if windows else ""
    for window in sorted(near):
        text = f"c more than {window} below the maximum exponent counts as zero{was}"
        apply = fields(Align, when=lambda s: "c" in s.of, window=(("c", window),))
        yield change(f"window-{window}", text, apply, 1.1)
    yield change("window-none", "c is never too small to count", fields(Align, window=()))


# The signals of the shifters --------------------------------------------------------------------------------


def signals(ins: Instruction) -> Iterator[Mutation]:
    """Shift amounts, what is left of far terms, and terms that the maximum or a sticky bit does not see."""
    kinds = kinds_of(ins, Align, Additions, Fma)
    if not kinds or not ins.formats["d"].is_float:
        return
    where, precision = " and ".join(STEP_NAMES[kind] for kind in kinds), _shift_bits(ins)
    for bits in range(3, 9):
        text = f"{where} takes the low {bits} bits of the shift amount: a term {1 << bits} places down stays"
        rule = sets(shift=lambda s, n=1 << bits: s.shift % n)
        yield _shift(f"shift-modulo-{1 << bits}", text, rule, 1.05)
    for places in range(max(precision - 6, 1), 2 * precision + RANGES.beyond):
        text = f"{where} takes a term {places} or more places down as nothing but a sticky bit"
        rule = sets(jammed=lambda s, n=places: s.jammed | (s.shift >= n))
        yield _shift(f"shift-jammed-from-{places}", text, rule, 1.05)
    for by, word in ((-1, "less"), (1, "more")):
        text = f"{where} shifts every term that moves by one place {word}"
        rule = sets(shift=lambda s, n=by: np.where(s.shift > 0, s.shift + n, s.shift))
        yield _shift(f"shift-one-{word}", text, rule)
    for one in in_each(kinds, partial(_limited, precision), STEP_NAMES):
        if one.of != (Align,):  # there the program has `shift_limit`
            yield one
    if Align in kinds:
        yield from _words(precision)
        yield from _left_out(ins)
        yield from _cuts_unseen(ins)
    if Additions in kinds or Fma in kinds:
        yield from _lost_bits(ins, precision)
    yield from in_each(kinds_of(ins, Additions, Fma), partial(_ored_behind, precision), STEP_NAMES)


def _limited(precision: int, kind: type[Step]) -> Iterator[Mutation]:
    for limit in range(1, 2 * precision + RANGES.beyond):
        text = f"shifts a term that is more than {limit} places down by {limit}"
        yield _shift(f"shift-limit-{limit}", text, sets(shift=lambda s, n=limit: np.minimum(s.shift, n)))


def _ored_behind(precision: int, kind: type[Step]) -> Iterator[Mutation]:
    """A sticky bit that does not take part in the addition: with different signs it belongs to the
    subtrahend."""
    for places in range(precision, precision + 6):
        text = (
            f"has an ORed sticky bit after the sum for what lies more than {places} places below the "
            "largest exponent, where it belongs to the term that is added or subtracted"
        )
        rule = sets(lost_below=lambda s, n=places: np.full_like(s.maximum, n), or_below=True)
        yield _shift(f"sticky-or-{places}", text, rule)


def _shift_bits(ins: Instruction) -> int:
    """Fraction bits that the shifts keep: F, or the fraction bits of the format that additions round to."""
    aligned = [bits for step in ins.program.steps_of(Align) for _, bits in step.fraction_bits]
    formats = [format_of(s) for kind in (Additions, Fma) for s in ins.program.steps_of(kind)]
    return max([*aligned, *(fmt.fraction_bits for fmt in formats if fmt is not None)])


def _words(precision: int) -> Iterator[Mutation]:
    """Negative terms in two's complement words that are shifted or negated wrongly."""
    for slug, what, mask, weight in (
        ("", "negative terms", True, 1.0),
        ("c-", "a negative c", lambda s: s.owner == "c", 1.05),
    ):
        for word in range(precision + 2, precision + RANGES.word):
            text = (
                f"the alignment shifts zeros into {what} instead of copies of the sign (words of {word} bits)"
            )
            rule = sets(logical=word, logical_of=mask)
            yield _shift(f"{slug}logical-shift-{word}", text, rule, weight + word / 1000, of=(Align,))
    text = "negative terms are inverted before they are added, without the one of a negation"
    yield _shift("terms-ones-complement", text, sets(complemented=True), of=(Align,))


def _terms_of(ins: Instruction) -> Iterator[tuple[str, str, Callable[[ShiftSignals], Any]]]:
    """The terms that an alignment may treat differently: slug, words, and a mask (terms,)."""
    if "c" not in ins.absent:
        yield "c", "c", lambda s: s.owner == "c"
    yield "products", "the products", lambda s: s.owner != "c"
    for j in range(len(ins.program.operations[0].k_index)):
        yield f"term-{j}", f"term {j}", partial(_is_term, j)


def _is_term(j: int, s: ShiftSignals) -> Any:
    return (s.owner != "c") & (np.arange(len(s.owner)) == j)


def _left_out(ins: Instruction) -> Iterator[Mutation]:
    """Terms that the search for the largest exponent skips."""
    rules = {
        "dropped": "lost where it lies above",
        "lost": "lost where it lies above, or alone",
        "unshifted": "not shifted where it lies above",
        "moved-left": "shifted left where it lies above",
    }
    for slug, text, mask in _terms_of(ins):
        for rule, word in rules.items() if slug != "c" else ():  # c: `left_out` of the program
            said = f"{text} left out of the largest exponent ({word})"
            weight = 1.05 if slug == "products" else 1.15
            leave = partial(_leave_out, mask=mask, rule=rule)
            yield _shift(f"maximum-without-{slug}-{rule}", said, leave, weight, of=(Align,))


_FAR = 1 << 30
"""An exponent below all others."""


def _leave_out(s: ShiftSignals, mask: Callable[[ShiftSignals], Any], rule: str) -> None:
    """The maximum is taken over the other terms. A term alone has a maximum far below it: the shift distance
    is negative, which is a large one without its sign, so the term is lost, too ("lost")."""
    left_out = mask(s)
    others = s.terms.finite & ~left_out
    some = others.any(axis=1, keepdims=True)
    own = np.where(others, s.terms.exponent, -_FAR).max(axis=1, keepdims=True)
    lower = np.where(some, np.minimum(own, s.maximum), s.maximum)
    floor = s.maximum - np.where(s.terms.finite, s.terms.exponent, -_FAR).max(axis=1, keepdims=True)
    lower = np.where(floor > 0, s.maximum, lower)  # the floor decides, whoever takes part
    shift = s.shift - (s.maximum - lower)
    if rule in ("dropped", "lost"):
        s.jammed = s.jammed | (shift < 0)
    if rule == "lost":
        s.jammed = s.jammed | (left_out & s.terms.finite & ~some & (floor <= 0))
    s.shift = shift if rule == "moved-left" else np.maximum(shift, 0)
    s.maximum = lower


def _cuts_unseen(ins: Instruction) -> Iterator[Mutation]:
    """Terms whose cut bits leave no trace in a sticky bit."""
    if any(map(_has_sticky, ins.program.steps_of(Align))):
        for slug, text, mask in _terms_of(ins):
            said = f"the sticky bit does not see what is cut of {text}"
            rule = sets(unseen=lambda s, m=mask: s.unseen | m(s))
            yield _shift(f"sticky-without-{slug}", said, rule, 1.05, of=(Align,))


def _lost_bits(ins: Instruction, precision: int) -> Iterator[Mutation]:
    """Bits of a term that leave the window without a sticky bit."""
    sides = {"product": "the product", "c": "c"} if kinds_of(ins, Fma) else {"": "the smaller term"}
    for places in range(precision + 1, (3 if "c" in sides else 2) * precision + 10):
        for side, text in sides.items():
            slug = f"{side}-bits-lost-below-{places}".removeprefix("-")
            said = (
                f"the bits of {text} more than {places} places below the largest exponent are lost, without "
                "a sticky bit"
            )
            yield _shift(slug, said, partial(_lose, places=places, side=side), 1.05, of=(Additions, Fma))


def _lose(s: ShiftSignals, places: int, side: str) -> None:
    """In a multiply-add the window depends on the product, unless c is far above it."""
    lost = np.where((s.owner == side) | (side == ""), places, 1 << 40)
    if side == "c":
        product = np.where(s.terms.finite[:, :1], s.terms.exponent[:, :1], s.maximum)
        s.lost_below = lost + (s.maximum - product)
    else:
        s.lost_below = lost + np.zeros_like(s.maximum)
