"""What a coverpoint is, and how its bins and its name are put together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from golden.program.program import Operation
from golden.program.steps import Step

Array = npt.NDArray[Any]
Sample = tuple[str, Array]
"""A coverpoint's name and the bins that vectors fall into; -1 is none."""


@dataclass(frozen=True)
class Coverpoint:
    """One coverpoint: the part of the unit it looks at, its name and its bins with whether each can be
    reached."""

    part: str
    name: str
    bins: dict[str, bool]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the bins in order."""
        return tuple(self.bins)


def crossed(rows: dict[str, bool], columns: dict[str, bool]) -> dict[str, bool]:
    """A cross: reached where both bins can be (the two sides are independent)."""
    return {f"{r}, {c}": x and y for r, x in rows.items() for c, y in columns.items()}


def united(points: list[Coverpoint], more: list[Coverpoint]) -> list[Coverpoint]:
    """Equal operations share coverpoints: a bin is reachable where one of them can reach it."""
    known = {point.name: point for point in points}
    for point in more:
        old = known.get(point.name, point)
        known[point.name] = replace(
            point, bins={label: old.bins[label] or reach for label, reach in point.bins.items()}
        )
    return list(known.values())


def stage_name(operation: Operation, step: Step) -> str:
    """What the coverpoints of a step are named after: equal operations of a chain share it."""
    registers = " and ".join(step.of)
    return f"{operation.algorithm}: {step.op} {registers}"
