"""Questions with few terms: c alone, one or two products with and without c; special values among zeros.

The answer to one term does not depend on the order of the sum: the rounding of products and the detection of
special values are fitted on these questions even while the order is still wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.identify.sample import joined
from golden.number.formats import Format, from_float, to_float
from golden.program.signature import Bits, Operands, Signature

_DRAWN = (
    *("random_bits", "narrow", "wide", "subnormal", "near_overflow", "tie", "special_values", "special_each"),
    *("corner_pairs", "half_ulp"),
)
C_ALONE, ONE_PRODUCT = "c alone", "one product"
ALONE = ((C_ALONE, "c"), (ONE_PRODUCT, "products"))
"""Kinds with one term, and the term."""
ENOUGH, AGREEING = 16, 0.9
"""Answers to one term that are needed to decide a property of the unit, and the share of them that has to
agree. Chosen, not measured."""
_SHAPES = ((C_ALONE, 0, True), (ONE_PRODUCT, 1, False), ("one product and c", 1, True))
_PAIRS = (("two products", 2, False), ("two products and c", 2, True))
_CAUSES, _MORE = ("special_values", "special_pairs"), 8
"""Kinds that are drawn with other operands zero, and a multiple of their count: a table of causes of NaNs is
read off pairs of them."""
_AMONG_ZEROS = "special among zeros"
KINDS = frozenset((_AMONG_ZEROS, *(name for name, *_ in (*_SHAPES, *_PAIRS))))


def simple(takes: Signature, each: int, rng: np.random.Generator) -> Iterator[tuple[str, Operands]]:
    """(kind, operands) by the number of terms, `each` dot products of every stimulus kind."""
    k = takes.stored_k
    for name, products, with_c in (*_SHAPES, *(_PAIRS if k > 1 else ())):
        if with_c and "c" in takes.unread:
            continue
        parts = [stimuli.generate(takes, kind, each, rng) for kind in _DRAWN]
        whole = joined(parts)
        ranks = np.argsort(rng.random((len(whole["a"]), k)), axis=1)
        for operand in "ab":
            kept = np.where(ranks < products, whole[operand], takes.at_rest(operand))
            whole[operand] = kept.astype(whole[operand].dtype)
        if not with_c:
            whole["c"] = np.full_like(whole["c"], takes.at_rest("c"))
        yield name, whole
    if takes.formats["d"].is_float:
        for kind in _CAUSES:
            operands = stimuli.generate(takes, kind, _MORE * each, rng)
            special = rng.choice(stimuli.special_codes(takes.formats["c"]), len(operands["c"]))
            operands["c"] = np.where(rng.random(len(special)) < 0.5, special, operands["c"])
            yield _AMONG_ZEROS, among_zeros(takes, operands, rng)


def among_zeros(takes: Signature, operands: Operands, rng: np.random.Generator) -> Operands:
    """Dot products with only two products, next to each other or far apart, among zeros of both signs; c is
    unchanged or a zero, too.

    Without other terms the sign of a flushed number shows, and so does the priority of two special values. In
    every second dot product the two cancel except for the last bit of a factor; in every fourth a copy of the
    first is added, which c cancels likewise. The first product has a special value, if there is one."""
    k, rows = takes.stored_k, np.arange(len(operands["a"]))
    chance = rng.random((4, len(rows)))
    first = np.argmax(rng.random((len(rows), k)) + _special(takes, operands), axis=1)
    second = np.where(chance[0] < 0.5, np.minimum(first ^ 1, k - 1), rng.integers(0, k, len(rows)))
    third = np.where(chance[3] < 0.5, (first + 2) % k, rng.integers(0, k, len(rows)))
    found = {name: _zeros(takes, name, operands[name].shape, rng) for name in "abc"}
    cancel, more = chance[1] < 0.5, chance[1] < 0.25
    for name in "ab":
        codes, fmt = operands[name], takes.formats[name]
        own = codes[rows, first]
        found[name][rows, third] = np.where(more, own, found[name][rows, third])
        same = own ^ ((chance[2] < 0.5) & (name == "b")).astype(codes.dtype)
        same = stimuli.negate(fmt, same) if name == "a" else same
        found[name][rows, second] = np.where(cancel, same, codes[rows, second])
        found[name][rows, first] = own
    kept = np.where(rng.random(len(rows)) < 0.5, found["c"], operands["c"])
    found["c"] = np.where(more, _cancelling(takes, operands, first, rng), kept)
    return {**operands, **{name: codes.astype(operands[name].dtype) for name, codes in found.items()}}


def near_overflow(takes: Signature, operands: Operands, rng: np.random.Generator) -> Operands:
    """Dot products near overflow with a special value as c, or as one factor. An infinity from the overflow
    of finite terms meets it, and the priority of the two shows. One half have the other sign."""
    k, rows = takes.stored_k, np.arange(len(operands["a"]))
    chance, place = rng.random((2, len(rows))), rng.integers(0, k, len(rows))
    found = dict(operands)
    for name, there in (("a", chance[0] < 0.3), ("c", chance[0] >= 0.2)):
        codes, specials = (
            found[name].reshape(len(rows), -1).copy(),
            stimuli.special_codes(takes.formats[name]),
        )
        if len(specials):
            at = rows[there], (place if name == "a" else 0 * place)[there]
            codes[at] = rng.choice(specials, int(there.sum()))
        found[name] = codes.reshape(found[name].shape)
    if takes.formats["a"].is_float and takes.formats["a"].signed:
        turned = stimuli.negate(takes.formats["a"], found["a"])
        found["a"] = np.where((chance[1] < 0.5)[:, None], turned, found["a"])
    return found


def _special(takes: Signature, operands: Operands) -> npt.NDArray[np.bool_]:
    """Whether a or b is special, (n, k)."""
    found = [stimuli.is_special(takes.formats[name], operands[name]) for name in "ab"]
    return np.asarray(found[0] | found[1])


def _cancelling(takes: Signature, operands: Operands, place: Bits, rng: np.random.Generator) -> Bits:
    """c that is the negative of one product, or next to it, as near as doubles come."""
    rows, fmt = np.arange(len(place)), takes.formats["c"]
    if not (fmt.is_float and fmt.signed):
        return operands["c"]
    a, b = (
        np.asarray(to_float(takes.formats[name], operands[name][rows, place]), np.float64) for name in "ab"
    )
    with np.errstate(all="ignore"):
        c = from_float(fmt, np.nan_to_num(-a * b, nan=0.0))
    last = (rng.random(len(rows)) < 0.5).astype(fmt.dtype)
    return np.asarray(c ^ last)


def _zeros(takes: Signature, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Bits:
    """Zeros of both signs, where a format has them."""
    zero, fmt = takes.at_rest(name), takes.formats[name]
    other = stimuli.negate(fmt, np.full(shape, zero, fmt.dtype)) if fmt.is_float and fmt.signed else zero
    return np.where(rng.random(shape) < 0.5, zero, other)


Floats = npt.NDArray[np.float64]
KIND = "unused codes"
_FACTORS = ("a", "b")


class Coverage:
    """By operand, (elements, codes): whether a query had the code there."""

    def __init__(self, takes: Signature) -> None:
        shapes = takes.operand_shapes(matrices=False)
        # A table of 2^16 codes for each element is small enough to record what was used.
        most = 16
        read = (name for name in ("a", "b", "c") if name in shapes and name not in takes.unread)
        few: list[str] = [name for name in read if takes.formats[name].bits <= most]
        self.takes = takes
        self.seen = {
            name: np.zeros((math.prod(shapes[name]), 1 << takes.formats[name].bits), np.bool_) for name in few
        }
        self.open = set(few)

    def add(self, operands: Mapping[str, Bits]) -> None:
        """Marks the codes of queries (n, ...) as used."""
        for name in tuple(self.open & set(operands)):
            seen, codes = self.seen[name], operands[name]
            if math.prod(codes.shape[1:]) != len(seen):  # b of the dense view of a sparse unit
                continue
            codes = codes.reshape(-1, len(seen))
            for element, table in enumerate(seen):
                table[codes[:, element]] = True
            if seen.all():
                self.open.discard(name)

    def unused(self) -> int:
        """The least number of queries that use every code of a and b that is a number; 0 for a sparse unit,
        because its metadata decide which elements meet."""
        if self.takes.pattern is not None:
            return 0
        left = [
            int((~self.seen[name] & _numbers(self.takes.formats[name])).sum(axis=1).max())
            for name in self.open & set(_FACTORS)
        ]
        return max(left, default=0)

    def questions(self, count: int, rng: np.random.Generator) -> Operands:
        """Dot products of unused codes of a and b, if there are any, with c = 0 or a c that is not large; the
        magnitudes of the two factors mirror each other."""
        operands = stimuli.generate(self.takes, "narrow", count, rng)
        if "c" in operands:
            operands["c"][rng.random(count) < 0.5] = self.takes.at_rest("c")
        for element in range(self.takes.k):
            wanted = None
            for name in rng.permutation([name for name in _FACTORS if name in self.seen]).tolist():
                codes = self._some(name, element, count, wanted, rng)
                operands[name][:, element] = codes
                # Factors nearly mirror each other: all products have about one magnitude, none hides another.
                most = 0.05
                jitter = most * (2 * rng.random(count) - 1)
                wanted = np.clip(1 - _magnitude(self.takes.formats[name], codes) + jitter, 0, 1)
        return operands

    def _some(
        self, name: str, element: int, count: int, wanted: Floats | None, rng: np.random.Generator
    ) -> Bits:
        """Unused numbers, or any if all were used: near the wanted magnitudes (0 to 1) with either sign, or
        arbitrary."""
        fmt = self.takes.formats[name]
        numbers = _numbers(fmt)
        left = np.flatnonzero(numbers & ~self.seen[name][element])
        left = left if len(left) else np.flatnonzero(numbers)
        if wanted is None:
            return rng.choice(left, count)
        split = int(np.searchsorted(left, 1 << (fmt.bits - 1))) if fmt.is_float and fmt.signed else len(left)
        found = np.empty(count, np.int64)
        minus = rng.random(count) * len(left) >= split
        for half, rows in ((left[:split], ~minus), (left[split:], minus)):
            if len(half):
                near = np.searchsorted(_magnitude(fmt, half), wanted[rows])
                found[rows] = half[np.minimum(near, len(half) - 1)]
        return found

    def said(self) -> Iterator[str]:
        """A sentence for each operand with unused codes."""
        for name, seen in self.seen.items():
            counts = seen.sum(axis=1)
            least, codes = int(counts.argmin()), seen.shape[1]
            if counts[least] < codes:
                element = f"{name}[{least}]" if len(counts) > 1 else name
                share = f"of the {codes:,} codes of {name} {int(np.median(counts)):,} were used in an element"
                few = f"{int(counts[least]):,} of {element}, the fewest"
                yield f"{share}, {few}: a unit that decodes another one wrongly would not have shown it"


def _magnitude(fmt: Format, codes: Bits) -> Floats:
    """The place of a code of one sign between the least and the largest, 0 to 1."""
    half = 1 << (fmt.bits - 1) if fmt.is_float and fmt.signed else 1 << fmt.bits
    return (codes & (half - 1)) / half


@lru_cache(maxsize=16)
def _numbers(fmt: Format) -> npt.NDArray[np.bool_]:
    """Which codes are no infinity and no NaN, (codes,): next to one of these nothing else shows."""
    codes = np.arange(1 << fmt.bits).astype(fmt.dtype)
    return np.isfinite(np.asarray(to_float(fmt, codes), np.float64))
