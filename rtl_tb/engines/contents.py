"""Whether a finished build is still what was compiled.

A disk that was full, a machine that lost power, a sync that broke off: each leaves a file of the right name
with something else in it. A damaged program may end early, or, worse, run to its end and answer. So a build
keeps the digest of each of its files, and who wants to use it compares them before.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

FILE = "contents.json"
"""The digests, by the file's place in the folder. JSON, so that a part of it is not taken for all of it."""


def write(folder: Path) -> None:
    """Notes what a folder holds; the last thing that is written into it."""
    (folder / FILE).write_text(
        json.dumps(_digests(folder, _files(folder)), indent=1) + "\n", encoding="utf-8"
    )


def intact(folder: Path) -> bool:
    """Whether every file that was noted is there and as it was; no where nothing was noted."""
    try:
        noted = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return bool(noted) and noted == _digests(folder, [folder / name for name in noted])
    except (OSError, ValueError, TypeError):
        return False


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / FILE)


def _digests(folder: Path, files: list[Path]) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): digest(path) for path in files}


def digest(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
