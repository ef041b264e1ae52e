"""An independent oracle: the algorithms of MMA-Sim in rational numbers, written from the text alone.

It shares nothing with the package: no formats, no rounding, no spec. Each function takes raw codes and
returns one. Sources: arXiv 2511.10909 sections IV-A to IV-I, with the later corrections (exponent of zero
addends, +0 results, TR-FDPA and GTR-FDPA of its second version, E-FDPA).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import floor

# name: exponent bits, fraction bits, bias, what the odd codes mean
FLOATS = {
    "f64": (11, 52, 1023, "ieee"),
    "f32": (8, 23, 127, "ieee"),
    "tf32": (8, 10, 127, "ieee"),
    "bf16": (8, 7, 127, "ieee"),
    "f16": (5, 10, 15, "ieee"),
    "e5m2": (5, 2, 15, "ieee"),
    "e4m3": (4, 3, 7, "fn"),
    "e5m2fnuz": (5, 2, 16, "fnuz"),
    "e4m3fnuz": (4, 3, 8, "fnuz"),
    "e3m2": (3, 2, 3, "finite"),
    "e2m3": (2, 3, 1, "finite"),
    "e2m1": (2, 1, 1, "finite"),
}
INTEGERS = {
    "s32": (32, True),
    "s8": (8, True),
    "u8": (8, False),
    "s4": (4, True),
    "u4": (4, False),
    "b1": (1, False),
}


@lru_cache(maxsize=8192)
def two(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def log2_floor(x: Fraction) -> int:
    """The e with 2**e <= |x| < 2**(e + 1)."""
    e = abs(x.numerator).bit_length() - x.denominator.bit_length()
    return e if abs(x) >= two(e) else e - 1


@dataclass(frozen=True)
class Value:
    """A decoded operand: `what` is "nan", "inf" or "number"; s (signed) * 2**e otherwise; `negative` also
    of zeros."""

    what: str
    negative: bool = False
    s: Fraction = Fraction(0)
    e: int = 0
    code: int = 0

    @property
    def x(self) -> Fraction:
        return self.s * two(self.e)

    @property
    def is_zero(self) -> bool:
        return self.what == "number" and self.s == 0


@lru_cache(maxsize=1 << 18)
def decode(fmt: str, code: int) -> Value:
    if fmt == "ue8m0":
        return Value("nan") if code == 0xFF else Value("number", False, Fraction(1), code - 127)
    if fmt == "ue4m3":
        return decode("e4m3", code & 0x7F)
    exponent_bits, fraction_bits, bias, odd = FLOATS[fmt]
    raw = code
    if fmt == "tf32":
        code >>= 13
    fraction, exponent = code % (1 << fraction_bits), (code >> fraction_bits) % (1 << exponent_bits)
    negative = bool(code >> (fraction_bits + exponent_bits) & 1)
    top = exponent == (1 << exponent_bits) - 1
    if odd == "ieee" and top:
        return Value("nan" if fraction else "inf", negative, code=raw)
    if (odd == "fn" and top and fraction == (1 << fraction_bits) - 1) or (
        odd == "fnuz" and negative and not fraction and not exponent
    ):
        return Value("nan", negative, code=raw)
    s = Fraction(fraction, 1 << fraction_bits) + (1 if exponent else 0)
    return Value("number", negative, -s if negative else s, max(exponent, 1) - bias)


def integer(fmt: str, code: int) -> int:
    bits, signed = INTEGERS[fmt]
    return code - (1 << bits) if signed and code >> (bits - 1) else code


# Rounding ---------------------------------------------------------------------------------------------------


def to_integer(x: Fraction, mode: str) -> int:
    """One rounding of a rational to an integer."""
    low = floor(x)
    rest = x - low
    if mode == "nearest_even":
        return low + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 1))
    if mode == "nearest_away":
        return low + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and x > 0))
    if mode == "to_odd":  # what is not exact goes to the odd one of its two neighbours
        return low + (rest > 0 and low % 2 == 0)
    half = Fraction(1, 2)
    ties = {
        "up": floor(x + half),
        "down": -floor(half - x),
        "zero": -floor(half - x) if x > 0 else floor(x + half),
    }
    ties["odd"] = low + (rest > half or (rest == half and low % 2 == 0))
    if mode.removeprefix("nearest_") in ties and mode.startswith("nearest_"):
        return ties[mode.removeprefix("nearest_")]
    if mode == "away":
        return low + (rest > 0 and x > 0)
    if mode == "up" or (mode == "toward_zero" and x < 0):
        return low + (rest > 0)
    return low


def cut(s: Fraction, fraction_bits: int, mode: str = "toward_zero") -> Fraction:
    """Rounds to a multiple of 2**-fraction_bits."""
    return Fraction(to_integer(s * (1 << fraction_bits), mode), 1 << fraction_bits)


def encode(
    fmt: str,
    x: Fraction,
    mode: str,
    kept: int | None = None,
    overflow: str = "infinity",
    negative_zero: bool = False,
) -> int:
    """The code of x, rounded once at `kept` fraction bits. overflow: "infinity",
    or "ieee" (the mode decides)."""
    exponent_bits, fraction_bits, bias, _ = FLOATS[fmt]
    sign = 1 << (exponent_bits + fraction_bits) if x < 0 or (x == 0 and negative_zero) else 0
    if x == 0:
        return sign
    kept = fraction_bits if kept is None else kept
    quantum = two(max(log2_floor(x), 1 - bias) - kept)
    rounded = abs(to_integer(x / quantum, mode) * quantum)
    if rounded == 0:
        return sign
    infinity = ((1 << exponent_bits) - 1) << fraction_bits
    if rounded >= two(bias + 1):
        stays = mode in ("toward_zero", "to_odd") or mode == ("up" if x < 0 else "down")
        return sign | (infinity - 1 if overflow == "ieee" and stays else infinity)
    e = max(log2_floor(rounded), 1 - bias)
    fields = rounded / two(e - fraction_bits) + ((e + bias - 1) << fraction_bits)
    assert fields.denominator == 1
    return sign | int(fields)


def infinity(fmt: str, negative: bool) -> int:
    exponent_bits, fraction_bits, _, _ = FLOATS[fmt]
    return int(negative) << (exponent_bits + fraction_bits) | ((1 << exponent_bits) - 1) << fraction_bits


# Special values ---------------------------------------------------------------------------------------------


def product_kind(a: Value, b: Value) -> str:
    if "nan" in (a.what, b.what) or ("inf" in (a.what, b.what) and (a.is_zero or b.is_zero)):
        return "nan"
    return "inf" if "inf" in (a.what, b.what) else "number"


def special(addends: Sequence[tuple[str, bool]]) -> str | None:
    """ "nan", "+inf", "-inf" or None for addends given as (kind, negative)."""
    signs = {negative for kind, negative in addends if kind == "inf"}
    if any(kind == "nan" for kind, _ in addends) or len(signs) == 2:
        return "nan"
    return None if not signs else "-inf" if True in signs else "+inf"


def answer(found: str, fmt: str, nan: int) -> int:
    return nan if found == "nan" else infinity(fmt, found == "-inf")


NVIDIA_NAN = {"f32": 0x7FFFFFFF, "f16": 0x7FFF}


# FDA, scaled FDA, GDFS --------------------------------------------------------------------------------------


def fda(
    a: Sequence[Value],
    b: Sequence[Value],
    c: Value,
    d: str,
    f: int,
    e_zero: int,
    kept: int | None = None,
    scales: Sequence[tuple[Value, Value]] | None = None,
) -> int:
    """T-FDPA; with one pair of scales for each product ST-FDPA."""
    pairs = list(zip(a, b, strict=True))
    found = special(
        [(product_kind(x, y), x.negative != y.negative) for x, y in pairs] + [(c.what, c.negative)]
    )
    if any("nan" in (x.what, y.what) for x, y in scales or ()):
        found = "nan"
    if found:
        return answer(found, d, NVIDIA_NAN[d])
    shift = [x.e + y.e for x, y in scales] if scales else [0] * len(pairs)
    addends = [(x.s * y.s, x.e + y.e + extra) for (x, y), extra in zip(pairs, shift, strict=True)] + [
        (c.s, c.e)
    ]
    e_max = max(e if s else e_zero for s, e in addends)
    total = sum((cut(s * two(e - e_max), f) for s, e in addends if s), Fraction(0)) * two(e_max)
    code = encode(d, total, "toward_zero" if d == "f32" else "nearest_even", kept)
    return 0 if code << 1 & ((1 << (32 if d == "f32" else 16)) - 1) == 0 else code


def cofda(
    fa: str, fb: str, fc: str, d: str, products: int, f: int, e_zero: int, kept: int | None = None
) -> Callable[..., int]:
    """A chain of FDAs, `products` at a time; the running c is rounded to D."""

    def run(a: Sequence[int], b: Sequence[int], c: int) -> int:
        code, fmt = c, fc
        for k in range(0, len(a), products):
            code = fda(
                [decode(fa, x) for x in a[k : k + products]],
                [decode(fb, x) for x in b[k : k + products]],
                decode(fmt, code),
                d,
                f,
                e_zero,
                kept,
            )
            fmt = d
        return code

    return run


def scaled_fda(fa: str, fb: str, block: int, f: int, e_zero: int) -> Callable[..., int]:
    def run(
        a: Sequence[int], b: Sequence[int], c: int, scale_a: Sequence[int], scale_b: Sequence[int]
    ) -> int:
        scales = [
            (decode("ue8m0", scale_a[k // block]), decode("ue8m0", scale_b[k // block]))
            for k in range(len(a))
        ]
        return fda(
            [decode(fa, x) for x in a],
            [decode(fb, x) for x in b],
            decode("f32", c),
            "f32",
            f,
            e_zero,
            None,
            scales,
        )

    return run


def gdfs(scale: str, block: int, f: int = 35, e_zero: int = -139) -> Callable[..., int]:
    """GST-FDPA: groups of 16 e2m1 products, each summed exactly and scaled; aligned by the scales'
    exponents alone."""

    def run(
        a: Sequence[int], b: Sequence[int], c: int, scale_a: Sequence[int], scale_b: Sequence[int]
    ) -> int:
        value_c = decode("f32", c)
        scales = [(decode(scale, x), decode(scale, y)) for x, y in zip(scale_a, scale_b, strict=True)]
        if value_c.what == "nan" or any("nan" in (x.what, y.what) for x, y in scales):
            return 0x7FFFFFFF
        if value_c.what == "inf":
            return c
        addends = [(value_c.s, value_c.e if value_c.s else e_zero)]
        for k in range(0, len(a), 16):
            products = [
                decode("e2m1", x).x * decode("e2m1", y).x
                for x, y in zip(a[k : k + 16], b[k : k + 16], strict=True)
            ]
            x, y = scales[k // block]
            zero = not any(products) or x.is_zero or y.is_zero
            addends.append((sum(products, Fraction(0)) * x.s * y.s, e_zero if zero else x.e + y.e))
        e_max = max(e for _, e in addends)
        total = sum((cut(s * two(e - e_max), f) for s, e in addends), Fraction(0)) * two(e_max)
        code = encode("f32", total, "toward_zero")
        return 0 if code == 0x80000000 else code

    return run


# FDRDA and GFDRDA (CDNA3) -----------------------------------------------------------------------------------


def truncated_sum(addends: Sequence[tuple[Fraction, int]]) -> tuple[Fraction, int] | None:
    """RZ at 24 fraction bits to the largest exponent of the non-zero products; None when all are zero."""
    present = [(s, e) for s, e in addends if s]
    if not present:
        return None
    e_max = max(e for _, e in present)
    return sum((cut(s * two(e - e_max), 24) for s, e in present), Fraction(0)), e_max


def round_down_add(dot: tuple[Fraction, int] | None, c: Value, window: int | None) -> int:
    """The last stage: dot floored at 32 fraction bits, c at 24, the sum renormalised and floored at 31,
    then RNE."""
    e_c = c.e if c.s else -126
    e_max = e_c if dot is None else max(dot[1], e_c)
    total = Fraction(0) if dot is None else cut(dot[0] * two(dot[1] - e_max), 32, "down")
    if window is None or not e_c < e_max - window:
        total += cut(c.s * two(c.e - e_max), 24, "down")
    total *= two(e_max)
    if total == 0:
        return 0
    quantum = two(max(log2_floor(total), -126) - 31)
    return encode("f32", floor(total / quantum) * quantum, "nearest_even")


def fdrda(a: Sequence[Value], b: Sequence[Value], c: Value) -> int:
    addends = [(x.s * y.s, x.e + y.e) for x, y in zip(a, b, strict=True)]
    kinds = [(product_kind(x, y), x.negative != y.negative) for x, y in zip(a, b, strict=True)]
    kinds = [
        ("inf", negative) if kind == "number" and abs(s) * two(e) >= two(128) else (kind, negative)
        for (kind, negative), (s, e) in zip(kinds, addends, strict=True)
    ]
    found = special([*kinds, (c.what, c.negative)])
    return answer(found, "f32", 0x7FC00000) if found else round_down_add(truncated_sum(addends), c, None)


def gfdrda(a: Sequence[Value], b: Sequence[Value], c: Value) -> int:
    found = special(
        [(product_kind(x, y), x.negative != y.negative) for x, y in zip(a, b, strict=True)]
        + [(c.what, c.negative)]
    )
    if found:
        return answer(found, "f32", 0x7FC00000)
    addends = [(x.s * y.s, x.e + y.e) for x, y in zip(a, b, strict=True)]
    groups = [
        group for group in (truncated_sum(addends[0::2]), truncated_sum(addends[1::2])) if group is not None
    ]
    dot = None
    if groups:
        e_max = max(e for _, e in groups)
        dot = sum((cut(s * two(e - e_max), 24, "down") for s, e in groups), Fraction(0)), e_max
    return round_down_add(dot, c, 25)


def chain(step: Callable[..., int], fa: str, fb: str, products: int) -> Callable[..., int]:
    """The chains of CDNA1 and CDNA3: f32 c, `products` at a time."""

    def run(a: Sequence[int], b: Sequence[int], c: int) -> int:
        for k in range(0, len(a), products):
            c = step(
                [decode(fa, x) for x in a[k : k + products]],
                [decode(fb, x) for x in b[k : k + products]],
                decode("f32", c),
            )
        return c

    return run


def exact_dot_add(a: Sequence[Value], b: Sequence[Value], c: Value) -> int:
    """E-FDPA (CDNA1): one RNE of the exact sum."""
    found = special(
        [(product_kind(x, y), x.negative != y.negative) for x, y in zip(a, b, strict=True)]
        + [(c.what, c.negative)]
    )
    if found:
        return answer(found, "f32", 0x7FC00000)
    return encode("f32", sum((x.x * y.x for x, y in zip(a, b, strict=True)), c.x), "nearest_even")


# IEEE operations --------------------------------------------------------------------------------------------


def ieee_fma(fmt: str, a: Value, b: Value, c: Value, mode: str, nan: int) -> int:
    """IEEE 754 fused multiply-add; NaNs become `nan`."""
    negative = a.negative != b.negative
    found = special([(product_kind(a, b), negative), (c.what, c.negative)])
    if found:
        return answer(found, fmt, nan)
    x = a.x * b.x + c.x
    same = (a.x * b.x == 0) and c.is_zero and negative == c.negative
    return encode(fmt, x, mode, None, "ieee", negative if same else mode == "down")


ONE = Value("number", False, Fraction(1), 0)


def ieee_add(fmt: str, x: Value, y: Value, nan: int) -> int:
    return ieee_fma(fmt, x, ONE, y, "nearest_even", nan)


def ieee_mul(fmt: str, x: Value, y: Value, nan: int) -> int:
    """A multiplication is a fused multiply-add of the zero that has the product's sign."""
    zero = Value("number", x.negative != y.negative)
    return ieee_fma(fmt, x, y, zero, "nearest_even", nan)


def sfma(fmt: str, mode: str, nan: int, hand_on: bool) -> Callable[..., int]:
    """Algorithm 1. With `hand_on` the first NaN among b, c, a is returned quieted (DMMA on an H200)."""
    quiet = 1 << (FLOATS[fmt][1] - 1)

    def run(a: Sequence[int], b: Sequence[int], c: int) -> int:
        for x, y in zip(a, b, strict=True):
            operands = decode(fmt, y), decode(fmt, c), decode(fmt, x)
            first = next((v for v in operands if v.what == "nan"), None)
            c = (
                first.code | quiet
                if hand_on and first
                else ieee_fma(fmt, operands[2], operands[0], operands[1], mode, nan)
            )
        return c

    return run


def flushed(code: int, signed: bool) -> int:
    """An f32 code; below 2**-126 (-0 is, too) zero of its sign, or +0."""
    return code if code & 0x7F800000 else code & 0x80000000 if signed else 0


def gps(fmt: str, group: int) -> Callable[..., int]:
    """Algorithms 2 and 3 (CDNA2)."""
    nan = 0x7FC00000

    def operand(name: str, code: int) -> Value:
        v = decode(name, code)
        return Value("number") if v.what == "number" and abs(v.s) < 1 else v

    def add(x: int, y: int) -> int:
        return flushed(ieee_add("f32", decode("f32", x), decode("f32", y), nan), True)

    def pairwise(p: list[int]) -> int:
        return p[0] if len(p) == 1 else add(pairwise(p[: len(p) // 2]), pairwise(p[len(p) // 2 :]))

    def run(a: Sequence[int], b: Sequence[int], c: int) -> int:
        p = [
            flushed(ieee_mul("f32", operand(fmt, x), operand(fmt, y), nan), True)
            for x, y in zip(a, b, strict=True)
        ]
        d = flushed(c, False)
        for k in range(0, len(p), group):
            d = add(d, pairwise(p[k : k + group]))
        return d

    return run


def m8n8k4_f32(fc: str) -> Callable[..., int]:
    """FFMA chain from +0, then one FADD of c."""

    def run(a: Sequence[int], b: Sequence[int], c: int) -> int:
        p = 0
        for x, y in zip(a, b, strict=True):
            p = ieee_fma(
                "f32", decode("f16", x), decode("f16", y), decode("f32", p), "nearest_even", 0x7FFFFFFF
            )
        return ieee_add("f32", decode(fc, c), decode("f32", p), 0x7FFFFFFF)

    return run


def m8n8k4_f16(a: Sequence[int], b: Sequence[int], c: int) -> int:
    """FMUL and FFMA over two pairs, two FADDs, one conversion to f16."""
    va, vb, total = [decode("f16", x) for x in a], [decode("f16", x) for x in b], decode("f16", c)
    for i in (0, 2):
        first = decode("f32", ieee_mul("f32", va[i], vb[i], 0x7FFFFFFF))
        pair = decode("f32", ieee_fma("f32", va[i + 1], vb[i + 1], first, "nearest_even", 0x7FFFFFFF))
        total = decode("f32", ieee_add("f32", total, pair, 0x7FFFFFFF))
    return 0x7FFF if total.what == "nan" else ieee_add("f16", total, Value("number", total.negative), 0x7FFF)


def fp8_rewrite(fa: str, fb: str, d: str) -> Callable[..., int]:
    """FP8 mma.sync on sm_90: two chained HMMAs from zero over k mod 4 in {0, 1} and {2, 3}, then one IEEE
    add of c."""
    e_zero = {"f32": -133, "f16": -21}[d]

    def as_f16(fmt: str, code: int) -> Value:
        v = decode(fmt, code)
        return v if v.what != "number" or v.s == 0 else decode("f16", encode("f16", v.x, "toward_zero"))

    def run(a: Sequence[int], b: Sequence[int], c: int) -> int:
        code = 0
        for half in ((0, 1), (2, 3)):
            picked = [k for k in range(len(a)) if k % 4 in half]
            code = fda(
                [as_f16(fa, a[k]) for k in picked],
                [as_f16(fb, b[k]) for k in picked],
                decode(d, code),
                d,
                25,
                e_zero,
            )
        return ieee_add(d, decode(d, c), decode(d, code), NVIDIA_NAN[d])

    return run


# Integers ---------------------------------------------------------------------------------------------------


def integer_dot(fa: str, fb: str, saturate: bool) -> Callable[..., int]:
    def run(a: Sequence[int], b: Sequence[int], c: int) -> int:
        total = integer("s32", c) + sum(integer(fa, x) * integer(fb, y) for x, y in zip(a, b, strict=True))
        return (max(-(2**31), min(2**31 - 1, total)) if saturate else total) % 2**32

    return run


def binary_dot(operation: str) -> Callable[..., int]:
    def run(a: Sequence[int], b: Sequence[int], c: int) -> int:
        bits = sum((x & y) if operation == "and" else (x ^ y) for x, y in zip(a, b, strict=True))
        return (integer("s32", c) + bits) % 2**32

    return run


# Tensix (Tenstorrent) ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TensixOperand:
    """What the Matrix Unit reads of a code: sign, significand 1.f (of at most ten fraction bits), biased
    exponent. Zeros and subnormal numbers are zero; NaNs and infinities are numbers."""

    negative: bool
    significand: Fraction
    exponent: int

    @property
    def zero(self) -> bool:
        return self.exponent == 0


def tensix_operand(fmt: str, code: int) -> TensixOperand:
    exponent_bits, fraction_bits, _, _ = FLOATS[fmt]
    code >>= 13 if fmt == "tf32" else 0
    exponent = code >> fraction_bits & ((1 << exponent_bits) - 1)
    fraction = Fraction(code & ((1 << fraction_bits) - 1), 1 << fraction_bits)
    return TensixOperand(bool(code >> (exponent_bits + fraction_bits)), 1 + fraction, exponent)


def tensix_high(x: Fraction, fraction_bits: int) -> Fraction:
    return Fraction(floor(x * 2**fraction_bits), 2**fraction_bits)


def tensix(
    fa: str, fb: str, d: str, phases: Sequence[int], wormhole: bool, group: int = 8
) -> Callable[..., int]:
    """Dst += SrcA . SrcB, phase after phase, as the source of the vendor's simulator has it. Exponents are
    biased as Dst's are: by 127, by 15 in a Dst of f16."""
    bias = FLOATS[d][2]
    own = FLOATS[fa][2]
    narrow = d != "f32"

    def grouped(a: Sequence[int], b: Sequence[int], phase: int) -> tuple[Fraction, int]:
        """One sum of products, in units of 2**-bias, and its exponent."""
        lowered = 5 * (phase & 1) + 7 * (phase >> 1)
        adjust = bias - 2 * own - lowered
        terms = []
        for x, y in ((tensix_operand(fa, i), tensix_operand(fb, j)) for i, j in zip(a, b, strict=True)):
            if x.zero or y.zero:
                terms.append((Fraction(0), max(adjust, 0)))
                continue
            p, q = tensix_high(x.significand, 4), tensix_high(y.significand, 6)
            p = tensix_high(x.significand, 9) - p if phase & 1 else p
            q = y.significand - q if phase & 2 else q
            sign = -1 if x.negative != y.negative else 1
            e = x.exponent + y.exponent + adjust
            terms.append((sign * p * q * two(e + lowered), e))
        e_max = max(e for _, e in terms)
        if e_max <= 0:
            return Fraction(0), 0
        unit = two(e_max - 10)
        return sum((to_integer(x / unit, "nearest_away") * unit for x, _ in terms), Fraction(0)), e_max

    def run(a: Sequence[int], b: Sequence[int], c: int) -> int:
        for phase in phases:
            c = once(a, b, c, phase)
        return c

    def once(a: Sequence[int], b: Sequence[int], c: int, phase: int) -> int:
        groups = [grouped(a[k : k + group], b[k : k + group], phase) for k in range(0, len(a), group)]
        dst = tensix_operand(d, c)
        value = Fraction(0) if dst.zero else dst.significand * two(dst.exponent) * (-1) ** dst.negative
        e = max(dst.exponent, *(own for _, own in groups))
        sums = [x for x, _ in groups]
        for bits in (23, 10) if narrow else (23,):
            unit = two(e - bits)
            sums = [to_integer(x / unit, "nearest_up") * unit for x in sums]
            value = to_integer(value / unit, "nearest_away") * unit
        total = sum(sums, value)
        if wormhole and not narrow and total == -two(e - 23):
            total = -two(e + 4)
        return tensix_result(d, total)

    return run


def tensix_result(d: str, total: Fraction) -> int:
    """A total in units of 2**-bias as a code of Dst."""
    exponent_bits, fraction_bits, _, _ = FLOATS[d]
    if total == 0:
        return 0
    unit = two(log2_floor(total) - fraction_bits)
    rounded = abs(to_integer(total / unit, "nearest_away")) * unit
    exponent = log2_floor(rounded)
    sign = int(total < 0) << (exponent_bits + fraction_bits)
    if exponent <= 0:
        return 0
    most = (1 << exponent_bits) - (d != "f16")  # f16: all exponents are numbers
    if exponent >= most:
        return sign | (0x7FFF if d == "f16" else ((1 << exponent_bits) - 1) << fraction_bits)
    return sign | exponent << fraction_bits | int((rounded / two(exponent) - 1) * 2**fraction_bits)


def sign_and_magnitude(code: int, bits: int) -> int:
    magnitude = code & ((1 << (bits - 1)) - 1)
    return -magnitude if code >> (bits - 1) & 1 else magnitude


def tensix_integers(phases: Sequence[int]) -> Callable[..., int]:
    """The same of integers: bits 7 to 5 or 4 to 0 of SrcA's magnitude, 9 to 4 or 3 to 0 of SrcB's; the exact
    sum saturates after each phase."""

    def part(x: int, mask: int) -> int:
        return -(-x & mask) if x < 0 else x & mask

    def run(a: Sequence[int], b: Sequence[int], c: int) -> int:
        total = sign_and_magnitude(c, 32)
        for phase in phases:
            masks = 0x1F if phase & 1 else 0xE0, 0xF if phase & 2 else 0x3F0
            for x, y in zip(a, b, strict=True):
                total += part(sign_and_magnitude(x, 11), masks[0]) * part(sign_and_magnitude(y, 11), masks[1])
            total = max(1 - 2**31, min(2**31 - 1, total))
        return abs(total) | (total < 0) << 31

    return run
