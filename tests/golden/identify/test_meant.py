"""A search that begins with what the box is meant to be, and does not believe it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import golden
from golden.catalog.relatives import arithmetic
from golden.errors import OperandError
from golden.identify.blackbox import dissecting
from golden.identify.blackbox.candidates import candidate_of
from golden.program.steps import Multiply
from golden.unit import FunctionUnit, signature_of
from golden.vectors.vectorset import default_set

MEANT = "what it is meant to be"
LIMITS: dict[str, Any] = {"seconds": 300, "asks": 16_000}


def two_products(name: str) -> Any:
    """The instruction with two products."""
    whole = golden.instruction("turing", name)
    (operation,) = whole.program.operations
    program = replace(whole.program, operations=(replace(operation, k_index=(0, 1)),))
    return replace(whole, k=2, program=program)


INTEGERS = two_products("IMMA.8816.S8.S8")


def plus(a: Any, b: Any, c: Any) -> Any:
    return (a.astype(np.int8).astype(np.int32) * b.astype(np.int8)).sum(axis=1).astype(np.uint32) + c


def minus(a: Any, b: Any, c: Any) -> Any:
    return plus(a, b, -c)


def test_a_fault_is_a_change_of_the_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    ranked, rank = list[int](), dissecting.fitting.rank

    def counted(*given: Any) -> Any:
        ranked.append(len(rank(*given)))
        return rank(*given)

    monkeypatch.setattr(dissecting.fitting, "rank", counted)
    found = golden.dissect(FunctionUnit.like(INTEGERS, minus), near=INTEGERS, **LIMITS)
    assert found.explains and found.instruction is not None and found.rules[0] == MEANT
    assert len(ranked) == 1 and ranked[0] > 0, "other orders are its rivals, and no start is needed"
    multiply, *others = found.instruction.program.operations[0].steps
    assert isinstance(multiply, Multiply) and multiply.negate == "c"
    assert others == list(INTEGERS.program.operations[0].steps[1:])


def test_what_it_is_meant_to_be_is_not_believed() -> None:
    """An instruction that saturates, where the box wraps."""
    saturating = two_products("IMMA.8816.S8.S8.SAT")
    found = golden.dissect(FunctionUnit.like(INTEGERS, plus), near=saturating, **LIMITS)
    assert found.explains and found.instruction is not None
    operands = default_set(INTEGERS, 5_000, seed=3).operands
    assert (found.instruction.dot(**operands) == INTEGERS.dot(**operands)).all()
    assert (saturating.dot(**operands) != INTEGERS.dot(**operands)).sum() > 100


def test_a_unit_of_one_mode_is_not_near_one_with_several() -> None:
    near = replace(INTEGERS, mode_units={0: INTEGERS})
    with pytest.raises(OperandError, match="'near' has modes"):
        golden.dissect(FunctionUnit.like(INTEGERS, plus), near=near, **LIMITS)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("IMMA.8816.U8.S8", "'near' has a u8, expected the box's a s8, b s8, c s32, d s32, k 2"),
        ("IMMA.8832.S4.S4", "'near' has a s4, b s4, expected"),
        ("IMMA.8816.S8.S8", "'near' has k 16, expected"),
    ],
)
def test_it_takes_what_the_box_takes(name: str, said: str) -> None:
    near = two_products(name) if "U8" in name else golden.instruction("turing", name)
    with pytest.raises(OperandError, match=said):
        golden.dissect(FunctionUnit.like(INTEGERS, plus), near=near, **LIMITS)


def test_starts_of_every_algorithm_can_be_looked_up() -> None:
    """Some algorithms have lists among their parameters, by which no program is known again."""
    for name in ("v_dot2_f32_f16", "v_wmma_f32_16x16x16_f16_w32"):
        ins = golden.instruction("rdna3", name)
        start = candidate_of(signature_of(ins), ins)
        assert start.key == arithmetic(ins) and len({*start.operations}) == len(ins.program.operations)
