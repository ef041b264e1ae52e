"""The finder of the site: queries as users type them, in the browser's own words, without the site."""

from __future__ import annotations

import fnmatch
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from browser import Browser
from explorer_page import ExplorerPage
from long_run import long_after

import golden
from golden.catalog.resolver import resolver
from golden.publish import finder, sphinx_extension, sphinx_source
from golden.publish.families import group_of

QUERIES = yaml.safe_load((Path(__file__).parent / "search_queries.yaml").read_text("utf-8"))
SPHINX = ("golden.instruction",)
"""Names of Python: Sphinx's own search has them, the finder says nothing."""


@pytest.fixture(scope="module")
def pages() -> list[Any]:
    return sphinx_source.all_pages()


@pytest.fixture(scope="module")
def found(
    browser: Browser, pages: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Any]]:
    """What the finder's script answers, by query: (score, order, path, title, where), the best first."""
    folder = tmp_path_factory.mktemp("finder")
    (folder / "_static").mkdir()
    static = sphinx_source.TEMPLATES / "static"
    (folder / "_static" / "finder.js").write_text((static / "finder.js").read_text("utf-8"), "utf-8")
    (folder / "_static" / finder.FILE).write_text(finder.script(pages), "utf-8")
    (folder / "index.html").write_text(
        "<!doctype html><input data-mg-finder><script src='_static/finder.js'></script>", "utf-8"
    )
    browser.open(folder / "index.html")
    asked = [one["query"] for one in QUERIES] + ["nothing of this name", "", "<b>", "RTX-5090", "b200:nvfp4"]
    answers = browser.evaluate(
        f"mmagoldFinder.load().then(index => {json.dumps(asked)}.map(q => mmagoldFinder.search(index, q)))"
    )
    assert not browser.errors
    return dict(zip(asked, answers, strict=True))


def test_there_are_forty_queries_of_pages_that_exist(pages: list[Any]) -> None:
    paths = {page.path.removesuffix(".md") for page in pages}
    assert len(QUERIES) >= 40
    assert finder.phrases().keys() <= paths
    for one in QUERIES:
        assert any(fnmatch.filter(paths, pattern) for pattern in one["first"]), one


@pytest.mark.parametrize("query", [one["query"] for one in QUERIES if one["query"] not in SPHINX])
def test_the_page_that_is_meant_comes_first(found: dict[str, list[Any]], query: str) -> None:
    wanted = next(one["first"] for one in QUERIES if one["query"] == query)
    assert found[query], "nothing found"
    first = found[query][0][2].partition("#")[0].removesuffix(".html")
    assert any(fnmatch.fnmatch(first, pattern) for pattern in wanted), found[query][:3]


def test_what_is_meant_by_nothing_finds_nothing(found: dict[str, list[Any]]) -> None:
    assert found["nothing of this name"] == found[""] == found["<b>"] == []
    assert found["RTX-5090"][0][2] == "architectures/rtx_blackwell.html"
    assert found["b200:nvfp4"] == found["b200 nvfp4"] != []


@pytest.mark.parametrize(
    "query",
    long_after(
        4, ["rtx5090 nvfp4", "zen4 int8", "amx", "_mm512_dpbf16_ps", "h100 fp8", "mi300x fp8", "b200 mxfp8"]
    ),
)
def test_it_finds_what_the_command_line_does(
    found: dict[str, list[Any]], browser: Browser, query: str
) -> None:
    """The same words, two programs: the pages are those of the instructions that `mmagold list` lists."""
    listed = {
        group_of(golden.instruction(name, full)).path.removesuffix(".md") + ".html"
        for name in golden.architectures()
        for full in resolver().search(name, query)
    }
    asked = json.dumps(query)
    answer = browser.evaluate(
        f"mmagoldFinder.load().then(index => mmagoldFinder.search(index, {asked}).map(one => one[2]))"
    )
    assert {path for path in answer if path.startswith("instructions/")} == listed


def test_the_finder_is_used_by_keyboard_alone(found: dict[str, list[Any]], browser: Browser) -> None:
    """Tab into the field, type, arrows along the results and back, Enter on the second."""
    keys = ExplorerPage(browser, Path())
    browser.evaluate("document.querySelector('input').value = ''; document.activeElement.blur()")
    keys.press("Tab")
    assert browser.evaluate("document.activeElement.tagName") == "INPUT"
    keys.type("h100 fp8")
    keys.wait("document.querySelectorAll('.mg-finder-results a').length > 2")
    active = "document.activeElement.getAttribute('href')"
    links = browser.evaluate(
        "[...document.querySelectorAll('.mg-finder-results a')].map(a => a.getAttribute('href'))"
    )
    for key, wanted in (
        ("ArrowDown", links[0]),
        ("ArrowDown", links[1]),
        ("ArrowUp", links[0]),
        ("ArrowUp", None),
    ):
        keys.press(key)
        assert browser.evaluate(active) == wanted
    keys.press("ArrowDown")
    keys.press("ArrowDown")
    browser.evaluate(
        "document.querySelector('.mg-finder-results').addEventListener('click', e => {"
        " window.went = e.target.getAttribute('href'); e.preventDefault(); })"
    )
    keys.press("Enter", text="\r")
    assert browser.evaluate("window.went") == links[1]


def test_every_name_is_an_object_of_the_domain() -> None:
    """For the inventory: each listed name, other spelling and SASS name, on the page that has it."""
    known = dict(sphinx_extension.objects())
    for name in golden.architectures():
        for ins in golden.instructions(name):
            assert known[f"{name}:{ins.name}"] == group_of(ins).path.removesuffix(".md")
    assert known["hopper:HMMA.16816.F32"] == "instructions/hopper/mma_f16-f32"
    assert known["sapphire_rapids:tdpbf16ps"] == "instructions/sapphire_rapids/amx_bf16-f32"
