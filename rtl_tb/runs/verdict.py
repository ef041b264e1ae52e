"""The verdict on a DUT's answers: which vectors differ, kind by kind. The same for every engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.stimuli import KINDS, kind_name
from golden.vectors.vectorset import VectorSet
from rtl_tb import engines
from rtl_tb.dut.policy import ComparePolicy
from rtl_tb.engines.job import Job, Outcome
from rtl_tb.errors import RtlError

Bits = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class KindRow:
    """One stimulus kind: vectors tried, wrong results, results with X or Z, results that never came."""

    kind: str
    tried: int
    wrong: int
    unknown: int
    missing: int

    @property
    def failed(self) -> int:
        """Vectors of the kind that did not pass."""
        return self.wrong + self.unknown + self.missing

    def with_more(self, other: KindRow) -> KindRow:
        """This kind with the counts of another added."""
        counts = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        return replace(self, **counts)


FAILURES = ("wrong", "unknown", "missing")
"""How a vector can fail; the ways exclude each other."""
_COUNTS = ("tried", *FAILURES)


def failed_in(counts: Mapping[str, Any]) -> int:
    """How many vectors did not pass, of a report or a row of one: wrong, with X or Z, or without a result."""
    return sum(int(counts[way]) for way in FAILURES)


@dataclass(frozen=True)
class Verdict:
    """What an engine brought back, compared with the expected results under the DUT's policy.

    `wrong`, `unknown` and `missing` are (count,) and exclude each other: a result with X or Z is never called
    wrong, and one that never came is neither. `wrong_d` are the wrong ones whose d is wrong, not status flags
    alone.
    """

    vectors: VectorSet
    outcome: Outcome
    wrong: Flags
    unknown: Flags
    missing: Flags
    wrong_d: Flags

    @property
    def passed(self) -> bool:
        """Every result came, was known and equal, and the handshake kept its rules."""
        return not (self.failed.any() or self.outcome.failures)

    @cached_property
    def failed(self) -> Flags:
        """(count,): vectors that did not pass."""
        return self.wrong | self.unknown | self.missing

    def wrong_element(self, vector: int, policy: ComparePolicy) -> int:
        """Index of the first element of a vector's result
        that the policy does not accept (0 at level dot)."""
        fmt = self.vectors.instruction.formats["d"]
        came = {name: codes.reshape(len(self.vectors), -1) for name, codes in self.outcome.results.items()}
        equal = policy.equal(fmt, self.vectors.d[vector].reshape(-1), came["d"][vector])
        if self.vectors.flags is not None:
            equal = equal & (self.vectors.flags[vector].reshape(-1) == came["flags"][vector])
        return int(np.argmin(equal))

    @cached_property
    def wrong_flags(self) -> dict[str, int]:
        """Of each status flag the number of wrong results in which it differs; empty where the unit has
        none."""
        if self.vectors.flags is None or self.outcome.flags is None:
            return {}
        differ = self.vectors.flags ^ self.outcome.flags.reshape(self.vectors.flags.shape)
        rows = differ.reshape(len(self.vectors), -1)[self.wrong]
        return {
            name: int(np.count_nonzero((rows >> bit & 1).any(axis=1)))
            for bit, name in enumerate(self.vectors.instruction.status)
        }

    def by_kind(self) -> list[KindRow]:
        """Counts of every stimulus kind that was tried, in the order of golden.stimuli.KINDS."""
        rows = []
        for index, kind in enumerate(KINDS):
            of_kind = self.vectors.kinds == index
            if of_kind.any():
                counts = (
                    int(np.count_nonzero(of_kind & flags))
                    for flags in (self.wrong, self.unknown, self.missing)
                )
                rows.append(KindRow(kind, int(np.count_nonzero(of_kind)), *counts))
        return rows

    def by_named_kind(self) -> list[KindRow]:
        """The same under the names that the kinds have for the unit; kinds of one name are one row."""
        rows: dict[str, KindRow] = {}
        for row in self.by_kind():
            name = kind_name(self.vectors.instruction, row.kind)
            rows[name] = replace(row, kind=name) if name not in rows else rows[name].with_more(row)
        return list(rows.values())


def silent(verdict: Verdict) -> bool:
    """Whether the unit answered next to nothing; what a start leaves in a register may look like one
    answer."""
    return bool(verdict.missing.sum() > 0.9 * len(verdict.vectors))


def judge(vectors: VectorSet, outcome: Outcome, policy: ComparePolicy) -> Verdict:
    """Compares what came with what was expected: d under the policy, status flags bit for bit; excluded
    vectors with what the unit then answers.

    Raises:
        RtlError: the engine brought back other results than the unit has.
    """
    expected, came = vectors.results, outcome.results
    if set(expected) != set(came):
        raise RtlError(f"{outcome.engine} brought back {', '.join(came)}, expected {', '.join(expected)}")
    equal = right_results(vectors, {"d": vectors.d}, came, policy)
    same = right_results(vectors, expected, came, policy)
    missing = ~outcome.received
    unknown = outcome.unknown & ~missing
    known = ~unknown & ~missing
    return Verdict(vectors, outcome, ~same & known, unknown, missing, ~equal & known)


def verdict_of(engine: str, job: Job) -> Verdict:
    """Runs a job and judges its answers by the policy of its DUT.

    Raises:
        As engines.run and judge do.
    """
    return judge(job.vectors, engines.run(engine, job), job.dut.compare)


def right_results(
    vectors: VectorSet, expected: Mapping[str, Bits], came: Mapping[str, Bits], policy: ComparePolicy
) -> Flags:
    """Which vectors, (count,), have the results that are expected under the policy, excluded ones those that
    the unit then answers.

    Args:
        expected, came: codes by name, (count, ...) each.
    """
    ins = vectors.instruction
    same = policy.right(ins.formats["d"], expected, came)
    if policy.exclude is None:
        return same
    excluded, accepted = policy.exclude.accepted(ins, vectors.operands, vectors.d, came)
    return np.where(excluded, accepted, same)
