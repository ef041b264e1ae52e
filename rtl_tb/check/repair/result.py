"""A repair that was found: what has to stand where, and what it does to the vectors of a check."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rtl_tb.check.example import Example


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
class Alone:
    """What one of a unit's faults does by itself.

    Attributes:
        edit: the change that mends it.
        mended: wrong vectors that this change alone makes right: they show this fault and no other.
        broken: right vectors that it alone makes wrong: there two faults make up for each other.
        example: the smallest operands found that show this fault and no other; None: none were.
    """

    edit: Edit
    mended: int
    broken: int
    example: Example | None = None

    def as_dict(self) -> dict[str, Any]:
        """As reports hold it."""
        example = None if self.example is None else self.example.as_dict()
        counts = {"mended": self.mended, "broken": self.broken}
        return counts | {"text": self.phrase(), "example": example}

    def phrase(self) -> str:
        """The fault in one line."""
        where = self.edit.phrase()
        if not self.mended:
            return f"{where}; alone it makes no vector right: the other fault is in all that show this one"
        but = f", and {self.broken:,} right ones wrong" if self.broken else ""
        return f"{where}; alone it makes {self.mended:,} of the wrong vectors right{but}"


@dataclass(frozen=True)
class Rest:
    """A fault that a change of the text leaves, and that a hypothesis about the arithmetic names.

    Attributes:
        text: what the unit computes instead.
        explains: of the vectors that the change leaves wrong those that only this makes right.
        example: the smallest operands found that show it with the change as without; None: none were.
    """

    text: str
    explains: int
    example: Example | None = None

    def as_dict(self) -> dict[str, Any]:
        """As reports hold it."""
        example = None if self.example is None else self.example.as_dict()
        text = f"beside it: {self.text}; explains {self.explains:,} of the vectors that are left"
        return {"mended": self.explains, "broken": 0, "text": text, "example": example}


@dataclass(frozen=True)
class Repair:
    """Changes that belong together, and what they do to the vectors of a check.

    Attributes:
        edits: one, or two where one alone does not mend everything.
        mended: wrong vectors that they make right, of `wrong`.
        broken: right vectors that they make wrong.
        vectors: those that were run.
        faults: each of several edits by itself, and one that leaves wrong vectors; those that mend
            most come first.
        rest: where hypotheses explain all that is left, these.
        are: what all vectors are with changes that make every one right: less, where a unit has two faults
            and the changes are held to one.
    """

    edits: tuple[Edit, ...]
    mended: int
    wrong: int
    broken: int
    vectors: int
    faults: tuple[Alone, ...] = ()
    rest: tuple[Rest, ...] = ()
    are: str = "right"

    @property
    def explained(self) -> bool:
        """Whether every vector is right with it, or is what its `rest` says."""
        return self.whole or bool(self.rest)

    @property
    def whole(self) -> bool:
        """Whether every vector is right with it."""
        return self.mended == self.wrong and not self.broken

    @property
    def by_one(self) -> bool:
        """Whether one change makes every vector right."""
        return self.whole and len(self.edits) == 1

    def as_dict(self) -> dict[str, Any]:
        """As reports hold it."""
        counts = {name: getattr(self, name) for name in ("mended", "wrong", "broken", "vectors", "whole")}
        edits = [asdict(edit) | {"file": str(edit.file)} for edit in self.edits]
        faults = [*(fault.as_dict() for fault in self.faults), *(one.as_dict() for one in self.rest)]
        return counts | {"edits": edits, "faults": faults, "sentence": self.sentence()}

    def sentence(self) -> str:
        """One line for the reader."""
        where = " and ".join(edit.phrase() for edit in self.edits)
        if self.whole:
            return f"{where} all {self.vectors:,} vectors are {self.are}"
        others = f"{self.broken:,} right ones are wrong" if self.broken else "no other is wrong"
        counted = f"{where} {self.mended:,} of the {self.wrong:,} wrong vectors are right, and {others}"
        if self.rest:
            what = " and ".join(one.text for one in self.rest)
            return f"{counted}; all {self.vectors:,} are explained with what is left: {what}"
        left = self.wrong - self.mended
        return f"{counted}; of the {left:,} that are left no change that was tried mends more"
