"""The report of a dissection as a file: Markdown, or HTML and PDF with the tree of the sum, the datapath and
the unit's YAML.

    write(golden.dissect(unit), "unit.html")
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from golden import __version__
from golden.errors import DocsError, nearest
from golden.explain.markdown import figure
from golden.files import escape
from golden.files.output import write_text, write_whole
from golden.identify.blackbox.report import STEPS, Found
from golden.publish import document
from golden.publish.pictures import datapath, tree

FORMS = (".md", ".html", ".pdf")


def check(out: str | Path) -> None:
    """Refuses a file whose ending names no form.

    Raises:
        DocsError: with the endings that there are.
    """
    ending = Path(out).suffix
    if ending not in FORMS:
        raise DocsError(f"{out} ends in '{ending}', expected {', '.join(FORMS)}{nearest(ending, FORMS)}")


def write(found: Found, out: str | Path) -> None:
    """Writes the report; the ending of the file's name is its form.

    Raises:
        DocsError: another ending; a package that the form needs is not installed.
        OperandError: the file cannot be written.
    """
    check(out)
    match Path(out).suffix:
        case ".html":
            write_text(out, document.text_html(text(found), _subtitle()))
        case ".pdf":
            content = document.text_pdf(text(found), _subtitle())
            write_whole(str(out), lambda file: file.write(content))
        case _:
            write_text(out, found.report)


def text(found: Found) -> str:
    """The report with its pictures, as Markdown with inline SVG."""
    pictures = "" if found.modes else "\n\n".join(_pictures(found))
    report = found.report.replace(f"{STEPS}\n", f"{pictures}\n\n{STEPS}\n", 1) if pictures else found.report
    if found.yaml is None:
        return report
    fence = escape.fence(found.yaml)
    return f"{report}\n## The unit\n\n{fence}yaml\n{found.yaml.rstrip()}\n{fence}\n"


def _subtitle() -> str:
    return f"Dissection of a black box, by mmagold {__version__}"


def _pictures(found: Found) -> Iterator[str]:
    ins = found.instruction
    if ins is None:
        return
    whose = (
        "of the unit that was found" if found.explains else "of the nearest candidate, which is not the unit"
    )
    yield "## The sum"
    yield figure(tree.summation_tree(ins, "tree"), f"Order of the sum {whose}.")
    shown: dict[object, int] = {}
    for index, operation in enumerate(ins.program.operations):  # operations of a chain look alike
        shown.setdefault((operation.steps, len(operation.k_index)), index)
    most_datapaths = 3
    for index in list(shown.values())[:most_datapaths]:
        drawn = datapath.datapath(ins, index, f"datapath{index}")
        which = f", operation {index}" if len(ins.program.operations) > 1 else ""
        yield figure(drawn, f"Datapath {whose}{which}, with the width of every register.")
