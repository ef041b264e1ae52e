"""`gpu:NAME` as a black box of `mmagold dissect`, and the GPU in this machine as what studies ask.

Only the name of an instruction is read from the catalog, and from that the kernel with its formats and K;
its arithmetic is the question. So a GPU that no architecture describes can run, too, by the names of any.
"""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING

from golden.catalog import architectures
from golden.catalog.lookup import instruction, resolve
from golden.errors import OperandError, UnknownNameError
from golden.identify.blackbox.plugins import Chip
from golden.unit import Unit
from hw_capture.errors import DeviceError

if TYPE_CHECKING:
    from golden.model.instruction import Instruction
    from hw_capture.gpu.device import Device

_PREFIX = "gpu:"


def open_box(text: str) -> Unit | None:
    """The unit that `gpu:NAME` or `gpu:architecture:NAME` names; None of any other text. The GPU stays open
    until the process ends.

    Raises:
        UnknownNameError: no such instruction. OperandError: a GPU has no units of one's own.
        ToolMissing, DeviceError: no GPU, or one of another architecture; later, a kernel failed.
        CompileError: a GPU that no architecture describes does not execute it, or nvcc does not know the GPU.
    """
    if not text.startswith(_PREFIX):
        return None
    name = text.removeprefix(_PREFIX)
    if name.endswith((".yaml", ".yml")):
        raise OperandError(
            f"{text} is no instruction of a GPU, expected gpu:NAME, such as gpu:HMMA.16816.F32"
        )
    from hw_capture.record.unit import units_of

    card = _card()
    own = described_by(card)
    if own is None:
        return units_of(card)(_of_any_architecture(name))
    ins = resolve(name) if _has_architecture(name) else resolve(name, own)
    return units_of(card, ins.architecture)(ins)


def open_chip() -> Chip:
    """The GPU in this machine with the instructions of its architecture; it stays open until the process
    ends.

    Raises:
        ToolMissing, DeviceError: no GPU, or none that an architecture describes.
    """
    from hw_capture.kernels import build
    from hw_capture.record.unit import units_of

    card = _card()
    own = described_by(card)
    if own is None:
        raise DeviceError(f"this GPU is a {card.name}, which no architecture describes")
    units = units_of(card, own)

    def unit(ins: Instruction) -> Unit | None:
        return units(ins) if build.supported(ins) else None

    return Chip(card.name, own, unit)


def _card() -> Device:
    from hw_capture.gpu import device

    card = device.open()
    atexit.register(card.close)
    return card


def described_by(card: Device) -> str | None:
    """The architecture that a GPU is of; None where none describes it."""
    from hw_capture.record.capture import target_of

    number = "sm_" + "".join(map(str, card.compute_capability))
    names = architectures.architectures()
    return next((name for name in names if target_of(name, number) is not None), None)


def _of_any_architecture(name: str) -> Instruction:
    """An instruction by its name alone, of the latest architecture that has it: formats and K are the same
    in all."""
    if not _has_architecture(name):
        for architecture in reversed(architectures.architectures()):
            try:
                return instruction(architecture, name)
            except UnknownNameError:
                continue
    return resolve(name)


def _has_architecture(name: str) -> bool:
    prefix, colon, rest = name.partition(":")
    return bool(colon) and not rest.startswith(":") and "." not in prefix
