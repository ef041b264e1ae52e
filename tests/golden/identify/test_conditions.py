"""Where a unit is wrong: the planted conditions are found, and none by chance."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import golden
import rtl_tb
from golden import stimuli
from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import candidate_of
from golden.identify.blackbox.unexplained import unexplained
from golden.identify.diagnose.conditions import known, where
from golden.unit import signature_of
from golden.vectors.vectorset import default_set

VOLTA = golden.instruction("volta", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32")
OF = "the candidate's"
EXAMPLE = Path(rtl_tb.__file__).parent / "examples" / "own_unit" / "mac4.yaml"


@lru_cache(maxsize=1)
def asked() -> tuple[dict[str, Any], Any]:
    """Operands of every kind, and the right answers."""
    kinds = enumerate(stimuli.KINDS)
    parts = [stimuli.generate(VOLTA, kind, 60, np.random.default_rng([3, index])) for index, kind in kinds]
    operands = {name: np.concatenate([part[name] for part in parts]) for name in "abc"}
    return operands, VOLTA.dot(**operands)


def said(answer: Callable[..., Any]) -> tuple[str, ...]:
    operands, right = asked()
    with np.errstate(all="ignore"):
        actual = np.asarray(answer(right.copy(), **operands), np.uint32)
    return where(VOLTA.formats, operands, right, actual, actual != right, OF)


def relu(d: Any, **_: Any) -> Any:
    return np.where(d.view(np.float32) < 0, 0, d)


def stuck(d: Any, a: Any, b: Any, c: Any) -> Any:
    held = a.copy()
    held[:, 2] &= ~np.uint16(8)
    return VOLTA.dot(a=held, b=b, c=c)


def crowded(d: Any, a: Any, b: Any, c: Any) -> Any:
    present = ((a & 0x7FFF) != 0) & ((b & 0x7FFF) != 0)
    return np.where(present.sum(axis=1) >= 3, d ^ 1, d)


def far_above_c(d: Any, a: Any, b: Any, c: Any) -> Any:
    products = np.abs(a.view(np.float16).astype(float) * b.view(np.float16))
    largest = np.where(np.isfinite(products), products, 0).max(axis=1)
    size = np.abs(c.view(np.float32).astype(float))
    exponents = [np.frexp(np.where(np.isfinite(one), one, 0))[1] for one in (largest, size)]
    return np.where((largest > 0) & (size > 0) & (exponents[0] - exponents[1] >= 30), d ^ 1, d)


def largest_number(d: Any, **_: Any) -> Any:
    return np.where((d & 0x7FFFFFFF) == 0x7F800000, d - 1, d)


def flushed(d: Any, a: Any, b: Any, c: Any) -> Any:
    return VOLTA.dot(a=a, b=b, c=np.where((c & 0x7F800000) == 0, 0, c).astype(np.uint32))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            relu,
            ("wrong exactly where the candidate's result is negative: every one of", "is 0x00000000 (+0)"),
        ),
        (stuck, ("wrong only where bit 3 of a[2] is set", "none of")),
        (crowded, ("wrong exactly where 3 or more products are not zero",)),
        (
            far_above_c,
            ("the exponent of the largest product is that of c +30 or more: every one of",),
        ),
        (largest_number, ("wrong exactly where the candidate's result is infinite",)),
        (flushed, ("wrong exactly where the candidate's result is subnormal",)),
    ],
)
def test_a_condition_that_was_planted_is_found(fault: Callable[..., Any], words: tuple[str, ...]) -> None:
    (only,) = said(fault)
    assert all(word in only for word in words), only


def test_the_counts_are_those_of_the_answers() -> None:
    _, right = asked()
    negative = int((right.view(np.float32) < 0).sum())
    (only,) = said(relu)
    assert f"every one of {negative:,}, none of {len(right) - negative:,} others" in only


def test_what_is_wrong_by_chance_has_no_condition() -> None:
    _, right = asked()
    assert said(lambda d, **_: d ^ (np.random.default_rng(1).random(len(right)) < 0.1)) == ()
    assert said(lambda d, **_: d ^ (np.arange(len(right)) == 7)) == ()
    assert said(lambda d, **_: d) == ()


def test_what_a_candidate_does_not_explain_is_said_of_the_questions_kept() -> None:
    operands, right = asked()
    takes = signature_of(VOLTA)
    banks = [Bank(takes), Bank(takes)]
    for bank, rows in zip(banks, (slice(None, None, 2), slice(1, None, 2)), strict=True):
        bank.add("wide", {name: codes[rows] for name, codes in operands.items()}, relu(right)[rows])
    reported = unexplained(candidate_of(takes, VOLTA), *banks)
    assert reported[0].startswith("wrong exactly where the candidate's result is negative")
    assert any("right: " in one for one in reported)


def test_what_is_said_of_many_answers_counts_them_all() -> None:
    """Conditions are compared on some of them; elements have sizes that only all of them have."""
    operands, right = asked()
    many = {name: np.concatenate([codes] * 8) for name, codes in operands.items()}
    expected = np.concatenate([right] * 8)
    actual = stuck(expected, **many)
    (only,) = where(VOLTA.formats, many, expected, actual, actual != expected, OF)
    assert "bit 3 of a[2] is set" in only
    said_of = re.search(r": ([\d,]+) of ([\d,]+) there, none of ([\d,]+) others", only)
    assert said_of is not None
    wrong, there, others = (int(number.replace(",", "")) for number in said_of.groups())
    assert wrong == int((actual != expected).sum()) and there + others == len(expected)


def low_bits_cleared() -> tuple[dict[str, Any], Any]:
    """b has no low bits where it is large: they are alike in the vectors, and decide nothing."""
    operands, _ = asked()
    b = operands["b"].copy()
    large = (b & 0x7C00) >= 0x4800
    b[large] &= np.uint16(0xFC00)
    operands = operands | {"b": b}
    return operands, VOLTA.dot(**operands)


def test_a_bit_that_is_alike_in_the_vectors_is_no_condition() -> None:
    operands, right = low_bits_cleared()
    large = (operands["b"][:, 1] & 0x7C00) >= 0x4800
    wrong = large & (np.random.default_rng(2).random(len(right)) < 0.7)
    found = where(VOLTA.formats, operands, right, right ^ wrong, wrong, OF)
    assert found and not any("bit " in one for one in found), found


def test_the_least_size_of_a_product_says_that_it_is_not_zero() -> None:
    ins = golden.load_instruction(EXAMPLE)
    operands = default_set(ins, 1000, seed=3).operands
    products = operands["a"].view(np.int8).astype(int) * operands["b"].view(np.int8)
    wrong = (products != 0).any(axis=1)
    right = ins.dot(**operands)
    (only,) = where(ins.formats, operands, right, right ^ wrong, wrong, OF)
    assert "exactly where the largest product is not zero" in only and "2^" not in only


def test_terms_of_a_condition_are_clauses() -> None:
    operands, right = asked()
    zero = (operands["c"] & 0x7FFFFFFF) == 0
    present = (((operands["a"] & 0x7FFF) != 0) & ((operands["b"] & 0x7FFF) != 0)).sum(axis=1)
    wrong = zero & (present == 1)
    (only,) = where(VOLTA.formats, operands, right, right ^ wrong, wrong, OF)
    assert "wrong exactly where one product is the only term that is not zero: every one of" in only


def test_integers_that_are_off_by_one_amount_up_or_down_are_said_to_be() -> None:
    ins = golden.load_instruction(EXAMPLE)
    operands = default_set(ins, 1000, seed=3).operands
    right = ins.dot(**operands)
    up = np.bitwise_count(operands["a"][:, 0]) & 1 == 1
    actual = np.where(up, right + np.uint32(1 << 30), right - np.uint32(1 << 30))
    found = known(ins, operands, right, actual != right, actual)
    assert "all wrong results are 0x40000000 (2^30) off" in found


def test_two_bits_that_decide_together_are_conditions() -> None:
    operands, right = asked()
    c = operands["c"]
    wrong = (c >> 3 & 1 == 1) & (c >> 5 & 1 == 0)
    (only,) = where(VOLTA.formats, operands, right, right ^ wrong, wrong, OF)
    assert "bit 3 of c is set" in only and "bit 5 of c is not set" in only and "exactly where" in only
