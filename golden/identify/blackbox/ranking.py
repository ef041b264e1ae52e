"""Where fits start: templates by how near they are once widths and roundings fit, and templates with the ends
that one product and c show, where every order of the sum is the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from golden.identify.blackbox import structure
from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.fitting import Fit, fit, one_change, sample_of, wrong_of
from golden.identify.blackbox.mutations import Hints, mutations, sticky
from golden.identify.blackbox.policy import POLICY
from golden.identify.blackbox.sum_order import KIND as MASKS
from golden.number.frozen import replace
from golden.number.rounding import MODES
from golden.program.keys import CUT
from golden.program.program import Operation
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    Fma,
    HiddenBit,
    Multiply,
    Normalize,
    Round,
    Scale,
    SpecialValues,
    Step,
    Sum,
)

_SIDES = ("toward_zero", "down", "up")
"""Roundings that take each number to one side."""
_MASKS = frozenset((MASKS,))
_WIDTH_KEYS = ("fraction_bits", "rounding")


def rank(bank: Bank, whole: Bank, candidates: Iterable[Candidate], deadline: float) -> list[Fit]:
    """Templates by how near they come on a bank of ordinary operands once their widths and roundings fit, the
    best first; one alone where it explains the whole bank as it is.

    The widths of the nearest one are a first guess for all others.
    """
    shuffled = np.random.default_rng(0).permutation(len(bank))
    few, fewer = (bank.part(shuffled[:count]) for count in (POLICY.ranked_on, POLICY.first_ranked_on))
    # All templates on a few questions, each with the best of a few other roundings.
    tried: list[Fit] = []
    for one in _directed(fewer, candidates, deadline):
        tried.append(Fit(one, wrong_of(fewer, one)))
        if tried[-1].wrong == 0 and wrong_of(whole, one) == 0:
            return [Fit(one, 0)]
    # The best of both kinds, those that align and those that round at every addition, on all questions.
    ordered = sorted(tried, key=lambda fit: fit.wrong)
    best: list[Fit] = []
    for aligns in (False, True):
        best += various((fit for fit in ordered if bool(_aligns(fit.candidate)) == aligns), POLICY.ranked)
    best += [
        Fit(one, 0)
        for fit in best
        if not _aligns(fit.candidate)
        for one in _own_roundings(few, fit, deadline)
    ]
    fits = _sorted(Fit(fit.candidate, wrong_of(bank, fit.candidate)) for fit in best)
    # The widths of the nearest one that aligns, fitted, as a guess for all that align.
    aligned = [fit for fit in fits if _aligns(fit.candidate)]
    if aligned and fits[0].wrong:
        guess = _widths(bank, aligned[0], Hints(), deadline)
        more: list[Fit] = []
        if guess.wrong:
            guessed = (_guessed(few, fit, guess.candidate) for fit in aligned if time.monotonic() < deadline)
            more = [Fit(one, wrong_of(bank, one)) for one in guessed if one is not None]
        fits = _sorted([guess, *more, *fits])
    # Widths of the nearest of both kinds: after this, ranks compare orders, not widths.
    found: list[Fit] = []
    for near in _both_kinds(fits, POLICY.fitted_widths, len(bank) // POLICY.ranked_near):
        if time.monotonic() > deadline or (found and found[-1].wrong == 0):
            break
        found.append(_widths(bank, near, Hints(wide=False), deadline))
    return _sorted([*found, *fits])


def halved(bank: Bank, fits: Sequence[Fit], hints: Hints, deadline: float) -> list[Fit]:
    """Ranked starts after a few changes near what they are, of any key: in each round all that are left take
    one, and the better half goes on. What is far off as it was made can be near with a word or two."""
    going, done = list(fits), list[Fit]()
    for turn in range(POLICY.halving_rounds):
        moved: list[Fit] = []
        for one in going:
            if not one.wrong or time.monotonic() > deadline:
                moved.append(one)
                continue
            sample = sample_of(bank, one.candidate, turn, POLICY.halving_sample)
            better = one_change(sample, one, mutations(one.candidate, hints), deadline)
            moved.append(better or one)
        moved = _sorted(moved)
        going = moved[: max(len(moved) // 2, POLICY.halving_least)]
        done += moved[len(going) :]
    return _sorted([*going, *done])


def rank_again(bank: Bank, more: Iterable[Fit], fits: Iterable[Fit]) -> list[Fit]:
    """Ranked starts of two kinds, the best of the first on the whole bank, as one list."""
    best = [Fit(one.candidate, wrong_of(bank, one.candidate)) for one in various(more, POLICY.ranked)]
    own = [Fit(one.candidate, wrong_of(bank, one.candidate), one.changes) for one in fits]
    return _sorted([*best, *own])


def _directed(few: Bank, candidates: Iterable[Candidate], deadline: float) -> Iterator[Candidate]:
    """Templates, and those that round at every addition with the best of other roundings behind them: masks
    show no order of those that round in a direction, and one rounding decides most results."""
    for one in candidates:
        yield one
        if time.monotonic() > deadline:
            continue
        turned = list(_other_ends(one)) if _aligns(one) else [_rounding(one, mode) for mode in MODES]
        turned += [_cut(one, word) for word in CUT.words] if _aligns(one) and _no_count(few, one) else []
        found = [new for new in turned if new is not None]
        best = min(found, key=lambda new: wrong_of(few, new), default=None)
        if best is not None and wrong_of(few, best) < wrong_of(few, one):
            yield best


def _no_count(few: Bank, one: Candidate) -> bool:
    """Whether a template is wrong on most of what masks were answered: sticky bits leave more than what is
    small in every order of the sum, so that no order that drops what is cut is nearer than others."""
    masks = few.of_kinds(_MASKS)
    return wrong_of(masks, one) > len(masks) // 2


def _cut(one: Candidate, word: str) -> Candidate | None:
    """A template whose alignments keep so whether anything was cut."""
    return one.with_each_step(lambda step: replace(step, cut=word) if isinstance(step, Align) else step)


def _rounding(one: Candidate, mode: str) -> Candidate | None:
    """A candidate that rounds every result this way."""

    def changed(step: Step) -> Step:
        if isinstance(step, Multiply):
            return step if step.format is None else replace(step, rounding=mode)
        return replace(step, rounding=mode) if isinstance(step, Additions | Fma | Round) else step

    return one.with_each_step(changed)


def _both_kinds(fits: list[Fit], most: int, near: int) -> list[Fit]:
    """Some of ranked fits, of those that align and of the others in turns, the best of each shape first: what
    is alike in most answers can differ in the few that show which one it is. Of those that are apart by fewer
    than `near` questions, which one width can decide, those with fewer steps come first."""
    fits = sorted(fits, key=lambda fit: (fit.wrong // max(near, 1), fit.steps))
    parts = [[fit for fit in fits if bool(_aligns(fit.candidate)) == aligns] for aligns in (False, True)]
    mixed = zip_longest(*(various(part, most) for part in parts))
    return sorted(
        [fit for pair in mixed for fit in pair if fit is not None][:most], key=lambda fit: fit.wrong
    )


def _own_roundings(few: Bank, fit: Fit, deadline: float) -> Iterator[Candidate]:
    """A template that aligns nothing with another rounding for each of its steps, one after the other."""
    best = fit
    steps = dict.fromkeys(s for o in fit.candidate.operations for s in o.steps if hasattr(s, "rounding"))
    for index in range(len(steps) if 1 < len(steps) <= POLICY.own_roundings else 0):
        now = list(
            dict.fromkeys(s for o in best.candidate.operations for s in o.steps if hasattr(s, "rounding"))
        )
        if index >= len(now) or time.monotonic() > deadline:
            break
        for mode in MODES:
            changed: dict[str, Any] = {"rounding": mode}
            new = replace(now[index], **changed)
            one = best.candidate.with_operations(
                o.with_steps([new if s == now[index] else s for s in o.steps])
                for o in best.candidate.operations
            )
            if one is not None and (wrong := wrong_of(few, one)) < best.wrong:
                best = Fit(one, wrong)
    if best is not fit:
        yield best.candidate


def _other_ends(one: Candidate) -> Iterator[Candidate | None]:
    """An aligned template that cuts its results, whatever it rounds to first, or rounds all to odd; that
    counts what has not c's sign in one's complement; that cuts, too; one that keeps more bits, as a bit too
    few decides many results, and some too many only few; one that cuts what it rounds before the result; and
    one that adds c in a rounded addition with that alone rounded to a side."""
    yield widened(one, POLICY.more_bits)
    yield _rounding(one, "to_odd")
    yield _cut_on_the_way(one)
    yield from (_adding(one, mode) for mode in _SIDES if isinstance(one.operations[-1].final, Additions))
    for cut, complement in ((True, "none"), (False, "c"), (True, "c")):

        def changed(step: Step, last: Step, cut: bool = cut, complement: str = complement) -> Step:
            if isinstance(step, Sum) and "c" in step.of:
                return replace(step, complement=complement)
            if step is last and isinstance(step, Round) and cut:
                return replace(step, rounding="toward_zero")
            return step

        yield one.with_operations(
            o.with_steps([changed(step, o.steps[-1]) for step in o.steps]) for o in one.operations
        )


def _cut_on_the_way(one: Candidate) -> Candidate | None:
    """A candidate that cuts all but its last result; None where it rounds only that."""
    last = one.operations[-1].steps[-1]

    def changed(operation: Operation) -> Operation:
        inner = operation is not one.operations[-1]
        return operation.with_steps(
            replace(s, rounding="toward_zero") if isinstance(s, Round) and (inner or s is not last) else s
            for s in operation.steps
        )

    found = one.with_operations(map(changed, one.operations))
    return None if found is None or found.operations == one.operations else found


def _adding(one: Candidate, mode: str) -> Candidate | None:
    """A candidate whose last step alone rounds this way."""
    *head, last = one.operations
    final: Step = replace(last.final, rounding=mode)
    return one.with_operations((*head, last.with_steps((*last.steps[:-1], final))))


def _aligns(one: Candidate) -> list[Align]:
    return [step for operation in one.operations for step in operation.steps_of(Align)]


def _guessed(few: Bank, fit: Fit, other: Candidate) -> Candidate | None:
    """A candidate with the last rounding of a fitted one, and the best of its width and a few others."""
    bits = max(bits for step in _aligns(other) for _, bits in step.fraction_bits)
    made = (_like(fit.candidate, other, width) for width in (bits, *POLICY.guessed_widths))
    return min((one for one in made if one is not None), key=lambda one: wrong_of(few, one), default=None)


def _like(one: Candidate, other: Candidate, bits: int) -> Candidate | None:
    """A candidate with the last rounding of another one and one width for all alignments."""
    last = other.operations[-1].final

    def changed(step: Step) -> Step:
        if isinstance(step, Align):
            return replace(step, fraction_bits=tuple((name, bits) for name, _ in step.fraction_bits))
        return replace(step, rounding=last.rounding) if isinstance(step, Round) else step

    return one.with_each_step(changed)


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
    for one in sorted(fits, key=lambda one: (one.wrong, one.steps)):
        seen.setdefault(one.candidate.key, one)
    return list(seen.values())


def various(fits: Iterable[Fit], most: int) -> list[Fit]:
    """Some of ranked fits, the best of each shape first: what differs in keys alone one change leads to."""
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
    """The best of ranked fits, of different shapes; in the place of the last of them the best of the other
    kind where all round at every addition, or none does, and it is as near. Where formats have few binades
    ordinary operands tell no exact sum from rounded ones, and the keys of one do not lead to the other."""
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
    """Widths and roundings alone, a few rounds; of what is far off, sticky bits, too."""
    for turn in range(4):
        if fit.wrong == 0:
            break
        sample = sample_of(bank, fit.candidate, turn)
        tried = (m for m in mutations(fit.candidate, hints) if m.key.endswith(_WIDTH_KEYS))
        far = not turn and fit.wrong > len(bank) // POLICY.sticky_far
        better = one_change(sample, fit, chain(tried, sticky(fit.candidate) if far else ()), deadline)
        if better is None:
            break
        fit = better
    return fit


_ONE_TERM = frozenset(("c alone", "one product", "one product and c"))
_OPERANDS = frozenset("abc")
_OWN = ("of", "to", "group", "format")
"""Keys that say where a step stands, not what it does."""


def starts(bank: Bank, ordinary: Bank, templates: Sequence[Candidate], deadline: float) -> list[Fit]:
    """Templates with the ends that one product and c show, by how many ordinary questions they get wrong,
    the best first."""
    shuffled = np.random.default_rng(1).permutation(len(ordinary))
    few = ordinary.part(shuffled[: POLICY.few_term_compared])
    found: dict[object, Fit] = {}
    for source in _fitted(bank.of_kinds(_ONE_TERM), templates, deadline):
        for one in templates:
            if time.monotonic() > deadline:
                break
            for new in with_ends(one, source.candidate):
                found.setdefault(new.operations, Fit(new, wrong_of(few, new)))
    return sorted(found.values(), key=lambda fit: fit.wrong)


def _fitted(few: Bank, templates: Iterable[Candidate], deadline: float) -> list[Fit]:
    """Programs whose operations are alike, fitted to the questions with few terms: the best of each kind of
    steps, of one operation where there is one."""
    alike = [one for one in templates if len({o.steps for o in one.operations}) == 1]
    least = min((len(one.operations) for one in alike), default=0)
    single = [one for one in alike if len(one.operations) == least]
    scored = [Fit(one, wrong_of(few, one)) for one in single if time.monotonic() < deadline]
    scored.sort(key=lambda one: (one.wrong, len(_steps(one))))
    seen: dict[object, Fit] = {}
    for one in scored:
        seen.setdefault(tuple(step.op for step in _steps(one)), one)
    found = []
    for start in [*seen.values()][: POLICY.few_term_shapes]:
        until = min(deadline, time.monotonic() + POLICY.few_term_seconds)
        found.append(fit(few, start, until))
    return sorted(found, key=lambda one: one.wrong)[: POLICY.few_term_kept]


def _steps(fit: Fit) -> tuple[Step, ...]:
    return fit.candidate.operations[-1].steps


def with_ends(one: Candidate, source: Candidate) -> Iterator[Candidate]:
    """A candidate whose steps have the keys of those of a fitted program that stand in the same place: beside
    c, on products, at the end. Sums without c stay as they are, or are cut as that with c."""
    operation = source.operations[-1]
    made: dict[object, Candidate] = {}
    for inner in (False, True):
        new = one.with_operations(_changed(o, operation, inner) for o in one.operations)
        if new is not None:
            made.setdefault(new.operations, new)
    yield from made.values()


def _changed(operation: Operation, source: Operation, inner: bool, sums: bool = True) -> Operation:
    """An operation with the keys of a fitted one; `sums`: also of what that aligns, sums and normalizes."""
    steps: list[Step] = []
    if operation.k_index:
        steps += [step for step in source.steps if _of_operands(step)]
    written = {step.to: step for step in source.steps if sums and isinstance(step, Sum)}
    for step in operation.steps:
        known = sums or not isinstance(step, Align | Sum | Additions)
        found = _counterpart(step, source.steps, inner) if known else None
        steps.append(step if found is None else _with_keys_of(step, found))
        if isinstance(step, Sum) and step.to in written:
            steps += [s for s in source.steps if isinstance(s, Normalize) and s.of == (step.to,)]
    return replace(operation.with_steps(steps), operand_format=source.operand_format)


def _of_operands(step: Step) -> bool:
    """Whether a step changes operands before anything reads them."""
    return isinstance(step, Flush | HiddenBit | Normalize) and set(step.of) <= _OPERANDS


def _counterpart(step: Step, steps: Sequence[Step], inner: bool) -> Step | None:
    """The step of a fitted program in whose place another one stands."""
    for one in steps:
        if type(one) is not type(step):
            continue
        if isinstance(step, Multiply | SpecialValues | Scale | Fma):
            return one
        if isinstance(step, Round) and isinstance(one, Round) and step.to == one.to:
            return one
        with_c = "c" in step.of
        if isinstance(step, Align | Sum | Additions) and "c" in one.of and (with_c or inner):
            return one
    return None


def _with_keys_of(step: Step, found: Step) -> Step:
    """A step with the keys of another one, on its own registers."""
    if isinstance(step, Align) and isinstance(found, Align):
        return _aligned(step, found)
    where: tuple[str, ...] = (*_OWN, "order") if isinstance(step, Additions) else _OWN
    if isinstance(step, Multiply):  # whether products are rounded is what it does
        where = ("to",)
    own: dict[str, Any] = {one.name: getattr(step, one.name) for one in fields(step) if one.name in where}
    return replace(found, **own)


def _aligned(step: Align, found: Align) -> Align:
    """An alignment with the keys of another one: what that says of products is said of what stands in their
    place."""
    first = next((name for name in found.of if name != "c"), "c")
    place = next((name for name in step.of if name != "c"), "c")
    moved = structure.with_registers(structure.relabelled(found, first, place), step.of)
    assert isinstance(moved, Align)
    return replace(moved, group=step.group)
