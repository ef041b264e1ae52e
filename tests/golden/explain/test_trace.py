"""Explanations of dot products: shifts and cut bits against decoded operands,
words of integer and bit instructions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import golden
from golden.explain.special_values import special_values
from golden.program.words import step_text
from golden.vectors import signals

M16N8K16 = "mma.sync.aligned.m16n8k16.row.col."
IMMA = M16N8K16 + "s32.s8.s8.s32"
XOR = "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc"


def fields(code: int, exponent_bits: int, fraction_bits: int) -> tuple[int, int]:
    """(encoded exponent without bias, significand as an integer) of an IEEE code, taken apart by hand."""
    exponent = code >> fraction_bits & (1 << exponent_bits) - 1
    fraction = code & (1 << fraction_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    return (exponent - bias, fraction | 1 << fraction_bits) if exponent else (1 - bias, fraction)


def finite(rng: np.random.Generator, size: int, exponent_bits: int, fraction_bits: int) -> list[int]:
    """Random codes that are neither infinite nor NaN; some are zero, some subnormal."""
    low = rng.integers(0, 1 << fraction_bits, size) * rng.integers(0, 2, size)
    exponents = rng.integers(0, (1 << exponent_bits) - 1, size) * rng.integers(0, 4, size).clip(0, 1)
    signs = rng.integers(0, 2, size) << exponent_bits + fraction_bits
    return [int(code) for code in low | exponents << fraction_bits | signs]


@pytest.mark.parametrize(
    ("architecture", "name", "size", "exponent_bits", "fraction_bits", "kept", "floor"),
    [
        ("hopper", M16N8K16 + "f32.f16.f16.f32", 16, 5, 10, 25, -133),
        ("hopper", M16N8K16 + "f32.bf16.bf16.f32", 16, 8, 7, 25, -133),
        ("volta", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", 4, 5, 10, 23, -131),
    ],
)
def test_shifts_and_cut_bits(
    architecture: str, name: str, size: int, exponent_bits: int, fraction_bits: int, kept: int, floor: int
) -> None:
    """shift = largest exponent - e; what is kept and what is cut, one after the other, is the whole term."""
    ins, rng = golden.instruction(architecture, name), np.random.default_rng(5)
    cut_somewhere = 0
    for _ in range(40):
        a, b = (finite(rng, size, exponent_bits, fraction_bits) for _ in "ab")
        (c,) = finite(rng, 1, 8, 23)
        terms = []
        for x, y in zip(a, b, strict=True):
            (ex, mx), (ey, my) = (fields(code, exponent_bits, fraction_bits) for code in (x, y))
            terms.append((ex + ey, mx * my, 2 * fraction_bits))
        terms.append((*fields(c, 8, 23), 23))
        largest = max([floor, *(exponent for exponent, magnitude, _ in terms if magnitude)])
        trace = ins.trace(a, b, c)
        (align,) = (step for step in trace.as_dict()["steps"] if step["step"] == "align")
        (signal,) = (step for step in signals.of(ins, {"a": a, "b": b, "c": c}) if step["step"] == "align")
        assert align["max_exponents"] == [largest]
        signalled = [number for numbers in signal["registers"].values() for number in numbers]
        for (exponent, magnitude, point), row, number in zip(terms, align["rows"], signalled, strict=True):
            if not magnitude:
                assert "shift" not in row and "shift" not in number
                continue
            assert row["shift"] == number["shift"] == largest - exponent
            bits = row["significand"][1:].replace(".", "") + row["lost"]
            last = largest - kept - len(row["lost"])
            assert int(bits, 2) * Fraction(2) ** last == magnitude * Fraction(2) ** (exponent - point)
            cut_somewhere += bool(row["lost"]) and row["lost"][0] == "0"
    assert cut_somewhere > 10


def test_integer_overflow_in_words() -> None:
    wrap, clamp = (
        golden.instruction("hopper", name) for name in (IMMA, IMMA.replace("s32.s8", "satfinite.s32.s8", 1))
    )
    assert "modulo 2**32" in step_text(wrap.program.operations[0].steps[-1], True)
    assert "clamped to the range of s32" in step_text(clamp.program.operations[0].steps[-1], True)
    operands: Any = ([1] + [0] * 15, [1] + [0] * 15, 0x7FFFFFFF)
    reported = [unit.trace(*operands).as_dict() for unit in (wrap, clamp)]
    assert [(data["d_value"], data["exact"]) for data in reported] == [
        ("-2147483648", "2147483648"),
        ("2147483647", "2147483648"),
    ]


@pytest.mark.parametrize(("name", "both", "one"), [(XOR, 0, 1), (XOR.replace("xor", "and"), 1, 0)])
def test_special_cases_of_bits(name: str, both: int, one: int) -> None:
    ins = golden.instruction("ampere", name)
    word = "XOR" if one else "AND"
    found = {row["case"]: row["value"] for row in special_values(ins)}
    assert found == {
        f"1 {word} 1 + c = -1": str(both - 1),
        f"1 {word} 0 + c = 0": str(one),
        "all bits of a and b set, c = 0": str(128 * both),
        "all bits of a set, none of b, c = 0": str(128 * one),
        "all bits of a and b set, c = largest": str((2**31 - 1 + 128 * both + 2**31) % 2**32 - 2**31),
        "all bits of a set, none of b, c = largest": str((2**31 - 1 + 128 * one + 2**31) % 2**32 - 2**31),
    }
    assert ins.trace([1] * 128, [1] * 128, 0).exact == 128 * both
