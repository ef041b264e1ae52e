"""What a dissection says: the unit as a model and as text, on what it was held against the box, and what was
not decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from golden.instruction import Instruction
from golden.notebook import Shown
from golden.program.signature import Operands
from golden.program.words import is_integer, step_text


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
        order: the tree of the sum as masks showed it; empty where they showed none.
        rules: what was found and changed on the way, in order.
        known: instructions of the catalogue that answered the questions kept as the box did.
        example: of the differences, the simplest one found.
        asked: dot products that the box answered in all.
        seconds: how long it took.
    """

    name: str
    instruction: Instruction | None
    yaml: str | None
    differing: Mapping[str, tuple[int, int]]
    undecided: tuple[str, ...]
    order: str = ""
    rules: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    example: Example | None = None
    asked: int = 0
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
        """Whether the candidate answered every question as the box did."""
        return self.instruction is not None and self.compared > 0 and self.wrong == 0

    def sentence(self) -> str:
        """The outcome in a sentence or two."""
        if self.instruction is None:
            return f"{self.name} was not dissected: {'; '.join(self.undecided)}"
        count = f"{self.wrong:,} of {self.compared:,} differ"
        if not self.explains:
            return f"the nearest candidate for {self.name}: {count}"
        known = f"; {self.known[0]} answers alike" if self.known else ""
        return f"{self.name} is explained: {count}{known}"

    @property
    def report(self) -> str:
        """The outcome as Markdown."""
        return "\n".join([*self._head(), *self._counts(), *self._steps(), *self._open()]) + "\n"

    def _head(self) -> list[str]:
        order = [f"Order of the sum, as masks showed it: `{self.order}`.", ""] if self.order else []
        asked = f"The box answered {self.asked:,} dot products in {self.seconds:.1f} s."
        return [f"# {self.name}, dissected", "", f"{self.sentence()}. {asked}", "", *order]

    def _counts(self) -> list[str]:
        if not self.differing:
            return []
        rows = [f"| {kind} | {wrong:,} | {count:,} |" for kind, (wrong, count) in self.differing.items()]
        head = ["## Held against the box", "", "| Operands | Differ | Of |", "| --- | ---: | ---: |"]
        return [*head, *rows, ""]

    def _steps(self) -> list[str]:
        if self.instruction is None:
            return []
        lines = ["## What it computes", ""]
        program, operations = self.instruction.program, self.instruction.program.operations
        integer = is_integer(program, self.instruction.own_formats)
        for one in operations:
            if len(operations) > 1:
                products = f"products {', '.join(map(str, one.k_index))}; " if one.k_index else ""
                lines += [f"{one.to}, in {one.out_format.name}: {products}c is {one.seed}", ""]
            lines += [f"{index}. {step_text(step, integer)}" for index, step in enumerate(one.steps, 1)]
            lines.append("")
        if self.rules:
            lines += ["Found in this order:", "", *(f"- {rule}" for rule in self.rules), ""]
        return lines

    def _open(self) -> list[str]:
        lines = ["## Not decided", ""]
        lines += [f"- {one}" for one in self.undecided] or ["Nothing that a question asked here left open."]
        if self.example is not None:
            operands = ", ".join(
                f"{name} = {[hex(code) for code in codes.ravel().tolist()]}"
                for name, codes in self.example.operands.items()
            )
            lines += [
                "",
                f"The simplest difference found: {operands}: the box answers "
                f"{self.example.box:#x}, the candidate {self.example.candidate:#x}.",
            ]
        return lines

    def as_dict(self) -> dict[str, Any]:
        """Plain values, stable for machines."""
        return {
            "name": self.name,
            "explains": self.explains,
            "sentence": self.sentence(),
            "wrong": self.wrong,
            "compared": self.compared,
            "asked": self.asked,
            "seconds": round(self.seconds, 3),
            "order": self.order,
            "rules": list(self.rules),
            "known": list(self.known),
            "differing": {kind: list(counts) for kind, counts in self.differing.items()},
            "undecided": list(self.undecided),
            "alternatives": {key: list(values) for key, values in self.alternatives.items()},
            "example": None if self.example is None else self.example.as_dict(),
            "yaml": self.yaml,
        }
