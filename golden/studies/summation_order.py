"""Summation order: the trees of the paper's Figure 1, rebuilt from what the units answer, and what an
order costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from golden.studies import draw
from golden.studies.study import Figure, Progress, Study, Table, percent
from golden.studies.units import MMA, Subject, decode, encode

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

NAME = "summation-order"
TITLE = "Summation order"
QUESTION = "In which order does a unit add its products and c, and does the order of k change the result?"
SOURCE = "MMA-Sim (arXiv 2511.10909), section III-C and Figure 1"
SAMPLES = 20_000

FINDINGS = """\
- The experiment rebuilds all four trees of the paper's Figure 1: {figure1}.
- A fused sum appears as one node with many terms: for f16, 4 products and c on Volta, 8 on Turing and Ampere,
  16 on Hopper. Where K is larger, sums of this size are chained, and each takes the result before it as its
  c.
- FP8 `mma.sync` on Hopper shows the f16 instructions it is built of: k mod 4 in 0, 1 first, then 2, 3, and c
  last.
- CDNA3 appears as one node too. Its c joins after the products, and its FP8 sums even and odd k apart, but
  nothing is normalised in between, so that a large addend hides the small ones even after it is cancelled.
  The experiment cannot tell these apart.
- Within one fused sum the order of k does not matter: {fused} of the results change when k is shuffled. Where
  sums are
  chained or form a tree it may: {changing}.
- CDNA1 is missing here: it sums groups exactly. Within a group no large addend can hide a small one; between
  groups the rounding to f32 can.
"""
_WGMMA = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"


@dataclass(frozen=True)
class Case:
    """A unit, and its place in the paper's Figure 1 if it has one: the tree printed there."""

    unit: Subject
    figure1: str = ""
    printed: str = ""


CASES = (
    Case(Subject("ampere", "DMMA.884", "DMMA.884"), "(a)", "(((c+0)+1)+2)+3"),
    Case(Subject("cdna2", "v_mfma_f32_32x32x8f16", "f16"), "(b)", "(c+((0+1)+(2+3)))+((4+5)+(6+7))"),
    Case(Subject("ampere", "HMMA.1684.F32.TF32", "HMMA.1684 TF32"), "(c)", "c+0+1+2+3"),
    Case(Subject("ampere", "HMMA.1688.F32.TF32", "HMMA.1688 TF32"), "(d)", "(c+0+1+2+3)+4+5+6+7"),
    Case(Subject("volta", f"{MMA}m8n8k4.row.col.f32.f16.f16.f32", "HMMA.884 f16")),
    Case(Subject("turing", "HMMA.1688.F32", "HMMA.1688 f16")),
    Case(Subject("ampere", "HMMA.16816.F32", "HMMA.16816 f16")),
    Case(Subject("hopper", "HMMA.16816.F32", "HMMA.16816 f16")),
    Case(Subject("ada", f"{MMA}m16n8k32.row.col.f32.e4m3.e4m3.f32", "QMMA.16832 e4m3")),
    Case(Subject("hopper", _WGMMA, "QGMMA e4m3")),
    Case(Subject("hopper", f"{MMA}m16n8k16.row.col.f32.e4m3.e4m3.f32", "mma.sync e4m3")),
    Case(Subject("cdna2", "v_mfma_f32_32x32x4bf16", "bf16")),
    Case(Subject("cdna3", "v_mfma_f32_32x32x8_f16", "f16")),
    Case(Subject("cdna3", "v_mfma_f32_16x16x16_f16", "f16 K = 16")),
    Case(Subject("cdna3", "v_mfma_f32_32x32x16_fp8_fp8", "fp8")),
)
_LARGE, _SMALL = {"e4m3": 7, "e4m3fnuz": 6, "f64": 60}, {"e4m3": -9, "e4m3fnuz": -10, "f64": -60}
"""Exponents of the factors of X and y (others 14 and -14): X hides y and all sums of y's, and y is exact
in the result."""


def counts(unit: Subject) -> npt.NDArray[np.int64]:
    """How many summands lie under the node where two meet, for all pairs; index K stands for c.

    Summand i is X, summand j is -X, all others y: the result divided by y counts those added after X
    and -X met.
    """
    ins, k = unit.ins, unit.ins.k
    name = ins.formats["a"].name
    top, low = 2.0 ** _LARGE.get(name, 14), 2.0 ** _SMALL.get(name, -14)
    pairs = [(i, j) for i in range(k + 1) for j in range(i + 1, k + 1)]
    a, b = np.full((len(pairs), k), low), np.full((len(pairs), k), low)
    c = np.full(len(pairs), low * low)
    for row, (i, j) in enumerate(pairs):
        for place, sign in ((i, 1.0), (j, -1.0)):
            if place == k:
                c[row] = sign * top * top
            else:
                a[row, place], b[row, place] = sign * top, top
    result = decode(ins, ins.dot(encode(ins, "a", a), encode(ins, "b", b), encode(ins, "c", c))) / (low * low)
    under = np.ones((k + 1, k + 1), np.int64)
    for (i, j), after in zip(pairs, result, strict=True):
        under[i, j] = under[j, i] = k + 1 - round(after)
    return under


Tree = int | tuple["Tree", ...]


def tree(under: npt.NDArray[np.int64], members: tuple[int, ...] | None = None) -> Tree:
    """The summation tree: nested tuples of summands. Two belong to the same child if they
    meet below the node."""
    members = tuple(range(len(under))) if members is None else members
    if len(members) == 1:
        return members[0]
    children: list[tuple[int, ...]] = []
    left = set(members)
    for first in sorted(members, key=lambda index: (index != len(under) - 1, index)):
        if first in left:
            together = tuple(
                index
                for index in members
                if index in left and (index == first or under[first, index] < len(members))
            )
            children.append(together)
            left -= set(together)
    if len(children) == 1:
        raise ValueError(f"no tree has these counts: {[int(n) for n in np.unique(under)]}")
    return tuple(tree(under, child) for child in children)


def tree_text(node: Tree, c: int) -> str:
    """The tree as an expression: numbers for products, c for c;
    runs of more than four terms are shortened."""
    if isinstance(node, int):
        return "c" if node == c else str(node)
    parts = [tree_text(child, c) if isinstance(child, int) else f"({tree_text(child, c)})" for child in node]
    return "+".join(_shortened(parts))


def _shortened(parts: list[str]) -> list[str]:
    """Runs of five and more numbers with one step become "0+2+..+14"."""
    numbers = [part for part in parts if part.isdigit()]
    steps = {int(y) - int(x) for x, y in pairwise(numbers)}
    if len(numbers) < 9 or len(steps) != 1:
        return parts
    start = parts.index(numbers[0])
    return [*parts[:start], numbers[0], numbers[1], "..", numbers[-1], *parts[start + len(numbers) :]]


def found_tree(unit: Subject) -> str:
    """The tree of a unit as an expression."""
    return tree_text(tree(counts(unit)), unit.ins.k)


def changed_by_shuffling(unit: Subject, samples: int) -> float:
    """The share of results whose bits change when the k of a and b are permuted alike;
    operands from N(0, 1)."""
    rng = np.random.default_rng(6)
    ins = unit.ins
    a, b = (encode(ins, name, rng.standard_normal((samples, ins.k))) for name in "ab")
    c = encode(ins, "c", rng.standard_normal(samples))
    order = rng.permuted(np.broadcast_to(np.arange(ins.k), (samples, ins.k)), axis=1)
    shuffled = ins.dot(np.take_along_axis(a, order, 1), np.take_along_axis(b, order, 1), c)
    return float((shuffled != ins.dot(a, b, c)).mean())


def run(samples: int = SAMPLES, progress: Progress = lambda done, total: None) -> Study:
    """Rebuilds the tree of every unit and shuffles its k."""
    trees, changed = {}, {}
    for step, case in enumerate(CASES):
        trees[case] = found_tree(case.unit)
        changed[case] = changed_by_shuffling(case.unit, samples)
        progress(step + 1, len(CASES))
    shown = {case.unit.label: share for case, share in changed.items() if share}
    caption = (
        f"Share of results that change when the k of both operands are shuffled, {samples:,} dot "
        "products of N(0, 1) each."
    )
    return Study(
        NAME,
        TITLE,
        QUESTION,
        SOURCE,
        samples,
        _findings(trees, changed),
        [_table(trees, changed)],
        [Figure("shuffled", caption, partial(_draw, shown))],
        {
            "trees": {case.unit.label: text for case, text in trees.items()},
            "changed": {case.unit.label: share for case, share in changed.items()},
        },
        units=tuple(case.unit for case in CASES),
    )


def _table(trees: dict[Case, str], changed: dict[Case, float]) -> Table:
    rows = [
        (case.unit.label, f"`{text}`", case.figure1, percent(changed[case])) for case, text in trees.items()
    ]
    head = ("unit", "order found (numbers are products)", "Figure 1", "results changed by shuffling k")
    return Table("trees", "The order of summation, rebuilt from the results", head, rows)


def _findings(trees: dict[Case, str], changed: dict[Case, float]) -> str:
    drawn = [f"{case.figure1} {case.unit.label}" for case, text in trees.items() if case.printed == text]
    fused = [case for case in trees if "(" not in trees[case]]
    chained = sorted((case for case in trees if changed[case]), key=lambda case: -changed[case])[:3]
    return FINDINGS.format(
        figure1=", ".join(drawn),
        fused=percent(max(changed[case] for case in fused)),
        changing=", ".join(f"{percent(changed[case])} on {case.unit.label}" for case in chained),
    )


def _draw(shown: dict[str, float]) -> Picture:
    picture, axes = draw.canvas(height=3.6)
    ordered = sorted(shown.items(), key=lambda item: item[1])
    for row, (_, share) in enumerate(ordered):
        axes.barh(row, 100 * share, color=draw.COLOURS[0], height=0.7)
        axes.text(100 * share + 0.5, row, f"{100 * share:.1f}", va="center", fontsize=9)
    axes.set_yticks(range(len(ordered)), [label for label, _ in ordered], fontsize=9)
    axes.set_xlabel("Results that change (%)")
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", alpha=0.3)
    return picture
