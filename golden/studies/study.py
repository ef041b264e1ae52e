"""What a study hands back: text, tables, figures and plain values; `published` is what the papers print
about the findings (spec/studies/*.yaml)."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from golden.errors import counted
from golden.explain import markdown
from golden.files import escape
from golden.files.output import Fill, write_folder
from golden.paths import spec_folder
from golden.studies.draw import only_style
from golden.studies.units import Subject
from golden.yamlfile import Section, read

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

TEMPLATES = Path(__file__).resolve().parents[1] / "templates"
Progress = Callable[[int, int], None]
"""Called as progress(done, total) while a study runs."""


@dataclass(frozen=True)
class Words:
    """What the Markdown file of a study in golden/templates/studies says; `findings` has places, {name}, for
    numbers."""

    title: str
    question: str
    source: str
    findings: str


@cache
def words_of(name: str) -> Words:
    """The words of a study."""
    text = (TEMPLATES / "studies" / f"{name}.md").read_text("utf-8")
    title, question, source, findings = text.split("\n\n", 3)
    return Words(title.removeprefix("# "), question, source.removeprefix("Source: "), findings)


def findings(name: str, /, **numbers: Any) -> str:
    """The findings of a study, with the numbers of a run."""
    return words_of(name).findings.format(**numbers)


@dataclass(frozen=True)
class Table:
    """A table; cells are numbers as they came or text. `name` makes the name of its CSV file."""

    name: str
    caption: str
    head: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def texts(self) -> list[list[str]]:
        """The cells as they are printed: numbers with three digits."""
        return [[text(cell) for cell in row] for row in self.rows]

    def markdown(self) -> str:
        """The table with its caption above."""
        return f"**{self.caption}**\n\n{markdown.table(self.head, self.texts())}"


@dataclass(frozen=True)
class Figure:
    """A figure that is drawn on demand, so that a study runs without matplotlib."""

    name: str
    caption: str
    draw: Callable[[], Picture]


@dataclass
class Study:
    """A finished study. `findings` is Markdown whose numbers are those of this run; `data` goes to JSON;
    `random`: it samples; `units`: what was run; `recordings`: files of spec/timing that it reads."""

    name: str
    samples: int
    findings: str
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    units: tuple[Subject, ...] = ()
    random: bool = True
    recordings: tuple[str, ...] = ()

    @property
    def words(self) -> Words:
        """Title, question and source."""
        return words_of(self.name)

    @property
    def effort(self) -> str:
        """How much was computed."""
        if self.recordings:
            return f"the recordings {', '.join(self.recordings)}"
        return (
            f"{counted(self.samples, 'sample')} of each experiment"
            if self.random
            else "directed operands only"
        )

    @property
    def command(self) -> str:
        """What reproduces it."""
        return f"mmagold study {self.name}" + " --gpu" * any(unit.on is not None for unit in self.units)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON: all but the figures' drawings."""
        return {
            "study": self.name,
            "title": self.words.title,
            "question": self.words.question,
            "source": self.words.source,
            "samples": self.samples,
            "command": self.command,
            "findings": plain(self.findings),
            "units": [
                {
                    "architecture": unit.architecture,
                    "instruction": unit.ins.name,
                    "evidence": unit.ins.evidence.kind,
                    "asked": "model" if unit.on is None else unit.on.name,
                }
                for unit in self.units
            ],
            "tables": [
                {"caption": t.caption, "head": list(t.head), "rows": [list(row) for row in t.rows]}
                for t in self.tables
            ],
            "figures": [{"name": f.name, "caption": f.caption} for f in self.figures],
            "data": self.data,
        }


def text(cell: Any) -> str:
    """A cell as text: floats with three significant digits, counts with thousands separated."""
    if isinstance(cell, bool) or cell is None:
        return {True: "yes", False: "no", None: ""}[cell]
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return number(cell)
    return str(cell)


def number(value: float) -> str:
    """A float with three significant digits; small and large ones with an exponent."""
    if value == 0 or value != value or value in (float("inf"), -float("inf")):
        return f"{value:g}"
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def percent(share: float) -> str:
    """A share as per cent; 100 % and 0 % only when they are exact."""
    if share in (0.0, 1.0):
        return f"{share:.0%}".replace("%", " %")
    digits = 3 if share < 0.001 or share > 0.999 else 2 if share < 0.1 else 1
    return f"{100 * share:.{digits}f} %"


def plain(findings: str) -> str:
    """Markdown without the links of the site."""
    return re.sub(r"\[([^\]]*)\]\(site:[^)]*\)", r"\1", findings)


# Files ------------------------------------------------------------------------------------------------------


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
    rows = ([cell.replace("`", "") if isinstance(cell, str) else cell for cell in row] for row in table.rows)
    return escape.csv_text(table.head, rows)


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


@lru_cache(maxsize=8)
def published(study: str) -> Section:
    """The printed numbers for a study, from spec/studies/<study>.yaml; raises SpecError where the file is
    missing or wrong."""
    document = read(spec_folder() / "studies" / f"{study}.yaml")
    document.take("source", str)
    return document
