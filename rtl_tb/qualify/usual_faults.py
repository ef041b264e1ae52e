"""What the report says about the usual faults: the table of docs/reports/usual-faults.md.

    python -m rtl_tb.qualify.usual_faults

writes it again; it checks each unit of rtl_tb/mutants/usual/faults.yaml, which takes two minutes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from golden.boundary import end
from golden.errors import DocsError
from golden.files.output import write_text
from golden.identify.diagnosis import Hypothesis
from golden.paths import docs_folder
from rtl_tb.check.check import check_dut
from rtl_tb.check.options import Options
from rtl_tb.qualify.mutants import FOLDER, Mutant, read_mutants

PAGE = "reports/usual-faults.md"
BEGIN, END = "<!-- usual faults: python -m rtl_tb.qualify.usual_faults -->", "<!-- end of usual faults -->"
_HEAD = ("| Unit | Planted | The report says: your unit is ... with |", "|---|---|---|")


def usual_faults() -> list[Mutant]:
    """The units with these faults, each with the name that it must have first."""
    return read_mutants([FOLDER / "usual" / "faults.yaml"])


def said(mutant: Mutant, build: Path) -> Hypothesis | None:
    """The first hypothesis of the report, where it explains every result."""
    count = 20_000
    options = Options(count=count, synthesis="off", failures=None, build=build)
    found = check_dut(mutant.plant(build / "source"), options).diagnosis
    return found.hypotheses[0] if found is not None and found.explains else None


def row(mutant: Mutant, text: str) -> str:
    """One row of the table."""
    return f"| {mutant.unit_name} | {mutant.fault} | {text} |"


def table(page: str) -> list[str]:
    """The rows that a page has.

    Raises:
        DocsError: it has no such table.
    """
    if BEGIN not in page or END not in page:
        raise DocsError(f"docs/{PAGE}: the marks of the table of usual faults are missing")
    lines = page.partition(BEGIN)[2].partition(END)[0].strip().splitlines()
    return lines[len(_HEAD) :]


def filled(page: str, rows: Iterable[str]) -> str:
    """The page with these rows."""
    table(page)
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    return "\n".join([f"{before}{BEGIN}", "", *_HEAD, *rows, "", f"{END}{after}"])


def main() -> None:
    """Writes the table anew.

    Raises:
        DocsError: a fault is not named.
    """
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for mutant in usual_faults():
            found = said(mutant, Path(folder) / mutant.name)
            if found is None or found.slug != mutant.diagnosis:
                raise DocsError(f"{mutant.where}: {mutant.name} is not named {mutant.diagnosis}")
            rows.append(row(mutant, found.text))
    page = docs_folder() / PAGE
    write_text(page, filled(page.read_text("utf-8"), rows))


if __name__ == "__main__":
    end(main, "rtl_tb.qualify.usual_faults")
