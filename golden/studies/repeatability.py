"""Repeatability: whether a unit answers a question the same again, and at every place of its tile."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from golden import stimuli
from golden.catalog.architectures import architectures
from golden.catalog.lookup import instructions
from golden.identify.blackbox.box import Box
from golden.identify.blackbox.plugins import Chip
from golden.identify.blackbox.repeatability import at_every_place, check_repeatability
from golden.studies.study import Progress, Study, Table, findings
from golden.studies.units import Subject, and_on, who_answered
from golden.unit import FunctionUnit

NAME = "repeatability"

_KIND = "random_bits"


@dataclass(frozen=True)
class Repeated:
    """Of one unit: dot products that were repeated, and put everywhere, and how many gave another
    result."""

    unit: Subject
    asked: int
    again: int
    tiles: int
    moved: int


def units() -> list[Subject]:
    """Of every architecture one instruction of each list of algorithms, dense or sparse, with scales or
    without."""
    found: dict[object, Subject] = {}
    for name in architectures():
        for ins in instructions(name):
            key = name, ins.program.algorithms, ins.sparse, ins.scale_block is None
            if key not in found and ins.modes is None and not ins.state:
                found[key] = Subject(name, ins.name, ins.name)
    return list(found.values())


def find(unit: Subject, samples: int) -> Repeated:
    """Asks one unit."""
    ins, answering = unit.ins, unit.answering
    dots = FunctionUnit.like(ins, answering.dot)  # places of the tile are tried below, more of them
    # The query budget for one unit, in dot products.
    most_asked = 10_000
    found = check_repeatability(Box(dots, most_asked, math.inf), lambda *place: np.random.default_rng(place))
    operands = stimuli.generate(ins, _KIND, samples, np.random.default_rng(8))
    tile = Box(answering, most_asked, math.inf).tile
    moved = [] if tile is None else at_every_place(ins, operands, tile)
    return Repeated(unit, found.queries, found.differ, len(moved), sum(one is not None for one in moved))


def run(samples: int = 8, progress: Progress = lambda done, total: None, chip: Chip | None = None) -> Study:
    """Asks every unit."""
    subjects, found = list(and_on(chip, units())), list[Repeated]()
    for step, unit in enumerate(subjects):
        found.append(find(unit, samples))
        progress(step + 1, len(subjects))
    return Study(
        NAME,
        samples,
        findings(
            NAME,
            who=who_answered(subjects),
            **{name: f"{sum(getattr(one, name) for one in found):,}" for name in _COUNTS},
        ),
        [_table(found)],
        data={
            f"{one.unit.on.name if one.unit.on else one.unit.architecture}:{one.unit.name}": {
                name: getattr(one, name) for name in _COUNTS
            }
            for one in found
        },
        units=tuple(subjects),
    )


_COUNTS = ("asked", "again", "tiles", "moved")


def _table(found: list[Repeated]) -> Table:
    rows = []
    for name in dict.fromkeys(one.unit.chip for one in found):
        mine = [one for one in found if one.unit.chip == name]
        counts = (sum(getattr(one, count) for one in mine) for count in _COUNTS)
        rows.append((mine[0].unit.chip, len(mine), *counts))
    head = ("chip", "instructions", "repeated", "another result", "put everywhere", "another at one place")
    return Table("repeated", "Dot products that were repeated, and at every place of the tile", head, rows)
