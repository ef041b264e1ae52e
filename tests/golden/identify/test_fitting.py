"""Fits of a candidate to questions: what they find, and what they do not try twice."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import golden
from golden import stimuli
from golden.identify.blackbox import (
    candidates,
    fitting,
    joint_keys,
    moves,
    neighbourhood,
    starting_points,
    step_changes,
)
from golden.identify.blackbox.box import Bank, BudgetEnded
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.dissecting import _Search
from golden.identify.blackbox.questions import simple
from golden.identify.blackbox.sum_order import find_order
from golden.identify.blackbox.templates import skeletons
from golden.kernels.sum_tree import C, Node
from golden.model.instruction import Instruction
from golden.program.signature import Bits
from golden.program.steps import Additions, Align, Fma, Multiply, Round, SpecialValues
from golden.unit import FunctionUnit, signature_of

SMALL = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
Changed = Mapping[type, Mapping[str, Any]]


def candidate(ins: Instruction, changed: Changed) -> Candidate:
    """An instruction's program with other keys in some kinds of steps."""
    whole = Candidate(signature_of(ins).stateless, ins.program.operations, "")
    steps = [
        [replace(step, **changed.get(type(step), {})) for step in o.steps] for o in ins.program.operations
    ]
    found = whole.with_operations(o.with_steps(s) for o, s in zip(ins.program.operations, steps, strict=True))
    assert found is not None
    return found


def bank_of(one: Candidate, each: int) -> Bank:
    bank = Bank(one.takes)
    for index, kind in enumerate(stimuli.KINDS):
        operands = stimuli.generate(one.instruction, kind, each, np.random.default_rng([7, index]))
        bank.add(kind, operands, one.dot(**operands))
    return bank


def test_a_plain_alignment_is_tried_in_the_place_of_one_that_was_fitted_at_a_wrong_width() -> None:
    ins = golden.instruction("ampere", "HMMA.16816.F32")
    true = candidate(ins, {Align: {"rounding": "up", "fraction_bits": (("products", 25), ("c", 25))}})
    stuck = {"cut": "sticky_added", "fraction_bits": (("products", 16), ("c", 16))}
    bank, start = bank_of(true, 24), candidate(ins, {Align: stuck})
    wrong = fitting.wrong_of(bank, start)
    assert wrong
    tried = fitting.Fit(start, wrong), fitting.sample_of(bank, start, 1)
    plain = [move for move in joint_keys.joint(start) if move.value == "25, up, nothing else"]
    better = fitting._step(tried[1], tried[0], plain, time.monotonic() + 60)
    assert better is not None and better.wrong == 0


def test_ends_are_shown_for_chains_of_operations_too() -> None:
    """Masks showed a chain: no skeleton of it is one operation."""
    true = candidate(golden.instruction("ampere", "HMMA.16816.F32"), {Align: {"rounding": "up"}})
    plain = candidate(golden.instruction("ampere", "HMMA.16816.F32"), {Align: {"rounding": "down"}})
    assert len(true.operations) > 1
    assert any(one.operations == true.operations for one in starting_points.with_ends(plain, true))


def test_special_values_are_looked_for_in_any_registers_with_any_word() -> None:
    """Two keys at once: a scale that is a NaN shows the word, and the word shows where it is looked for."""
    name = (
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0"
    )
    ins = golden.instruction("rtx_blackwell", name)
    start = candidate(ins, {})
    true = candidate(ins, {SpecialValues: {"of": ("c", "scales"), "nan": 0x7FC00001}})
    tried = neighbourhood.single_changes(start, moves.Hints((0x7FC00001,), wide=False, faults=False))
    assert any((new := move.apply(start)) is not None and new.key == true.key for move in tried)


@pytest.mark.long
def test_what_few_steps_explain_is_not_said_in_many() -> None:
    """Eight operations of rounded products give nearly the same: of a million dot products two differ."""
    unit = golden.instruction("cdna2", "v_mfma_f32_32x32x8bf16_1k")
    search = _Search(FunctionUnit.like(unit, unit.dot), 300, 100_000, 0, None)
    search.state.tree = find_order(search.dense, search.bank)
    search._first_questions()
    search._first_candidate()
    assert search.state.fit is not None and search.state.fit.wrong == 0
    assert len(search.state.fit.candidate.operations) == 1


def kept(codes: Bits, bits: int) -> Bits:
    """f32 numbers cut to fewer fraction bits."""
    return np.asarray(codes & np.uint32(0x1_0000_0000 - (1 << (23 - bits))))


def test_slices_may_hand_on_more_than_the_result_holds_where_masks_show_no_order() -> None:
    takes = signature_of(golden.instruction("turing", "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32"))
    assert takes.formats["d"].name == "f16"
    chains = [one for one in skeletons(takes, None) if len(one.operations) == 2 and one.operations[1].k_index]
    assert {one.operations[0].out_format.name for one in chains} == {"f16", "f32"}


def test_integers_that_a_unit_gives_for_infinite_products_are_words_to_try() -> None:
    ins = golden.instruction("sapphire_rapids", "vpdpbusd")
    infinite: Changed = {Multiply: {"overflow_exponent": -20}}
    true, start = candidate(ins, {**infinite, Round: {"nan": 18}}), candidate(ins, infinite)
    bank = bank_of(true, 20)
    assert bank.wrong(start.program).any()
    found = fitting.fit(bank, fitting.Fit(start, fitting.wrong_of(bank, start)), time.monotonic() + 60)
    assert found.wrong == 0 and found.changes == ["round of total: nan = 18"]


def test_what_follows_registers_alike_is_checked_once_and_all_else_as_before() -> None:
    """Verdicts do not depend on what was checked before, and steps behind a rounding are checked for one."""
    ins = golden.instruction("cdna3", "v_mfma_f32_16x16x32_fp8_fp8")
    own = candidate(ins, {})
    some = list(neighbourhood.single_changes(own, moves.Hints(wide=False)))[::4]

    def verdicts(tried: list[moves.Move]) -> dict[str, bool]:
        candidates._begun.cache_clear()
        return {move.text: move.apply(own) is None for move in tried}

    found = verdicts(some)
    assert found == verdicts(some[::-1]) and True in found.values() and False in found.values()
    candidates._begun.cache_clear()
    one = own.operations[0]
    steps, places = one.steps, tuple(range(len(one.k_index)))
    first = candidates._begun(own.takes, places, False, len(one.addends), *one.formats).then(steps[0])
    by_nan = [first.then(replace(steps[1], nan=word)) for word in (0x7FC00000, 0x7FFFFFFF)]  # type: ignore[call-arg]
    assert by_nan[0] is by_nan[1] is not first.then(steps[2])


def test_groups_that_meet_c_by_its_leading_bit_may_be_rounded_twice_in_every_slice() -> None:
    ins = golden.instruction("rdna4", "v_wmma_bf16_16x16x16_bf16_w64")
    search = _Search(FunctionUnit.like(ins, ins.dot), 1e6, 200_000, 0, None)
    tree = find_order(search.dense, search.bank)
    shapes = [[(s.op, s.of, getattr(s, "format", None)) for s in o.steps] for o in ins.program.operations]
    found = [
        [[(s.op, s.of, getattr(s, "format", None)) for s in o.steps] for o in one.operations]
        for one in skeletons(signature_of(ins), tree)
    ]
    assert shapes in found


def test_a_width_that_is_a_bit_too_small_to_begin_with_puts_no_sum_behind_others() -> None:
    """A mask's small number is lost at 24 bits and not at 25: sums that are exact, or rounded twice, come
    nearer than the one that is a bit wider."""
    formats = {"a": "e3m2", "b": "e4m3", "c": "f16", "d": "f16"}
    takes = signature_of(FunctionUnit(lambda a, b, c: c, formats, 8))
    made = {one.order: one for one in skeletons(takes, Node((C, *range(8)), exact=True))}
    narrow, twice = made["one aligned sum"], made["one aligned sum, rounded to f32 first"]
    true = fitting.widened(narrow, 1)
    assert true is not None
    search = _Search(FunctionUnit.like(takes, true.dot), 1e6, 200_000, 0, None)
    find_order(search.dense, search.bank)
    near = list(fitting._directed(search.bank, [narrow], time.monotonic() + 60))
    assert [dict(one.steps_of(Align)[0].fraction_bits)["c"] for one in near] == [24, 29]
    ranked = [fitting.Fit(twice, 1), fitting.Fit(near[1], 5), fitting.Fit(narrow, 40)]
    first = fitting._both_kinds(ranked, 1, 8)[0]
    assert first.candidate is near[1] and fitting._both_kinds(ranked, 1, 0)[0].candidate is twice


def test_chains_that_add_the_last_product_first_are_tried_where_masks_show_no_order() -> None:
    """A unit that rounds to odd, or leaves c out, shows none."""
    true = candidate(golden.instruction("sapphire_rapids", "vdpbf16ps"), {Fma: {"rounding": "to_odd"}})
    assert true.operations[0].k_index == (1, 0)
    bank = bank_of(true, 10)
    made = [
        one.with_operations(o.with_steps(true.operations[0].steps) for o in one.operations)
        for one in skeletons(true.takes, None)
        if one.order.startswith("chain of fused multiply-adds from c")
    ]
    assert [one.program for one in made if one is not None and bank.explained(one.program)]


def test_products_that_are_cut_down_before_c_meets_them_by_its_leading_bit_are_a_start() -> None:
    true = candidate(golden.instruction("rdna4", "v_dot2_f16_f16"), {})
    bank, by_name = bank_of(true, 60), {one.order: one for one in skeletons(true.takes, None)}
    by_magnitude, down = (
        fitting.wrong_of(bank, by_name[f"{dot}, then c aligned by its leading bit"])
        for dot in ("aligned dot product", "dot product aligned down")
    )
    assert 0 < down < by_magnitude


def test_special_values_that_are_left_to_the_rounding_take_the_word_with_them() -> None:
    """A unit that looks at c alone has a word for what is rounded, too: one word for all was the nearest, and
    no single change was nearer."""
    ins = golden.instruction("rdna4", "v_dot2_f32_f16")
    rounded, own = 0x7FC00001, 0xFFC00000
    true = candidate(ins, {SpecialValues: {"of": ("c",), "nan": own}, Round: {"nan": rounded}})
    start = candidate(ins, {SpecialValues: {"of": ("products", "c"), "nan": rounded}})
    tried = neighbourhood.single_changes(start, moves.Hints((rounded, own)))
    assert any((new := move.apply(start)) is not None and new.key == true.key for move in tried)


@pytest.mark.parametrize(
    ("found", "true"),
    [
        ({"of": ("products", "c"), "nan": 0x7FC00001}, {"of": ("c",), "nan": 0x7FC00001}),
        ({"of": ("products", "c"), "nans": (("factor", 0x7FC00001),)}, {"of": ("c",)}),
        ({"of": ("products", "c"), "opposite_infinities": "last"}, {"of": ("c",)}),
    ],
)
def test_fewer_registers_are_tried_in_the_place_of_what_stood_in_for_them(
    found: dict[str, Any], true: dict[str, Any]
) -> None:
    """The words, their causes and which infinity wins are nearest to a unit that looks only at c, except for
    NaNs of c together with others: a word for what is found in c and another for the rest are one change."""
    ins = golden.instruction("rdna4", "v_dot2_f32_f16")
    own: dict[str, Any] = {"nan": 0x7FC00000, "nans": ()}
    wanted = candidate(ins, {SpecialValues: own | true, Round: {"nan": 0xFFC00000}})
    start = candidate(ins, {SpecialValues: own | found})
    tried = neighbourhood.single_changes(start, moves.Hints((0xFFC00000, 0x7FC00001)))
    assert any((new := move.apply(start)) is not None and new.key == wanted.key for move in tried)


def test_special_values_of_earlier_results_alone_are_looked_for() -> None:
    """Of an operation that adds c to an earlier result: which infinity wins stood in for it."""
    takes = candidate(golden.instruction("ampere", SMALL), {}).takes
    two = next(one for one in skeletons(takes, None) if one.order == "exact dot product in f32, then c")
    dot, add = two.operations

    def of(**keys: Any) -> Candidate:
        steps = [replace(s, **keys) if isinstance(s, SpecialValues) else s for s in add.steps]
        made = two.with_operations((dot, add.with_steps(steps)))
        assert made is not None
        return made

    start, true = of(opposite_infinities="last"), of(of=("addends",))
    tried = neighbourhood.single_changes(start, moves.Hints())
    assert any((new := move.apply(start)) is not None and new.key == true.key for move in tried)


def test_sums_of_groups_that_are_cut_down_are_a_start() -> None:
    """Products are cut by magnitude, and their sums, which are in two's complement, down."""
    true = candidate(golden.instruction("cdna3", "v_mfma_f32_16x16x32_fp8_fp8"), {})
    tree = Node((*range(16, 32), Node((C, *range(16)))))
    by_name = {one.order.rpartition(": ")[2]: one for one in skeletons(true.takes, tree)}
    bank = bank_of(true, 20)
    by_magnitude, down = (
        fitting.wrong_of(bank, by_name[f"groups (interleaved 2) aligned, {sums}, then c"])
        for sums in ("aligned", "groups down")
    )
    assert 0 < down < by_magnitude


def test_an_adder_that_hands_on_nans_shows_the_word_of_what_made_them() -> None:
    """As the adder's own word it explains most, and then neither change alone explains more."""
    ins = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
    two = next(one for one in skeletons(candidate(ins, {}).takes, None) if "in f32, then c" in one.order)
    dot, add = two.operations
    rounded = next(s for s in two.operations[0].steps if isinstance(s, SpecialValues))
    adder = Additions(
        of=("c", "addends"), to="d", order="sequential", rounding="nearest_even", format=add.out_format
    )

    def made(word: int, **keys: Any) -> Candidate:
        inner = [replace(s, nan=word) if s == rounded else s for s in dot.steps]
        found = two.with_operations((dot.with_steps(inner), add.with_steps([replace(adder, **keys)])))
        assert found is not None
        return found

    own, shown = 0x7FC00000, 0x7FFFFFFF
    start, true = made(own, nan=shown), made(shown, nan=shown, first_nan=True)
    tried = neighbourhood.single_changes(start, moves.Hints((shown,)))
    assert any((new := move.apply(start)) is not None and new.key == true.key for move in tried)


def test_of_a_candidate_that_is_wrong_on_a_handful_more_is_asked_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ins = golden.instruction("volta", "HMMA.884.F32.F32")
    near = candidate(ins, {Align: {"fraction_bits": (("products", 16), ("c", 16))}})
    search = _Search(FunctionUnit.like(ins, ins.dot), 60, 100_000, 0, None)
    differing = np.flatnonzero(bank_of(candidate(ins, {}), 8).wrong(near.program))
    kept = np.setdiff1d(np.arange(8 * len(stimuli.KINDS)), differing[1:])
    search.bank = bank_of(candidate(ins, {}), 8).part(kept)
    before = fitting.Fit(near, fitting.wrong_of(search.bank, near))
    given: list[int] = []

    def fit(bank: Bank, start: fitting.Fit, *rest: Any) -> fitting.Fit:
        given.append(start.wrong)
        bank.spent.add(start.candidate.operations)
        return start

    monkeypatch.setattr(fitting, "rank", lambda *rest: [before])
    monkeypatch.setattr(fitting, "fit", fit)
    search._fitted_start(search.bank, [near], None)
    assert before.wrong == given[0] == 1 and given[1] > 20


@pytest.mark.parametrize(("wrong", "asked"), [(1, ["round"]), (9, [])])
def test_what_single_changes_leave_of_a_handful_of_counterexamples_is_asked_about(
    wrong: int, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ins = golden.instruction("ampere", SMALL)
    search, one = _Search(FunctionUnit.like(ins, ins.dot), 60, 100_000, 0, None), candidate(ins, {})
    search.bank = bank_of(one, 24)
    search.bank.answers[:wrong] ^= 1
    search.state.fit = fitting.Fit(one, wrong)
    done: list[Any] = []

    def refit(self: _Search, starts: Any, quick: bool = False) -> None:
        done.append("fit")
        if done.count("fit") > 1:
            raise BudgetEnded

    monkeypatch.setattr(_Search, "_refit", refit)
    monkeypatch.setattr(_Search, "_ask_wrong_again", lambda *given: None)
    monkeypatch.setattr(_Search, "_round", lambda self, share: done.append("round"))
    with pytest.raises(BudgetEnded):
        search._check()
    assert done == ["fit", *asked, "fit"]


def test_sums_may_hand_on_nans_that_multiply_adds_do_not() -> None:
    """Of chains of multiply-adds whose sums are added: from one word for all results, with which no operand's
    NaN goes on, it is one change to sums that hand on what the chains answer."""
    ins = golden.instruction("granite_rapids", "tdpfp16ps")
    quiet = {"nan": 0x7FC00001}
    start = candidate(ins, {Fma: quiet | {"nan_order": ()}, Additions: quiet | {"first_nan": False}})
    wanted = candidate(ins, {Fma: quiet | {"nan_order": ()}, Additions: quiet | {"first_nan": True}})
    assert start.operations != wanted.operations
    made = [move.apply(start) for move in step_changes._same_words(start, moves.Hints(words=(0x7FC00001,)))]
    assert wanted.operations in [one.operations for one in made if one is not None]


def test_the_next_change_is_the_one_that_explains_most() -> None:
    """Where one change explains most, the next ones are judged together with it. Normalised
    products explain many questions, a conversion of a and b explains all; the former hid the latter."""
    ins = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e5m2.f32")
    true = candidate(ins, {})
    bank = bank_of(true, 60)
    plain = true.with_operations(replace(o, operand_format=None) for o in true.operations)
    assert plain is not None
    every = {move.text: move for move in neighbourhood.single_changes(plain, moves.Hints())}
    more = [every["multiply of a and b: normalize = True"], every["a and b: format = f16"]]
    first = fitting.Fit(plain, fitting.wrong_of(bank, plain), ["another = change"])
    found = fitting._with_others(fitting.sample_of(bank, plain, 1), first, more, time.monotonic() + 60)
    normalized = more[0].apply(plain)
    assert normalized is not None and 0 < fitting.wrong_of(bank, normalized) < first.wrong  # it helps, too
    assert not found.wrong and found.changes[1:] == [more[1].text]


def test_a_window_of_all_registers_is_tried_with_terms_that_are_kept_whole() -> None:
    """A unit adds exactly what lies within 20 places of the largest exponent, and nothing else."""
    ins = golden.instruction("volta", SMALL)
    plain = candidate(ins, {})
    bits, window = (("products", 60), ("c", 60)), (("products", 20), ("c", 20))
    true = candidate(ins, {Align: {"fraction_bits": bits, "window": window}})
    bank = bank_of(true, 40)
    made = [move.apply(plain) for move in joint_keys.joint(plain) if move.key.endswith("window")]
    assert 0 in [fitting.wrong_of(bank, one) for one in made if one is not None]


@pytest.mark.long
def test_one_product_and_c_show_the_ends_of_every_order() -> None:
    """c is not read, zero times infinity is one, what is subnormal is flushed: as it was made, no chain of
    fused multiply-adds is near."""
    ins = golden.instruction("ampere", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64")
    changed = {"start": "zero", "flush": "positive", "zero_times_infinity": "infinity"}
    true = candidate(ins, {Fma: changed})
    bank = bank_of(true, 6)
    for kind, operands in simple(true.takes, 20, np.random.default_rng(3)):
        bank.add(kind, operands, true.dot(**operands))
    made = list(skeletons(true.takes, None))
    plain = sorted(fitting.wrong_of(bank, one) for one in made)
    best = starting_points.starts(bank, bank, made, time.monotonic() + 60)[0].candidate
    assert [type(step) for step in best.operations[0].steps] == [Fma]
    assert fitting.wrong_of(bank, best) < plain[0] // 4


@pytest.mark.parametrize(("wrong", "calls"), [(1, 2), (9, 1)])
def test_a_near_start_goes_on_before_others_are_looked_for(
    wrong: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ins = golden.instruction("ampere", SMALL)
    search = _Search(FunctionUnit.like(ins, ins.dot), 60, 100_000, 0, None)
    one = candidate(ins, {})
    search.bank = bank_of(one, 8)
    search.bank.answers[:wrong] ^= 1
    tried: list[Candidate] = []

    def fit(bank: Bank, start: fitting.Fit, *rest: Any) -> fitting.Fit:
        tried.append(start.candidate)
        return start

    monkeypatch.setattr(fitting, "rank", lambda *given: [fitting.Fit(one, wrong)])
    monkeypatch.setattr(_Search, "_query_near", lambda *given: None)
    monkeypatch.setattr(_Search, "_ask_wrong_again", lambda *given: None)
    monkeypatch.setattr(fitting, "fit", fit)
    search._fitted_start(search.bank, [one], None)
    assert tried == [one] * calls


def test_of_starts_that_are_as_near_one_of_each_kind_is_fitted() -> None:
    """Ordinary operands of few binades tell no exact sum from rounded ones; words of NaNs come later."""
    made = list(skeletons(signature_of(golden.instruction("ampere", SMALL)), None))
    chain, adds, exact = (
        next(one for one in made if one.order.startswith(name))
        for name in (
            "chain of fused multiply-adds from zero",
            "rounded additions of the products (seq",
            "one exact",
        )
    )
    for wrong, best in ((0, [chain, exact]), (1, [chain, adds])):
        fits = [fitting.Fit(chain, 0), fitting.Fit(adds, 0), fitting.Fit(exact, wrong)]
        assert [one.candidate for one in fitting.of_both_kinds(fits, 2)] == best
    mixed = [fitting.Fit(one, 0) for one in (exact, adds, chain)]
    assert [one.candidate for one in fitting.of_both_kinds(mixed, 2)] == [exact, adds]
