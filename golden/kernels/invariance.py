"""Why the bits of a layer's row change with the batch size: the plan behind every answer of a recording.

A plan is found on the recorded elements with operands that cancel, and then has to give the digest of others,
which the search did not see. Both have to be right before an M counts as predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import OperandError
from golden.kernels import all_reduce, layers
from golden.kernels.block import Block
from golden.kernels.candidates import cuts
from golden.kernels.finding import search
from golden.kernels.layers import CANCELLING, NORMAL, Answer, Layer, Recorded
from golden.kernels.order import parts
from golden.kernels.plan import Plan, build
from golden.kernels.plan_files import gemv, named, plan
from golden.kernels.product import gemm
from golden.number.formats import get_format, to_float

Bits = npt.NDArray[Any]
ARCHITECTURE = "hopper"
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Run:
    """Neighbouring M that were called, first to last, with one answer."""

    first: int
    last: int
    answer: int


@dataclass(frozen=True)
class Change:
    """How the bits of a row change from one M to the next that was called.

    Attributes:
        before, after: the first two such M.
        begins: all M at which this change begins.
        cause: in words.
        column: an element of row 0 that changes.
        values: what it is before and after, with operands whose exact sum is zero.
        sums: for each, the sums of its parts of K as (first element, last element, sum).
        share: the share of elements that change, with operands that cancel and with normally distributed
            ones; the second share is from the plans, None where a kernel has none.
    """

    before: int
    after: int
    begins: tuple[int, ...]
    cause: str
    column: int
    values: tuple[float, float]
    sums: tuple[tuple[tuple[int, int, float], ...], ...]
    share: tuple[float, float | None]


@dataclass(frozen=True)
class BatchMap:
    """What `golden.invariance` says about one layer.

    Attributes:
        recorded: its answers.
        plans: one for each answer, None where none is known.
        right: for each answer, whether its plan gives the operands, too, on which it was not found.
        seed: of the operands.
    """

    recorded: Recorded
    plans: tuple[Plan | None, ...]
    right: tuple[bool, ...]
    seed: int = layers.SEED

    @property
    def layer(self) -> Layer:
        """The layer."""
        return self.recorded.layer

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """All M that were called, ascending."""
        which = {m: i for i, one in enumerate(self.recorded.answers) for m in one.batches}
        found: list[Run] = []
        for m, answer in sorted(which.items()):
            if found and found[-1].answer == answer:
                found[-1] = replace(found[-1], last=m)
            else:
                found.append(Run(m, m, answer))
        return tuple(found)

    @cached_property
    def bits(self) -> tuple[int, ...]:
        """For each answer a number of the bits of its row 0, from 0 on by the smallest M."""
        rows: dict[bytes, int] = {}
        order = sorted(range(len(self.plans)), key=lambda i: self.recorded.answers[i].batches[0])
        found = {i: rows.setdefault(self.recorded.answers[i].d[0].tobytes(), len(rows)) for i in order}
        return tuple(found[i] for i in range(len(found)))

    def kernels(self, run: Run) -> list[tuple[str, ...]]:
        """The names of the kernels of a run, for each M whose names differ from the ones before."""
        inside = self.recorded.answers[run.answer].batches
        names = (self.recorded.kernels[m] for m in inside if run.first <= m <= run.last)
        return list(dict.fromkeys(names))

    @property
    def batches(self) -> int:
        """How many M were called."""
        return sum(len(one.batches) for one in self.recorded.answers)

    @property
    def predicted(self) -> int:
        """For how many of them every bit is predicted."""
        answers = zip(self.recorded.answers, self.right, strict=True)
        return sum(len(one.batches) for one, right in answers if right)

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """Every change of the bits of a row from one M to the next that was called: each between the same two
        answers once, with all M at which it begins."""
        found: dict[object, tuple[Run, Run, list[int]]] = {}
        for one, other in pairwise(self.runs):
            if self.bits[one.answer] != self.bits[other.answer]:
                _, _, begins = found.setdefault((one.answer, other.answer), (one, other, []))
                begins.append(other.first)
        return tuple(_change(self, one, other, tuple(begins)) for one, other, begins in found.values())

    @property
    def invariant(self) -> bool:
        """Whether a row has the same bits for all M."""
        return len(set(self.bits)) == 1


def invariance(
    recording: str | Path | layers.Recording, layer: str = "", progress: Progress | None = None
) -> tuple[BatchMap, ...]:
    """Says for each layer of a recording which plan every M has, where the bits of a row change, and why.

    Args:
        recording: a file of `mmagold invariance --record`, or what was read of one.
        layer: words of the names of the layers that are wanted, such as "4096x4096 bf16 mm"; default: all.
        progress: called with a layer's name, the layers done, and their total.

    Raises:
        FileFormatError: the file is no recording.
        OperandError: no layer has these words.
    """
    given = recording if isinstance(recording, layers.Recording) else layers.read(Path(recording))
    chosen = list(layers.named(given, layer))
    if not chosen:
        names = ", ".join(one.layer.name for one in given.layers[:3])
        raise OperandError(f"no layer of the recording is '{layer}', expected words of names such as {names}")
    found: list[BatchMap] = []
    known: list[Plan] = []  # what one layer has, others are likely to have
    for done, one in enumerate(chosen):
        if progress is not None:
            progress(one.layer.name, done, len(chosen))
        found.append(explained(one, known, given.seed))
        known += [plan for plan in found[-1].plans if plan is not None and plan not in known]
    return tuple(found)


def explained(recorded: Recorded, known: Sequence[Plan] = (), seed: int = layers.SEED) -> BatchMap:
    """The plans behind the answers of one layer.

    Args:
        known: plans that are tried first.
        seed: of the recording.
    """
    product = _Layer(recorded.layer, seed)
    plans: list[Plan | None] = []
    for one in recorded.answers:
        likely = [*(plan for plan in plans if plan is not None), *known]
        plans.append(product.plan_of(one, likely))
    right = (product.is_answer(plan, one) for one, plan in zip(recorded.answers, plans, strict=True))
    return BatchMap(recorded, tuple(plans), tuple(right), seed)


def confirmed(found: Sequence[BatchMap], other: layers.Recording) -> dict[str, tuple[int, int]]:
    """For each layer that another recording has, too: for how many M its answer has every bit that the plan
    of the first recording gives, and how many M both have. Nothing is searched."""
    known = {one.layer.name: one for one in found}
    matches = {}
    for recorded in other.layers:
        if recorded.layer.name not in known:
            continue
        of, product = known[recorded.layer.name], _Layer(recorded.layer, other.seed)
        plans = {
            m: plan for one, plan in zip(of.recorded.answers, of.plans, strict=True) for m in one.batches
        }
        equal = shared = 0
        for answer in recorded.answers:
            both = [m for m in answer.batches if m in plans]
            shared += len(both)
            equal += sum(product.is_answer(plans[m], answer) for m in both)
        matches[recorded.layer.name] = equal, shared
    return matches


class _Layer:
    """The operands of a layer, and what plans make of them."""

    def __init__(self, layer: Layer, seed: int) -> None:
        self.layer, self.usual = layer, _usual(layer)
        self.operands = {kind: layers.operands(layer, kind, seed) for kind in layers.KINDS}
        self.made: dict[object, Bits] = {}

    def plan_of(self, answer: Answer, likely: Sequence[Plan]) -> Plan | None:
        """The first plan that gives an answer: of likely ones, of the call's own with K in parts, of all."""
        for one in (*likely, *self.usual):
            if self._gives(one, answer):
                return one
        given = self.operands[CANCELLING]
        more = {"bias": given["bias"]} if self.layer.bias else {}
        formats = {"a": self.layer.a, "b": self.layer.a, "d": self.layer.d}
        a = given["a"][: len(answer.d)]
        return search(a, given["b"], answer.d, ARCHITECTURE, formats, extra=more).plan

    def computed(self, plan: Plan, kind: str) -> Bits:
        """D (ROWS, COLUMNS) by a plan."""
        key = kind, plan.instruction, plan.options
        if key not in self.made:
            given = self.operands[kind]
            self.made[key] = gemm(given["a"], given["b"], plan, bias=given.get("bias"))
        return self.made[key]

    def digest(self, plan: Plan, rows: int) -> str:
        """Of the first rows of D with normally distributed operands."""
        return layers.digest(self.computed(plan, NORMAL)[:rows])

    def is_answer(self, plan: Plan | None, answer: Answer) -> bool:
        """Whether a plan gives an answer, for both kinds of operands, all over D."""
        rows = len(answer.d)
        return (
            plan is not None
            and answer.alike
            and np.array_equal(self.computed(plan, CANCELLING)[:rows], answer.d)
            and self.digest(plan, rows) == answer.normal
        )

    def _gives(self, plan: Plan, answer: Answer) -> bool:
        if plan.formats["a"].name != self.layer.a or plan.formats["d"].name != self.layer.d:
            return False
        if (plan.options.bias == "columns") != self.layer.bias:
            return False
        given = self.operands[CANCELLING]
        # Columns of one row on which a plan is tried first.
        few_columns = 4
        bias = given["bias"][:few_columns] if self.layer.bias else None
        few = gemm(given["a"][:1], given["b"][:, :few_columns], plan, bias=bias)
        if not np.array_equal(few, answer.d[:1, :few_columns]):
            return False
        return np.array_equal(self.computed(plan, CANCELLING)[: len(answer.d)], answer.d)

    def sums(self, plan: Plan, column: int) -> tuple[tuple[int, int, float], ...]:
        """Of row 0 and a column with operands that cancel: bounds of each part of K, and its sum."""
        given, k = self.operands[CANCELLING], self.layer.k
        arrays = {"a": given["a"][None, :1], "b": given["b"][None, :, column : column + 1]}
        one = slice(0, 1)
        block = Block(plan, arrays, one, one, k, lambda dots: None)
        found, first = [], 0
        with np.errstate(all="ignore"):
            for slices in parts(plan, k):
                steps = max(run.stop for runs in slices for run in runs) * plan.instruction.k
                found.append((first, min(steps, k) - 1, float(block.part_sum(slices).ravel()[0])))
                first = steps
        return tuple(found)


def _usual(layer: Layer) -> tuple[Plan, ...]:
    """The plans of a call: K in one part and in parts, sums in f32 and in D's format; that of a vector."""
    base = _base(layer)
    if base is None:
        return ()
    if layer.bias:
        base = base.but(bias="columns")
    found = [base]
    for size in cuts(base, layer.k):
        for fmt in (None, layer.d):
            found.append(base.but(part=size, reduce_format=fmt))
    if layer.call == "mm":
        found.append(gemv(layer.a, layer.d))
    return tuple(found)


def _base(layer: Layer) -> Plan | None:
    if layer.call == "triton":
        unit = plan(ARCHITECTURE, f"triton_dot.{layer.a}").instruction
        return build(unit, {"out": layer.d, "tile_k": 64})
    if layer.call == "scaled_mm":
        kind = "fast" if layer.options.get("fast") else "precise"
        return named(ARCHITECTURE, f"cublas_fp8_{kind}.{layer.a}.{layer.a}.{layer.d}")
    return named(ARCHITECTURE, f"cublas_f16.{layer.a}.{layer.d}")


def tensor_parallel(one: Plan, k: int, ranks: int, order: str = "ring", chunk: int = 0) -> Plan:
    """The plan of a layer whose K lies on several GPUs, each with a plan of one chain; NCCL adds their
    results, rounded to D's format.

    Args:
        k: of the whole layer, a multiple of `ranks` tiles.
        order: `ring`: chunk c of D is added from rank c + 1 on, one rank after the other, to rank c; `tree`:
            NCCL's two binary trees over GPUs that lie in machines of their own.
        chunk: of D with a ring; 0 or 1, the tree.

    Raises:
        OperandError: K is not cut evenly, each GPU's plan has parts of its own, or there is no such order or
            chunk.
    """
    if k % ranks or k // ranks % one.tile:
        raise OperandError(f"K is {k}, expected a multiple of {ranks} x {one.tile}: tiles for each rank")
    if len(parts(one, k // ranks)) > 1 or one.options.slices > 1:
        raise OperandError("the plan has parts of its own, which a plan of several GPUs cannot hold too")
    if order not in ("ring", "tree"):
        raise OperandError(f"order is '{order}', expected ring or tree")
    most = ranks if order == "ring" else 2
    if not 0 <= chunk < most:
        raise OperandError(f"chunk is {chunk}, expected 0 to {most - 1} of a {order}")
    found = all_reduce.ring(ranks, chunk) if order == "ring" else all_reduce.trees(ranks)[chunk]
    added = found if ranks > 1 else "ascending"
    return one.but(part=k // ranks, reduce=added, reduce_format=one.formats["d"].name)


def _change(of: BatchMap, one: Run, other: Run, begins: tuple[int, ...]) -> Change:
    answers = [of.recorded.answers[run.answer] for run in (one, other)]
    plans = [of.plans[run.answer] for run in (one, other)]
    rows = min(len(answer.d) for answer in answers)
    before, after = (answer.d[:rows] for answer in answers)
    column = int(np.argmax(before[0] != after[0]))
    values = to_float(get_format(of.layer.d), np.array([before[0, column], after[0, column]]))
    product = _Layer(of.layer, of.seed)
    normal = None
    if plans[0] is not None and plans[1] is not None:
        x, y = (product.computed(plan, NORMAL) for plan in plans if plan is not None)
        normal = float(np.mean(x != y))
    return Change(
        one.last,
        other.first,
        begins,
        cause(plans, [of.recorded.kernels[m] for m in (one.last, other.first)], of.layer.k),
        column,
        (float(values[0]), float(values[1])),
        tuple(product.sums(plan, column) if plan is not None else () for plan in plans),
        (float(np.mean(before != after)), normal),
    )


def cause(plans: Sequence[Plan | None], kernels: Sequence[Sequence[str]], k: int) -> str:
    """What is different between two plans and the kernels that ran, in words."""
    one, other = plans
    found = []
    if sum("gemv" in " ".join(names).lower() for names in kernels) == 1:
        found.append("a matrix-vector kernel (GEMV) without the matrix unit on one side")
    if one is None or other is None:
        return "; ".join(found or ["another kernel, of which no plan is known"])
    return "; ".join([*found, *_differences(one, other, k)]) or "the same plan, but another answer"


def _differences(one: Plan, other: Plan, k: int) -> Iterator[str]:
    if one.instruction.name != other.instruction.name:
        yield f"another instruction: {one.instruction.name}, then {other.instruction.name}"
    counts = [len(parts(plan, k)) for plan in (one, other)]
    cut = [(_parts(plan, k), parts(plan, k)) for plan in (one, other)]
    if max(counts) > 1 and cut[0] != cut[1]:
        yield f"K in {_parts(one, k)}, then in {_parts(other, k)}"
    sums = ("reduce",) if min(counts) > 1 else ()
    for key in ("slices", "promote", "order", *sums):
        values = [getattr(plan.options, key) for plan in (one, other)]
        if values[0] != values[1]:
            yield f"{key} {values[0] or 'none'}, then {values[1] or 'none'}"


def _parts(plan: Plan, k: int) -> str:
    found = parts(plan, k)
    if len(found) == 1:
        return "one part"
    length = sum(len(run) for runs in found[0] for run in runs) * plan.instruction.k
    return f"{len(found)} parts of {length} added in {plan.options.reduce_format or plan.accumulates.name}"


def words(plan: Plan | None, k: int) -> str:
    """A plan in a few words."""
    if plan is None:
        return "no plan known"
    found = [_parts(plan, k)]
    if plan.options.promote:
        found.append(f"promoted after {plan.options.promote}")
    if plan.options.slices > 1:
        found.append(f"{plan.options.slices} slices")
    if plan.instruction.is_custom:
        found.append(plan.instruction.name)
    if plan.instruction.name.startswith("mma."):
        found.append(plan.instruction.name.split(".")[0])
    return ", ".join(found)
