"""The links of the site's Markdown: where each points to, and what stands for it in the page.

Generated pages link with the scheme `site:` and a path from the site's root. Hand-written pages are read on a
code host as well, so theirs are plain relative links; what lies outside docs/
is in the site under another path:

    dut.md#ports                 a page
    timing/figure06.svg          a file next to the pages, copied
    ../vectors/hopper/x.npz      vectors/hopper/x.npz, copied (text alone where the vectors are not installed)
    ../vectors/hopper            vectors/hopper/index.md, the list of them
    ../spec/formats/formats.yaml sources/spec/formats/formats.yaml.md, a page that shows the file

A link to nothing is an error that names the page and the link.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from golden.errors import DocsError, nearest
from golden.explain.markdown import SITE
from golden.paths import checkout, docs_folder, spec_folder
from golden.publish.explorer.address import INDEX

SOURCES, VECTORS = "sources/", "vectors/"
MADE = frozenset({INDEX})
"""Files that the site's build makes next to the pages."""
RECORDED = ".npz"
"""Files of vectors/ that a site has only on request."""
_OTHER = re.compile(r"[a-z][a-z0-9+.-]*:|#", re.I)
_FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})", re.M)
_LINK = re.compile(
    r"(?P<code>(?<!`)(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<image>!\[[^\]]*\]\([^()\s]+\))"
    r"|\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<target>[^()\s]+)\)"
    r'|href="(?P<href>[^"]+)"',
    re.S,
)


def repository_file(path: str) -> Path | None:
    """The file or folder of this path from the root of the repository; None where this installation does
    not have it."""
    for prefix, folder in (("spec", spec_folder), ("docs", docs_folder)):
        if path == prefix or path.startswith(f"{prefix}/"):
            return folder() / path[len(prefix) :].lstrip("/")
    root = checkout()
    return None if root is None else root / path


def source_page(path: str) -> str:
    """The page that shows a file of the repository."""
    return f"{SOURCES}{path}.md"


@dataclass
class Links:
    """Resolves the links of one page after the other; `sources` collects the files of the repository that
    need a page.

    pages: paths of all pages, from the site's root. vectors: whether the site has the recorded vectors, which
    are large; where it has not, their names are no links.
    """

    pages: frozenset[str]
    vectors: bool = True
    sources: set[str] = field(default_factory=set)

    def relink(self, text: str, page: str, hand_written: bool = False) -> str:
        """Returns the Markdown of a page with its links made relative ones that work in the site."""

        def replace(match: re.Match[str]) -> str:
            target = match["target"] or match["href"]
            if target is None:
                return match[0]
            path = self._from_root(target, page, hand_written)
            if path is None:
                return match[0]
            found = self._find(path, f"{page}: link '{target}'")
            return _written(match, None if found is None else _relative(found, page))

        return _outside_fences(text, lambda part: _LINK.sub(replace, part))

    def _from_root(self, target: str, page: str, hand_written: bool) -> str | None:
        """The path from the site's root; None for other schemes and anchors of the page itself."""
        if target.startswith(SITE):
            return target.removeprefix(SITE)
        if not hand_written or _OTHER.match(target):
            return None
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        if not path.startswith("../"):
            return path
        outside = path.removeprefix("../")
        return outside if outside.startswith(VECTORS) else SOURCES + outside

    def _find(self, path: str, what: str) -> str | None:
        """The path of the page (.md, with its anchor) or file to link to; None where this installation
        lacks the file."""
        bare = path.partition("#")[0]
        page, _, end = bare.rpartition(".")
        if bare in self.pages or bare in MADE or (end in ("json", "yaml") and f"{page}.md" in self.pages):
            return path
        if bare.startswith(VECTORS):
            return self._vectors(bare.rstrip("/"), what)
        if bare.startswith(SOURCES):
            return self._source(bare.removeprefix(SOURCES).rstrip("/"), what)
        if not bare.endswith(".md") and (docs_folder() / bare).is_file():
            return bare
        raise DocsError(
            f"{what} leads nowhere, expected a page or file of the site{nearest(bare, self.pages)}"
        )

    def _vectors(self, path: str, what: str) -> str | None:
        file = repository_file(path)
        if file is None:
            return None
        if file.is_dir() and f"{path}/index.md" in self.pages:
            return f"{path}/index.md"
        if not self.vectors and file.suffix == RECORDED:
            return None
        if not file.is_file():
            raise DocsError(
                f"{what} leads nowhere, expected a file of vectors/{nearest(path, _names(file.parent, path))}"
            )
        return path

    def _source(self, path: str, what: str) -> str | None:
        file = repository_file(path)
        if file is None:
            return None
        if file.is_dir():
            return "sources/index.md"
        if not file.is_file():
            raise DocsError(
                f"{what} leads nowhere, expected a file of the "
                f"repository{nearest(path, _names(file.parent, path))}"
            )
        self.sources.add(path)
        return source_page(path)


def _names(folder: Path, path: str) -> list[str]:
    parent = posixpath.dirname(path)
    return [f"{parent}/{file.name}" for file in folder.iterdir()] if folder.is_dir() else []


def _relative(path: str, page: str) -> str:
    return posixpath.relpath(path, posixpath.dirname(page) or ".")


def _written(match: re.Match[str], path: str | None) -> str:
    """The link as it stands in the page: Markdown to pages, HTML to files,
    the text alone where there is nothing."""
    if match["href"] is not None:
        return f'href="{re.sub(r"[.]md(?=#|$)", ".html", path)}"' if path else "class=mg-nowhere"
    if path is None:
        return match["text"]
    if path.partition("#")[0].endswith(".md"):
        return f"[{match['text']}]({path})"
    return f'<a href="{path}">{match["text"]}</a>'


def _outside_fences(text: str, change: Callable[[str], str]) -> str:
    """Applies `change` to the parts of a Markdown text that lie outside fenced code."""
    parts, position = [], 0
    while fence := _FENCE.search(text, position):
        end = re.compile(rf"^ {{0,3}}{re.escape(fence[2])}[`~]*[ \t]*$", re.M).search(text, fence.end())
        stop = end.end() if end else len(text)
        parts += [change(text[position : fence.start()]), text[fence.start() : stop]]
        position = stop
    return "".join([*parts, change(text[position:])])
