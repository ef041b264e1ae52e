"""The registers that the core shows, held against the reference number by number, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from golden.model.instruction import Instruction
from golden.model.reference import Cut, Event
from golden.model.registers import Block, Registers, Roundings, SeenStep, number_type
from golden.number.formats import Format, Kind, Number
from golden.number.rounding import shift_right
from golden.program.steps import Round, format_of

KEPT_BITS = 100
"""What the core keeps of a longer exact sum; the lowest bit stands for all that was dropped."""
FIELDS = tuple(
    dict.fromkeys(name.removesuffix("_low").removesuffix("_high") for name in number_type().names or ())
)
_MEANT = {
    "exponent": (Kind.ZERO, Kind.FINITE),
    "payload": (Kind.NAN,),
    "sticky": (Kind.ZERO, Kind.FINITE),
    "significand": (),
    "fraction_bits": (),
}
"""Which kinds of numbers a field says something of (others: all). The value is compared as a whole."""
_FIELDS_OF = {kind: [name for name in FIELDS if kind in _MEANT.get(name, tuple(Kind))] for kind in Kind}


def same(core: Number | None, wanted: Number | None) -> bool:
    """Whether two numbers are equal in everything that a step could tell."""
    if core is None or wanted is None:
        return core is wanted
    fields = _FIELDS_OF[core.kind]
    return all(getattr(core, name) == getattr(wanted, name) for name in fields) and _same_value(core, wanted)


def _same_value(core: Number, wanted: Number) -> bool:
    if core.kind != Kind.FINITE or core.value == wanted.value:
        return True
    drop = wanted.significand.bit_length() - KEPT_BITS
    if drop <= 0 or core.lsb_exponent != wanted.lsb_exponent + drop:
        return False
    rest = wanted.significand & ((1 << drop) - 1)
    return core.significand == wanted.significand >> drop | (rest != 0)


def differences(ins: Instruction, operands: dict[str, Any]) -> Iterator[str]:
    """Every number that the core shows of these dot products and the reference has otherwise."""
    for block in Registers(ins.engine).blocks(operands):
        steps = list(block.steps())
        for row in range(len(block.d)):
            one = {name: codes[block.start + row] for name, codes in operands.items()}
            events: dict[int, list[Event]] = {}
            for event in ins.trace(**one).events:
                events.setdefault(event.operation, []).append(event)
            for seen in steps:
                own = events[seen.operation]
                event = own[seen.index] if seen.index < len(own) else None
                for message in _step(seen, event, row):
                    yield f"operation {seen.operation}, step {seen.index} ({seen.step.op}): {message}"
            yield from _results(block, events, row)
        for seen in steps:
            if seen.roundings is not None:
                fmt = format_of(seen.step) or ins.program.operations[seen.operation].out_format
                for message in _roundings(seen, fmt, seen.roundings):
                    yield f"inside step {seen.index} ({seen.step.op}): {message}"
        if not np.array_equal(
            block.d, ins.dot(**{n: x[block.start :][: len(block.d)] for n, x in operands.items()})
        ):
            yield "the results are not those of the instruction"


def _results(block: Block, events: dict[int, list[Event]], row: int) -> Iterator[str]:
    for operation, own in events.items():
        code, wanted = int(block.result(operation).payload[row, 0]), own[-1].code
        if code != wanted:
            yield f"operation {operation}: {code:#x}, expected {wanted:#x}"


def _step(seen: SeenStep, event: Event | None, row: int) -> Iterator[str]:
    """One step of one dot product: the registers that it wrote, maxima and cuts; without an event, nothing
    ran."""
    written = event.written if event is not None else {}
    if event is not None and set(written) != set(seen.written):
        to_d = {"d"} if seen.step.to == "d" else set()
        if set(written) ^ set(seen.written) != to_d:
            yield f"it wrote {sorted(seen.written)}, expected {sorted(written)}"
    for name, numbers in seen.written.items():
        wanted: tuple[Number | None, ...] = written.get(name, (None,) * numbers.count)
        if len(wanted) != numbers.count:
            yield f"{name} has {numbers.count} terms, expected {len(wanted)}"
            continue
        for i, number in enumerate(wanted):
            if not same(numbers.number(row, i), number):
                yield f"{name}[{i}] is {numbers.number(row, i)}, expected {number}"
    if seen.maxima is not None and seen.cuts is not None:
        maxima = event.max_exponents if event is not None else (None,) * seen.maxima.count
        found = tuple(_exponent(seen.maxima.number(row, g)) for g in range(seen.maxima.count))
        if found != maxima:
            yield f"the maxima are {found}, expected {maxima}"
        table = (event.cuts if event is not None else None) or {}
        cuts = [cut for name in seen.step.of for cut in table.get(name, (None,) * seen.before[name].count)]
        for i, cut in enumerate(cuts):
            got, before = _cut(seen.cuts.number(row, i)), seen.terms.number(row, i)
            shortened = before is not None and before.significand.bit_length() >= KEPT_BITS
            if _comparable(got, shortened) != _comparable(cut, shortened):
                yield f"term {i} was cut {got}, expected {cut}"


def _exponent(number: Number | None) -> int | None:
    return None if number is None else number.exponent


def _cut(number: Number | None) -> Cut | None:
    return None if number is None else Cut(number.exponent, number.fraction_bits, number.significand)


def _comparable(cut: Cut | None, shortened: bool) -> tuple[int, Fraction | bool] | None:
    """How far a term was shifted and what it lost, in units of its last kept place; of a sum that the core
    had shortened, whether it lost anything."""
    if cut is None:
        return None
    return cut.shift, cut.lost != 0 if shortened else Fraction(cut.lost, 1 << cut.bits)


def _roundings(seen: SeenStep, fmt: Format, inside: Roundings) -> Iterator[str]:
    """Roundings inside a step: the sum of the addends in exact rationals, and what the rounder makes of
    it."""
    for row, column in np.ndindex(*inside.exact.shape):
        exact = inside.exact.number(row, column)
        if exact is None or exact.kind > Kind.FINITE:
            continue
        if inside.left is not None and inside.right is not None:
            pair = [x.number(row, column) for x in (inside.left, inside.right)]
            addends = [x for x in pair if x is not None]
            total = sum(x.value for x in addends)
            whole = exact.significand.bit_length() < KEPT_BITS and not any(x.sticky for x in addends)
            if whole and exact.value != total:
                yield f"{exact} is not the sum {total}"
        wanted = _unbounded(exact, fmt, seen) if exact.significand else None
        got = inside.unbounded.number(row, column)
        if (got is None) != (wanted is None) or (got is not None and abs(got.value) != wanted):
            yield f"{exact} left the rounder as {got}, expected {wanted}"


def _unbounded(exact: Number, fmt: Format, seen: SeenStep) -> Any:
    step = seen.step
    last_step = step if isinstance(step, Round) else None
    leading = exact.lsb_exponent + exact.significand.bit_length() - 1
    kept = last_step.result_fraction_bits if last_step else None
    kept = fmt.fraction_bits if kept is None else kept
    last = max(leading, fmt.min_exponent) - kept if fmt.is_float else 0
    cut, significand = last - exact.lsb_exponent, exact.significand
    if not fmt.is_float and cut <= 0:
        return abs(exact.value)
    if last_step is not None and last_step.random_bits is not None and cut > 0:
        highest = abs(exact.value) / Fraction(2) ** (last - last_step.random_bits) // 1
        return (highest + last_step.random >> last_step.random_bits) * Fraction(2) ** last
    gap = 0 if last_step is None else cut if last_step.sticky == "left_out" else last_step.sticky_gap
    for place in range(max(cut - 1 - gap, 0), cut - 1) if fmt.is_float else ():
        significand &= ~(1 << place)
    return shift_right(exact.sign, significand, cut, seen.step.rounding) * Fraction(2) ** last
