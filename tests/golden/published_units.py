"""Dot products of Arm's manual and of RISC-V's drafts, written from their descriptions alone, in exact
rationals.

Nothing here reads a spec or runs a step of the package; the decoding of a code is golden.number's, which
tests of its own hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from exact import decode, ieee_add, ieee_fma, ieee_mul
from real_units import Dot, lead, value

from golden.number.formats import Kind, get_format

NAN, INFINITY, SIGN = 0x7FC00000, 0x7F800000, 1 << 31
Way = Literal["odd", "even"]


@dataclass(frozen=True)
class Term:
    """A number, with the sign of a zero or an infinity."""

    kind: Kind
    sign: int
    exact: Fraction = Fraction(0)


def read(name: str, code: int) -> Term:
    number = get_format(name).decode(code)
    finite = number.kind in (Kind.ZERO, Kind.FINITE)
    return Term(number.kind, number.sign, value(number) if finite else Fraction(0))


def rounded(x: Fraction, way: Way, narrow: bool = False) -> int:
    """A number that is not zero as f32 (narrow: f16); gradual underflow, overflow to infinity."""
    fraction, least, infinity, sign = (10, -14, 0x7C00, 1 << 15) if narrow else (23, -126, INFINITY, SIGN)
    exponent = max(lead(x), least)
    units = abs(x) / Fraction(2) ** (exponent - fraction)
    whole, rest = units.numerator // units.denominator, units - units.numerator // units.denominator
    if way == "odd":
        whole |= rest > 0
    elif rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1):
        whole += 1
    return (sign if x < 0 else 0) | min(whole + (exponent - least << fraction), infinity)


def flushed_odd(x: Fraction) -> int:
    """BFRound: what lies below 2^-126 before it is rounded is a zero of its sign."""
    return (SIGN if x < 0 else 0) if abs(x) < Fraction(2) ** -126 else rounded(x, "odd")


def flushed(x: Term) -> Term:
    """An operand whose subnormal numbers are zeros of their sign."""
    tiny = x.kind == Kind.FINITE and abs(x.exact) < Fraction(2) ** -126
    return Term(Kind.ZERO, x.sign) if tiny else x


def summed(xs: Sequence[Term], way: Way | None, narrow: bool = False) -> int:
    """An exact sum of numbers and infinities, rounded once (None: BFRound), as a code."""
    nan, infinity, sign = (0x7E00, 0x7C00, 1 << 15) if narrow else (NAN, INFINITY, SIGN)
    if any(x.kind == Kind.NAN for x in xs):
        return nan
    signs = {x.sign for x in xs if x.kind == Kind.INFINITY}
    if signs:
        return nan if len(signs) == 2 else infinity | (sign if signs.pop() else 0)
    total = sum((x.exact for x in xs), Fraction(0))
    if total:
        return flushed_odd(total) if way is None else rounded(total, way, narrow)
    return sign if all(x.kind == Kind.ZERO and x.sign for x in xs) else 0


def product(x: Term, y: Term) -> Term:
    """Exact; zero times infinity is a NaN."""
    kinds, sign = {x.kind, y.kind}, x.sign ^ y.sign
    if Kind.NAN in kinds or kinds == {Kind.ZERO, Kind.INFINITY}:
        return Term(Kind.NAN, 0)
    if Kind.INFINITY in kinds:
        return Term(Kind.INFINITY, sign)
    exact = x.exact * y.exact
    return Term(Kind.FINITE, sign, exact) if exact else Term(Kind.ZERO, sign)


def bfdot_add(a: Sequence[int], b: Sequence[int], c: int) -> int:
    """BFDotAdd: products and both additions rounded to odd (BFMulH, FPAdd_BF16)."""
    xs, ys = ([flushed(read("bf16", code)) for code in row] for row in (a, b))
    products = (summed([product(x, y)], None) for x, y in zip(xs, ys, strict=True))
    pair = summed([read("f32", code) for code in products], None)
    return summed([flushed(read("f32", c)), read("f32", pair)], None)


def dot_add(ab: str) -> Dot:
    """FPDotAdd: two products summed exactly, one rounding; then one addition."""

    def dot(a: Sequence[int], b: Sequence[int], c: int) -> int:
        xs, ys = ([read(ab, code) for code in row] for row in (a, b))
        pair = summed([product(x, y) for x, y in zip(xs, ys, strict=True)], "even")
        return summed([read("f32", c), read("f32", pair)], "even")

    return dot


def fp8_dot_add(a_format: str, b_format: str, d: str) -> Dot:
    """FP8DotAddFP with LSCALE = 0 and OSM = 0: addend and products exactly, one rounding."""

    def dot(a: Sequence[int], b: Sequence[int], c: int) -> int:
        xs, ys = [read(a_format, x) for x in a], [read(b_format, y) for y in b]
        products = [product(x, y) for x, y in zip(xs, ys, strict=True)]
        return summed([read(d, c), *products], "even", d == "f16")

    return dot


def multiply_add(name: str, nan: int) -> Dot:
    """FPMulAdd_ZA: one product and the addend, rounded once; every NaN is the default one."""

    def dot(a: Sequence[int], b: Sequence[int], c: int) -> int:
        return ieee_fma(name, decode(name, a[0]), decode(name, b[0]), decode(name, c), "nearest_even", nan)

    return dot


def rounded_pair(name: str, nan: int) -> Dot:
    """FMMLA of single and double precision: two rounded products, their rounded sum, then the addend."""

    def dot(a: Sequence[int], b: Sequence[int], c: int) -> int:
        products = [ieee_mul(name, decode(name, x), decode(name, y), nan) for x, y in zip(a, b, strict=True)]
        pair = ieee_add(name, *(decode(name, code) for code in products), nan)
        return ieee_add(name, decode(name, c), decode(name, pair), nan)

    return dot


def rounded_pair_flags(name: str, nan: int) -> Dot:
    """The cumulative bits that FMMLA sets, as a set of words: each multiplication and addition alone."""
    largest, least = {"f32": (128, -126), "f64": (1024, -1022)}[name]
    fraction = {"f32": 23, "f64": 52}[name]
    limit = (2 - Fraction(1, 2 ** (fraction + 1))) * Fraction(2) ** (largest - 1)

    def of(exact: Fraction, code: int) -> set[str]:
        found = decode(name, code)
        if found.what == "number" and found.x == exact:
            return set()
        if abs(exact) >= limit:
            return {"overflow", "inexact"}
        return {"underflow", "inexact"} if abs(exact) < Fraction(2) ** least else {"inexact"}

    def multiplied(x: int, y: int) -> tuple[int, set[str]]:
        p, q = decode(name, x), decode(name, y)
        code = ieee_mul(name, p, q, nan)
        kinds = {p.what, q.what}
        if "nan" in kinds:
            return code, set()
        if "inf" in kinds:
            return code, {"invalid"} if p.is_zero or q.is_zero else set()
        return code, of(p.x * q.x, code)

    def added(x: int, y: int) -> tuple[int, set[str]]:
        p, q = decode(name, x), decode(name, y)
        code = ieee_add(name, p, q, nan)
        kinds = [p.what, q.what]
        if "nan" in kinds:
            return code, set()
        if "inf" in kinds:
            return code, {"invalid"} if kinds == ["inf", "inf"] and p.negative != q.negative else set()
        return code, of(p.x + q.x, code)

    def flags(a: Sequence[int], b: Sequence[int], c: int) -> set[str]:
        quiet = 1 << fraction - 1
        found = set()
        if any(decode(name, code).what == "nan" and not code & quiet for code in (*a, *b, c)):
            found.add("invalid")
        (first, one), (second, two) = (multiplied(x, y) for x, y in zip(a, b, strict=True))
        pair, three = added(first, second)
        return found | one | two | three | added(c, pair)[1]

    return flags


def bulk_normalised(guard: int, a_format: str = "bf16", b_format: str = "bf16") -> Dot:
    """RVBNA: products jammed on a grid of 23 + guard bits below the largest exponent, their sum
    rounded to odd, then one addition, rounded to odd, too (zvdota.adoc)."""

    def field(name: str, code: int) -> int:
        fraction, exponent = {"bf16": (7, 8), "e4m3": (3, 4), "e5m2": (2, 5)}[name]
        return max(code >> fraction & (1 << exponent) - 1, 1) - (1 << exponent - 1) + 1

    def dot(a: Sequence[int], b: Sequence[int], c: int) -> int:
        products = [product(read(a_format, x), read(b_format, y)) for x, y in zip(a, b, strict=True)]
        if any(x.kind in (Kind.NAN, Kind.INFINITY) for x in products):
            bulk = summed(products, "odd")
        else:
            pairs = [(field(a_format, x) + field(b_format, y)) for x, y in zip(a, b, strict=True)]
            live = [(e, z.exact) for e, z in zip(pairs, products, strict=True) if z.exact]
            unit = Fraction(2) ** (max((e for e, _ in live), default=0) - 23 - guard)
            total = 0
            for _, exact in live:
                units = abs(exact) / unit
                whole = units.numerator // units.denominator
                total += (whole | (whole != units)) * (-1 if exact < 0 else 1)
            bulk = rounded(total * unit, "odd") if total else 0
        return summed([read("f32", c), read("f32", bulk)], "odd")

    return dot


def vfwdota_flags(a: Sequence[int], b: Sequence[int], c: int, guard: int) -> set[str]:
    """The flags that riscv-isa-sim raises: bulknormdot.h, then f32_add_odd of zvbdot.h."""

    def signals(code: int, quiet: int, infinity: int) -> bool:
        return (code & ~(1 << infinity.bit_length())) > infinity and not code & quiet

    found = set()
    products = [product(read("bf16", x), read("bf16", y)) for x, y in zip(a, b, strict=True)]
    kinds = [{read("bf16", x).kind, read("bf16", y).kind} for x, y in zip(a, b, strict=True)]
    signs = {x.sign for x in products if x.kind == Kind.INFINITY}
    if (
        any(signals(code, 0x40, 0x7F80) for code in (*a, *b))
        or any(kind == {Kind.ZERO, Kind.INFINITY} for kind in kinds)
        or len(signs) == 2
    ):
        found.add("invalid")
    bulk = read("f32", bulk_normalised(guard)(a, b, SIGN))  # plus -0: the sum itself
    total = read("f32", bulk_normalised(guard)(a, b, c))
    addend = read("f32", c)
    if bulk.kind == Kind.INFINITY and not signs:
        found.add("overflow")
    if signals(c, 0x400000, INFINITY) or (
        {bulk.kind, addend.kind} == {Kind.INFINITY} and bulk.sign != addend.sign
    ):
        found.add("invalid")
    if total.kind == Kind.INFINITY and Kind.INFINITY not in (bulk.kind, addend.kind):
        found.add("overflow")
    return found


def rounded_products(a: Sequence[int], b: Sequence[int], c: int) -> int:
    """vfmmacc.vv with G = 1, psm = 0 and rnd = frm: each product rounded, then added."""
    for x, y in zip(a, b, strict=True):
        c = summed(
            [read("f32", c), read("f32", summed([product(read("f32", x), read("f32", y))], "even"))], "even"
        )
    return c


def fused_products(a: Sequence[int], b: Sequence[int], c: int) -> int:
    """The same with rnd = xct: one rounding for each product."""
    for x, y in zip(a, b, strict=True):
        c = summed([read("f32", c), product(read("f32", x), read("f32", y))], "even")
    return c
