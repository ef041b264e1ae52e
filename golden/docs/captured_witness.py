"""Captured results that show a property: recorded on hardware, and wrong in every unit that has the property otherwise.

The other units are the hypotheses of the diagnosis (golden/hypotheses.py): the same program with one thing changed. The
recorded operands are run through each; a result that differs from the hardware's refutes it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import captured, catalog
from golden.captured import Captured
from golden.docs.errors import DocsError
from golden.errors import FileFormatError
from golden.hypotheses import Change, changes
from golden.instruction import Instruction
from golden.minimise import cost
from golden.paths import vector_file

Bits = npt.NDArray[Any]
_PLACES = 3
"""At most so many results are shown for one property."""
_CANDIDATES = 64


@dataclass(frozen=True)
class Place:
    """One recorded result, and what other units would have answered: (what is changed, code)."""

    tile: int
    row: int
    column: int
    kind: str
    operands: dict[str, Bits]
    recorded: int
    others: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Evidence:
    """What the recorded results of one instruction say of a property.

    places: few results that together refute all that can be refuted. counts: for every changed unit how many results
    refute it. silent: changed units that no recorded result tells from the real one.
    """

    file: str
    results: int
    places: tuple[Place, ...]
    counts: tuple[tuple[str, int], ...]
    silent: tuple[str, ...]


@lru_cache(maxsize=64)
def recorded(ins: Instruction) -> Captured | None:
    """The recorded results of an instruction, or None: never captured, or an installation without vectors.

    Raises:
        DocsError: the model gives another result than the hardware.
    """
    if ins.name not in catalog.captures(ins.architecture).vectors:
        return None
    try:
        vector = captured.load_one(ins.architecture, ins.name)
    except FileFormatError:
        return None
    wrong = int((ins(**vector.operands) != vector.d).sum())
    if wrong:
        raise DocsError(f"{ins.architecture}:{ins.name}: the model differs from {wrong:,} of {vector.d.size:,} captured results")
    return vector


def evidence(ins: Instruction, against: str) -> Evidence | None:
    """Searches the recorded results of an instruction for those that refute changed units.

    Args:
        against: a regular expression for the names of the changes.

    Returns:
        None where nothing was recorded or no change of these names exists for the instruction.
    """
    vector = recorded(ins)
    tried = [change for change in changes(ins, _another_nan(ins)) if re.fullmatch(against, change.slug)] if against else []
    if vector is None or not tried:
        return None
    wrong, answers = _run(ins, vector, tried)
    names = [change for change in tried if change.slug in wrong]
    told = [change for change in names if wrong[change.slug].any()]
    return Evidence(
        f"vectors/{ins.architecture}/{vector_file(ins.name)}",
        vector.d.size,
        tuple(_cover(ins, vector, told, wrong, answers)),
        tuple((change.text, int(wrong[change.slug].sum())) for change in told),
        tuple(change.text for change in names if change not in told),
    )


def _another_nan(ins: Instruction) -> int | None:
    """A NaN word that the unit does not answer: the format's default one, or the same with its sign changed."""
    fmt = ins.formats["d"]
    if not fmt.is_float or fmt.nan is None:
        return None
    used = {step.nan for operation in ins.program.operations for step in operation.steps if step.op != "round"}
    return fmt.nan if fmt.nan not in used else fmt.nan | 1 << fmt.sign_shift


def _run(ins: Instruction, vector: Captured, tried: list[Change]) -> tuple[dict[str, npt.NDArray[np.bool_]], dict[str, Bits]]:
    """For each change that exists and is another program: where it differs from the hardware, and what it answers."""
    wrong, answers = {}, {}
    for change in tried:
        other = change.apply(ins)
        if other is not None:
            answers[change.slug] = other(**vector.operands)
            wrong[change.slug] = answers[change.slug] != vector.d
    return wrong, answers


def _cover(
    ins: Instruction,
    vector: Captured,
    told: list[Change],
    wrong: dict[str, npt.NDArray[np.bool_]],
    answers: dict[str, Bits],
) -> list[Place]:
    """The results that refute most, then those that refute most of the rest; of equals the one with the least to read."""
    left = list(told)
    places: list[Place] = []
    while left and len(places) < _PLACES:
        counts = np.sum([wrong[change.slug] for change in left], axis=0)
        best = np.argwhere(counts == counts.max())[:_CANDIDATES]
        tile, row, column = min((tuple(int(i) for i in place) for place in best), key=lambda p: cost(ins, dot_of(vector, *p)))
        where = (tile, row, column)
        others = tuple((change.text, int(answers[change.slug][where])) for change in left if wrong[change.slug][where])
        places.append(Place(*where, vector.classes[tile], dot_of(vector, *where), int(vector.d[where]), others))
        left = [change for change in left if not wrong[change.slug][where]]
    return places


def dot_of(vector: Captured, tile: int, row: int, column: int) -> dict[str, Bits]:
    """The operands of one recorded dot product, as `ins.dot` takes them."""
    found = {}
    for name, codes in vector.operands.items():
        if name in ("b", "scale_b"):
            found[name] = np.asarray(codes[tile, :, column])
        else:
            found[name] = np.asarray(codes[tile, row, column] if name == "c" else codes[tile, row])
    return found
