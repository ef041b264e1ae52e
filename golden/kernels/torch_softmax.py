"""PyTorch's `softmax` and `log_softmax` on an NVIDIA GPU, bit for bit: the order of SoftMax.cu and
PersistentSoftmax.cuh in aten/src/ATen/native/cuda (2.11).

A warp holds a row of up to 2048 numbers, a block a longer one; along another axis than the last, threads take
columns. The maximum is exact. Then expf of each number less the maximum is added in f32, and each is divided
by the sum, rounded to nearest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden.kernels.libdevice import exp, log
from golden.kernels.reductions import in_halves, in_turn, padded

Numbers = npt.NDArray[Any]
_WARP, _BLOCK = 32, 1024
_OF_A_WARP = 2048
"""Numbers of the longest row that a warp holds."""
_IN_REGISTERS = 9
"""Numbers of each thread of a block that it keeps in registers; of longer rows threads load vectors."""
_VECTOR_BYTES = 16
_SHARED_BYTES = 48 * 1024
"""Of a block, for the row and the sums of its warps."""
_COLUMNS = 64
"""Along another axis than the last: with no more columns than this, and at least this many numbers in each,
several threads share one."""


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
    if length <= _OF_A_WARP:
        lanes = min(_WARP, 1 << (length - 1).bit_length())
        return in_halves(_of_threads(rows, lanes), 1)
    if -(-length // _BLOCK) <= _IN_REGISTERS:
        return _of_a_block(_of_threads(rows, _BLOCK))
    vector = _VECTOR_BYTES // itemsize
    warps_bytes = _BLOCK // _WARP * 4
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
    return in_halves(in_halves(sums.reshape(len(sums), -1, _WARP), 2), 1)


def _of_columns(rows: Numbers, columns: int) -> Numbers:
    """A thread for each column, or a power of two of them that fills a block."""
    length = rows.shape[1]
    threads = 1
    if columns <= _COLUMNS <= length:
        while columns * threads * 2 <= _BLOCK and threads * 2 <= length:
            threads *= 2
    return in_halves(_of_threads(rows, threads), 1)
