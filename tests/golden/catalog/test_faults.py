"""The schema's faulty behaviours: the two models agree on random units with them, and known answers hold.

docs/diagnosis.md describes the keys. The units come from test_fuzz.py, with keys added at random.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from faulty_units import INFINITY, MINUS_INFINITY, ONE, TINY, TWO, UNIT, faulty_unit, known_unit
from long_run import long_after
from model_differences import differences
from random_units import accepted

from golden import yamlfile
from golden.catalog import unit_files
from golden.errors import SpecError
from golden.model.instruction import Instruction

Keys = dict[str, Any]


@pytest.mark.parametrize("block", long_after(1, range(16)))
def test_models_agree_on_faulty_units(block: int) -> None:
    """The last units round sums of very few bits, where a sticky gap could reach the round bit."""
    for seed in (*range(block * 15, block * 15 + 15), *((5043, 5067) if block == 15 else ())):
        text, ins = accepted(faulty_unit, seed)
        found = differences(ins, 6, seed)
        assert not found, "\n".join([f"seed {seed}", *found, text])


# Known answers: one f16 x f16 + f32 unit, one key at a time -------------------------------------------------


def f32(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def run(ins: Instruction, a: tuple[int, int], b: tuple[int, int], c: int) -> int:
    operands = np.array(a, np.uint16), np.array(b, np.uint16), np.array(c, np.uint32)
    d = int(ins.dot(*operands))
    assert d == ins.reference_dot(*operands)
    return d


@pytest.mark.parametrize(
    ("keys", "a", "b", "c", "sound", "faulty"),
    [
        # 2^-10 aligns to 0 * 2^15 (exponent -14 + 15 = 1 at most), to itself otherwise: 2^-24 is cut against
        # 2^1 only.
        (
            {"align": ", zeros: maximum"},
            (0, ONE),
            (0x7800, 0x1400),
            f32(2.0**-33),
            f32(2.0**-10 + 2.0**-33),
            f32(2.0**-10),
        ),
        # A shift of 30 counts as 4: 2^-30 lands as 2^-4.
        ({"align": ", shift_limit: 4"}, (ONE, 0), (ONE, 0), f32(2.0**-30), f32(1.0), f32(1.0625)),
        ({"align": ", left_out: {c: dropped}"}, (ONE, 0), (ONE, 0), f32(4.0), f32(5.0), f32(1.0)),
        ({"align": ", left_out: {c: unshifted}"}, (ONE, 0), (ONE, 0), f32(4.0), f32(5.0), f32(2.0)),
        # 1 + 1 in a register of two integer bits is -2; in one of three it is 2.
        ({"sum": ", width: 2"}, (ONE, ONE), (ONE, ONE), 0, f32(2.0), f32(-2.0)),
        ({"sum": ", width: 3"}, (ONE, ONE), (ONE, ONE), 0, f32(2.0), f32(2.0)),
        ({"multiply": ", zero_times_infinity: zero"}, (INFINITY, ONE), (0, TWO), 0, 0x7FC00000, f32(2.0)),
        (
            {"multiply": ", zero_times_infinity: infinity"},
            (MINUS_INFINITY, ONE),
            (0, TWO),
            0,
            0x7FC00000,
            0xFF800000,
        ),
        (
            {"special": ", opposite_infinities: first"},
            (MINUS_INFINITY, INFINITY),
            (ONE, ONE),
            0,
            0x7FC00000,
            0xFF800000,
        ),
        (
            {"special": ", opposite_infinities: last"},
            (MINUS_INFINITY, INFINITY),
            (ONE, ONE),
            0,
            0x7FC00000,
            0x7F800000,
        ),
        # The least subnormal f16 is 2^-24; with the hidden bit (1 + 2^-10) * 2^-14. Zeros become 2^-14 each.
        (
            {"before": "  - hidden_bit: {of: a}\n"},
            (TINY, 0),
            (ONE, 0),
            0,
            f32(2.0**-24),
            f32((1 + 2.0**-10) * 2.0**-14),
        ),
        ({"before": "  - hidden_bit: {of: a, zeros: set}\n"}, (ONE, 0), (0, ONE), 0, 0, f32(2.0**-14)),
    ],
)
def test_known_answers(
    keys: dict[str, str], a: tuple[int, int], b: tuple[int, int], c: int, sound: int, faulty: int
) -> None:
    assert run(known_unit(), a, b, c) == sound
    assert run(known_unit(**keys), a, b, c) == faulty


@pytest.mark.parametrize(("gap", "d"), [(0, 1 + 2.0**-23), (1, 1 + 2.0**-23), (2, 1.0)])
def test_sticky_gap(gap: int, d: float) -> None:
    """Rounding up sees 2^-26 through the sticky bit below 2^-24, unless the two bits in between are not
    looked at."""
    text = UNIT.format(
        before="", multiply="", special="", align=f", cut: sticky_added, sticky_gap: {gap}", sum="", round=""
    )
    ins = unit_files.build_instruction(
        yamlfile.parse(text.replace("of: total, rounding: toward_zero", "of: total, rounding: up"))
    )
    assert run(ins, (ONE, 0), (ONE, 0), f32(2.0**-26)) == f32(d)


NARROW_UNIT = """\
unit: narrow
shape: {{k: 1}}
formats: {{a: f16, b: f16, c: f16, d: f16}}
steps:
  - multiply: {{to: products}}
  - sum: {{of: [products, c], to: total}}
  - round: {{of: total, rounding: nearest_even, overflow: infinity{keys}}}
"""


@pytest.mark.parametrize(
    ("keys", "a", "b", "d"),
    [
        # (1 - 2^-11) * 2^-14 rounds up to the least normal number, 2^-14.
        (", zero: signed", 0x3BFF, 0x0400, 0x0400),
        (", zero: signed, subnormal_carry: lost", 0x3BFF, 0x0400, 0x0000),
        (", zero: signed, subnormal_carry: lost", 0xBBFF, 0x0400, 0x8000),
        # -2^-48 underflows; 0 * -1 is an exact zero.
        (", zero: positive", 0x8001, 0x0001, 0x0000),
        (", zero: signed_underflow", 0x8001, 0x0001, 0x8000),
        (", zero: signed_underflow", 0x0000, 0xBC00, 0x0000),
    ],
)
def test_results_near_zero(keys: str, a: int, b: int, d: int) -> None:
    ins = unit_files.build_instruction(yamlfile.parse(NARROW_UNIT.format(keys=keys)))
    minus_zero_or_zero = np.array(0x8000 if a & 0x8000 else 0, np.uint16)
    operands = np.array([a], np.uint16), np.array([b], np.uint16), minus_zero_or_zero
    assert int(ins.dot(*operands)) == ins.reference_dot(*operands) == d


@pytest.mark.parametrize(("low", "d"), [(12, 0x3C00), (13, 0x3C00), (14, 0x3C01)])
def test_sticky_gap_of_the_rounding(low: int, d: int) -> None:
    """1 + 2^-11 is a tie; what lies just above it decides, unless it stands in the two bits below the
    round bit."""
    text = (
        NARROW_UNIT.format(keys=", zero: signed, sticky_gap: 2")
        .replace("k: 1", "k: 3")
        .replace("c: f16", "c: f32")
    )
    ins = unit_files.build_instruction(yamlfile.parse(text.replace("a: f16, b: f16", "a: f32, b: f32")))
    a = np.array([f32(1.0), f32(2.0**-11), f32(2.0**-low)], np.uint32)
    operands = a, np.full(3, f32(1.0), np.uint32), np.uint32(0)
    assert int(ins.dot(*operands)) == ins.reference_dot(*operands) == d


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"align": ", sticky_gap: 2"}, "needs 'cut: sticky_added'"),
        ({"align": ", zeros: sticky"}, "needs 'cut: sticky_added'"),
        ({"align": ", zeros: maximal"}, "expected one of ignored, maximum, sticky; nearest: maximum"),
        ({"align": ", left_out: {products: dropped, c: dropped}"}, "leaves no register"),
        ({"align": ", left_out: {total: dropped}"}, "unknown key 'total'"),
        ({"align": ", shift_limit: -1"}, "expected an integer from 0"),
        ({"sum": ", width: 0"}, "expected an integer from 1"),
        ({"sum": ", cancelled: lost"}, "expected one of keeps_exponent, zero"),
        ({"multiply": ", operation: and, zero_times_infinity: zero"}, "is for products"),
        ({"before": "  - hidden_bit: {of: products}\n"}, "key 'of' is 'products', expected one of a, b, c"),
        ({"special": ", opposite_infinities: both"}, "expected one of nan, first, last"),
    ],
)
def test_refused(keys: dict[str, str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        known_unit(**keys)


def test_refused_for_integers() -> None:
    text = """\
unit: integers
shape: {k: 2}
formats: {a: s8, b: s8, c: s32, d: s32}
steps:
  - %s
  - multiply: {to: products}
  - sum: {of: [c, products], to: d, order: sequential, rounding: toward_zero, overflow: saturate}
"""
    with pytest.raises(SpecError, match="step 'hidden_bit' is for formats with subnormal numbers, a is s8"):
        unit_files.build_instruction(yamlfile.parse(text % "hidden_bit: {of: a}"))
    ins = unit_files.build_instruction(yamlfile.parse((text % "x").replace("  - x\n", "")))
    operands = np.array([1, 0xFF], np.uint8), np.array([1, 1], np.uint8), np.array(0x7FFFFFFF, np.uint32)
    assert int(ins.dot(*operands)) == ins.reference_dot(*operands) == 0x7FFFFFFE, (
        "clamped after the first product"
    )
    with pytest.raises(SpecError, match="overflow 'saturate' is for integers"):
        unit_files.build_instruction(
            yamlfile.parse((text % "x").replace("  - x\n", "").replace("s32", "f32"))
        )


def test_order_of_k() -> None:
    """`k: {list: ...}` gives the order of a chain: (2^30 + 1) - 2^30 in f32 depends on it."""
    text = """\
unit: order
shape: {k: 3}
formats: {a: f32, b: f32, c: f32, d: f32}
program: [{k: {list: %s}, steps: [{fma: {to: d, rounding: nearest_even}}]}]
"""
    a = np.array([f32(2.0**30), f32(1.0), f32(-(2.0**30))], np.uint32)
    b = np.full(3, f32(1.0), np.uint32)
    for order, d in (("[0, 1, 2]", 0.0), ("[0, 2, 1]", 1.0), ("[2, 0, 1]", 1.0)):
        ins = unit_files.build_instruction(yamlfile.parse(text % order))
        assert int(ins.dot(a, b, np.uint32(0))) == f32(d)
    with pytest.raises(SpecError, match="an integer from 0 to 2"):
        unit_files.build_instruction(yamlfile.parse(text % "[0, 1, 3]"))
