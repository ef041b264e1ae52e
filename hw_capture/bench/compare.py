"""Our measurements beside published ones: figures of the same instruction, variant,
quantity, warps and ILP."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from golden.catalog.timing import Figure, Key
from golden.errors import OperandError


@dataclass(frozen=True)
class Pair:
    """One figure of ours beside one of theirs."""

    ours: Figure
    theirs: Figure

    @property
    def ratio(self) -> float:
        """Ours by theirs."""
        # As `pairs` chose them; both are above 0.
        assert self.ours.value is not None and self.theirs.value is not None
        return self.ours.value / self.theirs.value

    def within(self, tolerance: float) -> bool:
        """Whether ours is at most `tolerance` (a fraction) away from theirs."""
        return abs(self.ratio - 1) <= tolerance


def pairs(ours: Iterable[Figure], theirs: Iterable[Figure]) -> list[Pair]:
    """Returns what both measure, in the order of theirs.

    A throughput without warps and ILP is the peak: ours is then the greatest of all points. A wgmma of theirs
    without a variant does not occur.

    Raises:
        OperandError: nothing in common.
    """
    mine = {figure.key: figure for figure in ours if figure.value is not None}
    best: dict[tuple[str, str], Figure] = {}
    for figure in mine.values():
        place = (figure.instruction, figure.key.variant)
        if figure.quantity == "throughput" and (
            place not in best or (figure.value or 0) > (best[place].value or 0)
        ):
            best[place] = figure
    found = []
    for figure in theirs:
        match = mine.get(figure.key)
        if match is None and figure.key == Key(figure.instruction, figure.key.variant, "throughput"):
            match = best.get((figure.instruction, figure.key.variant))
        if match is not None and figure.value is not None and match.unit == figure.unit:
            found.append(Pair(match, figure))
    if not found:
        raise OperandError("the two files have no figure in common")
    return found
