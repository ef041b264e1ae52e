"""Sums in turn and in halves, against sums of NumPy's f32 scalars one by one."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
import pytest

from golden.kernels.libdevice import exp, log
from golden.kernels.reductions import Blocked, combined_in_halves, in_halves, in_turn, padded, sums


def terms(*shape: int) -> np.ndarray:
    """Numbers whose sums show the order."""
    rng = np.random.default_rng(sum(shape))
    return np.ldexp(rng.standard_normal(shape), rng.integers(-9, 10, shape)).astype(np.float32)


def halves(numbers: list[np.float32]) -> np.float32:
    """The order, written as a recursion: the first half and its like of the second."""
    half = len(numbers) // 2
    return (
        numbers[0]
        if not half
        else halves([x + y for x, y in zip(numbers[:half], numbers[half:], strict=True)])
    )


def test_in_turn_and_in_halves() -> None:
    x = terms(5, 32)
    for row, turn, half in zip(x, in_turn(x, 1), in_halves(x, 1), strict=True):
        assert turn == reduce(add, row) and half == halves(list(row))
    assert np.array_equal(in_halves(x.T, 0), in_halves(x, -1))
    assert len(set(map(float, (in_turn(x, 1)[0], in_halves(x, 1)[0], x[0].astype(np.float64).sum())))) > 1


def test_in_halves_down_to_some_and_of_several_arrays() -> None:
    x, y = terms(3, 16), terms(3, 16)[::-1]
    assert np.array_equal(in_halves(in_halves(x, 1, left=4), 1), in_halves(x, 1))
    least = combined_in_halves(
        (x, y), 1, lambda one, other: (one[0] + other[0], np.minimum(one[1], other[1]))
    )
    assert np.array_equal(least[0], in_halves(x, 1)) and np.array_equal(least[1], y.min(axis=1))


def test_padding_changes_no_sum() -> None:
    x = terms(4, 13)
    assert np.array_equal(in_turn(padded(x, 20), 1), in_turn(x, 1))
    assert padded(x, 14, -np.inf)[0, 13] == -np.inf


@pytest.mark.parametrize(
    ("layout", "order"),
    [
        # a thread's own in ascending order, lanes in halves, then warps
        (((2,), (4,), (2,)), [[[0, 1], [2, 3], [4, 5], [6, 7]], [[8, 9], [10, 11], [12, 13], [14, 15]]]),
        (((1,), (2,), (2,)), [[[0, 4, 8, 12], [1, 5, 9, 13]], [[2, 6, 10, 14], [3, 7, 11, 15]]]),
        (((4,), (32,), (8,)), [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]]),
    ],
)
def test_a_blocked_layout(layout: tuple[tuple[int, ...], ...], order: list[list[list[int]]]) -> None:
    x = terms(16)
    warps = [halves([reduce(add, x[lane]) for lane in lanes]) for lanes in order]
    assert sums(x, 0, Blocked(*layout)) == halves(warps)


def test_the_text_of_a_layout() -> None:
    text = "#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], "
    text += "order = [1, 0]}>"
    assert Blocked.of(text) == Blocked((1, 4), (2, 16), (4, 1))


def test_exp_and_log_are_near_exact_ones() -> None:
    """What CUDA's manual says: at most 2 and 1 units in the last place. Bits: test_torch_runs.py."""
    x = np.random.default_rng(1).uniform(-80, 80, 4000).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    assert (np.abs(exp(x) - exact) <= 2 * np.spacing(exact.astype(np.float32))).all()
    y = np.abs(x)
    natural = np.log(y.astype(np.float64))
    assert (np.abs(log(y) - natural) <= 1.1 * np.spacing(np.abs(natural).astype(np.float32))).all()
    special = np.array([-np.inf, np.inf, np.nan, 0, -200, 200], np.float32)
    assert np.array_equal(
        exp(special), np.array([0, np.inf, np.nan, 1, 0, np.inf], np.float32), equal_nan=True
    )
