"""Probes and specs agree on units where one of them was wrong, and on units with one product."""

from __future__ import annotations

import numpy as np
import pytest

import golden
from golden.dissect.properties import PROPERTIES, by_slug, measure


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
def test_the_largest_sum_is_told_as_the_result_holds_it(name: str, largest: int) -> None:
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
