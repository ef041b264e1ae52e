"""Every code of formats that have few: the codes asked are reported, and the missing ones are asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import golden
from golden.identify.blackbox import asking, policy
from golden.identify.blackbox.questions import KIND, Coverage
from golden.number.formats import get_format, to_float
from golden.unit import FunctionUnit

FORMATS = {"a": "f16", "b": "f16", "c": "f32", "d": "f32"}
WRONG, ELEMENT = 0x4B61, 2


def takes(**formats: str) -> FunctionUnit:
    return FunctionUnit(lambda a, b, c: c, FORMATS | formats, 4)


def test_rounds_of_codes_not_asked_reach_all_numbers() -> None:
    asked, rng = Coverage(takes()), np.random.default_rng(0)
    assert asked.unused() == 63_488
    lefts = []
    for _ in range(4):
        asked.add(asked.questions(40_000, rng))
        lefts.append(asked.unused())
    assert lefts[0] < 40_000 and lefts[-1] < 8_000
    table = asked.seen["a"][0]
    table[:] = True
    table[[5, 0x8005]] = False
    assert set(asked.questions(50, rng)["a"][:, 0].tolist()) == {5, 0x8005}


def test_a_code_that_is_wrong_by_one_place_shows_in_most_questions() -> None:
    """No factor hides another: the products of a question are of about one size."""
    operands = Coverage(takes()).questions(4_000, np.random.default_rng(1))
    one = golden.instruction("hopper", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32")

    def dot(a: Any) -> Any:
        zero = np.zeros_like(operands["a"])
        return one.dot(np.hstack([a, zero]), np.hstack([operands["b"], zero]), operands["c"])

    moved = operands["a"].copy()
    moved[:, ELEMENT] ^= 1
    assert (dot(moved) != dot(operands["a"])).mean() > 0.9
    values = np.asarray(to_float(get_format("f16"), operands["a"]), float)
    assert np.isfinite(values).all()


def test_what_was_asked_is_reported() -> None:
    asked = Coverage(takes(b="e4m3"))
    operands = {"a": np.zeros((300, 4), np.uint16), "b": np.zeros((300, 4), np.uint8)}
    operands["a"][:, 1:] = np.arange(900).reshape(300, 3)
    operands["b"][:, :] = np.arange(300)[:, None] % 256
    asked.add(operands)
    (said,) = asked.said()
    assert "of the 65,536 codes of a 300 were used in an element, 1 of a[0], the fewest" in said
    assert asked.open == {"a"} and Coverage(takes(a="f32")).questions(9, np.random.default_rng(0))


def test_one_wrong_code_of_one_element_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 65,536: the rounds aim at codes that were not asked."""
    monkeypatch.setattr(asking, "QUESTIONS", replace(policy.QUESTIONS, codes_from=0))

    def dot(a: Any, b: Any, c: Any) -> Any:
        a = a.copy()
        a[:, 1][a[:, 1] == WRONG] += 1
        products = a.view(np.int16).astype(np.int32) * b.view(np.int16)
        return products.sum(axis=1, dtype=np.int32).view(np.uint32) + c

    integers = {"a": "s16", "b": "s16", "c": "s32", "d": "s32"}
    found = golden.dissect(FunctionUnit(dot, integers, 2), asks=9_000, seconds=20)
    assert found.explains and KIND in found.differing and "codes of a" in " ".join(found.undecided)
    asked = Coverage(FunctionUnit(dot, integers, 2))
    asked.seen["a"][:] = True
    asked.seen["a"][1, [WRONG, 7]] = False
    some = asked.questions(40, np.random.default_rng(3))
    assert 10 < (some["a"][:, 1] == WRONG).sum() < 30
