"""What a unit computes instead: the hypotheses that explain all its results, or the nearest one and what is
left.

    found = diagnose(golden.instruction("hopper", "HMMA.16816.F32"), operands, what_the_dut_answered)
    print(found.sentence())       # "your unit is hopper:mma... with F = 24 instead of 25: 0 of 200,000
    differ"

The space is that of the schema: every single change of golden/dissect/hypotheses.py, the catalogued
instructions of golden/catalog/relatives.py, faults of the wiring, and changes of the best of those. A few
hundred informative results sort the hypotheses; the best ones are then held against every result. What
explains all results need not be the cause: a fault that the vectors cannot tell apart is listed beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.catalog.relatives import arithmetic, relatives
from golden.catalog.unit_text import unit_text
from golden.dissect.hypotheses import Change, changes
from golden.errors import ShapeError
from golden.instruction import Instruction
from golden.number.arrays import codes as codes_of
from golden.number.formats import Format, Kind, to_float
from golden.program.signature import Bits, Operands
from golden.unit import Unit

Mask = npt.NDArray[np.bool_]
Progress = Callable[[int, int], None]
_FAILING, _PASSING = 384, 384
_BEAM, _CONFIRMED, _SHOWN = 14, 6, 8
_DEPTH = 3
_MISSED = 32
_FEWEST_DELAYED = 16
"""Results below which a shift by one vector explains too much by chance."""


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
    """One explanation. `remaining` of `total` results still differ; `instruction` computes it, `rewire` the
    operands.

    `slug`: stable names of its changes, joined with "+". `text`: the changes in words.
    `delay`: result i belongs to vector i - delay.
    """

    slug: str
    text: str
    instruction: Instruction | None
    weight: float = 1.0
    known: bool = False
    rewire: Callable[[Operands], Operands] | None = None
    delay: int = 0
    constant: int | None = None
    remaining: int = -1
    total: int = 0

    def results(self, operands: Operands) -> Bits:
        """What the unit would answer (`delay` left out)."""
        assert self.instruction is not None
        if self.constant is not None:
            fmt = self.instruction.formats["d"]
            return np.full(len(operands["a"]), self.constant, fmt.dtype)
        return self.instruction.dot(**(self.rewire(operands) if self.rewire else operands))

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"slug": self.slug, "text": self.text, "remaining": self.remaining, "total": self.total}


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

    @property
    def explains(self) -> bool:
        """Whether the best hypothesis explains every result."""
        return bool(self.hypotheses) and self.hypotheses[0].remaining == 0

    @property
    def explaining(self) -> tuple[Hypothesis, ...]:
        """All hypotheses that explain every result, the simplest first."""
        return tuple(hypothesis for hypothesis in self.hypotheses if hypothesis.remaining == 0)

    def sentence(self) -> str:
        """The verdict in one sentence (a second one names explanations that the vectors cannot tell from
        the first)."""
        return f"{self._verdict()}. {self.note[:1].upper()}{self.note[1:]}" if self.note else self._verdict()

    def _verdict(self) -> str:
        name = f"{self.instruction.architecture}:{self.instruction.name}"
        if not self.hypotheses:
            return f"no hypothesis comes nearer than {name} itself: {self.failing:,} of {self.total:,} differ"
        best = self.hypotheses[0]
        unit = f"your unit is {name}" if best.slug == "identity" else self._unit(best, name)
        if best.remaining:
            left = f"{best.remaining:,} of {self.total:,} differ, where {self.failing:,} did"
            return f"nothing explains all results; the nearest: {unit}: {left}"
        others = [hypothesis.text for hypothesis in self.explaining[1:4]]
        more = f" and {len(self.explaining) - 4} more" if len(self.explaining) > 4 else ""
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
            "hypotheses": [hypothesis.as_dict() for hypothesis in self.hypotheses],
        }

    def unit_yaml(self) -> str | None:
        """The best hypothesis as a custom unit, or None where the schema has no words for it."""
        best = self.hypotheses[0] if self.hypotheses else None
        if best is None or best.instruction is None or best.rewire or best.delay or best.constant is not None:
            return None
        return unit_text(best.instruction, "diagnosed", f"{self.instruction.name} with {best.text}")


def diagnose(
    ins: Instruction,
    operands: Operands,
    actual: npt.ArrayLike | Unit,
    *,
    policy: Policy | None = None,
    budget_seconds: float = 20,
    progress: Progress | None = None,
) -> Diagnosis:
    """Searches for what a unit computes when it should be `ins`.

    Args:
        operands: as `ins.dot` takes them, one leading dimension (n,).
        actual: the unit's results, raw codes of D's format (n,); or the unit, which is asked for them.
        policy: what counts as equal; None: the same bits.
        budget_seconds: no new combination of changes is tried after this time.
        progress: called with (tried, all) hypotheses of the round that runs.

    Raises:
        ShapeError: `actual` is not one result for every dot product.
        DTypeError, OperandError: operands or `actual` are no codes of their formats.
    """
    operands = ins.check_named(operands)
    given: Any = actual.dot(**operands) if hasattr(actual, "dot") and hasattr(actual, "formats") else actual
    results = codes_of(given, ins.formats["d"], "actual")
    if ins.state:  # it held what it answered before: one wrong result does not make the next ones wrong
        ins, operands = ins.stateless, ins.resolve(operands, results)
    if ins.modes is not None:
        return _diagnose_mode(ins, operands, results, policy or _Exact(), budget_seconds, progress)
    search = _Search(ins, operands, results, policy or _Exact(), progress)
    return search.run(time.monotonic() + budget_seconds)


def _diagnose_mode(
    ins: Instruction,
    operands: Operands,
    actual: Bits,
    policy: Policy,
    budget_seconds: float,
    progress: Progress | None,
) -> Diagnosis:
    """The diagnosis of the mode in which most results differ; the note says in which modes any do."""
    if actual.shape != operands["mode"].shape:
        raise ShapeError(
            f"argument 'actual' has shape {actual.shape}, expected one result for each of "
            f"{operands['mode'].shape}"
        )
    found = []
    for unit, own, index in ins.by_mode(operands):
        wrong = int((~policy.equal(unit.formats["d"], unit.dot(**own), actual[index])).sum())
        found.append((wrong, unit, own, index))
    worst = max(found, key=lambda one: one[0])
    failing = [unit for wrong, unit, _, _ in found if wrong]
    named = "; ".join(unit.name.partition(" (")[2].rstrip(")") for unit in failing[:8])
    more = f" and {len(failing) - 8} more" if len(failing) > 8 else ""
    note = f"results differ in {len(failing)} of {len(found)} modes ({named}{more})" if failing else ""
    diagnosis = diagnose(
        worst[1], worst[2], actual[worst[3]], policy=policy, budget_seconds=budget_seconds, progress=progress
    )
    return replace(diagnosis, note=note)


@dataclass
class _Scored:
    hypothesis: Hypothesis
    wrong: int
    key: tuple[float, float] = field(default=(0.0, 0.0))


class _Search:
    """The results, the informative part of them, and the hypotheses that were confirmed on all."""

    def __init__(
        self, ins: Instruction, operands: Operands, actual: Bits, policy: Policy, progress: Progress | None
    ) -> None:
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
        self.expected = ins.dot(**operands)
        self.wrong = ~policy.equal(self.fmt, self.expected, actual)
        self.sample = self._informative()
        self.confirmed: dict[str, Hypothesis] = {}
        self.tried: set[Any] = set()

    def _informative(self) -> npt.NDArray[np.intp]:
        """Indices of some failing and some passing results."""
        rng = np.random.default_rng(1)
        picked = []
        for mask, most in ((self.wrong, _FAILING), (~self.wrong, _PASSING)):
            indices = np.flatnonzero(mask)
            picked.append(rng.choice(indices, most, replace=False) if len(indices) > most else indices)
        return np.concatenate(picked)

    def run(self, deadline: float) -> Diagnosis:
        """Single changes, then changes of the best, as long as nothing explains everything and there is
        time."""
        started = time.monotonic()
        failing = int(self.wrong.sum())
        if not failing:
            same = Hypothesis("identity", "no difference", self.ins, remaining=0, total=len(self.actual))
            return Diagnosis(self.ins, (same,), 0, len(self.actual))
        steps = changes(self.ins, self._nan_word())
        found = self.score([*self._singles(steps), *self._known(), *self._wiring()])
        self._delays()
        found = self.confirm(found)
        for _ in range(_DEPTH - 1):
            if self._explained() or time.monotonic() > deadline:
                break
            found = self.confirm(self._combined(found, steps, deadline))
        return Diagnosis(
            self.ins, self._ranked(failing), failing, len(self.actual), time.monotonic() - started
        )

    def _ranked(self, failing: int) -> tuple[Hypothesis, ...]:
        """All that explain everything, then the nearest; without those that add a change for nothing."""
        ranked: list[Hypothesis] = []
        for hypothesis in sorted(self.confirmed.values(), key=lambda h: (h.remaining, h.weight)):
            parts = set(hypothesis.slug.split("+"))
            if hypothesis.remaining < failing and not any(
                parts > set(better.slug.split("+")) for better in ranked
            ):
                ranked.append(hypothesis)
        explaining = sum(hypothesis.remaining == 0 for hypothesis in ranked)
        return tuple(ranked[: max(explaining, _SHOWN)])

    def _explained(self) -> bool:
        return any(hypothesis.remaining == 0 for hypothesis in self.confirmed.values())

    # Hypotheses

    def _singles(self, steps: list[Change]) -> list[Hypothesis]:
        base = Hypothesis("", "", self.ins, 0.0)
        return self._different(new for change in steps if (new := _changed(base, change)) is not None)

    def _different(self, hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
        """Leaves out those whose program another one had already."""
        found = []
        for hypothesis in hypotheses:
            assert hypothesis.instruction is not None
            formats = tuple(hypothesis.instruction.formats.items())
            if (key := (arithmetic(hypothesis.instruction), formats)) not in self.tried:
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
            found.append(Hypothesis(slug, text, one.stretched, 1.3 + 0.1 * (one.links > 1), known=True))
        return found

    def _wiring(self) -> list[Hypothesis]:
        """Faults outside the arithmetic: operands that are dropped, reversed or swapped, a result that
        never changes."""
        found = [Hypothesis(*item) for item in _rewirings(self.ins)]
        codes, counts = np.unique(self.actual, return_counts=True)
        if counts.max() > 0.9 * len(self.actual):
            code = int(codes[counts.argmax()])
            found.append(
                Hypothesis(
                    "result-constant", f"a result that is always {code:#x}", self.ins, 1.0, constant=code
                )
            )
        return found

    def _nan_word(self) -> int | None:
        """The word that the unit answers most often where a NaN is expected, if it is another one."""
        if not self.fmt.is_float:
            return None
        expected_nan = np.isnan(to_float(self.fmt, self.expected))
        answers, counts = np.unique(self.actual[self.wrong & expected_nan], return_counts=True)
        order = np.argsort(-counts)
        words = [int(answers[i]) for i in order if self.fmt.decode(int(answers[i])).kind == Kind.NAN]
        return words[0] if words else None

    def _combined(self, found: list[_Scored], steps: list[Change], deadline: float) -> list[_Scored]:
        """The best hypotheses with one more change each."""
        fresh: list[Hypothesis] = []
        for scored in found[:_BEAM]:
            if scored.hypothesis.rewire is None and scored.hypothesis.constant is None:
                fresh += [new for change in steps if (new := _changed(scored.hypothesis, change)) is not None]
        return self.score(self._different(fresh), deadline)

    # Scoring

    def score(self, hypotheses: list[Hypothesis], deadline: float = float("inf")) -> list[_Scored]:
        """Hypotheses that explain something, by how many results of the sample they leave."""
        operands = {name: codes[self.sample] for name, codes in self.operands.items()}
        actual, base = self.actual[self.sample], int(self.wrong[self.sample].sum())
        scored = []
        for index, hypothesis in enumerate(hypotheses):
            if index % 64 == 0 and self.progress is not None:
                self.progress(index, len(hypotheses))
            if time.monotonic() > deadline:
                break
            wrong = self._wrong(hypothesis, operands, actual)
            if wrong < base:
                scored.append(_Scored(hypothesis, wrong))
        return sorted(scored, key=lambda s: (s.wrong, s.hypothesis.weight))

    def _wrong(self, hypothesis: Hypothesis, operands: Operands, actual: Bits) -> int:
        return int((~self.policy.equal(self.fmt, hypothesis.results(operands), actual)).sum())

    def confirm(self, found: list[_Scored]) -> list[_Scored]:
        """Counts on all results what the best hypotheses leave; returns all, sorted anew where the sample
        had misled."""
        exact = [scored for scored in found if scored.wrong == 0]
        missed: list[npt.NDArray[np.intp]] = []
        for scored in [*exact[: 4 * _CONFIRMED], *found[len(exact) : len(exact) + _CONFIRMED]]:
            hypothesis = scored.hypothesis
            if hypothesis.slug in self.confirmed:
                continue
            wrong = np.flatnonzero(
                ~self.policy.equal(self.fmt, hypothesis.results(self.operands), self.actual)
            )
            self.confirmed[hypothesis.slug] = replace(
                hypothesis, remaining=len(wrong), total=len(self.actual)
            )
            missed += [wrong[:_MISSED]] if scored.wrong == 0 and len(wrong) else []
        if not missed or self._explained():
            return found
        self.sample = np.union1d(self.sample, np.concatenate(missed))
        return self.score([scored.hypothesis for scored in found])

    def _delays(self) -> None:
        """Results that belong to the vector before or after; the one without a partner tells nothing and
        does not count."""
        if len(self.actual) < _FEWEST_DELAYED:
            return
        for delay, slug in ((1, "delayed-by-one"), (-1, "early-by-one")):
            shifted = self.policy.equal(self.fmt, np.roll(self.expected, delay), self.actual)
            left = int((~(shifted[1:] if delay > 0 else shifted[:-1])).sum())
            text = f"results that are {'late' if delay > 0 else 'early'} by one vector"
            self.confirmed[slug] = Hypothesis(
                slug, text, self.ins, 1.0, delay=delay, remaining=left, total=len(self.actual) - 1
            )


def _changed(base: Hypothesis, change: Change) -> Hypothesis | None:
    """A hypothesis with one more change, or None where the change means nothing there or is part of it
    already."""
    assert base.instruction is not None
    if change.slug in base.slug.split("+"):
        return None
    new = change.apply(base.instruction)
    if new is None:
        return None
    slug = "+".join(sorted(filter(None, (base.slug, change.slug))))
    joined = " with " if base.known and "+" not in base.slug else " and "
    text = f"{base.text}{joined}{change.text}" if base.text else change.text
    return replace(base, slug=slug, text=text, instruction=new, weight=base.weight + change.weight)


def _rewirings(ins: Instruction) -> list[tuple[Any, ...]]:
    """(slug, text, instruction, weight, known, rewire) of every fault of the wiring."""

    def zero(name: str, place: Any) -> Callable[[Operands], Operands]:
        def rewire(operands: Operands) -> Operands:
            codes = operands[name].copy()
            codes[place] = 0
            return operands | {name: codes}

        return rewire

    def picked(name: str, order: list[int]) -> Callable[[Operands], Operands]:
        return lambda operands: operands | {name: operands[name][:, order]}

    def ones(names: tuple[str, ...]) -> Callable[[Operands], Operands]:
        return lambda operands: (
            operands | {n: np.full_like(operands[n], stimuli.one(ins.formats[n])) for n in names}
        )

    k = list(range(ins.k))
    found: list[tuple[Any, ...]] = []
    if "c" not in ins.absent:
        found.append(("c-ignored", "c ignored", ins, 1.0, False, zero("c", slice(None))))
    for j in range(ins.stored_k):
        text = f"element k = {j} left out"
        found.append((f"element-{j}-dropped", text, ins, 1.0, False, zero("a", (slice(None), j))))
    halves = k[ins.k // 2 :] + k[: ins.k // 2]
    if "b" not in ins.absent:
        reverse = picked("b", k[::-1])
        found.append(("b-reversed", "the elements of b in reverse order", ins, 1.0, False, reverse))
        found.append(("b-halves-swapped", "the halves of b swapped", ins, 1.0, False, picked("b", halves)))
    if ins.scale_block is not None:
        for slug, names in (
            ("scales", ("scale_a", "scale_b")),
            ("scale-a", ("scale_a",)),
            ("scale-b", ("scale_b",)),
        ):
            found.append(
                (f"{slug}-ignored", f"{' and '.join(names)} taken as 1", ins, 1.0, False, ones(names))
            )
    return found
