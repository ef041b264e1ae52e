"""The numbers of a dissection in one place: what each counts, in which unit, and why this much."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchPolicy:
    """How many questions, how many starts and how many seconds each stage of a search takes.

    Fields that end in `_share` say "at most one of so many": of few questions each stage takes its part.
    `_seconds` are limits of one stage, of which each takes a quarter of the time that is left at most.
    """

    # Questions before the first candidate
    least_asks: int = 500
    """Questions that a dissection may ask at least: some to see that answers repeat, some of each kind."""
    few_asks: int = 8_000
    """Of fewer questions one of each kind is worth a round, and it is aimed at one unit in turns."""
    first_of_kind: int = 96
    """Questions of each kind of stimuli."""
    first_of_kind_share: int = 83
    masks_share: int = 4
    few_terms: int = 20
    """Questions of each number of terms and kind."""
    few_terms_share: int = 800
    zero_c: int = 24
    """Questions of each kind with c = +0, and as many with -0."""
    zero_c_share: int = 333

    # Answers that are asked for again
    wrong_again: int = 48
    """Questions a candidate is wrong on: before it is changed for them, the box answers them once more."""
    early_again: int = 16
    """Of the first questions, as many with them: the box may have changed since."""
    all_early: int = 256
    """Of the first questions, where one answer has changed: whether all have."""
    last_again: int = 64
    """Of the first questions in the end."""
    resumed_again: int = 512
    """Questions of a dissection that is continued."""

    # Starts
    starts: int = 6
    """Templates of the sum that are fitted to the full."""
    first_starts: int = 2
    """Templates that are fitted before what few terms show is asked for: mostly one of them is right."""
    halved: int = 16
    """Templates that take one change each, the better half one more, where the first ones explain too
    little; half as many stay as 2^rounds leave."""
    fitted_of_halved: int = 4

    # Fits
    fits_share_of_time: float = 0.6
    """Of the time that is left; the rest is for checking."""
    sharers: int = 3
    """One start takes a third of the time that is left at most while others wait."""
    quick_sharers: int = 6
    """The same where all starts are to be compared soon; the best go on later."""
    hopeless: int = 8
    """A start that is wrong on more than one of so many questions is left where another one is near."""
    near: int = 100
    """A candidate that is wrong on fewer than one of so many questions is near the unit."""
    far: int = 50
    """Wrong on more than one of so many, a candidate adds in another order: more effort does not help it."""
    handful: int = 8
    """Wrong questions that say little of what a candidate lacks: more are asked before it is fitted."""

    # Rounds of checking
    first_round: int = 64
    """Questions of each kind in the first round; four times as many in each round that follows."""
    largest_round: int = 2048
    last_round: int = 48
    """Questions of each kind that are asked at once where no more are left for a third of them."""
    least_round: int = 4
    """Questions of each kind that make a round worth its while."""
    aims: int = 3
    """Draws of each kind in a round: from the formats, at the candidate, and at another unit."""
    wider: tuple[int, ...] = (8, 2, 16, 4)
    """Bits more of alignments that operands are aimed at in turns: what a unit keeps below the last bit of a
    candidate shows where operands have bits there."""
    kept_back: int = 6
    """One of so many questions is for after the first report: what that shows is asked, too."""
    codes_from: int = 2
    """Rounds after which codes are asked that no question had yet."""
    codes_parts: int = 4
    """Parts of a round that are made of such codes; a round has one for each kind and aim."""
    in_turns_share: int = 16
    """One of so many questions is kept for the modes of a unit in turns."""
    counterexamples: int = 24
    """Of one kind in one round that join the bank."""
    shrunk: int = 3
    """Counterexamples of one round that are made simpler."""
    shrink_asks: int = 192
    """Questions at once for that."""
    checked_products: int = 1 << 22
    """Products in questions of all rounds that are kept, 100 MB at most: no candidate stays that is wrong on
    one of them."""

    # Discriminating between candidates that explain all answers
    clean_rounds: int = 3
    """Rounds that find nothing wrong before rivals are told apart: rounds cost less."""
    drawn_for_rivals: tuple[int, ...] = (1000, 1000)
    """Operands of each kind that are drawn to tell rivals apart, the first time and the second."""

    # Time
    answers_share_of_time: float = 0.6
    """Of the time that is left: so much a slow box may take to answer; the rest is for fits."""
    reserve_seconds: float = 1.0
    """Least time for the end of a search; a tenth of all it is otherwise."""
    rivals_seconds: float = 4.0
    orders_seconds: float = 1.0
    """To look for other orders of the sum that explain all answers, too."""
    ruling_out_seconds: float = 2.5
    """To look through questions of all rounds for those that rule a neighbour out."""
    evidence_seconds: float = 5.0
    """To hold each neighbour of what was found against all questions."""
    simpler_seconds: float = 3.0
    """To make the questions simpler that show it."""
    forced_seconds: float = 0.5
    """To make the counterexamples simpler that forced a change."""
    last_seconds: float = 1.0
    """For questions that are asked where no time for fits is left."""


POLICY = SearchPolicy()
