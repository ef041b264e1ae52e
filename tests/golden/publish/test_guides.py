"""Guides as notebooks: the cells are the blocks that the tests of the pages run."""

from __future__ import annotations

import json

import pytest

from golden.errors import UnknownNameError
from golden.paths import docs_folder
from golden.publish import guides

PAGES = sorted(path.stem for path in docs_folder().glob("*.md"))


@pytest.mark.parametrize("page", PAGES)
def test_cells_are_the_blocks_of_the_page_in_its_order(page: str) -> None:
    text = (docs_folder() / f"{page}.md").read_text("utf-8")
    page_text = text.replace("\\\n> ", "").replace("\\\n", "")  # commands continued on a line of their own
    made = json.loads(guides.notebook(page))
    assert made["nbformat"] == 4
    cells = made["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    at = 0
    for cell in cells:  # each cell's lines stand in the page, after those of the cell before
        lines = cell["source"].removeprefix("!").removeprefix("%").splitlines()
        for line in lines[1 if cell["source"].startswith("%%writefile") else 0 :]:
            at = page_text.find(line.strip(), at)
            assert at >= 0, line
    python = [
        cell["source"] for cell in cells if cell["cell_type"] == "code" and cell["source"][0] not in "!%"
    ]
    runs = [
        block.body.rstrip("\n")
        for block in guides.blocks(text)
        if block.language == "python" and not block.flag("file") and not set(block.flags) & {"no-run", "slow"}
    ]
    assert python == runs


def test_output_that_the_page_shows_is_the_output_of_the_cell() -> None:
    cells = json.loads(guides.notebook("gemm"))["cells"]
    first = next(cell for cell in cells if cell["cell_type"] == "code")
    assert first["outputs"] == [
        {"output_type": "stream", "name": "stdout", "text": "(50, 70) uint16 0.1...\n"}
    ]


def test_unknown_page_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="'gem', expected a page of docs/; nearest: gemm"):
        guides.notebook("gem")
