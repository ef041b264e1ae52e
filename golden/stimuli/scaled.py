"""Operands of block-scaled units whose products lie far apart.

The elements of a block have one scale, and narrow formats: products far apart lie in two blocks, or the scale
puts the one at the upper end of what elements reach, for the other to be at the lower.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from golden.stimuli.codes import Bits, Ints, negate
from golden.stimuli.draw import Draw


def far_apart(draw: Draw, large: Ints, small: Ints) -> tuple[Bits, Bits, Bits]:
    """Dot products of a few equal products that are 2**large together, and one or two of 2**small, mostly of
    the other sign; all others, and c, are zero.

    Args:
        large: exponents (count,).
        small: exponents (count,), less than those.
    """
    size, blocks = (draw.count,), next(iter(draw.scales.values())).shape[1]
    per_block = draw.k // blocks
    first, second = (draw.pick(0, blocks - 1, size) for _ in range(2))
    more = draw.pick(0, max(per_block // 2, 1).bit_length() - 1, size)  # 2**more products are the large one
    each, apart = large - more, first != second
    place = (np.arange(draw.k) + draw.pick(0, per_block - 1, (draw.count, 1))) % per_block
    block, ahead = np.arange(draw.k) // per_block, np.where(apart, 0, 1 << more)[:, None]
    is_large = (block == first[:, None]) & (place < (1 << more)[:, None])
    is_small = (block == second[:, None]) & ~is_large & (place < ahead + draw.pick(1, 2, (draw.count, 1)))
    of_first = _between(draw, each, np.where(apart, each, small))
    of_second = np.where(apart, _between(draw, small, small), of_first)
    scale = np.where(np.arange(blocks) == second[:, None], of_second[:, None], of_first[:, None])
    reached = np.repeat(draw.set_scales(scale), per_block, axis=1)
    target = np.where(is_small, small[:, None], each[:, None]) - reached
    exponents = draw.split(target, draw.a, draw.b, normal=False)
    a, b = draw.powers(draw.a, exponents[0]), draw.powers(draw.b, exponents[1])
    minus = draw.coins((draw.count, 1)) ^ (draw.chance(0.8, (draw.count, 1)) & is_small)
    flip, fmt = draw.signed_factor(a, b)
    flip[...] = np.where(minus == 1, negate(fmt, flip), flip)
    return np.where(is_large | is_small, a, draw.a.dtype.type(0)), b, draw.zeros(draw.c, size)


def _between(draw: Draw, large: Ints, small: Ints) -> npt.NDArray[np.int64]:
    """Exponents of a scale with which elements reach both; where there is none, the large one."""
    least, most = large - draw.high, small - draw.tiniest
    return draw.pick(least, np.maximum(least, most), large.shape)
