"""Our measurements beside published ones: figures of the same instruction, variant,
quantity, warps and ILP."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from golden.catalog.timing import Difference, Figure, Key, spellings
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

    def reason(self, differences: Iterable[Difference]) -> str:
        """Why the two differ, as the first of the published file's differences that speaks of it says; "" if
        none does."""
        about = self.theirs.key, self.ours.architecture, self.ours.device
        return next((one.reason for one in differences if one.explains(*about)), "")

    def within(self, tolerance: float) -> bool:
        """Whether ours is at most `tolerance` (a fraction) away from theirs."""
        return abs(self.ratio - 1) <= tolerance


def pairs(ours: Iterable[Figure], theirs: Iterable[Figure]) -> list[Pair]:
    """Returns what both measure, in the order of theirs.

    A row of theirs that stands for several instructions is compared with each.

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
        for name in spellings(figure.instruction):
            key = replace(figure.key, instruction=name)
            match = mine.get(key)
            if match is None and key == Key(name, key.variant, "throughput"):
                match = best.get((name, key.variant))
            if match is not None and figure.value is not None and match.unit == figure.unit:
                found.append(Pair(match, replace(figure, key=key)))
    if not found:
        raise OperandError("the two files have no figure in common")
    return found
