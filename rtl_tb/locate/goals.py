"""What a unit has to give with one change of its text where a hypothesis explains a part of its results: not
what is right, but what the hypothesis says.

Of two faults one may have a hypothesis and the other none. Held against the hypothesis the unit has the other
fault alone, and one change may mend it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from golden.identify.diagnosis import Hypothesis
from golden.vectors.vectorset import VectorSet
from rtl_tb.dut.description import Dut
from rtl_tb.locate.clusters import spread
from rtl_tb.runs.verdict import Verdict

_ASKED, _LEFT, _OTHERS = 4000, 160, 96
"""Wrong vectors about which a hypothesis is asked, and right ones; those of a goal that it leaves wrong, and
others."""


def goals_of(verdict: Verdict, dut: Dut, hypotheses: Sequence[Hypothesis]) -> list[VectorSet]:
    """For each of the likeliest hypotheses vectors with the results that it says, of a unit with modes those
    of its mode; none where it leaves nothing, and of units whose vectors do not stand for themselves."""
    vectors = verdict.vectors
    ins, flags = vectors.instruction, any(verdict.wrong_flags.values())
    if vectors.level != "dot" or ins.state or flags:
        return []
    rng, found = np.random.default_rng(1), []
    known = ~(verdict.missing | verdict.unknown)
    for one in _chosen(hypotheses):
        there = _asked_of(one, vectors)
        groups = (np.flatnonzero(there & verdict.wrong), np.flatnonzero(there & known & ~verdict.wrong))
        asked = np.sort(np.concatenate([spread(vectors, each, _ASKED, rng) for each in groups]))
        actual = verdict.outcome.actual.reshape(vectors.d.shape)[asked]
        operands = {name: codes[asked] for name, codes in vectors.operands.items() if name != "mode"}
        said = replace(vectors[asked], d=one.results(operands))
        left = ~dut.compare.equal(ins.formats["d"], said.d, actual)
        if left.any():
            parts = ((np.flatnonzero(left), _LEFT), (np.flatnonzero(~left), _OTHERS))
            some = [spread(said, places, most, rng) for places, most in parts]
            found.append(said[np.sort(np.concatenate(some))])
    return found


def _asked_of(one: Hypothesis, vectors: VectorSet) -> npt.NDArray[np.bool_]:
    """Of which vectors a hypothesis says something: one of a unit with modes is of one mode."""
    found = np.zeros(len(vectors), np.bool_)
    for unit, _, places in vectors.instruction.by_mode(vectors.operands):
        if vectors.instruction.modes is None or (one.start is not None and one.start.name == unit.name):
            found[places] = True
    return found


def _chosen(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Three at most, as each costs every change some runs: of one fault the two that explain most, and of
    several the one that does."""
    alone = [one for one in hypotheses if "+" not in one.slug and not one.in_order]
    several = [one for one in hypotheses if "+" in one.slug and not one.in_order]
    return [*alone[:1], *several[:1], *alone[1:2]]
