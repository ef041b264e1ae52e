"""What a trial shows of changes: how many wrong vectors they repair, and how many right ones they break."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rtl_tb.locate.choices import new_names
from rtl_tb.locate.kinds import Change
from rtl_tb.locate.policy import SearchPolicy

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Score:
    """The effect of changes on the vectors of a trial: `right` of the wrong ones are right with them,
    `broken` of the others wrong."""

    changes: tuple[Change, ...]
    right: int
    broken: int
    wrong: int
    evidence: float = 0.0
    """The suspiciousness of the place, see Spectrum.score."""
    tried: int = 0
    """Vectors that it was tried on."""

    @property
    def left(self) -> int:
        """Vectors that are wrong with them."""
        return self.wrong - self.right + self.broken

    @property
    def clean(self) -> bool:
        """Whether every vector is right with them."""
        return not self.left


def shows_a_fault(right: int, wrong: int, broken: int, policy: SearchPolicy) -> bool:
    """Whether the vectors that a change repairs show a fault of its own, and no chance."""
    return right >= policy.chance * wrong and broken * policy.make_up <= right and right > 0


def scored(chosen: tuple[Change, ...], failed: Flags, wrong: Flags, evidence: float) -> Score:
    """The score of changes, by the vectors of a trial that fail without them and with them, (count,) each."""
    right, broken = failed & ~wrong, wrong & ~failed
    return Score(chosen, int(right.sum()), int(broken.sum()), int(failed.sum()), evidence, len(failed))


def order(score: Score) -> tuple[int, int, int, float, int]:
    """The changes that repair most come first; among equal ones changed tokens before added ones, then the
    likelier place, and the nearer text."""
    changes = score.changes
    distance = sum(abs(len(one.after) - len(one.before)) + len(new_names(one)) for one in changes)
    added = sum(one.adds for one in changes)
    return (
        score.left,
        len(changes),
        added,
        -round(score.evidence, 2),
        distance,
    )
