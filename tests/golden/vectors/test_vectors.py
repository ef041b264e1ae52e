"""Words and sets of vectors: the bit layout against Python integers,
and sets that are reproducible and correct."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changed_steps import replace_step

import golden
from golden import stimuli, vectors
from golden.program.program import Program
from golden.program.steps import Round, Step, Sum
from golden.vectors import WordLayout

HMMA = golden.instruction("hopper", "HMMA.16816.F32")
MXF4 = golden.instruction(
    "rtx_blackwell",
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
)
F6 = golden.instruction("rtx_blackwell", "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m3.f32")
SPARSE = golden.instruction("ampere", "mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32")
B1 = golden.instruction("ampere", "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc")
F64 = golden.instruction("ampere", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64")
UNITS = {"f16": HMMA, "block scaled e2m1": MXF4, "e3m2 e2m3": F6, "sparse tf32": SPARSE, "b1": B1, "f64": F64}
each_unit = pytest.mark.parametrize("ins", UNITS.values(), ids=list(UNITS))


def word_of(layout: WordLayout, operands: dict[str, Any]) -> int:
    """The operand word of one vector by its definition, in a Python integer."""
    word = 0
    for field in layout.operand_fields:
        packed = sum(int(code) << (field.bits * i) for i, code in enumerate(np.ravel(operands[field.name])))
        word = word << field.width | packed
    return word


@each_unit
@pytest.mark.parametrize("level", vectors.LEVELS)
def test_words_are_what_the_definition_says_and_unpack_to_the_operands(
    ins: golden.Instruction, level: str
) -> None:
    layout = WordLayout.of(ins, level)
    chosen = vectors.default_set(ins, 40 if level == "dot" else 3, level=level)
    words, results = layout.pack_operands(chosen.operands), layout.pack_results(chosen.results)
    assert words.shape == (len(chosen), (layout.operand_width + 7) // 8) and words.dtype == np.uint8
    for i in range(len(chosen)):
        row = {name: codes[i] for name, codes in chosen.operands.items()}
        assert int.from_bytes(words[i].tobytes(), "little") == word_of(layout, row)
        first = int(np.ravel(chosen.d[i])[0])
        assert int.from_bytes(results[i].tobytes(), "little") & ((1 << ins.formats["d"].bits) - 1) == first
    back = layout.unpack_operands(words)
    assert list(back) == list(ins.operand_shapes(level == "tile"))
    for name, codes in chosen.operands.items():
        assert back[name].dtype == codes.dtype and (back[name] == codes).all()
    assert (layout.unpack_results(results)["d"] == chosen.d).all()
    halves = layout.split(layout.join(words, results))
    assert (halves[0] == words).all() and (halves[1] == results).all()


def test_fields_of_known_units() -> None:
    """Widths and places written out by hand."""
    places = {f.name: (f.msb, f.lsb) for f in WordLayout.of(HMMA).fields}
    assert places == {"a": (543, 288), "b": (287, 32), "c": (31, 0), "d": (31, 0)}
    layout = WordLayout.of(MXF4)
    places = {f.name: (f.msb, f.lsb) for f in layout.fields}
    assert places == {
        "a": (607, 352), "b": (351, 96), "c": (95, 64), "scale_a": (63, 32), "scale_b": (31, 0), "d": (31, 0)
    }  # fmt: skip
    assert layout.operand_width == 608 and layout.result_width == 32
    assert [f.name for f in WordLayout.of(SPARSE).fields] == ["a", "b", "c", "metadata", "d"]
    assert WordLayout.of(HMMA, "tile").operand_width == 16 * (16 * 16 + 16 * 8) + 32 * 16 * 8


ODD = """
unit: odd
title: three e3m2 by e2m1 products, e3m2 out
shape: {k: 3}
formats: {a: e3m2, b: e2m1, c: e3m2, d: e3m2}
steps:
  - multiply: {to: products}
  - align: {of: [products, c], fraction_bits: 8, rounding: toward_zero}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: nearest_even, overflow: largest, zero: positive}
"""


def test_results_that_fill_no_byte_join_to_their_word(tmp_path: Path) -> None:
    """A unit with a 36-bit operand word and a 6-bit result."""
    (tmp_path / "odd.yaml").write_text(ODD)
    layout = WordLayout.of(golden.load_instruction(tmp_path / "odd.yaml"))
    assert (layout.operand_width, layout.result_width) == (36, 6)
    rng = np.random.default_rng(1)
    words = np.zeros((50, 5), np.uint8)
    words[:] = rng.integers(0, 256, words.shape)
    words[:, 4] &= 15
    results = rng.integers(0, 64, (50, 1)).astype(np.uint8)
    joined = layout.join(words, results)
    for word, result, whole in zip(words, results, joined, strict=True):
        wanted = int.from_bytes(word.tobytes(), "little") << 6 | int(result[0])
        assert int.from_bytes(whole.tobytes(), "little") == wanted
    back = layout.split(joined)
    assert (back[0] == words).all() and (back[1] == results).all()
    assert (layout.pack_operands(layout.unpack_operands(words)) == words).all()


def test_wrong_shapes_and_levels_are_refused() -> None:
    layout = WordLayout.of(HMMA)
    operands = vectors.default_set(HMMA, 5).operands
    with pytest.raises(golden.ShapeError, match=r"'b' has shape \(5, 15\), expected \('count', 16\)"):
        layout.pack_operands(operands | {"b": operands["b"][:, :15]})
    with pytest.raises(golden.ShapeError, match="'c' has 4 vectors, 'a' 5"):
        layout.pack_operands(operands | {"c": operands["c"][:4]})
    with pytest.raises(golden.ShapeError, match="'c' is missing"):
        layout.pack_operands({"a": operands["a"], "b": operands["b"]})
    with pytest.raises(golden.ShapeError, match=r"expected uint8 \(count, 68\)"):
        layout.unpack_operands(np.zeros((2, 67), np.uint8))
    with pytest.raises(golden.OperandError, match="level is 'matrix'"):
        WordLayout.of(HMMA, "matrix")


# Sets -------------------------------------------------------------------------------------------------------


@each_unit
@pytest.mark.parametrize("level", vectors.LEVELS)
def test_expected_results_are_the_units(ins: golden.Instruction, level: str) -> None:
    """The reference model, an implementation of its own, gives the same d."""
    chosen = vectors.default_set(ins, 60 if level == "dot" else 2, seed=3, level=level)
    for i in range(len(chosen)):
        row = {name: codes[i] for name, codes in chosen.operands.items()}
        if level == "tile":
            row, at = tile_dot(row, i, 2 * i), (i, 2 * i)
        assert ins.reference_dot(**row) == int(chosen.d[i][at] if level == "tile" else chosen.d[i])


def tile_dot(tile: dict[str, Any], i: int, j: int) -> dict[str, Any]:
    """The operands of D[i, j]."""
    by_row = {name: tile[name][i] for name in ("a", "metadata", "scale_a") if name in tile}
    by_column = {name: tile[name][:, j] for name in ("b", "scale_b") if name in tile}
    return by_row | by_column | {"c": tile["c"][i, j]}


def test_sets_are_reproducible_and_a_prefix_of_longer_ones() -> None:
    long, short, other = (
        vectors.default_set(HMMA, n, seed) for n, seed in ((20_000, 7), (9000, 7), (9000, 8))
    )
    assert len(short) == 9000 and long.kinds.dtype == np.uint8
    for name, codes in short.operands.items():
        assert (long.operands[name][:9000] == codes).all() and (other.operands[name] != codes).any()
    assert (long.d[:9000] == short.d).all() and (long.kinds[:9000] == short.kinds).all()


@pytest.mark.parametrize(("count", "chunk"), [(0, 5), (1, 5), (5, 5), (9_000, 4096), (9001, 9000)])
def test_stream_is_the_set_in_chunks(count: int, chunk: int) -> None:
    chunks = list(vectors.stream(HMMA, count, 4, chunk=chunk))
    assert [len(part) for part in chunks] == [chunk] * (count // chunk) + [count % chunk] * bool(
        count % chunk or not count
    )
    whole = vectors.default_set(HMMA, count, 4)
    for name, codes in whole.operands.items():
        assert (np.concatenate([part.operands[name] for part in chunks]) == codes).all()
    assert (np.concatenate([part.d for part in chunks]) == whole.d).all()


def test_every_kind_has_its_share_in_every_stretch() -> None:
    counts = np.bincount(vectors.default_set(HMMA, 1000).kinds, minlength=len(stimuli.KINDS))
    shares = np.array([vectors.DEFAULT_WEIGHTS[kind] for kind in stimuli.KINDS])
    assert (counts > 0.7 * 1000 * shares / shares.sum()).all()


def test_weights_mix_the_named_kinds() -> None:
    chosen = vectors.default_set(HMMA, 3000, weights={"tie": 1, "narrow": 2})
    counts = {stimuli.KINDS[i]: int(n) for i, n in enumerate(np.bincount(chosen.kinds)) if n}
    assert set(counts) == {"narrow", "tie"} and abs(counts["tie"] - 1000) < 30
    narrow = chosen[chosen.kinds == stimuli.KINDS.index("narrow")]
    assert np.isin(narrow.operands["a"] >> 10 & 31, range(13, 18)).all(), (
        "exponents of narrow lie within two binades of one"
    )
    assert (narrow.d == HMMA.dot(**narrow.operands)).all()


def test_the_diagonal_of_a_tile_holds_the_structure() -> None:
    for ins in (HMMA, SPARSE):
        tiles = vectors.default_set(ins, 40, level="tile", weights={"one_hot": 1})
        for i in range(8):
            rows = [
                tile_dot({name: codes[t] for name, codes in tiles.operands.items()}, i, i) for t in range(40)
            ]
            a, b = (
                golden.to_float(ins.formats[name], np.stack([row[name] for row in rows])) for name in "ab"
            )
            if ins.pattern is not None:
                columns = ins.pattern.columns(np.stack([row["metadata"] for row in rows]))
                b = np.take_along_axis(b, columns, axis=1)
            assert ((a * b != 0).sum(axis=1) == 1).all()
        b = golden.to_float(ins.formats["b"], tiles.operands["b"])
        assert np.isfinite(b).all(), (
            "what a sparse column does not select comes from other dot products of the kind"
        )


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(golden.UnknownNameError, match=r"unknown stimulus kind 'ties'.*nearest: tie"):
        vectors.default_set(HMMA, 5, weights={"ties": 1})
    for wrong, text in (
        ({"weights": {"tie": -1}}, "weight of kind 'tie' is -1"),
        ({"weights": {"tie": float("nan")}}, "weight of kind 'tie' is nan"),
        ({"weights": {"tie": 0}}, "all weights are 0"),
        ({"count": -1}, "count is -1"),
        ({"seed": -1}, "seed is -1"),
        ({"level": "warp"}, "level is 'warp'"),
    ):
        with pytest.raises(golden.OperandError, match=text):
            vectors.default_set(HMMA, **wrong)


@pytest.mark.parametrize(
    "name, kind, field, value",
    [
        ("v_dot2_f16_f16", Sum, "group", ("interleaved", 2)),
        ("v_dot2_bf16_bf16", Round, "subnormal_carry", "lost"),
    ],
)
def test_the_vectors_show_what_only_ties_and_least_numbers_show(
    name: str, kind: type[Step], field: str, value: Any
) -> None:
    """Units that differ in one key, of which fewer than one in 10,000 vectors showed the difference."""
    ins = golden.instruction("rdna4", name)
    (operation,) = ins.program.operations
    index = next(i for i, step in enumerate(operation.steps) if isinstance(step, kind))
    changed = replace_step(operation, index, operation.steps[index], field, value)
    other = replace(ins, program=Program((changed,)))
    given = vectors.default_set(ins, 16_384)
    assert (other.dot(**given.operands) != given.d).sum() > 10
