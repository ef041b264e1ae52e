"""Keys that hide each other: two of them changed at once, where neither explains anything alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, dropwhile, product
from typing import Any

from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.moves import (
    Move,
    Steps,
    key_label,
    put_before,
    replacing_step,
    shown_value,
    swapping_steps,
)
from golden.identify.blackbox.step_changes import FACTORS_AND_C, flushing, in_one_sum
from golden.identify.blackbox.step_registers import of_operands
from golden.identify.blackbox.templates import align
from golden.number.frozen import replace
from golden.program import keys
from golden.program.keys import Choice, Flag, Roundings, applies, declared, key_name
from golden.program.steps import MAX_FRACTION_BITS, Align, Multiply, Round, Step, Sum

_CUT_BITS = (-1, 0, 1)
"""Bits more or fewer that are tried together with another kind of cut."""
_WIDTHS_TRIED = range(10, 41)
"""Fraction bits of alignments that are tried together with a second key."""
_REGISTER_BITS = range(1, 25)
"""Widths of a register for sums of products that are tried, in bits."""
SIDES = ("toward_zero", "down", "up")
"""Roundings that cut, and where they move a small number."""


def joint(one: Candidate) -> Iterator[Move]:
    """Pairs of keys of one step: some have a visible effect only together."""
    # Keys that hide each other; the docstring of each of these says which, and why.
    for pairs in (
        *(_everywhere, _flushed_alone, _widths_and_roundings, _sticky, in_one_sum),
        *(_aligned_first, _carried, _each_rounding, _register_and_overflow, _whole_in_window),
    ):
        yield from pairs(one)
    # Then every pair of words of one step, each with another value.
    for step in one.steps:
        defaults = {name: default for name, _, default in declared(step)}
        words = [
            (name, key, key.words if isinstance(key, Choice) else (True, False))
            for name, key, _ in declared(step)
            if isinstance(key, Choice | Flag)
        ]
        for (first, key, some), (second, other, more) in combinations(words, 2):
            for value, partner in product(some, more):
                words_of: dict[str, Any] = {first: value, second: partner}
                changed = replace(step, **words_of)
                held = {name: getattr(changed, name) for name in defaults}
                both = value != getattr(step, first) and partner != getattr(step, second)
                if both and applies(key, held, defaults) and applies(other, held, defaults):
                    label = key_label(step, key_name(first, key))
                    said = f"{shown_value(value)}, {key_name(second, other)} {shown_value(partner)}"
                    yield Move(label, said, replacing_step(step, changed), key.fault + other.fault)


def _becoming(step: Step, by: Step, key: str, said: str) -> Move:
    """A step with other values of `key` and of a second key."""
    return Move(key_label(step, key), said, replacing_step(step, by), 1)


def _widths_and_roundings(one: Candidate) -> Iterator[Move]:
    """The width of an alignment, or of a result, together with its rounding: a sticky bit only shows at the
    right width. Also for the plain alignment, without other keys that were found at a wrong width."""
    for step in one.steps_of(Align):
        rest: dict[str, Any] = {"window": (), "spared": (), "shift_limit": None, "left_out": ()}
        plain = replace(step, cut="dropped", sticky_gap=0, **rest)
        for base in dict.fromkeys((step, plain)):
            for bits, mode in product(_WIDTHS_TRIED, keys.ROUNDING.words):
                changed = replace(base, fraction_bits=tuple((name, bits) for name in step.of), rounding=mode)
                if changed.rounding != step.rounding or base != step:
                    said = f"{bits}, {mode}" + (", nothing else" if base != step else "")
                    yield _becoming(step, changed, "fraction_bits", said)
    for end in one.steps_of(Round):
        most = end.format.fraction_bits
        for bits, mode in product(range(max(most - 24, 0), most), SIDES):
            rounded = replace(end, result_fraction_bits=bits, rounding=mode)
            yield _becoming(end, rounded, "fraction_bits", f"{bits}, {mode}")


def _each_rounding(one: Candidate) -> Iterator[Move]:
    """Two registers of an alignment, each with a rounding of its own, and their width: a width that is one
    bit off makes up for a wrong rounding, and the rounding of one register for that of the other."""
    for step in one.steps_of(Align):
        widths = {bits + more for _, bits in step.fraction_bits for more in _CUT_BITS}
        for modes in product(keys.ROUNDING.words, repeat=len(step.of)) if len(step.of) == 2 else ():
            for bits in sorted(widths) if len(set(modes)) > 1 else ():
                table = tuple((name, bits) for name in step.of)
                rounding = keys.one_or_each(tuple(zip(step.of, modes, strict=True)))
                changed = replace(step, fraction_bits=table, rounding=rounding)
                yield _becoming(step, changed, "rounding", f"{' and '.join(modes)}, {bits} bits")


def _sticky(one: Candidate) -> Iterator[Move]:
    """The sticky rule of an alignment together with its width and rounding: a last bit rounded to odd is
    equivalent to a sticky bit below one bit less. Of two such nearly equal programs, changing only one of the
    three keys explains less than the present values."""
    for step in one.steps_of(Align):
        for cut, mode, more in product(keys.CUT.words, keys.ROUNDING.words, _CUT_BITS):
            bits = tuple((name, n + more) for name, n in step.fraction_bits)
            changed = replace(step, cut=cut, rounding=mode, fraction_bits=bits)
            if cut != step.cut and more:
                yield _becoming(step, changed, "cut", f"{cut}, {mode}, {more:+d} bits")
        yield from _sticky_at(step)
    yield from sticky(one)


def sticky(one: Candidate) -> Iterator[Move]:
    """A sticky bit below one width of all registers with the same rounding: at a wrong width it explains
    nothing if many terms leave a bit each."""
    for step in one.steps_of(Align):
        for cut, bits in product(keys.CUT.words, _WIDTHS_TRIED):
            changed = replace(step, cut=cut, fraction_bits=tuple((name, bits) for name in step.of))
            if cut not in (step.cut, "dropped"):
                yield _becoming(step, changed, "cut", f"{cut}, {bits} bits")


def _sticky_at(step: Align) -> Iterator[Move]:
    """A sticky bit at another width of one register: while the other registers have their own widths, any
    large width is equally good until its cut bits show."""
    for cut, name, bits in product(keys.CUT.words, step.of, _WIDTHS_TRIED):
        table = tuple((one, bits if one == name else n) for one, n in step.fraction_bits)
        if cut not in (step.cut, "dropped") and table != step.fraction_bits:
            changed = replace(step, cut=cut, fraction_bits=table)
            yield _becoming(step, changed, "cut", f"{cut}, {name} {bits} bits")


def _aligned_first(one: Candidate) -> Iterator[Move]:
    """An alignment, with width and rounding, before a sum of products that has none: if the unit keeps sticky
    bits, an alignment that drops them explains no more than none."""
    for steps in one.bodies:
        aligned = {step.of for step in steps if isinstance(step, Align)}
        for step in steps:
            if isinstance(step, Sum) and "products" in step.of and step.of not in aligned:
                for bits, mode in product(_WIDTHS_TRIED, keys.ROUNDING.words):
                    new = replace(align(step.of, step.group, bits), rounding=mode)
                    yield Move("align before sum", f"put in, {bits}, {mode}", put_before(step, new), 1)


def _carried(one: Candidate) -> Iterator[Move]:
    """Whether products are normalized, together with the width of their alignment or of the register of their
    sum: both are counted from the exponent of the product."""
    for steps in one.bodies:
        first = next((s for s in steps if isinstance(s, Multiply)), None)
        if first is None:
            continue
        other: Step = replace(first, normalize=not first.normalize)
        for said, now, wide in _counted_from_products(steps):
            both = tuple({first: other, now: wide}.get(step, step) for step in steps)
            label = f"{not first.normalize}, {said}"
            yield Move("multiply of a and b: normalize", label, swapping_steps(steps, both), 1)


def _counted_from_products(steps: Steps) -> Iterator[tuple[str, Step, Step]]:
    """The first step that aligns products, and the first that sums them exactly, with other widths."""
    aligned = next((s for s in steps if isinstance(s, Align) and "products" in s.of), None)
    total = next((s for s in steps if isinstance(s, Sum) and "products" in s.of), None)
    if aligned is not None:
        for bits in _WIDTHS_TRIED:
            wide = replace(aligned, fraction_bits=tuple((name, bits) for name in aligned.of))
            yield f"aligned to {bits} bits", aligned, wide
    if total is not None:
        for bits in _REGISTER_BITS:
            yield f"summed in {bits} bits", total, replace(total, width=bits)


def _whole_in_window(one: Candidate) -> Iterator[Move]:
    """One window for all registers of an alignment, whose terms are kept whole or not at all: with fewer bits
    than the window needs, or a window for one register alone, most sums are cut where the unit cuts none."""
    bits = dict.fromkeys(("c", "addends"), one.formats["c"].fraction_bits)
    products = one.formats["a"].fraction_bits + one.formats["b"].fraction_bits
    for step in one.steps_of(Align):
        for most in range(4, 50):
            table = tuple((name, min(most + bits.get(name, products), MAX_FRACTION_BITS)) for name in step.of)
            changed = replace(step, fraction_bits=table, window=tuple((name, most) for name in step.of))
            yield _becoming(step, changed, "window", f"{most} for all, terms whole")


def _register_and_overflow(one: Candidate) -> Iterator[Move]:
    """The width of the register of a sum together with what it holds when a sum does not fit: a register
    that wraps is wrong on just the sums that one without a width is wrong on."""
    for step in one.steps_of(Sum):
        for bits, overflow in product(range(2, 48), ("wrap", "saturate")):
            changed = replace(step, width=bits, overflow=overflow)
            if overflow != step.overflow:
                yield _becoming(step, changed, "width", f"{bits}, {overflow}")


def _everywhere(one: Candidate) -> Iterator[Move]:
    """One word of a key in every step that has the key: a unit treats zeros, for example, alike wherever it
    rounds."""
    steps = list(one.steps)
    found: dict[tuple[str, Any], None] = {}
    for step in steps:
        for name, key, _ in declared(step):
            if isinstance(key, Choice | Roundings):
                words = key.words if isinstance(key, Choice) else keys.ROUNDING.words
                found |= dict.fromkeys((name, word) for word in words)
    for name, word in found:
        changed = {step: new for step in steps if (new := _with_key(step, name, word)) != step}
        if len(changed) > 1:

            def change(now: Steps, changed: dict[Step, Step] = changed) -> Steps:
                return tuple(changed.get(step, step) for step in now)

            yield Move(f"every step: {name}", str(word), change, 1)


def _with_key(step: Step, name: str, word: str) -> Step:
    """The step with another word of a key, or itself if it has no such key."""
    defaults = {other: default for other, _, default in declared(step)}
    values = {other: getattr(step, other) for other in defaults}
    for other, key, _ in declared(step):
        known = key.words if isinstance(key, Choice) else keys.ROUNDING.words
        is_word = isinstance(key, Choice | Roundings) and word in known
        if other == name and is_word and applies(key, values, defaults):
            return replace(step, **{name: word})
    return step


def _flushed_alone(_: Candidate) -> Iterator[Move]:
    """Some operands flushed, or none, instead of all earlier steps on them: a normalized operand is no longer
    flushed, so the two together resemble a flush of the others."""
    subsets = [of for size in range(len(FACTORS_AND_C) + 1) for of in combinations(FACTORS_AND_C, size)]
    for of, sign in product(subsets, ("signed", "positive")):

        def change(steps: Steps, of: tuple[str, ...] = of, sign: str = sign) -> Steps:
            rest = dropwhile(of_operands, steps)
            return flushing(of, sign)(tuple(rest))

        yield Move("operands first", f"{' and '.join(of) or 'none'} flushed, {sign}", change, 1)
