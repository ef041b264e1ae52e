"""Markdown to a PDF: walks the tokens of markdown-it and writes Typst markup; pictures become SVG files.

Every piece of text is written as a Typst string, so that no character of a name can be taken for markup.
"""

from __future__ import annotations

import html
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from golden.errors import DocsError, missing

if TYPE_CHECKING:
    from markdown_it.token import Token

_FIGURE = re.compile(
    r"<figure "
    r'class="mg-figure">\s*(?P<svg><svg.*?</svg>)\s*<figcaption>(?P<caption>.*?)</figcaption>\s*</figure>',
    re.S,
)
_SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.S)
_TAG = re.compile(r"<[^>]*>")
_SIZE = re.compile(r'viewBox="0 0 (?P<width>[\d.]+) (?P<height>[\d.]+)"')
_BREAKS = re.compile(r"(?<=[.,:_/=*])|(?<=[0-9a-f]{8})")
_OPEN = {
    "strong_open": "#strong[",
    "em_open": "#emph[",
    "s_open": "#strike[",
    "blockquote_open": "#quote(block: true)[",
}
_CLOSE = ("strong_close", "em_close", "s_close", "blockquote_close", "link_close")


def pdf(tokens: Sequence[Token], title: str, subtitle: str, note: str, depth: int = 2) -> bytes:
    """Sets a document.

    Args:
        tokens: of the whole text, without the heading that is the title.
        title, subtitle: at the top. note: at the foot of every page. depth: of headings
            in the table of contents.

    Raises:
        DocsError: Typst is not installed, or refuses the document.
    """
    try:
        import typst
    except ImportError:
        raise missing("typst") from None
    writer = _Writer()
    body = "".join(writer.blocks(tokens))
    settings = {"doc-title": title, "doc-subtitle": subtitle, "doc-note": note}
    head = (
        "".join(f"#let {name} = {_string(value)}\n" for name, value in settings.items())
        + f"#let doc-depth = {depth}\n"
    )
    look = (Path(__file__).parent / "templates" / "document.typ").read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for name, svg in writer.pictures.items():
            (Path(folder) / name).write_text(svg, "utf-8")
        source = Path(folder) / "document.typ"
        source.write_text(f"{head}{look}{body}", "utf-8", "backslashreplace")
        for tags in (True, False):
            try:
                return bytes(
                    typst.compile(str(source), font_paths=_fonts(), ignore_system_fonts=True, pdf_tags=tags)
                )
            except RuntimeError as error:
                refused = " ".join(str(error).split())
                # Tags are for screen readers. Typst 0.15.1 fails at them where a page ends within some rows.
                if "internal error" not in refused:
                    break
    raise DocsError(f"Typst refuses the document: {refused}")


def _fonts() -> list[str]:
    """Folders with DejaVu Sans, which the pictures are drawn with: Matplotlib brings it."""
    try:
        import matplotlib
    except ImportError:
        return []
    return [str(Path(matplotlib.get_data_path()) / "fonts" / "ttf")]


def _string(text: str) -> str:
    """A Typst string literal."""
    return json.dumps(text, ensure_ascii=False)


def _text(text: str) -> str:
    return f"#{_string(text)};" if text else ""


class _Writer:
    """Turns block and inline tokens into markup and collects the pictures by file name."""

    def __init__(self) -> None:
        self.pictures: dict[str, str] = {}

    def blocks(self, tokens: Sequence[Token]) -> Iterator[str]:
        """Yields the markup of a list of block tokens."""
        index = 0
        while index < len(tokens):
            token = tokens[index]
            if token.type == "table_open":
                end = next(i for i in range(index, len(tokens)) if tokens[i].type == "table_close")
                yield self._table(tokens[index:end])
                index = end
            elif token.type == "inline" and token.content.endswith(":"):
                # What it announces stands on the same page.
                yield f"#block(sticky: true)[{self._block(token)}]"
            else:
                yield self._block(token)
            index += 1

    def _block(self, token: Token) -> str:
        kind = token.type
        if kind == "heading_open":
            return f"\n\n#heading(level: {token.tag[1:]})["
        if kind in ("heading_close", "list_item_close"):
            return "]\n" if kind == "heading_close" else "],\n"
        if kind == "inline":
            return "".join(self._inline(child) for child in token.children or [])
        if kind == "paragraph_open":
            return "" if token.hidden else "\n\n"
        if kind in ("fence", "code_block"):
            return f"\n\n#raw({_string(token.content.rstrip())}, block: true)\n\n"
        if kind in ("bullet_list_open", "ordered_list_open"):
            return f"\n\n#{'list' if kind.startswith('bullet') else 'enum'}("
        if kind in ("bullet_list_close", "ordered_list_close"):
            return ")\n\n"
        if kind == "list_item_open":
            return "["
        if kind == "html_block":
            return self._html(token.content)
        return _OPEN.get(
            kind, "]" if kind in _CLOSE else "\n\n#line(length: 100%)\n\n" if kind == "hr" else ""
        )

    def _inline(self, token: Token) -> str:
        kind = token.type
        if kind == "text":
            return _text(token.content)
        if kind == "code_inline":
            return f"#raw({_string(token.content)});"
        if kind == "softbreak":
            return " "
        if kind == "hardbreak" or (kind == "html_inline" and token.content.startswith("<br")):
            return "#linebreak();"
        if kind == "link_open":
            return f"#link({_string(str(token.attrs['href']))})["
        return _OPEN.get(kind, "]" if kind in _CLOSE else "")

    def _html(self, content: str) -> str:
        """A picture, the summary of a folded part in bold, else the text between the tags."""
        found = _FIGURE.search(content)
        if found is not None:
            return self._picture(found["svg"], html.unescape(found["caption"]))
        summary = _SUMMARY.search(content)
        if summary is not None:
            return f"\n\n#strong[{_text(html.unescape(_TAG.sub('', summary[1])))}]\n\n"
        return f"\n\n{_text(html.unescape(_TAG.sub(' ', content)).strip())}\n\n"

    def _picture(self, svg: str, caption: str) -> str:
        name, size = f"picture{len(self.pictures)}.svg", _SIZE.search(svg)
        if size is None:
            raise DocsError(f"picture '{caption}' has no viewBox that starts at 0 0")
        self.pictures[name] = svg
        return f"\n\n#picture({_string(name)}, {size['width']}, {size['height']}, {_string(caption)})\n\n"

    def _table(self, tokens: Sequence[Token]) -> str:
        rows: list[list[Token]] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                rows[-1].append(token)
        head, body = (
            ", ".join(f"[{self._block(cell)}]" for row in part for cell in row)
            for part in (rows[:1], rows[1:])
        )
        header = f"table.header({head}), " if any(cell.content for cell in rows[0]) else ""
        plain = "" if header else "fill: none, "
        return f"\n\n#table(columns: {_columns(rows)}, {plain}{header}{body})\n\n"


def _columns(rows: Sequence[Sequence[Token]]) -> str:
    """As wide as their text where all of it fits the page; else shares of the page, at least the longest
    word of each."""
    columns = list(zip(*rows, strict=True))
    # Characters of a table's line on a page; of the widest column, for the shares of the page.
    line, long = 120, 60
    wanted = [min(max(_length(cell) for cell in column), long) + 1 for column in columns]
    if sum(wanted) + 2 * len(wanted) <= line:
        return str(len(wanted))
    least = [max(_longest_word(cell) for cell in column) + 2 for column in columns]
    wanted = [max(low, wish) for low, wish in zip(least, wanted, strict=True)]
    spare, wishes = max(line - sum(least), 0), max(sum(wanted) - sum(least), 1)
    shares = [low + spare * (wish - low) / wishes for low, wish in zip(least, wanted, strict=True)]
    return f"({', '.join(f'{share:.1f}fr' for share in shares)},)"


def _length(cell: Token) -> int:
    """Characters as wide as in the text face; code is half as wide again."""
    return (
        sum(len(part.content) * (3 if part.type == "code_inline" else 2) for part in cell.children or []) // 2
    )


def _longest_word(cell: Token) -> int:
    """Characters that cannot be broken; code breaks at its punctuation."""
    words = [
        word
        for part in cell.children or []
        for word in (_BREAKS.sub(" ", part.content) if part.type == "code_inline" else part.content).split()
    ]
    return max((len(word) * 5 // 4 for word in words), default=0)


def figures(text: str) -> Iterator[re.Match[str]]:
    """The pictures of a Markdown text: matches with the groups `svg` and `caption`."""
    return _FIGURE.finditer(text)


def without_figures(text: str, replacement: Any = "") -> str:
    """The text with every picture replaced: a string, or a function of the match."""
    return _FIGURE.sub(replacement, text)
