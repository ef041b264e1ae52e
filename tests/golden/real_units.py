"""The dot products of RDNA3, RDNA4, AMX and AVX-512, written from their descriptions alone, in exact
rationals.

Nothing here reads a spec or runs a step of the package; formats and the rounding of a rational to a code are
those of golden.number, which tests of their own hold.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

from golden.model.instruction import Instruction
from golden.number.formats import Format, Kind, Number, get_format
from golden.number.rounding import encode_fraction

F32 = get_format("f32")
OPERAND_NAN = {"f32": 0xFFC00A3D, "f16": 0xFE3D, "bf16": 0xFFFD}
INVALID = {"f32": 0xFFC00000, "f16": 0xFE00, "bf16": 0xFFC0}
Dot = Callable[[Sequence[int], Sequence[int], int], int]


# Operands ---------------------------------------------------------------------------------------------------


def codes(rng: random.Random, fmt: Format, low: int, high: int) -> int:
    """A random code: any bits, or a number with an exponent from low to high."""
    if rng.random() < 0.15 or not fmt.is_float:
        return rng.randrange(1 << fmt.bits)
    if rng.random() < 0.1:
        return rng.choice((0, 1 << (fmt.bits - 1), 1, fmt.largest, (1 << (fmt.bits - 1)) | 1))
    exponent = min(max(rng.randint(low, high), fmt.min_exponent), fmt.max_exponent)
    fields = (exponent + fmt.bias) << fmt.fraction_bits | rng.randrange(1 << fmt.fraction_bits)
    return rng.randrange(2) << fmt.sign_shift | fields


def draw(ins: Instruction, rng: random.Random) -> dict[str, list[int] | int]:
    """Operands of one dot product: random ones, exponents near each other, sometimes products that cancel."""
    centre = (
        rng.choice((0, 0, -60)) + rng.randint(-14, 14) if ins.formats["a"].bits == 16 else rng.randint(-5, 5)
    )
    spread = rng.choice((1, 4, 12, 28))
    c = codes(rng, ins.formats["c"], 2 * centre - spread, 2 * centre + spread)
    low, high = centre - spread, centre + spread
    a, b = ([codes(rng, ins.formats[name], low, high) for _ in range(ins.k)] for name in "ab")
    if rng.random() < 0.3:
        for left, right in pairwise(range(0, ins.k, rng.choice((1, 2)))):
            a[right], b[right] = a[left] ^ 1 << (ins.formats["a"].bits - 1), b[left]
    return {"a": a, "b": b, "c": c}


def lead(x: Fraction) -> int:
    """floor(log2 |x|)."""
    x = abs(x)
    found = x.numerator.bit_length() - x.denominator.bit_length()
    return found if Fraction(2) ** found <= x else found - 1


def is_zero(x: Number) -> bool:
    return x.kind == Kind.ZERO


def value(x: Number) -> Fraction:
    return Fraction(0) if is_zero(x) else x.value


# RDNA3 and RDNA4 --------------------------------------------------------------------------------------------


def special(
    xs: Sequence[Number], ys: Sequence[Number], z: Number, c: int, words: tuple[int, int], out: Format
) -> int | None:
    """The answer where a NaN or an infinity is among the terms: by cause, in this order."""
    operand_nan, invalid = words
    if any(n.kind == Kind.NAN for n in (*xs, *ys)):
        return operand_nan
    infinite = [Kind.INFINITY in (x.kind, y.kind) for x, y in zip(xs, ys, strict=True)]
    if any(bad and (is_zero(x) or is_zero(y)) for bad, x, y in zip(infinite, xs, ys, strict=True)):
        return invalid
    found = {x.sign ^ y.sign for bad, x, y in zip(infinite, xs, ys, strict=True) if bad}
    if len(found) == 2:
        return invalid
    if z.kind == Kind.NAN:
        return c | 1 << (out.fraction_bits - 1)
    if z.kind == Kind.INFINITY:
        found.add(z.sign)
    if found:
        return invalid if len(found) == 2 else infinity(out, found.pop())
    return None


def infinity(out: Format, sign: int) -> int:
    return ((1 << out.exponent_bits) - 1) << out.fraction_bits | sign << out.sign_shift


def flushed(x: Number, fmt: Format) -> Number:
    """A subnormal number as a zero of its sign."""
    tiny = x.kind == Kind.FINITE and lead(x.value) < fmt.min_exponent
    return Number(Kind.ZERO, x.sign) if tiny else x


def narrowed(exact: Fraction, out: str, flush: bool) -> int:
    """The result of a step: f32 and f16 rounded to nearest even, bf16 the f32 word without its low half."""
    if not exact:
        return 0
    fmt = get_format("f16" if out == "f16" else "f32")
    if flush and fmt is F32 and rounded_tiny(exact):
        return 0
    code = encode_ieee(exact, fmt)
    if code == 1 << fmt.sign_shift:
        code = 0
    return code >> 16 if out == "bf16" else code


def rdna3_step(fmt: str, out: str) -> Dot:
    """Two products and c in the sign frame of c, one's complement."""
    source, result = get_format(fmt), get_format(out)

    def step(a: Sequence[int], b: Sequence[int], c: int) -> int:
        xs, ys, z = [source.decode(x) for x in a], [source.decode(y) for y in b], result.decode(c)
        if fmt == "bf16":
            xs, ys = [flushed(x, source) for x in xs], [flushed(y, source) for y in ys]
        if out != "f16":
            z = flushed(z, result)
        special_result = special(xs, ys, z, c, (OPERAND_NAN[out], INVALID[out]), result)
        if special_result is not None:
            return special_result
        products = [value(x) * value(y) for x, y in zip(xs, ys, strict=True)]
        if not value(z) and not any(products):
            return 0
        grids = [x.exponent + y.exponent - 24 for x, y, p in zip(xs, ys, products, strict=True) if p]
        grids += [lead(n) - 26 for n in (value(z), *products) if n]
        if out == "f16":
            grids.append(-14 - 26)
        unit, total = Fraction(2) ** max(grids), 0
        signs = [x.sign ^ y.sign for x, y in zip(xs, ys, strict=True)]
        for sign, term in ((z.sign, value(z)), *zip(signs, products, strict=True)):
            m = int(abs(term) / unit)
            total += m if sign == z.sign else -m - 1
        return narrowed(total * unit * (-1) ** z.sign, out, flush=True)

    return step


def rdna4_step(fmts: tuple[str, str], out: str, together: int = 2, invalid: int | None = None) -> Dot:
    """Products aligned and floored `together` at first, then the sums and c."""
    left, right, result = get_format(fmts[0]), get_format(fmts[1]), get_format(out)
    least = -14 if out == "f16" else -126
    words = OPERAND_NAN[out], INVALID[out] if invalid is None else invalid

    def step(a: Sequence[int], b: Sequence[int], c: int) -> int:
        xs, ys, z = [left.decode(x) for x in a], [right.decode(y) for y in b], result.decode(c)
        special_result = special(xs, ys, z, c, words, result)
        if special_result is not None:
            return special_result
        products = [value(x) * value(y) for x, y in zip(xs, ys, strict=True)]
        esum = [x.exponent + y.exponent for x, y in zip(xs, ys, strict=True)]
        sums = []
        for first in range(0, len(products), together):
            group = range(first, first + together)
            live = [esum[k] for k in group if products[k]]
            unit = Fraction(2) ** (max(live) - 24) if live else Fraction(1)
            sums.append(sum(products[k] // unit for k in group) * unit)
        own = value(z)
        g = max(
            max(least, lead(own) if own else least) - 26,
            *(e - 24 for e, p in zip(esum, products, strict=True) if p),
            -10000,
        )
        unit = Fraction(2) ** g
        kept = 0 if g > least and abs(own) < unit and own < 0 else own // unit
        return narrowed((sum(one // unit for one in sums) + kept) * unit, out, flush=False)

    return step


def chained(step: Dot, size: int, order: Sequence[int] | None = None) -> Dot:
    """Links of `size` products, each with the result before as its c."""

    def chain(a: Sequence[int], b: Sequence[int], c: int) -> int:
        ks = list(range(len(a)) if order is None else order)
        for first in range(0, len(ks), size):
            link = ks[first : first + size]
            c = step([a[k] for k in link], [b[k] for k in link], c)
        return c

    return chain


def saturated_twice(a: Sequence[int], b: Sequence[int], c: int) -> int:
    """Integers (signed Python ones): both halves of k are added to c and clamped, one after the other."""
    half = len(a) // 2
    for part in (slice(0, half), slice(half, None)):
        c += sum(x * y for x, y in zip(a[part], b[part], strict=True))
        c = max(-(1 << 31), min(c, (1 << 31) - 1))
    return c


def rounded_tiny(exact: Fraction) -> bool:
    """Whether the number, rounded to 24 bits with any exponent, is below 2**-126."""
    place = Fraction(2) ** (lead(exact) - 23)
    rounded = round(abs(exact) / place) * place  # Fractions round to even
    return rounded < Fraction(2) ** -126


def encode_ieee(exact: Fraction, fmt: Format = F32) -> int:
    """Nearest even; past the largest number: infinity."""
    top = Fraction(2) ** fmt.max_exponent
    limit = (2 - Fraction(1, 2 << fmt.fraction_bits)) * top
    if abs(exact) >= limit:
        return infinity(fmt, int(exact < 0))
    return encode_fraction(fmt, exact)


# AMX and AVX-512 --------------------------------------------------------------------------------------------


def quiet(code: int) -> int:
    return code | 1 << 22


def is_nan(code: int) -> bool:
    return code & 0x7FFFFFFF > 0x7F800000


def daz(code: int) -> int:
    return code & 0x80000000 if code & 0x7F800000 == 0 else code


def widened(fmt: str, code: int) -> int:
    """A bf16 or f16 code as f32, NaNs with their payload."""
    if fmt == "bf16":
        return code << 16
    number = get_format("f16").decode(code)
    sign = number.sign << 31
    if number.kind == Kind.NAN:
        return sign | 0x7F800000 | (code & 0x3FF) << 13
    if number.kind == Kind.INFINITY:
        return sign | 0x7F800000
    return sign if is_zero(number) else encode_fraction(F32, number.value)


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


def amx(fmt: str) -> Dot:
    """TDPBF16PS, TDPFP16PS: a chain over even and one over odd k, their sum, then c."""

    def dot(a: Sequence[int], b: Sequence[int], c: int) -> int:
        chains = [0, 0]
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            chains[k % 2] = fma(widened(fmt, x), widened(fmt, y), chains[k % 2])
        return fma(c, fma(chains[0], chains[1], None), None)

    return dot


def vdpbf16ps(a: Sequence[int], b: Sequence[int], c: int) -> int:
    """The odd element first, then the even one."""
    for k in (1, 0):
        c = fma(a[k] << 16, b[k] << 16, c)
    return c
