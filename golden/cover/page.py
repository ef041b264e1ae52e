"""One HTML page of functional coverage: every coverpoint of every instruction, holes first. Needs no other
host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from golden.cover.coverage import Coverage
from golden.cover.points import Coverpoint
from golden.files.output import write_text
from golden.files.templates import template_of

_TEMPLATE = Path(__file__).resolve().parents[1] / "templates" / "html" / "coverage.html"


def page(coverages: list[Coverage], title: str = "Functional coverage") -> str:
    """Returns the page for one coverage an instruction (see golden.cover.coverage.merged)."""
    return template_of(_TEMPLATE).render(coverages=coverages, title=title, binned=_binned)


def write_page(coverages: list[Coverage], path: str | Path) -> None:
    """Writes the page to a file."""
    write_text(path, page(coverages))


def _binned(coverage: Coverage, point: Coverpoint) -> list[dict[str, Any]]:
    """The bins of a point with their hits; `never`: it cannot be reached, and was not."""
    hits = coverage.hits[point.name].tolist()
    return [
        {"label": label, "hits": count, "never": not (reachable or count)}
        for (label, reachable), count in zip(point.bins.items(), hits, strict=True)
    ]
