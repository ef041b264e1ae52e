"""The comparison of all architectures: a matrix of properties for each operand type, and a page of witnesses
for each row.

Every cell is measured by a probe, held against the spec, and linked to the dot products that show it; where
the instruction was captured, also to a recorded result that any other value would have got wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

from golden.catalog import architectures
from golden.catalog.compared_units import BLOCKS, Block, short_title, units
from golden.explain.markdown import anchor, code, link, table
from golden.identify.probe import captured_witness
from golden.identify.probe.captured_witness import Evidence
from golden.identify.probe.facts import Finding, facts
from golden.identify.probe.properties import PROPERTIES, Property, by_slug, measure
from golden.instruction import Instruction
from golden.publish import forms_page, planted_faults
from golden.publish.dot_text import command, operands_text, result_text
from golden.publish.families import group_of
from golden.publish.page import Page

_NONE = "-"
_SHARES = "comparison"
_MARKS = {"captured": "C", "published": "P", "derived": "D"}
_UNSEEN_MARKS = _MARKS | {"captured": "c"}
"""The same for a value that no result can show."""
LETTERS = {
    "C": "recorded results show it",
    "(C)": "so, but some other values would have gone unseen",
    "C*": "recorded, but this installation lacks the recorded results",
    "c": "recorded, but no result tells it",
    "P": "published",
    "D": "derived",
    "?": "no source says it",
}
"""The letters of cells, as they are told below each table; the page's head says more."""
_REFUTED_LISTED = 4
"""Other units of one place that are written out before it says how many more."""


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
    """Measures a property on every architecture of a block; those of one program and formats are one case.

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
    parts = [
        "# Comparison",
        f"What the matrix units of {len(architectures.architectures())} architectures do with the same "
        "operands. Each cell is measured: a probe runs dot products whose results tell the property, and "
        "finds the same as the spec says, or this page cannot be built. The link leads to these dot "
        "products.",
        "The letter says how the rule is known. **C**: results recorded on hardware show it; units with "
        "another value get some of them wrong. **(C)**: the same, but some other values would have gone "
        "unseen; the page of the property says which. **c**: the instruction was recorded, but no recorded "
        "result tells this, or none can. **P**: published in the source that the instruction names. **D**: "
        "derived from others. **?**: no source says it; the model's value stands for any. RZ, RNE, RD: "
        "round toward zero, to nearest even, down.",
        "## Units",
        "The plainest native instruction of each operand type stands for all of them (FP8: e4m3; FP4: e2m1, "
        "the smallest scale blocks). The last rows of a table say whether the sparse, `wmma` and emulated "
        f"instructions of these types {link('gave the same bits on the same operands', forms_page.PATH)}; "
        "all instructions of a chip are on the "
        f"{link('page of its architecture', 'architectures/index.md')}.",
        _unit_table(),
    ]
    for block in BLOCKS:
        parts += [f"## {block.title}", _block_table(block)]
        missing = [
            forms_page.not_native(block, name)
            for name in architectures.architectures()
            if name not in units(block)
        ]
        parts += [f"No such native instruction: {', '.join(missing)}."] if missing else []
    return "\n\n".join(parts)


def _unit_table() -> str:
    rows = []
    for block in BLOCKS:
        found = units(block)
        cells = [
            _unit_cell(found[name]) if name in found else _NONE for name in architectures.architectures()
        ]
        rows.append([link(block.title, f"comparison.md#{anchor(block.title)}"), *cells])
    return table(["Operands", *(_architecture(name) for name in architectures.architectures())], rows)


def compared(text: str) -> str:
    """A table whose rows tables.js compares cell by cell."""
    return f'<div class="mg-compared">\n\n{text}\n\n</div>'


def _architecture(name: str) -> str:
    return link(short_title(name), f"architectures/{name}.md")


def _unit_cell(ins: Instruction) -> str:
    name = ins.name if len(ins.sass) != 1 else ins.sass[0]
    return f"{link(f'`{name}`', group_of(ins).path)} (K {ins.k})"


def _block_table(block: Block) -> str:
    found = units(block)
    rows = []
    for chosen in PROPERTIES:
        cells = {name: case for case in cases(chosen, block) for name in case.architectures}
        if cells:
            row = [_cell(cells.get(name), found[name]) for name in found]
            rows.append([link(chosen.title, f"comparison/{chosen.slug}.md"), *row])
    rows += forms_page.rows(block, list(found))
    shown = compared(table(["Property", *(_architecture(name) for name in found)], rows))
    used = {cell.rsplit(" ", 1)[-1] for row in rows for cell in row[1:]}
    letters = [f"{mark}: {meaning}" for mark, meaning in LETTERS.items() if mark in used]
    return f"{shown}\n\n{'; '.join(letters)}." if letters else shown


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
    """What no recorded result tells from the model."""
    return [text for text in (*found.silent, chosen.unseen(ins)) if text]


@lru_cache(maxsize=1024)  # what the matrix shows, the pages of the properties show again
def _evidence(chosen: Property, ins: Instruction) -> Evidence | None:
    return captured_witness.evidence(ins, chosen.against)


# Witnesses --------------------------------------------------------------------------------------------------


def property_page(slug: str) -> str:
    """Returns the page of one property: what it is, its values, and the dot products that show each."""
    chosen = by_slug()[slug]
    parts = [
        f"# {chosen.title}",
        chosen.text,
        link("All properties", "comparison.md"),
        "## Values",
        _values(chosen),
    ]
    for block in BLOCKS:
        for case in cases(chosen, block):
            parts += [f"## {case.heading}", *_witness(case)]
    return "\n\n".join(parts)


def _values(chosen: Property) -> str:
    rows = []
    for block in BLOCKS:
        found = {name: case for case in cases(chosen, block) for name in case.architectures}
        if found:
            row = [
                link(found[name].finding.text, found[name].link_path) if name in found else _NONE
                for name in architectures.architectures()
            ]
            rows.append([block.title, *row])
    return compared(
        table(["Operands", *(_architecture(name) for name in architectures.architectures())], rows)
    )


def _witness(case: Case) -> Iterator[str]:
    ins, finding = case.instruction, case.finding
    yield f"**{finding.text}**. {finding.reading}".rstrip()
    yield "\n".join(f"- {line}" for line in _sources(case))
    if case.row.assumed(ins, finding):
        yield "No source says this: the model's value stands for any."
    if finding.shots:
        fmt = ins.formats["d"]
        rows = [
            [shot.what, operands_text(ins, shot.operands), result_text(fmt, shot.code)]
            for shot in finding.shots
        ]
        yield table(["Try", "Operands", "Result"], rows)
        yield code("\n".join(dict.fromkeys(command(ins, shot.operands) for shot in finding.shots)), "console")
    for architecture in case.architectures:
        found = _evidence(case.row, units(case.block)[architecture]) if finding.shots else None
        if found is not None:
            yield from _recorded(case, architecture, found)
            yield from planted_faults.told(units(case.block)[architecture], case.row.fault)


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


def _recorded(case: Case, architecture: str, found: Evidence) -> Iterator[str]:
    """What the recorded results of one architecture say."""
    title = short_title(architecture)
    of = "" if found.instructions == 1 else f" of {found.instructions} instructions of this program"
    if not found.places:
        yield f"Recorded on {title}: none of {found.results:,} results{of} tells this."
        return
    count = len(found.told)
    yield (
        f"Recorded on {title}: {found.results:,} results{of}, all as the model gives them. "
        f"{'One unit' if count == 1 else f'{count} units'} with another value "
        f"{'is' if count == 1 else 'are'} refuted by them:"
    )
    rows = []
    for place in found.places:
        fmt = place.instruction.formats["d"]
        others = [f"{text}: {result_text(fmt, value)}" for text, value in place.others[:_REFUTED_LISTED]]
        more = len(place.others) - _REFUTED_LISTED
        words = "; ".join(others) + (f"; and {more} more" if more > 0 else "")
        where = f"tile {place.tile} ({place.kind.split(':')[0]}), row {place.row}, column {place.column}"
        file = link(f"`{place.file.rsplit('/', 1)[-1]}`", place.file)
        rows.append([file, where, result_text(fmt, place.recorded), words])
    yield table(["File", "Where", "Recorded", "Other units would have given"], rows)
    yield code("\n".join(command(place.instruction, place.operands) for place in found.places), "console")
    silent = _silent(case.row, units(case.block)[architecture], found)
    if silent:
        yield f"Not told apart by any of these results: {'; '.join(silent)}."
