"""The search for the hypothesis that explains all results of a unit, as passes over one ranking.

Each pass makes candidates and ranks them by one measure: the wrong results of a sample. A hypothesis that
explains wrong results and breaks no right ones comes first. The best are then counted on all results, and
results that refute them join the sample (counterexamples). golden/identify/search.py runs the passes in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from golden.budget import Budget
from golden.catalog.relatives import arithmetic, relatives
from golden.identify.diagnose.hypothesis import Hypothesis
from golden.identify.diagnose.mutations import Mutation, of_ports, of_program, of_signals, run
from golden.identify.diagnose.mutations.ports import constant
from golden.identify.diagnose.mutations.relations import offset
from golden.identify.diagnose.policy import SEARCH
from golden.identify.sample import evenly
from golden.identify.search import Pass, Search
from golden.model.instruction import Instruction
from golden.number.formats import Format, Kind, to_float
from golden.program.signature import Bits, Operands

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]
Progress = Callable[[int, int], None]
_NEVER = Budget(float("inf"))


class Equality(Protocol):
    """How results are compared; rtl_tb.dut.policy.ComparePolicy is one."""

    def equal(self, fmt: Format, expected: Bits, actual: Bits) -> Mask:
        """True where the actual code is acceptable."""


@dataclass(frozen=True)
class Scored:
    """A hypothesis, and its wrong results in the sample."""

    hypothesis: Hypothesis
    wrong: int

    @property
    def rank(self) -> tuple[int, bool, float]:
        """The measure of the search: least is best."""
        return self.wrong, *self.hypothesis.rank


Ranking = tuple[Scored, ...]
"""Hypotheses that explain something, the best first."""


@dataclass
class Results:
    """The results of a unit, and the part of them on which hypotheses are tried.

    Attributes:
        ins: what the unit should be. operands: (n, ...). actual: its results (n,).
        equality: what counts as equal.
    """

    ins: Instruction
    operands: Operands
    actual: Bits
    equality: Equality

    def __post_init__(self) -> None:
        self.fmt = self.ins.formats["d"]
        self.expected = run(self.ins, (), self.operands)
        self.wrong = ~self.equality.equal(self.fmt, self.expected, self.actual)
        self.every = np.arange(len(self.actual))
        self.sample = self._sample()
        self._right: dict[str, Mask] = {}

    def _sample(self) -> Places:
        """Some wrong and some right results."""
        rng = np.random.default_rng(1)
        picked = []
        for mask, most in ((self.wrong, SEARCH.failing), (~self.wrong, SEARCH.passing)):
            indices = np.flatnonzero(mask)
            picked.append(rng.choice(indices, most, replace=False) if len(indices) > most else indices)
        return np.concatenate(picked)

    @cached_property
    def judged(self) -> Places:
        """The results on which changed signals are counted: equally many wrong and right ones from all
        vectors, because a change that makes everything wrong also explains every failure."""
        if len(self.actual) <= SEARCH.judged:
            return self.every
        wrong, right = np.flatnonzero(self.wrong), np.flatnonzero(~self.wrong)
        failing = min(len(wrong), max(SEARCH.judged // 2, SEARCH.judged - len(right)))
        return np.sort(np.concatenate([evenly(wrong, failing), evenly(right, SEARCH.judged - failing)]))

    @property
    def failing(self) -> int:
        """How many results are wrong."""
        return int(self.wrong.sum())

    @property
    def has_order(self) -> bool:
        """Whether there are enough results that a shift by one vector does not explain much by chance."""
        return len(self.actual) >= SEARCH.ordered

    def misses(self, hypothesis: Hypothesis, places: Places) -> Mask:
        """Which of these results a hypothesis does not explain. If it uses the vectors before or after, each
        result is run with both neighbours; the first and the last one have only one, and do not count."""
        last = len(self.actual) - 1
        around = np.clip(places[:, None] + [-1, 0, 1], 0, last).reshape(-1)
        given = around if hypothesis.in_order else places
        codes = hypothesis.results({name: each[given] for name, each in self.operands.items()})
        codes = codes[1::3] if hypothesis.in_order else codes
        missed = ~self.equality.equal(self.fmt, codes, self.actual[places])
        return np.asarray(missed & (places > 0) & (places < last) if hypothesis.in_order else missed)

    def count(self, hypothesis: Hypothesis, places: Places) -> int:
        """How many of these results a hypothesis does not explain."""
        return int(self.misses(hypothesis, places).sum())

    def right(self, hypothesis: Hypothesis) -> Mask:
        """Which of all results it explains; they are run once for each hypothesis, in parts for which the
        memory is enough."""
        if hypothesis.slug not in self._right:
            parts = np.array_split(self.every, -(-len(self.actual) // SEARCH.judged))
            self._right[hypothesis.slug] = ~np.concatenate([self.misses(hypothesis, part) for part in parts])
        return self._right[hypothesis.slug]


class HypothesisSearch:
    """Ranks hypotheses about the results of a unit.

    Args:
        budget: nothing is tried after it is over. combining: no further fault is tried after it is over.
        progress: called with (tried, all) hypotheses of the pass that runs.
    """

    def __init__(
        self, results: Results, budget: Budget, combining: Budget, progress: Progress | None = None
    ) -> None:
        self.results, self.budget, self.combining, self.progress = results, budget, combining, progress
        self.ins = results.ins
        self.base = Hypothesis("", "", self.ins, 0.0)
        self.confirmed: dict[str, Hypothesis] = {}
        self.harmless: dict[str, tuple[int, Hypothesis]] = {}
        """Hypotheses that explain some of the sample and break no right result of it, with the wrong results
        they leave."""
        self.tried: set[Any] = set()
        more = [
            Pass(f"{number} faults", self.one_more, "no further fault of the pool explains more")
            for number in range(2, SEARCH.depth + 1)
        ]
        self.search: Search[Ranking] = Search(
            [
                Pass("programs and ports", self.plain, "every fault without a changed signal is ranked"),
                Pass("other vectors", self.delays, "no shift by a few vectors explains more"),
                Pass("signals", self.signals, "every changed signal is ranked"),
                *more,
            ]
        )

    def run(self) -> tuple[Hypothesis, ...]:
        """Runs each pass, until a cause explains everything; the counted hypotheses, ranked."""
        self.search.once((), self._cost, float("inf"))
        return self._counted_on_all(self._ranked())

    def _cost(self, ranking: Ranking) -> float:
        """0 ends the search. A change can explain few wrong results by chance, so signals are tried then,
        too, and also if only a symptom explains everything."""
        called = self.search.statistics["signals"].calls
        if called:
            return float(not self.explained(symptoms=True))
        if not self.search.statistics["other vectors"].calls and self._by_neighbours():
            return 1.0
        return float(not self.explained() or self.results.failing < SEARCH.few)

    def _by_neighbours(self) -> bool:
        """Whether all complete explanations use operands of other vectors: then a late result is the simpler
        explanation."""
        explaining = [one for one in self.confirmed.values() if not one.remaining]
        return bool(explaining) and all(one.in_order for one in explaining)

    def explained(self, symptoms: bool = False) -> bool:
        """Whether a hypothesis explains every result; `symptoms`: also one that is no cause."""
        return any(not one.remaining and (symptoms or not one.symptom) for one in self.confirmed.values())

    # The passes ---------------------------------------------------------------------------------------------

    def plain(self, ranking: Ranking, _deadline: float) -> Ranking | None:
        """Every single mutation of the program and the ports, and catalogued instructions."""
        return self._confirm(self._scored(self.without_signals))

    def delays(self, ranking: Ranking, _deadline: float) -> Ranking | None:
        """Results that belong to a vector before or after; results without a partner do not count."""
        results = self.results
        for by in range(1, SEARCH.late + 1) if results.has_order else ():
            for delay, word in ((by, "delayed"), (-by, "early")):
                count = "one" if by == 1 else f"{by}"
                late = "late" if delay > 0 else "early"
                text = f"results that are {late} by {count} vector{'s' * (by > 1)}"
                shifted = results.equality.equal(
                    results.fmt, np.roll(results.expected, delay), results.actual
                )
                left = int((~(shifted[delay:] if delay > 0 else shifted[:delay])).sum())
                total = len(results.actual) - by
                slug = f"{word}-by-{count}"
                # Late results are less likely than operands that all are late.
                weight = 0.95
                self.confirmed[slug] = Hypothesis(
                    slug, text, self.ins, weight, delay=delay, remaining=left, total=total
                )
        return None

    def signals(self, ranking: Ranking, _deadline: float) -> Ranking | None:
        """Every single changed signal of the data path, which takes longer."""
        if not self.explained():
            self.budget.begin()
        found = self._scored(self.with_signals)
        return self._confirm(_sorted([*ranking, *found]))

    def one_more(self, ranking: Ranking, _deadline: float) -> Ranking | None:
        """The best hypotheses with one more fault each: a fault that explains something that the very best
        one leaves, or something by itself."""
        self.combining.begin()
        found: list[Scored] = []
        for singles in (self.without_signals, self.with_signals):
            if not self.explained(symptoms=True) and not self._over(self.combining):
                found += self._confirm(self._combined(ranking, singles))
        return _sorted(found)

    # Candidates ---------------------------------------------------------------------------------------------

    @cached_property
    def without_signals(self) -> list[Hypothesis]:
        """Every hypothesis of one mutation of the program or the ports, and catalogued instructions."""
        results = self.results
        program = of_program(self.ins, self._nan_word())
        ports = of_ports(self.ins, results.operands, ordered=results.has_order)
        ends = [*self._alone(program), *self._known(), *self._alone([*ports, *self._constants()])]
        return self._different(ends)

    @cached_property
    def with_signals(self) -> list[Hypothesis]:
        """Every hypothesis of one changed signal."""
        return self._alone(one for one in of_signals(self.ins) if not one.in_order or self.results.has_order)

    def _alone(self, mutations: Iterable[Mutation]) -> list[Hypothesis]:
        return [new for one in mutations if (new := self.base.with_one_more(one)) is not None]

    def _different(self, hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
        """The hypotheses whose program and mutations are new."""
        found = []
        for one in hypotheses:
            unit = one.known_instruction
            formats = tuple(unit.formats.items())
            key = (arithmetic(unit), formats, frozenset(each.slug for each in one.outside))
            if key not in self.tried:
                self.tried.add(key)
                found.append(one)
        return found

    def _known(self) -> list[Hypothesis]:
        found = []
        for one in relatives(self.ins):
            chain = f" in a chain of {one.links}" if one.links > 1 else ""
            shared = f" (the same on {', '.join(one.shared_by)})" if one.shared_by else ""
            text = f"{one.instruction.architecture}:{one.instruction.name}{chain}{shared}"
            slug = f"known-{one.instruction.architecture}"
            weight = 1.3 + 0.1 * (one.links > 1)  # likelier than two changes, less likely than one
            found.append(Hypothesis(slug, text, one.stretched, weight, known=True))
        return found

    def _constants(self) -> list[Mutation]:
        """For results that hardly change: that they are constant; for integers that all have one distance
        from the right results: that it is added."""
        results, found = self.results, list[Mutation]()
        if (code := _nearly_all(results.actual)) is not None:
            found.append(constant(self.ins, code))
        if not results.fmt.is_float:
            word = results.fmt.dtype.type((1 << results.fmt.bits) - 1)
            by = _nearly_all((results.actual - results.expected) & word)
            found += [offset(self.ins, by)] if by else []
        return found

    def _nan_word(self) -> int | None:
        """The word that the unit answers most often where a NaN is expected, if it is another one."""
        results = self.results
        if not results.fmt.is_float:
            return None
        expected_nan = np.isnan(to_float(results.fmt, results.expected))
        answers, counts = np.unique(results.actual[results.wrong & expected_nan], return_counts=True)
        words = (int(answers[i]) for i in np.argsort(-counts))
        return next((word for word in words if results.fmt.decode(word).kind == Kind.NAN), None)

    def _combined(self, ranking: Ranking, singles: list[Hypothesis]) -> Ranking:
        """The best hypotheses with one more of some faults; until one explains the whole sample."""
        # the beam: the best so far; what explains nothing by itself is no base
        bases = [scored.hypothesis for scored in ranking[: SEARCH.beam]]
        if not bases:
            return ()
        # the pool: faults that explain some of what the very best leaves, or that are likely by themselves
        pool = self._useful(bases[0], singles)
        pool += self._by_themselves(ranking, singles, pool)
        found: list[Scored] = []
        for number, base in enumerate(bases):
            with_this = pool if number < SEARCH.signal_bases else [one for one in pool if not one.outside]
            fresh = [new for one in with_this if (new := base.with_one_more(one.mutations[0])) is not None]
            found += self._scored(self._different(fresh), self.combining)
            if any(scored.wrong == 0 for scored in found):  # worse ones are no better with one more
                break
        return _sorted(found)

    def _by_themselves(
        self, ranking: Ranking, singles: list[Hypothesis], pool: list[Hypothesis]
    ) -> list[Hypothesis]:
        """Hypotheses among the best ones, and the ones that break no right result, the best first. Combined
        with the very best one such a fault may not show, because that one explains its results by chance."""
        harmless = sorted(self.harmless.values(), key=lambda each: (each[0], each[1].rank))
        likely = [scored.hypothesis for scored in ranking[: SEARCH.beam]]
        likely += [one for _, one in harmless[: SEARCH.harmless]]
        slugs, had = {one.slug for one in likely}, {one.slug for one in pool}
        return [one for one in singles if one.slug in slugs - had and not one.known]

    def _useful(self, best: Hypothesis, singles: list[Hypothesis]) -> list[Hypothesis]:
        """Hypotheses that explain some of what the best one leaves, most first. What it leaves joins the
        sample: a fault that shows seldom is in it then."""
        results = self.results
        left = self._left(best)
        if len(left) > SEARCH.left:
            left = np.random.default_rng(2).choice(left, SEARCH.left, replace=False)
        results.sample = np.union1d(results.sample, left)
        found: list[tuple[int, tuple[bool, float], int, Hypothesis]] = []
        for one in singles:
            if self._over(self.combining):
                break
            if one.known:
                continue
            # it shows on top of the best one or, where it is quickly tried, may do so by itself
            on_top = best.with_one_more(one.mutations[0])
            tried = [
                *([] if on_top is None else [on_top]),
                *([one] if not one.in_datapath or not on_top else []),
            ]
            if explained := len(left) - min(results.count(each, left) for each in tried):
                found.append((-explained, one.rank, len(found), one))
        return [one for *_, one in sorted(found, key=lambda each: each[:3])[: SEARCH.pool]]

    # Ranking ------------------------------------------------------------------------------------------------

    def _over(self, further: Budget = _NEVER) -> bool:
        return self.budget.over() or further.over()

    def _report(self, done: int, every: int) -> None:
        if done % 64 == 0 and self.progress is not None:
            self.progress(done, every)

    def _scored(self, hypotheses: list[Hypothesis], within: Budget = _NEVER) -> Ranking:
        """Hypotheses that explain something, by how many results of the sample they leave."""
        hypotheses = self._passed_on(hypotheses, within)
        # the measure: wrong results of the sample that stay, and right ones that break, count alike
        sample = self.results.sample
        failing = self.results.wrong[sample]
        found = []
        for index, one in enumerate(hypotheses):
            self._report(index, len(hypotheses))
            if self._over(within):
                break
            missed = self.results.misses(one, sample)
            wrong = int(missed.sum())
            if wrong < int(failing.sum()):
                found.append(Scored(one, wrong))
                if not (missed & ~failing).any():
                    self.harmless[one.slug] = (wrong, one)
        return _sorted(found)

    def _passed_on(self, hypotheses: list[Hypothesis], within: Budget) -> list[Hypothesis]:
        """Leaves out changed signals that explain little of a few results."""
        # a race on few results: the data path is slow, and most changed signals break right ones at once
        slow = [one for one in hypotheses if one.in_datapath]
        if len(slow) <= SEARCH.passed_on:
            return hypotheses
        sample = self.results.sample
        failing = self.results.wrong[sample]
        quick = np.concatenate([sample[failing][: SEARCH.quick], sample[~failing][: SEARCH.quick]])
        found, harmless = [], []
        for index, one in enumerate(slow):
            self._report(index, len(slow))
            if self._over(within):
                break
            missed = self.results.misses(one, quick)
            found.append((int(missed.sum()), one.rank, index))
            if not (missed & ~self.results.wrong[quick]).any():  # it may be one fault of several
                harmless.append(found[-1])
        chosen = [*sorted(found)[: SEARCH.passed_on], *sorted(harmless)[: SEARCH.passed_on_harmless]]
        kept = {id(slow[index]) for *_, index in chosen}
        return [one for one in hypotheses if not one.in_datapath or id(one) in kept]

    def _confirm(self, ranking: Ranking) -> Ranking:
        """Counts on all results what the best hypotheses leave; the ranking anew where the sample had
        misled."""
        for _ in range(SEARCH.rounds):
            # afterwards the sample refutes what was refuted here: no hypothesis misleads twice
            missed = self._confirm_best(ranking)
            if not len(missed) or self.explained():
                break
            self.results.sample = np.union1d(self.results.sample, missed)
            ranking = self._scored([scored.hypothesis for scored in ranking])
        return ranking

    def _confirm_best(self, ranking: Ranking) -> Places:
        """Counts on all results; returns counterexamples to what explains the whole sample."""
        results, exact = self.results, [scored for scored in ranking if scored.wrong == 0]
        missed = [np.zeros(0, np.intp)]
        rest = ranking[len(exact) : len(exact) + SEARCH.confirmed]
        for scored in [*exact[: 4 * SEARCH.confirmed], *rest]:
            one = scored.hypothesis
            if one.slug in self.confirmed:
                continue
            if self.confirmed and self._over():  # the best one is counted in any case
                break
            left, judged = self._left(one), self._judged(one)
            part = len(judged) < len(results.actual)
            self.confirmed[one.slug] = one.counted(
                len(left),
                len(judged) - 2 * one.in_order,
                int(results.wrong[judged].sum()) if part else None,
            )
            missed += [left[: SEARCH.counterexamples]] if scored.wrong == 0 else []
        return np.concatenate(missed)

    def _judged(self, hypothesis: Hypothesis) -> Places:
        """The results that a hypothesis is counted on."""
        return self.results.judged if hypothesis.in_datapath else self.results.every

    def _left(self, hypothesis: Hypothesis) -> Places:
        """Indices of the results that a hypothesis does not explain, of the ones on which it is counted."""
        judged = self._judged(hypothesis)
        return judged[self.results.misses(hypothesis, judged)]

    # What came of it ----------------------------------------------------------------------------------------

    def _ranked(self) -> tuple[Hypothesis, ...]:
        """All hypotheses that explain everything, then the nearest; without those that add an unnecessary
        change."""
        ranked: list[Hypothesis] = []
        for one in sorted(self.confirmed.values(), key=_left_and_rank):
            parts = set(one.slug.split("+"))
            more = any(parts > set(better.slug.split("+")) for better in ranked)
            if one.remaining < one.of_wrong(self.results.failing) and not more:
                ranked.append(one)
        explaining = sum(one.remaining == 0 for one in ranked)
        return tuple(ranked[: max(explaining, SEARCH.shown)])

    def _counted_on_all(self, ranked: tuple[Hypothesis, ...]) -> tuple[Hypothesis, ...]:
        """The hypotheses with counts of all results. Changed signals were compared with a part only: the
        best, and equally good ones, are counted again as far as time allows."""
        results, found = self.results, []
        for number, one in enumerate(ranked):
            wanted = not number or (number < SEARCH.named and not one.remaining)
            if one.failing is not None and wanted and not self._over(self.combining):
                one = one.counted(int((~results.right(one)).sum()), len(results.actual) - 2 * one.in_order)
                self.confirmed[one.slug] = one
            found.append(one)
        return tuple(sorted(found, key=_left_and_rank))


def _nearly_all(codes: Bits) -> int | None:
    """The code that all but a tenth are, which may be the first results of a run."""
    found, counts = np.unique(codes, return_counts=True)
    return int(found[counts.argmax()]) if counts.max() > 0.9 * len(codes) else None


def _sorted(found: Iterable[Scored]) -> Ranking:
    return tuple(sorted(found, key=lambda scored: scored.rank))


def _left_and_rank(one: Hypothesis) -> tuple[int, bool, float]:
    return one.remaining, *one.rank
