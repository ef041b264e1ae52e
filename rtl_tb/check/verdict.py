"""The verdict on a DUT's answers: which vectors differ, kind by kind. The same for every engine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.stimuli import KINDS
from golden.vectors.vectorset import VectorSet
from rtl_tb.dut.policy import ComparePolicy
from rtl_tb.engines.job import Outcome

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


@dataclass(frozen=True)
class Verdict:
    """What an engine brought back, compared with the expected results under the DUT's policy.

    `wrong`, `unknown` and `missing` are (count,) and exclude each other: a result with X or Z is never called
    wrong, and one that never came is neither.
    """

    vectors: VectorSet
    outcome: Outcome
    wrong: Flags
    unknown: Flags
    missing: Flags

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
        expected = self.vectors.d[vector].reshape(-1)
        actual = self.outcome.actual.reshape(self.vectors.d.shape)[vector].reshape(-1)
        return int(np.argmin(policy.equal(fmt, expected, actual)))

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


def judge(vectors: VectorSet, outcome: Outcome, policy: ComparePolicy) -> Verdict:
    """Compares what came with what was expected."""
    count = len(vectors)
    equal = (
        policy.equal(vectors.instruction.formats["d"], vectors.d, outcome.actual.reshape(vectors.d.shape))
        .reshape(count, -1)
        .all(axis=1)
    )
    missing = ~outcome.received
    unknown = outcome.unknown & ~missing
    return Verdict(vectors, outcome, ~equal & ~unknown & ~missing, unknown, missing)
