"""The GPU, through PyCUDA: opens it, says what it is, loads kernels, moves buffers, runs them.

    with device.open() as gpu:
        run = gpu.load(cubin).get("run")
        run(..., grid=132, block=128)

PyCUDA is imported when a device is opened, not before.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import pip_install
from hw_capture.errors import DeviceError, ToolMissing
from hw_capture.gpu import processes

Bytes = npt.NDArray[Any]
_CLOCKS = {"sm_clock_khz": "CLOCK_RATE", "memory_clock_khz": "MEMORY_CLOCK_RATE", "l2_bytes": "L2_CACHE_SIZE"}


def _driver() -> Any:
    """PyCUDA's driver module, initialised; raises ToolMissing or DeviceError."""
    try:
        import pycuda.driver as cuda
    except ImportError as error:
        if "libcuda" in str(error):
            raise DeviceError("no NVIDIA driver on this machine (libcuda.so.1 not found)") from None
        raise ToolMissing(f"PyCUDA is not installed: {pip_install('gpu')}") from None
    try:
        cuda.init()
        count = cuda.Device.count()
    except cuda.Error as error:
        raise DeviceError(f"no NVIDIA GPU can be used: {_reason(error)}") from None
    if not count:
        raise DeviceError("no NVIDIA GPU in this machine")
    return cuda


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def _reported(cuda: Any, what: str) -> Iterator[None]:
    """Turns PyCUDA's errors into DeviceError."""
    try:
        yield
    except cuda.MemoryError:
        raise DeviceError(f"{what}: the GPU has not enough free memory") from None
    except cuda.Error as error:
        raise DeviceError(f"{what}: {_reason(error)}") from None


class Kernel:
    """One function of a module; call it with numbers, `Device` buffers and NumPy scalars."""

    def __init__(self, device: Device, function: Any, name: str) -> None:
        self._device, self.function, self.name = device, function, name

    def __call__(
        self, *arguments: Any, grid: int | tuple[int, ...], block: int | tuple[int, ...], shared: int = 0
    ) -> None:
        """Launches and waits. Plain integers go as 32-bit unsigned numbers.

        Raises:
            DeviceError: the launch or the kernel failed; the device can then not be used any more.
        """
        self.launch(*arguments, grid=grid, block=block, shared=shared)
        self._device.wait(self.name)

    def allow_shared(self, nbytes: int) -> None:
        """Lets launches ask for that much dynamic shared memory, which above 48 KiB has to be said before."""
        with _reported(self._device.cuda, f"kernel {self.name}: {nbytes} bytes of shared memory"):
            limit = self._device.cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.function.set_attribute(limit, nbytes)

    def launch(
        self, *arguments: Any, grid: int | tuple[int, ...], block: int | tuple[int, ...], shared: int = 0
    ) -> None:
        """Launches without waiting; `Device.wait` waits."""
        whole = [np.uint32(value) if type(value) is int else value for value in arguments]
        with _reported(self._device.cuda, f"kernel {self.name}"):
            self.function(*whole, grid=_three(grid), block=_three(block), shared=shared)


def _three(size: int | tuple[int, ...]) -> tuple[int, ...]:
    parts = (size,) if isinstance(size, int) else size
    return (*parts, 1, 1, 1)[:3]


class Module:
    """A loaded cubin."""

    def __init__(self, device: Device, module: Any) -> None:
        self._device, self._module = device, module

    def get(self, name: str) -> Kernel:
        """Returns the kernel of that name; raises DeviceError where there is none."""
        with _reported(self._device.cuda, f"kernel {name}"):
            return Kernel(self._device, self._module.get_function(name), name)

    def write(self, name: str, data: Bytes) -> None:
        """Copies an array to a variable of the module; raises DeviceError where it is missing or smaller."""
        with _reported(self._device.cuda, f"variable {name}"):
            place, size = self._module.get_global(name)
        if data.nbytes > size:
            raise DeviceError(f"variable {name} holds {size} bytes, expected {data.nbytes}")
        self._device.write(place, data)


class Device:
    """An open GPU. Close it, or use it in a `with`.

    Attributes:
        name: e.g. "NVIDIA H200". compute_capability: e.g. (9, 0). sm_count: multiprocessors. memory: bytes.
        driver: version of the kernel driver. cuda_version: what that driver supports, e.g. "13.0".
    """

    def __init__(self, index: int = 0) -> None:
        self.cuda = cuda = _driver()
        if not 0 <= index < cuda.Device.count():
            raise DeviceError(f"there is no GPU {index}, this machine has {cuda.Device.count()}")
        with _reported(cuda, f"GPU {index}"):
            self._gpu = cuda.Device(index)
            self._context = self._gpu.retain_primary_context()
            self._context.push()
        self._open = True
        self.name = str(self._gpu.name())
        self.compute_capability: tuple[int, int] = tuple(self._gpu.compute_capability())
        self.sm_count = self._attribute("MULTIPROCESSOR_COUNT")
        self.memory = int(self._gpu.total_memory())
        version = int(cuda.get_driver_version())
        self.cuda_version = f"{version // 1000}.{version % 1000 // 10}"
        self.driver = driver_version()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            self.close()
        except DeviceError:
            if kind is None:  # else the error that made the GPU unusable is on its way
                raise

    def close(self) -> None:
        """Gives the GPU back; a second call does nothing."""
        if self._open:
            self._open = False
            with _reported(self.cuda, "closing the GPU"):
                self._context.pop()
                self._context.detach()

    def _attribute(self, name: str) -> int:
        key = getattr(self.cuda.device_attribute, name, None)
        return int(self._gpu.get_attribute(key)) if key is not None else 0

    def facts(self) -> dict[str, Any]:
        """What a manifest says about the GPU: no serial number, no UUID, no host name."""
        major, minor = self.compute_capability
        return {
            "name": self.name,
            "compute_capability": f"{major}.{minor}",
            "cuda": self.cuda_version,
            "driver": self.driver,
            "sm_count": self.sm_count,
            "memory_mib": self.memory >> 20,
            **{key: self._attribute(name) for key, name in _CLOCKS.items()},
        }

    @property
    def memory_bus_bits(self) -> int:
        """Width of the memory bus, 0 where the driver does not report it."""
        return self._attribute("GLOBAL_MEMORY_BUS_WIDTH")

    def free_memory(self) -> int:
        """Bytes that nobody has taken."""
        with _reported(self.cuda, "asking for free memory"):
            return int(self.cuda.mem_get_info()[0])

    def write(self, buffer: Any, data: Bytes) -> None:
        """Copies an array to the beginning of a buffer."""
        with _reported(self.cuda, f"copying {data.nbytes} bytes to the GPU"):
            self.cuda.memcpy_htod(buffer, np.ascontiguousarray(data))

    def load(self, cubin: bytes) -> Module:
        """Loads a cubin; raises DeviceError where it is not for this GPU."""
        with _reported(self.cuda, "loading the kernels"):
            return Module(self, self.cuda.module_from_buffer(cubin))

    def upload(self, data: Bytes) -> Any:
        """Returns a buffer with a copy of the array."""
        with _reported(self.cuda, f"copying {data.nbytes} bytes to the GPU"):
            return self.cuda.to_device(np.ascontiguousarray(data))

    def empty(self, nbytes: int, fill: int | None = None) -> Any:
        """Returns a buffer, every byte of it `fill` if given."""
        with _reported(self.cuda, f"{nbytes} bytes on the GPU"):
            buffer = self.cuda.mem_alloc(max(nbytes, 1))
        if fill is not None:
            self.fill(buffer, max(nbytes, 1), fill)
        return buffer

    def fill(self, buffer: Any, nbytes: int, value: int) -> None:
        """Sets every byte of a buffer."""
        with _reported(self.cuda, f"{nbytes} bytes on the GPU"):
            self.cuda.memset_d8(buffer, value, nbytes)

    def download(self, buffer: Any, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Bytes:
        """Returns the buffer's content as an array."""
        found = np.empty(shape, dtype)
        with _reported(self.cuda, f"copying {found.nbytes} bytes from the GPU"):
            self.cuda.memcpy_dtoh(found, buffer)
        return found

    def release(self) -> None:
        """Gives buffers back: PyCUDA does it when nobody holds them."""

    def milliseconds(self, launch: Callable[[], None], what: str = "the GPU") -> float:
        """Returns how long what `launch` puts on the GPU takes there; waits; raises DeviceError if it
        failed."""
        with _reported(self.cuda, f"kernel {what}"):
            before, after = self.cuda.Event(), self.cuda.Event()
            before.record()
            launch()
            after.record()
            after.synchronize()
            return float(before.time_till(after))

    def wait(self, what: str = "the GPU") -> None:
        """Waits for everything that was launched; raises DeviceError if it failed."""
        with _reported(self.cuda, f"kernel {what}"):
            self.cuda.Context.synchronize()


def open(index: int = 0) -> Device:
    """Opens GPU number `index`.

    Raises:
        ToolMissing: no PyCUDA. DeviceError: no driver, no GPU, or not that many.
    """
    return Device(index)


def count() -> int:
    """Returns how many GPUs this machine has.

    Raises:
        ToolMissing: no PyCUDA. DeviceError: no driver, or no GPU.
    """
    return int(_driver().Device.count())


def driver_version() -> str:
    """Returns the version of the NVIDIA kernel driver, or "unknown"."""
    with suppress(OSError):
        text = Path("/proc/driver/nvidia/version").read_text("utf-8", "replace")
        if found := re.search(r"Kernel Module[^\n]*?\s(\d+(?:\.\d+)+)", text):
            return found.group(1)
    with suppress(DeviceError):
        done = processes.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], 30, DeviceError
        )
        if done.status == 0 and re.fullmatch(r"\d+(?:\.\d+)+", first := done.output.split("\n")[0].strip()):
            return first
    return "unknown"


def tensor_map_of_bf16_rows(address: int, rows: int, columns: int, box_rows: int) -> Bytes:
    """Returns the tensor map of a row-major matrix of bf16, 128 bytes: what the bulk copy engine (TMA) reads.

    The engine copies boxes of `box_rows` rows of 64 elements (128 bytes), whose chunks of 16 bytes it
    permutes (SWIZZLE_128B); columns have to be a multiple of 8, the address one of 16.

    Raises:
        DeviceError: no driver, or it refuses the map.
    """
    try:
        encode = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled
    except (OSError, AttributeError):
        raise DeviceError("the NVIDIA driver has no tensor maps (libcuda's cuTensorMapEncodeTiled)") from None
    # The driver wants the map itself on 64 bytes.
    map_bytes = 128
    room = np.zeros(map_bytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    made = room[start : start + map_bytes]
    status = encode(
        ctypes.c_void_p(made.ctypes.data),
        ctypes.c_int(9),  # CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
        ctypes.c_uint32(2),
        ctypes.c_void_p(int(address)),
        (ctypes.c_uint64 * 2)(columns, rows),
        (ctypes.c_uint64 * 1)(2 * columns),
        (ctypes.c_uint32 * 2)(64, box_rows),
        (ctypes.c_uint32 * 2)(1, 1),
        ctypes.c_int(0),
        ctypes.c_int(3),  # CU_TENSOR_MAP_SWIZZLE_128B
        ctypes.c_int(3),  # CU_TENSOR_MAP_L2_PROMOTION_L2_256B
        ctypes.c_int(0),
    )
    if status:
        raise DeviceError(f"the driver refuses a tensor map of {rows} x {columns} bf16: error {status}")
    return made.copy()
