"""Terminal pictures of a specification and of a comparison of two instructions."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from rich.console import Console, Group
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from golden.explain import modes, specification
from golden.explain.terminal import (
    TEXT_WIDTH,
    PlainConsole,
    code_text,
    indented,
    print_trace,
    step_line,
    table,
)
from golden.explain.trace import describe_code, float_text, short_text
from golden.identify.comparing import CLASSES, DIFFERENCES, Comparison, Example
from golden.model.instruction import Instruction
from golden.number.formats import Kind
from golden.program.flags import flags_text
from golden.program.program import Operation
from golden.proof.report import print_outcome
from golden.proof.sweep import OPEN, PROVED, REFUTED

_GOING = ("largest", "exponents", "bias")
"""The columns of a table of formats that go first where a terminal is narrow."""

# One instruction --------------------------------------------------------------------------------------------


def print_specification(ins: Instruction) -> None:
    """Facts, formats, steps and widths of one instruction."""
    console = PlainConsole()
    console.print(Text(ins.name, style="bold"))
    console.print(indented(_facts(ins)))
    console.print()
    console.print(indented(_formats(ins)))
    if ins.modes is not None:
        _print_modes(console, ins)
    for _, run in groupby(
        ins.program.operations, key=lambda item: (item.algorithm, item.steps, len(item.k_index))
    ):
        _print_chain(console, ins, list(run))
    console.print(f"\nevidence: [bold]{ins.evidence.kind}[/], {ins.evidence.source}", highlight=False)


def _print_modes(console: Console, ins: Instruction) -> None:
    """The fields of the operand `mode`, and what each mode changes."""
    console.print(Text("\nmodes", style="bold"))
    for line in modes.fields_text(ins):
        console.print(indented(Text(line)))
    rows = table("mode", "fields", "instead of the first mode's")
    for row in modes.modes_rows(ins):
        rows.add_row(*row)
    console.print()
    console.print(indented(rows))


def _print_chain(console: Console, ins: Instruction, chain: list[Operation]) -> None:
    """Operations that run the same steps one after the other, described once."""
    first, last = chain[0], chain[-1]
    slices = "; ".join(specification.index_text(operation.k_index) for operation in chain[:4]) + (
        "; ..." if len(chain) > 4 else ""
    )
    times = f", {len(chain)} in a chain" if len(chain) > 1 else ""
    about = f"  k = {slices}; from {first.seed}, to {last.to} ({last.out_format.name})"
    console.print(Text.assemble("\n", (first.algorithm + times, "bold"), (about, "dim")))
    for number, step in enumerate(first.steps, 1):
        console.print(indented(step_line(number, step, ins.is_integer)), highlight=False)
    widths = table(
        *(name.lower() + (">" if 1 < i < 7 else "") for i, name in enumerate(specification.NODE_HEAD)),
        going=("exponents", "count", "sign"),
    )
    for row in specification.node_rows(ins, first):
        widths.add_row(*row)
    console.print()
    console.print(indented(widths))


def _facts(ins: Instruction) -> Table:
    grid = Table.grid(padding=(0, 2))
    m, n, k = ins.shape
    grid.add_row("architecture", ins.architecture)
    if "title" in ins.variables:
        grid.add_row("title", ins.variables["title"])
    grid.add_row(
        "shape",
        f"m = {m}, n = {n}, k = {k}" + (f", {ins.blocks} independent blocks" if ins.blocks > 1 else ""),
    )
    if ins.sass:
        grid.add_row("SASS", ", ".join(ins.sass) + (" (emulated)" if ins.emulated else ""))
    if ins.status:
        grid.add_row("flags", f"{', '.join(ins.status)} (bit 0 first)")
    if ins.pattern is not None:
        grid.add_row("sparsity", f"{ins.pattern.name}: {ins.stored_k} stored elements of {k}")
    if ins.scale_block is not None:
        grid.add_row("block scale", f"one scale for {ins.scale_block} elements")
    if ins.state:
        grid.add_row("accumulator", specification.state_text(ins))
    return grid


def _formats(ins: Instruction) -> Table:
    rows = table(
        "operand", "format", "bits>", "sign+exp+frac", "bias>", "exponents|", "largest|", going=_GOING
    )
    for operand, fmt in ins.own_formats.items():
        if fmt.is_float:
            fields = f"{int(fmt.signed)}+{fmt.exponent_bits}+{fmt.fraction_bits}"
            rows.add_row(
                operand,
                fmt.name,
                str(fmt.bits),
                fields,
                str(fmt.bias),
                f"{fmt.min_exponent} .. {fmt.max_exponent}",
                short_text(fmt.decode(fmt.largest).value),
            )
        else:
            rows.add_row(
                operand,
                fmt.name,
                str(fmt.bits),
                "signed" if fmt.signed else "unsigned",
                "",
                "",
                str(fmt.largest),
            )
    return rows


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
