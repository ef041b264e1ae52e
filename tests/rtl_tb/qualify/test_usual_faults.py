"""The usual faults are named first, in the words of docs/reports/usual-faults.md."""

from pathlib import Path

import pytest
from long_run import long_after

from rtl_tb.qualify.usual_faults import PAGE, filled, row, said, table, usual_faults

DOCS = Path(__file__).parents[3] / "docs"
FAULTS = usual_faults()


def test_the_page_has_each_fault() -> None:
    page = (DOCS / PAGE).read_text("utf-8")
    rows = table(page)
    assert [each.rpartition(" | ")[0] for each in rows] == [
        row(one, "").rpartition(" | ")[0] for one in FAULTS
    ]
    assert filled(page, rows) == page


def test_each_patch_fits_its_unit(tmp_path: Path) -> None:
    for fault in FAULTS:
        assert fault.diagnosis and fault.plant(tmp_path / fault.name).sources


@pytest.mark.parametrize("fault", long_after(0, FAULTS, [one.name for one in FAULTS]))
def test_it_is_named_first(fault, tmp_path: Path) -> None:
    found = said(fault, tmp_path)
    assert found is not None and found.slug == fault.diagnosis
    assert row(fault, found.text) in table((DOCS / PAGE).read_text("utf-8"))
