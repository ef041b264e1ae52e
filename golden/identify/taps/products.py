"""Faults of the multipliers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from golden.identify.datapath.arrays import Array, held, modulo
from golden.identify.datapath.signals import (
    ProductSignals,
    Tap,
)
from golden.identify.taps.steps import (
    OTHERS,
    kinds_of,
)
from golden.instruction import Instruction
from golden.number.formats import Kind
from golden.program.steps import (
    Align,
    Fma,
    Multiply,
)

_FEW_K = 16
"""Products of a step of which each may be extended otherwise."""


def faults(ins: Instruction) -> Iterator[Tap]:
    if not any(kinds_of(ins, Multiply, Fma)):
        return
    if ins.formats["a"].is_float:
        bias = ins.formats["a"].bias
        for by in sorted({by * sign for by in (1, 2, bias, bias + 1) for sign in (1, -1)}, key=abs):
            sign, word = ("minus", "small") if by < 0 else ("plus", "large")
            yield Tap(
                f"product-exponent-{sign}-{abs(by)}",
                f"the exponents of the products are {abs(by)} too {word}",
                "products",
                lambda s, n=by: _move_products(s, n),
                weight=1.0,
            )
        yield from _places(ins)
    yield from _narrow(ins)
    if ins.formats["a"].signed and ins.formats["b"].signed and ins.formats["a"].is_float:
        yield from _signs()
    if ins.formats["a"].is_float and kinds_of(ins, Align):
        yield from _zeros()
    if ins.formats["a"].specials != "ieee" and ins.formats["b"].specials != "ieee":
        return
    yield from _invalid_products(ins)


def _places(ins: Instruction) -> Iterator[Tap]:
    """The exponent of a product in a word that is a bit or two too short: counted from the least product, or
    as the sum of two exponents as they are written."""
    a, b = ins.formats["a"], ins.formats["b"]
    least = a.min_exponent + b.min_exponent
    most = a.max_exponent + b.max_exponent - least
    for bits in range(most.bit_length() - 1, max(most.bit_length() - 3, 1), -1):
        for slug, start, text in (
            ("place", 0, "the exponent of a product, counted from the least one,"),
            ("exponent", 2, "the sum of both exponents of a product"),
        ):
            yield Tap(
                f"product-{slug}-modulo-{1 << bits}",
                f"{text} has {bits} bits and wraps around",
                "products",
                lambda s, n=bits, x=least - start: _wrap(s, x, n),
            )


def _wrap(s: ProductSignals, least: int, bits: int) -> None:
    above = s.products.exponent - least
    _move_products(s, np.where(s.products.finite, above % (1 << bits) - above, 0))


def _narrow(ins: Instruction) -> Iterator[Tap]:
    """A product in a word that is a bit or two too short: of integers with a sign as the unit has it, of
    numbers with an exponent the product of the significands."""
    a, b = ins.formats["a"], ins.formats["b"]
    whole = a.fraction_bits + b.fraction_bits + 2 if a.is_float else a.integer_bits + b.integer_bits
    signed, of = not a.is_float and (a.signed or b.signed), " of the significands" if a.is_float else ""
    for bits in range(whole - 1, max(whole - 3, 1), -1):
        yield Tap(
            f"product-width-{bits}",
            f"each product{of} has {bits} bits, those above are lost",
            "products",
            lambda s, n=bits: _hold(s, n, signed),
        )
    if signed:
        yield from _extended(ins, whole)


def _extended(ins: Instruction, whole: int) -> Iterator[Tap]:
    """Products without the sign above them: all of them, or one."""
    count = len(ins.program.operations[0].k_index)
    for bits in range(whole - 1, whole + 2):
        for k in (None, *(range(count) if 1 < count <= _FEW_K else ())):
            which = "each product" if k is None else f"the product of k = {k}"
            yield Tap(
                f"product{'' if k is None else f'-{k}'}-unsigned-{bits}",
                f"{which}, {bits} bits, is not extended by its sign: zeros stand above it",
                "products",
                lambda s, n=bits, of=k: _lose_sign(s, n, of),
                weight=1.05 + abs(bits - whole) / 100,
            )


def _lose_sign(s: ProductSignals, bits: int, k: int | None) -> None:
    products = s.products
    there = products.sign & (products.significand != 0)
    if k is not None:
        there = there & (np.arange(there.shape[1]) == k)
    products.significand = np.where(there, modulo(-products.significand, bits), products.significand)
    products.sign = products.sign & ~there


def _hold(s: ProductSignals, bits: int, signed: bool) -> None:
    products = s.products
    if not signed:
        products.significand = modulo(products.significand, bits)
        return
    value = held(np.where(products.sign, -products.significand, products.significand), np.asarray(bits))
    products.sign, products.significand = (value < 0).astype(np.bool_), np.abs(value)


def _zeros() -> Iterator[Tap]:
    """Zero products that enter the maximum exponent: the test for zero looks at one factor alone."""
    for name, other in OTHERS.items():
        yield Tap(
            f"zero-{name}-in-maximum",
            f"a product that is zero because of {name} alone enters the maximum exponent",
            "products",
            lambda s, n=name, o=other: _count(s, (getattr(s, n).kind == Kind.ZERO) & getattr(s, o).finite),
        )


def _count(s: ProductSignals, there: Array) -> None:
    """A zero that counts as a number has the exponent of its code."""
    s.products.kind = np.where(there, int(Kind.FINITE), s.products.kind)


_SIGNS: dict[str, tuple[str, Callable[[ProductSignals], Array]]] = {
    "or": ("negative where a or b is, also where both are", lambda s: s.a.sign | s.b.sign),
    "and": ("negative where a and b are", lambda s: s.a.sign & s.b.sign),
    "of-a": ("that of a", lambda s: s.a.sign.copy()),
    "of-b": ("that of b", lambda s: s.b.sign.copy()),
    "inverted": ("inverted", lambda s: ~(s.a.sign ^ s.b.sign)),
    "positive": ("always +", lambda s: np.zeros_like(s.a.sign)),
}
"""What else the sign of a product may be."""


def _signs() -> Iterator[Tap]:
    for slug, (text, rule) in _SIGNS.items():
        yield Tap(
            f"product-sign-{slug}",
            f"the sign of a product is {text}",
            "products",
            lambda s, r=rule: setattr(s.products, "sign", r(s)),
            weight=1.0,
        )
        yield Tap(
            f"infinite-product-sign-{slug}",
            f"the sign of an infinite product is {text}",
            "products",
            lambda s, r=rule: _sign_kind(s, Kind.INFINITY, r(s)),
        )
        yield Tap(
            f"zero-product-sign-{slug}",
            f"the sign of a product that is zero is {text}",
            "products",
            lambda s, r=rule: _sign_kind(s, Kind.ZERO, r(s)),
        )


def _sign_kind(s: ProductSignals, kind: Kind, sign: Array) -> None:
    s.products.sign = np.where(s.products.kind == kind, sign, s.products.sign)


def _move_products(s: ProductSignals, by: int | Array) -> None:
    s.products = replace(s.products, exponent=s.products.exponent + by, lsb=s.products.lsb + by)


def _invalid_products(ins: Instruction) -> Iterator[Tap]:
    """The test for infinity times zero looks at one side only, or at another element."""
    answers = {Kind.INFINITY: "infinity", Kind.ZERO: "zero"}
    for name, other in OTHERS.items():
        for answer, word in answers.items():
            yield Tap(
                f"zero-times-infinite-{name}-is-{word}",
                f"zero as {other} times infinity as {name} gives {word}, not NaN",
                "products",
                lambda s, n=name, k=answer: _miss_invalid(s, n, k),
            )
        if getattr(ins.formats[other], "exponent_bits", 0):
            hidden = 1 << ins.formats[other].fraction_bits
            yield Tap(
                f"subnormal-times-infinite-{name}-is-nan",
                f"a subnormal number as {other} times infinity as {name} gives NaN, as zero does",
                "products",
                lambda s, n=name, h=hidden: _take_for_zeros(s, n, h),
                weight=1.1,
            )
    count = len(ins.program.operations[0].k_index)
    for j in range(count if count > 1 else 0):
        for name, other in OTHERS.items():
            yield Tap(
                f"zero-times-infinite-{name}-{j}-is-infinity",
                f"zero as {other} times infinity as {name} in product k = {j} gives infinity, not NaN",
                "products",
                lambda s, n=name, k=j: _miss_invalid(s, n, Kind.INFINITY, k),
                weight=1.1,
            )
        for i in dict.fromkeys((0, (j - 1) % count, (j + 1) % count)):
            for name, other in OTHERS.items() if i != j else ():
                for kind, slug, says in (
                    (Kind.INFINITY, "invalid", f"an infinite {name} times zero"),
                    (Kind.ZERO, "invalid-zero", f"zero as {name} times infinity"),
                )[: 2 if abs(i - j) == 1 else 1]:
                    yield Tap(
                        f"{slug}-{name}-{j}-by-{other}-{i}",
                        f"the test for {says} in product k = {j} looks at {other} of k = {i}",
                        "products",
                        lambda s, n=name, to=j, of=i, k=kind: _misplace_test(s, n, k, to, of),
                        weight=1.2,
                    )


def _miss_invalid(s: ProductSignals, name: str, answer: Kind, element: int | None = None) -> None:
    """Of one element alone, or of all."""
    infinite = (s.a if name == "a" else s.b).kind == Kind.INFINITY
    if element is not None:
        infinite = infinite & (np.arange(infinite.shape[1]) == element)
    missed = s.invalid & infinite
    s.invalid = s.invalid & ~infinite
    s.products.kind = np.where(missed, int(answer), s.products.kind)


def _take_for_zeros(s: ProductSignals, name: str, hidden: int) -> None:
    """The test for zero looks at the exponent alone."""
    infinite, other = (s.a, s.b) if name == "a" else (s.b, s.a)
    small = (other.kind == Kind.FINITE) & (other.significand < hidden)
    s.invalid = s.invalid | ((infinite.kind == Kind.INFINITY) & small)


def _misplace_test(s: ProductSignals, name: str, kind: Kind, to: int, of: int) -> None:
    """The test whose own side is of a kind looks at another element for the other one."""
    mine, others = (s.a, s.b) if name == "a" else (s.b, s.a)
    if max(to, of) >= mine.kind.shape[1]:  # operations of one program may take unequal parts of k
        return
    other = Kind.ZERO if kind == Kind.INFINITY else Kind.INFINITY
    other_test = (mine.kind[:, to] == other) & (others.kind[:, to] == kind)
    s.invalid = s.invalid.copy()
    here = (mine.kind[:, to] == kind) & (others.kind[:, of] == other)
    s.invalid[:, to] = other_test | (here & (s.products.kind[:, to] != Kind.NAN))
