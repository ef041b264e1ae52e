"""What the papers claim, held against the studies' numbers,
and these against exact rationals (tests/golden/exact.py)."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import exact
import numpy as np
import pytest

import golden
from golden.identify.blackbox.box import Box
from golden.identify.blackbox.repeatability import at_every_place, check_repeatability
from golden.identify.probe import probes
from golden.kernels import sum_tree
from golden.kernels.sum_tree import Node
from golden.studies import (
    accumulation_precision,
    cdna2_range,
    cdna3_rounding,
    consistency,
    fp8_accumulation,
    numeric_profile,
    product_overflow,
    summation_order,
    tf32_nan,
)
from golden.studies.study import published
from golden.studies.units import Subject, dot
from golden.unit import FunctionUnit

ROOT = Path(__file__).parents[3]


def f32_value(code: int) -> Fraction:
    return exact.decode("f32", code).x


# FP8 accumulation -------------------------------------------------------------------------------------------

STEPS = {
    "ada": exact.cofda("e4m3", "e4m3", "f32", "f32", 16, 13, -133, 13),
    "hopper": exact.cofda("e4m3", "e4m3", "f32", "f32", 32, 13, -133, 13),
    "hopper_mma": exact.fp8_rewrite("e4m3", "e4m3", "f32"),
    "blackwell": exact.cofda("e4m3", "e4m3", "f32", "f32", 32, 25, -133),
    "hopper_f16": exact.cofda("f16", "f16", "f32", "f32", 16, 25, -133),
}


def way(key: str) -> fp8_accumulation.Way:
    return next(item for item in fp8_accumulation.WAYS if item.key == key)


@pytest.mark.parametrize("key", STEPS)
@pytest.mark.parametrize("data", fp8_accumulation.DATA)
def test_long_fp8_sums_are_those_of_exact_rationals(key: str, data: str) -> None:
    a, b = fp8_accumulation.operands(data, 4, 256, np.random.default_rng(1))
    runner = fp8_accumulation.Runner(way(key), 4)
    runner.feed(a, b)
    to_f16 = (
        (lambda code: exact.encode("f16", exact.decode("e4m3", code).x, "toward_zero"))
        if key == "hopper_f16"
        else int
    )
    for row in range(4):
        code = 0
        for k in range(0, 256, 32):
            x, y = ([to_f16(int(v)) for v in codes[row, k : k + 32]] for codes in (a, b))
            code = STEPS[key](x, y, code)
        assert runner.result[row] == f32_value(code)


def test_a_promoted_sum_is_one_of_exact_partial_sums_added_to_nearest_even() -> None:
    a, b = fp8_accumulation.operands("positive", 3, 384, np.random.default_rng(2))
    runner = fp8_accumulation.Runner(way("hopper_promoted"), 3)
    runner.feed(a, b)
    for row in range(3):
        total = 0
        for start in range(0, 384, published("fp8-accumulation")["promotion_interval"]):
            part = 0
            for k in range(start, start + 128, 32):
                part = STEPS["hopper"](a[row, k : k + 32].tolist(), b[row, k : k + 32].tolist(), part)
            total = exact.ieee_add("f32", exact.decode("f32", total), exact.decode("f32", part), 0)
        assert runner.result[row] == f32_value(total)


@pytest.mark.parametrize(("key", "bits"), [("ada", 13), ("hopper", 13), ("blackwell", 25)])
def test_the_error_of_one_instruction_has_the_scale_of_its_last_fraction_bit(key: str, bits: int) -> None:
    """Each of 32 products, and the result, loses less than 2**-F of the largest exponent;
    some lose nearly that."""
    rng = np.random.default_rng(3)
    ins = way(key).unit.ins
    count = 300
    a, b = (rng.integers(0, 0x7F, (count, 32), dtype=np.uint8) for _ in range(2))
    losses = []
    for row, result in enumerate(golden.to_float("f32", ins.dot(a, b, np.zeros(count, np.uint32)))):
        pairs = [
            (exact.decode("e4m3", int(x)), exact.decode("e4m3", int(y)))
            for x, y in zip(a[row], b[row], strict=True)
        ]
        total = sum((x.x * y.x for x, y in pairs), Fraction(0))
        top = max(x.e + y.e for x, y in pairs if x.s * y.s)
        losses.append((total - Fraction(float(result))) / exact.two(top))
    sums = 128  # 32 products below 4: the result's exponent lies at most 7 above the largest
    assert all(0 <= loss < 32 * exact.two(-bits) + sums * exact.two(-min(bits, 23)) for loss in losses)
    assert max(losses) > exact.two(-bits) if bits == 13 else max(losses) < exact.two(-16)


@pytest.fixture(scope="module")
def grown() -> dict[str, dict[str, fp8_accumulation.Errors]]:
    return {
        data: fp8_accumulation.grow(data, 60, fp8_accumulation.WAYS, (128, 512, 4096))
        for data in fp8_accumulation.DATA
    }


def test_hopper_and_ada_lose_what_both_blackwells_keep(
    grown: dict[str, dict[str, fp8_accumulation.Errors]],
) -> None:
    for errors in grown.values():
        for poor in ("ada", "hopper"):
            for good in ("blackwell", "rtx_blackwell", "cdna3", "hopper_f16", "hopper_mma"):
                assert errors[poor].mean[-1] > 1000 * errors[good].mean[-1]
    positive = grown["positive"]
    assert positive["hopper"].mean[0] < positive["hopper"].mean[1] < positive["hopper"].mean[2]
    assert positive["hopper"].bias[-1] == pytest.approx(-positive["hopper"].mean[-1])
    largest = published("fp8-accumulation")["largest_relative_error"]
    assert grown["signed"]["hopper"].largest[-1] < largest < positive["hopper"].largest[-1]


def test_promotion_stops_the_growth(grown: dict[str, dict[str, fp8_accumulation.Errors]]) -> None:
    positive = grown["positive"]
    assert positive["hopper_promoted"].mean[0] == positive["hopper"].mean[0]
    assert (
        positive["hopper_promoted"].mean[-1]
        < 1.2 * positive["hopper"].mean[0]
        < 0.02 * positive["hopper"].mean[-1]
    )


# Accumulation precision -------------------------------------------------------------------------------------


def test_the_probes_find_the_papers_fraction_bits_and_modes() -> None:
    found = {
        (item.unit.architecture, item.unit.what): item
        for item in map(accumulation_precision.find, accumulation_precision.UNITS)
    }
    for item in found.values():
        assert item.printed is None or item.product_bits == item.printed, item
        amd = item.unit.architecture.startswith("cdna")
        assert item.result_rounding == ("RNE" if amd else "RZ"), item
    asymmetric = {key[0] for key, item in found.items() if item.c_rounding == "RD"}
    assert asymmetric == {"cdna3"}
    assert {item.product_rounding for key, item in found.items() if key[0] != "cdna2"} == {"RZ"}
    assert {key for key, item in found.items() if (item.product_bits or 99) < 23} == {
        ("ada", "e4m3"),
        ("hopper", "e4m3"),
    }


def test_the_tables_of_modes_are_those_of_exact_rounding() -> None:
    """Tables I and II of the paper, for every mode that the oracle has."""
    modes = {"up": "up", "down": "down", "to zero": "toward_zero", "to nearest": "nearest_even"}

    def units(sign: int, part: float, mode: str) -> int:
        return abs(exact.to_integer(sign * (16 + Fraction(part)), mode)) - 16

    for name, mode in modes.items():
        cases = [(1, 0.75), (1, 0.25), (-1, 0.75), (-1, 0.25)]
        assert published("accumulation-precision")["modes"][name] == [units(*case, mode) for case in cases]
    for name, mode in {"even": "nearest_even", "away": "nearest_away"}.items():
        cases = [(1, 0.5), (1, 1.5), (-1, 0.5), (-1, 1.5)]
        assert published("accumulation-precision")["ties"][name] == [units(*case, mode) for case in cases]


@pytest.mark.parametrize(
    ("mode", "ties", "said"),
    [
        *(("up", "", "RU"), ("down", "", "RD"), ("to zero", "", "RZ"), ("away from zero", "", "RA")),
        *(("to nearest", ties, f"RN{ties[0].upper()}") for ties in ("even", "away", "odd", "down")),
        ("to nearest", "to zero", "RNZ"),
    ],
)
def test_the_probes_read_roundings_off_tables_1_and_2_of_the_paper(mode: str, ties: str, said: str) -> None:
    """All but ties up, whose row says 1 where 1 + 1.5u is rounded up to 1 + 2u."""
    printed = published("accumulation-precision")
    parts = dict(zip(((3, 1), (1, 1), (3, -1), (1, -1)), printed["modes"][mode], strict=True))
    if ties:
        parts |= dict(zip(((2, 1), (6, 1), (2, -1), (6, -1)), printed["ties"][ties], strict=True))
    assert probes.mode(lambda quarters, sign: sign * parts[quarters, sign]) == said


def test_what_another_place_or_another_question_changes_is_seen() -> None:
    """A unit with a stuck place, and one that remembers."""
    ins = golden.instruction("turing", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32")
    ones = {name: np.full(shape, 0x3C00, np.uint16) for name, shape in (("a", (1, 8)), ("b", (1, 8)))}
    operands: dict[str, Any] = {**ones, "c": np.zeros(1, np.uint32)}
    assert at_every_place(ins, operands, ins) == [None]
    stuck = np.zeros((ins.m, ins.n), np.uint32)
    stuck[3, 5] = 1
    (found,) = at_every_place(ins, operands, lambda **whole: ins(**whole) ^ stuck)
    assert found is not None and found.first ^ found.again == 1 and "row 3, column 5" in found.said
    count = iter(range(1 << 20))
    unit = FunctionUnit.like(ins, lambda **given: ins.dot(**given) ^ np.uint32(next(count) == 1))
    found = check_repeatability(Box(unit, 10_000, math.inf), lambda *place: np.random.default_rng(place))
    assert 0 < found.differ < found.queries


# Dynamic range ----------------------------------------------------------------------------------------------


def test_cdna2_alone_flushes_and_only_in_its_16_bit_instructions() -> None:
    for unit in cdna2_range.UNITS:
        flushed = set(cdna2_range.flushes(unit).values())
        assert flushed == {unit.architecture == "cdna2" and unit.what != "f32"}, unit


def test_the_signs_of_flushed_numbers_are_those_of_the_algorithm_in_rationals() -> None:
    step = exact.gps("bf16", 4)
    for what, a, b, c in cdna2_range.sign_cases():
        rest = 16 - len(a)
        assert cdna2_range.sign_result(a, b, c) == step([*a, *[0] * rest], [*b, *[0xBF80] * rest], c), what


def test_the_least_operand_of_cdna2_is_normal() -> None:
    least = {unit.label: cdna2_range.least_operand(unit) for unit in cdna2_range.UNITS}
    assert (least["CDNA2 f16"], least["CDNA3 f16"], least["Hopper f16"]) == (-14, -24, -24)
    assert (least["CDNA2 bf16"], least["CDNA3 bf16"]) == (-126, -133)


def test_small_gradients_vanish_on_cdna2_ten_binades_early() -> None:
    cdna2, cdna3, scaled, bf16 = (np.array(errors) for errors in cdna2_range.curves(200).values())
    lost = [int(np.argmax(errors > 0.5)) for errors in (cdna2, cdna3, scaled)]
    assert 8 <= lost[1] - lost[0] <= 11
    assert lost[2] - lost[0] == cdna2_range.BOOST
    assert np.ptp(bf16) < 1e-9 and 6 < bf16[0] / cdna3[0] < 10


def test_products_overflow_on_cdna2_and_cdna3_only() -> None:
    assert {unit.architecture for unit in product_overflow.UNITS if product_overflow.overflows(unit)} == {
        "cdna2",
        "cdna3",
    }
    code = golden.from_float("bf16", [2.0**70, 2.0**70, -(2.0**70)]).tolist()
    values = [[exact.decode("bf16", x) for x in row] for row in ([code[0], code[1]], [code[0], code[2]])]
    assert exact.fdrda(*values, exact.decode("f32", 0)) == 0x7FC00000
    assert exact.fda(*values, exact.decode("f32", 0), "f32", 25, -133) == 0


def test_sums_of_chained_operations_overflow_between_them() -> None:
    """2^127 + 2^127 in the first half of K = 16 and -2^127 in the second: f32 between them is infinite, as
    the study says."""
    a, b = (np.zeros(16) for _ in range(2))
    a[[0, 1, 8]], b[[0, 1, 8]] = 2.0**64, (2.0**63, 2.0**63, -(2.0**63))
    units = {
        unit.architecture: unit for unit in product_overflow.UNITS if unit.what == "bf16" and unit.ins.k == 16
    }
    infinite = {name for name, unit in units.items() if np.isinf(dot(unit.ins, a, b, 0.0))}
    assert infinite == {"ampere", "ada", "cdna2", "cdna3"}


def test_hopper_loses_no_finite_result_and_cdna3_does() -> None:
    units = {unit.architecture: unit for unit in product_overflow.UNITS if unit.what == "bf16"}
    shares = {name: product_overflow.shares(units[name], 400) for name in ("hopper", "cdna3")}
    assert not any(shares["hopper"])
    assert (
        shares["cdna3"][0] == 0 and shares["cdna3"][-1] > 0.9 and shares["cdna3"] == sorted(shares["cdna3"])
    )


# CDNA3's rounding -------------------------------------------------------------------------------------------


def test_the_papers_case_on_every_unit() -> None:
    case = published("cdna3-rounding")["case"]
    for unit in cdna3_rounding.case_units():
        result = cdna3_rounding.case_result(unit.ins)
        if unit.architecture == "cdna3":
            assert result == case["result"] and abs(result - case["c"]) == pytest.approx(case["error"])
        elif unit.architecture in ("cdna1", "cdna2"):
            assert result == pytest.approx(case["c"], rel=1e-7)  # against the paper's sentence
        else:
            assert result == case["other_result"]
    assert cdna3_rounding.case_result(cdna3_rounding.hypothetical()) == case["other_result"]


def draw(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    a, b = (golden.from_float("f16", 1000 * rng.standard_normal((count, 8))) for _ in range(2))
    return a, b, golden.from_float("f32", rng.standard_normal(count))


def test_the_hypothetical_unit_is_symmetric_and_cdna3_is_not() -> None:
    a, b, c = draw(2000)
    minus = a ^ np.uint16(0x8000), b, c ^ np.uint32(0x80000000)
    opposite = np.uint32(0x80000000)
    hypothetical, cdna3 = cdna3_rounding.hypothetical(), cdna3_rounding.cdna3()
    assert np.array_equal(hypothetical.dot(a, b, c), hypothetical.dot(*minus) ^ opposite)
    assert (cdna3.dot(a, b, c) != cdna3.dot(*minus) ^ opposite).mean() > 0.1


def test_cdna3s_results_and_bias_are_those_of_exact_rationals() -> None:
    """The mean deviation is half a unit of c's last kept place: 2**-25 of the largest exponent."""
    a, b, c = draw(300)
    found = cdna3_rounding.cdna3().dot(a, b, c)
    deviations, halves = [], []
    for x, y, z, code in zip(a.tolist(), b.tolist(), c.tolist(), found.tolist(), strict=True):
        values = [[exact.decode("f16", v) for v in row] for row in (x, y)]
        third = exact.decode("f32", z)
        assert exact.fdrda(*values, third) == code
        pairs = list(zip(*values, strict=True))
        deviations.append(float(f32_value(code) - sum((p.x * q.x for p, q in pairs), third.x)))
        halves.append(-(2.0 ** (max(p.e + q.e for p, q in pairs) - 25)))
    assert np.mean(deviations) == pytest.approx(np.mean(halves), abs=3 * np.std(deviations) / np.sqrt(300))
    assert np.mean(deviations) < -3 * np.std(deviations) / np.sqrt(300)


def test_rounding_down_is_biased_and_rounding_to_zero_and_a_separate_c_are_not() -> None:
    found = list(cdna3_rounding.measure(cdna3_rounding.units(), 60_000, 1000).values())
    down, *others = found
    assert down.mean < -30 * down.standard_error
    assert all(abs(other.mean) < 4 * other.standard_error for other in others)
    assert down.below > 0.65 * down.count and abs(others[0].below / down.count - 0.5) < 0.01
    assert int(np.sum(down.histogram)) > 0.95 * down.count


def test_cdna3s_fp8_patch() -> None:
    assert cdna3_rounding.fp8_case() == {"far": 0.0, "near": -(2.0**-10)}


# TF32 -------------------------------------------------------------------------------------------------------


def test_the_papers_word_becomes_infinity_bit_for_bit_on_every_unit_with_tf32_operands() -> None:
    assert (
        exact.decode("f32", tf32_nan.PAPER_WORD).what == "nan"
        and exact.decode("tf32", tf32_nan.PAPER_WORD).what == "inf"
    )
    answers = {answer.architecture: answer for answer in tf32_nan.answers()}
    assert set(answers) == {"ampere", "ada", "hopper", "blackwell", "rtx_blackwell", "cdna3"}
    for answer in answers.values():
        assert set(answer.a) == set(answer.b) == {tf32_nan.PAPER_RESULT}
        assert set(answer.c) == {0x7FC00000 if answer.architecture == "cdna3" else 0x7FFFFFFF}


def test_each_word_is_what_the_oracle_makes_of_its_kept_bits() -> None:
    ins = tf32_nan.plainest("hopper")
    words = np.concatenate(
        [tf32_nan.doomed()[::997], tf32_nan.random_nans(500), np.array(list(tf32_nan.WORDS), np.uint32)]
    )
    for word, result in zip(words.tolist(), tf32_nan.times_one(ins, words).tolist(), strict=True):
        row = [exact.decode("tf32", word), *[exact.decode("tf32", 0)] * (ins.k - 1)]
        ones = [exact.decode("tf32", tf32_nan.ONE), *[exact.decode("tf32", 0)] * (ins.k - 1)]
        assert result == exact.fda(row, ones, exact.decode("f32", 0), "f32", 25, -133), hex(word)


def test_conversions_of_nans() -> None:
    ins, words = tf32_nan.plainest("hopper"), np.array([tf32_nan.PAPER_WORD, 0x7FFFFFFF], np.uint32)
    none, nearest, integer = (
        tf32_nan.times_one(ins, convert(words)).tolist() for convert in tf32_nan.conversions().values()
    )
    assert none == [0x7F800000, 0x7FFFFFFF]
    assert nearest == [0x7FFFFFFF, 0x7FFFFFFF]
    assert integer == [0x7F800000, 0]


def test_no_committed_vector_holds_such_a_word() -> None:
    """The study says so; vectors that do would be better evidence than the paper."""
    files = sorted((ROOT / "vectors" / "hopper").glob("*tf32*.npz"))
    assert files
    for path in files:
        with np.load(path) as arrays:
            for name in ("a", "b"):
                assert not np.isin(arrays[name], tf32_nan.doomed()).any(), path.name


# Order and consistency --------------------------------------------------------------------------------------


def test_the_four_trees_of_figure_1_come_out() -> None:
    drawn = [case for case in summation_order.CASES if case.figure1]
    assert [case.figure1 for case in drawn] == ["(a)", "(b)", "(c)", "(d)"]
    for case in drawn:
        assert summation_order.found_tree(case.unit) == case.printed


def test_a_tree_is_written_with_c_first_and_long_runs_short() -> None:
    """((c + 0) + 1) + 2 by hand; sums without a loss in square brackets."""
    chain = Node((2, Node((1, Node((sum_tree.C, 0))))))
    assert summation_order.tree_text(chain) == "((c+0)+1)+2"
    assert summation_order.tree_text(Node((*range(4, 14), Node((sum_tree.C, 0, 1), exact=True)))) == (
        "[c+0+1]+4+5+..+13"
    )


def test_shuffling_k_changes_chains_and_trees_but_no_fused_sum() -> None:
    for case in summation_order.CASES:
        share = summation_order.changed_by_shuffling(case.unit, 500)
        tree = summation_order.found_tree(case.unit)
        if not {"(", "["} & set(tree) and "c" in tree.split("+"):
            assert share == 0, case
        elif case.figure1:
            assert share > 0.1, case


def test_equal_architectures_and_their_results_in_rationals() -> None:
    words = consistency.results("f16", 200)
    found = consistency.classes(consistency.GROUPS["f16"], consistency.differing(words))
    assert [[unit.architecture for unit in group] for group in found] == [
        ["volta"],
        ["turing", "ampere", "ada"],
        ["hopper", "blackwell", "rtx_blackwell"],
        ["cdna1"],
        ["cdna2"],
        ["cdna3"],
    ]
    rng = np.random.default_rng(7)
    a, b = (golden.from_float("f16", rng.standard_normal((200, consistency.K))) for _ in range(2))
    c = rng.standard_normal(200, dtype=np.float32).view(np.uint32)
    steps = {"volta": (4, 23, -131), "turing": (8, 24, -132), "hopper": (16, 25, -133)}
    for place, unit in enumerate(consistency.GROUPS["f16"]):
        if unit.architecture in steps:
            step = exact.cofda("f16", "f16", "f32", "f32", *steps[unit.architecture])
            assert [
                step(x, y, z) for x, y, z in zip(a[:5].tolist(), b[:5].tolist(), c[:5].tolist(), strict=True)
            ] == (words[place, :5].tolist())


# Numeric profiles -------------------------------------------------------------------------------------------


def test_the_profile_meets_the_printed_figures_but_for_the_one_it_explains() -> None:
    from golden.identify.probe import numeric_profile as numeric

    found = numeric.profile(numeric_profile.ARCHITECTURE, 8192, 20, 12)
    lines = numeric_profile.comparison(found)
    assert len(lines) == 30
    odd = [line for line in lines if line.paper == 1.89e-8]
    assert len(odd) == 1 and odd[0].ours == 0
    assert found.errors["bf16"]["accumulation_f32_c"]["low"] == pytest.approx(odd[0].paper, rel=0.08)
    for line in lines:
        if line.difference is None:
            assert line.ours < 1e-10, line
        elif line is not odd[0]:
            assert abs(line.difference) < 0.12, line


def test_labels_name_the_chip() -> None:
    assert Subject("rtx_blackwell", fp8_accumulation.QMMA, "mma").label == "RTX Blackwell mma"
