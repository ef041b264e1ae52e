"""The numbers of a dissection in one place: how many questions, how much time, how many starts.

They were chosen; only the whole set was measured: with it, 89 of 90 randomly altered units were found
exactly, in a median of 7.3 CPU seconds (seeds 91000 to 91089).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class QuestionPolicy:
    """How many questions the box gets. A share of n is one question in n of the budget.

    Attributes:
        smallest: the smallest budget: enough to check that answers repeat, and for some questions of each
            kind to make a candidate from and to check it with.
        few: with a smaller budget a round may have one question of each kind, aimed at one unit in turn, and
            at most the share `masks` are masks.
        kept_back: share reserved until after the first evidence is collected, which may refute the candidate.
        in_turns: share reserved for switching between modes.
        first: of each kind before the first candidate; at most the share `first_share` goes to one kind.
        simple: for each number of terms and kind; at most the share `simple_share`.
        wrong_again: of those that a candidate gets wrong, repeated once before it is changed for them,
            together with `early_again` of the first questions.
        early: first questions that show, after a changed answer, whether all answers have changed.
        last_again: first questions that are repeated at the end.
        resumed: of a resumed dissection that are repeated, to check that the box is still the same.
        growth: of each kind in the successive rounds of checking; the last entry holds for all later rounds.
        last: of each kind in one round once the budget left is less than three such rounds.
        least: of each kind, below which a round is not started.
        aims: targets of one round for each kind: the formats, the candidate, another unit.
        wider: bits by which the alignments of such a target are wider than the candidate's, in turn. Bits
            that a unit keeps below the candidate's last bit show only on operands that have bits there, and
            operands aimed at the candidate have none.
        codes_from, codes: the first round with operands made of unused codes; parts of a round they fill.
        counterexamples: of one kind, that join the bank in one round.
        checked: products in all questions of the rounds up to which these questions are recorded. Fits do not
            read them, but a candidate that is wrong on one is rejected, and a rival that they refute is not
            reported as undecided.
        shrunk: counterexamples that are shrunk in one round; `shrinking`: questions in one batch for that;
            `shrunk_kept`: of each of the last batches, those that join the bank.
        clean: rounds without a counterexample before a candidate is separated from its rivals, because a
            round costs less than that. One round is enough when few questions are left.
        separating: operands of each kind that are drawn to separate rivals, the first and the second time.
            Most rivals answer every drawn operand as the candidate does, so the cost is the time to run them.
    """

    smallest: int = 500
    few: int = 8_000
    masks: int = 4
    kept_back: int = 6
    in_turns: int = 16
    first: int = 96
    first_share: int = 83
    simple: int = 20
    simple_share: int = 800
    wrong_again: int = 48
    early_again: int = 16
    early: int = 256
    last_again: int = 64
    resumed: int = 512
    growth: tuple[int, ...] = (64, 256, 1024, 2048)
    last: int = 48
    least: int = 4
    aims: int = 3
    wider: tuple[int, ...] = (8, 2, 16, 4)
    codes_from: int = 2
    codes: int = 4
    counterexamples: int = 24
    checked: int = 1 << 22
    shrunk: int = 3
    shrinking: int = 192
    shrunk_kept: int = 64
    clean: int = 3
    separating: tuple[int, ...] = (1000, 1000)


@dataclass(frozen=True)
class TimePolicy:
    """How the seconds of a dissection are spent. A part is a fraction of the time left.

    Attributes:
        answers: part that a slow box may take to answer; the rest is for fits.
        fits: part that fits may take; the rest is for checking.
        sharers: a start gets at most one in this many parts while others wait; the best ones continue later.
        quick: the same when all starts are compared quickly.
        orders: seconds to look for other orders of the sum.
        separating: seconds to separate rivals; `ruling_out`: to search recorded questions that refute them.
        neighbours: seconds to compare the neighbours of the result with the questions; `simplifying`: to
            simplify the questions that refute them; `forced`: to simplify those that forced the changes.
        least: seconds below which a round is not started.
    """

    answers: float = 0.6
    fits: float = 0.6
    sharers: int = 3
    quick: int = 6
    orders: float = 2.0
    separating: float = 4.0
    ruling_out: float = 2.5
    neighbours: float = 5.0
    simplifying: float = 3.0
    forced: float = 0.5
    least: float = 1.0


@dataclass(frozen=True)
class StartPolicy:
    """Which starts are fitted, and when others are tried. Distances are one wrong answer in n questions.

    Attributes:
        fits: starts that are fitted; `first`: how many of them before the questions with few terms are used.
        halved: starts that each take a few changes; `halved_fits`: how many of them are then fitted.
        others: other orders that are fitted when no change of a key explains a counterexample.
        far: a candidate farther than this has another order of the sum rather than two wrong keys: other
            orders are tried first.
        near: a start that is nearer continues at once.
        handful: wrong answers that are too few to show what a candidate lacks.
    """

    fits: int = 6
    first: int = 2
    halved: int = 16
    halved_fits: int = 4
    others: int = 3
    far: int = 50
    near: int = 100
    handful: int = 8


@dataclass(frozen=True)
class FitPolicy:
    """What one fit compares on how many questions.

    Attributes:
        ranking: part of the time left in which changes are ranked on a sample; in the rest the best ones are
            counted on all questions.
        sample: questions in each half of a sample, those that the candidate gets wrong and those it gets
            right; `glance`: of these the first that are tried; `part`: questions in each part of the
            remaining bank, which a change has to pass one after the other.
        confirmed: changes that are compared with the whole bank: the best on a sample; `alike`: at most, if
            they rank equally, because one counterexample is explained by many changes that are wrong
            elsewhere.
        extra: changes that are tried together with the best one; `of_a_key`: how many may belong to one key.
        causes: entries that are added in a row to the table of NaN causes.
        far: a candidate wrong on more than one question in 8 is first fitted to those with few terms.
        apart: a candidate wrong on more than one question in 50 is changed in one key or two at once.
        few: ordinary questions on which all skeletons are ranked.
        ranked: skeletons that align, and others, that are compared with all ordinary questions.
        fitted: ranked skeletons whose widths and roundings are fitted.
        near: starts are near each other if they differ on fewer than one question in 200.
        halvings: rounds in which starts are halved; `coarse`: questions of each sample for that; `left`: the
            least number of starts left.
    """

    ranking: float = 0.75
    sample: int = 224
    glance: int = 48
    part: int = 1024
    confirmed: int = 6
    alike: int = 96
    extra: int = 40
    of_a_key: int = 6
    causes: int = 12
    far: int = 8
    apart: int = 50
    few: int = 160
    ranked: int = 40
    fitted: int = 10
    near: int = 200
    halvings: int = 4
    coarse: int = 96
    left: int = 4


@dataclass(frozen=True)
class RivalPolicy:
    """How programs that answer all questions alike are separated.

    Attributes:
        each: queries for one rival; `enough`: queries for other rivals that already distinguish it.
        parts: shares (1/n) of the operands on which a rival is run, one after the other, until some
            distinguish it.
        among_zeros, at_ends: multiples of the usual count of operands: among zeros; near overflow and between
            links.
        values: values of one key for which operands are aimed; least exponents have no limit.
        scaled: operands at the floor of either program for units with scales, which reach it in few places.
        listed: starts, varied by shape, from which other orders are taken; `orders`: other orders tried.
    """

    each: int = 8
    enough: int = 4
    parts: tuple[int, ...] = (16, 4, 1)
    among_zeros: int = 12
    at_ends: int = 4
    values: int = 8
    scaled: int = 128
    listed: int = 200
    orders: int = 24


@dataclass(frozen=True)
class RecordingPolicy:
    """The search in a recording, which cannot be queried: a part is held back to check what the rest shows.

    Attributes:
        used: dot products that the search sees first, at most; `used_share`: as a part of all.
        counterexamples: of the held-back part, that join the search at a time; `rounds`: how often.
        starts: catalogued programs that are fitted; `orders`: ranked orders of the sum.
        weighing: seconds for the evidence; `rivals`: seconds for the rivals.
        compared: operands on which a rival is compared with the candidate.
        values: values of single keys for which distinguishing operands are searched; `of_one_key`: for one
            key.
    """

    used: int = 6_000
    used_share: float = 0.6
    counterexamples: int = 400
    rounds: int = 8
    starts: int = 4
    orders: int = 6
    weighing: float = 10.0
    rivals: float = 20.0
    compared: int = 20_000
    values: int = 24
    of_one_key: int = 1


QUESTIONS = QuestionPolicy()
TIMES = TimePolicy()
STARTS = StartPolicy()
FITS = FitPolicy()
RIVALS = RivalPolicy()
RECORDINGS = RecordingPolicy()
