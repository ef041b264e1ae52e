"""Stochastic rounding, whose random bits are an operand: every model against exact rationals."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from circuits import outputs

import golden
from golden import stimuli, yamlfile
from golden.catalog import unit_files
from golden.errors import SpecError
from golden.identify.diagnose import datapath
from golden.model.instruction import Instruction
from golden.number.formats import Format, Kind
from golden.paths import spec_folder

UNIT = """unit: u
shape: {{k: 2}}
formats: {{a: {a}, b: {a}, c: {c}, d: {d}}}
modes: {{r: {codes}}}
steps:
  - multiply: {{to: products}}
  - special_values: {{of: [products, c]}}
  - sum: {{of: [products, c], to: total}}
  - round: {{of: total, rounding: toward_zero, random_bits: {bits}, random: $r, overflow: {overflow},
            zero: positive}}
"""
KINDS = ("random_bits", "narrow", "subnormal_result", "tie", "near_overflow", "cut_bits", "zeros")
FLOATS = [("e4m3", "f16", "bf16"), ("e5m2", "f16", "e5m2"), ("f16", "f32", "f32"), ("e4m3", "f16", "e4m3")]
CASES = [(*formats, bits) for formats in FLOATS for bits in (1, 4, 7)] + [("s8", "s32", "s16", 3)]


def unit(a: str, c: str, d: str, bits: int) -> Instruction:
    codes = sorted({0, 1, (1 << bits) // 2, (1 << bits) - 1})
    overflow = "saturate" if d.startswith("s") else "infinity"
    text = UNIT.format(a=a, c=c, d=d, bits=bits, codes=codes, overflow=overflow)
    return unit_files.build_instruction(yamlfile.parse(text))


def rounded(exact: Fraction, fmt: Format, bits: int, number: int) -> Fraction:
    """|exact| in units of the last place and `bits` more: with the random number added, cut to units."""
    place = 0
    if fmt.is_float and exact:
        size = abs(exact)
        exponent = size.numerator.bit_length() - size.denominator.bit_length()
        exponent -= size < Fraction(2) ** exponent
        place = max(exponent, fmt.min_exponent) - fmt.fraction_bits
    kept = abs(exact) / Fraction(2) ** place * (1 << bits) // 1
    return (-1 if exact < 0 else 1) * (kept + number >> bits) * Fraction(2) ** place


def wanted(ins: Instruction, row: dict[str, np.ndarray], bits: int, number: int) -> int | None:
    """The code of d; None where an operand is infinite or a NaN."""
    read = {name: [ins.formats[name].decode(int(x)) for x in np.ravel(row[name])] for name in "abc"}
    if any(x.kind > Kind.FINITE for terms in read.values() for x in terms):
        return None
    a, b, c = ([x.value for x in read[name]] for name in "abc")
    exact = sum((x * y for x, y in zip(a, b, strict=True)), c[0])
    fmt = ins.formats["d"]
    found = rounded(exact, fmt, bits, number)
    if not fmt.is_float:
        return int(min(max(found, -(1 << 15)), (1 << 15) - 1)) & 0xFFFF
    if abs(found) > fmt.decode(fmt.largest).value:
        return (fmt.largest if fmt.infinity is None else fmt.infinity) | int(exact < 0) << fmt.sign_shift
    if not found:
        return 0
    codes = [code for code in near(fmt, found) if fmt.decode(code).value == found]
    assert len(codes) == 1, "what is rounded is a number of the format"
    return codes[0]


def near(fmt: Format, value: Fraction) -> list[int]:
    """Codes around a value, found by bisection on the magnitude."""
    low, high = 0, fmt.largest
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fmt.decode(middle).value >= abs(value) else (middle + 1, high)
    return [low | int(value < 0) << fmt.sign_shift]


@pytest.mark.parametrize(("a", "c", "d", "bits"), CASES)
def test_models_round_as_rationals_do(a: str, c: str, d: str, bits: int) -> None:
    ins = unit(a, c, d, bits)
    compared = 0
    for code, values in ins.modes.codes():
        one, number = ins.mode_units[code], values["r"]
        for kind in KINDS:
            operands = stimuli.generate(one, kind, 20, np.random.default_rng([code, bits]))
            core = one.dot(**operands)
            mode = np.full(20, code, ins.modes.format.dtype)
            np.testing.assert_array_equal(ins.dot(**operands, mode=mode), core)
            np.testing.assert_array_equal(datapath.results(one, (), operands), core)
            if one.formats["d"].is_float:
                assert outputs(one, operands, 20)["d"] == core.tolist()
            for i in range(20):
                row = {name: codes[i] for name, codes in operands.items()}
                answer = wanted(one, row, bits, number)
                if answer is not None:
                    compared += 1
                    assert int(core[i]) == answer == one.reference_dot(**row), (kind, row, number)
    assert compared > 160


def test_of_all_random_numbers_the_share_rounds_up_that_is_cut() -> None:
    """3/16 of the last place is cut: r = 13, 14 and 15 round up."""
    ins = golden.load_instruction(spec_folder() / "examples" / "stochastic.yaml")
    a, b = np.zeros((16, 4), np.uint16), np.zeros((16, 4), np.uint16)
    a[:, 0], b[:, 0] = 0x3F80, 0x3F81  # 1 times 1 + 2^-7, and c: 3 * 2^-11
    c = np.full(16, np.float32(3 * 2.0**-11)).view(np.uint32)
    found = ins.dot(a, b, c, mode=np.arange(16, dtype=np.uint8))
    assert found.tolist() == [0x3F81] * 13 + [0x3F82] * 3


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("random_bits: 3, random: 8", "key 'random' is 8, expected less than 2^random_bits = 8"),
        ("random_bits: 3", "random"),
        ("random: 3", "random"),
        ("random_bits: 17, random: 0", "key 'random_bits' is 17, expected an integer from 1 to 16"),
    ],
)
def test_what_cannot_be_a_random_number_is_refused(keys: str, message: str) -> None:
    text = UNIT.format(a="f16", c="f32", d="f32", bits=3, codes=[0], overflow="infinity")
    text = text.replace("modes: {r: [0]}\n", "").replace("random_bits: 3, random: $r", keys)
    with pytest.raises(SpecError, match=message.replace("^", r"\^")):
        unit_files.build_instruction(yamlfile.parse(text))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "rounding: toward_zero",
            "rounding: down",
            "key 'rounding' is 'down', expected toward_zero with random_bits",
        ),
        ("modes:", "flags: [inexact]\nmodes:", "no rule says which flags stochastic rounding raises"),
    ],
)
def test_another_rounding_or_flags_with_it_are_refused(old: str, new: str, message: str) -> None:
    text = UNIT.format(a="f16", c="f32", d="f32", bits=3, codes=[0, 5], overflow="infinity")
    with pytest.raises(SpecError, match=message):
        unit_files.build_instruction(yamlfile.parse(text.replace(old, new)))


def test_a_wrong_random_number_is_another_unit() -> None:
    rng = random.Random(1)
    first, other = unit("f16", "f32", "f32", 4), unit("f16", "f32", "f32", 7)
    a, b = ([[rng.randrange(0x3C00, 0x4400) for _ in range(2)] for _ in range(400)] for _ in "ab")
    c = np.array([rng.randrange(0x3F800000, 0x40800000) for _ in range(400)], np.uint32)
    given = np.array(a, np.uint16), np.array(b, np.uint16), c
    mode = np.full(400, 2, np.uint8)
    assert (first.dot(*given, mode=mode) != other.dot(*given, mode=mode * 0 + 1)).any()
