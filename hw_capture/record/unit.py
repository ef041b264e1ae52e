"""An instruction on a GPU as a unit (golden/unit.py): what asks a model for dot products asks it, too.

`open_box` opens `gpu:NAME` for `mmagold dissect`, `open_chip` the GPU that studies ask. Only the name of an
instruction is read from the catalog, and from that the kernel with its formats and K; its arithmetic is the
question. So a GPU that no architecture describes can run, too, by the names of any.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from golden.catalog import architectures
from golden.catalog.lookup import instruction, resolve
from golden.errors import OperandError, UnknownNameError
from golden.identify.blackbox.plugins import Chip
from golden.model.instruction import Instruction
from golden.program.signature import Bits, Operands
from golden.unit import FunctionUnit, Unit
from hw_capture.errors import DeviceError
from hw_capture.kernels import kernels, toolchain
from hw_capture.record.capture import target_for
from hw_capture.record.runner import INITIAL_BYTES, differing, execute

if TYPE_CHECKING:
    from golden.model.instruction import Instruction
    from hw_capture.gpu.device import Device


def units_of(gpu: Device, architecture: str | None = None) -> Callable[[Instruction], FunctionUnit]:
    """Instructions of an architecture on an open GPU, each compiled once; without one, of any, for the GPU as
    it is.

    Raises:
        DeviceError: the GPU is not of the architecture; later, a kernel failed or did not write all its
            results.
    """
    target = (
        own_target(gpu.compute_capability) if architecture is None else target_for(architecture, gpu.facts())
    )
    made: dict[str, FunctionUnit] = {}

    def unit(ins: Instruction) -> FunctionUnit:
        if ins.name not in made:
            made[ins.name] = _unit(gpu, ins, target)
        return made[ins.name]

    return unit


def own_target(capability: tuple[int, int]) -> str:
    """What code for a GPU itself is compiled for; from 9.0 on with all that only this GPU has ("sm_90a")."""
    major, minor = capability
    return f"sm_{major}{minor}" + "a" * (major >= 9)


def _unit(gpu: Device, ins: Instruction, target: str) -> FunctionUnit:
    form = kernels.forms(ins)[0]
    module = gpu.load(toolchain.compile(kernels.source(ins, form), target))

    def answer(**operands: Bits) -> Bits:
        index = np.arange(min(ins.m, ins.n))
        return run(on_diagonals(ins, operands))[:, index, index].reshape(-1)[: len(operands["a"])]

    def tile(**operands: Bits) -> Bits:
        count = len(operands["a"])
        more = -count % ins.blocks  # one execution is this many tiles
        padded = {
            name: np.concatenate([codes, codes[:1].repeat(more, 0)]) for name, codes in operands.items()
        }
        return run(padded)[:count]

    def run(tiles: Operands) -> Bits:
        first, second = (execute(gpu, module, "run", ins, form, tiles, fill) for fill in INITIAL_BYTES)
        if unlike := differing(second, first, ins.name):
            raise DeviceError(
                f"{ins.name}: {unlike} of {first.size} results differ between two runs, or were never written"
            )
        return first

    return FunctionUnit.like(ins, answer, tile=tile)


def on_diagonals(ins: Instruction, dots: Operands) -> Operands:
    """Tiles with dot product i of each on row i, column i; what is left of them is at rest."""
    count, size = len(dots["a"]), min(ins.m, ins.n)
    tiles = -(-count // (size * ins.blocks)) * ins.blocks
    index, found = np.arange(size), {}
    for name, shape in ins.operand_shapes(matrices=True).items():
        codes = dots[name]
        padded = np.full((tiles * size, *codes.shape[1:]), ins.at_rest(name), codes.dtype)
        padded[:count] = codes
        parts = padded.reshape(tiles, size, *codes.shape[1:])
        tile = np.full((tiles, *shape), ins.at_rest(name), codes.dtype)
        if name == "c":
            tile[:, index, index] = parts
        elif name in ("b", "scale_b"):
            tile[:, :, :size] = parts.swapaxes(1, 2)
        else:
            tile[:, :size] = parts
        found[name] = tile
    return found


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
