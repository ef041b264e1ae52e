"""Modifiers of AMD's encodings against what they do to words of registers, and to exact integers.

The words that were recorded with them are in tests/golden/vectors/test_published.py.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import golden
from golden.catalog.source_modifiers import inline_constant
from golden.cli.app import app
from golden.errors import OperandError, UnknownArithmeticError
from golden.traits import SOURCES
from golden.vectors import c_header, default_set

FLOATS = [
    ins
    for architecture in ("rdna3", "rdna4")
    for ins in golden.instructions(architecture)
    if ins.traits.sources.get("c", "").startswith("whole")
]
FIELD = st.integers(0, 7)


def on_registers(
    ins: golden.Instruction, operand: str, words: np.ndarray, fields: golden.Modifiers
) -> np.ndarray:
    """The same said of 32-bit registers, as the architecture's manual does."""
    low, high, select, select_high = (
        field >> "abc".index(operand) & 1
        for field in (fields.neg_lo, fields.neg_hi, fields.op_sel, fields.op_sel_hi)
    )
    if operand == "c":
        signs = np.uint32(0x80000000 if ins.formats["c"].bits == 32 else 0x80008000)
        words = words & ~signs if high else words
        return words ^ signs if low else words
    if ins.traits.sources[operand] == "halves_selected":
        halves = [words & np.uint32(0xFFFF), words >> np.uint32(16)]
        words = halves[select] | halves[select_high] << np.uint32(16)
    return words ^ np.uint32(low << 15 | high << 31)


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(FLOATS), st.integers(1, 1000), FIELD, FIELD, FIELD, FIELD)
def test_operands_are_read_as_registers_are(
    ins: golden.Instruction, seed: int, neg_lo: int, neg_hi: int, op_sel: int, op_sel_hi: int
) -> None:
    rules = ins.traits.sources
    taken = sum(1 << i for i, x in enumerate("abc") if rules.get(x))
    selected = sum(1 << i for i, x in enumerate("abc") if rules.get(x) not in ("halves", "whole", None))
    fields = golden.Modifiers(neg_lo & taken, neg_hi & taken, op_sel & selected, op_sel_hi | ~selected & 7)
    unit, held = golden.modified(ins, fields), ins.fragments
    tiles = default_set(ins, 1, seed=seed, level="tile").operands
    changed = {}
    for operand, codes in tiles.items():
        layout = getattr(held, operand)
        words = layout.pack(codes)
        words = on_registers(ins, operand, words, fields) if operand in rules else words
        changed[operand] = layout.unpack(words)
    assert np.array_equal(unit(**tiles), ins(**changed))
    one = {name: codes[0] for name, codes in tiles.items()}
    dots = {"a": one["a"][0], "b": one["b"][:, 0], "c": one["c"][0, 0]}
    assert unit.dot(**dots) == unit(**tiles)[0, 0, 0]


@pytest.mark.parametrize("name", ["rdna3:iu8_w64", "rdna4:iu4_w32"])
def test_signs_and_clamp_of_integers(name: str) -> None:
    architecture, rest = name.split(":")
    ins = golden.instruction(architecture, f"v_wmma_i32_16x16x16_{rest}")
    bits, rng = 8 if "iu8" in rest else 4, np.random.default_rng(5)
    a, b = (rng.integers(0, 1 << bits, (16, 16)).astype(np.uint8) for _ in "ab")
    c = rng.integers(-1000, 1000, (16, 16)).astype(np.int32)
    for neg in range(4):
        unit = golden.modified(ins, f"neg_lo:[{neg & 1},{neg >> 1},0]")
        x, y = (
            codes.astype(int) - (codes >> bits - 1 << bits if neg >> place & 1 else 0)
            for place, codes in enumerate((a.astype(int), b.astype(int)))
        )
        assert np.array_equal(unit(a, b, c.view(np.uint32)).view(np.int32), x @ y + c)
        assert golden.modified(unit.instruction, golden.Modifiers()).instruction is unit.instruction


def test_signs_and_clamp_together() -> None:
    ins = golden.instruction("rdna4", "v_wmma_i32_16x16x16_iu8_w32")
    clamped = golden.modified(ins, "neg_lo:[1,1,0] clamp").instruction
    assert clamped.name.endswith("w32.s8.s8.clamp")
    assert golden.modified(clamped, "neg_lo:[1,0,0]").instruction is clamped


def test_every_rule_is_somewhere() -> None:
    reported = {
        rule
        for architecture in ("rdna3", "rdna4")
        for ins in golden.instructions(architecture)
        for rule in ins.traits.sources.values()
    }
    assert reported == SOURCES.keys()


@given(FIELD, FIELD, FIELD, FIELD, st.booleans())
def test_written_as_assemblers_do(neg_lo: int, neg_hi: int, op_sel: int, op_sel_hi: int, clamp: bool) -> None:
    fields = {"neg_lo": neg_lo, "neg_hi": neg_hi, "op_sel": op_sel, "op_sel_hi": op_sel_hi}
    written = " ".join(f"{key}:[{v & 1},{v >> 1 & 1},{v >> 2}]" for key, v in fields.items())
    assert golden.Modifiers.parse(written + " clamp" * clamp) == golden.Modifiers(**fields, clamp=clamp)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("rdna3:v_wmma_f16_16x16x16_f16_w32", "neg:[1,0,0]", "'neg:.*' is no modifier, expected neg_lo"),
        ("rdna3:v_wmma_f16_16x16x16_f16_w32", "neg_lo:[1,0,2]", "is no modifier"),
        ("rdna3:v_wmma_f16_16x16x16_f16_w32", "clamp clamp", "'clamp' is given twice"),
        ("rdna3:v_wmma_f32_16x16x16_f16_w32", "op_sel:[1,0,0]", "op_sel of a is 1, expected 0"),
        ("rdna3:v_wmma_f32_16x16x16_f16_w32", "clamp", "takes no clamp"),
        ("rdna4:v_wmma_i32_16x16x16_iu8_w32", "neg_lo:[0,0,1]", "neg_lo of c is 1, expected 0"),
        ("rdna4:v_wmma_i32_16x16x16_iu8_w32", "neg_hi:[1,0,0]", "neg_hi of a is 1, expected 0"),
        ("rdna4:v_dot4_f32_fp8_fp8", "neg_lo:[1,0,0]", "neg_lo of a is 1, expected 0"),
        ("rdna4:v_dot2_f16_f16", "neg_lo:[1,0,0]", "takes no modifiers that are known"),
        ("hopper:HMMA.16816.F32", "neg_lo:[1,0,0]", "takes no modifiers that are known"),
    ],
)
def test_what_is_not_taken(name: str, text: str, message: str) -> None:
    with pytest.raises(OperandError, match=message):
        golden.modified(golden.instruction(*name.split(":")), text)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: golden.Modifiers(neg_hi=8), "argument 'neg_hi' is 8, expected a field of three bits"),
        (lambda: golden.Modifiers(clamp="no"), "argument 'clamp' is 'no', expected True or False"),
        (
            lambda: golden.Modifiers.decode(0x1A021100, 0xCC424018),
            "'low' is 0x1a021100, expected a word of VOP3P",
        ),
        (
            lambda: golden.Modifiers.decode(0xCC424018, 1 << 32),
            "'high' is 4294967296, expected a word of 32 bits",
        ),
        (
            lambda: golden.Modifiers.decode(0xCC130000, 0x040E04FA),
            "'high' is 0x040e04fa: its src0 250 says DPP",
        ),
        (lambda: golden.modified(FLOATS[0], None), "argument 'modifiers' is None, expected Modifiers"),
        (lambda: golden.modified("v_dot2", "clamp"), "argument 'ins' is 'v_dot2', expected Instruction"),
        (lambda: inline_constant(FLOATS[0], "e", 128), "inline constant gives operand e is not known"),
    ],
)
def test_arguments_that_there_are_not(make: Callable[[], object], message: str) -> None:
    with pytest.raises(OperandError, match=message):
        make()


@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_empty_batches(shape: tuple[int, ...]) -> None:
    ins = golden.instruction("rdna4", "v_wmma_f16_16x16x16_f16_w32")
    unit = golden.modified(ins, golden.Modifiers(neg_lo=np.uint8(1)))
    codes = np.zeros((*shape, 16, 16), np.uint16)
    assert unit(codes, codes, codes).shape == ins(codes, codes, codes).shape == codes.shape
    assert unit.dot(codes, codes, codes[..., 0]).shape == (*shape, 16)


def test_clamps_and_constants_that_nobody_has_reported() -> None:
    ins = golden.instruction("rdna4", "v_wmma_i32_16x16x16_iu8_w64")
    with pytest.raises(UnknownArithmeticError):
        golden.modified(ins, "clamp")
    packed = golden.instruction("rdna4", "v_wmma_f16_16x16x16_f16_w32")
    with pytest.raises(OperandError, match="argument 'selector' is 249, expected one of 128 to 248"):
        inline_constant(packed, "c", 249)
    with pytest.raises(OperandError, match="inline constant gives operand a is not known"):
        inline_constant(packed, "a", 240)


def test_command(tmp_path: Path) -> None:
    ins = golden.instruction("rdna4", "v_dot2_f32_f16")
    vectors = default_set(ins, 50, seed=3)
    np.savez(tmp_path / "in.npz", **vectors.operands)
    options = ["--dot", "--in", str(tmp_path / "in.npz"), "--out", str(tmp_path / "d.npy")]
    text = "neg_lo:[1,0,1] op_sel:[0,1,0] neg_hi:[0,1,1]"
    result = CliRunner().invoke(app, ["run", "rdna4:v_dot2_f32_f16", *options, "--modifiers", text])
    assert result.exit_code == 0, result.output
    assert np.array_equal(np.load(tmp_path / "d.npy"), golden.modified(ins, text).dot(**vectors.operands))


def test_registers_in_c(tmp_path: Path) -> None:
    """The functions NAME_source_OPERAND of exported headers."""
    units = {
        "dot": golden.instruction("rdna3", "v_dot2_f32_f16"),
        "wmma": golden.instruction("rdna4", "v_wmma_bf16_16x16x16_bf16_w32"),
        "f32": golden.instruction("rdna4", "v_wmma_f32_16x16x16_f16_w32"),
    }
    calls = []
    for name, ins in units.items():
        (tmp_path / f"{name}.h").write_text(c_header.text([ins], name, name))
        for x in "abc":
            more = ", uint32_t s, uint32_t t" if (name, x) in (("dot", "a"), ("dot", "b")) else ""
            given = ", s, t" if more else ""
            calls.append(
                f"uint32_t call_{name}_{x}(uint32_t w, uint32_t n, uint32_t h{more}) "
                f"{{ return {name}_source_{x}(w, n, h{given}); }}"
            )
    text = "".join(f'#include "{name}.h"\n' for name in units) + "\n".join(calls)
    (tmp_path / "calls.c").write_text(text)
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-shared", "-fPIC"]
    subprocess.run(["gcc", *strict, "-o", "calls.so", "calls.c"], cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "calls.so"))
    words = np.array([0x3C00C000, 0x80007C01, 0x0001FFFF], np.uint32)
    for code in range(16):
        low, high, select, select_high = (code >> bit & 1 for bit in range(4))
        fields = golden.Modifiers(7 * low, 7 * high, 7 * select, 7 * select_high)
        for name, ins in units.items():
            for x in "abc":
                call = getattr(library, f"call_{name}_{x}")
                call.restype = ctypes.c_uint32
                chosen = [select, select_high] if name == "dot" and x in "ab" else []
                got = [call(ctypes.c_uint32(word), low, high, *chosen) for word in words.tolist()]
                assert got == on_registers(ins, x, words, fields).tolist(), (name, x, fields)
