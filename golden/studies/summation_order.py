"""Summation order: the trees of the paper's Figure 1, rebuilt from what the units answer, and what an
order costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from golden.identify.blackbox.plugins import Chip
from golden.identify.blackbox.sum_order import tree_of_unit
from golden.kernels.sum_tree import C, Node, terms_of
from golden.studies import draw
from golden.studies.study import Figure, Progress, Study, Table, findings, percent
from golden.studies.units import MMA, Subject, and_on, encode, who_answered

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

NAME = "summation-order"

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
    Case(Subject("cdna1", "v_mfma_f32_32x32x8f16", "f16")),
    Case(Subject("blackwell", "HMMA.16816.F32", "HMMA.16816 f16")),
    Case(Subject("rtx_blackwell", "HMMA.16816.F32", "HMMA.16816 f16")),
    Case(Subject("rdna3", "v_dot2_f32_f16", "dot2 f16")),
    Case(Subject("rdna4", "v_dot2_f32_f16", "dot2 f16")),
    Case(Subject("sapphire_rapids", "vdpbf16ps", "vdpbf16ps")),
)
_UNSHOWN = "none that masks show"


def tree_text(node: Node) -> str:
    """The tree as an expression: numbers for products, c for c; what is added exactly and then rounded stands
    in square brackets; runs of many terms are shortened."""

    def child(one: int | Node) -> str:
        if isinstance(one, int):
            return "c" if one == C else str(one)
        return tree_text(one) if one.exact else f"({tree_text(one)})"

    ordered = sorted(
        node.children, key=lambda one: (C not in terms_of(one), min(set(terms_of(one)) - {C}, default=C))
    )
    inner = "+".join(_shortened([child(one) for one in ordered]))
    return f"[{inner}]" if node.exact else inner


def _shortened(parts: list[str]) -> list[str]:
    """Runs of nine and more numbers with one step become "0+2+..+14"."""
    numbers = [part for part in parts if part.isdigit()]
    steps = {int(y) - int(x) for x, y in pairwise(numbers)}
    if len(numbers) < 9 or len(steps) != 1:
        return parts
    start = parts.index(numbers[0])
    return [*parts[:start], numbers[0], numbers[1], "..", numbers[-1], *parts[start + len(numbers) :]]


def found_tree(unit: Subject) -> str:
    """The tree of a unit as an expression, found as `golden.dissect` finds that of a black box: masks are
    called, and only the unit's formats and K are used."""
    tree = tree_of_unit(unit.answering)
    return _UNSHOWN if tree is None else tree_text(tree)


def changed_by_shuffling(unit: Subject, samples: int) -> float:
    """The share of results whose bits change when the k of a and b are permuted alike;
    operands from N(0, 1)."""
    rng = np.random.default_rng(6)
    ins = unit.ins
    a, b = (encode(ins, name, rng.standard_normal((samples, ins.k))) for name in "ab")
    c = encode(ins, "c", rng.standard_normal(samples))
    order = rng.permuted(np.broadcast_to(np.arange(ins.k), (samples, ins.k)), axis=1)
    dot = unit.answering.dot
    shuffled = dot(np.take_along_axis(a, order, 1), np.take_along_axis(b, order, 1), c)
    return float((shuffled != dot(a, b, c)).mean())


def run(
    samples: int = 20_000, progress: Progress = lambda done, total: None, chip: Chip | None = None
) -> Study:
    """Rebuilds the tree of every unit and shuffles its k."""
    trees, changed = {}, {}
    cases = [replace(case, unit=unit) for case in CASES for unit in and_on(chip, [case.unit])]
    for step, case in enumerate(cases):
        trees[case] = found_tree(case.unit)
        changed[case] = changed_by_shuffling(case.unit, samples)
        progress(step + 1, len(cases))
    shown = {case.unit.label: share for case, share in changed.items() if share}
    caption = (
        f"Share of results that change when the k of both operands are shuffled, {samples:,} dot "
        "products of N(0, 1) each."
    )
    return Study(
        NAME,
        samples,
        _findings(trees, changed),
        [_table(trees, changed)],
        [Figure("shuffled", caption, partial(_draw, shown))],
        {
            "trees": {case.unit.label: text for case, text in trees.items()},
            "changed": {case.unit.label: share for case, share in changed.items()},
        },
        units=tuple(case.unit for case in cases),
    )


def _table(trees: dict[Case, str], changed: dict[Case, float]) -> Table:
    rows = [
        (case.unit.label, f"`{text}`", case.figure1, percent(changed[case])) for case, text in trees.items()
    ]
    head = ("unit", "order found (numbers are products)", "Figure 1", "results changed by shuffling k")
    return Table("trees", "The order of summation, rebuilt from the results", head, rows)


def _findings(trees: dict[Case, str], changed: dict[Case, float]) -> str:
    drawn = [f"{case.figure1} {case.unit.label}" for case, text in trees.items() if case.printed == text]
    fused = [case for case in trees if not set("([") & set(trees[case]) and trees[case] != _UNSHOWN]
    chained = sorted((case for case in trees if changed[case]), key=lambda case: -changed[case])[:3]
    return findings(
        NAME,
        figure1=", ".join(drawn),
        fused=percent(max(changed[case] for case in fused)),
        changing=", ".join(f"{percent(changed[case])} on {case.unit.label}" for case in chained),
        who=who_answered(case.unit for case in trees),
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
