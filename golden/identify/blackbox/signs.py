"""The terms that a unit negates, according to answers to one term, and programs that do the same.

An operation that negates its c negates the sum so far: along a chain the products of earlier operations come
out with one sign, the products of later ones with the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt

from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.questions import AGREEING, ALONE, ENOUGH
from golden.number.formats import Format, to_float
from golden.program.keys import NEGATE
from golden.program.program import Operation
from golden.program.signature import Bits
from golden.program.steps import Multiply

Signs = npt.NDArray[np.int64]


def with_signs(bank: Bank, skeletons: Sequence[Candidate]) -> list[Candidate]:
    """Skeletons that negate the terms that answers to one term show to be negated; if only some skeletons
    can, these. Signs that no skeleton can produce are ignored: sums that wrap have either."""
    seen = [_seen(bank.of_kinds(frozenset((kind,))), name) for kind, name in ALONE]
    upright = _Turned(1, np.ones(bank.takes.stored_k, np.int64))
    if all(_agree(one, upright) for one in seen):
        return list(skeletons)
    words = [_words(one) for one in skeletons]
    decided = [one for one in seen if any(_agree(one, turned) for some in words for _, turned in some)]
    found = [_turning(one, some, decided) for one, some in zip(skeletons, words, strict=True)]
    return [one for some in found for one in some] or list(skeletons)


@dataclass(frozen=True)
class _Turned:
    """The sign, 1 or -1, with which a program adds c, and each product; 0: it does not."""

    c: int
    products: Signs


@dataclass(frozen=True)
class _Seen:
    """Signs of the terms of questions with one, (n, terms), and of their answers, (n,)."""

    of_c: bool
    terms: Signs
    answers: Signs


def _seen(alone: Bank, name: str) -> _Seen:
    """The questions with only c, or only one product, whose term and answer both have a sign."""
    signs = {one: _signs(alone.takes.formats[one], alone.operands[one]) for one in "abc"}
    terms = signs["c"][:, None] if name == "c" else signs["a"] * signs["b"]
    answers = _signs(alone.takes.formats["d"], alone.answers)
    known = (answers != 0) & (terms != 0).any(axis=1)
    return _Seen(name == "c", terms[known], answers[known])


def _signs(fmt: Format, codes: Bits) -> Signs:
    """1 and -1 by the sign of each number, 0 for zeros, infinities and NaNs."""
    numbers = np.asarray(to_float(fmt, codes), np.float64)
    return np.where(np.isfinite(numbers), np.sign(numbers), 0).astype(np.int64)


def _agree(seen: _Seen, turned: _Turned) -> bool:
    """Whether most answers have the signs that a program produces, or too few have a sign: of integers that
    wrap, most have the sign of the sum."""
    expected = seen.terms @ (np.array([turned.c]) if seen.of_c else turned.products)
    right = int(np.count_nonzero(expected * seen.answers > 0))
    return len(seen.answers) < ENOUGH or right >= AGREEING * len(seen.answers)


_Words = list[tuple[tuple[str, ...], _Turned]]


def _words(one: Candidate) -> _Words:
    """A word of `negate` for each operation, and the signs with which the program then adds its terms: one
    word for all, or one for operations that read c, while operations that add to earlier results negate no
    sum again."""
    given = [(word,) * len(one.operations) for word in NEGATE.words]
    for word, rest in product(NEGATE.words, ("none", "product")):
        given.append(tuple(word if o.seed == "c" else rest for o in one.operations))
    return [(words, _of_program(one.operations, words, one.takes.stored_k)) for words in given]


def _turning(one: Candidate, words: _Words, seen: Sequence[_Seen]) -> list[Candidate]:
    """A candidate that negates as observed; several if c, or some products, showed no sign."""
    said = [said for said, turned in words if all(_agree(one, turned) for one in seen)]
    plain = [words for words in said if len(set(words)) == 1]
    made = (one.with_operations(map(_with_word, one.operations, words)) for words in plain or said[:1])
    return list({new.operations: new for new in made if new is not None}.values())


def _with_word(operation: Operation, word: str) -> Operation:
    steps = [replace(step, negate=word) if isinstance(step, Multiply) else step for step in operation.steps]
    return operation.with_steps(steps)


def _of_program(operations: Sequence[Operation], words: Sequence[str], k: int) -> _Turned:
    """The signs with which a program adds its terms, if its operations have these words, the last one first:
    what an operation negates, it negates of all that its c consists of."""
    c, products = 0, np.zeros(k, np.int64)
    signs: dict[str, int] = {operations[-1].to: 1}
    for operation, word in zip(reversed(operations), reversed(words), strict=True):
        sign = signs.get(operation.to, 0)
        multiplies = any(isinstance(step, Multiply) for step in operation.steps)
        products[list(operation.k_index)] = sign * (-1 if multiplies and word in ("product", "both") else 1)
        own = sign * (-1 if multiplies and word in ("c", "both") else 1)
        if operation.seed == "c":
            c = own
        signs[operation.seed] = own
        signs |= dict.fromkeys(operation.addends, sign)
    return _Turned(c, products)
