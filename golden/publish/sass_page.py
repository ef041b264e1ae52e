"""The pages of what ptxas makes of scalar PTX: one to search and compare targets in, a paper beside it.

The first holds all tables as data and is filled by templates/static/sass.js in the reader's browser; without
scripts it says how to ask the command line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from golden.catalog import ptx_forms, sass, sass_published
from golden.explain.markdown import code, link, table
from golden.publish.page import Page

LIST, PUBLISHED = "sass/list.md", "sass/published.md"
TITLE = "Scalar PTX on every chip"
_ROOT = "mg-sass"


def pages() -> list[Page]:
    """The list and the comparison with the paper."""
    return [
        Page(LIST, TITLE, write_list),
        Page(PUBLISHED, "Scalar PTX: the paper and ours", write_published),
    ]


def write_list() -> str:
    """The page that is filled by a script; its data are one line of JSON."""
    content = json.dumps(data(), separators=(",", ":")).replace("<", "\\u003c")
    shell = "\n".join(
        [
            '<link rel="stylesheet" href="../_static/sass.css">',
            f'<div id="{_ROOT}">',
            "<noscript>This table needs JavaScript; the command line shows the same.</noscript>",
            "</div>",
            f'<script type="application/json" id="{_ROOT}-data">{content}</script>',
            '<script src="../_static/sass.js" defer></script>',
        ]
    )
    number = len(ptx_forms.load().forms)
    return "\n\n".join(
        [
            f"# {TITLE}",
            f"{number:,} PTX instructions with several kinds of operands, and the machine instructions that "
            f"ptxas makes of them for {len(sass.targets())} targets. "
            f"{link('How they were compiled', 'sass.md')}; "
            f"{link('beside the tables of a paper', PUBLISHED)}.",
            shell,
            "On the command line:",
            code("mmagold sass mad.lo.u32\nmmagold sass testp --arch hopper --json", "sh"),
        ]
    )


def data() -> dict[str, Any]:
    """All tables as one value: `rows` are [name, number of the group, letters of the operands, what each
    target makes of it as a number of `texts`]."""
    tables = {target: sass.load(target) for target in sass.targets()}
    groups: dict[str, int] = {}
    texts: dict[str, int] = {}
    rows: list[tuple[str, int, str, list[int]]] = []
    for form in ptx_forms.load().forms:
        group = groups.setdefault(form.group, len(groups))
        for kinds in form.kinds:
            where = sass.by_text(form.name, kinds, tables)
            cell = {target: text for text, targets in where.items() for target in targets}
            numbers = [texts.setdefault(cell[target], len(texts)) for target in tables]
            rows.append((form.name, group, kinds, numbers))
    words = {kinds: ptx_forms.operands_text(kinds) for kinds in dict.fromkeys(row[2] for row in rows)}
    return {
        "targets": list(tables),
        "ptxas": sorted({one.ptxas for one in tables.values()}),
        "groups": list(groups),
        "texts": list(texts),
        "operands": words,
        "rows": rows,
    }


# The paper --------------------------------------------------------------------------------------------------


def write_published() -> str:
    """Table V row by row, and the six insights."""
    rows = sass_published.table_v()
    counts = Counter(row.verdict for row in rows)
    meaning = [(verdict, str(counts[verdict]), words) for verdict, words in sass_published.VERDICTS.items()]
    return "\n\n".join(
        [
            "# Scalar PTX: the paper and ours",
            "Table V of H. Abdelkhalik et al. (arXiv 2208.11174) prints the SASS of an A100 as the compiler "
            f"of 2022 made it. Beside it what ptxas {sass.load(sass_published.TARGET).ptxas} makes for "
            f"{sass_published.TARGET}, with the kind of operands that comes nearest. "
            f"{link('What changed and why', 'sass.md')}; {link('all targets', LIST)}.",
            table(("verdict", "rows", "meaning"), meaning),
            "## Table V",
            table(("PTX", "printed", "ours", "operands", "verdict"), _published_rows(rows)),
            "## The insights",
            *_insights(),
        ]
    )


def _published_rows(rows: list[sass_published.Published]) -> list[tuple[str, ...]]:
    return [
        (
            f"`{row.ptx}`",
            f"`{row.printed}`",
            f"`{row.ours.replace('+', ' + ')}`",
            ptx_forms.operands_text(row.operands),
            row.verdict,
        )
        for row in rows
    ]


def _insights() -> Iterator[str]:
    for one in sass_published.insights():
        yield f"### {one.number}: {one.statement}"
        targets = list(one.found)
        found = [(sass.targets_text(where, targets), text) for text, where in one.by_text().items()]
        yield table(("targets", "found"), found)
