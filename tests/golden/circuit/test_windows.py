"""The window in which a product meets c: at every distance of their exponents, the circuit of a multiply-add
gives the exact sum, rounded once."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from circuits import outputs

from golden.catalog.lookup import resolve
from golden.number.formats import Format, Kind

UNIT = """unit: meeting
title: Two terms, rounded once
shape: {{k: 1}}
formats: {{a: {a}, b: {b}, c: {c}, d: {d}}}
steps:
  - fma: {{to: d, rounding: {rounding}, nan_order: []}}
"""
FACTORS = (("f16", "f16", "f16", "f16"), ("bf16", "bf16", "bf16", "bf16"), ("f16", "f16", "f32", "f32"))
ROUNDINGS = ("nearest_even", "toward_zero", "up", "down")


def ends(fmt: Format, exponents: range) -> list[int]:
    """Codes of some exponent fields, with the fractions at which carries and cancellations begin."""
    last = (1 << fmt.fraction_bits) - 1
    fractions = (0, 1, last >> 1, last - 1, last)
    return [field << fmt.fraction_bits | each for field in exponents for each in fractions]


def exact(fmt: Format, code: int) -> Fraction:
    """What a finite code means."""
    number = fmt.decode(code)
    assert number.kind <= Kind.FINITE
    size = number.significand * Fraction(2) ** (number.exponent - fmt.fraction_bits)
    return -size if code >> (fmt.bits - 1) else size


def between(fmt: Format, value: Fraction, code: int, rounding: str) -> bool:
    """Whether a code is a number rounded: no other code is nearer, on the side that the rounding allows."""
    sign = 1 << (fmt.bits - 1)
    body = code & (sign - 1)
    size = -value if code & sign else value
    toward = {"toward_zero": True, "down": not code & sign, "up": bool(code & sign)}
    inward = toward.get(rounding, False)
    if body == fmt.infinity:
        most = exact(fmt, fmt.largest)
        half = most + (most - exact(fmt, fmt.largest - 1)) / 2
        return size > most and not inward if rounding != "nearest_even" else size >= half
    mine = exact(fmt, body)
    below = exact(fmt, body - 1) if body else -exact(fmt, 1)
    finite = fmt.decode(body + 1).kind <= Kind.FINITE
    above = exact(fmt, body + 1) if finite else mine + (mine - below)
    if rounding == "nearest_even":
        low, high = (mine + below) / 2, (mine + above) / 2
        return low < size < high or (size in (low, high) and not body & 1)
    if inward:
        return mine <= size and (size < above or not finite)
    return below < size <= mine


@pytest.mark.parametrize("formats", FACTORS)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_terms_of_every_distance_are_added_exactly(
    formats: tuple[str, ...], rounding: str, tmp_path: Path
) -> None:
    file = tmp_path / "unit.yaml"
    named = dict(zip("abcd", formats, strict=True))
    file.write_text(UNIT.format(rounding=rounding, **named), encoding="utf-8")
    ins = resolve(str(file))
    fa, fc, fd = (ins.formats[name] for name in "acd")
    middle = 1 << (fa.exponent_bits - 1)
    # Factors at both ends of their exponents and in the middle; every exponent of c, or the ones around.
    some = [*range(2), *range(middle - 1, middle + 1), (1 << fa.exponent_bits) - 2]
    factors = [ends(fa, range(one, one + 1)) for one in some]
    pairs = [
        pair for x, y in itertools.product(factors, repeat=2) for pair in zip(x, reversed(y), strict=True)
    ]
    step = max((1 << fc.exponent_bits) // 64, 1)
    addends = ends(fc, range(0, (1 << fc.exponent_bits) - 1, step))
    cases = [
        (a, b, c ^ sign)
        for (a, b), c in itertools.product(pairs, addends)
        for sign in (0, 1 << (fc.bits - 1))
    ]
    picked = np.random.default_rng(1).permutation(len(cases))[:6000]
    columns = {
        name: np.array([cases[at][place] for at in picked])[:, None] for place, name in enumerate("ab")
    }
    columns["c"] = np.array([cases[at][2] for at in picked])
    found = outputs(ins, columns, len(picked))["d"]
    for at, code in zip(picked, found, strict=True):
        a, b, c = cases[at]
        value = exact(fa, a) * exact(fa, b) + exact(fc, c)
        assert between(fd, value, code, rounding), f"{a:#x} * {b:#x} + {c:#x} is {value}, not {code:#x}"
