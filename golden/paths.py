"""Where the YAML specs lie: beside the package in a checkout, inside it in an installed wheel."""

from __future__ import annotations

import re
from pathlib import Path

from golden.errors import SpecError

_PACKAGE = Path(__file__).resolve().parent


def spec_folder() -> Path:
    """Returns the folder that holds formats/, algorithms/, families/, architectures/, layouts/ and examples/."""
    for folder in (_PACKAGE.parent / "spec", _PACKAGE / "spec"):
        if (folder / "formats").is_dir():
            return folder
    raise SpecError(f"{_PACKAGE}: the spec folder is missing from this installation")


def vector_file(name: str) -> str:
    """Returns the name of an instruction's file in vectors/: everything but letters, digits, '.' and '-' made '_'."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", name) + ".npz"
