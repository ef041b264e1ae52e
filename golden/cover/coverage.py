"""Functional coverage of vectors: which bins of an instruction's coverpoints they hit, computed from arrays.

    coverage = Coverage(ins)
    coverage.sample(operands, d)
    print(coverage.percent, coverage.holes())

What the bins are, and which can be reached, golden/cover/points/ says. Coverage of several runs merges, is
saved as JSON and shown as one HTML page (golden/cover/page.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.catalog.lookup import instruction
from golden.cover.points import Coverpoint, SequenceSampler, sampler
from golden.cover.points.point import Sample
from golden.errors import FileFormatError, OperandError
from golden.files.inputs import read_json
from golden.files.output import write_text
from golden.model.instruction import Instruction
from golden.stimuli.sequences import vectors_needed
from golden.vectors.vectorset import VectorSet

Bits = npt.NDArray[Any]
FORMAT = "mmagold functional coverage 1"
_CHUNK = 4096
"""Vectors that are looked at together: bounds the memory."""


class Coverage:
    """Hits of the bins of one instruction. A bin that was hit can be reached, whatever the rules say.

    Attributes:
        instruction: what was covered.
        points: the coverpoints, in order of the datapath.
        hits: by coverpoint name, how many vectors (or terms of vectors) fell into each bin, int64.
        vectors: how many vectors were sampled.
    """

    def __init__(self, ins: Instruction) -> None:
        self.instruction = ins
        self._sampler = sampler(ins)
        self.points: tuple[Coverpoint, ...] = self._sampler.points
        self.hits = {point.name: np.zeros(len(point.bins), np.int64) for point in self.points}
        self.vectors = 0
        self.waived: set[tuple[str, str]] = set()
        """Bins that do not count, as (coverpoint, bin), whatever their rule says."""

    def sample(self, operands: dict[str, Bits], d: Bits) -> None:
        """Counts vectors: operands as `ins.dot` takes them, (count, ...), and their results d (count,).

        Status flags are the ones that the instruction raises. The vectors of a call follow one another where
        the unit keeps its accumulator; with c in place of `clear` how they do is not known, and not counted.
        """
        if isinstance(self._sampler, SequenceSampler) and "clear" in operands:
            self._count(self._sampler.sequence_samples(operands, d))
        operands = self.instruction.resolve(operands, d)
        for start in range(0, len(d), _CHUNK):
            part = {name: codes[start : start + _CHUNK] for name, codes in operands.items()}
            self._count(self._sampler.samples(part, d[start : start + _CHUNK]))
        self.vectors += len(d)

    def bins_of(self, operands: dict[str, Bits], d: Bits) -> Iterator[tuple[str, Bits, Bits]]:
        """Which bins each vector falls into; nothing is counted. Yields a coverpoint, some of the vectors,
        and their places among its bins (vectors, ...), -1 where one is not met."""
        assert not self.instruction.state, "how vectors follow one another is counted of whole sequences"
        modes = operands.get("mode", np.zeros(len(d), np.uint8))
        for mode in np.unique(modes):
            rows = np.flatnonzero(modes == mode)
            for start in range(0, len(rows), self._sampler.block_rows):
                own = rows[start : start + self._sampler.block_rows]
                part = {name: codes[own] for name, codes in operands.items()}
                for name, bins in self._sampler.samples(part, d[own]):
                    yield name, own, np.asarray(bins, np.int64)

    def _count(self, samples: Iterable[Sample]) -> None:
        for name, bins in samples:
            if name in self.hits:
                places = np.asarray(bins, np.int64).ravel(order="K") + 1
                self.hits[name] += np.bincount(places, minlength=len(self.hits[name]) + 1)[1:]

    def sample_set(self, vectors: VectorSet) -> None:
        """Counts a vector set of level "dot".

        Raises:
            OperandError: the set holds tiles.
        """
        if vectors.level != "dot":
            raise OperandError("coverage looks at dot products; draw the set with level 'dot'")
        self.sample(vectors.operands, vectors.d)

    def bins(self) -> Iterator[tuple[Coverpoint, str, bool, int]]:
        """Every bin: its coverpoint, its label, whether it can be reached, and its hits."""
        for point in self.points:
            for (label, reachable), hits in zip(
                point.bins.items(), self.hits[point.name].tolist(), strict=True
            ):
                counts = reachable and (point.name, label) not in self.waived
                yield point, label, counts or hits > 0, hits

    @property
    def counts(self) -> tuple[int, int]:
        """(bins hit, bins that can be reached)."""
        wanted = [hits > 0 for _, _, reachable, hits in self.bins() if reachable]
        return sum(wanted), len(wanted)

    @property
    def percent(self) -> float:
        """Share of the reachable bins that were hit, 0 to 100."""
        hit, total = self.counts
        return 100.0 * hit / total if total else 100.0

    def holes(self) -> list[tuple[str, str]]:
        """Reachable bins without a hit: (coverpoint, bin)."""
        return [
            (point.name, label) for point, label, reachable, hits in self.bins() if reachable and not hits
        ]

    def surprises(self) -> list[tuple[str, str]]:
        """Bins that were hit although no rule lets them be reached: a rule that is too narrow, or results
        that are not the instruction's. They count like any other."""
        return [
            (point.name, label) for point, label, _, hits in self.bins() if hits and not point.bins[label]
        ]

    def merge(self, other: Coverage) -> None:
        """Adds the hits of another run of the same instruction.

        Raises:
            OperandError: the other coverage has other coverpoints.
        """
        if [(p.name, p.bins) for p in self.points] != [(p.name, p.bins) for p in other.points]:
            raise OperandError(
                f"coverage of {other.instruction.name} does not merge with that of {self.instruction.name}"
            )
        for name, hits in other.hits.items():
            self.hits[name] += hits
        self.vectors += other.vectors

    def merge_saved(self, saved: dict[str, Any]) -> None:
        """Adds what `as_dict` gave of another run of the same instruction; much faster than `from_dict` and
        `merge`, which work out anew what can be reached.

        Raises:
            FileFormatError: it is of other coverpoints.
        """
        try:
            for point in self.points:
                places = {label: place for place, label in enumerate(point.bins)}
                for label, hits in saved["coverpoints"][point.name].items():
                    self.hits[point.name][places[label]] += hits
            self.vectors += int(saved["vectors"])
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"saved coverage does not fit {self.instruction.name} ({error})") from None

    def as_dict(self) -> dict[str, Any]:
        """The coverage as plain values for JSON: bins by coverpoint with their hits; bins that cannot be
        reached are left out."""
        table: dict[str, dict[str, int]] = {point.name: {} for point in self.points}
        for point, label, reachable, hits in self.bins():
            if reachable:
                table[point.name][label] = hits
        hit, total = self.counts
        return {
            "format": FORMAT,
            "instruction": {"architecture": self.instruction.architecture, "name": self.instruction.name},
            "vectors": self.vectors,
            "bins_hit": hit,
            "bins_reachable": total,
            "coverpoints": table,
        }

    @classmethod
    def from_dict(cls, saved: dict[str, Any], ins: Instruction | None = None) -> Coverage:
        """Rebuilds saved coverage. A custom unit's instruction must be given; others are looked up by name.

        Raises:
            FileFormatError: it is not saved coverage, or of other coverpoints (another version of the spec).
        """
        if not isinstance(saved, dict) or saved.get("format") != FORMAT:
            raise FileFormatError(f"this is no saved coverage, expected format '{FORMAT}'")
        try:
            named = saved["instruction"]
            coverage = cls(ins or instruction(named["architecture"], named["name"]))
            coverage.vectors = int(saved["vectors"])
            for point in coverage.points:
                bins = saved["coverpoints"][point.name]
                wanted = [label for label, reachable in point.bins.items() if reachable or label in bins]
                if list(bins) != wanted:
                    raise KeyError(point.name)
                coverage.hits[point.name] = np.array(
                    [int(bins.get(label, 0)) for label in point.bins], np.int64
                )
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(
                f"saved coverage does not fit the coverpoints of its instruction ({error})"
            ) from None
        return coverage


def save(coverages: list[Coverage], path: str | Path) -> None:
    """Writes coverage of one or several instructions as JSON; an earlier file is replaced only when all is
    written."""
    text = json.dumps([coverage.as_dict() for coverage in coverages], indent=1) + "\n"
    write_text(path, text)


def load(path: str | Path, instructions: list[Instruction] | None = None) -> list[Coverage]:
    """Reads saved coverage; `instructions` names custom units that no architecture lists.

    Raises:
        FileFormatError: the file cannot be read as saved coverage.
    """
    given = {ins.name: ins for ins in instructions or []}
    saved = read_json(path)
    if not isinstance(saved, list):
        raise FileFormatError(f"{path}: expected a list of saved coverages")
    try:
        return [Coverage.from_dict(item, given.get(_name(item))) for item in saved]
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error}") from None


def _name(item: Any) -> str:
    named = item.get("instruction") if isinstance(item, dict) else None
    return str(named.get("name")) if isinstance(named, dict) else ""


def merged(coverages: list[Coverage]) -> list[Coverage]:
    """One coverage for each instruction, in order of first appearance."""
    result: dict[tuple[str, str], Coverage] = {}
    for coverage in coverages:
        key = coverage.instruction.architecture, coverage.instruction.name
        if key not in result:
            result[key] = Coverage(coverage.instruction)
        result[key].merge(coverage)
    return list(result.values())


def until_covered(
    ins: Instruction, seed: int = 1, most: int = 1_000_000, coverage: Coverage | None = None, batch: int = 512
) -> Iterator[VectorSet]:
    """Draws sets of one kind after the other until every reachable bin is hit, or `most` vectors are drawn.

    Kinds that lately hit new bins are drawn more often; every kind is drawn again and again.

    Args:
        coverage: what is covered already; it is updated. Default: nothing.
    """
    coverage = Coverage(ins) if coverage is None else coverage
    rng = np.random.default_rng(seed)
    credit = np.ones(len(stimuli.KINDS))
    drawn = 0
    batch = max(batch, vectors_needed(ins)) if ins.state else batch
    while coverage.holes() and drawn < most:
        kind = int(rng.choice(len(credit), p=credit / credit.sum()))
        operands = stimuli.generate(ins, stimuli.KINDS[kind], min(batch, most - drawn), rng)
        results = ins.answers(operands)
        d = results["d"]
        before = coverage.counts[0]
        coverage.sample(operands, d)
        credit[kind] = 0.5 * credit[kind] + 0.1 + (coverage.counts[0] - before)
        drawn += len(d)
        yield VectorSet.of(ins, "dot", operands, results, np.full(len(d), kind, np.uint8), seed)
