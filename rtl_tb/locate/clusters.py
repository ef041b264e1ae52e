"""Vectors that fail for one reason are alike: a sample has some of every sort, so that a rare fault is among
the vectors on which changes are tried.

The sorts are the class of the right result (NaN, infinity, zero, subnormal, normal) and the kind of stimulus.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from golden.number.formats import to_float
from golden.program import state
from golden.vectors.vectorset import VectorSet
from rtl_tb.engines.job import Job
from rtl_tb.locate.policy import SearchPolicy
from rtl_tb.runs.verdict import Verdict

Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def spread(vectors: VectorSet, places: Places, most: int, rng: np.random.Generator) -> Places:
    """At most `most` vectors: one of each class of results in turn, of each class one of each kind of
    stimulus in turn."""
    order = rng.permutation(places)
    for labels in (vectors.kinds, result_classes(vectors)):
        order = order[np.argsort(_turns(labels[order]), kind="stable")]
    return order[:most]


def sequences(
    vectors: VectorSet, places: Places, failing: int, most: int, rng: np.random.Generator
) -> Places:
    """Of a unit that keeps its accumulator some vectors of every sort, `failing` at most, each with the
    sequence that leads to it and the vector behind it; `most` vectors altogether, more only where a single
    one needs them.

    A sort is also how far a vector is from the start of its sequence, in powers of two: an accumulator that
    is too narrow shows late in long ones alone.
    """
    clear = vectors.operands["clear"]
    depths = state.places(clear)
    order = spread(vectors, places, len(places), rng)
    order = order[np.argsort(_turns(np.frexp(depths[order] + 1)[1]), kind="stable")][:failing]
    found, left = np.zeros(len(vectors), np.bool_), most
    for place in order.tolist():
        behind = place + 1 < len(vectors) and not clear[place + 1]
        rows = slice(place - int(depths[place]), place + 1 + behind)
        new = int((~found[rows]).sum())
        if new <= left:
            found[rows], left = True, left - new
    if not found.any() and len(order):  # all are far from the start: the nearest, however long that takes
        nearest = int(order[np.argmin(depths[order])])
        found[nearest - int(depths[nearest]) : nearest + 1] = True
    return np.flatnonzero(found)


def result_classes(vectors: VectorSet) -> npt.NDArray[np.int64]:
    """The class of every right result, for a tile that of its first element, (count,)."""
    fmt, codes = vectors.instruction.formats["d"], vectors.d.reshape(len(vectors), -1)[:, 0]
    values = to_float(fmt, codes)
    size = np.abs(values)
    least = 2.0 ** (1 - fmt.bias) if fmt.is_float else 1.0
    tests = (np.isnan(values), np.isinf(values), size == 0, size < least, values < 0)
    return np.asarray(np.select(tests, range(len(tests)), len(tests)), np.int64)


def _turns(labels: npt.NDArray[np.integer]) -> Places:
    """For each entry, the number of earlier ones with its label."""
    order = np.argsort(labels, kind="stable")
    _, first, counts = np.unique(labels[order], return_index=True, return_counts=True)
    turns = np.empty(len(labels), np.int64)
    turns[order] = np.arange(len(labels)) - np.repeat(first, counts)
    return turns


class Samples:
    """The vectors of a check on which changes are tried.

    Traffic, and a unit that stops, act on what lies around a vector: such vectors come with their neighbours
    and with the traffic of the run that failed.

    Attributes:
        picked: their places, with every sort of failure among them.
        more: the places of many more, and of as many as the time allows, for the changes that repair all of
            `picked`.
        failing_of_both: which of `both` are wrong, according to the verdict.
    """

    def __init__(self, verdict: Verdict, job: Job, policy: SearchPolicy) -> None:
        self.verdict, self.job, self.policy = verdict, job, policy
        self.failing_of_both: Flags = np.zeros(0, np.bool_)
        traffic = job.traffic.on(job.dut)
        busy = bool(traffic.idle or traffic.backpressure or traffic.resets)
        self.stops = bool(verdict.missing.any())
        self.around = (busy or self.stops) and not verdict.vectors.instruction.state
        wrong, right = self._wrong_by_itself(), np.flatnonzero(~verdict.failed)
        failing, passing = (policy.windows, 0) if self.around else (policy.failing, policy.passing)
        self.picked = self._some(policy.sequence, (wrong, failing), (right, passing))
        cycles = max(verdict.outcome.cycles // max(len(verdict.vectors), 1), 1)
        most = max(policy.more_cycles // cycles, policy.more_passing)
        many = ((policy.more_failing, policy.more_passing), (most, most))
        self.more = tuple(self._some(sum(each), *zip((wrong, right), each, strict=True)) for each in many)

    def _wrong_by_itself(self) -> Places:
        """The wrong vectors. Of a unit that stops, where it does: its later results never come. Of a unit
        that keeps its accumulator, the ones that are wrong given its real accumulator: one wrong result makes
        all later ones wrong."""
        vectors, wrong = self.verdict.vectors, self.verdict.wrong
        if not wrong.any():
            stops = [one.vector for one in self.verdict.outcome.failures if one.vector is not None]
            at = np.unique(np.clip(stops, 0, len(vectors) - 1)).astype(np.int64)
            return at if len(at) else np.flatnonzero(self.verdict.missing)
        if not vectors.instruction.state:
            return np.flatnonzero(wrong)
        ins, actual = vectors.instruction, self.verdict.outcome.actual.reshape(vectors.d.shape)
        answers = ins.stateless.dot(**ins.resolve(vectors.operands, actual, vectors.held))
        own = wrong & ~self.job.dut.compare.equal(ins.formats["d"], answers, actual)
        return np.flatnonzero(own if own.any() else wrong)

    def _some(self, room: int, *groups: tuple[Places, int]) -> Places:
        """A limited number of each of several groups of vectors, in order; for a unit that keeps its
        accumulator with the vectors before them, `room` altogether."""
        rng, vectors = np.random.default_rng(1), self.verdict.vectors
        if vectors.instruction.state:
            rooms = [room * most // sum(each for _, each in groups) for _, most in groups]
            parts = [
                sequences(vectors, places, most, room, rng)
                for (places, most), room in zip(groups, rooms, strict=True)
            ]
            return np.unique(np.concatenate(parts))
        some = []
        for each, most in groups:  # one half at random, one half of every sort
            often = rng.choice(each, min(most // 2, len(each)), replace=False)
            seldom = spread(vectors, np.setdiff1d(each, often), most - len(often), rng)
            some += [often, seldom]
        return self._with_neighbours(np.concatenate(some), len(vectors))

    def _with_neighbours(self, places: Places, count: int) -> Places:
        """In order, and with what lies around them where that matters; of `count` vectors."""
        if not self.around:
            return np.sort(places)
        rows = places[:, None] + np.arange(-self.policy.before, self.policy.behind + 1)
        return np.unique(rows[(rows >= 0) & (rows < count)])

    def few(self, job: Job, wrong: Flags) -> Job:
        """Some wrong vectors of a job, of every sort; for a unit that keeps its accumulator with the vectors
        before them."""
        places = self._few(job, wrong)
        return job.at(places) if len(places) else job

    def both(self, job: Job, wrong: Flags) -> Job:
        """Wrong vectors, and equally many right ones."""
        places = self._few(job, wrong)
        if not job.vectors.instruction.state and not self.around:
            right = spread(job.vectors, np.flatnonzero(~wrong), self.policy.first, np.random.default_rng(1))
            places = np.sort(np.concatenate([places, right]))
        self.failing_of_both = wrong[places]
        return job.at(places)

    def _few(self, job: Job, wrong: Flags) -> Places:
        rng, policy = np.random.default_rng(1), self.policy
        places = np.flatnonzero(wrong)
        if self.stops and len(places):  # the first one stops the unit, or is wrong by itself
            places = places[: policy.first]
        if not job.vectors.instruction.state:
            return self._with_neighbours(spread(job.vectors, places, policy.first, rng), len(job.vectors))
        _, first = np.unique(state.starts(job.vectors.operands["clear"], places), return_index=True)
        return sequences(job.vectors, places[first], policy.first, policy.first_sequence, rng)
