"""Usual faults of adders, held against float64, which holds every sum of two f16 numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import golden
import rtl_tb
from golden import yamlfile
from golden.catalog import unit_files
from golden.identify.diagnose import datapath
from golden.identify.diagnose.mutations import of_signals
from golden.model.instruction import Instruction

STYLES = Path(rtl_tb.__file__).parent / "mutants" / "units"
EXAMPLES = Path(__file__).parents[3] / "spec" / "examples"
ADDER = """unit: adder
shape: {k: 1}
formats: {a: f16, c: f16, d: f16}
steps:
  - sum: {of: [a, c], to: d, order: sequential, rounding: nearest_even, nan: 0x7E00}
"""
Array = np.ndarray


def with_fault(ins: Instruction, slug: str, **operands: Array) -> Array:
    (tap,) = [tap for tap in of_signals(ins) if tap.slug == slug]
    return datapath.results(ins, [tap], operands)


def exponent(x: Array) -> Array:
    """Of subnormal numbers and of zeros the least one."""
    return np.maximum(np.frexp(x)[1] - 1, -14)


def scaled(x: Array, by: Array) -> Array:
    return np.ldexp(x, by)


def clamped(x: Array, y: Array) -> Array:
    """`y` is the smaller one."""
    far = exponent(x) - exponent(y)
    return x + scaled(y, np.maximum(far - 5, 0))


def short(x: Array, y: Array) -> Array:
    total, top = x + y, scaled(np.ones_like(x), exponent(x) + 1)
    return np.copysign(np.fmod(np.abs(total), top), total)


def ored(x: Array, y: Array) -> Array:
    place = scaled(np.ones_like(x), exponent(x) - 12)
    kept = np.trunc(y / place) * place
    return x + kept + np.where(kept == y, 0, np.copysign(place / 2, x))


@pytest.mark.parametrize(
    ("slug", "fault"), [("shift-limit-5", clamped), ("sum-carry-lost", short), ("sticky-or-12", ored)]
)
def test_faults_of_an_adder(slug: str, fault: Callable[[Array, Array], Array]) -> None:
    ins = unit_files.build_instruction(yamlfile.parse(ADDER))
    rng = np.random.default_rng(3)
    a, c = (rng.integers(0, 1 << 16, 4000, dtype=np.uint16) for _ in range(2))
    x, y = (codes.view(np.float16).astype(np.float64) for codes in (a, c))
    some = np.isfinite(x) & np.isfinite(y) & (x != 0) & (y != 0) & (x != -y)
    a, c, x, y = a[some], c[some], x[some], y[some]
    swap = np.abs(y) > np.abs(x)
    with np.errstate(over="ignore"):
        want = fault(np.where(swap, y, x), np.where(swap, x, y)).astype(np.float16)
    got = with_fault(ins, slug, a=a[:, None], c=c)
    assert np.array_equal(got, want.view(np.uint16))
    assert 20 < (got != ins.dot(a=a[:, None], c=c)).sum() < len(got)


@pytest.mark.parametrize("name", ["sticky_rne", "sticky_or"])
def test_an_exact_zero_has_another_sign_where_all_zeros_are_positive(name: str) -> None:
    """Of integers: what is zero is so exactly."""
    ins = golden.load_instruction(EXAMPLES / f"{name}.yaml")
    rng = np.random.default_rng(4)
    shapes = {"a": (500, ins.k), "b": (500, ins.k), "c": (500,)}
    given = {
        key: rng.choice(np.array([0, 1, -1, 2, -2]), shape)
        .astype(f"f{ins.formats[key].bits // 8}")
        .view(ins.formats[key].dtype)
        for key, shape in shapes.items()
    }
    right = ins.dot(**given)
    assert 20 < (right == 0).sum() < 500
    minus = np.where(right == 0, 1 << ins.formats["d"].sign_shift, right)
    assert np.array_equal(with_fault(ins, "zero-sum-negative", **given), minus)


def test_an_infinite_operand_loses_its_sign_and_an_overflow_does_not() -> None:
    ins = unit_files.build_instruction(yamlfile.parse(ADDER))
    infinity, most = 0x7C00, 0x7BFF
    a = np.array([infinity, infinity | 0x8000, infinity, most | 0x8000, 0x3C00], np.uint16)
    c = np.array([1, 1, infinity | 0x8000, most | 0x8000, 0xBC00], np.uint16)
    got = with_fault(ins, "infinite-operand-sign-positive", a=a[:, None], c=c)
    assert [hex(code) for code in got] == ["0x7c00", "0x7c00", "0x7e00", "0xfc00", "0x0"]
    assert int(ins.dot(a=a[1:2, None], c=c[1:2])[0]) == 0xFC00


def test_a_huge_exponent_wraps_once_more_with_a_carry() -> None:
    """What the RTL of this unit answers with that fault: a sum that is cut toward minus infinity carries
    where c is negative, and its exponent has nine bits."""
    ins = golden.load_instruction(STYLES / "packed_structs" / "unit.yaml")
    a, b = [0x41F0, 0x346E, 0xBB1B, 0], [0xBC89, 0xBE55, 0x3C06, 0xBE0B]
    c = np.array([0x807FFFFF, 0x007FFFFF, 0x80000001], np.uint32)
    given = {"a": np.array([a] * 3, np.uint16), "b": np.array([b] * 3, np.uint16), "c": c}
    got = with_fault(ins, "c-subnormal-huge", **given)
    assert [hex(code) for code in got] == ["0x0", "0x7f800000", "0xff800000"]
