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


def told(picture: str, bits: int) -> dict[tuple[int, int, int], Place]:
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
    assert told(picture, bits) == expected(by_element(formula, parts), 32, registers, parts)


QUADS = [
    ("46", "row.col", "a", 2, lambda L, i: (L % 4 + 4 * (L >= 16), i)),
    ("47", "col.col", "a", 2, lambda L, i: (i % 4 + 4 * (L >= 16), L % 4)),
    ("48", "row.row", "b", 2, lambda L, i: (L % 4, i + 4 * (L >= 16))),
    ("49", "row.col", "b", 2, lambda L, i: (i, L % 4 + 4 * (L >= 16))),
    (
        "51 and 52",
        "row.col",
        "c",
        1,
        lambda L, i: ((L & 1) + (i & 2) + 4 * (L >= 16), (i & 4) + (L & 2) + (i & 1)),
    ),
]


@pytest.mark.parametrize(
    ("layouts", "operand", "parts", "formula"), [f[1:] for f in QUADS], ids=[f[0] for f in QUADS]
)
def test_ptx_figures_of_four_independent_products(
    layouts: str, operand: str, parts: int, formula: Callable[[int, int], tuple[int, int]]
) -> None:
    """Computation q runs on lanes 4q to 4q + 3 and 16 + 4q to 16 + 4q + 3."""
    ins = golden.instruction("volta", f"mma.sync.aligned.m8n8k4.{layouts}.f32.f16.f16.f32")
    wanted = {}
    for lane, i in product(range(32), range(8 if operand == "c" else 4)):
        wanted[(lane % 16 // 4, *formula(lane, i))] = (lane, i // parts, i % parts)
    assert told(fragments.matrix(ins, operand, "x"), 32 // parts) == wanted


def test_figure_50_f16_accumulators() -> None:
    ins = golden.instruction("volta", "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16")
    wanted = {
        (L % 16 // 4, L % 4 + 4 * (L >= 16), i): (L, i // 2, i % 2) for L, i in product(range(32), range(8))
    }
    assert told(fragments.matrix(ins, "d", "x"), 16) == wanted


def test_amd_accumulators_of_16_by_16() -> None:
    """VGPR = i % 4, lane = j + 16 * (i / 4)."""
    ins = golden.instruction("cdna3", "v_mfma_f32_16x16x16_f16")
    wanted = {(0, i, j): (j + 16 * (i // 4), i % 4, 0) for i, j in product(range(16), range(16))}
    assert told(fragments.matrix(ins, "d", "x"), 32) == wanted
    assert "L63:v3" in svg_reader.words(fragments.matrix(ins, "d", "x"))


def test_metadata_of_selector_0() -> None:
    """m16n8k32 f16: lanes t = 0 and 1 of each quad; low half row g, high half row g + 8; t & 1 picks the
    half of the columns."""
    ins = golden.instruction("ampere", "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    picture = fragments.matrix(ins, "metadata", "x")
    wanted = {}
    for lane, nibble in product([L for L in range(32) if L % 4 < 2], range(8)):
        wanted[(0, (lane >> 2) + 8 * (nibble >= 4), 4 * (lane % 4) + nibble % 4)] = (lane, 0, nibble)
    assert told(picture, 4) == wanted
    note = " ".join(svg_reader.words(picture))
    assert "selector 0: lane mod 4 = 0 or 1; selector 1: lane mod 4 = 2 or 3" in note


def test_scales_of_a() -> None:
    """Row g from lane 4g, row g + 8 from lane 4g + 1 (thread-id 0); bytes 0 to 3 for the four blocks of k."""
    name = (
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
    )
    found = told(fragments.matrix(golden.instruction("rtx_blackwell", name), "scale_a", "x"), 8)
    assert found == {
        (0, g + 8 * high, byte): (4 * g + high, 0, byte)
        for g, high, byte in product(range(8), (0, 1), range(4))
    }


def test_labels_stand_where_the_tooltips_say() -> None:
    """The words in a cell, placed by the ruler's numbers above and beside it."""
    root = svg_reader.parse(fragments.matrix(golden.instruction("ampere", F16), "a", "x"))
    texts = svg_reader.texts(root)
    above = {text.x: int(text.words) for text in texts if text.lane is None and text.anchor == "middle"}
    beside = {text.y: int(text.words) for text in texts if text.lane is None and text.anchor == "end"}
    labels = {
        (beside[text.y], above[text.x]): (text.words, text.lane) for text in texts if text.lane is not None
    }
    assert len(labels) == 256
    for lane, register, half in product(range(32), range(4), range(2)):
        place = (lane >> 2) + 8 * (register & 1), 2 * (lane % 4) + half + 8 * (register >> 1)
        assert labels[place] == (f"T{lane}:r{register}:{'lh'[half]}", lane)


def test_large_accumulators_are_cut_to_whole_periods_and_say_how_they_go_on() -> None:
    """wgmma D: row = 16w + g + 8*((i>>1)&1), column = 8*(i>>2) + 2t + (i&1)."""
    ins = golden.instruction("hopper", "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16")
    picture = fragments.matrix(ins, "d", "x")
    found = told(picture, 32)
    assert {(row, column) for _, row, column in found} == set(product(range(32), range(8)))
    for (_, row, column), (lane, register, _part) in found.items():
        w, t = lane >> 5, lane % 4
        assert row == 16 * w + ((lane % 32) >> 2) + 8 * (register >> 1 & 1) and column == 8 * (
            register >> 2
        ) + 2 * t + (register & 1)
    notes = " ".join(svg_reader.words(picture))
    assert "Rows 32 to 63 go on in the same way: 32 rows further, lane + 64." in notes
    assert "Columns 8 to 255 go on in the same way: 8 columns further, register + 4." in notes


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


def test_lanes_of_a_large_accumulator_say_how_they_go_on() -> None:
    ins = golden.instruction("hopper", "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16")
    notes = " ".join(svg_reader.words(fragments.lanes(ins, "d", "x")))
    assert "8 registers further: column + 16." in notes and "32 lanes further: row + 16." in notes


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


def test_the_register_view_is_the_table_of_lanes() -> None:
    ins = golden.instruction("ampere", F16)
    assert fragments.matrix(ins, "b", "x", register_view=True) == fragments.lanes(ins, "b", "x")
