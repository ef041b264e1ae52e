"""What the results of a unit say where no hypothesis explains them: which operands it has right, which wrong
results have something in common.

for sentence in known(ins, operands, expected, wrong, actual):
    print(sentence)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from golden.identify.classes import Mask, classes, products_present, term_words
from golden.identify.where import where
from golden.instruction import Instruction
from golden.number.formats import Format, to_float
from golden.program.signature import Bits, Operands

_FEWEST = 24
"""Vectors below which a class says nothing."""
_COMMON = 0.9
"""The share of all vectors above which it is no news that every wrong one is of a class."""


@dataclass(frozen=True)
class _Class:
    """Vectors with something in common, and how many of them are wrong."""

    text: str
    tried: int
    wrong: int


def known(
    ins: Instruction,
    operands: Operands,
    expected: Bits,
    wrong: Mask,
    actual: Bits,
    of: str = "the right",
) -> tuple[str, ...]:
    """Sentences about a unit that computes something else than `ins`.

    Args:
        operands: as `ins.dot` takes them, (n, ...).
        of: what the results of `ins` are called.
        expected, actual: codes of d, (n,); `wrong`: where they differ.
    """
    count, failing = len(wrong), int(wrong.sum())
    if not failing:
        return ()
    tried = [
        _Class(text, int(mask.sum()), int((mask & wrong).sum()))
        for text, mask in classes(ins.formats, operands, expected)
    ]
    enough = [each for each in tried if each.tried >= _FEWEST]
    right = [f"{each.text} (all {each.tried:,})" for each in enough if not each.wrong]
    always = [each.text for each in enough if each.wrong == each.tried < count]
    only = [each.text for each in enough if each.wrong == failing and each.tried < _COMMON * count]
    found = list(where(ins.formats, operands, expected, actual, wrong, of))
    found += [f"right: {', '.join(right)}"] * bool(right)
    found += [f"always wrong: {', '.join(always)}"] * bool(always)
    found += [f"every wrong result is one of: {' and of: '.join(only)}"] * bool(only)
    found += [*_by_element(ins, operands, wrong), *_by_bit(ins.formats["d"], expected, actual, wrong)]
    found += _by_relation(ins.formats["d"], expected[wrong], actual[wrong])
    return tuple(found)


def _by_element(ins: Instruction, operands: Operands, wrong: Mask) -> Iterator[str]:
    """Which places of k are wrong where only one product is there."""
    present = products_present(ins.formats, operands)
    alone = present.sum(axis=1) == 1
    tried = present[alone].sum(axis=0)
    bad = present[alone & wrong].sum(axis=0)
    places = np.flatnonzero(bad)
    if ins.stored_k > 1 and 0 < len(places) <= ins.stored_k // 2 and (tried[bad == 0] > 0).all():
        yield f"{term_words(operands)[0]} alone is wrong only at k = {', '.join(map(str, places))}"


def _by_bit(fmt: Format, expected: Bits, actual: Bits, wrong: Mask) -> Iterator[str]:
    """Which bits of the result ever differ."""
    changed = int(np.bitwise_or.reduce(expected[wrong] ^ actual[wrong]))
    low, high = (changed & -changed).bit_length() - 1, changed.bit_length() - 1
    if changed == 1 << high:
        sign = fmt.is_float and fmt.signed and high == fmt.sign_shift
        yield f"only {'the sign' if sign else f'bit {high}'} of the result is ever wrong"
    elif high - low < fmt.bits // 2:
        yield f"only bits {low} to {high} of the result are ever wrong"


_MOST = 0.5
"""The share of wrong results from which what they have in common is worth a sentence."""


def _by_relation(fmt: Format, expected: Bits, actual: Bits) -> Iterator[str]:
    """What most wrong results have in common with what they should be."""
    relations = (_float_relations if fmt.is_float else _relations)(fmt, expected, actual)
    for text, mask in relations:
        share = float(mask.mean())
        if share >= _MOST:
            amount = "all wrong results" if share == 1 else f"{int(share * 100)} % of the wrong results"
            yield f"{amount} {text}"


def _relations(fmt: Format, expected: Bits, actual: Bits) -> Iterator[tuple[str, Mask]]:
    want, got = to_float(fmt, expected), to_float(fmt, actual)
    yield "are 0", actual == 0
    yield "are one unit of the last place off", np.abs(want - got) == 1
    yield "are the right number with the wrong sign", (want == -got) & (want != 0)


def _float_relations(fmt: Format, expected: Bits, actual: Bits) -> Iterator[tuple[str, Mask]]:
    want, got = to_float(fmt, expected), to_float(fmt, actual)
    both = np.isfinite(want) & np.isfinite(got) & (want != 0) & (got != 0)
    sign = fmt.dtype.type(1 << fmt.sign_shift) if fmt.signed else fmt.dtype.type(0)
    yield "are zero", got == 0
    yield "are NaN", np.isnan(got)
    yield "are infinite", np.isinf(got)
    yield "are finite where a NaN or an infinity is right", np.isfinite(got) & ~np.isfinite(want)
    yield "are right but for the sign", (expected ^ actual == sign) & (sign != 0)
    fractions = [np.frexp(np.abs(np.where(both, each, 1)))[0] for each in (want, got)]
    exponents = [np.frexp(np.where(both, each, 1))[1] for each in (want, got)]
    moved = both & (fractions[0] == fractions[1]) & (exponents[0] != exponents[1])
    yield "have the right fraction and another exponent", moved
    distance = (exponents[1] - exponents[0])[moved]
    if len(distance) and len(set(distance.tolist())) == 1:
        yield f"are 2^{int(distance[0])} times what they should be", moved
    place = np.abs((expected & ~sign).astype(np.int64) - (actual & ~sign).astype(np.int64)) >> fmt.ignored_low
    yield "are one unit of the last place off", both & (place == 1)
