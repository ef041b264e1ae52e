"""The API reference: its examples run, and each thing is where the page says."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, PageRun

import golden
import mmagold
import rtl_tb
from golden.publish import api_page
from golden.publish.api_page import source
from golden.publish.templating import FOLDER, Page


@pytest.mark.parametrize("page", api_page.pages(), ids=lambda page: page.title)
def test_the_examples_of_a_page_run(page: Page, tmp_path: Path) -> None:
    before, _, _ = page.write().partition("\n## ")
    run = PageRun(page.path, before, tmp_path)
    run.run()
    assert bool(run.ran) == ("```python" in before)


def test_pages_without_a_guide_have_an_example() -> None:
    """Of the errors, the messages are the example."""
    texts = {page.title: page.write() for page in api_page.pages()[1:]}
    neither = [name for name, text in texts.items() if "```python" not in text and "The guide" not in text]
    assert neither == ["Errors"]


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


def test_every_public_name_has_its_place() -> None:
    """What `golden`, `rtl_tb` and `mmagold.torch` export; of errors the page shows the whole module."""
    templates = ((FOLDER / "api" / f"{name}.md.j2").read_text("utf-8") for name in api_page.PAGES)
    shown = {thing for text in templates for thing in re.findall(r'^  "(\S+)",$', text, re.M)}
    torch = ast.parse((ROOT / "mmagold" / "torch.py").read_text("utf-8"))  # PyTorch may be missing
    names = next(node.value for node in torch.body if isinstance(node, ast.Assign))
    public = {"golden": golden.__all__, "rtl_tb": rtl_tb.__all__}
    public["mmagold.torch"] = ast.literal_eval(names)
    for package, exported in public.items():
        missing = {f"{package}.{name}" for name in exported if not hasattr(golden.errors, name)} - shown
        assert not missing


def test_the_package_has_the_name_that_pip_installs() -> None:
    assert mmagold.instruction("h100:HMMA.16816.F32") is golden.instruction("hopper", "HMMA.16816.F32")
    assert all(getattr(mmagold, name) is getattr(golden, name) for name in golden.__all__)
    with pytest.raises(AttributeError, match="'mmagold' has no attribute 'gem'"):
        mmagold.gem  # noqa: B018
