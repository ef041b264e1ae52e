"""Wrong results as a function of the right ones: one table of relations, each of them tried on all vectors.

A relation of integers is one of exact numbers: the sum of the products and c, before it is brought into the
format of the result. Some relations are a fault (c is subtracted), others only describe how results differ
(each is twice the right one): a symptom, which ranks after every cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from golden.explain.numbers import times_power
from golden.identify.diagnose.mutations.mutation import Mutation
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.program.signature import Bits, Operands
from golden.program.steps import Multiply, Round

_SYMPTOM = "(a symptom, not its cause)"
_AFTER_FAULTS = 1.2
"""Weight of a relation that may be a fault anywhere: a fault with a known place is the likelier."""


@dataclass(frozen=True)
class _Parts:
    """Exact integers (n,): the sum of the products, c, and `whole`, their sum, which may exceed the range of
    `d`."""

    products: Any
    c: Any
    d: Format

    @property
    def whole(self) -> Any:
        """The result before it is brought into its format."""
        return self.products + self.c

    @property
    def held(self) -> Any:
        """The content of a register of the result's format, with its sign."""
        low = self.code
        return low - ((low >> (self.d.bits - 1)) << self.d.bits) if self.d.signed else low

    @property
    def code(self) -> Any:
        """The bits of the result, without a sign."""
        return self.whole & ((1 << self.d.bits) - 1)


@dataclass(frozen=True)
class _Relation:
    """A row of the table: `of` turns the right parts into the wrong exact numbers; `unsigned` is the same
    from operands read without a sign."""

    slug: str
    text: str
    of: Callable[[_Parts], Any]
    symptom: bool = False
    unsigned: bool = False


def relations(ins: Instruction) -> Iterator[Mutation]:
    """Every relation that is meaningful for the result of a unit."""
    if ins.formats["d"].is_float:
        yield from _significands(ins.formats["d"])
    elif _is_exact(ins):
        for one in _integers(ins):
            answer = partial(_answer, relation=one)
            yield Mutation(one.slug, one.text, _AFTER_FAULTS, answer=answer, symptom=one.symptom)


def offset(ins: Instruction, by: int) -> Mutation:
    """Integer results that all have the same distance from the right ones, `by` modulo their range."""
    bits = ins.formats["d"].bits
    power = f" (2^{by.bit_length() - 1})" if by & (by - 1) == 0 else ""
    text = f"{by:#x}{power} added to each result, modulo 2^{bits} {_SYMPTOM}"
    word = ins.formats["d"].dtype.type
    added = lambda codes: (codes + word(by)) & word((1 << bits) - 1)  # noqa: E731
    return Mutation("result-plus-constant", text, _AFTER_FAULTS, result=added, symptom=True)


def _is_exact(ins: Instruction) -> bool:
    """Whether the result is an integer sum of integer products, each taken once."""
    steps = ins.program.steps_of(Multiply)
    integers = all(not ins.formats[name].is_float for name in "abcd" if name not in ins.absent)
    plain = all(step.operation == "product" and step.negate == "none" for step in steps)
    whole = ins.pattern is None and ins.scale_block is None and "b" not in ins.absent
    return bool(steps) and integers and plain and whole and len(ins.program.operations) == 1


# Integers ---------------------------------------------------------------------------------------------------


def _integers(ins: Instruction) -> Iterator[_Relation]:
    """The table of exact integers."""
    d = ins.formats["d"]
    if "c" not in ins.absent:
        yield _Relation(
            "c-minus-products", "the products are subtracted: c - products", lambda p: p.c - p.products
        )
        yield _Relation("products-minus-c", "c is subtracted: products - c", lambda p: p.products - p.c)
    yield _Relation("result-negated", "the result negated", lambda p: -p.whole)
    yield _Relation("result-complemented", "every bit of the result inverted", lambda p: ~p.whole)
    if d.signed:
        yield _Relation("result-absolute", "the absolute value of the result", lambda p: abs(p.held))
    if ins.formats["a"].bits + ins.formats["b"].bits > d.bits:
        upper = f"the upper half of the product (bits {d.bits} and up) in place of the lower one"
        yield _Relation("result-upper-half", upper, lambda p: p.whole >> d.bits)
        text = f"{upper}, of operands without a sign"
        yield _Relation("result-upper-half-unsigned", text, lambda p: p.whole >> d.bits, unsigned=True)
    # shifted right: of the exact sum, or of the bits of the result with its sign or zeros above
    registers = {"": ("", "whole"), "-zeros": (", zeros above it", "code")}
    if _overflows(ins):
        registers["-held"] = (", its own sign above it", "held")
    if ins.formats["a"].bits + ins.formats["b"].bits > d.bits:
        registers["-unsigned"] = (", as a product of operands without a sign", "whole")
    for n in range(1, d.bits):
        text = f"each result is {times_power(n)} the right one, shifted left by {n} {_SYMPTOM}"
        yield _Relation(f"result-times-2-to-{n}", text, partial(_shifted_left, by=n), symptom=True)
        for slug, (how, register) in registers.items():
            text = f"each result is the right one shifted right by {n}{how} {_SYMPTOM}"
            shifted = partial(_shifted_right, register=register, by=n)
            unsigned = slug == "-unsigned"
            yield _Relation(f"result-times-2-to-minus-{n}{slug}", text, shifted, True, unsigned)


def _overflows(ins: Instruction) -> bool:
    """Whether an exact sum may exceed the range of the result."""
    a, b, d = (ins.formats[name] for name in "abd")
    most = a.bits + b.bits + (ins.k - 1).bit_length()
    return d.signed and ("c" not in ins.absent or most > d.bits)


def _shifted_left(parts: _Parts, by: int) -> Any:
    return parts.whole << by


def _shifted_right(parts: _Parts, register: str, by: int) -> Any:
    return getattr(parts, register) >> by


def _answer(ins: Instruction, operands: Operands, relation: _Relation) -> Bits:
    """The codes of the wrong numbers."""
    # the sum of the products, in machine integers where it fits
    a, b = ins.formats["a"], ins.formats["b"]
    fits = a.bits + b.bits + ins.k.bit_length() < 64
    factors = (_values(ins.formats[n], operands[n], relation.unsigned, fits) for n in "ab")
    products = np.multiply(*factors).sum(axis=-1).astype(object)
    # from here exact numbers of Python: a sum shifted left needs more than any machine word
    c = _values(ins.formats["c"], operands["c"], relation.unsigned) if "c" in operands else 0
    wrong = relation.of(_Parts(products, c, ins.formats["d"]))
    # the format of the result: what saturates in the unit saturates here, all else keeps its low bits
    d = ins.formats["d"]
    if any(step.overflow == "saturate" for step in ins.program.steps_of(Round)):
        least, most = (-(1 << d.bits - 1), (1 << d.bits - 1) - 1) if d.signed else (0, (1 << d.bits) - 1)
        wrong = np.minimum(np.maximum(wrong, least), most)
    return np.asarray(wrong & ((1 << d.bits) - 1)).astype(d.dtype)


def _values(fmt: Format, codes: Bits, unsigned: bool, short: bool = False) -> Any:
    """The integers that codes stand for, `short`: in machine words."""
    words = codes.astype(np.int64 if short else object) & ((1 << fmt.integer_bits) - 1)
    if not fmt.signed or unsigned:
        return words
    return words - ((words >> (fmt.integer_bits - 1)) << fmt.integer_bits)


# Floats -----------------------------------------------------------------------------------------------------


def _significands(fmt: Format) -> Iterator[Mutation]:
    """Significands whose hidden bit is one place away from the exponent's."""
    if fmt.exponent_bits == 0 or fmt.fraction_bits < 2:
        return
    for slug, by, which in (("right", -1, "high"), ("left", 1, "low")):
        text = f"the fraction of a normal result is taken one place too {which} of its significand"
        rule = partial(_move_fraction, fmt, by)
        yield Mutation(f"result-fraction-shifted-{slug}", text, _AFTER_FAULTS, result=rule)


def _move_fraction(fmt: Format, by: int, codes: Bits) -> Bits:
    word, low = fmt.dtype.type, fmt.ignored_low
    field = (1 << fmt.fraction_bits) - 1
    exponents = codes >> word(low + fmt.fraction_bits) & word((1 << fmt.exponent_bits) - 1)
    normal = (exponents != 0) & (exponents != word((1 << fmt.exponent_bits) - 1))
    fraction = codes >> word(low) & word(field)
    whole = fraction | word(1 << fmt.fraction_bits)
    moved = (whole >> word(1) if by < 0 else whole << word(1)) & word(field)
    return np.where(normal, codes & ~word(field << low) | moved << word(low), codes)
