"""The source tree that Sphinx builds the site from: every page with its links made relative, and the files
next to them.

Pages are independent of each other, so several processes write them. Their pictures wait in a folder of their
own until the HTML is there (golden/publish/slots.py).
"""

from __future__ import annotations

import json
import multiprocessing
import re
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

from golden.catalog.lookup import resolve
from golden.errors import DocsError, MmagoldError, nearest, one_line
from golden.explain.markdown import figure
from golden.model.instruction import Instruction
from golden.paths import checkout, docs_folder
from golden.publish import claims, finder, links, navigation, page_cache, slots
from golden.publish.links import RECORDED, VECTORS, Links
from golden.publish.pictures import datapath, tree
from golden.publish.templating import Page

Progress = Callable[[str, int, int], None]
GENERATORS = (
    "golden.publish.instruction_page",
    "golden.publish.architecture_page",
    "golden.publish.comparison",
    "golden.publish.format_page",
    "golden.publish.study_page",
    "golden.publish.sass_page",
    "golden.publish.papers_page",
    "golden.publish.links",
    "golden.publish.api_page",
)
"""Modules with a function `pages() -> list[Page]`."""
TEMPLATES = Path(__file__).parent / "templates"
STATIC = (
    *sorted((TEMPLATES / "static").iterdir()),
    Path(__file__).parent / "pictures" / "fragments.css",
    Path(__file__).parent / "pictures" / "fragments.js",
)
"""Style sheets and scripts of the site."""
_SITE_LINK = re.compile(r"<!-- site: (\S+) -->(.+?)<!-- / -->", re.S)
"""A link of a hand-written page to a generated one, <!-- site: api/index.md -->the API<!-- / -->; a code host
has no such page, and shows the text alone."""
_MARK = re.compile(r"^<!-- picture: (?P<kind>\S+) (?P<name>\S+) -->$", re.M)
_PICTURES: dict[str, tuple[Callable[[Instruction], str], str]] = {
    "datapath": (
        datapath.datapath,
        "Datapath of {name} on {architecture}, with the width of every register.",
    ),
    "tree": (tree.summation_tree, "The order in which {name} on {architecture} adds."),
}
"""Pictures that a hand-written page asks for, <!-- picture: datapath hopper:HMMA.16816.F32 -->; a code host
shows nothing there."""


@dataclass(frozen=True)
class HandWritten:
    """A page of docs/; a Page's `write`."""

    path: Path

    def __call__(self) -> str:
        """Its text, without the claims and with the pictures and links that it asks for."""
        text = _SITE_LINK.sub(r"[\2](\1)", claims.without_claims(self.path.read_text("utf-8")))
        return drawn(text, self.path.name)


def drawn(text: str, page: str) -> str:
    """The page with its pictures.

    Raises:
        DocsError: a kind of picture that there is not. UnknownNameError: an instruction that there is not.
    """

    def picture(match: re.Match[str]) -> str:
        if match["kind"] not in _PICTURES:
            raise DocsError(
                f"{page}: picture '{match['kind']}' is unknown, expected {' or '.join(_PICTURES)}"
                f"{nearest(match['kind'], _PICTURES)}"
            )
        draw, caption = _PICTURES[match["kind"]]
        ins = resolve(match["name"])
        return figure(draw(ins), caption.format(name=ins.name, architecture=ins.architecture))

    return _MARK.sub(picture, text)


def all_pages() -> list[Page]:
    """Every page, generated and hand-written, in the order of the side bar.

    Raises:
        DocsError: two pages of the same path.
    """
    pages = hand_written()
    for name in GENERATORS:
        pages += import_module(name).pages()
    seen: set[str] = set()
    for page in pages:
        if page.path in seen:
            raise DocsError(f"two pages have the path '{page.path}', expected one")
        seen.add(page.path)
    return pages


def hand_written() -> list[Page]:
    """The pages of docs/."""
    folder = docs_folder()
    return [
        Page(path.relative_to(folder).as_posix(), _title(path), HandWritten(path))
        for path in sorted(folder.rglob("*.md"))
        if not path.name.startswith(".")
    ]


def _title(path: Path) -> str:
    first = next((line for line in path.read_text("utf-8").splitlines() if line.strip()), "")
    if not first.startswith("# "):
        raise DocsError(f"{path}:1: the page begins with '{first[:40]}', expected its title, '# ...'")
    return first[2:].strip()


def write(folder: Path, pages: Sequence[Page], jobs: int, progress: Progress, vectors: bool = False) -> None:
    """Writes the tree into an empty folder; `progress` is called with the work, how much and of how much.
    `vectors`: whether the site will have the recorded vectors.

    Raises:
        DocsError: a link leads nowhere, or a page could not be written; the message names the page.
    """
    shutil.copyfile(TEMPLATES / "conf.py", folder / "conf.py")
    for path in STATIC:
        _copy(path, folder / "_static" / path.name)
    for name in assets():
        _copy(docs_folder() / name, folder / name)
    _write(folder / "_static" / finder.FILE, finder.script(pages))
    known = frozenset(page.path for page in pages)
    linked: set[str] = set()
    together: dict[str, list[tuple[Page, str]]] = {}
    for page in pages:
        together.setdefault(page.shares or page.path, []).append(
            (page, navigation.toctrees(page.path, pages))
        )
    # The pages of instructions come last: they are many and quick, so that no process ends on a slow one.
    order = sorted(together.values(), key=lambda some: some[0][0].path.startswith("instructions/"))
    done = 0
    kept = page_cache.place()
    tasks = [partial(_write_pages, folder, some) for some in order]
    for some in _results(tasks, (known, vectors, kept), jobs):
        for sources in some:
            linked |= sources
            done += 1
            progress("writing pages", done, len(pages))
    page_cache.remove_old(kept)
    _start((known | {links.file_page(path).path for path in linked}, vectors, kept))
    for source in sorted(linked - set(links.spec_paths())):
        _write_page(folder, links.file_page(source), "")


def _write_pages(folder: Path, pages: Sequence[tuple[Page, str]]) -> list[set[str]]:
    """Writes pages with their tables of contents; returns for each what `_write_page` does."""
    return [_write_page(folder, page, toctrees) for page, toctrees in pages]


def _write_page(folder: Path, page: Page, toctrees: str) -> set[str]:
    """Writes one page; returns the files of the repository that it links to."""
    links = Links(_known, _vectors)
    try:
        text = links.relink(page_cache.text(page, _kept), page.path, isinstance(page.write, HandWritten))
    except MmagoldError as error:
        raise DocsError(f"{error}" if page.path in str(error) else f"{page.path}: {error}") from error
    except Exception as error:
        raise DocsError(f"{page.path}: {one_line(error)}") from error
    text, pictures = slots.cut(text)
    parts = [part for part in (_front_matter(page.path), text.rstrip(), toctrees) if part]
    _write(folder / page.path, "\n\n".join(parts) + "\n")
    if pictures:
        _write(folder.parent / slots.FOLDER / f"{page.path}.json", json.dumps(pictures))
    return links.sources


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _front_matter(path: str) -> str:
    """What Sphinx wants to know of a page: that no table of contents lists it, that the search shall not
    read it."""
    keys = [] if navigation.is_listed(path) else ["orphan: true"]
    if path.startswith("sources/"):  # YAML and the change log: guides say it better
        keys.append("nosearch: true")
    return "\n".join(["---", *keys, "---"]) if keys else ""


_known: frozenset[str] = frozenset()  # the paths of all pages, in each process
_vectors = False  # whether the site has the recorded vectors
_kept = Path()  # where texts of pages are kept
_Known = tuple[frozenset[str], bool, Path]


def _start(given: _Known, worker: bool = False) -> None:
    global _known, _vectors, _kept
    _known, _vectors, _kept = given
    if worker:  # Ctrl-C is the parent's
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _results(
    tasks: Sequence[Callable[[], list[set[str]]]], given: _Known, jobs: int
) -> Iterator[list[set[str]]]:
    """Runs the tasks in `jobs` processes, in any order; the first error stops them all."""
    if jobs == 1:
        _start(given)
        yield from (task() for task in tasks)
        return
    # Fresh processes: a fork of one that has threads (the C core's, NumPy's) can hang.
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _start, (given, True)) as pool:
        try:
            for future in as_completed([pool.submit(task) for task in tasks]):
                yield future.result()
        except BrokenProcessPool as error:
            raise DocsError(
                "a process that wrote pages was killed, perhaps for lack of memory; --jobs 1 needs least"
            ) from error
        except BaseException:
            pool.shutdown(cancel_futures=True)  # waits for the pages that are being written
            raise


def assets() -> list[str]:
    """Files next to the hand-written pages: pictures, reports for machines."""
    folder = docs_folder()
    files = (
        path
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".md" and not path.name.startswith(".")
    )
    return sorted(path.relative_to(folder).as_posix() for path in files)


def copy_files(site: Path, vectors: bool) -> None:
    """Copies into the built site what its pages link to as files: pictures, manifests and, if `vectors` is
    set, the recorded vectors."""
    for name in assets():
        _copy(docs_folder() / name, site / name)
    root = checkout()
    if root is not None and (root / "vectors").is_dir():
        ignored = shutil.ignore_patterns(".*", *([] if vectors else [f"*{RECORDED}"]))
        shutil.copytree(root / "vectors", site / VECTORS, dirs_exist_ok=True, ignore=ignored)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
