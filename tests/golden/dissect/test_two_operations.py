"""Units of several operations, each with special values, roundings and words of NaNs of its own: what tells
them from units of one, and the changes that lead there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import golden
from golden.dissect.blackbox import moves
from golden.dissect.blackbox.candidates import Candidate, candidate
from golden.dissect.blackbox.moves import Hints, Move
from golden.number.formats import get_format
from golden.program.steps import Multiply, SpecialValues, Step
from golden.unit import signature_of

BULK = golden.instruction("riscv", "vfwdota.vv.n8")
DOT = 0
"""Its first operation, the sum of the products: c is added by another one."""


def bulk(place: int = DOT, kind: type[Step] | None = None, **keys: Any) -> Candidate:
    """The unit with other keys in steps of one kind of one operation."""
    operations = list(BULK.program.operations)
    steps = (
        replace(step, **keys) if kind is not None and isinstance(step, kind) else step
        for step in operations[place].steps
    )
    operations[place] = operations[place].with_steps(steps)
    return made(operations)


def made(operations: Iterable[Any]) -> Candidate:
    found = candidate(signature_of(BULK), operations, "given")
    assert found is not None
    return found


def lead_to(tried: Iterable[Move], start: Candidate, true: Candidate) -> bool:
    """Whether one of some changes makes one unit of the other."""
    return any((new := move.apply(start)) is not None and new.key == true.key for move in tried)


def test_rounded_products_and_earlier_results_have_nans_of_their_own_format() -> None:
    """The word of a NaN of f32 is none of f16: with it the change would be refused."""
    start = bulk()
    assert next(s for s in start.operations[DOT].steps if isinstance(s, SpecialValues)).nan == 0x7FC00000
    rounded = bulk(kind=Multiply, format=get_format("f16"), nan=None)
    assert lead_to(moves.moves(start, Hints()), start, rounded)
    slices = golden.instruction("ampere", "HMMA.16816.F32")
    chain = Candidate(signature_of(slices), slices.program.operations, "given")
    results = {new.operations[0] for move in moves.moves(chain, Hints()) if (new := move.apply(chain))}
    half = [one for one in results if one.out_format == get_format("f16")]
    assert [(one.final.format, one.final.nan) for one in half] == [(get_format("f16"), 0x7E00)]
