"""The registers that hold sums, according to answers to one term: the place of their highest bit, and their
point.

A register that is too narrow for one term changes every such term alike, or bounds every answer, in any order
of the sum. Without it in the candidate, every order is wrong on nearly all questions. A fixed-point sum cuts
all terms at the same place, whatever it holds.
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
"""Terms too wide for a register that are needed to decide, and the share of them that has to agree."""
_ROUNDED = 1 / 16
"""The largest distance from an integer of the logarithm of a loss: results are rounded."""
_FEW_BITS, _LOWEST, _FAR = 8, -16, 1 << 20
"""Places within which nothing is cut; the lowest place for that; and an exponent beyond all others."""
_CLAMPED = 1 - 2.0**-6
"""Answers above this part of the largest one are at the end of a register that saturates."""


def one_sided(bank: Bank) -> bool:
    """Whether sums that need few bits have wrong answers, all of them too small or all too large. Nothing is
    cut of such sums, so rounding cannot be the cause; one's complement by the sign of something other than an
    operand can, because it changes sums of one sign only."""
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
    """Sums whose terms all lie within a few places, not far below 1, where the point of a register can be,
    and which d represents exactly among its normal numbers."""
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
    """Finite nonzero terms that were alone in a question, their exponents, and the finite answers."""

    values: Numbers
    exponents: npt.NDArray[np.int64]
    answers: Numbers


def with_register_limits(bank: Bank, skeletons: Sequence[Candidate]) -> list[Candidate]:
    """Skeletons whose exact sums have the registers that answers to c alone, or to one product, show. The
    register of c may also belong to operations that convert c and the result."""
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
    """The power of two that no answer exceeds, although terms do; None if that is the format's own limit, or
    if larger terms give zero."""
    size = float(np.abs(terms.answers).max(initial=0.0))
    top = int(np.ceil(np.log2(size))) if size else most
    above = (np.frexp(terms.values)[1] > top + 1) & (terms.answers != 0)
    return top if top < most and np.count_nonzero(above) >= _SEEN else None


def _width(terms: _Terms) -> int | None:
    """The width of a register that wraps: how many places above its own exponent the number lies that was
    lost from a term, if most terms with a large loss agree."""
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
    """A candidate whose exact sums of a term, or of the term `alone`, have these keys; itself if no unit can
    have them."""

    def changed(step: Step) -> Step:
        holds = isinstance(step, Sum) and (step.of == (name,) if alone else name in step.of)
        return replace(step, **keys) if holds else step

    return one.with_each_step(changed) or one
