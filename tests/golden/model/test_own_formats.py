"""Formats of a unit's own, as wide as FP16 and FP32 but with another bias or no special values: no form of
the core may read or write them as the machine's own."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from random_units import load

UNIT = """unit: own
shape: {{k: 4}}
formats: {{a: h, b: h, c: {c}, d: {d}}}
define_formats:
  h: {{kind: float, storage: 16, exponent_bits: 5, fraction_bits: 10, bias: {half}, specials: {specials}}}
  w: {{kind: float, storage: 32, exponent_bits: 8, fraction_bits: 23, bias: {single}, specials: ieee}}
steps:
"""
ALIGNED = """  - multiply: {to: products}
  - special_values: {of: [products, c]}
  - align: {of: [products, c], fraction_bits: 24, rounding: toward_zero}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: toward_zero, overflow: infinity, zero: positive}
"""
FUSED = "  - fma: {{to: d, start: c, format: {d}, rounding: nearest_even}}\n"


@pytest.mark.parametrize("steps", [ALIGNED, FUSED], ids=["aligned", "fused"])
@pytest.mark.parametrize(("c", "d"), [("w", "w"), ("f32", "w"), ("w", "f32"), ("f32", "f32"), ("h", "f32")])
def test_widths_alone_make_no_format(c: str, d: str, steps: str) -> None:
    rng = np.random.default_rng(5)
    for half, specials, single in product((15, 7, 20), ("ieee", "none"), (127, 100)):
        text = UNIT.format(c=c, d=d, half=half, specials=specials, single=single)
        ins = load(text + (FUSED.format(d=d) if steps is FUSED else steps))
        a, b = rng.integers(0, 1 << 16, (2, 300, 4)).astype(np.uint16)
        a[:150] &= 0xBBFF  # no special values, so that numbers meet
        b[:150] &= 0xBBFF
        codes = rng.integers(0, 1 << ins.formats["c"].bits, 300).astype(ins.formats["c"].dtype)
        wanted = ins.engine.dots(a, b, codes, None, None, None, None, general=True)
        assert np.array_equal(ins.dot(a, b, codes), wanted), text
        for i in range(0, 300, 60):
            assert ins.reference_dot(a[i], b[i], codes[i]) == wanted[i], text
