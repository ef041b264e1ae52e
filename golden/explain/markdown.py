"""Pieces of Markdown (CommonMark with tables) that every generated page uses.

Links to other pages of the site have the scheme `site:` and a path from the site's root
(`site:architectures/hopper.md#evidence`, `site:vectors/hopper/x.npz`): the site makes relative links of them,
a standalone document keeps their text alone.
"""

from __future__ import annotations

import html
import re

from golden.files.escape import fence, table

__all__ = ["SITE", "anchor", "code", "figure", "link", "table"]

SITE = "site:"


def link(text: str, path: str) -> str:
    """A link to a path of the site."""
    return f"[{text}]({SITE}{path})"


def anchor(heading: str) -> str:
    """The anchor of a heading, as MyST and code hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def code(text: str, language: str = "text") -> str:
    """A block of code."""
    ticks = fence(text)
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}"


def figure(svg: str, caption: str) -> str:
    """A picture (one <svg> element) with its caption, plain text. An HTML block: no blank line may stand
    in the SVG."""
    lines = "\n".join(line for line in svg.splitlines() if line.strip())
    return f'<figure class="mg-figure">\n{lines}\n<figcaption>{html.escape(caption)}</figcaption>\n</figure>'
