"""Pages on a desk and on a phone, light and dark: nothing is too wide, clipped or overlaps, and
axe-core finds no contrast or label wanting."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import Browser
from screens import accessibility, faults

from golden.publish import sphinx_source
from golden.publish.explorer.address import INDEX

SCREENS = [(1440, 900, False), (1440, 900, True), (390, 844, False), (390, 844, True)]
PAGES = (
    "index",
    "comparison",
    "comparison/rounding",
    "architectures/hopper",
    "architectures/cdna3",
    "instructions/hopper/mma_f16-f32",
    "instructions/hopper/wgmma_fp8-f32",
    "instructions/rtx_blackwell/mma_mxf4-f32-ue4m3-16",
    "instructions/cdna2/mfma_old-f64-from-f64",
    "formats/e4m3",
    "studies/index",
    "api/index",
    "timing",
    "spec-schema",
    "search",
)
SOUND = (
    "<p>One.</p><p>Two.</p><div class='table-wrapper' style='overflow-x: auto; width: 90px'><p>{}</p></div>"
)
WRONG = {
    "px wide at 390": "<p style='width: 700px'>wide</p>",
    "clipped by": "<p style='width: 60px; overflow: hidden; white-space: nowrap'>a line that is cut off</p>",
    "overlap": "<p style='margin: 0'>Above</p><p style='margin: -12px 0 0'>Below</p>",
    '"one" and "two" overlap': "<svg><text x='5' y='20'>one</text><text x='8' y='22'>two</text></svg>",
}


def shown(browser: Browser, folder: Path, body: str) -> list[str]:
    (folder / "index.html").write_text(
        '<!doctype html><html lang="en"><title>x</title><meta name="viewport" content="width=device-width">'
        f"<main>{body}</main></html>",
        "utf-8",
    )
    browser.size(390, 844)
    browser.open(folder / "index.html")
    return faults(browser)


@pytest.mark.parametrize("fault", WRONG)
def test_what_is_wrong_is_seen(browser: Browser, tmp_path: Path, fault: str) -> None:
    assert any(fault in one for one in shown(browser, tmp_path, WRONG[fault]))


def test_what_is_right_is_not_complained_of(browser: Browser, tmp_path: Path) -> None:
    assert shown(browser, tmp_path, SOUND.format("word" * 80)) == []


def test_boxes_that_scroll_take_the_focus(browser: Browser, tmp_path: Path) -> None:
    script = (sphinx_source.TEMPLATES / "static" / "reachable.js").read_text("utf-8")
    boxes = "".join(
        f"<pre style='width: 80px; overflow: auto'>{text}</pre>" for text in ("short", "long" * 40)
    )
    caption = "<p role='heading'>Guides</p>"
    shown(browser, tmp_path, f"<article>{caption}{boxes}</article><script>{script}</script>")
    browser.evaluate("new Promise(done => setTimeout(done, 100))")
    assert browser.evaluate("[...document.querySelectorAll('pre')].map(e => e.tabIndex)") == [-1, 0]
    assert browser.evaluate("document.querySelector('[role=heading]').ariaLevel") == "2"


@pytest.mark.parametrize(("width", "height", "dark"), SCREENS)
def test_nothing_overflows_overlaps_or_is_clipped(
    site: Path, browser: Browser, width: int, height: int, dark: bool
) -> None:
    browser.size(width, height, dark=dark)
    wrong = []
    for name in PAGES:
        browser.open(site / f"{name}.html")
        wrong += [f"{name}: {one}" for one in faults(browser)]
    browser.open(site / INDEX)
    wrong += [f"explorer: {one}" for one in faults(browser)]
    assert not wrong, "\n".join(wrong)


def test_nothing_of_the_start_page_runs_off_a_phone(site: Path, browser: Browser) -> None:
    """Code, tables and pictures: not even in boxes that scroll."""
    browser.size(390, 844)
    browser.open(site / "index.html")
    boxes = "[...document.querySelectorAll('article pre, article .table-wrapper, article figure')]"
    assert browser.evaluate(f"{boxes}.length") > 4
    assert browser.evaluate(f"{boxes}.filter(e => e.scrollWidth > e.clientWidth).map(e => e.innerText)") == []


def test_the_side_bar_shows_the_place_of_a_page(site: Path, browser: Browser) -> None:
    """It is longer than the window is high: the entry of the page was marked, out of sight."""
    browser.size(1440, 900)
    for name in ("index", "architectures/rdna4", "instructions/riscv/riscv_bulk_n16-f32", "add-a-step"):
        browser.open(site / f"{name}.html")
        seen = browser.evaluate(
            "(() => { const entry = [...document.querySelectorAll('.sidebar-tree .current > a')].pop();"
            " const e = entry?.getBoundingClientRect(); return e && [e.top, e.bottom, scrollY]; })()"
        )
        assert (seen is None) == (name == "index")
        assert seen is None or (seen[0] > 0 and seen[1] < 900 and seen[2] == 0), name


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing(site: Path, browser: Browser, dark: bool) -> None:
    browser.size(1440, 900, dark=dark)
    wrong = []
    for path in (*(f"{name}.html" for name in PAGES), str(INDEX)):
        browser.open(site / path)
        wrong += [f"{path}: {one}" for one in accessibility(browser)]
    assert not wrong, "\n".join(wrong)
