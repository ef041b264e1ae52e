"""Starts of the search and the changes that lead on from them where single ones do not."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

import golden
from golden.identify.blackbox import (
    discriminate,
    fitting,
    joint_keys,
    moves,
    neighbourhood,
    starting_points,
)
from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.dissecting import _Search
from golden.identify.blackbox.fitting import Fit
from golden.identify.blackbox.policy import FITS
from golden.identify.blackbox.questions import simple
from golden.identify.blackbox.templates import skeletons
from golden.program.signature import Signature
from golden.program.steps import Additions, Align, Multiply, Round, Step
from golden.unit import FunctionUnit, signature_of

CHAIN = "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32"


def whole(name: str, architecture: str = "ampere") -> Candidate:
    ins = golden.instruction(architecture, name)
    return Candidate(signature_of(ins).stateless, ins.program.operations, "its own")


def plain() -> Candidate:
    return whole("HMMA.884.F32.F32", "volta")


def with_keys(one: Candidate, kind: type[Step], **keys: Any) -> Candidate:
    found = one.with_each_step(lambda step: replace(step, **keys) if isinstance(step, kind) else step)
    assert found is not None
    return found


def reached(one: Candidate) -> list[object]:
    made = (move.apply(one) for move in joint_keys.joint(one))
    return [new.operations for new in made if new is not None]


def test_a_sticky_bit_is_tried_below_every_width() -> None:
    start = with_keys(plain(), Align, fraction_bits=(("products", 24), ("c", 24)))
    bits = (("products", 17), ("c", 17))
    wanted = with_keys(start, Align, cut="sticky_added", fraction_bits=bits)
    assert wanted.operations in reached(start)
    bank = Bank(start.takes)
    for kind, operands in simple(start.takes, 12, np.random.default_rng(1)):
        bank.add(kind, operands, wanted.dot(**operands))
    wrong = fitting.wrong_of(bank, start)
    assert wrong > len(bank) // FITS.far
    found = fitting._widths(bank, Fit(start, wrong), moves.Hints(wide=False), time.monotonic() + 60)
    assert found.wrong == 0, "that is how starts which are far off are ranked"


def test_a_fit_whose_time_ends_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call has time for a few changes, and only the last one helps."""
    wanted = plain()
    start = with_keys(wanted, Align, fraction_bits=(("products", 10), ("c", 10)))
    bank = Bank(start.takes)
    for kind, operands in simple(start.takes, 4, np.random.default_rng(1)):
        bank.add(kind, operands, wanted.dot(**operands))
    fit, end = Fit(start, fitting.wrong_of(bank, start)), wanted.steps_of(Align)[0]
    (now,) = start.steps_of(Align)
    useless = moves.Move("none", "", lambda steps: steps)
    tried = [*[useless] * 50, moves.Move("width", "its own", moves.replacing_step(now, end))]
    clock = count()
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    one = fitting.Fitting(bank)
    found = [one._step(fit, "some", lambda: iter(tried), time.monotonic() + 30) for _ in range(3)]
    assert found[:2] == [None, None]
    assert found[2] is not None and found[2].wrong == 0


def test_widths_of_one_operation_alone_are_tried_and_separated(monkeypatch: pytest.MonkeyPatch) -> None:
    start = whole("HMMA.16816.F32")
    first, last = start.operations
    wide = [
        replace(s, fraction_bits=(("products", 27), ("c", 27))) if isinstance(s, Align) else s
        for s in first.steps
    ]
    wanted = start.with_operations((first.with_steps(wide), last))
    assert wanted is not None
    made = (move.apply(start) for move in neighbourhood.in_one_operation(start))
    assert wanted.operations in [new.operations for new in made if new is not None]
    search = _Search(FunctionUnit.like(start.instruction, start.dot), 60, 10_000, 0, None)
    monkeypatch.setattr(discriminate, "neighbours", lambda *_, **__: [])
    rivals = search._rivals(Fit(start, 0))  # no question refutes any
    assert rivals and all(len({o.steps for o in one.operations}) == 2 for _, one in rivals)


def chains(of: int, form: str, takes: Signature | None = None) -> list[Candidate]:
    made = skeletons(takes or whole(CHAIN, "turing").takes, None)
    found = [one for one in made if len(one.operations) == of and one.order.endswith(form)]
    return [one for one in found if of == 1 or one.operations[0].out_format.name == "f32"]


def test_orders_are_ranked_with_all_but_the_last_result_cut() -> None:
    start = chains(2, "one aligned sum, rounded to f32 first")[0]
    modes = [
        [step.rounding for o in one.operations for step in o.steps if isinstance(step, Round)]
        for one in fitting._other_ends(start)
        if one is not None
    ]
    assert ["toward_zero"] * 3 + ["nearest_even"] in modes


def test_orders_that_add_c_in_the_end_are_ranked_with_that_rounded_to_a_side() -> None:
    start = chains(3, "one aligned sum", plain().takes)[0]
    assert isinstance(start.operations[-1].final, Additions)
    ends = [one.operations for one in fitting._other_ends(start) if one is not None]
    for mode in ("down", "up", "toward_zero"):
        assert start.with_last(Additions, rounding=mode).operations in ends  # type: ignore[union-attr]


def test_the_terms_of_every_second_operation_are_turned_where_each_turns_the_result_before() -> None:
    """c is turned twice, so that only answers to products show it."""
    made = chains(2, "one aligned sum")
    start = next(one for one in made if one.operations[0].k_index[-1] == 7)
    box = with_keys(start, Multiply, negate="c")
    bank = Bank(box.takes)
    for kind, operands in simple(box.takes, 12, np.random.default_rng(1)):
        bank.add(kind, operands, box.dot(**operands))
    made = starting_points.counted(bank, made)
    assert box.operations in [one.operations for one in made]
    assert start.operations not in [one.operations for one in made]


@pytest.mark.parametrize("wrong", ["ordinary", "special"])
def test_where_ordinary_questions_are_explained_orders_are_compared_on_all(
    wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all products are infinite, only special values tell orders."""
    ins, one = golden.instruction("volta", "HMMA.884.F32.F32"), plain()
    search, ordinary = _Search(FunctionUnit.like(ins, ins.dot), 60, 100_000, 0, None), Bank(one.takes)
    operands = {
        name: np.zeros((4, *codes.shape[1:]), codes.dtype) for name, codes in ordinary.operands.items()
    }
    ordinary.add("ordinary", operands, one.dot(**operands) ^ np.uint32(wrong == "ordinary"))
    search.state.fit = Fit(one, 1)
    search.bank.add("special", operands, one.dot(**operands) ^ np.uint32(1))
    used: list[Bank] = []
    monkeypatch.setattr(starting_points, "starts", lambda bank, some, *rest: used.append(some) or [])
    monkeypatch.setattr(fitting, "halved", lambda bank, *rest: used.append(bank) or [])
    search._nearer(ordinary, [one])
    assert used == [ordinary if wrong == "ordinary" else search.bank] * 2
