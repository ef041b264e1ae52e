"""What a unit computes instead: the hypotheses that explain all its results, or the nearest one and what is
left.

    found = diagnose(golden.instruction("hopper", "HMMA.16816.F32"), operands, what_the_dut_answered)
    print(found.sentence())       # "your unit is hopper:mma... with F = 24 instead of 25: 0 of 200,000
    differ"

The space is that of the schema: every single change of golden/identify/hypotheses.py, the catalogued
instructions of golden/catalog/relatives.py, faults of the wiring, and changes of the best of those. A few
hundred informative results sort the hypotheses; the best ones are then held against every result. What
explains all results need not be the cause: a fault that the vectors cannot tell apart is listed beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from golden.budget import Budget
from golden.catalog.relatives import arithmetic, relatives
from golden.catalog.unit_text import unit_text
from golden.errors import OperandError, ShapeError
from golden.identify.accumulator_faults import beside, controls
from golden.identify.bare_wires import bare_wires, constant
from golden.identify.datapath import Tap
from golden.identify.hypotheses import Change, changes
from golden.identify.known import known
from golden.identify.mode_wires import mode_skews, mode_wires, modes_in_words, rewired_modes
from golden.identify.sample import evenly
from golden.identify.taps import taps
from golden.identify.wiring import BESIDE, Wire, run, skews, wires
from golden.instruction import Instruction
from golden.number.arrays import codes as codes_of
from golden.number.formats import Format, Kind, to_float
from golden.program.signature import Bits, Operands
from golden.unit import Unit

Mask = npt.NDArray[np.bool_]
Progress = Callable[[int, int], None]
_FAILING, _PASSING = 384, 384
_BEAM, _CONFIRMED, _SHOWN = 14, 6, 8
_QUICK, _PASSED_ON, _ALSO = 48, 40, 20
"""Failing and passing results on which faults of the datapath, which take longer, are tried first; how many
of those faults then run on the whole sample, and how many of those that have no right result wrong."""
_LEFT, _POOL, _BASES = 128, 64, 6
"""Results that the best hypothesis leaves, of which a further fault has to explain some; how many such faults
are combined with how many of the best."""
_FEW = 32
"""Wrong results below which a change may explain all of them by chance: faults of the datapath are tried
too."""
_JUDGED = 20_000
"""Results on which a fault of the datapath is confirmed, at most; half of them fail where so many do, and
half are right."""
_SAID = 4
"""Explanations of every result that the sentence names."""
_clock = time.thread_time
Part = Wire | Tap
_DEPTH = 3
_MISSED, _ROUNDS = 32, 4
_FEWEST_DELAYED = 16
"""Results below which a shift by one vector explains too much by chance."""
_LATE = (1, -1, 2, -2, 3, -3, 4, -4)
_MODES = 3
"""Modes beside the first one that are diagnosed by themselves, where what explains that one does not explain
them."""
_LEAST, _HARMLESS, _HARMLESS_ALL = 20, 8, 12
"""What explains less than a twentieth of the wrong results may do so by chance; how many hypotheses that have
no right result of the sample wrong are held against more, those of one part, and all."""
ACCEPTED = 0.2
"""The share of the wrong results that a hypothesis may leave and still be called what the unit is."""


class Policy(Protocol):
    """How results are compared; rtl_tb.dut.policy.ComparePolicy is one."""

    def equal(self, fmt: Format, expected: Bits, actual: Bits) -> Mask:
        """True where the actual code is acceptable."""


class _Exact:
    def equal(self, fmt: Format, expected: Bits, actual: Bits) -> Mask:
        """The same bits."""
        return np.asarray(expected == actual)


@dataclass(frozen=True)
class Hypothesis:
    """One explanation. `remaining` of `total` results still differ; `instruction` computes it, with
    the faults `wires` of its wires and of its datapath. `failing` of these are wrong, where they are not all
    that the diagnosis has.

    `slug`: stable names of its changes, joined with "+". `text`: the changes in words.
    `start`, `changes`: the instruction that it began with, and what was changed in it, in order.
    `delay`: result i belongs to vector i - delay.
    """

    slug: str
    text: str
    instruction: Instruction | None
    weight: float = 1.0
    known: bool = False
    start: Instruction | None = None
    changes: tuple[Change, ...] = ()
    wires: tuple[Part, ...] = ()
    delay: int = 0
    remaining: int = -1
    total: int = 0
    failing: int | None = None

    @property
    def taps(self) -> bool:
        """Whether there are faults of the datapath among its parts."""
        return any(isinstance(wire, Tap) for wire in self.wires)

    @property
    def in_order(self) -> bool:
        """Whether a result depends on the vectors before or after."""
        return any(wire.in_order for wire in self.wires)

    @property
    def has_words(self) -> bool:
        """Whether the schema of units can say it."""
        return self.instruction is not None and not self.wires and not self.delay

    def results(self, operands: Operands) -> Bits:
        """What the unit would answer (`delay` left out)."""
        assert self.instruction is not None
        return run(self.instruction, self.wires, operands)

    def accepted(self, failing: int) -> bool:
        """Whether it explains most of the results that differ, `failing` of all."""
        return self.remaining <= ACCEPTED * self.of_wrong(failing)

    def of_wrong(self, failing: int) -> int:
        """How many of the results that it is held against are wrong, where `failing` of all are."""
        return failing if self.failing is None else self.failing

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"slug": self.slug, "text": self.text, "remaining": self.remaining, "total": self.total}


@dataclass(frozen=True)
class Fault:
    """One of the faults of a unit.

    Attributes:
        slug, text: as of a hypothesis.
        explains: wrong results that are right again without it, and only without it.
        others: what the unit would be without this fault; None: what it should be.
        whole: what the unit is, with this fault; None where the fault is all that is wrong.
    """

    slug: str
    text: str
    explains: int
    others: Hypothesis | None = None
    whole: Hypothesis | None = None

    def alone(self, ins: Instruction, operands: Operands) -> Mask:
        """Dot products that show this fault and no other, (n,). Of a unit that keeps its accumulator the
        operands hold what `beside` of golden/identify/accumulator_faults.py gives, as for diagnose()."""
        if any(each is not None and each.in_order for each in (self.others, self.whole)):
            return np.zeros(len(operands["a"]), np.bool_)  # of dot products by themselves they say nothing
        own = {name: codes for name, codes in operands.items() if name not in BESIDE}
        right, found = ins.dot(**own), np.ones(len(operands["a"]), np.bool_)
        if self.others is not None:
            found &= self.others.results(operands) == right
        if self.whole is not None:
            found &= self.whole.results(operands) != right
        return found

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"slug": self.slug, "text": self.text, "explains": self.explains}


@dataclass(frozen=True)
class Diagnosis:
    """The ranked hypotheses for one instruction and a set of results; `failing` of `total` differ from the
    instruction.

    Of a unit with modes it is one mode's (`instruction`); `note` says in which modes results differ.
    """

    instruction: Instruction
    hypotheses: tuple[Hypothesis, ...]
    failing: int
    total: int
    seconds: float = 0.0
    note: str = ""
    faults: tuple[Fault, ...] = ()
    """Of the best hypothesis, each by itself; empty where it explains too little."""
    known: tuple[str, ...] = ()
    """Where no hypothesis explains enough: what the results say by themselves."""
    further: tuple[Diagnosis, ...] = ()
    """Of a unit with modes: those of modes that the best hypothesis does not explain."""
    partial: tuple[Hypothesis, ...] = ()
    """Where nothing explains every result: what explains some and has no right result wrong, most first. It
    may be a fault beside another one that has no hypothesis."""

    @property
    def explains(self) -> bool:
        """Whether the best hypothesis explains every result, and that of each further mode its own."""
        return bool(self.explaining) and all(one.explains for one in self.further)

    @property
    def explaining(self) -> tuple[Hypothesis, ...]:
        """All hypotheses that explain every result (of a unit with modes every one of this mode), the
        simplest first."""
        return tuple(hypothesis for hypothesis in self.hypotheses if hypothesis.remaining == 0)

    @property
    def explained_by_one(self) -> bool:
        """Whether one change or fault alone explains every result, or nothing does at all."""
        alone = not self.explaining or any("+" not in each.slug for each in self.explaining)
        return alone and not self.further

    @property
    def every_fault(self) -> list[tuple[Instruction, Fault]]:
        """Each fault once, also those of further modes, with the unit that has it."""
        found: dict[str, tuple[Instruction, Fault]] = {}
        for one in (self, *self.further):
            for fault in one.faults:
                found.setdefault(fault.slug, (one.instruction, fault))
        return list(found.values())

    def sentence(self) -> str:
        """The verdict in one sentence (a second one names explanations that the vectors cannot tell from
        the first)."""
        said = [self._verdict(), *([f"{self.note[:1].upper()}{self.note[1:]}"] if self.note else [])]
        return ". ".join([*said, *(f"Beside that {one._verdict()}" for one in self.further)])

    def _verdict(self) -> str:
        name = f"{self.instruction.architecture}:{self.instruction.name}"
        if not self.hypotheses or not self.hypotheses[0].accepted(self.failing):
            facts = "".join(f". {fact[:1].upper()}{fact[1:]}" for fact in self.known)
            return (
                f"no hypothesis explains what differs from {name}, {self.failing:,} of {self.total:,}{facts}"
            )
        best = self.hypotheses[0]
        unit = f"your unit is {name}" if best.slug == "identity" else self._unit(best, name)
        if best.remaining:
            total = self.total if best.failing is None else best.total
            left = f"{best.remaining:,} of {total:,} differ, where {best.of_wrong(self.failing):,} did"
            return f"nothing explains all results; the nearest: {unit}: {left}"
        others = [hypothesis.text for hypothesis in self.explaining[1:_SAID]]
        more = f" and {len(self.explaining) - _SAID} more" if len(self.explaining) > _SAID else ""
        also = f". These vectors cannot tell it from: {'; '.join(others)}{more}" if others else ""
        return f"{unit}: 0 of {best.total:,} differ{also}"

    def _unit(self, best: Hypothesis, name: str) -> str:
        return (
            f"your unit is {best.text}, not {name}" if best.known else f"your unit is {name} with {best.text}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values, stable for machines."""
        return {
            "explains": self.explains,
            "sentence": self.sentence(),
            "failing": self.failing,
            "total": self.total,
            "faults": [fault.as_dict() for _, fault in self.every_fault],
            "known": list(self.known),
            "hypotheses": [hypothesis.as_dict() for hypothesis in self.hypotheses],
        }

    def unit_yaml(self) -> str | None:
        """The best hypothesis as a custom unit, or None where the schema has no words for it."""
        best = self.hypotheses[0] if self.hypotheses else None
        if best is None or best.instruction is None or not best.has_words:
            return None
        return unit_text(best.instruction, "diagnosed", f"{self.instruction.name} with {best.text}")


def names(ins: Instruction) -> set[str]:
    """The names of all single hypotheses about an instruction, but for those that its results suggest
    (`nan-word`, `result-constant`, `known-...`)."""
    if ins.modes is not None:
        units = (unit.stateless for unit in ins.mode_units.values())
        return {wire.slug for wire in (*mode_wires(ins), *mode_skews(ins))}.union(*map(names, units))
    parts: list[Change | Part] = [
        *wires(ins),
        *bare_wires(ins),
        *controls(ins, BESIDE),
        *skews(ins),
        *taps(ins),
        *changes(ins),
    ]
    return {part.slug for part in parts}


def diagnose(
    ins: Instruction,
    operands: Operands,
    actual: npt.ArrayLike | Unit,
    *,
    policy: Policy | None = None,
    budget_seconds: float = 20,
    progress: Progress | None = None,
    budget: Budget | None = None,
) -> Diagnosis:
    """Searches for what a unit computes when it should be `ins`.

    Args:
        operands: as `ins.dot` takes them, one leading dimension (n,). Of the `stateless` unit of one that
            keeps its accumulator also what `beside` of golden/identify/accumulator_faults.py gives.
        actual: the unit's results, raw codes of D's format (n,); or the unit, which is asked for them.
        policy: what counts as equal; None: the same bits.
        budget_seconds: no new combination of changes is tried after this time, in seconds of this thread's
            processor: a busy machine finds the same, later.
        progress: called with (tried, all) hypotheses of the round that runs.
        budget: nothing at all is tried after it is over, by the clock on the wall; None: no such end.

    Raises:
        ShapeError: `actual` is not one result for every dot product.
        DTypeError, OperandError: operands or `actual` are no codes of their formats.
    """
    more = {name: np.asarray(operands[name]) for name in BESIDE if name in operands and not ins.state}
    operands = ins.check_named({name: codes for name, codes in operands.items() if name not in more})
    given: Any = actual.dot(**operands) if hasattr(actual, "dot") and hasattr(actual, "formats") else actual
    results = codes_of(given, ins.formats["d"], "actual")
    if ins.state:  # it held what it answered before: one wrong result does not make the next ones wrong
        more = beside(ins, operands, results)
        ins, operands = ins.stateless, ins.resolve(operands, results)
    if ins.modes is not None:
        return _diagnose_mode(ins, operands, results, policy or _Exact(), budget_seconds, progress, budget)
    search = _Search(ins, operands | more, results, policy or _Exact(), progress, budget)
    return search.run(_clock() + budget_seconds)


@dataclass(frozen=True)
class _Mode:
    """What a unit does in one of its modes; `index`: which of all results."""

    unit: Instruction
    operands: Operands
    actual: Bits
    index: npt.NDArray[np.intp]
    wrong: int

    @property
    def name(self) -> str:
        """As `Instruction.by_mode` calls it."""
        return self.unit.name.partition(" (")[2].rstrip(")")


def _by_mode(ins: Instruction, operands: Operands, actual: Bits, policy: Policy) -> list[_Mode]:
    found = []
    for unit, own, index in ins.by_mode(operands):
        right = policy.equal(unit.formats["d"], unit.dot(**own), actual[index])
        found.append(_Mode(unit, own, actual[index], index, int((~right).sum())))
    return found


def _diagnose_mode(
    ins: Instruction,
    operands: Operands,
    actual: Bits,
    policy: Policy,
    budget_seconds: float,
    progress: Progress | None,
    budget: Budget | None,
) -> Diagnosis:
    """The diagnosis of the mode in which most results differ, and of others that are not explained by what
    explains that one; the note says in which modes any do."""
    if actual.shape != operands["mode"].shape:
        raise ShapeError(
            f"argument 'actual' has shape {actual.shape}, expected one result for each of "
            f"{operands['mode'].shape}"
        )
    until = _clock() + budget_seconds
    modes = _by_mode(ins, operands, actual, policy)
    failing = sorted((mode for mode in modes if mode.wrong), key=lambda mode: -mode.wrong)
    note = modes_in_words([m.name for m in modes if m.wrong], [m.name for m in modes]) if failing else ""
    rewired = rewired_modes(ins, operands, actual, lambda d: policy.equal(ins.formats["d"], d, actual))
    if rewired and failing:
        total, wrong = len(actual), sum(mode.wrong for mode in modes)
        ranked = [
            Hypothesis(
                wire.slug,
                wire.text,
                ins,
                wire.weight,
                start=ins,
                wires=(wire,),
                remaining=0,
                total=total - 2 * wire.in_order,
            )
            for wire in rewired
        ]
        fault = Fault(ranked[0].slug, ranked[0].text, wrong)
        return Diagnosis(ins, tuple(ranked), wrong, total, note=note, faults=(fault,))

    def diagnosed(mode: _Mode) -> Diagnosis:
        left = max(until - _clock(), 0)
        return diagnose(
            mode.unit,
            mode.operands,
            mode.actual,
            policy=policy,
            budget_seconds=left,
            progress=progress,
            budget=budget,
        )

    if (
        crossed := _besides_mode(ins, operands, actual, policy, budget_seconds, progress, budget)
    ) is not None:
        return replace(crossed, note=note)
    worst, *others = failing or modes[:1]
    return _with_further(replace(diagnosed(worst), note=note), worst, others, policy, diagnosed)


def _besides_mode(
    ins: Instruction,
    operands: Operands,
    actual: Bits,
    policy: Policy,
    budget_seconds: float,
    progress: Progress | None,
    budget: Budget | None,
) -> Diagnosis | None:
    """A fault of `mode` with which most results are right, and what explains the others; None where there is
    none, or no hypothesis explains all of them."""
    fmt, best = ins.formats["d"], None
    wrong = ~policy.equal(fmt, ins.dot(**operands), actual)
    least = int(wrong.sum()) // 2
    for wire in mode_wires(ins):
        assert wire.operands is not None
        try:
            left = ~policy.equal(fmt, ins.dot(**wire.operands(operands)), actual)
        except OperandError:  # it leads to a code that the unit does not use
            continue
        if int(left.sum()) < least:
            best, least, still = wire, int(left.sum()), left
    if best is None or best.operands is None:
        return None
    rest = _diagnose_mode(ins, best.operands(operands), actual, policy, budget_seconds, progress, budget)
    if not rest.explains:
        return None
    total, failing = len(actual), int(wrong.sum())
    parts = {part.slug: part for _, part in rest.every_fault}
    slug = "+".join((best.slug, *parts))
    text = " and ".join([best.text, *(part.text for part in parts.values())])
    both = Hypothesis(slug, text, ins, best.weight, start=ins, wires=(best,), remaining=0, total=total)
    mode = Fault(best.slug, best.text, int((wrong & ~still).sum()))
    others = (replace(part, others=None) for part in parts.values())
    return Diagnosis(ins, (both,), failing, total, faults=(mode, *others))


def _with_further(
    first: Diagnosis,
    at: _Mode,
    others: list[_Mode],
    policy: Policy,
    diagnosed: Callable[[_Mode], Diagnosis],
) -> Diagnosis:
    """The diagnosis of a mode, what explains it in most of the others before all that does; and those of
    modes in which that is not all. It ends with one that nothing explains."""
    explaining = first.explaining
    if not explaining or explaining[0].delay:
        return first
    left = {one.slug: [mode for mode in others if not _is_so(one, mode, policy)] for one in explaining}
    best = min(explaining, key=lambda one: sum(mode.wrong for mode in left[one.slug]))
    first = _led_by(first, best)
    unexplained, found = left[best.slug], [(first, at)]
    while unexplained and len(found) <= _MODES and found[-1][0].explaining:
        mode = unexplained.pop(0)
        one = diagnosed(mode)
        also = (each for each in one.explaining if any(_is_so(each, past, policy) for _, past in found))
        said = next(also, None) or next(iter(one.explaining), None)  # of what was found before, the whole
        if said is not None:
            one = _led_by(one, said)
            found = [each for each in found if not _is_so(said, each[1], policy)]
            unexplained = [each for each in unexplained if not _is_so(said, each, policy)]
        found.append((one, mode))
    found[0] = (replace(found[0][0], note=first.note), found[0][1])
    return replace(found[0][0], further=tuple(one for one, _ in found[1:]))


def _led_by(found: Diagnosis, best: Hypothesis) -> Diagnosis:
    """A diagnosis with one of the hypotheses that explain everything before all others."""
    if best is found.hypotheses[0]:
        return found
    ranked = (best, *(one for one in found.hypotheses if one is not best))
    faults = found.faults if "+" in best.slug else (Fault(best.slug, best.text, found.failing),)
    return replace(found, hypotheses=ranked, faults=faults)


def _is_so(found: Hypothesis, mode: _Mode, policy: Policy) -> bool:
    """Whether what explains one mode explains every result of another one."""
    unit: Instruction | None = mode.unit
    for change in found.changes:
        unit = None if unit is None else change.apply(unit)
    if unit is None or found.known or not all(_fits(wire, unit) for wire in found.wires):
        return False
    codes = run(unit, found.wires, mode.operands)
    return bool(policy.equal(unit.formats["d"], codes, mode.actual).all())


@dataclass
class _Scored:
    hypothesis: Hypothesis
    wrong: int
    key: tuple[float, float] = field(default=(0.0, 0.0))


class _Search:
    """The results, the informative part of them, and the hypotheses that were confirmed on all."""

    def __init__(
        self,
        ins: Instruction,
        operands: Operands,
        actual: Bits,
        policy: Policy,
        progress: Progress | None,
        budget: Budget | None,
    ) -> None:
        self.budget = Budget(float("inf")) if budget is None else budget
        self.ins, self.operands, self.actual, self.policy, self.progress = (
            ins,
            operands,
            actual,
            policy,
            progress,
        )
        if actual.shape != operands["a"].shape[:-1] or actual.ndim != 1:
            raise ShapeError(
                f"argument 'actual' has shape {actual.shape}, expected one result for each of "
                f"{operands['a'].shape[:-1]}"
            )
        self.fmt = ins.formats["d"]
        self.expected = run(ins, (), operands)
        self.wrong = ~policy.equal(self.fmt, self.expected, actual)
        self.sample = self._informative()
        self.judged = self._most_informative()
        self.confirmed: dict[str, Hypothesis] = {}
        self.harmless: dict[str, tuple[int, Hypothesis]] = {}
        """What explains some of the sample and has no right result of it wrong, with how many it leaves."""
        self.tried: set[Any] = set()

    def _informative(self) -> npt.NDArray[np.intp]:
        """Indices of some failing and some passing results."""
        rng = np.random.default_rng(1)
        picked = []
        for mask, most in ((self.wrong, _FAILING), (~self.wrong, _PASSING)):
            indices = np.flatnonzero(mask)
            picked.append(rng.choice(indices, most, replace=False) if len(indices) > most else indices)
        return np.concatenate(picked)

    def _most_informative(self) -> npt.NDArray[np.intp]:
        """Indices of the results that faults of the datapath are held against: those that fail, and as many
        that are right, all over the vectors. What makes everything wrong explains whatever fails."""
        if len(self.actual) <= _JUDGED:
            return np.arange(len(self.actual))
        wrong, right = np.flatnonzero(self.wrong), np.flatnonzero(~self.wrong)
        failing = min(len(wrong), max(_JUDGED // 2, _JUDGED - len(right)))
        return np.sort(np.concatenate([evenly(wrong, failing), evenly(right, _JUDGED - failing)]))

    def run(self, deadline: float) -> Diagnosis:
        """Single changes, then changes of the best, as long as nothing explains everything and there is
        time."""
        started = time.monotonic()
        failing = int(self.wrong.sum())
        if not failing:
            same = Hypothesis("identity", "no difference", self.ins, remaining=0, total=len(self.actual))
            return Diagnosis(self.ins, (same,), 0, len(self.actual))
        plain, inside = self._singles(), self._datapath()
        found = self.score(plain)
        self._delays()
        found = self.confirm(found)
        if not self._explained() or failing < _FEW:
            found = self.confirm(sorted([*found, *self.score(inside)], key=_by_what_is_left))
        for _ in range(_DEPTH - 1):
            bases, found = found, []
            for further in (plain, inside):
                if not self._explained() and not self._over(deadline):
                    found += self.confirm(self._combined(bases, further, deadline))
            found.sort(key=_by_what_is_left)
        ranked = self._on_all(self._ranked(failing), deadline)
        if ranked and ranked[0].accepted(failing):
            ranked = (self._needed(ranked[0]), *ranked[1:])
            facts: dict[str, Any] = {"faults": self._faults(ranked[0])}
        else:
            facts = {"known": known(self.ins, self.operands, self.expected, self.wrong, self.actual)}
        if not self._explained():
            facts["partial"] = self._partial()
        return Diagnosis(self.ins, ranked, failing, len(self.actual), time.monotonic() - started, **facts)

    def _over(self, deadline: float = float("inf")) -> bool:
        """Whether the processor's time until a deadline is spent, or the budget is over."""
        return _clock() > deadline or self.budget.over()

    def _needed(self, best: Hypothesis) -> Hypothesis:
        """The best without what its other parts have overtaken: a width that a later change made smaller."""
        parts: tuple[Change | Part, ...] = (*best.changes, *best.wires)
        if best.known or len(parts) < 2:
            return best
        right = self._right(best)
        for part in parts:
            less = _without(best, part)
            if less is not None and not (right & ~self._right(less)).any():
                left = [one for one in parts if one is not part]
                return self._needed(
                    reduce(_named, left, replace(less, slug="", text="", weight=self.base.weight))
                )
        return best

    def _faults(self, best: Hypothesis) -> tuple[Fault, ...]:
        """The faults of a hypothesis, each with what only it explains; most first."""
        parts: tuple[Change | Part, ...] = (*best.changes, *best.wires)
        if len(parts) < 2:
            failing = best.of_wrong(int(self.wrong.sum()))
            return (Fault(best.slug, best.text, max(failing - best.remaining, 0)),)
        right = self._right(best)
        found = []
        for part in parts:
            others = _without(best, part)
            if others is not None:
                explains = int((self.wrong & right & ~self._right(others)).sum())
                found.append(Fault(part.slug, part.text, explains, others, best))
        some = [fault for fault in found if fault.explains]  # of others no operands would show anything
        if len(some) < 2:  # one fault, which takes several words
            return (Fault(best.slug, best.text, int((self.wrong & right).sum())),)
        return tuple(sorted(some, key=lambda fault: -fault.explains))

    def _partial(self) -> tuple[Hypothesis, ...]:
        """What explains some of all results and has none wrong that is right, most first; of several that
        explain the same ones the simplest."""
        wrong, found = self.wrong[self.judged], dict[bytes, tuple[int, Hypothesis]]()
        ranked = sorted(self.harmless.values(), key=lambda each: (each[0], each[1].weight))
        alone = [one for _, one in ranked if "+" not in one.slug and not one.known]
        for one in [*alone[:_HARMLESS], *(each for _, each in ranked if "+" in each.slug)][:_HARMLESS_ALL]:
            missed = self._misses(one, self.judged)
            explained = wrong & ~missed
            if explained.sum() * _LEAST >= wrong.sum() and not (missed & ~wrong).any():
                found.setdefault(explained.tobytes(), (int(explained.sum()), one))
        return tuple(one for _, one in sorted(found.values(), key=lambda each: -each[0]))

    def _right(self, hypothesis: Hypothesis) -> Mask:
        return ~self._misses(hypothesis, np.arange(len(self.actual)))

    def _misses(self, hypothesis: Hypothesis, places: npt.NDArray[np.intp]) -> Mask:
        """Which of these results a hypothesis does not explain. Where it looks at the vectors beside, each
        comes with both; the first and the last one have no partner, tell nothing and do not count."""
        last = len(self.actual) - 1
        beside = np.clip(places[:, None] + [-1, 0, 1], 0, last).reshape(-1)
        given = beside if hypothesis.in_order else places
        codes = hypothesis.results({name: each[given] for name, each in self.operands.items()})
        codes = codes[1::3] if hypothesis.in_order else codes
        missed = ~self.policy.equal(self.fmt, codes, self.actual[places])
        return np.asarray(missed & (places > 0) & (places < last) if hypothesis.in_order else missed)

    def _ranked(self, failing: int) -> tuple[Hypothesis, ...]:
        """All that explain everything, then the nearest; without those that add a change for nothing."""
        ranked: list[Hypothesis] = []
        for hypothesis in sorted(self.confirmed.values(), key=lambda h: (h.remaining, h.weight)):
            parts = set(hypothesis.slug.split("+"))
            if hypothesis.remaining < hypothesis.of_wrong(failing) and not any(
                parts > set(better.slug.split("+")) for better in ranked
            ):
                ranked.append(hypothesis)
        explaining = sum(hypothesis.remaining == 0 for hypothesis in ranked)
        return tuple(ranked[: max(explaining, _SHOWN)])

    def _on_all(self, ranked: tuple[Hypothesis, ...], deadline: float) -> tuple[Hypothesis, ...]:
        """The hypotheses with counts of all results, of which faults of the datapath were held against some:
        the best, and what explains those as well, as far as there is time."""
        found = []
        for number, one in enumerate(ranked):
            of_some = one.failing is not None and len(self.judged) < len(self.actual)
            if of_some and (not number or (number < _SAID and not one.remaining)) and _clock() < deadline:
                parts = np.array_split(np.arange(len(self.actual)), -(-len(self.actual) // _JUDGED))
                left = sum(int(self._misses(one, part).sum()) for part in parts)
                total = len(self.actual) - 2 * one.in_order
                one = replace(one, remaining=left, total=total, failing=None)
                self.confirmed[one.slug] = one
            found.append(one)
        return tuple(sorted(found, key=lambda one: (one.remaining, one.weight)))

    def _explained(self) -> bool:
        return any(hypothesis.remaining == 0 for hypothesis in self.confirmed.values())

    # Hypotheses

    def _singles(self) -> list[Hypothesis]:
        """Every hypothesis with one change, fault of a wire or fault of the datapath."""
        steps = changes(self.ins, self._nan_word())
        changed = (new for change in steps if (new := _changed(self.base, change)) is not None)
        wired = (_wired(self.base, wire) for wire in self._wires())
        return self._different([*changed, *self._known(), *wired])

    def _datapath(self) -> list[Hypothesis]:
        """Every hypothesis with one fault of the datapath: faults for which the schema has no words. They
        take longer."""
        return [_wired(self.base, tap) for tap in taps(self.ins) if not tap.in_order or self._has_order]

    @property
    def base(self) -> Hypothesis:
        """Nothing changed."""
        return Hypothesis("", "", self.ins, 0.0, start=self.ins)

    def _different(self, hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
        """Leaves out those whose program another one had already."""
        found = []
        for hypothesis in hypotheses:
            assert hypothesis.instruction is not None
            formats = tuple(hypothesis.instruction.formats.items())
            wired = frozenset(wire.slug for wire in hypothesis.wires)
            if (key := (arithmetic(hypothesis.instruction), formats, wired)) not in self.tried:
                self.tried.add(key)
                found.append(hypothesis)
        return found

    def _known(self) -> list[Hypothesis]:
        found = []
        for one in relatives(self.ins):
            chain = f" in a chain of {one.links}" if one.links > 1 else ""
            shared = f" (the same on {', '.join(one.shared_by)})" if one.shared_by else ""
            text = f"{one.instruction.architecture}:{one.instruction.name}{chain}{shared}"
            slug = f"known-{one.instruction.architecture}"
            weight = 1.3 + 0.1 * (one.links > 1)
            found.append(Hypothesis(slug, text, one.stretched, weight, known=True, start=one.stretched))
        return found

    def _wires(self) -> list[Wire]:
        """Faults outside the arithmetic; of results that hardly change, that they never do."""
        codes, counts = np.unique(self.actual, return_counts=True)
        stuck = (
            [constant(self.ins, int(codes[counts.argmax()]))] if counts.max() > 0.9 * len(self.actual) else []
        )
        late = skews(self.ins) if self._has_order else []
        return [*wires(self.ins), *bare_wires(self.ins), *late, *stuck, *controls(self.ins, self.operands)]

    @property
    def _has_order(self) -> bool:
        """Whether there are enough results for a shift by one vector not to explain much by chance."""
        return len(self.actual) >= _FEWEST_DELAYED

    def _nan_word(self) -> int | None:
        """The word that the unit answers most often where a NaN is expected, if it is another one."""
        if not self.fmt.is_float:
            return None
        expected_nan = np.isnan(to_float(self.fmt, self.expected))
        answers, counts = np.unique(self.actual[self.wrong & expected_nan], return_counts=True)
        order = np.argsort(-counts)
        words = [int(answers[i]) for i in order if self.fmt.decode(int(answers[i])).kind == Kind.NAN]
        return words[0] if words else None

    def _combined(
        self, bases_found: list[_Scored], singles: list[Hypothesis], deadline: float
    ) -> list[_Scored]:
        """The best hypotheses with one more change each, or one more fault: of those that explain something
        that the best one leaves, or something by themselves; until one explains the whole sample."""
        bases = [scored.hypothesis for scored in bases_found[:_BEAM]]
        if not bases:
            return []
        pool = self._useful(bases[0], singles, deadline)
        pool += self._by_themselves(bases_found, singles, pool)
        found: list[_Scored] = []
        for number, base in enumerate(bases):
            with_this = pool if number < _BASES else [one for one in pool if not one.wires]
            fresh = [new for one in with_this for new in _joined(base, one)]
            found += self.score(self._different(fresh), deadline)
            if any(scored.wrong == 0 for scored in found):  # worse ones are no better with one more
                break
        return sorted(found, key=_by_what_is_left)

    def _by_themselves(
        self, found: list[_Scored], singles: list[Hypothesis], pool: list[Hypothesis]
    ) -> list[Hypothesis]:
        """Those of some hypotheses that are among the best, and those that have no right result wrong, the
        best first: beside the very best one such a fault may not show, as that one explains its results by
        chance."""
        harmless = sorted(self.harmless.values(), key=lambda each: (each[0], each[1].weight))
        likely = [*(one.hypothesis for one in found[:_BEAM]), *(one for _, one in harmless[:_HARMLESS])]
        slugs, had = {one.slug for one in likely}, {one.slug for one in pool}
        return [one for one in singles if one.slug in slugs - had and not one.known]

    def _useful(self, best: Hypothesis, singles: list[Hypothesis], deadline: float) -> list[Hypothesis]:
        """Hypotheses that explain some of what the best one leaves, most first. What it leaves joins the
        sample: a fault that shows seldom is in it then."""
        left = self._left(best)
        if len(left) > _LEFT:
            left = np.random.default_rng(2).choice(left, _LEFT, replace=False)
        self.sample = np.union1d(self.sample, left)
        found: list[tuple[int, float, int, Hypothesis]] = []
        for one in singles:
            if self._over(deadline):
                break
            if one.known:
                continue
            # it shows on top of the best one or, where it is quickly tried, may do so by itself
            on_top = _joined(best, one)
            tried = [*on_top, *([one] if not one.taps or not on_top else [])]
            right = len(left) - min(self._wrong(each, left) for each in tried)
            if right:
                found.append((-right, one.weight, len(found), one))
        return [one for *_, one in sorted(found)[:_POOL]]

    # Scoring

    def score(self, hypotheses: list[Hypothesis], deadline: float = float("inf")) -> list[_Scored]:
        """Hypotheses that explain something, by how many results of the sample they leave."""
        hypotheses = self._passed_on(hypotheses, deadline)
        base = int(self.wrong[self.sample].sum())
        scored = []
        for index, hypothesis in enumerate(hypotheses):
            if index % 64 == 0 and self.progress is not None:
                self.progress(index, len(hypotheses))
            if self._over(deadline):
                break
            missed = self._misses(hypothesis, self.sample)
            wrong = int(missed.sum())
            if wrong < base:
                scored.append(_Scored(hypothesis, wrong))
                if not (missed & ~self.wrong[self.sample]).any():
                    self.harmless[hypothesis.slug] = (wrong, hypothesis)
        return sorted(scored, key=_by_what_is_left)

    def _passed_on(self, hypotheses: list[Hypothesis], deadline: float) -> list[Hypothesis]:
        """Leaves out faults of the datapath that explain little of a few results."""
        slow = [one for one in hypotheses if one.taps]
        if len(slow) <= _PASSED_ON:
            return hypotheses
        failing = self.wrong[self.sample]
        quick = np.concatenate([self.sample[failing][:_QUICK], self.sample[~failing][:_QUICK]])
        found, harmless = [], []
        for index, one in enumerate(slow):
            if index % 64 == 0 and self.progress is not None:
                self.progress(index, len(slow))
            if self._over(deadline):
                break
            missed = self._misses(one, quick)
            found.append((int(missed.sum()), one.weight, index, one))
            if not (missed & ~self.wrong[quick]).any():  # it may be one fault of several
                harmless.append(found[-1])
        ranked = [*sorted(found)[:_PASSED_ON], *sorted(harmless)[:_ALSO]]
        kept = {id(one) for *_, one in ranked}
        return [one for one in hypotheses if not one.taps or id(one) in kept]

    def _wrong(self, hypothesis: Hypothesis, places: npt.NDArray[np.intp]) -> int:
        return int(self._misses(hypothesis, places).sum())

    def confirm(self, found: list[_Scored]) -> list[_Scored]:
        """Counts on all results what the best hypotheses leave; returns all, sorted anew where the sample
        had misled."""
        for _ in range(_ROUNDS):
            missed = self._confirm_best(found)
            if not len(missed) or self._explained():
                break
            self.sample = np.union1d(self.sample, missed)
            found = self.score([scored.hypothesis for scored in found])
        return found

    def _confirm_best(self, found: list[_Scored]) -> npt.NDArray[np.intp]:
        """Counts on all results; returns some of those that speak against what explains the whole sample."""
        exact = [scored for scored in found if scored.wrong == 0]
        missed = [np.zeros(0, np.intp)]
        for scored in [*exact[: 4 * _CONFIRMED], *found[len(exact) : len(exact) + _CONFIRMED]]:
            hypothesis = scored.hypothesis
            if hypothesis.slug in self.confirmed:
                continue
            if self.confirmed and self._over():  # the best one is counted in any case
                break
            wrong = self._left(hypothesis)
            part = hypothesis.taps and len(self.judged) < len(self.actual)
            total = len(self.judged if part else self.actual) - 2 * hypothesis.in_order
            failing = int(self.wrong[self.judged].sum()) if part else None
            self.confirmed[hypothesis.slug] = replace(
                hypothesis, remaining=len(wrong), total=total, failing=failing
            )
            missed += [wrong[:_MISSED]] if scored.wrong == 0 else []
        return np.concatenate(missed)

    def _left(self, hypothesis: Hypothesis) -> npt.NDArray[np.intp]:
        """Indices of the results that a hypothesis does not explain, of all that it is held against."""
        judged = self.judged if hypothesis.taps else np.arange(len(self.actual))
        return judged[self._misses(hypothesis, judged)]

    def _delays(self) -> None:
        """Results that belong to a vector before or after; those without a partner tell nothing and do not
        count."""
        if not self._has_order:
            return
        for delay in _LATE:
            count = "one" if abs(delay) == 1 else f"{abs(delay)}"
            slug = f"{'delayed' if delay > 0 else 'early'}-by-{count}"
            vectors = "one vector" if abs(delay) == 1 else f"{count} vectors"
            text = f"results that are {'late' if delay > 0 else 'early'} by {vectors}"
            shifted = self.policy.equal(self.fmt, np.roll(self.expected, delay), self.actual)
            left = int((~(shifted[delay:] if delay > 0 else shifted[:delay])).sum())
            self.confirmed[slug] = Hypothesis(
                slug, text, self.ins, 1.0, delay=delay, remaining=left, total=len(self.actual) - abs(delay)
            )


def _changed(base: Hypothesis, change: Change) -> Hypothesis | None:
    """A hypothesis with one more change, or None where the change means nothing there or is part of it
    already."""
    assert base.instruction is not None
    if change.slug in base.slug.split("+"):
        return None
    new = change.apply(base.instruction)
    if new is None or not all(_fits(wire, new) for wire in base.wires):
        return None
    return replace(
        _named(base, change),
        instruction=new,
        changes=(*base.changes, change),
    )


def _by_what_is_left(scored: _Scored) -> tuple[int, float]:
    return scored.wrong, scored.hypothesis.weight


def _wired(base: Hypothesis, fault: Part) -> Hypothesis:
    """A hypothesis with one fault of its wires or of its datapath more."""
    return replace(_named(base, fault), wires=(*base.wires, fault))


def _fits(fault: Part, ins: Instruction) -> bool:
    """Whether an instruction, perhaps a changed one, can have the fault."""
    return isinstance(fault, Wire) or fault.slug in {tap.slug for tap in taps(ins)}


def _joined(base: Hypothesis, other: Hypothesis) -> list[Hypothesis]:
    """A hypothesis with the one change or fault of another; nothing where the two do not go together."""
    assert base.instruction is not None
    if set(other.slug.split("+")) & set(base.slug.split("+")):
        return []
    if other.wires:
        own = not base.changes and base.start is other.start  # the instruction that it was made for
        return [_wired(base, other.wires[0])] if own or _fits(other.wires[0], base.instruction) else []
    new = _changed(base, other.changes[0])
    return [] if new is None else [new]


def _named(base: Hypothesis, part: Change | Part) -> Hypothesis:
    """A hypothesis whose name has one part more."""
    slug = "+".join(sorted(filter(None, (base.slug, part.slug))))
    joined = " with " if base.known and "+" not in base.slug else " and "
    text = f"{base.text}{joined}{part.text}" if base.text else part.text
    return replace(base, slug=slug, text=text, weight=base.weight + part.weight)


def _without(hypothesis: Hypothesis, part: Change | Part) -> Hypothesis | None:
    """A hypothesis without one of its parts; None where the others mean nothing then."""
    instruction = hypothesis.start
    for change in hypothesis.changes:
        if change is not part and instruction is not None:
            instruction = change.apply(instruction)
    if instruction is None:
        return None
    changed = tuple(change for change in hypothesis.changes if change is not part)
    wired = tuple(wire for wire in hypothesis.wires if wire is not part)
    return replace(hypothesis, instruction=instruction, changes=changed, wires=wired)
