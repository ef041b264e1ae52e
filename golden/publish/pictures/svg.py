"""A small SVG builder: elements as strings, attributes and text escaped, colours by style.

A style is a class (the site's CSS recolours it for dark mode) together with the presentation attributes of
light mode and print. Lengths are CSS pixels at the picture's natural size.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

SANS = "DejaVu Sans, Helvetica, Arial, DejaVu Sans Mono, sans-serif"
TIMES, MINUS = "\N{MULTIPLICATION SIGN}", "\N{MINUS SIGN}"
WIDTH = 760
"""Of a picture that fills a page."""
SIZE = 11
"""Font size of most text."""
BOLD = 1.12
"""Bold text is wider by this factor."""

STYLES: dict[str, dict[str, str]] = {
    "line": {"class": "mg-line", "fill": "none", "stroke": "#4a5560"},
    "block": {"class": "mg-block", "fill": "#e6eef7", "stroke": "#54708f"},
    "paper": {"class": "mg-paper", "fill": "#ffffff", "stroke": "#54708f"},
    "block2": {"class": "mg-block2", "fill": "#f5ecd9", "stroke": "#94783f"},
    "accent": {"class": "mg-accent", "fill": "#d5e9cf", "stroke": "#55834a"},
    "lost": {"class": "mg-lost", "fill": "#f7d6d2", "stroke": "#b5453c"},
    "text": {"class": "mg-text", "fill": "#1b2229"},
    "muted": {"class": "mg-muted", "fill": "#5c6873"},
}
PALETTE = ("#cfe2f3", "#fbe0c4", "#d6ecd2", "#f6d1d3", "#e0d7ef", "#f4efc3", "#cdecec", "#e9dccf")
"""Fills of mg-c0 to mg-c7 in light mode."""
STYLES |= {
    f"c{i}": {"class": f"mg-c{i}", "fill": colour, "stroke": "#7d8790"} for i, colour in enumerate(PALETTE)
}

# Advance widths of DejaVu Sans for the characters from space to ~, in thousandths of the font size.
_WIDTHS = (
    "318 401 460 838 636 950 780 275 390 390 500 838 318 361 318 337 636 636 636 636 636 636 636 636 636 "
    "636 337 337 838 838 838 531 1000 684 686 698 770 632 575 775 752 295 295 656 557 863 748 787 603 787 "
    "695 635 611 732 684 989 685 611 685 390 337 390 838 500 500 613 635 550 635 615 352 635 634 278 278 "
    "579 278 974 634 612 635 635 411 521 392 634 592 818 592 592 525 636 337 636 838"
)
_ADVANCE = {chr(32 + i): int(width) / 1000 for i, width in enumerate(_WIDTHS.split())}


def number(value: float) -> str:
    """A length with at most one decimal: the shortest text."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if value % 1 else str(int(value))


def element(tag: str, content: str = "", style: str | None = None, **attributes: Any) -> str:
    """One element. `content` is markup; attributes are escaped, `_` in their names becomes `-`; None
    leaves one out."""
    given = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    return _element(tag, content, {**(STYLES[style] if style else {}), **given})


def _element(tag: str, content: str, attributes: dict[str, Any]) -> str:
    words = "".join(
        f' {name}="{_attribute(value)}"' for name, value in attributes.items() if value is not None
    )
    return f"<{tag}{words}>{content}</{tag}>" if content else f"<{tag}{words}/>"


def _attribute(value: object) -> str:
    return number(value) if isinstance(value, (int, float)) else html.escape(str(value), quote=True)


def escape(words: str) -> str:
    """Text as markup."""
    return html.escape(words, quote=False)


def text(x: float, y: float, words: str, style: str = "text", **attributes: Any) -> str:
    """One line of text with its baseline at y. anchor: start (default), middle or end."""
    anchor = attributes.pop("anchor", None)
    return element(
        "text",
        escape(words),
        style,
        x=x,
        y=y,
        text_anchor=anchor if anchor != "start" else None,
        **attributes,
    )


def rect(
    x: float, y: float, width: float, height: float, style: str | None = "block", **attributes: Any
) -> str:
    """A rectangle."""
    return element("rect", "", style, x=x, y=y, width=width, height=height, **attributes)


def path(d: str, style: str | None = "line", **attributes: Any) -> str:
    """A path."""
    return element("path", "", style, d=d, **attributes)


def line(points: Sequence[tuple[float, float]], **attributes: Any) -> str:
    """An open line through the points."""
    return path("M" + "L".join(f"{number(x)} {number(y)}" for x, y in points), **attributes)


def arrow(points: Sequence[tuple[float, float]], **attributes: Any) -> str:
    """A line through the points with a head at the last; the last stretch is horizontal or vertical."""
    (x0, y0), (x1, y1) = points[-2:]
    back = (-4 if x1 > x0 else 4, 0) if abs(x1 - x0) > abs(y1 - y0) else (0, -4 if y1 > y0 else 4)
    side = (back[1] * 0.75, back[0] * 0.75)
    corners = [(x1, y1), (x1 + 1.5 * back[0] + side[0], y1 + 1.5 * back[1] + side[1])]
    corners.append((x1 + 1.5 * back[0] - side[0], y1 + 1.5 * back[1] - side[1]))
    head = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in corners) + "Z"
    filled = {"class": "mg-line mg-head", "fill": STYLES["line"]["stroke"], "stroke": "none"}
    return line(points, **attributes) + element("path", "", None, d=head, **filled)


def group(content: str | Iterable[str], **attributes: Any) -> str:
    """A <g> around markup."""
    return element("g", content if isinstance(content, str) else "".join(content), **attributes)


def width_of(words: str, size: float = SIZE) -> float:
    """Estimated width of a text: in DejaVu Sans, or in the monospaced font that takes its place in a PDF,
    the wider of both."""
    return max(sans_width_of(words, size), 0.602 * size * len(words))


def sans_width_of(words: str, size: float = SIZE) -> float:
    """Width of a text in DejaVu Sans; Helvetica and Arial are narrower."""
    return size * sum(_ADVANCE.get(letter, 0.84) for letter in words)


def wrap(words: str, width: float, size: float = SIZE) -> list[str]:
    """Breaks a text into lines that fit `width`; a word that is wider stands alone."""
    lines: list[str] = []
    for word in words.split():
        if lines and width_of(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def document(width: float, height: float, content: Iterable[str], name: str, title: str) -> str:
    """One <svg> element of this natural size, never wider than its container.

    name: prefix of all ids of this picture, given by the caller, once for each picture of a page. title: read
    aloud by screen readers.
    """
    label = element("title", escape(title), id=f"{name}-title")
    return _element(
        "svg",
        label + "\n" + "\n".join(content),
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {number(width)} {number(height)}",
            "width": width,
            "height": height,
            "class": "mg-picture",
            "role": "img",
            "aria-labelledby": f"{name}-title",
            "style": "max-width:100%;height:auto",
            "font-family": SANS,
            "font-size": SIZE,
        },
    )
