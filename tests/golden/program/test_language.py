"""What the language of steps says, each word from its description alone: against exact rationals or results
worked out by hand."""

from __future__ import annotations

import random
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ieee import Ieee
from small_units import bits, both, unit

import golden
from golden import yamlfile
from golden.catalog import unit_files
from golden.errors import OldWordWarning
from golden.model.instruction import Instruction
from golden.number.formats import get_format
from golden.number.rounding import encode_fraction, shift_right

# The sticky bit ---------------------------------------------------------------------------------------------

ALIGNED = (
    "multiply: {{to: products}}",
    "align: {{of: [products, c], fraction_bits: {f}, rounding: toward_zero, cut: {cut}}}",
    "sum: {{of: [products, c], to: total}}",
    "round: {{of: total, rounding: {mode}, overflow: ieee, zero: signed{more}}}",
)


def sticky(cut: str, f: int = 24, mode: str = "nearest_even", more: str = "") -> Instruction:
    return unit(*(step.format(f=f, cut=cut, mode=mode, more=more) for step in ALIGNED))


@pytest.mark.parametrize(
    ("cut", "d"), [("sticky_added", 0x44010C84), ("sticky_or", 0x44010C83)], ids=["added", "or"]
)
def test_two_sticky_bits_carry_where_each_is_added(cut: str, d: int) -> None:
    """512 and twice 0.500488.. * 4.191..; the correctly rounded sum is 0x44010c83."""
    a, b = [0x6000, 0, 0x3801, 0x3801], [0x3C00, 0, 0x4431, 0x4431]
    f16 = get_format("f16")
    exact = sum((f16.decode(x).value * f16.decode(y).value for x, y in zip(a, b, strict=True)), Fraction(0))
    assert encode_fraction(get_format("f32"), exact) == 0x44010C83
    found = {f: both(sticky(cut, f), a, b, 0) for f in range(20, 30)}
    assert d in found.values(), {f: hex(code) for f, code in found.items()}


@given(st.integers(0, 2**32 - 1))
def test_the_or_of_what_is_cut_rounds_positive_sums_rightly(seed: int) -> None:
    """Terms of one sign, three bits below the result's: one rounding of the exact sum, where no carry of
    the cut parts reaches the bits kept (one term alone is cut)."""
    rng = random.Random(seed)
    ins = sticky("sticky_or", f=26)
    large = rng.uniform(1, 2) * 2.0 ** rng.randint(0, 5)
    c = bits(large * 2.0 ** rng.randint(4, 30))
    a = [int(golden.from_float("f16", np.array(large))), 0, 0, 0]
    exact = get_format("f32").decode(c).value + get_format("f16").decode(a[0]).value
    assert both(ins, a, [0x3C00, 0, 0, 0], c) == encode_fraction(get_format("f32"), exact)


ADDER = """
unit: adder
shape: {{k: 1}}
formats: {{a: f16, c: f16, d: f16}}
steps:
  - align: {{of: [a, c], fraction_bits: 13, rounding: {align}, cut: sticky_or}}
  - sum: {{of: [a, c], to: total, rounding: {final}}}
  - round: {{of: total, rounding: {final}, overflow: ieee, zero: signed}}
"""
RIGHT = {
    "toward_zero": {"addition, +", "addition, -"},
    "down": {"addition, +", "subtraction, +"},
    "up": {"addition, -", "subtraction, -"},
    "to_odd": {"addition, +", "addition, -", "subtraction, +", "subtraction, -"},
}
"""By rounding of the alignment: additions of two numbers, by the sum's sign, in which one OR is enough."""


@pytest.mark.parametrize("final", ["nearest_even", "toward_zero", "down", "up"])
@pytest.mark.parametrize("align", list(RIGHT))
def test_where_the_or_of_what_is_cut_rounds_rightly(align: str, final: str) -> None:
    """What the meaning of `cut: sticky_or` says, against exact rationals: a term of the other sign cut toward
    zero counts as if it had the sum's sign."""
    ins = unit_files.build_instruction(yamlfile.parse(ADDER.format(align=align, final=final)))
    rng, f16 = np.random.default_rng(4), Ieee("f16")
    large = rng.integers(18 << 10, 31 << 10, 600).astype(np.uint16)
    large[::3] &= 0x7C00  # a power of two loses its leading place
    small = (large - rng.integers(9 << 10, 17 << 10, 600)).astype(np.uint16)
    signs = rng.integers(0, 2, (2, 600)).astype(np.uint16) << 15
    a, c = large | signs[0], small | signs[1]
    wrong = set()
    for x, y, d in zip(a.tolist(), c.tolist(), ins.dot(a[:, None], c=c).tolist(), strict=True):
        if d != f16.add(x, y, final):
            wrong.add(f"{'subtraction' if (x ^ y) >> 15 else 'addition'}, {'-' if x >> 15 else '+'}")
    assert wrong == RIGHT["to_odd"] - RIGHT[align]


def test_a_sum_of_zero_keeps_its_sticky_bit() -> None:
    """1 - 1 + 2**-40: rounding up sees the bit that was cut, rounding to nearest does not."""
    a, b, c = [0x3C00, 0xBC00, 0x0400, 0], [0x3C00, 0x3C00, 0x0001, 0], 0
    assert both(sticky("dropped", mode="up"), a, b, c) == 0
    assert both(sticky("sticky_or", mode="nearest_even"), a, b, c) < bits(2.0**-20)
    assert both(sticky("sticky_or", mode="up"), a, b, c) != 0


def test_a_rounding_without_its_sticky_bit_takes_more_for_a_tie() -> None:
    """1 + 2**-24 + 2**-25: more than half a place, a tie for a rounding that sees the round bit alone."""
    a, c = [0x3C00, 0, 0, 0], bits(2.0**-24 + 2.0**-25)
    assert both(sticky("dropped", f=30), a, [0x3C00, 0, 0, 0], c) == bits(1 + 2.0**-23)
    assert both(sticky("dropped", f=30, more=", sticky: left_out"), a, [0x3C00, 0, 0, 0], c) == bits(1.0)


def test_the_old_word_is_understood_and_named() -> None:
    with pytest.warns(OldWordWarning, match="'cut: sticky' is now written 'cut: sticky_added'"):
        old = sticky("sticky")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = sticky("sticky_added")
    assert old.program == new.program


# Rounding to odd --------------------------------------------------------------------------------------------


@given(st.integers(0, 2**90), st.integers(0, 80), st.integers(0, 1))
def test_to_odd_sets_the_last_bit_of_whatever_is_not_exact(magnitude: int, shift: int, sign: int) -> None:
    kept = shift_right(sign, magnitude, shift, "to_odd")
    assert kept >> 1 == magnitude >> shift >> 1
    assert kept & 1 == (magnitude >> shift & 1 or magnitude % (1 << shift) != 0)


@given(st.integers(0, 2**32 - 1))
def test_rounding_to_odd_and_then_to_nearest_is_one_rounding(seed: int) -> None:
    """Boldo and Melquiond: what was rounded to odd with two bits more can be rounded again without an
    error."""
    rng = random.Random(seed)
    steps = [
        "multiply: {to: products}",
        "sum: {of: [products, c], to: total}",
        "round: {of: total, to: partial, format: f32, rounding: to_odd, overflow: ieee, zero: signed}",
        "round: {of: partial, rounding: nearest_even, overflow: ieee, zero: signed}",
    ]
    ins = unit(*steps, d="f16")
    a = [rng.randrange(0x7C00) | rng.randrange(2) << 15 for _ in range(4)]
    b = [rng.randrange(0x3C00) for _ in range(4)]
    f16, f32 = get_format("f16"), get_format("f32")
    c = bits(rng.uniform(-4, 4))
    exact = sum(
        (f16.decode(x).value * f16.decode(y).value for x, y in zip(a, b, strict=True)), f32.decode(c).value
    )
    wanted = encode_fraction(f16, exact)
    if abs(exact) < 65504:
        assert both(ins, a, b, c) == wanted


def test_to_odd_never_overflows_to_infinity_by_ieee() -> None:
    ins = unit("fma: {to: d, rounding: to_odd, format: f32}", a="f32", b="f32", k=1)
    assert both(ins, [0x7F7FFFFF], [bits(2.0)], 0) == 0x7F7FFFFF


# Zeros and tiny results -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rounding", "zero", "cancelled", "underflow"),
    [
        ("nearest_even", "signed", 0, 1),
        ("down", "signed", 1, 1),
        ("nearest_even", "signed_underflow", 0, 1),
        ("nearest_even", "positive", 0, 0),
    ],
)
def test_zero_rules(rounding: str, zero: str, cancelled: int, underflow: int) -> None:
    """x - x is -0 where the sum rounds down; a nonzero total that underflows keeps its sign, if asked."""
    ins = unit(
        "multiply: {to: products}",
        f"sum: {{of: [products, c], to: total, rounding: {rounding}}}",
        f"round: {{of: total, rounding: toward_zero, overflow: ieee, zero: {zero}}}",
        d="f16",
    )
    assert both(ins, [0x3C00, 0xBC00, 0, 0], [0x3C00] * 4, 0) >> 15 == cancelled
    assert both(ins, [0x8001, 0, 0, 0], [0x0001, 0, 0, 0], 0) >> 15 == underflow


@pytest.mark.parametrize(("tiny", "d"), [("subnormal_result", 0x00800000), ("unbounded", 0)])
def test_what_is_too_small(tiny: str, d: int) -> None:
    """2**-126 - 1.5 * 2**-151 is rounded up to 2**-126 on the grid of subnormal numbers; with one bit more,
    as exponents without a bound have, it stays below."""
    ins = unit(
        "multiply: {to: products}",
        "sum: {of: [products, c], to: total}",
        f"round: {{of: total, rounding: nearest_even, overflow: ieee, zero: signed, flush: signed, tiny: "
        f"{tiny}}}",
        a="f32",
        b="f32",
        k=1,
    )
    a, b = bits(-1.5 * 2.0**-100), bits(2.0**-51)
    assert both(ins, [a], [b], 0x00800000) == d
    assert (
        both(ins, [bits(-(2.0**-100))], [bits(2.0**-53)], 0x00800000) == 0x00800000
    )  # up to 2**-126 in both
