"""Pictures in a browser: a lane lights up in all pictures of a page by hover, tap and arrow keys; on a phone
pictures fit, and a button shows them in full size."""

from __future__ import annotations

from pathlib import Path

from browser import Browser

import golden
from golden.publish import sphinx_source
from golden.publish.pictures import datapath, fragments

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


def test_a_picture_fits_a_phone_and_has_a_full_size(browser: Browser, tmp_path: Path) -> None:
    ins = golden.instruction("hopper", "HMMA.16816.F32")
    static = sphinx_source.TEMPLATES / "static"
    styles = [static / "mmagold.css", FOLDER / "fragments.css"]
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<style>{''.join(style.read_text() for style in styles)}</style><article><figure class='mg-figure'>"
        f"{datapath.datapath(ins)}<figcaption>Datapath</figcaption></figure></article>"
        f"<script>{(static / 'picture_size.js').read_text()}</script>"
    )
    look = """(() => { const one = (selector) => document.querySelector(selector);
        const look = () => [one(".mg-figure").clientWidth, one("svg").getBoundingClientRect().width,
          document.documentElement.scrollWidth, one(".mg-size")?.textContent ?? ""];
        return new Promise(done => setTimeout(() => done(look()), 100)); })()"""
    browser.size(390, 844)
    browser.open(page)
    room, width, whole, offered = browser.evaluate(look)
    assert width <= room <= whole == 390 and offered == "Full size"
    browser.evaluate("document.querySelector('.mg-size').click()")
    assert browser.evaluate(look) == [room, 760, 390, "Fit the page"]
    browser.evaluate("document.querySelector('.mg-size').click()")
    assert browser.evaluate(look) == [room, width, whole, offered]
    browser.size(1440, 900)
    assert browser.evaluate(look)[1:] == [760, 1440, ""]
    assert browser.errors == []
