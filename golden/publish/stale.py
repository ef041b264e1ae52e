"""What a built site was made from: the hashes in its manifest.json, held against the files of today."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from golden import __version__
from golden.errors import DocsError
from golden.paths import checkout, docs_folder, spec_folder

MANIFEST = "manifest.json"
_SCHEMA = "mmagold docs 1"


def inputs() -> dict[str, str]:
    """The SHA-256 of everything that the site says: specs (timings among them), hand-written pages,
    manifests of the vectors."""
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in _files()}


def _files() -> Iterator[tuple[str, Path]]:
    root = checkout()
    patterns = [("spec", spec_folder(), "*.yaml"), ("docs", docs_folder(), "*")]
    if root is not None:
        patterns.append(("vectors", root / "vectors", "manifest.json"))
    for prefix, folder, pattern in patterns:
        for path in sorted(folder.rglob(pattern)):
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
                yield f"{prefix}/{path.relative_to(folder).as_posix()}", path


def write(site: Path, made_from: dict[str, str]) -> None:
    """Writes the manifest into a site."""
    content = {"schema": _SCHEMA, "mmagold": __version__, "inputs": made_from}
    (site / MANIFEST).write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def is_site(folder: Path) -> bool:
    """Whether the folder holds a site that `mmagold docs build` made."""
    try:
        return bool(json.loads((folder / MANIFEST).read_text("utf-8"))["schema"] == _SCHEMA)
    except (OSError, ValueError, TypeError, KeyError):
        return False


def changes(site: Path) -> list[str]:
    """What differs between the files of today and those that the site was made from, each as "name: changed".

    Raises:
        DocsError: the folder holds no site.
    """
    if not is_site(site):
        raise DocsError(f"'{site}' holds no site, expected the folder of an earlier mmagold docs build")
    made = json.loads((site / MANIFEST).read_text("utf-8"))
    then, now = made["inputs"], inputs()
    found = [] if made["mmagold"] == __version__ else [f"mmagold: was {made['mmagold']}, is {__version__}"]
    found += [f"{name}: changed" for name in now if name in then and then[name] != now[name]]
    found += [f"{name}: new" for name in now if name not in then]
    return found + [f"{name}: gone" for name in then if name not in now]
