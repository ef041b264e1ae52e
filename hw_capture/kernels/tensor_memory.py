"""The kernel generator for tcgen05.mma: CUDA C++ with B in shared memory, A there or in tensor memory, C, D
and block scales in tensor memory.

    name = "tcgen05.mma.cta_group::1.kind::tf32.m128n16k8.f32.tf32.tf32"
    print(tensor_memory.source(golden.instruction("blackwell", name)))

A CTA of 128 threads moves the 128 lanes of its tensor memory; of `cta_group::2` two CTAs, a cluster, each
hold half of the rows of A and half of the columns of B, and a thread of the first issues the instruction for
both. Operands of shared memory lie as for wgmma, K-major without swizzle; FP6 and FP4 of the kinds f8f6f4 and
mxf8f6f4 are padded, 16 elements in 16 bytes. golden/registers/tensor_memory.py says what lies where in
tensor memory. No such GPU was at hand: the kernels were compiled and their machine code was read, nothing
more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden.model.instruction import Instruction
from golden.registers.tensor_memory import A_COLUMNS, SCALE_A_COLUMNS, Place, TensorMemory
from hw_capture.kernels import kernels

GENERATOR = "tcgen05"
_FORMATS = {
    "f16": {"f16": 0, "bf16": 1},
    "tf32": {"tf32": 2},
    "f8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5},
    "i8": {"u8": 0, "s8": 1},
    "mxf4": {"e2m1": 1},
}
"""Types of A and B in the instruction descriptor, by the kind (PTX ISA, tcgen05, instruction descriptor)."""
_LIKE = {"mxf8f6f4": "f8f6f4", "mxf4nvf4": "mxf4"}
_RESULTS = {"f16": 0, "f32": 1, "s32": 2}
_SCALES = {"ue4m3": 0, "ue8m0": 1}


def supported(ins: Instruction) -> bool:
    """Whether this generator makes the instruction's kernel: every tcgen05.mma of the spec."""
    return ins.traits.kernel == GENERATOR


def kind(ins: Instruction) -> str:
    """What stands behind `.kind::` in the name."""
    return ins.name.split(".kind::")[1].split(".")[0]


def ctas(ins: Instruction) -> int:
    """CTAs that execute it together."""
    return int(ins.variables["cta"])


def padded(ins: Instruction, operand: str) -> bool:
    """Whether elements of A or B lie in shared memory as 16 of them in 16 bytes, packed from the front: FP6,
    FP4."""
    return kind(ins) in ("f8f6f4", "mxf8f6f4") and ins.formats[operand].bits < 8


def instruction_descriptor(ins: Instruction) -> int:
    """The 32 bits that say types and shape, and in bit 3 whether integers saturate; nothing is sparse,
    negated or transposed.

    A in bits 9:7, B in 12:10, N/8 in 22:17, M/16 in 28:24; D in 5:4, or with block scales their type in bit
    23. The bytes of the scales begin at 0, in bits 5:4 (B) and 30:29 (A); bit 31, for K = 96, is 0.
    """
    codes = _FORMATS[_LIKE.get(kind(ins), kind(ins))]
    a, b = (codes[ins.formats[x].name] for x in "ab")
    shape = a << 7 | b << 10 | ins.n >> 3 << 17 | ins.m >> 4 << 24
    if ins.scale_block is None:
        saturate = ins.variables.get("satfinite") == ".satfinite"
        return shape | _RESULTS[ins.formats["d"].name] << 4 | saturate << 3
    return shape | _SCALES[ins.formats["scale_a"].name] << 23


def text(ins: Instruction, form: str = "shared") -> str:
    """The PTX instruction with its operands, numbered as in the asm statement; p says that D is added to."""
    name = ins.name.split(f".m{ins.m}n{ins.n}k")[0]
    a = "[%1]" if form == "tensor" else "%1"
    scales = "" if ins.scale_block is None else " [%4], [%5],"
    return f"{name} [%0], {a}, %2, %3,{scales} p;"


# Tensor memory
# ------------------------------------------------------------------------------------------------


def memory(ins: Instruction) -> TensorMemory:
    """The tensor memory of an instruction."""
    return TensorMemory(ctas(ins), ins.m, ins.n, ins.k, ins.formats["a"].bits, ins.scale_block)


def place(ins: Instruction, operand: str) -> Place:
    """Where A, C, D, scale_a or scale_b lies in tensor memory."""
    return memory(ins).place(operand)


def columns(ins: Instruction) -> int:
    """Columns of C and D."""
    return memory(ins).columns


# The kernel
# ---------------------------------------------------------------------------------------------------


def shared_bytes(ins: Instruction) -> tuple[int, int]:
    """Bytes of A and B that one CTA holds in shared memory: of every type 32 bytes a row."""
    return 32 * ins.m // ctas(ins), 32 * ins.n // ctas(ins)


def source(ins: Instruction, form: str = "shared", name: str = "run", complete: bool = True) -> str:
    """The kernel `name`; with `complete` a whole compilation unit.

    Raises:
        NoKernelError: there is no generator for the instruction, or none of this form.
    """
    kernels.check_there(ins, supported(ins), form)
    a_bytes, b_bytes = shared_bytes(ins)
    held = _columns_besides_d(ins, form)
    used = columns(ins) + sum(count for _, count, _ in held)
    code = kernels.render(
        "tensor.cu",
        instruction=ins.name,
        name=name,
        function=f"mma_{name}",
        text=text(ins, form),
        descriptor=instruction_descriptor(ins),
        pair=ctas(ins) == 2,
        scaled=ins.scale_block is not None,
        in_shared=form == "shared",
        allocated=max(32, 1 << (used - 1).bit_length()),
        columns=columns(ins),
        held=held,
        a_bytes=a_bytes,
        b_bytes=b_bytes,
    )
    return kernels.prelude() + prelude() + code if complete else code


def prelude() -> str:
    """What a compilation unit has in addition to `kernels.prelude`."""
    return kernels.render("tensor_prelude.cu")


def _columns_besides_d(ins: Instruction, form: str) -> list[tuple[str, int, int]]:
    """What lies in tensor memory in addition to D: parameter, columns, first column."""
    widths: dict[str, int] = {}
    if form == "tensor":
        widths["a"] = A_COLUMNS
    if ins.scale_block is not None:
        widths |= {"scale_a": SCALE_A_COLUMNS, "scale_b": memory(ins).scale_b_columns}
    found: list[tuple[str, int, int]] = []
    first = columns(ins)
    for name, width in widths.items():
        found.append((name, width, first))
        first += width
    most_columns = 512
    assert first <= most_columns
    return found


def pack(spot: Place, matrices: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    """Matrices (..., rows, cols) of codes as words (..., CTAs, lanes, columns) of tensor memory; 0 where none
    lies."""
    inside = spot.filled
    spread = np.where(inside, matrices[..., spot.rows, spot.cols], 0).astype(np.uint32)
    shifts = np.arange(spot.rows.shape[3], dtype=np.uint32) * np.uint32(spot.bits)
    found: npt.NDArray[np.uint32] = np.bitwise_or.reduce(spread << shifts, axis=-1)
    return found


def unpack(
    spot: Place, words: npt.NDArray[Any], shape: tuple[int, int], dtype: npt.DTypeLike
) -> npt.NDArray[Any]:
    """The inverse of `pack`; of an element that lies twice the last place counts."""
    inside = spot.filled
    shifts = np.arange(spot.rows.shape[3], dtype=np.uint32) * np.uint32(spot.bits)
    codes = (words[..., None] >> shifts & np.uint32((1 << spot.bits) - 1)).astype(dtype)
    found = np.zeros((*words.shape[:-3], *shape), dtype)
    found[..., spot.rows[inside], spot.cols[inside]] = codes[..., inside]
    return found
