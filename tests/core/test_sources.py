"""The text of the C core: what a reader can rely on."""

from __future__ import annotations

from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[2] / "golden" / "core"
COLUMNS = 120
"""The longest line."""


@pytest.mark.parametrize("source", sorted(CORE.glob("*.[ch]")), ids=lambda source: source.name)
def test_lines_fit_the_screen(source: Path) -> None:
    long = [n for n, line in enumerate(source.read_text("utf-8").splitlines(), 1) if len(line) > COLUMNS]
    assert not long, f"{source.name}: lines {long} have more than {COLUMNS} columns"
