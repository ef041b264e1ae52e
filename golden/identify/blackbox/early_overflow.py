"""Questions with smaller products, for units whose products overflow far below the ends of the formats.

In these units nearly every dot product of ordinary numbers is infinite in any order of the sum: only
questions whose products are still finite distinguish orders, widths and roundings.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.questions import ONE_PRODUCT
from golden.number.formats import Format, from_float, to_float
from golden.program.signature import Bits, Operands, Signature

Numbers = npt.NDArray[np.float64]
Exponents = npt.NDArray[np.int64]
ONE = frozenset((ONE_PRODUCT,))
_SPREAD = 4
"""Binades below the overflow within which the largest product of a question lies."""


def overflows_early(ordinary: Bank) -> bool:
    """Whether most ordinary questions have no finite answer, in formats that allow smaller products."""
    takes = ordinary.takes
    floats = all(takes.formats[name].is_float for name in "abcd") and takes.scale_block is None
    # The share of finite operands with infinite answers from which smaller products are used.
    mostly = 0.5
    return floats and bool(_infinite(ordinary).mean() > mostly)


def end_of_products(bank: Bank) -> int | None:
    """The exponent of the least single product without a finite answer although its factors are finite; None
    if too few show it, or no product is smaller."""
    alone = bank.of_kinds(ONE)
    ends = _largest(bank.takes, alone.operands)[_infinite(alone)]
    least = sum(stimuli.tiniest_exponent(bank.takes.formats[name]) for name in "ab")
    # Single products that have to be infinite to show where products end.
    seen = 16
    return int(ends.min()) if len(ends) >= seen and ends.min() > least else None


def of_numbers(bank: Bank) -> Bank:
    """The questions whose answers are nonzero numbers: the sign of a zero and the word of a NaN do not depend
    on the order, and with small products many answers are zeros."""
    answers = bank.values("d")
    return bank.part(np.flatnonzero(np.isfinite(answers) & (answers != 0)))


def lowered(takes: Signature, operands: Operands, end: int, rng: np.random.Generator) -> Operands:
    """Dot products whose largest product is below 2^end: all products, and c, are reduced by the same number
    of binades. Alignment, cuts and rounding stay as they were, as far as the formats reach. Every second c
    stays some binades larger: in narrow formats few products lie far enough apart that one is cut next to
    another."""
    last = end - 1 - rng.integers(0, _SPREAD, len(operands["c"]))
    down = np.maximum(_largest(takes, operands) - last, 0)
    half = np.clip(down // 2, down - _room(takes, operands, "b"), _room(takes, operands, "a"))
    above = rng.integers(0, takes.formats["d"].fraction_bits + _SPREAD, len(down))
    # Every second c is reduced less than the products.
    share = 0.5
    of_c = np.where(rng.random(len(down)) < share, np.maximum(down - above, 0), down)
    moved: Mapping[str, Exponents] = {"a": half, "b": down - half, "c": of_c}
    return {
        **operands,
        **{name: _moved(takes.formats[name], operands[name], by) for name, by in moved.items()},
    }


def _infinite(bank: Bank) -> npt.NDArray[np.bool_]:
    """Which questions of finite numbers are answered by an infinity or a NaN."""
    finite = [np.isfinite(bank.values(name)).reshape(len(bank), -1).all(axis=1) for name in "abc"]
    answered = np.isfinite(bank.values("d"))
    return np.asarray(np.logical_and.reduce(finite) & ~answered)


def _numbers(fmt: Format, codes: Bits) -> Numbers:
    return np.asarray(to_float(fmt, codes), np.float64)


def _largest(takes: Signature, operands: Operands) -> Exponents:
    """The exponent of the largest product of finite factors, from their exponents and fractions."""
    a, b = (_numbers(takes.formats[name], operands[name]) for name in "ab")
    parts = [np.frexp(np.where(np.isfinite(one), one, 0)) for one in (a, b)]
    there = (parts[0][0] != 0) & (parts[1][0] != 0)
    exponents = np.frexp(parts[0][0] * parts[1][0])[1] + parts[0][1] + parts[1][1] - 1
    return np.asarray(np.where(there, exponents, np.iinfo(np.int32).min).max(axis=1), np.int64)


def _room(takes: Signature, operands: Operands, name: str) -> Exponents:
    """Binades between the largest number of a factor and the least normal one."""
    values = np.abs(_numbers(takes.formats[name], operands[name]))
    exponents = np.frexp(np.where(np.isfinite(values), values, 0).max(axis=1))[1] - 1
    return np.asarray(np.maximum(exponents - stimuli.lowest_exponent(takes.formats[name]), 0), np.int64)


def _moved(fmt: Format, codes: Bits, down: Exponents) -> Bits:
    """Numbers divided by powers of two, rounded to the format; other codes, and numbers that stay, are
    unchanged."""
    values = _numbers(fmt, codes)
    by = down.reshape(-1, *[1] * (codes.ndim - 1))
    stay = ~np.isfinite(values) | (by == 0)
    new = from_float(fmt, np.ldexp(np.where(stay, 0, values), -by))
    return np.asarray(np.where(stay, codes, new), codes.dtype)
