"""What shows a step shows all of it: its words change with every field,
its widths hold what the reference computes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from changed_steps import alternatives, step_lists
from faulty_units import known_unit
from long_run import long_after
from random_units import load

import golden
from golden import stimuli
from golden.cover.ranges import spans_of
from golden.errors import SpecError
from golden.model.instruction import Instruction
from golden.model.layout import lower_step
from golden.number.formats import Kind, get_format
from golden.program.steps import Fma, HiddenBit, Normalize, Round, Step, Sum, format_of, overflow_of
from golden.program.widths import operation_nodes
from golden.program.words import step_text

SAME_MEANING = {
    (
        "sum",
        "rounding",
    ),  # of an exact sum it only decides a zero's sign, and toward zero, up and to nearest decide alike
    ("multiply", "normalize"),  # a product that is rounded to a format is normalised in any case
}


def _same_overflow(step: Round, changed: Step) -> bool:
    """Whether two rules come to one in a format without infinities."""
    return isinstance(changed, Round) and overflow_of(changed) == overflow_of(step)


@pytest.mark.parametrize("name", step_lists())
def test_the_words_of_a_step_change_with_each_of_its_fields(name: str) -> None:
    operation = step_lists()[name].program.operations[0]
    for step in operation.steps:
        fmt = format_of(step)
        integer = fmt is not None and not fmt.is_float  # has no -0 and no subnormal numbers
        same = SAME_MEANING | ({("round", "zero"), ("round", "flush")} if integer else set())
        for field, values in alternatives(step, operation.out_format).items():
            for value in values:
                changed = replace(step, **{field: value})
                if (step.op, field, value) == ("round", "flush", "signed") and step.zero == "positive":
                    continue  # what is flushed is +0, as with `flush: positive`
                if isinstance(step, Round) and field == "overflow" and _same_overflow(step, changed):
                    continue
                if changed != step and (step.op, field) not in same and field != "nan":
                    assert step_text(changed) != step_text(step), (field, value)


def test_the_words_of_other_fields() -> None:
    """Values that no shipped step has together with its others."""
    fma = Fma(to="d", format=get_format("f32"), rounding="up")
    assert "subnormal results become +0" in step_text(replace(fma, flush="positive"))
    total = Sum(of=("c", "addends"), to="total")
    assert step_text(replace(total, rounding="down")) != step_text(total)
    bits = Normalize(of=("dot", "c"), fraction_bits=(("dot", 3), ("c", 4)), rounding="down")
    assert step_text(bits) != step_text(replace(bits, fraction_bits=(("dot", 4), ("c", 3))))
    final = known_unit().program.operations[0].final
    assert "a NaN is 0x1" in step_text(replace(final, nan=1))


def outside(ins: Instruction, seed: int) -> list[str]:
    """Numbers of the reference that the widths have no room for."""
    operands = stimuli.generate(ins, stimuli.KINDS[seed % len(stimuli.KINDS)], 2, np.random.default_rng(seed))
    nodes = [
        [{node.register: node for node in written} for _, written in operation_nodes(ins, o)]
        for o in ins.program.operations
    ]
    found = []
    for row in range(2):
        place: Counter[int] = Counter()
        for event in ins.trace(**{name: codes[row] for name, codes in operands.items()}).events:
            here = nodes[event.operation][place[event.operation]]
            place[event.operation] += 1
            for name, numbers in event.written.items():
                for number in (
                    x for x in numbers if x.kind == Kind.FINITE and x.significand and name in here
                ):
                    node = here[name]
                    size = (
                        abs(number.value)
                        if node.fixed
                        else Fraction(number.significand) / Fraction(2) ** number.fraction_bits
                    )
                    whole = size <= node.maximum or (
                        number.sign and node.signed and size <= 1 << node.integer_bits
                    )
                    if not whole or not (
                        node.fixed or node.exponents[0] <= number.exponent <= node.exponents[1]
                    ):
                        found.append(f"{event.step.op} {name}: {number} outside {node}")
    return found


@pytest.mark.parametrize("name", long_after(10, step_lists()))
def test_every_number_fits_its_width(name: str) -> None:
    for seed in range(len(stimuli.KINDS)):
        assert outside(step_lists()[name], seed) == []


@pytest.mark.parametrize("mode", ["nearest_even", "nearest_away", "up"])
def test_a_carry_out_of_the_alignment_has_its_bit(mode: str) -> None:
    """2 - 2**-23 with no bit below the point is 2, which is one bit more than 1.x has."""
    ins = known_unit()
    steps = tuple(
        replace(step, rounding=mode, fraction_bits=(("products", 0), ("c", 0)))
        if step.op == "align"
        else step
        for step in ins.program.operations[0].steps
    )
    changed = replace(ins.program.operations[0], steps=steps)
    nodes = next(written for step, written in operation_nodes(ins, changed) if step.op == "align")
    assert {node.register: node.integer_bits for node in nodes} == {"products": 3, "c": 2}


@pytest.mark.parametrize(("operands", "high"), [("bf16", 131), ("f16", 127)])
def test_a_normalised_total_reaches_the_exponent_of_its_carry(operands: str, high: int) -> None:
    """Eight products below 2**128 and c come to less than 2**132, products of f16 and c to less than
    2**128."""
    ins = golden.instruction("cdna3", f"v_mfma_f32_16x16x16_{operands}")
    steps = operation_nodes(ins, ins.program.operations[0])
    assert [nodes[0].exponents[1] for step, nodes in steps if step.op == "normalize"] == [high]


@dataclass(frozen=True)
class Twist:
    """A kind of step that no view knows; mypy would list them."""

    op: ClassVar[str] = "twist"
    to: ClassVar[str] = ""
    of: tuple[str, ...] = ("a",)


def test_an_unknown_step_is_no_silence() -> None:
    ins = known_unit()
    operation = replace(
        ins.program.operations[0],
        steps=(Twist(), *ins.program.operations[0].steps),  # type: ignore[arg-type]
    )
    for view in (spans_of, operation_nodes):
        with pytest.raises(AssertionError, match="Expected code to be unreachable"):
            view(ins, operation)
    for view in (step_text, lower_step):
        with pytest.raises((AssertionError, ValueError)):
            view(Twist())  # type: ignore[arg-type]


def test_a_hidden_bit_has_its_place() -> None:
    hidden = known_unit(before="  - hidden_bit: {of: a}\n")
    assert operation_nodes(hidden, hidden.program.operations[0])[0][1] == []


ALIGNED = """\
unit: aligned
shape: {{k: 2}}
formats: {{a: f16, b: f16, c: f32, d: f32}}
steps:
  - align: {{of: c, fraction_bits: 2, rounding: up, floor: {floor}}}
  - hidden_bit: {{of: c}}
  - multiply: {{to: products}}
  - sum: {{of: [products, c], to: total}}
  - round: {{of: total, rounding: nearest_even, overflow: infinity, zero: positive}}
"""


def test_a_hidden_bit_behind_an_alignment_reaches_its_exponent() -> None:
    """What was cut away comes back as the power of two of the exponent that it was aligned to."""
    ins = load(ALIGNED.format(floor=200))
    ones = np.full((1, 2), 0x3C00, np.uint16)
    assert int(ins.dot(ones, ones, np.array([0x3F800000], np.uint32))[0]) == 0x7F800000
    steps = operation_nodes(ins, ins.program.operations[0])
    (c,) = next(nodes for step, nodes in steps if isinstance(step, HiddenBit))
    assert c.maximum == 2 - Fraction(1, 4) and c.exponents == (200, 200)
    with pytest.raises(SpecError, match="the sum can need"):
        load(ALIGNED.format(floor=100000))
