"""Starts of the search and the changes that lead on from them where single ones do not."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import golden
from golden.identify.blackbox import (
    early_overflow,
    fitting,
    joint_keys,
    moves,
    starting_points,
    structure,
)
from golden.identify.blackbox.box import Bank, BudgetEnded
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.dissecting import _Search
from golden.identify.blackbox.fitting import Effort, Fit
from golden.identify.blackbox.policy import FITS, STARTS
from golden.identify.blackbox.questions import simple
from golden.identify.blackbox.templates import skeletons
from golden.number.formats import get_format
from golden.program.signature import Signature
from golden.program.steps import Additions, Align, Multiply, Round, SpecialValues, Step
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


def test_what_is_spared_and_the_side_that_numbers_are_cut_to_are_changed_together() -> None:
    start = with_keys(plain(), Align, rounding="toward_zero")
    wanted = with_keys(start, Align, rounding="down", spared=(("products", -140),))
    assert wanted.operations in reached(start)


def test_zeros_take_part_in_the_maximum_together_with_the_format_of_products() -> None:
    """Products that a format holds are the same in it, but for the exponent of a zero."""
    start = plain()
    rounded = with_keys(start, Multiply, format=get_format("f32"), rounding="toward_zero")
    wanted = with_keys(rounded, Align, zeros="maximum")
    assert wanted.operations in reached(start)


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


def test_orders_are_told_apart_where_products_overflow_early() -> None:
    """They differ in what is kept below the last bit, next to ties."""
    some = [*chains(1, "one exact sum, rounded in f64"), *chains(8, "operations: one aligned sum")[:1]]
    those = [new for one in some if (new := structure.overflowing(one, -20)) is not None]
    asked = early_overflow.between(those, -20, lambda *numbers: np.random.default_rng([3, *numbers]))
    assert asked is not None and len(asked["a"]) >= 4
    one, other = (each.dot(**asked) for each in those)
    assert (one != other).all()
    assert np.isfinite(golden.to_float("f16", one)).all()
    ranked = [Fit(one, wrong) for one, wrong in zip((*those, plain()), (3, 4, 15), strict=True)]
    assert early_overflow.alike_so_far(ranked, 1000) == those


def test_skeletons_get_what_the_best_candidate_does_before_and_after_the_sum() -> None:
    best = with_keys(plain(), Align, fraction_bits=(("products", 9), ("c", 9)), floor=-2)
    best = with_keys(best, SpecialValues, opposite_infinities="negative")
    bank = Bank(best.takes)
    made = [one for one in skeletons(best.takes, None) if one.order == "one aligned sum"]
    (start,) = starting_points.anew(best, [Fit(one, 0) for one in made], bank, 8)
    (align,) = start.candidate.operations[0].steps_of(Align)
    (specials,) = start.candidate.operations[0].steps_of(SpecialValues)
    assert align == made[0].operations[0].steps_of(Align)[0]
    assert specials.opposite_infinities == "negative"


@pytest.mark.parametrize(("wrong", "then"), [(3, Effort.SINGLE), (9, Effort.INSTEAD)])
def test_a_start_that_explains_more_from_the_beginning_goes_on_with_the_least_effort(
    wrong: int, then: Effort, monkeypatch: pytest.MonkeyPatch
) -> None:
    ins = golden.instruction("volta", "HMMA.884.F32.F32")
    search, one = _Search(FunctionUnit.like(ins, ins.dot), 60, 100_000, 0, None), plain()
    operands = {
        name: np.zeros((500, *codes.shape[1:]), codes.dtype)
        for name, codes in Bank(one.takes).operands.items()
    }
    search.bank.add("zeros", operands, one.dot(**operands))
    search.bank.answers[:9] ^= 1
    search.state.fit = Fit(one, 9)
    done: list[Any] = []

    def also(self: _Search, starts: list[Fit]) -> None:
        done.append("anew")
        self.state.fit = Fit(one, wrong)

    def refit(self: _Search, starts: Any, effort: Effort, quick: bool = False) -> None:
        done.append(effort)
        if "anew" in done:
            raise BudgetEnded

    monkeypatch.setattr(_Search, "_also", also)
    monkeypatch.setattr(_Search, "_refit", refit)
    monkeypatch.setattr(_Search, "_ask_wrong_again", lambda *given: None)
    monkeypatch.setattr(_Search, "_round", lambda self, share: done.append("round"))
    with pytest.raises(BudgetEnded):
        search._check()
    assert done == [Effort.SINGLE, Effort.FEW, Effort.ANY, "round", "anew", then]
    assert STARTS.anew > 1


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
