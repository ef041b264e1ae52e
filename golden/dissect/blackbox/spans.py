"""Questions that tell the floors of units with scales: products of one block, as far apart as elements reach.

All products of a block have one scale. A floor shows where a product at the last place of D meets one that is
cut below the floor: the scale has to put the first at the upper end of what products of elements can be, for
the other to exist at the lower end.
"""

from __future__ import annotations

import numpy as np

from golden import stimuli
from golden.instruction import Instruction
from golden.program.signature import Bits, Operands
from golden.program.steps import Align
from golden.stimuli.codes import lowest_exponent
from golden.stimuli.draw import Draw

_BELOW = 3
"""How far below the last bit that is kept at the floor a product lies at most."""


def spans(target: Instruction, count: int, rng: np.random.Generator) -> Operands | None:
    """Dot products of a few equal products that are D's last place, or half or twice of it, together, and one
    or two others at the last bit that the alignments of a unit keep at their floors, or below, mostly of the
    other sign; c is zero.

    Returns:
        None where there are no scales or no floors.
    """
    draw = Draw(target, count, rng)
    edges = [s.floor - n for s in draw.steps_of(Align) if s.floor is not None for _, n in s.fraction_bits]
    if not draw.scales or not edges or draw.k < 2:
        return None
    size = (count,)
    more = draw.pick(0, (draw.k // 2).bit_length() - 1, size)  # 2^more products are the large one together
    last = lowest_exponent(draw.d) - draw.kept_bits
    large = last + draw.pick(-1, 1, size) - more
    small = draw.choice(edges, size) - draw.pick(0, _BELOW, size)
    target_of = np.where(np.arange(draw.k) < (1 << more)[:, None], large[:, None], small[:, None])
    live = np.arange(draw.k) < ((1 << more) + draw.pick(1, 2, size))[:, None]
    between = draw.pick(np.maximum(large, small) - draw.high, np.minimum(large, small) - draw.tiniest, size)
    a, b = _powers(draw, target_of - draw.set_scales(between)[:, None])
    minus = draw.coins((count, 1)) ^ (draw.chance(0.8, (count, 1)) & (target_of == small[:, None]))
    flip, fmt = draw.signed_factor(a, b)
    flip[...] = np.where(minus == 1, stimuli.negate(fmt, flip), flip)
    a = np.where(live, a, np.zeros((), a.dtype))
    a, b = draw.shuffle(a, b)
    return draw.finish(a, b, draw.zeros(draw.c, size))


def _powers(draw: Draw, exponent: Bits) -> tuple[Bits, Bits]:
    """Factors whose products are powers of two, or as near as elements come."""
    first, second = draw.split(exponent, draw.a, draw.b, normal=False)
    return draw.powers(draw.a, first), draw.powers(draw.b, second)
