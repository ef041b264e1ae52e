"""The first difference between two units: at the step where a fault was planted,
and nowhere in equal units."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import golden
from golden.explain.first_difference import first_difference

HMMA = golden.instruction("hopper", "HMMA.16816.F32")


def changed(op, **fields):
    """Hopper's HMMA with one kind of step changed."""
    (operation,) = HMMA.program.operations
    steps = tuple(dataclasses.replace(step, **fields) if step.op == op else step for step in operation.steps)
    program = dataclasses.replace(HMMA.program, operations=(dataclasses.replace(operation, steps=steps),))
    return dataclasses.replace(HMMA, program=program)


def operands(a, b, c):
    zeros = [0.0] * 16
    return {
        "a": golden.from_float("f16", (a + zeros)[:16]),
        "b": golden.from_float("f16", (b + zeros)[:16]),
        "c": np.uint32(golden.from_float("f32", c)),
    }


@pytest.mark.parametrize(
    ("op", "fields", "given", "register", "index"),
    [
        (
            "align",
            {"fraction_bits": (("products", 24), ("c", 24))},
            ([1, 2**-12, 2**-12], [1, 1, 2**-13], 0.0),
            "products",
            2,
        ),
        ("align", {"fraction_bits": (("products", 24), ("c", 24))}, ([1], [1], 2.0**-25), "c", 0),
        ("round", {"rounding": "up"}, ([1, 2**-12], [1, 2**-13], 0.0), "d", 0),
        ("multiply", {"normalize": True}, ([1.5, 1], [1.5, 2**-12], 2.0**-25), None, None),
    ],
)
def test_the_difference_is_where_the_fault_is(op, fields, given, register, index):
    faulty, values = changed(op, **fields), operands(*given)
    found = first_difference(HMMA, faulty, values)
    if register is None:
        assert found is None or found.op != "multiply", "normalising changes no value by itself"
        return
    assert found is not None and (found.op, found.register, found.index) == (op, register, index)
    assert found.sentence().startswith(f"step {found.step} ({op}): {register}[{index}] is ")


def test_equal_units_have_no_first_difference():
    values = operands([1, 3], [5, 2**-10], -7.0)
    assert first_difference(HMMA, HMMA, values) is None


def test_other_steps_have_no_common_first_difference():
    values = operands([1, 3], [5, 2**-10], -7.0)
    chain = golden.instruction("ampere", "HMMA.16816.F32")
    found = first_difference(HMMA, chain, values)
    assert found is None or found.operation == 0


def test_special_values_that_end_one_unit_are_the_difference():
    """Zero times infinity is a zero in the other unit, which goes on."""
    values = operands([0.0, 1.0], [np.inf, 1.0], 0.0)
    faulty = changed("multiply", zero_times_infinity="zero")
    found = first_difference(HMMA, faulty, values)
    assert found is not None and (found.op, found.register, found.index) == ("multiply", "products", 0)
    deaf = changed("special_values", of=("c",))
    found = first_difference(HMMA, deaf, values)
    assert found is not None and (found.op, found.register) == ("special_values", "d")
    assert (
        found.expected == f"{int(HMMA.dot(**values)):#x}" and found.actual == f"{int(deaf.dot(**values)):#x}"
    )
