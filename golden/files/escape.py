"""Text from outside (the name and title of somebody's unit, the path of a file) made harmless in each
language that is generated.

One function for each language; whatever text it gets, the result stays inside the place it was written for
and reads as the same words. HTML, SVG and XML: `html.escape` of the standard library
(golden/docs/pictures/svg.py, golden/cover/page.py); Typst takes text as string literals
(golden/docs/typst_writer.py). Numbers and the identifiers of the specs need none of this.
"""

from __future__ import annotations

import html
import re

_MARKUP = re.compile(r"[\\`*\[\]#~|!$]|(?<!\w)_|_(?!\w)")
_NUMBERED = re.compile(r"^(\d+)([.)])|^([-+=:])")
_TICKS = re.compile(r"`+")


def one_line(text: str) -> str:
    """The text in one line; characters that cannot be printed as backslash escapes."""
    words = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


def markdown(text: str) -> str:
    """Text in a paragraph, a heading, a list item or a cell of a table."""
    marked = _NUMBERED.sub(r"\1\\\2\3", _MARKUP.sub(r"\\\g<0>", one_line(text)))
    return html.escape(marked, quote=False)  # no reader of Markdown, however lax, finds an element in it


def plain(text: str) -> str:
    """The text that `markdown` was given."""
    return html.unescape(re.sub(r"\\([^A-Za-z0-9\s])", r"\1", text))


def fence(text: str) -> str:
    """What a block of code is put between: more backticks than it holds in a row, at least three."""
    return "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(text)), default=0))


def line_comment(text: str) -> str:
    """Text after `//` of C, SystemVerilog or a readmemh file:
    one line, which does not run on into the next."""
    inner = one_line(text).replace("??/", "?? /")
    return f"{inner} ." if inner.endswith("\\") else inner


def block_comment(text: str) -> str:
    """Text between `/*` and `*/` of C and SystemVerilog."""
    return re.sub(r"\*(?=/)|/(?=\*)", r"\g<0> ", one_line(text))


def file_stem(text: str) -> str:
    """A name for a file that needs no quotes in any shell."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip("._-") or "unit"
