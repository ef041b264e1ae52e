"""Faults in how operands and block scales are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from golden.identify.datapath.arrays import Array, low_bits
from golden.identify.datapath.signals import (
    OperandSignals,
    ProductSignals,
    RoundingSignals,
    ScaleSignals,
    Tap,
)
from golden.identify.taps.steps import (
    OTHERS,
)
from golden.instruction import Instruction
from golden.number.formats import Kind


def faults(ins: Instruction) -> Iterator[Tap]:
    """The exponents of subnormal numbers, and block scales."""
    if ins.scale_block is not None:
        yield from _scales(ins)
    floats = [n for n in "abc" if n not in ins.absent and ins.formats[n].is_float]
    yield from _exponents(ins, floats)
    yield from _kinds(floats)
    yield from _signalling(ins, floats)
    yield from _hidden_bits(floats)
    for name in floats:
        half = "its exponent is read as 0 where 1 is right"
        yield Tap(
            f"{name}-subnormal-half",
            f"subnormal {name} counts half ({half})",
            "operands",
            lambda s, n=name: s.move(n, -s.subnormal(n).astype(np.int64)),
        )
        yield Tap(
            f"{name}-subnormal-huge",
            f"the exponent of a subnormal {name} wraps around to the largest",
            "operands",
            lambda s, n=name: _wrap_subnormal(s, n),
            also=(("rounding", _in_a_wide_field),) if name == "c" else (),
        )
    if "a" in floats and "b" in floats:
        for name, other in OTHERS.items():
            yield Tap(
                f"{name}-subnormal-by-{other}",
                f"the exponent of {name} gets the correction for subnormal numbers where {other} is one",
                "operands",
                lambda s, n=name, o=other: s.move(
                    n, s.subnormal(o).astype(np.int64) - s.subnormal(n).astype(np.int64)
                ),
            )
    several = {"subnormal-half": ("operand", "abc"), "ab-subnormal-half": ("factor", "ab")}
    for slug, (word, names) in several.items():
        if set(names) <= {*floats}:
            yield Tap(
                slug,
                f"every subnormal {word} counts half (its exponent is read as 0 where 1 is right)",
                "operands",
                lambda s, n=names: _halve(s, n),
            )


def _exponents(ins: Instruction, floats: list[str]) -> Iterator[Tap]:
    """Exponents that are off by a constant: by one, or because of another bias."""
    for name in floats:
        bias = ins.formats[name].bias
        for by in sorted({by * sign for by in (1, 2, bias, bias + 1) for sign in (1, -1)}, key=abs):
            yield Tap(
                f"{name}-exponent-{'minus' if by < 0 else 'plus'}-{abs(by)}",
                f"the exponent of {name} is {abs(by)} too {'small' if by < 0 else 'large'} "
                f"(a bias of {bias - by}, not {bias})",
                "operands",
                lambda s, n=name, d=by: s.move(n, np.full(s.numbers[n].exponent.shape, d)),
                weight=1.0 + (name == "b") / 100,
            )


_MISTAKEN: dict[str, tuple[str, Callable[[OperandSignals, str], Array]]] = {
    "zero": ("is zero", lambda s, n: s.numbers[n].kind == Kind.ZERO),
    "subnormal": ("is subnormal", lambda s, n: s.subnormal(n)),
    "finite": ("is finite", lambda s, n: s.numbers[n].finite),
    "infinite": ("is infinite", lambda s, n: s.numbers[n].kind == Kind.INFINITY),
    "fraction": ("has a fraction that is not zero", lambda s, n: _fraction(s, n) != 0),
    "no-fraction": ("has a fraction of zero", lambda s, n: _fraction(s, n) == 0),
}
"""Operands that may be taken for others."""


def _fraction(s: OperandSignals, name: str) -> Array:
    return low_bits(s.numbers[name].significand, np.asarray(s.formats[name].fraction_bits))


def _kinds(floats: list[str]) -> Iterator[Tap]:
    """Numbers that are taken for special values, and for zeros: of one operand, of both factors, of all."""
    for names in _together(floats):
        for slug, (text, mask) in _MISTAKEN.items():
            for kind in (Kind.NAN, Kind.INFINITY, Kind.ZERO):
                word = {Kind.NAN: "nan", Kind.INFINITY: "infinite", Kind.ZERO: "zero"}[kind]
                if word != slug:
                    yield Tap(
                        f"{names}-{slug}-is-{word}",
                        f"{_any_of(names)} counts as {'NaN' if kind == Kind.NAN else word} where it {text}",
                        "operands",
                        lambda s, n=names, m=mask, k=kind: _take_each(s, n, m, k),
                        weight=1.15,
                    )


def _together(floats: list[str]) -> list[str]:
    """Operands that may have a fault together."""
    factors = "".join(name for name in floats if name != "c")
    return list(dict.fromkeys((*floats, factors, "".join(floats)))) if floats else []


def _any_of(names: str) -> str:
    return names if len(names) == 1 else f"each of {', '.join(names)}"


def _take_each(
    s: OperandSignals, names: str, mask: Callable[[OperandSignals, str], Array], kind: Kind
) -> None:
    for name in names:
        _take_for(s, name, mask(s, name), kind)


def _signalling(ins: Instruction, floats: list[str]) -> Iterator[Tap]:
    """Formats with infinities and NaNs: the upper bit of the fraction alone tells a NaN."""
    for name in floats:
        if ins.formats[name].infinity is not None:
            yield Tap(
                f"{name}-signalling-nan-is-infinite",
                f"{name} counts as infinite where it is a signalling NaN (its upper fraction bit is 0)",
                "operands",
                lambda s, n=name: _take_for(s, n, _signals(s, n), Kind.INFINITY),
            )


def _signals(s: OperandSignals, name: str) -> Array:
    upper = _fraction(s, name) >> (s.formats[name].fraction_bits - 1)
    return np.asarray((s.numbers[name].kind == Kind.NAN) & (upper == 0))


def _take_for(s: OperandSignals, name: str, there: Array, kind: Kind) -> None:
    numbers = s.numbers[name]
    significand = np.where(there & (kind == Kind.ZERO), 0, numbers.significand)
    s.numbers[name] = replace(numbers, kind=np.where(there, int(kind), numbers.kind), significand=significand)


def _hidden_bits(floats: list[str]) -> Iterator[Tap]:
    """The hidden bit of normal numbers, left out or given to the wrong ones; and the exponent field 0 taken
    for one like any other."""
    for names in _together(floats):
        for zeros in (False, True):
            yield Tap(
                f"{names}-subnormal-as-normal{'-zeros' * zeros}",
                f"the exponent field 0 of {', '.join(names)} is read like any other: a subnormal number"
                + (" and a zero get" if zeros else " gets")
                + " the hidden bit, at 2 to the minus bias",
                "operands",
                lambda s, n=names, z=zeros: _read_as_normal(s, n, z),
                weight=1.0,
                also=(("products", lambda s, n=names: _test_codes(s, n)),) if zeros else (),
            )
        yield Tap(
            f"{names}-zero-with-hidden-bit",
            f"a zero or subnormal {' or '.join(names)} gets the hidden bit (0 times infinity is NaN all the "
            "same)",
            "operands",
            lambda s, n=names: _set_hidden(s, n),
            weight=1.05,
            also=(("products", lambda s, n=names: _test_codes(s, n)),),
        )
        for inverted in (False, True):
            more = ", and subnormal ones get it" if inverted else ""
            yield Tap(
                f"hidden-bit-{'inverted' if inverted else 'missing'}-{names}",
                f"normal numbers of {', '.join(names)} have no hidden bit{more}",
                "operands",
                lambda s, n=names, i=inverted: _leave_hidden(s, n, i),
            )


def _read_as_normal(s: OperandSignals, names: str, zeros: bool) -> None:
    below = {name: s.subnormal(name) | ((s.numbers[name].kind == Kind.ZERO) & zeros) for name in names}
    _set_hidden(s, names if zeros else "")
    for name in names:
        numbers, bit = s.numbers[name], 1 << s.formats[name].fraction_bits
        significand = np.where(below[name], numbers.significand | bit, numbers.significand)
        s.numbers[name] = replace(numbers, significand=significand)
        s.move(name, -below[name].astype(np.int64))


def _set_hidden(s: OperandSignals, names: str) -> None:
    for name in names:
        numbers, bit = s.numbers[name], 1 << s.formats[name].fraction_bits
        there = s.subnormal(name) | (numbers.kind == Kind.ZERO)
        significand = np.where(there, numbers.significand | bit, numbers.significand)
        kind = np.where(there, int(Kind.FINITE), numbers.kind)
        s.numbers[name] = replace(numbers, kind=kind, significand=significand)


def _test_codes(s: ProductSignals, names: str) -> None:
    """0 times infinity is told by the codes, whatever was read."""
    for name, other in (("a", s.b), ("b", s.a)):
        if name in names:
            s.invalid = s.invalid | ((s.coded[name] == Kind.ZERO) & (other.kind == Kind.INFINITY))


def _leave_hidden(s: OperandSignals, names: str, inverted: bool) -> None:
    for name in names:
        numbers, bit = s.numbers[name], 1 << s.formats[name].fraction_bits
        there = numbers.finite | ((numbers.kind == Kind.ZERO) & inverted)
        has = numbers.significand & bit != 0
        significand = np.where(has, numbers.significand - bit, numbers.significand + bit * inverted)
        kind = np.where(there, np.where(significand != 0, int(Kind.FINITE), int(Kind.ZERO)), numbers.kind)
        s.numbers[name] = replace(
            numbers, kind=kind, significand=np.where(there, significand, numbers.significand)
        )


def _scales(ins: Instruction) -> Iterator[Tap]:
    """Block scales that count for more or less, and those of another block."""
    for by, word in ((-1, "half"), (1, "twice"), (-2, "a quarter"), (2, "four times")):
        sign = "minus" if by < 0 else "plus"
        yield Tap(
            f"scale-exponent-{sign}-{abs(by)}",
            f"the scales of a product count {word} of what they should",
            "scales",
            lambda s, n=by: _move_scales(s, "a", n),
            weight=1.0,
        )
    for name in "ab":
        if ins.formats[f"scale_{name}"].has_subnormals:
            yield Tap(
                f"scale-{name}-subnormal-half",
                f"subnormal scale_{name} counts half (its exponent is read as 0 where 1 is right)",
                "scales",
                lambda s, n=name: _move_scales(s, n, -1, subnormal=True),
            )
    blocks = ins.operand_shapes(False)["scale_a"][0]
    for slug, text, order in _orders(blocks):
        for names in ("ab", "a", "b"):
            scales = " and ".join(f"scale_{name}" for name in names)
            yield Tap(
                f"{'scales' if len(names) > 1 else f'scale-{names}'}-{slug}",
                f"{scales} of {text}",
                "scales",
                lambda s, n=names, o=order: _reorder(s, n, o),
            )


def _orders(blocks: int) -> Iterator[tuple[str, str, list[int]]]:
    """For each block the one whose scale it gets."""
    every = range(blocks)
    if blocks < 2:
        return
    yield "reversed", "the blocks in reverse order", list(reversed(every))
    yield "late-by-one-block", "the block before", [(i - 1) % blocks for i in every]
    if blocks > 2:
        yield "early-by-one-block", "the block behind", [(i + 1) % blocks for i in every]
    for block in every:
        yield f"of-block-{block}-everywhere", f"block {block} for all blocks", [block] * blocks


def _move_scales(s: ScaleSignals, name: str, by: int, subnormal: bool = False) -> None:
    fmt, scales = (s.format_a, s.a) if name == "a" else (s.format_b, s.b)
    there = scales.significand < 1 << fmt.fraction_bits if subnormal else np.ones_like(scales.finite)
    moved = replace(scales, exponent=scales.exponent + by * there, lsb=scales.lsb + by * there)
    s.a, s.b = (moved, s.b) if name == "a" else (s.a, moved)


def _reorder(s: ScaleSignals, names: str, order: list[int]) -> None:
    s.a = s.a[order] if "a" in names else s.a
    s.b = s.b[order] if "b" in names else s.b


def _halve(s: OperandSignals, names: str) -> None:
    for name in names:
        s.move(name, -s.subnormal(name).astype(np.int64))


def _in_a_wide_field(s: RoundingSignals) -> None:
    """The exponent that wraps has one bit more than a field. A carry beyond it wraps once more: where a sum
    is cut toward minus infinity, only that of a negative number."""
    s.overflows = "wide" if s.overflows == "above" else s.overflows


def _wrap_subnormal(s: OperandSignals, name: str) -> None:
    fmt = s.formats[name]
    s.move(name, np.where(s.subnormal(name), (2 << fmt.exponent_bits) - 1, 0))
