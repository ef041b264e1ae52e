"""Integer units with one fault of a line, each computed in NumPy: the diagnosis names what was planted."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from golden import yamlfile
from golden.catalog import unit_files
from golden.identify.diagnosis import diagnose
from golden.model.instruction import Instruction
from golden.vectors.vectorset import default_set

DOT = """\
unit: dot
shape: {k: K}
formats: {FORMATS}
steps:
  - multiply: {to: products}
  - sum: {of: [TERMS], to: total}
  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}
"""
UNITS = {
    "dot4": DOT.replace("K", "4", 1)
    .replace("FORMATS", "a: s8, b: s8, c: s32, d: s32")
    .replace("TERMS", "c, products"),
    "sum4": DOT.replace("K", "4", 1).replace("FORMATS", "a: s8, b: s8, d: s32").replace("TERMS", "products"),
    "mixed": DOT.replace("K", "4", 1).replace("FORMATS", "a: u8, b: s8, d: s32").replace("TERMS", "products"),
    "low": DOT.replace("K", "1", 1).replace("FORMATS", "a: s32, b: s32, d: s32").replace("TERMS", "products"),
    "bf16": DOT.replace("K", "1", 1)
    .replace("FORMATS", "a: bf16, b: bf16, d: bf16")
    .replace("  - sum: {of: [TERMS], to: total}\n", "  - special_values: {of: products}\n")
    .replace("of: total", "of: products")
    .replace("overflow: wrap, zero: positive", "overflow: infinity, zero: signed"),
}
KINDS = {"s8": np.int8, "u8": np.uint8, "s32": np.int32}
Values = dict[str, Any]


@cache
def unit(name: str) -> Instruction:
    return unit_files.build_instruction(yamlfile.parse(UNITS[name]))


@cache
def given(name: str) -> Values:
    return dict(default_set(unit(name), count=800, seed=5).operands)


def values(name: str) -> Values:
    """The operands as Python integers (n, k), c (n, 1)."""
    ins = unit(name)
    found = {n: codes.view(KINDS[ins.formats[n].name]).astype(object) for n, codes in given(name).items()}
    return found | ({"c": found["c"][:, None]} if "c" in found else {})


def signed(a: Any, at: int, bits: int = 8, sign: Any = 0) -> Any:
    """The elements with another sign in one place: its low bits less 2^bits where `sign` is."""
    found = a.copy()
    found[:, at] = a[:, at] % (1 << bits) - (sign << bits)
    return found


def twice(x: Any, to: int, of: int) -> Any:
    found = x.copy()
    found[:, to] = x[:, of]
    return found


def dot(a: Any, b: Any, c: Any = None) -> Any:
    return (a * b).sum(axis=1) + (0 if c is None else c[:, 0])


def sign_or(a: Any, b: Any) -> Any:
    return (abs(a * b) * np.where((a < 0) | (b < 0), -1, 1)).sum(axis=1)


FAULTS: list[tuple[str, str, str, Callable[..., Any]]] = [
    ("dot4", "c-minus-products", "c - products", lambda a, b, c: dot(-a, b, c)),
    ("dot4", "products-minus-c", "products - c", lambda a, b, c: dot(a, b, -c)),
    ("dot4", "result-negated", "the result negated", lambda a, b, c: -dot(a, b, c)),
    ("dot4", "result-complemented", "every bit of the result inverted", lambda a, b, c: ~dot(a, b, c)),
    (
        "dot4",
        "result-absolute",
        "absolute value",
        lambda a, b, c: abs((dot(a, b, c) + 2**31) % 2**32 - 2**31),
    ),
    ("dot4", "result-times-2-to-1", "twice the right one", lambda a, b, c: 2 * dot(a, b, c)),
    ("low", "result-times-2-to-minus-1", "shifted right by 1", lambda a, b: dot(a, b) >> 1),
    ("low", "result-plus-constant", "0x80000000 (2^31) added", lambda a, b: dot(a, b) + 2**31),
    ("low", "result-upper-half", "the upper half of the product", lambda a, b: dot(a, b) >> 32),
    ("low", "result-upper-half-unsigned", "without a sign", lambda a, b: dot(a % 2**32, b % 2**32) >> 32),
    ("low", "b-is-a", "(a x a)", lambda a, b: dot(a, a)),
    ("low", "product-sign-or", "negative where a or b is", sign_or),
    ("sum4", "b-3-is-2", "product k = 3 takes b[2] in place of b[3]", lambda a, b: dot(a, twice(b, 3, 2))),
    ("sum4", "product-3-is-0", "k = 3 is that of k = 0", lambda a, b: dot(twice(a, 3, 0), twice(b, 3, 0))),
    (
        "sum4",
        "odd-products-are-even",
        "odd products are those of the even",
        lambda a, b: dot(a[:, [0, 0, 2, 2]], b[:, [0, 0, 2, 2]]),
    ),
    ("sum4", "product-sign-or", "negative where a or b is, also where both are", sign_or),
    ("sum4", "a-2-unsigned", "a[2] is read as unsigned", lambda a, b: dot(signed(a, 2), b)),
    (
        "sum4",
        "a-2-sign-of-1",
        "the sign of a[2] is taken from a[1]",
        lambda a, b: dot(signed(a, 2, sign=(a[:, 1] < 0) * 1), b),
    ),
    (
        "mixed",
        "a-1-signed",
        "a[1] is read as signed",
        lambda a, b: dot(signed(a, 1, sign=(a[:, 1] > 127) * 1), b),
    ),
    ("sum4", "b-1-sign-high", "the sign of b[1] is always 1", lambda a, b: dot(a, signed(b, 1, sign=1))),
    ("low", "result-times-2-to-minus-1-unsigned", "right by 1", lambda a, b: dot(a % 2**32, b % 2**32) >> 1),
    (
        "sum4",
        "b-ones-complement",
        "negative b is negated without adding the one",
        lambda a, b: dot(a, b + (b < 0)),
    ),
    (
        "sum4",
        "products-ones-complement",
        "a negative product is",
        lambda a, b: dot(a, b) - (a * b < 0).sum(axis=1),
    ),
]


@pytest.mark.parametrize(("name", "slug", "words", "fault"), FAULTS, ids=[f"{f[0]}-{f[1]}" for f in FAULTS])
def test_a_fault_of_an_integer_unit_is_named(
    name: str, slug: str, words: str, fault: Callable[..., Any]
) -> None:
    ins = unit(name)
    actual = (fault(**values(name)) & 0xFFFFFFFF).astype(np.uint32)
    found = diagnose(ins, given(name), actual, budget_seconds=20)
    assert found.explains and found.hypotheses[0].slug == slug, found.sentence()
    assert words in found.sentence()


def fraction_of_b(a: Any, b: Any) -> Any:
    return unit("bf16").dot(a=a & 0xFF80 | b & 0x7F, b=b)


def exponents_subtracted(a: Any, b: Any) -> Any:
    """b's exponent e is -e: its field is 254 less itself."""
    return unit("bf16").dot(a=a, b=b & 0x807F | (254 - (b >> 7 & 0xFF)) << 7)


def fraction_too_high(a: Any, b: Any) -> Any:
    d = unit("bf16").dot(a=a, b=b)
    return d & 0xFF80 | 0x40 | (d & 0x7F) >> 1


@pytest.mark.parametrize(
    ("slug", "words", "fault"),
    [
        ("a-significand-of-b", "the significand of a is that of b", fraction_of_b),
        ("b-exponent-subtracted", "the exponent of b is subtracted from that of a", exponents_subtracted),
        ("result-fraction-shifted-right", "one place too high of its significand", fraction_too_high),
    ],
)
def test_a_fault_of_significands_is_named(slug: str, words: str, fault: Callable[..., Any]) -> None:
    ins = unit("bf16")
    fields = {name: codes >> 7 & 0xFF for name, codes in given("bf16").items()}
    normal = np.all([((f > 64) & (f < 190)).all(axis=1) for f in fields.values()], axis=0)
    operands = {name: codes[normal] for name, codes in given("bf16").items()}
    actual = np.asarray(fault(**{n: codes[:, 0:1] for n, codes in operands.items()}), np.uint16).reshape(-1)
    found = diagnose(ins, operands, actual, budget_seconds=20)
    assert found.explains and found.hypotheses[0].slug == slug, found.sentence()
    assert words in found.sentence()


def accumulated(right: Any) -> Any:
    return np.cumsum(right.astype(np.uint64)).astype(np.uint32)


def own_c(right: Any) -> Any:
    """An accumulator in place of c."""
    return accumulated(right - given("dot4")["c"])


@pytest.mark.parametrize(
    ("name", "slug", "words", "fault"),
    [
        ("low", "result-before-added", "an accumulator that is not cleared", accumulated),
        ("low", "result-before-ored", "bits that the result before had stay set", np.bitwise_or.accumulate),
        ("dot4", "c-is-result-before", "an accumulator that keeps what it has", own_c),
    ],
)
def test_what_is_kept_from_the_vector_before_is_named(
    name: str, slug: str, words: str, fault: Callable[..., Any]
) -> None:
    """Each result is made with the wrong one before it."""
    ins, operands = unit(name), given(name)
    if slug.endswith("ored"):  # sixteen runs of vectors: soon every bit is set
        operands = {n: codes[:40] & np.uint32(0xFF) for n, codes in operands.items()}
    found = diagnose(ins, operands, fault(ins.dot(**operands)), budget_seconds=20)
    assert found.explains and found.hypotheses[0].slug == slug, found.sentence()
    assert words in found.sentence()


def test_the_same_operands_with_other_results_depend_on_what_came_before() -> None:
    """A state that no hypothesis has: every result is mixed with the two before."""
    ins = unit("low")
    right = ins.dot(**given("low"))
    mixed = right ^ np.roll(right, 1) * np.uint32(77) ^ np.roll(right, 2)
    found = diagnose(ins, given("low"), mixed, budget_seconds=1)
    assert not found.explains and "a result depends on what came before" in found.sentence()
    alone = diagnose(ins, given("low"), right ^ right >> np.uint32(3) * np.uint32(5), budget_seconds=1)
    assert "what came before" not in alone.sentence()


def test_late_results_come_before_late_operands() -> None:
    """Of a unit without c both are the same; the latency is what a designer has in his description."""
    ins = unit("low")
    found = diagnose(ins, given("low"), np.roll(ins.dot(**given("low")), 1), budget_seconds=5)
    assert [one.slug for one in found.explaining] == ["delayed-by-one", "ab-late-by-one"], found.sentence()
