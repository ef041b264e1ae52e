"""Changes and starts for units that no known datapath has: scales that multiply nothing, integers that are
made of floats."""

from __future__ import annotations

import numpy as np

from golden.identify.blackbox import moves, neighbourhood
from golden.identify.blackbox.templates import skeletons
from golden.program.signature import Signature
from golden.program.steps import Scale
from golden.unit import FunctionUnit, signature_of


def small(**formats: str) -> Signature:
    """Two products and c; with scales they share one."""
    more = {"scale_block": 2} if "scale_a" in formats else {}
    return signature_of(FunctionUnit(lambda **_: np.zeros(1), formats, 2, **more))


SCALED = {"a": "e4m3", "b": "e4m3", "c": "f32", "d": "f32", "scale_a": "ue8m0", "scale_b": "ue8m0"}


def test_scales_are_left_out() -> None:
    exact = next(one for one in skeletons(small(**SCALED), None) if one.order == "one exact sum")
    made = [move.apply(exact) for move in neighbourhood.single_changes(exact, moves.Hints(wide=False))]
    without = [[s for s in o.steps if not isinstance(s, Scale)] for o in exact.operations]
    assert without in [[list(o.steps) for o in one.operations] for one in made if one is not None]


def test_integers_that_are_made_of_floats_have_special_values() -> None:
    def ops(takes: Signature) -> set[tuple[str, ...]]:
        return {tuple(s.op for s in o.steps) for one in skeletons(takes, None) for o in one.operations}

    floats, integers = small(a="f16", b="f16", c="f32", d="s32"), small(a="s8", b="s8", c="s32", d="s32")
    assert ("multiply", "special_values", "sum", "round") in ops(floats)
    assert not any("special_values" in steps for steps in ops(integers))
