"""Random draws: within their bounds, evenly spread, and of the words of the generator alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import golden
from golden.number.formats import get_format
from golden.stimuli.codes import encode, word_of
from golden.stimuli.draw import Draw

HMMA = golden.instruction("hopper", "HMMA.16816.F32")
COUNT = 6000


def drawn(count: int = COUNT) -> Draw:
    return Draw(HMMA, count, np.random.default_rng(3))


def evenly(values: Any, shares: dict[int, float]) -> bool:
    """Whether each value comes about as often as it should: within five standard deviations."""
    found = dict(zip(*np.unique(values, return_counts=True), strict=True))
    return found.keys() <= shares.keys() and all(
        abs(found.get(value, 0) - share * values.size) < 5 * np.sqrt(values.size * share)
        for value, share in shares.items()
    )


def test_integers_reach_both_bounds_and_all_between_alike() -> None:
    draw = drawn()
    assert evenly(draw.pick(-3, 3, (COUNT,)), dict.fromkeys(range(-3, 4), 1 / 7))
    low = np.repeat([-5, 0, 40], COUNT // 3)
    found = draw.pick(low, low + 2, (COUNT,)) - low
    assert evenly(found, dict.fromkeys(range(3), 1 / 3))
    assert (draw.pick(4, 1, (50,)) == 4).all() and (draw.pick(low, low - 1, (COUNT,)) == low).all()
    assert draw.pick(0, (1 << 32) - 1, (COUNT,)).max() > 0.99 * (1 << 32)
    assert draw.pick(0, 5, (0, 16)).shape == (0, 16)


def test_chances_and_coins_and_orders() -> None:
    draw = drawn()
    assert evenly(draw.coins((COUNT,)), {0: 0.5, 1: 0.5})
    for share in (0.1, 0.5, 0.7):
        assert evenly(draw.chance(share, (COUNT,)).astype(int), {0: 1 - share, 1: share})
    assert draw.chance(1.0, (COUNT,)).all() and not draw.chance(0.0, (COUNT,)).any()
    shares = np.repeat([0.0, 1.0], COUNT // 2)
    assert (draw.chance(shares, (COUNT,)) == shares).all()
    assert evenly(draw.choice([3, 3, 8], (COUNT,)), {3: 2 / 3, 8: 1 / 3})
    order = draw.order()
    assert (np.sort(order, axis=1) == np.arange(16)).all()
    assert all(evenly(place, dict.fromkeys(range(16), 1 / 16)) for place in order.T)


def test_words_are_those_of_the_generator_from_its_low_end() -> None:
    """Else a machine of the other byte order would draw other vectors."""
    raw = np.random.default_rng(3).bit_generator.random_raw(8).tolist()
    words = [word >> shift & 0xFFFF for word in raw for shift in (0, 16, 32, 48)]
    assert drawn().raw(get_format("f16"), (32,)).tolist() == words
    assert drawn().fraction((8,)).tolist() == raw
    assert drawn().pick(0, (1 << 32) - 1, (3,)).tolist() == [
        raw[0] & 0xFFFFFFFF,
        raw[0] >> 32,
        raw[1] & 0xFFFFFFFF,
    ]


def test_any_generator_fills_words() -> None:
    """Also one whose own words have 32 bits."""
    draw = Draw(HMMA, COUNT, np.random.Generator(np.random.MT19937(3)))
    assert evenly(draw.fraction((COUNT,)) >> np.uint64(62), dict.fromkeys(range(4), 1 / 4))


@pytest.mark.parametrize("name", ["f16", "bf16", "e4m3", "e5m2", "tf32", "f32", "e2m1", "ue8m0", "f64"])
def test_codes_are_the_same_from_narrow_words(name: str) -> None:
    fmt, rng = get_format(name), np.random.default_rng(4)
    word = word_of(fmt)
    assert word.itemsize >= fmt.dtype.itemsize
    exponents = rng.integers(fmt.min_exponent - 70, fmt.max_exponent + 3, 2000)
    fractions = rng.integers(0, 1 << 8 * word.itemsize, 2000, word.type)
    signs = rng.integers(0, 2, 2000)
    wide = fractions.astype(np.uint64) << np.uint64(64 - 8 * word.itemsize)
    assert (encode(fmt, signs, exponents, fractions) == encode(fmt, signs, exponents, wide)).all()
    zeros = np.zeros(2000, np.uint64)
    assert (encode(fmt, None, exponents, None) == encode(fmt, zeros, exponents, zeros)).all()
