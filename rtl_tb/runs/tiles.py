"""Which elements of a tile are wrong: rows and columns of d, where a DUT computes whole matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rtl_tb.dut.policy import ComparePolicy
from rtl_tb.runs.verdict import Verdict

Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[Any]


def wrong_elements(verdict: Verdict, policy: ComparePolicy) -> Flags:
    """The elements that are wrong in d or in a status flag, (count, m, n); none of a tile with X or Z."""
    vectors = verdict.vectors
    shape = vectors.d.shape
    came = {name: codes.reshape(shape) for name, codes in verdict.outcome.results.items()}
    right = np.asarray(policy.equal(vectors.instruction.formats["d"], vectors.d, came["d"]))
    if vectors.flags is not None:
        right = right & (vectors.flags.reshape(shape) == came["flags"])
    wrong: Flags = ~right & verdict.wrong[:, None, None]
    return wrong


def wrong_places(verdict: Verdict, policy: ComparePolicy) -> Flags:
    """The elements, (m, n), that are wrong in some tile."""
    return np.asarray(wrong_elements(verdict, policy).any(axis=0))


def sentence(verdict: Verdict, policy: ComparePolicy) -> str | None:
    """Where the wrong elements are; None where none is wrong or the DUT computes single dot products."""
    if verdict.vectors.level != "tile" or not verdict.wrong.any():
        return None
    wrong = wrong_elements(verdict, policy)
    places = np.asarray(wrong.any(axis=0))
    m, n = places.shape
    what = f"of the {m} x {n} elements of d,"
    share = f"{int(wrong.sum()):,} of {wrong.size:,} elements in all"
    if (order := rearranged(verdict, policy)) is not None:
        return f"every tile is right with {order}: look at where the elements of d lie; {share}"
    if places.all():
        return f"{what} each is wrong in some tile: {share}"
    return (
        f"{what} {_named(places)} {'is' if places.sum() == 1 else 'are'} wrong: {share}; the others are "
        "right in every tile, and the diagnosis is of these alone"
    )


def rearranged(verdict: Verdict, policy: ComparePolicy) -> str | None:
    """The order of the elements of d in which every tile that was answered is right; None where there is none
    of ORDERS."""
    vectors = verdict.vectors
    known = np.flatnonzero(~(verdict.missing | verdict.unknown))
    came = verdict.outcome.actual.reshape(vectors.d.shape)[known]
    expected, fmt = vectors.d[known], vectors.instruction.formats["d"]
    for words, order in ORDERS.items():
        other = order(expected)
        if other.shape == came.shape and bool(policy.equal(fmt, other, came).all()):
            return words
    return None


def _swapped(axis: int, blocks: int) -> Callable[[Codes], Codes]:
    """Two neighbours of an axis exchanged, or, with `blocks`, blocks of this size."""

    def order(tiles: Codes) -> Codes:
        size = tiles.shape[axis]
        width = size // blocks if blocks else 1
        return np.take(
            tiles, np.arange(size) ^ width if width and not size % (2 * width) else np.arange(size), axis
        )

    return order


ORDERS: dict[str, Callable[[Codes], Codes]] = {
    "rows and columns exchanged": lambda tiles: tiles.swapaxes(1, 2),
    "columns one after another, not rows": lambda tiles: tiles.swapaxes(1, 2).reshape(tiles.shape),
    "rows in reverse": lambda tiles: tiles[:, ::-1],
    "columns in reverse": lambda tiles: tiles[:, :, ::-1],
    "rows and columns in reverse": lambda tiles: tiles[:, ::-1, ::-1],
    "each two rows exchanged": _swapped(1, 0),
    "each two columns exchanged": _swapped(2, 0),
    "the halves of the rows exchanged": _swapped(1, 2),
    "the halves of the columns exchanged": _swapped(2, 2),
}
"""Orders of the elements of d, by what a sentence says about them."""


def _named(places: Flags) -> str:
    """The places in words: whole rows or columns, or one by one."""
    rows, columns = (np.flatnonzero(places.any(axis=axis)).tolist() for axis in (1, 0))
    if places[rows].all():
        return f"row{_list(rows)}"
    if places[:, columns].all():
        return f"column{_list(columns)}"
    # Elements that a sentence names one by one.
    named = 4
    if places.sum() > named:
        return f"{int(places.sum())}, in row{_list(rows)} and column{_list(columns)},"
    return ", ".join(f"d[{row}][{column}]" for row, column in np.argwhere(places).tolist())


def _list(numbers: Sequence[Any]) -> str:
    return f"{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
