"""The pages of scalar PTX: their data are the tables', and the script shows what is asked for."""

import json
import re
from pathlib import Path

from browser import Browser

from golden.catalog import ptx_forms, sass
from golden.publish import sass_page
from golden.publish.sphinx_source import STATIC, TEMPLATES

CELLS = "[...document.querySelectorAll('#mg-sass tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
SET = "(() => {{ const c = document.querySelectorAll('#mg-sass {what}')[{n}]; c.{key} = {value}; c.dispatchEvent(new Event('input')); }})()"  # noqa: E501


def _data() -> dict[str, list[str]]:
    found = re.search(
        r'<script type="application/json" id="mg-sass-data">(.*?)</script>', sass_page.write_list()
    )
    assert found
    content: dict[str, list[str]] = json.loads(found[1])
    return content


def test_every_cell_of_every_table_is_in_the_data() -> None:
    data = _data()
    tables = [sass.load(target) for target in data["targets"]]
    assert data["targets"] == sass.targets()
    assert len(data["rows"]) == sum(len(form.kinds) for form in ptx_forms.load().forms)
    for name, _, kinds, numbers in data["rows"]:
        for table, number in zip(tables, map(int, numbers), strict=True):
            text, row = data["texts"][number], table.row(name, kinds)
            expected = row.text if row else sass.COMPUTED
            assert text == (f"refused: {table.refused[name]}" if name in table.refused else expected)


def test_the_pages_have_their_files_and_no_markup_in_the_data() -> None:
    text = sass_page.write_list()
    for name in re.findall(r'(?:src|href)="\.\./_static/(\S+?)"', text):
        assert name in {path.name for path in STATIC}
    assert text.count("</script>") == 2 and "\n\n" not in text[text.index("<link") : text.rindex("</script>")]


def test_the_paper_has_all_its_rows() -> None:
    text = sass_page.write_published()
    assert len(re.findall(r"(?m)^\| `", text)) == 110
    assert "| same | 50 |" in text and text.count("### ") == 6


def _page(folder: Path) -> Path:
    """The list without the theme, as a file."""
    body = re.sub(r"(?s)^.*?(<link)", r"\1", sass_page.write_list()).replace(
        "../_static/", f"{TEMPLATES}/static/"
    )
    page = folder / "list.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><body>{body}", "utf-8")
    return page


def test_the_list_filters_and_compares(browser: Browser, tmp_path: Path) -> None:
    browser.size(1280, 800)
    page = _page(tmp_path)
    browser.open(page, "#q=min.s32")
    assert browser.evaluate(CELLS)[0] == ["min.s32", "2 x register", "IMNMX", "sm_75 to sm_89, sm_110a"]
    browser.evaluate(SET.format(what="select", n=2, key="value", value="'sm_80'"))
    assert browser.evaluate(CELLS)[0] == ["min.s32", "2 x register", "IMNMX"]
    browser.evaluate(SET.format(what="select", n=3, key="value", value="'sm_120a'"))
    assert browser.evaluate(CELLS)[0] == ["min.s32", "2 x register", "IMNMX", "VIMNMX.S32"]
    browser.evaluate(SET.format(what="input", n=0, key="value", value="'mad.lo.u32 iMAD'"))
    assert browser.evaluate(CELLS)[0] == ["mad.lo.u32", "3 x register", "IMAD", "IMAD"]
    browser.evaluate(SET.format(what="input", n=1, key="checked", value="true"))
    assert browser.evaluate(CELLS) == []
    assert browser.evaluate("location.hash") == "#q=mad.lo.u32+iMAD&a=sm_80&b=sm_120a&d=1"
    browser.evaluate(SET.format(what="input", n=0, key="value", value="''"))
    assert (
        len(browser.evaluate(CELLS)) == 200
        and browser.evaluate("document.querySelector('button').hidden") is False
    )
    assert not browser.errors
