"""The units that studies compare, and how to feed them with numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.catalog.architectures import get_architecture
from golden.catalog.lookup import instruction
from golden.errors import counted
from golden.identify.blackbox.plugins import Chip
from golden.model.instruction import Instruction
from golden.number.formats import from_float, to_float
from golden.unit import Unit

Bits = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
MMA = "mma.sync.aligned."


@dataclass(frozen=True)
class Subject:
    """An instruction of an architecture under a short label; `on`: the chip that computes it, if it is not
    the model."""

    architecture: str
    name: str
    what: str = ""
    on: Chip | None = None

    @cached_property
    def ins(self) -> Instruction:
        """The instruction."""
        return instruction(self.architecture, self.name)

    @cached_property
    def answering(self) -> Unit:
        """What answers: the model, or the chip; never one in the name of the other."""
        if self.on is None:
            return self.ins
        unit = self.on.unit(self.ins)
        assert unit is not None, f"{self.name} has no kernel on {self.on.name}"
        return unit

    @property
    def chip(self) -> str:
        """The name of the chip that computed; for a model its architecture's name without its maker's:
        "RTX Blackwell"."""
        if self.on is not None:
            return self.on.name
        return get_architecture(self.architecture).short_title

    @property
    def label(self) -> str:
        """Chip and what distinguishes the instruction: "Hopper wgmma"."""
        return f"{self.chip} {self.what}".strip()


def and_on(chip: Chip | None, subjects: Iterable[Subject]) -> Iterator[Subject]:
    """The models, and after each the same instruction of a chip, where it has a kernel there."""
    for one in subjects:
        yield one
        if chip is not None and one.architecture == chip.architecture and chip.unit(one.ins) is not None:
            yield replace(one, on=chip)


def who_answered(subjects: Iterable[Subject]) -> str:
    """ "the models", or "the models and NVIDIA H200 (16 instructions)"."""
    chips = Counter(one.on.name for one in subjects if one.on is not None)
    parts = (f" and {name} ({counted(count, 'instruction')})" for name, count in chips.items())
    return "the models" + "".join(parts)


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
