"""Each boundary that a step decides is met by at least 20 of the 200,000 vectors that a check runs.

The totals and products are computed here from the codes, in integers; the model is not asked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import golden
from golden.model.instruction import Instruction
from golden.number.formats import get_format
from golden.vectors.vectorset import VectorSet, default_set

COUNT, LEAST = 200_000, 20


def vectors(ins: Instruction) -> VectorSet:
    return default_set(ins, COUNT, seed=1)


def own(folder: Path, formats: str, k: int, steps: str) -> Instruction:
    file = folder / "unit.yaml"
    file.write_text(f"unit: own\nshape: {{k: {k}}}\nformats: {{{formats}}}\nsteps:\n{steps}")
    return golden.load_instruction(file)


def signed(codes: Any, bits: int) -> Any:
    values = codes.astype(np.int64)
    return values - ((values >> (bits - 1) & 1) << bits)


SATURATE = """  - multiply: {to: products}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: toward_zero, overflow: saturate, zero: positive}
"""


@pytest.mark.parametrize(
    ("formats", "bits", "edges"),
    [
        ("a: u8, b: u8, c: s32, d: s32", 32, (2**31 - 1, 2**31, 2**31 + 1, -(2**31))),
        ("a: u4, b: u4, c: s32, d: s32", 32, (2**31 - 1, 2**31, 2**31 + 1)),
        ("a: s8, b: s8, c: s32, d: s32", 32, (2**31 - 1, 2**31, -(2**31), -(2**31) - 1)),
        ("a: u8, b: u8, c: s16, d: s16", 16, (2**15 - 1, 2**15, -(2**15))),
        ("a: s8, b: s8, c: s16, d: s16", 16, (2**15 - 1, 2**15, -(2**15), -(2**15) - 1)),
    ],
)
def test_totals_on_both_sides_of_a_clamp(
    tmp_path: Path, formats: str, bits: int, edges: tuple[int, ...]
) -> None:
    ins = own(tmp_path, formats, 4, SATURATE)
    operands = vectors(ins).operands
    a, b = (
        signed(operands[name], ins.formats[name].bits) if ins.formats[name].signed else operands[name]
        for name in "ab"
    )
    total = (a.astype(np.int64) * b).sum(axis=1) + signed(operands["c"], bits)
    assert {edge: np.count_nonzero(total == edge) >= LEAST for edge in edges} == dict.fromkeys(edges, True)


MULTIPLY = """  - multiply: {to: products}
  - special_values: {of: products}
  - round: {of: products, rounding: nearest_even, overflow: ieee, zero: signed}
"""


@pytest.mark.parametrize("name", ["f16", "bf16", "f32"])
def test_a_lone_product_rounds_up_to_the_least_normal_and_has_each_sticky_bit(
    tmp_path: Path, name: str
) -> None:
    """A unit without c: every bit below half of the last place, alone beside a half that ties to even."""
    fmt = get_format(name)
    operands = vectors(own(tmp_path, f"a: {name}, b: {name}, d: {name}", 1, MULTIPLY)).operands
    fields = {}
    for each in "ab":
        codes = operands[each][:, 0].astype(np.int64)
        exponent = codes >> fmt.fraction_bits & ((1 << fmt.exponent_bits) - 1)
        fraction = codes & ((1 << fmt.fraction_bits) - 1)
        fields[each] = np.where(exponent > 0, fraction | 1 << fmt.fraction_bits, fraction), exponent
    finite = np.logical_and.reduce([e < (1 << fmt.exponent_bits) - 1 for _, e in fields.values()])
    product = fields["a"][0] * fields["b"][0]
    exponent = sum(np.maximum(e, 1) - fmt.bias for _, e in fields.values())
    lead = np.frexp(product.astype(np.float64))[1] - 1 + exponent - 2 * fmt.fraction_bits
    # At 2**(min_exponent - 1) and above by less than a quarter of the least number: all ones, and rounded up.
    shift = 2 * fmt.fraction_bits - exponent + fmt.min_exponent
    below = finite & (product > 0) & (shift >= 1) & (shift < 62)
    least = np.int64(1) << np.where(below, shift, 1)
    half = least >> (fmt.fraction_bits + 1)
    assert np.count_nonzero(below & (product < least) & (product >= least - half)) >= LEAST
    cut = lead - exponent + fmt.fraction_bits
    normal = finite & (product > 0) & (lead >= fmt.min_exponent) & (lead <= fmt.max_exponent) & (cut > 1)
    cut = np.where(normal, cut, 1)
    low = product & ((np.int64(1) << cut) - 1)
    tie = normal & (low >> (cut - 1) == 1) & (product >> cut & 1 == 0)
    rest = low - (np.int64(1) << (cut - 1))
    met = [int(np.count_nonzero(tie & (rest == 1 << place))) for place in range(fmt.fraction_bits - 1)]
    assert min(met) >= LEAST, met


def test_the_carry_of_a_rounding_ends_at_every_place(tmp_path: Path) -> None:
    """A lone f32 product: a unit whose increment stops short of one place is wrong there alone. Just below
    the least normal number all digits but one are ones, for every digit: each input of the AND is seen."""

    def places(powers: Any) -> Any:
        return np.log2(powers).astype(int)

    ins = own(
        tmp_path,
        "a: f32, b: f32, d: f32",
        1,
        "  - multiply: {to: products}\n  - special_values: {of: products}\n"
        "  - round: {of: products, rounding: nearest_even, overflow: ieee, zero: signed, flush: signed}\n",
    )
    a, b = (vectors(ins).operands[name].ravel().astype(np.int64) for name in "ab")
    exponents = [codes >> 23 & 255 for codes in (a, b)]
    normal = np.logical_and(*((one > 0) & (one < 255) for one in exponents))
    product = (a & 0x7FFFFF | 1 << 23) * (b & 0x7FFFFF | 1 << 23)
    upper = product >> 47
    cut = 23 + upper
    kept, rest, half = product >> cut, product & (1 << cut) - 1, 1 << cut - 1
    up = normal & ((rest > half) | (rest == half) & (kept & 1 == 1))
    ends = np.bincount(places(kept + 1 & -(kept + 1))[up], minlength=25)
    assert ends[:23].min() >= LEAST and ends[24] >= LEAST, ends
    tiny = up & (sum(exponents) - 254 + upper == -127)
    zero = (1 << 24) - 1 - kept[tiny]
    digits = np.bincount(places(zero[(zero > 0) & (zero & zero - 1 == 0)]), minlength=23)
    assert digits[:23].min() >= 2, digits


def blackwell(name: str) -> Instruction:
    return golden.instruction("blackwell", name)


@pytest.mark.parametrize(
    ("name", "nan", "magnitude"),
    [
        (
            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X.m128n8k64.f32.e2m1.e2m1.ue4m3",
            0x7F,
            7,
        ),
        ("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.m128n8k32.f32.e4m3.e4m3.ue8m0", 0xFF, 127),
    ],
)
def test_a_nan_scale_over_data_that_are_all_zero(name: str, nan: int, magnitude: int) -> None:
    operands = vectors(blackwell(name)).operands
    scales = operands["scale_a"] & 0x7F if nan == 0x7F else operands["scale_a"]
    empty = ((operands["a"] & magnitude == 0) & (operands["b"] & magnitude == 0)).all(axis=1)
    assert np.count_nonzero(empty & (scales == nan).any(axis=1)) >= LEAST


def test_a_zero_scale_over_data_that_would_set_the_maximum() -> None:
    """NVFP4: the only block with data has a zero scale, and c lies more than an alignment below them."""
    ins = blackwell(
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X.m128n8k64.f32.e2m1.e2m1.ue4m3"
    )
    operands = vectors(ins).operands
    live = ((operands["a"] & 7 != 0) & (operands["b"] & 7 != 0)).reshape(COUNT, 4, -1).any(axis=2)
    zero = (operands["scale_a"] == 0) | (operands["scale_b"] == 0)
    exponent = (operands["c"] >> 23 & 0xFF).astype(np.int64) - 127
    lost = (live & zero).any(axis=1) & ~(live & ~zero).any(axis=1) & (exponent > -126) & (exponent < -40)
    assert np.count_nonzero(lost) >= LEAST


def test_dropped_bits_of_tf32_stand_beside_every_class() -> None:
    ins = golden.instruction("hopper", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
    operands = vectors(ins).operands
    kept = {name: operands[name] & 0x7FFFE000 for name in "ab"}
    dropped = {name: operands[name] & 0x1FFF != 0 for name in "ab"}
    for one, other in ("ab", "ba"):
        infinite = (kept[one] == 0x7F800000) & dropped[one]
        assert np.count_nonzero(infinite.any(axis=1)) >= LEAST
        zero = (kept[one] == 0) & dropped[one] & (kept[other] == 0x7F800000)
        assert np.count_nonzero(zero.any(axis=1)) >= LEAST
    assert np.mean(dropped["a"]) > 0.3
