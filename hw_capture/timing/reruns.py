"""Two recordings by the same code compared: which figures are reproduced, and how closely."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from golden.catalog.timing import Figure
from golden.errors import OperandError

FEW_WARPS = 4
"""One warp on each sub-core: the most that do not share one."""


@dataclass(frozen=True)
class Group:
    """Figures of one kind: how many both recordings hold, how many are within the tolerance, and the worst.

    worst: the second figure by the first, and both.
    """

    kind: str
    figures: int
    within: int
    worst: float
    first: Figure
    second: Figure


def compare(first: Iterable[Figure], second: Iterable[Figure], tolerance: float) -> list[Group]:
    """Returns the figures of two recordings by kind: quantity, and whether warps share a sub-core.

    Args:
        tolerance: the fraction by which a figure may differ.

    Raises:
        OperandError: nothing in common.
    """
    again = {figure.key: figure for figure in second if figure.value is not None}
    pairs: dict[str, list[tuple[float, Figure, Figure]]] = {}
    for figure in first:
        other = again.get(figure.key)
        if figure.value is not None and other is not None and other.value is not None:
            pairs.setdefault(_kind(figure), []).append((other.value / figure.value, figure, other))
    if not pairs:
        raise OperandError("the two recordings have no figure in common")
    return [_group(kind, found, tolerance) for kind, found in pairs.items()]


def _kind(figure: Figure) -> str:
    text = figure.quantity.replace("_", " ")
    if figure.warps is None:
        return f"{text} by size" if figure.key.size is not None else text
    return f"{text}, {'up to' if figure.warps <= FEW_WARPS else 'more than'} {FEW_WARPS} warps"


def _group(kind: str, found: list[tuple[float, Figure, Figure]], tolerance: float) -> Group:
    within = sum(abs(ratio - 1) <= tolerance for ratio, _, _ in found)
    worst = max(found, key=lambda one: abs(one[0] - 1))
    return Group(kind, len(found), within, *worst)
