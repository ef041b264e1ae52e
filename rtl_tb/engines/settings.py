"""Which engine and simulator a project uses unless a command says so: [tool.mmagold] in its pyproject.toml.

[tool.mmagold]
engine = "selfcheck"
simulator = "icarus"
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from golden.errors import FileFormatError, nearest
from golden.files.inputs import read_text
from rtl_tb.engines import check_choice
from rtl_tb.errors import RtlError

_FILE = "pyproject.toml"


@dataclass(frozen=True)
class Settings:
    """What the table may say; a missing key has the default of the commands."""

    engine: str = "fast"
    simulator: str = "verilator"


def settings(folder: Path | None = None) -> Settings:
    """The settings of the nearest pyproject.toml with a table [tool.mmagold], in `folder` (default: the
    current one) or above it.

    Raises:
        FileFormatError: the file cannot be read, or the table holds something else; the message names file
            and key.
    """
    start = (folder or Path.cwd()).resolve()
    for place in (start, *start.parents):
        path = place / _FILE
        table = _table(path) if path.is_file() else None
        if table is not None:
            return _checked(path, table)
    return Settings()


def _table(path: Path) -> Any:
    try:
        tools = tomllib.loads(read_text(path)).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        raise FileFormatError(f"{path}: not valid TOML: {error}") from None
    return tools.get("mmagold") if isinstance(tools, dict) else None


def _checked(path: Path, table: Any) -> Settings:
    known = [field.name for field in fields(Settings)]
    if not isinstance(table, dict):
        raise FileFormatError(f"{path}: tool.mmagold is {table!r}, expected a table")
    for key, value in table.items():
        if key not in known:
            raise FileFormatError(
                f"{path}: [tool.mmagold] has '{key}', expected {' or '.join(known)}{nearest(key, known)}"
            )
        if not isinstance(value, str):
            raise FileFormatError(f"{path}: [tool.mmagold] {key} is {value!r}, expected a string")
    found = Settings(**table)
    try:
        check_choice(found.engine, found.simulator)
    except RtlError as error:
        raise FileFormatError(f"{path}: [tool.mmagold] {error}") from None
    return found
