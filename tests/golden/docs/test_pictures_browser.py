"""Fragment pictures in a browser: a lane lights up in all pictures of a page by hover, tap and arrow keys."""

from __future__ import annotations

from pathlib import Path

from browser import Browser

import golden
from golden.docs.pictures import fragments

FOLDER = Path(fragments.__file__).parent
LIT = "[...document.querySelectorAll('.mg-on')].map(e => e.dataset.lane).join()"
CELL = "document.querySelector('[data-lane=\"{lane}\"] rect').dispatchEvent(new {event})"
HOVER = "PointerEvent('pointerover', {bubbles: true, pointerType: 'mouse'})"
TAP = "MouseEvent('click', {bubbles: true})"


def cell(lane: int, event: str) -> str:
    return CELL.format(lane=lane, event=event)


def key(name: str) -> str:
    return (
        f"document.querySelector('svg').dispatchEvent(new KeyboardEvent('keydown', {{key: '{name}', "
        f"bubbles: true}}))"
    )


def test_a_lane_lights_up_in_all_pictures(browser: Browser, tmp_path: Path) -> None:
    ins = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    pictures = [
        fragments.matrix(ins, "a", "a"),
        fragments.matrix(ins, "d", "d"),
        fragments.lanes(ins, "a", "l"),
    ]
    style, script = ((FOLDER / f"fragments.{kind}").read_text() for kind in ("css", "js"))
    figures = "".join(f'<figure class="mg-figure">{picture}</figure>' for picture in pictures)
    page = tmp_path / "page.html"
    head = "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>"
    page.write_text(f"{head}<style>{style}</style><body>{figures}<script>{script}</script>")
    browser.size(390, 844)
    browser.open(page)
    steps = [
        (cell(5, HOVER), "5,5,5"),
        (cell(6, HOVER), "6,6,6"),
        (cell(7, TAP), "7,7,7"),
        (cell(8, HOVER), "7,7,7"),  # a tapped lane stays
        (key("ArrowRight"), "8,8,8"),
        (key("ArrowUp"), "7,7,7"),
        (cell(7, TAP), ""),  # a second tap releases
        (key("ArrowLeft"), "31,31,31"),
        (key("Escape"), ""),
    ]
    for action, lit in steps:
        browser.evaluate(action)
        assert browser.evaluate(LIT) == lit, action
    assert browser.errors == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
