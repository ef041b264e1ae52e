"""Starts of the search and the changes that lead on from them where single ones do not."""

from __future__ import annotations

import golden
from golden.identify.blackbox import ranking
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.templates import templates
from golden.program.signature import Signature
from golden.program.steps import Additions, Round
from golden.unit import signature_of

CHAIN = "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32"


def whole(name: str, architecture: str = "ampere") -> Candidate:
    ins = golden.instruction(architecture, name)
    return Candidate(signature_of(ins).stateless, ins.program.operations, "its own")


def plain() -> Candidate:
    return whole("HMMA.884.F32.F32", "volta")


def chains(of: int, form: str, takes: Signature | None = None) -> list[Candidate]:
    made = templates(takes or whole(CHAIN, "turing").takes, None)
    found = [one for one in made if len(one.operations) == of and one.order.endswith(form)]
    return [one for one in found if of == 1 or one.operations[0].out_format.name == "f32"]


def test_orders_are_ranked_with_all_but_the_last_result_cut() -> None:
    start = chains(2, "one aligned sum, rounded to f32 first")[0]
    modes = [
        [step.rounding for o in one.operations for step in o.steps if isinstance(step, Round)]
        for one in ranking._other_ends(start)
        if one is not None
    ]
    assert ["toward_zero"] * 3 + ["nearest_even"] in modes


def test_orders_that_add_c_in_the_end_are_ranked_with_that_rounded_to_a_side() -> None:
    start = chains(3, "one aligned sum", plain().takes)[0]
    assert isinstance(start.operations[-1].final, Additions)
    ends = [one.operations for one in ranking._other_ends(start) if one is not None]
    for mode in ("down", "up", "toward_zero"):
        assert ranking._adding(start, mode).operations in ends  # type: ignore[union-attr]
