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
    """What the first of a file's differences says about a figure and a device of ours; "" if none does."""
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
    """Returns the figures that only they have as a number, and our words about them, or ""."""
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


# Two recordings by the same code ----------------------------------------------------------------------------


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
    # One warp on each sub-core: the most that do not share one.
    few_warps = 4
    return f"{text}, {'up to' if figure.warps <= few_warps else 'more than'} {few_warps} warps"


def _group(kind: str, found: list[tuple[float, Figure, Figure]], tolerance: float) -> Group:
    within = sum(abs(ratio - 1) <= tolerance for ratio, _, _ in found)
    worst = max(found, key=lambda one: abs(one[0] - 1))
    return Group(kind, len(found), within, *worst)
