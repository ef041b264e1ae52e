"""Units of fixed-point numbers, `scale` with a power of two: against rationals, reference and circuit."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from circuits import outputs

import golden
from golden import stimuli
from golden.cover.coverage import Coverage
from golden.errors import SpecError
from golden.model.instruction import Instruction
from golden.model.reference import evaluate
from golden.program.words import step_text
from golden.vectors import default_set

EXAMPLE = Path(__file__).parents[3] / "spec" / "examples" / "q15_multiply.yaml"
ROUNDED = {
    "down": math.floor,
    "up": math.ceil,
    "toward_zero": math.trunc,
    "nearest_even": round,
    "nearest_up": lambda value: math.floor(value + Fraction(1, 2)),
    "nearest_away": lambda value: int(math.copysign(math.floor(abs(value) + Fraction(1, 2)), value)),
}


def load(folder: Path, *changes: tuple[str, str]) -> Instruction:
    text = EXAMPLE.read_text()
    for change, to in changes:
        assert change in text
        text = text.replace(change, to)
    (folder / "unit.yaml").write_text(text)
    return golden.load_instruction(folder / "unit.yaml")


def signed(code: int, bits: int) -> int:
    return code - (code >> (bits - 1) << bits)


def expected(value: Fraction, rounding: str, overflow: str, signed_result: bool, bits: int) -> int:
    whole = ROUNDED[rounding](value)
    if overflow == "saturate":
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed_result else (0, (1 << bits) - 1)
        whole = min(max(whole, low), high)
    return whole & ((1 << bits) - 1)


@pytest.mark.parametrize(("rounding", "overflow"), [*itertools.product(ROUNDED, ("wrap", "saturate"))])
def test_products_shifted_by_a_constant(rounding: str, overflow: str, tmp_path: Path) -> None:
    """Both models give the exact product times 2^power, rounded once."""
    for power, (d, bits) in itertools.product(
        (-15, -16, -1, 0, 3, -40), (("s16", 16), ("s32", 32), ("u8", 8))
    ):
        ins = load(
            tmp_path,
            ("power: -15", f"power: {power}"),
            ("nearest_up, overflow: saturate", f"{rounding}, overflow: {overflow}"),
            ("d: s16", f"d: {d}"),
        )
        operands = stimuli.generate(ins, "total_boundary", 24, np.random.default_rng(power & 7))
        codes = ins.dot(**operands).tolist()
        for a, b, code in zip(operands["a"][:, 0].tolist(), operands["b"][:, 0].tolist(), codes, strict=True):
            value = Fraction(signed(a, 16) * signed(b, 16)) * Fraction(2) ** power
            assert code == expected(value, rounding, overflow, d != "u8", bits), (power, d, a, b)
            assert code == evaluate(ins.program, ins.formats, [a], [b], 0)


def test_a_number_alone_that_is_cut(tmp_path: Path) -> None:
    """A rounder without b: (a + half) >> 5, ties to even, bits 12 to 5 of the sum."""
    ins = load(
        tmp_path,
        ("a: s16, b: s16, d: s16", "a: s16, d: s8"),
        ("multiply: {to: products}", "scale: {of: a, power: -5}"),
        ("scale: {of: products, power: -15}", "sum: {of: [a], to: total}"),
        (
            "products, rounding: nearest_up, overflow: saturate",
            "total, rounding: nearest_even, overflow: wrap",
        ),
    )
    operands = stimuli.generate(ins, "random_bits", 200, np.random.default_rng(1))
    operands["a"][:6, 0] = [0x7FFF, 0x8000, 0x0FF0, 0x8010, 0x0010, 0x0030]
    for a, d in zip(operands["a"][:, 0].tolist(), ins.dot(**operands).tolist(), strict=True):
        assert d == expected(Fraction(signed(a, 16), 32), "nearest_even", "wrap", True, 8), a
        assert d == evaluate(ins.program, ins.formats, [a], [0], 0)
    assert outputs(ins, operands, 200)["d"] == ins.dot(**operands).tolist()
    ties = stimuli.generate(ins, "total_boundary", 1000, np.random.default_rng(1))["a"][:, 0]
    assert min(np.count_nonzero((ties & 31 == 16) & (ties >> 15 == sign)) for sign in (0, 1)) > 20


def test_each_product_cut_before_the_sum(tmp_path: Path) -> None:
    """A chain of truncated products: each is shifted alone, and c is in the result's own format."""
    ins = load(
        tmp_path,
        ("shape: {k: 1}", "shape: {k: 3}"),
        ("formats: {a: s16, b: s16, d: s16}", "formats: {a: s16, b: s16, c: s32, d: s32}"),
        (
            "  - round: {of: products, rounding: nearest_up, overflow: saturate, zero: positive}",
            "  - round: {of: products, to: products, format: s32, rounding: down, overflow: wrap, "
            "zero: positive}\n"
            "  - sum: {of: [products, c], to: total}\n"
            "  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}",
        ),
    )
    operands = stimuli.generate(ins, "random_bits", 300, np.random.default_rng(1))
    for a, b, c, d in zip(
        *(operands[name].tolist() for name in "abc"), ins.dot(**operands).tolist(), strict=True
    ):
        total = signed(c, 32) + sum(signed(x, 16) * signed(y, 16) >> 15 for x, y in zip(a, b, strict=True))
        assert d == total % (1 << 32)


def test_c_is_shifted_to_the_left(tmp_path: Path) -> None:
    ins = load(
        tmp_path,
        ("formats: {a: s16, b: s16, d: s16}", "formats: {a: s16, b: s16, c: s16, d: s16}"),
        ("  - scale: {of: products, power: -15}\n", "  - scale: {of: c, power: 15}\n"),
        (
            "  - round: {of: products, ",
            "  - sum: {of: [products, c], to: total}\n  - scale: {of: total, power: -15}\n"
            "  - round: {of: total, ",
        ),
    )
    assert int(ins.dot([0x7FFF], [0x7FFF], 1)) == 0x7FFF
    assert int(ins.dot([0x8001], [0x4000], 1)) == (
        1 + math.floor(Fraction(-0x7FFF * 0x4000, 1 << 15) + Fraction(1, 2))
    ) % (1 << 16)


@pytest.mark.parametrize("of", ["products", "c", "[products, c]", "total"])
def test_floats_times_a_power_of_two(of: str, tmp_path: Path) -> None:
    """Aligned with others, zeros and subnormal numbers too: core, reference and circuit agree."""
    scale = f"  - scale: {{of: {of}, power: -9}}\n"
    (tmp_path / "unit.yaml").write_text(
        "unit: scaled\nshape: {k: 2}\nformats: {a: f16, b: f16, c: f32, d: f32}\nsteps:\n"
        "  - multiply: {to: products}\n  - special_values: {of: [products, c]}\n"
        + scale
        * (of != "total")
        + "  - align: {of: [products, c], fraction_bits: 24, rounding: toward_zero, floor: -126}\n"
        "  - sum: {of: [products, c], to: total}\n"
        + scale * (of == "total")
        + "  - round: {of: total, rounding: nearest_even, overflow: ieee, zero: signed}\n"
    )
    ins = golden.load_instruction(tmp_path / "unit.yaml")
    for kind in ("random_bits", "subnormal", "zeros", "alignment_edge", "special_values"):
        operands = stimuli.generate(ins, kind, 60, np.random.default_rng(4))
        results = ins.dot(**operands).tolist()
        rows = zip(*(operands[name].tolist() for name in "abc"), strict=True)
        assert results == [evaluate(ins.program, ins.formats, a, b, c) for a, b, c in rows], kind
        assert results == outputs(ins, operands, 60)["d"], kind


@pytest.mark.parametrize("overflow", ["wrap", "saturate"])
def test_the_circuit_is_the_same(overflow: str, tmp_path: Path) -> None:
    ins = load(tmp_path, ("overflow: saturate", f"overflow: {overflow}"))
    operands = stimuli.generate(ins, "total_boundary", 200, np.random.default_rng(2))
    assert outputs(ins, operands, 200)["d"] == ins.dot(**operands).tolist()


def test_vectors_stand_on_both_sides_of_half() -> None:
    """Ties of both signs and both ends of the range are among the default vectors."""
    ins = golden.load_instruction(EXAMPLE)
    coverage = Coverage(ins)
    coverage.sample_set(default_set(ins, 20_000, seed=1))
    assert not coverage.holes()
    assert any("sign and remainder" in point.name for point, *_ in coverage.bins())


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="block scales belong to products or groups"):
        load(tmp_path, ("{of: products, power: -15}", "{of: a}"))
    with pytest.raises(SpecError, match="overflow 'wrap' is for integer operands"):
        load(tmp_path, ("a: s16, b: s16", "a: f16, b: f16"), ("overflow: saturate", "overflow: wrap"))


def test_its_words() -> None:
    step = golden.load_instruction(EXAMPLE).program.operations[0].steps[1]
    assert step_text(step, integer=True) == "Multiply products by 2**-15, exact."
