"""The text of generated pages that an earlier build made of the same files.

To compute what pages say takes most of the time of a build, and nearly always nothing of it has changed. Each
text is kept in the cache folder, below the digest of every file that can decide it: a change of any of them
makes all texts anew. A text is taken before its links are resolved, so that a link to nothing is noticed in
each build.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from golden.errors import MmagoldError
from golden.files.output import write_text
from golden.paths import cache_folder, checkout, docs_folder, spec_folder
from golden.publish.templating import Page

PLACE = "pages"
"""The folder of all digests in the cache folder."""
_PACKAGE = Path(__file__).resolve().parents[1]
_LIBRARIES = ("jinja2", "matplotlib", "ml_dtypes", "numpy", "pyyaml", "rich")
"""Libraries that make a part of a page: numbers, pictures, tables."""
_MADE_HERE = "golden.publish."
_OF_ANY_FILE = "golden.publish.links"
"""Pages of this module show any file of the repository, and are made in no time."""


def place() -> Path:
    """The folder for the texts that belong to the files of now."""
    found = hashlib.sha256()
    for part in (platform.python_version(), str(checkout() is None), *map(_version, _LIBRARIES)):
        found.update(f"{part}\0".encode())
    docs = docs_folder()
    for folder in _folders():
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder)
            if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in name.parts):
                if path.parent == docs and path.suffix == ".md":  # a guide, which no other page reads
                    continue
                found.update(f"{folder.name}/{name.as_posix()}\0{path.stat().st_size}\0".encode())
                found.update(path.read_bytes())
    return cache_folder().absolute() / PLACE / found.hexdigest()[:32]


def _folders() -> list[Path]:
    """All that a page may read, and the code that writes it."""
    root, packages = checkout(), _PACKAGE.parent
    recorded = [] if root is None else [root / "vectors"]
    return [
        spec_folder(),
        docs_folder(),
        *recorded,
        *(packages / name for name in ("golden", "hw_capture", "rtl_tb")),
    ]


def _version(library: str) -> str:
    try:
        return f"{library} {version(library)}"
    except PackageNotFoundError:
        return f"{library} none"


def text(page: Page, kept: Path) -> str:
    """What the page says: kept in this folder by an earlier build, or written now and kept."""
    function = page.write.func if isinstance(page.write, partial) else page.write
    module = getattr(function, "__module__", "")
    if not module.startswith(_MADE_HERE) or module == _OF_ANY_FILE or not hasattr(function, "__qualname__"):
        return page.write()
    file = kept / hashlib.sha256(page.path.encode()).hexdigest()
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeError):
        written = page.write()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, written)
    except (OSError, MmagoldError):
        pass  # without a place for it the next build computes it again
    return written


def remove_old(kept: Path) -> None:
    """Removes the texts of outdated files, and the current texts, too, if a file changed meanwhile."""
    if place() != kept:
        shutil.rmtree(kept, ignore_errors=True)
    for folder in kept.parent.iterdir() if kept.parent.is_dir() else ():
        if folder != kept:
            shutil.rmtree(folder, ignore_errors=True)
