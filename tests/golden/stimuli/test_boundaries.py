"""Each boundary that a step decides is met by at least 3 of 60,000 vectors; a check runs 200,000.

The totals and products are computed here from the codes, in integers; the model is not asked.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from long_run import long_after

import golden
from golden.cover.coverage import Coverage
from golden.model.instruction import Instruction
from golden.number.formats import get_format, to_float
from golden.paths import spec_folder
from golden.stimuli import BOUNDARY_WEIGHT, generate
from golden.vectors.vectorset import DEFAULT_WEIGHTS, VectorSet, default_set

COUNT, LEAST = 60_000, 3


def vectors(ins: Instruction) -> VectorSet:
    return default_set(ins, COUNT, seed=1)


def own(folder: Path, formats: str, k: int, steps: str) -> Instruction:
    file = folder / "unit.yaml"
    file.write_text(f"unit: own\nshape: {{k: {k}}}\nformats: {{{formats}}}\nsteps:\n{steps}")
    return golden.load_instruction(file)


def signed(codes: Any, bits: int) -> Any:
    values = codes.astype(np.int64)
    return values - ((values >> (bits - 1) & 1) << bits)


SATURATE = """  - multiply: {to: products}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: toward_zero, overflow: saturate, zero: positive}
"""


@pytest.mark.parametrize(
    ("formats", "bits", "edges"),
    [
        ("a: u8, b: u8, c: s32, d: s32", 32, (2**31 - 1, 2**31, 2**31 + 1, -(2**31))),
        ("a: u4, b: u4, c: s32, d: s32", 32, (2**31 - 1, 2**31, 2**31 + 1)),
        ("a: s8, b: s8, c: s32, d: s32", 32, (2**31 - 1, 2**31, -(2**31), -(2**31) - 1)),
        ("a: u8, b: u8, c: s16, d: s16", 16, (2**15 - 1, 2**15, -(2**15))),
        ("a: s8, b: s8, c: s16, d: s16", 16, (2**15 - 1, 2**15, -(2**15), -(2**15) - 1)),
    ],
)
def test_totals_on_both_sides_of_a_clamp(
    tmp_path: Path, formats: str, bits: int, edges: tuple[int, ...]
) -> None:
    ins = own(tmp_path, formats, 4, SATURATE)
    operands = vectors(ins).operands
    a, b = (
        signed(operands[name], ins.formats[name].bits) if ins.formats[name].signed else operands[name]
        for name in "ab"
    )
    total = (a.astype(np.int64) * b).sum(axis=1) + signed(operands["c"], bits)
    assert {edge: np.count_nonzero(total == edge) >= LEAST for edge in edges} == dict.fromkeys(edges, True)


MULTIPLY = """  - multiply: {to: products}
  - special_values: {of: products}
  - round: {of: products, rounding: nearest_even, overflow: ieee, zero: signed}
"""


@pytest.mark.parametrize("name", ["f16", "bf16", "f32"])
def test_a_lone_product_rounds_up_to_the_least_normal_and_has_each_sticky_bit(
    tmp_path: Path, name: str
) -> None:
    """A unit without c: every single bit below half of the last place, next to a half that ties to even."""
    fmt = get_format(name)
    operands = vectors(own(tmp_path, f"a: {name}, b: {name}, d: {name}", 1, MULTIPLY)).operands
    fields = {}
    for each in "ab":
        codes = operands[each][:, 0].astype(np.int64)
        exponent = codes >> fmt.fraction_bits & ((1 << fmt.exponent_bits) - 1)
        fraction = codes & ((1 << fmt.fraction_bits) - 1)
        fields[each] = np.where(exponent > 0, fraction | 1 << fmt.fraction_bits, fraction), exponent
    finite = np.logical_and.reduce([e < (1 << fmt.exponent_bits) - 1 for _, e in fields.values()])
    product = fields["a"][0] * fields["b"][0]
    exponent = sum(np.maximum(e, 1) - fmt.bias for _, e in fields.values())
    lead = np.frexp(product.astype(np.float64))[1] - 1 + exponent - 2 * fmt.fraction_bits
    # At 2**(min_exponent - 1) and above by less than a quarter of the least number: all ones, and rounded up.
    shift = 2 * fmt.fraction_bits - exponent + fmt.min_exponent
    below = finite & (product > 0) & (shift >= 1) & (shift < 62)
    least = np.int64(1) << np.where(below, shift, 1)
    half = least >> (fmt.fraction_bits + 1)
    assert np.count_nonzero(below & (product < least) & (product >= least - half)) >= LEAST
    # Just above half of the least subnormal number, by less than two significands behind the half's place.
    half = np.int64(1) << (2 * fmt.fraction_bits + 1)
    beyond = finite & (product > half) & (product - half < half >> (fmt.fraction_bits + 4))
    tiny = fmt.min_exponent - fmt.fraction_bits - 1 == lead
    assert np.count_nonzero(beyond & tiny) >= LEAST
    cut = lead - exponent + fmt.fraction_bits
    normal = finite & (product > 0) & (lead >= fmt.min_exponent) & (lead <= fmt.max_exponent) & (cut > 1)
    cut = np.where(normal, cut, 1)
    low = product & ((np.int64(1) << cut) - 1)
    tie = normal & (low >> (cut - 1) == 1) & (product >> cut & 1 == 0)
    rest = low - (np.int64(1) << (cut - 1))
    met = [int(np.count_nonzero(tie & (rest == 1 << place))) for place in range(fmt.fraction_bits - 1)]
    assert min(met) >= LEAST, met


def test_the_carry_of_a_rounding_ends_at_every_place(tmp_path: Path) -> None:
    """A lone f32 product: a unit whose increment stops short of one place is wrong there alone. Just below
    the least normal number all digits but one are ones, for every digit: each input of the AND is seen."""

    def places(powers: Any) -> Any:
        return np.log2(powers).astype(int)

    ins = own(
        tmp_path,
        "a: f32, b: f32, d: f32",
        1,
        "  - multiply: {to: products}\n  - special_values: {of: products}\n"
        "  - round: {of: products, rounding: nearest_even, overflow: ieee, zero: signed, flush: signed}\n",
    )
    drawn = default_set(ins, 200_000, seed=1).operands  # the rarest of these digits is met twice
    a, b = (drawn[name].ravel().astype(np.int64) for name in "ab")
    exponents = [codes >> 23 & 255 for codes in (a, b)]
    normal = np.logical_and(*((one > 0) & (one < 255) for one in exponents))
    product = (a & 0x7FFFFF | 1 << 23) * (b & 0x7FFFFF | 1 << 23)
    upper = product >> 47
    cut = 23 + upper
    kept, rest, half = product >> cut, product & (1 << cut) - 1, 1 << cut - 1
    up = normal & ((rest > half) | (rest == half) & (kept & 1 == 1))
    ends = np.bincount(places(kept + 1 & -(kept + 1))[up], minlength=25)
    assert ends[:23].min() >= LEAST and ends[24] >= LEAST, ends
    tiny = up & (sum(exponents) - 254 + upper == -127)
    zero = (1 << 24) - 1 - kept[tiny]
    digits = np.bincount(places(zero[(zero > 0) & (zero & zero - 1 == 0)]), minlength=23)
    assert digits[:23].min() >= 2, digits


def blackwell(name: str) -> Instruction:
    return golden.instruction("blackwell", name)


@pytest.mark.parametrize(
    ("name", "nan", "magnitude"),
    [
        (
            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X.m128n8k64.f32.e2m1.e2m1.ue4m3",
            0x7F,
            7,
        ),
        ("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.m128n8k32.f32.e4m3.e4m3.ue8m0", 0xFF, 127),
    ],
)
def test_a_nan_scale_over_data_that_are_all_zero(name: str, nan: int, magnitude: int) -> None:
    operands = vectors(blackwell(name)).operands
    scales = operands["scale_a"] & 0x7F if nan == 0x7F else operands["scale_a"]
    empty = ((operands["a"] & magnitude == 0) & (operands["b"] & magnitude == 0)).all(axis=1)
    assert np.count_nonzero(empty & (scales == nan).any(axis=1)) >= LEAST


def test_a_zero_scale_over_data_that_would_set_the_maximum() -> None:
    """NVFP4: the only block with data has a zero scale, and c lies more than an alignment below them."""
    ins = blackwell(
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X.m128n8k64.f32.e2m1.e2m1.ue4m3"
    )
    operands = vectors(ins).operands
    live = ((operands["a"] & 7 != 0) & (operands["b"] & 7 != 0)).reshape(COUNT, 4, -1).any(axis=2)
    zero = (operands["scale_a"] == 0) | (operands["scale_b"] == 0)
    exponent = (operands["c"] >> 23 & 0xFF).astype(np.int64) - 127
    lost = (live & zero).any(axis=1) & ~(live & ~zero).any(axis=1) & (exponent > -126) & (exponent < -40)
    assert np.count_nonzero(lost) >= LEAST


def test_dropped_bits_of_tf32_occur_with_every_class() -> None:
    """Of a sparse instruction: in the elements of b that it selects, too."""
    ins = golden.instruction("ampere", "mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
    assert ins.pattern is not None
    operands = dict(vectors(ins).operands)
    operands["b"] = np.take_along_axis(operands["b"], ins.pattern.columns(operands["metadata"]), axis=1)
    kept = {name: operands[name] & 0x7FFFE000 for name in "ab"}
    dropped = {name: operands[name] & 0x1FFF != 0 for name in "ab"}
    for one, other in ("ab", "ba"):
        infinite = (kept[one] == 0x7F800000) & dropped[one]
        assert np.count_nonzero(infinite.any(axis=1)) >= LEAST
        zero = (kept[one] == 0) & dropped[one] & (kept[other] == 0x7F800000)
        assert np.count_nonzero(zero.any(axis=1)) >= LEAST
    assert min(np.mean(dropped[name]) for name in "ab") > 0.3
    # Each factor is the only zero of a product, with a larger factor on its own side.
    for one, other in ("ab", "ba"):
        finite = np.where(kept[other] < 0x7F800000, kept[other], 0)
        live = (kept["a"] > 0) & (kept["b"] > 0)
        largest = np.where(live, finite, 0).max(axis=1, keepdims=True)
        close = (kept[one] == 0) & (finite > largest + (64 << 23)) & (largest > 0)
        assert np.count_nonzero(close.any(axis=1)) >= LEAST
    # Only c has each exponent that is one bit apart from the exponents of zeros and of infinities.
    alone = ((kept["a"] == 0) | (kept["b"] == 0)) & (kept["a"] < 0x7F800000) & (kept["b"] < 0x7F800000)
    fields = np.bincount(operands["c"][alone.all(axis=1)] >> 23 & 0xFF, minlength=256)
    assert min(fields[1 << bit] for bit in range(8)) >= LEAST
    assert min(fields[255 - (1 << bit)] for bit in range(8)) >= LEAST


MX = "rtx_blackwell:mma.sync.aligned.m16n8k"
MXFP8 = f"{MX}32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0"
MXFP4 = f"{MX}64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"


@pytest.mark.parametrize(("name", "places"), long_after(1, [(MXFP8, range(0, 22)), (MXFP4, range(-2, 11))]))
def test_scales_bring_a_block_sum_at_each_power_of_two_to_the_end_of_the_range(
    name: str, places: range
) -> None:
    """At 2**127, the last binade of f32, and at 2**128, the first number beyond. MXFP4's 2**10 is in the
    topmost binade of its sum: 28 of its 32 products are the largest."""
    ins = golden.instruction(*name.split(":", 1))
    operands = vectors(ins).operands
    with np.errstate(invalid="ignore"):  # NaNs
        elements = to_float(ins.formats["a"], operands["a"]) * to_float(ins.formats["b"], operands["b"])
        blocks = operands["scale_a"].shape[1]
        sums = np.abs(elements.reshape(COUNT, blocks, -1).sum(axis=2))
    exponents = sum(operands[scale].astype(np.int64) - 127 for scale in ("scale_a", "scale_b"))
    single = (sums > 0).sum(axis=1) == 1
    met = {}
    for place in places:
        for end in (127, 128):
            here = (sums == 2.0**place) & (exponents == end - place)
            met[place, end] = int(np.count_nonzero(single & here.any(axis=1)))
    assert min(met.values()) >= LEAST, met


PAIRED = {
    "f16, sixteen products": (
        "hopper:mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        ("invalid", "+inf", "-inf", "NaN"),
        ("c+inf", "c-inf", "cNaN"),
    ),
    "e5m2, scales": (
        f"{MX}32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e5m2.e5m2.f32.ue8m0",
        ("invalid", "+inf", "-inf", "NaN"),
        ("c+inf", "c-inf", "cNaN", "sNaN"),
    ),
    "one product, flags": (
        "spec/examples/ieee_fma_flags.yaml",
        ("invalid", "+inf", "-inf", "NaN"),
        ("c+inf", "c-inf", "cNaN"),
    ),
    "NaN alone, scales": (MXFP8, ("NaN",), ("c+inf", "c-inf", "cNaN", "sNaN")),
}


@pytest.mark.parametrize("case", PAIRED)
def test_every_two_causes_of_a_special_result_meet(case: str) -> None:
    """No third cause is there that would hide a fault of the two, such as c given for inf * 0 + c."""
    name, of_products, others = PAIRED[case]
    ins = golden.load_instruction(name) if name.endswith(".yaml") else golden.instruction(*name.split(":", 1))
    operands = vectors(ins).operands
    value = {one: to_float(ins.formats[one], operands[one]) for one in "abc"}
    a, b, c = value.values()
    infinite, zero = np.isinf(a) | np.isinf(b), (a == 0) | (b == 0)
    nan = np.isnan(a) | np.isnan(b)
    minus = np.signbit(a) ^ np.signbit(b)
    met = {
        "invalid": infinite & zero & ~nan,
        "+inf": infinite & ~zero & ~nan & ~minus,
        "-inf": infinite & ~zero & ~nan & minus,
        "NaN": nan,
    }
    by_product = met
    met = {cause: rows.any(axis=1) for cause, rows in met.items()}
    met |= {"c+inf": c == np.inf, "c-inf": c == -np.inf, "cNaN": np.isnan(c)}
    scales = [np.isnan(to_float(ins.formats[one], operands[one])) for one in operands if "scale" in one]
    met["sNaN"] = np.concatenate([np.zeros((COUNT, 1), bool), *scales], axis=1).any(axis=1)
    causes = np.sum(list(met.values()), axis=0)
    products = [(one, two) for at, one in enumerate(of_products) for two in of_products[:at]] * (ins.k > 1)
    firsts = (*of_products, *(("c+inf", "cNaN") if "sNaN" in others else ()))
    pairs = products + [(one, two) for one in firsts for two in others if one[0] != two[0]]
    counts = {pair: int(np.count_nonzero(met[pair[0]] & met[pair[1]] & (causes == 2))) for pair in pairs}
    assert min(counts.values()) >= LEAST, counts
    if ins.k != 16:
        return
    # The same cause in two neighbours, where a tree of flags that adds or compares them forgets it.
    for cause, rows in by_product.items():
        twice = (rows.sum(axis=1) == 2) & (causes == 1)
        neighbours = np.count_nonzero(rows[twice, 0::2] & rows[twice, 1::2], axis=0)
        assert neighbours.min() >= LEAST, (cause, neighbours)


FUSED = "  - fma: {to: d, rounding: down}\n"
NEAREST = """  - multiply: {to: products}
  - align: {of: [products, c], EXTRA}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: nearest_even, overflow: ieee, zero: positive}
"""


def exact_totals(ins: Instruction) -> list[Fraction]:
    """Sums of the products and c of the vectors whose operands are all finite, exactly."""
    operands = vectors(ins).operands
    a, b, c = (to_float(ins.formats[name], operands[name]) for name in "abc")
    finite = np.isfinite(a).all(axis=1) & np.isfinite(b).all(axis=1) & np.isfinite(c)
    scale = 2.0**48  # products of f16 are whole then, and below 2**53
    whole = zip((a[finite] * b[finite] * scale).tolist(), (c[finite] * scale).tolist(), strict=True)
    return [sum(map(int, products)) + Fraction(seed) for products, seed in whole]


def next_to_ties(totals: list[Fraction], kept: int) -> Counter[int]:
    """How often one bit decides a tie to even between numbers of `kept` fraction bits, by its distance below
    half of the last place."""
    met: Counter[int] = Counter()
    for total in totals:
        size = abs(total)
        if size.denominator > 1 or size == 0:
            continue
        whole = int(size)
        cut = whole.bit_length() - 1 - kept
        if cut < 2 or whole >> cut & 1 or not whole >> cut - 1 & 1:
            continue
        rest = whole & (1 << cut - 1) - 1
        if rest and not rest & rest - 1:
            met[cut - rest.bit_length()] += 1
    return met


FUSED = "  - fma: {to: d, rounding: nearest_even}\n"
SUMMED = """  - multiply: {to: products}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: nearest_even, overflow: ieee, zero: signed}
"""


ADDED = """  - align: {of: [a, c], fraction_bits: 25, rounding: toward_zero, cut: sticky_added}
  - sum: {of: [a, c], to: total}
  - round: {of: total, rounding: nearest_even, overflow: ieee, zero: signed}
"""


@pytest.mark.parametrize(
    ("factors", "result", "steps", "farthest"),
    [
        ("a: bf16, b: bf16", "bf16", FUSED, 252),
        ("a: f16, b: f16", "f16", FUSED, 28),
        ("a: e4m3, b: e4m3", "f32", SUMMED, 23),
        ("a: f32", "f32", ADDED, 23),
    ],
    ids=["bf16", "f16", "e4m3", "an adder"],
)
def test_a_rounding_of_all_bits_has_one_bit_at_every_distance_below_half(
    tmp_path: Path, factors: str, result: str, steps: str, farthest: int
) -> None:
    """A sticky bit that misses any one place, behind an even and an odd last digit of the result."""
    ins = own(tmp_path, f"{factors}, c: {result}, d: {result}", 1, steps)
    operands, fmt = default_set(ins, 200_000, seed=1).operands, ins.formats["d"]
    finite = np.ones(200_000, bool)
    one = [1 << 23] * 200_000, [281] * 200_000
    whole = {"a": one, "b": one, "c": one}
    for name, codes in operands.items():
        value = to_float(ins.formats[name], codes.ravel())
        finite &= np.isfinite(value)
        mantissa, exponent = np.frexp(np.where(np.isfinite(value), value, 0.0))
        whole[name] = (mantissa * 2.0**24).astype(np.int64).tolist(), (exponent + 280).tolist()
    met: Counter[tuple[int, int]] = Counter()
    least = (
        560 + 48 + fmt.min_exponent - fmt.fraction_bits
    )  # the weight of the least number in these integers
    for row in np.flatnonzero(finite).tolist():
        (a, of_a), (b, of_b), (c, of_c) = (
            (digits[row], exponent[row]) for digits, exponent in whole.values()
        )
        total = abs((a * b << of_a + of_b) + (c << of_c + 304))
        last = max(total.bit_length() - 1 - fmt.fraction_bits, least)
        rest = total & (1 << last - 1) - 1
        if total >> last - 1 & 1 and rest and not rest & rest - 1:
            met[last - rest.bit_length(), total >> last & 1] += 1
    counts = {(distance, odd): met[distance, odd] for distance in range(1, farthest + 1) for odd in (0, 1)}
    assert min(counts.values()) >= 20, {place: hits for place, hits in counts.items() if hits < 20}


STICKY = """  - multiply: {to: products}
  - align: {of: [products, c], fraction_bits: 26, rounding: toward_zero, cut: sticky_or}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: nearest_even, overflow: ieee, zero: positive}
"""


@pytest.mark.parametrize("k", [2, 4])
def test_a_sticky_bit_of_aligned_products_has_one_bit_at_every_distance(tmp_path: Path, k: int) -> None:
    """Half of the last place, an even digit above it, and one bit alone that the alignment cuts."""
    ins = own(tmp_path, "a: f16, b: f16, c: f32, d: f32", k, STICKY)
    operands = default_set(ins, 200_000, seed=1).operands
    a, b, c = (to_float(ins.formats[name], operands[name]) for name in "abc")
    finite = np.isfinite(a).all(axis=1) & np.isfinite(b).all(axis=1) & np.isfinite(c)
    terms = np.column_stack([a[finite] * b[finite], c[finite]])
    size = np.sort(np.abs(terms), axis=1)
    least, rest = size[:, :-1].min(axis=1, where=size[:, :-1] > 0, initial=np.inf), size[:, -1]
    single = np.isfinite(least) & (np.frexp(least)[0] == 0.5) & ((terms != 0).sum(axis=1) <= 3)
    others = np.abs(np.where(np.abs(terms) == least[:, None], 0.0, terms).sum(axis=1))
    units = others * 2.0 ** (24 - np.frexp(others)[1])  # the last place is 1
    tie = single & (units % 2 == 0.5) & (others >= 2.0**-126)
    below = np.frexp(rest)[1] - 26 - np.frexp(np.where(single, least, 1.0))[1]
    met = np.bincount(below[tie & (below > 0)], minlength=151)
    assert met[1:151].min() >= 20, {place: hits for place, hits in enumerate(met[:151]) if hits < 20}
    # A sticky bit of one product alone: each of its places, as far as products of f16 are apart. Nearer ones
    # are shown by terms of several bits, too, which are not counted here.
    for product in np.abs(terms.T[:k]):
        met = np.bincount(below[tie & (below > 0) & (product == least)], minlength=49)
        assert met[13:49].min() >= 20, {place: hits for place, hits in enumerate(met[:49]) if hits < 20}


def test_a_fixed_point_sum_has_single_bits_at_every_distance(tmp_path: Path) -> None:
    """A rounding that leaves out the last bits of a register whose point does not move."""
    steps = NEAREST.replace("EXTRA", "exponent: 0, fraction_bits: 48, rounding: down")
    met = next_to_ties(exact_totals(own(tmp_path, "a: f16, b: f16, c: f16, d: f32", 4, steps)), 23)
    assert sum(met[distance] for distance in range(40, 60)) >= LEAST, met
    assert sum(met[distance] for distance in range(30, 40)) >= LEAST, met


@pytest.mark.parametrize("k", [4, 16])
def test_a_sum_that_carries_far_has_one_bit_next_to_a_tie(tmp_path: Path, k: int) -> None:
    """The total leads log2(k) + 2 places above every product, as far as c lifts it: only then so many bits
    that the alignment keeps are below the last place of the result. Each of them is alone next to half."""
    steps = NEAREST.replace("EXTRA", "fraction_bits: 24, rounding: toward_zero")
    ins = own(tmp_path, "a: f16, b: f16, c: f32, d: f32", k, steps)
    operands = default_set(ins, 200_000, seed=1).operands
    a, b = (to_float(ins.formats[name], operands[name]) for name in "ab")
    exponents = [np.frexp(np.where(np.isfinite(one), one, 0.0))[1] - 1 for one in (a, b)]
    products = np.where(
        (a == 0) | (b == 0), -99, np.maximum(exponents[0], -14) + np.maximum(exponents[1], -14)
    )
    c = to_float(ins.formats["c"], operands["c"])
    with np.errstate(invalid="ignore"):
        total = np.abs((a * b).sum(axis=1) + c)  # exact where all bits lie within 53
    fit = np.isfinite(total) & (total > 0)
    emax = np.maximum(products.max(axis=1), np.frexp(np.where(np.isfinite(c), c, 0.0))[1] - 1)
    lead = np.frexp(np.where(fit, total, 1.0))[1] - 1
    cut = lead - emax + 1  # bits below the result's last place that a width of 24 keeps
    low = np.where(fit, total, 0.0) / 2.0 ** (emax - 24)
    here = fit & (cut == k.bit_length() + 2) & (low == np.floor(low)) & (low < 2.0**53)
    half = 1 << k.bit_length() + 1
    below = np.where(here, low, 0.0).astype(np.int64) & 2 * half - 1
    met = {place: np.count_nonzero(here & (below == half + (1 << place))) for place in range(k.bit_length())}
    assert min(met.values()) >= 20, met


def test_one_bit_alone_is_cut_at_every_place_below_c() -> None:
    """NVFP4: one product, which scales make a power of two, at each distance below what an alignment of 35
    fraction bits keeps next to c. The kind has a twelfth of the default vectors."""
    name = f"{MX}64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
    ins = golden.instruction(*name.split(":", 1))
    operands = generate(ins, "cut_bits", COUNT // 12, np.random.default_rng(1))
    value = {one: to_float(ins.formats[one], codes) for one, codes in operands.items()}
    products = value["a"] * value["b"] * np.repeat(value["scale_a"] * value["scale_b"], 16, axis=1)
    lone = (products != 0).sum(axis=1) == 1
    mantissa, exponent = np.frexp(products.sum(axis=1))
    place = np.frexp(value["c"])[1] - exponent - 35
    for sign in (0.5, -0.5):
        met = np.bincount(place[lone & (mantissa == sign) & (value["c"] != 0) & (place > 0)], minlength=25)
        assert met[1:25].min() >= LEAST


def test_half_a_place_and_a_bit_far_below_lie_in_two_blocks() -> None:
    """NVFP4: a sticky bit misses what lies more binades below half of c's last place than elements of one
    scale reach. The kind has a sixtieth of the default vectors."""
    name = f"{MX}64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
    ins = golden.instruction(*name.split(":", 1))
    met: Counter[int] = Counter()
    for seed in range(13):  # blocks of the stream
        operands = generate(ins, "beside_tie", 256, np.random.default_rng(seed))
        value = {one: to_float(ins.formats[one], codes) for one, codes in operands.items()}
        products = value["a"] * value["b"] * np.repeat(value["scale_a"] * value["scale_b"], 16, axis=1)
        sums = np.sort(np.abs(products.reshape(256, 4, 16).sum(axis=2)), axis=1)[:, -2:]
        (small, large), c = np.frexp(sums)[1].T, np.frexp(value["c"])[1]
        powers = (np.frexp(sums)[0] == 0.5).all(axis=1)
        met.update((large - small)[powers & (c - large == 24)].tolist())
    assert min(met[distance] for distance in range(1, 12)) >= LEAST


def test_totals_of_a_unit_that_flushes_have_terms_that_it_reads() -> None:
    """c of nearly every total is normal where subnormals become zeros. Of totals just below the least normal
    number a product may lead: the alignment is then that of the product."""
    ins = golden.instruction("rdna3", "v_dot2_f32_bf16")
    operands = generate(ins, "total_boundary", 50_000, np.random.default_rng(1))
    a, b, c = (to_float(ins.formats[name], operands[name]) for name in "abc")
    assert np.mean((c != 0) & (np.abs(c) < 2.0**-126)) < 0.01
    total = np.abs((a * b).sum(axis=1) + c)
    leads = np.max(np.abs(a * b), axis=1) >= 2.0**-127
    assert (
        np.count_nonzero(leads & (c != 0) & (total < 2.0**-126) & (total >= 2.0**-126 - 2.0**-150)) >= LEAST
    )


def test_a_part_of_a_significand_is_aimed_at_as_a_number_of_its_own() -> None:
    """A pass of a Tensix unit, which reads the low places of b: each bit that the second alignment cuts of a
    group, alone, though a power of two as b has none of these places."""
    coverage = Coverage(golden.instruction("tensix_wormhole", "mvmul.bf16.bf16.tf32.phase2"))
    coverage.sample_set(vectors(coverage.instruction))
    point = "tensix_mvmul_narrow: align groups and c: one bit cut from groups"
    met = {label: hits for one, label, reach, hits in coverage.bins() if one.name == point and reach}
    assert min(met[f"2^-{place}, {sign}"] for place in range(1, 14) for sign in "+-") >= LEAST, met
    assert not coverage.holes(), "two alignments in a row have no distances in the second"


def test_a_zero_check_reads_every_bit_of_c() -> None:
    """c has one bit, and no product is as large."""
    ins = golden.instruction("blackwell", "tcgen05.mma.cta_group::1.kind::f8f6f4.m64n8k32.f32.e3m2.e3m2")
    drawn = vectors(ins)
    c = drawn.operands["c"]
    alone = c[drawn.d == c].astype(np.int64)
    assert min(np.count_nonzero(alone == 1 << place) for place in range(31)) >= LEAST


def test_one_bit_alone_in_a_nan_in_a_subnormal_and_after_cancellation() -> None:
    """What a unit overlooks that does not look at every bit: a NaN next to finite numbers, a subnormal factor
    of the largest numbers and of infinity, and a sum that is one bit below its terms."""
    ins = golden.instruction("rdna3", "v_dot2_f32_bf16")
    drawn = vectors(ins).operands
    formats = {name: get_format("f32" if name == "c" else "bf16") for name in "abc"}
    values = {name: to_float(fmt, drawn[name]) for name, fmt in formats.items()}
    finite = {name: np.isfinite(column).reshape(COUNT, -1).all(axis=1) for name, column in values.items()}
    for name, others in (("a", "bc"), ("b", "ac"), ("c", "ab")):
        fmt = formats[name]
        codes = drawn[name].reshape(COUNT, -1).astype(np.int64)
        fraction = codes & (1 << fmt.fraction_bits) - 1
        nan = np.isnan(values[name]).reshape(fraction.shape)
        nan &= (finite[others[0]] & finite[others[1]])[:, None]
        met = [np.count_nonzero(nan & (fraction == 1 << place)) for place in range(fmt.fraction_bits)]
        assert min(met) >= LEAST, (name, met)
    for name, other in ("ab", "ba"):
        partner = np.abs(values[other])
        code = drawn[name].astype(np.int64) & 0x7FFF
        for large in (np.isinf(partner), (partner > 2.0**123) & np.isfinite(partner)):
            met = [np.count_nonzero(large & (code == 1 << place)) for place in range(7)]
            assert min(met) >= LEAST, (name, met)
    sound = finite["a"] & finite["b"] & finite["c"]
    with np.errstate(invalid="ignore"):
        products, c = values["a"] * values["b"], values["c"]
        terms = np.abs(np.column_stack([products, c]))
        total, top = np.abs(products.sum(axis=1) + c), np.max(terms, axis=1)
    mantissa, exponent = np.frexp(total)
    one_bit = sound & (mantissa == 0.5) & (total > 2.0**-126)
    depth = np.frexp(top)[1] - exponent
    met = [np.count_nonzero(one_bit & (depth == places)) for places in range(2, 22)]
    assert min(met) >= LEAST, met


def class_pairs_of_a_default_run(ins: Instruction) -> dict[str, Any]:
    """As many as 200,000 default vectors have."""
    share = BOUNDARY_WEIGHT / sum(DEFAULT_WEIGHTS.values())
    return generate(ins, "class_pairs", int(200_000 * share), np.random.default_rng(1))


def test_every_class_of_a_factor_meets_those_of_the_other_and_of_c(tmp_path: Path) -> None:
    """Infinity times a subnormal number less infinity was met by 2 of 200,000 default vectors; the rarest of
    the 216 combinations of a multiply-add by none. Other kinds add to these."""
    steps = "  - fma: {to: d, rounding: nearest_even, nan: 0x7FC00000}\n"
    ins = own(tmp_path, "a: f32, b: f32, c: f32, d: f32", 1, steps)
    drawn = class_pairs_of_a_default_run(ins)
    classes = 0
    for name in "abc":
        code = drawn[name].ravel() & 0x7FFFFFFF
        edges = np.searchsorted([1, 0x800000, 0x7F800000, 0x7F800001, 0x7FC00000], code, "right")
        classes = classes * 6 + edges
    assert np.bincount(classes, minlength=216).min() >= 10


def test_each_bit_of_a_converter_below_half_of_the_least_number(tmp_path: Path) -> None:
    steps = "  - round: {of: a, to: d, rounding: nearest_even, overflow: ieee, zero: signed}\n"
    ins = own(tmp_path, "a: f32, d: f16", 1, steps)
    share = BOUNDARY_WEIGHT / sum(DEFAULT_WEIGHTS.values())
    drawn = generate(ins, "product_bits", int(200_000 * share), np.random.default_rng(1))
    half = 0x33000000
    met = [np.count_nonzero(drawn["a"] & 0x7FFFFFFF == half | 1 << place) for place in range(23)]
    assert min(met) >= LEAST, met


@pytest.mark.parametrize("nan", [True, False])
def test_both_factors_of_each_product_are_nans_and_infinities(nan: bool) -> None:
    """And nothing else is special: what XORs the flags of the factors in place of ORing them shows."""
    ins = golden.instruction("hopper", "HMMA.16816.F32")
    drawn = class_pairs_of_a_default_run(ins)
    bits = {name: drawn[name] & 0x7FFF for name in "ab"}
    special = {name: codes >= 0x7C00 for name, codes in bits.items()}
    right = {name: (codes > 0x7C00) if nan else (codes == 0x7C00) for name, codes in bits.items()}
    alone = (special["a"] | special["b"]).sum(1) == 1
    finite = (drawn["c"] & 0x7FFFFFFF) < 0x7F800000
    assert (right["a"] & right["b"])[alone & finite].sum(0).min() >= 20


def test_neighbours_of_a_power_of_two_cancel() -> None:
    """An adder's least difference: half of the last place of the larger number, which is the power of two."""
    ins = golden.load_instruction(spec_folder() / "examples" / "ieee_add.yaml")
    drawn = generate(ins, "total_boundary", COUNT // 12, np.random.default_rng(1))
    a, c = (drawn[name].reshape(-1).astype(np.int64) for name in "ac")
    magnitude = {"a": a & 0x7FFFFFFF, "c": c & 0x7FFFFFFF}
    for upper, lower in ("ac", "ca"):
        power = (magnitude[upper] & 0x7FFFFF == 0) & (magnitude[upper] == magnitude[lower] + 1)
        for sign in (0, 1):
            here = power & ((a ^ c) >> 31 == 1) & ((a if upper == "a" else c) >> 31 == sign)
            assert np.count_nonzero(here) >= LEAST, (upper, sign)


def test_a_nan_as_a_scale_meets_a_zero_as_the_other_in_each_block() -> None:
    """A unit that looks for NaNs behind a zero scale finds none there, and is right everywhere else."""
    name = (
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
    )
    drawn = class_pairs_of_a_default_run(golden.instruction("rtx_blackwell", name))
    a, b = (drawn[scale] & 0x7F for scale in ("scale_a", "scale_b"))
    alone = ((a == 0x7F) | (b == 0x7F)).sum(1) == 1
    for nan, zero in ((a, b), (b, a)):
        assert ((nan == 0x7F) & (zero == 0))[alone].sum(0).min() >= 20


def test_a_converter_to_integers_meets_ties_and_both_sides_of_each_clamp(tmp_path: Path) -> None:
    """A total of floats has places below the point of an integer result."""
    step = "  - round: {of: a, rounding: nearest_even, overflow: saturate, nan: 0, zero: positive}\n"
    values = to_float(get_format("f32"), vectors(own(tmp_path, "a: f32, d: s8", 1, step)).operands["a"])
    numbers = [127.5, 128.0, -128.0, -128.5, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5]
    numbers += [float(np.nextafter(np.float32(tie), np.float32(0.0))) for tie in (0.5, -128.5)]
    met = {number: int(np.count_nonzero(values == number)) for number in numbers}
    assert min(met.values()) >= LEAST, met
    below = values[np.abs(values) < 128]
    ties = below[np.abs(below) % 1 == 0.5]
    assert len(np.unique(ties)) > 60


def test_a_dot_product_of_floats_that_gives_an_integer_meets_ties(tmp_path: Path) -> None:
    """With an integer c, which takes none of what is below the point."""
    steps = (
        "  - multiply: {to: products}\n  - sum: {of: [products, c], to: total}\n"
        "  - round: {of: total, rounding: nearest_even, overflow: saturate, nan: 0, zero: positive}\n"
    )
    drawn = vectors(own(tmp_path, "a: f16, b: f16, c: s16, d: s16", 2, steps)).operands
    a, b = (to_float(get_format("f16"), drawn[name]) for name in "ab")
    with np.errstate(invalid="ignore"):  # NaNs
        total = (a * b).sum(axis=1) + signed(drawn["c"], 16)
    ties = (2.0**15 - 0.5, -(2.0**15) - 0.5, 0.5, -2.5)
    met = {number: int(np.count_nonzero(total == number)) for number in ties}
    assert min(met.values()) >= 4 * LEAST, met


def test_c_cancels_a_product_at_every_exponent_down_to_the_least(tmp_path: Path) -> None:
    """The sign of an exact zero where c is subnormal, or anywhere."""
    drawn = vectors(own(tmp_path, "a: f16, b: f16, c: f16, d: f16", 1, FUSED)).operands
    with np.errstate(invalid="ignore"):
        a, b, c = (to_float(get_format("f16"), drawn[name]).reshape(-1) for name in "abc")
        zero = (a * b + c == 0) & (c != 0)
    exponents = np.frexp(c[zero])[1] - 1
    met = {place: int(np.count_nonzero(exponents == place)) for place in range(-24, 16)}
    assert min(met[place] for place in range(-24, -14)) >= LEAST, met
    assert sum(number > 0 for number in met.values()) > 36, met


def test_a_sum_of_scaled_blocks_that_carries_far_has_the_last_bit_next_to_a_tie(tmp_path: Path) -> None:
    """Two blocks of the largest elements under the largest scales: only then half of the result's last place
    lies so far above the last bit that the alignment keeps."""
    file, width = tmp_path / "unit.yaml", 25
    file.write_text(
        "unit: own\nshape: {k: 32}\nscale_block: 16\n"
        "formats: {a: e2m1, b: e2m1, c: f32, d: f32, scale_a: ue4m3, scale_b: ue4m3}\nsteps:\n"
        "  - multiply: {to: products}\n"
        "  - sum: {of: products, to: groups, group: {contiguous: 16}, exponent: 0}\n  - scale: {of: groups}\n"
        f"  - align: {{of: [groups, c], fraction_bits: {width}, rounding: toward_zero}}\n"
        "  - sum: {of: [groups, c], to: total}\n"
        "  - round: {of: total, rounding: nearest_even, overflow: ieee, zero: positive}\n"
    )
    ins = golden.load_instruction(file)
    drawn = vectors(ins).operands
    value = {name: to_float(ins.formats[name], codes) for name, codes in drawn.items()}
    finite = np.isfinite(value["c"]) & np.isfinite(value["scale_a"] * value["scale_b"]).all(axis=1)
    sums = (value["a"] * value["b"]).reshape(COUNT, 2, 16).sum(axis=2)
    exponents = sum(np.maximum(np.frexp(value[name])[1] - 1, -6) for name in ("scale_a", "scale_b"))
    terms = np.column_stack([sums * value["scale_a"] * value["scale_b"], value["c"]])[finite]
    exponents = np.column_stack([exponents, np.frexp(value["c"])[1] - 1])[finite]
    largest = np.where(terms != 0, exponents, -1000).max(axis=1)
    total = np.abs(np.trunc(np.ldexp(terms, (width - largest)[:, None])).sum(axis=1)).astype(np.int64)
    cut = np.maximum(np.frexp(total.astype(np.float64))[1] - 24, 1)
    close = (total & (1 << cut) - 1 == (1 << cut - 1) + 1) & (total >> cut & 1 == 0)
    met = Counter(cut[close].tolist())
    assert met[13] >= LEAST, met  # a sum of 37 bits: 11 more than an alignment of 25 places keeps of one term


def test_c_brings_back_a_product_beyond_the_range(tmp_path: Path) -> None:
    """A fused multiply-add that gives infinity for the product is right where the sum overflows, too."""
    fused = FUSED.replace("down", "nearest_even")
    drawn = vectors(own(tmp_path, "a: bf16, b: bf16, c: f32, d: f32", 2, fused)).operands
    a, b = (to_float(get_format("bf16"), drawn[name]) for name in "ab")
    with np.errstate(invalid="ignore", over="ignore"):
        product, c = a * b, to_float(get_format("f32"), drawn["c"])
        alone = (np.count_nonzero(product, axis=1) == 1) & np.isfinite(product).all(axis=1)
        beyond = alone & (np.abs(product).max(axis=1) >= 2.0**128)
        back = beyond & (np.abs(product.sum(axis=1) + c) < 2.0**128)
    assert np.count_nonzero(back) >= 20


def of_scaled_sums(tmp_path: Path) -> Instruction:
    """Two blocks of four exact products, without a floor."""
    file = tmp_path / "unit.yaml"
    file.write_text(
        "unit: own\nshape: {k: 8}\nscale_block: 4\n"
        "formats: {a: e4m3, b: e4m3, c: f32, d: f32, scale_a: ue8m0, scale_b: ue8m0}\nsteps:\n"
        "  - multiply: {to: products}\n"
        "  - sum: {of: products, to: groups, group: {contiguous: 4}, exponent: 0}\n  - scale: {of: groups}\n"
        "  - align: {of: [groups, c], fraction_bits: 30, rounding: toward_zero}\n"
        "  - sum: {of: [groups, c], to: total}\n"
        "  - round: {of: total, rounding: nearest_even, overflow: ieee, zero: positive}\n"
    )
    return golden.load_instruction(file)


def test_half_of_the_least_number_meets_a_bit_as_far_below_as_a_block_has(tmp_path: Path) -> None:
    """Of a sum of scaled elements without a floor: a shift to a subnormal result loses its sticky bit."""
    ins = of_scaled_sums(tmp_path)
    drawn = vectors(ins).operands
    a, b = (to_float(ins.formats[name], drawn[name]).reshape(COUNT, 2, 4) for name in "ab")
    scale = sum(drawn[name].astype(np.int64) - 127 for name in ("scale_a", "scale_b"))
    with np.errstate(invalid="ignore"):
        total = np.ldexp(np.abs((a * b).sum(axis=2)), scale + 150)  # in halves of the least number
        alone = (np.count_nonzero(a * b, axis=2) > 0).sum(axis=1) == 1
    rest = total[alone].sum(axis=1) - 1
    assert np.count_nonzero((rest > 0) & (rest < 2.0**-28)) >= LEAST


def test_c_lies_as_far_below_a_block_as_it_can(tmp_path: Path) -> None:
    """A shifter of c with eight bits of distance, where the scale is beyond the range and the sum is not."""
    ins = of_scaled_sums(tmp_path)
    drawn = vectors(ins).operands
    a, b = (to_float(ins.formats[name], drawn[name]).reshape(COUNT, 2, 4) for name in "ab")
    scale = sum(drawn[name].astype(np.int64) - 127 for name in ("scale_a", "scale_b"))
    c = to_float(ins.formats["c"], drawn["c"])
    with np.errstate(invalid="ignore", over="ignore"):
        total, live = np.ldexp((a * b).sum(axis=2), scale).sum(axis=1), (a * b != 0).any(axis=2)
        c_alone = np.isfinite(c) & (c != 0)
    distance = np.where(live, scale, -1000).max(axis=1) - np.maximum(np.frexp(c)[1] - 1, -126)
    assert np.count_nonzero((distance >= 256) & (np.abs(total) < 2.0**127) & c_alone) >= 6
