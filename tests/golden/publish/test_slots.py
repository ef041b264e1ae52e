"""Pictures that wait for Sphinx, pictures that pages share, and those that hand-written pages ask for."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
from pathlib import Path

import pytest
from browser import Browser

import golden
from golden.errors import DocsError, UnknownNameError
from golden.publish import slots, sphinx_source
from golden.publish.pictures import datapath, fragments

HOPPER, AMPERE = (golden.instruction(name, "HMMA.16816.F32") for name in ("hopper", "ampere"))


def site(folder: Path, pages: dict[str, str]) -> Path:
    """A site of these pages, each cut as its Markdown is and put together again."""
    for name, text in pages.items():
        rest, pictures = slots.cut(text)
        assert "viewBox" not in rest
        (folder / "wait").mkdir(exist_ok=True)
        (folder / "wait" / f"{name}.md.json").write_text(json.dumps(pictures), "utf-8")
        (folder / "site").mkdir(exist_ok=True)
        (folder / "site" / f"{name}.html").write_text(rest, "utf-8")
    slots.put(folder / "wait", folder / "site")
    return folder / "site"


def test_small_pictures_come_back_as_they_were(tmp_path: Path) -> None:
    text = f"<p>{datapath.datapath(HOPPER)}</p><p><svg>2</svg></p>"
    built = site(tmp_path, {"a": text})
    assert (built / "a.html").read_text("utf-8") == text


def test_pictures_of_registers_are_one_file_for_all_pages(tmp_path: Path) -> None:
    pages = {name: fragments.matrix(ins, "a") for name, ins in (("a", HOPPER), ("b", AMPERE))}
    built = site(tmp_path, {**pages, "c": fragments.matrix(HOPPER, "b")})
    files = list((built / "_static" / slots.FOLDER).iterdir())
    assert len(files) == 2  # that of a on both architectures, and that of b
    first, second = ((built / f"{name}.html").read_text("utf-8") for name in "ab")
    assert first == second and "lane and register of each element" in first and HOPPER.name in first
    key = first.split('data-picture="')[1].split('"')[0]
    script = (built / "_static" / slots.FOLDER / f"{key}.js").read_text("utf-8")
    name, packed = json.loads(f"[{script.removeprefix('mmagoldPicture(').removesuffix(');' + chr(10))}]")
    drawing = gzip.decompress(base64.b64decode(packed)).decode()
    assert name == key and drawing.count("data-lane") == 32 and HOPPER.name not in drawing


def test_a_browser_loads_them(browser: Browser, tmp_path: Path) -> None:
    """The same elements as in the picture, with the page's name for it."""
    picture = fragments.matrix(HOPPER, "a")
    built = site(tmp_path, {"a": f'{picture}<script src="_static/later_pictures.js"></script>'})
    shutil.copy(sphinx_source.TEMPLATES / "static" / "later_pictures.js", built / "_static")
    browser.open(built / "a.html")
    loaded = browser.evaluate(
        "new Promise(done => (function wait() { const svg = document.querySelector('svg');"
        " if (svg) done([svg.querySelectorAll('*').length, svg.getAttribute('aria-label')]);"
        " else setTimeout(wait, 20); })())"
    )
    assert loaded[0] == picture.count("</") + picture.count("/>") - 2  # but for the svg and its title
    assert HOPPER.name in loaded[1] and not browser.errors


def test_a_picture_without_a_slot_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "wait").mkdir()
    (tmp_path / "site").mkdir()
    (tmp_path / "wait" / "a.md.json").write_text('["<svg></svg>", "<svg></svg>"]', "utf-8")
    (tmp_path / "site" / "a.html").write_text('<svg data-slot="0"></svg>', "utf-8")
    with pytest.raises(DocsError, match=r"a\.html: 1 of 2 pictures found their place"):
        slots.put(tmp_path / "wait", tmp_path / "site")


def test_hand_written_pages_ask_for_pictures() -> None:
    text = "before\n\n<!-- picture: datapath hopper:HMMA.16816.F32 -->\n\nafter `<!-- picture: x y -->`"
    drawn = sphinx_source.drawn(text, "index.md")
    assert drawn.startswith("before\n\n<figure") and drawn.count("<svg") == 1 and "on hopper" in drawn
    with pytest.raises(DocsError, match=r"index\.md: picture 'datapaht' is unknown.*nearest: datapath"):
        sphinx_source.drawn("<!-- picture: datapaht hopper:HMMA.16816.F32 -->", "index.md")
    with pytest.raises(UnknownNameError):
        sphinx_source.drawn("<!-- picture: tree hopper:HMMA.1 -->", "index.md")
