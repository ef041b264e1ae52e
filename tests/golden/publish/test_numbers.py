"""The numbers of ten pages as the reader sees them, against the model: computed here through the public API
by another road.

The page's special values come from the reference, here the C core answers the operands that the page prints.
F is measured: the largest n for which (16 + 16 * 2^-n) - 16 is not zero. Widths follow from the formats, F
and the number of addends.
"""

from __future__ import annotations

import html
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import golden
from golden import stimuli
from golden.publish import families

# Page, F by the papers (MMA-Sim Tables III and IV; None where the unit has another kind of register), and the
# NaN word.
PAGES = [
    ("volta/wmma_f16-f32", 23, 0x7FFFFFFF),
    ("turing/mma_f16-f32", 24, 0x7FFFFFFF),
    ("ampere/mma_bf16-f32", 24, 0x7FFFFFFF),
    ("ada/mma_fp8-f32", 13, 0x7FFFFFFF),
    ("hopper/mma_f16-f32", 25, 0x7FFFFFFF),
    ("hopper/wgmma_fp8-f32", 13, 0x7FFFFFFF),
    ("blackwell/tcgen05_f16-f16", 25, 0x7FFF),
    ("rtx_blackwell/mma_mxf4-f32", 35, 0x7FFFFFFF),
    ("cdna1/mfma_old-f32-from-f16-bf16", None, None),
    ("cdna3/mfma-f32-from-f16-bf16", 24, None),
]


def plain(markup: str) -> str:
    """The text of markup."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", markup)).split())


class Shown:
    """A built page of a group: its tables by their heads, as text."""

    def __init__(self, site: Path, path: str) -> None:
        text = (site / "instructions" / f"{path}.html").read_text("utf-8")
        self.text = plain(re.sub(r"<svg.*?</svg>", "", text, flags=re.S))
        self.tables = [
            [
                [plain(cell) for cell in re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", row, re.S)]
                for row in table.split("</tr>")[:-1]
            ]
            for table in re.findall(r"<table\b.*?</table>", text, re.S)
        ]
        group = next(
            group
            for group in families.groups(path.partition("/")[0])
            if group.path == f"instructions/{path}.md"
        )
        name = re.search(r"Shown for (\S+)\. ", self.text)
        assert name is not None or len(group.variants) == 1
        self.ins = golden.instruction(group.architecture, group.variants[0].name if name is None else name[1])

    def table(self, *head: str) -> list[list[str]]:
        """The rows of the first table whose head begins so."""
        return next(rows[1:] for rows in self.tables if rows[0][: len(head)] == list(head))


@pytest.fixture(scope="module")
def shown(site: Path) -> dict[str, Shown]:
    return {path: Shown(site, path) for path, _, _ in PAGES}


def operands(ins: golden.Instruction, **codes: Any) -> dict[str, np.ndarray]:
    """The first elements of a, b and c, the rest zeros; scales one;
    metadata selects the first two of four."""
    made: dict[str, Any] = {}
    for name, shape in ins.operand_shapes(matrices=False).items():
        made[name] = (
            np.full(shape, 0x4, np.uint8) if name == "metadata" else np.zeros(shape, ins.formats[name].dtype)
        )
    for name in ("scale_a", "scale_b"):
        if name in made:
            made[name][:] = stimuli.one(ins.formats[name])
    for name, values in codes.items():
        if made[name].ndim:
            made[name][: len(values)] = values
        else:
            made[name][...] = values[0]
    return made


@pytest.mark.parametrize(("path", "expected", "word"), PAGES)
def test_parameters_are_those_of_the_papers(
    shown: dict[str, Shown], path: str, expected: int | None, word: int | None
) -> None:
    values = {row[0]: row[2] for row in shown[path].table("Parameter", "Symbol", "Value")}
    if expected is not None:
        bits = [int(value) for name, value in values.items() if name == "fraction_bits"]
        assert bits == [expected], values
    if word is not None:
        assert int(values["nan"], 16) == word


@pytest.mark.parametrize(
    "path", [path for path, bits, _ in PAGES if bits in (13, 23, 24, 25) and not path.startswith("cdna")]
)
def test_f_is_what_the_unit_does(shown: dict[str, Shown], path: str) -> None:
    page, ins = shown[path], shown[path].ins
    fmt = ins.formats["a"]
    least = math.frexp(float(golden.to_float(fmt, np.array([1], fmt.dtype))[0]))[1] - 1
    kept = []
    for n in range(1, min(30, 4 - 2 * least) + 1):
        first = max(4 - n, least)
        a = golden.from_float(fmt, [16.0, 2.0**first])
        b = golden.from_float(ins.formats["b"], [1.0, 2.0 ** (4 - n - first)])
        given = operands(ins, a=a, b=b, c=[golden.from_float(ins.formats["c"], -16.0)])
        if golden.to_float(ins.formats["d"], ins.dot(**given)) != 0:
            kept.append(n)
    values = {row[0]: row[2] for row in page.table("Parameter", "Symbol", "Value")}
    assert kept == list(range(1, int(values["fraction_bits"]) + 1))


@pytest.mark.parametrize("path", [path for path, _, _ in PAGES])
def test_special_values_are_what_the_core_answers(shown: dict[str, Shown], path: str) -> None:
    page = shown[path]
    rows = page.table("Case", "Operands", "d")
    assert len(rows) >= 8
    for case, given, answer, *_ in rows:
        codes = {}
        for part in given.split(";"):
            name, equals, words = part.partition("=")
            if equals:
                codes[name.strip()] = [
                    int(word, 16)
                    for word, times in re.findall(r"(0x[0-9a-f]+)(?: \((\d+) times\))?", words)
                    for _ in range(int(times or 1))
                ]
        d = int(page.ins.dot(**operands(page.ins, **codes)))
        assert int(answer.split()[0], 16) == d, (case, given, answer, hex(d))


@pytest.mark.parametrize(
    "path", ["volta/wmma_f16-f32", "ampere/mma_bf16-f32", "hopper/mma_f16-f32", "hopper/wgmma_fp8-f32"]
)
def test_widths_follow_from_formats_f_and_addends(shown: dict[str, Shown], path: str) -> None:
    page, ins = shown[path], shown[path].ins
    bits = {row[0]: row[2] for row in page.table("Parameter", "Symbol", "Value")}["fraction_bits"]
    rows = {(row[0], row[1]): row for row in page.table("After", "Register", "Count")}
    products = int(rows["multiply", "products"][2])
    a, b = ins.formats["a"], ins.formats["b"]
    # Two significands in [1, 2) give a product in [1, 4): two integer bits,
    # and all the fraction bits of both.
    assert rows["multiply", "products"][4:6] == ["2", str(a.fraction_bits + b.fraction_bits)]
    assert rows["align", "products"][5] == rows["sum", "total"][5] == bits
    # The largest significands are 2 - 2^-f: the sum stays below n products of them and a c of 2.
    largest = products * (2 - 2.0**-a.fraction_bits) * (2 - 2.0**-b.fraction_bits) + 2
    assert int(rows["sum", "total"][4]) == math.ceil(math.log2(largest))
    assert int(rows["sum", "total"][6]) == 1 + int(rows["sum", "total"][4]) + int(bits)


def test_nan_words_of_the_architecture_pages(site: Path) -> None:
    """Every NaN word in the tables of instructions is what the core gives for a NaN in a, or for infinity
    times zero."""
    checked = 0
    for name in golden.architectures():
        text = (site / "architectures" / f"{name}.html").read_text("utf-8")
        for group in families.groups(name):
            row = re.search(
                rf"<tr[^>]*>(?:(?!</tr>).)*{re.escape(group.slug)}\.html(?:(?!</tr>).)*</tr>", text, re.S
            )
            word = re.search(r"NaN (?:is )?(0x[0-9A-Fa-f]+)", plain(row[0])) if row else None
            ins = group.representative
            if word is None or ins.formats["a"].nan is None:
                continue
            causes = [{"a": [ins.formats["a"].nan], "b": [stimuli.one(ins.formats["b"])]}]
            if ins.formats["a"].infinity is not None:
                causes.append({"a": [ins.formats["a"].infinity]})
            answers = {int(ins.dot(**operands(ins, **cause))) for cause in causes}
            assert int(word[1], 16) in answers, (group.path, word[1])
            checked += 1
    assert checked > 40
