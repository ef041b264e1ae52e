"""The page that holds every table, figure and claim of the sources against what was found."""

from __future__ import annotations

from golden.catalog import sources
from golden.publish.page import Page
from golden.publish.templating import render

TITLE = "What the papers say and what we found"


def pages() -> list[Page]:
    """The one page."""
    return [Page("papers.md", TITLE, write)]


def write() -> str:
    """Counts by source, then the rows of each."""
    found = sources.load()
    return render(
        "papers",
        title=TITLE,
        verdicts=list(sources.VERDICTS.items()),
        heads=["source", *sources.VERDICTS],
        counts=[[one.name, *map(str, one.counts().values())] for one in found],
        total=sum(len(one.rows) for one in found),
        sources=[(one.name, one.cite, [_cells(row) for row in one.rows]) for one in found],
    )


def _cells(row: sources.Row) -> list[str]:
    """Item, verdict, what was found and why, and what shows it."""
    found = ". ".join(part for part in (row.figures, row.reason) if part)
    return [row.item, row.verdict, found, ", ".join(f"`{one}`" for one in row.shown)]
