"""The script of the large tables in a browser: rows that agree are folded, two architectures picked, the
first column stays, instructions are filtered, long names break."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browser import Browser

from golden.publish import architecture_page, sphinx_source

COMPARED = """
Property|Volta|Ampere|Hopper|CDNA3
Fraction bits|<a>23</a> P|<a>24</a> P|<a>25</a> C|<a>24</a> P
Rounding|<a>RZ</a> P|<a>RZ</a> P|<a>RZ</a> C|<a>RNE</a> P
Subnormals|<a>kept</a> P|<a>kept</a> P|<a>kept</a> C|<a>kept</a> P
Floor|-|-|<a>-133</a> C|-
"""
OTHER = """
Property|Ampere|Hopper
Fraction bits|<a>24</a> P|<a>25</a> C
"""
NAME = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32"
LISTED = f"""
Instructions|SASS|Evidence
f16 x f16|<code>HMMA.16816.F32</code>|<strong>captured</strong> [1]
e4m3 x e4m3|<code>{NAME}</code>|<strong>derived</strong> [2]
"""


PLAIN = """
Property|Value|Code
largest finite|<a>448</a>|<a>0x7e</a>
"""


def compared(text: str) -> str:
    return table(text).replace(
        '<div class="table-wrapper">', '<div class="mg-compared"><div class="table-wrapper">'
    )


def table(text: str) -> str:
    head, *rows = [line.split("|") for line in text.strip().splitlines()]
    heads = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td><p>{cell}</p></td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<section><div class="table-wrapper"><table class="docutils"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></section>"
    )


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Browser:
    static = sphinx_source.TEMPLATES / "static"
    styles = [(static / name).read_text("utf-8") for name in ("mmagold.css", "tables.css")]
    (tmp_path / "index.html").write_text(
        '<!doctype html><meta name="viewport" content="width=device-width">'
        f"<style>{''.join(styles)} td, th {{ padding: 8px; min-width: 90px; }}</style><article>"
        f"{compared(COMPARED)}{compared(OTHER)}{table(LISTED)}{table(PLAIN)}</article>"
        f"<script>{(static / 'tables.js').read_text('utf-8')}</script>",
        "utf-8",
    )
    browser.size(390, 844)
    browser.open(tmp_path / "index.html")
    return browser


def cells(page: Browser, number: int) -> Any:
    """The rows of a table that are shown: of each shown cell its words and class."""
    found = page.evaluate(
        f"""[...document.querySelectorAll("table")[{number}].querySelectorAll("tbody tr")]
        .filter(r => !r.hidden).map(r => [...r.cells].filter(c => !c.hidden).map(c =>
        [(c.querySelector("a") ?? c).textContent.trim(), c.dataset.class ?? "",
        c.querySelector(".mg-class")?.textContent ?? ""]))"""
    )
    assert not page.errors
    return found


def pick(page: Browser, selector: str, value: str, event: str = "change") -> None:
    change = f"e.value = {json.dumps(value)}; e.dispatchEvent(new Event('{event}'));"
    page.evaluate(f"(() => {{ const e = {selector}; {change} }})()")


def test_rows_that_agree_are_folded_and_equal_cells_marked(page: Browser) -> None:
    assert cells(page, 0) == [
        [
            ["Fraction bits", "", ""],
            ["23", "1", "b"],
            ["24", "0", "a"],
            ["25", "2", "c"],
            ["24", "0", "a"],
        ],
        [["Rounding", "", ""], ["RZ", "0", "a"], ["RZ", "0", "a"], ["RZ", "0", "a"], ["RNE", "1", "b"]],
    ]
    button = "document.querySelector('.mg-fold')"
    assert cells(page, 3) == [[["largest finite", "", ""], ["448", "", ""], ["0x7e", "", ""]]]  # does not ask
    assert page.evaluate(f"{button}.textContent") == "Show 2 rows in which all agree"
    page.evaluate(f"{button}.click()")
    assert [row[0][0] for row in cells(page, 0)] == ["Fraction bits", "Rounding", "Subnormals", "Floor"]
    assert all(mark == "" for row in cells(page, 0)[2:] for _, *marks in row for mark in marks)
    assert page.evaluate(f"{button}.getAttribute('aria-expanded')") == "true"


def test_the_first_column_stays(page: Browser) -> None:
    page.evaluate("document.querySelector('.table-wrapper').scrollLeft = 120")
    places = page.evaluate(
        """(() => { const box = document.querySelector(".table-wrapper"), row = box.querySelector("tbody tr");
        const left = (e) => e.getBoundingClientRect().left;
        return [box.scrollLeft, left(box), left(row.cells[0]), left(row.cells[1])]; })()"""
    )
    scrolled, box, first, second = places
    assert scrolled > 50 and abs(first - box) < 3 and second < first + 70


def test_instructions_are_filtered_and_their_evidence_is_a_badge(page: Browser) -> None:
    search, kind = (
        "document.querySelector('.mg-tools input')",
        "document.querySelectorAll('.mg-tools select')[2]",
    )
    count = "document.querySelector('.mg-tools [role=status]').textContent"
    assert page.evaluate(count) == "2 of 2 groups"
    pick(page, search, "hmma F16", "input")
    assert page.evaluate(count) == "1 of 2 groups" and cells(page, 2)[0][0][0] == "f16 x f16"
    pick(page, kind, "derived")
    assert page.evaluate(count) == "0 of 2 groups"
    assert page.evaluate("document.querySelectorAll('.table-wrapper')[2].hidden")
    pick(page, search, "", "input")
    assert page.evaluate(count) == "1 of 2 groups"
    assert page.evaluate("[...document.querySelectorAll('.mg-badge')].map(e => e.className)") == [
        "mg-badge mg-captured",
        "mg-badge mg-derived",
    ]


def test_the_tables_have_the_headings_that_the_script_looks_for() -> None:
    lines = architecture_page.markdown("cdna1").splitlines()
    shown = next(line for line in lines if line.startswith("| Instructions |") and "Parameters" in line)
    heads = [cell.strip() for cell in shown.strip("| ").split("|")]
    assert (heads[0], heads[-1]) == ("Instructions", "Evidence")
