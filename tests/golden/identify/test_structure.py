"""Changes of what a program is made of: each is a unit that the loader takes, and the wanted one is among
them. Programs on the same operands, run by the search, answer what the units answer."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

import golden
from golden import stimuli, yamlfile
from golden.catalog.unit_files import build_instruction
from golden.catalog.unit_text import unit_text
from golden.errors import SpecError
from golden.identify.blackbox import fitting, step_registers, sum_order
from golden.identify.blackbox.box import Bank, Box
from golden.identify.blackbox.candidates import Candidate, candidate
from golden.identify.blackbox.fitting import Fit, fit, rank, wrong_of
from golden.identify.blackbox.joint_keys import joint
from golden.identify.blackbox.moves import Hints
from golden.identify.blackbox.naming import differences
from golden.identify.blackbox.neighbourhood import single_changes
from golden.identify.blackbox.one_term import as_rounded, uncounted, with_lost_products, with_register_limits
from golden.identify.blackbox.product_groups import Cut, find_product_groups
from golden.identify.blackbox.questions import simple
from golden.identify.blackbox.starting_points import counted
from golden.identify.blackbox.templates import grouped, skeletons
from golden.kernels import sum_tree
from golden.model.instruction import Instruction
from golden.model.trials import Trials
from golden.program.keys import Candidate as Maximum
from golden.program.steps import Align, Multiply, Round, Sum
from golden.unit import signature_of

PLAIN = """\
unit: plain
shape: {k: 2}
formats: {a: f16, b: f16, c: f32, d: f32}
steps:
  - multiply: {to: products}
  - special_values: {of: [products, c]}
  - align: {of: [products, c], fraction_bits: 24, rounding: toward_zero}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: toward_zero, overflow: infinity, zero: positive}
"""


def unit(text: str) -> Instruction:
    return build_instruction(yamlfile.parse(text))


def as_candidate(ins: Instruction) -> Candidate:
    found = candidate(signature_of(ins), ins.program.operations, "given")
    assert found is not None
    return found


def asked(ins: Instruction, each: int = 8) -> Bank:
    """Questions with few terms and of every kind, with the unit's answers."""
    bank = Bank(signature_of(ins))
    for index, kind in enumerate(stimuli.KINDS):
        operands = stimuli.generate(ins, kind, each, np.random.default_rng(index))
        bank.add(kind, operands, ins.dot(**operands))
    for kind, operands in simple(bank.takes, each, np.random.default_rng(99)):
        bank.add(kind, operands, ins.dot(**operands))
    return bank


def changed(old: str, new: str) -> Instruction:
    assert old in PLAIN
    return unit(PLAIN.replace(old, new))


TOTAL = "  - sum: {of: [products, c], to: total}\n"


def test_every_change_is_a_unit_that_the_loader_takes() -> None:
    start, bank, texts = as_candidate(unit(PLAIN)), asked(unit(PLAIN), 2), 0
    for index, move in enumerate((*joint(start), *single_changes(start, Hints((0x7FFFFFFF,))))):
        one = move.apply(start) if index % 23 == 0 else None
        if one is None:
            continue
        text = unit_text(one.instruction)
        assert text is not None
        read = unit(text).dot(**bank.operands)
        assert np.array_equal(read, one.dot(**bank.operands)), move.text
        texts += 1
    assert texts > 20


def test_a_rounding_for_each_register_follows_the_registers_of_its_step() -> None:
    one = as_candidate(
        unit(PLAIN.replace("24, rounding: toward_zero", "24, rounding: {products: down, c: up}"))
    )
    tried = 0
    for move in (*single_changes(one, Hints()), *joint(one)):
        new = move.apply(one)
        for operation in () if new is None else new.operations:
            for step in operation.steps_of(Align):
                if isinstance(step.rounding, tuple):
                    assert tuple(name for name, _ in step.rounding) == step.of, move.text
                    tried += 1
    assert tried > 100
    alone = step_registers.with_registers(one.operations[0].steps_of(Align)[0], ("c",))
    assert isinstance(alone, Align) and alone.rounding == "up"


def test_what_the_loader_refuses_is_no_candidate() -> None:
    """Groups of two registers together: a unit of them could be found, and not be written."""
    start = as_candidate(unit(PLAIN))
    grouped_step = start.with_each_step(
        lambda step: replace(step, group=("contiguous", 2)) if isinstance(step, Align) else step
    )
    assert grouped_step is None
    text = PLAIN.replace("of: [products, c], fraction", "of: [products, c], group: {contiguous: 2}, fraction")
    with pytest.raises(SpecError, match="one register"):
        unit(text)


def test_another_format_brings_its_own_word_of_a_nan() -> None:
    """A candidate names the word of every NaN, and d's is no code of a narrower format."""
    rounded = "  - multiply: {to: products, format: f16, rounding: toward_zero}\n"
    box = changed("  - multiply: {to: products}\n", rounded)
    bank, start = asked(box), as_candidate(unit(PLAIN))
    assert wrong_of(bank, start) > 0
    made = [
        move.apply(start)
        for move in single_changes(start, Hints(wide=False))
        if move.key == "multiply: format"
    ]
    assert any(one is not None and wrong_of(bank, one) == 0 for one in made)


GROUPED = """\
unit: grouped
shape: {{k: 8}}
formats: {{a: f16, b: f16, c: f32, d: f32}}
steps:
  - multiply: {{to: products}}
  - special_values: {{of: [products, c]}}
  - align: {{of: products, group: {group}, fraction_bits: 10, rounding: toward_zero}}
  - sum: {{of: products, to: groups, group: {group}}}
  - align: {{of: groups, fraction_bits: 24, rounding: toward_zero}}
  - sum: {{of: groups, to: dot, cancelled: {cancelled}}}
  - align: {{of: [dot, c], fraction_bits: 32, rounding: toward_zero}}
  - sum: {{of: [dot, c], to: total}}
  - round: {{of: total, rounding: nearest_even, overflow: infinity, zero: positive}}
"""


@pytest.mark.parametrize("rounding", ["toward_zero", "down", "away", "nearest_away", "nearest_up"])
def test_how_products_are_cut_shows_in_the_least_that_is_left_of_them(rounding: str) -> None:
    text = GROUPED.format(group="{interleaved: 2}", cancelled="keeps_exponent")
    box = unit(text.replace("toward_zero", rounding, 1))
    cuts = find_product_groups(Box(box, 50_000, time.monotonic() + 60), Bank(signature_of(box)), None).cuts
    assert cuts == (Cut(10, rounding), Cut(24, "toward_zero"))


def test_where_masks_show_that_nothing_is_left_of_a_sum_it_is_in_a_skeleton() -> None:
    """c meets the sum of all products, and an exponent that is left of them would cut it."""
    box = unit(GROUPED.format(group="{interleaved: 2}", cancelled="zero"))
    takes = signature_of(box)
    tree = sum_order.find_order(Box(box, 50_000, time.monotonic() + 60), Bank(takes))
    assert tree is not None and tree.brackets() == "(c + (0 + 1 + 2 + 3 + 4 + 5 + 6 + 7))"
    found = [
        one
        for one in skeletons(takes, tree)
        if [step.op for step in one.operations[0].steps]
        == [step.op for step in box.program.operations[0].steps]
    ]
    assert any(one.operations[0].steps[5].cancelled == "zero" for one in found)  # type: ignore[union-attr]


def left_out(rule: str, more: str = "") -> Instruction:
    """The plain unit with c left out of the maximum."""
    end = "rounding: toward_zero}\n  - sum"
    return changed(end, end.replace("}", f", left_out: {{c: {rule}}}{more}}}"))


def test_each_floor_is_tried_where_a_register_is_left_out() -> None:
    """c alone is a number at the floor, whole: two floors that are next to each other share no result."""
    box, start = left_out("unshifted", ", floor: -131"), as_candidate(left_out("unshifted"))
    bank = asked(box, 2)
    assert wrong_of(bank, start) > 0
    made = [move.apply(start) for move in single_changes(start, Hints()) if move.key.endswith(": floor")]
    assert any(one is not None and wrong_of(bank, one) == 0 for one in made)


def test_products_that_are_all_infinite_may_be_added() -> None:
    """No finite answer shows whether they are; that a unit which looks at c alone answers them does."""
    text = PLAIN.replace("{to: products}", "{to: products, overflow_exponent: -60}")
    bank = asked(unit(text.replace("special_values: {of: [products, c]}", "special_values: {of: c}")), 4)
    found = counted(bank, [one for one in skeletons(bank.takes, None) if one.order == "one aligned sum"])
    sums = {step.of for one in found for o in one.operations for step in o.steps_of(Sum)}
    assert sums == {("products", "c"), ("c",)}
    changes = [
        move for one in found for move in single_changes(one, Hints()) if move.key == "special_values: of"
    ]
    made = [move.apply(one) for one in found for move in changes]
    assert any(one is not None and wrong_of(bank, one) < len(bank) // 50 for one in made)


TREE = """\
unit: tree
shape: {k: 4}
formats: {a: bf16, b: bf16, c: f32, d: f32}
steps:
  - multiply: {to: products, format: tf32, rounding: toward_zero}
  - sum: {of: products, to: dot, order: tree, format: tf32, rounding: toward_zero}
  - sum: {of: [c, dot], to: d, order: sequential, rounding: nearest_even}
"""


def test_answers_without_c_show_a_register_before_it() -> None:
    for text, name in ((TREE, "e8m10"), (PLAIN, None)):
        box = as_candidate(unit(text))
        bank = asked(box.instruction, 2)
        for kind, operands in simple(box.takes, 20, np.random.default_rng(3)):
            bank.add(kind, operands, box.dot(**operands))
        register = fitting.register_before_c(bank)
        assert (None if register is None else register.name) == name
        if register is not None:
            every = skeletons(box.takes, None, register)
            made = [one for one in every if one.order.startswith("rounded additions of the rounded products")]
            assert rank(bank, bank, made, time.monotonic() + 60)[0].wrong == 0


def test_a_sum_in_a_register_before_the_next_step_is_a_single_change() -> None:
    """A sum of zeros has the sign that the register gives it."""
    dot = "  - sum: {of: products, to: dot}\n"
    kept = "  - round: {of: dot, to: dot, rounding: nearest_even, overflow: infinity, zero: positive}\n"
    apart = PLAIN.replace("  - align: {of: [products, c]", f"{dot}  - align: {{of: [dot, c]").replace(
        "  - sum: {of: [products, c]", "  - sum: {of: [dot, c]"
    )
    start, true = (as_candidate(unit(text)) for text in (apart, apart.replace(dot, dot + kept)))
    made = (move.apply(start) for move in single_changes(start, Hints()) if move.key == "round of dot")
    assert true.operations in [one.operations for one in made if one is not None]


def test_few_large_answers_show_a_factor_as_long_as_small_ones_agree() -> None:
    """A sum that is shifted into eight bits."""
    scaled = "formats: {a: u8, b: s8, c: s32, d: s8}\nsteps:\n  - multiply: {to: products}\n"
    scaled += "  - sum: {of: [products, c], to: total}\n  - scale: {of: total, power: -8}\n"
    end = "  - round: {of: total, rounding: nearest_even, overflow: saturate, zero: positive}\n"
    box = as_candidate(unit("unit: shifted\nshape: {k: 4}\n" + scaled + end))
    bank = Bank(box.takes)
    for kind, operands in simple(box.takes, 20, np.random.default_rng(3)):
        bank.add(kind, operands, box.dot(**operands))
    made = counted(bank, skeletons(box.takes, None))
    assert min(wrong_of(bank, one) for one in made) == 0


def test_no_unit_has_more_maxima_than_the_core_holds() -> None:
    """Steps that nobody wrote in YAML are held to the same count as steps of a file."""
    start = as_candidate(unit(PLAIN))
    (operation,) = start.operations
    many = tuple(Maximum(("products", "c"), False, plus, None) for plus in range(5))
    for count, taken in ((4, True), (5, False)):
        changed = tuple(
            replace(step, maximum=many[:count]) if isinstance(step, Align) else step
            for step in operation.steps
        )
        assert (start.with_operations((operation.with_steps(changed),)) is not None) == taken


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("zero: positive", "zero: signed_underflow, subnormal_carry: lost"),
        pytest.param(
            "of: [products, c]}\n  - align",
            "of: [products, c], nans: {a: 9}}\n  - align",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "of: [products, c]}\n  - align",
            "of: [products, c], nans: {c: payload, factor: 0x7FC00001}}\n  - align",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "rounding: toward_zero}\n  - sum",
            "rounding: toward_zero, maximum: [{of: [products, c], exponent: leading, plus: -1}]}\n  - sum",
            marks=pytest.mark.long,
        ),
    ],
)
def test_keys_of_every_kind_are_fitted(old: str, new: str) -> None:
    """Faults, causes of NaN words, what an exponent is the largest of: from the plain unit, with no hint."""
    bank = asked(changed(old, new), 8 if "nans" not in new else 40)
    start = as_candidate(unit(PLAIN))
    found = fit(bank, Fit(start, wrong_of(bank, start)), float("inf"))
    assert found.wrong == 0, found.changes


def test_only_nans_of_operands_are_handed_on() -> None:
    """A program that the reader of YAML would refuse is no candidate: the core does not look."""
    steps = unit(PLAIN).program.operations[0].steps
    for cause, word, taken in (("c", None, True), ("invalid_product", None, False), ("c", 1 << 32, False)):
        changed_steps = [replace(s, nans=((cause, word),)) if s.op == "special_values" else s for s in steps]
        one = unit(PLAIN).program.operations[0].with_steps(changed_steps)
        assert (candidate(signature_of(unit(PLAIN)), [one], "given") is not None) == taken


@pytest.mark.parametrize(
    "name",
    [
        "hopper:mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        "cdna3:v_mfma_f32_16x16x32_fp8_bf8",
        "blackwell:tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X.m128n8k64.f32.e2m1.e2m1.ue4m3",
    ],
)
def test_programs_tried_on_the_same_operands_answer_as_their_units(name: str) -> None:
    ins = golden.instruction(*name.split(":", 1))
    parts = [stimuli.generate(ins, kind, 4, np.random.default_rng(3)) for kind in stimuli.KINDS]
    operands: dict[str, Any] = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    run = Trials(signature_of(ins), operands)
    start = as_candidate(ins)
    tried: Iterable[Candidate | None] = [
        start,
        *(move.apply(start) for move in [*joint(start)][::211]),
    ]
    for one in filter(None, tried):
        assert np.array_equal(run.answers(one.program), one.dot(**operands))


@pytest.mark.parametrize("turned", ["c", "product", "both"])
def test_masks_show_the_order_of_a_unit_that_turns_signs(turned: str) -> None:
    """Two levels, so that a sign that each of them turns is turned twice."""
    plain = golden.instruction("ampere", "HMMA.16816.F32")
    operations = [
        one.with_steps([replace(s, negate=turned) if isinstance(s, Multiply) else s for s in one.steps])
        for one in plain.program.operations
    ]
    ins = replace(plain, program=replace(plain.program, operations=tuple(operations)))
    boxes = [Box(one, 10_000, time.monotonic() + 60) for one in (plain, ins)]
    found = [sum_order.find_order(box, Bank(box.takes)) for box in boxes]
    assert found[0] is not None and found[0] == found[1]


def test_a_result_can_be_rounded_twice_each_time_in_its_own_way() -> None:
    """f32 rounded down, of which the high half is the result, for one rounding, and a sum cut before it."""
    wide = unit(PLAIN.replace("{of: total, rounding: toward_zero", "{of: total, rounding: down"))
    narrow = PLAIN.replace("d: f32", "d: bf16").replace(
        "{of: total, rounding: toward_zero", "{of: total, rounding: up"
    )
    cut = narrow.replace(
        "  - round", "  - normalize: {of: total, fraction_bits: 21, rounding: nearest_even}\n  - round"
    )
    for text in (narrow, cut):
        start = as_candidate(unit(text))
        bank = Bank(start.takes)
        for index, kind in enumerate(("narrow", "wide", "cancelling", "c_dominant")):
            operands = stimuli.generate(start.instruction, kind, 60, np.random.default_rng(index))
            bank.add(kind, operands, (wide.dot(**operands) >> 16).astype(np.uint16))
        least = min(
            (wrong_of(bank, new) for move in joint(start) if (new := move.apply(start)) is not None),
            default=0,
        )
        assert wrong_of(bank, start) > 60 and least == 0


def test_a_nan_that_only_one_of_two_units_names_is_no_difference() -> None:
    ins = unit(PLAIN)
    found = as_candidate(ins)
    assert found.operations != ins.program.operations
    assert differences(found.instruction, ins, {}) == []


def test_where_masks_show_no_order_sums_of_groups_may_be_fixed_point_numbers() -> None:
    """What is aligned with them sees the exponent of their point: a small c is lost without a large term."""
    by_group = "to: groups, group: {interleaved: 2}"
    text = GROUPED.format(group="{interleaved: 2}", cancelled="keeps_exponent")
    box = unit(
        text.replace(by_group, f"{by_group}, exponent: 0").replace("fraction_bits: 10", "fraction_bits: 24")
    )
    takes = signature_of(box)
    assert sum_order.find_order(Box(box, 50_000, time.monotonic() + 60), Bank(takes)) is None
    wanted = [step for step in box.program.operations[0].steps if isinstance(step, Align | Sum)][:4]
    made = (
        [s for s in one.operations[0].steps if isinstance(s, Align | Sum)] for one in skeletons(takes, None)
    )
    assert any(steps[:4] == wanted for steps in made)


def test_a_sticky_bit_can_stand_in_the_place_of_a_last_bit_that_is_rounded_to_odd() -> None:
    """One change of cut, rounding and width: with fewer of them more is wrong than before."""
    aligned = "fraction_bits: 12, rounding: down, cut: sticky_added"
    true = as_candidate(changed("fraction_bits: 24, rounding: toward_zero", aligned))
    start = as_candidate(changed("24, rounding: toward_zero", "13, rounding: to_odd"))
    made = [move.apply(start) for move in joint(start) if move.key == "align of products and c: cut"]
    assert true.operations in [one.operations for one in made if one is not None]


def test_signs_that_are_turned_and_bits_that_no_result_has_are_seen_before_orders_are_compared() -> None:
    """With either of them unknown every order is wrong on nearly all that was asked."""
    kept = "rounding: nearest_even, fraction_bits: 6,"
    text = PLAIN.replace("to: products}", "to: products, negate: both}").replace(
        "c: f32, d: f32", "c: f16, d: f16"
    )
    true = unit(text.replace("{of: total, rounding: toward_zero,", "{of: total, " + kept))
    bank = asked(true, 4)
    made = counted(bank, list(skeletons(bank.takes, None)))
    with_c = [o for one in made for o in one.operations if o.seed == "c"]
    assert {s.negate for o in with_c for s in o.steps_of(Multiply)} == {"both"}
    sums = [one for one in made if one.order.startswith("one ")]
    first = rank(bank, bank, sums, time.monotonic() + 60)[0]
    assert first.candidate.operations[-1].final.result_fraction_bits == 6  # type: ignore[union-attr]
    assert first.wrong < len(bank) // 10


def test_in_a_chain_that_turns_the_sum_so_far_each_product_has_a_sign_of_its_own() -> None:
    """Products of the first operation keep their sign, products of the second one change it; no program of
    one operation does that."""
    made = skeletons(signature_of(unit(PLAIN.replace("{k: 2}", "{k: 4}"))), None)
    two = next(one for one in made if len(one.operations) == 2 and one.operations[1].k_index)
    true = two.with_each_step(lambda s: replace(s, negate="both") if isinstance(s, Multiply) else s)
    assert true is not None
    found = counted(asked(true.instruction), made)
    assert true.operations in [one.operations for one in found]
    assert all(sum(bool(o.k_index) for o in one.operations) > 1 for one in found)
    assert counted(asked(two.instruction), made) == made


def test_one_term_shows_how_results_are_rounded_before_orders_are_compared() -> None:
    narrow = PLAIN.replace("c: f32, d: f32", "c: f32, d: f16")
    for mode in ("down", "to_odd"):
        bank = asked(unit(narrow.replace("total, rounding: toward_zero", f"total, rounding: {mode}")), 4)
        made = as_rounded(bank, list(skeletons(bank.takes, None)))
        last = [one.operations[-1].final for one in made]
        assert {step.rounding for step in last if isinstance(step, Round)} == {mode}
    exact = asked(
        unit(PLAIN.replace("a: f16, b: f16", "a: e4m3, b: e4m3")), 4
    )  # no term lies between results
    made = list(skeletons(exact.takes, None))
    assert as_rounded(exact, made) == made


def test_where_masks_leave_more_than_what_is_small_alignments_keep_sticky_bits_to_begin_with() -> None:
    """No order that drops what is cut is nearer than others then."""
    wide = PLAIN.replace("{k: 2}", "{k: 8}")
    box = unit(wide.replace("24, rounding: toward_zero", "24, rounding: toward_zero, cut: sticky_added"))
    bank = Bank(signature_of(box))
    assert sum_order.find_order(Box(box, 50_000, time.monotonic() + 60), bank) is None
    start = as_candidate(unit(wide))
    best = [one for one in fitting._directed(bank, [start], time.monotonic() + 60) if one is not start]
    assert [step.cut for one in best for o in one.operations for step in o.steps_of(Align)] == [
        "sticky_added"
    ]


INTEGERS = """\
unit: integers
shape: {k: 2}
formats: {a: s16, b: s16, c: s32, d: s32}
steps:
  - multiply: {to: products}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}
"""


def test_products_are_normalised_together_with_the_width_of_their_sum() -> None:
    """The width is counted from the exponent that they carry then: one alone explains next to nothing."""
    text = INTEGERS.replace("{to: products}", "{to: products, normalize: true}")
    bank = asked(unit(text.replace("to: total}", "to: total, width: 3}")), 2)
    start = as_candidate(unit(INTEGERS))
    assert wrong_of(bank, start) > len(bank) // 5
    made = (move.apply(start) for move in joint(start) if move.key.endswith("normalize"))
    assert any(one is not None and wrong_of(bank, one) == 0 for one in made)


@pytest.mark.parametrize(
    ("register", "shown"),
    [
        ("width: 2", {"width": 2}),
        ("exponent: 0, width: 5", {"exponent": 0, "width": 5, "overflow": "wrap"}),
        (
            "exponent: -3, width: 5, overflow: saturate",
            {"exponent": 0, "width": 2, "overflow": "saturate"},
        ),
        ("cancelled: zero", {}),
    ],
)
def test_one_term_shows_a_register_that_is_too_narrow_for_it(register: str, shown: dict[str, Any]) -> None:
    """In every order of the sum: it is in all skeletons before they are compared, and where c and the result
    are converted alone."""
    text = PLAIN.replace("c: f32, d: f32", "c: f16, d: f16")
    box = unit(text.replace("to: total}", f"to: total, {register}}}"))
    bank = Bank(signature_of(box))
    for kind, operands in islice(simple(bank.takes, 16, np.random.default_rng(2)), 2):
        bank.add(kind, operands, box.dot(**operands))
    made, *converted = with_register_limits(bank, [as_candidate(unit(text))])
    (total,) = made.operations[0].steps_of(Sum)
    assert {key: getattr(total, key) for key in shown} == shown
    assert (total.width is None) == (not shown)
    sums = [[s.width for o in one.operations for s in o.steps_of(Sum)] for one in converted]
    assert sums == ([[total.width, None, total.width]] * 2 if "exponent" in shown else [])  # c shows it


def test_no_register_is_too_narrow_for_the_largest_of_all_formats() -> None:
    """The number above the highest place of FP64 is none."""
    ins = golden.instruction("ampere", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64")
    made = [as_candidate(ins)]
    assert with_register_limits(asked(ins), made) == made


def test_groups_may_meet_c_in_one_sum_in_the_place_of_two() -> None:
    inner = "  - sum: {of: products, to: groups, group: {contiguous: 2}}\n"
    keys = "fraction_bits: 24, rounding: down, zeros: maximum}\n"
    ends = "  - round: {of: total, rounding: toward_zero, overflow: infinity, zero: positive}\n"
    aligned, total = PLAIN.index("  - align"), TOTAL.replace("products", "groups")
    one = f"  - align: {{of: [groups, c], {keys}{total}"
    dot = "  - align: {of: groups, fraction_bits: 30, rounding: down}\n  - sum: {of: groups, to: dot}\n"
    two = dot + one.replace("groups", "dot")
    made, start = (
        as_candidate(unit(PLAIN[:aligned].replace("k: 2", "k: 4") + inner + rest + ends))
        for rest in (one, two)
    )
    found = [move.apply(start) for move in joint(start) if move.key == "groups and c"]
    assert made.operations in [new.operations for new in found if new is not None]
    assert not [move for move in joint(made) if move.key == "groups and c"]


def test_some_operands_are_flushed_in_the_place_of_all_that_is_done_to_them_first() -> None:
    """a that is normalised is flushed no more: what takes both steps for a flush of b and c is one change
    from that, and neither step alone."""
    head = "  - multiply: {to: products}\n"
    both = "  - normalize: {of: [a, c], fraction_bits: {a: 10, c: 23}, rounding: toward_zero}\n"
    both += "  - flush: {of: [a, b, c], sign: signed}\n"
    start = as_candidate(changed(head, both + head))
    true = as_candidate(changed(head, "  - flush: {of: [b, c], sign: signed}\n" + head))
    made = [move.apply(start) for move in joint(start) if move.key == "operands first"]
    assert true.operations in [one.operations for one in made if one is not None]
    assert as_candidate(unit(PLAIN)).operations in [one.operations for one in made if one is not None]


def test_a_sticky_bit_may_need_another_width_of_one_register() -> None:
    both = "fraction_bits: 24, rounding: toward_zero"
    wide, true = (
        as_candidate(changed(both, f"fraction_bits: {{products: {bits}, c: 24}}, rounding: down{cut}"))
        for bits, cut in ((42, ""), (32, ", cut: sticky_or"))
    )
    made = [move.apply(wide) for move in joint(wide) if move.key == "align of products and c: cut"]
    assert true.operations in [one.operations for one in made if one is not None]


POINT = GROUPED.format(group="{interleaved: 2}", cancelled="keeps_exponent, exponent: 0")


def test_where_c_meets_all_products_their_sum_may_be_in_fixed_point() -> None:
    box = unit(POINT)
    takes = signature_of(box)
    tree = sum_tree.Node((sum_tree.C, sum_tree.Node(tuple(range(8)))))
    found = [one.operations[0].steps for one in skeletons(takes, tree)]
    wanted = [step.op for step in box.program.operations[0].steps]
    shown = [steps[5].exponent for steps in found if [step.op for step in steps] == wanted]  # type: ignore[union-attr]
    assert 0 in shown


def test_which_products_are_added_before_they_are_cut_shows_below_the_last_bit() -> None:
    """Masks show no groups where all terms are aligned to the largest of them."""
    boxes = [
        unit(GROUPED.format(group=group, cancelled="keeps_exponent"))
        for group in ("{interleaved: 2}", "{contiguous: 4}", "{contiguous: 8}")
    ]
    asked = [(Box(box, 50_000, time.monotonic() + 60), Bank(signature_of(box))) for box in boxes]
    found = [find_product_groups(box, bank, None) for box, bank in asked]
    assert [one.members for one in found] == [((0, 2, 4, 6), (1, 3, 5, 7)), ((0, 1, 2, 3), (4, 5, 6, 7)), ()]
    made = grouped(signature_of(boxes[0]), found[0])
    steps = [step.op for step in boxes[0].program.operations[0].steps]
    assert any([step.op for step in one.operations[0].steps] == steps for one in made)


def test_a_chain_that_loses_what_it_made_before_is_seen_by_products_that_no_answer_shows() -> None:
    """Products of the first operation: what is in the place of c is left out."""
    made = skeletons(signature_of(unit(PLAIN.replace("{k: 2}", "{k: 4}"))), None)
    two = next(one for one in made if len(one.operations) == 2 and one.operations[1].k_index)
    true = uncounted(two, "c", linked=True)
    assert true is not None
    found = with_lost_products(asked(true.instruction), made)
    assert true.operations in [one.operations for one in found]
    assert all(one.operations[0].k_index == two.operations[0].k_index for one in found)
    assert not with_lost_products(asked(two.instruction), made)
