"""Parts of operands and replaced values: what answers show of them, held against units that have them."""

from __future__ import annotations

import time

import numpy as np
import pytest

import golden
from golden import stimuli
from golden.identify.blackbox import fitting, moves, neighbourhood, parts
from golden.identify.blackbox.box import Bank, Box
from golden.identify.blackbox.candidates import Candidate, candidate_of
from golden.identify.blackbox.questions import simple
from golden.identify.blackbox.replaced_values import replaced_values
from golden.identify.blackbox.templates import skeletons
from golden.program.steps import Part, Replace
from golden.unit import signature_of


def of(name: str) -> Candidate:
    ins = golden.instruction(*name.split(":")).stateless
    return candidate_of(signature_of(ins).stateless, ins)


def one_product(one: Candidate) -> Bank:
    """Answers to few terms, as the search asks for them."""
    bank = Bank(one.takes)
    for kind, operands in simple(one.takes, 20, np.random.default_rng(3)):
        bank.add(kind, operands, one.dot(**operands))
    return bank


@pytest.mark.parametrize(
    ("name", "a", "b"),
    [  # bf16 has places 0 to 7, sm11 0 to 9; a part ends where the significand does
        ("bf16.bf16.phase1", (5, 3), (0, 7)),
        ("bf16.bf16.phase2", (0, 5), (7, 1)),
        ("bf16.bf16.phase3", (5, 3), (7, 1)),
        ("f16.f16.phase1", (5, 5), (0, 7)),
    ],
)
def test_one_product_shows_which_bits_a_multiplier_reads(
    name: str, a: tuple[int, int], b: tuple[int, int]
) -> None:
    """Also where it reads no hidden bit; every skeleton begins with these parts."""
    bank = one_product(of(f"tensix_blackhole:mvmul.f32.{name}"))
    shapes = skeletons(bank.takes, None)[:4]
    for one in parts.with_parts(bank, shapes):
        read = {step.of: (step.first, step.bits) for step in one.steps_of(Part)}
        assert read == {("a",): a, ("b",): b}


def test_whole_operands_are_not_taken_for_parts() -> None:
    whole = of("hopper:mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    bank = one_product(whole)
    shapes = skeletons(bank.takes, None)[:4]
    assert parts.with_parts(bank, shapes) == shapes
    parts.find_divisions(
        Box(whole.instruction, 100_000, time.monotonic() + 60), bank, np.random.default_rng(5)
    )
    assert parts.with_parts(bank, shapes) == shapes


@pytest.mark.parametrize("name", ["f32.f16.f16.hifi2", "bf16.tf32.tf32.hifi4", "f32.bf16.bf16.hifi3"])
def test_next_to_c_it_shows_where_passes_divide_a_significand(name: str) -> None:
    """The skeletons read in every pass what the unit reads in it; the lowest places of f16 and tf32 may stay
    in the last part, if no pass reads them."""
    true = of(f"tensix_blackhole:mvmul.{name}")
    bank = one_product(true)
    parts.find_divisions(
        Box(true.instruction, 100_000, time.monotonic() + 60), bank, np.random.default_rng(5)
    )
    made = parts.with_parts(bank, skeletons(bank.takes, None)[:1])
    turned = [new for one in made for new in parts.reordered(one) if new is not None and new.sound]
    assert first_places(true) in map(first_places, made)
    assert first_places(true)[::-1] in map(first_places, turned)


def divided(one: Candidate, bank: Bank) -> None:
    box = Box(one.instruction, 100_000, time.monotonic() + 60)
    parts.find_divisions(box, bank, np.random.default_rng(5))


def first_places(one: Candidate) -> list[list[int]]:
    """Where the parts of each pass begin, a before b."""
    every = ([step.first for step in o.steps if isinstance(step, Part)] for o in one.operations)
    return [some for some in every if some]


def test_a_value_that_is_replaced_shows_in_the_ratio_of_wrong_answers() -> None:
    """Wormhole's sum of exactly -1 unit comes out as -2^27 units."""
    true = of("tensix_wormhole:mvmul.f32.bf16.bf16.lofi")
    plain = true.with_operations(
        o.with_steps(step for step in o.steps if not isinstance(step, Replace)) for o in true.operations
    )
    assert plain is not None
    bank = Bank(true.takes)
    for kind in ("cancelling", "tiny_zero_c"):  # some four in a thousand of either leave -1 unit
        operands = stimuli.generate(true.instruction, kind, 2000, np.random.default_rng(7))
        bank.add(kind, operands, true.dot(**operands))
    wrong = fitting.wrong_of(bank, plain)
    assert wrong > 0
    missed = fitting.sample_of(bank, plain, 1).missed
    made = [move.apply(plain) for move in replaced_values(plain, missed)]
    assert 0 in [fitting.wrong_of(bank, one) for one in made if one is not None]
    best = fitting.fit(bank, fitting.Fit(plain, wrong), time.monotonic() + 60)
    assert best.wrong == 0


def test_a_neighbour_is_none_exactly_where_no_unit_can_have_it() -> None:
    """Searches run a neighbour before they check it, and take it only if it is sound."""
    one = of("tensix_blackhole:mvmul.f32.bf16.bf16.phase1")
    refused = 0
    for move in list(neighbourhood.single_changes(one, moves.Hints()))[::7]:
        new = move.unchecked(one)
        assert (move.apply(one) is None) == (new is None or not new.sound), move.text
        refused += new is not None and not new.sound
    assert refused
