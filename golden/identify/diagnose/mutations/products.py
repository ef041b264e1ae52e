"""Faults in the multipliers: exponents, widths and signs of products, and infinity times zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from golden.identify.diagnose.datapath.arrays import Array, in_register, modulo
from golden.identify.diagnose.datapath.signals import ProductSignals
from golden.identify.diagnose.mutations.mutation import Mutation, change, fields, kinds_of, signal
from golden.identify.diagnose.mutations.wiring import complemented_products
from golden.identify.diagnose.mutations.words import OTHERS
from golden.identify.diagnose.policy import RANGES
from golden.model.instruction import Instruction
from golden.number.formats import Kind
from golden.program.steps import Align, Fma, Multiply

_product = partial(signal, "products")


def program(ins: Instruction) -> Iterator[Mutation]:
    """The result of zero times infinity."""
    for rule in ("infinity", "zero"):
        apply = fields(Multiply, Fma, zero_times_infinity=rule)
        yield change(f"zero-times-infinity-is-{rule}", f"0 x infinity gives {rule}, not NaN", apply)


def signals(ins: Instruction) -> Iterator[Mutation]:
    """Changed signals of units that multiply."""
    if not kinds_of(ins, Multiply, Fma):
        return
    a, b = ins.formats["a"], ins.formats["b"]
    # The exponent of a product,
    if a.is_float:
        for by in offsets(a.bias):
            sign, word = ("minus", "small") if by < 0 else ("plus", "large")
            text = f"the exponents of the products are {abs(by)} too {word}"
            yield _product(f"product-exponent-{sign}-{abs(by)}", text, partial(_move_products, by=by), 1.0)
        for name, other in OTHERS.items():
            text = f"the exponent of {name} is subtracted from that of {other}, not added"
            yield _product(f"{name}-exponent-subtracted", text, partial(_subtract, name=name))
        yield from _places(ins)
    # its width,
    yield from _narrow(ins)
    # its sign,
    if a.signed and b.signed:
        yield from _signs(a.is_float)
        if not a.is_float:
            text = "a negative product is negated without adding the one (one's complement)"
            yield _product("products-ones-complement", text, complemented_products)
    # and what zeros and special products do in the sum.
    if a.is_float and kinds_of(ins, Align):
        yield from _zeros()
    if "ieee" in (a.specials, b.specials):
        yield from _invalid_products(ins)


def offsets(bias: int) -> list[int]:
    """Exponent errors: by one or two, or by the bias, or one more, that was left out or added twice."""
    return sorted({by * sign for by in (1, 2, bias, bias + 1) for sign in (1, -1)}, key=abs)


def _places(ins: Instruction) -> Iterator[Mutation]:
    """The exponent of a product in a word that is one or two bits too short: counted from the least product,
    or as the sum of two exponent fields."""
    a, b = ins.formats["a"], ins.formats["b"]
    least = a.min_exponent + b.min_exponent
    most = a.max_exponent + b.max_exponent - least
    for bits in range(most.bit_length() - 1, max(most.bit_length() - RANGES.shorter - 1, 1), -1):
        for slug, start, what in (
            ("place", 0, "the exponent of a product, counted from the least one,"),
            ("exponent", 2, "the sum of both exponents of a product"),
        ):
            text = f"{what} has {bits} bits and wraps around"
            rule = partial(_wrap, least=least - start, bits=bits)
            yield _product(f"product-{slug}-modulo-{1 << bits}", text, rule)


def _wrap(s: ProductSignals, least: int, bits: int) -> None:
    above = s.products.exponent - least
    _move_products(s, np.where(s.products.finite, above % (1 << bits) - above, 0))


def _move_products(s: ProductSignals, by: int | Array) -> None:
    s.products = replace(s.products, exponent=s.products.exponent + by, lsb=s.products.lsb + by)


def _subtract(s: ProductSignals, name: str) -> None:
    exponent = (s.a if name == "a" else s.b).exponent
    _move_products(s, np.where(s.products.finite, -2 * exponent, 0))


def _narrow(ins: Instruction) -> Iterator[Mutation]:
    """A product in a word that is one or two bits too short: for integers with the unit's sign, for floats
    the product of the significands. Also products without the sign above them."""
    a, b = ins.formats["a"], ins.formats["b"]
    whole = a.fraction_bits + b.fraction_bits + 2 if a.is_float else a.integer_bits + b.integer_bits
    signed, of = not a.is_float and (a.signed or b.signed), " of the significands" if a.is_float else ""
    for bits in range(whole - 1, max(whole - RANGES.shorter - 1, 1), -1):
        text = f"each product{of} has {bits} bits, higher bits are lost"
        yield _product(f"product-width-{bits}", text, partial(_hold, bits=bits, signed=signed))
    count = len(ins.program.operations[0].k_index)
    for bits in range(whole - 1, whole + 2) if signed else ():
        for k in (None, *(range(count) if 1 < count <= RANGES.few_k else ())):
            which = "each product" if k is None else f"the product of k = {k}"
            text = f"{which}, {bits} bits, is not extended by its sign: zeros stand above it"
            slug = f"product{'' if k is None else f'-{k}'}-unsigned-{bits}"
            rule = partial(_lose_sign, bits=bits, k=k)
            yield _product(slug, text, rule, 1.05 + abs(bits - whole) / 100)


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
    value = in_register(
        np.where(products.sign, -products.significand, products.significand), np.asarray(bits)
    )
    products.sign, products.significand = (value < 0).astype(np.bool_), np.abs(value)


def _zeros() -> Iterator[Mutation]:
    """Zero products that enter the maximum exponent: the test for zero uses one factor only."""
    for name, other in OTHERS.items():
        text = f"a product that is zero because of {name} alone enters the maximum exponent"
        yield _product(f"zero-{name}-in-maximum", text, partial(_count_zeros, name=name, other=other))


def _count_zeros(s: ProductSignals, name: str, other: str) -> None:
    """A zero that counts as a number has the exponent of its code."""
    there = (getattr(s, name).kind == Kind.ZERO) & getattr(s, other).finite
    s.products.kind = np.where(there, int(Kind.FINITE), s.products.kind)


_SIGNS: dict[str, tuple[str, Callable[[ProductSignals], Array]]] = {
    "or": ("negative where a or b is, also where both are", lambda s: s.a.sign | s.b.sign),
    "and": ("negative where a and b are", lambda s: s.a.sign & s.b.sign),
    "of-a": ("that of a", lambda s: s.a.sign.copy()),
    "of-b": ("that of b", lambda s: s.b.sign.copy()),
    "inverted": ("inverted", lambda s: ~(s.a.sign ^ s.b.sign)),
    "positive": ("always +", lambda s: np.zeros_like(s.a.sign)),
}
"""Wrong signs of a product."""


def _signs(special: bool) -> Iterator[Mutation]:
    """`special`: whether infinite products and zeros have both signs."""
    kinds: list[tuple[str, str, Kind | None, float]] = [("", "a product", None, 1.0)]
    kinds += [("infinite-", "an infinite product", Kind.INFINITY, 1.1)] * special
    kinds += [("zero-", "a product that is zero", Kind.ZERO, 1.1)] * special
    for slug, (text, sign) in _SIGNS.items():
        for prefix, what, kind, weight in kinds:
            rule = partial(_set_sign, sign=sign, kind=kind)
            yield _product(f"{prefix}product-sign-{slug}", f"the sign of {what} is {text}", rule, weight)


def _set_sign(s: ProductSignals, sign: Callable[[ProductSignals], Array], kind: Kind | None) -> None:
    there = np.True_ if kind is None else s.products.kind == kind
    s.products.sign = np.where(there, sign(s), s.products.sign)


def _invalid_products(ins: Instruction) -> Iterator[Mutation]:
    """The test for infinity times zero uses one side only, or another element."""
    answers = {Kind.INFINITY: "infinity", Kind.ZERO: "zero"}
    for name, other in OTHERS.items():
        for answer, word in answers.items():
            text = f"zero as {other} times infinity as {name} gives {word}, not NaN"
            rule = partial(_miss_invalid, name=name, answer=answer)
            yield _product(f"zero-times-infinite-{name}-is-{word}", text, rule)
        if getattr(ins.formats[other], "exponent_bits", 0):
            text = f"a subnormal number as {other} times infinity as {name} gives NaN, as zero does"
            rule = partial(_take_for_zeros, name=name, hidden=1 << ins.formats[other].fraction_bits)
            yield _product(f"subnormal-times-infinite-{name}-is-nan", text, rule)
    count = len(ins.program.operations[0].k_index)
    for j in range(count if count > 1 else 0):
        for name, other in OTHERS.items():
            text = f"zero as {other} times infinity as {name} in product k = {j} gives infinity, not NaN"
            rule = partial(_miss_invalid, name=name, answer=Kind.INFINITY, element=j)
            yield _product(f"zero-times-infinite-{name}-{j}-is-infinity", text, rule)
        for i in dict.fromkeys((0, (j - 1) % count, (j + 1) % count)):
            if i != j:
                yield from _misplaced_tests(j, i)


def _misplaced_tests(to: int, of: int) -> Iterator[Mutation]:
    for name, other in OTHERS.items():
        for kind, slug, says in (
            (Kind.INFINITY, "invalid", f"an infinite {name} times zero"),
            (Kind.ZERO, "invalid-zero", f"zero as {name} times infinity"),
        )[: 2 if abs(of - to) == 1 else 1]:
            text = f"the test for {says} in product k = {to} looks at {other} of k = {of}"
            rule = partial(_misplace_test, name=name, kind=kind, to=to, of=of)
            yield _product(f"{slug}-{name}-{to}-by-{other}-{of}", text, rule, 1.2)


def _miss_invalid(s: ProductSignals, name: str, answer: Kind, element: int | None = None) -> None:
    """For one element alone, or for all."""
    infinite = getattr(s, name).kind == Kind.INFINITY
    if element is not None:
        infinite = infinite & (np.arange(infinite.shape[1]) == element)
    missed = s.invalid & infinite
    s.invalid = s.invalid & ~infinite
    s.products.kind = np.where(missed, int(answer), s.products.kind)


def _take_for_zeros(s: ProductSignals, name: str, hidden: int) -> None:
    """The test for zero uses only the exponent."""
    infinite, other = getattr(s, name), getattr(s, OTHERS[name])
    small = (other.kind == Kind.FINITE) & (other.significand < hidden)
    s.invalid = s.invalid | ((infinite.kind == Kind.INFINITY) & small)


def _misplace_test(s: ProductSignals, name: str, kind: Kind, to: int, of: int) -> None:
    """The test whose own side is of a kind reads the other side from another element."""
    mine, others = getattr(s, name), getattr(s, OTHERS[name])
    if max(to, of) >= mine.kind.shape[1]:  # operations of one program may take unequal parts of k
        return
    other = Kind.ZERO if kind == Kind.INFINITY else Kind.INFINITY
    other_test = (mine.kind[:, to] == other) & (others.kind[:, to] == kind)
    s.invalid = s.invalid.copy()
    here = (mine.kind[:, to] == kind) & (others.kind[:, of] == other)
    s.invalid[:, to] = other_test | (here & (s.products.kind[:, to] != Kind.NAN))
