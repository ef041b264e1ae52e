"""Operands from the wrong place: one used twice, an element of another index, a field of the other factor,
and integers with a wrong sign."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from golden.identify.diagnose.datapath.signals import OperandSignals, ProductSignals
from golden.identify.diagnose.mutations.mutation import Mutation, signal
from golden.identify.diagnose.mutations.words import OTHERS
from golden.identify.diagnose.policy import RANGES
from golden.model.instruction import Instruction
from golden.number.formats import Kind
from golden.program.signature import Operands

_operands = partial(signal, "operands")
_ONE_ELEMENT = 1.1
"""Weight of a fault in one element of several: one of all elements is the likelier."""


def repeated(ins: Instruction) -> Iterator[Mutation]:
    """Operands at the ports that replace others."""
    if "b" in ins.absent:
        return
    a, b = ins.formats["a"], ins.formats["b"]
    if a == b and ins.pattern is None:
        for name, other in OTHERS.items():
            text = f"{other} taken in place of {name}, so that both factors are {other} ({other} x {other})"
            yield Mutation(f"{name}-is-{other}", text, operands=partial(_take, name=name, other=other))
    if ins.pattern is not None or ins.k < 2:
        return
    # Pairs of neighbours that get the same elements, then one element in place of another.
    every = range(ins.k)
    for word, other, odd in (("odd", "even", 1), ("even", "odd", 0)):
        text = f"the {word} products are those of the {other} elements next to them"
        order = [i ^ 1 if i % 2 == odd and i ^ 1 < ins.k else i for i in every]
        yield _ordered(f"{word}-products-are-{other}", text, "ab", order, 1.0)
    for to in every:
        for of in every if ins.k <= RANGES.few_k else sorted({0, to - 1, to + 1} & {*every}):
            order = [of if i == to else i for i in every]
            for names in ("b", "a", "ab") if of != to else ():
                slug, what = (names, names) if len(names) == 1 else ("product", "the factors")
                text = f"product k = {to} takes {what}[{of}] in place of {what}[{to}]"
                if len(names) > 1:
                    text = f"product k = {to} is that of k = {of} once more"
                yield _ordered(
                    f"{slug}-{to}-is-{of}", text, names, order, _ONE_ELEMENT + (names == "a") / 100
                )


def _take(operands: Operands, name: str, other: str) -> Operands:
    return operands | {name: operands[other]}


def _ordered(slug: str, text: str, names: str, order: Sequence[int], weight: float) -> Mutation:
    def rewire(operands: Operands) -> Operands:
        return operands | {name: operands[name][:, list(order)] for name in names}

    return Mutation(slug, text, weight, operands=rewire, does=(names, *order))


# Signals ----------------------------------------------------------------------------------------------------


def signals(ins: Instruction) -> Iterator[Mutation]:
    """Fields of one factor taken from the other, and the signs of integers."""
    if "b" in ins.absent:
        return
    a, b = ins.formats["a"], ins.formats["b"]
    if a.is_float and a == b:
        for name, other in OTHERS.items():
            for field, what in (("significand", "significand"), ("exponent", "exponent")):
                text = f"the {what} of {name} is that of {other}"
                rule = partial(_take_field, field=field, name=name, other=other)
                yield _operands(f"{name}-{field}-of-{other}", text, rule)
    for name in "ab":
        if not ins.formats[name].is_float:
            yield from _integer_signs(ins, name)


def _take_field(s: OperandSignals, field: str, name: str, other: str) -> None:
    """For finite numbers; zeros and special values are detected by their codes."""
    mine, its = s.numbers[name], s.numbers[other]
    both = mine.finite & its.finite
    if field == "exponent":
        s.move(name, np.where(both, its.exponent - mine.exponent, 0))
    else:
        s.numbers[name] = replace(mine, significand=np.where(both, its.significand, mine.significand))


def _integer_signs(ins: Instruction, name: str) -> Iterator[Mutation]:
    """An integer is its code, less 2^bits if its sign is set: a missing sign, a sign of an unsigned number,
    or another bit."""
    fmt, count = ins.formats[name], len(ins.program.operations[0].k_index)
    several = 1 < count <= RANGES.few_k
    for k in (None, *(range(count) if several else ())):
        what, slug = (name, name) if k is None else (f"{name}[{k}]", f"{name}-{k}")
        weight = 1.0 if k is None else _ONE_ELEMENT
        sign = partial(_with_sign, name=name, k=k, bits=fmt.integer_bits)
        # The word without its sign, or with a wrong one.
        if fmt.signed:
            yield _operands(f"{slug}-unsigned", f"{what} is read as unsigned", partial(sign, of=None), weight)
            for word, high in (("high", True), ("inverted", False)):
                text = f"the sign of {what} is {'always 1' if high else 'inverted'}"
                rule = partial(sign, of=(name, k), inverted=not high, high=high)
                yield _operands(f"{slug}-sign-{word}", text, rule, weight + 0.05)
            text = f"a negative {what} is negated without adding the one (one's complement)"
            rule = partial(_complement, name=name, k=k)
            yield _operands(f"{slug}-ones-complement", text, rule, weight)
        else:
            yield _operands(
                f"{slug}-signed", f"{what} is read as signed", partial(sign, of=(name, k)), weight
            )
        # The sign of another operand, or of another element.
        for other in (OTHERS[name],) if fmt.signed and not ins.formats[OTHERS[name]].is_float else ():
            it = other if k is None else f"{other}[{k}]"
            text = f"the sign of {what} is taken from {it}"
            yield _operands(f"{slug}-sign-of-{other}", text, partial(sign, of=(other, k)), weight + 0.05)
        for of in range(count) if k is not None and fmt.signed else ():
            if of != k:
                text = f"the sign of {what} is taken from {name}[{of}]"
                rule = partial(sign, of=(name, of))
                yield _operands(f"{slug}-sign-of-{of}", text, rule, weight + 0.05)


def _with_sign(
    s: OperandSignals,
    name: str,
    k: int | None,
    bits: int,
    of: tuple[str, int | None] | None,
    inverted: bool = False,
    high: bool = False,
) -> None:
    """Reads elements with the top bits of others as their signs, perhaps inverted or always high; None: with
    none."""
    numbers = s.numbers[name]
    there = np.ones(numbers.kind.shape[1], np.bool_) if k is None else np.arange(numbers.kind.shape[1]) == k
    if k is not None and k >= len(there):  # operations of one program may take unequal parts of k
        return
    value = np.where(numbers.sign, -numbers.significand, numbers.significand)
    code = value % (1 << bits)
    if of is None:
        wrong = code
    else:
        other, place = of
        top = (_top_bits(s, other) ^ inverted) | high
        if place is not None:
            top = top[:, place : place + 1]
        wrong = code - np.where(top, 1 << bits, 0)
    value = np.where(there, wrong, value)
    kind = np.where(value != 0, int(Kind.FINITE), int(Kind.ZERO))
    s.numbers[name] = replace(
        numbers, kind=kind, sign=(value < 0).astype(np.bool_), significand=np.abs(value)
    )


def _top_bits(s: OperandSignals, name: str) -> np.ndarray:
    numbers, bits = s.numbers[name], s.formats[name].integer_bits
    code = np.where(numbers.sign, -numbers.significand, numbers.significand) % (1 << bits)
    return np.asarray((code >> (bits - 1)) != 0)


def _complement(s: OperandSignals, name: str, k: int | None) -> None:
    numbers = s.numbers[name]
    there = numbers.sign if k is None else numbers.sign & (np.arange(numbers.sign.shape[1]) == k)
    significand = np.where(there, numbers.significand - 1, numbers.significand)
    s.numbers[name] = replace(numbers, significand=significand)


def complemented_products(s: ProductSignals) -> None:
    """Negative products that are negated without adding the one."""
    products = s.products
    products.significand = np.where(
        products.sign & products.finite, products.significand + 1, products.significand
    )
