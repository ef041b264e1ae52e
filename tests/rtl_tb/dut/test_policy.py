"""Compare policies against tables written by hand from the definitions of the formats."""

from __future__ import annotations

import numpy as np
import pytest

from golden.errors import OperandError
from golden.number.formats import formats, get_format
from rtl_tb.dut.policy import ComparePolicy, is_nan, is_zero

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


@pytest.mark.parametrize(
    "name",
    ["f32", "f16", "bf16", "e5m2", "e4m3", "e4m3fnuz", "e5m2fnuz", "e2m1", "e3m2", "ue8m0", "f64", "tf32"],
)
def test_kinds_agree_with_decoding(name: str) -> None:
    """is_nan and is_zero for every code of the small formats, and for the special ones of the large, as
    `decode` says."""
    fmt = get_format(name)
    codes = np.arange(0, 1 << min(fmt.bits, 16), 1 if fmt.bits <= 8 else 7, dtype=np.uint64) << np.uint64(
        max(fmt.bits - 16, 0)
    )
    near = np.array(
        [fmt.largest, fmt.largest + 1, fmt.infinity or 0, (fmt.infinity or 0) + 1, fmt.nan or 0], np.uint64
    )
    codes = np.concatenate([codes, near]).astype(fmt.dtype)
    kinds = [fmt.decode(int(code)).kind.name for code in codes]
    assert is_nan(fmt, codes).tolist() == [kind == "NAN" for kind in kinds]
    assert is_zero(fmt, codes).tolist() == [kind == "ZERO" for kind in kinds]
    assert name in formats()


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
