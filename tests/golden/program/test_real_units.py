"""Units of other vendors, of spec/examples and of the catalogue, against models written only from
their descriptions, in exact rationals (tests/golden/real_units.py)."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from long_run import long_after
from psp_dot import PSP, psp_dot
from published_units import (
    bfdot_add,
    bulk_normalised,
    dot_add,
    fp8_dot_add,
    fused_products,
    multiply_add,
    rounded_pair,
    rounded_pair_flags,
    rounded_products,
    vfwdota_flags,
)
from real_units import (
    Dot,
    amx,
    chained,
    codes,
    draw,
    rdna3_step,
    rdna4_step,
    saturated_twice,
    vdpbf16ps,
)

import golden
from golden import stimuli, yamlfile
from golden.catalog import unit_files
from golden.model.instruction import Instruction
from golden.number.formats import get_format
from golden.number.rounding import encode_fraction
from golden.paths import spec_folder


def example(name: str) -> Instruction:
    return golden.load_instruction(spec_folder() / "examples" / f"{name}.yaml")


def hold(ins: Instruction, model: Dot, seed: int, count: int) -> None:
    """Core and reference give what the model gives."""
    rng = random.Random(seed)
    drawn = [draw(ins, rng) for _ in range(count)]
    arrays = {n: np.array([one[n] for one in drawn], ins.formats[n].dtype) for n in "abc"}
    core = ins.dot(**arrays)
    for i, one in enumerate(drawn):
        wanted = model(one["a"], one["b"], one["c"])
        assert int(core[i]) == wanted, (hex(int(core[i])), hex(wanted), one)
        assert ins.reference_dot(**{n: array[i] for n, array in arrays.items()}) == wanted


EXAMPLES: dict[str, Dot] = {
    "rdna3_dot2": rdna3_step("f16", "f32"),
    "rdna4_dot4": rdna4_step(("f16", "f16"), "f32"),
    "amx_bf16": amx("bf16"),
    "riscv_bulk_dot": bulk_normalised(3),
}


@pytest.mark.parametrize("seed", long_after(15, range(30)))
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str, seed: int) -> None:
    hold(example(name), EXAMPLES[name], seed, 30)


# The catalogue ----------------------------------------------------------------------------------------------

SWAPPED = [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15]
"""The order of k of RDNA4's waves of 32 lanes."""


def rdna_models() -> dict[str, Dot]:
    """Every floating-point instruction of RDNA3 and RDNA4, by architecture:name."""
    found: dict[str, Dot] = {}
    for ab, d in (("f16", "f32"), ("bf16", "f32"), ("f16", "f16"), ("bf16", "bf16")):
        three, four = rdna3_step(ab, d), rdna4_step((ab, ab), d)
        found[f"rdna3:v_dot2_{d}_{ab}"], found[f"rdna4:v_dot2_{d}_{ab}"] = three, four
        for wave, order in (("w32", SWAPPED), ("w64", None)):
            found[f"rdna3:v_wmma_{d}_16x16x16_{ab}_{wave}"] = chained(three, 2)
            found[f"rdna4:v_wmma_{d}_16x16x16_{ab}_{wave}"] = chained(four, 4, order)
    fp8 = {"fp8": "e4m3", "bf8": "e5m2"}
    for x, a in fp8.items():
        for y, b in fp8.items():
            found[f"rdna4:v_dot4_f32_{x}_{y}"] = rdna4_step((a, b), "f32", 4, 0xFFC00A3D)
    return found


CATALOGUE = rdna_models() | {
    "sapphire_rapids:tdpbf16ps": amx("bf16"),
    "granite_rapids:tdpfp16ps": amx("f16"),
    "sapphire_rapids:vdpbf16ps": vdpbf16ps,
    "armv9:bfdot.4s": bfdot_add,
    "armv9:bfmmla.4s": chained(bfdot_add, 2),
    "armv9:bfdot.4s.ebf": dot_add("bf16"),
    "armv9:bfmmla.4s.ebf": chained(dot_add("bf16"), 2),
    "armv9:fdot.4s.f16": dot_add("f16"),
    "armv9:fdot.4s.e4m3.e5m2": fp8_dot_add("e4m3", "e5m2", "f32"),
    "armv9:fdot.8h.e5m2.e5m2": fp8_dot_add("e5m2", "e5m2", "f16"),
    "armv9:fmmla.4s.e5m2.e4m3": fp8_dot_add("e5m2", "e4m3", "f32"),
    "armv9:fmmla.8h.e4m3.e4m3": fp8_dot_add("e4m3", "e4m3", "f16"),
    "armv9:bfmopa.s": bfdot_add,
    "armv9:bfmopa.s.ebf": dot_add("bf16"),
    "armv9:fmopa.s.f16": dot_add("f16"),
    "armv9:fmopa.s.f32": multiply_add("f32", 0x7FC00000),
    "armv9:fmopa.d.f64": multiply_add("f64", 0x7FF8000000000000),
    "armv9:fmopa.h.f16": multiply_add("f16", 0x7E00),
    "armv9:bfmopa.h": multiply_add("bf16", 0x7FC0),
    "armv9:fmmla.s.f32": rounded_pair("f32", 0x7FC00000),
    "armv9:fmmla.d.f64": rounded_pair("f64", 0x7FF8000000000000),
    "riscv:vfwdota.vv.n8": bulk_normalised(3),
    "riscv:vfwdota.vv.n32": bulk_normalised(5),
    "riscv:vfqwdota.vv.n16.e4m3.e5m2": bulk_normalised(4, "e4m3", "e5m2"),
    "riscv:vfqwdota.alt.vv.n64.e5m2.e5m2": bulk_normalised(6, "e5m2", "e5m2"),
    "riscv:vfmmacc.vv.k4.g1.frm": rounded_products,
    "riscv:vfmmacc.vv.k4.g1.xct": fused_products,
}


@pytest.mark.parametrize("name", long_after(10, CATALOGUE))
def test_the_catalogue(name: str) -> None:
    ins = golden.instruction(*name.split(":", 1))
    hold(ins, CATALOGUE[name], len(name), 2400 // (ins.k + 8))


def test_the_catalogue_has_no_other_floats() -> None:
    """A floating-point instruction of RDNA without a model here would go untested."""
    for architecture in ("rdna3", "rdna4"):
        floats = {i.name for i in golden.instructions(architecture) if i.formats["d"].is_float}
        assert {f"{architecture}:{name}" for name in floats} <= set(CATALOGUE)


def integer_operands(
    ins: Instruction, rng: np.random.Generator, count: int
) -> tuple[dict[str, np.ndarray], list[list[int]]]:
    """Codes of large numbers, so that sums leave 32 bits, and the same as Python's integers."""
    found, values = {}, []
    for name in "abc":
        bits, signed = ins.formats[name].bits, ins.formats[name].signed
        shape = (count,) if name == "c" else (count, ins.k)
        drawn = rng.integers(0, 1 << bits, shape)
        edge = np.where(rng.integers(0, 2, shape) == 0, (1 << (bits - 1)) - 1, 1 << (bits - 1))
        drawn = np.where(rng.integers(0, 4, count).reshape(-1, *[1] * (len(shape) - 1)) > 0, edge, drawn)
        found[name] = drawn.astype(ins.formats[name].dtype)
        values.append((drawn - ((drawn >> (bits - 1)) << bits) * signed).tolist())
    return found, values


INTEGER = [
    f"{architecture}:{ins.name}"
    for architecture in ("rdna3", "rdna4", "sapphire_rapids", "armv9", "riscv")
    for ins in golden.instructions(architecture)
    if not ins.formats["d"].is_float
]


@pytest.mark.parametrize("name", INTEGER)
def test_integers(name: str) -> None:
    """AMX and wrapping WMMA: modulo 2**32; VPDP...S: one clamp of the exact sum; RDNA4's clamp: two."""
    ins = golden.instruction(*name.split(":", 1))
    rng = np.random.default_rng(len(name))
    count = 200
    operands, (a, b, c) = integer_operands(ins, rng, count)
    twice = wrapped = 0
    got = ins.dot(**operands)
    for i in range(count):
        exact = c[i] + sum(x * y for x, y in zip(a[i], b[i], strict=True))
        once = max(-(1 << 31), min(exact, (1 << 31) - 1))
        if ins.name.endswith(".clamp"):
            wanted = saturated_twice(a[i], b[i], c[i])
            twice += wanted != once
        else:
            wanted = once if ins.name.endswith("ds") else exact
        wrapped += exact != once
        assert int(got[i]) == wanted & 0xFFFFFFFF, (ins.name, i)
    assert wrapped > 3
    assert twice > 0 or not ins.name.endswith(".s8.clamp")


@pytest.mark.parametrize("types", ["s8.s8", "u8.u8", "s8.u8", "u8.s8"])
def test_tcgen05_clamps_the_exact_sum_once(types: str) -> None:
    """Of the 32 products some take the sum beyond 2^31 and others back: one clamp shows none of it."""
    name = f"tcgen05.mma.cta_group::1.kind::i8.m64n8k32.s32.{types}"
    wraps, clamps = (golden.instruction("blackwell", name + end) for end in ("", ".satfinite"))
    operands, (a, b, c) = integer_operands(wraps, np.random.default_rng(8), 300)
    beyond, wrapped, clamped = 0, wraps.dot(**operands), clamps.dot(**operands)
    for i, exact in enumerate(z + sum(map(int.__mul__, x, y)) for x, y, z in zip(a, b, c, strict=True)):
        once = max(-(1 << 31), min(exact, (1 << 31) - 1))
        beyond += exact != once
        assert int(wrapped[i]) == exact & 0xFFFFFFFF
        assert int(clamped[i]) == once & 0xFFFFFFFF
    assert beyond > 30


VFWDOTA = [(8, 3), (16, 4), (32, 5)]


@pytest.mark.parametrize(("n", "guard"), VFWDOTA)
def test_flags_of_vfwdota(n: int, guard: int) -> None:
    """As riscv-isa-sim has them (bulknormdot.h, f32_add_odd): overflow of the sum and of the addition,
    invalid of a signaling NaN, of zero times infinity, of infinities of both signs, even next to a NaN."""
    ins = golden.instruction("riscv", f"vfwdota.vv.n{n}")
    rng, seen = random.Random(n), set()
    drawn = [draw(ins, rng) for _ in range(400 // n)] + [rare(ins.k, rng) for _ in range(1600 // n)]
    arrays = {name: np.array([one[name] for one in drawn], ins.formats[name].dtype) for name in "abc"}
    flags, d = ins.flags(**arrays), ins.dot(**arrays)
    for i, one in enumerate(drawn):
        wanted = vfwdota_flags(one["a"], one["b"], one["c"], guard)
        names = {name for bit, name in enumerate(ins.status) if int(flags[i]) >> bit & 1}
        assert names == wanted, (one, names, wanted)
        assert int(d[i]) == bulk_normalised(guard)(one["a"], one["b"], one["c"])
        given = {name: codes[i] for name, codes in arrays.items()}
        assert ins.trace(**given).flags == int(flags[i])
        seen.add(tuple(sorted(wanted)))
    assert seen >= {(), ("invalid",), ("overflow",)}


@pytest.mark.parametrize(
    ("name", "fmt", "nan"), [("fmmla.s.f32", "f32", 0x7FC00000), ("fmmla.d.f64", "f64", 0x7FF8000000000000)]
)
def test_flags_of_fmmla(name: str, fmt: str, nan: int) -> None:
    """IOC, OFC, UFC and IXC of FPSR; tiny is what lies below the least normal number before it is rounded."""
    ins, model, seen = golden.instruction("armv9", name), rounded_pair_flags(fmt, nan), set()
    rng = random.Random(fmt)
    drawn = [draw(ins, rng) for _ in range(600)]
    arrays = {one: np.array([row[one] for row in drawn], ins.formats[one].dtype) for one in "abc"}
    flags = ins.flags(**arrays)
    for i, row in enumerate(drawn):
        wanted = model(row["a"], row["b"], row["c"])
        assert {word for bit, word in enumerate(ins.status) if int(flags[i]) >> bit & 1} == wanted, row
        if i % 20 == 0:
            assert ins.trace(**{one: codes[i] for one, codes in arrays.items()}).flags == int(flags[i])
        seen |= wanted
    assert seen == set(ins.status)


def rare(k: int, rng: random.Random) -> dict[str, list[int] | int]:
    """One or two products of huge, infinite or NaN operands among zeros."""
    special = [0x7F80, 0xFF80, 0x7FC0, 0x7F81, 0x0000, 0x8000, 0x3F80, 0x7F7F, 0xFF7F, 0x5F80]
    places = rng.sample(range(k), 2)
    a, b = [0] * k, [0] * k
    for place in places[: rng.randint(1, 2)]:
        a[place], b[place] = rng.choice(special), rng.choice(special)
    return {"a": a, "b": b, "c": rng.choice([0, 0x7F800000, 0xFF800000, 0x7FA00000, 0x7F7FFFFF, 0xFF7FFFFF])}


@pytest.mark.parametrize(
    ("a", "b", "c", "d", "raised"),
    [
        ([], [], 0x7FA00000, 0x7FC00000, {"invalid"}),
        ([0x7F80, 0x7F80], [0x3F80, 0xBF80], 0, 0x7FC00000, {"invalid"}),
        ([0x7F80], [0], 0, 0x7FC00000, {"invalid"}),
        ([0x7FC0, 0x3F80], [0xFF80, 0x7F80], 0, 0x7FC00000, set()),
        ([0x7F7F, 0x7F7F], [0x7F7F, 0x7F7F], 0, 0x7F800000, {"overflow"}),
    ],
)
def test_flags_by_hand(a: list[int], b: list[int], c: int, d: int, raised: set[str]) -> None:
    ins = golden.instruction("riscv", "vfwdota.vv.n8")
    rows = [np.array(row + [0] * (8 - len(row)), np.uint16) for row in (a, b)]
    assert int(ins.dot(*rows, np.uint32(c))) == d
    code = int(ins.flags(*rows, np.uint32(c)))
    assert {name for bit, name in enumerate(ins.status) if code >> bit & 1} == raised


# By hand ----------------------------------------------------------------------------------------------------


def test_rdna3_by_hand() -> None:
    """1 * 1 + (-1) * 0 with c = +0: the zero product -0 costs one unit."""
    ins = example("rdna3_dot2")
    a, b = np.array([0x3C00, 0xBC00], np.uint16), np.array([0x3C00, 0], np.uint16)
    assert int(ins.dot(a, b, np.uint32(0))) == 0x3F7FFFFF


def test_amx_by_hand() -> None:
    """All products -0 and c = -0 give +0, because the chains start from +0; a bf16 NaN is widened and
    quieted. VDPBF16PS starts from c, and gives -0."""
    ins = example("amx_bf16")
    minus, one = np.full(8, 0x8000, np.uint16), np.full(8, 0x3F80, np.uint16)
    assert int(ins.dot(minus, one, np.uint32(0x80000000))) == 0
    nan = one.copy()
    nan[3] = 0xFF81
    assert int(ins.dot(nan, one, np.uint32(0))) == 0xFFC10000
    pair = golden.instruction("sapphire_rapids", "vdpbf16ps")
    assert int(pair.dot(minus[:2], one[:2], np.uint32(0x80000000))) == 0x80000000


# A fixed-point accumulator ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fraction", "width", "overflow"), [(48, 47, "saturate"), (10, 1, "saturate"), (10, 1, "wrap")]
)
def test_fixed_point(fraction: int, width: int, overflow: str) -> None:
    """Floors at the last bit; past the register's ends it saturates or wraps."""
    text = (spec_folder() / "examples" / "fixed_point.yaml").read_text()
    text = text.replace("fraction_bits: 48", f"fraction_bits: {fraction}")
    text = text.replace("width: 47, overflow: saturate", f"width: {width}, overflow: {overflow}")
    ins, f16 = unit_files.build_instruction(yamlfile.parse(text)), get_format("f16")
    rng, bits = random.Random(width), fraction + width
    beyond = 0
    for _ in range(400):
        a, b = ([codes(rng, f16, -14, 3) & 0xBFFF for _ in range(4)] for _ in "ab")
        c = codes(rng, f16, -14, 8) & 0xBFFF
        terms = [f16.decode(x).value * f16.decode(y).value for x, y in zip(a, b, strict=True)]
        total = sum(int(term * 2**fraction // 1) for term in (*terms, f16.decode(c).value))
        held = (total + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        beyond += held != total
        if held != total and overflow == "saturate":
            held = (1 << bits - 1) - 1 if total > 0 else -(1 << bits - 1)
        wanted = encode_fraction(get_format("f32"), held * Fraction(2) ** -fraction) if held else 0
        given = {"a": np.array(a, np.uint16), "b": np.array(b, np.uint16), "c": np.uint16(c)}
        assert (int(ins.dot(**given)), ins.reference_dot(**given)) == (wanted, wanted)
    assert beyond > 20 or width > 40


@pytest.mark.parametrize("seed", [1, *long_after(0, range(2, 6))])
def test_the_dot_product_of_a_psp(seed: int) -> None:
    """Without an addend: core and reference against the description (tests/golden/psp_dot.py)."""
    unit = unit_files.build_instruction(yamlfile.parse(PSP))
    for kind in stimuli.KINDS:
        operands = stimuli.generate(unit, kind, 150, np.random.default_rng(seed))
        wanted = [psp_dot(a, b) for a, b in zip(operands["a"].tolist(), operands["b"].tolist(), strict=True)]
        assert unit.dot(**operands).tolist() == wanted, kind
        one = {name: codes[0] for name, codes in operands.items()}
        assert unit.reference_dot(**one) == wanted[0], kind


def test_words_of_the_psp_worked_out_by_hand() -> None:
    """Three products of 1 and one of 2^-24 + 2^-47: the last is cut at 2^-25, then two bits of the sum go."""
    one, tiny = 0x3F800000, 0x33800001
    assert psp_dot([one, one, one, tiny], [one] * 4) == 0x40400000
    assert psp_dot([0xFF800000, 0, 0, 0], [one, one, one, one]) == 0xFF800000
    assert psp_dot([0x7F800000, 0, 0, 0], [1, one, one, one]) == 0x7F800001
    assert psp_dot([0x00800000, 0, 0, 0], [0xBF000000, 0, 0, 0]) == 0x80000000
