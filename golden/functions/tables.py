"""The tables of a special-function unit: quadratics on segments of equal width, in exact integers.

    table = Table("rcp", "1/m, m in [1, 2)", low=16, bias=4046, blocks=(...))
    table.interpolate(block, fraction)      # in units of 2^-40, before it is cut

The structure is that of S. Oberman and M. Siu, "A High-Performance Area-Efficient Multifunction
Interpolator", ARITH-17, 2005.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

FRACTION = 23
"""Bits below the leading one of an f32 significand; every table is indexed by a fraction of this width."""
LOWEST = -40
"""2^-40 is the least weight of a bit of a product in any table. Sums are integers in units of it, so that
nothing is lost before the result is cut."""
SQUARE = -15
"""2^-15 is the least weight of a column of the squarer. Partial products of less weight are not formed, and
nothing replaces them. Any other column leaves results of an H200 without coefficients that give them."""


@dataclass(frozen=True)
class Block:
    """Segments of equal width, a power of two of them, whose coefficients have the same units.

    exponent: of the argument, where a table has a block for each of several exponents. units: u0, u1, u2.
    segments: the integers C0, C1, C2 of each. With x in [0, 1) the place in a segment, its value is
    C0 2^u0 + C1 2^u1 x + C2 2^u2 x^2.
    """

    exponent: int
    units: tuple[int, int, int]
    segments: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, eq=False)
class Table:
    """One function as quadratics.

    argument: the function and its interval, in words. low: bits of x, the place in a segment. bias: a
    constant that every sum has in addition, in units of 2^LOWEST.
    """

    name: str
    argument: str
    low: int
    bias: int
    blocks: tuple[Block, ...]

    def interpolate(self, block: Integers, fraction: Integers) -> Integers:
        """Returns C0 + C1 x + C2 x^2 + bias in units of 2^LOWEST, before it is cut.

        block: an index of `blocks` for each element; fraction: FRACTION bits each. The upper bits of a
        fraction choose the segment, the next `low` bits are x, and what remains below is ignored.
        """
        first, index_bits = self.places[:, block]
        segment = first + (fraction >> FRACTION - index_bits)
        x = (fraction >> FRACTION - index_bits - self.low) & (1 << self.low) - 1
        c0, c1, c2 = self.scaled[:, segment]
        found: Integers = c0 + c1 * x + c2 * squares(self.low)[x]
        return found

    @cached_property
    def places(self) -> Integers:
        """Of each block the index of its first segment, and the bits of a fraction that choose one."""
        sizes = [len(block.segments) for block in self.blocks]
        firsts = np.cumsum([0, *sizes[:-1]])
        return np.array([firsts, [size.bit_length() - 1 for size in sizes]], dtype=np.int64)

    @cached_property
    def scaled(self) -> Integers:
        """Of each segment, in units of 2^LOWEST: C0 with the bias, C1 for an integer x, C2 for an integer
        square."""
        rows = []
        for block in self.blocks:
            u0, u1, u2 = block.units
            up0, up1, up2 = u0 - LOWEST, u1 - self.low - LOWEST, u2 + SQUARE - LOWEST
            rows += [((c0 << up0) + self.bias, c1 << up1, c2 << up2) for c0, c1, c2 in block.segments]
        return np.array(rows, dtype=np.int64).T.copy()


@cache
def squares(bits: int) -> Integers:
    """What the squarer gives for every x of `bits` bits, x in [0, 1), in units of 2^SQUARE.

    Its partial products are x_i x_i of weight 2^-2i and, since x_i x_j and x_j x_i are one, x_i x_j of weight
    2^(1-i-j), with x_1 the uppermost bit. Products of a weight below 2^SQUARE are not formed.
    """
    x = np.arange(1 << bits, dtype=np.int64)
    digit = {i: (x >> bits - i) & 1 for i in range(1, bits + 1)}
    total = np.zeros_like(x)
    for i in range(1, bits + 1):
        for j in range(i, bits + 1):
            weight = -2 * i if i == j else 1 - i - j
            if weight >= SQUARE:
                total += (digit[i] & digit[j]) << weight - SQUARE
    return total
