"""The fast form is chosen by steps and formats alone: shipped programs with one field of one step
changed, names kept.

A kernel that overlooked the change would differ from the general interpreter and from the reference, which
run every step.
"""

from __future__ import annotations

import dataclasses
import json
import zlib
from dataclasses import replace

import numpy as np
import pytest
from changed_steps import BY_REFERENCE, ORDER, alternatives, mutants, operands_for, step_lists
from instruction_sets import instruction_sets
from long_run import long_after
from random_units import load
from tiles import CLASSES, Tiles

import golden
from golden import yamlfile
from golden.catalog.unit_files import build_instruction
from golden.model import kernels
from golden.program.keys import declared


@pytest.mark.parametrize("name", long_after(16, step_lists()))
def test_a_changed_step_changes_the_kernel(name: str) -> None:
    ins = step_lists()[name]
    operands = operands_for(ins, zlib.crc32(name.encode()))
    rng = np.random.default_rng(1)
    for what, mutant in mutants(ins):
        assert mutant.program.algorithms == ins.program.algorithms
        slow = mutant.engine.dots(*(operands.get(key) for key in ORDER), general=True)
        if mutant.engine.fast or mutant.engine.in_doubles:
            assert np.array_equal(mutant.dot(**operands), slow), (
                f"{what}: the quick way and the general interpreter differ"
            )
        for i in rng.choice(len(slow), BY_REFERENCE):
            wanted = mutant.reference_dot(**{key: codes[i] for key, codes in operands.items()})
            assert int(slow[i]) == wanted, f"{what}: general interpreter and reference differ"


def test_every_field_of_a_step_is_changed() -> None:
    """Every key that sound and faulty datapaths know is drawn by the fuzz above for at least one step."""
    drawn: set[tuple[type, str]] = set()
    for ins in step_lists().values():
        for operation in ins.program.operations:
            for step in operation.steps:
                found = alternatives(step, operation.out_format)
                drawn |= {(type(step), name) for name, values in found.items() if set(values) - {None}}
    same = {"exponent", "to", "tiny", "format", "of", "group", "flush", "nan", "rounding", "left_out"}
    for kind in {kind for kind, _ in drawn}:
        changed = {name for owner, name in drawn if owner is kind}
        other = {name for name, key, _ in declared(kind) if key.when}  # keys that need another, seldom there
        assert {field.name for field in dataclasses.fields(kind)} - changed - other <= same, kind


def test_kernels_do_not_read_names() -> None:
    """Renamed algorithms keep their kernels, and keep them off where the steps are another datapath's."""
    for ins in step_lists().values():
        for algorithm in ("steps", "fdrda", "gfdrda"):
            renamed = [replace(operation, algorithm=algorithm) for operation in ins.program.operations]
            assert kernels.select_kernels(renamed, ins) == kernels.select_kernels(ins.program.operations, ins)


@pytest.mark.parametrize(
    ("program", "wanted"),
    [
        ("[{sfma: {}, k: {from: 0, to: 1}}, {sfma: {}, k: {from: 2, to: 3}}]", 1000 + 4321),
        ("[{sfma: {}, seed: zero}]", 4321),
        ("[{sfma: {}, to: all}, {ieee_add: {}, k: none, seed: c, addends: [all]}]", 2 * 1000 + 4321),
    ],
)
def test_the_chain_of_the_hosts_own_takes_one_chain_from_c_alone(program: str, wanted: int) -> None:
    """It once ran the first operation of such programs, from c, and left the others out."""
    text = f"unit: chains\nshape: {{k: 4}}\nformats: {{a: f32, b: f32, c: f32, d: f32}}\nprogram: {program}\n"
    unit = build_instruction(yamlfile.parse(text, "chains.yaml"))
    a, b = (np.array(row, np.float32).view(np.uint32) for row in ([1, 2, 3, 4], [1, 10, 100, 1000]))
    c = np.float32(1000).view(np.uint32)
    assert unit.dot(a, b, c).view(np.float32) == wanted
    assert np.uint32(unit.reference_dot(a, b, c)).view(np.float32) == wanted


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("order", [[], ["a"], ["c"], ["b", "c", "a"], ["c", "b", "a"]], ids="".join)
@pytest.mark.parametrize("fmt", ["f32", "f64"])
def test_nans_of_the_hosts_own_chain(
    fmt: str, order: list[str], simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chains of numbers that make NaNs and of NaNs with payloads, quiet or not, as matrices that are tiles
    and as dot products: the word of what numbers make may be a signalling one, too."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    bits, fraction = (32, 23) if fmt == "f32" else (64, 52)
    top, sign = ((1 << (bits - 1 - fraction)) - 1) << fraction, 1 << (bits - 1)
    words = [0, sign, top, sign | top, 1, top - 1, sign | (top - 1), (top >> 1) & top]
    nans = [top | 1, sign | top | 5, top | (1 << (fraction - 1)), sign | top | (3 << (fraction - 2)) | 9]
    rng = np.random.default_rng(len(order))
    for made in nans:
        step = {"fma": {"to": "d", "rounding": "nearest_even", "nan": made, "nan_order": order, "start": "c"}}
        unit = {"unit": "chain", "shape": {"m": 8, "n": 16, "k": 5}, "formats": dict.fromkeys("abcd", fmt)}
        ins = load(json.dumps(unit | {"steps": [step]}))
        assert ins.engine.fast
        for among in (words, words * 4 + nans, words + nans):
            codes = np.array(among, ins.formats["a"].dtype)
            a, b, c = (rng.choice(codes, (3, *shape)) for shape in ((8, 5), (5, 16), (8, 16)))
            wanted = ins.engine.matrices(a, b, c, general=True)
            assert np.array_equal(ins(a, b, c), wanted)
            strided = (np.asfortranarray(one) for one in (a, b, c))
            assert np.array_equal(ins(*strided), wanted)
            rows, columns = np.repeat(a, 16, axis=1).reshape(-1, 5), np.tile(b.swapaxes(1, 2), (1, 8, 1))
            assert np.array_equal(ins.dot(rows, columns.reshape(-1, 5), c.reshape(-1)), wanted.reshape(-1))


@pytest.mark.parametrize("simd", instruction_sets())
def test_the_hosts_own_chain_reads_the_rows_of_b_that_a_sparse_a_meets(
    simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tile of a chain with sparse A, which no family has and a new one may bring, as matrices."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    step = {"fma": {"to": "d", "rounding": "nearest_even", "nan": 0x7FC00000, "start": "c"}}
    unit = {"unit": "chain", "shape": {"m": 4, "n": 16, "k": 8}, "formats": dict.fromkeys("abcd", "f32")}
    dense = load(json.dumps(unit | {"steps": [step]}))
    pattern = next(ins.pattern for ins in golden.instructions("ampere") if ins.pattern)
    ins, rng = replace(dense, pattern=pattern, k=16), np.random.default_rng(1)
    legal = np.array(pattern.legal(ins.ordered_metadata), np.uint8)
    given = {
        name: rng.choice(legal, shape)
        if name == "metadata"
        else golden.from_float("f32", rng.standard_normal(shape))
        for name, shape in ins.operand_shapes(matrices=True).items()
    }
    wanted = ins.engine.compute(given, True, general=True)
    assert np.array_equal(ins.engine.compute(given, True), wanted)


@pytest.mark.parametrize("simd", instruction_sets())
def test_a_nan_needs_no_fraction_bits(simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of all ones of a format of powers of two is a NaN, not an infinity."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    powers = {"kind": "float", "storage": 8, "exponent_bits": 4, "fraction_bits": 0, "bias": 7}
    unit = {
        "unit": "powers",
        "shape": {"k": 2},
        "define_formats": {"powers": powers | {"specials": "all_ones_nan", "signed": True}},
        "formats": {"a": "powers", "b": "f16", "c": "f32", "d": "f32"},
        "program": [{"fda": {"fraction_bits": 24, "nan": 0x7FFFFFFF}}],
    }
    ins = load(json.dumps(unit))
    assert ins.engine.fast
    a, b, c = np.array([[0xF, 1]], np.uint8), np.array([[0x3C00] * 2], np.uint16), np.zeros(1, np.uint32)
    assert ins.dot(a, b, c).tolist() == [0x7FFFFFFF]


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("floor", [-126, 0, 126, 127, 128, 133, 134, 150, 100000])
def test_a_floor_may_lie_above_all_floats(floor: int, simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum in units beyond floats was once a product with a power that no float has: zeros came as -0."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    unit = {
        "unit": "high_floor",
        "shape": {"k": 2},
        "formats": {"a": "f16", "b": "f16", "c": "f32", "d": "f32"},
        "program": [{"fda": {"fraction_bits": 6, "nan": 0x7FFFFFFF, "exponent_floor": floor}}],
    }
    ins = load(json.dumps(unit))
    assert ins.engine.fast
    c = np.array([0, 1, 0xBE6D5DE6, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F000000, 0xFE800000], np.uint32)
    a, b = (np.full((c.size, 2), code, np.uint16) for code in (0x3A00, 0xB400))
    assert ins.dot(a, b, c).tolist() == [ins.reference_dot(*row) for row in zip(a, b, c, strict=True)]


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("bias", [0, 32])
@pytest.mark.parametrize(("columns", "k", "fraction_bits"), [(8, 5, 13), (40, 27, 25)])
def test_exponents_in_bytes(
    bias: int, columns: int, k: int, fraction_bits: int, simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Formats of 8 bits whose exponents reach the ends of what a byte holds, in matrices that end within a
    vector of bytes; where products are zero, c stays whole however small it is. Of the longer sum 32 bits
    hold half. Whether a tile has a NaN does not matter to the next."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    rng = np.random.default_rng(bias)
    small = {"kind": "float", "storage": 8, "bias": bias, "signed": True}
    own = {
        "x": small | {"exponent_bits": 5, "fraction_bits": 2, "specials": "ieee"},
        "y": small | {"exponent_bits": 4, "fraction_bits": 2, "specials": "all_ones_nan"},
        "z": small | {"exponent_bits": 4, "fraction_bits": 3, "specials": "none"},
    }
    for a, b in (("x", "x"), ("x", "z"), ("y", "e2m3"), ("z", "y"), ("e4m3", "e5m2")):
        unit = {
            "unit": "bytes",
            "shape": {"m": 4, "n": columns, "k": k},
            "define_formats": own,
            "formats": {"a": a, "b": b, "c": "f32", "d": "f32"},
            "program": [{"fda": {"fraction_bits": fraction_bits, "nan": 0x7FFFFFFF}}],
        }
        ins = load(json.dumps(unit))
        assert ins.engine.fast
        tiles = Tiles(ins, rng)
        every = [getattr(tiles, what)() for what in CLASSES]
        after_each_other = {name: np.concatenate([one[name] for one in every]) for name in every[0]}
        for operands in (*every, tiles.zero_tiles() | {"c": tiles.codes("c")}, after_each_other):
            assert np.array_equal(ins(**operands), ins.engine.compute(operands, True, general=True))


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("floor", [None, -139, -126, -100, -92, 0, 127, 128, 163, 300])
@pytest.mark.parametrize(("zero", "kept"), [("positive", 23), ("signed_underflow", 3)])
def test_c_alone_with_scaled_groups(
    zero: str, kept: int, floor: int | None, simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all groups are zero, a small c is cut below the floor, or not at all: units that no float has."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    total = ["groups", "c"]
    last = {"of": "total", "rounding": "toward_zero", "overflow": "infinity", "zero": zero}
    align = {"of": total, "fraction_bits": 35, "rounding": "toward_zero"}
    steps: list[dict[str, object]] = [
        {"multiply": {"to": "products"}},
        {"special_values": {"of": ["products", "c", "scales"], "nan": 0x7FFFFFFF}},
        {"sum": {"of": ["products"], "to": "groups", "group": {"contiguous": 16}, "exponent": 0}},
        {"scale": {"of": "groups"}},
        {"align": align if floor is None else align | {"floor": floor}},
        {"sum": {"of": total, "to": "total"}},
        {"round": last | {"fraction_bits": kept}},
    ]
    formats = {"a": "e2m1", "b": "e2m1", "c": "f32", "d": "f32", "scale_a": "ue4m3", "scale_b": "ue4m3"}
    for columns in (8, 16):
        unit = {"unit": "groups", "shape": {"m": 16, "n": columns, "k": 64}, "formats": formats}
        ins = load(json.dumps(unit | {"scale_block": 16, "program": [{"steps": steps}]}))
        assert ins.engine.fast
        rng = np.random.default_rng(kept)
        tiles = Tiles(ins, rng)
        c = tiles.codes("c") & np.uint32(0x803FFFFF)  # up to 2^0 ...
        c >>= rng.integers(0, 10, c.shape, np.uint32)  # ... and far below the least normal number
        c = c | rng.integers(0, 2, c.shape, np.uint32) << np.uint32(31)
        c[..., ::3] &= np.uint32(1 << 31)
        for what in ("normal", "random_bits"):
            operands = getattr(tiles, what)() | {"c": c}
            operands["a"][:, ::2] &= 8  # zeros of both signs
            operands["a"][:, 1::4, :32] &= 8
            assert np.array_equal(ins(**operands), ins.engine.compute(operands, True, general=True))


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("k", [2, 6, 8, 28])
@pytest.mark.parametrize("overflow", ["wrap", "saturate"])
def test_rows_of_integers_share_vectors_by_twos_where_four_share_a_word(
    overflow: str, k: int, simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns that fill half a vector, pairs and fours of integers, and A by columns."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    rng = np.random.default_rng(k)
    for rows, columns, a, b in (
        (16, 8, "s8", "s8"),
        (8, 24, "u8", "s4"),
        (12, 8, "s8", "u8"),
        (24, 40, "u4", "u8"),
    ):
        formats = {"a": a, "b": b, "c": "s32", "d": "s32"}
        unit = {"unit": "pairs", "shape": {"m": rows, "n": columns, "k": k}, "formats": formats}
        ins = load(json.dumps(unit | {"program": [{"integer_dot_add": {"overflow": overflow}}]}))
        assert ins.engine.fast
        tiles = Tiles(ins, rng)
        for what in ("normal", "random_bits", "overflowing"):
            operands = getattr(tiles, what)()
            turned = operands | {"a": np.ascontiguousarray(operands["a"].swapaxes(1, 2)).swapaxes(1, 2)}
            wanted = ins.engine.compute(operands, True, general=True)
            assert np.array_equal(ins(**operands), wanted) and np.array_equal(ins(**turned), wanted)


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("scales", ["ue4m3", "ue8m0"])
@pytest.mark.parametrize("name", ["a", "b", "c", "scale_a", "scale_b"])
def test_operands_of_scaled_groups_whose_rows_or_columns_are_one(
    name: str, scales: str, simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of A that lie no byte apart were read as if they did not come by turns."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    mine = "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32." + scales
    ins = golden.instruction("rtx_blackwell", "mma.sync.aligned." + mine)
    operands = Tiles(ins, np.random.default_rng(3)).random_bits()
    whole = operands[name]
    for one in (whole[:, :1], whole[:, :, :1], whole[:, :1, :1], whole[:1]):
        given = operands | {name: np.broadcast_to(one, whole.shape)}
        copied = given | {name: given[name].copy()}
        assert np.array_equal(ins(**given), ins.engine.compute(copied, True, general=True))


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("fmt", ["f32", "f64"])
def test_chains_of_one_product_leave_their_operands_alone(
    fmt: str, simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of B has gaps behind it; a thread runs tiles of many matrices after one of a single matrix. It
    once wrote rows of B into the caller's array, which it had read in place."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    monkeypatch.setenv("MMAGOLD_THREADS", "2")
    step = {"fma": {"to": "d", "rounding": "nearest_even", "nan": 0x7FC00000, "start": "c"}}
    unit = {"unit": "chain", "shape": {"m": 8, "n": 16, "k": 1}, "formats": dict.fromkeys("abcd", fmt)}
    ins, count = load(json.dumps(unit | {"steps": [step]})), 16 * 65  # parts of 64 and 1
    operands = Tiles(ins, rng_of(fmt), batch=count).normal()
    whole = np.zeros((count, 1, 20), operands["b"].dtype)
    whole[:, :, :16] = operands["b"]
    kept, wanted = whole.copy(), ins.engine.compute(operands, True, general=True)
    for _ in range(2):
        assert np.array_equal(ins(**operands | {"b": whole[:, :, :16]}), wanted)
        assert np.array_equal(whole, kept)


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("n", [504, 512])
@pytest.mark.parametrize("fmt", ["f16", "e4m3"])
def test_large_matrices_find_their_largest_exponents_in_parts(
    fmt: str, n: int, simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More rows than the first cache has room for, of one operation and of two."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    formats = {"a": fmt, "b": fmt, "c": "f32", "d": "f32"}
    fda = {"fda": {"fraction_bits": 24, "nan": 0x7FFFFFFF}}
    halves = [fda | {"k": {"from": 0, "to": 5}}, fda | {"k": {"from": 6, "to": 8}}]
    for program in ([fda], halves):
        unit = {"unit": "large", "shape": {"m": 104, "n": n, "k": 9}, "formats": formats, "program": program}
        ins = load(json.dumps(unit))
        assert ins.engine.fast
        operands = Tiles(ins, rng_of(fmt)).specials()
        assert np.array_equal(ins(**operands), ins.engine.compute(operands, True, general=True))


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("other", ["own", "f16", "e4m3"])
def test_fields_of_fp16_in_codes_of_32_bits(other: str, simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were once read as codes of eight bits."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    own = {"kind": "float", "storage": 32, "exponent_bits": 5, "fraction_bits": 10, "bias": 15}
    for a, b in (("own", other), (other, "own")):
        unit = {
            "unit": "wide",
            "shape": {"m": 8, "n": 16, "k": 8},
            "define_formats": {"own": own | {"specials": "ieee", "signed": True}},
            "formats": {"a": a, "b": b, "c": "f32", "d": "f32"},
            "program": [{"fda": {"fraction_bits": 24, "nan": 0x7FFFFFFF}}],
        }
        ins = load(json.dumps(unit))
        assert ins.engine.fast
        for what in CLASSES:
            operands = getattr(Tiles(ins, rng_of(what)), what)()
            assert np.array_equal(ins(**operands), ins.engine.compute(operands, True, general=True))


STACKED = {
    "hopper mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": 23,
    "hopper mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16": 9,
    "hopper mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32": 23,
    "ampere mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": 11,
    "ada mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32": 7,
    "cdna3 v_mfma_f32_16x16x16_f16": 5,
    "cdna3 v_mfma_f32_16x16x32_fp8_bf8": 4,
    "cdna1 v_mfma_f32_16x16x16f16": 5,
    "ampere mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32": 21,
    "ampere mma.sync.aligned.m16n8k32.row.col.s32.u4.s4.s32": 12,
    "ampere mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64": 70,
    "rtx_blackwell mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4"
    ".block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3": 12,
    "rtx_blackwell mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e3m2.f32.ue8m0": 6,
}
"""Instructions whose matrices are so small that a tile has several, and more of them than it has."""


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("name", STACKED)
def test_small_matrices_share_a_tile(name: str, simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as fit and what is left over; specials, zeros or large exponents in one of them alone; and with
    gaps between them, or operands that all of them share."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    ins = golden.instruction(*name.split(" "))
    assert ins.engine.fast
    count = STACKED[name]
    every = {what: getattr(Tiles(ins, rng_of(what), batch=count), what)() for what in CLASSES}
    plain = every["normal"]
    mixed = []
    for what in ("random_bits", "specials", "zeros", "tiny", "overflowing"):
        for place in {0, count // 2, count - 1}:
            among = {key: codes.copy() for key, codes in plain.items()}
            for key in among:
                among[key][place] = every[what][key][place]
            mixed.append(among)
    for operands in (*every.values(), *mixed):
        wanted = ins.engine.compute(operands, True, general=True)
        assert np.array_equal(ins(**operands), wanted)
    for key, codes in plain.items():
        gaps = np.zeros((2 * count, *codes.shape[1:]), codes.dtype)[::2]
        gaps[:] = codes
        shared = np.broadcast_to(codes[:1], codes.shape)
        turned = np.ascontiguousarray(codes.swapaxes(1, 2)).swapaxes(1, 2)
        reverse = codes[::-1].copy()[::-1]
        for other in (gaps, shared, turned, reverse):
            given = plain | {key: other}
            wanted = ins.engine.compute(given | {key: other.copy()}, True, general=True)
            assert np.array_equal(ins(**given), wanted), key


def rng_of(what: str) -> np.random.Generator:
    """A generator of its own for each class."""
    return np.random.default_rng(zlib.crc32(what.encode()))
