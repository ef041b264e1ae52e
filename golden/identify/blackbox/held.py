"""What answers to one term show of the registers that hold sums: where their highest bit is, and their point.

A register that is too narrow for one term takes the same from every such term, or bounds every answer, in any
order of the sum; while it is missing, every order is wrong on nearly all questions. A sum in fixed point cuts
what is added to it at the same place, whatever it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.identify.blackbox import structure
from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.questions import ALONE
from golden.number.formats import Format, to_float
from golden.number.frozen import replace
from golden.program.steps import Step, Sum

Numbers = npt.NDArray[np.float64]
_SEEN, _MOST = 16, 0.5
"""Terms that a register has to be too narrow for, and the share of those that have to say the same."""
_ROUNDED = 1 / 16
"""How far a logarithm of what was taken is from an integer at most: results are rounded."""
_FEW_BITS, _LOWEST, _FAR = 8, -16, 1 << 20
"""Places within which nothing is cut, where they end at least, and an exponent beyond all others."""
_CLAMPED = 1 - 2.0**-6
"""Of the largest answer: those above are at the end of a register that saturates."""


def one_sided(bank: Bank) -> bool:
    """Whether answers to sums that need few bits are other numbers, and all of them less, or all of them
    more: nothing is cut of such sums, so that no rounding is one-sided there. One's complement by the sign of
    something that is no operand is: it takes from sums of one sign alone."""
    takes = bank.takes
    if not all(takes.formats[name].is_float for name in "abcd"):
        return False
    a, b, c = (np.asarray(to_float(takes.formats[name], bank.operands[name]), np.float64) for name in "abc")
    answers = np.asarray(to_float(takes.formats["d"], bank.answers), np.float64)
    with np.errstate(all="ignore"):
        terms = np.concatenate([a * b, c[:, None]], axis=1)
        sums = terms.sum(axis=1)
        known = np.isfinite(terms).all(axis=1) & np.isfinite(sums) & np.isfinite(answers)
    known &= (terms != 0).any(axis=1)
    known[known] &= _few_bits(terms[known], sums[known], takes.formats["d"])
    less, more = (np.count_nonzero(known & some) for some in (answers < sums, answers > sums))
    return bool(min(less, more) == 0 and max(less, more) >= _SEEN)


def _few_bits(terms: Numbers, sums: Numbers, d: Format) -> npt.NDArray[np.bool_]:
    """Where all terms lie within a few places, not far below 1, where the point of a register can be, and d
    has their sum as it is, among its normal numbers."""
    top, low = (fold(_ends(terms, end), axis=1) for fold, end in ((np.max, 0), (np.min, 1)))
    first, last = (_ends(sums[:, None], end)[:, 0] for end in (0, 1))
    fits = (first - last <= d.fraction_bits) & (first <= d.max_exponent)
    near = (top - low <= _FEW_BITS) & (low >= max(d.min_exponent, _LOWEST))
    return np.asarray(near & (fits | (sums == 0)))


def _ends(numbers: Numbers, end: int) -> npt.NDArray[np.int64]:
    """The exponent of the highest bit (0) or the lowest (1); of zeros one that is above or below all."""
    significands, exponents = np.frexp(numbers)
    whole = (significands * 2.0**53).astype(np.int64)
    lowest = exponents - 54 + np.frexp((whole & -whole).astype(np.float64))[1]
    return np.where(numbers != 0, lowest if end else exponents - 1, _FAR if end else -_FAR)


@dataclass(frozen=True)
class _Terms:
    """Finite terms other than zero that were asked alone, the exponents they carry, and finite answers."""

    values: Numbers
    exponents: npt.NDArray[np.int64]
    answers: Numbers


def held(bank: Bank, skeletons: Sequence[Candidate]) -> list[Candidate]:
    """Skeletons whose exact sums have the registers that answers to c, or to a product, alone show; that of c
    may be where c is converted, and the result, by operations of their own."""
    if not bank.takes.formats["d"].is_float:
        return list(skeletons)
    shown = {name: _register(bank, kind, name) for kind, name in ALONE}
    made = list(skeletons)
    for name, keys in shown.items():
        made = [_with_register(one, name, keys) for one in made] if keys else made
    converted = [new for one in skeletons for new in structure.converted(one)] if shown["c"] else []
    return [*made, *(_with_register(one, "c", shown["c"], alone=True) for one in converted)]


def _register(bank: Bank, kind: str, name: str) -> dict[str, Any]:
    """The keys of the sum of a term; none where all terms fit."""
    terms = _terms(bank.of_kinds(frozenset((kind,))), name)
    top = _top(terms, bank.takes.formats["d"].max_exponent)
    if top is not None:
        ends = np.abs(terms.answers[(terms.answers != 0) & (np.abs(terms.values) >= 2.0 ** (top + 1))])
        clamps = np.count_nonzero(ends > _CLAMPED * 2.0**top) > _MOST * len(ends)
        point = min(top, 0)
        return {
            "exponent": point,
            "width": top + 1 - point,
            "overflow": "saturate" if clamps else "wrap",
        }
    width = _width(terms)
    return {} if width is None else {"width": width}


def _top(terms: _Terms, most: int) -> int | None:
    """The power of two that no answer is above, where terms are; None where it is that of the format, or what
    lies above shows as zero."""
    size = float(np.abs(terms.answers).max(initial=0.0))
    top = int(np.ceil(np.log2(size))) if size else most
    above = (np.frexp(terms.values)[1] > top + 1) & (terms.answers != 0)
    return top if top < most and np.count_nonzero(above) >= _SEEN else None


def _width(terms: _Terms) -> int | None:
    """How many places above its own exponent the number lies that was taken from a term, where most terms of
    which much was taken say the same: a register that wraps, as wide as that."""
    lost = np.abs(terms.values - terms.answers)
    much = lost > np.abs(terms.values) / 2
    places = np.log2(lost[much]) - terms.exponents[much]
    whole = np.rint(places)
    found, counts = np.unique(whole[np.abs(places - whole) < _ROUNDED], return_counts=True)
    if not len(found) or counts.max() < max(_SEEN, _MOST * np.count_nonzero(much)):
        return None
    width = int(found[np.argmax(counts)])
    return width if width >= 1 else None


def _terms(alone: Bank, name: str) -> _Terms:
    """The terms of questions with one term, c or a product, and what was answered."""
    read = ["c"] if name == "c" else ["a", "b"]
    factors = [
        np.asarray(to_float(alone.takes.formats[one], alone.operands[one]), np.float64).reshape(
            len(alone), -1
        )
        for one in read
    ]
    with np.errstate(all="ignore"):
        each = np.prod(factors, axis=0)
    place = np.argmax(np.nan_to_num(np.abs(each)), axis=1)
    rows = np.arange(len(alone))
    answers = np.asarray(to_float(alone.takes.formats["d"], alone.answers), np.float64)
    known = np.isfinite(each).all(axis=1) & np.isfinite(answers) & (each[rows, place] != 0)
    some = [one[rows, place][known] for one in factors]
    exponents = np.stack([np.frexp(one)[1] - 1 for one in some]).sum(axis=0)
    return _Terms(each[rows, place][known], np.asarray(exponents, np.int64), answers[known])


def _with_register(one: Candidate, name: str, keys: dict[str, Any], alone: bool = False) -> Candidate:
    """A candidate whose exact sums of a term, or of that `alone`, have these keys; itself where no unit can
    be that."""

    def changed(step: Step) -> Step:
        holds = isinstance(step, Sum) and (step.of == (name,) if alone else name in step.of)
        return replace(step, **keys) if holds else step

    return one.with_each_step(changed) or one
