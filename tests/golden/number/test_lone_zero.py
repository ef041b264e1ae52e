"""Floats whose exponent field 0 is an exponent as every other, but for code 0: against exact rationals."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from exact import to_integer, two
from hypothesis import given, settings
from hypothesis import strategies as st
from long_run import long_after

import golden
from golden import yamlfile
from golden.catalog import unit_files
from golden.catalog.unit_text import unit_text
from golden.cover.coverage import Coverage
from golden.errors import SpecError
from golden.model.instruction import Instruction
from golden.number.formats import Kind
from golden.vectors.vectorset import default_set

UNIT = """
unit: u
shape: {{k: {k}}}
formats: {{a: e4m3z, b: e4m3z, c: e5m6z, d: {d}}}
define_formats:
  e4m3z: {{kind: float, storage: 8, exponent_bits: 4, fraction_bits: 3, bias: 7, specials: none,
    subnormals: false}}
  e5m6z: {{kind: float, storage: 16, exponent_bits: 5, fraction_bits: 6, bias: 15, specials: {specials},
    subnormals: false}}
steps:
  - multiply: {{to: products}}
  - special_values: {{of: [products, c]}}
  - sum: {{of: [products, c], to: total}}
  - round: {{of: total, rounding: {mode}, overflow: largest, zero: signed}}
"""


def unit(mode: str = "nearest_even", k: int = 3, d: str = "e5m6z", specials: str = "ieee") -> Instruction:
    text = UNIT.format(mode=mode, k=k, d=d, specials=specials)
    return unit_files.build_instruction(yamlfile.parse(text))


def value(code: int, exponent_bits: int, fraction_bits: int, bias: int) -> Fraction:
    fields = code & ((1 << (exponent_bits + fraction_bits)) - 1)
    if fields == 0:
        return Fraction(0)
    size = (1 + Fraction(fields % (1 << fraction_bits), 1 << fraction_bits)) * two(
        (fields >> fraction_bits) - bias
    )
    return -size if code >> (exponent_bits + fraction_bits) else size


def encoded(x: Fraction, mode: str) -> int:
    """Of e5m6z: the exact value of the only code that rounding to 6 fraction bits allows."""
    sign = (x < 0) << 11
    e = -15
    while abs(x) >= two(e + 1):
        e += 1
    rounded = abs(to_integer(x * two(6 - e), mode) * two(e - 6))
    if rounded <= two(-15):  # the least number is 2**-15 * (1 + 2**-6)
        return sign
    if rounded >= two(16):
        return sign | (30 << 6 | 63)
    while rounded >= two(e + 1):
        e += 1
    return sign | (e + 15) << 6 | int((rounded * two(-e) - 1) * 64)


@pytest.mark.parametrize("mode", long_after(2, ["nearest_even", "toward_zero", "down", "up", "nearest_away"]))
@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_dot_products_of_formats_without_subnormals(mode: str, seed: int) -> None:
    ins, rng = unit(mode), random.Random(seed)
    edges = (0, 0x80, 1, 0x81, 8)

    def drawn() -> int:
        return rng.choice((*edges, rng.randrange(256), rng.randrange(16)))

    a, b = (np.array([[drawn() for _ in range(3)] for _ in range(40)], np.uint8) for _ in "ab")
    c = np.array([rng.choice((0, 1, 0x801, rng.randrange(64), rng.randrange(31 << 6))) for _ in a], np.uint16)
    for i, code in enumerate(ins.dot(a, b, c).tolist()):
        pairs = zip(a[i].tolist(), b[i].tolist(), strict=True)
        exact = sum((value(x, 4, 3, 7) * value(y, 4, 3, 7) for x, y in pairs), value(int(c[i]), 5, 6, 15))
        assert ins.reference_dot(a=a[i], b=b[i], c=c[i]) == code
        assert code & (0x7FF if exact == 0 else 0xFFF) == encoded(exact, mode)


def test_every_code() -> None:
    fmt = unit().formats["a"]
    assert [fmt.decode(code).value for code in range(256)] == [value(code, 4, 3, 7) for code in range(256)]
    assert fmt.decode(0x80).kind == Kind.ZERO and fmt.decode(0).kind == Kind.ZERO
    for code in range(256):
        assert golden.from_float(fmt, golden.to_float(fmt, np.uint8(code))) == code


def test_results_to_a_built_in_format_and_what_is_made_of_a_unit() -> None:
    """Stimuli, coverage, the text of the unit, and the words for it know the format."""
    ins = unit(d="f32", specials="none")
    assert unit_files.build_instruction(yamlfile.parse(unit_text(ins))).program == ins.program
    vectors = default_set(ins, 400, seed=3)
    for i in range(400):
        operands = {name: array[i] for name, array in vectors.operands.items()}
        assert ins.reference_dot(**operands) == vectors.d[i]
    coverage = Coverage(ins)
    coverage.sample_set(vectors)
    assert not coverage.surprises()
    assert "products" in str(ins.trace(*(vectors.operands[name][0].tolist() for name in "abc")))


def test_what_goes_with_subnormals_is_refused() -> None:
    text = UNIT.format(mode="up", k=1, d="f32", specials="ieee")
    with pytest.raises(SpecError, match="a format without a zero has none anyway"):
        unit_files.build_instruction(yamlfile.parse(text.replace("subnormals", "zero: false, subnormals")))
    changed = text.replace("  - multiply", "  - hidden_bit: {of: a}\n  - multiply")
    with pytest.raises(SpecError, match="'hidden_bit' is for formats with subnormal numbers"):
        unit_files.build_instruction(yamlfile.parse(changed))
