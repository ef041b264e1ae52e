"""What a proof says, as text."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from rtl_tb.prove.proof import Proof
from rtl_tb.prove.sweep import OPEN, PROVED

_STYLE = {PROVED: "green", OPEN: "yellow"}


def print_proof(found: Proof, console: Console) -> None:
    """The verdict, what it is a verdict on, and what it rests on or what is left."""

    def say(text: str, style: str | None = None) -> None:
        console.print(text, style=style, highlight=False, soft_wrap=True)

    subject = f"{found.dut.name} against {found.dut.instruction_name}"
    say(f"[bold {_STYLE.get(found.verdict, 'red')}]{found.verdict}: {escape(subject)}[/]")
    for at, text in enumerate(found.claim):
        say(f"{'claim  ' if not at else '       '}{escape(text)}", "dim")
    if found.verdict == PROVED:
        checked = ", ".join(f"{count} by {name}" for name, count in found.lemmas.items())
        say(f"lemmas {sum(found.lemmas.values())}, each checked again: {checked}", "dim")
        for text in found.faults:
            say(f"refuted {escape(text)}, planted in the unit to try the proof", "dim")
    elif found.operands is None or found.open:
        say(f"found  {found.matched} of {found.points} registers of the specification in the unit")
        say(f"left   {escape(', '.join(found.open[:6]))}{' ...' * (len(found.open) > 6)}")
    spent = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in found.seconds.items())
    say(spent, "dim")
