"""The diagnosis: the hypotheses that explain all results of a unit, or the nearest one and what it leaves.

    found = diagnose(golden.instruction("hopper", "HMMA.16816.F32"), operands, what_the_dut_answered)
    print(found.sentence())       # "your unit is hopper:mma... with one fault: F = 24 instead of 25.
    0 of 200,000 differ"

The space is that of golden/identify/diagnose/mutations, and the catalogued instructions of
golden/catalog/relatives.py. golden/identify/diagnose/ranking.py searches it. An explanation of all results
need not be the cause: other faults that the vectors do not distinguish from it are listed with it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.budget import Budget
from golden.catalog.unit_text import unit_text
from golden.errors import OperandError, ShapeError, listed
from golden.identify.diagnose.conditions import known
from golden.identify.diagnose.hypothesis import Hypothesis, fits
from golden.identify.diagnose.mutations import CONTEXT, names
from golden.identify.diagnose.mutations.accumulator import context_of
from golden.identify.diagnose.mutations.modes import mode_ports, modes_in_words, rewired_modes
from golden.identify.diagnose.policy import SEARCH
from golden.identify.diagnose.ranking import Equality, HypothesisSearch, Progress, Results
from golden.model.instruction import Instruction
from golden.number.arrays import codes as codes_of
from golden.number.formats import Format
from golden.program.signature import Bits, Operands
from golden.proof.equality import counterexample
from golden.unit import Unit

__all__ = ["ACCEPTED", "Diagnosis", "Fault", "Hypothesis", "diagnose", "names"]

Mask = npt.NDArray[np.bool_]
ACCEPTED = SEARCH.accepted
"""The share of the wrong results that an accepted hypothesis may leave."""


class _Exact:
    def equal(self, fmt: Format, expected: Bits, actual: Bits) -> Mask:
        """The same bits."""
        return np.asarray(expected == actual)


@dataclass(frozen=True)
class Fault:
    """One of the faults of a unit.

    Attributes:
        slug, text: as of a hypothesis.
        explains: wrong results that become right without it, and only without it.
        others: the unit without this fault; None: the intended unit.
        whole: the unit with this fault; None if it has no other.
    """

    slug: str
    text: str
    explains: int
    others: Hypothesis | None = None
    whole: Hypothesis | None = None

    def alone(self, ins: Instruction, operands: Operands) -> Mask:
        """Dot products that show this fault and no other, (n,); `operands` as diagnose() takes them."""
        if any(each is not None and each.in_order for each in (self.others, self.whole)):
            return np.zeros(len(operands["a"]), np.bool_)  # of dot products by themselves they say nothing
        own = {name: codes for name, codes in operands.items() if name not in CONTEXT}
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

    For a unit with modes it covers one mode (`instruction`); `note` names the modes in which results differ.
    """

    instruction: Instruction
    hypotheses: tuple[Hypothesis, ...]
    failing: int
    total: int
    seconds: float = 0.0
    note: str = ""
    faults: tuple[Fault, ...] = ()
    """The faults of the best hypothesis, each by itself; empty if it explains too little."""
    known: tuple[str, ...] = ()
    """If no hypothesis explains enough: facts about the results."""
    further: tuple[Diagnosis, ...] = ()
    """For a unit with modes: diagnoses of modes that the best hypothesis does not explain."""

    @property
    def explains(self) -> bool:
        """Whether the best hypothesis explains every result, and the best one of each further mode its
        own."""
        return bool(self.explaining) and all(one.explains for one in self.further)

    @property
    def explaining(self) -> tuple[Hypothesis, ...]:
        """All hypotheses that explain every result (for a unit with modes every one of this mode), the
        simplest first."""
        return tuple(hypothesis for hypothesis in self.hypotheses if hypothesis.remaining == 0)

    def between(self, seconds: float = 20.0) -> Operands | None:
        """Operands (n, ...) on which the best explanation and others of the same results differ, as a solver
        finds them (golden/proof): ask the unit for these, and one less is left. None where none were found,
        where the others are no units of the language, or where the solver is not installed.

        Args:
            seconds: of all; each pair has an equal share.
        """
        if not self.explaining or not self.explaining[0].has_words:
            return None
        best, *others = (one.known_instruction for one in self.explaining if one.has_words)
        found: list[Operands] = []
        for other in others:
            shown = counterexample(best, other, seconds / len(others))
            found += [] if shown is None else [shown]
        return {name: np.stack([one[name] for one in found]) for name in found[0]} if found else None

    @property
    def explained_by_one(self) -> bool:
        """Whether one change or fault alone explains every result, or nothing does at all."""
        alone = not self.explaining or any("+" not in each.slug for each in self.explaining)
        return alone and not self.further

    @property
    def explained_by_symptom(self) -> bool:
        """Whether what explains every result says how the results look, and names no cause."""
        return self.explains and all(one.symptom for one in self.explaining)

    @property
    def every_fault(self) -> list[tuple[Instruction, Fault]]:
        """Each fault once, including those of further modes, with the unit that has it."""
        found: dict[str, tuple[Instruction, Fault]] = {}
        for one in (self, *self.further):
            for fault in one.faults:
                found.setdefault(fault.slug, (one.instruction, fault))
        return list(found.values())

    def sentence(self) -> str:
        """The verdict in one sentence (a second one names explanations that the vectors do not distinguish
        from the first)."""
        said = [self._verdict(), *([f"{self.note[:1].upper()}{self.note[1:]}"] if self.note else [])]
        return ". ".join([*said, *(f"In other modes {one._verdict()}" for one in self.further)])

    def _verdict(self) -> str:
        name = f"{self.instruction.architecture}:{self.instruction.name}"
        if not self.hypotheses or not self.hypotheses[0].accepted(self.failing):
            facts = "".join(f". {fact[:1].upper()}{fact[1:]}" for fact in self.known)
            said = f"no hypothesis that was tried explains what differs from {name}"
            return f"{said}, {self.failing:,} of {self.total:,}{facts}"
        best = self.hypotheses[0]
        # Of some vectors: a hypothesis that is slow to run is counted on a part of them.
        part = best.failing is not None and best.total != self.total
        among = f"the {best.total:,} vectors that it was tried on" if part else f"{self.total:,}"
        if best.remaining:
            nearest = self._unit(best, name).removeprefix("your unit is ")
            left = f"{best.remaining:,} of {among} differ, where {best.of_wrong(self.failing):,} did"
            return f"no hypothesis that was tried explains all results. The nearest is {nearest}{left}"
        unit = self._unit(best, name)
        others = listed([one.text for one in self.explaining[1:]], SEARCH.named - 1, "; ")
        also = f". Equally consistent with these vectors: {others}" if others else ""
        return f"{unit}0 of {among} differ{also}"

    def _unit(self, best: Hypothesis, name: str) -> str:
        """The unit in words, up to the counts."""
        if best.slug == "identity":
            return f"your unit is {name}: "
        if best.known:
            return f"your unit is {best.text}, not {name}: "
        count = len(best.slug.split("+"))
        faults = "one fault" if count == 1 else f"{count} faults"
        return f"your unit is {name} with {faults}: {best.text}. "

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
        """The best hypothesis as a custom unit, or None if the schema cannot express it."""
        best = self.hypotheses[0] if self.hypotheses else None
        if best is None or best.instruction is None or not best.has_words:
            return None
        return unit_text(best.instruction, "diagnosed", f"{self.instruction.name} with {best.text}")


def diagnose(
    ins: Instruction,
    operands: Operands,
    actual: npt.ArrayLike | Unit,
    *,
    policy: Equality | None = None,
    budget_seconds: float = 20,
    progress: Progress | None = None,
    budget: Budget | None = None,
    combining: Budget | None = None,
    shown: Wrong | None = None,
) -> Diagnosis:
    """Searches for what a unit computes when it should be `ins`.

    Args:
        operands: as `ins.dot` takes them, one leading dimension (n,). For the `stateless` unit of one that
            keeps its accumulator also the result of `context_of`
            (golden/identify/diagnose/mutations/accumulator.py).
        actual: the unit's results, raw codes of D's format (n,); or the unit itself, which then computes
            them.
        policy: what counts as equal; None: the same bits.
        budget_seconds: no new combination of changes is tried after this time, in seconds of this thread's
            processor: a busy machine finds the same, later.
        progress: called with (tried, all) hypotheses of the pass that runs.
        budget: nothing at all is tried after it is over, by the wall clock; None: no limit.
        combining: the time for combinations, in place of `budget_seconds`.
        shown: a wrong dot product of the unit that is not among `operands`, such as the smallest one: what is
            said of the wrong results has to hold for it, too.

    Raises:
        ShapeError: `actual` is not one result for every dot product.
        DTypeError, OperandError: operands or `actual` are no codes of their formats.
    """
    # 1. The operands and the results, checked; in addition what a fault of a register may show instead.
    more = {name: np.asarray(operands[name]) for name in CONTEXT if name in operands and not ins.state}
    operands = ins.check_named({name: codes for name, codes in operands.items() if name not in more})
    given: Any = actual.dot(**operands) if hasattr(actual, "dot") and hasattr(actual, "formats") else actual
    results = codes_of(given, ins.formats["d"], "actual")
    if ins.state:  # it held what it answered before: one wrong result does not make the next ones wrong
        more = context_of(ins, operands, results)
        ins, operands = ins.stateless, ins.resolve(operands, results)
    elif ins.modes is None and results.ndim == 1:
        more |= {"answered": np.roll(results, 1)}
    # 2. One result for each dot product, or a hypothesis would be counted on other results than its own.
    expected = operands["mode" if ins.modes is not None else "a"]
    shape = expected.shape if ins.modes is not None else expected.shape[:-1]
    if results.shape != shape or results.ndim != 1:
        raise ShapeError(
            f"argument 'actual' has shape {results.shape}, expected one result for each of {shape}"
        )
    # 3. The search; combinations of faults get the processor time that was asked for, single faults all they
    # need.
    request = _Request(
        policy or _Exact(),
        Budget(float("inf")) if budget is None else budget,
        combining or Budget(budget_seconds, clock=time.thread_time),
        progress,
        shown,
    )
    if ins.modes is not None:
        return _of_modes(ins, operands, results, request)
    return _of_one(ins, operands | more, results, request)


@dataclass(frozen=True)
class Wrong:
    """A wrong dot product.

    Attributes:
        unit: the name of the unit, for one with modes of the unit in its mode.
        operands: its codes by name, as `dot` takes them, without a leading dimension.
        actual: the code that came.
    """

    unit: str
    operands: Operands
    actual: int


@dataclass(frozen=True)
class _Request:
    """The options of a diagnosis: what is equal, the budgets, and the progress callback."""

    equality: Equality
    budget: Budget
    combining: Budget
    progress: Progress | None
    shown: Wrong | None

    def right(self, unit: Instruction, codes: Bits, actual: Bits) -> Mask:
        """Where results are what they should be."""
        return self.equality.equal(unit.formats["d"], codes, actual)


# A unit of one mode -----------------------------------------------------------------------------------------


def _of_one(ins: Instruction, operands: Operands, actual: Bits, request: _Request) -> Diagnosis:
    started = time.monotonic()
    results = Results(ins, operands, actual, request.equality)
    failing, total = results.failing, len(actual)
    if not failing:
        same = Hypothesis("identity", "no difference", ins, remaining=0, total=total)
        return Diagnosis(ins, (same,), 0, total)
    # 1. The search ranks hypotheses; each of the result is counted on all results, not on a sample.
    search = HypothesisSearch(results, request.budget, request.combining, request.progress)
    ranked = search.run()
    faults: tuple[Fault, ...] = ()
    said: tuple[str, ...] = ()
    # 2. An accepted hypothesis loses its parts without effect, so that every named fault explains something.
    # Without one, facts about the results are all that is known.
    if ranked and ranked[0].accepted(failing):
        ranked = (_needed(results, ranked[0]), *ranked[1:])
        faults = _faults(results, ranked[0])
    else:
        said = _known(results, request.shown)
    seconds = time.monotonic() - started
    return Diagnosis(ins, ranked, failing, total, seconds, faults=faults, known=said)


def _known(results: Results, shown: Wrong | None) -> tuple[str, ...]:
    """Facts about the wrong results, and about the one that is shown if it is of this unit."""
    ins, operands = results.ins, results.operands
    expected, wrong, actual = results.expected, results.wrong, results.actual
    own = {name: codes for name, codes in operands.items() if name not in CONTEXT}
    if shown is None or shown.unit != ins.name or shown.operands.keys() != own.keys():
        return known(ins, operands, expected, wrong, actual)
    one = {name: np.asarray(codes, own[name].dtype)[None] for name, codes in shown.operands.items()}
    same = np.all([(own[name] == one[name]).reshape(len(wrong), -1).all(axis=1) for name in own], axis=0)
    if same.any():
        return known(ins, operands, expected, wrong, actual)
    before = {name: np.zeros_like(codes[:1]) for name, codes in operands.items() if name in CONTEXT}
    together = {name: np.concatenate([codes, (one | before)[name]]) for name, codes in operands.items()}
    said = known(
        ins,
        together,
        np.append(expected, ins.dot(**one).astype(expected.dtype)),
        np.append(wrong, True),
        np.append(actual, np.asarray(shown.actual, actual.dtype)),
    )
    return (*said, "the smallest operands that fail are counted as one more") if said else ()


def _needed(results: Results, best: Hypothesis) -> Hypothesis:
    """The best hypothesis without parts that others made ineffective: a width that a later change made
    smaller."""
    if best.known or len(best.mutations) < 2:
        return best
    right = results.right(best)
    for one in best.mutations:
        less = best.without(one)
        if less is not None and not (right & ~results.right(less)).any():
            return _needed(results, less)
    return best


def _faults(results: Results, best: Hypothesis) -> tuple[Fault, ...]:
    """The faults of a hypothesis, each with the results that only it explains; most first."""
    if len(best.mutations) < 2:
        failing = best.of_wrong(results.failing)
        return (Fault(best.slug, best.text, max(failing - best.remaining, 0)),)
    right = results.right(best)
    found = []
    for one in best.mutations:
        others = best.without(one)
        if others is not None:
            explains = int((results.wrong & right & ~results.right(others)).sum())
            found.append(Fault(one.slug, one.text, explains, others, best))
    some = [fault for fault in found if fault.explains]  # of others no operands would show anything
    if len(some) < 2:  # one fault, which takes several words
        return (Fault(best.slug, best.text, int((results.wrong & right).sum())),)
    return tuple(sorted(some, key=lambda fault: -fault.explains))


# A unit with modes ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Mode:
    """The results of a unit in one of its modes; `wrong`: how many are wrong."""

    unit: Instruction
    operands: Operands
    actual: Bits
    wrong: int

    @property
    def name(self) -> str:
        """The name that `Instruction.by_mode` gives."""
        return self.unit.name.partition(" (")[2].rstrip(")")

    def explained(self, one: Hypothesis, request: _Request) -> bool:
        """Whether the explanation of another mode explains every result of this one."""
        there = replace(one, start=self.unit)
        if one.known or there.instruction is None:
            return False
        if not all(fits(part, there.instruction) for part in there.outside):
            return False
        return bool(request.right(self.unit, there.results(self.operands), self.actual).all())


def _of_modes(ins: Instruction, operands: Operands, actual: Bits, request: _Request) -> Diagnosis:
    """The diagnosis of the mode in which most results differ, and of others that it does not explain; the
    note names the modes with wrong results."""
    # 1. Each mode is compared with its own unit: a mode without wrong results needs no diagnosis.
    modes = []
    for unit, own, index in ins.by_mode(operands):
        wrong = int((~request.right(unit, unit.dot(**own), actual[index])).sum())
        modes.append(_Mode(unit, own, actual[index], wrong))
    failing = sorted((mode for mode in modes if mode.wrong), key=lambda mode: -mode.wrong)
    if not failing:
        return _of_one(modes[0].unit, modes[0].operands, modes[0].actual, request)
    note = modes_in_words([m.name for m in modes if m.wrong], [m.name for m in modes])
    # 2. A fault of the mode input explains several modes at once, so it comes before faults of single modes.
    found = _of_the_mode(ins, operands, actual, request) or _of_the_mode_and_more(
        ins, operands, actual, request
    )
    return replace(_of_each(failing, request) if found is None else found, note=note)


def _of_the_mode(ins: Instruction, operands: Operands, actual: Bits, request: _Request) -> Diagnosis | None:
    """Faults of `mode` that explain every result, or operands of another vector that do."""
    rewired = rewired_modes(ins, operands, actual, lambda codes: request.right(ins, codes, actual))
    if not rewired:
        return None
    total, wrong = len(actual), int((~request.right(ins, ins.dot(**operands), actual)).sum())
    ranked = tuple(
        Hypothesis(
            one.slug, one.text, ins, one.weight, mutations=(one,), remaining=0, total=total - 2 * one.in_order
        )
        for one in rewired
    )
    return Diagnosis(ins, ranked, wrong, total, faults=(Fault(ranked[0].slug, ranked[0].text, wrong),))


def _of_the_mode_and_more(
    ins: Instruction, operands: Operands, actual: Bits, request: _Request
) -> Diagnosis | None:
    """A fault of `mode` with which most results are right, and explanations of the others; None if there is
    none, or no hypothesis explains all of them."""
    wrong = ~request.right(ins, ins.dot(**operands), actual)
    least, best, still = int(wrong.sum()) // 2, None, wrong
    for one in mode_ports(ins):
        assert one.operands is not None
        try:
            left = ~request.right(ins, ins.dot(**one.operands(operands)), actual)
        except OperandError:  # it leads to a code that the unit does not use
            continue
        if int(left.sum()) < least:
            best, least, still = one, int(left.sum()), left
    if best is None or best.operands is None:
        return None
    rest = _of_modes(ins, best.operands(operands), actual, request)
    if not rest.explains:
        return None
    parts = {part.slug: part for _, part in rest.every_fault}
    slug = "+".join((best.slug, *parts))
    text = " and ".join([best.text, *(part.text for part in parts.values())])
    total, failing = len(actual), int(wrong.sum())
    both = Hypothesis(slug, text, ins, best.weight, mutations=(best,), remaining=0, total=total)
    mode = Fault(best.slug, best.text, int((wrong & ~still).sum()))
    others = (replace(part, others=None) for part in parts.values())
    return Diagnosis(ins, (both,), failing, total, faults=(mode, *others))


def _of_each(failing: list[_Mode], request: _Request) -> Diagnosis:
    """The diagnosis of one mode, led by the explanation that holds in most other modes; and diagnoses of
    modes that it does not explain. It ends with a mode that nothing explains."""
    at, *others = failing
    first = _of_one(at.unit, at.operands, at.actual, request)
    explaining = first.explaining
    if not explaining or explaining[0].delay:
        return first
    left = {one.slug: [mode for mode in others if not mode.explained(one, request)] for one in explaining}
    best = min(explaining, key=lambda one: sum(mode.wrong for mode in left[one.slug]))
    unexplained, found = left[best.slug], [(_led_by(first, best), at)]
    # Each turn diagnoses one mode that the explanations so far do not cover; an explanation that also covers
    # the modes of earlier ones replaces them.
    while unexplained and len(found) <= SEARCH.modes and found[-1][0].explaining:
        mode = unexplained.pop(0)
        one = _of_one(mode.unit, mode.operands, mode.actual, request)
        also = (each for each in one.explaining if any(past.explained(each, request) for _, past in found))
        said = next(also, None) or next(iter(one.explaining), None)  # of what was found before, the whole
        if said is not None:
            one = _led_by(one, said)
            found = [each for each in found if not each[1].explained(said, request)]
            unexplained = [each for each in unexplained if not each.explained(said, request)]
        found.append((one, mode))
    return replace(found[0][0], further=tuple(one for one, _ in found[1:]))


def _led_by(found: Diagnosis, best: Hypothesis) -> Diagnosis:
    """A diagnosis with one of its complete explanations moved to the front."""
    if best is found.hypotheses[0]:
        return found
    ranked = (best, *(one for one in found.hypotheses if one is not best))
    faults = found.faults if "+" in best.slug else (Fault(best.slug, best.text, found.failing),)
    return replace(found, hypotheses=ranked, faults=faults)
