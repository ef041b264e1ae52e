"""The kill matrix of a qualification as a terminal table, Markdown, one HTML page or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING

from golden.stimuli import INTEGER_KINDS, KINDS

if TYPE_CHECKING:
    from rich.console import Console

    from rtl_tb.qualify.qualification import Qualification, Row, Score

_COLUMNS = ("Mutant", "Unit", "Default set", "First at", "Random bits", "First at", "Best kind", "Diagnosis")
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --bad: #d6455d; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem; } h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; }
table { border-collapse: collapse; font-size: .9rem; } th, td { border-bottom: 1px solid var(--line); padding: .2rem .6rem; }
th { text-align: left; vertical-align: bottom; } td.n { text-align: right; font-variant-numeric: tabular-nums; }
th.kind { writing-mode: vertical-rl; padding: .4rem .1rem; font-weight: 400; } .bad { color: var(--bad); font-weight: 600; }
div { overflow-x: auto; }
"""  # noqa: E501


def print_matrix(result: Qualification, console: Console) -> None:
    """Prints one line a mutant, and the sum of it."""
    from rich.table import Table

    table = Table(*_COLUMNS, box=None, pad_edge=False)
    for row in result.rows:
        table.add_row(*_cells(row), style=None if row.default.killed or row.equivalent else "red")
    console.print(table)
    console.print(result.summary())
    for title, names in (
        ("survivors", result.survivors),
        ("faults that the diagnosis does not name", result.unnamed),
    ):
        if names:
            console.print(f"{title}: {', '.join(names)}")
    for row in result.rows:
        if row.proof is not None:
            said = f"{row.mutant.name}: {row.proof.verdict}: {row.proof.how}"
            console.print(said, highlight=False, soft_wrap=True)


def markdown(result: Qualification) -> str:
    """Both tables as Markdown: one line a mutant, then the share of each kind's vectors
    that fail, in percent."""
    kinds, shares = _shares(result)
    first = [_line(_COLUMNS), _line(("---",) * len(_COLUMNS))]
    first += [
        _line((f"`{row.mutant.name}`", f"`{row.mutant.unit_name}`", *_cells(row)[2:])) for row in result.rows
    ]
    second = [_line(("Mutant", *kinds)), _line(("---",) * (len(kinds) + 1))]
    second += [_line((f"`{name}`", *found)) for name, found in shares]
    return f"{result.summary()}.\n\n{''.join(first)}\n{''.join(second)}"


def html(result: Qualification) -> str:
    """Both tables as one page that needs no other host; darker cells are kinds that find more."""
    kinds, _ = _shares(result)
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    body = "".join(_html_row(row) for row in result.rows)
    names = "".join(f"<th class=kind>{escape(kind)}</th>" for kind in kinds)
    matrix = "".join(_html_shares(row, kinds) for row in result.rows)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Qualification</title><style>{_STYLE}</style></head><body>
<h1>Qualification</h1><p>{escape(result.summary())}.</p>
<div><table><tr>{head}</tr>
{body}</table></div>
<h2>Share of each kind's vectors that fail, in percent</h2>
<div><table><tr><th>Mutant</th>{names}</tr>
{matrix}</table></div></body></html>
"""


def _html_row(row: Row) -> str:
    mark = "" if row.default.killed or row.equivalent else " class=bad"
    cells = "".join(f"<td>{escape(cell)}</td>" for cell in _cells(row))
    return f'<tr{mark} title="{escape(row.mutant.fault)}">{cells}</tr>\n'


def _html_shares(row: Row, kinds: list[str]) -> str:
    cells = ""
    for kind in kinds:
        share = row.kinds.get(kind, 0.0)
        colour = f' style="background: rgb(46 158 91 / {0.15 + 0.75 * share:.2f})"' if share else ""
        cells += f"<td class=n{colour}>{escape(_share(share))}</td>"
    return f"<tr><td>{escape(row.mutant.name)}</td>{cells}</tr>\n"


def _shares(result: Qualification) -> tuple[list[str], list[tuple[str, list[str]]]]:
    kinds = [kind for kind in (*KINDS, *INTEGER_KINDS) if any(kind in row.kinds for row in result.rows)]
    return kinds, [
        (row.mutant.name, [_share(row.kinds.get(kind, 0.0)) for kind in kinds]) for row in result.rows
    ]


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _cells(row: Row) -> tuple[str, ...]:
    names = row.mutant.name, row.mutant.unit_name
    return (
        *names,
        _found(row.default) + _proved(row),
        _first(row.default),
        _found(row.random),
        _first(row.random),
        _best(row),
        _named(row),
    )


def _found(score: Score) -> str:
    parts = [f"{score.kills:,}"] if score.kills else []
    return ", ".join([*parts, *score.protocol]) or "survives"


def _proved(row: Row) -> str:
    """What a proof says about a survivor."""
    if row.proof is None:
        return ""
    return f": {row.proof.verdict}{' equivalent' * row.equivalent}"


def _first(score: Score) -> str:
    return f"{score.first:,}" if score.first else ""


def _share(share: float) -> str:
    """Percent; a kill is never shown as 0."""
    return "" if not share else "<1" if share < 0.01 else f"{100 * share:.0f}"


def _best(row: Row) -> str:
    best = max(row.kinds, key=lambda kind: row.kinds[kind], default="")
    return f"{best} {_share(row.kinds[best])} %" if best and row.kinds[best] else ""


def _named(row: Row) -> str:
    if row.mutant.diagnosis is None:
        return ""
    return row.mutant.diagnosis if row.named else f"not named ({row.mutant.diagnosis})"


WRITERS: dict[str, Callable[[Qualification], str]] = {
    "md": markdown,
    "html": html,
    "json": lambda result: json.dumps(result.as_dict(), indent=1) + "\n",
}
"""How a qualification is written, by file suffix."""
