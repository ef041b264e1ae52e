"""The diagnosis names the fault: units made faulty by hand as YAML (or in NumPy), 20,000 mixed vectors,
one question."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from long_run import long_after

import golden
import rtl_tb
from golden import yamlfile
from golden.catalog import unit_files
from golden.catalog.unit_text import unit_text
from golden.identify import diagnosis
from golden.identify.diagnose import policy, ranking
from golden.identify.diagnose.conditions import known
from golden.identify.diagnose.mutations import of_ports, of_program, of_signals
from golden.model.instruction import Instruction
from golden.vectors.vectorset import VectorSet, default_set

EXAMPLES = Path(__file__).parents[3] / "spec" / "examples"
MUTANTS = Path(rtl_tb.__file__).parent / "mutants"
MMA = "mma.sync.aligned."
UNITS = {
    "f16": ("hopper", f"{MMA}m16n8k16.row.col.f32.f16.f16.f32"),
    "f16_f16": ("hopper", f"{MMA}m16n8k8.row.col.f16.f16.f16.f16"),
    "bf16": ("hopper", f"{MMA}m16n8k8.row.col.f32.bf16.bf16.f32"),
    "tf32": ("ampere", f"{MMA}m16n8k8.row.col.f32.tf32.tf32.f32"),
    "mxfp8": (
        "rtx_blackwell",
        f"{MMA}m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0",
    ),
    "nvfp4": (
        "rtx_blackwell",
        f"{MMA}m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    ),
    "s8": ("hopper", f"{MMA}m16n8k32.row.col.satfinite.s32.s8.s8.s32"),
    "fdrda": ("cdna3", "v_mfma_f32_16x16x16_f16"),
    "f64": ("hopper", f"{MMA}m8n8k4.row.col.f64.f64.f64.f64"),
}
Keys = dict[str, Any]


@cache
def unit(name: str) -> Instruction:
    return (
        golden.load_instruction(EXAMPLES / f"{name}.yaml")
        if name not in UNITS
        else golden.instruction(*UNITS[name])
    )


@cache
def vectors(name: str) -> VectorSet:
    return default_set(unit(name), count=6_000, seed=5)


def edited(name: str, change: Callable[[Keys], None]) -> Instruction:
    """The unit written out as YAML, changed by hand, and loaded as a designer's own."""
    text = unit_text(unit(name))
    assert text is not None
    document: Keys = yaml.safe_load(text)
    change(document)
    return unit_files.build_instruction(yamlfile.parse(yaml.safe_dump(document)))


def steps(op: str, **keys: Any) -> Callable[[Keys], None]:
    """Sets keys of every step of one kind."""

    def change(document: Keys) -> None:
        found = [step[op] for operation in document["program"] for step in operation["steps"] if op in step]
        assert found
        for step in found:
            step |= keys

    return change


def first(step: Keys) -> Callable[[Keys], None]:
    """Puts a step before all others."""

    def change(document: Keys) -> None:
        for operation in document["program"]:
            operation["steps"].insert(0, step)

    return change


def all_of(*changes: Callable[[Keys], None]) -> Callable[[Keys], None]:
    def change(document: Keys) -> None:
        for one in changes:
            one(document)

    return change


def operand_formats(**names: str) -> Callable[[Keys], None]:
    """Reads operands as other formats of the same width."""

    def change(document: Keys) -> None:
        document["formats"] |= names

    return change


def halves_swapped(document: Keys) -> None:
    low, high = document["program"]
    low["k"], high["k"] = high["k"], low["k"]


def scales_without_nan(document: Keys) -> None:
    numbers = {
        "kind": "float",
        "storage": 8,
        "exponent_bits": 8,
        "fraction_bits": 0,
        "bias": 127,
        "specials": "none",
    }
    document["define_formats"] = {"e8": numbers | {"signed": False, "zero": False}}
    document["formats"] |= {"scale_a": "e8", "scale_b": "e8"}


def c_afterwards(document: Keys) -> None:
    for step in document["program"][0]["steps"]:
        for op in ("align", "sum"):
            if op in step:
                step[op]["of"] = ["products"]
        if "round" in step:
            step["round"]["to"] = "partial"
    add = {
        "of": ["partial", "c"],
        "to": "d",
        "order": "sequential",
        "format": "f32",
        "rounding": "nearest_even",
        "nan": 0x7FFFFFFF,
    }
    document["program"][0]["steps"].append({"sum": add})


def cancelled_groups(document: Keys) -> None:
    document["program"][0]["steps"][2]["sum"]["cancelled"] = "zero"


FAULTS: list[tuple[str, str, Callable[[Keys], None]]] = [
    ("fraction-bits-minus-1", "f16", steps("align", fraction_bits=24)),
    ("fraction-bits-plus-1", "f16", steps("align", fraction_bits=26)),
    ("round-nearest-even", "f16", steps("round", rounding="nearest_even")),
    ("round-toward-zero", "sticky_rne", steps("round", rounding="toward_zero")),
    ("sticky-added", "f16", steps("align", cut="sticky_added")),
    ("sticky-removed", "sticky_rne", steps("align", cut="dropped")),
    ("sticky-gap-2", "sticky_rne", steps("align", sticky_gap=2)),
    ("zeros-in-sticky", "sticky_rne", steps("align", zeros="sticky")),
    ("zeros-in-maximum", "f16", steps("align", zeros="maximum")),
    ("sum-width-7", "f16", steps("sum", width=7)),
    ("hidden-bit-set", "f16", first({"hidden_bit": {"of": ["a", "b"]}})),
    ("operands-flushed-signed", "bf16", first({"flush": {"of": ["a", "b", "c"], "sign": "signed"}})),
    ("subnormal-carry-lost", "f16_f16", steps("round", subnormal_carry="lost")),
    ("round-sticky-gap-2", "f16_f16", steps("round", sticky_gap=2)),
    ("product-normalized", "f16", steps("multiply", normalize=True)),
    ("floor-minus-126", "bf16", steps("align", floor=-126)),
    ("c-left-out-dropped", "f16", steps("align", left_out={"c": "dropped"})),
    ("c-left-out-unshifted", "f16", steps("align", left_out={"c": "unshifted"})),
    ("shift-limit-26", "bf16", steps("align", shift_limit=26)),
    ("c-after-sum", "f16", c_afterwards),
    ("zero-signed", "f16", steps("round", zero="signed")),
    ("zero-times-infinity-is-zero", "f16", steps("multiply", zero_times_infinity="zero")),
    ("zero-times-infinity-is-infinity", "f16", steps("multiply", zero_times_infinity="infinity")),
    ("opposite-infinities-first", "f16", steps("special_values", opposite_infinities="first")),
    ("nan-word", "f16", steps("special_values", nan=0x7FC00000)),
    ("overflow-largest", "f16_f16", steps("round", overflow="largest")),
    ("tf32-low-bits", "tf32", operand_formats(a="f32", b="f32")),
    ("chain-halves-swapped", "tf32", halves_swapped),
    ("scale-nan-ignored", "mxfp8", scales_without_nan),
    ("scale-sign-used", "nvfp4", operand_formats(scale_a="e4m3", scale_b="e4m3")),
    ("round-toward-zero", "fdrda", steps("round", rounding="toward_zero")),
    ("sum-fraction-bits-minus-1", "fdrda", steps("normalize", fraction_bits=30)),
    ("round-down", "f64", steps("fma", rounding="down")),
    ("order-sequential", "ieee_tree", steps("sum", order="sequential")),
]


def check(name: str, actual: Any, slug: str) -> diagnosis.Diagnosis:
    found = diagnosis.diagnose(unit(name), vectors(name).operands, actual, budget_seconds=300)
    assert found.explains, found.sentence()
    assert slug in {hypothesis.slug for hypothesis in found.explaining}, found.sentence()
    assert len(found.explaining) <= 4, "the vectors tell most faults apart"
    return found


@pytest.mark.parametrize(
    ("slug", "name", "change"), long_after(1, FAULTS, [f"{name}-{slug}" for slug, name, _ in FAULTS])
)
def test_names_the_fault(slug: str, name: str, change: Callable[[Keys], None]) -> None:
    vector_set = vectors(name)
    actual = edited(name, change).dot(**vector_set.operands)
    assert (actual != vector_set.d).any(), "the vectors see the fault"
    found = check(name, actual, slug)
    text = found.unit_yaml()
    assert text is not None
    again = unit_files.build_instruction(yamlfile.parse(text)).dot(**vector_set.operands)
    assert np.array_equal(again, actual), "the YAML of the diagnosis is the faulty unit"


def test_a_change_that_explains_a_part_is_no_fault_if_another_explains_all() -> None:
    """A product of 15 bits: a sum of 17 bits explains a part of the results."""
    row = golden.load_instruction(MUTANTS / "units" / "systolic_mac" / "unit.yaml").stateless
    operands = default_set(row, count=8_000, seed=5).operands
    rng = np.random.default_rng(5)
    for name in "ab":  # -128 times itself is what does not fit
        operands[name] = np.where(rng.random(operands[name].shape) < 0.05, np.uint8(0x80), operands[name])
    products = operands["a"].view(np.int8).astype(np.int64) * operands["b"].view(np.int8)
    short = (products + (1 << 14)) % (1 << 15) - (1 << 14)
    actual = (operands["c"].view(np.int32) + short.sum(axis=1)).astype(np.int32).view(np.uint32)
    found = diagnosis.diagnose(row, operands, actual, budget_seconds=60)
    assert found.explains and len(found.faults) == 1, found.sentence()
    assert "each product has 15 bits" in found.sentence() and "17" not in found.sentence()
    assert all(fault.explains for fault in found.faults)


def cancelling_groups() -> dict[str, Any]:
    """nvfp4: one group that cancels under a large scale, and a c that its exponent pushes out
    of the window."""
    rng = np.random.default_rng(3)
    operands = {name: codes[:400].copy() for name, codes in vectors("nvfp4").operands.items()}
    for name in ("a", "b"):
        operands[name][...] = 0
    operands["a"][:, 3], operands["a"][:, 9] = 0x2, 0xA  # 1 and -1
    operands["b"][:, 3] = operands["b"][:, 9] = rng.integers(1, 8, 400)
    operands["scale_a"][...] = operands["scale_b"][...] = 0x78  # 256
    operands["c"][...] = rng.integers(60 << 23, 120 << 23, 400)
    return operands


def test_cancelled_group_loses_its_exponent() -> None:
    operands = {
        name: np.concatenate([vectors("nvfp4").operands[name], codes])
        for name, codes in cancelling_groups().items()
    }
    actual = edited("nvfp4", cancelled_groups).dot(**operands)
    assert (actual[-400:] == operands["c"][-400:]).all(), "only c is left"
    found = diagnosis.diagnose(unit("nvfp4"), operands, actual)
    assert found.explaining[0].slug == "cancelled-loses-exponent", found.sentence()


def test_saturation_after_every_product() -> None:
    """The faulty sum in NumPy."""
    operands = vectors("s8").operands
    total = operands["c"].view(np.int32).astype(np.int64)
    for k in range(32):
        product = operands["a"][:, k].view(np.int8).astype(np.int64) * operands["b"][:, k].view(np.int8)
        total = np.clip(total + product, -(1 << 31), (1 << 31) - 1)
    check("s8", total.astype(np.int32).view(np.uint32), "saturate-per-step")


EXACT_PRODUCT = """\
unit: exact
shape: {k: 1}
define_formats:
  s9: {kind: integer, storage: 16, bits: 9}
  small: {kind: float, storage: 8, exponent_bits: 2, fraction_bits: 1, bias: 0, specials: none}
formats: {a: FACTOR, b: FACTOR, d: RESULT}
steps:
  - multiply: {to: products}
  - round: {of: products, rounding: toward_zero, overflow: OVERFLOW, zero: positive}
"""
"""One product and no sum: nothing of a unit that a change of a sum can rewrite."""


@pytest.mark.parametrize(
    ("factor", "result", "overflow"),
    [("small", "s9", "saturate"), ("s32", "s32", "wrap"), ("f16", "s32", "saturate"), ("s8", "f32", "ieee")],
)
def test_every_change_of_a_product_without_a_sum_leaves_a_result(
    factor: str, result: str, overflow: str
) -> None:
    text = EXACT_PRODUCT.replace("FACTOR", factor).replace("RESULT", result).replace("OVERFLOW", overflow)
    ins = unit_files.build_instruction(yamlfile.parse(text))
    operands = default_set(ins, 40, seed=1).operands
    right = ins.dot(**operands)
    for one in of_program(ins):
        new = one.program(ins) if one.program else None
        for operation in () if new is None else new.program.operations:
            assert [step.to for step in operation.steps].count("d") == 1, one.slug
            assert operation.steps[-1].to == "d", one.slug
    wrong = right.copy()
    wrong[1:] = right[:-1]
    wrong[0] = right[-1]
    found = diagnosis.diagnose(ins, operands, wrong, budget_seconds=2)
    assert found.failing and found.sentence()


def test_wiring() -> None:
    ins, given = unit("f16"), vectors("f16")
    operands = given.operands
    check("f16", ins.dot(**(operands | {"c": np.zeros_like(operands["c"])})), "c-ignored")
    a = operands["a"].copy()
    a[:, 5] = 0
    check("f16", ins.dot(**(operands | {"a": a})), "element-5-dropped")
    late = check("f16", np.roll(given.d, 1), "delayed-by-one")
    assert late.unit_yaml() is None, "no YAML for a late result"


def halves_swapped_words(codes: Any) -> Any:
    return codes << np.uint32(16) | codes >> np.uint32(16)


def with_b(order: list[int]) -> Callable[..., Any]:
    return lambda ins, given: ins.dot(**(given | {"b": given["b"][:, order]}))


def finite_b(ins: Instruction) -> Instruction:
    """Reads infinities and NaNs of b as numbers."""
    numbers = replace(ins.formats["b"], name="numbers", specials="none")
    return replace(ins, formats=ins.formats | {"b": numbers})


WIRES: list[tuple[str, Callable[..., Any]]] = [
    ("products-ignored", lambda ins, given: ins.dot(**(given | {n: 0 * given[n] for n in "ab"}))),
    ("result-bytes-swapped", lambda ins, given: ins.dot(**given).byteswap()),
    ("result-halves-swapped", lambda ins, given: halves_swapped_words(ins.dot(**given))),
    ("result-bit-3-high", lambda ins, given: ins.dot(**given) | 8),
    ("c-bytes-swapped", lambda ins, given: ins.dot(**(given | {"c": given["c"].byteswap()}))),
    ("b-pairs-swapped", with_b([1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14])),
    ("b-even-first", with_b([*range(0, 16, 2), *range(1, 16, 2)])),
    (
        "infinity-loses-sign",
        lambda ins, given: np.where((d := ins.dot(**given)) == 0xFF800000, 0x7F800000, d),
    ),
    ("c-early-by-one", lambda ins, given: ins.dot(**(given | {"c": np.roll(given["c"], -1)}))),
    ("b-specials-ignored", lambda ins, given: finite_b(ins).dot(**given)),
    ("delayed-by-3", lambda ins, given: np.roll(ins.dot(**given), 3)),
    ("shift-limit-10", lambda ins, given: edited("f16", steps("align", shift_limit=10)).dot(**given)),
]


@pytest.mark.parametrize(("slug", "fault"), long_after(1, WIRES, [slug for slug, _ in WIRES]))
def test_faults_of_wires(slug: str, fault: Callable[..., Any]) -> None:
    """Each made in NumPy from the results of the right unit."""
    actual = np.asarray(fault(unit("f16"), vectors("f16").operands), np.uint32)
    found = check("f16", actual, slug)
    assert [one.slug for one in found.faults] == [found.hypotheses[0].slug]


def test_no_sticky_in_the_last_rounding() -> None:
    wrong = edited("sticky_rne", steps("round", sticky_gap=64))
    check("sticky_rne", wrong.dot(**vectors("sticky_rne").operands), "round-no-sticky")


@pytest.mark.long
def test_what_explains_little_is_not_said_to_be_the_unit() -> None:
    """A unit that is wrong in its own way: facts instead of a hypothesis."""
    ins, operands = unit("f16"), vectors("f16").operands
    right = ins.dot(**operands)
    odd = np.bitwise_count(operands["c"]) & 1
    wrong = right ^ (odd * (right >> 5 & 3)).astype(np.uint32)
    found = diagnosis.diagnose(ins, operands, wrong, budget_seconds=2)
    assert "your unit is" not in found.sentence() and not found.faults
    assert "Only bits 0 to 1 of the result are ever wrong" in found.sentence()


def test_another_architecture() -> None:
    ampere = golden.instruction("ampere", UNITS["f16"][1])
    found = check("f16", ampere.dot(**vectors("f16").operands), "known-ampere")
    assert (
        f"your unit is ampere:{UNITS['f16'][1]}" in found.sentence()
        and "0 of 6,000 differ" in found.sentence()
    )


@pytest.mark.long
def test_what_the_best_hides_is_combined_with_the_others() -> None:
    """Of four hypotheses one is in the pool, one among the best, one harmless, and one neither."""
    search = ranking.HypothesisSearch.__new__(ranking.HypothesisSearch)
    pool, best, harmless, other = (diagnosis.Hypothesis(slug, slug, None) for slug in "pbho")
    search.harmless = {"h": (5, harmless), "p": (7, pool)}
    found = search._by_themselves((ranking.Scored(best, 3),), [pool, best, harmless, other], [pool])
    assert found == [best, harmless]


@pytest.mark.long
def test_two_faults() -> None:
    both = edited("f16", all_of(steps("align", fraction_bits=24), steps("round", rounding="nearest_even")))
    found = check("f16", both.dot(**vectors("f16").operands), "fraction-bits-minus-1+round-nearest-even")
    assert "F = 24 instead of 25" in found.sentence() and "RNE instead of RZ" in found.sentence()
    assert found.as_dict()["hypotheses"][0]["remaining"] == 0


def test_nothing_to_explain_and_nothing_that_explains() -> None:
    given = vectors("f16")
    same = diagnosis.diagnose(unit("f16"), given.operands, given.d)
    assert same.explains and same.hypotheses[0].slug == "identity" and same.failing == 0
    given = vectors("f16_f16")
    noise = given.d.copy()
    noise[::100] ^= 1
    found = diagnosis.diagnose(unit("f16_f16"), given.operands, noise, budget_seconds=1)
    assert not found.explains and "differ" in found.sentence() and found.failing == 60


def test_a_policy_that_accepts_any_nan() -> None:
    """NaN words are no fault then, and other faults are still found."""

    class AnyNan:
        def equal(self, fmt: Any, expected: Any, actual: Any) -> Any:
            x, y = expected.view(np.float32), actual.view(np.float32)
            return (expected == actual) | (np.isnan(x) & np.isnan(y))

    given = vectors("f16")
    wrong = edited("f16", all_of(steps("special_values", nan=0x7FC00000), steps("align", fraction_bits=24)))
    found = diagnosis.diagnose(unit("f16"), given.operands, wrong.dot(**given.operands), policy=AnyNan())
    assert found.explaining[0].slug == "fraction-bits-minus-1"


def test_results_must_be_one_for_each_dot_product() -> None:
    given = vectors("f16")
    with pytest.raises(golden.ShapeError, match="argument 'actual'"):
        diagnosis.diagnose(unit("f16"), given.operands, given.d[:5])


WRITTEN = [path.stem for path in sorted(EXAMPLES.glob("*.yaml"))]


@pytest.mark.parametrize("name", [*UNITS, *WRITTEN])
def test_units_round_trip_through_yaml(name: str) -> None:
    text = unit_text(unit(name))
    assert text is not None
    again = unit_files.build_instruction(yamlfile.parse(text))
    for x, y in zip(again.program.operations, unit(name).program.operations, strict=True):
        assert (x.steps, x.k_index, x.seed, x.to) == (y.steps, y.k_index, y.seed, y.to)
    assert (
        unit_text(golden.instruction("hopper", "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"))
        is None
    )


@pytest.mark.parametrize("name", ["rdna3_dot2", "fixed_point"])
def test_every_change_makes_a_program_that_runs(name: str) -> None:
    """Also of units with a formula for the largest exponent, which may name c."""
    ins = unit(name)
    operands = default_set(ins, 4, seed=1).operands
    made = [new for one in of_program(ins) if one.program and (new := one.program(ins)) is not None]
    assert len(made) > 30
    for new in made:
        assert new.dot(**operands).shape == (4,)


def test_elements_left_out_from_a_place_on_are_named() -> None:
    """As a chain of two steps whose second one gets zeros."""
    ins = golden.instruction("cdna2", "v_mfma_f32_16x16x16f16")
    operands = default_set(ins, 2000, seed=1).operands
    lost = operands | {"a": np.where(np.arange(16) < 8, operands["a"], np.uint16(0))}
    assert diagnosis.diagnose(ins, operands, ins.dot(**lost)).hypotheses[0].slug == "a-from-8-dropped"


STYLES = Path(rtl_tb.__file__).parent / "mutants" / "units"


@pytest.mark.parametrize(
    ("unit", "slug", "order"),
    [
        ("two_path_tree", "k-halves-interleaved", [0, 4, 1, 5, 2, 6, 3, 7]),
        pytest.param(
            "per_pair_grid",
            "k-blocks-of-2-2-and-3-swapped",
            [0, 1, 2, 3, 6, 7, 4, 5],
            marks=pytest.mark.long,
        ),
        ("two_path_tree", "k-blocks-of-2-0-and-2-swapped", [4, 5, 2, 3, 0, 1, 6, 7]),
    ],
)
def test_another_order_of_k_is_named(unit: str, slug: str, order: list[int]) -> None:
    """As elements that change places outside the unit."""
    ins = golden.load_instruction(STYLES / unit / "unit.yaml")
    operands = default_set(ins, 1500, seed=1).operands
    moved = operands | {name: operands[name][:, order] for name in "ab"}
    found = diagnosis.diagnose(ins, operands, ins.dot(**moved))
    assert slug in [each.slug for each in found.explaining]


def test_one_element_of_the_vector_before_is_named() -> None:
    ins = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32")
    operands = default_set(ins, 1000, seed=1).operands
    late = {name: operands[name].copy() for name in "ab"}
    for codes in late.values():
        codes[1:, 3] = codes[:-1, 3].copy()
    found = diagnosis.diagnose(ins, operands, ins.dot(**(operands | late)))
    assert found.hypotheses[0].slug == "product-3-late-by-one"


def test_a_stuck_bit_of_an_operand_is_named() -> None:
    ins = golden.instruction("ampere", "HMMA.1688.F32.TF32")
    operands = default_set(ins, 2000, seed=1).operands
    stuck = operands | {"c": operands["c"] & np.uint32(0x7FFFFFFF)}
    found = diagnosis.diagnose(ins, operands, ins.dot(**stuck))
    assert found.explains and "the sign of c always 0" in found.sentence()


def test_what_wrong_results_have_in_common_is_said() -> None:
    """Codes by hand: 1 for -1; 2, a half and 8 for 1; the next number; zero."""
    ins = golden.instruction("hopper", "HMMA.16816.F32")
    zeros = {name: np.zeros((4, 16), np.uint16) for name in "ab"} | {"c": np.zeros(4, np.uint32)}
    right, all_wrong = np.full(4, 0x3F800000, np.uint32), np.ones(4, np.bool_)
    said = {
        0xBF800000: "all wrong results are right except for the sign",
        0x40000000: "all wrong results are twice what they should be",
        0x3F000000: "all wrong results are half what they should be",
        0x41000000: "all wrong results are 2^3 times what they should be",
        0x3F800001: "all wrong results are one unit of the last place off",
        0x00000000: "all wrong results are zero",
        0x7FC00000: "all wrong results are NaN",
    }
    for code, text in said.items():
        facts = known(ins, zeros, right, all_wrong, np.full(4, code, np.uint32))
        assert text in facts, facts
        assert set(said.values()) & set(facts) == {text}


@pytest.mark.long
def test_what_makes_everything_wrong_explains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """More results fail than faults of the datapath are held against: right ones must be among them, or "b
    counts as NaN where it is finite" explains whatever is NaN."""
    monkeypatch.setattr(ranking, "SEARCH", replace(policy.SEARCH, judged=400))
    ins, given = unit("mxfp8"), vectors("mxfp8")
    operands, d = {name: codes[:3000] for name, codes in given.operands.items()}, given.d[:3000]
    top = ((operands["b"] & 0x78) == 0x78).any(axis=1)
    actual = np.where(top, np.uint32(0x7FFFFFFF), d).astype(d.dtype)
    assert 500 < int((actual != d).sum()) < 2500
    found = diagnosis.diagnose(ins, operands, actual, budget_seconds=2)
    for one in found.hypotheses:
        left = int((one.results(operands) != actual).sum())
        assert one.remaining or not left, one.text


def test_what_one_fault_explains_is_counted_of_what_it_was_held_against() -> None:
    """Of 3,000 wrong results 200 were asked, and three of them are left."""
    ins, operands = unit("f16"), {name: codes[:3000] for name, codes in vectors("f16").operands.items()}
    wrong = ins.dot(**operands) ^ np.uint32(1)
    results = ranking.Results(ins, operands, wrong, diagnosis._Exact())
    best = diagnosis.Hypothesis("x", "x", ins, remaining=3, total=400, failing=200)
    assert [fault.explains for fault in diagnosis._faults(results, best)] == [197]
    every = replace(best, failing=None, total=3000)
    assert [fault.explains for fault in diagnosis._faults(results, every)] == [2997]


def test_a_sentence_says_of_which_vectors_a_count_is() -> None:
    """A slow hypothesis is tried on a part of the vectors; the sentence names no total but the check's."""
    ins = unit("f16")
    slow = diagnosis.Hypothesis("x", "fault x", ins, remaining=3, total=400, failing=200)
    said = diagnosis.Diagnosis(ins, (slow,), 1000, 9000).sentence()
    assert said == (
        f"no hypothesis that was tried explains all results. The nearest is {ins.architecture}:{ins.name} "
        "with one fault: fault x. 3 of the 400 vectors that it was tried on differ, where 200 did"
    )
    exact = replace(slow, remaining=0)
    assert "0 of the 400 vectors that it was tried on differ" in (
        diagnosis.Diagnosis(ins, (exact,), 1000, 9000).sentence()
    )
    whole = diagnosis.Hypothesis("x", "fault x", ins, remaining=3, total=9000)
    assert "3 of 9,000 differ, where 1,000 did" in diagnosis.Diagnosis(ins, (whole,), 1000, 9000).sentence()


def test_several_faults_are_no_explanation_by_one() -> None:
    two = diagnosis.Hypothesis("x+y", "x and y", None, remaining=0)
    one, near = replace(two, slug="z"), replace(two, remaining=1)
    said = [
        diagnosis.Diagnosis(unit("f16"), given, 9, 9).explained_by_one
        for given in ((two,), (two, one), (near,))
    ]
    assert said == [False, True, True]


@pytest.mark.parametrize("zeros", [False, True])
def test_a_hidden_bit_of_one_operand_is_named(zeros: bool) -> None:
    """A subnormal number with the hidden bit is the normal one of the least exponent."""
    ins, given = unit("f16"), vectors("f16").operands
    b = given["b"]
    gets = (b & 0x7C00 == 0) & ((b & 0x3FF != 0) | zeros)
    actual = ins.dot(a=given["a"], b=np.where(gets, b | 0x0400, b).astype(b.dtype), c=given["c"])
    check("f16", actual, f"hidden-bit-set-b{'-zeros' if zeros else ''}")


def test_a_cause_comes_before_a_symptom() -> None:
    """Without products and with c = 0 every result is +0: "the products ignored" is the cause of it."""
    ins, given = unit("f16"), vectors("f16").operands
    operands = {name: codes[:400] for name, codes in given.items()} | {"c": np.zeros(400, np.uint32)}
    found = diagnosis.diagnose(ins, operands, np.zeros(400, np.uint32))
    slugs = [one.slug for one in found.explaining]
    assert "products-ignored" in slugs and slugs[-1] == "result-constant"
    assert "(a symptom, not its cause)" in found.explaining[-1].text


@pytest.mark.parametrize(
    ("name", "words"), [("ieee_add", {"product", "products", "b"}), ("ieee_multiply", {"c"})]
)
def test_faults_are_said_in_the_words_of_the_unit(name: str, words: set[str]) -> None:
    """An adder has no products and no b, a multiplier no c."""
    ins = next(iter(unit(name).mode_units.values())).stateless
    for one in (*of_program(ins), *of_ports(ins, ()), *of_signals(ins)):
        if one.program is None or one.program(ins) is not None:
            assert not words & {*re.findall(r"\w+", one.text)}, one.text


def test_what_is_said_also_holds_for_the_operands_that_are_shown(tmp_path: Path) -> None:
    """All wrong vectors have one a; the smallest one, which is none of the vectors, has another."""
    (tmp_path / "unit.yaml").write_text(
        """unit: converter
shape: {k: 1}
formats: {a: f32, d: f16}
steps:
  - round: {of: a, rounding: nearest_even, overflow: ieee, zero: signed}
""",
        encoding="utf-8",
    )
    ins = golden.load_instruction(tmp_path / "unit.yaml").plain
    codes = np.r_[np.full(20, 0x46FFFFFF), np.arange(0x3F800000, 0x477F0000, 40_001)]
    operands = {"a": codes.astype(np.uint32)[:, None]}
    actual = ins.dot(**operands)
    actual[:20] = 0x7E11
    alone = diagnosis.diagnose(ins, operands, actual)
    shown = diagnosis.Wrong(ins.name, {"a": np.array([0x46FFFF00], np.uint32)}, 0x7E11)
    together = diagnosis.diagnose(ins, operands, actual, shown=shown)
    assert not alone.explains and not together.explains
    (exactly,) = (each for each in alone.known if "exactly where" in each)
    assert "0x46ffffff" in exactly
    assert not any("exactly where a is 0x46ffffff" in each for each in together.known), together.known
    assert together.failing == alone.failing == 20
