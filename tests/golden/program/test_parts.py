"""Parts of operands, exceptions, a rounding for each register, sums that underflow and scales of one side:
what the steps `part`, `replace`, `align` and `scale` say, against exact rationals."""

from __future__ import annotations

import random
import re
from fractions import Fraction

import exact
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_units import both, unit

import golden
from golden import yamlfile
from golden.catalog import unit_files
from golden.catalog.unit_text import unit_text
from golden.errors import SpecError
from golden.model.instruction import Instruction
from golden.number.rounding import MODES
from golden.paths import docs_folder

ROUND = "round: {of: total, rounding: nearest_even, overflow: ieee, zero: positive}"


def load(text: str) -> Instruction:
    return unit_files.build_instruction(yamlfile.parse(text))


def four_passes() -> str:
    """The unit that the page of keys shows."""
    page = (docs_folder() / "spec-schema.md").read_text()
    return next(text for text in page.split("```") if text.startswith("yaml file=four_passes.yaml")).split(
        "\n", 1
    )[1]


# Parts ------------------------------------------------------------------------------------------------------


def test_two_and_four_passes_of_a_narrow_multiplier() -> None:
    """0x3fa8 * 0x40ff with a in 4 and 3 fraction bits, b in 6 and 1, each pass added to bf16."""
    whole = load(four_passes())
    assert both(whole, [0x3FA8], [0x40FF], 0) == 0x4128
    text = four_passes().split("- steps: # high times low")[0]
    assert both(load(text), [0x3FA8], [0x40FF], 0) == 0x4127


def part(significand: Fraction, first: int, bits: int) -> Fraction:
    """The places first to first + bits - 1 of a significand, place n worth 2**-n."""
    below, above = first + bits - 1, first - 1
    low = Fraction(exact.floor(significand * exact.two(below)), 1) * exact.two(-below)
    return low - Fraction(exact.floor(low * exact.two(above)), 1) * exact.two(-above)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_a_part_is_some_bits_at_their_own_weight(seed: int) -> None:
    rng = random.Random(seed)
    fmt = rng.choice(("f16", "bf16", "f32", "e4m3"))
    places = [(rng.randint(-2, 12), rng.randint(1, 12)) for _ in "ab"]
    steps = [f"part: {{of: {x}, first: {f}, bits: {n}}}" for x, (f, n) in zip("ab", places, strict=True)]
    steps += ["multiply: {to: products}", "sum: {of: products, to: total}"]
    ins = unit(*steps, ROUND, k=1, a=fmt, b=fmt)
    codes = [rng.randrange(1 << ins.formats["a"].bits) for _ in "ab"]
    values = [exact.decode(fmt, code) for code in codes]
    if any(value.what != "number" for value in values):
        return
    a, b = (part(abs(v.s), *at) * exact.two(v.e) for v, at in zip(values, places, strict=True))
    sign = -1 if values[0].negative != values[1].negative else 1
    want = exact.encode("f32", sign * a * b, "nearest_even", overflow="ieee")
    assert both(ins, codes[:1], codes[1:], 0) == want


def test_parts_of_an_integer_are_those_of_its_magnitude() -> None:
    """INT8 out of nibbles: -23 is -1 * 16 - 7; the four products add up to the whole one."""
    high, low = "{of: [%s], first: -7, bits: 4}", "{of: [%s], first: -3, bits: 4}"
    steps = [
        f"- steps:\n  - part: {x % 'a'}\n  - part: {y % 'b'}\n  - multiply: {{to: products}}\n"
        "  - sum: {of: [products, c], to: total}\n"
        "  - round: {of: total, rounding: toward_zero, overflow: saturate, zero: positive}\n"
        for x in (high, low)
        for y in (high, low)
    ]
    text = "unit: nibbles\nshape: {k: 2}\nformats: {a: s8, b: s8, c: s32, d: s32}\nprogram:\n" + "".join(
        steps
    )
    ins = load(text)
    assert both(ins, [0x100 - 23, 0x80], [99, 0x80], 5) == (5 - 23 * 99 + 128 * 128) % 2**32
    assert both(load(text.split("program:")[0] + "program:\n" + steps[0]), [0x100 - 23, 0], [99, 0], 0) == (
        -16 * 96 % 2**32
    )


def test_a_part_without_bits_keeps_its_exponent() -> None:
    """The exponent of a part is e - first, also where all its bits are 0: c is cut against it."""
    ins = unit(
        "part: {of: a, first: 5, bits: 5}",
        "multiply: {to: products}",
        "align: {of: [products, c], fraction_bits: 4, rounding: toward_zero}",
        "sum: {of: [products, c], to: total}",
        ROUND,
        k=1,
    )
    one, c = golden.from_float("f16", 1.0), int(golden.from_float("f32", 2**-9 + 2**-10))
    assert both(ins, [int(one)], [int(one)], c) == int(golden.from_float("f32", 2**-9))  # cut at 2^-9
    assert both(ins, [0], [int(one)], c) == c  # a zero takes no part


HALF = "program:\n- steps: [{part: {of: a, bits: 4}}, {fma: {to: d, rounding: nearest_even}}]\n"


def refused(text: str) -> str:
    with pytest.raises(SpecError) as error:
        load("unit: u\nshape: {k: 4}\nformats: {a: f16, b: f16, c: f32, d: f32}\n" + text)
    return str(error.value).split(": ", 1)[1]


def test_what_is_used_twice_is_used_in_parts() -> None:
    whole = "- steps: [{fma: {to: d, rounding: nearest_even}}]\n"
    assert "the operations use 8 of k = 4 products, expected each exactly once (several times" in refused(
        HALF + whole
    )
    assert "key 'operation' is 'and', which combines the bits of unsigned integers" in refused(
        "steps: [{part: {of: a, bits: 4}}, {multiply: {to: products, operation: and}}]\n"
    )
    assert "the operations use 2 of k = 4 products" in refused(
        HALF.replace("- steps", "- k: {from: 0, to: 1}\n  steps")
        + HALF.removeprefix("program:\n").replace("- steps", "- k: {from: 0, to: 1}\n  steps")
    )


# A seed that is read in another format ----------------------------------------------------------------------

REREAD = """
unit: reread
shape: {k: 2}
define_formats:
  mine: {kind: float, storage: 32, exponent_bits: 8, fraction_bits: 23, bias: 127, specials: none}
formats: {a: bf16, b: bf16, c: f32, d: f32}
program:
- k: {list: [0]}
  steps: &steps
  - multiply: {to: products}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: nearest_even, overflow: infinity, zero: positive}
- k: {list: [1]}
  seed_format: SEED
  steps: *steps
"""


def test_an_infinity_can_be_read_as_the_number_of_its_code() -> None:
    """2^127 + 2^127 is an infinity. Where every code is a number its code is 2^128: less 2^127 that is
    2^127."""
    a, b, c, infinity = [0x7F00, 0xFF00], [0x3F80, 0x3F80], 0x7F000000, 0x7F800000
    assert both(load(REREAD.replace("SEED", "f32")), a, b, c) == infinity
    ins = load(REREAD.replace("SEED", "mine"))
    assert both(ins, a, b, c) == 0x7F000000
    written = unit_text(ins)
    assert written is not None and "seed_format: mine" in written
    assert both(load(written), a, b, c) == 0x7F000000


def test_a_seed_has_the_width_of_what_is_read() -> None:
    with pytest.raises(SpecError, match="key 'seed_format' is f16 of 16 bits, expected a format of 32 bits"):
        load(REREAD.replace("SEED", "f16"))


# A rounding for each register -------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(MODES), st.sampled_from(MODES))
def test_each_register_has_its_own_rounding(seed: int, of_products: str, of_c: str) -> None:
    rng = random.Random(seed)
    f = rng.randint(0, 6)
    ins = unit(
        "multiply: {to: products}",
        f"align: {{of: [products, c], fraction_bits: {f}, rounding: {{c: {of_c}, products: {of_products}}}}}",
        "sum: {of: [products, c], to: total}",
        ROUND,
        k=2,
    )
    a, b = ([rng.choice((0x3C00, 0xBC00, 0x3A00, 0x3555, 0xB101, 0x2C00)) for _ in range(2)] for _ in "ab")
    c = rng.choice((0x3F000000, 0xBF000000, 0x3F100000, 0xBE700000, 0x3E200000, 0))
    values = [exact.decode("f16", x).x * exact.decode("f16", y).x for x, y in zip(a, b, strict=True)]
    exponents = [exact.decode("f16", x).e + exact.decode("f16", y).e for x, y in zip(a, b, strict=True)]
    addend = exact.decode("f32", c)
    e = max([*exponents, *([addend.e] if addend.s else [])])
    total = sum((exact.cut(x * exact.two(-e), f, of_products) for x in values), Fraction(0))
    total = (total + exact.cut(addend.x * exact.two(-e), f, of_c)) * exact.two(e)
    assert both(ins, a, b, c) == exact.encode("f32", total, "nearest_even")


def test_equal_roundings_are_one() -> None:
    text = "align: {{of: [products, c], fraction_bits: 3, rounding: {}}}"
    one, each = (
        unit("multiply: {to: products}", text.format(word), "sum: {of: [products, c], to: total}", ROUND)
        for word in ("up", "{products: up, c: up}")
    )
    assert one.program == each.program


@pytest.mark.parametrize(
    ("rounding", "message"),
    [
        ("{products: up}", "key 'c' is missing"),
        ("{products: up, c: upp}", "key 'c' is 'upp', expected one of toward_zero, .*; nearest: up"),
        ("{products: up, c: up, dot: up}", "unknown key 'dot', expected one of products, c"),
        ("upward", "is 'upward', expected one of toward_zero, .* or a mapping; nearest: up"),
    ],
)
def test_a_wrong_rounding_is_refused(rounding: str, message: str) -> None:
    align = f"{{align: {{of: [products, c], fraction_bits: 3, rounding: {rounding}}}}}"
    assert re.search(message, refused(f"steps: [{{multiply: {{to: products}}}}, {align}]\n"))


# Alignments that underflow ----------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_at_an_exponent_or_below_all_terms_are_zero(seed: int) -> None:
    rng = random.Random(seed)
    least = rng.randint(-12, 2)
    ins = unit(
        "multiply: {to: products}",
        "align: {of: products, group: {contiguous: 1}, fraction_bits: 20, rounding: toward_zero, "
        f"underflow_exponent: {least}}}",
        "sum: {of: [products, c], to: total}",
        ROUND,
        k=2,
    )
    a, b = ([rng.choice((0, 1, 0x3C00, 0x2C00, 0xB455, 0x1234)) for _ in range(2)] for _ in "ab")
    total = Fraction(0)
    for x, y in zip(a, b, strict=True):
        p, q = exact.decode("f16", x), exact.decode("f16", y)
        total += p.x * q.x if p.e + q.e > least else 0
    assert both(ins, a, b, 0) == exact.encode("f32", total, "nearest_even")


# Exceptions -------------------------------------------------------------------------------------------------


EXCEPTIONS = [(-1, -(1 << 27), 23), (1, 0, 20), (3, -5, 10), (-8, 1, 24), (1 << 20, 7, 23)]


@pytest.mark.parametrize("value, by, places", EXCEPTIONS)
@pytest.mark.parametrize("order", ["", "align: {of: c, fraction_bits: 30, rounding: toward_zero}"])
def test_one_value_becomes_another(value: int, by: int, places: int, order: str) -> None:
    """c of the exponent e, in units of 2^(e - places) below that of a product."""
    steps = (
        "multiply: {to: products}",
        *([order] if order else []),
        "align: {of: [products, c], fraction_bits: 28, rounding: toward_zero}",
        "sum: {of: [products, c], to: total}",
        f"replace: {{of: total, places: {places}, value: {value}, by: {by}}}",
        "round: {of: total, rounding: nearest_even, overflow: ieee, zero: positive}",
    )
    ins = unit(*steps, k=1, a="bf16", b="bf16")
    for near in (value - 1, value, value + 1, -value, 2 * value):
        # The product is 1, so the exponent is 0 and the sum 1 + c.
        c = exact.encode("f32", Fraction(near) * exact.two(-places) - 1, "nearest_even")
        total = 1 + exact.decode("f32", c).x
        unit_ = exact.two(-places)
        want = by * unit_ if total == value * unit_ else total
        assert both(ins, [0x3F80], [0x3F80], c) == exact.encode("f32", want, "nearest_even"), near


# Scales of one side -----------------------------------------------------------------------------------------

SCALED = """
unit: scaled
shape: {k: 32}
scale_block: 32
formats: {a: e4m3, b: e4m3, c: f32, d: f32, scale_a: ue8m0, scale_b: ue8m0}
steps:
- multiply: {to: products}
- sum: {of: products, to: dot}
- scale: {of: dot, by: FIRST}
ROUND
- scale: {of: partial, by: SECOND}
- round: {of: partial, rounding: nearest_even, overflow: ieee, zero: signed}
"""
BETWEEN = "- round: {of: dot, to: partial, format: f32, rounding: nearest_even, overflow: ieee, zero: signed}"


def scaled(first: str, second: str) -> Instruction:
    return load(SCALED.replace("FIRST", first).replace("SECOND", second).replace("ROUND", BETWEEN))


def of_both_models(ins: Instruction, a: list[int], b: list[int], scale_a: int, scale_b: int) -> int:
    operands = {"a": a, "b": b, "c": 0, "scale_a": [scale_a], "scale_b": [scale_b]}
    codes = {name: np.array(value, ins.formats[name].dtype) for name, value in operands.items()}
    core = int(ins.dot(**codes))
    assert ins.reference_dot(**codes) == core
    return core


def test_the_first_scale_overflows_though_both_together_would_not() -> None:
    """32 * 32 * 2^127 is an infinity, which 2^-127 leaves as it is; the other way round it is 1024."""
    values = [0x60, *[0] * 31]
    assert of_both_models(scaled("a", "b"), values, values, 0xFE, 0x00) == 0x7F800000
    assert of_both_models(scaled("b", "a"), values, values, 0xFE, 0x00) == 0x44800000


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_each_scale_is_rounded_alone(seed: int) -> None:
    rng = random.Random(seed)
    a, b = ([rng.choice((0, rng.randrange(0x7F))) for _ in range(32)] for _ in "ab")
    scales = [rng.choice((0, 1, 8, 100, 127, 200, 254)) for _ in "ab"]
    first, second = rng.sample("ab", 2)
    by = {name: exact.two(code - 127) for name, code in zip("ab", scales, strict=True)}
    dot = sum(
        (exact.decode("e4m3", x).x * exact.decode("e4m3", y).x for x, y in zip(a, b, strict=True)), Fraction()
    )
    middle = exact.encode("f32", dot * by[first], "nearest_even", overflow="ieee")
    value = exact.decode("f32", middle)
    want = middle
    if value.what == "number":
        want = exact.encode("f32", value.x * by[second], "nearest_even", overflow="ieee")
    assert of_both_models(scaled(first, second), a, b, *scales) == want


def test_a_side_is_scaled_once() -> None:
    for first, second in (("a", "a"), ("both", "b")):
        with pytest.raises(SpecError, match="there is at most one for each"):
            scaled(first, second)
