"""Blocks of doubles against the general interpreter, the reference and exact rationals."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from changed_steps import ORDER, mutants, operands_for
from doubles_units import doubles_unit
from ieee import Ieee
from instruction_sets import instruction_sets
from long_run import long_after
from random_units import load

import golden
from golden import stimuli
from golden.errors import MmagoldError, SpecError
from golden.model.instruction import Instruction

EXAMPLES = Path(__file__).parents[3] / "spec" / "examples"
IN_DOUBLES = (
    "amx_bf16",
    "bf16_flush",
    "block_scaled",
    "exact_pair",
    "fixed_point",
    "ieee_tree",
    "late_c",
    "rdna3_dot2",
    "rdna4_dot4",
    "sticky_or",
    "sticky_rne",
)
UNITS, COUNT = 12, 40


def example(name: str) -> Instruction:
    return golden.load_instruction(EXAMPLES / f"{name}.yaml")


def drawn(first: int, units: int) -> list[tuple[str, Instruction]]:
    """Random units that the loader accepts and that run in doubles."""
    found: list[tuple[str, Instruction]] = []
    for seed in count(first):
        if len(found) == units:
            return found
        text = doubles_unit(seed)
        try:
            unit = load(text)
        except SpecError:
            continue
        if unit.engine.in_doubles and not unit.engine.fast:
            found.append((text, unit))
    return found


def check(unit: Instruction, operands: dict[str, Any], what: str) -> None:
    got, wanted = unit.engine.compute(operands, False), unit.engine.compute(operands, False, general=True)
    wrong = np.flatnonzero(got != wanted)
    shown = {name: codes[wrong[:1]].tolist() for name, codes in operands.items()}
    assert not wrong.size, f"{int(got[wrong[0]]):#x}, interpreter {int(wanted[wrong[0]]):#x}: {shown}\n{what}"


def test_the_programs_that_run_in_doubles() -> None:
    for name in IN_DOUBLES:
        unit = example(name)
        assert unit.engine.in_doubles and not unit.engine.fast, name
    for name in (
        "ieee_add",
        "ieee_multiply",
        "fma_modes",
        "ieee_fma_flags",
    ):  # the first has no b, the next no c
        assert all(unit.engine.in_doubles for unit in example(name).mode_units.values()), name
    for architecture, name in (
        ("sapphire_rapids", "vpdpwssds"),
        ("armv9", "bfmmla.4s"),
        ("armv9", "fdot.4s.f16"),
    ):
        assert golden.instruction(architecture, name).engine.in_doubles, name
    for architecture in ("cdna1", "cdna2"):
        assert golden.instruction(architecture, "v_mfma_f32_16x16x16f16").engine.in_doubles


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("seed", long_after(2, range(4)))
def test_random_units(seed: int, simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    for text, unit in drawn(1000 * seed, UNITS):
        for kind in stimuli.KINDS:
            try:
                operands = stimuli.generate(unit, kind, COUNT, np.random.default_rng(seed))
            except MmagoldError:  # a kind that this unit cannot have
                continue
            check(unit, operands, f"{kind}\n{text}")


def test_random_units_by_the_reference() -> None:
    for text, unit in drawn(50_000, 40):
        operands = stimuli.generate(unit, "random_bits", 4, np.random.default_rng(1))
        got = unit.engine.compute(operands, False)
        for i, d in enumerate(got):
            wanted = unit.reference_dot(**{name: codes[i] for name, codes in operands.items()})
            assert int(d) == wanted, f"{int(d):#x}, reference {wanted:#x}\n{text}"


@pytest.mark.parametrize(
    "name",
    [
        "amx_bf16",
        "ieee_tree",
        "late_c",
        "rdna4_dot4",
        "sticky_or",
        "exact_pair",
        "block_scaled",
        "fixed_point",
    ],
)
def test_no_field_of_a_step_is_overlooked(name: str) -> None:
    """Every field of every step changed: the unit has to leave the doubles, or to compute the change."""
    unit = example(name)
    operands = operands_for(unit, 1)
    for what, mutant in mutants(unit):
        codes = [operands.get(key) for key in ORDER]
        assert np.array_equal(mutant.engine.dots(*codes), mutant.engine.dots(*codes, general=True)), what


@pytest.mark.parametrize("simd", instruction_sets())
def test_a_common_sticky_bit_counts_once(simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three fraction bits of 1 + 2^-10 are 1 and a sticky bit, half a unit, whatever sums it passes."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    both = ["products", "c"]
    align = {"of": both, "fraction_bits": 3, "rounding": "toward_zero", "cut": "sticky_or"}
    unit = {"unit": "twice", "shape": {"k": 1}, "formats": dict.fromkeys("abcd", "f32")}
    unit["steps"] = [
        {"multiply": {"to": "products"}},
        {"special_values": {"of": both, "nan": 0x7FC00000}},
        {"align": align},
        {"sum": {"of": both, "to": "dot"}},
        {"sum": {"of": ["dot"], "to": "total"}},
        {"round": {"of": "total", "rounding": "nearest_even", "overflow": "ieee", "zero": "positive"}},
    ]
    one = np.array([0x3F800000], np.uint32)
    d = load(json.dumps(unit)).dot(one[None], one[None], golden.from_float("f32", np.array([2.0**-10])))
    assert golden.to_float("f32", d).tolist() == [1 + 2**-4]


NAN = 0x7FC00000
BOTH = ["products", "c"]
GROUPS, ALONE = {"group": {"contiguous": 2}}, {"group": {"contiguous": 1}}


def steps(*middle: dict[str, Any], last: str = "total") -> list[dict[str, Any]]:
    """Steps of a unit from exact products on to a rounding."""
    end = {"of": last, "rounding": "nearest_even", "overflow": "ieee", "zero": "positive", "nan": NAN}
    special = {"special_values": {"of": BOTH, "nan": NAN}}
    return [{"multiply": {"to": "products"}}, special, *middle, {"round": end}]


def align(*of: str, bits: Any, **more: Any) -> dict[str, Any]:
    return {"align": {"of": list(of), "fraction_bits": bits, "rounding": "toward_zero", **more}}


def summed(*of: str, to: str = "total", **more: Any) -> dict[str, Any]:
    return {"sum": {"of": list(of), "to": to, **more}}


ROUNDED = {"of": "partial", "to": "dot", "format": "f16", "rounding": "toward_zero", "overflow": "ieee"}
ROUNDED_PARTIAL = {"round": ROUNDED | {"zero": "positive", "nan": 0x7E00}}
FINITE_DOT = {"special_values": {"of": ["dot"], "nan": NAN}}
STICKY = align(*BOTH, bits=5, cut="sticky_or")
MEETS_C = (align("dot", "c", bits=20), summed("dot", "c"))
CANDIDATES = [
    {"of": "products", "exponent": "carried"},
    {"of": "c", "exponent": "carried", "plus": -30},
]
WOVEN: dict[str, list[dict[str, Any]]] = {
    "a sum of sums has the largest of their exponents": steps(
        summed("products", to="groups", exponent=3, **GROUPS), summed("groups", to="dot"), *MEETS_C
    ),
    "units of groups differ": steps(
        align("products", bits=10, **ALONE), summed("products", to="groups", **ALONE), summed("groups")
    ),
    "units of groups differ in one sum": steps(align("products", bits=10, **GROUPS), summed("products")),
    "units of candidates differ": steps(
        align(*BOTH, bits={"products": 40, "c": 10}, maximum=CANDIDATES), summed(*BOTH)
    ),
    "a sticky bit ends at its rounding": steps(
        STICKY,
        summed(*BOTH, to="partial"),
        ROUNDED_PARTIAL,
        FINITE_DOT,
        summed("dot"),
        summed("total", to="groups"),
        last="groups",
    ),
    "a sticky bit stays at its terms": steps(
        STICKY, summed(*BOTH, to="partial"), ROUNDED_PARTIAL, FINITE_DOT, summed("dot", "c")
    ),
}


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("a", ["e4m3", "f16"])
@pytest.mark.parametrize("what", WOVEN)
def test_steps_in_an_order_of_ones_own(what: str, a: str, simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alignments, sums and roundings that no shipped unit has one after the other."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    formats = {"a": a, "b": a, "c": "f32", "d": "f32"}
    text = json.dumps({"unit": "woven", "shape": {"k": 4}, "formats": formats, "steps": WOVEN[what]})
    unit = load(text)
    for kind in ("random_bits", "narrow", "cancelling", "deep_cancellation", "tie"):
        operands = stimuli.generate(unit, kind, 500, np.random.default_rng(1))
        check(unit, operands, f"{kind}\n{text}")


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("tiny", ["none", "unbounded", "subnormal_result", "before_rounding"])
def test_chains_at_the_least_normal_number(tiny: str, simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """c + a * b by exact rationals, in steps of 2^-153 around 2^-126: which of them count as subnormal."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    flush = {} if tiny == "none" else {"flush": "signed", "tiny": tiny}
    fma = {"to": "d", "start": "c", "rounding": "nearest_even", "nan": NAN, **flush}
    unit = {
        "unit": "chain",
        "shape": {"k": 1},
        "formats": dict.fromkeys("abcd", "f32"),
        "steps": [{"fma": fma}],
    }
    offsets, least, f32 = np.arange(-40, 41), Fraction(2) ** -126, Ieee("f32")
    a = golden.from_float("f32", offsets[:, None] * 2.0**-76)
    b, c = (golden.from_float("f32", np.full(offsets.size, x)) for x in (2.0**-77, 2.0**-126))
    got = load(json.dumps(unit)).dot(a, b[:, None], c)
    for offset, d in zip(offsets.tolist(), got.tolist(), strict=True):
        total = least + Fraction(offset, 2**153)
        wanted = f32.rounded(total, "nearest_even")
        at_least = {
            "none": True,
            "unbounded": total >= least - Fraction(1, 2**151),  # half a unit of what has 24 bits below
            "subnormal_result": wanted >= 0x0080_0000,
            "before_rounding": total >= least,
        }
        assert d == (wanted if at_least[tiny] else 0), (offset, hex(d))


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize(
    ("bias", "a", "b", "c", "wanted"),
    [
        (60, (1 + 2.0**-7) * 2.0**65, 2.0**65, -(2.0**130), 2.0**123),  # c above FP32's numbers
        (150, 2.0**-75, 2.0**-75, 2.0**-160, 2.0**-149),  # and below: it decides a tie
    ],
)
def test_a_chain_starts_from_what_fp32_does_not_hold(
    bias: int, a: float, b: float, c: float, wanted: float, simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    own = {"kind": "float", "storage": 32, "exponent_bits": 8, "fraction_bits": 23, "bias": bias}
    unit = {
        "unit": "chain",
        "shape": {"k": 1},
        "formats": {"a": "f32", "b": "f32", "c": "own", "d": "f32"},
        "define_formats": {"own": own | {"specials": "ieee"}},
        "steps": [{"fma": {"to": "d", "start": "c", "rounding": "nearest_even", "nan": NAN}}],
    }
    chain = load(json.dumps(unit))
    assert chain.engine.in_doubles and not chain.engine.fast
    x, y, z = (
        golden.from_float(chain.formats[name], np.array([v]))
        for name, v in zip("abc", (a, b, c), strict=True)
    )
    assert golden.to_float("f32", chain.dot(x[None], y[None], z)).tolist() == [wanted]


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("order", [[], ["a"], ["c"], ["b", "c", "a"], ["c", "b", "a"]], ids="".join)
@pytest.mark.parametrize("fmt", ["f16", "bf16", "f32"])
def test_nans_of_chains(fmt: str, order: list[str], simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """NaNs with payloads, quiet or not, and NaNs that numbers make, whose word may be a signalling one; with
    them the least normal number."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    rng = np.random.default_rng(len(order))
    for made in (NAN, 0xFFC00005, 0x7F800001, 0xFFBFFFFF):
        for start, flush in (("c", {"flush": "signed", "tiny": "unbounded"}), ("zero", {})):
            fma = {
                "to": "d",
                "start": start,
                "rounding": "nearest_even",
                "nan": made,
                "nan_order": order,
                **flush,
            }
            formats = {"a": fmt, "b": fmt, "c": "f32", "d": "f32"}
            unit = {"unit": "chain", "shape": {"k": 3}, "formats": formats, "steps": [{"fma": fma}]}
            chain, given = load(json.dumps(unit)), {}
            assert chain.engine.in_doubles or chain.engine.fast
            for name, shape in (("a", (2000, 3)), ("b", (2000, 3)), ("c", (2000,))):
                f = chain.formats[name]
                sign, top, least = 1 << f.bits - 1, f.infinity, 1 << f.fraction_bits
                quiet = least >> 1
                words = [0, sign, top, sign | top, f.bias << f.fraction_bits, least, sign | least, 1]
                nans = [top | 1, sign | top | 3, top | quiet, sign | top | quiet | 5]
                given[name] = rng.choice(np.array(words * 3 + nans, f.dtype), shape)
            check(chain, given, f"{made:#x} {start}")


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("of", [["c"], ["a", "c"]])
def test_a_chain_of_aligned_numbers(of: list[str], simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    formats = {"a": "bf16", "b": "bf16", "c": "f32", "d": "f32"}
    steps = [
        {"special_values": {"of": ["a", "b", "c"], "nan": NAN}},
        align(*of, bits=20),
        {"fma": {"to": "d", "start": "c", "rounding": "nearest_even", "nan": NAN}},
    ]
    text = json.dumps({"unit": "chain", "shape": {"k": 4}, "formats": formats, "steps": steps})
    for kind in ("random_bits", "narrow", "cancelling"):
        check(load(text), stimuli.generate(load(text), kind, 500, np.random.default_rng(1)), kind)


ALIGNED_FACTORS: dict[str, list[dict[str, Any]]] = {
    "alone": [align("a", bits=4)],
    "a floor": [align("a", bits=5, floor=1, rounding="nearest_even")],
    "with c": [align("a", "c", bits={"a": 4, "c": 9})],
    "groups": [align("a", bits=5, **GROUPS)],
}


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("what", ALIGNED_FACTORS)
def test_products_of_aligned_factors(
    what: str, normalize: bool, simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products have the exponents that their factors were aligned to, zeros too."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    product = {"to": "products", "normalize": True} if normalize else {"to": "products"}
    unit = {
        "unit": "factors",
        "shape": {"k": 5},
        "formats": {"a": "e4m3", "b": "e5m2", "c": "f32", "d": "f32"},
        "steps": [
            {"special_values": {"of": ["a", "b", "c"], "nan": NAN}},
            *ALIGNED_FACTORS[what],
            {"multiply": product},
            *steps(align(*BOTH, bits=20), summed(*BOTH))[1:],
        ],
    }
    factors = load(json.dumps(unit))
    assert factors.engine.in_doubles and not factors.engine.fast
    for kind in ("random_bits", "narrow", "cancelling", "tie"):
        operands = stimuli.generate(factors, kind, 300, np.random.default_rng(1))
        check(factors, operands, f"{kind}\n{json.dumps(unit)}")
        got = factors.engine.compute(operands, False)
        for i in range(20):
            dot = {name: codes[i] for name, codes in operands.items()}
            assert int(got[i]) == factors.reference_dot(**dot), f"{kind}: {dot}"


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("rounds", [1, 4])
def test_exponents_beyond_doubles(rounds: int, simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum at 2^300, two scales and candidates that add 40 each time: the maximum can be above 2^1023."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    wide = {"kind": "float", "storage": 8, "exponent_bits": 8, "fraction_bits": 0, "bias": -44}
    candidates = [
        {"of": "groups", "exponent": "carried", "plus": 40},
        {"of": "c", "exponent": "carried"},
    ]
    unit = {
        "unit": "high",
        "shape": {"k": 4},
        "define_formats": {"wide": wide | {"specials": "none", "signed": False}},
        "formats": dict.fromkeys("ab", "e4m3")
        | dict.fromkeys("cd", "f32")
        | {"scale_a": "wide", "scale_b": "wide"},
        "scale_block": 2,
        "steps": [
            {"multiply": {"to": "products"}},
            {"special_values": {"of": ["products", "c", "scales"], "nan": NAN}},
            summed("products", to="groups", exponent=300, **GROUPS),
            {"scale": {"of": "groups"}},
            *[align("groups", "c", bits=2, maximum=candidates)] * rounds,
            *steps(summed("groups", "c"))[2:],
        ],
    }
    high = load(json.dumps(unit))
    one, largest = np.full((1, 4), 0x38, np.uint8), np.full((1, 2), 0xFF, np.uint8)
    c = np.array([0x80000001], np.uint32)
    operands = {"a": one, "b": one, "c": c, "scale_a": largest, "scale_b": largest}
    wanted = high.reference_dot(**{name: codes[0] for name, codes in operands.items()})
    assert high.dot(**operands).tolist() == [wanted]
    for kind in ("random_bits", "narrow"):
        check(high, stimuli.generate(high, kind, 300, np.random.default_rng(1)), kind)


def power(rng: random.Random, low: int, high: int) -> float:
    return rng.choice((-1, 1)) * (1 + rng.getrandbits(7) / 128) * 2.0 ** rng.randint(low, high)


@pytest.mark.parametrize("simd", instruction_sets())
def test_three_terms_however_far_apart(simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two products of bf16 and c by exact rationals: terms that cancel, that lie hundreds of bits apart, and
    ties that the last bit of the least term decides."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    unit, rng, f32 = example("exact_pair"), random.Random(5), Ieee("f32")
    rows: list[tuple[list[float], list[float], float]] = []
    for i in range(1500):
        a, b = [power(rng, -60, 60) for _ in range(2)], [power(rng, -60, 60) for _ in range(2)]
        if i % 3 == 0:  # the second product is a fraction of an ulp of the first, c its tie
            b[1] = power(rng, -120, -100)
        products = [x * y for x, y in zip(a, b, strict=True)]
        c = (power(rng, -149, 127), -products[0], products[0] * 2.0 ** -rng.choice((24, 25, 15)))[i % 3]
        if i % 7 == 0:
            a[1], b[1] = -a[0], b[0]
        rows.append((a, b, float(np.float32(c))))
    bf16 = unit.formats["a"]
    a, b = (golden.from_float(bf16, np.array([row[j] for row in rows])) for j in (0, 1))
    c = golden.from_float(unit.formats["c"], np.array([row[2] for row in rows]))
    got = unit.dot(a, b, c)
    for i, d in enumerate(got):
        x, y = (golden.to_float(bf16, codes[i]) for codes in (a, b))
        terms = [Fraction(float(u)) * Fraction(float(v)) for u, v in zip(x, y, strict=True)]
        total = sum(terms, f32.value(int(c[i])))
        wanted = f32.rounded(total, "nearest_even") if total else 0
        assert int(d) == wanted, f"{int(d):#x}, wanted {wanted:#x}: {rows[i]}"


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("how", ["sum", "fma", "additions"])
def test_zeros_of_sums_that_round_down(how: str, simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """IEEE 754, 6.3: -0, but for +0 and +0."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    ieee = {"rounding": "down", "nan": 0x7E00}
    last = {"round": {"of": "total", "overflow": "ieee", "zero": "signed", **ieee}}
    total = {"sum": {"of": BOTH, "to": "total", "rounding": "down"}}
    added = {"sum": {"of": BOTH, "to": "d", "order": "sequential", "format": "f16", **ieee}}
    product = {"multiply": {"to": "products"}}
    unit = {
        "unit": "zeros",
        "shape": {"k": 1},
        "formats": dict.fromkeys("abcd", "f16"),
        "steps": {
            "sum": [product, {"special_values": {"of": BOTH, "nan": 0x7E00}}, total, last],
            "fma": [{"fma": {"to": "d", "start": "c", **ieee}}],
            "additions": [product, added],
        }[how],
    }
    zeros = load(json.dumps(unit))
    assert zeros.engine.in_doubles and not zeros.engine.fast
    plus, minus, one, least = 0x0000, 0x8000, 0x3C00, 0x0001
    for a, b, c, wanted in (
        (plus, plus, plus, plus),
        (plus, plus, minus, minus),
        (minus, plus, plus, minus),
        (minus, one, minus, minus),
        (minus, minus, plus, plus),
        (one, one, minus | one, minus),
        (minus | one, one, one, minus),
        (least, least, plus, plus),
        (minus | least, least, plus, minus | least),
    ):
        codes = [np.array([x], np.uint16) for x in (a, b, c)]
        d = int(zeros.dot(codes[0][None], codes[1][None], codes[2])[0])
        assert d == wanted, [hex(x) for x in (a, b, c, d)]


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("overflow", ["wrap", "saturate"])
@pytest.mark.parametrize("negate", ["none", "product", "c", "both"])
def test_integers(negate: str, overflow: str, simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of 64-bit integers in NumPy, the largest and least of each operand among them."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    unit = {
        "unit": "whole",
        "shape": {"k": 3},
        "formats": {"a": "s16", "b": "s16", "c": "s32", "d": "s32"},
        "steps": [
            {"multiply": {"to": "products", "negate": negate}},
            summed(*BOTH),
            {"round": {"of": "total", "rounding": "toward_zero", "overflow": overflow, "zero": "positive"}},
        ],
    }
    whole, rng = load(json.dumps(unit)), np.random.default_rng(3)
    assert whole.engine.in_doubles and not whole.engine.fast
    some = np.array([-(1 << 15), (1 << 15) - 1, -1, 0, 1, 12345], np.int64)
    a, b = (rng.choice(some, (3000, 3)) for _ in range(2))
    c = rng.choice(np.array([-(1 << 31), (1 << 31) - 1, 1 - (1 << 31), -1, 0, 1 << 30], np.int64), 3000)
    signs = (-1 if negate in ("product", "both") else 1, -1 if negate in ("c", "both") else 1)
    total = signs[0] * (a * b).sum(axis=1) + signs[1] * c
    wanted = np.clip(total, -(1 << 31), (1 << 31) - 1) if overflow == "saturate" else total
    got = whole.dot(*(x.astype(np.uint16) for x in (a, b)), c.astype(np.uint32))
    assert np.array_equal(got, wanted.astype(np.uint32))


@pytest.mark.parametrize("simd", instruction_sets())
def test_products_that_are_infinite(simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 2^3 on, not below; infinities of both signs that meet are a NaN."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    unit = {
        "unit": "infinite",
        "shape": {"k": 2},
        "formats": {"a": "f16", "b": "f16", "c": "f32", "d": "f32"},
    }
    unit["steps"] = steps(summed(*BOTH))
    unit["steps"][0]["multiply"]["overflow_exponent"] = 3
    infinite, inf = load(json.dumps(unit)), float("inf")
    assert infinite.engine.in_doubles and not infinite.engine.fast
    below = 4 - 2**-8
    rows = [
        ((4, 0), (2, 9), inf),
        ((-4, 0), (2, 9), -inf),
        ((below, 0), (2, 9), 2 * below),
        ((4, 4), (2, -2), None),
    ]
    rows += [((4, below), (2, -2), inf), ((below, below), (2, -2), 0.0), ((1, 2), (7.5, 1), 9.5)]
    a, b = (golden.from_float("f16", np.array([row[i] for row in rows])) for i in range(2))
    got = infinite.dot(a, b, np.zeros(len(rows), np.uint32))
    for row, code, d in zip(rows, got.tolist(), golden.to_float("f32", got).tolist(), strict=True):
        assert code == NAN if row[2] is None else d == row[2], row


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize(
    ("bits", "low", "bias", "specials"),
    [
        (8, 0, 127, "all_ones_nan"),
        (5, 2, 20, "all_ones_nan"),
        (8, 0, 100, "none"),
        (1, 3, -3, "all_ones_nan"),
    ],
)
def test_scales_that_are_powers_of_two(
    bits: int, low: int, bias: int, specials: str, simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every code of such a scale, times one: a power of two or the unit's NaN, what is ignored set or not."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    own = {"kind": "float", "storage": 8, "exponent_bits": bits, "fraction_bits": 0, "bias": bias}
    own |= {"specials": specials, "signed": False, "zero": False, "ignored_low": low}
    text = yaml.safe_load((EXAMPLES / "block_scaled.yaml").read_text("utf-8"))
    text["define_formats"]["own"], text["formats"]["scale_a"] = own, "own"
    unit = load(json.dumps(text))
    assert unit.engine.in_doubles and not unit.engine.fast
    codes = np.arange(1 << (bits + low), dtype=np.uint8)
    one = np.zeros((codes.size, 32), np.uint8)
    one[:, 0] = 11 << 3
    scales = np.stack([codes, np.zeros_like(codes)], axis=1)
    operands = {"a": one, "b": one, "c": np.zeros(codes.size, np.uint32), "scale_a": scales}
    operands["scale_b"] = np.full_like(scales, 127)
    check(unit, operands, f"{own}")
    for code, d in zip(codes.tolist(), unit.engine.compute(operands, False).tolist(), strict=True):
        exponent = (code >> low) - bias
        if specials == "all_ones_nan" and code >> low == (1 << bits) - 1:
            assert d == 0x7FFFFFFF, code
        else:
            wanted = np.float32(np.inf if exponent > 127 else 2.0**exponent)
            assert d == int(wanted.view(np.uint32)), (code, hex(d))


@pytest.mark.parametrize("simd", instruction_sets())
def test_a_group_of_zeros_has_no_exponent(simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen zeros of either sign with a scale far above the other group's, which would cut that one away;
    any one product that is not zero makes it, even the least, and of both signs that cancel."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    unit = example("block_scaled")
    cases: list[tuple[dict[int, int], dict[int, int], float]] = [({}, {}, 1.0), ({3: 0x80}, {3: 0x58}, 1.0)]
    negative = dict.fromkeys(range(16), 0x80)
    cases += [(negative, negative, 1.0)]
    least = 2.0**74  # the product of two least numbers, scaled
    cases += [({k: code}, {k: 1}, least - (code >> 7) * 2 * least) for k in (0, 7, 15) for code in (1, 0x81)]
    cases += [({1: 1, 2: 0x81}, {1: 1, 2: 1}, 0.0)]
    a, b = (np.zeros((len(cases), 32), np.uint8) for _ in range(2))
    a[:, 16] = b[:, 16] = 11 << 3
    for i, (of_a, of_b, _) in enumerate(cases):
        a[i, list(of_a)], b[i, list(of_b)] = list(of_a.values()), list(of_b.values())
    scales = np.tile(np.array([227, 127], np.uint8), (len(cases), 1))
    operands = {"a": a, "b": b, "c": np.zeros(len(cases), np.uint32), "scale_a": scales}
    operands["scale_b"] = np.full_like(scales, 127)
    check(unit, operands, "groups of zeros")
    got = golden.to_float("f32", unit.engine.compute(operands, False)).tolist()
    assert got == [wanted for _, _, wanted in cases]


E4M3 = {"kind": "float", "storage": 8, "exponent_bits": 4, "fraction_bits": 3, "bias": 7}


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize(
    ("own", "group", "flush"),
    [
        ({**E4M3, "specials": "none"}, {"contiguous": 5}, None),
        ({**E4M3, "specials": "all_ones_nan"}, {"interleaved": 4}, ["a", "b"]),
        ({**E4M3, "exponent_bits": 3, "fraction_bits": 4, "specials": "ieee"}, None, ["b"]),
        ({**E4M3, "bias": 68, "specials": "none"}, None, None),  # products below floats
        ({**E4M3, "bias": 61, "specials": "none"}, None, None),
        ({**E4M3, "bias": 5, "signed": False, "specials": "none"}, {"contiguous": 3}, None),
    ],
)
def test_exact_sums_of_small_products(
    own: dict[str, Any],
    group: dict[str, int] | None,
    flush: list[str] | None,
    simd: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Products that FP32 holds are summed exactly before c joins: any codes, zeros of both signs, NaNs and
    infinities, subnormal numbers that are flushed or not; sums that are zero keep the sign that they have."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    steps: list[dict[str, Any]] = [{"flush": {"of": flush, "sign": "signed"}}] if flush else []
    steps += [
        {"multiply": {"to": "products"}},
        {"special_values": {"of": ["products", "c"], "nan": 0x7FC00000}},
        {"sum": {"of": ["products"], "to": "groups", "exponent": 3, **({"group": group} if group else {})}},
        {"align": {"of": ["groups", "c"], "fraction_bits": 24, "rounding": "toward_zero", "floor": -80}},
        {"sum": {"of": ["groups", "c"], "to": "total"}},
        {"round": {"of": "total", "rounding": "nearest_even", "overflow": "infinity", "zero": "signed"}},
    ]
    formats = {"a": "own", "b": "own", "c": "f32", "d": "f32"}
    text = {"unit": "sums", "title": "sums", "shape": {"k": 13}, "formats": formats, "steps": steps}
    unit = load(json.dumps({**text, "define_formats": {"own": own}}))
    assert unit.engine.in_doubles and not unit.engine.fast
    rng, dots = np.random.default_rng(13), 1500
    a, b = (rng.integers(0, 256, (dots, 13), np.uint8) for _ in range(2))
    least = rng.choice(np.array([0, 0x80, 1, 0x81, 7, 0x87], np.uint8), (2, dots, 13))
    a[:500], b[500:1000] = least[0, :500], least[1, 500:1000]
    a[:80] &= 0x80
    if not own.get("signed", True):
        a, b = a & 0x7F, b & 0x7F
    c = golden.from_float("f32", rng.standard_normal(dots) * 2.0 ** rng.integers(-30, 12, dots))
    c[::3] = rng.choice(np.array([0, 1 << 31], np.uint32), c[::3].size)
    check(unit, {"a": a, "b": b, "c": c}, f"{own} {group} {flush}")


@pytest.mark.parametrize("k", [2, 4, 16])
def test_sums_as_wide_as_a_double_holds(k: int) -> None:
    """A sum of few digits and a c of one, as far below it as the alignment keeps: the rounding sees both,
    and a sum that a double would round runs elsewhere."""
    below = np.arange(20, 60, dtype=np.uint32)
    a = np.full((below.size, k), 0x3FF00000, np.uint32)  # 1.875, so that sums of products end early
    operands = {"a": a, "b": a, "c": (127 - below) << 23}
    in_doubles = []
    for bits in range(36, 56):
        steps: list[dict[str, Any]] = [
            {"multiply": {"to": "products"}},
            {"special_values": {"of": ["products", "c"], "nan": 0x7FC00000}},
            {"align": {"of": ["products", "c"], "fraction_bits": bits, "rounding": "toward_zero"}},
            {"sum": {"of": ["products"], "to": "partial"}},
            {"sum": {"of": ["partial", "c"], "to": "total"}},
            {"round": {"of": "total", "rounding": "up", "overflow": "ieee", "zero": "positive"}},
        ]
        formats = dict.fromkeys("abcd", "f32")
        text = yaml.safe_dump(
            {"unit": "wide", "shape": {"k": k}, "formats": formats, "steps": steps}, sort_keys=False
        )
        unit = load(text)
        in_doubles.append(unit.engine.in_doubles)
        check(unit, operands, text)
    assert True in in_doubles and False in in_doubles
    assert in_doubles == sorted(in_doubles, reverse=True), "narrow numbers fit, wide ones do not"
