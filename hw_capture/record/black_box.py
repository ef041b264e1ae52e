"""`gpu:NAME` as a black box of `mmagold dissect`: an instruction that the GPU in this machine executes.

Only its name is read from the catalog, and from that the kernel with its formats and K; what it computes is
asked.
"""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING

from golden.catalog import architectures
from golden.catalog.lookup import resolve
from golden.errors import OperandError
from golden.unit import Unit
from hw_capture.errors import DeviceError

if TYPE_CHECKING:
    from hw_capture.gpu.device import Device

_PREFIX = "gpu:"


def open_box(text: str) -> Unit | None:
    """The unit that `gpu:NAME` or `gpu:architecture:NAME` names; None of any other text. The GPU stays open
    until the process ends.

    Raises:
        UnknownNameError: no such instruction. OperandError: a GPU has no units of one's own.
        ToolMissing, DeviceError: no GPU, or one of another architecture; later, a kernel failed.
    """
    if not text.startswith(_PREFIX):
        return None
    name = text.removeprefix(_PREFIX)
    if name.endswith((".yaml", ".yml")):
        raise OperandError(
            f"{text} is no instruction of a GPU, expected gpu:NAME, such as gpu:HMMA.16816.F32"
        )
    from hw_capture.gpu import device
    from hw_capture.record.unit import units_of

    card = device.open()
    atexit.register(card.close)
    ins = resolve(name) if _has_architecture(name) else resolve(name, architecture_of(card))
    return units_of(card, ins.architecture)(ins)


def _has_architecture(name: str) -> bool:
    prefix, colon, rest = name.partition(":")
    return bool(colon) and not rest.startswith(":") and "." not in prefix


def architecture_of(card: Device) -> str:
    """The architecture that a GPU is of.

    Raises:
        DeviceError: none that is known.
    """
    number = "sm_" + "".join(map(str, card.compute_capability))
    for name in architectures.architectures():
        if any(one.rstrip("af") == number for one in architectures.get_architecture(name).targets):
            return name
    raise DeviceError(f"this GPU is a {card.name} ({number}), which no architecture describes")
