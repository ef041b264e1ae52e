"""The SVG builder, pictures of formats, and matplotlib figures made fit for a page."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
import svg_reader

from golden.number.formats import get_format
from golden.publish.pictures import formats, plots, svg

DTYPES = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}


def test_attributes_and_text_are_escaped() -> None:
    drawn = svg.document(10, 10, [svg.text(1, 2, "a < b & c", data_x='"<')], "n", "t & <u>")
    root = svg_reader.parse(drawn)
    texts = list(root.iter(f"{svg_reader.SVG}text"))
    assert texts[0].text == "a < b & c" and texts[0].attrib["data-x"] == '"<'
    assert root[0].text == "t & <u>" and root[0].attrib["id"] == "n-title"


@pytest.mark.parametrize("name", DTYPES)
def test_the_line_has_a_tick_for_each_number_that_ml_dtypes_has(name: str) -> None:
    values = np.arange(256, dtype=np.uint8).view(DTYPES[name]).astype(np.float64)
    finite = np.unique(values[np.isfinite(values)])
    paths = [
        item.attrib["d"]
        for item in svg_reader.parse(formats.number_line(get_format(name), "x")).iter(f"{svg_reader.SVG}path")
    ]
    least = {"e4m3": 2.0**-6, "e5m2": 2.0**-14, "e4m3fnuz": 2.0**-7, "e5m2fnuz": 2.0**-15}[name]
    small = np.count_nonzero((np.abs(finite) < least) & (finite != 0))
    ticks = [path.count("v18") for path in paths if "v18" in path]
    assert ticks[:2] == [len(finite) - small, small]
    positive = finite[finite > 0]
    assert ticks[2:4] == [len(positive) - small // 2, small // 2]


# Plots ------------------------------------------------------------------------------------------------------


def figure() -> object:
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(4, 3))
    axes = drawn.subplots()
    axes.plot([0, 1, 2], [0, 1, 4], marker="o", label="squares")
    axes.set_title("a < b")
    axes.legend()
    return drawn


def test_a_figure_becomes_one_element_that_fits_a_page() -> None:
    pytest.importorskip("matplotlib")
    first, second = plots.inline(figure(), "one", "squares"), plots.inline(figure(), "two")
    assert first == plots.inline(figure(), "one", "squares")
    assert first.startswith("<svg ") and first.endswith("</svg>")
    ids = [set(re.findall(r' id="([^"]+)"', text)) for text in (first, second)]
    assert ids[0] and all(name.startswith("one-") for name in ids[0]) and not ids[0] & ids[1]
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', first))
    assert used and {a or b for a, b in used} <= ids[0]
    for never in (
        "#000000",
        "#ffffff",
        "<metadata",
        "<style",
        "<!DOCTYPE",
        "<?xml",
        "Date",
        "xlink",
        "matplotlib.org",
    ):
        assert never not in first
    texts = [item.text for item in svg_reader.parse(first).iter(f"{svg_reader.SVG}text")]
    assert "a < b" in texts and "squares" in texts


@pytest.mark.parametrize("name", ("f64", "tf32", "bf16", "e4m3fnuz", "e2m1", "ue8m0", "s8", "b1"))
def test_every_format_draws(name: str) -> None:
    fmt = get_format(name)
    for picture in (formats.bit_fields(fmt, "b"), formats.number_line(fmt, "b")):
        assert svg_reader.overlapping(svg_reader.check(picture, "b")) == []
