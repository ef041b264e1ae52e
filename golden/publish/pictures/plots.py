"""matplotlib figures as inline SVG, and the plots of timing by ILP and warps."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
