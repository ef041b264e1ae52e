"""Canonical forms of candidates: without keys that make no difference according to the bounds of registers,
such as a floor below every exponent, or a window that drops what is cut anyway.

Two programs with equal forms answer every question alike, so no query can distinguish them. Programs with
different forms may still be alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import reduce
from typing import Any

from golden.identify.blackbox.candidates import Candidate
from golden.number.formats import Format
from golden.number.frozen import replace
from golden.number.rounding import ROUNDINGS
from golden.program.bounds import Bounds, Registers, either, follow, groups_of, maximum_of, operands_of
from golden.program.keys import Candidate as Largest
from golden.program.program import Operation
from golden.program.signature import Signature
from golden.program.steps import Additions, Align, Normalize, Round, SpecialValues, Step, Sum, rounding_of

_COVERED = {"factor": ("a", "b"), "opposite_infinities": ("opposite_products",)}
"""Causes that occur only together with another one."""


def canonical_form(one: Candidate) -> tuple[Operation, ...]:
    """The operations of a candidate without the keys that make no difference."""
    done: dict[tuple[object, ...], tuple[Step, ...]] = {}
    found = []
    for operation in one.operations:
        alike = (operation.steps, len(operation.k_index), len(operation.addends))
        key = (*alike, operation.seed_format, operation.out_format, operation.operand_format)
        if key not in done:
            done[key] = _steps(operation, one.takes)
        found.append(operation.with_steps(done[key]).arithmetic)
    return tuple(found)


def _steps(operation: Operation, takes: Signature) -> tuple[Step, ...]:
    never = frozenset(_never(takes.formats["a"], takes.formats["b"], operation.seed_format))
    operation = operation.with_steps(
        _special(step, never) if isinstance(step, SpecialValues) else step for step in operation.steps
    )
    registers = operands_of(operation, takes.formats)
    if any(isinstance(step, Align) and _has_faults(step) for step in operation.steps):
        return operation.steps
    found: list[Step] = []
    for place, step in enumerate(operation.steps):
        rest = operation.steps[place + 1 :]
        new = _canonical_step(step, registers, rest)
        found += [] if new is None else [new]
        registers = registers | follow(step, registers)  # the bounds of the step as it was hold for both
    return tuple(found)


def _has_faults(step: Align) -> bool:
    """Whether an alignment keeps what is cut, or has keys that the rules here do not cover."""
    return bool(step.cut != "dropped" or step.zeros != "ignored" or step.left_out) or not (
        step.shift_limit is None and step.sticky_gap == 0
    )


def _canonical_step(step: Step, registers: Registers, rest: Sequence[Step]) -> Step | None:
    """A step without the keys that make no difference; None if the whole step makes none."""
    match step:
        case Align():
            return _aligned(step, registers, _value_alone(step.of, rest))
        case Sum():
            return _summed(step, sum(registers[name].count for name in step.of), rest)
        case Normalize():
            return _normalized(step, registers, rest)
        case Round() if step.format.is_float:
            return _rounded(step, registers[step.of[0]])
    return step


def _special(step: SpecialValues, never: Set[str]) -> SpecialValues:
    """The step without causes that no operand has, or that an earlier cause covers, and without the last
    causes if they give the word that any other cause gives, too."""
    nans: list[tuple[str, int | None]] = []
    gone = set(never)
    for cause, word in step.nans:
        if cause not in gone:
            nans.append((cause, word))
            gone |= {cause, *_COVERED.get(cause, ())}
    while nans and step.nan is not None and nans[-1][1] == step.nan:
        nans.pop()
    return replace(step, nans=tuple(nans))


def _never(a: Format, b: Format, c: Format) -> Iterator[str]:
    """Causes of NaNs that operands of these formats cannot have, whatever the steps before produce."""
    has_nan = [fmt.is_float and fmt.nan is not None for fmt in (a, b, c)]
    yield from (name for name, has in zip("abc", has_nan, strict=True) if not has)
    if not any(has_nan[:2]):
        yield "factor"
    if not any(fmt.is_float and fmt.infinity is not None for fmt in (a, b)):
        yield "invalid_product"


def _nearest(mode: str) -> bool:
    return ROUNDINGS[mode].nearest


# Alignments -------------------------------------------------------------------------------------------------


def _aligned(step: Align, registers: Registers, value_alone: bool) -> Align:
    """value_alone: whether later steps read only the value of what is aligned, not its exponent."""
    whole = reduce(either, (registers[name] for name in step.of))
    least, most = maximum_of(replace(step, floor=None), registers)
    # An exponent up to this one cuts nothing, whatever it is.
    uncut = whole.lsb + min(bits for _, bits in step.fraction_bits) if value_alone else least
    if value_alone and step.exponent is None and not step.maximum:
        step = _as_wide_as_they_are(step, whole, most)
    floor = step.floor
    if floor is not None and floor <= max(least, uncut):
        floor = None  # it is the largest exponent nowhere, or nothing is cut where it is
    reach = maximum_of(step, registers)
    return replace(
        step,
        group=None
        if len(groups_of(step, sum(registers[name].count for name in step.of))) == 1
        else step.group,
        floor=floor,
        maximum=_largest(step, registers, uncut) if value_alone else step.maximum,
        spared=_spared(step, reach),
        window=tuple(
            (name, n)
            for name, n in step.window
            if not _cut_anyway(step, registers[name], name, n) and n < reach[1] - registers[name].low
        ),
    )


def _as_wide_as_they_are(step: Align, whole: Bounds, most: int) -> Align:
    """In an alignment wide enough for all terms, the width and the rounding make no difference."""
    span = (most if step.floor is None else max(most, step.floor)) - whole.lsb
    if any(bits < span for _, bits in step.fraction_bits):
        return step
    nothing: dict[str, Any] = {"spared": (), "rounding": "toward_zero"}
    return replace(step, fraction_bits=tuple((name, span) for name, _ in step.fraction_bits), **nothing)


def _spared(step: Align, reach: tuple[int, int]) -> tuple[tuple[str, int], ...]:
    """The spared bits, limited by where the last kept bit can be. A number below that bit is cut to zero
    anyway if all numbers are cut towards zero."""
    if step.rounding == "toward_zero":
        return ()
    bits, (least, most) = dict(step.fraction_bits), reach
    clamped = ((name, max(n, least - bits[name] - 1)) for name, n in step.spared)
    return tuple((name, n) for name, n in clamped if n < most - bits[name])


def _cut_anyway(step: Align, own: Bounds, name: str, window: int) -> bool:
    """Whether all that a window drops lies below the last kept bit, and is cut to zero there."""
    below = window + 1 - own.integer_bits - dict(step.fraction_bits)[name]  # at least this many places below
    rounding = rounding_of(step, name)
    return (rounding == "toward_zero" and below >= 0) or (_nearest(rounding) and below >= 1)


def _largest(step: Align, registers: Registers, uncut: int) -> tuple[Largest, ...]:
    """The candidates for the exponent, without a least value that is never the largest, or where nothing is
    cut."""
    found = list(step.maximum)
    for place, one in enumerate(found):
        if one.least is not None:
            others = (*found[:place], replace(one, least=None), *found[place + 1 :])
            if one.least + one.plus <= max(maximum_of(replace(step, maximum=others), registers)[0], uncut):
                found[place] = others[place]
    return tuple(found)


# What follows -----------------------------------------------------------------------------------------------


def _value_alone(names: Sequence[str], rest: Sequence[Step]) -> bool:
    """Whether later steps read only the value of registers, and not the exponents that an alignment sees."""
    shown = set(names)
    for step in rest:
        read = shown & set(step.of)
        if isinstance(step, SpecialValues) or not read:
            continue
        if isinstance(step, Sum):
            if step.complement != "none" or step.width is not None:
                return False
            shown.add(step.to)
        elif isinstance(step, Additions) and step.format is not None and step.format.is_float:
            shown.add(step.to)  # of one term alone, it is handed on as it is
        elif not isinstance(step, Round | Normalize):
            return False
    return True


def _summed(step: Sum, count: int, rest: Sequence[Step]) -> Sum:
    """One group of all terms is no group, and the rounding of an exact sum is only the sign of a zero."""
    read = [one for one in rest if step.to in one.of]
    dropped = all(
        isinstance(one, Normalize) or (isinstance(one, Round) and one.zero == "positive") for one in read
    )
    plain = step.rounding != "down" or (dropped and bool(read))
    group = None if len(groups_of(step, count)) == 1 else step.group
    return replace(step, group=group, rounding="toward_zero" if plain else step.rounding)


def _normalized(step: Normalize, registers: Registers, rest: Sequence[Step]) -> Normalize | None:
    """A least exponent below all numbers, or where nothing is cut, is dropped; so is a step that cuts
    nothing."""
    own = [(bits, registers[name]) for name, bits in step.fraction_bits]
    least, value_alone = step.min_exponent, _value_alone(step.of, rest)
    if least is not None and all(least <= one.lsb + (bits if value_alone else 0) for bits, one in own):
        least = None
    if value_alone and least is None and all(one.width <= bits + 1 for bits, one in own):
        return None
    return replace(step, min_exponent=least)


def _rounded(step: Round, own: Bounds) -> Round:
    """To nearest, overflow gives an infinity (IEEE 754 7.4); a nonzero number stays nonzero if the format has
    all its bits."""
    last = step.format.min_exponent - step.format.fraction_bits
    exact = step.result_fraction_bits is None and step.flush == "none" and last <= own.lsb
    return replace(
        step,
        overflow="infinity" if step.overflow == "ieee" and _nearest(step.rounding) else step.overflow,
        zero="positive" if step.zero == "signed_underflow" and exact else step.zero,
    )
