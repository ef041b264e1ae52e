"""Thirty dot product units, written as a datapath would be: registers of integers, shifted, cut and added.

Black boxes for the tests of golden.dissect. Whoever wrote them had not read the search, and it never reads
them.
`UNITS` at the end says what formats and K each one has.
"""

import numpy as np

INT = np.int64
NO_EXPONENT = -(1 << 20)

# registers ------------------------------------------------------------------------------------------------

FIELDS = {  # exponent bits, fraction bits, bias
    "f32": (8, 23, 127),
    "bf16": (8, 7, 127),
    "f16": (5, 10, 15),
    "e5m2": (5, 2, 15),
    "e4m3": (4, 3, 7),
    "e2m1": (2, 1, 1),
}


class Reg:
    """sign, significand, exponent of its last bit; flags for what is no number. All arrays of one shape."""

    def __init__(self, sign, sig, lsb, nan=None, inf=None):
        self.sign, self.sig, self.lsb = sign, sig, lsb
        self.nan = np.zeros(sig.shape, bool) if nan is None else nan
        self.inf = np.zeros(sig.shape, bool) if inf is None else inf

    def __getitem__(self, at):
        return Reg(self.sign[at], self.sig[at], self.lsb[at], self.nan[at], self.inf[at])


def load(code, kind, daz=False):
    """Codes to registers; daz reads subnormals as zero."""
    eb, fb, bias = FIELDS[kind]
    code = code.astype(INT)
    sign = (code >> (eb + fb)) & 1
    e = (code >> fb) & ((1 << eb) - 1)
    f = code & ((1 << fb) - 1)
    top = (1 << eb) - 1
    nan = inf = np.zeros(code.shape, bool)
    if kind in ("f32", "bf16", "f16", "e5m2"):
        nan, inf = (e == top) & (f != 0), (e == top) & (f == 0)
    elif kind == "e4m3":
        nan = (e == top) & (f == (1 << fb) - 1)
    sub = e == 0
    sig = np.where(sub, 0 if daz else f, f | (1 << fb))
    sig = np.where(nan | inf, 0, sig)
    return Reg(sign, sig, np.where(sub, 1, e) - bias - fb, nan, inf)


def multiply(x, y):
    zero_x = (x.sig == 0) & ~x.inf & ~x.nan
    zero_y = (y.sig == 0) & ~y.inf & ~y.nan
    nan = x.nan | y.nan | (x.inf & zero_y) | (y.inf & zero_x)
    return Reg(x.sign ^ y.sign, x.sig * y.sig, x.lsb + y.lsb, nan, (x.inf | y.inf) & ~nan)


def join(*parts):
    """Side by side, as columns."""
    parts = [Reg(*(v.reshape(len(v), -1) for v in (p.sign, p.sig, p.lsb, p.nan, p.inf))) for p in parts]
    return Reg(
        *(np.concatenate([getattr(p, n) for p in parts], 1) for n in ("sign", "sig", "lsb", "nan", "inf"))
    )


def special(terms):
    """Is the sum NaN, +inf, -inf?"""
    plus = (terms.inf & (terms.sign == 0)).any(1)
    minus = (terms.inf & (terms.sign == 1)).any(1)
    nan = terms.nan.any(1) | (plus & minus)
    return nan, plus & ~nan, minus & ~nan


def right(v, n):
    """v >> n of anything, n up to what it likes; left where n is negative."""
    return np.where(n >= 0, v >> np.clip(n, 0, 62), v << np.clip(-n, 0, 62))


def bits(m):
    """Length in bits of a number that is not negative."""
    n = np.frexp(m.astype(float))[1].astype(INT)
    return np.where((n > 0) & (m < (INT(1) << np.clip(n - 1, 0, 62))), n - 1, n)


def shrink(m, n, how, sign):
    """m / 2**n as an integer: 'cut', 'even', 'away' (halves away from zero), 'up', 'down', 'odd'."""
    n = np.minimum(n, 62)
    q = right(m, n)
    rest = np.where(n > 0, m - (q << np.clip(n, 0, 62)), 0)
    half = np.where(n > 0, INT(1) << np.clip(n - 1, 0, 62), 1)
    if how == "even":
        more = (rest > half) | ((rest == half) & (q & 1 == 1))
    elif how == "away":
        more = rest >= half
    elif how == "up":
        more = (rest > 0) & (sign == 0)
    elif how == "down":
        more = (rest > 0) & (sign == 1)
    elif how == "odd":
        return q | (rest > 0)
    else:
        return q
    return q + (more & (n > 0))


def store(sign, m, lsb, kind, how="even", ftz=False, clamp=False):
    """sign * m * 2**lsb as codes."""
    eb, fb, bias = FIELDS[kind]
    t = np.maximum(lsb + bits(m) - 1 - fb, 1 - bias - fb)
    q = shrink(m, t - lsb, how, sign)
    carry = q >> (fb + 1) > 0
    q, t = np.where(carry, q >> 1, q), t + carry
    e = np.where(q >> fb > 0, t + bias + fb, 0)
    code = (np.maximum(e, 0) << fb) + (q & ((1 << fb) - 1))
    huge = (((1 << eb) - 1) << fb) - (1 if clamp else 0)
    code = np.where(e >= (1 << eb) - 1, huge, code)
    if ftz:
        code = np.where(e == 0, 0, code)
    return code | (sign << (eb + fb))


def finish(code, terms, kind, nan_code):
    eb, fb, _ = FIELDS[kind]
    top = ((1 << eb) - 1) << fb
    nan, plus, minus = special(terms)
    code = np.where(plus, top, np.where(minus, top | 1 << (eb + fb), np.where(nan, nan_code, code)))
    return code.astype({8: np.uint8, 16: np.uint16, 32: np.uint32}[1 + eb + fb])


def line_up(terms, keep, how="cut", zeros=False, floor=None):
    """Brings every term to `keep` bits below the largest exponent; returns signed integers and their unit.

    The exponent of a product is the sum of its factors' exponents, normalised or not: here, `lsb` + `width`.
    """
    top = terms.lsb + terms.width
    live = np.ones(top.shape, bool) if zeros else terms.sig > 0
    most = np.where(live, top, NO_EXPONENT).max(1)
    if floor is not None:
        most = np.maximum(most, floor)
    unit = np.where(most == NO_EXPONENT, 0, most - keep)
    away = np.where(terms.sig > 0, unit[:, None] - terms.lsb, 0)
    if how == "floor":
        signed = np.where(terms.sign == 1, -terms.sig, terms.sig)
        return right(signed, np.minimum(away, 62)), unit
    whole = shrink(terms.sig, away, how, terms.sign)
    return np.where(terms.sign == 1, -whole, whole), unit


def widths(*columns):
    """Terms with the number of fraction bits that each column's format has."""
    terms = join(*(reg for reg, _ in columns))
    terms.width = np.concatenate(
        [np.full(reg.sig.reshape(len(reg.sig), -1).shape, w, INT) for reg, w in columns], axis=1
    )
    return terms


def signed(total, zero_sign=0):
    return np.where(total == 0, zero_sign, (total < 0).astype(INT)), np.abs(total)


def fused(a, b, c, fmt, keep, out="f32", how="cut", store_how="cut", nan=0x7FFFFFFF, **more):
    """All products and c in one register."""
    fb = FIELDS[fmt][1]
    terms = widths((multiply(load(a, fmt), load(b, fmt)), 2 * fb), (load(c, out), FIELDS[out][1]))
    ints, unit = line_up(terms, keep, how, **more)
    sign, m = signed(ints.sum(1))
    return finish(store(sign, m, unit, out, store_how), terms, out, nan)


# 1 to 9: one register -------------------------------------------------------------------------------------


def volta_like(a, b, c):
    return fused(a, b, c, "f16", 23)


def one_guard(a, b, c):
    return fused(a, b, c, "f16", 24)


def guards_and_even(a, b, c):
    """Two guard bits; the end result goes to the nearest."""
    return fused(a, b, c, "bf16", 25, store_how="even", nan=0x7FC00000)


def floor_shifters(a, b, c):
    """Two's complement first, then the shift: everything falls toward minus infinity."""
    return fused(a, b, c, "f16", 26, how="floor", store_how="even", nan=0x7FC00000)


def jammed(a, b, c):
    """What a shifter loses is kept as the last bit."""
    return fused(a, b, c, "f16", 27, how="odd", store_how="even", nan=0x7FC00000)


def near_shifters(a, b, c):
    """Each shifted term goes to the nearest, halves away from zero."""
    return fused(a, b, c, "f16", 20, how="away", store_how="cut")


def eight_bits(a, b, c):
    """FP8 with 13 bits below the top."""
    return fused(a, b, c, "e4m3", 13)


def eight_bits_wide_range(a, b, c):
    return fused(a, b, c, "e5m2", 16, store_how="even")


def half_result(a, b, c):
    """c and d in f16."""
    return fused(a, b, c, "f16", 24, out="f16", store_how="even", nan=0x7FFF)


# 10 to 14: several registers ------------------------------------------------------------------------------


def _steps(a, b, c, groups, keep, fmt="f16", how="cut"):
    """Group after group; each result is a code in f32 that the next group takes as its c."""
    for group in groups:
        c = fused(a[:, group], b[:, group], c, fmt, keep, store_how=how)
    return c


def two_halves(a, b, c):
    return _steps(a, b, c, [[0, 1, 2, 3], [4, 5, 6, 7]], 24)


def evens_then_odds(a, b, c):
    return _steps(a, b, c, [[0, 2, 4, 6], [1, 3, 5, 7]], 24)


def last_pair_first(a, b, c):
    return _steps(a, b, c, [[6, 7], [4, 5], [2, 3], [0, 1]], 25, "bf16", "even")


def dot_then_add(a, b, c):
    """The products' register is rounded to f32, then an ordinary adder adds c."""
    x, y = load(a, "f16"), load(b, "f16")
    terms = widths((multiply(x, y), 20))
    ints, unit = line_up(terms, 30)
    sign, m = signed(ints.sum(1))
    dot = finish(store(sign, m, unit, "f32", "even"), terms, "f32", 0x7FC00000)
    with np.errstate(all="ignore"):
        d = dot.view(np.float32) + c.view(np.float32)
    return np.where(np.isnan(d), np.uint32(0x7FC00000), d.view(np.uint32))


def sparse_top(a, b, c):
    """The largest exponent is also looked for among terms that are zero."""
    return fused(a, b, c, "f16", 24, zeros=True)


# 15 to 20: multipliers and adders, one at a time ----------------------------------------------------------


def _canon(d, code=0x7FC00000):
    d = np.asarray(d, np.float32)
    return np.where(np.isnan(d), np.uint32(code), d.view(np.uint32))


def _products(a, b):
    with np.errstate(all="ignore"):
        return a.view(np.float16).astype(np.float32) * b.view(np.float16).astype(np.float32)


def ascending(a, b, c):
    with np.errstate(all="ignore"):
        d = c.view(np.float32)
        for p in _products(a, b).T:
            d = d + p
    return _canon(d)


def late_c(a, b, c):
    with np.errstate(all="ignore"):
        p = _products(a, b)
        d = p[:, 0]
        for k in range(1, p.shape[1]):
            d = d + p[:, k]
        return _canon(d + c.view(np.float32))


def two_lanes(a, b, c):
    """c starts the first lane, zero the second."""
    with np.errstate(all="ignore"):
        p = _products(a, b)
        even, odd = c.view(np.float32), np.zeros(len(p), np.float32)
        for k in range(0, p.shape[1], 2):
            even, odd = even + p[:, k], odd + p[:, k + 1]
        return _canon(even + odd)


def all_half(a, b, c):
    """Multiplies and adds in f16, rounding after each."""
    with np.errstate(all="ignore"):
        d = c.view(np.float16)
        for x, y in zip(a.T, b.T, strict=True):
            d = d + np.ascontiguousarray(x).view(np.float16) * np.ascontiguousarray(y).view(np.float16)
    return np.where(np.isnan(d), np.uint16(0x7E00), d.view(np.uint16))


def flushing(a, b, c):
    """bf16 pairs; subnormals are zero on the way in, and wherever f32 is written (products too)."""
    x, y = load(a, "bf16", daz=True), load(b, "bf16", daz=True)
    p = multiply(x, y)
    terms = join(p, load(c, "f32"))

    def flush(v):
        return np.where(np.abs(v) < np.float32(2.0**-126), np.copysign(np.float32(0), v), v).astype(
            np.float32
        )

    with np.errstate(all="ignore"):
        f = np.where(p.sign == 1, -1.0, 1.0) * p.sig * np.exp2(p.lsb.astype(float))
        single = flush(f.astype(np.float32))
        d = flush(c.view(np.float32))
        for k in range(0, single.shape[1], 2):
            pair = flush(single[:, k] + single[:, k + 1])
            d = flush(d + pair)
    return finish(_canon(d).astype(INT), terms, "f32", 0x7FC00000)


def square_tree(a, b, c):
    """Neighbours, then neighbours of neighbours, in f64; c comes last."""
    with np.errstate(all="ignore"):
        row = a.view(np.float64) * b.view(np.float64)
        while row.shape[1] > 1:
            row = row[:, 0::2] + row[:, 1::2]
        d = row[:, 0] + c.view(np.float64)
    return np.where(np.isnan(d), np.uint64(0x7FF8000000000000), d.view(np.uint64))


# 21 to 25: integers ---------------------------------------------------------------------------------------


def wraps(a, b, c):
    total = (a.view(np.int8).astype(INT) * b.view(np.int8)).sum(1) + c.view(np.int32)
    return (total & 0xFFFFFFFF).astype(np.uint32)


def clamps_in_two(a, b, c):
    """Saturates after each half."""
    d = c.view(np.int32).astype(INT)
    p = a.astype(INT) * b.view(np.int8)
    for half in np.split(p, 2, axis=1):
        d = np.clip(d + half.sum(1), -(2**31), 2**31 - 1)
    return (d & 0xFFFFFFFF).astype(np.uint32)


def sixteen_bit_dots(a, b, c):
    """Pairs saturate into 16 bits, as an old multimedia instruction does, and then join a wrapping sum."""
    p = a.astype(INT) * b.view(np.int8)
    pairs = np.clip(p[:, 0::2] + p[:, 1::2], -(2**15), 2**15 - 1)
    return ((pairs.sum(1) + c.view(np.int32)) & 0xFFFFFFFF).astype(np.uint32)


def nibbles(a, b, c):
    """Four bits; what stands above them in the byte is not looked at."""
    x, y = a.astype(INT) & 15, b.astype(INT) & 15
    x, y = x - 16 * (x > 7), y - 16 * (y > 7)
    return (((x * y).sum(1) + c.view(np.int32)) & 0xFFFFFFFF).astype(np.uint32)


def counted_bits(a, b, c):
    """One bit each: how many pairs differ."""
    return ((((a ^ b) & 1).astype(INT).sum(1) + c.view(np.int32)) & 0xFFFFFFFF).astype(np.uint32)


# 26 to 30: faults and oddities ----------------------------------------------------------------------------


def forgetful_infinity(a, b, c):
    """Too large becomes the largest number; infinities in the operands still come out as such."""
    terms = widths((multiply(load(a, "f16"), load(b, "f16")), 20), (load(c, "f32"), 23))
    ints, unit = line_up(terms, 25)
    sign, m = signed(ints.sum(1))
    return finish(store(sign, m, unit, "f32", "cut", clamp=True), terms, "f32", 0x7FFFFFFF)


def narrow_sum(a, b, c):
    """A designer's slip: the adder tree has 26 bits, and a carry beyond them is lost."""
    terms = widths((multiply(load(a, "f16"), load(b, "f16")), 20), (load(c, "f32"), 23))
    ints, unit = line_up(terms, 23)
    total = ((ints.sum(1) + (1 << 25)) & ((1 << 26) - 1)) - (1 << 25)
    sign, m = signed(total)
    return finish(store(sign, m, unit, "f32", "cut"), terms, "f32", 0x7FFFFFFF)


def no_subnormal_c(a, b, c):
    """Operands keep their subnormals, c loses them, d too."""
    c_reg = load(c, "f32", daz=True)
    terms = widths((multiply(load(a, "f16"), load(b, "f16")), 20), (c_reg, 23))
    ints, unit = line_up(terms, 24)
    sign, m = signed(ints.sum(1))
    return finish(store(sign, m, unit, "f32", "cut", ftz=True), terms, "f32", 0x7FFFFFFF)


def block_scaled(a, b, c, scale_a, scale_b):
    """FP4 with one power of two for each operand: products are exact, 2**(scale) on top, then 25 bits."""
    p = multiply(load(a, "e2m1"), load(b, "e2m1"))
    both = scale_a.astype(INT).reshape(len(a), -1)[:, 0] + scale_b.astype(INT).reshape(len(a), -1)[:, 0] - 254
    none = (scale_a.reshape(len(a), -1)[:, 0] == 255) | (scale_b.reshape(len(a), -1)[:, 0] == 255)
    p.lsb = p.lsb + both[:, None]
    p.nan = p.nan | none[:, None]
    terms = widths((p, 2), (load(c, "f32"), 23))
    ints, unit = line_up(terms, 25)
    sign, m = signed(ints.sum(1))
    return finish(store(sign, m, unit, "f32", "cut"), terms, "f32", 0x7FFFFFFF)


def stuck_wire(a, b, c):
    """A mutant: bit 3 of a's third element reads as zero."""
    a = a.copy()
    a[:, 2] &= np.uint16(0xFFF7)
    return fused(a, b, c, "f16", 24)


F16 = {"a": "f16", "b": "f16", "c": "f32", "d": "f32"}
BF16 = {"a": "bf16", "b": "bf16", "c": "f32", "d": "f32"}
HALF = dict.fromkeys("abcd", "f16")


def _ints(a, b):
    return {"a": a, "b": b, "c": "s32", "d": "s32"}


UNITS = {
    "volta_like": (F16, 4),
    "one_guard": (F16, 8),
    "guards_and_even": (BF16, 8),
    "floor_shifters": (F16, 4),
    "jammed": (F16, 4),
    "near_shifters": (F16, 4),
    "eight_bits": ({"a": "e4m3", "b": "e4m3", "c": "f32", "d": "f32"}, 16),
    "eight_bits_wide_range": ({"a": "e5m2", "b": "e5m2", "c": "f32", "d": "f32"}, 8),
    "half_result": (HALF, 4),
    "two_halves": (F16, 8),
    "evens_then_odds": (F16, 8),
    "last_pair_first": (BF16, 8),
    "dot_then_add": (F16, 4),
    "sparse_top": (F16, 4),
    "ascending": (F16, 8),
    "late_c": (F16, 6),
    "two_lanes": (F16, 8),
    "all_half": (HALF, 4),
    "flushing": (BF16, 4),
    "square_tree": (dict.fromkeys("abcd", "f64"), 4),
    "wraps": (_ints("s8", "s8"), 16),
    "clamps_in_two": (_ints("u8", "s8"), 8),
    "sixteen_bit_dots": (_ints("u8", "s8"), 4),
    "nibbles": (_ints("s4", "s4"), 8),
    "counted_bits": (_ints("b1", "b1"), 32),
    "forgetful_infinity": (F16, 4),
    "narrow_sum": (F16, 4),
    "no_subnormal_c": (F16, 8),
    "block_scaled": (
        {"a": "e2m1", "b": "e2m1", "c": "f32", "d": "f32", "scale_a": "ue8m0", "scale_b": "ue8m0"},
        16,
    ),
    "stuck_wire": (F16, 4),
}
