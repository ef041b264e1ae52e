"""What answers say of the values that are worth a try: words of NaNs, what stands for them, and the last bit
of results.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.mutations import Hints, nan_words
from golden.number.formats import Kind, Number, to_float
from golden.number.rounding import encode_fraction

_OFTEN, _WORDS, _COMMON, _LEAST = 6, 2, 32, 200
_ALONE = frozenset(("c alone",))
_COARSE_BITS = 24
"""Answers that are multiples of a number so many bits above the least of the format are so for a reason."""
_TOP = 1023
"""The largest exponent of doubles."""


def hints(bank: Bank) -> Hints:
    """What values are worth a try, as far as answers say: words of NaNs, and those that stand for them."""
    found = bank.read_off.get(Hints)
    if not isinstance(found, Hints):
        found = bank.read_off[Hints] = _hints(bank)
    return found


def _hints(bank: Bank) -> Hints:
    d = bank.takes.formats["d"]
    if not d.is_float:
        return Hints(_often(bank))
    found = (*nan_words(d, bank.answers.tolist()), *_other_words(bank), *_added_words(bank))
    return Hints(tuple(dict.fromkeys(found)), last_bit=_last_bit(bank))


def _last_bit(bank: Bank) -> int | None:
    """The exponent of the last bit of which all answers to c alone are multiples; None where it is among the
    last that the format has."""
    d = bank.takes.formats["d"]
    numbers = np.asarray(to_float(d, bank.answers[bank.is_of(_ALONE)]), np.float64)
    significands, exponents = np.frexp(numbers[np.isfinite(numbers) & (numbers != 0)])
    whole = np.abs(significands * 2.0**53).astype(np.int64)
    ends = exponents - 54 + np.frexp(whole & -whole)[1]
    least = int(ends.min()) if len(ends) else None
    return None if least is None or least < d.min_exponent - d.fraction_bits + _COARSE_BITS else least


def _often(bank: Bank) -> tuple[int, ...]:
    """Integers that are common answers: what a unit gives for products that it takes for infinite."""
    codes, counts = np.unique(bank.answers, return_counts=True)
    common = [place for place in np.argsort(-counts, kind="stable") if counts[place] > len(bank) // _COMMON]
    return tuple(int(codes[place]) for place in common if codes[place])[:_WORDS]


def _other_words(bank: Bank) -> list[int]:
    """Numbers that are common answers where operands are special: a unit may give any word for a NaN. A word
    that is a small number shows as it is where nothing else is added to it, whatever was asked there."""
    d = bank.takes.formats["d"]
    codes, counts = np.unique(bank.answers[special_operands(bank)], return_counts=True)
    common = [int(codes[place]) for place in np.argsort(-counts, kind="stable") if counts[place] >= _OFTEN]
    return [code for code in common if d.decode(code).kind == Kind.FINITE and d.decode(code).value][:_WORDS]


def _added_words(bank: Bank) -> list[int]:
    """Words for NaNs of a or b that are numbers for what comes later, where such NaNs have finite answers:
    the least number, as it may be lost beside all else, what answers are above the least c that is not
    flushed, and zero, where that is the answer whatever c is."""
    c, d = (bank.takes.formats[name] for name in "cd")
    pairs = [(c.decode(int(given)), d.decode(int(answer))) for given, answer in _beside_nans(bank)]
    finite = [(abs(x.value), y.value - x.value) for x, y in pairs if max(x.kind, y.kind) < Kind.INFINITY]
    if len(finite) < _OFTEN:
        return []
    lost = sum(abs(more) == size for size, more in finite if size)
    above = dict.fromkeys(more for size, more in sorted(finite)[:_LEAST] if more and abs(more) != size)
    codes = ((encode_fraction(d, value, "toward_zero"), value) for value in above)
    words = [1, *(code for code, value in codes if _is(d.decode(code), value))][: _WORDS + 1]
    return [0, *words] if lost > len(finite) // 2 else words


def _is(number: Number, value: Fraction) -> bool:
    """Whether a number is this value; infinities, which values out of range become, are none."""
    return number.kind < Kind.INFINITY and number.value == value


def _beside_nans(bank: Bank) -> Iterator[tuple[int, int]]:
    """c and the answer of questions with a NaN in a or b, or infinite products of both signs, those with each
    c once."""
    asked = _opposite(bank)
    for name in "ab":
        fmt = bank.takes.formats[name]
        nans = [code for code in stimuli.special_codes(fmt).tolist() if fmt.decode(code).kind == Kind.NAN]
        asked |= np.isin(bank.operands[name], nans).any(axis=1)
    pairs = np.stack([bank.operands["c"][asked], bank.answers[asked]], axis=1)
    yield from ((int(given), int(answer)) for given, answer in np.unique(pairs, axis=0))


def _opposite(bank: Bank) -> npt.NDArray[np.bool_]:
    """The questions in which an infinite product meets one of the other sign, or one that d has no room for,
    and no product is a NaN."""
    factors = [(bank.takes.formats[name], bank.operands[name]) for name in "ab"]
    a, b = (np.asarray(to_float(fmt, codes), np.float64) for fmt, codes in factors)
    with np.errstate(all="ignore"):
        products = a * b
    infinite = np.isinf(a) | np.isinf(b)
    large = np.abs(products) >= 2.0 ** min(bank.takes.formats["d"].max_exponent + 1, _TOP)
    found = np.zeros(len(bank), bool)
    for sign in (1, -1):
        own = (infinite & (products * sign > 0)).any(axis=1)
        found |= own & (large & (products * sign < 0)).any(axis=1)
    return found & ~np.isnan(products).any(axis=1)


def special_operands(bank: Bank) -> npt.NDArray[np.bool_]:
    """The questions with infinities or NaNs in a, b or c; of formats without, with the largest number."""
    found = np.zeros(len(bank), bool)
    for name in "abc":
        codes = bank.operands[name].reshape(len(bank), -1)
        found |= np.isin(codes, stimuli.special_codes(bank.takes.formats[name])).any(axis=1)
    return found
