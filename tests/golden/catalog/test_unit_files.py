"""The worked examples of spec/examples against independent truth:
exact rationals, or NumPy's own float32 arithmetic.

Nothing here uses golden's decoding or rounding: operands are decoded by NumPy views or by hand, results are
rounded by searching the two neighbouring float32 numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from long_run import long_after
from random_units import load
from typer.testing import CliRunner

import golden
from golden import stimuli
from golden.cli import app
from golden.program.signature import INPUTS
from golden.vectors import default_set

EXAMPLES = Path(__file__).parents[3] / "spec" / "examples"
Row = dict[str, Any]


def f16(code: int) -> float:
    return float(np.array(code, np.uint16).view(np.float16))


def f32(code: int) -> float:
    return float(np.array(code, np.uint32).view(np.float32))


def bf16(code: int) -> float:
    return f32(int(code) << 16)


def e4m3b11(code: int) -> float:
    sign, exponent, fraction = int(code) >> 7, int(code) >> 3 & 15, int(code) & 7
    magnitude = fraction / 8 * 2.0**-10 if exponent == 0 else (1 + fraction / 8) * 2.0 ** (exponent - 11)
    return -magnitude if sign else magnitude


def exponent_of(fraction_bits: int, least: int, value: float) -> int:
    """Unbiased exponent as hardware sees it: subnormals keep the least exponent."""
    return max(int(np.frexp(value)[1]) - 1, least)


def code32(value: Any) -> int:
    return int(np.float32(value).view(np.uint32))


def nearest32(exact: Fraction, ties: str = "even") -> int:
    """The float32 code nearest to a rational, by comparing exact distances to the neighbours."""
    largest = Fraction(float(np.finfo(np.float32).max))
    if abs(exact) >= largest + Fraction(2) ** 103:
        return 0x7F800000 if exact > 0 else 0xFF800000
    guess = np.float32(float(min(max(exact, -largest), largest)))
    with np.errstate(over="ignore"):
        below, above = (np.nextafter(guess, np.float32(end)) for end in (-np.inf, np.inf))
    around = {float(x) for x in (guess, below, above) if np.isfinite(x)}
    best = min(abs(Fraction(x) - exact) for x in around)
    tied = [x for x in around if abs(Fraction(x) - exact) == best]
    if len(tied) > 1:
        tied = [max(tied, key=abs)] if ties == "away" else [x for x in tied if code32(x) % 2 == 0]
    return code32(tied[0] if tied[0] else 0.0)


def check(name: str, expected: Callable[[Row], int | None], kinds: tuple[str, ...], count: int = 60) -> int:
    """Runs stimuli through the unit (fast core and reference) and compares; returns how many rows the
    oracle judged."""
    ins = golden.load_instruction(EXAMPLES / f"{name}.yaml")
    judged = 0
    for kind in kinds:
        operands = stimuli.generate(ins, kind, count, np.random.default_rng(11))
        results = ins.dot(**operands)
        for i in range(count):
            row = {key: codes[i] for key, codes in operands.items()}
            want = expected(row)
            if want is None:
                continue
            judged += 1
            shown = {key: np.asarray(codes).tolist() for key, codes in row.items()}
            assert int(results[i]) == want, (kind, shown, hex(int(results[i])), hex(want))
            assert ins.reference_dot(**row) == want
    return judged


FINITE = (
    "narrow",
    "wide",
    "cancelling",
    "subnormal",
    "near_overflow",
    "tie",
    "equal_exponents",
    "alignment_edge",
    "c_dominant",
    "one_hot",
)


def all_finite(*values: float) -> bool:
    return all(np.isfinite(v) for v in values)


def sticky_rne(row: Row) -> int | None:
    a, b, c = [f16(x) for x in row["a"]], [f16(x) for x in row["b"]], f32(row["c"])
    if not all_finite(*a, *b, c):
        return None
    terms = [
        (Fraction(x) * Fraction(y), exponent_of(10, -14, x) + exponent_of(10, -14, y))
        for x, y in zip(a, b, strict=True)
    ]
    terms.append((Fraction(c), exponent_of(23, -126, c)))
    live = [exponent for value, exponent in terms if value]
    if not live:
        return 0
    unit = Fraction(2) ** (max(live) - 26)
    total = Fraction(0)
    for value, _ in terms:
        kept = abs(value) // unit
        sticky = Fraction(1, 2) if abs(value) != kept * unit else 0
        total += (kept + sticky) * unit * (-1 if value < 0 else 1)
    return nearest32(total) if total else 0


def sticky_or(row: Row) -> int | None:
    """As sticky_rne, but one sticky bit for all terms, below the sum."""
    a, b, c = [f16(x) for x in row["a"]], [f16(x) for x in row["b"]], f32(row["c"])
    if not all_finite(*a, *b, c):
        return None
    terms = [
        (Fraction(x) * Fraction(y), exponent_of(10, -14, x) + exponent_of(10, -14, y))
        for x, y in zip(a, b, strict=True)
    ]
    terms.append((Fraction(c), exponent_of(23, -126, c)))
    live = [exponent for value, exponent in terms if value]
    if not live:
        return 0
    unit = Fraction(2) ** (max(live) - 26)
    total = sum((abs(value) // unit * unit * (-1 if value < 0 else 1) for value, _ in terms), Fraction(0))
    cut = any(abs(value) % unit for value, _ in terms)
    total += cut * unit / 2 * (-1 if total < 0 else 1)
    return nearest32(total) if total else 0


def exact_pair(row: Row) -> int | None:
    a, b, c = [bf16(x) for x in row["a"]], [bf16(x) for x in row["b"]], f32(row["c"])
    if not all_finite(*a, *b, c):
        return None
    total = Fraction(c) + sum(Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True))
    code = nearest32(total) if total else 0
    # A negative number that rounds to zero keeps its sign only if the unit says so (`zero: signed`); this
    # one is not.
    return 0 if code == 0x80000000 else code


def ieee_tree(row: Row) -> int | None:
    with np.errstate(all="ignore"):
        a, b = row["a"].view(np.float32), row["b"].view(np.float32)
        c = np.asarray(row["c"]).view(np.float32)[()]
        level = list(a * b)
        while len(level) > 1:
            level = [np.float32(x + y) for x, y in zip(level[::2], level[1::2], strict=True)]
        total = np.float32(level[0] + c)
    return None if np.isnan(total) else int(total.view(np.uint32))


def late_c(row: Row) -> int | None:
    a, b, c = [f16(x) for x in row["a"]], [f16(x) for x in row["b"]], f32(row["c"])
    if not all_finite(*a, *b, c):
        return None
    products = [Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)]
    live = [int(np.frexp(float(p))[1]) - 1 for p in products if p]  # products of two f16 are exact in float64
    dot = Fraction(0)
    if live:
        unit = Fraction(2) ** (max(live) - 24)
        dot = sum(((abs(p) // unit) * unit * (-1 if p < 0 else 1) for p in products), Fraction(0))
    with np.errstate(all="ignore"):
        return code32(np.float32(f32(nearest32(dot))) + np.float32(c))


def flushed(value: float) -> float:
    return value if abs(value) >= 2.0**-126 else float(np.copysign(0.0, value))


def nearest_bf16(exact: Fraction) -> int:
    """RNE to bf16 with flushed subnormals and saturation, from the integer lattice of the result's binade."""
    sign = 0x8000 if exact < 0 else 0
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= magnitude < Fraction(2) ** exponent
    if exponent < -126:
        # Just below the least normal number, the subnormal lattice decides whether the number rounds up out
        # of the range.
        return sign | (0x80 if round(magnitude / Fraction(2) ** -133) >= 128 else 0)
    significand = round(magnitude / Fraction(2) ** (exponent - 7))  # Fraction rounds half to even
    return sign | min((exponent + 127 << 7) + significand - 128, 0x7F7F)


def bf16_flush(row: Row) -> int | None:
    a, b = [flushed(bf16(x)) for x in row["a"]], [flushed(bf16(x)) for x in row["b"]]
    seed_code = int(row["c"])
    if not all_finite(*a, *b, bf16(seed_code)):
        return None
    for start in (0, 1):
        seed = flushed(bf16(seed_code))
        terms = [
            (
                Fraction(x) * Fraction(y),
                exponent_of(7, -126, x) + exponent_of(7, -126, y),
                np.signbit(x) ^ np.signbit(y),
            )
            for x, y in zip(a[start::2], b[start::2], strict=True)
        ]
        terms.append((Fraction(seed), exponent_of(7, -126, seed), np.signbit(seed)))
        live = [exponent for value, exponent, _ in terms if value]
        if not live:
            seed_code = 0x8000 if all(sign for _, _, sign in terms) else 0
            continue
        unit = Fraction(2) ** (max(live) - 16)
        total = sum(((abs(v) // unit) * unit * (-1 if v < 0 else 1) for v, _, _ in terms), Fraction(0))
        seed_code = nearest_bf16(total) if total else 0
    return seed_code


def block_scaled(row: Row) -> int | None:
    a, b, c = (
        [Fraction(e4m3b11(x)) for x in row["a"]],
        [Fraction(e4m3b11(x)) for x in row["b"]],
        f32(row["c"]),
    )
    if not np.isfinite(c) or 0xFF in (*row["scale_a"], *row["scale_b"]):
        return None
    exponents = [int(x) + int(y) - 254 for x, y in zip(row["scale_a"], row["scale_b"], strict=True)]
    sums = [
        sum((x * y for x, y in zip(a[g : g + 16], b[g : g + 16], strict=True)), Fraction(0)) for g in (0, 16)
    ]
    zero_group = [not any(x * y for x, y in zip(a[g : g + 16], b[g : g + 16], strict=True)) for g in (0, 16)]
    live = [e for e, zero in zip(exponents, zero_group, strict=True) if not zero] + (
        [exponent_of(23, -126, c)] if c else []
    )
    if not live:
        return 0
    top = max(live)
    terms = [(s * Fraction(2) ** e, 30) for s, e in zip(sums, exponents, strict=True)]
    if c and exponent_of(23, -126, c) >= top - 40:
        terms.append((Fraction(c), 24))
    floors = (
        math.floor(value * Fraction(2) ** (bits - top)) * Fraction(2) ** (top - bits) for value, bits in terms
    )
    total = sum(floors, Fraction(0))
    code = nearest32(total, "away") if total else 0
    return 0 if code == 0x80000000 else code


ORACLES: dict[str, tuple[Callable[[Row], int | None], tuple[str, ...]]] = {
    "sticky_rne": (sticky_rne, FINITE),
    "sticky_or": (sticky_or, FINITE),
    "exact_pair": (exact_pair, (*FINITE, "tiny_zero_c", "random_bits")),
    "ieee_tree": (ieee_tree, (*FINITE, "tiny_zero_c", "zeros", "random_bits")),
    "late_c": (late_c, FINITE),
    "bf16_flush": (bf16_flush, (*FINITE, "tiny_zero_c", "zeros")),
    "block_scaled": (block_scaled, FINITE),
}


def test_every_example_has_an_oracle() -> None:
    elsewhere = {"fma_modes", "ieee_add", "ieee_multiply"}  # test_modes.py, test_ieee_units.py
    elsewhere |= {"ieee_fma_flags"}  # model/test_flags.py
    elsewhere |= {"accumulator"}  # test_accumulator.py
    elsewhere |= {
        "rdna3_dot2",
        "rdna4_dot4",
        "amx_bf16",
        "fixed_point",
        "riscv_bulk_dot",
    }  # program/test_real_units.py
    elsewhere |= {"stochastic"}  # program/test_stochastic.py
    elsewhere |= {"q15_multiply"}  # program/test_fixed_point.py
    assert {path.stem for path in EXAMPLES.glob("*.yaml")} == set(ORACLES) | elsewhere


@pytest.mark.parametrize("name", long_after(2, ORACLES))
def test_example(name: str) -> None:
    oracle, kinds = ORACLES[name]
    assert check(name, oracle, kinds) > 40 * len(kinds)


@pytest.mark.parametrize(
    ("change", "to"),
    [
        ("nearest_even", "toward_zero"),
        ("cut: sticky_added", "cut: dropped"),
        ("fraction_bits: 26", "fraction_bits: 25"),
    ],
)
def test_oracle_sees_a_changed_unit(tmp_path: Path, change: str, to: str) -> None:
    text = (EXAMPLES / "sticky_rne.yaml").read_text()
    assert change in text
    path = tmp_path / "changed.yaml"
    path.write_text(text.replace(change, to))
    ins = golden.load_instruction(path)
    wrong = 0
    for kind in ("tie", "alignment_edge", "cancelling", "c_dominant", "narrow"):
        operands = stimuli.generate(ins, kind, 200, np.random.default_rng(3))
        results = ins.dot(**operands)
        wrong += sum(
            int(results[i]) != sticky_rne({k: v[i] for k, v in operands.items()}) for i in range(200)
        )
    assert wrong


def test_specials_of_the_examples() -> None:
    sticky = golden.load_instruction(EXAMPLES / "sticky_rne.yaml")
    assert int(sticky.dot([0x7C00, 0, 0, 0], [0, 0, 0, 0], 0)) == 0x7FC00000
    flush = golden.load_instruction(EXAMPLES / "bf16_flush.yaml")
    huge = np.full(8, 0x7F7F, np.uint16)
    assert int(flush.dot(huge, huge, np.uint16(0))) == 0x7F7F, "overflow gives the largest number"
    scaled = golden.load_instruction(EXAMPLES / "block_scaled.yaml")
    zeros, ones = np.zeros(32, np.uint8), np.full(2, 127, np.uint8)
    assert (
        int(scaled.dot(zeros, zeros, np.uint32(0), scale_a=np.array([127, 255], np.uint8), scale_b=ones))
        == 0x7FFFFFFF
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("fraction_bits: 26", "fractions: 26", "key 'fraction_bits' is missing"),
        ("round: {of: total,", "round: {", "key 'of' is missing"),
        (
            "round: {of: total, rounding: nearest_even, overflow",
            "round: {rounded: nearest_even, overflow",
            "keys 'of' and 'rounding' are missing; nearest: rounded",
        ),
        ("shape: {k: 4}", "shape: {k: four}", "key 'k' is 'four', expected an integer"),
        (
            "a: f16",
            "a: f61",
            "unknown format 'f61'; nearest: f64, f16, bf16; define_formats defines further ones",
        ),
        (
            "a: f16",
            "a: u16",
            "define it: `define_formats: {u16: {kind: integer, storage: 16, bits: 16, signed: false}}`",
        ),
        ("a: f16", "a: int24", "`define_formats: {int24: {kind: integer, storage: 32, bits: 24}}`"),
        ("rounding: nearest_even", "rounding: nearest", "expected one of toward_zero, nearest_even"),
        ("of: total", "of: totel", "key 'of' is 'totel', expected one of a, b, c"),
        ("unit: sticky_rne", "unit: sticky_rne\nunits: 3", "unknown key 'units'"),
    ],
)
def test_errors_name_file_line_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (EXAMPLES / "sticky_rne.yaml").read_text()
    assert old in text
    path = tmp_path / "sticky_rne.yaml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(golden.SpecError) as caught:
        golden.load_instruction(path)
    line = text[: text.index(old)].count("\n") + 1 + new.count("\n")
    assert str(caught.value).startswith(f"{path}:{line}: ") and message in str(caught.value)


@pytest.mark.parametrize(
    ("group", "shared"),
    [
        ("contiguous: 16", True),
        ("contiguous: 8", True),
        ("contiguous: 3", False),
        ("contiguous: 32", False),
        ("interleaved: 2", False),
    ],
)
def test_a_group_that_is_scaled_lies_in_one_block(group: str, shared: bool) -> None:
    """The scale of a number is that of every product in it."""
    text = (EXAMPLES / "block_scaled.yaml").read_text()
    text = text.replace("contiguous: 16", group)
    if shared:
        assert load(text).scale_block == 16
        return
    with pytest.raises(golden.SpecError, match="one scale, but its products have several"):
        load(text)


# Catalogued instructions as files ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("hopper:HMMA.16816.F32", 10),
        ("hopper:wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3", 11),
        ("hopper:mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", 8),
        ("ampere:HMMA.16816.F32", 8),
        ("blackwell:tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X.m128n8k64.f32.e2m1.e2m1.ue4m3", 13),  # noqa: E501
        ("cdna2:v_mfma_f32_32x32x8f16", 10),
        ("cdna3:v_mfma_f32_16x16x32_fp8_bf8", 14),
        ("rdna3:v_wmma_f32_16x16x16_f16_w32", 13),
        ("rdna4:v_wmma_bf16_16x16x16_bf16_w64", 13),
        ("sapphire_rapids:tdpbf16ps", 29),
        ("armv9:bfmopa.s", 24),
        ("riscv:vfwdota.vv.n8", 21),
    ],
)  # fmt: skip
def test_an_instruction_as_the_file_of_a_unit(name: str, most: int, tmp_path: Path) -> None:
    """`mmagold export yaml`: it loads, answers the same bits, and has no line that could go."""
    file = tmp_path / "my_unit.yaml"
    done = CliRunner().invoke(app.app, ["export", "yaml", name, "--out", str(file)])
    assert done.exit_code == 0, done.output
    text = file.read_text("utf-8")
    assert len(text.splitlines()) <= most, text
    ins, again = golden.instruction(name), golden.load_instruction(file)
    assert (again.formats, again.status) == (ins.formats, ins.status)
    vectors = default_set(ins, 400, 3)
    found = again.answers(again.check_operands([vectors.operands.get(one) for one in INPUTS], False))
    assert all(np.array_equal(found[one], codes) for one, codes in vectors.results.items())


def test_a_sparse_instruction_has_no_file(tmp_path: Path) -> None:
    done = CliRunner().invoke(app.app, ["export", "yaml", "hopper:HMMA.SP.16832.F32"])
    assert done.exit_code == 2 and "the schema has no sparse operands" in done.stderr
