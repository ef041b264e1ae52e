"""Coverpoints of a unit that keeps its accumulator: how dot products follow one another."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from golden.cover.points.classes import accumulator_bins, coarse_bins, coarse_of
from golden.cover.points.point import Array, Coverpoint, Sample
from golden.cover.ranges import AccumulatorRange
from golden.model.instruction import Instruction
from golden.model.registers import decode
from golden.program.state import before, places

_PART = "sequence"
_LENGTHS = ((1, "1"), (2, "2"), (8, "3..8"), (1 << 62, "9 or more"))
"""How many dot products a sum has so far: up to, and what the bin is called."""
_IN_A_ROW = ("no clear, no clear", "no clear, clear", "clear, no clear", "clear, clear")


_WITH_LOAD = ("no load, no load", "no load, load", "load, no load", "load, load")


def sequence_points(ins: Instruction, held: AccumulatorRange | None, load: bool = False) -> list[Coverpoint]:
    """Any order can be given; what `clear`, or `load`, finds is what the unit can hold."""
    fmt = ins.formats["c"]
    loads = [
        Coverpoint(_PART, "load of two dot products in a row", dict.fromkeys(_WITH_LOAD, True)),
        Coverpoint(_PART, "class of what load replaces", coarse_bins(fmt, accumulator_bins(fmt, held))),
    ]
    return [
        Coverpoint(_PART, "clear", {"unset": True, "set": True}),
        Coverpoint(_PART, "dot products since clear", {label: True for _, label in _LENGTHS}),
        Coverpoint(_PART, "clear of two dot products in a row", dict.fromkeys(_IN_A_ROW, True)),
        Coverpoint(_PART, "class of what clear forgets", coarse_bins(fmt, accumulator_bins(fmt, held))),
        *(loads if load else []),
    ]


def sequence_samples(ins: Instruction, clear: Array, d: Array, load: Array | None = None) -> Iterator[Sample]:
    """The bins that dot products (time,) fall into. The first follows none: it stands for the one after a
    reset, where the unit holds zero."""
    yield "clear", clear
    ends = np.array([most for most, _ in _LENGTHS])
    yield "dot products since clear", np.searchsorted(ends, places(clear) + 1)
    yield "clear of two dot products in a row", 2 * clear[:-1].astype(np.int64) + clear[1:]
    fmt = ins.formats["c"]
    forgotten = before(d, np.zeros_like(clear))[1:, None]
    classes = coarse_of(fmt, decode(fmt, forgotten))[:, 0]
    yield "class of what clear forgets", np.where(clear[1:] != 0, classes, -1)
    if load is not None:
        yield "load of two dot products in a row", 2 * load[:-1].astype(np.int64) + load[1:]
        yield "class of what load replaces", np.where(load[1:] != 0, classes, -1)
