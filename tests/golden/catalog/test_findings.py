"""The paper's findings (MMA-Sim, section VI), reproduced on the models of the chips that it names."""

from __future__ import annotations

import numpy as np
import pytest

import golden
from golden import from_float, to_float
from golden.model.instruction import Instruction

MMA = "mma.sync.aligned."


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


# B. Dynamic range -------------------------------------------------------------------------------------------


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


# TF32 -------------------------------------------------------------------------------------------------------
