"""Every rounding against exact rationals, in the reference, the core's interpreter and its blocks."""

from __future__ import annotations

from fractions import Fraction

import exact
import numpy as np
import pytest
from random_units import load

from golden.number.rounding import MODES, ROUNDINGS, shift_right

UNIT = """\
unit: rounds
shape: {{k: 1}}
formats: {{a: f16, b: f16, c: f16, d: f16}}
steps:
  - multiply: {{to: products}}
  - sum: {{of: [products, c], to: total}}
  - round: {{of: total, rounding: {mode}, overflow: ieee, zero: signed}}
"""
ALIGNED = """\
unit: aligns
shape: {{k: 2}}
formats: {{a: f16, b: f16, c: f16, d: f32}}
steps:
  - align: {{of: [c], fraction_bits: 3, rounding: {mode}}}
  - normalize: {{of: c, fraction_bits: 1, rounding: {mode}}}
  - round: {{of: c, rounding: toward_zero, overflow: ieee, zero: signed}}
"""


def value(code: np.uint16) -> Fraction:
    """A number of f16."""
    return Fraction(float(code.view(np.float16)))


@pytest.mark.parametrize("mode", MODES)
def test_a_shift_rounds_as_the_rationals_do(mode: str) -> None:
    for sign in (0, 1):
        for magnitude in range(130):
            for shift in range(6):
                value = Fraction(-magnitude if sign else magnitude, 1 << shift)
                assert shift_right(sign, magnitude, shift, mode) == abs(exact.to_integer(value, mode))


def test_half_toward_plus_infinity_adds_half_and_cuts_the_twos_complement() -> None:
    for value in range(-200, 200):
        right = value + 4 >> 3
        assert shift_right(int(value < 0), abs(value), 3, "nearest_up") == abs(right)


@pytest.mark.parametrize("mode", MODES)
def test_all_models_round_as_the_rationals_do(mode: str) -> None:
    ins = load(UNIT.format(mode=mode))
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(0, 0x7C00, 600).astype(np.uint16) for _ in "abc")
    a ^= rng.integers(0, 2, 600).astype(np.uint16) << np.uint16(15)
    c[::2] = (a[::2] & 0x8000) | rng.integers(0, 0x0800, 300)  # far below: products alone are cut
    b[::3] = 0x3800  # one half: ties
    d = ins.dot(a[:, None], b[:, None], c)
    general = ins.engine.compute({"a": a[:, None], "b": b[:, None], "c": c}, False, general=True)
    assert (d == general).all()
    for i in range(0, 600, 3):
        total = value(a[i]) * value(b[i]) + value(c[i])
        right = exact.encode("f16", total, mode, overflow="ieee")
        assert total == 0 or int(d[i]) == right, (mode, i)
        assert int(d[i]) == ins.reference_dot(a[i : i + 1], b[i : i + 1], c[i])


@pytest.mark.parametrize("mode", MODES)
def test_alignment_and_normalisation_round_as_the_reference_does(mode: str) -> None:
    ins = load(ALIGNED.format(mode=mode))
    c = np.arange(0, 1 << 16, 37, dtype=np.uint16)
    c = c[(c & 0x7C00) != 0x7C00]
    ones = np.full((len(c), 2), 0x3C00, np.uint16)
    d = ins.dot(ones, ones, c)
    for i in range(0, len(c), 5):
        once = exact.cut(value(c[i]) / exact.two(max(int(c[i]) >> 10 & 31, 1) - 15), 3, mode)
        assert int(d[i]) == ins.reference_dot(ones[i], ones[i], c[i])
        assert once != 0 or int(d[i]) & 0x7FFFFFFF == 0


def test_the_properties_of_a_rounding_follow_from_its_rule() -> None:
    assert {name for name, one in ROUNDINGS.items() if one.nearest} == {
        n for n in MODES if n.startswith("nearest")
    }
    assert {name for name, one in ROUNDINGS.items() if one.keeps_largest(0)} == {
        "toward_zero",
        "down",
        "to_odd",
    }
    assert {name for name, one in ROUNDINGS.items() if not one.lengthens(1)} == {"toward_zero", "up"}
    assert {name for name, one in ROUNDINGS.items() if not one.carries(0)} == {
        "toward_zero",
        "down",
        "to_odd",
    }
