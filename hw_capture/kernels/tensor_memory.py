"""The kernel generator for tcgen05.mma: CUDA C++ with A and B in shared memory, C and D in tensor memory.

    name = "tcgen05.mma.cta_group::1.kind::tf32.m128n16k8.f32.tf32.tf32"
    print(tensor_memory.source(golden.instruction("blackwell", name)))

It makes kernels of one CTA and 128 rows, where row i of D is lane i of tensor memory and column j its column
j (PTX ISA, tcgen05, data path layout D), and of elements of 8 bits and more. What it does not make: pairs of
CTAs, 64 rows, block scales, elements that lie padded in shared memory. Operands of shared memory are those of
wgmma (hw_capture/kernels/buffers.py); C and D are (execution, row, column) of 32-bit words. No such GPU was
at hand: the kernels were compiled and their machine code was read, nothing more.
"""

from __future__ import annotations

from golden.instruction import Instruction
from hw_capture.errors import NoKernelError
from hw_capture.kernels import kernels

GENERATOR = "tcgen05"
ROWS = 128
_FORMATS = {
    "f16": {"f16": 0, "bf16": 1},
    "tf32": {"tf32": 2},
    "f8f6f4": {"e4m3": 0, "e5m2": 1},
    "i8": {"u8": 0, "s8": 1},
}
"""Types of A and B in the instruction descriptor, by the kind (PTX ISA, tcgen05, instruction descriptor)."""
_RESULTS = {"f16": 0, "f32": 1, "s32": 2}


def supported(ins: Instruction) -> bool:
    """Whether this generator makes the instruction's kernel; see the module's text."""
    return (
        ins.traits.kernel == GENERATOR
        and ins.m == ROWS
        and ins.variables.get("cta") == "1"
        and ins.scale_block is None
        and all(_kind(ins, x) is not None for x in "ab")
    )


def _kind(ins: Instruction, operand: str) -> int | None:
    return _FORMATS.get(kind(ins), {}).get(ins.formats[operand].name)


def kind(ins: Instruction) -> str:
    """What stands behind `.kind::` in the name."""
    return ins.name.split(".kind::")[1].split(".")[0]


def instruction_descriptor(ins: Instruction) -> int:
    """The 32 bits that say types and shape: D in bits 5:4, A in 9:7, B in 12:10, N/8 in 22:17, M/16 in 28:24.
    Nothing is sparse, negated, transposed or saturated."""
    a, b = _kind(ins, "a"), _kind(ins, "b")
    assert a is not None and b is not None
    d = _RESULTS[ins.formats["d"].name]
    return d << 4 | a << 7 | b << 10 | ins.n >> 3 << 17 | ins.m >> 4 << 24


def text(ins: Instruction) -> str:
    """The PTX instruction with its operands, numbered as in the asm statement; p says that D is added to."""
    return f"tcgen05.mma.cta_group::1.kind::{kind(ins)} [%0], %1, %2, %3, p;"


def source(ins: Instruction, name: str = "run", complete: bool = True) -> str:
    """The kernel `name`; with `complete` a whole compilation unit.

    Raises:
        NoKernelError: there is no generator for the instruction.
    """
    if not supported(ins):
        raise NoKernelError(
            f"{ins.architecture}:{ins.name}: the generator has no kernel for this variant of {ins.family}"
        )
    a_bytes, b_bytes = kernels.shared_bytes(ins)
    code = kernels.render(
        "tensor.cu",
        instruction=ins.name,
        name=name,
        function=f"mma_{name}",
        text=text(ins),
        descriptor=instruction_descriptor(ins),
        columns=max(32, 1 << (ins.n - 1).bit_length()),
        n=ins.n,
        a_bytes=a_bytes,
        b_bytes=b_bytes,
        a_stride=8 * a_bytes // ins.m,
        b_stride=8 * b_bytes // ins.n,
    )
    return kernels.prelude() + code if complete else code
