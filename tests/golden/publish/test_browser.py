"""The built site in headless Chromium, as a reader opens it: from files, on a phone and on a desk, light
and dark."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import LUMINANCE, Browser

PHONE, DESK = (390, 844), (1280, 800)
KINDS = {
    "instructions/hopper": 5,
    "instructions/rtx_blackwell": 2,
    "instructions/cdna3": 2,
    "architectures": 3,
    "formats": 3,
    "studies": 3,
    "api": 3,
    "sources/spec": 2,
    "campaigns": 1,
    "vectors/hopper": 1,
    "": 8,
}
"""How many pages of each folder are opened, spread over its list."""
WIDER = """[...document.querySelectorAll("article *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1
  && !e.closest(".mg-figure, .table-wrapper, pre, table, details")).slice(0, 3).map(e => e.outerHTML.slice(0, 120))"""  # noqa: E501


def sample(site: Path) -> list[Path]:
    """Pages of every kind."""
    found = []
    for folder, count in KINDS.items():
        pages = sorted((site / folder).glob("**/*.html" if folder.startswith("sources") else "*.html"))
        found += [pages[i * len(pages) // count] for i in range(count)]
    return found


@pytest.mark.parametrize(("width", "height"), [PHONE, DESK])
def test_no_page_scrolls_sideways_or_complains_or_asks_another_host(
    site: Path, browser: Browser, width: int, height: int
) -> None:
    browser.size(width, height)
    wrong = []
    pages = sample(site)
    for page in pages:
        browser.open(page)
        wide = browser.evaluate("document.documentElement.scrollWidth")
        boxed = browser.evaluate(
            "document.querySelector('.content').scrollWidth - document.querySelector('.content').clientWidth"
        )
        if wide > width or boxed > 0:
            wrong.append(
                f"{page.relative_to(site)}: {wide} px wide at {width}, {boxed} px too wide: "
                f"{browser.evaluate(WIDER)}"
            )
        wrong += [f"{page.relative_to(site)}: {error}" for error in browser.errors]
        wrong += [
            f"{page.relative_to(site)}: asks {url}"
            for url in browser.requests
            if not url.startswith(("file:", "data:"))
        ]
    assert not wrong, "\n".join(wrong)
    assert len(pages) >= sum(KINDS.values())


@pytest.mark.parametrize("word", ["alignment", "HMMA.16816.F32", "dut.yaml"])
def test_search_works_from_files(site: Path, browser: Browser, word: str) -> None:
    browser.size(*DESK)
    browser.open(site / "search.html", f"?q={word}")
    done = """new Promise(resolve => { const look = n => { const found = document.querySelectorAll("#search-results li a").length;
      if (found || n > 100) resolve(found); else setTimeout(() => look(n + 1), 50); }; look(0); })"""  # noqa: E501
    assert browser.evaluate(done) > 0
    assert not browser.errors


@pytest.mark.parametrize("dark", [False, True])
def test_pictures_can_be_read_in_light_and_dark(site: Path, browser: Browser, dark: bool) -> None:
    """WCAG's contrast of the words of a datapath: 4.5 on the page and on the blocks that they stand on."""
    browser.size(*DESK, dark=dark)
    browser.open(site / "instructions" / "hopper" / "mma_f16-f32.html")
    page = browser.evaluate(LUMINANCE + "light(getComputedStyle(document.body).backgroundColor)")
    assert (page < 0.1) == dark
    measured = browser.evaluate(
        f"""(() => {{ {LUMINANCE}
        const svg = document.querySelector(".mg-figure svg"), result = {{}};
        const fill = name => {{ const e = document.createElementNS(svg.namespaceURI, "rect"); e.setAttribute("class", name);
          const known = document.querySelector("." + name);
          if (known) e.setAttribute("fill", known.getAttribute("fill"));
          svg.append(e); const colour = getComputedStyle(e).fill; e.remove(); return known ? colour : null; }};
        const page = getComputedStyle(document.body).backgroundColor;
        for (const [words, blocks] of [["mg-text", ["mg-block", "mg-block2", "mg-accent", "mg-lost"]],
                                       ["mg-muted", ["mg-block", "mg-block2"]]]) {{
          result[words] = contrast(fill(words), page);
          for (const block of blocks)
            if (fill(block)) result[words + " on " + block] = contrast(fill(words), fill(block)); }}
        return result; }})()"""  # noqa: E501
    )
    assert len(measured) > 4
    assert not {where: ratio for where, ratio in measured.items() if ratio < 4.5}


def test_theme_is_the_readers_choice(site: Path, browser: Browser) -> None:
    """The button of the theme goes round auto, light and dark;
    pictures follow it against the system's colours."""
    browser.size(*DESK, dark=False)
    browser.open(site / "instructions" / "hopper" / "mma_f16-f32.html")
    words = "getComputedStyle(document.querySelector('.mg-figure .mg-text')).fill"
    before = browser.evaluate(words)
    press = (
        "document.querySelector('.theme-toggle-content .theme-toggle').click(), document.body.dataset.theme"
    )
    themes = {}
    for _ in range(3):
        theme = browser.evaluate(press)
        themes[theme] = browser.evaluate(words)
    assert set(themes) == {"auto", "light", "dark"}
    assert themes["light"] == themes["auto"] == before != themes["dark"]
