"""Which codes of every element a box was asked, where formats have few enough to ask them all, and questions
made of those that it was not: a multiplier may be wrong for one code."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.number.formats import Format, to_float
from golden.program.signature import Bits, Operands, Signature

Floats = npt.NDArray[np.float64]
KIND = "codes not asked yet"
_MOST_BITS = 16
_FACTORS = ("a", "b")
_JITTER = 0.05
"""Of all codes, how far two factors are from mirroring each other in magnitude: products are then of about
one size, and none hides another."""


class Coverage:
    """By operand, (elements, codes): whether the box was asked the code there."""

    def __init__(self, takes: Signature) -> None:
        shapes = takes.operand_shapes(matrices=False)
        few: list[str] = [
            name for name in ("a", "b", "c") if name in shapes and takes.formats[name].bits <= _MOST_BITS
        ]
        self.takes = takes
        self.seen = {
            name: np.zeros((math.prod(shapes[name]), 1 << takes.formats[name].bits), np.bool_) for name in few
        }
        self.open = set(few)

    def add(self, operands: Mapping[str, Bits]) -> None:
        """The box was asked these, (n, ...)."""
        for name in tuple(self.open & set(operands)):
            seen, codes = self.seen[name], operands[name]
            if math.prod(codes.shape[1:]) != len(seen):  # b of the dense view of a sparse unit
                continue
            codes = codes.reshape(-1, len(seen))
            for element, table in enumerate(seen):
                table[codes[:, element]] = True
            if seen.all():
                self.open.discard(name)

    def unasked(self) -> int:
        """Questions that it takes at least to ask every code of a and b that is a number; of a sparse unit
        none are made, where metadata say which elements meet."""
        if self.takes.pattern is not None:
            return 0
        left = [
            int((~self.seen[name] & _numbers(self.takes.formats[name])).sum(axis=1).max())
            for name in self.open & set(_FACTORS)
        ]
        return max(left, default=0)

    def questions(self, count: int, rng: np.random.Generator) -> Operands:
        """Dot products of codes of a and b that were not asked, as far as there are any, beside c = 0 or one
        that is not large; the two factors mirror each other in magnitude."""
        operands = stimuli.generate(self.takes, "narrow", count, rng)
        if "c" in operands:
            operands["c"][rng.random(count) < 0.5] = self.takes.at_rest("c")
        for element in range(self.takes.k):
            wanted = None
            for name in rng.permutation([name for name in _FACTORS if name in self.seen]).tolist():
                codes = self._some(name, element, count, wanted, rng)
                operands[name][:, element] = codes
                jitter = _JITTER * (2 * rng.random(count) - 1)
                wanted = np.clip(1 - _magnitude(self.takes.formats[name], codes) + jitter, 0, 1)
        return operands

    def _some(
        self, name: str, element: int, count: int, wanted: Floats | None, rng: np.random.Generator
    ) -> Bits:
        """Numbers that were not asked, or any where all were: those near these magnitudes (0 to 1), of either
        sign, or as they come."""
        fmt = self.takes.formats[name]
        numbers = _numbers(fmt)
        left = np.flatnonzero(numbers & ~self.seen[name][element])
        left = left if len(left) else np.flatnonzero(numbers)
        if wanted is None:
            return rng.choice(left, count)
        split = int(np.searchsorted(left, 1 << (fmt.bits - 1))) if fmt.is_float and fmt.signed else len(left)
        found = np.empty(count, np.int64)
        minus = rng.random(count) * len(left) >= split
        for half, those in ((left[:split], ~minus), (left[split:], minus)):
            if len(half):
                near = np.searchsorted(_magnitude(fmt, half), wanted[those])
                found[those] = half[np.minimum(near, len(half) - 1)]
        return found

    def said(self) -> Iterator[str]:
        """A sentence for each operand of which not every code was asked."""
        for name, seen in self.seen.items():
            counts = seen.sum(axis=1)
            least, codes = int(counts.argmin()), seen.shape[1]
            if counts[least] < codes:
                element = f"{name}[{least}]" if len(counts) > 1 else name
                share = (
                    f"of the {codes:,} codes of {name} {int(np.median(counts)):,} were asked of an element"
                )
                few = f"{int(counts[least]):,} of {element}, the fewest"
                yield f"{share}, {few}: a unit that decodes another one otherwise would not have shown it"


def _magnitude(fmt: Format, codes: Bits) -> Floats:
    """Where codes of one sign lie between the least and the largest, 0 to 1."""
    half = 1 << (fmt.bits - 1) if fmt.is_float and fmt.signed else 1 << fmt.bits
    return (codes & (half - 1)) / half


@lru_cache(maxsize=16)
def _numbers(fmt: Format) -> npt.NDArray[np.bool_]:
    """Which codes are no infinity and no NaN, (codes,): beside one of those nothing else shows."""
    codes = np.arange(1 << fmt.bits).astype(fmt.dtype)
    return np.isfinite(np.asarray(to_float(fmt, codes), np.float64))
