"""Properties: what the comparison pages say about every unit, measured on the models and on a chip."""

from __future__ import annotations

from dataclasses import dataclass

from golden.catalog.compared_units import BLOCKS, Block, units
from golden.identify.blackbox.plugins import Chip
from golden.identify.probe.facts import Facts
from golden.identify.probe.probes import Shot
from golden.identify.probe.properties import PROPERTIES, Property, measured
from golden.studies.study import Progress, Study, Table, findings
from golden.studies.units import Subject, and_on, who_answered

NAME = "properties"

_AS_MODEL = """\
- {name} gave {same} of {of} properties the value that the model of it has{other}.
"""


@dataclass(frozen=True)
class Cell:
    """One property of one unit: the value found, None where it means nothing there; the dot products that
    show it; what the spec states, None where it states nothing."""

    unit: Subject
    block: Block
    row: Property
    text: str | None
    shots: tuple[Shot, ...] = ()
    stated: str | None = None

    def __str__(self) -> str:
        return f"{self.row.name}, {self.block.title}, {self.unit.chip}: {self.text}"


def cell(chosen: Property, block: Block, unit: Subject, known: Facts) -> Cell:
    """Measures one property of the model or of the chip."""
    found, stated = measured(chosen, known)
    if found is None:
        return Cell(unit, block, chosen, None)
    return Cell(unit, block, chosen, found.text, found.shots, stated)


def run(samples: int = 1, progress: Progress = lambda done, total: None, chip: Chip | None = None) -> Study:
    """Measures every property of every unit."""
    subjects = [
        (block, unit)
        for block in BLOCKS
        for unit in and_on(chip, [Subject(name, ins.name, block.title) for name, ins in units(block).items()])
    ]
    cells: list[Cell] = []
    for step, (block, unit) in enumerate(subjects):
        known = Facts(unit.ins, None if unit.on is None else unit.answering)
        cells += [cell(chosen, block, unit, known) for chosen in PROPERTIES]
        progress(step + 1, len(subjects))
    found = [one for one in cells if one.text is not None]
    return Study(
        NAME,
        samples,
        _findings(found),
        [_table(block, [one for one in found if one.block is block]) for block in BLOCKS],
        data={f"{one.unit.chip} {one.block.title}: {one.row.title}": one.text for one in found},
        units=tuple(unit for _, unit in subjects),
        random=False,
    )


def _findings(found: list[Cell]) -> str:
    units_found = list(dict.fromkeys(one.unit for one in found))
    wrong = [f"{one}, not {one.stated}" for one in found if one.stated not in (None, one.text)]
    text = findings(
        NAME,
        measured=f"{len(found):,}",
        units=len(units_found),
        shots=f"{sum(len(one.shots) for one in found):,}",
        who=who_answered(units_found),
        wrong=f"are {len(wrong)}: {'; '.join(wrong)}" if wrong else "is none",
    )
    return text + "".join(map(_as_model, _with_models(found)))


def _with_models(found: list[Cell]) -> list[list[tuple[Cell, Cell]]]:
    """For each chip its cells, each with that of the model."""
    models = {(one.unit.architecture, one.unit.name, one.row): one for one in found if one.unit.on is None}
    chips: dict[str, list[tuple[Cell, Cell]]] = {}
    for one in found:
        if one.unit.on is not None:
            model = models[one.unit.architecture, one.unit.name, one.row]
            chips.setdefault(one.unit.chip, []).append((one, model))
    return list(chips.values())


def _as_model(pairs: list[tuple[Cell, Cell]]) -> str:
    other = [f"{a}, not {b.text}" for a, b in pairs if a.text != b.text]
    return _AS_MODEL.format(
        name=pairs[0][0].unit.chip,
        same=len(pairs) - len(other),
        of=len(pairs),
        other=f"; {'; '.join(other)}" if other else "",
    )


def _table(block: Block, cells: list[Cell]) -> Table:
    chips = list(dict.fromkeys(one.unit.chip for one in cells))
    texts = {(one.row, one.unit.chip): one.text for one in cells}
    rows: list[tuple[object, ...]] = [
        (chosen.title, *(texts.get((chosen, chip)) or "-" for chip in chips))
        for chosen in PROPERTIES
        if any((chosen, chip) in texts for chip in chips)
    ]
    return Table(block.slug, block.title, ("property", *chips), rows)
