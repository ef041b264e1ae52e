"""Fitting: changes a candidate until it answers a bank of questions as the box did.

Each round tries every neighbour of the best candidate on the questions that it gets wrong and on some that it
gets right, takes the best change, and adds all others that still help. If none helps, pairs of changes are
tried.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice, zip_longest

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.identify.blackbox.box import Bank, last_places
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.evidence import NamedChange
from golden.identify.blackbox.joint_keys import SIDES, joint, sticky
from golden.identify.blackbox.moves import Hints, Move
from golden.identify.blackbox.neighbourhood import WIDTHS, in_one_operation, nan_words, single_changes
from golden.identify.blackbox.parts import reordered
from golden.identify.blackbox.policy import FITS
from golden.identify.blackbox.questions import ENOUGH, KINDS
from golden.identify.blackbox.step_changes import replaced_values
from golden.identify.blackbox.sum_order import KIND as MASKS
from golden.identify.search import Pass, Search
from golden.number.formats import Format, Kind, Number
from golden.number.frozen import replace
from golden.number.rounding import MODES, encode_fraction
from golden.program.keys import CUT
from golden.program.program import Operation
from golden.program.steps import Additions, Align, Fma, Multiply, Round, Step, Sum

_SPECIAL = frozenset(("special_values", "special_each", "special_pairs", "corner_pairs"))
_OFTEN, _WORDS = 6, 2
"""Answers that make a word common, and words of one sort that are tried."""
_CAUSES = ": nans"
"""End of the key of the table of NaN causes."""
_MASKS = frozenset((MASKS,))
Progress = Callable[[str, int, int], None]


@dataclass
class Fit:
    """A candidate and how many questions of the bank it gets wrong."""

    candidate: Candidate
    wrong: int
    changes: list[str] = field(default_factory=list)
    """The changes that were taken, in order (`NamedChange`, except those read from a file)."""

    @property
    def steps(self) -> int:
        """How many steps its program has, in all operations."""
        return sum(len(operation.steps) for operation in self.candidate.operations)


def wrong_of(bank: Bank, one: Candidate) -> int:
    """How many questions a candidate gets wrong."""
    return int(bank.wrong(one.program).sum())


@dataclass(frozen=True)
class Sample:
    """Some of the questions that a candidate gets wrong, some that it gets right, and all others."""

    bank: Bank
    missed: Bank
    right: Bank
    others: tuple[npt.NDArray[np.int64], ...]

    def wrong(self, one: Candidate, below: int | None = None) -> int:
        """How many questions a candidate gets wrong. If the missed ones alone show that the count is not
        below `below`, the others are skipped: most changes explain none of them."""
        count = wrong_of(self.missed, one)
        return count if below is not None and count >= below else count + wrong_of(self.right, one)

    def of_all(self, one: Candidate, below: int) -> int:
        """How many of the whole bank a candidate gets wrong, or at least `below`, part by part."""
        count = 0
        for part in (self.missed, self.right, *self._remaining):
            count += wrong_of(part, one)
            if count >= below:
                break
        return count

    @cached_property
    def glance(self) -> Bank:
        """A few of the missed questions: most changes explain none of them."""
        return self.missed.part(np.arange(min(len(self.missed), FITS.glance)))

    @cached_property
    def _remaining(self) -> list[Bank]:
        return [self.bank.part(index) for index in self.others]


def sample_of(
    bank: Bank, one: Candidate, seed: int, most: int = FITS.sample, first: Set[str] = frozenset()
) -> Sample:
    """A sample for a candidate, `most` questions of each; those of the kinds `first` before others."""
    rng = np.random.default_rng(seed)
    wrong, early = bank.wrong(one.program), bank.is_of(first)
    mixed = [
        np.concatenate([rng.permutation(np.flatnonzero(mask & some)) for some in (early, ~early)])
        for mask in (wrong, ~wrong)
    ]
    missed, right = (bank.part(index[:most]) for index in mixed)
    others = [index[most:] for index in mixed]
    parts = [others[0], *np.split(others[1], range(FITS.part, len(others[1]), FITS.part))]
    return Sample(bank, missed, right, tuple(part for part in parts if len(part)))


def rank(bank: Bank, whole: Bank, candidates: Iterable[Candidate], deadline: float) -> list[Fit]:
    """Skeletons ranked by their wrong answers on ordinary operands once their widths and roundings fit, the
    best first; only one if it explains the whole bank unchanged."""
    # 1. Score every skeleton, with the best of its variants, on a few questions. One without errors ends
    # this.
    shuffled = np.random.default_rng(0).permutation(len(bank))
    few = bank.part(shuffled[: FITS.few])
    tried: list[Fit] = []
    for one in _directed(few, candidates, deadline):
        tried.append(Fit(one, wrong_of(few, one)))
        if tried[-1].wrong == 0 and wrong_of(whole, one) == 0:
            return [Fit(one, 0)]
    # 2. Keep the best of both kinds (with and without alignments), so that neither hides the other.
    ordered = sorted(tried, key=lambda fit: fit.wrong)
    best: list[Fit] = []
    for aligns in (False, True):
        best += various((fit for fit in ordered if _aligns(fit.candidate) == aligns), FITS.ranked)
    fits = _sorted(Fit(fit.candidate, wrong_of(bank, fit.candidate)) for fit in best)
    # 3. Fit the widths of the best few. Each list is sorted by wrong answers on `bank`.
    found: list[Fit] = []
    for fit in _both_kinds(fits, FITS.fitted, len(bank) // FITS.near):
        if time.monotonic() > deadline or (found and found[-1].wrong == 0):
            break
        found.append(_widths(bank, fit, Hints(wide=False), deadline))
    return _sorted([*found, *fits])


def halved(bank: Bank, fits: Sequence[Fit], hints: Hints, deadline: float) -> list[Fit]:
    """Ranked starts after a few changes of any key. In each round all remaining starts take one change, and
    the better half continues: a start that is far off as it was made can be near after a change or two."""
    going, done = list(fits), list[Fit]()
    for turn in range(FITS.halvings):
        moved: list[Fit] = []
        # Every start takes one change; then the better half goes on.
        for one in going:
            if not one.wrong or time.monotonic() > deadline:
                moved.append(one)
                continue
            sample = sample_of(bank, one.candidate, turn, FITS.coarse)
            better = _step(sample, one, single_changes(one.candidate, hints), deadline)
            moved.append(better or one)
        moved = _sorted(moved)
        going = moved[: max(len(moved) // 2, FITS.left)]
        done += moved[len(going) :]
    return _sorted([*going, *done])


def rank_again(bank: Bank, more: Iterable[Fit], fits: Iterable[Fit]) -> list[Fit]:
    """Ranked starts of two kinds, the best of the first on the whole bank, as one list."""
    best = [Fit(one.candidate, wrong_of(bank, one.candidate)) for one in various(more, FITS.ranked)]
    own = [Fit(one.candidate, wrong_of(bank, one.candidate), one.changes) for one in fits]
    return _sorted([*best, *own])


def _directed(few: Bank, candidates: Iterable[Candidate], deadline: float) -> Iterator[Candidate]:
    """Skeletons, each followed by its best variant with other roundings if it adds rounded: masks show no
    order of units that round in a direction, and one rounding decides most results."""
    for one in candidates:
        yield one
        if time.monotonic() > deadline:
            continue
        turned = list(_other_ends(one) if _aligns(one) else _other_roundings(one))
        turned += [_cut(one, word) for word in CUT.words] if _aligns(one) and _no_count(few, one) else []
        turned += reordered(one)
        scored = [(wrong_of(few, new), place, new) for place, new in enumerate(turned) if new is not None]
        own = wrong_of(few, one)
        # The check whether a unit can be it takes longer than to run it: the best that can be.
        yield from islice((new for wrong, _, new in sorted(scored) if wrong < own and new.sound), 1)


def _no_count(few: Bank, one: Candidate) -> bool:
    """Whether a skeleton is wrong on most masks. Sticky bits leave more than the small terms in every order
    of the sum, so no order that drops the cut bits is nearer than others."""
    masks = few.of_kinds(_MASKS)
    return wrong_of(masks, one) > len(masks) // 2


def _cut(one: Candidate, word: str) -> Candidate | None:
    """A skeleton whose alignments record in this way whether anything was cut."""
    return one.with_each_step(
        lambda step: replace(step, cut=word) if isinstance(step, Align) else step, checked=False
    )


def _rounding(one: Candidate, mode: str) -> Candidate | None:
    """A candidate that rounds every result this way."""

    def changed(step: Step) -> Step:
        if isinstance(step, Multiply):
            return step if step.format is None else replace(step, rounding=mode)
        return replace(step, rounding=mode) if isinstance(step, Additions | Fma | Round) else step

    return one.with_each_step(changed, checked=False)


def _both_kinds(fits: list[Fit], most: int, near: int) -> list[Fit]:
    """Some of the ranked fits: aligned ones and others in turn, the best of each shape first, because
    programs that agree on most answers can differ on the few that decide. Of fits that differ by fewer than
    `near` questions, which one width can decide, those with fewer steps come first."""
    fits = sorted(fits, key=lambda fit: (fit.wrong // max(near, 1), fit.steps))
    parts = [[fit for fit in fits if _aligns(fit.candidate) == aligns] for aligns in (False, True)]
    mixed = zip_longest(*(various(part, most) for part in parts))
    return sorted(
        [fit for pair in mixed for fit in pair if fit is not None][:most], key=lambda fit: fit.wrong
    )


def _other_ends(one: Candidate) -> Iterator[Candidate | None]:
    """Variants of an aligned skeleton: it truncates its results, or rounds everything to odd; it adds terms
    of the other sign than c in one's complement, with or without truncation; it keeps more bits, because one
    bit too few decides many results and some too many only few; it truncates what it rounds before the
    result; or it adds c in a rounded addition, and only that rounds to one side."""
    # One bit too few decides many results, some too many only few.
    more = 5
    yield widened(one, more)
    yield _rounding(one, "to_odd")
    yield _cut_on_the_way(one)
    yield from (one.with_last(Additions, rounding=mode) for mode in SIDES)
    for cut, complement in ((True, "none"), (False, "c"), (True, "c")):

        def changed(step: Step, last: Step, cut: bool = cut, complement: str = complement) -> Step:
            if isinstance(step, Sum) and "c" in step.of:
                return replace(step, complement=complement)
            if step is last and isinstance(step, Round) and cut:
                return replace(step, rounding="toward_zero")
            return step

        yield one.with_keys(
            o.with_steps([changed(step, o.steps[-1]) for step in o.steps]) for o in one.operations
        )


def _other_roundings(one: Candidate) -> Iterator[Candidate | None]:
    """Variants of a skeleton that adds rounded: everything in one mode; all but the last result cut."""
    yield from (_rounding(one, mode) for mode in MODES)
    yield _cut_on_the_way(one)


def _cut_on_the_way(one: Candidate) -> Candidate | None:
    """A candidate that cuts all but its last result; None where it rounds only that."""
    last = one.operations[-1].steps[-1]

    def cut(step: Step) -> bool:
        exact = isinstance(step, Multiply) and step.format is None
        return isinstance(step, Round | Additions | Fma | Multiply) and not exact

    def changed(operation: Operation) -> Operation:
        inner = operation is not one.operations[-1]
        return operation.with_steps(
            replace(s, rounding="toward_zero") if cut(s) and (inner or s is not last) else s
            for s in operation.steps
        )

    return one.changed_to(map(changed, one.operations))


def bits_of_results(bank: Bank) -> int | None:
    """Fraction bits of normal results without special operands, if they are fewer than the format's; None if
    results do not show it. The highest binade is left out: overflow can produce the format's largest
    number."""
    d = bank.takes.formats["d"]
    if not d.is_float:
        return None
    numbers = np.abs(bank.values("d")[~special_operands(bank)])
    normal = (numbers >= 2.0**d.min_exponent) & (numbers < 2.0**d.max_exponent)
    bits = np.frexp(numbers[normal])[1] - 1 - last_places(numbers[normal])
    # Fewer normal results do not show how many bits results have.
    needed = 200
    most = int(bits.max()) if len(bits) >= needed else d.fraction_bits
    return most if most < d.fraction_bits else None


def register_before_c(bank: Bank) -> Format | None:
    """The format of a register between the sum of products and c: of answers without c, which have fewer
    fraction bits than d although their exact sums need more. None if they show none."""
    takes, d = bank.takes, bank.takes.formats["d"]
    if not d.is_float or takes.scale_block or "c" in takes.unread:
        return None
    alone = bank.part(np.flatnonzero((bank.values("c") == 0) & ~special_operands(bank)))
    bits = bits_of_results(alone)
    if bits is None or bits == bits_of_results(bank):
        return None
    sums = (alone.values("a") * alone.values("b")).sum(axis=1)
    sums = sums[np.isfinite(sums) & (sums != 0)]
    longer = np.frexp(sums)[1] - 1 - last_places(sums) > bits
    if np.count_nonzero(longer) < ENOUGH:
        return None
    return replace(d, name=f"e{d.exponent_bits}m{bits}", storage=64, fraction_bits=bits)


def _aligns(one: Candidate) -> bool:
    return bool(one.steps_of(Align))


def widened(one: Candidate, more: int) -> Candidate | None:
    """A candidate whose alignments keep more bits."""

    def changed(step: Step) -> Step:
        if not isinstance(step, Align):
            return step
        return replace(step, fraction_bits=tuple((name, bits + more) for name, bits in step.fraction_bits))

    return one.with_each_step(changed)


def _sorted(fits: Iterable[Fit]) -> list[Fit]:
    """The best first, of equal ones those with fewer steps, each program once."""
    seen: dict[object, Fit] = {}
    for fit in sorted(fits, key=lambda fit: (fit.wrong, fit.steps)):
        seen.setdefault(fit.candidate.key, fit)
    return list(seen.values())


def various(fits: Iterable[Fit], most: int) -> list[Fit]:
    """Some ranked fits, the best of each shape first: one change leads to what differs in keys alone."""
    seen: dict[object, int] = {}
    turns: list[tuple[int, int, Fit]] = []
    for place, one in enumerate(fits):
        shape = tuple(
            (o.seed, o.addends, tuple((s.op, s.of, bool(getattr(s, "maximum", ()))) for s in o.steps))
            for o in one.candidate.operations
        )
        seen[shape] = seen.get(shape, -1) + 1
        turns.append((seen[shape], place, one))
    return [one for *_, one in sorted(turns, key=lambda turn: turn[:2])[:most]]


def of_both_kinds(fits: Sequence[Fit], most: int) -> list[Fit]:
    """The best ranked fits, of different shapes. If all of them round at every addition, or none does, the
    last one is replaced by the best of the other kind if that is as near. In formats with few binades
    ordinary operands do not distinguish an exact sum from rounded ones, and the keys of one do not lead to
    the other."""
    first = various(fits, most)
    if len({_adds_rounded(one.candidate) for one in first}) != 1:
        return first
    kind = _adds_rounded(first[0].candidate)
    near = (one for one in fits if _adds_rounded(one.candidate) != kind and one.wrong <= first[-1].wrong)
    other = next(near, None)
    return first if other is None else [*first[:-1], other]


def _adds_rounded(one: Candidate) -> bool:
    return any(isinstance(step, Additions | Fma) for operation in one.operations for step in operation.steps)


def _widths(bank: Bank, fit: Fit, hints: Hints, deadline: float) -> Fit:
    """Fits only widths and roundings, in a few rounds; for a candidate that is far off, sticky bits, too."""
    for turn in range(4):
        if fit.wrong == 0:
            break
        sample = sample_of(bank, fit.candidate, turn)
        tried = (m for m in single_changes(fit.candidate, hints) if m.key.endswith(WIDTHS))
        far = not turn and fit.wrong > len(bank) // FITS.far
        better = _step(sample, fit, chain(tried, sticky(fit.candidate) if far else ()), deadline)
        if better is None:
            break
        fit = better
    return fit


def fit(bank: Bank, start: Fit, deadline: float) -> Fit:
    """Changes a candidate until it explains the whole bank, or nothing helps any more."""
    return Fitting(bank).to(start, deadline)


def hints(bank: Bank) -> Hints:
    """Values that are worth a try according to the answers: words of NaNs, and numbers in their place."""
    found = bank.read_off.get(Hints)
    if not isinstance(found, Hints):
        found = bank.read_off[Hints] = _hints(bank)
    return found


def _hints(bank: Bank) -> Hints:
    d = bank.takes.formats["d"]
    if not d.is_float:
        return Hints(_often(bank))
    found = (*nan_words(d, bank.answers.tolist()), *_other_words(bank), *_added_words(bank))
    return Hints(tuple(dict.fromkeys(found)))


def _often(bank: Bank) -> tuple[int, ...]:
    """Integers that are common answers: what a unit gives for products that it takes for infinite."""
    codes, counts = np.unique(bank.answers, return_counts=True)
    # A word is common if more than one answer in 32 has it.
    common_share = 32
    common = [
        place for place in np.argsort(-counts, kind="stable") if counts[place] > len(bank) // common_share
    ]
    return tuple(int(codes[place]) for place in common if codes[place])[:_WORDS]


def _other_words(bank: Bank) -> list[int]:
    """Numbers that are common answers to special operands: a unit may use any word for a NaN. A word that is
    a small number is visible where nothing else is added to it, whatever the other operands are."""
    d = bank.takes.formats["d"]
    codes, counts = np.unique(bank.answers[special_operands(bank)], return_counts=True)
    common = [int(codes[place]) for place in np.argsort(-counts, kind="stable") if counts[place] >= _OFTEN]
    return [code for code in common if d.decode(code).kind == Kind.FINITE and d.decode(code).value][:_WORDS]


def _added_words(bank: Bank) -> list[int]:
    """Words for NaNs of a or b that later steps add as numbers, if such NaNs have finite answers: the least
    number, which any other term may hide; the difference between answers and the least c that is not flushed;
    and zero, if the answer is c itself."""
    c, d = (bank.takes.formats[name] for name in "cd")
    pairs = [(c.decode(int(given)), d.decode(int(answer))) for given, answer in _with_nans(bank)]
    # Finite answers to NaN operands: the NaN was added as a number.
    finite = [(abs(x.value), y.value - x.value) for x, y in pairs if max(x.kind, y.kind) < Kind.INFINITY]
    if len(finite) < _OFTEN:
        return []
    # The answer is c itself: the word is zero, or too small to show.
    lost = sum(abs(more) == size for size, more in finite if size)
    # The smallest c hide an added word least.
    least = 200
    above = dict.fromkeys(more for size, more in sorted(finite)[:least] if more and abs(more) != size)
    codes = ((encode_fraction(d, value, "toward_zero"), value) for value in above)
    words = [1, *(code for code, value in codes if _is(d.decode(code), value))][: _WORDS + 1]
    return [0, *words] if lost > len(finite) // 2 else words


def _is(number: Number, value: Fraction) -> bool:
    """Whether a number is this value; infinities, which values out of range become, are not."""
    return number.kind < Kind.INFINITY and number.value == value


def _with_nans(bank: Bank) -> Iterator[tuple[int, int]]:
    """c and the answer of questions with a NaN in a or b, or with infinite products of both signs; each pair
    once."""
    rows = _opposite(bank)
    for name in "ab":
        rows |= stimuli.is_nan(bank.takes.formats[name], bank.operands[name]).any(axis=1)
    pairs = np.stack([bank.operands["c"][rows], bank.answers[rows]], axis=1)
    yield from ((int(given), int(answer)) for given, answer in np.unique(pairs, axis=0))


def _opposite(bank: Bank) -> npt.NDArray[np.bool_]:
    """The questions in which an infinite product meets one of the other sign, or one that overflows d, and no
    product is a NaN."""
    a, b = map(bank.values, "ab")
    with np.errstate(all="ignore"):
        products = a * b
    infinite = np.isinf(a) | np.isinf(b)
    # The largest exponent of doubles.
    top = 1023
    large = np.abs(products) >= 2.0 ** min(bank.takes.formats["d"].max_exponent + 1, top)
    found = np.zeros(len(bank), bool)
    for sign in (1, -1):
        own = (infinite & (products * sign > 0)).any(axis=1)
        found |= own & (large & (products * sign < 0)).any(axis=1)
    return found & ~np.isnan(products).any(axis=1)


def special_operands(bank: Bank) -> npt.NDArray[np.bool_]:
    """The questions with infinities or NaNs in a, b or c; in formats without these, with the largest
    number."""
    found = np.zeros(len(bank), bool)
    for name in "abc":
        codes = bank.operands[name].reshape(len(bank), -1)
        found |= stimuli.is_special(bank.takes.formats[name], codes).any(axis=1)
    return found


def _more_causes(bank: Bank, best: Fit, hints: Hints, deadline: float) -> Fit:
    """After a change of the causes of NaNs, more of them: the table is found entry by entry, and no other
    pass is needed between two entries."""
    if not best.changes[-1].partition(" = ")[0].endswith(_CAUSES):
        return best
    for turn in range(FITS.causes):
        sample = sample_of(bank, best.candidate, turn, first=_SPECIAL | KINDS)
        tried = (m for m in single_changes(best.candidate, hints) if m.key.endswith(_CAUSES))
        better = _step(sample, best, tried, deadline) if best.wrong else None
        if better is None:
            break
        best = better
    return best


_Scored = tuple[int, int, int, Move, Candidate]
"""Wrong answers on the sample, rank and place of a move; the move; and the candidate it makes."""


def _scored(sample: Sample, start: Candidate, tried: Iterable[Move], deadline: float) -> list[_Scored]:
    """The moves that help on a sample, as far as time allows; the others in `tried` are not drawn from it.
    Once one of them helps, only moves that explain something of the glance are counted, which is cheap."""
    base, glance = sample.wrong(start), wrong_of(sample.glance, start)
    scored: list[_Scored] = []
    for index, move in enumerate(tried):
        new = move.unchecked(start)
        if new is None or (scored and wrong_of(sample.glance, new) >= glance):
            pass
        elif (wrong := sample.wrong(new, base)) < base and new.sound:
            scored.append((wrong, move.rank, index, move, new))
        if time.monotonic() > deadline:
            break
    return scored


def _step(sample: Sample, best: Fit, tried: Iterable[Move], deadline: float) -> Fit | None:
    """The best single change, together with all others that still help; None if none helps."""
    # Moves are ranked on the sample; only the best are counted on the whole bank. The result has strictly
    # fewer wrong answers there than the fit to improve on. If the time ends while moves are ranked, it is
    # the best of those that were: the seconds for them are not lost.
    now = time.monotonic()
    scored = _scored(sample, best.candidate, tried, now + FITS.ranking * (deadline - now))
    scored.sort(key=lambda one: one[:3])
    alike = sum(one[0] == scored[0][0] for one in scored)
    found: Fit | None = None
    for place, (_, _, _, move, new) in enumerate(scored[: max(FITS.confirmed, min(alike, FITS.alike))]):
        if place and time.monotonic() > deadline:
            break
        least = (best if found is None else found).wrong
        if (wrong := sample.of_all(new, least)) < least:
            found = Fit(new, wrong, [*best.changes, NamedChange(move.text, best.candidate, new)])
            if not wrong:
                break
    if found is None:
        return None
    return _with_others(sample, found, [move for _, _, _, move, _ in scored], deadline)


def _with_others(sample: Sample, found: Fit, more: Sequence[Move], deadline: float) -> Fit:
    """What was found, with the other changes that still help, the best first. A change that explains a part
    of what another one explains wholly would stand in its way. Only a few values of each key are tried,
    because any number of them can be about equally good."""
    taken = {found.changes[-1].partition(" = ")[0]}
    seen: Counter[str] = Counter()
    few: list[Move] = []
    # Few values of each key: any number of them can be about equally good.
    for move in more:
        seen[move.key] += 1
        few += [move] if seen[move.key] <= FITS.of_a_key and move.key not in taken else []
    more = few[: FITS.extra]
    # Afterwards no other of these changes helps on top of the result.
    while found.wrong and time.monotonic() < deadline:
        made = [(move, move.apply(found.candidate)) for move in more if move.key not in taken]
        counted = [(sample.of_all(both, found.wrong), move, both) for move, both in made if both is not None]
        helping = [one for one in counted if one[0] < found.wrong]
        if not helping:
            break
        wrong, move, both = min(helping, key=lambda one: one[0])
        found = Fit(both, wrong, [*found.changes, NamedChange(move.text, found.candidate, both)])
        taken.add(move.key)
        more = [move for _, move, _ in helping]
    return found


class Fitting:
    """The passes of one fit to a bank of questions."""

    def __init__(self, bank: Bank) -> None:
        self.bank, self.hints = bank, hints(bank)
        self._sample: tuple[Candidate, Sample] | None = None
        # The cheapest first. Each text states what holds after the pass found nothing in time: no candidate
        # that is one such change away, and that the sample let through, has fewer wrong answers on the bank.
        self.search: Search[Fit] = Search(
            [
                Pass("change a key", self._keys, "no single change of a key explains more"),
                Pass("change two keys at once", self._joint, "nor do two keys of a step"),
                Pass("change one operation", self._alone, "nor a width or a rounding of one operation alone"),
            ]
        )
        self.search.statistics = bank.statistics

    def to(self, start: Fit, deadline: float) -> Fit:
        """The result of all passes. A candidate from which they found nothing on this bank is not tried
        again: candidates come back from other starts."""
        return self.search.run(
            start,
            lambda fit: fit.wrong,
            deadline,
            key=lambda fit: fit.candidate.operations,
            spent=self.bank.spent,
        )

    def _of(self, best: Fit) -> Sample:
        if self._sample is None or self._sample[0] is not best.candidate:
            self._sample = best.candidate, sample_of(self.bank, best.candidate, 1)
        return self._sample[1]

    def _step(self, best: Fit, name: str, tried: Callable[[], Iterator[Move]], deadline: float) -> Fit | None:
        # Moves that the time left out come first when the same candidate is changed again for this bank.
        key = name, best.candidate.operations
        moves = self.bank.untried.pop(key, None) or tried()
        better = _step(self._of(best), best, moves, deadline)
        if better is None:
            self.bank.untried[key] = moves
        return None if better is None else _more_causes(self.bank, better, self.hints, deadline)

    def _keys(self, best: Fit, deadline: float) -> Fit | None:
        return self._step(best, "keys", lambda: self._changes(best), deadline)

    def _changes(self, best: Fit) -> Iterator[Move]:
        # While much is wrong, two keys at once compete with one, and come first if the time ends: a key that
        # makes up for two others explains a part of the answers, and leads away from them. Of changes that
        # explain as much, one key comes before two, and before the fault of one key and another.
        if best.wrong > len(self.bank) // FITS.apart:
            yield from (replace(move, rank=move.rank + 2) for move in joint(best.candidate))
        yield from replaced_values(best.candidate, self._of(best).missed)
        yield from single_changes(best.candidate, self.hints)

    def _joint(self, best: Fit, deadline: float) -> Fit | None:
        return self._step(best, "joint", lambda: joint(best.candidate), deadline)

    def _alone(self, best: Fit, deadline: float) -> Fit | None:
        return self._step(best, "alone", lambda: in_one_operation(best.candidate), deadline)
