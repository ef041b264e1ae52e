"""Pictures of instructions one by one: reading the clock as H. Abdelkhalik et al. do (Table I, figure 4), and
what moves matrices (section 7 and figures 12 to 14 of W. Sun et al.)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from golden.catalog.timing import Figure
from golden.errors import no_match

COUNTED = "add.u32"
"""The instruction that is timed by how many of it there are."""
_CLOCKS = {
    "": "64-bit clock, independent",
    "dependent": "64-bit clock, each waits for the one before",
    "clock 32": "32-bit clock, independent",
}
_COLOURS = ("#2a7fb5", "#86b84f", "#d0553d", "#6673b3")
MOVES = (
    ("ld.shared.u32", ""),
    ("ldmatrix.x1", ""),
    ("ldmatrix.x2", ""),
    ("ldmatrix.x4", ""),
    ("ldmatrix.x4.trans", ""),
    ("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16", "padded"),
    ("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16", ""),
    ("wmma.load.a.sync.aligned.col.m16n16k16.shared.f16", ""),
    ("wmma.load.a.sync.aligned.col.m16n16k16.global.f16", ""),
    ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16", ""),
    ("wmma.load.c.sync.aligned.row.m16n16k16.shared.f16", ""),
    ("wmma.load.c.sync.aligned.col.m16n16k16.shared.f16", ""),
)
"""What brings matrices into registers, from the plainest on."""


def by_count(figures: Sequence[Figure]) -> dict[str, dict[int, float]]:
    """Cycles of one of n instructions between two readings of the clock, by variant and n."""
    found: dict[str, dict[int, float]] = {}
    for figure in figures:
        variant, _, count = figure.key.variant.rpartition("x ")
        if figure.instruction == COUNTED and figure.table == "I" and figure.value is not None:
            found.setdefault(variant.strip(), {})[int(count)] = figure.value
    return found


def fill_counts(left: Any, right: Any, figures: Sequence[Figure], published: Sequence[Figure]) -> None:
    """Draws cycles of one of n instructions, and of all n, into two axes of matplotlib.

    Raises:
        UnknownNameError: the file has none.
    """
    ours = by_count(figures)
    if not ours:
        raise no_match("instruction timed by its number", COUNTED, {figure.instruction for figure in figures})
    theirs = by_count(published).get("", {})
    for place, (variant, points) in enumerate(ours.items()):
        style = {"color": _COLOURS[place % len(_COLOURS)], "marker": "o", "markersize": 4}
        label = _CLOCKS.get(variant, variant)
        left.plot(list(points), list(points.values()), label=label, **style)
        right.plot(list(points), [n * value for n, value in points.items()], label=label, **style)
    if theirs:
        left.plot(list(theirs), list(theirs.values()), "k--", marker="s", markersize=4, label="A100, Table I")
    for axes, title in ((left, "cycles of one"), (right, "cycles of all, both readings included")):
        axes.set_title(f"{COUNTED}: {title}", fontsize=10)
        axes.set_xlabel("Instructions between the two readings")
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", alpha=0.3)
        axes.legend(frameon=False, fontsize=8)


def fill_moves(left: Any, right: Any, figures: Sequence[Figure]) -> None:
    """Draws latency and greatest throughput of MOVES, those that there are, into two axes of matplotlib.

    Raises:
        UnknownNameError: the file has none.
    """
    latency: dict[tuple[str, str], float] = {}
    rate: dict[tuple[str, str], float] = {}
    for figure in figures:
        place = (figure.instruction, figure.key.variant)
        if place not in MOVES or figure.value is None:
            continue
        if figure.quantity == "completion_latency":
            latency[place] = figure.value
        elif figure.quantity == "throughput":
            rate[place] = max(figure.value, rate.get(place, 0.0))
    shown = [place for place in reversed(MOVES) if place in latency]
    if not shown:
        raise no_match("instruction that moves matrices", "", {figure.instruction for figure in figures})
    names = [_short(*place) for place in shown]
    for axes, values, title in (
        (left, latency, "Latency (cycles)"),
        (right, rate, "Bytes in a cycle of one multiprocessor, at most"),
    ):
        bars = axes.barh(range(len(shown)), [values.get(place, 0.0) for place in shown], color=_COLOURS[0])
        axes.bar_label(bars, fmt="%.1f", fontsize=7, padding=2)
        axes.margins(x=0.1)  # room for the longest bar's label
        axes.set_yticks(range(len(shown)), names if axes is left else [""] * len(shown), fontsize=7)
        axes.set_title(title, fontsize=10)
        axes.grid(axis="x", alpha=0.3)
        axes.set_axisbelow(True)


def _short(name: str, variant: str) -> str:
    """ "wmma.load.a row, shared, padded" of its full name and variant."""
    if not name.startswith("wmma"):
        return name
    parts = name.split(".")
    return ", ".join([f"{'.'.join(parts[:3])} {parts[5]}", parts[7], *[variant] * bool(variant)])
