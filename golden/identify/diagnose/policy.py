"""The numbers of the diagnosis in one place: what is tried on how much, and what counts as explained."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchPolicy:
    """How the search for a hypothesis spends its time.

    Attributes:
        failing, passing: wrong and right results of the sample on which every hypothesis is scored. As many
            of both: a hypothesis that breaks right results is as bad as one that explains nothing.
        quick: wrong and right results, as many each, on which changed signals are tried first: their data
            path takes a hundred times as long as the core.
        passed_on: of these how many go on to the whole sample: the best ones; `passed_on_harmless`: and of
            those that break nothing, which may be one fault of several.
        beam: hypotheses that get one more fault; `signal_bases`: of these the first, with which changed
            signals are combined, too.
        left: results that the best hypothesis leaves, of which a further fault has to explain some.
        pool: faults that explain some of those, and are combined with the beam.
        depth: faults that one hypothesis may have. Three explain much by chance.
        confirmed: hypotheses of each round that are counted on all results; those that explain the whole
            sample four times as many.
        counterexamples: results that refute a hypothesis and join the sample, of each hypothesis.
        rounds: how often counterexamples may join before the next pass begins.
        few: wrong results below which a change of the program may explain all by chance: signals are tried
            too.
        judged: results on which a changed signal is counted, at most, half of them wrong ones.
        ordered: results below which a shift by one vector explains too much by chance.
        late: vectors by which results are tried to be late or early.
        modes: modes of a unit that are diagnosed by themselves, where what explains the first does not
            explain them.
        shown: hypotheses that are ranked where nothing explains everything.
        said: explanations of every result that the sentence names.
        accepted: share of the wrong results that a hypothesis may leave and still be called what the unit is.
        harmless: hypotheses that break no right result, the best of them, that get one more fault.
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
    said: int = 4
    accepted: float = 0.2
    harmless: int = 8


@dataclass(frozen=True)
class FlagPolicy:
    """How the search for what a status flag is spends its time.

    Attributes:
        signals: rounds of changed signals, each (dot products on which they are tried, how many go on).
        spare: misses that a changed signal may have more than the best one and still go on.
        pairs: dot products on which two faults of a flag are tried first, half of them wrong ones.
        by_class: wrong flags below which a class of results or operands holds them all by chance: there are
            forty classes.
    """

    signals: tuple[tuple[int, int], ...] = ((500, 64), (5000, 32))
    spare: int = 2
    pairs: int = 4000
    by_class: int = 4


@dataclass(frozen=True)
class ConditionPolicy:
    """What makes a condition on operands and results worth a sentence.

    Attributes:
        sample: dot products on which conditions are compared; what is said of one counts all.
        together, sentences: conditions that are said together, and sentences.
        by_chance: bits that a condition has to say beyond those that choose it among all.
        clearly: how many times more often a unit is wrong where a condition holds than elsewhere, at least;
            `mostly`: and how often there, where it is wrong elsewhere, too.
        share: of the wrong answers that are left, at least: a condition on fewer says where some of them are.
        limits: sizes of one quantity that are tried as a limit; `element_limits`: of one element.
        often: share of wrong answers in which one code has to stand to be a condition by itself.
        codes: such codes of one place.
        fewest: dot products below which a class says nothing.
        common: share of all dot products above which it is no news that every wrong one is of a class.
        related: share of wrong results from which what they have in common is worth a sentence.
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
    """How far mutations reach that have a number: each range ends where a fault of usual RTL does.

    Attributes:
        few_k: products of a step of which each may have a fault of its own; of more it takes too long.
        swaps: pairs of blocks of k that may be exchanged; of more blocks only neighbours.
        floors: exponent floors that are tried, from the least exponent of d down.
        word: bits of a word above the kept ones: sign, carries and guard bits of usual adders.
        beyond: places beyond twice the kept bits up to which the limit of a shift matters.
        shorter: bits that the word of a product may be too short: its sign and a carry.
        register: places that a register for exact sums may be too short.
        carries: places from the largest exponent up at which the leading one of a sum may be.
        headroom: places above the largest exponent at which the register of a sum may begin.
        extra: places beyond the width of a register, for guard, round, sticky and carry bits.
        unseen: bits above those of an integer result in which an overflow may go unseen.
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
