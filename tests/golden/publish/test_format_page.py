"""Format pages: every code of the short formats against ml_dtypes, ranges against NumPy,
ignored bits, users."""

from __future__ import annotations

import re
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from native import SHORT

from golden.publish import format_page


def rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the last table below a heading."""
    part = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = re.findall(r"(?:^\|.*\n?)+", part, re.M)[-1].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def value(text: str) -> Fraction | str:
    """A number as the page writes it: 1.5, -2^-9, 7*2^-3; NaN, Inf and -0 stay words."""
    if text in ("NaN", "Inf", "-Inf", "-0"):
        return text
    match = re.fullmatch(r"(-?)(?:(\d+)\*)?2\^(-?\d+)", text)
    if match:
        return Fraction(-1 if match[1] else 1) * int(match[2] or 1) * Fraction(2) ** int(match[3])
    return Fraction(text)


def expected(number: float) -> Fraction | str:
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "-Inf" if number < 0 else "Inf"
    return "-0" if number == 0 and np.signbit(number) else Fraction(number)


@pytest.mark.parametrize("name", SHORT)
def test_every_code_is_what_ml_dtypes_says(name: str) -> None:
    text = format_page.markdown(name)
    table = rows(text, "Every code")
    codes = np.arange(len(table), dtype=np.uint8)
    numbers = codes.view(SHORT[name]).astype(np.float64)
    assert len(table) == 1 << {"e3m2": 6, "e2m3": 6, "e2m1": 4}.get(name, 8)
    for code, (shown, bits, decimal, power) in enumerate(table):
        assert int(shown.strip("`"), 16) == code == int(bits.strip("`").replace(" ", ""), 2)
        assert value(power) == expected(float(numbers[code])), shown
        if decimal.startswith("≈"):
            assert float(decimal[2:]) == pytest.approx(float(numbers[code]), rel=1e-5)
        else:
            assert value(decimal) == expected(float(numbers[code])), shown


@pytest.mark.parametrize("name", [name for name in SHORT if name not in ("e3m2", "e2m3", "e2m1")])
def test_grid_holds_the_same_numbers(name: str) -> None:
    part = format_page.markdown(name).split("## Every code", 1)[1].split("<details>", 1)[0]
    cells = [line.strip("|").split("|")[1:] for line in part.splitlines() if line.startswith("| **")]
    numbers = np.arange(256, dtype=np.uint8).view(SHORT[name]).astype(np.float64)
    assert [value(cell.strip()) for row in cells for cell in row] == [expected(float(x)) for x in numbers]


def test_ue4m3_ignores_its_highest_bit() -> None:
    table = rows(format_page.markdown("ue4m3"), "Every code")
    numbers = np.arange(128, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    assert [value(row[3]) for row in table] == [expected(float(x)) for x in numbers] * 2


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("f16", np.finfo(np.float16)),
        ("f32", np.finfo(np.float32)),
        ("f64", np.finfo(np.float64)),
        ("bf16", ml_dtypes.finfo("bfloat16")),
    ],
)
def test_ranges_are_those_of_numpy(name: str, limits: np.finfo) -> None:
    table = {
        what: value(re.split(" [=≈] ", text)[0])
        for what, text, _ in rows(format_page.markdown(name), "Range")[:-1]
    }
    assert table["largest finite"] == Fraction(float(limits.max))
    assert table["least normal"] == Fraction(float(limits.smallest_normal))
    assert table["least subnormal"] == Fraction(float(limits.smallest_subnormal))
    assert table["epsilon (from 1 to the next number)"] == Fraction(float(limits.eps))


def test_tf32_nan_in_ignored_bits_is_infinity() -> None:
    table = {
        code.strip("`"): (wide, narrow)
        for code, wide, narrow in rows(format_page.markdown("tf32"), "Ignored bits")
    }
    assert table["0x7f800001"] == ("NaN", "Inf")
    assert table["0x7f802000"] == ("NaN", "NaN")
    assert table["0x3f801fff"][1] == "1"
