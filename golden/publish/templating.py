"""Generated pages are templates (templates/pages/NAME.md.j2) that hold their sentences; a page's module
gathers the facts, `render` puts the two together.

A template has the pieces of Markdown by name: table, link, figure, code, anchor, counted. Blank lines that
conditions and loops leave become one. `Page` is a generated page: its place in the site, and the function
that writes its Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from golden.errors import counted
from golden.explain.markdown import anchor, code, figure, link, table
from golden.files.templates import templates_in

FOLDER = Path(__file__).parent / "templates" / "pages"
_FENCED = re.compile(r"^(`{3,}).*?^\1$", re.S | re.M)
_BLANK = re.compile(r"\n{3,}")


@cache
def environment() -> jinja2.Environment:
    """The templates with the pieces of Markdown."""
    found = templates_in(FOLDER)
    found.globals |= {
        "anchor": anchor,
        "code": code,
        "counted": counted,
        "figure": figure,
        "link": link,
        "table": table,
    }
    found.filters["number"] = lambda value: f"{value:,}"
    return found


def render(template: str, /, **facts: Any) -> str:
    """A page or a section as Markdown, without blank lines at either end."""
    text = environment().get_template(f"{template}.md.j2").render(facts)
    return "".join(_without_gaps(text)).strip()


def _without_gaps(text: str) -> Iterator[str]:
    """The text with no more than one blank line in a row; code keeps its own."""
    at = 0
    for block in _FENCED.finditer(text):
        yield _BLANK.sub("\n\n", text[at : block.start()])
        yield block[0]
        at = block.end()
    yield _BLANK.sub("\n\n", text[at:])


@dataclass(frozen=True)
class Page:
    """One page of the site, not yet written.

    path: from the site's root, "architectures/hopper.md". title: for menus; the Markdown begins with the same
        as its heading.
    write: returns the Markdown; picklable (a functools.partial of a module's function), so that pages are
        written in parallel.
    shares: pages of the same word measure the same things: one process writes them all and keeps what it
        found. Empty: what this page measures no other does.
    """

    path: str
    title: str
    write: Callable[[], str]
    shares: str = ""
