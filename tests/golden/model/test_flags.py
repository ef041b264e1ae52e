"""Status flags: units of IEEE 754 against its text in exact rationals, and the two models against each other
on random units."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml_text
from faulty_units import any_unit
from ieee import ROUNDINGS, Ieee
from random_operands import draw_dots
from random_units import accepted, load

import golden
from golden.catalog.unit_text import unit_text
from golden.cover.points import sampler
from golden.errors import OperandError, SpecError
from golden.model.instruction import Instruction
from golden.vectors import default_set

EXAMPLES = Path(__file__).parents[3] / "spec" / "examples"
NAMES = ("invalid", "overflow", "underflow", "inexact")
RULES = ("unbounded", "before_rounding")


# IEEE 754-2019, clause 7, written out -----------------------------------------------------------------------


class Flags:
    """The exceptions of one operation in default handling; `rule` is when a number is tiny (7.5)."""

    def __init__(self, name: str, rule: str) -> None:
        self.fmt, self.rule = Ieee(name), rule
        info = np.finfo(self.fmt.floats)
        self.precision, self.least = info.nmant + 1, Fraction(2) ** int(info.minexp)
        self.largest = self.fmt.value(self.fmt.infinity - 1)

    def signals(self, code: int) -> bool:
        """6.2.1: the first bit of the trailing significand of a signalling NaN is 0."""
        return self.fmt.is_nan(code) and not code >> (self.precision - 2) & 1

    def of_result(self, exact: Fraction, delivered: int, mode: str) -> set[str]:
        """7.4 to 7.6 for a result that is a number."""
        if not exact:
            return set()
        unbounded = self.unbounded(exact, mode)
        if abs(unbounded) > self.largest:
            return {"overflow", "inexact"}
        if self.fmt.value(delivered) == exact:
            return set()
        tiny = abs(unbounded if self.rule == "unbounded" else exact) < self.least
        return {"inexact", "underflow"} if tiny else {"inexact"}

    def unbounded(self, exact: Fraction, mode: str) -> Fraction:
        """The number rounded to the precision, as though the exponent range were unbounded."""
        size = abs(exact)
        quantum = Fraction(2) ** (
            size.numerator.bit_length() - size.denominator.bit_length() - self.precision
        )
        while size / quantum >= 2**self.precision:
            quantum *= 2
        while size / quantum < 2 ** (self.precision - 1):
            quantum /= 2
        whole, rest = divmod(size, quantum)
        rest /= quantum
        half = Fraction(1, 2)
        up = {
            "nearest_even": rest > half or (rest == half and whole % 2 == 1),
            "nearest_away": rest >= half,
            "toward_zero": False,
            "up": rest > 0 and exact > 0,
            "down": rest > 0 and exact < 0,
        }[mode]
        return (whole + up) * quantum * (1 if exact > 0 else -1)

    def of_sum(self, terms: list[tuple[Any, int]], mode: str, delivered: int) -> set[str]:
        """An addition of terms (value, sign); 7.2 d: infinities of opposite signs are invalid."""
        (x, sx), (y, sy) = terms
        if "nan" in (x, y):
            return set()
        if "inf" in (x, y):
            return {"invalid"} if x == y and sx != sy else set()
        return self.of_result(x + y, delivered, mode)

    def add(self, x: int, y: int, mode: str, delivered: int) -> set[str]:
        invalid = {"invalid"} if self.signals(x) or self.signals(y) else set()
        return invalid | self.of_sum([self.fmt.term(x), self.fmt.term(y)], mode, delivered)

    def product(self, x: int, y: int) -> tuple[tuple[Any, int], set[str]]:
        """7.2 b: zero times infinity is invalid."""
        kinds = {self.fmt.term(x)[0], self.fmt.term(y)[0]}
        invalid = kinds == {0, "inf"} or self.signals(x) or self.signals(y)
        return self.fmt.product(x, y), {"invalid"} if invalid else set()

    def multiply(self, x: int, y: int, mode: str, delivered: int) -> set[str]:
        (value, _), raised = self.product(x, y)
        return raised if isinstance(value, str) else self.of_result(value, delivered, mode)

    def fma(self, x: int, y: int, z: int, mode: str, signs: tuple[bool, bool], delivered: int) -> set[str]:
        """7.2 c: zero times infinity plus a quiet NaN may be invalid; here it is."""
        (p, sp), raised = self.product(x, y)
        c, sc = self.fmt.term(z)
        if signs[0]:
            p, sp = p if isinstance(p, str) else -p, 1 - sp
        if signs[1]:
            c, sc = c if isinstance(c, str) else -c, 1 - sc
        raised = raised | ({"invalid"} if self.signals(z) else set())
        return raised | self.of_sum([(p, sp), (c, sc)], mode, delivered)


def with_flags(name: str, rule: str, names: tuple[str, ...] = NAMES) -> Instruction:
    """An example of an IEEE unit, with status flags and a rule for tiny numbers."""
    unit = yaml_text.read((EXAMPLES / f"{name}.yaml").read_text("utf-8"))
    unit["flags"] = list(names)
    next(iter(unit["steps"][-1].values()))["tiny"] = rule
    return load(yaml_text.written(unit))


def words(raised: set[str], names: tuple[str, ...] = NAMES) -> int:
    return sum(1 << i for i, name in enumerate(names) if name in raised)


F16_EDGES = [
    0,
    1,
    2,
    3,
    0x200,
    0x3FE,
    0x3FF,
    0x400,
    0x401,
    0x7FF,
    0x1400,
    0x13FF,
    0x1401,
    0x3800,
    0x3BFF,
    0x3C00,
]
F16_EDGES += [0x3C01, 0x4000, 0x6800, 0x77FF, 0x7800, 0x7BFE, 0x7BFF, 0x7C00, 0x7C01, 0x7DFF, 0x7E00, 0x7FFF]


def f16_triples(rng: np.random.Generator, count: int) -> list[np.ndarray[Any, Any]]:
    """Edges against each other, random codes, and products near the least normal and the largest number."""
    edges = np.array([*F16_EDGES, *(code | 0x8000 for code in F16_EDGES)], np.uint16)
    directed = rng.choice(edges, (3, count))
    drawn = rng.integers(0, 1 << 16, (3, count)).astype(np.uint16)
    a = rng.integers(0x0400, 0x7C00, count).astype(np.uint16)
    at = np.where(rng.random(count) < 0.5, 0x0400, 0x7BFF)  # the product comes close to one of the two
    b = np.clip(at - a.astype(np.int64) + 0x3C00 + rng.integers(-2, 3, count), 0, 0x7BFF).astype(np.uint16)
    c = np.where(rng.random(count) < 0.5, 0, rng.integers(0, 4, count)).astype(np.uint16)
    signs = rng.integers(0, 2, (3, count)).astype(np.uint16) << 15
    near = [a | signs[0], b | signs[1], c | signs[2]]
    return [np.concatenate([directed[i], drawn[i], near[i]]) for i in range(3)]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["ieee_fma_flags", "fma_modes"])
def test_a_fused_multiply_add_is_ieee_754s(name: str, rule: str) -> None:
    """Two ways to write it - one `fma` step, or an exact sum and a rounding - in every rounding mode."""
    ins, truth, rng = with_flags(name, rule), Flags("f16", rule), np.random.default_rng(5)
    a, b, c = f16_triples(rng, 450)
    signed = name == "fma_modes"
    modes = [rng.integers(0, 5, len(a)), rng.integers(0, 4 if signed else 1, len(a))]
    mode = (modes[0] | modes[1] << 3).astype(np.uint8)
    found = ins.flags(a[:, None], b[:, None], c, mode=mode)
    d = ins.dot(a[:, None], b[:, None], c, mode=mode)
    rounding = ("nearest_even", "toward_zero", "down", "up", "nearest_away")
    seen: dict[int, int] = {}
    for i in range(len(a)):
        signs = bool(modes[1][i] & 1), bool(modes[1][i] & 2)
        raised = truth.fma(int(a[i]), int(b[i]), int(c[i]), rounding[modes[0][i]], signs, int(d[i]))
        assert int(found[i]) == words(raised), (hex(a[i]), hex(b[i]), hex(c[i]), mode[i], raised)
        if i % 3 == 0:
            code = truth.fmt.fma(int(a[i]), int(b[i]), int(c[i]), rounding[modes[0][i]], *signs)
            assert int(d[i]) == code, (hex(a[i]), hex(b[i]), hex(c[i]), mode[i])
        seen[int(found[i])] = seen.get(int(found[i]), 0) + 1
    assert {0, 1, 0b1000, 0b1010, 0b1100} == set(seen) and min(seen.values()) >= 10, seen


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["ieee_add", "ieee_multiply"])
def test_addition_and_multiplication_are_ieee_754s(name: str, rule: str) -> None:
    """The adder aligns and keeps a sticky bit, the multiplier rounds the exact product."""
    ins, truth, rng = with_flags(name, rule), Flags("f32", rule), np.random.default_rng(6)
    edges = [
        0,
        1,
        2,
        0x7FFFFF,
        0x800000,
        0x800001,
        0x3F7FFFFF,
        0x3F800000,
        0x3F800001,
        0x33800000,
        0x33800001,
    ]
    edges += [0x7F7FFFFF, 0x73000000, 0x72FFFFFF, 0x7F800000, 0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF]
    codes = np.array([*edges, *(code | 1 << 31 for code in edges)], np.uint32)
    x, y = (grid.reshape(-1) for grid in np.meshgrid(codes, codes))
    drawn = rng.integers(0, 1 << 32, (2, 800), dtype=np.uint64).astype(np.uint32)
    size = rng.integers(0x00800000, 0x7F800000, 800)
    least = np.clip(0x00800000 - size + 0x3F800000 + rng.integers(-3, 4, 800), 0, 0x7F7FFFFF)
    x = np.concatenate([x, drawn[0], size.astype(np.uint32)])
    y = np.concatenate([y, drawn[1], least.astype(np.uint32)])
    mode = rng.integers(0, 5, len(x)).astype(np.uint8)
    adds = name == "ieee_add"
    operands = {"a": x[:, None], "mode": mode} | ({"c": y} if adds else {"b": y[:, None]})
    found, d = ins.flags(**operands), ins.dot(**operands)
    rounding = ("nearest_even", "toward_zero", "down", "up", "nearest_away")
    for i in range(len(x)):
        expected = (truth.add if adds else truth.multiply)(int(x[i]), int(y[i]), rounding[mode[i]], int(d[i]))
        assert int(found[i]) == words(expected), (hex(x[i]), hex(y[i]), rounding[mode[i]], expected)
    assert {0, 1, 0b1000, 0b1010} <= set(found.tolist()) and (adds or 0b1100 in found)


def test_the_roundings_are_all_of_them() -> None:
    assert sorted(ROUNDINGS) == sorted(("nearest_even", "toward_zero", "down", "up", "nearest_away"))


# What is beyond IEEE 754 ------------------------------------------------------------------------------------


def unit(
    steps: str, formats: str = "a: f16, b: f16, c: f16, d: f16", k: int = 1, more: str = ""
) -> Instruction:
    return load(
        f"unit: own\nshape: {{k: {k}}}\nformats: {{{formats}}}\n"
        f"flags: [invalid, overflow, underflow, inexact]\n{more}steps:\n{steps}"
    )


ROUND = "  - round: {of: total, rounding: nearest_even, overflow: %s, zero: signed%s}\n"
SUM = (
    "  - multiply: {to: products}\n  - special_values: {of: [products, c]}\n%s"
    "  - sum: {of: [products, c], to: total}\n"
)
ONE, INFINITE, QUIET, SIGNALLING = 0x3C00, 0x7C00, 0x7E00, 0x7D00


def test_a_flushed_result_is_underflow_and_inexact() -> None:
    """Also one that could have been delivered exactly."""
    flushing = unit(SUM % "" + ROUND % ("ieee", ", flush: signed"))
    keeping = unit(SUM % "" + ROUND % ("ieee", ""))
    least = 0x0001
    assert (int(flushing.dot([least], [ONE], 0)), int(flushing.flags([least], [ONE], 0))) == (0, 0b1100)
    assert (int(keeping.dot([least], [ONE], 0)), int(keeping.flags([least], [ONE], 0))) == (least, 0)


def test_what_is_flushed_before_rounding() -> None:
    """A number just below the least normal one rounds up to it; there the three rules for tiny differ."""
    below, a, b = 0x0400, 0x3BFF, 0x0400  # (1 - 2**-11) * 2**-14 is a tie between the two neighbours
    for tiny, d in (("subnormal_result", below), ("unbounded", 0), ("before_rounding", 0)):
        ins = unit(SUM % "" + ROUND % ("ieee", f", flush: signed, tiny: {tiny}"))
        assert int(ins.dot([a], [b], 0)) == d, tiny
    # with one unit of the 12th bit more it is nearer to the least normal number, whatever the exponents
    near = "a: f32, b: f32, c: f32, d: f16"
    just = 0x387FFF00
    for tiny, d in (("subnormal_result", below), ("unbounded", below), ("before_rounding", 0)):
        ins = unit(SUM % "" + ROUND % ("ieee", f", flush: signed, tiny: {tiny}"), near)
        assert int(ins.dot([just], [0x3F800000], 0)) == d, tiny
        assert int(ins.flags([just], [0x3F800000], 0)) == (0b1100 if d == 0 else 0b1000), tiny


def test_a_saturated_result_is_overflow() -> None:
    for overflow, d in (("largest", 0x7BFF), ("infinity", INFINITE)):
        ins = unit(SUM % "" + ROUND % (overflow, ""))
        assert (int(ins.dot([0x7BFF], [0x4000], 0)), int(ins.flags([0x7BFF], [0x4000], 0))) == (d, 0b1010)


def test_what_alignment_cut_counts_through_the_sticky_bit_alone() -> None:
    align = "  - align: {of: [products, c], fraction_bits: 12, rounding: toward_zero, cut: %s}\n"
    operands: Any = ([ONE], [ONE], 0x0001)
    for cut, code in (("dropped", 0), ("sticky_or", 0b1000), ("sticky_added", 0b1000)):
        assert int(unit(SUM % align % cut + ROUND % ("ieee", "")).flags(*operands)) == code, cut


def test_invalid_operations_of_several_terms() -> None:
    """Zero times infinity and opposite infinities, also with a NaN, and a NaN operand if it signals."""
    ins = unit(SUM % "" + ROUND % ("ieee", ""), k=2)
    minus = INFINITE | 0x8000
    assert int(ins.flags([INFINITE, QUIET], [0, ONE], 0)) == 1
    assert int(ins.flags([INFINITE, QUIET], [ONE, ONE], minus)) == 1
    assert int(ins.flags([QUIET, ONE], [ONE, ONE], INFINITE)) == 0
    for operands in (
        ([SIGNALLING, 0], [0, 0], 0),
        ([0, 0], [0, SIGNALLING], 0),
        ([0, 0], [0, 0], SIGNALLING),
    ):
        assert int(ins.flags(*operands)) == 1, operands


def test_formats_whose_nan_is_one_code_have_no_signalling_ones() -> None:
    formats = "a: e4m3, b: e4m3fnuz, c: f32, d: f32"
    ins = unit(SUM % "" + ROUND % ("ieee", ""), formats)
    assert (int(ins.flags([0x7F], [0x38], 0)), int(ins.flags([0x38], [0x80], 0))) == (0, 0)


def test_every_rounding_on_the_way_counts() -> None:
    """A product that rounds, an addition whose result is rounded again, and an infinity on the way."""
    steps = (
        "  - multiply: {to: products, format: f16, rounding: nearest_even}\n"
        "  - sum: {of: [products, c], to: d, order: sequential, rounding: nearest_even, format: f32}\n"
    )
    ins = unit(steps, "a: f16, b: f16, c: f32, d: f32")
    assert (
        int(ins.flags([0x3C01], [0x3C01], 0)) == 0b1000
    )  # the addition of zero is exact, the product is not
    assert int(ins.flags([0x7BFF], [0x7BFF], 0xFF800000)) == 0b1011  # overflow, and then inf - inf
    limited = unit(
        "  - multiply: {to: products, overflow_exponent: 8}\n  - special_values: {of: products}\n"
        "  - sum: {of: [products, c], to: total}\n" + ROUND % ("ieee", "")
    )
    assert int(limited.flags([0x5C00], [ONE], 0)) == 0b1010


def test_integers() -> None:
    """A result that wraps or saturates is overflow; an infinity has no integer."""
    for overflow in ("wrap", "saturate"):
        steps = "  - multiply: {to: products}\n  - sum: {of: [products, c], to: total}\n"
        end = f"  - round: {{of: total, rounding: toward_zero, overflow: {overflow}, zero: positive}}\n"
        ins = unit(steps + end, "a: s8, b: s8, c: s32, d: s32")
        assert int(ins.flags([2], [3], 0x7FFFFFFF)) == 0b1010 and int(ins.flags([2], [3], 5)) == 0
    convert = unit(
        "  - special_values: {of: a, nan: 0x7F}\n"
        "  - round: {of: a, rounding: toward_zero, overflow: saturate, zero: positive}\n",
        "a: f16, d: s8",
    )
    assert [int(convert.flags([code])) for code in (ONE, 0x3E00, 0x5C00)] == [0, 0b1000, 0b1010]


def test_a_subset_in_another_order() -> None:
    whole, some = (
        with_flags("ieee_add", "unbounded"),
        with_flags("ieee_add", "unbounded", ("inexact", "overflow")),
    )
    a, c = np.full((1, 1), 0x7F7FFFFF, np.uint32), np.array([0x73000000], np.uint32)
    for mode in range(5):
        code = int(whole.flags(a, c=c, mode=[mode])[0])
        assert int(some.flags(a, c=c, mode=[mode])[0]) == (code >> 3 & 1 | (code >> 1 & 1) << 1)


# The two models ---------------------------------------------------------------------------------------------


def flags_unit(rng: random.Random) -> str:
    """A random unit with any keys and with status flags."""
    made = yaml_text.read(any_unit(rng))
    made["flags"] = rng.sample(NAMES, rng.randint(1, 4)) if rng.random() < 0.3 else list(NAMES)
    for operation in made["program"]:
        for step in operation["steps"]:
            ((op, keys),) = step.items()
            rounds = op in ("round", "fma") or "order" in keys or "format" in keys
            if rounds and op != "align" and rng.random() < 0.7:
                keys["tiny"] = rng.choice(("subnormal_result", "unbounded", "before_rounding"))
    return yaml_text.written(made)


def test_the_models_agree_on_random_units() -> None:
    seen: dict[str, int] = dict.fromkeys(NAMES, 0)
    for seed in range(9000, 9006):
        text, ins = accepted(flags_unit, seed)
        drawn = draw_dots(ins, 16, np.random.default_rng(seed))
        found = ins.flags(**drawn)
        for i in range(len(found)):
            trace = ins.trace(**{name: codes[i] for name, codes in drawn.items()})
            assert int(found[i]) == trace.flags, f"seed {seed}, dot product {i}: {trace.flags_text}\n{text}"
            for bit, name in enumerate(ins.status):
                seen[name] += int(found[i]) >> bit & 1
        answers = ins.answers(drawn)
        assert np.array_equal(answers["d"], ins.dot(**drawn)) and np.array_equal(answers["flags"], found)
    assert min(seen.values()) > 2, seen


def test_matrices_batches_and_modes_keep_their_places() -> None:
    """Flags of matrices and of broadcast batches are those of the dot products in them."""
    ins = load(
        "unit: tile\nshape: {m: 3, n: 5, k: 4}\nformats: {a: f16, b: f16, c: f16, d: f16}\n"
        "flags: [overflow, inexact]\nmodes: {rnd: [nearest_even, up]}\n"
        "steps: [{fma: {to: d, rounding: $rnd}}]\n"
    )
    rng = np.random.default_rng(3)
    a, b, c = (
        rng.integers(0, 1 << 16, shape).astype(np.uint16) for shape in ((7, 1, 3, 4), (2, 4, 5), (2, 3, 5))
    )
    mode = rng.integers(0, 2, (7, 2)).astype(np.uint8)
    whole = ins.answers(ins.check_operands((a, b, c, None, None, None, mode), matrices=True), matrices=True)
    one = ins.flags(
        a[..., :, None, :],
        b.swapaxes(-1, -2)[:, None],
        c,
        mode=np.broadcast_to(mode[..., None, None], (7, 2, 3, 5)),
    )
    assert whole["flags"].shape == (7, 2, 3, 5) and np.array_equal(whole["flags"], one)
    assert len(np.unique(one)) > 1


@pytest.mark.parametrize("name", ["ieee_multiply", "ieee_fma_flags", "fma_modes"])
def test_default_vectors_distinguish_the_rules_for_tiny_numbers(name: str) -> None:
    """Tininess before and after rounding differ on a sliver of operands below the least normal number."""
    after, before = with_flags(name, "unbounded"), with_flags(name, "before_rounding")
    vectors = default_set(after, 16_000, 1)
    differ = before.flags(**vectors.operands) ^ vectors.flags
    assert set(np.unique(differ).tolist()) == {0, 0b0100} and np.count_nonzero(differ) >= 10


@pytest.mark.parametrize("k", [1, 3])
def test_default_vectors_have_invalid_operations_with_nans(k: int) -> None:
    """d is a NaN anyway: of a unit that hands a quiet NaN on without a look at the rest the flag is wrong."""
    unit = yaml_text.read((EXAMPLES / "ieee_fma_flags.yaml").read_text("utf-8")) | {"shape": {"k": k}}
    operands = default_set(load(yaml_text.written(unit)), 30_000, 1).operands
    a, b, c = (operands[name].reshape(30_000, -1) & 0x7FFF for name in "abc")
    nan = {name: codes > 0x7C00 for name, codes in (("a", a), ("b", b), ("c", c))}
    signals = {name: (codes > 0x7C00) & (codes < 0x7E00) for name, codes in (("a", a), ("b", b), ("c", c))}
    invalid_product = (((a == 0x7C00) & (b == 0)) | ((a == 0) & (b == 0x7C00))).any(axis=1)
    silent = ~np.any([signal.any(axis=1) for signal in signals.values()], axis=0)
    assert np.count_nonzero(invalid_product & silent & nan["c"][:, 0]) >= 10
    one_signals = signals["c"][:, 0] & (nan["a"] & ~signals["a"]).any(axis=1)
    assert np.count_nonzero(one_signals & ~signals["a"].any(axis=1) & ~signals["b"].any(axis=1)) >= 5


# The language -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("[]", "is an empty list"),
        ("[inexact, inexact]", "holds inexact twice"),
        ("[inexakt]", "key 'flags' holds 'inexakt', expected one of invalid, overflow"),
        ("{nx: inexact}", "key 'flags' is a mapping, expected one of invalid"),
    ],
)
def test_refusals(flags: str, message: str) -> None:
    text = f"unit: u\nshape: {{k: 1}}\nformats: {{a: f16, b: f16, c: f16, d: f16}}\nflags: {flags}\n"
    with pytest.raises(SpecError, match=message):
        load(text + "steps: [{fma: {to: d, rounding: up}}]\n")


def test_tiny_without_flush_needs_flags() -> None:
    with pytest.raises(SpecError, match="tiny"):
        load(
            "unit: u\nshape: {k: 1}\nformats: {a: f16, b: f16, c: f16, d: f16}\n"
            "steps: [{fma: {to: d, rounding: up, tiny: unbounded}}]\n"
        )


def test_a_unit_without_flags_says_so() -> None:
    ins = golden.load_instruction(EXAMPLES / "ieee_add.yaml")
    assert ins.flags_format is None and list(ins.results) == ["d"]
    with pytest.raises(OperandError, match="ieee_add has no status flags"):
        ins.flags([0], c=0, mode=0)


def test_written_out_it_is_the_same_unit() -> None:
    """Whole and in one mode: flags, and a `tiny` that only a unit with flags may have."""
    whole = golden.load_instruction(EXAMPLES / "ieee_fma_flags.yaml")
    for ins in (whole, whole.mode_units[2]):
        again = load(unit_text(ins, "again") or "")
        assert again.status == ins.status and again.modes == ins.modes
        for one, other in zip(again.program.operations, ins.program.operations, strict=True):
            assert one.arithmetic == other.arithmetic


def test_divide_by_zero_is_a_bit_that_nothing_raises() -> None:
    """RISC-V's fflags: the other four where they are without it, in both models, and no hole of coverage."""
    text = (EXAMPLES / "ieee_fma_flags.yaml").read_text(encoding="utf-8")
    (line,) = [each for each in text.splitlines() if each.startswith("flags:")]
    four, five = (
        "[inexact, underflow, overflow, invalid]",
        "[inexact, underflow, overflow, divide_by_zero, invalid]",
    )
    plain, riscv = (load(text.replace(line, f"flags: {flags}")) for flags in (four, five))
    operands = default_set(plain, 400, 1).operands
    expected = plain.flags(**operands)
    assert set(expected.tolist()) >= {0, 1, 0b11, 0b101, 0b1000}
    moved = expected & 0b111 | (expected & 0b1000) << 1
    np.testing.assert_array_equal(riscv.flags(**operands), moved)
    for i in range(0, 400, 7):
        assert riscv.trace(**{name: value[i] for name, value in operands.items()}).flags == moved[i]
    bins = [point.bins for point in sampler(riscv).points if point.name.endswith("flag divide_by_zero")]
    assert bins and all(each == {"not raised": True, "raised": False} for each in bins)
