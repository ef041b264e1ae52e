"""The datapath with taps: without faults it is the core, and its faults give what exact arithmetic by
hand gives."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from faulty_units import any_unit
from long_run import long_after
from random_units import accepted, random_unit

import golden
import rtl_tb
from golden.errors import MmagoldError
from golden.identify import diagnosis
from golden.identify.diagnose import datapath
from golden.identify.diagnose.datapath import PLACES
from golden.identify.diagnose.datapath.arrays import modulo
from golden.identify.diagnose.datapath.codes import special_code
from golden.identify.diagnose.datapath.signals import CodeSignals
from golden.identify.diagnose.mutations import Mutation, of_signals
from golden.identify.diagnose.mutations.mutation import signal
from golden.identify.diagnosis import diagnose
from golden.model.instruction import Instruction
from golden.number.formats import Kind, to_float
from golden.program.signature import Bits, Operands
from golden.program.steps import SpecialValues
from golden.vectors.vectorset import default_set

EXAMPLES = Path(__file__).parents[3] / "spec" / "examples"
STYLES = Path(rtl_tb.__file__).parent / "mutants" / "units"
MMA = "mma.sync.aligned."
CATALOGUED = [
    ("hopper", f"{MMA}m16n8k16.row.col.f32.f16.f16.f32"),
    ("ampere", f"{MMA}m8n8k4.row.col.f16.f16.f16.f16"),
    ("hopper", f"{MMA}m16n8k32.row.col.satfinite.s32.s8.s8.s32"),
    ("hopper", f"{MMA}m8n8k4.row.col.f64.f64.f64.f64"),
    ("cdna2", "v_mfma_f32_16x16x16f16"),
    ("ampere", f"{MMA}m16n8k256.row.col.s32.b1.b1.s32.xor.popc"),
    ("ada", "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e5m2.f32"),
    ("cdna3", "v_mfma_f32_16x16x32_fp8_bf8"),
    (
        "rtx_blackwell",
        f"{MMA}m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    ),
    (
        "rtx_blackwell",
        f"{MMA}m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0",
    ),
]


def unit(name: str) -> Instruction:
    """One of the units in other styles, in its first mode."""
    return golden.load_instruction(STYLES / name / "unit.yaml").plain


UNITS = {path.parent.name: unit(path.parent.name) for path in STYLES.glob("*/unit.yaml")}
UNITS |= {
    path.stem: found
    for path in EXAMPLES.glob("*.yaml")
    if datapath.runs(found := golden.load_instruction(path).plain)
}
UNITS |= {name: golden.instruction(architecture, name) for architecture, name in CATALOGUED}


@pytest.mark.parametrize("name", UNITS)
def test_without_faults_it_is_the_core(name: str) -> None:
    ins = UNITS[name]
    assert datapath.runs(ins)
    operands = default_set(ins, 1500, seed=7).operands
    np.testing.assert_array_equal(datapath.results(ins, (), operands), ins.dot(**operands))


@pytest.mark.parametrize(
    "words", [(0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF), (0, 1, 2)], ids=["wide", "small"]
)
@pytest.mark.parametrize("overflow", ["wrap", "saturate"])
@pytest.mark.parametrize("result", ["s64", "u64", "s63"])
def test_results_as_wide_as_a_machine_word(
    tmp_path: Path, result: str, overflow: str, words: tuple[int, ...]
) -> None:
    """An integer of 64 bits leaves a machine integer no room, also where all numbers are small; against
    Python's integers."""
    ins = wide_product(tmp_path, result, overflow)
    a, b = (np.array(one, np.uint32) for one in zip(*product(words, words), strict=True))
    bits, signed = int(result[1:]), result[0] == "s"
    right = []
    for one, other in zip(a.tolist(), b.tolist(), strict=True):
        value = one * (other - (other >> 31 << 32))
        if overflow == "saturate":
            low = -(1 << bits - 1) if signed else 0
            value = min(max(value, low), low + (1 << bits) - 1)
        right.append(value & ((1 << bits) - 1))
    found = datapath.results(ins, (), {"a": a[:, None], "b": b[:, None]})
    assert found.tolist() == right


def test_a_fault_of_a_unit_of_64_bits_has_a_name(tmp_path: Path) -> None:
    ins = wide_product(tmp_path, "s64", "wrap")
    operands = default_set(ins, 400, seed=3).operands
    wrong = ins.dot(**operands) & np.uint64(0xFFFF_FFFF)
    assert diagnose(ins, operands, wrong).failing


def wide_product(folder: Path, result: str, overflow: str) -> Instruction:
    """u32 times s32 in a format of up to 64 bits."""
    (folder / "unit.yaml").write_text(
        f"""unit: product
shape: {{k: 1}}
define_formats:
  u32: {{kind: integer, storage: 32, bits: 32, signed: false}}
  s63: {{kind: integer, storage: 64, bits: 63}}
  s64: {{kind: integer, storage: 64, bits: 64}}
  u64: {{kind: integer, storage: 64, bits: 64, signed: false}}
formats: {{a: u32, b: s32, d: {result}}}
steps:
  - multiply: {{to: products}}
  - round: {{of: products, rounding: toward_zero, overflow: {overflow}, zero: positive}}
""",
        encoding="utf-8",
    )
    return golden.load_instruction(folder / "unit.yaml").plain


def _hands_nans_on(ins: Instruction) -> bool:
    """Words of NaNs that are none of the format are not for the datapath to know."""
    steps = ins.program.steps_of(SpecialValues)
    return any(step.nans or step.nan is not None for step in steps)


def test_random_units_run_as_the_core_runs_them(tmp_path: Path) -> None:
    """Units whose steps have any of the keys that the language declares."""
    seen = 0
    for seed in range(4000, 4160):
        file = tmp_path / f"unit{seed}.yaml"
        file.write_text(any_unit(random.Random(seed)))
        try:
            ins = golden.load_instruction(file).plain
        except MmagoldError:  # the language refuses most of what is drawn
            continue
        if not datapath.runs(ins) or _hands_nans_on(ins):
            continue
        operands = default_set(ins, 150, seed=seed).operands
        np.testing.assert_array_equal(
            datapath.results(ins, (), operands), ins.dot(**operands), err_msg=f"unit of seed {seed}"
        )
        seen += 1
    assert seen > 2


def test_a_code_that_is_too_long_loses_its_upper_bits() -> None:
    """As wires do; two faults that each add to the exponent field of f32 may make more than 32 bits."""
    ins = UNITS["packed_structs"]
    operands = default_set(ins, 400, seed=1).operands

    def add(signals: CodeSignals) -> None:
        signals.code = signals.code + (1 << 32)

    got = datapath.results(ins, (signal("code", "long", "", add),), operands)
    np.testing.assert_array_equal(got, ins.dot(**operands))


def test_scales_of_another_block_are_scales_that_were_exchanged_outside() -> None:
    ins = golden.load_instruction(EXAMPLES / "block_scaled.yaml")
    operands = default_set(ins, 800, seed=4).operands
    swapped = {name: np.roll(operands[name], 1, axis=1) for name in ("scale_a", "scale_b")}
    want = ins.dot(**operands | swapped)
    got = datapath.results(ins, (tap(ins, "scales-late-by-one-block"),), operands)
    np.testing.assert_array_equal(got, want)
    assert (want != ins.dot(**operands)).any()


def test_scales_that_count_half_by_hand() -> None:
    """32 products of 1, scales of 1, c of 0: 32, or 16 where a product's scales count half."""
    ins = golden.load_instruction(EXAMPLES / "block_scaled.yaml")
    one = np.full((1, 32), 11 << 3, np.uint8)  # exponent field 11 is the bias
    scale = np.full((1, 2), 127, np.uint8)
    operands = {"a": one, "b": one, "c": np.zeros(1, np.uint32), "scale_a": scale, "scale_b": scale}
    assert to_float(ins.formats["d"], ins.dot(**operands))[0] == 32
    half = datapath.results(ins, (tap(ins, "scale-exponent-minus-1"),), operands)
    assert to_float(ins.formats["d"], half)[0] == 16


def test_a_term_left_out_of_the_maximum_by_hand() -> None:
    """4 * 4 and 1 * 1 with c = 0: without the first product the largest exponent is 0, and the first product
    is lost, counts as 1, or is shifted left. Alone it is lost at most."""
    ins = UNITS["packed_structs"]
    a = np.array([[0x4400, 0x3C00, 0, 0]], np.uint16)
    operands = {"a": a, "b": a.copy(), "c": np.zeros(1, np.uint32)}
    want = {"": (17, 16), "dropped": (1, 16), "lost": (1, 0), "unshifted": (2, 16), "moved-left": (17, 16)}
    alone = operands | {"a": a * np.array([1, 0, 0, 0], np.uint16)}
    for rule, values in want.items():
        faults = (tap(ins, f"maximum-without-term-0-{rule}"),) if rule else ()
        got = [datapath.results(ins, faults, those)[0] for those in (operands, alone)]
        assert tuple(to_float(ins.formats["d"], np.array(got))) == values, rule


def test_a_term_left_out_of_the_maximum_is_not_lost_below_the_floor() -> None:
    ins = golden.instruction("ampere", "HMMA.16816.F32.BF16")
    a = np.zeros((1, 16), np.uint16)
    a[0, 0] = (127 - 69) << 7  # 2^-138 as a product: the floor is at -132
    operands = {"a": a, "b": a.copy(), "c": np.zeros(1, np.uint32)}
    lost = (tap(ins, "maximum-without-term-0-lost"),)
    assert datapath.results(ins, lost, operands)[0] == ins.dot(**operands)[0] == 1 << 11


def test_a_sticky_bit_that_does_not_see_c_by_hand() -> None:
    """2 + 2^-23 is halfway between two f32 numbers; 2^-60 decides, if the sticky bit sees it."""
    ins = golden.load_instruction(EXAMPLES / "sticky_rne.yaml")
    halves = np.array([[0x4000, 0x1000, 0, 0]], np.uint16)  # 2 and 2^-11
    operands = {"a": halves, "b": np.array([[0x3C00, 0x0C00, 0, 0]], np.uint16), "c": np.zeros(1, np.uint32)}
    operands["c"][0] = (127 - 60) << 23
    assert ins.dot(**operands)[0] == 0x40000001
    assert datapath.results(ins, (tap(ins, "sticky-without-c"),), operands)[0] == 0x40000000
    assert datapath.results(ins, (tap(ins, "sticky-without-products"),), operands)[0] == 0x40000001


def test_another_bias_is_a_power_of_two() -> None:
    """An exponent of a that is one too large doubles a: where nothing is subnormal or overflows, the result
    of the codes of 2 a."""
    ins = UNITS["packed_structs"]
    operands = finite(ins)
    zero, exponents = operands["a"] & 0x7FFF == 0, operands["a"] >> 10 & 31
    fits = (zero | ((exponents > 0) & (exponents < 30))).all(axis=1)
    operands = {name: codes[fits] for name, codes in operands.items()}
    doubled = operands["a"] + np.where(zero[fits], np.uint16(0), np.uint16(1 << 10))
    assert fits.sum() > 100
    got = datapath.results(ins, (tap(ins, "a-exponent-plus-1"),), operands)
    np.testing.assert_array_equal(got, ins.dot(**operands | {"a": doubled}))


def test_an_infinity_that_nobody_sees_is_the_number_of_its_code() -> None:
    """The code of an f16 infinity without special values is 2^16."""
    ins = UNITS["packed_structs"]
    a = np.array([[0x7C00, 0, 0, 0]], np.uint16)
    b = np.array([[0x3C00, 0, 0, 0]], np.uint16)
    operands = {"a": a, "b": b, "c": np.zeros(1, np.uint32)}
    for slug in ("infinity-unseen", "products-infinity-unseen", "infinity-not-answered"):
        got = datapath.results(ins, (tap(ins, slug),), operands)
        assert to_float(ins.formats["d"], got)[0] == 65536, slug
    seen = datapath.results(ins, (tap(ins, "c-infinity-unseen"),), operands)
    assert np.isinf(to_float(ins.formats["d"], seen)[0])
    negative = datapath.results(ins, (tap(ins, "products-minus-infinity-unseen"),), operands)
    assert np.isinf(to_float(ins.formats["d"], negative)[0])


def test_a_number_without_its_hidden_bit_by_hand() -> None:
    """1.5 without it is 0.5, 1 is nothing; inverted, a subnormal number gets it."""
    ins = UNITS["packed_structs"]
    a = np.array([[0x3E00, 0x3C00, 0x0001, 0]], np.uint16)
    one = np.array([[0x3C00, 0x3C00, 0x3C00, 0]], np.uint16)
    operands = {"a": a, "b": one, "c": np.zeros(1, np.uint32)}
    missing = datapath.results(ins, (tap(ins, "hidden-bit-missing-a"),), operands)
    assert to_float(ins.formats["d"], missing)[0] == 0.5 + 2.0**-24
    inverted = datapath.results(ins, (tap(ins, "hidden-bit-inverted-a"),), operands)
    assert to_float(ins.formats["d"], inverted)[0] == 0.5 + 2.0**-24 + 2.0**-14


@pytest.mark.parametrize(
    ("slug", "want"),
    [
        ("product-sign-or", -1),
        ("product-sign-inverted", -1),
        ("rounded-sign-positive", 1),
        ("a-finite-is-zero", 0),
    ],
)
def test_signs_by_hand(slug: str, want: float) -> None:
    """-1 times -1."""
    ins = UNITS["packed_structs"]
    minus = np.array([[0xBC00, 0, 0, 0]], np.uint16)
    operands = {"a": minus, "b": minus, "c": np.zeros(1, np.uint32)}
    got = datapath.results(ins, (tap(ins, slug),), operands)
    assert to_float(ins.formats["d"], got)[0] == want


def test_special_values_of_the_vector_before() -> None:
    """Infinity first, then 1 * 1: the first answer is that of the last vector, the second is the infinity."""
    ins = UNITS["packed_structs"]
    a = np.array([[0x7C00, 0, 0, 0], [0x3C00, 0, 0, 0], [0x3C00, 0, 0, 0]], np.uint16)
    operands = {"a": a, "b": np.full_like(a, 0x3C00), "c": np.zeros(3, np.uint32)}
    got = datapath.results(ins, (tap(ins, "special-of-vector-before"),), operands)
    np.testing.assert_array_equal(to_float(ins.formats["d"], got), [65536, np.inf, 1])


def test_signs_of_infinities_of_the_vector_behind() -> None:
    """inf - inf, which is NaN by itself, before a vector of positive terms, and one of numbers."""
    ins = UNITS["packed_structs"]
    a = np.array([[0x7C00, 0xFC00, 0, 0], [0x3C00, 0x3C00, 0, 0], [0x3C00, 0xBC00, 0, 0]], np.uint16)
    operands = {"a": a, "b": np.full_like(a, 0x3C00), "c": np.zeros(3, np.uint32)}
    got = datapath.results(ins, (tap(ins, "infinity-signs-of-vector-behind"),), operands)
    np.testing.assert_array_equal(to_float(ins.formats["d"], got), [np.inf, 2, 0])


@pytest.mark.parametrize(
    ("slug", "want"), [("always-saturated", 2**31 - 1), ("negative-always-saturated", 1)]
)
def test_sums_that_always_saturate(slug: str, want: int) -> None:
    """1 and -1 as sums of s8 products."""
    ins = UNITS[CATALOGUED[2][1]]
    a = np.zeros((2, ins.k), np.uint8)
    a[0, 0], a[1, 0] = 1, 0xFF
    operands = {"a": a, "b": np.ones_like(a), "c": np.zeros(2, np.uint32)}
    got = datapath.results(ins, (tap(ins, slug),), operands)
    np.testing.assert_array_equal(got, np.array([want, 1 << 31], np.uint32))


@pytest.mark.long
def test_a_fault_of_block_scales_is_named() -> None:
    ins = golden.load_instruction(EXAMPLES / "block_scaled.yaml")
    operands = default_set(ins, 600, seed=2).operands
    rolled = operands | {"scale_a": np.roll(operands["scale_a"], 1, axis=1)}
    found = diagnose(ins, operands, ins.dot(**rolled), budget_seconds=300)
    assert found.explains
    assert {"scale-a-late-by-one-block", "scale-a-reversed"} & {one.slug for one in found.explaining}


def test_units_that_do_not_run_have_no_taps() -> None:
    """A unit with modes runs one mode at a time, one with state one dot product at a time."""
    for name in ("fma_modes", "accumulator"):
        ins = golden.load_instruction(EXAMPLES / f"{name}.yaml")
        assert not datapath.runs(ins) and list(of_signals(ins)) == []


@pytest.mark.parametrize(
    "name",
    long_after(1, ["or_sticky_align_add", "block_scaled", "status_flags", "per_pair_grid", "rdna3_dot2"]),
)
def test_every_tap_runs_and_has_a_name_of_its_own(name: str) -> None:
    """Also on NaNs, zeros and subnormal numbers; codes stay codes of d."""
    ins = UNITS[name]
    operands = default_set(ins, 64, seed=2).operands
    found = list(of_signals(ins))
    assert len({tap.slug for tap in found}) == len(found) > 100
    for tap in found:
        assert {place for place, _ in tap.signals} <= {*PLACES}
        codes = datapath.results(ins, (tap,), operands)
        assert codes.dtype == ins.formats["d"].dtype and codes.shape == (64,)


def tap(ins: Instruction, slug: str) -> Mutation:
    (found,) = (each for each in of_signals(ins) if each.slug == slug)
    return found


def finite(ins: Instruction, count: int = 4000) -> Operands:
    """Operands without special values."""
    operands = default_set(ins, count, seed=11).operands
    kept = np.ones(count, np.bool_)
    for name, codes in operands.items():
        kept &= np.isfinite(to_float(ins.formats[name], codes)).reshape(count, -1).all(axis=1)
    return {name: codes[kept] for name, codes in operands.items()}


def exact_sums(ins: Instruction, operands: Operands) -> list[Fraction]:
    """c plus the products, in exact rationals."""
    a, b, c = (to_float(ins.formats[name], operands[name]) for name in "abc")
    return [
        Fraction(float(c[i]))
        + sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[i], b[i], strict=True))
        for i in range(len(c))
    ]


def rounded(values: list[Fraction], least: Fraction) -> Bits:
    """f32 codes, ties to even; a zero is +0. Values below `least` in magnitude are exact."""
    codes = []
    for value in values:
        magnitude, exponent = abs(value), -149
        if magnitude >= least:
            exponent = max(magnitude.numerator.bit_length() - magnitude.denominator.bit_length(), -126) - 25
            while magnitude >= Fraction(2) ** (exponent + 24):
                exponent += 1
        units = round(magnitude / Fraction(2) ** exponent)
        number = float(units * Fraction(2) ** exponent) if units else 0.0
        with np.errstate(over="ignore"):
            codes.append(int(np.float32(-number if value < 0 else number).view(np.uint32)) if units else 0)
    return np.array(codes, np.uint32)


def test_inverted_sums_against_rationals() -> None:
    """One's complement of a negative sum in a register whose last place is 2^-149: the magnitude is one
    2^-149 less."""
    ins = UNITS["exact_accumulator"]
    operands = finite(ins)
    sums = exact_sums(ins, operands)
    unit_of_register = Fraction(1, 1 << 149)
    least = Fraction(2) ** -126
    np.testing.assert_array_equal(rounded(sums, least), ins.dot(**operands))
    wrong = rounded([value + unit_of_register if value < 0 else value for value in sums], least)
    fault = tap(ins, "sum-ones-complement")
    lowest = {name: np.concatenate([codes, np.zeros_like(codes[:1])]) for name, codes in operands.items()}
    lowest["c"][-1] = 1  # the register's last place is in use
    np.testing.assert_array_equal(datapath.results(ins, (fault,), lowest)[:-1], wrong)
    assert (wrong != ins.dot(**operands)).any()


def test_ties_against_rationals() -> None:
    """Where the rounding is a tie the neighbour nearer to zero, or the odd one; all else as it should be."""
    ins = UNITS["exact_accumulator"]
    operands = finite(ins)
    sums, right = exact_sums(ins, operands), ins.dot(**operands)
    plain = (right & 0x7FFFFFFF > 0) & (right & 0x7FFFFFFF < 0x7F000000)
    operands, right = {name: codes[plain] for name, codes in operands.items()}, right[plain]
    sums = [value for value, kept in zip(sums, plain, strict=True) if kept]
    neighbours = (right, right - np.uint32(1), right + np.uint32(1))
    own, below, above = ([Fraction(float(x)) for x in to_float(ins.formats["d"], c)] for c in neighbours)
    halves = [(one - s) * 2 for one, s in zip(own, sums, strict=True)]
    up = np.array([half != 0 and half == x - y for half, x, y in zip(halves, own, below, strict=True)])
    down = np.array([half != 0 and half == x - y for half, x, y in zip(halves, own, above, strict=True)])
    assert up.sum() > 20 and down.sum() > 20
    toward_zero = datapath.results(ins, (tap(ins, "ties-toward-zero"),), operands)
    np.testing.assert_array_equal(toward_zero, right - up.astype(np.uint32))
    odd = datapath.results(ins, (tap(ins, "ties-to-odd"),), operands)
    np.testing.assert_array_equal(odd, right - up.astype(np.uint32) + down.astype(np.uint32))


@pytest.mark.parametrize(("slug", "want"), [("", 0x40000000), ("-with-hidden-bit", 0x3F800000)])
def test_a_carry_that_rounding_loses_by_hand(slug: str, want: int) -> None:
    """4 - 2^-22 + 2^-23 is a tie and rounds up to 4: without the carry it is 2, without the hidden bit 1."""
    half = np.array([4 - 2.0**-22], np.float32)
    fma = UNITS["status_flags"]
    one, tiny = np.array([[0x3F800000]], np.uint32), np.array([[0x34000000]], np.uint32)  # 2^-23
    operands = {"a": one, "b": tiny, "c": half.view(np.uint32)}
    assert fma.dot(**operands)[0] == 0x40800000
    assert datapath.results(fma, (tap(fma, f"rounding-carry-lost{slug}"),), operands)[0] == want


@pytest.mark.parametrize(("slug", "want"), [("of-a", 0x7F800000), ("of-b", 0xFF800000)])
def test_the_sign_of_an_infinite_product_by_hand(slug: str, want: int) -> None:
    """Infinity times -1, and 1 times -1 as it should be."""
    ins = UNITS["packed_structs"]
    a = np.array([[0x7C00, 0, 0, 0], [0x3C00, 0, 0, 0]], np.uint16)
    operands = {"a": a, "b": np.full_like(a, 0xBC00), "c": np.zeros(2, np.uint32)}
    got = datapath.results(ins, (tap(ins, f"infinite-product-sign-{slug}"),), operands)
    np.testing.assert_array_equal(got, [want, 0xBF800000])


@pytest.mark.parametrize(
    ("slug", "want"),
    [
        ("infinite-c-sign-inverted", (0x7F800000, 0x7F800000)),
        ("infinite-c-sign-positive", (0x7F800000, 0x7F800000)),
        ("infinite-c-sign-negative", (0x7FC00000, 0xFF800000)),
        ("infinite-product-sign-of-c", (0xFF800000, 0xFF800000)),
    ],
)
@pytest.mark.parametrize("name", ["packed_structs", "status_flags"])
def test_the_sign_of_an_infinite_term_by_hand(name: str, slug: str, want: tuple[int, ...]) -> None:
    """Infinity as a product and 1 as a product, -infinity as c; and 1 - 2 as it should be."""
    ins = UNITS[name]
    one, infinity = (0x3C00, 0x7C00) if name == "packed_structs" else (0x3F800000, 0x7F800000)
    a = np.zeros((3, ins.k), ins.formats["a"].dtype)
    a[:, 0] = [infinity, one, one]
    operands = {"a": a, "b": np.full_like(a, one)}
    operands["c"] = np.array([0xFF800000, 0xFF800000, 0xC0000000], np.uint32)
    np.testing.assert_array_equal(ins.dot(**operands), [0x7FC00000, 0xFF800000, 0xBF800000])
    got = datapath.results(ins, (tap(ins, slug),), operands)
    np.testing.assert_array_equal(got, [*want, 0xBF800000])


@pytest.mark.parametrize(
    ("slug", "want"),
    [
        ("sum", (0x7F800000, 0xFF800000, 0xFF800000)),  # next to c, infinity counts as 2^16
        ("finite-sum", (0xFF800000, 0xFF800000, 0x7F800000)),  # without finite terms it is 0
    ],
)
def test_the_sign_of_an_infinite_result_from_the_sum_by_hand(slug: str, want: tuple[int, ...]) -> None:
    """Infinity and -2^10, infinity and -2^20, -infinity alone; opposite infinities and numbers stay."""
    ins = UNITS["packed_structs"]
    a = np.zeros((5, 4), np.uint16)
    a[:, 0] = [0x7C00, 0x7C00, 0xFC00, 0x7C00, 0x3C00]
    c = np.array([0xC4800000, 0xC9800000, 0, 0xFF800000, 0], np.uint32)
    operands = {"a": a, "b": np.full_like(a, 0x3C00), "c": c}
    right = [0x7F800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x3F800000]
    np.testing.assert_array_equal(ins.dot(**operands), right)
    got = datapath.results(ins, (tap(ins, f"infinite-result-sign-of-{slug}"),), operands)
    np.testing.assert_array_equal(got, [*want, *right[3:]])


@pytest.mark.parametrize(
    ("slug", "want"), [("c", (0xFF800000, 0xFF800000)), ("product", (0x7F800000, 0x7F800000))]
)
def test_the_sign_of_an_infinite_result_from_a_term_by_hand(slug: str, want: tuple[int, int]) -> None:
    """Infinity - 1, 1 - infinity, and infinity - infinity, which stays NaN."""
    ins = UNITS["status_flags"]
    infinity, one, minus = 0x7F800000, 0x3F800000, 1 << 31
    a = np.array([[infinity], [one], [infinity]], np.uint32)
    c = np.array([one | minus, infinity | minus, infinity | minus], np.uint32)
    operands = {"a": a, "b": np.full_like(a, one), "c": c}
    got = datapath.results(ins, (tap(ins, f"infinite-result-sign-of-{slug}"),), operands)
    np.testing.assert_array_equal(got, [*want, 0x7FC00000])


def test_a_zero_sum_that_is_negative_where_any_number_is_by_hand() -> None:
    """1 - 1 and 0 - 0 are -0, 0 + 0 is not."""
    ins = UNITS["status_flags"]
    a = np.array([[0x3F800000], [0], [0]], np.uint32)
    operands = {"a": a, "b": np.full_like(a, 0x3F800000), "c": np.array([0xBF800000, 1 << 31, 0], np.uint32)}
    np.testing.assert_array_equal(ins.dot(**operands), [0, 0, 0])
    got = datapath.results(ins, (tap(ins, "zero-sum-negative-if-any"),), operands)
    np.testing.assert_array_equal(got, [1 << 31, 1 << 31, 0])


def test_an_infinite_term_with_additions_has_no_other_sign() -> None:
    """A unit that looks for special values first, and adds in IEEE steps whose terms are none of c's."""
    ins = UNITS["per_pair_grid"]
    operands = default_set(ins, 3000, seed=1).operands
    for slug in ("infinite-c-sign-inverted", "infinite-product-sign-of-c"):
        got, right = datapath.results(ins, (tap(ins, slug),), operands), ins.dot(**operands)
        assert ((got == right) | ~np.isfinite(to_float(ins.formats["d"], right))).all()
        assert (got != right).any()


def test_ties_away_in_one_kind_of_steps_by_hand() -> None:
    """Half of the least number is a tie."""
    ins = UNITS["two_path_tree"]
    a, b = np.zeros((1, 8), np.uint16), np.zeros((1, 8), np.uint16)
    a[0, 0], b[0, 0] = 0x0001, 0x3800  # 2^-24 * 0.5
    operands = {"a": a, "b": b, "c": np.zeros(1, np.uint16)}
    assert ins.dot(**operands)[0] == 0
    assert datapath.results(ins, (tap(ins, "ties-away-in-multiply"),), operands)[0] == 1
    assert datapath.results(ins, (tap(ins, "ties-away-in-additions"),), operands)[0] == 0


def test_a_register_that_is_too_short_by_hand() -> None:
    """Its sign bit stands for -2^127: 2^127 becomes -2^127, and what is smaller stays."""
    ins = UNITS["exact_accumulator"]
    c = np.array([2.0**127, -(2.0**127), 2.0**126, 1.5 * 2.0**127], np.float32)
    zeros = np.zeros((4, ins.k), np.uint8)
    got = datapath.results(
        ins, (tap(ins, "sum-wraps-at-127"),), {"a": zeros, "b": zeros, "c": c.view(np.uint32)}
    )
    np.testing.assert_array_equal(got.view(np.float32), [-(2.0**127), -(2.0**127), 2.0**126, -(2.0**126)])


def test_a_signalling_nan_that_is_an_infinity_by_hand() -> None:
    ins = UNITS["exact_accumulator"]
    c = np.array([0x7F800001, 0xFF800001, 0x7FC00000], np.uint32)
    zeros = np.zeros((3, ins.k), np.uint8)
    fault = tap(ins, "c-signalling-nan-is-infinite")
    got = datapath.results(ins, (fault,), {"a": zeros, "b": zeros, "c": c})
    np.testing.assert_array_equal(got, [0x7F800000, 0xFF800000, 0x7FC00000])


def test_infinities_before_nans_by_hand() -> None:
    """Infinity with a NaN; both infinities; only a NaN."""
    ins = UNITS["packed_structs"]
    a = np.array([[0x7C00, 0x7E00, 0, 0], [0x7C00, 0xFC00, 0, 0], [0x7E00, 0, 0, 0]], np.uint16)
    operands = {"a": a, "b": np.full_like(a, 0x3C00), "c": np.zeros(3, np.uint32)}
    got = datapath.results(ins, (tap(ins, "infinity-before-nan-negative"),), operands)
    np.testing.assert_array_equal(got[:2], [0x7F800000, 0xFF800000])
    assert np.isnan(to_float(ins.formats["d"], got)[2])


def test_a_zero_that_enters_the_maximum_by_hand() -> None:
    """2^15 * 0 has the exponent 1: the last place kept is 2^-24, and 2^-28 is lost; 0 * 2^15 has none."""
    ins = UNITS["packed_structs"]
    large, zero, small = 0x7800, 0, 0x0400
    a = np.array([[large, small, 0, 0], [zero, small, 0, 0]], np.uint16)
    b = np.array([[zero, small, 0, 0], [large, small, 0, 0]], np.uint16)
    got = datapath.results(
        ins, (tap(ins, "zero-b-in-maximum"),), {"a": a, "b": b, "c": np.zeros(2, np.uint32)}
    )
    np.testing.assert_array_equal(to_float(ins.formats["d"], got), [0, 2.0**-28])


@pytest.mark.parametrize(("slug", "want"), [("first", 0x80000000), ("last", 0)])
def test_the_sign_of_a_cancelled_sum_by_hand(slug: str, want: int) -> None:
    """-1 * 1 + 1."""
    ins = UNITS["status_flags"]
    minus, one = (np.array([[code]], np.uint32) for code in (0xBF800000, 0x3F800000))
    operands = {"a": minus, "b": one, "c": one[:, 0]}
    assert datapath.results(ins, (tap(ins, f"zero-sum-sign-of-{slug}"),), operands)[0] == want


def test_an_overflow_seen_late_by_hand() -> None:
    """1.5 * 2^16 keeps its fraction, with the exponent of an f16 infinity; without the fault it is one."""
    narrow = UNITS["mode_inputs"]
    large = np.array([[0x7A00, 0x7A00]], np.uint16)  # 49152
    one, zero = np.array([[0x3C00, 0x3C00]], np.uint16), np.zeros(1, np.uint16)
    got = datapath.results(narrow, (tap(narrow, "overflow-one-late"),), {"a": large, "b": one, "c": zero})
    assert got[0] == 0x7E00
    assert narrow.dot(a=large, b=one, c=zero)[0] == 0x7C00


@pytest.mark.parametrize(
    ("slug", "wants"),
    [("at-infinity", (0x7F800000, 0x00400000)), ("never", (0x7FC00000, 0x00400000))],
)
def test_an_overflow_that_wraps_by_hand(slug: str, wants: tuple[int, int]) -> None:
    """1.5 * 2^128 has the exponent field 255; that of 1.5 * 2^129 is 256, of which 0 is left."""
    ins = UNITS["status_flags"]
    a = np.full((2, 1), 0x7F400000, np.uint32)  # 1.5 * 2^127
    b = np.array([[0x40000000], [0x40800000]], np.uint32)  # 2 and 4
    operands = {"a": a, "b": b, "c": np.zeros(2, np.uint32)}
    np.testing.assert_array_equal(ins.dot(**operands), [0x7F800000] * 2)
    got = datapath.results(ins, (tap(ins, f"overflow-wraps-{slug}"),), operands)
    np.testing.assert_array_equal(got, wants)


def test_an_exponent_that_wraps_is_not_that_of_a_subnormal_number() -> None:
    """1.5 * 2^17 has the exponent field 32, of which an f16 keeps 0: it is not flushed."""
    unit = golden.load_instruction(STYLES / "mode_inputs" / "unit.yaml")
    flushing = next(one for one in unit.mode_units.values() if "ftz signed" in one.name)
    large, two = np.array([[0x7A00, 0]], np.uint16), np.array([[0x4400, 0]], np.uint16)  # 1.5 * 2^15 and 4
    operands = {"a": large, "b": two, "c": np.zeros(1, np.uint16)}
    got = datapath.results(flushing, (tap(flushing, "overflow-wraps-at-infinity"),), operands)
    assert got[0] == 0x0200


def test_an_infinity_that_nobody_sees_makes_an_adder_wrap_by_hand() -> None:
    """Products of 1 and of -1 with -infinity as c: a zero, of both signs."""
    ins = UNITS["per_pair_grid"]
    a = np.zeros((3, 8), np.uint16)
    a[:, 0] = [0x3C00, 0xBC00, 0x3C00]
    c = np.array([0xFF800000, 0xFF800000, 0x7F800000], np.uint32)
    operands = {"a": a, "b": np.full_like(a, 0x3C00), "c": c}
    got = datapath.results(ins, (tap(ins, "c-minus-infinity-unseen-wraps"),), operands)
    np.testing.assert_array_equal(got, [0, 0x80000000, 0x7F800000])


@pytest.mark.parametrize("name", ["c", "products"])
@pytest.mark.parametrize("sign", [0, 1])
def test_an_infinity_of_either_sign_by_hand(name: str, sign: int) -> None:
    """As c and as a product, of both signs: one of the four gives NaN."""
    ins, word = UNITS["per_pair_grid"], ("positive", "negative")[sign]
    a, c = np.zeros((4, 8), np.uint16), np.zeros(4, np.uint32)
    a[:, 2] = [0x3C00, 0x3C00, 0x7C00, 0xFC00]
    c[:2] = [0x7F800000, 0xFF800000]
    operands = {"a": a, "b": np.full_like(a, 0x3C00), "c": c}
    right = [0x7F800000, 0xFF800000, 0x7F800000, 0xFF800000]
    np.testing.assert_array_equal(ins.dot(**operands), right)
    got = datapath.results(ins, (tap(ins, f"{word}-infinite-{name}-of-both-signs"),), operands)
    there = (0 if name == "c" else 2) + sign
    np.testing.assert_array_equal(got, [0x7FC00000 if at == there else code for at, code in enumerate(right)])


def test_a_nan_that_an_adder_made_of_a_number_keeps_its_word() -> None:
    """The last adder of the tree: 40960 + 40960 is 1.25 * 2^16, whose code is no NaN that the steps know."""
    ins = UNITS["two_path_tree"]
    a = np.zeros((1, 8), np.uint16)
    a[0, 0] = 0x7900  # 40960
    one = np.full((1, 8), 0x3C00, np.uint16)
    operands = {"a": a, "b": one, "c": np.array([0x7900], np.uint16)}
    got = datapath.results(ins, (tap(ins, "overflow-one-late-in-additions"),), operands)
    assert got[0] == 0x7D00
    assert ins.dot(**operands)[0] == 0x7C00


@pytest.mark.parametrize("slug", ["", "-lost"])
def test_a_subnormal_result_shifted_by_one_less_by_hand(slug: str) -> None:
    """2^-24, the least number, comes out doubled; 2^-15 as 2^-14, or as nothing."""
    ins = UNITS["two_path_tree"]
    b = np.full((1, 8), 0x3C00, np.uint16)
    fault = tap(ins, f"subnormal-shift-one-less{slug}-in-multiply")
    for code, doubled in ((1, 2), (0x0200, 0 if slug else 0x0400)):
        a = np.zeros((1, 8), np.uint16)
        a[0, 0] = code
        got = datapath.results(ins, (fault,), {"a": a, "b": b, "c": np.zeros(1, np.uint16)})
        assert got[0] == doubled


def test_half_products_against_rationals() -> None:
    ins = UNITS["exact_accumulator"]
    operands = finite(ins)
    c = [Fraction(float(value)) for value in to_float(ins.formats["c"], operands["c"])]
    halves = [own + (value - own) / 2 for own, value in zip(c, exact_sums(ins, operands), strict=True)]
    got = datapath.results(ins, (tap(ins, "product-exponent-minus-1"),), operands)
    np.testing.assert_array_equal(got, rounded(halves, Fraction(2) ** -126))


@pytest.mark.parametrize(
    ("unit", "width", "code", "right", "wrong"),
    [
        ("systolic_mac", 15, 0x80, 16384, 2**32 - 16384),
        ("packed_structs", 21, 0x3E00, 0x40100000, 0x3E800000),
    ],
    ids=["-128 * -128", "1.5 * 1.5"],
)
def test_a_product_that_loses_its_top_bit_by_hand(
    unit: str, width: int, code: int, right: int, wrong: int
) -> None:
    ins = UNITS[unit]
    factors = np.zeros((1, ins.k), ins.formats["a"].dtype)
    factors[0, 0] = code
    operands = {"a": factors, "b": factors, "c": np.zeros(1, np.uint32)}
    ins = ins.stateless
    assert ins.dot(**operands)[0] == right
    assert datapath.results(ins, (tap(ins, f"product-width-{width}"),), operands)[0] == wrong


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_subnormal_number_that_is_taken_for_zero_by_hand(name: str) -> None:
    """Times infinity it is a NaN; the least normal number is none."""
    ins = UNITS["packed_structs"]
    infinite, small = np.zeros((3, 4), np.uint16), np.zeros((3, 4), np.uint16)
    infinite[:, 0], small[:, 0] = 0x7C00, (0x0001, 0x03FF, 0x0400)
    factors = (infinite, small) if name == "a" else (small, infinite)
    operands = dict(zip("ab", factors, strict=True)) | {"c": np.zeros(3, np.uint32)}
    assert ins.dot(**operands).tolist() == [0x7F800000] * 3
    got = datapath.results(ins, (tap(ins, f"subnormal-times-infinite-{name}-is-nan"),), operands)
    assert got.tolist() == [0x7FC00000, 0x7FC00000, 0x7F800000]


@pytest.mark.parametrize(("slug", "wraps"), [("place", [True, False]), ("exponent", [True, True])])
def test_an_exponent_of_a_product_that_wraps_by_hand(slug: str, wraps: list[bool]) -> None:
    """The fields of 16 and 1 are 19 and 15, 32 above the two least ones; for 4 and 1 they are 30 above."""
    ins = UNITS["per_pair_grid"]
    a, b = np.zeros((2, 8), np.uint16), np.zeros((2, 8), np.uint16)
    a[:, 0], b[:, 0] = (0x4C00, 0x4400), 0x3C00
    operands = {"a": a, "b": b, "c": np.zeros(2, np.uint32)}
    got = datapath.results(ins, (tap(ins, f"product-{slug}-modulo-32"),), operands)
    left = [value * (2.0**-32 if wrapped else 1) for value, wrapped in zip((16.0, 4.0), wraps, strict=True)]
    assert to_float(ins.formats["d"], got).tolist() == left


def test_a_leading_one_that_is_not_seen_by_hand() -> None:
    """2.25 three times and 1.5 are 8.25, whose largest exponent is that of 1 * 1 (1.5 * 1.5 is 2.25 * 2^0):
    without its leading one 0.25; 8 has no other bit."""
    ins = UNITS["packed_structs"]
    a = np.array([[0x3E00] * 3 + [0x3C00], [0x3E00, 0x3E00, 0x3C00, 0x3C00]], np.uint16)
    b = np.array([[0x3E00] * 3 + [0x3E00], [0x3E00, 0x3E00, 0x3E00, 0x3E00]], np.uint16)
    operands = {"a": a, "b": b, "c": np.array([0, 0x3F000000], np.uint32)}
    assert to_float(ins.formats["d"], ins.dot(**operands)).tolist() == [8.25, 8.0]
    for places, left in ((3, [0.25, 8.0]), (4, [8.25, 8.0])):
        got = datapath.results(ins, (tap(ins, f"sum-top-plus-{places}"),), operands)
        assert to_float(ins.formats["d"], got).tolist() == left


def test_a_test_for_an_invalid_product_that_looks_at_another_one_by_hand() -> None:
    """0 * inf in product 0 is an infinity, and a NaN where product 1 has an infinite b."""
    ins = UNITS["packed_structs"]
    one, infinite = 0x3C00, 0x7C00
    b = np.array([[infinite, one, one, one], [one, infinite, one, one]], np.uint16)
    a = np.array([[0, one, one, one]] * 2, np.uint16)
    operands = {"a": a, "b": b, "c": np.zeros(2, np.uint32)}
    assert ins.dot(**operands).tolist() == [0x7FC00000, 0x7F800000]
    got = datapath.results(ins, (tap(ins, "invalid-zero-a-0-by-b-1"),), operands)
    assert got.tolist() == [0x7F800000, 0x7FC00000]


def test_a_shift_that_wraps_by_hand() -> None:
    """1 and 2^-32 with F = 25: shifted by 32 the small term is lost, by 32 mod 32 = 0 it counts as 1."""
    ins = UNITS["packed_structs"]
    zeros = np.zeros((1, 4), np.uint16)
    a, b = zeros.copy(), zeros.copy()
    a[0, 0] = b[0, 0] = 0x0001 << 10  # 2^-14 each: 2^-28
    operands = {"a": a, "b": b, "c": np.array([0x41800000], np.uint32)}  # 16
    assert ins.dot(**operands)[0] == 0x41800000
    faulty = datapath.results(ins, (tap(ins, "shift-modulo-32"),), operands)[0]
    assert faulty == 0x42000000  # 16 + 16


@pytest.mark.long
def test_two_faults_are_listed_as_two() -> None:
    """Each with the wrong results that only it explains, and none that it does not."""
    ins = UNITS["packed_structs"]
    operands = default_set(ins, 3000, seed=3).operands
    pair = [tap(ins, "shift-modulo-32"), tap(ins, "c-not-in-opposites-negative")]
    found = diagnose(ins, operands, datapath.results(ins, pair, operands), budget_seconds=300)
    assert {fault.slug for fault in found.faults} == {one.slug for one in pair}
    assert found.hypotheses[0].remaining == 0
    assert all(fault.explains > 0 for fault in found.faults)


def test_exchanged_bits_of_mode_are_named() -> None:
    ins = golden.load_instruction(EXAMPLES / "fma_modes.yaml")
    operands = default_set(ins, 3000, seed=1).operands
    mode = operands["mode"]
    first = 3  # the field behind the rounding, which has five codes
    swapped = (
        (mode & ~np.uint8(3 << first))
        | (mode >> 1 & np.uint8(1 << first))
        | ((mode & np.uint8(1 << first)) << 1)
    )
    found = diagnose(ins, operands, ins.dot(**operands | {"mode": swapped.astype(mode.dtype)}))
    assert found.hypotheses[0].slug == "mode-bits-3-and-4-swapped" and found.explains
    assert "those with" in found.note and found.faults[0].explains == found.failing


def in_modes() -> tuple[Instruction, Operands]:
    ins = golden.load_instruction(STYLES / "mode_inputs" / "unit.yaml")
    return ins, default_set(ins, 3_000, seed=1).operands


def test_faults_of_different_modes_are_listed_each() -> None:
    """Toward zero the unit rounds down, and rounding down it makes every zero +0: what explains one mode was
    reported for the whole unit. Overflow decides only in some modes, and is no fault of its own."""
    ins, operands = in_modes()
    mode, right = operands["mode"], ins.dot(**operands)
    toward_zero, down = mode & 3 == 1, mode & 3 == 2
    actual = ins.dot(**operands | {"mode": np.where(toward_zero, mode ^ 3, mode).astype(mode.dtype)})
    actual = np.where(toward_zero & (actual & 0x7FFF == 0x7C00), right, actual)
    actual = np.where(toward_zero & (actual & 0x7FFF == 0), right, actual)
    only = diagnose(ins, operands, actual.astype(right.dtype))
    assert only.explained_by_one and [fault.slug for _, fault in only.every_fault] == ["increment-down"]

    both = np.where(down & (actual == 0x8000), 0, actual).astype(right.dtype)
    found = diagnose(ins, operands, both)
    assert found.explains and not found.explained_by_one, found.sentence()
    assert [fault.slug for _, fault in found.every_fault] == ["increment-down", "zero-positive"]


def test_a_test_that_one_product_lacks_is_not_one_of_another_factor() -> None:
    """Zero as a times infinity as b in the second product alone is infinite, as if a were 1."""
    ins, operands = in_modes()
    a, b = operands["a"], operands["b"][:, 1]
    missed = (b & 0x7FFF == 0x7C00) & (a[:, 1] & 0x7FFF == 0)
    given = a.copy()
    given[missed, 1] = a[missed, 1] & 0x8000 | 0x3C00
    found = diagnose(ins, operands, ins.dot(**operands | {"a": given}))
    assert found.explains and found.hypotheses[0].slug == "zero-times-infinite-b-1-is-infinity"


def test_a_fault_of_the_mode_and_one_in_the_arithmetic() -> None:
    ins, operands = in_modes()
    mode, c = operands["mode"], operands["c"]
    crossed = ((mode & 3) | (mode & 4) << 1 | (mode & 8) >> 1).astype(mode.dtype)
    nan = (c & 0x7C00 == 0x7C00) & (c & 0x3FF != 0)
    given = operands | {"mode": crossed, "c": np.where(nan, c & 0xFC00, c).astype(c.dtype)}
    found = diagnose(ins, operands, ins.dot(**given))
    slugs = [fault.slug for _, fault in found.every_fault]
    assert found.explains and slugs == ["mode-bits-2-and-3-swapped", "c-nan-is-infinity"], found.sentence()


def test_a_clear_that_loses_its_sum_is_named() -> None:
    ins = golden.load_instruction(EXAMPLES / "accumulator.yaml")
    operands = default_set(ins, 3000, seed=1).operands
    held, answers = 0, []
    for i in range(3000):
        own = {name: operands[name][i : i + 1] for name in ("a", "b")}
        c = np.array([held], ins.stateless.formats["c"].dtype)
        held = 0 if operands["clear"][i] else int(ins.stateless.dot(**own, c=c)[0])
        answers.append(held)
    found = diagnose(ins, operands, np.array(answers, ins.formats["d"].dtype))
    assert [one.slug for one in found.explaining] == ["clear-loses-sum"]


def test_a_fault_of_one_element_goes_with_no_chain_of_fewer() -> None:
    """The search joins changes of the program with faults of the datapath; a fault of element 7 means nothing
    in a step of four."""
    ins = UNITS["two_path_tree"]
    single = diagnosis.Hypothesis("", "", ins, 0.0)
    other = diagnosis.Hypothesis("", "", golden.instruction(*CATALOGUED[1]), 0.0)
    fault = tap(ins, "invalid-a-7-by-b-6")
    assert single.with_one_more(fault) is not None
    assert other.with_one_more(fault) is None


@pytest.mark.parametrize(
    ("seed", "slugs", "what"),
    [
        (2, "invalid-", "operations that take unequal parts of k"),
        (4, "logical-shift-", "words of more than 64 bits"),
        (63, "negative-sum-kept-", "words of more than 64 bits"),
    ],
)
def test_faults_run_in_any_program(seed: int, slugs: str, what: str) -> None:
    _, ins = accepted(random_unit, seed)
    operands = default_set(ins, 12, seed=seed).operands
    right = ins.dot(**operands)
    found = [tap for tap in of_signals(ins) if tap.slug.startswith(slugs)]
    assert found, what
    for tap in found:
        codes = datapath.results(ins, (tap,), operands)
        assert (codes.shape, codes.dtype) == (right.shape, right.dtype), tap.slug


@pytest.mark.parametrize("bits", [3, 59, 60, 63, 64, 81])
def test_words_hold_their_low_bits(bits: int) -> None:
    values = [0, 1, -1, 5, -(1 << 58), (1 << 59) + 3]
    held = modulo(np.array(values, np.int64), bits)
    assert [int(value) for value in held] == [value % 2**bits for value in values]


def test_the_ends_of_integers_of_64_bits_have_their_codes(tmp_path: Path) -> None:
    """The code of the least one, 2^63, is no int64."""
    (tmp_path / "unit.yaml").write_text(
        "unit: mul64\nshape: {k: 1}\nformats: {a: s32, b: s32, d: s64}\n"
        "define_formats:\n  s64: {kind: integer, storage: 64, bits: 64}\n"
        "steps:\n  - multiply: {to: products}\n"
        "  - round: {of: products, rounding: toward_zero, overflow: wrap, zero: positive}\n"
    )
    words = golden.load_instruction(tmp_path / "unit.yaml").formats["d"]
    found = special_code(words, np.array([Kind.INFINITY] * 2), np.array([0, 1]), None)
    assert [int(code) for code in found] == [2**63 - 1, 2**63]
