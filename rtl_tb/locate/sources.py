"""The sources of a design as text: the places of syntax nodes, and writing changed texts."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_ESCAPED = re.compile(r"\\\S+$")


@dataclass(frozen=True, order=True)
class Place:
    """A stretch of a source: bytes `start` to `end`, counted from 0."""

    file: Path
    start: int
    end: int

    def lies_in(self, other: Place) -> bool:
        """Whether it is a part of another place, or equal to it."""
        return other.start <= self.start and self.end <= other.end and self.file == other.file


def by_file(places: Iterable[Place]) -> dict[Path, list[Place]]:
    """Places in their order, for each file."""
    found: dict[Path, list[Place]] = {}
    for place in places:
        found.setdefault(place.file, []).append(place)
    return found


class Within:
    """Whether a place is in one of some places, or holds one; none of them overlap."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.places = by_file(sorted(places))

    def __call__(self, place: Place) -> bool:
        places = self.places.get(place.file, [])
        at = bisect_left(places, place.start, key=lambda one: one.start)
        return any(place.lies_in(one) or one.lies_in(place) for one in places[max(at - 1, 0) : at + 1])


def ended(text: str) -> str:
    """A text with the blank that ends an escaped name, so that another text may stand behind it."""
    return f"{text} " if _ESCAPED.search(text) else text


@dataclass
class Sources:
    """Texts by file, for the locations of one slang source manager.

    Attributes:
        manager: slang's.
        texts: of each file that may be changed, as rtl_tb/dut/text.py reads it.
        only: the file of every location, where one text alone was parsed.
    """

    manager: Any
    texts: dict[Path, str]
    only: Path | None = None
    _files: dict[Any, Path] = field(default_factory=dict)
    _ends: dict[Path, list[int]] = field(default_factory=dict)

    def place(self, node: Any, within: Place | None = None) -> Place | None:
        """The place of a node; of one that a macro brought, where its text is written. None if it is written
        in several places, or in a file that may not be changed."""
        span = getattr(node, "sourceRange", None)
        return None if span is None else self.between(span.start, span.end, within)

    def between(self, start: Any, end: Any, within: Place | None = None) -> Place | None:
        """The same for two locations; `within` another place the text there that holds them."""
        for first, last in self._written(start, end):
            if (file := self.file(first)) not in self.texts:
                return None
            place = Place(file, first.offset, last.offset)
            if within is None or place.lies_in(within):
                return place
        return None

    def _written(self, start: Any, end: Any) -> Iterator[tuple[Any, Any]]:
        """The locations in files where a text is written, from the innermost to the outermost: an argument of
        a macro, the body of its definition, its use."""
        manager = self.manager
        if not (manager.isMacroLoc(start) or manager.isMacroLoc(end)):
            yield start, end
            return
        if self.only is not None:
            return
        # 1. Each expansion lies in the text around it, up to the file. The innermost text in which both ends
        #    lie holds all that is between them.
        ends = {end.buffer: end}
        while manager.isMacroLoc(end):
            end = manager.getExpansionRange(end).end
            ends.setdefault(end.buffer, end)
        while start.buffer not in ends and manager.isMacroLoc(start):
            if start.offset:  # something stands before it in what was expanded
                return
            start = manager.getExpansionRange(start).start
        while (end := ends.get(start.buffer)) is not None:
            # 2. What was expanded is written in a file; offsets from its start are the same there.
            first, last = start, end
            while manager.isMacroLoc(first):
                first, last = manager.getOriginalLoc(first), manager.getOriginalLoc(last)
            if first.buffer == last.buffer and first.offset <= last.offset:
                yield first, last
            if start.offset or not manager.isMacroLoc(start):
                return
            start = manager.getExpansionRange(start).start

    def file(self, location: Any) -> Path:
        """The file of a location."""
        if self.only is not None:
            return self.only
        if location.buffer not in self._files:
            self._files[location.buffer] = Path(str(self.manager.getFullPath(location.buffer))).resolve()
        return self._files[location.buffer]

    def text(self, node: Any, within: Place | None = None) -> str | None:
        """The text of a node, or of a place; None where it has no place. `within` the place of a node around
        it, it is as written there: the use of a macro, and not the macro's body."""
        place = node if isinstance(node, Place) else self.place(node, within)
        return None if place is None else self.texts[place.file][place.start : place.end]

    def expanded(self, node: Any) -> str:
        """The text of a node with the macros in it expanded."""
        span = node.sourceRange
        macro = self.manager.isMacroLoc(span.start) or self.manager.isMacroLoc(span.end)
        return str(node) if macro else self.text(node) or ""

    def line(self, place: Place) -> int:
        """The line on which a place begins, from 1."""
        if place.file not in self._ends:
            text = self.texts[place.file]
            self._ends[place.file] = [at for at, letter in enumerate(text) if letter == "\n"]
        return bisect_left(self._ends[place.file], place.start) + 1
