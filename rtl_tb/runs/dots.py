"""Between tiles and the dot products in them: the models explain dot products, whatever the DUT computes
at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from golden.identify.diagnose.mutations import accumulator
from golden.model.instruction import Instruction
from golden.vectors.tiles import element, grid
from golden.vectors.vectorset import VectorSet
from rtl_tb.runs.verdict import Verdict

if TYPE_CHECKING:
    from rtl_tb.dut.exclude import Exclusion

Bits = npt.NDArray[Any]


def as_dots(
    verdict: Verdict,
    with_context: bool = False,
    places: npt.NDArray[np.bool_] | None = None,
    exclude: Exclusion | None = None,
) -> tuple[dict[str, Bits], Bits]:
    """Operands and the DUT's results (codes, (n,)) of every dot product that was answered without X or Z, of
    tiles only at `places`, (m, n), where given.

    Of a unit that keeps its accumulator the operands hold, as c, what it answered before: each dot product
    stands for itself, whatever went wrong before it. Without that answer it is left out, and so are vectors
    of `exclude`. With `with_context` the operands also hold what `context_of` of
    golden/identify/diagnose/mutations/accumulator.py gives.
    """
    vectors = verdict.vectors
    answered = ~(verdict.missing | verdict.unknown)
    if exclude is not None:  # the model's answer to these is not the one that the unit has to give
        answered &= ~exclude.of(vectors.instruction, vectors.operands, vectors.d)
    known = np.flatnonzero(answered)
    actual = verdict.outcome.actual.reshape(vectors.d.shape)
    if vectors.level == "dot":
        ins, operands = vectors.instruction, vectors.operands
        if ins.state:
            known = known[operands["clear"][known].astype(bool) | (known == 0) | np.isin(known - 1, known)]
            more = accumulator.context_of(ins, operands, actual, vectors.held) if with_context else {}
            operands = ins.resolve(operands, actual, vectors.held) | more
        return {name: codes[known] for name, codes in operands.items()}, actual[known]
    m, n = vectors.d.shape[1:]
    # Dot products taken from tiles at most: the diagnosis needs no more.
    most = 400_000
    # Tiles that differ come first, so that a cut keeps them.
    known = known[np.argsort(~verdict.wrong[known], kind="stable")][: max(most // (m * n), 1)]
    tiles, rows, columns = grid(known, m, n)
    if places is not None:
        tiles, rows, columns = (each[places[rows, columns]] for each in (tiles, rows, columns))
    return element(vectors.operands, tiles, rows, columns), actual[tiles, rows, columns]


def of_tiles(vectors: VectorSet) -> tuple[dict[str, Bits], Bits]:
    """Operands and expected results of every dot product of a set of tiles."""
    count, m, n = vectors.d.shape
    places = grid(np.arange(count), m, n)
    return element(vectors.operands, *places), vectors.d[places]


def place(ins: Instruction, dots: dict[str, Bits], row: int, column: int) -> dict[str, Bits]:
    """Tiles that hold the given dot products at (row, column); the rest of every tile is zero, scales are
    the given ones.

    Sparse: all rows take the metadata of the dot product, so that they stay legal.
    """
    count, tiles = len(dots["a"]), {}
    for name, shape in ins.operand_shapes(True).items():
        codes = dots[name]
        tile = np.zeros((count, *shape), codes.dtype)
        if name == "c":
            tile[:, row, column] = codes
        elif name == "mode":
            tile = codes
        elif name in ("metadata", "scale_a"):
            tile[...] = codes[:, None, :]
        elif name == "scale_b":
            tile[...] = codes[:, :, None]
        elif name == "a":
            tile[:, row] = codes
        else:
            tile[:, :, column] = codes
        tiles[name] = tile
    return tiles
