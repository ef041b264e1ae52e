"""Whole matrix products in a ladder of kernels, drawn: throughput of the best of each kernel by size, and by
stages at the largest size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from golden.catalog.timing import Figure

QUANTITY = "chip_throughput"
MARK = "share_of_peak"
"""A quantity that only files of `mmagold bench-kernels` have."""
_COLOURS = ("#6673b3", "#35a19b", "#e0a030", "#d0553d")


def parts(variant: str) -> tuple[int, int | None, str]:
    """Size, stages and what else is swept, of a variant such as "2048, n256, 4 stages, cluster 2"."""
    size, *others = variant.split(", ")
    stages = next((int(part.split()[0]) for part in others if part.endswith(" stages")), None)
    return int(size), stages, ", ".join(part for part in others if not part.endswith(" stages"))


def fill(left: Any, right: Any, figures: Sequence[Figure]) -> None:
    """Draws into two axes of matplotlib; `figures` are those of one file that `mmagold bench-kernels`
    wrote."""
    shown = [(figure.instruction, *parts(figure.key.variant), figure.value or 0.0) for figure in figures]
    _best(left, shown)
    largest = max(size for _, size, *_ in shown)
    _by_stages(right, [one for one in shown if one[1] == largest])
    right.set_title(f"by stages of shared memory, {largest} x {largest} x {largest} (TFLOP/s)", fontsize=10)


_Shown = tuple[str, int, int | None, str, float]


def _best(axes: Any, shown: Sequence[_Shown]) -> None:
    kernels, sizes = (list(dict.fromkeys(one[i] for one in shown)) for i in (0, 1))
    width = 0.8 / len(sizes)
    for place, size in enumerate(sizes):
        values = [max(one[4] for one in shown if one[:2] == (kernel, size)) for kernel in kernels]
        x = [i + (place - (len(sizes) - 1) / 2) * width for i in range(len(kernels))]
        axes.bar(x, values, width, label=str(size), color=_COLOURS[place % len(_COLOURS)])
    axes.set_xticks(range(len(kernels)), [str(name).replace("_", "\n") for name in kernels], fontsize=7)
    axes.set_title("best of each kernel, by size (TFLOP/s)", fontsize=10)
    _finish(axes, "upper left")


def _by_stages(axes: Any, shown: Sequence[_Shown]) -> None:
    series: dict[str, dict[int, float]] = {}
    for kernel, _, stages, others, value in shown:
        if stages is not None:
            series.setdefault(f"{kernel} {others}".strip(), {})[stages] = value
    for label, points in series.items():
        axes.plot(list(points), list(points.values()), marker="o", markersize=4, label=label)
    axes.set_xlabel("Stages")
    axes.set_xticks(sorted({stages for points in series.values() for stages in points}))
    _finish(axes, "lower right")


def _finish(axes: Any, corner: str) -> None:
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=7, loc=corner, ncols=2)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
