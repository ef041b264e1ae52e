"""The sources of a design as text: the places of syntax nodes, and writing changed texts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, order=True)
class Place:
    """A stretch of a source: characters `start` to `end`, counted from 0."""

    file: Path
    start: int
    end: int

    def lies_in(self, other: Place) -> bool:
        """Whether it is a part of another place, or equal to it."""
        return self.file == other.file and other.start <= self.start and self.end <= other.end


@dataclass
class Sources:
    """Texts by file, for the locations of one slang source manager.

    Attributes:
        manager: slang's.
        texts: of each file that may be changed.
        only: the file of every location, where one text alone was parsed.
    """

    manager: Any
    texts: Mapping[Path, str]
    only: Path | None = None
    _files: dict[Any, Path] = field(default_factory=dict)
    _continued: dict[Path, list[int]] = field(default_factory=dict)
    _ends: dict[Path, list[int]] = field(default_factory=dict)

    def place(self, node: Any) -> Place | None:
        """The place of a node; None for text of a macro, and in files that may not be changed."""
        span = getattr(node, "sourceRange", None)
        return None if span is None else self.between(span.start, span.end)

    def between(self, start: Any, end: Any) -> Place | None:
        """The same for two locations."""
        if self.manager.isMacroLoc(start) or self.manager.isMacroLoc(end):
            return None
        if (file := self.file(start)) not in self.texts:
            return None
        return Place(file, self._character(file, start.offset), self._character(file, end.offset))

    def file(self, location: Any) -> Path:
        """The file of a location."""
        if self.only is not None:
            return self.only
        if location.buffer not in self._files:
            self._files[location.buffer] = Path(str(self.manager.getFullPath(location.buffer))).resolve()
        return self._files[location.buffer]

    def text(self, node: Any) -> str | None:
        """The text of a node, or of a place; None where it has no place."""
        place = node if isinstance(node, Place) else self.place(node)
        return None if place is None else self.texts[place.file][place.start : place.end]

    def line(self, place: Place) -> int:
        """The line on which a place begins, from 1."""
        if place.file not in self._ends:
            text = self.texts[place.file]
            self._ends[place.file] = [at for at, letter in enumerate(text) if letter == "\n"]
        return bisect_left(self._ends[place.file], place.start) + 1

    def _character(self, file: Path, byte: int) -> int:
        """slang counts bytes of UTF-8."""
        text = self.texts[file]
        if text.isascii():
            return byte
        if file not in self._continued:
            code = text.encode("utf-8", "surrogateescape")
            self._continued[file] = [at for at, one in enumerate(code) if one & 0xC0 == 0x80]
        return byte - bisect_left(self._continued[file], byte)


def read(path: Path) -> str:
    """The text of a source, with every byte and line ending unchanged; `write` writes it back."""
    return path.read_bytes().decode("utf-8", "surrogateescape")


def write(path: Path, text: str) -> None:
    """Writes the result of `read`."""
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
