"""A finished study as files: the text, a CSV file for each table, SVG and PNG files of the figures."""

from __future__ import annotations

import csv
import io
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from golden.operands import write_text, write_whole
from golden.studies.draw import only_style
from golden.studies.study import Study, Table, plain


def write(study: Study, folder: Path) -> list[Path]:
    """Writes everything into a folder, which is made; returns the files. The same study always gives the same bytes.

    Raises:
        ToolMissing: the study has figures and matplotlib is not installed; nothing is written.
    """
    with only_style() if study.figures else nullcontext():
        return _write(study, folder)


def _write(study: Study, folder: Path) -> list[Path]:
    pictures = {figure.name: figure.draw() for figure in study.figures}
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{study.name}.md"]
    write_text(written[0], document(study))
    for table in study.tables:
        written.append(folder / f"{study.name}_{table.name}.csv")
        write_text(written[-1], csv_text(table))
    for name, picture in pictures.items():
        for form, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            written.append(folder / f"{study.name}_{name}.{form}")
            write_whole(written[-1], partial(picture.savefig, format=form, dpi=160, facecolor="white", metadata=metadata))
    return written


def csv_text(table: Table) -> str:
    """A table as CSV: numbers in full, text without Markdown's marks."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.head)
    writer.writerows([cell.replace("`", "") if isinstance(cell, str) else cell for cell in row] for row in table.rows)
    return out.getvalue()


def document(study: Study) -> str:
    """The study as Markdown beside its figures' files."""
    figures = [f"![{figure.caption}]({study.name}_{figure.name}.svg)\n\n{figure.caption}" for figure in study.figures]
    parts = [f"# {study.title}", f"{study.question} Source: {study.source}.", f"`{study.command}`, {study.effort}."]
    return "\n\n".join([*parts, plain(study.findings), *figures, *(plain(table.markdown()) for table in study.tables)]) + "\n"
