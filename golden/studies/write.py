"""A finished study as files: the text, a CSV file for each table, SVG and PNG files of the figures."""

from __future__ import annotations

import csv
import io
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from golden.files.output import Fill, write_folder
from golden.studies.draw import only_style
from golden.studies.study import Study, Table, plain


def write(study: Study, folder: Path) -> list[Path]:
    """Writes everything into a folder, which is made; returns the files.
    The same study always gives the same bytes.

    Raises:
        ToolMissing: the study has figures and matplotlib is not installed; nothing is written.
    """
    with only_style() if study.figures else nullcontext():
        return _write(study, folder)


def _write(study: Study, folder: Path) -> list[Path]:
    pictures = {figure.name: figure.draw() for figure in study.figures}
    files: dict[str, str | Fill] = {f"{study.name}.md": document(study)}
    files |= {f"{study.name}_{table.name}.csv": csv_text(table) for table in study.tables}
    for name, picture in pictures.items():
        for form, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            save = partial(picture.savefig, format=form, dpi=160, facecolor="white", metadata=metadata)
            files[f"{study.name}_{name}.{form}"] = save
    return write_folder(folder, files)


def csv_text(table: Table) -> str:
    """A table as CSV: numbers in full, text without Markdown's marks."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.head)
    writer.writerows(
        [cell.replace("`", "") if isinstance(cell, str) else cell for cell in row] for row in table.rows
    )
    return out.getvalue()


def document(study: Study) -> str:
    """The study as Markdown, in the folder of its figures."""
    figures = [
        f"![{figure.caption}]({study.name}_{figure.name}.svg)\n\n{figure.caption}" for figure in study.figures
    ]
    parts = [
        f"# {study.words.title}",
        f"{study.words.question} Source: {study.words.source}.",
        f"`{study.command}`, {study.effort}.",
    ]
    return (
        "\n\n".join(
            [*parts, plain(study.findings), *figures, *(plain(table.markdown()) for table in study.tables)]
        )
        + "\n"
    )
