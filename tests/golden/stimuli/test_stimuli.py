"""Every stimulus kind: legal operands for every instruction, reproducible, and really of the structure
that it names."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fnmatch import fnmatch
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_units import kernel_unit
from random_units import accepted

import golden
from golden import stimuli
from golden.number.formats import Format, Kind
from golden.program.program import Program
from golden.program.steps import Align
from golden.vectors import default_set

NAMES = ("a", "b", "c", "metadata", "scale_a", "scale_b")


def representatives() -> list[golden.Instruction]:
    """One instruction for every combination of formats, sparsity and block scale."""
    picked: dict[Any, golden.Instruction] = {}
    for arch in golden.architectures():
        for ins in golden.instructions(arch):
            key = (
                *(fmt.name for fmt in ins.formats.values()),
                ins.sparse,
                ins.ordered_metadata,
                ins.scale_block,
                ins.k,
            )
            picked.setdefault(key, ins)
    return list(picked.values())


ADDER = Path(__file__).parents[3] / "spec" / "examples" / "ieee_add.yaml"
HMMA = golden.instruction("hopper", "HMMA.16816.F32")
BF16 = golden.instruction("ampere", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")


def draw(kind: str, ins: golden.Instruction = HMMA, count: int = 400, seed: int = 5) -> dict[str, Any]:
    return stimuli.generate(ins, kind, count, np.random.default_rng(seed))


def values(ins: golden.Instruction, operands: dict[str, Any]) -> tuple[Any, Any, Any]:
    a, b, c = (golden.to_float(ins.formats[name], operands[name]) for name in "abc")
    return a, b, c


@pytest.mark.parametrize("kind", stimuli.KINDS)
def test_legal_for_every_instruction(kind: str) -> None:
    """Each kind of one instruction in forty, so that an instruction has one kind."""
    for ins in representatives()[stimuli.KINDS.index(kind) :: len(stimuli.KINDS)]:
        operands = stimuli.generate(ins, kind, 3, np.random.default_rng(0))
        ins.check_dot(*(operands.get(name) for name in NAMES))
        shapes = ins.operand_shapes(matrices=False)
        assert {name: codes.shape for name, codes in operands.items()} == {
            name: (3, *shape) for name, shape in shapes.items()
        }


@pytest.mark.parametrize("kind", stimuli.KINDS)
def test_reproducible_and_varied(kind: str) -> None:
    first, again, other = draw(kind), draw(kind), draw(kind, seed=6)
    assert all((first[name] == again[name]).all() for name in first)
    assert any((first[name] != other[name]).any() for name in first)
    assert draw(kind, count=0)["a"].shape == (0, 16)
    assert stimuli.describe(kind)


@pytest.mark.parametrize("kind", stimuli.KINDS)
def test_results_of_both_signs(kind: str) -> None:
    """What depends on the sign (cut down, spared, flushed with its sign) shows on the negative ones alone."""
    operands = draw(kind, count=1000)
    found = golden.to_float(HMMA.formats["d"], HMMA.dot(**operands))
    results = found[np.isfinite(found) & (found != 0)]
    assert len(results) == 0 or 0.3 < (results < 0).mean() < 0.7


def test_unknown_kind_and_count() -> None:
    with pytest.raises(golden.UnknownNameError, match=r"narow.*narrow"):
        draw("narow")
    with pytest.raises(golden.OperandError, match="count is -1"):
        draw("narrow", count=-1)


@pytest.mark.parametrize("name", golden.formats())
def test_encode_against_decode(name: str) -> None:
    """encode() gives the number that its arguments say, for every normal exponent of every format."""
    fmt = golden.get_format(name)
    low, high = stimuli.lowest_exponent(fmt), stimuli.highest_exponent(fmt)
    exponents = np.arange(low, high + 1)
    half = np.full(exponents.shape, np.uint64(1) << np.uint64(63))
    signs = exponents % 2
    for exponent, sign, code in zip(
        exponents, signs, stimuli.encode(fmt, signs, exponents, half), strict=True
    ):
        number = fmt.decode(int(code))
        wanted = Fraction(2) ** int(exponent)
        if fmt.fraction_bits or (not fmt.is_float and exponent):
            wanted *= Fraction(3, 2)
        assert abs(number.value) == min(wanted, fmt.decode(fmt.largest).value)
        assert number.sign == (sign if fmt.signed else 0)


def test_encode_subnormals() -> None:
    fmt = golden.get_format("f16")
    codes = stimuli.encode(fmt, np.zeros(12, np.int64), np.arange(-26, -14), np.zeros(12, np.uint64))
    assert codes.tolist() == [0, 0] + [1 << i for i in range(10)]


def test_negate() -> None:
    f16, fnuz, s8, u8 = (golden.get_format(name) for name in ("f16", "e4m3fnuz", "s8", "u8"))
    assert stimuli.negate(f16, np.array([0, 0xBC00], np.uint16)).tolist() == [0x8000, 0x3C00]
    assert stimuli.negate(fnuz, np.array([0, 0x38], np.uint8)).tolist() == [0, 0xB8], "0x80 would be a NaN"
    assert stimuli.negate(s8, np.array([1, 0x80], np.uint8)).tolist() == [0xFF, 0x80]
    assert stimuli.negate(u8, np.array([7], np.uint8)).tolist() == [7]


def test_corner_codes_hold_every_kind() -> None:
    fmt = golden.get_format("f16")
    codes = {int(code) for code in stimuli.corner_codes(fmt)}
    assert {0, 0x8000, 0x0001, 0x03FF, 0x0400, 0x3C00, 0x7BFF, 0x7C00, 0xFC00, 0x7C01, 0x7E00} <= codes
    assert {fmt.decode(code).kind for code in codes} == set(Kind)


def test_corner_codes_of_the_narrowest_scale() -> None:
    """One number and one NaN, of a unit's own: nothing lies below the one or above the other."""
    for specials, codes in (("all_ones_nan", {0, 1}), ("none", {0, 1})):
        fmt = Format("own", True, 8, exponent_bits=1, bias=0, specials=specials, signed=False, has_zero=False)
        assert set(stimuli.corner_codes(fmt).tolist()) == codes


def kinds_of(fmt: Format, codes: Any) -> set[Kind]:
    return {fmt.decode(int(code)).kind for code in np.ravel(codes)}


SPECIAL = (
    *("random_bits", "special_values", "special_each", "special_pairs", "counts", "corner_pairs"),
    "class_pairs",
)


@pytest.mark.parametrize("kind", [kind for kind in stimuli.KINDS if kind not in SPECIAL])
def test_only_the_special_kinds_hold_infinities_and_nans(kind: str) -> None:
    for ins in (HMMA, BF16):
        operands = draw(kind, ins, 60)
        for name in "abc":
            assert kinds_of(ins.formats[name], operands[name]) <= {Kind.ZERO, Kind.FINITE}


def test_special_values_hold_every_special_alone_and_together() -> None:
    operands = draw("special_values")
    for name in "abc":
        assert kinds_of(HMMA.formats[name], operands[name]) == set(Kind)
    results = golden.to_float("f32", HMMA.dot(**operands))
    assert np.isnan(results).any() and np.isinf(results).any() and np.isfinite(results).any()


def test_cancelling_cancels() -> None:
    a, b, c = values(HMMA, draw("cancelling"))
    products = a * b
    left = np.abs(products.sum(axis=1) + c) / np.maximum(np.abs(products).max(axis=1), np.abs(c))
    assert np.median(left) < 2.0**-8


@pytest.mark.parametrize("types", ["s8.s8", "u8.u8"])
def test_cancelling_integers(types: str) -> None:
    ins = golden.instruction("ampere", f"mma.sync.aligned.m16n8k32.row.col.s32.{types}.s32")
    a, b, c = values(ins, draw("cancelling", ins))
    assert ((a * b).sum(axis=1) + c == 0).mean() > 0.2


def test_subnormal_and_tiny() -> None:
    a, b, c = values(BF16, draw("subnormal", BF16))
    least = 2.0**-126
    for operand in (a, b, c):
        assert ((np.abs(operand) < least) & (operand != 0)).any()
    a, b, c = values(BF16, draw("tiny_zero_c", BF16))
    assert (c == 0).mean() > 0.5 and (np.signbit(c) & (c == 0)).any()
    largest = np.abs(a * b).max(axis=1)
    assert ((largest > 2.0**-150) & (largest < 2.0**-118)).mean() > 0.3


def test_near_overflow_crosses_the_edge() -> None:
    for name in (
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
    ):
        ins = golden.instruction("ampere", name)
        results = golden.to_float(ins.formats["d"], ins.dot(**draw("near_overflow", ins)))
        assert np.isinf(results).mean() > 0.02 and np.isfinite(results).mean() > 0.2


def test_tie_is_a_tie() -> None:
    """Most rows are exactly half way between two float32 numbers, some next to it."""
    operands = draw("tie")
    a, b, c = values(HMMA, operands)
    halves = close = 0
    for i in range(400):
        exact = Fraction(float(c[i])) + sum(
            Fraction(x) * Fraction(y) for x, y in zip(a[i].tolist(), b[i].tolist(), strict=True)
        )
        with np.errstate(over="ignore"):
            near = np.float32(float(exact))
            around = (near, *(np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf)))
        gaps = [abs(Fraction(float(x)) - exact) for x in around]
        halves += sorted(gaps)[0] == sorted(gaps)[1]
        close += 0 < sorted(gaps)[0] != sorted(gaps)[1]
    assert halves > 200 and close > 20


def test_zeros_have_both_signs() -> None:
    a, _, c = values(HMMA, draw("zeros"))
    for operand in (a, c):
        zero = operand == 0
        assert (
            zero.mean() > 0.5 and (np.signbit(operand) & zero).any() and (~np.signbit(operand) & zero).any()
        )


def test_equal_exponents_fill_the_sum_register() -> None:
    a, b, _ = values(HMMA, draw("equal_exponents"))
    products = np.abs(a * b)
    exponents = np.frexp(np.abs(a))[1] + np.frexp(np.abs(b))[1]
    assert (exponents == exponents[:, :1]).all()
    assert (products.sum(axis=1) / products.max(axis=1) > 15.9).mean() > 0.3


def test_alignment_edge_hits_the_last_kept_bits() -> None:
    """Some addends lie 1 to 3 bits above and below the last of Hopper's 25 fraction bits."""
    a, b, c = values(HMMA, draw("alignment_edge"))
    terms = np.concatenate([np.abs(a * b), np.abs(c)[:, None]], axis=1)
    with np.errstate(divide="ignore"):
        logs = np.floor(np.log2(terms))
    below = (logs.max(axis=1, keepdims=True) - logs)[np.isfinite(logs)]
    assert all((below == distance).any() for distance in (22, 23, 24, 25, 26, 27, 28))


def test_c_dominant_and_one_hot() -> None:
    a, b, c = values(HMMA, draw("c_dominant"))
    assert (np.abs(c) > np.abs(a * b).max(axis=1)).mean() > 0.85
    a, b, c = values(HMMA, draw("one_hot"))
    assert (((a * b) != 0).sum(axis=1) == 1).all() and set(np.argmax(a != 0, axis=1)) == set(range(16))


def test_sparse_b_holds_the_structure_at_selected_columns() -> None:
    ins = golden.instruction("ampere", "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    operands = draw("one_hot", ins)
    assert ins.pattern is not None
    picked = np.take_along_axis(operands["b"], ins.pattern.columns(operands["metadata"]), axis=1)
    assert np.isfinite(golden.to_float("f16", picked)).all()
    assert not np.isfinite(golden.to_float("f16", operands["b"])).all(), "unselected elements are random bits"
    assert len(np.unique(operands["metadata"])) == len(ins.pattern.legal(ins.ordered_metadata))


def test_scales_reach_the_ends_of_f32() -> None:
    name = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"
    ins = golden.instruction("rtx_blackwell", name)
    over = golden.to_float("f32", ins.dot(**draw("near_overflow", ins)))
    tiny = golden.to_float("f32", ins.dot(**draw("tiny_zero_c", ins)))
    assert np.isinf(over).any() and ((np.abs(tiny) < 2.0**-126) & (tiny != 0)).any()


def exponents_of_terms(operands: dict[str, Any]) -> Any:
    """Exponents of c and the products of HMMA, largest first,
    before the carry of the significands; zeros: -1000."""
    a, b, c = values(HMMA, operands)
    terms = np.concatenate([np.frexp(a)[1] + np.frexp(b)[1] - 2, np.frexp(c)[1][:, None] - 1], axis=1)
    live = np.concatenate([a * b != 0, c[:, None] != 0], axis=1)
    return -np.sort(-np.where(live, terms, -1000), axis=1)


def test_alignment_one_term_is_two_terms_at_the_edge() -> None:
    """Hopper keeps 25 fraction bits: distances of F-1, F, F+1 and F+2, nothing else alive."""
    terms = exponents_of_terms(draw("alignment_one_term", count=2000))
    assert (terms[:, 2:] == -1000).all()
    assert set((terms[:, 0] - terms[:, 1]).tolist()) == {24, 25, 26, 27}


def test_half_ulp_is_half_an_ulp_and_a_bit() -> None:
    a, b, c = values(HMMA, draw("half_ulp", count=2000))
    ulp = 2.0 ** (np.frexp(c)[1] - 24)
    products = np.sort(np.abs(a * b), axis=1)[:, ::-1]
    assert (products[:, 0] == ulp / 2).all() and (products[:, 2:] == 0).all()
    ratio = products[:, 1] / ulp
    assert {0.0, 0.25, 0.125, 2.0**-3, 2.0**-4} <= set(ratio.tolist())
    odd = golden.from_float("f32", c) & 1
    assert 0.3 < odd.mean() < 0.7, "ties to even need both"


def odd_part(value: Fraction) -> int:
    """Of a multiple of a power of two, what is left without twos."""
    size = abs(value.numerator)
    return size // (size & -size)


def test_beside_tie_is_a_tie_and_one_bit_or_two() -> None:
    """In exact rationals: without its least term a total lies halfway between two results. c is that term,
    the half, what leads, or zero; products are ties alone, and with another term."""
    ins = golden.instruction("volta", "HMMA.884.F16.F16")
    a, b, c = values(ins, draw("beside_tie", ins, 2000))
    ties, digits = Counter[tuple[int, bool]](), Counter[tuple[bool, int]]()
    for row in range(2000):
        terms = [Fraction(x) * Fraction(y) for x, y in zip(a[row].tolist(), b[row].tolist(), strict=True)]
        least, *others = sorted(filter(None, [*terms, Fraction(c[row])]), key=abs)
        total = abs(sum(others))
        exponent = max(math.frexp(float(total))[1] - 1, -14) if total else 0
        if (total / Fraction(2) ** (exponent - 11)) % 2 == 1:
            ties[len(others), least == Fraction(c[row])] += 1
            digits[least == Fraction(c[row]), odd_part(least)] += 1
    assert {odd for _, odd in digits} == {1, 3, 9}, "one bit, two next to each other, or 1.5 * 1.5"
    assert digits[False, 9] > 30, "the significands carry"
    assert all(digits[in_c, 3] > 15 for in_c in (False, True)), "more than half of a place, less than all"
    assert sum(ties.values()) > 1000
    assert all(ties[count, in_c] > 30 for count in (1, 2) for in_c in (False, True))


def test_the_parts_of_a_split_tie_are_half_of_a_place_of_c_together() -> None:
    """In exact rationals; by itself the greater part lacks bits that lie below one product's window."""
    ins = golden.instruction("rdna4", "v_dot2_f16_f16")
    a, b, c = values(ins, draw("split_tie", ins, 1000))
    depths = Counter[int]()
    for row in range(1000):
        less, most = sorted((abs(Fraction(x) * Fraction(y)) for x, y in zip(a[row], b[row], strict=True)))
        exponent = math.frexp(float(c[row]))[1] - 1
        assert less + most == Fraction(2) ** (exponent - 11), (a[row], b[row], c[row])
        depths[(exponent - 11) - (math.frexp(float(less))[1] - 1)] += 1
    assert sum(depths[depth] for depth in range(14, 21)) > 300


def test_cancel_last_bit_leaves_the_last_bits_of_one_significand() -> None:
    a, b, c = values(HMMA, draw("cancel_last_bit", count=1000))
    products = a * b
    left = [
        abs(sum(map(Fraction, row)) + Fraction(one))
        for row, one in zip(products.tolist(), c.tolist(), strict=True)
    ]
    largest = np.maximum(np.abs(products).max(axis=1), np.abs(c))
    ratio = np.array([float(x) for x in left]) / largest
    assert (ratio <= 2.0).all() and ((ratio > 0) & (ratio < 2.0**-20)).mean() > 0.1
    lengths = Counter(np.frexp(ratio[ratio > 0])[1].tolist())
    assert all(lengths[-places] >= 3 for places in range(24))


def cancelled(x: Any, y: Any) -> Counter[int]:
    """How often each number of leading digits cancels in x + y. If the larger is at most twice the smaller,
    the difference of two doubles is exact (Sterbenz); elsewhere no two digits cancel."""
    large, small = np.maximum(abs(x), abs(y)), np.minimum(abs(x), abs(y))
    near = (np.signbit(x) != np.signbit(y)) & (large <= 2 * small) & (large > small)
    left = large[near] - small[near]
    return Counter((np.frexp(large[near])[1] - np.frexp(left)[1]).tolist())


@pytest.fixture(scope="module")
def f32_sums() -> tuple[Any, Any]:
    """Both operands of the default vectors of an f32 adder."""
    drawn = default_set(golden.load_instruction(ADDER), 40_000, seed=5).operands
    a, c = (golden.to_float("f32", drawn[name].reshape(-1)).astype(np.float64) for name in "ac")
    return a, c


def test_two_terms_cancel_by_every_distance(f32_sums: tuple[Any, Any]) -> None:
    """A count of leading zeros has one case for each of them."""
    a, c = f32_sums
    pairs = (
        np.isfinite(a)
        & np.isfinite(c)
        & (np.signbit(a) != np.signbit(c))
        & (np.minimum(abs(a), abs(c)) >= 2.0**-126)
    )
    distances = cancelled(a[pairs], c[pairs])
    assert all(distances[places] >= 4 for places in range(1, 24))


@pytest.fixture(scope="module")
def f32_multiply_add(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Any]:
    """A product (exact: 48 bits of 53), its exponent before a carry, and c, of the default vectors of an f32
    multiply-add in which all three are normal."""
    text = (ADDER.parent / "fma_modes.yaml").read_text()
    text = text.replace("{a: f16, b: f16, c: f16, d: f16}", "{a: f32, b: f32, c: f32, d: f32}")
    file = tmp_path_factory.mktemp("multiply_add") / "fma.yaml"
    file.write_text(text.replace("0x7E00", "0x7FC00000"))
    ins = golden.load_instruction(file)
    drawn = default_set(ins, 60_000, seed=5).operands
    a, b, c = (golden.to_float("f32", drawn[name].reshape(-1)).astype(np.float64) for name in "abc")
    with np.errstate(all="ignore"):
        product = a * b
    normal = (np.abs([a, b, c, product]) >= 2.0**-126).all(axis=0) & np.isfinite([product, c]).all(axis=0)
    a, b = a[normal], b[normal]
    return product[normal], np.frexp(a)[1] + np.frexp(b)[1] - 1, c[normal]


def test_a_product_and_c_cancel_by_every_distance(f32_multiply_add: tuple[Any, Any, Any]) -> None:
    """The same of an f32 multiply-add, up to the last bit of the exact product."""
    product, _, c = f32_multiply_add
    distances = cancelled(product, c)
    assert all(distances[places] >= 3 for places in range(1, 47))


def test_c_decides_a_tie_of_the_product_from_every_distance(f32_multiply_add: tuple[Any, Any, Any]) -> None:
    """A shifter of c that loses its sticky bit at one distance shows in no other vector: a tie of the product
    that goes down to an even digit without c, and up with it, or the other way round."""
    product, _, c = f32_multiply_add
    digits, exponents = np.frexp(np.abs(product))
    whole = np.ldexp(digits, 25).astype(np.int64)  # 24 digits and the one below
    tie = (np.ldexp(digits, 25) == whole) & (whole & 1 == 1)
    changes = tie & ((whole >> 1 & 1 == 0) == ((product > 0) == (c > 0)))
    distances = Counter((exponents - np.frexp(c)[1])[changes].tolist())
    # 8 in the mean, of which a seed has any number at the last distance.
    found = [distances[places] for places in range(25, 73)]
    assert min(found) >= 1 and sum(found) >= 6 * len(found), found


def test_a_product_decides_next_to_a_power_of_two(f32_multiply_add: tuple[Any, Any, Any]) -> None:
    """c, a power of two, less a product of more than half a unit of the binade below it: the next number. By
    the exponent of the product, which may carry."""
    product, before, c = f32_multiply_add
    power, size = np.frexp(c)
    changes = (np.abs(power) == 0.5) & (product * c < 0)
    changes &= (np.abs(product) > np.ldexp(1.0, size - 26)) & (np.abs(product) < np.ldexp(1.0, size - 25))
    distances = Counter((size - before)[changes].tolist())
    assert all(distances[places] >= 20 for places in (25, 26))


def test_every_bit_past_half_a_unit_below_a_power_of_two_decides_an_addition(
    f32_sums: tuple[Any, Any],
) -> None:
    """A power of two less half a unit of the binade below it is a tie. A shifter that ends one place early
    loses one bit of the smaller operand, and makes a tie of what is none."""
    a, c = f32_sums
    finite = np.isfinite(a) & np.isfinite(c)
    large, small = (pick(np.abs(a[finite]), np.abs(c[finite])) for pick in (np.maximum, np.minimum))
    (power, size), (digits, exponent) = np.frexp(large), np.frexp(small)
    half = (power == 0.5) & (size - exponent == 25) & (np.signbit(a[finite]) != np.signbit(c[finite]))
    past = Counter((2 * digits[half] - 1).tolist())
    assert all(past[2.0**-place] >= 2 for place in range(1, 24))


def test_subnormal_products_and_results() -> None:
    a, b, _ = values(BF16, draw("subnormal_product", BF16))
    least = 2.0**-126
    products = np.abs(a * b)
    assert (((products < least) & (products > 0)).any(axis=1)).mean() > 0.8
    assert ((np.abs(a) < least) & (np.abs(b) < least) & (a != 0) & (b != 0)).any(), "two subnormals"
    for ins in (HMMA, BF16):
        d = np.abs(golden.to_float("f32", ins.dot(**draw("subnormal_result", ins))))
        assert ((d < least) & (d > 0)).mean() > 0.6


def test_special_each_visits_every_place_with_every_code() -> None:
    operands = draw("special_each", count=33 * 6)
    for name in "abc":
        codes = operands[name].reshape(33 * 6, -1)
        for column in codes.T:
            fmt = HMMA.formats[name]
            kinds = [fmt.decode(int(code)).kind for code in column]
            seen = {int(code) for code, kind in zip(column, kinds, strict=True) if kind is Kind.INFINITY}
            assert seen == {fmt.infinity, fmt.infinity | 1 << fmt.bits - 1}
            assert kinds.count(Kind.NAN) == 4, "of any fraction"
    alone = sum((~np.isfinite(x)).reshape(33 * 6, -1).sum(axis=1) for x in values(HMMA, operands))
    assert (alone == 1).all()


def test_special_pairs_meet_everywhere() -> None:
    """At every k: infinity times zero, and an infinite product against an infinite c; opposite infinities in
    more than a tenth. No row is of ordinary numbers alone."""
    operands = draw("special_pairs", count=480)
    a, b, c = values(HMMA, operands)
    assert not np.isfinite(golden.to_float("f32", HMMA.dot(**operands))).any()
    with np.errstate(invalid="ignore"):
        products = a * b
    invalid = np.isnan(products) & ~np.isnan(a) & ~np.isnan(b)
    assert invalid.any(axis=0).all() and np.isinf(products[np.isinf(c)]).any(axis=0).all()
    assert ((products == np.inf).any(axis=1) & (products == -np.inf).any(axis=1)).sum() >= 48


def test_a_part_of_an_integer_sum_is_beyond_what_the_total_needs(tmp_path: Path) -> None:
    """Of s8, only (-128)**2 twice exceeds s16: a unit that saturates pairs shows it if more follows."""
    path = tmp_path / "unit.yaml"
    path.write_text(
        "unit: u\nshape: {k: 4}\nformats: {a: s8, b: s8, c: s32, d: s32}\nsteps:\n"
        "  - multiply: {to: products}\n  - sum: {of: [products, c], to: total}\n"
        "  - round: {of: total, rounding: toward_zero, overflow: saturate, zero: positive}\n"
    )
    operands = default_set(golden.load_instruction(path), 40_000, seed=5).operands
    a, b = (operands[name].view(np.int8).astype(int) for name in "ab")
    pairs = (a * b).reshape(-1, 2, 2).sum(axis=2)
    for pair, other in ((0, 1), (1, 0)):
        assert ((pairs[:, pair] == 1 << 15) & (pairs[:, other] < 0)).sum() >= 20


def test_zero_partners_give_zeros_or_c() -> None:
    operands = draw("zero_partners", count=640)
    a, b, c = values(HMMA, operands)
    assert (a * b == 0).all()
    d = HMMA.dot(**operands)
    assert (golden.to_float("f32", d)[c != 0] == c[c != 0]).all() and set(d[c == 0].tolist()) <= {0, 1 << 31}
    for x in (a, b):
        zero = x == 0
        assert (np.signbit(x) & zero).any(axis=0).all() and (~np.signbit(x) & zero).any(axis=0).all()


def test_every_kind_draws_for_a_c_without_sign(tmp_path) -> None:
    path = tmp_path / "unit.yaml"
    path.write_text(
        "unit: u\nshape: {k: 4}\nformats: {a: s8, b: s8, c: u8, d: s32}\nsteps:\n"
        "  - multiply: {to: products}\n"
        "  - sum: {of: [products, c], to: total}\n"
        "  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}\n"
    )
    ins = golden.load_instruction(path)
    for kind in stimuli.KINDS:
        ins.dot(**stimuli.generate(ins, kind, 50, np.random.default_rng(1)))


@pytest.mark.parametrize("name", ["mxf8f6f4*m128n8k32*e4m3.e5m2", "mxf8f6f4*m128n8k32*e2m1.e2m1", "mxf4.*"])
def test_floors_of_block_scaled_units_show(name: str) -> None:
    """Products of a block have one scale: all lay at the lower end of what elements reach, and none below a
    floor. No vector showed a unit without a floor."""
    ins = next(i for i in golden.instructions("blackwell") if fnmatch(i.name, f"*{name}*"))
    operands = draw("floor_edge", ins, 2000)
    wanted = ins.dot(**operands)
    for change in (-1, 1, None):
        assert np.any(with_floor(ins, change).dot(**operands) != wanted), change


def with_floor(ins: golden.Instruction, change: int | None) -> golden.Instruction:
    """The instruction with floors that lie so much higher, or without."""

    def changed(step: Any) -> Any:
        if not isinstance(step, Align):
            return step
        assert step.floor is not None
        return replace(step, floor=None if change is None else step.floor + change)

    operations = [replace(o, steps=tuple(map(changed, o.steps))) for o in ins.program.operations]
    return replace(ins, program=Program(tuple(operations)))


def test_no_step_leaves_the_codes_of_a_narrow_format() -> None:
    """Unit 701 has b of 4 bits: the largest product next to the least result is made of its last code."""
    unit = accepted(kernel_unit, 701)[1]
    for seed in range(3):
        drawn = stimuli.generate(unit, "beside_least", 3000, np.random.default_rng([seed, 7]))
        assert int(drawn["b"].max()) == (1 << unit.formats["b"].bits) - 1
