"""Rivals that differ from a candidate in the value of one number: those between two that nothing tells.

The further a width, a window or an exponent is from what the candidate has, the more operands show it. Where
many operands tell neither the least value nor the greatest, none between them is worth running on those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields

from golden.identify.blackbox.candidates import Candidate
from golden.program.steps import Step

_BOTH_ENDS = 2
_WORDS = ("nan", "nans")


def number_of(candidate: Candidate, rival: Candidate) -> tuple[object, int] | None:
    """Which number of which step a rival has otherwise, and its value there; None where it differs in
    anything else. Operations of a chain differ in the same."""
    if len(candidate.operations) != len(rival.operations):
        return None
    found = None
    for one, other in zip(candidate.operations, rival.operations, strict=True):
        if one.with_steps(other.steps).arithmetic != other.arithmetic or len(one.steps) != len(other.steps):
            return None
        for place, (mine, yours) in enumerate(zip(one.steps, other.steps, strict=True)):
            if mine == yours:
                continue
            told = _number(mine, yours)
            if told is None or found not in (None, (place, told)):
                return None
            found = place, told
    return None if found is None else ((found[0], *found[1][0]), found[1][1])


def _number(mine: Step, yours: Step) -> tuple[tuple[object, ...], int] | None:
    """The key of a step that another one has otherwise, with the register where it has several, and its
    number there; None where they differ in more, or in no number: words of NaNs have no order."""
    if type(mine) is not type(yours):
        return None
    names = [one.name for one in fields(mine) if getattr(mine, one.name) != getattr(yours, one.name)]
    if len(names) != 1 or names[0] in _WORDS:
        return None
    before, now = getattr(mine, names[0]), getattr(yours, names[0])
    if type(now) is int:
        return (names[0],), now
    if not (isinstance(before, tuple) and isinstance(now, tuple)) or len(before) > len(now):
        return None
    new = [one for one in now if one not in before]
    if len(new) != 1 or not isinstance(new[0], tuple) or len(new[0]) != 2 or type(new[0][1]) is not int:
        return None
    return (names[0], new[0][0]), new[0][1]


class Between:
    """Rivals in an order in which, of those that differ in the same number, the least and the greatest value
    come first. `order`: their places."""

    def __init__(self, candidate: Candidate, rivals: Sequence[Candidate]) -> None:
        members: dict[object, list[tuple[int, int]]] = {}
        self.order = list(range(len(rivals)))
        self._family: dict[int, object] = {}
        self._untold: Counter[object] = Counter()
        for place, rival in enumerate(rivals):
            found = number_of(candidate, rival)
            if found is not None:
                self._family[place] = found[0]
                members.setdefault(found[0], []).append((found[1], place))
        for some in members.values():
            places, inner = sorted(place for _, place in some), [place for _, place in sorted(some)]
            for turn, place in enumerate(places):
                self.order[place] = inner.pop(0 if turn % 2 == 0 else -1)

    def is_between(self, place: int) -> bool:
        """Whether a rival lies between two that nothing tells."""
        return self._untold[self._family.get(place)] >= _BOTH_ENDS

    def note(self, place: int, told: bool) -> None:
        """Keeps whether operands told a rival."""
        family = self._family.get(place)
        if family is not None:
            self._untold[family] = 0 if told else self._untold[family] + 1
