"""What a dissection says: the unit as a model and as text, on what it was held against the box, and what was
not decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from golden import yamlfile
from golden.catalog.unit_files import build_instruction
from golden.catalog.unit_text import unit_text
from golden.identify.blackbox.evidence import Property
from golden.identify.blackbox.laws import Law
from golden.identify.blackbox.meetings import Meeting
from golden.identify.blackbox.taken import Forced
from golden.instruction import Instruction
from golden.notebook import Shown
from golden.program.modes import Modes, mode_text
from golden.program.signature import Operands

if TYPE_CHECKING:
    from golden.identify.blackbox.causes import Changed

IN_TURNS = "modes in turns"
"""The kind of questions that ask a unit in another mode from one dot product to the next."""


@dataclass(frozen=True)
class Example:
    """One question that the candidate answers otherwise than the box."""

    operands: Operands
    box: int
    candidate: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        operands = {name: codes.tolist() for name, codes in self.operands.items()}
        return {"operands": operands, "box": self.box, "candidate": self.candidate}


@dataclass(frozen=True)
class Rival:
    """A unit that answers a whole recording as the candidate does.

    `operands`: a dot product that would tell the two apart, with both answers; None where `tried` ones showed
    no difference.
    """

    name: str
    tried: int
    operands: Operands | None = None
    candidate: int = 0
    rival: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        operands = None if self.operands is None else {n: c.tolist() for n, c in self.operands.items()}
        told = {"operands": operands, "candidate": self.candidate, "rival": self.rival}
        return {"name": self.name, "tried": self.tried, **(told if operands is not None else {})}


@dataclass(frozen=True, repr=False)
class Found(Shown):
    """The outcome of a dissection.

    Attributes:
        name: the box's.
        instruction: the candidate that explains most; None where not even a first one could be made.
        yaml: its text, which `golden.load_instruction` reads; of a sparse box that of the dense unit of the
            products that the metadata select. None where there is no candidate.
        differing: by kind of operands, how many of how many dot products the box answers otherwise.
        undecided: what was not told apart and why, a sentence each.
        order: the tree of the sum as masks showed it; empty where they showed none. `meetings`: what
            shows its nodes.
        rules: what was found and changed on the way, in order. `forced`: the counterexamples that forced the
            changes; of a dissection that was continued, those since then.
        not_read: bits of operands that no answer depends on, a sentence each. Of low bits of all elements the
            operand's format has them ignored, and all questions carried others there.
        laws: of a box that no candidate explains, the laws of a dot product that it breaks.
        known: instructions of the catalogue that answered the questions kept as the box did.
        near: the instruction of the catalogue that a found unit differs from least, and in which keys; None
            where one answers alike, or none is near.
        example: of the differences, the simplest one found.
        fresh: of the dot products compared, those that were drawn to check the candidate after it was made;
            it was fitted to the others, or they show its rules.
        properties: every key of a candidate that explains all answers, with the questions that show it.
        recorded: whether the box was a recording, of which nothing could be asked; of that `fresh` counts
            what the search did not use.
        rivals: of a recording, other units that explain it, with operands that would tell.
        unwritten: why there is no `yaml` of a candidate.
        changed: a question that had two answers, and why; None where none was seen.
        modes: of a unit with modes, what was found of each, by the code of `mode`; everything else is of all
            of them together, `rules`, `order` and `properties` stand there alone.
        asked: dot products that the box answered in all.
        seconds: how long it took.
    """

    name: str
    instruction: Instruction | None
    yaml: str | None
    differing: Mapping[str, tuple[int, int]]
    undecided: tuple[str, ...]
    order: str = ""
    meetings: tuple[Meeting, ...] = ()
    rules: tuple[str, ...] = ()
    forced: tuple[Forced, ...] = ()
    not_read: tuple[str, ...] = ()
    laws: tuple[Law, ...] = ()
    known: tuple[str, ...] = ()
    example: Example | None = None
    asked: int = 0
    fresh: int = 0
    properties: tuple[Property, ...] = ()
    near: tuple[str, tuple[str, ...]] | None = None
    recorded: bool = False
    rivals: tuple[Rival, ...] = ()
    unwritten: str = ""
    changed: Changed | None = None
    modes: Mapping[int, Found] = field(default_factory=dict)
    seconds: float = 0.0
    alternatives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values of keys that no question told from those of the candidate, by key."""

    def __repr__(self) -> str:
        return f"<Found: {self.sentence()}>"

    @property
    def wrong(self) -> int:
        """Dot products that the candidate gets wrong."""
        return sum(wrong for wrong, _ in self.differing.values())

    @property
    def compared(self) -> int:
        """Dot products on which the candidate was held against the box."""
        return sum(count for _, count in self.differing.values())

    @property
    def explains(self) -> bool:
        """Whether the candidate answered every question as the box did, among them questions that it was not
        made from."""
        whole = self.instruction is not None and self.fresh > 0 and self.wrong == 0 and self.changed is None
        if not self.modes:
            return whole
        return whole and IN_TURNS in self.differing and all(one.explains for one in self.modes.values())

    def sentence(self) -> str:
        """The outcome in a sentence or two."""
        if self.instruction is None:
            return f"{self.name} was not dissected: {'; '.join(self.undecided)}"
        count = f"{self.wrong:,} of {self.compared:,} differ"
        if self.changed is not None:
            return f"{self.changed.cause}; the nearest candidate for {self.name}: {count}"
        if self.wrong:
            return f"the nearest candidate for {self.name}: {count}"
        if not self.explains:
            made = "fits the answers that it was made from, and was not checked"
            return f"a candidate for {self.name} {made}: {count}"
        known = f"; {self.known[0]} gave the same answers to the questions kept" if self.known else ""
        if self.recorded:
            others = f"; so do {len(self.rivals)} others" if self.rivals else ""
            held = f"{self.fresh:,} of them held back from the search"
            return f"a candidate explains {self.name}: {count}, {held}{others}"
        checked = f", {self.fresh:,} of them asked after the candidate was made"
        return f"{self.name} is explained: {count}{checked}{known}"

    @property
    def report(self) -> str:
        """The outcome as Markdown."""
        from golden.identify.blackbox.report import markdown  # it reads this class

        return markdown(self)

    @property
    def missing(self) -> str:
        """Why `files` lacks the unit, or one of its modes; empty where it does not."""
        if self.yaml is not None or not self.modes:
            return "" if self.yaml is not None else self.unwritten
        lacking = {code: one for code, one in self.modes.items() if one.yaml is None}
        return "; ".join(
            f"mode {code:#x}: {one.unwritten or one.sentence()}" for code, one in lacking.items()
        )

    def files(self, out: Path) -> dict[Path, str]:
        """The unit's text as a file, or a file for each mode where no one text says them all."""
        if self.yaml is not None or not self.modes:
            return {} if self.yaml is None else {out: self.yaml}
        named = {out.with_suffix(f".mode_{code:#x}{out.suffix}"): one for code, one in self.modes.items()}
        return {file: one.yaml for file, one in named.items() if one.yaml is not None}

    def as_dict(self) -> dict[str, Any]:
        """Plain values, stable for machines."""
        return {
            "name": self.name,
            "explains": self.explains,
            "sentence": self.sentence(),
            "wrong": self.wrong,
            "compared": self.compared,
            "fresh": self.fresh,
            "asked": self.asked,
            "seconds": round(self.seconds, 3),
            "order": self.order,
            "order_shown": [one.as_dict() for one in self.meetings],
            "rules": list(self.rules),
            "forced": [one.as_dict() for one in self.forced],
            "not_read": list(self.not_read),
            "laws": [one.as_dict() for one in self.laws],
            "known": list(self.known),
            "near": None if self.near is None else {"name": self.near[0], "but": list(self.near[1])},
            "differing": {kind: list(counts) for kind, counts in self.differing.items()},
            "undecided": list(self.undecided),
            "recorded": self.recorded,
            "rivals": [one.as_dict() for one in self.rivals],
            "changed": None if self.changed is None else self.changed.as_dict(),
            "properties": [one.as_dict() for one in self.properties],
            "alternatives": {key: list(values) for key, values in self.alternatives.items()},
            "modes": {f"{code:#x}": one.as_dict() for code, one in self.modes.items()},
            "example": None if self.example is None else self.example.as_dict(),
            "yaml": self.yaml,
        }


def of_modes(name: str, modes: Modes, found: Mapping[int, Found]) -> Found:
    """What was found of each mode of a unit, as one: its text is that of a unit with modes, where the values
    of their fields say all that differs."""
    differing: dict[str, tuple[int, int]] = {}
    for one in found.values():
        for kind, (wrong, count) in one.differing.items():
            before = differing.get(kind, (0, 0))
            differing[kind] = before[0] + wrong, before[1] + count
    words = {code: mode_text(values) for code, values in modes.codes()}
    units = {code: unit for code, one in found.items() if (unit := _as_read(one)) is not None}
    whole = None
    if len(units) == len(found):
        own = {code: replace(unit, mode_code=code) for code, unit in units.items()}
        whole = replace(next(iter(own.values())), modes=modes, mode_units=own, mode_code=None)
    return Found(
        name,
        whole,
        None if whole is None else unit_text(whole, "dissected", f"dissected: {name}", editor=False),
        differing,
        tuple(
            f"{words[code]}: {said}"
            for code, one in found.items()
            if whole is not None or one.instruction is None  # what was not found says why
            for said in one.undecided
        ),
        changed=next((one.changed for one in found.values() if one.changed is not None), None),
        modes=dict(found),
        asked=sum(one.asked for one in found.values()),
        fresh=sum(one.fresh for one in found.values()),
        seconds=sum(one.seconds for one in found.values()),
    )


def _as_read(one: Found) -> Instruction | None:
    """The unit as its text says it, where that says all of it: texts of modes are held against each other."""
    if one.instruction is None or one.instruction.sparse or one.yaml is None:
        return one.instruction
    return build_instruction(yamlfile.parse(one.yaml))
