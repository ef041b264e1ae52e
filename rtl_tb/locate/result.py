"""A repair that was found: the text to insert and its place, and its effect on the vectors of a check."""

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
        file, line: its place, lines from 1; `text` is that line.
        before, after: the present and the right text.
        made_of: the line of VHDL, of which GHDL's synthesis made `text`; "" of a unit in SystemVerilog.
    """

    file: Path
    line: int
    text: str
    before: str
    after: str
    made_of: str = ""

    def phrase(self) -> str:
        """The place and the change, in one line."""
        near = os.path.relpath(self.file)
        place = self.file.name if near.startswith("..") else near
        after, before, text = (" ".join(each.split()) for each in (self.after, self.before, self.text))
        made = f", which GHDL's synthesis makes of `{self.made_of}`," if self.made_of else ""
        if not before:
            if after.startswith(","):
                return f"{place}:{self.line}: with the value `{after[1:].strip()}` added in `{text}`{made}"
            return f"{place}:{self.line}: with `{after}` added before `{text}`{made}"
        return f"{place}:{self.line}: with `{after}` for `{before}` in `{text}`{made}"


@dataclass(frozen=True)
class SingleFault:
    """The effect of one of a unit's faults by itself.

    Attributes:
        edit: the change that repairs it.
        repaired: wrong vectors that this change alone makes right: they show this fault and no other.
        broken: right vectors that it alone makes wrong: there two faults cancel each other.
        example: the smallest operands found that show this fault and no other; None: none were.
        are: what is "right", see Repair.
    """

    edit: Edit
    repaired: int
    broken: int
    example: Example | None = None
    are: str = "right"

    def as_dict(self) -> dict[str, Any]:
        """As reports hold it."""
        example = None if self.example is None else self.example.as_dict()
        counts = {"repaired": self.repaired, "broken": self.broken}
        return counts | {"text": self.phrase(), "example": example}

    def phrase(self) -> str:
        """The fault in one line."""
        where = self.edit.phrase()
        if not self.repaired:
            return (
                f"{where}; alone it makes no vector {self.are}: the other fault is in all that show this one"
            )
        ones = "one" if self.broken == 1 else "ones"
        others = f"right {ones} wrong" if self.are == "right" else "others not"
        but = f", and {self.broken:,} {others}" if self.broken else ""
        return f"{where}; alone it makes {self.repaired:,} of the wrong vectors {self.are}{but}"


@dataclass(frozen=True)
class RemainingFault:
    """A fault that remains after a change of the text, and that a hypothesis about the arithmetic names.

    Attributes:
        text: what the unit computes instead.
        explains: vectors still wrong after the change that only this fault explains.
        example: the smallest operands found that show it with the change as without; None: none were.
    """

    text: str
    explains: int
    example: Example | None = None

    def as_dict(self) -> dict[str, Any]:
        """As reports hold it."""
        example = None if self.example is None else self.example.as_dict()
        text = f"in addition: {self.text}; explains {self.explains:,} of the vectors that are left"
        return {"repaired": self.explains, "broken": 0, "text": text, "example": example}


@dataclass(frozen=True)
class Repair:
    """Changes that belong together, and their effect on the vectors of a check.

    Attributes:
        edits: one, or two if one alone does not repair everything.
        repaired: wrong vectors that they make right, of `wrong`.
        broken: right vectors that they make wrong.
        vectors: the vectors that were run.
        faults: each of several edits by itself, and one that leaves wrong vectors; the ones that repair most
            come first.
        rest: the hypotheses, if they explain all that is left.
        are: what the vectors have to be: less than right, if a unit has two faults and the changes are only
            for one.
        further, further_wrong: other vectors that were run under traffic, and how many of them are wrong.
        untried: the changes that could not be tried, and why, if others repair a part.
    """

    edits: tuple[Edit, ...]
    repaired: int
    wrong: int
    broken: int
    vectors: int
    faults: tuple[SingleFault, ...] = ()
    rest: tuple[RemainingFault, ...] = ()
    are: str = "right"
    untried: str = ""
    rivals: int = 0
    further: int = 0
    further_wrong: int = 0

    def held_to(self, are: str) -> Repair:
        """The same where less than `right` counts, also of each fault."""
        faults = tuple(replace(fault, are=are) for fault in self.faults)
        return replace(self, are=are, faults=faults)

    @property
    def explained(self) -> bool:
        """Whether every vector is what it has to be (`are`) with the changes, or is explained by `rest`."""
        return self.whole or bool(self.rest)

    @property
    def whole(self) -> bool:
        """Whether every vector is what it has to be (`are`) with the changes."""
        return self.repaired == self.wrong and not self.broken

    @property
    def sure(self) -> bool:
        """Whether it is whole, and other vectors under traffic are right with it, too."""
        return self.whole and not self.further_wrong

    @property
    def by_one(self) -> bool:
        """Whether one change makes every vector what it has to be (`are`)."""
        return self.whole and len(self.edits) == 1

    def as_dict(self) -> dict[str, Any]:
        """As reports hold it."""
        counts = {name: getattr(self, name) for name in ("wrong", "broken", "vectors", "whole", "are")}
        counts = {"repaired": self.repaired} | counts
        edits = [asdict(edit) | {"file": str(edit.file)} for edit in self.edits]
        faults = [*(fault.as_dict() for fault in self.faults), *(one.as_dict() for one in self.rest)]
        named = {"sentence": self.sentence(), "summary": self.summary()}
        return counts | {"edits": edits, "faults": faults} | named

    def sentence(self) -> str:
        """One line for the reader."""
        what = " and ".join(one.text for one in self.rest)
        return self._counted(" and ".join(edit.phrase() for edit in self.edits), f": {what}" if what else "")

    def summary(self) -> str:
        """The same as the head of a list with each fault."""
        return self._counted("these changes together:" if len(self.edits) > 1 else "this change:", "")

    def _counted(self, where: str, rest: str) -> str:
        if self.whole:
            said = f"{where} all {self.vectors:,} vectors are {self.are}"
            if self.further_wrong:
                return (
                    f"{said}, but {self.further_wrong:,} of {self.further:,} others, with idle cycles, "
                    "backpressure and resets, are wrong: another line may be the cause"
                )
            ones = "line is" if self.rivals == 1 else "lines are"
            return f"{said} ({self.rivals} other {ones} equally consistent)" if self.rivals else said
        ones = "one is" if self.broken == 1 else "ones are"
        others = f"{self.broken:,} right {ones} wrong" if self.broken else "no other is wrong"
        if self.are != "right":  # what counts as right may be wrong
            others = f"{self.broken:,} others no longer are" if self.broken else "all others still are"
        counted = (
            f"{where} {self.repaired:,} of the {self.wrong:,} wrong vectors are {self.are}, and {others}"
        )
        if self.rest:
            return f"{counted}; all {self.vectors:,} are explained with what is left{rest}"
        left = self.wrong - self.repaired
        untried = f" (not tried: {self.untried})" if self.untried else ""
        if not left:
            return f"{counted}; no change that was tried makes all {self.are}{untried}"
        return f"{counted}; of the {left:,} that are left no change that was tried fixes more{untried}"
