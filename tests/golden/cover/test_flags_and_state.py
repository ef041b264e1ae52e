"""Functional coverage of status flags and of units that keep their accumulator: the bins that count are those
that small units reach when everything is tried."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import golden
from golden import yamlfile
from golden.catalog.unit_files import build_instruction
from golden.cover.coverage import Coverage, load, merged, save, until_covered
from golden.cover.page import page
from golden.cover.points.classes import classify
from golden.errors import OperandError
from golden.model.instruction import Instruction
from golden.model.registers import decode
from golden.program.flags import flags_text
from golden.vectors.vectorset import default_set

EXAMPLES = Path(__file__).parents[3] / "spec" / "examples"
FLAGS = "flags: [inexact, underflow, overflow, invalid]\n"
FUSED = """
  - multiply: {to: products}
  - special_values: {of: [products, c], nan: 0x7F}
  - align: {of: [products, c], fraction_bits: 8, rounding: toward_zero}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: toward_zero, overflow: infinity, zero: positive}
"""
SUM = "  - sum: {of: [products, c], to: total}\n"
INTEGER = """
  - multiply: {{to: products}}
  - sum: {{of: [products, c], to: total}}
  - round: {{of: total, rounding: toward_zero, overflow: {}, zero: positive}}
"""


def unit(text: str) -> Instruction:
    return build_instruction(yamlfile.parse("unit: mine\n" + text))


def bins_of(ins: Instruction, name: str) -> set[str]:
    """The bins that count."""
    (point,) = (point for point in Coverage(ins).points if point.name == name)
    return {label for label, reach in point.bins.items() if reach}


# Status flags -----------------------------------------------------------------------------------------------

ROUND = "rounding: {}, overflow: {}, zero: signed, tiny: {}"
PRODUCTS = "shape: {{k: 1}}\nformats: {{a: {a}, b: {b}, d: {d}}}\n" + FLAGS
MULTIPLIERS = {
    "narrow result": ("e4m3", "e4m3", "e5m2", "nearest_even", "ieee", "unbounded", ""),
    "toward zero": ("e5m2", "e5m2", "e5m2", "toward_zero", "ieee", "before_rounding", ""),
    "up": ("e5m2", "e4m3", "e5m2", "up", "ieee", "subnormal_result", ""),
    "flushed": ("e5m2", "e5m2", "e5m2", "nearest_even", "ieee", "unbounded", ", flush: signed"),
    "exact": ("e4m3", "e4m3", "f32", "nearest_even", "ieee", "unbounded", ""),
    "never too small": ("e2m1", "e2m1", "e5m2", "down", "ieee", "unbounded", ""),
    "never too large": ("e2m1", "e5m2", "f32", "nearest_even", "ieee", "unbounded", ""),
}


def every_pair(ins: Instruction) -> dict[str, np.ndarray]:
    a, b = (np.arange(1 << ins.formats[name].bits, dtype=np.uint8) for name in "ab")
    return {"a": np.repeat(a, len(b))[:, None], "b": np.tile(b, len(a))[:, None]}


@pytest.mark.parametrize("name", MULTIPLIERS)
def test_flags_that_come_together_are_those_that_all_operands_raise(name: str) -> None:
    """Of a multiplier every pair of codes is tried: the bins that count are hit, and no other."""
    a, b, d, rounding, overflow, tiny, flush = MULTIPLIERS[name]
    steps = (
        f"  - multiply: {{to: products}}\n  - round: {{of: products, {ROUND.format(rounding, overflow, tiny)}"
    )
    ins = unit(PRODUCTS.format(a=a, b=b, d=d) + f"steps:\n{steps}{flush}}}\n")
    operands = every_pair(ins)
    seen = {flags_text(ins.status, code) for code in np.unique(ins.flags(**operands)).tolist()}
    assert bins_of(ins, "flags raised together") == seen
    coverage = Coverage(ins)
    coverage.sample(operands, ins.dot(**operands))
    reported = [hole for hole in coverage.holes() + coverage.surprises() if "flag" in hole[0]]
    assert reported == []
    for flag in ins.status:
        raised = any(flag in label for label in seen)
        assert bins_of(ins, f"flag {flag}") == {"not raised"} | ({"raised"} if raised else set())


def test_an_integer_result_overflows_and_is_never_tiny() -> None:
    text = "shape: {k: 1}\nformats: {a: e4m3, b: e4m3, d: s8}\n" + FLAGS
    ins = unit(text + "steps:" + INTEGER.format("saturate").replace(SUM, "").replace("total", "products"))
    operands = every_pair(ins)
    seen = {flags_text(ins.status, code) for code in np.unique(ins.flags(**operands)).tolist()}
    assert bins_of(ins, "flags raised together") == seen
    assert seen == {"none", "inexact", "inexact, overflow", "invalid"}


def test_one_rounding_raises_one_set_and_several_any() -> None:
    head = "shape: {k: 2}\nformats: {a: f16, b: f16, c: f16, d: f16}\n" + FLAGS + "steps:\n"
    chain = unit(head + "  - fma: {to: d, rounding: nearest_even, tiny: unbounded}\n")
    single = unit(
        head.replace("k: 2", "k: 1") + "  - fma: {to: d, rounding: nearest_even, tiny: unbounded}\n"
    )
    assert "inexact, invalid" in bins_of(chain, "flags raised together")
    assert "inexact, invalid" not in bins_of(single, "flags raised together")
    for ins in (chain, single):
        for name in ("overflow", "underflow"):
            assert name not in bins_of(ins, "flags raised together"), "it is inexact as well"
        coverage = Coverage(ins)
        for _ in until_covered(ins, most=200_000, coverage=coverage):
            pass
        assert coverage.holes() == [] and coverage.surprises() == []


def test_flags_of_a_sample_are_those_of_its_operands(tmp_path: Path) -> None:
    """Each mode has its own; saved, merged and shown like the others."""
    ins = golden.load_instruction(EXAMPLES / "ieee_fma_flags.yaml")
    parts = []
    for seed in (1, 2):
        parts.append(Coverage(ins))
        vectors = default_set(ins, 600, seed)
        parts[-1].sample_set(vectors)
        here = vectors.operands["mode"] == 1
        inexact = int((vectors.flags[here] & 1).sum()) if vectors.flags is not None else 0
        name = "rnd toward_zero: flag inexact"
        assert parts[-1].hits[name].tolist() == [here.sum() - inexact, inexact]
    save(parts, tmp_path / "runs.json")
    (both,) = merged(load(tmp_path / "runs.json", [ins]))
    assert (both.hits[name] == parts[0].hits[name] + parts[1].hits[name]).all()
    assert "rnd toward_zero: flags raised together" in page([both]) and "Status flags" in page([both])


# Units that keep their accumulator --------------------------------------------------------------------------


def test_sequences_are_counted_as_they_follow_one_another() -> None:
    ins = golden.load_instruction(EXAMPLES / "accumulator.yaml")
    coverage = Coverage(ins)
    clear = np.array([1, 0, 0, 1, 1, 0] + [0] * 8, np.uint8)
    operands = {name: np.full((len(clear), 4), 0x3C00, np.uint16) for name in "ab"} | {"clear": clear}
    coverage.sample(operands, ins.dot(**operands))

    def seen(name: str) -> dict[str, int]:
        (point,) = (point for point in coverage.points if point.name == name)
        return {label: n for label, n in zip(point.labels, coverage.hits[name].tolist(), strict=True) if n}

    assert seen("clear") == {"unset": 11, "set": 3}
    assert seen("dot products since clear") == {"1": 3, "2": 2, "3..8": 7, "9 or more": 2}
    assert seen("clear of two dot products in a row") == {
        "no clear, no clear": 9,
        "no clear, clear": 1,
        "clear, no clear": 2,
        "clear, clear": 1,
    }
    assert seen("class of what clear forgets") == {"normal": 2}
    assert ("class of what clear forgets", "NaN") in coverage.holes()


def test_sequences_are_whole_whatever_is_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    ins = golden.load_instruction(EXAMPLES / "accumulator.yaml")
    whole, parts = Coverage(ins), Coverage(ins)
    vectors = default_set(ins, 700)
    whole.sample_set(vectors)
    monkeypatch.setattr("golden.cover.coverage._CHUNK", 7)
    parts.sample_set(vectors)
    assert all((whole.hits[name] == hits).all() for name, hits in parts.hits.items())


def held_codes(ins: Instruction) -> np.ndarray:
    """All that a unit can hold: dot products of all its operands from +0 on, until nothing new comes."""
    a, b = every_pair(ins)["a"], every_pair(ins)["b"]
    held, found = np.zeros(1, np.uint8), np.zeros(0, np.uint8)
    while len(held) > len(found):
        found = held
        c = np.repeat(found, len(a))
        ways = [{}] if ins.modes is None else [{"mode": code} for code, _ in ins.modes.codes()]
        made = [
            ins.stateless.dot(np.tile(a, (len(found), 1)), np.tile(b, (len(found), 1)), c, **way)
            for way in ways
        ]
        held = np.union1d(found, np.concatenate(made))
    return held


STATE = "shape: {k: 1}\naccumulator: state\n"
KEEPING = {
    "fused": "formats: {a: e2m1, b: e5m2, d: e5m2}\nsteps:" + FUSED,
    "no special operands": "formats: {a: e2m1, b: e2m1, d: e5m2}\nsteps:" + FUSED,
    "fma": "formats: {a: e2m1, b: e5m2, d: e5m2}\nsteps:\n  - fma: {to: d, rounding: nearest_even}\n",
    "down": "formats: {a: e2m1, b: e4m3, d: e5m2}\nsteps:\n  - fma: {to: d, rounding: down}\n",
    "modes": "modes: {op: [none, null, c]}\nformats: {a: e2m1, b: e2m1, d: e5m2}\nsteps:"
    + FUSED.replace("{to: products}", "{to: products, negate: $op}").replace(
        "zero: positive", "zero: signed"
    ),
    "wraps": "formats: {a: s4, b: s4, d: s8}\nsteps:" + INTEGER.format("wrap"),
    "positive": "formats: {a: u4, b: u4, d: s8}\nsteps:" + INTEGER.format("saturate"),
    "rounded sums": "formats: {a: s4, b: s4, d: s8}\nsteps:\n  - multiply: {to: products}\n"
    "  - sum: {of: [products, c], to: d, order: sequential, rounding: toward_zero}\n",
}


@pytest.mark.parametrize("name", KEEPING)
def test_c_is_what_the_unit_can_hold(name: str) -> None:
    """Small units, every operand and every order: the classes of c that count are those that come."""
    ins = unit(STATE + KEEPING[name])
    codes, fmt = held_codes(ins)[:, None], ins.formats["d"]
    (labels,) = {point.labels for point in Coverage(ins).points if point.name.endswith("class of c")}
    found = {labels[i] for i in classify(fmt, decode(fmt, codes), codes).ravel().tolist()}
    for point in Coverage(ins).points:
        if point.name.endswith("class of c"):
            assert {label for label, reach in point.bins.items() if reach} == found


@pytest.mark.long
def test_until_covered_ends_for_a_unit_that_keeps_its_accumulator() -> None:
    ins = golden.load_instruction(EXAMPLES / "accumulator.yaml")
    coverage = Coverage(ins)
    drawn = sum(len(vectors) for vectors in until_covered(ins, coverage=coverage))
    assert drawn < 200_000 and coverage.holes() == [] and coverage.surprises() == []
    assert "clear of two dot products in a row" in page([coverage])
    assert bins_of(ins, "class of c") == {"+0", "normal", "infinity", "negative infinity", "quiet NaN"}
    assert "largest" in bins_of(ins.stateless, "class of c"), "as an operand it is any code"


def test_what_a_wide_accumulator_needs_many_dot_products_for_stays_a_hole() -> None:
    """A register of 32 bits is filled by 2**17 products of bytes: seldom drawn, but a unit meets them."""
    text = STATE + KEEPING["wraps"].replace("s4", "s8").replace("d: s8", "d: s32")
    coverage = Coverage(unit(text))
    coverage.sample_set(default_set(coverage.instruction, 20_000))
    assert ("class of d", "largest") in coverage.holes() and ("class of c", "least") in coverage.holes()


def test_coverage_of_sequences_merges_with_its_own_alone(tmp_path: Path) -> None:
    ins = golden.load_instruction(EXAMPLES / "accumulator.yaml")
    parts = []
    for seed in (1, 2):
        parts.append(Coverage(ins))
        parts[-1].sample_set(default_set(ins, 300, seed))
    save(parts, tmp_path / "runs.json")
    (both,) = merged(load(tmp_path / "runs.json", [ins]))
    name = "dot products since clear"
    assert both.hits[name].tolist() == (parts[0].hits[name] + parts[1].hits[name]).tolist()
    assert both.hits[name].sum() == 600
    with pytest.raises(OperandError, match="does not merge"):
        both.merge(Coverage(ins.stateless))


def test_two_codes_of_one_meaning_are_two_modes() -> None:
    """As a field of operations has them, of which the unit decodes some alike."""
    shape = "shape: {k: 1}\nformats: {a: s8, b: s8, c: s16, d: s16}\n"
    shape += "modes: {op: [none, product, none, product]}\n"
    steps = INTEGER.format("wrap").replace("{to: products}", "{to: products, negate: $op}")
    ins = unit(f"{shape}steps:{steps}")
    counted = Coverage(ins)
    vectors = default_set(ins, 2000, 1)
    counted.sample_set(vectors)
    assert ins.modes is not None
    assert list(ins.modes.texts().values())[:2] == ["op none (code 0x0)", "op product (code 0x1)"]
    assert counted.hits["mode"].tolist() == np.bincount(vectors.operands["mode"], minlength=4).tolist()
