"""One directed test for each rule that measurements added to the paper: each vector gives another answer
without the rule."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import golden
from golden import stimuli, to_float
from golden.catalog.architectures import get_architecture
from golden.catalog.unit_files import build_instruction
from golden.model.instruction import Instruction
from golden.yamlfile import parse

MMA = "mma.sync.aligned."
F32_ONE = 0x3F800000
NVIDIA = [name for name in golden.architectures() if get_architecture(name).vendor == "NVIDIA"]


def code(fmt: str, value: float) -> int:
    """The code of a value that the format holds exactly."""
    raw = golden.from_float(fmt, [value])
    assert to_float(fmt, raw)[0] == value
    return int(raw[0])


def dot(ins: Instruction, a: list[float], b: list[float], c: int = 0, **more: Any) -> int:
    """All three models on values padded with zeros; they must agree."""
    rows = [
        np.array(
            [code(ins.formats[name].name, v) for v in values] + [0] * (ins.k - len(values)),
            ins.formats[name].dtype,
        )
        for name, values in (("a", a), ("b", b))
    ]
    return raw_dot(ins, *rows, c, **more)


def raw_dot(ins: Instruction, a: Any, b: Any, c: int, **more: Any) -> int:
    operands = {
        "a": np.asarray(a, ins.formats["a"].dtype),
        "b": np.asarray(b, ins.formats["b"].dtype),
        "c": np.asarray(c, ins.formats["c"].dtype),
        **more,
    }
    results = {
        int(ins.dot(**operands)),
        ins.reference_dot(**operands),
        int(
            ins.engine.dots(
                *(operands.get(k) for k in ("a", "b", "c", "metadata", "scale_a", "scale_b")), general=True
            )
        ),
    }
    assert len(results) == 1, results
    return results.pop()


def unit(program: str, k: int, ab: str = "bf16", cd: str = "f32", b: str | None = None) -> Instruction:
    text = (
        f"unit: u\nshape: {{k: {k}}}\nformats: {{a: {ab}, b: {b or ab}, c: {cd}, d: "
        f"{cd}}}\nprogram:\n{program}"
    )
    return build_instruction(parse(text, "unit.yaml"))


def floored(floor: int, cd: str = "f32", ab: str = "bf16") -> Instruction:
    return unit(f"  - fda: {{fraction_bits: 25, exponent_floor: {floor}}}\n", 16, ab, cd)


# The exponent floor -----------------------------------------------------------------------------------------

# Sums to 2**-149 only when exactly the bits from 2**-158 up are kept: the two addends of 2**-158 must count,
# the two of -2**-159 must not.
FLOOR_EXPONENTS = [*range(-150, -158, -1), -158, -158]


def floor_vector() -> tuple[list[float], list[float]]:
    products = [2.0**e for e in FLOOR_EXPONENTS] + [-(2.0**-159)] * 2
    return [p * 2.0**80 for p in products], [2.0**-80] * len(products)


@pytest.mark.parametrize("architecture", ["hopper", "blackwell", "rtx_blackwell"])
def test_floor_of_f32_results_is_minus_133(architecture: str) -> None:
    ins = golden.instruction(architecture, f"{MMA}m16n8k16.row.col.f32.bf16.bf16.f32")
    assert dot(ins, *floor_vector()) == 1


@pytest.mark.parametrize(
    ("floor", "wanted"), [(-133, 1), (-126, 0), (-131, 0), (-132, 0), (-134, 0), (-139, 0), (-999, 0)]
)
def test_only_minus_133_satisfies_the_vector(floor: int, wanted: int) -> None:
    assert dot(floored(floor), *floor_vector()) == wanted


def test_a_non_zero_c_lifts_the_maximum_over_the_floor() -> None:
    """The least f32 subnormal has exponent -126: every product of the vector is cut, and only c is left."""
    ins = golden.instruction("hopper", f"{MMA}m16n8k16.row.col.f32.bf16.bf16.f32")
    assert dot(ins, *floor_vector(), c=1) == 1
    assert dot(floored(-133), *floor_vector(), c=0x80000000) == 1


def test_floor_of_f16_results_is_minus_21() -> None:
    """A tie at 2**-25 is broken by a product of 2**-46, not by one of 2**-47."""
    ins = golden.instruction("hopper", f"{MMA}m16n8k16.row.col.f16.f16.f16.f16")
    for exponent, wanted in ((-46, 1), (-47, 0)):
        a, b = [2.0**-13, 2.0 ** (exponent + 24)], [2.0**-12, 2.0**-24]
        assert dot(ins, a, b) == wanted
    above, below = ([2.0**-13, 2.0**-22], [2.0**-12, 2.0**-24]), ([2.0**-13, 2.0**-23], [2.0**-12, 2.0**-24])
    assert dot(floored(-20, "f16", "f16"), *above) == 0 and dot(floored(-22, "f16", "f16"), *below) == 1


def integer_bits(architecture_products: int, largest_product: float = 4) -> int:
    """W: products of two significands below 2 each, and c below 2."""
    return int(np.ceil(np.log2(architecture_products * largest_product + 2 + 1e-9)))


def test_every_floor_is_the_least_exponent_less_the_integer_bits() -> None:
    width = {23: integer_bits(4), 24: integer_bits(8), 25: integer_bits(16), 13: integer_bits(16)}
    assert width == {23: 5, 24: 6, 25: 7, 13: 7} and integer_bits(32, 1.875**2) == 7
    seen = 0
    for architecture in NVIDIA:
        for ins in golden.instructions(architecture):
            for operation in ins.program.operations:
                for step in operation.steps:
                    if step.op != "align":
                        continue
                    groups = integer_bits(4 * 16, 36 * (15 / 8) ** 2)
                    w = groups if operation.algorithm == "gdfs" else width[dict(step.fraction_bits)["c"]]
                    assert step.floor == operation.out_format.min_exponent - w, ins
                    seen += 1
    assert seen > 1000


# Zeros and special values -----------------------------------------------------------------------------------


def fused(architecture: str) -> list[Instruction]:
    """One instruction a family and format set whose only algorithm is a fused dot-add."""
    chosen: dict[Any, Instruction] = {}
    for ins in golden.instructions(architecture):
        if set(ins.program.algorithms) <= {"fda", "scaled_fda", "gdfs"}:
            chosen.setdefault((ins.family, *(f.name for f in ins.formats.values())), ins)
    return list(chosen.values())


@pytest.mark.parametrize("architecture", NVIDIA)
def test_every_zero_result_is_plus_zero(architecture: str) -> None:
    instructions = fused(architecture)
    assert instructions
    for ins in instructions:
        sign = 1 << (ins.formats["d"].storage - 1)
        for kind in ("zeros", "tiny_zero_c"):
            operands = stimuli.generate(ins, kind, 200, np.random.default_rng(9))
            results = ins.dot(**operands)
            assert not (results == sign).any(), ins
        operands["a"][...] = 1 << ins.formats["a"].sign_shift
        operands["c"][...] = 1 << ins.formats["c"].sign_shift
        if ins.formats["b"].infinity is None and not ins.scale_block and not ins.sparse:
            operands["b"] = stimuli.generate(ins, "narrow", 200, np.random.default_rng(9))["b"]
            assert not ins.dot(**operands).any(), ins


def test_a_negative_sum_that_truncates_to_zero_is_plus_zero() -> None:
    ins = golden.instruction("hopper", f"{MMA}m16n8k16.row.col.f32.bf16.bf16.f32")
    assert dot(ins, [-(2.0**-75)], [2.0**-75]) == 0
    assert dot(ins, [-0.0], [1.0], c=0x80000000) == 0


@pytest.mark.parametrize(
    ("architecture", "name"),
    [
        ("cdna1", "v_mfma_f32_16x16x8bf16"),
        ("cdna3", "v_mfma_f32_16x16x16_bf16"),
        ("cdna3", "v_mfma_f32_16x16x8_xf32"),
    ],
)
def test_amd_zeros(architecture: str, name: str) -> None:
    """CDNA1 and CDNA3: a nonzero negative total that rounds to zero is -0 (IEEE 754, MMA-Sim 2.1.1), a
    zero total is +0."""
    ins = golden.instruction(architecture, name)
    tiny, zeros = [0.0] * (ins.k - 1) + [2.0**-76], [0.0] * ins.k
    assert dot(ins, [-x for x in tiny], tiny) == 0x80000000
    assert dot(ins, tiny, tiny) == 0
    assert dot(ins, [-0.0] * ins.k, [1.0] * ins.k, c=0x80000000) == 0
    assert dot(ins, [1.0, -1.0, *zeros[2:]], [1.0, 1.0, *zeros[2:]]) == 0
    first = [-x for x in reversed(tiny)]  # the next step's c is -0, its total zero
    assert dot(ins, first, list(reversed(tiny))) == 0


def test_dmma_keeps_ieee_zero_signs() -> None:
    name = f"{MMA}m8n8k4.row.col.f64.f64.f64.f64"
    minus, zeros, ones = 1 << 63, np.zeros(4, np.uint64), np.full(4, code("f64", 1.0), np.uint64)
    ins = golden.instruction("hopper", name)
    assert raw_dot(ins, zeros | np.uint64(minus), ones, minus) == minus
    assert raw_dot(ins, zeros, ones, minus) == 0
    assert raw_dot(golden.instruction("hopper", name + ".rm"), zeros, ones, minus) == minus


@pytest.mark.parametrize(("d", "nan", "infinity"), [("f32", 0x7FFFFFFF, 0x7F800000), ("f16", 0x7FFF, 0x7C00)])
def test_canonical_nan_and_infinities(d: str, nan: int, infinity: int) -> None:
    ins = golden.instruction("hopper", f"{MMA}m16n8k16.row.col.{d}.f16.f16.{d}")
    inf, one, minus = 0x7C00, 0x3C00, 1 << (15 if d == "f16" else 31)
    rest = [0] * 14
    assert raw_dot(ins, [inf, one, *rest], [one, one, *rest], 0) == infinity
    assert raw_dot(ins, [inf, one, *rest], [0, one, *rest], 0) == nan
    assert raw_dot(ins, [inf, inf, *rest], [one, one | 0x8000, *rest], 0) == nan
    assert raw_dot(ins, [inf, one, *rest], [one, one, *rest], infinity | minus) == nan
    assert raw_dot(ins, [0xFC01, one, *rest], [one, one, *rest], 0) == nan
    assert raw_dot(ins, [one, one, *rest], [one, one, *rest], infinity | minus | 1) == nan
    assert raw_dot(ins, [one, one, *rest], [one, one, *rest], infinity | minus) == infinity | minus


def test_products_beyond_f32_do_not_overflow_on_nvidia_but_do_on_cdna3() -> None:
    a, b = [2.0**100, 2.0**100], [2.0**30, -(2.0**30)]
    assert dot(golden.instruction("hopper", f"{MMA}m16n8k16.row.col.f32.bf16.bf16.f32"), a, b) == 0
    cdna3 = golden.instruction("cdna3", "v_mfma_f32_32x32x8_bf16")
    assert dot(cdna3, a, b) == 0x7FC00000
    assert dot(cdna3, a[:1], b[:1]) == 0x7F800000
    assert dot(cdna3, a[:1], b[:1], c=0xFF800000) == 0x7FC00000


def test_dmma_hands_on_the_first_nan_of_b_c_a_quieted() -> None:
    ins = golden.instruction("hopper", f"{MMA}m8n8k4.row.col.f64.f64.f64.f64")
    a_nan, b_nan, c_nan, quiet = 0x7FF0000000000A0A, 0xFFF0000000000B0B, 0x7FF0000000000C0C, 1 << 51
    one, none = [code("f64", 1.0)] * 4, [0] * 3
    assert raw_dot(ins, [a_nan, *none], [b_nan, *none], c_nan) == b_nan | quiet
    assert raw_dot(ins, [a_nan, *none], one, c_nan) == c_nan | quiet
    assert raw_dot(ins, [a_nan, *none], one, 0) == a_nan | quiet
    assert raw_dot(ins, [0, a_nan, 0, 0], [one[0], one[0], b_nan, one[0]], 0) == b_nan | quiet
    infinity = 0x7FF0000000000000
    assert raw_dot(ins, [infinity, *none], [0] * 4, 0) == 0xFFF8000000000000
    assert raw_dot(ins, [infinity, *none], one, infinity | 1 << 63) == 0xFFF8000000000000


# FP8 --------------------------------------------------------------------------------------------------------

TWO_STEPS = """\
  - fda: {{fraction_bits: 25, exponent_floor: -133}}
    k: {first}
    seed: zero
    operands: f16
    to: low
  - fda: {{fraction_bits: 25, exponent_floor: -133}}
    k: {second}
    seed: low
    operands: f16
    to: high
  - {{ieee_add: {{}}, k: none, seed: c, addends: [high]}}
"""
SPLITS = {
    "pairs": ("{modulo: 4, residues: [0, 1]}", "{modulo: 4, residues: [2, 3]}"),
    "even and odd": ("{modulo: 2, residues: [0]}", "{modulo: 2, residues: [1]}"),
    "halves": ("{from: 0, to: 15}", "{from: 16, to: 31}"),
}
# Two large products that cancel and a small one: it survives only in another step than theirs.
FP8_A, FP8_B = [448, 448, 2.0**-9, 0], [448, -448, 2.0**-9, 0]


@pytest.mark.parametrize("architecture", ["hopper", "blackwell"])
def test_fp8_mma_takes_k_in_pairs_of_four(architecture: str) -> None:
    ins = golden.instruction(architecture, f"{MMA}m16n8k32.row.col.f32.e4m3.e4m3.f32")
    assert dot(ins, FP8_A, FP8_B) == code("f32", 2.0**-18)
    assert dot(ins, [448, 2.0**-9, 448], [448, 2.0**-9, -448]) == 0


@pytest.mark.parametrize(("split", "wanted"), [("pairs", 2.0**-18), ("halves", 0.0)])
def test_the_vector_shows_contiguous_halves(split: str, wanted: float) -> None:
    first, second = SPLITS[split]
    assert dot(unit(TWO_STEPS.format(first=first, second=second), 32, "e4m3"), FP8_A, FP8_B) == code(
        "f32", wanted
    )


def test_a_third_vector_shows_even_and_odd() -> None:
    first, second = SPLITS["even and odd"]
    a, b = [448, 2.0**-9, 448], [448, 2.0**-9, -448]
    assert dot(unit(TWO_STEPS.format(first=first, second=second), 32, "e4m3"), a, b) == code("f32", 2.0**-18)


def test_fp8_mma_adds_c_last_with_one_ieee_rounding() -> None:
    """A fused add would truncate 1 + 1.5 * 2**-24 to 1; the separate addition rounds it up."""
    name = f"{MMA}m16n8k32.row.col.f32.e4m3.e4m3.f32"
    a, b = [1.5 * 2.0**-6, 2.0**-9], [2.0**-9, 2.0**-9]
    c = code("f32", 2.0**9)
    assert dot(golden.instruction("hopper", name), a, b, c) == c + 1
    assert dot(golden.instruction("rtx_blackwell", name), a, b, c) == c


@pytest.mark.parametrize(
    "name",
    [
        "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3",
        "wgmma.mma_async.sync.aligned.m64n64k32.f32.e5m2.e4m3",
        "wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e5m2.e5m2",
    ],
)
def test_fp8_wgmma_results_end_in_ten_zero_bits(name: str) -> None:
    ins = golden.instruction("hopper", name)
    for kind in ("narrow", "wide", "random_bits", "cancelling"):
        results = ins.dot(**stimuli.generate(ins, kind, 500, np.random.default_rng(12)))
        finite = results[(results & np.uint32(0x7F800000)) != 0x7F800000]
        assert finite.size and not (finite & np.uint32(0x3FF)).any()
        assert kind == "wide" or (finite & np.uint32(0x400)).any()


# Sparse and integer -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
        "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32",
        "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e5m2.e5m2.f32",
        "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16",
    ],
)
def test_unselected_nans_have_no_effect(name: str) -> None:
    ins = golden.instruction("hopper", name)
    operands = stimuli.generate(ins, "narrow", 64, np.random.default_rng(13))
    assert ins.pattern is not None
    columns = ins.pattern.columns(operands["metadata"])
    plain, poisoned = np.zeros_like(operands["b"]), np.full_like(operands["b"], ins.formats["b"].nan)
    poisoned[::2] = ins.formats["b"].infinity
    for b in (plain, poisoned):
        np.put_along_axis(b, columns, np.take_along_axis(operands["b"], columns, 1), 1)
    wanted = ins.dot(**{**operands, "b": plain})
    assert np.array_equal(ins.dot(**{**operands, "b": poisoned}), wanted)
    assert (
        ins.dot(**{**operands, "b": np.full_like(plain, ins.formats["b"].nan)})[0]
        == ins.formats["d"].largest | 0x7FFFFFFF
    )


@pytest.mark.parametrize("architecture", ["turing", "ampere", "hopper", "blackwell", "rtx_blackwell"])
def test_integers_wrap_or_clamp_the_exact_total_once(architecture: str) -> None:
    wrap, clamp = (
        golden.instruction(architecture, f"{MMA}m8n8k16.row.col.{s}s32.s8.s8.s32") for s in ("", "satfinite.")
    )
    top, bottom = 0x7FFFFFFF, 0x80000000
    up, down = ([127] * 8 + [129] * 8, [127] * 16), ([127] * 8, [127] * 8)
    for ins in (wrap, clamp):  # over the top and back: the total fits
        assert raw_dot(ins, *up, top) == top
        assert raw_dot(ins, up[0][::-1], up[1], bottom) == bottom
    rest = [0] * 8
    assert raw_dot(wrap, down[0] + rest, down[1] + rest, top) == bottom + 8 * 127 * 127 - 1
    assert raw_dot(clamp, down[0] + rest, down[1] + rest, top) == top
    assert raw_dot(clamp, [129] * 8 + rest, down[1] + rest, bottom) == bottom
    assert raw_dot(wrap, [129] * 8 + rest, down[1] + rest, bottom) == 2**31 - 8 * 127 * 127


# Block scales -----------------------------------------------------------------------------------------------

FOUR = f"{MMA}m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32."
DATA_A = (
    "070303030209010d000f0a030d0b0808"
    "00000000000000000000000000000000"
    "0f070e060e060b030109050d0d050a02"
    "0b09020e020d09030d0b0e04010b0304"
)
DATA_B = (
    "0a0b030a0109040d08020804070f0401"
    "07000d06080b0d0f0b00070204080a01"
    "01010e0e01010d0d0d0d0e0e0a0a0e0e"
    "070b000d010b070b0d0b020d0f090d05"
)


@pytest.fixture(params=["rtx_blackwell", "blackwell"])
def four_scales(request: pytest.FixtureRequest) -> dict[str, Instruction]:
    """The k = 64 e2m1 instructions with four scales, by scale format."""
    tcgen05 = "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X.m128n8k64.f32.e2m1.e2m1."
    stem = FOUR if request.param == "rtx_blackwell" else tcgen05
    return {scale: golden.instruction(request.param, stem + scale) for scale in ("ue8m0", "ue4m3")}


def scaled(ins: Instruction, a: Any, b: Any, c: int, scale_a: list[int], scale_b: list[int]) -> int:
    return raw_dot(ins, a, b, c, scale_a=np.array(scale_a, np.uint8), scale_b=np.array(scale_b, np.uint8))


def test_the_discriminator_between_two_published_models(four_scales: dict[str, Instruction]) -> None:
    a, b = (list(bytes.fromhex(text)) for text in (DATA_A, DATA_B))
    assert scaled(four_scales["ue8m0"], a, b, 0, [16, 110, 13, 100], [55, 101, 93, 3]) == 1


ONES, CANCEL = [2] * 16, [2, 10] * 8


def test_a_cancelled_group_keeps_its_exponent_and_a_group_of_zeros_does_not(
    four_scales: dict[str, Instruction],
) -> None:
    ins, rest = four_scales["ue8m0"], [0] * 32
    scales = [127 + 19, 127, 127, 127]
    assert (
        scaled(ins, CANCEL + ONES + rest, ONES + ONES + rest, 0, scales, scales) == 0x41800000
    )  # 16 is above 2**(38 - 35)
    far = [127 + 60, 127, 127, 127]
    assert scaled(ins, CANCEL + ONES + rest, ONES + ONES + rest, 0, far, far) == 0
    assert scaled(ins, [0] * 16 + ONES + rest, ONES + ONES + rest, 0, far, far) == 0x41800000


def test_a_zero_scale_does_not_hold_the_maximum(four_scales: dict[str, Instruction]) -> None:
    """ue4m3: zero data scale exponents reach 16; 2**-20 of c lies below 16 - 35 only
    when the group takes part."""
    ins, rest = four_scales["ue4m3"], [0] * 48
    c = code("f32", 2.0**-20)
    assert scaled(ins, CANCEL + rest, ONES + rest, c, [0x7E, 0, 0, 0], [0x7E, 0, 0, 0]) == 0
    assert scaled(ins, CANCEL + rest, ONES + rest, c, [0x7E, 0, 0, 0], [0x00, 0, 0, 0]) == c


def test_ue4m3_bit_7_is_ignored(four_scales: dict[str, Instruction]) -> None:
    ins = four_scales["ue4m3"]
    scales = [0x38, 0x41, 0x07, 0x7E]
    plain = scaled(ins, ONES * 4, ONES * 4, 0, scales, [0x38] * 4)
    assert scaled(ins, ONES * 4, ONES * 4, 0, [s | 0x80 for s in scales], [0xB8] * 4) == plain
    assert scaled(ins, [0] * 64, [0] * 64, 0, [0xFF, *scales[1:]], [0x38] * 4) == 0x7FFFFFFF


@pytest.mark.parametrize(
    ("name", "scales"),
    [
        (f"{MMA}m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0", 1),
        (FOUR + "ue8m0", 4),
    ],
)
def test_a_nan_scale_wins_over_zero_data(name: str, scales: int) -> None:
    ins = golden.instruction("rtx_blackwell", name)
    zeros, ones = [0] * ins.k, [127] * scales
    assert scaled(ins, zeros, zeros, 0, ones, ones) == 0
    for c in (0, F32_ONE, 0x7F800000):
        assert scaled(ins, zeros, zeros, c, [255, *ones[1:]], ones) == 0x7FFFFFFF
        assert scaled(ins, zeros, zeros, c, ones, [*ones[1:], 255]) == 0x7FFFFFFF


def test_the_least_ue8m0_scale_is_no_zero() -> None:
    name = f"{MMA}m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0"
    ins, one = golden.instruction("rtx_blackwell", name), [0x38] + [0] * 31
    assert scaled(ins, one, one, 0, [0], [127]) == 1 << 22  # 2**-127


# AMD --------------------------------------------------------------------------------------------------------


def test_cdna3_fp8_drops_a_far_c_where_f16_floors_it() -> None:
    """A cancelled dot of exponent 14 leaves c = -2**-20, more than 25 below it."""
    c = code("f32", -(2.0**-20))
    fp8 = golden.instruction("cdna3", "v_mfma_f32_32x32x16_fp8_fp8")
    assert dot(fp8, [128, 128], [128, -128], c) == 0
    assert dot(fp8, [128, 128], [128, -128], code("f32", -(2.0**-11) - 2.0**-20)) == code("f32", -(2.0**-10))
    assert dot(golden.instruction("cdna3", "v_mfma_f32_32x32x8_f16"), [128, 128], [128, -128], c) == code(
        "f32", -(2.0**-10)
    )


def test_cdna1_rounds_each_exact_group_once() -> None:
    ins = golden.instruction("cdna1", "v_mfma_f32_16x16x16f16")
    assert dot(ins, [2048, 2048, 2.0**-12], [2048, -2048, 2.0**-12]) == code("f32", 2.0**-24)
    assert dot(ins, [2048, 2.0**-12, 0, 0, 2048], [2048, 2.0**-12, 0, 0, -2048]) == 0


UNITS = {"volta": 4, "turing": 8, "ampere": 8, "ada": 8, "hopper": 16, "blackwell": 16, "rtx_blackwell": 16}
"""Products of f16 that one step of the unit adds; its sum register is as wide as these need."""
OTHER_UNITS = {("turing", "f16", 4): 4, ("ada", "e4m3", 16): 16, ("ada", "e5m2", 16): 16}
"""Turing's m8n8k4 runs on Volta's unit; Ada's FP8 instructions have a unit of their own."""


@pytest.mark.parametrize("architecture", UNITS)
def test_exponent_floors_follow_the_width_of_the_sum_register(architecture: str) -> None:
    """Every literal of the specs is e_min(D) - W, W the integer bits of the largest magnitude that the
    register holds."""
    floors = set()
    for ins in golden.instructions(architecture):
        for operation in ins.program.operations:
            for step in operation.steps:
                if step.op == "align" and step.floor is not None:
                    unit = (architecture, ins.formats["a"].name, len(operation.k_index))
                    products = OTHER_UNITS.get(unit, UNITS[architecture])
                    largest = 4 * products + 2  # significands below 2, and c below 2
                    if (
                        operation.algorithm == "gdfs"
                    ):  # 4 groups of 16 products of e2m1 (6 * 6), scales of 1.875 by 1.875
                        largest = 4 * 16 * 36 * Fraction(15, 8) ** 2 + 2
                    width = (math.ceil(largest) - 1).bit_length()
                    assert step.floor == operation.out_format.min_exponent - width, (ins, operation.algorithm)
                    floors.add(step.floor)
    assert floors


def test_a_flushed_result_has_the_sign_that_zero_says() -> None:
    """Of `flush: signed` and `zero: positive` the second holds, in all models, in words, and as a remark."""
    from golden.cli.lists import _remark
    from golden.explain.specification import to_markdown

    text = """
unit: flushing
shape: {k: 1}
formats: {a: f32, d: f32}
steps:
  - special_values: {of: a, nan: 0x7FC00000}
  - round: {of: a, rounding: nearest_even, overflow: ieee, zero: ZERO, flush: signed}
"""
    least = np.array([[0x80000001]], np.uint32)  # minus the least subnormal number
    said = {}
    for zero, expected in (("positive", 0), ("signed_underflow", 0x80000000), ("signed", 0x80000000)):
        ins = build_instruction(parse(text.replace("ZERO", zero)))
        assert int(ins.dot(a=least)[0]) == expected == ins.reference_dot(a=least[0])
        said[zero] = ("become +0" in to_markdown(ins), "zero: signed_underflow" in _remark(ins))
    assert said == {"positive": (True, True), "signed_underflow": (False, False), "signed": (False, False)}
