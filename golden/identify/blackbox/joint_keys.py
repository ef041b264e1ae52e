"""Keys that hide each other: two of them changed at once, where neither explains anything alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations, dropwhile, pairwise, product
from typing import Any

from golden.identify.blackbox import structure
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.key_values import (
    NEAR,
    groupings,
    meaningless_beside,
    result_formats_tried,
    window_values,
)
from golden.identify.blackbox.moves import (
    Move,
    Steps,
    instead_of,
    key_label,
    made_as,
    of_earlier,
    put_before,
    replacing_step,
    shown_value,
    swapping_steps,
    whole_change,
    with_change,
)
from golden.identify.blackbox.step_changes import FACTORS_AND_C, flushing, in_one_sum
from golden.identify.blackbox.templates import align, leading_bits
from golden.number.formats import get_format
from golden.number.frozen import replace
from golden.program import keys
from golden.program.compiling import holds
from golden.program.keys import Candidate as MaximumOf
from golden.program.keys import Choice, Flag, applies, declared, key_name
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    Fma,
    HiddenBit,
    Multiply,
    Normalize,
    Round,
    Step,
    Sum,
)

_CUT_BITS = (-1, 0, 1)
"""Bits more or fewer that are tried together with another kind of cut."""
_WIDTHS_TRIED = range(10, 41)
"""Fraction bits of alignments that are tried together with a second key."""
_HELD_BITS = range(1, 25)
"""Widths of a register for sums of products that are tried, in bits."""
_TOPS = range(-24, 49)
"""Exponents that the sign of a register for sums can have."""
SIDES = ("toward_zero", "down", "up")
"""Roundings that cut, and where they move a small number."""


def joint(one: Candidate) -> Iterator[Move]:
    """Pairs of keys of one step: some have a visible effect only together."""
    yield from {move.text: move for move in _cuts(one)}.values()
    # Keys that hide each other; the docstring of each of these says which, and why.
    for pairs in (
        *(_everywhere, _flushed_alone, _widths_and_roundings, _sticky, _led, _far_below, in_one_sum),
        *(_aligned_first, _carried, _regrouped, _aligned_by_groups, _evened_and_small),
        *(_small_and_rounded, _zeros_of_products, _held, _fixed, _results, _twice, _not_rounded),
    ):
        yield from pairs(one)
    for said, operations in structure.narrowed(one):
        yield whole_change("c: converted first", said, made_as(operations), 1)
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


def _widths_and_roundings(one: Candidate) -> Iterator[Move]:
    """The width of an alignment together with its rounding: a sticky bit only shows at the right width. Also
    for the plain alignment, without other keys that were found at a wrong width."""
    for step in one.steps_of(Align):
        rest: dict[str, Any] = {"window": (), "spared": (), "shift_limit": None, "left_out": ()}
        plain = replace(step, cut="dropped", sticky_gap=0, **rest)
        for base in dict.fromkeys((step, plain)):
            for bits, mode in product(_WIDTHS_TRIED, keys.ROUNDING.words):
                changed = replace(base, fraction_bits=tuple((name, bits) for name in step.of), rounding=mode)
                if changed.rounding != step.rounding or base != step:
                    label = key_label(step, "fraction_bits")
                    said = f"{bits}, {mode}" + (", nothing else" if base != step else "")
                    yield Move(label, said, replacing_step(step, changed), 1)


def _sticky(one: Candidate) -> Iterator[Move]:
    """The sticky rule of an alignment together with its width and rounding: a last bit rounded to odd is
    equivalent to a sticky bit below one bit less. Of two such nearly equal programs, changing only one of the
    three keys explains less than the present values."""
    for step in one.steps_of(Align):
        for cut, mode, more in product(keys.CUT.words, keys.ROUNDING.words, _CUT_BITS):
            bits = tuple((name, n + more) for name, n in step.fraction_bits)
            changed = replace(step, cut=cut, rounding=mode, fraction_bits=bits)
            if cut != step.cut and more:
                label = key_label(step, "cut")
                yield Move(label, f"{cut}, {mode}, {more:+d} bits", replacing_step(step, changed), 1)
        yield from _sticky_at(step)
    yield from sticky(one)


def sticky(one: Candidate) -> Iterator[Move]:
    """A sticky bit below one width of all registers with the same rounding: at a wrong width it explains
    nothing if many terms leave a bit each."""
    for step in one.steps_of(Align):
        for cut, bits in product(keys.CUT.words, _WIDTHS_TRIED):
            changed = replace(step, cut=cut, fraction_bits=tuple((name, bits) for name in step.of))
            if cut not in (step.cut, "dropped"):
                label = key_label(step, "cut")
                yield Move(label, f"{cut}, {bits} bits", replacing_step(step, changed), 1)


def _sticky_at(step: Align) -> Iterator[Move]:
    """A sticky bit at another width of one register: while the other registers have their own widths, any
    large width is equally good until its cut bits show."""
    for cut, name, bits in product(keys.CUT.words, step.of, _WIDTHS_TRIED):
        table = tuple((one, bits if one == name else n) for one, n in step.fraction_bits)
        if cut not in (step.cut, "dropped") and table != step.fraction_bits:
            changed = replace(step, cut=cut, fraction_bits=table)
            label = key_label(step, "cut")
            yield Move(label, f"{cut}, {name} {bits} bits", replacing_step(step, changed), 1)


def _led(one: Candidate) -> Iterator[Move]:
    """An alignment to the leading bit of a term instead of a normalized sum: both cut the same number of
    places below the highest bit, and differ if the term and the sum have different ones."""
    for steps in one.bodies:
        for place, (step, total) in enumerate(pairwise(steps)):
            if not (isinstance(step, Align) and isinstance(total, Sum) and total.of == step.of):
                continue
            rest = _normalizing(steps[place + 2 :], total.to)
            for maximum in dict.fromkeys(m for normal in rest for m in _by_leading_bits(step, normal)):
                led: Step = replace(step, **meaningless_beside(step, "maximum", maximum), maximum=maximum)
                by = (*steps[:place], led, total, *steps[place + 2 + len(rest) :])
                label = key_label(step, "maximum")
                yield Move(label, f"{shown_value(maximum)}, not normalized", swapping_steps(steps, by), 1)


def _normalizing(steps: Steps, name: str) -> list[Normalize]:
    """The steps that normalize a register before any other."""
    found: list[Normalize] = []
    for step in steps:
        if not isinstance(step, Normalize) or step.of != (name,):
            break
        found.append(step)
    return found


def _far_below(one: Candidate) -> Iterator[Move]:
    """A window instead of spared bits, or vice versa: both turn numbers far below the last kept bit into
    zero, so either explains most of the other's effect and blocks it."""
    for step in one.steps_of(Align):
        label = f"align of {' and '.join(step.of)}: "
        for name, _ in step.spared:
            for bits in _WIDTHS_TRIED:
                changed = replace(step, spared=(), window=((name, bits),))
                yield Move(f"{label}window", f"{name} {bits}, not spared", replacing_step(step, changed), 1)
        for name, _ in step.window:
            for fmt in dict.fromkeys(fmt for fmt in one.formats.values() if fmt.is_float):
                changed = replace(step, window=(), spared=((name, fmt.min_exponent),))
                said = f"{name} {fmt.min_exponent}, no window"
                yield Move(f"{label}spared", said, replacing_step(step, changed), 1)


def _by_leading_bits(step: Align, normal: Normalize) -> Iterator[tuple[MaximumOf, ...]]:
    """An alignment to the leading bit of one more candidate, by about the number of places at which a
    normalized sum is cut."""
    places = max(dict(step.fraction_bits).values()) - normal.fraction_bits[0][1]
    apart = tuple(MaximumOf((name,), False, 0, None) for name in step.of)
    for now in dict.fromkeys((step.maximum or (MaximumOf(step.of, False, 0, None),), step.maximum or apart)):
        for index, one in enumerate(now):
            least = one.least if normal.min_exponent is None else normal.min_exponent
            for more in (0, *NEAR):
                led = MaximumOf(one.of, True, places + more, least)
                yield (*now[:index], led, *now[index + 1 :])


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
        for bits in _HELD_BITS:
            yield f"summed in {bits} bits", total, replace(total, width=bits)


def _regrouped(one: Candidate) -> Iterator[Move]:
    """Other groups in all steps with the same ones: terms aligned by groups are summed by them."""
    steps = one.steps
    by_group: dict[tuple[str, int], list[Align | Sum | Additions | Fma]] = {}
    for step in steps:
        if isinstance(step, Align | Sum | Additions | Fma) and step.group is not None:
            by_group.setdefault(step.group, []).append(step)
    for now, members in by_group.items():
        for group in filter(None, groupings(one)) if len(members) > 1 else ():
            changed: dict[Step, Step] = {step: replace(step, group=group) for step in members}
            label = f"groups of {now[0]} {now[1]}"
            yield Move(label, f"{group[0]} {group[1]}", lambda s, c=changed: tuple(c.get(x, x) for x in s), 1)  # type: ignore[misc]


def _aligned_by_groups(one: Candidate) -> Iterator[Move]:
    """Other groups of an alignment, together with its place and rounding: with wrong groups the cut bits fit
    no width and no rounding, and any of these that hides them seems equally good."""
    steps = one.steps_of(Align)
    widths = sorted({bits for step in steps for _, bits in step.fraction_bits})
    for step in (step for step in steps if step.group is not None):
        for group, bits, mode in product(groupings(one), widths, keys.ROUNDING.words):
            table = tuple((name, bits) for name in step.of)
            changed = replace(step, group=group, fraction_bits=table, rounding=mode)
            if group != step.group:
                said = f"{'none' if group is None else f'{group[0]} {group[1]}'}, {bits}, {mode}"
                yield Move(key_label(step, "group"), said, replacing_step(step, changed), 1)


def evened(one: Candidate) -> Iterator[tuple[Align, int, Align]]:
    """Alignments in which one register has a width of its own, with one width for all; and that register."""
    for step in one.steps_of(Align):
        widths = sorted({bits for _, bits in step.fraction_bits})
        for bits in widths if len(widths) > 1 else ():
            yield step, bits, replace(step, fraction_bits=tuple((name, bits) for name in step.of))


def _evened_and_small(one: Candidate) -> Iterator[Move]:
    """One width for all registers together with spared bits, or with a window: a wider register loses no
    small numbers either, and a narrower one loses them as a window does; few questions distinguish the
    two."""
    for step, bits, even in evened(one):
        for name in ("spared", "window"):
            for small in dict.fromkeys(window_values(one, step, getattr(step, name), name)):
                if small:
                    label = key_label(step, "fraction_bits")
                    said = f"{bits}, {name} {shown_value(small)}"
                    given: dict[str, Any] = {name: small}
                    yield Move(label, said, replacing_step(step, replace(even, **given)), 1)


def _small_and_rounded(one: Candidate) -> Iterator[Move]:
    """Spared numbers together with the rounding: a number far below the last bit becomes zero if it is cut
    towards zero or spared, but not if it is rounded down or up."""
    for step in one.steps_of(Align):
        for mode in SIDES if step.rounding in SIDES else ():
            for small in window_values(one, step, step.spared, "spared") if mode != step.rounding else ():
                changed = replace(step, spared=small, rounding=mode)
                label = key_label(step, "rounding")
                yield Move(label, f"{mode}, spared {shown_value(small)}", replacing_step(step, changed), 1)


def _zeros_of_products(one: Candidate) -> Iterator[Move]:
    """Zeros that take part in the largest exponent, together with the format of products: that decides the
    exponent of a zero, and nothing else if products are exact in it."""
    for steps in one.bodies:
        first = next((s for s in steps if isinstance(s, Multiply)), None)
        aligned = [s for s in steps if isinstance(s, Align) and "products" in s.of and not s.maximum]
        if first is None or not aligned:
            continue
        step = aligned[0]
        for fmt in result_formats_tried(one):
            rounded: Step = replace(first, format=fmt, rounding="toward_zero", nan=None)
            for floor in dict.fromkeys((step.floor, None)):
                counted: Step = replace(step, zeros="maximum", exponent=None, floor=floor)
                by = tuple({first: rounded, step: counted}.get(s, s) for s in steps)
                label = key_label(step, "zeros")
                yield Move(label, f"maximum, products in {fmt.name}", swapping_steps(steps, by), 2)


def _held(one: Candidate) -> Iterator[Move]:
    """A sum in a fixed-point register: its highest bit only shows together with its point and its width."""
    for step in (s for s in one.steps_of(Sum) if s.to != "d"):
        for top, overflow in product(_TOPS, ("wrap", "saturate")):
            point = min(top - 1, 0)
            changed = replace(step, exponent=point, width=top - point, overflow=overflow)
            if changed != step:
                label = key_label(step, "width")
                said = f"{top - point} above 2^{point}, {overflow}"
                yield Move(label, said, replacing_step(step, changed), 1)


def _fixed(one: Candidate) -> Iterator[Move]:
    """A sum that shows the exponent of its point, even if it is zero, to the next alignment, together with
    the width of that alignment, which is then counted from the same exponent."""
    for steps in one.bodies:
        for total, meet in pairwise(steps):
            if not (isinstance(total, Sum) and isinstance(meet, Align) and total.to in meet.of):
                continue
            point = replace(total, exponent=0, cancelled="keeps_exponent")
            own = {total.to: dict(meet.fraction_bits)[total.to]} if len(meet.of) > 1 else {}
            for bits in _WIDTHS_TRIED:
                wide = replace(meet, fraction_bits=tuple((name, own.get(name, bits)) for name in meet.of))
                both: dict[Step, Step] = {total: point, meet: wide}
                label = key_label(total, "exponent")
                by = tuple(both.get(step, step) for step in steps)
                yield Move(label, f"0, met at {bits} bits", swapping_steps(steps, by), 1)


def _results(one: Candidate) -> Iterator[Move]:
    """The fraction bits of a result together with its rounding: with the wrong rounding fewer bits are as
    wrong as all. With several operations also for the last one alone: earlier results often keep all bits."""
    last = len(one.operations) - 1
    for step in one.steps_of(Round):
        if not step.format.is_float:
            continue
        if step.result_fraction_bits is not None:
            whole = replacing_step(step, replace(step, result_fraction_bits=None))
            yield whole_change(
                "earlier results: fraction_bits", "none", of_earlier(partial(with_change, change=whole)), 1
            )
        alone = (None, last) if last and step == one.operations[last].final else (None,)
        for only, bits, mode in product(alone, range(step.format.fraction_bits), keys.ROUNDING.words):
            changed = replace(step, result_fraction_bits=bits, rounding=mode)
            if (step.rounding != mode or only is not None) and step.result_fraction_bits != bits:
                label = key_label(step, "fraction_bits")
                label = label if only is None else f"d: {label}"
                yield Move(label, f"{bits}, {mode}", replacing_step(step, changed), 1, only=only)


def _twice(one: Candidate) -> Iterator[Move]:
    """A result that is first rounded to f32, with any two roundings, instead of the steps between the sum and
    it: other roundings, or a normalized sum, have nearly the same effect."""
    wide = get_format("f32")
    for steps in one.bodies:
        last, body = steps[-1], steps[:-1]
        if not isinstance(last, Round) or last.format == wide or not holds(wide, last.format):
            continue
        of = last.of
        while body and isinstance(body[-1], Round | Normalize):
            of, body = body[-1].of, body[:-1]
        for mode, then in product(keys.ROUNDING.words, repeat=2):
            first = replace(
                last, to="partial", of=of, format=wide, rounding=mode, nan=None, result_fraction_bits=None
            )
            both = (*body, first, replace(last, of=("partial",), rounding=then))
            yield Move("round", f"first to f32, {mode}, then {then}", swapping_steps(steps, both), 1)


def _not_rounded(one: Candidate) -> Iterator[Move]:
    """Replacements for products and sums that are rounded twice, separately and together: products that
    overflow where a format's would, and a result that sees only the highest cut bit, as a sum that is cut one
    bit below. Only subnormal numbers distinguish them."""
    for steps in one.bodies:
        exact = tuple(_overflowing(step) for step in steps)
        both = ((exact, "products"), (_seeing_one_bit(steps), "the sum"), (_seeing_one_bit(exact), "either"))
        said: dict[Steps, str] = {}
        for by, what in both:
            said.setdefault(by, what)
        for by, what in said.items():
            if by != steps:
                yield Move("rounded once", what, swapping_steps(steps, by), 1)


def _overflowing(step: Step) -> Step:
    """Products that are not rounded to a format, but overflow like it, in place of rounded ones."""
    if not isinstance(step, Multiply) or step.format is None:
        return step
    end = step.format.max_exponent + 1
    return replace(step, format=None, nan=None, rounding="toward_zero", overflow_exponent=end)


def _seeing_one_bit(steps: Steps) -> Steps:
    """Steps whose result is rounded by only the highest cut bit, instead of a normalized sum."""
    last = steps[-1]
    if not isinstance(last, Round):
        return steps
    rest = tuple(s for s in steps[:-1] if not (isinstance(s, Normalize) and s.of == last.of))
    return steps if len(rest) == len(steps) - 1 else (*rest, replace(last, sticky="left_out"))


def _everywhere(one: Candidate) -> Iterator[Move]:
    """One word of a key in every step that has the key: a unit treats zeros, for example, alike wherever it
    rounds."""
    steps = list(one.steps)
    found: dict[tuple[str, Any], None] = {}
    for step in steps:
        for name, key, _ in declared(step):
            if isinstance(key, Choice):
                found |= dict.fromkeys((name, word) for word in key.words)
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
        if other == name and isinstance(key, Choice) and word in key.words and applies(key, values, defaults):
            return replace(step, **{name: word})
    return step


def _cuts(one: Candidate) -> Iterator[Move]:
    """The alignment exponent, its width and the representation of negative terms: all three determine the
    last bit of a sum, and a change of one alone may explain nothing."""
    for operation in one.operations:
        for step, total in zip(operation.steps, operation.steps[1:], strict=False):
            if not (isinstance(step, Align) and isinstance(total, Sum)) or "c" not in step.of:
                continue
            rest = operation.steps[operation.steps.index(total) + 1 :]
            words = product(
                keys.COMPLEMENT.words, leading_bits(one.takes, step.of), _CUT_BITS, _rounded(one, rest)
            )
            for complement, to, more, (how, rounds) in words:
                bits = tuple((name, max(dict(step.fraction_bits).values()) + more) for name in step.of)
                aligned = replace(
                    step, **meaningless_beside(step, "maximum", to), maximum=to, fraction_bits=bits
                )
                by = aligned, replace(total, complement=complement), *rounds
                said = f"{shown_value(to)}, {more:+d} bits, complement {complement}{how}"
                label = key_label(step, "maximum")
                yield Move(label, said, instead_of((step, total, *rest), by), 1)


def _rounded(one: Candidate, rest: Steps) -> Iterator[tuple[str, Steps]]:
    """Variants of the roundings after a sum: unchanged; of two roundings, nearest and truncation; for one,
    also with f32 before it, which truncates, too."""
    yield "", rest
    if len(rest) == 2 and isinstance(rest[0], Round) and isinstance(rest[1], Round):
        first, last = rest[0], rest[1]
        cut = replace(first, rounding="nearest_even"), replace(last, rounding="toward_zero")
        yield ", then cut", cut
    inner = get_format("f32")
    if (
        len(rest) == 1
        and isinstance(rest[0], Round)
        and holds(inner, rest[0].format)
        and inner != rest[0].format
    ):
        first = replace(rest[0], to="partial", format=inner, rounding="nearest_even", nan=None)
        last = replace(rest[0], of=("partial",))
        yield ", rounded to f32 first", (first, last)
        yield ", rounded to f32 first, then cut", (first, replace(last, rounding="toward_zero"))


def _flushed_alone(_: Candidate) -> Iterator[Move]:
    """Some operands flushed, or none, instead of all earlier steps on them: a normalized operand is no longer
    flushed, so the two together resemble a flush of the others."""
    subsets = [of for size in range(len(FACTORS_AND_C) + 1) for of in combinations(FACTORS_AND_C, size)]
    for of, sign in product(subsets, ("signed", "positive")):

        def change(steps: Steps, of: tuple[str, ...] = of, sign: str = sign) -> Steps:
            rest = dropwhile(_is_of_operands, steps)
            return flushing(of, sign)(tuple(rest))

        yield Move("operands first", f"{' and '.join(of) or 'none'} flushed, {sign}", change, 1)


def _is_of_operands(step: Step) -> bool:
    return isinstance(step, Flush | Normalize | HiddenBit) and set(step.of) <= set(FACTORS_AND_C)
