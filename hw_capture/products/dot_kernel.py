"""The order in which cuBLAS adds f32 products of one row or one column: `dot_kernel`, then
`reduce_1Block_kernel`.

No matrix unit takes part, so it is no plan. Calls on an H200 (golden.sum_tree) showed the tree; the number
of blocks is the library's choice for a shape, and a profiler shows it (the grid of the first kernel).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden.kernels.reductions import in_halves, in_turn, padded

Numbers = npt.NDArray[Any]
THREADS = 128
"""Of a block of either kernel."""


def dot(a: Numbers, b: Numbers, blocks: int, neighbours: int) -> Numbers:
    """Sums a * b over the last axis as the two kernels do; f32 in and out.

    A block takes `neighbours` elements a thread, 2 where those of both operands are neighbours in memory,
    else 1. Each place of a thread has a chain of fused multiply-adds, over the elements of every N-th
    block, N the number of blocks. A
    thread's sums are added in turn, a block's threads in halves. The second kernel's threads add every 128th
    block in turn, then in halves down to 32; each of four threads adds every fourth of these in turn, and the
    four are added in turn.

    Args:
        a, b: (..., K); leading axes broadcast.
        blocks: of the first kernel, for one result.
        neighbours: 1 or 2.
    """
    taken = THREADS * neighbours * blocks
    a, b = (padded(x, -(-x.shape[-1] // taken) * taken) for x in (a, b))
    a, b = (x.reshape(*x.shape[:-1], -1, blocks, THREADS, neighbours) for x in (a, b))
    sums: Numbers = np.zeros(np.broadcast_shapes(a.shape[:-4], b.shape[:-4]) + a.shape[-3:], np.float32)
    for turn in range(a.shape[-4]):  # 64 bits of a significand hold a product of two f32
        one, other = (x[..., turn, :, :, :] for x in (a, b))
        sums[...] = one.astype(np.longdouble) * other + sums
    sums = in_halves(in_turn(sums, -1), -1)
    sums = padded(sums, -(-blocks // THREADS) * THREADS).reshape(*sums.shape[:-1], -1, THREADS)
    # Halving ends at the sums of one warp.
    warp = 32
    sums = in_halves(in_turn(sums, -2), -1, left=warp)
    # Four threads add what is left.
    adding = 4
    return in_turn(in_turn(sums.reshape(*sums.shape[:-1], -1, adding), -2), -1)
