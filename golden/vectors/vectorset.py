"""Sets of vectors: operands of mixed kinds, the expected results from the C core, reproducible from a seed.

Vectors are drawn in blocks of fixed size, each from a generator seeded with (seed, block number), so that a
set is the beginning of every longer set with the same seed, and 10**8 vectors need no more memory than one
chunk. Inside a block the kinds are interleaved evenly: every stretch of it holds each kind
in about its share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.errors import OperandError, UnknownNameError, nearest
from golden.model.instruction import Instruction
from golden.program.signature import Operands
from golden.program.state import CONTROLS, starts
from golden.stimuli.sequences import arrange, reuse
from golden.vectors.word import LEVELS, check_level

Bits = npt.NDArray[Any]
MOST = 10**12
"""Vectors of a stream: months of work. A larger number is a slip, or somebody who wants a run without end."""
MOST_AT_ONCE = 10**8
"""Vectors that are held in memory together, some ten gigabytes."""
STREAM_LEVELS = (*LEVELS, "fragment")
_BLOCK = 16384
"""Dot products that are drawn from one seeded generator."""

DEFAULT_WEIGHTS: dict[str, float] = {
    kind: stimuli.BOUNDARY_WEIGHT if kind in stimuli.BOUNDARY_KINDS else 1.0 for kind in stimuli.KINDS
}
"""Shares of the kinds where none are given."""


@dataclass(frozen=True)
class VectorSet:
    """Vectors of one instruction.

    Attributes:
        level: "dot" or "tile".
        operands: raw codes by name, (count, *shape) as `ins.dot` or `ins(...)` takes them.
        d: expected codes, (count,) or (count, m, n).
        kinds: index into `golden.stimuli.KINDS` of every vector, uint8 (count,).
        seed: the seed they were drawn from.
        flags: expected status flags, of the shape of d; None where the unit has none.
        held: of a unit that keeps its accumulator, what it held before the first vector (a code of d); 0 is
            what it holds after a reset.
    """

    instruction: Instruction
    level: str
    operands: dict[str, Bits]
    d: Bits
    kinds: npt.NDArray[np.uint8]
    seed: int
    flags: Bits | None = None
    held: int = 0

    def __post_init__(self) -> None:
        """Refuses a set that would compare less than the unit gives."""
        if bool(self.instruction.status) != (self.flags is not None):
            given = "missing" if self.flags is None else "given, but it has none"
            raise OperandError(f"vectors of {self.instruction.name}: status flags are {given}")

    @classmethod
    def of(
        cls,
        ins: Instruction,
        level: str,
        operands: dict[str, Bits],
        results: Mapping[str, Bits],
        kinds: npt.NDArray[np.uint8],
        seed: int,
        held: int = 0,
    ) -> VectorSet:
        """A set with its expected results by name, as `Instruction.answers` gives them."""
        return cls(ins, level, operands, results["d"], kinds, seed, results.get("flags"), held)

    def __len__(self) -> int:
        return len(self.d)

    @property
    def results(self) -> Operands:
        """The expected results by name: d and, where the unit has status flags, flags."""
        return {"d": self.d} | ({} if self.flags is None else {"flags": self.flags})

    def __getitem__(self, chosen: slice | Bits) -> VectorSet:
        """The vectors of a slice, an index array or a mask.

        Raises:
            OperandError: the unit keeps its accumulator, and what one of them starts from would be lost; see
                `with_history`.
        """
        operands = {name: codes[chosen] for name, codes in self.operands.items()}
        results = {name: codes[chosen] for name, codes in self.results.items()}
        held = self._held_before(np.arange(len(self))[chosen]) if self.instruction.state else 0
        kinds = self.kinds[chosen]
        return VectorSet.of(self.instruction, self.level, operands, results, kinds, self.seed, held)

    def _held_before(self, picked: npt.NDArray[np.int64]) -> int:
        """What the unit held before the first of some vectors, each of which must start a sequence or follow
        the one before it."""
        if not len(picked):
            return 0
        follows = self.operands["clear"][picked] != 0
        follows[1:] |= np.diff(picked) == 1
        if not follows[1:].all():
            lost = int(picked[1:][~follows[1:]][0])
            raise OperandError(
                f"vector {lost} starts from the result of vector {lost - 1}, which is not before it here; "
                "`with_history` adds what comes before"
            )
        first = int(picked[0])
        return 0 if follows[0] else self.held if first == 0 else int(self.d[first - 1])

    @property
    def stands_alone(self) -> bool:
        """Whether a unit that was reset gives these results: it need not hold anything before."""
        return self.held == 0 or bool(self.operands["clear"][0])

    def resolved(self) -> Operands:
        """The operands as `instruction.stateless` takes them: with what the unit held as c."""
        return self.instruction.resolve(self.operands, self.d, self.held)

    def with_history(self, indices: Bits) -> npt.NDArray[np.int64]:
        """Indices of these vectors and, if the unit keeps its accumulator, of their predecessors in their
        sequences."""
        wanted = np.unique(np.asarray(indices, np.int64))
        if not self.instruction.state:
            return wanted
        firsts = starts(self.operands["clear"], wanted)
        runs = [np.arange(first, last + 1) for first, last in zip(firsts, wanted, strict=True)]
        return np.unique(np.concatenate(runs)) if runs else wanted


def default_set(
    ins: Instruction,
    count: int = 20_000,
    seed: int = 1,
    level: str = "dot",
    weights: Mapping[str, float] | None = None,
) -> VectorSet:
    """Draws `count` vectors of mixed kinds with their expected results.

    Args:
        seed: equal seeds (and weights) give equal vectors, a smaller count the first of them.
        weights: share of each kind by name; kinds that are not named get none. Default: `DEFAULT_WEIGHTS`.

    Raises:
        UnknownNameError: a weight names no kind. OperandError: a wrong level, count, seed or weight.
    """
    return join(list(stream(ins, count, seed, level, weights, max(count, 1))))


def stream(
    ins: Instruction,
    count: int,
    seed: int,
    level: str = "dot",
    weights: Mapping[str, float] | None = None,
    chunk: int = 65536,
) -> Iterator[VectorSet]:
    """Yields the vectors of `default_set` in chunks of `chunk` (the last one may be shorter, never empty
    unless count is 0).

    Level "fragment" draws `count` executions of the instruction: sets of level "tile" with `ins.blocks` tiles
    of one kind for each.
    """
    _check(ins, count, seed, level, chunk)
    shares, group = shares_of(DEFAULT_WEIGHTS if weights is None else weights), _group(ins, level)
    return _rechunk(_blocks(ins, count * group, seed, level, shares), chunk * group)


def excerpt(
    ins: Instruction, seed: int, level: str, weights: Mapping[str, float] | None, start: int, count: int
) -> VectorSet:
    """Vectors number start to start + count - 1 of a stream, without drawing the vectors before.

    Raises:
        OperandError: they are more than MOST_AT_ONCE, or lie beyond the MOST of a stream; another argument is
            wrong.
    """
    _check(ins, count, seed, level, 1)
    check_held(count)
    if start > MOST:
        raise OperandError(f"first is {start}, expected at most {MOST}")
    shares, group = shares_of(DEFAULT_WEIGHTS if weights is None else weights), _group(ins, level)
    size = block_size(ins, level)
    first, last = start // size, max(start + count - 1, start) // size
    whole = join([_block(ins, seed, number, level, shares) for number in range(first, last + 1)])
    skipped = (start - first * size) * group
    return whole[skipped : skipped + count * group]


def check_held(count: int) -> None:
    """Raises the OperandError of more vectors than are held in memory together."""
    if count > MOST_AT_ONCE:
        raise OperandError(f"count is {count}, expected at most {MOST_AT_ONCE} in one run; 'first' goes on")


def shares_of(weights: Mapping[str, float]) -> Bits:
    """Weights by name, also by those of integers' kinds, as shares in the order of `stimuli.KINDS`, adding up
    to 1."""
    shares = np.zeros(len(stimuli.KINDS))
    for name, weight in stimuli.expanded(weights).items():
        if name not in stimuli.KINDS:
            raise UnknownNameError(
                f"unknown stimulus kind '{name}', expected one of "
                f"{', '.join(stimuli.KINDS)}{nearest(name, stimuli.KINDS)}"
            )
        if not 0 <= weight < float("inf"):
            raise OperandError(f"weight of kind '{name}' is {weight}, expected a number of 0 or more")
        shares[stimuli.KINDS.index(name)] = weight
    if not shares.sum() > 0:
        raise OperandError("all weights are 0, expected at least one kind")
    return np.asarray(shares / shares.sum())


def join(parts: list[VectorSet]) -> VectorSet:
    """Concatenates sets of one instruction and seed.

    Raises:
        OperandError: the unit keeps its accumulator, and a set starts from something else than the end of the
            one before it.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    if first.instruction.state:
        parts = [part for part in parts if len(part)] or parts[:1]
        for one, other in pairwise(parts):
            if not other.operands["clear"][0] and other.held != int(one.d[-1]):
                raise OperandError("a set starts from another result than the last of the set before it")
        first = parts[0]
    operands = {name: np.concatenate([part.operands[name] for part in parts]) for name in first.operands}
    results = {name: np.concatenate([part.results[name] for part in parts]) for name in first.results}
    kinds = np.concatenate([part.kinds for part in parts])
    return VectorSet.of(first.instruction, first.level, operands, results, kinds, first.seed, first.held)


def _check(ins: Instruction, count: int, seed: int, level: str, chunk: int) -> None:
    if level not in STREAM_LEVELS:
        raise OperandError(
            f"level is '{level}', expected {', '.join(STREAM_LEVELS)}{nearest(level, STREAM_LEVELS)}"
        )
    check_level(ins, level)
    for name, value, least in (("count", count, 0), ("seed", seed, 0), ("chunk", chunk, 1)):
        if value < least:
            raise OperandError(f"{name} is {value}, expected {least} or more")
    if count > MOST:
        raise OperandError(f"count is {count}, expected at most {MOST}")


def _blocks(ins: Instruction, count: int, seed: int, level: str, shares: Bits) -> Iterator[VectorSet]:
    """The blocks that hold the first `count` vectors, the last one cut short; one empty block when count
    is 0."""
    left, number = count, 0
    while left or not number:
        drawn = _block(ins, seed, number, level, shares, left)
        yield drawn
        left, number = left - len(drawn), number + 1


def _rechunk(blocks: Iterator[VectorSet], chunk: int) -> Iterator[VectorSet]:
    """Regroups sets into sets of `chunk` vectors; the last one holds the rest."""
    waiting: list[VectorSet] = []
    held, empty = 0, True
    for drawn in blocks:
        waiting.append(drawn)
        held += len(drawn)
        while held >= chunk:
            whole = join(waiting)
            yield whole[:chunk]
            waiting, held, empty = [whole[chunk:]], held - chunk, False
    if held or empty:
        yield join(waiting)


def _group(ins: Instruction, level: str) -> int:
    """Tiles of one record: an execution of an instruction with several blocks computes that many."""
    return ins.blocks if level == "fragment" else 1


def block_size(ins: Instruction, level: str) -> int:
    """Records of one block: a stream that is shared out in whole blocks is drawn once, and a unit that keeps
    its accumulator starts anew at each."""
    if ins.state:
        return 8192  # the longest sequence is in each block once
    return _BLOCK if level == "dot" else max(_BLOCK // (max(ins.m, ins.n) * _group(ins, level)), 1)


def _block(
    ins: Instruction, seed: int, number: int, level: str, shares: Bits, most: int | None = None
) -> VectorSet:
    """Block `number` of the vectors of a seed: whole, or the first `most`."""
    rng = np.random.default_rng([seed, number])
    group = _group(ins, level)
    rows = 1 if level == "dot" else max(ins.m, ins.n)
    kinds, places = _mixed(shares, block_size(ins, level), rng)
    parts = []
    for index, count in enumerate(np.bincount(kinds, minlength=len(stimuli.KINDS)).tolist()):
        if count:
            drawn = stimuli.generate(ins.stateless, stimuli.KINDS[index], count * group * rows, rng)
            parts.append(drawn if level == "dot" else _tiles(ins, drawn, count * group, rng))
    records = np.argsort(places)
    order = (records[:, None] * group + np.arange(group)).ravel()
    of_each = np.repeat(kinds[records], group)
    operands = {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0]}
    usual = np.array_equal(shares, shares_of(DEFAULT_WEIGHTS))  # who asks for kinds gets these alone
    if usual and level != "fragment":  # whose tiles are of one record
        operands = reuse(operands, np.random.default_rng([seed, number, 1]), number)
    if not ins.state:  # each answer is its own
        operands, of_each = {name: codes[:most] for name, codes in operands.items()}, of_each[:most]
    if ins.state:
        operands, origin = arrange(ins, operands, rng)
        operands = with_kept_loads(ins, operands)
        of_each = of_each[origin]
    level = "dot" if level == "dot" else "tile"
    results = ins.answers(operands, level == "tile")
    return VectorSet.of(ins, level, operands, results, of_each, seed)[:most]


def with_kept_loads(ins: Instruction, operands: Operands) -> Operands:
    """The operands, where each c that is loaded alone is one that the arithmetic hands on unchanged: no step
    says what becomes of another c, such as -0 or a NaN that is not the unit's own."""
    if "load" not in ins.alone:
        return operands
    given = {name: codes for name, codes in operands.items() if name not in CONTROLS}
    given |= {name: np.zeros_like(given[name]) for name in "ab" if name in given}
    once = ins.stateless.dot(**given)
    kept = ins.stateless.dot(**given | {"c": once}) == once
    loaded = operands["load"] != 0
    return operands | {
        "c": np.where(loaded, once, operands["c"]),
        "load": np.where(kept, operands["load"], operands["load"].dtype.type(0)),
    }


def _mixed(shares: Bits, size: int, rng: np.random.Generator) -> tuple[npt.NDArray[np.uint8], Bits]:
    """Kinds of a block, sorted, and a number in 0..1 for each: sorting by it interleaves the kinds evenly."""
    edges = np.floor(np.cumsum(shares) * size + rng.random()).astype(np.int64)
    edges[np.flatnonzero(shares)[-1] :] = size
    edges = np.minimum(edges, size)
    counts = np.diff(edges, prepend=0)
    kinds = np.repeat(np.arange(len(shares), dtype=np.uint8), counts)
    ranks = np.arange(size) - np.repeat(edges - counts, counts)
    return kinds, (ranks + rng.random(size)) / np.repeat(counts, counts)


def _tiles(ins: Instruction, drawn: dict[str, Bits], count: int, rng: np.random.Generator) -> dict[str, Bits]:
    """Matrices from max(m, n) dot products each: rows of A and columns of B,
    so that D's diagonal meets the structure.

    C holds the c of dot product i on the diagonal and elsewhere those of the tile in random order. Elements
    of a sparse B that a column's own metadata do not select come from the tile's next dot product: other rows
    select them.
    """
    rows = max(ins.m, ins.n)
    if ins.pattern is not None:
        drawn = drawn | {"b": _filled(ins, drawn, count, rows)}
    parts = {name: codes.reshape(count, rows, *codes.shape[1:]) for name, codes in drawn.items()}
    by_column = ("b", "scale_b")
    tiles = {
        name: codes[:, : ins.n].swapaxes(1, 2) if name in by_column else codes[:, : ins.m]
        for name, codes in parts.items()
    }
    if "c" in ins.absent:
        return _contiguous(ins, tiles, parts)
    c = np.take_along_axis(
        np.broadcast_to(parts["c"][:, :, None], (count, rows, ins.n)),
        rng.integers(0, rows, (count, ins.m, ins.n)),
        axis=1,
    )
    diagonal = np.arange(min(ins.m, ins.n))
    c[:, diagonal, diagonal] = parts["c"][:, diagonal]
    return _contiguous(ins, tiles | {"c": c}, parts)


def _contiguous(ins: Instruction, tiles: dict[str, Bits], parts: dict[str, Bits]) -> dict[str, Bits]:
    if ins.modes is not None:  # a tile has one mode, that of its first dot product
        tiles["mode"] = parts["mode"][:, 0]
    return {name: np.ascontiguousarray(tiles[name]) for name in ins.operand_shapes(True)}


def _filled(ins: Instruction, drawn: dict[str, Bits], count: int, rows: int) -> Bits:
    """B with the columns that the metadata skip taken from the selected ones of the next dot product of
    the tile."""
    assert ins.pattern is not None
    columns = ins.pattern.columns(drawn["metadata"])
    selected = np.take_along_axis(drawn["b"], columns, axis=1).reshape(count, rows, -1)
    skipped = np.ones(drawn["b"].shape, bool)
    np.put_along_axis(skipped, columns, False, axis=1)
    filled = drawn["b"].copy()
    filled[skipped] = np.roll(selected, 1, axis=1).reshape(-1)
    return filled
