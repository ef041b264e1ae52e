"""The units that studies compare, and how to feed them with numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.catalog import get_architecture
from golden.docs.markdown import link
from golden.formats import from_float, to_float
from golden.instruction import Instruction, instruction

Bits = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
MMA = "mma.sync.aligned."


@dataclass(frozen=True)
class Unit:
    """An instruction of an architecture under a short label."""

    architecture: str
    name: str
    what: str = ""

    @cached_property
    def ins(self) -> Instruction:
        """The instruction."""
        return instruction(self.architecture, self.name)

    @property
    def chip(self) -> str:
        """The architecture's name without its maker's: "RTX Blackwell"."""
        title = get_architecture(self.architecture).title
        return title.removeprefix("NVIDIA ").removeprefix("AMD ")

    @property
    def label(self) -> str:
        """Chip and what distinguishes the instruction: "Hopper wgmma"."""
        return f"{self.chip} {self.what}".strip()

    @property
    def maker(self) -> str:
        """NVIDIA or AMD."""
        return get_architecture(self.architecture).vendor

    @property
    def chip_link(self) -> str:
        """The chip's name, linked to its page of the site."""
        return link(self.chip, f"architectures/{self.architecture}.md")


def encode(ins: Instruction, operand: str, values: npt.ArrayLike) -> Bits:
    """Values rounded to the codes of an operand's format."""
    return from_float(ins.formats[operand], values)


def decode(ins: Instruction, codes: npt.ArrayLike) -> Floats:
    """The values of results."""
    return to_float(ins.formats["d"], codes)


def dot(ins: Instruction, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike = 0.0) -> Floats:
    """The values of dot products of values (..., up to k); what is missing is zero. Results are broadcast with c."""
    rows = []
    for operand, values in (("a", a), ("b", b)):
        wide = np.asarray(values, dtype=np.float64)
        padded = np.zeros((*wide.shape[:-1], ins.k))
        padded[..., : wide.shape[-1]] = wide
        rows.append(encode(ins, operand, padded))
    return decode(ins, ins.dot(*rows, encode(ins, "c", c)))


def sparse_row(entries: Sequence[tuple[int, float]], k: int) -> Floats:
    """A row of zeros with a few entries (position, value)."""
    row = np.zeros(k)
    for place, value in entries:
        row[place] = value
    return row


def chain(ins: Instruction, a: Bits, b: Bits, c: Bits) -> Bits:
    """Dot products longer than the instruction's K: each instruction takes the result before it as its c.

    a, b (samples, length) with a length that k divides, c (samples,), all codes; f32 or equal formats of c and d.
    """
    for k in range(0, a.shape[-1], ins.k):
        c = ins.dot(a[..., k : k + ins.k], b[..., k : k + ins.k], c)
    return c
