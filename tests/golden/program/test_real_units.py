"""Units of other vendors that spec/examples writes, against models written here from their descriptions
alone, in exact rationals."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

import golden
from golden import yamlfile
from golden.catalog import unit_files
from golden.instruction import Instruction
from golden.number.formats import Format, Kind, Number, get_format
from golden.number.rounding import encode_fraction
from golden.paths import spec_folder

F32 = get_format("f32")


def example(name: str) -> Instruction:
    return golden.load_instruction(spec_folder() / "examples" / f"{name}.yaml")


def codes(rng: random.Random, fmt: Format, low: int, high: int) -> int:
    """A random code: any bits, or a number with an exponent from low to high."""
    if rng.random() < 0.15:
        return rng.randrange(1 << fmt.bits)
    if rng.random() < 0.1:
        return rng.choice((0, 1 << (fmt.bits - 1), 1, fmt.largest, (1 << (fmt.bits - 1)) | 1))
    exponent = min(max(rng.randint(low, high), fmt.min_exponent), fmt.max_exponent)
    fields = (exponent + fmt.bias) << fmt.fraction_bits | rng.randrange(1 << fmt.fraction_bits)
    return rng.randrange(2) << fmt.sign_shift | fields


def draw(ins: Instruction, rng: random.Random) -> dict[str, list[int] | int]:
    centre = rng.randint(-14, 14)
    spread = rng.choice((1, 4, 12, 28))
    c = codes(rng, ins.formats["c"], 2 * centre - spread, 2 * centre + spread)
    return {
        name: [codes(rng, ins.formats[name], centre - spread, centre + spread) for _ in range(ins.k)]
        for name in "ab"
    } | {"c": c}


def lead(x: Fraction) -> int:
    """floor(log2 |x|)."""
    x = abs(x)
    found = x.numerator.bit_length() - x.denominator.bit_length()
    return found if Fraction(2) ** found <= x else found - 1


def is_zero(x: Number) -> bool:
    return x.kind == Kind.ZERO


# RDNA3: facts of gfx11, V_DOT2_F32_F16 ----------------------------------------------------------------------


def amd_special(xs: list[Number], ys: list[Number], z: Number, c: int) -> int | None:
    """The answer where a NaN or an infinity is among the terms: by cause, in this order."""
    if any(n.kind == Kind.NAN for n in (*xs, *ys)):
        return 0xFFC00A3D
    infinite = [Kind.INFINITY in (x.kind, y.kind) for x, y in zip(xs, ys, strict=True)]
    if any(bad and (is_zero(x) or is_zero(y)) for bad, x, y in zip(infinite, xs, ys, strict=True)):
        return 0xFFC00000
    found = {x.sign ^ y.sign for bad, x, y in zip(infinite, xs, ys, strict=True) if bad}
    if len(found) == 2:
        return 0xFFC00000
    if z.kind == Kind.NAN:
        return c | 1 << 22
    if z.kind == Kind.INFINITY:
        found.add(z.sign)
    if found:
        return 0xFFC00000 if len(found) == 2 else 0x7F800000 | found.pop() << 31
    return None


def rdna3(a: list[int], b: list[int], c: int) -> int:
    f16 = get_format("f16")
    xs, ys, z = [f16.decode(x) for x in a], [f16.decode(y) for y in b], F32.decode(c)
    special = amd_special(xs, ys, z, c)
    if special is not None:
        return special
    signs = [x.sign ^ y.sign for x, y in zip(xs, ys, strict=True)]
    value = Fraction(0) if z.kind == Kind.ZERO or lead(z.value) < -126 else z.value
    products = [x.value * y.value for x, y in zip(xs, ys, strict=True)]
    if not value and not any(products):
        return 0
    grids = [x.exponent + y.exponent - 24 for x, y, p in zip(xs, ys, products, strict=True) if p]
    grids += [lead(n) - 26 for n in (value, *products) if n]
    unit = Fraction(2) ** max(grids)
    total = 0
    for sign, term in ((z.sign, value), *zip(signs, products, strict=True)):
        m = int(abs(term) / unit)
        total += m if sign == z.sign else -m - 1
    exact = total * unit * (-1) ** z.sign
    if not exact or rounded_tiny(exact):
        return 0
    return encode_ieee(exact)


def rdna4(a: list[int], b: list[int], c: int) -> int:
    f16 = get_format("f16")
    xs, ys, z = [f16.decode(x) for x in a], [f16.decode(y) for y in b], F32.decode(c)
    special = amd_special(xs, ys, z, c)
    if special is not None:
        return special
    products = [x.value * y.value for x, y in zip(xs, ys, strict=True)]
    esum = [x.exponent + y.exponent for x, y in zip(xs, ys, strict=True)]
    pairs = []
    for first in (0, 2):
        live = [esum[k] for k in (first, first + 1) if products[k]]
        unit = Fraction(2) ** (max(live) - 24) if live else Fraction(1)
        pairs.append(sum(products[k] // unit for k in (first, first + 1)) * unit)
    value = Fraction(0) if is_zero(z) else z.value
    grids = [max(-126, lead(value) if value else -126) - 26] + [
        e - 24 for e, p in zip(esum, products, strict=True) if p
    ]
    g = max(grids)
    unit = Fraction(2) ** g
    own = value // unit
    if g > -126 and abs(value) < unit and value < 0:
        own = 0
    exact = (sum(pair // unit for pair in pairs) + own) * unit
    return encode_ieee(exact) & ~(int(encode_ieee(exact) == 0x80000000) << 31) if exact else 0


@pytest.mark.parametrize("seed", range(40))
def test_rdna4(seed: int) -> None:
    hold(example("rdna4_dot4"), rdna4, seed, 40)


def rounded_tiny(exact: Fraction) -> bool:
    """Whether the number, rounded to 24 bits with any exponent, is below 2**-126."""
    place = Fraction(2) ** (lead(exact) - 23)
    rounded = round(abs(exact) / place) * place  # Fractions round to even
    return rounded < Fraction(2) ** -126


def encode_ieee(exact: Fraction) -> int:
    """Nearest even; past the largest number: infinity."""
    limit = (2 - Fraction(1, 1 << 24)) * Fraction(2) ** 127
    if abs(exact) >= limit:
        return 0x7F800000 | int(exact < 0) << 31
    return encode_fraction(F32, exact)


@pytest.mark.parametrize("seed", range(40))
def test_rdna3(seed: int) -> None:
    hold(example("rdna3_dot2"), rdna3, seed, 40)


def hold(ins: Instruction, model, seed: int, count: int) -> None:  # type: ignore[no-untyped-def]
    rng = random.Random(seed)
    drawn = [draw(ins, rng) for _ in range(count)]
    arrays = {n: np.array([one[n] for one in drawn], ins.formats[n].dtype) for n in "abc"}
    core = ins.dot(**arrays)
    for i, one in enumerate(drawn):
        wanted = model(one["a"], one["b"], one["c"])
        assert int(core[i]) == wanted, (hex(int(core[i])), hex(wanted), one)
        assert ins.reference_dot(**{n: array[i] for n, array in arrays.items()}) == wanted


def test_rdna3_by_hand() -> None:
    """1 * 1 + (-1) * 0 with c = +0: the zero product -0 costs one unit."""
    ins = example("rdna3_dot2")
    a, b = np.array([0x3C00, 0xBC00], np.uint16), np.array([0x3C00, 0], np.uint16)
    assert int(ins.dot(a, b, np.uint32(0))) == 0x3F7FFFFF


# AMX: TDPBF16PS ---------------------------------------------------------------------------------------------


def quiet(code: int) -> int:
    return code | 1 << 22


def is_nan(code: int) -> bool:
    return code & 0x7FFFFFFF > 0x7F800000


def daz(code: int) -> int:
    return code & 0x80000000 if code & 0x7F800000 == 0 else code


def fma(a: int, b: int, c: int | None) -> int:
    """One multiply-add on f32 codes with subnormal numbers as zeros; c None: an addition of a and b."""
    terms = [a, b] if c is None else [a, b, c]
    for code in terms:
        if is_nan(code):
            return quiet(code)
    x, y = F32.decode(daz(a)), F32.decode(daz(b))
    if c is None:
        return added(x, y)
    kinds, sign = {x.kind, y.kind}, x.sign ^ y.sign
    if kinds == {Kind.INFINITY, Kind.ZERO}:
        return 0xFFC00000
    if Kind.INFINITY in kinds:
        product = Number(Kind.INFINITY, sign)
    elif Kind.ZERO in kinds:
        product = Number(Kind.ZERO, sign)
    else:
        product = Number(Kind.FINITE, sign, x.significand * y.significand, x.exponent + y.exponent, 46)
    return added(product, F32.decode(daz(c)))


def added(x: Number, y: Number) -> int:
    infinite = {n.sign for n in (x, y) if n.kind == Kind.INFINITY}
    if infinite:
        return 0xFFC00000 if len(infinite) == 2 else 0x7F800000 | infinite.pop() << 31
    exact = sum((n.value for n in (x, y) if n.kind == Kind.FINITE), Fraction(0))
    if not exact:
        both = is_zero(x) and is_zero(y) and x.sign == y.sign == 1
        return int(both) << 31
    if rounded_tiny(exact):
        return int(exact < 0) << 31
    return encode_ieee(exact)


def amx(a: list[int], b: list[int], c: int) -> int:
    chains = [0, 0]
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        chains[k % 2] = fma(x << 16, y << 16, chains[k % 2])
    return fma(c, fma(chains[0], chains[1], None), None)


@pytest.mark.parametrize("seed", range(30))
def test_amx(seed: int) -> None:
    hold(example("amx_bf16"), amx, seed, 30)


def test_amx_by_hand() -> None:
    """All products -0 and c = -0 give +0, because the chains start from +0; a bf16 NaN is widened and
    quieted."""
    ins = example("amx_bf16")
    minus, one = np.full(8, 0x8000, np.uint16), np.full(8, 0x3F80, np.uint16)
    assert int(ins.dot(minus, one, np.uint32(0x80000000))) == 0
    nan = one.copy()
    nan[3] = 0xFF81
    assert int(ins.dot(nan, one, np.uint32(0))) == 0xFFC10000


# A fixed-point accumulator ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fraction", "width", "overflow"), [(48, 47, "saturate"), (10, 1, "saturate"), (10, 1, "wrap")]
)
def test_fixed_point(fraction: int, width: int, overflow: str) -> None:
    """Floors at the last bit; past the register's ends it saturates or wraps."""
    text = (spec_folder() / "examples" / "fixed_point.yaml").read_text()
    text = text.replace("fraction_bits: 48", f"fraction_bits: {fraction}")
    text = text.replace("width: 47, overflow: saturate", f"width: {width}, overflow: {overflow}")
    ins, f16 = unit_files.build_instruction(yamlfile.parse(text)), get_format("f16")
    rng, bits = random.Random(width), fraction + width
    beyond = 0
    for _ in range(400):
        a, b = ([codes(rng, f16, -14, 3) & 0xBFFF for _ in range(4)] for _ in "ab")
        c = codes(rng, f16, -14, 8) & 0xBFFF
        terms = [f16.decode(x).value * f16.decode(y).value for x, y in zip(a, b, strict=True)]
        total = sum(int(term * 2**fraction // 1) for term in (*terms, f16.decode(c).value))
        held = (total + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        beyond += held != total
        if held != total and overflow == "saturate":
            held = (1 << bits - 1) - 1 if total > 0 else -(1 << bits - 1)
        wanted = encode_fraction(F32, held * Fraction(2) ** -fraction) if held else 0
        given = {"a": np.array(a, np.uint16), "b": np.array(b, np.uint16), "c": np.uint16(c)}
        assert (int(ins.dot(**given)), ins.reference_dot(**given)) == (wanted, wanted)
    assert beyond > 20 or width > 40
