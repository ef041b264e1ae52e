"""What becomes of bits that were cut, below and above: sticky bits, roundings that do not see them, overflow.

Against exact rationals, step by step as docs/spec-schema.md says them; tests/golden/exact.py rounds.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from exact import cut, decode, encode, log2_floor, two
from hypothesis import given, settings
from hypothesis import strategies as st
from small_units import both, unit

from golden.errors import SpecError
from golden.program.words import step_text

MODES = ("toward_zero", "nearest_even", "nearest_away", "down", "up", "to_odd")
F16 = st.integers(0, 2**16 - 1).filter(lambda code: code >> 10 & 31 != 31)
NEAR = st.integers(0x7B000000, 0x7D000000) | st.integers(0x3F000000, 0x46000000)
F32 = st.builds(
    lambda code, sign: code | sign << 31, NEAR | st.integers(0, 2**31 - 2**23 - 1), st.integers(0, 1)
)


def rounded(x: Fraction, last: int, mode: str) -> Fraction:
    """x as a multiple of 2**last."""
    return cut(x * two(-last), 0, mode) * two(last)


def with_sticky_bit(addends: list[tuple[Fraction, int]], f: int) -> tuple[Fraction, int]:
    """The sum of terms cut at F = f, half a place more where anything was cut; and its exponent.

    addends: (s, e) for s * 2**e.
    """
    top = max(e for s, e in addends if s)
    kept = [cut(s * two(e - top), f) * two(top) for s, e in addends]
    lost = any(s * two(e) != x for (s, e), x in zip(addends, kept, strict=True))
    total = sum(kept, Fraction(0))
    return total + (-1 if total < 0 else 1) * lost * two(top - f - 1), top


CUT = (
    "multiply: {to: products}",
    "align: {of: [products, c], fraction_bits: 18, rounding: toward_zero, cut: sticky_or}",
    "sum: {of: [products, c], to: total}",
)
ROUND = "round: {of: total, rounding: %s, overflow: ieee, zero: signed}"


def test_a_chain_of_cuts_does_not_exceed_the_exact_value() -> None:
    """c alone, cut to 18 and to 15 fraction bits: the sticky bit is cut with the others."""
    steps = (*CUT, "normalize: {of: total, fraction_bits: 15, rounding: toward_zero}", ROUND % "toward_zero")
    assert both(unit(*steps), [0] * 4, [0] * 4, 0x7C0BCB32) == 0x7C0BCB00


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=12)
@given(
    a=st.lists(F16, min_size=2, max_size=2),
    b=st.lists(F16, min_size=2, max_size=2),
    c=F32,
    kept=st.integers(8, 40),
)
def test_normalize_takes_the_sticky_bit_as_the_last_one(
    mode: str, a: list[int], b: list[int], c: int, kept: int
) -> None:
    x, _ = exact_sum(a, b, c)
    normal = rounded(x, log2_floor(x) - kept, mode) if x else x
    step = f"normalize: {{of: total, fraction_bits: {kept}, rounding: {mode}}}"
    found = both(unit(*CUT, step, ROUND % "nearest_even", k=2), a, b, c)
    assert found & (2**31 - 1 if not normal else 2**32 - 1) == encode(
        "f32", normal, "nearest_even", None, "ieee"
    )


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=12)
@given(
    a=st.lists(F16, min_size=2, max_size=2),
    b=st.lists(F16, min_size=2, max_size=2),
    c=F32,
    kept=st.integers(4, 24),
)
def test_a_second_alignment_takes_the_sticky_bit_as_the_last_one(
    mode: str, a: list[int], b: list[int], c: int, kept: int
) -> None:
    x, top = exact_sum(a, b, c)
    second = rounded(x, top - kept, mode)
    step = f"align: {{of: total, fraction_bits: {kept}, rounding: {mode}}}"
    found = both(unit(*CUT, step, ROUND % "nearest_even", k=2), a, b, c)
    assert found & (2**31 - 1 if not second else 2**32 - 1) == encode(
        "f32", second, "nearest_even", None, "ieee"
    )


def exact_sum(a: list[int], b: list[int], c: int) -> tuple[Fraction, int]:
    pairs = [(decode("f16", x), decode("f16", y)) for x, y in zip(a, b, strict=True)]
    addends = [(x.s * y.s, x.e + y.e) for x, y in pairs] + [(decode("f32", c).s, decode("f32", c).e)]
    return with_sticky_bit(addends, 18) if any(s for s, _ in addends) else (Fraction(0), 0)


# Roundings that see nothing of a number ---------------------------------------------------------------------

BLIND = "round: {of: c, format: f16, rounding: nearest_even, overflow: ieee, zero: %s, flush: %s%s}"
LEAST = 0x33800000  # 2**-24, the least f16


@pytest.mark.parametrize("blindness", [", sticky: left_out", ", sticky_gap: 40"])
@pytest.mark.parametrize("sign", [0, 1])
@settings(max_examples=8)
@given(below=st.integers(1, 2**23))
def test_a_number_of_which_nothing_is_seen_is_no_zero(blindness: str, sign: int, below: int) -> None:
    """A total far below the least f16 underflows: `signed_underflow` keeps its sign, `flush: positive` drops
    it."""
    c = LEAST - (1 << 23) - below | sign << 31  # less than half the least number
    for zero, flush, d in (
        ("signed_underflow", "none", sign << 15),
        ("signed", "positive", 0),
        ("positive", "none", 0),
    ):
        ins = unit(BLIND % (zero, flush, blindness), d="f16", k=1)
        assert both(ins, [0], [0], c) == d
        exact_zero = sign << 15 if zero == "signed" else 0
        assert both(ins, [0], [0], sign << 31) == exact_zero


# Overflow ---------------------------------------------------------------------------------------------------

WORDS = {  # largest, infinity, NaN, by format
    "e4m3": (0x7E, None, 0x7F),
    "e5m2": (0x7B, 0x7C, 0x7E),
    "e4m3fnuz": (0x7F, None, 0x80),
    "e2m1": (7, None, None),
    "f16": (0x7BFF, 0x7C00, 0x7E00),
}


def beyond(d: str, mode: str, rule: str, negative: bool, nan: int | None) -> int:
    """What the words say of a number past all others."""
    largest, infinity, own = WORDS[d]
    sign = negative << ({"f16": 15, "e2m1": 3}.get(d, 7))
    if rule == "nan":
        word = own if nan is None else nan
        assert word is not None
        return word
    stays = rule == "ieee" and mode in ("toward_zero", "to_odd", "up" if negative else "down")
    return sign | (largest if rule == "largest" or infinity is None or stays else infinity)


@pytest.mark.parametrize("d", list(WORDS))
@pytest.mark.parametrize("rule", ["infinity", "largest", "ieee", "nan"])
@pytest.mark.parametrize("nan", [None, 5])
def test_what_overflow_becomes(d: str, rule: str, nan: int | None) -> None:
    word = "" if nan is None else f", nan: {nan}"
    for mode in MODES:
        step = f"round: {{of: c, rounding: {mode}, overflow: {rule}, zero: signed{word}}}"
        if rule == "nan" and nan is None and WORDS[d][2] is None:
            with pytest.raises(SpecError, match="key 'overflow' is 'nan', but e2m1 has no NaN"):
                unit(step, d=d, k=1)
            continue
        ins = unit(step, d=d, k=1)
        c = [0x7F7FFFFF, 0xFF7FFFFF, 0x49000000, 0xC9000000]
        found = [both(ins, [0], [0], code) for code in c]
        assert found == [beyond(d, mode, rule, code >> 31 == 1, nan) for code in c]
        zeros = np.zeros((128, 1), np.uint16)
        many = ins.dot(zeros, zeros, np.array(c * 32, np.uint32))
        assert many.tolist() == found * 32, "in blocks"


def test_the_words_of_a_format_without_infinities_are_its_bits() -> None:
    """1024 * 64 in e4m3: the largest number; the words say so, and NaN can be said."""
    for rule, d, said in (
        ("infinity", 0x7E, "overflow becomes the largest finite number (e4m3 has no infinity)"),
        ("ieee", 0x7E, "overflow becomes the largest finite number (e4m3 has no infinity)"),
        ("nan", 0x7F, "overflow becomes NaN"),
    ):
        step = f"round: {{of: products, rounding: nearest_even, overflow: {rule}, zero: signed}}"
        ins = unit("multiply: {to: products}", step, d="e4m3", k=1)
        assert both(ins, [0x6400], [0x5400], 0) == d
        assert said in step_text(ins.program.operations[-1].final)
