"""Our measurements against published ones: figures of the same instruction, variant,
quantity, warps and ILP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from golden.catalog.timing import PRINTED, Difference, Figure, Key, as_printed, spellings
from golden.errors import OperandError

GIVEN = ("bytes_per_warp", "vendor_peak")
"""Quantities that nobody measures."""


@dataclass(frozen=True)
class Pair:
    """One figure of ours and one of theirs; printed: ours by their own experiment, where we have repeated it.
    It stands for ours where we have no other."""

    ours: Figure
    theirs: Figure
    printed: Figure | None = None

    @property
    def ratio(self) -> float:
        """Ours by theirs; by the nearer end of a range, and 1 within it."""
        return self._by_theirs(self.ours)

    @property
    def printed_ratio(self) -> float | None:
        """The same of our figure by their experiment; None where there is none."""
        return None if self.printed is None else self._by_theirs(self.printed)

    def _by_theirs(self, figure: Figure) -> float:
        # As `pairs` chose them; ours is above 0, and so is the high end of theirs.
        ours, low, high = figure.value, self.theirs.low, self.theirs.high
        assert ours is not None and low is not None and high is not None
        return ours / min(max(ours, low), high)

    def reason(self, differences: Iterable[Difference]) -> str:
        """Why the two differ, as the first of the published file's differences that speaks of it says; "" if
        none does."""
        return reason(differences, self.theirs.key, self.ours)

    def within(self, tolerance: float) -> bool:
        """Whether ours is at most `tolerance` (a fraction) away from theirs."""
        return abs(self.ratio - 1) <= tolerance


def reason(differences: Iterable[Difference], key: Key, ours: Figure) -> str:
    """What the first of a file's differences says of a figure and a device of ours; "" if none does."""
    about = key, ours.architecture, ours.device
    return next((one.reason for one in differences if one.explains(*about)), "")


def pairs(ours: Iterable[Figure], theirs: Iterable[Figure]) -> list[Pair]:
    """Returns what both measure, in the order of theirs.

    A row of theirs that stands for several instructions is compared with each.

    A throughput without warps and ILP is the peak: ours is then the greatest of all points. A wgmma of theirs
    without a variant does not occur. Of several figures of ours the first counts.

    Raises:
        OperandError: nothing in common.
    """
    mine = list(ours)
    printed = {
        one.key: one for one in reversed(mine) if one.value is not None and one.key.variant.endswith(PRINTED)
    }
    found = []
    for figure, match in _matched(mine, theirs):
        repeated = printed.get(replace(figure.key, variant=as_printed(figure.key.variant)))
        best = repeated if match is None else match
        if best is not None:
            found.append(Pair(best, figure, repeated))
    if not found:
        raise OperandError("the two files have no figure in common")
    return found


def without(ours: Iterable[Figure], theirs: Iterable[Figure]) -> list[tuple[Figure, str]]:
    """Returns what only they have a number of, and what ours says of it in words, or ""."""
    mine = list(ours)
    words = [figure for figure in mine if figure.value is None]
    said = {figure.instruction: figure.text for figure in words}
    here = {figure.key: figure.text for figure in words}
    printed = {figure.key for figure in mine if figure.value is not None}
    return [
        (figure, here.get(figure.key) or said.get(figure.instruction, ""))
        for figure, match in _matched(mine, theirs)
        if match is None
        and figure.quantity not in GIVEN
        and replace(figure.key, variant=as_printed(figure.key.variant)) not in printed
    ]


def _matched(ours: Iterable[Figure], theirs: Iterable[Figure]) -> Iterator[tuple[Figure, Figure | None]]:
    """Every figure of theirs, of one instruction each, and ours."""
    known = list(ours)
    mine = {figure.key: figure for figure in reversed(known) if figure.value is not None}
    best: dict[tuple[str, str], Figure] = {}
    for figure in mine.values():
        place = (figure.instruction, figure.key.variant)
        if figure.quantity == "throughput" and (
            place not in best or (figure.value or 0) > (best[place].value or 0)
        ):
            best[place] = figure
    for figure in theirs:
        for name in spellings(figure.instruction):
            key = replace(figure.key, instruction=name)
            match = mine.get(key)
            if match is None and key == Key(name, key.variant, "throughput"):
                match = best.get((name, key.variant))
            comparable = match is not None and figure.high is not None and match.unit == figure.unit
            yield replace(figure, key=key), match if comparable else None
