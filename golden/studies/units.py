"""The units that studies compare, and how to feed them with numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.catalog.architectures import get_architecture
from golden.catalog.lookup import instruction
from golden.instruction import Instruction
from golden.number.formats import from_float, to_float

Bits = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
MMA = "mma.sync.aligned."


@dataclass(frozen=True)
class Subject:
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
        return get_architecture(self.architecture).short_title

    @property
    def label(self) -> str:
        """Chip and what distinguishes the instruction: "Hopper wgmma"."""
        return f"{self.chip} {self.what}".strip()


def encode(ins: Instruction, operand: str, values: npt.ArrayLike) -> Bits:
    """Values rounded to the codes of an operand's format."""
    return from_float(ins.formats[operand], values)


def decode(ins: Instruction, codes: npt.ArrayLike) -> Floats:
    """The values of results."""
    return to_float(ins.formats["d"], codes)


def dot(ins: Instruction, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike = 0.0) -> Floats:
    """The values of dot products of values (..., up to k); what is missing is zero. Results are broadcast
    with c."""
    x, y = (encode(ins, operand, _padded(values, ins.k)) for operand, values in (("a", a), ("b", b)))
    return decode(ins, ins.dot(x, y, encode(ins, "c", c)))


def _padded(values: npt.ArrayLike, k: int) -> Floats:
    wide = np.asarray(values, dtype=np.float64)
    padded = np.zeros((*wide.shape[:-1], k))
    padded[..., : wide.shape[-1]] = wide
    return padded
