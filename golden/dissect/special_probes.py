"""Probes of special values: zeros, NaNs, infinities, overflow, subnormal numbers, ignored bits and scales.

As in `golden/dissect/probes.py` a probe knows formats and K alone, and says what it saw in words.
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

from golden import stimuli
from golden.dissect.probes import Shot, Unit, Unreachable, exact_code
from golden.explain.numbers import hex_text, power_text
from golden.explain.trace import describe_code
from golden.number.formats import Format, Kind

_PAYLOAD = 0x5
"""Low bits of the NaN that shows whether payloads are handed on."""


def shown(unit: Unit, shot: Shot) -> str:
    """A result in a few characters: +0, -0, +inf, its NaN word, or its value."""
    number = unit.number(shot)
    return hex_text(unit.d, shot.code) if number.kind == Kind.NAN else describe_code(unit.d, shot.code)


# Zeros ------------------------------------------------------------------------------------------------------


def zeros(unit: Unit) -> dict[str, str]:
    """The signs of zero results: of zeros that are all negative, of terms that cancel, of a negative total
    that underflows."""
    found = {}
    operands = unit.zeros()
    operands["b"][...] = exact_code(unit.ins.formats["b"], -1)
    operands["c"][...] = exact_code(unit.ins.formats["c"], -0.0)
    found["all -0"] = shown(unit, unit.run("every product 0 x -1 = -0, c = -0", operands))
    found["1 - 1"] = shown(unit, unit.fire("1 - 1, c = -0", {unit.slots[0]: 1, unit.slots[1]: -1}, -0.0))
    with suppress(Unreachable):
        tiny = -(Fraction(2) ** (unit.d.min_exponent - unit.d.fraction_bits - 3))
        found["underflow"] = shown(
            unit, unit.fire("a negative total of an eighth of the least subnormal", {unit.slots[-1]: tiny})
        )
    return found


# NaN and infinity -------------------------------------------------------------------------------------------


def generated_nans(unit: Unit) -> dict[str, str]:
    """The words of NaNs made from numbers: 0 x infinity and infinity - infinity, where the formats have
    infinities."""
    a, b, c, d = (unit.ins.formats[name] for name in "abcd")
    found = {}
    if a.infinity is not None:
        operands = unit.zeros()
        operands["a"][0] = a.infinity
        found["inf x 0"] = shown(unit, unit.run("inf x 0", operands))
        operands = unit.zeros()
        operands["a"][0], operands["b"][0] = a.infinity, exact_code(b, -1)
        operands["c"][...] = c.infinity or 0
        found["inf - inf"] = shown(unit, unit.run("c = inf, a product inf x -1", operands))
    elif a.nan is not None:
        operands = unit.zeros()
        operands["a"][0] = a.nan
        found["NaN in a"] = shown(unit, unit.run("a NaN in a", operands))
    else:
        operands = unit.zeros()
        operands["c"][...] = d.nan or 0
        found["NaN in c"] = shown(unit, unit.run("a NaN in c", operands))
    return found


def payload_kept(unit: Unit) -> bool:
    """Whether the low bits of a NaN in c, quiet or signalling, stand in the result."""
    c = unit.ins.formats["c"]
    kept = []
    for kind, code in (("quiet", c.nan or 0), ("signalling", c.infinity or 0)):
        operands = unit.zeros()
        operands["c"][...] = code | _PAYLOAD
        shot = unit.run(f"a {kind} NaN with payload {_PAYLOAD} in c", operands)
        kept.append(unit.number(shot).kind == Kind.NAN and shot.code & 0xF == _PAYLOAD)
    return all(kept)


# Overflow ---------------------------------------------------------------------------------------------------


def overflow(unit: Unit) -> str:
    """What a total of one place above the largest number becomes.

    Raises:
        Unreachable: no product is large enough.
    """
    c = unit.ins.formats["c"]
    place = Fraction(2) ** (unit.d.max_exponent - unit.d.fraction_bits)
    largest = c.decode(c.largest).value
    return shown(
        unit,
        unit.fire("c = the largest number, a product of its last place", {unit.slots[0]: place}, largest),
    )


def inner_overflow(unit: Unit) -> dict[str, str]:
    """What happens to products and sums past the largest exponent of d that cancel in the same step.

    Raises:
        Unreachable: no product is large enough.
    """
    top = Fraction(2) ** (unit.d.max_exponent + 1)
    first, second = unit.slots[:2]
    half = unit.fire(
        "c = 2^e_max, a product of 2^e_max, another of -2^e_max", {first: top / 2, second: -top / 2}, top / 2
    )
    found = {"sum": shown(unit, half)}
    with suppress(Unreachable):
        found["product"] = shown(
            unit, unit.fire("products of 2^(e_max + 1) and -2^(e_max + 1)", {first: top, second: -top})
        )
    return found


# Subnormal numbers ------------------------------------------------------------------------------------------


def subnormals(unit: Unit, bits: int) -> dict[str, str]:
    """Whether subnormal a, c and results count: "kept" or what they become; those that cannot be made are
    left out.

    Args:
        bits: fraction bits of results.
    """
    found = {}
    a, b, c, d = (unit.ins.formats[name] for name in "abcd")
    if a.is_float and a.has_zero and a.fraction_bits:
        operands = unit.zeros()
        partner = Fraction(2) ** b.max_exponent
        operands["a"][0], operands["b"][0] = 1 << a.ignored_low, exact_code(b, partner)
        wanted = Fraction(2) ** stimuli.tiniest_exponent(a) * partner
        found["a"] = _kept(
            unit, unit.run("the least subnormal a against the largest power of two in b", operands), wanted
        )
    least = Fraction(2) ** (c.min_exponent - bits)
    found["c"] = _kept(unit, unit.fire("a subnormal c alone", {}, least), least)
    with suppress(Unreachable):
        normal = Fraction(2) ** d.min_exponent
        shot = unit.fire(
            "1.5 and -1 times the least normal number",
            {unit.slots[0]: normal * Fraction(3, 2), unit.slots[1]: -normal},
        )
        found["result"] = _kept(unit, shot, normal / 2)
    return found


def _kept(unit: Unit, shot: Shot, wanted: Fraction) -> str:
    return "kept" if unit.value(shot) == wanted else f"{shown(unit, shot)}"


# Integers ---------------------------------------------------------------------------------------------------


def bit_table(unit: Unit) -> tuple[int, ...]:
    """What a = 0, 0, 1, 1 and b = 0, 1, 0, 1 add to a zero c, all other bits being zero."""
    counts = []
    for x, y in ((0, 0), (0, 1), (1, 0), (1, 1)):
        operands = unit.zeros()
        operands["a"][0], operands["b"][0] = x, y
        counts.append(unit.run(f"a = {x}, b = {y}", operands).code)
    return tuple(counts)


def _pairs(unit: Unit) -> dict[int, tuple[int, int]]:
    """Codes of a and b by what they add to the sum, found by trying the least and largest codes, 0, 1 and
    -1."""
    a, b = (unit.ins.formats[name] for name in "ab")
    found: dict[int, tuple[int, int]] = {}
    for x in _codes(a):
        for y in _codes(b):
            operands = unit.zeros()
            operands["a"][0], operands["b"][0] = x, y
            found.setdefault(_integer(unit, unit.run("one product", operands)), (x, y))
    return found


def _codes(fmt: Format) -> list[int]:
    top = 1 << (fmt.bits - 1)
    return list(dict.fromkeys((1, 0, 2 * top - 1, top, top - 1)))


def _integer(unit: Unit, shot: Shot) -> int:
    return shot.code - (1 << unit.d.bits) if shot.code >> (unit.d.bits - 1) else shot.code


def _sum(unit: Unit, what: str, products: dict[int, tuple[int, int]], c: int) -> int:
    """c and products (codes of a and b by k), the others as in `Unit.zeros`."""
    operands = unit.zeros()
    for k, (x, y) in products.items():
        operands["a"][k], operands["b"][k] = x, y
    operands["c"][...] = c & ((1 << unit.d.bits) - 1)
    return _integer(unit, unit.run(what, operands))


def integer_overflow(unit: Unit) -> str:
    """What a sum of one more than the largest number becomes, and one less than the least where products
    can be negative."""
    pairs, top = _pairs(unit), 1 << (unit.d.bits - 1)
    unit.shots = []
    found = [_sum(unit, "c = the largest number, one product 1", {0: pairs[1]}, top - 1)]
    kinds = {top - 1: "saturates", -top: "wraps"}
    kind = kinds.get(found[0], "?")
    if -1 in pairs:
        below = _sum(unit, "c = the least number, one product -1", {0: pairs[-1]}, -top)
        kind = kind if {-top: "saturates", top - 1: "wraps"}.get(below) == kind else "?"
    return kind


def integer_range(unit: Unit) -> tuple[int, int]:
    """The sums of K products that are all the least, and all the largest."""
    pairs = _pairs(unit)
    unit.shots = []
    low, high = (
        _sum(unit, f"every product {value:,}", dict.fromkeys(range(unit.ins.k), pairs[value]), 0)
        for value in (min(pairs), max(pairs))
    )
    return low, high


def integer_cancelling(unit: Unit) -> bool:
    """Whether products that cancel do so at both ends of the range, wherever the second stands."""
    pairs, top, last = _pairs(unit), 1 << (unit.d.bits - 1), unit.ins.k - 1
    unit.shots = []
    held = True
    for name, end, step in (("largest", top - 1, 1), ("least", -top, -1)):
        for other in (1, last):
            what = f"c = the {name} number, {step} at k = 0, {-step} at k = {other}"
            held &= _sum(unit, what, {0: pairs[step], other: pairs[-step]}, end) == end
    return held


# Formats ----------------------------------------------------------------------------------------------------


def ignored_bits(unit: Unit) -> dict[str, str]:
    """What the ignored low bits of a (tf32) do: beside 1, and in a NaN."""
    a, b = unit.ins.formats["a"], unit.ins.formats["b"]
    found = {}
    low = (1 << a.ignored_low) - 1
    for what, code in (("1 + low bits", exact_code(a, 1) | low), ("NaN in low bits", (a.infinity or 0) | 1)):
        operands = unit.zeros()
        operands["a"][0], operands["b"][0] = code, exact_code(b, 1)
        found[what] = shown(unit, unit.run(f"a = {code:#010x}, b = 1", operands))
    return found


def scale_codes(fmt: Format) -> list[int]:
    """The scales that are tried: code 0, code 1, and one with the ignored bit set."""
    return [0, 1, *([exact_code(fmt, 1) | 1 << (fmt.bits - 1)] if fmt.ignored_high else [])]


def scales(unit: Unit) -> dict[str, str]:
    """What special scales do: the NaN beside data that are all zero, then 1 x 1 with `scale_codes`."""
    fmt = unit.ins.formats["scale_a"]
    operands = unit.zeros()
    operands["scale_a"][0] = fmt.nan or 0
    found = {hex_text(fmt, fmt.nan or 0): shown(unit, unit.run("a NaN scale, all data zero", operands))}
    for code in scale_codes(fmt):
        operands = unit.zeros()
        operands["a"][0], operands["b"][0] = (exact_code(unit.ins.formats[name], 1) for name in "ab")
        operands["scale_a"][0] = code
        shot = unit.run(f"1 x 1 with scale {hex_text(fmt, code)}", operands)
        number = unit.number(shot)
        found[hex_text(fmt, code)] = power_text(number) if number.kind < Kind.INFINITY else shown(unit, shot)
    return found
