"""What a dissection says: the questions that show the order of the sum and forced each change."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import golden
from golden import stimuli
from golden.identify.blackbox import fitting
from golden.identify.blackbox.box import Bank, Box, dense_view
from golden.identify.blackbox.candidates import candidate_of
from golden.identify.blackbox.evidence import Forced, NamedChange, forced, shrunk
from golden.identify.blackbox.report import Found, markdown
from golden.identify.blackbox.sum_order import find_order
from golden.number.frozen import replace
from golden.program.steps import Round
from golden.unit import FunctionUnit

FORMATS = {"a": "f16", "b": "f16", "c": "f32", "d": "f32"}


def values(codes: Any, name: str) -> Any:
    dtype = np.float16 if name == "f16" else np.float32
    return codes.view(dtype).astype(np.float32)


def as_unit(summed: Callable[[Any, Any], Any], k: int = 4) -> FunctionUnit:
    """A unit from products (n, k) and c (n,), both FP32, to FP32; NaNs are 0x7fc00000."""

    def answer(a: Any, b: Any, c: Any) -> Any:
        with np.errstate(all="ignore"):
            d = np.asarray(summed(values(a, "f16") * values(b, "f16"), values(c, "f32")), np.float32)
        return np.where(np.isnan(d), np.uint32(0x7FC00000), d.view(np.uint32))

    return FunctionUnit(answer, FORMATS, k, "said")


def pairwise(p: Any, c: Any) -> Any:
    return ((p[:, 0] + p[:, 1]) + (p[:, 2] + p[:, 3])) + c


def boxed(unit: FunctionUnit) -> Box:
    return Box(dense_view(unit), 100_000, math.inf)


def filled(box: Box, each: int = 20) -> Bank:
    """A bank with questions of every kind."""
    bank = Bank(box.takes)
    for index, kind in enumerate(stimuli.KINDS):
        operands = stimuli.generate(box.takes, kind, each, np.random.default_rng([1, index]))
        bank.add(kind, *box.ask(operands))
    return bank


def test_a_search_without_a_processor_says_so() -> None:
    found = Found("box", None, None, {}, ("nothing",), asked=5, seconds=10.0, waited=8.0)
    assert "For 8.0 s of these it waited for a processor" in markdown(found)
    assert "no processor" not in markdown(replace(found, waited=1.0))


def test_each_change_keeps_the_counterexample_that_forced_it() -> None:
    volta = golden.instruction("volta", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32")
    box = boxed(FunctionUnit.like(volta, volta.dot))
    bank = filled(box, 8)
    right = candidate_of(box.takes, volta)
    wrong = right.with_each_step(lambda s: replace(s, rounding="up") if isinstance(s, Round) else s)
    assert wrong is not None
    fit = fitting.fit(bank, fitting.Fit(wrong, fitting.wrong_of(bank, wrong)), time.monotonic() + 60)
    assert fit.wrong == 0 and all(isinstance(one, NamedChange) for one in fit.changes)
    found, asked = shrunk(forced(fit.changes, bank), fit.changes, bank, time.monotonic() + 60, box.ask)
    assert asked is not None
    (first,) = found
    assert first.rule == "round of total: rounding = toward_zero" and first.old == "up"
    assert int(wrong.dot(**first.operands)) == first.before != first.box == int(right.dot(**first.operands))
    operands = {name: codes[None] for name, codes in first.operands.items()}
    assert int(box.unit.dot(**operands)[0]) == first.box
    assert np.count_nonzero(first.operands["a"]) <= 2
    assert forced([str(one) for one in fit.changes], bank) == []  # of a file: words alone


def test_the_report_and_its_json_have_the_order_and_the_questions_that_show_changes() -> None:
    volta = golden.instruction("volta", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32")
    box = boxed(as_unit(pairwise))
    bank = Bank(box.takes)
    tree = find_order(box, bank)
    assert tree is not None
    operands = {name: codes[0] for name, codes in bank.operands.items()}
    change = Forced("round of total: rounding = toward_zero", 0, "up", 3, operands, 0x3F800000, 0x3F800001)
    shown: dict[str, Any] = {"order": tree.brackets(), "forced": (change,)}
    rules = ("one aligned sum", change.rule, "another change")
    found = Found("a box", volta, None, {"masks": (0, 42)}, (), rules=rules, **shown)
    assert tree.brackets() in found.report
    assert "zero instead of up: " in found.report
    assert "the box answers 0x3f800000, the candidate before 0x3f800001; 3 questions say so" in found.report
    reported = found.as_dict()
    assert reported["forced"][0]["instead_of"] == "up" and reported["forced"][0]["before"] == 0x3F800001
    json.dumps(reported)
