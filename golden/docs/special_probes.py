"""Probes of special values: zeros, NaNs, infinities, overflow, subnormal numbers, ignored bits and scales.

As in `golden/docs/probes.py` a probe knows formats and K alone, and says what it saw in words.
"""

from __future__ import annotations

from fractions import Fraction

from golden import stimuli
from golden.docs.dot_text import hex_text
from golden.docs.probes import Shot, Unit, Unreachable, exact_code
from golden.formats import Kind
from golden.trace import describe

_PAYLOAD = 0x5
"""Low bits of the NaN that shows whether payloads are handed on."""


def shown(unit: Unit, shot: Shot) -> str:
    """A result in a few characters: +0, -0, +inf, its NaN word, or its value."""
    number = unit.number(shot)
    return hex_text(unit.d, shot.code) if number.kind == Kind.NAN else describe(number)


# Zeros -------------------------------------------------------------------------------------------------------------------


def zeros(unit: Unit) -> dict[str, str]:
    """The signs of zero results: of zeros that are all negative, of terms that cancel, of a negative total that underflows."""
    found = {}
    operands = unit.zeros()
    operands["b"][...] = exact_code(unit.ins.formats["b"], -1)
    operands["c"][...] = exact_code(unit.ins.formats["c"], -0.0)
    found["all -0"] = shown(unit, unit.run("every product 0 x -1 = -0, c = -0", operands))
    found["1 - 1"] = shown(unit, unit.fire("1 - 1, c = -0", {unit.slots[0]: 1, unit.slots[1]: -1}, -0.0))
    try:
        tiny = -(Fraction(2) ** (unit.d.min_exponent - unit.d.fraction_bits - 3))
        found["underflow"] = shown(unit, unit.fire("a negative total of an eighth of the least subnormal", {unit.slots[0]: tiny}))
    except Unreachable:
        pass
    return found


# NaN and infinity --------------------------------------------------------------------------------------------------------


def generated_nans(unit: Unit) -> dict[str, str]:
    """The words of NaNs made from numbers: 0 x infinity and infinity - infinity, where the formats have infinities."""
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


def payloads(unit: Unit) -> dict[str, str]:
    """What becomes of the payload of a NaN in c, and of one in a beside it."""
    c = unit.ins.formats["c"]
    quiet = c.nan or 0
    operands = unit.zeros()
    operands["c"][...] = quiet | _PAYLOAD
    found = {f"c = {hex_text(c, quiet | _PAYLOAD)}": shown(unit, unit.run("a quiet NaN with a payload in c", operands))}
    signalling = (c.infinity or 0) | _PAYLOAD
    operands = unit.zeros()
    operands["c"][...] = signalling
    found[f"c = {hex_text(c, signalling)}"] = shown(unit, unit.run("a signalling NaN in c", operands))
    return found


# Overflow ----------------------------------------------------------------------------------------------------------------


def overflow(unit: Unit) -> str:
    """What a total of one place above the largest number becomes.

    Raises:
        Unreachable: no product is large enough.
    """
    c = unit.ins.formats["c"]
    if not c.is_float:
        shot = unit.fire("c = the largest number, one product 1", {unit.slots[0]: 1}, c.largest)
        return {c.largest: "saturates", 1 << (c.bits - 1): "wraps"}.get(shot.code, "?")
    place = Fraction(2) ** (unit.d.max_exponent - unit.d.fraction_bits)
    largest = c.decode(c.largest).value
    return shown(unit, unit.fire("c = the largest number, a product of its last place", {unit.slots[0]: place}, largest))


def inner_overflow(unit: Unit) -> dict[str, str]:
    """What happens to products and sums past the largest exponent of d that cancel in the same step.

    Raises:
        Unreachable: no product is large enough.
    """
    top = Fraction(2) ** (unit.d.max_exponent + 1)
    first, second = unit.slots[:2]
    half = unit.fire("c = 2^e_max, a product of 2^e_max, another of -2^e_max", {first: top / 2, second: -top / 2}, top / 2)
    found = {"sum": shown(unit, half)}
    try:
        found["product"] = shown(unit, unit.fire("products of 2^(e_max + 1) and -2^(e_max + 1)", {first: top, second: -top}))
    except Unreachable:
        pass
    return found


# Subnormal numbers -------------------------------------------------------------------------------------------------------


def subnormals(unit: Unit) -> dict[str, str]:
    """Whether subnormal a, c and results count: "kept" or what they become; those that cannot be made are left out."""
    found = {}
    a, b, c, d = (unit.ins.formats[name] for name in "abcd")
    if a.is_float and a.has_zero and a.fraction_bits:
        operands = unit.zeros()
        partner = Fraction(2) ** b.max_exponent
        operands["a"][0], operands["b"][0] = 1 << a.ignored_low, exact_code(b, partner)
        wanted = Fraction(2) ** stimuli.tiniest_exponent(a) * partner
        found["a"] = _kept(unit, unit.run("the least subnormal a against the largest power of two in b", operands), wanted)
    least = Fraction(2) ** (c.min_exponent - c.fraction_bits)
    half = Fraction(2) ** (c.min_exponent - 1)
    found["c"] = _kept(
        unit, unit.fire("a subnormal c alone", {}, half + least if _whole(unit) else half), half + least if _whole(unit) else half
    )
    try:
        normal = Fraction(2) ** d.min_exponent
        shot = unit.fire(
            "1.5 and -1 times the least normal number", {unit.slots[0]: normal * Fraction(3, 2), unit.slots[1]: -normal}
        )
        found["result"] = _kept(unit, shot, normal / 2)
    except Unreachable:
        pass
    return found


def _whole(unit: Unit) -> bool:
    """Whether a result has all fraction bits of c, so that the least subnormal can come back."""
    kept = unit.ins.program.operations[-1].steps[-1].result_fraction_bits
    return kept is None or kept == unit.d.fraction_bits


def _kept(unit: Unit, shot: Shot, wanted: Fraction) -> str:
    return "kept" if unit.value(shot) == wanted else f"{shown(unit, shot)}"


# Formats -----------------------------------------------------------------------------------------------------------------


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


def scales(unit: Unit) -> dict[str, str]:
    """What special scales do: the NaN beside data that are all zero, code 0, the highest bit, the least above zero."""
    fmt = unit.ins.formats["scale_a"]
    found = {}
    operands = unit.zeros()
    operands["scale_a"][0] = fmt.nan or 0
    found[f"NaN scale {hex_text(fmt, fmt.nan or 0)}, zero data"] = shown(unit, unit.run("a NaN scale, all data zero", operands))
    codes = [0, 1] if not fmt.ignored_high else [0, 1, exact_code(fmt, 1) | 1 << (fmt.bits - 1)]
    for code in codes:
        operands = unit.zeros()
        operands["a"][0], operands["b"][0] = (exact_code(unit.ins.formats[name], 1) for name in "ab")
        operands["scale_a"][0] = code
        found[f"scale {hex_text(fmt, code)}"] = shown(unit, unit.run(f"1 x 1 with scale {hex_text(fmt, code)}", operands))
    return found
