"""What a proof says, as text."""

from __future__ import annotations

from rich.console import Console

from golden.proof.report import print_outcome
from rtl_tb.prove.proof import Proof


def print_proof(found: Proof, console: Console) -> None:
    """The verdict, what it is a verdict on, and what it rests on or what is left."""
    print_outcome(
        found.outcome, f"{found.dut.name} against {found.dut.instruction_name}", found.claim, console
    )
