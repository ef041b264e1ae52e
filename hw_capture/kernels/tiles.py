"""The operands that are captured: tiles of every stimulus kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.model.instruction import Instruction
from golden.vectors import default_set

Bits = npt.NDArray[Any]
MIXED = "mixed"
STIMULI = "stimuli"
CLASS_SETS = {
    STIMULI: [f"{kind}: {stimuli.describe(kind)}" for kind in stimuli.KINDS],
    MIXED: ["every kind: row i of A, column i of B and C[i][i] are dot product i, the kinds in turn"],
}
"""Words for the class of a tile, as the manifest has them."""


def tile_bytes(ins: Instruction) -> int:
    """Bytes of one tile, operands and results, one element an array item."""
    shapes = {**ins.operand_shapes(True), "d": (ins.m, ins.n)}
    sizes = {name: fmt.dtype.itemsize for name, fmt in ins.formats.items()}
    return sum(int(np.prod(shape)) * sizes.get(name, 1) for name, shape in shapes.items())


def draw(ins: Instruction, seed: int, per_kind: int = 1) -> tuple[dict[str, Bits], str, list[int]]:
    """Draws the tiles of an instruction: at least `per_kind` of every stimulus kind.

    Returns:
        Operands (tiles, ...) as `ins(...)` takes them, the class set, and the class of every tile.
    """
    # Bytes of a tile from which on one tile holds every kind, instead of one tile for each kind.
    large = 8 << 10
    if tile_bytes(ins) >= large:
        operands = _mixed(ins, seed, per_kind)
        return operands, MIXED, [0] * len(operands["c"])
    count = 2 * per_kind * len(stimuli.KINDS) * ins.blocks
    while True:
        pool = default_set(ins, count, seed, level="tile")
        places = [np.flatnonzero(pool.kinds == kind)[:per_kind] for kind in range(len(stimuli.KINDS))]
        if all(len(found) == per_kind for found in places):
            break
        count *= 2
    chosen = np.sort(np.concatenate(places))
    # Whole executions of several blocks.
    spare = np.setdiff1d(np.arange(count), chosen)[: -len(chosen) % ins.blocks]
    chosen = np.concatenate([chosen, spare])
    return (
        {name: codes[chosen] for name, codes in pool.operands.items()},
        STIMULI,
        pool.kinds[chosen].tolist(),
    )


def _mixed(ins: Instruction, seed: int, per_kind: int) -> dict[str, Bits]:
    """Tiles whose diagonal holds every kind at least `per_kind` times."""
    rows, diagonal, count = max(ins.m, ins.n), min(ins.m, ins.n), 1
    while True:
        dots = default_set(ins, count * rows, seed)
        met = np.bincount(dots.kinds.reshape(count, rows)[:, :diagonal].ravel(), minlength=len(stimuli.KINDS))
        if met.min() >= per_kind:
            break
        count += 1
    parts = {name: codes.reshape(count, rows, *codes.shape[1:]) for name, codes in dots.operands.items()}
    tiles = {
        name: part[:, : ins.n].swapaxes(1, 2) if name in ("b", "scale_b") else part[:, : ins.m]
        for name, part in parts.items()
    }
    row, column = np.indices((ins.m, ins.n))
    tiles["c"] = parts["c"][:, np.maximum(row, column)]
    return {name: np.ascontiguousarray(codes) for name, codes in tiles.items()}
