"""Kinds of black boxes that other packages add: golden imports none of them (rtl_tb adds dut.yaml,
hw_capture gpu:NAME and the GPU in this machine)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from golden.errors import OperandError

if TYPE_CHECKING:
    from golden.model.instruction import Instruction
    from golden.unit import Unit

OPENERS: list[Callable[[str], Unit | None]] = []
"""Each returns the unit that a text names, or None where the text is not of its kind."""


@dataclass(frozen=True)
class Chip:
    """A chip that can be queried: its name ("NVIDIA H200"), its architecture, and a function from its
    instructions to units, None for an instruction without a kernel."""

    name: str
    architecture: str
    unit: Callable[[Instruction], Unit | None]


CHIPS: list[Callable[[], Chip]] = []
"""What opens the chip in this machine, or raises an error that says why not."""


def open_chip() -> Chip:
    """The chip in this machine.

    Raises:
        OperandError: nothing here can ask one. ToolMissing, DeviceError: none that is described.
    """
    if not CHIPS:
        raise OperandError("nothing is installed that asks a GPU, expected mmagold with hw_capture")
    return CHIPS[0]()
