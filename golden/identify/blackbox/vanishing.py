"""Questions that vanish: whatever is summed is a zero of one sign, or so little that a unit may flush it.

The sign of a zero is lost beside a zero of the other sign, and beside any number (IEEE 754 6.3). So the sign
that a step gives to what it flushes shows in d only where all that is added to it on the way is a zero of
that sign, c, too. Of terms drawn for themselves that is one row in 2^k.
"""

from __future__ import annotations

import numpy as np

from golden import stimuli
from golden.instruction import Instruction
from golden.number.formats import Format
from golden.program.signature import Bits, Operands
from golden.stimuli.cancellation import negative_sum
from golden.stimuli.codes import lowest_exponent
from golden.stimuli.draw import Draw
from golden.stimuli.range_ends import rounded_to

_PAIR, _ALONE = slice(0, 2), 2
"""Columns of two products that cancel, and of one that c cancels."""
_FAR_BELOW = 24
"""How far below the least normal number the other products lie at most."""


def vanishing(target: Instruction, count: int, rng: np.random.Generator) -> Operands | None:
    """Dot products of which two products cancel, and another one and c, all but a last place near the least
    normal number of D or of a step that rounds: what is left of each has the row's sign. All other products
    are tiny, or zeros, of that sign. A zero is a number times +0: units that flush operands know no other.

    Returns:
        None where the formats have no signs, or there are no two products that cancel.
    """
    draw = Draw(target, count, rng)
    if draw.k < 2 or not all(fmt.is_float and fmt.signed for fmt in (draw.a, draw.b, draw.c, draw.d)):
        return None
    rows, minus = (count, 1), draw.coins((count, 1))
    paired = draw.chance(0.7, rows) | (draw.k == 2)
    alone = (draw.chance(0.7, rows) | ~paired) & (draw.k > 2)
    a, b = _terms(draw, paired, alone)
    turned = minus == 1
    a, b = (
        np.where(turned & here, stimuli.negate(fmt, codes), codes)
        for fmt, codes, here in ((draw.a, a, a != 0), (draw.b, b, a == 0))
    )
    zeros = np.zeros(count, draw.c.dtype)
    c = np.where(turned[:, 0], stimuli.negate(draw.c, zeros), zeros)
    if draw.k > _ALONE:
        against = negative_sum(draw, a[:, _ALONE:], b[:, _ALONE:], first_only=True)
        c = np.where(alone[:, 0], _less(draw.c, against), c)
    a[:, 1] = np.where(paired[:, 0], stimuli.negate(draw.a, a[:, 0]), a[:, 1])
    b[:, 1] = np.where(paired[:, 0], _less(draw.b, b[:, 0]), b[:, 1])
    a, b = draw.in_order(_order(draw), a, b)
    return draw.finish(a, b, c)


def _terms(draw: Draw, paired: Bits, alone: Bits) -> tuple[Bits, Bits]:
    """Positive factors: near the least normal number where something cancels them, else tiny or zero."""
    rows, place = (draw.count, 1), np.arange(draw.k)
    least = draw.choice([lowest_exponent(fmt) for fmt in rounded_to(draw)], rows)
    cancels = (paired & (place < _ALONE)) | (alone & (place == _ALONE))
    near = least + draw.pick(-1, draw.b.fraction_bits, draw.shape)
    target = np.where(cancels, near, least - draw.pick(3, _FAR_BELOW, draw.shape))
    a, b = draw.products(target, normal=False)
    a, b = (codes & codes.dtype.type((1 << fmt.sign_shift) - 1) for codes, fmt in ((a, draw.a), (b, draw.b)))
    gone = ~cancels & draw.chance(draw.choice([0.0, 0.5, 1.0], rows), draw.shape)
    return np.where(gone, np.zeros((), draw.a.dtype), a), b


def _less(fmt: Format, codes: Bits) -> Bits:
    """Numbers nearer to zero by a last place; zeros as they are."""
    magnitude = codes & fmt.dtype.type((1 << fmt.sign_shift) - 1)
    return np.where(magnitude > 0, codes - fmt.dtype.type(1 << fmt.ignored_low), codes)


def _order(draw: Draw) -> Bits:
    """A random order of every row; of half of them one in which the pair stays together."""
    place, rows = np.arange(draw.k), (draw.count, 1)
    other = draw.pick(min(_ALONE, draw.k - 1), draw.k - 1, rows)
    together = np.where(place == other, _ALONE, np.where(place == _ALONE, other, place)) % draw.k
    moved = (place + 2 * draw.pick(0, max(draw.k // 2 - 1, 0), rows)) % draw.k
    together = np.take_along_axis(together, moved, axis=1)
    return np.where(draw.chance(0.5, rows), together, draw.order())
