"""An instruction on a GPU as a unit (golden/unit.py): what asks a model for dot products asks it, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from golden.model.instruction import Instruction
from golden.program.signature import Bits, Operands
from golden.unit import FunctionUnit
from hw_capture.errors import DeviceError
from hw_capture.kernels import kernels, toolchain
from hw_capture.record.capture import target_for
from hw_capture.record.runner import FILLS, differing, execute

if TYPE_CHECKING:
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
        first, second = (execute(gpu, module, "run", ins, form, tiles, fill) for fill in FILLS)
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
