"""The dot products of tiles: a result of a matrix instruction is row i of a times column j of b, plus c."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[Any]
BY_ROW = ("a", "metadata", "scale_a")
"""Operands that belong to a row of D; b and scale_b belong to a column, c to one element."""


def element(operands: Mapping[str, Bits], tiles: Any, rows: Any, columns: Any) -> dict[str, Bits]:
    """The operands of the dot products at (tile, row, column), as `ins.dot` takes them."""
    picked = {}
    for name, codes in operands.items():
        if name == "c":
            picked[name] = codes[tiles, rows, columns]
        elif name == "mode":
            picked[name] = codes[tiles]
        else:
            picked[name] = codes[tiles, rows] if name in BY_ROW else codes[tiles, :, columns]
    return picked


def grid(tiles: Bits, m: int, n: int) -> tuple[Bits, Bits, Bits]:
    """Tile, row and column of every element of these tiles."""
    tile, row, column = np.meshgrid(tiles, np.arange(m), np.arange(n), indexing="ij")
    return tile.reshape(-1), row.reshape(-1), column.reshape(-1)
