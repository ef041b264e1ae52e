"""golden.kernels.all_reduce against exact rationals, and against trees drawn in NCCL's source."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from golden.errors import OperandError
from golden.kernels.all_reduce import NAN, added, chunks, ring, trees
from golden.number.formats import from_float, get_format
from golden.number.rounding import round_to_code


def rounded(value: Fraction, fmt: str) -> int:
    """The nearest code of a number whose denominator is a power of two."""
    lsb = -(value.denominator.bit_length() - 1)
    return round_to_code(get_format(fmt), int(value < 0), abs(value.numerator), lsb, "nearest_even")


def number(code: int, fmt: str) -> Fraction:
    one = get_format(fmt).decode(code)
    return (-1) ** one.sign * one.significand * Fraction(2) ** one.lsb_exponent


def exact(held: list[list[int]], fmt: str, order: Any) -> list[int]:
    """Element by element, every sum exact and then rounded."""
    if isinstance(order, int):
        return held[order]
    total, *others = (exact(held, fmt, one) for one in order)
    for one in others:
        pairs = zip(total, one, strict=True)
        total = [rounded(number(x, fmt) + number(y, fmt), fmt) for x, y in pairs]
    return total


@pytest.mark.parametrize("fmt", ["f16", "bf16", "f32"])
def test_each_sum_is_rounded_once(fmt: str) -> None:
    rng = np.random.default_rng(1)
    held = [from_float(fmt, rng.standard_normal(60) * 2.0 ** rng.integers(-20, 4, 60)) for _ in range(5)]
    found = set()
    for order in (ring(5, 2), ring(5, 3), *trees(5)):
        d = added(held, fmt, order)
        assert d.tolist() == exact([one.tolist() for one in held], fmt, order)
        found.add(d.tobytes())
    assert len(found) == 4  # the order decides the bits


def test_an_average_is_a_chain_of_fused_multiply_adds() -> None:
    rng = np.random.default_rng(2)
    held = [from_float("bf16", rng.standard_normal(60)) for _ in range(3)]
    third = number(rounded(Fraction(round(2**40 / 3), 2**40), "bf16"), "bf16")
    total = [rounded(number(int(x), "bf16") * third, "bf16") for x in held[1]]
    for rank in (2, 0):
        terms = zip(held[rank].tolist(), total, strict=True)
        total = [rounded(number(x, "bf16") * third + number(y, "bf16"), "bf16") for x, y in terms]
    assert added(held, "bf16", ring(3, 0), mean=True).tolist() == total


def test_special_numbers() -> None:
    for fmt, nan in NAN.items():
        inf, one, minus_zero = (
            int(from_float(fmt, np.array([x]))[0]) for x in (np.inf, 1.0, -0.0)
        )  # fmt: skip
        form = get_format(fmt)
        minus = inf | 1 << (form.bits - 1)
        x = np.array([inf, inf, inf + 1, minus_zero, minus_zero], form.dtype)
        y = np.array([minus, one, one, minus_zero, 0], form.dtype)
        assert added([x, y], fmt, (0, 1)).tolist() == [nan, inf, nan, minus_zero, 0]
        assert added([x, x, y, y], fmt, ring(4, 3), mean=True)[3] == minus_zero


def test_the_trees_are_those_of_the_source() -> None:
    """src/graph/trees.cc draws the first tree of 14, and both of 12 (13 by the rule for an odd number)."""
    first, _ = trees(14)
    assert first == (0, (8, (4, (2, 1, 3), (6, 5, 7)), (12, (10, 9, 11), 13)))
    first, second = trees(12)
    assert first == (0, (8, (4, (2, 1, 3), (6, 5, 7)), (10, 9, 11)))
    assert second == (11, (3, (7, (9, 10, 8), (5, 6, 4)), (1, 2, 0)))
    assert trees(3) == ((0, (2, 1)), (1, (0, 2)))
    assert trees(2) == ((0, 1), (1, 0)) and trees(1) == ((0,), (0,))


def test_chunks_are_whole_vectors() -> None:
    found = chunks(5000, 4, "f16")
    assert [(one.start, one.stop) for one in found] == [(0, 1256), (1256, 2512), (2512, 3768), (3768, 5000)]
    assert [one.stop - one.start for one in chunks(9, 4, "f32")] == [4, 4, 1, 0]


def test_what_is_not_known_is_refused() -> None:
    held = [np.zeros(1, np.uint16)] * 4
    with pytest.raises(OperandError, match="format is 'e4m3'"):
        added(held, "e4m3", (0, 1))
    with pytest.raises(OperandError, match="average"):
        added(held, "f16", trees(4)[0], mean=True)
