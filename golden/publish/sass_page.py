"""The pages of what ptxas makes of scalar PTX: one to search and compare targets in, and a paper against it.

The first holds all tables as data and is filled by templates/static/sass.js in the reader's browser; without
scripts it says how to ask the command line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from golden.catalog import ptx_forms, sass, sass_published
from golden.publish.templating import Page, render

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
    return render(
        "sass_list",
        title=TITLE,
        forms=len(ptx_forms.load().forms),
        targets=len(sass.targets()),
        published=PUBLISHED,
        root=_ROOT,
        content=content,
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
    verdicts = [(verdict, str(counts[verdict]), words) for verdict, words in sass_published.VERDICTS.items()]
    return render(
        "sass_published",
        ptxas=sass.load(sass_published.TARGET).ptxas,
        target=sass_published.TARGET,
        list=LIST,
        verdicts=verdicts,
        rows=[_published_row(row) for row in rows],
        insights=list(_insights()),
    )


def _published_row(row: sass_published.Published) -> list[str]:
    operands = ptx_forms.operands_text(row.operands)
    return [f"`{row.ptx}`", f"`{row.printed}`", f"`{row.ours.replace('+', ' + ')}`", operands, row.verdict]


def _insights() -> Iterator[dict[str, Any]]:
    for one in sass_published.insights():
        targets = list(one.found)
        rows = [(sass.targets_text(where, targets), text) for text, where in one.by_text().items()]
        yield {"number": one.number, "statement": one.statement, "rows": rows}
