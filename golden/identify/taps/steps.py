"""What the makers of taps ask of a program: its kinds of steps, and their names in words and slugs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from golden.identify.datapath.signals import (
    Tap,
)
from golden.instruction import Instruction
from golden.program.steps import (
    Additions,
    Align,
    Fma,
    Multiply,
    Round,
    Step,
    Sum,
    format_of,
)

NAMES: dict[type[Step], str] = {
    Align: "the alignment",
    Additions: "each addition",
    Fma: "each multiply-add",
    Multiply: "each multiplication",
    Round: "the final rounding",
    Sum: "the sum",
}
OTHERS = {"a": "b", "b": "a"}


def kinds_of(ins: Instruction, *wanted: type[Step]) -> list[type[Step]]:
    """Those kinds of steps that the program has."""
    steps = [step for operation in ins.program.operations for step in operation.steps]
    return [kind for kind in wanted if any(isinstance(step, kind) for step in steps)]


def rounding_kinds(ins: Instruction) -> list[type[Step]]:
    """The kinds of steps that round to a float format."""
    found = []
    for kind in kinds_of(ins, Multiply, Additions, Fma, Round):
        formats = [format_of(step) for step in ins.program.steps_of(kind)]
        if any(fmt is not None and fmt.is_float for fmt in formats):
            found.append(kind)
    return found


def in_words(kinds: Iterable[type[Step]]) -> str:
    """Them in words."""
    return " and ".join(NAMES[kind] for kind in kinds)


def in_each(kinds: list[type[Step]], maker: Callable[[type[Step]], Iterable[Tap]]) -> Iterator[Tap]:
    """The faults that a maker knows of one kind of step, for each of them; what tells the same fault in
    different steps apart is added to its name."""
    for kind in kinds:
        place = f"-in-{kind.__name__.lower()}" if len(kinds) > 1 else ""
        for tap in maker(kind):
            yield replace(tap, slug=f"{tap.slug}{place}", text=f"{NAMES[kind]} {tap.text}", of=(kind,))
