"""NaNs that are handed on as they are: of two or three operands the first one, bit for bit, in every step
that hands one on."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from small_units import both, unit

from golden.errors import SpecError
from golden.program.words import step_text

NANS = [0x7C01, 0xFC01, 0x7D5A, 0x7E00, 0xFE5A, 0x7FFF]
"""f16: signalling and quiet, of both signs."""
NUMBERS = [0x3C00, 0x0000]
HOW = {
    "nans": "special_values: {of: [products, c], nans: {factor: payload, c: payload}%s}",
    "first_nan": "sum: {of: [a, c], to: d, order: sequential, rounding: nearest_even, first_nan: true%s}",
    "nan_order": "fma: {to: d, rounding: nearest_even, nan_order: [a, b, c]%s}",
}


def steps(how: str, quieted: bool) -> list[str]:
    last = HOW[how] % ("" if quieted else ", quieted: false")
    if how != "nans":
        return [last]
    total = (
        "sum: {of: [products, c], to: total}",
        "round: {of: total, rounding: nearest_even, overflow: ieee, zero: signed}",
    )
    return ["multiply: {to: products}", last, *total]


@pytest.mark.parametrize("how", list(HOW))
@pytest.mark.parametrize("quieted", [True, False])
def test_the_first_nan_is_handed_on(how: str, quieted: bool) -> None:
    ins = unit(*steps(how, quieted), k=1, d="f16", c="f16")
    rows = [row for row in itertools.product([*NANS, *NUMBERS], repeat=3) if set(row) & set(NANS)]
    a, b, c = (np.array([row[i] for row in rows], np.uint16) for i in range(3))
    found = ins.dot(a[:, None], b[:, None], c)
    for row, code in zip(rows, found.tolist(), strict=True):
        operands = (row[0], row[2]) if how == "first_nan" else row
        first = next((x for x in operands if x in NANS), None)
        if first is not None:
            assert code == both(ins, [row[0]], [row[1]], row[2]) == (first | 0x200 if quieted else first)
    said = "handed on" if how != "nans" else "hands it on"
    texts = [step_text(step) for step in ins.program.operations[0].steps]
    assert any(f"{said}, {'quieted' if quieted else 'as it is'}" in text for text in texts)


def test_a_payload_that_would_be_cut_is_refused() -> None:
    """0x7f800001 has nothing but its last bit: as f16 it would be an infinity."""
    with pytest.raises(
        SpecError, match="key 'quieted' is false, but f16, f32 have payloads of different widths"
    ):
        unit(*steps("nan_order", False), k=1, d="f16", c="f32")
    with pytest.raises(SpecError, match="unknown key 'quieted'"):
        unit("fma: {to: d, rounding: nearest_even, quieted: false}", k=1)
