"""The comparison of all architectures: a matrix of properties for each operand type, and a page of witnesses
for each row.

Every cell is measured by a probe, held against the spec, and linked to the dot products that show it; where
the instruction was captured, also to a recorded result that any other value would have got wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from golden.catalog import architectures
from golden.catalog.compared_units import BLOCKS, Block, short_title, units
from golden.catalog.evidence_file import check_report
from golden.explain.markdown import anchor, link
from golden.files.inputs import read_json
from golden.identify.probe import captured_witness
from golden.identify.probe.captured_witness import Evidence, Place
from golden.identify.probe.facts import Finding, facts
from golden.identify.probe.properties import PROPERTIES, Property, by_slug, measure
from golden.model.instruction import Instruction
from golden.paths import docs_folder
from golden.publish import forms_page
from golden.publish.dot_text import command, operands_text, result_text
from golden.publish.evidence import campaigns
from golden.publish.families import group_of
from golden.publish.templating import Page, render

_NONE = "-"
_SHARES = "comparison"
_MARKS = {"captured": "C", "published": "P", "derived": "D"}
_UNSEEN_MARKS = _MARKS | {"captured": "c"}
"""The same for a value that no result can show."""
LETTERS = {
    "C": "recorded results show it",
    "(C)": "so, but some other values would have gone unseen",
    "C*": "recorded, but this installation lacks the recorded results",
    "c": "recorded, but no result shows it",
    "P": "published",
    "D": "derived",
    "?": "no source says it",
}
"""The letters of cells, as they are explained below each table; the page's head says more."""


def pages() -> list[Page]:
    """The matrix and one page of witnesses for each property."""
    found = [
        Page(f"comparison/{one.slug}.md", one.title, partial(property_page, one.slug), _SHARES)
        for one in PROPERTIES
    ]
    forms = Page(forms_page.PATH, forms_page.TITLE, forms_page.markdown, _SHARES)
    return [Page("comparison.md", "Comparison", matrix, _SHARES), *found, forms]


@dataclass(frozen=True)
class Case:
    """One property of one unit, with every architecture of the block whose program is the same."""

    row: Property
    block: Block
    architectures: tuple[str, ...]
    instruction: Instruction
    finding: Finding

    @property
    def heading(self) -> str:
        """The heading of its witnesses."""
        titles = [short_title(name) for name in self.architectures]
        return f"{self.block.title} on {', '.join(titles)}"

    @property
    def link_path(self) -> str:
        """Where its witnesses stand."""
        return f"comparison/{self.row.slug}.md#{anchor(self.heading)}"


@lru_cache(maxsize=512)
def cases(chosen: Property, block: Block) -> tuple[Case, ...]:
    """Measures a property on every architecture of a block; equal programs and formats are one case.

    Raises:
        ProbeError: a probe found something else than the spec says.
    """
    found: dict[int, tuple[Finding, list[str]]] = {}
    for architecture, ins in units(block).items():
        finding = measure(chosen, ins)
        if finding is not None:
            found.setdefault(id(facts(ins)), (finding, []))[1].append(architecture)
    return tuple(
        Case(chosen, block, tuple(names), units(block)[names[0]], finding)
        for finding, names in found.values()
    )


# The matrix -------------------------------------------------------------------------------------------------


def matrix() -> str:
    """Returns the page with the matrix.

    Raises:
        ProbeError: a probe found something else than the spec says.
        DocsError: a captured result contradicts the model.
    """
    names = architectures.architectures()
    return render(
        "comparison",
        chips=[_architecture(name) for name in names],
        forms=forms_page.PATH,
        units=list(_unit_rows()),
        blocks=[_block(block) for block in BLOCKS],
        letters=LETTERS,
    )


def _unit_rows() -> Iterator[list[str]]:
    for block in BLOCKS:
        found = units(block)
        cells = [
            _unit_cell(found[name]) if name in found else _NONE for name in architectures.architectures()
        ]
        yield [link(block.title, f"comparison.md#{anchor(block.title)}"), *cells]


def _architecture(name: str) -> str:
    return link(short_title(name), f"architectures/{name}.md")


def _unit_cell(ins: Instruction) -> str:
    name = ins.name if len(ins.sass) != 1 else ins.sass[0]
    return f"{link(f'`{name}`', group_of(ins).path)} (K {ins.k})"


def _block(block: Block) -> dict[str, Any]:
    """The table of one type of operands, the letters that stand in it, and who lacks such an instruction."""
    found = units(block)
    rows = []
    for chosen in PROPERTIES:
        cells = {name: case for case in cases(chosen, block) for name in case.architectures}
        if cells:
            row = [_cell(cells.get(name), found[name]) for name in found]
            rows.append([link(chosen.title, f"comparison/{chosen.slug}.md"), *row])
    rows += forms_page.rows(block, list(found))
    used = {cell.rsplit(" ", 1)[-1] for row in rows for cell in row[1:]}
    return {
        "title": block.title,
        "chips": [_architecture(name) for name in found],
        "rows": rows,
        "letters": [mark for mark in LETTERS if mark in used],
        "missing": [
            forms_page.not_native(block, name) for name in architectures.architectures() if name not in found
        ],
    }


def _cell(case: Case | None, ins: Instruction) -> str:
    if case is None:
        return _NONE
    cell = link(case.finding.text, case.link_path)
    if case.finding.shots:
        return f"{cell} {_mark(case.row, ins)}"
    return f"{cell} {_UNSEEN_MARKS[ins.evidence.kind]}" if case.finding.declared else cell


def _mark(chosen: Property, ins: Instruction) -> str:
    """C, (C), c, P, D or ?."""
    finding = measure(chosen, ins)
    if finding is not None and chosen.assumed(ins, finding):
        return "?"
    if ins.evidence.kind != "captured":
        return _MARKS[ins.evidence.kind]
    if captured_witness.recorded(ins) is None:
        return "C*"  # this installation cannot look, so it claims neither C nor c
    found = _evidence(chosen, ins)
    if found is None or not found.places:
        return "c"
    return "(C)" if _silent(chosen, ins, found) else "C"


def _silent(chosen: Property, ins: Instruction, found: Evidence) -> list[str]:
    """What the recorded results are equally consistent with."""
    return [text for text in (*found.silent, chosen.unseen(ins)) if text]


@lru_cache(maxsize=1024)  # what the matrix shows, the pages of the properties show again
def _evidence(chosen: Property, ins: Instruction) -> Evidence | None:
    return captured_witness.evidence(ins, chosen.against)


# Witnesses --------------------------------------------------------------------------------------------------


def property_page(slug: str) -> str:
    """Returns the page of one property: what it is, its values, and the dot products that show each."""
    chosen = by_slug()[slug]
    return render(
        "property",
        property=chosen,
        chips=[_architecture(name) for name in architectures.architectures()],
        values=list(_values(chosen)),
        cases=[_witness(case) for block in BLOCKS for case in cases(chosen, block)],
    )


def _values(chosen: Property) -> Iterator[list[str]]:
    for block in BLOCKS:
        found = {name: case for case in cases(chosen, block) for name in case.architectures}
        if found:
            row = [
                link(found[name].finding.text, found[name].link_path) if name in found else _NONE
                for name in architectures.architectures()
            ]
            yield [block.title, *row]


def _witness(case: Case) -> dict[str, Any]:
    ins, finding = case.instruction, case.finding
    fmt = ins.formats["d"]
    return {
        "heading": case.heading,
        "finding": finding,
        "sources": list(_sources(case)),
        "assumed": case.row.assumed(ins, finding),
        "shots": [
            [shot.what, operands_text(ins, shot.operands), result_text(fmt, shot.code)]
            for shot in finding.shots
        ],
        "commands": "\n".join(dict.fromkeys(command(ins, shot.operands) for shot in finding.shots)),
        "recorded": [
            _recorded(case, architecture, found)
            for architecture in (case.architectures if finding.shots else ())
            if (found := _evidence(case.row, units(case.block)[architecture])) is not None
        ],
    }


def _sources(case: Case) -> Iterator[str]:
    """For each architecture of a case how its rule is known."""
    for architecture in case.architectures:
        ins = units(case.block)[architecture]
        name = link(f"`{ins.name}`", group_of(ins).path)
        chip = architectures.get_architecture(architecture)
        yield (
            f"{short_title(architecture)}: {name}, {ins.evidence.kind} ({ins.evidence.source}); chip: "
            f"{chip.source}"
        )


def _recorded(case: Case, architecture: str, found: Evidence) -> dict[str, Any]:
    """What the recorded results of one architecture say."""
    ins = units(case.block)[architecture]
    return {
        "title": short_title(architecture),
        "results": found.results,
        "of": "" if found.instructions == 1 else f" of {found.instructions} instructions of this program",
        "refuted": len(found.refuted_units),
        "rows": [_place_row(place) for place in found.places],
        "commands": "\n".join(command(place.instruction, place.operands) for place in found.places),
        "silent": _silent(case.row, ins, found),
        "planted": list(_planted(ins, case.row.fault)),
    }


def _place_row(place: Place) -> list[str]:
    fmt = place.instruction.formats["d"]
    # Other units of one place that are written out before it says how many more.
    refuted_listed = 4
    others = [f"{text}: {result_text(fmt, value)}" for text, value in place.others[:refuted_listed]]
    more = len(place.others) - refuted_listed
    words = "; ".join([*others, *([f"and {more} more"] if more > 0 else [])])
    where = f"tile {place.tile} ({place.kind.split(':')[0]}), row {place.row}, column {place.column}"
    file = link(f"`{place.file.rsplit('/', 1)[-1]}`", place.file)
    return [file, where, result_text(fmt, place.recorded), words]


def _planted(ins: Instruction, parameter: str) -> Iterator[str]:
    """One sentence for each campaign that compared this instruction with a model whose parameter is wrong."""
    for path in sorted((docs_folder() / "campaigns").glob("*_faults.json")):
        report = read_json(check_report(path))
        for run in report["campaigns"]:
            if (run["architecture"], run["instruction"]) == (ins.architecture, ins.name) and parameter in run[
                "faults"
            ]:
                page = link("a campaign", "campaign.md#does-it-see-a-wrong-unit")
                yield (
                    f"On an {report['device']['name']}, {page} compared the instruction with a model whose "
                    f"{parameter} is {run['faults'][parameter]}: {run['mismatches']:,} of {run['dots']:,} "
                    f"dot products differ. {_right(ins)}"
                )


def _right(ins: Instruction) -> str:
    """The same comparison with the model as it is."""
    runs = [run for _, run in campaigns().get(f"{ins.architecture}:{ins.name}", [])]
    wrong, dots = (sum(run[key] for run in runs) for key in ("mismatches", "dots"))
    return f"With the spec's own value {wrong:,} of {dots:,} do." if runs else ""
