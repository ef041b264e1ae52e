"""A repair that was found: what has to stand where, and what it does to the vectors of a check."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rtl_tb.runs.example import Example


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
        are: what is "right", see Repair.
    """

    edit: Edit
    mended: int
    broken: int
    example: Example | None = None
    are: str = "right"

    def as_dict(self) -> dict[str, Any]:
        """As reports hold it."""
        example = None if self.example is None else self.example.as_dict()
        counts = {"mended": self.mended, "broken": self.broken}
        return counts | {"text": self.phrase(), "example": example}

    def phrase(self) -> str:
        """The fault in one line."""
        where = self.edit.phrase()
        if not self.mended:
            return (
                f"{where}; alone it makes no vector {self.are}: the other fault is in all that show this one"
            )
        ones = "one" if self.broken == 1 else "ones"
        others = f"right {ones} wrong" if self.are == "right" else "others not"
        but = f", and {self.broken:,} {others}" if self.broken else ""
        return f"{where}; alone it makes {self.mended:,} of the wrong vectors {self.are}{but}"


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
        are: what vectors are that count as right: less, where a unit has two faults and the changes are held
            to one.
        untried: which changes could not be tried, and why, where some mend a part.
    """

    edits: tuple[Edit, ...]
    mended: int
    wrong: int
    broken: int
    vectors: int
    faults: tuple[Alone, ...] = ()
    rest: tuple[Rest, ...] = ()
    are: str = "right"
    untried: str = ""
    rivals: int = 0

    def held_to(self, are: str) -> Repair:
        """The same where less than `right` counts, also of each fault."""
        faults = tuple(replace(fault, are=are) for fault in self.faults)
        return replace(self, are=are, faults=faults)

    @property
    def explained(self) -> bool:
        """Whether every vector is what they `are` with it, or is what its `rest` says."""
        return self.whole or bool(self.rest)

    @property
    def whole(self) -> bool:
        """Whether every vector is with it what they `are`."""
        return self.mended == self.wrong and not self.broken

    @property
    def by_one(self) -> bool:
        """Whether one change makes every vector what they `are`."""
        return self.whole and len(self.edits) == 1

    def as_dict(self) -> dict[str, Any]:
        """As reports hold it."""
        counts = {
            name: getattr(self, name) for name in ("mended", "wrong", "broken", "vectors", "whole", "are")
        }
        edits = [asdict(edit) | {"file": str(edit.file)} for edit in self.edits]
        faults = [*(fault.as_dict() for fault in self.faults), *(one.as_dict() for one in self.rest)]
        told = {"sentence": self.sentence(), "summary": self.summary()}
        return counts | {"edits": edits, "faults": faults} | told

    def sentence(self) -> str:
        """One line for the reader."""
        what = " and ".join(one.text for one in self.rest)
        return self._told(" and ".join(edit.phrase() for edit in self.edits), f": {what}" if what else "")

    def summary(self) -> str:
        """The same above a list that says each fault."""
        return self._told("these changes together:" if len(self.edits) > 1 else "this change:", "")

    def _told(self, where: str, rest: str) -> str:
        if self.whole:
            said = f"{where} all {self.vectors:,} vectors are {self.are}"
            ones = "line is" if self.rivals == 1 else "lines are"
            return f"{said} ({self.rivals} other {ones} equally consistent)" if self.rivals else said
        ones = "one is" if self.broken == 1 else "ones are"
        others = f"{self.broken:,} right {ones} wrong" if self.broken else "no other is wrong"
        if self.are != "right":  # what counts as right may be wrong
            others = f"{self.broken:,} others no longer are" if self.broken else "all others still are"
        counted = f"{where} {self.mended:,} of the {self.wrong:,} wrong vectors are {self.are}, and {others}"
        if self.rest:
            return f"{counted}; all {self.vectors:,} are explained with what is left{rest}"
        left = self.wrong - self.mended
        untried = f" (not tried: {self.untried})" if self.untried else ""
        return f"{counted}; of the {left:,} that are left no change that was tried fixes more{untried}"
