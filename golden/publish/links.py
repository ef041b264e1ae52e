"""The links of the site's Markdown: where each points to, and what stands for it in the page.

Generated pages link with the scheme `site:` and a path from the site's root. Hand-written pages are read on a
code host as well, so theirs are plain relative links; what lies outside docs/
is in the site under another path:

    dut.md#ports                 a page
    timing/figure06.svg          a file next to the pages, copied
    ../vectors/hopper/x.npz      vectors/hopper/x.npz, copied (text alone where the vectors are not installed)
    ../vectors/hopper            vectors/hopper/index.md, the list of them
    ../spec/formats/formats.yaml sources/spec/formats/formats.yaml.md, a page that shows the file

A link to nothing is an error that names the page and the link. `pages` are the pages that show files of the
repository: the YAML specs, whatever else a page links to, and lists of the vectors.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from golden.errors import DocsError, SpecError, nearest
from golden.explain.markdown import SITE, code, link
from golden.files.inputs import read_json
from golden.paths import checkout, docs_folder, spec_folder
from golden.publish.explorer.address import INDEX
from golden.publish.templating import Page, render
from golden.vectors import captured

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


_LANGUAGES = {
    ".py": "python",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".md": "markdown",
    ".c": "c",
    ".h": "c",
    ".cu": "cuda",
    ".cuh": "cuda",
    ".cpp": "c++",
    ".toml": "toml",
    ".sv": "systemverilog",
    ".svh": "systemverilog",
}


def pages() -> list[Page]:
    """The list of the specs with a page for each file, and the lists of the captured vectors."""
    listing = Page("sources/index.md", "Spec files", write_index)
    specs = [file_page(path) for path in spec_paths()]
    root = checkout()
    manifests = [] if root is None else sorted((root / "vectors").glob("*/manifest.json"))
    return [listing, *specs, *(vectors_page(path) for path in manifests)]


def spec_paths() -> list[str]:
    """The YAML specs, by their paths in the repository."""
    folder = spec_folder()
    return sorted(f"spec/{path.relative_to(folder).as_posix()}" for path in folder.rglob("*.yaml"))


def file_page(path: str) -> Page:
    """The page of one file of the repository."""
    return Page(source_page(path), path, partial(write_file, path))


def write_file(path: str) -> str:
    """The file as a page."""
    file = repository_file(path)
    if file is None:
        raise SpecError(f"'{path}' is not in this installation")
    text = file.read_text("utf-8")
    fence = "`" * 4 if "```" in text else "`" * 3
    known = _LANGUAGES.get(file.suffix, "makefile" if file.name == "Makefile" else "text")
    # Characters of the longest file whose text is coloured: colours take up to ten times as much as the text.
    coloured = 20_000
    language = known if len(text) <= coloured else "text"
    return f"# {path}\n\n" + code(text, language).replace("```", fence, 1).removesuffix("```") + fence


def write_index() -> str:
    """The list of the specs, by folder."""
    by_folder: dict[str, list[str]] = {}
    for path in spec_paths():
        by_folder.setdefault(path.rpartition("/")[0], []).append(path)
    links = {
        folder: [link(path.rpartition("/")[2], source_page(path)) for path in paths]
        for folder, paths in by_folder.items()
    }
    return render("sources", folders=links)


def vectors_page(manifest: Path) -> Page:
    """The page that lists the captured vectors of one architecture."""
    name = manifest.parent.name
    return Page(f"{VECTORS}{name}/index.md", f"Captured vectors: {name}", partial(write_vectors, manifest))


def write_vectors(manifest: Path) -> str:
    """Device, date and every file, with the number of its dot products and its hash."""
    content = read_json(manifest)
    name, facts = manifest.parent.name, captured.device_text(content["device"])
    entries = content["instructions"]
    rows = [
        (
            link(f"`{key}`", f"{VECTORS}{name}/{entry['file']}"),
            f"{entry['dots']:,}",
            f"`{entry['sha256'][:16]}`",
        )
        for key, entry in entries.items()
    ]
    return render(
        "vectors",
        name=name,
        rows=rows,
        total=sum(entry["dots"] for entry in entries.values()),
        device=facts,
        manifest=f"{VECTORS}{name}/manifest.json",
    )
