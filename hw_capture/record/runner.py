"""Runs the kernel of an instruction on tiles and gives the result matrices."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from golden.model.instruction import Instruction
from hw_capture.errors import DeviceError
from hw_capture.kernels import buffers, kernels
from hw_capture.kernels.build import Built

Bits = npt.NDArray[Any]
INITIAL_BYTES = (0xCD, 0x32)
"""Bytes that lie in the results before a kernel runs: what it does not write is different after two runs
of different fill."""


def differing(found: Bits, expected: Bits, what: str) -> int:
    """How many results differ; raises DeviceError if their numbers differ, or of another type.

    NumPy would compare two arrays of different shapes as far as they go together:
    an empty one equals anything.
    """
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        raise DeviceError(
            f"{what}: {found.shape} results of {found.dtype}, expected {expected.shape} of {expected.dtype}"
        )
    return int((found != expected).sum())


class Runner(Protocol):
    """What the capture needs of a GPU."""

    def facts(self) -> dict[str, Any]:
        """The device, as the manifest has it."""

    def run(self, built: Built, operands: dict[str, Bits], fill: int) -> Bits:
        """Results (tiles, m, n) of one kernel, over bytes `fill` where it writes none; raises DeviceError."""


class Gpu(Protocol):
    """What running a kernel needs of an open GPU (hw_capture/gpu/device.py, hip_device.py)."""

    def facts(self) -> dict[str, Any]: ...
    def load(self, code: bytes, /) -> Any: ...
    def upload(self, data: Bits, /) -> Any: ...
    def empty(self, nbytes: int, fill: int | None = None, /) -> Any: ...
    def download(self, buffer: Any, shape: tuple[int, ...], dtype: npt.DTypeLike, /) -> Bits: ...
    def release(self) -> None: ...


class GpuRunner:
    """Runs kernels on an open GPU; a group's module is loaded once."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._loaded: tuple[bytes, Any] | None = None

    def facts(self) -> dict[str, Any]:
        """The facts of the GPU."""
        return self._gpu.facts()

    def run(self, built: Built, operands: dict[str, Bits], fill: int) -> Bits:
        """See Runner."""
        if self._loaded is None or self._loaded[0] is not built.cubin:
            self._loaded = built.cubin, self._gpu.load(built.cubin)
        return execute(
            self._gpu, self._loaded[1], built.kernel, built.instruction, built.form, operands, fill
        )


def execute(
    gpu: Gpu,
    module: Any,
    kernel: str,
    ins: Instruction,
    form: str,
    operands: dict[str, Bits],
    fill: int,
) -> Bits:
    """Runs one kernel on tiles (tiles, ...) as `ins(...)` takes them; returns D (tiles, m, n); see Runner."""
    chosen = buffers.for_kernel(ins, form)
    executions = len(operands["c"]) // ins.blocks
    held = {name: gpu.upload(chosen[name].pack(codes)) for name, codes in operands.items()}
    result = chosen["d"]
    held["d"] = gpu.empty(executions * result.nbytes, fill)
    grid, block = kernels.geometry(ins, executions)
    pointers = [held.get(name, np.uint64(0)) for name in kernels.PARAMETERS]
    module.get(kernel)(*pointers, np.uint32(executions), grid=grid, block=block)
    words = gpu.download(held["d"], (executions, *result.shape), result.dtype)
    gpu.release()
    return result.unpack(words)
