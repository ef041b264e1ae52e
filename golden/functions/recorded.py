"""What a GPU answered for the functions of its special-function unit: words, and a digest of all codes.

    found = recorded("hopper")
    found.codes["ex2.approx.ftz.f32"], found.words["ex2.approx.ftz.f32"]      # some codes, and their results
    found.digests["ex2.approx.ftz.f32"][127]        # of all codes with the sign and exponent bits 127

An archive of NumPy, vectors/functions/ARCHITECTURE.npz, has `codes` (uint32, the operands of 32-bit
functions), and for each function `words NAME`, and `digests NAME` for 32-bit ones. 16-bit functions have
words of all 65536 codes.
"""

from __future__ import annotations

from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from golden.errors import FileFormatError
from golden.functions.functions import Codes, Function
from golden.paths import checkout

GROUPS = 512
"""Digests of a function: one for each value of the upper nine bits of a code, the sign and the exponent of an
f32."""
PER_GROUP = (1 << 32) // GROUPS


@dataclass(frozen=True)
class Recorded:
    """By the name of a function: operands, the results of a GPU, and digests (see `digest`) of all
    results."""

    codes: AnyMapping[str, Codes]
    words: AnyMapping[str, Codes]
    digests: AnyMapping[str, npt.NDArray[np.uint64]]


def archive(architecture: str) -> Path | None:
    """Where the recorded words of an architecture lie; None in a wheel, which has no vectors."""
    root = checkout()
    return None if root is None else root / "vectors" / "functions" / f"{architecture}.npz"


def recorded(path: Path) -> Recorded:
    """Reads an archive.

    Raises:
        FileFormatError: it is none.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
        shared = found.pop("codes")
    except (OSError, ValueError, KeyError) as error:
        raise FileFormatError(f"{path}: expected an archive of recorded functions: {error}") from None
    words = {name.removeprefix("words "): array for name, array in found.items() if name.startswith("words ")}
    digests = {
        name.removeprefix("digests "): array for name, array in found.items() if name.startswith("digests ")
    }
    codes = {name: operands(array.itemsize * 8, shared) for name, array in words.items()}
    return Recorded(codes, words, digests)


def operands(width: int, shared: Codes | None = None) -> Codes:
    """The codes whose results are recorded: all of 16 bits; of 32 bits, `shared` or new ones, eight of each
    group: its ends, the second one and five at random."""
    if width == 16:
        return np.arange(1 << 16, dtype=np.uint16)
    if shared is not None:
        return shared
    # Recorded codes of each group.
    each = 8
    places = np.random.default_rng(1).integers(0, PER_GROUP, (GROUPS, each), dtype=np.uint32)
    places[:, :3] = 0, 1, PER_GROUP - 1
    return (np.arange(GROUPS, dtype=np.uint32)[:, None] * np.uint32(PER_GROUP) + places).ravel()


def digest(codes: Codes, results: Codes) -> int:
    """A digest of pairs of 32-bit codes: the sum of 64-bit words modulo 2^64, one for each pair, so that any
    order and any division of the work gives the same. A pair's word is a one-to-one map of its 64 bits."""
    word = codes.astype(np.uint64) << np.uint64(32) | results.astype(np.uint64)
    # Odd numbers of 64 bits without a pattern, so that a multiplication spreads every bit to the bits above
    # it.
    multipliers = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
    for multiplier in multipliers:
        word *= np.uint64(multiplier)
        word ^= word >> np.uint64(32)
    return int(word.sum(dtype=np.uint64))


def group_digest(function: Function, group: int) -> int:
    """The digest of what the model gives for one group of codes."""
    codes = np.arange(group * PER_GROUP, (group + 1) * PER_GROUP, dtype=np.uint32)
    return digest(codes, function(codes))
