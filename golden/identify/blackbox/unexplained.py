"""Boxes that no candidate explains: plain conditions on operands under which the nearest candidate is wrong
or right (golden.identify.diagnose.conditions), the laws that the box breaks, and the candidate without
invented NaN words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.identify.blackbox.box import Bank, Mask
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.evidence import simplest
from golden.identify.blackbox.missing_operands import as_own
from golden.identify.diagnose.conditions import known, products_present, subnormal
from golden.identify.sample import listed, picked
from golden.number.classes import is_zero
from golden.number.formats import Format, to_float
from golden.program.signature import Operands

_OF = "the candidate's"


def unexplained(candidate: Candidate, *banks: Bank) -> tuple[str, ...]:
    """Sentences about the answers of some banks that the candidate does not explain."""
    takes = candidate.takes
    read = [name for name in banks[0].operands if name not in takes.unread]
    operands = {name: np.concatenate([bank.operands[name] for bank in banks]) for name in read}
    answers = np.concatenate([bank.answers for bank in banks])
    expected = np.concatenate([bank.answered(candidate.program).copy() for bank in banks])
    own = as_own(candidate.instruction, takes)
    return known(own, operands, expected, expected != answers, answers, _OF)


_FEWEST = 12
"""Answers that are needed to decide a law."""
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Law:
    """A law that a box breaks: a sentence, and a question with the answer that shows it."""

    text: str
    operands: Operands | None = None
    box: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return vars(self) | {"operands": listed(self.operands)}


def broken(bank: Bank) -> tuple[Law, ...]:
    """The laws of single terms that the box breaks."""
    terms = [name for name in ("c", "products") if name not in bank.takes.unread]
    alone = {name: _alone(bank, name == "c") for name in terms}
    scaled = _factors(bank, alone)
    if scaled:
        return scaled
    return tuple(law for name, one in alone.items() if (law := _no_term(bank, name, one)) is not None)


# One term alone ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Alone:
    """Questions with one term: the rows of the bank, the places of products, the values of the terms, and the
    answers."""

    rows: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    a: Values
    b: Values
    term: Values
    answers: Values


def _alone(bank: Bank, is_c: bool) -> _Alone:
    """The questions with finite numbers whose term d can represent."""
    formats, operands = bank.takes.formats, bank.operands
    present = products_present(formats, operands)
    there = [~is_zero(formats[name], operands[name]) for name in "ab"]
    alone = (there[0] | there[1]).sum(axis=1) == (0 if is_c else 1)
    no_c = is_zero(formats["c"], operands["c"])
    rows = np.flatnonzero(alone & (present.sum(axis=1) == (0 if is_c else 1)) & (no_c != is_c))
    place = np.argmax(present[rows], axis=1)
    a, b = (to_float(formats[name], operands[name][rows, place]) for name in "ab")
    with np.errstate(all="ignore"):
        term = to_float(formats["c"], operands["c"][rows]) if is_c else a * b
        for name in ("scale_a", "scale_b"):
            if name in operands and not is_c:
                scale = to_float(formats[name], operands[name][rows])
                term = term * scale[np.arange(len(rows)), place * scale.shape[1] // bank.takes.k]
    answers = to_float(formats["d"], bank.answers[rows])
    kept = _in_range(formats["d"], term) & np.isfinite(answers)
    for name in "c" if is_c else "ab":  # a unit that flushes what is subnormal adds as any other
        kept &= ~subnormal(formats[name], bank.operands[name][rows])
    return _Alone(rows[kept], place[kept], a[kept], b[kept], term[kept], answers[kept])


def _in_range(d: Format, value: Values) -> Mask:
    """Numbers in the normal range of d on both sides."""
    size = np.abs(np.where(np.isfinite(value), value, 0))
    if not d.is_float:
        return np.asarray((size > 0) & (size < 2.0 ** (d.integer_bits - 1)))
    return np.asarray((size >= 2.0 ** (d.min_exponent + 2)) & (size <= 2.0 ** (d.max_exponent - 2)))


def _off(d: Format, value: Values, answers: Values) -> Mask:
    """Which answers are off by more than one unit in the last place; of whole numbers, at all."""
    whole = (value != np.rint(value)).astype(np.float64)
    unit = np.ldexp(1.0, np.frexp(value)[1] - 1 - d.fraction_bits) if d.is_float else whole
    return np.asarray(np.abs(answers - value) > unit)


def _factors(bank: Bank, alone: dict[str, _Alone]) -> tuple[Law, ...]:
    """One factor of all products and one of c, if they differ."""
    d = bank.takes.formats["d"]
    found = {name: _factor(d, one) for name, one in alone.items()}
    product, c = found["products"], found.get("c")
    lacks_c = "c" in bank.takes.unread
    if not product or (product == 1 if lacks_c else not c or product == c):
        return ()
    one, count = alone["products"], len(alone["products"].rows)
    rounded = "" if d.is_float else ", rounded,"
    said = f"one product alone is {_number(product)} times a * b{rounded} in all {count:,} questions"
    text = f"a constant factor multiplies the products: {said}"
    if c is not None:
        held = "c" if c == 1 else f"{_number(c)} times c"
        text = f"a constant factor lies between products and c: {said}, and c alone is {held}"
    return (_shown(bank, text, one.rows),)


def _factor(d: Format, one: _Alone) -> Fraction | None:
    """The constant ratio of answers to terms, apart from rounding; None if there is none."""
    if len(one.rows) < _FEWEST:
        return None
    # Integers are off by one at most after a rounding, which hides the factor of small answers.
    least = 0 if d.is_float else 16
    large = np.abs(one.answers) >= least
    if np.count_nonzero(large) < _FEWEST:
        return None
    middle = float(np.median(one.answers[large] / one.term[large]))
    power = Fraction(2) ** round(math.log2(abs(middle))) * (1 if middle > 0 else -1) if middle else None
    for factor in (power, Fraction(middle).limit_denominator(64)):
        if factor and not _off(d, one.term * float(factor), one.answers).any():
            return factor
    return None


def _no_term(bank: Bank, name: str, one: _Alone) -> Law | None:
    """One term with a wrong answer, and the function that the box computes instead, if that is simple."""
    d = bank.takes.formats["d"]
    off = _off(d, one.term, one.answers)
    count = len(off)
    # Share of the answers that has to break a law.
    share = 0.1
    if count < _FEWEST or off.sum() < share * count:
        return None
    with_b = name == "products" and "b" not in bank.takes.unread
    element = ("one product alone", "a * b") if with_b else ("one element of a alone", "a")
    what, right = element if name == "products" else ("c alone", "c")
    for said, value in _with_signs(one) if with_b else ():
        if not _off(d, value, one.answers).any():
            return _shown(bank, f"one product alone is {said}, in all {count:,} questions", one.rows[off])
    for said, value in _instead(one) if with_b else ():
        if not _off(d, value, one.answers).any():
            text = f"it is no dot product: one pair of factors alone gives {said}, in all {count:,} questions"
            return _shown(bank, text, one.rows[off])
    if not d.is_float:
        return _shown(
            bank, f"{what} is not {right}: {int(off.sum()):,} of {count:,} answers differ", one.rows[off]
        )
    error = float(np.max(np.abs(one.answers / one.term - 1)))
    text = f"{what} is not {right}: {int(off.sum()):,} of {count:,} answers are off by more than one unit"
    return _shown(bank, f"{text} of the last place, by up to {100 * error:.3g} %", one.rows[off])


def _with_signs(one: _Alone) -> Iterator[tuple[str, Values]]:
    """The products with another sign at some places, if answers have one sign for each place."""
    places = np.unique(one.places).tolist()
    turned = np.sign(one.answers) == -np.sign(one.term)
    negative = [k for k in places if turned[one.places == k].all()]
    if 0 < len(negative) < len(places):
        sign = np.where(np.isin(one.places, negative), -1.0, 1.0)
        yield f"-(a * b) at k = {', '.join(map(str, negative))}, and a * b elsewhere", sign * one.term


def _instead(one: _Alone) -> Iterator[tuple[str, Values]]:
    """Other simple functions of two factors; a value beyond doubles is infinite, which no answer here is."""
    with np.errstate(over="ignore"):
        plus, minus = one.a + one.b, one.a - one.b
        square = minus**2
    yield "|a - b|", np.abs(minus)
    yield "a + b", plus
    yield "a - b", minus
    yield "(a - b)^2", square
    yield "|a * b|", np.abs(one.term)
    yield "max(a, b)", np.maximum(one.a, one.b)
    yield "min(a, b)", np.minimum(one.a, one.b)
    yield "a", one.a
    yield "b", one.b


def _shown(bank: Bank, text: str, rows: npt.NDArray[np.int64]) -> Law:
    """A law with the simplest of some questions."""
    place = simplest(bank, rows)
    return Law(text, picked(bank.operands, place), int(bank.answers[place]))


def _number(value: Fraction) -> str:
    """A factor in words; powers of two as such."""
    top, bottom = abs(value.numerator), value.denominator
    if top & (top - 1) or bottom & (bottom - 1):
        return str(value)
    return f"{'-' if value < 0 else ''}2^{top.bit_length() - bottom.bit_length()}"
