"""The page that compares every table, figure and claim of the sources with what was found: spec/sources.yaml.

A row is equal, or different with a measured reason, or quoted with what would be needed to decide it. `shown`
names what shows it: a command, or a test, as pytest names it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from golden.catalog.timing import sections
from golden.paths import spec_folder
from golden.publish.templating import Page, render
from golden.yamlfile import Section, read

TITLE = "What the papers say and what we found"


def pages() -> list[Page]:
    """The one page."""
    return [Page("papers.md", TITLE, write)]


def write() -> str:
    """Counts by source, then the rows of each."""
    found = load()
    return render(
        "papers",
        title=TITLE,
        verdicts=list(VERDICTS.items()),
        heads=["source", *VERDICTS],
        counts=[[one.name, *map(str, one.counts().values())] for one in found],
        total=sum(len(one.rows) for one in found),
        sources=[(one.name, one.cite, [_cells(row) for row in one.rows]) for one in found],
    )


def _cells(row: Row) -> list[str]:
    """Item, verdict, what was found and why, and what shows it."""
    found = ". ".join(part for part in (row.figures, row.reason) if part)
    return [row.item, row.verdict, found, ", ".join(f"`{one}`" for one in row.shown)]


VERDICTS = {
    "equal": "found as the source says",
    "different": "other words or figures were found; the row gives the reason",
    "quoted": "not decided here; the row says what it would take",
}
COMMAND, TEST = "mmagold ", "tests/"


@dataclass(frozen=True)
class Row:
    """One table, figure or claim: what it is, the verdict, the figures found, why they differ or are quoted
    ("" where they are equal), and the tests and commands that show it."""

    item: str
    verdict: str
    figures: str
    reason: str
    shown: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """One paper or manual with its rows, in its own order."""

    name: str
    cite: str
    rows: tuple[Row, ...]

    def counts(self) -> dict[str, int]:
        """How many rows have each verdict, in the order of VERDICTS."""
        found = Counter(row.verdict for row in self.rows)
        return {verdict: found[verdict] for verdict in VERDICTS}


def load() -> list[Source]:
    """All sources; raises SpecError where the file is wrong, with file and line."""
    top = read(spec_folder() / "sources.yaml")
    found = [_source(section) for section in sections(top, "sources")]
    top.done()
    return found


def _source(section: Section) -> Source:
    name, cite = section.take_name("name"), section.take("cite", str).strip()
    rows = tuple(_row(row) for row in sections(section, "rows"))
    section.done()
    return Source(name, cite, rows)


def _row(row: Section) -> Row:
    item, figures = row.take("item", str).strip(), row.take("figures", str).strip()
    verdict, reason = row.take_choice("verdict", tuple(VERDICTS)), row.take("reason", str, "").strip()
    shown = tuple(row.take_names("shown"))
    if (verdict == "equal") == bool(reason):
        raise row.error(f"the row is {verdict}: expected {'no' if reason else 'a'} reason", "reason")
    if not shown:
        raise row.error("key 'shown' is empty, expected a command or a test", "shown")
    for one in shown:
        if not one.startswith(COMMAND) and not (one.startswith(TEST) and "::" in one):
            raise row.error(
                f"key 'shown' holds {one!r}, expected '{COMMAND}...' or '{TEST}...::NAME'", "shown"
            )
    row.done()
    return Row(item, verdict, figures, reason, shown)
