"""The SVG builder, pictures of formats, and matplotlib figures made fit for a page."""

from __future__ import annotations

import itertools
import re

import ml_dtypes
import numpy as np
import pytest
import svg_reader

from golden.errors import UnknownNameError
from golden.number.formats import get_format
from golden.publish.pictures import formats, plots, svg

DTYPES = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}
ALL = (
    "f64",
    "f32",
    "tf32",
    "bf16",
    "f16",
    "e5m2",
    "e4m3",
    "e5m2fnuz",
    "e4m3fnuz",
    "e3m2",
    "e2m3",
    "e2m1",
    "ue8m0",
    "ue4m3",
)
INTEGERS = ("s32", "s8", "u8", "s4", "u4", "b1")


def test_attributes_and_text_are_escaped() -> None:
    drawn = svg.document(10, 10, [svg.text(1, 2, "a < b & c", data_x='"<')], "n", "t & <u>")
    root = svg_reader.parse(drawn)
    texts = list(root.iter(f"{svg_reader.SVG}text"))
    assert texts[0].text == "a < b & c" and texts[0].attrib["data-x"] == '"<'
    assert root[0].text == "t & <u>" and root[0].attrib["id"] == "n-title"


def test_lines_break_where_the_width_ends() -> None:
    lines = svg.wrap("one two three four", svg.width_of("one two"))
    assert lines == ["one two", "three", "four"]
    assert svg.width_of("WWW") > svg.width_of("iii")


@pytest.mark.parametrize("name", ALL + INTEGERS)
def test_every_format_draws(name: str) -> None:
    fmt = get_format(name)
    for picture in (formats.bit_fields(fmt, "b"), formats.number_line(fmt, "b")):
        assert svg_reader.overlapping(svg_reader.check(picture, "b")) == []


def test_bit_numbers_of_tf32() -> None:
    """Sign 31, exponent 30 to 23, fraction 22 to 13, the low 13 bits ignored (PTX ISA)."""
    words = svg_reader.words(formats.bit_fields(get_format("tf32"), "b"))
    assert [word for word in words if word.isdigit()] == ["31", "30", "23", "22", "13", "12", "0"]
    assert "exponent 8" in words and "fraction 10" in words
    assert "the lowest 13 bits are ignored" in words[-1]


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


def test_special_codes_of_e5m2() -> None:
    words = " ".join(svg_reader.words(formats.number_line(get_format("e5m2"), "x")))
    assert "+infinity: 0x7C" in words and "NaN: 0x7D to 0x7F, 0xFD to 0xFF" in words


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


def test_ilp_and_warps_of_a_measured_instruction() -> None:
    pytest.importorskip("matplotlib")
    from golden.catalog.timing import load

    measured = load("hopper_h200")
    name = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
    picture = plots.ilp_warps(name, measured, "t")
    words = [item.text for item in svg_reader.parse(picture).iter(f"{svg_reader.SVG}text")]
    assert f"{name}, NVIDIA H200" in words and "Warps on the multiprocessor" in words
    warps = {figure.warps for figure in measured if figure.instruction == name and figure.warps is not None}
    assert {str(count) for count in warps} <= set(words)
    with pytest.raises(UnknownNameError):
        plots.ilp_warps("mma.none", measured, "t")


@pytest.mark.parametrize("name", ALL + INTEGERS)
def test_numbers_of_bits_stand_apart(name: str) -> None:
    """In f64 a sign and an exponent are too narrow for the numbers of all of their ends."""
    root = svg_reader.parse(formats.bit_fields(get_format(name), "b"))
    found = [text for text in root.iter(f"{svg_reader.SVG}text") if text.attrib["y"] == "16"]
    assert found[0].text == str(get_format(name).bits - 1)
    ends = [(float(text.attrib["x"]), svg.width_of(text.text or "", 10) / 2) for text in found]
    assert all(x + half < other - its_half for (x, half), (other, its_half) in itertools.pairwise(ends))
