"""The units that pages compare with are IEEE 754, and what the comparison says is so:
against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import exact
import numpy as np
import pytest
from long_run import long_after

import golden
from golden import stimuli
from golden.publish import ieee

NVFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
UNITS = [
    ("hopper", "HMMA.16816.F32"),
    ("hopper", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"),
    ("hopper", "wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e5m2"),
    ("ampere", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.rz"),
    ("cdna3", "v_mfma_f32_16x16x8_xf32"),
    ("cdna3", "v_mfma_f32_16x16x32_fp8_bf8"),
    ("rtx_blackwell", NVFP4),
]
KINDS = (
    "narrow",
    "wide",
    "subnormal_result",
    "zeros",
    "cancelling",
    "near_overflow",
    "tie",
    "special_values",
)


def terms_of(ins: golden.Instruction, operands: dict[str, Any], row: int) -> list[Any]:
    """The pairs of factors of each product, block scales as further factors; b selected by hand."""
    a, b = operands["a"][row].tolist(), operands["b"][row].tolist()
    if "metadata" in operands:
        nibbles = operands["metadata"][row].tolist()
        b = [b[4 * (k // 2) + (nibbles[k // 2] >> 2 * (k % 2) & 3)] for k in range(len(a))]  # 2 of 4
    fa, fb = ins.formats["a"].name, ins.formats["b"].name
    factors = [[exact.decode(fa, x), exact.decode(fb, y)] for x, y in zip(a, b, strict=True)]
    if ins.scale_block:
        for name in ("scale_a", "scale_b"):
            codes = operands[name][row].tolist()
            for k, product in enumerate(factors):
                product.append(exact.decode(ins.formats[name].name, codes[k // ins.scale_block]))
    return factors


def total_of(
    ins: golden.Instruction, operands: dict[str, Any], row: int
) -> tuple[list[Fraction], list[bool]] | None:
    """The addends (c last) and their signs, or None where an operand is no finite number."""
    factors = [*terms_of(ins, operands, row), [exact.decode(ins.formats["c"].name, int(operands["c"][row]))]]
    if any(value.what != "number" for product in factors for value in product):
        return None
    values, signs = [], []
    for product in factors:
        value, negative = Fraction(1), False
        for factor in product:
            value, negative = value * factor.x, negative != factor.negative
        values.append(value)
        signs.append(negative)
    return values, signs


@pytest.mark.parametrize(("architecture", "name"), UNITS)
def test_rounded_sum_is_one_ieee_rounding(architecture: str, name: str) -> None:
    ins = golden.instruction(architecture, name)
    d, unit, seen = ins.formats["d"].name, ieee.rounded_sum(ins), 0
    for index, kind in enumerate(KINDS):
        operands = stimuli.generate(ins, kind, 40, np.random.default_rng([7, index]))
        for row, code in enumerate(unit.dot(**operands).tolist()):
            found = total_of(ins, operands, row)
            if found is None:
                continue
            values, signs = found
            wanted = exact.encode(
                d, sum(values, Fraction(0)), "nearest_even", None, "ieee", all(signs) and not any(values)
            )
            assert code == wanted, (kind, row)
            seen += 1
    assert seen > 150


@pytest.mark.parametrize(("architecture", "name"), UNITS)
def test_fma_chain_rounds_every_step(architecture: str, name: str) -> None:
    ins = golden.instruction(architecture, name)
    d, unit = ins.formats["d"].name, ieee.fma_chain(ins)
    for index, kind in enumerate(KINDS[:5]):
        operands = stimuli.generate(ins, kind, 10, np.random.default_rng([8, index]))
        for row, code in enumerate(unit.dot(**operands).tolist()):
            found = total_of(ins, operands, row)
            if found is None:
                continue
            (*products, c), (*minus, negative) = found
            running = exact.encode(d, c, "nearest_even", None, "ieee", negative)
            for product, sign in zip(products, minus, strict=True):
                value = exact.decode(d, running)
                if value.what != "number":
                    break
                zero = product == 0 and value.is_zero and sign and value.negative
                running = exact.encode(d, value.x + product, "nearest_even", None, "ieee", zero)
            assert code == running, (kind, row)


@pytest.mark.parametrize(("architecture", "name"), long_after(4, UNITS))
def test_findings_hold(architecture: str, name: str) -> None:
    """The worst errors in rationals; the example differs; shares add up."""
    ins = golden.instruction(architecture, name)
    found, d = ieee.findings(ins), ins.formats["d"].name
    _, fraction_bits, bias, _ = exact.FLOATS[d]
    for error, addend in ((found.worst, False), (found.worst_addend, True)):
        assert error is not None
        batch = {key: np.asarray(codes)[None] for key, codes in error.operands.items()}
        code = int(ins.dot(**batch)[0])
        assert code == error.d
        total = total_of(ins, batch, 0)
        assert total is not None
        size = max(abs(value) for value in total[0]) if addend else sum(total[0], Fraction(0))
        ulp = exact.two(max(exact.log2_floor(size), 1 - bias) - fraction_bits)
        assert (exact.decode(d, code).x - sum(total[0], Fraction(0))) / ulp == error.ulp
    assert found.tried == found.per_kind * len(stimuli.KINDS)
    assert sum(found.rounded.kinds.values()) == found.rounded.numeric
    assert found.example is not None and found.example_against == "rounded"
    batch = {key: np.asarray(codes)[None] for key, codes in found.example.items()}
    total = total_of(ins, batch, 0)
    assert total is not None
    wanted = exact.encode(d, sum(total[0], Fraction(0)), "nearest_even", None, "ieee")
    assert int(ins.dot(**batch)[0]) != wanted


def test_no_worse_error_among_the_tried() -> None:
    """Every operand of one search measured in rationals: none is worse than the one on the page."""
    ins = golden.instruction("hopper", "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16")
    found, worst = ieee.findings(ins), Fraction(0)
    for index, kind in enumerate(stimuli.KINDS):
        operands = stimuli.generate(ins, kind, ieee.PER_KIND, np.random.default_rng([ieee.SEED, index]))
        codes = ins.dot(**operands).tolist()
        for row in range(0, ieee.PER_KIND, 5):
            total, got = total_of(ins, operands, row), exact.decode("f16", codes[row])
            if total is None or got.what != "number" or abs(sum(total[0])) < exact.two(-14):
                continue
            value = sum(total[0], Fraction(0))
            worst = max(worst, abs(got.x - value) / exact.two(exact.log2_floor(value) - 10))
    assert found.worst is not None and 0 < worst <= abs(found.worst.ulp)


@pytest.mark.parametrize(("architecture", "name"), UNITS)
def test_reordered_operands_have_the_same_products(architecture: str, name: str) -> None:
    ins = golden.instruction(architecture, name)
    operands = stimuli.generate(ins, "narrow", 5, np.random.default_rng(3))
    moved = ieee.reordered(ins, operands, np.random.default_rng(4))
    for row in range(5):
        before, after = total_of(ins, operands, row), total_of(ins, moved, row)
        assert before is not None and after is not None
        assert sorted(before[0]) == sorted(after[0])
    assert any(not np.array_equal(operands[key], moved[key]) for key in operands)


def test_order_matters_only_where_additions_are_rounded_one_by_one() -> None:
    fused = ieee.findings(golden.instruction("hopper", "HMMA.16816.F32"))
    chained = ieee.findings(golden.instruction("ampere", "HMMA.16816.F32"))
    assert fused.reordered == 0 and fused.reordered_example is None
    assert chained.reordered > 0 and chained.reordered_example is not None


def test_an_ieee_unit_equals_its_own_chain() -> None:
    """DMMA is a chain of IEEE fused multiply-adds: only its sum differs from the correctly rounded one."""
    found = ieee.findings(golden.instruction("hopper", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"))
    assert found.chain.numeric == 0 and found.rounded.numeric > 0


@pytest.mark.parametrize("suffix", ["", ".satfinite"])
def test_integer_overflow(suffix: str) -> None:
    ins = golden.instruction("hopper", f"mma.sync.aligned.m16n8k32.row.col{suffix}.s32.s8.u8.s32")
    found = ieee.overflow(ins)
    assert (
        found.unlike == 0
        and 0 < found.beyond < found.tried
        and found.rule == ("saturate" if suffix else "wrap")
    )
    a, b = found.example["a"].astype(np.int8).astype(int), found.example["b"].astype(int)
    total = int((a * b).sum()) + int(found.example["c"].astype(np.int32))
    assert not -(2**31) <= total < 2**31
    wanted = max(-(2**31), min(2**31 - 1, total)) if suffix else total
    assert int(ins.dot(**found.example)) == wanted % 2**32


def test_results_without_a_nan_have_units_of_ieee_754() -> None:
    """A product of 1.5 and 2 from 0.25 is 3.25 in each; no step asks for the NaN that f16 of Tensix lacks."""
    ins = golden.instruction("tensix_wormhole", "mvmul.f16.f16.f16.lofi")
    a, b = np.zeros(16, np.uint16), np.zeros(16, np.uint16)
    a[0], b[0] = 0x3E00, 0x4000
    for unit in (ieee.rounded_sum(ins), ieee.fma_chain(ins)):
        assert int(unit.dot(a, b, np.uint16(0x3400))) == 0x4280
