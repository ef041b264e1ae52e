"""Tensor maps: what the bulk tensor copy engine (TMA) knows of a matrix in the GPU's memory."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt

from hw_capture.errors import DeviceError

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
