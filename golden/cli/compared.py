"""The terminal picture of a comparison of two instructions.

It stands apart from `golden.cli.render`, since `show` needs none of the search for differences.
"""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from golden.explain.terminal import TEXT_WIDTH, PlainConsole, code_text, indented, print_trace, table
from golden.explain.trace import describe_code, float_text
from golden.identify.comparing import CLASSES, DIFFERENCES, Comparison, Example
from golden.model.instruction import Instruction
from golden.number.formats import Kind
from golden.program.flags import flags_text
from golden.proof.report import print_outcome
from golden.proof.sweep import OPEN, PROVED, REFUTED

_PROOFS = {
    PROVED: "equal for all operands",
    REFUTED: "not equal",
    OPEN: "neither proved equal nor refuted in the time given",
}


def print_comparison(result: Comparison[Instruction], traces: bool) -> None:
    """Counts by stimulus kind, and the shortest example."""
    console = PlainConsole()
    x, y = result.first, result.second
    console.print(Text.assemble("A  ", (x.architecture, "cyan"), "  ", (x.name, "bold")))
    console.print(Text.assemble("B  ", (y.architecture, "cyan"), "  ", (y.name, "bold")))
    console.print()
    console.print(indented(_counts(result)))
    console.print()
    if result.left_out:
        console.print(result.left_out, highlight=False)
    if result.proof is not None:
        print_outcome(
            result.proof.outcome, _PROOFS[result.proof.outcome.verdict], result.proof.claim, console
        )
    if result.example is None:
        proof = "; not a proof that the two are equal" * (result.proof is None)
        console.print(
            f"[bold]no difference[/] in {result.trials:,} dot products (seed {result.seed}){proof}",
            highlight=False,
        )
        return
    payloads = f", {result.nan_payloads:,} NaN payloads" if result.nan_payloads else ""
    payloads += f", {result.flags_alone:,} in status flags alone" if result.flags_alone else ""
    console.print(
        f"[bold]{result.numeric:,} of {result.trials:,}[/] dot products answer differently{payloads}. "
        "The shortest example found:",
        highlight=False,
    )
    console.print(indented(_example(result.example)))
    if traces:
        for trace in result.example.traces:
            console.print(Rule(style="dim"), width=min(console.width, TEXT_WIDTH))
            print_trace(trace)
    else:
        console.print("\n[dim]--trace explains both answers step by step[/]")


def _counts(result: Comparison[Any]) -> Table:
    names = DIFFERENCES if result.flags else CLASSES
    heads = [name.replace("_", " ") for name in names]
    rows = table("operands|", "tried>", *(f"{head}>" for head in heads), going=("tried", *heads[::-1]))
    for count in result.counts:
        cells = [
            Text(f"{count.differences[name]:,}", style="bold" if count.differences[name] else "dim")
            for name in names
        ]
        rows.add_row(count.kind, f"{count.trials:,}", *cells)
    return rows


def _example(example: Example) -> Group:
    trace = min(example.traces, key=lambda one: one.instruction.k)
    formats = trace.instruction.formats
    shown = table("", "a|", "value|", "b|", "value|", going=("value",))
    for k, (a, b) in enumerate(zip(trace.a, trace.b, strict=True)):
        if formats["a"].decode(a).kind != Kind.ZERO or formats["b"].decode(b).kind != Kind.ZERO:
            absent = "b" in trace.instruction.absent
            more_cells = () if absent else (code_text(b, formats["b"]), describe_code(formats["b"], b))
            shown.add_row(f"k = {k}", code_text(a, formats["a"]), describe_code(formats["a"], a), *more_cells)
    if "c" not in trace.instruction.absent:
        shown.add_row("c", code_text(trace.c, formats["c"]), describe_code(formats["c"], trace.c))
    flagged = ["flags"] * (example.flags is not None)
    answers = table("", "architecture|", "d|", "value|", "error|", *flagged, going=("value", "error"))
    words = example.flags or (0, 0)
    for label, side, code, word in zip("AB", example.traces, (example.x, example.y), words, strict=True):
        fmt, error = side.instruction.formats["d"], side.error_ulp
        flags = () if example.flags is None else (flags_text(side.instruction.status, word),)
        answers.add_row(
            label,
            side.instruction.architecture,
            Text(code_text(code, fmt), style="bold"),
            describe_code(fmt, code),
            "" if error is None else f"{error:+.4g} ULP",
            *flags,
        )
    exact = trace.exact
    answers.add_row("", "exact", "", "" if exact is None else float_text(exact), "")
    return Group(shown, Text(), answers)
