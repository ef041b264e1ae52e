"""Blocks of vectors that several tests draw alike: drawn once in a process, and copied for each.

A block has 16,384 vectors, whichever few of them a test asks for: 0.05 s, in some thousand tests.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from typing import Any

from golden.model.instruction import Instruction
from golden.vectors import vectorset
from golden.vectors.vectorset import Bits, VectorSet

_MOST_BYTES, _MOST_BLOCKS = 1 << 20, 256
"""Of a block that is kept, and how many are: 256 MB at most."""


class DrawnOnce:
    """Stands in for `golden.vectors.vectorset._block`."""

    def __init__(self) -> None:
        self.draw = vectorset._block
        self.kept: OrderedDict[tuple[Any, ...], tuple[int | None, VectorSet]] = OrderedDict()
        """By what decides a block: how many of its vectors were asked for (None: all), and these."""

    def __call__(
        self, ins: Instruction, seed: int, number: int, level: str, shares: Bits, most: int | None = None
    ) -> VectorSet:
        size = vectorset.block_size(ins, level)
        try:
            key = (pickle.dumps(ins), seed, number, level, shares.tobytes(), size)
        except (pickle.PicklingError, AttributeError, TypeError):  # a unit with functions of a test
            return self.draw(ins, seed, number, level, shares, most)
        asked, found = self.kept.get(key, (0, None))
        if found is None or (asked is not None and (most is None or asked < most)):
            found = self.draw(ins, seed, number, level, shares, most)
            if sum(codes.nbytes for codes in found.operands.values()) > _MOST_BYTES:
                return found
            self.kept[key] = most, found
            if len(self.kept) > _MOST_BLOCKS:
                self.kept.popitem(last=False)
        self.kept.move_to_end(key)
        part = found[:most]
        operands = {name: codes.copy() for name, codes in part.operands.items()}
        results = {name: codes.copy() for name, codes in part.results.items()}
        return VectorSet.of(ins, part.level, operands, results, part.kinds.copy(), seed, part.held)
