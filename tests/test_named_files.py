"""Whatever file of the repository a text names is there: a move that forgets a comment shows."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("golden", "hw_capture", "rtl_tb", "bench", "campaigns", "docs")
NAMED = re.compile(
    rf"(?<![\w/.-])(?:{'|'.join(FOLDERS)}|spec|tests)(?:/[\w-]+)*/[\w-]+\.(?:py|c|h|md|css|js|sv|cpp|cu|mk)\b(?!\.\w)"
)
"""A path from the root. Names that documents make up (of YAML and vector files) end otherwise."""
READ = (".py", ".md", ".c", ".h", ".cu", ".cpp", ".sv", ".yaml", ".toml", "Makefile")


def missing(text: str, folder: Path = ROOT) -> list[str]:
    """The files that a text names that are neither in the root nor, as pages link, below its own folder."""
    return [name for name in NAMED.findall(text) if not any((at / name).is_file() for at in (ROOT, folder))]


def test_a_name_of_no_file_is_found() -> None:
    assert missing("see golden/lookup.py and golden/catalog/lookup.py, or docs/nothing.md.") == [
        "golden/lookup.py",
        "docs/nothing.md",
    ]


def test_every_file_that_is_named_is_there() -> None:
    texts = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "pyproject.toml", ROOT / "setup.py"]
    for folder in FOLDERS:
        texts += [path for path in (ROOT / folder).rglob("*") if path.is_file() and path.name.endswith(READ)]
    wrong = {str(path.relative_to(ROOT)): missing(path.read_text("utf-8"), path.parent) for path in texts}
    assert {path: names for path, names in wrong.items() if names} == {}
