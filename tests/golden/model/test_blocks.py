"""The block form against the general interpreter: units without a fast form, every kind of stimuli, every
instruction set; and sums whose terms lie so far apart that 62 bits do not hold them."""

from __future__ import annotations

import ctypes
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faulty_units import any_unit, faulty_unit
from instruction_sets import instruction_sets
from kernel_units import kernel_unit
from long_run import long_after
from random_units import accepted, load, random_unit, wide_unit

import golden
from golden import stimuli
from golden.errors import MmagoldError
from golden.model import engine
from golden.model.instruction import Instruction
from golden.program.program import Program

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "spec" / "examples").glob("*.yaml"))
COUNT = 25


def compared(unit: Instruction, operands: dict[str, Any]) -> str:
    """What differs, or nothing."""
    got, wanted = unit.engine.compute(operands, False), unit.engine.compute(operands, False, general=True)
    wrong = np.flatnonzero(got != wanted)
    shown = {name: codes[wrong[0]].tolist() for name, codes in operands.items()} if wrong.size else {}
    return f"{int(got[wrong[0]]):#x}, interpreter {int(wanted[wrong[0]]):#x}: {shown}" if wrong.size else ""


def drawn(unit: Instruction, seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for kind in stimuli.KINDS:
        try:
            yield kind, stimuli.generate(unit, kind, COUNT, np.random.default_rng(seed))
        except MmagoldError:  # a kind that this unit cannot have
            continue


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples(path: Path, simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    unit = golden.load_instruction(path).stateless
    for kind, operands in drawn(unit, 1):
        assert not compared(unit, operands), kind


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("seed", range(16))
def test_random_units(seed: int, simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    text, unit = accepted((random_unit, kernel_unit, any_unit, faulty_unit)[seed % 4], 7000 + seed)
    unit = unit.stateless
    for kind, operands in drawn(unit, seed):
        assert not compared(unit, operands), f"{kind}\n{text}"


WIDE = 2
"""MG_FITS_WIDE_BLOCK"""


def block_fit(unit: Instruction) -> int:
    """How many words the significands of a unit's blocks have; none: the interpreter runs it."""
    one = unit.engine_of_one
    assert isinstance(one, engine.Engine)
    fit: int = engine.library().mg_fits_block(ctypes.byref(one._program))
    return fit


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("seed", long_after(3, range(24)))
def test_random_wide_units(seed: int, simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of formats of 64 bits, in blocks of two words where the machine has vectors."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    text, unit = accepted(wide_unit, 9000 + seed)
    unit = unit.stateless
    for kind, operands in drawn(unit, seed):
        assert not compared(unit, operands), f"{kind}\n{text}"


WIDE_STEPS: list[dict[str, Any]] = [
    {"multiply": {"to": "products"}},
    {"sum": {"of": ["products", "c"], "to": "total"}},
    {"round": {"of": "total", "rounding": "nearest_even", "overflow": "infinity", "zero": "positive"}},
]


def wide(steps: list[dict[str, Any]], formats: dict[str, Any], **keys: Any) -> Instruction:
    return load(json.dumps({"unit": "w", "shape": {"k": 4}, "formats": formats, "steps": steps} | keys))


@pytest.mark.parametrize("simd", instruction_sets())
def test_which_units_have_blocks_of_two_words(simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Floats of 64 bits, except formats whose codes fill the word; no register of a width."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    here = 0 if simd == "portable" else WIDE
    assert block_fit(golden.load_instruction(ROOT / "bench" / "interpreted.yaml")) == here
    f64 = dict.fromkeys("abcd", "f64")
    assert block_fit(wide(WIDE_STEPS, f64)) == here
    assert block_fit(wide(WIDE_STEPS, dict.fromkeys("abcd", "f32"))) == 1
    held = {"sum": {"of": ["products", "c"], "to": "total", "exponent": 40, "width": 8}}
    assert block_fit(wide([WIDE_STEPS[0], held, WIDE_STEPS[2]], f64)) == 0
    own = {"kind": "float", "storage": 64, "exponent_bits": 11, "fraction_bits": 52, "bias": 1023}
    for specials, signed, fit in (("ieee", True, here), ("none", True, 0), ("none", False, 0)):
        one = own | {"specials": specials, "signed": signed}
        assert block_fit(wide(WIDE_STEPS, f64 | {"c": "own"}, define_formats={"own": one})) == fit, specials


@pytest.mark.parametrize("simd", instruction_sets())
def test_wide_sums_far_apart(simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of every distance, and c that cancels the largest but for its last bits."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    rng, count = np.random.default_rng(4), 3000
    unit = wide(WIDE_STEPS, dict.fromkeys("abcd", "f64"))
    a, b = (
        np.ldexp(rng.integers(1, 1 << 53, (count, 4)).astype(np.float64), rng.integers(-90, 30, (count, 4)))
        * rng.choice((-1, 0, 1), (count, 4), p=(0.4, 0.2, 0.4))
        for _ in range(2)
    )
    products = a * b
    largest = np.take_along_axis(products, np.abs(products).argmax(-1)[:, None], -1)[:, 0]
    c = -largest * (1 + rng.integers(-2, 3, count) * 2.0**-52)
    assert not compared(unit, {name: x.view(np.uint64) for name, x in (("a", a), ("b", b), ("c", c))})


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("name", ["v_mfma_f32_16x16x16f16", "v_mfma_f32_32x32x8f16"])
def test_exact_sums_far_apart(name: str, simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of every distance, and c that cancels the largest or lies below all of them."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    unit, rng, count = golden.instruction("cdna1", name), random.Random(3), 4000
    f16, f32 = unit.formats["a"], unit.formats["c"]

    def power(low: int, high: int) -> float:
        return rng.choice((-1, 1)) * (1 + rng.getrandbits(4) / 16) * 2.0 ** rng.randint(low, high)

    a = [[power(-24, 15) if rng.random() < 0.5 else 0.0 for _ in range(unit.k)] for _ in range(count)]
    b = [[power(-24, 15) for _ in range(unit.k)] for _ in range(count)]
    codes = {"a": golden.from_float(f16, np.array(a)), "b": golden.from_float(f16, np.array(b))}
    products = golden.to_float(f16, codes["a"]) * golden.to_float(f16, codes["b"])
    largest = np.take_along_axis(products, np.abs(products).argmax(-1)[:, None], -1)[:, 0]
    c = np.where(np.arange(count) % 2, -largest, [power(-149, 31) for _ in range(count)])
    assert not compared(unit, codes | {"c": golden.from_float(f32, c)})


@pytest.mark.parametrize("simd", instruction_sets())
def test_c_cancels_all_but_the_last_bit_of_a_long_sum(simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """2^30 - (2^30 - 2^-31): the sum of the products has 61 bits, and c leaves the last of them."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    unit = golden.instruction("cdna1", "v_mfma_f32_16x16x16f16")
    a, b = np.zeros((2, unit.k), np.uint16), np.zeros((2, unit.k), np.uint16)
    a[:, 0], b[:, 0], a[:, 2], b[:, 2] = 0xF800, 0x7800, 0x8, 0x1400
    codes = {"a": a, "b": b, "c": np.array([0x4E800000, 0x4E800001], np.uint32)}
    assert unit.engine.compute(codes, False)[0] == 0x30000000
    assert not compared(unit, codes)


def test_a_chain_of_more_operations_than_a_tile_holds() -> None:
    """32 sums of one product each, of steps that have the fast form."""
    unit = golden.instruction("hopper", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3")
    (one,) = unit.program.operations
    chain = [
        replace(one, k_index=(i,), seed=f"d.{i - 1}" if i else "c", to=f"d.{i}" if i < unit.k - 1 else "d")
        for i in range(unit.k)
    ]
    unit = replace(unit, program=Program(tuple(chain)))
    for kind, operands in drawn(unit, 1):
        assert not compared(unit, operands), kind


@pytest.mark.parametrize("rounding", ["nearest_even", "toward_zero", "down", "up"])
@pytest.mark.parametrize("fmt", ["f32", "f64"])
@pytest.mark.parametrize("simd", instruction_sets())
def test_multiply_adds_round_as_requested(
    simd: str, fmt: str, rounding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chains on the host's own multiply-add, in a set rounding mode, against the reference: with overflow,
    zeros that cancel, subnormal results and NaNs."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    nan = {"f32": 0x7FC00000, "f64": 0x7FF8000000000000}[fmt]
    formats = dict.fromkeys("abcd", fmt)
    step = {"to": "d", "rounding": rounding, "nan": nan, "nan_order": ["b", "c", "a"]}
    own = load(json.dumps({"unit": "w", "shape": {"k": 3}, "formats": formats, "steps": [{"fma": step}]}))
    assert own.engine_of_one.fast
    for kind, operands in drawn(own, 2):
        assert not compared(own, operands), kind


ROUNDED = {"order": "sequential", "rounding": "nearest_even"}
GROUPS_AND_C: list[dict[str, Any]] = [
    {"sum": {"of": ["groups", "c"], "to": "total"}},
    {"round": {"of": "total", "rounding": "nearest_even", "overflow": "infinity", "zero": "positive"}},
]


@pytest.mark.parametrize("c", ["f32", "f64"])
@pytest.mark.parametrize("simd", instruction_sets())
def test_a_sum_of_one_nan_hands_it_on(simd: str, c: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is added there, and the payload is that of the term."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    unit = {"unit": "one_term", "shape": {"k": 3}, "formats": {"a": "e4m3", "b": "e4m3", "c": c, "d": "bf16"}}
    unit["steps"] = [
        {"multiply": {"to": "products"}},
        {"sum": {"of": "products", "to": "groups", "format": "e4m3"} | ROUNDED},
        {"sum": {"of": "groups", "to": "d", "first_nan": True} | ROUNDED},
    ]
    own = load(json.dumps(unit))
    for kind, operands in drawn(own, 4):
        assert not compared(own, operands), kind


@pytest.mark.parametrize("simd", instruction_sets())
def test_elements_are_flushed_after_they_were_multiplied(simd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products are of the elements as they were."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    formats = {"a": "e4m3", "b": "e4m3", "c": "f32", "d": "f32"}
    for order in (["flush", "multiply"], ["multiply", "flush"]):
        steps: dict[str, Any] = {
            "flush": {"of": ["a", "b"], "sign": "signed"},
            "multiply": {"to": "products"},
        }
        rest = [
            {"special_values": {"of": ["products", "c"], "nan": 0x7FC00000}},
            {"sum": {"of": "products", "to": "groups", "group": {"contiguous": 2}, "exponent": 0}},
            *GROUPS_AND_C,
        ]
        unit = {"unit": "flushed", "shape": {"k": 4}, "formats": formats}
        own = load(json.dumps(unit | {"steps": [{name: steps[name]} for name in order] + rest}))
        assert own.engine_of_one.in_doubles
        for kind, operands in drawn(own, 5):
            assert not compared(own, operands), (order, kind)


def about(rng: np.random.Generator, shape: tuple[int, ...], exponent: int) -> Any:
    """Codes of f32 of either sign with this exponent field or one next to it, many at the fraction's ends."""
    fraction = rng.integers(0, 1 << 23, shape)
    ends = rng.choice([0, 1, (1 << 23) - 2, (1 << 23) - 1], shape)
    fraction = np.where(rng.random(shape) < 0.5, ends, fraction)
    field = exponent + rng.integers(-1, 2, shape)
    return (rng.integers(0, 2, shape) << 31 | field << 23 | fraction).astype(np.uint32)


@pytest.mark.parametrize("tiny", ["unbounded", "subnormal_result", "before_rounding"])
@pytest.mark.parametrize("simd", instruction_sets())
def test_chains_at_the_least_normal_number(simd: str, tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of these sums round up to it, which the rules of flushing see in different ways."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    rng = np.random.default_rng(7)
    for start, k in (("c", 1), ("zero", 1), ("c", 2), ("zero", 5)):
        fma = {"to": "d", "start": start, "rounding": "nearest_even", "flush": "signed", "tiny": tiny}
        unit = {"unit": "chain", "shape": {"k": k}, "formats": dict.fromkeys("abcd", "f32")}
        own = load(json.dumps(unit | {"steps": [{"fma": fma | {"nan": 0x7FC00000}}]}))
        a, c = about(rng, (3000, k), 64), about(rng, (3000,), 1)
        # products within three half ulps of the least normal number
        size = (
            2.0**-126
            * (1 + rng.integers(-3, 4, a.shape) * 2.0**-25)
            / np.abs(a.view(np.float32), dtype=float)
        )
        b = np.where(
            rng.random(a.shape) < 0.7, size.astype(np.float32).view(np.uint32), about(rng, a.shape, 64)
        )
        assert not compared(
            own, {"a": a, "b": b, "c": np.where(rng.random(3000) < 0.5, 0, c).astype(np.uint32)}
        )


@pytest.mark.parametrize(("near", "far"), [(-20, 127), (-60, 127), (60, -12), (40, 40)])
@pytest.mark.parametrize("simd", instruction_sets())
def test_formats_whose_powers_of_two_lie_far_apart(
    simd: str, near: int, far: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of which is FP16's but for its bias, and the other is not, or is, too."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    for exponent_bits, storage in ((3, 8), (5, 16)):
        formats = {
            "first": {"exponent_bits": 5, "fraction_bits": 10, "bias": near, "storage": 16},
            "second": {"exponent_bits": exponent_bits, "fraction_bits": 3, "bias": far, "storage": storage},
        }
        unit = {
            "unit": "far_apart",
            "shape": {"k": 2},
            "define_formats": {
                name: {"kind": "float", "specials": "ieee"} | fields for name, fields in formats.items()
            },
            "formats": {"a": "first", "b": "second", "c": "f32", "d": "f32"},
            "steps": [
                {"multiply": {"to": "products"}},
                {"special_values": {"of": ["products", "c"], "nan": 0x7FC00000}},
                {"sum": {"of": "products", "to": "groups"}},
                *GROUPS_AND_C,
            ],
        }
        own = load(json.dumps(unit))
        for kind, operands in drawn(own, 6):
            assert not compared(own, operands), (exponent_bits, kind)


@pytest.mark.parametrize("k", [4, 33, 65])
@pytest.mark.parametrize("simd", instruction_sets())
def test_batches_of_many_dimensions(simd: str, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In lanes, some of whose dimensions repeat, run backwards or have one entry."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    rng = np.random.default_rng(8)
    for cut in ("dropped", "sticky_or"):  # the fast form, and blocks
        of = ["products", "c"]
        unit = {
            "unit": "batches",
            "shape": {"k": k},
            "formats": {"a": "f16", "b": "f16", "c": "f32", "d": "f32"},
        }
        unit["steps"] = [
            {"multiply": {"to": "products"}},
            {"special_values": {"of": of, "nan": 0x7FC00000}},
            {"align": {"of": of, "fraction_bits": 24, "rounding": "toward_zero", "cut": cut}},
            {"sum": {"of": of, "to": "total"}},
            {"round": {"of": "total", "rounding": "toward_zero", "overflow": "infinity", "zero": "positive"}},
        ]
        own = load(json.dumps(unit))
        a = rng.integers(0, 1 << 16, (3, 1, 5, 1, k), np.uint64).astype(np.uint16)[::-1, :, ::2]
        b = rng.integers(0, 1 << 16, (1, 4, 1, 7, k), np.uint64).astype(np.uint16)[:, :, :, ::-1]
        c = rng.integers(0, 1 << 32, (3, 4, 3, 7), np.uint64).astype(np.uint32).transpose(0, 1, 3, 2)
        c = c.reshape(3, 4, 7, 3).swapaxes(2, 3)
        wide = {
            "a": np.broadcast_to(a, (3, 4, 3, 7, k)).reshape(-1, k),
            "b": np.broadcast_to(b, (3, 4, 3, 7, k)).reshape(-1, k),
            "c": c.reshape(-1),
        }
        wanted = own.engine.compute(wide, False, general=True)
        assert np.array_equal(own.dot(a, b, c).reshape(-1), wanted)


LAYOUTS = {
    "in a run": lambda codes: codes,
    "with gaps": lambda codes: np.repeat(codes, 3, axis=0)[::3],
    "a little apart": lambda codes: np.concatenate([codes, codes[:, :1]], axis=1)[:, :-1],
    "backwards": lambda codes: codes[::-1].copy()[::-1],
    "elements backwards": lambda codes: codes[:, ::-1].copy()[:, ::-1],
    "by columns": np.asfortranarray,
    "at an odd address": lambda codes: (
        np.frombuffer(b"\0" + codes.tobytes(), np.uint8)[1:].view(codes.dtype).reshape(codes.shape)
    ),
    "all one": lambda codes: np.broadcast_to(codes[:1], codes.shape),
}
"""Ways in which the elements of dot products lie in memory. The last changes them."""


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fmt", long_after(2, ["e4m3", "f16", "f64", "f32"]))
@pytest.mark.parametrize("simd", instruction_sets())
def test_wherever_operands_lie(simd: str, fmt: str, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of every length that is brought side by side in a way of its own, some of them in blocks that are
    not full, and in every form."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    rng, of = np.random.default_rng(1), ["products", "c"]
    for k in (*range(1, 10), 15, 16, 17, 33):
        for cut, rounding in (("dropped", "toward_zero"), ("sticky_or", "down"), ("dropped", "down")):
            unit = {
                "unit": "laid_out",
                "shape": {"k": k},
                "formats": {"a": fmt, "b": fmt, "c": "f32", "d": "f32"},
            }
            unit["steps"] = [
                {"multiply": {"to": "products"}},
                {"special_values": {"of": of, "nan": 0x7FC00000}},
                {"align": {"of": of, "fraction_bits": 24, "rounding": "toward_zero", "cut": cut}},
                {"sum": {"of": of, "to": "total"} | ({"rounding": "down"} if rounding == "down" else {})},
                {"round": {"of": "total", "rounding": rounding, "overflow": "infinity", "zero": "positive"}},
            ]
            own = load(json.dumps(unit))
            for count in (1, 16, 31, 131):
                kept = {
                    name: rng.integers(0, 1 << own.formats[name].bits, (count, k), np.uint64).astype(
                        own.formats[name].dtype
                    )
                    for name in "ab"
                }
                given = {name: LAYOUTS[layout](codes) for name, codes in kept.items()}
                c = rng.integers(0, 1 << 32, (count, 1), np.uint64).astype(np.uint32)
                given["c"], kept["c"] = LAYOUTS[layout](c)[:, 0], c[:, 0]
                got = own.engine.compute(given, False)
                wanted = own.engine.compute(
                    {name: codes.copy() for name, codes in given.items()}, False, general=True
                )
                assert np.array_equal(got, wanted), (k, cut, rounding, count)
