"""A repair that was found: what has to stand where, and what it does to the vectors of a check."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Edit:
    """One change of a text.

    Attributes:
        file, line: where it stands, lines from 1; `text` is that line.
        before, after: what stands there, and what it has to be.
    """

    file: Path
    line: int
    text: str
    before: str
    after: str

    def phrase(self) -> str:
        """Where it is and what it says, in one line."""
        near = os.path.relpath(self.file)
        place = self.file.name if near.startswith("..") else near
        after, before, text = (" ".join(each.split()) for each in (self.after, self.before, self.text))
        if not before:
            where = "behind" if after.startswith("else ") else "before"
            return f"{place}:{self.line}: with `{after}` added {where} `{text}`"
        return f"{place}:{self.line}: with `{after}` for `{before}` in `{text}`"


@dataclass(frozen=True)
class Repair:
    """Changes that belong together, and what they do to the vectors of a check.

    Attributes:
        edits: one, or two where one alone does not mend everything.
        mended: wrong vectors that they make right, of `wrong`.
        broken: right vectors that they make wrong.
        vectors: those that were run.
    """

    edits: tuple[Edit, ...]
    mended: int
    wrong: int
    broken: int
    vectors: int

    @property
    def whole(self) -> bool:
        """Whether every vector is right with it."""
        return self.mended == self.wrong and not self.broken

    def as_dict(self) -> dict[str, Any]:
        """As reports hold it."""
        edits = [asdict(edit) | {"file": str(edit.file)} for edit in self.edits]
        return asdict(self) | {"edits": edits, "whole": self.whole, "sentence": self.sentence()}

    def sentence(self) -> str:
        """One line for the reader."""
        where = " and ".join(edit.phrase() for edit in self.edits)
        if self.whole:
            return f"{where} all {self.vectors:,} vectors are right"
        return f"{where} {self.mended:,} of the {self.wrong:,} wrong vectors are right, and no other is wrong"
