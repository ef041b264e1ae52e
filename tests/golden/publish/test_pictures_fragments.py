"""Fragment pictures, read back and held against the formulas of the PTX manual
and the AMD calculator (facts/layouts.md).

The formulas stand here as the sources write them; golden/registers/fragments.py is not asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
import svg_reader

import golden
from golden.errors import UnknownNameError
from golden.publish.families import groups
from golden.publish.pictures import fragments

Place = tuple[int, int, int]
"""Lane, register, element in the register."""
Formula = Callable[[int, int, int], tuple[int, int]]
"""(lane, register, element) -> (row, column)."""
TOOLTIP = re.compile(
    r"(?:block (?P<block>\d+), )?row (?P<r0>\d+)(?:-(?P<r1>\d+))?, column (?P<c0>\d+)(?:-(?P<c1>\d+))?: "
    r"lane (?P<lane>\d+), (?:register|VGPR) (?P<register>\d+)(?:, bits (?P<high>\d+):(?P<low>\d+))?"
)


def places_of(picture: str, bits: int) -> dict[tuple[int, int, int], Place]:
    """(block, row, column) -> (lane, register, element of `bits` bits), from the tooltips of the cells."""
    found: dict[tuple[int, int, int], Place] = {}
    for item in svg_reader.parse(picture).iter(f"{svg_reader.SVG}rect"):
        title = item.find(f"{svg_reader.SVG}title")
        if title is None:
            continue
        match = TOOLTIP.fullmatch(title.text or "")
        assert match, title.text
        part = {key: int(value) for key, value in match.groupdict().items() if value is not None}
        rows = range(part["r0"], part.get("r1", part["r0"]) + 1)
        columns = range(part["c0"], part.get("c1", part["c0"]) + 1)
        for i, (row, column) in enumerate(product(rows, columns)):
            place = (part["lane"], part["register"], part.get("low", 0) // bits + i)
            assert found.setdefault((part.get("block", 0), row, column), place) == place
    return found


def expected(formula: Formula, lanes: int, registers: int, parts: int) -> dict[tuple[int, int, int], Place]:
    return {(0, *formula(*place)): place for place in product(range(lanes), range(registers), range(parts))}


def by_element(formula: Callable[[int, int], tuple[int, int]], parts: int) -> Formula:
    """A formula of the PTX manual, in i, the index of the element in the thread's fragment."""
    return lambda lane, register, element: formula(lane, register * parts + element)


F64, S8 = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"
S4, F16 = (
    "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
)
FIGURES = [
    ("53", F64, "a", 1, 1, 64, lambda L, i: (L >> 2, L % 4)),
    ("54", F64, "b", 1, 1, 64, lambda L, i: (L % 4, L >> 2)),
    ("55", F64, "d", 2, 1, 64, lambda L, i: (L >> 2, (L % 4) * 2 + (i & 1))),
    ("56", S8, "a", 1, 4, 8, lambda L, i: (L >> 2, (L % 4) * 4 + i)),
    ("57", S8, "b", 1, 4, 8, lambda L, i: ((L % 4) * 4 + i, L >> 2)),
    ("58", S8, "c", 2, 1, 32, lambda L, i: (L >> 2, (L % 4) * 2 + i)),
    ("59", S4, "a", 1, 8, 4, lambda L, i: (L >> 2, (L % 4) * 8 + i)),
    ("60", S4, "b", 1, 8, 4, lambda L, i: ((L % 4) * 8 + i, L >> 2)),
    ("61", S4, "d", 2, 1, 32, lambda L, i: (L >> 2, (L % 4) * 2 + i)),
    (
        "m16n8k16 A",
        F16,
        "a",
        4,
        2,
        16,
        lambda L, i: ((L >> 2) + 8 * (i % 4 >= 2), (L % 4) * 2 + (i & 1) + 8 * (i >= 4)),
    ),
    ("m16n8k16 B", F16, "b", 2, 2, 16, lambda L, i: ((L % 4) * 2 + (i & 1) + 8 * (i >= 2), L >> 2)),
    ("m16n8k16 C", F16, "c", 4, 1, 32, lambda L, i: ((L >> 2) + 8 * (i >= 2), (L % 4) * 2 + (i & 1))),
]


@pytest.mark.parametrize(
    ("figure", "name", "operand", "registers", "parts", "bits", "formula"),
    FIGURES,
    ids=[f[0] for f in FIGURES],
)
def test_ptx_figures_of_one_warp(
    figure: str,
    name: str,
    operand: str,
    registers: int,
    parts: int,
    bits: int,
    formula: Callable[[int, int], tuple[int, int]],
) -> None:
    picture = fragments.matrix(golden.instruction("ampere", name), operand, "x")
    assert places_of(picture, bits) == expected(by_element(formula, parts), 32, registers, parts)


def test_lanes_are_the_inverse() -> None:
    """The table's cell of lane L and register r names the elements that the formula gives."""
    picture = fragments.lanes(golden.instruction("ampere", F16), "a", "x")
    texts = svg_reader.texts(svg_reader.parse(picture))
    heads = {
        text.x: int(text.words[1:])
        for text in texts
        if text.lane is None and re.fullmatch(r"r\d", text.words)
    }
    cells = {
        (text.lane, heads[text.x]): text.words for text in texts if text.lane is not None and text.x in heads
    }
    for lane, register in product(range(32), range(4)):
        column = 2 * (lane % 4) + 8 * (register >> 1)
        assert cells.pop((lane, register)) == f"{(lane >> 2) + 8 * (register & 1)}, {column}-{column + 1}"
    assert not cells


def test_an_operand_without_layout_is_refused() -> None:
    wgmma = golden.instruction("hopper", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")
    with pytest.raises(
        UnknownNameError, match=r"operand 'b' of wgmma.* has no register layout, expected one of a, c, d"
    ):
        fragments.matrix(wgmma, "b", "x")
    tcgen05 = golden.instruction("blackwell", "tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.f16.f16")
    assert fragments.operands(tcgen05) == ()
    with pytest.raises(UnknownNameError, match="expected an operand in registers"):
        fragments.lanes(tcgen05, "d", "x")


@pytest.mark.long
def test_every_layout_draws_small_and_legible() -> None:
    """Every operand of every group of instructions once: well-formed, below 150 kB, every lane's cells in
    one group."""
    seen = set()
    for architecture in golden.architectures():
        for group in groups(architecture):
            ins = group.representative
            for operand in fragments.operands(ins):
                layout = getattr(ins.fragments, operand)
                key = replace(layout, name="", operand="")
                if key in seen:
                    continue
                seen.add(key)
                for picture in (fragments.matrix(ins, operand, "p"), fragments.lanes(ins, operand, "p")):
                    assert len(picture) < 150_000, (ins.name, operand)
                    root = svg_reader.check(picture, "p")
                    lanes = [item.attrib["data-lane"] for item in root.iter() if "data-lane" in item.attrib]
                    assert len(lanes) == len(set(lanes)) > 0
    assert len(seen) > 60
