"""Probes of special values: zeros, NaNs, infinities, overflow, subnormal numbers, ignored bits and scales.

As in `golden/identify/probe/probes.py` a probe knows only formats and K, and describes its observation in
words.
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

from golden import stimuli
from golden.explain.numbers import hex_text, power_text
from golden.explain.trace import describe_code
from golden.identify.probe.probes import Probe, Shot, Unreachable, exact_code
from golden.number.formats import Format, Kind

_PAYLOAD = 0x5
"""Low bits of the NaN that shows whether payloads are passed on."""


def shown(probe: Probe, shot: Shot) -> str:
    """A result in a few characters: +0, -0, +inf, its NaN word, or its value."""
    number = probe.number(shot)
    return hex_text(probe.d, shot.code) if number.kind == Kind.NAN else describe_code(probe.d, shot.code)


# Zeros ------------------------------------------------------------------------------------------------------


def zeros(probe: Probe) -> dict[str, str]:
    """The signs of zero results: of zeros that are all negative, of terms that cancel, of a negative total
    that underflows."""
    found = {}
    operands = probe.zeros()
    operands["b"][...] = exact_code(probe.formats["b"], -1)
    operands["c"][...] = exact_code(probe.formats["c"], -0.0)
    found["all -0"] = shown(probe, probe.run("every product 0 x -1 = -0, c = -0", operands))
    if len(probe.slots) > 1:
        terms = {probe.slots[0]: 1, probe.slots[1]: -1}
        found["1 - 1"] = shown(probe, probe.fire("1 - 1, c = -0", terms, -0.0))
    else:
        found["1 - 1"] = shown(probe, probe.fire("1 - 1", {probe.slots[0]: 1}, -1.0))
    with suppress(Unreachable):
        tiny = -(Fraction(2) ** (probe.d.min_exponent - probe.d.fraction_bits - 3))
        said = "a negative total of an eighth of the least subnormal"
        ends = (probe.slots[0], probe.slots[-1])  # a product of +0 behind it would make it +0
        signs = [shown(probe, probe.fire(said, {slot: tiny})) for slot in dict.fromkeys(ends)]
        found["underflow"] = "-0" if "-0" in signs else signs[-1]
    return found


# NaN and infinity -------------------------------------------------------------------------------------------


def generated_nans(probe: Probe) -> dict[str, str]:
    """The words of NaNs made from numbers: 0 x infinity and infinity - infinity, where the formats have
    infinities."""
    a, b, c, d = (probe.formats[name] for name in "abcd")
    found = {}
    if a.infinity is not None:
        operands = probe.zeros()
        operands["a"][0] = a.infinity
        found["inf x 0"] = shown(probe, probe.run("inf x 0", operands))
        operands = probe.zeros()
        operands["a"][0], operands["b"][0] = a.infinity, exact_code(b, -1)
        operands["c"][...] = c.infinity or 0
        found["inf - inf"] = shown(probe, probe.run("c = inf, a product inf x -1", operands))
    elif a.nan is not None:
        operands = probe.zeros()
        operands["a"][0] = a.nan
        found["NaN in a"] = shown(probe, probe.run("a NaN in a", operands))
    else:
        operands = probe.zeros()
        operands["c"][...] = d.nan or 0
        found["NaN in c"] = shown(probe, probe.run("a NaN in c", operands))
    return found


def payload_kept(probe: Probe) -> bool:
    """Whether the low bits of a NaN in c, quiet or signalling, appear in the result."""
    c = probe.formats["c"]
    kept = []
    for kind, code in (("quiet", c.nan or 0), ("signalling", c.infinity or 0)):
        operands = probe.zeros()
        operands["c"][...] = code | _PAYLOAD
        shot = probe.run(f"a {kind} NaN with payload {_PAYLOAD} in c", operands)
        kept.append(probe.number(shot).kind == Kind.NAN and shot.code & 0xF == _PAYLOAD)
    return all(kept)


# Overflow ---------------------------------------------------------------------------------------------------


def overflow(probe: Probe) -> str:
    """What a total of one place above the largest number becomes.

    Raises:
        Unreachable: no product is large enough.
    """
    c = probe.formats["c"]
    place = Fraction(2) ** (probe.d.max_exponent - probe.d.fraction_bits)
    largest = c.decode(c.largest).value
    return shown(
        probe,
        probe.fire("c = the largest number, a product of its last place", {probe.slots[0]: place}, largest),
    )


EDGES = tuple(f"{sign}(2 - u + {share} u)" for sign in ("", "-") for share in ("0.75", "0.5", "0.25"))
"""The six edges, each times 2^E: u is the last place of 1, E the largest exponent of the result's format."""


def overflow_edges(probe: Probe) -> dict[str, int]:
    """The result's code at each of EDGES: c is the largest number of its sign, one product the rest.

    Raises:
        Unreachable: no product has that value.
    """
    c, found = probe.formats["c"], {}
    place = Fraction(2) ** (probe.d.max_exponent - probe.d.fraction_bits)
    largest = c.decode(c.largest).value
    for edge, (sign, quarters) in zip(EDGES, ((s, q) for s in (1, -1) for q in (3, 2, 1)), strict=True):
        terms = {probe.slots[0]: sign * quarters * place / 4}
        found[edge] = probe.fire(f"{edge} * 2^{probe.d.max_exponent}", terms, sign * largest).code
    return found


def inner_overflow(probe: Probe) -> dict[str, str]:
    """What happens to products and sums past the largest exponent of d that cancel in the same step.

    Raises:
        Unreachable: no product is large enough.
    """
    top = Fraction(2) ** (probe.d.max_exponent + 1)
    first, second = probe.slots[:2]
    half = probe.fire(
        "c = 2^e_max, a product of 2^e_max, another of -2^e_max", {first: top / 2, second: -top / 2}, top / 2
    )
    found = {"sum": shown(probe, half)}
    with suppress(Unreachable):
        found["product"] = shown(
            probe, probe.fire("products of 2^(e_max + 1) and -2^(e_max + 1)", {first: top, second: -top})
        )
    return found


# Subnormal numbers ------------------------------------------------------------------------------------------


def subnormals(probe: Probe, bits: int) -> dict[str, str]:
    """Whether subnormal a, c and results count: "kept", or what they become; subnormals that cannot be
    produced are left out.

    Args:
        bits: fraction bits of results.
    """
    found = {}
    a, b, c, d = (probe.formats[name] for name in "abcd")
    if a.is_float and a.has_subnormals and a.fraction_bits:
        operands = probe.zeros()
        partner = Fraction(2) ** b.max_exponent
        operands["a"][0], operands["b"][0] = 1 << a.ignored_low, exact_code(b, partner)
        wanted = Fraction(2) ** stimuli.tiniest_exponent(a) * partner
        found["a"] = _kept(
            probe, probe.run("the least subnormal a against the largest power of two in b", operands), wanted
        )
    least = Fraction(2) ** (c.min_exponent - bits)
    found["c"] = _kept(probe, probe.fire("a subnormal c alone", {}, least), least)
    with suppress(Unreachable):
        normal = Fraction(2) ** d.min_exponent
        first, *others = probe.slots
        terms = {first: normal * Fraction(3, 2), **dict.fromkeys(others[:1], -normal)}
        said = "1.5 and -1 times the least normal number"
        shot = probe.fire(said, terms) if others else probe.fire(said, terms, -normal)
        found["result"] = _kept(probe, shot, normal / 2)
    return found


def _kept(probe: Probe, shot: Shot, wanted: Fraction) -> str:
    return "kept" if probe.value(shot) == wanted else f"{shown(probe, shot)}"


# Integers ---------------------------------------------------------------------------------------------------


def bit_table(probe: Probe) -> tuple[int, ...]:
    """What a = 0, 0, 1, 1 and b = 0, 1, 0, 1 add to a zero c, all other bits being zero."""
    counts = []
    for x, y in ((0, 0), (0, 1), (1, 0), (1, 1)):
        operands = probe.zeros()
        operands["a"][0], operands["b"][0] = x, y
        counts.append(probe.run(f"a = {x}, b = {y}", operands).code)
    return tuple(counts)


def _pairs(probe: Probe) -> dict[int, tuple[int, int]]:
    """Codes of a and b by what they add to the sum, found by trying the least and largest codes, 0, 1 and
    -1."""
    a, b = (probe.formats[name] for name in "ab")
    found: dict[int, tuple[int, int]] = {}
    for x in _codes(a):
        for y in _codes(b):
            operands = probe.zeros()
            operands["a"][0], operands["b"][0] = x, y
            found.setdefault(_integer(probe, probe.run("one product", operands)), (x, y))
    return found


def _codes(fmt: Format) -> list[int]:
    top = 1 << (fmt.bits - 1)
    return list(dict.fromkeys((1, 0, 2 * top - 1, top, top - 1)))


def _integer(probe: Probe, shot: Shot) -> int:
    return shot.code - (1 << probe.d.bits) if shot.code >> (probe.d.bits - 1) else shot.code


def _sum(probe: Probe, what: str, products: dict[int, tuple[int, int]], c: int) -> int:
    """c and products (codes of a and b by k), the others as in `Probe.zeros`."""
    operands = probe.zeros()
    for k, (x, y) in products.items():
        operands["a"][k], operands["b"][k] = x, y
    operands["c"][...] = c & ((1 << probe.d.bits) - 1)
    return _integer(probe, probe.run(what, operands))


def integer_overflow(probe: Probe) -> str:
    """The sum of one more than the largest number and, if products can be negative, of one less than the
    least."""
    pairs, top = _pairs(probe), 1 << (probe.d.bits - 1)
    probe.shots = []
    found = [_sum(probe, "c = the largest number, one product 1", {0: pairs[1]}, top - 1)]
    kinds = {top - 1: "saturates", -top: "wraps"}
    kind = kinds.get(found[0], "?")
    if -1 in pairs:
        below = _sum(probe, "c = the least number, one product -1", {0: pairs[-1]}, -top)
        kind = kind if {-top: "saturates", top - 1: "wraps"}.get(below) == kind else "?"
    return kind


def integer_range(probe: Probe) -> tuple[int, int]:
    """The sums of K products that are all the least, and all the largest."""
    pairs = _pairs(probe)
    probe.shots = []
    low, high = (
        _sum(probe, f"every product {value:,}", dict.fromkeys(range(probe.k), pairs[value]), 0)
        for value in (min(pairs), max(pairs))
    )
    return low, high


def integer_cancelling(probe: Probe) -> bool | None:
    """Whether products that cancel do so at both ends of the range, wherever the second stands; None where no
    product is negative."""
    pairs, top, last = _pairs(probe), 1 << (probe.d.bits - 1), probe.k - 1
    probe.shots = []
    if -1 not in pairs:
        return None
    held = True
    for name, end, step in (("largest", top - 1, 1), ("least", -top, -1)):
        for other in (1, last):
            what = f"c = the {name} number, {step} at k = 0, {-step} at k = {other}"
            held &= _sum(probe, what, {0: pairs[step], other: pairs[-step]}, end) == end
    return held


# Formats ----------------------------------------------------------------------------------------------------


def ignored_bits(probe: Probe) -> dict[str, str]:
    """The effect of the ignored low bits of a (tf32): added to 1, and in a NaN."""
    a, b = probe.formats["a"], probe.formats["b"]
    found = {}
    low = (1 << a.ignored_low) - 1
    for what, code in (("1 + low bits", exact_code(a, 1) | low), ("NaN in low bits", (a.infinity or 0) | 1)):
        operands = probe.zeros()
        operands["a"][0], operands["b"][0] = code, exact_code(b, 1)
        found[what] = shown(probe, probe.run(f"a = {code:#010x}, b = 1", operands))
    return found


def scale_codes(fmt: Format) -> list[int]:
    """The scales that are tried: code 0, code 1, and one with the ignored bit set."""
    return [0, 1, *([exact_code(fmt, 1) | 1 << (fmt.bits - 1)] if fmt.ignored_high else [])]


def scales(probe: Probe) -> dict[str, str]:
    """The effect of special scales: the NaN with data that are all zero, then 1 x 1 with `scale_codes`."""
    fmt = probe.formats["scale_a"]
    operands = probe.zeros()
    operands["scale_a"][0] = fmt.nan or 0
    found = {hex_text(fmt, fmt.nan or 0): shown(probe, probe.run("a NaN scale, all data zero", operands))}
    for code in scale_codes(fmt):
        operands = probe.zeros()
        operands["a"][0], operands["b"][0] = (exact_code(probe.formats[name], 1) for name in "ab")
        operands["scale_a"][0] = code
        shot = probe.run(f"1 x 1 with scale {hex_text(fmt, code)}", operands)
        number = probe.number(shot)
        found[hex_text(fmt, code)] = power_text(number) if number.kind < Kind.INFINITY else shown(probe, shot)
    return found
