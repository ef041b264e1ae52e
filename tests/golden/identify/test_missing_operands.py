"""Black boxes without c, without b, or without both: the unit that is found lacks the same operands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from long_run import long_after
from typer.testing import CliRunner

from golden import stimuli, yamlfile
from golden.catalog.unit_files import build_instruction
from golden.cli.app import app
from golden.errors import OperandError
from golden.identify.blackbox.dissecting import dissect
from golden.identify.blackbox.naming import differences
from golden.program.signature import Bits


def multiplier(a: Bits, b: Bits) -> Bits:
    """One f32 product, as NumPy rounds it; a NaN is 0x7fc00000."""
    with np.errstate(all="ignore"):
        product = a[:, 0].copy().view(np.float32) * b[:, 0].copy().view(np.float32)
    return np.where(np.isnan(product), np.uint32(0x7FC00000), product.view(np.uint32))


def integers(a: Bits, b: Bits) -> Bits:
    """Four products of s8, summed, and clamped to s8."""
    total = (a.view(np.int8).astype(np.int64) * b.view(np.int8)).sum(axis=1)
    return np.clip(total, -128, 127).astype(np.int8).view(np.uint8)


def adder(a: Bits, c: Bits) -> Bits:
    """One f32 addition, as NumPy does it; a NaN is 0x7fc00000."""
    with np.errstate(all="ignore"):
        total = a[:, 0].copy().view(np.float32) + c.view(np.float32)
    return np.where(np.isnan(total), np.uint32(0x7FC00000), total.view(np.uint32))


def converter(a: Bits) -> Bits:
    """s32 to s8, clamped."""
    return np.clip(a[:, 0].copy().view(np.int32), -128, 127).astype(np.int8).view(np.uint8)


BOXES: dict[str, tuple[Any, dict[str, str], int]] = {
    "dot product without c": (integers, {"a": "s8", "b": "s8", "d": "s8"}, 4),
    "multiplier": (multiplier, {"a": "f32", "b": "f32", "d": "f32"}, 1),
    "adder": (adder, {"a": "f32", "c": "f32", "d": "f32"}, 1),
    "converter": (converter, {"a": "s32", "d": "s8"}, 1),
}


@pytest.mark.parametrize("name", BOXES)
def test_a_function_is_found_with_the_operands_that_it_takes(name: str) -> None:
    box, formats, k = BOXES[name]
    found = dissect(box, formats, k, seconds=20, asks=15_000)
    assert found.explains and found.yaml is not None
    unit = build_instruction(yamlfile.parse(found.yaml))
    assert set(unit.own_formats) == set(formats)
    for kind in ("random_bits", "narrow", "special_each", "zeros"):
        operands = stimuli.generate(unit, kind, 500, np.random.default_rng(7))
        assert set(operands) == set(formats) - {"d"}
        np.testing.assert_array_equal(unit.dot(**operands), box(**operands))
    lacked = "".join(name for name in "bc" if name not in formats)
    assert not lacked or not any(re.search(rf"\b[{lacked}]\b", one) for one in found.undecided)


UNITS = {
    "aligned": (
        "{a: f16, b: f16, d: f32}",
        "[{multiply: {to: products}}, {special_values: {of: products}}, "
        "{align: {of: products, fraction_bits: 24, rounding: toward_zero}}, "
        "{sum: {of: products, to: total}}, "
        "{round: {of: total, rounding: toward_zero, overflow: infinity, zero: positive}}]",
    ),
    "tree": (
        "{a: f16, b: f16, d: f32}",
        "[{multiply: {to: products}}, {sum: {of: products, to: d, order: tree, rounding: nearest_even}}]",
    ),
    "sum of elements": (
        "{a: f16, d: f32}",
        "[{sum: {of: a, to: d, order: tree, rounding: nearest_even}}]",
    ),
}


@pytest.mark.parametrize("name", long_after(1, UNITS))
def test_a_unit_of_the_language_is_found_as_it_is_written(name: str) -> None:
    formats, steps = UNITS[name]
    text = f"unit: u\nshape: {{k: 4}}\nformats: {formats}\nsteps: {steps}\n"
    unit = build_instruction(yamlfile.parse(text))
    found = dissect(unit, seconds=40, asks=8_000)
    assert found.explains and found.instruction is not None
    assert found.instruction.formats == unit.formats
    assert differences(found.instruction, unit, found.alternatives) == []


@pytest.mark.parametrize("name", ["multiplier", "converter"])
def test_a_dissection_is_continued(name: str, tmp_path: Path) -> None:
    """The file holds operands that the unit lacks; what is read back lacks them again."""
    box, formats, k = BOXES[name]
    limits: dict[str, Any] = {"seconds": 20, "asks": 8_000, "resume": tmp_path / "kept.npz"}
    first = dissect(box, formats, k, **limits)
    again = dissect(box, formats, k, **limits)
    assert first.explains and again.explains and again.yaml == first.yaml
    assert again.asked > first.asked


def test_a_function_without_a_or_d_is_refused() -> None:
    with pytest.raises(OperandError, match="'formats' lacks a, expected a, d, and b and c where"):
        dissect(converter, {"d": "s8"}, 1)
    result = CliRunner().invoke(app, ["dissect", "python:x.py:f", "--formats", "b=f16,d=f32", "--k", "1"])
    assert result.exit_code == 2 and "formats lack a, expected a, d, and b and c" in result.output
