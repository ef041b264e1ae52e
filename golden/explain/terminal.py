"""The trace of one dot product as tables: in colours on a terminal, as plain text in reports."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from fractions import Fraction
from itertools import groupby
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from golden.explain import specification
from golden.explain.trace import (
    Trace,
    describe,
    describe_code,
    lost_bits,
    raised_in,
    shortened_bits,
    significand_text,
)
from golden.model.reference import Cut, Event
from golden.number.formats import Format, Kind, Number
from golden.program.steps import Round, Step
from golden.program.words import step_text

TEXT_WIDTH = 120  # columns of a trace as text
_UNWRAPPED = 10_000  # columns of what is no terminal
_BITS, _RUN = re.compile("[+-]?[01]+([.][01]+)?"), re.compile(r"([01])\1{7,}")
_CUT_STYLE = "bold red"


class FittingTable(Table):
    """A table that leaves out columns on a terminal that is too narrow for it.

    `going`: the places of these columns, of each name together, in the order in which they go. One that fits
    when a wider one is gone comes back, but for the first. Where all are gone and it is too wide, long runs
    of equal bits are counted: `0{40}`.
    """

    going: tuple[tuple[int, ...], ...] = ()

    def fitting(self, console: Console, width: int) -> Table:
        """The table with the columns that fit."""
        if not self.going or not on_screen(console):
            return self

        gone: list[tuple[int, ...]] = []
        while not (fits := _least(self._without(gone), console) <= width) and len(gone) < len(self.going):
            gone.append(self.going[len(gone)])
        for places in reversed(gone[1:]):
            others = [each for each in gone if each is not places]
            gone = others if _least(self._without(others, not fits), console) <= width else gone
        return self._without(gone, not fits)

    def _without(self, gone: Sequence[tuple[int, ...]], shortened: bool = False) -> Table:
        """The table without some columns, perhaps with long runs of bits counted."""
        found = copy(self)
        left = [
            column for place, column in enumerate(self.columns) if not any(place in each for each in gone)
        ]
        found.columns = [replace(column, _index=place) for place, column in enumerate(left)]
        for column in found.columns if shortened else ():
            column._cells = [_runs_counted(cell) for cell in column._cells]
        return found

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        whole, fitting = super().__rich_measure__(console, options), self.fitting(console, 0)
        narrowest = whole if fitting is self else Table.__rich_measure__(fitting, console, options)
        return Measurement(min(narrowest.minimum, whole.maximum), whole.maximum)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        fitting = self.fitting(console, options.max_width)
        yield from Table.__rich_console__(fitting, console, options)


def _runs_counted(cell: Any) -> Any:
    """The bits of a cell with their long runs counted; what are no bits as it is."""
    if not isinstance(cell, str) or _BITS.fullmatch(cell) is None:
        return cell
    return _RUN.sub(lambda run: f"{run[1]}{{{len(run[0])}}}", cell)


def _least(rows: Table, console: Console) -> int:
    """The columns that a table needs for what is never broken."""
    free = console.options.update(width=_UNWRAPPED)  # else what does not fit would not be counted
    return Table.__rich_measure__(rows, console, free).minimum


def on_screen(console: Console) -> bool:
    """Whether a terminal shows it. FORCE_COLOR makes no terminal of a pipe: it has colours and no width."""
    try:
        return bool(console.file.isatty())
    except ValueError:  # closed
        return False


class PlainConsole(Console):
    """A console that breaks no line of a pipe or a file, unless COLUMNS says how wide it is, and that never
    breaks digits: where a terminal is too narrow for a table, columns go (see FittingTable), and what is
    still too wide is left for the terminal to wrap. No text becomes an emoji: `fpnew.sv:100:` is a place."""

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, **options)
        if not on_screen(self) and "width" not in options and "COLUMNS" not in os.environ:
            self.width = _UNWRAPPED

    def print(self, *objects: Any, **options: Any) -> None:
        """Prints at least as wide as what must not be broken."""
        given = self._width
        free = self.options.update(width=_UNWRAPPED)
        needed = [Measurement.get(self, free, item).minimum for item in objects if _has_width(item)]
        try:
            self.width = max(self.width, *needed, 0)
            super().print(*objects, **options)
        finally:
            self._width = given

    def _render_buffer(self, buffer: Any) -> str:
        """The text of what was printed; in a pipe or a file without the blanks that end its lines."""
        text = super()._render_buffer(buffer)
        return text if self.is_terminal else re.sub(r" +$", "", text, flags=re.M)


def _has_width(item: Any) -> bool:
    return isinstance(item, Table | Padding | Group)


def table(*columns: str, going: Sequence[str] = ()) -> FittingTable:
    """A table in the house style; a column whose name ends in ">" is set flush right, one whose name ends in
    ">" or "|" is never broken. On a terminal that is too narrow columns go, by name, in the order of
    `going`."""
    made = FittingTable(header_style="bold", box=None, padding=(0, 2, 0, 0))
    for column in columns:
        name, last = (column[:-1], column[-1]) if column.endswith((">", "|")) else (column, "")
        made.add_column(name, justify="right" if last == ">" else "left", overflow="fold", no_wrap=bool(last))
    made.going = tuple(
        tuple(place for place, column in enumerate(made.columns) if column.header == name) for name in going
    )
    return made


def code_text(code: int, fmt: Format) -> str:
    """A code in the hexadecimal digits of its format."""
    return f"0x{code:0{(fmt.bits + 3) // 4}x}"


def indented(item: Any, left: int = 2) -> Padding:
    """The item, `left` columns to the right."""
    return Padding(item, (0, 0, 0, left), expand=False)


def step_line(number: int, step: Step, integer: bool, style: str = "") -> Table:
    """A step's number, kind and sentence."""
    line = Table.grid(padding=(0, 1))
    line.add_row(f"{number}", Text(step.op, style="cyan"), Text(step_text(step, integer), style=style))
    line.columns[0].min_width, line.columns[1].min_width = 2, 14
    return line


def trace_text(trace: Trace, width: int = TEXT_WIDTH) -> str:
    """What `print_trace` prints, as plain text for reports: no terminal codes, whatever FORCE_COLOR says."""
    text = io.StringIO()
    print_trace(trace, PlainConsole(file=text, width=width, force_terminal=False))
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def print_trace(trace: Trace, console: Console | None = None) -> None:
    """The whole explanation of one dot product."""
    ins = trace.instruction
    console = console or PlainConsole()
    console.print(Text.assemble((ins.architecture, "cyan"), "  ", (ins.name, "bold")))
    console.print(indented(_operands(trace)))
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
    rows = table(
        "k>",
        "a>",
        "value|",
        *(("b>", "value|") if empty else ()),
        *(("scales",) if scaled else ()),
        going=("value", "scales"),
    )
    skipped = 0
    for k, (x, y) in enumerate(zip(trace.a, trace.b, strict=True)):
        # Zeros say nothing; they are counted below.
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
        b = (code_text(y, formats["b"]), describe_code(formats["b"], y)) if empty else ()
        rows.add_row(str(k), code_text(x, formats["a"]), describe_code(formats["a"], x), *b, *scales)
    if skipped:
        rows.add_row("...", Text(f"{skipped} times 0", style="dim"), "", *empty)
    if "c" not in absent:
        rows.add_row("c", code_text(trace.c, formats["c"]), describe_code(formats["c"], trace.c), *empty)
    return rows


def _print_step(
    console: Console, number: int, event: Event, trace: Trace, registers: dict[str, tuple[Number, ...]]
) -> None:
    """One step: its sentence, then a table of the numbers that it wrote."""
    console.print(
        indented(step_line(number, event.step, trace.instruction.is_integer, "dim")), highlight=False
    )
    if event.max_exponents and any(e is not None for e in event.max_exponents):
        maxima = ", ".join("-" if e is None else str(e) for e in event.max_exponents)
        console.print(indented(f"largest exponent [bold]{maxima}[/]", 6), highlight=False)
    if event.written:
        console.print(indented(_numbers(event, trace), 6))
    elif isinstance(event.step, Round) and event.code is not None:
        console.print(indented(_rounding(event, trace, registers), 6))
    elif event.code is not None:
        fmt = trace.instruction.program.operations[event.operation].out_format
        console.print(
            indented(f"special: {code_text(event.code, fmt)} = {describe_code(fmt, event.code)}", 6),
            highlight=False,
        )
    raised = raised_in(event, trace.instruction)
    if raised:
        console.print(indented(f"raises [yellow]{', '.join(raised)}[/]", 6), highlight=False)
    registers.update(event.written)


def _numbers(event: Event, trace: Trace) -> Table:
    operation = trace.instruction.program.operations[event.operation]
    shifts, integer = event.cuts is not None, trace.instruction.is_integer
    rows = table(
        "",
        *(("bits|",) if integer else ("significand|", *(("lost|", "shift>") if shifts else ()), "exponent>")),
        "value|",
        going=("value", "shift", "exponent", "lost"),
    )
    zeros = 0
    for name, numbers in event.written.items():
        cuts = (event.cuts or {}).get(name, (None,) * len(numbers))
        # Numbers of one product each are named by its k.
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
    text = Text.assemble((code_text(code, fmt), "bold"), f" = {describe_code(fmt, code)}")
    source = registers.get(event.step.of[0], ())
    if source and source[0].kind <= Kind.FINITE and result.kind <= Kind.FINITE:
        error = result.value - source[0].value
        if error and not fmt.is_float and trace.instruction.is_integer:
            text.append(f"   overflow changed the total by {error}", style="yellow")
        elif error:
            last = Fraction(2) ** (result.lsb_exponent if fmt.is_float else 0)
            text.append(f"   rounding changed the sum by {float(error / last):+.4g} ULP", style="yellow")
        else:
            text.append("   exact", style="green")
    return text


def _verdict(trace: Trace) -> Table:
    grid = Table.grid(Column(no_wrap=True), Column(no_wrap=True), Column(overflow="fold"), padding=(0, 2))
    fmt = trace.instruction.formats["d"]
    grid.add_row("d", Text(code_text(trace.code, fmt), style="bold green"), describe_code(fmt, trace.code))
    if trace.flags is not None:
        grid.add_row("flags", *trace.flags_text.split(": ", 1))
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
