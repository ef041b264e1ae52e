"""The rounding of results according to answers to one term: nothing else is added, whatever the order of the
sum.

With a wrong final rounding every order is wrong on half of the questions, and the nearest one is not near the
unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.questions import AGREEING, ALONE, ENOUGH
from golden.number.formats import Format, Kind
from golden.number.rounding import MODES, encode_fraction
from golden.program.steps import Round

_Rounded = tuple[Fraction, int]
"""A term with the sign of its answer, and the answer."""


def as_rounded(bank: Bank, skeletons: Sequence[Candidate]) -> list[Candidate]:
    """Skeletons with the final rounding that answers to one term show, if they show one."""
    d = bank.takes.formats["d"]
    if not d.is_float:
        return list(skeletons)
    shown = {
        _mode(d, list(_rounded_terms(bank.of_kinds(frozenset((kind,))), name))) for kind, name in ALONE
    } - {None}
    mode = shown.pop() if len(shown) == 1 else None
    return list(skeletons) if mode is None else [_rounding(one, mode) or one for one in skeletons]


def _rounded_terms(alone: Bank, name: str) -> Iterator[_Rounded]:
    """Terms that lie between two normal results."""
    takes = alone.takes
    d = takes.formats["d"]
    given = [alone.operands[one] for one in ("c" if name == "c" else "ab")]
    codes = [(some[:, None] if name == "c" else some).tolist() for some in given]
    for *rows, code in zip(*codes, alone.answers.tolist(), strict=True):
        answer = d.decode(code)
        value = _term([takes.formats[one] for one in ("c" if name == "c" else "ab")], rows)
        if value and answer.kind == Kind.FINITE and _is_between(d, abs(value)):
            yield (-abs(value) if answer.sign else abs(value)), code


def _term(formats: Sequence[Format], rows: Sequence[Sequence[int]]) -> Fraction | None:
    """The only product of finite factors that is not zero, or c; None where there is none."""
    for codes in zip(*rows, strict=True):
        numbers = [fmt.decode(code) for fmt, code in zip(formats, codes, strict=True)]
        if all(one.kind == Kind.FINITE and one.value for one in numbers):
            first, *others = (one.value for one in numbers)
            return first * others[0] if others else first
    return None


def _is_between(d: Format, size: Fraction) -> bool:
    within = Fraction(2) ** d.min_exponent <= size < Fraction(2) ** d.max_exponent
    return within and encode_fraction(d, size, "down") != encode_fraction(d, size, "up")


def _mode(d: Format, terms: Sequence[_Rounded]) -> str | None:
    """The rounding of most answers, if no other one fits equally many."""
    if len(terms) < ENOUGH:
        return None
    right = {mode: sum(encode_fraction(d, value, mode) == code for value, code in terms) for mode in MODES}
    first, second = sorted(MODES, key=lambda mode: -right[mode])[:2]
    return first if right[first] > max(right[second], AGREEING * len(terms)) else None


def _rounding(one: Candidate, mode: str) -> Candidate | None:
    """A candidate that rounds its result this way; None if additions round it."""
    *head, last = one.operations
    if not isinstance(last.final, Round):
        return None
    return one.with_operations(
        (*head, last.with_steps((*last.steps[:-1], replace(last.final, rounding=mode))))
    )
