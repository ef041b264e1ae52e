"""Small spaces of operands, of which a set of vectors can hold every member.

The space of a unit is what one product reads, its factors a and b: 65,536 pairs of 8-bit codes. In a unit
with one product, c and the scales are part of it if they are as small. The space of an adder or a converter
is made of the operands that it has. No kind of stimuli aims at a fault that only one pair of codes shows (an
entry of a table, a branch for one value).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from golden.model.instruction import Instruction
from golden.program.signature import SCALES, Operands
from golden.vectors.vectorset import VectorSet

Bits = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Space:
    """The operands whose codes are tried in every combination, in each of `lanes` products.

    Attributes:
        bits: the width of an element of each operand, by name; its codes are digits of a member's number.
        modes: the codes of the operand `mode`, where each of them is tried with every combination.
        whole: whether the unit has no other operand, so that every vector that it can take is tried.
    """

    bits: dict[str, int]
    lanes: int
    modes: tuple[int, ...]
    whole: bool

    @property
    def size(self) -> int:
        """The number of members."""
        return math.prod((len(self.modes) or 1, *(1 << bits for bits in self.bits.values())))

    @property
    def words(self) -> str:
        """What is complete: "every pair of a and b (65,536) in each of 4 products"."""
        names = [*self.bits, *(["mode"] if self.modes else [])]
        every = f"code of {names[0]}" if len(names) == 1 else f"combination of {' and '.join(names)}"
        lanes = f" in each of {self.lanes} places" if self.lanes > 1 else ""
        return f"every {every} ({self.size:,}){lanes}"


def space_of(ins: Instruction, count: int) -> Space | None:
    """The space that `count` vectors of a unit can hold; None where it is too large, or where which elements
    meet is an operand itself (sparse units)."""
    shapes = ins.operand_shapes(False)
    if ins.pattern is not None:
        return None
    factors = [name for name in "ab" if name in shapes]
    single = [name for name in ("c", *SCALES) if name in shapes] if ins.stored_k == 1 else []
    if len(factors) < 2 and ins.stored_k > 1:
        return None
    codes = tuple(code for code, _ in ins.modes.codes()) if ins.modes is not None else ()
    rest = set(shapes) - {"mode"}
    # The whole space takes at most one vector in this many; the other vectors come from the kinds.
    share = 2
    for names, modes in ((factors + single, codes), (factors, codes), (factors, ())):
        bits = {name: ins.code_format(name).bits for name in names}
        whole = rest <= set(names) and modes == codes and not ins.state
        space = Space(bits, ins.stored_k, modes, whole)
        enough = len(factors) > 1 or whole  # one operand of several says nothing
        if enough and sum(bits.values()) < 63 and space.size * share <= count:
            return space
    return None


def members(ins: Instruction, space: Space) -> Operands:
    """All members of a whole space, as operands of the unit."""
    shapes = ins.operand_shapes(False)
    operands: Operands = {
        name: np.zeros((space.size, *shape), ins.code_format(name).dtype) for name, shape in shapes.items()
    }
    _put(operands, space, 0, space.size, np.arange(space.size, dtype=np.uint64))
    return operands


def holds(vectors: VectorSet, space: Space) -> bool:
    """Whether the vectors hold every member of the space, in every lane."""
    return not any(len(missing) for missing in _missing(vectors, space))


def completed(vectors: VectorSet, space: Space) -> VectorSet:
    """The vectors, of which the last ones are replaced by the members of the space that were missing, in
    random order. The other operands of these vectors stay."""
    seen = vectors
    count = 0
    # What is taken away at the end may be the only vector with some member: until nothing is.
    while (needed := max(len(missing) for missing in _missing(seen, space))) > count:
        count = needed
        seen = vectors[: len(vectors) - count]
    if not count:
        return vectors
    ins, rng = vectors.instruction, np.random.default_rng([vectors.seed, space.size])
    operands = {name: codes.copy() for name, codes in vectors.operands.items()}
    for lane, missing in enumerate(_missing(seen, space)):
        more = rng.integers(0, space.size, count - len(missing)).astype(np.uint64)
        _put(operands, space, lane, count, rng.permutation(np.concatenate([missing, more])))
    results = ins.answers(operands, held=vectors.held)
    kinds = vectors.kinds.copy()
    kinds[-count:] = 0  # they are what the first kind is: codes of any bits
    return VectorSet.of(ins, vectors.level, operands, results, kinds, vectors.seed, vectors.held)


def _missing(vectors: VectorSet, space: Space) -> list[Bits]:
    """The numbers of the members that no vector has, of each lane."""
    members = np.zeros((len(vectors), space.lanes), np.uint64)
    for name, bits in space.bits.items():
        codes = vectors.operands[name].reshape(len(vectors), -1).astype(np.uint64)
        members = members << np.uint64(bits) | codes
    if space.modes:
        places = np.searchsorted(np.array(sorted(space.modes)), vectors.operands["mode"]).astype(np.uint64)
        members = members * np.uint64(len(space.modes)) + places.reshape(-1, 1)
    found = []
    for lane in range(space.lanes):
        seen = np.zeros(space.size, np.bool_)
        seen[members[:, lane]] = True
        found.append(np.flatnonzero(~seen).astype(np.uint64))
    return found


def _put(
    operands: dict[str, npt.NDArray[np.generic]], space: Space, lane: int, count: int, members: Bits
) -> None:
    """Writes members of the space to a lane of the last `count` vectors."""
    if space.modes:
        modes = np.array(sorted(space.modes), operands["mode"].dtype)
        operands["mode"][-count:] = modes[(members % np.uint64(len(modes))).astype(np.int64)]
        members = members // np.uint64(len(modes))
    for name, bits in reversed(space.bits.items()):
        codes = operands[name]
        digits = (members & np.uint64((1 << bits) - 1)).astype(codes.dtype)
        members = members >> np.uint64(bits)
        if codes.ndim == 1:
            codes[-count:] = digits
        else:
            codes[-count:, lane] = digits
