"""Status flags that are wrong are named, each by itself, and only where results are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import golden
import rtl_tb
from golden import stimuli
from golden.budget import Budget
from golden.catalog.unit_files import build_instruction
from golden.identify.diagnose import datapath
from golden.identify.diagnose.flags import flag_faults
from golden.identify.diagnose.mutations import of_signals
from golden.identify.diagnosis import diagnose
from golden.model.instruction import Instruction
from golden.number.formats import to_float
from golden.program.signature import Bits, Operands
from golden.vectors.vectorset import default_set
from golden.yamlfile import parse

FMA = golden.load_instruction(
    Path(rtl_tb.__file__).parent / "mutants" / "units" / "status_flags" / "unit.yaml"
)
OPERANDS = default_set(FMA, 1200, seed=4).operands
ALL = np.ones(1200, np.bool_)


def changed(name: str, bits: Bits, ins: Instruction = FMA, operands: Operands = OPERANDS) -> Bits:
    """The flags of the unit with these bits of one flag turned."""
    return np.asarray(ins.flags(**operands) ^ (bits.astype(np.uint8) << np.uint8(ins.status.index(name))))


def flag(name: str) -> Bits:
    return (FMA.flags(**OPERANDS) >> np.uint8(FMA.status.index(name)) & 1).astype(np.bool_)


def infinite(name: str) -> Bits:
    return np.isinf(to_float(FMA.formats[name], OPERANDS[name])).reshape(-1)


def a_nan() -> Bits:
    return np.any([np.isnan(to_float(FMA.formats[n], OPERANDS[n])).reshape(-1) for n in "abc"], axis=0)


def zero_times_infinity() -> Bits:
    zero = {name: OPERANDS[name][:, 0] & 0x7FFFFFFF == 0 for name in "ab"}
    return np.asarray((infinite("a") & zero["b"]) | (infinite("b") & zero["a"]))


def subnormal_result() -> Bits:
    magnitude = FMA.dot(**OPERANDS) & 0x7FFFFFFF
    return np.asarray((magnitude > 0) & (magnitude < 0x00800000))


def negative_result() -> Bits:
    return np.asarray(FMA.dot(**OPERANDS) >> 31 == 1)


def signalling(name: str) -> Bits:
    codes = OPERANDS[name].reshape(-1)
    return np.isnan(to_float(FMA.formats[name], codes)) & (codes >> 22 & 1 == 0)


def quiet(name: str) -> Bits:
    codes = OPERANDS[name].reshape(-1)
    return np.isnan(to_float(FMA.formats[name], codes)) & (codes >> 22 & 1 == 1)


@pytest.mark.parametrize(
    ("name", "slug", "turned"),
    [
        ("inexact", "flag-inexact-not-with-overflow", lambda: flag("overflow")),
        ("underflow", "flag-underflow-low", lambda: flag("underflow")),
        ("invalid", "flag-invalid-quiet-nan", lambda: a_nan() & ~flag("invalid")),
        (
            "invalid",
            "flag-invalid-not-nan-c",
            lambda: signalling("c") & ~(signalling("a") | signalling("b") | zero_times_infinity()),
        ),
        (
            "invalid",
            "flag-invalid-quiet-for-signalling",
            lambda: (
                a_nan() & (flag("invalid") ^ (zero_times_infinity() | quiet("a") | quiet("b") | quiet("c")))
            ),
        ),
        (
            "invalid",
            "flag-invalid-quiet-for-signalling-c",
            lambda: (
                a_nan()
                & (flag("invalid") ^ (zero_times_infinity() | signalling("a") | signalling("b") | quiet("c")))
            ),
        ),
        ("overflow", "flag-overflow-late-by-one", lambda: flag("overflow") ^ np.roll(flag("overflow"), 1)),
        (
            "underflow",
            "flag-underflow-with-subnormal-result",
            lambda: subnormal_result() & ~flag("underflow"),
        ),
        ("inexact", "flag-inexact-not-with-negative-result", lambda: negative_result() & flag("inexact")),
        (
            "invalid",
            "flag-invalid-not-zero-times-infinity",
            lambda: zero_times_infinity(),
        ),
    ],
)
def test_a_flag_is_named(name: str, slug: str, turned: object) -> None:
    bits = turned()  # type: ignore[operator]
    (fault,) = flag_faults(FMA, OPERANDS, changed(name, bits), ALL)
    assert (fault.flag, fault.wrong, fault.remaining) == (name, int(bits.sum()), 0)
    assert slug in (fault.slug, *fault.others)
    assert f"flag {name} differs in" in fault.sentence()


@pytest.mark.parametrize(
    ("slugs", "bits"),
    [
        (
            {"flag-invalid-early-by-one", "flag-invalid-not-zero-times-infinity"},
            lambda: np.roll(flag("invalid") & ~zero_times_infinity(), -1),
        ),
        (
            {"flag-invalid-not-zero-times-infinity", "flag-invalid-quiet-nan-c"},
            lambda: np.where(flag("invalid"), ~zero_times_infinity(), quiet("c")),
        ),
    ],
)
def test_two_faults_of_one_flag_are_named(slugs: set[str], bits: object) -> None:
    (fault,) = flag_faults(FMA, OPERANDS, changed("invalid", flag("invalid") ^ bits()), ALL)  # type: ignore[operator]
    assert fault.remaining == 0
    assert slugs in [set(slug.split("+")) for slug in (fault.slug, *fault.others)], fault
    assert ", and " in fault.sentence()


def test_a_half_that_no_flag_sees_is_named() -> None:
    """c is exactly half a unit of the last place of 1: inexact by that alone, and not raised."""
    ones = {name: np.full((600, 1), 0x3F800000, np.uint32) for name in "ab"}
    c = np.repeat(np.array([0x33800000, 0x33800001, 0x34000000], np.uint32), 200)  # 2^-24, more, 2^-23
    operands = ones | {"c": c}
    half = c == 0x33800000
    assert (FMA.flags(**operands) >> FMA.status.index("inexact") & 1).tolist() == [1] * 400 + [0] * 200
    (fault,) = flag_faults(FMA, operands, changed("inexact", half, operands=operands), np.ones(600, np.bool_))
    assert fault.remaining == 0 and "half-is-exact" in (fault.slug, *fault.others)


def test_two_flags_are_two_faults_and_noise_is_none() -> None:
    flags = changed("underflow", flag("underflow"))
    flags ^= np.random.default_rng(1).integers(0, 2, 1200, np.uint8) << np.uint8(FMA.status.index("invalid"))
    found = {fault.flag: fault for fault in flag_faults(FMA, OPERANDS, flags, ALL)}
    assert set(found) == {"underflow", "invalid"} and found["underflow"].slug == "flag-underflow-low"
    assert found["invalid"].slug == "" and "no hypothesis explains it" in found["invalid"].sentence()


def test_only_right_results_count() -> None:
    """Of a result that is wrong the flags say nothing."""
    wrong = flag("overflow")
    flags = changed("inexact", wrong)
    assert flag_faults(FMA, OPERANDS, flags, ~wrong) == []


def test_lost_bits_show_in_inexact() -> None:
    """Bits of c more than 48 places below the product leave no sticky bit: of these no d is wrong."""
    a, b = (np.full((300, 1), 0x3F800000, np.uint32) for _ in "ab")
    exponents = np.arange(300, dtype=np.uint32) % 110 + 1
    c = (127 - exponents) << np.uint32(23) | np.uint32(1)
    operands = {"a": a, "b": b, "c": c}
    lost = exponents + 23 > 48  # the last bit of c lies so far below 1
    visible = exponents <= 48  # its first one does not
    exact = lost & ~visible
    flags = changed("inexact", exact, operands=operands)
    (fault,) = flag_faults(FMA, operands, flags, np.ones(300, np.bool_))
    assert "c-bits-lost-below-48" in (fault.slug, *fault.others) and fault.remaining == 0


def test_a_few_wrong_flags_are_of_no_class() -> None:
    """Three of the negative results that are inexact: no class is said to be what they have in common."""
    some = np.flatnonzero(negative_result() & flag("inexact"))[:3]
    judged = np.ones(1200, np.bool_)
    judged[negative_result() & flag("inexact")] = False
    judged[some] = True
    bits = np.zeros(1200, np.bool_)
    bits[some] = True
    (fault,) = flag_faults(FMA, OPERANDS, changed("inexact", bits), judged)
    assert fault.wrong == 3 and not any("negative-result" in slug for slug in (fault.slug, *fault.others))


@pytest.mark.parametrize(("late", "word"), [(1, "late"), (-1, "early")])
def test_a_flag_of_another_vectors_operand_is_named(late: int, word: str) -> None:
    mixed = OPERANDS | {"c": np.roll(OPERANDS["c"], late)}
    bit = np.uint8(1 << FMA.status.index("inexact"))
    flags = FMA.flags(**OPERANDS) & ~bit | FMA.flags(**mixed) & bit
    (fault,) = flag_faults(FMA, OPERANDS, flags, ALL)
    assert (fault.flag, fault.slug, fault.remaining) == ("inexact", f"flag-inexact-with-c-{word}-by-one", 0)


IN_MODES = """\
unit: in_modes
shape: {k: 1}
formats: {a: f16, b: f16, c: f16, d: f16}
flags: [inexact, underflow]
modes:
  rm: [nearest_even, toward_zero, up, down]
  sub: [none, product]
steps:
  - multiply: {to: products, negate: $sub}
  - special_values: {of: [products, c], nan: 0x7E00}
  - sum: {of: [products, c], to: total, rounding: $rm}
  - round: {of: total, rounding: $rm, overflow: ieee, zero: signed, tiny: unbounded}
"""


@pytest.mark.parametrize(("late", "word"), [(1, "late"), (-1, "early")])
def test_what_takes_the_mode_of_another_vector_is_named(late: int, word: str) -> None:
    ins = build_instruction(parse(IN_MODES))
    operands = default_set(ins, 1200, seed=4).operands
    rounding = operands["mode"] & 4 | np.roll(operands["mode"] & 3, late)
    mixed = operands | {"mode": rounding}
    found = diagnose(ins, operands, ins.dot(**mixed))
    assert found.explaining and found.explaining[0].slug == f"mode-rm-{word}-by-one", found.sentence()
    flags = ins.flags(**operands) & 1 | ins.flags(**mixed) & 2
    every = np.ones(len(flags), np.bool_)
    (fault,) = flag_faults(ins, operands, flags, every)
    assert (fault.flag, fault.slug) == ("underflow", f"flag-underflow-with-mode-rm-{word}-by-one")
    late_c = diagnose(ins, operands, ins.dot(**(operands | {"c": np.roll(operands["c"], late)})))
    assert late_c.explaining and late_c.explaining[0].slug == f"c-{word}-by-one", late_c.sentence()


def test_a_flag_that_the_fault_of_d_makes_is_no_fault_of_its_own() -> None:
    """The mode loses a bit: d and flags belong to another mode, and one hypothesis explains both."""
    ins = build_instruction(parse(IN_MODES))
    operands = default_set(ins, 20_000, seed=5).operands
    mixed = operands | {"mode": operands["mode"] & 3}
    found = diagnose(ins, operands, ins.dot(**mixed))
    assert found.explains, found.sentence()
    right = ins.dot(**mixed) == ins.dot(**operands)
    faults = flag_faults(ins, operands, ins.flags(**mixed), right, found.hypotheses[0])
    assert faults and all(fault.slug == found.hypotheses[0].slug for fault in faults)
    assert all("no hypothesis" not in fault.sentence() for fault in faults)
    assert "which explains all wrong results, too" in faults[0].sentence()


def test_another_fault_of_a_flag_is_named_by_its_own() -> None:
    ins = build_instruction(parse(IN_MODES))
    operands = default_set(ins, 1200, seed=4).operands
    mixed = operands | {"mode": operands["mode"] & 3}
    best = diagnose(ins, operands, ins.dot(**mixed)).hypotheses[0]
    every = np.ones(1200, np.bool_)
    flags = ins.flags(**mixed) & 2  # inexact is never raised
    found = {fault.flag: fault for fault in flag_faults(ins, operands, flags, every, best)}
    assert found["inexact"].slug == "flag-inexact-low"
    assert "underflow" not in found or found["underflow"].slug == best.slug


def test_a_fault_that_a_flag_shows_is_asked_of_the_results() -> None:
    """Subnormal operands count as zero, which shows in the flag and in d; the hint has no slugs."""
    (fault,) = (one for one in of_signals(FMA) if one.slug == "abc-subnormal-is-zero")
    kinds = ("subnormal", "wide", "subnormal_result")
    parts = [stimuli.generate(FMA, kind, 1500, np.random.default_rng(1)) for kind in kinds]
    operands = {name: np.concatenate([part[name] for part in parts]) for name in "abc"}
    d, inexact = datapath.results(FMA, (fault,), operands), datapath.inexact(FMA, (fault,), operands)
    place = np.uint8(FMA.status.index("inexact"))
    flags = FMA.flags(**operands) & ~np.uint8(1 << place) | inexact.astype(np.uint8) << place
    right = d == FMA.dot(**operands)
    (found,) = flag_faults(FMA, operands, flags, right, d=d)
    assert found.slug == fault.slug and "which explains all wrong results, too" in found.sentence()
    assert fault.slug not in found.sentence() and not any(slug in found.sentence() for slug in found.others)


def test_after_its_budget_only_quick_hypotheses_are_tried() -> None:
    """The sentence says so where none explains the flag."""
    flags = changed("inexact", np.asarray(np.arange(1200) % 7 == 0))
    (whole,) = flag_faults(FMA, OPERANDS, flags, ALL)
    (cut,) = flag_faults(FMA, OPERANDS, flags, ALL, budget=Budget(0.0))
    assert not whole.slug and whole.sentence().endswith("no hypothesis explains it")
    assert cut.out_of_time and "no hypothesis that was tried in the time explains it" in cut.sentence()
    low = changed("inexact", flag("inexact"))
    (quick,) = flag_faults(FMA, OPERANDS, low, ALL, budget=Budget(0.0))
    assert quick.slug == "flag-inexact-low" and not quick.remaining
