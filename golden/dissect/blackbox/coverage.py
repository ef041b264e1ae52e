"""Which codes of every element a box was asked, where formats have few enough to ask them all, and questions
made of those that it was not: a multiplier may be wrong for one code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.number.formats import Format, to_float
from golden.program.signature import Bits, Operands, Signature

KIND = "codes not asked yet"
_MOST_BITS = 16
_JITTER = 0.05
"""Of all codes, how far two factors are from mirroring each other in magnitude: products are then of about
one size, and none hides another."""


class Coverage:
    """By operand, (elements, codes): whether the box was asked the code there."""

    def __init__(self, takes: Signature) -> None:
        shapes = takes.operand_shapes(matrices=False)
        few = [name for name in ("a", "b", "c") if name in shapes and takes.formats[name].bits <= _MOST_BITS]
        self.takes = takes
        self.seen = {
            name: np.zeros((int(np.prod(shapes[name], dtype=int)), 1 << takes.formats[name].bits), np.bool_)
            for name in few
        }
        self.open = set(few)

    def add(self, operands: Mapping[str, Bits]) -> None:
        """The box was asked these, (n, ...)."""
        for name in tuple(self.open & set(operands)):
            seen, codes = self.seen[name], operands[name].reshape(len(operands[name]), -1)
            if codes.shape[1] != len(seen):  # b of the dense view of a sparse unit
                continue
            for element, table in enumerate(seen):
                table[codes[:, element]] = True
            if seen.all():
                self.open.discard(name)

    def unasked(self) -> int:
        """Questions that it takes at least to ask every code of a and b that is a number."""
        left = [
            int((~self.seen[name] & _numbers(self.takes.formats[name])).sum(axis=1).max())
            for name in self.open & {"a", "b"}
        ]
        return max(left, default=0)

    def questions(self, count: int, rng: np.random.Generator) -> Operands:
        """Dot products of codes of a and b that were not asked, as far as there are any, beside c = 0 or one
        that is not large; the two factors mirror each other in magnitude."""
        operands = stimuli.generate(self.takes, "narrow", count, rng)
        operands["c"][rng.random(count) < 0.5] = self.takes.at_rest("c")
        elements = operands["a"].shape[1]
        place = rng.random((elements, count))
        beside = 1 - place + _JITTER * (2 * rng.random((elements, count)) - 1)
        for name, wanted in (("a", place), ("b", np.clip(beside, 0, 1))):
            fmt = self.takes.formats[name]
            if name not in self.open or len(self.seen[name]) != elements:
                continue
            for element, table in enumerate(self.seen[name]):
                left = np.flatnonzero(~table & _numbers(fmt))
                if len(left):
                    operands[name][:, element] = _at(fmt, left, wanted[element], rng)
        return operands

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


def _at(fmt: Format, left: npt.NDArray[np.int64], wanted: Bits, rng: np.random.Generator) -> Bits:
    """Of some codes, ascending, those at these places (0 to 1) in the order of magnitude; of either sign."""
    signed = fmt.is_float and fmt.signed
    split = int(np.searchsorted(left, 1 << (fmt.bits - 1))) if signed else len(left)
    minus = rng.random(len(wanted)) * len(left) >= split
    start, size = np.where(minus, split, 0), np.where(minus, len(left) - split, split)
    return np.asarray(left[start + np.minimum((wanted * size).astype(np.int64), size - 1)])


@lru_cache(maxsize=16)
def _numbers(fmt: Format) -> npt.NDArray[np.bool_]:
    """Which codes are no infinity and no NaN, (codes,): beside one of those nothing else shows."""
    codes = np.arange(1 << fmt.bits).astype(fmt.dtype)
    return np.isfinite(np.asarray(to_float(fmt, codes), np.float64))
