"""A search for operands for which two instructions or units answer differently, and the shortest example.

    result = compare(
        golden.instruction("hopper", "HMMA.16816.F32"), golden.instruction("ampere", "HMMA.16816.F32")
    )
    print(result.example.trace_x)

The search runs every kind of golden/stimuli/ through both; golden/identify/minimising.py then zeroes and
rounds what the difference does not need. Finding nothing is not a proof that the two are equal; the counts
give the effort of the search. `compare_and_prove` continues with a proof (golden/proof) if nothing was found.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.errors import MmagoldError, OperandError
from golden.explain.trace import Trace
from golden.identify.diagnose.mutations import changed
from golden.identify.minimising import cost, minimise
from golden.identify.sample import picked
from golden.model.instruction import Instruction
from golden.notebook import NotebookHtml
from golden.number.formats import Format, to_float
from golden.program.signature import Bits, Operands
from golden.proof.equality import Equality, check_provable, claim_of, prove
from golden.proof.sweep import REFUTED, OnStage
from golden.proof.verdict import Outcome
from golden.unit import Unit, answers_of, check_comparable, name_of, pad, signature_of
from golden.vectors.vectorset import MOST

CLASSES = ("value", "special", "zero_sign", "nan_payload")
"""Kinds of difference, the clearest first: two unequal finite numbers; a number, infinity or NaN
against something of another kind; +0 against -0; two NaNs of different bits."""
DIFFERENCES = (*CLASSES, "flags")
"""What a comparison counts: the last are status flags that differ where d is equal or both are NaNs."""
_CLEAREST_FIRST = ("value", "special", "zero_sign", "flags", "nan_payload")
"""The differences in the order in which an example of one is looked for."""


@dataclass(frozen=True)
class ComparisonPolicy:
    """The budget of a search for differences.

    Attributes:
        batch: dot products for both units in one call: as many as the core runs without waiting.
        shrunk: examples of one kind of difference that are shrunk, at most one for each kind of stimulus.
    """

    batch: int = 2048
    shrunk: int = 14


COMPARISON = ComparisonPolicy()


@dataclass
class KindCount:
    """What the search saw of one stimulus kind."""

    kind: str
    trials: int = 0
    differences: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DIFFERENCES, 0))

    @property
    def numeric(self) -> int:
        """Differences that are more than NaN payloads."""
        return sum(self.differences[name] for name in CLASSES[:3])


@dataclass(frozen=True)
class Example:
    """The shortest operands found: one dot product, raw codes, with both answers."""

    kind: str
    difference: str
    operands_x: Operands
    operands_y: Operands
    x: int
    y: int
    trace_x: Trace | None
    trace_y: Trace | None
    """None of a unit that is no instruction: nothing is known of its steps."""
    flags: tuple[int, int] | None = None
    """The words of status flags of both, where both have them."""

    @property
    def products(self) -> int:
        """Products of the example that are not zero."""
        return int(np.count_nonzero(self.operands_x["a"]))

    @property
    def traces(self) -> tuple[Trace, Trace]:
        """Both traces, of an example of two instructions."""
        assert self.trace_x is not None and self.trace_y is not None
        return self.trace_x, self.trace_y

    @staticmethod
    def side(trace: Trace | None, operands: Operands, code: int) -> dict[str, Any]:
        """One unit's operands, steps and answer as plain values."""
        if trace is not None:
            return trace.as_dict()
        return {**{name: codes.tolist() for name, codes in operands.items()}, "d": code}


X = TypeVar("X", bound=Unit)


@dataclass(frozen=True, repr=False)
class Comparison(Generic[X], NotebookHtml):
    """The outcome of a search: counts by kind, and an example where there is a difference."""

    first: X
    second: X
    seed: int
    counts: tuple[KindCount, ...]
    example: Example | None
    flags: tuple[str, ...] = ()
    """The status flags that were compared: the ones that both units have."""
    proof: Equality | None = None
    """Whether the two are equal for all operands, if a proof was requested."""

    def __repr__(self) -> str:
        sides = " and ".join(
            " ".join(filter(None, _named(unit).values())) for unit in (self.first, self.second)
        )
        return f"<Comparison of {sides}: {self.numeric:,} of {self.trials:,} dot products differ>"

    @property
    def flags_alone(self) -> int:
        """Differences in status flags where d is equal, or both are NaNs."""
        return sum(count.differences["flags"] for count in self.counts)

    @property
    def left_out(self) -> str:
        """Which status flags were not compared, in a line; empty where all were."""
        sides = [getattr(signature_of(unit), "status", ()) for unit in (self.first, self.second)]
        missing = [name for name in dict.fromkeys((*sides[0], *sides[1])) if name not in self.flags]
        return f"not compared, as one side lacks them: flags {', '.join(missing)}" if missing else ""

    @property
    def trials(self) -> int:
        """Dot products tried."""
        return sum(count.trials for count in self.counts)

    @property
    def numeric(self) -> int:
        """Differences in value, special values or the sign of zero."""
        return sum(count.numeric for count in self.counts)

    @property
    def nan_payloads(self) -> int:
        """Pairs of NaNs with different bits."""
        return sum(count.differences["nan_payload"] for count in self.counts)

    def as_dict(self) -> dict[str, Any]:
        """The comparison as plain values, stable for machines."""
        example = self.example
        return {
            "x": _named(self.first),
            "y": _named(self.second),
            "seed": self.seed,
            "trials": self.trials,
            "numeric": self.numeric,
            "nan_payloads": self.nan_payloads,
            "flags": self.flags_alone,
            "flags_compared": list(self.flags),
            "kinds": [{"kind": c.kind, "trials": c.trials, **c.differences} for c in self.counts],
            "example": None
            if example is None
            else {
                "kind": example.kind,
                "difference": example.difference,
                "products": example.products,
                "flags": None if example.flags is None else list(example.flags),
                "x": example.side(example.trace_x, example.operands_x, example.x),
                "y": example.side(example.trace_y, example.operands_y, example.y),
            },
        } | ({} if self.proof is None else {"proof": self.proof.as_dict()})


def _named(unit: Unit) -> dict[str, str]:
    return {"architecture": getattr(unit, "architecture", ""), "instruction": signature_of(unit).name}


def compare(
    x: X,
    y: X,
    seed: int = 0,
    budget: int = 100_000,
    progress: Callable[[int, int], None] | None = None,
    on_stage: OnStage = lambda _text: None,
) -> Comparison[X]:
    """Searches operands for which x and y answer differently.

    They are instructions or other units (golden/unit.py). Both must take a, b and c of the same formats, and
    be both dense or both sparse of one pattern, with equal scale blocks. K may differ: operands are drawn for
    the smaller K, and the larger one gets zeros (scales of one, legal metadata) appended. Results of
    different formats are compared by value; status flags by name, if both have them. Instructions that keep
    their accumulators are compared by their arithmetic, with c as an operand.

    Args:
        seed: seeds the generator; equal seeds give equal searches.
        budget: dot products to try, spread evenly over the stimulus kinds.
        progress: called with (tried, budget) after every batch.
        tell: called with what is done next, where that is something else.

    Raises:
        OperandError: the two do not take the same operands, or the budget is no number of dot products that
            a run can try.
    """
    x, y = _with_c(x), _with_c(y)
    check_comparable(signature_of(x), signature_of(y))
    if not 1 <= budget <= MOST:
        raise OperandError(f"budget is {budget}, expected 1 to {MOST}")
    search = _Differences(x, y)
    # Each kind gets an equal share: a difference may show on one kind of operands alone.
    share = max(budget // len(stimuli.SEARCH_KINDS), 1)
    every = share * len(stimuli.SEARCH_KINDS)
    for index, kind in enumerate(stimuli.SEARCH_KINDS):
        rng = np.random.default_rng([seed, index])
        for done in range(0, share, COMPARISON.batch):
            count = min(COMPARISON.batch, share - done)
            search.run(kind, count, rng)
            if progress is not None:
                progress(index * share + done + count, every)
    on_stage("looking for the smallest operands")
    return Comparison(x, y, seed, tuple(search.counts.values()), search.shortest(), search.flags)


def compare_and_prove(
    x: Instruction,
    y: Instruction,
    seconds: float = 120.0,
    seed: int = 0,
    budget: int = 100_000,
    progress: Callable[[int, int], None] | None = None,
    on_stage: OnStage = lambda _text: None,
    jobs: int = 1,
) -> Comparison[Instruction]:
    """As `compare`; where no difference was found, a proof that there is none, or the operands that it finds.

    Args:
        seconds: for the search of the proof, which has as long again to be checked.
        jobs: of the proof: processes that ask of cases, and check lemmas, at a time.

    Raises:
        OperandError: as compare does; results of two formats. CircuitError: no difference was found, and one
            of the two has no circuit. ToolMissing: bitwuzla is not installed. MmagoldError: the models of one
            instruction differ.
    """
    check_provable(x, y)
    whole = x, y
    x, y = x.stateless, y.stateless
    start = time.monotonic()
    found = compare(x, y, seed, budget, progress, on_stage)
    # Operands come first: they refute in a second what a proof refutes in minutes.
    if found.example is None:
        proof = prove(*whole, seconds, on_stage, jobs, changed(x, seed))
        if proof.operands is None:
            return replace(found, proof=proof)
        # The solver's operands are shrunk and shown like any others.
        search = _Differences(x, y)
        search.keep("proof", picked(proof.operands, None))
        found = replace(found, example=search.shortest(), proof=proof)
    else:
        refuted = Outcome(REFUTED, 0, 0, seconds={"vectors": time.monotonic() - start})
        found = replace(found, proof=Equality(x, y, refuted, claim_of(x, y)))
    assert found.example is not None, "golden/proof/equality.py: both models of both units differ there"
    # No example is shown that the reference models do not confirm.
    for code, trace in zip((found.example.x, found.example.y), found.example.traces, strict=True):
        if trace.code != code:
            raise MmagoldError(
                f"the core of {name_of(trace.instruction)} gives 0x{code:x}, its reference "
                f"0x{trace.code:x}: a fault of mmagold; operands {found.example.operands_x}"
            )
    return found


def _with_c(unit: X) -> X:
    """An instruction with c as an operand, also where it keeps its accumulator."""
    return cast(X, unit.stateless) if isinstance(unit, Instruction) else unit


class _Differences:
    """Runs batches on both units, counts, and keeps the first examples of every class of difference."""

    def __init__(self, x: Unit, y: Unit) -> None:
        self.x, self.y = x, y
        # The shorter one's operands are drawn; of equals an instruction's, whose program says where to aim.
        self.short = min((x, y), key=lambda unit: (unit.k, not isinstance(unit, Instruction)))
        self.counts = {kind: KindCount(kind) for kind in stimuli.SEARCH_KINDS}
        self.found: dict[str, list[tuple[str, Operands]]] = {name: [] for name in DIFFERENCES}
        self.flags: tuple[str, ...] = ()
        """Status flags that both sides have, known after the first call."""

    def run(self, kind: str, count: int, rng: np.random.Generator) -> None:
        """Tries one batch."""
        operands = stimuli.generate(self.short, kind, count, rng)
        tally, classes = self.counts[kind], self.differences(operands)
        tally.trials += count
        for index, name in enumerate(DIFFERENCES):
            tally.differences[name] += int(np.count_nonzero(classes == index))
        self.keep(kind, operands, classes)

    def keep(self, kind: str, operands: Operands, classes: npt.NDArray[np.int64] | None = None) -> None:
        """Keeps the first dot product of a batch for each class of difference, one of a kind."""
        classes = self.differences(operands) if classes is None else classes
        for index, name in enumerate(DIFFERENCES):
            hits = np.flatnonzero(classes == index)
            if len(hits) and sum(k == kind for k, _ in self.found[name]) == 0:
                self.found[name].append(
                    (kind, {key: codes[hits[0] : hits[0] + 1] for key, codes in operands.items()})
                )

    def differences(self, operands: Operands) -> npt.NDArray[np.int64]:
        """The class of difference of every dot product (an index into DIFFERENCES), or -1 where the two
        agree."""
        x, y = self.answers(operands)
        classes = classify(x["d"], y["d"], self.x.formats["d"], self.y.formats["d"])
        if "flags" not in x or "flags" not in y:
            return classes
        sides = signature_of(self.x).status, signature_of(self.y).status
        self.flags = tuple(name for name in sides[0] if name in sides[1])
        of_x, of_y = (
            [codes["flags"] >> status.index(name) & 1 for name in self.flags]
            for codes, status in zip((x, y), sides, strict=True)
        )
        differ = np.any(np.array(of_x) != np.array(of_y), axis=0) if self.flags else np.False_
        hidden = (classes == -1) | (classes == CLASSES.index("nan_payload"))
        return np.where(hidden & differ, DIFFERENCES.index("flags"), classes)

    def answers(self, operands: Operands) -> tuple[dict[str, Bits], dict[str, Bits]]:
        """All results of a batch; the longer unit gets padded operands."""
        return answers_of(self.x, pad(operands, self.x)), answers_of(self.y, pad(operands, self.y))

    def shortest(self) -> Example | None:
        """Minimises the candidates of the clearest class and returns the cheapest."""
        for name in _CLEAREST_FIRST:
            candidates = [
                (kind, self.least(operands, DIFFERENCES.index(name)))
                for kind, operands in self.found[name][: COMPARISON.shrunk]
            ]
            if candidates:
                costs = [cost(self.short, operands) for _, operands in candidates]
                kind, operands = candidates[int(np.argmin(costs))]
                return self.example(kind, name, operands)
        return None

    def least(self, operands: Operands, wanted: int) -> Operands:
        """The simplest operands with the same class of difference, from a batch of one."""
        one = {key: codes[0] for key, codes in operands.items()}
        return minimise(self.short, one, lambda batch: self.differences(batch) == wanted, rounds=None)

    def example(self, kind: str, difference: str, operands: Operands) -> Example:
        """Traces one dot product on both units."""
        for_x, for_y = pad(operands, self.x), pad(operands, self.y)
        dx, dy = self.answers({key: codes[None] for key, codes in operands.items()})
        have_flags = "flags" in dx and "flags" in dy
        return Example(
            kind,
            difference,
            for_x,
            for_y,
            int(dx["d"][0]),
            int(dy["d"][0]),
            self.x.trace(**for_x) if isinstance(self.x, Instruction) else None,
            self.y.trace(**for_y) if isinstance(self.y, Instruction) else None,
            (int(dx["flags"][0]), int(dy["flags"][0])) if have_flags else None,
        )


def classify(dx: Bits, dy: Bits, fx: Format, fy: Format) -> npt.NDArray[np.int64]:
    """Classes of difference between results: an index into CLASSES, -1 where equal."""
    vx, vy = to_float(fx, dx), to_float(fy, dy)
    nan_x, nan_y = np.isnan(vx), np.isnan(vy)
    finite = np.isfinite(vx) & np.isfinite(vy)
    same_bits = dx == dy if fx == fy else (vx == vy) & (np.signbit(vx) == np.signbit(vy)) | (nan_x & nan_y)
    classes = np.where(nan_x & nan_y, 3, np.where(finite & (vx != vy), 0, np.where(vx != vy, 1, 2)))
    return np.where(same_bits, -1, classes)
