"""Structured-sparsity metadata: which columns of a row of A the stored elements stand for.

A nibble covers one chunk of logical columns and holds two indices, i0 | i1 << 2 (PTX ISA, mma.sp, sparse
matrix storage): 2:4 types pick 2 of 4 columns, 4-bit types 2 of 4 pairs of columns; tf32 picks 1 of 2 and
encodes it as 0x4 (the first) or 0xE (the second).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import MetadataError


@dataclass(frozen=True)
class Pattern:
    """One sparsity pattern: a nibble covers `chunk` logical columns, of which half are stored."""

    name: str
    chunk: int

    def legal(self, ordered: bool) -> tuple[int, ...]:
        """Returns the nibbles that the instruction accepts."""
        if self.name == "1:2":
            return 0x4, 0xE
        swapped = (0x1, 0x2, 0x3, 0x6, 0x7, 0xB)
        # i0 | i1 << 2 of the six pairs of places i0 < i1 of 2:4 sparsity.
        ordered_nibbles = (0x4, 0x8, 0x9, 0xC, 0xD, 0xE)
        return ordered_nibbles if ordered else tuple(sorted(ordered_nibbles + swapped))

    def columns(self, metadata: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Returns the logical column of every stored element:
        (..., k/chunk) nibbles to (..., k/2) indices."""
        nibbles = metadata.astype(np.int64)
        first, second = nibbles & 3, nibbles >> 2
        base = np.arange(metadata.shape[-1]) * self.chunk
        if self.name == "1:2":
            return np.asarray(base + (nibbles == 0xE))
        if self.name == "2:4":
            picked = np.stack([base + first, base + second], axis=-1)
        else:
            picked = np.stack(
                [base + 2 * first, base + 2 * first + 1, base + 2 * second, base + 2 * second + 1], axis=-1
            )
        return np.asarray(picked.reshape(*metadata.shape[:-1], metadata.shape[-1] * picked.shape[-1]))

    def check(self, metadata: npt.NDArray[Any], ordered: bool) -> None:
        """Raises MetadataError for the first illegal nibble, with its index and the legal ones."""
        legal = self.legal(ordered)
        wrong = ~np.isin(metadata, legal)
        if wrong.any():
            index = tuple(int(i) for i in np.argwhere(wrong)[0])
            names = ", ".join(f"{nibble:#x}" for nibble in legal)
            raise MetadataError(
                f"argument 'metadata'{list(index)} is {int(metadata[index]):#x}, expected one of {names} "
                f"({self.name})"
            )


PATTERNS = {name: Pattern(name, chunk) for name, chunk in (("2:4", 4), ("1:2", 2), ("4:8 pairs", 8))}
