"""Queries that distinguish orders of the sum which answer all ordinary questions alike so far.

If products overflow far below the ends of the formats, masks show no order, and few results are numbers that
keep the last bits of a sum: in a random draw one question in a hundred decides the order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.identify.blackbox import fitting
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.early_overflow import lowered
from golden.identify.sample import joined, picked
from golden.number.formats import to_float
from golden.program.signature import Operands

_KINDS = ("split_tie", "beside_tie", "half_ulp", "tie", "narrow", "wide", "alignment_one_term")
"""Kinds in which what is kept below the last bit decides a result."""


def alike(ranked: Sequence[fitting.Fit], questions: int) -> list[Candidate]:
    """The best ranked skeletons, as far as the questions do not distinguish them."""
    # Orders rank equally if they differ by fewer than one question in 100.
    near = 100
    most = (ranked[0].wrong if ranked else 0) + questions // near
    return [fit.candidate for fit in ranked if fit.wrong <= most]


def questions(
    candidates: Sequence[Candidate], end: int, rng: Callable[..., np.random.Generator]
) -> Operands | None:
    """Operands (n, ...) with products below 2^end that some of the candidates answer with other numbers than
    the first one; None if none was drawn.

    Args:
        rng: of some numbers, which name its purpose.
    """
    takes = candidates[0].takes
    # Orders of various shapes: each gets operands of its own.
    most = 12
    aimed = [fit.candidate for fit in fitting.various((fitting.Fit(one, 0) for one in candidates), most)]
    # Operands of each kind for each order.
    each = 48
    parts = [
        lowered(takes, stimuli.generate(one.instruction, kind, each, rng(place, index)), end, rng(place))
        for place, one in enumerate(aimed)
        for index, kind in enumerate(_KINDS)
    ]
    operands = joined(parts)
    differing = np.flatnonzero(_differ(candidates, operands))
    # Queries at most: they are sent before every ranking.
    queries = 384
    some = rng(len(parts)).permutation(differing)[:queries]
    return picked(operands, some) if len(some) else None


def _differ(candidates: Sequence[Candidate], operands: Operands) -> npt.NDArray[np.bool_]:
    """Where the answers differ and all are numbers: signs of zeros and words of NaNs do not depend on the
    order."""
    d = candidates[0].takes.formats["d"]
    answers = np.stack([one.dot(**operands) for one in candidates])
    numbers = np.asarray(to_float(d, answers), np.float64)
    known = (np.isfinite(numbers) & (numbers != 0)).all(axis=0)
    return np.asarray(known & (answers != answers[0]).any(axis=0))
