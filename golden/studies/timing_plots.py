"""Throughput and latency of an instruction by warps and ILP, drawn as Figures 6, 7, 10, 11 and 15 of Sun
et al. are; and the pictures of the other files of timings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from golden.catalog.timing import Figure, load, names
from golden.errors import ToolMissing, no_match, pip_install
from golden.files.output import make_folder, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture


FIGURES = {
    "figure06": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "figure07": "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32",
    "figure10": "mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32",
    "figure11": "mma.sp.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "figure15": "ldmatrix.x4",
}
"""The paper's figures and what they show."""
_MARGINS = {"left": 0.06, "right": 0.99, "bottom": 0.12, "top": 0.86, "wspace": 0.13}
_SHARE = "share_of_peak"
"""A quantity that only files of `mmagold bench-kernels` have."""
_KERNEL_COLOURS = ("#6673b3", "#35a19b", "#e0a030", "#d0553d")
_COLOURS = ("#6673b3", "#2a7fb5", "#35a19b", "#86b84f", "#e0a030", "#d0553d")

_Shown = tuple[str, int, int | None, str, float]
"""Kernel, size, stages, what else is swept, and TFLOP/s."""


def draw(
    ours: str | Path, folder: Path, chosen: Sequence[str] | None = None, form: str = "svg"
) -> list[Path]:
    """Writes a picture for each instruction, those of FIGURES by default; returns the files.

    Of other files by default: latencies by size, also with words nearer and farther; whole products; what
    moves matrices (with the file without "_wmma", which holds ldmatrix); instructions by their number.

    Raises:
        ToolMissing: no matplotlib. UnknownNameError: an instruction has no points in the file.
        FileFormatError: it cannot be written.
    """
    pictures = _pictures(ours, load(ours), chosen)
    make_folder(folder)
    written = []
    for stem, drawn in pictures.items():
        path = folder / f"{stem}.{form}"
        write_whole(path, partial(drawn.savefig, format=form, dpi=130, metadata=_metadata(form)))
        written.append(path)
    return written


def _pictures(ours: str | Path, figures: list[Figure], chosen: Sequence[str] | None) -> dict[str, Picture]:
    """The pictures by the stem of their file."""
    if chosen is None and any(figure.key.size for figure in figures):
        return {"sizes": staircase(figures), "strides": staircase(figures, strides=True)}
    if chosen is None and any(figure.quantity == _SHARE for figure in figures):
        return {"kernels": products(figures)}
    if chosen is None and by_count(figures):
        return {"clocks": clocks(figures)}
    if chosen is None and any(figure.instruction.startswith("wmma.load") for figure in figures):
        plain = str(ours).removesuffix("_wmma")
        return {"moves": moves([*figures, *(load(plain) if plain in names() else [])])}
    wanted = {name.replace("/", "_").replace(":", "_"): name for name in chosen} if chosen else FIGURES
    return {stem: picture(instruction, figures) for stem, instruction in wanted.items()}


def _metadata(form: str) -> dict[str, Any]:
    """No date in the file: the same numbers always give the same picture."""
    return {"Date": None} if form == "svg" else {"Software": None}


def picture(instruction: str, figures: Sequence[Figure]) -> Picture:
    """Returns throughput (bars) and latency (lines) of one instruction by warps and ILP
    as a matplotlib figure.

    Raises:
        ToolMissing: no matplotlib. UnknownNameError: the instruction has no points in `figures`.
    """
    mine = [figure for figure in figures if figure.instruction == instruction and figure.warps is not None]
    if not mine:
        known = {figure.instruction for figure in figures if figure.warps is not None}
        raise no_match("instruction with points", instruction, known)
    canvas = _canvas()  # a layout that matplotlib finds takes longer than the drawing
    left, right = canvas.subplots(1, 2, gridspec_kw=_MARGINS)
    unit = next(figure.unit for figure in mine if figure.quantity == "throughput")
    _bars(left, [figure for figure in mine if figure.quantity == "throughput"], f"Throughput ({unit})")
    _lines(
        right, [figure for figure in mine if figure.quantity == "latency"], "Latency of one round (cycles)"
    )
    canvas.suptitle(f"{instruction}, {mine[0].device}", fontsize=11)
    return canvas


def products(figures: Sequence[Figure]) -> Picture:
    """Returns the throughput of whole products by kernel, size and stages as a matplotlib figure."""
    canvas = _canvas()
    left, right = canvas.subplots(1, 2, gridspec_kw=_MARGINS)
    shown = [figure for figure in figures if figure.quantity == "chip_throughput"]
    _fill_products(left, right, shown)
    canvas.suptitle(f"Matrix products in bf16, sums in f32, {shown[0].device}", fontsize=11)
    return canvas


def clocks(figures: Sequence[Figure]) -> Picture:
    """Returns cycles by the number of instructions between two readings of the clock, of 64 and of 32 bits,
    as a matplotlib figure, together with those of H. Abdelkhalik et al."""
    canvas = _canvas()
    left, right = canvas.subplots(1, 2, gridspec_kw=_MARGINS)
    fill_counts(left, right, figures, load("abdelkhalik_a100"))
    canvas.suptitle(f"Table I of H. Abdelkhalik et al., {figures[0].device}", fontsize=11)
    return canvas


def moves(figures: Sequence[Figure]) -> Picture:
    """Returns latency and throughput of what brings matrices into registers as a matplotlib figure."""
    canvas = _canvas()
    left, right = canvas.subplots(1, 2, gridspec_kw=_MARGINS | {"left": 0.22, "wspace": 0.05})
    fill_moves(left, right, figures)
    canvas.suptitle(f"Matrices of 16 bits from memory to registers, {figures[0].device}", fontsize=11)
    return canvas


def staircase(figures: Sequence[Figure], strides: bool = False) -> Picture:
    """Returns the latency of loads by the size of their data as a matplotlib figure: each level of memory is
    a step. With `strides` those with words nearer or farther than a line, and one of lines for comparison.

    Raises:
        ToolMissing: no matplotlib. UnknownNameError: no latency by size in `figures`.
    """
    swept = [f for f in figures if f.key.size is not None and _shown(f, strides)]
    if not swept:
        raise no_match("instruction with sizes", "", {figure.instruction for figure in figures})
    canvas = _canvas()
    axes = canvas.subplots(1, 1, gridspec_kw=_MARGINS)
    for place, (name, variant) in enumerate(_kinds(swept)):
        mine = [f for f in swept if (f.instruction, f.key.variant) == (name, variant)]
        points = sorted((figure.key.size or 0, figure.value or 0.0) for figure in mine)
        axes.plot(
            *zip(*points, strict=True),
            label=f"{name}{', ' * bool(variant)}{variant}",
            color=_COLOURS[place % len(_COLOURS)],
            linestyle=("-", "--")[place // len(_COLOURS) % 2],
            marker="o",
            markersize=2.5,
            linewidth=1.2,
        )
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    ticks = [1 << n for n in range(8, 38, 2)]
    low, high = axes.get_xlim()
    shown = [tick for tick in ticks if low <= tick <= high]
    axes.set_xticks(shown, [_size(tick) for tick in shown])
    axes.minorticks_off()
    axes.set_xlabel("Size of the data")
    axes.set_ylabel("Cycles of a load")
    axes.legend(frameon=False, fontsize=8)
    axes.grid(alpha=0.3)
    canvas.suptitle(f"Latency by the size of the data, {swept[0].device}", fontsize=11)
    return canvas


def _shown(figure: Figure, strides: bool) -> bool:
    """Whether a latency by size belongs to the picture of strides, or to the other."""
    strided = figure.key.variant.startswith("stride ")
    lines = figure.instruction == "ld.global.ca.u64" and not figure.key.variant
    return strided or lines if strides else not strided


def _kinds(swept: Sequence[Figure]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((figure.instruction, figure.key.variant) for figure in swept))


def _size(nbytes: int) -> str:
    """A power of two in the unit that gives the shortest number."""
    names = ("B", "KiB", "MiB", "GiB")
    power = min((nbytes.bit_length() - 1) // 10, len(names) - 1)
    return f"{nbytes >> 10 * power} {names[power]}"


def _canvas() -> Picture:
    """An empty picture."""
    try:
        import matplotlib

        matplotlib.rcParams.update({"svg.hashsalt": "mmagold", "svg.fonttype": "none", "font.size": 10})
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise ToolMissing(f"matplotlib is not installed: {pip_install('plots')}") from None
    # Width and height, in inches.
    inches = (11.0, 4.2)
    return Canvas(figsize=inches)


def _by_ilp(figures: Sequence[Figure]) -> dict[int, dict[int, float]]:
    found: dict[int, dict[int, float]] = {}
    for figure in figures:
        found.setdefault(figure.ilp or 0, {})[figure.warps or 0] = figure.value or 0.0
    return dict(sorted(found.items()))


def _warps(figures: Sequence[Figure]) -> list[int]:
    return sorted({figure.warps or 0 for figure in figures})


def _bars(axes: Any, figures: Sequence[Figure], title: str) -> None:
    chains, warps = _by_ilp(figures), _warps(figures)
    width = 0.8 / len(chains)
    for place, (ilp, points) in enumerate(chains.items()):
        x = [warps.index(n) + (place - (len(chains) - 1) / 2) * width for n in points]
        axes.bar(x, list(points.values()), width, label=f"ILP {ilp}", color=_COLOURS[place % len(_COLOURS)])
    _finish(axes, warps, title)


def _lines(axes: Any, figures: Sequence[Figure], title: str) -> None:
    chains, warps = _by_ilp(figures), _warps(figures)
    for place, (ilp, points) in enumerate(chains.items()):
        x = [warps.index(n) for n in points]
        axes.plot(
            x,
            list(points.values()),
            marker="o",
            markersize=4,
            label=f"ILP {ilp}",
            color=_COLOURS[place % len(_COLOURS)],
        )
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8, ncols=2)  # the bars have the same colours, and no room
    _finish(axes, warps, title)


def _finish(axes: Any, warps: Sequence[int], title: str) -> None:
    axes.set_xticks(range(len(warps)), [str(n) for n in warps])
    axes.set_xlabel("Warps on the multiprocessor")
    axes.set_title(title, fontsize=10)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


# Whole matrix products ------------------------------------------------------------------------------------


def product_parts(variant: str) -> tuple[int, int | None, str]:
    """Size, stages and what else is swept, of a variant such as "2048, n256, 4 stages, cluster 2"."""
    size, *others = variant.split(", ")
    stages = next((int(part.split()[0]) for part in others if part.endswith(" stages")), None)
    return int(size), stages, ", ".join(part for part in others if not part.endswith(" stages"))


def _fill_products(left: Any, right: Any, figures: Sequence[Figure]) -> None:
    """Draws into two axes of matplotlib; `figures` are those of one file that `mmagold bench-kernels`
    wrote."""
    shown = [
        (figure.instruction, *product_parts(figure.key.variant), figure.value or 0.0) for figure in figures
    ]
    _best(left, shown)
    largest = max(size for _, size, *_ in shown)
    _by_stages(right, [one for one in shown if one[1] == largest])
    right.set_title(f"by stages of shared memory, {largest} x {largest} x {largest} (TFLOP/s)", fontsize=10)


def _best(axes: Any, shown: Sequence[_Shown]) -> None:
    kernels, sizes = (list(dict.fromkeys(one[i] for one in shown)) for i in (0, 1))
    width = 0.8 / len(sizes)
    for place, size in enumerate(sizes):
        values = [max(one[4] for one in shown if one[:2] == (kernel, size)) for kernel in kernels]
        x = [i + (place - (len(sizes) - 1) / 2) * width for i in range(len(kernels))]
        axes.bar(x, values, width, label=str(size), color=_KERNEL_COLOURS[place % len(_KERNEL_COLOURS)])
    axes.set_xticks(range(len(kernels)), [str(name).replace("_", "\n") for name in kernels], fontsize=7)
    axes.set_title("best of each kernel, by size (TFLOP/s)", fontsize=10)
    _finish_products(axes, "upper left")


def _by_stages(axes: Any, shown: Sequence[_Shown]) -> None:
    series: dict[str, dict[int, float]] = {}
    for kernel, _, stages, others, value in shown:
        if stages is not None:
            series.setdefault(f"{kernel} {others}".strip(), {})[stages] = value
    for label, points in series.items():
        axes.plot(list(points), list(points.values()), marker="o", markersize=4, label=label)
    axes.set_xlabel("Stages")
    axes.set_xticks(sorted({stages for points in series.values() for stages in points}))
    _finish_products(axes, "lower right")


def _finish_products(axes: Any, corner: str) -> None:
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=7, loc=corner, ncols=2)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


COUNTED = "add.u32"
"""The instruction that is timed by how many of it there are."""
_CLOCKS = {
    "": "64-bit clock, independent",
    "dependent": "64-bit clock, each waits for the one before",
    "clock 32": "32-bit clock, independent",
}
_INSTRUCTION_COLOURS = ("#2a7fb5", "#86b84f", "#d0553d", "#6673b3")
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
        style = {
            "color": _INSTRUCTION_COLOURS[place % len(_INSTRUCTION_COLOURS)],
            "marker": "o",
            "markersize": 4,
        }
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
    """Draws latency and greatest throughput of the MOVES that there are into two axes of matplotlib.

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
        bars = axes.barh(
            range(len(shown)), [values.get(place, 0.0) for place in shown], color=_INSTRUCTION_COLOURS[0]
        )
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
