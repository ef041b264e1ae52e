"""Integer formats in a unit, from the description in docs/spec-schema.md alone:
what they round to, what they refuse.

Expected results are computed here in fractions of Python integers; both models have to give them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from golden import yamlfile
from golden.catalog import unit_files
from golden.errors import SpecError
from golden.model.instruction import Instruction
from golden.program.bounds import KEPT_BITS, MOST_BITS, MOST_SPAN

NUMBERS = "formats: {a: f16, b: f16, c: f32, d: %s}"
LIMITS = {"s32": (-(1 << 31), (1 << 31) - 1), "s8": (-128, 127), "u8": (0, 255), "s4": (-8, 7), "b1": (0, 1)}
ROUNDINGS: dict[str, Callable[[Fraction], int]] = {
    "toward_zero": math.trunc,
    "down": math.floor,
    "up": math.ceil,
    "nearest_even": round,
    "nearest_away": lambda x: int(math.copysign(math.floor(abs(x) + Fraction(1, 2)), x)) if x else 0,
}


def unit(steps: str, formats: str = NUMBERS % "s32", k: int = 2, define: str = "") -> Instruction:
    text = f"unit: own\nshape: {{k: {k}}}\n{define}{formats}\nsteps:\n" + "".join(
        f"  - {step}\n" for step in steps.split("; ")
    )
    return unit_files.build_instruction(yamlfile.parse(text))


def run(ins: Instruction, a: Any, b: Any, c: Any) -> int:
    """Both models on values of f16 operands and an f32 c (other formats: codes)."""
    kinds = {"f16": np.float16, "f32": np.float32}
    operands = []
    for name, values in (("a", a), ("b", b), ("c", c)):
        fmt = ins.formats[name]
        native = kinds.get(fmt.name)
        operands.append(np.array(values, native).view(fmt.dtype) if native else np.array(values, fmt.dtype))
    d = int(ins.dot(*operands))
    assert d == ins.reference_dot(*operands)
    return d


def value(fmt: str, code: int) -> int:
    low, high = LIMITS[fmt]
    return code if code <= high else code - (high - low + 1)


def clamped(fmt: str, number: int) -> int:
    low, high = LIMITS[fmt]
    return min(max(number, low), high)


TOTALS = [
    *(
        [(x,), (y,), c]
        for x in (0.5, 1.5, 2.5, -0.5, -1.5, 0.25)
        for y in (1.0, -1.0)
        for c in (0.0, 0.25, -3.5)
    ),
    *([(60000.0,), (60000.0,), c] for c in (0.0, 1e30, -1e30, -3.6e9, -1.4525e9)),
    *([(-60000.0,), (60000.0,), c] for c in (0.0, 1e30, 1.4525165e9)),
    *(
        [(0.0,), (0.0,), c]
        for c in (127.5, 127.49, 255.5, -128.5, -128.49, 7.5, -8.5, 2147483520.0, -2147483648.0, -0.0)
    ),
    *([(5.96e-8,), (-5.96e-8,), c] for c in (0.0, 1.0, -1.0, 0.5, 3.0e38)),
]


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("fmt", LIMITS)
def test_a_float_total_is_rounded_once_and_clamped(fmt: str, rounding: str) -> None:
    ins = unit(
        f"multiply: {{to: products}}; sum: {{of: [products, c], to: total}}; "
        f"round: {{of: total, rounding: {rounding}, overflow: saturate, zero: positive}}",
        NUMBERS % fmt,
        k=1,
    )
    for a, b, c in TOTALS:
        exact = Fraction(float(np.float16(a[0]))) * Fraction(float(np.float16(b[0]))) + Fraction(
            float(np.float32(c))
        )
        assert value(fmt, run(ins, a, b, c)) == clamped(fmt, ROUNDINGS[rounding](exact)), (a, b, c)


@pytest.mark.parametrize("order", ["sequential", "tree"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_integer_additions_round_and_clamp_every_time(rounding: str, order: str) -> None:
    """c + p0, then + p1 in sequence; c alone and p0 + p1 as a tree (three terms: one, and two)."""
    ins = unit(
        "multiply: {to: products}; "
        f"sum: {{of: [c, products], to: d, order: {order}, rounding: {rounding}, overflow: saturate}}",
        NUMBERS % "s8",
    )
    rng = np.random.default_rng(3)
    step = ROUNDINGS[rounding]
    for _ in range(200):
        a, c = (
            rng.choice([0.5, 1.0, 1.5, -2.25, 100.0, -90.0, 7.75], 2),
            rng.choice([0.0, -0.5, 127.0, -127.5, 3.25, 1e20]),
        )
        b = rng.choice([1.0, -1.0, 0.5], 2)
        p = [Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        first, second = (
            (Fraction(float(np.float32(c))) + p[0], p[1])
            if order == "sequential"
            else (p[0] + p[1], Fraction(float(np.float32(c))))
        )
        wanted = clamped("s8", step(clamped("s8", step(first)) + second))
        assert value("s8", run(ins, a, b, c)) == wanted, (a, b, c)


SPECIAL = (
    "multiply: {to: products}; %ssum: {of: [products, c], to: total}; "
    "round: {of: total, rounding: down, overflow: saturate, zero: signed%s}"
)
INFINITY = float("inf")


@pytest.mark.parametrize("looked", ["", "special_values: {of: [products, c]%s}; "])
@pytest.mark.parametrize("word", [None, 5])
@pytest.mark.parametrize("fmt", ["s8", "u8", "s32"])
def test_infinities_are_the_ends_of_the_range_and_nan_is_its_word(
    fmt: str, word: int | None, looked: str
) -> None:
    nan = f", nan: {word}" if word is not None else ""
    ins = unit(SPECIAL % (looked % nan if looked else "", nan), NUMBERS % fmt)
    low, high = LIMITS[fmt]
    assert value(fmt, run(ins, (INFINITY, 1), (1, 1), 0)) == high
    assert value(fmt, run(ins, (-INFINITY, 1), (1, 1), 1e30)) == low
    for a, b, c in (
        ((INFINITY, 1), (0, 1), 0),
        ((INFINITY, 1), (1, 1), -INFINITY),
        ((1, 1), (1, float("nan")), 0),
    ):
        assert value(fmt, run(ins, a, b, c)) == (high if word is None else word)


def test_integers_wrap_at_every_step() -> None:
    """s8 * s8 in s8, chained in s8 by a fused multiply-add, added to s32: all modulo 2**n."""
    ints = "formats: {a: s8, b: s8, c: s32, d: s32}"
    wrapped = unit(
        "multiply: {to: products, format: s8, rounding: up}; "
        "sum: {of: products, to: dot, order: tree, format: s8, rounding: up}; "
        "sum: {of: [dot, c], to: d, order: sequential, rounding: down}",
        ints,
    )
    fused = unit(
        "fma: {to: dot, format: s8, start: zero, rounding: up}; sum: {of: [dot, c], to: d, order: tree, "
        "rounding: up}",
        ints,
    )
    rng = np.random.default_rng(1)
    for _ in range(300):
        a, b, c = (
            rng.integers(-128, 128, 2),
            rng.integers(-128, 128, 2),
            int(rng.integers(-(1 << 31), 1 << 31)),
        )
        dot = int((a * b).sum()) & 255
        wanted = ((dot - 256 if dot > 127 else dot) + c) % (1 << 32)
        operands = [int(x) & 255 for x in a], [int(x) & 255 for x in b], c % (1 << 32)
        assert run(wrapped, *operands) == run(fused, *operands) == wanted


MEETING = "multiply: {to: products}; sum: {of: [products, c], to: total}; "


@pytest.mark.parametrize("overflow", ["infinity", "largest", "ieee"])
def test_integers_do_not_overflow_to_infinity(overflow: str) -> None:
    with pytest.raises(
        SpecError,
        match=r"^<text>:7: key 'overflow' is '\w+', but the step rounds to s32, an integer, expected wrap "
        r"or saturate",
    ):
        unit(MEETING + f"round: {{of: total, rounding: toward_zero, overflow: {overflow}, zero: positive}}")


@pytest.mark.parametrize("overflow", ["wrap", "saturate"])
def test_floats_neither_wrap_nor_clamp(overflow: str) -> None:
    with pytest.raises(
        SpecError, match="rounds to f32, a floating-point format, expected infinity or largest or ieee"
    ):
        unit(
            MEETING + f"round: {{of: total, rounding: toward_zero, overflow: {overflow}, zero: positive}}",
            NUMBERS % "f32",
        )


def test_a_parameter_that_says_so_is_refused_at_its_line() -> None:
    text = (
        f"unit: own\nshape: {{k: 2}}\n{NUMBERS % 's32'}\nprogram:\n  - exact_dot_add:\n      nan: 1\n    "
        "  overflow: largest\n"
    )
    with pytest.raises(
        SpecError, match=r"^<text>:7: key 'overflow' is 'largest', but the step rounds to s32"
    ):
        unit_files.build_instruction(yamlfile.parse(text))


@pytest.mark.parametrize(
    ("steps", "line", "message"),
    [
        (
            MEETING + "round: {of: total, rounding: up, overflow: wrap, zero: positive}",
            7,
            "overflow 'wrap' is for integer operands",
        ),
        (
            "multiply: {to: products}; sum: {of: [c, products], to: d, order: sequential, rounding: up}",
            6,
            "a sum to s32 without 'overf",
        ),
        (
            "multiply: {to: products}; sum: {of: [c, products], to: d, order: tree, rounding: up, overflow: "
            "ieee}",
            6,
            "a sum to s32 witho",
        ),
        ("fma: {to: d, rounding: nearest_even}", 5, "a 'fma' to s32 wraps, which is for integers"),
        (
            "multiply: {to: products, format: s32, rounding: up}; sum: {of: [products, c], to: total}",
            5,
            "a 'multiply' to s32 wraps",
        ),
        (
            "multiply: {to: products, operation: xor}; sum: {of: [products, c], to: total}",
            5,
            "combines the bits of unsigned integers",
        ),
        (
            MEETING
            + "round: {of: total, rounding: up, overflow: saturate, zero: positive, nan: 0x100000000}",
            7,
            "key 'nan' is 0x100000000",
        ),
    ],
)
def test_what_wraps_has_to_be_an_integer(steps: str, line: int, message: str) -> None:
    """The core keeps 100 bits of a sum, so the low bits that wrapping keeps could be wrong."""
    with pytest.raises(SpecError, match=f"^<text>:{line}: .*{message}"):
        unit(steps)


def test_the_word_of_a_nan_fits_the_format() -> None:
    with pytest.raises(SpecError, match="key 'nan' is 0xff, expected a code of s4, at most 0xf"):
        unit(SPECIAL % ("", ", nan: 0xFF"), NUMBERS % "s4")


# Formats without some codes ---------------------------------------------------------------------------------

TO_D = (
    "multiply: {to: products}; sum: {of: [products, c], to: total}; "
    "round: {of: total, rounding: nearest_even, overflow: %s, zero: signed}"
)


def test_without_infinity_and_nan_the_largest_numbers_stand_for_them() -> None:
    ins = unit(TO_D % "infinity", NUMBERS % "e2m1")
    assert run(ins, (INFINITY, 1), (1, 1), 0) == 0x7
    assert run(ins, (-INFINITY, 1), (1, 1), 0) == 0xF
    assert run(ins, (INFINITY, 1), (0, 1), 0) == 0x7


def test_without_zero_the_least_number_stands_for_all_below_it() -> None:
    own = (
        "{kind: float, storage: 16, exponent_bits: 5, fraction_bits: 10, bias: 15, specials: ieee, zero: "
        "false}"
    )
    ins = unit(TO_D % "ieee", NUMBERS % "n", define=f"define_formats: {{n: {own}}}\n")
    for tiny in (2.0**-15, 2.0**-16, 2.0**-17, 3 * 2.0**-17, 2.0**-60):
        assert (run(ins, (0, 0), (1, 1), tiny), run(ins, (0, 0), (1, 1), -tiny)) == (0x0000, 0x8000), tiny
    assert run(ins, (0, 0), (1, 1), 0.0) == 0x0000
    assert run(ins, (0, 0), (1, 1), 1.5 * 2.0**-15) == 0x0200


# What the core's registers do not hold ----------------------------------------------------------------------

FINITE = "multiply: {to: products}; special_values: {of: [products, c]}; "
END = (
    "sum: {of: [products, c], to: total}; round: {of: total, rounding: nearest_even, overflow: infinity, "
    "zero: positive}"
)


@pytest.mark.parametrize(
    ("steps", "formats", "message"),
    [
        (
            "align: {of: products, fraction_bits: 20, rounding: toward_zero, floor: 100000, shift_limit: "
            "10}; ",
            "f16",
            "sum can need 100142",
        ),
        (
            "align: {of: products, fraction_bits: 20, rounding: up, floor: 100000}; ",
            "f16",
            "the sum can need",
        ),
        (
            "align: {of: products, fraction_bits: 20, rounding: toward_zero, cut: sticky_added, "
            "floor: 100000}; ",
            "f16",
            "the sum can need",
        ),
        (
            "normalize: {of: products, fraction_bits: 20, rounding: up, min_exponent: 100000}; ",
            "f16",
            "the sum can need",
        ),
        (
            "sum: {of: products, to: products, exponent: -1000}; "
            "align: {of: products, fraction_bits: 20, rounding: toward_zero}; ",
            "s8",
            "needs numbers of 1036 bits, the core holds 126",
        ),
    ],
)
def test_terms_too_far_apart_for_the_core_are_refused(steps: str, formats: str, message: str) -> None:
    """Each once gave other bits than the reference: the core dropped the far term without a word."""
    with pytest.raises(SpecError, match=message):
        unit(FINITE + steps + END, f"formats: {{a: {formats}, b: {formats}, c: f32, d: f32}}")


def test_an_adder_does_not_read_a_sum_that_the_core_shortens() -> None:
    """2**127 + 2**-149 - 2**127 is 2**-149; of the exact sum the core keeps 100 bits, so it would give
    another number."""
    formats = "formats: {a: bf16, b: bf16, c: f32, d: f32}"
    with pytest.raises(
        SpecError, match="register 'dot' is an exact sum that can need more than the 100 bits"
    ):
        unit(
            "multiply: {to: products}; sum: {of: products, to: dot}; sum: {of: [dot, c], to: d, order: "
            "sequential, rounding: up}",
            formats,
        )


def test_the_page_says_what_the_core_keeps() -> None:
    page = (Path(__file__).parents[3] / "docs" / "spec-schema.md").read_text()
    page = " ".join(page.split())
    assert (
        f"The core keeps {MOST_BITS} bits of a number and {MOST_SPAN} of a sum." in page
        and f"more than {KEPT_BITS} bits." in page
    )
