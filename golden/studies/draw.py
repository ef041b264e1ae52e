"""One style for the figures of all studies: legible at the width of a phone, distinguishable without colours,
light or dark.

Black marks text and axes (the site recolours it for dark pages); the background stays transparent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from golden.errors import missing

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#B2619A", "#C78500", "#3A9BDC", "#7A7A7A", "#8C564B")
"""After Okabe and Ito, with the light ones darkened: tell-apart for the colour-blind, and seen on white
and on near black."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-", "--", "-.", ":", "-", "--")
_STYLE = {
    "svg.hashsalt": "mmagold",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "axes.labelsize": 10.5,
    "legend.fontsize": 10,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
}


@contextmanager
def only_style(settings: Mapping[str, Any] = _STYLE) -> Iterator[None]:
    """Has Matplotlib draw with its own defaults and these settings (the house style), whatever the reader's
    matplotlibrc says.

    Figures are drawn and saved inside; afterwards the reader's settings are back.

    Raises:
        DocsToolMissing: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        raise missing("matplotlib") from None
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)  # type: ignore[arg-type]
        yield


def canvas(width: float = 4.9, height: float = 3.8) -> tuple[Picture, Any]:
    """A picture (inches) with one set of axes; drawn inside `only_style()`."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(width, height), layout="constrained")
    picture.patch.set_alpha(0)
    axes = picture.subplots()
    axes.patch.set_alpha(0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    return picture, axes


def style(index: int) -> dict[str, Any]:
    """Colour, marker and line of the index-th curve."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": LINES[index % len(LINES)],
    }


def legend(axes: Any, columns: int = 2) -> None:
    """The legend below the axes, where no curve runs."""
    axes.figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns, frameon=False
    )


def powers_of_two(axes: Any, values: Sequence[float]) -> None:
    """Logarithmic x axis to base 2 with plain numbers at the given ticks."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_ticks(list(values), [f"{value:g}" for value in values])
    axes.xaxis.minorticks_off()
