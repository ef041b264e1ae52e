"""The terminal picture of a specification."""

from __future__ import annotations

from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from golden.explain import modes, specification
from golden.explain.terminal import (
    PlainConsole,
    indented,
    step_line,
    table,
)
from golden.explain.trace import short_text
from golden.model.engine import core_path
from golden.model.instruction import Instruction
from golden.program.program import Operation

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
    units = [unit.stateless for unit in ins.mode_units.values()] or [ins.stateless]
    paths = dict.fromkeys(core_path(unit.program, unit) for unit in units)
    grid.add_row("computed by", "; ".join(paths))
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
