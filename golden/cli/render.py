"""Terminal pictures of a specification, a trace and a comparison."""

from __future__ import annotations

import io
from fractions import Fraction
from itertools import groupby
from typing import Any

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from golden.cli.lists import table
from golden.dissect.comparing import CLASSES, Comparison, Example
from golden.explain import modes, specification
from golden.explain.trace import (
    Trace,
    describe,
    describe_code,
    float_text,
    lost_bits,
    shortened_bits,
    significand_text,
)
from golden.instruction import Instruction
from golden.model.reference import Cut, Event
from golden.number.formats import Format, Kind, Number
from golden.program.program import Operation
from golden.program.steps import Round, Step
from golden.program.words import is_integer, step_text

_CUT_STYLE = "bold red"
TEXT_WIDTH = 120


def _code(code: int, fmt: Format) -> str:
    return f"0x{code:0{(fmt.bits + 3) // 4}x}"


def _indented(item: Any, left: int = 2) -> Padding:
    return Padding(item, (0, 0, 0, left))


# One instruction --------------------------------------------------------------------------------------------


def print_specification(ins: Instruction) -> None:
    """Facts, formats, steps and widths of one instruction."""
    console = Console()
    console.print(Text(ins.name, style="bold"))
    console.print(_indented(_facts(ins)))
    console.print()
    console.print(_indented(_formats(ins)))
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
        console.print(_indented(Text(line)))
    rows = table("mode", "fields", "instead of the first mode's")
    for row in modes.modes_rows(ins):
        rows.add_row(*row)
    console.print()
    console.print(_indented(rows))


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
        console.print(_indented(_step_line(number, step, is_integer(ins))), highlight=False)
    widths = table(
        *(name.lower() + (">" if 1 < i < 7 else "") for i, name in enumerate(specification.NODE_HEAD))
    )
    for row in specification.node_rows(ins, first):
        widths.add_row(*row)
    console.print()
    console.print(_indented(widths))


def _step_line(number: int, step: Step, integer: bool, style: str = "") -> Table:
    line = Table.grid(padding=(0, 1))
    line.add_row(f"{number}", Text(step.op, style="cyan"), Text(step_text(step, integer), style=style))
    line.columns[0].min_width, line.columns[1].min_width = 2, 14
    return line


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
    if ins.pattern is not None:
        grid.add_row("sparsity", f"{ins.pattern.name}: {ins.stored_k} stored elements of {k}")
    if ins.scale_block is not None:
        grid.add_row("block scale", f"one scale for {ins.scale_block} elements")
    return grid


def _formats(ins: Instruction) -> Table:
    rows = table("operand", "format", "bits>", "sign+exp+frac", "bias>", "exponents", "largest")
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
                float_text(fmt.decode(fmt.largest).value),
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


# One dot product --------------------------------------------------------------------------------------------


def trace_text(trace: Trace) -> str:
    """What `print_trace` prints, as plain text for reports: no terminal codes, whatever FORCE_COLOR says."""
    text = io.StringIO()
    print_trace(trace, Console(file=text, width=TEXT_WIDTH, force_terminal=False))
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def print_trace(trace: Trace, console: Console | None = None) -> None:
    """The whole explanation of one dot product."""
    ins = trace.instruction
    console = console or Console()
    console.print(Text.assemble((ins.architecture, "cyan"), "  ", (ins.name, "bold")))
    console.print(_indented(_operands(trace)))
    for index, events in groupby(trace.events, key=lambda event: event.operation):
        operation = ins.program.operations[index]
        started = f"k = {specification.index_text(operation.k_index)}, from {operation.seed}"
        console.print(Text.assemble("\n", (operation.algorithm, "bold"), (f"  {started}", "dim")))
        registers: dict[str, tuple[Number, ...]] = {}
        for number, event in enumerate(events, 1):
            _print_step(console, number, event, trace, registers)
    console.print()
    console.print(_verdict(trace))


def _operands(trace: Trace) -> Table:
    formats = trace.instruction.formats
    scaled, absent = trace.scales is not None, trace.instruction.absent
    empty = () if "b" in absent else ("", "")
    rows = table("k>", "a>", "value", *(("b>", "value") if empty else ()), *(("scales",) if scaled else ()))
    skipped = 0
    for k, (x, y) in enumerate(zip(trace.a, trace.b, strict=True)):
        if x == 0 and y == 0 and k:
            skipped += 1
            continue
        scales = []
        if trace.scales is not None:
            codes_a, codes_b, size = trace.scales
            pair = (
                formats["scale_a"].decode(codes_a[k // size]),
                formats["scale_b"].decode(codes_b[k // size]),
            )
            scales = [" * ".join(map(describe, pair))]
        b = (_code(y, formats["b"]), describe_code(formats["b"], y)) if empty else ()
        rows.add_row(str(k), _code(x, formats["a"]), describe_code(formats["a"], x), *b, *scales)
    if skipped:
        rows.add_row("...", Text(f"{skipped} times 0", style="dim"), "", *empty)
    if "c" not in absent:
        rows.add_row("c", _code(trace.c, formats["c"]), describe_code(formats["c"], trace.c), *empty)
    return rows


def _print_step(
    console: Console, number: int, event: Event, trace: Trace, registers: dict[str, tuple[Number, ...]]
) -> None:
    """One step: its sentence, then a table of the numbers that it wrote."""
    console.print(
        _indented(_step_line(number, event.step, is_integer(trace.instruction), "dim")), highlight=False
    )
    if event.max_exponents and any(e is not None for e in event.max_exponents):
        maxima = ", ".join("-" if e is None else str(e) for e in event.max_exponents)
        console.print(_indented(f"largest exponent [bold]{maxima}[/]", 6), highlight=False)
    if event.written:
        console.print(_indented(_numbers(event, trace), 6))
    elif isinstance(event.step, Round) and event.code is not None:
        console.print(_indented(_rounding(event, trace, registers), 6))
    elif event.code is not None:
        fmt = trace.instruction.program.operations[event.operation].out_format
        console.print(
            _indented(f"special: {_code(event.code, fmt)} = {describe_code(fmt, event.code)}", 6),
            highlight=False,
        )
    registers.update(event.written)


def _numbers(event: Event, trace: Trace) -> Table:
    operation = trace.instruction.program.operations[event.operation]
    shifts, integer = event.cuts is not None, is_integer(trace.instruction)
    rows = table(
        "",
        *(("bits",) if integer else ("significand", *(("lost", "shift>") if shifts else ()), "exponent>")),
        "value",
    )
    zeros = 0
    for name, numbers in event.written.items():
        cuts = (event.cuts or {}).get(name, (None,) * len(numbers))
        by_k = name in ("products", "a", "b") and len(numbers) == len(operation.k_index)
        for index, (number, cut) in enumerate(zip(numbers, cuts, strict=True)):
            if number.kind == Kind.ZERO and len(numbers) > 1:
                zeros += 1
                continue
            label = f"{name}[{operation.k_index[index] if by_k else index}]" if len(numbers) > 1 else name
            cells = (
                (significand_text(number, True), describe(number, True))
                if integer
                else _number_cells(number, cut, shifts)
            )
            rows.add_row(label, *cells)
    if zeros:
        rows.add_row(Text(f"and {zeros} zeros", style="dim"))
    return rows


def _number_cells(number: Number, cut: Cut | None, shifts: bool) -> list[Any]:
    cells: list[Any] = [significand_text(number)]
    if shifts:
        lost = "" if cut is None else shortened_bits(lost_bits(cut).rstrip("0"))
        cells += [
            Text(lost, style=_CUT_STYLE),
            "" if cut is None else f"{cut.shift} >>" if cut.shift else "0",
        ]
    exponent = "" if number.kind != Kind.FINITE else f"2^{number.exponent}"
    return [*cells, exponent, describe(number)]


def _rounding(event: Event, trace: Trace, registers: dict[str, tuple[Number, ...]]) -> Text:
    """The rounded number before and after, and what rounding did to it in units of the last place."""
    operation = trace.instruction.program.operations[event.operation]
    fmt, code = operation.out_format, event.code
    assert code is not None
    result = fmt.decode(code)
    text = Text.assemble((_code(code, fmt), "bold"), f" = {describe_code(fmt, code)}")
    source = registers.get(event.step.of[0], ())
    if source and source[0].kind <= Kind.FINITE and result.kind <= Kind.FINITE:
        error = result.value - source[0].value
        if error and not fmt.is_float and is_integer(trace.instruction):
            text.append(f"   overflow changed the total by {error}", style="yellow")
        elif error:
            last = Fraction(2) ** (result.lsb_exponent if fmt.is_float else 0)
            text.append(f"   rounding changed the sum by {float(error / last):+.4g} ULP", style="yellow")
        else:
            text.append("   exact", style="green")
    return text


def _verdict(trace: Trace) -> Table:
    grid = Table.grid(padding=(0, 2))
    fmt = trace.instruction.formats["d"]
    grid.add_row("d", Text(_code(trace.code, fmt), style="bold green"), describe_code(fmt, trace.code))
    exact, error = trace.exact, trace.error_ulp
    if exact is None:
        grid.add_row("exact", "", "an operand is infinite or NaN")
        return grid
    data = trace.as_dict()
    grid.add_row(
        "exact",
        "",
        f"{data['exact_value']}" + (f"  = {data['exact']}" if data["exact"] != data["exact_value"] else ""),
    )
    if error is not None:
        grid.add_row(
            "error", "", Text(f"{error:+.6g} ULP", style="green" if abs(error) <= 0.5 else _CUT_STYLE)
        )
    return grid


# Two instructions -------------------------------------------------------------------------------------------


def print_comparison(result: Comparison[Instruction], traces: bool) -> None:
    """Counts by stimulus kind, and the shortest example."""
    console = Console()
    x, y = result.first, result.second
    console.print(Text.assemble("A  ", (x.architecture, "cyan"), "  ", (x.name, "bold")))
    console.print(Text.assemble("B  ", (y.architecture, "cyan"), "  ", (y.name, "bold")))
    console.print()
    console.print(_indented(_counts(result)))
    console.print()
    if result.example is None:
        console.print(
            f"[bold]no difference[/] in {result.trials:,} dot products (seed {result.seed}); not a proof "
            "that the two are equal",
            highlight=False,
        )
        return
    payloads = f", {result.nan_payloads:,} NaN payloads" if result.nan_payloads else ""
    console.print(
        f"[bold]{result.numeric:,} of {result.trials:,}[/] dot products answer differently{payloads}. "
        "The shortest example found:",
        highlight=False,
    )
    console.print(_indented(_example(result.example)))
    if traces:
        for trace in result.example.traces:
            console.rule(style="dim")
            print_trace(trace)
    else:
        console.print("\n[dim]--trace explains both answers step by step[/]")


def _counts(result: Comparison[Any]) -> Table:
    rows = table("", "operands", "tried>", *(f"{name.replace('_', ' ')}>" for name in CLASSES))
    for count in result.counts:
        cells = [
            Text(f"{count.differences[name]:,}", style="bold" if count.differences[name] else "dim")
            for name in CLASSES
        ]
        rows.add_row(count.kind, f"{count.trials:,}", *cells)
    return rows


def _example(example: Example) -> Group:
    trace = min(example.traces, key=lambda one: one.instruction.k)
    formats = trace.instruction.formats
    shown = table("", "a", "", "b", "")
    for k, (a, b) in enumerate(zip(trace.a, trace.b, strict=True)):
        if formats["a"].decode(a).kind != Kind.ZERO or formats["b"].decode(b).kind != Kind.ZERO:
            absent = "b" in trace.instruction.absent
            told = () if absent else (_code(b, formats["b"]), describe_code(formats["b"], b))
            shown.add_row(f"k = {k}", _code(a, formats["a"]), describe_code(formats["a"], a), *told)
    if "c" not in trace.instruction.absent:
        shown.add_row("c", _code(trace.c, formats["c"]), describe_code(formats["c"], trace.c))
    answers = table("", "architecture", "d", "", "error")
    for label, side, code in zip("AB", example.traces, (example.x, example.y), strict=True):
        fmt, error = side.instruction.formats["d"], side.error_ulp
        answers.add_row(
            label,
            side.instruction.architecture,
            Text(_code(code, fmt), style="bold"),
            describe_code(fmt, code),
            "" if error is None else f"{error:+.4g} ULP",
        )
    exact = trace.exact
    answers.add_row("", "exact", "", "" if exact is None else float_text(exact), "")
    return Group(shown, Text(), answers)
