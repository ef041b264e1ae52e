"""Charts: matplotlib figures as inline SVG, the plots of timing by ILP and warps, and the plan of each batch
size (`batches`): a bar a layer, M to the right, a colour a plan, strokes where bits change."""

from __future__ import annotations

import io
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from golden.kernels.invariance import BatchMap, Run, words
from golden.publish.pictures import svg
from golden.studies.draw import only_style

if TYPE_CHECKING:
    from golden.catalog.timing import Figure as Timing

_SVG = "http://www.w3.org/2000/svg"
_HREF = "{http://www.w3.org/1999/xlink}href"
_DROPPED = (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style")
_FAMILY = re.compile(r"font-family: [^;]+")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def inline(figure: Any, name: str, title: str = "") -> str:
    """Returns a matplotlib Figure as one <svg> element for a page;
    the same figure always gives the same text.

    name: prefix of its ids. title: read aloud by screen readers. Black becomes the page's text colour and
    white the page's background, so that the picture can be read in dark mode. Text stays text.
    """
    out = io.BytesIO()
    with only_style({"svg.hashsalt": name, "svg.fonttype": "none"}):
        _save(figure, out)
    root = ElementTree.fromstring(out.getvalue())
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in _DROPPED]:
            parent.remove(child)
    for item in root.iter():
        _adapt(item, name)
    _, _, width, height = root.attrib["viewBox"].split()
    root.attrib.update(
        {
            "width": width,
            "height": height,
            "class": "mg-picture mg-plot",
            "role": "img",
            "style": "max-width:100%;height:auto;stroke-linejoin:round;stroke-linecap:butt",
        }
    )
    if title:
        root.attrib["aria-label"] = title
    ElementTree.register_namespace("", _SVG)
    return "\n".join(
        line for line in ElementTree.tostring(root, encoding="unicode").splitlines() if line.strip()
    )


def _save(figure: Any, out: io.BytesIO) -> None:
    """Writes a figure, transparent, as `savefig` does; that draws everything twice, once for the layout
    alone."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    for patch in (figure.patch, *(axes.patch for axes in figure.axes)):
        patch.set_facecolor("none")
        patch.set_edgecolor("none")
    canvas: Any = FigureCanvasSVG(figure)  # print_svg has no types
    canvas.print_svg(out, metadata={"Date": None})


def _adapt(item: ElementTree.Element, name: str) -> None:
    """Prefixes ids and references; black and white give way to the page's colours."""
    if "id" in item.attrib:
        item.attrib["id"] = f"{name}-{item.attrib['id']}"
    if _HREF in item.attrib:
        item.attrib["href"] = f"#{name}-{item.attrib.pop(_HREF)[1:]}"
    for key, value in item.attrib.items():
        value = _REFERENCE.sub(rf"url(#{name}-\1)", value)
        value = _FAMILY.sub(f"font-family: {svg.SANS}", value)
        item.attrib[key] = value.replace("#000000", "currentColor").replace("fill: #ffffff", "fill: none")
    if item.tag == f"{{{_SVG}}}text" and "fill" not in item.attrib.get("style", ""):
        item.attrib |= {"class": "mg-text", "fill": svg.STYLES["text"]["fill"]}


def ilp_warps(instruction: str, figures: Sequence[Timing], name: str = "timing") -> str:
    """Returns throughput and latency of an instruction by ILP and warps as SVG; name: prefix of its ids.

    figures: as `golden.catalog.timing.load("hopper_h200")` gives them.

    Raises:
        ToolMissing: no matplotlib. UnknownNameError: the instruction has no points in these figures.
    """
    from golden.studies import timing_plots

    with only_style({}):
        picture = timing_plots.picture(instruction, figures)
    return inline(picture, name, f"Throughput and latency of {instruction} by warps and ILP")


_LABEL, _WIDTH, _ROW, _BAR = 200.0, 600.0, 22.0, 14.0
"""Pixels: names to the left, the plot, a row, the bar in it."""
_TOP, _EDGE = 22.0, 16.0  # px: the axis above the rows, the margins to both sides
_UNKNOWN = "no plan known"


def batch_picture(maps: Sequence[BatchMap]) -> str:
    """The SVG element of these layers; M goes from 1 to the largest that was called, each doubling as wide as
    the next."""
    most = max(run.last for one in maps for run in one.runs)
    styles = _styles(maps)
    content = [*_axis(most, len(maps))]
    for row, one in enumerate(maps):
        content += _layer(one, _TOP + row * _ROW, most, styles)
    bottom = _TOP + len(maps) * _ROW + 12
    legend, height = _legend(styles, bottom)
    title = "The plan of each batch size M; a stroke stands where the bits of a row change"
    return svg.document(_LABEL + _WIDTH + 2 * _EDGE, height, [*content, *legend], "batches", title)


def _x(m: float, most: int) -> float:
    return _EDGE + _LABEL + _WIDTH * math.log2(m) / math.log2(most + 1)


def _label(one: BatchMap, run: Run) -> str:
    """A plan without the lengths of its parts: plans of many layers have one colour."""
    return re.sub(r" of \d+ added in f32", "", words(one.plans[run.answer], one.layer.k))


def _styles(maps: Sequence[BatchMap]) -> dict[str, str]:
    """A style for each plan in words, plans of few parts first; all others share the last colour."""
    seen = {_label(one, run) for one in maps for run in one.runs}
    known = sorted(seen - {_UNKNOWN}, key=lambda label: (label != "one part", len(label), label))
    styles = {plan: f"c{min(i, len(svg.PALETTE) - 1)}" for i, plan in enumerate(known)}
    return styles | ({_UNKNOWN: "lost"} if _UNKNOWN in seen else {})


def _axis(most: int, rows: int) -> list[str]:
    marks = []
    for power in range(int(math.log2(most)) + 1):
        x = _x(2**power, most)
        marks.append(svg.text(x, 12, str(2**power), "muted", anchor="middle"))
        marks.append(svg.line([(x, 16), (x, _TOP + rows * _ROW)], stroke="#d0d5da"))
    return [svg.text(_EDGE, 12, "M", "muted"), *marks]


def _layer(one: BatchMap, y: float, most: int, styles: dict[str, str]) -> list[str]:
    """A bar for each run, and a stroke in front of each that changes the bits of a row."""
    content = [svg.text(_EDGE, y + _BAR - 3, one.layer.name)]
    changed = {m for change in one.changes for m in change.begins}
    for run in one.runs:
        left, right = _x(run.first, most), _x(run.last + 1, most)
        style = styles[_label(one, run)]
        content.append(svg.rect(left, y, max(right - left, 0.8), _BAR, style, stroke="none"))
    for m in sorted(changed):
        x = _x(m, most)
        content.append(svg.line([(x, y - 2), (x, y + _BAR + 2)], stroke_width=1.5))
    return content


def _legend(styles: dict[str, str], y: float) -> tuple[list[str], float]:
    """Colours and their plans in lines; plans beyond the palette share its last colour. The second answer is
    the height of the whole picture."""
    by_style: dict[str, list[str]] = {}
    for plan, style in styles.items():
        by_style.setdefault(style, []).append(plan)
    content, x = [], _EDGE
    for style, plans in by_style.items():
        label = plans[0] if len(plans) == 1 else f"{len(plans)} other plans"
        width = 24 + svg.width_of(label)
        if x > _EDGE and x + width > _LABEL + _WIDTH:
            x, y = _EDGE, y + 18
        content += [svg.rect(x, y, 12, 12, style), svg.text(x + 17, y + 10, label)]
        x += width + 14
    return content, y + 24
