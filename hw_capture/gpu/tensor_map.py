"""Tensor maps: what the bulk tensor copy engine (TMA) knows of a matrix in the GPU's memory."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt

from hw_capture.errors import DeviceError

# CUtensorMapDataType, Swizzle and L2promotion of cuda.h.
_BFLOAT16, _SWIZZLE_128B, _PROMOTE_256B = 9, 3, 3
_BYTES = 128


def bf16_rows(address: int, rows: int, columns: int, box_rows: int) -> npt.NDArray[np.uint8]:
    """Returns the map of a row-major matrix of bf16, 128 bytes.

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
    room = np.zeros(_BYTES + 64, np.uint8)
    start = -room.ctypes.data % 64
    made = room[start : start + _BYTES]
    status = encode(
        ctypes.c_void_p(made.ctypes.data),
        ctypes.c_int(_BFLOAT16),
        ctypes.c_uint32(2),
        ctypes.c_void_p(int(address)),
        (ctypes.c_uint64 * 2)(columns, rows),
        (ctypes.c_uint64 * 1)(2 * columns),
        (ctypes.c_uint32 * 2)(64, box_rows),
        (ctypes.c_uint32 * 2)(1, 1),
        ctypes.c_int(0),
        ctypes.c_int(_SWIZZLE_128B),
        ctypes.c_int(_PROMOTE_256B),
        ctypes.c_int(0),
    )
    if status:
        raise DeviceError(f"the driver refuses a tensor map of {rows} x {columns} bf16: error {status}")
    return made.copy()
