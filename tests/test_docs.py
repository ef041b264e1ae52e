"""README.md, CONTRIBUTING.md and the pages of docs/: their code runs, their links and anchors exist, their tables are true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import ROOT, PageError, PageRun, blocks, check_command, same

import golden

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
GENERATED = ("architectures/", "formats/", "studies/", "instructions/", "api/", "comparison.md")
LINK = re.compile(r"(?<!!)\[[^]]*\]\(([^)\s]+)\)|!\[[^]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_code_of_page_runs(page: Path, tmp_path: Path) -> None:
    PageRun(page, tmp_path).run()
