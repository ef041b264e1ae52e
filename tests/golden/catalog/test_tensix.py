"""Tenstorrent's Matrix Unit against its rule in rationals (tests/golden/exact.py), written from the source of
the vendor's simulator."""

from __future__ import annotations

from typing import Any

import exact
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import golden
from golden.errors import UnknownNameError
from golden.model.instruction import Instruction

CHIPS = {"tensix_wormhole": True, "tensix_blackhole": False}
PHASES = {"lofi": (0,), "phase0": (0,), "phase1": (1,), "phase2": (2,), "phase3": (3,)} | {
    f"hifi{n}": tuple(range(n)) for n in (2, 3, 4)
}
FLOATS = [
    ("mvmul", "f32", "bf16", "bf16"),
    ("mvmul", "bf16", "bf16", "bf16"),
    ("mvmul", "f32", "tf32", "bf16"),
    ("mvmul", "bf16", "bf16", "tf32"),
    ("gapool", "f32", "tf32", "tf32"),
    ("mvmul", "f32", "f16", "f16"),
    ("mvmul", "f16", "f16", "f16"),
]


def near(rng: np.random.Generator, fmt: str, shape: tuple[int, ...]) -> Any:
    """Codes of a format: any, near each other, far below, or mostly zeros."""
    exponent_bits, fraction_bits, bias, _ = exact.FLOATS[fmt]
    kind = rng.integers(0, 4)
    middle = bias if kind == 1 else rng.integers(1, bias)
    exponent = np.clip(middle + rng.integers(-5, 6, shape), 0, 2**exponent_bits - 1)
    fields = (rng.integers(0, 2, shape) << exponent_bits | exponent) << fraction_bits
    codes = fields | rng.integers(0, 2**fraction_bits, shape) >> rng.integers(0, 3) * 3
    if kind == 0:
        codes = rng.integers(0, 2 ** (1 + exponent_bits + fraction_bits), shape)
    if kind == 3:
        codes = np.where(rng.random(shape) < 0.6, fields & 1 << (exponent_bits + fraction_bits), codes)
    return codes << 13 | rng.integers(0, 2**13, shape) if fmt == "tf32" else codes


def agree(ins: Instruction, rule: Any, operands: dict[str, Any], reference: int = 1) -> None:
    """The core on all rows and the reference on the first ones give what the rule says."""
    operands = {name: codes.astype(ins.formats[name].dtype) for name, codes in operands.items()}
    a, b, c = (operands[name].tolist() for name in "abc")
    want = [rule(*row) for row in zip(a, b, c, strict=True)]
    got = ins.dot(**operands)
    assert got.tolist() == want, ins.name
    for row in range(reference):
        assert ins.reference_dot(**{name: codes[row] for name, codes in operands.items()}) == want[row]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("op, d, a, b", FLOATS)
@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(PHASES)))
def test_floats_agree_with_rationals(
    chip: str, op: str, d: str, a: str, b: str, seed: int, fidelity: str
) -> None:
    ins = golden.instruction(chip, f"{op}.{d}.{a}.{b}.{fidelity}")
    rule = exact.tensix(a, b, d, PHASES[fidelity], CHIPS[chip])
    rng = np.random.default_rng(seed)
    c = near(rng, d, (3,))
    agree(ins, rule, {"a": near(rng, a, (3, ins.k)), "b": near(rng, b, (3, ins.k)), "c": c})


@given(st.integers(0, 2**32 - 1), st.sampled_from(["phase0", "phase1", "phase2", "phase3", "hifi4"]))
def test_integers_agree_with_a_sum(seed: int, fidelity: str) -> None:
    """Four phases are the product of the low eight bits of a and all of b, where nothing saturates."""
    rng = np.random.default_rng(seed)
    ins = golden.instruction("tensix_blackhole", f"mvmul.s32.s8.s8.{fidelity}")
    c = rng.integers(0, 2**32, 4) if seed % 2 else rng.integers(2**31 - 2**22, 2**31, 4)
    operands = {"a": rng.integers(0, 2**11, (4, 16)), "b": rng.integers(0, 2**11, (4, 16)), "c": c}
    agree(ins, exact.tensix_integers(PHASES[fidelity]), operands, 4)


def test_four_phases_of_integers_are_a_product() -> None:
    """Bits 8 and 9 of SrcA's magnitude are read by no phase."""
    ins = golden.instruction("tensix_wormhole", "mvmul.s32.s8.s8.hifi4")
    rest = [0] * 15
    a, b = ([[value, *rest] for value in column] for column in ((255, 1024 | 255, 256), (1023, 1023, 1023)))
    d = ins.dot(np.array(a, np.uint16), np.array(b, np.uint16), np.array([7, 7, 7], np.uint32))
    assert d.tolist() == [255 * 1023 + 7, 1 << 31 | 255 * 1023 - 7, 7]


def test_the_first_phase_is_lofi() -> None:
    for chip in CHIPS:
        for types in ("f32.bf16.bf16", "f16.f16.f16", "bf16.tf32.bf16"):
            one, other = (golden.instruction(chip, f"mvmul.{types}.{word}") for word in ("lofi", "phase0"))
            assert one is other


def test_a_sum_of_minus_one_unit_is_a_fault_of_wormhole() -> None:
    """c = -(1 + 2^-23), product 1: the sum is -2^-23, a unit of the exponent 0; Wormhole gives -2^4."""
    one, c = [0x3F80, *[0] * 15], 0xBF800001
    words = {chip: golden.instruction(chip, "mvmul.f32.bf16.bf16.lofi") for chip in CHIPS}
    found = {chip: ins.reference_dot(one, one, c) for chip, ins in words.items()}
    assert found == {"tensix_wormhole": 0xC1800000, "tensix_blackhole": 0xB4000000}
    assert all(int(ins.dot(one, one, c)) == found[chip] for chip, ins in words.items())


def test_a_block_format_is_refused_with_what_to_ask_for() -> None:
    with pytest.raises(UnknownNameError, match="the unpacker makes BF16 of each element"):
        golden.instruction("tensix_blackhole", "mvmul.f32.bfp8.bfp8.lofi")
