"""Starts and changes for units that no datapath is known to have: scales that nothing is multiplied by,
integers that are made of floats, and steps beside each other that are seldom so."""

from __future__ import annotations

import numpy as np

from golden.identify.blackbox.templates import templates
from golden.program.signature import Signature
from golden.unit import FunctionUnit, signature_of


def small(**formats: str) -> Signature:
    """Two products and c; with scales they share one."""
    more = {"scale_block": 2} if "scale_a" in formats else {}
    return signature_of(FunctionUnit(lambda **_: np.zeros(1), formats, 2, **more))


SCALED = {"a": "e4m3", "b": "e4m3", "c": "f32", "d": "f32", "scale_a": "ue8m0", "scale_b": "ue8m0"}


def test_integers_that_are_made_of_floats_have_special_values() -> None:
    def ops(takes: Signature) -> set[tuple[str, ...]]:
        return {tuple(s.op for s in o.steps) for one in templates(takes, None) for o in one.operations}

    floats, integers = small(a="f16", b="f16", c="f32", d="s32"), small(a="s8", b="s8", c="s32", d="s32")
    assert ("multiply", "special_values", "sum", "round") in ops(floats)
    assert not any("special_values" in steps for steps in ops(integers))
