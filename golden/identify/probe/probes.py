"""Probes: dot products whose result reveals one property of a unit, whatever its spec says.

A probe knows the formats of a unit and its K, nothing else: it would find the same in a chip. The method is
that of the MMA-Sim paper (section III): large terms that cancel, with a small one (accumulation precision,
order), totals between two results (rounding), the edges of the formats (special values).
`golden/identify/probe/properties.py` compares the findings with the spec.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from golden import stimuli
from golden.errors import OperandError
from golden.explain.trace import float_text
from golden.number.formats import Format, Kind, Number, get_format
from golden.number.rounding import encode_fraction
from golden.program.signature import Operands, Signature
from golden.unit import Unit, signature_of

Value = Fraction | int
_DEEP = 64
"""Binades below a large term in which its last kept bit is searched."""


class Unreachable(OperandError):
    """The operand formats have no numbers that would show the property."""


@dataclass(frozen=True)
class Shot:
    """One executed dot product: what it tries, its operands (as `ins.dot` takes them) and the raw result."""

    what: str
    operands: Operands
    code: int


class Probe:
    """A unit under probe: dense; for a sparse one only probes of the first product work. `shots` holds the
    last shots."""

    def __init__(self, unit: Unit) -> None:
        self.unit, self.shots = unit, list[Shot]()
        self.takes = signature_of(unit)
        if self.takes.state:
            raise OperandError(f"cannot probe {self.takes.name}: it takes no c, it keeps its accumulator")
        self.formats, self.k, self.scale_block = self.takes.formats, self.takes.k, self.takes.scale_block

    @property
    def d(self) -> Format:
        """The format of results."""
        return self.formats["d"]

    @cached_property
    def slots(self) -> tuple[int, ...]:
        """Places of k whose products can have exponents of their own: every k, or the first of every scale
        block."""
        return tuple(range(0, self.k, self.scale_block or 1)) if self.scaled_apart else tuple(range(self.k))

    @property
    def scaled_apart(self) -> bool:
        """Whether there are several scale blocks."""
        return self.scale_block is not None and self.scale_block < self.k

    # Reach --------------------------------------------------------------------------------------------------

    @cached_property
    def highest(self) -> int:
        """Exponent of the largest power of two that a product with its scales has."""
        high = sum(stimuli.highest_exponent(self.formats[name]) for name in "ab")
        return (
            high if self.scale_block is None else self._scale_range()[1] + (0 if self.scaled_apart else high)
        )

    @cached_property
    def lowest(self) -> int:
        """Exponent of the least product with its scales."""
        low = sum(stimuli.tiniest_exponent(self.formats[name]) for name in "ab")
        return low if self.scale_block is None else self._scale_range()[0] + low

    def _scale_range(self) -> tuple[int, int]:
        found = [self.formats[name] for name in ("scale_a", "scale_b")]
        return sum(map(stimuli.tiniest_exponent, found)), sum(map(stimuli.highest_exponent, found))

    @cached_property
    def top(self) -> int:
        """Exponent of the large terms that both c and a product can hold."""
        # Exponent of the large terms: far from every small one, if the formats allow it.
        reach = 40
        return min(self.formats["c"].max_exponent, self.highest, reach)

    # Firing -------------------------------------------------------------------------------------------------

    def fire(self, what: str, products: Mapping[int, Value], c: Value | float = 0) -> Shot:
        """Runs one dot product with these values of products (by k) and c.

        Raises:
            Unreachable: the formats cannot express one of them.
        """
        operands = self.zeros()
        scales = self._set_scales(operands, products)
        for k, value in products.items():
            x, y = factors(Fraction(value) / scales(k), self.formats["a"], self.formats["b"])
            operands["a"][k], operands["b"][k] = x, y
        operands["c"] = np.asarray(exact_code(self.formats["c"], c), self.formats["c"].dtype)
        return self.run(what, operands)

    def run(self, what: str, operands: Operands) -> Shot:
        """Runs one dot product given by raw codes."""
        shot = Shot(what, operands, int(self.unit.dot(**operands)))
        self.shots.append(shot)
        return shot

    def zeros(self) -> Operands:
        """Operands that are all zero, with scales of one and metadata that select the first elements."""
        return {
            name: np.full(shape, self.takes.at_rest(name), self.takes.code_format(name).dtype)
            for name, shape in self.takes.operand_shapes(matrices=False).items()
        }

    def _set_scales(self, operands: Operands, products: Mapping[int, Value]) -> Any:
        """Gives every scale block the exponent of its largest product, less if its least one needs that."""
        if self.scale_block is None:
            return lambda k: Fraction(1)
        block, chosen = self.scale_block, {}
        data_low = sum(stimuli.tiniest_exponent(self.formats[name]) for name in "ab")
        for index in {k // block for k in products}:
            values = [Fraction(value) for k, value in products.items() if k // block == index and value]
            highest, least = max(map(_exponent, values)), min(map(_last_bit, values))
            wanted = min(highest, least - data_low) if least - highest < data_low else highest
            low, high = self._scale_range()
            exponent = min(max(wanted, low), high)
            codes = split_scale(self.takes, exponent)
            operands["scale_a"][index], operands["scale_b"][index] = codes
            chosen[index] = Fraction(2) ** exponent
        return lambda k: chosen.get(k // block, Fraction(1))

    def number(self, shot: Shot) -> Number:
        """The result of a shot, decoded."""
        return self.d.decode(shot.code)

    def value(self, shot: Shot) -> Fraction | None:
        """The result as a fraction; None for infinities and NaNs."""
        number = self.number(shot)
        return None if number.kind >= Kind.INFINITY else number.value


def split_scale(takes: Signature, exponent: int) -> tuple[int, int]:
    """The codes of scale_a and scale_b whose product is 2^exponent, near each other in size.

    Raises:
        Unreachable: there are none.
    """
    x, y = takes.formats["scale_a"], takes.formats["scale_b"]
    for first in sorted(
        range(stimuli.tiniest_exponent(x), stimuli.highest_exponent(x) + 1),
        key=lambda e: abs(2 * e - exponent),
    ):
        if stimuli.tiniest_exponent(y) <= exponent - first <= stimuli.highest_exponent(y):
            return exact_code(x, Fraction(2) ** first), exact_code(y, Fraction(2) ** (exponent - first))
    raise Unreachable(f"no scales of {x.name} make 2^{exponent}")


def _exponent(value: Fraction) -> int:
    """The e with 2^e <= |value| < 2^(e + 1)."""
    size = abs(value)
    guess = size.numerator.bit_length() - size.denominator.bit_length()
    return guess - (size < Fraction(2) ** guess)


def _last_bit(value: Fraction) -> int:
    """The exponent of the last bit of a value that is set."""
    return (value.numerator & -value.numerator).bit_length() - value.denominator.bit_length()


def exact_code(fmt: Format, value: Value | float) -> int:
    """Returns the code of a value, which must be exact; floats may be -0.0, inf and nan.

    Raises:
        Unreachable: the format does not have the value.
    """
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf")) or value == 0):
        return encode_fraction(fmt, value) if fmt.is_float else 0
    if not fmt.is_float:
        if not -(1 << (fmt.bits - 1)) <= value <= fmt.largest or Fraction(value).denominator != 1:
            raise Unreachable(f"{fmt.name} has no {value}")
        return int(value) & ((1 << fmt.bits) - 1)
    code = encode_fraction(fmt, value, "toward_zero")
    if fmt.decode(code).kind >= Kind.INFINITY or fmt.decode(code).value != value:
        raise Unreachable(f"{fmt.name} has no {float_text(Fraction(value))}")
    return code


@lru_cache(maxsize=1 << 14)
def factors(value: Fraction, x: Format, y: Format) -> tuple[int, int]:
    """Returns codes of two formats whose product is `value`, near each other in size, normal numbers where
    possible.

    Raises:
        Unreachable: there are none.
    """
    if value == 0:
        return 0, 0
    last, sign = _last_bit(value), -1 if value < 0 else 1
    odd = int(abs(value) / Fraction(2) ** last)
    for p in _divisors(odd):
        exponent = _split_exponent(last, x, p, y, odd // p)
        if exponent is not None:
            try:
                return exact_code(x, sign * p * Fraction(2) ** exponent), exact_code(
                    y, odd // p * Fraction(2) ** (last - exponent)
                )
            except Unreachable:
                continue
    raise Unreachable(f"no product of {x.name} and {y.name} is {float_text(value)}")


def _split_exponent(last: int, x: Format, p: int, y: Format, q: int) -> int | None:
    """The i with p * 2^i in x and q * 2^(last - i) in y: normal numbers if there are, of about the same
    size; None if none."""
    for lowest in (stimuli.lowest_exponent, stimuli.tiniest_exponent):
        low, high = (edge - p.bit_length() + 1 for edge in (lowest(x), stimuli.highest_exponent(x)))
        low = max(low, last - (stimuli.highest_exponent(y) - q.bit_length() + 1))
        high = min(high, last - (lowest(y) - q.bit_length() + 1))
        if low <= high:
            return min(max(last // 2, low), high)
    return None


def _divisors(odd: int) -> Iterator[int]:
    """The divisors of a number, itself first, then one, then the others by size."""
    yield odd
    if odd > 1:
        yield 1
        yield from (p for p in range(3, min(odd, 1 << 12), 2) if odd % p == 0)


# Accumulation precision (paper, III-D) ----------------------------------------------------------------------


def kept_bits(probe: Probe, places: Sequence[int] | None = None) -> int | None:
    """Bits kept below two large terms that cancel: the largest j for which X - X +- X * 2^-j is right.

    Args:
        places: the places (k, or -1 for c) of the small term, of X and of -X; by default the first slot, c
            and the second slot.

    Returns:
        F, or None where the least term is still kept (nothing is cut).
    """
    small, plus, minus = places or (probe.slots[0], -1, probe.slots[1])
    x, least = probe.top, probe.lowest if small >= 0 else stimuli.tiniest_exponent(probe.formats["c"])
    for j in range(1, _DEEP):
        if x - j < max(least, probe.d.min_exponent - probe.d.fraction_bits):
            return None
        probe.shots = probe.shots[-2:]
        for sign in (1, -1):
            y = sign * Fraction(2) ** (x - j)
            what = f"X = 2^{x}: X {'+' if sign > 0 else '-'} X*2^-{j} - X"
            if probe.value(_next_to(probe, what, (small, plus, minus), y, Fraction(2) ** x)) != y:
                return j - 1
    return None


def _next_to(probe: Probe, what: str, places: Sequence[int], small: Fraction, large: Fraction) -> Shot:
    """A small term with a large one that another cancels, at these places (k, or -1 for c)."""
    terms = dict(zip(places, (small, large, -large), strict=True))
    return probe.fire(what, terms, terms.pop(-1, Fraction(0)))


def result_bits(probe: Probe) -> int:
    """Fraction bits of a result: how many bits of 2 - 2^-23 (the largest significand of c) remain."""
    c = probe.formats["c"]
    shot = probe.fire("c with all fraction bits set", {}, 2 - Fraction(1, 1 << c.fraction_bits))
    value = probe.value(shot) or Fraction(2)
    return -_last_bit(value)


# Order (paper, III-C) ---------------------------------------------------------------------------------------


def slices(probe: Probe, bits: int) -> list[tuple[int, ...]]:
    """Which slots are combined before the accumulator is rounded to the result's format.

    c = 1.5 + ulp and a product 1.5 make 3 + ulp, which a result of `bits` fraction bits does not hold; a
    product -1.5 brings it back to 1.5 + ulp where it belongs to the same step, and to 1.5 where it comes
    later.
    """
    ulp, left = Fraction(1, 1 << bits), list(probe.slots)
    found = []
    while left:
        first, together = left[0], [left[0]]
        for other in left[1:]:
            shot = probe.fire(
                f"1.5 + ulp + 1.5 at k = {first} - 1.5 at k = {other}",
                {first: Fraction(3, 2), other: -Fraction(3, 2)},
                Fraction(3, 2) + ulp,
            )
            if probe.value(shot) == Fraction(3, 2) + ulp:
                together.append(other)
        found.append(tuple(together))
        left = [k for k in left if k not in together]
    return found


def summed_first(probe: Probe, bits: int | None, within: int) -> bool:
    """Whether the products of a step are added before they meet c: many that are each too small for c count
    together.

    Args:
        bits: F. within: slots of the first step.
    """
    x, kept = probe.top, 24 if bits is None else bits
    small = Fraction(2) ** (x - kept - 1)
    terms = dict.fromkeys(probe.slots[:within], small)
    shot = probe.fire(f"X = 2^{x} in c, {within} products of X*2^-{kept + 1}", terms, Fraction(2) ** x)
    return probe.value(shot) != Fraction(2) ** x


# Rounding (paper, III-E) ------------------------------------------------------------------------------------

_DIRECTED = {
    (1, 0, -1, 0): "",  # to nearest: see the ties
    (1, 1, 0, 0): "RU",
    (0, 0, -1, -1): "RD",
    (0, 0, 0, 0): "RZ",
    (1, 1, -1, -1): "RA",
}
_TIES = {
    (0, 2, 0, -2): "RNE",
    (1, 2, -1, -2): "RNA",
    (1, 2, 0, -1): "RNU",
    (0, 1, -1, -2): "RND",
    (0, 1, 0, -1): "RNZ",
    (1, 1, -1, -1): "RNO",
}


def rounding(probe: Probe, bits: int) -> str:
    """The rounding of a result of `bits` fraction bits, by Tables I and II of the paper: "RZ", "RNE", ...

    c = 1.75 + r ulp and 1.5 * 1.5 make 4 + r ulp, with the last place u = 4 ulp: quarters and halves of it
    are exact in every unit before its result is rounded.
    """
    place = Fraction(1, 1 << bits)

    def rounded(quarters: int, sign: int) -> int | None:
        """(result - 4) / u for 4 + quarters * u / 4, and the same below zero."""
        shot = probe.fire(
            f"{'-' if sign < 0 else ''}(4 + {Fraction(quarters, 4)}u)",
            {probe.slots[0]: sign * Fraction(9, 4)},
            sign * (Fraction(7, 4) + quarters * place),
        )
        value = probe.value(shot)
        steps = None if value is None else (value - sign * 4) / (4 * place)
        return None if steps is None or steps.denominator != 1 else int(steps)

    return mode(rounded)


def mode(rounded: Callable[[int, int], int | None]) -> str:
    """The mode that Tables I and II of the paper have for what numbers became.

    Args:
        rounded: (quarters, sign) to how many last places u beyond a number that has none below u the number
            and sign * quarters * u / 4 became; None where that is no whole number.
    """
    kind = _DIRECTED.get((rounded(3, 1), rounded(1, 1), rounded(3, -1), rounded(1, -1)), "?")  # type: ignore[arg-type]
    if kind:
        return kind
    return _TIES.get((rounded(2, 1), rounded(6, 1), rounded(2, -1), rounded(6, -1)), "RN?")  # type: ignore[arg-type]


def cut_mode(probe: Probe, bits: int, places: Sequence[int]) -> str:
    """The rounding of a term at the last of the `bits` that are kept below a large one, by Tables I and II:
    two last places and some quarters, added to X - X. X is 1.5 times a power of two, so that its sum with the
    term has its exponent.

    Args:
        places: as of `kept_bits`.
    """
    large, last = 3 * Fraction(2) ** (probe.top - 1), Fraction(2) ** (probe.top - bits)

    def rounded(quarters: int, sign: int) -> int | None:
        small = sign * (2 + Fraction(quarters, 4)) * last
        what = f"X = 1.5 * 2^{probe.top}: X {'-' if sign < 0 else '+'} {2 + Fraction(quarters, 4)}u - X"
        value = probe.value(_next_to(probe, what, places, small, large))
        steps = None if value is None else value / last - 2 * sign
        return None if steps is None or steps.denominator != 1 else int(steps)

    return mode(rounded)


def cut(probe: Probe, bits: int, places: tuple[int, int]) -> str:
    """The rounding of bits below the kept ones in alignment: X - X * 2^-(F + 1) is X (RZ) or less (RD). Place
    -1 is c."""
    large = Fraction(2) ** probe.top
    terms = {places[0]: large, places[1]: -large / 2 ** (bits + 1)}
    c = terms.pop(-1, Fraction(0))
    where = ["c" if place < 0 else f"k = {place}" for place in places]
    shot = probe.fire(f"X = 2^{probe.top} in {where[0]}, -X*2^-{bits + 1} in {where[1]}", terms, c)
    return "RZ" if probe.value(shot) == large else "RD"


# The exponent floor -----------------------------------------------------------------------------------------


def last_weight(probe: Probe, mode: str, within: int) -> int | None:
    """The exponent of the last bit that is kept when every term is tiny and c is zero.

    Truncated results: all bits from half the least subnormal down to 2^t, and 2^t once more, make the least
    subnormal if 2^t is kept, and zero if not. Results to nearest: half the least subnormal is a tie, which
    2^t decides.

    Args:
        mode: the rounding of results. within: products in the first step.

    Returns:
        The exponent, or None where every bit that products have is kept.

    Raises:
        Unreachable: no product is below the least subnormal result.
    """
    least = probe.d.min_exponent - probe.d.fraction_bits
    # Downwards: the first bit that does not decide lies below the last one that is kept.
    for t in range(least - 2, least - _DEEP, -1):
        terms = (
            _ones(probe, least - 1, t, within)
            if mode == "RZ"
            else {probe.slots[0]: Fraction(2) ** (least - 1), probe.slots[1]: Fraction(2) ** t}
        )
        if t < probe.lowest or terms is None:
            if t == least - 2:
                raise Unreachable(f"the least product is 2^{probe.lowest}")
            return None
        probe.shots = probe.shots[-1:]
        shot = probe.fire(f"a bit of 2^{t} decides whether the least subnormal 2^{least} is reached", terms)
        if probe.value(shot) != Fraction(2) ** least:
            return t + 1
    return None


def _ones(probe: Probe, top: int, last: int, within: int) -> dict[int, Value] | None:
    """Products that add up to 2^(top + 1) if no bit is cut: all bits from `top` to `last`, and `last`
    again."""
    # A few e2m1 products of one scale block make an exact sum of 9 bits; another product has its fraction.
    width = 9 if probe.scaled_apart else probe.formats["a"].fraction_bits + 1
    bits = range(top, last - 1, -1)
    chunks = [bits[i : i + width] for i in range(0, len(bits), width)]
    if len(chunks) + 1 > (len(probe.slots) if probe.scaled_apart else within):
        return None
    terms: dict[int, Value] = {}
    for slot, chunk in zip(probe.slots, chunks, strict=False):
        unit_place, number = Fraction(2) ** chunk[-1], (1 << len(chunk)) - 1
        for index, part in enumerate(_parts(number) if probe.scaled_apart else [number]):
            terms[slot + index] = part * unit_place
    terms[probe.slots[len(chunks)]] = Fraction(2) ** last
    return terms


def _parts(number: int) -> list[int]:
    """A number as a sum of products of two e2m1 numbers, in quarters, the largest first."""
    halves = [int(2 * get_format("e2m1").decode(code).value) for code in range(1, 8)]
    products, parts = sorted({x * y for x in halves for y in halves}, reverse=True), []
    while number:
        parts.append(next(product for product in products if product <= number))
        number -= parts[-1]
    return parts
