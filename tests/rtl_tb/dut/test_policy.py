"""Compare policies against tables written by hand from the definitions of the formats."""

from __future__ import annotations

import numpy as np
import pytest

from golden.errors import OperandError
from golden.number.formats import get_format
from rtl_tb.dut.policy import ComparePolicy

# (expected, actual) -> which policies accept: e(xact), c(anonical), a(ny) NaN; a zero policy is named where
# it matters.
F32 = [
    (0x3F800000, 0x3F800000, "eca", ("strict", "any")),
    (0x3F800000, 0x3F800001, "", ()),
    (0x7FFFFFFF, 0x7FFFFFFF, "ea", ("strict", "any")),
    (0x7FFFFFFF, 0x7FC00000, "ca", ("strict", "any")),
    (0x7FFFFFFF, 0xFFC00000, "a", ("strict", "any")),
    (0x7FFFFFFF, 0x7F800001, "a", ("strict", "any")),
    (0x7FFFFFFF, 0x7F800000, "", ()),
    (0x7F800000, 0x7FC00000, "", ()),
    (0x7F800000, 0xFF800000, "", ()),
    (0x00000000, 0x80000000, "eca", ("any",)),
    (0x80000000, 0x00000000, "eca", ("any",)),
    (0x00000000, 0x00000001, "", ()),
]


@pytest.mark.parametrize("nan", ["exact", "canonical", "any"])
@pytest.mark.parametrize("zero", ["strict", "any"])
def test_f32(nan: str, zero: str) -> None:
    expected, actual = (np.array([row[i] for row in F32], np.uint32) for i in (0, 1))
    wanted = [nan[0] in row[2] and zero in row[3] for row in F32]
    assert ComparePolicy(nan, zero).equal(get_format("f32"), expected, actual).tolist() == wanted


def test_integers_are_always_exact() -> None:
    codes = np.array([0, 0x7FFFFFFF, 0xFFC00000], np.uint32)
    other = np.array([0x80000000, 0x7FC00000, 0x7FC00000], np.uint32)
    assert not ComparePolicy("any", "any").equal(get_format("s32"), codes, other).any()


def test_shapes_are_kept() -> None:
    codes = np.arange(6, dtype=np.uint16).reshape(2, 3)
    assert ComparePolicy().equal(get_format("f16"), codes, codes).shape == (2, 3)


@pytest.mark.parametrize(
    ("nan", "zero", "said"), [("cannonical", "strict", "canonical"), ("exact", "loose", "strict or any")]
)
def test_wrong_names(nan: str, zero: str, said: str) -> None:
    with pytest.raises(OperandError, match=said):
        ComparePolicy(nan, zero)
