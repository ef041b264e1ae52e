"""Queries that distinguish a candidate from its rivals: other programs that answer all questions so far
alike.

Rivals are its neighbours, one key away. Many operands are drawn and run through both programs; only operands
with two different answers are worth a query.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import pairwise, takewhile

import numpy as np

from golden import stimuli
from golden.circuit.words import CircuitError
from golden.identify.blackbox import fitting, starting_points
from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.moves import Hints, Move
from golden.identify.blackbox.neighbourhood import single_changes
from golden.identify.blackbox.policy import RIVALS
from golden.identify.blackbox.questions import among_zeros, near_overflow
from golden.identify.sample import joined, picked
from golden.model.instruction import Instruction
from golden.model.trials import Trials
from golden.number.frozen import replace
from golden.number.rounding import ROUNDINGS
from golden.program.bounds import Bounds, Registers, either, follow, maximum_of, operands_of
from golden.program.program import Operation
from golden.program.signature import Operands, Signature
from golden.program.steps import Additions, Align, Normalize, Round, SpecialValues, Step, Sum, rounding_of
from golden.proof.equality import provable, prove
from golden.proof.sweep import PROVED

Rng = Callable[..., np.random.Generator]
_FLOORS = ("floor", "min_exponent")
_MAXIMUM = ": maximum"
TIES = "beside_tie"
_CAUSES = ": nans"
_ENDS = (
    *("alignment_edge", "alignment_one_term", "subnormal_result", "tie", "half_ulp", "subnormal"),
    *("deep_cancellation", "cancelled_groups", "near_overflow", "special_each", TIES),
)
_AIMS: dict[str | tuple[str, ...], dict[str, int]] = {
    # Few operands reach a least exponent.
    _FLOORS: {"floor_edge": 256, "tiny_zero_c": 48, "subnormal_result": 48, TIES: 256},
    # In one dissection none of 148,695 questions distinguished tiny before and after rounding without c.
    ": tiny": {"beside_least": 512, "subnormal_result": 48},
    # One bit of terms far below the others decides a tie, or shows after cancellation.
    (": window", ": spared"): {**dict.fromkeys(_ENDS, 24), TIES: 4096, "cancelling": 4096},
    # The priority of causes of NaNs shows only where two of them meet.
    (": nan", _CAUSES): {"special_values": 2048, "special_pairs": 256, "special_each": 48},
    "": dict.fromkeys(_ENDS, 24),
}
"""Kinds of operands that distinguish values of keys with these endings, and how many of each."""
_AMONG_ZEROS = ("special_values", "subnormal_product", "subnormal", "subnormal_result")
"""Kinds that are also drawn with two products alone."""
_ALIGN = "align of "
_LINKS = "between_links"


def is_extra(key: str) -> bool:
    """Whether a change adds what few units have, rather than another value of what every unit has."""
    return key.endswith(("spared", "window", "floor", "min_exponent", "rounding of sum")) or ":" not in key


def neighbours(candidate: Candidate, words: tuple[int, ...], causes: bool = False) -> list[Move]:
    """Single changes of a candidate: all floors of exponents, other keys near their present values.

    Args:
        words: NaNs that the box answered.
        causes: also tables of causes of NaNs with one more entry.
    """
    wide = _FLOORS + (_CAUSES,) * causes
    floors = [m for m in single_changes(candidate, Hints(words, faults=False)) if m.key.endswith(wide)]
    return [*floors, *single_changes(candidate, Hints(words, wide=False, faults=False))]


def equivalent_neighbours(
    candidate: Candidate, bank: Bank, changes: Iterable[Move], deadline: float
) -> list[tuple[str, Candidate]]:
    """Neighbours that answer the whole bank correctly, with the key that they change. Least exponents, and
    what every unit has, come before what few units have, because the time may end."""
    ordered = sorted(changes, key=lambda one: is_extra(one.key) and not one.key.endswith(_FLOORS))
    made = ((move.key, move.apply(candidate)) for move in ordered)
    within = takewhile(lambda _: time.monotonic() < deadline, made)
    return [(key, new) for key, new in within if new is not None and bank.explained(new.program)]


def distinguishable_rivals(
    candidate: Candidate, rivals: Iterable[tuple[str, Candidate]]
) -> list[tuple[str, Candidate]]:
    """Rivals that can differ from a candidate as far as bounds of registers show, one for each canonical
    form. Without this the questions about rivals take three times as long."""
    seen = {canonical_form(candidate)}
    found = []
    for key, one in rivals:
        now = canonical_form(one)
        if now not in seen:
            seen.add(now)
            found.append((key, one))
    return found


def other_starts(
    candidate: Candidate, ranked: Iterable[fitting.Fit], bank: Bank, deadline: float
) -> list[fitting.Fit]:
    """Skeletons of other orders, unchanged or with the steps of the candidate that they share or that stand
    in the same place, the best first. All of them are also tried with their own alignment: a candidate that
    explained the earlier questions may express them differently and be far from what explains the new
    ones."""
    seen, found = set[str](), list[fitting.Fit]()
    for one in (fit.candidate for fit in fitting.various(ranked, RIVALS.listed)):
        if time.monotonic() > deadline or len(seen) > RIVALS.orders:
            break
        if one.order not in seen:
            seen.add(one.order)
            starts = _starts(one, candidate)
            if starts:
                made = (fitting.Fit(new, fitting.wrong_of(bank, new)) for new in starts)
                found.append(min(made, key=lambda fit: fit.wrong))
    return sorted(found, key=lambda fit: fit.wrong)


def _starts(one: Candidate, candidate: Candidate) -> list[Candidate]:
    """A skeleton unchanged and with steps of a candidate; for the candidate's own order, with other
    alignments."""
    found = [_with_steps_of(one, candidate, aligned=False)]
    alike = len({o.steps for o in candidate.operations}) == 1
    if one.order != candidate.order:
        found += [_with_steps_of(one, candidate), one]
        found += starting_points.with_ends(one, candidate) if alike else ()
    return [new for new in found if new is not None and new.operations != candidate.operations]


def _with_steps_of(one: Candidate, other: Candidate, aligned: bool = True) -> Candidate | None:
    """A candidate with the steps of another one that have the same registers. Groups stay; without `aligned`,
    so do the alignment exponent and its rounding."""
    known = {(type(s), s.of, s.to): s for o in other.operations for s in o.steps}

    def changed(step: Step) -> Step:
        found = known.get((type(step), step.of, step.to), step)
        if isinstance(step, Align) and isinstance(found, Align) and not aligned:
            found = replace(found, maximum=step.maximum, floor=step.floor, rounding=step.rounding)
        if isinstance(step, Align | Sum) and isinstance(found, Align | Sum):
            return replace(found, group=step.group)
        return found

    return one.with_each_step(changed)


def questions(
    candidate: Candidate, rivals: list[tuple[str, Candidate]], each: int, rng: Rng, deadline: float
) -> Operands | None:
    """Operands (n, ...) that the candidate and its rivals answer differently; None if none was drawn.

    Args:
        rivals: with the key that each changes; operands are also aimed at each rival.
        each: operands of each kind that are aimed at the candidate.
        rng: of some numbers, which name its purpose.
    """
    takes, pools = candidate.takes, _pools(candidate, each, rng)
    of_alignments = pools[:1]  # the alignment of terms shows among many terms, if it does among few
    found: list[Operands] = []
    aimed: Counter[str] = Counter()
    for index, (key, rival) in enumerate(rivals):
        if time.monotonic() > deadline:
            break
        # Operands drawn for all rivals come first: they cost nothing more for one that they distinguish.
        chosen = of_alignments if key.startswith(_ALIGN) else pools
        if any(pool.distinguishes(rival, rng(index)) for pool in chosen):
            continue
        # Only a rival that none of them distinguishes gets operands of its own.
        floored = _leasts_as_floors(rival) if key.endswith(_MAXIMUM) else None
        target, key = (rival, key) if floored is None else (floored, _FLOORS[0])
        aimed[key] += 1
        if aimed[key] > RIVALS.values and not key.endswith(_FLOORS):
            continue
        aims = next(counts for ends, counts in _AIMS.items() if key.endswith(ends))
        own = _aimed_at(target, aims, partial(rng, 1000 + index))
        few = among_zeros(takes, own, rng(1000 + index, 1))
        own = joined([own, few, *_at_scaled_floors(key, target, candidate, rng)])
        shown = np.flatnonzero(rival.dot(**own) != candidate.dot(**own))[: RIVALS.each]
        found += [picked(own, shown)] if len(shown) else []
    # Every operand in the result has two different answers, of the candidate and of a rival.
    found += [pool.taken for pool in pools if pool.chosen.any()]
    return joined(found) if found else None


def _pools(candidate: Candidate, each: int, rng: Rng) -> list[_Pool]:
    """Operands of every kind, with many terms, and with few terms, where nothing else contributes."""
    counts = dict.fromkeys(stimuli.KINDS, each) | {_LINKS: RIVALS.at_ends * each}
    drawn = _aimed_at(candidate, counts, partial(rng, 0))
    takes = candidate.takes
    few = _aimed_at(candidate, dict.fromkeys(_AMONG_ZEROS, RIVALS.among_zeros * each), partial(rng, 1))
    few = among_zeros(takes, few, rng(1, 1))
    over = _aimed_at(candidate, {"near_overflow": RIVALS.at_ends * each}, partial(rng, 1, 2))
    few = joined([few, near_overflow(takes, over, rng(1, 3))])
    return [_Pool(candidate, one, rng(1, 5, place)) for place, one in enumerate((drawn, few))]


def by_solver(
    candidate: Candidate, rivals: Iterable[Instruction], seconds: float
) -> tuple[Operands | None, set[Instruction]]:
    """Operands (n, ...) of a solver (golden/proof) for which a candidate differs from programs which no drawn
    operands separated from it, None if it finds none; and the programs that are proved to be equal to it for
    all operands.

    Args:
        rivals: those that matter most come first: each gets an equal share of the seconds that are left.
    """
    end, left, equal = time.monotonic() + seconds, list(rivals), set[Instruction]()
    if not provable():
        return None, equal
    found: Operands | None = None
    for place, rival in enumerate(left):
        if found is not None and (rival.dot(**found) != candidate.dot(**found)).any():
            continue  # what separates one often separates its neighbours
        share = (end - time.monotonic()) / (len(left) - place)
        if share <= 0:
            break
        try:
            proved = prove(candidate.instruction, rival, share)
        except CircuitError:  # nothing can be said of it
            continue
        if proved.outcome.verdict == PROVED:
            equal.add(rival)
        if proved.operands is not None:
            batch = picked(proved.operands, None)
            found = batch if found is None else joined([found, batch])
    return found, equal


class _Pool:
    """Operands that were drawn for a candidate, and the selection that is worth a query."""

    def __init__(self, candidate: Candidate, operands: Operands, rng: np.random.Generator) -> None:
        count = len(operands["a"])
        mixed = rng.permutation(count)
        self.operands = picked(operands, mixed)
        ends = sorted({count // share for share in RIVALS.parts})
        self.parts = [slice(start, end) for start, end in pairwise((0, *ends))]
        self.trials = [Trials(candidate.takes, picked(self.operands, part)) for part in self.parts]
        self.answers = [trials.answers(candidate.program).copy() for trials in self.trials]
        self.chosen = np.zeros(count, bool)

    def distinguishes(self, rival: Candidate, rng: np.random.Generator) -> bool:
        """Whether a rival answers any of them differently; then some of these are selected. A rival that a
        few operands distinguish is not run on all."""
        differing = known = 0
        for part, trials, answers in zip(self.parts, self.trials, self.answers, strict=True):
            some = np.flatnonzero(trials.answers(rival.program) != answers)
            chosen = self.chosen[part]
            differing, known = differing + len(some), known + int(chosen[some].sum())
            if known < RIVALS.enough:
                chosen[rng.permutation(some)[: RIVALS.each]] = True
            if differing >= RIVALS.each:
                break
        return bool(differing)

    @property
    def taken(self) -> Operands:
        """The operands that were selected."""
        return picked(self.operands, self.chosen)


def _aimed_at(target: Candidate, counts: dict[str, int], rng: Rng) -> Operands:
    """Operands that are aimed at a candidate, with a count for each kind."""
    return joined(
        [
            stimuli.generate(target.instruction, kind, count, rng(place))
            for place, (kind, count) in enumerate(counts.items())
        ]
    )


def _at_scaled_floors(key: str, target: Candidate, candidate: Candidate, rng: Rng) -> Iterator[Operands]:
    """Queries between the floors of two units with scales, aimed at either floor."""
    for place, one in enumerate((target, candidate) if key.endswith(_FLOORS) else ()):
        if one.instruction.scale_block is not None:
            yield stimuli.generate(one.instruction, "floor_edge", RIVALS.scaled, rng(2000, place))


def _leasts_as_floors(one: Candidate) -> Candidate | None:
    """A candidate with the least values of its alignment exponents turned into floors, because operands are
    aimed at floors. None if there is no least value."""

    def floored(step: Step) -> Step:
        if not isinstance(step, Align):
            return step
        leasts = [m.least + m.plus for m in step.maximum if m.least is not None]
        return replace(step, maximum=(), floor=max(leasts)) if leasts else step

    found = one.with_each_step(floored)
    return None if found is None or found.key == one.key else found


# Canonical forms --------------------------------------------------------------------------------------------

# Two programs with equal forms answer every question alike, so no query can distinguish them.


def canonical_form(one: Candidate) -> tuple[Operation, ...]:
    """The operations of a candidate without the keys that make no difference according to the bounds of
    registers, such as a floor below every exponent, or a window that drops what is cut anyway. Programs with
    different forms may still be alike."""
    done: dict[tuple[object, ...], tuple[Step, ...]] = {}
    found = []
    for operation in one.operations:
        alike = (operation.steps, len(operation.k_index), len(operation.addends))
        key = (*alike, operation.seed_format, operation.out_format, operation.operand_format)
        if key not in done:
            done[key] = _steps(operation, one.takes)
        found.append(operation.with_steps(done[key]).arithmetic)
    return tuple(found)


def _steps(operation: Operation, takes: Signature) -> tuple[Step, ...]:
    registers = operands_of(operation, takes.formats)
    if any(isinstance(step, Align) and _has_faults(step) for step in operation.steps):
        return operation.steps
    found: list[Step] = []
    for place, step in enumerate(operation.steps):
        rest = operation.steps[place + 1 :]
        if isinstance(step, Align):
            found.append(_aligned(step, registers, _value_alone(step.of, rest)))
        else:
            found.append(_summed(step, rest) if isinstance(step, Sum) else step)
        registers = registers | follow(step, registers)  # the bounds of the step as it was hold for both
    return tuple(found)


def _has_faults(step: Align) -> bool:
    """Whether an alignment keeps what is cut, or has keys that the rules here do not cover."""
    return bool(step.cut != "dropped" or step.zeros != "ignored" or step.left_out) or not (
        step.shift_limit is None and step.sticky_gap == 0
    )


def _aligned(step: Align, registers: Registers, value_alone: bool) -> Align:
    """value_alone: whether later steps read only the value of what is aligned, not its exponent."""
    whole = reduce(either, (registers[name] for name in step.of))
    least, _ = maximum_of(replace(step, floor=None), registers)
    # An exponent up to this one cuts nothing, whatever it is.
    uncut = whole.lsb + min(bits for _, bits in step.fraction_bits) if value_alone else least
    floor = step.floor
    if floor is not None and floor <= max(least, uncut):
        floor = None  # it is the largest exponent nowhere, or nothing is cut where it is
    reach = maximum_of(step, registers)
    return replace(
        step,
        floor=floor,
        spared=_spared(step, reach),
        window=tuple(
            (name, n)
            for name, n in step.window
            if not _cut_anyway(step, registers[name], name, n) and n < reach[1] - registers[name].low
        ),
    )


def _spared(step: Align, reach: tuple[int, int]) -> tuple[tuple[str, int], ...]:
    """The spared bits, limited by where the last kept bit can be. A number below that bit is cut to zero
    anyway if all numbers are cut towards zero."""
    if step.rounding == "toward_zero":
        return ()
    bits, (least, most) = dict(step.fraction_bits), reach
    clamped = ((name, max(n, least - bits[name] - 1)) for name, n in step.spared)
    return tuple((name, n) for name, n in clamped if n < most - bits[name])


def _cut_anyway(step: Align, own: Bounds, name: str, window: int) -> bool:
    """Whether all that a window drops lies below the last kept bit, and is cut to zero there."""
    below = window + 1 - own.integer_bits - dict(step.fraction_bits)[name]  # at least this many places below
    rounding = rounding_of(step, name)
    return (rounding == "toward_zero" and below >= 0) or (ROUNDINGS[rounding].nearest and below >= 1)


def _value_alone(names: Sequence[str], rest: Sequence[Step]) -> bool:
    """Whether later steps read only the value of registers, and not the exponents that an alignment sees."""
    shown = set(names)
    for step in rest:
        read = shown & set(step.of)
        if isinstance(step, SpecialValues) or not read:
            continue
        if isinstance(step, Sum):
            if step.complement != "none" or step.width is not None:
                return False
            shown.add(step.to)
        elif isinstance(step, Additions) and step.format is not None and step.format.is_float:
            shown.add(step.to)  # of one term alone, it is handed on as it is
        elif not isinstance(step, Round | Normalize):
            return False
    return True


def _summed(step: Sum, rest: Sequence[Step]) -> Sum:
    """The rounding of an exact sum is only the sign of a zero."""
    read = [one for one in rest if step.to in one.of]
    dropped = all(
        isinstance(one, Normalize) or (isinstance(one, Round) and one.zero == "positive") for one in read
    )
    plain = step.rounding != "down" or (dropped and bool(read))
    return replace(step, rounding="toward_zero" if plain else step.rounding)
