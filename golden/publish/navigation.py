"""The order of the site: what the side bar lists, and the way back to it from pages that it does not list."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence

from golden.explain.markdown import code
from golden.publish.templating import Page

# Caption and pages (without .md) of each part of the side bar, in order; hand-written pages that stand
# nowhere close the last.
PARTS: dict[str, list[str]] = {
    part: words.split()
    for part, words in {
        "Get started": "getting-started cheat-sheet faq explorer torch triton gemm glossary",
        "Check RTL": """
            check-my-unit read-a-mismatch-report write-a-spec dut simulators cocotb regress flows
            uvm vectors c-header export-sv diagnosis dissect proving qualification
        """,
        "Know the arithmetic": """
            arithmetic architectures/index comparison formats/index studies/index papers findings
            modifiers special-functions how-we-know sources/index
        """,
        "Measure hardware": """
            capture-a-gpu capture-a-cpu capture campaign timing sass profile vectors/hopper/index
        """,
        "Reference": "spec-schema api/index limits speed core add-an-architecture add-a-step",
    }.items()
}
# Pages in these folders hang under the folder's index; in the others they are reached
# by links and the search.
_UNDER_INDEX = ("architectures", "formats", "studies", "api")
_BELOW = {"campaigns": "campaign", "comparison": "comparison", "sass": "sass"}
"""Folders whose pages hang under a page of another name."""


def toctrees(page: str, pages: Sequence[Page]) -> str:
    """The tables of contents that close a page: the whole side bar on the start page,
    the folder on its index."""
    known = [item.path.removesuffix(".md") for item in pages]
    if page == "index.md":
        return "\n\n".join(_toctree(caption, paths) for caption, paths in _parts(known))
    folder, name = posixpath.split(page)
    if name != "index.md" or folder not in _UNDER_INDEX:
        return ""
    return _toctree(
        None, [path for path in known if posixpath.dirname(path) == folder and path != f"{folder}/index"]
    )


def _parts(known: list[str]) -> Iterator[tuple[str, list[str]]]:
    placed = {path for paths in PARTS.values() for path in paths} | {"index"}
    others = [path for path in known if "/" not in path and path not in placed]
    last = list(PARTS)[-1]
    for caption, paths in PARTS.items():
        yield caption, [path for path in paths if path in known] + (others if caption == last else [])


def _toctree(caption: str | None, paths: Iterable[str]) -> str:
    head = [":hidden:"] + ([f":caption: {caption}"] if caption else [])
    return code("\n".join([*head, "", *(f"/{path}" for path in paths)]), "{toctree}")


def is_listed(page: str) -> bool:
    """Whether the side bar leads to a page."""
    folder = posixpath.dirname(page)
    return folder in ("", *_UNDER_INDEX) or any(page.removesuffix(".md") in paths for paths in PARTS.values())


def parents(page: str) -> list[str]:
    """The pages above one that the side bar does not list, from the top (without .md): its breadcrumbs."""
    parts = page.removesuffix(".md").split("/")
    if parts[0] == "instructions" and len(parts) == 3:
        return ["architectures/index", f"architectures/{parts[1]}"]
    if parts[0] == "sources" and parts != ["sources", "index"]:
        return ["sources/index"]
    if len(parts) == 2 and parts[0] in _BELOW:
        return [_BELOW[parts[0]]]
    return [f"{parts[0]}/index"] if parts[0] in _UNDER_INDEX and parts[1:] != ["index"] else []
