"""Bounds hold every number that the reference computes, and are no wider than a corner needs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from changed_steps import step_lists
from faulty_units import any_unit
from long_run import long_after
from random_units import accepted, load, random_unit, wide_unit

from golden import stimuli
from golden.errors import SpecError
from golden.model.instruction import Instruction
from golden.number.formats import Kind, Number
from golden.program.bounds import KEPT_BITS, Bounds, follow, operands_of, seeds_of, walk


def broken(number: Number, own: Bounds) -> list[str]:
    """Which bounds a number of the reference does not keep."""
    if number.kind >= Kind.INFINITY:
        return []
    if number.kind == Kind.ZERO:
        return [] if own.bottom <= number.exponent <= own.top else ["zeros"]
    unit = number.lsb_exponent
    bits = number.significand
    rules = {
        "last": unit >= own.last,
        "sticky": not number.sticky or (own.sticky is not None and own.sticky <= unit - 1),
        "least": own.least <= number.value,
        "greatest": number.value <= own.greatest,
    }
    if not bits:
        rules["empty"] = own.cancels or own.vanishes
        rules["exponent without bits"] = own.bottom <= number.exponent <= own.top
        return [name for name, holds in rules.items() if not holds]
    lowest = unit + (bits & -bits).bit_length() - 1
    signed = Fraction(-bits if number.sign else bits) / Fraction(2) ** number.fraction_bits
    rules |= {
        "fraction_bits": number.fraction_bits <= own.fraction_bits,
        "low": own.low <= number.exponent,
        "high": number.exponent <= own.high,
        "lsb": own.lsb <= lowest,
        "depth": number.exponent - lowest <= own.depth,
        "significands": own.significands[0] <= signed <= own.significands[1],
        "subnormal": own.subnormal or abs(signed) >= 1,
        "size": abs(number.value) < Fraction(2) ** own.size,
        "width": not own.exact or bits.bit_length() <= own.width,
        "kept": not own.exact or own.size - own.lsb > KEPT_BITS or lowest + KEPT_BITS >= own.lsb,
    }
    return [name for name, holds in rules.items() if not holds]


def outside(ins: Instruction, seed: int, count: int = 2) -> Iterator[str]:
    """Numbers of the reference that the bounds do not hold."""
    kind = stimuli.KINDS[seed % len(stimuli.KINDS)]
    operands = stimuli.generate(ins, kind, count, np.random.default_rng(seed))
    operations = ins.program.operations
    seeds = seeds_of(operations, ins.formats)
    steps = [list(walk(o, operands_of(o, ins.formats, seeds))) for o in operations]
    for row in range(count):
        place = [0] * len(operations)
        for event in ins.trace(**{name: codes[row] for name, codes in operands.items()}).events:
            step, before = steps[event.operation][place[event.operation]]
            place[event.operation] += 1
            after = before | follow(step, before)
            for name, numbers in event.written.items():
                for number in numbers:
                    for rule in broken(number, after[name]):
                        yield f"{kind}: {event.step} {name}: {rule} of {number} in {after[name]}"
            operation = operations[event.operation]
            if event.code is not None:  # the result, special values and all
                number = operation.out_format.decode(event.code)
                result = seeds[operation.to][1]
                yield from (
                    f"{kind}: result {rule} of {number} in {result}" for rule in broken(number, result)
                )


@pytest.mark.parametrize("name", long_after(10, step_lists()))
def test_every_number_of_the_reference_is_within_its_bounds(name: str) -> None:
    for seed in range(0, len(stimuli.KINDS), 2):
        assert list(outside(step_lists()[name], seed)) == []


@pytest.mark.parametrize("make", [random_unit, wide_unit, any_unit])
@pytest.mark.parametrize("seed", range(8))
def test_random_units_keep_their_bounds(make: object, seed: int) -> None:
    text, ins = accepted(make, 1000 + seed)  # type: ignore[arg-type]
    rng = random.Random(seed)
    for _ in range(3):
        found = list(outside(ins, rng.randrange(1 << 16)))
        assert found == [], text


WRAPS = """\
unit: whole
shape: {{k: 2}}
formats: {{a: f16, b: f16, c: f16, d: s8}}
steps:
  - align: {{of: c, fraction_bits: {bits}, rounding: toward_zero, exponent: 8}}
  - sum: {{of: c, to: total}}
  - round: {{of: total, rounding: toward_zero, overflow: wrap, zero: positive}}
"""


def test_a_float_total_that_is_a_whole_number_wraps() -> None:
    """c cut to whole numbers keeps them modulo 2**8; with one bit behind the point it is refused."""
    ins = load(WRAPS.format(bits=8))
    values = np.array([0.75, -0.75, 127.5, 128.25, -129.0, 300.0, 65504.0, -65504.0, 2048.0, 3.0], np.float16)
    ones = np.full((len(values), 2), 0x3C00, np.uint16)
    d = ins.dot(ones, ones, values.view(np.uint16))
    assert d.tolist() == [int(value) & 0xFF for value in values.tolist()]
    assert [ins.reference_dot(ones[0], ones[0], code) for code in values.view(np.uint16)] == d.tolist()
    with pytest.raises(SpecError, match="no exact low bits"):
        load(WRAPS.format(bits=9))
