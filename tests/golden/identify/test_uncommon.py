"""Starts and changes for units that no datapath is known to have: scales that nothing is multiplied by,
integers that are made of floats, and steps beside each other that are seldom so."""

from __future__ import annotations

import numpy as np
import pytest

from golden.identify.blackbox import moves, neighbourhood, starting_points
from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.questions import simple
from golden.identify.blackbox.templates import skeletons
from golden.program.signature import Signature
from golden.program.steps import Scale
from golden.unit import FunctionUnit, signature_of


def small(**formats: str) -> Signature:
    """Two products and c; with scales they share one."""
    more = {"scale_block": 2} if "scale_a" in formats else {}
    return signature_of(FunctionUnit(lambda **_: np.zeros(1), formats, 2, **more))


SCALED = {"a": "e4m3", "b": "e4m3", "c": "f32", "d": "f32", "scale_a": "ue8m0", "scale_b": "ue8m0"}


@pytest.mark.parametrize("multiplied", [True, False])
def test_scales_count_where_answers_to_one_product_show_that(multiplied: bool) -> None:
    """Units can look for special values among their scales and multiply nothing by them."""
    takes = small(**SCALED)
    made = skeletons(takes, None)
    exact = next(one for one in made if one.order == "one exact sum")
    true = exact if multiplied else starting_points._unscaled(exact)
    assert true is not None
    bank = Bank(takes)
    for kind, operands in simple(takes, 20, np.random.default_rng(3)):
        bank.add(kind, operands, true.dot(**operands))
    found = starting_points.counted(bank, made)
    scaled = {any(isinstance(s, Scale) for o in one.operations for s in o.steps) for one in found}
    assert true.operations in [one.operations for one in found]
    assert scaled == ({True, False} if multiplied else {False})  # chains of multiply-adds have no products


def test_scales_are_put_in_and_left_out() -> None:
    exact = next(one for one in skeletons(small(**SCALED), None) if one.order == "one exact sum")
    without = starting_points._unscaled(exact)
    assert without is not None
    for tried, start, wanted in (
        (neighbourhood.single_changes, exact, without),
        (neighbourhood.uncommon_changes, without, exact),
    ):
        given = (moves.Hints(wide=False),) if tried is neighbourhood.single_changes else ()
        made = [move.apply(start) for move in tried(start, *given)]
        assert wanted.key in [one.key for one in made if one is not None]


def test_integers_that_are_made_of_floats_have_special_values() -> None:
    def ops(takes: Signature) -> set[tuple[str, ...]]:
        return {tuple(s.op for s in o.steps) for one in skeletons(takes, None) for o in one.operations}

    floats, integers = small(a="f16", b="f16", c="f32", d="s32"), small(a="s8", b="s8", c="s32", d="s32")
    assert ("multiply", "special_values", "sum", "round") in ops(floats)
    assert not any("special_values" in steps for steps in ops(integers))
