"""The result of a dissection: the unit as a model and as text, its comparison with the box, and what was not
decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from golden import yamlfile
from golden.catalog.unit_files import build_instruction
from golden.catalog.unit_text import unit_text
from golden.identify.blackbox.evidence import Forced, Property, Witness
from golden.identify.blackbox.unexplained import Law
from golden.identify.sample import listed
from golden.model.instruction import Instruction
from golden.notebook import NotebookHtml
from golden.program.modes import Modes
from golden.program.signature import Operands

if TYPE_CHECKING:
    from golden.identify.blackbox.repeatability import Changed
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from golden.explain.numbers import hex_text
from golden.files import escape
from golden.identify.blackbox.naming import differences
from golden.identify.blackbox.sum_order import KIND as MASKS
from golden.number.formats import Format
from golden.program.words import is_integer, step_text

IN_TURNS = "modes in turns"
"""The kind of queries that switch the mode from one dot product to the next."""


@dataclass(frozen=True)
class Example:
    """One question that the candidate and the box answer differently."""

    operands: Operands
    box: int
    candidate: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"operands": listed(self.operands), "box": self.box, "candidate": self.candidate}


_Shows = TypeVar("_Shows", Example, Law, Forced, Witness)
"""What shows a question."""


@dataclass(frozen=True)
class Rival:
    """A unit that answers a whole recording as the candidate does.

    `operands`: a dot product that distinguishes the two, with both answers; None if `tried` ones showed no
    difference.
    """

    name: str
    tried: int
    operands: Operands | None = None
    candidate: int = 0
    rival: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        named = {"operands": listed(self.operands), "candidate": self.candidate, "rival": self.rival}
        return {"name": self.name, "tried": self.tried, **(named if self.operands is not None else {})}


@dataclass(frozen=True, repr=False)
class Found(NotebookHtml):
    """The outcome of a dissection.

    Attributes:
        name: the box's.
        instruction: the candidate that explains most; None if not even a first one could be made.
        yaml: its text, which `golden.load_instruction` reads; for a sparse box that of the dense unit of the
            products that the metadata select. None without a candidate.
        differing: by kind of operands, wrong and all dot products that were compared with the box.
        undecided: what was not distinguished and why, a sentence each.
        order: the tree of the sum according to the masks; empty if they showed none.
        rules: what was found and changed, in order. `forced`: the counterexamples that forced the changes;
            after a resume only the later ones.
        not_read: bits of operands that no answer depends on, a sentence each. Low bits of all elements become
            ignored bits of the operand's format, and all questions carried other values there.
        laws: for a box that no candidate explains, the laws of a dot product that it breaks.
        known: instructions of the catalogue that answer the recorded questions as the box did.
        near: the instruction of the catalogue nearest to a found unit, and the keys in which they differ;
            None if one answers alike, or none is near.
        example: the simplest difference that was found.
        fresh: of the dot products compared, those drawn to check the finished candidate; it was fitted to the
            others, or they are witnesses of its keys.
        properties: every key of a candidate that explains all answers, with its witnesses.
        recorded: whether the box was a recording, which cannot be queried; then `fresh` counts the dot
            products that the search did not use.
        rivals: other units that explain a recording, with operands that distinguish them.
        unwritten: why a candidate has no `yaml`.
        changed: a question that had two answers, and the cause; None if none was seen.
        modes: the result for each mode of a unit with modes, by the code of `mode`; the other attributes
            cover all modes together, except `rules`, `order` and `properties`, which only the modes have.
        asked: all dot products that the box answered.
        seconds: the time it took. waited: seconds of these in which it had no processor.
    """

    name: str
    instruction: Instruction | None
    yaml: str | None
    differing: Mapping[str, tuple[int, int]]
    undecided: tuple[str, ...]
    order: str = ""
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
    waited: float = 0.0
    alternatives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values of keys that no question distinguished from those of the candidate, by key."""

    def __repr__(self) -> str:
        return f"<Found: {self.sentence()}>"

    def without_operands(self, unread: Sequence[str]) -> Found:
        """The same with questions that do not have these operands, which the box does not read."""

        def own(shown: _Shows) -> _Shows:
            operands = shown.operands or {}
            return replace(shown, operands={n: codes for n, codes in operands.items() if n not in unread})

        return replace(
            self,
            example=None if self.example is None else own(self.example),
            laws=tuple(one if one.operands is None else own(one) for one in self.laws),
            forced=tuple(map(own, self.forced)),
            properties=tuple(
                replace(one, witnesses=tuple(map(own, one.witnesses))) for one in self.properties
            ),
        )

    @property
    def wrong(self) -> int:
        """Dot products that the candidate gets wrong."""
        return sum(wrong for wrong, _ in self.differing.values())

    @property
    def compared(self) -> int:
        """Dot products on which the candidate was compared with the box."""
        return sum(count for _, count in self.differing.values())

    @property
    def explains(self) -> bool:
        """Whether the candidate answered every question as the box did, including questions that it was not
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
        known = f"; {self.known[0]} gave the same answers to all recorded questions" if self.known else ""
        if self.recorded:
            others = f"; so do {len(self.rivals)} others" if self.rivals else ""
            held = f"{self.fresh:,} of them held back from the search"
            return f"a candidate explains {self.name}: {count}, {held}{others}"
        checked = f", {self.fresh:,} of them queried after the candidate was made"
        return f"{self.name} is explained: {count}{checked}{known}"

    @property
    def report(self) -> str:
        """The outcome as Markdown."""
        from golden.identify.blackbox.report import markdown  # it reads this class

        return markdown(self)

    @property
    def missing(self) -> str:
        """Why `files` lacks the unit, or one of its modes; empty if it does not."""
        if self.yaml is not None or not self.modes:
            return "" if self.yaml is not None else self.unwritten
        lacking = {code: one for code, one in self.modes.items() if one.yaml is None}
        return "; ".join(
            f"mode {code:#x}: {one.unwritten or one.sentence()}" for code, one in lacking.items()
        )

    def files(self, out: Path) -> dict[Path, str]:
        """The unit's text as a file, or one file for each mode if no single text describes them all."""
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
    """The results of all modes of a unit as one: its text is that of a unit with modes, if the values of
    their fields express all differences."""
    differing: dict[str, tuple[int, int]] = {}
    for one in found.values():
        for kind, (wrong, count) in one.differing.items():
            before = differing.get(kind, (0, 0))
            differing[kind] = before[0] + wrong, before[1] + count
    words = modes.texts()
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
            if whole is not None or one.instruction is None  # an unknown mode gives its reasons
            for said in one.undecided
        ),
        changed=next((one.changed for one in found.values() if one.changed is not None), None),
        modes=dict(found),
        asked=sum(one.asked for one in found.values()),
        fresh=sum(one.fresh for one in found.values()),
        seconds=sum(one.seconds for one in found.values()),
        waited=sum(one.waited for one in found.values()),
    )


def _as_read(one: Found) -> Instruction | None:
    """The unit as its text describes it, if that is complete: the texts of modes are compared with each
    other."""
    if one.instruction is None or one.instruction.sparse or one.yaml is None:
        return one.instruction
    return build_instruction(yamlfile.parse(one.yaml))


STEPS = "## What it computes"
"""The heading above which a picture can stand."""


def markdown(found: Found) -> str:
    """The whole report."""
    if found.modes:
        return "\n".join((*_head(found), *_modes(found)))
    parts = (_head(found), _steps(found), _shown(found), _rivals(found), _open(found), _counts(found))
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(found: Found) -> Iterator[str]:
    said = escape.markdown(found.sentence())
    answered = f"The box answered {found.asked:,} dot products in {found.seconds:.1f} s."
    if found.waited > found.seconds / 2 and not found.explains:
        answered += (
            f" For {found.waited:.1f} s of these it waited for a processor: with more seconds, or on a less "
            "loaded machine, it may find more."
        )
    if found.recorded:
        answered = "It is a recording: it could not be queried."
    yield from (f"# {escape.markdown(found.name)}, dissected", "", f"{said}. {answered}", "")
    if found.near is not None:
        name, keys = found.near
        but = f" but for {escape.markdown('; '.join(keys))}" if keys else " in every key that was decided"
        yield from (f"It is {escape.markdown(name)}{but}.", "")
    for law in found.laws:
        yield from (f"**{escape.markdown(law.text[0].upper() + law.text[1:])}.** {_shows(law, found)}", "")
    for one in found.not_read:
        yield from (f"{escape.markdown(one[0].upper() + one[1:])}.", "")
    if found.order:
        yield from _order(found)


def _shows(law: Law, found: Found) -> str:
    """The question that refutes a law."""
    if law.operands is None or found.instruction is None:
        return ""
    formats = found.instruction.formats
    example = f"{operands_text(law.operands, formats)}: the box answers {hex_text(formats['d'], law.box)}"
    return escape.markdown(f"For example {example}.")


def _order(found: Found) -> Iterator[str]:
    """The tree of the sum."""
    yield from (f"Order of the sum, as masks showed it: `{found.order}`.", "")
    wrong, count = found.differing.get(MASKS, (0, 0))
    if wrong:
        said = f"it answers {wrong:,} of {count:,} masks differently"
        yield from (f"**The candidate does not add in this order:** {said}.", "")


def _modes(found: Found) -> Iterator[str]:
    """A row for each mode with its differences from the first; then the result of each."""
    first = next(iter(found.modes.values()))
    yield from ("## Modes", "")
    rows = (
        (f"{code:#x}", one.name, one.sentence(), _differences(one, first))
        for code, one in found.modes.items()
    )
    yield from _table(("mode", "What it is called", "Outcome", "What differs from the first"), rows)
    if IN_TURNS in found.differing:
        wrong, count = found.differing[IN_TURNS]
        said = "With another mode from one dot product to the next"
        yield from (f"{said}: {wrong:,} of {count:,} differ.", "")
    elif found.instruction is not None:
        yield from ("No query followed one in another mode: the time ended before.", "")
    for code, one in found.modes.items():
        yield from (f"## Mode {code:#x}", "")
        yield re.sub(r"^#", "##", one.report, flags=re.MULTILINE)


def _differences(one: Found, first: Found) -> str:
    if one.instruction is None or first.instruction is None:
        return "not known"
    if one is first:
        return "it is the first"
    formats = one.instruction.formats.items()
    others = [f"{name} is {fmt.name}" for name, fmt in formats if fmt != first.instruction.formats[name]]
    alike = {**first.alternatives, **one.alternatives}
    said = differences(one.instruction.stateless, first.instruction.stateless, alike)
    return "; ".join(others + (["it adds in other operations"] if said is None else said)) or "nothing"


def _counts(found: Found) -> Iterator[str]:
    if found.differing:
        yield from ("## Compared with the box", "")
        yield from _table(
            ("Operands", "Differ", "Of"),
            ((kind, f"{wrong:,}", f"{count:,}") for kind, (wrong, count) in found.differing.items()),
            numbers=2,
        )


def _steps(found: Found) -> Iterator[str]:
    if found.instruction is None:
        return
    yield from (STEPS, "")
    program = found.instruction.program
    integer = is_integer(program, found.instruction.own_formats)
    for one in program.operations:
        if len(program.operations) > 1:
            products = f"products {', '.join(map(str, one.k_index))}; " if one.k_index else ""
            yield from (f"{one.to}, in {one.out_format.name}: {products}c is {one.seed}", "")
        yield from (f"{index}. {step_text(step, integer)}" for index, step in enumerate(one.steps, 1))
        yield ""
    if found.rules:
        yield from ("Found in this order:", "", *_rules(found, found.instruction.formats), "")


# What shows each rule ---------------------------------------------------------------------------------------


def _shown(found: Found) -> Iterator[str]:
    """The keys of the candidate, then the steps that could be added to it."""
    if not found.properties or found.instruction is None:
        return
    formats = found.instruction.formats
    # Keys that the unit has, then steps that could be inserted.
    own = [one for one in found.properties if one.value]
    yield from ("## What shows it", "")
    yield (
        "Each row is one key of one step. A unit that differs in it alone would have answered differently: "
        "*ruled out* counts these other values, *by* is the number of questions that refute the one hardest "
        "to exclude, and the question shown is a simple one of them. If a value is open, every recorded "
        "question has the same answer with it."
    )
    yield ""
    yield from _table(
        ("Rule", "Value", "Ruled out", "By", "Open", "One such question"),
        ((one.key, _value(one.key, one.value), *_refuted(one, formats)) for one in own),
    )
    absent = [one for one in found.properties if not one.value]
    if absent:
        yield from ("What else a unit could do, and whether this one does:", "")
        yield from _table(
            ("Change", "Ruled out", "By", "Open", "One such question"),
            ((one.key, *_refuted(one, formats)) for one in absent),
        )


def _refuted(one: Property, formats: Mapping[str, Format]) -> tuple[str, str, str, str]:
    """How many values are ruled out, by how many questions, which are not, and a question."""
    counts = [one.queries] if one.said else [each.questions for each in one.witnesses]
    by = f"{min(counts):,}" if counts else ""
    values = ", ".join(shortened([_value(one.key, value) for value in one.undecided]))
    return f"{one.ruled_out}", by, values, _question(one, formats)


def _value(key: str, value: str) -> str:
    """A value of a key; words of NaNs in hex."""
    return f"{int(value):#x}" if key.endswith("nan") and value.isdigit() else value


def _rule(text: str) -> str:
    """A change, "key = value", as Markdown."""
    key, equals, value = text.partition(" = ")
    return escape.markdown(f"{key}{equals}{_value(key, value)}")


def _rules(found: Found, formats: Mapping[str, Format]) -> Iterator[str]:
    """The skeleton, then each change with the counterexample that forced it."""
    by_place = {one.place: one for one in found.forced}
    for place, rule in enumerate(found.rules, -1):  # the skeleton is no change
        yield f"- {_rule(rule)}{_why(by_place[place], formats) if place in by_place else ''}"


def _why(one: Forced, formats: Mapping[str, Format]) -> str:
    """The value that was wrong, and the question that showed it."""
    d, old = formats["d"], _value(one.rule.partition(" = ")[0], one.old)
    instead = f"instead of {old}" if old else "put in"
    answers = f"the box answers {hex_text(d, one.box)}, the candidate before {hex_text(d, one.before)}"
    more = f"; {one.questions:,} questions say so" if one.questions > 1 else ""
    return " " + escape.markdown(f"{instead}: {operands_text(one.operands, formats)}: {answers}{more}")


def shortened(values: Sequence[str]) -> Sequence[str]:
    """Values of a key; of many the first and the last."""
    # A line shows this many values in full.
    most = 6
    return values if len(values) <= most else (*values[:3], "...", values[-1])


def _question(one: Property, formats: Mapping[str, Format]) -> str:
    """The first witness with both answers, in a line."""
    if not one.witnesses:
        return one.said
    d, first = formats["d"], one.witnesses[0]
    value = _value(one.key, first.value)
    answers = f"the box answers {hex_text(d, first.box)}, with {value} it would be {hex_text(d, first.other)}"
    return f"{operands_text(first.operands, formats)}: {answers}"


def operands_text(operands: Operands, formats: Mapping[str, Format]) -> str:
    """The nonzero operands of one dot product: "a[0] = 0x3c00, c = 0x40000000"."""
    words, most = [], 6  # elements of one operand
    for name, codes in operands.items():
        fmt, flat = formats.get(name), np.ravel(codes).tolist()
        some = [(place, code) for place, code in enumerate(flat) if code]
        for place, code in some[:most]:
            at = f"{name}[{place}]" if np.ndim(codes) else name
            words.append(f"{at} = {hex(code) if fmt is None else hex_text(fmt, code)}")
        if len(some) > most:
            words.append(f"{len(some) - most} more of {name}")
    return ", ".join(words) or "all zero"


# What a recording leaves open ------------------------------------------------------------------------------


def _rivals(found: Found) -> Iterator[str]:
    """Other units that explain the recording, and operands that distinguish them."""
    if not found.rivals or found.instruction is None:
        return
    formats = found.instruction.formats
    yield from ("## What else explains the recording", "")
    yield (
        "Each answers every recorded dot product as the candidate does. Run the operands on the unit to "
        "decide which it is."
    )
    yield ""
    yield from _table(
        ("Unit", "Distinguishing operands", "The candidate", "This one"),
        (_rival(one, formats) for one in found.rivals),
    )


def _rival(one: Rival, formats: Mapping[str, Format]) -> tuple[str, ...]:
    if one.operands is None:
        return one.name, f"none among {one.tried:,} that were tried", "", ""
    answers = (hex_text(formats["d"], code) for code in (one.candidate, one.rival))
    return one.name, operands_text(one.operands, formats), *answers


# The end ----------------------------------------------------------------------------------------------------


def _open(found: Found) -> Iterator[str]:
    yield from ("## Not decided", "")
    yield from (f"- {escape.markdown(one)}" for one in found.undecided)
    if not found.undecided:
        yield "The queries of this dissection left nothing open."
    same = [one for one in found.properties if one.same]
    if same:
        count, keys = sum(len(one.same) for one in same), "; ".join(one.key for one in same)
        said = f"{count} other values are proved to give the same unit for all operands: {keys}."
        yield from ("", escape.markdown(said))
    if found.example is not None:
        operands = ", ".join(
            f"{name} = {[hex(code) for code in codes.ravel().tolist()]}"
            for name, codes in found.example.operands.items()
        )
        yield from (
            "",
            f"The simplest difference found: {operands}: the box answers {found.example.box:#x}, the "
            f"candidate {found.example.candidate:#x}.",
        )
    yield ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0) -> Iterator[str]:
    """A table whose last `numbers` columns hold numbers."""
    rules = ["---"] * (len(head) - numbers) + ["---:"] * numbers
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join(rules)} |"
    for row in rows:
        yield f"| {' | '.join(escape.markdown(cell) for cell in row)} |"
    yield ""
