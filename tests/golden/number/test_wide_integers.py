"""Integer results of more than 32 bits, against Python's integers."""

from __future__ import annotations

import random

import numpy as np
import pytest

import golden
from golden import yamlfile
from golden.catalog import unit_files
from golden.cover.coverage import Coverage
from golden.errors import SpecError
from golden.model.instruction import Instruction
from golden.vectors.vectorset import default_set

UNIT = """
unit: u
shape: {{k: 4}}
formats: {{a: {a}, b: {a}, c: wide_c, d: wide_d}}
define_formats:
  wide_c: {{kind: integer, storage: 64, bits: {c}}}
  wide_d: {{kind: integer, storage: 64, bits: {d}, signed: {signed}}}
  s32x: {{kind: integer, storage: 32, bits: 32}}
steps:
  - multiply: {{to: products}}
  - sum: {{of: [products, c], to: total}}
  - round: {{of: total, rounding: nearest_even, overflow: {overflow}, zero: positive}}
"""


def unit(
    a: str = "s32x", c: int = 63, d: int = 64, signed: str = "true", overflow: str = "wrap"
) -> Instruction:
    text = UNIT.format(a=a, c=c, d=d, signed=signed, overflow=overflow)
    return unit_files.build_instruction(yamlfile.parse(text))


@pytest.mark.parametrize("overflow", ["wrap", "saturate"])
@pytest.mark.parametrize("signed", ["true", "false"])
@pytest.mark.parametrize("d", [33, 48, 63, 64])
def test_exact_integer_sums(overflow: str, signed: str, d: int) -> None:
    ins, rng = unit(d=d, signed=signed, overflow=overflow), random.Random(d)
    low, high = (-(1 << (d - 1)), (1 << (d - 1)) - 1) if signed == "true" else (0, (1 << d) - 1)
    ends = (-(2**31), 2**31 - 1, -1, 0, 1)
    for _ in range(200):
        a, b = ([rng.choice((*ends, rng.randrange(-(2**31), 2**31))) for _ in range(4)] for _ in "ab")
        c = rng.choice((-(2**62), 2**62 - 1, 0, rng.randrange(-(2**62), 2**62)))
        total = sum(x * y for x, y in zip(a, b, strict=True)) + c
        wanted = (total if overflow == "wrap" else min(max(total, low), high)) % (1 << d)
        operands = {
            "a": np.array(a, np.int64).astype(np.uint32),
            "b": np.array(b, np.int64).astype(np.uint32),
            "c": np.uint64(c % 2**63),
        }
        assert int(ins.dot(**operands)) == ins.reference_dot(**operands) == wanted


@pytest.mark.parametrize("d", [48, 64])
def test_what_is_made_of_such_a_unit(d: int) -> None:
    ins = unit(a="s8", c=48, d=d)
    vectors = default_set(ins, 300, seed=3)
    for i in range(300):
        assert (
            ins.reference_dot(**{name: array[i] for name, array in vectors.operands.items()}) == vectors.d[i]
        )
    coverage = Coverage(ins)
    coverage.sample_set(vectors)
    assert not coverage.surprises()
    fmt = ins.formats["d"]
    codes = np.array([0, 1, fmt.largest, fmt.least, (1 << d) - 1], np.uint64)
    assert golden.to_float(fmt, codes).tolist() == [0.0, 1.0, float(fmt.largest), -float(fmt.least), -1.0]
    assert golden.from_float(fmt, [-1.0, -float(fmt.least), 3.0]).tolist() == [(1 << d) - 1, fmt.least, 3]


def test_wider_operands_are_refused() -> None:
    with pytest.raises(SpecError, match="c is an integer of 64 bits, expected at most 63"):
        unit(c=64)
    with pytest.raises(SpecError, match="a is an integer of 63 bits, expected at most 32"):
        unit(a="wide_c")
