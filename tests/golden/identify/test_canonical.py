"""Keys that make no difference: values reported as equal answer alike, the next value does not."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from changed_steps import step_lists

import golden
from golden import stimuli
from golden.identify.blackbox import discriminate
from golden.identify.blackbox.candidates import Candidate, candidate
from golden.identify.blackbox.discriminate import canonical_form
from golden.identify.blackbox.moves import Hints
from golden.identify.blackbox.neighbourhood import single_changes
from golden.program.steps import Align, Step, Sum
from golden.unit import signature_of

TURING = golden.instruction("turing", "HMMA.1688.F32")
"""One sum of f16 products and c in f32, aligned to 24 bits and cut."""


def changed(base: Candidate, kind: type[Step], **keys: Any) -> Candidate:
    """A candidate with other keys of its steps of a kind."""
    found = base.with_operations(
        o.with_steps([replace(s, **keys) if isinstance(s, kind) else s for s in o.steps])
        for o in base.operations
    )
    assert found is not None
    return found


def own() -> Candidate:
    found = candidate(signature_of(TURING).stateless, TURING.program.operations, "")
    assert found is not None
    return found


def operands(of: Candidate, kind: str, count: int, seed: int) -> Any:
    return stimuli.generate(of.instruction, kind, count, np.random.default_rng(seed))


def differ(one: Candidate, other: Candidate, each: int) -> int:
    """How many operands of every kind the two answer otherwise, aimed at either."""
    asked = [
        operands(target, kind, each, seed)
        for target in (one, other)
        for seed, kind in enumerate(stimuli.KINDS)
    ]
    return sum(int((one.dot(**part) != other.dot(**part)).sum()) for part in asked)


WIDE = {"fraction_bits": (("products", 30), ("c", 30))}
DOWN = {"rounding": "down"}


@pytest.mark.parametrize(
    ("kind", "base", "alike", "apart"),
    [
        (Align, {}, {"window": (("c", 24),)}, {"window": (("c", 23),)}),
        (Align, {}, {"window": (("products", 25),)}, {"window": (("products", 22),)}),
        (Align, {}, {"floor": -125}, {"floor": -124}),
        (Align, {}, {"spared": (("c", -140),)}, {"rounding": "nearest_even"}),
        (Align, DOWN, {"spared": (("c", 104),)}, {"spared": (("c", -60),)}),
        (Sum, {}, {"rounding": "down"}, {"complement": "c"}),
    ],
)
def test_a_key_that_makes_no_difference_is_left_out_and_one_further_is_not(
    kind: type[Step], base: dict[str, Any], alike: dict[str, Any], apart: dict[str, Any]
) -> None:
    one = changed(own(), kind, **base)
    same, other = changed(one, kind, **alike), changed(one, kind, **apart)
    assert same.key != one.key
    assert canonical_form(same) == canonical_form(one) != canonical_form(other)
    assert differ(one, same, 20) == 0 < differ(one, other, 100)
    rivals = [("same", same), ("other", other), ("again", changed(other, kind))]
    assert [key for key, _ in discriminate.distinguishable_rivals(one, rivals)] == ["other"]


def test_the_exponents_that_a_later_alignment_sees_are_no_value_alone() -> None:
    """A floor at which nothing is cut leaves all values as they are, and what is aligned next is cut."""
    one = own()
    cut = next(s for s in one.operations[0].steps if isinstance(s, Align))
    first = replace(cut, fraction_bits=(("products", 60), ("c", 60)))
    twice = one.with_operations(
        o.with_steps([x for s in o.steps for x in ((first, s) if s == cut else (s,))]) for o in one.operations
    )
    assert twice is not None
    floored = twice.with_operations(
        o.with_steps([replace(s, floor=-95) if s == first else s for s in o.steps]) for o in twice.operations
    )
    assert floored is not None
    assert canonical_form(floored) != canonical_form(twice) and differ(floored, twice, 200)


def test_programs_that_are_changed_at_random_answer_as_their_settled_forms() -> None:
    rng, seen = random.Random(3), 0
    lists = [one.stateless for one in step_lists().values() if one.pattern is None and one.k <= 16]
    for turn, ins in enumerate(rng.sample(lists, 8)):
        base = candidate(signature_of(ins).stateless, ins.program.operations, "")
        assert base is not None
        some = [
            m
            for m in single_changes(base, Hints())
            if m.key.startswith(("align", "sum", "normal", "round", "special"))
        ]
        for first, then in zip(rng.choices(some, k=4), rng.choices(some, k=4), strict=True) if some else ():
            one = first.apply(base) or base
            one = then.apply(one) or one
            form = canonical_form(one)
            if form != tuple(o.arithmetic for o in one.operations):
                seen += 1
                kinds = rng.sample(list(stimuli.KINDS), 4)
                assert differ_in(one, Candidate(one.takes, form, ""), kinds, turn) == 0
    assert seen > 8


def differ_in(one: Candidate, other: Candidate, kinds: list[str], seed: int) -> int:
    parts = [operands(one, kind, 60, seed) for kind in kinds]
    return sum(int((one.dot(**part) != other.dot(**part)).sum()) for part in parts)
