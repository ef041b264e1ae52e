"""Units of several operations, each with special values, roundings and words of NaNs of its own: how they
differ from units of one operation, and the changes that lead there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

import golden
from golden import stimuli
from golden.catalog.unit_files import build_instruction
from golden.identify.blackbox import fitting, joint_keys, neighbourhood, starting_points
from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate, candidate
from golden.identify.blackbox.dissecting import dissect
from golden.identify.blackbox.moves import Hints, Move
from golden.identify.blackbox.questions import simple
from golden.identify.blackbox.sum_order import tree_of_unit
from golden.identify.blackbox.templates import skeletons
from golden.kernels.sum_tree import C, Node
from golden.number.formats import get_format
from golden.program.program import Program
from golden.program.steps import Align, Multiply, SpecialValues, Step, Sum
from golden.unit import FunctionUnit, signature_of
from golden.yamlfile import parse

BULK = golden.instruction("riscv", "vfwdota.vv.n8")
DOT, ADD = 0, 1
"""Its operations: the sum of the products, and c and that."""


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


def few(one: Candidate) -> Bank:
    bank = Bank(one.takes)
    for kind, operands in simple(one.takes, 40, np.random.default_rng(3)):
        bank.add(kind, operands, one.dot(**operands))
    return bank


def test_rounded_products_have_nans_of_their_own_format() -> None:
    """The word of a NaN of f32 is none of f16: with it the change would be refused."""
    start = bulk()
    assert next(s for s in start.operations[DOT].steps if isinstance(s, SpecialValues)).nan == 0x7FC00000
    rounded = bulk(kind=Multiply, format=get_format("f16"), nan=None)
    assert lead_to(neighbourhood.single_changes(start, Hints()), start, rounded)


def test_a_word_that_shows_without_c_alone_is_one_to_try() -> None:
    """9 is a number that c is added to: it is the answer where nothing else is there."""
    assert 9 in fitting.hints(few(bulk(kind=SpecialValues, nans=(("b", 9),)))).words


def test_an_alignment_is_put_in_with_its_width_and_rounding_at_once() -> None:
    true, (dot, add) = bulk(), BULK.program.operations
    exact = made([dot.with_steps(step for step in dot.steps if not isinstance(step, Align)), add])
    assert lead_to(joint_keys.joint(exact), exact, true)


def test_products_that_are_normalised_are_aligned_to_another_width_at_once() -> None:
    start = bulk(kind=Align, fraction_bits=(("products", 33),))
    assert lead_to(joint_keys.joint(start), start, bulk(kind=Multiply, normalize=True))


def test_what_no_finite_answer_shows_is_left_out_of_the_sums_to_begin_with() -> None:
    orders = skeletons(signature_of(BULK), None)
    for added, lost in ((("c",), "addends"), (("addends",), "c")):
        true = bulk(ADD, Sum, of=added)
        found = starting_points.counted(few(true), orders)
        assert any(lost not in step.of for o in found[0].operations for step in o.steps_of(Sum))
    assert starting_points.counted(few(bulk()), orders) == orders


def test_masks_show_the_order_where_products_overflow_early() -> None:
    slices = golden.instruction("ampere", "HMMA.16816.F32")
    early = [
        o.with_steps(replace(s, overflow_exponent=8) if isinstance(s, Multiply) else s for s in o.steps)
        for o in slices.program.operations
    ]
    unit = replace(slices, program=Program(tuple(early)))
    assert tree_of_unit(unit) == tree_of_unit(slices) is not None


def test_slices_that_masks_show_side_by_side_may_be_one_after_the_other() -> None:
    """Where M is not far above y, all y of a slice together are not lost against it in the next one."""
    true = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
    low, high = (tuple(k for k in range(16) if k // 2 % 2 == half) for half in (0, 1))
    side_by_side = Node((C, Node((Node(low), Node(high)))))
    chains = [
        [(o.seed, o.k_index, o.addends) for o in one.operations]
        for one in skeletons(signature_of(true), side_by_side)
        if one.order == "chain of 3 operations: one aligned sum"
    ]
    assert [("zero", low, ()), ("r0", high, ()), ("c", (), ("r1",))] in chains


def test_a_word_that_is_flushed_is_read_off_what_answers_are_above_the_least_c() -> None:
    """An operation gives 9 or 5 for a NaN of b, which is a number for the one that adds c, and is flushed
    where c is nothing. Where all NaNs are NaNs in the end, no other words are tried."""
    flushing = golden.instruction("armv9", "bfdot.4s")
    dot, add = flushing.program.operations
    for word in (9, 5):
        given = [replace(s, nans=(("b", word),)) if isinstance(s, SpecialValues) else s for s in dot.steps]
        true = candidate(signature_of(flushing), [dot.with_steps(given), add], "given")
        assert true is not None
        hidden = few(true)
        operands = stimuli.generate(true.takes, "special_values", 200, np.random.default_rng(3))
        hidden.add("special_values", operands, true.dot(**operands))
        assert word not in hidden.answers and {1, word} <= set(fitting.hints(hidden).words)
    plain = few(bulk())
    assert fitting.hints(plain).words == neighbourhood.nan_words(
        plain.takes.formats["d"], plain.answers.tolist()
    )


def test_a_word_for_infinite_products_of_both_signs_is_looked_for_too() -> None:
    """Where each NaN of a or b is one in the end, only such products show what 9 does."""
    flushing = golden.instruction("armv9", "bfdot.4s")
    dot, add = flushing.program.operations
    nans = (("opposite_products", 9),)
    given = [replace(s, nans=nans) if isinstance(s, SpecialValues) else s for s in dot.steps]
    true = candidate(signature_of(flushing), [dot.with_steps(given), add], "given")
    assert true is not None
    assert 1 in fitting.hints(few(true)).words
    bank, takes = Bank(true.takes), true.takes
    operands = stimuli.generate(takes, "zeros", 8, np.random.default_rng(3))
    operands["a"][:], operands["b"][:] = [0x7F80, 0x7F00], [0x3F80, 0xFF00]  # infinity, and -2^254
    operands["c"] = (0x00800000 + np.arange(8)).astype(np.uint32)
    bank.add("special_values", operands, true.dot(**operands))
    assert not (bank.answers == 0x7FC00000).any() and 9 in fitting.hints(bank).words


def test_rounded_products_may_be_added_before_c_where_masks_show_no_order() -> None:
    """Two of them are one group, as more are in groups."""
    pair = golden.instruction("armv9", "bfdot.4s")
    made = [one for one in skeletons(signature_of(pair), None) if "rounded products" in one.order]
    sums = [[s.of for s in one.operations[DOT].steps if isinstance(s, Sum)] for one in made]
    assert [("groups",)] in sums


def test_zero_is_a_word_where_it_is_the_answer_to_a_nan_whatever_c_is() -> None:
    takes = signature_of(BULK)
    operands = stimuli.generate(takes, "narrow", 40, np.random.default_rng(3))
    operands["b"][:, 0] = 0x7FC0
    for lost, words in ((40, [0, 1]), (5, [1])):
        bank = Bank(takes)
        answers = np.where(np.arange(40) < lost, 0, operands["c"]).astype(np.uint32)
        bank.add("special_values", operands, answers)
        assert fitting._added_words(bank) == words


def test_what_answers_are_above_c_can_be_out_of_range_and_is_no_word_then() -> None:
    takes = signature_of(BULK)
    operands = stimuli.generate(takes, "narrow", 8, np.random.default_rng(3))
    operands["b"][:, 0] = 0x7FC0
    operands["c"] = np.arange(0xFF7FFFF8, 0xFF800000, dtype=np.uint32)
    bank = Bank(takes)
    bank.add("special_values", operands, np.full(8, 0x7F7FFFFF, np.uint32))
    assert fitting._added_words(bank) == [1]


def test_a_number_for_nans_of_products_is_one_change_where_the_last_operation_had_it_for_all() -> None:
    """Most NaNs are answered by zero: the word of the last operation alone explains more than either."""
    start = bulk(ADD, SpecialValues, nan=0x7FC00000, nans=(("c", 0),))
    words = (0x7FC00001, 0)
    dot, add = bulk(DOT, SpecialValues, nan=words[0], nans=(("factor", 0),)).operations
    last = [replace(s, nan=words[0]) if isinstance(s, SpecialValues) else s for s in add.steps]
    true = made([dot, add.with_steps(last)])
    assert lead_to(neighbourhood.single_changes(start, Hints(words=words)), start, true)


GUARDED = """unit: guarded
shape: {k: 3}
define_formats:
  wide: {kind: float, storage: 64, exponent_bits: 8, fraction_bits: 26, bias: 127, specials: ieee}
formats: {a: bf16, b: bf16, c: f32, d: f32}
program:
- out: wide
  steps:
  - fma: {to: d, rounding: nearest_even, start: c}
- k: none
  steps:
  - round: {of: c, to: d, rounding: nearest_even, overflow: infinity, zero: signed}
"""


def test_a_chain_with_guard_bits_in_its_register_is_found() -> None:
    unit = build_instruction(parse(GUARDED))
    found = dissect(FunctionUnit.like(unit, unit.dot), seconds=60, asks=10_000)
    assert found.explains and found.instruction is not None, found
    assert found.instruction.program.operations[0].out_format.fraction_bits == 26
