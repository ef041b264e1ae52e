"""The CUDA text of an instruction's chains, and its machine code by NVRTC, NVIDIA's compiler as a library."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from golden.errors import CoreError, OperandError, ToolMissing
from golden.model import device_text
from golden.model.engine import SPARSITY
from golden.model.instruction import Instruction

_TEXT = Path(__file__).resolve().parents[1] / "templates" / "cuda" / "chain.cu"
THREADS = 16
"""A block has this many rows of this many threads each."""
_SHARED = 48 << 10
"""Bytes of shared memory that every block can have."""
_HEADERS = {
    "stdint.h": """typedef signed char int8_t; typedef short int16_t; typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long long uint64_t; typedef unsigned long long uintptr_t;
#define INT64_C(x) x##ll
#define UINT64_C(x) x##ull
#define UINT32_C(x) x##u
#define INT32_MAX 2147483647
#define INT32_MIN (-INT32_MAX - 1)
#define UINT32_MAX 4294967295u
#define INT64_MAX 9223372036854775807ll
#define INT64_MIN (-INT64_MAX - 1)
#define UINT64_MAX 18446744073709551615ull
""",
    "stddef.h": "#define NULL 0\n",
    "stdlib.h": "",
    "string.h": "",
}
"""What the core includes of C's library; NVRTC has none, and knows memcpy and memset by itself."""


def supported(ins: Instruction) -> str | None:
    """Why an instruction has no such kernel; None where it has one."""
    if ins.status or not device_text.supported(ins):
        return "units with state, modes or status flags"
    return None


def tile_of(ins: Instruction) -> int:
    """Rows and columns that a block of threads computes."""
    element, (chunks, scales) = device_text.element_bytes(ins.program, ins), _metadata_and_scales(ins)
    row = (_stride(ins, ins.k) + _stride(ins, ins.stored_k)) * element + chunks + 16 * scales
    return next(size for size in (64, 32, THREADS) if size * row <= _SHARED or size == THREADS)


def _stride(ins: Instruction, count: int) -> int:
    """Elements from one row of decoded operands to the next: 16 bytes more than a row, so that rows use other
    banks."""
    return count + 16 // device_text.element_bytes(ins.program, ins)


def _metadata_and_scales(ins: Instruction) -> tuple[int, int]:
    """Nibbles of metadata, and scales, of a row in a step."""
    chunks = 0 if ins.pattern is None else ins.k // ins.pattern.chunk
    return chunks, 0 if ins.scale_block is None else ins.k // ins.scale_block


@lru_cache(maxsize=64)
def source(ins: Instruction) -> str:
    """The text with the kernel `chain` (golden/templates/cuda/chain.cu).

    Raises:
        OperandError: see `supported`.
    """
    why = supported(ins)
    if why is not None:
        raise OperandError(f"{ins.name}: no kernel for {why}, expected tensors of the CPU: a.cpu(), b.cpu()")
    chunks, scales = _metadata_and_scales(ins)
    names = ["a", "b", *(["metadata"] if chunks else []), *(["scale_a", "scale_b"] if scales else [])]
    constants: dict[str, Any] = {
        "UNIT_K": ins.k,
        "UNIT_STORED": ins.stored_k,
        "UNIT_SPARSITY": SPARSITY[ins.pattern.name if ins.pattern else None],
        "UNIT_CHUNKS": chunks,
        "UNIT_SCALES": scales,
        "THREADS": THREADS,
        "TILE": tile_of(ins),
        "STRIDE": _stride(ins, ins.k),
        "LEFT_STRIDE": _stride(ins, ins.stored_k),
        **{f"REST_{name.upper()}": f"{ins.at_rest(name)}ull" for name in names},
    }
    defines = "".join(f"#define {name} {value}\n" for name, value in constants.items())
    sizes = {x: ins.formats[x].dtype.itemsize for x in "abcd"}
    sizes["sum"] = max(sizes["c"], sizes["d"])
    types = "".join(f"typedef uint{8 * size}_t code_{x};\n" for x, size in sizes.items())
    return "\n".join([device_text.source(ins.program, ins), defines, types, _TEXT.read_text()])


@lru_cache(maxsize=64)
def machine_code(ins: Instruction, capability: tuple[int, int]) -> bytes:
    """The cubin of `source` for a compute capability.

    Raises:
        ToolMissing: NVRTC or its bindings are not installed. CoreError: NVRTC refuses the text.
        OperandError: see `supported`.
    """
    nvrtc = _nvrtc()
    headers = [text.encode() for text in _HEADERS.values()]
    names = [name.encode() for name in _HEADERS]
    text = source(ins).encode()
    program = _checked(nvrtc, nvrtc.nvrtcCreateProgram(text, b"chain.cu", len(headers), headers, names))
    options = [
        f"--gpu-architecture=sm_{capability[0]}{capability[1]}",
        "--std=c++20",
        "-default-device",
        "--device-int128",
        "-w",
    ]
    status, *_ = nvrtc.nvrtcCompileProgram(program, len(options), [word.encode() for word in options])
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        size = _checked(nvrtc, nvrtc.nvrtcGetProgramLogSize(program))
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        message = " ".join(log.decode(errors="replace").split())[:400]
        raise CoreError(f"{ins.name}: NVRTC does not compile its arithmetic: {message}")
    code = bytes(_checked(nvrtc, nvrtc.nvrtcGetCUBINSize(program)))
    _checked(nvrtc, nvrtc.nvrtcGetCUBIN(program, code))
    nvrtc.nvrtcDestroyProgram(program)
    return code


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()  # loads the library
    except (ImportError, RuntimeError) as error:
        message = " ".join(str(error).split())[:200]
        raise ToolMissing(
            f"NVRTC cannot be loaded ({message}), expected what pip install cuda-bindings nvidia-cuda-nvrtc "
            "brings"
        ) from None
    return nvrtc


def _checked(nvrtc: Any, answer: tuple[Any, ...]) -> Any:
    """What a call returned in addition to its status.

    Raises:
        CoreError: the status is no success.
    """
    status, *found = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CoreError(f"NVRTC: {status.name}")
    return found[0] if found else None
