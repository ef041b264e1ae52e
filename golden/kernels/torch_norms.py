"""PyTorch's `layer_norm` and `rms_norm` on an NVIDIA GPU, bit for bit: the order of
aten/src/ATen/native/cuda/layer_norm_kernel.cu (2.11), with the fused multiply-adds that nvcc makes of it.

Four warps share a row whose length is a multiple of four; each thread takes vectors of four. Sixteen warps
share any other, one number a thread. Mean and sum of squares are updated number by number (Welford), then
those of threads are combined in halves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.kernels.libdevice import unit
from golden.kernels.reductions import State, combined_in_halves, in_halves, padded
from golden.kernels.sums import fused

Numbers = npt.NDArray[Any]
_WARP = 32
_VECTOR = 4
_SHARED, _ALONE = 128, 512
"""Threads of a row: of vectors, and of single numbers."""


@dataclass(frozen=True)
class Normed:
    """What the kernels write, in f32: the rows before they are rounded, and of each row the mean (none of
    rms_norm) and the reciprocal of the root."""

    rows: Numbers
    mean: Numbers | None
    reciprocal: Numbers


def layer_norm(
    x: Numbers, epsilon: float, weight: Numbers | None = None, bias: Numbers | None = None
) -> Normed:
    """Of f32 rows (rows, length)."""
    length = np.float32(x.shape[1])
    vectors = x.shape[1] % _VECTOR == 0
    mean, squares, _ = _moments(x, vectors)
    reciprocal = _root(squares / length + np.float32(epsilon))
    less = x - mean[:, None]
    every = np.broadcast_to(reciprocal[:, None], x.shape)
    if not vectors and bias is None:  # the other kernel then adds a zero, which changes -0
        bias = np.zeros(x.shape[1:], np.float32)
    if bias is None:
        rows = every * less if weight is None else every * less * weight
    elif weight is None:
        rows = _fused(every, less, np.broadcast_to(bias, x.shape))
        if vectors:  # nvcc fuses three of four here
            rows[:, ::_VECTOR] = (every * less + bias)[:, ::_VECTOR]
    else:
        rows = _fused(np.broadcast_to(weight, x.shape), every * less, np.broadcast_to(bias, x.shape))
    return Normed(rows, mean, reciprocal)


def rms_norm(x: Numbers, epsilon: float, weight: Numbers | None = None) -> Normed:
    """Of f32 rows (rows, length)."""
    length = np.float32(x.shape[1])
    if x.shape[1] % _VECTOR == 0:
        total = _squares(x) / length
    else:  # a kernel for rows of any length has the moments; their squares add up to the same
        mean, squares, _ = _moments(x, False)
        total = _fused(mean, mean, squares / length)
    reciprocal = _root(total + np.float32(epsilon))
    scaled = reciprocal[:, None] * x
    return Normed(scaled if weight is None else scaled * weight, None, reciprocal)


def _held(x: Numbers, threads: int, vector: int) -> tuple[Numbers, Numbers]:
    """Numbers (turns, rows, threads) in the order in which each thread takes them, and which there are."""
    own = -(-x.shape[1] // (threads * vector))

    def turns(rows: Numbers) -> Numbers:
        found = padded(rows, own * threads * vector).reshape(-1, own, threads, vector)
        return found.transpose(1, 3, 0, 2).reshape(own * vector, -1, threads)

    return turns(x), turns(np.ones((1, x.shape[1]))) > 0


def _squares(x: Numbers) -> Numbers:
    """The sum of squares of each row."""
    held, _ = _held(x, _SHARED, _VECTOR)
    total = np.zeros(held.shape[1:], np.float32)
    for numbers in held:
        total = _fused(numbers, numbers, total)
    return in_halves(in_halves(total.reshape(len(total), -1, _WARP), 2), 1)


def _moments(x: Numbers, vectors: bool) -> State:
    """Mean, sum of squares of the differences from it, and count of each row."""
    update, combine = (_update_by_reciprocal, _shares) if vectors else (_update, _combined)
    held, there = _held(x, _SHARED if vectors else _ALONE, _VECTOR if vectors else 1)
    state: State = tuple(np.zeros(held.shape[1:], np.float32) for _ in range(3))
    for numbers, which in zip(held, there, strict=True):
        new = update(state, numbers)
        state = tuple(np.where(which, one, before) for one, before in zip(new, state, strict=True))
    # The lanes of each warp, then the warps.
    warps = combined_in_halves(tuple(one.reshape(len(one), -1, _WARP) for one in state), 2, combine)
    return combined_in_halves(warps, 1, combine)


def _update_by_reciprocal(state: State, x: Numbers) -> State:
    """One number more, as the kernel of vectors has it: times the reciprocal of the count."""
    mean, squares, count = state
    count = count + np.float32(1)
    delta = x - mean
    mean = _fused(delta, np.float32(1) / count, mean)
    return mean, _fused(delta, x - mean, squares), count


def _update(state: State, x: Numbers) -> State:
    """The same of the other kernel: divided by the count."""
    mean, squares, count = state
    count = count + np.float32(1)
    delta = x - mean
    mean = mean + delta / count
    return mean, _fused(delta, x - mean, squares), count


def _shares(one: State, other: State) -> State:
    """Two threads' moments, as the kernel of vectors combines them: shares of the count by its reciprocal."""
    (mean, squares, count), (mean_2, squares_2, count_2) = one, other
    total = count + count_2
    with np.errstate(divide="ignore", invalid="ignore"):
        reciprocal = np.float32(1) / total
        mine, others = reciprocal * count, reciprocal * count_2
        difference = mean - mean_2
        combined = (
            _fused(mean_2, others, mine * mean),
            _fused(mine, count_2 * (difference * difference), squares + squares_2),
        )
    return (*(np.where(total > 0, new, np.float32(0)) for new in combined), total)


def _combined(one: State, other: State) -> State:
    """The same of the other kernel, in which moments of nothing change nothing."""
    (mean, squares, count), (mean_2, squares_2, count_2) = one, other
    total = count + count_2
    with np.errstate(divide="ignore", invalid="ignore"):
        share = count_2 / total
        difference = mean_2 - mean
        new = (
            _fused(difference, share, mean),
            _fused(difference * difference * count, share, squares + squares_2),
            total,
        )
    return tuple(
        np.where(count == 0, second, np.where(count_2 == 0, first, both))
        for first, second, both in zip(one, other, new, strict=True)
    )


def _fused(x: Numbers, y: Numbers, z: Numbers) -> Numbers:
    return fused(x, y, np.ascontiguousarray(z))


def _root(x: Numbers) -> Numbers:
    """rsqrtf."""
    return unit("rsqrt.approx.f32")(x)
