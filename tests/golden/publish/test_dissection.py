"""The report of a dissection as a file: the same text in each form, pictures named for what they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import golden
from golden.errors import DocsError
from golden.identify.blackbox.evidence import Property, Witness
from golden.identify.blackbox.report import Found
from golden.publish import dissection

UNIT = golden.instruction("volta", "HMMA.884.F32.F32")
OPERANDS = {"a": np.array([0x3C00, 0, 0, 0]), "b": np.array([0x3C00, 0, 0, 0]), "c": np.array(0x33800000)}
SHOWN = Property(
    "round of total: nan", "2143289344", 1, (Witness("2147483647", 7, OPERANDS, 0x3F800000, 1),), ("none",)
)


def found(**more: object) -> Found:
    given = {"fresh": 80, "properties": (SHOWN,)} | more
    return Found("my <box>|x", UNIT, "unit: x\n", {"ties": (0, 100)}, ("one_thing", "another"), **given)  # type: ignore[arg-type]


def test_html_and_pdf_hold_the_report_with_pictures_and_the_unit(tmp_path: Path) -> None:
    pytest.importorskip("markdown_it")
    dissection.write(found(), tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert page.count("<svg") == 2 and "unit: x" in page and "80 of them queried after" in page
    assert "my &lt;box&gt;|x" in page and "<box>" not in page
    assert (
        "a[0] = 0x3c00, b[0] = 0x3c00, c = 0x33800000" in page
        and "with 0x7fffffff it would be 0x00000001" in page
    )
    pytest.importorskip("typst")
    dissection.write(found(), tmp_path / "r.pdf")
    assert (tmp_path / "r.pdf").read_bytes().startswith(b"%PDF")


def test_markdown_is_the_report_that_the_command_prints(tmp_path: Path) -> None:
    dissection.write(found(), tmp_path / "r.md")
    assert (tmp_path / "r.md").read_text("utf-8") == found().report
    assert "| round of total: nan | 0x7fc00000 | 1 | 7 | none | " in found().report


def test_pictures_of_a_candidate_that_is_wrong_are_not_called_the_units() -> None:
    assert "of the nearest candidate, which is not the unit" in dissection.text(found(fresh=0))
    assert "<svg" not in dissection.text(Found("box", None, None, {}, ("no answer",)))


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocsError, match=r"r.htm ends in '.htm', expected .md, .html, .pdf.*\.html"):
        dissection.write(found(), tmp_path / "r.htm")
