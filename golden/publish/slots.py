"""Pictures while Sphinx works: they are most of the text of the pages, Sphinx would only hand them on, and
many are the same on many pages.

`cut` takes them out of a page's Markdown and leaves slots; `put` fills the slots of the built page. Large
pictures of registers and plots go to files of their own, one for all pages that show it, which a page loads
where its reader comes near (later_pictures.js): as scripts, which pages opened as files can load, too, and
packed, which leaves an eighth of them.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from pathlib import Path

from golden.errors import DocsError

FOLDER = "pictures"
"""Where pictures wait next to the source tree, and where pages share them in the site."""
_PICTURE = re.compile(r"<svg\b.*?</svg>", re.S)
_SLOT = re.compile(r'<svg data-slot="(\d+)"></svg>')
_SHARED = re.compile(r'class="[^"]*\b(mg-fragment|mg-plot)\b')
_TITLE = re.compile(r"<title id=\"[^\"]*\">(.*?)</title>", re.S)
_NAME = re.compile(r' aria-label="([^"]*)"')
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


def cut(text: str) -> tuple[str, list[str]]:
    """The text with slots, and the pictures in their order."""
    pictures: list[str] = []

    def slot(match: re.Match[str]) -> str:
        pictures.append(match[0])
        return f'<svg data-slot="{len(pictures) - 1}"></svg>'

    return _PICTURE.sub(slot, text), pictures


def put(folder: Path, site: Path) -> None:
    """Puts the pictures that wait in `folder`, a JSON file for each page, into the built pages.

    Raises:
        DocsError: the number of slots is not that of the pictures.
    """
    shared = site / "_static" / FOLDER
    shared.mkdir(parents=True, exist_ok=True)
    for path in folder.rglob("*.json"):
        pictures = json.loads(path.read_text("utf-8"))
        page = site / path.relative_to(folder).with_suffix("").with_suffix(".html")
        text, *rest = _SLOT.split(page.read_text("utf-8"))  # text, number, text, number, ...
        if len(rest) != 2 * len(pictures):
            raise DocsError(
                f"{page.relative_to(site)}: {len(rest) // 2} of {len(pictures)} pictures found their place"
            )
        parts = [
            part
            for number, after in zip(rest[::2], rest[1::2], strict=True)
            for part in (_placed(pictures[int(number)], shared), after)
        ]
        page.write_text("".join([text, *parts]), "utf-8")


def _placed(picture: str, shared: Path) -> str:
    """What stands in the page for a picture: itself, or a place of its size that loads it."""
    title, size = _TITLE.search(picture) or _NAME.search(picture), _SIZE.search(picture)
    large = 3000
    if not _SHARED.search(picture) or len(picture) < large or title is None or size is None:
        return picture
    # The title names the instruction; without it the pictures of a layout are one.
    drawing = re.sub(
        r' aria-label(ledby)?="[^"]*"', ' aria-hidden="true"', _TITLE.sub("", picture, count=1), count=1
    )
    key = hashlib.sha256(drawing.encode()).hexdigest()[:16]
    file = shared / f"{key}.js"
    if not file.exists():
        packed = base64.b64encode(gzip.compress(drawing.encode(), mtime=0)).decode()
        file.write_text(f'mmagoldPicture("{key}","{packed}");\n', "ascii")
    label = html.escape(html.unescape(title[1]))
    return (
        f'<div class="mg-later" data-picture="{key}" role="img" aria-label="{label}" '
        f'style="width:{size[1]}px;aspect-ratio:{size[1]}/{size[2]}">'
        "<noscript>This picture needs JavaScript.</noscript></div>"
    )
