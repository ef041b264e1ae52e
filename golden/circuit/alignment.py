"""Align and normalize in a circuit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from golden.circuit.numbers import Builder, Number, refuse
from golden.circuit.rounding import below_mask, shifted
from golden.circuit.words import Word
from golden.program.bounds import Bounds, Registers, follow, groups_of, maximum_of
from golden.program.steps import Align, Normalize, rounding_of

Term = tuple[str, str, Number]
"""A register, the label of one of its numbers, and the number."""


@dataclass(frozen=True)
class Frame:
    """Where the terms of one group are aligned to.

    Attributes:
        maximum: the exponent.
        reach: its least and its greatest value.
        step, bounds, after: what aligns them, and the bounds of the registers before and after it.
    """

    maximum: Word
    reach: tuple[int, int]
    step: Align
    bounds: Registers
    after: Registers


def align(build: Builder, step: Align, terms: Sequence[Term], bounds: Registers) -> list[Number]:
    """The aligned terms, in the order in which they came."""
    after = follow(step, bounds)
    found = [number for _, _, number in terms]
    groups = groups_of(step, len(terms))
    for at, group in enumerate(groups):
        index = range(*group.indices(len(terms)))
        own = [terms[i] for i in index]
        name = "emax" if len(groups) == 1 else f"emax[{at}]"
        maximum = build.mark(name, _maximum(build, step, own, bounds))
        build.say_range(name, maximum)
        frame = Frame(maximum, maximum_of(step, bounds), step, bounds, after)
        for i in index:
            found[i] = _aligned(build, terms[i], frame)
    return found


# The exponent -----------------------------------------------------------------------------------------------


def _maximum(build: Builder, step: Align, terms: Sequence[Term], bounds: Registers) -> Word:
    """The exponent that these terms align to. Where no term takes part, nothing depends on it."""
    words = build.words
    if step.exponent is not None:
        return build.exponent(step.exponent)
    if step.maximum:
        return _largest_candidate(build, step, terms, bounds)
    left_out = dict(step.left_out)
    lowest = maximum_of(step, bounds)[0] if step.floor is None else step.floor
    lowest = min([lowest, *(bounds[name].bottom for name, _, _ in terms)]) if step.floor is None else lowest
    bottom = build.exponent(lowest)

    def parts(names: set[str]) -> list[tuple[Word, Word]]:
        """Whether a number takes part, and its exponent."""
        return [
            (_takes_part(build, step, number), number.exponent) for name, _, number in terms if name in names
        ]

    inside = parts({name for name, _, _ in terms} - set(left_out))
    labels = [label for name, label, _ in terms if name not in left_out]
    found = [
        build.mark(f"candidate[{label}]", words.choose(takes, exponent, bottom))
        for label, (takes, exponent) in zip(labels, inside, strict=True)
    ]
    if step.floor is not None or not left_out:
        return build.largest([*found, bottom] if step.floor is not None else found or [bottom])
    # Registers left out count where there is nothing else.
    every = parts({name for name, _, _ in terms})
    any_inside = build.any_of(takes for takes, _ in inside)
    of_all = build.largest([words.choose(takes, exponent, bottom) for takes, exponent in every])
    return words.choose(any_inside, build.largest(found), of_all) if found else of_all


def _takes_part(build: Builder, step: Align, number: Number) -> Word:
    """Whether a number takes part in the maximum."""
    if step.zeros == "maximum":
        return build.words.invert(build.words.either(number.nan, number.infinity))
    return build.finite(number)


def _largest_candidate(build: Builder, step: Align, terms: Sequence[Term], bounds: Registers) -> Word:
    """The largest of what `maximum` lists."""
    words = build.words
    sure = any(one.least is not None for one in step.maximum)
    for name in {name for name, _, _ in terms}:
        covering = [one for one in step.maximum if name in one.of]
        empty = bounds[name].cancels or bounds[name].vanishes
        if not sure and (not covering or (empty and all(one.leading for one in covering))):
            raise refuse(
                f"a number of '{name}' alone has no candidate and stays where it is", "align", "maximum"
            )
    bottom = build.exponent(
        min([bounds[name].lsb for name, _, _ in terms] + [bounds[name].bottom for name, _, _ in terms]) - 1
    )
    found = []
    for one in step.maximum:
        looked = [number for name, _, number in terms if name in one.of]
        takes = [build.finite(number) for number in looked]
        if one.leading:
            takes = [
                words.both(takes, words.nonzero(number.magnitude))
                for takes, number in zip(takes, looked, strict=True)
            ]
            places = [build.leading_place(number) for number in looked]
        else:
            places = [number.exponent for number in looked]
        lowest = bottom if one.least is None else build.exponent(one.least)
        chosen = [words.choose(take, place, lowest) for take, place in zip(takes, places, strict=True)]
        found.append(build.plus(build.largest([*chosen, lowest]), one.plus))
    return build.largest(found)


# One term ---------------------------------------------------------------------------------------------------


def _aligned(build: Builder, term: Term, frame: Frame) -> Number:
    name, label, number = term
    words, step, maximum = build.words, frame.step, frame.maximum
    places = dict(step.fraction_bits)[name]
    own, finite = build.with_sticky(number), build.finite(number)
    if step.exponent is None and not step.maximum and name not in dict(step.left_out):
        # The largest exponent is not below that of any number that takes part in it.
        build.fact(
            f"maximum_covers[{label}]",
            words.either(words.invert(finite), words.invert(words.less_signed(maximum, number.exponent))),
        )
    distance, least = _distance(build, name, own, frame)
    more = -places - own.offset  # places between the two last bits where the exponents are equal
    room = max(0, -(least + more))
    more += room
    magnitude = build.pad(own.magnitude, room)
    bounds = frame.after[name]
    bits = places + int(step.cut == "sticky_added" or (step.zeros == "sticky" and step.cut == "dropped"))
    width = max(bounds.integer_bits, 1) + bits
    amount = build.plus(distance, more)
    zeroed = _outside(build, name, number, places, frame, magnitude, amount)
    twos = None
    seen = build.no if step.cut == "dropped" else _seen(build, magnitude, amount, step.sticky_gap)
    rounding = rounding_of(step, name)
    if rounding == "toward_zero" and least >= 0 and more >= 0:
        # Only shifted: what falls off the end is gone.
        moved = words.shift_right(magnitude, distance)
        kept = words.extract(moved, more) if more < moved.width else words.constant(0, 1)
    elif rounding == "down" and step.cut == "dropped" and step.zeros != "sticky":
        # Down in two's complement is an arithmetic shift.
        wide = build.signed(replace(own, magnitude=magnitude, offset=0, twos=None), magnitude.width + 1, 0)
        if own.twos is not None:
            wide = build.pad(own.twos, room)
        moved = words.shift_right_signed(wide, amount)
        twos = words.extend_signed(moved, width + 1)
        kept = words.choose(words.bit(twos, width), words.neg(twos), twos)
    else:
        kept = shifted(build, build.sign_of(own), magnitude, amount, rounding)
    kept = words.extend(kept, max(places + max(bounds.integer_bits, 1), 1))
    if step.cut == "sticky_added":
        kept = words.concat(kept, seen)
    elif bits > places:
        kept = build.pad(kept, 1)
    kept = words.extend(kept, width)
    keep = words.invert(zeroed)
    sticky = words.both(seen, words.both(keep, finite)) if step.cut == "sticky_or" else None
    nothing = words.constant(0, kept.width)
    kept = words.choose(zeroed, nothing, kept)
    if twos is not None:
        twos = words.choose(zeroed, words.constant(0, twos.width), twos)
    exponent = maximum
    zero, offset = number.zero, -bits
    if step.zeros == "ignored":
        # A zero keeps its exponent, which nothing reads but a later step that looks at zeros.
        exponent = words.choose(number.zero, number.exponent, maximum) if build.reads_zeros else maximum
    elif step.zeros == "sticky":
        far = words.both(number.zero, words.less_signed(build.plus(number.exponent, places), maximum))
        if step.cut == "sticky_or":
            sticky = words.either(sticky, far) if sticky is not None else far
        else:
            kept = words.choose(far, words.constant(1, kept.width), kept)
            twos = None
        zero = words.both(zero, words.invert(far))
        exponent = words.choose(zero, number.exponent, maximum)
    build.mark(f"aligned[{label}]", kept if twos is None else twos)
    # What loses its bits here keeps its sign; what had none before has the sign of a zero, also if a sticky
    # bit makes some of it.
    sign, zero_sign = number.sign, None
    if number.zero_sign is not None:
        zero_sign = build.sign_of(number)
        sign = zero_sign if step.zeros == "sticky" or number.sticky is not None else sign
    return Number(
        number.nan, number.infinity, zero, sign, kept, maximum, offset, exponent, frame.reach,
        zero_sign=zero_sign, twos=twos, sticky=sticky, payload=number.payload,
    )  # fmt: skip


def _distance(build: Builder, name: str, number: Number, frame: Frame) -> tuple[Word, int]:
    """How far a number moves to the right, and the least that is for a number with bits.

    The distance is from the number's base to the maximum.
    """
    words, step, maximum = build.words, frame.step, frame.maximum
    distance = words.sub(maximum, number.base)
    least = frame.reach[0] - number.reach[1]
    if step.exponent is not None:
        return distance, least
    carried = number.exponent is number.base
    if step.maximum:
        for one in step.maximum:
            if name in one.of and one.leading:  # the leading one is nowhere below the lowest bit
                least = max(least, number.offset + one.plus)
            elif name in one.of and carried:
                least = max(least, one.plus)
        return distance, least
    if name in dict(step.left_out):  # above the maximum it is taken to lie at it
        above = words.less_signed(maximum, number.exponent)
        lifted = words.sub(number.exponent, number.base)
        distance = words.choose(above, lifted, distance)
        least = min(0, least) if not carried else 0
    elif carried:
        least = max(least, 0)
    if step.shift_limit is not None:  # the shifter stops short
        limit = (
            build.exponent(step.shift_limit) if step.shift_limit < 1 << (build.exponent_bits - 1) else None
        )
        if limit is not None:
            # A number of another base than its exponent may lie below that by its own bits.
            beneath = 0 if carried else frame.bounds[name].bottom - number.reach[1]
            least = min(least, step.shift_limit + beneath)
            away = words.sub(maximum, number.exponent)
            stops = words.less_signed(limit, away)
            lifted = words.sub(number.exponent, number.base)
            distance = words.choose(stops, words.add(limit, lifted), distance)
    return distance, least


def _outside(
    build: Builder, name: str, number: Number, places: int, frame: Frame, magnitude: Word, amount: Word
) -> Word:
    """Whether a number counts as zero: outside the window of its register, dropped, or spared."""
    words, step, maximum = build.words, frame.step, frame.maximum
    found = []
    window = dict(step.window).get(name)
    if window is not None:
        found.append(words.less_signed(build.plus(number.exponent, window), maximum))
    if step.underflow_exponent is not None:
        found.append(words.invert(words.less_signed(build.exponent(step.underflow_exponent), maximum)))
    if dict(step.left_out).get(name) == "dropped":
        found.append(words.less_signed(maximum, number.exponent))
    least = dict(step.spared).get(name)
    if least is not None:
        # A negative number below the last bit kept, which is worth more than 2**least.
        last = build.plus(maximum, -places)
        worth = words.less_signed(build.exponent(least), last)
        if step.shift_limit is None and not step.left_out:
            empty = words.invert(words.nonzero(number.magnitude))
            if number.sticky is not None:  # a number that has but a sticky bit lies where its last place does
                base, offset = number.last_place
                empty = words.both(empty, words.invert(words.less_signed(last, build.plus(base, offset))))
            below = words.either(empty, words.less_signed(build.leading_place(number), last))
        else:  # the shifter takes it to lie elsewhere
            below = words.invert(words.nonzero(words.shift_right(magnitude, amount)))
        found.append(build.all_of([worth, build.sign_of(number), below]))
    return build.any_of(found)


def _seen(build: Builder, magnitude: Word, amount: Word, gap: int) -> Word:
    """Whether anything is cut; bits right below the last one kept are not looked at where there is a gap."""
    words = build.words
    if not gap:
        return words.nonzero(below_mask(build, magnitude, amount))
    less = build.plus(amount, -gap)
    negative = words.less_signed(less, build.exponent(0))
    return words.nonzero(below_mask(build, magnitude, words.choose(negative, build.exponent(0), less)))


# Normalize --------------------------------------------------------------------------------------------------


def normalize(
    build: Builder, step: Normalize, label: str, number: Number, before: Bounds, after: Bounds, places: int
) -> Number:
    """A number whose leading one stands before the point."""
    words = build.words
    own = build.with_sticky(number)
    leading = build.leading_place(own)
    exponent = leading
    if step.min_exponent is not None:
        exponent = build.larger(leading, build.exponent(step.min_exponent))
    # To the left as far as the longest shift, then to the right: the distance is exact on either side.
    amount = words.sub(build.plus(exponent, -places), build.plus(own.base, own.offset))
    room = max(places, 0)
    wide = build.pad(own.magnitude, room)
    kept = shifted(build, build.sign_of(own), wide, build.plus(amount, room), step.rounding)
    kept = words.extend(kept, max(after.integer_bits, 1) + places + 1)
    empty = words.invert(words.nonzero(own.magnitude))
    stays = before.cancels or before.vanishes
    shown = words.choose(empty, number.exponent, exponent) if stays or build.reads_zeros else exponent
    kept = build.mark(f"normalized[{label}]", kept)
    low = min(before.lsb, after.low)
    reach = (
        min(low, step.min_exponent) if step.min_exponent is not None else low,
        max(after.high, before.high),
    )
    last = None
    if stays:
        base, offset = number.last_place
        last = words.choose(empty, build.plus(base, offset), build.plus(exponent, -places)), 0
    return Number(
        number.nan, number.infinity, number.zero, build.sign_of(number), kept, exponent, -places, shown,
        reach, last=last, payload=number.payload,
    )  # fmt: skip
