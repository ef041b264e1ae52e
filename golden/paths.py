"""Where specs and pages lie: next to the package in a checkout, inside it in an installed wheel; and
where what was compiled is kept.

The variable MMAGOLD_SPEC names another spec folder, such as a changed copy.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from golden.errors import SpecError

_PACKAGE = Path(__file__).resolve().parent


def spec_folder() -> Path:
    """Returns the folder that holds formats/, algorithms/, families/,
    architectures/, layouts/ and examples/."""
    own = next(
        (folder for folder in (_PACKAGE.parent / "spec", _PACKAGE / "spec") if (folder / "formats").is_dir()),
        None,
    )
    if chosen := os.environ.get("MMAGOLD_SPEC"):
        if not Path(chosen, "formats").is_dir():
            nearest = f"; nearest: {own}" if own else ""
            raise SpecError(
                f"MMAGOLD_SPEC is '{chosen}', expected a spec folder (one that holds formats/, algorithms/, "
                f"...){nearest}"
            )
        return Path(chosen)
    if own is not None:
        return own
    raise SpecError(f"{_PACKAGE}: the spec folder is missing from this installation")


def docs_folder() -> Path:
    """Returns the folder of the hand-written pages."""
    for folder in (_PACKAGE.parent / "docs", _PACKAGE / "publish" / "pages"):
        if (folder / "dut.md").is_file():
            return folder
    raise SpecError(f"{_PACKAGE}: the hand-written pages are missing from this installation")


def installed(path: str | Path) -> Path | None:
    """Returns the place of a file that the pages name by its path in a clone, such as spec/examples/fma.yaml;
    None if the path does not begin like that, or this installation has no such file."""
    first, *rest = Path(path).parts or ("",)
    if first == "spec" and rest:
        place = spec_folder().joinpath(*rest)
    elif first == "rtl_tb" and rest:
        place = _PACKAGE.parent.joinpath(first, *rest)
    else:
        return None
    return place if place.exists() else None


def cache_folder() -> Path:
    """Returns the folder of what was compiled once: $MMAGOLD_CACHE, else ~/.cache/mmagold."""
    return Path(os.environ.get("MMAGOLD_CACHE") or Path.home() / ".cache" / "mmagold")


def checkout() -> Path | None:
    """Returns the root of the checkout that the package lies in, which has vectors/ and everything else;
    None in a wheel."""
    root = _PACKAGE.parent
    return root if (root / "pyproject.toml").is_file() and (root / "spec").is_dir() else None


def vector_file(name: str) -> str:
    """Returns the name of an instruction's file in vectors/."""
    return plain_name(name) + ".npz"


def plain_name(name: str) -> str:
    """A name as part of a file's name: everything but letters, digits, '.' and '-' made '_'."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", name)
