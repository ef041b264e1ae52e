"""Pages that show files of the repository: the YAML specs, and whatever else a page links to; and lists of
the vectors."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from golden.errors import SpecError
from golden.explain.markdown import code, link
from golden.files.inputs import read_json
from golden.paths import checkout, spec_folder
from golden.publish.links import VECTORS, repository_file, source_page
from golden.publish.templating import Page, render
from golden.vectors import captured

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
