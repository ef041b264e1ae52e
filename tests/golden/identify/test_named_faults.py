"""Usual faults of single operations are named: each planted in float64 or in whole numbers, which hold every
product and sum of two f16 numbers, never in the model's own steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from golden import yamlfile
from golden.catalog import unit_files
from golden.identify.diagnosis import Diagnosis, diagnose
from golden.model.instruction import Instruction
from golden.vectors.vectorset import default_set

Array = Any
NAN = 0x7E00
ROUNDED = "{{of: {of}, rounding: nearest_even, overflow: ieee, zero: signed{more}}}"


def built(formats: str, *steps: str, k: int = 1) -> Instruction:
    lines = "".join(f"  - {step}\n" for step in steps)
    return unit_files.build_instruction(
        yamlfile.parse(f"unit: one\nshape: {{k: {k}}}\nformats: {{{formats}}}\nsteps:\n{lines}")
    )


def adder() -> Instruction:
    special, total = f"special_values: {{of: [a, c], nan: {NAN}}}", "sum: {of: [a, c], to: total}"
    return built("a: f16, c: f16, d: f16", special, total, "round: " + ROUNDED.format(of="total", more=""))


def multiplier(more: str = "", before: tuple[str, ...] = ()) -> Instruction:
    steps = ("multiply: {to: products}", f"special_values: {{of: products, nan: {NAN}}}")
    return built(
        "a: f16, b: f16, d: f16", *before, *steps, "round: " + ROUNDED.format(of="products", more=more)
    )


def converter() -> Instruction:
    last = ROUNDED.format(of="a", more=f", format: f16, nan: {NAN}")
    return built("a: f32, d: f16", f"round: {last}")


def dot4() -> Instruction:
    steps = ("multiply: {to: products}", "sum: {of: [products, c], to: total}")
    last = "round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}"
    return built("a: s8, b: s8, c: s32, d: s32", *steps, last, k=4)


def value(codes: Array) -> Array:
    return codes.reshape(len(codes)).view(np.float16).astype(np.float64)


def code(values: Array) -> Array:
    with np.errstate(all="ignore"):
        found = values.astype(np.float16)
    return np.where(np.isnan(found), NAN, found.view(np.uint16)).astype(np.uint16)


def exponent(codes: Array) -> Array:
    return codes >> 10 & 31


def zero(codes: Array) -> Array:
    return codes & 0x7FFF == 0


def subnormal(codes: Array) -> Array:
    return (exponent(codes) == 0) & ~zero(codes)


def as_normal(codes: Array, zeros: bool) -> Array:
    """The hidden bit at exponent field 0, 2^-15."""
    one = (1 + (codes & 1023) / 1024) * 2.0**-15 * np.where(codes >> 15, -1, 1)
    return np.where((exponent(codes) == 0) & (zeros | ~zero(codes)), one, value(codes))


def product(a: Array, b: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return code(value(a) * value(b))


def b_as_normal(a: Array, b: Array) -> Array:
    a, b = a[:, 0], b[:, 0]
    with np.errstate(invalid="ignore"):
        found = code(value(a) * as_normal(b, zeros=True))
    invalid = zero(b) & (exponent(a) == 31)  # the test for 0 times infinity sees the code
    return np.where(invalid, NAN, found).astype(np.uint16)


def both_as_normal(a: Array, c: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return code(as_normal(a[:, 0], True) + as_normal(c, True))


def subnormal_gives_nan(a: Array, b: Array) -> Array:
    return np.where(subnormal(a[:, 0]) | subnormal(b[:, 0]), NAN, product(a, b)).astype(np.uint16)


def extended(bits: int, which: int | None = None) -> Callable[..., Array]:
    """Products of s8 with zeros above `bits` bits: all products, or one."""

    def dot(a: Array, b: Array, c: Array) -> Array:
        exact = a.view(np.int8).astype(np.int64) * b.view(np.int8)
        short = exact % (1 << bits)
        if which is not None:
            short = np.where(np.arange(4) == which, short, exact)
        return (short.sum(axis=1) + c.view(np.int32)).astype(np.uint32)

    return dot


def sum_extended(a: Array, b: Array, c: Array) -> Array:
    exact = (a.view(np.int8).astype(np.int64) * b.view(np.int8)).sum(axis=1)
    return (exact % (1 << 18) + c.view(np.int32)).astype(np.uint32)


def zeros_added(rule: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def add(a: Array, c: Array) -> Array:
        a = a[:, 0]
        with np.errstate(invalid="ignore"):
            found = code(value(a) + value(c))
        return np.where(zero(a) & zero(c), rule(a, c) & 0x8000, found).astype(np.uint16)

    return add


def infinities_refused(a: Array, c: Array) -> Array:
    """Infinities of one sign are called opposite ones, too."""
    a = a[:, 0]
    with np.errstate(invalid="ignore"):
        found = code(value(a) + value(c))
    return np.where((a & 0x7FFF == 0x7C00) & (c & 0x7FFF == 0x7C00), NAN, found).astype(np.uint16)


def carry_ored(a: Array) -> Array:
    """Of 1.11...1 that rounds up the exponent field e becomes e | 1, not e + 1."""
    with np.errstate(all="ignore"):
        exact = a[:, 0].view(np.float32).astype(np.float64)
        right = code(exact)
        field = np.floor(np.log2(np.abs(exact))) + 15
    carried = np.isfinite(exact) & (field >= 1) & (exponent(right) == field + 1) & (field < 31)
    ored = right & 0x8000 | (np.where(carried, field, 0).astype(np.uint16) | 1) << 10
    return np.where(carried, ored, right).astype(np.uint16)


FAULTS: list[tuple[str, Callable[[], Instruction], Callable[..., Array]]] = [
    ("b-subnormal-as-normal-zeros", multiplier, b_as_normal),
    ("ac-subnormal-as-normal-zeros", adder, both_as_normal),
    ("ab-subnormal-is-nan", multiplier, subnormal_gives_nan),
    ("product-unsigned-16", dot4, extended(16)),
    ("product-unsigned-17", dot4, extended(17)),
    ("product-2-unsigned-16", dot4, extended(16, 2)),
    ("products-sum-unsigned-18", dot4, sum_extended),
    ("zeros-sum-negative-if-any", adder, zeros_added(lambda a, c: a | c)),
    ("zeros-sum-sign-of-first", adder, zeros_added(lambda a, c: a)),
    ("zeros-sum-sign-of-last", adder, zeros_added(lambda a, c: c)),
    ("zeros-sum-negative", adder, zeros_added(lambda a, c: a | 0x8000)),
    ("rounding-carry-lost-ored", converter, carry_ored),
    ("infinities-of-one-sign-nan", adder, infinities_refused),
]


def named(ins: Instruction, operands: dict[str, Array], actual: Array, slug: str) -> Diagnosis:
    assert (actual != ins.dot(**operands)).any(), "the vectors see the fault"
    found = diagnose(ins, operands, actual, budget_seconds=60)
    assert found.explains, found.sentence()
    assert found.hypotheses[0].slug == slug, found.sentence()
    return found


@pytest.mark.parametrize(("slug", "unit", "fault"), FAULTS, ids=[slug for slug, *_ in FAULTS])
def test_a_fault_of_one_operation_is_named(
    slug: str, unit: Callable[[], Instruction], fault: Callable[..., Array]
) -> None:
    ins = unit()
    operands = default_set(ins, 3000, seed=1).operands
    named(ins, operands, fault(**operands), slug)


MOST = (1 << 31) - 1


def clamped(total: Array) -> Array:
    return np.clip(total, -MOST - 1, MOST)


CLAMPS: list[tuple[str, Callable[[Array], Array]]] = [
    ("clamp-upper-one-late", lambda t: np.where(t == MOST + 1, t, clamped(t))),
    ("clamp-lower-one-late", lambda t: np.where(t == -MOST - 2, t, clamped(t))),
    ("clamp-upper-one-early", lambda t: np.where(t == MOST - 1, MOST, clamped(t))),
    ("clamp-upper-other-end", lambda t: np.where(t > MOST, -MOST - 1, clamped(t))),
    ("clamp-lower-wraps", lambda t: np.where(t < -MOST - 1, t, clamped(t))),
]


@pytest.mark.parametrize(("slug", "rule"), CLAMPS, ids=[slug for slug, _ in CLAMPS])
def test_a_clamp_that_is_off_is_named(slug: str, rule: Callable[[Array], Array]) -> None:
    steps = ("multiply: {to: products}", "sum: {of: [products, c], to: total}")
    last = "round: {of: total, rounding: toward_zero, overflow: saturate, zero: positive}"
    ins = built("a: s8, b: s8, c: s32, d: s32", *steps, last, k=4)
    rng = np.random.default_rng(1)
    a, b = np.zeros((2, 600, 4), np.uint8)
    a[:, 0], b[:, 0] = 1, rng.choice([1, 2, 255, 254], 600)
    near = np.array([MOST, MOST - 1, MOST - 2, -MOST - 1, -MOST, 1 - MOST])
    own = {"a": a, "b": b, "c": rng.choice(near, 600).astype(np.uint32)}
    usual = default_set(ins, 4000, seed=1).operands
    operands = {name: np.concatenate([usual[name], own[name]]) for name in own}
    exact = (operands["a"].view(np.int8).astype(np.int64) * operands["b"].view(np.int8)).sum(axis=1)
    found = named(ins, operands, rule(exact + operands["c"].view(np.int32)).astype(np.uint32), slug)
    assert not any("last place" in fact for fact in found.known)


def test_the_carry_of_the_issue() -> None:
    assert carry_ored(np.array([[0x3FFFF000]], np.uint32))[0] == 0x3C00
    assert converter().dot(a=np.array([[0x3FFFF000]], np.uint32))[0] == 0x4000


@pytest.mark.parametrize("rule", ["unbounded", "before-rounding"])
def test_what_is_tiny_is_named(rule: str) -> None:
    """Products just below the least normal number, which round up to it. With any exponent 11 bits round
    up to 1 from 1 - 2^-12 on; below that the product is tiny also after rounding."""
    ins = multiplier(", flush: signed")
    rng = np.random.default_rng(0)
    more = rng.integers(1024, 2048, (2, 60_000))
    near = more[0] * more[1]
    more = more[:, (near < 1 << 21) & (near >= (1 << 21) - (1 << 10))]
    others = rng.integers(0, 31 << 10, (2, 3000))
    a, b = np.concatenate([more - 1024 + np.array([[8], [7]]) * 1024, others], axis=1).astype(np.uint16)
    exact = np.abs(value(a) * value(b)) * 2.0**14
    tiny = (exact < (1 - 2.0**-12 if rule == "unbounded" else 1.0)) | subnormal(product(a, b))
    actual = np.where(tiny, 0, product(a, b)).astype(np.uint16)
    named(ins, {"a": a[:, None], "b": b[:, None]}, actual, f"tiny-{rule}")


def literally_added(a: int, c: int, amount: Callable[[int], int], follows: bool) -> int:
    """An f16 adder: the exact sum in a register that begins one place above the larger exponent, shifted left
    by what `amount` makes of the number of zeros in front; the exponent `follows` it, or takes the number."""
    parts = [
        (1 if x < 1 << 15 else -1, max(x >> 10 & 31, 1), x & 1023 | (x >> 10 & 31 > 0) << 10) for x in (a, c)
    ]
    top = max(e for _, e, _ in parts)
    total = sum(s * (m << 30 - (top - e)) for s, e, m in parts)
    size = abs(total)
    if not size:
        return int(code(value(np.array([a], np.uint16)) + value(np.array([c], np.uint16)))[0])
    zeros = min(42 - size.bit_length(), top)  # to the place of subnormal numbers at most
    by = amount(zeros)
    shifted, field = size << by, top + 1 - (by if follows else zeros)
    kept, rest = shifted >> 31, shifted & (1 << 31) - 1
    kept += rest > 1 << 30 or (rest == 1 << 30 and kept & 1)
    normal = size << zeros >> 41
    found = (field << 10) + (kept - 1024 if kept >= 1024 else kept) if normal or by != zeros else kept
    return min(found, 0x7C00) | (total < 0) << 15


@pytest.mark.parametrize(
    ("slug", "amount", "follows"),
    [
        ("normalize-limit-8", lambda by: min(by, 9), True),
        ("normalize-limit-8-exponent-right", lambda by: min(by, 9), False),
        ("normalize-modulo-8-from-plus-1", lambda by: by % 8, True),
        ("normalize-modulo-8-from-plus-1-exponent-right", lambda by: by % 8, False),
    ],
)
def test_a_narrow_shift_of_the_last_normalisation_is_named(
    slug: str, amount: Callable[[int], int], follows: bool
) -> None:
    ins = adder()
    operands = default_set(ins, 20_000, seed=1).operands
    finite = (exponent(operands["a"][:, 0]) < 31) & (exponent(operands["c"]) < 31)
    operands = {name: codes[finite] for name, codes in operands.items()}
    pairs = list(zip(operands["a"][:, 0].tolist(), operands["c"].tolist(), strict=True))
    sound = [literally_added(a, c, lambda by: by, True) for a, c in pairs]
    assert np.array_equal(ins.dot(**operands), sound), "without a fault it is the adder"
    actual = np.array([literally_added(a, c, amount, follows) for a, c in pairs], np.uint16)
    named(ins, operands, actual, slug)


def test_a_condition_on_signs() -> None:
    """Wrong where the terms have unlike signs: said of the operands that an adder has."""
    ins = adder()
    operands = default_set(ins, 6000, seed=1).operands
    unlike = (operands["a"][:, 0] ^ operands["c"]) >> 15 != 0
    usual = (exponent(operands["a"][:, 0]) < 31) & (exponent(operands["c"]) < 31)
    odd = np.bitwise_count(operands["a"][:, 0] ^ operands["c"] * 3) & 1
    actual = ins.dot(**operands) ^ np.where(unlike & usual, 3 * odd, 0).astype(np.uint16)
    (said, *_) = diagnose(ins, operands, actual, budget_seconds=5).known
    assert "the signs of a and c differ" in said and "none of" in said
    assert "product" not in said and "a[0]" not in said


def test_conditions_speak_of_what_the_unit_has() -> None:
    """A multiplier has no c, one product, and no number of 2^996."""
    ins = multiplier()
    operands = default_set(ins, 6000, seed=1).operands
    a, b = operands["a"][:, 0], operands["b"][:, 0]
    with np.errstate(invalid="ignore"):
        large = np.abs(value(a) * value(b)) >= 2.0**9
    actual = np.where(large & (np.bitwise_count(a * 5 ^ b) & 1 == 1), 0x1234, ins.dot(**operands))
    said = " ".join(diagnose(ins, operands, actual.astype(np.uint16), budget_seconds=5).known)
    assert "the product is 2^" in said or "result is 2^" in said, said
    assert "c =" not in said and "and c" not in said and "2^99" not in said, said


def test_faults_that_explain_nothing_are_not_listed() -> None:
    """Two that make up for each other where one alone would be wrong are one fault in two words."""
    ins = multiplier()
    operands = default_set(ins, 6000, seed=1).operands
    a, b = operands["a"][:, 0], operands["b"][:, 0]
    with np.errstate(invalid="ignore"):
        actual = code(as_normal(a, True) * as_normal(b, True))
    found = diagnose(ins, operands, actual, budget_seconds=60)
    assert found.explains and len(found.faults) == 2, found.sentence()
    assert all(fault.explains for fault in found.faults)
    for fault in found.faults:
        shows = fault.alone(ins, operands)
        assert shows.any() and (actual != ins.dot(**operands))[shows].all(), "what cannot show it does not"
