"""The changes that wait for a build, and which of them the next build holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rtl_tb.locate.changes import Changes, Choice
from rtl_tb.locate.flow import Together, Wires
from rtl_tb.locate.policy import SearchPolicy
from rtl_tb.locate.sources import Place, Within
from rtl_tb.locate.spectrum import Spectrum, ranked

_USUAL = 150
"""Characters of a choice: the mean of units in which no loop multiplies them, and half as many more."""
_BUILDING = 0.6
"""The share of the time for trials that a build has: to try a choice costs half as much as to build it."""
_QUICKEST = 1e-5
"""Seconds of a build for a character of its choices, at least: 20 to 80 microseconds were measured."""
_LEAST_PLACES = 4
"""Places that are read together: they cost a walk through the text."""


class Candidates:
    """The changes of a text that were looked for and are in no build yet. The likeliest places are read
    first, and only as many as the next build needs: to read a large text as a whole takes seconds.

    Attributes:
        spectrum: ranks the places; None: every place has the same rank.
        whole_text: whether changes were looked for everywhere.
    """

    def __init__(self, changes: Changes, policy: SearchPolicy) -> None:
        self.changes, self.policy = changes, policy
        self.spectrum: Spectrum | None = None
        self.whole_text = False
        self._waiting: dict[bool, list[Choice]] = {False: [], True: []}
        """Changes, and texts that may be missing."""
        self._seen: set[Choice] = set()
        """All that ever waited."""
        self._looked = {False: set[Place](), True: set[Place]()}
        """The places at which changes were looked for, and missing texts."""
        self._size = policy.likely
        """Choices of the next build; each build has twice as many as the one before."""
        self._built: list[tuple[int, float]] = []
        """The characters of the choices of each build, and its seconds."""

    def probes(self) -> list[Choice]:
        """The choices that show which results depend on which place, as many as one build holds."""
        return taken(self.changes.probes, len(self.changes.probes), self.policy.likely * _USUAL)

    def next(self, seconds: float) -> list[Choice]:
        """The choices of the next build, of which most is expected: no more than a part of the seconds that
        are left can build. Invariant: each choice is in one build at most."""
        most, self._size = self._size, min(2 * self._size, self.policy.largest)
        # A build has a part of the time that is left, or its choices might never be tried.
        # Less than a quarter of a first build is not worth what the design takes.
        least = self.policy.likely * _USUAL / 4
        room = min(most * _USUAL, max(room_of(self._built, _BUILDING * seconds), least))
        for missing in self._waiting:
            self._look_further(missing, most)
        together = Together(self.changes.flow)
        every = ranked([*self._waiting[False], *self._waiting[True]], self.spectrum)
        chosen = taken(every, most, room, together.fits)
        gone = set(chosen)
        for waiting in self._waiting.values():
            waiting[:] = [one for one in waiting if one not in gone]
        return chosen

    def note_build(self, characters: int, seconds: float) -> None:
        """Notes how long a build of choices of so many characters took."""
        self._built.append((characters, seconds))

    def _look_further(self, missing: bool, enough: int) -> None:
        """Looks for changes, or for texts that may be missing, at the next likeliest places, until `enough`
        wait, and in any case at a few places where a change was seen to repair something."""
        waiting, looked = self._waiting[missing], self._looked[missing]
        places = [one for one in self._places() if one not in looked]
        likely = [one for one in places[:_LEAST_PLACES] if self.spectrum and self.spectrum.score(one) >= 1]
        some = likely or places[: max(len(looked), _LEAST_PLACES)] * (len(waiting) < enough)
        while some:
            looked.update(some)
            within = Within(some)
            self._note(missing, self.changes.missing(within) if missing else self.changes.at(within))
            places = [one for one in places if one not in looked]
            some = places[: max(len(looked), _LEAST_PLACES)] * (len(waiting) < enough)
        if (
            not missing and len(waiting) < enough and not self.whole_text
        ):  # also what is at none of the places
            self.whole_text = True
            self._note(missing, self.changes.choices)

    def _note(self, missing: bool, found: Sequence[Choice]) -> None:
        """Adds choices that are new."""
        self._waiting[missing] += [one for one in found if one not in self._seen]
        self._seen.update(found)

    def _places(self) -> list[Place]:
        """The roots with what they are assigned to, the likeliest ones first."""
        roots = [one.site for one in self.changes.probes]
        if self.spectrum is not None:
            roots.sort(key=self.spectrum.score, reverse=True)
        return list(dict.fromkeys(map(self.changes.statement, roots)))


def taken(
    listed: Sequence[Choice],
    most: int,
    room: float | None = None,
    fits: Callable[[Wires | None], bool] = lambda _: True,
) -> list[Choice]:
    """The first choices that fit together, `most` at most, and fewer if they are larger than usual, or than
    `room` characters."""
    room = most * _USUAL if room is None else room
    found, size = list[Choice](), 0
    for one in listed:
        if len(found) == most or (found and size + one.size > room):
            break
        if fits(one.change.wires):
            found.append(one)
            size += one.size
    return found


def room_of(built: Sequence[tuple[int, float]], seconds: float) -> float:
    """The characters of choices that a build of some seconds holds, by the characters and seconds of those
    before it: each takes what the design takes, and then the same for each character. Of one alone half is
    for the design."""
    (few, quick), (many, slow) = min(built, default=(0, 0.0)), max(built, default=(0, 0.0))
    each = (slow - quick) / (many - few) if many > few and slow > quick else slow / max(2 * many, 1)
    return (seconds - slow) / max(each, _QUICKEST) + many
