"""Captured results that prove a property: recorded on hardware, and wrong in every unit with another value of
it.

The other units are hypotheses of the diagnosis (golden/identify/diagnose/mutations): the same program with
one change. The recorded operands are run through each; a result that differs from the hardware's refutes it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.catalog import architectures
from golden.catalog.lookup import instructions
from golden.catalog.relatives import arithmetic
from golden.errors import DocsError, FileFormatError
from golden.identify.diagnose.mutations import Mutation, of_program
from golden.identify.diagnose.mutations.mutation import change, fields
from golden.identify.minimising import cost
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.paths import vector_file
from golden.program.steps import Fma, Multiply, Round
from golden.vectors import captured
from golden.vectors.captured import Captured

Bits = npt.NDArray[Any]


@dataclass(frozen=True)
class Place:
    """One recorded result, and the answers of other units: (the change, code)."""

    instruction: Instruction
    tile: int
    row: int
    column: int
    kind: str
    operands: dict[str, Bits]
    recorded: int
    others: tuple[tuple[str, int], ...]

    @property
    def file(self) -> str:
        """The file of the result, from the site's root."""
        return f"vectors/{self.instruction.architecture}/{vector_file(self.instruction.name)}"


@dataclass(frozen=True)
class Evidence:
    """What the recorded results of one program show about a property.

    results, instructions: how many results of how many instructions were read. places: a few of them that
        together
    refute everything that can be refuted. refuted_units: the changed units that they refute. silent: changed
    units that agree with every recorded result.
    """

    results: int
    instructions: int
    places: tuple[Place, ...]
    refuted_units: tuple[str, ...]
    silent: tuple[str, ...]


@lru_cache(maxsize=256)
def recorded(ins: Instruction) -> Captured | None:
    """The recorded results of an instruction, or None: never captured, or an installation without vectors.

    Raises:
        DocsError: the model gives another result than the hardware.
    """
    if ins.name not in architectures.captures(ins.architecture).vectors:
        return None
    try:
        vector = captured.load_one(ins.architecture, ins.name)
    except FileFormatError:
        return None
    wrong = int((ins(**vector.operands) != vector.d).sum())
    if wrong:
        raise DocsError(
            f"{ins.architecture}:{ins.name}: the model differs from {wrong:,} of {vector.d.size:,} captured "
            "results"
        )
    return vector


def evidence(ins: Instruction, against: str) -> Evidence | None:
    """Searches recorded results for refutations of changed units: of the instruction, then of others of its
    program.

    Args:
        against: a regular expression for the names of the changes.

    Returns:
        None if nothing was recorded, or no change of these names alters the function of the instruction.
    """
    tried = [*of_program(ins, _another_nan(ins)), *_other_bit_operations(ins)]
    left = [one for one in tried if against and re.fullmatch(against, one.slug)]
    # Changes that mean something for this instruction; each has to be refuted.
    left = [one for one in left if _applied(one, ins) is not None and _another_function(ins, one)]
    if recorded(ins) is None or not left:
        return None
    places: list[Place] = []
    refuted_units: list[Mutation] = []
    results = instructions = 0
    for other in (ins, *_peers(ins)):
        # Another instruction of the same program refutes what this one's results leave open.
        vector = recorded(other)
        if vector is not None and left:
            results, instructions = results + vector.d.size, instructions + 1
            found, refuted = _search(other, vector, left)
            places += found
            refuted_units += refuted
            left = [one for one in left if one not in refuted]
    return Evidence(
        results,
        instructions,
        tuple(places),
        tuple(one.text for one in refuted_units),
        tuple(one.text for one in left),
    )


def _other_bit_operations(ins: Instruction) -> list[Mutation]:
    """The other operation on bits; the diagnosis does not try it, because the names of the instructions
    already say which."""
    operation = ins.program.bit_operation
    return [_bits(other) for other in ("and", "xor") if operation is not None and other != operation]


def _bits(operation: str) -> Mutation:
    apply = fields(Multiply, operation=operation)
    return change(f"bits-{operation}", f"two bits become their {operation}", apply)


def _applied(one: Mutation, ins: Instruction) -> Instruction | None:
    """The instruction with the change; None if it has no meaning there."""
    return None if one.program is None else one.program(ins)


def unseen_tf32_nan(ins: Instruction) -> str:
    """Says that no recorded tf32 operand is a NaN by its ignored bits alone, where that is so."""
    for other in (ins, *_peers(ins)):
        vector = recorded(other)
        if vector is not None and any(
            _nan_by_ignored_bits(other.formats[name], vector.operands[name]) for name in "ab"
        ):
            return ""
    return (
        "the low bits are ignored in numbers, but looked at to see a NaN (no recorded operand is such a NaN)"
    )


def _nan_by_ignored_bits(fmt: Format, codes: Bits) -> bool:
    low, sign = (1 << fmt.ignored_low) - 1, 1 << fmt.sign_shift
    magnitudes = codes.astype(np.int64) & ~sign
    return bool(((magnitudes & ~low == fmt.infinity) & (magnitudes & low != 0)).any())


def _peers(ins: Instruction) -> list[Instruction]:
    """Other instructions of the chip that run the same program on the same formats, the small ones first."""
    found = [
        other
        for other in instructions(ins.architecture)
        if other.sparse == ins.sparse
        and other.formats == ins.formats
        and arithmetic(other) == arithmetic(ins)
    ]
    most = 12  # files that are searched if the first does not refute everything
    return sorted((other for other in found if other is not ins), key=lambda other: other.m * other.n)[:most]


def _another_function(ins: Instruction, one: Mutation) -> bool:
    """Whether a change can make a difference at all: some describe what the unit does already."""
    operations, last = ins.program.operations, ins.program.operations[-1].final
    kept = ins.program.operations[-1].result_fraction_bits
    if one.slug == f"result-bits-{kept}" or (one.slug.startswith("chain-of") and isinstance(last, Fma)):
        return False
    one_sum = len(operations) == 1 and not isinstance(last, Fma)
    if one.slug in ("k-reversed", "chain-halves-swapped") and one_sum:
        return False
    if one.slug == "overflow-ieee" and last.rounding == "nearest_even":
        return False
    return ins.formats["a"].infinity is not None or not one.slug.startswith(("zero-times", "opposite"))


def _search(ins: Instruction, vector: Captured, tried: list[Mutation]) -> tuple[list[Place], list[Mutation]]:
    """The places of one file that refute changes, and which are refuted."""
    wrong, answers = _run(ins, vector, tried)
    refuted_units = [one for one in tried if one.slug in wrong and wrong[one.slug].any()]
    return _cover(ins, vector, refuted_units, wrong, answers), refuted_units


def _another_nan(ins: Instruction) -> int | None:
    """A NaN word that the unit does not answer: the format's default one, or the same with its sign
    changed."""
    fmt = ins.formats["d"]
    if not fmt.is_float or fmt.nan is None:
        return None
    used = {
        getattr(step, "nan", None)
        for operation in ins.program.operations
        for step in operation.steps
        if not isinstance(step, Round)
    }
    return fmt.nan if fmt.nan not in used else fmt.nan | 1 << fmt.sign_shift


def _run(
    ins: Instruction, vector: Captured, tried: list[Mutation]
) -> tuple[dict[str, npt.NDArray[np.bool_]], dict[str, Bits]]:
    """For each change that exists and is another program: where it differs from the hardware, and what it
    answers."""
    wrong, answers = {}, {}
    for one in tried:
        other = _applied(one, ins)
        if other is not None:
            answers[one.slug] = other(**vector.operands)
            wrong[one.slug] = answers[one.slug] != vector.d
    return wrong, answers


def _cover(
    ins: Instruction,
    vector: Captured,
    refuted_units: list[Mutation],
    wrong: dict[str, npt.NDArray[np.bool_]],
    answers: dict[str, Bits],
) -> list[Place]:
    """The results that refute most, then those that refute most of the rest; among equals the one with the
    fewest operands to read."""
    left = list(refuted_units)
    places: list[Place] = []
    # A few results refute one property.
    most = 3
    while left and len(places) < most:
        counts = np.sum([wrong[one.slug] for one in left], axis=0)
        # Of equally good results, the one with the fewest operands is chosen among these.
        candidates = 64
        best = np.argwhere(counts == counts.max())[:candidates]
        tile, row, column = min(
            (tuple(int(i) for i in place) for place in best), key=lambda p: cost(ins, dot_of(vector, *p))
        )
        where = (tile, row, column)
        others = tuple((one.text, int(answers[one.slug][where])) for one in left if wrong[one.slug][where])
        places.append(
            Place(ins, *where, vector.classes[tile], dot_of(vector, *where), int(vector.d[where]), others)
        )
        left = [one for one in left if not wrong[one.slug][where]]
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
