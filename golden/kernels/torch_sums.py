"""PyTorch's `sum` and `mean` on an NVIDIA GPU, bit for bit: the order of Reduce.cuh in
aten/src/ATen/native/cuda (2.11).

A reduction is shared by the lanes of a block (x), its rows of threads (y) and by several blocks; each thread
has several sums. How many there are depends on the shape alone (`Shares.of`), so that the bits do, too. f16
and bf16 are added in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.kernels.reductions import VECTOR_BYTES, WARP, in_halves, in_turn, padded

Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class Card:
    """What the number of blocks depends on. The default is an H100 SXM's or an H200's."""

    processors: int = 132
    threads: int = 2048
    """A processor's most."""


@dataclass(frozen=True)
class Shares:
    """Who adds what: `lanes`, `rows` of threads and `blocks` share a sum; `vector` elements that are
    neighbours are loaded at once, 0 if each of a thread's sums takes elements apart."""

    lanes: int
    rows: int
    blocks: int
    vector: int

    @property
    def threads(self) -> int:
        """That share a sum."""
        return self.lanes * self.rows * self.blocks

    @classmethod
    def of(cls, layout: Layout, itemsize: int, card: Card) -> Shares:
        """As `setReduceConfig` decides."""
        width, height = layout.inputs, layout.outputs
        if not layout.inner:  # lanes take neighbouring sums, not elements of one
            width, height = height // layout.neighbours, width
        vector = 0
        # Elements of a sum from which on threads load vectors.
        vectors_from = 128
        if layout.inner and layout.reduced_axes == 1 and width >= vectors_from:
            vector = VECTOR_BYTES // itemsize
            width //= vector
        # The most threads of a block.
        threads = 512
        most = threads // layout.neighbours
        wide = _power(width, most)
        y = min(_power(height, most), most // min(wide, WARP))
        x = min(wide, most // y)
        # Rows of threads share a sum if each thread has elements enough; blocks, if it still has many.
        lanes = x if layout.inner else 1
        # Elements of a thread: rows of threads share a sum of more than 16 a row, blocks one of more than
        # 256.
        fewest_threads, most_threads = 16, 256
        shared = -(-layout.inputs // lanes) >= min(y * fewest_threads, most_threads)
        rows = y if shared else 1
        each = -(-layout.inputs // (lanes * rows))
        made = (1 if layout.inner else x) * (1 if shared else y)
        grid = -(-(layout.outputs // layout.neighbours) // made)
        room = card.processors * (card.threads // (x * y))
        blocks = 1
        if shared and each >= most_threads and grid <= room:
            blocks = max(min(-(-room // grid), -(-each // fewest_threads)), -(-each // most_threads))
        return cls(lanes, rows, blocks, vector)


@dataclass(frozen=True)
class Layout:
    """A contiguous tensor as a reduction sees it: outputs, elements of each, whether the latter are
    neighbours in memory, along how many axes they lie, and how many neighbouring sums one thread makes."""

    outputs: int
    inputs: int
    inner: bool
    reduced_axes: int
    neighbours: int

    @classmethod
    def of(cls, shape: Sequence[int], axes: Sequence[int]) -> Layout:
        """Of a shape and the axes of it that are summed. Neighbouring axes of one kind are one."""
        merged: list[list[Any]] = []  # [size, reduced, stride], the innermost first
        stride = 1
        for axis in reversed(range(len(shape))):
            size, reduced = shape[axis], axis in axes
            if size != 1:
                if merged and merged[-1][1] == reduced:
                    merged[-1][0] *= size
                else:
                    merged.append([size, reduced, stride])
            stride *= size
        summed = [one for one in merged if one[1]]
        kept = [one for one in merged if not one[1]]
        inputs, outputs = (int(np.prod([one[0] for one in some])) for some in (summed, kept))
        inner = not kept or bool(summed and merged[0][1])
        # Neighbouring sums that a thread makes, where the elements of one are apart.
        neighbours = 4
        if kept:
            for number in [kept[0][0], *(one[2] for one in summed + kept[1:])]:
                while number % neighbours:
                    neighbours //= 2
        return cls(outputs, inputs, inner, len(summed), 1 if inner else neighbours)


def _power(size: int, most: int) -> int:
    """The largest power of two up to a size, and up to a limit."""
    return most if size >= most else 1 << max(size.bit_length() - 1, 0)


def add(x: Numbers, axes: Sequence[int], itemsize: int, card: Card) -> Numbers:
    """Sums of f32 numbers along axes, as elements of `itemsize` bytes are added; the axes are gone."""
    layout = Layout.of(x.shape, axes)
    shares = Shares.of(layout, itemsize, card)
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    rows = x.transpose(*kept, *axes).reshape(layout.outputs, layout.inputs)
    shape = [x.shape[axis] for axis in kept]
    if shares.vector:
        starts = np.arange(layout.outputs) * layout.inputs % shares.vector
        total = np.empty(layout.outputs, np.float32)
        for start in np.unique(starts):
            which = starts == start
            total[which] = _of_threads(_vectors(rows[which], shares, int(start)), shares)
    else:
        total = _of_threads(_apart(rows, shares), shares)
    return total.reshape(shape)


def _apart(rows: Numbers, shares: Shares) -> Numbers:
    """The sums of each thread (rows, sums, threads): sum i of a thread takes every 4th of the elements that
    are its, from the i-th on."""
    # Of each thread, where elements are not neighbours in memory.
    sums = 4
    own = -(-rows.shape[1] // (shares.threads * sums))
    held = padded(rows, own * shares.threads * sums).reshape(len(rows), own, sums, shares.threads)
    return in_turn(held, 1) + np.float32(0)


def _vectors(rows: Numbers, shares: Shares, start: int) -> Numbers:
    """The same of rows whose first element lies `start` elements behind a vector's: each place of a vector
    has its own sum. What is left before the first whole vector and after the last, the lanes of the first row
    of the first block add to their first sum, before and after the others."""
    vector = shares.vector
    head = -start % vector
    head = min(head, rows.shape[1])
    whole = (rows.shape[1] - head) // vector * vector
    body, tail = rows[:, head : head + whole], rows[:, head + whole :]
    own = max(-(-whole // (shares.threads * vector)), 1)
    held = padded(body, own * shares.threads * vector).reshape(len(rows), own, shares.threads, vector)
    sums = np.zeros((len(rows), shares.threads, vector), np.float32)
    if start:  # thread t takes element t - start
        sums[:, start : start + head, 0] = rows[:, :head]
    for turn in range(own):
        sums = sums + held[:, turn]
    sums[:, : tail.shape[1], 0] += tail
    return sums.swapaxes(1, 2)


def _of_threads(sums: Numbers, shares: Shares) -> Numbers:
    """A thread's sums in turn, then lanes and rows in halves; of several blocks each thread of the last one
    takes, of N threads, every N-th sum, then rows and lanes."""
    own = in_turn(sums, 1).reshape(-1, shares.blocks, shares.rows, shares.lanes)
    own = in_halves(in_halves(own, 3), 2)
    if shares.blocks == 1:
        return own[:, 0]
    threads = shares.rows * shares.lanes
    turns = -(-shares.blocks // threads)
    held = padded(own, turns * threads).reshape(-1, turns, shares.rows, shares.lanes)
    last = in_turn(held, 1) + np.float32(0)
    return in_halves(in_halves(last, 1), 1)
