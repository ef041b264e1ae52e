"""Classes of a format's codes, fine and coarse: which of them it has, and which one a code falls into."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from golden.cover.points.point import Array
from golden.cover.ranges import AccumulatorRange
from golden.model.registers import Numbers, decode
from golden.number.formats import Format, Kind
from golden.program.bounds import largest_significand

CLASSES = (
    "+0",
    "-0",
    "least subnormal",
    "subnormal",
    "least normal",
    "normal",
    "largest",
    "infinity",
    "negative infinity",
    "quiet NaN",
    "signalling NaN",
)
COARSE = ("zero", "subnormal", "normal", "largest", "infinity", "NaN")
_TO_COARSE = np.array([0, 0, 1, 1, 2, 2, 3, 4, 4, 5, 5])
_INTEGER_CLASSES = ("zero", "one", "positive", "negative", "minus one", "largest", "least")
_COARSE_INTEGER = ("zero", "positive", "negative", "largest", "least")
_INTEGER_TO_COARSE = np.array([0, 1, 1, 2, 2, 3, 4])


@lru_cache(maxsize=256)
def _classes_of_all(fmt: Format) -> frozenset[int]:
    codes = np.arange(1 << fmt.bits, dtype=np.uint64)[:, None]
    return frozenset(np.unique(classify(fmt, decode(fmt, codes), codes)).tolist())


def class_bins(fmt: Format) -> dict[str, bool]:
    """Classes of a format's codes, and whether it has them."""
    # Narrow formats are classified code by code.
    enumerated = 8
    if fmt.bits <= enumerated:
        labels = CLASSES if fmt.is_float else _INTEGER_CLASSES
        return {label: i in _classes_of_all(fmt) for i, label in enumerate(labels)}
    if not fmt.is_float:
        wide = fmt.integer_bits > 2
        signed = [fmt.signed and wide, fmt.signed and wide]
        reach = [True, wide or not fmt.signed, wide, signed[0], signed[1], wide or fmt.signed, fmt.signed]
        return dict(zip(_INTEGER_CLASSES, reach, strict=True))
    finite = fmt.has_subnormals
    infinite, nan = fmt.infinity is not None, fmt.nan is not None
    binades = fmt.max_exponent - fmt.min_exponent
    between = binades > 1 or (binades + 1 << fmt.fraction_bits) > 3
    reach = [
        fmt.has_zero,
        fmt.has_negative_zero,
        finite and fmt.fraction_bits > 0,
        finite and fmt.fraction_bits > 1,
        not fmt.lone_zero,
        between,
        True,
        infinite,
        infinite,
        nan,
        fmt.specials == "ieee" and fmt.fraction_bits > 1,
    ]
    return dict(zip(CLASSES, reach, strict=True))


def accumulator_bins(fmt: Format, held: AccumulatorRange | None) -> dict[str, bool]:
    """Classes of c, and whether it can have them: what a unit holds (None: any code of the format)."""
    return {label: has and (held is None or label in held.classes) for label, has in class_bins(fmt).items()}


def classify(fmt: Format, numbers: Numbers, codes: Array, dropped: int = 0) -> Array:
    """Index into CLASSES (integers: the integer classes) of every code; the low `dropped` fraction bits
    are always zero."""
    significand, exponent, kind = numbers.significand_low.astype(np.int64), numbers.exponent, numbers.kind
    if not fmt.is_float:
        return _classify_integer(fmt, numbers)
    hidden, unit = np.int64(1) << fmt.fraction_bits, 1 << dropped
    top = largest_significand(fmt) & -unit
    classes = np.where(significand < hidden, 3, 5)
    classes = np.where((significand == unit) & (hidden > unit), 2, classes)
    classes = np.where((significand == hidden) & (exponent == fmt.min_exponent), 4, classes)
    classes = np.where((significand == top) & (exponent == fmt.max_exponent), 6, classes)
    if fmt.fraction_bits == 0:
        classes = np.where(exponent == fmt.max_exponent, 6, np.where(exponent == fmt.min_exponent, 4, 5))
    classes = np.where(kind == Kind.ZERO, numbers.sign, classes)
    classes = np.where(kind == Kind.INFINITY, 7 + numbers.sign, classes)
    quiet = np.ones(kind.shape, bool)
    if fmt.specials == "ieee":
        shift = np.uint64(fmt.ignored_low + fmt.fraction_bits - 1)
        quiet = (codes.astype(np.uint64) >> shift) & np.uint64(1) == 1
    return np.asarray(np.where(kind == Kind.NAN, np.where(quiet, 9, 10), classes), np.int64)


def _classify_integer(fmt: Format, numbers: Numbers) -> Array:
    # sign and magnitude: the value of 64 bits may not fit int64
    magnitude, minus = numbers.significand_low, numbers.sign == 1
    classes = np.where(minus, 3, 2)
    if fmt.signed:
        classes = np.where(minus & (magnitude == 1), 4, classes)
    classes = np.where(~minus & (magnitude == 1), 1, classes)
    classes = np.where(~minus & (magnitude == fmt.largest), 5, np.where(magnitude == 0, 0, classes))
    if fmt.bits == 1:
        classes = np.where(~minus & (magnitude == 1), 1, classes)
    least = minus & (magnitude == 1 << max(fmt.integer_bits - 1, 0))
    return np.where(least, 6, classes) if fmt.signed else classes


def coarse_of(fmt: Format, numbers: Numbers) -> Array:
    """Index into COARSE (integers: the coarse integer classes) of every number."""
    classes = classify(fmt, numbers, np.zeros(numbers.kind.shape, np.uint64))
    return np.asarray((_TO_COARSE if fmt.is_float else _INTEGER_TO_COARSE)[classes])


def coarse_bins(fmt: Format, fine: dict[str, bool] | None = None) -> dict[str, bool]:
    """Coarse classes of a format's codes, and whether it has them, or whether some of `fine` can be met."""
    labels, table = (COARSE, _TO_COARSE) if fmt.is_float else (_COARSE_INTEGER, _INTEGER_TO_COARSE)
    bins = dict.fromkeys(labels, False)
    for index, reach in enumerate((class_bins(fmt) if fine is None else fine).values()):
        bins[labels[table[index]]] |= reach
    return bins
