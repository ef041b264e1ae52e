"""Rivals that differ in one number: which of them are run on operands."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import golden
from golden.identify.blackbox import discriminate
from golden.identify.blackbox.candidates import Candidate, candidate
from golden.identify.blackbox.discriminate import Between, number_of
from golden.identify.search import seldom_collected
from golden.program.steps import Align, Flush, SpecialValues
from golden.unit import signature_of

TURING = golden.instruction("turing", "HMMA.1688.F32")


def own(**keys: Any) -> Candidate:
    steps = [replace(s, **keys) if isinstance(s, Align) else s for s in TURING.program.operations[0].steps]
    operations = [one.with_steps(steps) for one in TURING.program.operations]
    found = candidate(signature_of(TURING).stateless, operations, "")
    assert found is not None
    return found


def test_a_number_is_found_where_nothing_else_differs() -> None:
    place = next(i for i, s in enumerate(TURING.program.operations[0].steps) if isinstance(s, Align))
    assert number_of(own(), own(floor=-130)) == ((place, "floor"), -130)
    assert number_of(own(), own(window=(("c", 9),))) == ((place, "window", "c"), 9)
    assert number_of(own(window=(("c", 9),)), own(window=(("c", 7),))) == ((place, "window", "c"), 7)
    others = ({"floor": -130, "rounding": "down"}, {"rounding": "down"}, {"zeros": "take_part"}, {})
    assert [number_of(own(), own(**keys)) for keys in others] == [None] * 4
    assert number_of(own(), own(floor=None)) is None


def test_ends_come_first_and_what_is_between_two_that_nothing_tells_is_left() -> None:
    rivals = [own(floor=-130), own(rounding="down"), own(floor=-140), own(floor=-150), own(floor=-145)]
    between = Between(own(), rivals)
    assert between.order == [3, 1, 0, 4, 2]
    between.note(3, False)
    assert not between.is_between(0)
    between.note(0, False)
    assert between.is_between(4) and between.is_between(2) and not between.is_between(1)


def test_where_an_end_is_told_the_next_one_is_looked_at() -> None:
    rivals = [own(floor=n) for n in (-150, -145, -140, -135, -130)]
    between = Between(own(), rivals)
    for place, told in ((0, False), (4, True), (1, False)):
        assert not between.is_between(place)
        between.note(place, told)
    assert not between.is_between(3)
    between.note(3, False)
    assert between.is_between(2)


def test_rivals_between_others_are_not_run_on_all_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    rivals = [("align of products and c: window", own(window=(("c", n),))) for n in range(40, 60)]
    run: list[Candidate] = []
    monkeypatch.setattr(discriminate._Pool, "distinguishes", lambda pool, rival, rng: bool(run.append(rival)))
    discriminate.questions(own(), rivals, 2, lambda *numbers: np.random.default_rng(numbers), 1e99)
    assert len({id(one) for one in run}) == 2


def test_thresholds_of_the_garbage_are_put_back_by_the_last_of_several_searches() -> None:
    before = gc.get_threshold()
    first, second = seldom_collected(), seldom_collected()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold() != before, "one of them still searches"
    second.__exit__(None, None, None)
    assert gc.get_threshold() == before


def test_what_differs_in_more_than_a_number_is_of_no_family() -> None:
    """A step more behind the one that differs, another register, another word for NaNs."""
    one = own()
    (operation,) = one.operations
    longer = operation.with_steps(
        (
            *own(floor=-130).operations[0].steps[:-1],
            Flush(of=("total",), sign="positive"),
            operation.steps[-1],
        )
    )
    assert number_of(one, Candidate(one.takes, (longer,), "")) is None
    moved = replace(own(floor=-130).operations[0], k_index=operation.k_index[::-1])
    assert number_of(one, Candidate(one.takes, (moved,), "")) is None
    words = [replace(s, nan=0x7F800001) if isinstance(s, SpecialValues) else s for s in operation.steps]
    assert number_of(one, Candidate(one.takes, (operation.with_steps(words),), "")) is None
