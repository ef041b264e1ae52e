"""What is said of a box that is no dot product: the law that it breaks, with a question."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import golden
from golden.identify.blackbox.box import Bank, Box
from golden.identify.blackbox.missing_operands import with_all
from golden.identify.blackbox.questions import simple
from golden.identify.blackbox.report import Found
from golden.identify.blackbox.sum_order import find_order
from golden.identify.blackbox.unexplained import Law, broken
from golden.program.program import ABSENT
from golden.unit import FunctionUnit

FLOATS = {"a": "f16", "b": "f16", "c": "f32", "d": "f32"}
FACTOR = "a constant factor lies between products and c: one product alone is"
NO_DOT = "it is no dot product: one pair of factors alone gives"
INTEGERS = {"a": "s8", "b": "s8", "c": "s32", "d": "s32"}
VOLTA = golden.instruction("volta", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32")


def floats(summed: Callable[[Any, Any, Any], Any]) -> FunctionUnit:
    def answer(a: Any, b: Any, c: Any) -> Any:
        with np.errstate(all="ignore"):
            x, y = (one.view(np.float16).astype(np.float32) for one in (a, b))
            d = np.asarray(summed(x, y, c.view(np.float32)), np.float32)
        return np.where(np.isnan(d), np.uint32(0x7FC00000), d.view(np.uint32))

    return FunctionUnit(answer, FLOATS, 4, "law")


def pairwise(p: Any) -> Any:
    return (p[:, 0] + p[:, 1]) + (p[:, 2] + p[:, 3])


def logarithmic(x: Any, y: Any, c: Any) -> Any:
    """Mitchell's multiplier: logarithms that are linear between powers of two."""
    (fx, ex), (fy, ey) = np.frexp(x), np.frexp(y)
    log = (2 * np.abs(fx) - 1) + (2 * np.abs(fy) - 1)
    carried = np.where(log >= 1, 2 * log, 1 + log)
    return pairwise(np.where(x * y == 0, 0, np.sign(x * y) * np.ldexp(carried, ex + ey - 2))) + c


def differences(a: Any, b: Any, c: Any) -> Any:
    x, y = (one.view(np.int8).astype(np.int64) for one in (a, b))
    return (np.abs(x - y).sum(axis=1) + c.view(np.int32)).astype(np.uint32)


SAD = FunctionUnit(differences, INTEGERS, 4, "sad")


def shifted(a: Any, b: Any) -> Any:
    """The sum of products, shifted right by four places after a half was added, and clamped to s16."""
    total = (a.view(np.int8).astype(np.int64) * b.view(np.int8)).sum(axis=1)
    return np.clip((total + 8) >> 4, -(1 << 15), (1 << 15) - 1).astype(np.int16).view(np.uint16)


SHIFTED = FunctionUnit(shifted, {**ABSENT, "a": "s8", "b": "s8", "d": "s16"}, 4, "shifted")


def laws(unit: FunctionUnit) -> tuple[Law, ...]:
    box = Box(with_all(unit), 100_000, math.inf)
    bank = Bank(box.takes)
    for kind, operands in simple(box.takes, 20, np.random.default_rng(0)):
        bank.add(kind, *box.ask(operands))
    return broken(bank)


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        (floats(logarithmic), "one product alone is not a * b: "),
        (SAD, f"{NO_DOT} |a - b|, in all "),
        (
            floats(lambda x, y, c: pairwise(x * y) * np.float32(0.5) + c),
            f"{FACTOR} 2^-1 times a * b",
        ),
        (
            floats(lambda x, y, c: pairwise(x * y) / 3 + c),
            f"{FACTOR} 1/3 times",
        ),
        (
            floats(lambda x, y, c: pairwise(x * y * np.float32([1, -1, 1, -1])) + c),
            "one product alone is -(a * b) at k = 1, 3, and a * b elsewhere, in all ",
        ),
        (
            SHIFTED,
            "a constant factor multiplies the products: one product alone is 2^-4 times a * b, rounded,",
        ),
        (
            floats(lambda x, y, c: np.maximum(x, y).sum(axis=1) + c),
            f"{NO_DOT} max(a, b)",
        ),
    ],
)
def test_the_law_that_a_box_breaks_is_said(unit: FunctionUnit, said: str) -> None:
    (law,) = laws(unit)
    assert law.text.startswith(said), law.text
    assert law.operands is not None
    given = {name: codes[None] for name, codes in law.operands.items() if name in unit.own_formats}
    assert int(unit.dot(**given)[0]) == law.box
    found = Found("a box", VOLTA, None, {"wide": (1, 2)}, (), laws=(law,))
    said_first = found.report.index(law.text[1:20].replace("|", "\\|"))
    assert said_first < found.report.index("## What it computes") and found.as_dict()["laws"]


@pytest.mark.parametrize(
    "unit",
    [
        floats(lambda x, y, c: pairwise(x * y) + c),
        floats(lambda x, y, c: ((c + (x * y)[:, 0]) + (x * y)[:, 1]) + (x * y)[:, 2] + (x * y)[:, 3]),
        floats(lambda x, y, c: np.float32((x.astype(float) * y).sum(axis=1) + c)),
        FunctionUnit.like(VOLTA, VOLTA.dot),
    ],
)
def test_sound_boxes_break_no_law(unit: FunctionUnit) -> None:
    assert laws(unit) == ()


def test_masks_see_through_a_factor_between_products_and_c() -> None:
    box = Box(floats(lambda x, y, c: pairwise(x * y) * np.float32(0.5) + c), 100_000, math.inf)
    bank = Bank(box.takes)
    tree = find_order(box, bank)
    assert tree is not None and tree.brackets() == "(c + ((0 + 1) + (2 + 3)))"


def test_a_tree_that_the_candidate_contradicts_is_said_to_be() -> None:
    said = "The candidate does not add in this order:** it answers 24 of 42 masks differently"
    for wrong in (24, 0):
        found = Found("a box", VOLTA, None, {"masks": (wrong, 42)}, (), order="(c + 0 + 1 + 2 + 3)")
        assert (said in found.report) == (wrong > 0)


def test_numbers_beyond_doubles_are_compared_without_a_warning() -> None:
    """Squares of the largest factors, and answers that are no count."""
    formats = dict.fromkeys("abcd", "f64")

    def absolute(a: Any, b: Any, c: Any) -> Any:
        with np.errstate(all="ignore"):
            x, y, z = (one.view(np.float64) for one in (a, b, c))
            return (np.abs(x * y).sum(axis=1) + z).view(np.uint64)

    box = Box(FunctionUnit(absolute, formats, 3, "absolute"), 20_000, time.monotonic() + 60)
    bank = Bank(box.takes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        find_order(box, bank)
        for kind, operands in simple(box.takes, 20, np.random.default_rng(4)):
            bank.add(kind, *box.ask(operands))
        assert "|a * b|" in broken(bank)[0].text
