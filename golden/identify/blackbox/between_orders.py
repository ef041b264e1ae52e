"""Questions that tell orders of the sum apart which answer all ordinary ones alike so far.

Where products overflow far below the ends of the formats masks show no order, and few results are numbers
that keep the last bits of a sum: of those that say which order it is, a draw has one in a hundred.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.identify.blackbox import fitting
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.lower import lowered
from golden.number.formats import to_float
from golden.program.signature import Operands

_NEAR, _AIMED, _EACH, _MOST = 100, 12, 48, 384
"""Orders are alike that are apart by less than one in so many questions; of how many operands are drawn, how
many of each kind, and how many are asked at most."""
_KINDS = ("split_tie", "beside_tie", "half_ulp", "tie", "narrow", "wide", "alignment_one_term")
"""Kinds in which what is kept below the last bit decides a result."""


def alike(ranked: Sequence[fitting.Fit], questions: int) -> list[Candidate]:
    """The best of ranked skeletons, as far as so many questions do not tell them apart."""
    most = (ranked[0].wrong if ranked else 0) + questions // _NEAR
    return [fit.candidate for fit in ranked if fit.wrong <= most]


def questions(
    those: Sequence[Candidate], end: int, rng: Callable[..., np.random.Generator]
) -> Operands | None:
    """Operands (n, ...) with products below 2^end that some of the candidates answer with other numbers than
    the first one; None where none was drawn.

    Args:
        rng: of some numbers, which say what it is for.
    """
    takes = those[0].takes
    aimed = [fit.candidate for fit in fitting.various((fitting.Fit(one, 0) for one in those), _AIMED)]
    parts = [
        lowered(takes, stimuli.generate(one.instruction, kind, _EACH, rng(place, index)), end, rng(place))
        for place, one in enumerate(aimed)
        for index, kind in enumerate(_KINDS)
    ]
    operands = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    told = np.flatnonzero(_told_apart(those, operands))
    some = rng(len(parts)).permutation(told)[:_MOST]
    return {name: codes[some] for name, codes in operands.items()} if len(some) else None


def _told_apart(those: Sequence[Candidate], operands: Operands) -> npt.NDArray[np.bool_]:
    """Where not all answers are the same, and all are numbers: signs of zeros and words of NaNs say nothing
    of an order."""
    d = those[0].takes.formats["d"]
    answers = np.stack([one.dot(**operands) for one in those])
    numbers = np.asarray(to_float(d, answers), np.float64)
    known = (np.isfinite(numbers) & (numbers != 0)).all(axis=0)
    return np.asarray(known & (answers != answers[0]).any(axis=0))
