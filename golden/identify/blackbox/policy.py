"""The numbers of a dissection in one place: what each counts, in which unit, and why this much."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchPolicy:
    """How many questions, how many starts and how many seconds each stage of a search takes.

    Fields that end in `_share` say "at most one of so many questions": of few each stage takes its part.
    Fields that end in `_seconds` limit one stage, which takes a quarter of the time that is left at most.
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
    """Templates that take one change each, and the better half one more, where the first ones explain too
    little."""
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
    """Products in questions of all rounds that are kept: no candidate stays that is wrong on one of them."""

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

    # Fits
    sample: int = 224
    """Questions of each half of a sample: those that a candidate is wrong on, and right on."""
    glance: int = 48
    """Of those that are wrong, looked at first: most changes explain none of them."""
    part: int = 1024
    """All others, in parts: a change that fails on one part is not held against the next."""
    confirmed: int = 6
    """Changes, the best on a sample, that are held against the whole bank."""
    confirmed_alike: int = 96
    """Of those that are alike on a sample more: many a change explains one counterexample."""
    pairs_first: int = 40
    """First ones of two changes that are made together."""
    helping: int = 40
    """Changes that are tried together with the best one."""
    helping_of_key: int = 6
    """Of those of one key: any number of its values can be about as good."""
    restarts: int = 24
    """Pairs of keys that are given up together."""
    causes: int = 12
    """Entries of a table of causes of NaNs that are found in a row."""
    far_from_few_terms: int = 8
    """Wrong on more than one of so many questions, a candidate is fitted to few terms first."""

    # Ranking
    halving_rounds: int = 4
    """Rounds in which starts are halved."""
    halving_sample: int = 96
    """Questions of each sample for that."""
    halving_least: int = 4
    """Starts that are left at least."""
    fitted_widths: int = 10
    """Templates whose widths are fitted."""
    ranked_on: int = 256
    """Ordinary questions on which roundings of templates are compared."""
    first_ranked_on: int = 160
    """Those on which all templates are, of which there are thousands."""
    ranked: int = 40
    """Templates that align, and others, that are held against all ordinary questions."""
    own_roundings: int = 4
    """Steps of a template that are rounded each its own way, at most."""
    sticky_far: int = 8
    """Wrong on more than one of so many questions, sticky bits are tried with widths."""
    guessed_widths: tuple[int, ...] = (11, 17, 23, 29, 35, 41)
    """Fraction bits of alignments to begin with: those between them are near one."""
    more_bits: int = 5
    """Fraction bits more that are tried: some too many decide fewer results than one too few."""
    ranked_near: int = 200
    """Starts are near each other that are apart by less than one in so many questions."""
    few_term_shapes: int = 6
    """Shapes that are fitted to one product and c."""
    few_term_kept: int = 3
    """Of those, how many say what the ends of other templates are."""
    few_term_seconds: float = 1.0
    """For each of them."""
    few_term_compared: int = 160
    """Questions with all terms on which templates with those ends are compared."""

    # Questions that discriminate
    scaled_floors: int = 128
    """Operands at the floor of units with scales, which have one at few places."""
    few_term_factor: int = 12
    """Times as many operands with two products alone."""
    special_factor: int = 4
    """Times as many near overflow, that vanish, and between links."""
    aimed_values: int = 8
    """Values of one key that have operands aimed at them; of least exponents all have."""
    asked_of_rival: int = 8
    """Questions for one rival."""
    enough_of_rival: int = 4
    """Of those for others that are enough for it, too."""
    pool_parts: tuple[int, ...] = (16, 4, 1)
    """Shares of operands that a rival is held against in turns, until some tell it apart."""
    wider_bits: tuple[int, ...] = (6, 8)
    """Fraction bits by which alignments are wider that a candidate is told apart from."""
    of_orders: int = 4
    """Of the operands for the candidate, one of so many for another order."""
    plainer_seconds: float = 2.0
    """To fit a candidate without one of its keys."""
    plainer: int = 4
    """Programs with other keys that are told apart."""
    listed_orders: int = 200
    """Starts of which those of each shape come first."""
    other_orders: int = 24
    """Other orders that are looked at."""
    order_seconds: float = 0.5
    """To fit each."""
    order_far: int = 50
    """Wrong on more than one in so many questions, an order is no rival."""

    # Whether answers repeat
    repeated: int = 16
    """Questions of each kind."""
    repeated_share: int = 600
    repeated_alone: int = 2
    """Questions that are asked alone."""
    repeated_few: int = 10
    """Those in the first batches, by whose times the others are planned."""
    copies: int = 64
    """Places of a batch that one question of some kinds is asked at."""
    copies_share: int = 20
    repeated_part: int = 4
    """One of so many questions at most is asked here at all."""
    tiles: int = 4
    """Tiles of some kinds that one question fills."""
    in_a_row: int = 64
    """Times that a question is asked alone."""
    longest_period: int = 32
    """The longest period that repeats often enough in those to be one."""
    asked_before: int = 8
    """Questions that it is asked after."""
    cause_turns: int = 2
    """How often after each."""
    batch_alike: int = 512
    """Places of a batch of nothing else, at most."""
    drift_share: int = 20
    """Where one in so many early questions has another answer or more, it is no accident."""

    # Recordings
    recorded_used: int = 6_000
    """Recorded dot products that the search sees at first."""
    recorded_used_share: float = 0.6
    """Of all that were recorded; the rest is held back."""
    recorded_counterexamples: int = 400
    """Of the part that was held back that join the search at a time."""
    recorded_starts: int = 4
    """Programs of the catalogue that are fitted."""
    recorded_orders: int = 6
    """Templates that are."""
    recorded_rounds: int = 8
    """Rounds of counterexamples."""
    recorded_evidence_seconds: float = 10.0
    """To hold each neighbour against the recording."""
    recorded_rivals_seconds: float = 20.0
    """To look for operands that tell rivals apart."""
    recorded_rival_trials: int = 20_000
    """Dot products that are tried for one rival."""
    recorded_values: int = 24
    """Values of single keys for which operands are looked for."""
    recorded_values_of_key: int = 1
    """Of those of one key."""

    # Bits that are not read
    unread_share: int = 16
    unread_share_of_time: int = 20
    """One of so many seconds at most is for them."""
    unread_questions: int = 400
    """Questions in which bits are turned before they are called unread."""
    unread_bit_share: int = 64
    unread_least_asks: int = 8_000
    """With fewer questions than these no bits are asked about."""
    unread_for_rate: int = 2
    """Questions that show how long an answer takes."""
    unread_at_once: int = 16
    """Places of an operand that are asked about at once, after the first two."""
    unread_seen: float = 0.05
    """The share of the questions whose answers the lowest bit that is read has to change: those below it
    would have shown, too."""

    # Masks
    mask_highest: int = 60
    """Exponent of M, where the formats reach farther."""
    mask_widest: int = 120
    """Binades between M and y."""
    mask_pairs: int = 9000
    """Of more pairs of terms not all are asked: 95 terms have so many."""
    mask_checked: int = 1000
    """Pairs that are asked to check a tree then."""
    mask_checked_share: int = 16
    mask_kept: int = 300
    """Masks that stay to be fitted to: they are much alike."""


POLICY = SearchPolicy()
