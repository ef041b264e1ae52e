"""What a verdict says, as text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from golden.proof.sweep import OPEN, PROVED
from golden.proof.verdict import Outcome

_STYLE = {PROVED: "green", OPEN: "yellow"}


def print_outcome(found: Outcome, subject: str, claim: Sequence[str], console: Console) -> None:
    """The verdict, what it is a verdict on, and what it rests on or what is left."""

    def say(text: str, style: str | None = None) -> None:
        console.print(text, style=style, highlight=False, soft_wrap=True)

    say(f"[bold {_STYLE.get(found.verdict, 'red')}]{found.verdict}: {escape(subject)}[/]")
    for at, text in enumerate(claim):
        say(f"{'claim  ' if not at else '       '}{escape(text)}", "dim")
    # Registers that are left, in a line.
    most = 6
    if found.verdict == PROVED:
        checked = ", ".join(f"{count} by {name}" for name, count in found.lemmas.items())
        said = f"each checked again: {checked}" if checked else "both sides are one circuit"
        if found.exhausted:
            say(f"by exhaustion: all {found.exhausted:,} operands computed, and again by {found.simulated}")
        else:
            say(f"lemmas {sum(found.lemmas.values())}, {said}", "dim")
        for text in found.faults:
            say(f"refuted {escape(text)}, planted in the unit to try the proof", "dim")
        for text in found.changes:
            say(f"refuted {escape(text)}, changed in the specification, as the models confirm", "dim")
        for text in found.unsettled:
            say(f"open    {escape(text)}, planted: not decided in time, replaced by another one", "dim")
    elif found.open:
        say(f"found  {found.matched} of {found.points} registers of the specification in the unit")
        shown = [*found.open[:most], *(["..."] if len(found.open) > most else []), *found.open[most:][-1:]]
        say(f"left   {escape(', '.join(shown))}")
    spent = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in found.seconds.items())
    say(spent, "dim")
