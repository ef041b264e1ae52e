"""PyTorch's operations on rows on an NVIDIA GPU, bit for bit: the order of the files of
aten/src/ATen/native/cuda (2.11).

`layer_norm` and `rms_norm` (layer_norm_kernel.cu, with the fused multiply-adds that nvcc makes of it): four
warps share a row whose length is a multiple of four; each thread takes vectors of four. Sixteen warps share
any other, one number a thread. Mean and sum of squares are updated number by number (Welford), then those of
threads are combined in halves.

`softmax` and `log_softmax` (SoftMax.cu, PersistentSoftmax.cuh): a warp holds a row of up to 2048 numbers, a
block a longer one; along another axis than the last, threads take columns. The maximum is exact. Then expf of
each number less the maximum is added in f32, and each is divided by the sum, rounded to nearest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.kernels.libdevice import exp, log, unit
from golden.kernels.reductions import (
    VECTOR_BYTES,
    WARP,
    State,
    combined_in_halves,
    in_halves,
    in_turn,
    padded,
)
from golden.kernels.sums import fused

Numbers = npt.NDArray[Any]
_VECTOR = 4
"""Numbers that a thread takes at once from a row whose length is a multiple of this."""
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
    return in_halves(in_halves(total.reshape(len(total), -1, WARP), 2), 1)


def _moments(x: Numbers, vectors: bool) -> State:
    """Mean, sum of squares of the differences from it, and count of each row."""
    update, combine = (_update_by_reciprocal, _shares) if vectors else (_update, _combined)
    held, there = _held(x, _SHARED if vectors else _ALONE, _VECTOR if vectors else 1)
    state: State = tuple(np.zeros(held.shape[1:], np.float32) for _ in range(3))
    for numbers, which in zip(held, there, strict=True):
        new = update(state, numbers)
        state = tuple(np.where(which, one, before) for one, before in zip(new, state, strict=True))
    # The lanes of each warp, then the warps.
    warps = combined_in_halves(tuple(one.reshape(len(one), -1, WARP) for one in state), 2, combine)
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


_BLOCK = 1024
"""Threads of a block."""
_SHARED_BYTES = 48 * 1024
"""Of a block, for the row and the sums of its warps."""


def softmax(x: Numbers, axis: int, itemsize: int, logarithm: bool = False) -> Numbers:
    """Of f32 numbers that PyTorch holds in `itemsize` bytes; in f32, before it is rounded to these."""
    axis %= x.ndim
    columns = int(np.prod(x.shape[axis + 1 :]))
    rows = np.moveaxis(x, axis, -1)
    with np.errstate(all="ignore"):
        most = np.fmax.reduce(rows, axis=-1, keepdims=True)
        less = rows - most
        powers = exp(less)
        flat = powers.reshape(-1, x.shape[axis])
        total = _sums(flat, columns, itemsize).reshape(most.shape)
        found = less - log(total) if logarithm else powers / total
    return np.moveaxis(found, -1, axis)


def _sums(rows: Numbers, columns: int, itemsize: int) -> Numbers:
    """The sum of each row in the order of the kernel that takes it."""
    length = rows.shape[1]
    if columns > 1:
        return _of_columns(rows, columns)
    # Numbers of the longest row that a warp holds.
    of_a_warp = 2048
    if length <= of_a_warp:
        lanes = min(WARP, 1 << (length - 1).bit_length())
        return in_halves(_of_threads(rows, lanes), 1)
    # Numbers of each thread of a block that it keeps in registers; of longer rows threads load vectors.
    in_registers = 9
    if -(-length // _BLOCK) <= in_registers:
        return _of_a_block(_of_threads(rows, _BLOCK))
    vector = VECTOR_BYTES // itemsize
    warps_bytes = _BLOCK // WARP * 4
    if length % vector == 0 and length < (_SHARED_BYTES - warps_bytes) // itemsize:
        return _of_a_block(_of_threads(rows, _BLOCK, vector))
    total = np.empty(len(rows), np.float32)
    starts = np.arange(len(rows)) * length % vector
    for start in np.unique(starts):
        which = starts == start
        total[which] = _of_a_block(_from(rows[which], int(start), vector))
    return total


def _of_threads(rows: Numbers, threads: int, vector: int = 1) -> Numbers:
    """Each thread's sum (rows, threads): in turn over the vectors that it takes, of N threads every N-th."""
    own = -(-rows.shape[1] // (threads * vector))
    held = padded(rows, own * threads * vector).reshape(len(rows), own, threads, vector)
    return in_turn(held.swapaxes(2, 3).reshape(len(rows), own * vector, threads), 1)


def _from(rows: Numbers, start: int, vector: int) -> Numbers:
    """The same of rows whose first number lies `start` numbers behind a vector's: first one number a thread,
    but none for the first `start` threads, then whole rounds of vectors, then the rest one by one."""
    sums = np.zeros((len(rows), _BLOCK), np.float32)
    if start:
        sums[:, start:], rows = rows[:, : _BLOCK - start], rows[:, _BLOCK - start :]
    rounds = rows.shape[1] // (_BLOCK * vector)
    for body in np.split(rows[:, : rounds * _BLOCK * vector], max(rounds, 1), axis=1) if rounds else []:
        for place in range(vector):
            sums = sums + body.reshape(len(rows), _BLOCK, vector)[..., place]
    rest = rows[:, rounds * _BLOCK * vector :]
    for first in range(0, rest.shape[1], _BLOCK):
        sums = sums + padded(rest[:, first : first + _BLOCK], _BLOCK)
    return sums


def _of_a_block(sums: Numbers) -> Numbers:
    """The threads of each warp in halves, then the warps."""
    return in_halves(in_halves(sums.reshape(len(sums), -1, WARP), 2), 1)


def _of_columns(rows: Numbers, columns: int) -> Numbers:
    """A thread for each column, or a power of two of them that fills a block."""
    length = rows.shape[1]
    threads = 1
    # Along another axis than the last: with no more columns than this, and at least this many numbers in
    # each, several threads share one.
    few_columns = 64
    if columns <= few_columns <= length:
        while columns * threads * 2 <= _BLOCK and threads * 2 <= length:
            threads *= 2
    return in_halves(_of_threads(rows, threads), 1)
