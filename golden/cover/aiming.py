"""Vectors for bins that no drawn vector hit: a search from the vectors that came nearest.

    for vectors in aim(ins, coverage, seed=1):
        coverage.holes()

The bins of a coverpoint stand in order (distances, bits, signs), so that a vector in the bin next to a hole
is a step away from it. The search keeps the nearest vectors of every hole, changes one thing of each (an
exponent, a bit, a sign, a term), and looks where they fall now. It knows nothing of any step: a new
coverpoint needs no rule here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.cover.coverage import Bits, Coverage
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.vectors.vectorset import VectorSet

_ROUND = 2048
"""Candidates of one round: a half is drawn anew, so that a search never sticks to what it has."""


def aim(
    ins: Instruction,
    coverage: Coverage,
    seed: int = 1,
    most: int = 100_000,
    allowed: Callable[[dict[str, Bits], Bits], npt.NDArray[np.bool_]] | None = None,
) -> Iterator[VectorSet]:
    """Searches vectors for the holes of `coverage`; yields the ones that hit, which the coverage counts.

    `allowed`: which vectors count, by their operands and results; None: all.

    Ends when no reachable bin is left, or when `most` dot products were looked at: by default 2 s where a bin
    stays out of reach, mostly much less. The same seed finds the same vectors. A unit that keeps its
    accumulator is not searched: its c is no operand."""
    if ins.state:
        return
    rng = np.random.default_rng([seed, len(stimuli.KINDS)])
    nearest: dict[tuple[str, str], tuple[npt.NDArray[np.int64], dict[str, Bits], Bits]] = {}
    looked = turn = 0
    while coverage.holes() and looked < most:
        # 1. Fresh operands, and changed copies of the vectors that came nearest to a hole.
        drawn, kinds = _drawn(ins, rng, turn)
        turn += 1
        parents = [(operands, of) for _, operands, of in nearest.values() if len(of)]
        if parents:
            pool = {name: np.concatenate([one[name] for one, _ in parents]) for name in drawn}
            of = np.concatenate([of for _, of in parents])
            chosen = rng.integers(0, len(of), _ROUND)
            changed = _changed(ins, {name: codes[chosen] for name, codes in pool.items()}, rng)
            drawn = {name: np.concatenate([drawn[name], changed[name]]) for name in drawn}
            kinds = np.concatenate([kinds, of[chosen]])
        # 2. What hits a hole is a vector; what comes near one is a parent of the next round.
        results = ins.answers(drawn)
        looked += len(kinds)
        wanted = _holes_by_point(coverage)
        fit = None if allowed is None else allowed(drawn, results["d"])
        hits, distances = _distances(coverage, drawn, results["d"], wanted, fit)
        if hits.any():
            found = {name: codes[hits] for name, codes in drawn.items()}
            answers = {name: codes[hits] for name, codes in results.items()}
            coverage.sample(found, answers["d"])
            yield VectorSet.of(ins, "dot", found, answers, kinds[hits], seed)
        # Afterwards `nearest` has parents for open holes only.
        nearest = _hitting(nearest, distances, drawn, kinds, set(coverage.holes()))


def _drawn(ins: Instruction, rng: np.random.Generator, turn: int) -> tuple[dict[str, Bits], Bits]:
    """Fresh operands: of a few kinds each round, of all of them in turn."""
    # Kinds that a round draws: few, since a kind costs as much for ten vectors as for a hundred.
    kinds_of_a_round = 4
    order = np.random.default_rng(turn * kinds_of_a_round // len(stimuli.KINDS)).permutation(
        len(stimuli.KINDS)
    )
    chosen = [int(order[(turn * kinds_of_a_round + i) % len(order)]) for i in range(kinds_of_a_round)]
    share = _ROUND // kinds_of_a_round
    parts = [stimuli.generate(ins, stimuli.KINDS[kind], share, rng) for kind in chosen]
    kinds = np.repeat(np.array(chosen, np.uint8), share)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, kinds


def _holes_by_point(coverage: Coverage) -> dict[str, npt.NDArray[np.int64]]:
    """The places of the holes, by coverpoint."""
    found: dict[str, list[int]] = {}
    places = {point.name: {label: i for i, label in enumerate(point.bins)} for point in coverage.points}
    for name, label in coverage.holes():
        found.setdefault(name, []).append(places[name][label])
    return {name: np.array(holes, np.int64) for name, holes in found.items()}


def _distances(
    coverage: Coverage,
    operands: dict[str, Bits],
    d: Bits,
    wanted: dict[str, npt.NDArray[np.int64]],
    fit: npt.NDArray[np.bool_] | None,
) -> tuple[npt.NDArray[np.bool_], dict[tuple[str, str], npt.NDArray[np.int64]]]:
    """Which vectors fall into a hole, and how many bins each is away from every hole (a large number: it does
    not meet the coverpoint)."""
    far = np.int64(1 << 40)
    found = {
        (point.name, point.labels[hole]): np.full(len(d), far)
        for point in coverage.points
        for hole in wanted.get(point.name, ())
    }
    labels = {point.name: point.labels for point in coverage.points}
    for name, rows, bins in coverage.bins_of(operands, d):
        for hole in wanted.get(name, ()):
            distance = np.where(bins >= 0, np.abs(bins - hole), far).reshape(len(bins), -1).min(axis=1)
            of_hole = found[name, labels[name][hole]]
            of_hole[rows] = np.minimum(of_hole[rows], distance)
    hits = np.zeros(len(d), bool)
    for distances in found.values():
        if fit is not None:  # a vector that does not count lies a step away from one that does
            distances[~fit] += 1
        # Enough to reach every boundary: the vectors that a hole gets in one round at most.
        enough = 20
        hits[np.flatnonzero(distances == 0)[:enough]] = True
    return hits, found


def _hitting(
    nearest: dict[tuple[str, str], tuple[npt.NDArray[np.int64], dict[str, Bits], Bits]],
    distances: dict[tuple[str, str], npt.NDArray[np.int64]],
    drawn: dict[str, Bits],
    kinds: Bits,
    holes: set[tuple[str, str]],
) -> dict[tuple[str, str], tuple[npt.NDArray[np.int64], dict[str, Bits], Bits]]:
    """The nearest vectors of every hole that is left; of equally near ones the last found comes first."""
    result = {}
    # Vectors that are kept of every hole.
    nearest_kept = 24
    for hole, far in distances.items():
        if hole not in holes:
            continue
        best = np.argsort(far, kind="stable")[:nearest_kept]
        best = best[far[best] < 1 << 40]
        measure, operands, of = far[best], {name: codes[best] for name, codes in drawn.items()}, kinds[best]
        if hole in nearest:
            old = nearest[hole]
            measure = np.concatenate([measure, old[0]])
            operands = {name: np.concatenate([codes, old[1][name]]) for name, codes in operands.items()}
            of = np.concatenate([of, old[2]])
        order = np.argsort(measure, kind="stable")[:nearest_kept]
        result[hole] = measure[order], {name: codes[order] for name, codes in operands.items()}, of[order]
    return result


def _changed(ins: Instruction, operands: dict[str, Bits], rng: np.random.Generator) -> dict[str, Bits]:
    """One to three changes of every vector, each of one element of one operand."""
    count = len(next(iter(operands.values())))
    operands = {name: codes.copy() for name, codes in operands.items()}
    names = [name for name in operands if name not in ("metadata", "mode")]
    for turn in range(3):
        rows = rng.random(count) < (1.0, 0.5, 0.25)[turn]
        of = rng.integers(0, len(names), count)
        for place, name in enumerate(names):
            picked = np.flatnonzero(rows & (of == place))
            codes = operands[name] if operands[name].ndim == 2 else operands[name][:, None]
            column = rng.integers(0, codes.shape[1], len(picked))
            fmt = ins.formats[name]
            codes[picked, column] = _turned(fmt, codes[picked, column], rng)
    return operands


def _turned(fmt: Format, codes: Bits, rng: np.random.Generator) -> Bits:
    """Each code with another exponent, bit, sign or neighbour, or zero; always a code of the format's
    bits."""
    words, size = codes.astype(np.uint64), codes.shape
    exponent = np.uint64(1 << (fmt.fraction_bits + fmt.ignored_low) if fmt.is_float else 1)
    sign = np.uint64(1 << (fmt.bits - 1)) if fmt.signed else np.uint64(0)
    steps = rng.integers(1, 4, size).astype(np.uint64) * exponent
    bit = np.uint64(1) << rng.integers(0, max(fmt.bits, 1), size).astype(np.uint64)
    unit = np.uint64(1 << fmt.ignored_low)
    ways = [
        words + steps,
        words - steps,
        words ^ bit,
        words ^ bit,
        words ^ sign,
        words + unit,
        words - unit,
        0 * words,
    ]
    chosen = np.choose(rng.integers(0, len(ways), size), ways)
    return (chosen & np.uint64((1 << fmt.bits) - 1)).astype(fmt.dtype)
