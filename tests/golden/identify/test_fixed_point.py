"""Boxes of signal processors, in plain integers: fixed point, and registers for groups of products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import golden
from golden import stimuli

Box = Callable[..., Any]


def _signed(codes: Any, bits: int) -> Any:
    """Two's complement numbers of codes."""
    whole = np.asarray(codes, np.int64)
    return whole - (whole >> (bits - 1) << bits)


def q7_cut(a: Any, b: Any, c: Any) -> Any:
    """Four products of Q1.7 and c, cut toward minus infinity; wraps."""
    total = (_signed(a, 8) * _signed(b, 8)).sum(axis=1) >> 7
    return (total + _signed(c, 16)).astype(np.uint16)


def narrow_pairs(a: Any, b: Any, c: Any) -> Any:
    """Every second product in one of two registers of 14 bits that saturate; c is added at full width."""
    products = _signed(a, 8) * _signed(b, 8)
    held = [np.clip(products[:, start::2].sum(axis=1), -(1 << 13), (1 << 13) - 1) for start in (0, 1)]
    return (sum(held) + _signed(c, 32)).astype(np.uint32)


@pytest.mark.parametrize(
    ("box", "formats", "k"),
    [
        (q7_cut, {"a": "s8", "b": "s8", "c": "s16", "d": "s16"}, 4),
        (narrow_pairs, {"a": "s8", "b": "s8", "c": "s32", "d": "s32"}, 4),
    ],
)
def test_integers_of_signal_processors_are_found(box: Box, formats: dict[str, str], k: int) -> None:
    found = golden.dissect(box, formats=formats, k=k, seconds=120, asks=12_000)
    assert found.instruction is not None and not found.wrong
    for index, kind in enumerate(stimuli.KINDS):
        operands = stimuli.generate(found.instruction, kind, 200, np.random.default_rng([9, index]))
        assert np.array_equal(box(**operands), found.instruction.dot(**operands)), kind
