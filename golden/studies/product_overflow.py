"""Overflow of single products: where a product beyond f32 turns into infinity before it meets the others."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from golden.studies import draw
from golden.studies.study import Figure, Progress, Study, Table, findings, percent
from golden.studies.units import MMA, Subject, decode, dot, encode

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

NAME = "product-overflow"

NVIDIA = ("ampere", "ada", "hopper", "blackwell", "rtx_blackwell")
UNITS = (
    *(Subject(name, f"{MMA}m16n8k16.row.col.f32.bf16.bf16.f32", "bf16") for name in NVIDIA),
    Subject("cdna1", "v_mfma_f32_16x16x8bf16", "bf16"),
    Subject("cdna2", "v_mfma_f32_16x16x16bf16_1k", "bf16"),
    Subject("cdna3", "v_mfma_f32_16x16x16_bf16", "bf16"),
    *(Subject(name, f"{MMA}m16n8k8.row.col.f32.tf32.tf32.f32", "tf32") for name in NVIDIA),
    Subject("cdna3", "v_mfma_f32_16x16x8_xf32", "tf32"),
)
CASES = {
    "2^70 * 2^70 - 2^70 * 2^70": ([2.0**70, 2.0**70], [2.0**70, -(2.0**70)], 0.0),
    "2^64 * 2^64 - 2^127": ([2.0**64], [2.0**64], -(2.0**127)),
    "2^127 + 2^127 - 2^127": ([2.0**64, 2.0**64], [2.0**63, 2.0**63], -(2.0**127)),
    "2^64 * 2^64": ([2.0**64], [2.0**64], 0.0),
}
"""Dot products (a, b, c); the exact values are 0, 2^127, 2^127 and 2^128, which no f32 holds."""
SCALES = tuple(61 + step / 4 for step in range(17))


def result(unit: Subject, case: str) -> float:
    """The unit's answer to a case."""
    return float(dot(unit.ins, *CASES[case]))


def overflows(unit: Subject) -> bool:
    """Whether a product of 2^128 or more becomes infinity before the sum."""
    return not np.isfinite(result(unit, "2^70 * 2^70 - 2^70 * 2^70"))


def shares(unit: Subject, samples: int) -> list[float]:
    """The share of dot products of 2^s N(0, 1) that is infinity or NaN, by s; only among those whose exact
    sum is finite."""
    rng = np.random.default_rng(4)
    k = 8
    drawn = rng.standard_normal((2, samples, k))
    found = []
    for scale in SCALES:
        a, b = (np.zeros((samples, unit.ins.k)) for _ in range(2))
        a[:, :k], b[:, :k] = drawn * 2.0**scale
        codes = encode(unit.ins, "a", a), encode(unit.ins, "b", b)
        finite = np.abs(np.einsum("ij,ij->i", a, b)) < 2.0**127.5
        values = decode(unit.ins, unit.ins.dot(*codes, np.zeros(samples, unit.ins.formats["c"].dtype)))
        found.append(float((~np.isfinite(values[finite])).mean()) if finite.any() else 1.0)
    return found


def run(samples: int = 5000, progress: Progress = lambda done, total: None) -> Study:
    """Runs the cases on every unit, and random operands near the edge on four."""
    chosen = [
        unit
        for unit in UNITS
        if unit.what == "bf16" and unit.architecture in ("hopper", "cdna1", "cdna2", "cdna3")
    ]
    curves: dict[str, list[float]] = {}
    for step, unit in enumerate(chosen):
        curves[unit.chip] = shares(unit, samples)
        progress(step + 1, len(chosen))
    caption = (
        "Share of infinities and NaNs among dot products of 8 pairs 2^s N(0, 1) in bf16 whose exact result "
        "is finite (below 2^127.5): single products reach 2^128 before the sums do."
    )
    return Study(
        NAME,
        samples,
        _findings(curves),
        [_case_table(), _share_table(curves)],
        [Figure("share", caption, partial(_draw, curves))],
        {
            "overflows": {unit.label: overflows(unit) for unit in UNITS},
            "results": {unit.label: {case: str(result(unit, case)) for case in CASES} for unit in UNITS},
            "scales": list(SCALES),
            "shares": curves,
        },
        units=UNITS,
    )


def _power(value: float) -> str:
    """Powers of two by their exponent, others as they are."""
    exponent = np.log2(value) if np.isfinite(value) and value > 2 else 0.5
    return f"2^{exponent:.0f}" if exponent == int(exponent) else f"{value:g}"


def _case_table() -> Table:
    rows = [(unit.chip, unit.what, *(_power(result(unit, case)) for case in CASES)) for unit in UNITS]
    return Table("cases", "Products and sums at the edge of f32, executed", ("chip", "types", *CASES), rows)


def _share_table(curves: dict[str, list[float]]) -> Table:
    rows = [
        (f"2^{scale:g}", *(percent(curve[i]) for curve in curves.values()))
        for i, scale in enumerate(SCALES)
        if scale in (61, 61.5, 62, 62.5, 63, 63.5, 64)
    ]
    return Table("share", "Lost although the exact result is finite", ("scale of a and b", *curves), rows)


def _findings(curves: dict[str, list[float]]) -> str:
    chips = {
        answer: sorted({unit.chip for unit in UNITS if overflows(unit) == answer}) for answer in (True, False)
    }
    lost = {chip: percent(curve[SCALES.index(63)]) for chip, curve in curves.items()}
    return findings(NAME, bad=" and ".join(chips[True]), good=", ".join(chips[False]), **lost)


def _draw(curves: dict[str, list[float]]) -> Picture:
    picture, axes = draw.canvas()
    for index, (label, values) in enumerate(curves.items()):
        axes.plot(SCALES, [100 * value for value in values], label=label, **draw.style(index))
    axes.set_xlabel("s (binades; operands are 2^s N(0, 1))")
    axes.set_ylabel("Lost results (%)")
    draw.legend(axes, 4)
    return picture
