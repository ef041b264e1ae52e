"""Datapaths: the widths on the wires against numbers worked out by hand, and every unit that there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import svg_reader

import golden
from golden.errors import UnknownNameError
from golden.model.instruction import Instruction
from golden.paths import spec_folder
from golden.program.program import Program
from golden.publish.families import groups
from golden.publish.pictures.chain import program
from golden.publish.pictures.datapath import datapath
from golden.publish.pictures.svg import sans_width_of

NVF4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
BY_HAND = [
    # f16 has 11 significand bits, a product 22 (2 above the point); F = 25 (Hopper). 16 products below 4 and
    # c below 2 sum to less than 66: 7 integer bits. Exponents of products: 2 * -14 to 2 * 15.
    (
        "hopper",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        (
            "16 multipliers: 11 x 11 → 22 bits, exact",
            "16 x 23 bits (s2.20)",
            "e -28 … 30",
            "max of 17 exponents, floor -133",
            "16 x 28 bits (s2.25)",
            "c: 27 bits (s1.25)",
            "33 bits (s7.25)",
            "adder tree, 17 addends",
            "32 bits, f32",
            "toward zero (cut)",
            "→ 0x7FFFFFFF",
        ),
    ),
    # Volta: F = 23, four products: 4 * 4 + 2 = 18, 5 integer bits.
    (
        "volta",
        "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
        ("4 x 26 bits (s2.23)", "c: 25 bits (s1.23)", "29 bits (s5.23)", "adder tree, 5 addends"),
    ),
    # e4m3 has 4 significand bits and exponents -6 to 8; F = 13. 32 * 1.875**2 + 2 = 114.5: 7 integer bits.
    # Results are E8M13.
    (
        "hopper",
        "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3",
        (
            "32 multipliers: 4 x 4 → 8 bits, exact",
            "32 x 9 bits (s2.6)",
            "e -12 … 16",
            "32 x 16 bits (s2.13)",
            "c: 15 bits (s1.13)",
            "21 bits (s7.13)",
            "with 13 fraction bits",
        ),
    ),
    # CDNA3: products at F = 24, eight of them below 32: 5 bits. The dot product meets c at 32 fraction bits,
    # together below 34: 6 bits. Renormalised to 31 fraction bits.
    (
        "cdna3",
        "v_mfma_f32_32x32x8_f16",
        (
            "8 x 27 bits (s2.24)",
            "30 bits (s5.24)",
            "38 bits (s5.32)",
            "c: 26 bits (s1.24)",
            "39 bits (s6.32)",
            "33 bits (s1.31)",
            "32 of dot, 24 of c fraction bits kept; bits below are rounded down",
            "at least -126",
        ),
    ),
    # e2m1: 2 significand bits, up to 6. A group of 16 in fixed point: 16 * 36 = 576, 10 bits. ue4m3 scales: 4
    # bits each. The sum has the 13 integer bits that the paper's floor of -139 = -126 - 13 comes from.
    (
        "rtx_blackwell",
        NVF4,
        (
            "64 multipliers: 2 x 2 → 4 bits, exact",
            "4 adder trees of 16",
            "4 x 13 bits (s10.2)",
            "their product: 8 bits (u2.6)",
            "max of 5 exponents, floor -139",
            "49 bits (s13.35)",
            "one code of each for 16 consecutive k",
        ),
    ),
    # s8: 8 x 8 -> 16 bits. 32 * 2**14 + 2**31 needs 32 bits and a sign.
    (
        "hopper",
        "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32",
        ("32 multipliers: 8 x 8 → 16 bits, exact", "33 bits (s32.0)", "32-bit s32: clamps to the range"),
    ),
    (
        "hopper",
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc",
        ("256 AND gates, one bit each", "population count of 256 bits, plus c"),
    ),
    # CDNA2: subnormals flushed, pairs of products, every operation an f32 one.
    (
        "cdna2",
        "v_mfma_f32_32x32x8bf16_1k",
        (
            "flush a, b and c",
            "8 multipliers, rounded to f32 to nearest even",
            "2 groups of 4, each 3 additions in f32 as a balanced tree",
        ),
    ),
    (
        "ampere",
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
        (
            "chain of 4 fused multiply-adds in f64",
            "a0, b0",
            "a3, b3",
            "the first NaN of b, c, a is handed on, quieted",
        ),
    ),
    # CDNA1 cuts nothing: f16 products reach down to 2**-48, c to 2**-149 and up to 2**128.
    ("cdna1", "v_mfma_f32_32x32x8f16", ("278 bits (s128.149)", "nothing is cut")),
]


def texts_of(picture: str) -> str:
    """All words of a picture, lines that were wrapped joined again; times and minus signs in ASCII."""
    return (
        " ".join(svg_reader.words(picture))
        .replace("\N{MULTIPLICATION SIGN}", "x")
        .replace("\N{MINUS SIGN}", "-")
    )


@pytest.mark.parametrize(
    ("architecture", "name", "expected"), BY_HAND, ids=[f"{a}-{n.split('.')[-1]}" for a, n, _ in BY_HAND]
)
def test_widths_and_rules_worked_out_by_hand(architecture: str, name: str, expected: tuple[str, ...]) -> None:
    found = texts_of(datapath(golden.instruction(architecture, name), 0, "x"))
    assert [words for words in expected if words not in found] == []


FAULTY = """
unit: faulty
title: every key that a step has
shape: {k: 8}
formats: {a: f16, b: f16, c: f32, d: f32}
steps:
  - hidden_bit: {of: [a, b], zeros: set}
  - multiply: {to: products, zero_times_infinity: zero, overflow_exponent: 128}
  - special_values: {of: [products, c], opposite_infinities: first}
  - align: {of: [products], fraction_bits: 24, rounding: toward_zero, cut: sticky_added, zeros: sticky, sticky_gap: 2, shift_limit: 31}
  - sum: {of: [products], to: dot, width: 4, cancelled: zero}
  - align: {of: [dot, c], fraction_bits: {dot: 30, c: 24}, rounding: down, left_out: {c: dropped}, window: {dot: 40}}
  - sum: {of: [dot, c], to: total}
  - round: {of: total, rounding: nearest_away, overflow: largest, zero: signed, flush: signed,
            sticky_gap: 1, subnormal_carry: lost}
"""  # noqa: E501


def test_every_rule_of_a_step_is_shown(tmp_path: Path) -> None:
    (tmp_path / "faulty.yaml").write_text(FAULTY)
    picture = datapath(golden.load_instruction(tmp_path / "faulty.yaml"), 0, "x")
    assert svg_reader.overlapping(svg_reader.check(picture, "x")) == []
    expected = (
        "hidden bit set",
        "zeros too",
        "zero times infinity is zero",
        "2^128 or more becomes infinity",
        "the first one",
        "sticky bit S",
        "the 2 bits right below the kept ones do not reach S",
        "a zero that lies below all kept bits sets S",
        "no shift is longer than 31",
        "4 integer bits, two's complement: a carry beyond is lost",
        "cancels to zero leaves the maximum",
        "c is left out of the maximum; where it lies above, it is lost",
        "dot more than 40 below the maximum counts as zero",
        "overflow becomes the largest number",
        "zeros keep their sign",
        "subnormal results become zero of their sign",
        "the 1 bits right below the round bit are not seen",
        "rounds up to the least normal number becomes zero",
    )
    found = texts_of(picture)
    assert [words for words in expected if words not in found] == []


def test_the_picture_follows_the_steps_and_not_the_name() -> None:
    ins = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    operation = ins.program.operations[0]
    steps = tuple(
        replace(step, fraction_bits=(("products", 24), ("c", 24)), floor=-132) if step.op == "align" else step
        for step in operation.steps
    )
    changed = replace(ins, program=Program((replace(operation, steps=steps),)))
    found = texts_of(datapath(changed, 0, "x"))
    assert "32 bits (s7.24)" in found and "33 bits (s7.25)" not in found and "floor -132" in found


def test_special_values_are_those_that_the_formats_have() -> None:
    """e4m3 has no infinity: nothing times zero is NaN, and c alone can be infinite; e5m2 has."""
    name = "wgmma.mma_async.sync.aligned.m64n8k32.f32.{0}.{0}"
    e4m3, e5m2 = (
        texts_of(datapath(golden.instruction("hopper", name.format(fmt)), 0, "x")) for fmt in ("e4m3", "e5m2")
    )
    assert "infinity x 0" not in e4m3 and "both signs" not in e4m3 and "an infinity → that infinity" in e4m3
    assert "infinity x 0 infinities of both signs → 0x7FFFFFFF" in e5m2


def test_an_operation_that_does_not_exist_is_refused() -> None:
    ins = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    with pytest.raises(UnknownNameError, match=r"operation 1 of .*, expected 0 to 0"):
        datapath(ins, 1)


def units() -> Iterator[Instruction]:
    """One instruction of each group of every architecture, each program once, and the custom examples."""
    seen = set()
    for architecture in golden.architectures():
        for group in groups(architecture):
            ins = group.representative
            key = repr((ins.program, ins.formats))
            if key not in seen:
                seen.add(key)
                yield ins
    yield from (golden.load_instruction(path) for path in sorted((spec_folder() / "examples").glob("*.yaml")))


def test_no_text_of_a_datapath_lies_on_another_or_leaves_its_box() -> None:
    """One unit in four."""
    wrong = {}
    for ins in list(units())[::4]:
        for index in range(len(ins.program.operations)):
            root = svg_reader.check(datapath(ins, index, "p"), "p")
            if overlaps := svg_reader.overlapping(root) or svg_reader.outgrown(root, sans_width_of):
                wrong[f"{ins.architecture} {ins.name} {index}"] = overlaps
        if overlaps := svg_reader.overlapping(svg_reader.check(program(ins, "q"), "q")):
            wrong[f"program of {ins.name}"] = overlaps
    assert wrong == {}
