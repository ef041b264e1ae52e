"""What distinguishes a candidate from its rivals, and what one counterexample leads to."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import golden
from golden import stimuli
from golden.catalog.lookup import resolve
from golden.identify.blackbox import discriminate, fitting
from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.dissecting import _Search
from golden.identify.blackbox.moves import Hints
from golden.identify.blackbox.neighbourhood import single_changes
from golden.identify.blackbox.questions import KINDS, among_zeros, simple
from golden.identify.blackbox.templates import align, skeletons
from golden.model.instruction import Instruction
from golden.program.keys import Candidate as MaximumOf
from golden.program.signature import Operands
from golden.program.steps import Additions, Align, Normalize, Round, SpecialValues, Step, Sum
from golden.unit import FunctionUnit, signature_of

CONVERTED = "mma.sync.aligned.m16n8k16.row.col.f16.e5m2.e4m3.f16"
"""Its e4m3 is converted to f16 first, in which subnormal numbers have other exponents: of a million operands
of every kind, four show it."""
SHOWS: Operands = {
    "a": np.array([[0, 0, 1, 244, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 116]], np.uint8),
    "b": np.array([[80, 32, 40, 4, 120, 40, 112, 120, 1, 8, 16, 112, 56, 8, 16, 4]], np.uint8),
    "c": np.array([0x8000], np.uint16),
}


def candidate(ins: Instruction) -> Candidate:
    return Candidate(signature_of(ins).stateless, ins.program.operations, "")


def bank_of(ins: Instruction, each: int) -> Bank:
    bank = Bank(signature_of(ins).stateless)
    for index, kind in enumerate(stimuli.KINDS):
        operands = stimuli.generate(ins, kind, each, np.random.default_rng([8, index]))
        bank.add(kind, operands, ins.dot(**operands))
    return bank


def test_one_counterexample_that_many_changes_explain_leads_to_the_one_that_holds_elsewhere() -> None:
    ins = golden.instruction("hopper", CONVERTED)
    start = candidate(ins).with_operations(replace(o, operand_format=None) for o in ins.program.operations)
    assert start is not None
    bank = bank_of(ins, 100)
    assert not bank.wrong(start.program).any()
    bank.add("shrunk", SHOWS, ins.dot(**SHOWS))
    found = fitting.fit(bank, fitting.Fit(start, 1), time.monotonic() + 60)
    assert found.wrong == 0


def test_questions_decide_what_the_bank_left_open() -> None:
    ins = golden.instruction("ampere", "HMMA.16816.F32")
    own = candidate(ins)

    def wider(step: Step) -> Step:
        more = [(name, bits + 1) for name, bits in step.fraction_bits] if isinstance(step, Align) else ()
        return replace(step, fraction_bits=tuple(more)) if isinstance(step, Align) else step

    rival = own.with_operations(o.with_steps([wider(s) for s in o.steps]) for o in ins.program.operations)
    assert rival is not None
    rivals = [("align of products and c: fraction_bits", rival), ("align of products and c: spared", own)]
    asked = discriminate.questions(
        own, rivals, 20, lambda *n: np.random.default_rng(n), time.monotonic() + 60
    )
    assert asked is not None and 1 <= len(asked["a"]) <= 8
    assert (rival.dot(**asked) != ins.dot(**asked)).all()
    only = rivals[1:]
    none = discriminate.questions(own, only, 20, lambda *n: np.random.default_rng(n), time.monotonic() + 60)
    assert none is None


def searched(ins: Instruction, kinds: tuple[str, ...], in_rounds: tuple[str, ...]) -> _Search:
    """A search that has asked some kinds of questions, and others in rounds that found nothing wrong."""
    search = _Search(FunctionUnit.like(ins, ins.dot), 60, 100_000, 0, None)
    for place, (bank, asked) in enumerate(((search.bank, kinds), (search.checked, in_rounds))):
        for index, kind in enumerate(asked):
            operands = stimuli.generate(ins, kind, 200, np.random.default_rng([7, place, index]))
            bank.add(kind, operands, ins.dot(**operands))
    return search


def test_what_an_earlier_round_ruled_out_is_not_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", time.process_time)  # not seconds of a loaded machine
    ins = golden.instruction("ampere", "HMMA.16816.F32")
    left = []
    for in_rounds in ((), stimuli.KINDS):
        search = searched(ins, ("narrow",), in_rounds)
        found = search._weigh(fitting.Fit(candidate(ins), 0)).properties
        left.append({(one.key, value) for one in found for value in one.undecided})
        assert left[-1] == {(one.key, value) for one in found for value, _ in one.alike}
        assert len(search.bank) < 1000, "the rounds stay where they are"
    assert ("align of products and c: floor", "-123") in left[0] - left[1], "subnormal operands show it"
    assert len(left[1]) < len(left[0])


def test_a_candidate_is_held_against_earlier_rounds() -> None:
    """Also where the time ended before it was asked about: the report counts what is known."""
    ins = golden.instruction("ampere", "HMMA.16816.F32")
    down = [
        o.with_steps([replace(s, rounding="down") if isinstance(s, Round) else s for s in o.steps])
        for o in ins.program.operations
    ]
    other = candidate(ins).with_operations(down)
    assert other is not None
    search = searched(ins, ("zeros",), ("narrow", "below_power"))
    search.state.fit = fitting.Fit(other, 0)
    found = search._found()
    assert set(found.differing) == {"zeros", "narrow", "below_power"}
    assert found.differing["narrow"][0] > 0 and found.wrong and not found.explains and not found.properties
    assert not search._recall(candidate(ins))
    assert search.dense.queries == search.box.queries == 0


def test_a_neighbour_is_a_rival_where_no_question_excluded_it() -> None:
    """Ordinary operands show nothing of overflow and subnormal results; operands of every kind do."""
    ins = golden.instruction("ampere", "HMMA.16816.F32")
    own, narrow = candidate(ins), Bank(signature_of(ins).stateless)
    operands = stimuli.generate(ins, "narrow", 200, np.random.default_rng(1))
    narrow.add("narrow", operands, ins.dot(**operands))
    far = time.monotonic() + 60
    open_with = {
        len(bank): {
            key
            for key, _ in discriminate.equivalent_neighbours(own, bank, discriminate.neighbours(own, ()), far)
        }
        for bank in (narrow, bank_of(ins, 100))
    }
    few, many = open_with.values()
    assert "round of total: overflow" in few and "round of total: flush" in few
    assert "round of total: flush" not in many


def test_every_least_exponent_has_operands_aimed_at_it() -> None:
    """-21 is what the chip has: operands aimed at the candidate, without any, or at floors far below show
    nothing of it."""
    ins = golden.instruction("hopper", "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16")
    bare = [
        replace(s, floor=None) if isinstance(s, Align) else s for o in ins.program.operations for s in o.steps
    ]
    start = candidate(ins).with_operations(o.with_steps(bare) for o in ins.program.operations)
    assert start is not None
    floors = [m for m in discriminate.neighbours(start, ()) if m.key == "align of products and c: floor"]
    rivals = [(move.key, new) for move in floors if (new := move.apply(start)) is not None]
    asked = discriminate.questions(
        start, rivals, 1, lambda *n: np.random.default_rng(n), time.monotonic() + 60
    )
    assert asked is not None
    assert (start.dot(**asked) != ins.dot(**asked)).any()


def without_opposite_products(step: Step) -> Step:
    if not isinstance(step, SpecialValues):
        return step
    return replace(step, nans=tuple(cause for cause in step.nans if cause[0] != "opposite_products"))


def positive_flush_of_pairs(step: Step) -> Step:
    if isinstance(step, Additions) and step.group is not None:
        return replace(step, flush="positive")
    return step


@pytest.mark.parametrize(
    ("name", "change", "key"),
    [
        ("cdna2:v_mfma_f32_32x32x4bf16", positive_flush_of_pairs, "sum of products: flush"),
        ("rdna4:v_dot4_f32_bf8_fp8", without_opposite_products, "special_values of products and c: nans"),
        ("rdna4:v_wmma_bf16_16x16x16_bf16_w64", without_opposite_products, "special_values: nans"),
    ],
)
def test_what_shows_only_where_nothing_else_has_a_say_is_asked(
    name: str, change: Callable[[Step], Step], key: str
) -> None:
    """Of a million operands of every kind aimed at the unit, one, eleven and some thousand tell the two."""
    true = candidate(resolve(name))
    taken = true.with_operations(o.with_steps(map(change, o.steps)) for o in true.operations)
    assert taken is not None and taken.key != true.key
    asked = discriminate.questions(
        taken, [(key, true)], 1000, lambda *n: np.random.default_rng([3, *n]), time.monotonic() + 60
    )
    assert asked is not None and (true.dot(**asked) != taken.dot(**asked)).any()


def test_a_table_of_causes_with_one_more_is_a_rival() -> None:
    true = candidate(resolve("rdna4:v_dot4_f32_bf8_fp8"))
    taken = true.with_operations(
        o.with_steps(map(without_opposite_products, o.steps)) for o in true.operations
    )
    assert taken is not None
    words = (0xFFC0FFFD,)
    made = [move.apply(taken) for move in discriminate.neighbours(taken, words, causes=True)]
    bank = Bank(true.takes)
    for index in range(8):
        operands = stimuli.generate(
            true.instruction, "special_values", 4000, np.random.default_rng([9, index])
        )
        bank.add("special_values", operands, true.dot(**operands))
    few = among_zeros(true.takes, bank.operands, np.random.default_rng(1))
    bank.add("few", few, true.dot(**few))
    assert bank.wrong(taken.program).any()
    assert any(one is not None and not bank.wrong(one.program).any() for one in made)


def test_first_questions_show_the_order_of_causes() -> None:
    """Among all operands random ones have a NaN factor nearly always, and nothing else is seen."""
    true = candidate(resolve("rdna4:v_wmma_bf16_16x16x16_bf16_w64"))
    taken = true.with_operations(
        o.with_steps(map(without_opposite_products, o.steps)) for o in true.operations
    )
    assert taken is not None
    bank = Bank(true.takes)
    for kind, operands in simple(true.takes, 40, np.random.default_rng(4)):
        bank.add(kind, operands, true.dot(**operands))
    assert bank.of_kinds(KINDS).wrong(taken.program).sum() > 4


def test_a_cause_between_two_others_is_one_change() -> None:
    """An infinity times zero with a NaN c, and with infinite products of both signs: the cause explains both
    neither as the first of all nor as the last."""
    true = candidate(resolve("rdna4:v_dot2_f16_f16"))
    nans = (("opposite_products", 65024), ("factor", 65085), ("c", None))

    def changed(step: Step) -> Step:
        return replace(step, nans=nans) if isinstance(step, SpecialValues) else step

    start = true.with_each_step(changed)
    assert start is not None
    bank, hints = Bank(true.takes), Hints((65024, 65085))
    for kind in ("special_values", "special_pairs"):
        operands = stimuli.generate(true.instruction, kind, 1000, np.random.default_rng(9))
        for part in (operands, among_zeros(true.takes, operands, np.random.default_rng(1))):
            bank.add(kind, part, true.dot(**part))
    assert bank.wrong(start.program).any()
    tried = [move.apply(start) for move in single_changes(start, hints) if move.key.endswith(": nans")]
    assert any(one is not None and bank.explained(one.program) for one in tried)


def stand_in(ins: Instruction) -> Candidate:
    """Sums of CDNA 3 in two alignments of 24 bits: the dot product has eight bits more where it meets c."""
    groups = (MaximumOf(("groups",), False, 0, None), MaximumOf(("c",), True, -7, -126))
    of = ("groups", "c")
    both = Align(
        of=of,
        fraction_bits=(("groups", 24), ("c", 24)),
        rounding="down",
        maximum=groups,
        window=(("c", 25),),
    )

    def steps(old: tuple[Step, ...]) -> list[Step]:
        last = old[-1]
        assert isinstance(last, Round)
        sums: list[Step] = [Sum(of=("products",), to="groups"), both, Sum(of=of, to="total")]
        return [*old[:3], *sums, replace(last, zero="positive")]

    found = candidate(ins).with_operations(o.with_steps(steps(o.steps)) for o in ins.program.operations)
    assert found is not None
    return found


def test_the_least_value_of_an_exponent_has_operands_aimed_at_it_as_a_floor_has() -> None:
    """c counts as 2^-14 at least where alignments are: of a million operands of every kind two show it."""
    true = candidate(resolve("rdna3:v_dot2_f16_f16"))
    together = MaximumOf(("products",), False, 0, None), MaximumOf(("products", "c"), True, -2, None)

    def changed(step: Step) -> Step:
        return replace(step, maximum=together) if isinstance(step, Align) else step

    taken = true.with_operations(o.with_steps(map(changed, o.steps)) for o in true.operations)
    assert taken is not None
    key = "align of products and c: maximum"
    made = [(m.key, m.apply(taken)) for m in discriminate.neighbours(taken, ()) if m.key == key]
    rivals = [(key, one) for key, one in made if one is not None]
    asked = discriminate.questions(
        taken, rivals, 1, lambda *n: np.random.default_rng(n), time.monotonic() + 60
    )
    assert asked is not None and (true.dot(**asked) != taken.dot(**asked)).any()


def test_an_overflow_on_the_way_meets_a_special_value() -> None:
    """The sum of two products, rounded, is an infinity against c's: of a million operands of every kind one
    shows whether special values were looked for before the sum."""
    true = candidate(resolve("cdna2:v_mfma_f32_32x32x2bf16"))
    (own,) = true.operations
    first = SpecialValues(of=("products", "c"), nan=0x7FC00000)
    taken = true.with_operations([own.with_steps([*own.steps[:2], first, *own.steps[2:]])])
    assert taken is not None
    asked = discriminate.questions(
        taken, [("special_values", true)], 1000, lambda *n: np.random.default_rng(n), time.monotonic() + 60
    )
    assert asked is not None and (true.dot(**asked) != taken.dot(**asked)).any()


def in_two_sums(old: tuple[Step, ...]) -> tuple[Step, ...]:
    """Products summed by themselves before they meet c."""
    if not any(isinstance(step, Align) for step in old):
        return old
    own, meet = (align(of, bits=25) for of in (("products",), ("dot", "c")))
    sums = Sum(of=own.of, to="dot"), Sum(of=meet.of, to="total")
    return (*old[:2], own, sums[0], meet, sums[1], *old[4:])


def test_the_result_of_an_earlier_link_is_asked_about_as_c_is() -> None:
    """c itself is added last: products are aligned to the sum of the first half of them."""
    true = candidate(resolve("hopper:mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e5m2.f16"))
    two = true.with_operations(o.with_steps(in_two_sums(o.steps)) for o in true.operations)
    assert two is not None
    for one, other in ((true, two), (two, true)):
        asked = discriminate.questions(
            one,
            [("align of products and c", other)],
            120,
            lambda *n: np.random.default_rng(n),
            time.monotonic() + 60,
        )
        assert asked is not None and (one.dot(**asked) != other.dot(**asked)).any()


def kept_to_six_bits(ins: Instruction, change: Callable[[Step], list[Step]]) -> Candidate:
    """An instruction whose results keep six bits, with further changes of its steps."""

    def changed(step: Step) -> list[Step]:
        if isinstance(step, Round) and step.to == "d":
            step = replace(step, result_fraction_bits=6)
        return change(step)

    found = candidate(ins).with_operations(
        o.with_steps([new for step in o.steps for new in changed(step)]) for o in ins.program.operations
    )
    assert found is not None
    return found


def by_the_leading_bit_of_the_products(step: Step) -> list[Step]:
    """Products and c aligned by what leads in the products, and by what c carries."""
    if not isinstance(step, Align) or "c" not in step.of:
        return [step]
    largest = MaximumOf((step.of[0],), True, -2, None), MaximumOf(("c",), False, 1, -20)
    return [replace(step, maximum=largest)]


def normalised_behind(step: Step) -> list[Step]:
    """The same to more bits, and the sum normalised and cut: nearly that where results keep few bits."""
    if isinstance(step, Align) and "c" in step.of:
        bits = tuple((name, 35) for name in step.of)
        return [replace(step, maximum=(), floor=-8, fraction_bits=bits)]
    if isinstance(step, Sum) and "c" in step.of:
        return [step, Normalize(of=("total",), fraction_bits=(("total", 23),), rounding="down")]
    return [step]


def test_what_is_kept_next_to_a_tie_is_asked_for() -> None:
    """Of 118,911 questions of a dissection none separated the two, of 9,300 fresh ones one did: where results
    keep few bits, what is cut far below them shows only next to a tie, wherever the tie is."""
    ins = resolve("rdna4:v_dot2_f32_f16")
    box = kept_to_six_bits(ins, by_the_leading_bit_of_the_products)
    search = _Search(FunctionUnit.like(ins, box.dot), 1e6, 200_000, 0, None)
    search.state.fit = fitting.Fit(kept_to_six_bits(ins, normalised_behind), 0)
    shown = (search._round(256) and search.state.differing.get("beside_tie", (0,))[0] for _ in range(8))
    assert any(shown), "other kinds show it, too, now and then"


@pytest.mark.parametrize("start", ["c", "product"])
def test_what_is_tiny_before_it_is_rounded_is_asked_for(start: str) -> None:
    """Of 148,695 questions of a dissection none separated the two, of 9,300 fresh ones one did: c was not
    added, and sums of products are seldom so near to the least normal number."""
    ins = golden.instruction("ampere", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64")
    taken = candidate(ins).with_each_step(partial(replace, start=start, flush="signed"))
    assert taken is not None
    moves = [m for m in discriminate.neighbours(taken, ()) if m.key.endswith(": tiny")]
    rivals = [(m.key, one) for m in moves if (one := m.apply(taken)) is not None]
    assert {one.operations[0].steps[0].tiny for _, one in rivals} == {"unbounded", "before_rounding"}  # type: ignore[union-attr]
    asked = discriminate.questions(
        taken, rivals, 1, lambda *n: np.random.default_rng(n), time.monotonic() + 60
    )
    assert asked is not None
    for _, true in rivals:
        assert (true.dot(**asked) != taken.dot(**asked)).any()


def test_every_floor_in_the_reach_of_results_is_a_rival() -> None:
    """A floor of -19 shows, a floor of -20 does not: results keep six bits, and no sticky bit."""

    def unseen(step: Step) -> list[Step]:
        return [replace(step, sticky="left_out") if isinstance(step, Round) else step]

    def floorless(step: Step) -> list[Step]:
        return [replace(step, floor=None) if isinstance(step, Align) else s for s in unseen(step)]

    ins = golden.instruction("volta", "HMMA.884.F16.F16")
    true, taken = (kept_to_six_bits(ins, change) for change in (unseen, floorless))
    assert next(s.floor for s in true.operations[0].steps if isinstance(s, Align)) == -19
    floors = [m for m in discriminate.neighbours(taken, ()) if m.key == "align of products and c: floor"]
    rivals = [(m.key, one) for m in floors if (one := m.apply(taken)) is not None]
    asked = discriminate.questions(
        taken, rivals, 1, lambda *n: np.random.default_rng(n), time.monotonic() + 60
    )
    assert asked is not None and (true.dot(**asked) != taken.dot(**asked)).any()


def test_a_candidate_starts_again_with_what_its_order_aligns_to() -> None:
    """What was found of special values and of cut bits stays; what stood in for leading bits goes."""
    ins = golden.instruction("ampere", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32")
    name = "dot product aligned down, then c aligned by its leading bit"
    made = next(one for one in skeletons(signature_of(ins), None) if one.order == name)
    own = made.operations[0].steps_of(Align)[-1]
    found = replace(own, maximum=(), rounding="toward_zero", cut="sticky_or")
    now = made.with_operations(
        [made.operations[0].with_steps([found if s == own else s for s in made.operations[0].steps])]
    )
    assert now is not None
    bank = bank_of(ins, 2)
    (start,) = discriminate.other_starts(now, [fitting.Fit(made, 0)], bank, time.monotonic() + 60)
    assert start.candidate.operations[0].steps_of(Align)[-1] == replace(own, cut="sticky_or")
    assert not discriminate.other_starts(start.candidate, [fitting.Fit(made, 0)], bank, time.monotonic() + 60)


SCALED = golden.instruction(
    "blackwell",
    "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X.m128n8k32.f32.e3m2.e3m2.ue8m0",
)


def with_floor(one: Candidate, floor: int | None) -> Candidate:
    found = one.with_each_step(lambda s: replace(s, floor=floor) if isinstance(s, Align) else s)
    assert found is not None
    return found


@pytest.mark.parametrize("floor", [-140, -133, -129])
def test_products_far_apart_show_floors_of_units_with_scales(floor: int) -> None:
    """With a scale that puts all products at the lower end of what elements reach, no floor shows."""
    free, floored = (with_floor(candidate(SCALED), one) for one in (None, floor))
    for one, other in ((free, floored), (floored, free)):
        separating = discriminate.questions(
            one, [("floor", other)], 1, lambda *n: np.random.default_rng([5, *n]), time.monotonic() + 60
        )
        assert separating is not None and (one.dot(**separating) != other.dot(**separating)).sum() > 2


def test_what_a_unit_keeps_below_the_last_bit_of_a_candidate_is_asked_for() -> None:
    ins = golden.instruction("cdna3", "v_mfma_f32_16x16x32_fp8_fp8")
    search = _Search(FunctionUnit.like(ins, ins.dot), 1e6, 200_000, 0, None)
    search.state.fit = fitting.Fit(stand_in(ins), 0)
    assert any(search._round(256) for _ in range(6))
    assert search.state.differing["below_power"][0]
