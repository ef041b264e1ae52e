"""The API reference: its examples run, and each thing is where the page says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, PageRun

from golden.publish import api_page
from golden.publish.api_page import source


@pytest.mark.parametrize("name", api_page._EXAMPLES)
def test_the_example_of_a_page_runs(name: str, tmp_path: Path) -> None:
    page = next(page for page in api_page.pages() if page.path == f"api/{name}.md")
    before, _, _ = page.write().partition("\n## ")
    run = PageRun(page.path, before, tmp_path)
    run.run()
    assert run.ran


@pytest.mark.parametrize(
    "thing", ("golden.instruction", "golden.Instruction", "golden.vectors.files.write", "rtl_tb.Scoreboard")
)
def test_a_source_is_the_definition(thing: str) -> None:
    path, _, line = source(thing).partition(", line ")
    text = (ROOT / path).read_text("utf-8").splitlines()
    name = thing.rpartition(".")[2]
    near = [
        one.split("(")[0].split(":")[0] for one in text[int(line) - 1 : int(line) + 3]
    ]  # decorators first
    assert f"class {name}" in near or f"def {name}" in near


def test_a_page_needs_nothing_that_others_imported() -> None:
    """Pages are written by several processes; which of them has imported what is chance."""
    text = "from golden.publish import api_page\nfor page in reversed(api_page.pages()):\n    page.write()\n"
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
