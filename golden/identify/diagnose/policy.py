"""The numbers of the diagnosis in one place: what is tried on how much, and what counts as explained."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchPolicy:
    """The budget of the search for a hypothesis.

    Attributes:
        failing, passing: wrong and right results of the sample on which every hypothesis is scored. The
            numbers are equal: a hypothesis that breaks right results is as bad as one that explains nothing.
        quick: wrong results, and right ones, on which changed signals are tried first: their data path takes
            a hundred times as long as the core.
        passed_on: the best of these that continue to the whole sample; `passed_on_harmless`: the same of the
            ones that break nothing, which may be one fault of several.
        beam: hypotheses that get one more fault; `signal_bases`: the first of these, which are also combined
            with changed signals.
        left: unexplained results of the best hypothesis of which a further fault has to explain some.
        pool: faults that explain some of them, and are combined with the beam.
        depth: the most faults of one hypothesis. Three explain much by chance.
        confirmed: hypotheses of each round that are counted on all results; four times this number if they
            explain the whole sample.
        counterexamples: results that refute a hypothesis and join the sample, of each hypothesis.
        rounds: how often counterexamples may join before the next pass begins.
        few: wrong results below which a change of the program may explain all by chance: signals are tried
            too.
        judged: results on which a changed signal is counted, at most, half of them wrong ones.
        ordered: results below which a shift by one vector explains too much by chance.
        late: vectors by which results are tried to be late or early.
        modes: modes of a unit that get a diagnosis of their own, if that of the first does not explain them.
        shown: hypotheses that are ranked if nothing explains everything.
        named: explanations of every result that the sentence names.
        accepted: share of the wrong results that an accepted hypothesis may leave.
        harmless: the best hypotheses that break no right result, which get one more fault.
    """

    failing: int = 384
    passing: int = 384
    quick: int = 48
    passed_on: int = 40
    passed_on_harmless: int = 20
    beam: int = 14
    signal_bases: int = 6
    left: int = 128
    pool: int = 64
    depth: int = 3
    confirmed: int = 6
    counterexamples: int = 32
    rounds: int = 4
    few: int = 32
    judged: int = 20_000
    ordered: int = 16
    late: int = 4
    modes: int = 3
    shown: int = 8
    named: int = 4
    accepted: float = 0.2
    harmless: int = 8


@dataclass(frozen=True)
class FlagPolicy:
    """The budget of the search for the function of a status flag.

    Attributes:
        signals: rounds of changed signals, each (dot products on which they are tried, how many continue).
        slack: misses that a changed signal may have more than the best one and still continue.
        pairs: dot products on which two faults of a flag are tried first, half of them wrong ones.
        by_class: wrong flags below which a class of results or operands holds them all by chance: there are
            forty classes.
    """

    signals: tuple[tuple[int, int], ...] = ((500, 64), (5000, 32))
    slack: int = 2
    pairs: int = 4000
    by_class: int = 4


@dataclass(frozen=True)
class ConditionPolicy:
    """When a condition on operands and results deserves a sentence.

    Attributes:
        sample: dot products on which conditions are compared; the counts of a reported one cover all.
        together, sentences: conditions that form one sentence, and sentences.
        by_chance: bits of information beyond those needed to choose the condition among all.
        clearly: least ratio of the error rate where a condition holds to the rate elsewhere; `mostly`: the
            least error rate there, if the unit is wrong elsewhere, too.
        share: least share of the remaining wrong answers: a condition on fewer locates only some of them.
        limits: sizes of one quantity that are tried as a limit; `element_limits`: of one element.
        often: share of wrong answers with the same code in one place that makes it a condition.
        codes: such codes of one place.
        fewest: dot products below which a class is ignored.
        common: a class that holds more than this share of all dot products is not reported.
        related: share of wrong results from which a common property deserves a sentence.
    """

    sample: int = 12_000
    together: int = 3
    sentences: int = 3
    by_chance: float = 12.0
    clearly: float = 3.0
    mostly: float = 0.5
    share: float = 0.2
    limits: int = 300
    element_limits: int = 16
    often: float = 0.3
    codes: int = 4
    fewest: int = 24
    common: float = 0.9
    related: float = 0.5


@dataclass(frozen=True)
class RangePolicy:
    """The ranges of mutations with a number: each ends where a fault of usual RTL does.

    Attributes:
        few_k: products of a step up to which each may have a fault of its own; more would take too long.
        swaps: pairs of blocks of k that may be exchanged; with more blocks only neighbours.
        floors: exponent floors that are tried, from the least exponent of d down.
        word: bits of a word above the kept ones: sign, carries and guard bits of usual adders.
        beyond: places beyond twice the kept bits up to which the limit of a shift matters.
        shorter: bits that the word of a product may be too short: its sign and a carry.
        register: places that a register for exact sums may be too short.
        carries: places from the largest exponent up at which the leading one of a sum may be.
        headroom: places above the largest exponent at which the register of a sum may begin.
        extra: places beyond the width of a register, for guard, round, sticky and carry bits.
        unseen: bits above those of an integer result in which an overflow may stay undetected.
    """

    few_k: int = 16
    swaps: int = 64
    floors: int = 18
    word: int = 9
    beyond: int = 8
    shorter: int = 2
    register: int = 16
    carries: int = 5
    headroom: int = 3
    extra: int = 4
    unseen: int = 4


RANGES = RangePolicy()
SEARCH = SearchPolicy()
FLAGS = FlagPolicy()
CONDITIONS = ConditionPolicy()
