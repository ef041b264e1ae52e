"""The neighbourhood of a candidate: every key of every step with another value, steps inserted, removed or
split.

The keys come from the step classes, so a new key is searched without a line here. Only integers, formats and
words need values to try, which depend on the unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, dropwhile, pairwise, permutations, product
from typing import Any

from golden.identify.blackbox import structure
from golden.identify.blackbox.candidates import Candidate, with_results
from golden.identify.blackbox.step_registers import relabelled, with_registers
from golden.identify.blackbox.templates import START_BITS, align, has_special, inner_formats, leading_bits
from golden.number.formats import Format, Kind, get_format
from golden.number.frozen import replace
from golden.program import keys
from golden.program.compiling import holds
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
    Target,
    Widths,
    Word,
    applies,
    declared,
    key_name,
)
from golden.program.program import Operation
from golden.program.reading import WITH_PAYLOAD
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    Fma,
    HiddenBit,
    Multiply,
    Normalize,
    Round,
    Scale,
    SpecialValues,
    Step,
    Sum,
    format_of,
)
from golden.yamlfile import MISSING

Steps = tuple[Step, ...]
Operations = tuple[Operation, ...]
_MOST_BITS = 60
"""Fraction bits of alignments that are tried, at most."""
_NEAR = (-3, -2, -1, 1, 2, 3)
"""Distances of the values that are near the present one."""
_CUT_BITS = (-1, 0, 1)
"""Bits more or fewer that are tried together with another kind of cut."""
_WINDOWS = (0, *range(4, 50, 3))
"""Values of `window` that are tried."""
_WIDTHS_TRIED = range(10, 41)
"""Fraction bits of alignments that are tried together with a second key."""
_HELD_BITS = range(1, 25)
"""Widths of a register for sums of products that are tried, in bits."""
_TOPS = range(-24, 49)
"""Exponents that the sign of a register for sums can have."""
_FLOORS = range(-200, 64)
"""Floors of an alignment that leaves a register out. All are tried: a left-out register alone stays unshifted
there, so that each floor has results of its own."""
_LEASTS = (-126, -14)
"""Exponents of subnormal numbers of f32 and bf16, and of f16."""
_FACTORS_AND_C = ("a", "b", "c")
SIDES = ("toward_zero", "down", "up")
"""Roundings that cut, and where they move a small number."""
_SPREAD = 6
"""Step between the values of a wide search: values between are near one of them, and help where it helps."""


@dataclass(frozen=True)
class Move:
    """One change. `key`: what it changes, "align.fraction_bits"; `value`: the new value; `rank`: low for
    plain ones.

    `only`: the operation that it is made in; None: all operations with such a step.
    """

    key: str
    value: str
    change: Callable[[Steps], Steps]
    rank: int = 0
    only: int | None = None
    where: Format | None = None
    """Only in operations with results of this format."""

    def apply(self, one: Candidate) -> Candidate | None:
        """The neighbour; None if the change has no meaning there, or no unit can have it."""
        changed: list[Operation] = []
        before: tuple[Steps, Steps] | None = None
        for index, operation in enumerate(one.operations):
            steps = operation.steps
            if self.only in (None, index) and self.where in (None, operation.out_format):
                if before is None or before[0] is not steps:  # operations of a chain have the same steps
                    before = steps, self.change(steps)
                steps = before[1]
            changed.append(operation.with_steps(steps))
        return None if tuple(changed) == one.operations else one.with_operations(changed)

    @property
    def text(self) -> str:
        """The change in words."""
        return f"{self.key} = {self.value}"


@dataclass(frozen=True)
class Hints:
    """Values that are worth a try: NaN words that the box answered, and how far the search goes.

    wide: all values of integers and all entries that can be added to a list; if false, values near the
        present one.
    faults: also keys that only faults set; if false, only the ones that are set.
    last_bit: exponent of the last bit of which the answers to c alone are multiples, if it is high.
    """

    words: tuple[int, ...] = ()
    wide: bool = True
    faults: bool = True
    last_bit: int | None = None


def moves(one: Candidate, hints: Hints) -> Iterator[Move]:
    """Every single change of the keys of a candidate, and of common steps."""
    seen: dict[Step, int] = {}
    for operation in one.operations:
        for step in operation.steps:
            seen.setdefault(step, len(seen))
    # Plain keys of a step come before those that only faults set.
    for step in seen:
        for faults in (False, True):
            yield from _keys(one, step, hints, faults)
        yield from _registers(one, step, hints)
    yield from _operands(one)
    yield from _structure(one, hints)
    yield from _outs(one)


def rare(one: Candidate) -> Iterator[Move]:
    """Changes that few units need: other registers, any step inserted or removed, rounded additions for exact
    ones, other links between operations."""
    for step in one.steps:
        yield from _read(one, step)
        yield from _rounded_to(one, step)
    for what, make in (("in", structure.put_in), ("out", structure.taken_out), ("", structure.exchanged)):
        for label, steps, changed in make(one):
            yield Move(f"{label}: put {what}" if what else label, "", _swapping(steps, changed), 1)
    for label, operations in structure.linked(one):
        yield _whole(label, "", _as(operations), 1)


def _rounded_to(one: Candidate, step: Step) -> Iterator[Move]:
    """The format and the rounding of an intermediate result together: a wrong one of the two hides that the
    other is right."""
    now = getattr(step, "format", None)
    if step.to == "d" or now is None:
        return
    for fmt, mode in product(inner_formats(one.takes), keys.ROUNDING.words):
        if fmt != now:
            new: dict[str, Any] = {"format": fmt, "rounding": mode, "nan": None}
            label = _key(step, "format")
            yield Move(label, f"{fmt.name}, {mode}", _replacing(step, replace(step, **new)), 1)


def joint(one: Candidate) -> Iterator[Move]:
    """Pairs of keys of one step: some have a visible effect only together."""
    yield from {move.text: move for move in _cuts(one)}.values()
    # Keys that hide each other; the docstring of each of these says which, and why.
    for pairs in (
        *(_everywhere, _flushed_alone, _widths_and_roundings, _sticky, _led, _far_below, _in_one),
        *(_aligned_first, _carried, _regrouped, _aligned_by_groups, _evened_and_small),
        *(_small_and_rounded, _zeros_of_products, _held, _fixed, _results, _twice, _not_rounded),
    ):
        yield from pairs(one)
    for said, operations in structure.narrowed(one):
        yield _whole("c: converted first", said, _as(operations), 1)
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
                    label = _key(step, key_name(first, key))
                    said = f"{_shown(value)}, {key_name(second, other)} {_shown(partner)}"
                    yield Move(label, said, _replacing(step, changed), key.fault + other.fault)


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
                    label = _key(step, "fraction_bits")
                    said = f"{bits}, {mode}" + (", nothing else" if base != step else "")
                    yield Move(label, said, _replacing(step, changed), 1)


def _sticky(one: Candidate) -> Iterator[Move]:
    """The sticky rule of an alignment together with its width and rounding: a last bit rounded to odd is
    equivalent to a sticky bit below one bit less. Of two such nearly equal programs, changing only one of the
    three keys explains less than the present values."""
    for step in one.steps_of(Align):
        for cut, mode, more in product(keys.CUT.words, keys.ROUNDING.words, _CUT_BITS):
            bits = tuple((name, n + more) for name, n in step.fraction_bits)
            changed = replace(step, cut=cut, rounding=mode, fraction_bits=bits)
            if cut != step.cut and more:
                label = _key(step, "cut")
                yield Move(label, f"{cut}, {mode}, {more:+d} bits", _replacing(step, changed), 1)
        yield from _sticky_at(step)
    yield from sticky(one)


def sticky(one: Candidate) -> Iterator[Move]:
    """A sticky bit below one width of all registers with the same rounding: at a wrong width it explains
    nothing if many terms leave a bit each."""
    for step in one.steps_of(Align):
        for cut, bits in product(keys.CUT.words, _WIDTHS_TRIED):
            changed = replace(step, cut=cut, fraction_bits=tuple((name, bits) for name in step.of))
            if cut not in (step.cut, "dropped"):
                label = _key(step, "cut")
                yield Move(label, f"{cut}, {bits} bits", _replacing(step, changed), 1)


def _sticky_at(step: Align) -> Iterator[Move]:
    """A sticky bit at another width of one register: while the other registers have their own widths, any
    large width is equally good until its cut bits show."""
    for cut, name, bits in product(keys.CUT.words, step.of, _WIDTHS_TRIED):
        table = tuple((one, bits if one == name else n) for one, n in step.fraction_bits)
        if cut not in (step.cut, "dropped") and table != step.fraction_bits:
            changed = replace(step, cut=cut, fraction_bits=table)
            label = _key(step, "cut")
            yield Move(label, f"{cut}, {name} {bits} bits", _replacing(step, changed), 1)


def _led(one: Candidate) -> Iterator[Move]:
    """An alignment to the leading bit of a term instead of a normalized sum: both cut the same number of
    places below the highest bit, and differ if the term and the sum have different ones."""
    for steps in one.bodies:
        for place, (step, total) in enumerate(pairwise(steps)):
            if not (isinstance(step, Align) and isinstance(total, Sum) and total.of == step.of):
                continue
            rest = _normalizing(steps[place + 2 :], total.to)
            for maximum in dict.fromkeys(m for normal in rest for m in _by_leading_bits(step, normal)):
                led: Step = replace(step, **_meaningless(step, "maximum", maximum), maximum=maximum)
                by = (*steps[:place], led, total, *steps[place + 2 + len(rest) :])
                label = _key(step, "maximum")
                yield Move(label, f"{_shown(maximum)}, not normalized", _swapping(steps, by), 1)


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
                yield Move(f"{label}window", f"{name} {bits}, not spared", _replacing(step, changed), 1)
        for name, _ in step.window:
            for fmt in dict.fromkeys(fmt for fmt in one.formats.values() if fmt.is_float):
                changed = replace(step, window=(), spared=((name, fmt.min_exponent),))
                said = f"{name} {fmt.min_exponent}, no window"
                yield Move(f"{label}spared", said, _replacing(step, changed), 1)


def _by_leading_bits(step: Align, normal: Normalize) -> Iterator[tuple[MaximumOf, ...]]:
    """An alignment to the leading bit of one more candidate, by about the number of places at which a
    normalized sum is cut."""
    places = max(dict(step.fraction_bits).values()) - normal.fraction_bits[0][1]
    apart = tuple(MaximumOf((name,), False, 0, None) for name in step.of)
    for now in dict.fromkeys((step.maximum or (MaximumOf(step.of, False, 0, None),), step.maximum or apart)):
        for index, one in enumerate(now):
            least = one.least if normal.min_exponent is None else normal.min_exponent
            for more in (0, *_NEAR):
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
                    yield Move("align before sum", f"put in, {bits}, {mode}", _before(step, new), 1)


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
            yield Move("multiply of a and b: normalize", label, _swapping(steps, both), 1)


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
        for group in filter(None, _groups(one)) if len(members) > 1 else ():
            changed: dict[Step, Step] = {step: replace(step, group=group) for step in members}
            label = f"groups of {now[0]} {now[1]}"
            yield Move(label, f"{group[0]} {group[1]}", lambda s, c=changed: tuple(c.get(x, x) for x in s), 1)  # type: ignore[misc]


def _aligned_by_groups(one: Candidate) -> Iterator[Move]:
    """Other groups of an alignment, together with its place and rounding: with wrong groups the cut bits fit
    no width and no rounding, and any of these that hides them seems equally good."""
    steps = [s for o in one.operations for s in o.steps if isinstance(s, Align)]
    widths = sorted({bits for step in steps for _, bits in step.fraction_bits})
    for step in dict.fromkeys(step for step in steps if step.group is not None):
        for group, bits, mode in product(_groups(one), widths, keys.ROUNDING.words):
            table = tuple((name, bits) for name in step.of)
            changed = replace(step, group=group, fraction_bits=table, rounding=mode)
            if group != step.group:
                said = f"{'none' if group is None else f'{group[0]} {group[1]}'}, {bits}, {mode}"
                yield Move(_key(step, "group"), said, _replacing(step, changed), 1)


def _evened(one: Candidate) -> Iterator[tuple[Align, int, Align]]:
    """Alignments in which one register has a width of its own, with one width for all; and that register."""
    for step in one.steps_of(Align):
        widths = sorted({bits for _, bits in step.fraction_bits})
        for bits in widths if len(widths) > 1 else ():
            yield step, bits, replace(step, fraction_bits=tuple((name, bits) for name in step.of))


def _evened_and_small(one: Candidate) -> Iterator[Move]:
    """One width for all registers together with spared bits, or with a window: a wider register loses no
    small numbers either, and a narrower one loses them as a window does; few questions distinguish the
    two."""
    for step, bits, even in _evened(one):
        for name in ("spared", "window"):
            for small in dict.fromkeys(_windows(one, step, getattr(step, name), name)):
                if small:
                    label = _key(step, "fraction_bits")
                    said = f"{bits}, {name} {_shown(small)}"
                    given: dict[str, Any] = {name: small}
                    yield Move(label, said, _replacing(step, replace(even, **given)), 1)


def _small_and_rounded(one: Candidate) -> Iterator[Move]:
    """Spared numbers together with the rounding: a number far below the last bit becomes zero if it is cut
    towards zero or spared, but not if it is rounded down or up."""
    for step in one.steps_of(Align):
        for mode in SIDES if step.rounding in SIDES else ():
            for small in _windows(one, step, step.spared, "spared") if mode != step.rounding else ():
                changed = replace(step, spared=small, rounding=mode)
                label = _key(step, "rounding")
                yield Move(label, f"{mode}, spared {_shown(small)}", _replacing(step, changed), 1)


def _zeros_of_products(one: Candidate) -> Iterator[Move]:
    """Zeros that take part in the largest exponent, together with the format of products: that decides the
    exponent of a zero, and nothing else if products are exact in it."""
    for steps in one.bodies:
        first = next((s for s in steps if isinstance(s, Multiply)), None)
        aligned = [s for s in steps if isinstance(s, Align) and "products" in s.of and not s.maximum]
        if first is None or not aligned:
            continue
        step = aligned[0]
        for fmt in _formats(one):
            rounded: Step = replace(first, format=fmt, rounding="toward_zero", nan=None)
            for floor in dict.fromkeys((step.floor, None)):
                counted: Step = replace(step, zeros="maximum", exponent=None, floor=floor)
                by = tuple({first: rounded, step: counted}.get(s, s) for s in steps)
                label = _key(step, "zeros")
                yield Move(label, f"maximum, products in {fmt.name}", _swapping(steps, by), 2)


def _held(one: Candidate) -> Iterator[Move]:
    """A sum in a fixed-point register: its highest bit only shows together with its point and its width."""
    for step in dict.fromkeys(
        s for o in one.operations for s in o.steps if isinstance(s, Sum) and s.to != "d"
    ):
        for top, overflow in product(_TOPS, ("wrap", "saturate")):
            point = min(top - 1, 0)
            changed = replace(step, exponent=point, width=top - point, overflow=overflow)
            if changed != step:
                label = _key(step, "width")
                said = f"{top - point} above 2^{point}, {overflow}"
                yield Move(label, said, _replacing(step, changed), 1)


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
                label = _key(total, "exponent")
                by = tuple(both.get(step, step) for step in steps)
                yield Move(label, f"0, met at {bits} bits", _swapping(steps, by), 1)


def _results(one: Candidate) -> Iterator[Move]:
    """The fraction bits of a result together with its rounding: with the wrong rounding fewer bits are as
    wrong as all. With several operations also for the last one alone: earlier results often keep all bits."""
    last = len(one.operations) - 1
    for step in one.steps_of(Round):
        if not step.format.is_float:
            continue
        if step.result_fraction_bits is not None:
            whole = _replacing(step, replace(step, result_fraction_bits=None))
            yield _whole("earlier results: fraction_bits", "none", _earlier(partial(_with, change=whole)), 1)
        alone = (None, last) if last and step == one.operations[last].final else (None,)
        for only, bits, mode in product(alone, range(step.format.fraction_bits), keys.ROUNDING.words):
            changed = replace(step, result_fraction_bits=bits, rounding=mode)
            if (step.rounding != mode or only is not None) and step.result_fraction_bits != bits:
                label = _key(step, "fraction_bits")
                label = label if only is None else f"d: {label}"
                yield Move(label, f"{bits}, {mode}", _replacing(step, changed), 1, only=only)


def _with(operation: Operation, change: Callable[[Steps], Steps]) -> Operation:
    return operation.with_steps(change(operation.steps))


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
            yield Move("round", f"first to f32, {mode}, then {then}", _swapping(steps, both), 1)


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
                yield Move("rounded once", what, _swapping(steps, by), 1)


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
                aligned = replace(step, **_meaningless(step, "maximum", to), maximum=to, fraction_bits=bits)
                by = aligned, replace(total, complement=complement), *rounds
                said = f"{_shown(to)}, {more:+d} bits, complement {complement}{how}"
                label = _key(step, "maximum")
                yield Move(label, said, _instead_of((step, total, *rest), by), 1)


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


def _instead_of(steps: Steps, by: Steps) -> Callable[[Steps], Steps]:
    """The last steps of operations in another form."""
    return lambda now: (*now[: -len(steps)], *by) if now[-len(steps) :] == steps else now


def alone(one: Candidate, hints: Hints) -> Iterator[Move]:
    """The same changes in only one of several operations."""
    for index, operation in enumerate(one.operations) if len(one.operations) > 1 else ():
        part = replace(one, operations=(operation,))
        tried = [
            move
            for step in dict.fromkeys(operation.steps)
            for faults in (False, True)
            for move in _keys(one, step, hints, faults)
        ]
        for move in (*tried, *rare(part)):
            yield replace(move, only=index, rank=move.rank + 1, key=f"{operation.to}: {move.key}")


def resets(one: Candidate) -> Iterator[Move]:
    """Every changed key back at its default, one width for all registers of an alignment, no normalization of
    intermediate numbers, and one sum instead of two: an early helpful change can block later ones."""
    for align_, bits, even in _evened(one):
        label = _key(align_, "fraction_bits")
        yield Move(label, f"{bits} for all", _replacing(align_, even))
    for step in one.steps:
        for name, key, default in declared(step):
            now = getattr(step, name)
            if default is MISSING or now in (default, None) or isinstance(key, FormatName | Target):
                continue
            label = _key(step, key_name(name, key))
            yield Move(label, _shown(default), _replacing(step, replace(step, **{name: default})))
    for of in dict.fromkeys(s.of for o in one.operations for s in o.steps if isinstance(s, Normalize)):
        yield Move(f"normalize of {' and '.join(of)}", "left out, all", _not_normalized(of))
    yield from _in_one(one)


def _not_normalized(of: tuple[str, ...]) -> Callable[[Steps], Steps]:
    return lambda steps: tuple(s for s in steps if not (isinstance(s, Normalize) and s.of == of))


def settings(operations: Iterable[Operation]) -> dict[str, str]:
    """The value of every key by the name that moves use; several values if steps differ."""
    found: dict[str, dict[str, None]] = {}
    for step in dict.fromkeys(s for operation in operations for s in operation.steps):
        for name, key, _ in declared(step):
            label = _key(step, key_name(name, key))
            found.setdefault(label, {})[_shown(getattr(step, name))] = None
    return {label: "; ".join(values) for label, values in found.items()}


# Keys -------------------------------------------------------------------------------------------------------


def _keys(one: Candidate, step: Step, hints: Hints, faults: bool = False) -> Iterator[Move]:
    """Every key with every other value; `faults`: only keys that faults set; if false, the others."""
    listed = list(declared(step))
    defaults = {name: default for name, _, default in listed}
    for name, key, default in listed:
        if key.fault != faults or (faults and not hints.faults and getattr(step, name) == default):
            continue
        for value in _values(one, step, name, key, hints):
            changed = replace(step, **_meaningless(step, name, value), **{name: value})
            held = {other: getattr(changed, other) for other in defaults}
            if value != getattr(step, name) and applies(key, held, defaults):
                label = _key(step, key_name(name, key))
                where = one.formats["d"] if isinstance(key, Word) and value is not None else None
                yield Move(label, _shown(value), _replacing(step, changed), 2 * key.fault, where=where)
    if isinstance(step, Multiply) and step.format is None and not faults:
        for fmt in _formats(one):
            for mode in ("nearest_even", "toward_zero", "to_odd"):
                changed = replace(step, format=fmt, rounding=mode, **_meaningless(step, "format", fmt))
                yield Move("multiply: format", f"{fmt.name}, {mode}", _replacing(step, changed))


def _meaningless(step: Step, name: str, value: Any) -> dict[str, Any]:
    """The default values of the keys that have no meaning next to this value of another key."""
    if isinstance(step, Align) and name in ("maximum", "exponent") and value not in (None, ()):
        rest = {"maximum": (), "exponent": None, "floor": None, "shift_limit": None, "left_out": ()}
        return {key: none for key, none in rest.items() if key != name} | {"zeros": "ignored"}
    if isinstance(step, Align) and name == "floor" and value is not None:
        return {"maximum": (), "exponent": None}
    if name == "format" and hasattr(step, "nan"):  # the word of a NaN is one of the format
        return {"nan": None}
    return {}


def _read(one: Candidate, step: Step) -> Iterator[Move]:
    """Other registers that a step reads."""
    scaled = bool(one.takes.scale_block)
    known = dict.fromkeys(
        name
        for operation in one.operations
        if step in operation.steps
        for name in structure.readable(operation, operation.steps.index(step), scaled)
    )
    for of in structure.other_registers(step, tuple(known)):
        changed = with_registers(step, of)
        yield Move(f"{step.op} of {' and '.join(step.of)}", f"of {', '.join(of)}", _replacing(step, changed))


def _swapping(steps: Steps, by: Steps) -> Callable[[Steps], Steps]:
    return lambda now: by if now == steps else now


def _replacing(step: Step, by: Step) -> Callable[[Steps], Steps]:
    def change(steps: Steps) -> Steps:
        return tuple(by if one == step else one for one in steps)

    return change


def _key(step: Step, key: str) -> str:
    """The name of a key of a step, as moves and reports have it: "align of products and c: rounding"."""
    return f"{step.op} of {' and '.join(step.of)}: {key}"


def _shown(value: Any) -> str:
    if isinstance(value, Format):
        return value.name
    if isinstance(value, tuple):
        return (
            ", ".join(" ".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in value)
            or "none"
        )
    return "none" if value is None else str(value)


def _values(one: Candidate, step: Step, name: str, key: Key, hints: Hints) -> Iterable[Any]:
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
            return _integers(one, name, now, key, hints) + (list(_FLOORS) if whole else [])
        # Tables by register: one value for all, or another for one.
        case Widths(for_all=True):
            return _widths(now, hints)
        case Roundings():
            return _roundings(step.of, now)
        case Widths():
            return _windows(one, step, now, name)
        case Rules(vocabulary=vocabulary):
            return [(), *(((register, word),) for register in step.of for word in vocabulary.words)]
        # The format of d is known; another one only for intermediate results.
        case FormatName():
            fixed = getattr(step, "to", "") == "d"
            return () if fixed else [*_formats(one), *([None] if isinstance(step, Multiply) else [])]
        # Words of NaNs: those that the box answered, as far as the format holds them.
        case Word():
            return (None, *(word for word in hints.words if word < 1 << _word_bits(one, step)))
        case Grouping():
            return _groups(one)
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
        near = (replace(one, plus=one.plus + step) for step in _NEAR)
        other = replace(one, leading=not one.leading)
        lowest = (replace(one, least=least) for least in (None, *range(-160, 20, 4)))
        ends = () if one.least is None else (replace(one, least=one.least + step) for step in _NEAR)
        yield from ((*now[:place], new, *now[place + 1 :]) for new in (*near, other, *lowest, *ends))
        for least in (None, *_LEASTS) if len(one.of) > 1 else ():
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


def _formats(one: Candidate) -> list[Format]:
    """Formats that an earlier result may have."""
    known = [one.formats["d"], one.formats["c"], *map(get_format, ("f32", "f16", "bf16", "f64"))]
    return [fmt for fmt in dict.fromkeys(known) if fmt.is_float == one.formats["d"].is_float and fmt.is_float]


def _integers(one: Candidate, name: str, now: int | None, key: Integer, hints: Hints) -> list[int | None]:
    d = one.formats["d"]
    least = d.min_exponent if d.is_float else 0
    near = [] if now is None else [now + step for step in _NEAR]
    wide: dict[str, Iterable[int]] = {
        "floor": [*range(least - 40, least + 4), *_FLOORS[:: _SPREAD if now is None else 400]],
        "min_exponent": [*range(least - 4, least + 4), -126, -14, *range(-150, 64, _SPREAD)],
        "overflow_exponent": [d.max_exponent + 1, 128, 16, 1024, *range(-42, 150, _SPREAD)],
        "exponent": [0, *range(-42, 43, _SPREAD)],
        "width": range(2, 48),
        "shift_limit": range(0, 73),
        "sticky_gap": range(0, 5),
        "result_fraction_bits": range(max(d.fraction_bits - 24, 0), d.fraction_bits),
    }
    tried = [*near, *(wide.get(name, ()) if hints.wide else ())]
    return [None if key.low > 0 or name not in ("sticky_gap", "random") else 0] + [
        value for value in dict.fromkeys(tried) if key.low <= value <= key.high
    ]


def _widths(now: tuple[tuple[str, int], ...], hints: Hints) -> Iterator[tuple[tuple[str, int], ...]]:
    """All registers with one width, and each register with another."""
    span = range(_MOST_BITS + 1) if hints.wide else ()
    values = sorted({*span, *(bits + step for _, bits in now for step in (*_NEAR, 0))})
    values = [value for value in values if 0 <= value <= _MOST_BITS]
    for value in values:
        yield tuple((register, value) for register, _ in now)
    for index in range(len(now) if len(now) > 1 else 0):
        around = {now[index][1] + step for step in _NEAR}
        for value in (value for value in values if value in around or value % 3 == 0):
            yield tuple((r, value if i == index else bits) for i, (r, bits) in enumerate(now))


def _windows(
    one: Candidate, step: Step, now: tuple[tuple[str, int], ...], name: str
) -> Iterator[tuple[tuple[str, int], ...]]:
    """No window (or spared numbers), or one of another register."""
    yield ()
    least = {fmt.min_exponent for fmt in one.formats.values() if fmt.is_float} if name == "spared" else set()
    values = _WINDOWS if name == "window" else (*sorted(least), *range(-140, 10, _SPREAD))
    for register in step.of:
        near = [dict(now)[register] + one for one in _NEAR] if register in dict(now) else []
        for value in (value for value in (*near, *values) if name != "window" or value >= 0):
            yield ((register, value),)


def _groups(one: Candidate) -> Iterator[tuple[str, int] | None]:
    k = one.takes.stored_k
    yield None
    # Of more products only groups of equal size are tried.
    most = 16
    yield from (group for group in structure.groups(k) if k <= most or k % group[1] == 0)


def _registers(one: Candidate, step: Step, hints: Hints) -> Iterator[Move]:
    """Special values detected in other registers, also without earlier findings about the registers
    before."""
    if not isinstance(step, SpecialValues):
        return
    words = tuple(dict.fromkeys((step.nan, *hints.words)))
    # Earlier findings can hide that a register is wrong: each change is also tried without them.
    plain = replace(step, nans=(), opposite_infinities="nan")
    for base in dict.fromkeys((step, plain)):
        more = "" if base == step else ", nothing else"
        for of in _sources(one, step):
            for word in words if of != step.of else ():
                changed = replace(base, of=of, nan=word)
                said = " and ".join(of) + ("" if word == step.nan else f", {_shown(word)}") + more
                where, rank = (None, 0) if word == step.nan else (one.formats["d"], 1)
                yield Move("special_values: of", said, _replacing(step, changed), rank, where=where)
                # With fewer registers the other NaNs are left to later steps: three words for these are tried
                # with each word that was found.
                for rest in words[:3] if set(of) < set(step.of) else ():
                    left = _leaving(step, changed, rest)
                    rounded = f"{said}, others rounded, {_shown(rest)}"
                    yield Move("special_values: of", rounded, left, 1, where=one.formats["d"])
    # Whether a NaN of an operand is handed on shows in its payload.
    if not step.nans:
        for (cause,) in _owned(one, ("a",), ("b",), ("factor",), ("c",)):
            handed_on = _replacing(step, replace(step, nans=((cause, None),)))
            yield Move("special_values: nans", f"{cause} handed on", handed_on, 1)


def _sources(one: Candidate, step: SpecialValues) -> list[tuple[str, ...]]:
    """Registers in which special values can be detected: any addend, or a sum."""
    held = {"c": True, "scales": bool(one.takes.scale_block)}
    for operation in one.operations:
        if step in operation.steps:
            held |= {"products": bool(operation.k_index), "addends": bool(operation.addends)}
            held |= {"dot": any(other.to == "dot" for other in operation.steps)}
    terms = [name for name in ("products", "c", "addends", "scales") if held.get(name)]
    sets = [of for size in range(1, len(terms) + 1) for of in combinations(terms, size)]
    rest = [of for of in sets if "products" not in of] if held.get("dot") else []
    return [*sets, ("total",), *(("dot", *of) for of in ((), *rest))] if rest else [*sets, ("total",)]


def _leaving(step: SpecialValues, by: SpecialValues, word: int | None) -> Callable[[Steps], Steps]:
    """Detection of special values in fewer registers, and a word for NaNs that are left to later steps."""

    def change(steps: Steps) -> Steps:
        if step not in steps:
            return steps
        place = steps.index(step)
        kinds = (Round, Additions)
        rest = (replace(s, nan=word) if isinstance(s, kinds) else s for s in steps[place + 1 :])
        return (*steps[:place], by, *rest)

    return change


# Structure --------------------------------------------------------------------------------------------------


def _structure(one: Candidate, hints: Hints) -> Iterator[Move]:
    """Steps inserted, removed or split."""
    for kind in (Flush, Normalize, Align, SpecialValues, HiddenBit, Scale):
        for step in one.steps_of(kind):
            yield Move(f"{step.op} of {' and '.join(step.of)}", "left out", _without(step))
    yield from _flushes(one)
    yield from _same_words(one, hints)
    yield from _numbers_for_nans(one, hints)
    yield from _converted(one)
    yield from _inserted(one, hints)
    yield from _split(one)
    yield from _in_one(one)


def _without(step: Step) -> Callable[[Steps], Steps]:
    return lambda steps: tuple(s for s in steps if s != step)


def _flushes(one: Candidate) -> Iterator[Move]:
    for sign in ("signed", "positive"):
        for of in _owned(one, ("a", "b", "c"), ("a", "b"), ("c",), ("a",), ("b",)):
            yield Move(f"flush of {' and '.join(of)}", sign, _flushing(of, sign))


def _owned(one: Candidate, *sets: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Sets of operands without those that the unit lacks, each once."""
    left = (tuple(name for name in of if name not in one.takes.unread) for of in sets)
    yield from filter(None, dict.fromkeys(left))


def _flushing(of: tuple[str, ...], sign: str) -> Callable[[Steps], Steps]:
    """Operands flushed before any other step in operations that read them: operations that only add earlier
    results have no a and b."""

    def change(steps: Steps) -> Steps:
        names = {name for step in steps for name in step.of}
        names |= {"c"} if any(isinstance(step, Fma) and step.start == "c" for step in steps) else set()
        read = tuple(name for name in of if name in names)
        return (Flush(of=read, sign=sign), *steps) if read else steps

    return change


def _flushed_alone(_: Candidate) -> Iterator[Move]:
    """Some operands flushed, or none, instead of all earlier steps on them: a normalized operand is no longer
    flushed, so the two together resemble a flush of the others."""
    subsets = [of for size in range(len(_FACTORS_AND_C) + 1) for of in combinations(_FACTORS_AND_C, size)]
    for of, sign in product(subsets, ("signed", "positive")):

        def change(steps: Steps, of: tuple[str, ...] = of, sign: str = sign) -> Steps:
            rest = dropwhile(_is_of_operands, steps)
            return _flushing(of, sign)(tuple(rest))

        yield Move("operands first", f"{' and '.join(of) or 'none'} flushed, {sign}", change, 1)


def _is_of_operands(step: Step) -> bool:
    return isinstance(step, Flush | Normalize | HiddenBit) and set(step.of) <= set(_FACTORS_AND_C)


def _same_words(one: Candidate, hints: Hints) -> Iterator[Move]:
    """One word for every NaN that a step makes, with NaNs of operands passed on, or not, or only by adders:
    while a later step makes its own words, the words of earlier steps do not show, and a NaN that an adder
    passes on is the word of the step that made it."""
    kinds: dict[str, tuple[type[Step], ...]] = {
        "not": (),
        "handed on": (Additions, Fma, SpecialValues),
        "handed on by adders": (Additions, Fma),
    }
    if any(isinstance(step, Fma) for operation in one.operations for step in operation.steps):
        kinds["handed on by sums"] = (Additions,)
    for word in hints.words:
        for said, handing in kinds.items():

            def change(steps: Steps, word: int = word, handing: tuple[type[Step], ...] = handing) -> Steps:
                return tuple(_with_words(step, word, isinstance(step, handing)) for step in steps)

            text = f"{word:#x}, operand NaNs {said}"
            yield Move("nan of every step", text, change, where=one.formats["d"])


def _numbers_for_nans(one: Candidate, hints: Hints) -> Iterator[Move]:
    """A number for NaN operands of products, and a NaN for all others if an operation adds no products: if
    most NaNs have one answer, that word of the last operation explains more than either change."""
    d = one.formats["d"]
    if len(one.operations) == 1 or not d.is_float:
        return
    numbers, nans = ([w for w in hints.words if (d.decode(w).kind == Kind.NAN) == kind] for kind in (0, 1))
    for number, nan, causes in product(numbers, nans, (("factor",), ("c",), ("factor", "c"))):
        given = tuple((cause, number) for cause in causes)
        found = []
        for o in one.operations:
            words: dict[str, Any] = {"nan": nan} if o.out_format == d else {}
            words["nans"] = given if o.k_index else ()
            steps = [replace(s, **words) if isinstance(s, SpecialValues) else s for s in o.steps]
            found.append(o.with_steps(steps))
        said = f"{' and '.join(causes)} {number:#x}, others {nan:#x}"
        yield _whole("nans of products", said, _as(tuple(found)), 1)


def _with_words(step: Step, word: int, kept: bool) -> Step:
    match step:
        case Additions():
            return replace(step, nan=word, first_nan=kept)
        case Fma():
            return replace(step, nan=word, nan_order=("a", "b", "c") if kept else ())
        case SpecialValues():
            return replace(step, nan=word, nans=(("factor", None), ("c", None)) if kept else ())
    return step


def _converted(one: Candidate) -> Iterator[Move]:
    """Operands whose subnormal numbers are normalized first, as by a conversion to a wider format."""
    for of in _owned(one, ("c",), ("a", "b", "c")):
        if all(one.formats[name].is_float for name in of):
            widths = tuple((name, one.formats[name].fraction_bits) for name in of if name != "b")
            names = tuple(name for name, _ in widths)
            step = Normalize(of=names, fraction_bits=widths, rounding="toward_zero")
            yield Move(
                f"normalize of {' and '.join(names)}",
                "first",
                lambda steps, n=step: (n, *steps),  # type: ignore[misc]
            )


def _inserted(one: Candidate, hints: Hints) -> Iterator[Move]:
    """A step after another one: special values and normalization after the step that wrote the numbers, an
    alignment before a sum."""
    for step in one.steps:
        if isinstance(step, Multiply | Scale | Fma) and step.to != "d" and has_special(one.takes):
            term = step.to or step.of[0]
            for of in _owned(one, (term,), (term, "c")):
                yield Move(
                    "special_values of " + " and ".join(of), "looked for", _behind(step, SpecialValues(of=of))
                )
        if isinstance(step, Sum) and step.to != "d":
            yield from _renormalized(one, step, hints)
        if isinstance(step, Sum):
            yield Move("align before sum", "put in", _before(step, align(step.of, step.group)), 1)
        if isinstance(step, Round) and step.to == "d" and one.formats["d"].is_float:
            for fmt in _formats(one):
                for mode in ("nearest_even", "toward_zero"):
                    first = replace(step, to="partial", format=fmt, rounding=mode, nan=None)
                    twice: Steps = (first, replace(step, of=("partial",)))
                    yield Move("round", f"first to {fmt.name}, {mode}", _instead(step, twice), 1)


def _renormalized(one: Candidate, step: Sum, hints: Hints) -> Iterator[Move]:
    """A sum normalized and cut once more, alone and with one bit more in its addends."""
    wider = next(
        (s for o in one.operations for s in o.steps if isinstance(s, Align) and s.of == step.of), None
    )
    for mode in ("down", "toward_zero", "nearest_even"):
        for bits in range(20, 40) if hints.wide else (START_BITS,):
            normal = Normalize(of=(step.to,), fraction_bits=((step.to, bits),), rounding=mode)
            yield Move(f"normalize of {step.to}", f"{bits}, {mode}", _behind(step, normal), 1)
            if hints.last_bit is not None:
                least = replace(normal, min_exponent=hints.last_bit + bits)
                said = f"{bits}, {mode}, not below 2^{least.min_exponent}"
                yield Move(f"normalize of {step.to}", said, _behind(step, least), 1)
            if wider is not None:
                table = tuple((name, n + 1 if name == step.of[0] else n) for name, n in wider.fraction_bits)
                before = _replacing(wider, replace(wider, fraction_bits=table))
                both = _after(before, _behind(step, normal))
                yield Move(f"normalize of {step.to}", f"{bits}, {mode}, one bit more before it", both, 1)


def _after(first: Callable[[Steps], Steps], then: Callable[[Steps], Steps]) -> Callable[[Steps], Steps]:
    return lambda steps: then(first(steps))


def _behind(step: Step, new: Step) -> Callable[[Steps], Steps]:
    return _instead(step, (step, new))


def _before(step: Step, new: Step) -> Callable[[Steps], Steps]:
    return _instead(step, (new, step))


def _instead(step: Step, by: Sequence[Step]) -> Callable[[Steps], Steps]:
    def change(steps: Steps) -> Steps:
        return tuple(new for one in steps for new in (by if one == step else (one,)))

    return change


def _split(one: Candidate) -> Iterator[Move]:
    """Products (or groups) aligned and summed separately before c is added; or by groups before that."""
    for name in ("products", "groups"):
        pair = _sum_with_c(one, name)
        if pair is None:
            continue
        step, total = pair
        dot: Steps = (_own(step, (name,)), Sum(of=(name,), to="dot"))
        for bits in (*range(22, 40, 2), START_BITS):
            meet = align(("dot", "c"), bits=bits)
            meet = replace(meet, floor=step.floor)
            then: Steps = (*dot, meet, replace(total, of=("dot", "c")))
            yield Move("c", f"meets the sum of {name}, at {bits} bits", _exchange(step, total, then), 1)
    for step in one.steps_of(Align):
        if step.of == ("products",) and step.group is None:
            sums = [s for o in one.operations for s in o.steps if isinstance(s, Sum) and s.of == step.of]
            for group in filter(None, _groups(one)) if sums else ():
                inner: Steps = (replace(step, group=group), Sum(of=("products",), to="groups", group=group))
                outer: Steps = (_renamed(step, "groups"), replace(sums[0], of=("groups",)))
                yield Move(
                    "products", f"summed by groups, {group}", _exchange(step, sums[0], (*inner, *outer)), 1
                )


def _in_one(one: Candidate) -> Iterator[Move]:
    """Products (or groups) aligned and added with c in one sum, instead of a separate sum and all steps up to
    the sum with c: two sums have more keys, which nearly repeat those of one."""
    for steps in one.bodies:
        for name in ("products", "groups"):
            for said, aligned, place, end in _met_at_once(steps, name):
                total, rest = steps[end], (s for s in steps[end + 1 :] if not isinstance(s, Normalize))
                assert isinstance(total, Sum)
                by = (*steps[:place], aligned, Sum(of=aligned.of, to=total.to), *rest)
                yield Move(f"{name} and c", f"in one sum, {said}", _swapping(steps, by), 1)


def _met_at_once(steps: Steps, name: str) -> Iterator[tuple[str, Align, int, int]]:
    """Alignments of products (or groups) with the terms that their sum meets later: plain, and with that
    alignment's keys; and the range of steps that they replace."""
    found = _in_two(steps, name)
    if found is None:
        return
    first, last = found
    meet, total = steps[last - 1], steps[last]
    assert isinstance(meet, Align)
    of = (name, *(one for one in total.of if one in ("c", "addends")))
    widths = sorted({bits for _, bits in meet.fraction_bits})
    plain = [replace(align(of, bits=bits), floor=meet.floor) for bits in widths]
    yield from ((f"at {bits} bits", one, first, last) for bits, one in zip(widths, plain, strict=True))
    written = next(s.to for s in reversed(steps[:last]) if isinstance(s, Sum))
    alike = with_registers(relabelled(meet, written, name), of)
    assert isinstance(alike, Align)
    if alike not in plain:
        yield "as their sum met c", alike, first, last


def _in_two(steps: Steps, name: str) -> tuple[int, int] | None:
    """Where the separate sum of products (or groups) begins, including its alignment, and where the sum with
    c is; None if there are no two sums, or a rounding is between them."""
    kinds = (Align, Sum, Normalize)
    first = next((n for n, s in enumerate(steps) if isinstance(s, kinds) and s.of == (name,)), None)
    sums = [n for n, s in enumerate(steps) if isinstance(s, Sum)]
    if first is None or sum(n >= first for n in sums) < 2 or not isinstance(steps[sums[-1] - 1], Align):
        return None
    return (first, sums[-1]) if all(isinstance(s, kinds) for s in steps[first : sums[-1]]) else None


def _sum_with_c(one: Candidate, name: str) -> tuple[Align, Sum] | None:
    steps = [s for o in one.operations for s in o.steps]
    aligned = next((s for s in steps if isinstance(s, Align) and set(s.of) == {name, "c"}), None)
    total = next((s for s in steps if isinstance(s, Sum) and set(s.of) == {name, "c"}), None)
    return None if aligned is None or total is None else (aligned, total)


def _own(step: Align, of: tuple[str, ...]) -> Align:
    widths = tuple(item for item in step.fraction_bits if item[0] in of)
    modes = keys.one_or_each(tuple(item for item in keys.modes_of(step.rounding, step.of) if item[0] in of))
    return replace(step, of=of, fraction_bits=widths, rounding=modes, window=(), spared=(), floor=None)


def _renamed(step: Align, name: str) -> Align:
    (_, mode), *_ = keys.modes_of(step.rounding, step.of)
    return replace(step, of=(name,), fraction_bits=((name, step.fraction_bits[0][1]),), rounding=mode)


def _exchange(first: Step, second: Step, by: Steps) -> Callable[[Steps], Steps]:
    def change(steps: Steps) -> Steps:
        if first not in steps or second not in steps:
            return steps
        place = steps.index(first)
        rest = tuple(s for s in steps if s not in (first, second))
        return (*rest[:place], *by, *rest[place:])

    return change


def _outs(one: Candidate) -> Iterator[Move]:
    """Other formats for the results of earlier operations."""
    for fmt in _formats(one) if len(one.operations) > 1 else ():
        yield _whole("earlier results: format", fmt.name, _earlier(partial(with_results, fmt=fmt)))


def _operands(one: Candidate) -> Iterator[Move]:
    """a and b converted to a wider format first, in which subnormal numbers have exponents of their own."""
    a, b = one.formats["a"], one.formats["b"]
    if a.is_float and b.is_float:
        for fmt in (None, *map(get_format, ("f16", "bf16", "f32"))):
            if fmt is None or (fmt not in (a, b) and holds(fmt, a) and holds(fmt, b)):
                yield _whole("a and b: format", _shown(fmt), _converting(fmt))


@dataclass(frozen=True)
class _Operations(Move):
    """A change of the operations as a whole: what `made` makes of those of a candidate."""

    made: Callable[[Operations], Operations] = lambda operations: operations

    def apply(self, one: Candidate) -> Candidate | None:
        """As of a move."""
        changed = self.made(one.operations)
        return None if changed == one.operations else one.with_operations(changed)


def _whole(key: str, value: str, made: Callable[[Operations], Operations], rank: int = 0) -> Move:
    return _Operations(key, value, lambda steps: steps, rank, made=made)


def _as(operations: Operations) -> Callable[[Operations], Operations]:
    """Other operations altogether."""
    return lambda _: operations


def _earlier(change: Callable[[Operation], Operation]) -> Callable[[Operations], Operations]:
    """All operations changed but the last one."""
    return lambda operations: (*map(change, operations[:-1]), operations[-1])


def _converting(fmt: Format | None) -> Callable[[Operations], Operations]:
    """Another format of a and b in all operations that multiply."""
    return lambda operations: tuple(replace(o, operand_format=fmt) if o.k_index else o for o in operations)


def nan_words(one: Format, codes: Iterable[int], most: int = 6) -> tuple[int, ...]:
    """The NaNs among codes, the most common first."""
    counts: dict[int, int] = {}
    for code in codes:
        counts[code] = counts.get(code, 0) + 1
    found = [code for code in sorted(counts, key=lambda c: -counts[c]) if one.decode(code).kind == Kind.NAN]
    return tuple(found[:most])
