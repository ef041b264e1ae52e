"""Starting points from questions with one product and c: their answers do not depend on the order of the sum,
so rounding, cuts and special values are found before the order is.

A few shapes are fitted to these questions alone. Their keys are copied into the skeletons of every order, and
these are ranked again: a skeleton that is far off as it was made can be the nearest with the right ends.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from golden.identify.blackbox import fitting
from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.fitting import Fit
from golden.identify.blackbox.one_term import (
    as_rounded,
    overflowing,
    uncounted,
    with_factor,
    with_lost_products,
    with_signs,
)
from golden.identify.blackbox.parts import Pass, with_parts
from golden.identify.blackbox.questions import ALONE, C_ALONE, ONE_PRODUCT
from golden.identify.blackbox.step_registers import of_operands, relabelled, with_registers
from golden.number.formats import Kind
from golden.number.frozen import replace
from golden.program.program import Operation
from golden.program.steps import (
    Additions,
    Align,
    Fma,
    Multiply,
    Normalize,
    Part,
    Round,
    Scale,
    SpecialValues,
    Step,
    Sum,
)

KINDS = frozenset((C_ALONE, ONE_PRODUCT, "one product and c"))
_OWN = ("of", "to", "group", "format")
"""Keys that give the place of a step, not its arithmetic."""


def starts(bank: Bank, ordinary: Bank, skeletons: Sequence[Candidate], deadline: float) -> list[Fit]:
    """Skeletons with the ends that one product and c show, ranked by their wrong answers to ordinary
    questions."""
    shuffled = np.random.default_rng(1).permutation(len(ordinary))
    # The starts are compared on this many questions with all terms.
    count = 160
    few = ordinary.part(shuffled[:count])
    found: dict[object, Fit] = {}
    for source in _fitted(bank.of_kinds(KINDS), skeletons, deadline):
        for one in skeletons:
            if time.monotonic() > deadline:
                break
            for new in with_ends(one, source.candidate):
                found.setdefault(new.operations, Fit(new, fitting.wrong_of(few, new)))
    return sorted(found.values(), key=lambda fit: fit.wrong)


def reordered(bank: Bank, best: Fit, skeletons: Iterable[Candidate], deadline: float) -> list[Fit]:
    """Skeletons with the ends of the best candidate that explain more of the whole bank than it does, the
    best first. Special values, cuts and rounding are found with a wrong order, too; the questions that are
    still wrong are few and not ordinary ones."""
    sample = fitting.sample_of(bank, best.candidate, 1)
    most, found = fitting.wrong_of(sample.glance, best.candidate), dict[object, Fit]()
    for one in skeletons:
        if time.monotonic() > deadline:
            break
        for new in with_ends(one, best.candidate):
            if new.operations in found or fitting.wrong_of(sample.glance, new) >= most:
                continue
            wrong = sample.of_all(new, best.wrong)
            if wrong < best.wrong:
                found[new.operations] = Fit(new, wrong, best.changes)
    return sorted(found.values(), key=lambda fit: (fit.wrong, fit.steps))


def counted(
    bank: Bank, skeletons: Sequence[Candidate], passes: Sequence[Sequence[Pass]] = ()
) -> list[Candidate]:
    """Skeletons with the signs and the final rounding that answers to one term show, and with the bits of
    results. Their sums leave out what no finite answer shows: c, or the products. Faulty units check special
    values of operands that they do not add, or lose some products alone. If finite operands have infinite
    answers, the terms may be added after all, with an overflow of all nonzero products."""
    # 1. Properties that every order shares: signs, rounding, bits of results. No skeleton is dropped here.
    made = as_rounded(bank, with_signs(bank, with_parts(passes, with_factor(bank, skeletons))))
    bits = fitting.bits_of_results(bank)
    made = made if bits is None else [one.with_last(result_fraction_bits=bits) or one for one in made]
    # 2. Terms that no answer to them alone shows are left out of the sums, in every skeleton.
    lost = with_lost_products(bank, made)
    if lost:
        return lost
    for kind, name in ALONE:
        alone = bank.of_kinds(frozenset((kind,)))
        if len(alone) and not _shows(alone):
            found = [uncounted(one, name) for one in made]
            left_out = [one for one in found if one is not None]
            if _overflows(alone):
                left_out = [*filter(None, map(overflowing, made)), *left_out]
            made = left_out or made
    return made


def _shows(bank: Bank) -> bool:
    """Whether any answer is a finite number other than zero."""
    fmt = bank.takes.formats["d"]
    known = map(fmt.decode, np.unique(bank.answers).tolist())
    return any(one.kind == Kind.FINITE and one.value for one in known)


def _overflows(bank: Bank) -> bool:
    """Whether any question without special values is answered by an infinity or a NaN."""
    fmt = bank.takes.formats["d"]
    codes = np.unique(bank.answers[~fitting.special_operands(bank)]).tolist()
    return any(fmt.decode(code).kind >= Kind.INFINITY for code in codes)


def _fitted(few: Bank, skeletons: Iterable[Candidate], deadline: float) -> list[Fit]:
    """Programs whose operations are alike, fitted to the questions with few terms: the best of each sequence
    of steps, with as few operations as possible."""
    # Passes of one multiplier differ in the parts that they read.
    bodies = {
        one: {tuple(s for s in o.steps if not isinstance(s, Part)) for o in one.operations}
        for one in skeletons
    }
    alike = [one for one, own in bodies.items() if len(own) == 1]
    least = min((len(one.operations) for one in alike), default=0)
    single = [one for one in alike if len(one.operations) == least]
    scored = [Fit(one, fitting.wrong_of(few, one)) for one in single if time.monotonic() < deadline]
    scored.sort(key=lambda fit: (fit.wrong, len(_steps(fit))))
    seen: dict[object, Fit] = {}
    for fit in scored:
        seen.setdefault(tuple(step.op for step in _steps(fit)), fit)
    found = []
    # Shapes of programs that are fitted.
    shapes = 6
    for start in [*seen.values()][:shapes]:
        # Seconds to fit one shape.
        seconds = 1.0
        until = min(deadline, time.monotonic() + seconds)
        found.append(fitting.fit(few, start, until))
    # The best of them provide the ends of all skeletons.
    kept = 3
    return sorted(found, key=lambda fit: fit.wrong)[:kept]


def _steps(fit: Fit) -> tuple[Step, ...]:
    return fit.candidate.operations[-1].steps


def with_ends(one: Candidate, source: Candidate) -> Iterator[Candidate]:
    """A candidate whose steps have the keys of the corresponding steps of a fitted program: next to c, on
    products, at the end. Sums without c stay unchanged, or are cut as the sum with c."""
    operation = source.operations[-1]
    made: dict[object, Candidate] = {}
    for inner in (False, True):
        new = one.with_operations(_changed(o, operation, inner) for o in one.operations)
        if new is not None:
            made.setdefault(new.operations, new)
    yield from made.values()


def _changed(operation: Operation, source: Operation, inner: bool) -> Operation:
    """An operation with the keys of a fitted one."""
    steps: list[Step] = []
    if operation.k_index:
        steps += [step for step in source.steps if of_operands(step)]
    written = {step.to: step for step in source.steps if isinstance(step, Sum)}
    for step in operation.steps:
        found = _counterpart(step, source.steps, inner)
        steps.append(step if found is None else _like(step, found))
        if isinstance(step, Sum) and step.to in written:
            steps += [s for s in source.steps if isinstance(s, Normalize) and s.of == (step.to,)]
    return replace(operation.with_steps(steps), operand_format=source.operand_format)


def _counterpart(step: Step, steps: Sequence[Step], inner: bool) -> Step | None:
    """The step of a fitted program that corresponds to another one."""
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


def _like(step: Step, found: Step) -> Step:
    """A step with the keys of another one, on its own registers."""
    if isinstance(step, Align) and isinstance(found, Align):
        return _aligned(step, found)
    where: tuple[str, ...] = (*_OWN, "order") if isinstance(step, Additions) else _OWN
    if isinstance(step, Multiply):  # the rounding of products belongs to its arithmetic
        where = ("to",)
    own: dict[str, Any] = {one.name: getattr(step, one.name) for one in fields(step) if one.name in where}
    return replace(found, **own)


def _aligned(step: Align, found: Align) -> Align:
    """An alignment with the keys of another one; its keys for products are applied to the register in their
    place."""
    first = next((name for name in found.of if name != "c"), "c")
    place = next((name for name in step.of if name != "c"), "c")
    moved = with_registers(relabelled(found, first, place), step.of)
    assert isinstance(moved, Align)
    return replace(moved, group=step.group)
