"""An AMD GPU, through hip-python: hw_capture/gpu/device.py is the same of NVIDIA's. What a capture needs.

    with hip_device.open() as gpu:
        run = gpu.load(code_object).get("run")
        run(..., grid=8, block=128)

hip-python is imported when a device is opened, not before; it loads HIP's own library at the first call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import pip_install
from hw_capture.errors import DeviceError, ToolMissing

Bytes = npt.NDArray[Any]
_VERSION_FILE = Path("/sys/module/amdgpu/version")


class Kernel:
    """One function of a module; call it with numbers and `HipDevice` buffers."""

    def __init__(self, device: HipDevice, function: Any, name: str) -> None:
        self._device, self._function, self.name = device, function, name

    def __call__(self, *arguments: Any, grid: int, block: int) -> None:
        """Launches and waits; raises DeviceError if the launch or the kernel failed."""
        self._device.call(
            f"kernel {self.name}",
            "hipModuleLaunchKernel",
            self._function,
            *(grid, 1, 1, block, 1, 1),
            sharedMemBytes=0,
            stream=None,
            kernelParams=None,
            extra=tuple(map(_argument, arguments)),
        )
        self._device.call(f"kernel {self.name}", "hipDeviceSynchronize")


def _argument(value: Any) -> Any:
    """A number as the C type of its width; a buffer as it is."""
    if isinstance(value, np.uint64):
        return ctypes.c_uint64(int(value))
    return ctypes.c_uint32(int(value)) if isinstance(value, int | np.uint32) else value


class Module:
    """A loaded code object."""

    def __init__(self, device: HipDevice, module: Any) -> None:
        self._device, self._module = device, module

    def get(self, name: str) -> Kernel:
        """Returns the kernel of that name; raises DeviceError where there is none."""
        found = self._device.call(f"kernel {name}", "hipModuleGetFunction", self._module, name.encode())
        return Kernel(self._device, found, name)


class HipDevice:
    """An open GPU. Use it in a `with`: what it allocated is given back at the end.

    Attributes:
        name: e.g. "AMD Instinct MI300X". target: e.g. "gfx942".
    """

    def __init__(self, index: int = 0) -> None:
        self._hip = _library()
        self._held: list[Any] = []
        count = int(self.call("looking for a GPU", "hipGetDeviceCount"))
        if not 0 <= index < count:
            raise DeviceError(f"there is no AMD GPU {index}, this machine has {count}")
        self.call(f"GPU {index}", "hipSetDevice", index)
        self._properties = self._hip.hipDeviceProp_t()
        self.call(f"GPU {index}", "hipGetDeviceProperties", self._properties, index)
        self.name = _text(self._properties.name)
        self.target = _text(self._properties.gcnArchName).split(":")[0]

    def __enter__(self) -> HipDevice:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            self.release()
        except DeviceError:
            if kind is None:  # else the error that made the GPU unusable is on its way
                raise

    def call(self, what: str, name: str, *arguments: Any, **named: Any) -> Any:
        """Calls a function of HIP; what it gives back, None where that is its status alone.

        Raises:
            DeviceError: naming what failed, in HIP's words.
        """
        try:
            result = getattr(self._hip, name)(*arguments, **named)
        except RuntimeError as error:  # hip-python's, where HIP's own library cannot be loaded
            raise DeviceError(f"{what}: {' '.join(str(error).split())}") from None
        status, *values = result
        if status != self._hip.hipError_t.hipSuccess:
            raise DeviceError(f"{what}: {getattr(status, 'name', status)}")
        return values[0] if values else None

    def facts(self) -> dict[str, Any]:
        """What a manifest says about the GPU: no serial number, no UUID, no host name."""
        version = int(self.call("HIP's version", "hipRuntimeGetVersion"))
        return {
            "name": self.name,
            "target": self.target,
            "hip": f"{version // 10_000_000}.{version // 100_000 % 100}.{version % 100_000}",
            "driver": driver_version(),
            "cu_count": int(self._properties.multiProcessorCount),
            "memory_mib": int(self._properties.totalGlobalMem) >> 20,
        }

    def load(self, code: bytes) -> Module:
        """Loads a code object; raises DeviceError where it is not for this GPU."""
        return Module(self, self.call("loading the kernels", "hipModuleLoadData", code))

    def upload(self, data: Bytes) -> Any:
        """Returns a buffer with a copy of the array."""
        whole = np.ascontiguousarray(data)
        buffer = self._allocated(whole.nbytes)
        kind = self._hip.hipMemcpyKind.hipMemcpyHostToDevice
        self.call(f"copying {whole.nbytes} bytes to the GPU", "hipMemcpy", buffer, whole, whole.nbytes, kind)
        return buffer

    def empty(self, nbytes: int, fill: int | None = None) -> Any:
        """Returns a buffer, every byte of it `fill` if given."""
        buffer = self._allocated(nbytes)
        if fill is not None:
            self.call(f"{nbytes} bytes on the GPU", "hipMemset", buffer, fill, max(nbytes, 1))
        return buffer

    def download(self, buffer: Any, shape: Sequence[int], dtype: npt.DTypeLike) -> Bytes:
        """Returns the buffer's content as an array."""
        found = np.empty(tuple(shape), dtype)
        kind = self._hip.hipMemcpyKind.hipMemcpyDeviceToHost
        what = f"copying {found.nbytes} bytes from the GPU"
        self.call(what, "hipMemcpy", found, buffer, found.nbytes, kind)
        return found

    def release(self) -> None:
        """Gives all buffers back."""
        while self._held:
            self.call("giving memory back", "hipFree", self._held.pop())

    def _allocated(self, nbytes: int) -> Any:
        buffer = self.call(f"{nbytes} bytes on the GPU", "hipMalloc", max(nbytes, 1))
        self._held.append(buffer)
        return buffer


def open(index: int = 0) -> HipDevice:
    """Opens AMD GPU number `index`.

    Raises:
        ToolMissing: no hip-python. DeviceError: no HIP, no GPU, or not that many.
    """
    return HipDevice(index)


def driver_version() -> str:
    """Returns the version of the amdgpu module, or "unknown" where it is the kernel's own."""
    with suppress(OSError):
        return _VERSION_FILE.read_text("utf-8", "replace").strip() or "unknown"
    return "unknown"


def _library() -> Any:
    try:
        from hip import hip
    except ImportError:
        raise ToolMissing(f"hip-python is not installed: {pip_install('hip')}") from None
    return hip


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
