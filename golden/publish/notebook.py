"""What notebooks show of instructions, traces, fragments, comparisons and dissections: one card of HTML each.

Everything is in the card: pictures as SVG, styles as attributes. A card is light in dark notebooks, too, so
that the pictures stay readable.
"""

from __future__ import annotations

import html
import io
from collections.abc import Iterable, Sequence
from functools import singledispatch

from golden.explain.terminal import TEXT_WIDTH, PlainConsole, print_trace
from golden.explain.trace import Trace
from golden.identify.blackbox.report import Found
from golden.identify.comparing import CLASSES, DIFFERENCES, Comparison
from golden.model.instruction import Instruction
from golden.notebook import NotebookHtml
from golden.program.words import step_text
from golden.publish.pictures import datapath, fragments
from golden.publish.pictures.svg import TIMES
from golden.registers.fragments import Fragments

_CARD = (
    "background:#fff;color:#1b2229;border:1px solid #c8ced4;border-radius:6px;padding:.6em 1em;"
    "overflow-x:auto"
)
_PRE = "font-family:monospace;line-height:1.25;background:none;color:inherit"
_CELL = "text-align:{};padding:.1em .8em .1em 0;border:0;background:none;color:inherit"


@singledispatch
def shown(thing: NotebookHtml) -> str:
    """The card of one object; raises TypeError for what has none."""
    raise TypeError(f"nothing draws a {type(thing).__name__}")


@shown.register
def _(ins: Instruction) -> str:
    m, n, k = ins.shape
    facts = [
        ("shape", f"m = {m}, n = {n}, k = {k}" + (f", {ins.blocks} blocks" if ins.blocks > 1 else "")),
        ("operands", ", ".join(f"{name} {fmt.name}" for name, fmt in ins.own_formats.items())),
        *([("machine code", ", ".join(ins.sass))] if ins.sass else []),
        ("evidence", f"{ins.evidence.kind}, {ins.evidence.source}"),
    ]
    parts = [_head(ins), _table(facts)]
    operations = ins.plain.program.operations
    most_operations = 3
    for index, operation in enumerate(operations[:most_operations]):
        steps = "".join(f"<li>{_text(step_text(step, ins.is_integer))}</li>" for step in operation.steps)
        picture = datapath.datapath(ins.plain, index, f"datapath{index}")
        parts.append(f"<ol>{steps}</ol>" + _folded(f"Datapath of {operation.algorithm}", picture, index == 0))
    if len(operations) > most_operations:
        parts.append(f"<p>and {len(operations) - most_operations} operations more</p>")
    return _card(parts)


@shown.register
def _(trace: Trace) -> str:
    return _card([_pre(trace)])


@shown.register
def _(layouts: Fragments) -> str:
    of = layouts.of
    if not isinstance(of, Instruction):
        return _card([f"<pre>{_text(repr(layouts))}</pre>"])
    parts = [_head(of)]
    for operand in fragments.operands(of):
        layout = getattr(layouts, operand)
        size = f" {TIMES} ".join(map(str, layout.matrix_shape))
        words = f"{operand}: {size} in {layout.registers} registers of {layout.lanes} lanes"
        parts.append(_folded(words, fragments.matrix(of, operand, f"matrix-{operand}"), operand == "a"))
    return _card(parts)


@shown.register
def _(result: Comparison) -> str:  # type: ignore[type-arg]  # singledispatch takes no Comparison[...]
    names = DIFFERENCES if result.flags else CLASSES
    rows = [
        (count.kind, f"{count.trials:,}", *(f"{count.differences[name]:,}" for name in names))
        for count in result.counts
    ]
    sides = [(letter, _named(unit)) for letter, unit in zip("AB", (result.first, result.second), strict=True)]
    sentence = (
        f"{result.numeric:,} of {result.trials:,} dot products answer differently"
        if result.example
        else f"no difference in {result.trials:,} dot products; not a proof that the two are equal"
    )
    head = ("operands", "tried", *(name.replace("_", " ") for name in names))
    parts = [_table(sides), f"<p><b>{_text(sentence)}</b></p>", _table(rows, head)]
    traces = (result.example.trace_x, result.example.trace_y) if result.example else ()
    for letter, trace in zip("AB", traces, strict=False):
        if trace is not None:
            parts.append(_folded(f"{letter} on the shortest example found", _pre(trace)))
    return _card(parts)


@shown.register
def _(found: Found) -> str:
    rows = [(kind, f"{wrong:,}", f"{count:,}") for kind, (wrong, count) in found.differing.items()]
    parts = [f"<p><b>{_text(found.sentence())}</b></p>"]
    parts += [_table(rows, ("compared with the box", "differ", "of"))] if rows else []
    if found.instruction is not None:
        parts.append(_folded("The unit as a model", shown(found.instruction), True))
    if found.yaml is not None:
        parts.append(_folded("Its YAML", f"<pre>{_text(found.yaml)}</pre>"))
    if found.undecided:
        parts.append(
            "<p>Not decided:</p><ul>" + "".join(f"<li>{_text(one)}</li>" for one in found.undecided) + "</ul>"
        )
    return _card(parts)


# Pieces -----------------------------------------------------------------------------------------------------


def _text(words: str) -> str:
    return html.escape(words, quote=False)


def _card(parts: Iterable[str]) -> str:
    return f'<div class="mmagold" style="{_CARD}">{"".join(parts)}</div>'


def _head(ins: Instruction) -> str:
    return f"<p>{_text(ins.architecture)} <b><code>{_text(ins.name)}</code></b></p>"


def _named(unit: object) -> str:
    return f"{getattr(unit, 'architecture', '')} {getattr(unit, 'name', type(unit).__name__)}".strip()


def _folded(summary: str, content: str, opened: bool = False) -> str:
    return f"<details{' open' if opened else ''}><summary>{_text(summary)}</summary>{content}</details>"


def _table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """A table; where it has a head, all columns but the first are numbers."""

    def row(cells: Sequence[str], tag: str) -> str:
        sides = ["left", *("right" if head else "left" for _ in cells[1:])]
        words = (
            f'<{tag} style="{_CELL.format(side)}">{_text(cell)}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )
        return f"<tr>{''.join(words)}</tr>"

    lines = [row(head, "th")] if head else []
    return f"<table>{''.join([*lines, *(row(cells, 'td') for cells in rows)])}</table>"


def _pre(trace: Trace) -> str:
    """The trace as `mmagold explain` prints it, in colours."""
    console = PlainConsole(record=True, file=io.StringIO(), width=TEXT_WIDTH, force_terminal=True)
    print_trace(trace, console)
    return console.export_html(
        inline_styles=True,
        code_format=f'<pre style="{_PRE}">{{code}}</pre>',
    )
