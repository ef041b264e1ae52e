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
from golden.identify.blackbox.product_groups import find_product_groups
from golden.identify.blackbox.step_changes import replaced_values
from golden.identify.blackbox.sum_order import find_order
from golden.identify.blackbox.templates import skeletons
from golden.number.frozen import replace
from golden.program.steps import Part, Replace, Step, Sum
from golden.unit import signature_of


def of(name: str) -> Candidate:
    ins = golden.instruction(*name.split(":")).stateless
    return candidate_of(signature_of(ins).stateless, ins)


def passes_of(one: Candidate) -> list[tuple[parts.Pass, ...]]:
    box = Box(one.instruction, 100_000, time.monotonic() + 60)
    return parts.find_passes(box, Bank(one.takes), np.random.default_rng(5))


def with_values(one: Candidate, changed: dict[tuple[str, int], dict[str, int]]) -> Candidate:
    """A unit whose parts, by operand and first place, have other keys."""

    def other(step: Step) -> Step:
        keys = changed.get((step.of[0], step.first), {}) if isinstance(step, Part) else {}
        return replace(step, **keys)

    made = one.with_each_step(other)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("name", "changed", "expected"),
    [  # bf16 has places 0 to 7, f16 and tf32 0 to 10; a part ends where the significand does
        ("f32.bf16.bf16.phase3", {}, [((5, 3), (7, 1))]),
        ("bf16.bf16.bf16.phase2", {}, [((0, 5), (7, 1))]),
        ("f32.f16.f16.hifi2", {}, [((0, 5), (0, 7)), ((5, 5), (0, 7))]),
        ("f32.bf16.bf16.hifi3", {}, [((0, 5), (0, 7)), ((5, 3), (0, 7)), ((0, 5), (7, 1))]),
        # The lowest place of a is in no part.
        (
            "bf16.tf32.tf32.hifi4",
            {},
            [((0, 5), (0, 7)), ((5, 5), (0, 7)), ((0, 5), (7, 4)), ((5, 5), (7, 4))],
        ),
        # Parts that overlap, with a gap between them, and without the hidden bit.
        ("f32.f16.f16.hifi2", {("a", 5): {"first": 4}}, [((0, 5), (0, 7)), ((4, 5), (0, 7))]),
        ("f32.bf16.bf16.hifi2", {("a", 0): {"bits": 1}}, [((0, 1), (0, 7)), ((5, 3), (0, 7))]),
        ("f32.f16.f16.hifi2", {("b", 0): {"first": 4}}, [((0, 5), (4, 7)), ((5, 5), (4, 7))]),
    ],
)
def test_bits_of_one_product_show_what_each_pass_reads(
    name: str, changed: dict[tuple[str, int], dict[str, int]], expected: list[parts.Pass]
) -> None:
    true = with_values(of(f"tensix_blackhole:mvmul.{name}"), changed)
    assert passes_of(true) == [tuple(expected)]
    made = parts.with_parts([tuple(expected)], skeletons(true.takes, None)[:1])
    turned = [new for one in made for new in parts.reordered(one) if new is not None and new.sound]
    assert first_places(true) in map(first_places, made)
    assert len(expected) == 1 or first_places(true)[::-1] in map(first_places, turned)


@pytest.mark.parametrize("name", ["m16n8k16.row.col.f32.f16.f16.f32", "m16n8k16.row.col.f16.f16.f16.f16"])
def test_whole_operands_are_not_taken_for_parts(name: str) -> None:
    whole = of(f"hopper:mma.sync.aligned.{name}")
    assert passes_of(whole) == []
    shapes = skeletons(whole.takes, None)[:4]
    assert parts.with_parts([], shapes) == shapes


@pytest.mark.parametrize("name", ["f32.bf16.bf16.phase3", "f32.bf16.bf16.hifi4"])
def test_groups_show_where_no_pass_reads_a_hidden_bit_and_in_ones_complement(name: str) -> None:
    """Powers of two are read as zeros by some passes; a sum in one's complement leaves a last place of what
    cancels. The groups of eight show all the same."""
    plain = of(f"tensix_blackhole:mvmul.{name}")
    for complement in ("none", "c"):

        def other(step: Step, word: str = complement) -> Step:
            return replace(step, complement=word) if isinstance(step, Sum) and "c" in step.of else step

        true = plain.with_each_step(other)
        assert true is not None
        box, bank = Box(true.instruction, 100_000, time.monotonic() + 60), Bank(true.takes)
        read = parts.as_read(box, passes_of(true))
        found = find_product_groups(read, bank, find_order(read, bank))
        assert found.members == (tuple(range(8)), tuple(range(8, 16)))


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
