"""Probes and specs agree on units where one of them was wrong, and on units with one product."""

from __future__ import annotations

import numpy as np
import pytest
from published_units import bulk_normalised, rounded_products
from real_units import Dot

import golden
from golden.identify.probe.properties import PROPERTIES, by_slug, measure


@pytest.mark.parametrize("name", ["fdot.8h.e5m2.e5m2", "fmmla.8h.e5m2.e5m2", "fmopa.h.e5m2.e5m2"])
def test_a_negative_total_that_underflows_keeps_its_sign(name: str) -> None:
    """-2**-27, exact, is nearer to zero than to -2**-24: IEEE 754-2019, 6.3, gives -0."""
    ins = golden.instruction("armv9", name)
    a, b = np.zeros((2, ins.k), np.uint8)
    a[-1], b[-1] = 0x84, 0x08  # -2**-14 and 2**-13
    assert ins.dot(a, b, np.uint16(0)) == 0x8000
    finding = measure(by_slug()["zero-sign"], ins)
    assert finding is not None and "underflow" in finding.text


def test_what_underflows_in_a_chain_shows_where_it_is_added_last() -> None:
    """vdpbf16ps adds a[1] * b[1] first: a product of +0 behind -0 makes +0, one in front does not."""
    ins = golden.instruction("sapphire_rapids", "vdpbf16ps")
    tiny, other = [0x9A00, 0], [0x1A00, 0]  # -2**-75 and 2**-75
    assert int(ins.dot(np.uint16(tiny), np.uint16(other), np.uint32(0))) == 0x80000000
    assert int(ins.dot(np.uint16(tiny[::-1]), np.uint16(other[::-1]), np.uint32(0))) == 0
    assert measure(by_slug()["zero-sign"], ins) is not None


@pytest.mark.parametrize(("name", "largest"), [("vpdpwssd", -(2**31)), ("vpdpwssds", 2**31 - 1)])
def test_the_largest_sum_is_reported_as_the_result_holds_it(name: str, largest: int) -> None:
    """2 * (-2**15)**2 is 2**31: one past the end of s32."""
    ins = golden.instruction("sapphire_rapids", name)
    least = np.full(2, 0x8000, np.uint16)
    assert int(ins.dot(least, least, np.uint32(0)).view(np.int32)) == largest
    finding = measure(by_slug()["integer-range"], ins)
    assert finding is not None and finding.text.endswith(f" to {largest:,}")


def test_units_with_one_product_have_properties() -> None:
    unit = golden.load_instruction("spec/examples/fma_modes.yaml").plain
    found = [measure(one, unit) for one in PROPERTIES]
    assert sum(finding is not None for finding in found) > 5


@pytest.mark.parametrize(
    ("architecture", "name"),
    [
        ("volta", "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16"),
        ("turing", "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32"),
        ("turing", "mma.sync.aligned.m8n8k16.row.col.satfinite.s32.u8.u8.s32"),
        ("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32"),
        ("blackwell", "tcgen05.mma.cta_group::1.kind::f8f6f4.m64n8k32.f32.e3m2.e2m3"),
        (
            "blackwell",
            "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X.m128n8k64.f32.e2m1.e2m1.ue8m0",
        ),
        (
            "rtx_blackwell",
            "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X"
            ".f32.e4m3.e4m3.f32.ue8m0",
        ),
    ],
)
def test_units_that_the_comparison_does_not_show_have_properties(architecture: str, name: str) -> None:
    """c of another format, two rules, no negative product, a narrow range, sparse with scales."""
    for one in PROPERTIES:
        measure(one, golden.instruction(architecture, name))


_NVF4 = "kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"


@pytest.mark.parametrize(
    ("architecture", "name", "text"),
    [
        ("hopper", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.rz", "chain of FMA from c"),
        ("ampere", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.rp", "chain of FMA from c"),
        (
            "rtx_blackwell",
            f"mma.sync.aligned.m16n8k64.row.col.{_NVF4}",
            "fused sum of 4 exact group sums and c",
        ),
        ("cdna2", "v_mfma_f32_32x32x8f16", "tree of 4 products, then c"),
    ],
)
def test_the_masks_of_the_search_show_the_orders_of_the_comparison(
    architecture: str, name: str, text: str
) -> None:
    """Cut towards zero, where -M loses its last place to y and M alone says how many are left; by the scales
    of blocks; in two operations, each with a tree."""
    finding = measure(by_slug()["order"], golden.instruction(architecture, name))
    assert finding is not None and finding.text == text


@pytest.mark.parametrize(("mode", "largest"), [("rz", True), ("rm", True), ("rn", False), ("rp", False)])
def test_roundings_away_from_infinity_stop_at_the_largest_number(mode: str, largest: bool) -> None:
    """IEEE 754-2019, 7.4."""
    ins = golden.instruction("ampere", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64." + mode)
    finding = measure(by_slug()["overflow"], ins)
    assert finding is not None and (finding.text == str(np.finfo(np.float64).max)) == largest
    sign = measure(by_slug()["zero-sign"], ins)
    assert sign is not None and ("1 - 1" in sign.text) == (mode == "rm")


def test_a_unit_without_nans_declares_no_word_of_one() -> None:
    measure(by_slug()["nan-word"], golden.instruction("tensix_wormhole", "mvmul.f16.f16.f16.lofi"))


@pytest.mark.long
def test_every_program_has_what_the_probes_find() -> None:
    """Both ways to each property, of all programs of the catalog: a minute."""
    seen = set()
    for architecture in golden.architectures():
        for ins in golden.instructions(architecture):
            key = architecture, id(ins.program), ins.stored_k, ins.pattern
            if key not in seen:
                seen.add(key)
                for one in PROPERTIES:
                    measure(one, ins)
    assert len(seen) > 1_000


@pytest.mark.parametrize(
    ("name", "dot", "slug", "text"),
    [
        ("vfwdota.vv.n8", bulk_normalised(3), "zero-sign", "always +0"),
        ("vfwdota.vv.n8", bulk_normalised(3), "inner-overflow", "no"),
        ("vfmmacc.vv.k4.g1.frm", rounded_products, "zero-sign", "-0 from all -0"),
        ("vfmmacc.vv.k4.g1.frm", rounded_products, "inner-overflow", "sums and products"),
    ],
)
def test_what_an_earlier_rounding_does_to_the_result(name: str, dot: Dot, slug: str, text: str) -> None:
    """RVBNA's own sum is never -0, so nor is it plus c; a product and a sum that are rounded overflow before
    what cancels them comes. Each probe's answer is that of exact rationals."""
    finding = measure(by_slug()[slug], golden.instruction("riscv", name))
    assert finding is not None and finding.text == text
    for shot in finding.shots:
        a, b, c = (shot.operands[operand].tolist() for operand in "abc")
        assert dot(a, b, c) == shot.code, shot.what


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16", "always +0"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32", "-0 from underflow"),
    ],
)
def test_a_chain_through_another_format_loses_the_sign_of_zero_on_the_way(name: str, text: str) -> None:
    finding = measure(by_slug()["zero-sign"], golden.instruction("turing", name))
    assert finding is not None and finding.text == text


def test_products_that_are_rounded_overflow_before_they_are_added() -> None:
    finding = measure(by_slug()["inner-overflow"], golden.load_instruction("spec/examples/ieee_tree.yaml"))
    assert finding is not None and finding.text == "products"
