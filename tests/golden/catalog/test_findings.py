"""The paper's findings (MMA-Sim, section VI), reproduced on the models of the chips that it names."""

from __future__ import annotations

import numpy as np
import pytest

import golden
from golden import from_float, to_float
from golden.catalog.architectures import get_architecture
from golden.catalog.unit_files import build_instruction
from golden.model.instruction import Instruction
from golden.yamlfile import parse

MMA = "mma.sync.aligned."
NVIDIA = [name for name in golden.architectures() if get_architecture(name).vendor == "NVIDIA"]


def dot(ins: Instruction, a: list[float], b: list[float], c: float = 0.0) -> float:
    rows = [
        from_float(ins.formats[name], [*values, *[0.0] * (ins.k - len(values))])
        for name, values in (("a", a), ("b", b))
    ]
    return float(to_float(ins.formats["d"], ins.dot(*rows, from_float(ins.formats["c"], c))))


# A. Accumulation precision ----------------------------------------------------------------------------------

FP8 = {
    "ada": f"{MMA}m16n8k32.row.col.f32.e4m3.e4m3.f32",
    "hopper": "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3",
    "blackwell": "tcgen05.mma.cta_group::1.kind::f8f6f4.m64n8k32.f32.e4m3.e4m3",
    "rtx_blackwell": f"{MMA}m16n8k32.row.col.f32.e4m3.e4m3.f32",
}
TINY = {13: [2.0**-7, 2.0**-6], 25: [2.0**-9, 2.0**-9]}


def last_kept_bit(ins: Instruction) -> int:
    """How many bits below a cancelled 64 * 64 a product survives: the F of the unit."""
    for bits in range(30, 0, -1):
        half = (12 - bits) // 2
        if dot(ins, [64, 64, 2.0**half], [64, -64, 2.0 ** (12 - bits - half)]) != 0:
            return bits
    return 0


@pytest.mark.parametrize(
    ("architecture", "wanted"), [("ada", 13), ("hopper", 13), ("blackwell", 25), ("rtx_blackwell", 25)]
)
def test_fp8_keeps_13_bits_on_ada_and_hopper_and_25_on_both_blackwells(
    architecture: str, wanted: int
) -> None:
    assert last_kept_bit(golden.instruction(architecture, FP8[architecture])) == wanted


@pytest.mark.parametrize(
    ("architecture", "wanted"),
    [("turing", 24), ("ampere", 24), ("ada", 24), ("hopper", 25), ("blackwell", 25), ("rtx_blackwell", 25)],
)
def test_f16_keeps_24_or_25_bits(architecture: str, wanted: int) -> None:
    assert last_kept_bit(golden.instruction(architecture, f"{MMA}m16n8k8.row.col.f32.f16.f16.f32")) == wanted


def test_volta_keeps_23_bits_and_cdna3_24() -> None:
    assert last_kept_bit(golden.instruction("volta", f"{MMA}m8n8k4.row.col.f32.f16.f16.f32")) == 23
    assert last_kept_bit(golden.instruction("cdna3", "v_mfma_f32_32x32x8_f16")) == 24
    fp8 = golden.instruction("cdna3", "v_mfma_f32_32x32x16_fp8_fp8")
    assert dot(fp8, [64, 0, 64, 0, 2.0**-6], [64, 0, -64, 0, 2.0**-6]) == 2.0**-12  # 24 below 2**12
    assert dot(fp8, [64, 0, 64, 0, 2.0**-6], [64, 0, -64, 0, 2.0**-7]) == 0


# B. Dynamic range -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("architecture", "name", "flushes"),
    [
        ("cdna1", "v_mfma_f32_16x16x16f16", False),
        ("cdna2", "v_mfma_f32_16x16x16f16", True),
        ("cdna3", "v_mfma_f32_16x16x16_f16", False),
        ("hopper", f"{MMA}m16n8k16.row.col.f32.f16.f16.f32", False),
    ],
)
def test_cdna2_alone_flushes_subnormals(architecture: str, name: str, flushes: bool) -> None:
    ins = golden.instruction(architecture, name)
    assert dot(ins, [2.0**-20], [1.0]) == (0.0 if flushes else 2.0**-20)
    assert dot(ins, [-(2.0**-24)], [2.0**10]) == (0.0 if flushes else -(2.0**-14))
    assert dot(ins, [0.0], [0.0], 2.0**-130) == (0.0 if flushes else 2.0**-130)


def test_cdna2_loses_the_sign_of_a_flushed_operand_and_keeps_that_of_a_flushed_result() -> None:
    ins = golden.instruction("cdna2", "v_mfma_f32_32x32x8bf16_1k")
    zeros, minus_zero = np.zeros(7, np.uint16), np.uint32(0x80000000)
    tiny_negative, one = (
        np.append(np.uint16(0x8001), zeros),
        np.append(from_float("bf16", [1.0]), np.full(7, 0x8000, np.uint16)),
    )
    assert ins.dot(tiny_negative, one, minus_zero) == 0  # +0 * 1 + ...: not all addends are -0
    least = from_float("bf16", [*[0.0] * 7, 2.0**-126]), from_float("bf16", [*[0.0] * 7, 1.0])
    assert ins.dot(*least, from_float("f32", [-1.5 * 2.0**-126])[0]) == 0x80000000  # -2**-127 keeps its sign


@pytest.mark.parametrize(
    "name", ["v_mfma_f32_32x32x8bf16_1k", "v_mfma_f32_32x32x4bf16", "v_mfma_f32_16x16x16f16"]
)
def test_cdna2_reads_negative_zeros_as_zero(name: str) -> None:
    """Algorithm 3 of the paper: a, b and c become +0 if |x| < 2**-126, and -0 is such an x."""
    ins = golden.instruction("cdna2", name)
    fmt = ins.formats["a"].name
    negative, one = (np.full(ins.k, from_float(fmt, [value])[0]) for value in (-0.0, 1.0))
    for a, b in ((negative, one), (one, negative), (negative, negative)):
        for c in (0, 0x80000000, 0x80000001):
            assert ins.dot(a, b, np.uint32(c)) == ins.reference_dot(a, b, c) == 0
    assert ins.dot(negative, one, np.uint32(0x80800000)) == 0x80800000  # a normal c is not touched


def test_cdna3_products_overflow_and_nvidias_do_not() -> None:
    a, b = [2.0**70, 2.0**70], [2.0**70, -(2.0**70)]
    assert np.isnan(dot(golden.instruction("cdna3", "v_mfma_f32_32x32x8_bf16"), a, b))
    for architecture in ("ampere", "ada", "hopper", "blackwell", "rtx_blackwell"):
        assert dot(golden.instruction(architecture, f"{MMA}m16n8k16.row.col.f32.bf16.bf16.f32"), a, b) == 0


# C. Asymmetric rounding on CDNA3 ----------------------------------------------------------------------------

CASE = [2048.0, 2048.0], [2048.0, -2048.0], -0.000001


@pytest.mark.parametrize(
    "name", ["v_mfma_f32_32x32x8_f16", "v_mfma_f32_16x16x16_f16", "v_mfma_f32_32x32x4_2b_f16"]
)
def test_the_2048_case_gives_minus_a_quarter_on_cdna3(name: str) -> None:
    assert dot(golden.instruction("cdna3", name), *CASE) == -0.25


@pytest.mark.parametrize("architecture", NVIDIA)
def test_the_2048_case_gives_zero_on_every_tensor_core(architecture: str) -> None:
    found = 0
    for ins in golden.instructions(architecture):
        operands = [ins.formats[name].name for name in "abcd"]
        if (
            operands == ["f16", "f16", "f32", "f32"]
            and ins.program.algorithms == ("fda",)
            and not ins.sparse
            and ins.n <= 16
        ):
            assert (
                ins.dot(
                    *(from_float("f16", [*v, *[0.0] * (ins.k - 2)]) for v in CASE[:2]),
                    from_float("f32", CASE[2]),
                )
                == 0
            )
            found += 1
    assert found


FDRDA = """\
unit: fdrda
shape: {k: 8}
formats: {a: f16, b: f16, c: f32, d: f32}
steps:
  - multiply: {to: products, overflow_exponent: 128}
  - special_values: {of: [products, c]}
  - align: {of: [products], fraction_bits: 24, rounding: toward_zero}
  - sum: {of: [products], to: dot}
  - align: {of: [dot, c], fraction_bits: {dot: 32, c: 24}, rounding: MODE, floor: -126}
  - sum: {of: [dot, c], to: total}
  - normalize: {of: total, fraction_bits: 31, rounding: MODE, min_exponent: -126}
  - round: {of: total, rounding: nearest_even, overflow: infinity, zero: positive}
"""


def test_rounding_down_biases_cdna3() -> None:
    """Figure 2: A, B from 1000 * N(0, 1), C from N(0, 1). RD moves the mean by half a unit of c's cut; RZ
    does not."""
    rng = np.random.default_rng(20)
    count = 40000
    a, b = (from_float("f16", 1000 * rng.standard_normal((count, 8))) for _ in range(2))
    c = from_float("f32", rng.standard_normal(count))
    real = (to_float("f16", a) * to_float("f16", b)).sum(axis=1) + to_float("f32", c)
    down, zero = (build_instruction(parse(FDRDA.replace("MODE", mode))) for mode in ("down", "toward_zero"))
    cdna3 = golden.instruction("cdna3", "v_mfma_f32_32x32x8_f16")
    assert np.array_equal(cdna3.dot(a, b, c), down.dot(a, b, c))
    bias = {}
    for name, ins in (("down", cdna3), ("zero", zero)):
        error = to_float("f32", ins.dot(a, b, c)) - real
        bias[name] = error.mean() / (error.std() / np.sqrt(count))
    assert bias["down"] < -20
    assert abs(bias["zero"]) < 4


# TF32 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", NVIDIA)
def test_a_tf32_nan_in_the_ignored_bits_becomes_infinity(architecture: str) -> None:
    found = 0
    for ins in golden.instructions(architecture):
        if ins.formats["a"].name != "tf32" or ins.sparse or ins.n > 16:
            continue
        a, b = np.zeros(ins.k, np.uint32), np.zeros(ins.k, np.uint32)
        for word, wanted in ((0x7F800001, 0x7F800000), (0xFF801FFF, 0xFF800000), (0x7F802000, 0x7FFFFFFF)):
            a[1], b[1] = word, 0x3F800000
            assert ins.dot(a, b, np.uint32(0)) == wanted == ins.reference_dot(a, b, np.uint32(0)), ins
        found += 1
    assert found or architecture in ("volta", "turing")
