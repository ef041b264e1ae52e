"""Where the elements of a matrix lie, as arrays to draw: cells of one register each,
and how a pattern repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.registers.layouts import Layout

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Grid:
    """Lane, register and lowest element (its number in the register) of each cell of a matrix: (blocks, rows,
    columns) each.

    A cell is one element, or `down` x `across` neighbours that fill a register in ascending order.
    """

    layout: Layout
    lane: Array
    register: Array
    element: Array
    down: int = 1
    across: int = 1

    @property
    def count(self) -> int:
        """Elements of a cell."""
        return self.down * self.across

    @property
    def values(self) -> Array:
        """(3, blocks, rows, columns): lane, register, element."""
        return np.stack([self.lane, self.register, self.element])

    def repeats(self, axis: int, period: int) -> tuple[int, int, int] | None:
        """What lane, register and element gain from one period to the next along
        an axis (0 blocks, 1 rows, 2 columns).

        None where the pattern does not repeat with this period, or the period does not divide the matrix.
        """
        values = np.moveaxis(self.values, axis + 1, 1)
        size = values.shape[1]
        if size % period or size == period:
            return None
        parts = values.reshape(3, size // period, period, -1)
        gain = parts[:, 1, 0, 0] - parts[:, 0, 0, 0]
        steps = np.arange(size // period)[None, :, None, None]
        if np.any(parts != parts[:, :1] + steps * gain[:, None, None, None]):
            return None
        return int(gain[0]), int(gain[1]), int(gain[2])

    def period(self, axis: int, limit: int) -> int:
        """How many cells of an axis to draw: all that fit, else the whole periods that do,
        else the limit."""
        size = int(self.lane.shape[axis])
        if size <= limit:
            return size
        return next((shown for shown in range(limit, 0, -1) if self.repeats(axis, shown) is not None), limit)


def grid(layout: Layout) -> Grid:
    """The cells of a layout: elements of a register that has four or more are drawn together where they
    are neighbours."""
    lane, register, element = elements(layout)
    plain = Grid(layout, lane, register, element)
    if layout.elements_per_register < 4:
        return plain
    for size in (32, 8, 4):
        for down, across in ((1, size), (size, 1)):
            merged = _merged(plain, down, across)
            if merged is not None:
                return merged
    return plain


def elements(layout: Layout) -> tuple[Array, Array, Array]:
    """Lane, register and number in the register of every element, (blocks, rows, columns) each."""
    places = layout.coordinates()
    active = places["active"]
    at = (places["block"][active], places["row"][active], places["col"][active])
    found: list[Array] = []
    for values in np.nonzero(active):
        target = np.zeros((layout.blocks, layout.rows, layout.cols), np.int64)
        target[at] = values
        found.append(target)
    return found[0], found[1], found[2]


def _merged(plain: Grid, down: int, across: int) -> Grid | None:
    """The grid in cells of down x across elements; None where some cell is not one ascending run
    of one register."""
    blocks, rows, columns = plain.lane.shape
    if rows % down or columns % across:
        return None
    cells = plain.values.reshape(3, blocks, rows // down, down, columns // across, across)
    cells = np.moveaxis(cells, 3, 4).reshape(3, blocks, rows // down, columns // across, down * across)
    first = cells[..., :1]
    run = np.zeros((3, 1, 1, 1, down * across), np.int64)
    run[2] = np.arange(down * across)
    if np.any(cells != first + run):
        return None
    return Grid(plain.layout, first[0, ..., 0], first[1, ..., 0], first[2, ..., 0], down, across)
